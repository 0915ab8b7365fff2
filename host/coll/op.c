/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The user's calls, and the check that ranks agree. Every message carries its operation in 32 bits,
 * the tag, which reveals a rank that runs another one. Without progress between two ticks (ranks
 * that disagree on the root wait for each other), a rank sends the full description of its
 * operation to those that it waits for.
 */
#include "base/cacheline.h"
#include "host/coll/gpu/stage.h"
#include "host/coll/transport/conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASK_RANKS 4 /* asked at a tick */

/* ---- agreement ---- */

/* Arguments that the collective does not use are 0: ranks may differ in them. */
static struct op_id id_of(const struct coll_args *a, uint32_t seq)
{
    struct op_id id = {.seq = seq, .kind = a->kind, .algo = a->algo};

    if (a->kind == COLL_BARRIER)
        return id;
    id.type = a->type;
    id.op = coll_reduces(a->kind) ? a->op : 0;
    id.root = coll_rooted(a->kind) ? a->root : 0;
    id.sparse = a->kind == COLL_ALLTOALL ? a->sparse : 0;
    id.count = a->count;
    return id;
}

/* Number 8 bits, collective 4, type 4, reduction 4, root 4, the rest 8. */
_Static_assert(COLL_KINDS <= 16 && DT_COUNT <= 16 && OP_COUNT <= 16, "four bits each");
uint32_t op_tag(const struct op_id *id)
{
    uint64_t rest = (id->count ^ (uint64_t)id->algo << 56 ^ (uint64_t)id->sparse << 44);
    uint32_t root = (id->root ^ id->root >> 4 ^ id->root >> 8) & 15;

    rest *= 0x9e3779b97f4a7c15ULL;
    return (id->seq & 0xff) << 24 | (uint32_t)id->kind << 20 | (uint32_t)id->type << 16 |
           (uint32_t)id->op << 12 | root << 8 | (uint32_t)(rest >> 56);
}

/* Our operation of that number; NULL: not known (any more). */
static const struct op_id *known(const struct comm *c, uint32_t seq, uint32_t mask)
{
    for (uint32_t i = c->exec.opseq; i && c->exec.opseq - i < OPS_KNOWN; i--) {
        const struct op_id *id = &c->known[(i - 1) % OPS_KNOWN];

        if (((id->seq ^ seq) & mask) == 0)
            return id;
    }
    return NULL;
}

static void fail_kind_type_op(struct comm *c, unsigned rank, const struct op_id *mine,
                              unsigned kind, unsigned type, unsigned op)
{
    const char *host = comm_host(c, rank);

    if (kind != mine->kind)
        comm_fail(c, "rank %u (%s) disagrees on the collective: %s, and %s at rank %u", rank, host,
                  coll_name(kind), coll_name(mine->kind), c->cfg.rank);
    else if (type != mine->type && type < DT_COUNT)
        comm_fail(c, "rank %u (%s) disagrees on the type: %s, and %s at rank %u", rank, host,
                  dtype_name(type), dtype_name(mine->type), c->cfg.rank);
    else if (op != mine->op && op < OP_COUNT)
        comm_fail(c, "rank %u (%s) disagrees on the reduction: %s, and %s at rank %u", rank, host,
                  redop_name(op), redop_name(mine->op), c->cfg.rank);
}

