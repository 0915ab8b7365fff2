/* SPDX-License-Identifier: BSD-3-Clause */
/* trib-perf's tables of options. */
#include "host/bench/perf_options.h"

#include "collective/sched.h"

#include <errno.h>
#include <string.h>

#define MAX_SIZE (1ull << 40)

const char *perf_algo_name(enum coll_algo a)
{
    return a == PERF_NVLS_HW ? "nvls-hw" : sched_algo_name(a);
}

bool coll_can_be_in_place(enum coll_kind k)
{
    return k != COLL_ALLTOALL && k != COLL_SENDRECV && k != COLL_BARRIER;
}

/* ---- names ---- */

static const char *list_places(unsigned i)
{
    static const char *const names[] = {"both", "out", "in"};

    return i < 3 ? names[i] : NULL;
}

static const char *list_types(unsigned i)
{
    return i < DT_COUNT ? dtype_name(i) : NULL;
}

static const char *list_ops(unsigned i)
{
    return i < OP_COUNT ? redop_name(i) : NULL;
}

/* Whether the algorithm's name is "", as that of an empty protocol seat. */
static bool is_empty_seat(unsigned i)
{
    return coll_is_protocol((enum coll_algo)i) && !coll_protocol((enum coll_algo)i);
}

static const char *list_algos(unsigned i)
{
    return i >= PERF_ALGOS ? NULL : is_empty_seat(i) ? "" : perf_algo_name((enum coll_algo)i);
}

static const char *list_policy(unsigned i)
{
    return i >= ALGO_SCHEDULE ? NULL : is_empty_seat(i) ? "" : sched_algo_name((enum coll_algo)i);
}

static const char *list_collectives(unsigned i)
{
    return i < COLL_KINDS ? coll_name(i) : NULL;
}

