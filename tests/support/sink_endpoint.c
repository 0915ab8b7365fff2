/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/sink_endpoint.h"

static uint16_t sink_input(void *ctx, struct rte_mbuf **m, uint16_t n, int64_t now_ps)
{
    unsigned *taken = ctx;

    (void)now_ps;
    for (uint16_t i = 0; i < n; i++)
        rte_pktmbuf_free(m[i]);
    if (taken)
        *taken += n;
    return n;
}

static uint16_t sink_output(void *ctx, enum endpoint_queue q, struct rte_mbuf **m, uint16_t n,
                            int64_t now_ps)
{
    (void)ctx, (void)q, (void)m, (void)n, (void)now_ps;
    return 0;
}

static void sink_tick(void *ctx, int64_t now_ps)
{
    (void)ctx, (void)now_ps;
}

static int64_t sink_next(void *ctx)
{
    (void)ctx;
    return PS_NEVER;
}

struct endpoint sink_endpoint(unsigned *taken)
{
    return (struct endpoint){.ctx = taken,
                             .input = sink_input,
                             .output = sink_output,
                             .tick = sink_tick,
                             .next = sink_next};
}
