/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/node_events.h"

/* Checks of a queue before it counts as stuck. */
#define LOOKS 4

static void set_discard(struct node *nd, uint16_t port, bool discards, int64_t now)
{
    T_ASSERT(discards != egress_discards(nd->egress[port]), "a watchdog repeats itself");
    egress_discard(nd->egress[port], discards, now);
    nd->cnt[port].watchdog_trips += discards;
    node_event(nd, now, discards ? NODE_EV_STUCK : NODE_EV_RELEASED, port,
               (uint32_t)nd->cnt[port].watchdog_trips);
    if (nd->dogs.changed)
        nd->dogs.changed(nd->dogs.ctx, nd->id, port, discards);
}

/*
 * Time for which a queue may be stuck. One queue that discards is enough to break a cycle, so the times of
 * ports differ by up to an eighth of after_ps: the ports of a cycle do not all trip at once.
 */
static int64_t patience(const struct node *nd, uint16_t port)
{
    uint32_t h = ((uint32_t)nd->id << 10 ^ port) * 0x9e3779b1u >> 26;

    return nd->dogs.after_ps + nd->dogs.after_ps / 8 * h / 64;
}

/* Checks a port; returns the time of the next check. */
static int64_t watchdog_look(struct node *nd, uint16_t port, int64_t now)
{
    struct watchdog *d = &nd->np[port].dog;
    struct egress *e = nd->egress[port];
    bool stuck = egress_stuck(e, &d->taken, now);
    int64_t often = now + RTE_MAX(nd->dogs.after_ps / LOOKS, (int64_t)1);

    T_ASSERT(nd->dogs.after_ps > 0, "a watchdog that is off watches a port");
    T_ASSERT(d->since_ps <= now, "a watchdog waits for a time that has not come");
    if (egress_discards(e)) {
        if (egress_is_paused(e, now)) {
            d->since_ps = now;
        } else if (now - d->since_ps >= nd->dogs.after_ps) {
            d->watching = false;
            set_discard(nd, port, false, now);
            return PS_NEVER;
        }
        return often;
    }
    if (!stuck) {
        d->since_ps = now;
        d->watching = egress_is_paused(e, now);
    } else if (now - d->since_ps >= patience(nd, port)) {
        d->since_ps = now;
        set_discard(nd, port, true, now);
    } else {
        return RTE_MIN(often, d->since_ps + patience(nd, port));
    }
    return d->watching ? often : PS_NEVER;
}

void watchdog_pause(struct node *nd, uint16_t port, int64_t now)
{
    struct watchdog *d = &nd->np[port].dog;

    T_ASSERT(d->watching || !egress_discards(nd->egress[port]),
             "a port discards and no watchdog watches it");
    if (!nd->dogs.after_ps || d->watching)
        return;
    d->watching = true;
    d->since_ps = now;
    egress_stuck(nd->egress[port], &d->taken, now);
    nd->dogs.due_ps = RTE_MIN(nd->dogs.due_ps, now + nd->dogs.after_ps / LOOKS);
}

void watchdog_tick(struct node *nd, int64_t now)
{
    if (nd->dogs.due_ps > now)
        return;
    nd->dogs.due_ps = PS_NEVER;
    for (uint16_t p = 0; p < nd->n_ports; p++)
        if (nd->np[p].dog.watching)
            nd->dogs.due_ps = RTE_MIN(nd->dogs.due_ps, watchdog_look(nd, p, now));
}

void watchdog_set(struct node *nd, int64_t after_ps, int64_t now)
{
    nd->dogs.after_ps = after_ps;
    for (uint16_t p = 0; p < nd->n_ports && !after_ps; p++) {
        nd->np[p].dog.watching = false;
        if (nd->egress[p] && egress_discards(nd->egress[p]))
            set_discard(nd, p, false, now);
    }
    if (!after_ps)
        nd->dogs.due_ps = PS_NEVER;
}
