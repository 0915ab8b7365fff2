/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of the agreement: what a rank reads is what another has written, and what a rank says of itself. */
#include "host/coll/recovery/failover_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIM(a) (sizeof(a) / sizeof((a)[0]))
#define RANKS  4

static struct comm *new_comm(void)
{
    struct comm *c = calloc(1, sizeof(*c));

    assert_non_null(c);
    c->cfg.nranks = RANKS;
    return c;
}

static void a_report_is_read_as_it_was_written(void **state)
{
    struct failover_msg m = {.seq = RTE_BE32(0x80000001), .flag = BEGUN | LAST, .why = "words"};
    struct failover_report p;

    (void)state;
    for (unsigned k = 0; k < COLL_TREES; k++)
        m.cut[k] = (struct failover_cut){.least = rte_cpu_to_be_32(100 + k),
                                         .more = rte_cpu_to_be_32(200 + k),
                                         .from = rte_cpu_to_be_32(300 + k)};
    m.cut[1].least = RTE_BE32(UINT32_MAX); /* it has finished */
    m.cut[2].least = RTE_BE32(UINT32_MAX - 1);
    memset(&p, 0xff, sizeof(p));
    failover_read_report(&m, &p);
    assert_true(p.here);
    assert_int_equal(p.ready, 0);
    assert_int_equal(p.flag, BEGUN | LAST);
    assert_int_equal(p.seq, 0x80000001);
    assert_int_equal(p.rail, 300);
    assert_string_equal(p.why, "words");
    for (unsigned k = 0; k < COLL_TREES; k++) {
        assert_true(p.done[k] == (k == 1   ? FAILOVER_ALL
                                  : k == 2 ? UINT32_MAX - 1
                                           : 100 + (uint64_t)k));
        assert_int_equal(p.fit[k], 200 + k);
    }
}

static void a_verdict_is_read_as_it_was_written(void **state)
{
    static const struct {
        uint32_t least, more, from;
        struct sched_cut cut;
    } rows[] = {
        {5, 0, 0, {5, 5, 0}},
        {5, 7, 3, {5, 12, 3}},
        {0, 1, RANKS, {0, 1, 0}}, /* a rank that is not there is another one */
        {0, 1, RANKS + 2, {0, 1, 2}},
        {UINT32_MAX - 1, 4, 1, {UINT32_MAX - 1, (uint64_t)UINT32_MAX + 3, 1}},
        {5, UINT32_MAX, 1, {5, FAILOVER_ALL, 1}},
        {UINT32_MAX, UINT32_MAX, 1, {FAILOVER_ALL, FAILOVER_ALL, 1}},
    };
    struct comm *c = new_comm();

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++)
        for (unsigned k = 0; k < COLL_TREES; k++)
            for (unsigned flag = 0; flag < 32; flag++) {
                struct failover_msg m = {.seq = RTE_BE32(9),
                                         .parts = rte_cpu_to_be_16(PART_MM | PART_BACK),
                                         .trees = 6,
                                         .back = 5,
                                         .protocol = 3,
                                         .flag = (uint8_t)flag};
                struct failover_round f;

                m.cut[k] = (struct failover_cut){.least = rte_cpu_to_be_32(rows[i].least),
                                                 .more = rte_cpu_to_be_32(rows[i].more),
                                                 .from = rte_cpu_to_be_32(rows[i].from)};
                failover_read_verdict(c, &m, &f);
                assert_int_equal(f.parts, PART_MM | PART_BACK);
                assert_int_equal(f.trees, 6);
                assert_int_equal(f.back, 5);
                assert_int_equal(f.protocol, 3);
                assert_int_equal(f.fewer, 0);
                assert_int_equal(f.seq, 9);
                assert_int_equal(f.whole, flag >> 3 & 1);
                assert_int_equal(f.again, flag >> 4 & 1);
                assert_int_equal(f.fit[k], rows[i].more);
                assert_true(f.how.cut[k].least == rows[i].cut.least);
                assert_true(f.how.cut[k].most == rows[i].cut.most);
                assert_int_equal(f.how.cut[k].from, rows[i].cut.from);
            }
    free(c);
}

/* Parts that nobody knows are none. */
static void parts_of_later_versions_are_left_out(void **state)
{
    const struct failover_msg m = {.parts = RTE_BE16(0xffff)};
    struct comm *c = new_comm();
    struct failover_round f;

    (void)state;
    failover_read_verdict(c, &m, &f);
    assert_int_equal(f.parts, PARTS_ALL | PART_BACK);
    free(c);
}

