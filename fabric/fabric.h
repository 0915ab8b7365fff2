/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fabric: nodes, ports, links, addresses, routes and aggregation trees, computed from one
 * libconfig file before anything starts. Plain data: immutable after fabric_load(), so any number
 * of processes and threads read it.
 */
#ifndef TRIB_FABRIC_FABRIC_H
#define TRIB_FABRIC_FABRIC_H

#include "fabric/limits.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define FAB_NAME        32
#define FAB_MAX_ERRORS  64
#define FAB_MAX_MEMBERS 4096 /* limit: members of an aggregation group */
enum fab_kind { FAB_HOST, FAB_SWITCH };
enum fab_role {
    FAB_ROLE_HOST,
    FAB_ROLE_LEAF,
    FAB_ROLE_SPINE,
    FAB_ROLE_CORE,
    FAB_ROLE_NVSWITCH,
    FAB_ROLE_SWITCH
};
enum fab_ecmp { FAB_ECMP_HASH, FAB_ECMP_BALANCED };

/* A switch that cuts through begins to forward a frame after these first bytes: the headers up to the
 * address, and what else a switch reads. No frame is shorter. */
#define FAB_CUT_BYTES 64

/* How results of fp16, bf16 and 8-bit floats are rounded (aggregation/narrow.h). */
enum fab_rounding {
    FAB_ROUND_NEAREST,
    FAB_ROUND_ZERO,
    FAB_ROUND_UP,
    FAB_ROUND_DOWN,
    FAB_ROUND_STOCHASTIC
};

/* An aggregation protocol that a conf names (`reduce = { protocol = ...; }`), and the other integers of the
 * group, which may be its keys (protocols/host/conf.h). */
#define FAB_PROTOCOL_KEYS 16u
struct fab_protocol {
    char file[256], name[256]; /* conf; protocol, or path of a shared object */
    int line;
    int seat; /* the protocol's seat in this process once proto_setup() has found it; -1 before */
    unsigned n_keys;
    struct fab_protocol_key {
        char name[32];
        int64_t value;
        int line;
        bool known; /* it is also a key of `reduce` */
    } key[FAB_PROTOCOL_KEYS];
};

/* Reduction capabilities of a switch (libconfig group `reduce`); all zero if it has none. */
struct fab_reduce {
    bool on;
    bool arrival;        /* reduce inputs in order of arrival, not in the order of children */
    uint8_t rounding;    /* enum fab_rounding */
    uint32_t seed;       /* of stochastic rounding */
    uint32_t max_groups; /* quota: groups at this AN */
    uint32_t max_slots;  /* slots of all groups together */
    uint32_t window;     /* largest grant of slots to a group */
    /* Share that one host may hold alone, in thousandths of groups, slots and buffers. It may always hold
     * FAB_HOST_GROUPS groups, with a window each. */
    uint16_t host_permille;
    int64_t join_timeout_ps; /* time after which a group ends whose members have not all joined */
    uint32_t memory;         /* bytes that each protocol may use for its slots */
    struct fab_protocol *protocol; /* NULL: none is named */
};
#define FAB_HOST_GROUPS 8u

struct fab_port {
    fab_id link; /* index into links[], FAB_NONE: unconnected or external */
    fab_id peer_node, peer_port;
    fab_id ordinal; /* switches: ordinal of a host among the host ports of this switch */
    uint64_t rate_bps;
    int64_t latency_ps; /* from sending the last bit here to its arrival: latency of the link and of
                           the sending switch */
    bool flood; /* on the spanning tree: flooded frames leave by these ports only (and by ports to
                   hosts and to the outside) */
    char external[128]; /* a port to the outside: "vhost:PATH", DPDK device arguments (a vdev), or a
                           PCI address; else empty. With a link it leads to a host outside the
                           fabric, without one to any device */
};

