/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multimem. For a load the switch reads the members' memory and sends the sum. For a store the
 * switch writes the data to the members, and acknowledges once all of them have.
 *
 * As in the switch (switch/multimem/mm_load.c), a load is cut into slices. A slice occupies one of
 * the group's buffers until its sum has left; callers take turns. A queue pair has a limited number
 * of outstanding READs, so further READs of a member wait. A sum leaves once all of its data has
 * arrived.
 *
 * Requests (READs and WRITEs) of a queue pair are sent in their order, and so are responses to
 * READs; frames of both take turns (roce/rnic.c).
 */
#include "model/cost_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST_WIRE                                                                               \
    98u /* Ethernet 14, IP 20, UDP 8, BTH 12, RETH 16, ICRC 4, and 24 of the link */

/* Buffers in their order. */
struct mm_ring {
    uint32_t head, tail;
    uint8_t at[MM_LOADS];
};

/* A READ, a WRITE, or a response to a READ, which waits to be sent. */
struct mm_msg {
    enum mm_kind { ASK, STORE, READ, WRITE, DATA, SUM } kind;
    uint32_t frames; /* frames still to send */
    uint64_t frame, tail;
    uint32_t rank, lane; /* WRITE: rank and lane that store */
    uint32_t step;       /* ASK, STORE, WRITE: step of the lane; else the buffer */
    bool last;           /* STORE: last slice of its step */
};

/* Frames of requests and of responses take turns. */
struct mm_end {
    struct mm_queue {
        struct mm_msg *at; /* [room], in use: [head, tail) */
        uint32_t head, tail, room;
    } queue[2];
    unsigned turn;
    bool timer; /* an EV_MM_LINK is queued */
};

/* A member's lane at its switch. */
struct model_mm {
    struct model_plane *plane;
    uint32_t asked;         /* loads that have reached the switch and are not issued completely */
    uint32_t next;          /* the first of them is this step, or a later one */
    uint32_t off;           /* bytes of it that are issued */
    struct mm_ring answers; /* buffers with answers to its loads, in order */
    uint32_t reading;       /* outstanding READs of its memory */
    struct mm_end end[2];   /* the member's end, the switch's end */
};

/* A group at a switch. */
struct model_plane {
    struct model_plane *next;
    uint16_t node, domain;
    uint32_t slice, free, turn, n;
    struct {
        uint32_t rank, lane, step, len;
        uint32_t waits; /* members whose data has not arrived */
        bool used, last;
    } load[MM_LOADS];
    struct {
        uint32_t rank, lane;
    } member[];
};

static void mm_ring_put(struct mm_ring *r, unsigned b)
{
    r->at[r->tail++ % MM_LOADS] = (uint8_t)b;
}

static struct model_lane *member_lane(const struct model *m, const struct model_plane *p,
                                      unsigned k)
{
    return &m->rank[p->member[k].rank].lane[p->member[k].lane];
}

static bool takes_part(const struct model_plane *p, const struct step *st, unsigned k,
                       unsigned caller)
{
    return st->self || p->member[k].rank != caller;
}

/* Frames that one end sends. */
enum { UP, DOWN };
enum { REQUESTS, RESPONSES };

/* ---- groups ---- */

/* Adds the lane to its group at the switch. */
static int join_plane(struct model *m, unsigned rank, unsigned lane, const struct fab_port *port)
{
    struct model_lane *l = &m->rank[rank].lane[lane];
    uint16_t domain = m->topo.sched.domain[rank];
    struct model_plane *p = m->planes;

    while (p && (p->node != port->peer_node || p->domain != domain))
        p = p->next;
    if (!p) {
        unsigned n = 0;

        for (unsigned r = 0; r < m->in.nranks; r++)
            n += m->topo.sched.domain[r] == domain;
        p = calloc(1, sizeof(*p) + n * sizeof(p->member[0]));
        if (!p)
            return -ENOMEM;
        p->next = m->planes;
        m->planes = p;
        p->node = port->peer_node, p->domain = domain, p->free = MM_LOADS / mm_fewer(n);
        p->slice = mm_slice(n, port->rate_bps, mm_link_ps(m->fab, port));
    }
    l->mm->plane = p;
    p->member[p->n].rank = rank;
    p->member[p->n++].lane = lane;
    return 0;
}

void mm_model_free(struct model *m)
{
    for (struct model_plane *p = m->planes; p; p = p->next)
        for (unsigned k = 0; k < p->n; k++)
            for (unsigned i = 0; i < 4; i++)
                free(member_lane(m, p, k)->mm->end[i / 2].queue[i % 2].at);
    while (m->planes) {
        struct model_plane *next = m->planes->next;

        free(m->planes);
        m->planes = next;
    }
}

