/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whole results of rows (tests/sim/report/expected/): times, counters of links, switches and protocols, what
 * the world has done by then.
 */
#include "sim/report/protocol_counters.h"
#include "tests/sim/report/bench_bed.h"
#include "tests/support/expected.h"

#include <inttypes.h>

#define JSON (JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(9))

/* Each element of a list on a line of its own. */
static void print_json(json_t *j, FILE *out)
{
    size_t n = json_array_size(j);

    for (size_t i = 0; i < n; i++) {
        json_dumpf(json_array_get(j, i), out, JSON);
        fputc('\n', out);
    }
    if (j && !n)
        json_dumpf(j, out, JSON);
    fprintf(out, "%s\n", j ? "" : "none");
    json_decref(j);
}

static void print_run(const struct run_result *r, FILE *out)
{
    fprintf(out, "%.6f us, %u of %u, %s%s, %" PRIu64 " wrong, %" PRIu64 " bytes at %" PRIu64 ";",
            r->time_us, r->aggregated, r->iters, r->checked ? "checked" : "unchecked",
            r->end.goes_on ? "" : ", ends", r->wrong, r->link.bytes, r->link.rate_bps);
    for (unsigned i = 0; i < r->times.n; i++)
        fprintf(out, " %.6f", r->times.us[i]);
    fprintf(out, " %s\n", r->fell_back);
    print_json(row_counters_json(&r->counted), out);
}

static void print_bench(struct bed *t, FILE *out)
{
    struct bench_state s;
    struct congestion c;
    struct coll_grant g;

    bench_state(t->b, &s);
    bench_congestion(t->b, &c);
    bench_granted(t->b, &g);
    fprintf(out,
            "%" PRId64 " ps, %" PRIu64 " events, %" PRIu64 " frames, %u at most, %" PRIu64
            " timed; %u trees\n",
            s.fabric_ps, s.events, s.frames, s.pool_peak, s.timed.frames, g.trees);
    print_json(congestion_json(&c), out);
    if (bench_background_flow(t->b))
        print_json(background_flow_json(bench_background_flow(t->b)), out);
}

/* A row in both places where it has both. */
static void print_row(struct bed *t, FILE *out)
{
    struct counters *c;

    fprintf(out, "## %s by %s\n", coll_name(t->row.coll), row_algo_name(&t->row));
    assert_int_equal(counters_create(&c, t->f, NULL), 0);
    t->cfg.counters = c;
    t->cfg.algos |= 1u << t->row.algo;
    bed_up(t);
    for (int p = OUT_OF_PLACE; p < (row_can_be_in_place(&t->row) ? PLACES : IN_PLACE); p++) {
        place(t, p);
        print_run(&t->row.run[p], out);
        print_json(json_incref(t->row.run[p].links), out); /* the counters' */
    }
    print_bench(t, out);
    counters_print(c, out);
    print_json(counters_total(c, bench_net(t->b)), out);
    assert_int_equal(bench_leave(t->b), 0);
    counters_destroy(c);
    bed_down(t);
}

static void rows_are_as_they_were(void **state)
{
    static const struct {
        enum coll_kind kind;
        enum coll_algo algo;
    } rows[] = {{COLL_ALLREDUCE, ALGO_RING},      {COLL_ALLREDUCE, ALGO_SHARP},
                {COLL_ALLREDUCE, ALGO_PROTOCOL},  {COLL_ALLREDUCE, ALGO_PROTOCOL + 1},
                {COLL_REDUCE_SCATTER, ALGO_RING}, {COLL_ALLTOALL, ALGO_DIRECT},
                {COLL_BROADCAST, ALGO_TREE},      {COLL_BARRIER, ALGO_HALVING}};
    struct expected e;

    (void)state;
    expected_begin(&e);
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct bed t;

        bed_init(&t);
        row_of(&t, rows[i].kind, rows[i].algo);
        if (rows[i].algo >= ALGO_PROTOCOL) /* of floats they have bounds */
            t.row.type = DT_INT32;
        t.o.warmup = i % 3;
        t.o.error = i == 0;
        print_row(&t, e.out);
    }
    expected_same(&e, "tests/sim/report/expected/rows");
}

static void a_row_beside_a_flow_is_as_it_was(void **state)
{
    static const struct background_hosts flow = {0, 2};
    struct expected e;
    struct bed t;

    (void)state;
    expected_begin(&e);
    bed_init(&t);
    t.cfg.background = &flow;
    print_row(&t, e.out);
    expected_same(&e, "tests/sim/report/expected/beside");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_as_they_were),
        cmocka_unit_test(a_row_beside_a_flow_is_as_it_was),
    };

    test_eal_init();
    pool = test_pool(FRAMES);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
