/*
 * A schedule: what one rank does in one collective, as steps with dependencies. Pure: made from the
 * arguments alone, without memory, verbs or clock, so that it can be executed (exec.c), interpreted
 * (tests) and counted (model.c).
 *
 * Steps stand in lanes. A lane is a FIFO: its steps start and end in order, because what serves it
 * does so too (a queue pair, the one CPU). A step may start once, of every lane, need[lane] steps
 * are done. So "which steps are done" is one number a lane, and steps are generated when they are
 * looked at: a schedule takes no memory, however long the vector.
 */
#ifndef TRIB_COLL_SCHED_H
#define TRIB_COLL_SCHED_H

#include "host/coll/coll.h"

enum lane { LANE_RECV, LANE_SEND, LANE_CPU, LANE_AGG, LANES };
enum step_op { STEP_RECV, STEP_SEND, STEP_REDUCE, STEP_COPY, STEP_AGGREGATE };
enum step_buf { BUF_IN, BUF_OUT, BUF_SCRATCH };

/* Scratch is SCHED_SLOTS slots of SCHED_SLICE_MAX bytes, used in turn: enough messages of one
 * packet for a round trip. */
#define SCHED_SLOTS     64u
#define SCHED_SLICE_MAX 65536u
/*
 * So many messages of every operation of n ranks go to scratch at least, whatever its size: their
 * receives are posted before it is known. Two steps' worth of slices, so that credits have time to
 * arrive; with two ranks there is one step before the data is final.
 */
#define SCHED_AHEAD(n)  ((n) == 2 ? 8u : 16u)
#define SCHED_MAX_BYTES (1ULL << 40) /* longest vector */

struct step {
    enum step_op op;
    /* SEND, COPY: from; RECV: to. REDUCE: OUT = scratch op IN. COPY: to OUT. AGGREGATE: OUT = sum
     * of all IN */
    enum step_buf buf;
    bool last;         /* this step gives final elements: AVG divides here */
    unsigned peer;     /* SEND, RECV: rank */
    uint64_t off, len; /* bytes of the vector */
    uint64_t slot;     /* scratch slot (RECV to it, REDUCE and COPY from it): counts up; modulo
                          SCHED_SLOTS it is a     place */
    uint64_t need[LANES];
};

struct sched_in {
    enum coll_kind kind;
    enum coll_algo algo;
    unsigned rank, nranks;
    uint64_t count;
    enum dtype type;
    bool in_place;
    uint32_t mtu; /* path MTU: slices and messages are cut in whole packets */
};

struct sched {
    struct sched_in in;
    unsigned esize;
    uint64_t bytes;         /* count * esize */
    uint64_t n[LANES];      /* steps */
    uint64_t slice_bytes;   /* ring: of a full slice */
    uint64_t slices;        /* ring: of each chunk */
    uint64_t scratch_steps; /* ring: the first so many receives go to scratch */
    void (*make)(const struct sched *s, enum lane l, uint64_t i, struct step *st);
};

/* 0, -EINVAL, -E2BIG (over SCHED_MAX_BYTES), -ENOTSUP (no such algorithm for the collective). */
int sched_init(struct sched *s, const struct sched_in *in);
/* Step i (< n[l]) of lane l. */
void sched_step(const struct sched *s, enum lane l, uint64_t i, struct step *st);
/* May it start when done[] steps of each lane are done? */
bool sched_ready(const struct step *st, const uint64_t done[LANES]);

/* The algorithms; each fills n[], make and its own fields of a schedule whose in, esize and bytes
 * are set and not zero. */
void alg_ring_allreduce(struct sched *s);
void alg_sharp_allreduce(struct sched *s);

#endif
