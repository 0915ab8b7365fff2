/* SPDX-License-Identifier: BSD-3-Clause */
/* What links and switches have done during the recorded operation, for "otherData". */
#include "sim/report/net_timeline_priv.h"

#include <jansson.h>

static json_t *flows_json(const struct fabric *f, const struct flows *s)
{
    json_t *a = json_array();

    for (unsigned i = 0; i < s->n; i++)
        json_array_append_new(
            a, json_pack("{s:s, s:s, s:b, s:I}", "from", f->nodes[s->flow[i].from].name, "to",
                         f->nodes[s->flow[i].to].name, "background", s->flow[i].background, "bytes",
                         (json_int_t)s->flow[i].bytes));
    return a;
}

static double us_of(int64_t ps)
{
    return (double)ps / PS_PER_US;
}

static json_t *line_json(const struct net_timeline *n, unsigned d)
{
    const struct fabric *f = n->cfg.fab;
    const struct timeline_line *l = &n->line[d];
    const struct fab_node *from = &f->nodes[l->from], *to = &f->nodes[l->to];
    const struct fab_link *link = &f->links[d / 2];
    const struct line_counts *a = &l->base, *b = &l->last;
    int64_t paused = b->paused_ps - a->paused_ps;

    return json_pack(
        "{s:s, s:s, s:s, s:i, s:i, s:[i, i], s:b, s:f, s:f, s:I, s:I, s:I, s:f, s:I, s:I, s:I, "
        "s:f, s:I, s:I, s:I, s:I, s:o}",
        "link", link->name, "from", from->name, "to", to->name, "pid",
        (int)timeline_node_pid(n->cfg.t, l->from), "tid", TID_PORT + l->from_port, "tiers",
        (int)from->tier, (int)to->tier, "in_node",
        from->domain != FAB_NONE && to->domain == from->domain, "rate_Gbps",
        (double)link->rate_bps * 1e-9, "latency_us", us_of(from->ports[l->from_port].latency_ps),
        "buffer_bytes", (json_int_t)link->buffer_bytes, "frames",
        (json_int_t)(b->frames - a->frames), "bytes", (json_int_t)(b->bytes - a->bytes), "busy_us",
        us_of(b->busy_ps - a->busy_ps), "queue_peak_bytes", (json_int_t)l->peak, "ecn_marks",
        (json_int_t)(b->ecn_marks - a->ecn_marks), "pauses", (json_int_t)(b->pauses - a->pauses),
        "paused_us", us_of(paused > 0 ? paused : 0), "lost", (json_int_t)(b->lost - a->lost),
        "corrupted", (json_int_t)(b->corrupted - a->corrupted), "queue_full",
        (json_int_t)(b->overflows - a->overflows), "link_down",
        (json_int_t)(b->down - a->down + b->discarded - a->discarded), "flows",
        flows_json(f, &l->all));
}

json_t *net_timeline_links(const struct net_timeline *n)
{
    json_t *a = json_array();

    for (unsigned d = 0; d < 2u * n->cfg.fab->n_links; d++)
        json_array_append_new(a, line_json(n, d));
    return a;
}

json_t *net_timeline_switches(const struct net_timeline *n)
{
    json_t *a = json_array();

    for (unsigned i = 0; i < n->cfg.fab->n_nodes; i++) {
        const struct fab_node *nd = &n->cfg.fab->nodes[i];

        if (nd->kind == FAB_SWITCH)
            json_array_append_new(a, json_pack("{s:s, s:i, s:b, s:I}", "name", nd->name, "pid",
                                               (int)timeline_node_pid(n->cfg.t, i), "reduces",
                                               nd->reduce.on, "slots_peak",
                                               (json_int_t)n->slots_peak[i]));
    }
    return a;
}
