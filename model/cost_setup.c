/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets up a run of the model: schedules of all ranks, their paths and groups, and how messages are
 * cut. */
#include "model/cost_model.h"

#include <errno.h>
#include <stdlib.h>

/* Limit of the work of a prediction: parts of messages, times the links that they pass. */
#define PART_HOPS 400000u

static int lane_path(struct model *m, unsigned rank, unsigned lane)
{
    struct model_rank *r = &m->rank[rank];
    struct model_lane *l = &r->lane[lane];
    unsigned peer = r->s.lane[lane].peer, chan = r->s.lane[lane].chan;
    uint16_t from = model_node(m, rank), to = model_node(m, peer);
    struct fab_channel ch[SCHED_MAX_CHANS];
    struct model_lane *far;

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
    far = &m->rank[peer].lane[l->peer_lane];
    far->notice = fabric_notice(m->fab, &m->fab->nodes[to], ch[chan].port_b);
    far->free_ps = &m->rank[peer].free_ps[ch[chan].port_b];
    far->is_long = topo_is_long(&m->topo, &r->s, rank, &r->s.lane[lane]);
    nic_note_path(m, l->path);
    return 0;
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
    r->free_ps = calloc(m->fab->nodes[model_node(m, rank)].n_ports + 1u, sizeof(*r->free_ps));
    if (!r->lane || !r->free_ps)
        return -ENOMEM;
    for (unsigned i = 0; i < r->s.n_lanes && !rc; i++) {
        struct model_lane *l = &r->lane[i];

        l->waiters = l->twin = NOBODY;
        l->handoffs = calloc(r->s.lane[i].n + 1, sizeof(*l->handoffs));
        l->credit = l->published = CONN_AHEAD;
        if (r->s.lane[i].kind == LANE_MM) {
            l->store = calloc((size_t)r->s.lane[i].n + 1, sizeof(*l->store));
            if (!l->store)
                return -ENOMEM;
        }
        if (!l->handoffs)
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
                return -EINVAL; /* no lane receives the messages: a defect of the algorithm */
            r->lane[i].peer_lane = far;
            m->rank[s->peer].lane[far].peer_lane = i;
            if (sched_has_lane(&r->s, LANE_RECV, s->peer, s->chan, &far)) {
                r->lane[i].twin = far;
                r->lane[far].twin = i;
            }
            rc = lane_path(m, rank, i);
        } else if (s->kind == LANE_AGG) {
            rc = agg_model_begin(m, rank, i);
        } else if (s->kind == LANE_MM) {
            rc = mm_model_begin(m, rank, i);
        }
    }
    return rc;
}

/* Chooses the size of parts: a frame, unless that makes more than PART_HOPS. */
static void find_parts(struct model *m)
{
    /* Lanes at different steps of recursive halving share a link: a whole message of an early step
     * would delay those of a later one. */
    uint64_t frames = 0, messages = 0,
             most = m->in.algo == ALGO_HALVING ? 10 * PART_HOPS : PART_HOPS;

    for (unsigned k = 0; k < m->in.nranks; k++)
        for (unsigned i = 0; i < m->rank[k].s.n_lanes; i++) {
            const struct lane *s = &m->rank[k].s.lane[i];

            if (s->kind != LANE_SEND)
                continue;
            messages += (uint64_t)s->n * m->rank[k].lane[i].path->n;
            for (uint32_t n = 0; n < s->n; n++)
                frames += (lane_step(s, n)->len / m->in.mtu + 1) * m->rank[k].lane[i].path->n;
        }
    m->part_frames = (uint32_t)(1 + frames / most);
    m->coarse = messages > most;
}

void setup_free(struct model *m)
{
    mm_model_free(m);
    for (unsigned k = 0; m->rank && k < m->in.nranks; k++) {
        struct model_rank *r = &m->rank[k];

        for (unsigned i = 0; r->lane && i < r->s.n_lanes; i++) {
            free(r->lane[i].handoffs);
            free(r->lane[i].store);
            free(r->lane[i].path);
            free(r->lane[i].mm);
        }
        free(r->lane);
        free(r->free_ps);
        sched_free(&r->s);
    }
    agg_model_free(m);
    nic_free(m);
    free(m->rank);
    free(m->heap);
    m->rank = NULL;
    m->heap = NULL;
    m->n_events = m->capacity = 0;
}

int setup_ranks(struct model *m)
{
    int rc;

    m->rank = calloc(m->in.nranks, sizeof(*m->rank));
    if (!m->rank)
        return -ENOMEM;
    rc = queue_init(m);
    rc = rc ? rc : nic_init(m);
    for (unsigned k = 0; k < m->in.nranks && !rc; k++)
        rc = rank_init(m, k);
    for (unsigned k = 0; k < m->in.nranks && !rc; k++)
        rc = connect_lanes(m, k);
    if (!rc)
        find_parts(m);
    return rc;
}
