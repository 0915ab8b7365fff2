/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Watches a job's processes and finds the cause of a failure.
 *
 * The first failure to arrive is not always the cause: when a rank is killed, another rank may
 * notice its broken connection and report it before the launcher sees the death. So a failure that
 * a rank reports is held for GRACE_MS; a death or an interrupt that shows up meanwhile is the
 * cause. A rank that does not answer is not always at fault either: it may wait for a process that
 * is stopped. So the launcher names the stopped process (suspect.h) and the first symptom.
 */
#include "host/launch/job_processes_priv.h"
#include "host/launch/msg_read.h"
#include "machine/shared.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_MS  400
#define WATCH_MS  100  /* between two checks of the trib-switch processes */
#define HELD_NAME 120  /* bytes of a failure's text for the name of the rank that reports it */
#define FINISH_MS 5000 /* time for ranks to leave their group and end */

static int64_t now_ms(void)
{
    return clock_mono_ns() / 1000000;
}

const char *job_cause(const struct job_processes *j)
{
    return j->cause;
}

int job_interrupted(const struct job_processes *j)
{
    return j->interrupted;
}

pid_t job_pid(const struct job_processes *j, unsigned rank)
{
    T_ASSERT(rank < j->nranks, "a requested rank is not in the job");
    return j->rank[rank].pid;
}

bool job_is_away(const struct job_processes *j, unsigned rank)
{
    return job_machine(j, rank);
}

/* ---- messages ---- */

void job_set_cause(struct job_processes *j, const char *fmt, ...)
{
    va_list ap;

    if (j->cause[0])
        return;
    va_start(ap, fmt);
    vsnprintf(j->cause, sizeof(j->cause), fmt, ap);
    va_end(ap);
}

static void abort_ranks(struct job_processes *j)
{
    if (j->aborted)
        return;
    j->aborted = true;
    for (unsigned r = 0; r < j->nranks; r++)
        if (j->rank[r].fd >= 0)
            msg_send(j->rank[r].fd, MSG_ABORT, j->cause, strlen(j->cause) + 1);
}

void job_abort(struct job_processes *j, const char *why)
{
    job_set_cause(j, "%s", why);
    abort_ranks(j);
}

int job_send(struct job_processes *j, unsigned rank, uint32_t type, const void *body, size_t len)
{
    T_ASSERT(rank < j->nranks, "a message is for a rank that the job does not have");
    return j->rank[rank].fd < 0 ? -EPIPE : msg_send(j->rank[rank].fd, type, body, len);
}

/* Ignores failed sends: they happen only to dead or dying ranks, and job_gather() reports those. */
int job_bcast(struct job_processes *j, uint32_t type, const void *body, size_t len)
{
    if (j->cause[0])
        return -ECANCELED;
    for (unsigned r = 0; r < j->nranks; r++) {
        j->rank[r].answered = false;
        job_send(j, r, type, body, len);
    }
    return 0;
}

/* ---- events ---- */

