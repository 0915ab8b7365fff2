/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/queue/egress_priv.h"

#include <errno.h>

/*
 * Waiting frames are in one list a class, frames in flight in one list ordered by arrival. Which
 * class goes next is decided only when the link is free, so egress_next() is the earlier of the
 * next start and the next arrival. A frame pushed to an idle link starts at once and costs one
 * event.
 *
 * Rejected: computing each frame's start at its push (one event a frame). It would fix the order
 * before a later pause or control frame is known, and release PFC's ingress accounting too early or
 * too late.
 */

/* Adds a frame behind all that arrive no later. Only reordering faults make that other than the end. */
static void flight_add(struct egress *e, struct rte_mbuf *m, int64_t at)
{
    struct egress_line *l = &e->flight;

    T_ASSERT_HOT(l->n < l->limit, "more frames in flight than the link holds");
    if (likely(!l->n || l->last_ps <= at)) {
        line_add(l, m, at);
        if (unlikely(l->n == 1 && e->first))
            e->first(e->watcher);
        return;
    }
    line_insert(l, m, at);
}

/* When the first waiting frame of a class can start; PS_NEVER: none waits. */
static inline int64_t class_ready(const struct egress *e, uint8_t cls)
{
    if (!(e->classes >> cls & 1))
        return PS_NEVER;
    return RTE_MAX(RTE_MAX(e->q[cls].line.first_ps, e->free_ps), e->pause_ps[cls]);
}

/* Sets start_what and start_ps: what starts next, and when. At equal times the first of these wins. */
static void plan_all(struct egress *e)
{
    const uint8_t turn = e->lossy_turn ? FRAME_LOSSY : FRAME_LOSSLESS;
    const uint8_t other = e->lossy_turn ? FRAME_LOSSLESS : FRAME_LOSSY;
    int64_t best = class_ready(e, FRAME_CONTROL), t;
    uint8_t what = FRAME_CONTROL;

    t = class_ready(e, turn);
    if (t < best)
        best = t, what = turn;
    t = class_ready(e, other);
    if (t < best)
        best = t, what = other;
    t = RTE_MAX(e->pull_ps, e->free_ps);
    if (t < best)
        best = t, what = START_PULL;
    /* The link is full (no rate, or reordered frames in flight): waits for an arrival. */
    e->full = flight_full(e);
    if (unlikely(e->full) && best != PS_NEVER)
        best = RTE_MAX(best, e->flight.first_ps);
    e->start_ps = best;
    e->start_what = what;
}

static inline void start_plan(struct egress *e)
{
    if (likely(!e->classes && e->pull_ps == PS_NEVER)) {
        e->full = flight_full(e);
        e->start_ps = PS_NEVER;
        return;
    }
    plan_all(e);
}

void egress_plan(struct egress *e)
{
    start_plan(e);
}

/* Called after a frame of cls has started. Usually all waiting frames are of one class. */
static inline void plan_after(struct egress *e, uint8_t cls)
{
    if (unlikely(e->waiting_bytes != e->q[cls].bytes || e->pull_ps != PS_NEVER || flight_full(e))) {
        plan_all(e);
        return;
    }
    e->start_ps = class_ready(e, cls);
    e->start_what = cls;
}

/* Moves a frame on a link with faults from its start to the list of arrivals. */
static void launch_faulty(struct egress *e, struct rte_mbuf *m, int64_t at, int64_t dur)
{
    struct fault *f = &e->fault;
    struct rte_mbuf *dup = NULL;
    int64_t late = 0;

    if (fault_hit(f, f->loss)) {
        e->st.lost++;
        e->st.lost_bytes += frame_bytes(m);
        rte_pktmbuf_free(m);
        return;
    }
    if (fault_hit(f, f->corrupt)) {
        e->st.corrupted++;
        m = fault_corrupt(f, m, e->cfg.pool);
        if (!m)
            return;
    }
    if (f->jitter_ps)
        at += (int64_t)(fault_draw(&f->rng) % ((uint64_t)f->jitter_ps + 1));
    at = RTE_MAX(at, e->last_at_ps);
    if (fault_hit(f, f->reorder)) {
        e->st.reordered++;
        late = (dur + 1) * (int64_t)(1 + (fault_draw(&f->rng) & 7));
    } else {
        e->last_at_ps = at;
    }
    if (fault_hit(f, f->dup) && e->cfg.pool)
        dup = frame_clone(m, e->cfg.pool);
    flight_add(e, m, at + late);
    if (dup) {
        e->st.duplicated++;
        flight_add(e, dup, at + late);
    }
}

