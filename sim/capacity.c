/* SPDX-License-Identifier: BSD-3-Clause */
/* Frame buffers, threads and memory that a simulation needs. */
#include "sim/capacity.h"
#include "sim/capacity_groups.h"

#include "aggregation/mm_proto.h"
#include "host/bench/host_resources.h"
#include "host/bench/verify/layout.h"
#include "host/coll/comm.h"
#include "sim/world/memory.h"

#define RANKS_A_THREAD 32u

/* Ranks of a job, or all of them. */
struct ranks {
    const struct fabric *f;
    unsigned n, algos;
    const uint16_t *host;
    unsigned peers; /* ranks to which a rank sends at the same time by direct algorithms */
};

/* Number of paths between ranks of a GPU node: each ordered pair has one per plane. */
static unsigned node_ways(const struct ranks *s)
{
    unsigned n = 0;

    for (unsigned r = 0; r < s->n; r++)
        for (unsigned k = 0; k < s->n; k++) {
            uint16_t a = s->host[r], b = s->host[k];
            uint16_t ports = s->f->nodes[s->f->hosts[a]].n_ports;

            if (a != b && ports > 1 && fabric_domain(s->f, a) == fabric_domain(s->f, b))
                n += ports;
        }
    return n;
}

/* Frames of multimem: each rank of a node can have a slice in flight to each other one, in each
 * plane. */
static unsigned multimem_frames(const struct ranks *s)
{
    return s->algos & COMM_MM_ALGOS ? MM_SLICE_MAX / s->f->mtu * node_ways(s) : 0;
}

/* Frames of direct and PXN algorithms: one per path. */
static unsigned direct_frames(const struct ranks *s)
{
    return s->algos & (1u << ALGO_DIRECT | 1u << ALGO_PXN) ? bench_frames(0) + node_ways(s) : 0;
}

/* Frames of direct and PXN algorithms, by which each rank sends to all of its peers at once: per
 * pair the last frame of a message and its ACK. Connecting is limited by a window (link.c) and
 * needs less. */
static unsigned peer_frames(const struct ranks *s)
{
    uint64_t n = bench_frames(s->n) + 2ull * s->n * s->peers;

    return s->algos & (1u << ALGO_DIRECT | 1u << ALGO_PXN)
               ? (unsigned)RTE_MIN(n, (uint64_t)INT32_MAX)
               : 0;
}

static unsigned frames_of(const struct ranks *s)
{
    unsigned most = RTE_MAX(bench_frames(s->n) + multimem_frames(s), direct_frames(s));

    return RTE_MAX(most, peer_frames(s));
}

/* Algorithms that may run. With auto these are all that exist. */
static unsigned may_run(const struct sweep *s)
{
    return (s->algos | (s->algos >> ALGO_AUTO & 1 ? s->exist : 0)) & ~(1u << ALGO_AUTO);
}

static unsigned frames_for(const struct sim *m, unsigned algos)
{
    const struct sweep *s = m->s;

    unsigned peers = s->o->coll == COLL_SENDRECV || coll_rooted(s->o->coll) ? 1 : s->nranks;

    if (s->o->sparse)
        peers = RTE_MIN(peers, s->o->sparse);
    return m->own.frames
               ? (unsigned)m->own.frames
               : frames_of(&(struct ranks){s->fab, s->nranks, algos, s->host_of_rank, peers});
}

unsigned capacity_frames(const struct sim *m)
{
    return frames_for(m, may_run(m->s));
}

unsigned capacity_frames_of_jobs(const struct fabric *f, const struct jobs_plan *p)
{
    uint64_t promised = capacity_group_mbufs(f, p), n = 0;

    for (unsigned i = 0; i < p->n; i++) {
        unsigned r = p->job[i].nranks;

        n += frames_of(&(struct ranks){f, r, p->job[i].algos, p->job[i].host_of_rank, r});
    }
    /* Buffers promised to groups, plus frames in flight. */
    n = promised > n ? promised + n : n;
    return (unsigned)RTE_MIN(n, (uint64_t)INT32_MAX);
}

unsigned capacity_threads(const struct sim *m)
{
    unsigned most = m->own.threads ? (unsigned)m->own.threads
                                   : RTE_MIN(host_resources_cores(), m->s->nranks / RANKS_A_THREAD);

    if (m->trace || m->line || m->own.background_flow)
        return 1;
    return RTE_MAX(RTE_MIN(RTE_MIN(most, m->s->nranks), NET_PARTITIONS), 1u);
}

