/* SPDX-License-Identifier: BSD-3-Clause */
/* Protocols of a communicator, from its creation to its end. */
#include "fabric/tree_rate.h"
#include "host/coll/comm.h"
#include "protocols/host/conf.h"
#include "protocols/host/protocol_wire.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_OF(x)  TEXT_OF_(x)
#define TEXT_OF_(x) #x

static struct proto_ways ways_of(const struct comm *c, const struct protocol *e)
{
    return (struct proto_ways){
        .fab = c->cfg.fab, .tree = e->at->tree, .members = &c->protocols->members};
}

static int find_members(struct comm *c, struct protocols *s)
{
    s->member_of_rank = calloc(c->cfg.nranks, sizeof(*s->member_of_rank));
    if (!s->member_of_rank)
        return -ENOMEM;
    return topo_members(c->cfg.fab, c->cfg.nranks, c->cfg.host_of_rank, &s->members,
                        s->member_of_rank)
               ? 0
               : -ERANGE;
}

/* The tree with the switch at which each rank joins; NULL: no memory. */
static const struct protocol_tree *find_tree(struct comm *c, struct protocols *s, uint16_t id)
{
    struct protocol_tree *t = s->tree;
    unsigned n = c->cfg.nranks;

    while (t < s->tree + s->n_trees && t->id != id)
        t++;
    if (t < s->tree + s->n_trees)
        return t;
    s->n_trees++;
    t->id = id;
    t->tree = id == FAB_NONE ? NULL : &c->cfg.fab->trees[id];
    t->leaf_of_rank = calloc(n, sizeof(*t->leaf_of_rank));
    t->switch_of = calloc(n, sizeof(*t->switch_of));
    if (!t->leaf_of_rank || !t->switch_of)
        return NULL;
    for (unsigned r = 0; r < n; r++) {
        t->leaf_of_rank[r] =
            t->tree ? fab_group_leaf(c->cfg.fab, t->tree, s->member_of_rank[r], &s->members)
                    : FAB_NONE;
        while (t->leaf_of_rank[t->switch_of[r]] != t->leaf_of_rank[r])
            t->switch_of[r]++;
    }
    return t;
}

static int post_all(struct comm *c, struct protocol *e)
{
    for (unsigned i = 0; i < PROTOCOL_WINDOW; i++)
        if (protocol_post_recv(c, e, i))
            return -EIO;
    for (unsigned i = 0; i < PROTOCOL_SENDS; i++)
        e->idle[e->n_idle++] = (uint16_t)i;
    return 0;
}

static int open_queue(struct comm *c, struct protocol *e)
{
    struct edge_cap cap = {
        .send_wr = PROTOCOL_SENDS, .recv_wr = PROTOCOL_WINDOW, .send_sge = 1, .recv_sge = 1};
    size_t bytes = protocol_memory(c->mtu);
    struct proto_ways w = ways_of(c, e);
    unsigned port = proto_host_port(&w, c->cfg.host_of_rank[c->cfg.rank]);
    int rc;

    e->port = &c->port[port < c->n_ports ? port : 0];
    rc = port_reserve(e->port, cap.send_wr + cap.recv_wr);
    if (rc)
        return rc;
    errno = 0;
    e->peer = calloc(c->cfg.nranks, sizeof(*e->peer));
    e->idle = calloc(PROTOCOL_SENDS, sizeof(*e->idle));
    e->mem = cacheline_alloc(bytes);
    if (e->peer && e->idle && e->mem)
        e->mr = ibv_reg_mr(e->port->pd, e->mem, bytes, IBV_ACCESS_LOCAL_WRITE);
    if (e->mr)
        e->qp = ud_create(e->port, &cap, PROTO_QKEY);
    if (!e->qp)
        return errno ? -errno : -ENOMEM;
    return post_all(c, e);
}

