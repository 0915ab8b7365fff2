/* SPDX-License-Identifier: BSD-3-Clause */
/* Schedules are right: interpreted in memory, without verbs, for any number of ranks and elements,
 * against a plain reference. */
#include "tests/collective/sched_row.h"

static const uint64_t counts[] = {0, 1, 2, 17, 1009, 20011};
static const unsigned ranks[] = {1, 2, 3, 5, 7, 8, 9, 13, 16};
static const struct shape shapes[] = {{.trees = 1},
                                      {.domain = 16, .planes = 1, .trees = 2},
                                      {.domain = 16, .planes = 4, .trees = 1},
                                      {.domain = 4, .planes = 4, .trees = 3},
                                      {.domain = 2, .planes = 1, .trees = 1, .deal = true}};

static unsigned all_shapes(struct row w)
{
    unsigned done = 0;

    for (unsigned s = 0; s < sizeof(shapes) / sizeof(*shapes); s++)
        for (unsigned k = 0; k < sizeof(ranks) / sizeof(*ranks); k++)
            for (unsigned c = 0; c < sizeof(counts) / sizeof(*counts); c++) {
                w.shape = shapes[s], w.n = ranks[k];
                w.count = w.kind == COLL_BARRIER ? 0 : counts[c];
                w.root = (c + k) % w.n;
                w.sparse = w.kind == COLL_ALLTOALL && c % 2 ? 1 + (c + k) % w.n : 0;
                w.mm_self = c % 2;
                done += !run_row(&w, s * 1000 + k * 100 + c, &box);
            }
    return done;
}

/* Every collective by every algorithm: an existing schedule gives the plain result. */
static void every_algorithm_gives_the_plain_result(void **state)
{
    (void)state;
    for (enum coll_kind k = 0; k < COLL_KINDS; k++)
        for (enum coll_algo a = 0; a < ALGO_SCHEDULE; a++)
            for (unsigned place = 0; place < 2; place++) {
                struct row w = {
                    .kind = k, .algo = a, .type = DT_INT32, .in_place = place, .mtu = 256};
                struct sched_in in = {.kind = k,
                                      .algo = a,
                                      .nranks = 1,
                                      .type = DT_INT32,
                                      .mtu = 256,
                                      .in_place = place};
                struct sched s;
                int rc = sched_init(&s, &in);

                if (rc)
                    continue;
                sched_free(&s);
                if (!coll_is_protocol(a))
                    assert_true(all_shapes(w) > 0);
            }
}

static void types_operations_and_mtus(void **state)
{
    static const enum coll_algo algo[] = {ALGO_RING,       ALGO_SHARP, ALGO_TREE, ALGO_HALVING,
                                          ALGO_DIRECT,     ALGO_NVLS,  ALGO_HIER, ALGO_HIER_SHARP,
                                          ALGO_NVLS_SHARP, ALGO_RINGS};

    (void)state;
    for (unsigned k = 0; k < sizeof(algo) / sizeof(*algo); k++)
        for (enum redop op = 0; op <= OP_AVG; op++)
            for (unsigned m = 0; m < 5; m++) {
                struct row w = {
                    .kind = COLL_ALLREDUCE,
                    .algo = algo[k],
                    .n = 6,
                    .count = 30011,
                    .type = op == OP_AVG ? DT_FP64
                            : op % 2     ? DT_INT32
                                         : DT_FP32,
                    .op = op,
                    .in_place = m % 2,
                    .mm_self = m / 2 % 2,
                    .mtu = 256u << m,
                    .shape = {.domain = algo[k] == ALGO_NVLS ? 6 : 3, .planes = 4, .trees = 2}};

                assert_int_equal(run_row(&w, k + 100 * m, &box), 0);
            }
}

