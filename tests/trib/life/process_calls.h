/* SPDX-License-Identifier: BSD-3-Clause */
/* What trib and trib-keep ask of the C library about processes, time and memory, answered for the task of simulated_tasks.h whose
 * code runs; what the test itself asks goes to the system. */
#ifndef TRIB_TESTS_TRIB_LIFE_PROCESS_CALLS_H
#define TRIB_TESTS_TRIB_LIFE_PROCESS_CALLS_H

#include "simulated_kernel.h"

#include <grp.h>
#include <ifaddrs.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const struct program *program_of(const char *path);
static void oracle_runs(struct task *t);

/* ---- time ---- */

int clock_gettime(clockid_t id, struct timespec *ts)
{
    int64_t ns;

    if (!SIMULATED)
        return (int)REAL(syscall)(SYS_clock_gettime, id, ts);
    call_begin();
    ns = sim->now + (id == CLOCK_REALTIME ? 1800000000 * S + sim->day_ns : 0);
    *ts = (struct timespec){.tv_sec = ns / S, .tv_nsec = ns % S};
    return 0;
}

int usleep(useconds_t us)
{
    if (!SIMULATED)
        return REAL(usleep)(us);
    call_begin();
    if (call_wait(SLEEPS, sim->now + us * US))
        return 0;
    errno = EINTR;
    return -1;
}

/* ---- who ---- */

pid_t getpid(void)
{
    return SIMULATED ? sim->current->pid : REAL(getpid)();
}

pid_t getppid(void)
{
    return SIMULATED ? call_begin()->parent : REAL(getppid)();
}

uid_t geteuid(void)
{
    return SIMULATED ? USER : REAL(geteuid)();
}

uid_t getuid(void)
{
    return SIMULATED ? USER : REAL(getuid)();
}

struct passwd *getpwuid(uid_t uid)
{
    (void)uid;
    return NULL;
}

int getpwuid_r(uid_t uid, struct passwd *p, char *text, size_t size, struct passwd **result)
{
    (void)uid, (void)p, (void)text, (void)size;
    *result = NULL;
    return 0;
}

int getifaddrs(struct ifaddrs **all)
{
    (void)all;
    errno = ENOMEM;
    return -1;
}

pid_t setsid(void)
{
    struct task *t;

    if (!SIMULATED)
        return REAL(setsid)();
    t = call_begin();
    return t->session = t->group = t->pid;
}

/* ---- a process begins and ends ---- */

pid_t fork(void)
{
    struct task *t, *c, was;
    pid_t pid;

    if (!SIMULATED)
        return REAL(fork)();
    t = call_begin();
    if (CALL_FAILS(EAGAIN, ENOMEM))
        return -1;
    c = task_new();
    was = *c;
    *c = *t;
    c->pid = pid = was.pid;
    c->id = was.id;
    c->stack = was.stack;
    c->data = was.data;
    c->start_ns = sim->now;
    c->parent = t->pid;
    c->death_signal = 0;
    c->keeper = t->id == t->starter;
    sigemptyset(&c->pending);
    for (int i = 0; i < t->argc; i++)
        c->argv[i] = c->args + (t->argv[i] - t->args);
    c->heap->refs++;
    memset(c->files, 0, sizeof(c->files));
    for (int fd = 0; fd < FDS; fd++)
        if (c->open[fd] >= 0)
            sim->opened[c->open[fd]].refs++;
    sim->child = c;
    task_leave();
    signals_deliver();
    return sim->current == c ? 0 : pid;
}

static void task_becomes(struct task *t, const struct program *p, int argc, char *const *argv)
{
    char args[sizeof(t->args)];
    size_t n = 0;

    for (int i = 0; i < argc; i++)
        n += (size_t)snprintf(args + n, sizeof(args) - n, "%s", argv[i]) + 1;
    memcpy(t->args, args, n);
    t->args_size = n;
    n = 0;
    for (t->argc = 0; t->argc < argc; t->argc++) {
        t->argv[t->argc] = t->args + n;
        n += strlen(t->args + n) + 1;
    }
    t->argv[argc] = NULL;
    t->program = p;
    t->fresh = true;
    t->wait = RUNS;
    t->n_at_exit = 0;
    plain_copy(t->data, sim->pristine, DATA_SIZE & ~(size_t)7);
    for (int i = 1; i < 65; i++)
        if (t->handler[i] != SIG_IGN)
            t->handler[i] = SIG_DFL;
    heap_leave(t); /* argv was of it */
    heap_of_new(t);
}

int execv(const char *path, char *const argv[])
{
    const struct program *p;
    struct task *t;
    int argc = 0;

    if (!SIMULATED)
        return REAL(execv)(path, argv);
    t = call_begin();
    if (CALL_FAILS(ENOMEM))
        return -1;
    p = program_of(path);
    if (!p) {
        errno = ENOENT;
        return -1;
    }
    while (argv[argc])
        argc++;
    if (argc > ARGS)
        HOLDS(false, "more than %d arguments", ARGS);
    for (unsigned i = 0; i < FILES_OPEN; i++)
        t->files[i] = NULL;
    for (int fd = 0; fd < FDS; fd++)
        if (t->open[fd] >= 0 && t->on_exec[fd])
            fd_close(t, fd);
    sim->inside = true;
    task_becomes(t, p, argc, argv);
    oracle_runs(t);
    sim_trace("%d runs %s %s %s", t->pid, path, t->argc > 1 ? t->argv[1] : "",
              t->argc > 2 ? t->argv[2] : "");
    task_forget(t);
    task_leave();
    abort();
}

