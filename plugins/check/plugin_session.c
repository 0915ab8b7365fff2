/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each start of ranks runs one case after the other, as the board lists them. If a rank ends too
 * early or a case takes too long, that case fails, and the next cases get new ranks.
 */
#include "plugins/check/plugin_session.h"
#include "system/shared_object.h"
#include "plugins/check/plugin_rank.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

__attribute__((format(printf, 3, 4))) static void row_fail(struct board *b, unsigned row,
                                                           const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    board_fail(b, row, format, ap);
    va_end(ap);
    for (int i = 0; i < 1000 && b->failed == 1; i++) /* a rank is writing it, or died doing so */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* ---- ranks ---- */

static void quieten(const struct session_plan *p)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGINT, SIGTERM, SIGHUP};
    const struct rlimit no_core = {0, 0};
    int null = p->verbose ? -1 : open("/dev/null", O_WRONLY);

    setrlimit(RLIMIT_CORE, &no_core);
    for (unsigned i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
        signal(fatal[i], SIG_DFL);
    if (null >= 0)
        dup2(null, STDERR_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
}

/* Runs a rank on a host of the fabric, chosen by the rank number that a launcher sets. */
_Noreturn static void rank_on_host(const struct session_plan *p, unsigned me)
{
    char rank[16], n[16], fd[16], self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

    snprintf(rank, sizeof(rank), "%u", me);
    snprintf(n, sizeof(n), "%u", p->b->n_ranks);
    snprintf(fd, sizeof(fd), "%d", p->fd);
    setenv("RANK", rank, 1);
    setenv("LOCAL_RANK", rank, 1);
    setenv("WORLD_SIZE", n, 1);
    if (length > 0) {
        self[length] = 0;
        execlp(p->trib, p->trib, "exec", p->conf, "@rank", "--", self, "--board", fd, "--rank",
               rank, p->b->file, (char *)NULL);
    }
    _exit(127);
}

static pid_t rank_start(const struct session_plan *p, unsigned me)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid)
        return pid;
    quieten(p);
    if (p->conf)
        rank_on_host(p, me);
    exit(rank_main(p->b, me)); /* exit(), not _exit(), so that leak checks run */
}

/* ---- one start of them ---- */

struct ranks_run {
    const struct session_plan *p;
    pid_t pid[BOARD_RANKS];
    unsigned left;
};

static void run_kill(struct ranks_run *x)
{
    for (unsigned i = 0; i < x->p->b->n_ranks; i++)
        if (x->pid[i] > 0) {
            kill(x->pid[i], SIGKILL);
            waitpid(x->pid[i], NULL, 0);
            x->pid[i] = 0;
        }
    x->left = 0;
}

static void rank_ended(struct ranks_run *x, unsigned i, int status)
{
    struct board *b = x->p->b;
    const struct board_rank *r = &b->rank[i];

    x->pid[i] = 0;
    x->left--;
    if ((WIFEXITED(status) && !WEXITSTATUS(status)) || b->dying == (int)i + 1)
        return;
    if (WIFSIGNALED(status))
        row_fail(b, b->row, "rank %u: ended by signal %d, %s, %s %s()", i, WTERMSIG(status),
                 strsignal(WTERMSIG(status)), r->in_call ? "in" : "after", r->call);
    else
        row_fail(b, b->row, "rank %u: ended with status %d, %s %s(), expected 0", i,
                 WEXITSTATUS(status), r->in_call ? "in" : "after", r->call);
}

static void case_late(struct ranks_run *x, unsigned limit_s)
{
    struct board *b = x->p->b;
    char where[BOARD_RANKS * 40] = "";
    size_t n = 0;

    for (unsigned i = 0; i < b->n_ranks && n < sizeof(where); i++)
        n += (size_t)snprintf(where + n, sizeof(where) - n, "%s rank %u %s %s()", i ? "," : "", i,
                              b->rank[i].in_call ? "is in" : "was last in", b->rank[i].call);
    row_fail(b, b->row, "found no end in %u s, expected one:%s", limit_s, where);
}

static bool is_stopped(const struct session_plan *p)
{
    return p->stop && *p->stop;
}

