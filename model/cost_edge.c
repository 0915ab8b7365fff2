/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages on the edges of an aggregation group, part by part. A node sends a part up once all
 * children have sent theirs, and sends a result down once it has it. Each edge is one connection,
 * so its parts are in order.
 */
#include "model/cost_agg.h"

static struct flight latest(struct flight a, struct flight b)
{
    return (struct flight){.head = a.head > b.head ? a.head : b.head,
                           .tail = a.tail > b.tail ? a.tail : b.tail};
}

/* ---- edges ---- */

/* Sends a part of a message on an edge. */
static void send_on_edge(struct model *m, const struct model_part *to, struct flight f,
                         uint32_t len, int64_t now)
{
    const struct model_group *g = to->group;
    uint64_t most = (uint64_t)g->part_frames * m->in.mtu, bytes = AGG_HDR_BYTES + len;
    struct model_part p = *to;

    p.kind = PART_EDGE;
    p.last = to->part + 1 == g->parts_of[to->step];
    p.first = to->part * g->part_frames;
    if (len) {
        bytes -= to->part * most;
        bytes = bytes < most ? bytes : most;
    }
    p.packets = (uint32_t)((bytes - 1) / m->in.mtu + 1);
    p.msg = model_message(bytes, m->in.mtu, false);
    p.tail = f.tail;
    queue_send(m, &p, now);
}

static void cursor_step(const struct model_group *g, struct model_cursor *c)
{
    if (++c->part == g->parts_of[c->msg]) {
        c->part = 0;
        c->msg++;
    }
}

/* Whether node `a` has the result of the part at the cursor. */
static bool has_result(const struct model_group *g, const struct model_cursor *c, unsigned a)
{
    return c->msg < g->n_msgs && agg_slots_of(g, c->msg, c->part)[a].down;
}

/* Whether the part at the cursor is the message's last: a message without elements has no data, and
 * goes down with the last part. */
static bool is_last(const struct model_group *g, const struct model_cursor *c)
{
    return c->part + 1 == g->parts_of[c->msg];
}

/* Sends the results that node `a` has to its child node c. */
static void down_to_node(struct model *m, struct model_group *g, unsigned a, uint32_t c,
                         int64_t now)
{
    struct model_an *an = &g->an[c];
    struct model_cursor *at = &an->next_down;

    for (; has_result(g, at, a); cursor_step(g, at)) {
        const struct model_slot *slot = agg_slots_of(g, at->msg, at->part);

        if (is_last(g, at) || slot[c].down_len)
            send_on_edge(m,
                         &(struct model_part){.group = g,
                                              .path = &an->down,
                                              .back = &an->up,
                                              .rank = NOBODY,
                                              .step = at->msg,
                                              .part = at->part,
                                              .end = c,
                                              .edge = EDGE_DOWN_NODE},
                         slot[a].f, slot[c].down_len, now);
    }
}

static void down_to_member(struct model *m, struct model_group *g, unsigned a, uint32_t k,
                           int64_t now)
{
    struct model_member *x = &g->member[k];
    const struct lane *lane = &m->rank[x->rank].s.lane[x->lane];
    struct model_cursor *at = &x->next_down;

    for (; has_result(g, at, a); cursor_step(g, at)) {
        const struct step *st = lane_step(lane, at->msg);
        uint32_t len = st->dst.buf == BUF_NONE ? 0 : (uint32_t)st->len;

        if (is_last(g, at) || len)
            send_on_edge(m,
                         &(struct model_part){.group = g,
                                              .path = &x->down,
                                              .back = &x->up,
                                              .rank = NOBODY,
                                              .step = at->msg,
                                              .part = at->part,
                                              .end = k,
                                              .edge = EDGE_DOWN_MEMBER},
                         agg_slots_of(g, at->msg, at->part)[a].f, len, now);
    }
}

/* Sends a new result of node `a` to its children. */
static void send_down(struct model *m, struct model_group *g, unsigned a, int64_t now)
{
    for (uint32_t c = g->an[a].first_an; c != NOBODY; c = g->an[c].sibling)
        down_to_node(m, g, a, c, now);
    for (uint32_t k = g->an[a].first_member; k != NOBODY; k = g->member[k].sibling)
        down_to_member(m, g, a, k, now);
}

