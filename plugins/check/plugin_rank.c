/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugins/check/plugin_rank.h"

#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static char warning[200];

void rank_log(int level, unsigned long flags, const char *file, int line, const char *format, ...)
{
    va_list ap;

    (void)flags, (void)file, (void)line;
    if (level > NCCL_LOG_WARN)
        return;
    va_start(ap, format);
    vsnprintf(warning, sizeof(warning), format, ap);
    va_end(ap);
    fprintf(stderr, "%s\n", warning);
}

static const char *rank_result(int rc)
{
    static const char *const names[NCCL_RESULTS] = {
        "success",          "a CUDA error",  "a system error", "an internal error",
        "invalid argument", "invalid usage", "a remote error", "in progress"};

    return rc >= 0 && rc < NCCL_RESULTS ? names[rc] : "a result that NCCL does not have";
}

void rank_fail(struct plugin_rank *r, const char *format, ...)
{
    char text[BOARD_TEXT];
    va_list ap;
    int n = snprintf(text, sizeof(text), "rank %u: ", r->me);

    snprintf(text + n, sizeof(text) - (size_t)n, "%s", format);
    va_start(ap, format);
    board_fail(r->b, r->b->row, text, ap);
    va_end(ap);
    _exit(1);
}

void rank_enters(struct plugin_rank *r, const char *call)
{
    struct board_rank *mine = &r->b->rank[r->me];

    snprintf(mine->call, sizeof(mine->call), "%s", call);
    mine->in_call = true;
    *warning = 0;
}

int rank_left(struct plugin_rank *r, int rc)
{
    r->b->rank[r->me].in_call = false;
    return rc;
}

void rank_must(struct plugin_rank *r, const char *call, int rc)
{
    EXPECT(r, !rc, "%s: found %s (%d), expected success%s%s", call, rank_result(rc), rc,
           *warning ? "; the plug-in says: " : "", warning);
}

void rank_pause(struct plugin_rank *r)
{
    if (r->b->failed)
        _exit(1);
    if (++r->spins < 500) {
        sched_yield();
        return;
    }
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

void rank_barrier(struct plugin_rank *r)
{
    unsigned round = r->b->round;

    r->spins = 0;
    if (atomic_fetch_add(&r->b->arrived, 1) + 1 == r->n) {
        r->b->arrived = 0;
        r->b->round++;
        return;
    }
    while (r->b->round == round)
        rank_pause(r);
    r->spins = 0;
}

void rank_dies(struct plugin_rank *r)
{
    r->b->dying = (int)r->me + 1;
    raise(SIGKILL);
    _exit(1);
}

/* ---- a start of the ranks ---- */

/* The case "init", on which all others depend. */
static void rank_open(struct plugin_rank *r)
{
    void *library = dlopen(r->b->file, RTLD_NOW | RTLD_LOCAL);
    const char *lacks;
    bool beyond;

    EXPECT(r, library, "%s", dlerror());
    EXPECT(r, table_find(library, r->b->table, &r->t), "found no %s", table_symbol(r->b->table));
    lacks = table_lacks(&r->t);
    EXPECT(r, !lacks, "%s: found NULL, expected a function or a text", lacks);
    MUST(r, "init", table_init(&r->t, &r->ctx, 7, rank_log));
    r->devices = RANK_FILL;
    MUST(r, "devices", table_devices(&r->t, &r->devices));
    EXPECT(r, r->devices != RANK_FILL, "devices: it has set no number");
    EXPECT(r, r->devices > 0, "devices: found %d, expected one or more", r->devices);
    MUST(r, "getProperties", table_properties(&r->t, 0, 0, &r->props, &beyond));
}

static void rank_run(struct plugin_rank *r, const struct plugin_case *c, unsigned i)
{
    rank_barrier(r);
    if (!r->me) {
        r->b->began_ms = board_ms();
        r->b->row = i;
    }
    rank_barrier(r);
    c->run(r);
    /* a dead rank reaches no barrier */
    if (!(c->how & CASE_LAST))
        rank_barrier(r);
    else if (r->b->failed)
        _exit(1);
    if (r->b->at[i].state == ROW_OPEN)
        r->b->at[i].state = ROW_OK;
}

int rank_main(struct board *b, unsigned me)
{
    struct plugin_rank r = {.b = b, .me = me, .n = b->n_ranks};
    unsigned n;
    const struct plugin_case *c = cases_of(b->table >= TABLES / 2, &n);
    bool last = false;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    rank_open(&r);
    rank_barrier(&r);
    if (b->at[0].state == ROW_OPEN && !b->failed)
        b->at[0].state = ROW_OK;
    for (unsigned i = b->first; i < n && !last; i++) {
        if (!c[i].run || !(b->run_mask >> i & 1))
            continue;
        rank_run(&r, &c[i], i);
        last = c[i].how & CASE_LAST;
    }
    if (!last) {
        rank_barrier(&r);
        b->row = n - 1;
    }
    MUST(&r, "finalize", table_finalize(&r.t, r.ctx));
    return 0;
}
