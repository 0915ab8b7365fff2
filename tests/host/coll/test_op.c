/* SPDX-License-Identifier: BSD-3-Clause */
/* Where buffers may lie: in place as NCCL has it, apart, and nowhere between. */
#include "tests/host/coll/coll_fixture.h"

#include "host/coll/comm.h"

#include <errno.h>

#define RANKS 4u
#define COUNT 64 /* elements of 4 bytes; a whole buffer has four times as many */
#define HOSTS (1u << ALGO_RING | 1u << ALGO_DIRECT | 1u << ALGO_CHAIN)

#define DIM(a) (sizeof(a) / sizeof((a)[0]))

static struct coll_req *started[256];
static unsigned n_started;

static struct fixture *open_fixture(void)
{
    struct fixture *g = fixture_new(RANKS, 1, 4096, NULL);

    fixture_connect(g, HOSTS, FIXTURE_RANKS);
    assert_true(fixture_run(g, PS_PER_S, false, fixture_ready));
    n_started = 0;
    return g;
}

/* What was started waits for ranks that have not: all ends here. */
static void close_fixture(struct fixture *g)
{
    comm_abort(g->comm[0], "over");
    assert_true(fixture_run(g, PS_PER_S, false, fixture_failed));
    while (n_started)
        coll_free(started[--n_started]);
    fixture_free(g, true);
}

static int start(struct fixture *g, unsigned rank, const struct coll_args *a)
{
    char err[COMM_TEXT] = "";
    int rc = coll_start(g->comm[rank], a, &started[n_started], err);

    n_started += !rc;
    assert_true(n_started < DIM(started));
    if (rc == -EINVAL)
        assert_string_equal(err, "send and receive buffers overlap");
    return rc;
}

/* The receive buffer begins `at` elements behind the send buffer. Rank 2 of 4, with root 2 or 0: own block 128. */
static void buffers_are_the_same_or_apart(void **state)
{
    static const struct {
        enum coll_kind kind;
        enum coll_algo algo;
        unsigned root;
        int place;         /* in place; INT_MIN: never */
        int before, after; /* the nearest that do not overlap */
    } rows[] = {
        {COLL_ALLREDUCE, ALGO_RING, 0, 0, -COUNT, COUNT},
        {COLL_REDUCE, ALGO_CHAIN, 2, 0, -COUNT, COUNT},
        {COLL_ALLGATHER, ALGO_RING, 0, -2 * COUNT, -4 * COUNT, COUNT},
        {COLL_REDUCE_SCATTER, ALGO_RING, 0, 2 * COUNT, -COUNT, 4 * COUNT},
        {COLL_ALLTOALL, ALGO_DIRECT, 0, INT32_MIN, -4 * COUNT, 4 * COUNT},
        {COLL_SENDRECV, ALGO_DIRECT, 0, INT32_MIN, -COUNT, COUNT},
        {COLL_GATHER, ALGO_DIRECT, 2, -2 * COUNT, -4 * COUNT, COUNT},
        {COLL_SCATTER, ALGO_DIRECT, 2, 2 * COUNT, -COUNT, 4 * COUNT},
    };
    struct fixture *g = open_fixture();
    float *mem = fixture_buffer(g, 2, 16 * COUNT * sizeof(float)), *mid = mem + 8 * COUNT;

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct coll_args a = {.kind = rows[i].kind,
                              .algo = rows[i].algo,
                              .root = rows[i].root,
                              .send = mid,
                              .count = COUNT,
                              .type = DT_FP32};
        const int near[] = {rows[i].before, rows[i].before + 1, rows[i].after - 1, rows[i].after};

        for (unsigned k = 0; k < 4; k++) {
            int rc;

            a.recv = mid + near[k];
            rc = start(g, 2, &a);
            if (rc != (k == 1 || k == 2 ? -EINVAL : 0))
                fail_msg("row %u, %d: %d", i, near[k], rc);
            assert_true(rc || !started[n_started - 1]->s.in.in_place);
        }
        if (rows[i].place == INT32_MIN)
            continue;
        for (int k = -1; k <= 1; k++) {
            a.recv = mid + rows[i].place + k;
            assert_int_equal(start(g, 2, &a), k ? -EINVAL : 0);
            assert_true(k || started[n_started - 1]->s.in.in_place);
        }
    }
    close_fixture(g);
}

