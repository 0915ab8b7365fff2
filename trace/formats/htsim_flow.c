/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A flow is a send and a receive, with a wait before it where it starts later. What a trigger joins may be on
 * two nodes: a trigger has a wait of its own on the node of the first flow that it starts; those
 * that fire it, and those that it starts, are joined to it by messages of 0 bytes, or by a
 * dependency on one node. The k-th that fires a multishot starts its k-th flow.
 */
#include "trace/formats/htsim_flow.h"

#include "trace/grow.h"

#include <errno.h>
#include <inttypes.h>

#define PARTS_MOST (1u << 25)

enum htsim_part_kind { PART_SEND, PART_RECV, PART_COLL, PART_HUB, PART_TELL, PART_HEAR };

/* An operation of a rank, before ranks are built. */
struct htsim_part {
    uint32_t rank, flow; /* flow: of a hub the trigger */
    enum htsim_part_kind kind;
    uint32_t peer, tag; /* of messages of 0 bytes */
    uint32_t before;    /* a part of the same rank that it waits for; HTSIM_NONE */
    uint32_t delay_op;  /* number of its wait, and its own, in the rank */
    uint32_t op;
};

struct htsim_parts {
    struct htsim_matrix *m;
    struct htsim_part *part;
    struct htsim_edge {
        uint32_t waits, on; /* parts of one rank */
    } * edge;
    uint32_t *main; /* by flow: its first part; what starts */
    uint32_t n, n_edges, n_joins;
    size_t room, edge_room;
};

static uint32_t part_add(struct htsim_parts *p, struct htsim_part one)
{
    GROW(p->part, p->n + 1u, &p->room);
    p->part[p->n] = one;
    return p->n++;
}

static void parts_wait(struct htsim_parts *p, uint32_t waits, uint32_t on)
{
    GROW(p->edge, p->n_edges + 1u, &p->edge_room);
    p->edge[p->n_edges++] = (struct htsim_edge){waits, on};
}

/* Part `waits` waits for part `on`, by a message of 0 bytes where they are of two ranks. */
static void parts_join(struct htsim_parts *p, uint32_t waits, uint32_t on)
{
    uint32_t from = p->part[on].rank, to = p->part[waits].rank, tell, hear;
    uint32_t tag = UINT32_MAX / 2 + p->n_joins++ % (UINT32_MAX / 2);

    if (from == to) {
        parts_wait(p, waits, on);
        return;
    }
    tell =
        part_add(p, (struct htsim_part){.rank = from, .kind = PART_TELL, .peer = to, .tag = tag});
    hear =
        part_add(p, (struct htsim_part){.rank = to, .kind = PART_HEAR, .peer = from, .tag = tag});
    p->part[tell].flow = p->part[on].flow;
    p->part[hear].flow = p->part[waits].flow;
    parts_wait(p, tell, on);
    parts_wait(p, waits, hear);
}

/* Parts of flow i: the first is what starts. */
static void flow_parts(struct htsim_parts *p, uint32_t i)
{
    const struct htsim_flow *f = &p->m->flow[i];
    const struct app_group *group;

    p->main[i] = p->n;
    if (!f->is_coll) {
        part_add(p, (struct htsim_part){.rank = f->from, .flow = i, .kind = PART_SEND});
        part_add(p, (struct htsim_part){.rank = f->to, .flow = i, .kind = PART_RECV});
        return;
    }
    group = &p->m->g->group[f->to];
    part_add(p, (struct htsim_part){.rank = group->rank[f->from], .flow = i, .kind = PART_COLL});
    for (uint32_t k = 0; k < group->n; k++)
        if (k != f->from)
            part_add(p, (struct htsim_part){.rank = group->rank[k], .flow = i, .kind = PART_COLL});
}

static uint32_t flow_parts_n(const struct htsim_parts *p, uint32_t i)
{
    const struct htsim_flow *f = &p->m->flow[i];

    return f->is_coll ? p->m->g->group[f->to].n : 2;
}

/* ---- triggers ---- */

