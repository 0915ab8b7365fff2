/* SPDX-License-Identifier: BSD-3-Clause */
/* The verdict of rank 0 on a failed tree, from reports of ranks that are at different operations. */
#include "host/coll/recovery/failover_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#define RANKS 4

struct fixture {
    struct comm *c;
    struct failover_report report[RANKS];
    struct failover_round f;
};

/* Every rank in operation 7, of which it has three messages. */
static void set_up(struct fixture *b)
{
    *b = (struct fixture){.c = calloc(1, sizeof(*b->c))};
    assert_non_null(b->c);
    b->c->cfg.nranks = RANKS;
    b->c->failover.report = b->report;
    b->c->failover.parts = PART_TREES;
    for (unsigned r = 0; r < RANKS; r++)
        b->report[r] = (struct failover_report){
            .here = true, .flag = BEGUN, .seq = 7, .done = {[0 ... COLL_TREES - 1] = 3}};
}

static const struct failover_round *judge(struct fixture *b)
{
    failover_judge(b->c, &b->f);
    return &b->f;
}

static void an_operation_is_cut_behind_what_every_rank_has_of_it(void **state)
{
    struct fixture b;

    (void)state;
    set_up(&b);
    b.report[1].done[0] = 2;
    b.report[2].done[0] = 5;
    assert_int_equal(judge(&b)->seq, 7);
    assert_false(b.f.whole || b.f.again);
    assert_int_equal(b.f.how.cut[0].least, 2);
    assert_int_equal(b.f.how.cut[0].most, 5);
    assert_int_equal(b.f.how.cut[0].from, 2);
    free(b.c);
}

/* Ranks that are further have all of it; who has begun the next has what others lack. */
static void the_earliest_operation_that_a_rank_is_in_is_the_one_that_is_cut(void **state)
{
    static const uint32_t first[] = {7, UINT32_MAX, 0x7fffffff}; /* numbers wrap */
    struct fixture b;

    (void)state;
    for (unsigned i = 0; i < 3; i++)
        for (unsigned late = 0; late < RANKS; late++) {
            set_up(&b);
            for (unsigned r = 0; r < RANKS; r++)
                b.report[r].seq = first[i] + (r != late) + (r == (late + 1) % RANKS);
            assert_int_equal(judge(&b)->seq, first[i]);
            assert_false(b.f.whole);
            assert_int_equal(b.f.how.cut[0].least, 3);
            assert_true(b.f.how.cut[0].most == FAILOVER_ALL);
            assert_int_not_equal(b.f.how.cut[0].from, late);
            free(b.c);
        }
}

static void an_operation_that_no_rank_has_begun_is_not_cut(void **state)
{
    struct fixture b;

    (void)state;
    set_up(&b);
    for (unsigned r = 0; r < RANKS; r++)
        b.report[r].flag = 0;
    assert_true(judge(&b)->whole);
    b.report[3].flag = BEGUN;
    assert_false(judge(&b)->whole);
    free(b.c);
}

/* A rank that is ahead speaks of the operation before with LAST, and of its own with ALONE. */
static void an_operation_starts_over_if_a_rank_says_so_of_this_one(void **state)
{
    struct fixture b;

    (void)state;
    set_up(&b);
    b.report[1].flag |= ALONE;
    assert_true(judge(&b)->again);
    b.report[1].seq++; /* its flag is of another operation */
    assert_false(judge(&b)->again);
    b.report[1].flag |= LAST;
    assert_true(judge(&b)->again);
    free(b.c);
}