/* Starts a frame at time s. The state is consistent before departed() is called. */
static __rte_always_inline void egress_start_frame(struct egress *e, struct rte_mbuf *m, int64_t s)
{
    uint32_t bytes = frame_bytes(m);
    int64_t dur = duration(e, bytes + FRAME_LINK_OVERHEAD), at;

    if (unlikely(e->stretches))
        dur = egress_stretched(e, m, dur);
    e->free_ps = s + dur;
    if (frame_meta(m)->cls != FRAME_CONTROL)
        e->lossy_turn = frame_meta(m)->cls == FRAME_LOSSLESS;
    if (unlikely(e->down)) {
        e->st.down_drops++;
        if (e->departed)
            e->departed(e->ctx, &m, &s, 1, bytes);
        rte_pktmbuf_free(m);
        return;
    }
    e->st.frames++;
    e->st.bytes += bytes;
    e->st.busy_ps += dur;
    if (e->departed)
        e->departed(e->ctx, &m, &s, 1, bytes);
    at = s + dur + e->latency_ps - ahead(e, m, dur);
    if (unlikely(e->faults) && !is_mac_control(m)) {
        launch_faulty(e, m, at, dur);
    } else {
        e->last_at_ps = RTE_MAX(at, e->last_at_ps);
        flight_add(e, m, e->last_at_ps);
    }
}

static struct rte_mbuf *source_pull(struct egress *e, int64_t s)
{
    int64_t resume = e->pause_ps[FRAME_LOSSLESS], since = e->pull_ps;
    struct rte_mbuf *m;

    e->pull_ps = PS_NEVER; /* until the source gives a frame or kicks */
    m = e->pull(e->ctx, s, resume > s);
    if (m)
        e->pull_ps = since;
    else if (resume > s && resume != PS_NEVER)
        e->pull_ps = RTE_MIN(e->pull_ps, resume);
    return m;
}

/* Appends linked frames to those in flight. */
static void flight_append(struct egress *e, struct rte_mbuf *first, struct rte_mbuf *last,
                          uint32_t n)
{
    struct egress_line *l = &e->flight;
    bool was_empty = !l->n;

    T_ASSERT_HOT(l->n + n <= l->limit, "more frames in flight than the link holds");
    T_ASSERT_HOT(was_empty || l->last_ps <= frame_meta(first)->due_ps,
                 "frames in flight out of order");
    if (was_empty) {
        l->first = first;
        l->first_ps = frame_meta(first)->due_ps;
    } else {
        frame_meta(l->last)->behind = first;
        frame_meta(l->last)->behind_ps = frame_meta(first)->due_ps;
    }
    l->last = last;
    l->last_ps = frame_meta(last)->due_ps;
    l->n += n;
    if (unlikely(was_empty && e->first))
        e->first(e->watcher);
}

/*
 * Starts the first waiting frame of the class at start_ps, and those behind it that are due, unless a
 * frame of another class could come between. They stay linked: only their times change.
 */
static void start_waiting(struct egress *e, uint8_t cls, int64_t now)
{
    struct waiting *r = &e->q[cls];
    bool alone = e->waiting_bytes == r->bytes && e->pull_ps == PS_NEVER;
    uint32_t room = alone ? e->flight.limit - FLIGHT_SPARE + 1 - e->flight.n : 1;
    struct rte_mbuf *m[START_MAX], *next = r->line.first;
    int64_t at[START_MAX], s = e->start_ps, free_ps, dur = 0, busy = 0;
    int64_t due = e->last_at_ps, latency = e->latency_ps, nobody, *before = &nobody;
    uint32_t n = 0, left = r->line.n, was = 0, bytes = 0;
    uint32_t from = 0; /* frames from this one on have length `was` */

    T_ASSERT_HOT(left, "the class that starts next has no frame");
    T_ASSERT_HOT(s >= e->free_ps && s >= e->pause_ps[cls],
                 "a frame starts on a busy or paused link");
    room = RTE_MIN(RTE_MIN(room, left), START_MAX);
    note_peaks(e, cls);
    do {
        struct frame_meta *meta = frame_meta(next);
        uint32_t len = frame_bytes(next);

        if (len != was) {
            bytes += (n - from) * was;
            busy += (n - from) * dur;
            from = n, was = len;
            dur = duration(e, len + FRAME_LINK_OVERHEAD);
        }
        m[n] = next;
        at[n] = s;
        free_ps = s + dur;
        due = RTE_MAX(free_ps + latency - ahead(e, next, dur), due);
        *before = meta->due_ps = due;
        before = &meta->behind_ps;
        next = meta->behind;
        s = RTE_MAX(*before, free_ps); /* any pause ends before the first start */
    } while (++n < room && s <= now);
    bytes += (n - from) * was;
    busy += (n - from) * dur;

    T_ASSERT_HOT(r->bytes >= bytes && e->waiting_bytes >= bytes, "a class counts too few bytes");
    e->free_ps = free_ps;
    e->last_at_ps = due;
    r->line.first = next;
    r->line.first_ps = left > n ? *before : PS_NEVER;
    r->line.n = left - n;
    r->taken += n;
    r->bytes -= bytes;
    e->waiting_bytes -= bytes;
    if (left == n)
        e->classes &= (uint8_t) ~(1u << cls);
    if (cls != FRAME_CONTROL)
        e->lossy_turn = cls == FRAME_LOSSLESS;
    e->st.frames += n;
    e->st.bytes += bytes;
    e->st.busy_ps += busy;
    flight_append(e, m[0], m[n - 1], n);
    if (e->departed)
        e->departed(e->ctx, m, at, n, bytes);
}

