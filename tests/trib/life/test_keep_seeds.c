/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Life cycles of two fabrics on one machine, through troubles that a seed draws: several commands at once; processes that start late, fail, crash, hang,
 * are killed and stopped by somebody else, and by the kernel where memory is out; keys of a terminal; a file system that is full, memory and descriptors
 * that are out; pid files with numbers of strangers, run directories that somebody removes; a clock that is set. Then there is peace, and a fabric goes up
 * and down as if nothing had been. SEED=N: this one alone; SEEDS=N: so many from SEED (1) on.
 */
#include "simulated_life.h"

#define TROUBLES_NS (30 * S)

static struct drawn {
    unsigned bad; /* of a hundred switches */
    unsigned troubles;
    bool removes; /* somebody removes files of run directories */
    int64_t until;
} * drawn;

/* ---- what is drawn ---- */

static struct fate_drawn fate_draw(void)
{
    struct fate_drawn f = {.late_ns = draw_scaled(MS, 3),
                           .ready_ns = draw_scaled(MS, 3),
                           .lives_ns = INT64_MAX,
                           .fate = SERVES};

    if (draw(100) >= drawn->bad || sim->now > drawn->until)
        return f;
    f.fate = (enum fate)draw(FATES);
    f.deaf = !draw(4);
    if (draw(2))
        f.lives_ns = draw_scaled(MS, 5);
    if (!draw(10))
        f.late_ns += 70 * S;
    return f;
}

static struct task *somebody(bool of_ours)
{
    struct task *all[TASKS];
    unsigned n = 0;

    for (unsigned i = 0; i < sim->n_tasks; i++)
        if (task_lives(&sim->task[i]) && (!of_ours || sim->task[i].fabric >= 0))
            all[n++] = &sim->task[i];
    return n ? all[draw(n)] : NULL;
}

/* ---- troubles ---- */

static void trouble_signal(void)
{
    static const int sigs[] = {SIGKILL, SIGKILL, SIGTERM, SIGSTOP,
                               SIGCONT, SIGCONT, SIGINT,  SIGHUP};
    const struct command *c = &oracle->command[oracle->n_commands ? draw(oracle->n_commands) : 0];
    struct task *t = draw(3) || c->status >= 0 ? somebody(true) : task_by_id(c->id);
    int sig = sigs[draw(8)];

    if (!task_lives(t))
        return;
    commands_are_asked(t->fabric);
    if (sig == SIGKILL && !draw(3))
        sim->oom_kills++;
    t->killed_by = sig;
    signal_send(t, sig, NULL);
}

/* Keys of a terminal, or its end: all of a command's process group hears of it. */
static void trouble_terminal(void)
{
    struct command *c = oracle->n_commands ? &oracle->command[draw(oracle->n_commands)] : NULL;
    const struct task *of = c && c->status < 0 ? task_by_id(c->id) : NULL;
    int sig = draw(2) ? SIGINT : SIGHUP;
    pid_t group;

    if (!of)
        return;
    commands_are_asked(c->fabric);
    group = of->group;
    for (unsigned i = 0; i < sim->n_tasks; i++)
        if (task_lives(&sim->task[i]) && sim->task[i].group == group)
            signal_send(&sim->task[i], sig, NULL);
}

static void trouble_files(void)
{
    static const char *const parts[] = {"", "/proc", "/keeper", "/shared"};
    unsigned f = (unsigned)draw(FABRICS);
    char path[64];
    struct sim_file *file;

    /* One part: what has neither proc nor shared may be anybody's. */
    snprintf(path, sizeof(path), BASE "/%s%s", fabrics[f], parts[oracle->mangled[f] ? 0 : draw(4)]);
    file = drawn->removes ? file_of(path) : NULL;
    if (!file)
        return;
    oracle->mangled[f] = true;
    sim_trace("somebody removes %s", path);
    file_erase(file);
}

static void trouble_pid_file(void)
{
    const struct task *t = somebody(false);
    char path[64];
    struct sim_file *file;

    snprintf(path, sizeof(path), BASE "/%s/proc/p%u.pid", fabrics[draw(FABRICS)],
             (unsigned)draw(PROCS + 1));
    file = file_of(path);
    if (!t || !file_of(BASE "/a/proc"))
        return;
    file = file ? file : file_put(BASE "/a/proc/x.pid", "");
    file->size = (size_t)snprintf(file->data, FILE_BYTES, "%d\n%llu\n", t->pid,
                                  (unsigned long long)draw(100));
}

static void trouble_command(void)
{
    static const char *const what[] = {"up", "up", "down", "down", "perf"};

    if (oracle->n_commands < COMMANDS / 2)
        command_give(what[draw(5)], (unsigned)draw(FABRICS));
}

