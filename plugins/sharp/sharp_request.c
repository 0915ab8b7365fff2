/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A request is one call of tributary/coll.h, or several. A communicator's requests are started in
 * the caller's order, which is the same at all ranks. A request that waits for an answer of other
 * ranks holds up those behind it.
 */
#include "plugins/sharp/sharp_priv.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct sharp_req *reqs, **last = &reqs;
static uint64_t pass;

struct sharp_req *sharp_req_new(struct sharp_coll_comm *comm, enum sharp_kind kind, unsigned n)
{
    struct sharp_req *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->call = calloc(n + 1ul, sizeof(*r->call));
    r->part = calloc(n + 1ul, sizeof(struct trib_request *));
    if (!r->call || !r->part) {
        free(r->call);
        free(r->part);
        free(r);
        return NULL;
    }
    r->comm = comm;
    r->kind = kind;
    r->status = 1;
    return r;
}

static void sharp_request_drop(struct sharp_req *r)
{
    struct sharp_req **at = &reqs;

    while (*at && *at != r)
        at = &(*at)->next;
    if (*at) {
        *at = r->next;
        if (last == &r->next)
            last = at;
    }
    free(r->call);
    free(r->part);
    free(r);
}

static struct sharp_req *sharp_request_find(const void *handle)
{
    struct sharp_req *r;

    for (r = reqs; r && r != handle; r = r->next)
        ;
    return r && !r->freed ? r : NULL;
}

/* ---- starting ---- */

static int sharp_request_call(struct trib_comm *c, const struct sharp_call *a,
                              struct trib_request **part, char *err)
{
    switch (a->kind) {
    case SHARP_ALLREDUCE:
        return trib_all_reduce(c, a->send, a->recv, a->count, a->type, a->op, part, err);
    case SHARP_REDUCE:
        return trib_reduce(c, a->send, a->recv, a->count, a->type, a->op, a->root, part, err);
    case SHARP_REDUCE_SCATTER:
        return trib_reduce_scatter(c, a->send, a->recv, a->count, a->type, a->op, part, err);
    case SHARP_ALLGATHER:
        return trib_all_gather(c, a->send, a->recv, a->count, a->type, part, err);
    case SHARP_BCAST:
        return trib_broadcast(c, a->recv, a->count, a->type, a->root, part, err);
    default:
        return trib_barrier(c, part, err);
    }
}

/* Ends a request. Parts that still run are freed and continue by themselves. */
static int sharp_request_end(struct sharp_req *r, int status)
{
    for (unsigned i = r->ended; i < r->started; i++)
        trib_free(r->part[i]);
    trib_free(r->question);
    r->question = NULL;
    r->ended = r->started;
    r->status = status;
    return status;
}

/* Starts the calls of a request. 1: it waits for an answer; 0: all are started. */
static int go_on(struct sharp_req *r)
{
    struct trib_comm *c = r->comm->trib;
    char err[TRIB_TEXT] = "";
    int rc;

    if (r->asks) {
        if (!r->question &&
            (rc = trib_all_reduce(c, r->view, r->view, 2, TRIB_INT32, TRIB_MAX, &r->question, err)))
            return sharp_request_end(
                r, sharp_refuse(sharp_status(rc), "%s: %s", sharp_kind_name[r->kind], err));
        rc = trib_test(r->question);
        if (!rc)
            return 1;
        trib_free(r->question);
        r->question = NULL;
        r->asks = false;
        rc = rc < 0 ? sharp_refuse(SHARP_COLL_ERROR, "%s: %s", sharp_kind_name[r->kind],
                                   trib_comm_error(c))
                    : sharp_answered(r);
        if (rc)
            return sharp_request_end(r, rc);
    }
    for (; r->started < r->n; r->started++) {
        rc = sharp_request_call(c, &r->call[r->started], &r->part[r->started], err);
        if (rc)
            return sharp_request_end(
                r, sharp_refuse(sharp_status(rc), "%s: %s", sharp_kind_name[r->kind], err));
    }
    return 0;
}

static void start_queue(struct sharp_coll_comm *c)
{
    while (c->queue && go_on(c->queue) <= 0)
        c->queue = c->queue->after;
}

int sharp_req_start(struct sharp_req *r)
{
    struct sharp_req **at = &r->comm->queue;
    int rc;

    start_queue(r->comm);
    rc = *at ? 1 : go_on(r);
    if (rc < 0) {
        sharp_request_drop(r);
        return rc;
    }
    r->comm->ctx->stats[r->kind].n++;
    r->comm->ctx->stats[r->kind].bytes += r->bytes;
    *last = r;
    last = &r->next;
    if (rc) {
        while (*at)
            at = &(*at)->after;
        *at = r;
    }
    return SHARP_COLL_SUCCESS;
}

