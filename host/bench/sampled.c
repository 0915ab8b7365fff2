/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/bench/sampled.h"

#include "collective/sched.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GIVEN_MAX (16u << 20) /* bytes */

static bool is_of(const struct sampled *s, const struct expected_job *j, const struct row *r,
                  enum coll_algo by, bool cut)
{
    if (s->n_trees != j->n_trees || memcmp(s->tree, j->tree, j->n_trees * sizeof(*j->tree)) != 0)
        return false;
    return s->want && s->kind == r->coll && s->type == r->type && s->op == r->op &&
           s->count == r->count && s->root == r->root && s->mm_self == r->mm_self && s->by == by &&
           s->cut == cut;
}

/* Adds one more possible result, if there is such a schedule. */
static int sampled_add(struct sampled *s, const struct expected_job *j, const struct row *r,
                       enum coll_algo by, bool repaired)
{
    struct coll_args a = row_args(r);
    int rc;

    a.algo = by;
    rc = expected_values(j, &a, false, repaired, &s->at, s->want + sampled_bytes(s));
    s->ways += rc == 0;
    return rc == -ENOTSUP ? 0 : rc;
}

/* Adds the results of the policy's algorithms, and of the repair of an operation by SHARP. */
static int add_others(struct sampled *s, const struct expected_job *j, const struct perf_opts *o,
                      const struct row *r)
{
    unsigned all = 1u << r->algo, done = 1u << s->by;
    int rc = 0;

    for (unsigned i = 0; i < o->n_policy; i++)
        all |= 1u << o->policy[i];
    if (!o->n_policy)
        all |= 1u << ALGO_SHARP | 1u << ALGO_RING;
    for (unsigned a = 0; !rc && a < ALGO_COUNT; a++)
        if (all & ~done & 1u << a && sched_has(r->coll, a))
            rc = sampled_add(s, j, r, a, false);
    if (!rc && all & 1u << ALGO_SHARP && sched_has(r->coll, ALGO_SHARP))
        rc = sampled_add(s, j, r, ALGO_SHARP, true);
    return rc;
}

/* Keeps the contributions, because buffers are filled and compared several times. */
static void keep_given(struct sampled *s, const struct row *r)
{
    size_t size = dtype_size(r->type), bytes = (size_t)r->nranks * s->at.n * size;
    uint8_t *p = s->given;

    if (bytes > s->given_bytes || !p) {
        free(p);
        s->given = p = bytes <= GIVEN_MAX ? malloc(bytes) : NULL;
        s->given_bytes = p ? bytes : 0;
    }
    for (unsigned rank = 0; p && rank < r->nranks; rank++)
        for (unsigned k = 0; k < s->at.n; k++, p += size) {
            uint64_t x = samples_value(r->type, r->op, r->nranks, rank, s->at.at[k]);

            memcpy(p, &x, size);
        }
}

/* Whether a protocol may have run an operation that a failover broke off: its order of sums is
 * unknown. */
static bool may_be_protocols(const struct perf_opts *o, const struct row *r)
{
    bool any = coll_is_protocol(r->algo);

    for (unsigned i = 0; i < o->n_policy; i++)
        any |= coll_is_protocol(o->policy[i]);
    return any;
}

int sampled_set(struct sampled *s, const struct expected_job *j, const struct perf_opts *o,
                const struct row *r, const struct layout *l, enum coll_algo by, bool cut)
{
    int rc;

    if (is_of(s, j, r, by, cut))
        return 0;
    if (!s->want)
        s->want = malloc(SAMPLED_BYTES);
    if (!s->want)
        return -ENOMEM;
    s->kind = r->coll, s->type = r->type, s->op = r->op, s->count = r->count;
    s->root = r->root, s->mm_self = r->mm_self, s->by = by, s->cut = cut;
    s->n_trees = j->n_trees;
    memcpy(s->tree, j->tree, j->n_trees * sizeof(*j->tree));
    s->ways = 0;
    if (!coll_reduces(r->coll) || coll_is_protocol(by) || (cut && may_be_protocols(o, r)))
        return 0;
    samples_choose(&s->at, l, r->type, j->fab->mtu);
    keep_given(s, r);
    rc = sampled_add(s, j, r, by, false);
    if (!rc && cut)
        rc = add_others(s, j, o, r);
    if (rc)
        s->ways = 0;
    if (rc == -ECANCELED)
        s->count = UINT64_MAX; /* matches no row, so the next call computes it again */
    return rc == -ENODATA ? 0 : rc;
}

size_t sampled_bytes(const struct sampled *s)
{
    return (size_t)s->ways * s->at.n * dtype_size(s->type);
}

void sampled_free(struct sampled *s)
{
    free(s->want);
    free(s->given);
    s->want = s->given = NULL;
}
