/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended queue pairs (ibv_create_qp_ex, ibv_wr_*): a program builds requests between wr_start and
 * wr_complete, which posts all or none. The caller serialises the two per queue pair, so the batch
 * needs no lock.
 */
#include "host/hca/hca_priv.h"

#include <string.h>

static struct hca_qp *hca_qp_of(struct ibv_qp_ex *v)
{
    return (struct hca_qp *)v;
}

static void fail(struct hca_qp *qp, int err)
{
    if (!qp->batch_err)
        qp->batch_err = err;
}

/* A new request. In a full batch it overwrites the last one, and wr_complete reports ENOMEM. */
static struct wqe *qp_ex_begin(struct ibv_qp_ex *v, enum wr_op op)
{
    struct hca_qp *qp = hca_qp_of(v);
    uint32_t max = qp->cap.max_send_wr ? qp->cap.max_send_wr : 1;
    int rc = post_check(qp, op);
    struct wqe *w;

    if (rc)
        fail(qp, rc);
    T_ASSERT_HOT(qp->n_batch <= max, "a batch has more requests than its queue");
    if (qp->n_batch == max)
        fail(qp, ENOMEM);
    else
        qp->n_batch++;
    w = &qp->batch[qp->n_batch - 1];
    memset(w, 0, offsetof(struct wqe, sge));
    w->wr_id = v->wr_id;
    w->op = (uint8_t)op;
    w->flags = v->wr_flags & (WR_F_FENCE | WR_F_SIGNALED | WR_F_SOLICITED);
    w->frag = WQE_WHOLE;
    return w;
}

static struct wqe *last(struct ibv_qp_ex *v)
{
    struct hca_qp *qp = hca_qp_of(v);

    if (qp->n_batch)
        return &qp->batch[qp->n_batch - 1];
    fail(qp, EINVAL);
    return &qp->batch[0];
}

/* ---- operations ---- */

