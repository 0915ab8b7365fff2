/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's vector as numbered packets with a window, for the rank halves of protocols. It decides when packets
 * are sent, when they are sent again, and when the operation is done. The protocol defines what a packet
 * carries and what answers it.
 *
 * Packets are numbered through all operations; `base` is the first of the current one. Packet q travels in
 * flight q mod n. So at most n packets wait for an answer, and a rank that sends q + n has the answer to q.
 *
 * A protocol's trib_rank.self points to a struct trib_window, or to a structure whose first member
 * is one. Then its functions are:
 *
 *   open     trib_window_open(); memory of its own
 *   close    frees that memory; trib_window_close()
 *   start    trib_window_start()
 *   packet   if trib_window_awaits(): takes the result to trib_window_to(), trib_window_advance()
 *   room     trib_window_pump() itself
 *   timer    trib_window_timer() itself
 *
 * A packet is resent after `timeout`, and after the same time again. Where answers are slow but not lost (ranks
 * that share a link), the timeout follows the quickest of the latest answers. A rank that gets no answer at
 * all doubles the timeout, up to 16 times its value, and gives up after `patience`. (Doubling for each packet
 * was far slower: a packet that waits for another rank's part would back off without a loss of its
 * own.)
 *
 * All functions are inline: there is nothing to link. Times are fabric time in picoseconds. Two threads must
 * not call them at once for one rank, as with the halves themselves.
 */
#ifndef TRIBUTARY_WINDOW_H
#define TRIBUTARY_WINDOW_H

#include <tributary/protocol.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define TRIB_BACKOFF 4 /* most doublings of the timeout */
#define TRIB_SAMPLES 64

enum trib_flight_state { TRIB_IDLE, TRIB_QUEUED, TRIB_SENT };

struct trib_flight {
    uint64_t seq; /* its packet, or the last one it had */
    int64_t sent_ps, due_ps;
    uint8_t state; /* enum trib_flight_state */
    uint8_t tries; /* how often the packet was queued again, at most 255 */
};

/* Sends the packet of a flight. False: no buffer is free. An answer may come before it returns. */
typedef bool trib_window_send(struct trib_rank *r, const struct trib_flight *f);

/* One lane: packets q, q + lanes, ... are answered in order if nothing is lost. */
struct trib_lane {
    uint64_t oldest; /* first packet without an answer */
    uint32_t later;  /* answers to later packets since */
};

struct trib_window {
    struct trib_op op;
    uint64_t base;              /* number of the operation's first packet */
    uint64_t packets, answered; /* of the operation */
    uint32_t per, lead;         /* elements in a packet; leading packets without elements */
    uint32_t n, busy;           /* flights; flights that are not idle */
    struct trib_flight *flight;
    bool active; /* an operation is under way */
    bool failed;
    /* The rest is private. */
    bool pumping;
    trib_window_send *send;
    uint32_t *queue; /* ring of flights to send */
    uint32_t head, queued;
    int64_t timeout_ps, patience_ps;
    int64_t timer_ps, heard_ps; /* time set; time of the last answer, or of the start */
    int64_t quick_ps[2];        /* quickest answer of the last 64; of the current ones so far */
    uint32_t samples;
    uint64_t next, recover; /* in order: packets queued; marks of packets before it are ignored */
    uint32_t limit, quiet;  /* most in flight now; answers since that changed */
    struct trib_lane *lane;
    uint32_t lanes, gap;
};

/* ---- sizes ---- */

static inline uint64_t trib_ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

/* Time that `bytes` bytes take on a link. */
static inline int64_t trib_link_ps(uint64_t bytes, uint64_t rate_bps)
{
    return (int64_t)((double)bytes * 8e12 / (double)(rate_bps ? rate_bps : 1));
}

/* Rate of the slowest link that this rank's packets may pass: its own, those of the tree and, between ranks,
 * its share of the links of a switch to others. Use it for a timer that must allow for all packets
 * ahead of one. */
static inline uint64_t trib_slowest_bps(const struct trib_rank *r, bool between_ranks)
{
    uint64_t least = r->rate_bps;

    if (r->tree_bps && r->tree_bps < least)
        least = r->tree_bps;
    if (between_ranks && r->share_bps && r->share_bps < least)
        least = r->share_bps;
    return least;
}

