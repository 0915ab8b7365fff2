/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A network in memory for tests of protocols: ranks below leaves, leaves below a root (one leaf is
 * the root itself), links with a rate, packets lost, repeated and delayed by a seed. It checks what
 * a host checks: slots taken and given, indices, lengths, declared work.
 */
#ifndef TRIB_TESTS_PROTOCOLS_STAR_H
#define TRIB_TESTS_PROTOCOLS_STAR_H

#include <tributary/protocol.h>

struct star_conf {
    const struct trib_protocol *protocol;
    unsigned leaves; /* 1: one switch */
    uint64_t seed;
    uint32_t loss_ppm, repeat_ppm, delay_ppm, mark_ppm; /* of packets, on each link */
    uint32_t garbage_ppm;              /* packets of random bytes beside so many deliveries */
    uint32_t payload, window, buffers; /* 0: 2048, 4096, 64 */
    uint64_t rate_bps, memory;         /* 0: 100G, no limit */
    int64_t latency_ps;                /* of a link; 0: 1 us */
    const char *key[TRIB_KEYS];        /* names and values that are not the usual ones */
    int64_t value[TRIB_KEYS];
};

struct star;

struct star *star_new(const struct star_conf *c);
/* Ends what is left; -1 where a job has kept slots or broken a rule, which star_error() tells before. */
int star_free(struct star *s);
/* The number of a job with so many ranks, contiguous on each leaf; -errno: refused. */
int star_job(struct star *s, unsigned nranks);
void star_job_end(struct star *s, int job);
/* Starts the operation at all ranks within `skew_ps`, then runs until it has ended everywhere.
 * send and recv: of rank r at r x count elements. NULL, or why it failed. */
const char *star_reduce(struct star *s, int job, const void *send, void *recv, uint64_t count,
                        enum trib_type type, enum trib_sum op, int64_t skew_ps);
/* The same in two steps, for several jobs at once. */
void star_begin(struct star *s, int job, const void *send, void *recv, uint64_t count,
                enum trib_type type, enum trib_sum op, int64_t skew_ps);
const char *star_run(struct star *s);
/* Of the last operation of the job: from the first start to the last end. */
int64_t star_took_ps(const struct star *s, int job);
int64_t star_model_ps(const struct star *s, int job, uint64_t count, enum trib_type type);
uint64_t star_counter(const struct star *s, const char *name); /* at all switches and ranks */
uint32_t star_most_to_a_rank(const struct star *s); /* packets on their way to a rank at once */
uint32_t star_slots_in_use(const struct star *s);

#endif
