/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trunk of a machine: a process that joins the part of a fabric that runs here to those of other
 * machines (`machines` in the conf), by UDP datagrams with a keyed MAC.
 *
 *   trunk_wire.c    messages: MAC, what has been received before
 *   trunk_session.c whether a message is of the present session with its sender
 *   trunk_peers.c   the other machines: who is there, and what each says
 *   trunk_follow.c  offset and drift of another machine's clock
 *   trunk_clock.c   who has the fabric's clock; makes it, or follows it
 *   trunk_ends.c    links to other machines: towards the switch processes here it is the process at
 *                   the other end of a memif; frames keep their order
 *   trunk_carrier.c frames by a DPDK port instead of UDP
 *   trunk_cuts.c    links that are cut elsewhere
 *   trunk_orders.c  a change of a link, or the end of the fabric, on all machines
 *   trunk_counts.c  what links elsewhere carry
 *   trunk_telemetry.c   what it says of itself
 *   trunk.c         its threads: one sleeps on the bell that switch processes ring, one on the socket
 */
#ifndef TRIB_IO_TRUNK_TRUNK_H
#define TRIB_IO_TRUNK_TRUNK_H

#include "machine/rundir.h"

#include <signal.h>

struct trunk_cfg {
    const struct fabric *fab;
    struct rundir *rd; /* its sh is set by trunk_begin() */
    unsigned machine;  /* the one that this is */
    uint32_t dilation; /* of a clock that is made here */
};

struct trunk;
struct page_server;

/* Opens the socket, agrees on the fabric's clock with the machines that are there (in about a
 * second), and hands out the pages of this process. Ends early when *stop. 0 or -errno, with a message
 * on stderr. */
int trunk_begin(struct trunk **t, struct page_server **pages, const struct trunk_cfg *cfg,
                volatile sig_atomic_t *stop);
/* Number of frames for its pool. */
unsigned trunk_pool_frames(const struct trunk *t);
/* The devices that may be its port, as the conf has them: "" after the last. */
const char *trunk_device(const struct trunk *t, unsigned i);
struct rte_mempool;
/* Runs until *stop, with EAL up. ready(ctx) is called when it serves. 0 or -errno, with a message. */
int trunk_run(struct trunk *t, struct rte_mempool *pool, volatile sig_atomic_t *stop,
              void (*ready)(void *ctx), void *ctx);
void trunk_end(struct trunk *t);

/* Index of the machine of this name, or (NULL) of the one that has an address of this machine.
 * -errno, with a message on stderr. */
int trunk_machine(const struct fabric *f, const char *name);

#endif
