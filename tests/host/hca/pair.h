/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two HCAs joined in memory by their endpoints: no thread, no clock. Time advances when no frame moves. The
 * driver's lock sees to it that every call gives back what it takes.
 */
#ifndef TRIB_TESTS_HOST_HCA_PAIR_H
#define TRIB_TESTS_HOST_HCA_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "host/hca/hca.h"
#include "tests/support/eal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IP_A  0x0a000001u
#define IP_B  0x0a000002u
#define BYTES (1u << 20)

/* One side: a context, one of each object, and a registered buffer. */
struct side {
    struct hca *h;
    struct endpoint ep;
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    uint8_t *buf;
    uint32_t ip;
};

struct pair {
    struct rte_mempool *pool;
    struct side s[2];
    int64_t now_ps;
    struct hca_driver drv;    /* of both: its lock is pair_lock(), but in test_threads.c */
    bool early_slots;         /* of both: no, but in test_slots.c */
    struct fab_notice notice; /* of both: none, but in test_completion_delay.c */
    unsigned delivered;
    unsigned free_at_start;
    bool (*drop)(void *ctx, struct rte_mbuf *m);
    void *drop_ctx;
};

/* ---- the lock of both ---- */

static bool pair_locked;

static inline void pair_lock(void *ctx)
{
    (void)ctx;
    if (pair_locked)
        fail_msg("the lock is taken by who has it");
    pair_locked = true;
}

static inline void pair_unlock(void *ctx)
{
    (void)ctx;
    if (!pair_locked)
        fail_msg("the lock is given back by who does not have it");
    pair_locked = false;
}

static inline void side_open(struct pair *p, unsigned i)
{
    struct side *s = &p->s[i];
    struct hca_cfg cfg = {.ip = i ? IP_B : IP_A,
                          .slot = i,
                          .mtu = 4096,
                          .rate_bps = 400000000000ull,
                          .pool = p->pool,
                          .notice = p->notice,
                          .early_slots = p->early_slots,
                          .drv = p->drv};

    snprintf(cfg.name, sizeof(cfg.name), "trib%u", i);
    s->ip = cfg.ip;
    assert_int_equal(hca_create(&s->h, &cfg), 0);
    s->ep = hca_endpoint(s->h);
    s->ctx = ibv_open_device(hca_device(s->h));
    assert_non_null(s->ctx);
    s->pd = ibv_alloc_pd(s->ctx);
    assert_non_null(s->pd);
    s->cq = ibv_create_cq(s->ctx, 256, NULL, NULL, 0);
    assert_non_null(s->cq);
    s->buf = calloc(1, BYTES);
    s->mr = ibv_reg_mr(s->pd, s->buf, BYTES,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC);
    assert_non_null(s->mr);
}

static inline void pair_open_as(struct pair *p, const struct hca_driver *drv, int64_t gpu_ps,
                                bool early_slots)
{
    static struct rte_mempool *pool;

    test_eal_init();
    if (!pool)
        pool = test_pool(4096);
    memset(p, 0, sizeof(*p));
    p->pool = pool;
    if (drv)
        p->drv = *drv;
    pair_locked = false;
    if (!p->drv.lock)
        p->drv.lock = pair_lock, p->drv.unlock = pair_unlock;
    p->notice.gpu_ps = gpu_ps;
    p->early_slots = early_slots;
    p->free_at_start = rte_mempool_avail_count(pool);
    side_open(p, 0);
    side_open(p, 1);
}

static inline void pair_open_with(struct pair *p, const struct hca_driver *drv, int64_t gpu_ps)
{
    pair_open_as(p, drv, gpu_ps, false);
}

static inline void pair_open_driven(struct pair *p, const struct hca_driver *drv)
{
    pair_open_with(p, drv, 0);
}

static inline void pair_open(struct pair *p)
{
    pair_open_driven(p, NULL);
}

/* A test destroys what it made beyond the sides before this call; no frame may be missing. */
static inline void pair_close(struct pair *p)
{
    for (unsigned i = 0; i < 2; i++) {
        struct side *s = &p->s[i];

        assert_int_equal(ibv_dereg_mr(s->mr), 0);
        assert_int_equal(ibv_destroy_cq(s->cq), 0);
        assert_int_equal(ibv_dealloc_pd(s->pd), 0);
        assert_int_equal(ibv_close_device(s->ctx), 0);
        hca_destroy(s->h);
        free(s->buf);
    }
    assert_int_equal(rte_mempool_avail_count(p->pool), p->free_at_start);
}

