/*
 * What ranks put into their buffers, and what must come out. Contributions are small integers,
 * chosen per type, operation and number of ranks so that every partial result is exact in the type:
 * then the result does not depend on the order in which an algorithm combines them, and every
 * element can be compared bit by bit.
 *
 * Element i of rank r depends on r and on i % VALUES_PERIOD. The period is a prime far from any
 * power of two or multiple of an MTU, so data that an algorithm puts in the wrong place is found.
 */
#ifndef TRIB_PERF_VALUES_H
#define TRIB_PERF_VALUES_H

#include "switch/reduce/arith.h"

#include <stddef.h>
#include <stdint.h>

#define VALUES_PERIOD 32749u
#define VALUES_BYTES  (VALUES_PERIOD * 8u)

struct values {
    enum dtype type;
    enum redop op;
    unsigned rank, nranks;
    size_t count;         /* elements of one period that are set: min(count, VALUES_PERIOD) */
    uint8_t *mine, *want; /* one period of this rank's contribution and of the result */
};

int values_init(struct values *v); /* allocates; 0 or -ENOMEM */
void values_free(struct values *v);
/* Computes both periods for vectors of `count` elements. */
void values_set(struct values *v, enum dtype type, enum redop op, unsigned rank, unsigned nranks,
                size_t count);
void values_fill(const struct values *v, void *buf, size_t count); /* this rank's contribution */
/* Every element becomes one that is certainly wrong: what an algorithm does not write shows up. */
void values_poison(const struct values *v, void *buf, size_t count);
/* How many of count elements differ from the result. */
uint64_t values_wrong(const struct values *v, const void *buf, size_t count);
#endif
