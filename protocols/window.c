/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocols/window.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define BACKOFF 4 /* doublings of the timeout in silence, at most */
#define SAMPLES 64

int window_open(struct window *w, uint32_t n, int64_t timeout_ps, int64_t patience_ps)
{
    *w = (struct window){.n = n,
                         .timeout_ps = timeout_ps,
                         .patience_ps = patience_ps,
                         .timer_ps = TRIB_NEVER,
                         .quick_ps = {0, TRIB_NEVER}};
    w->flight = calloc(n, sizeof(*w->flight));
    w->queue = calloc(n, sizeof(*w->queue));
    if (!w->flight || !w->queue) {
        window_close(w);
        return -ENOMEM;
    }
    return 0;
}

void window_close(struct window *w)
{
    free(w->flight);
    free(w->queue);
    w->flight = NULL;
    w->queue = NULL;
}

static void enqueue(struct window *w, uint32_t i)
{
    w->flight[i].state = FLIGHT_QUEUED;
    w->queue[(w->head + w->queued++) % w->n] = i;
}

void window_queue(struct window *w, struct trib_rank *r, uint32_t i, uint64_t seq)
{
    struct flight *f = &w->flight[i];

    if (!w->busy++)
        w->heard_ps = r->api->now(r);
    f->seq = seq;
    f->tries = 0;
    enqueue(w, i);
}

static void arm(struct window *w, struct trib_rank *r, int64_t at_ps)
{
    if (at_ps >= w->timer_ps)
        return;
    w->timer_ps = at_ps;
    r->api->timer(r, at_ps);
}

/* How long a packet that is sent now may take. */
static int64_t timeout_of(const struct window *w, int64_t now)
{
    int64_t t = 4 * w->quick_ps[0] > w->timeout_ps ? 4 * w->quick_ps[0] : w->timeout_ps;
    int64_t silent = now - w->heard_ps;

    for (int i = 0; i < BACKOFF && silent > t; i++)
        t *= 2;
    return t;
}

void window_pump(struct window *w, struct trib_rank *r, window_send send)
{
    int64_t now = r->api->now(r);

    if (w->pumping) /* an answer that came from inside of send() */
        return;
    w->pumping = true;
    while (w->queued) {
        uint32_t i = w->queue[w->head];
        struct flight *f = &w->flight[i];
        int64_t due = now + timeout_of(w, now);

        w->head = (w->head + 1) % w->n;
        w->queued--;
        f->state = FLIGHT_SENT;
        f->sent_ps = now;
        f->due_ps = due;
        if (!send(r, i)) {
            f->state = FLIGHT_QUEUED;
            w->head = (w->head + w->n - 1) % w->n;
            w->queued++;
            break;
        }
        arm(w, r, due);
    }
    w->pumping = false;
}

/* An answer to a packet that was sent once tells the time that answers take. */
static void sample(struct window *w, int64_t took_ps)
{
    if (took_ps < w->quick_ps[1])
        w->quick_ps[1] = took_ps;
    if (++w->samples < SAMPLES)
        return;
    w->samples = 0;
    w->quick_ps[0] = w->quick_ps[1];
    w->quick_ps[1] = TRIB_NEVER;
}

void window_answer(struct window *w, struct trib_rank *r, uint32_t i)
{
    struct flight *f = &w->flight[i];

    w->heard_ps = r->api->now(r);
    if (f->state == FLIGHT_SENT && !f->tries)
        sample(w, w->heard_ps - f->sent_ps);
    if (f->state == FLIGHT_QUEUED) { /* out of the queue, which is short then */
        uint32_t kept = 0;

        for (uint32_t k = 0; k < w->queued; k++) {
            uint32_t j = w->queue[(w->head + k) % w->n];

            if (j != i)
                w->queue[(w->head + kept++) % w->n] = j;
        }
        w->queued = kept;
    }
    f->state = FLIGHT_IDLE;
    w->busy--;
}

void window_resend(struct window *w, uint32_t i)
{
    struct flight *f = &w->flight[i];

    f->tries += f->tries < 255;
    enqueue(w, i);
}

int window_overdue(struct window *w, struct trib_rank *r)
{
    int64_t now = r->api->now(r), next = TRIB_NEVER;
    int n = 0;

    w->timer_ps = TRIB_NEVER;
    if (!w->busy)
        return 0;
    if (now - w->heard_ps > w->patience_ps)
        return -1;
    for (uint32_t i = 0; i < w->n; i++) {
        struct flight *f = &w->flight[i];

        if (f->state != FLIGHT_SENT)
            continue;
        if (f->due_ps <= now) {
            window_resend(w, i);
            n++;
        } else if (f->due_ps < next) {
            next = f->due_ps;
        }
    }
    arm(w, r, next);
    return n;
}

int key_refuse(struct trib_rank *r, const char *fmt, ...)
{
    char text[160];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    r->api->fail(r, text);
    return -EINVAL;
}

int key_servers(struct trib_rank *r, int64_t servers)
{
    return servers <= r->nranks ? 0
                                : key_refuse(r,
                                             "servers: found %lld, expected at most the number of "
                                             "ranks, %u",
                                             (long long)servers, r->nranks);
}
