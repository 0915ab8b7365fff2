/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process slot of a NIC as an endpoint: two rings each way. The process sends acknowledgements by one
 * of them and data by the other.
 */
#include "io/loop_impl.h"

#include <string.h>

#define SLOT_BURST 32 /* frames of a process in a round, as in link_receive() */

static uint16_t slot_input(void *ctx, struct rte_mbuf **m, uint16_t n, int64_t now_ps)
{
    struct link_io *c = ctx;
    uint16_t k = io_port_tx(c->rp, ENDPOINT_DATA, m, n);

    (void)now_ps;
    c->ring |= k > 0;
    c->rung_frames += k;
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
    /* Rings the process, which may be sleeping until the ring has room. */
    c->ring |= full || (n && c->page && atomic_load(&c->page->wants_room));
    return n;
}

static bool slot_late(void *ctx)
{
    const struct link_io *c = ctx;

    return c->page && atomic_load(&c->page->wants_room);
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

/* Records the lateness of the process once it has served its bell. */
static void slot_served(struct link_io *c)
{
    const struct bell *b = &c->page->bell;
    int64_t now, at;

    if (bell_unserved(b))
        return;
    now = clock_mono_ns();
    at = atomic_load_explicit(&b->served_ns, memory_order_relaxed);
    if (at < c->rung_ns || at > now) /* the process may write anything there */
        at = now;
    lag_record(c->l->lag, at - c->rung_ns, RTE_MAX(c->rung_frames, 1u));
    if (at - c->rung_ns > LATENESS_BOUND_NS)
        lateness_record(c->late, c->rung_ns, at);
    lateness_forget(c->late);
    c->rung_ns = 0;
    c->rung_frames = 0;
}

/* The slot of the same host with this slot_name(), which the process gave; NULL: there is none. */
static const struct link_io *slot_named(const struct link_io *c, uint32_t name)
{
    for (unsigned i = 0; i < c->l->n_ios; i++) {
        const struct link_io *o = &c->l->io[i];

        if (o->kind == LINK_IO_SLOT && o->node == c->node && slot_name(o->port, o->slot) == name)
            return o;
    }
    return NULL;
}

static void wake_also(struct link_io *c)
{
    uint32_t name = atomic_load_explicit(&c->page->also, memory_order_relaxed);

    if (!name)
        return;
    if (name != c->also_name) {
        c->also = slot_named(c, name);
        c->also_name = c->also ? name : 0;
    }
    if (c->also && c->also->page)
        bell_wake(&c->also->page->bell);
}

void slot_ring(struct link_io *c)
{
    if (c->rung_ns)
        slot_served(c);
    if (!c->rung_ns) {
        c->rung_ns = clock_mono_ns();
        atomic_store_explicit(&c->late->due_ns, c->rung_ns, memory_order_relaxed);
        atomic_store_explicit(&c->page->bell.rung_ns, c->rung_ns, memory_order_relaxed);
    }
    bell_wake(&c->page->bell);
    wake_also(c);
}

void slot_connected(struct link_io *c)
{
    c->page = c->up ? io_port_page(c->rp) : NULL;
    c->rung_ns = 0;
    c->rung_frames = 0;
    c->also_name = 0;
    c->also = NULL;
    c->blocked = false;
    memset(c->arrived, 0, sizeof(c->arrived));
    lateness_forget(c->late);
}

unsigned slot_receive(struct link_io *c, int64_t now_ps)
{
    bool kick = c->blocked || !c->budget;

    if (c->page) {
        if (c->rung_ns)
            slot_served(c);
        loop_take_stamp(c->l, &c->page->rung_ns);
    }
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