struct fab_node {
    char name[FAB_NAME];
    enum fab_kind kind;
    enum fab_role role;
    bool outside;      /* a host outside the fabric (a guest, a machine): its NIC is not emulated,
                            its links end in ports to the outside */
    fab_id host_index; /* hosts only: 0.. in order of appearance; its bit in member bitmaps */
    uint16_t tier;     /* 0 host, 1 leaf, 2 spine, 3 core; a plain "switch": its distance from the
                            nearest host */
    fab_id ordinal;    /* switch: ordinal among the switches; host: of its first port, ordinal
                            among the hosts there */
    fab_id domain;     /* hosts and NVSwitches: number of the GPU node, FAB_NONE: none */
    fab_id network;    /* switches: number of the network; switches joined by links have the
                            same */
    fab_id network_index; /* switches: index within the network */
    bool multimem;        /* NVSwitches: READ and WRITE of multicast regions */
    bool cut_through; /* switches: forwards a frame from its header on; false: stores it whole */
    fab_id n_hosts;   /* switches: hosts linked to it */
    fab_id dest;    /* index in dests[] of port 0, the other ports follow; a switch's own address */
    fab_id proc;    /* index of the trib-switch process that runs it (procs[]) */
    fab_id machine; /* index in machines[]; FAB_NONE: there are none */
    fab_id n_ports;
    struct fab_port *ports; /* a host has one port per HCA port; ports[p] of a host carries address
                               ip + mac of that HCA port */
    uint32_t ip; /* host order; a host's port p has ip_of_port[p], a switch has one address (its
                    AN's and its ARP answer) */
    uint32_t *ip_of_port; /* hosts: n_ports entries; switches: NULL */
    struct fab_reduce reduce;
    /* Switches: next hops to each switch of the same network, by its index there; NULL: none, or
     * there are no tables (fabric_is_large()). fabric_hops() reads them. */
    const fab_id **routes;
};

/* A destination of frames: a host's port or a switch's own address. */
struct fab_dest {
    uint32_t ip;
    fab_id node, port;
};

struct fab_link {
    char name[2 * FAB_NAME + 16]; /* "leaf0:4-spine0:0", as in `trib capture`; short names such as
                                     "h0-leaf0" work where unique */
    fab_id a, a_port, b, b_port;
    uint16_t lanes; /* cables that it stands for: 5 of 25 GB/s are one link of 125 GB/s */
    uint64_t rate_bps;
    int64_t latency_ps;
    uint64_t buffer_bytes; /* of each direction's egress queue, per class */
    uint32_t buffer_pkts;
    /* ECN: a queue above ecn_bytes (0: off) marks frames with a probability that grows to ecn_prob
     * at ecn_max_bytes; above that it marks every frame. */
    uint64_t ecn_bytes, ecn_max_bytes;
    double ecn_prob;
    bool pfc;
    double loss, dup, reorder, corrupt; /* fault injection, probabilities; both directions */
    int64_t jitter_ps;
};

/* A protocol of short messages; rate_bps 0: there is none. */
struct fab_short {
    int64_t step_ps;
    uint64_t rate_bps;
};
/* Costs of plain messages over a path, and of operations that use it. */
struct fab_path_costs {
    int64_t launch_ps; /* of an operation, before its first step */
    int64_t step_ps;   /* of a message, in addition to fab_costs.gpu_ps */
    struct fab_short ll, ll128;
};
/*
 * Costs of endpoints and switches (libconfig group `costs`); all zero: ideal, as the bandwidth
 * terms of formulas assume.
 */
struct fab_costs {
    int64_t gpu_ps;    /* from a message's arrival until the program notices it */
    int64_t hca_ps;    /* of an HCA port, for each message that it starts to send */
    int64_t switch_ps; /* of a switch for each frame, between its arrival and its departure */
    struct fab_path_costs nvlink, network;
    int64_t mm_launch_ps;
    /* Link time of multimem's data, in units of FAB_STRETCH_ONE times that of other frames; 0: the same. */
    uint32_t mm_load, mm_store;
    int64_t agg_ps;           /* time in which an aggregation node reduces a piece of agg_bytes */
    uint32_t agg_bytes;       /* not 0 if agg_ps is not */
    uint64_t agg_until_bytes; /* the longest vector for which it was measured; 0: all */
};
/* Time to reduce the elements of a packet; a packet without elements takes one piece. */
static inline int64_t fab_aggregate_ps(const struct fab_costs *c, uint32_t bytes)
{
    return c->agg_ps ? c->agg_ps * (bytes ? (bytes - 1) / c->agg_bytes + 1 : 1) : 0;
}
#define FAB_STRETCH_ONE (1u << 20)
static inline int64_t fab_stretch(int64_t ps, uint32_t stretch)
{
    return stretch ? (int64_t)((uint64_t)ps * stretch / FAB_STRETCH_ONE) : ps;
}

