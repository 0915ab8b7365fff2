/* SPDX-License-Identifier: BSD-3-Clause */
/* A lost tree is joined again in those states of its group in which that makes sense, and in no other; by rank 0 of a
 * communicator with a switch. */
#include "host/coll/comm.h"
#include "host/coll/recovery/failover_priv.h"
#include "tests/host/coll/coll_fixture.h"

static struct fixture *three_ranks(void)
{
    struct fixture *g = fixture_new(3, 1, 4096, NULL);

    fixture_connect(g, 1u << ALGO_SHARP, FIXTURE_RANKS);
    assert_true(fixture_run(g, PS_PER_S, true, fixture_ready));
    assert_int_equal(g->comm[0]->n_aggs, 1);
    assert_int_equal(g->comm[0]->agg[0].state, JOIN_GRANTED);
    return g;
}

/* The switch knows nothing of what was made of rank 0's states: its own group ends by name. */
static void give_back(struct fixture *g)
{
    struct comm *c = g->comm[0];

    c->failover.back = 0;
    c->closing = c->agg[0].lost = c->agg[0].wanted = false;
    c->agg[0].state = JOIN_LEFT;
    g->an_dead = true;
    fixture_free(g, true);
}

/* What becomes of a group's state. */
static const struct {
    enum join_state before, after;
    bool again, wanted;
} states[] = {
    {JOIN_NONE, JOIN_ASKED, true, false},       {JOIN_REFUSED, JOIN_ASKED, true, false},
    {JOIN_LEFT, JOIN_ASKED, true, false},       {JOIN_ASKED, JOIN_ASKED, false, false},
    {JOIN_GRANTED, JOIN_GRANTED, false, false}, {JOIN_LEAVING, JOIN_LEAVING, false, true},
};

static void a_lost_tree_is_joined_once_unless_it_is_still_to_be_left(void **state)
{
    struct fixture *g = three_ranks();
    struct comm *c = g->comm[0];
    struct agg *a = &c->agg[0];

    (void)state;
    for (unsigned i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        uint32_t xid = a->xid;

        a->lost = true;
        a->wanted = false;
        a->state = states[i].before;
        c->failover.back = agg_bit(a);
        rejoin_start(c);
        assert_int_equal(a->state, states[i].after);
        assert_int_equal(a->xid - xid, states[i].again);
        assert_int_equal(a->wanted, states[i].wanted);
    }
    give_back(g);
}

static void a_tree_that_is_left_is_joined_again_where_that_is_wanted(void **state)
{
    static const struct {
        bool lost, wanted, closing;
        enum join_state before, after;
    } left[] = {
        {true, true, false, JOIN_LEFT, JOIN_ASKED},      {true, false, false, JOIN_LEFT, JOIN_LEFT},
        {false, true, false, JOIN_LEFT, JOIN_LEFT},      {true, true, true, JOIN_LEFT, JOIN_LEFT},
        {true, true, false, JOIN_REFUSED, JOIN_REFUSED},
    };
    struct fixture *g = three_ranks();
    struct comm *c = g->comm[0];
    struct agg *a = &c->agg[0];

    (void)state;
    for (unsigned i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
        a->lost = left[i].lost;
        a->wanted = left[i].wanted;
        a->state = left[i].before;
        c->closing = left[i].closing;
        rejoin_left(c, a);
        assert_int_equal(a->state, left[i].after);
    }
    give_back(g);
}

/* ---- what the ranks tell each other ---- */

/* Every rank has the tree again; none knows it of the others. */
static struct fixture *three_ranks_with_a_tree_again(void)
{
    struct fixture *g = three_ranks();

    g->comm[0]->failover.report = calloc(g->n, sizeof(*g->comm[0]->failover.report));
    assert_non_null(g->comm[0]->failover.report);
    for (unsigned r = 0; r < g->n; r++) {
        g->comm[r]->agg[0].lost = g->comm[r]->failover.missing = true;
        g->comm[r]->failover.trees = 0;
    }
    return g;
}

