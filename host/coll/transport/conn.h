/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between two ranks over one channel: an RC connection that both send on.
 *
 * A message is sent only when its receive is known to be posted, so that no RNR NAK occurs. The
 * receiver posts in order of the schedule and writes, by an inline RDMA WRITE, how many it has
 * posted since they connected into a word at the sender. That costs a frame for every eight
 * messages, and no time: credits are far ahead.
 *
 * They are ahead at the start of an operation too: CONN_AHEAD receives stand posted at all times,
 * into slots, before it is known what the next operation will be. So an operation begins with data.
 * What an operation wants in a buffer and got in a slot that way is copied. Operations that do not
 * use a connection leave it as it is.
 *
 * A slot may lie elsewhere: what is to be summed into memory where nothing is yet is received there
 * (sched.h, STEP_RECV), but counts as a slot all the same.
 *
 * A slot receive takes SCHED_SLICE_MAX bytes whatever the message, and every message carries the
 * tag of its operation: a rank that runs another one is found out by the tag and not by a broken
 * connection.
 *
 * The rejected designs: a receive with data behind each credit (SEND both ways) needs receives, and
 * credits, for the credits. Counting on receives of the next operation without being told needs
 * operations that end nowhere before they have begun everywhere, which a broadcast does not.
 */
#ifndef TRIB_HOST_COLL_TRANSPORT_CONN_H
#define TRIB_HOST_COLL_TRANSPORT_CONN_H

#include "host/coll/comm.h"

#define CONN_AHEAD 16u /* two credits' worth */
/* Of the send queue, for messages: those of a full window, and what waits for a completion that
 * stands for it. */
#define CONN_SENDS(k) ((k)->depth + 8u)
#define CONN_CREDITS  16u /* of the send queue, beside messages */
#define CONN_SQ(k)    (CONN_SENDS(k) + CONN_CREDITS)
#define CONN_CQE(k)   ((k)->depth + CONN_SQ(k))
#define SLOT_NONE     0xffu

/* In order of use, as an HCA's queue pair. */
struct conn {
    struct ibv_qp *qp;
    uint32_t *word; /* the credit word that the peer writes; behind it slot, got and tx_at */
    /* Messages since they connected. */
    uint64_t rx_posted, rx_done, rx_seen; /* seen: taken by an operation */
    uint64_t published;                   /* receives that the peer knows of */
    uint64_t slot_next, slot_free;        /* slots given out, and before the oldest in use */
    struct conn_slot {
        uint64_t msg; /* that it is for */
        uint8_t *at;  /* where that lies; NULL: the slot is free */
    } * slot;         /* [depth] */
    struct conn_got {
        uint32_t imm, len;
        uint8_t slot;     /* SLOT_NONE: it went to where it belongs */
    } * got;              /* [depth] */
    unsigned index, chan; /* chan: CONN_AGE times the generation is added */
    unsigned depth; /* slots; receives posted and messages in flight, at most: sched_slots() */
    bool connected; /* the peer's end is known */
    bool open;      /* the peer can receive */
    bool due;       /* the peer is to be asked as soon as a buffer is free */

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
    struct conn *next; /* of the same peer */
    int64_t since_ns;  /* since when the peer does not answer; 0: it was not asked */
    uint64_t probe;    /* what was posted up to the last probe, included */
} __rte_cache_aligned;

/* ---- an operation's use of it (conn.c) ---- */
void conn_begin(struct comm *c, struct coll_req *r, unsigned lane);
unsigned conn_run(struct comm *c, struct coll_req *r, unsigned lane);
void conn_end(struct comm *c, struct coll_req *r, unsigned lane);
/* Message `msg` of the running operation; the slot is free again. */
uint8_t *conn_slot(const struct conn *k, uint64_t msg);
void conn_release(struct comm *c, struct conn *k, uint64_t msg);
void conn_complete(struct comm *c, const struct ibv_wc *wc);
/* Messages that nobody waits for and that are of operation `seq` or before. */
void conn_check_strays(struct comm *c, struct conn *k, uint32_t seq);
/* Nothing moves: are the other ends of the connections still there? Their HCAs answer, whatever
 * their programs do; who does not fails the communicator. Called now and then. */
void conn_probe(struct comm *c);
/* Posts receives up to CONN_AHEAD. */
void conn_top_up(struct comm *c, struct conn *k);

/* ---- how it comes about (link.c) ---- */
/* The connection; where there is none yet, it is made and the peer asked. NULL with err. */
struct conn *conn_get(struct comm *c, unsigned peer, unsigned chan, char *err);
int conn_all_channels(struct comm *c, unsigned peer, char *err);
bool conn_all_open(const struct comm *c);
/* What is on its way is of no interest any more: new connections, when they are asked for again. */
void conn_renew(struct comm *c);
#define CONN_AGE 0x10000u
static inline bool conn_is_old(const struct comm *c, const struct conn *k)
{
    return k->chan / CONN_AGE < c->generation;
}
#define LINK_MAGIC 0x5452424cu /* "TRBL" */
void link_input(struct comm *c, const void *msg, size_t len);
void link_pump(struct comm *c);
void link_tick(struct comm *c);
void conn_stop(struct comm *c);
void conn_destroy(struct comm *c);

#endif
