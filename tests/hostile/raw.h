/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What attack programs share: a process slot of a host of a fabric that is up, as a memif client
 * without an HCA, which sends and receives frames of any content. The run directory is TRIB_RUN;
 * `trib exec HOST -- PROGRAM` sets it and TRIB_HOST.
 *
 * Builders return a frame for raw_send(), with a right ICRC; what is 0 in their arguments is the
 * own port's. Everything that fails ends the program with exit code 2 and a message, so that a
 * script can tell a broken attack from a repelled one.
 */
#ifndef TESTS_HOSTILE_RAW_H
#define TESTS_HOSTILE_RAW_H

#include "aggregation/proto.h"
#include "fabric/fabric.h"
#include "io/port/port.h"
#include "machine/rundir.h"
#include "machine/shared.h"
#include "roce/endpoint.h"
#include "roce/wire.h"
#include "switch/mcast.h"

struct raw {
    struct rundir rd;
    struct fabric *fab;
    const struct fab_node *host;
    unsigned port;
    int slot, lock;
    uint32_t ip; /* of the port */
    struct rte_mempool *pool;
    struct io_port *io;
    const struct switch_view *nic; /* the process that runs the NIC */
    _Atomic uint32_t rung;
    uint64_t sent;
};

void raw_die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Claims a free slot of the host's port and connects to it. slot >= 0: connects to that slot
 * without claiming it. host NULL: TRIB_HOST. Several may be open in one process. */
void raw_open(struct raw *r, const char *host, unsigned port, int slot);
/* The same; -errno where the slot does not answer within wait_ms or none is free. */
int raw_try_open(struct raw *r, const char *host, unsigned port, int slot, unsigned wait_ms);
void raw_close(struct raw *r);

/* Sends one frame and frees it; waits while the ring is full, for 5 s at most. */
void raw_send(struct raw *r, struct rte_mbuf *m);
/* The same without waiting; false: the ring is full or the NIC is gone, m is freed. */
bool raw_offer(struct raw *r, struct rte_mbuf *m);
/* Waits until the NIC has taken everything that was sent. False: it has not within wait_ms. */
bool raw_flush(struct raw *r, unsigned wait_ms);
/* The next frame received, or NULL after wait_ms. */
struct rte_mbuf *raw_recv(struct raw *r, unsigned wait_ms);
/* Frees everything that was received. */
void raw_drain(struct raw *r);

/* ---- addresses ---- */

/* Of a switch, or of a host's first port; "HOST.PORT" is another port. */
uint32_t raw_ip(const struct raw *r, const char *node);
/* First of the QPNs that belong to a slot. */
static inline uint32_t raw_qpn0(unsigned slot)
{
    return (slot + 1) << 16;
}

/* ---- frames ---- */

struct rte_mbuf *raw_bytes(struct raw *r, const void *p, uint32_t len);
/* Any RoCE v2 packet. Defaults for fields that are 0: src_ip, MACs by the addresses, ttl, pkey,
 * udp_src, the mark of the own slot. */
struct rte_mbuf *raw_roce(struct raw *r, const struct roce_pkt *pkt, const void *payload);
struct rte_mbuf *raw_ud(struct raw *r, uint32_t src_ip, uint32_t dst_ip, uint32_t sqpn,
                        uint32_t dqpn, uint32_t qkey, const void *payload, uint32_t len);
/* opcode: of RC, without extended headers (SEND_ONLY). */
struct rte_mbuf *raw_rc(struct raw *r, uint8_t opcode, uint32_t src_ip, uint32_t dst_ip,
                        uint32_t dqpn, uint32_t psn, const void *payload, uint32_t len);
/* An acknowledgement, or a NAK by its syndrome. */
struct rte_mbuf *raw_ack(struct raw *r, uint32_t src_ip, uint32_t dst_ip, uint32_t dqpn,
                         uint32_t psn, uint8_t syndrome, uint32_t msn);
struct rte_mbuf *raw_cnp(struct raw *r, uint32_t src_ip, uint32_t dst_ip, uint32_t dqpn);
struct rte_mbuf *raw_igmp(struct raw *r, enum igmp_what what, uint32_t group, uint32_t src_ip);
/* op: 1 request, 2 reply. Says that sender_ip is at the own MAC, or at sender_mac. */
struct rte_mbuf *raw_arp(struct raw *r, uint16_t op, uint32_t sender_ip, const uint8_t *sender_mac,
                         uint32_t target_ip);
/* A control message of aggregation to AGG_QPN of a switch, or to a member's queue pair: magic and
 * version are set. */
struct rte_mbuf *raw_agg(struct raw *r, uint32_t src_ip, uint32_t dst_ip, uint32_t sqpn,
                         uint32_t dqpn, enum agg_type type, const struct agg_ctl *c);

#endif
