/* SPDX-License-Identifier: BSD-3-Clause */
/* A protocol of one packet a rank: switches add up what their children send, the root sends the sum
 * down. What a rank or a switch does besides is said by `act`. */
#ifndef TRIB_TESTS_PROTOCOLS_CHECK_SUMMING_H
#define TRIB_TESTS_PROTOCOLS_CHECK_SUMMING_H

#include "protocols/check/check_fabric_priv.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum act {
    ACT_RIGHT,
    ACT_ROUTES, /* packets by every way, which nobody needs */
    ACT_NO_START,
    ACT_NO_RANK,
    ACT_NO_JOB,
    ACT_FAIL,
    ACT_BREAK, /* sends where it may not */
    ACT_WRONG,
    ACT_BEFORE, /* writes `offset` bytes before and behind its vectors */
    ACT_BEHIND,
    ACT_BEFORE_SEND,
    ACT_BEHIND_SEND,
    ACT_ABORT, /* the switch */
    ACT_KEEP,  /* a slot */
    ACT_UNNAMED,
    ACT_SLOW,  /* a timer of `offset` ps, for ever */
    ACT_SILENT /* nothing is sent */
};
static enum act act;
static int64_t offset;

/* Of a packet. */
enum { K_VALUE, K_SUM, K_ROUTE, K_THROUGH, K_UNNAMED };

static struct {
    unsigned packets, marked;
    char calls[2048]; /* starts and closes: "s0.1" is rank 1 of job 0 */
} seen;

/* What is open of a rank. */
struct open_op {
    struct trib_op op;
};

static void say(const char *fmt, unsigned a, unsigned b)
{
    size_t n = strlen(seen.calls);

    snprintf(seen.calls + n, sizeof(seen.calls) - n, fmt, a, b);
}

static int sum_open(struct trib_rank *r)
{
    r->self = calloc(1, sizeof(struct open_op));
    if (act == ACT_NO_RANK && r->rank == 1) {
        free(r->self);
        return -ENOSPC;
    }
    return r->self ? 0 : -ENOMEM;
}

static void sum_close(struct trib_rank *r)
{
    say("c%u.%u ", r->job, r->rank);
    free(r->self);
}

static void send_routes(struct trib_rank *r)
{
    const uint8_t head[9] = {K_ROUTE, (uint8_t)r->rank, 2, 3, 4, 5, 6, 7, 8},
                  through[1] = {K_THROUGH};
    const uint32_t last = r->nranks - 1;

    if (r->rank)
        return;
    r->api->send(r, TRIB_RANK((int)last), head, 9, NULL, 0);
    r->api->send(r, TRIB_RANK(1), head, 1, head, 3);
    r->api->send(r, TRIB_SWITCH_OF((int)last), head, 2, NULL, 0);
    r->api->send_through(r, last, through, 1, head, 5);
}

static void write_outside(const struct trib_op *op)
{
    uint8_t *recv = op->recv, *send = (uint8_t *)(uintptr_t)op->send;

    if (act == ACT_BEFORE)
        recv[-offset] ^= 1;
    if (act == ACT_BEHIND)
        recv[4 + offset] ^= 1;
    if (act == ACT_BEFORE_SEND)
        send[-offset] ^= 1;
    if (act == ACT_BEHIND_SEND)
        send[4 + offset] ^= 1;
}

static int sum_start(struct trib_rank *r, const struct trib_op *op)
{
    struct open_op *o = r->self;
    const uint8_t head[2] = {act == ACT_UNNAMED ? K_UNNAMED : K_VALUE, (uint8_t)op->number};

    say("s%u.%u ", r->job, r->rank);
    o->op = *op;
    if (act == ACT_NO_START && r->rank == 1)
        return -(int)offset;
    if (act == ACT_FAIL && r->rank == 1)
        (r->api->fail)(r, "because");
    if (act == ACT_BREAK && r->rank == 1)
        r->api->done(r), r->api->done(r);
    if (act == ACT_SLOW)
        r->api->timer(r, r->api->now(r) + offset);
    if (act == ACT_SLOW || act == ACT_SILENT)
        return 0;
    write_outside(op);
    r->api->send(r, TRIB_SWITCH, head, 2, op->send, 4);
    if (act == ACT_ROUTES)
        send_routes(r);
    return 0;
}

static void sum_packet(struct trib_rank *r, const struct trib_packet *p)
{
    struct open_op *o = r->self;
    const uint8_t *head = p->head;

    seen.packets++;
    seen.marked += p->marked;
    if (!p->head_bytes || head[0] != K_SUM || p->data_bytes != 4 || !o->op.recv)
        return;
    memcpy(o->op.recv, p->data, 4);
    if (act == ACT_WRONG && r->rank == 1)
        ((uint8_t *)o->op.recv)[0] ^= 1;
    o->op.recv = NULL;
    r->api->done(r);
}

static void sum_room(struct trib_rank *r)
{
    (void)r;
}

static void sum_timer(struct trib_rank *r)
{
    r->api->timer(r, r->api->now(r) + offset);
}