/* Many more messages than slots, of the longest. */
static void long_vectors(void **state)
{
    static const enum coll_kind kind[] = {COLL_ALLREDUCE, COLL_REDUCE, COLL_BROADCAST,
                                          COLL_REDUCE_SCATTER, COLL_ALLGATHER};

    (void)state;
    for (unsigned k = 0; k < sizeof(kind) / sizeof(*kind); k++)
        for (enum coll_algo a = 0; a < ALGO_SCHEDULE; a++) {
            struct row w = {.kind = kind[k],
                            .algo = a,
                            .n = 4,
                            .root = 1,
                            .count = 70 * SCHED_SLICE_MAX + 5,
                            .type = DT_INT8,
                            .in_place = k % 2,
                            .mtu = 4096,
                            .shape = {.domain = a == ALGO_NVLS ? 4 : 2, .planes = 4, .trees = 1}};
            struct sched_topo t = topo_of(&w);
            struct sched_in in = in_of(&w, &t, 0);
            struct sched s;
            int rc = sched_init(&s, &in);

            if (rc)
                continue;
            sched_free(&s);
            if (!coll_is_protocol(a))
                assert_int_equal(run_row(&w, a, &box), 0);
        }
}

/* Every large enough block is at least eight slices a channel, and slices are whole packets. */
static void slices_keep_the_pipeline_full(void **state)
{
    (void)state;
    for (uint64_t chunk = 32768; chunk <= 1ULL << 24; chunk *= 2) {
        struct sched_in in = {.kind = COLL_ALLREDUCE,
                              .algo = ALGO_RING,
                              .nranks = 8,
                              .count = chunk * 8 / 4,
                              .type = DT_FP32,
                              .mtu = 4096};
        struct sched s;

        assert_int_equal(sched_init(&s, &in), 0);
        for (unsigned l = 0; l < s.n_lanes; l++) {
            if (s.lane[l].kind != LANE_SEND)
                continue;
            assert_true(s.lane[l].n >= 14 * 8);
            assert_int_equal(lane_step(&s.lane[l], 0)->len % 4096, 0);
            assert_true(lane_step(&s.lane[l], 0)->len <= SCHED_SLICE_MAX);
        }
        sched_free(&s);
    }
}

/* Where a step has costs, a ring has as few messages as there can be, and none of a step leaves
 * before all of the step before it have come on the channel. */
static void steps_with_costs_follow_each_other(void **state)
{
    struct row w = {.kind = COLL_ALLREDUCE,
                    .algo = ALGO_RING,
                    .n = 8,
                    .count = 8 * 3 * (SCHED_SLICE_MAX / 4) * 4 + 1,
                    .type = DT_FP32,
                    .mtu = 4096,
                    .shape = {.domain = 8, .planes = 4}};
    struct sched_topo t = topo_of(&w);
    struct sched_in in = in_of(&w, &t, 3);
    unsigned sends = 0, lane, recv;
    struct sched s;

    (void)state;
    assert_true(t.steps);
    assert_int_equal(sched_init(&s, &in), 0);
    for (unsigned c = 0; c < 4; c++) {
        assert_true(sched_has_lane(&s, LANE_SEND, 4, c, &lane));
        assert_true(sched_has_lane(&s, LANE_RECV, 2, c, &recv));
        assert_int_equal(s.lane[lane].n, s.lane[recv].n);
        assert_int_equal(s.lane[lane].n % 14, 0);
        sends = s.lane[lane].n / 14;
        assert_in_range(sends, 3, 4);
        for (unsigned i = 0; i < s.lane[lane].n; i++) {
            const struct step *st = lane_step(&s.lane[lane], i);
            unsigned seen = 0;

            for (unsigned d = 0; d < st->n_deps; d++)
                if (st->dep[d].lane == recv)
                    seen = st->dep[d].count;
            assert_int_equal(seen, i / sends * sends);
        }
    }
    sched_free(&s);
}

/* A ring that leaves its nodes by one NIC each is as fast as those: eight slices a block there, not
 * eight for each plane, which would be as many messages more for nothing. */
static void slices_are_those_of_the_slowest_edge(void **state)
{
    struct row w = {.kind = COLL_ALLREDUCE,
                    .algo = ALGO_RING,
                    .n = 8,
                    .count = 8 * 65536,
                    .type = DT_FP32,
                    .mtu = 4096,
                    .shape = {.domain = 4, .planes = 4}};
    struct sched_topo t = topo_of(&w);

    (void)state;
    for (unsigned rank = 2; rank < 4; rank++) {
        struct sched_in in = in_of(&w, &t, rank);
        unsigned each = rank == 3 ? 8 : 2; /* a block, on a channel */
        struct sched s;

        assert_int_equal(sched_init(&s, &in), 0);
        for (unsigned l = 0; l < s.n_lanes; l++)
            if (s.lane[l].kind == LANE_SEND)
                assert_int_equal(s.lane[l].n, 14 * each);
        sched_free(&s);
    }
}

