/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes that schedules move, against the closed forms (Fxx of cost.h), exactly. */
#include "tests/collective/sched_row.h"

#define B (5040ULL * 16 * 4) /* bytes that every number of ranks below divides */

/* A collective of B bytes in all on n ranks of one domain. */
static void count_bytes(enum coll_kind k, enum coll_algo a, unsigned n, bool self)
{
    struct row w = {.kind = k,
                    .algo = a,
                    .n = n,
                    .count = B / 4,
                    .type = DT_INT32,
                    .mm_self = self,
                    .mtu = 4096,
                    .shape = {.domain = n, .planes = 4, .trees = 2}};

    if (k == COLL_ALLGATHER || k == COLL_REDUCE_SCATTER)
        w.count /= n;
    if (k == COLL_ALLTOALL)
        w.count /= n * n;
    assert_int_equal(run_row(&w, n, &box), 0);
}

/* F20-F25: bytes that leave each rank, exactly. */
static void bytes_are_what_theory_says(void **state)
{
    static const unsigned some[] = {2, 3, 5, 7, 8, 9, 16};
    static const enum coll_algo all[] = {ALGO_RING, ALGO_DIRECT};

    (void)state;
    for (unsigned i = 0; i < sizeof(some) / sizeof(*some); i++)
        for (unsigned k = 0; k < 2; k++) {
            unsigned n = some[i];

            count_bytes(COLL_ALLREDUCE, all[k], n, false);
            for (unsigned r = 0; r < n; r++)
                assert_int_equal(box.r[r].sent, 2 * (n - 1) * B / n); /* F21 */
            count_bytes(COLL_ALLGATHER, all[k], n, false);
            for (unsigned r = 0; r < n; r++)
                assert_int_equal(box.r[r].sent, (n - 1) * B / n); /* F20 */
            count_bytes(COLL_REDUCE_SCATTER, all[k], n, false);
            for (unsigned r = 0; r < n; r++)
                assert_int_equal(box.r[r].sent, (n - 1) * B / n);
            count_bytes(COLL_ALLREDUCE, ALGO_SHARP, n, false);
            for (unsigned r = 0; r < n; r++)
                assert_true(box.r[r].agg_up == B && box.r[r].agg_down == B); /* F25 */
            if (B / 4 % (n * n) == 0) {
                count_bytes(COLL_ALLTOALL, all[k] == ALGO_RING ? ALGO_PAIRWISE : ALGO_DIRECT, n,
                            false);
                for (unsigned r = 0; r < n; r++)
                    assert_int_equal(box.r[r].sent, (n - 1) * B / n / n); /* F23 */
            }
        }
    for (unsigned n = 2; n <= 16; n *= 2) {
        count_bytes(COLL_ALLREDUCE, ALGO_HALVING, n, false);
        for (unsigned r = 0; r < n; r++)
            assert_int_equal(box.r[r].sent, 2 * (n - 1) * B / n); /* F22: the ring's bytes */
    }
}

/* F26: out of every GPU and into it B, whatever their number; F27: (1 + 1 / N) B. */
static void multimem_moves_f26_and_f27(void **state)
{
    (void)state;
    for (unsigned n = 2; n <= 8; n++)
        for (unsigned self = 0; self < 2; self++) {
            count_bytes(COLL_ALLREDUCE, ALGO_NVLS, n, self);
            for (unsigned r = 0; r < n; r++) {
                assert_int_equal(box.r[r].mm_out, self ? B + B / n : B);
                assert_int_equal(box.r[r].mm_in, self ? B + B / n : B);
                assert_int_equal(box.r[r].sent, 0); /* but empty messages */
            }
        }
}

/* The double tree: the root of both sends and gets the vector once each way, no rank more than it
 * both ways. All: N - 1 times each way, as any tree. */
static void trees_share_the_load(void **state)
{
    (void)state;
    for (unsigned n = 2; n <= 16; n++) {
        uint64_t sum = 0;

        count_bytes(COLL_BROADCAST, ALGO_TREE, n, false);
        for (unsigned r = 0; r < n; r++) {
            assert_true(box.r[r].sent <= B);
            sum += box.r[r].sent;
        }
        assert_int_equal(sum, (n - 1) * B);
        count_bytes(COLL_REDUCE, ALGO_TREE, n, false);
        for (unsigned r = 0; r < n; r++)
            assert_int_equal(box.r[r].sent, r ? B : 0);
    }
}