static void rank_ended(struct job_processes *j, unsigned r, pid_t pid, int status)
{
    T_ASSERT(j->rank[r].pid == pid, "a rank ends twice");
    j->rank[r].pid = 0;
    if (job_machine(j, r)) { /* the pid is that of ssh, or of the user's command for it */
        if (!j->quitting && !j->aborted && !j->rank[r].failed)
            job_set_cause(j,
                          "rank %u (%s on machine %s) has ended, or the connection to it (pid %d)",
                          r, job_host(j, r), job_machine(j, r)->name, (int)pid);
    } else if (WIFSIGNALED(status))
        job_set_cause(j, "rank %u (%s, pid %d) was killed by signal %d (%s)", r, job_host(j, r),
                      (int)pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (!j->quitting && !j->aborted && !j->rank[r].failed)
        job_set_cause(j, "rank %u (%s, pid %d) ended with exit code %d", r, job_host(j, r),
                      (int)pid, WEXITSTATUS(status));
    j->bad_exits += status != 0;
}

static void ranks_reap(struct job_processes *j)
{
    for (unsigned r = 0; r < j->nranks; r++) {
        int status;
        pid_t pid = j->rank[r].pid;

        while (j->rank[r].pid && waitpid(pid, &status, WNOHANG | WUNTRACED | WCONTINUED) == pid) {
            if (WIFSTOPPED(status) || WIFCONTINUED(status))
                suspect_note(&j->rank[r].stop, WIFSTOPPED(status), now_ms());
            else
                rank_ended(j, r, pid, status);
        }
    }
}

static void close_rank(struct job_processes *j, unsigned r)
{
    if (j->rank[r].fd >= 0)
        close(j->rank[r].fd);
    j->rank[r].fd = -1;
}

static void watch_switches(struct job_processes *j)
{
    int64_t now = now_ms();
    char text[MSG_TEXT / 2];
    bool needed;

    if (!j->watch || now - j->watched < WATCH_MS)
        return;
    j->watched = now;
    process_monitor_look(j->watch, now);
    if (!process_monitor_died(j->watch, text, sizeof(text), &needed))
        return;
    if (needed) {
        job_set_cause(j, "%s", text);
        return;
    }
    memcpy(j->lost, text, sizeof(j->lost));
    fprintf(stderr, "trib-perf: %s; the job continues over other paths\n", text);
}

static void take_signals(struct job_processes *j)
{
    struct signalfd_siginfo si;

    while (read(j->sigfd, &si, sizeof(si)) == sizeof(si)) {
        if (si.ssi_signo == SIGCHLD)
            continue;
        if (!j->interrupted)
            j->interrupted = (int)si.ssi_signo;
        job_set_cause(j, "interrupted (%s)", strsignal((int)si.ssi_signo));
    }
}

int job_look_interrupted(struct job_processes *j)
{
    take_signals(j);
    return j->interrupted;
}

struct gather {
    uint32_t type;
    job_fn each, on_progress;
    void *ctx;
};

static void take_message(struct job_processes *j, unsigned r, const struct msg *m,
                         const struct gather *g)
{
    struct job_process *p = &j->rank[r];
    char text[MSG_TEXT - HELD_NAME];

    if (m->type == MSG_FAIL) {
        p->failed = true;
        if (!j->held_since) {
            j->held_since = now_ms();
            msg_read_text(m, text, sizeof(text));
            snprintf(j->held, sizeof(j->held), "rank %u (%s, pid %d): %s", r, job_host(j, r),
                     (int)p->pid, text);
        }
    } else if (m->type == MSG_PROGRESS || m->type == MSG_EVENTS) {
        if (g && g->on_progress)
            g->on_progress(g->ctx, r, m);
    } else if (g && m->type == g->type && !p->answered) {
        p->answered = true;
        if (g->each && g->each(g->ctx, r, m))
            job_set_cause(j, "rank %u (%s, pid %d): unusable answer", r, job_host(j, r),
                          (int)p->pid);
    } else if (g) {
        job_set_cause(j, "rank %u (%s, pid %d): unexpected message %u", r, job_host(j, r),
                      (int)p->pid, m->type);
    }
}

static void take_input(struct job_processes *j, unsigned r, const struct gather *g)
{
    struct job_process *p = &j->rank[r];
    struct msg m;
    int rc;

    while ((rc = msg_fill(&p->in, p->fd)) > 0) {
        while ((rc = msg_next(&p->in, &m)) > 0)
            take_message(j, r, &m, g);
        if (rc < 0)
            break;
    }
    if (rc < 0)
        close_rank(j, r);
}

/* Describes a process that is or was stopped: "rank 3 (h3, pid 77) is stopped, for 2.0 s now"; "":
 * none was. Returns whether it is stuck. */
static bool name_stopped(struct job_processes *j, char *text, size_t size)
{
    bool stuck = false;
    char how[64];

    *text = '\0';
    for (unsigned r = 0; r < j->nranks; r++)
        if (j->rank[r].pid && suspect_says(&j->rank[r].stop, now_ms(), how, sizeof(how))) {
            snprintf(text, size, "rank %u (%s, pid %d) %s", r, job_host(j, r), (int)j->rank[r].pid,
                     how);
            return suspect_is_stuck(&j->rank[r].stop, now_ms());
        }
    if (j->watch)
        process_monitor_stopped(j->watch, now_ms(), text, size, &stuck);
    return stuck;
}

static void blame(struct job_processes *j)
{
    char stopped[MSG_TEXT / 2];

    name_stopped(j, stopped, sizeof(stopped));
    if (*stopped)
        job_set_cause(j, "%.*s; noticed first: %.*s", (int)sizeof(stopped), stopped,
                      (int)(sizeof(j->held) - sizeof(stopped) - 32), j->held);
    else
        job_set_cause(j, "%.*s%s%s%s", (int)(sizeof(j->held) - sizeof(j->lost)), j->held,
                      *j->lost ? " (" : "", j->lost, *j->lost ? ")" : "");
}

/* One turn: waits up to ms for an event and handles all that have come. */
static void job_processes_turn(struct job_processes *j, int ms, const struct gather *g)
{
    char stopped[MSG_TEXT / 2];

    for (unsigned r = 0; r < j->nranks; r++)
        j->pfd[r] = (struct pollfd){.fd = j->rank[r].fd, .events = POLLIN};
    j->pfd[j->nranks] = (struct pollfd){.fd = j->sigfd, .events = POLLIN};
    if (poll(j->pfd, j->nranks + 1, ms) > 0) {
        take_signals(j);
        for (unsigned r = 0; r < j->nranks; r++)
            if (j->pfd[r].revents)
                take_input(j, r, g);
    }
    ranks_reap(j);
    watch_switches(j);
    if (j->held_since && now_ms() - j->held_since > GRACE_MS &&
        !(j->watch && process_monitor_waits(j->watch)))
        blame(j);
    if (!j->cause[0] && name_stopped(j, stopped, sizeof(stopped)))
        job_set_cause(j, "%s", stopped);
    if (j->cause[0])
        abort_ranks(j);
}

static bool all_answered(const struct job_processes *j)
{
    for (unsigned r = 0; r < j->nranks; r++)
        if (!j->rank[r].answered)
            return false;
    return true;
}

static void name_missing(struct job_processes *j, double seconds, const char *bound)
{
    char list[160] = "", stopped[MSG_TEXT / 2];
    size_t at = 0;

    name_stopped(j, stopped, sizeof(stopped));

    for (unsigned r = 0; r < j->nranks && at < sizeof(list) - 48; r++)
        if (!j->rank[r].answered)
            at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%u (%s)", at ? ", " : "", r,
                                   job_host(j, r));
    if (bound)
        job_set_cause(j, "%s%s%s: no answer from rank %s", stopped, *stopped ? "; " : "", bound,
                      list);
    else
        job_set_cause(j, "%s%sno answer within %.0f s from rank %s", stopped, *stopped ? "; " : "",
                      seconds, list);
}