/* ---- proceeding ---- */

static void sharp_request_tell(struct sharp_coll_comm *c)
{
    const char *why = trib_comm_fell_back(c->trib);

    if (c->told || !*why)
        return;
    c->told = true;
    /* the reason is the same at all ranks, so only rank 0 warns */
    sharp_say(c->rank ? SHARP_LOG_INFO : SHARP_LOG_WARN, 0,
              "rank %u: hosts do what switches did: %s", c->rank, why);
}

/* Whether it has ended. */
static bool sharp_request_settle(struct sharp_req *r)
{
    struct sharp_coll_comm *c = r->comm;
    int rc;

    for (; r->ended < r->started && (rc = trib_test(r->part[r->ended])); r->ended++) {
        const char *algo = trib_request_algo(r->part[r->ended]);

        c->ctx->stats[r->kind].by_hosts += strcmp(algo, "sharp") != 0;
        trib_free(r->part[r->ended]);
        if (rc < 0 && !r->failed)
            r->failed = sharp_refuse(SHARP_COLL_ERROR, "%s: rank %u: %s", sharp_kind_name[r->kind],
                                     c->rank, trib_comm_error(c->trib));
    }
    if (r->asks || r->started < r->n || r->ended < r->n)
        return false;
    r->status = r->failed;
    sharp_request_tell(c);
    return true;
}

void sharp_progress(void)
{
    struct sharp_req *next;

    pass++;
    for (struct sharp_coll_comm *c = sharp_comms; c; c = c->next)
        start_queue(c);
    for (struct sharp_req *r = reqs; r; r = next) {
        next = r->next;
        if (r->status == 1 && r->comm->pass != pass && !sharp_request_settle(r))
            r->comm->pass = pass; /* later requests cannot have ended either */
        if (r->status != 1 && r->freed)
            sharp_request_drop(r);
    }
}

void sharp_reqs_lose(struct sharp_coll_comm *comm)
{
    struct sharp_req *next;

    comm->queue = NULL;
    for (struct sharp_req *r = reqs; r; r = next) {
        next = r->next;
        if (r->comm != comm)
            continue;
        r->comm = NULL;
        if (r->status == 1)
            r->status = sharp_refuse(SHARP_COLL_ERROR, "%s: the communicator ends before it",
                                     sharp_kind_name[r->kind]);
        if (r->freed)
            sharp_request_drop(r);
    }
}

/* ---- the caller's calls ---- */

int sharp_coll_req_test(void *handle)
{
    struct sharp_req *r;
    int ended = 1;

    if (!handle)
        return 1;
    sharp_lock();
    r = sharp_request_find(handle);
    if (r) {
        sharp_progress();
        ended = r->status != 1;
    } else {
        sharp_refuse(0, "req_test: %p is no request", handle);
    }
    sharp_unlock();
    return ended;
}

int sharp_coll_req_free(void *handle)
{
    struct sharp_req *r;
    int rc = SHARP_COLL_SUCCESS;

    if (!handle)
        return rc;
    sharp_lock();
    r = sharp_request_find(handle);
    if (!r)
        rc = sharp_refuse(SHARP_COLL_EINVAL, "req_free: %p is no request", handle);
    else if (r->status == 1)
        r->freed = true;
    else
        sharp_request_drop(r);
    sharp_unlock();
    return rc;
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int sharp_coll_req_wait(void *handle)
{
    struct sharp_req *r;
    int polls, timeout, status = 1;
    int64_t until;
    int (*progress)(void);

    if (!handle)
        return SHARP_COLL_SUCCESS;
    sharp_lock();
    r = sharp_request_find(handle);
    progress = r && r->comm ? r->comm->ctx->progress : NULL;
    polls = r && r->comm ? r->comm->ctx->polls : 1;
    timeout = r && r->comm ? r->comm->ctx->timeout_ms : -1;
    sharp_unlock();
    if (!r)
        return sharp_refuse(SHARP_COLL_EINVAL, "req_wait: %p is no request", handle);
    until = now_ms() + timeout;
    for (int n = 1; status == 1; n = n == INT32_MAX ? 1 : n + 1) {
        if (progress && (polls < 2 || n % polls == 0))
            progress();
        if (timeout >= 0 && now_ms() > until)
            status = sharp_refuse(SHARP_COLL_ERROR, "an operation has not ended in %d ms", timeout);
        sharp_lock();
        if (status == 1) {
            sharp_progress();
            status = r->status;
        }
        if (r->status == 1 && status != 1)
            r->freed = true;
        else if (status != 1)
            sharp_request_drop(r);
        sharp_unlock();
    }
    return status;
}
