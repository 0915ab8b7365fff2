/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ranks and servers of an exchange do (docs/aggregation-protocols.md). Links lose nothing. If
 * another block takes an aggregator, ranks send the lost parts again. A rank has a limited number
 * of send buffers: results that it owes as a server use them first, then its own parts.
 */
#include "base/frame_size.h"
#include "model/cost_exchange_priv.h"
#include "protocols/host/protocol_wire.h"

#include <tributary/window.h>

#include <errno.h>
#include <stdlib.h>

#define FRAME_LEAST (FRAME_MIN_BYTES + FRAME_LINK_OVERHEAD) /* shortest frame on a link */
#define GAP         3u /* later results until a part is sent again (protocols/atp_rank.c) */

unsigned exchange_server(const struct model_exchange *e, uint32_t block)
{
    return (unsigned)((e->x->first + block) % e->x->servers);
}

/* ---- paths ---- */

static unsigned host_of(const struct model_exchange *e, unsigned rank)
{
    return e->on->host_of_rank[rank];
}

/* Node and port of an end. */
static uint16_t node_of(const struct model *m, unsigned end, uint16_t *port)
{
    const struct model_exchange *e = m->exchange;

    *port = end < e->on->nranks ? proto_host_port(e->on->ways, host_of(e, end)) : 0;
    return end < e->on->nranks ? m->fab->hosts[host_of(e, end)] : e->leaf[end - e->on->nranks].node;
}

static struct model_path *path_new(struct model *m, unsigned from, unsigned to)
{
    struct model_path *p = malloc(sizeof(*p));
    uint16_t port_a, port_b, a = node_of(m, from, &port_a), b = node_of(m, to, &port_b);

    if (!p) {
        m->rc = -ENOMEM;
        return NULL;
    }
    model_path(m, a, port_a, b, port_b, p);
    if (from < m->exchange->on->nranks)
        nic_note_path(m, p);
    if (!p->n)
        m->rc = -ENOTSUP;
    return p;
}

/* The path between two ends. NULL: there is none, or no memory; m->rc has the error. */
static const struct model_path *path_find(struct model *m, unsigned from, unsigned to)
{
    struct model_exchange *e = m->exchange;
    struct model_path **p = &e->path[(size_t)from * (e->on->nranks + e->n_leaves) + to];

    if (!*p)
        *p = path_new(m, from, to);
    return m->rc ? NULL : *p;
}

static uint32_t bytes_of(const struct model_exchange *e, uint32_t block)
{
    return (block + 1) % e->op_blocks ? e->x->bytes : e->x->last_bytes;
}

struct model_part exchange_packet(struct model *m, enum exchange_kind kind, uint32_t block,
                                  unsigned from, unsigned to)
{
    uint32_t target = kind == TO_SWITCH ? sizeof(struct proto_target) : 0;
    uint32_t wire = PROTO_OVERHEAD + PROTO_PAD(bytes_of(m->exchange, block)) + target;

    wire = wire < FRAME_LEAST ? FRAME_LEAST : wire;
    return (struct model_part){.kind = PART_EXCHANGE,
                               .edge = (uint8_t)kind,
                               .last = true,
                               .rank = from,
                               .step = block,
                               .end = to,
                               .first = 1,
                               .packets = 1,
                               .msg = {wire, wire, wire},
                               .path = path_find(m, from, to)};
}

int64_t exchange_noticed(const struct model *m, const struct model_part *p, int64_t at)
{
    const struct model_exchange *e = m->exchange;
    struct exchange_rank *r;
    int64_t t;

    if (!e->on->notice_ps || p->end >= e->on->nranks)
        return at;
    r = &e->rank[p->end];
    t = fab_noticed_ps(&r->notice, PROTO_RECEIVED(bytes_of(e, p->step)), false, at,
                       &r->short_free_ps);
    r->noticed_ps = t > r->noticed_ps ? t : r->noticed_ps;
    return r->noticed_ps;
}

/* ---- ranks ---- */

static void ring_put(struct model *m, struct exchange_ring *r, uint32_t block)
{
    if (r->n == r->room)
        m->rc = -ENOTSUP;
    else
        r->block[(r->head + r->n++) % r->room] = block;
}

