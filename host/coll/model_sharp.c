/*
 * Reduction in the switches as a pipeline of packets: up from every member to the top of the
 * group's tree, and down again. Aggregation nodes pass a packet on when all children have sent
 * theirs, so the time is that of all packets on the slowest link, and once the time of one packet
 * through every hop. When the window is shorter than that round trip, it is the window that holds
 * messages back.
 */
#include "host/coll/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MANY_MESSAGES 4096u /* enough to be steady */

struct sharp_sim {
    struct model *m;
    const struct fab_tree *tree;
    struct fab_members members;
    uint16_t *id; /* [nranks] member ids */
    uint8_t *on;  /* [n_nodes] aggregation nodes counted already */
    uint16_t top;
    uint32_t *up, *down; /* [n_dir] flows of either kind */
    uint32_t window;
};

static void count_flow(const struct fabric *fab, uint16_t from, uint16_t to, uint32_t *flows,
                       uint32_t *acks)
{
    struct model_path p;

    model_path(fab, from, to, &p);
    for (unsigned h = 0; h < p.n; h++) {
        flows[p.link[h]]++;
        acks[p.link[h] ^ 1]++;
    }
}

/* Flows of all links. An edge between two nodes of the tree is one flow, whatever the number of
 * members below. */
static void count_flows(struct sharp_sim *g)
{
    const struct fabric *fab = g->m->fab;

    for (unsigned r = 0; r < g->m->in.nranks; r++) {
        uint16_t host = model_node(g->m, r);
        uint16_t at = fab_group_leaf(fab, g->tree, g->id[r], &g->members);

        count_flow(fab, host, at, g->up, g->m->acks);
        count_flow(fab, at, host, g->down, g->m->acks);
        while (at != g->top && !g->on[at]) {
            g->on[at] = 1;
            count_flow(fab, at, g->tree->parent[at], g->up, g->m->acks);
            count_flow(fab, g->tree->parent[at], at, g->down, g->m->acks);
            at = g->tree->parent[at];
        }
    }
}

/* Time of one frame over a path. Where several flows share a link, the slowest of their frames
 * counts. */
static int64_t hop_time(const struct sharp_sim *g, uint16_t from, uint16_t to,
                        const uint32_t *flows, uint64_t frame, unsigned *crossings)
{
    struct model_path p;
    int64_t t = 0;

    model_path(g->m->fab, from, to, &p);
    for (unsigned h = 0; h < p.n; h++)
        t += model_ps(g->m, p.link[h], frame * flows[p.link[h]]) + model_latency(g->m, p.link[h]);
    *crossings += model_crossings(g->m->fab, from, &p);
    return t;
}

/* The longest way up and the longest way down, for a frame. */
static int64_t round_trip(const struct sharp_sim *g, uint64_t frame, unsigned *handoffs)
{
    const struct fabric *fab = g->m->fab;
    int64_t up_max = 0, down_max = 0;
    unsigned cross_max = 0;

    for (unsigned r = 0; r < g->m->in.nranks; r++) {
        uint16_t host = model_node(g->m, r);
        uint16_t at = fab_group_leaf(fab, g->tree, g->id[r], &g->members);
        unsigned crossings = 0;
        int64_t up = hop_time(g, host, at, g->up, frame, &crossings);
        int64_t down = hop_time(g, at, host, g->down, frame, &crossings);

        for (; at != g->top; at = g->tree->parent[at]) {
            up += hop_time(g, at, g->tree->parent[at], g->up, frame, &crossings);
            down += hop_time(g, g->tree->parent[at], at, g->down, frame, &crossings);
        }
        up_max = up > up_max ? up : up_max;
        down_max = down > down_max ? down : down_max;
        cross_max = crossings > cross_max ? crossings : cross_max;
    }
    *handoffs = 2 + cross_max;
    return up_max + down_max;
}

/* Time of a message on the slowest link of a direction, ACKs of the other direction's messages
 * included. */
static int64_t slowest(const struct sharp_sim *g, const uint32_t *flows, uint64_t bytes,
                       bool with_acks)
{
    int64_t max = 0;

    for (uint32_t d = 0; d < g->m->n_dir; d++) {
        uint64_t b = flows[d] * bytes;
        int64_t t =
            flows[d] ? model_ps(g->m, d, b + (with_acks ? MODEL_ACK_WIRE * g->m->acks[d] : 0)) : 0;

        max = t > max ? t : max;
    }
    return max;
}

struct pace {
    int64_t up, down, fill;
};

