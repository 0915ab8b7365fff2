/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection: a reliable queue pair, used in one direction. Sends to a dead peer fail. An end
 * that only waits sends an empty message each second, which the peer's NIC acknowledges.
 */
#include "system/credential.h"
#include "plugins/nccl/nccl_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASK_MS    1000
#define RETRIES   7
#define RNR_TIMER 12 /* 0.64 ms */
#define SQ        (NCCL_SENDS + NCCL_REQUESTS)
#define RQ        (NCCL_SENDS + NCCL_REQUESTS)

/* ---- life ---- */

static int link_init(struct nccl_link *l)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
                            .port_num = 1,
                            .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = SQ,
                .max_recv_wr = RQ,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = sizeof(struct nccl_announcement)},
    };

    l->cq = ibv_create_cq(l->device->ctx, SQ + RQ, NULL, NULL, 0);
    init.send_cq = init.recv_cq = l->cq;
    if (l->cq)
        l->qp = ibv_create_qp(l->device->pd, &init);
    if (!l->qp ||
        ibv_modify_qp(l->qp, &a,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        return NCCL_SYSTEM_ERROR;
    l->mine.gid = l->device->gid;
    l->mine.qpn = l->qp->qp_num;
    if (credential_random(&l->mine.psn, sizeof(l->mine.psn)))
        return NCCL_SYSTEM_ERROR;
    l->mine.psn &= 0xffffff;
    return l->kind == NCCL_KIND_SEND ? nccl_send_prepare(l) : nccl_receive_prepare(l);
}

int nccl_link_new(struct nccl_device *device, enum nccl_kind kind, struct nccl_link **link)
{
    struct nccl_link *l = calloc(1, sizeof(*l));

    if (!l)
        return nccl_refuse(NCCL_SYSTEM_ERROR, "out of memory");
    l->device = device;
    l->kind = kind;
    for (unsigned i = 0; i < NCCL_SENDS; i++)
        l->request[i].link = l;
    if (link_init(l)) {
        nccl_link_free(l);
        return nccl_refuse(NCCL_SYSTEM_ERROR, "%s: found no room for a connection, expected %d",
                           device->name, device->max_qp);
    }
    *link = l;
    return NCCL_SUCCESS;
}

int nccl_link_connect(struct nccl_link *l, const struct nccl_address *peer)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
                            .path_mtu = l->device->mtu,
                            .dest_qp_num = peer->qpn,
                            .rq_psn = peer->psn,
                            .max_dest_rd_atomic = 1,
                            .min_rnr_timer = RNR_TIMER,
                            .ah_attr = nccl_route(&peer->gid)};
    int rc = ibv_modify_qp(l->qp, &a,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                               IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);

    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                             .sq_psn = l->mine.psn,
                             .timeout = l->device->ack_timeout,
                             .retry_cnt = RETRIES,
                             .rnr_retry = RETRIES, /* 7: retry for ever */
                             .max_rd_atomic = 1};
    if (!rc)
        rc = ibv_modify_qp(l->qp, &a,
                           IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                               IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
    l->peer = *peer;
    l->heard_ms = nccl_wall_ms();
    return rc ? nccl_refuse(NCCL_SYSTEM_ERROR, "%s: a queue pair cannot be connected: %s",
                            l->device->name, strerror(rc))
              : NCCL_SUCCESS;
}

void nccl_link_free(struct nccl_link *l)
{
    for (unsigned i = 0; i < NCCL_SENDS; i++)
        nccl_request_end(&l->request[i]);
    if (l->handle)
        nccl_handle_end(l->handle);
    if (l->qp)
        ibv_destroy_qp(l->qp);
    if (l->cq)
        ibv_destroy_cq(l->cq);
    if (l->mr)
        ibv_dereg_mr(l->mr);
    free(l);
}

/* ---- requests ---- */

struct nccl_request *nccl_request_new(struct nccl_link *l, unsigned most)
{
    for (unsigned i = 0; i < most; i++) {
        struct nccl_request *r = &l->request[i];

        if (r->handle)
            continue;
        r->handle = nccl_handle_new(NCCL_KIND_REQUEST, r);
        r->refused = false;
        return r->handle ? r : NULL;
    }
    return NULL;
}

void nccl_request_end(struct nccl_request *r)
{
    if (r->handle)
        nccl_handle_end(r->handle);
    r->handle = NULL;
}

/* ---- completions ---- */

static int nccl_link_fail(struct nccl_link *l, int result, const char *why)
{
    const uint8_t *ip = &l->peer.gid.raw[12];

    if (l->failed)
        return l->failed;
    l->failed = result;
    return nccl_refuse(result, "%s from %s with %u.%u.%u.%u, queue pair %u: %s",
                       l->kind == NCCL_KIND_SEND ? "sending" : "receiving", l->device->name, ip[0],
                       ip[1], ip[2], ip[3], l->peer.qpn, why);
}

static void link_broken(struct nccl_link *l, const struct ibv_wc *wc)
{
    char text[160];

    if (wc->status == IBV_WC_WR_FLUSH_ERR && l->failed)
        return;
    if (wc->status == IBV_WC_RETRY_EXC_ERR)
        snprintf(text, sizeof(text),
                 "the peer has gone: it has not answered in %d tries of its NIC", RETRIES + 1);
    else
        snprintf(text, sizeof(text), "%s", ibv_wc_status_str(wc->status));
    nccl_link_fail(l, NCCL_REMOTE_ERROR, text);
}

int nccl_link_poll(struct nccl_link *l)
{
    struct ibv_wc wc;

    while (ibv_poll_cq(l->cq, 1, &wc) == 1) {
        int rc;

        l->posted -= wc.wr_id < NCCL_WR_RECV;
        if (wc.status) {
            link_broken(l, &wc);
            continue;
        }
        l->heard_ms = nccl_wall_ms();
        if (wc.wr_id == NCCL_WR_ASK)
            l->asking = false;
        rc = l->kind == NCCL_KIND_SEND ? nccl_send_took(l, &wc) : nccl_receive_took(l, &wc);
        if (rc)
            nccl_link_fail(l, rc, "the peer says what cannot be");
    }
    return l->failed;
}

int nccl_link_post(struct nccl_link *l, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;
    int rc = ibv_post_send(l->qp, wr, &bad);

    l->posted += !rc;
    return rc ? nccl_link_fail(l, NCCL_SYSTEM_ERROR, strerror(rc)) : NCCL_SUCCESS;
}

void nccl_link_ask(struct nccl_link *l)
{
    struct ibv_send_wr wr = {
        .wr_id = NCCL_WR_ASK, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};

    if (l->failed || l->asking || l->posted || nccl_wall_ms() - l->heard_ms < ASK_MS)
        return;
    l->asking = !nccl_link_post(l, &wr);
}