/* Reads a list of algorithms, in order of preference, each at most once. */
static int take_policy(void *into, const struct option_row *r, const char *label, const char *value,
                       char *err)
{
    struct perf_opts *o = into;
    char buf[256], *save = NULL;
    unsigned seen = 0;
    int at;

    o->n_policy = 0;
    snprintf(buf, sizeof(buf), "%s", value);
    for (char *s = strtok_r(buf, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
        unsigned i = 0;

        while (r->list(i) && strcmp(r->list(i), s) != 0) /* s is not empty */
            i++;
        if (!r->list(i) || seen >> i & 1) {
            o->n_policy = 0;
            break;
        }
        seen |= 1u << i;
        o->policy[o->n_policy++] = (enum coll_algo)i;
    }
    if (o->n_policy)
        return 0;
    at = snprintf(err, OPTIONS_ERR, "%s: found \"%.64s\", expected a list without repetition of",
                  label, value);
    for (unsigned i = 0; r->list(i) && at < OPTIONS_ERR; i++)
        if (*r->list(i))
            at += snprintf(err + at, (size_t)(OPTIONS_ERR - at), "%s %s", i ? "," : "", r->list(i));
    return -EINVAL;
}

/* ---- tables ---- */

#define AT(f)    .offset = offsetof(struct perf_opts, f)
#define ORDER(f) .order = offsetof(struct perf_opts, f)

static const struct option_row ranges[] = {
    {.c = 'g',
     .name = "ranks",
     .arg = "N",
     AT(ranks),
     .type = OPTION_UINT,
     .min = 1,
     .max = FAB_MAX_MEMBERS,
     .shown = "one on every host",
     .help = "number of ranks"},
    {.c = 'b',
     .name = "minbytes",
     .arg = "SIZE",
     AT(min_bytes),
     .type = OPTION_SIZE,
     .min = 1,
     .max = MAX_SIZE,
     .shown = "4K",
     .help = "smallest size"},
    {.c = 'e',
     .name = "maxbytes",
     .arg = "SIZE",
     AT(max_bytes),
     .type = OPTION_SIZE,
     .min = 1,
     .max = MAX_SIZE,
     .shown = "16M",
     .help = "largest size"},
    {.c = 'i',
     .name = "stepbytes",
     .arg = "SIZE",
     AT(step_bytes),
     .type = OPTION_SIZE,
     .min = 1,
     .max = MAX_SIZE,
     .help = "fixed step between sizes"},
    {.c = 'f',
     .name = "stepfactor",
     .arg = "N",
     AT(factor),
     .type = OPTION_UINT,
     .min = 2,
     .max = 1u << 20,
     .shown = "4",
     .help = "factor between sizes"},
};

static const struct option_row operation[] = {
    {.c = 'd',
     .name = "datatype",
     .arg = "LIST",
     AT(types),
     ORDER(type_order),
     .type = OPTION_SET,
     .list = list_types,
     .find = dtype_by_name,
     .initial = "float",
     .help = "all, or a list of data types"},
    {.c = 'o',
     .name = "op",
     .arg = "LIST",
     AT(ops),
     ORDER(op_order),
     .type = OPTION_SET,
     .list = list_ops,
     .find = redop_by_name,
     .initial = "sum",
     .help = "all that the type has, or a list of reductions"},
    {.c = 'r',
     .name = "root",
     .arg = "RANK",
     AT(root),
     .type = OPTION_UINT,
     .max = FAB_MAX_MEMBERS - 1,
     .initial = "0",
     .help = "root of rooted collectives"},
    {.c = 'k',
     .name = "sparse",
     .arg = "K",
     AT(sparse),
     .type = OPTION_UINT,
     .min = 1,
     .max = FAB_MAX_MEMBERS,
     .help = "alltoall: each rank sends to itself and its K - 1 next only"},
    {.name = "mm-self",
     AT(mm_self),
     .type = OPTION_FLAG,
     .help = "multimem: a GPU's own share crosses the switch too, as in (1 + 1 / N) B out of each"},
};

static const struct option_row algorithms[] = {
    {.name = "algo",
     .arg = "LIST",
     AT(algos),
     ORDER(algo_order),
     .type = OPTION_SET,
     .list = list_algos,
     .max = ALGOS_ALL,
     .shown = "ring,sharp",
     .help =
         "all that can do it, or a list of algorithms, which run in its order and are compared "
         "with the first; auto is the fastest by the model, nvls-hw this machine's own GPUs, last; "
         "protocols (switchml, ps, atp) run when named only"},
    {.name = "schedule",
     .arg = "FILE",
     AT(schedule),
     .type = OPTION_TEXT,
     .help = "run the schedule of a file, verified before anything starts; collective, ranks and "
             "root are the file's. Beside --algo it is one more algorithm"},
    {.name = "policy",
     .arg = "LIST",
     .type = OPTION_CALL,
     .take = take_policy,
     .list = list_policy,
     .shown = "sharp,ring",
     .help = "algorithms to fail over to, in order, when switches refuse or fail; one alone: fail"},
    {.name = "tree",
     .arg = "N",
     AT(tree),
     .type = OPTION_UINT,
     .max = 65534,
     .shown = "all that reach the ranks",
     .help = "use one aggregation tree"},
    {.name = "window",
     .arg = "SLOTS",
     AT(window),
     .type = OPTION_UINT,
     .max = 1u << 20,
     .initial = "0",
     .help = "slots to request of aggregation nodes; 0: their choice"},
};

static const struct option_row measurement[] = {
    {.c = 'n',
     .name = "iters",
     .arg = "N",
     AT(iters),
     .type = OPTION_UINT,
     .min = 1,
     .max = PERF_MAX_ITERS,
     .initial = "20",
     .help = "timed iterations of a row"},
    {.c = 'w',
     .name = "warmup_iters",
     .arg = "N",
     AT(warmup),
     .type = OPTION_UINT,
     .max = PERF_MAX_ITERS,
     .initial = "1",
     .help = "iterations before the clock starts"},
    {.c = 'c',
     .name = "check",
     .arg = "0|1",
     AT(check),
     .type = OPTION_UINT,
     .max = 1,
     .initial = "1",
     .help = "compare every element with the exact result"},
    {.name = "error",
     AT(error),
     .type = OPTION_FLAG,
     .help = "measure each algorithm's error against the exact sum, in ULP of the type"},
    {.name = "place",
     .arg = "PLACE",
     AT(place),
     .type = OPTION_CHOICE,
     .list = list_places,
     .initial = "both",
     .help = "out of place, in place, or both, one after the other"},
    {.name = "max-wall",
     .arg = "SECONDS",
     AT(max_wall),
     .type = OPTION_SECONDS,
     .min = 1,
     .max = 1000000000000,
     .shown = "60 a row, 2 a timed run",
     .help = "wall time of a row at most: warm-ups, both places, retries and checks; a fifth of it "
             "for a timed run. Iterations are cut to keep it, and rows say so"},
};

static const struct option_row placement[] = {
    {.name = "mem",
     .arg = "WHERE",
     AT(mem),
     .type = OPTION_TEXT,
     .initial = "host",
     .help = "memory of the buffers: host, cuda, or cuda:N for GPU N"},
    {.name = "rsh",
     .arg = "CMD",
     AT(rsh),
     .type = OPTION_TEXT,
     .help =
         "start a rank on a host outside by CMD HOST trib-perf --remote-rank, as ssh does, and "
         "on another machine of the conf by CMD ADDRESS trib-perf --away-rank FABRIC NAME; "
         "there the default is the launcher of trib up, or ssh, and a CMD with $TRIB_MACHINE, the "
         "machine's name, gets no ADDRESS: 'srun -u -N1 -n1 -w $TRIB_MACHINE'"},
};

static const struct option_row output[] = {
    {.c = 'J',
     .name = "output_file",
     .also = "json",
     .arg = "FILE",
     AT(json),
     .type = OPTION_TEXT,
     .help = "write the results as JSON; -: to standard output, and the table to standard error"},
    {.name = "csv",
     .arg = "FILE",
     AT(csv),
     .type = OPTION_TEXT,
     .help = "write the rows as CSV: a column for each key of the JSON"},
    {.name = "wide",
     AT(wide),
     .type = OPTION_FLAG,
     .help = "print all that is known of a row on one line of up to 200 characters"},
    {.name = "timeline",
     .arg = "FILE",
     AT(timeline),
     .type = OPTION_TEXT,
     .help = "write the time line of an operation, the last one of the last row, for Perfetto and "
             "trib explain"},
    {.name = "timeline-row",
     .arg = "N",
     AT(timeline_row),
     .type = OPTION_UINT,
     .max = INT32_MAX,
     .shown = "the last",
     .help = "the time line is of this row of the table, from 1"},
};

static const struct option_row words[] = {
    {.arg = "CONF", AT(conf), .type = OPTION_TEXT, .help = "the fabric's conf file"},
    {.arg = "COLLECTIVE",
     AT(coll),
     .type = OPTION_CHOICE,
     .list = list_collectives,
     .initial = "all_reduce",
     .help = "what to run"},
};

#define ROWS(a) (a), sizeof(a) / sizeof((a)[0])
static const struct option_group groups[] = {
    {"Ranks and sizes", ROWS(ranges)},
    {"Operation", ROWS(operation)},
    {"Algorithm", ROWS(algorithms)},
    {"Measurement", ROWS(measurement)},
    {"Placement", ROWS(placement)},
    {"Output", ROWS(output)},
    {NULL, NULL, 0},
};

static const struct option_note exits[] = {
    {"0", "every element of every run is right"},
    {"1", "an element is wrong, or the job failed"},
    {"2", "the command line is wrong"},
    {"4", "--max-wall left rows unmeasured or unchecked"},
    {"128 + N", "ended by signal N: 130 by SIGINT, 143 by SIGTERM"},
    {NULL, NULL},
};

static const struct option_note environment[] = {
    {"TRIB_ALGO", "forces one algorithm, whatever --algo and --policy say"},
    {"TRIB_RUN", "the run directory of the fabric"},
    {"TRIB_LIB", "the library of the emulated HCA, libtribverbs.so"},
    {NULL, NULL},
};

const struct option_program perf_program = {
    .name = "trib-perf",
    .summary = "time collectives between ranks on an emulated fabric",
    .synopsis = "[OPTION...] CONF [COLLECTIVE]",
    .text =
        "Times collectives between ranks on the fabric CONF, which is up, and compares every "
        "element with the exact result. trib perf starts the fabric first where it is not "
        "up.\n\nSizes, counts and bandwidths are those of nccl-tests. Times and bandwidths are "
        "in fabric time. /model is the time relative to the predicted one; lag marks a row in "
        "which "
        "the emulation did not keep up. With --wide, link and util are the bytes of an operation "
        "on the busiest direction of a link, measured, and the share of its time that they take; "
        "meas/model and link/model compare both with the prediction.",
    .words = words,
    .n_words = 2,
    .groups = groups,
    .exits = exits,
    .environment = environment,
    .see = "trib(1), trib-sim(1), trib-model(1)",
};

void perf_options_init(struct perf_opts *o)
{
    *o = (struct perf_opts){.tree = PERF_TREES};
}

int perf_options_parse(struct perf_opts *o, int argc, char **argv, char *err)
{
    struct option_result r;

    perf_options_init(o);
    if (!options_parse(&perf_program, (void *[]){o}, argc, argv, &r))
        return r.action == OPTIONS_RUN ? perf_options_check(o, err) : OPT_OK;
    snprintf(err, OPT_ERR, "%.*s", OPT_ERR - 1, r.err);
    return OPT_BAD;
}

int options_force_algo(struct perf_opts *o, const char *name, char *err)
{
    char text[OPTIONS_ERR];

    if (!name || !*name)
        return OPT_OK;
    if (strchr(name, ',') || !strcmp(name, "all")) {
        snprintf(err, OPT_ERR, "TRIB_ALGO: found \"%.64s\", expected one algorithm", name);
        return OPT_BAD;
    }
    if (options_take(o, &algorithms[0], "TRIB_ALGO", name, text)) {
        snprintf(err, OPT_ERR, "%.*s", OPT_ERR - 1, text);
        return OPT_BAD;
    }
    o->forced = true;
    if (o->schedule && !(o->algos >> ALGO_SCHEDULE & 1)) {
        snprintf(err, OPT_ERR, "TRIB_ALGO: found \"%.64s\", expected none with --schedule", name);
        return OPT_BAD;
    }
    if (o->algos < 1u << ALGO_SCHEDULE) { /* no ALGO_SCHEDULE, and nothing after it */
        o->policy[0] = (enum coll_algo)__builtin_ctz(o->algos);
        o->n_policy = 1;
    }
    return OPT_OK;
}
