/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages through aggregation nodes: up from every member to the top of the group's tree, and down
 * again. A node forwards a message, frame by frame, once all children have sent theirs. The window
 * stops members with too many messages without a result. Each hop is an event, so messages of all
 * edges meet on links in order of time. If edges of a group share a link, messages are sent in
 * parts of one frame, which take turns there as real frames do. Otherwise a node would have to wait
 * until the messages of all but one child are complete.
 */
#include "model/cost_agg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PART_FRAMES 100000u /* with more frames of all members, a part has several frames */

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

/* Finds the nodes between the members' leaves and the top. */
static void find_nodes(struct model *m, struct model_group *g, const struct fab_tree *t,
                       uint16_t top, const uint16_t *leaf)
{
    for (unsigned k = 0; k < g->n; k++)
        for (uint16_t at = leaf[k];; at = t->parent[at]) {
            struct model_an *an = &g->an[g->n_an];

            if (an_index(g, at) < g->n_an)
                break;
            *an = (struct model_an){
                .node = at, .first_an = NOBODY, .first_member = NOBODY, .sibling = NOBODY};
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

/* Makes a list of each node's children, in order. */
static void find_children(struct model_group *g)
{
    for (uint32_t c = g->n_an - 1; c-- > 0;) {
        struct model_an *up = &g->an[g->an[c].parent];

        g->an[c].sibling = up->first_an;
        up->first_an = c;
    }
    for (uint32_t k = g->n; k-- > 0;) {
        struct model_an *up = &g->an[g->member[k].an];

        g->member[k].sibling = up->first_member;
        up->first_member = k;
    }
}

/* Finds the members' paths to their leaves, and the hand-offs of the longest path up and down. */
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
        g->an[x->an].n_children++;
        if (x->up.crossings > g->an[x->an].crossings)
            g->an[x->an].crossings = x->up.crossings;
    }
    for (unsigned i = 0; i + 1 < g->n_an; i++) {
        unsigned c = g->an[i].crossings + g->an[i].up.crossings;

        g->an[g->an[i].parent].n_children++;
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

/* Index of the group's tree in the job's list: the channel's, or that of the group's rail. n_trees:
 * none; -ENOMEM. */
static int tree_index(struct model *m, const struct model_group *g)
{
    unsigned n = m->topo.nranks;
    struct fab_rails rails = {.n = n, .host = m->host_of_rank};
    uint16_t *place;
    int rc;

    if (!g->group)
        return g->chan < m->n_trees ? (int)g->chan : (int)m->n_trees;
    place = calloc(2ul * n, sizeof(*place));
    if (!place)
        return -ENOMEM;
    rails.place = place;
    for (unsigned r = 0; r < n; r++)
        place[r] = place[n + m->topo.domain[r]]++;
    rc = fabric_rail_tree(m->fab, m->tree, m->n_trees, &rails, g->domain_index);
    free(place);
    return rc;
}

/* Finds the group's tree, and the group's nodes on it. */
static int find_tree(struct model *m, struct model_group *g)
{
    struct fab_members members;
    uint16_t *host = malloc(3u * g->n * sizeof(*host)), *id = host + g->n, *leaf = id + g->n;
    const struct fab_tree *t;
    uint16_t top = FAB_NONE;
    int rc = host ? 0 : -ENOMEM, i = tree_index(m, g);

    for (unsigned k = 0; host && k < g->n; k++)
        host[k] = m->host_of_rank[g->member[k].rank];
    if (host && !topo_members(m->fab, g->n, host, &members, id))
        rc = -EINVAL;
    rc = rc ? rc : i < 0 ? i : i >= (int)m->n_trees ? -ENOTSUP : 0;
    t = rc ? NULL : &m->fab->trees[m->tree[i]];
    top = t ? fab_group_top(m->fab, t, &members) : FAB_NONE;
    if (t && top == FAB_NONE)
        rc = -ENOTSUP;
    if (!rc) {
        for (unsigned k = 0; k < g->n; k++)
            leaf[k] = fab_group_leaf(m->fab, t, id[k], &members);
        find_nodes(m, g, t, top, leaf);
        find_members(m, g, t, leaf);
        find_children(g);
    }
    if (!rc && m->fab->nodes[top].reduce.window && m->fab->nodes[top].reduce.window < g->window)
        g->window = m->fab->nodes[top].reduce.window;
    free(host);
    return rc;
}

static uint32_t packets_of(const struct model *m, uint64_t len)
{
    return agg_slots(len, m->in.mtu);
}

/* Chooses into how many parts the messages of a lane are cut. */
static void find_parts(struct model *m, struct model_group *g, const struct lane *s)
{
    uint64_t frames = 0;
    uint32_t most = 1;

    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t n = packets_of(m, lane_step(s, i)->len);

        most = n > most ? n : most;
        frames += n;
    }
    g->part_frames = (uint32_t)(1 + frames * g->n / PART_FRAMES);
    g->parts = (most - 1) / g->part_frames + 1;
    for (uint32_t i = 0; i < s->n; i++)
        g->parts_of[i] = (packets_of(m, lane_step(s, i)->len) - 1) / g->part_frames + 1;
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
    g->parts_of = calloc((size_t)s->n + 1, sizeof(*g->parts_of));
    if (!g->member || !g->an || !g->parts_of)
        return -ENOMEM;
    for (unsigned r = 0; r < m->in.nranks; r++)
        if (!s->peer || domain_index_of(m, r) == g->domain_index)
            g->member[g->n++].rank = r;
    rc = find_tree(m, g);
    if (rc)
        return rc;
    find_parts(m, g, s);
    g->slot = calloc((size_t)s->n * g->parts * g->n_an + 1, sizeof(*g->slot));
    return g->slot ? 0 : -ENOMEM;
}

int agg_model_begin(struct model *m, unsigned rank, unsigned lane)
{
    struct model_lane *l = &m->rank[rank].lane[lane];
    const struct lane *s = &m->rank[rank].s.lane[lane];
    struct model_group *g = m->aggs;
    uint32_t up;
    unsigned port;
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
    up = g->member[l->member].up.link[0];
    port = up & 1 ? m->fab->links[up / 2].b_port : m->fab->links[up / 2].a_port;
    l->notice = fabric_notice(m->fab, &m->fab->nodes[model_node(m, rank)], port);
    l->free_ps = &m->rank[rank].free_ps[port];
    l->is_long = true; /* results have a solicited event (switch/reduce/fanout.c) */
    return g->n_msgs == s->n ? 0 : -EINVAL;
}

bool agg_model_has_window(const struct model *m, unsigned rank, unsigned lane)
{
    const struct model_lane *l = &m->rank[rank].lane[lane];
    const struct step *st = lane_step(&m->rank[rank].s.lane[lane], l->begun);

    if (l->begun - l->done > m->window / AGG_MSG_PKTS) /* headers in flight (transport/agg.c) */
        return false;
    return !l->slots_out || l->slots_out + agg_slots(st->len, m->in.mtu) <= l->agg->window;
}

void agg_model_step(struct model *m, unsigned rank, unsigned lane, int64_t now)
{
    struct model_lane *l = &m->rank[rank].lane[lane];
    uint32_t i = l->begun++;

    l->slots_out += agg_slots(lane_step(&m->rank[rank].s.lane[lane], i)->len, m->in.mtu);
    l->sending = true;
    run_posted(m, rank, lane, model_post(m, l, l->agg->member[l->member].up.link[0], now), now);
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
        free(m->aggs->parts_of);
        free(m->aggs);
        m->aggs = next;
    }
}
