/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arbitrary command lines of the programs that read many options, and environments: a mistake comes
 * with a sentence, and what is accepted is within the limits of the tables. Texts of help are printed.
 *
 * Input: which program, then the arguments, a line each; the first is the value of TRIB_ALGO and of
 * TRIB_LOG.
 */
#include "base/log.h"
#include "base/options.h"
#include "host/bench/perf_options.h"
#include "sim/sim_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_ARGS 64

static void check(bool ok, const char *what)
{
    if (!ok) {
        dprintf(2, "%s\n", what);
        abort();
    }
}

static void check_perf(const struct perf_opts *o)
{
    uint64_t sizes[PERF_MAX_SIZES];
    unsigned n = options_sizes(o, sizes, PERF_MAX_SIZES);

    check(n >= 1 && n <= PERF_MAX_SIZES, "too many sizes, or none");
    for (unsigned i = 0; i < n; i++)
        check(sizes[i] >= o->min_bytes && sizes[i] <= o->max_bytes &&
                  (!i || sizes[i - 1] < sizes[i]),
              "a size outside of the range");
    check(o->coll < COLL_KINDS && o->n_policy <= ALGO_SCHEDULE, "beyond the tables");
    (void)options_buffer(o, FAB_MAX_MEMBERS);
}

static void perf(int argc, char **argv, const char *env)
{
    struct perf_opts o;
    struct option_result r;
    char err[OPT_ERR] = "";

    perf_options_init(&o);
    if (options_parse(&perf_program, (void *[]){&o}, argc, argv, &r))
        check(*r.err, "a refusal without a reason");
    else if (r.action != OPTIONS_RUN)
        return;
    else if (perf_options_check(&o, err) || options_force_algo(&o, env, err))
        check(*err, "a refusal without a reason");
    else
        check_perf(&o);
}

static void sim(int argc, char **argv)
{
    struct sim_opts own;
    struct perf_opts o;
    int code = -1;

    if (!sim_options_begin(&own, &o, argc, argv, &code))
        check(code >= 0 && code <= 2, "an exit code that there is not");
    else if (!own.chaos && !own.chaos_case && !own.workload && !own.jobs)
        check_perf(&o);
}

static void log_levels(const char *env)
{
    char err[320] = "";

    if (log_set(env, err, sizeof(err)))
        check(*err && strlen(err) < sizeof(err), "a refusal without a reason");
    check(!log_set(NULL, err, sizeof(err)), "the default");
}

/* Messages and texts of help are written, and not seen. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    stdout = stderr = fopen("/dev/null", "w");
    return !stderr;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char name[] = "trib", *text = malloc(size + 1), *argv[MAX_ARGS + 1] = {name}, *env, *next;
    int argc = 1;

    if (!text)
        abort();
    memcpy(text, data, size);
    text[size] = 0;
    next = text + (size > 0);
    env = strsep(&next, "\n");
    log_levels(env);
    while (next && argc < MAX_ARGS)
        argv[argc++] = strsep(&next, "\n");
    if (size && *data & 1)
        sim(argc, argv);
    else
        perf(argc, argv, env);
    free(text);
    return 0;
}
