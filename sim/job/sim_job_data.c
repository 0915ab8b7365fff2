/* SPDX-License-Identifier: BSD-3-Clause */
/* A job's data: inputs of its ranks, and the check of their results. */
#include "sim/job/sim_job_priv.h"

#include "protocols/host/conf.h"
#include "sim/job/oracle.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct coll_args job_args(const struct job_op *op)
{
    return (struct coll_args){.kind = op->kind,
                              .algo = op->algo,
                              .count = op->count,
                              .type = op->type,
                              .op = op->op,
                              .root = op->root,
                              .sparse = op->sparse,
                              .mm_self = op->mm_self,
                              .file = op->file};
}

/* SHARP reduces in the order of the tree, and inputs are such that the order shows. */
static bool in_tree_order(const struct job *j, const struct job_op *op)
{
    return !j->cfg.any_order && j->cfg.n_trees < 2 && op->algo == ALGO_SHARP &&
           op->kind == COLL_ALLREDUCE;
}

static int reduce_all(struct job *j, const struct job_op *op, const void *const *in, size_t count,
                      void *out)
{
    struct fab_members m = {0};
    unsigned rph = 1;

    if (!in_tree_order(j, op)) {
        oracle_plain(op->type, op->op, count, j->cfg.nranks, in, out);
        return 0;
    }
    for (unsigned r = 0, run = 0; r < j->cfg.nranks; r++) {
        run = r && j->cfg.host_of_rank[r] == j->cfg.host_of_rank[r - 1] ? run + 1 : 1;
        rph = run > rph ? run : rph;
    }
    m.ranks_per_host = (uint16_t)rph;
    for (unsigned r = 0, run = 0; r < j->cfg.nranks; r++) {
        run = r && j->cfg.host_of_rank[r] == j->cfg.host_of_rank[r - 1] ? run + 1 : 0;
        fab_members_add(&m, j->cfg.host_of_rank[r] * rph + run);
    }
    return oracle_tree(j->cfg.fab, &j->cfg.fab->trees[j->cfg.tree], &m, op->type, op->op, count, in,
                       out);
}

/* How far an element may be from the exact result: protocols that quantise floats state a bound. */
static double tolerance(const struct job *j, const void *const *in)
{
    const struct trib_protocol *p = coll_protocol(j->op.algo);
    bool mean = j->op.op == OP_AVG;
    int64_t key[TRIB_KEYS];
    double most = 0, bound;

    if (!p || !p->bound || j->op.type != DT_FP32)
        return 0;
    for (unsigned r = 0; r < j->cfg.nranks; r++)
        for (size_t i = 0; i < j->op.count; i++)
            most = fmax(most, fabs((double)((const float *)in[r])[i]));
    proto_conf(j->cfg.fab, p, key);
    bound =
        p->bound(key, TRIB_FLOAT32, mean ? TRIB_SUM : (enum trib_sum)j->op.op, j->cfg.nranks, most);
    return mean ? bound / j->cfg.nranks + most * 0x1p-23 : bound;
}

/* Elements that are further from the exact ones than the bound; NaN is as far as can be. */
static uint64_t beyond(const float *got, const float *want, size_t n, double bound)
{
    uint64_t wrong = 0;

    for (size_t i = 0; i < n; i++)
        wrong += !(fabs((double)got[i] - (double)want[i]) <= bound);
    return wrong;
}

/* Compares the receive buffer of rank r with the expected one: all of it where it is not the send
 * buffer, which must be unchanged then. */
static uint64_t check_rank(struct job *j, unsigned r, const void *const *in, const void *reduced,
                           char *want)
{
    struct coll_args a = job_args(&j->op);
    struct member *m = &j->mem[r];
    bool apart = m->send == m->in;
    uint64_t wrong;
    double bound;
    size_t bytes;

    memset(want, 0xa5, j->bytes);
    T_ASSERT(m->copy, "a rank is checked whose input was not kept");
    bytes = oracle_expect(&a, r, j->cfg.nranks, in, reduced, want);
    T_ASSERT(bytes <= j->bytes, "a result is longer than the rank's buffer");
    bound = tolerance(j, in);
    wrong = bound > 0 ? beyond((const float *)(void *)m->recv, (const float *)(void *)want,
                               bytes / 4, bound)
                      : oracle_wrong(m->recv, want, a.type, bytes / dtype_size(a.type));
    if (apart && m->recv == m->out)
        wrong += memcmp(m->recv + bytes, want + bytes, j->bytes - bytes) != 0;
    if (apart)
        wrong += memcmp(m->send, m->copy, m->send_bytes) != 0;
    return wrong;
}

int job_check(struct job *j, struct job_result *res)
{
    unsigned n = j->cfg.nranks;
    struct coll_args a = job_args(&j->op);
    const void **in = calloc(n, sizeof(*in));
    char *want = malloc(j->bytes), *reduced = malloc(j->bytes);
    int rc = in && want && reduced ? 0 : -ENOMEM;

    for (unsigned r = 0; !rc && r < n; r++)
        in[r] = j->mem[r].copy;
    if (!rc && coll_reduces(a.kind) && a.count)
        rc = reduce_all(j, &j->op, in, oracle_in_count(&a, 0, n), reduced);
    for (unsigned r = 0; !rc && r < n; r++)
        if (!j->mem[r].rc && !job_dead(j, r))
            res->wrong += check_rank(j, r, in, reduced, want);
    free(want);
    free(reduced);
    free(in);
    return rc;
}

/* Sets send and receive addresses of rank r, "in place" as in coll.h. */
static void sim_job_data_place(struct job *j, const struct job_op *op, unsigned r)
{
    struct member *m = &j->mem[r];
    size_t own = op->count * dtype_size(op->type) * r;

    m->send = m->in;
    m->recv = m->out;
    if (!op->in_place)
        return;
    switch (op->kind) {
    case COLL_ALLREDUCE:
    case COLL_REDUCE:
    case COLL_BROADCAST:
        m->send = m->out;
        break;
    case COLL_GATHER:
        m->send = r == op->root ? m->out + own : m->in;
        break;
    case COLL_ALLGATHER:
        m->send = m->out + own;
        break;
    case COLL_SCATTER:
        if (r != op->root)
            break;
        /* fall through */
    case COLL_REDUCE_SCATTER:
        m->send = m->out;
        m->recv = m->out + own;
        break;
    default:
        break;
    }
}

int job_fill(struct job *j, const struct job_op *op, unsigned r)
{
    struct member *m = &j->mem[r];
    struct coll_args a = job_args(op);
    size_t count = oracle_in_count(&a, r, j->cfg.nranks);
    bool bits = in_tree_order(j, op) || !coll_reduces(op->kind);

    sim_job_data_place(j, op, r);
    T_ASSERT(!m->copy, "the input of an operation is filled before the last one has ended");
    T_ASSERT(count * dtype_size(op->type) <= j->bytes, "an input is longer than the rank's buffer");
    memset(m->in, 0x5a, j->bytes);
    memset(m->out, 0xa5, j->bytes);
    oracle_fill(m->send, op->type, op->op, count, r, j->cfg.nranks, op->seed, !bits);
    m->send_bytes = count * dtype_size(op->type);
    m->copy = malloc(m->send_bytes + 1);
    if (!m->copy)
        return -ENOMEM;
    memcpy(m->copy, m->send, m->send_bytes);
    return 0;
}
