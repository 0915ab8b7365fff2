/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of a communicator; for host/coll only.
 *
 *   comm.c       life: create, connect, progress, fail, close
 *   blob.c       what ranks tell each other before they connect
 *   mem.c        registered memory (mem.h)
 *   gpudirect.c  a GPU's memory, as far as HCAs reach it
 *   op.c         the user's calls: starts operations
 *   agree.c      checks that the ranks run the same one
 *   stage.c      schedules for buffers in GPU memory (stage.h)
 *   exec.c       the operations in order (exec.h), each a schedule whose lanes are served by
 *     conn.c       LANE_SEND and LANE_RECV: a queue pair for each peer and channel (conn.h)
 *     agg.c        LANE_AGG: the queue pair to the aggregation node, one for each tree (agg.h)
 *     mm_plane.c   LANE_MM: multimem of the GPU node's NVSwitches (mm_plane.h)
 *                  (LANE_CPU is served by exec.c itself, and by gpu.c for buffers in GPU memory)
 *   ctl.c        datagrams: the other ranks' phases (ctl.h)
 *   seal.c       datagrams between ranks: authentication (seal.h)
 *   link.c       datagrams: how two ranks make a connection
 *   join.c       datagrams: JOIN, LEAVE, ABORT, PROBE
 *   quota.c      what the switches' quotas leave each tree of the job (quota.h)
 *   protocol.c   LANE_PROTOCOL: an aggregation protocol's packets; protocol_setup.c, protocol_join.c
 *   fit.c        the ranks' agreement on what switches granted; granted.c: what callers see of it
 *   policy.c     which algorithm comes after one that has failed
 *   failover.c   the ranks agree not to use a failed part of the in-network path
 *   rejoin.c     trees that are joined again
 *   op_recovery.c  recovery of operations after that
 */
#ifndef TRIB_HOST_COLL_COMM_H
#define TRIB_HOST_COLL_COMM_H

#include "base/assert.h"
#include "base/cacheline.h"
#include "base/events.h"
#include "collective/sched.h"
#include "collective/topo.h"
#include "host/coll/coll.h"
#include "host/coll/comm_hooks.h"
#include "host/coll/comm_watch.h"
#include "host/coll/exec.h"
#include "host/coll/mem.h"
#include "host/coll/recovery/failover.h"
#include "host/coll/recovery/policy.h"
#include "host/coll/transport/agg.h"
#include "host/coll/transport/ctl.h"
#include "host/coll/transport/edge.h"
#include "host/coll/transport/mm_plane.h"
#include "host/coll/transport/protocol.h"
#include "host/coll/transport/transport_events.h"

/* Completions of datagrams in the CQ; transports reserve room for their own. */
#define COMM_CQE   1024u
#define RETRY_NS   200000000LL   /* of a datagram that was not answered */
#define GIVE_UP_NS 15000000000LL /* waiting for an answer that everything depends on */
/* Waiting for a rank that may be busy for long, and whose HCA cannot answer in its place. */
#define PEER_NS  60000000000LL
#define CLOSE_NS 2000000000LL /* waiting for an answer when closing */

/* wr_id of a completion: its kind in the top 8 bits, the index of its connection, tree or port in
 * the next 20, a count in the rest. */
enum wr_kind {
    WR_CONN_RECV = 1,
    WR_CONN_SEND,
    WR_AGG_RECV,
    WR_AGG_SEND,
    WR_CTL_RECV,
    WR_CTL_SEND,
    WR_MM,
    WR_PROTOCOL_RECV,
    WR_PROTOCOL_SEND
};
#define WR_COUNT_BITS  36
#define WR_INDEX_MAX   ((1u << 20) - 1)
#define WR_ID(k, i, n) ((uint64_t)(k) << 56 | (uint64_t)(i) << WR_COUNT_BITS | WR_COUNT(n))
#define WR_KIND(id)    ((enum wr_kind)((id) >> 56))
#define WR_INDEX(id)   ((unsigned)((id) >> WR_COUNT_BITS) & WR_INDEX_MAX)
#define WR_COUNT(id)   ((id) & ((1ULL << WR_COUNT_BITS) - 1))

