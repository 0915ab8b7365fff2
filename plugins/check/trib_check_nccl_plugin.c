/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-check-nccl-plugin: uses an NCCL network plug-in as NCCL does, without NCCL and GPUs, and
 * reports the cases that fail.
 */
#include "system/atomic_output.h"
#include "base/options.h"
#include "plugins/check/fabric_up.h"
#include "plugins/check/plugin_rank.h"
#include "plugins/check/plugin_session.h"

#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NET_RANKS 2

struct plugin_asked {
    const char *file, *conf, *only;
    unsigned tables, ranks, limit_s, dead_s, dilation;
    bool strict, list, verbose;
    int board, rank; /* set in a rank's process */
};

#define AT(f)   .offset = offsetof(struct plugin_asked, f)
#define ROWS(a) (a), sizeof(a) / sizeof((a)[0])

static const struct option_row runs[] = {
    {.name = "tables",
     .arg = "NAMES",
     AT(tables),
     .type = OPTION_SET,
     .list = table_name,
     .initial = "all",
     .help = "only these, of those that the plug-in has"},
    {.name = "cases",
     .arg = "PATTERNS",
     AT(only),
     .type = OPTION_TEXT,
     .help = "only cases of these names, such as groups or 'killed-*,sizes'"},
    {.name = "strict",
     AT(strict),
     .type = OPTION_FLAG,
     .help = "also what NCCL never does, such as handles of what has ended"},
    {.c = 'l', .name = "list", AT(list), .type = OPTION_FLAG, .help = "list the cases"},
    {.c = 'v',
     .name = "verbose",
     AT(verbose),
     .type = OPTION_FLAG,
     .help = "show what ranks print, with the plug-in's warnings"},
    {.name = "timeout",
     .arg = "SECONDS",
     AT(limit_s),
     .type = OPTION_UINT,
     .min = 1,
     .max = 3600,
     .initial = "60",
     .help = "of a case"},
    {.name = "dead",
     .arg = "SECONDS",
     AT(dead_s),
     .type = OPTION_UINT,
     .min = 1,
     .max = 3600,
     .initial = "120",
     .help = "in which a rank must notice that another one was killed"},
};
static const struct option_row places[] = {
    {.c = 'c',
     .name = "conf",
     .arg = "CONF",
     AT(conf),
     .type = OPTION_TEXT,
     .help = "each rank is a host of this fabric, which is brought up unless it is; else ranks are "
             "processes"},
    {.name = "dilation",
     .arg = "N",
     AT(dilation),
     .type = OPTION_UINT,
     .min = 1,
     .max = 1000000,
     .initial = "20",
     .help = "of the fabric, if it is brought up"},
    {.c = 'g',
     .name = "ranks",
     .arg = "N",
     AT(ranks),
     .type = OPTION_UINT,
     .min = 2,
     .max = BOARD_RANKS,
     .initial = "4",
     .help = "ranks of CollNet; messages have two"},
    {.name = "board", .arg = "FD", AT(board), .type = OPTION_UINT, .how = OPTION_HIDDEN},
    {.name = "rank", .arg = "RANK", AT(rank), .type = OPTION_UINT, .how = OPTION_HIDDEN},
};
static const struct option_row words[] = {
    {.arg = "FILE",
     AT(file),
     .type = OPTION_TEXT,
     .help =
         "the plug-in, such as libnccl-net.so; a name without a slash is looked up as the loader "
         "does"},
};
static const struct option_group groups[] = {
    {"Cases", ROWS(runs)},
    {"Ranks", ROWS(places)},
    {NULL, NULL, 0},
};
static const struct option_note exits[] = {
    {"0", "all cases are right"},
    {"1", "some are not, or it cannot be done; the reason is printed"},
    {"2", "the command line is wrong, or the file is no network plug-in of NCCL's"},
    {NULL, NULL},
};
static const struct option_program program = {
    .name = "trib-check-nccl-plugin",
    .summary = "check a network plug-in of NCCL's, without NCCL and GPUs",
    .synopsis = "[OPTION...] [-c CONF] FILE",
    .text =
        "Loads the plug-in in processes of its own and does by each of its tables, "
        "ncclNetPlugin_v8 "
        "to _v12 and ncclCollNetPlugin_v8 to _v12, what NCCL's proxy does: contexts, devices, "
        "connections that would block, registrations, up to 32 requests at once, receives of "
        "groups, "
        "flushes, several connections, reductions, and ranks that are killed. Every byte is "
        "checked, "
        "those beside a message too. Prints a line a case, with what was found and expected.\n\n"
        "A case that fails, crashes or hangs ends its ranks; the next one has new ones.",
    .words = words,
    .n_words = 1,
    .groups = groups,
    .exits = exits,
    .see = "trib(1), trib-nccl(1), trib-check-protocol(1)",
};

