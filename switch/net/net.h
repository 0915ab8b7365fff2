/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net: the nodes that one process runs, and the links between them, in order of time. Both clocks
 * share this event queue: virtual time jumps from net_next() to net_next(); real time calls
 * net_advance(fabric now) when its clock says so. Every event up to `now` happens at its own due
 * time, in order (time, then link index), so a late call does not shift times within a process (but
 * see net_set_ahead).
 */
#ifndef TRIB_SWITCH_NET_NET_H
#define TRIB_SWITCH_NET_NET_H

#include "fabric/fabric.h"
#include "fabric/link_terms.h"
#include "switch/node.h"

struct net;

/* Part mbufs in real time: two for each result in a queue; further results are copied. */
#define NET_PARTS 8191u

struct net_cfg {
    const struct fabric *fab;
    const bool *mine; /* [fab->n_nodes] nodes that this process runs; NULL: all */
    struct rte_mempool *pool;
    struct rte_mempool *parts; /* for frames that aggregation nodes send by reference (rnic_cfg) */
    uint64_t seed;             /* seed of every fault generator */
    /* Takes ownership of frames whose next node is not here (in another process, or outside). NULL
     * in virtual time. */
    void (*deliver)(void *ctx, uint16_t node, uint16_t port, struct rte_mbuf **m, uint16_t n,
                    int64_t due_ps);
    /* Called with the due time of each hand-off (real time: its lateness is now minus that); may be NULL. */
    void (*late)(void *ctx, int64_t due_ps, unsigned n);
    /* Called when the PFC watchdog finds the lossless queue of a switch's port stuck (it then drops that
     * queue's frames), or restores it; may be NULL. */
    void (*stuck)(void *ctx, uint16_t node, uint16_t port, bool stuck);
    /* Time within the last window_ps in which some process on the path to a queue pair did not run
     * (rnic_ops.lateness); NULL: all processes always run. */
    int64_t (*lateness_on_path)(void *ctx, uint32_t ip, uint32_t qpn, int64_t window_ps);
    void *ctx;
    int64_t lag_ps;    /* real time: bound on the lateness of frames and pauses, for which PFC keeps
                       headroom; 0 in virtual time */
    uint32_t an_mbufs; /* mbufs that each aggregation node may grant; 0: three quarters of the pool,
                          divided among those here */
};

int net_create(struct net **n, const struct net_cfg *cfg);
void net_destroy(struct net *n);
/* Runs every event due at or before now_ps; returns the number of frames moved. Must not be called
 * from a callback. */
unsigned net_advance(struct net *n, int64_t now_ps);
/* Time of the next event; PS_NEVER: nothing is pending. */
int64_t net_next(struct net *n);
uint64_t net_events(const struct net *n); /* events run so far */
int64_t net_now(const struct net *n);
/*
 * Virtual time in slices (net_logical_process.c). The lookahead is the least latency of the net's links:
 * an event at one node affects others at least that much later. So nodes may run apart: each runs many of
 * its events in a row, in the order of net_advance(), while its state is in the caches. The lookahead is
 * constant for the net's life; 0: this net's nodes never run apart (a link without rate or latency, ports
 * to the outside).
 */
int64_t net_lookahead(const struct net *n);
/* Starts or ends running apart. While apart, call only net_slice() and net_next(), which gives the
 * earliest begin of the next slice, and change no faults, rates or latencies. Returns 0, -ENOMEM, or
 * -EAGAIN: not possible now (no lookahead, links with faults or with less latency than it, or frames in
 * flight that a fault has reordered). */
int net_apart(struct net *n, bool apart);
/*
 * Divides the nodes into partitions, which run concurrently on the caller's threads; the nodes of a
 * partition run one after the other. Times and order are the same for any number of partitions. Call it
 * once, when all processes are attached and before net_apart(). shares: at least 1. Returns the number of
 * partitions (one if two hosts, or two switches of one phase, are neighbours), or -errno.
 */
#define NET_PARTITIONS 64u
int net_partition(struct net *n, unsigned shares);

/* Callbacks of a slice. */
struct net_turn {
    /* Calls fn(arg, k) for each partition k, concurrently or not, and returns when all calls have.
     * NULL: net_slice() calls them one after the other. */
    void (*together)(void *ctx, void (*fn)(void *arg, unsigned k), void *arg);
    /* Called after a host has run the events of an instant: runs its processes, whose net_kick()s count
     * for that instant. Runs on the thread of the host's partition, like `awaited`. */
    void (*served)(void *ctx, uint16_t node, int64_t now_ps);
    /* Whether the caller waits for the processes of this host; FAB_NONE: of any host. If not, the
     * slice ends after one lookahead. */
    bool (*awaited)(void *ctx, uint16_t node);
    void *ctx;
};
/* Runs every event of a slice, which lasts one or two lookaheads and begins no later than the next event.
 * Returns its end. turn: used during this call only. */
int64_t net_slice(struct net *n, int64_t from_ps, const struct net_turn *turn);
/* Takes ownership of frames that arrive from outside the process at a local node. */
void net_input(struct net *n, uint16_t node, uint16_t port, struct rte_mbuf **m, uint16_t cnt,
               int64_t now_ps);
