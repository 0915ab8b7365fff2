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
#include "host/coll/comm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIGNAL_EVERY 8
#define SEND_SLACK   (2 * SIGNAL_EVERY) /* sends whose completion nobody has asked for yet */
#define ROUND_TRIP_PS                                                                              \
    10000000LL /* 10 us: to the top of a three-level tree and back, with room for late polls */

static const char *leaf_name(const struct comm *c)
{
    return c->cfg.fab->nodes[c->join.leaf].name;
}

uint32_t agg_window(const struct fabric *fab, uint32_t asked)
{
    uint64_t rate = 0, slots;

    if (asked)
        return asked < AGG_MAX_WINDOW ? asked : AGG_MAX_WINDOW;
    for (unsigned h = 0; h < fab->n_hosts; h++)
        for (unsigned p = 0; p < fab->nodes[fab->hosts[h]].n_ports; p++)
            if (fab->nodes[fab->hosts[h]].ports[p].rate_bps > rate)
                rate = fab->nodes[fab->hosts[h]].ports[p].rate_bps;
    slots = rate / 8 / (1000000000000LL / ROUND_TRIP_PS) / fab->mtu;
    return slots < 64 ? 64 : slots < 1024 ? (uint32_t)slots : 1024;
}

uint32_t agg_slots(uint64_t len, uint32_t mtu)
{
    return (uint32_t)((AGG_HDR_BYTES + len + mtu - 1) / mtu);
}

static struct agg_hdr *sent_hdr(const struct comm *c, uint64_t i)
{
    return &c->agg.hdr[i % c->agg.depth];
}

static struct agg_hdr *result_hdr(const struct comm *c, uint64_t i)
{
    return &c->agg.hdr[c->agg.depth + i % c->agg.depth];
}

static void fill_hdr(const struct comm *c, const struct coll_req *r, const struct step *st,
                     uint8_t type, struct agg_hdr *h)
{
    *h = (struct agg_hdr){
        .version = AGG_VERSION,
        .type = type,
        .coll = AGG_ALLREDUCE,
        .dtype = (uint8_t)r->args.type,
        .op = (uint8_t)r->args.op,
        .opseq = rte_cpu_to_be_32(c->agg.opseq),
        .msg_len = rte_cpu_to_be_32((uint32_t)st->len),
        .total = rte_cpu_to_be_64(r->s.bytes),
        .offset = rte_cpu_to_be_64(st->off),
    };
}

static int post_message(struct comm *c, struct coll_req *r, const struct step *st)
{
    struct agg *a = &c->agg;
    uint64_t i = a->posted;
    struct ibv_sge down[2] = {
        {.addr = (uintptr_t)result_hdr(c, i), .length = AGG_HDR_BYTES, .lkey = a->mr->lkey},
        {.addr = (uintptr_t)r->args.recv + st->off,
         .length = (uint32_t)st->len,
         .lkey = r->out_lkey},
    };
    struct ibv_sge up[2] = {
        {.addr = (uintptr_t)sent_hdr(c, i), .length = AGG_HDR_BYTES, .lkey = a->mr->lkey},
        {.addr = (uintptr_t)r->args.send + st->off,
         .length = (uint32_t)st->len,
         .lkey = r->in_lkey},
    };
    struct ibv_recv_wr recv = {.wr_id = WR_ID(WR_AGG_RECV, i), .sg_list = down, .num_sge = 2},
                       *bad_recv;
    struct ibv_send_wr send =
                           {
                               .wr_id = WR_ID(WR_AGG_SEND, i),
                               .sg_list = up,
                               .num_sge = 2,
                               .opcode = IBV_WR_SEND,
                               .send_flags =
                                   i % SIGNAL_EVERY == SIGNAL_EVERY - 1 ? IBV_SEND_SIGNALED : 0,
                           },
                       *bad_send;

    fill_hdr(c, r, st, AGG_DATA, sent_hdr(c, i));
    if (ibv_post_recv(a->qp, &recv, &bad_recv) || ibv_post_send(a->qp, &send, &bad_send)) {
        comm_fail(c, "cannot post to %s", leaf_name(c));
        return -EIO;
    }
    a->posted++;
    return 0;
}

