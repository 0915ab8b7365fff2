/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process slot of a NIC as an endpoint: two rings each way, of which the process fills one with
 * acknowledgements and one with data.
 */
#include "io/loop_impl.h"

#define SLOT_BURST 32 /* frames of a process in a round: see link_receive() */

static uint16_t slot_input(void *ctx, struct rte_mbuf **m, uint16_t n, int64_t now_ps)
{
    struct link_io *c = ctx;
    uint16_t k = io_port_tx(c->rp, ENDPOINT_DATA, m, n);

    (void)now_ps;
    c->ring |= k > 0;
    c->blocked = k < n;
    return k;
}

static uint16_t slot_output(void *ctx, enum endpoint_queue q, struct rte_mbuf **m, uint16_t n,
                            int64_t now_ps)
{
    struct link_io *c = ctx;
    bool full = io_port_crowded(c->rp, q);

    (void)now_ps;
    if (!c->budget)
        return 0;
    n = io_port_rx(c->rp, q, m, RTE_MIN(n, c->budget));
    T_ASSERT_HOT(n <= c->budget, "a process slot sends beyond its budget of the round");
    c->budget = (uint16_t)(c->budget - n);
    /* The process may sleep until there is room. */
    c->ring |= full || (n && c->bell && atomic_load(&c->bell->wants_room));
    return n;
}

static bool slot_late(void *ctx)
{
    const struct link_io *c = ctx;

    return c->bell && atomic_load(&c->bell->wants_room);
}

static void slot_tick(void *ctx, int64_t now_ps)
{
    (void)ctx;
    (void)now_ps;
}

static int64_t slot_next(void *ctx)
{
    const struct link_io *c = ctx;

    return c->budget &&
                   (io_port_pending(c->rp, ENDPOINT_ACK) || io_port_pending(c->rp, ENDPOINT_DATA))
               ? 0
               : PS_NEVER;
}

struct endpoint slot_endpoint(struct link_io *c)
{
    return (struct endpoint){.ctx = c,
                             .input = slot_input,
                             .output = slot_output,
                             .tick = slot_tick,
                             .next = slot_next,
                             .late = slot_late};
}

unsigned slot_receive(struct link_io *c, int64_t now_ps)
{
    bool kick = c->blocked || !c->budget;

    c->budget = SLOT_BURST;
    for (unsigned q = 0; q < ENDPOINT_QUEUES; q++) {
        uint16_t at = io_port_arrived(c->rp, (uint16_t)q);

        kick |= at != c->arrived[q];
        c->arrived[q] = at;
    }
    if (!kick)
        return 0;
    net_kick(c->l->net, c->node, c->port, c->slot, now_ps);
    return !c->blocked;
}
