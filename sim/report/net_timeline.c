/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/report/net_timeline_priv.h"

#include "switch/reduce/an.h"
#include "switch/reduce/an_counters.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

static void read_line(struct net_timeline *n, const struct timeline_line *l, struct line_counts *c)
{
    struct net *net = world_net(n->w);
    struct net_port_stats p;
    struct egress_stats s;

    *c = (struct line_counts){0};
    if (!net_port_stats(net, l->from, l->from_port, &p))
        return;
    s = egress_stats(net_egress(net, l->from, l->from_port));
    *c = (struct line_counts){.frames = p.frames,
                              .bytes = p.link_bytes,
                              .ecn_marks = p.ecn_marks,
                              .pauses = p.pauses_received,
                              .lost = s.lost,
                              .corrupted = s.corrupted,
                              .overflows = s.overflows,
                              .down = s.down_drops,
                              .discarded = s.discarded,
                              .busy_ps = p.busy_ps,
                              .paused_ps = p.paused_ps};
}

static void read_rank(struct net_timeline *n, unsigned rank, struct timeline_counts *c)
{
    *c = (struct timeline_counts){0};
    for (unsigned p = 0; p < world_ports(n->w, rank); p++) {
        const struct roce_counters *k = rnic_counters(hca_rnic(world_hca(n->w, rank, p)));

        c->retransmits += k->retransmits;
        c->timeouts += k->timeouts;
        c->rnr_naks += k->rnr_naks_received;
        c->seq_naks += k->seq_naks_received;
        c->duplicates += k->duplicates;
        c->icrc_errors += k->icrc_errors;
        c->rate_cuts += k->rate_cuts;
    }
}

static uint64_t queued(struct net_timeline *n, const struct timeline_line *l)
{
    const struct egress *e = net_egress(world_net(n->w), l->from, l->from_port);
    uint64_t bytes = 0;

    for (unsigned c = 0; e && c < FRAME_CLASSES; c++)
        bytes += egress_occupancy(e, c);
    return bytes;
}

/* ---- samples ---- */

void net_timeline_name(struct net_timeline *n, struct timeline_line *l)
{
    const struct fabric *f = n->cfg.fab;
    struct trace_events *t = timeline_events(n->cfg.t);
    uint32_t pid = timeline_node_pid(n->cfg.t, l->from);
    char name[2 * FAB_NAME + 40];

    if (l->named)
        return;
    l->named = true;
    trace_events_process(t, pid, f->nodes[l->from].name);
    snprintf(name, sizeof(name), "port %u to %s", (unsigned)l->from_port, f->nodes[l->to].name);
    trace_events_thread(t, pid, TID_PORT + l->from_port, name);
    snprintf(name, sizeof(name), "port %u to %s: pauses", (unsigned)l->from_port,
             f->nodes[l->to].name);
    trace_events_thread(t, pid, TID_PAUSE + l->from_port, name);
}

static void sample_queue(struct net_timeline *n, struct timeline_line *l, int64_t now)
{
    uint64_t bytes = queued(n, l);
    char name[32];

    if (bytes > l->peak)
        l->peak = bytes;
    if (bytes == l->queued)
        return;
    l->queued = bytes;
    net_timeline_name(n, l);
    snprintf(name, sizeof(name), "queue of port %u", (unsigned)l->from_port);
    timeline_add(n->cfg.t,
                 (struct trace_event){.ph = 'C',
                                      .pid = timeline_node_pid(n->cfg.t, l->from),
                                      .ps = now,
                                      .name = name,
                                      .cat = "queue"},
                 json_pack("{s:I}", "bytes", (json_int_t)bytes));
}

