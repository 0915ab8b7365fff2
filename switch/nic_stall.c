/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits the time for which a process that does not take its frames holds up others.
 *
 * Frames that wait for a process are subject to PFC: the link is paused, and senders on the same
 * host are held back. That is right for a slow process, and wrong for one that is stopped, stuck,
 * or takes a frame now and then. So each process slot has a credit of time for holding up others.
 * It spends credit while it holds them up; it earns credit with time (1/16 of it) and with frames
 * taken (1/512 of the full credit each). A slot without credit is stalled: the frames that wait for
 * it are dropped, and so are those that it does not take at once, until it has earned a quarter of
 * the credit.
 *
 * So over any span a process holds up others for at most NIC_STALL_PS, plus 1/16 of the span, plus
 * 1/512 of NIC_STALL_PS for each frame that it took, in any pattern: 100 ms for one that is
 * stopped, 6 % of the time for one that takes a frame a second, and any time for one that takes
 * 5,000 frames a second, which is a receiver that is slower than its senders. Time in which the NIC
 * itself did not run, on an overloaded machine, is not charged (nic_excuse()).
 *
 * Rejected: a limit to the time since the last frame was taken, because one frame a second restarts
 * it for ever. Dropping as soon as frames wait, because a process that is not scheduled for a while
 * would lose frames.
 */
#include "switch/nic_priv.h"

#define STALL_REFILL 16  /* time earns 1/STALL_REFILL of itself, */
#define STALL_FRAMES 512 /* a frame 1/STALL_FRAMES of the full credit; */
#define STALL_RESUME 4   /* 1/STALL_RESUME of the full credit ends a stall */
/* A slot with more frames uses a pool that all nodes of the process share. */
#define STALL_BACKLOG 256u

/* Whether the frames that wait for the slot hold up others. If the link is paused, every slot with
 * at least its fair share of the waiting frames does. */
static bool holds_up(const struct nic_port *np, const struct nic_slot *s)
{
    const struct pfc *pfc = &np->nic->nd.np[np->port].pfc;
    uint32_t n = nic_set_count(np, np->attached), used = nic_rx_used(s);

    if (used > STALL_BACKLOG || nic_rx_half_full(np, s))
        return true;
    return pfc->over && (used * n >= pfc->pkts || s->rx_bytes * n >= pfc->bytes);
}

static void earn(const struct nic_port *np, struct nic_slot *s, int64_t ps, int64_t now_ps)
{
    s->credit_ps = RTE_MIN(s->credit_ps + ps, np->nic->stall_ps);
    T_ASSERT_HOT(s->credit_ps >= 0, "a slot has spent more credit than it had");
    if (s->stalled && s->credit_ps >= np->nic->stall_ps / STALL_RESUME) {
        s->stalled = false;
        node_event(&np->nic->nd, now_ps, NODE_EV_TAKES_AGAIN, np->port, nic_rx_used(s));
    }
}

void nic_stall_took(const struct nic_port *np, struct nic_slot *s, uint32_t n, int64_t now_ps)
{
    earn(np, s, n * (np->nic->stall_ps / STALL_FRAMES), now_ps);
    if (s->rx_head == s->rx_tail)
        s->waits = false;
}

bool nic_stall_look(const struct nic_port *np, struct nic_slot *s, int64_t now_ps)
{
    int64_t dt = RTE_MAX(now_ps - s->looked_ps, (int64_t)0);

    earn(np, s, dt / STALL_REFILL, now_ps);
    if (s->waits && !s->stalled && holds_up(np, s))
        s->credit_ps -= dt;
    s->looked_ps = RTE_MAX(s->looked_ps, now_ps);
    s->waits = true;
    if (s->credit_ps < 0) {
        s->credit_ps = 0;
        s->stalled = true;
        node_event(&np->nic->nd, now_ps, NODE_EV_STALLED, np->port, nic_rx_used(s));
    }
    return s->stalled;
}

void nic_stall_reset(const struct nic_port *np, struct nic_slot *s)
{
    s->stalled = s->waits = false;
    s->credit_ps = np->nic->stall_ps;
    s->looked_ps = 0;
}

void nic_set_stall(struct node *nd, int64_t ps)
{
    struct nic *nic = nic_of(nd);

    nic->stall_ps = RTE_MAX(ps, (int64_t)STALL_FRAMES);
    for (uint16_t p = 0; p < nd->n_ports; p++)
        nic_each(&nic->p[p], nic->p[p].attached, slot)
            nic_stall_reset(&nic->p[p], nic_slot_at(&nic->p[p], slot));
}

void nic_excuse(struct node *nd, int64_t until_ps)
{
    for (uint16_t p = 0; p < nd->n_ports; p++) {
        struct nic_port *np = &nic_of(nd)->p[p];

        nic_each(np, np->attached, slot)
        {
            struct nic_slot *s = nic_slot_at(np, slot);

            if (s->waits)
                s->looked_ps = RTE_MAX(s->looked_ps, until_ps);
        }
    }
}
