/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What must hold of fabrics' life cycles on the machine of simulated_tasks.h, as commands.md, signals.h and keep.h promise it:
 *
 * - nobody but processes of the fabric that is meant, and own children, gets a signal of trib or trib-keep, whatever pid files say and whoever has
 *   a pid by now; no file of anybody else is removed
 * - no trib-switch runs twice in a run directory
 * - `trib up` ends with 0 when every process serves its ports; else it says why, and nothing of its start is left
 * - who is blamed has ended first, by itself, and as it is said; a state file is whole or is not there
 * - `trib down` ends with 0 when nobody of the fabric is left and the directory is gone
 * - a fabric that lives with a process goes within ALONE_MOST of its end
 * - exit codes: 0, 1, and 128 with the number of the signal that asked for it
 * - nothing waits for ever: a command that nobody has stopped ends within COMMAND_MOST
 */
#ifndef TRIB_TESTS_TRIB_LIFE_LIFE_ORACLE_H
#define TRIB_TESTS_TRIB_LIFE_LIFE_ORACLE_H

#include "simulated_programs.h"

#define COMMAND_MOST (200 * S)
#define ALONE_MOST   (60 * S)
#define ENDED        512u

/* A process that has ended. */
struct ended {
    int id, starter, fabric, status;
    bool told, troubled;
    int64_t at, began;
    char name[32];
};

static struct oracle {
    struct command command[COMMANDS];
    unsigned n_commands;
    struct ended ended[ENDED];
    unsigned n_ended;
    unsigned n_procs[FABRICS];
    int64_t ready_ns[FABRICS][PROCS]; /* when it was seen ready last, */
    int64_t lived_ns[FABRICS];        /* and when anybody of it lived; -1: never */
    bool mangled[FABRICS];            /* a trouble has taken files away */
    unsigned long long ups, downs, deaths;
} * oracle;

/* ---- who belongs to what ---- */

static const char *const fabrics[FABRICS] = {"a", "b"};

static int fabric_of_dir(const char *dir)
{
    for (unsigned i = 0; i < FABRICS; i++)
        if (!strncmp(dir, BASE "/", sizeof(BASE)) && !strcmp(dir + sizeof(BASE), fabrics[i]))
            return (int)i;
    return -1;
}

static bool is_program(const struct task *t, const char *name)
{
    return !strcmp(t->program->name, name);
}

static struct command *command_of(int id)
{
    for (unsigned i = 0; i < oracle->n_commands; i++)
        if (oracle->command[i].id == id)
            return &oracle->command[i];
    return NULL;
}

static bool is_keeper(const struct task *t)
{
    return is_program(t, "trib-keep") && t->argc > 1 && !strcmp(t->argv[1], "start");
}

/* A switch, or the keeper. */
static bool is_of_fabric(const struct task *t, int fabric)
{
    return t->fabric == fabric && (is_program(t, "trib-switch") || is_keeper(t));
}

/* Somebody asks for the end of what runs in a fabric. */
static void commands_are_asked(int fabric)
{
    for (unsigned i = 0; i < oracle->n_commands; i++)
        if (oracle->command[i].status < 0 && oracle->command[i].fabric == fabric)
            oracle->command[i].asked = true;
}

static bool is_stop(const struct task *t)
{
    return is_program(t, "trib-keep") && t->argc > 2 && !strcmp(t->argv[1], "stop");
}

/* Whether somebody ends the fabric just now. */
static bool is_ended_by(int fabric)
{
    for (unsigned i = 0; i < sim->n_tasks; i++)
        if (task_lives(&sim->task[i]) && sim->task[i].fabric == fabric && is_stop(&sim->task[i]))
            return true;
    return false;
}

static void oracle_runs(struct task *t)
{
    t->ready = false;
    if (is_program(t, "trib-keep") && t->argc > 2)
        t->fabric = fabric_of_dir(t->argv[2]);
    if (is_stop(t))
        commands_are_asked(t->fabric);
    if (is_keeper(t)) {
        t->starter = t->id;
        t->partner =
            !strcmp(t->argv[3], "while") && task_of(t->parent) ? task_of(t->parent)->id : 0;
    }
    if (!is_program(t, "trib-switch"))
        return;
    t->fabric = fabric_of_dir(value_behind(t->argv, "--run"));
    snprintf(t->name, sizeof(t->name), "%s", value_behind(t->argv, "--proc"));
    for (unsigned i = 0; i < sim->n_tasks; i++) {
        const struct task *o = &sim->task[i];

        HOLDS(o == t || !task_lives(o) || !is_program(o, "trib-switch") || o->fabric != t->fabric ||
                  strcmp(o->name, t->name) != 0,
              "switch %s of fabric %s runs twice, as %d and %d", t->name, fabrics[t->fabric],
              o->pid, t->pid);
    }
}

