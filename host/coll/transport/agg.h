/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Edges to the aggregation nodes: control half (join.c), transport (agg.c), and the ranks'
 * agreement on what the switches granted (fit.c).
 */
#ifndef TRIB_HOST_COLL_TRANSPORT_AGG_H
#define TRIB_HOST_COLL_TRANSPORT_AGG_H

#include "aggregation/proto.h"
#include "collective/in_flight.h"
#include "collective/sched.h"
#include "host/coll/transport/edge.h"
#include "protocols/host/registry.h"

struct comm;
struct coll_req;

/* Parts of the in-network path: each fails by itself. */
enum part { PART_TREES = 1, PART_RAIL = 2, PART_MM = 4 };
/* Agreed on like a failure, but nothing fails: trees have smaller windows, or there are fewer. */
#define PART_FIT            8u
#define PART_PROTOCOL(seat) (16u << (seat)) /* the job of a protocol, with or without switches */
#define PARTS               (4 + PROTO_SEATS)
#define PARTS_ALL           ((1u << PARTS) - 1)
#define PARTS_PROTOCOLS     (PARTS_ALL & ~(PART_PROTOCOL(0) - 1))
/* Agreed on too: trees are used again (rejoin.c). */
#define PART_BACK (1u << PARTS)

/* REFUSED: a switch has no slots, groups or buffers left for it. */
enum join_state {
    JOIN_NONE,
    JOIN_ASKED,
    JOIN_GRANTED,
    JOIN_REFUSED,
    JOIN_LEAVING,
    JOIN_LEFT,
    JOIN_STATES
};

/* Ranks that aggregate together: all, or those of this rank's rail. */
struct agg_group {
    uint32_t id; /* on the fabric */
    struct fab_members members;
    uint16_t *member_of_rank; /* [nranks]; FAB_NONE: not in the group */
};

struct agg {
    unsigned index; /* among the communicator's */
    unsigned kind;  /* of its group, GROUP_ALL or GROUP_RAIL */
    unsigned chan;  /* number among the trees of its group */
    bool out;       /* not used any more: some rank was refused */
    bool lost;      /* not used: given up, and joined again when possible (rejoin.c) */
    bool wanted;    /* to be joined again once it is left */
    uint16_t tree;
    struct agg_group *group;
    /* join.c */
    enum join_state state;
    enum agg_status refused;
    uint16_t attempt;    /* of agg_ctl */
    uint16_t next;       /* attempt of the next JOIN; the same at all ranks of a tree in use */
    uint32_t job_groups; /* of the job at the aggregation node and further up (agg_ctl.slot) */
    uint16_t leaf;       /* node index of our aggregation node */
    struct ibv_ah *ah;
    uint32_t xid;
    unsigned probes; /* in a row without an answer */
    /* agg.c */
    struct port *port;
    struct ibv_qp *qp;
    uint32_t psn;
    uint32_t asked, window; /* slots: requested; granted, agreed by all ranks */
    uint32_t credit;        /* of them, what the aggregation node takes now */
    uint32_t resizes;       /* number of its last WINDOW */
    uint32_t slots_out;
    uint32_t depth;      /* messages in flight at most */
    struct agg_hdr *hdr; /* [2 * depth]: sent, received */
    struct ibv_mr *mr;
    uint32_t opseq_out, opseq_in;   /* operations of the protocol, sent and answered */
    uint64_t posted, done, tx_done; /* messages since JOIN */
    unsigned lane;                  /* of the running operation, LANE_NONE */
    /* agg_kept.c: copies of what messages [done, posted) sent, where agg_keep() needs them, and of
     * a finished operation's last messages; AGG_MSG_BYTES each, by the number of the message. NULL:
     * nothing is kept. */
    uint8_t *kept;
    unsigned n_kept;
    uint64_t op_end; /* messages up to the end of the last finished operation */
};

static inline enum part agg_part(const struct agg *a)
{
    return a->kind == GROUP_RAIL ? PART_RAIL : PART_TREES;
}

static inline bool agg_is_out(const struct agg *a)
{
    return a->out || a->lost;
}

