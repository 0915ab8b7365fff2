/* SPDX-License-Identifier: BSD-3-Clause */
/* What a schedule may be asked for, at its limits; its buffers; and dependencies of a step. */
#include "collective/sched.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#define DIM(a) (sizeof(a) / sizeof((a)[0]))
#define RANKS  4u

static const struct sched_in usual = {.kind = COLL_ALLREDUCE,
                                      .algo = ALGO_RING,
                                      .nranks = RANKS,
                                      .count = 16,
                                      .type = DT_FP32,
                                      .mtu = 1024};

static int ask(const struct sched_in *in)
{
    struct sched s;
    int rc = sched_init(&s, in);

    if (!rc)
        sched_free(&s);
    return rc;
}

static void every_argument_has_its_limits(void **state)
{
    struct sched_in in;

    (void)state;
#define TRY(what, rc)                                                                              \
    in = usual, in.what;                                                                           \
    assert_int_equal(ask(&in), rc)
    TRY(kind = COLL_KINDS, -EINVAL);
    TRY(kind = (enum coll_kind) - 1, -EINVAL);
    TRY(algo = ALGO_COUNT, -EINVAL);
    TRY(algo = ALGO_SCHEDULE, -ENOTSUP); /* without a file */
    TRY(type = DT_COUNT, -EINVAL);
    TRY(type = (enum dtype)(DT_COUNT - 1), 0);
    TRY(op = OP_COUNT, -EINVAL);
    TRY(rank = RANKS - 1, 0);
    TRY(rank = RANKS, -EINVAL);
    TRY(root = RANKS - 1, 0);
    TRY(root = RANKS, -EINVAL);
    TRY(sparse = RANKS, 0);
    TRY(sparse = RANKS + 1, -EINVAL);
    TRY(mtu = 256, 0);
    TRY(mtu = 4096, 0);
    TRY(mtu = 128, -EINVAL);
    TRY(mtu = 255, -EINVAL);
    TRY(mtu = 257, -EINVAL);
    TRY(mtu = 8192, -EINVAL);
    TRY(mtu = 1025, -EINVAL);
    TRY(nranks = FAB_MAX_MEMBERS + 1, -EINVAL);
    TRY(nranks = FAB_MAX_MEMBERS, 0);
    TRY(nranks = 1, 0);
    TRY(nranks = 0, -EINVAL);
    TRY(algo = ALGO_PAIRWISE, -ENOTSUP);
#undef TRY
}

/* 1 TiB in all, which for collectives of blocks is that of all ranks. None is built: there are no trees. */
static void buffers_have_at_most_a_terabyte(void **state)
{
    static const struct {
        enum coll_kind kind;
        unsigned of; /* parts of the longest buffer */
    } rows[] = {{COLL_ALLREDUCE, 1},
                {COLL_REDUCE, 1},
                {COLL_BROADCAST, 1},
                {COLL_ALLGATHER, 4},
                {COLL_REDUCE_SCATTER, 4}};

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++)
        for (unsigned in_place = 0; in_place < 2; in_place++) {
            struct sched_in in = usual;

            in.kind = rows[i].kind, in.algo = ALGO_SHARP, in.in_place = in_place;
            in.count = SCHED_MAX_BYTES / 4 / rows[i].of + 1;
            assert_int_equal(ask(&in), -E2BIG);
            in.type = DT_INT8;
            in.count = SCHED_MAX_BYTES / rows[i].of + 1;
            assert_int_equal(ask(&in), -E2BIG);
            in.count--;
            if (in_place) /* else own blocks are copied, in many steps */
                assert_int_equal(ask(&in), -ENOTSUP);
        }
}

static void blocks_between_pairs_are_not_in_place(void **state)
{
    static const struct {
        enum coll_kind kind;
        enum coll_algo algo;
        int rc;
    } rows[] = {
        {COLL_ALLTOALL, ALGO_DIRECT, -EINVAL}, {COLL_SENDRECV, ALGO_DIRECT, -EINVAL},
        {COLL_GATHER, ALGO_DIRECT, 0},         {COLL_SCATTER, ALGO_DIRECT, 0},
        {COLL_ALLGATHER, ALGO_RING, 0},        {COLL_REDUCE_SCATTER, ALGO_RING, 0},
    };

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct sched_in in = usual;

        in.kind = rows[i].kind, in.algo = rows[i].algo;
        assert_int_equal(ask(&in), 0);
        in.in_place = true;
        assert_int_equal(ask(&in), rows[i].rc);
    }
}