int job_gather(struct job_processes *j, uint32_t type, double seconds, job_fn each,
               job_fn on_progress, void *ctx)
{
    struct job_limits l = {.seconds = seconds};

    return job_gather_within(j, type, &l, each, on_progress, ctx);
}

int job_gather_within(struct job_processes *j, uint32_t type, const struct job_limits *l,
                      job_fn each, job_fn on_progress, void *ctx)
{
    struct gather g = {type, each, on_progress, ctx};
    int64_t now = now_ms(), deadline = now + (int64_t)(l->seconds * 1000);
    int64_t soft = l->soft ? now + (int64_t)(l->soft_s * 1000) : INT64_MAX;

    while (!j->cause[0] && !all_answered(j)) {
        int64_t left = soft - now_ms();

        job_processes_turn(j, left < 0 ? 0 : left < WATCH_MS ? (int)left : WATCH_MS, &g);
        if (now_ms() >= soft && !j->cause[0]) {
            l->soft(ctx);
            soft = INT64_MAX;
        }
        if (!j->cause[0] && !all_answered(j) && now_ms() >= deadline) {
            name_missing(j, l->seconds, l->bound);
            abort_ranks(j);
            return -ETIMEDOUT;
        }
    }
    if (!j->cause[0])
        return 0;
    abort_ranks(j);
    return -ECANCELED;
}

/* ---- end ---- */

static bool any_left(const struct job_processes *j)
{
    for (unsigned r = 0; r < j->nranks; r++)
        if (j->rank[r].pid)
            return true;
    return false;
}

int job_end(struct job_processes *j)
{
    int64_t deadline = now_ms() + FINISH_MS;

    if (!j->cause[0]) {
        job_bcast(j, MSG_QUIT, NULL, 0);
        j->quitting = true;
    }
    /* Kill stopped processes, as they do not receive QUIT or ABORT. */
    for (unsigned r = 0; r < j->nranks && j->cause[0]; r++)
        if (j->rank[r].pid && j->rank[r].stop.since_ms && !j->rank[r].stop.until_ms)
            kill(j->rank[r].pid, SIGKILL);
    while (any_left(j) && now_ms() < deadline)
        job_processes_turn(j, 50, NULL);
    for (unsigned r = 0; r < j->nranks; r++) {
        if (!j->rank[r].pid)
            continue;
        job_set_cause(j, "rank %u (%s, pid %d) did not end within %d s", r, job_host(j, r),
                      (int)j->rank[r].pid, FINISH_MS / 1000);
        kill(j->rank[r].pid, SIGKILL);
        waitpid(j->rank[r].pid, NULL, 0);
        j->rank[r].pid = 0;
        j->bad_exits++;
    }
    return j->bad_exits || j->cause[0] ? -ECANCELED : 0;
}

void job_free(struct job_processes *j)
{
    if (!j)
        return;
    for (unsigned r = 0; j->rank && r < j->nranks; r++) {
        close_rank(j, r);
        msg_free(&j->rank[r].in);
    }
    if (j->sigfd >= 0) {
        close(j->sigfd);
        sigprocmask(SIG_SETMASK, &j->old_mask, NULL);
    }
    process_monitor_stop(j->watch);
    free(j->pfd);
    free(j->rank);
    free(j->host);
    free(j);
}
