/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank makes of each message of its aggregation node. */
#include "aggregation/proto.h"
#include "host/coll/comm.h"
#include "tests/host/coll/coll_fixture.h"

#define DIM(a) (sizeof(a) / sizeof((a)[0]))
#define ALGOS  (1u << ALGO_SHARP | 1u << ALGO_RING)

static struct fixture *joined(void)
{
    struct fixture *g = fixture_new(3, 1, 4096, NULL);

    g->failover_back = true; /* the ring follows */
    fixture_connect(g, ALGOS, FIXTURE_RANKS);
    assert_true(fixture_run(g, PS_PER_S, true, fixture_ready));
    return g;
}

/* Of the node at which rank 0 has joined. */
static struct agg_ctl message(const struct comm *c, enum agg_type type)
{
    const struct agg *a = &c->agg[0];

    return (struct agg_ctl){.magic = RTE_BE32(AGG_MAGIC),
                            .version = AGG_VERSION,
                            .type = (uint8_t)type,
                            .tree = rte_cpu_to_be_16(a->tree),
                            .group = rte_cpu_to_be_32(a->group->id),
                            .attempt = rte_cpu_to_be_16(a->attempt),
                            .xid = rte_cpu_to_be_32(a->xid)};
}

static bool say(struct comm *c, const struct agg_ctl *m)
{
    return join_input(c, c->cfg.fab->nodes[c->agg[0].leaf].ip, m);
}

static void a_message_is_of_its_tree_and_group(void **state)
{
    struct fixture *g = joined();
    struct comm *c = g->comm[0];
    struct agg_ctl m = message(c, AGG_PROBE_REPLY);
    const uint32_t ip = c->cfg.fab->nodes[c->agg[0].leaf].ip;

    (void)state;
    c->agg[0].probes = 3;
    assert_true(join_input(c, ip, &m));
    assert_int_equal(c->agg[0].probes, 0);
    c->agg[0].probes = 3;
    assert_false(join_input(c, ip + 1, &m));
    m.version++;
    assert_false(join_input(c, ip, &m));
    m.version--, m.tree = rte_cpu_to_be_16((uint16_t)(c->agg[0].tree + 1));
    assert_false(join_input(c, ip, &m));
    m = message(c, AGG_PROBE_REPLY);
    m.group = rte_cpu_to_be_32(c->agg[0].group->id + 1);
    assert_false(join_input(c, ip, &m));
    assert_int_equal(c->agg[0].probes, 3);
    fixture_free(g, true);
}

/* In order of their numbers, which wrap; a message at least, and no more than was granted. */
static void a_window_is_what_the_last_message_says(void **state)
{
    static const struct {
        uint32_t number, slots, credit;
    } rows[] = {
        {5, 64, 64},          {5, 32, 32},          {4, 16, 32},          {6, AGG_MSG_PKTS - 1, 32},
        {6, AGG_MSG_PKTS, 8}, {7, 1000000, 0},      {0x80000006, 16, 16}, {7, 24, 16},
        {0x80000007, 24, 24}, {0xfffffffe, 40, 40}, {2, 48, 48},          {0xfffffffe, 56, 48},
    };
    struct fixture *g = joined();
    struct comm *c = g->comm[0];

    (void)state;
    assert_true(c->agg[0].window >= 64);
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct agg_ctl m = message(c, AGG_WINDOW);

        m.xid = rte_cpu_to_be_32(rows[i].number);
        m.window = rte_cpu_to_be_32(rows[i].slots);
        assert_true(say(c, &m));
        if (c->agg[0].credit != (rows[i].credit ? rows[i].credit : c->agg[0].window))
            fail_msg("row %u: %u slots", i, c->agg[0].credit);
    }
    c->agg[0].state = JOIN_LEAVING; /* then it has none */
    {
        struct agg_ctl m = message(c, AGG_WINDOW);

        m.xid = RTE_BE32(3);
        m.window = RTE_BE32(16);
        assert_true(say(c, &m));
    }
    assert_int_equal(c->agg[0].credit, 48);
    c->agg[0].state = JOIN_GRANTED;
    fixture_free(g, true);
}

static void an_answer_is_of_the_last_request(void **state)
{
    struct fixture *g = joined();
    struct comm *c = g->comm[0];
    struct agg *a = &c->agg[0];
    struct agg_ctl m = message(c, AGG_LEAVE_REPLY);

    (void)state;
    assert_true(say(c, &m)); /* it was not asked to leave */
    assert_int_equal(a->state, JOIN_GRANTED);
    m = message(c, AGG_JOIN_REPLY);
    m.status = RTE_BE16(AGG_E_KEY);
    assert_true(say(c, &m)); /* it has joined already */
    assert_int_equal(a->state, JOIN_GRANTED);
    assert_int_equal(comm_state(c), COMM_READY);
    a->state = JOIN_LEAVING;
    m = message(c, AGG_LEAVE_REPLY);
    m.xid = rte_cpu_to_be_32(a->xid + 1);
    assert_true(say(c, &m));
    assert_int_equal(a->state, JOIN_LEAVING);
    m.xid = rte_cpu_to_be_32(a->xid);
    assert_true(say(c, &m));
    assert_int_equal(a->state, JOIN_LEFT);
    assert_false(a->lost);
    a->state = JOIN_GRANTED;
    fixture_free(g, true);
}