/* ---- which cases ---- */

static bool is_wanted(const struct plugin_asked *a, const char *name)
{
    char list[512], *rest = list, *pattern;

    if (!a->only)
        return true;
    snprintf(list, sizeof(list), "%s", a->only);
    while ((pattern = strsep(&rest, ",")))
        if (!fnmatch(pattern, name, 0))
            return true;
    return false;
}

static void list_cases(const struct plugin_asked *a)
{
    for (unsigned k = 0; k < 2; k++) {
        unsigned n;
        const struct plugin_case *c = cases_of(k, &n);

        for (unsigned i = 0; i < n; i++) {
            if (!is_wanted(a, c[i].name))
                continue;
            printf("%-5s %-17s %s", k ? "coll" : "net", c[i].name, c[i].help);
            if (c[i].from)
                printf(" (from v%d on)", c[i].from);
            printf("%s\n", c[i].how & CASE_STRICT ? " (--strict)" : "");
        }
    }
}

/* Refuses a pattern that matches no case. */
static int check_patterns(const struct plugin_asked *a)
{
    char list[512], *rest = list, *pattern, err[OPTIONS_ERR];

    if (!a->only)
        return 0;
    if (snprintf(list, sizeof(list), "%s", a->only) >= (int)sizeof(list))
        return options_wrong(&program, "--cases: found too long a list");
    while ((pattern = strsep(&rest, ","))) {
        bool any = false;

        for (unsigned k = 0; k < 2; k++) {
            unsigned n;
            const struct plugin_case *c = cases_of(k, &n);

            for (unsigned i = 0; i < n; i++)
                any |= !fnmatch(pattern, c[i].name, 0);
        }
        if (!any) {
            snprintf(err, sizeof(err), "--cases: found \"%.100s\", expected names as -l lists them",
                     pattern);
            return options_wrong(&program, err);
        }
    }
    return 0;
}

/* ---- signals: the fabric does not outlive its ranks ---- */

static volatile sig_atomic_t stopped;

static void check_plugin_stop(int number)
{
    stopped = number;
}

static void take_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction a = {.sa_handler = check_plugin_stop, .sa_flags = SA_RESTART};

    for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        sigaction(numbers[i], &a, NULL);
}

/* ---- rows ---- */

struct case_count {
    unsigned ok, all;
};

static void board_prepare(const struct plugin_asked *a, struct board *b, unsigned table)
{
    unsigned n;
    const struct plugin_case *c = cases_of(table >= TABLES / 2, &n);
    int version = TABLES_FIRST + (int)(table % (TABLES / 2));

    memset(b->at, 0, sizeof(b->at));
    b->table = table;
    b->n_ranks = table < TABLES / 2 ? NET_RANKS : a->ranks;
    b->run_mask = 0;
    for (unsigned i = 0; i < n; i++) {
        if (version < c[i].from || !is_wanted(a, c[i].name))
            continue;
        b->run_mask |= 1ull << i;
        if (c[i].how & CASE_STRICT && !a->strict) {
            b->at[i].state = ROW_SKIPPED;
            snprintf(b->at[i].text, BOARD_TEXT, "NCCL never does it; --strict does");
        }
    }
}

