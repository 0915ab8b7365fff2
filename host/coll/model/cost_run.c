/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs the schedules of all ranks in order of time. A lane begins its next step once what the step
 * depends on is done; a message also waits for its receive to be posted, for the lane's previous
 * message to leave (so that lanes which share a link take turns), and for every link of its path
 * (cost_net.c). Software takes no time except the fabric's costs.
 */
#include "host/coll/model/cost_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Lanes that are at different steps of recursive halving share a link frame by frame: whole
 * messages of an early step would delay those of a later one. Other algorithms send messages of
 * equal length, as a whole. */
#define PART_FRAMES 2u

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

/* ---- steps ---- */

static void try_lane(struct model *m, unsigned rank, unsigned lane, int64_t now);

/* The next step of the lane is done. */
static void step_done(struct model *m, unsigned rank, unsigned lane, int64_t now)
{
    struct model_rank *r = &m->rank[rank];
    struct model_lane *l = &r->lane[lane];
    uint32_t w = l->waiters;

    l->done++;
    m->end = now > m->end ? now : m->end;
    l->waiters = NOBODY;
    while (w != NOBODY) {
        uint32_t next = r->lane[w].next_waiter;

        r->lane[w].waiting = false;
        try_lane(m, rank, w, now);
        w = next;
    }
}

/* Hand-offs until a step begins: the most of its dependencies. */
static unsigned handoffs_before(const struct model_rank *r, const struct step *st)
{
    unsigned handoffs = 0;

    for (unsigned i = 0; i < st->n_deps; i++) {
        unsigned h = r->lane[st->dep[i].lane].handoffs[st->dep[i].count - 1];

        handoffs = h > handoffs ? h : handoffs;
    }
    return handoffs;
}

/* False: the lane waits for another one, which will try it again. */
static bool ready(struct model_rank *r, unsigned lane, const struct step *st)
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

static unsigned parts_of(const struct model *m, uint64_t len)
{
    uint64_t part = (uint64_t)PART_FRAMES * m->in.mtu;

    return m->in.algo == ALGO_HALVING && len > part ? (unsigned)((len - 1) / part + 1) : 1;
}

/* Part k of a SEND lane (of message k / parts) has reached its next link, or its destination. */
static void part_hop(struct model *m, unsigned rank, unsigned lane, uint32_t k)
{
    const struct lane *s = &m->rank[rank].s.lane[lane];
    struct model_lane *l = &m->rank[rank].lane[lane];
    uint32_t i = k / l->parts, n = k % l->parts;
    uint64_t len = lane_step(s, i)->len, part = (uint64_t)PART_FRAMES * m->in.mtu;
    bool last = l->parts == 1 || n + 1 == parts_of(m, len);
    struct flight *f = &l->flight[k];

    len = l->parts == 1 ? len : last ? len - n * part : part;
    *f = model_send_hop(m, l->path->link[l->hop[k]], *f, model_message(len, m->in.mtu, last));
    if (++l->hop[k] < l->path->n) {
        model_event(m, EV_HOP, f->head, rank, lane, k);
        return;
    }
    if (!last)
        return;
    model_event(m, EV_DONE, f->tail + m->fab->costs.gpu_ps, s->peer, l->peer_lane, i);
    model_event(m, EV_DONE, f->tail + l->ack_ps, rank, lane, i);
}

/* Sends the next part of the current message of a SEND lane. Lanes of one link take turns. */
static void send_part(struct model *m, unsigned rank, unsigned lane, int64_t now)
{
    struct model_lane *l = &m->rank[rank].lane[lane];
    uint32_t i = l->begun - 1, k = i * l->parts + l->part;

    l->flight[k] = (struct flight){now, now};
    if (l->parts == 1 || ++l->part == parts_of(m, lane_step(&m->rank[rank].s.lane[lane], i)->len))
        l->part = 0;
    part_hop(m, rank, lane, k);
    l->link_busy = true;
    model_event(m, EV_TRY, m->free_ps[l->path->link[0]], rank, lane, i);
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
    now = model_post(m, l, l->path->link[0], now);
    send_part(m, rank, lane, now);
}

