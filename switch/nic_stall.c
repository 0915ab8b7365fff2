/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a process that does not take its frames may hold up others.
 *
 * Frames that wait for a process are PFC's business: the link is paused, and those who send to it
 * on the same host are held back. That is right for a process that is slow, and wrong for one that
 * is stopped, stuck, or takes a frame now and then: others wait for its sake. So each process slot
 * has a credit of time in which it may hold up others. It is spent while it does; it is earned by
 * time (1/16 of it) and by frames taken (STALL_PER_FRAME each). A slot whose credit is spent is
 * stalled: what waits for it is dropped, and so is whatever it does not take at once, until it has
 * earned a quarter of the credit.
 *
 * So over any span a process holds up others for no more than NIC_STALL_PS, 1/16 of the span, and
 * 1/512 of NIC_STALL_PS for each frame that it took, in whatever pattern: 100 ms for one that is
 * stopped, 6 % of the time for one that takes a frame a second, and any time for one that takes
 * 5,000 frames a second, which is a receiver that is slower than its senders. Time in which the
 * NIC itself did not run, on a machine that is overloaded, is not charged (nic_excuse()).
 *
 * Rejected: a limit to the time since the last frame was taken, which a frame a second restarts for
 * ever. Dropping as soon as frames wait: who is not scheduled for a while would lose frames.
 */
#include "switch/nic_priv.h"

#define STALL_REFILL 16  /* one part in so many of the time is earned, */
#define STALL_FRAMES 512 /* the credit by so many frames */
#define STALL_RESUME 4   /* one part in so many of the credit ends it */
/* A slot that holds more takes from a pool that all nodes of the process share. */
#define STALL_BACKLOG 256u

/* Whether what waits for the slot holds up others. Where the link is paused, those slots do that
 * hold at least their share of what waits. */
static bool holds_up(const struct nic_port *np, const struct nic_slot *s)
{
    const struct pfc *pfc = &np->nic->nd.np[np->port].pfc;
    uint32_t n = nic_set_count(np, np->attached), used = nic_rx_used(s);

    if (used > STALL_BACKLOG || nic_rx_half_full(np, s))
        return true;
    return pfc->over && (used * n >= pfc->pkts || s->rx_bytes * n >= pfc->bytes);
}

static void earn(const struct nic_port *np, struct nic_slot *s, int64_t ps)
{
    s->credit_ps = RTE_MIN(s->credit_ps + ps, np->nic->stall_ps);
    if (s->stalled && s->credit_ps >= np->nic->stall_ps / STALL_RESUME)
        s->stalled = false;
}

void nic_stall_took(const struct nic_port *np, struct nic_slot *s, uint32_t n)
{
    earn(np, s, n * (np->nic->stall_ps / STALL_FRAMES));
    if (s->rx_head == s->rx_tail)
        s->waits = false;
}

bool nic_stall_look(const struct nic_port *np, struct nic_slot *s, int64_t now_ps)
{
    int64_t dt = RTE_MAX(now_ps - s->looked_ps, (int64_t)0);

    earn(np, s, dt / STALL_REFILL);
    if (s->waits && !s->stalled && holds_up(np, s))
        s->credit_ps -= dt;
    s->looked_ps = RTE_MAX(s->looked_ps, now_ps);
    s->waits = true;
    if (s->credit_ps < 0) {
        s->credit_ps = 0;
        s->stalled = true;
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
