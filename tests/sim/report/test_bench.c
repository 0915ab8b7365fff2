/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of a bench: what a run is, why one ends early, and which operation its time line is of. */
#include "tests/sim/report/bench_bed.h"

static const volatile int interrupted = 1;

static void a_pool_by_ranks(void **state)
{
    (void)state;
    assert_int_equal(bench_frames(0), 16384);
    assert_int_equal(bench_frames(8), 16384 + 8 * 384);
}

static void check_run(const struct run_result *r, unsigned iters, bool checked)
{
    assert_true(r->valid);
    assert_int_equal(r->iters, iters);
    assert_int_equal(r->aggregated, iters);
    assert_int_equal(r->checked, checked);
    assert_int_equal(r->wrong, 0);
    assert_int_equal(r->dilation, 1);
    assert_true(r->fid.ok);
    assert_int_equal(r->fid.needed, 1);
    assert_true(r->end.goes_on);
    assert_string_equal(r->fell_back, "");
    assert_int_equal(r->times.n, iters);
    assert_true(r->link.known);
}

/* Both places, by the ring and by the switches, take what the model says. */
static void rows(void **state)
{
    static const enum coll_algo algo[] = {ALGO_RING, ALGO_SHARP};
    struct bench_state st, later;

    (void)state;
    for (unsigned i = 0; i < LEN(algo); i++) {
        struct bed t;
        double predicted;

        bed_init(&t);
        row_of(&t, COLL_ALLREDUCE, algo[i]);
        bed_up(&t);
        assert_int_equal(bench_runs_by(t.b, &t.row), algo[i]);
        assert_null(bench_background_flow(t.b));
        assert_null(bench_timeline(t.b));
        bench_state(t.b, &st);
        assert_int_equal(st.fabric_ps, bench_now(t.b));
        assert_int_equal(st.threads, 1);
        place(&t, OUT_OF_PLACE);
        place(&t, IN_PLACE);
        check_run(&t.row.run[OUT_OF_PLACE], 3, true);
        check_run(&t.row.run[IN_PLACE], 3, true);
        predicted = (double)t.row.pred.time_ps * 1e-6;
        for (unsigned p = 0; p < PLACES; p++)
            assert_true(t.row.run[p].time_us > 0.7 * predicted &&
                        t.row.run[p].time_us < 1.3 * predicted);
        bench_state(t.b, &later);
        assert_int_equal(later.fabric_ps, bench_now(t.b));
        /* Warm-up, three operations and a check in place at least. */
        assert_true(later.fabric_ps - st.fabric_ps > 9 * 0.7 * (double)t.row.pred.time_ps);
        assert_true(later.events > later.frames && later.frames > st.frames);
        assert_true(later.timed.frames > 0 && later.timed.frames < later.frames - st.frames);
        assert_true(later.pool_peak > 0 && later.pool_peak < FRAMES);
        assert_int_equal(bench_leave(t.b), 0);
        bed_down(&t);
    }
    assert_int_equal(bench_now(NULL), 0);
}

/* Nothing is checked where there is no data, or nobody asked. */
static void unchecked(void **state)
{
    struct bed t;

    (void)state;
    bed_init(&t);
    t.o.check = 0;
    t.o.warmup = 0;
    t.o.iters = 1;
    bed_up(&t);
    place(&t, OUT_OF_PLACE);
    check_run(&t.row.run[OUT_OF_PLACE], 1, false);
    assert_int_equal(t.row.ulp.n, 0);
    bed_down(&t);
    bed_init(&t);
    t.cfg.lengths = true;
    bed_up(&t);
    place(&t, OUT_OF_PLACE);
    check_run(&t.row.run[OUT_OF_PLACE], 3, false);
    bed_down(&t);
}

static void barriers(void **state)
{
    struct bed t;

    (void)state;
    bed_init(&t);
    t.cfg.algos = 1u << ALGO_RING | 1u << ALGO_HALVING;
    row_of(&t, COLL_BARRIER, ALGO_HALVING);
    bed_up(&t);
    place(&t, OUT_OF_PLACE);
    check_run(&t.row.run[OUT_OF_PLACE], 3, true);
    bed_down(&t);
}

/* The error is that of every element at every rank, out of place. */
static void errors_of_sums(void **state)
{
    struct bed t;

    (void)state;
    bed_init(&t);
    t.o.error = true;
    bed_up(&t);
    place(&t, OUT_OF_PLACE);
    assert_int_equal(t.row.ulp.n, NRANKS * COUNT);
    place(&t, IN_PLACE);
    assert_int_equal(t.row.ulp.n, NRANKS * COUNT);
    bed_down(&t);
}