unsigned agg_run(struct comm *c, struct coll_req *r)
{
    struct agg *a = &c->agg;
    unsigned did = 0;

    while (r->begun[LANE_AGG] < r->s.n[LANE_AGG]) {
        struct step st;
        uint32_t slots;

        sched_step(&r->s, LANE_AGG, r->begun[LANE_AGG], &st);
        slots = agg_slots(st.len, c->port.mtu);
        if (a->slots_out + slots > a->window || a->posted - a->done >= a->depth ||
            a->posted - a->tx_done >= a->depth + SEND_SLACK || post_message(c, r, &st))
            break;
        a->slots_out += slots;
        r->begun[LANE_AGG]++;
        did++;
    }
    return did;
}

static void take_result(struct comm *c, uint64_t i, uint32_t bytes)
{
    struct agg *a = &c->agg;
    struct coll_req *r = c->exec.head;
    struct agg_hdr want;
    struct step st;

    if (!r || !c->exec.running || i != a->done || r->done[LANE_AGG] >= r->begun[LANE_AGG]) {
        comm_fail(c, "%s sent a result that nobody waits for", leaf_name(c));
        return;
    }
    sched_step(&r->s, LANE_AGG, r->done[LANE_AGG], &st);
    fill_hdr(c, r, &st, AGG_RESULT, &want);
    want.flags = result_hdr(c, i)->flags;
    if (bytes != AGG_HDR_BYTES + st.len || memcmp(&want, result_hdr(c, i), sizeof(want))) {
        comm_fail(c, "%s sent a result of another operation or place", leaf_name(c));
        return;
    }
    if (r->args.op == OP_AVG)
        arith_divide((uint8_t *)r->args.recv + st.off, r->args.type, c->cfg.nranks,
                     st.len / r->s.esize);
    a->slots_out -= agg_slots(st.len, c->port.mtu);
    a->done++;
    r->done[LANE_AGG]++;
}

void agg_complete(struct comm *c, const struct ibv_wc *wc)
{
    uint64_t i = WR_COUNT(wc->wr_id);

    if (c->state == COMM_FAILED || c->closing)
        return;
    if (wc->status != IBV_WC_SUCCESS)
        comm_fail(c, "%s: %s", leaf_name(c), ibv_wc_status_str(wc->status));
    else if (WR_KIND(wc->wr_id) == WR_AGG_SEND)
        c->agg.tx_done = i + 1;
    else
        take_result(c, i, wc->byte_len);
}

void agg_end(struct comm *c)
{
    c->agg.opseq++;
}

/* ---- life ---- */

int agg_create(struct comm *c, char *err)
{
    struct agg *a = &c->agg;
    struct edge_cap cap = {.send_sge = 2, .recv_sge = 2};
    size_t bytes;

    a->window = agg_window(c->cfg.fab, c->cfg.window);
    a->depth = a->window / AGG_MSG_PKTS + 1;
    cap.send_wr = a->depth + SEND_SLACK;
    cap.recv_wr = a->depth;
    a->psn = comm_psn(c, 2);
    bytes = 2ULL * a->depth * sizeof(*a->hdr);
    a->hdr = calloc(1, bytes);
    if (a->hdr)
        a->mr = ibv_reg_mr(c->port.pd, a->hdr, bytes, IBV_ACCESS_LOCAL_WRITE);
    if (a->mr)
        a->qp = rc_create(&c->port, &cap, false);
    if (!a->qp) {
        snprintf(err, COMM_TEXT, "queue pair to the aggregation node: %s", strerror(errno));
        return errno ? -errno : -ENOMEM;
    }
    return 0;
}

int agg_connect(struct comm *c, const struct agg_ctl *grant)
{
    uint32_t slots = rte_be_to_cpu_32(grant->window);
    struct remote far = {.qpn = rte_be_to_cpu_32(grant->qpn), .psn = rte_be_to_cpu_32(grant->psn)};

    if (slots < AGG_MSG_PKTS)
        return -EMSGSIZE;
    if (slots < c->agg.window)
        c->agg.window = slots;
    gid_of_ip(&far.gid, c->cfg.fab->nodes[c->join.leaf].ip);
    return rc_connect(&c->port, c->agg.qp, &far, c->agg.psn);
}

void agg_stop(struct comm *c)
{
    qp_stop(c->agg.qp);
}

void agg_destroy(struct comm *c)
{
    if (c->agg.qp)
        ibv_destroy_qp(c->agg.qp);
    if (c->agg.mr)
        ibv_dereg_mr(c->agg.mr);
    free(c->agg.hdr);
}
