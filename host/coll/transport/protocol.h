/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Aggregation protocols at a rank. A protocol has one instance for each tree of its job. An
 * instance has a UD queue pair and a rank half in its host (protocols/host/rank_host.h), and is a
 * member of a job of its own at the switches (protocol_join.c).
 */
#ifndef TRIB_HOST_COLL_TRANSPORT_PROTOCOL_H
#define TRIB_HOST_COLL_TRANSPORT_PROTOCOL_H

#include "collective/in_flight.h"
#include "collective/protocol_trees.h"
#include "collective/sched.h"
#include "host/coll/transport/agg.h"
#include "protocols/host/path.h"
#include "protocols/host/rank_host.h"

struct comm;
struct coll_req;

#define PROTOCOL_JOBS 32u /* instances of all protocols, at most */

/* Another rank, as this protocol sees it. */
struct protocol_peer {
    uint32_t qpn, ip;
    struct ibv_ah *ah;   /* made at the first packet */
    struct ibv_ah *leaf; /* of its leaf; only that of the leaf's lowest rank is used */
};

/* A tree of the job's, as the ranks are on it. */
struct protocol_tree {
    uint16_t id;                        /* FAB_NONE: none, ranks use the first ports */
    const struct fab_tree *tree;        /* NULL: none */
    uint16_t *leaf_of_rank, *switch_of; /* [nranks]; leaf: node, FAB_NONE */
};

struct protocol {
    struct comm *c;
    unsigned index; /* among the communicator's */
    unsigned seat;
    unsigned chan;                  /* of the trees of its protocol */
    const struct protocol_tree *at; /* its tree */
    bool stopped;                   /* it, or the communicator, has failed */
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
    /* protocol_fewer.c */
    uint64_t counted[TRIB_COUNTERS]; /* by the rank halves before this one */
};

struct protocols {
    unsigned n;
    struct protocol p[PROTOCOL_JOBS];
    unsigned n_trees;
    struct protocol_tree tree[COLL_TREES + 1]; /* and none */
    struct fab_members members;
    uint16_t *member_of_rank; /* [nranks] */
    struct protocol_trees of[PROTO_SEATS];
    /* Trees as bits by chan. lost: given up by each protocol; failing: seen to fail since the last
     * round, by any protocol that it is about. */
    uint8_t lost[PROTO_SEATS], failing;
    uint16_t attempt[PROTO_SEATS]; /* agg_ctl's: how often its job was made again */
};

/* Creates the protocols of cfg.algos. 0, or -errno with a sentence in err (COMM_TEXT bytes). */
int protocols_create(struct comm *c, char *err);
/* qpn: [PROTOCOL_JOBS] of this rank's queue pairs, 0: none. All ranks have them in the same order. */
void protocols_qpns(const struct comm *c, rte_be32_t *qpn);
void protocols_set_peer(struct comm *c, unsigned rank, const rte_be32_t *qpn);
/* Opens the rank halves and sends the JOINs, once all peers are set. */
int protocols_start(struct comm *c, char *err);
void protocols_stop(struct comm *c, unsigned parts); /* they have failed: nothing calls them */
void protocols_destroy(struct comm *c);
/* The instance has failed; text as printf. The job goes on by its other trees, else the policy's next
 * algorithm does, else the communicator fails. */
void protocol_fail(struct protocol *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Opens the rank half of an instance, and sets its tag. 0 or -errno with a sentence in err. */
int protocol_open_half(struct comm *c, struct protocol *e, char *err);
struct protocol *protocol_of_lane(const struct comm *c, const struct lane *l); /* NULL: none */
unsigned protocol_run(struct comm *c, struct coll_req *r, unsigned lane);
void protocol_complete(struct comm *c, const struct ibv_wc *wc);
/* Runs due timers, and rank halves that wait for send buffers. Returns how many. */
unsigned protocols_progress(struct comm *c);
/* For protocol_setup.c: proto_rank_cfg.send; posts receive buffer i; bytes of all buffers. */
bool protocol_send(void *ctx, int to, int target, const void *head, uint32_t head_bytes,
                   const void *data, uint32_t data_bytes);
int protocol_post_recv(struct comm *c, struct protocol *e, uint64_t i);
size_t protocol_memory(uint32_t mtu);
int64_t protocol_now(const struct comm *c);
/* Sends a control message. False: no send buffer is free. */
bool protocol_send_ctl(struct protocol *e, struct ibv_ah *to, const struct agg_ctl *m);
/* The address handle of a rank's leaf. */
struct ibv_ah *protocol_leaf(struct comm *c, struct protocol *e, unsigned rank);

/* ---- fewer trees (protocol_fewer.c) ---- */

/* Trees of the protocol in the seat that are in use, as bits. */
unsigned protocol_in_use(const struct comm *c, unsigned seat);
/* Of these parts, the protocols that go on without the trees that fail. */
unsigned protocols_go_on(const struct comm *c, unsigned parts, unsigned failing);
/* Whether one of these parts is a protocol that uses more than one tree. */
bool protocols_have_spare(const struct comm *c, unsigned parts);
/* Makes the protocols among these parts give up the failing trees, and join the others again with
 * new rank halves. 0 or -errno with a sentence in err. */
int protocols_fewer(struct comm *c, unsigned parts, unsigned failing, char *err);

/* ---- membership (protocol_join.c) ---- */
void protocols_join(struct comm *c);
void protocol_join(struct comm *c, struct protocol *e);
void protocol_leave(struct comm *c, struct protocol *e);
/* A message of this rank's leaf. */
void protocol_control(struct comm *c, struct protocol *e, const struct agg_ctl *m);
void protocols_tick(struct comm *c);
void protocols_leave(struct comm *c, unsigned parts);
bool protocols_joined(const struct comm *c);
bool protocols_left(const struct comm *c);
/* Fails the first protocol whose JOIN is not answered, by protocol_fail(). False: all are
 * answered. */
bool protocols_give_up(struct comm *c);

#endif
