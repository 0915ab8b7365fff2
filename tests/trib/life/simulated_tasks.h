/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes of one machine in one process, in virtual time: each runs the code of trib, of trib-keep or of a model of
 * another program, on one stack and in one .data that are exchanged when another one has its turn. So fork() copies
 * both, as the kernel does, and the code is that of the release. Who has a turn, and how long a call takes, is drawn
 * from a seed: the same seed is the same run. Rejected: real processes, whose order the kernel decides; threads, which
 * have no fork(). A program has this once.
 */
#ifndef TRIB_TESTS_TRIB_LIFE_SIMULATED_TASKS_H
#define TRIB_TESTS_TRIB_LIFE_SIMULATED_TASKS_H

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>

#define US         1000ll
#define MS         1000000ll
#define S          (1000 * MS)
#define TASKS      128u
#define FDS        48
#define ARGS       24
#define STACK      (512u << 10)
#define RED        1536 /* below the last variable: the frame of who exchanges */
#define FILES_OPEN 8
#define TICK_NS    (10 * MS) /* of start times */
#define INIT       1         /* pid of who adopts */
#define USER       1000

enum task_state { TASK_NONE, TASK_LIVES, TASK_ZOMBIE };
enum wait_kind { RUNS, SLEEPS, POLLS, WAITS_CHILD, WAITS_SIGNAL, READS };

struct task;
typedef int main_fn(int argc, char **argv);

struct program {
    const char *name;
    main_fn *run;
    bool model; /* has no .data of its own */
};

/* Memory that it and those that it has forked allocated. */
struct task_heap {
    unsigned refs, n, room;
    void **at;
};

struct task {
    enum task_state state;
    pid_t pid, parent, group, session;
    int id; /* unlike the pid, no other one ever has it */
    const struct program *program;
    char args[512]; /* as /proc/PID/cmdline */
    size_t args_size;
    char *argv[ARGS + 1];
    int argc;
    int64_t start_ns;
    int status;
    bool stopped, fresh, in_handler;
    int death_signal;
    /* what is exchanged */
    ucontext_t *at;
    char *stack, *data;
    size_t stack_used;
    int err;
    /* signals */
    sigset_t mask, pending;
    sighandler_t handler[65];
    unsigned sender[65]; /* id of who has sent what is pending */
    /* what it waits for */
    enum wait_kind wait;
    int64_t until; /* INT64_MAX: for ever */
    struct pollfd polled[4];
    unsigned n_polled;
    int fd;
    pid_t child;
    sigset_t signals;
    bool continued; /* since it waits */
    /* what it has */
    int open[FDS]; /* index of an open file; -1: none */
    bool on_exec[FDS];
    struct task_heap *heap;
    FILE *files[FILES_OPEN];
    void (*at_exit[4])(void);
    unsigned n_at_exit;
    char run[128]; /* TRIB_RUN */
    /* what the oracle knows of it */
    int fabric;    /* -1: none */
    char name[32]; /* of a switch */
    int starter;   /* id of the first process of trib-keep start: all that it starts has it */
    int killed_by; /* the signal of a trouble */
    bool ready, keeper;
    int partner;      /* id of the process that the fabric of this keeper lives with; 0: none */
    int64_t alone_ns; /* since when it is gone; 0: it is there, or the keeper was stopped */
    bool told;        /* to end, by its keeper or by trib-keep stop */
    int64_t ended_ns;
};

enum { SIM_FILES = 640, SIM_OPEN = 1024, SIM_PIPES = 64 };
struct sim_file;
struct sim_open;
struct sim_pipe;

/* All that a simulated machine has; on the heap, since .data is exchanged. */
struct sim {
    uint64_t rng;
    int64_t now, day_ns;
    struct task task[TASKS];
    unsigned n_tasks; /* used at least once */
    struct task *current, *loaded, *data_of;
    int ids;
    pid_t last_pid, pid_max;
    ucontext_t turn, first;
    char *stack;
    char *pristine;
    struct task *child; /* that the current one forks */
    bool inside, traces;
    char failed[1024];
    unsigned seed;
    /* drawn once for a seed */
    unsigned turns;  /* one call of so many gives the turn to another task */
    int64_t call_ns; /* a call takes up to so long */
    unsigned faults; /* of ten thousand calls */
    bool full;       /* the file system */
    uint64_t oom_kills;
    unsigned long long calls;
    FILE *out, *err, *real_out, *real_err;
    struct sim_file *file;
    struct sim_open *opened;
    struct sim_pipe *pipe;
    unsigned n_files;
    void (*event)(void); /* of the test, when its time has come */
    int64_t event_at;
};
static struct sim *sim;

