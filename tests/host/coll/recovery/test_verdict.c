/* SPDX-License-Identifier: BSD-3-Clause */
/* The verdict of rank 0 on a failed tree, from reports of ranks that are at different operations. */
#include "host/coll/recovery/failover_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operation_is_cut_behind_what_every_rank_has_of_it),
        cmocka_unit_test(the_earliest_operation_that_a_rank_is_in_is_the_one_that_is_cut),
        cmocka_unit_test(an_operation_that_no_rank_has_begun_is_not_cut),
        cmocka_unit_test(an_operation_starts_over_if_a_rank_says_so_of_this_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