/* Starts the lane's next step if possible; returns whether another one may follow. */
static bool begin_step(struct model *m, unsigned rank, unsigned lane, int64_t now)
{
    struct model_rank *r = &m->rank[rank];
    struct model_lane *l = &r->lane[lane], *far;
    const struct lane *s = &r->s.lane[lane];

    if (l->part && !l->link_busy)
        send_part(m, rank, lane, now); /* other lanes have had their turn since the last part */
    if (l->begun == s->n || l->waiting || l->link_busy || !ready(r, lane, lane_step(s, l->begun)))
        return false;
    switch (s->kind) {
    case LANE_CPU:
        l->handoffs[l->begun] = (uint16_t)handoffs_before(r, lane_step(s, l->begun));
        l->begun++;
        step_done(m, rank, lane, now);
        return true;
    case LANE_RECV:
        l->at[l->begun++] = now;
        try_lane(m, s->peer, l->peer_lane, now);
        return true;
    case LANE_SEND:
        far = &m->rank[s->peer].lane[l->peer_lane];
        if (far->begun <= l->begun)
            return false; /* the receiver tries again */
        if (far->at[l->begun] && far->at[l->begun] + l->ack_ps > now) {
            l->link_busy = true; /* the credit is still in flight */
            model_event(m, EV_TRY, far->at[l->begun] + l->ack_ps, rank, lane, 0);
            return false;
        }
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

static void try_lane(struct model *m, unsigned rank, unsigned lane, int64_t now)
{
    struct model_lane *l = &m->rank[rank].lane[lane];

    if (l->queued)
        return; /* a caller up the stack is trying it already */
    l->queued = true;
    while (begin_step(m, rank, lane, now))
        ;
    l->queued = false;
}

static void handle_event(struct model *m, const struct cost_event *e)
{
    struct model_rank *r = &m->rank[e->rank];
    struct model_lane *l = &r->lane[e->lane];
    const struct lane *s = &r->s.lane[e->lane];

    switch (e->kind) {
    case EV_TRY:
        l->link_busy = false;
        l->back_to_back = true;
        try_lane(m, e->rank, e->lane, e->at);
        l->back_to_back = false;
        return;
    case EV_READ:
        mm_model_read(m, e->rank, e->lane, e->step, e->at);
        return;
    case EV_HOP:
        if (s->kind == LANE_MM)
            mm_model_down(m, e->rank, e->lane, e->step);
        else
            part_hop(m, e->rank, e->lane, e->step);
        return;
    default:
        if (s->kind == LANE_AGG)
            agg_model_end(m, e->rank, e->lane);
        if (s->kind == LANE_MM && lane_step(s, l->done)->op == STEP_MM_LOAD)
            l->peer_lane--;
        if (s->kind == LANE_RECV) /* its ACK */
            model_send_small(m, m->rank[s->peer].lane[l->peer_lane].back, e->at, MODEL_ACK_WIRE);
        step_done(m, e->rank, e->lane, e->at);
        break;
    }
    try_lane(m, e->rank, e->lane, e->at);
}

/* ---- setting up ---- */

static int lane_path(struct model *m, unsigned rank, unsigned lane)
{
    struct model_rank *r = &m->rank[rank];
    struct model_lane *l = &r->lane[lane];
    unsigned peer = r->s.lane[lane].peer, chan = r->s.lane[lane].chan;
    uint16_t from = model_node(m, rank), to = model_node(m, peer);
    struct fab_channel ch[SCHED_MAX_CHANS];

    if (topo_channels(&m->topo, rank, peer, ch, SCHED_MAX_CHANS) <= chan)
        return -ENOTSUP;
    l->path = malloc(2 * sizeof(*l->path));
    if (!l->path)
        return -ENOMEM;
    l->back = l->path + 1;
    model_path(m, from, ch[chan].port_a, to, ch[chan].port_b, l->path);
    model_path(m, to, ch[chan].port_b, from, ch[chan].port_a, l->back);
    if (!l->path->n || !l->back->n)
        return -ENOTSUP;
    for (unsigned h = 0; h < l->back->n; h++) {
        uint32_t d = l->back->link[h];

        l->ack_ps += model_link_ps(m, d, MODEL_ACK_WIRE) +
                     (d < 2u * m->fab->n_links ? fabric_latency(m->fab, d) : 0);
    }
    return 0;
}

static unsigned lane_parts(const struct model *m, const struct lane *s)
{
    unsigned most = 1;

    for (uint32_t i = 0; i < s->n; i++) {
        unsigned n = parts_of(m, lane_step(s, i)->len);

        most = n > most ? n : most;
    }
    return most;
}

static int rank_init(struct model *m, unsigned rank)
{
    struct model_rank *r = &m->rank[rank];
    int rc;

    m->in.rank = rank;
    rc = sched_init(&r->s, &m->in);
    if (rc)
        return rc;
    r->lane = calloc(r->s.n_lanes + 1, sizeof(*r->lane));
    if (!r->lane)
        return -ENOMEM;
    for (unsigned i = 0; i < r->s.n_lanes && !rc; i++) {
        struct model_lane *l = &r->lane[i];

        l->waiters = NOBODY;
        l->handoffs = calloc(r->s.lane[i].n + 1, sizeof(*l->handoffs));
        if (r->s.lane[i].kind == LANE_RECV)
            l->at = calloc(r->s.lane[i].n + 1, sizeof(*l->at));
        if (r->s.lane[i].kind == LANE_SEND || r->s.lane[i].kind == LANE_MM) {
            l->parts = r->s.lane[i].kind == LANE_SEND ? lane_parts(m, &r->s.lane[i]) : 1;
            l->flight = calloc((size_t)r->s.lane[i].n * l->parts + 1, sizeof(*l->flight));
            l->hop = calloc((size_t)r->s.lane[i].n * l->parts + 1, sizeof(*l->hop));
            if (!l->flight || !l->hop)
                return -ENOMEM;
        }
        if (!l->handoffs || (r->s.lane[i].kind == LANE_RECV && !l->at))
            return -ENOMEM;
    }
    return 0;
}

/* Connects both ends of messages, and finds paths and groups. */
static int connect_lanes(struct model *m, unsigned rank)
{
    struct model_rank *r = &m->rank[rank];
    int rc = 0;

    for (unsigned i = 0; i < r->s.n_lanes && !rc; i++) {
        const struct lane *s = &r->s.lane[i];

        if (s->kind == LANE_SEND) {
            unsigned far;

            if (!sched_has_lane(&m->rank[s->peer].s, LANE_RECV, rank, s->chan, &far))
                return -EINVAL; /* no lane receives: the algorithm is wrong */
            r->lane[i].peer_lane = far;
            m->rank[s->peer].lane[far].peer_lane = i;
            rc = lane_path(m, rank, i);
        } else if (s->kind == LANE_AGG) {
            rc = agg_model_begin(m, rank, i);
        } else if (s->kind == LANE_MM) {
            rc = mm_model_begin(m, rank, i);
        }
    }
    return rc;
}

static void free_ranks(struct model *m)
{
    for (unsigned k = 0; k < m->in.nranks; k++) {
        struct model_rank *r = &m->rank[k];

        for (unsigned i = 0; r->lane && i < r->s.n_lanes; i++) {
            free(r->lane[i].handoffs);
            free(r->lane[i].at);
            free(r->lane[i].flight);
            free(r->lane[i].hop);
            free(r->lane[i].path);
        }
        free(r->lane);
        sched_free(&r->s);
    }
    agg_model_free(m);
    free(m->rank);
    free(m->heap);
    m->rank = NULL;
    m->heap = NULL;
    m->n_events = m->capacity = 0;
}

/* Receives first: each rank's first messages leave in its own order then, not in that of the ranks
 * that receive them. */
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

/* Every step of every rank must have ended: an algorithm that does not is a defect. */
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
    int rc = 0;

    m->end = 0;
    m->handoffs = 0;
    m->rc = 0;
    memset(m->free_ps, 0, m->n_dir * sizeof(*m->free_ps));
    memset(m->fetch_ps, 0, m->n_dir * sizeof(*m->fetch_ps));
    memset(m->bytes, 0, m->n_dir * sizeof(*m->bytes));
    m->rank = calloc(m->in.nranks, sizeof(*m->rank));
    if (!m->rank)
        return -ENOMEM;
    for (unsigned k = 0; k < m->in.nranks && !rc; k++)
        rc = rank_init(m, k);
    for (unsigned k = 0; k < m->in.nranks && !rc; k++)
        rc = connect_lanes(m, k);
    if (!rc)
        begin_lanes(m);
    while (!rc && !m->rc && m->n_events) {
        struct cost_event e = next_event(m);

        handle_event(m, &e);
    }
    rc = rc ? rc : m->rc;
    rc = rc ? rc : check_all_done(m);
    free_ranks(m);
    return rc;
}
