/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages through aggregation nodes: up from every member to the top of the group's tree, and down
 * again. A node forwards a message, frame by frame, when all children have sent theirs. The window
 * stops members that have too many messages without a result.
 */
#include "host/coll/model/cost_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* An aggregation node of the group; parents come after their children. */
struct model_an {
    uint16_t node;
    unsigned parent, depth;
    struct model_path up, down; /* to the parent and back */
    unsigned crossings;         /* most hand-offs from a member up to this node */
};

struct model_member {
    unsigned rank, lane, an;
    struct model_path up, down;
};

/* A message at a node: arrival of the children's data, and lengths up and down. */
struct model_slot {
    struct flight f;
    uint32_t up_len, down_len;
};

struct model_group {
    struct model_group *next;
    unsigned group, domain_index, chan, n, n_an, top_handoffs;
    uint32_t window, n_msgs;
    struct model_member *member;
    struct model_an *an;     /* the last one is the top */
    struct model_slot *slot; /* [n_msgs][n_an] */
    uint32_t *contributed;   /* [n_msgs] members that have sent theirs */
};

static unsigned domain_index_of(const struct model *m, unsigned rank)
{
    unsigned domain_index = 0;

    for (unsigned r = 0; r < rank; r++)
        domain_index += m->topo.sched.domain[r] == m->topo.sched.domain[rank];
    return domain_index;
}

static unsigned an_index(struct model_group *g, uint16_t node)
{
    unsigned i = 0;

    while (i < g->n_an && g->an[i].node != node)
        i++;
    return i;
}

