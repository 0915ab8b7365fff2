/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receiving end. It announces each receive to the sender; immediate data tells which message
 * has arrived where. It posts as many work requests for that as messages can be in flight.
 */
#include "plugins/nccl/nccl_priv.h"

#include <arpa/inet.h>

static int notice_receive(struct nccl_link *l)
{
    struct ibv_recv_wr wr = {.wr_id = NCCL_WR_RECV}, *bad;

    return ibv_post_recv(l->qp, &wr, &bad) ? NCCL_SYSTEM_ERROR : NCCL_SUCCESS;
}

int nccl_receive_prepare(struct nccl_link *l)
{
    int rc = NCCL_SUCCESS;

    for (unsigned i = 0; i < NCCL_SENDS + 1 && !rc; i++)
        rc = notice_receive(l);
    return rc;
}

static int message_arrived(struct nccl_link *l, uint32_t imm, uint32_t bytes)
{
    struct nccl_request *r = &l->request[NCCL_IMM_REQUEST(imm) % NCCL_REQUESTS];
    unsigned place = NCCL_IMM_PLACE(imm);

    if (NCCL_IMM_REQUEST(imm) >= NCCL_REQUESTS || !r->handle || place >= r->n ||
        r->size[place] >= 0 || bytes > r->posted[place])
        return NCCL_REMOTE_ERROR;
    r->refused |= NCCL_IMM_REFUSED(imm);
    r->size[place] = (int)bytes;
    r->left--;
    return NCCL_SUCCESS;
}

int nccl_receive_took(struct nccl_link *l, const struct ibv_wc *wc)
{
    int rc;

    if (wc->wr_id != NCCL_WR_RECV)
        return NCCL_SUCCESS;
    rc = notice_receive(l);
    if (!rc && wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
        return message_arrived(l, ntohl(wc->imm_data), wc->byte_len);
    l->ready = true; /* the first message is that of the connecting end */
    return rc;
}

/* ---- receiving ---- */

static int receive_post(struct nccl_link *l, const struct nccl_announcement *a)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)a,
        .length =
            (uint32_t)(offsetof(struct nccl_announcement, entry) + a->n * sizeof(a->entry[0])),
    };
    struct ibv_send_wr wr = {.wr_id = NCCL_WR_ANNOUNCE,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE};

    return nccl_link_post(l, &wr);
}

/* Makes the announcement of a group of receives from NCCL's arguments. */
static int receive_describe(unsigned n, void **data, const size_t *sizes, const int *tags,
                            void **mh, struct nccl_announcement *a)
{
    for (unsigned i = 0; i < n; i++) {
        struct ibv_mr *mr;
        int rc = nccl_memory_find(mh ? mh[i] : NULL, data[i], sizes[i], "irecv", &mr);

        if (rc)
            return rc;
        a->entry[i] = (struct nccl_entry){(uintptr_t)data[i], sizes[i], mr ? mr->rkey : 0,
                                          tags ? tags[i] : 0};
    }
    a->n = n;
    return NCCL_SUCCESS;
}

static int receive_start(struct nccl_link *l, struct nccl_announcement *a, void **req)
{
    struct nccl_request *r;
    int rc;

    /* Announcements complete when the sender's NIC acknowledges them, which may be later than the
     * end of their requests. */
    if (l->posted >= NCCL_SENDS)
        return NCCL_SUCCESS;
    r = nccl_request_new(l, NCCL_REQUESTS);
    if (!r)
        return NCCL_SUCCESS;
    r->n = r->left = a->n;
    for (unsigned i = 0; i < a->n; i++) {
        r->posted[i] = a->entry[i].bytes;
        r->size[i] = -1;
    }
    a->request = (uint32_t)(r - l->request);
    rc = receive_post(l, a);
    if (rc)
        nccl_request_end(r);
    else
        *req = r->handle;
    return rc;
}

int nccl_irecv(void *recv_comm, int n, void **data, const size_t *sizes, const int *tags, void **mh,
               void **req)
{
    struct nccl_announcement a;
    struct nccl_link *l;
    int rc;

    if (!req || !data || !sizes || n < 1 || n > NCCL_GROUP)
        return nccl_refuse(
            NCCL_INVALID_ARGUMENT,
            "irecv: found %d receives%s, expected 1 to %d and their buffers and sizes", n,
            req && data && sizes ? "" : " and NULL", NCCL_GROUP);
    *req = NULL;
    nccl_lock();
    rc = nccl_handle_find(recv_comm, NCCL_KIND_RECV, "irecv", &l);
    if (!rc)
        rc = receive_describe((unsigned)n, data, sizes, tags, mh, &a);
    if (!rc)
        rc = nccl_link_poll(l);
    if (!rc)
        rc = receive_start(l, &a, req);
    nccl_unlock();
    return rc;
}

/* Nothing to flush: data of completed receives is in the host's memory. */
int nccl_iflush(void *recv_comm, int n, void **data, int *sizes, void **mh, void **req)
{
    struct nccl_link *l;
    int rc;

    (void)n, (void)data, (void)sizes, (void)mh;
    if (!req)
        return nccl_refuse(NCCL_INVALID_ARGUMENT, "iflush: found no place for the request");
    *req = NULL;
    nccl_lock();
    rc = nccl_handle_find(recv_comm, NCCL_KIND_RECV, "iflush", &l);
    nccl_unlock();
    return rc;
}

int nccl_close_recv(void *comm)
{
    struct nccl_link *l;
    int rc;

    nccl_lock();
    rc = nccl_handle_find(comm, NCCL_KIND_RECV, "closeRecv", &l);
    if (!rc)
        nccl_link_free(l);
    nccl_unlock();
    return rc;
}

/* ---- requests of both ends ---- */

static int request_test(struct nccl_request *r, int *done, int *sizes)
{
    int rc = nccl_link_poll(r->link);

    if (r->left) {
        if (!rc)
            nccl_link_ask(r->link);
        return rc;
    }
    rc = NCCL_SUCCESS;
    if (r->refused)
        rc = nccl_refuse(NCCL_INVALID_USAGE,
                         "irecv: the peer has sent more than the %zu bytes that "
                         "were posted",
                         r->posted[0]);
    for (unsigned i = 0; i < r->n && sizes; i++)
        sizes[i] = r->size[i];
    *done = 1;
    nccl_request_end(r);
    return rc;
}

int nccl_test(void *req, int *done, int *sizes)
{
    struct nccl_request *r;
    int rc;

    if (!done)
        return nccl_refuse(NCCL_INVALID_ARGUMENT, "test: found no place for the answer");
    *done = 0;
    nccl_lock();
    rc = nccl_handle_find(req, NCCL_KIND_REQUEST, "test", &r);
    if (!rc)
        rc = request_test(r, done, sizes);
    nccl_unlock();
    return rc;
}
