/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Local requests: bind a memory window, or invalidate a key. They execute after all earlier
 * requests of the send queue are done and before any later one starts. The specification requires
 * less (IBTA 10.8.3.3, table 76), but a full fence needs no extra rules in the requester.
 */
#include "roce/engine.h"

#include <errno.h>

static int window(struct qp *qp, uint32_t rkey, const struct mw_bind *b)
{
    const struct rnic_ops *ops = &qp->r->cfg.ops;

    return ops->window ? ops->window(qp->r->cfg.user, qp, rkey, b) : -EOPNOTSUPP;
}

enum built local_build(struct qp *qp)
{
    const struct swqe *w = sq_at(qp, qp->rqr.head);
    bool bind = w->op == WR_BIND_MW;
    uint8_t status = bind ? WC_MW_BIND_ERR : WC_LOC_QP_OP_ERR;

    if (!window(qp, w->rkey, bind ? &sq_extra(qp, qp->rqr.head)->bind : NULL)) {
        qp_complete_send(qp, WC_SUCCESS);
        completer_advance(qp);
    } else if (qp->type == QP_UC) {
        qp_fail_send(qp, status);
    } else {
        qp_fail(qp, status);
    }
    return BUILT_NOTHING;
}

int local_invalidate(struct qp *qp, uint32_t rkey)
{
    return window(qp, rkey, NULL);
}
