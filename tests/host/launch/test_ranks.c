/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A row in one place, by ranks that are the far ends of sockets: which commands they are sent, what becomes of
 * their answers, and what is left out where there is no time for it. Operations take as long as a rank says, so
 * that only the expected times count.
 */
#include "tests/host/launch/far_row.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PREPARE(in)                                                                                \
    "prepare all_reduce ring float sum root 0 4 sampled 1 in " in " self 0 bound 0\n"
#define CHECK(again) "check again " again " late 0 after 0 ways 1\n"

/* ---- what runs ---- */

static void a_row_is_prepared_warmed_up_timed_and_checked(void **state)
{
    struct fixture *b = set_up(1e-6);
    const struct run_result *run = &b->r.run[OUT_OF_PLACE];

    (void)state;
    b->o.warmup = 3;
    b->script.wrong = 5;
    b->script.staging_ns = 100000;
    assert_int_equal(place(b, OUT_OF_PLACE), 0);
    assert_string_equal(b->play.log, PREPARE("0") "run 3\nrun 20\n" CHECK("0"));
    assert_true(run->valid && run->checked);
    assert_int_equal(run->iters, 20);
    assert_int_equal(run->dilation, DILATION);
    assert_float_equal(run->time_us, 20.5 / 20, 1e-12); /* until the last rank has seen the end */
    assert_float_equal(run->times.median_us, 1, 1e-12);
    assert_int_equal(run->wrong, 5);
    assert_int_equal(b->s.wrong, 5);
    assert_int_equal(run->aggregated, 20);
    assert_float_equal(run->staging_us, 0.005, 1e-12); /* of 20 operations, in fabric time */
    assert_string_equal(run->cut, "");
    assert_string_equal(run->fell_back, "");
    assert_false(run->end.goes_on || run->end.lacks_trees);
    assert_int_equal(b->s.unmeasured, 0);
    assert_int_equal(place(b, IN_PLACE), 0);
    assert_string_equal(b->play.log, PREPARE("1") "run 3\nrun 20\n" CHECK("1"));
    assert_int_equal(b->r.run[IN_PLACE].wrong, 5);
    assert_int_equal(b->s.wrong, 10);
    tear_down(b);
}

static void options_leave_out_commands(void **state)
{
    struct fixture *b = set_up(1e-6);

    (void)state;
    b->o.check = 0;
    b->o.warmup = 0;
    b->o.iters = 1;
    b->r.root = 2;
    b->r.mm_self = true;
    b->r.bound = 0.5;
    b->s.row_until = clock_mono_ns() + 6000 * SEC;
    assert_int_equal(place(b, IN_PLACE), 0);
    assert_string_equal(b->play.log, "prepare all_reduce ring float sum root 2 4 sampled 0 in 1 "
                                     "self 1 bound 0.5\nrun 1\n");
    assert_true(b->r.run[IN_PLACE].valid && !b->r.run[IN_PLACE].checked);
    assert_int_equal(b->s.wrong, 0);
    b->s.ended = -EIO;
    b->r.run[OUT_OF_PLACE].valid = false;
    assert_int_equal(place(b, OUT_OF_PLACE), 0);
    assert_string_equal(b->play.log, "");
    assert_string_equal(b->r.run[OUT_OF_PLACE].cut, "not run: the run ended before it");
    tear_down(b);
}

/* Buffers in a GPU's memory have no samples. */
static void errors_are_measured_out_of_place(void **state)
{
    struct fixture *b = set_up(1e-6);

    (void)state;
    b->o.error = true;
    strcpy(b->s.memory, "cuda:0");
    assert_int_equal(place(b, OUT_OF_PLACE), 0);
    assert_string_equal(b->play.log,
                        "prepare all_reduce ring float sum root 0 4 sampled 0 in 0 self 0 bound "
                        "0\nrun 1\nrun 20\ncheck again 0 late 0 after 0 ways 0\nerror\n");
    assert_float_equal(b->r.ulp.max, N - 1, 0);
    assert_float_equal(b->r.ulp.sum, 2 * N, 0);
    assert_int_equal(b->r.ulp.n, 4 * N);
    assert_int_equal(place(b, IN_PLACE), 0);
    assert_null(strstr(b->play.log, "error"));
    b->r.op = OP_MAX; /* which has none */
    assert_int_equal(place(b, OUT_OF_PLACE), 0);
    assert_null(strstr(b->play.log, "error"));
    tear_down(b);
}

