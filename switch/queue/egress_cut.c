/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that a switch has begun to receive and may not send yet: on a link faster than their own the
 * sender would run out of bits. They wait in the list of their class, sorted by the time from which they
 * may start, as if they were queued at that time. There are few: at most one for each ingress port.
 */
#include "switch/queue/egress_priv.h"

#include <errno.h>

void egress_enter_sorted(struct egress *e, struct waiting *r, struct rte_mbuf *const *m, uint32_t n,
                         int64_t ready_ps)
{
    int64_t before = watched(e);

    for (uint32_t i = 0; i < n; i++) {
        uint32_t bytes = frame_bytes(m[i]);

        line_insert(&r->line, m[i], ready_ps);
        r->bytes += bytes;
        e->waiting_bytes += bytes;
    }
    e->classes |= (uint8_t)(1u << (r - e->q));
    egress_plan(e);
    call_if_earlier(e, before);
}

int egress_push_later(struct egress *e, struct rte_mbuf *m, int64_t ready_ps, int64_t now_ps)
{
    struct waiting *r = &e->q[frame_meta(m)->cls];
    uint32_t bytes = frame_bytes(m);

    if (ready_ps <= now_ps)
        return egress_push(e, m, now_ps);
    T_ASSERT_HOT(frame_meta(m)->cls < FRAME_CLASSES, "a frame has no class");
    if (unlikely(!egress_fits(e, r, bytes)))
        return -ENOBUFS;
    m = egress_marked(e, r, m);
    e->later = true;
    egress_enter_sorted(e, r, &m, 1, ready_ps);
    return 0;
}
