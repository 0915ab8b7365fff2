/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The estimator of the dilation, step by step: what its three bounds, its margins and its line give for
 * figures that can be worked out by hand.
 */
#include "host/bench/dilation_control.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MS     1000000000ll /* ps */

/* Of 1 ms: a hand-off that is late by 150 us, with a margin of 1.3, asks for 9.75. */
static void the_first_dilation_is_the_largest_bound(void **state)
{
    static const struct {
        unsigned handoffs;
        uint64_t bytes;
        double max_wall, max_op;
        uint32_t d;
    } rows[] = {
        {1, 0, 2, 0, 10},
        {2, 0, 2, 0, 20},
        {0, 0, 2, 0, 1},
        /* four ranks' bursts at 1 GB/s, in a twenty-fifth of the time */
        {1, 90000, 2, 0, 10},
        {1, 199000, 2, 0, 20},
        {1, 1 << 20, 2, 0, 105},
        {1, 1 << 21, 2, 0, 105},
        /* all that they copy, in the whole time */
        {1, 100000000, 2, 0, 400},
        /* an operation lasts three times as long as a run at most; the rate stays */
        {1, 1 << 20, 0.01, 0, 30},
        {9, 0, 0.01, 0, 30},
        {1, 100000000, 0.01, 0, 400},
        {1, 100000000, 0.01, 0.02, 20},
        {1, 1 << 20, 0.01, 0.02, 20},
        {1, 0, 0.01, 0.02, 10},
    };

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        const struct coll_prediction pr = {
            .time_ps = MS, .handoffs = rows[i].handoffs, .busiest_link_bytes = rows[i].bytes};
        struct dilation_control p;

        dilation_init(&p, true, rows[i].max_wall);
        p.max_op = rows[i].max_op;
        assert_int_equal(dilation_first(&p, &pr, 4), rows[i].d);
    }
}

static void iterations_fit_the_time_of_a_run(void **state)
{
    static const struct {
        unsigned want;
        uint32_t dilation; /* of 1 ms, within 2 s */
        unsigned iters, warm_ups;
    } rows[] = {
        {20, 100, 20, 20}, {20, 101, 19, 19}, {20, 667, 2, 2}, {20, 666, 3, 3},
        {20, 1001, 2, 2},  {20, 5000, 2, 2},  {3, 2000, 2, 2}, {2, 5000, 2, 2},
        {1, 5000, 1, 1},   {1, 2000, 1, 2},   {0, 100, 0, 0},
    };
    const struct coll_prediction pr = {.time_ps = MS};
    struct dilation_control p;

    (void)state;
    dilation_init(&p, true, 2);
    for (size_t i = 0; i < LEN(rows); i++) {
        assert_int_equal(dilation_iters(&p, rows[i].want, &pr, rows[i].dilation), rows[i].iters);
        assert_int_equal(dilation_warm_up(&p, rows[i].want, &pr, rows[i].dilation),
                         rows[i].warm_ups);
    }
}

/* ---- learning ---- */

static void a_late_run_lowers_the_rate_or_raises_the_lag(void **state)
{
    static const struct {
        bool ok;
        unsigned handoffs;
        uint64_t bytes;
        uint32_t dilation;
        int64_t late_ns;
        double rate, lag;
    } rows[] = {
        /* four ranks' 400 MB in 1 ms: half of what was asked of the machine, if that is less */
        {false, 1, 100000000, 400, 1, 0.5e9, 150e3},
        {false, 1, 100000000, 300, 1, 2e9 / 3, 150e3},
        {false, 1, 100000000, 100, 1, 1e9, 150e3},
        {false, 1, 100000000, 400000, 1, 20e6, 150e3},
        /* the burst bound it */
        {false, 1, 1 << 20, 100, 1, (1 << 20) * 4e3 / 200, 150e3},
        /* the lag did, or the run held: more counts fully, less by half, within bounds */
        {false, 10, 200000, 400, 300000, 1e9, 300e3},
        {false, 10, 200000, 400, 50000, 1e9, 100e3},
        {true, 1, 100000000, 400, 300000, 1e9, 300e3},
        {true, 1, 100000000, 400, 50000, 1e9, 100e3},
        {true, 1, 100000000, 400, 150000, 1e9, 150e3},
        {true, 1, 100000000, 400, 3000000, 1e9, 2e6},
    };

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        const struct coll_prediction pr = {
            .time_ps = MS, .handoffs = rows[i].handoffs, .busiest_link_bytes = rows[i].bytes};
        struct dilation_control p;

        dilation_init(&p, true, 2);
        dilation_learn(&p, &pr, 4, rows[i].late_ns, rows[i].dilation, rows[i].ok);
        assert_float_equal(p.rate_Bps, rows[i].rate, 1);
        assert_float_equal(p.lag_ns, rows[i].lag, 1e-3);
    }
}

