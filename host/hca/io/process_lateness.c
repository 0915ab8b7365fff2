/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How late the loops of the fabric ran: shared pages tell it of switch processes and of other
 * processes in slots, a log of its own of this process. ACK timers discount the time in which a
 * process on the path to the peer did not run.
 */
#include "host/hca/io/process_priv.h"

void process_record_lateness(struct process_hca *p, int64_t late_ns)
{
    int64_t now = late_ns > LATENESS_BOUND_NS ? clock_mono_ns() : 0;

    if (now)
        lateness_record(&p->late, now - late_ns, now);
}

int64_t process_lateness_on_path(void *ctx, uint32_t ip, uint32_t qpn, int64_t window_ps)
{
    const struct process_hca *p = ctx;

    struct lateness_own own = {&p->late, atomic_load(&p->bell->rung_ns)};

    return lateness_on_path(p->sh, p->fab, &own, ip, qpn, window_ps);
}