/* The least that any rank has of a tree, and the most with the first rank that has it; a rank that is further has all. */
static void each_tree_is_cut_by_itself(void **state)
{
    static const struct {
        uint64_t done[RANKS];
        unsigned ahead; /* ranks that are at the next operation, a bit each */
        uint64_t least, most;
        unsigned from;
    } rows[] = {
        {{3, 3, 3, 3}, 0, 3, 3, 0},
        {{0, 0, 0, 0}, 0, 0, 0, 0},
        {{0, 1, 0, 0}, 0, 0, 1, 1},
        {{5, 4, 5, 6}, 0, 4, 6, 3},
        {{9, 4, 9, 6}, 0, 4, 9, 0},
        {{1, 2, 3, 4}, 1, 2, FAILOVER_ALL, 0},
        {{9, 2, 3, 4}, 4, 2, FAILOVER_ALL, 2},
        {{9, 2, 3, 4}, 12, 2, FAILOVER_ALL, 2},
    };
    struct fixture b;

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (unsigned k = 0; k < COLL_TREES; k++) {
            set_up(&b);
            for (unsigned r = 0; r < RANKS; r++) {
                b.report[r].done[k] = rows[i].done[r];
                b.report[r].seq += rows[i].ahead >> r & 1;
            }
            judge(&b);
            assert_true(b.f.how.cut[k].least == rows[i].least);
            assert_true(b.f.how.cut[k].most == rows[i].most);
            assert_int_equal(b.f.how.cut[k].from, rows[i].from);
            assert_true(b.f.how.cut[(k + 1) % COLL_TREES].least == 3);
            free(b.c);
        }
}

/* The trees whose failure was seen; where none was, all in use. */
static void a_verdict_names_what_has_failed(void **state)
{
    struct fixture b;

    (void)state;
    set_up(&b);
    b.c->failover.trees = 7;
    b.c->failover.back = 1;
    b.c->failover.parts = PART_TREES | PART_BACK | PART_MM;
    assert_int_equal(judge(&b)->parts, PART_TREES | PART_MM); /* first what has failed */
    assert_int_equal(b.f.trees, 7);
    assert_int_equal(b.f.back, 1);
    assert_int_equal(b.f.protocol, 0);
    assert_int_equal(b.f.fewer, 0);
    b.c->failover.lost = 2;
    assert_int_equal(judge(&b)->trees, 2);
    free(b.c);
}

/* An operation that a round before has cut is cut again, although no rank runs it any more. */
static void what_has_been_cut_is_not_whole(void **state)
{
    struct failover_round before = {.parts = PART_TREES, .seq = 7};
    struct fixture b;

    (void)state;
    set_up(&b);
    for (unsigned r = 0; r < RANKS; r++)
        b.report[r].flag = 0;
    b.c->failover.round = &before;
    b.c->failover.n_rounds = 1;
    assert_false(judge(&b)->whole);
    before.seq = 6;
    assert_true(judge(&b)->whole);
    free(b.c);
}

/* Trees 0 to n - 1 in use, at the first operation. */
static void set_up_fit(struct fixture *b, unsigned n)
{
    set_up(b);
    b->c->failover.parts = PART_FIT;
    b->c->n_aggs = n;
    for (unsigned k = 0; k < n; k++)
        b->c->agg[k] = (struct agg){.kind = GROUP_ALL, .chan = k};
    for (unsigned r = 0; r < RANKS; r++) {
        b->report[r].seq = 0;
        b->report[r].flag = 0;
        for (unsigned k = 0; k < COLL_TREES; k++)
            b->report[r].fit[k] = 100;
    }
}

static void windows_are_the_least_of_all_ranks(void **state)
{
    struct fixture b;

    (void)state;
    set_up_fit(&b, 2);
    b.report[1].fit[0] = 40;
    b.report[2].fit[0] = 60;
    b.report[3].fit[1] = 30;
    b.report[1].rail = 50; /* the others have none */
    b.report[2].rail = 20;
    b.report[3].rail = 70;
    snprintf(b.report[1].why, sizeof(b.report[1].why), "one");
    snprintf(b.report[3].why, sizeof(b.report[3].why), "three");
    judge(&b);
    assert_int_equal(b.f.parts, PART_FIT);
    assert_int_equal(b.f.fit[0], 40);
    assert_int_equal(b.f.fit[1], 30);
    assert_int_equal(b.f.fit[2], 0); /* not in use */
    assert_int_equal(b.f.rail, 20);
    assert_string_equal(b.c->failover.why, "three"); /* of the least that somebody explains */
    b.report[2].rail = 0;
    b.report[1].rail = 25;
    judge(&b);
    assert_int_equal(b.f.rail, 25);
    assert_string_equal(b.c->failover.why, "one");
    free(b.c);
}

