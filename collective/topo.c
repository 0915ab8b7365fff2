/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/topo.h"
#include "base/assert.h"
#include "aggregation/mm_proto.h"
#include "fabric/tree_rate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

unsigned topo_channels(const struct topo *t, unsigned a, unsigned b, struct fab_channel *ch,
                       unsigned max)
{
    unsigned n = fabric_channels(t->fab, t->host_of_rank[a], t->host_of_rank[b], ch, max);

    return n < max ? n : max;
}

static unsigned channels_rates(void *ctx, unsigned from, unsigned peer, uint64_t *rate_bps,
                               unsigned max)
{
    const struct topo *t = ctx;
    struct fab_channel ch[SCHED_MAX_CHANS];
    unsigned n = topo_channels(t, from, peer, ch, max < SCHED_MAX_CHANS ? max : SCHED_MAX_CHANS);

    for (unsigned i = 0; i < n; i++)
        rate_bps[i] = ch[i].rate_bps;
    return n;
}

/* Each rank's GPU node in order of appearance; a rank without a node has one of its own. */
static int number_domains(const struct fabric *fab, unsigned nranks, const uint16_t *host_of_rank,
                          uint16_t *domain)
{
    uint16_t next = 0, *number = malloc(FAB_NONE * sizeof(*number));

    if (!number)
        return -ENOMEM;
    memset(number, 0xff, FAB_NONE * sizeof(*number));
    for (unsigned r = 0; r < nranks; r++) {
        uint16_t d = fabric_domain(fab, host_of_rank[r]);

        if (d == FAB_NONE)
            domain[r] = next++;
        else if (number[d] == FAB_NONE)
            domain[r] = number[d] = next++;
        else
            domain[r] = number[d];
    }
    free(number);
    return 0;
}

/* Longest latency of a rank's links to planes. */
static int64_t plane_latency(const struct topo *t, unsigned rank)
{
    const struct fab_node *h = &t->fab->nodes[t->fab->hosts[t->host_of_rank[rank]]];
    int64_t ps = 0;

    for (uint16_t p = 0; p < h->n_ports; p++)
        if (h->ports[p].link != FAB_NONE &&
            t->fab->nodes[h->ports[p].peer_node].role == FAB_ROLE_NVSWITCH) {
            int64_t link = mm_link_ps(t->fab, &h->ports[p]);

            ps = link > ps ? link : ps;
        }
    return ps;
}

/* Whether all planes of the ranks' nodes offer multimem. Counts the ranks of a node. A GPU is one
 * member: ranks that share one (they are neighbours then) cannot use multimem. */
static bool multimem(struct topo *t)
{
    uint16_t plane[SCHED_MAX_CHANS], members[FAB_MAX_MEMBERS] = {0};
    int64_t ps;

    for (unsigned r = 0; r < t->nranks; r++) {
        uint16_t d = fabric_domain(t->fab, t->host_of_rank[r]);
        unsigned n = d == FAB_NONE ? 0 : fabric_domain_planes(t->fab, d, plane, SCHED_MAX_CHANS);

        if (!n || (r && t->host_of_rank[r] == t->host_of_rank[r - 1]))
            return false;
        ps = plane_latency(t, r);
        t->sched.plane_ps = ps > t->sched.plane_ps ? ps : t->sched.plane_ps;
        T_ASSERT(t->domain[r] < t->nranks, "a rank of a GPU node that was not numbered");
        members[t->domain[r]]++;
        t->most = members[t->domain[r]] > t->most ? members[t->domain[r]] : t->most;
        if (members[t->domain[r]] > 1)
            continue;
        for (unsigned i = 0; i < n && i < SCHED_MAX_CHANS; i++)
            if (!t->fab->nodes[plane[i]].multimem)
                return false;
    }
    return t->most <= ARITH_MAX_INPUTS;
}

/*
 * Number of receive slots with which a lane keeps its channel full: those for messages that arrive
 * while a program processes one, posts its slot again and sends the credit, times two for short
 * messages.
 */
static unsigned slots_for(const struct fabric *f)
{
    uint64_t rate = 0, bytes;
    unsigned n = SCHED_SLOTS;

    for (unsigned h = 0; h < f->n_hosts; h++)
        for (unsigned p = 0; p < f->nodes[f->hosts[h]].n_ports; p++)
            if (f->nodes[f->hosts[h]].ports[p].rate_bps > rate)
                rate = f->nodes[f->hosts[h]].ports[p].rate_bps;
    bytes = (uint64_t)((unsigned __int128)rate *
                       (uint64_t)(fabric_longest_notice_ps(f) + f->transport.round_trip_ps) /
                       8000000000000ull);
    while (n < SCHED_SLOTS_MAX && (uint64_t)n * SCHED_SLICE_MAX < 2 * bytes)
        n *= 2;
    return n;
}

