/* Schedules are right: interpreted in memory, without verbs, for any number of ranks and elements.
 */
#include "host/coll/sched.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MAX_RANKS 16
#define FIFO      4096

struct msg {
    uint64_t len;
    uint8_t *data;
};

/* One rank: its memory, how far its lanes are, and the messages that came from the left. */
struct rank {
    struct sched s;
    uint8_t *in, *out, *scratch;
    uint64_t done[LANES], posted;
    uint64_t slot_busy[SCHED_SLOTS];
    struct msg fifo[FIFO];
    uint64_t head, tail, sent_bytes;
};

static struct rank *ranks;

static uint8_t *slot(struct rank *r, uint64_t i)
{
    return r->scratch + i % SCHED_SLOTS * SCHED_SLICE_MAX;
}

static bool ready(struct rank *r, enum lane l, struct step *st)
{
    if (r->done[l] == r->s.n[l])
        return false;
    sched_step(&r->s, l, r->done[l], st);
    return sched_ready(st, r->done);
}

static bool try_send(struct rank *r)
{
    struct step st;
    struct rank *to;
    struct msg *m;

    if (!ready(r, LANE_SEND, &st))
        return false;
    to = &ranks[st.peer];
    assert_true(to->tail - to->head < FIFO);
    m = &to->fifo[to->tail++ % FIFO];
    m->len = st.len;
    m->data = malloc(st.len + 1);
    memcpy(m->data, (st.buf == BUF_IN ? r->in : r->out) + st.off, st.len);
    r->sent_bytes += st.len;
    r->done[LANE_SEND]++;
    return true;
}

static bool try_recv(struct rank *r)
{
    struct step st;
    struct msg *m = &r->fifo[r->head % FIFO];

    if (!ready(r, LANE_RECV, &st) || r->head == r->tail)
        return false;
    assert_int_equal(m->len, st.len); /* both ends cut alike */
    if (st.buf == BUF_SCRATCH) {
        assert_true(st.len <= SCHED_SLICE_MAX);
        assert_int_equal(r->slot_busy[st.slot % SCHED_SLOTS], 0);
        r->slot_busy[st.slot % SCHED_SLOTS] = 1;
        memcpy(slot(r, st.slot), m->data, st.len);
    } else {
        memcpy(r->out + st.off, m->data, st.len);
    }
    free(m->data);
    r->head++;
    r->done[LANE_RECV]++;
    return true;
}

static bool try_cpu(struct rank *r, unsigned nranks, enum redop op)
{
    struct step st;
    size_t count;

    if (!ready(r, LANE_CPU, &st))
        return false;
    count = st.len / r->s.esize;
    if (st.op == STEP_COPY) {
        memcpy(r->out + st.off, st.buf == BUF_SCRATCH ? slot(r, st.slot) : r->in + st.off, st.len);
        if (st.buf == BUF_SCRATCH)
            r->slot_busy[st.slot % SCHED_SLOTS] = 0;
    } else {
        const void *both[2] = {slot(r, st.slot), r->in + st.off};

        assert_int_equal(st.op, STEP_REDUCE);
        arith_scalar(op, r->s.in.type)(r->out + st.off, both, 2, count);
        r->slot_busy[st.slot % SCHED_SLOTS] = 0;
    }
    if (st.last && op == OP_AVG)
        arith_divide(r->out + st.off, r->s.in.type, nranks, count);
    r->done[LANE_CPU]++;
    return true;
}

/* The switch: when all ranks have come to the same message, it gives the sum. */
static bool try_aggregate(unsigned n, enum redop op)
{
    const void *in[MAX_RANKS];
    struct step st = {0}, other;
    uint8_t *sum;

    for (unsigned r = 0; r < n; r++) {
        if (!ready(&ranks[r], LANE_AGG, r ? &other : &st))
            return false;
        assert_true(!r || (other.off == st.off && other.len == st.len));
        in[r] = ranks[r].in + st.off;
    }
    sum = malloc(st.len + 1);
    arith_scalar(op, ranks[0].s.in.type)(sum, in, n, st.len / ranks[0].s.esize);
    for (unsigned r = 0; r < n; r++) {
        memcpy(ranks[r].out + st.off, sum, st.len);
        if (op == OP_AVG)
            arith_divide(ranks[r].out + st.off, ranks[r].s.in.type, n, st.len / ranks[r].s.esize);
        ranks[r].done[LANE_AGG]++;
    }
    free(sum);
    return true;
}

