/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast datagrams in a fabric without faults: processes attach and detach, one process sends to
 * every group, and each attached process must get one copy. The groups' addresses collide in the
 * hash tables of switches and NICs.
 */
#include "sim/chaos/chaos_priv.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS    4u
#define MEMBERS   6u
#define ROUNDS    3u
#define BASE      0xe9000000u /* 233.0.0.0 */
#define STEP      2604072u    /* times 0x9e3779b1 is nearly 0: the same bucket of switch/mcast.c */
#define GRH       40u
#define SIZE      256u
#define SETTLE_PS (200 * PS_PER_US)
#define QKEY      0x11u

struct payload {
    uint32_t round, group;
};

struct mcast_member {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint8_t *mem; /* [GROUPS + 1] buffers: for receives, and for the datagram to send */
    unsigned attached;
};

struct mcast_run {
    struct chaos_case *k;
    struct world *w;
    uint64_t random;
    uint32_t base;
    unsigned n;
    struct mcast_member m[MEMBERS];
    struct ibv_ah *ah[GROUPS]; /* of the first member, which sends */
};

static union ibv_gid gid_of(const struct mcast_run *r, unsigned group)
{
    union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};
    uint32_t ip = htonl(r->base + group * STEP);

    memcpy(gid.raw + 12, &ip, sizeof(ip));
    return gid;
}

static void mcast_run_settle(struct mcast_run *r)
{
    int64_t until = world_now(r->w) + SETTLE_PS;

    while (world_now(r->w) < until)
        world_step(r->w, until);
}

