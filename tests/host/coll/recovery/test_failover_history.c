/* SPDX-License-Identifier: BSD-3-Clause */
/* What past rounds mean for an operation, by table; numbers of operations wrap. */
#include "host/coll/comm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>

#define ROUNDS 3
#define DIM(a) (sizeof(a) / sizeof((a)[0]))

/* Added to every number of an operation. */
static const uint32_t bases[] = {7, UINT32_MAX, 0x7fffffff, 0x80000000};

/* A communicator after these rounds; the first one without parts ends the list. */
static struct comm *after(const struct failover_round *round, uint32_t base)
{
    struct comm *c = calloc(1, sizeof(*c));

    assert_non_null(c);
    c->failover.round = calloc(ROUNDS, sizeof(*c->failover.round));
    c->failover.first = 7;
    while (c->failover.n_rounds < ROUNDS && round[c->failover.n_rounds].parts) {
        struct failover_round *f = &c->failover.round[c->failover.n_rounds];

        *f = round[c->failover.n_rounds++];
        f->seq += base;
    }
    return c;
}

static void drop(struct comm *c)
{
    free(c->failover.round);
    free(c);
}

#define PROTOCOLS (PART_PROTOCOL(0) | PART_PROTOCOL(1))

static const struct {
    struct failover_round round[ROUNDS];
    unsigned gone[4], back;
} losses[] = {
    {{{0}}, {0, 0, 0, 0}, 0},
    /* it is cut, and keeps what it has; the next ones do not */
    {{{.parts = PART_TREES}}, {0, 0, PART_TREES, PART_TREES}, 0},
    /* no rank has begun it */
    {{{.parts = PART_TREES, .whole = true}}, {0, PART_TREES, PART_TREES, PART_TREES}, 0},
    /* it starts over, without what has failed */
    {{{.parts = PART_TREES, .again = true}}, {0, PART_TREES, PART_TREES, PART_TREES}, 0},
    /* it starts over in the second round, so it is without what has failed in the first */
    {{{.parts = PART_TREES}, {.parts = PART_RAIL, .again = true}},
     {0, PART_TREES | PART_RAIL, PART_TREES | PART_RAIL, PART_TREES | PART_RAIL},
     0},
    /* another one starts over */
    {{{.parts = PART_TREES}, {.parts = PART_RAIL, .again = true, .seq = 1}},
     {0, 0, PART_TREES | PART_RAIL, PART_TREES | PART_RAIL},
     0},
    /* what has failed since it started over has cut it */
    {{{.parts = PART_TREES, .again = true}, {.parts = PART_MM}},
     {0, PART_TREES, PART_TREES | PART_MM, PART_TREES | PART_MM},
     0},
    /* a protocol that goes on by fewer trees is not gone */
    {{{.parts = PROTOCOLS, .fewer = PART_PROTOCOL(1), .whole = true}},
     {0, PART_PROTOCOL(0), PART_PROTOCOL(0), PART_PROTOCOL(0)},
     0},
    /* smaller windows are no failure */
    {{{.parts = PART_FIT, .whole = true}}, {0, 0, 0, 0}, 0},
    {{{.parts = PART_FIT | PART_TREES, .whole = true}}, {0, PART_TREES, PART_TREES, PART_TREES}, 0},
    /* trees return from an operation on, or none does */
    {{{.parts = PART_TREES, .whole = true}, {.parts = PART_BACK, .trees = 1, .seq = 2}},
     {0, PART_TREES, PART_TREES, 0},
     0},
    {{{.parts = PART_TREES, .whole = true}, {.parts = PART_BACK, .seq = 1}},
     {0, PART_TREES, PART_TREES, PART_TREES},
     0},
    {{{.parts = PART_TREES | PART_RAIL, .whole = true}, {.parts = PART_BACK, .trees = 2, .seq = 1}},
     {0, PART_TREES | PART_RAIL, PART_RAIL, PART_RAIL},
     0},
    /* and fail again */
    {{{.parts = PART_TREES, .whole = true},
      {.parts = PART_BACK, .trees = 1, .seq = 1},
      {.parts = PART_TREES, .seq = 1}},
     {0, PART_TREES, 0, PART_TREES},
     0},
    /* ranks are about to agree on which ones return */
    {{{.parts = PART_TREES | PART_MM, .whole = true}}, {0, PART_MM, PART_MM, PART_MM}, 1},
};

/* Parts that operation base - 1, base, base + 1 and so on do without. */
static void an_operation_does_without_what_has_failed(void **state)
{
    (void)state;
    for (unsigned b = 0; b < DIM(bases); b++)
        for (unsigned i = 0; i < DIM(losses); i++) {
            struct comm *c = after(losses[i].round, bases[b]);

            c->failover.back = losses[i].back;
            for (unsigned k = 0; k < 4; k++)
                if (failover_gone(c, bases[b] + k - 1) != losses[i].gone[k])
                    fail_msg("row %u: operation %u: %x, expected %x", i, k,
                             failover_gone(c, bases[b] + k - 1), losses[i].gone[k]);
            drop(c);
        }
}

