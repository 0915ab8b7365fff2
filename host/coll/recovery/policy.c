/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Selects the algorithm that replaces one that needs a failed part. The order is the user's
 * (comm_cfg.policy) and the same at every rank, so that all ranks change to the same one.
 */
#include "host/coll/comm.h"

#include <errno.h>
#include <stdio.h>

unsigned policy_parts(enum coll_algo a)
{
    return (a == ALGO_SHARP ? (unsigned)PART_TREES : 0) |
           (COMM_RAIL_ALGOS >> a & 1 ? (unsigned)PART_RAIL : 0) |
           (COMM_MM_ALGOS >> a & 1 ? (unsigned)PART_MM : 0) |
           (coll_is_protocol(a) ? PART_PROTOCOL(a - ALGO_PROTOCOL) : 0);
}

int policy_init(struct comm *c, char *err)
{
    static const enum coll_algo usual[] = {ALGO_SHARP, ALGO_RING};
    struct comm_cfg *cfg = &c->cfg;
    unsigned seen = 0;

    if (cfg->n_policy > ALGO_SCHEDULE) {
        snprintf(err, COMM_TEXT, "a policy of %u algorithms: there are %d", cfg->n_policy,
                 ALGO_SCHEDULE);
        return -EINVAL;
    }
    for (unsigned i = 0; i < cfg->n_policy; i++) {
        enum coll_algo a = cfg->policy[i];
        bool none = (unsigned)a >= ALGO_SCHEDULE || (coll_is_protocol(a) && !coll_protocol(a));

        if (none || seen >> a & 1) {
            snprintf(err, COMM_TEXT, "policy: %s at place %u",
                     none ? "no such algorithm" : "an algorithm twice", i);
            return -EINVAL;
        }
        if (policy_parts(cfg->policy[i]) && !(cfg->algos >> cfg->policy[i] & 1)) {
            snprintf(err, COMM_TEXT, "policy: %s at place %u was not set up (comm_cfg.algos)",
                     sched_algo_name(cfg->policy[i]), i);
            return -EINVAL;
        }
        seen |= 1u << cfg->policy[i];
    }
    c->usual_policy = !seen;
    for (; !seen && cfg->n_policy < 2; cfg->n_policy++)
        cfg->policy[cfg->n_policy] = usual[cfg->n_policy];
    return 0;
}

uint64_t policy_code(const struct comm *c)
{
    uint64_t code = 0;

    _Static_assert(ALGO_COUNT < 32, "a bit each");
    for (unsigned i = 0; i < c->cfg.n_policy; i++)
        code = (code ^ ((unsigned)c->cfg.policy[i] + 1)) * 0x9e3779b97f4a7c15ULL;
    return code;
}

unsigned policy_list(const struct comm *c, enum coll_kind kind, enum coll_algo a,
                     enum coll_algo list[ALGO_COUNT + 1])
{
    unsigned n = 0, i = 0;

    list[n++] = a;
    while (i < c->cfg.n_policy && c->cfg.policy[i] != a)
        i++;
    for (i = i < c->cfg.n_policy ? i + 1 : 0; i < c->cfg.n_policy; i++) {
        enum coll_algo b = c->cfg.policy[i];

        if (kind == COLL_BARRIER && b == ALGO_RING)
            b = ALGO_DIRECT;
        if (sched_has(kind, b) && (!policy_parts(b) || comm_has(c, b)))
            list[n++] = b;
    }
    return n;
}

bool policy_goes_on(const struct comm *c, unsigned parts)
{
    for (enum coll_algo a = 0; a < ALGO_COUNT; a++) {
        enum coll_algo list[ALGO_COUNT + 1];
        unsigned i = 1, n;

        if (!comm_has(c, a) || !(policy_parts(a) & parts))
            continue;
        if (coll_is_protocol(a) && c->usual_policy)
            return false;
        n = policy_list(c, COLL_ALLREDUCE, a, list);
        while (i < n && policy_parts(list[i]) & parts)
            i++;
        if (i == n)
            return false;
    }
    return true;
}

/* 0: these ranks can run it for some length. */
static int is_possible(const struct sched_in *in)
{
    struct sched_in some = *in;
    struct sched s;
    int rc;

    some.count = in->count > 0;
    rc = sched_init(&s, &some);
    if (!rc)
        sched_free(&s);
    return rc;
}

/* A protocol reduces some types and ways only. */
static bool is_done_by(enum coll_algo a, const struct sched_in *in)
{
    const struct trib_protocol *p = coll_protocol(a);

    return !p || coll_protocol_does(p, in->type, in->op);
}

int policy_schedule(struct comm *c, struct coll_req *r, struct sched_in *in)
{
    enum coll_algo list[ALGO_COUNT + 1];
    unsigned gone = failover_gone(c, r->id.seq), n = policy_list(c, in->kind, in->algo, list);
    /* An operation refused before a failure is refused after it, too, whatever follows in the list,
     * because ranks learn of the failure at different times. */
    int rc = policy_parts(in->algo) & gone ? is_possible(in) : 0;

    if (rc)
        return rc;
    rc = -ENOTSUP;
    for (unsigned i = 0; rc == -ENOTSUP && i < n; i++) {
        if (policy_parts(list[i]) & gone || (i && !is_done_by(list[i], in)))
            continue;
        in->algo = list[i];
        rc = sched_init(&r->s, in);
        if (!gone || !i) /* failures do not enable algorithms that these ranks cannot run */
            break;
    }
    return rc;
}