/* ---- signals and files ---- */

static void oracle_signal(const struct task *from, const struct task *to, int sig)
{
    bool ours = from && from->state == TASK_LIVES &&
                (is_program(from, "trib") || is_program(from, "trib-keep"));

    if (!ours || from == to)
        return;
    HOLDS(to->parent == from->pid || (from->fabric >= 0 && is_of_fabric(to, from->fabric)),
          "process %d (%s) sends signal %d to %d (%s)", from->pid, from->program->name, sig,
          to->pid, to->program->name);
    if (sig == SIGTERM || sig == SIGKILL)
        ((struct task *)(uintptr_t)to)->told = true;
}

static void oracle_unlinks(const struct task *t, const struct sim_file *f)
{
    HOLDS(!f->theirs, "process %d (%s) removes %s, which is somebody else's", t->pid,
          t->program->name, f->name);
}

/* ---- a process ends ---- */

static bool up_is_there(const struct command *c)
{
    for (unsigned p = 0; p < oracle->n_procs[c->fabric]; p++)
        if (oracle->ready_ns[c->fabric][p] < c->began_ns)
            return false;
    return true;
}

/* The first of a start that ended by itself; NULL: none has. */
static const struct ended *first_ended(int starter)
{
    for (unsigned i = 0; i < oracle->n_ended; i++)
        if (oracle->ended[i].starter == starter && !oracle->ended[i].told)
            return &oracle->ended[i];
    return NULL;
}

static bool ended_so(const struct ended *e, const char *how)
{
    char text[128];

    if (WIFSIGNALED(e->status))
        snprintf(text, sizeof(text), "was killed by signal %d (", WTERMSIG(e->status));
    else
        snprintf(text, sizeof(text), "ended with exit code %d;", WEXITSTATUS(e->status));
    return text_begins(how, text);
}

/* "did not come up: it HOW": as it was, and nobody ended a second before. One without a name may be it. */
static void check_blame(const struct command *c, int starter)
{
    static const char begins[] = "trib: trib-switch ";
    const char *at = strstr(c->says.text, begins), *how;
    const struct ended *first = first_ended(starter), *e = NULL;
    char name[32];

    if (!at || !(how = strstr(at, " did not come up: it ")))
        return;
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + strlen(begins), " "),
             at + strlen(begins));
    how += strlen(" did not come up: it ");
    if (text_begins(how, "was not ready"))
        return;
    for (unsigned i = 0; i < oracle->n_ended && !e; i++) {
        const struct ended *of = &oracle->ended[i];

        if (of->starter == starter && !of->told && (!*of->name || !strcmp(of->name, name)) &&
            ended_so(of, how))
            e = of;
    }
    HOLDS(e, "switch %s is said to have '%.40s', and has not", name, how);
    HOLDS(!e || first->at + S >= e->at, "switch %s is blamed, %s has ended first", name,
          first->name);
}

/* A start that is undone leaves nothing, unless another one has the directory by now. */
static void check_undone(const struct command *c)
{
    char path[64];
    bool others = false;

    for (unsigned i = 0; i < sim->n_tasks; i++)
        others |= task_lives(&sim->task[i]) && is_of_fabric(&sim->task[i], c->fabric);
    snprintf(path, sizeof(path), BASE "/%s", fabrics[c->fabric]);
    HOLDS(others || !file_of(path), "a start of fabric %s that is undone leaves its directory",
          fabrics[c->fabric]);
}

static void up_ended(const struct command *c, int code)
{
    if (strstr(c->says.text, "did not come up") && !c->asked && !sim->faults &&
        !oracle->mangled[c->fabric])
        check_undone(c);
    oracle->ups += !code;
    HOLDS(code || up_is_there(c), "up of fabric %s ends with 0, and not all is ready",
          fabrics[c->fabric]);
    HOLDS(code != 1 || c->says.n, "up ends with 1, and says nothing");
    HOLDS(!strstr(c->says.text, "is up already") || code == 1 || c->asked, "up again ends with %d",
          code);
    HOLDS(!strstr(c->says.text, "up already") || oracle->lived_ns[c->fabric] >= c->began_ns,
          "fabric %s is up already, it is said, and is not", fabrics[c->fabric]);
}

static void down_ended(const struct command *c, int code)
{
    oracle->downs += !code;
    for (unsigned i = 0; !code && i < sim->n_tasks; i++) {
        const struct task *t = &sim->task[i];

        HOLDS(!task_lives(t) || !is_of_fabric(t, c->fabric) || t->start_ns >= c->began_ns,
              "down of fabric %s ends with 0, and leaves process %d (%s)", fabrics[c->fabric],
              t->pid, t->program->name);
    }
}

