/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns, signals, and the end of processes of simulated_tasks.h: what signal(7), wait(2) and prctl(2) promise. */
#ifndef TRIB_TESTS_TRIB_LIFE_SIMULATED_KERNEL_H
#define TRIB_TESTS_TRIB_LIFE_SIMULATED_KERNEL_H

#include "simulated_files.h"

#define CALLS_MOST 3000000u /* of a seed: more is a loop */

/* ---- of the oracle ---- */

static void oracle_ended(struct task *t);
static void oracle_signal(const struct task *from, const struct task *to, int sig);

/* ---- the end of a process ---- */

static void signal_send(struct task *t, int sig, const struct task *from);

static void task_reap(struct task *t)
{
    t->state = TASK_NONE;
}

static void children_leave(struct task *t)
{
    for (unsigned i = 0; i < sim->n_tasks; i++) {
        struct task *c = &sim->task[i];

        if (!c->state || c->parent != t->pid || c == t)
            continue;
        c->parent = INIT;
        if (c->state == TASK_ZOMBIE)
            task_reap(c);
        else if (c->death_signal)
            signal_send(c, c->death_signal, t);
    }
}

static void task_end(struct task *t, int status)
{
    struct task *parent;

    if (t->state != TASK_LIVES)
        return;
    t->status = status;
    t->state = TASK_ZOMBIE;
    t->ended_ns = sim->now;
    t->stopped = false;
    sim_trace("%d (%s %s) ends with %#x", t->pid, t->program->name, t->name, (unsigned)status);
    oracle_ended(t);
    for (unsigned i = 0; i < FILES_OPEN; i++)
        if (t->files[i])
            fclose(t->files[i]);
    for (int fd = 0; fd < FDS; fd++)
        if (t->open[fd] >= 0)
            fd_close(t, fd);
    heap_leave(t);
    task_forget(t);
    children_leave(t);
    parent = task_of(t->parent);
    if (!task_lives(parent) || parent->handler[SIGCHLD] == SIG_IGN)
        task_reap(t);
    if (task_lives(parent))
        signal_send(parent, SIGCHLD, t);
}

/* The current task ends. */
static __attribute__((noreturn)) void task_die(int status)
{
    struct task *t = sim->current;

    sim->inside = true;
    task_end(t, status);
    sim->inside = false;
    task_leave();
    abort();
}

/* ---- signals ---- */

static bool is_default_ignored(int sig)
{
    return sig == SIGCHLD || sig == SIGCONT || sig == SIGURG || sig == SIGWINCH;
}

static bool is_ignored(const struct task *t, int sig)
{
    return !sigismember(&t->mask, sig) &&
           (t->handler[sig] == SIG_IGN || (t->handler[sig] == SIG_DFL && is_default_ignored(sig)));
}

/* from: NULL: the test, or a terminal. */
static void signal_send(struct task *t, int sig, const struct task *from)
{
    if (t->state != TASK_LIVES)
        return;
    oracle_signal(from, t, sig);
    if (sig != SIGCHLD)
        sim_trace("%d (%s) sends signal %d to %d (%s %s)", from ? from->pid : 0,
                  from ? from->program->name : "somebody", sig, t->pid, t->program->name, t->name);
    if (sig == SIGKILL) {
        if (t == sim->current)
            task_die(SIGKILL);
        task_end(t, SIGKILL);
        return;
    }
    if (sig == SIGSTOP) {
        t->stopped = true;
        return;
    }
    if (sig == SIGCONT) {
        t->continued |= t->stopped;
        t->stopped = false;
    }
    if (!sig || is_ignored(t, sig))
        return;
    sigaddset(&t->pending, sig);
}

static int signal_deliverable(const struct task *t)
{
    for (int sig = 1; sig < 32; sig++)
        if (sigismember(&t->pending, sig) == 1 && !sigismember(&t->mask, sig))
            return sig;
    return 0;
}

/* Of the current task. true: a handler has run. */
static bool signals_deliver(void)
{
    struct task *t = sim->current;
    bool handled = false;
    int sig;

    while ((sig = signal_deliverable(t))) {
        sighandler_t handler = t->handler[sig];
        sigset_t was = t->mask;

        sigdelset(&t->pending, sig);
        if (handler == SIG_IGN || (handler == SIG_DFL && is_default_ignored(sig)))
            continue;
        if (handler == SIG_DFL)
            task_die(sig);
        sigfillset(&t->mask);
        handler(sig);
        t->mask = was;
        handled = true;
    }
    return handled;
}