struct sum {
    int32_t value;
    uint32_t n;
};

static int sum_job_open(struct trib_switch *s, struct trib_job *job)
{
    say("o%u.%u ", job->n_children, job->n_below + (job->root ? 100 : 0));
    if (act == ACT_NO_JOB && job->root)
        return -ENOSPC;
    job->self = s->api->array(s, job, "sum", 2, sizeof(struct sum));
    return job->self ? 0 : -ENOSPC;
}

static void sum_job_close(struct trib_switch *s, struct trib_job *job)
{
    (void)s;
    say("j%u.%u ", job->n_children, job->n_below);
}

static void add(struct trib_switch *s, struct trib_job *job, const struct trib_packet *p)
{
    struct sum *sum = s->api->at(s, job->self, 0);
    uint8_t head[2] = {K_VALUE, ((const uint8_t *)p->head)[1]};

    if (p->data_bytes != 4)
        return;
    s->api->reduce(s, &sum->value, p->data, 1, TRIB_INT32, TRIB_SUM);
    if (++sum->n < job->n_children)
        return;
    head[0] = job->root ? K_SUM : K_VALUE;
    s->api->send(s, job, job->root ? TRIB_CHILDREN : TRIB_PARENT, head, 2, &sum->value, 4);
    memset(sum, 0, sizeof(*sum));
}

static void sum_at_switch(struct trib_switch *s, struct trib_job *job, const struct trib_packet *p)
{
    const uint8_t *head = p->head;

    seen.packets++;
    seen.marked += p->marked;
    if (act == ACT_ABORT && TRIB_IS(p->from, TRIB_CHILD(0)) && (!job->root || offset))
        s->api->abort(s, job, offset == 2 ? "protocol of its own" : "because");
    if (act == ACT_KEEP)
        s->api->take(s, job, job->self, 1);
    if (act == ACT_KEEP)
        act = ACT_RIGHT;
    if (p->head_bytes < 1)
        return;
    if (head[0] == K_THROUGH || head[0] == K_UNNAMED)
        s->api->forward(s, job, NULL, 0, NULL, 0);
    if (head[0] == K_ROUTE && p->head_bytes == 2)
        s->api->send(s, job, TRIB_RANK((int)job->nranks - 1), head, 1, NULL, 0);
    if (head[0] == K_SUM && p->head_bytes == 2)
        s->api->send(s, job, TRIB_CHILDREN, p->head, 2, p->data, p->data_bytes);
    if (head[0] == K_VALUE && p->head_bytes == 2)
        add(s, job, p);
}

static bool sum_supports(enum trib_type type, enum trib_sum op)
{
    return type == TRIB_INT32 && op == TRIB_SUM;
}

static const struct trib_switch_half sum_switch = {.max_bytes = 64,
                                                   .max_ops = 16,
                                                   .job_open = sum_job_open,
                                                   .job_close = sum_job_close,
                                                   .packet = sum_at_switch};
static const struct trib_rank_half sum_rank = {.open = sum_open,
                                               .close = sum_close,
                                               .start = sum_start,
                                               .packet = sum_packet,
                                               .room = sum_room,
                                               .timer = sum_timer};
static const struct trib_protocol summing = {.version = TRIB_PROTOCOL_VERSION,
                                             .name = "summing",
                                             .supports = sum_supports,
                                             .sw = &sum_switch,
                                             .rank = &sum_rank};

/* One job of three ranks at one switch, or of five at two leafs; 1 Gb/s, a us of latency. */
static struct check_case small_case(unsigned leafs, unsigned ops)
{
    struct check_case c = {.protocol = &summing,
                           .property = P_EXACT,
                           .seed = 1,
                           .n_leafs = leafs,
                           .n_jobs = 1,
                           .payload = 256,
                           .window = 16,
                           .buffers = 16,
                           .rate_bps = 1000000000,
                           .latency_ps = 1000000,
                           .memory = 1 << 20,
                           .dies = -1};

    c.job[0].nranks = leafs > 1 ? 5 : 3;
    c.job[0].n_ops = ops;
    for (unsigned r = 0; r < c.job[0].nranks; r++)
        c.job[0].leaf[r] = leafs > 1 ? r % 2 : 0;
    for (unsigned i = 0; i < ops; i++)
        c.job[0].op[i] = (struct case_op){.count = 1, .type = TRIB_INT32, .in_place = i % 2};
    return c;
}

/* Its trace, which the caller frees; NULL: not asked. */
static struct fabric_result run_case(const struct check_case *c, enum act what, int64_t by,
                                     char **trace)
{
    struct fabric_result r;
    volatile uint64_t progress = 99;
    size_t size = 0;
    FILE *to = trace ? open_memstream(trace, &size) : NULL;

    memset(&seen, 0, sizeof(seen));
    act = what;
    offset = by;
    fabric_run(c, c->protocol, to, &progress, &r);
    if (to)
        fclose(to);
    assert_true(progress == r.packets);
    free(r.hash);
    r.hash = NULL;
    return r;
}

#endif