static bool runs_in(const struct sim *m, int place)
{
    if (m->o.place)
        return (place == IN_PLACE) == (m->o.place == PLACE_IN);
    return place == OUT_OF_PLACE || coll_can_be_in_place(m->o.coll);
}

/* Operations of all rows of an algorithm. The check of a run in place needs one more. */
static unsigned all_ops(const struct sim *m)
{
    uint64_t sizes[PERF_MAX_SIZES];
    unsigned rows = 0, n = options_sizes(&m->o, sizes, PERF_MAX_SIZES);
    uint64_t ops = 0;

    for (int t = 0; t < DT_COUNT; t++)
        for (int op = 0; op < OP_COUNT; op++)
            rows += sweep_wants(m->s, (enum dtype)t, (enum redop)op);
    for (int p = 0; p < PLACES; p++)
        if (runs_in(m, p))
            ops += m->o.warmup + m->o.iters + (p == IN_PLACE && m->o.check);
    return rows * n * (unsigned)ops;
}

/* Bytes that all ranks touch: each receive buffer, and out of place the part of the send buffer
 * that is sent. */
static uint64_t data_bytes(const struct sim *m)
{
    const struct sweep *s = m->s;
    struct row r = sweep_largest(s);
    uint64_t bytes = 0;

    for (unsigned i = 0; i < s->nranks; i++) {
        struct layout l = {.kind = r.coll,
                           .rank = i,
                           .nranks = s->nranks,
                           .root = r.root,
                           .sparse = r.sparse,
                           .count = r.count};

        bytes += options_buffer(&m->o, s->nranks);
        if (runs_in(m, OUT_OF_PLACE))
            bytes += layout_send(&l) * dtype_size(r.type);
    }
    return bytes;
}

int capacity_check(struct sim *m)
{
    struct sweep *s = m->s;
    struct row r = sweep_largest(s);
    struct sim_need_cfg cfg = {
        .coll = {.fab = s->fab,
                 .nranks = s->nranks,
                 .host_of_rank = s->host_of_rank,
                 .trees = s->n_trees,
                 .tree = s->tree,
                 .args = row_args(&r),
                 .algos = may_run(s),
                 .ops = all_ops(m),
                 .window = m->o.window,
                 .lengths = m->own.payload == PAYLOAD_NONE,
                 .dense = s->nranks <= MEMORY_DENSE_RANKS && memory_can_be_dense()},
        .frame_bytes = memory_frames_bytes(m->frames, m->threads, m->own.payload == PAYLOAD_NONE),
        .buffer_bytes = options_buffer(&m->o, s->nranks),
        .data_bytes = data_bytes(m)};
    bool dense = cfg.coll.dense;
    int rc;

    sim_need(&cfg, &m->need);
    rc = sim_need_check(&m->need, s->cause, sizeof(s->cause));
    if (rc && dense) {
        cfg.coll.dense = dense = false;
        sim_need(&cfg, &m->need);
        rc = sim_need_check(&m->need, s->cause, sizeof(s->cause));
    }
    if (rc && s->algos >> ALGO_AUTO & 1) {
        cfg.coll.algos = (s->algos & ~(1u << ALGO_AUTO)) | sweep_chosen(s);
        m->frames = frames_for(m, cfg.coll.algos);
        cfg.frame_bytes =
            memory_frames_bytes(m->frames, m->threads, m->own.payload == PAYLOAD_NONE);
        sim_need(&cfg, &m->need);
        rc = sim_need_check(&m->need, s->cause, sizeof(s->cause));
    }
    memory_lay_out(dense);
    return rc;
}

int capacity_check_jobs(struct sim *m, const struct jobs_plan *p, unsigned frames)
{
    bool lengths = m->own.payload == PAYLOAD_NONE;

    m->need = (struct sim_need){.frames = memory_frames_bytes(frames, 1, lengths)};
    for (unsigned i = 0; i < p->n && !lengths; i++)
        m->need.data += jobs_data_bytes(&p->job[i]);
    return sim_need_check(&m->need, m->s->cause, sizeof(m->s->cause));
}
