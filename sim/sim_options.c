/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One table describes our options: they are taken out of the command line, the rest is trib-perf's.
 */
#include "sim/sim_options.h"

#include "switch/net/net.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum kind { K_NUMBER, K_CHOICE, K_STRING, K_FLAG };

struct option_row {
    const char *name, *arg;
    enum kind kind;
    size_t offset;
    uint64_t max;          /* K_NUMBER */
    const char *choice[2]; /* K_CHOICE: false and true */
    const char *help;
};

#define AT(f) offsetof(struct sim_opts, f)

static const struct option_row table[] = {
    {"seed", "N", K_NUMBER, AT(seed), INT64_MAX, {0}, "of the links' faults (1)"},
    {"payload",
     "data|none",
     K_CHOICE,
     AT(lengths),
     0,
     {"data", "none"},
     "none: lengths instead of data; the same times, nothing is checked (data)"},
    {"frames",
     "N",
     K_NUMBER,
     AT(frames),
     INT32_MAX,
     {0},
     "frame buffers (default: by ports and ranks)"},
    {"threads",
     "N",
     K_NUMBER,
     AT(threads),
     NET_SHARES,
     {0},
     "that share the fabric's nodes; results are the same (one a core, fewer for few ranks)"},
    {"trace",
     "FILE",
     K_STRING,
     AT(trace),
     0,
     {0},
     "frames of links as pcapng, with times of the fabric"},
    {"faults",
     "FILE",
     K_STRING,
     AT(faults),
     0,
     {0},
     "a fault plan, carried out from the first operation on"},
    {"beside",
     "A:B",
     K_STRING,
     AT(beside),
     0,
     {0},
     "host A sends to host B meanwhile: what it gets of what it gets alone"},
    {"chaos",
     "SEED",
     K_STRING,
     AT(chaos),
     0,
     {0},
     "instead of rows: fabric (without CONF), ranks, collectives and faults\n"
     "                               from a seed, or from each of FIRST-LAST; all is checked"},
    {"chaos-case",
     "FILE",
     K_STRING,
     AT(chaos_case),
     0,
     {0},
     "instead of rows: replays a chaos case from its file"},
    {"save-case",
     "FILE",
     K_STRING,
     AT(save_case),
     0,
     {0},
     "with --chaos SEED: writes the seed's case to a file for --chaos-case"},
    {"place",
     "out|in",
     K_STRING,
     AT(place),
     0,
     {0},
     "out of place or in place alone (both, one after the other)"},
    {"workload",
     "FILE",
     K_STRING,
     AT(workload),
     0,
     {0},
     "instead of a collective a training step: what its communication takes and shows; -J"},
    {"links",
     "LIST",
     K_STRING,
     AT(links),
     0,
     {0},
     "of the trace and the counters: links, or nodes for all of theirs (all)"},
    {"counters",
     NULL,
     K_FLAG,
     AT(counters),
     0,
     {0},
     "what links carried, by direction: a table for each row, and in -J"},
};
#define ROWS (sizeof(table) / sizeof(table[0]))

static int take_number(const struct option_row *r, const char *val, uint64_t *out, char *err)
{
    char *end;

    errno = 0;
    *out = strtoull(val, &end, 10);
    if (*val >= '0' && *val <= '9' && !*end && !errno && *out <= r->max)
        return OPT_OK;
    snprintf(err, OPT_ERR, "--%s: found \"%.64s\", expected a whole number up to %llu", r->name,
             val, (unsigned long long)r->max);
    return OPT_BAD;
}

static int take(struct sim_opts *own, const struct option_row *r, const char *val, char *err)
{
    void *at = (char *)own + r->offset;

    switch (r->kind) {
    case K_NUMBER:
        return take_number(r, val, at, err);
    case K_CHOICE:
        *(bool *)at = !strcmp(val, r->choice[1]);
        if (*(bool *)at || !strcmp(val, r->choice[0]))
            return OPT_OK;
        snprintf(err, OPT_ERR, "--%s: found \"%.64s\", expected %s or %s", r->name, val,
                 r->choice[0], r->choice[1]);
        return OPT_BAD;
    case K_STRING:
        *(const char **)at = val;
        if (*val)
            return OPT_OK;
        snprintf(err, OPT_ERR, "--%s: found nothing, expected %s", r->name, r->arg);
        return OPT_BAD;
    case K_FLAG:
        *(bool *)at = true;
        return OPT_OK;
    }
    return OPT_BAD;
}

