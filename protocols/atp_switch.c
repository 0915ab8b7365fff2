/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocols/atp.h"

#include <tributary/table.h>

#include <string.h>

#define OLD 16 /* round trips after which another block may take an aggregator */

enum { SUMS, COLLISIONS, UNSUMMED, DUPLICATES, EVICTED, BAD };
static const char *const counters[] = {"sums",    "collisions", "unsummed", "duplicates",
                                       "evicted", "bad",        NULL};

#define PASSED 4 /* blocks that an aggregator remembers, of which parts have passed it */

struct atp_aggregator {
    struct trib_slot slot;
    struct atp_head head; /* of its sum */
    struct {
        uint32_t seq; /* its low half */
        uint32_t job; /* trib_job.index + 1; 0: none */
    } passed[PASSED]; /* the latest first */
    int32_t value[];
};

static int atp_open(struct trib_switch *s)
{
    return trib_table_open(
        s, sizeof(struct trib_table), "aggregators", (uint32_t)s->key[KEY_AGGREGATORS],
        (uint32_t)sizeof(struct atp_aggregator) + 4 * atp_elements(s->key, s->payload));
}

/* Sends the aggregator's sum to the server of the present packet. */
static void pass_on(struct trib_switch *s, struct trib_job *job, const struct atp_aggregator *a)
{
    s->api->work(s, a->head.count * 4u, 0);
    s->api->forward(s, job, &a->head, sizeof(a->head), a->value, a->head.count * 4u);
}

/* Whether the aggregator has another block that must stay. It need not if it is of the same job and
 * a rank has its result already, or if it is old: ranks that still wait send the lost parts again.
 */
static bool stands_in_the_way(struct trib_switch *s, const struct trib_job *job,
                              const struct atp_aggregator *a, const struct atp_head *h)
{
    if (!a->slot.job)
        return false;
    if (trib_slot_is_of(&a->slot, job) && h->seq >= h->window && a->head.seq <= h->seq - h->window)
        return false;
    return s->api->now(s) - a->slot.since_ps < OLD * (job->round_trip_ps + job->notice_ps);
}

static void packet_pass(struct trib_switch *s, struct trib_job *job, const struct trib_packet *pkt,
                        uint8_t flags)
{
    struct atp_head h = *(const struct atp_head *)pkt->head;

    h.flags |= flags | (pkt->marked ? MARKED : 0);
    s->api->count(s, UNSUMMED, 1);
    s->api->forward(s, job, &h, sizeof(h), NULL, 0);
}

/* Whether a part of the block has passed unsummed, because another block had the aggregator. Then
 * the other parts pass too: in the aggregator they would wait for that part until their ranks see a
 * gap. */
static bool has_passed(const struct trib_job *job, const struct atp_aggregator *a,
                       const struct atp_head *h)
{
    for (unsigned i = 0; i < PASSED; i++)
        if (a->passed[i].job == job->index + 1 && a->passed[i].seq == (uint32_t)h->seq)
            return true;
    return false;
}

static void atp_switch_pass(struct trib_switch *s, struct trib_job *job, struct atp_aggregator *a,
                            const struct trib_packet *pkt)
{
    const struct atp_head *h = pkt->head;

    if (!has_passed(job, a, h)) {
        memmove(a->passed + 1, a->passed, sizeof(a->passed) - sizeof(a->passed[0]));
        a->passed[0].seq = (uint32_t)h->seq;
        a->passed[0].job = job->index + 1;
        s->api->work(s, sizeof(a->passed), 0);
    }
    s->api->count(s, COLLISIONS, 1);
    packet_pass(s, job, pkt, COLLISION);
}

static void atp_switch_begin(struct trib_switch *s, struct trib_job *job, struct atp_aggregator *a,
                             const struct trib_packet *pkt)
{
    const struct atp_head *h = pkt->head;

    if (a->slot.job) {
        s->api->count(s, EVICTED, 1);
        trib_table_give(s, &a->slot);
    }
    trib_table_take(s, job, &a->slot);
    a->head = *h;
    a->head.flags = pkt->marked ? MARKED : 0;
    memcpy(a->value, pkt->data, h->count * 4u);
    s->api->work(s, h->count * 4u, 0);
}

static void sum(struct trib_switch *s, struct trib_job *job, struct atp_aggregator *a,
                const struct trib_packet *pkt)
{
    const struct atp_head *h = pkt->head;
    bool twice = trib_set_meets(&h->ranks, &a->head.ranks);

    if (h->count != a->head.count || h->type != a->head.type || h->fan_in != a->head.fan_in) {
        s->api->count(s, BAD, 1);
        return;
    }
    if (twice) {
        s->api->count(s, DUPLICATES, 1);
    } else {
        trib_set_join(&a->head.ranks, &h->ranks);
        a->head.flags |= pkt->marked ? MARKED : 0;
        s->api->reduce(s, a->value, pkt->data, h->count, TRIB_INT32, TRIB_SUM);
    }
    if (trib_set_count(&a->head.ranks) < h->fan_in)
        return;
    s->api->count(s, SUMS, !twice);
    pass_on(s, job, a);
}

static void part(struct trib_switch *s, struct trib_job *job, struct atp_aggregator *a, bool its,
                 const struct trib_packet *pkt)
{
    const struct atp_head *h = pkt->head;

    if (trib_set_count(&h->ranks) != 1) {
        s->api->count(s, BAD, 1);
    } else if (h->flags & (RESEND | FLOATS) || h->fan_in < 2) {
        if (its) {
            pass_on(s, job, a);
            trib_table_give(s, &a->slot);
        }
        packet_pass(s, job, pkt, 0);
    } else if (its) {
        sum(s, job, a, pkt);
    } else if (has_passed(job, a, h) || stands_in_the_way(s, job, a, h)) {
        atp_switch_pass(s, job, a, pkt);
    } else {
        atp_switch_begin(s, job, a, pkt);
    }
}

static void atp_packet(struct trib_switch *s, struct trib_job *job, const struct trib_packet *pkt)
{
    const struct atp_head *h = pkt->head;
    struct atp_aggregator *a;
    bool its;

    if (pkt->from == TRIB_PARENT) /* a multicast that comes down from a switch above */
        return;
    if (!atp_valid(pkt, atp_elements(s->key, s->payload), job->n_below) ||
        (h->kind == PART && !TRIB_IS(pkt->from, TRIB_CHILD(0)))) {
        s->api->count(s, BAD, 1);
        return;
    }
    a = trib_table_slot(s, job, h->seq);
    its = trib_slot_is_of(&a->slot, job) && a->head.seq == h->seq;
    if (h->kind == PART) {
        part(s, job, a, its, pkt);
        return;
    }
    if (its)
        trib_table_give(s, &a->slot);
    s->api->send(s, job, TRIB_CHILDREN, h, sizeof(*h), pkt->data, pkt->data_bytes);
}

const struct trib_switch_half atp_switch = {
    .counters = counters,
    .max_bytes = 4 * 65536, /* per packet: the sum is read, written, and read again to send it */
    .max_ops = 16384,
    .open = atp_open,
    .close = trib_table_close,
    .job_open = trib_table_job_open,
    .job_close = trib_table_job_close,
    .packet = atp_packet,
};
