/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs the schedules of all ranks in order of time. A lane begins its next step once what the step
 * depends on is done; a message also waits for its receive to be posted, for the lane's previous
 * message to leave (so that lanes which share a link take turns), and for every link of its path
 * (cost_net.c). Software takes no time except the fabric's costs.
 */
#include "model/cost_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CREDIT_WIRE 102u /* an RDMA WRITE of four bytes */

/* ---- events, by time, then by creation ---- */

static bool before(const struct cost_event *a, const struct cost_event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void model_event(struct model *m, enum event_kind kind, int64_t at, unsigned rank, unsigned lane,
                 uint32_t step)
{
    struct cost_event e = {at, m->order++, rank, lane, step, (uint8_t)kind};
    uint64_t i = m->n_events;

    if (i == m->capacity) {
        uint64_t capacity = m->capacity ? 2 * m->capacity : 1024;
        void *p = realloc(m->heap, capacity * sizeof(*m->heap));

        if (!p) {
            m->rc = -ENOMEM;
            return;
        }
        m->heap = p;
        m->capacity = capacity;
    }
    m->n_events++;
    for (; i && before(&e, &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
        m->heap[i] = m->heap[(i - 1) / 2];
    m->heap[i] = e;
}

static struct cost_event next_event(struct model *m)
{
    struct cost_event first = m->heap[0], last = m->heap[--m->n_events];
    uint64_t i = 0, c;

    while ((c = 2 * i + 1) < m->n_events) {
        c += c + 1 < m->n_events && before(&m->heap[c + 1], &m->heap[c]);
        if (!before(&m->heap[c], &last))
            break;
        m->heap[i] = m->heap[c];
        i = c;
    }
    m->heap[i] = last;
    return first;
}

bool run_next(struct model *m, struct cost_event *e)
{
    if (!m->n_events)
        return false;
    *e = next_event(m);
    return true;
}

/* ---- steps ---- */

static void try_lane(struct model *m, unsigned rank, unsigned lane, int64_t now);

/* The next step of the lane is done. */
static void step_done(struct model *m, unsigned rank, unsigned lane, int64_t now)
{
    struct model_rank *r = &m->rank[rank];
    struct model_lane *l = &r->lane[lane];
    uint32_t w = l->waiters;

    l->done++;
    l->waiters = NOBODY; /* a step that waits for another of its own lane begins the new list */
    m->end = now > m->end ? now : m->end;
    if (r->s.lane[lane].kind == LANE_RECV) /* post its credit before the messages that it causes */
        try_lane(m, rank, lane, now);
    while (w != NOBODY) {
        uint32_t next = r->lane[w].next_waiter;

        r->lane[w].waiting = false;
        try_lane(m, rank, w, now);
        w = next;
    }
}

/* Hand-offs until a step begins: the maximum over its dependencies. */
static unsigned handoffs_before(const struct model_rank *r, const struct step *st)
{
    unsigned handoffs = 0;

    for (unsigned i = 0; i < st->n_deps; i++) {
        unsigned h = r->lane[st->dep[i].lane].handoffs[st->dep[i].count - 1];

        handoffs = h > handoffs ? h : handoffs;
    }
    return handoffs;
}

/* Whether the step may start. False: the lane is in the list of another one, which will try it
 * again. */
static bool step_ready(struct model_rank *r, unsigned lane, const struct step *st)
{
    struct model_lane *l = &r->lane[lane];

    for (unsigned i = 0; i < st->n_deps; i++) {
        struct model_lane *o = &r->lane[st->dep[i].lane];

        if (o->done < st->dep[i].count) {
            l->next_waiter = o->waiters;
            o->waiters = lane;
            l->waiting = true;
            return false;
        }
    }
    return true;
}

/* ---- messages ---- */

/* Sends the next part of a SEND lane's current message, if it fits the window. Lanes of one link
 * take turns. */
static void send_part(struct model *m, unsigned rank, unsigned lane, int64_t now)
{
    struct model_lane *l = &m->rank[rank].lane[lane];
    const struct lane *s = &m->rank[rank].s.lane[lane];
    uint32_t i = l->begun - 1;
    uint64_t most = (uint64_t)m->part_frames * m->in.mtu, from = l->part * most,
             len = lane_step(s, i)->len - from;
    bool last = len <= most;
    uint32_t packets;

    len = last ? len : most;
    packets = len ? (uint32_t)((len - 1) / m->in.mtu) + 1 : 1;
    if (!m->coarse && l->sent != l->acked &&
        l->sent - l->acked + packets > m->fab->transport.window)
        return;
    l->sent += packets;
    l->link_busy = true;
    l->sending = !last;
    queue_send(m,
               &(struct model_part){.kind = PART_DATA,
                                    .last = last,
                                    .rank = rank,
                                    .lane = lane,
                                    .step = i,
                                    .first = l->part * m->part_frames,
                                    .packets = packets,
                                    .msg = model_message(len, m->in.mtu, last),
                                    .tail = now,
                                    .path = l->path,
                                    .back = l->back},
               now);
    l->part = last ? 0 : l->part + 1;
}

static void next_part(struct model *m, unsigned rank, unsigned lane, int64_t now)
{
    if (m->rank[rank].s.lane[lane].kind == LANE_AGG)
        agg_model_part(m, rank, lane, now);
    else
        send_part(m, rank, lane, now);
}

void run_posted(struct model *m, unsigned rank, unsigned lane, int64_t at, int64_t now)
{
    if (at <= now) {
        next_part(m, rank, lane, now);
        return;
    }
    m->rank[rank].lane[lane].link_busy = true;
    model_event(m, EV_TRY, at, rank, lane, 0);
}

void run_part_left(struct model *m, unsigned rank, unsigned lane, int64_t now)
{
    m->rank[rank].lane[lane].link_busy = false;
    try_lane(m, rank, lane, now);
}

/* A part of a SEND lane's message has arrived. */
static void data_arrived(struct model *m, const struct model_part *p, int64_t now)
{
    struct model_lane *l = &m->rank[p->rank].lane[p->lane];
    const struct lane *s = &m->rank[p->rank].s.lane[p->lane];
    struct model_part acked = *p;

    l->arrived += p->packets;
    acked.acked = l->arrived;
    if (!m->coarse)
        queue_send_acks(m, &acked, now);
    if (!p->last)
        return;
    model_event(
        m, EV_DONE,
        model_noticed(&m->rank[s->peer].lane[l->peer_lane], lane_step(s, p->step)->len, now),
        s->peer, l->peer_lane, p->step);
    if (m->coarse) {
        uint64_t n = acks_of(0, p->first + p->packets, true);

        model_event(m, EV_DONE, model_send_small(m, l->back, now, n * MODEL_ACK_WIRE), p->rank,
                    p->lane, p->step);
    }
}

static void ack_arrived(struct model *m, const struct model_part *p, int64_t now)
{
    m->rank[p->rank].lane[p->lane].acked = p->acked;
    if (p->last)
        step_done(m, p->rank, p->lane, now);
    try_lane(m, p->rank, p->lane, now);
}

static void credit_arrived(struct model *m, const struct model_part *p, int64_t now)
{
    m->rank[p->rank].lane[p->lane].credit = (uint32_t)p->acked;
    try_lane(m, p->rank, p->lane, now);
}

void run_arrived(struct model *m, const struct model_part *p, int64_t now)
{
    if (p->kind == PART_EDGE)
        agg_model_arrived(m, p, now);
    else if (p->kind == PART_EXCHANGE)
        exchange_arrived(m, p, now);
    else if (p->kind == PART_DATA)
        data_arrived(m, p, now);
    else if (p->kind == PART_CREDIT)
        credit_arrived(m, p, now);
    else if (!p->group)
        ack_arrived(m, p, now);
}

/* Sends the message at the head of a SEND lane; both ends are ready. */
static void send_message(struct model *m, unsigned rank, unsigned lane, int64_t now)
{
    struct model_rank *r = &m->rank[rank];
    struct model_lane *l = &r->lane[lane];
    const struct lane *s = &r->s.lane[lane];
    uint32_t i = l->begun++;
    struct model_rank *peer = &m->rank[s->peer];
    unsigned handoffs = handoffs_before(r, lane_step(s, i)) + 2 + l->path->crossings;
    unsigned recv_handoffs = handoffs_before(peer, lane_step(&peer->s.lane[l->peer_lane], i));

    handoffs = recv_handoffs > handoffs ? recv_handoffs : handoffs;
    m->handoffs = handoffs > m->handoffs ? handoffs : m->handoffs;
    peer->lane[l->peer_lane].handoffs[i] = l->handoffs[i] = (uint16_t)handoffs;
    l->sending = true;
    run_posted(m, rank, lane, model_post(m, l, l->path->link[0], now), now);
}

/* Handles a message that has arrived. If its receive is not posted yet, it waits in a receive slot.
 */
static void take_message(struct model *m, unsigned rank, unsigned lane, int64_t now)
{
    const struct model_lane *l = &m->rank[rank].lane[lane];

    if (l->done < l->come && l->done < l->begun)
        step_done(m, rank, lane, now);
}

/* Starts the lane's next step if possible; returns whether another one may follow. */
static bool begin_step(struct model *m, unsigned rank, unsigned lane, int64_t now)
{
    struct model_rank *r = &m->rank[rank];
    struct model_lane *l = &r->lane[lane];
    const struct lane *s = &r->s.lane[lane];

    if (l->sending && !l->link_busy) /* other lanes have had their turn since the last part */
        next_part(m, rank, lane, now);
    if (l->begun == s->n || l->waiting || l->sending || l->link_busy ||
        !step_ready(r, lane, lane_step(s, l->begun)))
        return false;
    switch (s->kind) {
    case LANE_CPU:
        l->handoffs[l->begun] = (uint16_t)handoffs_before(r, lane_step(s, l->begun));
        l->begun++;
        step_done(m, rank, lane, now);
        return true;
    case LANE_RECV:
        if (l->begun - l->done >= sched_slots(m->in.topo))
            return false;
        l->begun++;
        take_message(m, rank, lane, now);
        return true;
    case LANE_SEND:
        if (l->begun >= l->credit || l->begun - l->done / CONN_SIGNAL_EVERY * CONN_SIGNAL_EVERY >=
                                         CONN_IN_FLIGHT(sched_slots(m->in.topo)))
            return false; /* a credit or a completion tries again */
        send_message(m, rank, lane, now);
        return true;
    case LANE_AGG:
        if (!agg_model_has_window(m, rank, lane))
            return false; /* a result will make room */
        l->handoffs[l->begun] = (uint16_t)handoffs_before(r, lane_step(s, l->begun));
        agg_model_step(m, rank, lane, now);
        return true;
    default:
        if (l->peer_lane == MM_READS)
            return false;
        l->handoffs[l->begun] =
            (uint16_t)(handoffs_before(r, lane_step(s, l->begun)) + 2 + l->path->crossings);
        m->handoffs = l->handoffs[l->begun] > m->handoffs ? l->handoffs[l->begun] : m->handoffs;
        mm_model_step(m, rank, lane, now);
        return true;
    }
}

/* Number of posted receives. Those of the next operation are posted too, as far as slots allow. */
static uint32_t posted(const struct model *m, const struct model_lane *l, uint32_t n)
{
    uint32_t slots = l->done + sched_slots(m->in.topo), all = n + CONN_AHEAD;

    if (l->begun == n)
        return all < slots ? all : slots;
    return l->begun > CONN_AHEAD ? l->begun : CONN_AHEAD;
}

/* Tells the sender how many receives are posted, as a connection does (conn.c). */
static void publish(struct model *m, unsigned rank, unsigned lane, int64_t now)
{
    struct model_rank *r = &m->rank[rank];
    struct model_lane *l = &r->lane[lane];
    uint32_t n = r->s.lane[lane].n, fresh = posted(m, l, n) - l->published;
    unsigned peer = r->s.lane[lane].peer;

    if (!fresh || (fresh < CONN_CREDIT_EVERY && l->published - l->done >= CONN_CREDIT_EVERY))
        return;
    if (l->published >= n && l->twin != NOBODY && r->lane[l->twin].begun < r->s.lane[l->twin].n)
        return; /* credits for the next operation go behind the messages of this one */
    l->published += fresh;
    queue_send(m,
               &(struct model_part){.kind = PART_CREDIT,
                                    .rank = peer,
                                    .lane = l->peer_lane,
                                    .packets = 1,
                                    .acked = l->published,
                                    .msg = {CREDIT_WIRE, CREDIT_WIRE, CREDIT_WIRE},
                                    .tail = now,
                                    .path = m->rank[peer].lane[l->peer_lane].back},
               now);
}

static void try_lane(struct model *m, unsigned rank, unsigned lane, int64_t now)
{
    struct model_lane *l = &m->rank[rank].lane[lane];

    if (l->queued)
        return; /* a caller up the stack is trying it already */
    l->queued = true;
    while (begin_step(m, rank, lane, now))
        ;
    if (m->rank[rank].s.lane[lane].kind == LANE_RECV)
        publish(m, rank, lane, now);
    else if (m->rank[rank].s.lane[lane].kind == LANE_SEND && l->twin != NOBODY)
        publish(m, rank, l->twin, now);
    l->queued = false;
}

static void handle_event(struct model *m, const struct cost_event *e)
{
    struct model_rank *r = &m->rank[e->rank];
    struct model_lane *l = &r->lane[e->lane];
    const struct lane *s = &r->s.lane[e->lane];

    switch (e->kind) {
    case EV_HOP:
    case EV_LINK:
    case EV_PAUSE:
    case EV_RESUME:
        queue_event(m, e);
        return;
    case EV_TRY:
        l->link_busy = false;
        l->back_to_back = s->kind == LANE_MM;
        try_lane(m, e->rank, e->lane, e->at);
        l->back_to_back = false;
        return;
    case EV_REDUCED:
        agg_model_reduced(m, e);
        return;
    case EV_STORE:
    case EV_ASK:
    case EV_READ:
    case EV_DATA:
    case EV_FREE:
    case EV_MM_POST:
    case EV_MM_LINK:
        mm_model_event(m, e);
        return;
    default:
        if (s->kind == LANE_AGG)
            agg_model_end(m, e->rank, e->lane);
        if (s->kind == LANE_MM && lane_step(s, l->done)->op == STEP_MM_LOAD)
            l->peer_lane--;
        if (s->kind == LANE_RECV) {
            l->come++;
            take_message(m, e->rank, e->lane, e->at);
        } else {
            step_done(m, e->rank, e->lane, e->at);
        }
        break;
    }
    try_lane(m, e->rank, e->lane, e->at);
}

/* ---- the whole operation ---- */

/* Begins with the receives, so that each rank's first messages leave in its own order and not in
 * that of the ranks that receive them. */
static void begin_lanes(struct model *m)
{
    for (unsigned k = 0; k < m->in.nranks; k++)
        for (unsigned i = 0; i < m->rank[k].s.n_lanes; i++)
            m->rank[k].lane[i].queued = m->rank[k].s.lane[i].kind == LANE_SEND;
    for (unsigned k = 0; k < m->in.nranks; k++)
        for (unsigned i = 0; i < m->rank[k].s.n_lanes; i++)
            try_lane(m, k, i, 0);
    for (unsigned k = 0; k < m->in.nranks; k++)
        for (unsigned i = 0; i < m->rank[k].s.n_lanes; i++)
            if (m->rank[k].s.lane[i].kind == LANE_SEND) {
                m->rank[k].lane[i].queued = false;
                try_lane(m, k, i, 0);
            }
}

/* Checks that every step of every rank has ended; otherwise the algorithm has a defect. */
static int check_all_done(const struct model *m)
{
    for (unsigned k = 0; k < m->in.nranks; k++)
        for (unsigned i = 0; i < m->rank[k].s.n_lanes; i++)
            if (m->rank[k].lane[i].done < m->rank[k].s.lane[i].n)
                return -EDEADLK;
    return 0;
}

int model_run(struct model *m)
{
    struct cost_event e;
    int rc;

    m->end = 0;
    m->handoffs = 0;
    m->rc = 0;
    memset(m->free_ps, 0, m->n_dir * sizeof(*m->free_ps));
    memset(m->fetch_ps, 0, m->n_dir * sizeof(*m->fetch_ps));
    memset(m->engine_ps, 0, m->fab->n_nodes * sizeof(*m->engine_ps));
    memset(m->bytes, 0, m->n_dir * sizeof(*m->bytes));
    rc = setup_ranks(m);
    for (unsigned k = 0; !rc && k < m->in.nranks; k++)
        m->launch_ps = RTE_MAX(m->launch_ps, topo_launch_ps(&m->topo, &m->rank[k].s, k));
    if (!rc)
        begin_lanes(m);
    while (!rc && !m->rc && run_next(m, &e))
        handle_event(m, &e);
    rc = rc ? rc : m->rc;
    rc = rc ? rc : check_all_done(m);
    setup_free(m);
    return rc;
}