/* Records the frames lost since the last sample. */
static void sample_drops(struct net_timeline *n, struct timeline_line *l, int64_t now)
{
    struct line_counts c;
    const struct line_counts last = l->last;
    json_t *args;

    read_line(n, l, &c);
    l->last = c;
    if (c.lost == last.lost && c.corrupted == last.corrupted && c.overflows == last.overflows &&
        c.down == last.down && c.discarded == last.discarded)
        return;
    net_timeline_name(n, l);
    args = json_pack("{s:I, s:I, s:I, s:I}", "lost", (json_int_t)(c.lost - last.lost), "corrupted",
                     (json_int_t)(c.corrupted - last.corrupted), "queue_full",
                     (json_int_t)(c.overflows - last.overflows), "link_down",
                     (json_int_t)(c.down - last.down + c.discarded - last.discarded));
    timeline_add(n->cfg.t,
                 (struct trace_event){.ph = 'i',
                                      .pid = timeline_node_pid(n->cfg.t, l->from),
                                      .tid = TID_PORT + l->from_port,
                                      .ps = now,
                                      .name = "frames lost",
                                      .cat = "drop"},
                 args);
}

static void sample_rank(struct net_timeline *n, unsigned rank, int64_t now)
{
    struct host_counts *last = &n->sent[rank];
    struct timeline_counts c;

    read_rank(n, rank, &c);
    if (c.retransmits == last->retransmits && c.timeouts == last->timeouts)
        return;
    timeline_add(n->cfg.t,
                 (struct trace_event){.ph = 'i',
                                      .pid = timeline_rank_pid(rank),
                                      .ps = now,
                                      .name = "packets sent again",
                                      .cat = "retransmit"},
                 json_pack("{s:I, s:I}", "packets", (json_int_t)(c.retransmits - last->retransmits),
                           "timeouts", (json_int_t)(c.timeouts - last->timeouts)));
    *last = (struct host_counts){c.retransmits, c.timeouts};
}

static void sample_slots(struct net_timeline *n, unsigned node, int64_t now)
{
    const struct an *an = net_an(world_net(n->w), (uint16_t)node);
    uint64_t used = an ? an_counters(an)->slots_used : 0;

    if (used == n->slots[node])
        return;
    n->slots[node] = used;
    n->slots_peak[node] = RTE_MAX(n->slots_peak[node], used);
    timeline_add(n->cfg.t,
                 (struct trace_event){.ph = 'C',
                                      .pid = timeline_node_pid(n->cfg.t, node),
                                      .ps = now,
                                      .name = "slots in use",
                                      .cat = "slots"},
                 json_pack("{s:I}", "slots", (json_int_t)used));
}

static void net_timeline_sample(struct net_timeline *n)
{
    int64_t now = world_now(n->w);

    for (unsigned d = 0; d < 2u * n->cfg.fab->n_links; d++) {
        struct timeline_line *l = &n->line[d];

        if (l->resume_ps && l->resume_ps <= now)
            net_timeline_end_pause(n, l, l->resume_ps);
        sample_queue(n, l, now);
        sample_drops(n, l, now);
    }
    for (unsigned i = 0; i < n->cfg.fab->n_nodes; i++)
        sample_slots(n, i, now);
    for (unsigned r = 0; r < n->cfg.nranks; r++)
        sample_rank(n, r, now);
}

struct timeline *net_timeline_ranks(struct net_timeline *n)
{
    return n->cfg.t;
}

/* ---- an operation ---- */

static void operation_begins(struct net_timeline *n)
{
    n->begun = true;
    for (unsigned d = 0; d < 2u * n->cfg.fab->n_links; d++) {
        struct timeline_line *l = &n->line[d];

        read_line(n, l, &l->base);
        l->last = l->base;
        l->run_frames = 0;
        l->to_ps = l->resume_ps = 0;
        l->run.n = l->all.n = 0;
        l->run.others = l->all.others = 0;
        l->queued = l->peak = 0;
        l->named = false;
    }
    memset(n->slots, 0, n->cfg.fab->n_nodes * sizeof(*n->slots));
    memset(n->slots_peak, 0, n->cfg.fab->n_nodes * sizeof(*n->slots_peak));
    for (unsigned r = 0; r < n->cfg.nranks; r++) {
        read_rank(n, r, &n->base[r]);
        n->sent[r] = (struct host_counts){n->base[r].retransmits, n->base[r].timeouts};
    }
    n->next_ps = timeline_origin(n->cfg.t);
}

