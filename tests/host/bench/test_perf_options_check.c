/* SPDX-License-Identifier: BSD-3-Clause */
/* Options together: combinations that are refused, and what follows from those that are not. */
#include "host/bench/perf_options.h"

#include "host/bench/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static struct perf_opts o;
static char err[OPT_ERR];

static int parse(const char *line)
{
    static char buf[256];
    char *argv[16] = {(char *)(uintptr_t) "trib-perf"}, *save = NULL;
    int argc = 1;

    snprintf(buf, sizeof(buf), "c.conf %s", line);
    for (char *s = strtok_r(buf, " ", &save); s && argc < 16; s = strtok_r(NULL, " ", &save))
        argv[argc++] = s;
    return perf_options_parse(&o, argc, argv, err);
}

static void combinations_are_refused_in_whole_sentences(void **state)
{
    static const char nothing[] = "--error: found nothing to measure, expected sum or avg of a "
                                  "float type by all_reduce, reduce or reduce_scatter";
    static const struct {
        const char *line, *says; /* "": it is taken */
    } rows[] = {
        {"reduce -k 2", "-k: found reduce, expected alltoall: no other collective is sparse"},
        {"alltoall -k 2", ""},
        {"alltoall --place in", "--place: found in, expected out: the collective has no other"},
        {"sendrecv --place in", "--place: found in, expected out: the collective has no other"},
        {"barrier --place in", "--place: found in, expected out: the collective has no other"},
        {"alltoall --place out", ""},
        {"gather --place in", ""},
        {"--place in --error", "--place: found in, expected out: --error is measured there"},
        {"--place out --error", ""},
        {"--mem gpu", "--mem: found \"gpu\", expected host, cuda or cuda:N"},
        {"--mem cuda --error", "--error: found --mem cuda, expected host"},
        {"--error -o max", nothing},
        {"--error -o max,avg", ""},
        {"--error -d int8", nothing},
        {"--error -d int8,half", ""},
        {"--error broadcast", nothing},
        {"--error reduce -o sum", ""},
        {"-b 5000 -e 4999", "-b: found 5000, expected at most the 4999 of -e"},
        {"-b 5000 -e 5000", ""},
        {"-i 8 -f 2", "found both -i and -f, expected one of them"},
        {"-b 1 -e 512 -i 1", ""},
        {"-b 1 -e 513 -i 1", "-i: found more than 512 sizes, expected a larger step"},
    };

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        *err = '\0';
        assert_int_equal(parse(rows[i].line), *rows[i].says ? OPT_BAD : OPT_OK);
        assert_string_equal(err, rows[i].says);
    }
    perf_options_init(&o);
    assert_int_equal(perf_options_check(&o, err), OPT_BAD);
    assert_string_equal(err, "found no CONF, expected the fabric's conf file");
}

static void an_end_of_the_range_follows_the_other(void **state)
{
    static const struct {
        const char *line;
        uint64_t min, max, step;
        unsigned factor, sizes;
    } rows[] = {
        {"", 4096, 16 << 20, 0, 4, 7},           {"-e 4095", 4095, 4095, 0, 4, 1},
        {"-e 4096", 4096, 4096, 0, 4, 1},        {"-e 4097", 4096, 4097, 0, 4, 1},
        {"-b 16M", 16 << 20, 16 << 20, 0, 4, 1}, {"-b 17M", 17 << 20, 17 << 20, 0, 4, 1},
        {"-b 8M", 8 << 20, 16 << 20, 0, 4, 1},   {"-b 8 -e 64 -f 2", 8, 64, 0, 2, 4},
        {"-b 8 -e 63 -f 2", 8, 63, 0, 2, 3},     {"-b 8 -e 64 -i 28", 8, 64, 28, 0, 3},
    };

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        uint64_t sizes[PERF_MAX_SIZES] = {0};

        assert_int_equal(parse(rows[i].line), OPT_OK);
        assert_int_equal(o.min_bytes, rows[i].min);
        assert_int_equal(o.max_bytes, rows[i].max);
        assert_int_equal(o.step_bytes, rows[i].step);
        assert_int_equal(o.factor, rows[i].factor);
        assert_int_equal(options_sizes(&o, sizes, PERF_MAX_SIZES), rows[i].sizes);
        for (unsigned k = 0; k < rows[i].sizes; k++) {
            uint64_t is = rows[i].min + k * rows[i].step;

            for (unsigned n = 0; rows[i].factor && n < k; n++)
                is *= rows[i].factor;
            assert_int_equal(sizes[k], is);
        }
        assert_int_equal(sizes[rows[i].sizes], 0);
        sizes[0] = 7;
        assert_int_equal(options_sizes(&o, sizes, 0), rows[i].sizes);
        assert_int_equal(sizes[0], 7); /* no room for any */
    }
}

