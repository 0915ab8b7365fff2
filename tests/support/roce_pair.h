/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two rnics joined in memory by a wire with faults, and time that only the test moves. Everything
 * follows from the seed.
 */
#ifndef TRIB_TESTS_SUPPORT_ROCE_PAIR_H
#define TRIB_TESTS_SUPPORT_ROCE_PAIR_H

#include "roce/rnic.h"

#define PAIR_MAX_CQES    4096
#define PAIR_MAX_REGIONS 16
#define PAIR_WIRE        4096

struct pair;

struct region {
    uint64_t addr, len;
    void *p;         /* NULL: unbacked */
    unsigned access; /* ACCESS_* granted */
    bool gone;
};

struct side {
    struct pair *pair;
    struct rnic *r;
    struct endpoint ep;
    struct rte_mempool *pool;
    uint32_t ip;
    struct region region[PAIR_MAX_REGIONS];
    unsigned n_regions;
    struct cqe cqe[PAIR_MAX_CQES];
    unsigned n_cqes;
    unsigned events[8];
    enum sink_verdict (*sink)(struct side *s, struct qp *qp, const struct roce_pkt *k,
                              struct rte_mbuf *m);
    void (*on_complete)(struct side *s, const struct cqe *c);
};

enum wire_verdict { WIRE_PASS, WIRE_DROP, WIRE_DUP, WIRE_CORRUPT, WIRE_LATE };

struct pair {
    struct side s[2];
    int64_t now_ps;
    uint64_t rng;
    /* Probabilities in 1/10000. */
    unsigned loss, dup, corrupt, late;
    unsigned ce[2]; /* congestion marks, by sender */
    /* Called for each frame first; from: the sending side; k is parsed. May be NULL. */
    enum wire_verdict (*fault)(struct pair *p, unsigned from, const struct roce_pkt *k);
    void *arg;
    unsigned count[2],
        count_data[2]; /* frames put onto the wire by each side: all, those with payload or RETH */
    struct {
        struct rte_mbuf *m;
        int64_t due;
    } wire[2][PAIR_WIRE];
    unsigned n_wire[2];
    int64_t busy[2];
    unsigned burst; /* frames a side gives at once; default 8 */
    bool deferred;
};

struct pair_cfg {
    uint32_t window;
    uint16_t ack_every;
    unsigned mbufs;
    uint64_t seed;
    struct dcqcn_cfg dcqcn;
    const struct deferred_ops *deferred; /* queue pairs of side 1 are answered by it */
    int64_t (*lateness)(void *user, const struct qp *qp, int64_t window_ps); /* rnic_ops.lateness */
};

struct pair *pair_create(const struct pair_cfg *cfg);
/* Frees everything; fails the test when a pool is not full again. */
void pair_destroy(struct pair *p);
uint32_t pair_random(struct pair *p, uint32_t below);

/* Registers memory (p NULL: unbacked, at a made-up address); the key is the same for local and
 * remote use. */
uint32_t pair_region(struct side *s, void *p, uint64_t len, unsigned access);

/* A QP on each side, connected and in RTS. Attributes that are 0 in attr get defaults that work. rq
 * may be NULL. */
void pair_connect(struct pair *p, enum qp_type type, const struct qp_attr *attr, uint32_t sq_depth,
                  struct rq *rq0, struct rq *rq1, bool streaming, struct qp *qp[2]);

/* Moves frames and time until done() returns true, nothing is left to do, or limit_ps passed.
 * Returns the result of done(). */
bool pair_run(struct pair *p, bool (*done)(struct pair *p), int64_t limit_ps);
bool pair_never(struct pair *p);
const struct cqe *pair_cqe(struct side *s, uint64_t wr_id, bool recv);

#endif
