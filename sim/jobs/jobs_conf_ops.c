/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of a job, read from a file and checked against its ranks and the fabric. */
#include "collective/sched.h"
#include "host/bench/tolerance.h"
#include "host/bench/verify/layout.h"
#include "include/tributary/protocol.h"
#include "model/predict.h"
#include "sim/jobs/jobs_conf_priv.h"

#include <errno.h>
#include <string.h>

/* ---- names ---- */

/* "": a seat of protocols that is empty. */
static const char *algo_name(unsigned i)
{
    bool empty = coll_is_protocol((enum coll_algo)i) && !coll_protocol((enum coll_algo)i);

    return empty ? "" : sched_algo_name((enum coll_algo)i);
}

int jobs_algo_by_name(const char *name)
{
    for (unsigned i = 0; i <= ALGO_AUTO; i++)
        if (*name && !strcmp(name, algo_name(i)))
            return (int)i;
    return -EINVAL;
}

static int coll_by_name(const char *name)
{
    for (unsigned i = 0; i < COLL_KINDS; i++)
        if (!strcmp(name, coll_name(i)))
            return (int)i;
    return -EINVAL;
}

static const char *type_name(unsigned i)
{
    return dtype_name((enum dtype)i);
}

static const char *op_name(unsigned i)
{
    return redop_name((enum redop)i);
}

const struct jobs_names jobs_policies = {jobs_algo_by_name, algo_name, ALGO_COUNT};
static const struct jobs_names algos = {jobs_algo_by_name, algo_name, ALGO_COUNT + 1},
                               collectives = {coll_by_name, coll_name, COLL_KINDS},
                               types = {dtype_by_name, type_name, DT_COUNT},
                               ops = {redop_by_name, op_name, OP_COUNT};

static void list_names(const struct jobs_names *n, unsigned long mask, char *text, size_t size)
{
    size_t at = 0;

    *text = '\0';
    for (unsigned i = 0; i < n->n && at < size; i++)
        if ((mask >> i & 1) && *n->name(i))
            at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", " : "", n->name(i));
}

int jobs_read_name(struct jobs_reader *r, const config_setting_t *s, const struct jobs_names *n)
{
    const char *text = config_setting_get_string(s);
    int i = text ? n->find(text) : -EINVAL;
    char expected[200], list[180];

    if (i >= 0 && (unsigned)i < n->n)
        return i;
    list_names(n, ~0ul, list, sizeof(list));
    snprintf(expected, sizeof(expected), "one of: %s", list);
    keys_expected(&r->b, s, expected);
    return -EINVAL;
}

static int read_member(struct jobs_reader *r, config_setting_t *g, const char *key,
                       const struct jobs_names *n)
{
    const config_setting_t *s = config_setting_get_member(g, key);

    return s ? jobs_read_name(r, s, n) : n->find(keys_initial_of(jobs_op_keys, JOBS_OP_KEYS, key));
}

/* ---- operations ---- */

/* What a protocol reduces, and how exactly. */
static void check_protocol(struct jobs_reader *r, int line, const struct jobs_job *j,
                           struct jobs_op *o)
{
    const struct trib_protocol *p = coll_protocol(o->algo);
    const struct row row = {.coll = o->kind,
                            .algo = o->algo,
                            .type = o->type,
                            .op = o->op,
                            .root = o->root,
                            .nranks = j->nranks,
                            .count = o->count,
                            .bytes = o->bytes};

    if (p && coll_reduces(o->kind) && !coll_protocol_does(p, o->type, o->op))
        build_error(&r->b, line, "algorithm: found %s for %s of %s, expected one that reduces that",
                    algo_name(o->algo), op_name(o->op), type_name(o->type));
    else if (p)
        o->bound = row_tolerance(r->f, &row);
}

static void check_algo(struct jobs_reader *r, int line, const struct jobs_job *j, struct jobs_op *o)
{
    struct coll_args a = {.kind = o->kind,
                          .algo = o->algo,
                          .count = o->count,
                          .type = o->type,
                          .op = o->op,
                          .root = o->root};
    struct coll_prediction pred;
    char why[COLL_WHY], can[180];
    unsigned long mask = 0;
    int rc;

    o->asked = o->algo;
    for (unsigned i = 0; i < ALGO_COUNT; i++)
        mask |= (unsigned long)sched_has(o->kind, (enum coll_algo)i) << i;
    list_names(&jobs_policies, mask, can, sizeof(can));
    if (o->algo == ALGO_AUTO) {
        rc = coll_auto(r->f, &a, j->nranks, j->host_of_rank, j->tree, j->n_trees, j->window,
                       (1u << ALGO_COUNT) - 1, &o->algo, &pred, why);
    } else if (!(mask >> o->algo & 1)) {
        build_error(&r->b, line, "algorithm: found %s, which %s does not have, expected one of: %s",
                    algo_name(o->algo), coll_name(o->kind), can);
        return;
    } else if (o->algo == ALGO_SHARP && !j->n_trees) {
        rc = -ENOTSUP;
    } else {
        rc = coll_predict_trees(r->f, &a, j->nranks, j->host_of_rank, j->tree, j->n_trees,
                                j->window, &pred);
    }
    if (rc == -ENOMEM)
        r->b.no_memory = true;
    else if (rc && coll_is_protocol(o->algo) && j->nranks > TRIB_RANKS)
        build_error(&r->b, line,
                    "algorithm: found %s with %u ranks, expected at most %u of a protocol",
                    algo_name(o->algo), j->nranks, TRIB_RANKS);
    else if (rc)
        build_error(&r->b, line,
                    "algorithm: found %s, which these %u ranks of %s cannot run, expected one that "
                    "they can, or \"auto\"",
                    algo_name(o->algo), j->nranks, r->f->name);
    else
        o->model_ps = pred.time_ps;
    if (!rc)
        check_protocol(r, line, j, o);
}

