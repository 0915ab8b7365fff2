/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/net/net_stats.h"

bool net_port_stats(struct net *n, uint16_t node, uint16_t port, struct net_port_stats *s)
{
    struct node *nd = net_node(n, node);
    const struct node_port_counters *c;
    struct egress_stats st;

    if (!nd || port >= nd->n_ports || !nd->egress[port])
        return false;
    c = &nd->cnt[port];
    st = egress_stats(nd->egress[port]);
    *s = (struct net_port_stats){.frames = st.frames,
                                 .bytes = st.bytes,
                                 .link_bytes = st.link_bytes,
                                 .ecn_marks = st.ecn_marks,
                                 .pauses_sent = c->pauses_sent,
                                 .pauses_received = c->pauses_received,
                                 .watchdog_trips = c->watchdog_trips,
                                 .discarded = st.discarded,
                                 .peak_bytes = st.peak_bytes,
                                 .busy_ps = st.busy_ps,
                                 .paused_ps = egress_paused_ps(nd->egress[port], net_now(n))};
    for (int k = 0; k < FRAME_CLASSES; k++)
        s->class_peak_bytes[k] = st.class_peak_bytes[k];
    for (int d = 0; d < DROP_REASONS; d++)
        s->drops += c->drops[d];
    s->overflows = c->drops[DROP_QUEUE_FULL];
    return true;
}

bool net_sent_bytes(struct net *n, const struct fabric *f, uint32_t dirlink, uint64_t *bytes)
{
    const struct fab_link *l = &f->links[dirlink / 2];
    bool back = dirlink & 1;
    uint16_t from = back ? l->b : l->a;
    const struct egress *e = net_egress(n, from, back ? l->b_port : l->a_port);
    const struct node *to = f->nodes[from].outside ? net_node(n, back ? l->a : l->b) : NULL;

    *bytes = 0;
    if (to) {
        const struct node_port_counters *c = &to->cnt[back ? l->a_port : l->b_port];

        *bytes = c->rx_bytes + c->rx_frames * FRAME_LINK_OVERHEAD;
    } else if (e) {
        *bytes = egress_stats(e).link_bytes;
    }
    return to || e;
}

void net_total_stats(struct net *n, const struct fabric *f, struct net_port_stats *sum)
{
    struct net_port_stats s;

    *sum = (struct net_port_stats){0};
    for (uint16_t i = 0; i < f->n_nodes; i++)
        for (uint16_t p = 0; p < f->nodes[i].n_ports; p++) {
            if (!net_port_stats(n, i, p, &s))
                continue;
            sum->frames += s.frames;
            sum->bytes += s.bytes;
            sum->link_bytes += s.link_bytes;
            sum->ecn_marks += s.ecn_marks;
            sum->pauses_sent += s.pauses_sent;
            sum->pauses_received += s.pauses_received;
            sum->drops += s.drops;
            sum->overflows += s.overflows;
            sum->watchdog_trips += s.watchdog_trips;
            sum->discarded += s.discarded;
            sum->busy_ps += s.busy_ps;
            sum->paused_ps += s.paused_ps;
            sum->peak_bytes = RTE_MAX(sum->peak_bytes, s.peak_bytes);
            for (int k = 0; k < FRAME_CLASSES; k++)
                sum->class_peak_bytes[k] = RTE_MAX(sum->class_peak_bytes[k], s.class_peak_bytes[k]);
        }
}
