/* SPDX-License-Identifier: BSD-3-Clause */
/* Which trees a round gives up, when they are asked for again, and when they return: the decisions of one rank, without a network. */
#include "host/coll/recovery/failover_priv.h"

#include "base/units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RANKS 3
#define TREES 4
#define RAIL  TREES /* after them, a tree of a rail */
#define ALL   0xfu
#define LOOK  PS_PER_MS

struct fixture {
    struct comm *c;
    struct failover_report report[RANKS];
    int64_t now;
};

static int64_t fixture_now(void *ctx)
{
    return ((struct fixture *)ctx)->now;
}

/* All trees are granted and in use. */
static struct comm *set_up(struct fixture *b)
{
    struct comm *c = calloc(1, sizeof(*c));

    assert_non_null(c);
    *b = (struct fixture){.c = c, .now = 5 * PS_PER_S};
    c->cfg.nranks = RANKS;
    c->cfg.now_ps = fixture_now;
    c->cfg.now_ctx = b;
    c->state = COMM_READY;
    c->failover.report = b->report;
    c->failover.first = c->failover.trees = ALL;
    c->n_aggs = TREES + 1;
    for (unsigned i = 0; i <= TREES; i++) {
        c->agg[i] = (struct agg){.index = i,
                                 .kind = i == RAIL ? GROUP_RAIL : GROUP_ALL,
                                 .chan = i % RAIL,
                                 .next = 7,
                                 .window = 100};
        c->agg[i].state = JOIN_GRANTED;
    }
    return c;
}

/* Trees that have been given up, each with its group left. */
static struct comm *set_up_lost(struct fixture *b, unsigned lost)
{
    struct comm *c = set_up(b);

    for (unsigned i = 0; i < TREES; i++)
        if (lost >> i & 1) {
            c->agg[i].lost = true;
            c->agg[i].state = JOIN_LEFT;
        }
    c->failover.trees = ALL & ~lost;
    return c;
}

static void trees_that_have_not_failed_return_at_once(void **state)
{
    static const struct {
        unsigned parts, failed;
        uint32_t seq;
        bool whole;
        unsigned survive;
    } rows[] = {
        {PART_TREES, 0x2, 3, false, 0xd},
        {PART_TREES | PART_MM, 0x5, 3, true, 0xa},
        {PART_TREES, ALL, 3, false, 0},
        {PART_TREES, 0x2, 0, false,
         0xd}, /* the first operation has begun, so all JOINs were answered; */
        {PART_TREES, 0x2, 0, true, 0}, /* it has not */
        {PART_MM, 0x2, 3, false, 0},
    };
    struct fixture b;
    struct comm *c = set_up(&b);

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct failover_round f = {.parts = rows[i].parts,
                                         .trees = rows[i].failed,
                                         .seq = rows[i].seq,
                                         .whole = rows[i].whole};

        assert_int_equal(rejoin_survivors(c, &f), rows[i].survive);
    }
    free(c);
}

/* Rounds are kept for failures: the last of them give trees up for good. */
static void trees_return_until_few_rounds_are_left(void **state)
{
    const struct failover_round f = {.parts = PART_TREES, .trees = 1, .seq = 3};
    struct fixture b;
    struct comm *c = set_up(&b);

    (void)state;
    c->failover.n_rounds = FAILOVER_ROUNDS - 4 * PARTS - 1;
    assert_int_equal(rejoin_survivors(c, &f), 0xe);
    c->failover.n_rounds++;
    assert_int_equal(rejoin_survivors(c, &f), 0);
    free(c);
}

static void all_trees_of_all_ranks_are_given_up_and_the_rest_stays(void **state)
{
    const struct failover_round f = {.parts = PART_TREES, .trees = 0x4, .seq = 3},
                                mm = {.parts = PART_MM, .seq = 3};
    struct fixture b;
    struct comm *c = set_up_lost(&b, 0x1);

    (void)state;
    c->agg[3].out = true;
    c->agg[1].wanted = true;
    rejoin_give_up(c, &mm);
    assert_int_equal(c->failover.trees, 0xe);
    assert_false(comm_lacks_trees(c, ALGO_SHARP) || c->agg[1].lost || c->failover.back);
    rejoin_give_up(c, &f);
    assert_true(comm_lacks_trees(c, ALGO_SHARP));
    assert_int_equal(c->failover.trees, 0);
    assert_int_equal(c->failover.back, 0xa); /* in use, and not failed */
    assert_int_equal(c->failover.look_ps, b.now + LOOK);
    for (unsigned i = 0; i <= TREES; i++) {
        assert_int_equal(c->agg[i].lost, i < 3);
        assert_int_equal(c->agg[i].next,
                         i == 1 || i == 2 ? 8
                                          : 7); /* a tree in use gets the next attempt's number */
        assert_false(c->agg[i].wanted);
    }
    free(c);
}

