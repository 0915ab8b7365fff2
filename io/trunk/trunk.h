/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trunk of a machine: the process that joins the part of a fabric that runs here to the parts on
 * other machines (`machines` in the conf), by UDP datagrams with a keyed MAC.
 *
 *   trunk_wire.c    messages: their MAC, and sequence numbers against replays
 *   trunk_session.c tells messages of the present session with a machine from others
 *   trunk_peers.c   the other machines: which are there, and what each has sent
 *   trunk_follow.c  offset and drift of another machine's clock
 *   trunk_clock.c   the fabric's clock: makes it, or follows the machine that owns it
 *   trunk_ends.c    links to other machines: for a local switch process the trunk is the process at
 *                   the other end of the memif; frames keep their order
 *   trunk_carrier.c frames by a DPDK port instead of UDP
 *   trunk_cuts.c    links that other machines have cut
 *   trunk_orders.c  changes a link, or ends the fabric, on all machines
 *   trunk_counts.c  bytes on links into which nodes of other machines send
 *   trunk_telemetry.c   the trunk's telemetry commands
 *   trunk.c         its two threads: one sleeps on the bell that switch processes ring, one on the socket
 */
#ifndef TRIB_IO_TRUNK_TRUNK_H
#define TRIB_IO_TRUNK_TRUNK_H

#include "machine/rundir.h"

#include <signal.h>

struct trunk_cfg {
    const struct fabric *fab;
    struct rundir *rd; /* trunk_begin() sets its sh */
    unsigned machine;  /* index of this machine */
    uint32_t dilation; /* of the clock, if this machine makes it */
};

struct trunk;
struct page_server;

/* Opens the socket, agrees on the fabric's clock with the machines that are there (in about a
 * second), and shares the pages of this process. Ends early when *stop. 0 or -errno, with a message
 * on stderr. */
int trunk_begin(struct trunk **t, struct page_server **pages, const struct trunk_cfg *cfg,
                volatile sig_atomic_t *stop);
/* Number of frames for the trunk's pool. */
unsigned trunk_pool_frames(const struct trunk *t);
/* Device i that the conf lists for this machine, to be tried in this order; "" after the last. */
const char *trunk_device(const struct trunk *t, unsigned i);
struct rte_mempool;
/* Runs until *stop, with EAL up. Calls ready(ctx) once it serves. 0 or -errno, with a message. */
int trunk_run(struct trunk *t, struct rte_mempool *pool, volatile sig_atomic_t *stop,
              void (*ready)(void *ctx), void *ctx);
void trunk_end(struct trunk *t);

/* Index of the machine of this name, or (NULL) of the one that has an address of this machine.
 * -errno, with a message on stderr. */
int trunk_machine(const struct fabric *f, const char *name);

#endif
