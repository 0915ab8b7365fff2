/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of aggregation protocols, over UD. A packet is copied once on its way out, and read where
 * it was received on its way in. It is accepted if it names the job by number and tag, and comes
 * from the queue pair of the rank that it names, or from PROTO_QPN of a switch, from which no
 * process of a host can send (switch/source_guard.h).
 */
#include "base/units.h"
#include "host/coll/comm.h"
#include "protocols/host/protocol_wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GRH 40u

_Static_assert((int)TRIB_BFLOAT16 == (int)DT_BF16 && (int)TRIB_INT8 == (int)DT_INT8 &&
                   (int)TRIB_FLOAT64 == (int)DT_FP64,
               "types of protocols are those of elements");
_Static_assert((int)TRIB_SUM == (int)OP_SUM && (int)TRIB_PROD == (int)OP_PROD &&
                   (int)TRIB_MIN == (int)OP_MIN && (int)TRIB_MAX == (int)OP_MAX,
               "reductions of protocols are those of operations");

int64_t protocol_now(const struct comm *c)
{
    struct timespec ts;

    if (c->cfg.now_ps)
        return c->cfg.now_ps(c->cfg.now_ctx);
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * PS_PER_S + ts.tv_nsec * PS_PER_NS;
}

static size_t recv_bytes(const struct comm *c)
{
    return GRH + c->mtu;
}

size_t protocol_memory(uint32_t mtu)
{
    return (size_t)PROTOCOL_WINDOW * (GRH + mtu) + (size_t)PROTOCOL_SENDS * mtu;
}

static uint8_t *recv_buf(const struct comm *c, const struct protocol *e, uint64_t i)
{
    return e->mem + i * recv_bytes(c);
}

static uint8_t *send_buf(const struct comm *c, const struct protocol *e, unsigned i)
{
    return recv_buf(c, e, PROTOCOL_WINDOW) + (size_t)i * c->mtu;
}

/* Checks after every call of the rank half whether it has failed or finished. */
static void half_check(struct comm *c, struct protocol *e)
{
    const char *why = proto_rank_error(e->half);
    struct coll_req *r = c->exec.head;
    const struct step *st;

    if (why) {
        protocol_fail(e, "%s", why);
        return;
    }
    if (e->lane == LANE_NONE || !proto_rank_done(e->half))
        return;
    st = lane_step(&r->s.lane[e->lane], 0);
    if (r->id.op == OP_AVG)
        arith_divide(exec_addr(r, &st->dst), r->id.type, c->cfg.nranks, st->len / r->s.esize);
    exec_done(c, r, e->lane, 1);
    e->lane = LANE_NONE;
}

/* ---- out ---- */

struct ibv_ah *protocol_leaf(struct comm *c, struct protocol *e, unsigned rank)
{
    struct protocol_peer *p = &e->peer[e->at->switch_of[rank]];
    union ibv_gid gid;

    if (p->leaf)
        return p->leaf;
    gid_of_ip(&gid, c->cfg.fab->nodes[e->at->leaf_of_rank[rank]].ip);
    p->leaf = ud_address(e->port, &gid);
    return p->leaf;
}

static struct ibv_ah *address_of(struct protocol *e, unsigned rank)
{
    struct protocol_peer *p = &e->peer[rank];
    union ibv_gid gid;

    if (p->ah)
        return p->ah;
    gid_of_ip(&gid, p->ip);
    p->ah = ud_address(e->port, &gid);
    return p->ah;
}

static bool datagram_post(struct protocol *e, struct ibv_ah *ah, uint32_t qpn, unsigned i,
                          const void *msg, uint32_t len)
{
    struct ibv_sge sge = {.addr = (uintptr_t)msg, .length = len, .lkey = e->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = WR_ID(WR_PROTOCOL_SEND, e->index, i),
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = PROTO_QKEY}},
                       *bad;

    return ah && !ibv_post_send(e->qp, &wr, &bad);
}