/* What the program at a port pays to notice a message (fabric/notice.c); all zero: nothing. */
struct fab_notice {
    int64_t gpu_ps, step_ps;
    struct fab_short ll, ll128;
    uint64_t rate_bps, path_bps; /* of the port, and of all of the host's ports on its path */
};

/* The reliable transport of hosts and aggregation nodes (libconfig group `transport`). */
#define FAB_MIN_WINDOW 256
#define FAB_MAX_WINDOW (1 << 20) /* limit: packets of a transport's window */
struct fab_transport {
    uint32_t window; /* packets that a queue pair may have unacknowledged (fabric/transport.c) */
    uint8_t ack_timeout; /* 4.096 us * 2^n; 0: the connecting side's default */
    uint8_t retry_count;
    bool early_slots;      /* frees a queue's slot when its request ends, not when it is polled */
    int64_t round_trip_ps; /* the longest in an idle fabric, with frames of full MTU */
    int64_t
        stored_round_trip_ps; /* the same if every switch stored frames, as aggregation nodes do */
};

/* One aggregation tree over all hosts that can reach its root. In order: the first trees of all roots,
 * those of the scale-out network before those of GPU nodes; then the second trees of roots that some host
 * reaches by several ports, and so on. */
#define FAB_MAX_TREES 1024 /* limits trees beyond the first of each root */
struct fab_tree {
    fab_id id;
    fab_id root;
    fab_id nth; /* nth: number of the root; first: its number among roots of the same hosts */
    fab_id first;
    fab_id turn;    /* number among the trees of its root */
    fab_id domain;  /* the GPU node that contains the tree; FAB_NONE: a tree of the scale-out
                         network */
    fab_id depth;   /* levels of ANs: 1 for a single switch */
    fab_id *parent; /* [n_nodes] next AN towards the root; for a host the AN at which its ranks
                         join; FAB_NONE at the root and outside the tree. It need not be a
                         neighbour: switches that do not reduce are skipped. */
    fab_id *port;   /* [n_hosts] port by which the host joins; FAB_NONE: it is not on the tree */
};

/* Who may run programs as hosts of a service's fabric (libconfig list `access`). */
#define FAB_MAX_ACCESS 1024
struct fab_access {
    char name[128]; /* of a user or a group */
    bool group, all;
    fab_id n_hosts, *hosts; /* node indices; unused if `all` */
};

/* A machine that runs nodes (libconfig list `machines`), and where its trunk receives. */
#define FAB_MAX_MACHINES    64      /* limit: machines of a fabric */
#define FAB_TRUNK           "trunk" /* the name of each machine's process that joins it to the others */
#define FAB_UDP             "udp"
#define FAB_MACHINE_DEVICES 4
struct fab_machine {
    char name[FAB_NAME];
    uint32_t ip; /* host order */
    uint16_t port;
    uint16_t n_devices;
    char device[FAB_MACHINE_DEVICES]
               [128]; /* `ports`: DPDK devices, the first of which that opens carries its
                                              frames to the others. UDP does without any, or if
                                              FAB_UDP is the last one and none opens */
};

/* A trib-switch process and the nodes it runs. */
struct fab_proc {
    char name[FAB_NAME];
    fab_id machine; /* that of its nodes */
    fab_id n_nodes;
    fab_id *nodes;
};

/*
 * DCQCN at the hosts' HCAs. Names and presets are those of ConnectX adapters (roce_rp and roce_np
 * of mlx5).
 */
