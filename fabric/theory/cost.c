/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/theory/cost.h"

#include <math.h>

/* Whether all switches of a role reduce; multimem: whether they support multimem. */
static bool all_do(const struct fabric *f, enum fab_role role, bool multimem)
{
    bool any = false;

    for (unsigned i = 0; i < f->n_switches; i++) {
        const struct fab_node *n = &f->nodes[f->switches[i]];

        if (n->role != role)
            continue;
        any = true;
        if (!(multimem ? n->multimem : n->reduce.on))
            return false;
    }
    return any;
}

void cost_levels(const struct fabric *f, struct cost_levels *l)
{
    struct fab_level lv[FAB_MAX_LEVELS];

    l->n = fabric_levels(f, lv, FAB_MAX_LEVELS);
    for (unsigned i = 0; i < l->n; i++)
        l->lv[i] = (struct cost_level){.role = lv[i].role,
                                       .tier = lv[i].tier,
                                       .below = lv[i].hosts / lv[i].members,
                                       .hosts = lv[i].hosts,
                                       .switches = lv[i].switches / lv[i].groups,
                                       .child_Bps = (double)lv[i].member_bps / 8,
                                       .island = lv[i].island_hosts,
                                       .island_local = lv[i].island_local,
                                       .island_stride = lv[i].island_stride,
                                       .island_Bps = (double)lv[i].island_bps / 8,
                                       .reduces = all_do(f, lv[i].role, false),
                                       .multimem = all_do(f, lv[i].role, true)};
}

static double cost_least(double a, double b)
{
    return a < b ? a : b;
}

static double most(double a, double b)
{
    return a > b ? a : b;
}

double cost_children(const struct cost_levels *l, unsigned i, struct cost_axis a)
{
    const struct cost_level *v = &l->lv[i];
    double lowest = most((double)a.inner, v->below),
           highest = cost_least((double)a.inner * (double)a.degree, v->hosts);

    return highest > lowest ? highest / lowest : 1;
}

double cost_gpu_Bps(const struct cost_levels *l, unsigned i, struct cost_axis a)
{
    const struct cost_level *v = &l->lv[i];
    double w = v->child_Bps / v->below;

    /* Without a switch a GPU has a cable to each other one, and uses those to members only (F17). */
    if (v->role == FAB_ROLE_HOST)
        w *= (cost_children(l, i, a) - 1) / (v->hosts - 1);
    return w;
}

void cost_record(struct cost *c, unsigned i, double s)
{
    c->level_s[i] = most(c->level_s[i], s);
    if (s > c->s) {
        c->s = s;
        c->binds = i;
    }
}

/* Time of a level: B / (max(Y, S_(i-1)) W_i) with W_i per GPU. */
static double once(const struct cost_levels *l, unsigned i, struct cost_axis a, double bytes)
{
    return bytes / (most((double)a.inner, l->lv[i].below) * cost_gpu_Bps(l, i, a));
}

static struct cost by_levels(const struct cost_levels *l, struct cost_axis a, double bytes,
                             const enum cost_way way[FAB_MAX_LEVELS], bool through)
{
    struct cost c = {0};

    for (unsigned i = 0; i < l->n; i++) {
        double d = cost_children(l, i, a);

        if (d <= 1)
            continue;
        if (through && l->lv[i].role != FAB_ROLE_NVSWITCH)
            d = (double)a.inner * (double)a.degree / most((double)a.inner, l->lv[i].below);
        cost_record(&c, i,
                    once(l, i, a, bytes) * (way[i] == COST_REDUCED      ? 1
                                            : way[i] == COST_ALL_REDUCE ? 2 * (d - 1) / d
                                                                        : (d - 1) / d));
    }
    return c;
}

struct cost cost_collective(const struct cost_levels *l, struct cost_axis a, double bytes,
                            const enum cost_way way[FAB_MAX_LEVELS])
{
    return by_levels(l, a, bytes, way, false);
}

struct cost cost_through(const struct cost_levels *l, struct cost_axis a, double bytes,
                         const enum cost_way way[FAB_MAX_LEVELS])
{
    return by_levels(l, a, bytes, way, true);
}

struct cost cost_rings(const struct cost_levels *l, struct cost_axis a, double bytes, bool reduce)
{
    double n = (double)a.degree;
    struct cost c = {0};

    for (unsigned i = 0; i < l->n; i++)
        if (cost_children(l, i, a) > 1)
            cost_record(&c, i, (reduce ? 2 : 1) * (n - 1) / n * once(l, i, a, bytes));
    return c;
}

/* GPUs of a node; 1: there are no nodes. */
static double node_gpus(const struct cost_levels *l)
{
    return l->n && l->lv[0].role == FAB_ROLE_NVSWITCH ? l->lv[0].hosts : 1;
}

