/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages to and from the aggregation node: SEND {header, elements in place} up, receive {header,
 * result in place} down. Nothing is copied here. A message goes up only after the receive of its
 * result is posted, and when its slots fit into the window, so that neither side ever lacks a
 * buffer.
 *
 * In place the result of a message overwrites the elements that were sent, and their send need not
 * even be acknowledged yet. That is safe: the result exists only because the node has taken the
 * contribution, so a repetition of it by RC, which would carry the wrong bytes, is a duplicate and
 * dropped by its PSN. For the same reason an operation ends with its last result, and headers are
 * used again as soon as their result is here.
 */
#include "base/units.h"
#include "collective/quota.h"
#include "host/coll/comm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIGNAL_EVERY 8
#define SEND_SLACK   (2 * SIGNAL_EVERY) /* sends that are not covered by a signaled one yet */
static struct agg_hdr *sent_hdr(const struct agg *a, uint64_t i)
{
    return &a->hdr[i % a->depth];
}

static struct agg_hdr *result_hdr(const struct agg *a, uint64_t i)
{
    return &a->hdr[a->depth + i % a->depth];
}

/* A message without elements: of a rank that sends nothing in a broadcast, or gets nothing from a
 * reduce or its own broadcast. */
static bool is_empty(const struct step *st, uint8_t type)
{
    const struct ref *r = type == AGG_DATA ? &st->a : &st->dst;

    return r->buf == BUF_NONE && st->len && (st->agg == AGG_REDUCE || st->agg == AGG_BROADCAST);
}

static void fill_hdr(const struct agg *a, const struct coll_req *r, const struct step *st,
                     uint8_t type, uint32_t opseq, struct agg_hdr *h)
{
    *h = (struct agg_hdr){
        .version = AGG_VERSION,
        .type = type,
        .coll = st->agg,
        .dtype = (uint8_t)r->id.type,
        .op = (uint8_t)r->id.op,
        .flags = is_empty(st, type) ? AGG_F_EMPTY : 0,
        .root = rte_cpu_to_be_16(st->agg == AGG_REDUCE || st->agg == AGG_BROADCAST
                                     ? a->group->member_of_rank[st->root]
                                     : 0),
        .opseq = rte_cpu_to_be_32(opseq),
        .msg_len = rte_cpu_to_be_32((uint32_t)st->len),
        .total = rte_cpu_to_be_64(st->total),
        .offset = rte_cpu_to_be_64(st->off),
    };
}

/* The message's scatter-gather list: header, and elements where the step has any. Returns its
 * length. */
static int fill_sge(const struct agg *a, const struct coll_req *r, struct agg_hdr *hdr,
                    const struct ref *ref, const struct step *st, struct ibv_sge *sge)
{
    sge[0] = (struct ibv_sge){.addr = (uintptr_t)hdr, .length = AGG_HDR_BYTES, .lkey = a->mr->lkey};
    if (ref->buf == BUF_NONE || !st->len)
        return 1;
    sge[1] = (struct ibv_sge){.addr = (uintptr_t)exec_addr(r, ref),
                              .length = (uint32_t)st->len,
                              .lkey = exec_lkey(r, ref, a->port)};
    return 2;
}

/* Does the step end an operation of the protocol? */
static bool step_completes(const struct step *st)
{
    return st->off + st->len >= st->total;
}

