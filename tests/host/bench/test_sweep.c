/* SPDX-License-Identifier: BSD-3-Clause */
/* Which rows a sweep runs, in what order, by which predictions, and what it leaves out once one failed. */
#include "host/bench/sweep.h"

#include "host/bench/result_rows.h"
#include "host/coll/transport/agg.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define LEAFSPINE "conf/leaf-spine-8.conf"
#define RAILS     "conf/rail-2x4.conf"

/* ---- a sweep whose rows take no time ---- */

static struct sweep *s;
static struct perf_opts o;
static char *text;                          /* what it printed */
static char log_text[4096];                 /* a word for each call of `place` */
static unsigned fails_at, calls, rows_done; /* the call that fails, from 1; 0: none */
static int fails_with;
static uint32_t needs; /* what runs need, who lag for that; 0: they do not */
static char aborted[OPT_ERR];

static int place(struct sweep *sw, struct row *r, int where)
{
    size_t at = strlen(log_text);

    if (sweep_left_out(sw, r, where))
        return 0;
    snprintf(log_text + at, sizeof(log_text) - at, "%s %llu %s %s %s\n", row_algo_name(r),
             (unsigned long long)r->bytes, row_type(r), row_op(r),
             where == IN_PLACE ? "in" : "out");
    if (++calls == fails_at) {
        if (fails_with == -ETIMEDOUT)
            strcpy(r->run[where].cut, "no time");
        return fails_with;
    }
    r->run[where] = (struct run_result){.valid = true,
                                        .time_us = 1,
                                        .iters = 1,
                                        .dilation = 1,
                                        .fid = {.ok = !needs, .needed = needs}};
    return 0;
}

static void row_done(struct sweep *sw)
{
    (void)sw;
    rows_done++;
}

static void abort_job(struct sweep *sw, const char *why)
{
    (void)sw;
    snprintf(aborted, sizeof(aborted), "%s", why);
}

static void plan(const char *conf, const char *args)
{
    static char line[256];
    char *argv[16] = {(char *)(uintptr_t) "trib-perf"}, *save = NULL, err[OPT_ERR];
    int argc = 1;

    snprintf(line, sizeof(line), "%s %s", conf, args);
    for (char *t = strtok_r(line, " ", &save); t && argc < 16; t = strtok_r(NULL, " ", &save))
        argv[argc++] = t;
    if (perf_options_parse(&o, argc, argv, err))
        fail_msg("%s: %s", args, err);
    s = calloc(1, sizeof(*s));
    assert_non_null(s);
    s->o = &o;
    s->fab = fabric_load(conf, NULL);
    assert_non_null(s->fab);
    if (sweep_plan(s, err))
        fail_msg("%s: %s", args, err);
    s->place = place;
    s->row_done = row_done;
    s->abort_job = abort_job;
    *log_text = *aborted = '\0';
    calls = fails_at = rows_done = needs = 0;
}

static struct fabric *changed(void)
{
    return (struct fabric *)(uintptr_t)s->fab;
}

static int run(void)
{
    FILE *out = stdout, *f;
    size_t size;
    int rc;

    free(text);
    text = NULL;
    f = open_memstream(&text, &size);
    stdout = f;
    rc = sweep_run(s);
    stdout = out;
    fclose(f);
    return rc;
}

static void close_sweep(void)
{
    sweep_free(s);
    fabric_free(changed());
    free(s);
    s = NULL;
}

static unsigned times(const char *what)
{
    unsigned n = 0;

    for (const char *p = text; (p = strstr(p, what)); p++)
        n++;
    return n;
}

/* ---- which rows ---- */