/* Why the communicator cannot run the protocol; NULL: it can. */
static const char *instance_fault(const struct comm *c, const struct protocol *e)
{
    const struct proto_ways w = ways_of(c, e);

    if (c->cfg.nranks > TRIB_RANKS)
        return "a protocol has at most " TEXT_OF(TRIB_RANKS) " ranks";
    if (c->cfg.device)
        return "buffers are in a GPU's memory, expected the host's";
    if (comm_unbacked(c))
        return "data is carried as lengths, expected real data";
    if (!proto_all_reach(&w))
        return "ranks are cabled to each other, expected one port by which each reaches all";
    return NULL;
}

static int instance_create(struct comm *c, unsigned seat, unsigned chan, char *err)
{
    struct protocols *s = c->protocols;
    struct protocol *e = &s->p[s->n];
    const char *why;
    int rc;

    *e = (struct protocol){.c = c,
                           .index = s->n++,
                           .seat = seat,
                           .chan = chan,
                           .at = find_tree(c, s, s->of[seat].tree[chan]),
                           .p = proto_at(seat),
                           .lane = LANE_NONE,
                           .child = 0xffff};
    if (!e->at) {
        snprintf(err, COMM_TEXT, "protocol %s: out of memory", e->p->name);
        return -ENOMEM;
    }
    proto_conf(c->cfg.fab, e->p, e->key);
    why = instance_fault(c, e);
    if (why) {
        snprintf(err, COMM_TEXT, "protocol %s: %s", e->p->name, why);
        return -ENOTSUP;
    }
    rc = open_queue(c, e);
    if (rc)
        snprintf(err, COMM_TEXT, "queue pair of protocol %s: %s", e->p->name, strerror(-rc));
    return rc;
}

/* An instance for each tree of its job. */
static int create_all(struct comm *c, unsigned seat, unsigned most, char *err)
{
    struct protocol_trees *t = &c->protocols->of[seat];
    int rc = 0;

    *t = protocol_choose_trees(c->cfg.fab, proto_at(seat), c->cfg.tree,
                               c->cfg.n_trees ? c->cfg.n_trees : 1, &c->protocols->members, most);
    if (!t->n) {
        snprintf(err, COMM_TEXT, "protocol %s: no aggregation tree reaches all ranks",
                 proto_at(seat)->name);
        return -ENOTSUP;
    }
    for (unsigned k = 0; !rc && k < t->n; k++)
        rc = instance_create(c, seat, k, err);
    if (!rc)
        c->topo.sched.protocol[seat] = protocol_shares(c->cfg.fab, t, &c->protocols->members, 0);
    return rc;
}

int protocols_create(struct comm *c, char *err)
{
    const unsigned asked = (unsigned)__builtin_popcount(c->cfg.algos & COLL_PROTOCOLS);
    int rc;

    if (!asked)
        return 0;
    c->protocols = calloc(1, sizeof(*c->protocols));
    rc = c->protocols ? find_members(c, c->protocols) : -ENOMEM;
    if (rc) {
        snprintf(err, COMM_TEXT, "protocols: %s",
                 rc == -ERANGE ? "the ranks are not members of one tree" : strerror(-rc));
        return rc;
    }
    for (unsigned seat = 0; seat < PROTO_SEATS && !rc; seat++)
        if (proto_at(seat) && comm_has(c, ALGO_PROTOCOL + seat))
            rc = create_all(c, seat, PROTOCOL_JOBS / asked, err);
    return rc;
}

void protocols_qpns(const struct comm *c, rte_be32_t *qpn)
{
    for (unsigned i = 0; c->protocols && i < c->protocols->n; i++)
        qpn[i] = rte_cpu_to_be_32(c->protocols->p[i].qp->qp_num);
}

