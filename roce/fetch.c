/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of a message at a port (rnic_cfg.message_ps): the port sends a request only after it has
 * fetched it, and fetches one every message_ps, round robin over the queue pairs. So each message waits
 * that long, and the port starts at most 1 / message_ps messages a second; started ones continue
 * meanwhile. Without the cost a request is fetched when it is posted.
 *
 * Rejected: a port that does not send while it fetches. Adapters fetch ahead while they send, so this
 * would slow down long messages at line rate by a cost that real adapters hide.
 */
#include "roce/engine.h"

void fetch_post(struct qp *qp)
{
    struct rnic *r = qp->r;

    if (!r->cfg.message_ps) {
        qp->rqr.seen = qp->rqr.tail;
        return;
    }
    if (qp->in_fetch)
        return;
    qp->in_fetch = true;
    TAILQ_INSERT_TAIL(&r->fetch, qp, fetch_link);
}

void fetch_run(struct rnic *r, int64_t now_ps)
{
    struct qp *qp;

    while ((qp = TAILQ_FIRST(&r->fetch)) != NULL) {
        if (!r->fetch_ps)
            r->fetch_ps = now_ps + r->cfg.message_ps;
        if (r->fetch_ps > now_ps)
            return;
        T_ASSERT_HOT(qp->in_fetch, "a queue pair in the fetch list is not marked as listed");
        TAILQ_REMOVE(&r->fetch, qp, fetch_link);
        qp->in_fetch = false;
        if (qp->rqr.seen != qp->rqr.tail) { /* if equal, its requests were flushed */
            qp->rqr.seen++;
            r->fetch_ps += r->cfg.message_ps;
            rnic_want_send(qp);
        }
        if (qp->rqr.seen != qp->rqr.tail)
            fetch_post(qp);
    }
    r->fetch_ps = 0;
}

int64_t fetch_next(const struct rnic *r)
{
    return TAILQ_EMPTY(&r->fetch) ? PS_NEVER : r->fetch_ps;
}
