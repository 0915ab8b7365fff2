/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts what links carry in the schedules of all ranks, without running them. */
#include "model/cost_model.h"

#include <errno.h>
#include <string.h>

/* Channels to the peer of the last lane, since lanes to one peer follow each other. */
struct way {
    unsigned peer, n;
    struct fab_channel ch[SCHED_MAX_CHANS];
};

static int count_lane(struct model *m, unsigned rank, const struct lane *l, struct way *w)
{
    uint16_t from = model_node(m, rank), to = model_node(m, l->peer);
    struct model_path p;
    uint64_t wire = 0;

    if (w->peer != l->peer)
        w->n = topo_channels(&m->topo, rank, l->peer, w->ch, SCHED_MAX_CHANS);
    w->peer = l->peer;
    if (w->n <= l->chan)
        return -ENOTSUP;
    model_path(m, from, w->ch[l->chan].port_a, to, w->ch[l->chan].port_b, &p);
    for (uint32_t i = 0; i < l->n; i++)
        wire += model_message(lane_step(l, i)->len, m->in.mtu, true).wire;
    for (unsigned h = 0; h < p.n; h++)
        m->bytes[p.link[h]] += wire;
    return 0;
}

int count_links(struct model *m, unsigned nranks, unsigned senders, uint64_t count,
                double *longest_ps)
{
    int rc = 0;

    *longest_ps = 0;
    memset(m->bytes, 0, m->n_dir * sizeof(*m->bytes));
    m->in.nranks = nranks;
    m->in.count = count;
    for (unsigned k = 0; k < senders && !rc; k++) {
        struct way w = {.peer = NOBODY};
        struct sched s;

        m->in.rank = k;
        rc = sched_init(&s, &m->in);
        if (rc)
            return rc;
        for (unsigned i = 0; i < s.n_lanes && !rc; i++)
            if (s.lane[i].kind == LANE_SEND)
                rc = count_lane(m, k, &s.lane[i], &w);
        sched_free(&s);
    }
    for (uint32_t d = 0; d < 2u * m->fab->n_links && !rc; d++) {
        double ps = (double)model_link_ps(m, d, m->bytes[d]);

        *longest_ps = ps > *longest_ps ? ps : *longest_ps;
    }
    return rc;
}
