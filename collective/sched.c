/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/sched.h"

#include "base/assert.h"
#include "collective/alg.h"
#include "collective/file/sched_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- building ---- */

/* A hash that also spreads peers with a regular distance, which have lanes of the same kinds. */
static unsigned bucket_of(enum lane_kind kind, unsigned peer, unsigned chan)
{
    return (peer * 97 + chan * 5 + kind) % SCHED_BUCKETS;
}

bool sched_has_lane(const struct sched *s, enum lane_kind kind, unsigned peer, unsigned chan,
                    unsigned *lane)
{
    const struct lane *l;

    for (uint32_t i = s->bucket[bucket_of(kind, peer, chan)]; i; i = l->next) {
        l = &s->lane[i - 1];
        *lane = i - 1;
        if (l->kind == kind && l->peer == peer && l->chan == chan)
            return true;
    }
    return false;
}

unsigned sched_lane(struct sched *s, enum lane_kind kind, unsigned peer, unsigned chan)
{
    uint32_t *head = &s->bucket[bucket_of(kind, peer, chan)];
    struct lane *l;
    unsigned lane;

    if (sched_has_lane(s, kind, peer, chan, &lane))
        return lane;
    if (s->n_lanes == SCHED_MAX_LANES) {
        s->rc = -E2BIG;
        return 0;
    }
    if (s->n_lanes == s->room) {
        unsigned room = s->room ? 2 * s->room : 16;

        l = realloc(s->lane, room * sizeof(*l));
        if (!l) {
            s->rc = -ENOMEM;
            return 0;
        }
        s->lane = l;
        s->room = room;
    }
    s->lane[s->n_lanes] = (struct lane){.kind = kind, .peer = peer, .chan = chan, .next = *head};
    *head = ++s->n_lanes;
    return s->n_lanes - 1;
}

/* Room for `room` steps with `deps` dependencies each. */
static int lane_fit(struct lane *l, uint32_t room, uint32_t deps)
{
    struct lane to = *l;

    T_ASSERT(room >= l->n && deps >= l->deps, "a lane shrinks below its steps");
    to.deps = deps;
    to.room = room;
    to.steps = realloc(l->steps, room * lane_stride(&to));
    if (!to.steps)
        return -ENOMEM;
    /* Move the last step first, as its new place overlaps no step that is still to be moved. */
    l->steps = to.steps;
    for (uint32_t i = deps > l->deps ? l->n : 0; i--;)
        memmove(lane_step(&to, i), lane_step(l, i), lane_stride(l));
    *l = to;
    return 0;
}

struct dep sched_add(struct sched *s, unsigned lane, const struct step *st)
{
    struct lane *l = &s->lane[lane];
    int rc = 0;

    if (s->rc)
        return (struct dep){0};
    T_ASSERT(lane < s->n_lanes, "a step on a lane that its schedule does not have");
    T_ASSERT(st->n_deps <= SCHED_DEPS, "a step with more dependencies than it has room for");
    if (l->n == l->room || st->n_deps > l->deps)
        rc = lane_fit(l, l->n < l->room ? l->room : 2 * l->room + 8,
                      st->n_deps > l->deps ? st->n_deps : l->deps);
    if (s->n_steps >= SCHED_MAX_STEPS)
        rc = -E2BIG;
    if (rc) {
        s->rc = rc;
        return (struct dep){0};
    }
    s->n_steps++;
    memcpy(lane_step(l, l->n++), st, offsetof(struct step, dep) + st->n_deps * sizeof(*st->dep));
    return (struct dep){.lane = lane, .count = l->n};
}

/* Frees the memory that lanes have allocated by doubling and do not use. */
static void trim(struct sched *s)
{
    for (unsigned i = 0; i < s->n_lanes; i++)
        if (s->lane[i].n)
            lane_fit(&s->lane[i], s->lane[i].n, s->lane[i].deps);
}

