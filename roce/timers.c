/*
 * One deadline per QP, in a binary heap. Deadlines mostly move later (every acknowledgement does
 * that), so a later deadline leaves the heap alone: the QP's key in it is never later than its
 * deadline, and is corrected when it comes to the top.
 */
#include "roce/engine.h"

static void put(struct rnic *r, uint32_t at, struct qp *qp)
{
    r->heap[at] = qp;
    qp->heap_at = at;
}

static void up(struct rnic *r, uint32_t at, struct qp *qp)
{
    for (; at > 1 && qp->key < r->heap[at / 2]->key; at /= 2)
        put(r, at, r->heap[at / 2]);
    put(r, at, qp);
}

static void down(struct rnic *r, uint32_t at, struct qp *qp)
{
    for (uint32_t child; (child = 2 * at) <= r->heap_n; at = child) {
        if (child < r->heap_n && r->heap[child + 1]->key < r->heap[child]->key)
            child++;
        if (qp->key <= r->heap[child]->key)
            break;
        put(r, at, r->heap[child]);
    }
    put(r, at, qp);
}

void timer_set(struct qp *qp, int64_t deadline)
{
    struct rnic *r = qp->r;

    qp->deadline = deadline;
    if (qp->heap_at && deadline >= qp->key)
        return;
    qp->key = deadline;
    up(r, qp->heap_at ? qp->heap_at : ++r->heap_n, qp);
}

void timer_clear(struct qp *qp)
{
    struct rnic *r = qp->r;
    uint32_t at = qp->heap_at;
    struct qp *last;

    qp->deadline = PS_NEVER;
    if (!at)
        return;
    qp->heap_at = 0;
    last = r->heap[r->heap_n--];
    if (last == qp)
        return;
    if (at > 1 && last->key < r->heap[at / 2]->key)
        up(r, at, last);
    else
        down(r, at, last);
}

struct qp *timer_first(struct rnic *r)
{
    while (r->heap_n) {
        struct qp *qp = r->heap[1];

        if (qp->key == qp->deadline)
            return qp;
        qp->key = qp->deadline;
        down(r, 1, qp);
    }
    return NULL;
}
