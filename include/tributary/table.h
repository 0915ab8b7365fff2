/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table of slots that all jobs of a switch share, for the switch halves of protocols: a slot is found by a
 * hash of job and packet number. trib_switch.self points to a struct trib_table, or to a structure whose first
 * member is one. open and job_open of the half call the functions with those names; close and job_close are
 * these functions. All functions are inline.
 */
#ifndef TRIBUTARY_TABLE_H
#define TRIBUTARY_TABLE_H

#include <tributary/protocol.h>

#include <errno.h>
#include <stdlib.h>

#define TRIB_JOBS 4096 /* trib_job.index is less */

/* Every slot begins with this. */
struct trib_slot {
    int64_t since_ps; /* when it was taken */
    uint32_t index;   /* in the table */
    uint16_t job;     /* trib_job.index + 1 of the job that has it; 0: free */
};

struct trib_table {
    struct trib_array *array;
    uint32_t n;
    struct trib_job *job[TRIB_JOBS]; /* by index */
};

static inline void trib_table_close(struct trib_switch *s)
{
    free(s->self);
    s->self = NULL;
}

/* Allocates s->self, `bytes` zeroed bytes, and n slots of slot_bytes that begin with a struct trib_slot. 0;
 * -ENOMEM; -ENOSPC: the switch's memory is exhausted. On an error nothing stays allocated. */
static inline int trib_table_open(struct trib_switch *s, size_t bytes, const char *name, uint32_t n,
                                  uint32_t slot_bytes)
{
    struct trib_table *t = (struct trib_table *)calloc(1, bytes);

    if (!t)
        return -ENOMEM;
    s->self = t;
    t->n = n;
    t->array = s->api->array(s, NULL, name, n, (slot_bytes + 7) & ~7u);
    if (!t->array) {
        trib_table_close(s);
        return -ENOSPC;
    }
    for (uint32_t i = 0; i < n; i++)
        ((struct trib_slot *)s->api->at(s, t->array, i))->index = i;
    return 0;
}

static inline int trib_table_job_open(struct trib_switch *s, struct trib_job *job)
{
    if (job->index >= TRIB_JOBS)
        return -ENOSPC;
    ((struct trib_table *)s->self)->job[job->index] = job;
    return 0;
}

static inline bool trib_slot_is_of(const struct trib_slot *l, const struct trib_job *job)
{
    return l->job == job->index + 1;
}

/* The slot for packet seq of a job; it may be free or belong to any job. */
static inline void *trib_table_slot(struct trib_switch *s, const struct trib_job *job, uint64_t seq)
{
    struct trib_table *t = (struct trib_table *)s->self;
    uint64_t z = seq * 0x9e3779b97f4a7c15u + (job->index + 1) * 0xd1b54a32d192ed03u;

    z = (z ^ z >> 32) * 0xd6e8feb86659fd93u;
    z = (z ^ z >> 32) * 0xd6e8feb86659fd93u;
    return s->api->at(s, t->array, (uint32_t)((z >> 32) * t->n >> 32));
}

/* Gives a taken slot back. */
static inline void trib_table_give(struct trib_switch *s, struct trib_slot *l)
{
    struct trib_table *t = (struct trib_table *)s->self;

    s->api->give(s, t->job[l->job - 1], t->array, l->index);
    l->job = 0;
    s->api->work(s, sizeof(l->job), 0);
}

/* Takes a free slot. */
static inline void trib_table_take(struct trib_switch *s, struct trib_job *job, struct trib_slot *l)
{
    s->api->take(s, job, ((struct trib_table *)s->self)->array, l->index);
    l->since_ps = s->api->now(s);
    l->job = (uint16_t)(job->index + 1);
}

static inline void trib_table_job_close(struct trib_switch *s, struct trib_job *job)
{
    struct trib_table *t = (struct trib_table *)s->self;

    for (uint32_t i = 0; i < t->n; i++) {
        struct trib_slot *l = (struct trib_slot *)s->api->at(s, t->array, i);

        if (!trib_slot_is_of(l, job))
            continue;
        s->api->give(s, job, t->array, i);
        l->job = 0;
    }
    t->job[job->index] = NULL;
}

#endif