static uint32_t ring_first(const struct exchange_ring *r)
{
    return r->block[r->head];
}

static void ring_drop(struct exchange_ring *r)
{
    r->head = (r->head + 1) % r->room;
    r->n--;
}

void exchange_send(struct model *m, struct model_part *p, int64_t now)
{
    if (!p->path)
        return;
    p->tail = now;
    queue_send(m, p, now);
}

/* Posts a packet: the rank's HCA sends it once it has fetched the request. */
static void packet_post(struct model *m, struct model_part *p, int64_t now)
{
    struct model_exchange *e = m->exchange;
    struct exchange_rank *r = &e->rank[p->rank];

    r->out++;
    if (!m->fab->costs.hca_ps) {
        exchange_send(m, p, now);
        return;
    }
    r->fetch_ps = (r->fetch_ps > now ? r->fetch_ps : now) + m->fab->costs.hca_ps;
    e->fetch[(size_t)p->rank * PROTOCOL_SENDS + e->posted[p->rank]++ % PROTOCOL_SENDS] = *p;
    model_event(m, EV_TRY, r->fetch_ps, p->rank, 0, 0);
}

void exchange_fetched(struct model *m, unsigned rank, int64_t now)
{
    struct model_exchange *e = m->exchange;
    size_t at = (size_t)rank * PROTOCOL_SENDS + e->fetched[rank]++ % PROTOCOL_SENDS;

    exchange_send(m, &e->fetch[at], now);
}

/* The k-th destination of a server's result, a switch or a rank. False: there are no more. */
static bool owed_to(const struct model_exchange *e, unsigned rank, unsigned k, unsigned *end)
{
    unsigned n = e->on->nranks;

    if (!e->x->aggregators) {
        *end = (rank + 1 + k) % n;
        return k + 1 < n;
    }
    for (unsigned i = 0; i < e->n_leaves; i++) { /* with other ranks than the server */
        if (e->leaf[i].n == 1 && e->rank[rank].leaf == i)
            continue;
        if (!k--) {
            *end = n + i;
            return true;
        }
    }
    return false;
}

static void pay(struct model *m, unsigned rank, int64_t now)
{
    const struct model_exchange *e = m->exchange;
    struct exchange_rank *r = &e->rank[rank];
    unsigned end;

    while (r->owed.n && !m->rc) {
        for (; owed_to(e, rank, r->paid, &end); r->paid++) {
            struct model_part p;

            if (r->out == PROTOCOL_SENDS)
                return;
            p = exchange_packet(m, end < e->on->nranks ? RESULT_TO_RANK : RESULT_TO_SWITCH,
                                ring_first(&r->owed), rank, end);
            packet_post(m, &p, now);
        }
        r->paid = 0;
        ring_drop(&r->owed);
    }
}

static void result_arrived(struct model *m, unsigned rank, uint32_t block, int64_t now);

/* Parts of `parts` further ranks have arrived at the block's server. */
static void parts_arrived(struct model *m, uint32_t block, uint32_t parts, int64_t now)
{
    struct model_exchange *e = m->exchange;
    unsigned server = exchange_server(e, block);

    e->seen[block] = (uint16_t)(e->seen[block] + parts);
    if (!parts || e->seen[block] < e->on->nranks)
        return;
    ring_put(m, &e->rank[server].owed, block);
    pay(m, server, now);
    result_arrived(m, server, block, now);
}

/* Timeout of a part that a rank sends now. */
static int64_t timeout(const struct model_exchange *e, const struct exchange_rank *r, int64_t now)
{
    int64_t t = 4 * r->quick_ps[0] > e->timeout_ps ? 4 * r->quick_ps[0] : e->timeout_ps;

    for (int i = 0; i < TRIB_BACKOFF && now - r->heard_ps > t; i++)
        t *= 2;
    return t;
}

static void arm(struct model *m, unsigned rank, int64_t at)
{
    struct exchange_rank *r = &m->exchange->rank[rank];

    if (at >= r->timer_ps)
        return;
    r->timer_ps = at;
    model_event(m, EV_TRY, at, rank, EXCHANGE_TIMER, 0);
}

