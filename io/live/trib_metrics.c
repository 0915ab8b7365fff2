/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-metrics [OPTION...] [DIR]: metrics of fabrics that are up, printed or served.
 */
#include "io/live/metrics.h"
#include "io/live/metrics_http.h"

#include "system/atomic_output.h"
#include "base/options.h"

struct metrics_opts {
    const char *listen, *dir;
    unsigned format;
};

#define AT(f) .offset = offsetof(struct metrics_opts, f)

static const char *format_name(unsigned i)
{
    static const char *const names[] = {"openmetrics", "prometheus", NULL};

    return names[i];
}

static const struct option_row how[] = {
    {.name = "listen",
     .arg = "ADDRESS:PORT",
     AT(listen),
     .type = OPTION_TEXT,
     .help = "serve them at http://ADDRESS:PORT/metrics until Ctrl-C; a port alone is one of "
             "127.0.0.1. Whoever can connect can read them"},
    {.name = "format",
     .arg = "NAME",
     AT(format),
     .type = OPTION_CHOICE,
     .list = format_name,
     .initial = "openmetrics",
     .help = "of what is printed; prometheus: the format 0.0.4, which node_exporter's textfile "
             "collector and promtool read. A client of --listen says which it accepts"},
};
static const struct option_row words[] = {
    {.arg = "DIR",
     AT(dir),
     .type = OPTION_TEXT,
     .shown = "all fabrics of this user",
     .help = "run directory of a fabric"},
};
static const struct option_group groups[] = {{"Output", how, 2}, {NULL, NULL, 0}};
static const struct option_note exits[] = {
    {"0", "printed, or served until it was ended; no fabric needs to be up"},
    {"1", "it cannot be printed or served; the reason is on stderr"},
    {"2", "the command line is wrong"},
    {NULL, NULL},
};
static const struct option_note environment[] = {
    {"TRIB_RUN", "the run directory to use where no DIR is given"},
    {NULL, NULL},
};
static const struct option_program program = {
    .name = "trib-metrics",
    .summary = "print or serve metrics of fabrics that are up",
    .synopsis = "[OPTION...] [DIR]",
    .text = "Prints metrics of links, queues, groups and hand-offs between processes, for "
            "Prometheus and what reads its formats. Fabrics may come and go while it serves.",
    .words = words,
    .n_words = 1,
    .groups = groups,
    .exits = exits,
    .environment = environment,
    .see = "trib(1), trib-status(1), trib-top(1)",
};

int main(int argc, char **argv)
{
    struct metrics_opts o = {0};
    struct option_result r;
    struct live l;
    int rc;

    if (!options_begin(&program, (void *[]){&o}, argc, argv, &r, &rc))
        return rc;
    live_init(&l, o.dir, LIVE_TOTALS);
    if (o.listen) {
        rc = metrics_serve(&l, o.listen) ? 1 : 0;
    } else {
        live_look(&l);
        metrics_print(&l, o.format, stdout);
        rc = 0;
    }
    live_end(&l);
    return atomic_output_end("trib-metrics") && !rc ? 1 : rc;
}