/* Before the first operation, with another one left, and nothing else has failed: else all have. */
static void a_tree_is_dropped_before_it_is_used(void **state)
{
    static const struct {
        unsigned trees, refused, more;
        uint32_t seq;
        bool begun, failed;
    } rows[] = {
        {2, 1, 0, 0, false, false},      {2, 2, 0, 0, false, false},
        {2, 0, 0, 0, false, false},      {2, 3, 0, 0, false, true},
        {1, 1, 0, 0, false, true},       {2, 1, 0, 1, false, true},
        {2, 1, 0, 0, true, true},        {2, 0, 0, 1, true, false},
        {2, 1, PART_MM, 0, false, true}, {2, 0, PART_MM, 0, false, false},
    };
    struct fixture b;

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        set_up_fit(&b, rows[i].trees);
        b.c->failover.parts |= rows[i].more;
        for (unsigned r = 0; r < RANKS; r++) {
            b.report[r].seq = rows[i].seq;
            b.report[r].flag = rows[i].begun ? BEGUN : 0;
        }
        for (unsigned k = 0; k < rows[i].trees; k++)
            b.report[k + 1].fit[k] = rows[i].refused >> k & 1 ? 0 : 100;
        if (judge(&b)->parts != (PART_FIT | rows[i].more | (rows[i].failed ? PART_TREES : 0u)))
            fail_msg("row %u: parts %x", i, b.f.parts);
        free(b.c);
    }
}

/* From the first operation on that no rank has begun, and behind every cut. */
static void trees_return_that_every_rank_has_joined(void **state)
{
    struct failover_round before = {.parts = PART_TREES, .seq = 11};
    struct fixture b;

    (void)state;
    set_up(&b);
    b.c->failover.parts = PART_BACK;
    b.c->failover.back = 6;
    b.c->failover.trees = 1;
    for (unsigned r = 0; r < RANKS; r++)
        for (unsigned k = 0; k < COLL_TREES; k++)
            b.report[r].fit[k] = 100 - r;
    b.report[2].fit[2] = 0;
    b.report[1].seq = 9; /* and runs */
    b.report[3].seq = 10;
    b.report[3].flag = 0;
    judge(&b);
    assert_int_equal(b.f.parts, PART_BACK);
    assert_int_equal(b.f.seq, 10);
    assert_int_equal(b.f.trees, 3);
    assert_int_equal(b.f.fit[0], 0); /* not asked for */
    assert_int_equal(b.f.fit[1], 97);
    assert_int_equal(b.f.fit[2], 0);
    b.report[1].seq = 10;
    assert_int_equal(judge(&b)->seq, 11);
    b.c->failover.round = &before;
    b.c->failover.n_rounds = 1;
    assert_int_equal(judge(&b)->seq, 12);
    b.c->failover.n_rounds = 0;
    for (unsigned r = 0; r < RANKS; r++) /* numbers wrap */
        b.report[r].seq = 0x80000010 + r, b.report[r].flag = 0;
    before.seq = 0x80000000;
    b.c->failover.n_rounds = 1;
    assert_int_equal(judge(&b)->seq, 0x80000013);
    free(b.c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operation_is_cut_behind_what_every_rank_has_of_it),
        cmocka_unit_test(the_earliest_operation_that_a_rank_is_in_is_the_one_that_is_cut),
        cmocka_unit_test(an_operation_that_no_rank_has_begun_is_not_cut),
        cmocka_unit_test(an_operation_starts_over_if_a_rank_says_so_of_this_one),
        cmocka_unit_test(each_tree_is_cut_by_itself),
        cmocka_unit_test(a_verdict_names_what_has_failed),
        cmocka_unit_test(what_has_been_cut_is_not_whole),
        cmocka_unit_test(windows_are_the_least_of_all_ranks),
        cmocka_unit_test(a_tree_is_dropped_before_it_is_used),
        cmocka_unit_test(trees_return_that_every_rank_has_joined),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