/* Elements at a rank: R at the root, else at the others; 4 ranks, 16 elements. */
static void buffers_are_as_long_as_nccls(void **state)
{
    static const struct {
        enum coll_kind kind;
        enum coll_algo algo;
        uint64_t in_root, out_root, in, out;
    } rows[] = {
        {COLL_ALLREDUCE, ALGO_RING, 16, 16, 16, 16},
        {COLL_REDUCE, ALGO_RING, 16, 16, 16, 0},
        {COLL_BROADCAST, ALGO_RING, 16, 16, 0, 16},
        {COLL_ALLGATHER, ALGO_RING, 16, 64, 16, 64},
        {COLL_REDUCE_SCATTER, ALGO_RING, 64, 16, 64, 16},
        {COLL_ALLTOALL, ALGO_DIRECT, 64, 64, 64, 64},
        {COLL_GATHER, ALGO_DIRECT, 16, 64, 16, 0},
        {COLL_SCATTER, ALGO_DIRECT, 64, 16, 0, 16},
        {COLL_SENDRECV, ALGO_DIRECT, 16, 16, 16, 16},
        {COLL_BARRIER, ALGO_DIRECT, 0, 0, 0, 0},
    };

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++)
        for (unsigned rank = 0; rank < 2; rank++) {
            struct sched_in in = usual;
            struct sched s;

            in.kind = rows[i].kind, in.algo = rows[i].algo, in.root = 1, in.rank = rank;
            assert_int_equal(sched_init(&s, &in), 0);
            assert_int_equal(s.in_bytes, 4 * (rank ? rows[i].in_root : rows[i].in));
            assert_int_equal(s.out_bytes, 4 * (rank ? rows[i].out_root : rows[i].out));
            assert_int_equal(s.esize, 4);
            sched_free(&s);
            in.count = 0; /* nothing to do, but for a barrier */
            assert_int_equal(sched_init(&s, &in), 0);
            assert_int_equal(s.n_steps > 0, in.kind == COLL_BARRIER);
            sched_free(&s);
        }
}

/* Its input is the result, an average too. */
static void a_rank_alone_copies(void **state)
{
    static const struct {
        enum coll_kind kind;
        enum coll_algo algo;
        bool in_place;
        uint32_t steps;
    } rows[] = {{COLL_ALLREDUCE, ALGO_RING, false, 1},
                {COLL_ALLREDUCE, ALGO_RING, true, 0},
                {COLL_ALLTOALL, ALGO_DIRECT, false, 1},
                {COLL_BARRIER, ALGO_DIRECT, false, 0}};

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct sched_in in = usual;
        struct sched s;

        in.kind = rows[i].kind, in.algo = rows[i].algo, in.in_place = rows[i].in_place;
        in.nranks = 1;
        assert_int_equal(sched_init(&s, &in), 0);
        assert_int_equal(s.n_steps, rows[i].steps);
        if (s.n_steps) {
            const struct step *st = lane_step(&s.lane[0], 0);

            assert_true(st->op == STEP_COPY && st->last && st->len == 64);
            assert_true(st->a.buf == BUF_IN && st->dst.buf == BUF_OUT);
        }
        sched_free(&s);
    }
}

static void a_step_sends_its_block_or_those_of_all(void **state)
{
    static const struct {
        enum coll_kind kind;
        enum coll_algo algo;
        unsigned sparse;
        uint64_t bytes; /* of 1000 elements of 4 bytes */
    } rows[] = {
        {COLL_ALLREDUCE, ALGO_RING, 0, 1000},      {COLL_REDUCE, ALGO_TREE, 0, 1000},
        {COLL_BROADCAST, ALGO_CHAIN, 0, 1000},     {COLL_ALLGATHER, ALGO_RING, 0, 4000},
        {COLL_REDUCE_SCATTER, ALGO_RING, 0, 4000}, {COLL_ALLTOALL, ALGO_PAIRWISE, 0, 4000},
        {COLL_ALLREDUCE, ALGO_DIRECT, 0, 3000},    {COLL_ALLTOALL, ALGO_DIRECT, 0, 12000},
        {COLL_ALLTOALL, ALGO_DIRECT, 3, 8000},     {COLL_ALLTOALL, ALGO_DIRECT, 2, 4000},
        {COLL_ALLTOALL, ALGO_DIRECT, 1, 4000},     {COLL_SENDRECV, ALGO_DIRECT, 0, 4000},
    };

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct sched s = {.in = usual, .esize = 4};

        s.in.kind = rows[i].kind, s.in.algo = rows[i].algo, s.in.sparse = rows[i].sparse;
        s.in.count = 1000;
        assert_int_equal(sched_step_bytes(&s), rows[i].bytes);
    }
}

