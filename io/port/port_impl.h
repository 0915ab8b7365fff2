/* SPDX-License-Identifier: BSD-3-Clause */
/* Internals of port.h, shared by all kinds of ports. */
#ifndef TRIB_IO_PORT_IMPL_H
#define TRIB_IO_PORT_IMPL_H

#include "io/port/port.h"

struct io_port_ops {
    bool (*up)(struct io_port *p);
    int (*fd)(const struct io_port *p);
    uint16_t (*rx)(struct io_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n);
    uint16_t (*tx)(struct io_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n);
    uint16_t (*pending)(const struct io_port *p, uint16_t queue);
    uint16_t (*arrived)(const struct io_port *p, uint16_t queue);
    bool (*crowded)(const struct io_port *p, uint16_t queue);
    uint16_t (*untaken)(const struct io_port *p, uint16_t queue); /* NULL: unknown */
    struct port_page *(*page)(const struct io_port *p);           /* NULL: none */
    bool (*expired)(const struct io_port *p);                     /* NULL: never */
    void (*close)(struct io_port *p);
    void (*orphan)(struct io_port *p, bool fds); /* NULL: nothing to do */
};

struct io_port {
    const struct io_port_ops *ops;
    struct io_port_stats stats;
    int peer_pid; /* server: the connected process; 0: unknown */
    int refused_pid;
    const char *refused_why;
    char refused_text[96]; /* client: the server's reason */
};

#endif