static void rows_print(const struct board *b, struct case_count *count)
{
    static const char *const verdicts[] = {"", "ok", "FAILED", "skipped"};
    unsigned n;
    const struct plugin_case *c = cases_of(b->table >= TABLES / 2, &n);

    for (unsigned i = 0; i < n; i++) {
        int state = b->at[i].state;

        /* every start runs init, so its failure counts even if it was not requested */
        if (!(b->run_mask >> i & 1) && state != ROW_FAILED)
            continue;
        printf("%-8s %-17s", table_name(b->table), c[i].name);
        if (*b->at[i].text)
            printf(" %-7s  %s\n", verdicts[state], b->at[i].text);
        else
            printf(" %s\n", verdicts[state]);
        count->ok += state == ROW_OK;
        count->all += state == ROW_OK || state == ROW_FAILED;
    }
    fflush(stdout);
}

static int check_tables(const struct plugin_asked *a, const struct session_plan *p, unsigned has)
{
    struct case_count count = {0, 0};
    const char *slash = strrchr(a->file, '/');

    for (unsigned i = 0; i < TABLES; i++) {
        if (!(a->tables & has & 1u << i))
            continue;
        board_prepare(a, p->b, i);
        session_run(p);
        if (stopped)
            return 128 + (int)stopped;
        rows_print(p->b, &count);
    }
    printf("%s: %u of %u cases\n", slash ? slash + 1 : a->file, count.ok, count.all);
    return count.ok != count.all || !count.all;
}

static int check_plugin_run(const struct plugin_asked *a)
{
    const char *trib = getenv("TRIB_COMMAND");
    struct session_plan p = {.conf = a->conf,
                             .trib = trib ? trib : "trib",
                             .limit_s = a->limit_s,
                             .verbose = a->verbose,
                             .stop = &stopped};
    char why[BOARD_TEXT];
    bool mine = false;
    int has, rc;

    p.fd = board_make(&p.b);
    if (p.fd < 0) {
        fprintf(stderr, "%s: no memory that ranks share: %s\n", program.name, strerror(-p.fd));
        return 1;
    }
    if (snprintf(p.b->file, sizeof(p.b->file), "%s", a->file) >= (int)sizeof(p.b->file))
        return options_wrong(&program, "FILE: found too long a path");
    p.b->dead_s = a->dead_s;
    has = session_probe(&p, why, sizeof(why));
    if (has < 0) {
        fprintf(stderr, "%s: %s: %s\n", program.name, a->file, why);
        return 2;
    }
    if (!((unsigned)has & a->tables)) {
        fprintf(stderr, "%s: %s: found none of the tables of --tables\n", program.name, a->file);
        return 2;
    }
    take_signals();
    if (a->conf && fabric_up(p.trib, a->conf, a->dilation, &mine))
        return 1;
    rc = check_tables(a, &p, (unsigned)has);
    if (mine)
        fabric_down(p.trib, a->conf);
    return rc;
}

int main(int argc, char **argv)
{
    struct plugin_asked a = {.rank = -1};
    struct option_result r;
    int rc = 0;

    signal(SIGCHLD, SIG_DFL); /* if the caller left it ignored, waitpid() would report no child */
    if (!options_begin(&program, (void *[]){&a}, argc, argv, &r, &rc))
        return rc;
    if (options_given(&program, &r, "rank")) {
        struct board *b = board_join(a.board);

        return b && (unsigned)a.rank < b->n_ranks ? rank_main(b, (unsigned)a.rank) : 1;
    }
    rc = check_patterns(&a);
    if (rc)
        return rc;
    if (a.list)
        list_cases(&a);
    else if (!a.file)
        return options_wrong(&program, "found no FILE, expected a plug-in");
    else
        rc = check_plugin_run(&a);
    return atomic_output_end(program.name) && !rc ? 1 : rc;
}
