/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DCQCN in an rnic. As notification point a QP answers frames that carry the congestion mark with
 * congestion notification packets (IBTA A17.9.3), at most one per cnp_gap. As reaction point it
 * leaves the list of senders until its rate allows the next frame, READ responses included;
 * acknowledgements are never delayed.
 *
 * RC and UC only: datagrams have no connection.
 */
#ifndef TRIB_ROCE_RATE_LIMITER_H
#define TRIB_ROCE_RATE_LIMITER_H

#include "roce/cc/dcqcn.h"
#include "roce/engine.h"

struct rate_limiter {
    struct timer timer; /* for the end of the wait */
    struct qp *qp;
    bool waits;
    bool notify;       /* a notification is pending */
    int64_t notify_ps; /* earliest time of the next one: cnp_gap after the last */
    struct dcqcn rate;
};

/* NULL with *rc = 0: the rnic or the type of QP has no DCQCN; NULL with *rc = -ENOMEM: no memory. */
struct rate_limiter *rate_limiter_create(struct qp *qp, int *rc);
void rate_limiter_reset(struct rate_limiter *p);
void rate_limiter_marked(struct rate_limiter *p, int64_t now_ps); /* data came with the mark */
enum roce_reason rate_limiter_notified(struct qp *qp, const struct roce_pkt *k, int64_t now_ps);
enum built rate_limiter_build(struct rate_limiter *p, struct rte_mbuf **m);
/* False: the QP has to wait; rnic_want_send() is called when its rate allows the next frame. */
bool rate_limiter_may_send(struct rate_limiter *p, int64_t now_ps);
void rate_limiter_sent(struct rate_limiter *p, struct rte_mbuf *m, int64_t now_ps);
void rate_limiter_cancel(struct rate_limiter *p); /* ends the QP's wait */
void rate_limiter_tick(struct rnic *r, int64_t now_ps);
int64_t rate_limiter_next(struct rnic *r);

#endif