/* Runs ranks in an order that changes from round to round, sends as far ahead as the schedule lets
 * them. */
static void interpret(unsigned n, enum redop op)
{
    bool moved = true;

    for (unsigned round = 0; moved; round++) {
        moved = false;
        for (unsigned i = 0; i < n; i++) {
            struct rank *r = &ranks[(i * 7 + round * 5) % n];

            while (try_send(r))
                moved = true;
            moved |= try_recv(r);
            moved |= try_cpu(r, n, op);
        }
        moved |= try_aggregate(n, op);
    }
    for (unsigned r = 0; r < n; r++)
        for (unsigned l = 0; l < LANES; l++)
            assert_int_equal(ranks[r].done[l], ranks[r].s.n[l]);
}

static void fill(uint8_t *p, uint64_t count, enum dtype t, unsigned rank)
{
    for (uint64_t i = 0; i < count; i++) {
        int v = (int)((i * 31 + rank * 17 + i / 251) % 13) - 4;

        if (t == DT_INT32)
            ((int32_t *)(void *)p)[i] = v * 1000003;
        else if (t == DT_FP32)
            ((float *)(void *)p)[i] = (float)v;
        else if (t == DT_FP64)
            ((double *)(void *)p)[i] = v;
        else
            p[i] = (uint8_t)v;
    }
}

struct row {
    enum coll_algo algo;
    unsigned n;
    uint64_t count;
    enum dtype type;
    enum redop op;
    bool in_place;
    uint32_t mtu;
};

static void set_up(const struct row *w)
{
    ranks = calloc(w->n, sizeof(*ranks));
    for (unsigned r = 0; r < w->n; r++) {
        struct sched_in in = {COLL_ALLREDUCE, w->algo, r,           w->n,
                              w->count,       w->type, w->in_place, w->mtu};
        size_t bytes = w->count * dtype_size(w->type);

        assert_int_equal(sched_init(&ranks[r].s, &in), 0);
        ranks[r].in = calloc(1, bytes + 8);
        ranks[r].out = w->in_place ? ranks[r].in : calloc(1, bytes + 8);
        ranks[r].scratch = malloc((size_t)SCHED_SLOTS * SCHED_SLICE_MAX);
        fill(ranks[r].in, w->count, w->type, r);
    }
}

static void tear_down(const struct row *w)
{
    for (unsigned r = 0; r < w->n; r++) {
        if (!w->in_place)
            free(ranks[r].out);
        free(ranks[r].in);
        free(ranks[r].scratch);
    }
    free(ranks);
}

/* Every rank ends with the plain sum, and (values being small integers) exactly so. */
static void check_row(const struct row *w)
{
    size_t bytes = w->count * dtype_size(w->type);
    uint8_t *want = calloc(1, bytes + 8);
    uint8_t *own[MAX_RANKS];
    const void *in[MAX_RANKS];
    uint64_t sent = 0;

    for (unsigned r = 0; r < w->n; r++) {
        own[r] = calloc(1, bytes + 8);
        fill(own[r], w->count, w->type, r);
        in[r] = own[r];
    }
    arith_scalar(w->op, w->type)(want, in, w->n, w->count);
    if (w->op == OP_AVG)
        arith_divide(want, w->type, w->n, w->count);
    set_up(w);
    interpret(w->n, w->op);
    for (unsigned r = 0; r < w->n; r++) {
        sent += ranks[r].sent_bytes;
        if (memcmp(ranks[r].out, want, bytes))
            fail_msg("rank %u of %u, %lu elements of %s, %s: wrong", r, w->n, w->count,
                     dtype_name(w->type), w->algo == ALGO_RING ? "ring" : "sharp");
    }
    if (w->algo == ALGO_RING)
        assert_int_equal(sent, 2 * (w->n - 1) * bytes);
    tear_down(w);
    for (unsigned r = 0; r < w->n; r++)
        free(own[r]);
    free(want);
}

static const uint64_t counts[] = {0, 1, 2, 7, 8, 15, 16, 17, 127, 1009, 4096, 65536, 99991};

static void any_ranks_and_any_count_give_the_plain_sum(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= MAX_RANKS; n++)
        for (unsigned i = 0; i < sizeof(counts) / sizeof(*counts); i++)
            for (unsigned k = 0; k < 4; k++) {
                struct row w = {
                    k & 1 ? ALGO_SHARP : ALGO_RING, n, counts[i], DT_INT32, OP_SUM, k & 2, 4096};

                check_row(&w);
            }
}

