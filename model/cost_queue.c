/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parts of messages on links. A link serves its queue in order of arrival. A part is at the next
 * node once its first frame is. A host sends ACKs before data; in switches ACKs wait in the data's
 * queue. With PFC a switch pauses a link by which too much has come in.
 */
#include "base/frame_size.h"
#include "fabric/pfc_limits.h"
#include "model/cost_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ACK_EVERY  8u
#define PAUSE_WIRE (FRAME_MIN_BYTES + FRAME_LINK_OVERHEAD)

uint32_t acks_of(uint32_t first, uint32_t packets, bool last)
{
    uint32_t end = first + packets;

    return end / ACK_EVERY - first / ACK_EVERY + (last && end % ACK_EVERY);
}

/* ---- parts ---- */

/* Index of a copy of p; NOBODY: no memory. */
static uint32_t part_new(struct model *m, const struct model_part *p)
{
    uint32_t k = m->free_part;

    if (k != NOBODY) {
        m->free_part = m->part[k].next;
    } else {
        if (m->n_parts == m->parts_room) {
            uint32_t room = m->parts_room ? 2 * m->parts_room : 1024;
            void *more = realloc(m->part, room * sizeof(*m->part));

            if (!more) {
                m->rc = -ENOMEM;
                return NOBODY;
            }
            m->part = more;
            m->parts_room = room;
        }
        k = m->n_parts++;
    }
    m->part[k] = *p;
    m->part[k].next = NOBODY;
    m->part[k].hop = 0;
    return k;
}

/* ---- PFC ---- */

static void pause_init(struct model *m, uint32_t d)
{
    const struct fab_link *l = &m->fab->links[d / 2];
    uint16_t end = d & 1 ? l->a : l->b;
    const struct fab_node *nd = &m->fab->nodes[end];
    unsigned connected = 0;
    struct pfc_limits limits;

    if (!l->pfc || nd->kind == FAB_HOST)
        return;
    for (unsigned i = 0; i < nd->n_ports; i++)
        connected += nd->ports[i].link != FAB_NONE || nd->ports[i].external[0];
    limits = pfc_limits(&(struct pfc_cfg){
        .rate_bps = l->rate_bps,
        .latency_ps = l->latency_ps,
        .max_frame = frame_longest(m->fab->mtu),
        .share_bytes = l->buffer_bytes / connected,
        .share_pkts = l->buffer_pkts / connected,
    });
    m->queue[d].xoff = limits.xoff_bytes, m->queue[d].xon = limits.xon_bytes;
    m->queue[d].xoff_pkts = limits.xoff_pkts, m->queue[d].xon_pkts = limits.xon_pkts;
}

/* Sends a pause, which waits for the frame that is being sent in its direction. */
static void send_pause(struct model *m, uint32_t d, bool on, int64_t now)
{
    uint32_t back = d ^ 1;
    int64_t frame = model_link_ps(m, back, m->fab->mtu), wait = m->free_ps[back] - now;

    wait = wait < 0 ? 0 : wait < frame ? wait : frame;
    model_event(m, on ? EV_PAUSE : EV_RESUME,
                now + wait + model_link_ps(m, back, PAUSE_WIRE) + model_latency(m, back), 0, 0, d);
}

/* Whether PFC counts the part. Parts of many frames are not counted, as a switch never stores all
 * of one. */
static bool is_held(const struct model_queue *q, const struct model_part *p)
{
    return q->xoff >= 8 * p->msg.wire || (q->xoff && p->packets == 1);
}

static void hold(struct model *m, uint32_t d, const struct model_part *p, int64_t now)
{
    struct model_queue *q = &m->queue[d];

    if (!is_held(q, p))
        return;
    q->held += p->msg.wire;
    q->held_pkts += p->packets;
    if (q->over || (q->held <= q->xoff && q->held_pkts <= q->xoff_pkts))
        return;
    q->over = true;
    send_pause(m, d, true, now);
}