static void every_row_runs_in_order(void **state)
{
    static const struct {
        const char *conf, *args, *log;
        unsigned rows;
    } rows[] = {
        {LEAFSPINE, "-b 4K -e 16K",
         "ring 4096 float sum out\nring 4096 float sum in\nring 16384 float sum out\n"
         "ring 16384 float sum in\nsharp 4096 float sum out\nsharp 4096 float sum in\n"
         "sharp 16384 float sum out\nsharp 16384 float sum in\n",
         4},
        {LEAFSPINE, "-b 4K -e 4K --place out --algo sharp,ring",
         "sharp 4096 float sum out\nring 4096 float sum out\n", 2},
        {LEAFSPINE, "-b 4K -e 4K --place in --algo ring", "ring 4096 float sum in\n", 1},
        {LEAFSPINE, "-b 4K -e 4K --algo ring -d bfloat16,int8 -o max,sum --place out",
         "ring 4096 bfloat16 max out\nring 4096 bfloat16 sum out\nring 4096 int8 max out\n"
         "ring 4096 int8 sum out\n",
         4},
        /* bit operations of integers alone; of types of 2 bytes no row of 1 byte */
        {LEAFSPINE, "-b 1 -e 1 --algo ring -d int8,int32,fp16 -o band,sum --place out",
         "ring 1 int8 band out\nring 1 int8 sum out\n", 2},
        /* whole elements for each rank */
        {LEAFSPINE, "all_gather -b 100 -e 100 --algo ring",
         "ring 96 float none out\nring 96 float none in\n", 1},
        {LEAFSPINE, "alltoall -b 256 -e 256 --algo direct", "direct 256 float none out\n", 1},
        {LEAFSPINE, "alltoall -k 2 -b 256 -e 256 --algo direct", "direct 256 float none out\n", 1},
        {LEAFSPINE, "barrier --algo direct", "direct 0 none none out\n", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        plan(rows[i].conf, rows[i].args);
        assert_int_equal(run(), 0);
        assert_string_equal(log_text, rows[i].log);
        assert_int_equal(s->n_rows, rows[i].rows);
        assert_int_equal(rows_done, rows[i].rows);
        assert_int_equal(s->ended, 0);
        close_sweep();
    }
}

static void a_row_has_what_its_options_say(void **state)
{
    const struct row *r;

    (void)state;
    plan(LEAFSPINE, "reduce -b 4K -e 4K -r 3 --algo sharp,ring --place out");
    changed()->costs.agg_until_bytes = 1000;
    assert_int_equal(run(), 0);
    assert_int_equal(s->n_rows, 2);
    r = &s->rows[0];
    assert_true(r->coll == COLL_REDUCE && r->algo == ALGO_SHARP);
    assert_int_equal(r->root, 3);
    assert_int_equal(r->nranks, 8);
    assert_int_equal(r->count, 1024);
    assert_int_equal(r->bytes, 4096);
    assert_int_equal(r->until, 1000); /* switches sum */
    assert_true(r->emulated && !r->staged && !r->chosen && !r->file);
    assert_float_equal(r->bound, 0, 0);
    assert_int_equal(s->rows[1].until, 0);
    assert_int_equal(r->link_bps, s->fab->links[r->pred.busiest_dirlink / 2].rate_bps);
    assert_true(r->link_bps > 0);
    close_sweep();
    plan(LEAFSPINE, "alltoall -b 4K -e 4K -k 2 --algo direct");
    strcpy(s->memory, "cuda:0");
    assert_int_equal(run(), 0);
    assert_int_equal(s->rows[0].sparse, 2);
    assert_int_equal(s->rows[0].count, 512);
    assert_true(s->rows[0].staged);
    assert_non_null(strstr(text, "# Memory: cuda:0\n"));
    close_sweep();
    plan(LEAFSPINE, "broadcast -b 4K -e 4K --algo sharp");
    changed()->costs.agg_until_bytes = 1000;
    assert_int_equal(run(), 0);
    assert_int_equal(s->rows[0].until, 0); /* nothing is summed */
    close_sweep();
    plan(RAILS, "-b 4K -e 4K --algo hier_sharp,nvls_sharp,hier --mm-self");
    changed()->costs.agg_until_bytes = 1000;
    assert_int_equal(run(), 0);
    assert_int_equal(s->rows[0].until, 1000);
    assert_int_equal(s->rows[1].until, 1000);
    assert_int_equal(s->rows[2].until, 0);
    assert_true(s->rows[1].mm_self);
    close_sweep();
    plan(LEAFSPINE, "-b 4K -e 4K --algo auto");
    assert_int_equal(run(), 0);
    assert_true(s->rows[0].chosen);
    assert_int_not_equal(s->rows[0].algo, ALGO_AUTO);
    assert_true(*s->rows[0].why);
    assert_non_null(strstr(text, "# Algorithm: auto\n"));
    assert_int_equal(sweep_chosen(s), 1u << s->rows[0].algo);
    close_sweep();
}

static void what_is_printed_follows_the_rows(void **state)
{
    (void)state;
    plan(LEAFSPINE, "-b 4K -e 16K");
    assert_int_equal(run(), 0);
    assert_int_equal(times("# Algorithm: "), 2);
    assert_int_equal(times("\n        4096 "), 5); /* two algorithms, two places, and their ratio */
    assert_int_equal(times("# Avg bus bandwidth"), 2);
    assert_int_equal(times("SHARP against ring"), 1);
    assert_int_equal(times("Left out") + times("Memory"), 0);
    close_sweep();
    plan(LEAFSPINE, "-b 4K -e 4K --algo ring");
    strcpy(s->no_hw, "there is none");
    sweep_granted(s, &(struct coll_grant){.trees_asked = 2, .why = "full"});
    assert_int_equal(run(), 0);
    assert_non_null(strstr(text, "# Left out: nvls-hw: there is none\n"));
    assert_non_null(strstr(text, "# Aggregation: none of 2 trees because full\n"));
    close_sweep();
}

/* Where the dilation is the job's to choose, what it would need is told. */
static void a_larger_max_wall_is_named_where_it_would_help(void **state)
{
    (void)state;
    for (int adaptive = 0; adaptive < 2; adaptive++) {
        plan(LEAFSPINE, "-b 4K -e 4K --algo ring --place out --max-wall 1");
        s->dilation.adaptive = adaptive;
        needs = 1000000; /* of 1 us: a second for each of ROW_OPS */
        assert_int_equal(run(), 0);
        assert_int_equal(times("# To keep up           : about --max-wall 12,"), adaptive);
        close_sweep();
    }
}

/* ---- what types and reductions ---- */

static void types_have_some_reductions(void **state)
{
    static const struct {
        const char *args;
        enum dtype t;
        enum redop op;
        bool wants;
    } rows[] = {
        {"-d int8 -o sum", DT_INT8, OP_SUM, true},
        {"-d int8 -o sum", DT_INT8, OP_MAX, false},
        {"-d int8 -o sum", DT_FP32, OP_SUM, false},
        {"-d int8,float -o band", DT_INT8, OP_BAND, true},
        {"-d int8,float -o band", DT_FP32, OP_BAND, false},
        {"all_gather -d int8 -o max", DT_INT8, 0, true},
        {"all_gather -d int8 -o max", DT_INT8, OP_MAX, false},
        {"all_gather -d int8 -o max", DT_FP32, 0, false},
        {"barrier -d float", 0, 0, true},
        {"barrier -d float", DT_FP32, 0, false},
        {"barrier -d float", 0, 1, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        plan(LEAFSPINE, rows[i].args);
        assert_int_equal(sweep_wants(s, rows[i].t, rows[i].op), rows[i].wants);
        close_sweep();
    }
}

/* GPUs have fewer, once they run the rows. */
static void types_of_gpus_are_those_of_multimem(void **state)
{
    struct nvls_hw *hw = (struct nvls_hw *)&o; /* it is not looked at */

    (void)state;
    plan(RAILS, "-d float,int8 -o sum");
    assert_true(sweep_wants(s, DT_FP32, OP_SUM) && sweep_wants(s, DT_INT8, OP_SUM));
    s->hw = hw;
    assert_true(sweep_wants(s, DT_FP32, OP_SUM));
    assert_false(sweep_wants(s, DT_INT8, OP_SUM));
    s->hw = NULL;
    close_sweep();
}

static void the_largest_row_is_of_the_first_type_and_reduction(void **state)
{
    struct row r;

    (void)state;
    plan(LEAFSPINE, "all_gather -b 4K -e 64K -d float,bfloat16");
    r = sweep_largest(s);
    assert_int_equal(r.type, DT_FP32 < DT_BF16 ? DT_FP32 : DT_BF16);
    assert_int_equal(r.count, 65536 / dtype_size(r.type) / 8);
    close_sweep();
    plan(LEAFSPINE, "reduce -b 4K -e 64K -d float -o max,min -r 2");
    r = sweep_largest(s);
    assert_int_equal(r.op, OP_MAX < OP_MIN ? OP_MAX : OP_MIN);
    assert_int_equal(r.count, 16384);
    assert_int_equal(r.root, 2);
    assert_int_equal(r.nranks, 8);
    close_sweep();
    plan(LEAFSPINE, "alltoall -k 2 -b 4K -e 64K");
    r = sweep_largest(s);
    assert_int_equal(r.sparse, 2);
    assert_int_equal(r.count, 8192);
    close_sweep();
}

/* ---- predictions ---- */

static struct coll_prediction model(enum coll_algo a, const uint16_t *tree, unsigned n,
                                    uint32_t window)
{
    struct coll_args args = {
        .kind = COLL_ALLREDUCE, .algo = a, .count = 1 << 20, .type = DT_FP32, .op = OP_SUM};
    struct coll_prediction p;

    args.send = &args;
    args.recv = &p;
    assert_int_equal(
        coll_predict_trees(s->fab, &args, s->nranks, s->host_of_rank, tree, n, window, &p), 0);
    return p;
}

static int64_t predicted(enum coll_algo a)
{
    struct row r = {.coll = COLL_ALLREDUCE,
                    .algo = ALGO_TREE,
                    .count = 1 << 20,
                    .type = DT_FP32,
                    .op = OP_SUM,
                    .nranks = s->nranks,
                    .emulated = true};
    struct coll_prediction p;

    assert_int_equal(sweep_instead(s, &r, a, &p), 0);
    assert_int_equal(r.algo, ALGO_TREE);
    assert_int_equal(r.pred.time_ps, p.time_ps); /* it has run nothing yet */
    assert_int_equal(r.link_bps, s->fab->links[p.busiest_dirlink / 2].rate_bps);
    r.run[OUT_OF_PLACE].valid = true;
    r.pred.time_ps = 7;
    assert_int_equal(sweep_instead(s, &r, a, &p), 0);
    assert_int_equal(r.pred.time_ps, 7);
    return p.time_ps;
}

/* A window and trees as granted; as asked for, where nobody has granted any yet. */
static void predictions_take_what_switches_have_granted(void **state)
{
    struct coll_grant g = {.trees = 1, .trees_asked = 2, .window = 3, .asked = 64};
    int64_t all, one;

    (void)state;
    plan(LEAFSPINE, "--window 16");
    assert_int_equal(s->n_trees, 2);
    all = model(ALGO_SHARP, s->tree, 2, 16).time_ps;
    g.tree[0] = s->tree[1];
    one = model(ALGO_SHARP, g.tree, 1, 3).time_ps;
    assert_true(one > all);
    assert_int_equal(predicted(ALGO_SHARP), all);
    sweep_granted(s, &g);
    assert_int_equal(predicted(ALGO_SHARP), one);
    assert_int_equal(predicted(ALGO_RING), model(ALGO_RING, s->tree, 2, 16).time_ps);
    g.window = 0;
    sweep_granted(s, &g);
    assert_int_equal(predicted(ALGO_SHARP), model(ALGO_SHARP, g.tree, 1, 16).time_ps);
    close_sweep();
    plan(RAILS, "--window 8 --algo hier_sharp,nvls_sharp,sharp");
    g = (struct coll_grant){.trees = 1, .window = 16, .rail = 1, .rail_asked = true};
    g.tree[0] = s->tree[0];
    sweep_granted(s, &g);
    one = model(ALGO_HIER_SHARP, s->tree, s->n_trees, 1).time_ps;
    assert_true(one != model(ALGO_HIER_SHARP, s->tree, s->n_trees, 16).time_ps);
    assert_int_equal(predicted(ALGO_HIER_SHARP), one);
    assert_int_equal(predicted(ALGO_NVLS_SHARP),
                     model(ALGO_NVLS_SHARP, s->tree, s->n_trees, 1).time_ps);
    assert_int_equal(predicted(ALGO_SHARP), model(ALGO_SHARP, s->tree, 1, 16).time_ps);
    close_sweep();
}

static void what_cannot_be_predicted_ends_the_job(void **state)
{
    struct row r = {.coll = COLL_ALLREDUCE,
                    .algo = ALGO_TREE,
                    .count = 1024,
                    .bytes = 4096,
                    .type = DT_FP32,
                    .nranks = 8,
                    .emulated = true};
    struct coll_prediction p;

    (void)state;
    plan(LEAFSPINE, "");
    assert_int_equal(sweep_instead(s, &r, ALGO_NVLS, &p), -ENOTSUP);
    assert_string_equal(s->cause, "no prediction for nvls 4096 B: Operation not supported");
    assert_string_equal(aborted, "");
    s->job = (struct job_processes *)s;
    assert_int_equal(sweep_instead(s, &r, ALGO_NVLS, &p), -ENOTSUP);
    assert_string_equal(aborted, s->cause);
    close_sweep();
}

/* A single rank moves nothing, which takes the least time there is. */
static void a_single_rank_takes_the_least_time(void **state)
{
    (void)state;
    plan(LEAFSPINE, "-g 1 -b 4K -e 4K --algo ring");
    assert_int_equal(run(), 0);
    assert_int_equal(s->rows[0].pred.time_ps, 1);
    close_sweep();
}

/* ---- the end ---- */

static void what_is_left_after_a_failure_is_named(void **state)
{
    static const char left[] = "not run: the run ended before it";

    (void)state;
    plan(LEAFSPINE, "-b 4K -e 16K --algo ring,sharp");
    fails_at = 4; /* the second row in place */
    fails_with = -EIO;
    assert_int_equal(run(), -EIO);
    assert_int_equal(calls, 4);
    assert_int_equal(s->ended, -EIO);
    assert_int_equal(s->n_rows, 4);
    assert_int_equal(rows_done, 2);
    assert_string_equal(s->rows[0].run[IN_PLACE].cut, "");
    assert_string_equal(s->rows[1].run[OUT_OF_PLACE].cut, "");
    assert_string_equal(s->rows[1].run[IN_PLACE].cut, left);
    for (int p = 0; p < PLACES; p++) {
        assert_string_equal(s->rows[2].run[p].cut, left);
        assert_string_equal(s->rows[3].run[p].cut, left);
    }
    assert_int_equal(s->rows[3].bytes, 16384);
    assert_int_equal(times("\n        4096 "), 2); /* the failed row is not printed */
    assert_int_equal(times("\n       16384 "), 0);
    assert_int_equal(times("# Avg bus") + times("against"), 0);
    assert_int_equal(times("# Algorithm"), 1);
    close_sweep();
}

/* A row that --max-wall cut is printed, for it says so. */
static void a_row_that_was_cut_is_the_last_that_is_printed(void **state)
{
    (void)state;
    for (unsigned at = 3; at <= 4; at++) {
        plan(LEAFSPINE, "-b 4K -e 16K --algo ring");
        fails_at = at;
        fails_with = -ETIMEDOUT;
        assert_int_equal(run(), -ETIMEDOUT);
        assert_int_equal(times("\n       16384 "), 2 - (at == 3));
        assert_int_equal(times(": no time\n"), 1);
        close_sweep();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_runs_in_order),
        cmocka_unit_test(a_row_has_what_its_options_say),
        cmocka_unit_test(what_is_printed_follows_the_rows),
        cmocka_unit_test(a_larger_max_wall_is_named_where_it_would_help),
        cmocka_unit_test(types_have_some_reductions),
        cmocka_unit_test(types_of_gpus_are_those_of_multimem),
        cmocka_unit_test(the_largest_row_is_of_the_first_type_and_reduction),
        cmocka_unit_test(predictions_take_what_switches_have_granted),
        cmocka_unit_test(what_cannot_be_predicted_ends_the_job),
        cmocka_unit_test(a_single_rank_takes_the_least_time),
        cmocka_unit_test(what_is_left_after_a_failure_is_named),
        cmocka_unit_test(a_row_that_was_cut_is_the_last_that_is_printed),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);

    free(text);
    return rc;
}