static void types_operations_and_mtus(void **state)
{
    static const uint32_t mtus[] = {256, 512, 1024, 2048, 4096};

    (void)state;
    for (unsigned m = 0; m < 5; m++)
        for (enum redop op = 0; op < OP_COUNT; op++)
            for (unsigned k = 0; k < 4; k++) {
                struct row w = {k & 1 ? ALGO_SHARP : ALGO_RING,
                                5,
                                30011,
                                op == OP_AVG ? DT_FP64 : DT_FP32,
                                op,
                                k & 2,
                                mtus[m]};

                check_row(&w);
            }
}

static void chunks_of_more_slices_than_scratch_slots(void **state)
{
    struct row w = {ALGO_RING, 3, 3 * 70 * SCHED_SLICE_MAX + 5, DT_INT8, OP_SUM, true, 4096};

    (void)state;
    check_row(&w);
    w.n = 2, w.in_place = false, w.count = 2 * 67 * SCHED_SLICE_MAX - 1;
    check_row(&w);
}

/* figures.md F21: 2(N-1)/N of the vector leave every rank. */
static void ring_sends_what_theory_says(void **state)
{
    (void)state;
    for (unsigned n = 2; n <= MAX_RANKS; n++) {
        struct row w = {ALGO_RING, n, 5040ULL * 16 * n, DT_FP32, OP_SUM, false, 4096};
        uint64_t bytes = w.count * 4;

        set_up(&w);
        interpret(n, w.op);
        for (unsigned r = 0; r < n; r++)
            assert_int_equal(ranks[r].sent_bytes, 2 * (n - 1) * bytes / n);
        tear_down(&w);
    }
}

/* Every large enough chunk is at least two slices, and slices are whole packets. */
static void slices_keep_the_pipeline_full(void **state)
{
    (void)state;
    for (uint64_t chunk = 8192; chunk <= 1ULL << 30; chunk *= 2) {
        struct sched_in in = {COLL_ALLREDUCE, ALGO_RING, 0, 8, chunk * 8 / 4, DT_FP32, false, 4096};
        struct sched s;

        assert_int_equal(sched_init(&s, &in), 0);
        assert_true(s.slices >= 2);
        assert_true(chunk < 32768 || s.slices >= 8);
        assert_int_equal(s.slice_bytes % 4096, 0);
        assert_true(s.slice_bytes <= SCHED_SLICE_MAX);
    }
}

/* Receives that are posted ahead fit any operation; no copy once chunks are as many packets as
 * slices are wanted. */
static void first_receives_are_in_scratch(void **state)
{
    (void)state;
    for (unsigned n = 2; n <= MAX_RANKS; n++)
        for (unsigned i = 1; i < sizeof(counts) / sizeof(*counts); i++) {
            struct sched_in in = {COLL_ALLREDUCE, ALGO_RING, 0, n, counts[i], DT_FP32, false, 4096};
            struct sched s;
            struct step st;

            assert_int_equal(sched_init(&s, &in), 0);
            for (uint64_t k = 0; k < s.n[LANE_RECV] && k < SCHED_AHEAD(n); k++) {
                sched_step(&s, LANE_RECV, k, &st);
                assert_int_equal(st.buf, BUF_SCRATCH);
            }
            if (s.slices == 8)
                assert_int_equal(s.n[LANE_CPU], (n - 1) * s.slices);
        }
}

static void nonsense_is_refused(void **state)
{
    struct sched_in in = {COLL_ALLREDUCE, ALGO_RING, 0, 4, 16, DT_FP32, false, 4096};
    struct sched s;

    (void)state;
    in.rank = 4;
    assert_int_equal(sched_init(&s, &in), -22);
    in.rank = 0, in.mtu = 1500;
    assert_int_equal(sched_init(&s, &in), -22);
    in.mtu = 4096, in.count = ~0ULL;
    assert_int_equal(sched_init(&s, &in), -7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_ranks_and_any_count_give_the_plain_sum),
        cmocka_unit_test(types_operations_and_mtus),
        cmocka_unit_test(chunks_of_more_slices_than_scratch_slots),
        cmocka_unit_test(ring_sends_what_theory_says),
        cmocka_unit_test(slices_keep_the_pipeline_full),
        cmocka_unit_test(first_receives_are_in_scratch),
        cmocka_unit_test(nonsense_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