/* ---- turns ---- */

static struct task *zombie_of(const struct task *t, pid_t which, bool *any)
{
    *any = false;
    for (unsigned i = 0; i < sim->n_tasks; i++) {
        struct task *c = &sim->task[i];

        if (!c->state || c->parent != t->pid || c == t || (which > 0 && c->pid != which))
            continue;
        *any = true;
        if (c->state == TASK_ZOMBIE)
            return c;
    }
    return NULL;
}

static bool is_satisfied(struct task *t)
{
    const struct sim_open *o;
    sigset_t both;
    bool any;

    switch (t->wait) {
    case RUNS:
        return true;
    case SLEEPS:
        return false;
    case POLLS:
        return is_polled(t);
    case WAITS_CHILD:
        return zombie_of(t, t->child, &any) || !any;
    case WAITS_SIGNAL:
        sigandset(&both, &t->pending, &t->signals);
        return !sigisemptyset(&both) || t->continued;
    case READS:
        o = open_of(t, t->fd);
        return !o || open_events(t, o) & POLLIN;
    }
    return true;
}

static bool task_runs(struct task *t)
{
    return t->state == TASK_LIVES && !t->stopped &&
           (t->until <= sim->now || is_satisfied(t) || signal_deliverable(t));
}

static struct task *task_drawn(void)
{
    struct task *all[TASKS];
    unsigned n = 0;

    for (unsigned i = 0; i < sim->n_tasks; i++)
        if (task_runs(&sim->task[i]))
            all[n++] = &sim->task[i];
    return n ? all[draw(n)] : NULL;
}

static int64_t next_time(void)
{
    int64_t at = sim->event ? sim->event_at : INT64_MAX;

    for (unsigned i = 0; i < sim->n_tasks; i++) {
        const struct task *t = &sim->task[i];

        if (t->state == TASK_LIVES && !t->stopped && t->until < at)
            at = t->until;
    }
    return at;
}

/* What the one that has forked has, the other one has too. */
static void fork_copy(struct task *t)
{
    struct task *c = sim->child;

    sim->child = NULL;
    task_unload(t);
    c->at = t->at;
    c->stack_used = t->stack_used;
    plain_copy(c->stack + STACK - c->stack_used, t->stack + STACK - t->stack_used, t->stack_used);
    if (!t->program->model)
        plain_copy(c->data, __data_start, DATA_SIZE & ~(size_t)7);
}

/* Until nothing happens any more, or `until`. */
static void sim_run(int64_t until)
{
    while (!*sim->failed && sim->now < until) {
        struct task *t;

        if (sim->event && sim->event_at <= sim->now)
            sim->event();
        t = task_drawn();
        if (!t) {
            int64_t at = next_time();

            sim->now = at < until ? at > sim->now ? at : sim->now : until;
            continue;
        }
        task_turn(t);
        if (sim->child)
            fork_copy(t);
    }
}

/* ---- calls ---- */

/* How each call begins: time passes, others may have their turn, signals arrive. */
static struct task *call_begin(void)
{
    sim->now += 1 + (int64_t)draw((uint64_t)sim->call_ns);
    HOLDS(++sim->calls < CALLS_MOST, "no end of it");
    if (!draw(sim->turns) || (sim->event && sim->event_at <= sim->now) || *sim->failed)
        task_leave();
    while (sim->current->stopped)
        task_leave();
    signals_deliver();
    return sim->current;
}

/* Until what the current task waits for has come, or the time. false: a handler has run. */
static bool call_wait(enum wait_kind kind, int64_t until)
{
    struct task *t = sim->current;
    bool handled = false;

    t->wait = kind;
    t->until = until;
    t->continued = false;
    while (!handled && !is_satisfied(t) && t->until > sim->now) {
        task_leave();
        handled = signals_deliver();
    }
    t->wait = RUNS;
    t->until = INT64_MAX;
    return !handled;
}

/* One of these errors now and then, 0 behind the last. */
static bool call_fails(const int *errors)
{
    unsigned n = 0;

    if (!in_ten_thousand(sim->faults))
        return false;
    while (errors[n])
        n++;
    errno = errors[draw(n)];
    sim_trace("%d has a call fail: %s", sim->current->pid, strerror(errno));
    return true;
}

#define CALL_FAILS(...) call_fails((const int[]){__VA_ARGS__, 0})

#endif