static void early_ends(void **state)
{
    struct bed t;

    (void)state;
    bed_init(&t);
    bed_up(&t);
    t.o.max_wall = 0;
    assert_int_equal(bench_place(t.b, &t.row, OUT_OF_PLACE, t.err), -ECANCELED);
    assert_string_equal(t.err, "stopped after 0 s of wall time (--max-wall)");
    assert_false(t.row.run[OUT_OF_PLACE].valid);
    bed_down(&t);
    bed_init(&t);
    t.cfg.stop = &interrupted;
    bed_up(&t);
    assert_int_equal(bench_place(t.b, &t.row, OUT_OF_PLACE, t.err), -ECANCELED);
    assert_string_equal(t.err, "interrupted");
    bed_down(&t);
    bed_init(&t);
    t.cfg.frames = 5;
    t.cfg.lengths = true;
    if (!bench_create(&t.b, &t.cfg, t.err))
        assert_int_equal(bench_place(t.b, &t.row, OUT_OF_PLACE, t.err), -ECANCELED);
    assert_string_equal(t.err, "5 frames were not enough, expected more, such as --frames 20");
    bed_down(&t);
}

/* ---- time lines ---- */

static int64_t now_ps(void *ctx)
{
    return bench_now(((struct bed *)ctx)->b);
}

/* Runs two rows; returns the number of the one that was recorded, 0: none. */
static json_int_t recorded(unsigned line_row, bool in_place_too)
{
    struct bed t;
    struct timeline_cfg tc = {.nranks = NRANKS, .host_of_rank = hosts, .now_ps = now_ps, .ctx = &t};
    struct net_timeline_cfg nc = {.nranks = NRANKS, .host_of_rank = hosts};
    json_t *j, *op;
    json_int_t row;

    bed_init(&t);
    tc.fab = nc.fab = t.f;
    assert_int_equal(timeline_create(&nc.t, &tc), 0);
    assert_int_equal(net_timeline_create(&t.cfg.line, &nc), 0);
    t.cfg.line_row = line_row;
    bed_up(&t);
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned p = 0; p < PLACES; p++) {
            op_times_free(&t.row.run[p].times);
            t.row.run[p] = (struct run_result){0};
        }
        place(&t, OUT_OF_PLACE);
        if (in_place_too)
            place(&t, IN_PLACE);
    }
    j = bench_timeline(t.b);
    assert_null(bench_timeline(t.b)); /* it is the caller's now */
    op = json_object_get(j, "operation");
    row = json_integer_value(json_object_get(op, "row"));
    if (j) {
        assert_string_equal(json_string_value(json_object_get(op, "error")), "");
        assert_true(json_is_false(json_object_get(op, "in_place")));
        assert_int_equal(json_array_size(json_object_get(j, "links")), 2 * t.f->n_links);
        assert_int_equal(json_array_size(json_object_get(j, "switches")), 3);
        assert_true(trace_events_count(timeline_events(nc.t)) > 0);
    }
    json_decref(j);
    bench_destroy(t.b);
    t.b = NULL;
    net_timeline_destroy(t.cfg.line);
    timeline_destroy(nc.t);
    bed_down(&t);
    return row;
}

static void time_lines(void **state)
{
    (void)state;
    assert_int_equal(recorded(0, false), 2);
    assert_int_equal(recorded(0, true), 2);
    assert_int_equal(recorded(1, true), 1);
    assert_int_equal(recorded(2, false), 2);
    assert_int_equal(recorded(3, false), 0);
}

/* A flow beside the ranks is in the report, in both places. */
static void beside(void **state)
{
    static const struct background_hosts flow = {0, 2};
    json_t *j;
    struct bed t;

    (void)state;
    bed_init(&t);
    t.cfg.background = &flow;
    bed_up(&t);
    assert_non_null(bench_background_flow(t.b));
    place(&t, OUT_OF_PLACE);
    check_run(&t.row.run[OUT_OF_PLACE], 3, true);
    j = background_flow_json(bench_background_flow(t.b));
    assert_non_null(j);
    json_decref(j);
    bed_down(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_by_ranks), cmocka_unit_test(rows),
        cmocka_unit_test(unchecked),       cmocka_unit_test(barriers),
        cmocka_unit_test(errors_of_sums),  cmocka_unit_test(early_ends),
        cmocka_unit_test(time_lines),      cmocka_unit_test(beside),
    };

    test_eal_init();
    pool = test_pool(FRAMES);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