static void trouble(void)
{
    char *argv[] = {(char *)(uintptr_t) "sleep", NULL};
    unsigned what = (unsigned)draw(12);

    if (what < 5)
        trouble_command();
    else if (what < 7)
        trouble_signal();
    else if (what == 7)
        trouble_terminal();
    else if (what == 8)
        trouble_files();
    else if (what == 9)
        trouble_pid_file();
    else if (what == 10)
        sim->full = !sim->full && !draw(3);
    else if (draw(2))
        sim->day_ns = (int64_t)draw(7200 * S) - 3600 * S;
    else if (sim->n_tasks < TASKS / 2)
        task_spawn(&programs[4], NULL, argv);
}

static void event(void)
{
    oracle_look();
    if (sim->now >= drawn->until) {
        sim->event_at += 100 * MS;
        return;
    }
    trouble();
    sim->event_at = sim->now + draw_scaled(MS, 4) / 4;
}

static void seed_draw(void)
{
    static const unsigned often[] = {0, 0, 0, 10, 100};

    sim->turns = 1 + (unsigned)draw(draw(3) ? 40 : 4);
    sim->call_ns = draw_scaled(2 * US, 3);
    sim->faults = often[draw(5)];
    sim->pid_max = draw(3) ? 30000 : 140;
    sim->last_pid = 100;
    drawn->bad = draw(2) ? 0 : (unsigned)draw(60);
    drawn->removes = !draw(4);
    drawn->until = sim->now + (int64_t)draw(TROUBLES_NS);
    sim->event = event;
    sim->event_at = sim->now;
}

/* ---- peace ---- */

static void peace(void)
{
    sim->faults = 0;
    sim->full = false;
    for (unsigned i = 0; i < sim->n_tasks; i++)
        signal_send(&sim->task[i], SIGCONT, NULL);
    for (unsigned i = 0; i < oracle->n_commands; i++)
        if (oracle->command[i].status < 0)
            command_wait(&oracle->command[i]);
    sim_run(sim->now + (int64_t)draw(2) * (ALONE_MOST + S)); /* what is left comes to rest */
}

static bool runs_whole(unsigned f)
{
    return living((int)f) == oracle->n_procs[f] + 2u || living((int)f) == oracle->n_procs[f] + 1u;
}

static void up_and_down(unsigned f)
{
    int code = command_whole("down", f);

    HOLDS(!code || is_gone(f), "down of fabric %s ends with %d: '%s'", fabrics[f], code,
          oracle->command[oracle->n_commands - 1].says.text);
    HOLDS(is_gone(f), "down leaves fabric %s", fabrics[f]);
    code = command_whole("up", f);
    HOLDS(!code, "up of fabric %s ends with %d: '%s'", fabrics[f], code,
          oracle->command[oracle->n_commands - 1].says.text);
    HOLDS(runs_whole(f), "fabric %s has %u processes", fabrics[f], living((int)f));
    HOLDS(command_whole("up", f) == 1, "fabric %s goes up twice", fabrics[f]);
    HOLDS(runs_whole(f), "fabric %s has %u processes", fabrics[f], living((int)f));
    HOLDS(command_whole("perf", f) < 2, "perf of fabric %s fails", fabrics[f]);
    HOLDS(!command_whole("down", f), "fabric %s does not go down", fabrics[f]);
    HOLDS(is_gone(f), "down leaves fabric %s", fabrics[f]);
    HOLDS(command_whole("down", f) == 1, "fabric %s goes down twice", fabrics[f]);
}

/* ---- a seed ---- */

static void a_seed(unsigned seed)
{
    sim_begin(seed, 0);
    seed_draw();
    sim_run(drawn->until);
    peace();
    for (unsigned f = 0; f < FABRICS; f++)
        up_and_down(f);
    HOLDS(!file_of(BASE), "the directory of all fabrics is left");
    sim_end();
    if (*sim->failed)
        fail_msg("%s", sim->failed);
}

static unsigned number_of(const char *name, unsigned otherwise)
{
    const char *s = getenv(name);

    return s && *s ? (unsigned)strtoul(s, NULL, 10) : otherwise;
}

static void seeds(void **state)
{
    unsigned first = number_of("SEED", 1), n = number_of("SEEDS", getenv("SEED") ? 1 : 60);
    unsigned long long calls = 0, ups = 0, downs = 0, deaths = 0;

    (void)state;
    for (unsigned i = first; i < first + n; i++) {
        a_seed(i);
        calls += sim->calls;
        ups += oracle->ups;
        downs += oracle->downs;
        deaths += oracle->deaths;
    }
    printf("%u seeds, %llu calls, %llu times up, %llu times down, %llu ends of switches\n", n,
           calls, ups, downs, deaths);
}

static int setup(void **state)
{
    (void)state;
    drawn = sim_room(sizeof(*drawn));
    machine_new();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seeds),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