struct htsim_fired {
    uint32_t hub;           /* of a trigger that starts all at once; HTSIM_NONE */
    uint32_t sources, next; /* that fired it so far; of a multishot the next flow that it starts */
};

/* Flow i fires the trigger: by its send, or by the receives of all. */
static void flow_fires(struct htsim_parts *p, struct htsim_fired *t, const uint32_t *chain,
                       uint32_t i, uint32_t trigger, bool recv)
{
    const struct htsim_trigger *how = &p->m->trigger[trigger];
    uint32_t first = p->main[i] + (recv && !p->m->flow[i].is_coll), n = 1, waits = t->hub;

    if (recv && p->m->flow[i].is_coll)
        n = flow_parts_n(p, i);
    t->sources++;
    if (how->how == HTSIM_ONESHOT && t->sources > 1)
        return; /* it has fired */
    if (how->how == HTSIM_MULTISHOT) {
        waits = t->next == HTSIM_NONE ? HTSIM_NONE : p->main[t->next];
        t->next = t->next == HTSIM_NONE ? HTSIM_NONE : chain[t->next];
    }
    for (uint32_t k = 0; k < n && waits != HTSIM_NONE; k++)
        parts_join(p, waits, first + k);
}

static void trigger_check(struct htsim_parts *p, uint32_t trigger, const struct htsim_fired *t,
                          uint32_t starts)
{
    const struct htsim_trigger *how = &p->m->trigger[trigger];
    uint64_t id = p->m->ids.key[trigger].a;

    if (!how->there)
        finding_note(&p->m->g->found, FINDING_DEPENDENCY,
                     "%s: found trigger %" PRIu64 ", expected one that is declared", p->m->in->name,
                     id);
    if (starts && !t->sources)
        finding_note(&p->m->g->found, FINDING_DEPENDENCY,
                     "%s: found trigger %" PRIu64 " that nothing fires, expected a flow with it",
                     p->m->in->name, id);
    if (how->how == HTSIM_BARRIER && how->count != t->sources)
        finding_note(&p->m->g->found, FINDING_COUNT,
                     "%s:%u: found %u flows that fire it, expected the %u of the barrier",
                     p->m->in->name, how->line, t->sources, how->count);
}

/* The flows that a trigger starts are a chain in order of the file. */
static void parts_triggers(struct htsim_parts *p)
{
    uint32_t n = p->m->ids.n, *chain = enough_memory(p->m->n + 1u, sizeof(*chain));
    uint32_t *first = enough_memory(n + 1u, sizeof(*first)),
             *starts = enough_memory(n + 1u, sizeof(*starts));
    struct htsim_fired *t = enough_memory(n + 1u, sizeof(*t));

    for (uint32_t k = 0; k < n; k++)
        first[k] = HTSIM_NONE;
    for (uint32_t i = p->m->n; i-- > 0;) {
        uint32_t k = p->m->flow[i].trigger;

        if (k == HTSIM_NONE)
            continue;
        chain[i] = first[k];
        first[k] = i;
        starts[k]++;
    }
    for (uint32_t k = 0; k < n; k++) {
        t[k] = (struct htsim_fired){.hub = HTSIM_NONE, .next = first[k]};
        if (first[k] == HTSIM_NONE || p->m->trigger[k].how == HTSIM_MULTISHOT)
            continue;
        t[k].hub = part_add(p, (struct htsim_part){.rank = p->part[p->main[first[k]]].rank,
                                                   .flow = first[k],
                                                   .kind = PART_HUB});
        for (uint32_t i = first[k]; i != HTSIM_NONE; i = chain[i])
            parts_join(p, p->main[i], t[k].hub);
    }
    for (uint32_t i = 0; i < p->m->n; i++) {
        const struct htsim_flow *f = &p->m->flow[i];

        if (f->send_done != HTSIM_NONE)
            flow_fires(p, &t[f->send_done], chain, i, f->send_done, false);
        if (f->recv_done != HTSIM_NONE)
            flow_fires(p, &t[f->recv_done], chain, i, f->recv_done, true);
    }
    for (uint32_t k = 0; k < n; k++)
        trigger_check(p, k, &t[k], starts[k]);
    free(chain);
    free(first);
    free(starts);
    free(t);
}