static struct ibv_ah *target_resolve(struct comm *c, struct protocol *e, int to, uint32_t *qpn,
                                     uint16_t *child)
{
    const uint16_t *sw = e->at->switch_of;
    unsigned me = c->cfg.rank, rank = TRIB_INDEX(to);

    if (TRIB_IS(to, TRIB_RANK(0))) {
        *qpn = e->peer[rank].qpn;
        return address_of(e, rank);
    }
    if (to == TRIB_SWITCH)
        rank = me;
    if (sw[rank] == sw[me])
        *child = e->child;
    *qpn = PROTO_QPN;
    return protocol_leaf(c, e, rank);
}

bool protocol_send(void *ctx, int to, int target, const void *head, uint32_t head_bytes,
                   const void *data, uint32_t data_bytes)
{
    struct protocol *e = ctx;
    struct comm *c = e->c;
    uint16_t child = 0xffff;
    uint32_t qpn, len = sizeof(struct proto_head), padded = PROTO_PAD(head_bytes);
    struct ibv_ah *ah;
    uint8_t *at;
    unsigned i;

    T_ASSERT_HOT(padded + data_bytes + PROTO_HEAD_MAX <= c->mtu,
                 "PROTO_PAYLOAD() leaves no padding");
    if (!e->n_idle)
        return false;
    ah = target_resolve(c, e, to, &qpn, &child);
    i = e->idle[e->n_idle - 1];
    at = send_buf(c, e, i);
    *(struct proto_head *)at = (struct proto_head){
        .magic = PROTO_DATA,
        .flags = target >= 0 ? PROTO_F_TARGET : 0,
        .head_bytes = (uint8_t)head_bytes,
        .from = rte_cpu_to_be_16((uint16_t)c->cfg.rank),
        .child = rte_cpu_to_be_16(child),
        .job = rte_cpu_to_be_32(c->cfg.group),
        .tag = rte_cpu_to_be_32(e->tag),
    };
    if (target >= 0) {
        const bool self = (unsigned)target == c->cfg.rank;

        *(struct proto_target *)(at + len) = (struct proto_target){
            .ip = rte_cpu_to_be_32(e->peer[target].ip),
            .qpn = rte_cpu_to_be_32(self ? e->qp->qp_num : e->peer[target].qpn)};
        len += sizeof(struct proto_target);
    }
    if (head_bytes)
        memcpy(at + len, head, head_bytes);
    memset(at + len + head_bytes, 0, padded - head_bytes);
    len += padded;
    if (data_bytes)
        memcpy(at + len, data, data_bytes);
    if (!datagram_post(e, ah, qpn, i, at, len + data_bytes))
        return false;
    e->n_idle--;
    return true;
}

bool protocol_send_ctl(struct protocol *e, struct ibv_ah *to, const struct agg_ctl *m)
{
    unsigned i;
    uint8_t *at;

    if (!e->n_idle || !to)
        return false;
    i = e->idle[e->n_idle - 1];
    at = send_buf(e->c, e, i);
    memcpy(at, m, sizeof(*m));
    if (!datagram_post(e, to, PROTO_QPN, i, at, sizeof(*m)))
        return false;
    e->n_idle--;
    return true;
}

/* ---- in ---- */

int protocol_post_recv(struct comm *c, struct protocol *e, uint64_t i)
{
    struct ibv_sge sge = {.addr = (uintptr_t)recv_buf(c, e, i),
                          .length = (uint32_t)recv_bytes(c),
                          .lkey = e->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = WR_ID(WR_PROTOCOL_RECV, e->index, i),
                             .sg_list = &sge,
                             .num_sge = 1},
                       *bad;

    return ibv_post_recv(e->qp, &wr, &bad);
}

/* A packet's IPv4 header fills the last 20 bytes of the GRH's room. */
struct source {
    uint32_t ip, qpn;
    bool marked;
};

static struct source source_of(const uint8_t *grh, uint32_t qpn)
{
    struct source s = {.qpn = qpn};
    rte_be32_t ip;

    if (grh[GRH - 20] >> 4 != 4)
        return s;
    memcpy(&ip, grh + GRH - 8, sizeof(ip));
    s.ip = rte_be_to_cpu_32(ip);
    s.marked = (grh[GRH - 19] & 3) == 3;
    return s;
}