/* The row of "--name" or "--name=value", and in *val what stands behind =, or NULL; NULL: not
 * ours. */
static const struct option_row *find_row(const char *arg, const char **val)
{
    for (size_t i = 0; i < ROWS && !strncmp(arg, "--", 2); i++) {
        size_t n = strlen(table[i].name);

        if (strncmp(arg + 2, table[i].name, n) || (arg[2 + n] && arg[2 + n] != '='))
            continue;
        *val = arg[2 + n] ? arg + 3 + n : NULL;
        return &table[i];
    }
    return NULL;
}

/* What of trib perf makes no sense here. */
static int refuse(const struct sim_opts *own, struct perf_opts *o, char *err)
{
    if (o->help)
        return OPT_OK;
    if (strcmp(o->mem, "host")) {
        snprintf(err, OPT_ERR,
                 "--mem: found \"%.64s\", expected no such option: virtual time has no GPU",
                 o->mem);
        return OPT_BAD;
    }
    if (o->algos >> PERF_NVLS_HW & 1) {
        snprintf(err, OPT_ERR,
                 "--algo: found nvls-hw, expected one of the fabric's: virtual time has no GPU");
        return OPT_BAD;
    }
    if (o->rsh) {
        snprintf(err, OPT_ERR,
                 "--rsh: found \"%.64s\", expected no such option: all ranks are here", o->rsh);
        return OPT_BAD;
    }
    if (own->lengths && o->error) {
        snprintf(err, OPT_ERR, "--error: found --payload none, expected data to look at");
        return OPT_BAD;
    }
    if (own->links && !own->trace && !own->counters) {
        snprintf(err, OPT_ERR,
                 "--links: found neither --trace nor --counters, expected one of "
                 "which it says the links");
        return OPT_BAD;
    }
    if (own->place && strcmp(own->place, "out") && strcmp(own->place, "in")) {
        snprintf(err, OPT_ERR, "--place: found \"%.64s\", expected out or in", own->place);
        return OPT_BAD;
    }
    if (own->place && !strcmp(own->place, "in") && (!coll_can_be_in_place(o->coll) || o->error)) {
        snprintf(err, OPT_ERR, "--place: found in, expected out: %s",
                 o->error ? "--error is measured there" : "the collective has no other");
        return OPT_BAD;
    }
    if (own->lengths)
        o->check = 0;
    return OPT_OK;
}

/* A training step has collectives of its own: what says which to run, and how, is for nothing.
 * rest: what is left for trib-perf. */
static int check_step(const struct sim_opts *own, char *const *rest, int n, char *err)
{
    const char *too = own->trace      ? "--trace"
                      : own->faults   ? "--faults"
                      : own->beside   ? "--beside"
                      : own->counters ? "--counters"
                      : own->place    ? "--place"
                      : own->frames   ? "--frames"
                      : own->lengths  ? "--payload"
                                      : NULL;
    int words = 0;

    for (int i = 0; i < n && !too; i++)
        if (!strcmp(rest[i], "-J") || !strcmp(rest[i], "--output_file"))
            i++;
        else if (rest[i][0] != '-' ? words++ : strncmp(rest[i], "-J", 2) && strcmp(rest[i], "-h"))
            too = rest[i];
    if (!too)
        return OPT_OK;
    snprintf(err, OPT_ERR, "--workload: found it with %.64s, expected CONF, --seed and -J alone",
             too);
    return OPT_BAD;
}