static void note_sent(struct model *m, unsigned rank, uint32_t block, int64_t now)
{
    struct model_exchange *e = m->exchange;
    struct exchange_flight *f = &e->rank[rank].flight[block % e->in_flight];

    *f = (struct exchange_flight){now, now + timeout(e, &e->rank[rank], now)};
    arm(m, rank, f->due_ps);
}

/* Notes a result. If its part was sent only once, its time measures the time of results. */
static void note_answer(const struct model_exchange *e, struct exchange_rank *r, uint32_t block,
                        int64_t now)
{
    int64_t took = now - r->flight[block % e->in_flight].sent_ps;

    r->heard_ps = now;
    if ((r->of[block] & (OF_POSTED | OF_AGAIN)) != OF_POSTED)
        return;
    if (took < r->quick_ps[1])
        r->quick_ps[1] = took;
    if (++r->samples < TRIB_SAMPLES)
        return;
    r->samples = 0;
    r->quick_ps[0] = r->quick_ps[1];
    r->quick_ps[1] = TRIB_NEVER;
}

static void pump(struct model *m, unsigned rank, int64_t now)
{
    struct model_exchange *e = m->exchange;
    struct exchange_rank *r = &e->rank[rank];

    if (r->pumping) /* the rank is its own server, and sending a part gave this result */
        return;
    r->pumping = true;
    while (r->parts.n && !m->rc) {
        uint32_t block = ring_first(&r->parts);
        unsigned server = exchange_server(e, block);
        struct model_part p;

        if (r->of[block] & OF_RESULT) { /* the result came before the part was sent again */
            ring_drop(&r->parts);
            continue;
        }
        if (server != rank && r->out == PROTOCOL_SENDS)
            break;
        ring_drop(&r->parts);
        if (server == rank) {
            parts_arrived(m, block, 1, now);
            continue;
        }
        r->of[block] |= OF_POSTED;
        if (r->flight)
            note_sent(m, rank, block, now);
        p = e->x->aggregators ? exchange_packet(m, TO_SWITCH, block, rank, e->on->nranks + r->leaf)
                              : exchange_packet(m, TO_SERVER, block, rank, server);
        p.part = r->of[block] & OF_AGAIN;
        packet_post(m, &p, now);
    }
    r->pumping = false;
}

/* Queues the blocks that may be sent, in order. */
static void offer_in_order(struct model *m, struct exchange_rank *r)
{
    const struct trib_exchange *x = m->exchange->x;

    while (r->next < r->end && r->busy < x->window &&
           (r->next < x->window || r->of[r->next - x->window] & OF_RESULT)) {
        ring_put(m, &r->parts, r->next++);
        r->busy++;
    }
}

/* Queues the first window of an operation. Each rank begins with another server. */
static void offer_first(struct model *m, unsigned rank)
{
    const struct model_exchange *e = m->exchange;
    const struct trib_exchange *x = e->x;
    struct exchange_rank *r = &e->rank[rank];
    uint32_t base = r->end - e->op_blocks;

    for (uint64_t i = 0; i < x->window && i - i % x->servers < e->op_blocks; i++) {
        uint64_t block = i - i % x->servers + (i + rank) % x->servers;

        if (block >= e->op_blocks)
            continue;
        ring_put(m, &r->parts, (uint32_t)(base + block));
        r->busy++;
    }
}

/* Begins a rank's first or next operation. */
static void operation_begin(struct model *m, unsigned rank)
{
    struct exchange_rank *r = &m->exchange->rank[rank];

    r->end += m->exchange->op_blocks;
    if (m->exchange->x->aggregators)
        offer_in_order(m, r);
    else
        offer_first(m, rank);
}

/* Queues a part again that was sent before, to another rank. */
static void send_again(struct model *m, struct exchange_rank *r, uint32_t block)
{
    r->of[block] = (uint8_t)((r->of[block] & ~OF_POSTED) | OF_AGAIN);
    ring_put(m, &r->parts, block);
}