static bool is_switch(const struct fabric *f, uint32_t ip)
{
    int d = fabric_dest_of_ip(f, ip);

    return d >= 0 && f->nodes[f->dests[d].node].kind == FAB_SWITCH;
}

static bool is_own_leaf(const struct comm *c, const struct protocol *e, const struct source *s)
{
    uint16_t leaf = e->at->leaf_of_rank[c->cfg.rank];

    return s->qpn == PROTO_QPN && leaf != FAB_NONE && c->cfg.fab->nodes[leaf].ip == s->ip;
}

/* Whether the sender is who the packet says. A switch forwards what a rank has sent through it in
 * that rank's name. */
static bool is_from(const struct comm *c, const struct protocol *e, const struct source *s,
                    unsigned from)
{
    if (from == PROTO_FROM_SWITCH)
        return is_own_leaf(c, e, s);
    if (from >= c->cfg.nranks || from == c->cfg.rank)
        return false;
    if (s->qpn == PROTO_QPN)
        return e->p->sw && is_switch(c->cfg.fab, s->ip);
    return s->ip == e->peer[from].ip && s->qpn == e->peer[from].qpn;
}

/* False: it is not of this job, or malformed. */
static bool data_input(struct comm *c, struct protocol *e, const struct source *s,
                       const uint8_t *msg, uint32_t len)
{
    _Alignas(8) uint8_t head[TRIB_HEAD];
    struct trib_packet p = {.head = head, .marked = s->marked};
    struct proto_head h;
    uint32_t at = sizeof(h);
    unsigned from;

    if (len < sizeof(h))
        return false;
    memcpy(&h, msg, sizeof(h));
    if (h.flags & PROTO_F_TARGET)
        at += sizeof(struct proto_target);
    from = rte_be_to_cpu_16(h.from);
    if (h.magic != PROTO_DATA || h.head_bytes > TRIB_HEAD || len < at + PROTO_PAD(h.head_bytes) ||
        h.job != rte_cpu_to_be_32(c->cfg.group) || h.tag != rte_cpu_to_be_32(e->tag) ||
        !is_from(c, e, s, from))
        return false;
    memcpy(head, msg + at, h.head_bytes);
    at += PROTO_PAD(h.head_bytes);
    p.head_bytes = h.head_bytes;
    p.data = msg + at;
    p.data_bytes = len - at;
    p.from = from == PROTO_FROM_SWITCH ? TRIB_SWITCH : TRIB_RANK((int)from);
    c->exec.moved++;
    proto_rank_packet(e->half, &p, protocol_now(c));
    half_check(c, e);
    return true;
}

static bool control_input(struct comm *c, struct protocol *e, const struct source *s,
                          const uint8_t *msg, uint32_t len)
{
    struct agg_ctl m;

    if (len < sizeof(m) || !is_own_leaf(c, e, s))
        return false;
    memcpy(&m, msg, sizeof(m));
    m.text[sizeof(m.text) - 1] = 0;
    if (m.version != AGG_VERSION || m.group != rte_cpu_to_be_32(c->cfg.group) ||
        m.slot != rte_cpu_to_be_32(e->tag))
        return false;
    protocol_control(c, e, &m);
    return true;
}

static void packet_input(struct comm *c, struct protocol *e, uint64_t i, const struct ibv_wc *wc)
{
    const uint8_t *grh = recv_buf(c, e, i);
    uint32_t len = wc->byte_len > GRH ? wc->byte_len - GRH : 0;
    struct source s = source_of(grh, wc->src_qp);
    rte_be32_t magic = 0;
    bool known;

    if (!e->half) /* other ranks were faster; they repeat */
        return;
    memcpy(&magic, grh + GRH, sizeof(magic));
    known = magic == RTE_BE32(PROTO_MAGIC) ? control_input(c, e, &s, grh + GRH, len)
                                           : e->stopped || data_input(c, e, &s, grh + GRH, len);
    e->refused += !known;
}