void net_timeline_begin(struct net_timeline *n, struct world *w, unsigned skip, int64_t expected_ps)
{
    n->w = w;
    n->begun = false;
    n->every_ps = RTE_MAX(expected_ps / NET_TIMELINE_SAMPLES, 10 * PS_PER_NS);
    timeline_begin(n->cfg.t, skip);
    if (timeline_origin(n->cfg.t) != PS_NEVER)
        operation_begins(n);
}

void net_timeline_step(struct net_timeline *n)
{
    if (!n->begun && timeline_origin(n->cfg.t) != PS_NEVER)
        operation_begins(n);
    if (!n->begun || world_now(n->w) < n->next_ps ||
        trace_events_count(timeline_events(n->cfg.t)) >= NET_TIMELINE_EVENTS)
        return;
    net_timeline_sample(n);
    n->next_ps = world_now(n->w) + n->every_ps;
}

void net_timeline_end(struct net_timeline *n)
{
    struct timeline_counts c;

    if (!n->begun)
        return;
    net_timeline_sample(n);
    for (unsigned d = 0; d < 2u * n->cfg.fab->n_links; d++) {
        struct timeline_line *l = &n->line[d];

        net_timeline_end_run(n, l);
        net_timeline_end_pause(n, l, world_now(n->w));
        read_line(n, l, &l->last);
    }
    for (unsigned r = 0; r < n->cfg.nranks; r++) {
        const struct timeline_counts *b = &n->base[r];

        read_rank(n, r, &c);
        timeline_count(n->cfg.t, r,
                       &(struct timeline_counts){.retransmits = c.retransmits - b->retransmits,
                                                 .timeouts = c.timeouts - b->timeouts,
                                                 .rnr_naks = c.rnr_naks - b->rnr_naks,
                                                 .seq_naks = c.seq_naks - b->seq_naks,
                                                 .duplicates = c.duplicates - b->duplicates,
                                                 .icrc_errors = c.icrc_errors - b->icrc_errors,
                                                 .rate_cuts = c.rate_cuts - b->rate_cuts});
    }
    timeline_end(n->cfg.t);
    n->begun = false;
}

/* ---- life ---- */

int net_timeline_create(struct net_timeline **out, const struct net_timeline_cfg *cfg)
{
    struct net_timeline *n = calloc(1, sizeof(*n));
    const struct fabric *f = cfg->fab;

    *out = NULL;
    if (!n)
        return -ENOMEM;
    n->cfg = *cfg;
    n->line = calloc(2u * f->n_links + 1, sizeof(*n->line));
    n->slots = calloc(f->n_nodes, sizeof(*n->slots));
    n->slots_peak = calloc(f->n_nodes, sizeof(*n->slots_peak));
    n->base = calloc(cfg->nranks, sizeof(*n->base));
    n->sent = calloc(cfg->nranks, sizeof(*n->sent));
    n->ranks_of_host = calloc(f->n_hosts, sizeof(*n->ranks_of_host));
    if (!n->line || !n->slots || !n->slots_peak || !n->base || !n->sent || !n->ranks_of_host) {
        net_timeline_destroy(n);
        return -ENOMEM;
    }
    for (unsigned d = 0; d < 2u * f->n_links; d++) {
        const struct fab_link *l = &f->links[d / 2];

        n->line[d].from = d & 1 ? l->b : l->a;
        n->line[d].from_port = d & 1 ? l->b_port : l->a_port;
        n->line[d].to = d & 1 ? l->a : l->b;
        n->line[d].to_port = d & 1 ? l->a_port : l->b_port;
    }
    for (unsigned r = 0; r < cfg->nranks; r++)
        n->ranks_of_host[cfg->host_of_rank[r]]++;
    *out = n;
    return 0;
}

void net_timeline_destroy(struct net_timeline *n)
{
    if (!n)
        return;
    free(n->line);
    free(n->slots);
    free(n->slots_peak);
    free(n->base);
    free(n->sent);
    free(n->ranks_of_host);
    free(n);
}