/* Sets the hand-offs of a message, once all of it has arrived at the top. */
static void count_handoffs(struct model *m, struct model_group *g, uint32_t i)
{
    unsigned handoffs = 0;

    for (unsigned k = 0; k < g->n; k++) {
        unsigned h = m->rank[g->member[k].rank].lane[g->member[k].lane].handoffs[i];

        handoffs = h > handoffs ? h : handoffs;
    }
    handoffs += g->top_handoffs;
    m->handoffs = handoffs > m->handoffs ? handoffs : m->handoffs;
    for (unsigned k = 0; k < g->n; k++)
        m->rank[g->member[k].rank].lane[g->member[k].lane].handoffs[i] = (uint16_t)handoffs;
}

static void arrived_up(struct model *m, struct model_group *g, uint32_t i, uint32_t part,
                       unsigned a, struct flight f, int64_t now);

/* Sends the part at the cursor of node a's edge to its parent. */
static void send_up(struct model *m, struct model_group *g, unsigned a, int64_t now)
{
    struct model_an *an = &g->an[a];
    struct model_cursor at = an->next_up;
    struct model_slot *slot = agg_slots_of(g, at.msg, at.part), *own = &slot[a];
    struct model_slot *up = &slot[an->parent];

    cursor_step(g, &an->next_up);
    up->up_len = own->up_len > up->up_len ? own->up_len : up->up_len;
    up->down_len = own->down_len > up->down_len ? own->down_len : up->down_len;
    if (at.part && !own->up_len) { /* its header went with the first part */
        arrived_up(m, g, at.msg, at.part, an->parent, own->f, now);
        return;
    }
    send_on_edge(m,
                 &(struct model_part){.group = g,
                                      .path = &an->up,
                                      .back = &an->down,
                                      .rank = NOBODY,
                                      .step = at.msg,
                                      .part = at.part,
                                      .end = an->parent,
                                      .edge = EDGE_UP},
                 own->f, own->up_len, now);
}

/* Whether all children have sent the part at the cursor. */
static bool is_complete(const struct model_group *g, unsigned a)
{
    const struct model_cursor *c = &g->an[a].next_up;

    return c->msg < g->n_msgs && agg_slots_of(g, c->msg, c->part)[a].reduced;
}

/* Node `a` has reduced the part: sends it up, or at the top sends the result down. */
static void reduced(struct model *m, struct model_group *g, uint32_t i, uint32_t part, unsigned a,
                    int64_t now)
{
    struct model_slot *own = &agg_slots_of(g, i, part)[a];

    own->reduced = true;
    if (a + 1 == g->n_an) {
        if (part + 1 == g->parts_of[i])
            count_handoffs(m, g, i);
        own->down = true;
        send_down(m, g, a, now);
        return;
    }
    while (is_complete(g, a))
        send_up(m, g, a, now);
}

/* When the node has reduced a part that is complete now (`costs.aggregate`). It reduces parts in
 * the order in which they become complete. */
static int64_t engine_ps(const struct model *m, const struct model_group *g,
                         const struct model_slot *own, uint32_t part)
{
    uint64_t most = (uint64_t)g->part_frames * m->in.mtu, at = part * most, ps = 0;
    uint64_t bytes = AGG_HDR_BYTES + (own->up_len > own->down_len ? own->up_len : own->down_len);
    uint64_t end = at + most < bytes ? at + most : bytes;

    if (!m->fab->costs.agg_ps)
        return 0;
    for (; at < end || !ps; at += m->in.mtu) {
        uint64_t len = end - at < m->in.mtu ? end - at : m->in.mtu;

        ps +=
            (uint64_t)fab_aggregate_ps(&m->fab->costs, (uint32_t)(at ? len : len - AGG_HDR_BYTES));
    }
    return (int64_t)ps;
}