static int by_depth(const void *a, const void *b)
{
    const struct model_an *x = a, *y = b;

    if (x->depth != y->depth)
        return x->depth > y->depth ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* The nodes between the members' leaves and the top. */
static void find_nodes(struct model *m, struct model_group *g, const struct fab_tree *t,
                       uint16_t top, const uint16_t *leaf)
{
    for (unsigned k = 0; k < g->n; k++)
        for (uint16_t at = leaf[k];; at = t->parent[at]) {
            struct model_an *an = &g->an[g->n_an];

            if (an_index(g, at) < g->n_an)
                break;
            *an = (struct model_an){.node = at};
            for (uint16_t up = at; up != top; up = t->parent[up])
                an->depth++;
            g->n_an++;
            if (at == top)
                break;
        }
    qsort(g->an, g->n_an, sizeof(*g->an), by_depth);
    for (unsigned i = 0; i + 1 < g->n_an; i++) {
        struct model_an *an = &g->an[i];

        an->parent = an_index(g, t->parent[an->node]);
        model_path(m, an->node, 0, t->parent[an->node], 0, &an->up);
        model_path(m, t->parent[an->node], 0, an->node, 0, &an->down);
    }
}

/* Members' paths to their leaves, and hand-offs of the longest way up and down. */
static void find_members(struct model *m, struct model_group *g, const struct fab_tree *t,
                         const uint16_t *leaf)
{
    unsigned down = 0;

    for (unsigned k = 0; k < g->n; k++) {
        struct model_member *x = &g->member[k];
        uint16_t host = model_node(m, x->rank),
                 port = fabric_tree_port(m->fab, t, m->host_of_rank[x->rank]);

        x->an = an_index(g, leaf[k]);
        model_path(m, host, port, leaf[k], 0, &x->up);
        model_path(m, leaf[k], 0, host, port, &x->down);
        if (x->up.crossings > g->an[x->an].crossings)
            g->an[x->an].crossings = x->up.crossings;
    }
    for (unsigned i = 0; i + 1 < g->n_an; i++) {
        unsigned c = g->an[i].crossings + g->an[i].up.crossings;

        if (c > g->an[g->an[i].parent].crossings)
            g->an[g->an[i].parent].crossings = c;
    }
    for (unsigned k = 0; k < g->n; k++) {
        unsigned c = g->member[k].down.crossings;

        for (unsigned i = g->member[k].an; i + 1 < g->n_an; i = g->an[i].parent)
            c += g->an[i].down.crossings;
        down = c > down ? c : down;
    }
    g->top_handoffs = 2 + g->an[g->n_an - 1].crossings + down;
}

/* The tree that joins a group: the one named, or for a rail the first that reaches its members. */
static int find_tree(struct model *m, struct model_group *g)
{
    struct fab_members members;
    uint16_t *host = malloc(3u * g->n * sizeof(*host)), *id = host + g->n, *leaf = id + g->n;
    uint16_t top = FAB_NONE;
    int rc = host ? -ENOTSUP : -ENOMEM;

    for (unsigned k = 0; host && k < g->n; k++)
        host[k] = m->host_of_rank[g->member[k].rank];
    if (host && !comm_members(m->fab, g->n, host, &members, id))
        rc = -EINVAL;
    for (unsigned i = 0; rc == -ENOTSUP && i < m->n_trees; i++) {
        const struct fab_tree *t = &m->fab->trees[m->tree[(i + g->chan) % m->n_trees]];

        top = g->group && i == 0 && g->chan ? FAB_NONE : fab_group_top(m->fab, t, &members);
        if (top == FAB_NONE && !g->group)
            break;
        if (top == FAB_NONE)
            continue;
        for (unsigned k = 0; k < g->n; k++)
            leaf[k] = fab_group_leaf(m->fab, t, id[k], &members);
        find_nodes(m, g, t, top, leaf);
        find_members(m, g, t, leaf);
        rc = 0;
    }
    if (!rc && m->fab->nodes[top].reduce.window && m->fab->nodes[top].reduce.window < g->window)
        g->window = m->fab->nodes[top].reduce.window;
    free(host);
    return rc;
}

static int group_new(struct model *m, unsigned rank, unsigned lane, struct model_group **out)
{
    const struct lane *s = &m->rank[rank].s.lane[lane];
    struct model_group *g = calloc(1, sizeof(*g));
    int rc;

    *out = g;
    if (!g)
        return -ENOMEM;
    g->next = m->aggs;
    m->aggs = g;
    g->group = s->peer, g->chan = s->chan, g->window = m->window, g->n_msgs = s->n;
    g->domain_index = s->peer ? domain_index_of(m, rank) : 0;
    g->member = calloc(m->in.nranks, sizeof(*g->member));
    g->an = calloc(m->fab->n_nodes, sizeof(*g->an));
    g->contributed = calloc(s->n + 1, sizeof(*g->contributed));
    if (!g->member || !g->an || !g->contributed)
        return -ENOMEM;
    for (unsigned r = 0; r < m->in.nranks; r++)
        if (!s->peer || domain_index_of(m, r) == g->domain_index)
            g->member[g->n++].rank = r;
    rc = find_tree(m, g);
    if (rc)
        return rc;
    g->slot = calloc((size_t)s->n * g->n_an + 1, sizeof(*g->slot));
    return g->slot ? 0 : -ENOMEM;
}

int agg_model_begin(struct model *m, unsigned rank, unsigned lane)
{
    struct model_lane *l = &m->rank[rank].lane[lane];
    const struct lane *s = &m->rank[rank].s.lane[lane];
    struct model_group *g = m->aggs;
    int rc = 0;

    while (g && (g->group != s->peer || g->chan != s->chan ||
                 (g->group && g->domain_index != domain_index_of(m, rank))))
        g = g->next;
    if (!g)
        rc = group_new(m, rank, lane, &g);
    if (rc)
        return rc;
    l->agg = g;
    while (g->member[l->member].rank != rank)
        l->member++;
    g->member[l->member].lane = lane;
    return g->n_msgs == s->n ? 0 : -EINVAL;
}

bool agg_model_has_window(const struct model *m, unsigned rank, unsigned lane)
{
    const struct model_lane *l = &m->rank[rank].lane[lane];
    const struct step *st = lane_step(&m->rank[rank].s.lane[lane], l->begun);

    return !l->slots_out || l->slots_out + agg_slots(st->len, m->in.mtu) <= l->agg->window;
}

static struct flight latest(struct flight a, struct flight b)
{
    return (struct flight){a.head > b.head ? a.head : b.head, a.tail > b.tail ? a.tail : b.tail};
}

/* A message over an edge, and its ACK. */
static struct flight send_on_edge(struct model *m, const struct model_path *p,
                                  const struct model_path *back, struct flight f, uint32_t len,
                                  int64_t *left)
{
    f = model_send_path(m, p, f, model_message(AGG_HDR_BYTES + len, m->in.mtu, false), left);
    model_send_small(m, back, f.tail, MODEL_ACK_WIRE);
    return f;
}

/* All members have sent message i: sends it up to the top, and the result down. */
static void send_result(struct model *m, struct model_group *g, uint32_t i)
{
    struct model_slot *slot = &g->slot[(size_t)i * g->n_an];
    unsigned handoffs = 0;

    for (unsigned a = 0; a + 1 < g->n_an; a++) {
        struct model_an *an = &g->an[a];
        struct model_slot *up = &slot[an->parent];
        struct flight f = send_on_edge(m, &an->up, &an->down, slot[a].f, slot[a].up_len, NULL);

        up->f = latest(up->f, f);
        up->up_len = slot[a].up_len > up->up_len ? slot[a].up_len : up->up_len;
        up->down_len = slot[a].down_len > up->down_len ? slot[a].down_len : up->down_len;
    }
    for (unsigned a = g->n_an - 1; a-- > 0;)
        slot[a].f = send_on_edge(m, &g->an[a].down, &g->an[a].up, slot[g->an[a].parent].f,
                                 slot[a].down_len, NULL);
    for (unsigned k = 0; k < g->n; k++) {
        unsigned h = m->rank[g->member[k].rank].lane[g->member[k].lane].handoffs[i];

        handoffs = h > handoffs ? h : handoffs;
    }
    handoffs += g->top_handoffs;
    m->handoffs = handoffs > m->handoffs ? handoffs : m->handoffs;
    for (unsigned k = 0; k < g->n; k++) {
        struct model_member *x = &g->member[k];
        const struct step *st = lane_step(&m->rank[x->rank].s.lane[x->lane], i);
        struct flight f = send_on_edge(m, &x->down, &x->up, slot[x->an].f,
                                       st->dst.buf == BUF_NONE ? 0 : (uint32_t)st->len, NULL);

        m->rank[x->rank].lane[x->lane].handoffs[i] = (uint16_t)handoffs;
        model_event(m, EV_DONE, f.tail + m->fab->costs.gpu_ps, x->rank, x->lane, i);
    }
}

void agg_model_step(struct model *m, unsigned rank, unsigned lane, int64_t now)
{
    struct model_lane *l = &m->rank[rank].lane[lane];
    uint32_t i = l->begun++;
    const struct step *st = lane_step(&m->rank[rank].s.lane[lane], i);
    struct model_group *g = l->agg;
    struct model_member *x = &g->member[l->member];
    struct model_slot *slot = &g->slot[(size_t)i * g->n_an + x->an];
    uint32_t up = st->a.buf == BUF_NONE ? 0 : (uint32_t)st->len;
    uint32_t down = st->dst.buf == BUF_NONE ? 0 : (uint32_t)st->len;
    int64_t left;

    left = now = model_post(m, l, x->up.link[0], now);
    l->slots_out += agg_slots(st->len, m->in.mtu);
    slot->f =
        latest(slot->f, send_on_edge(m, &x->up, &x->down, (struct flight){now, now}, up, &left));
    slot->up_len = up > slot->up_len ? up : slot->up_len;
    slot->down_len = down > slot->down_len ? down : slot->down_len;
    l->link_busy = true;
    model_event(m, EV_TRY, left, rank, lane, i);
    if (++g->contributed[i] == g->n)
        send_result(m, g, i);
}

void agg_model_end(struct model *m, unsigned rank, unsigned lane)
{
    struct model_lane *l = &m->rank[rank].lane[lane];

    l->slots_out -= agg_slots(lane_step(&m->rank[rank].s.lane[lane], l->done)->len, m->in.mtu);
}

void agg_model_free(struct model *m)
{
    while (m->aggs) {
        struct model_group *next = m->aggs->next;

        free(m->aggs->member);
        free(m->aggs->an);
        free(m->aggs->slot);
        free(m->aggs->contributed);
        free(m->aggs);
        m->aggs = next;
    }
}