static void command_ended(struct command *c, const struct task *t)
{
    int code = WIFEXITED(t->status) ? WEXITSTATUS(t->status) : -1;

    c->status = t->status;
    c->ended_ns = sim->now;
    HOLDS(code == 0 || code == 1 || c->asked || ((code == 126 || code == 127) && sim->faults),
          "%s of fabric %s ends with %#x, and says '%s'", c->what, fabrics[c->fabric], t->status,
          c->says.text);
    HOLDS(code < 128 || code == 128 + SIGINT || code == 128 + SIGTERM || code == 128 + SIGHUP ||
              code == 128 + SIGKILL,
          "%s ends with %d", c->what, code);
    if (!strcmp(c->what, "up"))
        up_ended(c, code);
    else if (!strcmp(c->what, "down"))
        down_ended(c, code);
}

static void oracle_look(void);

/* The keeper of a start: the process that the first one forks. */
static pid_t keeper_of(int starter)
{
    for (unsigned i = 0; i < sim->n_tasks; i++)
        if (sim->task[i].state && sim->task[i].starter == starter && sim->task[i].keeper)
            return sim->task[i].pid;
    return -1;
}

static void oracle_ended(struct task *t)
{
    struct command *c = command_of(t->id);

    t->state = TASK_LIVES; /* it has, until now */
    oracle_look();
    t->state = TASK_ZOMBIE;

    /* One that has not become a trib-switch yet has no name. */
    if (t->starter >= 0 && t->parent == keeper_of(t->starter) && oracle->n_ended < ENDED) {
        struct ended *e = &oracle->ended[oracle->n_ended++];

        *e = (struct ended){t->id,        t->starter, t->fabric,   t->status, t->told,
                            t->killed_by, sim->now,   t->start_ns, ""};
        snprintf(e->name, sizeof(e->name), "%s", t->name);
        oracle->deaths++;
    }
    if (is_keeper(t) && t->id == t->starter)
        for (unsigned i = 0; i < oracle->n_commands; i++)
            if (oracle->command[i].status < 0 && task_by_id(oracle->command[i].id) &&
                task_by_id(oracle->command[i].id)->pid == t->parent)
                check_blame(&oracle->command[i], t->id);
    if (c)
        command_ended(c, t);
}

/* ---- at all times ---- */

/* What a file says of how a switch ended is of one that did. */
static void check_ended_file(unsigned fabric, unsigned proc)
{
    char path[128], text[128];
    const struct sim_file *f;
    bool any = false;

    snprintf(path, sizeof(path), BASE "/%s/proc/p%u.ended", fabrics[fabric], proc);
    f = file_of(path);
    if (!f || !f->size)
        return;
    for (unsigned i = 0; i < oracle->n_ended && !any; i++) {
        const struct ended *e = &oracle->ended[i];
        bool oom = false;

        if (e->fabric != (int)fabric || (*e->name && e->name[1] != (char)('0' + proc)))
            continue;
        do {
            oom_describe(text, sizeof(text) - 1, e->status, oom);
            strcat(text, "\n");
            any |= f->size == strlen(text) && !memcmp(f->data, text, f->size);
            oom = !oom;
        } while (oom);
    }
    HOLDS(any, "%s has '%.*s'", path, (int)f->size, f->data);
}

/* Nobody keeps a fabric for a process that is gone. */
static void check_alone(struct task *t)
{
    if (!is_keeper(t) || !t->partner || t->stopped || task_lives(task_by_id(t->partner)))
        t->alone_ns = 0;
    else if (!t->alone_ns)
        t->alone_ns = sim->now;
    HOLDS(!t->alone_ns || sim->now - t->alone_ns < ALONE_MOST,
          "process %d keeps fabric %s for one that is gone since %.3f s", t->pid,
          fabrics[t->fabric], (double)t->alone_ns / 1e9);
}

static void oracle_look(void)
{
    for (unsigned i = 0; i < sim->n_tasks; i++) {
        struct task *t = &sim->task[i];

        if (!task_lives(t) || t->fabric < 0)
            continue;
        check_alone(t);
        if (is_of_fabric(t, t->fabric))
            oracle->lived_ns[t->fabric] = sim->now;
        if (t->ready)
            oracle->ready_ns[t->fabric][t->name[1] - '0'] = sim->now;
    }
    for (unsigned f = 0; f < FABRICS; f++)
        for (unsigned p = 0; p < oracle->n_procs[f]; p++)
            check_ended_file(f, p);
}

#endif