struct fab_dcqcn {
    bool on;
    int64_t min_time_between_cnps_ps;      /* notification point, per queue pair */
    int64_t rate_reduce_monitor_period_ps; /* interval with at most one rate cut */
    int64_t dce_tcp_rtt_ps;                /* interval between updates of alpha */
    uint32_t dce_tcp_g;                    /* 1024ths of alpha that an update keeps */
    int64_t rpg_time_reset_ps;             /* increases by time, and by bytes sent */
    uint64_t rpg_byte_reset;
    uint32_t rpg_threshold; /* increases of fast recovery */
    uint64_t rpg_ai_bps, rpg_hai_bps;
};

struct fabric {
    char path[256];      /* path of the conf file */
    char name[FAB_NAME]; /* `name` in the file, default the file's stem */
    fab_id n_nodes, n_hosts, n_switches, n_links, n_dests, n_trees, n_procs;
    fab_id n_domains, n_networks;
    struct fab_node *nodes;
    fab_id *hosts;         /* [n_hosts] node index by host_index */
    fab_id *switches;      /* [n_switches] node index */
    fab_id *by_network;    /* [n_switches] switches, network by network, lowest tier first */
    fab_id *networks;      /* [n_networks + 1] where each begins in by_network */
    struct routes *routes; /* of a large fabric: fabric/routing/routes.c */
    struct fab_link *links;
    struct fab_dest *dests;
    struct fab_tree *trees;
    struct tree_walks *walks; /* of a large fabric: fabric/tree.c */
    struct fab_proc *procs;
    uint16_t n_machines; /* 0: one, without a name */
    struct fab_machine *machines;
    uint16_t n_access;
    struct fab_access *access;
    char trunk_key[128]; /* shared secret of the machines' trunks */
    uint32_t mtu;        /* path MTU, 256..4096 */
    uint32_t dilation;   /* 0: auto */
    enum fab_ecmp ecmp;
    struct fab_dcqcn dcqcn;
    int64_t pfc_watchdog_ps; /* a paused queue without progress for this long is flushed; 0:
                                never */
    struct fab_costs costs;
    struct fab_transport transport;
    uint16_t slots_per_host;     /* processes that can share a host's NIC, default 64, at most
                                FAB_MAX_SLOTS */
    uint16_t multicast_per_host; /* multicast groups that a host's port may be in, default 128 */
    void *arena;                 /* owns all memory above */
};

/* Whether it is larger than a fabric that can run: then it has no tables of routes and trees, and next hops
 * and parents are computed on demand. */
static inline bool fabric_is_large(const struct fabric *f)
{
#ifdef FAB_WIDE
    return f->n_hosts > FAB_RUN_HOSTS || f->n_nodes > FAB_RUN_NODES;
#else
    (void)f;
    return false;
#endif
}

/* A mistake in a file: where it is, what was found, what is expected. */
struct fab_error {
    char file[256];
    int line;
    char text[384];
};
struct fab_errors {
    unsigned n, total;
    struct fab_error e[FAB_MAX_ERRORS];
};

/* Loads and checks a file and computes the fabric. Refuses @include, so that a text from anywhere reads no
 * other file. Returns NULL with errs->n >= 1 on failure: all mistakes by line, not only the first. errs may
 * be NULL. */
struct fabric *fabric_load(const char *path, struct fab_errors *errs);
struct fabric *fabric_load_string(const char *text, const char *path, struct fab_errors *errs);
void fabric_free(struct fabric *f);
void fab_errors_print(const struct fab_errors *errs,
                      FILE *out); /* prints "file:line: found ..., expected ...", a line for each
                                     mistake */

const struct fab_node *fabric_node(const struct fabric *f, const char *name); /* NULL: none */
fab_id fabric_node_index(const struct fabric *f, const struct fab_node *n);
int fabric_dest_of_ip(const struct fabric *f, uint32_t ip); /* index into dests[] or -ENOENT */
int fabric_link_by_name(const struct fabric *f,
                        const char *name); /* ends in either order, with or without ports; index or
                                              -ENOENT, -EINVAL when ambiguous */

/* For messages about an unknown name: the most similar node, or host; NULL: none. */
const char *fabric_near_node(const struct fabric *f, const char *name, bool host);
/* Write a hint into buf, and return it. For a link: "; did you mean h0-leaf0?" or "". For a host the same,
 * or the list of hosts: ", which has 8: h0 to h7". */