/* path[0]: from the own port to the switch, path[1]: back. */
int mm_model_begin(struct model *m, unsigned rank, unsigned lane)
{
    struct model_lane *l = &m->rank[rank].lane[lane];
    const uint16_t *domain = m->topo.sched.domain;
    unsigned chan = m->rank[rank].s.lane[lane].chan, mate = 0;
    uint16_t host = model_node(m, rank), port, plane;
    struct fab_channel ch[SCHED_MAX_CHANS];

    l->path = calloc(2, sizeof(*l->path));
    l->mm = calloc(1, sizeof(*l->mm));
    if (!l->path || !l->mm)
        return -ENOMEM;
    while (mate == rank || domain[mate] != domain[rank])
        mate++;
    if (topo_channels(&m->topo, rank, mate, ch, SCHED_MAX_CHANS) <= chan)
        return -ENOTSUP;
    port = ch[chan].port_a;
    plane = m->fab->nodes[host].ports[port].peer_node;
    model_path(m, host, port, plane, 0, &l->path[0]);
    model_path(m, plane, 0, host, port, &l->path[1]);
    return join_plane(m, rank, lane, &m->fab->nodes[host].ports[port]);
}

/* ---- links ---- */

static void sent_all(struct model *m, unsigned rank, unsigned lane, const struct mm_msg *x,
                     int64_t now, int64_t there);

/* Whether the queue can send a frame. With the maximum of outstanding READs, a READ waits, and so
 * do all messages behind it. */
static bool has_frame(const struct model_mm *mm, const struct mm_queue *q)
{
    return q->head != q->tail && (q->at[q->head].kind != READ || mm->reading < MM_READS);
}

static uint32_t stretch_of(const struct model *m, enum mm_kind kind)
{
    return kind == DATA || kind == SUM      ? m->fab->costs.mm_load
           : kind == STORE || kind == WRITE ? m->fab->costs.mm_store
                                            : 0;
}

static void serve(struct model *m, unsigned rank, unsigned lane, unsigned to, int64_t now)
{
    struct model_lane *l = &m->rank[rank].lane[lane];
    struct mm_end *e = &l->mm->end[to];
    uint32_t d = l->path[to].link[0];
    struct mm_queue *q = &e->queue[e->turn];
    struct mm_msg *x, sent;
    int64_t ps;

    if (e->timer)
        return;
    if (!has_frame(l->mm, q)) {
        q = &e->queue[!e->turn];
        if (!has_frame(l->mm, q))
            return;
    }
    if (m->free_ps[d] > now) {
        e->timer = true;
        model_event(m, EV_MM_LINK, m->free_ps[d], rank, lane, to);
        return;
    }
    x = &q->at[q->head];
    e->turn = q == &e->queue[REQUESTS] ? RESPONSES : REQUESTS;
    m->bytes[d] += x->frames > 1 ? x->frame : x->tail;
    ps = fab_stretch(model_link_ps(m, d, x->frames > 1 ? x->frame : x->tail),
                     stretch_of(m, x->kind));
    m->free_ps[d] = now + ps;
    e->timer = true;
    model_event(m, EV_MM_LINK, m->free_ps[d], rank, lane, to);
    l->mm->reading += x->kind == READ;
    if (--x->frames)
        return;
    sent = *x;
    q->head++;
    if (q->head == q->tail)
        q->head = q->tail = 0;
    sent_all(m, rank, lane, &sent, now, now + ps + model_latency(m, d));
}

/* Sends a message of len bytes; 0: a request. */
static void post(struct model *m, unsigned rank, unsigned lane, unsigned to, struct mm_msg x,
                 uint64_t len, int64_t now)
{
    unsigned flow = x.kind == DATA || x.kind == SUM ? RESPONSES : REQUESTS;
    struct mm_queue *q = &m->rank[rank].lane[lane].mm->end[to].queue[flow];
    struct model_msg msg = {REQUEST_WIRE, REQUEST_WIRE, REQUEST_WIRE};

    if (q->tail == q->room && q->head > q->room / 2) {
        memmove(q->at, q->at + q->head, (q->tail - q->head) * sizeof(*q->at));
        q->tail -= q->head;
        q->head = 0;
    }
    if (q->tail == q->room) {
        uint32_t room = q->room ? 2 * q->room : 16;
        void *more = realloc(q->at, room * sizeof(*q->at));

        if (!more) {
            m->rc = -ENOMEM;
            return;
        }
        q->at = more;
        q->room = room;
    }
    if (len)
        msg = model_message(len, m->in.mtu, flow == RESPONSES);
    x.frames = len ? (uint32_t)((len - 1) / m->in.mtu + 1) : 1;
    x.frame = msg.frame, x.tail = msg.tail;
    q->at[q->tail++] = x;
    serve(m, rank, lane, to, now);
}