int execl(const char *path, const char *arg, ...)
{
    char *argv[ARGS + 1];
    int n = 0;
    va_list ap;

    va_start(ap, arg);
    for (const char *a = arg; a && n < ARGS; a = va_arg(ap, const char *))
        argv[n++] = (char *)(uintptr_t)a;
    va_end(ap);
    argv[n] = NULL;
    return execv(path, argv);
}

void _exit(int code)
{
    if (SIMULATED) {
        call_begin();
        task_die((code & 0xff) << 8);
    }
    REAL(_exit)(code);
    __builtin_unreachable();
}

static __attribute__((noreturn)) void task_exit(int code)
{
    struct task *t = sim->current;

    while (t->n_at_exit)
        t->at_exit[--t->n_at_exit]();
    _exit(code);
}

void exit(int code)
{
    if (SIMULATED)
        task_exit(code);
    REAL(exit)(code);
    __builtin_unreachable();
}

/* Its arguments are on its stack: those that it forks have them, when it has ended. */
static void task_first(void)
{
    struct task *t = sim->current;
    char args[sizeof(t->args)], *argv[ARGS + 1] = {NULL};

    memcpy(args, t->args, sizeof(args));
    for (int i = 0; i < t->argc; i++)
        argv[i] = args + (t->argv[i] - t->args);
    signals_deliver();
    task_exit(t->program->run(t->argc, argv));
}

int atexit(void (*last)(void))
{
    if (SIMULATED)
        sim->current->at_exit[sim->current->n_at_exit++] = last;
    return 0; /* of the test there is none */
}

void abort(void)
{
    if (SIMULATED) {
        HOLDS(false, "process %d (%s) aborts", sim->current->pid, sim->current->args);
        task_die(SIGABRT);
    }
    REAL(abort)();
    __builtin_unreachable();
}

pid_t waitpid(pid_t pid, int *status, int options)
{
    struct task *t, *c;
    bool any;

    if (!SIMULATED)
        return REAL(waitpid)(pid, status, options);
    t = call_begin();
    t->child = pid;
    if (!(options & WNOHANG) && !call_wait(WAITS_CHILD, INT64_MAX)) {
        errno = EINTR;
        return -1;
    }
    c = zombie_of(t, pid, &any);
    if (!c) {
        errno = ECHILD;
        return any ? 0 : -1;
    }
    if (status)
        *status = c->status;
    pid = c->pid;
    task_reap(c);
    return pid;
}

int prctl(int option, ...)
{
    va_list ap;

    va_start(ap, option);
    if (SIMULATED && option == PR_SET_PDEATHSIG)
        call_begin()->death_signal = va_arg(ap, int);
    va_end(ap);
    return 0;
}

/* ---- memory, and what else is drawn ---- */

ssize_t getrandom(void *to, size_t bytes, unsigned flags)
{
    uint8_t *p = to;

    if (!SIMULATED)
        return REAL(syscall)(SYS_getrandom, to, bytes, flags);
    for (size_t i = 0; i < bytes; i++)
        p[i] = (uint8_t)draw(256);
    return (ssize_t)bytes;
}

char *getenv(const char *name)
{
    if (!SIMULATED)
        /* cppcheck-suppress CastIntegerToAddressAtReturn */
        return REAL(getenv)(name);
    if (!strcmp(name, "XDG_RUNTIME_DIR"))
        return (char *)(uintptr_t) "/run/user/1000";
    return !strcmp(name, "TRIB_RUN") && *sim->current->run ? sim->current->run : NULL;
}

int setenv(const char *name, const char *value, int over)
{
    if (!SIMULATED)
        return REAL(setenv)(name, value, over);
    if (!strcmp(name, "TRIB_RUN"))
        snprintf(sim->current->run, sizeof(sim->current->run), "%s", value);
    return 0;
}

int unsetenv(const char *name)
{
    return SIMULATED ? 0 : REAL(unsetenv)(name);
}

#ifndef __SANITIZE_ADDRESS__ /* it has its own */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void __libc_free(void *p);

static void *memory_of(void *p)
{
    if (SIMULATED)
        heap_note(p);
    return p;
}

/* The keeper alone is asked to bear it: what reads confs ends without. */
static bool memory_fails(void)
{
    return SIMULATED && !strcmp(sim->current->program->name, "trib-keep") && CALL_FAILS(ENOMEM);
}

void *malloc(size_t n)
{
    return memory_fails() ? NULL : memory_of(__libc_malloc(n));
}

void *calloc(size_t n, size_t size)
{
    return memory_fails() ? NULL : memory_of(__libc_calloc(n, size));
}

void *realloc(void *p, size_t n)
{
    if (memory_fails())
        return NULL;
    if (SIMULATED)
        heap_forget(p);
    return memory_of(__libc_realloc(p, n));
}

void free(void *p)
{
    if (SIMULATED && p)
        heap_forget(p);
    __libc_free(p);
}
#endif

#endif
