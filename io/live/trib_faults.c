/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-faults DIR PLAN: plays a fault plan on a fabric that is up, by fabric time.
 */
#include "base/options.h"
#include "base/units.h"
#include "io/live/fault_steps.h"
#include "machine/rundir.h"
#include "machine/telemetry_client.h"

#include <dirent.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_S     2
#define LOOK_NS      50000000LL /* longest sleep, as the dilation may change */
#define REST_NS      20000LL
#define EVERY_RANK   65535u /* accepts any rank: fault_steps_make() refuses ranks anyway */
#define LONGEST_TIME 40

struct faults_opts {
    const char *dir, *plan;
};

#define AT(f) .offset = offsetof(struct faults_opts, f)

static const struct option_row words[] = {
    {.arg = "DIR", AT(dir), .type = OPTION_TEXT, .help = "run directory of a fabric"},
    {.arg = "PLAN", AT(plan), .type = OPTION_TEXT, .help = "fault plan, as of trib sim --faults"},
};
static const struct option_group groups[] = {{NULL, NULL, 0}};
static const struct option_note exits[] = {
    {"0", "all of the plan was carried out"},
    {"1", "the plan was refused, or a part of it by the fabric, or the fabric went down"},
    {"2", "the command line is wrong"},
    {"130", "it was interrupted; what was changed stays"},
    {NULL, NULL},
};
static const struct option_program program = {
    .name = "trib-faults",
    .summary = "play a fault plan on a fabric that is up",
    .synopsis = "DIR PLAN",
    .text =
        "Changes links and nodes at the plan's times, which are of fabric time and count from "
        "its start, by the commands of trib link and trib node. It prints each, and by how much "
        "fabric time after its time all processes had carried it out. What a fabric that is up "
        "cannot do (ranks, slow or dead hosts, buffers) is refused by line before anything is "
        "changed. trib faults finds the run directory and the plan.",
    .words = words,
    .n_words = 2,
    .groups = groups,
    .exits = exits,
    .see = "trib(1), trib-sim(1), trib-telemetry(1)",
};

struct player {
    const char *path; /* of the plan */
    unsigned n;
    int fd[FAB_MAX_PROCS + 1]; /* switch processes and a trunk that answer */
    int64_t dilation, latest_ps;
    unsigned failed;
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
    (void)sig;
    stop = sig;
}

static void processes_reach(struct player *p, const char *dir)
{
    char path[2 * RUN_PATH], name[FAB_NAME];
    struct dirent *e;
    DIR *d;

    snprintf(path, sizeof(path), "%s/proc", dir);
    d = opendir(path);
    while (d && (e = readdir(d)) && p->n < FAB_MAX_PROCS + 1) {
        int fd = telemetry_client_names(e->d_name, name, sizeof(name))
                     ? telemetry_client_open(dir, name, ANSWER_S)
                     : -1;

        if (fd >= 0)
            p->fd[p->n++] = fd;
    }
    if (d)
        closedir(d);
}

/* Fabric time; sets p->dilation. < 0: the fabric does not answer. */
static int64_t fabric_now(struct player *p)
{
    json_t *lag = telemetry_client_ask(p->fd[0], "/trib/table/lag", NULL);
    json_t *dilation = telemetry_client_ask(p->fd[0], "/trib/dilation", NULL);
    int64_t now = lag ? json_integer_value(json_array_get(lag, 0)) : -1;

    p->dilation = json_integer_value(json_object_get(dilation, "dilation"));
    now = p->dilation > 0 ? now : -1;
    json_decref(lag);
    json_decref(dilation);
    return now;
}

/* Waits for fabric time ps. Returns whether it has come. */
static bool wait_until(struct player *p, int64_t ps)
{
    int64_t now;

    while (!stop && (now = fabric_now(p)) >= 0) {
        int64_t ns = (ps - now) / PS_PER_NS < LOOK_NS / p->dilation
                         ? (ps - now) / PS_PER_NS * p->dilation
                         : LOOK_NS;

        if (now >= ps)
            return true;
        ns = ns < REST_NS ? REST_NS : ns;
        nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
    }
    return false;
}

static const char *short_time(int64_t ps, char buf[LONGEST_TIME])
{
    static const struct {
        const char *name;
        double ps;
    } u[] = {{"s", 1e12}, {"ms", 1e9}, {"us", 1e6}, {"ns", 1e3}};
    unsigned i = 0;

    while (i < 3 && (double)ps < u[i].ps)
        i++;
    snprintf(buf, LONGEST_TIME, "%.4g%s", (double)ps / u[i].ps, u[i].name);
    return buf;
}