static void a_step_has_room_for_six_lanes(void **state)
{
    uint64_t done[8] = {0};
    struct step st = {.n_deps = 0};

    (void)state;
    assert_true(step_after(&st, (struct dep){3, 0})); /* none */
    assert_int_equal(st.n_deps, 0);
    for (uint32_t l = 0; l < SCHED_DEPS; l++)
        assert_true(step_after(&st, (struct dep){l, 5}));
    assert_int_equal(st.n_deps, SCHED_DEPS);
    assert_false(step_after(&st, (struct dep){SCHED_DEPS, 1}));
    assert_true(step_after(&st, (struct dep){SCHED_DEPS, 0}));
    assert_true(step_after(&st, (struct dep){2, 4})); /* the later one counts */
    assert_int_equal(st.dep[2].count, 5);
    assert_true(step_after(&st, (struct dep){2, 6}));
    assert_int_equal(st.dep[2].count, 6);
    for (unsigned l = 0; l < SCHED_DEPS; l++) {
        assert_false(sched_ready(&st, done));
        done[l] = l == 2 ? 6 : 5;
    }
    assert_true(sched_ready(&st, done));
    done[0] = 4;
    assert_false(sched_ready(&st, done));
}

/* Lanes are found by their names, however many there are; steps keep their dependencies when room is made. */
static void lanes_are_found_by_name(void **state)
{
    struct sched s = {.in = usual};
    unsigned lane, n = 0;

    (void)state;
    for (unsigned peer = 0; peer < 300; peer++)
        for (unsigned chan = 0; chan < 3; chan++)
            for (unsigned kind = LANE_CPU; kind < LANE_KINDS; kind++) {
                assert_false(sched_has_lane(&s, (enum lane_kind)kind, peer, chan, &lane));
                assert_int_equal(sched_lane(&s, (enum lane_kind)kind, peer, chan), n);
                n++;
            }
    n = 0;
    for (unsigned peer = 0; peer < 300; peer++)
        for (unsigned chan = 0; chan < 3; chan++)
            for (unsigned kind = LANE_CPU; kind < LANE_KINDS; kind++) {
                assert_true(sched_has_lane(&s, (enum lane_kind)kind, peer, chan, &lane));
                assert_int_equal(lane, n);
                assert_int_equal(sched_lane(&s, (enum lane_kind)kind, peer, chan), n);
                n++;
            }
    assert_int_equal(s.n_lanes, n);
    for (uint32_t i = 0; i < 100; i++) {
        struct step st = {.op = STEP_SEND, .len = i};

        for (uint32_t d = 0; d < i % (SCHED_DEPS + 1); d++)
            step_after(&st, (struct dep){d + 1, i});
        assert_int_equal(sched_add(&s, 7, &st).count, i + 1);
    }
    assert_int_equal(s.n_steps, 100);
    for (uint32_t i = 0; i < 100; i++) {
        const struct step *st = lane_step(&s.lane[7], i);

        assert_int_equal(st->len, i);
        assert_int_equal(st->n_deps, i % (SCHED_DEPS + 1));
        for (uint32_t d = 0; d < st->n_deps; d++)
            assert_true(st->dep[d].lane == d + 1 && st->dep[d].count == i);
    }
    sched_free(&s);
}

static void names_are_those_of_the_tools(void **state)
{
    (void)state;
    for (unsigned k = 0; k < COLL_KINDS; k++)
        for (unsigned i = 0; i < k; i++)
            assert_string_not_equal(coll_name(k), coll_name(i));
    assert_string_equal(coll_name(COLL_REDUCE_SCATTER), "reduce_scatter");
    assert_string_equal(coll_name(COLL_KINDS), "?");
    assert_string_equal(sched_algo_name(ALGO_RING), "ring");
    assert_string_equal(sched_algo_name(ALGO_AUTO), "auto");
    assert_string_equal(sched_algo_name(ALGO_PROTOCOL_LAST), "?"); /* an empty seat */
    assert_string_equal(sched_algo_name(ALGO_AUTO + 1), "?");
    assert_false(sched_has(COLL_ALLREDUCE, ALGO_PROTOCOL_LAST));
    assert_true(sched_has(COLL_ALLREDUCE, ALGO_PROTOCOL));
    assert_false(sched_has(COLL_KINDS, ALGO_RING));
    assert_false(sched_has(COLL_ALLREDUCE, ALGO_COUNT));
    assert_false(sched_has(COLL_ALLREDUCE, ALGO_SCHEDULE));
    assert_false(sched_has(COLL_ALLTOALL, ALGO_RING));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_argument_has_its_limits),
        cmocka_unit_test(buffers_have_at_most_a_terabyte),
        cmocka_unit_test(blocks_between_pairs_are_not_in_place),
        cmocka_unit_test(buffers_are_as_long_as_nccls),
        cmocka_unit_test(a_rank_alone_copies),
        cmocka_unit_test(a_step_sends_its_block_or_those_of_all),
        cmocka_unit_test(a_step_has_room_for_six_lanes),
        cmocka_unit_test(lanes_are_found_by_name),
        cmocka_unit_test(names_are_those_of_the_tools),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