/* Whether level i joins islands, such as rails, which are smaller than its children. */
static bool joins_islands(const struct cost_level *v)
{
    return v->island > 1 && v->island < v->below && v->island_Bps > 0;
}

/* Flows of rings that leave an island of level i: one from each node's last member to the next node's
 * first, if the two are not on one island. */
static double ring_flows(const struct cost_levels *l, unsigned i, struct cost_axis a)
{
    const struct cost_level *v = &l->lv[i];
    double node = node_gpus(l), y = (double)a.inner,
           islands = v->island_local > 1 ? v->island_stride : node, /* on which a node's GPUs are */
        nodes = cost_least(v->island / v->island_local, ceil(y * (double)a.degree / node));

    if (!joins_islands(v) || y >= node || nodes <= 1)
        return 0;
    if (v->island_stride == 1 && v->island_local > 1)
        return nodes * cost_least(y, v->island_local);
    return fmod(node - y, islands) > 0 ? nodes * ceil(y / islands) : 0;
}

/* The highest level that the members span. */
static unsigned top_level(const struct cost_levels *l, struct cost_axis a)
{
    unsigned top = 0;

    for (unsigned i = 0; i < l->n; i++)
        top = cost_children(l, i, a) > 1 ? i : top;
    return top;
}

struct cost cost_ring(const struct cost_levels *l, struct cost_axis a, double bytes, bool reduce)
{
    double n = (double)a.degree, sent = (reduce ? 2 : 1) * (n - 1) / n * bytes;
    bool first = true; /* beyond GPU nodes: there each GPU has a port, but higher up each flow has
                          a cable */
    unsigned top = top_level(l, a);
    struct cost c = {0};

    for (unsigned i = 0; i < l->n; i++) {
        const struct cost_level *v = &l->lv[i];
        bool node = v->role == FAB_ROLE_NVSWITCH;
        double flows = ring_flows(l, i, a);

        if (flows > 0)
            cost_record(&c, i, flows * sent / ((double)a.inner * v->island_Bps));
        /* A node that is alone on its leaves sends through them also what goes on to other leaves. */
        if (cost_children(l, i, a) <= 1 && (node || !first || i > top))
            continue;
        cost_record(&c, i,
                    node || first ? sent / ((double)a.inner * cost_gpu_Bps(l, i, a))
                                  : sent / most(v->child_Bps, 1));
        first &= node;
    }
    return c;
}

/* Bandwidth from a GPU to another one of its level's group: NVLink within a node, else the narrowest
 * level. */
static double pair_Bps(const struct cost_levels *l, unsigned top, struct cost_axis a)
{
    double bps = 0;

    if (l->lv[top].role == FAB_ROLE_NVSWITCH)
        return cost_gpu_Bps(l, top, a);
    for (unsigned i = 0; i <= top; i++)
        if (l->lv[i].role != FAB_ROLE_NVSWITCH)
            bps = bps > 0 ? cost_least(bps, cost_gpu_Bps(l, i, a)) : cost_gpu_Bps(l, i, a);
    return bps;
}

struct cost cost_halving(const struct cost_levels *l, struct cost_axis a, double bytes)
{
    struct cost c = {0};
    double sum = 0, longest = 0;

    for (uint64_t g = a.degree; g > 1; g /= 2) {
        unsigned i = 0;
        double s;

        bytes /= 2;
        while (i + 1 < l->n && l->lv[i].hosts < a.inner * g)
            i++;
        s = 2 * bytes / ((double)a.inner * pair_Bps(l, i, a));
        c.level_s[i] += s;
        sum += s;
    }
    for (unsigned i = 0; i < l->n; i++)
        if (c.level_s[i] > longest) {
            longest = c.level_s[i];
            c.binds = i;
        }
    c.s = sum;
    return c;
}

unsigned cost_steps_ring(unsigned n)
{
    return 2 * (n - 1);
}

unsigned cost_steps_halving(unsigned n)
{
    return n && !(n & (n - 1)) ? 2 * (unsigned)__builtin_ctz(n) : 0;
}

struct cost cost_flat_sharp(const struct cost_levels *l, struct cost_axis a, double bytes)
{
    /* that leave a child: at the lowest level one from each of its GPUs, then a sum from each of its leaves,
     * then one sum, of which each spine has a share */
    double vectors = 0;
    unsigned top = top_level(l, a);
    struct cost c = {0};

    for (unsigned i = 0; i < l->n; i++) {
        const struct cost_level *v = &l->lv[i];

        if (v->role == FAB_ROLE_NVSWITCH || (vectors > 0 && i > top))
            continue;
        cost_record(&c, i, bytes * (vectors > 0 ? vectors : v->below) / v->child_Bps);
        vectors = vectors > 0 ? 1 : v->switches;
    }
    return c;
}

double cost_share(enum cost_sparsity s, double k, double shards)
{
    switch (s) {
    case COST_SPARSE:
        return cost_least(k / shards, 1);
    case COST_DRAWN:
        return 1 - pow((shards - 1) / shards, k);
    default:
        return 1;
    }
}

