/*
 * All-reduce by a ring: reduce-scatter, then all-gather (figures.md F20, F21: 2(N-1)/N of the
 * vector leave every rank).
 *
 * The vector is N chunks; message (t, k) is slice k of the chunk of step t, and the messages of a
 * rank are numbered i = t K + k. reduce-scatter, t = 0..N-2:   send chunk r-t, receive chunk r-t-1
 * to scratch, reduce it with the own input all-gather, t' = 0..N-2:      send chunk r+1-t', receive
 * chunk r-t' at its final place Chunk c is summed as ((x[c] op x[c+1]) op x[c+2]) ..., ranks modulo
 * N, whatever the timing: results are reproducible.
 *
 * Slices keep the link busy: slice k of step t leaves as soon as slice k of step t-1 is reduced,
 * while its neighbours are still on their way. A step then costs max(chunk time, slice time + path
 * latency), so slices are small (an eighth of a chunk), but whole packets, and at most
 * SCHED_SLICE_MAX. Every chunk has equally many slices, the last ones perhaps empty; an empty slice
 * is a message of no bytes, which costs a frame and keeps the numbering plain.
 *
 * The first SCHED_AHEAD receives are in scratch, because they are posted before the operation is
 * known. Where that is more than the reduce-scatter has (chunks of a few packets), the first
 * messages of the all-gather are copied from there; all others are received where they belong.
 *
 * A receive of the all-gather is posted without regard to sends from the same place: its data
 * contains what that send carried, so the send's receiver had taken it long before; RC can repeat
 * it only as a duplicate, which is dropped by its PSN.
 */
#include "host/coll/sched.h"

#define SLICES_WANTED 8

static uint64_t chunk_start(const struct sched *s, uint64_t c)
{
    uint64_t n = s->in.nranks, base = s->in.count / n, more = s->in.count % n;

    return (c * base + (c < more ? c : more)) * s->esize;
}

/* Bytes [off, off + len) of slice k of chunk c. */
static void slice_of(const struct sched *s, uint64_t c, uint64_t k, struct step *st)
{
    uint64_t start = chunk_start(s, c), end = chunk_start(s, c + 1);

    st->off = start + k * s->slice_bytes;
    if (st->off > end)
        st->off = end;
    st->len = end - st->off < s->slice_bytes ? end - st->off : s->slice_bytes;
}

static void make_send(const struct sched *s, uint64_t i, struct step *st)
{
    uint64_t n = s->in.nranks, r = s->in.rank, t = i / s->slices, k = i % s->slices;
    uint64_t before = i - s->slices + 1; /* message (t - 1, k) done, as a count */

    st->op = STEP_SEND;
    st->peer = (r + 1) % n;
    st->buf = t ? BUF_OUT : BUF_IN;
    if (t < n - 1) {
        slice_of(s, (r + n - t) % n, k, st);
    } else {
        slice_of(s, (r + 1 + n - (t - (n - 1))) % n, k, st);
    }
    if (t)
        st->need[before <= s->scratch_steps ? LANE_CPU : LANE_RECV] = before;
}

static void make_recv(const struct sched *s, uint64_t i, struct step *st)
{
    uint64_t n = s->in.nranks, r = s->in.rank, t = i / s->slices, k = i % s->slices;

    st->op = STEP_RECV;
    st->peer = (r + n - 1) % n;
    if (t < n - 1)
        slice_of(s, (r + n - t - 1) % n, k, st);
    else
        slice_of(s, (r + n - (t - (n - 1))) % n, k, st);
    st->buf = i < s->scratch_steps ? BUF_SCRATCH : BUF_OUT;
    st->slot = i;
    if (i < s->scratch_steps && i >= SCHED_SLOTS)
        st->need[LANE_CPU] = i - SCHED_SLOTS + 1;
}

static void make_ring(const struct sched *s, enum lane l, uint64_t i, struct step *st)
{
    if (l == LANE_SEND) {
        make_send(s, i, st);
        return;
    }
    make_recv(s, i, st);
    if (l == LANE_CPU) {
        st->op = i / s->slices < s->in.nranks - 1 ? STEP_REDUCE : STEP_COPY;
        st->last = i / s->slices == s->in.nranks - 2;
        st->need[LANE_CPU] = 0;
        st->need[LANE_RECV] = i + 1;
    }
}

void alg_ring_allreduce(struct sched *s)
{
    uint64_t chunk = chunk_start(s, 1), mtu = s->in.mtu; /* chunk 0 is never shorter than another */
    uint64_t all, ahead = SCHED_AHEAD(s->in.nranks);
    uint64_t slice = (chunk + SLICES_WANTED * mtu - 1) / (SLICES_WANTED * mtu) * mtu;

    s->slice_bytes = slice < SCHED_SLICE_MAX ? slice : SCHED_SLICE_MAX;
    s->slices = (chunk + s->slice_bytes - 1) / s->slice_bytes;
    all = 2 * (s->in.nranks - 1) * s->slices;
    s->n[LANE_SEND] = s->n[LANE_RECV] = all;
    s->scratch_steps = all / 2;
    if (s->scratch_steps < ahead)
        s->scratch_steps = all < ahead ? all : ahead;
    s->n[LANE_CPU] = s->scratch_steps;
    s->make = make_ring;
}