/* A message whose sum goes to memory without content yet is received there, not in a slot: all
 * messages of a ring, the first ones of recursive halving, none in place. */
static void messages_lie_where_their_first_sum_goes(void **state)
{
    static const enum coll_algo algo[2] = {ALGO_RING, ALGO_HALVING};

    (void)state;
    for (unsigned k = 0; k < 4; k++) {
        struct sched_in in = {.kind = COLL_ALLREDUCE,
                              .algo = algo[k % 2],
                              .nranks = 8,
                              .count = 8 * 65536,
                              .type = DT_FP32,
                              .in_place = k / 2,
                              .mtu = 4096};
        struct sched s;
        uint64_t there = 0, bytes = 0;

        assert_int_equal(sched_init(&s, &in), 0);
        for (unsigned l = 0; l < s.n_lanes; l++)
            for (uint64_t i = 0; s.lane[l].kind == LANE_RECV && i < s.lane[l].n; i++) {
                const struct step *st = lane_step(&s.lane[l], i);

                bytes += st->dst.buf == BUF_SLOT ? st->len : 0;
                there += st->dst.buf == BUF_SLOT && st->a.buf == BUF_OUT ? st->len : 0;
            }
        assert_int_equal(bytes, 7 * 4 * 65536);
        assert_int_equal(there, in.in_place ? 0 : k ? 4 * 4 * 65536 : bytes);
        sched_free(&s);
    }
}

/* A thousand ranks in one process: a ring's steps must take little memory. */
static void long_schedules_are_small(void **state)
{
    struct sched_in in = {.kind = COLL_ALLREDUCE,
                          .algo = ALGO_RING,
                          .nranks = 1024,
                          .count = 64 << 20,
                          .type = DT_FP32,
                          .mtu = 4096};
    struct sched s;
    size_t bytes = 0;

    (void)state;
    assert_int_equal(sched_init(&s, &in), 0);
    assert_true(s.n_steps >= 5 * 1023 * 8);
    for (unsigned l = 0; l < s.n_lanes; l++) {
        assert_int_equal(s.lane[l].room, s.lane[l].n);
        bytes += s.lane[l].n * lane_stride(&s.lane[l]);
    }
    assert_true(bytes <= 3u << 20);
    sched_free(&s);
}

static void nonsense_is_refused(void **state)
{
    struct sched_in in = {.kind = COLL_ALLREDUCE,
                          .algo = ALGO_RING,
                          .nranks = 4,
                          .count = 16,
                          .type = DT_FP32,
                          .mtu = 4096};
    struct sched s;

    (void)state;
    in.rank = 4;
    assert_int_equal(sched_init(&s, &in), -EINVAL);
    in.rank = 0, in.mtu = 1500;
    assert_int_equal(sched_init(&s, &in), -EINVAL);
    in.mtu = 4096, in.root = 4;
    assert_int_equal(sched_init(&s, &in), -EINVAL);
    in.root = 0, in.count = ~0ULL;
    assert_int_equal(sched_init(&s, &in), -E2BIG);
    in.count = 16, in.algo = ALGO_SHARP; /* no trees */
    for (in.kind = 0; in.kind < COLL_KINDS; in.kind++)
        assert_int_equal(sched_init(&s, &in), -ENOTSUP);
    in.kind = COLL_ALLREDUCE;
    in.algo = ALGO_NVLS;
    assert_int_equal(sched_init(&s, &in), -ENOTSUP);
    in.kind = COLL_ALLTOALL, in.algo = ALGO_DIRECT, in.in_place = true;
    assert_int_equal(sched_init(&s, &in), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_gives_the_plain_result),
        cmocka_unit_test(types_operations_and_mtus),
        cmocka_unit_test(long_vectors),
        cmocka_unit_test(slices_keep_the_pipeline_full),
        cmocka_unit_test(slices_are_those_of_the_slowest_edge),
        cmocka_unit_test(steps_with_costs_follow_each_other),
        cmocka_unit_test(messages_lie_where_their_first_sum_goes),
        cmocka_unit_test(long_schedules_are_small),
        cmocka_unit_test(nonsense_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