static void wr_send(struct ibv_qp_ex *v)
{
    qp_ex_begin(v, WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *v, __be32 imm)
{
    qp_ex_begin(v, WR_SEND_IMM)->imm = imm;
}

static struct wqe *begin_rdma(struct ibv_qp_ex *v, enum wr_op op, uint32_t rkey, uint64_t raddr)
{
    struct wqe *w = qp_ex_begin(v, op);

    w->rkey = rkey;
    w->raddr = raddr;
    return w;
}

static void wr_rdma_write(struct ibv_qp_ex *v, uint32_t rkey, uint64_t raddr)
{
    begin_rdma(v, WR_WRITE, rkey, raddr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *v, uint32_t rkey, uint64_t raddr, __be32 imm)
{
    begin_rdma(v, WR_WRITE_IMM, rkey, raddr)->imm = imm;
}

static void wr_rdma_read(struct ibv_qp_ex *v, uint32_t rkey, uint64_t raddr)
{
    begin_rdma(v, WR_READ, rkey, raddr);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *v, uint32_t rkey, uint64_t raddr, uint64_t compare,
                              uint64_t swap)
{
    struct wqe *w = begin_rdma(v, WR_CMP_SWAP, rkey, raddr);

    w->compare_add = compare;
    w->swap = swap;
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *v, uint32_t rkey, uint64_t raddr, uint64_t add)
{
    begin_rdma(v, WR_FETCH_ADD, rkey, raddr)->compare_add = add;
}

/* The request carries the eight bytes, whatever the queue pair's limit of inline data. */
static void wr_atomic_write(struct ibv_qp_ex *v, uint32_t rkey, uint64_t raddr, const void *word)
{
    struct wqe *w = begin_rdma(v, WR_ATOMIC_WRITE, rkey, raddr);

    w->flags |= WR_F_INLINE;
    w->len = 8;
    memcpy(w->inl, word, 8);
}

static void wr_send_inv(struct ibv_qp_ex *v, uint32_t rkey)
{
    qp_ex_begin(v, WR_SEND_INV)->rkey = rkey;
}

static void wr_local_inv(struct ibv_qp_ex *v, uint32_t rkey)
{
    qp_ex_begin(v, WR_LOCAL_INV)->rkey = rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *v, struct ibv_mw *mw, uint32_t rkey,
                       const struct ibv_mw_bind_info *info)
{
    struct wqe *w = qp_ex_begin(v, WR_BIND_MW);

    if (!mw || mw->type != IBV_MW_TYPE_2 || mw_bind_from(w, hca_qp_of(v), mw, rkey, info))
        fail(hca_qp_of(v), EINVAL);
}

/* ---- addresses and data ---- */

static void wr_set_ud_addr(struct ibv_qp_ex *v, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
    struct wqe *w = last(v);

    if (!ah_usable(hca_qp_of(v), ah)) {
        fail(hca_qp_of(v), EINVAL);
        return;
    }
    w->ud = to_ah(ah)->to;
    w->ud.qpn = qpn;
    w->ud.qkey = qkey >> 31 ? hca_qp_of(v)->attr.qkey : qkey;
}

static void wr_set_sge_list(struct ibv_qp_ex *v, size_t n, const struct ibv_sge *list)
{
    struct wqe *w = last(v);

    if (n > hca_qp_of(v)->cap.max_send_sge) {
        fail(hca_qp_of(v), EINVAL);
        return;
    }
    if (n)
        memcpy(w->sge, list, n * sizeof(*w->sge));
    w->n_sge = (uint8_t)n;
}

/* A request of length 0 has no scatter entry, as with real devices. */
static void wr_set_sge(struct ibv_qp_ex *v, uint32_t lkey, uint64_t addr, uint32_t length)
{
    struct ibv_sge s = {addr, length, lkey};

    wr_set_sge_list(v, length ? 1 : 0, &s);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *v, size_t n, const struct ibv_data_buf *buf)
{
    struct wqe *w = last(v);

    w->flags |= WR_F_INLINE;
    for (size_t i = 0; i < n; i++) {
        if (buf[i].length > hca_qp_of(v)->cap.max_inline_data - w->len) {
            fail(hca_qp_of(v), EINVAL);
            return;
        }
        if (buf[i].length)
            memcpy(w->inl + w->len, buf[i].addr, buf[i].length);
        w->len += (uint32_t)buf[i].length;
    }
}

static void wr_set_inline_data(struct ibv_qp_ex *v, void *addr, size_t length)
{
    struct ibv_data_buf b = {addr, length};

    wr_set_inline_data_list(v, 1, &b);
}

/* ---- the batch ---- */

static void wr_start(struct ibv_qp_ex *v)
{
    hca_qp_of(v)->n_batch = 0;
    hca_qp_of(v)->batch_err = hca_dead(hca_qp_of(v)->ctx->hca);
}

static int wr_complete(struct ibv_qp_ex *v)
{
    struct hca_qp *qp = hca_qp_of(v);
    struct hca *h = qp->ctx->hca;
    int rc = qp->batch_err;

    if (rc)
        return rc;
    hca_lock(h);
    if (qp_sq_free(qp->qp) < qp->n_batch || qp->sq_free < qp->n_batch) {
        rc = ENOMEM;
        post_say_stuck(qp);
    }
    for (uint32_t i = 0; i < qp->n_batch && !rc; i++)
        rc = -post_engine(qp, &qp->batch[i]);
    hca_kick(h);
    hca_unlock(h);
    return rc;
}

static void wr_abort(struct ibv_qp_ex *v)
{
    hca_qp_of(v)->n_batch = 0;
}

static void qp_ex_init(struct hca_qp *qp)
{
    struct ibv_qp_ex *x = &qp->ex;

    x->wr_send = wr_send;
    x->wr_send_imm = wr_send_imm;
    x->wr_rdma_write = wr_rdma_write;
    x->wr_rdma_write_imm = wr_rdma_write_imm;
    x->wr_rdma_read = wr_rdma_read;
    x->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
    x->wr_atomic_fetch_add = wr_atomic_fetch_add;
    x->wr_atomic_write = wr_atomic_write;
    x->wr_send_inv = wr_send_inv;
    x->wr_local_inv = wr_local_inv;
    x->wr_bind_mw = wr_bind_mw;
    x->wr_set_ud_addr = wr_set_ud_addr;
    x->wr_set_sge = wr_set_sge;
    x->wr_set_sge_list = wr_set_sge_list;
    x->wr_set_inline_data = wr_set_inline_data;
    x->wr_set_inline_data_list = wr_set_inline_data_list;
    x->wr_start = wr_start;
    x->wr_complete = wr_complete;
    x->wr_abort = wr_abort;
}

/* ---- control ---- */

static uint64_t ops_of(enum ibv_qp_type t)
{
    const uint64_t ud = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
                   uc = ud | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                        IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW,
                   rc = uc | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                        IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_SEND_WITH_INV |
                        IBV_QP_EX_WITH_ATOMIC_WRITE;

    return t == IBV_QPT_RC ? rc : t == IBV_QPT_UC ? uc : ud;
}

struct ibv_qp *hca_create_qp_ex(struct ibv_context *v, struct ibv_qp_init_attr_ex *a)
{
    const uint32_t known =
        IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    bool ops = a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    struct hca_qp *qp;

    if (!(a->comp_mask & IBV_QP_INIT_ATTR_PD)) {
        errno = EINVAL;
        return NULL;
    }
    if ((a->comp_mask & ~known) ||
        ((a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && a->create_flags) ||
        (ops && (a->send_ops_flags & ~ops_of(a->qp_type)))) {
        errno =
            hca_refuse(hca_ctx_of(v)->hca, EOPNOTSUPP,
                       "ibv_create_qp_ex: found type %u, comp_mask 0x%x, create_flags 0x%x, "
                       "send_ops_flags 0x%llx, expected comp_mask within 0x%x, no create_flags, "
                       "send_ops_flags within 0x%llx: no XRC, raw packets, TSO or RSS",
                       a->qp_type, a->comp_mask,
                       a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? a->create_flags : 0,
                       ops ? (unsigned long long)a->send_ops_flags : 0, known,
                       (unsigned long long)ops_of(a->qp_type));
        return NULL;
    }
    /* The extended attributes begin with the plain ones. */
    qp = qp_make(hca_ctx_of(v), a->pd, (struct ibv_qp_init_attr *)a, ops);
    if (!qp)
        return NULL;
    if (ops)
        qp_ex_init(qp);
    return &qp->v;
}

EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *v)
{
    if (!hca_ctx_of(v->context))
        return REAL(ibv_qp_to_qp_ex)(v);
    return to_qp(v)->is_ex ? &to_qp(v)->ex : NULL;
}