/* A round about trees that return waits for answers to their JOINs, and not for long. */
static void a_round_waits_for_the_answers_about_its_trees(void **state)
{
    static const struct {
        bool lost, wanted;
        enum join_state state;
        unsigned back;
        bool known;
    } rows[] = {
        {true, false, JOIN_ASKED, 0x2, false},  {true, true, JOIN_LEAVING, 0x2, false},
        {true, false, JOIN_LEAVING, 0x2, true}, {true, false, JOIN_GRANTED, 0x2, true},
        {true, false, JOIN_REFUSED, 0x2, true}, {true, false, JOIN_ASKED, 0x5, true},
        {false, false, JOIN_ASKED, 0x2, true},
    };
    const int64_t long_ns = 2 * RETRY_NS;

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture b;
        struct comm *c = set_up(&b);

        c->agg[1].lost = rows[i].lost;
        c->agg[1].wanted = rows[i].wanted;
        c->agg[1].state = rows[i].state;
        c->failover.back = rows[i].back;
        c->failover.since_ns = 1000;
        c->now_ns = 1000 + long_ns;
        assert_int_equal(rejoin_known(c), rows[i].known);
        c->now_ns++;
        assert_true(rejoin_known(c));
        free(c);
    }
}

/* The trees for which rank 0 would begin a round. The communicator has failed, so it begins none
 * and sends nothing. */
static unsigned proposed(struct comm *c, unsigned rank, unsigned trees)
{
    c->failover.back = 0;
    rejoin_ready(c, rank, trees);
    return c->failover.back;
}

static void trees_return_that_every_rank_has_joined(void **state)
{
    struct fixture b;
    struct comm *c = set_up_lost(&b, 0x7);

    (void)state;
    c->state = COMM_FAILED;
    c->agg[0].state = c->agg[1].state = JOIN_GRANTED;
    assert_int_equal(proposed(c, 1, 0x3), 0); /* of rank 2 nothing is known */
    assert_int_equal(proposed(c, 2, 0x6), 0x2);
    assert_int_equal(proposed(c, 2, 0x4), 0); /* it has lost it again; rank 0 lacks the other */
    assert_int_equal(proposed(c, 2, 0x7), 0x3);
    c->agg[1].state = JOIN_LEFT;
    assert_int_equal(proposed(c, 2, 0x7), 0x1);
    c->failover.state =
        FAILOVER_ASKING; /* a round is under way: what is said of trees is of no use */
    assert_int_equal(proposed(c, 2, 0x7), 0);
    assert_int_equal(proposed(c, 1, 0x1), 0);
    c->failover.state = FAILOVER_DONE;
    assert_int_equal(proposed(c, 2, 0x7), 0x1);
    assert_int_equal(b.report[1].ready, 0x3); /* not what came meanwhile */
    c->failover.n_rounds = FAILOVER_ROUNDS - 4 * PARTS;
    assert_int_equal(proposed(c, 2, 0x7), 0);
    free(c);
}

/* Lost trees whose last group is still to be left are joined after that. */
static bool looks(struct comm *c)
{
    bool looked;

    for (unsigned i = 0; i <= TREES; i++)
        c->agg[i].wanted = false;
    rejoin_look(c);
    looked = c->agg[0].wanted;
    for (unsigned i = 0; i <= TREES; i++)
        assert_int_equal(c->agg[i].wanted, looked && i < 2);
    return looked;
}

static void lost_trees_are_asked_for_once_a_millisecond(void **state)
{
    struct fixture b;
    struct comm *c = set_up_lost(&b, 0x3);

    (void)state;
    for (unsigned i = 0; i <= TREES; i++)
        c->agg[i].state = JOIN_LEAVING;
    c->failover.look_ps = b.now + 1;
    assert_false(looks(c));
    b.now++;
    assert_true(looks(c));
    assert_int_equal(c->failover.look_ps, b.now + LOOK);
    b.now += LOOK - 1;
    assert_false(looks(c));
    b.now++;
    c->failover.state = FAILOVER_ASKING;
    assert_false(looks(c));
    c->failover.state = FAILOVER_DONE;
    c->closing = true;
    assert_false(looks(c));
    c->closing = false;
    c->failover.n_rounds = FAILOVER_ROUNDS - 4 * PARTS;
    assert_false(looks(c));
    c->failover.n_rounds--;
    assert_true(looks(c));
    free(c);
}