/* Ranks that only give or get have one buffer, and the other one is not looked at. */
static void a_buffer_without_a_use_is_not_looked_at(void **state)
{
    static const struct {
        enum coll_kind kind;
        enum coll_algo algo;
        bool sends, gets; /* a rank that is not the root */
    } rows[] = {
        {COLL_REDUCE, ALGO_CHAIN, true, false},    {COLL_BROADCAST, ALGO_CHAIN, false, true},
        {COLL_GATHER, ALGO_DIRECT, true, false},   {COLL_SCATTER, ALGO_DIRECT, false, true},
        {COLL_BARRIER, ALGO_DIRECT, false, false},
    };
    static float stray[COUNT];
    struct fixture *g = open_fixture();
    float *mem = fixture_buffer(g, 1, COUNT * sizeof(float));

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++)
        for (unsigned other = 0; other < 3; other++) {
            void *const unused[] = {NULL, stray, mem};
            struct coll_args a = {.kind = rows[i].kind,
                                  .algo = rows[i].algo,
                                  .send = rows[i].sends ? mem : unused[other],
                                  .recv = rows[i].gets ? mem : unused[other],
                                  .count = COUNT,
                                  .type = DT_FP32};

            assert_int_equal(start(g, 1, &a), 0);
            if (rows[i].sends) {
                a.send = stray;
                assert_int_equal(start(g, 1, &a), -EFAULT);
            }
            if (rows[i].gets) {
                a.recv = stray;
                assert_int_equal(start(g, 1, &a), -EFAULT);
            }
        }
    close_fixture(g);
}

/* Memory that may not be written is an input, unless the operation writes there. */
static void an_input_is_not_written(void **state)
{
    static float input[COUNT];
    static const struct {
        enum coll_kind kind;
        unsigned root;
        bool same; /* in place */
        int rc;
    } rows[] = {
        {COLL_ALLREDUCE, 0, false, 0},      {COLL_ALLREDUCE, 0, true, -EFAULT},
        {COLL_REDUCE, 0, true, -EFAULT},    {COLL_BROADCAST, 0, true, 0}, /* the root's is read */
        {COLL_BROADCAST, 1, true, -EFAULT}, {COLL_BROADCAST, 0, false, 0},
    };
    struct fixture *g = open_fixture();
    float *mem = fixture_buffer(g, 0, COUNT * sizeof(float));

    (void)state;
    assert_int_equal(comm_register_input(g->comm[0], input, sizeof(input)), 0);
    for (unsigned i = 0; i < DIM(rows); i++) {
        const struct coll_args a = {.kind = rows[i].kind,
                                    .algo = ALGO_RING,
                                    .root = rows[i].root,
                                    .send = input,
                                    .recv = rows[i].same ? input : mem,
                                    .count = COUNT,
                                    .type = DT_FP32};

        assert_int_equal(start(g, 0, &a), rows[i].rc);
    }
    close_fixture(g);
}

static void what_is_not_set_up_is_not_supported(void **state)
{
    struct fixture *g = open_fixture();
    struct coll_args a = {.algo = ALGO_RING, .count = 1, .type = DT_FP32};

    (void)state;
    assert_true(comm_supports(g->comm[0], &a));
    assert_int_equal(comm_runs_by(g->comm[0], &a), ALGO_RING);
    a.op = OP_BXOR;
    assert_false(comm_supports(g->comm[0], &a));
    a.op = OP_SUM, a.algo = ALGO_TREE;
    assert_false(comm_supports(g->comm[0], &a));
    assert_int_equal(comm_runs_by(g->comm[0], &a), ALGO_TREE); /* as it was asked */
    a.algo = ALGO_RING, a.kind = COLL_ALLTOALL;
    assert_false(comm_supports(g->comm[0], &a));
    a.algo = ALGO_DIRECT;
    assert_true(comm_supports(g->comm[0], &a));
    a.sparse = RANKS;
    assert_true(comm_supports(g->comm[0], &a));
    a.sparse = RANKS + 1;
    assert_false(comm_supports(g->comm[0], &a));
    close_fixture(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_are_the_same_or_apart),
        cmocka_unit_test(a_buffer_without_a_use_is_not_looked_at),
        cmocka_unit_test(an_input_is_not_written),
        cmocka_unit_test(what_is_not_set_up_is_not_supported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