/* Elements of `size` bytes in a packet behind its head: as many as asked, or as fit. */
static inline uint32_t trib_elements(int64_t asked, uint32_t payload, uint32_t head, uint32_t size)
{
    uint32_t fit = payload > head ? (payload - head) / size : 0;

    return asked < fit ? (uint32_t)asked : fit;
}

/* Refuses, in open(), a key that does not fit the job. The text, as of printf and 159 bytes at most, says
 * what was found and expected. Returns -EINVAL. */
__attribute__((format(printf, 2, 3))) static inline int trib_refuse(struct trib_rank *r,
                                                                    const char *fmt, ...)
{
    char text[160];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    r->api->fail(r, text);
    return -EINVAL;
}

/* ---- life ---- */

/* Frees what open() has allocated, including r->self. */
static inline void trib_window_close(struct trib_rank *r)
{
    struct trib_window *w = (struct trib_window *)r->self;

    if (!w)
        return;
    free(w->flight);
    free(w->queue);
    free(w->lane);
    free(w);
    r->self = NULL;
}

/*
 * Allocates r->self, `bytes` zeroed bytes that begin with the window, and n flights. patience_ps:
 * TRIB_NEVER never gives up. 0; -ENOMEM: nothing stays allocated.
 */
static inline int trib_window_open(struct trib_rank *r, size_t bytes, uint32_t n,
                                   int64_t timeout_ps, int64_t patience_ps, trib_window_send *send)
{
    struct trib_window *w = (struct trib_window *)calloc(1, bytes);

    r->self = w;
    if (!w)
        return -ENOMEM;
    w->n = w->limit = n;
    w->send = send;
    w->timeout_ps = timeout_ps;
    w->patience_ps = patience_ps;
    w->timer_ps = w->quick_ps[1] = TRIB_NEVER;
    w->flight = (struct trib_flight *)calloc(n, sizeof(*w->flight));
    w->queue = (uint32_t *)calloc(n, sizeof(*w->queue));
    if (!w->flight || !w->queue) {
        trib_window_close(r);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < n; i++)
        w->flight[i].seq = i - (uint64_t)n;
    return 0;
}

/* Fails the job; the window does nothing more. */
static inline void trib_window_fail(struct trib_rank *r, const char *why)
{
    ((struct trib_window *)r->self)->failed = true;
    r->api->fail(r, why);
}

/* ---- packets of the operation ---- */

static inline struct trib_flight *trib_window_flight(const struct trib_window *w, uint64_t seq)
{
    return &w->flight[seq % w->n];
}

/* Elements of packet seq. */
static inline uint32_t trib_window_count(const struct trib_window *w, uint64_t seq)
{
    uint64_t k = seq - w->base, left;

    if (k < w->lead)
        return 0;
    left = w->op.count - (k - w->lead) * w->per;
    return left < w->per ? (uint32_t)left : w->per;
}

static inline uint64_t trib_window_offset(const struct trib_window *w, uint64_t seq)
{
    return (seq - w->base - w->lead) * w->per * trib_size(w->op.type);
}

/* Where packet seq's elements are in the input, and where they belong in the result. */
static inline const void *trib_window_from(const struct trib_window *w, uint64_t seq)
{
    return (const char *)w->op.send + trib_window_offset(w, seq);
}

static inline void *trib_window_to(const struct trib_window *w, uint64_t seq)
{
    return (char *)w->op.recv + trib_window_offset(w, seq);
}

/* Whether packet seq has been sent and not been answered yet. */
static inline bool trib_window_awaits(const struct trib_window *w, uint64_t seq)
{
    const struct trib_flight *f = trib_window_flight(w, seq);

    return w->active && !w->failed && f->seq == seq && f->state != TRIB_IDLE &&
           (f->state != TRIB_QUEUED || f->tries);
}

/* ---- sending ---- */

static inline void trib_window_enqueue(struct trib_window *w, uint32_t i)
{
    w->flight[i].state = TRIB_QUEUED;
    w->queue[(w->head + w->queued++) % w->n] = i;
}

/* Queues a packet that has no answer, to be sent again by the next pump(). */
static inline void trib_window_resend(struct trib_window *w, struct trib_flight *f)
{
    f->tries += f->tries < 255;
    trib_window_enqueue(w, (uint32_t)(f - w->flight));
}