int topo_init(struct topo *t, const struct fabric *fab, unsigned rank, unsigned nranks,
              const uint16_t *host_of_rank, unsigned trees)
{
    uint16_t *domain = malloc(nranks * sizeof(*domain));

    if (!domain || number_domains(fab, nranks, host_of_rank, domain)) {
        free(domain);
        return -ENOMEM;
    }
    *t = (struct topo){.fab = fab,
                       .rank = rank,
                       .nranks = nranks,
                       .host_of_rank = host_of_rank,
                       .domain = domain,
                       .sched = {.domain = domain,
                                 .channels = channels_rates,
                                 .ctx = t,
                                 .trees = trees,
                                 .slots = slots_for(fab),
                                 .steps = fab->costs.nvlink.step_ps || fab->costs.network.step_ps}};
    t->sched.multimem = multimem(t);
    return 0;
}

void topo_free(struct topo *t)
{
    free(t->domain);
    t->domain = NULL;
}

void topo_use_trees(struct topo *t, const uint16_t *tree, unsigned n, const struct fab_members *m)
{
    uint64_t bps[COLL_TREES] = {0};
    bool differ = false;

    t->sched.trees = n;
    memset(t->sched.tree_bps, 0, sizeof(t->sched.tree_bps));
    if (n < 2 || n > COLL_TREES || !m || !m->ranks_per_host)
        return;
    if (!fabric_tree_rates(t->fab, tree, n, m, bps))
        return;
    for (unsigned i = 1; i < n; i++)
        differ |= bps[i] != bps[0];
    if (differ)
        memcpy(t->sched.tree_bps, bps, sizeof(bps));
}

/* Whether the lane's messages stay within a GPU node. Groups of all ranks use the scale-out
 * network, unless the ranks share a GPU node. */
static bool lane_is_nvlink(const struct topo *t, const struct lane *l, unsigned rank)
{
    const struct fab_node *h = &t->fab->nodes[t->fab->hosts[t->host_of_rank[rank]]];
    struct fab_channel ch[SCHED_MAX_CHANS];
    unsigned r = 0;

    if (l->kind == LANE_SEND || l->kind == LANE_RECV)
        return topo_channels(t, rank, l->peer, ch, SCHED_MAX_CHANS) > l->chan &&
               fabric_port_is_nvlink(t->fab, h, ch[l->chan].port_a);
    while (r < t->nranks && t->domain[r] == t->domain[rank])
        r++;
    return l->kind == LANE_AGG && r == t->nranks && h->domain != FAB_NONE;
}

int64_t topo_launch_ps(const struct topo *t, const struct sched *s, unsigned rank)
{
    const struct fab_costs *c = &t->fab->costs;
    int64_t longest = 0;

    if (!c->mm_launch_ps && !c->nvlink.launch_ps && !c->network.launch_ps)
        return 0;
    for (unsigned i = 0; i < s->n_lanes; i++) {
        const struct lane *l = &s->lane[i];
        int64_t ps;

        if (!l->n || l->kind == LANE_CPU)
            continue;
        ps = l->kind == LANE_MM           ? c->mm_launch_ps
             : lane_is_nvlink(t, l, rank) ? c->nvlink.launch_ps
                                          : c->network.launch_ps;
        longest = ps > longest ? ps : longest;
    }
    return longest;
}

bool topo_is_long(const struct topo *t, const struct sched *s, unsigned rank,
                  const struct lane *lane)
{
    const struct fab_path_costs *v = &t->fab->costs.nvlink, *n = &t->fab->costs.network;
    const struct fab_node *h = &t->fab->nodes[t->fab->hosts[t->host_of_rank[rank]]];
    struct fab_channel ch[SCHED_MAX_CHANS];
    struct fab_notice notice;

    if (!v->ll.rate_bps && !v->ll128.rate_bps && !n->ll.rate_bps && !n->ll128.rate_bps)
        return false;
    if (topo_channels(t, rank, lane->peer, ch, SCHED_MAX_CHANS) <= lane->chan)
        return false;
    notice = fabric_notice(t->fab, h, ch[lane->chan].port_a);
    return fab_notice_is_long(&notice, sched_step_bytes(s));
}

unsigned topo_members(const struct fabric *fab, unsigned nranks, const uint16_t *host_of_rank,
                      struct fab_members *m, uint16_t *id)
{
    uint16_t *here = calloc(fab->n_hosts, sizeof(*here));
    unsigned per_host = 1;

    memset(m, 0, sizeof(*m));
    if (!here)
        return 0;
    for (unsigned r = 0; r < nranks; r++) {
        unsigned local = here[host_of_rank[r]]++;

        per_host = local + 1 > per_host ? local + 1 : per_host;
    }
    m->ranks_per_host = (uint16_t)per_host;
    memset(here, 0, fab->n_hosts * sizeof(*here));
    for (unsigned r = 0; r < nranks; r++) {
        unsigned member = host_of_rank[r] * per_host + here[host_of_rank[r]]++;

        if (member >= FAB_MAX_MEMBERS) {
            per_host = 0;
            break;
        }
        fab_members_add(m, member);
        if (id)
            id[r] = (uint16_t)member;
    }
    free(here);
    return per_host;
}
