/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Aggregation protocols at a rank: for each one a UD queue pair, the host of its rank half
 * (protocols/host/rank_host.h), and its membership at the switches (protocol_join.c).
 */
#ifndef TRIB_HOST_COLL_TRANSPORT_PROTOCOL_H
#define TRIB_HOST_COLL_TRANSPORT_PROTOCOL_H

#include "host/coll/alg/sched.h"
#include "host/coll/transport/agg.h"
#include "protocols/host/path.h"
#include "protocols/host/rank_host.h"

struct comm;
struct coll_req;

#define PROTOCOL_WINDOW 1024u /* receive buffers */
#define PROTOCOL_SENDS  256u

/* Another rank, as this protocol sees it. */
struct protocol_peer {
    uint32_t qpn, ip;
    struct ibv_ah *ah;   /* made at the first packet */
    struct ibv_ah *leaf; /* of its leaf; only that of the leaf's lowest rank is used */
};

struct protocol {
    struct comm *c;
    unsigned index; /* among the communicator's */
    unsigned seat;
    bool stopped; /* it, or the communicator, has failed */
    const struct trib_protocol *p;
    int64_t key[TRIB_KEYS];
    struct proto_rank *half;
    uint32_t tag;
    unsigned lane; /* of the running operation, LANE_NONE */
    struct port *port;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint8_t *mem;   /* receive buffers, then send buffers */
    uint16_t *idle; /* [PROTOCOL_SENDS] send buffers, n_idle of them free */
    unsigned n_idle;
    struct protocol_peer *peer; /* [nranks] */
    uint64_t refused;           /* packets that are not of this job's ranks or switches */
    /* protocol_join.c */
    enum join_state state; /* NONE: without a switch half */
    uint16_t child;        /* index at the leaf */
    uint32_t xid;
    unsigned probes; /* in a row without an answer */
};

struct protocols {
    unsigned n;
    struct protocol p[PROTO_SEATS];
    const struct fab_tree *tree; /* NULL: none */
    struct fab_members members;
    uint16_t *member_of_rank, *leaf_of_rank, *switch_of; /* [nranks]; leaf: node, FAB_NONE */
};

/* Those of cfg.algos. 0, or -errno with a sentence in err (COMM_TEXT bytes). */
int protocols_create(struct comm *c, char *err);
/* qpn: [PROTO_SEATS] of this rank's queue pairs, 0: none. */
void protocols_qpns(const struct comm *c, rte_be32_t *qpn);
void protocols_set_peer(struct comm *c, unsigned rank, const rte_be32_t *qpn);
/* All peers are set: opens the rank halves, and sends the JOINs. */
int protocols_start(struct comm *c, char *err);
void protocols_stop(struct comm *c, unsigned parts); /* they have failed: nothing calls them */
void protocols_destroy(struct comm *c);
/* The job has failed; text as printf. The policy's next algorithm goes on, else the communicator
 * fails. */
void protocol_fail(struct protocol *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
struct protocol *protocol_of_lane(const struct comm *c, const struct lane *l); /* NULL: none */
unsigned protocol_run(struct comm *c, struct coll_req *r, unsigned lane);
void protocol_complete(struct comm *c, const struct ibv_wc *wc);
/* Runs due timers, and those who wait for send buffers. Returns how many. */
unsigned protocols_progress(struct comm *c);
/* For protocol_setup.c: of struct proto_rank_cfg; a receive buffer is free; buffers. */
bool protocol_send(void *ctx, int to, int target, const void *head, uint32_t head_bytes,
                   const void *data, uint32_t data_bytes);
int protocol_post_recv(struct comm *c, struct protocol *e, uint64_t i);
size_t protocol_memory(uint32_t mtu);
int64_t protocol_now(const struct comm *c);
/* Sends a control message. False: no send buffer is free. */
bool protocol_send_ctl(struct protocol *e, struct ibv_ah *to, const struct agg_ctl *m);
/* The address handle of a rank's leaf. */
struct ibv_ah *protocol_leaf(struct comm *c, struct protocol *e, unsigned rank);

/* ---- membership (protocol_join.c) ---- */
void protocols_join(struct comm *c);
/* A message of this rank's leaf. */
void protocol_control(struct comm *c, struct protocol *e, const struct agg_ctl *m);
void protocols_tick(struct comm *c);
void protocols_leave(struct comm *c, unsigned parts);
bool protocols_joined(const struct comm *c);
bool protocols_left(const struct comm *c);
/* Fails a protocol of which a switch has not answered the JOIN, as protocol_fail(). False: all have. */
bool protocols_give_up(struct comm *c);

#endif
