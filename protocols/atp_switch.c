/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocols/atp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define JOBS 4096 /* struct trib_job.index */
#define OLD  16   /* round trips after which an aggregator is anybody's */

enum { SUMS, COLLISIONS, UNSUMMED, DUPLICATES, EVICTED, BAD };
static const char *const counters[] = {"sums",    "collisions", "unsummed", "duplicates",
                                       "evicted", "bad",        NULL};

struct aggregator {
    uint64_t seq;
    uint64_t ranks[TRIB_RANKS / 64];
    int64_t since_ps;
    uint16_t job; /* its index + 1; 0: free */
    uint16_t n, count, window;
    uint8_t type, fan_in, marked;
    int32_t value[];
};

struct table {
    struct trib_array *array;
    uint32_t n, elements;
    struct trib_job *job[JOBS]; /* by index */
};

static int atp_open(struct trib_switch *s)
{
    struct table *t = calloc(1, sizeof(*t));

    if (!t)
        return -ENOMEM;
    t->n = (uint32_t)s->key[KEY_AGGREGATORS];
    t->elements = atp_elements(s->key, s->payload);
    t->array = s->api->array(s, NULL, "aggregators", t->n,
                             ((uint32_t)sizeof(struct aggregator) + t->elements * 4 + 7) & ~7u);
    if (!t->array) {
        free(t);
        return -ENOSPC;
    }
    s->self = t;
    return 0;
}

static void atp_close(struct trib_switch *s)
{
    free(s->self);
    s->self = NULL;
}

static int job_open(struct trib_switch *s, struct trib_job *job)
{
    struct table *t = s->self;

    if (job->index >= JOBS)
        return -ENOSPC;
    t->job[job->index] = job;
    return 0;
}

static void job_close(struct trib_switch *s, struct trib_job *job)
{
    struct table *t = s->self;

    for (uint32_t i = 0; i < t->n; i++) {
        struct aggregator *a = s->api->at(s, t->array, i);

        if (a->job != job->index + 1)
            continue;
        s->api->give(s, job, t->array, i);
        a->job = 0;
    }
    t->job[job->index] = NULL;
}

static uint32_t hash(uint32_t job, uint64_t seq, uint32_t n)
{
    uint64_t z = seq * 0x9e3779b97f4a7c15u + (job + 1) * 0xd1b54a32d192ed03u;

    z = (z ^ z >> 32) * 0xd6e8feb86659fd93u;
    z = (z ^ z >> 32) * 0xd6e8feb86659fd93u;
    return (uint32_t)((z >> 32) * n >> 32);
}

static void give(struct trib_switch *s, struct aggregator *a, uint32_t i)
{
    struct table *t = s->self;

    s->api->give(s, t->job[a->job - 1], t->array, i);
    a->job = 0;
    s->api->work(s, sizeof(a->job), 0);
}

/* What it has, to the server of the packet that is being handled. */
static void pass_on(struct trib_switch *s, struct trib_job *job, const struct aggregator *a)
{
    struct head h = {.seq = a->seq,
                     .window = a->window,
                     .count = a->count,
                     .kind = PART,
                     .flags = a->marked ? MARKED : 0,
                     .type = a->type,
                     .fan_in = a->fan_in};

    memcpy(h.ranks, a->ranks, sizeof(h.ranks));
    s->api->work(s, a->count * 4u, 0);
    s->api->forward(s, job, &h, sizeof(h), a->value, a->count * 4u);
}

/* Of another block; but nobody waits for it any more if it is of the same job and a rank has the
 * result, or if it is old: those who do send again what is lost with it. */
static bool stands_in_the_way(struct trib_switch *s, const struct trib_job *job,
                              const struct aggregator *a, const struct head *h)
{
    if (!a->job)
        return false;
    if (a->job == job->index + 1 && h->seq >= h->window && a->seq <= h->seq - h->window)
        return false;
    return s->api->now(s) - a->since_ps < OLD * job->round_trip_ps;
}

static void unsummed(struct trib_switch *s, struct trib_job *job, const struct trib_packet *pkt,
                     uint8_t flags)
{
    struct head h = *(const struct head *)pkt->head;

    h.flags |= flags | (pkt->marked ? MARKED : 0);
    s->api->count(s, UNSUMMED, 1);
    s->api->forward(s, job, &h, sizeof(h), NULL, 0);
}