/* Queues packet seq for the next pump(), if the operation has such a packet and its flight is idle. */
static inline void trib_window_offer(struct trib_rank *r, uint64_t seq)
{
    struct trib_window *w = (struct trib_window *)r->self;
    struct trib_flight *f = trib_window_flight(w, seq);

    if (seq - w->base >= w->packets || f->state != TRIB_IDLE)
        return;
    if (!w->busy++)
        w->heard_ps = r->api->now(r);
    f->seq = seq;
    f->tries = 0;
    trib_window_enqueue(w, (uint32_t)(f - w->flight));
}

static inline void trib_window_arm(struct trib_window *w, struct trib_rank *r, int64_t at_ps)
{
    if (at_ps >= w->timer_ps)
        return;
    w->timer_ps = at_ps;
    r->api->timer(r, at_ps);
}

/* Timeout of a packet that is sent now. */
static inline int64_t trib_window_timeout(const struct trib_window *w, int64_t now)
{
    int64_t t = 4 * w->quick_ps[0] > w->timeout_ps ? 4 * w->quick_ps[0] : w->timeout_ps;
    int64_t silent = now - w->heard_ps;

    for (int i = 0; i < TRIB_BACKOFF && silent > t; i++)
        t *= 2;
    return t;
}

/* Sends queued packets while there are buffers. */
static inline void trib_window_pump(struct trib_rank *r)
{
    struct trib_window *w = (struct trib_window *)r->self;
    int64_t now = r->api->now(r);

    if (w->pumping || w->failed) /* pumping: an answer came inside send() */
        return;
    w->pumping = true;
    while (w->queued) {
        struct trib_flight *f = &w->flight[w->queue[w->head]];
        int64_t due = now + trib_window_timeout(w, now);

        w->head = (w->head + 1) % w->n;
        w->queued--;
        f->state = TRIB_SENT;
        f->sent_ps = now;
        f->due_ps = due;
        if (!w->send(r, f)) {
            f->state = TRIB_QUEUED;
            w->head = (w->head + w->n - 1) % w->n;
            w->queued++;
            break;
        }
        trib_window_arm(w, r, due);
    }
    w->pumping = false;
}

/* Begins an operation: `lead` packets without elements, then as many as the elements need. */
static inline void trib_window_begin(struct trib_rank *r, const struct trib_op *op, uint32_t per,
                                     uint32_t lead)
{
    struct trib_window *w = (struct trib_window *)r->self;

    w->op = *op;
    w->per = per;
    w->lead = lead;
    w->packets = lead + trib_ceil_div(op->count, per);
    w->answered = w->next = 0;
    w->active = true;
}

/* Begins an operation and sends its first n packets. */
static inline void trib_window_start(struct trib_rank *r, const struct trib_op *op, uint32_t per)
{
    struct trib_window *w = (struct trib_window *)r->self;

    trib_window_begin(r, op, per, 0);
    for (uint32_t i = 0; i < w->n; i++)
        trib_window_offer(r, w->base + i);
    trib_window_pump(r);
}

/* ---- answers ---- */

/* Learns how long an answer took to a packet that was sent only once. */
static inline void trib_window_sample(struct trib_window *w, int64_t took_ps)
{
    if (took_ps < w->quick_ps[1])
        w->quick_ps[1] = took_ps;
    if (++w->samples < TRIB_SAMPLES)
        return;
    w->samples = 0;
    w->quick_ps[0] = w->quick_ps[1];
    w->quick_ps[1] = TRIB_NEVER;
}

static inline void trib_window_unqueue(struct trib_window *w, uint32_t i)
{
    uint32_t kept = 0; /* the queue is short then */

    for (uint32_t k = 0; k < w->queued; k++) {
        uint32_t j = w->queue[(w->head + k) % w->n];

        if (j != i)
            w->queue[(w->head + kept++) % w->n] = j;
    }
    w->queued = kept;
}

/* Packet seq, which is awaited, is answered. True: the operation goes on; false: it is done. */
static inline bool trib_window_answer(struct trib_rank *r, uint64_t seq)
{
    struct trib_window *w = (struct trib_window *)r->self;
    struct trib_flight *f = trib_window_flight(w, seq);

    w->heard_ps = r->api->now(r);
    if (f->state == TRIB_SENT && !f->tries)
        trib_window_sample(w, w->heard_ps - f->sent_ps);
    if (f->state == TRIB_QUEUED)
        trib_window_unqueue(w, (uint32_t)(f - w->flight));
    f->state = TRIB_IDLE;
    w->busy--;
    if (++w->answered < w->packets)
        return true;
    w->active = false;
    w->base += w->packets;
    r->api->done(r);
    return false;
}

