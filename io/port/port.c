/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/port/port_impl.h"

uint16_t io_port_rx(struct io_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
    return p->ops->rx(p, queue, m, n);
}

uint16_t io_port_tx(struct io_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
    return p->ops->tx(p, queue, m, n);
}

uint16_t io_port_pending(const struct io_port *p, uint16_t queue)
{
    return p->ops->pending(p, queue);
}

uint16_t io_port_arrived(const struct io_port *p, uint16_t queue)
{
    return p->ops->arrived(p, queue);
}

bool io_port_crowded(const struct io_port *p, uint16_t queue)
{
    return p->ops->crowded(p, queue);
}

uint16_t io_port_untaken(const struct io_port *p, uint16_t queue)
{
    return p->ops->untaken ? p->ops->untaken(p, queue) : 0;
}

struct port_page *io_port_page(const struct io_port *p)
{
    return p->ops->page ? p->ops->page(p) : NULL;
}

int io_port_peer(const struct io_port *p)
{
    return p->peer_pid;
}

int io_port_refused(const struct io_port *p, const char **why)
{
    *why = p->refused_why;
    return p->refused_pid;
}

bool io_port_expired(const struct io_port *p)
{
    return p->ops->expired && p->ops->expired(p);
}

bool io_port_up(struct io_port *p)
{
    return p->ops->up(p);
}

int io_port_fd(const struct io_port *p)
{
    return p->ops->fd(p);
}

const struct io_port_stats *io_port_stats(const struct io_port *p)
{
    return &p->stats;
}

void io_port_close(struct io_port *p)
{
    if (p)
        p->ops->close(p);
}

void io_port_orphan(struct io_port *p, bool fds)
{
    if (p && p->ops->orphan)
        p->ops->orphan(p, fds);
}
