/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/coll/transport/edge.h"

#include <errno.h>
#include <string.h>

/*
 * Local ACK timeout, where the conf sets none: 4.096 us * 2^14 = 67 ms: thousands of round trips,
 * so that queueing never looks like loss. The launcher, not this timeout, reports that a rank is
 * gone.
 *
 * In a fabric in real time 67 ms may be a process or a guest that was not scheduled, and a
 * retransmission is worse than a wait: Soft-RoCE of Linux 6.1 has been seen to repeat packets with
 * the payload of others. Loss is still noticed at once wherever something follows (NAK).
 */
#define ACK_TIMEOUT      14
#define ACK_TIMEOUT_REAL 18 /* 1.07 s */
#define RNR_RETRIES      7  /* without end (IBTA 9.7.5.2.8) */
#define RNR_TIMER        12 /* 0.64 ms */
#define HOP_LIMIT        64

void port_set_timeouts(struct port *p, const struct fabric *fab)
{
    p->ack_timeout = fab->transport.ack_timeout ? fab->transport.ack_timeout
                     : fab->dilation == 1       ? ACK_TIMEOUT_REAL
                                                : ACK_TIMEOUT;
    p->retry_count = fab->transport.retry_count;
}

static int neg_errno(int rc)
{
    return rc > 0 ? -rc : rc < 0 ? -errno : 0;
}

void gid_of_ip(union ibv_gid *gid, uint32_t ip)
{
    memset(gid, 0, sizeof(*gid));
    gid->raw[10] = gid->raw[11] = 0xff;
    for (unsigned i = 0; i < 4; i++)
        gid->raw[12 + i] = (uint8_t)(ip >> (24 - 8 * i));
}

static enum ibv_mtu mtu_code(uint32_t bytes)
{
    enum ibv_mtu m = IBV_MTU_256;

    while (m < IBV_MTU_4096 && (256u << m) <= bytes)
        m++;
    return m;
}

static bool is_one_of(const union ibv_gid *gid, const uint32_t *ip, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        union ibv_gid want;

        gid_of_ip(&want, ip[i]);
        if (!memcmp(&want, gid, sizeof(want)))
            return true;
    }
    return false;
}

/*
 * Where one address stands in the table more than once, RoCE v1 comes before v2 (that is how Linux
 * fills it), so the last match is the one that routes.
 */
int port_find(struct port *p, const uint32_t *ip, unsigned n, uint32_t max_mtu)
{
    struct ibv_device_attr dev;
    int rc = neg_errno(ibv_query_device(p->ctx, &dev));

    for (uint8_t num = 1; !rc && num <= dev.phys_port_cnt; num++) {
        struct ibv_port_attr attr;
        bool found = false;

        rc = neg_errno(ibv_query_port(p->ctx, num, &attr));
        for (int i = 0; !rc && i < attr.gid_tbl_len && i < 256; i++) {
            union ibv_gid gid;

            if (ibv_query_gid(p->ctx, num, i, &gid) || !is_one_of(&gid, ip, n))
                continue;
            p->gid = gid;
            p->gid_index = (uint8_t)i;
            found = true;
        }
        if (found) {
            uint32_t active = 128u << attr.active_mtu;

            p->num = num;
            p->mtu = active < max_mtu ? active : max_mtu;
            p->mtu = 128u << mtu_code(p->mtu);
            return 0;
        }
    }
    return rc ? rc : -ENODEV;
}

int port_reserve(struct port *p, uint32_t more)
{
    uint32_t want = p->cqe + more, size = p->cq ? (uint32_t)p->cq->cqe : want;

    while (size < want)
        size *= 2;
    if (!p->cq)
        p->cq = ibv_create_cq(p->ctx, (int)size, NULL, NULL, 0);
    else if (size > (uint32_t)p->cq->cqe && ibv_resize_cq(p->cq, (int)size))
        return errno ? -errno : -ENOMEM;
    if (!p->cq)
        return errno ? -errno : -ENOMEM;
    p->cqe = want;
    return 0;
}

struct ibv_qp *rc_create(struct port *p, const struct edge_cap *cap, bool remote_write)
{
    struct ibv_qp_init_attr init = {
        .send_cq = p->cq,
        .recv_cq = p->cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = cap->send_wr,
                .max_recv_wr = cap->recv_wr,
                .max_send_sge = cap->send_sge,
                .max_recv_sge = cap->recv_sge,
                .max_inline_data = cap->inline_bytes},
    };
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = p->num,
        .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | (remote_write ? IBV_ACCESS_REMOTE_WRITE : 0),
    };
    struct ibv_qp *qp = ibv_create_qp(p->pd, &init);
    int rc;

    if (!qp)
        return NULL;
    rc = ibv_modify_qp(qp, &attr,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (rc) {
        ibv_destroy_qp(qp);
        errno = rc;
        return NULL;
    }
    return qp;
}

static void ah_attr_fill(struct port *p, const union ibv_gid *gid, struct ibv_ah_attr *ah)
{
    memset(ah, 0, sizeof(*ah));
    ah->is_global = 1;
    ah->port_num = p->num;
    ah->grh.dgid = *gid;
    ah->grh.sgid_index = p->gid_index;
    ah->grh.hop_limit = HOP_LIMIT;
}

int rc_connect(struct port *p, struct ibv_qp *qp, const struct remote *r, uint32_t psn)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = mtu_code(p->mtu),
        .dest_qp_num = r->qpn,
        .rq_psn = r->psn,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = RNR_TIMER,
    };
    int rc;

    ah_attr_fill(p, &r->gid, &attr.ah_attr);
    rc = ibv_modify_qp(qp, &attr,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                           IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (rc)
        return neg_errno(rc);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS,
        .sq_psn = psn,
        .timeout = p->ack_timeout,
        .retry_cnt = p->retry_count,
        .rnr_retry = RNR_RETRIES,
        .max_rd_atomic = 1,
    };
    return neg_errno(ibv_modify_qp(qp, &attr,
                                   IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
                                       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                       IBV_QP_MAX_QP_RD_ATOMIC));
}

struct ibv_qp *ud_create(struct port *p, const struct edge_cap *cap, uint32_t qkey)
{
    struct ibv_qp_init_attr init = {
        .send_cq = p->cq,
        .recv_cq = p->cq,
        .qp_type = IBV_QPT_UD,
        .cap = {.max_send_wr = cap->send_wr,
                .max_recv_wr = cap->recv_wr,
                .max_send_sge = cap->send_sge,
                .max_recv_sge = cap->recv_sge},
    };
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = p->num, .qkey = qkey};
    struct ibv_qp *qp = ibv_create_qp(p->pd, &init);
    int rc;

    if (!qp)
        return NULL;
    rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    attr.qp_state = IBV_QPS_RTR;
    if (!rc)
        rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
    attr.qp_state = IBV_QPS_RTS;
    if (!rc)
        rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
    if (rc) {
        ibv_destroy_qp(qp);
        errno = rc;
        return NULL;
    }
    return qp;
}

struct ibv_ah *ud_address(struct port *p, const union ibv_gid *gid)
{
    struct ibv_ah_attr ah;

    ah_attr_fill(p, gid, &ah);
    return ibv_create_ah(p->pd, &ah);
}

void qp_stop(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    if (qp)
        ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}