static void the_lag_does_not_vanish(void **state)
{
    const struct coll_prediction pr = {.time_ps = MS, .handoffs = 1};
    static const double lag[] = {75e3, 37.5e3, 20e3, 20e3}; /* half of it, but 20 us at least */
    struct dilation_control p;

    (void)state;
    dilation_init(&p, true, 2);
    for (size_t i = 0; i < LEN(lag); i++) {
        dilation_learn(&p, &pr, 4, 0, 10, true);
        assert_float_equal(p.lag_ns, lag[i], 1e-3);
    }
}

/* ---- the search ---- */

struct answer {
    uint32_t d, needed;
    double us;
    uint32_t next; /* and the search has ended with the last of a table */
};

static void search(const struct answer *a, unsigned n, bool ends, double max_wall)
{
    const struct coll_prediction pr = {.time_ps = MS};
    struct dilation_tries t = {0};
    struct dilation_control p;

    dilation_init(&p, true, max_wall);
    for (unsigned i = 0; i < n; i++) {
        assert_false(t.settled);
        assert_int_equal(dilation_settle(&p, &t, &pr, a[i].d, a[i].needed, a[i].us), a[i].next);
    }
    assert_int_equal(t.settled, ends);
}

#define SEARCH(a, ends) search(a, LEN(a), ends, 2)

/* Without own work: 1.15 times the median of what samples needed, the lower of two in the middle. */
static void a_search_without_own_work_ends_above_the_median(void **state)
{
    static const struct answer a[] = {
        {100, 50, 1000, 58}, /* 57.5 */
        {58, 60, 1000, 29},  /* half of that, for the line */
        {29, 50, 1000, 58},  /* and again, for a fourth sample */
        {58, 60, 1000, 58},
    };

    (void)state;
    SEARCH(a, true);
}

static void steps_are_bounded(void **state)
{
    static const struct answer down[] = {{1000, 1, 1000, 250}, {250, 1, 1000, 125}};
    static const struct answer up[] = {{10, 1000, 1000, 80}, {80, 10000, 1000, 640}};
    static const struct answer cap[] = {{5000, 9000, 1000, 6000}, {6000, 9000, 1000, 6000}};
    static const struct answer beyond[] = {{7000, 9000, 1000, 7000}}; /* it began above the cap */

    (void)state;
    SEARCH(down, false);
    SEARCH(up, false);
    SEARCH(cap, true);
    SEARCH(beyond, true);
}

/* A sample that needs over four times its dilation, and takes over 15 % longer than the shortest. */
static void a_search_stays_above_overload(void **state)
{
    static const struct answer halfway[] = {{100, 10, 1000, 25}, {50, 201, 1151, 71}};
    static const struct answer near[] = {{100, 10, 1000, 25}, {80, 321, 1151, 100}};
    static const struct answer nothing_held[] = {{40, 20, 1000, 23}, {50, 201, 1151, 100}};
    /* Not overloaded, so that they count in the median. */
    static const struct answer not_longer[] = {{100, 10, 1000, 25}, {50, 201, 1149, 25}};
    static const struct answer not_late[] = {{100, 10, 1000, 25}, {50, 200, 1151, 25}};

    (void)state;
    SEARCH(halfway, false);
    SEARCH(near, false);
    SEARCH(nothing_held, false);
    SEARCH(not_longer, false);
    SEARCH(not_late, false);
}

/* us = 100 + 10,000 / d: 5,000 is where own work is 2 %; less three standard errors it is 1,646. */
static void own_work_is_sought_below_its_estimate(void **state)
{
    static const struct answer a[] = {{400, 1, 500, 100}, {100, 1, 200, 50}, {1000, 1, 110, 1646}};

    (void)state;
    SEARCH(a, false);
}

/* ---- the end of a search ---- */

/* us = 100 + 201 / d: own work is 2 % of that at 100.5. */
#define AT_40                                                                                      \
    {                                                                                              \
        40, 10, 105.025, false                                                                     \
    }
#define AT_20                                                                                      \
    {                                                                                              \
        20, 10, 110.05, false                                                                      \
    }