static int post_message(struct comm *c, struct agg *a, struct coll_req *r, const struct step *st)
{
    uint64_t i = a->posted;
    struct ibv_sge up[2], down[2];
    struct ibv_recv_wr recv = {.wr_id = WR_ID(WR_AGG_RECV, a->index, i), .sg_list = down},
                       *bad_recv;
    struct ibv_send_wr send =
                           {
                               .wr_id = WR_ID(WR_AGG_SEND, a->index, i),
                               .sg_list = up,
                               .opcode = IBV_WR_SEND,
                               .send_flags =
                                   i % SIGNAL_EVERY == SIGNAL_EVERY - 1 ? IBV_SEND_SIGNALED : 0,
                           },
                       *bad_send;

    T_ASSERT_HOT(a->state == JOIN_GRANTED, "a message goes up a tree that was not granted");
    agg_keep(a, r, st);
    fill_hdr(a, r, st, AGG_DATA, a->opseq_out, sent_hdr(a, i));
    recv.num_sge = fill_sge(a, r, result_hdr(a, i), &st->dst, st, down);
    send.num_sge = fill_sge(a, r, sent_hdr(a, i), &st->a, st, up);
    if (ibv_post_recv(a->qp, &recv, &bad_recv) || ibv_post_send(a->qp, &send, &bad_send)) {
        comm_fail(c, "cannot post to %s", agg_leaf_name(c, a));
        return -EIO;
    }
    T_ASSERT_HOT(a->done <= a->posted && a->tx_done <= a->posted,
                 "more messages are answered or acknowledged than were sent");
    T_ASSERT_HOT(a->posted - a->done < a->depth, "a header in flight is used again");
    a->posted++;
    a->opseq_out += step_completes(st);
    return 0;
}

unsigned agg_run(struct comm *c, struct coll_req *r, unsigned lane)
{
    const struct lane *l = &r->s.lane[lane];
    struct agg *a = agg_of_lane(c, l);
    uint64_t *begun = &r->lane[lane].begun;
    unsigned did = 0;

    while (*begun < l->n) {
        const struct step *st = lane_step(l, *begun);
        uint32_t slots = agg_slots(st->len, c->mtu);

        if (!exec_may_start(r, lane, WAIT_START, st) || a->slots_out + slots > a->credit ||
            a->posted - a->done >= a->depth || a->posted - a->tx_done >= a->depth + SEND_SLACK ||
            post_message(c, a, r, st))
            break;
        a->slots_out += slots;
        exec_posted(c, r, lane, *begun);
        ++*begun;
        did++;
    }
    return did;
}

static void take_result(struct comm *c, struct agg *a, uint64_t i, uint32_t bytes)
{
    struct coll_req *r = c->exec.head;
    const struct step *st;
    struct agg_hdr want;
    uint64_t len;

    if (!r || a->lane == LANE_NONE || i != a->done ||
        r->lane[a->lane].done >= r->lane[a->lane].begun) {
        comm_fail(c, "%s sent a result that was not expected", agg_leaf_name(c, a));
        return;
    }
    st = lane_step(&r->s.lane[a->lane], r->lane[a->lane].done);
    len = st->dst.buf == BUF_NONE ? 0 : st->len;
    fill_hdr(a, r, st, AGG_RESULT, a->opseq_in, &want);
    if (bytes != AGG_HDR_BYTES + len || memcmp(&want, result_hdr(a, i), sizeof(want))) {
        comm_fail(c, "%s sent a result of another operation or offset", agg_leaf_name(c, a));
        return;
    }
    if (st->last && r->id.op == OP_AVG && len && !comm_unbacked(c))
        arith_divide(exec_addr(r, &st->dst), r->id.type, c->cfg.nranks, len / r->s.esize);
    T_ASSERT_HOT(a->slots_out >= agg_slots(st->len, c->mtu), "more slots come back than are out");
    a->slots_out -= agg_slots(st->len, c->mtu);
    a->done++;
    T_ASSERT_HOT(a->done != a->posted || !a->slots_out,
                 "slots are out without a message in flight");
    a->opseq_in += step_completes(st);
    exec_done(c, r, a->lane, r->lane[a->lane].done + 1);
    exec_wake(c, a->lane);
}

void agg_complete(struct comm *c, const struct ibv_wc *wc)
{
    T_ASSERT_HOT(WR_INDEX(wc->wr_id) < c->n_aggs, "a completion is of no tree");
    struct agg *a = &c->agg[WR_INDEX(wc->wr_id)];
    uint64_t i = WR_COUNT(wc->wr_id);

    if (c->state == COMM_FAILED || c->closing || c->failover.stopped & agg_part(a) || agg_is_out(a))
        return;
    if (!a->qp || wc->qp_num != a->qp->qp_num) /* of an earlier attempt */
        return;
    if (wc->status != IBV_WC_SUCCESS) {
        agg_fails(c, a);
        transport_failed(c, agg_part(a), "%s: %s", agg_leaf_name(c, a),
                         ibv_wc_status_str(wc->status));
    } else if (WR_KIND(wc->wr_id) == WR_AGG_SEND) {
        a->tx_done = i + 1;
        exec_wake(c, a->lane);
    } else {
        take_result(c, a, i, wc->byte_len);
    }
}

