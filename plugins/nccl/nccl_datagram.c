/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue pair for datagrams. They are sent inline, so sends need no registered memory. */
#include "plugins/nccl/nccl_priv.h"

#include <string.h>

#define QKEY  0x54724e63u
#define SENDS 64

struct ibv_ah_attr nccl_route(const union ibv_gid *gid)
{
    return (struct ibv_ah_attr){
        .is_global = 1, .port_num = 1, .grh = {.dgid = *gid, .hop_limit = 64}};
}

static int post_box_receive(struct nccl_post_box *box, unsigned i)
{
    struct ibv_sge sge = {(uintptr_t)&box->in[i], sizeof(box->in[i]), box->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

    return ibv_post_recv(box->qp, &wr, &bad);
}

static int post_box_start(struct nccl_post_box *box)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    int rc =
        ibv_modify_qp(box->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

    a.qp_state = IBV_QPS_RTR;
    rc = rc ? rc : ibv_modify_qp(box->qp, &a, IBV_QP_STATE);
    a.qp_state = IBV_QPS_RTS;
    rc = rc ? rc : ibv_modify_qp(box->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN);
    for (unsigned i = 0; i < NCCL_DATAGRAMS && !rc; i++)
        rc = post_box_receive(box, i);
    return rc;
}

int nccl_post_box_open(struct nccl_post_box *box, struct nccl_device *device)
{
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_UD,
        .cap = {.max_send_wr = SENDS,
                .max_recv_wr = NCCL_DATAGRAMS,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = sizeof(struct nccl_datagram)},
    };

    memset(box, 0, sizeof(*box));
    box->pd = device->pd;
    box->cq = ibv_create_cq(device->ctx, SENDS + NCCL_DATAGRAMS, NULL, NULL, 0);
    box->mr = ibv_reg_mr(device->pd, box->in, sizeof(box->in), IBV_ACCESS_LOCAL_WRITE);
    init.send_cq = init.recv_cq = box->cq;
    if (box->cq && box->mr)
        box->qp = ibv_create_qp(device->pd, &init);
    if (box->qp && !post_box_start(box))
        return NCCL_SUCCESS;
    nccl_post_box_close(box);
    return nccl_refuse(NCCL_SYSTEM_ERROR, "%s: found no room for a queue pair of datagrams",
                       device->name);
}

void nccl_post_box_close(struct nccl_post_box *box)
{
    struct nccl_datagram d;
    uint32_t qpn;

    while (box->qp && nccl_post_box_next(box, &d, &qpn)) /* destroys address handles of sends */
        ;
    if (box->qp)
        ibv_destroy_qp(box->qp);
    if (box->cq)
        ibv_destroy_cq(box->cq);
    if (box->mr)
        ibv_dereg_mr(box->mr);
}

void nccl_post_box_send(struct nccl_post_box *box, const struct nccl_datagram *d,
                        const union ibv_gid *gid, uint32_t qpn)
{
    struct ibv_ah_attr route = nccl_route(gid);
    struct ibv_sge sge = {.addr = (uintptr_t)d, .length = sizeof(*d)};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED},
                       *bad;
    struct ibv_ah *ah = box->sending < SENDS ? ibv_create_ah(box->pd, &route) : NULL;

    if (!ah)
        return; /* as if it were lost: the caller repeats it */
    wr.wr_id = (uintptr_t)ah;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = qpn;
    wr.wr.ud.remote_qkey = QKEY;
    if (ibv_post_send(box->qp, &wr, &bad))
        ibv_destroy_ah(ah);
    else
        box->sending++;
}

bool nccl_post_box_next(struct nccl_post_box *box, struct nccl_datagram *d, uint32_t *from_qpn)
{
    struct ibv_wc wc;

    while (ibv_poll_cq(box->cq, 1, &wc) == 1) {
        bool whole;

        if (wc.wr_id >= NCCL_DATAGRAMS) { /* a send: its wr_id is the address handle */
            ibv_destroy_ah((struct ibv_ah *)(uintptr_t)wc.wr_id);
            box->sending--;
            continue;
        }
        if (wc.status)
            continue;
        whole = wc.byte_len == sizeof(box->in[0]);
        memcpy(d, &box->in[wc.wr_id].d, sizeof(*d));
        *from_qpn = wc.src_qp;
        if (post_box_receive(box, (unsigned)wc.wr_id) || !whole)
            continue;
        return true;
    }
    return false;
}