/* Operation 4 is the next; or operation 3 is at the head, with lanes of trees 1 and 2 and of a rail. */
static void a_rank_tells_how_far_it_is(void **state)
{
    struct lane lanes[] = {{.kind = LANE_AGG, .peer = GROUP_ALL, .chan = 1},
                           {.kind = LANE_AGG, .peer = GROUP_RAIL, .chan = 0},
                           {.kind = LANE_SEND, .peer = GROUP_ALL, .chan = 3},
                           {.kind = LANE_AGG, .peer = GROUP_ALL, .chan = 2}};
    static struct lane_run runs[DIM(lanes)];
    struct coll_req r = {
        .s = {.n_lanes = DIM(lanes), .lane = lanes}, .lane = runs, .id = {.seq = 3}};
    struct comm *c = new_comm();
    struct failover_report p;

    (void)state;
    c->exec.opseq = 4;
    snprintf(c->fit.less, sizeof(c->fit.less), "less");
    failover_own_report(c, &p);
    assert_true(p.here);
    assert_int_equal(p.seq, 4);
    assert_int_equal(p.flag, 0);
    assert_string_equal(p.why, "less");
    c->failover.parts = PART_MM;
    c->failover.last_parts = PART_MM | PART_TREES;
    failover_own_report(c, &p);
    assert_int_equal(p.flag, LAST);
    c->failover.last_parts = PART_TREES;
    for (unsigned l = 0; l < DIM(lanes); l++)
        runs[l].done = 10 + l;
    c->exec.head = &r;
    failover_own_report(c, &p);
    assert_int_equal(p.seq, 3);
    assert_int_equal(p.flag, 0);
    for (unsigned k = 0; k < COLL_TREES; k++)
        assert_true(p.done[k] == (k == 1 ? 10u : k == 2 ? 13u : 0u));
    c->exec.running = true;
    failover_own_report(c, &p);
    assert_int_equal(p.flag, BEGUN);
    free(c);
}

/* The grant on each tree that is in use, or that is joined again in this round. */
static void a_rank_tells_what_it_was_granted(void **state)
{
    static const struct {
        struct agg a;
        unsigned back;
        uint32_t fit;
    } rows[] = {
        {{.chan = 2, .state = JOIN_GRANTED, .window = 40}, 0, 40},
        {{.chan = 2, .state = JOIN_ASKED, .window = 40}, 0, 0},
        {{.chan = 2, .state = JOIN_REFUSED, .window = 40}, 0, 0},
        {{.chan = 2, .state = JOIN_GRANTED, .window = 40, .out = true}, 4, 0},
        {{.chan = 2, .state = JOIN_GRANTED, .window = 40, .lost = true}, 0, 0},
        {{.chan = 2, .state = JOIN_GRANTED, .window = 40, .lost = true}, 2, 0},
        {{.chan = 2, .state = JOIN_GRANTED, .window = 40, .lost = true}, 4, 40},
        {{.chan = 2, .state = JOIN_REFUSED, .window = 40, .lost = true}, 4, 0},
    };
    struct comm *c = new_comm();
    struct failover_report p;

    (void)state;
    c->n_aggs = 2;
    for (unsigned i = 0; i < DIM(rows); i++) {
        c->agg[0] = rows[i].a;
        c->agg[1] = (struct agg){.kind = GROUP_RAIL, .chan = 1, .state = JOIN_GRANTED, .window = 7};
        c->failover.back = rows[i].back;
        failover_own_report(c, &p);
        for (unsigned k = 0; k < COLL_TREES; k++)
            assert_int_equal(p.fit[k], k == 2 ? rows[i].fit : 0);
        assert_int_equal(p.rail, 7);
    }
    c->agg[1].state = JOIN_LEFT;
    failover_own_report(c, &p);
    assert_int_equal(p.rail, 0);
    free(c);
}

/* A round about grants waits for them, and one about trees that return for those. */
static void a_rank_reports_when_it_knows(void **state)
{
    static const struct {
        unsigned parts, stopped, back;
        bool lost, wanted, late;
        enum join_state state;
        bool can;
    } rows[] = {
        {PART_TREES, 0, 0, false, false, false, JOIN_ASKED, true},
        {PART_FIT, 0, 0, false, false, false, JOIN_ASKED, false},
        {PART_FIT, PART_MM, 0, false, false, false, JOIN_ASKED, false},
        {PART_FIT, PART_TREES, 0, false, false, false, JOIN_ASKED, true},
        {PART_FIT, 0, 0, false, false, false, JOIN_GRANTED, true},
        {PART_FIT, 0, 0, false, false, false, JOIN_REFUSED, true},
        {PART_BACK, 0, 1, true, false, false, JOIN_ASKED, false},
        {PART_BACK, 0, 1, true, true, false, JOIN_LEAVING, false},
        {PART_BACK, 0, 1, true, false, false, JOIN_LEAVING, true},
        {PART_BACK, 0, 1, true, false, false, JOIN_GRANTED, true},
        {PART_BACK, 0, 2, true, false, false, JOIN_ASKED, true}, /* another one's */
        {PART_BACK, 0, 1, false, false, false, JOIN_ASKED, true},
        {PART_BACK, 0, 1, true, false, true, JOIN_ASKED, true}, /* it has waited long enough */
    };

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct comm *c = new_comm();

        c->n_aggs = 1;
        c->agg[0] =
            (struct agg){.state = rows[i].state, .lost = rows[i].lost, .wanted = rows[i].wanted};
        c->failover.parts = rows[i].parts;
        c->failover.stopped = rows[i].stopped;
        c->failover.back = rows[i].back;
        c->failover.since_ns = 5;
        c->now_ns = 5 + 2 * RETRY_NS + rows[i].late;
        if (failover_can_report(c) != rows[i].can)
            fail_msg("row %u", i);
        free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_report_is_read_as_it_was_written),
        cmocka_unit_test(a_verdict_is_read_as_it_was_written),
        cmocka_unit_test(parts_of_later_versions_are_left_out),
        cmocka_unit_test(a_rank_tells_how_far_it_is),
        cmocka_unit_test(a_rank_tells_what_it_was_granted),
        cmocka_unit_test(a_rank_reports_when_it_knows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