static void a_run_has_a_fifth_of_a_rows_time(void **state)
{
    (void)state;
    assert_int_equal(parse(""), OPT_OK);
    assert_float_equal(o.max_wall, 60, 0);
    assert_float_equal(o.run_wall, 2, 0);
    assert_int_equal(parse("--max-wall 10"), OPT_OK);
    assert_float_equal(o.max_wall, 10, 0);
    assert_float_equal(o.run_wall, 2, 0);
    assert_int_equal(parse("--max-wall 1"), OPT_OK);
    assert_float_equal(o.run_wall, 0.2, 1e-12);
}

/* Whole pages, and a byte more than the largest size; of a sparse all-to-all every block has its place. */
static void buffers_have_room_for_the_largest_size(void **state)
{
    static const struct {
        const char *line;
        unsigned nranks;
        size_t bytes;
    } rows[] = {
        {"-b 1 -e 4095", 8, 4096},
        {"-b 1 -e 4096", 8, 8192},
        {"-b 1 -e 1M", 8, (1 << 20) + 4096},
        {"alltoall -b 1 -e 1M", 8, (1 << 20) + 4096},
        {"alltoall -k 2 -b 1 -e 1M", 8, (4 << 20) + 4096},
        {"alltoall -k 2 -b 1 -e 4096", 512, (2048 + 8) * 512 + 4096},
    };

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        assert_int_equal(parse(rows[i].line), OPT_OK);
        assert_int_equal(options_buffer(&o, rows[i].nranks), rows[i].bytes);
    }
}

static void errors_are_of_sums_of_floats(void **state)
{
    (void)state;
    for (unsigned k = 0; k < COLL_KINDS; k++)
        for (unsigned t = 0; t < DT_COUNT; t++)
            for (unsigned op = 0; op < OP_COUNT; op++) {
                bool reduces = k == COLL_ALLREDUCE || k == COLL_REDUCE || k == COLL_REDUCE_SCATTER;
                bool is_float = !strstr(dtype_name(t), "int");

                assert_int_equal(options_has_error(k, t, op),
                                 reduces && is_float && (op == OP_SUM || op == OP_AVG));
            }
}

static void failover_goes_through_a_policy_in_order(void **state)
{
    (void)state;
    assert_int_equal(parse("--policy tree,sharp,ring"), OPT_OK);
    assert_int_equal(o.n_policy, 3);
    assert_int_equal(o.policy[0], ALGO_TREE);
    assert_int_equal(o.policy[1], ALGO_SHARP);
    assert_int_equal(o.policy[2], ALGO_RING);
    assert_int_equal(parse("--policy sharp --policy ring"), OPT_OK); /* the last one counts */
    assert_int_equal(o.n_policy, 1);
    assert_int_equal(o.policy[0], ALGO_RING);
    for (unsigned i = 0; i < 3; i++) {
        static const char *const bad[] = {"ring,x", "ring,tree,ring", ","};
        char line[64], says[OPT_ERR];

        snprintf(line, sizeof(line), "--policy %s", bad[i]);
        assert_int_equal(parse(line), OPT_BAD);
        assert_int_equal(o.n_policy, 0);
        snprintf(says, sizeof(says),
                 "--policy: found \"%s\", expected a list without repetition of ring, sharp, tree, "
                 "chain, halving, pairwise, direct, nvls, hier, hier_sharp, nvls_sharp, switchml, "
                 "ps, atp, rings, pxn",
                 bad[i]);
        assert_memory_equal(err, says, strlen(says) < OPT_ERR ? strlen(says) : OPT_ERR - 1);
    }
}