const char *fabric_link_hint(const struct fabric *f, const char *name, char *buf, size_t size);
const char *fabric_host_hint(const struct fabric *f, const char *name, char *buf, size_t size);
#define FABRIC_HINT 160 /* bytes of such a text */

/*
 * Forwarding: the equal-cost ports towards dests[dest], in ascending order. For a host: all of its
 * ports that reach it; a frame leaves by the port of its source address. Returns the number of
 * ports, writes at most max. 0: no route, or the node's own address.
 */
unsigned fabric_hops(const struct fabric *f, fab_id node, unsigned dest, fab_id *port,
                     unsigned max);

/*
 * ECMP. The port by which `node` sends towards destination `dest` for a flow. hash: the caller's
 * hash of the flow (addresses and UDP source port). balanced: determined by (source host,
 * destination host), without collisions where the topology allows it (see ecmp.c). FAB_NONE: no
 * route.
 */
fab_id fabric_next_port(const struct fabric *f, fab_id node, int dest, uint32_t flow_hash,
                        uint32_t src_ip);

/*
 * A group on a tree. Members are bits: member id = host_index * ranks_per_host + local rank.
 * The subtree that the group uses starts at its top: the lowest AN that has all members below it.
 */
struct fab_members {
    uint16_t ranks_per_host;
    uint64_t bits[FAB_MAX_MEMBERS / 64];
};
void fab_members_add(struct fab_members *m, unsigned id);
bool fab_members_has(const struct fab_members *m, unsigned id);
unsigned fab_members_count(const struct fab_members *m);

/* A child of an AN in a group: one member of a host, or another AN. Sorted by the lowest member id
 * below, which is the order of reduction. */
struct fab_child {
    bool is_member;
    fab_id node;
    fab_id member; /* FAB_NONE: an AN */
    uint16_t first_member;
};
fab_id fab_group_top(const struct fabric *f, const struct fab_tree *t,
                     const struct fab_members *m); /* FAB_NONE: no AN reaches all members */
/* Children of AN `node`; returns their number, writes at most max. 0: node is not in the group. */
unsigned fab_group_children(const struct fabric *f, const struct fab_tree *t, fab_id node,
                            const struct fab_members *m, struct fab_child *out, unsigned max);
/* The AN at which member id joins. */
fab_id fab_group_leaf(const struct fabric *f, const struct fab_tree *t, unsigned member,
                      const struct fab_members *m);

/* A path through the fabric, for the cost model: links (index * 2 + direction, direction 0 = a to
 * b) from host to dest as balanced ECMP chooses them, even if the fabric uses hashing (no flow is
 * known here). Either end may be a switch. Returns their number; 0: no route, same node, or more
 * than max. */
unsigned fabric_path(const struct fabric *f, fab_id src_node, fab_id dst_node, uint32_t *dirlinks,
                     unsigned max);

/* Latency of one direction of a link: that of the sending port. */
static inline int64_t fabric_latency(const struct fabric *f, uint32_t dirlink)
{
    const struct fab_link *l = &f->links[dirlink / 2];

    return dirlink & 1 ? f->nodes[l->b].ports[l->b_port].latency_ps
                       : f->nodes[l->a].ports[l->a_port].latency_ps;
}

/* The same from port to port: the path of a frame between the addresses of two HCA ports; for a switch the
 * port is ignored. Returns 0 if the ports do not reach each other. */
unsigned fabric_path_ports(const struct fabric *f, fab_id src_node, fab_id src_port,
                           fab_id dst_node, fab_id dst_port, uint32_t *dirlinks, unsigned max);

/* parent[] and port[] of a tree. In a large fabric these are NULL in fab_tree and computed here; then they
 * are valid until the call for another tree. */
const fab_id *fabric_tree_parents(const struct fabric *f, const struct fab_tree *t);
const fab_id *fabric_tree_ports(const struct fabric *f, const struct fab_tree *t);

