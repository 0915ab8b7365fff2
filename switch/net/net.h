/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net: the nodes that one process runs, and the links between them, in order of time. This is the
 * event queue that both clocks share: virtual time jumps from net_next() to net_next(); real time
 * calls net_advance(fabric now) when its clock says so. Everything up to `now` happens at its own
 * due time, in order (time, then link index), so that being late moves nothing inside a process
 * (but see net_set_ahead).
 */
#ifndef TRIB_SWITCH_NET_NET_H
#define TRIB_SWITCH_NET_NET_H

#include "fabric/fabric.h"
#include "switch/node.h"

struct net;

/* Parts of frames that do in real time: two for each result in a queue; those beyond are copied. */
#define NET_PARTS 8191u

struct net_cfg {
    const struct fabric *fab;
    const bool *mine; /* [fab->n_nodes] nodes to build here; NULL: all */
    struct rte_mempool *pool;
    struct rte_mempool *parts; /* of frames that aggregation nodes send by reference (rnic_cfg) */
    uint64_t seed;             /* of every fault generator */
    /* Frames that leave by a port whose other end is not here (another process, the outside). Takes
     * ownership. NULL in virtual time. */
    void (*deliver)(void *ctx, uint16_t node, uint16_t port, struct rte_mbuf **m, uint16_t n,
                    int64_t due_ps);
    /* Lateness of each hand-off (real time: actual now minus due); may be NULL. */
    void (*late)(void *ctx, int64_t due_ps, unsigned n);
    /* The PFC watchdog found the lossless queue of a switch's port stuck (what waits in it and what
     * comes is dropped from now on), or restores it; may be NULL. */
    void (*stuck)(void *ctx, uint16_t node, uint16_t port, bool stuck);
    /* For how long of the last window_ps somebody on the way to a process's queue pair did not run
     * (rnic_ops.late); NULL: everybody always runs. */
    int64_t (*late_on_way)(void *ctx, uint32_t ip, uint32_t qpn, int64_t window_ps);
    void *ctx;
    int64_t lag_ps; /* real time: how late frames and pauses may be; PFC keeps headroom for it. 0 in
                       virtual time */
    uint32_t an_mbufs; /* that each aggregation node may promise; 0: three quarters of the pool,
                          shared by those here */
};

int net_create(struct net **n, const struct net_cfg *cfg);
void net_destroy(struct net *n);
/* Runs every event due at or before now_ps; returns how many frames moved. */
unsigned net_advance(struct net *n, int64_t now_ps);
/* Time of the next event, PS_NEVER when nothing will ever happen by itself. */
int64_t net_next(struct net *n);
uint64_t net_events(const struct net *n); /* run so far */
int64_t net_now(const struct net *n);
/*
 * Virtual time in slices (net_apart.c). A net with a lookahead, the least latency of its links, may
 * run its nodes apart: what one does is felt by others that much later at the earliest, so each
 * node does many of its events in a row, in the order in which net_advance() would have it do them.
 * Its state is in the caches then, however many nodes there are. The same for the net's whole life;
 * 0: this net never can (a link without rate or latency, ways out).
 */
int64_t net_lookahead(const struct net *n);
/* Apart: net_slice() only, and net_next(), which is when the next slice may begin; until together
 * again. 0, -ENOMEM, or -EAGAIN: not now (no lookahead, links with faults, or with frames on them
 * that faults have put behind others). Faults may change while together only. */
int net_apart(struct net *n, bool apart);
/*
 * Nodes that run apart may run at the same time: those of a share one after the other, shares on
 * threads of the caller's. Times and order are the same for any number. Called once, when all
 * processes are attached and before net_apart(); returns how many shares there are (one where hosts
 * or switches are neighbours that should not be), or -errno.
 */
#define NET_SHARES 64u
int net_share(struct net *n, unsigned shares);

/* What a slice asks of those behind the hosts. */
struct net_turn {
    /* Calls fn(arg, k) for each share k and returns when all have, at the same time if it likes.
     * NULL: one after the other will do. */
    void (*together)(void *ctx, void (*fn)(void *arg, unsigned k), void *arg);
    /* A host has done what is due at an instant: its processes' turn, whose net_kick()s count for
     * that instant. By the thread of its share, as the next. */
    void (*served)(void *ctx, uint16_t node, int64_t now_ps);
    /* Whether anybody waits for this host's processes, or, FAB_NONE, for any. If not, the slice
     * ends after one lookahead. */
    bool (*awaited)(void *ctx, uint16_t node);
    /* The host's processes may have their turn soon: what they look at is to be on its way into the
     * CPU's caches. NET_SOON steps from 0 on, each when what the one before has asked for is there.
     */
    void (*soon)(void *ctx, uint16_t node, unsigned step);
    void *ctx;
};
#define NET_SOON 6u
/* Every event of a slice that is one or two lookaheads long and begins no later than the next
 * event; returns its end. */