static void an_operation_has_the_trees_of_the_last_return_before_it(void **state)
{
    static const struct failover_round round[ROUNDS] = {{.parts = PART_BACK, .trees = 3, .seq = 0},
                                                        {.parts = PART_BACK, .trees = 0, .seq = 1},
                                                        {.parts = PART_BACK, .trees = 1, .seq = 2}};
    static const struct failover_round other[ROUNDS] = {{.parts = PART_TREES, .trees = 2}};

    (void)state;
    for (unsigned b = 0; b < DIM(bases); b++) {
        struct comm *c = after(round, bases[b]);

        assert_int_equal(failover_trees(c, bases[b] - 1), 7);
        assert_int_equal(failover_trees(c, bases[b]), 3);
        assert_int_equal(failover_trees(c, bases[b] + 1), 3);
        assert_int_equal(failover_trees(c, bases[b] + 2), 1);
        assert_int_equal(failover_trees(c, bases[b] + 3), 1);
        drop(c);
        c = after(other, bases[b]); /* a failure gives none */
        assert_int_equal(failover_trees(c, bases[b] + 1), 7);
        drop(c);
    }
}

/* The first operation without a cut is the one behind an operation that is cut, or the operation
 * itself if it is whole or starts over. */
static void the_floor_is_behind_every_cut(void **state)
{
    static const struct {
        struct failover_round round[ROUNDS];
        uint32_t floor;
    } rows[] = {
        {{{.parts = PART_TREES}}, 1},
        {{{.parts = PART_TREES, .whole = true}}, 0},
        {{{.parts = PART_TREES, .again = true}}, 0},
        {{{.parts = PART_TREES, .seq = 3}, {.parts = PART_MM, .seq = 1}}, 4},
        {{{.parts = PART_MM, .seq = 1}, {.parts = PART_TREES, .seq = 3}}, 4},
        {{{.parts = PART_MM, .seq = 1}, {.parts = PART_BACK, .trees = 1, .seq = 3}}, 2},
        {{{.parts = PART_BACK, .trees = 1, .seq = 3}, {.parts = PART_MM, .seq = 1}}, 2},
    };
    static const struct failover_round none[ROUNDS] = {{0}};
    struct comm *c = after(none, 0);

    (void)state;
    assert_int_equal(failover_floor(c), 0);
    drop(c);
    for (unsigned b = 0; b < DIM(bases); b++)
        for (unsigned i = 0; i < DIM(rows); i++) {
            c = after(rows[i].round, bases[b]);
            assert_int_equal(failover_floor(c), (uint32_t)(bases[b] + rows[i].floor));
            drop(c);
        }
}

static void an_operation_is_cut_until_it_starts_over(void **state)
{
    static const struct {
        struct failover_round round[ROUNDS];
        bool cut;          /* operation 0 */
        bool was[ROUNDS];  /* before round i, by the parts of round i */
        unsigned in_words; /* comm_cut() */
    } rows[] = {
        {{{.parts = PART_TREES}}, true, {false}, 1},
        {{{.parts = PART_TREES, .whole = true}}, false, {false}, 0},
        {{{.parts = PART_TREES, .again = true}}, false, {false}, 1},
        {{{.parts = PART_TREES, .seq = 1}}, false, {false}, 1},
        {{{.parts = PART_BACK, .trees = 1}}, false, {false}, 0},
        {{{.parts = PART_FIT, .whole = true}}, false, {false}, 0},
        {{{.parts = PART_FIT}}, true, {false}, 0},
        /* twice by the same part, which is not in it any more */
        {{{.parts = PART_TREES}, {.parts = PART_TREES}}, true, {false, true}, 1},
        {{{.parts = PART_TREES}, {.parts = PART_TREES | PART_MM}}, true, {false, true}, 1},
        /* by another one */
        {{{.parts = PART_TREES}, {.parts = PART_MM}}, true, {false, false}, 2},
        /* the first was of another operation, whole, or has made it start over */
        {{{.parts = PART_TREES, .seq = 1}, {.parts = PART_TREES}}, true, {false, false}, 2},
        {{{.parts = PART_TREES, .whole = true}, {.parts = PART_TREES}}, true, {false, false}, 1},
        {{{.parts = PART_TREES, .again = true}, {.parts = PART_TREES}}, true, {false, false}, 2},
        {{{.parts = PART_TREES}, {.parts = PART_MM, .again = true}}, false, {false, false}, 2},
        {{{.parts = PART_BACK, .trees = 1}, {.parts = PART_TREES}}, true, {false, false}, 1},
        {{{.parts = PART_BACK, .trees = 1}, {.parts = PART_BACK, .trees = 1}},
         false,
         {false, false},
         0},
        {{{.parts = PART_TREES}, {.parts = PART_MM}, {.parts = PART_TREES}},
         true,
         {false, false, true},
         2},
    };

    (void)state;
    for (unsigned b = 0; b < DIM(bases); b++)
        for (unsigned i = 0; i < DIM(rows); i++) {
            struct comm *c = after(rows[i].round, bases[b]);

            if (failover_is_cut(c, bases[b]) != rows[i].cut)
                fail_msg("row %u: is it cut?", i);
            assert_false(failover_is_cut(c, bases[b] + 2));
            for (unsigned k = 0; k < c->failover.n_rounds; k++)
                if (failover_was_cut(c, &c->failover.round[k]) != rows[i].was[k])
                    fail_msg("row %u: round %u: was it cut?", i, k);
            if (comm_cut(c) != rows[i].in_words)
                fail_msg("row %u: %u, expected %u", i, comm_cut(c), rows[i].in_words);
            drop(c);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operation_does_without_what_has_failed),
        cmocka_unit_test(an_operation_has_the_trees_of_the_last_return_before_it),
        cmocka_unit_test(the_floor_is_behind_every_cut),
        cmocka_unit_test(an_operation_is_cut_until_it_starts_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
