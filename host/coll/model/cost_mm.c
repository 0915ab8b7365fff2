/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multimem: a load asks the switch, which reads the members' memory and sends the sum; a store goes
 * to the switch, which writes it to the members and acknowledges when all have.
 */
#include "host/coll/model/cost_model.h"

#include <errno.h>
#include <stdlib.h>

#define REQUEST_WIRE                                                                               \
    98u /* Ethernet 14, IP 20, UDP 8, BTH 12, RETH 16, ICRC 4, and 24 of the link */

/* path[0]: from the own port to the switch, path[1]: back; then such pairs for all members,
 * including the own one. */
int mm_model_begin(struct model *m, unsigned rank, unsigned lane)
{
    struct model_lane *l = &m->rank[rank].lane[lane];
    const uint16_t *domain = m->topo.sched.domain;
    unsigned chan = m->rank[rank].s.lane[lane].chan, n = 1;
    struct fab_channel ch[SCHED_MAX_CHANS];

    for (unsigned r = 0; r < m->in.nranks; r++)
        n += domain[r] == domain[rank];
    l->path = calloc(2 * n, sizeof(*l->path));
    if (!l->path)
        return -ENOMEM;
    n = 1;
    for (unsigned r = 0; r < m->in.nranks; r++) {
        uint16_t host = model_node(m, r), port, plane;
        unsigned mate = 0;

        if (domain[r] != domain[rank])
            continue;
        while (mate == r || domain[mate] != domain[r])
            mate++;
        if (topo_channels(&m->topo, r, mate, ch, SCHED_MAX_CHANS) <= chan)
            return -ENOTSUP;
        port = ch[chan].port_a;
        plane = m->fab->nodes[host].ports[port].peer_node;
        model_path(m, host, port, plane, 0, &l->path[2 * n]);
        model_path(m, plane, 0, host, port, &l->path[2 * n + 1]);
        if (r == rank)
            l->path[0] = l->path[2 * n], l->path[1] = l->path[2 * n + 1];
        n++;
    }
    l->member = n - 1;
    return 0;
}

/* Steps of a lane end in their order. */
static void step_done_at(struct model *m, unsigned rank, unsigned lane, uint32_t step, int64_t at)
{
    struct model_lane *l = &m->rank[rank].lane[lane];

    l->ack_ps = at > l->ack_ps ? at : l->ack_ps;
    model_event(m, EV_DONE, l->ack_ps, rank, lane, step);
}

/* Is pair k of the paths a member that takes part? */
static bool takes_part(const struct model_lane *l, const struct step *st, unsigned k)
{
    return st->self || l->path[2 * k].link[0] != l->path[0].link[0];
}

static struct model_msg payload_message(const struct model *m, const struct step *st)
{
    return model_message(st->len, m->in.mtu, st->op == STEP_MM_LOAD); /* a READ's has an AETH */
}

static void request_load(struct model *m, struct model_lane *l, unsigned rank, unsigned lane,
                         uint32_t i, int64_t now)
{
    const struct step *st = lane_step(&m->rank[rank].s.lane[lane], i);
    int64_t t = model_send_small(m, &l->path[0], now, REQUEST_WIRE), last = t;

    l->peer_lane++;
    for (unsigned k = 1; k <= l->member; k++)
        if (takes_part(l, st, k)) {
            int64_t there = model_send_small(m, &l->path[2 * k + 1], t, REQUEST_WIRE);

            last = there > last ? there : last;
        }
    model_event(m, EV_READ, last, rank, lane, i);
}

/* A store shares the link with data that is being read from the GPU's memory. */
void mm_model_step(struct model *m, unsigned rank, unsigned lane, int64_t now)
{
    struct model_lane *l = &m->rank[rank].lane[lane];
    uint32_t i = l->begun++;
    const struct step *st = lane_step(&m->rank[rank].s.lane[lane], i);
    struct model_msg msg = payload_message(m, st);

    now = model_post(m, l, l->path[0].link[0], now);
    if (st->op == STEP_MM_LOAD) {
        request_load(m, l, rank, lane, i, now);
        return;
    }
    l->flight[i] = model_send_interleaved(m, l->path[0].link[0], now, msg);
    l->link_busy = true;
    model_event(m, EV_TRY, l->flight[i].tail - model_latency(m, l->path[0].link[0]), rank, lane, i);
    for (unsigned h = 1; h < l->path[0].n; h++)
        l->flight[i] = model_send_hop(m, l->path[0].link[h], l->flight[i], msg);
    model_event(m, EV_STORE, l->flight[i].head, rank, lane, i);
}

/* All members have received the request: their data meets in the switch. */
void mm_model_read(struct model *m, unsigned rank, unsigned lane, uint32_t step, int64_t now)
{
    struct model_lane *l = &m->rank[rank].lane[lane];
    const struct step *st = lane_step(&m->rank[rank].s.lane[lane], step);
    struct flight f = {.head = now, .tail = now};

    for (unsigned k = 1; k <= l->member; k++)
        if (takes_part(l, st, k)) {
            struct flight g =
                model_send_path(m, &l->path[2 * k], (struct flight){.head = now, .tail = now},
                                payload_message(m, st), NULL);

            f.head = g.head > f.head ? g.head : f.head;
            f.tail = g.tail > f.tail ? g.tail : f.tail;
        }
    l->flight[step] = f;
    model_event(m, EV_STORE, f.head, rank, lane, step);
}

/* A sum goes down to the member that loads, a store to all members. */
void mm_model_down(struct model *m, unsigned rank, unsigned lane, uint32_t step)
{
    struct model_lane *l = &m->rank[rank].lane[lane];
    const struct step *st = lane_step(&m->rank[rank].s.lane[lane], step);
    struct flight f = l->flight[step];
    int64_t last = 0;

    if (st->op == STEP_MM_LOAD) {
        f = model_send_path(m, &l->path[1], f, payload_message(m, st), NULL);
        step_done_at(m, rank, lane, step, f.tail);
        return;
    }
    for (unsigned k = 1; k <= l->member; k++)
        if (takes_part(l, st, k)) {
            struct flight g =
                model_send_path(m, &l->path[2 * k + 1], f, payload_message(m, st), NULL);
            int64_t t = model_send_small(m, &l->path[2 * k], g.tail, MODEL_ACK_WIRE);

            last = t > last ? t : last;
        }
    step_done_at(m, rank, lane, step, model_send_small(m, &l->path[1], last, MODEL_ACK_WIRE));
}
