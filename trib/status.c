/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/keep/keep.h"
#include "system/process.h"
#include "trib/commands.h"
#include "trib/run/die.h"
#include "trib/fabric_of.h"
#include "trib/find.h"
#include "trib/launch.h"
#include "trib/run/run.h"
#include "trib/status_lines.h"
#include "trib/answers.h"
#include "trib/run/text.h"
#include "trib/where.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_S    3
#define LIST_OTHERS 3 /* exit code of trib-keep list: the fabric is another user's */

/* ---- with options: trib-status reads the fabrics ---- */

static bool is_period(const char *word)
{
    size_t n = strspn(word, "0123456789.");

    while (n && islower((unsigned char)word[n]))
        n++;
    return n && !word[n];
}

/* Appends an option for trib-status; returns its number of words. */
static int live_option(struct words *args, int n, char **words)
{
    if (!strcmp(words[0], "--watch")) {
        bool period = n > 1 && is_period(words[1]);

        words_append(args, text_of("--watch=%s", period ? words[1] : "1"));
        return 1 + period;
    }
    words_append(args, words[0]);
    if (strcmp(words[0], "-n") != 0 && strcmp(words[0], "--looks") != 0)
        return 1;
    words_append(args, n > 1 ? words[1] : "");
    return 2;
}

static int live_status(int n, char **words)
{
    struct words command = {0};
    const char *dir = NULL;

    words_append(&command, find_program("trib-status"));
    for (int i = 0; i < n;) {
        if (*words[i] == '-') {
            i += live_option(&command, n - i, words + i);
            continue;
        }
        if (dir)
            die("found '%s', expected one CONF", words[i]);
        dir = fabric_of_conf_up(words[i++]).dir;
    }
    if (dir)
        words_append(&command, dir);
    run_become(&command);
}

/* ---- on all machines ---- */

/* CONF, if any, is the first word but for --machines. */
static int status_everywhere(int n, char **words)
{
    struct words args = {0}, command;
    struct fabric_of f;
    unsigned from = 0;

    for (int i = 0; i < n; i++)
        if (strcmp(words[i], "--machines") != 0)
            words_append(&args, words[i]);
    if (words_have(&args, "--all"))
        die("found --all with --machines, expected one of them");
    if (args.n && *args.at[0] != '-')
        f = fabric_of_conf_up(args.at[from++]);
    else
        f = fabric_of_none(false);
    if (!where_is_file(text_of("%s/machine", f.dir)))
        die("found --machines, expected a fabric of several machines: %s is on this one alone",
            fabric_of_name(f.dir));
    f.conf = text_of("%s/fabric.conf", f.dir);
    command = launch_command("status", NULL, launch_how(f.dir, NULL), &f);
    words_append_n(&command, args.n - from, (char *const *)args.at + from);
    return run_whole(&command, false);
}

/* ---- the summary ---- */

struct summary {
    const char *dir, *user; /* user: another user, about whose fabric root asks; NULL: this user */
    struct status_processes processes;
    bool up;
    const char *silent; /* names between commas */
    json_int_t dilation;
};

/* Finds out which processes answer, so that later questions do not wait for the others. */
static void look_who_answers(struct summary *s)
{
    const struct telemetry_whom all = {.seconds = ANSWER_S};
    const json_t *answers = answers_ask_quietly(s->dir, "/trib/dilation", &all);
    struct words silent = {0};

    s->dilation = answers_dilation(answers);
    for (unsigned i = 0; i < s->processes.n; i++) {
        struct status_process *p = &s->processes.at[i];
        const json_t *answer = json_object_get(answers, p->name);

        p->silent = (!answer || json_is_null(answer)) &&
                    where_is_there(text_of("%s/proc/%s.ready", s->dir, p->name));
        if (p->silent)
            words_append(&silent, p->name);
    }
    s->silent = words_join(silent.n, silent.at, ",");
}

static void say_head(const struct summary *s)
{
    const char *name = fabric_of_name(s->dir);

    if (!s->up && s->processes.n)
        printf("fabric %s is not up: all its processes have ended (run directory %s; trib down "
               "clears it away)\n",
               name, s->dir);
    if (!s->up)
        return;
    printf("fabric %s%s%s: run directory %s%s", name, s->user ? " of user " : "",
           s->user ? s->user : "", s->dir,
           where_is_dir(s->dir) ? ""
                                : " (which somebody has removed; trib down ends its processes)");
    if (!s->user && s->dilation)
        printf(", dilation %" JSON_INTEGER_FORMAT, s->dilation);
    else if (!s->user)
        printf(", dilation not known");
    putchar('\n');
}

/* Whether the parent of the processes is another program than trib-keep. */
static bool has_no_keeper(const struct status_processes *all)
{
    for (unsigned i = 0; i < all->n; i++) {
        char stat[PROCESS_STAT] = "", name[PROCESS_NAME];
        const char *parent;

        if (all->at[i].pid > 0)
            process_file(all->at[i].pid, "stat", stat, sizeof(stat));
        parent = process_stat_field(stat, PROCESS_STAT_PARENT);
        if (!parent)
            continue;
        process_file(atoi(parent), "comm", name, sizeof(name));
        return strcmp(name, "trib-keep\n") != 0;
    }
    return false;
}

