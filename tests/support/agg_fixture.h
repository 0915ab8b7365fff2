/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fixture for aggregation nodes: the ANs of a fabric and member stubs built on rnics, joined in
 * memory by wires that keep the order of each pair of addresses and shuffle everything else, with
 * loss and duplication from a seed. Time is the fixture's. Frames are handed over as they are (as
 * inside one process) or copied flat (as over a memif), by turns.
 */
#ifndef TRIB_TESTS_SUPPORT_AGG_FIXTURE_H
#define TRIB_TESTS_SUPPORT_AGG_FIXTURE_H

#include "aggregation/arith.h"
#include "aggregation/proto.h"
#include "fabric/fabric.h"
#include "roce/rnic.h"
#include "switch/reduce/an.h"
#include "switch/reduce/an_counters.h"

#define AGG_FIXTURE_MEMBERS 96

struct agg_fixture;

/* A group as its members have agreed on it. */
struct agg_fixture_group {
    uint16_t tree;
    uint32_t id;
    uint64_t key;
    uint16_t mtu;
    uint32_t window; /* requested */
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
struct agg_fixture_op {
    uint8_t coll, dtype, op;
    uint16_t root; /* member id, of REDUCE and BROADCAST */
    uint32_t opseq;
    uint64_t total;
    bool length_only;
    uint8_t *in, *out;
};

struct member {
    struct agg_fixture *b;
    unsigned id;   /* member id */
    uint16_t host; /* node index */
    uint16_t slot; /* of its host: top 8 bits of its QPNs, less one */
    /* As this member announces it; tests may change it before agg_fixture_join(). */
    struct agg_fixture_group g;
    struct rnic *r;
    struct endpoint ep;
    uint32_t ip;
    struct qp *ctl, *qp;
    struct rq *ctl_rq;
    bool ctl_waits; /* a control message has come */
    struct cqe ctl_cqe;
    uint8_t *ctl_mem;
    uint32_t psn;
    uint16_t an;     /* node to join at; 0: by its tree */
    uint32_t of_job; /* number of groups with its key, for its JOIN */
    enum member_state state;
    enum agg_status status; /* of the refusal or the abort */
    char text[64];
    struct agg_ctl granted;
    uint32_t credit; /* of the granted window, after the last WINDOW */
    uint32_t xid;
    int64_t retry_ps;
    bool deaf;              /* killed: receives and sends no frames */
    bool over_window;       /* sends without regard to the window */
    bool mute_acks;         /* does not acknowledge ABORT */
    bool frozen;            /* sends nothing */
    bool window_lost;       /* gets no WINDOW */
    bool gets_lengths;      /* results without bytes, as some member sends none */
    unsigned joins, aborts; /* JOIN_REPLYs, ABORTs received */

    struct agg_fixture_op op;
    bool busy;
    struct agg_hdr *hdr; /* of each message */
    uint64_t sent, got;  /* bytes of elements in this operation; UINT64_MAX of an empty one: done */
    uint32_t sent_slots, got_slots, max_open;
    bool sent_all, got_all;
};

struct agg_fixture_cfg {
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

struct agg_fixture {
    struct agg_fixture_cfg cfg;
    struct fabric *f;
    struct rte_mempool *pool, *parts;
    uint64_t rng;
    int64_t now;
    struct an *an[256]; /* by node */
    bool an_dead[256];
    bool unlinked[256]; /* no link to it is up, as its neighbours' nodes see it */
    bool keep;          /* the first frame for a dead AN, in kept */
    struct rte_mbuf *kept;
    struct member member[AGG_FIXTURE_MEMBERS];
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
    void *arena; /* data of operations, kept until the end */
};

/* agg_member.c */
void member_create(struct agg_fixture *b, struct member *m);
uint32_t member_an_ip(const struct member *m); /* of its aggregation node */
void member_take_control(struct member *m);
int64_t member_run(struct member *m); /* repeats requests and sends; returns the time of its next
                                         work */

struct agg_fixture *agg_fixture_create(const struct agg_fixture_cfg *cfg);
/* Frees everything; fails the test when an AN still holds something or the pool is not full.
 * Members still in leave first. */
void agg_fixture_destroy(struct agg_fixture *b);
uint64_t agg_fixture_random(struct agg_fixture *b, uint64_t below);

/* A group of the ranks_per_host x hosts given by member ids, and a stand-in for each, in that
 * order. Returns the first of them. */
struct member *agg_fixture_group(struct agg_fixture *b, uint16_t tree, uint32_t id, uint16_t mtu,
                                 uint32_t window, uint16_t ranks_per_host, const unsigned *ids,
                                 unsigned n);
void agg_fixture_join(struct member *m);
void agg_fixture_leave(struct member *m);
void agg_fixture_start(struct member *m, const struct agg_fixture_op *op);
/* The member's process dies: it sends and receives nothing any more. announced: its NIC sends
 * PEER_DOWN. */
void agg_fixture_kill(struct member *m, bool announced);
/* PEER_DOWN for the process of that QPN, by the NIC of the member's host. */
void agg_fixture_peer_down(struct member *m, uint32_t qpn);
/* A control message from a member's own UD queue pair. */
void agg_fixture_say(struct member *m, enum agg_type type, struct agg_ctl *c);
void agg_fixture_fill_join(const struct member *m, struct agg_ctl *c);

/* Moves frames and time until done() returns true; false: nothing was left to do, or limit_ps
 * passed. */
bool agg_fixture_run(struct agg_fixture *b, bool (*done)(struct agg_fixture *b), int64_t limit_ps);
void agg_fixture_settle(struct agg_fixture *b, int64_t ps); /* for so long */
bool agg_fixture_all_in(struct agg_fixture *b);
bool agg_fixture_all_done(struct agg_fixture *b);
bool agg_fixture_all_aborted(struct agg_fixture *b); /* those that are not deaf */
bool agg_fixture_all_left(struct agg_fixture *b);

/* The expected reduction of the members' inputs by the tree: in and out are arrays by member of the
 * fixture. */
void agg_fixture_reference(struct agg_fixture *b, const struct member *first, unsigned n,
                           enum redop op, enum dtype t, size_t count, void *out);
void *agg_fixture_alloc(struct agg_fixture *b, size_t bytes);

#endif
