/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sending end. It knows the waiting receives from their announcements. A message goes to the
 * receive with its tag in the oldest group, and is written directly into that receive's memory.
 */
#include "plugins/nccl/nccl_priv.h"

#include <arpa/inet.h>

static int announcement_receive(struct nccl_link *l, unsigned i)
{
    struct ibv_sge sge = {(uintptr_t)&l->in[i], sizeof(l->in[i]), l->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = NCCL_WR_RECV + i, .sg_list = &sge, .num_sge = 1}, *bad;

    return ibv_post_recv(l->qp, &wr, &bad) ? NCCL_SYSTEM_ERROR : NCCL_SUCCESS;
}

int nccl_send_prepare(struct nccl_link *l)
{
    int rc = NCCL_SUCCESS;

    l->mr = ibv_reg_mr(l->device->pd, l->in, sizeof(l->in), IBV_ACCESS_LOCAL_WRITE);
    if (!l->mr)
        return NCCL_SYSTEM_ERROR;
    for (unsigned i = 0; i < NCCL_REQUESTS && !rc; i++)
        rc = announcement_receive(l, i);
    return rc;
}

static int announcement_take(struct nccl_link *l, unsigned i, uint32_t bytes)
{
    struct nccl_group *g = &l->group[l->tail % NCCL_REQUESTS];

    if (l->tail - l->head == NCCL_REQUESTS || bytes < offsetof(struct nccl_announcement, entry) ||
        !l->in[i].n || l->in[i].n > NCCL_GROUP || l->in[i].request >= NCCL_REQUESTS ||
        bytes != offsetof(struct nccl_announcement, entry) + l->in[i].n * sizeof(l->in[i].entry[0]))
        return NCCL_REMOTE_ERROR;
    *g = (struct nccl_group){.a = l->in[i], .left = l->in[i].n};
    l->tail++;
    return announcement_receive(l, i);
}

int nccl_send_took(struct nccl_link *l, const struct ibv_wc *wc)
{
    if (wc->wr_id >= NCCL_WR_RECV)
        return announcement_take(l, (unsigned)(wc->wr_id - NCCL_WR_RECV), wc->byte_len);
    if (wc->wr_id < NCCL_SENDS)
        l->request[wc->wr_id].left = 0;
    return NCCL_SUCCESS;
}

/* ---- sending ---- */

/* Index of the receive for a tag in the oldest group, or NCCL_GROUP. A group of one receive matches
 * any tag. */
static unsigned place_of(const struct nccl_group *g, int tag)
{
    for (unsigned i = 0; i < g->a.n; i++)
        if (!(g->used >> i & 1) && (g->a.n == 1 || g->a.entry[i].tag == tag))
            return i;
    return NCCL_GROUP;
}

static int message_post(struct nccl_link *l, struct nccl_request *r, unsigned place, void *data,
                        size_t size, const struct ibv_mr *mr, bool refused)
{
    struct nccl_group *g = &l->group[l->head % NCCL_REQUESTS];
    struct ibv_sge sge = {(uintptr_t)data, (uint32_t)size, mr && size ? mr->lkey : 0};
    struct ibv_send_wr wr = {
        .wr_id = r ? (uint64_t)(r - l->request) : NCCL_WR_ANNOUNCE,
        .sg_list = &sge,
        .num_sge = size ? 1 : 0,
        .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
        .send_flags = IBV_SEND_SIGNALED,
        .imm_data = htonl(NCCL_IMM(g->a.request, place, refused)),
        .wr.rdma = {.remote_addr = g->a.entry[place].address, .rkey = g->a.entry[place].rkey},
    };
    int rc = nccl_link_post(l, &wr);

    g->used |= 1u << place;
    if (!--g->left)
        l->head++;
    return rc;
}

static int message_send(struct nccl_link *l, void *data, size_t size, int tag,
                        const struct ibv_mr *mr, void **req)
{
    struct nccl_group *g = &l->group[l->head % NCCL_REQUESTS];
    unsigned place = l->head != l->tail ? place_of(g, tag) : NCCL_GROUP;
    struct nccl_request *r;
    size_t most;
    int rc;

    if (place == NCCL_GROUP) {
        nccl_link_ask(l);
        return NCCL_SUCCESS;
    }
    most = g->a.entry[place].bytes;
    if (size > most) {
        message_post(l, NULL, place, NULL, 0, NULL, true);
        return nccl_refuse(NCCL_INVALID_USAGE,
                           "isend: found %zu bytes with tag %d, expected at most the %zu that the "
                           "receive has posted",
                           size, tag, most);
    }
    r = nccl_request_new(l, NCCL_SENDS);
    if (!r)
        return NCCL_SUCCESS;
    r->n = r->left = 1;
    r->size[0] = (int)size;
    rc = message_post(l, r, place, data, size, mr, false);
    if (rc)
        nccl_request_end(r);
    else
        *req = r->handle;
    return rc;
}

int nccl_isend(void *send_comm, void *data, size_t size, int tag, void *mh, void **req)
{
    struct nccl_link *l;
    struct ibv_mr *mr;
    int rc;

    if (!req)
        return nccl_refuse(NCCL_INVALID_ARGUMENT, "isend: found no place for the request");
    *req = NULL;
    nccl_lock();
    rc = nccl_handle_find(send_comm, NCCL_KIND_SEND, "isend", &l);
    if (!rc)
        rc = nccl_memory_find(mh, data, size, "isend", &mr);
    if (!rc)
        rc = nccl_link_poll(l);
    if (!rc)
        rc = message_send(l, data, size, tag, mr, req);
    nccl_unlock();
    return rc;
}

int nccl_close_send(void *comm)
{
    struct nccl_link *l;
    int rc;

    nccl_lock();
    rc = nccl_handle_find(comm, NCCL_KIND_SEND, "closeSend", &l);
    if (!rc)
        nccl_link_free(l);
    nccl_unlock();
    return rc;
}
