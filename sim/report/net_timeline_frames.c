/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that arrive: the runs that they make on links, and pauses. */
#include "roce/wire.h"
#include "sim/report/net_timeline_priv.h"
#include "switch/queue/pfc.h"

#include <jansson.h>

static uint32_t node_pid(const struct net_timeline *n, const struct timeline_line *l)
{
    return timeline_node_pid(n->cfg.t, l->from);
}

/* ---- flows ---- */

/* The node of an address; FAB_NONE: of none. */
static uint16_t node_of(const struct fabric *f, uint32_t ip)
{
    int dest = fabric_dest_of_ip(f, ip);

    return dest < 0 ? FAB_NONE : f->dests[dest].node;
}

static void net_timeline_frames_count(struct flows *s, const struct frame_flow *what)
{
    for (unsigned i = 0; i < s->n; i++) {
        struct frame_flow *f = &s->flow[i];

        if (f->from == what->from && f->to == what->to && f->background == what->background) {
            f->bytes += what->bytes;
            return;
        }
    }
    if (s->n < FLOWS && what->from != FAB_NONE)
        s->flow[s->n++] = *what;
    else
        s->others += what->bytes;
}

/* Processes of a background flow are behind the ranks of their host; the top bits of a queue pair's
 * number are its process's slot there, from 1 on. */
static bool of_background(const struct net_timeline *n, uint16_t node, uint32_t qpn)
{
    const struct fab_node *h = &n->cfg.fab->nodes[node];

    return h->kind == FAB_HOST && qpn >> 16 > n->ranks_of_host[h->host_index];
}

/* from FAB_NONE: of none. */
static struct frame_flow flow_of(const struct net_timeline *n, struct rte_mbuf *m)
{
    const struct fabric *f = n->cfg.fab;
    struct frame_flow flow = {.from = FAB_NONE, .bytes = frame_wire_bytes(m)};
    struct roce_pkt k;

    if (roce_parse(m, &k) != ROCE_OK)
        return flow;
    flow.to = node_of(f, k.dst_ip);
    if (flow.to == FAB_NONE)
        return flow;
    flow.from = node_of(f, k.src_ip);
    flow.background = of_background(n, flow.to, k.dqpn);
    return flow;
}

/* ---- runs ---- */

static json_t *run_json(const struct net_timeline *n, const struct timeline_line *l)
{
    json_t *flows = json_object();
    uint64_t bytes = l->run.others;

    for (unsigned i = 0; i < l->run.n; i++) {
        const struct frame_flow *f = &l->run.flow[i];
        char name[2 * FAB_NAME + 24];

        snprintf(name, sizeof(name), "%s>%s%s", n->cfg.fab->nodes[f->from].name,
                 n->cfg.fab->nodes[f->to].name, f->background ? " (background)" : "");
        json_object_set_new(flows, name, json_integer((json_int_t)f->bytes));
        bytes += f->bytes;
    }
    if (l->run.others)
        json_object_set_new(flows, "others", json_integer((json_int_t)l->run.others));
    return json_pack("{s:i, s:I, s:o}", "frames", (int)l->run_frames, "bytes", (json_int_t)bytes,
                     "flows", flows);
}

void net_timeline_end_run(struct net_timeline *n, struct timeline_line *l)
{
    struct trace_event e = {.ph = 'X',
                            .pid = node_pid(n, l),
                            .tid = TID_PORT + l->from_port,
                            .ps = l->from_ps,
                            .dur_ps = l->to_ps - l->from_ps,
                            .cat = "link"};
    char name[2 * FAB_NAME + 8];

    if (!l->run_frames)
        return;
    net_timeline_name(n, l);
    if (l->run.n == 1 && !l->run.others)
        snprintf(name, sizeof(name), "%s>%s", n->cfg.fab->nodes[l->run.flow[0].from].name,
                 n->cfg.fab->nodes[l->run.flow[0].to].name);
    else
        snprintf(name, sizeof(name), "%u flows", l->run.n + !!l->run.others);
    e.name = name;
    if (e.ps < timeline_origin(n->cfg.t)) {
        e.dur_ps -= timeline_origin(n->cfg.t) - e.ps;
        e.ps = timeline_origin(n->cfg.t);
    }
    if (e.dur_ps > 0)
        timeline_add(n->cfg.t, e, run_json(n, l));
    l->run_frames = 0;
    l->run.n = 0;
    l->run.others = 0;
}

