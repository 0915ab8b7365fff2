/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between two ranks over one channel: an RC connection that both send on.
 *
 * A message is sent only when its receive is known to be posted, so that no RNR NAK occurs. The
 * receiver posts in the order of the schedule. By an inline RDMA WRITE it writes the number of
 * receives that it has posted, since they connected, into a word at the sender. That costs one
 * frame for every eight messages, and no time: credits are far ahead, and those that only a later
 * operation needs go out behind the messages of the running one.
 *
 * CONN_AHEAD receives into slots are posted at all times, before the next operation is known, so an
 * operation begins with data. A message that arrives in such a slot, but belongs in a buffer, is
 * copied. Operations that do not use a connection leave it unchanged.
 *
 * A slot may be in other memory: a message that would be summed into memory without content is
 * received there directly (sched.h, STEP_RECV), and still counts as a slot.
 *
 * A slot receive takes SCHED_SLICE_MAX bytes whatever the message, and every message carries the
 * tag of its operation: the tag, not a broken connection, reveals a rank that runs another one.
 *
 * Rejected: credits by SEND, because they would need receives, and so credits, themselves.
 * Rejected, too: to assume the next operation's first receives without a credit. Then no operation
 * may end at one rank before it has begun at all ranks, and a broadcast does.
 */
#ifndef TRIB_HOST_COLL_TRANSPORT_CONN_H
#define TRIB_HOST_COLL_TRANSPORT_CONN_H

#include "base/cacheline.h"
#include "collective/in_flight.h"
#include "host/coll/comm.h"

/* Send queue entries for messages: a full window, and messages that a later, signaled one
 * completes. */
#define CONN_SENDS(k) ((k)->depth + 8u)
#define CONN_CREDITS  16u /* send queue entries for credits */
#define CONN_SQ(k)    (CONN_SENDS(k) + CONN_CREDITS)
#define CONN_CQE(k)   ((k)->depth + CONN_SQ(k))
#define SLOT_NONE     0xffu

/* Fields stand in order of use, as those of an HCA's queue pair. */
struct conn {
    struct ibv_qp *qp;
    uint32_t *word; /* credit word, written by the peer; slot, got and tx_at follow it */
    /* Messages since they connected. */
    uint64_t rx_posted, rx_done, rx_seen; /* seen: taken by an operation */
    uint64_t published;                   /* receives that the peer knows of */
    uint64_t slot_next, slot_free;        /* slots given out, and before the oldest in use */
    struct conn_slot {
        uint64_t msg; /* the message that it is for */
        uint8_t *at;  /* its memory; NULL: the slot is free */
    } * slot;         /* [depth] */
    struct conn_got {
        uint32_t imm, len;
        uint8_t slot;    /* SLOT_NONE: received in the buffer that it belongs into */
    } * got;             /* [depth] */
    unsigned index;      /* among the communicator's */
    uint16_t chan;       /* among the channels to the peer */
    uint16_t generation; /* comm.generation when it was made: later operations use later ones */
    unsigned depth;      /* slots; receives posted and messages in flight, at most: sched_slots() */
    bool connected;      /* the peer's end is known */
    bool open;           /* the peer can receive */
    bool due;            /* a message to the peer goes out as soon as a send buffer is free */
    bool queued;         /* among those that may be due */
    bool asked;          /* counted in links.asked: requested, and the peer has not answered */

    /* Of the running operation. */
    unsigned rx_lane, tx_lane; /* LANE_NONE */
    uint64_t rx_base, tx_base;

    uint64_t tx_posted, tx_done;
    uint64_t sq_posted, sq_done; /* messages and credits */
    uint64_t *tx_at;             /* [CONN_SQ] messages posted up to that one, included */
    struct port *port;
    struct ibv_mr *mr, *word_mr;
    uint8_t *mem; /* slots */
    uint32_t remote_key;

    unsigned peer;
    uint32_t psn;
    struct conn *next;     /* of the same peer */
    struct conn *due_next; /* queued behind it */
    int64_t since_ns;      /* since when the peer does not answer; 0: it was not asked */
    uint64_t probe;        /* sq_posted after the last probe */
} CACHELINE_ALIGNED;

/* ---- an operation's use of it (conn.c) ---- */
void conn_begin(struct comm *c, struct coll_req *r, unsigned lane);
unsigned conn_run(struct comm *c, struct coll_req *r, unsigned lane);
void conn_end(struct comm *c, struct coll_req *r, unsigned lane);
/* Memory of message `msg` of the running operation; conn_release(): its slot is free again. */
uint8_t *conn_slot(const struct conn *k, uint64_t msg);
void conn_release(struct comm *c, struct conn *k, uint64_t msg);
void conn_complete(struct comm *c, const struct ibv_wc *wc);
/* Fails on a message of operation `seq` or earlier that no step of this rank receives. */
void conn_check_strays(struct comm *c, struct conn *k, uint32_t seq);
/* Without progress: probes the far ends of the connections. Their HCAs answer independently of
 * their programs; a missing answer fails the communicator. Called at ticks. */
void conn_probe(struct comm *c);
/* Posts receives up to CONN_AHEAD, and tells the peer. */
void conn_top_up(struct comm *c, struct conn *k);

/* ---- making it (link.c) ---- */
/* The connection of the current generation, made if there is none yet. NULL: err says why. */
struct conn *conn_get(struct comm *c, unsigned peer, unsigned chan, char *err);
int conn_all_channels(struct comm *c, unsigned peer, char *err);
bool conn_all_open(const struct comm *c);
/* Gives up every connection and its messages in flight: conn_get() makes new ones, of the next
 * generation. */
void conn_renew(struct comm *c);
static inline bool conn_is_old(const struct comm *c, const struct conn *k)
{
    return k->generation < c->generation;
}
#define LINK_MAGIC 0x5452424cu /* "TRBL" */
/* A rank's requests without an answer, at most. When all ranks connect to all others, messages in
 * flight grow with the number of ranks, not of pairs. */
#define LINKS_ASKED 32u
void link_input(struct comm *c, unsigned rank, const void *msg, size_t len);
void link_pump(struct comm *c);
void link_tick(struct comm *c);
void conn_stop(struct comm *c);
void conn_destroy(struct comm *c);

#endif
