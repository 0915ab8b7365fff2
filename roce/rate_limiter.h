/*
 * DCQCN in an rnic. As notification point a QP answers frames that carry the congestion mark with
 * congestion notification packets (IBTA A17.9.3), at most one in cnp_gap. As reaction point it is
 * taken out of the turns of sending until its rate allows the next frame, READ responses included;
 * acknowledgements are never held back.
 *
 * RC and UC; a datagram has no connection that could be slowed down.
 */
#ifndef TRIB_ROCE_RATE_LIMITER_H
#define TRIB_ROCE_RATE_LIMITER_H

#include "roce/cc/dcqcn.h"
#include "roce/engine.h"

struct pace {
    struct timer timer; /* the end of the wait */
    struct qp *qp;
    bool waits;
    bool notify;       /* a notification is to be sent */
    int64_t notify_ps; /* not before: the last one was cnp_gap ago */
    struct dcqcn rate;
};

/* NULL where the rnic or the kind of QP has no DCQCN, with *rc = 0; or with -ENOMEM. */
struct pace *pace_create(struct qp *qp, int *rc);
void pace_reset(struct pace *p);
void pace_marked(struct pace *p, int64_t now_ps); /* data with the mark came in */
enum roce_reason pace_notified(struct qp *qp, const struct roce_pkt *k, int64_t now_ps);
enum built pace_build(struct pace *p, struct rte_mbuf **m);
/* Whether the QP may send now; else it waits, and rnic_want_send() is called when it may. */
bool pace_may_send(struct pace *p, int64_t now_ps);
void pace_sent(struct pace *p, struct rte_mbuf *m, int64_t now_ps);
void pace_cancel(struct pace *p); /* waits no more */
void pace_tick(struct rnic *r, int64_t now_ps);
int64_t pace_next(struct rnic *r);

#endif