void op_disagree(struct comm *c, unsigned rank, uint32_t tag)
{
    const struct op_id *mine = known(c, tag >> 24, 0xff);
    const char *host = comm_host(c, rank);
    uint32_t diff;

    if (!mine || (tag >> 24) != (exec_seq(c) & 0xff)) {
        comm_fail(c, "rank %u (%s) disagrees on which operation runs: number %u, and %u at rank %u",
                  rank, host, tag >> 24, exec_seq(c) & 0xff, c->cfg.rank);
        return;
    }
    fail_kind_type_op(c, rank, mine, tag >> 20 & 15, tag >> 16 & 15, tag >> 12 & 15);
    diff = op_tag(mine) ^ tag;
    if (diff >> 8 & 15)
        comm_fail(c, "rank %u (%s) disagrees on the root: not %u as at rank %u", rank, host,
                  mine->root, c->cfg.rank);
    else if (diff)
        comm_fail(c,
                  "rank %u (%s) disagrees on the size or the algorithm: not %llu elements by %s "
                  "as at rank %u",
                  rank, host, (unsigned long long)mine->count, sched_algo_name(mine->algo),
                  c->cfg.rank);
    else
        comm_fail(c, "rank %u (%s) disagrees on the size: it sent more in %s than rank %u expects",
                  rank, host, coll_name(mine->kind), c->cfg.rank);
}

struct op_msg {
    rte_be32_t magic, group, rank, seq, kind, algo, type, op, root, sparse;
    rte_be64_t count;
} __attribute__((packed));
_Static_assert(sizeof(struct op_msg) <= CTL_MSG_BYTES, "one datagram");

void op_tick(struct comm *c)
{
    struct exec *x = &c->exec;
    const struct op_id *id = x->running ? &x->head->id : NULL;
    bool stuck = id && x->moved == x->moved_at_tick;
    unsigned asked = 0;
    struct op_msg m;

    x->moved_at_tick = x->moved;
    if (stuck || c->failover.state == FAILOVER_ASKING)
        conn_probe(c);
    if (!stuck || c->state != COMM_READY)
        return;
    join_probe(c);
    if (!x->running) /* a probe that could not be posted has ended it */
        return;
    m = (struct op_msg){
        .magic = rte_cpu_to_be_32(OP_MAGIC),
        .group = rte_cpu_to_be_32(c->cfg.group),
        .rank = rte_cpu_to_be_32(c->cfg.rank),
        .seq = rte_cpu_to_be_32(id->seq),
        .kind = rte_cpu_to_be_32(id->kind),
        .algo = rte_cpu_to_be_32(id->algo),
        .type = rte_cpu_to_be_32(id->type),
        .op = rte_cpu_to_be_32(id->op),
        .root = rte_cpu_to_be_32(id->root),
        .sparse = rte_cpu_to_be_32(id->sparse),
        .count = rte_cpu_to_be_64(id->count),
    };
    for (unsigned l = 0; l < x->head->s.n_lanes && asked < ASK_RANKS; l++)
        if (x->head->lane[l].conn && x->head->lane[l].done < x->head->s.lane[l].n)
            asked += ctl_send_rank(c, x->head->s.lane[l].peer, &m, sizeof(m));
}

void op_input(struct comm *c, const void *msg, size_t len)
{
    const struct op_id *mine;
    const char *host;
    struct op_msg m;
    unsigned rank;

    if (len < sizeof(m) || !c->ctl.peer)
        return;
    memcpy(&m, msg, sizeof(m));
    rank = rte_be_to_cpu_32(m.rank);
    mine = known(c, rte_be_to_cpu_32(m.seq), ~0u);
    if (rte_be_to_cpu_32(m.group) != c->cfg.group || rank >= c->cfg.nranks || !mine)
        return;
    host = comm_host(c, rank);
    fail_kind_type_op(c, rank, mine, rte_be_to_cpu_32(m.kind), rte_be_to_cpu_32(m.type),
                      rte_be_to_cpu_32(m.op));
    if (rte_be_to_cpu_32(m.root) != mine->root)
        comm_fail(c, "rank %u (%s) disagrees on the root: %u, and %u at rank %u", rank, host,
                  rte_be_to_cpu_32(m.root), mine->root, c->cfg.rank);
    else if (rte_be_to_cpu_64(m.count) != mine->count)
        comm_fail(c, "rank %u (%s) disagrees on the size: %llu elements, and %llu at rank %u", rank,
                  host, (unsigned long long)rte_be_to_cpu_64(m.count),
                  (unsigned long long)mine->count, c->cfg.rank);
    else if (rte_be_to_cpu_32(m.algo) != mine->algo || rte_be_to_cpu_32(m.sparse) != mine->sparse)
        comm_fail(c, "rank %u (%s) disagrees on the algorithm", rank, host);
}