/* ---- ranks ---- */

static int part_op(struct htsim_parts *p, struct htsim_part *part)
{
    const struct htsim_flow *f = &p->m->flow[part->flow];
    struct app_op op = {.line = f->line, .kind = APP_WAIT}, delay = op;
    int64_t i, d = 0;

    delay.ns = part->kind == PART_SEND || part->kind == PART_COLL ? f->start_ns : 0;
    if (delay.ns)
        d = app_graph_op(p->m->g, &delay);
    if (part->kind == PART_SEND || part->kind == PART_RECV) {
        op.kind = part->kind == PART_SEND ? APP_SEND : APP_RECV;
        op.peer = part->kind == PART_SEND ? f->to : f->from;
        op.tag = part->flow;
        op.bytes = f->bytes;
    } else if (part->kind == PART_COLL) {
        op.kind = APP_COLL;
        op.coll = f->coll;
        op.group = f->to;
        op.tag = part->flow;
        op.bytes = f->bytes;
        op.peer = f->coll == APP_BROADCAST || f->coll == APP_REDUCE
                      ? p->m->g->group[f->to].rank[f->from]
                      : APP_ANY;
    } else if (part->kind != PART_HUB) {
        op.kind = part->kind == PART_TELL ? APP_SEND : APP_RECV;
        op.peer = part->peer;
        op.tag = part->tag;
    }
    i = app_graph_op(p->m->g, &op);
    if (d < 0 || i < 0)
        return -ERANGE;
    part->op = (uint32_t)i;
    if (delay.ns)
        app_graph_dep(p->m->g, part->op, (uint32_t)d, false);
    return 0;
}

/* Parts of each rank, in order: next[] of a rank's first, which is first[rank]. */
static int ranks_build(struct htsim_parts *p, uint32_t file)
{
    uint32_t nodes = p->m->nodes, *first = enough_memory(nodes + 1u, sizeof(*first));
    uint32_t *next = enough_memory(p->n + 1u, sizeof(*next));
    uint32_t *edges = enough_memory(nodes + 1u, sizeof(*edges));
    uint32_t *edge_next = enough_memory(p->n_edges + 1u, sizeof(*edge_next));
    int rc = 0;

    for (uint32_t i = p->n; i-- > 0; first[p->part[i].rank] = i + 1)
        next[i] = first[p->part[i].rank];
    for (uint32_t i = p->n_edges; i-- > 0;) {
        uint32_t rank = p->part[p->edge[i].waits].rank;

        edge_next[i] = edges[rank];
        edges[rank] = i + 1;
    }
    for (uint32_t r = 0; !rc && r < nodes; r++) {
        app_graph_rank(p->m->g, r, file);
        for (uint32_t i = first[r]; i && !rc; i = next[i - 1])
            rc = part_op(p, &p->part[i - 1]);
        for (uint32_t i = edges[r]; i && !rc; i = edge_next[i - 1])
            app_graph_dep(p->m->g, p->part[p->edge[i - 1].waits].op, p->part[p->edge[i - 1].on].op,
                          false);
        app_graph_rank_end(p->m->g);
    }
    free(first);
    free(next);
    free(edges);
    free(edge_next);
    return rc ? trace_refuse_at(p->m->in, "", "found more than %u operations, expected fewer",
                                APP_OPS_MOST)
              : 0;
}

int htsim_flow_build(struct htsim_matrix *m, uint32_t file)
{
    struct htsim_parts p = {.m = m};
    int rc = 0;

    p.main = enough_memory(m->n + 1u, sizeof(*p.main));
    for (uint32_t i = 0; !rc && i < m->n; i++) {
        flow_parts(&p, i);
        if (p.n > PARTS_MOST)
            rc = trace_refuse_at(m->in, "", "found more than %u operations, expected fewer",
                                 PARTS_MOST);
    }
    if (!rc) {
        parts_triggers(&p);
        rc = ranks_build(&p, file);
    }
    free(p.main);
    free(p.part);
    free(p.edge);
    return rc;
}