static void release(struct model *m, uint32_t d, const struct model_part *p, int64_t now)
{
    struct model_queue *q = &m->queue[d];

    if (!is_held(q, p))
        return;
    q->held -= p->msg.wire;
    q->held_pkts -= p->packets;
    if (!q->over || q->held > q->xon || q->held_pkts > q->xon_pkts)
        return;
    q->over = false;
    send_pause(m, d, false, now);
}

/* ---- queues ---- */

int queue_init(struct model *m)
{
    if (!m->queue)
        m->queue = calloc(m->n_dir + 1, sizeof(*m->queue));
    if (!m->queue)
        return -ENOMEM;
    memset(m->queue, 0, m->n_dir * sizeof(*m->queue));
    for (uint32_t d = 0; d < m->n_dir; d++) {
        m->queue[d].data.head = m->queue[d].acks.head = NOBODY;
        if (d < 2u * m->fab->n_links)
            pause_init(m, d);
    }
    m->n_parts = 0;
    m->free_part = NOBODY;
    return 0;
}

void queue_free(struct model *m)
{
    free(m->queue);
    free(m->part);
}

static uint32_t packet_take(struct model *m, uint32_t d, int64_t now)
{
    struct model_queue *q = &m->queue[d];
    uint32_t k = NOBODY;

    if (q->paused)
        return NOBODY;
    if (q->acks.head != NOBODY) {
        k = q->acks.head;
        q->acks.head = m->part[k].next;
    } else if (m->nic_of[d] != NOBODY) {
        q->timer = true; /* the lanes may have further parts, which wait for this one */
        k = nic_take(m, d, now);
        q->timer = false;
    } else if (q->data.head != NOBODY) {
        k = q->data.head;
        q->data.head = m->part[k].next;
    }
    return k;
}

static bool is_empty(const struct model *m, uint32_t d)
{
    const struct model_queue *q = &m->queue[d];

    if (q->acks.head != NOBODY)
        return false;
    return m->nic_of[d] != NOBODY ? nic_is_empty(m, d) : q->data.head == NOBODY;
}

/*
 * When a part that starts on link d at `now` may start on the next link of its path: a frame's time
 * later, or a header's if the node between cuts through. On a faster link it starts so late that
 * its last bit has arrived when it leaves.
 */
static int64_t next_start(const struct model *m, const struct model_part *p, uint32_t d,
                          int64_t now)
{
    int64_t t = now + model_latency(m, d), wait;

    if (!model_cuts(m, d))
        return t + model_link_ps(m, d, p->msg.frame);
    wait = model_behind_header(m, d, p->msg.frame) -
           model_link_ps(m, p->path->link[p->hop + 1], p->msg.frame);
    return t + model_link_ps(m, d, FAB_CUT_BYTES) + (wait > 0 ? wait : 0);
}

/* Earliest time at which its last bit has left link d, as it arrives at this node at p->tail. */
static int64_t last_bit(const struct model *m, const struct model_part *p, uint32_t d)
{
    int64_t last = model_link_ps(m, d, p->msg.tail);

    if (p->hop && model_cuts(m, p->path->link[p->hop - 1]))
        last -= model_behind_header(m, p->path->link[p->hop - 1], p->msg.tail);
    return p->tail + (last > 0 ? last : 0);
}

/* Sends the part that is next on the link, if it is free. */
static void link_run(struct model *m, uint32_t d, int64_t now)
{
    struct model_queue *q = &m->queue[d];
    struct model_part *p, x;
    int64_t end, late, head;
    uint32_t k;

    if (q->timer || is_empty(m, d))
        return;
    if (m->free_ps[d] > now) {
        q->timer = true;
        model_event(m, EV_LINK, m->free_ps[d], 0, 0, d);
        return;
    }
    k = packet_take(m, d, now);
    if (k == NOBODY)
        return;
    p = &m->part[k];
    end = now + model_link_ps(m, d, p->msg.wire);
    late = last_bit(m, p, d);
    end = end > late ? end : late;
    m->free_ps[d] = end;
    m->bytes[d] += p->msg.wire;
    p->tail = end + model_latency(m, d);
    if (p->hop + 1u < p->path->n)
        head = next_start(m, p, d, now);
    else if (p->kind == PART_EDGE) /* an aggregation node processes frame by frame */
        head = now + model_link_ps(m, d, p->msg.frame) + model_latency(m, d);
    else
        head = p->kind == PART_EXCHANGE ? exchange_noticed(m, p, p->tail) : p->tail;
    p->hop++;
    x = *p;
    if (x.hop > 1)
        release(m, x.path->link[x.hop - 2], &x, now);
    link_run(m, d, now);
    model_event(m, EV_HOP, head, 0, 0, k);
}

