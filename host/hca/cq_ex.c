/* SPDX-License-Identifier: BSD-3-Clause */
/* Extended completion queues (ibv_create_cq_ex): accessors read one entry at a time. Timestamps are
 * fabric time in ns. */
#include "host/hca/hca_priv.h"

static int ex_take(struct hca_cq *cq)
{
    struct hca *h = cq->ctx->hca;
    int rc;

    hca_lock(h);
    rc = cq_pop(cq, &cq->cur) ? 0 : cq->overrun ? EIO : ENOENT;
    hca_unlock(h);
    if (!rc) {
        cq->ex.status = (enum ibv_wc_status)cq->cur.status;
        cq->ex.wr_id = cq->cur.wr_id;
    }
    return rc;
}

static int ex_start_poll(struct ibv_cq_ex *v, struct ibv_poll_cq_attr *attr)
{
    struct hca_cq *cq = (struct hca_cq *)v;
    struct hca *h = cq->ctx->hca;
    int rc;

    if (attr->comp_mask)
        return EINVAL;
    if (hca_dead(h))
        return EIO;
    rc = ex_take(cq);
    if (rc != ENOENT || !h->cfg.drv.idle)
        return rc;
    h->cfg.drv.idle(h->cfg.drv.ctx);
    return ex_take(cq);
}

static int ex_next_poll(struct ibv_cq_ex *v)
{
    return ex_take((struct hca_cq *)v);
}

static void ex_end_poll(struct ibv_cq_ex *v)
{
    (void)v;
}

static const struct hca_cqe *cur(struct ibv_cq_ex *v)
{
    return &((struct hca_cq *)v)->cur;
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *v)
{
    return (enum ibv_wc_opcode)cur(v)->opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *v)
{
    (void)v;
    return 0;
}

static uint32_t read_byte_len(struct ibv_cq_ex *v)
{
    return cur(v)->byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *v)
{
    return cur(v)->imm;
}

static uint32_t read_qp_num(struct ibv_cq_ex *v)
{
    return cur(v)->qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *v)
{
    return cur(v)->src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *v)
{
    return cur(v)->wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *v)
{
    (void)v;
    return 0;
}

static uint8_t read_sl(struct ibv_cq_ex *v)
{
    return cur(v)->sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *v)
{
    (void)v;
    return 0;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *v)
{
    return (uint64_t)(((struct hca_cq *)v)->cur.ts_ps / PS_PER_NS);
}

#define SUPPORTED_WC   (IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
#define SUPPORTED_MASK (IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)
#define SUPPORTED_FLAGS                                                                            \
    (IBV_CREATE_CQ_ATTR_SINGLE_THREADED) /* not IGNORE_OVERRUN: an overrun is an error */

struct ibv_cq_ex *hca_create_cq_ex(struct ibv_context *v, struct ibv_cq_init_attr_ex *a)
{
    struct hca_cq *cq;

    if ((a->wc_flags & ~(uint64_t)SUPPORTED_WC) || (a->comp_mask & ~(uint32_t)SUPPORTED_MASK) ||
        ((a->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) && (a->flags & ~(uint32_t)SUPPORTED_FLAGS))) {
        errno = hca_refuse(hca_ctx_of(v)->hca, EOPNOTSUPP,
                           "ibv_create_cq_ex: found wc_flags 0x%llx, comp_mask 0x%x, flags 0x%x, "
                           "expected within 0x%llx, 0x%x and 0x%x",
                           (unsigned long long)a->wc_flags, a->comp_mask,
                           a->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? a->flags : 0,
                           (unsigned long long)SUPPORTED_WC, (uint32_t)SUPPORTED_MASK,
                           (uint32_t)SUPPORTED_FLAGS);
        return NULL;
    }
    if ((a->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) &&
        (!a->parent_domain || a->parent_domain->context != v || !pd_is_parent(a->parent_domain))) {
        errno = EINVAL;
        return NULL;
    }
    cq = cq_create(hca_ctx_of(v), a->cqe, a->cq_context, a->channel, (int)a->comp_vector);
    if (!cq)
        return NULL;
    cq->ex.start_poll = ex_start_poll;
    cq->ex.next_poll = ex_next_poll;
    cq->ex.end_poll = ex_end_poll;
    cq->ex.read_opcode = read_opcode;
    cq->ex.read_vendor_err = read_vendor_err;
    cq->ex.read_byte_len = read_byte_len;
    cq->ex.read_imm_data = read_imm_data;
    cq->ex.read_qp_num = read_qp_num;
    cq->ex.read_src_qp = read_src_qp;
    cq->ex.read_wc_flags = read_wc_flags;
    cq->ex.read_slid = read_slid;
    cq->ex.read_sl = read_sl;
    cq->ex.read_dlid_path_bits = read_dlid_path_bits;
    cq->ex.read_completion_ts = read_completion_ts;
    return &cq->ex;
}