/* ---- the user's calls ---- */

static int check_args(const struct comm *c, const struct coll_args *a, char *err)
{
    const char *what = NULL;
    int rc = -EINVAL;

    if (c->state == COMM_FAILED) {
        snprintf(err, COMM_TEXT, "%s", c->error);
        return -EIO;
    }
    if (c->state != COMM_READY || c->closing)
        rc = -ENOTCONN, what = "the communicator is not connected";
    else if ((unsigned)a->kind >= COLL_KINDS || (unsigned)a->algo >= ALGO_COUNT)
        what = "no such collective or algorithm";
    else if (!comm_has(c, a->algo))
        rc = -ENOTSUP, what = "this algorithm was not set up for the communicator";
    else if (a->kind != COLL_BARRIER && (unsigned)a->type >= DT_COUNT)
        what = "no such type";
    else if (coll_reduces(a->kind) && (unsigned)a->op >= OP_COUNT)
        what = "no such reduction";
    if (what) {
        snprintf(err, COMM_TEXT, "%s", what);
        return rc;
    }
    if (coll_reduces(a->kind) && !arith_valid(a->op, a->type)) {
        snprintf(err, COMM_TEXT, "no %s of %s", redop_name(a->op), dtype_name(a->type));
        return -EINVAL;
    }
    if (coll_rooted(a->kind) && a->root >= c->cfg.nranks) {
        snprintf(err, COMM_TEXT, "root %u: there are ranks 0 to %u", a->root, c->cfg.nranks - 1);
        return -EINVAL;
    }
    if (a->kind == COLL_ALLTOALL && a->sparse > c->cfg.nranks) {
        snprintf(err, COMM_TEXT, "%u blocks that are not empty: there are %u", a->sparse,
                 c->cfg.nranks);
        return -EINVAL;
    }
    return 0;
}

/* The same rule as in NCCL, see coll.h. */
static bool in_place(const struct comm *c, const struct coll_args *a)
{
    const uint8_t *in = a->send, *out = a->recv;
    size_t own;

    if (!in || a->kind == COLL_BARRIER)
        return false;
    own = c->cfg.rank * a->count * dtype_size(a->type);
    switch (a->kind) {
    case COLL_ALLREDUCE:
    case COLL_REDUCE:
    case COLL_BROADCAST:
        return in == out;
    case COLL_GATHER:
        if (c->cfg.rank != a->root)
            return false;
        /* fall through */
    case COLL_ALLGATHER:
        return in == out + own;
    case COLL_SCATTER:
        if (c->cfg.rank != a->root)
            return false;
        /* fall through */
    case COLL_REDUCE_SCATTER:
        return out == in + own;
    default:
        return false;
    }
}

static int check_buffers(const struct comm *c, struct coll_req *r, char *err)
{
    const uint8_t *in = r->args.send, *out = r->args.recv;
    uint64_t ni = r->s.in_bytes, no = r->s.out_bytes;

    if (ni && no && !r->s.in.in_place && in < out + no && out < in + ni) {
        snprintf(err, COMM_TEXT, "send and receive buffers overlap");
        return -EINVAL;
    }
    r->in = ni ? region_of(c, in, ni) : NULL;
    r->out = no ? region_of(c, out, no) : NULL;
    if ((ni && !r->in) || (no && !r->out)) {
        snprintf(err, COMM_TEXT, "the %s buffer is not registered for the communicator: %llu bytes",
                 ni && !r->in ? "send" : "receive", (unsigned long long)(ni && !r->in ? ni : no));
        return -EFAULT;
    }
    return 0;
}