/* Rank 1 of a communicator: a round under way joins those that it is about, and no other. */
static void a_round_joins_the_trees_that_it_is_about(void **state)
{
    struct fixture b;
    struct comm *c = set_up_lost(&b, 0x7);

    (void)state;
    for (unsigned i = 0; i <= TREES; i++)
        c->agg[i].state = JOIN_LEAVING;
    c->failover.back = 0x9;
    rejoin_start(c);
    for (unsigned i = 0; i <= TREES; i++)
        assert_int_equal(c->agg[i].wanted, i == 0);
    free(c);
}

static void what_every_rank_has_is_in_use_again_with_the_least_window(void **state)
{
    const struct failover_round f = {.parts = PART_BACK, .trees = 0xb, .seq = 6, .fit = {60, 200}};
    struct fixture b;
    struct comm *c = set_up_lost(&b, 0x7);
    char err[COMM_TEXT] = "";

    (void)state;
    for (unsigned i = 0; i < 2; i++)
        c->agg[i].state = JOIN_GRANTED;
    c->failover.back = 0x3;
    c->failover.stopped = PART_TREES | PART_MM;
    strcpy(c->failover.text, "leaf0 is gone");
    assert_int_equal(rejoin_apply(c, &f, err), 0);
    assert_int_equal(c->failover.trees, 0xb);
    assert_int_equal(c->failover.stopped, PART_MM);
    assert_int_equal(c->failover.back, 0);
    assert_false(c->agg[0].lost || c->agg[1].lost || c->agg[3].lost);
    assert_true(c->agg[2].lost && comm_lacks_trees(c, ALGO_SHARP)); /* nobody has it */
    assert_int_equal(c->agg[0].window, 60);
    assert_int_equal(c->agg[1].window, 100); /* its own is less */
    assert_int_equal(c->failover.lost, 0);
    assert_string_equal(comm_fell_back(c), "leaf0 is gone; 3 of 4 trees from operation 7 on");
    free(c);
}

/* A switch has ended the group since this rank said that it has it: so has the round to follow. */
static void a_tree_that_is_gone_when_the_verdict_comes_has_failed(void **state)
{
    const struct failover_round f = {
        .parts = PART_BACK, .trees = ALL, .seq = 6, .fit = {60, 60, 60, 60}};
    struct fixture b;
    struct comm *c = set_up_lost(&b, 0x3);
    char err[COMM_TEXT] = "";

    (void)state;
    c->agg[0].state = JOIN_GRANTED;
    c->agg[3].state = JOIN_LEFT; /* was in use all the time */
    c->failover.back = 0x3;
    assert_int_equal(rejoin_apply(c, &f, err), 0);
    assert_int_equal(c->failover.lost, 0x2);
    assert_false(comm_lacks_trees(c, ALGO_SHARP));
    free(c);
}

static void ranks_whose_clock_is_the_machines_wait_as_long(void **state)
{
    const struct failover_round f = {.parts = PART_TREES, .trees = 1, .seq = 3};
    struct fixture b;
    struct comm *c = set_up(&b);
    struct timespec t;

    (void)state;
    c->cfg.now_ps = NULL;
    clock_gettime(CLOCK_MONOTONIC, &t);
    rejoin_give_up(c, &f);
    assert_in_range(c->failover.look_ps - LOOK, t.tv_sec * PS_PER_S + t.tv_nsec * PS_PER_NS,
                    (t.tv_sec + 100) * PS_PER_S);
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_that_have_not_failed_return_at_once),
        cmocka_unit_test(trees_return_until_few_rounds_are_left),
        cmocka_unit_test(all_trees_of_all_ranks_are_given_up_and_the_rest_stays),
        cmocka_unit_test(a_round_waits_for_the_answers_about_its_trees),
        cmocka_unit_test(trees_return_that_every_rank_has_joined),
        cmocka_unit_test(lost_trees_are_asked_for_once_a_millisecond),
        cmocka_unit_test(a_round_joins_the_trees_that_it_is_about),
        cmocka_unit_test(what_every_rank_has_is_in_use_again_with_the_least_window),
        cmocka_unit_test(a_tree_that_is_gone_when_the_verdict_comes_has_failed),
        cmocka_unit_test(ranks_whose_clock_is_the_machines_wait_as_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
