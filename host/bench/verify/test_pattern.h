/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Test data of ranks, and the expected results. Where a collective reduces,
 * contributions are small integers, chosen per type, operation and number of ranks so that every
 * partial result is exact in the type: then the result does not depend on the order in which an
 * algorithm combines them, and every element can be compared bit by bit. Where it only moves data,
 * elements are any bits at all.
 *
 * Element i of rank r's stream (layout.h) depends on r and on i % PATTERN_PERIOD. The period is a
 * prime far from any power of two or multiple of an MTU, so data that an algorithm puts in the
 * wrong place is found.
 *
 * Such data cannot show a wrong rounding or order. pattern_sample() puts other contributions
 * (samples.h) to some positions of a reduction; what they must give is the caller's to say, since
 * it depends on the algorithm (sampled.h).
 */
#ifndef TRIB_HOST_BENCH_VERIFY_TEST_PATTERN_H
#define TRIB_HOST_BENCH_VERIFY_TEST_PATTERN_H

#include "host/bench/verify/samples.h"
#include "host/kernels/device.h"

#include <stddef.h>

#define PATTERN_PERIOD 32749u
#define PATTERN_BYTES  (PATTERN_PERIOD * 8u)

struct test_pattern {
    enum dtype type;
    enum redop op;
    bool reduces;
    unsigned nranks;
    size_t count; /* elements of one period that are set: at most PATTERN_PERIOD */
    /* One period of the reduction, and of one rank's stream. */
    uint8_t *all, *one;
    unsigned one_of; /* that rank; LAYOUT_NOTHING: not computed */
    bool have_all;
    const struct samples *samples; /* NULL: none */
    /* Results of all samples by the first way, then by the next: each is right there. No ways:
     * results there are not compared. */
    const uint8_t *want;
    unsigned ways;
    double bound;          /* permitted distance of an element from the exact result */
    double unit, made_in;  /* unit of which contributions are multiples; the periods' unit */
    const uint8_t *given;  /* contributions by rank and sample; NULL: they are computed */
    struct device *device; /* buffers are filled and compared in its memory; NULL: the host's. A
                              failure stays in device_error(). */
};

int pattern_init(struct test_pattern *v); /* allocates; 0 or -ENOMEM */
void pattern_free(struct test_pattern *v);
/* For operations like l of this type and reduction. Periods are computed when they are needed. */
void pattern_set(struct test_pattern *v, const struct layout *l, enum dtype type, enum redop op);

/* Call after pattern_set(), which removes samples. Sets the samples of a reduction in host memory.
 * The caller keeps ownership of samples and results. */
void pattern_sample(struct test_pattern *v, const struct samples *s, const uint8_t *want,
                    unsigned ways);

/* Call after pattern_set(), which sets the bound to 0. Only for types that are one number.
 * Algorithms with a bound quantise, and expect values as small as gradients: contributions of
 * float32 are at most 1 then. */
void pattern_within(struct test_pattern *v, double bound);
/* Largest magnitude of a contribution to a reduction, with or without a bound. */
double pattern_most(enum dtype type, enum redop op, unsigned nranks, bool bounded);

/* Elements [first, first + n) of a rank's stream, or of the reduction (LAYOUT_ALL). */
void pattern_fill(struct test_pattern *v, void *buf, unsigned source, uint64_t first, uint64_t n);
/* Makes every element wrong, so that elements that an algorithm does not write are detected. */
void pattern_poison(struct test_pattern *v, void *buf, unsigned source, uint64_t first, uint64_t n);
/* Number of wrong elements; LAYOUT_NOTHING: elements whose poison was overwritten. */
uint64_t pattern_wrong(struct test_pattern *v, const void *buf, unsigned source, uint64_t first,
                       uint64_t n);

/*
 * Prepares both buffers of a rank before an operation, and counts the wrong elements after it: in
 * the result, in what must stay untouched, and in the input. In place, `recv` is the one buffer.
 */
void pattern_prepare(struct test_pattern *v, const struct layout *l, void *send, void *recv);
uint64_t pattern_check(struct test_pattern *v, const struct layout *l, const void *send,
                       const void *recv);
#endif