static bool rank_0_hears(struct fixture *g, bool looks)
{
    struct comm *c = g->comm[1];
    struct failover_report *p = &g->comm[0]->failover.report[1];

    p->ready = 0;
    c->failover.look_ps = 0;
    (looks ? rejoin_look : rejoin_answered)(c);
    fixture_run(g, 100 * PS_PER_US, true, fixture_never);
    return p->ready == 1;
}

static void a_rank_tells_rank_0_of_a_tree_that_it_has_again(void **state)
{
    static const struct {
        bool lost, closing, asking, ready;
        bool tells;
    } rows[] = {
        {true, false, false, true, true},   {false, false, false, true, false},
        {true, true, false, true, false},   {true, false, true, true, false},
        {true, false, false, false, false},
    };
    struct fixture *g = three_ranks_with_a_tree_again();
    struct comm *c = g->comm[1];

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (unsigned looks = 0; looks < 2; looks++) {
            enum failover_state was = c->failover.state;
            bool tells;

            c->agg[0].lost = rows[i].lost;
            c->closing = rows[i].closing;
            c->failover.state = rows[i].asking ? FAILOVER_ASKING : was;
            c->state = rows[i].ready ? COMM_READY : COMM_CONNECTING;
            tells = rank_0_hears(g, looks);
            c->failover.state = was;
            c->state = COMM_READY;
            c->closing = false;
            if (tells != rows[i].tells)
                fail_msg("row %u, %u: found %u", i, looks, tells);
        }
    for (unsigned r = 0; r < g->n; r++)
        g->comm[r]->agg[0].lost = g->comm[r]->failover.missing = false;
    fixture_free(g, true);
}

/* Rank 0 waits until it has heard of all: then one round gives the tree back to every rank. */
static void the_tree_is_in_use_again_when_the_last_rank_has_it(void **state)
{
    for (unsigned last = 0; last < 3; last++) {
        struct fixture *g = three_ranks_with_a_tree_again();

        (void)state;
        if (!last) /* what it has itself it need not be told */
            g->comm[0]->agg[0].state = JOIN_LEFT;
        for (unsigned k = 1; k <= 3; k++) {
            if (!last && k == 3)
                g->comm[0]->agg[0].state = JOIN_GRANTED;
            rejoin_answered(g->comm[(last + k) % 3]);
            fixture_run(g, PS_PER_MS, true, fixture_never);
            for (unsigned r = 0; r < 3; r++) {
                assert_int_equal(g->comm[r]->agg[0].lost, k < 3);
                assert_int_equal(g->comm[r]->failover.trees, k == 3);
                assert_int_equal(g->comm[r]->failover.n_rounds, k == 3);
                assert_int_equal(comm_lacks_trees(g->comm[r], ALGO_SHARP), k < 3);
            }
        }
        fixture_free(g, true);
    }
}

/* Rank 0 has begun no round yet and keeps no reports, so it ignores what a rank says of trees. */
static void rank_0_without_reports_takes_none(void **state)
{
    struct fixture *g = three_ranks_with_a_tree_again();
    struct failover_report *p = g->comm[0]->failover.report;

    (void)state;
    g->comm[0]->failover.report = NULL;
    rejoin_ready(g->comm[0], 1, 1);
    rejoin_answered(g->comm[0]);
    assert_int_equal(g->comm[0]->failover.n_rounds, 0);
    assert_int_equal(g->comm[0]->failover.back, 0);
    g->comm[0]->failover.report = p;
    for (unsigned r = 0; r < g->n; r++)
        g->comm[r]->agg[0].lost = g->comm[r]->failover.missing = false;
    fixture_free(g, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_tree_is_joined_once_unless_it_is_still_to_be_left),
        cmocka_unit_test(a_tree_that_is_left_is_joined_again_where_that_is_wanted),
        cmocka_unit_test(a_rank_tells_rank_0_of_a_tree_that_it_has_again),
        cmocka_unit_test(the_tree_is_in_use_again_when_the_last_rank_has_it),
        cmocka_unit_test(rank_0_without_reports_takes_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