/* 0: the communicator has a transport for every lane. */
static int lanes_served(struct comm *c, const struct coll_req *r, char *err)
{
    for (unsigned i = 0; i < r->s.n_lanes; i++) {
        const struct lane *l = &r->s.lane[i];

        if (l->kind == LANE_MM ? plane_of_lane(c, l) != NULL
                               : l->kind != LANE_AGG || agg_of_lane(c, l))
            continue;
        snprintf(err, COMM_TEXT, "%s: not set up for this communicator",
                 l->kind == LANE_MM ? "multimem" : "aggregation tree");
        return -ENOTSUP;
    }
    return 0;
}

/* Finds the lanes' transports, and marks the steps that others depend on. */
static int get_lanes(struct comm *c, struct coll_req *r, char *err)
{
    unsigned n = r->s.n_lanes;

    r->lane = cacheline_alloc((n + 1) * sizeof(*r->lane));
    if (c->cfg.device)
        r->given = calloc(n + 1ul, LANE_GPU * sizeof(*r->given));
    if (!r->lane || (c->cfg.device && !r->given)) {
        snprintf(err, COMM_TEXT, "out of memory");
        return -ENOMEM;
    }
    for (unsigned i = 0; i < n; i++) {
        const struct lane *l = &r->s.lane[i];

        r->lane[i].waiters = LANE_NONE;
        r->lanes_left += l->n != 0;
        if (l->kind == LANE_SEND || l->kind == LANE_RECV) {
            r->lane[i].conn = conn_get(c, l->peer, l->chan, err);
            if (!r->lane[i].conn)
                return -ENOMEM;
        }
        for (uint64_t k = 0; k < l->n; k++)
            for (unsigned d = 0; d < lane_step(l, k)->n_deps; d++) {
                const struct dep *dep = &lane_step(l, k)->dep[d];

                lane_step(&r->s.lane[dep->lane], dep->count - 1)->awaited = true;
            }
    }
    return 0;
}

int op_schedule(struct comm *c, struct coll_req *r, char *err)
{
    const struct coll_args *a = &r->args;
    struct sched_in in = {
        .kind = a->kind,
        .algo = a->algo,
        .rank = c->cfg.rank,
        .nranks = c->cfg.nranks,
        .root = r->id.root,
        .count = r->id.count,
        .type = r->id.type,
        .op = r->id.op,
        .in_place = in_place(c, a),
        .mtu = c->mtu,
        .sparse = r->id.sparse,
        .mm_self = a->mm_self,
        .topo = &c->topo.sched,
    };
    int rc = policy_schedule(c, r, &in);

    if (!rc && c->cfg.device && (rc = sched_stage(&r->s, c->gpudirect != GPUDIRECT_STAGED)))
        sched_free(&r->s);
    if (rc == -ENOTSUP && c->cfg.device && COMM_MM_ALGOS >> in.algo & 1)
        snprintf(err, COMM_TEXT, "%s: NVSwitches do not reach GPU memory that is staged",
                 sched_algo_name(in.algo));
    else if (rc == -ENOTSUP && COMM_MM_ALGOS >> in.algo & 1 && c->topo.most > ARITH_MAX_INPUTS)
        snprintf(err, COMM_TEXT, "%s: %u ranks in a GPU node, multimem takes at most %d",
                 sched_algo_name(in.algo), c->topo.most, ARITH_MAX_INPUTS);
    else if (rc == -ENOTSUP)
        snprintf(err, COMM_TEXT, "%s by %s is not possible with these ranks", coll_name(a->kind),
                 sched_algo_name(a->algo));
    else if (rc == -E2BIG)
        snprintf(err, COMM_TEXT, "%zu elements of %u bytes: a buffer has at most %llu bytes",
                 a->count, (unsigned)dtype_size(a->type), SCHED_MAX_BYTES);
    else if (rc)
        snprintf(err, COMM_TEXT, "%s of %zu elements: %s", coll_name(a->kind), a->count,
                 strerror(-rc));
    if (rc)
        memset(&r->s, 0, sizeof(r->s));
    return rc;
}