static void say_lines(const char *before, struct words lines)
{
    for (unsigned i = 0; i < lines.n; i++)
        printf("%s%s\n", before, lines.at[i]);
}

static void say_answers(const struct summary *s)
{
    const struct telemetry_whom trunk = {.proc = "trunk", .seconds = ANSWER_S};
    const struct telemetry_whom rest = {.skip = *s->silent ? s->silent : NULL, .seconds = ANSWER_S};
    bool trunk_silent = strstr(text_of(",%s,", s->silent), ",trunk,"), ok;
    struct words lines;

    if (!trunk_silent && where_is_file(text_of("%s/machine", s->dir)))
        say_lines("  ", status_lines_machines(json_object_get(
                            answers_ask(s->dir, "/trib/machines", &trunk, &ok), "trunk")));
    lines = answers_lines(answers_ask(s->dir, "/trib/link", &rest, &ok));
    words_sort_once(&lines);
    say_lines("  link ", lines);
    lines = answers_lines(answers_ask(s->dir, "/trib/offenders", &rest, &ok));
    words_sort_once(&lines);
    say_lines("  offender ", lines);
    say_lines("    ", status_lines_counters(answers_ask(s->dir, "/trib/totals", &rest, &ok)));
}

/* The owner of a fabric whose telemetry sockets this user cannot reach, else where_user(). */
static const char *user_of(const char *dir)
{
    if (access(text_of("%s/dpdk", dir), X_OK) && where_is_dir(text_of("%s/proc", dir)))
        return where_owner(dir);
    return where_user();
}

/* Prints the summary of a fabric; returns whether it is up. */
static bool say_summary(const char *dir)
{
    struct summary s = {.dir = dir, .silent = ""};
    struct words list = {0};
    char *listed;
    int rc;

    words_append_all(&list, find_program("trib-keep"), "list", dir);
    rc = run_output(&list, false, &listed);
    if (rc == LIST_OTHERS)
        exit(1);
    s.up = !rc;
    s.user = user_of(dir);
    s.processes = status_lines_read(listed);
    if (s.up && !s.user)
        look_who_answers(&s);
    say_head(&s);
    for (unsigned i = 0; i < s.processes.n; i++)
        printf("  %s\n", status_lines_process(&s.processes.at[i]));
    if (s.up && has_no_keeper(&s.processes))
        puts("  no trib-keep watches it: nobody notices how a process ends, and trib up --wait "
             "does not end; trib down "
             "works");
    if (s.up && !s.user)
        say_answers(&s);
    return s.up;
}

/* Appends the run directories of this user's fabrics that somebody has removed. */
static void append_removed(void *ctx, const struct fabric_seen *f)
{
    struct words *dirs = ctx;

    if (f->uid == geteuid() && where_is_in_base(f->dir) && !where_is_dir(f->dir) &&
        !words_have(dirs, f->dir))
        words_append(dirs, text_of("%s", f->dir));
}

static struct words all_dirs(void)
{
    struct words dirs = {0}, services;

    if (where_run()) {
        words_append(&dirs, where_run());
        return dirs;
    }
    dirs = where_fabrics();
    services = where_services();
    words_append_n(&dirs, services.n, (char *const *)services.at);
    procs_scan(append_removed, &dirs);
    return dirs;
}

static int summary_status(int n, char **words)
{
    struct words dirs = {0};
    bool any = false;

    if (n)
        words_append(&dirs, fabric_of_conf(words[0]).dir);
    else
        dirs = all_dirs();
    for (unsigned i = 0; i < dirs.n; i++)
        any |= say_summary(dirs.at[i]);
    if (any)
        return 0;
    if (n)
        printf("fabric %s is not up\n", fabric_of_name(dirs.at[0]));
    else
        puts("no fabric is up");
    fabric_of_others(n ? fabric_of_name(dirs.at[0]) : NULL, false);
    return 1;
}

static bool has_option(int n, char **words)
{
    for (int i = 0; i < n; i++)
        if (strstr(text_of(" %s", words[i]), " -"))
            return true;
    return false;
}

int command_status(int n, char **words)
{
    struct words given = {0}, all = {0};

    words_append_n(&given, (unsigned)n, words);
    if (n == 1 && words_have(&given, "--all")) {
        words_append_all(&all, find_program("trib-keep"), "all");
        run_become(&all);
    }
    if (words_have(&given, "--machines"))
        return status_everywhere(n, words);
    if (words_have(&given, "--all"))
        die("found '%s', expected: trib status --all", words_said(n, words));
    if (has_option(n, words)) {
        if (where_user())
            die("the fabric of run directory %s is user %s's; root can use trib status without "
                "options with it",
                where_run(), where_user());
        return live_status(n, words);
    }
    if (n > 1)
        die("found '%s', expected: trib status [CONF] [OPTION...], or trib status --all",
            words_said(n, words));
    return summary_status(n, words);
}