bool step_after(struct step *st, struct dep d)
{
    T_ASSERT_HOT(st->n_deps <= SCHED_DEPS, "a step with more dependencies than it has room for");
    if (!d.count)
        return true;
    for (unsigned i = 0; i < st->n_deps; i++)
        if (st->dep[i].lane == d.lane) {
            if (st->dep[i].count < d.count)
                st->dep[i].count = d.count;
            return true;
        }
    if (st->n_deps == SCHED_DEPS)
        return false;
    st->dep[st->n_deps++] = d;
    return true;
}

struct ref slot_of(struct dep d)
{
    T_ASSERT_HOT(d.count, "the slot of no step");
    return (struct ref){.buf = BUF_SLOT, .lane = d.lane, .off = d.count - 1};
}

void sched_part(uint64_t total, unsigned esize, uint64_t n, uint64_t k, uint64_t *off,
                uint64_t *len)
{
    uint64_t count = total / esize, base = count / n, more = count % n;

    T_ASSERT_HOT(k < n, "a part beyond the last one");
    *off = (k * base + (k < more ? k : more)) * esize;
    *len = (base + (k < more)) * esize;
}

static uint64_t share_end(uint64_t count, uint64_t upto, uint64_t sum)
{
    return (uint64_t)((unsigned __int128)count * upto / sum);
}

void sched_share(uint64_t total, unsigned esize, const uint64_t *weight, unsigned n, unsigned k,
                 uint64_t *off, uint64_t *len)
{
    uint64_t sum = 0, before = 0, start;

    T_ASSERT_HOT(k < n, "a share beyond the last one");
    for (unsigned i = 0; i < n; i++) {
        if (i < k)
            before += weight[i];
        sum += weight[i];
    }
    if (!sum) {
        sched_part(total, esize, n, k, off, len);
        return;
    }
    start = share_end(total / esize, before, sum);
    *off = start * esize;
    *len = (share_end(total / esize, before + weight[k], sum) - start) * esize;
}

bool sched_ready(const struct step *st, const uint64_t *done)
{
    for (unsigned i = 0; i < st->n_deps; i++)
        if (done[st->dep[i].lane] < st->dep[i].count)
            return false;
    return true;
}

/* ---- collectives and algorithms ---- */

static const alg_fn algorithms[COLL_KINDS][ALGO_COUNT] = {
    [COLL_ALLREDUCE] = {[ALGO_RING] = alg_ring_allreduce,
                        [ALGO_SHARP] = alg_sharp_allreduce,
                        [ALGO_TREE] = alg_tree_allreduce,
                        [ALGO_HALVING] = alg_halving_allreduce,
                        [ALGO_DIRECT] = alg_direct_allreduce,
                        [ALGO_NVLS] = alg_nvls_allreduce,
                        [ALGO_HIER] = alg_hier_allreduce,
                        [ALGO_HIER_SHARP] = alg_hier_allreduce,
                        [ALGO_NVLS_SHARP] = alg_nvls_sharp_allreduce,
                        [ALGO_PROTOCOL... ALGO_PROTOCOL_LAST] = alg_protocol_allreduce,
                        [ALGO_RINGS] = alg_rings_allreduce},
    [COLL_REDUCE] = {[ALGO_RING] = alg_chain_reduce,
                     [ALGO_CHAIN] = alg_chain_reduce,
                     [ALGO_TREE] = alg_tree_reduce,
                     [ALGO_SHARP] = alg_sharp_reduce},
    [COLL_BROADCAST] = {[ALGO_RING] = alg_chain_broadcast,
                        [ALGO_CHAIN] = alg_chain_broadcast,
                        [ALGO_TREE] = alg_tree_broadcast,
                        [ALGO_SHARP] = alg_sharp_broadcast,
                        [ALGO_HIER] = alg_hier_broadcast,
                        [ALGO_HIER_SHARP] = alg_hier_broadcast},
    [COLL_ALLGATHER] = {[ALGO_RING] = alg_ring_allgather,
                        [ALGO_HALVING] = alg_halving_allgather,
                        [ALGO_PAIRWISE] = alg_direct_allgather,
                        [ALGO_DIRECT] = alg_direct_allgather,
                        [ALGO_SHARP] = alg_sharp_allgather,
                        [ALGO_NVLS] = alg_nvls_allgather,
                        [ALGO_HIER] = alg_hier_allgather,
                        [ALGO_HIER_SHARP] = alg_hier_sharp_allgather,
                        [ALGO_NVLS_SHARP] = alg_hier_sharp_allgather,
                        [ALGO_RINGS] = alg_rings_allgather},
    [COLL_REDUCE_SCATTER] = {[ALGO_RING] = alg_ring_reduce_scatter,
                             [ALGO_HALVING] = alg_halving_reduce_scatter,
                             [ALGO_PAIRWISE] = alg_direct_reduce_scatter,
                             [ALGO_DIRECT] = alg_direct_reduce_scatter,
                             [ALGO_SHARP] = alg_sharp_reduce_scatter,
                             [ALGO_NVLS] = alg_nvls_reduce_scatter,
                             [ALGO_HIER] = alg_hier_reduce_scatter,
                             [ALGO_HIER_SHARP] = alg_hier_reduce_scatter,
                             [ALGO_RINGS] = alg_rings_reduce_scatter},
    [COLL_ALLTOALL] = {[ALGO_PAIRWISE] = alg_alltoall,
                       [ALGO_DIRECT] = alg_alltoall,
                       [ALGO_PXN] = alg_pxn_alltoall},
    [COLL_GATHER] = {[ALGO_DIRECT] = alg_gather},
    [COLL_SCATTER] = {[ALGO_DIRECT] = alg_scatter},
    [COLL_SENDRECV] = {[ALGO_DIRECT] = alg_sendrecv},
    [COLL_BARRIER] = {[ALGO_HALVING] = alg_barrier,
                      [ALGO_DIRECT] = alg_barrier,
                      [ALGO_SHARP] = alg_sharp_barrier},
};