static void check_op(struct jobs_reader *r, config_setting_t *g, const struct jobs_job *j,
                     struct jobs_op *o)
{
    unsigned blocks = layout_blocks(o->kind, j->nranks, 0), size = dtype_size(o->type);
    unsigned before = r->b.errs->total;

    if (coll_reduces(o->kind) && !arith_valid(o->op, o->type))
        build_error(&r->b, jobs_key_line(g, "op"), "op: found %s, which %s does not have",
                    op_name(o->op), type_name(o->type));
    if (coll_rooted(o->kind) && o->root >= j->nranks)
        build_error(&r->b, jobs_key_line(g, "root"), "root: found %u, expected a rank below %u",
                    o->root, j->nranks);
    if (o->kind == COLL_BARRIER)
        o->bytes = o->count = 0;
    else
        o->count = o->bytes / size / blocks;
    if (o->kind != COLL_BARRIER && !o->bytes)
        build_error(&r->b, jobs_line(g), "found no size, expected size = \"1MiB\" or the like");
    else if (o->kind != COLL_BARRIER && !o->count)
        build_error(
            &r->b, jobs_key_line(g, "size"),
            "size: found %llu bytes, expected at least %u, one element of %s for each of %u",
            (unsigned long long)o->bytes, size * blocks, type_name(o->type), blocks);
    if (r->b.errs->total == before)
        check_algo(r, jobs_key_line(g, "algorithm"), j, o);
}

static void read_op(struct jobs_reader *r, config_setting_t *g, struct jobs_job *j,
                    const struct jobs_entry *in)
{
    struct jobs_op *o = &j->op[j->n_ops];
    int kind = read_member(r, g, "collective", &collectives),
        algo = read_member(r, g, "algorithm", &algos), type = read_member(r, g, "type", &types),
        op = read_member(r, g, "op", &ops);

    if (kind < 0 || algo < 0 || type < 0 || op < 0)
        return;
    *o = (struct jobs_op){.kind = (enum coll_kind)kind,
                          .algo = (enum coll_algo)algo,
                          .type = (enum dtype)type,
                          .op = (enum redop)op,
                          .root = in->root,
                          .bytes = in->size};
    check_op(r, g, j, o);
    j->algos |= 1u << o->algo;
    j->n_ops++;
}

void jobs_read_ops(struct jobs_reader *r, config_setting_t *g, struct jobs_job *j,
                   const struct jobs_entry *in)
{
    config_setting_t *s = config_setting_get_member(g, "operations");
    int n = s && config_setting_type(s) == CONFIG_TYPE_LIST ? config_setting_length(s) : 0;

    if (!s) {
        read_op(r, g, j, in);
        return;
    }
    for (unsigned i = 0; i < JOBS_OP_KEYS; i++)
        if (config_setting_get_member(g, jobs_op_keys[i].name)) {
            build_error(&r->b, jobs_key_line(g, jobs_op_keys[i].name),
                        "%s: found it beside operations, expected it in their entries",
                        jobs_op_keys[i].name);
            return;
        }
    if (n < 1 || n > (int)JOBS_OPS) {
        keys_expected(&r->b, s, "a list ( { collective = \"all_reduce\"; ... }, ... ) of 1 to 8");
        return;
    }
    for (int i = 0; i < n; i++) {
        config_setting_t *e = config_setting_get_elem(s, (unsigned)i);
        unsigned before = r->b.errs->total;
        struct jobs_entry of = {.name = ""};

        if (config_setting_type(e) != CONFIG_TYPE_GROUP) {
            keys_expected(&r->b, e, "a group { collective = \"all_reduce\"; ... }");
            continue;
        }
        keys_initial(jobs_op_keys, JOBS_OP_KEYS, &of);
        keys_read(&r->b, e, jobs_op_keys, JOBS_OP_KEYS, &of);
        if (r->b.errs->total == before)
            read_op(r, e, j, &of);
    }
}