/* When the frame began to occupy the link, by its arrival: of its header, where the node there cuts
 * through. */
static int64_t frame_started(const struct net_timeline *n, const struct timeline_line *l,
                             int64_t took_ps, int64_t arrived_ps)
{
    const struct fab_node *to = &n->cfg.fab->nodes[l->to];
    const struct fab_port *p = &n->cfg.fab->nodes[l->from].ports[l->from_port];

    if (to->cut_through)
        took_ps = FAB_CUT_BYTES * 8 * PS_PER_S / (int64_t)p->rate_bps;
    return arrived_ps - p->latency_ps - took_ps;
}

static void add_frame(struct net_timeline *n, struct timeline_line *l, struct rte_mbuf *m,
                      int64_t now)
{
    uint64_t rate = n->cfg.fab->nodes[l->from].ports[l->from_port].rate_bps;
    uint64_t wire = frame_wire_bytes(m);
    int64_t took = rate ? (int64_t)(wire * 8 * PS_PER_S / rate) : 0;
    int64_t start = frame_started(n, l, took, now);
    struct frame_flow f = flow_of(n, m);

    if (start < l->to_ps)
        start = l->to_ps;
    if (l->run_frames && start - l->to_ps > PS_PER_NS)
        net_timeline_end_run(n, l);
    if (!l->run_frames)
        l->from_ps = start;
    l->to_ps = start + took;
    l->run_frames++;
    net_timeline_frames_count(&l->run, &f);
    net_timeline_frames_count(&l->all, &f);
}

/* ---- pauses ---- */

void net_timeline_end_pause(struct net_timeline *n, struct timeline_line *l, int64_t ps)
{
    struct trace_event e = {.ph = 'X',
                            .pid = node_pid(n, l),
                            .tid = TID_PAUSE + l->from_port,
                            .ps = l->paused_ps,
                            .dur_ps = ps - l->paused_ps,
                            .name = "paused",
                            .cat = "pause"};

    if (!l->resume_ps)
        return;
    l->resume_ps = 0;
    net_timeline_name(n, l);
    if (e.dur_ps >= 0)
        timeline_add(n->cfg.t, e, json_pack("{s:s}", "by", n->cfg.fab->nodes[l->to].name));
}

/* A pause holds from its arrival on, until another one replaces it. l: the direction that pauses. */
static void pause(struct net_timeline *n, struct timeline_line *l, uint32_t quanta, int64_t now)
{
    uint64_t rate = n->cfg.fab->nodes[l->from].ports[l->from_port].rate_bps;

    if (l->resume_ps && l->resume_ps <= now)
        net_timeline_end_pause(n, l, l->resume_ps);
    if (!quanta) {
        net_timeline_end_pause(n, l, now);
        return;
    }
    if (!l->resume_ps)
        l->paused_ps = now;
    l->resume_ps = now + pfc_quanta_ps(quanta, rate);
}

void net_timeline_frame(void *ctx, unsigned dirlink, struct rte_mbuf *m, int64_t now)
{
    struct net_timeline *n = ctx;
    int quanta;

    if (!n->begun || trace_events_count(timeline_events(n->cfg.t)) >= NET_TIMELINE_EVENTS)
        return;
    quanta = frame_meta(m)->cls == FRAME_CONTROL ? pfc_parse(m) : -1;
    if (quanta >= 0)
        pause(n, &n->line[dirlink ^ 1], (uint32_t)quanta, now);
    add_frame(n, &n->line[dirlink], m, now);
}