static inline uint32_t frame_dst_ip(struct rte_mbuf *m)
{
    const uint8_t *f = rte_pktmbuf_mtod(m, const uint8_t *);

    return (uint32_t)f[30] << 24 | f[31] << 16 | f[32] << 8 | f[33];
}

/* Delivers a frame to the other side, or back if it is to the sender's own address. */
static inline void pair_deliver(struct pair *p, unsigned from, struct rte_mbuf *m)
{
    struct side *to = &p->s[frame_dst_ip(m) == p->s[from].ip ? from : !from];

    if (p->drop && p->drop(p->drop_ctx, m)) {
        rte_pktmbuf_free(m);
        return;
    }
    p->delivered++;
    assert_int_equal(to->ep.input(to->ep.ctx, &m, 1, p->now_ps), 1);
}

static inline bool pair_round(struct pair *p)
{
    struct rte_mbuf *m[16];
    bool moved = false, ours = p->drv.lock == pair_lock;

    if (ours)
        pair_lock(NULL);
    for (unsigned i = 0; i < 2; i++) {
        struct endpoint *ep = &p->s[i].ep;

        if (ep->next(ep->ctx) <= p->now_ps)
            ep->tick(ep->ctx, p->now_ps);
        for (unsigned q = 0; q < ENDPOINT_QUEUES; q++) {
            uint16_t n = ep->output(ep->ctx, (enum endpoint_queue)q, m, 16, p->now_ps);

            moved |= n > 0;
            for (uint16_t k = 0; k < n; k++)
                pair_deliver(p, i, m[k]);
        }
    }
    if (ours)
        pair_unlock(NULL);
    return moved;
}

/* Runs until neither side sends or has a deadline within for_ps. */
static inline void pair_run(struct pair *p, int64_t for_ps)
{
    int64_t end = p->now_ps + for_ps;

    for (;;) {
        int64_t next = PS_NEVER;

        while (pair_round(p))
            ;
        for (unsigned i = 0; i < 2; i++)
            next = RTE_MIN(next, p->s[i].ep.next(p->s[i].ep.ctx));
        if (next > end)
            return;
        p->now_ps = RTE_MAX(next, p->now_ps + 1);
    }
}

static inline void pair_settle(struct pair *p)
{
    pair_run(p, 0);
}

/* ---- queue pairs ---- */

static inline struct ibv_qp *make_qp_on(struct side *s, enum ibv_qp_type type, struct ibv_cq *scq,
                                        struct ibv_cq *rcq, struct ibv_srq *srq)
{
    struct ibv_qp_init_attr a = {
        .send_cq = scq, .recv_cq = rcq, .srq = srq, .qp_type = type, .cap = {64, 64, 4, 4, 128}};

    return ibv_create_qp(s->pd, &a);
}

static inline struct ibv_qp *make_qp(struct side *s, enum ibv_qp_type type)
{
    struct ibv_qp *qp = make_qp_on(s, type, s->cq, s->cq, NULL);

    assert_non_null(qp);
    return qp;
}

static inline union ibv_gid gid_of(uint32_t ip)
{
    union ibv_gid g = {.raw = {[10] = 0xff, [11] = 0xff}};

    g.raw[12] = ip >> 24, g.raw[13] = ip >> 16, g.raw[14] = ip >> 8, g.raw[15] = ip;
    return g;
}

static inline struct ibv_ah_attr ah_to(uint32_t ip)
{
    return (struct ibv_ah_attr){
        .is_global = 1, .port_num = 1, .grh = {.dgid = gid_of(ip), .hop_limit = 64}};
}

/* fe80::54:AAff:feBB:CCDD of AA.BB.CC.DD, GID index 1 */
static inline union ibv_gid link_local_of(uint32_t ip)
{
    return (union ibv_gid){.raw = {0xfe, 0x80, [9] = 0x54, (uint8_t)(ip >> 24), 0xff, 0xfe,
                                   (uint8_t)(ip >> 16), (uint8_t)(ip >> 8), (uint8_t)ip}};
}