/* ---- life ---- */

/* The port by which this rank joins the tree. */
static struct port *port_of_tree(struct comm *c, uint16_t tree)
{
    const struct fabric *f = c->cfg.fab;
    uint16_t p = fabric_tree_port(f, &f->trees[tree], c->cfg.host_of_rank[c->cfg.rank]);

    return &c->port[p < c->n_ports ? p : 0];
}

static struct edge_cap edge_cap(const struct agg *a)
{
    return (struct edge_cap){
        .send_sge = 2, .recv_sge = 2, .send_wr = a->depth + SEND_SLACK, .recv_wr = a->depth};
}

static int edge_create(struct comm *c, struct agg *a, uint32_t window)
{
    struct edge_cap cap;
    size_t bytes;
    int rc;

    a->lane = LANE_NONE;
    a->port = port_of_tree(c, a->tree);
    a->asked = a->window = a->credit = window;
    a->depth = a->window / AGG_MSG_PKTS + 1;
    cap = edge_cap(a);
    rc = port_reserve(a->port, cap.send_wr + cap.recv_wr);
    if (rc)
        return rc;
    a->psn = comm_psn(c, c->cfg.rank, a->index);
    bytes = 2ULL * a->depth * sizeof(*a->hdr);
    errno = 0;
    a->hdr = calloc(1, bytes);
    if (a->hdr)
        a->mr = ibv_reg_mr(a->port->pd, a->hdr, bytes, IBV_ACCESS_LOCAL_WRITE);
    if (a->mr)
        a->qp = rc_create(a->port, &cap, false);
    if (a->qp)
        return 0;
    return errno ? -errno : -ENOMEM;
}

int agg_renew(struct comm *c, struct agg *a)
{
    struct edge_cap cap = edge_cap(a);

    if (a->qp)
        ibv_destroy_qp(a->qp);
    a->qp = rc_create(a->port, &cap, false);
    a->psn = comm_psn(c, c->cfg.rank, a->index + (a->attempt + 1u) * (COLL_TREES + 1));
    a->window = a->credit = a->asked;
    a->resizes = 0;
    a->lane = LANE_NONE;
    a->slots_out = a->opseq_out = a->opseq_in = 0;
    a->posted = a->done = a->tx_done = a->op_end = 0;
    a->probes = 0;
    return a->qp ? 0 : -ENOMEM;
}

/* The node at which this rank joins, FAB_NONE: the tree does not reach the whole group. */
static uint16_t leaf_of(const struct comm *c, const struct agg_group *g, uint16_t tree)
{
    const struct fabric *fab = c->cfg.fab;

    if (!g->members.ranks_per_host || tree >= fab->n_trees ||
        fab_group_top(fab, &fab->trees[tree], &g->members) == FAB_NONE)
        return FAB_NONE;
    return fab_group_leaf(fab, &fab->trees[tree], g->member_of_rank[c->cfg.rank], &g->members);
}

static int group_create(struct comm *c, struct agg_group *g, unsigned n, const uint16_t *rank,
                        uint32_t id)
{
    uint16_t *host = calloc(2u * n, sizeof(*host)), *member;

    g->id = id;
    g->member_of_rank = malloc(c->cfg.nranks * sizeof(*g->member_of_rank));
    if (!host || !g->member_of_rank) {
        free(host);
        return -ENOMEM;
    }
    member = host + n;
    memset(g->member_of_rank, 0xff, c->cfg.nranks * sizeof(*g->member_of_rank));
    for (unsigned i = 0; i < n; i++)
        host[i] = c->cfg.host_of_rank[rank[i]];
    if (!topo_members(c->cfg.fab, n, host, &g->members, member))
        g->members.ranks_per_host = 0;
    for (unsigned i = 0; i < n && g->members.ranks_per_host; i++)
        g->member_of_rank[rank[i]] = member[i];
    free(host);
    return 0;
}

