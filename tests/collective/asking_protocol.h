/* SPDX-License-Identifier: BSD-3-Clause */
/* Protocols for tests of the model: their formula writes down what it is asked with, asks what a test wants it to ask, and says
 * what the test wants it to say. They are never run. */
#ifndef TRIB_TESTS_COLLECTIVE_ASKING_PROTOCOL_H
#define TRIB_TESTS_COLLECTIVE_ASKING_PROTOCOL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <tributary/protocol.h>

#define RANKS 4u

static struct {
    int64_t says;                                    /* the formula */
    double per;                                      /* and so much for each element */
    unsigned within;                                 /* per cent */
    enum { NOTHING, ACROSS, BUSIEST, BETWEEN } asks; /* for ways between ranks */
    struct trib_exchange x[2];
    unsigned n_x; /* exchanges that it asks for */
    bool climbs;  /* its formula has the rate of the tree */
    bool refuses;
} does;
static struct {
    struct trib_model m;
    uint64_t count[2];
    unsigned n;
    int64_t up, down, x[2];
} was;

static bool supports(enum trib_type type, enum trib_sum op)
{
    (void)type, (void)op;
    return !does.refuses;
}

static int64_t formula(const struct trib_model *m)
{
    if (m->exchange) { /* else it is asked whether it climbs, of no fabric */
        was.m = *m;
        was.count[was.n++ % 2] = m->count;
        if (does.asks == ACROSS)
            assert_true(m->across_ps(m, 100) > 0);
        if (does.asks == BUSIEST)
            assert_true(m->busiest(m, RANKS, true, NULL) > 0);
        if (does.asks == BETWEEN)
            assert_true(m->between(m, RANKS, 1) > 0);
        for (unsigned i = 0; i < does.n_x; i++)
            was.x[i] = m->exchange(m, &does.x[i]);
        was.up = m->up_ps(m, m->payload);
        was.down = m->down_ps(m, m->payload);
    }
    return does.says + (int64_t)(does.per * (double)m->count) +
           (does.climbs && m->tree_bps ? (int64_t)(1e18 / (double)m->tree_bps) : 0);
}

static unsigned within(const struct trib_model *m)
{
    (void)m;
    return does.within;
}

static int start(struct trib_rank *r, const struct trib_op *op)
{
    (void)r, (void)op;
    return 0;
}

static void packet(struct trib_rank *r, const struct trib_packet *p)
{
    (void)r, (void)p;
}

static void room(struct trib_rank *r)
{
    (void)r;
}

static int job_open(struct trib_switch *s, struct trib_job *j)
{
    (void)s, (void)j;
    return 0;
}

static void job_close(struct trib_switch *s, struct trib_job *j)
{
    (void)s, (void)j;
}

static void sw_packet(struct trib_switch *s, struct trib_job *j, const struct trib_packet *p)
{
    (void)s, (void)j, (void)p;
}

static const struct trib_rank_half rank_half = {.start = start, .packet = packet, .room = room};
static const struct trib_switch_half switch_half = {
    .job_open = job_open, .job_close = job_close, .packet = sw_packet};
static const struct trib_protocol by_ranks = {.version = TRIB_PROTOCOL_VERSION,
                                              .name = "by-ranks",
                                              .supports = supports,
                                              .rank = &rank_half,
                                              .model = formula,
                                              .within = within},
                                  by_switch = {.version = TRIB_PROTOCOL_VERSION,
                                               .name = "by-switch",
                                               .supports = supports,
                                               .rank = &rank_half,
                                               .sw = &switch_half,
                                               .model = formula,
                                               .within = within},
                                  without = {.version = TRIB_PROTOCOL_VERSION,
                                             .name = "without",
                                             .supports = supports,
                                             .rank = &rank_half};

#endif