const char *coll_name(unsigned k)
{
    static const char *const name[COLL_KINDS] = {
        [COLL_ALLREDUCE] = "all_reduce",
        [COLL_REDUCE] = "reduce",
        [COLL_BROADCAST] = "broadcast",
        [COLL_ALLGATHER] = "all_gather",
        [COLL_REDUCE_SCATTER] = "reduce_scatter",
        [COLL_ALLTOALL] = "alltoall",
        [COLL_GATHER] = "gather",
        [COLL_SCATTER] = "scatter",
        [COLL_SENDRECV] = "sendrecv",
        [COLL_BARRIER] = "barrier",
    };

    return k < COLL_KINDS ? name[k] : "?";
}

const char *sched_algo_name(enum coll_algo a)
{
    static const char *const name[ALGO_COUNT + 1] = {
        [ALGO_RING] = "ring",
        [ALGO_SHARP] = "sharp",
        [ALGO_TREE] = "tree",
        [ALGO_CHAIN] = "chain",
        [ALGO_HALVING] = "halving",
        [ALGO_PAIRWISE] = "pairwise",
        [ALGO_DIRECT] = "direct",
        [ALGO_NVLS] = "nvls",
        [ALGO_HIER] = "hier",
        [ALGO_HIER_SHARP] = "hier_sharp",
        [ALGO_NVLS_SHARP] = "nvls_sharp",
        [ALGO_RINGS] = "rings",
        [ALGO_PXN] = "pxn",
        [ALGO_SCHEDULE] = "schedule",
        [ALGO_AUTO] = "auto",
    };

    const struct trib_protocol *p = coll_protocol(a);

    return p ? p->name : (unsigned)a <= ALGO_AUTO && name[a] ? name[a] : "?";
}

bool sched_has(enum coll_kind kind, enum coll_algo a)
{
    bool empty = coll_is_protocol(a) && !coll_protocol(a);

    return kind < COLL_KINDS && a < ALGO_COUNT && algorithms[kind][a] && !empty;
}

