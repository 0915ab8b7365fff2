/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All-to-all exchanges. Direct: with all peers at once, which uses every link of a full mesh (F17,
 * F23). Pairwise: with one peer at a time; in step i rank r sends to r + i and receives from r - i,
 * so that no two send to the same rank.
 */
#include "base/assert.h"
#include "collective/alg.h"

static unsigned to_peer(const struct alg *a, unsigned i)
{
    return (a->s->in.rank + i) % a->s->in.nranks;
}

static unsigned from_peer(const struct alg *a, unsigned i)
{
    return (a->s->in.rank + a->s->in.nranks - i) % a->s->in.nranks;
}

/* Pairwise: the next step waits until this step's messages are done, both ways. */
static void step_ends(struct alg *a, unsigned i)
{
    struct dep d[2 * SCHED_MAX_CHANS];
    struct stripes p;
    unsigned n = 0;

    if (a->s->in.algo != ALGO_PAIRWISE)
        return;
    alg_stripes(a, a->s->in.rank, to_peer(a, i), &p);
    for (unsigned c = 0; c < p.n; c++)
        d[n++] = alg_so_far(a, LANE_SEND, to_peer(a, i), c);
    alg_stripes(a, from_peer(a, i), a->s->in.rank, &p);
    for (unsigned c = 0; c < p.n; c++)
        d[n++] = alg_so_far(a, LANE_RECV, from_peer(a, i), c);
    T_ASSERT(n <= 2 * SCHED_MAX_CHANS, "more channels to a peer than there may be");
    a->fence[0] = alg_join(a, d, n);
}

static void send_step(struct alg *a, unsigned i, struct ref src, uint64_t len)
{
    a->n_fence = a->s->in.algo == ALGO_PAIRWISE && i > 1;
    alg_send_all(a, to_peer(a, i), src, len);
    a->n_fence = 0;
}

int alg_alltoall(struct alg *a)
{
    unsigned n = a->s->in.sparse ? a->s->in.sparse : a->s->in.nranks, me = a->s->in.rank;
    uint64_t each = a->s->in_bytes / a->s->in.nranks;

    alg_copy(a, alg_ref(BUF_OUT, me * each), alg_ref(BUF_IN, me * each), each, false);
    for (unsigned i = 1; i < n; i++) {
        send_step(a, i, alg_ref(BUF_IN, to_peer(a, i) * each), each);
        alg_recv_all(a, from_peer(a, i), alg_ref(BUF_OUT, from_peer(a, i) * each), each, false);
        step_ends(a, i);
    }
    return 0;
}

int alg_direct_allgather(struct alg *a)
{
    struct ref in = alg_ref(BUF_IN, 0);
    uint64_t each = a->s->in_bytes;

    if (!a->s->in.in_place)
        alg_copy(a, alg_ref(BUF_OUT, a->s->in.rank * each), in, each, false);
    for (unsigned i = 1; i < a->s->in.nranks; i++) {
        send_step(a, i, in, each);
        alg_recv_all(a, from_peer(a, i), alg_ref(BUF_OUT, from_peer(a, i) * each), each, false);
        step_ends(a, i);
    }
    return 0;
}

/* Reduces the rank's own block (`len` bytes at `own`) in the order in which blocks arrive without
 * delays, from the left neighbour on. `other`: the first summand, then the partial sums. */
static void reduce_step(struct alg *a, unsigned i, struct ref own, struct ref other, uint64_t len)
{
    alg_recv_reduce_all(a, from_peer(a, i), own, other, len, i + 1 == a->s->in.nranks);
    step_ends(a, i);
}

int alg_direct_reduce_scatter(struct alg *a)
{
    struct ref out = alg_ref(BUF_OUT, 0);
    uint64_t each = a->s->out_bytes;

    for (unsigned i = 1; i < a->s->in.nranks; i++) {
        send_step(a, i, alg_ref(BUF_IN, to_peer(a, i) * each), each);
        reduce_step(a, i, out, i > 1 ? out : alg_ref(BUF_IN, a->s->in.rank * each), each);
    }
    return 0;
}

int alg_direct_allreduce(struct alg *a)
{
    unsigned n = a->s->in.nranks;
    uint64_t bytes = a->s->in_bytes, off, len, mine, own;

    sched_part(bytes, a->s->esize, n, a->s->in.rank, &mine, &own);
    for (unsigned i = 1; i < n; i++) {
        sched_part(bytes, a->s->esize, n, to_peer(a, i), &off, &len);
        send_step(a, i, alg_ref(BUF_IN, off), len);
        reduce_step(a, i, alg_ref(BUF_OUT, mine), alg_ref(i > 1 ? BUF_OUT : BUF_IN, mine), own);
    }
    for (unsigned i = 1; i < n; i++) {
        send_step(a, i, alg_ref(BUF_OUT, mine), own);
        sched_part(bytes, a->s->esize, n, from_peer(a, i), &off, &len);
        alg_recv_all(a, from_peer(a, i), alg_ref(BUF_OUT, off), len, true);
    }
    return 0;
}
