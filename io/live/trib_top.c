/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-top [OPTION...] [DIR]: a fabric while it runs, on a terminal or as plain lines.
 */
#include "io/live/top.h"

#include "system/atomic_output.h"
#include "base/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define BATCH_WIDTH 160u
#define BATCH_LINES 4096u

struct top_opts {
    double seconds;
    unsigned looks, panel, sort;
    bool batch;
    const char *dir;
};

#define AT(f) .offset = offsetof(struct top_opts, f)

static const struct option_row how[] = {
    {.c = 'd',
     .name = "delay",
     .arg = "SECONDS",
     AT(seconds),
     .type = OPTION_SECONDS,
     .min = 100000,
     .max = 60000000,
     .initial = "1",
     .help = "look again every SECONDS of wall time"},
    {.name = "panel",
     .arg = "NAME",
     AT(panel),
     .type = OPTION_CHOICE,
     .list = top_panel_name,
     .initial = "links",
     .help = "what to begin with"},
    {.name = "sort",
     .arg = "NAME",
     AT(sort),
     .type = OPTION_CHOICE,
     .list = top_sort_name,
     .initial = "used",
     .help = "order of links: the greatest first, name: as in the conf"},
    {.c = 'b',
     .name = "batch",
     AT(batch),
     .help = "print plain lines, all rows of every look; the default where the output is no "
             "terminal"},
    {.c = 'n',
     .name = "looks",
     .arg = "N",
     AT(looks),
     .type = OPTION_UINT,
     .min = 1,
     .shown = "until it is ended",
     .help = "with --batch: end after N looks"},
};
static const struct option_row words[] = {
    {.arg = "DIR",
     AT(dir),
     .type = OPTION_TEXT,
     .shown = "all fabrics of this user",
     .help = "run directory of a fabric"},
};
static const struct option_group groups[] = {{"How", how, 5}, {NULL, NULL, 0}};
static const struct option_note exits[] = {
    {"0", "ended by q or a signal; with --batch: a fabric is up"},
    {"1", "with --batch: none is, at the last look; or the terminal cannot be used"},
    {"2", "the command line is wrong"},
    {NULL, NULL},
};
static const struct option_note environment[] = {
    {"TERM", "the terminal's kind"},
    {"TRIB_RUN", "the run directory to use where no DIR is given"},
    {NULL, NULL},
};
static const struct option_program program = {
    .name = "trib-top",
    .summary = "show a fabric while it runs",
    .synopsis = "[OPTION...] [DIR]",
    .text = "Shows how busy each direction of each link is, its queue, pauses and drops; "
            "aggregation groups and the jobs that they belong to; processes. Rates are of fabric "
            "time, since the last look. Key h explains the keys. It reads telemetry alone, so the "
            "fabric goes on undisturbed.",
    .words = words,
    .n_words = 1,
    .groups = groups,
    .exits = exits,
    .environment = environment,
    .see = "trib(1), trib-status(1), trib-metrics(1)",
};

static int batch(struct top *t, unsigned looks)
{
    struct top_line *lines = calloc(BATCH_LINES, sizeof(*lines));

    for (unsigned i = 0; lines && !ferror(stdout); i++) {
        unsigned n;

        live_look(&t->live);
        n = top_lines(t, BATCH_WIDTH, BATCH_LINES, lines);
        for (unsigned k = 0; k + (t->live.n > 0) < n; k++) /* not the last line, which shows keys */
            puts(lines[k].text);
        fflush(stdout);
        if (i + 1 == looks)
            break;
        putchar('\n');
        nanosleep(&(struct timespec){(time_t)t->seconds,
                                     (long)((t->seconds - (double)(time_t)t->seconds) * 1e9)},
                  NULL);
    }
    free(lines);
    return lines && t->live.n ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct top_opts o = {0};
    struct option_result r;
    static struct top t;
    int rc;

    if (!options_begin(&program, (void *[]){&o}, argc, argv, &r, &rc))
        return rc;
    if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
        o.batch = true;
    if (o.looks && !o.batch)
        return options_wrong(&program, "found -n on a terminal, expected --batch with it");
    t.panel = o.panel;
    t.sort = o.sort;
    t.seconds = o.seconds;
    live_init(&t.live, o.dir, 0);
    rc = o.batch ? batch(&t, o.looks) : top_screen(&t) ? 1 : 0;
    live_end(&t.live);
    return atomic_output_end("trib-top") && !rc ? 1 : rc;
}
