/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocols/switchml.h"

#include <string.h>

enum { SUMS, AGAIN, DUPLICATES, STALE, BAD };
static const char *const switch_counters[] = {"sums", "again", "duplicates", "stale", "bad", NULL};

enum { OPEN, FULL, DONE }; /* of an entry; FULL: sent up, no result yet */

struct switchml_entry {
    uint64_t seq;
    struct trib_set seen; /* children */
    uint16_t n_seen, count;
    int16_t ahead;
    uint8_t state, type;
    int32_t value[];
};

struct pool {
    struct trib_array *entries;
    uint32_t n; /* entries of both versions */
    uint32_t elements;
};

static int switch_job_open(struct trib_switch *s, struct trib_job *job)
{
    struct pool *p = calloc(1, sizeof(*p));
    uint32_t n = switchml_slots(s->key, s->payload, job->rate_bps, job->round_trip_ps);

    if (!p)
        return -ENOMEM;
    p->n = 2 * n;
    p->elements = switchml_elements(s->key, s->payload);
    p->entries =
        s->api->array(s, job, "pool", p->n,
                      ((uint32_t)sizeof(struct switchml_entry) + p->elements * 4 + 7) & ~7u);
    if (!p->entries) {
        free(p);
        return -ENOSPC;
    }
    for (uint32_t i = 0; i < p->n; i++) {
        s->api->take(s, job, p->entries, i);
        ((struct switchml_entry *)s->api->at(s, p->entries, i))->seq = i;
    }
    job->self = p;
    return 0;
}

static void switch_job_close(struct trib_switch *s, struct trib_job *job)
{
    struct pool *p = job->self;

    for (uint32_t i = 0; i < p->n; i++)
        s->api->give(s, job, p->entries, i);
    free(p);
    job->self = NULL;
}

static void entry_send(struct trib_switch *s, struct trib_job *job, const struct switchml_entry *e,
                       int to, uint8_t kind)
{
    const struct pool *p = job->self;
    struct switchml_head h = {.seq = e->seq,
                              .kind = kind,
                              .type = e->type,
                              .slots = (uint16_t)p->n / 2,
                              .count = e->count,
                              .ahead = e->ahead};

    s->api->work(s, e->count * 4u, 0);
    s->api->send(s, job, to, &h, sizeof(h), e->value, e->count * 4u);
}

static void entry_add(struct trib_switch *s, struct trib_job *job, struct switchml_entry *e,
                      const struct switchml_head *h, const struct trib_packet *pkt)
{
    if (!e->n_seen) {
        e->type = h->type;
        e->count = h->count;
        e->ahead = h->ahead;
        memcpy(e->value, pkt->data, h->count * 4u);
        s->api->work(s, h->count * 4u, 1);
    } else {
        s->api->reduce(s, e->value, pkt->data, h->count, TRIB_INT32, TRIB_SUM);
        e->ahead = h->ahead > e->ahead ? h->ahead : e->ahead;
        s->api->work(s, 0, 1);
    }
    if (++e->n_seen < job->n_children)
        return;
    s->api->count(s, SUMS, 1);
    e->state = job->root ? DONE : FULL;
    entry_send(s, job, e, job->root ? TRIB_CHILDREN : TRIB_PARENT, job->root ? DOWN : UP);
}

static void from_child(struct trib_switch *s, struct trib_job *job, struct switchml_entry *e,
                       const struct switchml_head *h, const struct trib_packet *pkt)
{
    const struct pool *p = job->self;
    unsigned child = TRIB_INDEX(pkt->from);

    if (h->seq == e->seq + p->n && e->state == DONE) {
        e->seq = h->seq;
        e->state = OPEN;
        e->n_seen = 0;
        e->seen = (struct trib_set){0};
    }
    if (h->seq != e->seq) {
        s->api->count(s, h->seq < e->seq ? STALE : BAD, 1);
    } else if (!trib_set_has(&e->seen, child)) {
        if (e->n_seen && (e->type != h->type || e->count != h->count)) {
            s->api->count(s, BAD, 1);
            return;
        }
        trib_set_add(&e->seen, child);
        entry_add(s, job, e, h, pkt);
    } else if (e->state == OPEN) {
        s->api->count(s, DUPLICATES, 1);
    } else { /* the sum or its result was lost: send again */
        s->api->count(s, AGAIN, 1);
        entry_send(s, job, e, e->state == DONE ? pkt->from : TRIB_PARENT,
                   e->state == DONE ? DOWN : UP);
    }
}

static void from_parent(struct trib_switch *s, struct trib_job *job, struct switchml_entry *e,
                        const struct switchml_head *h, const struct trib_packet *pkt)
{
    if (h->seq != e->seq || e->state != FULL) {
        s->api->count(s, STALE, 1);
        return;
    }
    if (h->count != e->count || h->type != e->type) {
        s->api->count(s, BAD, 1);
        return;
    }
    memcpy(e->value, pkt->data, h->count * 4u);
    s->api->work(s, h->count * 4u, 1);
    e->ahead = h->ahead;
    e->state = DONE;
    entry_send(s, job, e, TRIB_CHILDREN, DOWN);
}

static void switch_packet(struct trib_switch *s, struct trib_job *job,
                          const struct trib_packet *pkt)
{
    const struct pool *p = job->self;
    const struct switchml_head *h = pkt->head;
    bool up = TRIB_IS(pkt->from, TRIB_CHILD(0)) && TRIB_INDEX(pkt->from) < (int)job->n_children;
    struct switchml_entry *e;

    if ((!up && pkt->from != TRIB_PARENT) ||
        !switchml_valid(pkt, up ? UP : DOWN, p->n / 2, p->elements)) {
        s->api->count(s, BAD, 1);
        return;
    }
    e = s->api->at(s, p->entries, (uint32_t)(h->seq & (p->n - 1)));
    if (up)
        from_child(s, job, e, h, pkt);
    else
        from_parent(s, job, e, h, pkt);
}

const struct trib_switch_half switchml_switch = {
    .counters = switch_counters,
    .max_bytes = 4 * 65536, /* per packet: the sum is read, written, and read again to send it */
    .max_ops = 16384 + 1,
    .job_open = switch_job_open,
    .job_close = switch_job_close,
    .packet = switch_packet,
};