/* ---- loads ---- */

static void answer(struct model *m, unsigned rank, unsigned lane, int64_t now);

/* Issues the member's next slice, which takes a buffer. With few elements the others may have none
 * on this plane; then nothing is waited for. */
static void issue(struct model *m, struct model_plane *p, unsigned caller, int64_t now)
{
    unsigned rank = p->member[caller].rank, lane = p->member[caller].lane, b = 0;
    struct model_mm *mm = m->rank[rank].lane[lane].mm;
    const struct step *st;
    bool alone = true;

    while ((st = lane_step(&m->rank[rank].s.lane[lane], mm->next))->op != STEP_MM_LOAD)
        mm->next++;
    while (p->load[b].used)
        b++;
    p->free--;
    p->load[b].used = true;
    p->load[b].rank = rank, p->load[b].lane = lane, p->load[b].step = mm->next;
    p->load[b].last = st->len - mm->off <= p->slice;
    p->load[b].len = p->load[b].last ? (uint32_t)(st->len - mm->off) : p->slice;
    p->load[b].waits = 0;
    mm_ring_put(&mm->answers, b);
    mm->off += p->load[b].len;
    if (p->load[b].last)
        mm->next++, mm->asked--, mm->off = 0;
    for (unsigned k = 0; k < p->n; k++)
        if (takes_part(p, st, k, rank)) {
            alone = false;
            p->load[b].waits++;
            post(m, p->member[k].rank, p->member[k].lane, DOWN,
                 (struct mm_msg){.kind = READ, .step = b}, 0, now);
        }
    if (alone)
        answer(m, rank, lane, now);
}

/* Issues slices while there are buffers; callers take turns. */
static void issue_all(struct model *m, struct model_plane *p, int64_t now)
{
    uint32_t idle = 0;

    while (idle < p->n && p->free) {
        uint32_t at = p->turn;

        p->turn = (at + 1) % p->n;
        idle++;
        if (!member_lane(m, p, at)->mm->asked)
            continue;
        issue(m, p, at, now);
        idle = 0;
    }
}

/* Ends a step of a lane. Steps end in order. */
static void step_done_at(struct model *m, unsigned rank, unsigned lane, uint32_t step, int64_t at)
{
    struct model_lane *l = &m->rank[rank].lane[lane];

    l->ack_ps = at > l->ack_ps ? at : l->ack_ps;
    model_event(m, EV_DONE, l->ack_ps, rank, lane, step);
}

/* Sends the sums that are ready to the caller, in the order of its requests. */
static void answer(struct model *m, unsigned rank, unsigned lane, int64_t now)
{
    struct model_lane *l = &m->rank[rank].lane[lane];
    struct model_plane *p = l->mm->plane;
    struct mm_ring *r = &l->mm->answers;

    for (; r->head != r->tail; r->head++) {
        unsigned b = r->at[r->head % MM_LOADS];

        if (p->load[b].waits)
            return;
        post(m, rank, lane, DOWN, (struct mm_msg){.kind = SUM, .step = b}, p->load[b].len, now);
    }
}

/* The data of the lane's rank for buffer b has arrived at the switch. */
static void data_arrived(struct model *m, unsigned rank, unsigned lane, unsigned b, int64_t now)
{
    struct model_mm *mm = m->rank[rank].lane[lane].mm;
    struct model_plane *p = mm->plane;

    mm->reading--;
    serve(m, rank, lane, DOWN, now);
    if (!--p->load[b].waits)
        answer(m, p->load[b].rank, p->load[b].lane, now);
}

/* ---- stores ---- */

/* A store is sent in slices, and the lane goes on when the last one has left. */
void mm_model_step(struct model *m, unsigned rank, unsigned lane, int64_t now)
{
    struct model_lane *l = &m->rank[rank].lane[lane];
    uint32_t i = l->begun++;
    const struct step *st = lane_step(&m->rank[rank].s.lane[lane], i);

    now = model_post(m, l, l->path[0].link[0], now);
    l->peer_lane += st->op == STEP_MM_LOAD;
    l->link_busy = st->op == STEP_MM_STORE;
    model_event(m, EV_MM_POST, now, rank, lane, i);
}