/* The same, and then sends packet seq + n. */
static inline void trib_window_advance(struct trib_rank *r, uint64_t seq)
{
    if (!trib_window_answer(r, seq))
        return;
    trib_window_offer(r, seq + ((struct trib_window *)r->self)->n);
    trib_window_pump(r);
}

/* Queues overdue packets again, at the timer. False: the job has failed, now or before. */
static inline bool trib_window_overdue(struct trib_rank *r)
{
    struct trib_window *w = (struct trib_window *)r->self;
    int64_t now = r->api->now(r), next = TRIB_NEVER;

    if (w->failed)
        return false;
    w->timer_ps = TRIB_NEVER;
    if (!w->busy)
        return true;
    if (now - w->heard_ps > w->patience_ps) {
        trib_window_fail(r, "no answer within patience_ms: a rank or a switch is gone, or ranks "
                            "have started different operations");
        return false;
    }
    for (uint32_t i = 0; i < w->n; i++) {
        struct trib_flight *f = &w->flight[i];

        if (f->state != TRIB_SENT)
            continue;
        if (f->due_ps <= now)
            trib_window_resend(w, f);
        else if (f->due_ps < next)
            next = f->due_ps;
    }
    trib_window_arm(w, r, next);
    return true;
}

static inline void trib_window_timer(struct trib_rank *r)
{
    if (trib_window_overdue(r))
        trib_window_pump(r);
}

/* ---- in order, with a limit that follows congestion, and resends on a gap ---- */

/* Instead of offers: queues the next packets while fewer than the limit are in flight and the next packet's
 * flight is idle, and sends. */
static inline void trib_window_in_order(struct trib_rank *r)
{
    struct trib_window *w = (struct trib_window *)r->self;

    while (w->next < w->packets && w->busy < w->limit &&
           trib_window_flight(w, w->base + w->next)->state == TRIB_IDLE)
        trib_window_offer(r, w->base + w->next++);
    trib_window_pump(r);
}

/* Call it before trib_window_answer(). A mark halves the limit, once for all packets that are in flight then
 * (true); as many answers as the limit without a mark raise it by one. */
static inline bool trib_window_marked(struct trib_rank *r, uint64_t seq, bool marked)
{
    struct trib_window *w = (struct trib_window *)r->self;

    w->quiet++;
    if (marked && seq >= w->recover) {
        w->recover = w->base + w->next;
        w->limit = w->limit > 1 ? w->limit / 2 : 1;
        w->quiet = 0;
        return true;
    }
    if (w->quiet >= w->limit && w->limit < w->n) {
        w->limit++;
        w->quiet = 0;
    }
    return false;
}

/* Call it in open(). A packet is resent once `gap` (at least 1) later packets of its lane are answered. */
static inline int trib_window_lanes(struct trib_rank *r, uint32_t lanes, uint32_t gap)
{
    struct trib_window *w = (struct trib_window *)r->self;

    w->lane = (struct trib_lane *)calloc(lanes, sizeof(*w->lane));
    if (!w->lane)
        return -ENOMEM;
    w->lanes = lanes;
    w->gap = gap;
    for (uint32_t i = 0; i < lanes; i++)
        w->lane[i].oldest = i;
    return 0;
}

/* Call it before trib_window_answer(): resends the oldest packet of the lane after a gap. */
static inline void trib_window_gap(struct trib_rank *r, uint64_t seq)
{
    struct trib_window *w = (struct trib_window *)r->self;
    struct trib_lane *l = &w->lane[seq % w->lanes];
    struct trib_flight *f = trib_window_flight(w, l->oldest);

    if (seq == l->oldest) {
        l->later = 0;
        do {
            l->oldest += w->lanes;
            f = trib_window_flight(w, l->oldest);
        } while ((int64_t)(f->seq - l->oldest) > 0 ||
                 (f->seq == l->oldest && f->state == TRIB_IDLE));
    } else if (++l->later >= w->gap && f->seq == l->oldest && f->state == TRIB_SENT && !f->tries) {
        trib_window_resend(w, f);
    }
}

#endif