/* Slots to request. If the quotas leave less than a message needs, the slots of one message, so
 * that the switch refuses with its own reason. */
static uint32_t window_ask(const struct comm *c, uint32_t share)
{
    uint32_t asked = agg_window(c->cfg.fab, c->cfg.window);

    return share >= AGG_MSG_PKTS ? share : asked < AGG_MSG_PKTS ? asked : AGG_MSG_PKTS;
}

static int join_tree(struct comm *c, unsigned kind, unsigned chan, uint16_t tree, uint32_t window,
                     uint32_t job_groups, char *err)
{
    T_ASSERT(c->n_aggs < RTE_DIM(c->agg), "more trees are joined than a communicator has");
    struct agg *a = &c->agg[c->n_aggs];
    struct agg_ctl join;
    int rc;

    if (agg_members_write(&join, &c->group[kind].members)) {
        snprintf(err, COMM_TEXT,
                 "the ranks' hosts are scattered: a JOIN lists members beyond %u as %u spans at "
                 "most, expected fewer gaps",
                 AGG_BITS, AGG_SPANS);
        return -E2BIG;
    }
    *a = (struct agg){.index = c->n_aggs++,
                      .kind = kind,
                      .chan = chan,
                      .tree = tree,
                      .job_groups = job_groups,
                      .group = &c->group[kind],
                      .leaf = leaf_of(c, &c->group[kind], tree)};
    rc = edge_create(c, a, window_ask(c, window));
    if (rc)
        snprintf(err, COMM_TEXT, "queue pair to the aggregation node %s: %s", agg_leaf_name(c, a),
                 strerror(-rc));
    return rc;
}

/* All ranks, on every tree of the list. */
static int join_all(struct comm *c, const uint16_t *rank, const struct quota_grant *s, char *err)
{
    int rc = group_create(c, &c->group[GROUP_ALL], c->cfg.nranks, rank, c->cfg.group);

    for (unsigned i = 0; !rc && i < s->n; i++) {
        if (leaf_of(c, &c->group[GROUP_ALL], s->tree[i]) != FAB_NONE) {
            rc = join_tree(c, GROUP_ALL, i, s->tree[i], s->window[i], s->job_groups[i], err);
            continue;
        }
        snprintf(err, COMM_TEXT, "no aggregation node of tree %u reaches all %u ranks", s->tree[i],
                 c->cfg.nranks);
        rc = -ENOTSUP;
    }
    return rc;
}

/* Joins this rank's rail: the ranks that have its local rank in their nodes, on the rail's tree.
 * Without nodes or a tree there is no such group, and lanes_served() refuses schedules that need
 * it. */
static int join_rail(struct comm *c, uint16_t *rank, const struct quota_grant *s, char *err)
{
    const uint16_t *domain = c->topo.domain;
    uint16_t *in_node = calloc(c->cfg.nranks, sizeof(*in_node));
    const struct fab_rails rails = {c->cfg.nranks, c->cfg.host_of_rank, rank};
    unsigned n = 0, own, trees = c->cfg.n_trees ? c->cfg.n_trees : 1, local = 0;
    int rc = in_node ? 0 : -ENOMEM, tree = 0;

    for (unsigned r = 0; !rc && r < c->cfg.nranks; r++)
        rank[r] = in_node[domain[r]]++; /* its local rank, for now */
    own = rank[c->cfg.rank];
    for (unsigned r = 0; !rc && r < c->cfg.nranks; r++)
        local += domain[r] == domain[c->cfg.rank];
    if (!rc && local > 1)
        tree = fabric_rail_tree(c->cfg.fab, c->cfg.tree, trees, &rails, own);
    for (unsigned r = 0; !rc && r < c->cfg.nranks; r++)
        if (rank[r] == own)
            rank[n++] = (uint16_t)r;
    free(in_node);
    rc = rc ? rc : tree < 0 ? tree : 0;
    if (rc || n < 2 || local < 2)
        return rc;
    rc = group_create(c, &c->group[GROUP_RAIL], n, rank, c->cfg.group ^ (own + 1) << 20);
    if (!rc && (unsigned)tree < trees &&
        leaf_of(c, &c->group[GROUP_RAIL], c->cfg.tree[tree]) != FAB_NONE)
        return join_tree(c, GROUP_RAIL, 0, c->cfg.tree[tree], s->rail, s->rail_groups, err);
    return rc;
}