static void post_step(struct model *m, unsigned rank, unsigned lane, uint32_t i, int64_t now)
{
    const struct step *st = lane_step(&m->rank[rank].s.lane[lane], i);
    struct mm_msg x = {.kind = ASK, .rank = rank, .lane = lane, .step = i};

    if (st->op == STEP_MM_LOAD) {
        post(m, rank, lane, UP, x, 0, now);
        return;
    }
    x.kind = STORE;
    for (uint64_t off = 0; !x.last; off += MM_SLICE) {
        x.last = st->len - off <= MM_SLICE;
        post(m, rank, lane, UP, x, x.last ? st->len - off : MM_SLICE, now);
    }
}

/* A slice of a store goes down to all members. */
static void store_down(struct model *m, unsigned rank, unsigned lane, uint32_t i, int64_t now)
{
    struct model_lane *l = &m->rank[rank].lane[lane];
    const struct model_plane *p = l->mm->plane;
    const struct step *st = lane_step(&m->rank[rank].s.lane[lane], i);
    uint64_t off = l->store[i].sent, len = st->len - off;
    struct mm_msg x = {.kind = WRITE, .rank = rank, .lane = lane, .step = i};
    bool alone;

    len = len < MM_SLICE ? len : MM_SLICE;
    l->store[i].sent += len;
    for (unsigned k = 0; k < p->n; k++)
        if (takes_part(p, st, k, rank))
            l->store[i].waits++;
    alone = !l->store[i].waits; /* read now: post() may return after a member has acknowledged */
    for (unsigned k = 0; k < p->n; k++)
        if (takes_part(p, st, k, rank))
            post(m, p->member[k].rank, p->member[k].lane, DOWN, x, len, now);
    if (alone && l->store[i].sent == st->len)
        step_done_at(m, rank, lane, i, model_send_small(m, &l->path[DOWN], now, MODEL_ACK_WIRE));
}

/* A slice of store x has arrived at a member at time `there`; the member acknowledges it. */
static void written(struct model *m, const struct model_lane *member, const struct mm_msg *x,
                    int64_t there)
{
    struct model_lane *l = &m->rank[x->rank].lane[x->lane];
    const struct step *st = lane_step(&m->rank[x->rank].s.lane[x->lane], x->step);
    struct model_store *f = &l->store[x->step];
    int64_t t = model_send_small(m, &member->path[UP], there, MODEL_ACK_WIRE);

    f->acked_ps = t > f->acked_ps ? t : f->acked_ps;
    if (!--f->waits && f->sent == st->len)
        step_done_at(m, x->rank, x->lane, x->step,
                     model_send_small(m, &l->path[DOWN], f->acked_ps, MODEL_ACK_WIRE));
}

/* The last frame of x leaves the end now. */
static void sent_all(struct model *m, unsigned rank, unsigned lane, const struct mm_msg *x,
                     int64_t now, int64_t there)
{
    struct model_lane *l = &m->rank[rank].lane[lane];
    struct model_plane *p = l->mm->plane;

    switch (x->kind) {
    case ASK:
        model_event(m, EV_ASK, there, rank, lane, x->step);
        return;
    case STORE:
        model_event(m, EV_STORE, there, rank, lane, x->step);
        if (x->last)
            model_event(m, EV_TRY, there - model_latency(m, l->path[UP].link[0]), rank, lane,
                        x->step);
        return;
    case READ:
        model_event(m, EV_READ, there, rank, lane, x->step);
        return;
    case DATA:
        model_event(m, EV_DATA, there, rank, lane, x->step);
        return;
    case SUM:
        model_event(m, EV_FREE, now, rank, lane, x->step);
        if (p->load[x->step].last)
            step_done_at(m, rank, lane, p->load[x->step].step, there);
        return;
    default:
        written(m, l, x, there);
    }
}

void mm_model_event(struct model *m, const struct cost_event *e)
{
    struct model_lane *l = &m->rank[e->rank].lane[e->lane];
    struct model_plane *p = l->mm->plane;

    switch (e->kind) {
    case EV_MM_POST:
        post_step(m, e->rank, e->lane, e->step, e->at);
        return;
    case EV_MM_LINK:
        l->mm->end[e->step].timer = false;
        serve(m, e->rank, e->lane, e->step, e->at);
        return;
    case EV_STORE:
        store_down(m, e->rank, e->lane, e->step, e->at);
        return;
    case EV_ASK:
        l->mm->asked++;
        issue_all(m, p, e->at);
        return;
    case EV_READ:
        post(m, e->rank, e->lane, UP, (struct mm_msg){.kind = DATA, .step = e->step},
             p->load[e->step].len, e->at);
        return;
    case EV_DATA:
        data_arrived(m, e->rank, e->lane, e->step, e->at);
        return;
    default:
        p->load[e->step].used = false;
        p->free++;
        issue_all(m, p, e->at);
    }
}
