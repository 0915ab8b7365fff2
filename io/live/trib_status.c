/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-status [OPTION...] [DIR]: links and groups of fabrics that are up, once or again and again.
 */
#include "io/live/live.h"

#include "system/atomic_output.h"
#include "base/options.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

struct status_opts {
    bool links, groups, json;
    double watch;
    unsigned looks;
    const char *dir;
};

#define AT(f) .offset = offsetof(struct status_opts, f)

static const struct option_row what[] = {
    {.name = "links",
     AT(links),
     .help = "each direction of each link: state, rate, share of its capacity in use, queue, "
             "pauses, ECN marks, drops by reason"},
    {.name = "groups", AT(groups), .help = "aggregation groups: job, owner, members, slots in use"},
};
static const struct option_row how[] = {
    {.name = "watch",
     .arg = "SECONDS",
     AT(watch),
     .type = OPTION_SECONDS,
     .min = 10000,
     .max = 86400000000,
     .help = "look again every SECONDS of wall time; rates are those since the last look"},
    {.c = 'n',
     .name = "looks",
     .arg = "N",
     AT(looks),
     .type = OPTION_UINT,
     .min = 1,
     .shown = "1, with --watch until Ctrl-C",
     .help = "end after N looks"},
    {.name = "json",
     AT(json),
     .help = "JSON with everything, or with what --links and --groups choose; with --watch an "
             "object a line (docs/live.md)"},
};
static const struct option_row words[] = {
    {.arg = "DIR",
     AT(dir),
     .type = OPTION_TEXT,
     .shown = "all fabrics of this user",
     .help = "run directory of a fabric"},
};
static const struct option_group groups[] = {{"What", what, 2}, {"How", how, 3}, {NULL, NULL, 0}};
static const struct option_note exits[] = {
    {"0", "a fabric is up"},
    {"1", "none is, at the last look"},
    {"2", "the command line is wrong"},
    {NULL, NULL},
};
static const struct option_note environment[] = {
    {"TRIB_RUN", "the run directory to use where no DIR is given"},
    {NULL, NULL},
};
static const struct option_program program = {
    .name = "trib-status",
    .summary = "show links and groups of fabrics that are up",
    .synopsis = "[OPTION...] [DIR]",
    .text = "Reads the telemetry of the fabric's trib-switch processes, which goes on meanwhile. "
            "Rates and utilisation are of fabric time: since the fabric was started at the first "
            "look, since the last look after that. trib status finds the run directory, and "
            "without --links, --groups, --watch and --json prints a summary of its own.",
    .words = words,
    .n_words = 1,
    .groups = groups,
    .exits = exits,
    .environment = environment,
    .see = "trib(1), trib-top(1), trib-metrics(1), trib-telemetry(1)",
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
    (void)sig;
    stop = 1;
}

static void status_show(const struct live *l, const struct status_opts *o, unsigned n)
{
    unsigned parts = (o->links ? LIVE_LINKS : 0u) | (o->groups ? LIVE_GROUPS : 0u);
    json_t *j;

    if (!parts)
        parts = LIVE_LINKS | LIVE_GROUPS;
    if (!o->json) {
        if (n)
            putchar('\n');
        live_text(l, parts);
        return;
    }
    j = live_json(l, parts);
    json_dumpf(j, stdout, JSON_REAL_PRECISION(12) | (o->watch > 0 ? JSON_COMPACT : JSON_INDENT(1)));
    putchar('\n');
    json_decref(j);
}

/* Sleeps until the next look; looks are due at whole intervals since the first. */
static void watch_rest(struct timespec *due, double seconds)
{
    int64_t ns = due->tv_nsec + (int64_t)(seconds * 1e9);

    due->tv_sec += ns / 1000000000;
    due->tv_nsec = ns % 1000000000;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, due, NULL);
}

int main(int argc, char **argv)
{
    struct sigaction sa = {.sa_handler = on_signal};
    struct status_opts o = {0};
    struct option_result r;
    struct timespec due;
    struct live l;
    int rc;

    if (!options_begin(&program, (void *[]){&o}, argc, argv, &r, &rc))
        return rc;
    if (o.looks > 1 && !(o.watch > 0))
        return options_wrong(&program,
                             "found -n without --watch, expected --watch SECONDS with it");
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    live_init(&l, o.dir, o.json ? LIVE_TOTALS : 0);
    clock_gettime(CLOCK_MONOTONIC, &due);
    for (unsigned n = 0; !stop && !ferror(stdout); n++) {
        live_look(&l);
        status_show(&l, &o, n);
        fflush(stdout);
        if (!(o.watch > 0) || n + 1 == o.looks)
            break;
        watch_rest(&due, o.watch);
    }
    rc = l.n ? 0 : 1;
    live_end(&l);
    return atomic_output_end("trib-status") && !rc ? 1 : rc;
}