/* Bytes of the caller's buffers on this rank; count as defined in kinds.h. */
static void buffers(struct sched *s)
{
    uint64_t one = s->in.count * s->esize, all = one * s->in.nranks;
    bool root = s->in.rank == s->in.root;

    s->in_bytes = s->out_bytes = one;
    switch (s->in.kind) {
    case COLL_REDUCE:
        s->out_bytes = root ? one : 0;
        break;
    case COLL_BROADCAST:
        s->in_bytes = root ? one : 0;
        break;
    case COLL_ALLGATHER:
        s->out_bytes = all;
        break;
    case COLL_REDUCE_SCATTER:
        s->in_bytes = all;
        break;
    case COLL_ALLTOALL:
        s->in_bytes = s->out_bytes = all;
        break;
    case COLL_GATHER:
        s->out_bytes = root ? all : 0;
        break;
    case COLL_SCATTER:
        s->in_bytes = root ? all : 0;
        break;
    case COLL_BARRIER:
        s->in_bytes = s->out_bytes = 0;
        break;
    default:
        break;
    }
}

uint64_t sched_step_bytes(const struct sched *s)
{
    uint64_t block = s->in.count * s->esize;
    unsigned peers = (s->in.sparse ? s->in.sparse : s->in.nranks) - 1;

    if (s->in.kind == COLL_ALLREDUCE || s->in.kind == COLL_REDUCE || s->in.kind == COLL_BROADCAST)
        block /= s->in.nranks;
    return s->in.algo == ALGO_DIRECT && s->in.kind != COLL_SENDRECV && peers ? block * peers
                                                                             : block;
}

/* Whether the arguments are those for which the file has a schedule. */
static bool is_of_file(const struct sched_in *in)
{
    const struct sched_file *f = in->file;

    return f && f->kind == in->kind && f->nranks == in->nranks && f->place[in->in_place] &&
           (!coll_rooted(f->kind) || f->root == in->root);
}

static int in_check(const struct sched_in *in)
{
    bool vector = in->kind == COLL_ALLREDUCE || in->kind == COLL_REDUCE ||
                  in->kind == COLL_BROADCAST || in->kind == COLL_SENDRECV;

    if ((unsigned)in->kind >= COLL_KINDS || (unsigned)in->algo >= ALGO_COUNT ||
        (unsigned)in->type >= DT_COUNT || (unsigned)in->op >= OP_COUNT || in->rank >= in->nranks ||
        in->nranks > FAB_MAX_MEMBERS || in->root >= in->nranks || in->sparse > in->nranks ||
        in->mtu < 256 || in->mtu > 4096 || (in->mtu & (in->mtu - 1)))
        return -EINVAL;
    if (in->in_place && (in->kind == COLL_ALLTOALL || in->kind == COLL_SENDRECV))
        return -EINVAL;
    if (in->algo == ALGO_SCHEDULE ? !is_of_file(in) : !sched_has(in->kind, in->algo))
        return -ENOTSUP;
    if (in->kind != COLL_BARRIER &&
        in->count > SCHED_MAX_BYTES / (vector ? 1 : in->nranks) / dtype_size(in->type))
        return -E2BIG;
    return 0;
}

/* A single rank: copies its input, which is the result. */
static void copy_own(struct alg *a)
{
    alg_copy(a, alg_ref(BUF_OUT, 0), alg_ref(BUF_IN, 0), a->s->in_bytes, true);
}

int sched_init(struct sched *s, const struct sched_in *in)
{
    struct alg a;
    int rc = in_check(in);

    memset(s, 0, sizeof(*s));
    if (rc)
        return rc;
    s->in = *in;
    s->esize = dtype_size(in->type);
    buffers(s);
    if (!in->count && in->kind != COLL_BARRIER)
        return 0;
    rc = alg_begin(&a, s);
    if (!rc && in->nranks > 1)
        rc = (in->algo == ALGO_SCHEDULE ? alg_sched_file : algorithms[in->kind][in->algo])(&a);
    else if (!rc && !in->in_place && in->kind != COLL_BARRIER)
        copy_own(&a);
    alg_end(&a);
    rc = rc ? rc : s->rc;
    if (rc)
        sched_free(s);
    else
        trim(s);
    return rc;
}

void sched_free(struct sched *s)
{
    for (unsigned l = 0; l < s->n_lanes; l++)
        free(s->lane[l].steps);
    free(s->lane);
    s->lane = NULL;
    s->n_lanes = s->room = 0;
}
