/* SPDX-License-Identifier: BSD-3-Clause */
/* trib-sim's command line: what it takes together, and what each mode refuses, in whole sentences. */
#include "fabric/conf/faults.h"
#include "sim/sim_options.h"
#include "switch/net/net.h"
#include "tests/fabric/load.h"
#include "tests/host/coll/gossip.h"
#include "protocols/host/load.h"

#include <fcntl.h>
#include <unistd.h>

#define MAX_ARGS 32
#define ROOM     4096u

static struct sim_opts own;
static struct perf_opts opts;
static char said[ROOM];
static int gossip;

/* Whether the simulation is to run; else *code. What it says goes to `said`. */
static bool begin(const char *line, int *code)
{
    static char buf[512];
    char *argv[MAX_ARGS] = {(char *)(uintptr_t) "trib-sim"}, *save = NULL;
    FILE *file = tmpfile();
    int argc = 1, was = dup(STDERR_FILENO);
    size_t n;
    bool runs;

    snprintf(buf, sizeof(buf), "%s", line);
    for (char *s = strtok_r(buf, " ", &save); s && argc < MAX_ARGS; s = strtok_r(NULL, " ", &save))
        argv[argc++] = s;
    assert_non_null(file);
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    *code = 77;
    runs = sim_options_begin(&own, &opts, argc, argv, code);
    fflush(stderr);
    dup2(was, STDERR_FILENO);
    close(was);
    rewind(file);
    n = fread(said, 1, sizeof(said) - 1, file);
    said[n] = '\0';
    fclose(file);
    return runs;
}

static void runs(const char *line)
{
    int code;

    if (!begin(line, &code))
        fail_msg("%s: %s", line, said);
    assert_string_equal(said, "");
}

static void defaults(void **state)
{
    (void)state;
    runs("c.conf");
    assert_string_equal(opts.conf, "c.conf");
    assert_int_equal(own.seed, 1);
    assert_int_equal(own.payload, PAYLOAD_DATA);
    assert_int_equal(own.threads, 0);
    assert_int_equal(own.frames, 0);
    assert_false(own.counters);
    assert_null(own.conf);
    assert_int_equal(own.chaos_algo, 0);
    assert_int_equal(opts.iters, 1); /* one operation is enough in virtual time */
    assert_true(opts.max_wall == 86400);
    assert_int_equal(opts.check, 1);
    runs("c.conf --seed 7 --threads 64 --frames 5 --counters --trace t --links l --faults f "
         "--background-flow a:b");
    assert_int_equal(own.seed, 7);
    assert_int_equal(own.threads, 64);
    assert_int_equal(own.frames, 5);
    assert_true(own.counters);
    assert_string_equal(own.trace, "t");
    assert_string_equal(own.links, "l");
    assert_string_equal(own.faults, "f");
    assert_string_equal(own.background_flow, "a:b");
}

/* Lengths have nothing to check. */
static void payload(void **state)
{
    (void)state;
    runs("c.conf --payload none");
    assert_int_equal(own.payload, PAYLOAD_NONE);
    assert_int_equal(opts.check, 0);
    runs("c.conf --payload data --error");
    assert_int_equal(opts.check, 1);
    runs("c.conf --algo gossip");
}

static void what_runs_together(void **state)
{
    static const char *const line[] = {
        "c.conf --links a --trace t",
        "c.conf --links a --counters",
        "c.conf --workload w",
        "c.conf --workload w --seed 3 --wide -J j",
        "c.conf --jobs j",
        "c.conf --jobs j --seed 1 --payload none --threads 1 --frames 9 --trace t --counters "
        "--links a "
        "--faults f",
        "c.conf --jobs j --trace t --links a",
        "c.conf --jobs j --counters --links a",
        "--chaos-case f",
        "--chaos-case f --max-wall 3",
        "--chaos 1",
        "--chaos 1 --save-case s",
        "c.conf --chaos 1-9 --faults f",
    };

    (void)state;
    for (unsigned i = 0; i < LEN(line); i++)
        runs(line[i]);
}

static void chaos(void **state)
{
    (void)state;
    runs("c.conf --chaos 5 --max-wall 2.5 --algo gossip");
    assert_string_equal(own.conf, "c.conf");
    assert_string_equal(own.chaos, "5");
    assert_true(own.seed_wall == 2.5);
    assert_int_equal(own.chaos_algo, gossip);
    runs("--chaos 5");
    assert_null(own.conf);
    assert_true(own.seed_wall == 0);
    assert_int_equal(own.chaos_algo, 0);
}