/* Whether a frame that starts now takes the time of its bytes, and arrives after all frames in
 * flight. */
static inline bool in_order(const struct egress *e)
{
    return !e->faults && !e->down && !e->stretches &&
           (!e->flight.n || e->flight.last_ps <= e->last_at_ps);
}

/* Starts every frame that is due. */
static void egress_run(struct egress *e, int64_t now)
{
    if (unlikely(e->full)) /* frames in flight may have arrived */
        start_plan(e);
    T_ASSERT_HOT(classes_agree(e), "the classes of a queue and their sums disagree");
    while (e->start_ps <= now) {
        uint8_t cls = e->start_what;
        int64_t s = e->start_ps;
        struct rte_mbuf *m;

        if (flight_full(e))
            return; /* the caller takes the arrivals that are due */
        if (cls == START_PULL) {
            m = source_pull(e, s);
            if (m)
                egress_start_frame(e, m, s);
            start_plan(e);
        } else if (likely(in_order(e))) {
            start_waiting(e, cls, now);
            plan_after(e, cls);
        } else {
            e->q[cls].taken++;
            m = wait_take(e, cls);
            egress_start_frame(e, m, s);
            plan_after(e, cls);
        }
    }
}

/* Appends n frames to those that wait in a class. */
static inline void wait_in(struct egress *e, struct waiting *r, struct rte_mbuf *const *m,
                           uint32_t n, uint32_t bytes, int64_t now_ps)
{
    line_add(&r->line, m[0], now_ps);
    for (uint32_t i = 1; i < n; i++) {
        frame_meta(m[i - 1])->behind = m[i];
        frame_meta(m[i - 1])->behind_ps = now_ps;
    }
    r->line.last = m[n - 1];
    r->line.n += n - 1;
    r->bytes += bytes;
    e->waiting_bytes += bytes;
    e->classes |= (uint8_t)(1u << (r - e->q));
}

/* Queues n frames of one class that fit: the first may start at once. */
static inline void egress_enter(struct egress *e, struct waiting *r, struct rte_mbuf *const *m,
                                uint32_t n, uint32_t bytes, int64_t now_ps)
{
    int64_t before;

    if (unlikely(e->later) && r->line.n && r->line.last_ps > now_ps) {
        egress_enter_sorted(e, r, m, n, now_ps);
        return;
    }
    if (likely(r->line.n && !e->full)) { /* a frame is planned already */
        wait_in(e, r, m, n, bytes, now_ps);
        return;
    }
    before = watched(e);
    if (e->waiting_bytes == 0 && e->free_ps <= now_ps && e->pause_ps[r - e->q] <= now_ps &&
        !flight_full(e)) {
        bytes -= frame_bytes(*m);
        egress_start_frame(e, *m++, now_ps);
        if (--n) {
            wait_in(e, r, m, n, bytes, now_ps);
            start_plan(e);
            egress_run(e, now_ps); /* frames may take zero time */
        }
    } else {
        wait_in(e, r, m, n, bytes, now_ps);
    }
    start_plan(e);
    call_if_earlier(e, before);
}

int egress_push(struct egress *e, struct rte_mbuf *m, int64_t now_ps)
{
    struct waiting *r = &e->q[frame_meta(m)->cls];
    uint32_t bytes = frame_bytes(m);

    T_ASSERT_HOT(frame_meta(m)->cls < FRAME_CLASSES, "a frame has no class");
    T_ASSERT_HOT(!e->discards || !e->q[FRAME_LOSSLESS].line.limit,
                 "a queue that discards has room");
    if (unlikely(!egress_fits(e, r, bytes)))
        return -ENOBUFS;
    m = egress_marked(e, r, m);
    egress_enter(e, r, &m, 1, bytes, now_ps);
    return 0;
}

