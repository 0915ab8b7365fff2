/* SPDX-License-Identifier: BSD-3-Clause */
/* Behind port.h: what the kinds of ports have in common. */
#ifndef TRIB_IO_PORT_IMPL_H
#define TRIB_IO_PORT_IMPL_H

#include "io/port.h"

struct rim_port_ops {
    bool (*up)(struct rim_port *p);
    int (*fd)(const struct rim_port *p);
    uint16_t (*rx)(struct rim_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n);
    uint16_t (*tx)(struct rim_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n);
    uint16_t (*pending)(const struct rim_port *p, uint16_t queue);
    uint16_t (*arrived)(const struct rim_port *p, uint16_t queue);
    bool (*crowded)(const struct rim_port *p, uint16_t queue);
    void (*close)(struct rim_port *p);
    void (*orphan)(struct rim_port *p, bool fds); /* NULL: nothing to do */
};

struct rim_port {
    const struct rim_port_ops *ops;
    struct rim_port_stats stats;
};

#endif
