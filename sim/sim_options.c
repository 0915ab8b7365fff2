/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-sim's own table, and the options of trib-perf that are not supported in virtual time.
 */
#include "sim/sim_options.h"

#include "collective/sched.h"

#include "collective/file/sched_file.h"
#include "host/bench/schedule_option.h"
#include "switch/net/net.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *list_payload(unsigned i)
{
    return i == PAYLOAD_DATA ? "data" : i == PAYLOAD_NONE ? "none" : NULL;
}

/* ---- tables ---- */

#define AT(f)   .offset = offsetof(struct sim_opts, f)
#define ROWS(a) (a), sizeof(a) / sizeof((a)[0])

static const struct option_row simulation[] = {
    {.name = "seed",
     .arg = "N",
     AT(seed),
     .type = OPTION_U64,
     .max = INT64_MAX,
     .initial = "1",
     .help = "seed of the links' faults"},
    {.name = "payload",
     .arg = "data|none",
     AT(payload),
     .type = OPTION_CHOICE,
     .list = list_payload,
     .initial = "data",
     .help = "none: lengths instead of data, with the same times and nothing to check"},
    {.name = "threads",
     .arg = "N",
     AT(threads),
     .type = OPTION_U64,
     .max = NET_PARTITIONS,
     .shown = "one a core, fewer for few ranks",
     .help = "threads that share the fabric's nodes; results are the same"},
    {.name = "frames",
     .arg = "N",
     AT(frames),
     .type = OPTION_U64,
     .max = INT32_MAX,
     .shown = "by ports and ranks",
     .help = "frame buffers"},
};

static const struct option_row instead[] = {
    {.name = "workload",
     .arg = "FILE",
     AT(workload),
     .type = OPTION_TEXT,
     .help = "simulate a training step instead of a collective: the time of its communication, and "
             "how much of it is exposed; only with CONF, --seed and -J"},
    {.name = "jobs",
     .arg = "FILE",
     AT(jobs),
     .type = OPTION_TEXT,
     .help = "simulate several jobs at once: the slowdown of each against running alone, fairness, "
             "refusals of switches; with CONF, --seed, --payload, --frames, --faults, --counters, "
             "--trace, --links and -J"},
    {.name = "chaos",
     .arg = "SEED",
     AT(chaos),
     .type = OPTION_TEXT,
     .help = "draw the fabric (without CONF), ranks, collectives and faults from a seed, or from "
             "each of FIRST-LAST, and check everything"},
    {.name = "chaos-case",
     .arg = "FILE",
     AT(chaos_case),
     .type = OPTION_TEXT,
     .help = "replay a chaos case from its file"},
    {.name = "save-case",
     .arg = "FILE",
     AT(save_case),
     .type = OPTION_TEXT,
     .help = "with --chaos SEED: write the seed's case to a file for --chaos-case"},
};

static const struct option_row load[] = {
    {.name = "faults",
     .arg = "FILE",
     AT(faults),
     .type = OPTION_TEXT,
     .help = "a fault plan, carried out from the first operation on"},
    {.name = "background-flow",
     .old = "beside",
     .arg = "A:B",
     AT(background_flow),
     .type = OPTION_TEXT,
     .help = "host A sends to host B during every row; its throughput is reported relative to "
             "running alone"},
};

static const struct option_row observation[] = {
    {.name = "trace",
     .arg = "FILE",
     AT(trace),
     .type = OPTION_TEXT,
     .help = "write the frames of links as pcapng, with times of the fabric"},
    {.name = "counters",
     AT(counters),
     .type = OPTION_FLAG,
     .help = "what links carried, by direction: a table for each row, and in -J"},
    {.name = "links",
     .arg = "LIST",
     AT(links),
     .type = OPTION_TEXT,
     .shown = "all",
     .help = "links of the trace and the counters, or nodes for all of their links"},
};

static const struct option_group groups[] = {
    {"Simulation", ROWS(simulation)},
    {"Instead of collectives", ROWS(instead)},
    {"Load and faults", ROWS(load)},
    {"Observation", ROWS(observation)},
    {NULL, NULL, 0},
};

/* Virtual time is deterministic, so one operation is enough; and the model predicts a single
 * operation, not several that overlap. */
