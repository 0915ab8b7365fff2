/* SPDX-License-Identifier: BSD-3-Clause */
/* A run of the machine of simulated_tasks.h: how it begins and ends, and commands that are given there. */
#ifndef TRIB_TESTS_TRIB_LIFE_SIMULATED_LIFE_H
#define TRIB_TESTS_TRIB_LIFE_SIMULATED_LIFE_H

#include "life_oracle.h"

static void machine_files(void)
{
    static const char *const roots[] = {"/run", "/run/user", "/home", "/opt", "/opt/trib", "/tmp"};
    char conf[512], path[32];

    memset(sim->file, 0, SIM_FILES * sizeof(*sim->file));
    sim->n_files = 0;
    file_new(NULL, "", S_IFDIR | 0755, 0);
    file_put("/run/user/1000", NULL);
    file_put("/home/u", NULL);
    for (unsigned i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        snprintf(path, sizeof(path), "/opt/trib/%s", programs[i].name);
        file_put(path, "");
    }
    for (unsigned i = 0; i < 5; i++) {
        file_of(roots[i])->uid = 0;
        file_of(roots[i])->mode = S_IFDIR | 0755;
    }
    for (unsigned f = 0; f < FABRICS; f++) {
        unsigned n = oracle->n_procs[f];
        int at = snprintf(conf, sizeof(conf),
                          "name = \"%s\"; link_defaults = { rate = \"100Gb/s\"; latency = "
                          "\"300ns\"; }; processes = (",
                          fabrics[f]);

        for (unsigned p = 0; p < n; p++)
            at += snprintf(conf + at, sizeof(conf) - (size_t)at,
                           "%s{ name = \"p%u\"; nodes = ( \"s%u\" ); }", p ? ", " : "", p, p);
        at += snprintf(conf + at, sizeof(conf) - (size_t)at,
                       "); nodes = ( { name = (\"h0\", \"h1\"); kind = \"host\"; }");
        for (unsigned p = 0; p < n; p++)
            at += snprintf(conf + at, sizeof(conf) - (size_t)at,
                           ", { name = \"s%u\"; kind = \"switch\"; }", p);
        at += snprintf(conf + at, sizeof(conf) - (size_t)at,
                       " ); links = ( { a = \"h0\"; b = \"s0\"; }, { a = \"h1\"; b = \"s0\"; }");
        for (unsigned p = 1; p < n; p++)
            at +=
                snprintf(conf + at, sizeof(conf) - (size_t)at, ", { a = \"s0\"; b = \"s%u\"; }", p);
        snprintf(conf + at, sizeof(conf) - (size_t)at, " );");
        snprintf(path, sizeof(path), "/home/u/%s.conf", fabrics[f]);
        file_put(path, conf);
    }
}

static void machine_new(void)
{
    sim = sim_room(sizeof(*sim));
    oracle = sim_room(sizeof(*oracle));
    sim->file = sim_room(SIM_FILES * sizeof(*sim->file));
    sim->opened = sim_room(SIM_OPEN * sizeof(*sim->opened));
    sim->pipe = sim_room(SIM_PIPES * sizeof(*sim->pipe));
    sim->stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sim->out = out_of(1);
    sim->err = out_of(2);
    sim->real_out = stdout;
    sim->real_err = stderr;
    sim->traces = getenv("TRACE") != NULL;
    sim->pristine = sim_room(DATA_SIZE);
    plain_copy(sim->pristine, __data_start, DATA_SIZE & ~(size_t)7);
}

/* procs: of each fabric; 0: drawn. */
static void sim_begin(unsigned seed, unsigned procs)
{
    sim->seed = seed;
    sim->rng = seed;
    sim->now = S;
    sim->day_ns = 0;
    sim->calls = 0;
    sim->ids = 0;
    sim->turns = 8;
    sim->call_ns = 10 * US;
    sim->faults = 0;
    sim->full = false;
    sim->oom_kills = 3;
    sim->event = NULL;
    sim->pid_max = 30000;
    sim->last_pid = 1000;
    *sim->failed = 0;
    memset(oracle, 0, sizeof(*oracle));
    for (unsigned f = 0; f < FABRICS; f++) {
        oracle->n_procs[f] = procs ? procs : 1 + (unsigned)draw(PROCS);
        oracle->lived_ns[f] = -1;
        for (unsigned p = 0; p < PROCS; p++)
            oracle->ready_ns[f][p] = -1;
    }
    machine_files();
}

static void trace_files(const struct sim_file *f, unsigned depth)
{
    for (; f; f = f->next) {
        sim_trace("%*s%s", (int)depth, "", f->name);
        trace_files(f->children, depth + 2);
    }
}

static void sim_end(void)
{
    trace_files(file_of("/run/user/1000"), 0);
    for (unsigned i = 0; i < sim->n_tasks; i++)
        if (sim->task[i].state == TASK_LIVES) {
            sim->task[i].id = -1; /* of no command */
            sim->task[i].program = &programs[4];
            sim->task[i].parent = INIT;
            task_end(&sim->task[i], 0);
        }
    for (unsigned i = 0; i < sim->n_tasks; i++)
        sim->task[i].state = TASK_NONE;
    sim->n_tasks = 0;
    for (unsigned i = 0; i < SIM_OPEN; i++)
        HOLDS(!sim->opened[i].kind, "an open file is left");
}

static struct command *command_give(const char *what, unsigned fabric)
{
    char *argv[] = {(char *)(uintptr_t) "/opt/trib/trib", (char *)(uintptr_t)what, NULL, NULL};
    struct command *c = &oracle->command[oracle->n_commands];
    char conf[8];
    struct task *t;

    HOLDS(oracle->n_commands < COMMANDS - 1, "more than %u commands", COMMANDS);
    snprintf(conf, sizeof(conf), "%s.conf", fabrics[fabric]);
    argv[2] = conf;
    if (oracle->n_commands < COMMANDS - 1)
        oracle->n_commands++;
    memset(c, 0, sizeof(*c));
    t = task_spawn(&programs[0], &c->says, argv);
    t->fabric = (int)fabric;
    sim_trace("%d is trib %s %s", t->pid, what, fabrics[fabric]);
    c->id = t->id;
    c->fabric = (int)fabric;
    c->began_ns = sim->now;
    c->status = -1;
    c->what = what;
    c->asked = is_ended_by((int)fabric);
    return c;
}

/* Until the command has ended, which is not long. Its exit code. */
static int command_wait(const struct command *c)
{
    int64_t until = sim->now + COMMAND_MOST;

    while (c->status < 0 && sim->now < until && !*sim->failed)
        sim_run(sim->now + 10 * MS);
    HOLDS(c->status >= 0, "%s of fabric %s does not end; it says '%s'", c->what, fabrics[c->fabric],
          c->says.text);
    return WIFEXITED(c->status) ? WEXITSTATUS(c->status) : -1;
}

static int command_whole(const char *what, unsigned fabric)
{
    return command_wait(command_give(what, fabric));
}

static unsigned living(int fabric)
{
    unsigned n = 0;

    for (unsigned i = 0; i < sim->n_tasks; i++)
        n += task_lives(&sim->task[i]) && is_of_fabric(&sim->task[i], fabric);
    return n;
}

static bool is_gone(unsigned fabric)
{
    char path[64];

    snprintf(path, sizeof(path), BASE "/%s", fabrics[fabric]);
    return !file_of(path) && !living((int)fabric);
}

#endif