/* Called before the result of a block is noted: after GAP later results of a server, sends its
 * oldest block without a result again, once. */
static void note_gap(struct model *m, struct exchange_rank *r, uint32_t block)
{
    const struct trib_exchange *x = m->exchange->x;
    struct exchange_lane *l = &r->lane[block % x->servers];
    uint32_t slots = x->window / x->servers, gap = slots > GAP ? GAP : slots - 1;
    uint64_t at = l->oldest;

    if (block == at) {
        l->later = 0;
        do {
            at += x->servers;
        } while (at < x->blocks && r->of[at] & OF_RESULT);
        l->oldest = (uint32_t)at;
    } else if (++l->later >= gap && (r->of[at] & (OF_POSTED | OF_AGAIN)) == OF_POSTED) {
        send_again(m, r, l->oldest);
    }
}

static void result_arrived(struct model *m, unsigned rank, uint32_t block, int64_t now)
{
    struct model_exchange *e = m->exchange;
    struct exchange_rank *r = &e->rank[rank];
    const struct trib_exchange *x = e->x;

    if (r->of[block] & OF_RESULT)
        return;
    if (r->lane) {
        note_gap(m, r, block);
        note_answer(e, r, block, now);
    }
    r->of[block] |= OF_RESULT;
    r->busy--;
    if (++r->results == r->end && e->op_end_ps)
        e->op_end_ps[r->end / e->op_blocks - 1] = now; /* the last rank overwrites it last */
    if (r->results == x->blocks) {
        e->ended++;
        m->end = now;
    } else if (r->results == r->end) {
        operation_begin(m, rank);
    } else if (x->aggregators) {
        offer_in_order(m, r);
    } else if (block + (uint64_t)x->window < r->end) {
        ring_put(m, &r->parts, block + x->window);
        r->busy++;
    }
    pump(m, rank, now);
}

/* Sends overdue parts again. Returns when to look again; TRIB_NEVER: nothing is in flight. */
static int64_t overdue(struct model *m, struct exchange_rank *r, int64_t now)
{
    struct model_exchange *e = m->exchange;
    uint32_t most = e->in_flight, from = r->next > most ? r->next - most : 0;
    int64_t next = TRIB_NEVER;

    for (uint32_t block = from; block < r->next && !m->rc; block++) {
        int64_t due = r->flight[block % most].due_ps;

        if ((r->of[block] & (OF_RESULT | OF_POSTED)) != OF_POSTED)
            continue;
        if (due <= now && e->resends == e->most_resends)
            m->rc = -EDEADLK;
        else if (due <= now) {
            e->resends++;
            send_again(m, r, block);
        } else
            next = due < next ? due : next;
    }
    return next;
}

void exchange_timer(struct model *m, unsigned rank, int64_t now)
{
    struct exchange_rank *r = &m->exchange->rank[rank];

    if (now != r->timer_ps)
        return;
    r->timer_ps = TRIB_NEVER;
    arm(m, rank, overdue(m, r, now));
    pump(m, rank, now);
}

/* A part has left its send buffer, which is free now. */
void exchange_part_left(struct model *m, unsigned rank, int64_t now)
{
    m->exchange->rank[rank].out--;
    pay(m, rank, now);
    pump(m, rank, now);
}

void exchange_arrived(struct model *m, const struct model_part *p, int64_t now)
{
    unsigned n = m->exchange->on->nranks;

    switch ((enum exchange_kind)p->edge) {
    case TO_SWITCH:
        exchange_part_at_switch(m, p->rank, p->step, p->part, now);
        break;
    case TO_SERVER:
        parts_arrived(m, p->step, p->first, now);
        break;
    case RESULT_TO_SWITCH:
        exchange_result_at_switch(m, p->end - n, p->step, now);
        break;
    case RESULT_TO_RANK:
        result_arrived(m, p->end, p->step, now);
        break;
    }
}

/* ---- the start ---- */

void exchange_begin(struct model *m)
{
    for (unsigned r = 0; r < m->exchange->on->nranks && !m->rc; r++) {
        operation_begin(m, r);
        pump(m, r, 0);
    }
}