void protocol_complete(struct comm *c, const struct ibv_wc *wc)
{
    struct protocol *e = &c->protocols->p[WR_INDEX(wc->wr_id)];
    uint64_t i = WR_COUNT(wc->wr_id);

    if (WR_KIND(wc->wr_id) == WR_PROTOCOL_SEND) {
        T_ASSERT_HOT(e->n_idle < PROTOCOL_SENDS, "more send buffers come back than are out");
        e->idle[e->n_idle++] = (uint16_t)i;
        return;
    }
    if (wc->status != IBV_WC_SUCCESS)
        return;
    packet_input(c, e, i, wc);
    if (protocol_post_recv(c, e, i))
        comm_fail(c, "protocol %s: cannot post a receive", e->p->name);
}

unsigned protocols_progress(struct comm *c)
{
    unsigned did = 0;

    for (unsigned i = 0; i < c->protocols->n && c->state != COMM_FAILED; i++) {
        struct protocol *e = &c->protocols->p[i];
        int64_t t;

        if (!e->half || e->stopped)
            continue;
        t = protocol_now(c);
        if (proto_rank_next(e->half) <= t) {
            proto_rank_tick(e->half, t);
            half_check(c, e);
            did++;
        }
        if (proto_rank_waits(e->half) && e->n_idle && !e->stopped) {
            proto_rank_room(e->half, t);
            half_check(c, e);
            did++;
        }
    }
    return did;
}

int64_t comm_deadline(const struct comm *c)
{
    int64_t t = INT64_MAX;

    for (unsigned i = 0; c->protocols && i < c->protocols->n && c->state != COMM_FAILED; i++)
        if (c->protocols->p[i].half && !c->protocols->p[i].stopped)
            t = RTE_MIN(t, proto_rank_next(c->protocols->p[i].half));
    return t;
}

void comm_counted(const struct comm *c, enum coll_algo a, uint64_t n[TRIB_COUNTERS])
{
    memset(n, 0, TRIB_COUNTERS * sizeof(*n));
    for (unsigned i = 0; c->protocols && i < c->protocols->n; i++) {
        const struct protocol *e = &c->protocols->p[i];

        for (unsigned k = 0; ALGO_PROTOCOL + e->seat == a && e->half && k < TRIB_COUNTERS; k++)
            n[k] += e->counted[k] + proto_rank_counters(e->half)[k];
    }
}

/* ---- operations ---- */

struct protocol *protocol_of_lane(const struct comm *c, const struct lane *l)
{
    for (unsigned i = 0; c->protocols && i < c->protocols->n; i++)
        if (c->protocols->p[i].seat == l->chan && c->protocols->p[i].chan == l->peer)
            return &c->protocols->p[i];
    return NULL;
}

unsigned protocol_run(struct comm *c, struct coll_req *r, unsigned lane)
{
    struct protocol *e = protocol_of_lane(c, &r->s.lane[lane]);
    const struct step *st = lane_step(&r->s.lane[lane], 0);
    struct trib_op op = {.send = exec_addr(r, &st->a),
                         .recv = exec_addr(r, &st->dst),
                         .count = st->len / r->s.esize,
                         .type = (enum trib_type)r->id.type,
                         .op = r->id.op == OP_AVG ? TRIB_SUM : (enum trib_sum)r->id.op};
    int rc;

    if (r->lane[lane].begun || e->state == JOIN_ASKED || !exec_may_start(r, lane, WAIT_START, st))
        return 0;
    r->lane[lane].begun = 1;
    exec_posted(c, r, lane, 0);
    e->lane = lane;
    rc = proto_rank_start(e->half, &op, protocol_now(c));
    if (rc) /* as it would on each tree */
        c->protocols->failing |= (uint8_t)protocol_in_use(c, e->seat);
    if (rc)
        protocol_fail(e, "protocol %s does not start: %s", e->p->name,
                      proto_rank_error(e->half) ? proto_rank_error(e->half) : strerror(-rc));
    else
        half_check(c, e);
    return 1;
}
