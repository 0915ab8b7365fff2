/* SPDX-License-Identifier: BSD-3-Clause */
/* The user's calls: from arguments to an operation that can run. */
#include "base/cacheline.h"
#include "collective/stage.h"
#include "host/coll/transport/conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    if (coll_protocol(a->algo) && a->kind == COLL_ALLREDUCE &&
        !coll_protocol_does(coll_protocol(a->algo), a->type, a->op)) {
        snprintf(err, COMM_TEXT, "%s does not do %s of %s", coll_protocol(a->algo)->name,
                 redop_name(a->op), dtype_name(a->type));
        return -ENOTSUP;
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
    bool input;

    if (ni && no && !r->s.in.in_place && in < out + no && out < in + ni) {
        snprintf(err, COMM_TEXT, "send and receive buffers overlap");
        return -EINVAL;
    }
    /* In place the root of a broadcast has an output that nobody writes. */
    input = r->s.in.in_place && r->args.kind == COLL_BROADCAST && c->cfg.rank == r->args.root;
    r->in = ni ? region_of(c, in, ni, input || !r->s.in.in_place) : NULL;
    r->out = no ? region_of(c, out, no, input) : NULL;
    if ((ni && !r->in) || (no && !r->out)) {
        snprintf(err, COMM_TEXT, "the %s buffer is not registered for the communicator: %llu bytes",
                 ni && !r->in ? "send" : "receive", (unsigned long long)(ni && !r->in ? ni : no));
        return -EFAULT;
    }
    return 0;
}

static bool is_served(struct comm *c, const struct lane *l)
{
    return l->kind == LANE_MM         ? plane_of_lane(c, l) != NULL
           : l->kind == LANE_AGG      ? agg_of_lane(c, l) != NULL
           : l->kind == LANE_PROTOCOL ? protocol_of_lane(c, l) != NULL
                                      : true;
}

/* 0: the communicator has a transport for every lane. */
static int lanes_served(struct comm *c, const struct coll_req *r, char *err)
{
    for (unsigned i = 0; i < r->s.n_lanes; i++) {
        const struct lane *l = &r->s.lane[i];

        if (is_served(c, l))
            continue;
        snprintf(err, COMM_TEXT, "%s: not set up for this communicator",
                 l->kind == LANE_MM    ? "multimem"
                 : l->kind == LANE_AGG ? "aggregation tree"
                                       : "protocol");
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
        .file = a->file,
    };
    int rc;

    agg_use_trees(c, failover_trees(c, r->id.seq));
    rc = policy_schedule(c, r, &in);

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
    r->id = op_id_of(a, c->exec.opseq);
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
    struct coll_req r = {.c = c, .args = *a, .id = op_id_of(a, 0)};
    char err[COMM_TEXT];
    bool ok;

    if (check_args(c, a, err) || op_schedule(c, &r, err))
        return false;
    ok = lanes_served(c, &r, err) == 0;
    sched_free(&r.s);
    return ok;
}

/* Gives the request to exec_run(), which binds its buffers at the planes. */
static int connect_planes(struct comm *c, const struct coll_req *r, char *err)
{
    struct coll_req *copy = malloc(sizeof(*copy));
    int rc = -ENOMEM;

    if (!copy)
        snprintf(err, COMM_TEXT, "out of memory");
    else
        *copy = *r;
    if (copy)
        rc = check_buffers(c, copy, err);
    if (rc) {
        free(copy);
        return rc;
    }
    if (c->exec.binding)
        req_free(c->exec.binding);
    c->exec.binding = copy;
    return 0;
}

int coll_connect(struct comm *c, const struct coll_args *a, char *err)
{
    struct coll_req r = {.c = c, .args = *a, .id = op_id_of(a, 0)};
    int rc = check_args(c, a, err);

    if (!rc)
        rc = op_schedule(c, &r, err);
    for (unsigned i = 0; !rc && i < r.s.n_lanes; i++) {
        const struct lane *l = &r.s.lane[i];

        if ((l->kind == LANE_SEND || l->kind == LANE_RECV) && !conn_get(c, l->peer, l->chan, err))
            rc = -ENOMEM;
    }
    if (!rc && COMM_MM_ALGOS >> r.s.in.algo & 1 && (a->send || a->recv)) {
        rc = connect_planes(c, &r, err);
        if (!rc)
            return 0;
    }
    sched_free(&r.s);
    return rc;
}

bool comm_connected(const struct comm *c)
{
    return conn_all_open(c) && !c->exec.binding;
}

enum coll_algo comm_runs_by(struct comm *c, const struct coll_args *a)
{
    struct coll_req r = {.c = c, .args = *a, .id = op_id_of(a, c->exec.opseq)};
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