static void enqueue(struct model *m, uint32_t k, int64_t now)
{
    struct model_part *p = &m->part[k];
    uint32_t d = p->path->link[p->hop];
    struct model_queue *q = &m->queue[d];
    bool first = p->kind == PART_ACK && !p->hop;
    uint32_t *head = first ? &q->acks.head : &q->data.head;
    uint32_t *tail = first ? &q->acks.tail : &q->data.tail;

    if (p->hop)
        hold(m, p->path->link[p->hop - 1], p, now);
    p->next = NOBODY;
    if (!first && m->nic_of[d] != NOBODY)
        nic_enqueue(m, k);
    else if (*head == NOBODY)
        *head = k;
    else
        m->part[*tail].next = k;
    *tail = k;
    if (p->hop || q->timer || m->free_ps[d] > now) {
        link_run(m, d, now);
        return;
    }
    /* Parts that a host's lanes have ready at the same time come before the next part of any lane.
     */
    q->timer = true;
    model_event(m, EV_LINK, now, 0, 0, d);
}

void queue_kick(struct model *m, uint32_t d, int64_t now)
{
    struct model_queue *q = &m->queue[d];

    if (!q->timer && m->free_ps[d] > now) {
        link_run(m, d, now);
    } else if (!q->timer) {
        q->timer = true;
        model_event(m, EV_LINK, now, 0, 0, d);
    }
}

void queue_send(struct model *m, const struct model_part *p, int64_t now)
{
    uint32_t k = part_new(m, p);

    if (k != NOBODY)
        enqueue(m, k, now);
}

void queue_send_acks(struct model *m, const struct model_part *p, int64_t now)
{
    uint32_t n = acks_of(p->first, p->packets, p->last);
    struct model_part ack = *p;

    if (n && p->tail > now) { /* acknowledge all frames of the part at once */
        model_send_small(m, p->back, p->tail, n * MODEL_ACK_WIRE);
        return;
    }
    if (!n)
        return;
    ack.kind = PART_ACK;
    ack.path = p->back;
    ack.tail = now;
    ack.packets = n;
    ack.msg = (struct model_msg){n * MODEL_ACK_WIRE, MODEL_ACK_WIRE, MODEL_ACK_WIRE};
    queue_send(m, &ack, now);
}

/* Whether a part that leaves a loop waits: a loop has no latency, so it takes its next part before
 * this one has arrived. */
static bool waits_for_loop(const struct model *m, const struct model_part *p, int64_t now)
{
    uint32_t d = p->path->link[p->hop - 1];

    return d >= 2u * m->fab->n_links && m->queue[d].timer && m->free_ps[d] <= now;
}

void queue_event(struct model *m, const struct cost_event *e)
{
    struct model_part x;

    switch (e->kind) {
    case EV_LINK:
        m->queue[e->step].timer = false;
        link_run(m, e->step, e->at);
        return;
    case EV_PAUSE:
    case EV_RESUME:
        m->queue[e->step].paused = e->kind == EV_PAUSE;
        link_run(m, e->step, e->at);
        return;
    default:
        break;
    }
    if (waits_for_loop(m, &m->part[e->step], e->at)) {
        model_event(m, EV_HOP, e->at, 0, 0, e->step);
        return;
    }
    if (m->part[e->step].hop < m->part[e->step].path->n) {
        enqueue(m, e->step, e->at);
        return;
    }
    x = m->part[e->step];
    m->part[e->step].next = m->free_part;
    m->free_part = e->step;
    run_arrived(m, &x, e->at);
}
