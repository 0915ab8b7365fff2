/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The real-time driver of the nodes of a trib-switch process. One thread owns the net, the links that
 * leave the process, and the clock. It never spins: it yields once or twice, then sleeps on its
 * doorbell until the next deadline.
 *
 *   loop.c      receive -> net_kick, net_input -> net_advance(fabric now) -> send -> ring -> sleep
 *   link_io.c   a memif for each process slot of a host's NIC and for each link to another process,
 *               an ethdev for each port to the outside
 *
 * More processes use more cores (`procs` in the conf, or --nodes). More threads in a process would not:
 * a net is one ordered event queue, and a memif between two threads costs as much as one between two
 * processes.
 */
#ifndef TRIB_IO_LOOP_H
#define TRIB_IO_LOOP_H

#include "machine/rundir.h"
#include "machine/shared.h"
#include "switch/net/net.h"

#include <signal.h>

struct loop;

struct loop_cfg {
    const struct fabric *fab;
    const struct rundir *rd;
    const bool *mine;                 /* [fab->n_nodes]; NULL: all */
    struct rte_mempool *pool, *parts; /* as in net_cfg */
    uint64_t seed;
};

/* Number of frames for the pool of these nodes. */
unsigned loop_pool_frames(const struct fabric *fab, const bool *mine);

int loop_create(struct loop **l, const struct loop_cfg *cfg);
void loop_destroy(struct loop *l);
/* Runs until *stop. ready(ctx) is called once, when every link to another process
 * of this machine is up. */
void loop_run(struct loop *l, volatile sig_atomic_t *stop, void (*ready)(void *ctx), void *ctx);

/* Calls fn in the loop's thread between two rounds and waits for it. 0, or -ETIMEDOUT if the loop does
 * not answer within 5 s. */
int loop_call(struct loop *l, void (*fn)(struct loop *l, void *arg), void *arg);

/* Only for fn: */
struct net *loop_net(struct loop *l);
const struct fabric *loop_fabric(const struct loop *l);
struct shared *loop_shared(const struct loop *l);
/* Like net_tap(), but also taps frames from other processes. */
void loop_tap(struct loop *l, net_tap_fn fn, void *ctx);

enum link_io_kind { LINK_IO_SLOT, LINK_IO_LINK, LINK_IO_OUTSIDE };
struct link_io_info {
    enum link_io_kind kind;
    uint16_t node, port;
    unsigned slot;
    bool up;
    int pid; /* slots: the connected process; 0: unknown */
    uint64_t rx, tx, rx_bad, tx_bad, rx_nobuf, connects, overflow;
    uint64_t refused;     /* connections refused: without the host's token, or unfinished */
    uint64_t stall_drops; /* slots: frames that the process did not accept in time */
};
/* Describes link i that leaves the process; false: there are no more. */
bool loop_link_io(const struct loop *l, unsigned i, struct link_io_info *info);

#endif
