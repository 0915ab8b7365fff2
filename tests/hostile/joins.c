/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Takes groups of the aggregation nodes of its host, on every tree, as many as they grant.
 *
 *     joins empty|own|half N SECONDS
 *
 * empty: the edges would be of queue pairs of a slot that no process has; own: groups of this member
 * alone; half: groups whose other members, on all hosts, never join. N of each tree, as one
 * communicator after another would. Prints how many were granted and refused, by status; holds them
 * for SECONDS and ends without a LEAVE.
 */
#include "tests/hostile/raw.h"

#include "aggregation/proto.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EMPTY_SLOT 48u

struct attack {
    struct raw r;
    char how; /* first letter */
    unsigned answers[AGG_STATUS_COUNT];
};

static void take_answers(struct attack *a, unsigned wait_ms)
{
    struct rte_mbuf *m;

    while ((m = raw_recv(&a->r, wait_ms))) {
        struct agg_ctl c;
        struct roce_pkt k;

        if (roce_parse(m, &k) == ROCE_OK && k.len == sizeof(c)) {
            memcpy(&c, k.payload, sizeof(c));
            if (c.type == AGG_JOIN_REPLY && rte_be_to_cpu_16(c.status) < AGG_STATUS_COUNT)
                a->answers[rte_be_to_cpu_16(c.status)]++;
        }
        rte_pktmbuf_free(m);
    }
}

static void join(struct attack *a, const struct fab_tree *t, uint32_t group)
{
    const struct fabric *f = a->r.fab;
    uint16_t host = fabric_node_index(f, a->r.host), leaf = t->parent[host];
    unsigned slot = a->how == 'e' ? EMPTY_SLOT : (unsigned)a->r.slot;
    struct fab_members members = {.ranks_per_host = 1};
    struct agg_ctl c = {.xid = rte_cpu_to_be_32(group),
                        .tree = rte_cpu_to_be_16(t->id),
                        .mtu = rte_cpu_to_be_16((uint16_t)f->mtu),
                        .group = rte_cpu_to_be_32(group),
                        .key = rte_cpu_to_be_64(group * 7919ULL),
                        .qpn = rte_cpu_to_be_32(raw_qpn0(slot) + (group & 0xffff)),
                        .psn = rte_cpu_to_be_32(group & 0xffffff),
                        .member = rte_cpu_to_be_32(a->r.host->host_index),
                        .node = RTE_BE16(FAB_NONE)};

    fab_members_add(&members, a->r.host->host_index);
    for (unsigned h = 0; a->how == 'h' && h < f->n_hosts; h++)
        fab_members_add(&members, h);
    if (leaf == FAB_NONE || agg_members_write(&c, &members))
        raw_die("no such group on tree %u", t->id);
    raw_send(&a->r, raw_agg(&a->r, 0, f->nodes[leaf].ip, raw_qpn0((unsigned)a->r.slot) + 1, AGG_QPN,
                            AGG_JOIN, &c));
}

int main(int argc, char **argv)
{
    static struct attack a;
    unsigned n;

    if (argc != 4)
        raw_die("usage: joins empty|own|half N SECONDS");
    a.how = argv[1][0];
    n = (unsigned)atoi(argv[2]);
    raw_open(&a.r, NULL, 0, -1);
    for (unsigned i = 0; i < n; i++)
        for (unsigned t = 0; t < a.r.fab->n_trees; t++) {
            join(&a, &a.r.fab->trees[t], (uint32_t)a.how << 24 | (i * 64 + t));
            take_answers(&a, 0);
        }
    raw_flush(&a.r, 2000);
    take_answers(&a, 1000);
    printf("granted %u\n", a.answers[AGG_OK]);
    for (unsigned s = 1; s < AGG_STATUS_COUNT; s++)
        if (a.answers[s])
            printf("%s %u\n", agg_status_name((enum agg_status)s), a.answers[s]);
    fflush(stdout);
    sleep((unsigned)atoi(argv[3]));
    return 0; /* without closing anything: it dies */
}
