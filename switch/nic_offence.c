/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Offences: frames that a process may not send (source_guard.h), malformed ones, and those of protocols
 * that only the NIC may speak. The NIC drops each under its own reason. It shuts the slot of a process
 * that sends many: takes nothing from it, gives nothing to it, leaves its groups, and tells aggregation
 * nodes that it is gone, as if it had ended. The other slots continue.
 *
 * A slot is shut until nic_open() opens the port or the process ends. An offender may come back as
 * another process in any slot, where nobody can tell it from an innocent one: so the NIC_SHUT_SLOTS-th
 * slot that is shut shuts the port, for all processes of the host.
 *
 * Rejected: a slot that stays shut after its process has ended. The next process, which may be
 * anybody's, would find a NIC that does not answer.
 *
 * The NIC shuts slots in its tick, not where it finds the offence, which is inside the pull of an egress
 * queue.
 */
#include "switch/nic_priv.h"

static void shut(struct nic_port *np, unsigned slot, int64_t now_ps)
{
    struct nic_slot *s = nic_slot_at(np, slot);

    s->attached = false;
    s->shut = s->offence.was_shut = true;
    nic_set_put(np->attached, slot, false);
    nic_set_put(np->shutting, slot, true);
    np->retry_ps = RTE_MIN(np->retry_ps, now_ps);
    node_event(&np->nic->nd, now_ps, NODE_EV_SHUT, np->port, slot);
}

static void shut_port(struct nic_port *np, int64_t now_ps)
{
    np->shut = true;
    nic_each(np, np->attached, slot) shut(np, slot, now_ps);
}

void nic_offence(struct nic_port *np, unsigned slot, enum drop why, int64_t now_ps)
{
    struct nic *nic = np->nic;
    struct nic_slot *s = nic_slot_at(np, slot);
    struct nic_offences *o = &s->offence;

    T_ASSERT(why < DROP_REASONS, "a frame that was admitted counts as an offence");
    if (s->shut)
        return;
    if (!o->recent || now_ps - o->since_ps > nic->offence_ps) {
        o->since_ps = now_ps;
        o->recent = 0;
    }
    o->frames++;
    o->why = (uint8_t)why;
    if (++o->recent >= NIC_OFFENCES) {
        shut(np, slot, now_ps);
        if (++np->n_shut >= NIC_SHUT_SLOTS)
            shut_port(np, now_ps);
    }
    if (nic->offended)
        nic->offended(nic->offended_ctx, nic->nd.id, np->port, slot);
}

void nic_shut_pending(struct nic_port *np, int64_t now_ps)
{
    uint64_t set[NIC_WORDS];

    memcpy(set, np->shutting, sizeof(set));
    memset(np->shutting, 0, sizeof(np->shutting));
    nic_each(np, set, slot) nic_leave(np, slot, DROP_PORT_SHUT, now_ps);
}

void nic_open(struct node *nd, uint16_t port, int64_t now_ps)
{
    struct nic_port *np = &nic_of(nd)->p[port];

    T_ASSERT(port < nd->n_ports, "a port is opened that is not there");
    np->shut = false;
    np->n_shut = 0;
    memset(np->shutting, 0, sizeof(np->shutting));
    for (unsigned slot = 0; slot < np->nic->n_slots; slot++) {
        struct nic_slot *s = nic_slot_at(np, slot);

        if (!s)
            continue;
        s->offence = (struct nic_offences){.frames = 0};
        if (!s->shut)
            continue;
        s->shut = false;
        s->attached = true;
        nic_set_put(np->attached, slot, true);
        nic_set_put(np->gone, slot, false);
        nic_ask(s);
        node_event(nd, now_ps, NODE_EV_OPENED, port, slot);
    }
    nic_kick_port(np, now_ps);
    nic_settle(np);
}

bool nic_offences(struct node *nd, uint16_t port, unsigned slot, struct nic_offender *o)
{
    const struct nic_slot *s;

    T_ASSERT(port < nd->n_ports, "the offences of a port that is not there");
    s = nic_slot_at(&nic_of(nd)->p[port], slot);
    if (!s || (!s->offence.frames && !s->shut))
        return false;
    *o = (struct nic_offender){.frames = s->offence.frames,
                               .why = (enum drop)s->offence.why,
                               .shut = s->shut,
                               .was_shut = s->offence.was_shut};
    return true;
}

bool nic_port_is_shut(struct node *nd, uint16_t port)
{
    T_ASSERT(port < nd->n_ports, "a port that is not there");
    return nic_of(nd)->p[port].shut;
}

void nic_set_offence_window(struct node *nd, int64_t ps)
{
    nic_of(nd)->offence_ps = ps;
}

void nic_on_offence(struct node *nd,
                    void (*fn)(void *ctx, uint16_t node, uint16_t port, unsigned slot), void *ctx)
{
    nic_of(nd)->offended = fn;
    nic_of(nd)->offended_ctx = ctx;
}
