/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams of a communicator: between ranks, and with the nodes of the fabric. Delivery is not
 * reliable: requests are repeated until answered (comm_tick).
 */
#ifndef TRIB_HOST_COLL_TRANSPORT_CTL_H
#define TRIB_HOST_COLL_TRANSPORT_CTL_H

#include "base/log.h"
#include "host/coll/mem.h"
#include "host/coll/transport/seal.h"

struct comm;
struct conn;

#define CTL_RECVS      128u
#define CTL_SENDS      16u /* a bit each in ctl_port.busy */
#define CTL_GRH        40u
#define FAILOVER_MAGIC 0x54524246u /* "TRBF": of recovery's datagrams */
#define CTL_MSG_BYTES  256u        /* of a datagram at most; fits a packet at every MTU */

/* A rank's phase, told to its linked peers. It only rises. */
enum phase { PHASE_NONE, PHASE_READY, PHASE_CLOSING, PHASE_FAILED, PHASES };
/* Why a datagram is dropped. */
enum ctl_refusal { CTL_FORGED, CTL_REPEATED, CTL_STRANGER, CTL_LATE, CTL_REFUSALS };

/*
 * Another rank. Linked ranks exchange phases and wait for each other: neighbours in the ring of
 * ranks, so that a phase reaches all, and ranks with a connection between them.
 *
 * With aggregation protocols every rank waits for all others, because a rank may need what any
 * other has kept. Then ranks are linked in a binary tree as well: rank r with (r - 1) / 2. A rank
 * tells its parent of a phase once all ranks below it have reached it, and its children once its
 * parent has told it. So a rank that has heard of a phase from all linked ranks knows that all
 * ranks have reached it.
 */
struct peer {
    union ibv_gid gid; /* of its datagram queue pair */
    uint32_t qpn;      /* 0: it cannot be reached */
    unsigned port;     /* ours */
    struct ibv_ah *ah;
    bool linked, parent, child; /* parent, child: in the tree */
    bool due;                   /* our phase goes out as soon as a send buffer is free */
    uint8_t phase;              /* enum phase: theirs, as far as known */
    uint8_t seen;               /* ours, as far as they have confirmed it */
    uint32_t sent;              /* messages to it */
    struct seal_seen got;
    struct conn *conns;
};

/* Datagrams of a port. */
struct ctl_port {
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint8_t *mem;  /* receive buffers, then send buffers */
    uint32_t busy; /* bit of each send buffer in flight */
};

/* Connections in the making. */
struct links {
    unsigned next;          /* the first that was not requested yet, in order of their index */
    unsigned asked;         /* requested, and not open */
    struct conn *due, *end; /* those that may be due, in the order in which they are sent */
};

struct ctl {
    struct ctl_port port[COMM_PORTS];
    struct peer *peer; /* [nranks] once connected */
    bool due;          /* some peer, connection or plane is */
    struct links links;
    uint64_t refused[CTL_REFUSALS];
    struct log_limit told[CTL_REFUSALS];
};

int ctl_create(struct comm *c, char *err);
void ctl_destroy(struct comm *c);
/* Sends a datagram of at most CTL_MSG_BYTES. False: dropped, because all send buffers are in flight
 * or there is no address handle; the sender repeats it. */
bool ctl_send(struct comm *c, unsigned port, struct ibv_ah *ah, uint32_t qpn, const void *msg,
              size_t len);
/* The same to another rank. msg begins with struct ctl_head, which is filled in but for magic. */
bool ctl_send_rank(struct comm *c, unsigned rank, void *msg, size_t len);
void ctl_complete(struct comm *c, const struct ibv_wc *wc);
void ctl_link(struct comm *c, unsigned rank);
void ctl_link_tree(struct comm *c);
/* Our phase changed: tells the linked ranks until they have confirmed it. */
void ctl_tell(struct comm *c);
void ctl_tick(struct comm *c);
/* Sends what is due as far as there are buffers. */
void ctl_pump(struct comm *c);
bool ctl_all_in(const struct comm *c, enum phase phase); /* the linked, in `phase` or later */
bool ctl_all_know(const struct comm *c);                 /* the linked have seen our phase */

#endif