static void own_work_has_a_margin_where_operations_are_short(void **state)
{
    static const struct {
        struct dilation_try at[3];
        unsigned n;
        double max_wall, max_op;
        uint32_t d, slow, next;
    } rows[] = {
        {{{0}}, 0, 2, 0, 7, 0, 7},
        {{AT_40, AT_20}, 2, 30, 0, 20, 101, 202}, /* twice, up to a thirtieth of a run */
        {{AT_40, AT_20}, 2, 4.5, 0, 20, 101, 150},
        {{AT_40, AT_20}, 2, 2, 0, 20, 101, 101},
        {{AT_40, AT_20}, 2, 0.02, 0, 20, 101, 60}, /* the cap */
        {{AT_40, AT_20}, 2, 0.02, 0, 70, 101, 70},
        {{AT_40, AT_20}, 2, 2, 0.05, 20, 101, 50},
        {{{40, 10, 105.025, true}, AT_20}, 2, 2, 0, 20, 0, 12}, /* the first touches memory */
        {{AT_20, {26, 10, 100 + 201 / 26.0, false}},
         2,
         2,
         0,
         20,
         101,
         101}, /* far enough apart, just so */
        {{AT_20, {25.9, 10, 107.7, false}}, 2, 2, 0, 20, 0, 12},
        {{AT_40, {20, 80, 110.05, false}}, 2, 2, 0, 20, 0, 12}, /* that one was interrupted */
        {{AT_40, {20, 79, 110.05, false}}, 2, 2, 0, 20, 101, 101},
        {{{40, 0, 100, true}, {20, 0, 100, true}}, 2, 2, 0, 20, 0, 20}, /* nothing is asked for */
        {{{40, 100, 100, false}, {20, 50, 100, false}, {30, 60, 100, false}}, 3, 2, 0, 20, 0, 69},
    };

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        const struct coll_prediction pr = {.time_ps = MS};
        struct dilation_tries t = {.n = rows[i].n};
        struct dilation_control p;

        for (unsigned k = 0; k < rows[i].n; k++)
            t.at[k] = rows[i].at[k];
        dilation_init(&p, true, rows[i].max_wall);
        p.max_op = rows[i].max_op;
        assert_int_equal(dilation_end(&p, &t, &pr, rows[i].d), rows[i].next);
        assert_int_equal(t.slow, rows[i].slow);
        assert_true(t.settled);
    }
}

/* ---- the judgement of a run ---- */

static void a_run_is_judged_by_its_time(void **state)
{
    static const struct {
        double us; /* at 2,000, beside 100 of the shortest */
        bool ok, blind;
        uint32_t needed;
    } rows[] = {
        {102.4, true, false, 500},
        {102.6, false, false, 2600}, /* 2.6 %, of 2 */
        {120, false, false, 16000},  /* eight times as much at most */
    };

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        struct fidelity f = {.ok = true, .needed = 500};
        struct dilation_tries t = {.n = 2, .warm = true, .least_us = 100};

        t.at[0] = (struct dilation_try){1000, 1, 100, false};
        t.at[1] = (struct dilation_try){4000, 1, 100, false};
        dilation_compare(&f, &t, 2000, rows[i].us);
        assert_int_equal(f.ok, rows[i].ok);
        assert_int_equal(f.blind, rows[i].blind);
        assert_in_range(f.needed, rows[i].needed, rows[i].needed + 1);
        assert_int_equal(t.n, 3);
        assert_false(t.at[2].cold);
    }
}

/* Samples a factor of two apart, less what two tries at the same differ by. */
static void a_run_without_samples_apart_is_blind(void **state)
{
    static const struct {
        double d;
        bool blind;
    } rows[] = {{1000 * 1.2 / 2.0 + 0.5, true}, {1000 * 1.2 / 2.0, false}, {1000, true}};

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        struct fidelity f = {.ok = true, .needed = 500};
        struct dilation_tries t = {.n = 1, .warm = true};

        t.at[0] = (struct dilation_try){rows[i].d, 1, 100, false};
        dilation_compare(&f, &t, 1000, 100);
        assert_int_equal(f.blind, rows[i].blind);
        assert_int_equal(f.ok, !rows[i].blind);
        assert_int_equal(f.needed, rows[i].blind ? 2000 : 500);
    }
}

static void a_full_search_keeps_its_samples(void **state)
{
    struct fidelity f = {.ok = true, .needed = 500};
    struct dilation_tries t = {.n = LEN(t.at), .warm = true};

    (void)state;
    for (unsigned i = 0; i < LEN(t.at); i++)
        t.at[i] = (struct dilation_try){i % 2 ? 1000 : 4000, 1, 100, false};
    dilation_compare(&f, &t, 2000, 100);
    assert_int_equal(t.n, LEN(t.at));
    assert_true(f.ok);
    dilation_again(&t);
    assert_int_equal(t.most, LEN(t.at) + DILATION_MORE);
    assert_false(t.settled || t.warm || t.least_us > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_dilation_is_the_largest_bound),
        cmocka_unit_test(iterations_fit_the_time_of_a_run),
        cmocka_unit_test(a_late_run_lowers_the_rate_or_raises_the_lag),
        cmocka_unit_test(the_lag_does_not_vanish),
        cmocka_unit_test(a_search_without_own_work_ends_above_the_median),
        cmocka_unit_test(steps_are_bounded),
        cmocka_unit_test(a_search_stays_above_overload),
        cmocka_unit_test(own_work_is_sought_below_its_estimate),
        cmocka_unit_test(own_work_has_a_margin_where_operations_are_short),
        cmocka_unit_test(a_run_is_judged_by_its_time),
        cmocka_unit_test(a_run_without_samples_apart_is_blind),
        cmocka_unit_test(a_full_search_keeps_its_samples),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