/* F28: of an all-reduce over M nodes of N, 2 (M - 1) / M of B / N leave a GPU by its NIC. */
static void levels_send_what_theory_says(void **state)
{
    struct row w = {.kind = COLL_ALLREDUCE,
                    .algo = ALGO_HIER,
                    .count = B / 4,
                    .type = DT_INT32,
                    .mtu = 4096,
                    .shape = {.planes = 4}};

    (void)state;
    for (unsigned m = 2; m <= 4; m++)
        for (unsigned local = 2; local <= 4; local++) {
            w.shape.domain = local, w.n = m * local;
            assert_int_equal(run_row(&w, m, &box), 0);
            for (unsigned r = 0; r < w.n; r++)
                assert_int_equal(box.r[r].sent,
                                 2 * (local - 1) * B / local + 2 * (m - 1) * (B / local) / m);
        }
}

/* In the root's node B goes from GPU to GPU; B / N go on from node to node on every rail; and in
 * the other nodes (N - 1) / N of B leave every GPU. */
static void a_broadcast_by_levels_uses_every_rail_once(void **state)
{
    const unsigned m = 3, local = 4;
    struct row w = {.kind = COLL_BROADCAST,
                    .n = m * local,
                    .root = 6,
                    .count = B / 4,
                    .type = DT_INT32,
                    .mtu = 4096,
                    .shape = {.domain = local, .planes = 4, .trees = 1}};

    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        w.algo = k ? ALGO_HIER_SHARP : ALGO_HIER;
        assert_int_equal(run_row(&w, k, &box), 0);
        for (unsigned r = 0; r < w.n; r++) {
            unsigned node = (r / local + m - w.root / local) % m; /* from the root's on */
            uint64_t in_node = node ? (local - 1) * B / local : r == w.root - 1 ? 0 : B;
            uint64_t on_rail = node + 1 < m ? B / local : 0;

            assert_int_equal(box.r[r].sent, in_node + (k ? 0 : on_rail));
            assert_int_equal(box.r[r].agg_up, k && !node ? B / local : 0);
            assert_int_equal(box.r[r].agg_down, k && node ? B / local : 0);
        }
    }
}

/* F33: of a block of B / (M N) each GPU sends one up and gets M - 1; in its node's switches it
 * stores all M of its rail, and gets the others' N - 1 times as many. */
static void an_all_gather_by_multicast_sends_f33(void **state)
{
    struct row w = {
        .kind = COLL_ALLGATHER, .type = DT_INT32, .mtu = 4096, .shape = {.planes = 4, .trees = 1}};

    (void)state;
    for (unsigned m = 2; m <= 4; m++)
        for (unsigned local = 2; local <= 4; local++)
            for (unsigned k = 0; k < 2; k++) {
                uint64_t each;

                w.algo = k ? ALGO_NVLS_SHARP : ALGO_HIER_SHARP;
                w.shape.domain = local, w.n = m * local;
                w.count = B / 4 / w.n, each = w.count * 4;
                assert_int_equal(run_row(&w, k, &box), 0);
                for (unsigned r = 0; r < w.n; r++) {
                    assert_int_equal(box.r[r].agg_up, each);
                    assert_int_equal(box.r[r].agg_down, (m - 1) * each);
                    assert_int_equal(box.r[r].sent, k ? 0 : m * (local - 1) * each);
                    assert_int_equal(box.r[r].mm_out, k ? m * each : 0);
                    assert_int_equal(box.r[r].mm_in, k ? m * (local - 1) * each : 0);
                }
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_what_theory_says),
        cmocka_unit_test(multimem_moves_f26_and_f27),
        cmocka_unit_test(trees_share_the_load),
        cmocka_unit_test(levels_send_what_theory_says),
        cmocka_unit_test(a_broadcast_by_levels_uses_every_rail_once),
        cmocka_unit_test(an_all_gather_by_multicast_sends_f33),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
