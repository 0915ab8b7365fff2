/* SPDX-License-Identifier: BSD-3-Clause */
/* What follows from a row: names, bandwidths, predictions. */
#include "host/bench/row.h"
#include "host/bench/tolerance.h"

#include "collective/file/sched_file.h"
#include "host/bench/perf_options.h"
#include "host/bench/verify/test_pattern.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void the_operation_is_the_rows(void **state)
{
    static const struct sched_file file = {.name = "mine"};
    const struct row r = {.coll = COLL_ALLTOALL,
                          .algo = ALGO_DIRECT,
                          .count = 7,
                          .type = DT_BF16,
                          .op = OP_MAX,
                          .root = 3,
                          .sparse = 2,
                          .mm_self = true,
                          .file = &file};
    const struct coll_args a = row_args(&r);

    (void)state;
    assert_int_equal(a.kind, COLL_ALLTOALL);
    assert_int_equal(a.algo, ALGO_DIRECT);
    assert_int_equal(a.count, 7);
    assert_int_equal(a.type, DT_BF16);
    assert_int_equal(a.op, OP_MAX);
    assert_int_equal(a.root, 3);
    assert_int_equal(a.sparse, 2);
    assert_true(a.mm_self);
    assert_ptr_equal(a.file, &file);
    assert_null(a.send);
    assert_null(a.recv);
}

static void names_are_of_what_ran_and_of_what_was_asked(void **state)
{
    static struct sched_file file = {.name = "mine", .place = {true, false}};
    struct row r = {.coll = COLL_ALLREDUCE, .algo = ALGO_SHARP, .file = &file};

    (void)state;
    assert_string_equal(row_algo_name(&r), "sharp");
    assert_string_equal(row_asked_name(&r), "sharp");
    assert_int_equal(row_asked(&r), ALGO_SHARP);
    r.chosen = true;
    assert_string_equal(row_algo_name(&r), "sharp");
    assert_string_equal(row_asked_name(&r), "auto");
    assert_int_equal(row_asked(&r), ALGO_AUTO);
    r = (struct row){.coll = COLL_ALLREDUCE, .algo = ALGO_SCHEDULE, .file = &file};
    assert_string_equal(row_algo_name(&r), "mine");
    assert_string_equal(row_asked_name(&r), "mine");
    assert_false(row_can_be_in_place(&r));
    file.place[1] = true;
    assert_true(row_can_be_in_place(&r));
    r.coll = COLL_ALLTOALL;
    assert_false(row_can_be_in_place(&r));
    r = (struct row){.coll = COLL_REDUCE, .algo = ALGO_SCHEDULE};
    assert_string_equal(row_algo_name(&r), "schedule");
    assert_true(row_can_be_in_place(&r));
    r.algo = PERF_NVLS_HW;
    assert_string_equal(row_algo_name(&r), "nvls-hw");
}

static void bandwidth_is_size_over_time(void **state)
{
    const struct row r = {.coll = COLL_ALLREDUCE, .nranks = 4, .bytes = 3000};

    (void)state;
    assert_float_equal(row_algbw(&r, 1.5), 2, 1e-12);
    assert_float_equal(row_busbw(&r, 1.5), 3, 1e-12);
    assert_float_equal(row_algbw(&r, 0), 0, 0);
    assert_float_equal(row_algbw(&r, -1), 0, 0);
    assert_float_equal(row_algbw(&r, 0.001), 3000, 1e-9);
}

static void ulps_have_a_mean_where_there_are_any(void **state)
{
    struct row r = {.ulp = {.sum = 6}};

    (void)state;
    assert_float_equal(row_ulp_mean(&r), 0, 0);
    r.ulp.n = 4;
    assert_float_equal(row_ulp_mean(&r), 1.5, 1e-12);
}

/* The mean of as many operations as a run had. */
static void predictions_are_of_operations_that_follow_each_other(void **state)
{
    static const struct {
        int64_t time_ps, next_ps;
        bool guessed, out, in; /* there is a run of 4 out of place, of 2 in place */
        unsigned iters;
        double us;
    } rows[] = {
        {0, 0, false, true, true, 4, 0},
        {1, 0, false, true, true, 4, 0}, /* a single rank */
        {2, 0, false, true, true, 4, 2e-6},
        {5000000, 0, true, true, true, 4, 0},
        {5000000, 0, false, true, true, 4, 5},
        {5000000, 1000000, false, false, false, 4, 5},
        {5000000, 1000000, false, true, true, 4, 2},
        {5000000, 1000000, false, false, true, 4, 3},
        {5000000, 1000000, false, true, true, 0, 3}, /* out of place nothing was timed */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct row r = {.pred = {.time_ps = rows[i].time_ps,
                                 .next_ps = rows[i].next_ps,
                                 .guessed = rows[i].guessed}};

        r.run[OUT_OF_PLACE].valid = rows[i].out;
        r.run[OUT_OF_PLACE].iters = rows[i].iters;
        r.run[IN_PLACE].valid = rows[i].in;
        r.run[IN_PLACE].iters = 2;
        assert_float_equal(row_predicted_us(&r), rows[i].us, 1e-12);
    }
}