static bool open_member(struct mcast_member *m)
{
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_UD, .sq_sig_all = 1, .cap = {GROUPS, GROUPS, 1, 1, 0}};
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};

    m->mem = calloc(GROUPS + 1, SIZE);
    m->pd = ibv_alloc_pd(m->ctx);
    m->cq = ibv_create_cq(m->ctx, 4 * GROUPS, NULL, NULL, 0);
    if (!m->mem || !m->pd || !m->cq)
        return false;
    init.send_cq = init.recv_cq = m->cq;
    m->qp = ibv_create_qp(m->pd, &init);
    m->mr = ibv_reg_mr(m->pd, m->mem, (GROUPS + 1) * SIZE, IBV_ACCESS_LOCAL_WRITE);
    if (!m->qp || !m->mr ||
        ibv_modify_qp(m->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
        return false;
    a.qp_state = IBV_QPS_RTR;
    if (ibv_modify_qp(m->qp, &a, IBV_QP_STATE))
        return false;
    a.qp_state = IBV_QPS_RTS;
    return !ibv_modify_qp(m->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

static bool open_all(struct mcast_run *r)
{
    for (unsigned i = 0; i < r->n; i++) {
        r->m[i].ctx = world_context(r->w, i, 0);
        if (!open_member(&r->m[i]))
            return false;
    }
    for (unsigned g = 0; g < GROUPS; g++) {
        struct ibv_ah_attr to = {
            .is_global = 1, .port_num = 1, .grh = {.dgid = gid_of(r, g), .hop_limit = 64}};

        r->ah[g] = ibv_create_ah(r->m[0].pd, &to);
        if (!r->ah[g])
            return false;
    }
    return true;
}

static void close_all(struct mcast_run *r)
{
    for (unsigned g = 0; g < GROUPS; g++)
        if (r->ah[g])
            ibv_destroy_ah(r->ah[g]);
    for (unsigned i = 0; i < r->n; i++) {
        struct mcast_member *m = &r->m[i];

        if (m->qp)
            ibv_destroy_qp(m->qp);
        if (m->mr)
            ibv_dereg_mr(m->mr);
        if (m->cq)
            ibv_destroy_cq(m->cq);
        if (m->pd)
            ibv_dealloc_pd(m->pd);
        free(m->mem);
    }
}

static void attach(struct mcast_run *r, struct mcast_member *m, unsigned wanted)
{
    for (unsigned g = 0; g < GROUPS; g++) {
        union ibv_gid gid = gid_of(r, g);
        bool on = wanted >> g & 1;
        int rc = 0;

        if (on != (m->attached >> g & 1))
            rc = on ? ibv_attach_mcast(m->qp, &gid, 0) : ibv_detach_mcast(m->qp, &gid, 0);
        if (rc)
            chaos_wrong(r->k, "multicast: cannot %s: %s", on ? "attach" : "detach", strerror(rc));
    }
    m->attached = wanted;
}

static void post_receives(struct mcast_run *r, struct mcast_member *m)
{
    for (unsigned g = 0; g < (unsigned)__builtin_popcount(m->attached); g++) {
        struct ibv_sge s = {(uintptr_t)(m->mem + g * SIZE), SIZE, m->mr->lkey};
        struct ibv_recv_wr wr = {.wr_id = g, .sg_list = &s, .num_sge = 1}, *bad;

        if (ibv_post_recv(m->qp, &wr, &bad))
            chaos_wrong(r->k, "multicast: cannot post a receive");
    }
}

static void send_to(struct mcast_run *r, unsigned round, unsigned group)
{
    struct mcast_member *m = &r->m[0];
    struct payload *p = (struct payload *)(m->mem + GROUPS * SIZE);
    struct ibv_sge s = {(uintptr_t)p, sizeof(*p), m->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .wr.ud = {r->ah[group], 0xffffff, QKEY}},
                       *bad;

    *p = (struct payload){round, group};
    if (ibv_post_send(m->qp, &wr, &bad))
        chaos_wrong(r->k, "multicast: cannot post a datagram");
    mcast_run_settle(r);
}

/* Checks that member i got one datagram of every group that it is attached to, and no other. */
static void mcast_run_check(struct mcast_run *r, unsigned round, unsigned i)
{
    struct mcast_member *m = &r->m[i];
    unsigned left = m->attached;
    struct ibv_wc wc;

    while (ibv_poll_cq(m->cq, 1, &wc) > 0) {
        struct payload p = {0};

        if (wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_SEND)
            continue;
        if (wc.status == IBV_WC_SUCCESS)
            memcpy(&p, m->mem + wc.wr_id * SIZE + GRH, sizeof(p));
        if (wc.status != IBV_WC_SUCCESS || p.round != round || p.group >= GROUPS ||
            !(left >> p.group & 1)) {
            chaos_wrong(r->k, "multicast: process %u gets a datagram that is not for it", i);
            return;
        }
        left &= ~(1u << p.group);
    }
    if (left)
        chaos_wrong(r->k, "multicast: process %u of group %d gets nothing", i, __builtin_ctz(left));
}

void chaos_run_mcast(struct chaos_case *k, struct world *w)
{
    struct mcast_run r = {.k = k, .w = w, .random = k->mcast, .n = RTE_MIN(k->nprocs, MEMBERS)};

    r.base = BASE + (uint32_t)(random_next(&r.random) % 65536) * 64;
    if (!open_all(&r))
        chaos_wrong(k, "multicast: cannot make its queue pairs");
    for (unsigned round = 0; k->rep->ok && round <= ROUNDS; round++) {
        for (unsigned i = 0; i < r.n; i++) /* the sender is in no group; in the end nobody is */
            attach(&r, &r.m[i],
                   i && round < ROUNDS ? (unsigned)random_next(&r.random) % (1u << GROUPS) : 0);
        mcast_run_settle(&r);
        for (unsigned i = 0; i < r.n; i++)
            post_receives(&r, &r.m[i]);
        for (unsigned g = 0; g < GROUPS && k->rep->ok; g++)
            send_to(&r, round, g);
        for (unsigned i = 0; i < r.n; i++)
            mcast_run_check(&r, round, i);
    }
    for (unsigned i = 0; i < r.n; i++)
        attach(&r, &r.m[i], 0);
    close_all(&r);
}
