/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Verbs that every transport needs: this rank's port, RC and UD queue pairs, address handles. Plain
 * ibv_ calls.
 */
#ifndef TRIB_HOST_COLL_TRANSPORT_EDGE_H
#define TRIB_HOST_COLL_TRANSPORT_EDGE_H

#include "fabric/fabric.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* Verbs objects of a device: one PD, one CQ. */
struct port {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    uint32_t cqe;   /* completions that can be under way at most */
    unsigned index; /* among the rank's devices */
    uint8_t num;    /* port number, from 1 */
    uint8_t gid_index;
    union ibv_gid gid;
    uint32_t mtu;                     /* path MTU in bytes */
    uint8_t ack_timeout, retry_count; /* of the queue pairs that are connected from here */
};

/* Takes ack_timeout and retry_count from the conf, or their defaults. */
void port_set_timeouts(struct port *p, const struct fabric *fab);

/* Far end of an RC connection. */
struct remote {
    union ibv_gid gid;
    uint32_t qpn, psn;
};

/* Finds the port and GID index that carry one of the addresses ip[0..n) (host order). 0, -ENODEV or
 * what verbs said. */
int port_find(struct port *p, const uint32_t *ip, unsigned n, uint32_t max_mtu);
/* Makes room for `more` completions in the CQ; creates the CQ at the first call. 0 or -errno. */
int port_reserve(struct port *p, uint32_t more);
void gid_of_ip(union ibv_gid *gid, uint32_t ip);

struct edge_cap {
    uint32_t send_wr, recv_wr, send_sge, recv_sge, inline_bytes;
};
/* An RC queue pair in INIT. NULL and errno on failure. remote_write: the far end may write to
 * memory here. */
struct ibv_qp *rc_create(struct port *p, const struct edge_cap *cap, bool remote_write);
/* INIT to RTR to RTS. 0 or -errno. */
int rc_connect(struct port *p, struct ibv_qp *qp, const struct remote *r, uint32_t psn);
/* A UD queue pair ready to send. */
struct ibv_qp *ud_create(struct port *p, const struct edge_cap *cap, uint32_t qkey);
struct ibv_ah *ud_address(struct port *p, const union ibv_gid *gid);
/* Stops a queue pair: its buffers are no longer read or written. */
void qp_stop(struct ibv_qp *qp);

#endif