#define NOT_BOTH "expected at most a CONF, --algo PROTOCOL, --faults and --max-wall"
#define NO_TRACE                                                                                   \
    "--links: found neither --trace nor --counters, expected one of which it says the links"
#define OF_JOBS                                                                                    \
    "expected CONF, --seed, --payload, --frames, --faults, --counters, --trace, --links and -J "   \
    "alone"

static void what_is_refused(void **state)
{
    static const struct {
        const char *line, *says;
    } row[] = {
        {"c.conf --mem cuda", "--mem is not supported in simulation"},
        {"c.conf --algo nvls-hw", "--algo nvls-hw is not supported in simulation"},
        {"c.conf --payload none --error",
         "--error: found --payload none, expected data to look at"},
        {"c.conf --payload none --algo gossip",
         "--payload: found none, expected data: protocols look at it"},
        {"c.conf --links a", NO_TRACE},
        {"c.conf --jobs j --links a", NO_TRACE},
        {"c.conf --save-case s", "--save-case: found no --chaos, expected --chaos SEED"},
        {"c.conf --workload w --iters 3",
         "--workload: found it with --iters, expected CONF, --seed and -J alone"},
        {"c.conf alltoall --workload w",
         "--workload: found it with alltoall, expected CONF, --seed and -J alone"},
        {"c.conf --jobs j --iters 3", "--jobs: found it with --iters, " OF_JOBS},
        {"c.conf broadcast --jobs j", "--jobs: found it with broadcast, " OF_JOBS},
        {"c.conf --jobs j --workload w", "--jobs: found it with --workload, " OF_JOBS},
        {"--chaos 1 --iters 3", "--chaos: found --iters too, " NOT_BOTH},
        {"c.conf alltoall --chaos 1", "--chaos: found alltoall too, " NOT_BOTH},
        {"--chaos 1 --algo ring",
         "--algo: found ring, expected with --chaos the name of one protocol"},
        {"--chaos 1 --algo gossip,ring",
         "--algo: found a list, expected with --chaos the name of one protocol"},
        {"--chaos-case f --algo gossip",
         "--algo: found gossip, expected with --chaos the name of one protocol"},
        {"--chaos-case f --chaos 1",
         "--chaos-case: found --chaos too, expected at most --max-wall"},
        {"--chaos-case f --faults x",
         "--chaos-case: found --faults too, expected at most --max-wall"},
        {"--chaos-case f --save-case x",
         "--chaos-case: found --save-case too, expected at most --max-wall"},
        {"c.conf --chaos-case f", "--chaos-case: found c.conf too, expected at most --max-wall"},
    };
    char want[ROOM];
    int code;

    (void)state;
    for (unsigned i = 0; i < LEN(row); i++) {
        if (begin(row[i].line, &code))
            fail_msg("%s: accepted", row[i].line);
        assert_int_equal(code, 2);
        snprintf(want, sizeof(want), "trib-sim: %s\ntrib-sim -h shows all options\n", row[i].says);
        if (strcmp(said, want) != 0)
            fail_msg("%s: found %s, expected %s", row[i].line, said, want);
    }
}

/* Limits of its own numbers. */
static void numbers(void **state)
{
    static const char *const bad[] = {"c.conf --threads 65", "c.conf --frames 2147483648",
                                      "c.conf --seed 9223372036854775808", "c.conf --payload some",
                                      "c.conf --iters x"};
    int code;

    (void)state;
    assert_int_equal(NET_PARTITIONS, 64);
    runs("c.conf --frames 2147483647 --seed 9223372036854775807");
    for (unsigned i = 0; i < LEN(bad); i++) {
        assert_false(begin(bad[i], &code));
        assert_int_equal(code, 2);
    }
}

/* The environment's algorithm counts as one that was named. */
static void environment(void **state)
{
    int code;

    (void)state;
    setenv("TRIB_ALGO", "ring", 1);
    runs("c.conf --algo tree");
    assert_int_equal(opts.algos, 1u << ALGO_RING);
    setenv("TRIB_ALGO", "nvls-hw", 1);
    assert_false(begin("c.conf", &code));
    assert_int_equal(code, 2);
    unsetenv("TRIB_ALGO");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),           cmocka_unit_test(payload),
        cmocka_unit_test(what_runs_together), cmocka_unit_test(chaos),
        cmocka_unit_test(what_is_refused),    cmocka_unit_test(numbers),
        cmocka_unit_test(environment),
    };
    char err[PROTO_TEXT] = "";

    unsetenv("TRIB_ALGO");
    gossip = ALGO_PROTOCOL + proto_add(&gossip_protocol, err);
    if (gossip < (int)ALGO_PROTOCOL) {
        fprintf(stderr, "%s\n", err);
        return 2;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