/* A seed draws all but these; a case has all of them. */
static int take_chaos(struct sim_opts *own, char *const *rest, int n, char *err)
{
    if (own->chaos_case && (own->chaos || own->faults || own->save_case)) {
        snprintf(err, OPT_ERR, "--chaos-case: found %s too, expected at most --max-wall",
                 own->chaos    ? "--chaos"
                 : own->faults ? "--faults"
                               : "--save-case");
        return OPT_BAD;
    }
    for (int i = 0; i < n; i++) {
        const char *val = NULL;
        char *end;

        if (rest[i][0] != '-' && !own->conf && !own->chaos_case) {
            own->conf = rest[i];
            continue;
        }
        if (!strncmp(rest[i], "--max-wall=", 11))
            val = rest[i] + 11;
        else if (!strcmp(rest[i], "--max-wall"))
            val = i + 1 < n ? rest[++i] : "";
        if (!val) {
            snprintf(err, OPT_ERR,
                     "--chaos: found %.64s too, expected at most a CONF, --faults and --max-wall",
                     rest[i]);
            return OPT_BAD;
        }
        own->seed_wall = strtod(val, &end);
        if (end == val || *end || !(own->seed_wall >= 1e-6 && own->seed_wall <= 1e6)) {
            snprintf(err, OPT_ERR, "--max-wall: found \"%.64s\", expected seconds from 1e-6 to 1e6",
                     val);
            return OPT_BAD;
        }
    }
    return OPT_OK;
}

int sim_options_parse(struct sim_opts *own, struct perf_opts *o, int argc, char **argv, char *err)
{
    /* Virtual time repeats itself, so once is enough; and the model is of one operation, not of
     * several that overlap where they follow each other. */
    static char n[] = "-n", once[] = "1", wall[] = "--max-wall", day[] = "86400";
    char **rest = calloc((size_t)argc + 5, sizeof(*rest));
    int k = 0, before, rc = rest ? OPT_OK : OPT_BAD;

    *own = (struct sim_opts){.seed = 1};
    if (rc)
        snprintf(err, OPT_ERR, "out of memory");
    else
        rest[k++] = argv[0], rest[k++] = n, rest[k++] = once, rest[k++] = wall, rest[k++] = day;
    before = k;
    for (int i = 1; !rc && i < argc; i++) {
        const char *val = NULL;
        const struct option_row *r = find_row(argv[i], &val);

        if (!r)
            rest[k++] = argv[i];
        else if (r->kind == K_FLAG || (!val && i + 1 == argc))
            rc = take(own, r, "", err);
        else
            rc = take(own, r, val ? val : argv[++i], err);
    }
    if (!rc && (own->chaos || own->chaos_case)) {
        rc = take_chaos(own, rest + before, k - before, err);
        free(rest);
        return rc;
    }
    if (!rc && own->save_case) {
        snprintf(err, OPT_ERR, "--save-case: found no --chaos, expected --chaos SEED");
        rc = OPT_BAD;
    }
    if (!rc && own->workload)
        rc = check_step(own, rest + before, k - before, err);
    if (!rc)
        rc = options_parse(o, k, rest, err);
    if (!rc)
        rc = options_force_algo(o, getenv("TRIB_ALGO"), err);
    if (!rc)
        rc = refuse(own, o, err);
    free(rest);
    return rc;
}

void sim_options_usage(FILE *out)
{
    fprintf(out, "trib-sim CONF [COLLECTIVE] [options]\n"
                 "Runs collectives on the fabric CONF in virtual time: the tables, checks and "
                 "options\nof trib-perf, and:\n\n");
    for (size_t i = 0; i < ROWS; i++) {
        char left[64];

        snprintf(left, sizeof(left), "    --%s %s", table[i].name,
                 table[i].arg ? table[i].arg : "");
        fprintf(out, "  %-28s %s\n", left, table[i].help);
    }
    fprintf(out,
            "\nOne iteration is timed unless -n says otherwise. --max-wall ends the whole run, and "
            "what it had\n"
            "by then is kept (86400); with --chaos it is a seed's, which fails then (60). With -J "
            "results are\n"
            "written as they come. Times: from the moment at which all ranks start to the one at "
            "which the last\n"
            "knows that it is over. The options of trib-perf:\n\n");
    options_usage(out);
}