extern char __data_start[], _end[];
#define DATA_SIZE ((size_t)((uintptr_t)_end - (uintptr_t)__data_start))

#define REAL(name) ((__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name))
#define SIMULATED  (sim && sim->current && !sim->inside)

/* Something is wrong: the seed ends. */
static __attribute__((format(printf, 1, 2))) void sim_wrong(const char *fmt, ...)
{
    int n = snprintf(sim->failed, sizeof(sim->failed), "SEED=%u at %.6f s: ", sim->seed,
                     (double)sim->now / 1e9);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(sim->failed + n, sizeof(sim->failed) - (size_t)n, fmt, ap);
    va_end(ap);
}

/* What happens, on the way of a seed that is looked at: TRACE=1. */
static __attribute__((format(printf, 1, 2))) void sim_trace(const char *fmt, ...)
{
    va_list ap;

    if (!sim->traces)
        return;
    fprintf(sim->real_err, "%10.6f ", (double)sim->now / 1e9);
    va_start(ap, fmt);
    vfprintf(sim->real_err, fmt, ap);
    va_end(ap);
    fputc('\n', sim->real_err);
}

#define HOLDS(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition) && !*sim->failed)                                                         \
            sim_wrong(__VA_ARGS__);                                                                \
    } while (0)

static uint64_t draw(uint64_t below)
{
    return random_next(&sim->rng) % below;
}

/* As often below ten times a value as below a hundred times it. */
static int64_t draw_scaled(int64_t least, unsigned decades)
{
    for (unsigned i = (unsigned)draw(decades); i; i--)
        least *= 10;
    return least + (int64_t)draw((uint64_t)least * 9);
}

static bool in_ten_thousand(unsigned p)
{
    return p && draw(10000) < p;
}

/* Memory of the simulator, not of a task. */
static void *sim_room(size_t n)
{
    bool was = sim && sim->inside;
    void *p;

    if (sim)
        sim->inside = true;
    p = calloc(1, n);
    if (!p)
        abort();
    if (sim)
        sim->inside = was;
    return p;
}

static void sim_free(void *p)
{
    bool was = sim->inside;

    sim->inside = true;
    free(p);
    sim->inside = was;
}

/* ---- who there is ---- */

static struct task *task_of(pid_t pid)
{
    for (unsigned i = 0; i < sim->n_tasks; i++)
        if (sim->task[i].state && sim->task[i].pid == pid)
            return &sim->task[i];
    return NULL;
}

static struct task *task_by_id(int id)
{
    for (unsigned i = 0; i < sim->n_tasks; i++)
        if (sim->task[i].state && sim->task[i].id == id)
            return &sim->task[i];
    return NULL;
}

static bool task_lives(const struct task *t)
{
    return t && t->state == TASK_LIVES;
}

static pid_t pid_next(void)
{
    do
        sim->last_pid = sim->last_pid >= sim->pid_max ? 2 : sim->last_pid + 1;
    while (task_of(sim->last_pid));
    return sim->last_pid;
}

static struct task *task_new(void)
{
    struct task *t = NULL;
    char *stack, *data;

    for (unsigned i = 0; i < TASKS && !t; i++)
        if (!sim->task[i].state)
            t = &sim->task[i];
    if (!t) {
        HOLDS(false, "more than %u processes", TASKS);
        t = &sim->task[TASKS - 1];
    }
    if (t >= sim->task + sim->n_tasks)
        sim->n_tasks = (unsigned)(t - sim->task) + 1;
    stack = t->stack ? t->stack : sim_room(STACK);
    data = t->data ? t->data : sim_room(DATA_SIZE);
    memset(t, 0, sizeof(*t));
    t->stack = stack;
    t->data = data;
    t->state = TASK_LIVES;
    t->pid = pid_next();
    t->id = ++sim->ids;
    t->start_ns = sim->now;
    t->until = INT64_MAX;
    t->fabric = t->starter = -1;
    for (int i = 0; i < FDS; i++)
        t->open[i] = -1;
    return t;
}