/* Waits until all ranks have ended, or one has failed. */
static void run_watch(struct ranks_run *x)
{
    struct board *b = x->p->b;

    while (x->left && !b->failed && !is_stopped(x->p)) {
        int64_t limit_s = x->p->limit_s + (b->dying ? b->dead_s : 0);

        for (unsigned i = 0; i < b->n_ranks; i++) {
            int status;

            if (x->pid[i] > 0 && waitpid(x->pid[i], &status, WNOHANG) == x->pid[i])
                rank_ended(x, i, status);
        }
        if (x->left && !b->failed && board_ms() - b->began_ms > limit_s * 1000)
            case_late(x, (unsigned)limit_s);
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
}

/* Runs the ranks from case `first` on. The board's row is the case at which they ended. */
static void run_ranks(const struct session_plan *p, unsigned first)
{
    struct ranks_run x = {.p = p, .left = p->b->n_ranks};

    board_start(p->b, first);
    for (unsigned i = 0; i < p->b->n_ranks; i++) {
        x.pid[i] = rank_start(p, i);
        if (x.pid[i] < 0) {
            x.pid[i] = 0;
            row_fail(p->b, 0, "rank %u cannot be started: %s", i, strerror(errno));
        }
    }
    run_watch(&x);
    if (p->b->failed)
        row_fail(p->b, p->b->row, "-"); /* waits until its text is complete */
    run_kill(&x);
}

static void skip_open(struct board *b, unsigned n, const char *why)
{
    for (unsigned i = 0; i < n; i++)
        if (b->at[i].state == ROW_OPEN && b->run_mask >> i & 1) {
            b->at[i].state = ROW_SKIPPED;
            snprintf(b->at[i].text, BOARD_TEXT, "%s", why);
        }
}

void session_run(const struct session_plan *p)
{
    struct board *b = p->b;
    bool any = true, whole = true;
    unsigned n, last;

    (void)cases_of(b->table >= TABLES / 2, &n);
    last = n - 1;
    while (any) {
        unsigned next = 1;

        while (next < last && !(b->at[next].state == ROW_OPEN && b->run_mask >> next & 1))
            next++;
        run_ranks(p, next);
        whole &= !b->failed;
        if (is_stopped(p))
            return;
        if (b->at[0].state == ROW_FAILED) {
            skip_open(b, n, "init has failed");
            return;
        }
        /* a start also ends after a case in which a rank dies */
        any = false;
        for (unsigned i = 1; i < last; i++)
            any |= b->at[i].state == ROW_OPEN && b->run_mask >> i & 1;
    }
    if (b->at[last].state == ROW_OPEN && whole)
        b->at[last].state = ROW_OK;
    skip_open(b, n, "ranks have been ended before");
}

/* ---- which tables there are ---- */

_Noreturn static void probe(const struct session_plan *p)
{
    char *why = p->b->at[0].text;
    unsigned tables = 0;
    struct plugin_table t;
    void *library;

    quieten(p);
    alarm(p->limit_s);
    library = dlopen(p->b->file, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(why, BOARD_TEXT, "%s", dlerror());
        _exit(1);
    }
    for (unsigned i = 0; i < TABLES; i++)
        tables |= (unsigned)table_find(library, i, &t) << i;
    p->b->run_mask = tables;
    if (!tables)
        snprintf(why, BOARD_TEXT,
                 "found neither of ncclNetPlugin_v%d to _v%d and ncclCollNetPlugin_v%d to _v%d, "
                 "expected one of them at least",
                 TABLES_FIRST, TABLES_LAST, TABLES_FIRST, TABLES_LAST);
    _exit(!tables);
}

int session_probe(const struct session_plan *p, char *why, size_t size)
{
    char text[BOARD_TEXT];
    const char *unfit = shared_object_unfit(p->b->file, text, sizeof(text));
    int status = 0;
    pid_t pid;

    if (unfit) {
        snprintf(why, size, "%s", unfit);
        return -1;
    }
    fflush(NULL);
    pid = fork();
    if (!pid)
        probe(p);
    if (pid < 0 || waitpid(pid, &status, 0) < 0) {
        snprintf(why, size, "%s", strerror(errno));
        return -1;
    }
    if (WIFEXITED(status) && !WEXITSTATUS(status))
        return (int)p->b->run_mask;
    if (WIFSIGNALED(status))
        snprintf(why, size, "loading it ended by signal %d, %s", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else if (*p->b->at[0].text)
        snprintf(why, size, "%s", p->b->at[0].text);
    else
        snprintf(why, size, "loading it ended with status %d", WEXITSTATUS(status));
    return -1;
}