static const struct option_default defaults[] = {
    {"iters", "1", false}, {"max-wall", "86400", false}, {"mem", NULL, true},
    {"rsh", NULL, true},   {NULL, NULL, false},
};

static const struct option_note exits[] = {
    {"0", "every element of every run is right"},
    {"1", "an element is wrong, or the simulation failed"},
    {"2", "the command line is wrong"},
    {"3", "a seed of --chaos did not end in time"},
    {"128 + N", "ended by signal N: 130 by SIGINT, 143 by SIGTERM"},
    {NULL, NULL},
};

static const struct option_note environment[] = {
    {"TRIB_ALGO", "forces one algorithm, whatever --algo and --policy say"},
    {NULL, NULL},
};

const struct option_program sim_program = {
    .name = "trib-sim",
    .summary = "run collectives on an emulated fabric in virtual time",
    .synopsis =
        "[OPTION...] CONF [COLLECTIVE]\n"
        "CONF --workload FILE [--seed N] [-J FILE]\n"
        "CONF --jobs FILE [--seed N] [--faults FILE] [--counters] [--trace FILE] [-J FILE]\n"
        "[CONF] --chaos SEED [--algo PROTOCOL] [--faults FILE] [--max-wall SECONDS]\n"
        "    [--save-case FILE]\n"
        "--chaos-case FILE [--max-wall SECONDS]",
    .text = "Runs collectives on the fabric CONF in virtual time, with the tables, checks and "
            "options of trib-perf. Fabric, ranks and clock are in this process: nothing else is "
            "started, and results do not depend on the machine.\n\n--max-wall ends the whole run "
            "and keeps its results; with --chaos it limits each seed, which then fails (60). With "
            "-J results are written as they are measured. Times are from the common start of all "
            "ranks until the last one has detected the end of the operation.",
    .groups = groups,
    .base = &perf_program,
    .defaults = defaults,
    .exits = exits,
    .environment = environment,
    .see = "trib(1), trib-perf(1), trib-model(1), trib-sweep(1)",
};

/* ---- combinations ---- */

/* Options of trib-perf that are not supported in virtual time. */
static int check_support(const struct perf_opts *o, char *err)
{
    const char *what = strcmp(o->mem, "host") != 0    ? "--mem"
                       : o->rsh                       ? "--rsh"
                       : o->algos >> PERF_NVLS_HW & 1 ? "--algo nvls-hw"
                                                      : NULL;

    if (!what)
        return OPT_OK;
    snprintf(err, OPT_ERR, "%s is not supported in simulation", what);
    return OPT_BAD;
}

static int check_together(const struct sim_opts *own, const struct perf_opts *o, char *err)
{
    if (own->payload == PAYLOAD_NONE && o->error) {
        snprintf(err, OPT_ERR, "--error: found --payload none, expected data to look at");
        return OPT_BAD;
    }
    if (own->payload == PAYLOAD_NONE && o->algos & COLL_PROTOCOLS) {
        snprintf(err, OPT_ERR, "--payload: found none, expected data: protocols look at it");
        return OPT_BAD;
    }
    if (own->links && !own->trace && !own->counters) {
        snprintf(err, OPT_ERR,
                 "--links: found neither --trace nor --counters, expected one of "
                 "which it says the links");
        return OPT_BAD;
    }
    return OPT_OK;
}

/* A training step has its own collectives: refuses options that select collectives or
 * algorithms. */
static int check_step(const struct perf_opts *o, const struct option_result *r, char *err)
{
    static const char *const known[] = {"workload",    "seed", "threads", "links",
                                        "output_file", "wide", NULL};
    const struct option_row *too = options_given_other(&sim_program, r, known);

    if (!too && r->n_words < 2)
        return OPT_OK;
    snprintf(err, OPT_ERR, "--workload: found it with %s%s, expected CONF, --seed and -J alone",
             too ? "--" : "", too ? too->name : coll_name(o->coll));
    return OPT_BAD;
}