/* A switch's fault makes ranks fail over, a member's ends the job; of a group before nothing follows. */
static void an_abort_is_of_this_attempt(void **state)
{
    static const struct {
        enum agg_status status;
        unsigned later;
        const char *text, *says; /* NULL: nothing happens */
        enum comm_state state;
    } rows[] = {
        {AGG_E_MEMBER_LOST, 1, "h2", NULL, COMM_READY},
        {AGG_E_MEMBER_LOST, 0, "h2 is gone", "aborted by switch0: h2 is gone (E_MEMBER_LOST)",
         COMM_FAILED},
        {AGG_E_MEMBER_LOST, 0, "", "aborted by switch0: a member is missing (E_MEMBER_LOST)",
         COMM_FAILED},
        {AGG_STATUS_COUNT, 0, "", "aborted by switch0: no reason given (unknown status)",
         COMM_FAILED},
        {AGG_E_PARENT, 0, "", "aborted by switch0: parent unreachable (E_PARENT)", COMM_READY},
    };

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct fixture *g = joined();
        struct comm *c = g->comm[0];
        struct agg_ctl m = message(c, AGG_ABORT);

        m.status = rte_cpu_to_be_16((uint16_t)rows[i].status);
        m.attempt = rte_cpu_to_be_16((uint16_t)(c->agg[0].attempt + rows[i].later));
        snprintf(m.text, sizeof(m.text), "%s", rows[i].text);
        assert_true(say(c, &m));
        assert_int_equal(comm_state(c), rows[i].state);
        assert_int_equal(c->agg[0].state, rows[i].says ? JOIN_LEFT : JOIN_GRANTED);
        assert_int_equal(c->failover.lost, rows[i].says != NULL);
        if (rows[i].says && rows[i].state == COMM_FAILED)
            assert_string_equal(comm_error(c), rows[i].says);
        else if (rows[i].says)
            assert_string_equal(c->failover.why, rows[i].says);
        assert_int_equal(c->failover.state == FAILOVER_ASKING,
                         rows[i].says && rows[i].state == COMM_READY);
        g->an_dead = true; /* it has not said so, and keeps the group */
        fixture_run(g, PS_PER_S, true, fixture_never);
        fixture_free(g, true);
    }
}

static void a_switch_that_has_forgotten_the_group_is_given_up(void **state)
{
    (void)state;
    for (unsigned knows = 0; knows < 2; knows++) {
        struct fixture *g = joined();
        struct comm *c = g->comm[0];
        struct agg_ctl m = message(c, AGG_PROBE_REPLY);

        m.status = knows ? RTE_BE16(AGG_OK) : RTE_BE16(AGG_E_NO_GROUP);
        assert_true(say(c, &m));
        assert_int_equal(c->failover.lost, !knows);
        assert_string_equal(c->failover.why, knows ? "" : "switch0 no longer knows the group");
        fixture_run(g, PS_PER_S, true, fixture_never);
        fixture_free(g, true);
    }
}

/* Of trees in use, and of parts that are not given up. */
static void all_have_joined_or_left(void **state)
{
    static const bool granted[JOIN_STATES] = {[JOIN_GRANTED] = true};
    static const bool left[JOIN_STATES] = {
        [JOIN_NONE] = true, [JOIN_REFUSED] = true, [JOIN_LEFT] = true};
    struct comm *c = calloc(1, sizeof(*c));

    (void)state;
    assert_non_null(c);
    c->n_aggs = 2;
    c->agg[1] = (struct agg){.kind = GROUP_RAIL, .state = JOIN_GRANTED};
    for (enum join_state s = 0; s < JOIN_STATES; s++) {
        c->agg[0] = (struct agg){.kind = GROUP_ALL, .state = s};
        assert_int_equal(join_all_granted(c), granted[s]);
        c->failover.stopped = PART_RAIL;
        assert_int_equal(join_all_granted(c), granted[s]);
        c->failover.stopped = PART_TREES;
        assert_true(join_all_granted(c));
        c->failover.stopped = 0;
        c->agg[0].out = true;
        assert_true(join_all_granted(c));
        c->agg[1].state = JOIN_LEFT;
        assert_int_equal(join_all_left(c), left[s]);
        c->agg[1].state = JOIN_GRANTED;
        assert_false(join_all_left(c));
    }
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_of_its_tree_and_group),
        cmocka_unit_test(a_window_is_what_the_last_message_says),
        cmocka_unit_test(an_answer_is_of_the_last_request),
        cmocka_unit_test(an_abort_is_of_this_attempt),
        cmocka_unit_test(a_switch_that_has_forgotten_the_group_is_given_up),
        cmocka_unit_test(all_have_joined_or_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
