/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time in which somebody on the way to a queue pair's peer did not run, as the page has it that all
 * processes of the fabric share, for acknowledgement timers.
 */
#include "host/hca/io/process_priv.h"

void rim_served(struct rim_hca *r, int64_t late_ns)
{
    int64_t now = late_ns > LATE_BOUND_NS ? clock_mono_ns() : 0;

    if (now)
        late_record(r->late, now - late_ns, now);
}

int64_t rim_late_on_way(void *ctx, uint32_t ip, uint32_t qpn, int64_t window_ps)
{
    const struct rim_hca *r = ctx;

    return late_on_way(r->sh, r->fab, (unsigned)(r->bell - r->sh->bell), ip, qpn, window_ps);
}