/* One rank after the other is late, by twice an operation's time and 2 ms. */
static void a_barrier_is_checked_rank_by_rank(void **state)
{
    struct fixture *b = set_up(1e-3);

    (void)state;
    b->r.coll = COLL_BARRIER;
    b->r.algo = ALGO_DIRECT;
    b->r.count = b->r.bytes = 0;
    b->script.early = 2;
    assert_int_equal(place(b, OUT_OF_PLACE), 0);
    assert_string_equal(strstr(b->play.log, "check"),
                        "check again 0 late 0 after 4000000 ways 0\n"
                        "check again 0 late 1 after 4000000 ways 0\n"
                        "check again 0 late 2 after 4000000 ways 0\n");
    assert_true(b->r.run[OUT_OF_PLACE].checked);
    assert_int_equal(b->r.run[OUT_OF_PLACE].wrong, 2);
    assert_int_equal(b->s.wrong, 2);
    tear_down(b);
}

/* ---- another algorithm ---- */

static void what_runs_instead_is_predicted_and_checked(void **state)
{
    struct fixture *b = set_up(1e-6);

    (void)state;
    b->script.instead = ALGO_SHARP;
    assert_int_equal(place(b, OUT_OF_PLACE), 0);
    assert_true(b->r.pred.time_ps > US / 10); /* by the model, in place of what this test says */
    assert_int_equal(b->s.tries_algo, ALGO_SHARP);
    assert_int_equal(b->s.sampled.by, ALGO_SHARP);
    assert_int_equal(b->r.algo, ALGO_RING);
    tear_down(b);
}

