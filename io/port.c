/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/port_impl.h"

uint16_t rim_port_rx(struct rim_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
    return p->ops->rx(p, queue, m, n);
}

uint16_t rim_port_tx(struct rim_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
    return p->ops->tx(p, queue, m, n);
}

uint16_t rim_port_pending(const struct rim_port *p, uint16_t queue)
{
    return p->ops->pending(p, queue);
}

uint16_t rim_port_arrived(const struct rim_port *p, uint16_t queue)
{
    return p->ops->arrived(p, queue);
}

bool rim_port_crowded(const struct rim_port *p, uint16_t queue)
{
    return p->ops->crowded(p, queue);
}

bool rim_port_up(struct rim_port *p)
{
    return p->ops->up(p);
}

int rim_port_fd(const struct rim_port *p)
{
    return p->ops->fd(p);
}

const struct rim_port_stats *rim_port_stats(const struct rim_port *p)
{
    return &p->stats;
}

void rim_port_close(struct rim_port *p)
{
    if (p)
        p->ops->close(p);
}

void rim_port_orphan(struct rim_port *p, bool fds)
{
    if (p && p->ops->orphan)
        p->ops->orphan(p, fds);
}