/* Changes of state that a communicator records (comm.c has their texts). */
enum comm_event {
    COMM_EV_STATE,       /* enum comm_state; enum phase that peers are told */
    COMM_EV_CONN_MADE,   /* peer; channel */
    COMM_EV_CONN_LOST,   /* peer; enum ibv_wc_status */
    COMM_EV_CONN_RENEW,  /* generation; connections that are given up */
    COMM_EV_OP_START,    /* operation; enum coll_algo */
    COMM_EV_OP_FINISH,   /* operation; enum coll_algo */
    COMM_EV_JOIN,        /* tree; enum join_state */
    COMM_EV_GRANT,       /* tree; slots of the window */
    COMM_EV_REFUSE,      /* tree; enum agg_status */
    COMM_EV_ABORT,       /* tree; enum agg_status */
    COMM_EV_FAIL_BEGIN,  /* parts; round */
    COMM_EV_FAIL_AGREED, /* parts; operation that is cut */
    COMM_EV_FAIL_DONE,   /* parts that are stopped; round */
    COMM_EV_FIT,         /* trees used; least window */
    COMM_EV_WINDOW,      /* tree; slots that its switch takes now */
    COMM_EV_PROTOCOL,    /* seat; enum join_state */
    COMM_EVENTS
};

/* ---- the communicator (comm.c) ---- */
struct comm {
    /* Read in every turn. */
    enum comm_state state;
    bool closing;
    unsigned n_ports, n_conns;
    unsigned generation;     /* of connections: one more with each operation that starts over */
    const uint64_t *waiting; /* cfg.hooks' */
    const struct comm_watch *watch; /* cfg.watch; NULL: none */
    const struct transport_events *tell;
    struct conn **conn;
    struct exec exec;

    struct comm_cfg cfg;     /* host_of_rank and ctx are our copies */
    bool usual_policy;       /* the user has given none */
    struct comm_hooks hooks; /* copied too: cfg.hooks is NULL */
    char error[COMM_TEXT];
    struct op_id known[OPS_KNOWN];
    struct topo topo;
    struct port port[COMM_PORTS];
    uint32_t mtu;
    struct region *regions;        /* users' buffers, the newest first */
    enum gpudirect gpudirect;      /* of cfg.device's memory */
    char gpudirect_why[128];       /* STAGED */
    struct workspace *work[WORKS]; /* the newest and largest first */
    int64_t now_ns;                /* last tick */
    int64_t repeated_ns;           /* last repetition of datagrams */
    int64_t since_ns;              /* when connecting or closing began; -1: no tick since */
    struct ctl ctl;
    unsigned conn_room;
    struct agg_group group[2]; /* GROUP_ALL, GROUP_RAIL */
    struct agg agg[COLL_TREES + 1];
    unsigned n_aggs;
    unsigned trees_shown; /* trees that topo.sched has, by agg_bit() */
    struct plane plane[SCHED_MAX_CHANS];
    unsigned n_planes;
    struct protocols *protocols; /* NULL: none */
    struct failover failover;
    struct agg_fit fit;
    struct events events;
};

static inline bool comm_has(const struct comm *c, enum coll_algo a)
{
    return c->cfg.algos >> a & 1;
}

/* Payload is carried as lengths: nothing may read or write it. */
static inline bool comm_unbacked(const struct comm *c)
{
    return c->hooks.unback != NULL;
}

static inline void comm_event(struct comm *c, enum comm_event kind, uint32_t a, uint32_t b)
{
    events_add(&c->events, c->now_ns * 1000, (uint16_t)kind, a, b);
}

#define COMM_RAIL_ALGOS (1u << ALGO_HIER_SHARP | 1u << ALGO_NVLS_SHARP)
#define COMM_MM_ALGOS   (1u << ALGO_NVLS | 1u << ALGO_NVLS_SHARP)

static inline enum phase comm_phase(const struct comm *c)
{
    return c->state == COMM_FAILED ? PHASE_FAILED : c->closing ? PHASE_CLOSING : PHASE_READY;
}

/* Fails the communicator; text as printf. Later failures change nothing. Stops every queue pair,
 * ends every operation, and tells the linked ranks. */
void comm_fail(struct comm *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A prerequisite of READY is complete. */
void comm_check_ready(struct comm *c);
const char *comm_host(const struct comm *c, unsigned rank);
/* Out of band (blob.c): the first writes this rank's COMM_BLOB bytes, the second reads another
 * rank's. -EPROTO: its configuration differs; err names the rank. */
void blob_write(const struct comm *c, void *out);
int blob_take(struct comm *c, unsigned rank, const void *blob, char *err);
/* A first PSN: the same in every run, and different for nearly all connections. */
uint32_t comm_psn(const struct comm *c, unsigned peer, unsigned which);

#endif