static struct pace pace_of(const struct sharp_sim *g, uint64_t len, unsigned *handoffs)
{
    struct model_msg msg = model_message(AGG_HDR_BYTES + len, g->m->in.mtu, false);
    struct pace p = {.up = slowest(g, g->up, msg.wire, true),
                     .down = slowest(g, g->down, msg.wire, true)};

    /* Of the slowest link one frame is in `up` already, and the ACKs there come behind the message.
     */
    p.fill = round_trip(g, msg.frame, handoffs) - slowest(g, g->up, msg.frame, false) +
             slowest(g, g->up, msg.wire, false) - p.up;
    return p;
}

/* Time of `n` messages, the last one `tail` bytes long; *half: of half as many. */
static int simulate(const struct sharp_sim *g, uint64_t n, uint64_t tail, int64_t *time,
                    int64_t *half, unsigned *handoffs)
{
    uint64_t full = AGG_MSG_BYTES(g->m->in.mtu), oldest = 0, out = 0;
    struct pace whole = pace_of(g, n > 1 ? full : tail, handoffs),
                last = pace_of(g, tail, handoffs);
    int64_t *result = malloc(n * sizeof(*result)), up = 0;

    if (!result)
        return -ENOMEM;
    /* Frames of a short last message queue behind the long ones before it. */
    last.fill = last.fill > whole.fill ? last.fill : whole.fill;
    for (uint64_t k = 0; k < n; k++) {
        const struct pace *p = k == n - 1 ? &last : &whole;
        uint32_t slots = agg_slots(k == n - 1 ? tail : full, g->m->in.mtu);

        for (; out + slots > g->window && oldest < k; oldest++) {
            up = result[oldest] > up ? result[oldest] : up;
            out -= agg_slots(full, g->m->in.mtu);
        }
        out += slots;
        up += p->up;
        result[k] = up + p->fill;
        if (k && result[k] < result[k - 1] + p->down)
            result[k] = result[k - 1] + p->down;
    }
    *time = result[n - 1];
    *half = result[n / 2 ? n / 2 - 1 : 0];
    free(result);
    return 0;
}

static int predict(struct sharp_sim *g, struct coll_prediction *p)
{
    struct model *m = g->m;
    uint64_t bytes = m->in.count * dtype_size(m->in.type), full = AGG_MSG_BYTES(m->in.mtu);
    uint64_t n = (bytes + full - 1) / full, tail = bytes - (n - 1) * full;
    uint64_t sim = n < MANY_MESSAGES ? n : MANY_MESSAGES;
    double wire =
        (double)(n - 1) * (double)model_message(AGG_HDR_BYTES + full, m->in.mtu, false).wire;
    int64_t half;
    int rc;

    count_flows(g);
    rc = simulate(g, sim, n > sim ? full : tail, &p->time_ps, &half, &p->handoffs);
    if (rc)
        return rc;
    if (n > sim)
        p->time_ps += (int64_t)((double)(p->time_ps - half) / (double)(sim - sim / 2) *
                                ((double)(n - 1 - sim) + (double)tail / (double)full));
    wire += (double)model_message(AGG_HDR_BYTES + tail, m->in.mtu, false).wire;
    for (uint32_t d = 0; d < m->n_dir; d++)
        m->bytes[d] = wire * (g->up[d] + g->down[d]) + (double)n * MODEL_ACK_WIRE * m->acks[d];
    return 0;
}

int model_sharp(struct model *m, uint16_t tree, uint32_t window, struct coll_prediction *p)
{
    const struct fabric *fab = m->fab;
    struct sharp_sim g = {.m = m, .window = agg_window(fab, window)};
    int rc = -ENOMEM;

    if (tree >= fab->n_trees)
        return -ENOTSUP;
    g.tree = &fab->trees[tree];
    g.id = calloc(m->in.nranks, sizeof(*g.id));
    g.on = calloc(fab->n_nodes, 1);
    g.up = calloc(m->n_dir + 1, sizeof(*g.up));
    g.down = calloc(m->n_dir + 1, sizeof(*g.down));
    if (g.id && g.on && g.up && g.down) {
        rc = comm_members(fab, m->in.nranks, m->host_of_rank, &g.members, g.id) ? 0 : -EINVAL;
        g.top = rc ? FAB_NONE : fab_group_top(fab, g.tree, &g.members);
        if (!rc && g.top == FAB_NONE)
            rc = -ENOTSUP;
    }
    if (!rc && g.window > fab->nodes[g.top].reduce.window && fab->nodes[g.top].reduce.window)
        g.window = fab->nodes[g.top].reduce.window;
    if (!rc)
        rc = predict(&g, p);
    free(g.id);
    free(g.on);
    free(g.up);
    free(g.down);
    return rc;
}
