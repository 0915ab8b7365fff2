/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that answer the launcher's commands by a script, in one thread: for tests of rows. An operation takes
 * a microsecond of fabric time, whatever the row.
 */
#ifndef TRIB_TESTS_HOST_LAUNCH_FAR_PLAYERS_H
#define TRIB_TESTS_HOST_LAUNCH_FAR_PLAYERS_H

#include "tests/host/launch/far_ranks.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>

#define US 1000000ll /* ps */

struct script {
    int instead;         /* the algorithm that runs the row by now; 0: its own */
    unsigned iters_done; /* operations of a run; 0: all */
    uint64_t wrong;      /* of rank 1 */
    unsigned early; /* barrier: rank 0 leaves before rank 1 has entered, in the first so many */
    uint32_t aggregated;
    bool goes_on, lacks_trees;
    const char *fell_back; /* said at the end of a run; NULL: nothing */
    int64_t staging_ns, late_ns;
    unsigned fails_at; /* the command, from 1, to which rank 1 gives an answer of no use; 0: none */
};

struct play {
    pthread_t thread;
    const int *fd;
    const struct script *script;
    char log[4096]; /* commands that rank 0 was sent */
    uint32_t row_algo;
    unsigned checks, commands;
    _Atomic bool over;
};

static inline void note(struct play *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline void note(struct play *p, const char *fmt, ...)
{
    size_t at = strlen(p->log);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(p->log + at, sizeof(p->log) - at, fmt, ap);
    va_end(ap);
}

/* An event, and what it says of its operation. */
static inline void record(const struct play *p, unsigned rank, struct msg_done *d, int64_t *ends)
{
    char event[32];

    snprintf(event, sizeof(event), "{\"rank\":%u}", rank);
    msg_send(p->fd[rank], MSG_EVENTS, event, strlen(event));
    d->ops = 1;
    ends[0] = US;
    d->schedules = 1 + rank;
    d->entered_ps = 10 * US;
    d->left_ps = 15 * US;
    d->slow_ps = US;
    d->slow_of_ps = 2 * US;
}

/* Answers as the rank: its operation k ends after k + 1 us, and half a us later at rank 1. */
static inline void answer(struct play *p, unsigned rank, const struct msg *m)
{
    const struct script *s = p->script;
    uint8_t body[sizeof(struct msg_done) + 64 * sizeof(int64_t)];
    struct msg_done d = {.aggregated = UINT32_MAX};
    struct msg_prepare prep;
    struct msg_check c;
    struct msg_run run;
    int64_t ends[64] = {0};

    if (m->type == MSG_PREPARE) {
        memcpy(&prep, m->body, sizeof(prep));
        p->row_algo = s->instead ? (uint32_t)s->instead : prep.algo;
        if (!rank)
            note(p, "prepare %s %s %s %s root %u %llu sampled %u in %u self %u bound %g\n",
                 coll_name(prep.coll), sched_algo_name(prep.algo), dtype_name(prep.type),
                 redop_name(prep.op), prep.root, (unsigned long long)prep.count, prep.sampled,
                 prep.in_place, prep.mm_self, prep.bound);
    } else if (m->type == MSG_RUN) {
        memcpy(&run, m->body, sizeof(run));
        if (!rank)
            note(p, "run %u\n", run.n);
        d.ops = s->iters_done ? s->iters_done : run.n;
        for (unsigned i = 0; i < d.ops; i++)
            ends[i] = (i + 1) * US + (rank == 1) * US / 2;
        d.aggregated = s->aggregated ? s->aggregated : d.ops;
        d.goes_on = s->goes_on;
        d.lacks_trees = s->lacks_trees;
        d.staging_ns = s->staging_ns;
        d.late_ns = s->late_ns;
        if (s->fell_back)
            snprintf(d.fell_back, sizeof(d.fell_back), "%s", s->fell_back);
    } else if (m->type == MSG_CHECK) {
        memcpy(&c, m->body, sizeof(c));
        if (!rank)
            note(p, "check again %u late %u after %llu ways %u\n", c.again, c.late,
                 (unsigned long long)c.late_ns, c.ways);
        p->checks += !rank;
        d.wrong = rank == 1 ? s->wrong : 0;
        d.entered_ps = 10 * US;
        d.left_ps = rank == 0 && p->checks <= s->early ? 9 * US : 11 * US;
    } else if (m->type == MSG_RECORD) {
        if (!rank)
            note(p, "record\n");
        record(p, rank, &d, ends);
    } else if (m->type == MSG_ERROR) {
        if (!rank)
            note(p, "error\n");
        d.ulp = (struct ulp){.max = rank, .sum = 2, .n = 4};
    } else {
        return;
    }
    if (rank == 1 && ++p->commands == s->fails_at) {
        msg_send(p->fd[rank], MSG_DONE, "", 1);
        return;
    }
    d.algo = p->row_algo;
    memcpy(body, &d, sizeof(d));
    memcpy(body + sizeof(d), ends, d.ops * sizeof(*ends));
    msg_send(p->fd[rank], MSG_DONE, body, sizeof(d) + d.ops * sizeof(*ends));
}

static inline void *play(void *ctx)
{
    struct play *p = ctx;
    struct inbox in[N] = {0};
    bool last = false;
    struct msg m;

    while (!last) {
        struct pollfd w[N];

        last = p->over; /* what was sent until then is read */
        for (unsigned r = 0; r < N; r++)
            w[r] = (struct pollfd){.fd = p->fd[r], .events = POLLIN};
        poll(w, N, last ? 0 : 5);
        for (unsigned r = 0; r < N; r++)
            while (msg_fill(&in[r], p->fd[r]) > 0)
                while (msg_next(&in[r], &m) > 0)
                    answer(p, r, &m);
    }
    for (unsigned r = 0; r < N; r++)
        msg_free(&in[r]);
    return NULL;
}

#endif
