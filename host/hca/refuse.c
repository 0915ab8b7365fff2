/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that this device does not support. libibverbs' inline functions answer EOPNOTSUPP for calls
 * that a driver leaves out, and a bare errno 95 does not help a program's user. So each call is
 * here with a message that names what was requested and what is supported.
 */
#include "host/hca/hca_priv.h"

#include <stdio.h>

int hca_refuse(struct hca *h, int rc, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    int n;

    if (!h->cfg.drv.say)
        return rc;
    n = snprintf(text, sizeof(text), "%s: ", h->cfg.name);
    va_start(ap, fmt);
    vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
    va_end(ap);
    h->cfg.drv.say(h->cfg.drv.ctx, fmt, text);
    return rc;
}

#define REFUSE(context, ...) hca_refuse(hca_ctx_of(context)->hca, EOPNOTSUPP, __VA_ARGS__)

#define REFUSE_NULL(context, ...)                                                                  \
    do {                                                                                           \
        errno = REFUSE(context, __VA_ARGS__);                                                      \
        return NULL;                                                                               \
    } while (0)

static struct ibv_xrcd *open_xrcd(struct ibv_context *c, struct ibv_xrcd_init_attr *a)
{
    (void)a;
    REFUSE_NULL(c, "ibv_open_xrcd: XRC (extended reliable connections) is not supported, expected "
                   "RC with ibv_create_srq");
}

static struct ibv_qp *open_qp(struct ibv_context *c, struct ibv_qp_open_attr *a)
{
    (void)a;
    REFUSE_NULL(c, "ibv_open_qp: shared XRC queue pairs are not supported, expected "
                   "ibv_create_qp with RC, UC or UD");
}

static struct ibv_wq *create_wq(struct ibv_context *c, struct ibv_wq_init_attr *a)
{
    (void)a;
    REFUSE_NULL(c, "ibv_create_wq: work queues without a queue pair (RSS) are not supported");
}

static struct ibv_rwq_ind_table *create_ind_table(struct ibv_context *c,
                                                  struct ibv_rwq_ind_table_init_attr *a)
{
    (void)a;
    REFUSE_NULL(c, "ibv_create_rwq_ind_table: receive side scaling is not supported");
}

static struct ibv_flow *create_flow(struct ibv_qp *qp, struct ibv_flow_attr *a)
{
    (void)a;
    REFUSE_NULL(qp->context, "ibv_create_flow: flow steering is not supported: there are no raw "
                             "packet queue pairs");
}

static struct ibv_flow_action *create_esp(struct ibv_context *c, struct ibv_flow_action_esp_attr *a)
{
    (void)a;
    REFUSE_NULL(c, "ibv_create_flow_action_esp: IPsec offload is not supported");
}

static struct ibv_counters *create_counters(struct ibv_context *c, struct ibv_counters_init_attr *a)
{
    (void)a;
    REFUSE_NULL(c, "ibv_create_counters: counters of flows are not supported; those of the port "
                   "are in `trib status`");
}

static struct ibv_mr *alloc_null_mr(struct ibv_pd *pd)
{
    REFUSE_NULL(pd->context, "ibv_alloc_null_mr: regions without memory are not supported");
}

static int modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *a)
{
    (void)a;
    return REFUSE(cq->context, "ibv_modify_cq: moderation of completion events is not supported");
}

static int rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *a)
{
    (void)a;
    return REFUSE(qp->context, "ibv_modify_qp_rate_limit: rate limits of queue pairs are not "
                               "supported; a link's rate is the conf's");
}

static int srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad)
{
    *bad = op;
    return REFUSE(srq->context, "ibv_post_srq_ops: tag matching is not supported");
}

void refuse_fill(struct verbs_context *v)
{
    v->open_xrcd = open_xrcd;
    v->open_qp = open_qp;
    v->create_wq = create_wq;
    v->create_rwq_ind_table = create_ind_table;
    v->ibv_create_flow = create_flow;
    v->create_flow_action_esp = create_esp;
    v->create_counters = create_counters;
    v->alloc_null_mr = alloc_null_mr;
    v->modify_cq = modify_cq;
    v->modify_qp_rate_limit = rate_limit;
    v->post_srq_ops = srq_ops;
}