/* ---- its memory ---- */

static void heap_of_new(struct task *t)
{
    t->heap = sim_room(sizeof(*t->heap));
    t->heap->refs = 1;
}

static void heap_leave(struct task *t)
{
    struct task_heap *h = t->heap;

    t->heap = NULL;
    if (!h || --h->refs)
        return;
    for (unsigned i = 0; i < h->n; i++)
        sim_free(h->at[i]);
    sim_free(h->at);
    sim_free(h);
}

static inline void heap_note(void *p)
{
    struct task_heap *h = sim->current->heap;

    if (!p)
        return;
    if (h->n == h->room) {
        void **more = sim_room((h->room ? 2 * h->room : 64) * sizeof(*more));

        if (h->n)
            memcpy(more, h->at, h->n * sizeof(*more));
        sim_free(h->at);
        h->at = more;
        h->room = h->room ? 2 * h->room : 64;
    }
    h->at[h->n++] = p;
}

static inline void heap_forget(const void *p)
{
    struct task_heap *h = sim->current->heap;

    for (unsigned i = h->n; i-- > 0;)
        if (h->at[i] == p) {
            h->at[i] = h->at[--h->n];
            return;
        }
}

/* ---- the exchange of stacks and data ---- */

/* A sanitizer knows nothing of it. */
__attribute__((no_sanitize("address", "undefined"), noinline)) static void
plain_copy(void *to, const void *from, size_t n)
{
    uint64_t *t = to;
    const uint64_t *f = from;

    for (size_t i = 0; i < n / 8; i++)
        t[i] = f[i];
}

static void task_unload(struct task *t)
{
    char *low = (char *)(((uintptr_t)t->at - RED) & ~(uintptr_t)15);

    t->stack_used = (size_t)(sim->stack + STACK - low);
    plain_copy(t->stack + STACK - t->stack_used, low, t->stack_used);
}

static void data_exchange(struct task *t)
{
    size_t n = DATA_SIZE & ~(size_t)7;

    if (sim->data_of == t || (t && t->program->model))
        return;
    if (sim->data_of)
        plain_copy(sim->data_of->data, __data_start, n);
    sim->data_of = t;
    if (t)
        plain_copy(__data_start, t->data, n);
}

static void task_load(struct task *t)
{
    if (sim->loaded == t)
        return;
    if (sim->loaded)
        task_unload(sim->loaded);
    sim->loaded = t;
    if (!t->fresh)
        plain_copy(sim->stack + STACK - t->stack_used, t->stack + STACK - t->stack_used,
                   t->stack_used);
}

/* The task has no more memory. */
static void task_forget(struct task *t)
{
    if (sim->loaded == t)
        sim->loaded = NULL;
    if (sim->data_of == t)
        sim->data_of = NULL;
}

/* The current task gives the turn back; twice it returns in who forks, as fork() does. */
static __attribute__((noinline)) void task_leave(void)
{
    ucontext_t here;

    sim->current->at = &here;
    swapcontext(&here, &sim->turn);
}

static void task_first(void);

static void task_turn(struct task *t)
{
    data_exchange(t);
    task_load(t);
    sim->current = t;
    sim->inside = false;
    errno = t->err;
    stdout = sim->out;
    stderr = sim->err;
    if (t->fresh) {
        t->fresh = false;
        getcontext(&sim->first);
        sim->first.uc_stack.ss_sp = sim->stack;
        sim->first.uc_stack.ss_size = STACK;
        sim->first.uc_link = NULL;
        makecontext(&sim->first, task_first, 0);
        swapcontext(&sim->turn, &sim->first);
    } else {
        swapcontext(&sim->turn, t->at);
    }
    t->err = errno;
    stdout = sim->real_out;
    stderr = sim->real_err;
    sim->current = NULL;
}

#endif