struct cost cost_alltoall_forwarded(const struct cost_levels *l, struct cost_axis a, double bytes,
                                    enum cost_sparsity s, double k)
{
    double n = (double)a.degree;
    struct cost c = {0};

    for (unsigned i = 0; i < l->n; i++) {
        const struct cost_level *v = &l->lv[i];
        /* members below a child, and members that they reach through this level */
        double h = most(v->below / (double)a.inner, 1),
               reached =
                   v->role == FAB_ROLE_NVSWITCH ? cost_least(v->hosts / (double)a.inner, n) : n;

        if (cost_children(l, i, a) > 1)
            cost_record(&c, i,
                        bytes * h * (reached - h) / (n * n) /
                            (most((double)a.inner, v->below) * cost_gpu_Bps(l, i, a)) *
                            cost_share(s, k, n / h));
    }
    return c;
}

/* Counts the members of the first member's collective in its GPU node, and in the node's part of an island.
 * The part is every island_stride-th GPU, the members are every inner-th one. */
static void count_local(const struct cost_level *v, struct cost_axis a, double node, double *all,
                        double *own)
{
    uint64_t x = a.inner, y = v->island_stride, period;

    while (y) {
        uint64_t rest = x % y;

        x = y;
        y = rest;
    }
    period = a.inner / x; /* one of so many GPUs of the part is a member */
    *all = most(cost_least(node / (double)a.inner, (double)a.degree), 1);
    *own = cost_least(most(ceil(v->island_local / (double)period), 1), *all);
}

/* Time of the data that leave the islands below level i, if islands are smaller than its children. */
static double between_islands(const struct cost_levels *l, unsigned i, struct cost_axis a,
                              double pair_bytes, enum cost_sparsity s, double k)
{
    const struct cost_level *v = &l->lv[i];
    double node = node_gpus(l), y = (double)a.inner, nodes = ceil(y * (double)a.degree / node), all,
           own, inside, out;

    if (!joins_islands(v))
        return 0;
    count_local(v, a, node, &all, &own);
    nodes = cost_least(nodes, v->island / v->island_local); /* those of the island with members */
    inside = y > node ? most(floor(nodes * node / y), 1) : nodes * own;
    out = (double)a.degree - inside - (all - own);
    if (out <= 0)
        return 0;
    /* All GPUs of the island in these nodes send, because the groups of `inner` do so at the same time. */
    return nodes * v->island_local * out * pair_bytes / v->island_Bps *
           cost_share(s, k, (double)a.degree / inside);
}

struct cost cost_alltoall(const struct cost_levels *l, struct cost_axis a, double bytes,
                          enum cost_sparsity s, double k)
{
    struct cost c = cost_alltoall_forwarded(l, a, bytes, s, k);
    double n = (double)a.degree;

    for (unsigned i = 0; i < l->n; i++)
        cost_record(&c, i, between_islands(l, i, a, bytes / ((double)a.inner * n * n), s, k));
    return c;
}

struct cost cost_alltoall_rails(const struct cost_levels *l, struct cost_axis a, double bytes)
{
    struct cost c = cost_alltoall_forwarded(l, a, bytes, COST_DENSE, 0);
    double n = (double)a.degree, local = l->n ? cost_children(l, 0, a) : 1;

    /* Each member of a node gets from each other one the data for its rail. */
    if (local > 1 && l->lv[0].role == FAB_ROLE_NVSWITCH)
        cost_record(&c, 0,
                    bytes / (double)a.inner * (local - 1) / (local * n) / cost_gpu_Bps(l, 0, a));
    return c;
}

struct cost_bytes cost_bytes_reduced(double bytes, unsigned n, bool own)
{
    double shard = bytes / n, others = own ? bytes : bytes - shard;

    return (struct cost_bytes){.gpu_out = others + shard,
                               .gpu_in = shard + others,
                               .switch_in = n * (others + shard),
                               .switch_out = n * (shard + others)};
}

/* Each GPU has a NIC and sends its shard once; the switches copy it to the M - 1 other nodes. */
struct cost_bytes cost_bytes_leaf(double bytes, unsigned nodes, unsigned gpus)
{
    double gpu = bytes / nodes / gpus;

    return (struct cost_bytes){.gpu_out = gpu,
                               .gpu_in = gpu * (nodes - 1),
                               .switch_in = bytes,
                               .switch_out = bytes * (nodes - 1)};
}

/* The GPU already holds the shards of its rail, B / N, so its own part need not come back. */
struct cost_bytes cost_bytes_node(double bytes, unsigned gpus)
{
    double gpu = bytes / gpus;

    return (struct cost_bytes){.gpu_out = gpu,
                               .gpu_in = bytes - gpu,
                               .switch_in = bytes,
                               .switch_out = bytes * (gpus - 1)};
}