bool egress_push_run(struct egress *e, struct rte_mbuf *const *m, uint32_t n, uint32_t bytes,
                     int64_t now_ps)
{
    struct waiting *r = &e->q[frame_meta(m[0])->cls];

    T_ASSERT_HOT(n && frame_meta(m[0])->cls < FRAME_CLASSES, "no frames, or of no class");
    if (unlikely(r->line.n + n > r->line.limit || r->bytes + bytes > r->limit_bytes ||
                 (e->marks && r->bytes + bytes > e->ecn.min_bytes)))
        return false;
    egress_enter(e, r, m, n, bytes, now_ps);
    return true;
}

/* Takes at most n frames that have arrived. */
static inline uint16_t arrived(struct egress_line *l, struct rte_mbuf **m, uint16_t n,
                               int64_t now_ps)
{
    struct rte_mbuf *next = l->first;
    uint16_t k = 0;

    T_ASSERT_HOT(!l->n == (l->first_ps == PS_NEVER), "a link counts frames that it does not have");
    if (!n || !l->n)
        return 0;
    T_ASSERT_HOT(frame_meta(next)->due_ps == l->first_ps && l->first_ps <= l->last_ps,
                 "frames in flight out of order");
    if (likely(l->last_ps <= now_ps)) { /* all have arrived */
        n = (uint16_t)RTE_MIN(n, l->n);
        for (; k < n; k++, next = frame_meta(next)->behind) {
            T_ASSERT_HOT(next != l->last || k + 1u == l->n,
                         "a link counts frames that it does not have");
            m[k] = next;
        }
        l->n -= n;
        l->first = next;
        l->first_ps = l->n ? frame_meta(m[n - 1])->behind_ps : PS_NEVER;
        return n;
    }
    while (k < n && l->first_ps <= now_ps)
        m[k++] = line_take(l);
    return k;
}

uint16_t egress_pop(struct egress *e, struct rte_mbuf **m, uint16_t n, int64_t now_ps)
{
    uint16_t k = 0, got;

    do {
        egress_run(e, now_ps);
        got = arrived(&e->flight, m + k, (uint16_t)(n - k), now_ps);
        k = (uint16_t)(k + got);
    } while (got);
    return k;
}

void egress_start(struct egress *e, int64_t now_ps)
{
    egress_run(e, now_ps);
}

uint16_t egress_take(struct egress *e, struct rte_mbuf **m, uint16_t n, int64_t now_ps)
{
    uint16_t k = arrived(&e->flight, m, n, now_ps);

    if (e->flight.n)
        frame_prefetch(e->flight.first);
    return k;
}

int64_t egress_next(const struct egress *e)
{
    int64_t at = e->flight.first_ps;

    /* While the link is full, a frame starts only after an arrival. */
    return flight_full(e) ? at : RTE_MIN(at, e->start_ps);
}

void egress_kick(struct egress *e, int64_t now_ps)
{
    int64_t before;

    if (e->pull_ps <= now_ps || !e->pull)
        return;
    before = watched(e);
    e->pull_ps = now_ps;
    start_plan(e);
    call_if_earlier(e, before);
}

void egress_pause(struct egress *e, enum frame_class cls, int64_t until_ps, int64_t now_ps)
{
    int64_t before = watched(e), old = e->pause_ps[cls];

    if (cls == FRAME_CONTROL)
        return;
    /* Frames that waited for the end of a pause start now, not in the past. */
    if (until_ps < now_ps)
        until_ps = RTE_MIN(old, now_ps);
    /* Counts a pause in full when it is set; a later one subtracts the rest of it. */
    if (old > now_ps && old != PS_NEVER)
        e->st.paused_ps -= old - now_ps;
    if (until_ps > now_ps && until_ps != PS_NEVER)
        e->st.paused_ps += until_ps - now_ps;
    e->pause_ps[cls] = until_ps;
    if (cls == FRAME_LOSSLESS && e->pull) {
        /* A source that had only paused frames is pulled again at the end of the pause. */
        if (e->pull_ps == PS_NEVER && old > now_ps)
            e->pull_ps = RTE_MAX(now_ps, until_ps);
        else if (e->pull_ps > now_ps && e->pull_ps == old)
            e->pull_ps = RTE_MAX(now_ps, until_ps);
    }
    start_plan(e);
    call_if_earlier(e, before);
}