/* A child's part has arrived at node a. The last child's lets the node send. */
static void arrived_up(struct model *m, struct model_group *g, uint32_t i, uint32_t part,
                       unsigned a, struct flight f, int64_t now)
{
    struct model_slot *own = &agg_slots_of(g, i, part)[a];
    int64_t ps, *at;

    own->f = latest(own->f, f);
    if (++own->children < g->an[a].n_children)
        return;
    ps = engine_ps(m, g, own, part);
    if (!ps) {
        reduced(m, g, i, part, a, now);
        return;
    }
    at = &m->engine_ps[g->an[a].node];
    *at = (*at > now ? *at : now) + ps;
    own->f = latest(own->f, (struct flight){.head = *at, .tail = *at});
    model_event(m, EV_REDUCED, *at, g->member[0].rank, g->member[0].lane,
                (uint32_t)(own - g->slot));
}

void agg_model_reduced(struct model *m, const struct cost_event *e)
{
    struct model_group *g = m->rank[e->rank].lane[e->lane].agg;
    uint32_t at = e->step / g->n_an;

    reduced(m, g, at / g->parts, at % g->parts, e->step % g->n_an, e->at);
}

void agg_model_arrived(struct model *m, const struct model_part *p, int64_t now)
{
    struct model_group *g = p->group;
    struct flight f = {.head = now, .tail = p->tail};
    const struct model_member *k = &g->member[p->end];

    queue_send_acks(m, p, now);
    if (p->edge == EDGE_UP) {
        arrived_up(m, g, p->step, p->part, p->end, f, now);
    } else if (p->edge == EDGE_DOWN_NODE) {
        struct model_slot *own = &agg_slots_of(g, p->step, p->part)[p->end];

        /* A part without elements also stands for the results of the parts before it. */
        for (uint32_t part = own->down_len ? p->part : 0; part <= p->part; part++) {
            agg_slots_of(g, p->step, part)[p->end].f = f;
            agg_slots_of(g, p->step, part)[p->end].down = true;
        }
        send_down(m, g, p->end, now);
    } else if (p->last) {
        const struct step *st = lane_step(&m->rank[k->rank].s.lane[k->lane], p->step);

        model_event(m, EV_DONE,
                    model_noticed(&m->rank[k->rank].lane[k->lane],
                                  st->dst.buf == BUF_NONE ? 0 : st->len, p->tail),
                    k->rank, k->lane, p->step);
    }
}

/* Sends the next part of the lane's current message. true: the rank sends nothing in this message.
 */
static bool send_part(struct model *m, unsigned rank, unsigned lane, int64_t now)
{
    struct model_lane *l = &m->rank[rank].lane[lane];
    struct model_group *g = l->agg;
    struct model_member *x = &g->member[l->member];
    uint32_t i = l->begun - 1, part = l->part++;
    const struct step *st = lane_step(&m->rank[rank].s.lane[lane], i);
    struct model_slot *slot = &agg_slots_of(g, i, part)[x->an];
    uint32_t up = st->a.buf == BUF_NONE ? 0 : (uint32_t)st->len;
    uint32_t down = st->dst.buf == BUF_NONE ? 0 : (uint32_t)st->len;

    l->sending = l->part < g->parts_of[i];
    if (!l->sending)
        l->part = 0;
    slot->up_len = up > slot->up_len ? up : slot->up_len;
    slot->down_len = down > slot->down_len ? down : slot->down_len;
    if (part && !up) {
        arrived_up(m, g, i, part, x->an, (struct flight){.head = now, .tail = now}, now);
        return true;
    }
    l->link_busy = true;
    send_on_edge(m,
                 &(struct model_part){.group = g,
                                      .path = &x->up,
                                      .back = &x->down,
                                      .rank = rank,
                                      .lane = lane,
                                      .step = i,
                                      .part = part,
                                      .end = x->an,
                                      .edge = EDGE_UP},
                 ((struct flight){.head = now, .tail = now}), up, now);
    return false;
}

void agg_model_part(struct model *m, unsigned rank, unsigned lane, int64_t now)
{
    while (send_part(m, rank, lane, now) && m->rank[rank].lane[lane].sending)
        ;
}