static void begin(struct trib_switch *s, struct trib_job *job, struct aggregator *a, uint32_t i,
                  const struct trib_packet *pkt)
{
    struct table *t = s->self;
    const struct head *h = pkt->head;

    if (a->job) {
        s->api->count(s, EVICTED, 1);
        give(s, a, i);
    }
    s->api->take(s, job, t->array, i);
    *a = (struct aggregator){.seq = h->seq,
                             .since_ps = s->api->now(s),
                             .job = (uint16_t)(job->index + 1),
                             .n = 1,
                             .count = h->count,
                             .window = h->window,
                             .type = h->type,
                             .fan_in = h->fan_in,
                             .marked = pkt->marked};
    memcpy(a->ranks, h->ranks, sizeof(a->ranks));
    memcpy(a->value, pkt->data, h->count * 4u);
    s->api->work(s, h->count * 4u, 0);
}

static void sum(struct trib_switch *s, struct trib_job *job, struct aggregator *a,
                const struct trib_packet *pkt)
{
    const struct head *h = pkt->head;

    if (h->count != a->count || h->type != a->type || h->fan_in != a->fan_in) {
        s->api->count(s, BAD, 1);
        return;
    }
    if ((h->ranks[0] & a->ranks[0]) | (h->ranks[1] & a->ranks[1])) {
        s->api->count(s, DUPLICATES, 1);
        if (a->n < a->fan_in)
            return;
    } else {
        a->ranks[0] |= h->ranks[0];
        a->ranks[1] |= h->ranks[1];
        a->marked |= pkt->marked;
        s->api->reduce(s, a->value, pkt->data, h->count, TRIB_INT32, TRIB_SUM);
        if (++a->n < a->fan_in)
            return;
        s->api->count(s, SUMS, 1);
    }
    pass_on(s, job, a);
}

static void part(struct trib_switch *s, struct trib_job *job, struct aggregator *a, uint32_t i,
                 const struct trib_packet *pkt)
{
    const struct head *h = pkt->head;
    bool its = a->job == job->index + 1 && a->seq == h->seq;

    if (__builtin_popcountll(h->ranks[0]) + __builtin_popcountll(h->ranks[1]) != 1) {
        s->api->count(s, BAD, 1);
    } else if (h->flags & (RESEND | FLOATS)) {
        if (its) {
            pass_on(s, job, a);
            give(s, a, i);
        }
        unsummed(s, job, pkt, 0);
    } else if (h->fan_in < 2) {
        unsummed(s, job, pkt, 0);
    } else if (its) {
        sum(s, job, a, pkt);
    } else if (stands_in_the_way(s, job, a, h)) {
        s->api->count(s, COLLISIONS, 1);
        unsummed(s, job, pkt, COLLISION);
    } else {
        begin(s, job, a, i, pkt);
    }
}

static void atp_packet(struct trib_switch *s, struct trib_job *job, const struct trib_packet *pkt)
{
    struct table *t = s->self;
    const struct head *h = pkt->head;
    bool child = TRIB_IS(pkt->from, TRIB_CHILD(0));
    struct aggregator *a;
    uint32_t i;

    if (pkt->from == TRIB_PARENT) /* a multicast for the ranks of a switch above */
        return;
    if (!atp_valid(pkt, t->elements, job->nranks) || (h->kind == PART && !child)) {
        s->api->count(s, BAD, 1);
        return;
    }
    i = hash(job->index, h->seq, t->n);
    a = s->api->at(s, t->array, i);
    if (h->kind == PART) {
        part(s, job, a, i, pkt);
        return;
    }
    if (a->job == job->index + 1 && a->seq == h->seq)
        give(s, a, i);
    s->api->send(s, job, TRIB_CHILDREN, h, sizeof(*h), pkt->data, pkt->data_bytes);
}

const struct trib_switch_half atp_switch = {
    .counters = counters,
    .max_bytes = 4 * 65536, /* of one packet: the sum is read, written, and read to be sent */
    .max_ops = 16384,
    .open = atp_open,
    .close = atp_close,
    .job_open = job_open,
    .job_close = job_close,
    .packet = atp_packet,
};