const struct op_id *op_known(const struct comm *c, uint32_t seq)
{
    return known(c, seq, ~0u);
}

int op_prepare(struct comm *c, struct coll_req *r, char *err)
{
    int rc = workspace_get(c, r, err);

    if (!rc)
        rc = lanes_served(c, r, err);
    free(r->lane);
    free(r->given);
    r->lane = NULL;
    r->given = NULL;
    r->lanes_left = 0;
    return rc ? rc : get_lanes(c, r, err);
}

int coll_start(struct comm *c, const struct coll_args *a, struct coll_req **req, char *err)
{
    struct coll_req *r;
    int rc = check_args(c, a, err);

    if (rc)
        return rc;
    r = calloc(1, sizeof(*r));
    if (!r) {
        snprintf(err, COMM_TEXT, "out of memory");
        return -ENOMEM;
    }
    r->c = c;
    r->args = *a;
    r->id = id_of(a, c->exec.opseq);
    r->tag = op_tag(&r->id);
    rc = op_schedule(c, r, err);
    if (!rc)
        rc = check_buffers(c, r, err);
    if (!rc)
        rc = failover_started(c, r, err);
    if (!rc)
        rc = op_prepare(c, r, err);
    if (!rc && (rc = exec_add(c, r)))
        snprintf(err, COMM_TEXT, "out of memory");
    if (rc) {
        req_free(r);
        return rc;
    }
    c->known[c->exec.opseq % OPS_KNOWN] = r->id;
    c->exec.opseq++;
    *req = r;
    exec_run(c);
    return 0;
}

bool comm_supports(struct comm *c, const struct coll_args *a)
{
    struct coll_req r = {.c = c, .args = *a, .id = id_of(a, 0)};
    char err[COMM_TEXT];
    bool ok;

    if (check_args(c, a, err) || op_schedule(c, &r, err))
        return false;
    ok = lanes_served(c, &r, err) == 0;
    sched_free(&r.s);
    return ok;
}

int coll_connect(struct comm *c, const struct coll_args *a, char *err)
{
    struct coll_req r = {.c = c, .args = *a, .id = id_of(a, 0)};
    int rc = check_args(c, a, err);

    if (!rc)
        rc = op_schedule(c, &r, err);
    for (unsigned i = 0; !rc && i < r.s.n_lanes; i++) {
        const struct lane *l = &r.s.lane[i];

        if ((l->kind == LANE_SEND || l->kind == LANE_RECV) && !conn_get(c, l->peer, l->chan, err))
            rc = -ENOMEM;
    }
    sched_free(&r.s);
    return rc;
}

bool comm_connected(const struct comm *c)
{
    return conn_all_open(c);
}

enum coll_algo comm_runs_by(struct comm *c, const struct coll_args *a)
{
    struct coll_req r = {.c = c, .args = *a, .id = id_of(a, c->exec.opseq)};
    enum coll_algo by = a->algo;
    char err[COMM_TEXT];

    if (!check_args(c, a, err) && !op_schedule(c, &r, err)) {
        by = r.s.in.algo;
        sched_free(&r.s);
    }
    return by;
}

bool coll_as_asked(const struct coll_req *req)
{
    return req->s.in.algo == req->id.algo && !req->cut;
}

int coll_test(struct coll_req *req)
{
    return req->status;
}

void coll_free(struct coll_req *req)
{
    if (req->status)
        req_free(req);
    else
        req->abandoned = true;
}

void req_free(struct coll_req *r)
{
    sched_free(&r->s); /* no effect if it is all zero */
    free(r->lane);
    free(r->given);
    free(r);
}
