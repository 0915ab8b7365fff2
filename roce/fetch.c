/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a message costs a port (rnic_cfg.message_ps): a request that was posted is sent only after
 * the port has fetched it, one every message_ps, in turn of the queue pairs that have any. So a
 * message waits that long, and the port begins at most 1 / message_ps of them a second; those that
 * have begun go on meanwhile. Without the cost a request is seen as it is posted.
 *
 * Rejected: a port that is busy for the time. Adapters fetch ahead while they send, so long
 * messages at line rate would be slowed by what real ones hide.
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
        T_ASSERT_HOT(qp->in_fetch, "a queue pair is listed for fetching and does not know");
        TAILQ_REMOVE(&r->fetch, qp, fetch_link);
        qp->in_fetch = false;
        if (qp->rqr.seen != qp->rqr.tail) { /* flushed since, where it has none */
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