static inline struct ibv_ah_attr ah6_to(uint32_t ip)
{
    return (struct ibv_ah_attr){
        .is_global = 1,
        .port_num = 1,
        .grh = {.dgid = link_local_of(ip), .sgid_index = 1, .hop_limit = 64}};
}

#define MASK_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define MASK_RTR                                                                                   \
    (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |                \
     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define MASK_RTS                                                                                   \
    (IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |         \
     IBV_QP_MAX_QP_RD_ATOMIC)

static inline struct ibv_qp_attr rc_attr(uint32_t peer_ip, uint32_t peer_qpn)
{
    return (struct ibv_qp_attr){.port_num = 1,
                                .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
                                                   IBV_ACCESS_REMOTE_READ |
                                                   IBV_ACCESS_REMOTE_ATOMIC,
                                .ah_attr = ah_to(peer_ip),
                                .path_mtu = IBV_MTU_1024,
                                .dest_qp_num = peer_qpn,
                                .rq_psn = 7,
                                .sq_psn = 7,
                                .max_dest_rd_atomic = 16,
                                .max_rd_atomic = 16,
                                .min_rnr_timer = 12,
                                .timeout = 14,
                                .retry_cnt = 3,
                                .rnr_retry = 3};
}

static inline void rc_connect_by(struct ibv_qp *qp, struct ibv_ah_attr to, uint32_t peer_qpn)
{
    struct ibv_qp_attr a = rc_attr(0, peer_qpn);
    int uc = qp->qp_type == IBV_QPT_UC;

    a.ah_attr = to;
    a.qp_state = IBV_QPS_INIT;
    assert_int_equal(ibv_modify_qp(qp, &a, MASK_INIT), 0);
    a.qp_state = IBV_QPS_RTR;
    assert_int_equal(
        ibv_modify_qp(
            qp, &a, uc ? MASK_RTR & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) : MASK_RTR),
        0);
    a.qp_state = IBV_QPS_RTS;
    assert_int_equal(ibv_modify_qp(qp, &a, uc ? IBV_QP_STATE | IBV_QP_SQ_PSN : MASK_RTS), 0);
}

static inline void rc_connect(struct ibv_qp *qp, uint32_t peer_ip, uint32_t peer_qpn)
{
    rc_connect_by(qp, ah_to(peer_ip), peer_qpn);
}

static inline void rc_pair(struct pair *p, struct ibv_qp **a, struct ibv_qp **b)
{
    *a = make_qp(&p->s[0], IBV_QPT_RC);
    *b = make_qp(&p->s[1], IBV_QPT_RC);
    rc_connect(*a, IP_B, (*b)->qp_num);
    rc_connect(*b, IP_A, (*a)->qp_num);
}

static inline void ud_ready(struct ibv_qp *qp, uint32_t qkey)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey};

    assert_int_equal(
        ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
    a.qp_state = IBV_QPS_RTR;
    assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
    a.qp_state = IBV_QPS_RTS;
    assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

/* ---- requests ---- */

static inline struct ibv_sge sge_at(const struct side *s, uint32_t off, uint32_t len)
{
    return (struct ibv_sge){(uintptr_t)s->buf + off, len, s->mr->lkey};
}

static inline int post_recv(struct ibv_qp *qp, uint64_t id, struct ibv_sge *sge, int n)
{
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = sge, .num_sge = n}, *bad;

    return ibv_post_recv(qp, &wr, &bad);
}

static inline int post_send(struct ibv_qp *qp, struct ibv_send_wr wr)
{
    struct ibv_send_wr *bad;

    return ibv_post_send(qp, &wr, &bad);
}

/* Polls the only completion of the queue. */
static inline struct ibv_wc one_wc(struct ibv_cq *cq)
{
    struct ibv_wc wc[2] = {0};

    assert_int_equal(ibv_poll_cq(cq, 2, wc), 1);
    return wc[0];
}

static inline void no_wc(struct ibv_cq *cq)
{
    struct ibv_wc wc;

    assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
}

static inline void fill(uint8_t *b, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        b[i] = (uint8_t)(seed + i * 31 + (i >> 8));
}

#endif