/* Jobs have their own collectives and ranks. */
static int check_jobs(const struct sim_opts *own, const struct perf_opts *o,
                      const struct option_result *r, char *err)
{
    static const char *const known[] = {"jobs",        "seed",   "payload",  "threads",
                                        "frames",      "trace",  "counters", "links",
                                        "output_file", "faults", "wide",     NULL};
    const struct option_row *too = options_given_other(&sim_program, r, known);

    if (own->links && !own->trace && !own->counters) {
        snprintf(err, OPT_ERR,
                 "--links: found neither --trace nor --counters, expected one of "
                 "which it says the links");
        return OPT_BAD;
    }
    if (!too && r->n_words < 2)
        return OPT_OK;
    snprintf(err, OPT_ERR,
             "--jobs: found it with %s%s, expected CONF, --seed, --payload, --frames, --faults, "
             "--counters, --trace, --links and -J alone",
             too ? "--" : "", too ? too->name : coll_name(o->coll));
    return OPT_BAD;
}

/* Refuses options whose values a seed draws or a case contains. */
static int check_chaos(struct sim_opts *own, const struct perf_opts *o,
                       const struct option_result *r, char *err)
{
    static const char *const known[] = {
        "seed",     "payload",    "place",           "threads", "frames",   "workload",
        "chaos",    "faults",     "background-flow", "trace",   "counters", "links",
        "max-wall", "chaos-case", "save-case",       "algo",    NULL};
    const struct option_row *too = options_given_other(&sim_program, r, known);

    if (own->chaos_case && (own->chaos || own->faults || own->save_case || o->conf)) {
        snprintf(err, OPT_ERR, "--chaos-case: found %s too, expected at most --max-wall",
                 own->chaos       ? "--chaos"
                 : own->faults    ? "--faults"
                 : own->save_case ? "--save-case"
                                  : o->conf);
        return OPT_BAD;
    }
    own->conf = o->conf;
    if (options_given(&sim_program, r, "algo")) {
        own->chaos_algo = __builtin_ctz(o->algos | 1u << 31);
        if (own->chaos_case || o->algos != 1u << own->chaos_algo ||
            !coll_protocol((enum coll_algo)own->chaos_algo)) {
            snprintf(err, OPT_ERR,
                     "--algo: found %.60s, expected with --chaos the name of one protocol",
                     o->algos && !(o->algos & (o->algos - 1))
                         ? sched_algo_name((enum coll_algo)own->chaos_algo)
                         : "a list");
            return OPT_BAD;
        }
    }
    if (options_given(&sim_program, r, "max-wall"))
        own->seed_wall = o->max_wall;
    if (!too && r->n_words < 2)
        return OPT_OK;
    snprintf(err, OPT_ERR,
             "--chaos: found %s%s too, expected at most a CONF, --algo PROTOCOL, --faults and "
             "--max-wall",
             too ? "--" : "", too ? too->name : coll_name(o->coll));
    return OPT_BAD;
}

static int sim_opts_check(struct sim_opts *own, struct perf_opts *o, const struct option_result *r,
                          char *err)
{
    int rc = OPT_OK;

    if (own->chaos || own->chaos_case)
        return check_chaos(own, o, r, err);
    if (own->save_case) {
        snprintf(err, OPT_ERR, "--save-case: found no --chaos, expected --chaos SEED");
        return OPT_BAD;
    }
    if (own->jobs)
        return check_jobs(own, o, r, err);
    if (own->workload)
        rc = check_step(o, r, err);
    if (!rc)
        rc = check_support(o, err);
    if (!rc)
        rc = schedule_option_load(o, &sim_program, r, err);
    if (!rc)
        rc = perf_options_check(o, err);
    if (!rc)
        rc = options_force_algo(o, getenv("TRIB_ALGO"), err);
    if (!rc)
        rc = check_support(o, err);
    if (!rc)
        rc = check_together(own, o, err);
    if (own->payload == PAYLOAD_NONE)
        o->check = 0;
    return rc;
}

bool sim_options_begin(struct sim_opts *own, struct perf_opts *o, int argc, char **argv, int *code)
{
    struct option_result r;
    char err[OPT_ERR] = "";

    *own = (struct sim_opts){.seed = 1};
    perf_options_init(o);
    if (!options_begin(&sim_program, (void *[]){own, o}, argc, argv, &r, code))
        return false;
    if (!sim_opts_check(own, o, &r, err))
        return true;
    *code = *err ? options_wrong(&sim_program, err) : OPT_BAD; /* else it is said already */
    return false;
}