static int quota_apply(struct comm *c, struct quota_grant *s)
{
    const struct quota_request j = {.fab = c->cfg.fab,
                                    .nranks = c->cfg.nranks,
                                    .host_of_rank = c->cfg.host_of_rank,
                                    .domain = c->topo.domain,
                                    .tree = c->cfg.tree,
                                    .n_trees = c->cfg.n_trees ? c->cfg.n_trees : 1,
                                    .all = comm_has(c, ALGO_SHARP),
                                    .rails = c->cfg.algos & COMM_RAIL_ALGOS,
                                    .asked = agg_window(c->cfg.fab, c->cfg.window)};
    int rc = quota_split(&j, s);

    snprintf(c->fit.why, sizeof(c->fit.why), "%s", s->why);
    return rc;
}

int agg_create(struct comm *c, char *err)
{
    struct quota_grant s;
    uint16_t *rank;
    int rc;

    if (c->cfg.n_trees > COLL_TREES) {
        snprintf(err, COMM_TEXT, "%u aggregation trees: at most %d are possible", c->cfg.n_trees,
                 COLL_TREES);
        return -EINVAL;
    }
    rank = malloc(c->cfg.nranks * sizeof(*rank));
    snprintf(err, COMM_TEXT, "out of memory");
    if (!rank)
        return -ENOMEM;
    for (unsigned r = 0; r < c->cfg.nranks; r++)
        rank[r] = (uint16_t)r;
    rc = quota_apply(c, &s);
    if (!rc && comm_has(c, ALGO_SHARP))
        rc = join_all(c, rank, &s, err);
    if (!rc && c->cfg.algos & COMM_RAIL_ALGOS)
        rc = join_rail(c, rank, &s, err);
    free(rank);
    return rc;
}

/* A lost tree still serves its lane: the ranks may be agreeing on its return. */
struct agg *agg_of_lane(struct comm *c, const struct lane *l)
{
    for (unsigned i = 0; i < c->n_aggs; i++)
        if (c->agg[i].kind == l->peer && c->agg[i].chan == l->chan && !c->agg[i].out)
            return &c->agg[i];
    return NULL;
}

int agg_connect(struct comm *c, struct agg *a, const struct agg_ctl *grant)
{
    uint32_t slots = rte_be_to_cpu_32(grant->window);
    struct remote far = {.qpn = rte_be_to_cpu_32(grant->qpn), .psn = rte_be_to_cpu_32(grant->psn)};

    if (slots < AGG_MSG_PKTS)
        return -EMSGSIZE;
    if (slots < a->window)
        a->window = slots;
    a->credit = a->window;
    gid_of_ip(&far.gid, c->cfg.fab->nodes[a->leaf].ip);
    return rc_connect(a->port, a->qp, &far, a->psn);
}

void agg_stop(struct comm *c, unsigned parts)
{
    for (unsigned i = 0; i < c->n_aggs; i++)
        if (parts & agg_part(&c->agg[i])) {
            qp_stop(c->agg[i].qp);
            c->agg[i].lane = LANE_NONE;
        }
}

void agg_destroy(struct comm *c)
{
    for (unsigned i = 0; i < c->n_aggs; i++) {
        struct agg *a = &c->agg[i];

        if (a->qp)
            ibv_destroy_qp(a->qp);
        if (a->mr)
            ibv_dereg_mr(a->mr);
        free(a->hdr);
        free(a->kept);
    }
    free(c->group[GROUP_ALL].member_of_rank);
    free(c->group[GROUP_RAIL].member_of_rank);
}