/* A tree of all ranks as a bit. */
static inline unsigned agg_bit(const struct agg *a)
{
    return a->kind == GROUP_ALL ? 1u << a->chan : 0;
}

int join_start(struct comm *c, char *err);       /* sends the JOINs */
void join_leave(struct comm *c, unsigned parts); /* the groups of these parts */
void join_leave_one(struct comm *c, struct agg *a);
void join_again(struct comm *c, struct agg *a); /* after it was left, refused or aborted */
/* A message of a switch at this address. False: it is not of one of our aggregation nodes. */
bool join_input(struct comm *c, uint32_t ip, const struct agg_ctl *m);
void join_tick(struct comm *c);
/* Probes the aggregation nodes whose results an operation waits for. Called at ticks without
 * progress. */
void join_probe(struct comm *c);
void join_destroy(struct comm *c);
bool join_all_granted(const struct comm *c);
bool join_all_left(const struct comm *c);
const char *agg_leaf_name(const struct comm *c, const struct agg *a);
/* True: the cause is a switch, and another algorithm avoids it. False: the cause is a member.
 * AGG_OK (no reason given) counts as a switch's. */
bool join_recoverable(enum agg_status s);

/* Joins the trees that the communicator's algorithms need. */
int agg_create(struct comm *c, char *err);
/* The edge that serves a lane, NULL: there is none. */
struct agg *agg_of_lane(struct comm *c, const struct lane *l);
/* The trees of all ranks that are in use, by agg_bit(). */
unsigned agg_in_use(const struct comm *c);
/* Tells schedules which trees the group of all ranks has, and what each carries. */
void agg_use_trees(struct comm *c, unsigned trees);
/* A new queue pair for a tree that was given up. 0 or -errno. */
int agg_renew(struct comm *c, struct agg *a);
/* Notes that the tree fails; transport_failed() gives the reason. */
void agg_fails(struct comm *c, const struct agg *a);
int agg_connect(struct comm *c, struct agg *a, const struct agg_ctl *grant); /* 0 or -errno */
void agg_stop(struct comm *c, unsigned parts);
void agg_destroy(struct comm *c);
void agg_complete(struct comm *c, const struct ibv_wc *wc);
unsigned agg_run(struct comm *c, struct coll_req *r, unsigned lane);
/* Writes why a JOIN was refused into buf (COMM_TEXT bytes) and returns it. Leaves out the meaning
 * of the status if the text would exceed FAILOVER_TEXT. */
const char *agg_refusal(char *buf, const char *leaf, enum agg_status status, const char *words);

/* ---- what was granted (fit.c) ---- */
struct agg_fit {
    char why[AGG_TEXT];  /* why less was granted than asked for; "": all was */
    char less[AGG_TEXT]; /* the first such answer to this rank */
};
/* An answer to a JOIN was processed; why: the switch's text if it grants less than requested, else
 * "". */
void fit_answered(struct comm *c, const char *why);
/* All JOINs are answered. */
bool fit_known(const struct comm *c);
/* The window that was granted on each tree of the list, 0: refused. Returns the rail's. */
uint32_t fit_report(const struct comm *c, uint32_t window[COLL_TREES]);
/* Applies the ranks' agreement: fit has the smallest window of all ranks for each tree; 0: no rank
 * uses it, and it is dropped. True: some tree was dropped. */
bool fit_apply(struct comm *c, const uint32_t fit[COLL_TREES], uint32_t rail, const char *why);

/* ---- messages that may be sent once more (agg_kept.c) ---- */

/* Memory of a kept message. */
static inline uint8_t *agg_kept_at(const struct agg *a, uint64_t msg, uint32_t mtu)
{
    return a->kept + msg % a->n_kept * AGG_MSG_BYTES(mtu);
}
/* Whether the result of the step overwrites what the step sends. */
bool agg_same_place(const struct coll_req *r, const struct step *st);
/* Keeps what recovery may need of a message that is about to be posted. */
void agg_keep(struct agg *a, const struct coll_req *r, const struct step *st);

#endif