void protocols_set_peer(struct comm *c, unsigned rank, const rte_be32_t *qpn)
{
    const struct fabric *f = c->cfg.fab;
    unsigned host = c->cfg.host_of_rank[rank];

    for (unsigned i = 0; c->protocols && i < c->protocols->n; i++) {
        struct protocol *e = &c->protocols->p[i];
        struct proto_ways w = ways_of(c, e);

        e->peer[rank].qpn = rte_be_to_cpu_32(qpn[i]);
        e->peer[rank].ip = f->nodes[f->hosts[host]].ip_of_port[proto_host_port(&w, host)];
    }
}

int protocol_open_half(struct comm *c, struct protocol *e, char *err)
{
    const struct proto_ways w = ways_of(c, e);
    const uint32_t payload = PROTO_PAYLOAD(c->mtu);
    struct proto_rank_cfg cfg = {.protocol = e->p,
                                 .key = e->key,
                                 .rank = c->cfg.rank,
                                 .nranks = c->cfg.nranks,
                                 .switch_of = e->at->switch_of,
                                 .job = c->cfg.group,
                                 .payload = payload,
                                 .window = PROTOCOL_WINDOW,
                                 .round_trip_ps = proto_round_trip_ps(&w, payload),
                                 .notice_ps = proto_notice_ps(&w, payload, NULL),
                                 .send = protocol_send,
                                 .ctx = e};
    unsigned ranks_a_link;

    e->tag =
        proto_tag(c->cfg.group, c->cfg.key, e->p->name, e->at->id, c->protocols->attempt[e->seat]);
    cfg.rate_bps = proto_rate_bps(&w, &ranks_a_link);
    cfg.share_bps = proto_share_bps(&w);
    if (w.tree)
        cfg.tree_bps = fabric_tree_bps(c->cfg.fab, w.tree, w.members, false);
    return proto_rank_create(&e->half, &cfg, protocol_now(c), err);
}

/* Links all ranks, so that none leaves while others may need its packets. */
int protocols_start(struct comm *c, char *err)
{
    int rc = 0;

    if (!c->protocols)
        return 0;
    ctl_link_tree(c);
    for (unsigned i = 0; i < c->protocols->n && !rc; i++)
        rc = protocol_open_half(c, &c->protocols->p[i], err);
    if (!rc)
        protocols_join(c);
    ctl_tell(c);
    return rc;
}

void protocols_stop(struct comm *c, unsigned parts)
{
    for (unsigned i = 0; c->protocols && i < c->protocols->n; i++) {
        struct protocol *e = &c->protocols->p[i];

        if (!(parts & PART_PROTOCOL(e->seat)))
            continue;
        e->stopped = true;
        e->lane = LANE_NONE;
    }
}

void protocol_fail(struct protocol *e, const char *fmt, ...)
{
    char why[COMM_TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    e->c->protocols->failing |= (uint8_t)(1u << e->chan);
    transport_failed(e->c, PART_PROTOCOL(e->seat), "%s", why);
}

static void instance_destroy(struct comm *c, struct protocol *e)
{
    proto_rank_destroy(e->half);
    if (e->qp)
        ibv_destroy_qp(e->qp);
    for (unsigned r = 0; e->peer && r < c->cfg.nranks; r++) {
        if (e->peer[r].ah)
            ibv_destroy_ah(e->peer[r].ah);
        if (e->peer[r].leaf)
            ibv_destroy_ah(e->peer[r].leaf);
    }
    if (e->mr)
        ibv_dereg_mr(e->mr);
    free(e->mem);
    free(e->idle);
    free(e->peer);
}

void protocols_destroy(struct comm *c)
{
    if (!c->protocols)
        return;
    for (unsigned i = 0; i < c->protocols->n; i++)
        instance_destroy(c, &c->protocols->p[i]);
    for (unsigned i = 0; i < c->protocols->n_trees; i++) {
        free(c->protocols->tree[i].leaf_of_rank);
        free(c->protocols->tree[i].switch_of);
    }
    free(c->protocols->member_of_rank);
    free(c->protocols);
}