struct node *net_node(struct net *n, uint16_t node); /* NULL: not in this process */
struct egress *net_egress(struct net *n, uint16_t node, uint16_t port);

/*
 * Attaches a process (its HCA, or the memif that leads to it) to port `port` of host `node`, in
 * slot 0..slots_per_host-1; to a switch (port and slot 0) in place of its aggregation node. Returns
 * 0, -EINVAL (no such slot here), -EBUSY, -ENOMEM.
 */
int net_attach(struct net *n, uint16_t node, uint16_t port, unsigned slot,
               const struct endpoint *ep);
/*
 * Registers the cache lines that the endpoint in the first slot of a host's port reads for every frame,
 * and adds those of the port itself: each net_slice() prefetches them before the host's turn. The caller
 * keeps the list, which outlives the net; its owner may change it at any time on the thread that runs the
 * host. A later list of a port replaces the one before. node: a local host.
 */
void net_list_cachelines(struct net *n, uint16_t node, uint16_t port, struct cacheline_list *lines);
/* Call it when the process has ended: its NIC sends PEER_DOWN to the aggregation nodes of its groups. */
void net_detach(struct net *n, uint16_t node, uint16_t port, unsigned slot, int64_t now_ps);
/* Call it when the endpoint has frames to send or a new deadline (its next() has changed). */
void net_kick(struct net *n, uint16_t node, uint16_t port, unsigned slot, int64_t now_ps);
/* Whether the switch's aggregation node holds nothing; true if it has none or is not local. */
bool net_an_idle(struct net *n, uint16_t node);
/* The other end of the port's link (another process, a device) has appeared or disappeared. */
void net_port_state(struct net *n, uint16_t node, uint16_t port, bool up, int64_t now_ps);
/*
 * Takes a link down, or up again: frames for it are dropped, and routes and the spanning tree avoid
 * it at once. Every process of a fabric must make this call, whether it runs an end of the link or
 * not. Returns 0, -EINVAL (no such link), -ENOMEM (nothing has changed).
 */
int net_set_link(struct net *n, unsigned link, bool up, int64_t now_ps);
/* The same for all links at one instant: computes routes once. 0, -ENOMEM (nothing has changed). */
int net_set_all_links(struct net *n, bool up, int64_t now_ps);
/* Sets rate and latency of both directions of a link from now on, if their senders are local. Call
 * link_terms_check() before. */
void net_set_link_terms(struct net *n, unsigned link, const struct link_terms *t, int64_t now_ps);
/* Takes all links of a node down or up at one instant, as when it loses power: no single link
 * counts as the cause. Returns 0, -EINVAL (no such node), -ENOMEM (nothing has changed). */
int net_set_node(struct net *n, uint16_t node, bool up, int64_t now_ps);
/*
 * Makes routes and the spanning tree avoid these links ([n_links], of the whole fabric), because the
 * process at an end has ended. For local ends call net_port_state() too. Returns 0, or -ENOMEM: the old
 * routes stay.
 */
int net_cut_links(struct net *n, const bool *cut, int64_t now_ps);
/* Restarts a switch: its aggregation node loses all groups. If its links are up, its peers notice that
 * it no longer knows their groups. Returns 0, -EINVAL (not a local switch), -ENOMEM (nothing has changed). */
int net_restart(struct net *n, uint16_t node, int64_t now_ps);
bool net_link_up(const struct net *n, unsigned link); /* the state set by net_set_link() */

/*
 * Lets frames run ahead, for a clock that is always late, if the frame rate counts and not the time of
 * each frame: frames due by `now` start and arrive in bursts, up to ahead_ps before their turn among
 * frames of other links, but never before they are due. Frames of one link keep their order, times and
 * rate; but a frame may reach its next node up to ahead_ps earlier, and a pause may find that many more
 * frames in flight. 0, the default: off.
 */
void net_set_ahead(struct net *n, int64_t ahead_ps);
/* Time that a host's own link may be down before its switch considers the host lost and ends its
 * groups; 0: no grace. Default: NODE_LINK_DOWN_GRACE_PS. */
void net_set_link_down_grace(struct net *n, int64_t ps);
/* Time for which a process may hold up others of its host (nic.h). Default: NIC_STALL_PS. */
void net_set_stall(struct net *n, int64_t ps);
/* Opens the process slots of a host's port that were shut (nic.h). */
void net_open_port(struct net *n, uint16_t node, uint16_t port, int64_t now_ps);
/* Call it when the driver did not advance the net for some time before until_ps: processes are not
 * charged for that time, and frames that arrived in it are handled before timers expire. */
void net_excuse(struct net *n, int64_t until_ps);
/* Timeout of the PFC watchdog of every switch here; 0: off. Default: the fabric's. */
void net_set_watchdog(struct net *n, int64_t after_ps);

/* Called with every frame that arrives from a link's direction (link * 2 + dir): for capture,
 * traces and tests. NULL: no tap. */
typedef void (*net_tap_fn)(void *ctx, unsigned dirlink, struct rte_mbuf *m, int64_t now_ps);
void net_tap(struct net *n, net_tap_fn fn, void *ctx);

struct an *net_an(struct net *n, uint16_t node); /* NULL: not here, or it does not reduce */
struct protocol_node;
struct protocol_node *net_protocols(struct net *n, uint16_t node); /* the same */

#endif
