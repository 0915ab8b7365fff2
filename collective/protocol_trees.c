/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/protocol_trees.h"

#include "base/assert.h"
#include "fabric/tree_rate.h"
#include "protocols/host/conf.h"
#include "protocols/host/path.h"
#include "protocols/host/protocol_wire.h"

/* ---- whether a protocol's sums go up to the root ---- */

static int64_t some_ps(const struct trib_model *m, uint32_t bytes)
{
    (void)m;
    return 1000000 + (int64_t)bytes;
}

static double some_busiest(const struct trib_model *m, unsigned servers, bool back, double *one)
{
    (void)m;
    if (one)
        *one = 1;
    return back ? 2.0 * servers : servers;
}

static double some_between(const struct trib_model *m, unsigned servers, double packets)
{
    (void)m;
    return servers * packets;
}

static int64_t model_ps(const struct fabric *f, const struct trib_protocol *p, uint64_t tree_bps)
{
    int64_t key[TRIB_KEYS];
    const struct trib_model m = {.key = key,
                                 .nranks = 8,
                                 .count = 1 << 20,
                                 .type =
                                     p->supports(TRIB_INT32, TRIB_SUM) ? TRIB_INT32 : TRIB_FLOAT32,
                                 .payload = PROTO_PAYLOAD(f->mtu),
                                 .overhead = PROTO_OVERHEAD,
                                 .rate_bps = 100000000000,
                                 .ranks_a_link = 1,
                                 .levels = 2,
                                 .leaves = 2,
                                 .window = 1024,
                                 .up_ps = some_ps,
                                 .down_ps = some_ps,
                                 .across_ps = some_ps,
                                 .busiest = some_busiest,
                                 .tree_bps = tree_bps,
                                 .between = some_between};

    proto_conf(f, p, key);
    return p->model(&m);
}

/* Whether the protocol's sums go up to the root. Its formula tells, as the interface has no flag.
 */
static bool climbs(const struct fabric *f, const struct trib_protocol *p)
{
    return p->sw && p->model && model_ps(f, p, 100000000000) != model_ps(f, p, 1000000000);
}

/* ---- rates ---- */

/* The slowest port of a rank. */
static uint64_t port_bps(const struct fabric *f, uint16_t tree, const struct fab_members *m)
{
    const struct proto_ways w = {f, tree == FAB_NONE ? NULL : &f->trees[tree], m};
    unsigned ranks_a_link;

    return proto_rate_bps(&w, &ranks_a_link);
}

static bool trees_rates(const struct fabric *f, bool climbs, const uint16_t *tree, unsigned n,
                        const struct fab_members *m, uint64_t *bps)
{
    if (climbs)
        return fabric_tree_rates(f, tree, n, m, bps);
    for (unsigned i = 0; i < n; i++)
        bps[i] = port_bps(f, tree[i], m);
    return true;
}

static uint64_t sum_of(const uint64_t *bps, unsigned n)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < n; i++)
        sum += bps[i];
    return sum;
}

/* Least rate per rank of a host's ports: no trees can carry more. */
static uint64_t bound_bps(const struct fabric *f, const struct fab_members *m)
{
    uint64_t least = 0;

    for (unsigned h = 0; h < f->n_hosts; h++) {
        const struct fab_node *host = &f->nodes[f->hosts[h]];
        uint64_t sum = 0, ranks = 0;

        for (unsigned i = 0; i < m->ranks_per_host; i++) {
            unsigned id = h * m->ranks_per_host + i;

            ranks += id < FAB_MAX_MEMBERS && fab_members_has(m, id);
        }
        for (unsigned p = 0; ranks && p < host->n_ports; p++)
            sum += host->ports[p].rate_bps / ranks;
        least = sum && (!least || sum < least) ? sum : least;
    }
    return least;
}

/* Whether each host joins the tree by a port that none of those before uses. */
static bool other_ports(const struct fabric *f, const struct protocol_trees *t, uint16_t tree,
                        const struct fab_members *m)
{
    for (unsigned id = 0; id < FAB_MAX_MEMBERS; id++)
        for (unsigned k = 0; k < t->n && fab_members_has(m, id); k++) {
            unsigned h = id / m->ranks_per_host;

            T_ASSERT(h < f->n_hosts, "a member of a host that the fabric does not have");
            const struct proto_ways a = {f, &f->trees[tree], m}, b = {f, &f->trees[t->tree[k]], m};

            if (proto_host_port(&a, h) == proto_host_port(&b, h))
                return false;
        }
    return true;
}

/* Whether all trees together carry more with this one. */
static bool tree_gains(const struct fabric *f, struct protocol_trees *t, uint16_t tree,
                       const struct fab_members *m)
{
    uint64_t bps[COLL_TREES], before;

    if (!t->climbs)
        return other_ports(f, t, tree, m);
    if (!trees_rates(f, true, t->tree, t->n, m, bps))
        return false;
    before = sum_of(bps, t->n);
    if (before + before / 64 >= bound_bps(f, m))
        return false;
    t->tree[t->n] = tree;
    return trees_rates(f, true, t->tree, t->n + 1, m, bps) &&
           sum_of(bps, t->n + 1) > before + before / 64;
}

struct protocol_trees protocol_choose_trees(const struct fabric *f, const struct trib_protocol *p,
                                            const uint16_t *list, unsigned n,
                                            const struct fab_members *m, unsigned most)
{
    struct protocol_trees t = {.climbs = n > 1 && most > 1 && climbs(f, p)};

    most = most < COLL_TREES ? most : COLL_TREES;
    for (unsigned i = 0; i < n && t.n < most; i++)
        if (list[i] < f->n_trees && fab_group_top(f, &f->trees[list[i]], m) != FAB_NONE &&
            (!t.n || tree_gains(f, &t, list[i], m)))
            t.tree[t.n++] = list[i];
    if (!t.n && !p->sw)
        t.tree[t.n++] = FAB_NONE;
    return t;
}

struct sched_trees protocol_shares(const struct fabric *f, const struct protocol_trees *t,
                                   const struct fab_members *m, unsigned without)
{
    struct sched_trees s = {.n = t->n};
    uint16_t used[COLL_TREES];
    uint64_t bps[COLL_TREES];
    unsigned n = 0;
    bool known;

    T_ASSERT(t->n <= COLL_TREES, "a job with more trees than there may be");
    for (unsigned k = 0; k < t->n; k++)
        if (!(without >> k & 1))
            used[n++] = t->tree[k];
    known = t->n > 1 && trees_rates(f, t->climbs, used, n, m, bps);
    n = 0;
    for (unsigned k = 0; k < t->n; k++)
        if (!(without >> k & 1)) {
            s.bps[k] = known && bps[n] ? bps[n] : 1;
            n++;
        }
    return s;
}