static void links_are_compared_in_link_time(void **state)
{
    /* 1,000 bytes at 8 Gb/s are 1 us. */
    struct row r = {.pred = {.time_ps = 4000000, .busiest_link_bytes = 1000},
                    .link_bps = 8000000000};
    struct run_result run = {.valid = true,
                             .iters = 5,
                             .link = {.known = true, .bytes = 20000, .rate_bps = 16000000000}};

    (void)state;
    assert_float_equal(row_predicted_utilisation(&r), 0.25, 1e-12);
    assert_float_equal(row_link_ratio(&r, &run), 2, 1e-12); /* 4,000 bytes at twice the rate */
    run.valid = false;
    assert_float_equal(row_link_ratio(&r, &run), 0, 0);
    run.valid = true, run.link.known = false;
    assert_float_equal(row_link_ratio(&r, &run), 0, 0);
    run.link.known = true, r.pred.busiest_link_bytes = 0;
    assert_float_equal(row_link_ratio(&r, &run), 0, 0);
    assert_float_equal(row_predicted_utilisation(&r), 0, 0);
}

static void rows_that_are_not_what_they_seem_say_so(void **state)
{
    struct row r = {.pred = {.time_ps = 2, .within_percent = 6}};

    (void)state;
    assert_true(row_is_rough(&r));
    r.pred.within_percent = 5;
    assert_false(row_is_rough(&r));
    r.pred = (struct coll_prediction){.time_ps = 1, .within_percent = 6};
    assert_false(row_is_rough(&r));
    r.bytes = 8;
    assert_false(row_is_beyond(&r));
    r.until = 7;
    assert_true(row_is_beyond(&r));
    r.until = 8;
    assert_false(row_is_beyond(&r));
}

static void a_barrier_lets_so_many_ranks_be_late(void **state)
{
    (void)state;
    assert_int_equal(row_late(ROW_LATE, ROW_LATE - 1), ROW_LATE - 1);
    assert_int_equal(row_late(2, 1), 1);
    assert_int_equal(row_late(2 * ROW_LATE, 3), 6);
    assert_int_equal(row_late(ROW_LATE + 1, ROW_LATE - 1), ROW_LATE - 1);
}

/* ---- tolerance ---- */

static double bound_of(const char *protocol, enum dtype t, enum redop op, unsigned nranks)
{
    struct trib_protocol const *p = proto_at((unsigned)proto_seat(protocol));
    int64_t key[TRIB_KEYS];

    proto_usual(p, key);
    return p->bound(key, (enum trib_type)t, (enum trib_sum)op, nranks,
                    pattern_most(t, op, nranks, true));
}

static struct row row_by(const char *protocol, enum dtype t, enum redop op, unsigned nranks)
{
    return (struct row){.coll = COLL_ALLREDUCE,
                        .algo = (enum coll_algo)(ALGO_PROTOCOL + proto_seat(protocol)),
                        .type = t,
                        .op = op,
                        .nranks = nranks};
}

/* A mean is a sum of which each rank takes its part, and rounds that once. */
static void only_protocols_that_quantise_have_a_tolerance(void **state)
{
    static const struct fabric fab;
    struct row r = {.algo = ALGO_RING, .type = DT_FP32, .nranks = 4};
    double sum, most;

    (void)state;
    assert_float_equal(row_tolerance(&fab, &r), 0, 0);
    r = row_by("ps", DT_FP32, OP_SUM, 4);
    assert_float_equal(row_tolerance(&fab, &r), 0, 0);
    r = row_by("switchml", DT_INT32, OP_SUM, 4);
    assert_float_equal(row_tolerance(&fab, &r), 0, 0);
    r = row_by("switchml", DT_FP32, OP_SUM, 1);
    assert_float_equal(row_tolerance(&fab, &r), 0, 0);
    r = row_by("switchml", DT_FP64, OP_SUM, 4); /* it does not do that */
    assert_float_equal(row_tolerance(&fab, &r), 0, 0);
    for (unsigned nranks = 2; nranks <= 4; nranks += 2)
        for (unsigned i = 0; i < 2; i++) {
            const char *name = i ? "atp" : "switchml";

            r = row_by(name, DT_FP32, OP_SUM, nranks);
            sum = bound_of(name, DT_FP32, OP_SUM, nranks);
            assert_true(sum > 0);
            assert_true(row_tolerance(&fab, &r) == sum);
            r.op = OP_AVG;
            most = pattern_most(DT_FP32, OP_AVG, nranks, true);
            assert_true(row_tolerance(&fab, &r) == sum / nranks + most * 0x1p-23);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_operation_is_the_rows),
        cmocka_unit_test(names_are_of_what_ran_and_of_what_was_asked),
        cmocka_unit_test(bandwidth_is_size_over_time),
        cmocka_unit_test(ulps_have_a_mean_where_there_are_any),
        cmocka_unit_test(predictions_are_of_operations_that_follow_each_other),
        cmocka_unit_test(links_are_compared_in_link_time),
        cmocka_unit_test(rows_that_are_not_what_they_seem_say_so),
        cmocka_unit_test(a_barrier_lets_so_many_ranks_be_late),
        cmocka_unit_test(only_protocols_that_quantise_have_a_tolerance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