/* Sends a step to every process, because all of them reroute. A process that refuses says why; one
 * without an end of the link has nothing to say. */
static bool carry_out(struct player *p, const struct fault_step *s)
{
    const char *why = NULL;
    json_t *said[FAB_MAX_PROCS + 1];
    unsigned answers = 0;

    for (unsigned i = 0; i < p->n; i++) {
        const char *error;

        said[i] = telemetry_client_ask(p->fd[i], s->command, s->params);
        answers += said[i] != NULL;
        error = json_string_value(json_object_get(said[i], "error"));
        why = error ? error : why;
    }
    if (answers < p->n && !why)
        why = answers ? "a process of the fabric does not answer" : "the fabric does not answer";
    if (why) {
        fprintf(stderr, "trib-faults: %s:%u: %s: %s\n", p->path, s->line, s->params, why);
        p->failed++;
    }
    for (unsigned i = 0; i < p->n; i++)
        json_decref(said[i]);
    return answers;
}

static bool play(struct player *p, const struct fault_steps *s)
{
    char at[LONGEST_TIME], late[LONGEST_TIME];
    int64_t start = fabric_now(p);
    unsigned i = 0, failed;

    for (; start >= 0 && i < s->n; i++) {
        const struct fault_step *x = &s->a[i];
        int64_t due = start + (x->at_ps < 0 ? 0 : x->at_ps), after;

        failed = p->failed;
        if (!wait_until(p, due) || !carry_out(p, x))
            break;
        after = fabric_now(p) - due;
        if (failed == p->failed)
            printf("%s  %s  (%s late)\n", short_time(due - start, at), x->params,
                   short_time(after > 0 ? after : 0, late));
        fflush(stdout);
        p->latest_ps = after > p->latest_ps ? after : p->latest_ps;
    }
    printf("# %u of %u changes of %s, at most %s of fabric time late, at dilation %lld\n",
           i - (p->failed < i ? p->failed : i), s->n, p->path, short_time(p->latest_ps, late),
           (long long)p->dilation);
    if (stop)
        fprintf(stderr, "trib-faults: interrupted; trib link all up clear takes back what was "
                        "changed\n");
    else if (i < s->n)
        fprintf(stderr, "trib-faults: the fabric does not answer any more\n");
    return i == s->n && !p->failed;
}

/* Loads the plan. 0, or 1 with a message. */
static int read_plan(const struct faults_opts *o, struct fault_steps *s)
{
    struct fab_errors *errs = calloc(1, sizeof(*errs));
    struct rundir rd = {0};
    struct fault_plan plan;
    struct fabric *f;
    char machine[2 * RUN_PATH];
    int rc = -1;

    snprintf(rd.path, sizeof(rd.path), "%s", o->dir);
    snprintf(machine, sizeof(machine), "%s/machine", o->dir);
    f = errs ? rundir_fabric(&rd) : NULL;
    if (f)
        rc = fault_plan_load(&plan, o->plan, f, EVERY_RANK, errs);
    if (f && !rc) {
        rc = fault_steps_make(s, &plan, f, o->plan, !access(machine, F_OK), errs);
        fault_plan_free(&plan);
    }
    if (errs)
        fab_errors_print(errs, stderr);
    fabric_free(f);
    free(errs);
    return rc ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct sigaction sa = {.sa_handler = on_signal};
    struct faults_opts o = {0};
    struct fault_steps s = {0};
    struct player p = {0};
    struct option_result r;
    int rc;

    if (!options_begin(&program, (void *[]){&o}, argc, argv, &r, &rc))
        return rc;
    if (!o.dir || !o.plan)
        return options_wrong(&program, "found no plan, expected: trib faults [CONF] PLAN");
    if (read_plan(&o, &s))
        return 1;
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    processes_reach(&p, o.dir);
    p.path = o.plan;
    if (!p.n)
        fprintf(stderr, "trib-faults: found no switch process that answers in %s\n", o.dir);
    rc = p.n && play(&p, &s) ? 0 : stop ? 128 + stop : 1;
    for (unsigned i = 0; i < p.n; i++)
        close(p.fd[i]);
    fault_steps_free(&s);
    return rc;
}
