/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives by sums in switches on trees of different rates: results are those of equal shares,
 * whatever is left for a slow tree. */
#include "tests/collective/sched_row.h"

/* What trees carry, in any unit. */
static const struct shape shapes[] = {
    {.trees = 2, .tree_bps = {200000000000, 100000000000}},
    {.trees = 2, .tree_bps = {1, 1000000000000}}, /* hardly anything for the first one */
    {.trees = 3, .tree_bps = {1, 2, 4}},
    {.trees = 3, .tree_bps = {7, 1, 7}},
    {.trees = 3, .tree_bps = {5, 5, 5}},
    {.trees = 8, .tree_bps = {2, 3, 5, 7, 11, 13, 17, 19}},
    {.trees = 8, .tree_bps = {1ull << 40, 1, 1, 1, 1, 1, 1, 1ull << 40}},
};
#define SHAPES (sizeof(shapes) / sizeof(*shapes))

/* Fewer elements than trees, as many, and what no share divides. */
static const uint64_t counts[] = {0, 1, 2, 3, 7, 8, 9, 1009, 20011};
#define COUNTS (sizeof(counts) / sizeof(*counts))

static const unsigned ranks[] = {1, 2, 3, 8};
static const enum coll_kind kinds[] = {COLL_ALLREDUCE,      COLL_REDUCE,    COLL_BROADCAST,
                                       COLL_REDUCE_SCATTER, COLL_ALLGATHER, COLL_BARRIER};

static void every_collective_gives_the_plain_result(void **state)
{
    static const enum dtype types[] = {DT_INT32, DT_FP64, DT_INT8};

    (void)state;
    for (unsigned k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
        for (unsigned s = 0; s < SHAPES; s++)
            for (unsigned c = 0; c < COUNTS; c++)
                for (unsigned r = 0; r < sizeof(ranks) / sizeof(*ranks); r++) {
                    struct row w = {.kind = kinds[k],
                                    .algo = ALGO_SHARP,
                                    .n = ranks[r],
                                    .root = (s + c) % ranks[r],
                                    .count = kinds[k] == COLL_BARRIER ? 0 : counts[c],
                                    .type = types[(s + c) % 3],
                                    .in_place = (c + r) % 2,
                                    .mtu = 256,
                                    .shape = shapes[s]};

                    assert_int_equal(run_row(&w, s * 100 + c * 10 + r, &box), 0);
                }
}

/* Sums that round, of any bits: run_row() adds all ranks in order, as one tree would. */
static void sums_that_round_have_the_bits_of_one_tree(void **state)
{
    static const enum dtype types[] = {DT_FP16, DT_BF16, DT_FP32};

    (void)state;
    for (unsigned t = 0; t < sizeof(types) / sizeof(*types); t++)
        for (unsigned k = 0; k < 2; k++)
            for (unsigned s = 0; s < SHAPES; s++) {
                struct row w = {.kind = k ? COLL_REDUCE_SCATTER : COLL_ALLREDUCE,
                                .algo = ALGO_SHARP,
                                .n = 7,
                                .count = 4099,
                                .type = types[t],
                                .op = OP_AVG,
                                .mtu = 512,
                                .shape = shapes[s]};

                if (arith_valid(w.op, w.type))
                    assert_int_equal(run_row(&w, s, &box), 0);
            }
}

/* Whole elements, each once, and to one element what the tree's part of the rates is. */
static void shares_are_a_partition(void **state)
{
    static const uint64_t more[] = {0, 1, 5, 8, 63, 1009, 1ull << 20, (1ull << 40) + 3};

    (void)state;
    for (unsigned s = 0; s < SHAPES; s++)
        for (unsigned c = 0; c < sizeof(more) / sizeof(*more); c++) {
            const uint64_t *bps = shapes[s].tree_bps;
            uint64_t end = 0, off, len, sum = 0;

            for (unsigned k = 0; k < shapes[s].trees; k++)
                sum += bps[k];
            for (unsigned k = 0; k < shapes[s].trees; k++, end = off + len) {
                double part = (double)more[c] * (double)bps[k] / (double)sum;

                sched_share(4 * more[c], 4, bps, shapes[s].trees, k, &off, &len);
                assert_int_equal(off, end);
                assert_int_equal(len % 4, 0);
                assert_true((double)len / 4 <= part + 1.001 && (double)len / 4 >= part - 1.001);
            }
            assert_int_equal(end, 4 * more[c]);
        }
}

/* Messages are whole on each tree, so a share ends with at most one short one. */
static void lanes_have_messages_by_their_rate(void **state)
{
    struct row w = {.kind = COLL_ALLREDUCE,
                    .algo = ALGO_SHARP,
                    .n = 2,
                    .count = 1 << 20,
                    .type = DT_FP32,
                    .mtu = 4096,
                    .shape = {.trees = 3, .tree_bps = {1, 2, 5}}};
    struct sched_topo t = topo_of(&w);
    struct sched_in in = in_of(&w, &t, 1);
    struct sched s;

    (void)state;
    assert_int_equal(sched_init(&s, &in), 0);
    assert_int_equal(s.n_lanes, 3);
    for (unsigned l = 0; l < s.n_lanes; l++) {
        uint64_t part = w.shape.tree_bps[s.lane[l].chan] * (4u << 20) / 8 / AGG_MSG_BYTES(4096);

        assert_in_range(s.lane[l].n, part, part + 1);
    }
    sched_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_collective_gives_the_plain_result),
        cmocka_unit_test(sums_that_round_have_the_bits_of_one_tree),
        cmocka_unit_test(shares_are_a_partition),
        cmocka_unit_test(lanes_have_messages_by_their_rate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
