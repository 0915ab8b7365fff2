/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A case of check-protocol: a small fabric, jobs with their operations, and faults. It is drawn
 * from a seed for one property; the same seed gives the same case.
 */
#ifndef TRIB_PROTOCOLS_CHECK_CHECK_CASE_H
#define TRIB_PROTOCOLS_CHECK_CHECK_CASE_H

#include <tributary/protocol.h>

#define CASE_JOBS  4u
#define CASE_RANKS 12u /* most ranks of a job */
#define CASE_OPS   4u
#define CASE_LEAFS 4u

enum property {
    P_EXACT,
    P_LOSS,
    P_DUPLICATION,
    P_REORDERING,
    P_JOBS,
    P_LEAKS,
    P_DETERMINISM,
    P_WORK,
    P_MEMORY,
    P_HOSTILE,
    P_VERSIONS,
    P_KEYS,
    PROPERTIES
};

const char *property_name(unsigned p); /* NULL behind the last */

struct case_op {
    uint64_t count;
    enum trib_type type;
    enum trib_sum op;
    bool in_place;
};

struct case_job {
    unsigned nranks, n_ops;
    unsigned leaf[CASE_RANKS]; /* leaf switch of each rank; all 0 with one switch */
    struct case_op op[CASE_OPS];
    int64_t start_ps;
};

struct check_case {
    const struct trib_protocol *protocol;
    enum property property;
    uint64_t seed;
    int64_t key[TRIB_KEYS];
    bool any_key;     /* keys may be unusual, so jobs may be refused */
    unsigned n_leafs; /* 1: one switch; more: a root above them */
    unsigned n_jobs;
    struct case_job job[CASE_JOBS];
    uint32_t payload, window, buffers; /* a rank's receive buffers (window), send buffers */
    uint64_t rate_bps;
    int64_t latency_ps; /* of a link */
    size_t memory;      /* of a switch */
    /* Probabilities per packet, in millionths. */
    uint32_t loss, duplication, reordering, marks, hostile;
    int64_t jitter_ps, late_ps; /* most delay of any packet, and of reordered ones */
    int dies;                   /* a rank of job 0; -1: none */
    int64_t dies_ps;
};

/* 0, or -ENOTSUP: the protocol supports no type. usual: values of the keys. */
int case_draw(struct check_case *c, const struct trib_protocol *p, const int64_t *usual,
              enum property property, uint64_t seed);
/* Round trip of a full packet to the root, without load. */
int64_t case_round_trip(const struct check_case *c);

#endif
