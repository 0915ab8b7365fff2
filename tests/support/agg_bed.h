/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bed for aggregation nodes: the ANs of a fabric and member stubs built on rnics, joined in
 * memory by wires that keep the order of each pair of addresses and shuffle everything else, with
 * loss and duplication from a seed. Time is the bed's. Frames are handed over as they are (as
 * inside one process) or copied flat (as over a memif), by turns.
 */
#ifndef TRIB_TESTS_SUPPORT_AGG_BED_H
#define TRIB_TESTS_SUPPORT_AGG_BED_H

#include "aggregation/arith.h"
#include "aggregation/proto.h"
#include "fabric/fabric.h"
#include "roce/rnic.h"
#include "switch/reduce/an.h"
#include "switch/reduce/an_counters.h"

#define BED_MEMBERS 64

struct bed;

/* A group as its members have agreed on it. */
struct bed_group {
    uint16_t tree;
    uint32_t id;
    uint64_t key;
    uint16_t mtu;
    uint32_t window; /* asked for */
    struct fab_members members;
};

enum member_state {
    MEMBER_OUT,
    MEMBER_ASKING,
    MEMBER_IN,
    MEMBER_REFUSED,
    MEMBER_ABORTED,
    MEMBER_LEAVING,
    MEMBER_LEFT
};

/* A vector to be reduced. */
struct bed_op {
    uint8_t coll, dtype, op;
    uint16_t root; /* member id, of REDUCE and BROADCAST */
    uint32_t opseq;
    uint64_t total;
    bool length_only;
    uint8_t *in, *out;
};

struct member {
    struct bed *b;
    unsigned id;        /* member id */
    uint16_t host;      /* node index */
    uint16_t slot;      /* of its host: top 8 bits of its QPNs, less one */
    struct bed_group g; /* as this member says it; tests may change it before bed_join() */
    struct rnic *r;
    struct endpoint ep;
    uint32_t ip;
    struct qp *ctl, *qp;
    struct rq *ctl_rq;
    bool ctl_waits; /* a control message has come */
    struct cqe ctl_cqe;
    uint8_t *ctl_mem;
    uint32_t psn;
    uint16_t an;     /* node to ask; 0: where its tree says */
    uint32_t of_job; /* number of groups with its key, for its JOIN */
    enum member_state state;
    enum agg_status status; /* of the refusal or the abort */
    char text[64];
    struct agg_ctl granted;
    uint32_t xid;
    int64_t retry_ps;
    bool deaf;              /* killed: receives and sends no frames */
    bool over_window;       /* sends without regard to the window */
    bool mute_acks;         /* does not acknowledge ABORT */
    bool frozen;            /* sends nothing */
    unsigned joins, aborts; /* JOIN_REPLYs, ABORTs received */

    struct bed_op op;
    bool busy;
    struct agg_hdr *hdr; /* of each message */
    uint64_t sent, got;  /* bytes of elements in this operation; UINT64_MAX of an empty one: done */
    uint32_t sent_slots, got_slots, max_open;
    bool sent_all, got_all;
};

struct bed_cfg {
    const char *conf;
    uint64_t seed;
    unsigned loss, dup;   /* in 1/10000 */
    int64_t jitter_ps;    /* of the wires; default 20 us */
    uint32_t mbuf_budget; /* of each AN; default plenty */
};

struct flight {
    struct rte_mbuf *m;
    uint16_t dst;
    int64_t due;
    uint64_t order;
};

struct bed {
    struct bed_cfg cfg;
    struct fabric *f;
    struct rte_mempool *pool, *parts;
    uint64_t rng;
    int64_t now;
    struct an *an[256]; /* by node */
    bool an_dead[256];
    bool keep; /* the first frame for a dead AN, in kept */
    struct rte_mbuf *kept;
    struct member member[BED_MEMBERS];
    unsigned n;
    struct flight *flight;
    unsigned n_flights, max_flights;
    int64_t *last;         /* [nodes][nodes]: due time of the last frame between them */
    uint64_t sent, shared; /* shared: frames with a payload by reference */
    struct witness {
        struct rte_mbuf *m;
        uint32_t sum;
    } witness[256]; /* references to frames that were on a wire */
    unsigned n_witnesses;
    void *arena; /* what operations need, kept until the end */
};

/* agg_member.c */
void member_create(struct bed *b, struct member *m);
void member_take_control(struct member *m);
int64_t member_run(struct member *m); /* asks again and sends; when it has something to do next */

struct bed *bed_create(const struct bed_cfg *cfg);
/* Frees everything; fails the test when an AN still holds something or the pool is not full.
 * Members still in leave first. */
void bed_destroy(struct bed *b);
uint64_t bed_random(struct bed *b, uint64_t below);

/* A group of the ranks_per_host x hosts given by member ids, and a stand-in for each, in that
 * order. Returns the first of them. */
struct member *bed_group(struct bed *b, uint16_t tree, uint32_t id, uint16_t mtu, uint32_t window,
                         uint16_t ranks_per_host, const unsigned *ids, unsigned n);
void bed_join(struct member *m);
void bed_leave(struct member *m);
void bed_start(struct member *m, const struct bed_op *op);
/* The member's process dies: it sends and receives nothing any more. announced: its NIC sends
 * PEER_DOWN. */
void bed_kill(struct member *m, bool announced);
/* A control message from a member's own UD queue pair. */
void bed_say(struct member *m, enum agg_type type, struct agg_ctl *c);
void bed_fill_join(const struct member *m, struct agg_ctl *c);

/* Moves frames and time until done() says so; false: nothing was left to do, or limit_ps passed. */
bool bed_run(struct bed *b, bool (*done)(struct bed *b), int64_t limit_ps);
void bed_settle(struct bed *b, int64_t ps); /* for so long */
bool bed_all_in(struct bed *b);
bool bed_all_done(struct bed *b);
bool bed_all_aborted(struct bed *b); /* those that are not deaf */
bool bed_all_left(struct bed *b);

/* What the members' inputs reduce to, by the tree: in and out are arrays by member of the bed. */
void bed_reference(struct bed *b, const struct member *first, unsigned n, enum redop op,
                   enum dtype t, size_t count, void *out);
void *bed_alloc(struct bed *b, size_t bytes);

#endif