int64_t net_slice(struct net *n, int64_t from_ps, const struct net_turn *turn);
/* A frame from outside arrives at a node of ours. */
void net_input(struct net *n, uint16_t node, uint16_t port, struct rte_mbuf **m, uint16_t cnt,
               int64_t now_ps);
struct node *net_node(struct net *n, uint16_t node); /* NULL: not here */
struct egress *net_egress(struct net *n, uint16_t node, uint16_t port);

/*
 * A process (its HCA, or the memif that leads to it) behind port `port` of host `node`, in slot
 * 0..slots_per_host-1. For a switch (port and slot 0): in place of its aggregation node. 0, -EINVAL
 * (no such place here), -EBUSY.
 */
int net_attach(struct net *n, uint16_t node, uint16_t port, unsigned slot,
               const struct endpoint *ep);
/* What an endpoint of a host, attached there, will look at whenever something comes for it. */
void net_list_lines(struct net *n, uint16_t node, uint16_t port, unsigned slot,
                    const struct cacheline_list *lines);
/* The process is gone: `down` is told to the aggregation nodes that it was a member at (PEER_DOWN
 * from its NIC). */
void net_detach(struct net *n, uint16_t node, uint16_t port, unsigned slot, int64_t now_ps);
/* The endpoint has frames to send or a new deadline (its next() changed). */
void net_kick(struct net *n, uint16_t node, uint16_t port, unsigned slot, int64_t now_ps);
/* Whether the switch's aggregation node holds nothing (true where it has none or is not here). */
bool net_an_idle(struct net *n, uint16_t node);
/* What is at the other end of the port's cable came or went. */
void net_port_state(struct net *n, uint16_t node, uint16_t port, bool up, int64_t now_ps);
/*
 * Takes a link down, or up again: frames towards it are dropped, routes and the spanning tree lead
 * around it at once. Every process of a fabric must be told, whether it has an end of it or not. 0,
 * -EINVAL (no such link), -ENOMEM (nothing has changed).
 */
int net_set_link(struct net *n, unsigned link, bool up, int64_t now_ps);
/* All links of a node at one instant, as when it loses its power: nobody blames one of them for it.
 * 0, -EINVAL (no such node), -ENOMEM (nothing has changed). */
int net_set_node(struct net *n, uint16_t node, bool up, int64_t now_ps);
/*
 * Links that are gone with a process that ran one of their ends ([n_links], all of the fabric's):
 * routes and the spanning tree lead around them. Their ends here are net_port_state's. 0; -ENOMEM:
 * the old routes stay.
 */
int net_cut_links(struct net *n, const bool *cut, int64_t now_ps);
/* A switch begins anew, without memory of what it aggregated; the caller has taken its links down.
 * 0, -EINVAL (not a switch that is here), -ENOMEM (it is as it was). */
int net_restart(struct net *n, uint16_t node, int64_t now_ps);
bool net_link_up(const struct net *n, unsigned link); /* as net_set_link left it */

/*
 * For a clock that is late all the time, where frames a second count and not when each of them
 * goes: frames that are due by `now` are started and handed on in bursts, up to ahead_ps before
 * their turn among those of other links, never before they are due. A link's own frames keep their
 * order, times and rate, but a frame may be at its next node up to ahead_ps before it would have
 * been, and a pause may find as much on its way. 0, as it is at first: none of this.
 */
void net_set_ahead(struct net *n, int64_t ahead_ps);
/* So long a host's own link may be down before its switch takes the host for lost, and ends the
 * groups that it is a member of; 0: not at all. It begins with NODE_LINK_DOWN_GRACE_PS. */
void net_set_link_down_grace(struct net *n, int64_t ps);
/* For so long a process may hold up others of its host (nic.h). It begins with NIC_STALL_PS. */
void net_set_stall(struct net *n, int64_t ps);
/* The net was not advanced for some time before that, because its driver was late: processes are
 * not charged for it, and what has come meanwhile is looked at before timers run out. */
void net_excuse(struct net *n, int64_t until_ps);
/* The PFC watchdog of every switch here waits so long; 0: off. It begins with what the fabric says.
 */
void net_set_watchdog(struct net *n, int64_t after_ps);

/* Frames seen on a link's direction (link * 2 + dir) as they arrive; for capture, traces and tests.
 * NULL ends it. */
typedef void (*net_tap_fn)(void *ctx, unsigned dirlink, struct rte_mbuf *m, int64_t now_ps);
void net_tap(struct net *n, net_tap_fn fn, void *ctx);

struct an *net_an(struct net *n, uint16_t node); /* NULL: not here, or does not reduce */

#endif