static void a_run_that_fell_back_says_why(void **state)
{
    static const struct {
        uint32_t aggregated; /* of 20 */
        bool lacks_trees;
        const char *before, *after; /* what the sweep says */
        bool says;
    } rows[] = {
        {20, false, "", "", false},      {20, false, "old", "", false}, /* of another row */
        {19, false, "old", "", true},    {20, true, "old", "", true},
        {20, false, "old", "new", true}, {20, false, "", "new", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture *b = set_up(1e-6);
        const char *last = *rows[i].after ? rows[i].after : rows[i].before;

        strcpy(b->s.fell_back, rows[i].before);
        b->script.aggregated = rows[i].aggregated;
        b->script.lacks_trees = rows[i].lacks_trees;
        b->script.fell_back = *rows[i].after ? rows[i].after : NULL;
        b->script.goes_on = true;
        assert_int_equal(place(b, OUT_OF_PLACE), 0);
        assert_int_equal(b->r.run[OUT_OF_PLACE].aggregated, rows[i].aggregated);
        assert_true(b->r.run[OUT_OF_PLACE].end.goes_on);
        assert_string_equal(b->r.run[OUT_OF_PLACE].fell_back, rows[i].says ? last : "");
        assert_int_equal(b->s.sampled.cut, *rows[i].after != '\0');
        tear_down(b);
    }
}

/* ---- a row's time ---- */

static void a_place_has_the_time_of_its_row(void **state)
{
    static const struct {
        unsigned asked;
        int place;
        enum coll_kind coll;
        double row_s, place_s; /* 0: as before */
    } rows[] = {
        {PLACE_BOTH, OUT_OF_PLACE, COLL_ALLREDUCE, 6000, 3000},
        {PLACE_BOTH, OUT_OF_PLACE, COLL_ALLTOALL, 6000, 6000}, /* which has no other */
        {PLACE_BOTH, IN_PLACE, COLL_ALLREDUCE, 0, 0},
        {PLACE_OUT, OUT_OF_PLACE, COLL_ALLREDUCE, 6000, 6000},
        {PLACE_IN, IN_PLACE, COLL_ALLREDUCE, 6000, 6000},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture *b = set_up(1e-6);
        int64_t now = clock_mono_ns(), old = now + 100000 * SEC;

        b->r.coll = rows[i].coll;
        b->r.algo = rows[i].coll == COLL_ALLTOALL ? ALGO_DIRECT : ALGO_RING;
        b->o.place = rows[i].asked;
        b->s.row_until = old;
        assert_int_equal(place(b, rows[i].place), 0);
        if (rows[i].row_s > 0) { /* set since then, and not an hour ago */
            assert_true(b->s.row_until >= now + (int64_t)(rows[i].row_s * 1e9));
            assert_true(b->s.row_until < old);
            assert_int_equal(b->s.row_until - b->s.until,
                             (int64_t)((rows[i].row_s - rows[i].place_s) * 1e9));
        } else {
            assert_int_equal(b->s.row_until, old);
            assert_int_equal(b->s.until, old);
        }
        tear_down(b);
    }
}

/* The operations that fit into the 3,000 s of the out-of-place part, by the expected time of
 * one. */
static void what_has_no_time_is_cut(void **state)
{
    static const struct {
        double one_s;
        const char *log, *cut;
        unsigned iters, unmeasured; /* iters 0: nothing was measured */
    } rows[] = {
        {100, "run 1\nrun 12\n", "12 of 20 iterations", 12, 0}, /* a run has 1,200 s */
        {1000, "run 1\nrun 2\n", "2 of 20 iterations", 2, 0},   /* but two operations at least, */
        {1400, "run 1\nrun 2\n", "2 of 20 iterations", 2, 0},
        /* if the row has time for them; half of it at most is for warm-ups */
        {1600, "run 1\n", "after 0 warm-ups, 1 of 20 iterations", 1, 0},
        {2990, "run 1\n", "after 0 warm-ups, 1 of 20 iterations", 1, 0},
        {3200, "", "not measured, an operation takes about 3.2e+03 s here", 0, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture *b = set_up(rows[i].one_s);
        const struct run_result *run = &b->r.run[OUT_OF_PLACE];
        char log[512];

        snprintf(log, sizeof(log), "%s%s%s", PREPARE("0"), rows[i].log,
                 rows[i].iters ? CHECK("0") : "");
        assert_int_equal(place(b, OUT_OF_PLACE), 0);
        assert_string_equal(b->play.log, log);
        assert_string_equal(run->cut, rows[i].cut);
        assert_int_equal(run->valid, rows[i].iters > 0);
        assert_int_equal(run->iters, rows[i].iters);
        assert_int_equal(b->s.unmeasured, rows[i].unmeasured);
        tear_down(b);
    }
}

/* In place half of what is left at most is for the check, which is one more operation. */
static void time_is_left_for_checks(void **state)
{
    struct fixture *b = set_up(400);

    (void)state;
    b->s.row_until = clock_mono_ns() + 3000 * SEC;
    b->o.warmup = 0;
    dilation_init(&b->s.dilation, false, 1e6);
    assert_int_equal(place(b, IN_PLACE), 0); /* 2,600 s for the run */
    assert_int_equal(b->r.run[IN_PLACE].iters, 6);
    b->s.row_until = clock_mono_ns() + 600 * SEC;
    assert_int_equal(place(b, IN_PLACE), 0);
    assert_int_equal(b->r.run[IN_PLACE].iters, 1);
    b->o.check = 0;
    b->s.row_until = clock_mono_ns() + 3000 * SEC;
    assert_int_equal(place(b, IN_PLACE), 0); /* all of it */
    assert_int_equal(b->r.run[IN_PLACE].iters, 7);
    tear_down(b);
}

/* A barrier's check is the late one, of two operations' time, and the operation. */
static void a_barrier_is_checked_as_far_as_there_is_time(void **state)
{
    struct fixture *b = set_up(300);

    (void)state;
    b->r.coll = COLL_BARRIER;
    b->r.algo = ALGO_DIRECT;
    b->r.count = b->r.bytes = 0;
    b->o.place = PLACE_IN; /* so that the row's time is what this test says */
    b->o.warmup = 0;
    b->o.max_wall = 700;
    assert_int_equal(place(b, OUT_OF_PLACE), 0);
    assert_string_equal(b->r.run[OUT_OF_PLACE].cut, "1 of 20 iterations, 0 of 3 checks");
    assert_false(b->r.run[OUT_OF_PLACE].checked);
    assert_int_equal(b->s.unmeasured, 1);
    tear_down(b);
}

/* Fewer operations than were asked for, because they were told to end. */
static void a_run_has_as_many_operations_as_ranks_say(void **state)
{
    struct fixture *b = set_up(1e-6);

    (void)state;
    b->script.iters_done = 4;
    b->o.warmup = 0;
    assert_int_equal(place(b, OUT_OF_PLACE), 0);
    assert_int_equal(b->r.run[OUT_OF_PLACE].iters, 4);
    assert_float_equal(b->r.run[OUT_OF_PLACE].time_us, 4.5 / 4, 1e-12);
    assert_int_equal(b->r.run[OUT_OF_PLACE].times.n, 4);
    assert_string_equal(b->r.run[OUT_OF_PLACE].cut, "4 of 20 iterations");
    tear_down(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_prepared_warmed_up_timed_and_checked),
        cmocka_unit_test(options_leave_out_commands),
        cmocka_unit_test(errors_are_measured_out_of_place),
        cmocka_unit_test(a_barrier_is_checked_rank_by_rank),
        cmocka_unit_test(what_runs_instead_is_predicted_and_checked),
        cmocka_unit_test(a_run_that_fell_back_says_why),
        cmocka_unit_test(a_place_has_the_time_of_its_row),
        cmocka_unit_test(what_has_no_time_is_cut),
        cmocka_unit_test(time_is_left_for_checks),
        cmocka_unit_test(a_barrier_is_checked_as_far_as_there_is_time),
        cmocka_unit_test(a_run_has_as_many_operations_as_ranks_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