static void one_algorithm_is_forced_for_all(void **state)
{
    static const struct {
        const char *name;
        unsigned algos, n_policy, policy;
    } rows[] = {
        {"sharp", 1u << ALGO_SHARP, 1, ALGO_SHARP},
        {"pxn", 1u << ALGO_PXN, 1, ALGO_PXN},
        {"auto", 1u << ALGO_AUTO, 0, 0}, /* nothing that failover could begin with */
        {"nvls-hw", 1u << PERF_NVLS_HW, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        assert_int_equal(parse("--algo tree"), OPT_OK);
        assert_int_equal(options_force_algo(&o, rows[i].name, err), OPT_OK);
        assert_true(o.forced);
        assert_int_equal(o.algos, rows[i].algos);
        assert_int_equal(o.n_policy, rows[i].n_policy);
        if (o.n_policy)
            assert_int_equal(o.policy[0], rows[i].policy);
    }
    assert_int_equal(options_force_algo(&o, "all", err), OPT_BAD);
    assert_string_equal(err, "TRIB_ALGO: found \"all\", expected one algorithm");
    o.schedule = "x";
    assert_int_equal(options_force_algo(&o, "ring", err), OPT_BAD);
    assert_string_equal(err, "TRIB_ALGO: found \"ring\", expected none with --schedule");
    assert_int_equal(options_force_algo(&o, "schedule", err), OPT_OK);
}

/* ---- memory ---- */

static void memory_is_named(void **state)
{
    static const struct {
        const char *name;
        int gpu; /* -2: refused */
    } rows[] = {
        {"host", BUFFER_HOST}, {"cuda", 0},      {"cuda:0", 0}, {"cuda:1023", 1023},
        {"cuda:1024", -2},     {"cuda:12x", -2}, {"cuda:", -2}, {"cuda: 1", -2},
        {"cuda:+1", -2},       {"cudax", -2},    {"hostx", -2}, {"", -2},
    };
    int gpu;

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++)
        if (rows[i].gpu == -2)
            assert_true(buffer_by_name(rows[i].name, &gpu) < 0);
        else {
            assert_int_equal(buffer_by_name(rows[i].name, &gpu), 0);
            assert_int_equal(gpu, rows[i].gpu);
        }
}

static void memory_of_the_host_is_zero_and_goes_back(void **state)
{
    struct buffer_kind w = {0};
    char why[DEVICE_TEXT] = "";
    uint8_t *p;

    (void)state;
    assert_int_equal(buffer_open(&w, BUFFER_HOST, why), 0);
    assert_null(w.device);
    p = buffer_alloc(&w, 8192, why);
    assert_non_null(p);
    assert_int_equal(p[0] | p[8191], 0);
    p[8191] = 1;
    buffer_free(&w, p, 8192);
    buffer_free(&w, NULL, 8192);
    assert_null(buffer_alloc(&w, SIZE_MAX / 2, why));
    assert_string_equal(why, "Cannot allocate memory");
    buffer_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(combinations_are_refused_in_whole_sentences),
        cmocka_unit_test(an_end_of_the_range_follows_the_other),
        cmocka_unit_test(a_run_has_a_fifth_of_a_rows_time),
        cmocka_unit_test(buffers_have_room_for_the_largest_size),
        cmocka_unit_test(errors_are_of_sums_of_floats),
        cmocka_unit_test(failover_goes_through_a_policy_in_order),
        cmocka_unit_test(one_algorithm_is_forced_for_all),
        cmocka_unit_test(memory_is_named),
        cmocka_unit_test(memory_of_the_host_is_zero_and_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