/* The port by which a host joins the aggregation node of its ranks on this tree (parent[]); its JOIN is sent
 * from this port's address. FAB_NONE: the host is not on the tree. */
fab_id fabric_tree_port(const struct fabric *f, const struct fab_tree *t, unsigned host_index);

/* ---- GPUs: hosts with a port per NVSwitch plane and one per NIC ---- */

/* The GPU node that a host belongs to: hosts that share an NVSwitch. Numbered by their first host.
 * FAB_NONE: none. */
fab_id fabric_domain(const struct fabric *f, unsigned host_index);
/* Whether a host's port is in its GPU node's NVLink network; otherwise it is in the scale-out network. */
bool fabric_port_is_nvlink(const struct fabric *f, const struct fab_node *host, unsigned port);
/* Costs of messages that arrive at a host's port. */
struct fab_notice fabric_notice(const struct fabric *f, const struct fab_node *host, unsigned port);
/* When a message of len bytes that arrives now is noticed. is_long: its sender uses no short protocol;
 * otherwise it has chosen the fastest one. *free_ps: until when short protocols are busy with the port's
 * messages; 0 at first. */
int64_t fab_noticed_ps(const struct fab_notice *n, uint64_t len, bool is_long, int64_t now_ps,
                       int64_t *free_ps);
/* Whether there are short protocols, and none of them is fastest for len bytes over all ports of
 * the path. */
bool fab_notice_is_long(const struct fab_notice *n, uint64_t len);
int64_t fabric_longest_notice_ps(const struct fabric *f); /* of any message at any port */
/* NVSwitches of a GPU node (node indices), in order: its planes. */
unsigned fabric_domain_planes(const struct fabric *f, fab_id domain, fab_id *node, unsigned max);

/*
 * Channels between hosts a and b, which together give the full rate. A cable between the two, if there is
 * one; else, within a GPU node, its planes in order; else the NICs: the fastest of one with the fastest of
 * the other, of equally fast ones the first with the first (a rail), the second with the second. A host
 * reaches itself by its port 0. Returns their number, writes at most max; 0: no path.
 */
struct fab_channel {
    fab_id port_a, port_b;
    uint64_t rate_bps; /* of the slower end */
};
unsigned fabric_channels(const struct fabric *f, unsigned host_a, unsigned host_b,
                         struct fab_channel *ch, unsigned max);

/*
 * Levels: networks that join members to groups, from a GPU node up. n_groups counts all groups; the other
 * fields describe the first one. A group of the leaf level is the leaves that GPU nodes share.
 */
struct fab_level {
    enum fab_role role; /* of its switches; FAB_ROLE_HOST: none, hosts are linked to each other */
    unsigned tier;      /* of its switches, 0: NVSwitches or none */
    unsigned groups, switches, cables; /* cables: from the level below */
    unsigned hosts, members; /* of a group; members are GPUs, then groups of the level below */
    uint64_t member_bps;     /* bandwidth of one member's links to the group, each direction */
    uint64_t total_bps;      /* of all members */
    uint64_t bisection_bps;  /* between halves of its hosts, both directions together */
    /* The first island: hosts that the levels below join without links of GPU nodes, such as the GPUs of a
     * rail. It has island_local GPUs of each node, at a distance of island_stride. */
    unsigned island_hosts, island_local, island_stride;
    uint64_t island_bps; /* bandwidth of its links to this level, each direction */
};
#define FAB_MAX_LEVELS 8
/* For reports: ends the program if there is no memory (base/shortage/enough.h), like fabric_bisection(). */
unsigned fabric_levels(const struct fabric *f, struct fab_level *lv, unsigned max);
/* Bisection bandwidth of the hosts, bits per second: the most that the first half can send to the
 * other half, over the planes of GPU nodes or over all other links. */
uint64_t fabric_bisection(const struct fabric *f, const fab_id *host_index, unsigned n,
                          bool planes);
const char *fab_role_name(enum fab_role role);

/* Prints the output of `trib plan`. For more than 64 addresses it sums up identical nodes, links
 * and trees, unless `all` is set. */
void fabric_plan(const struct fabric *f, bool all, FILE *out);

#endif
