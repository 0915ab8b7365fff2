/* SPDX-License-Identifier: BSD-3-Clause */
/* Teams of ranks, and how edges of different width cut a block alike. */
#include "collective/alg.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#define DIM(a) (sizeof(a) / sizeof((a)[0]))
#define RANKS  8u

/* Channels from a rank to the next one, by rank: so many of so much each. */
static struct {
    unsigned n;
    uint64_t bps;
} edge[RANKS];

static unsigned channels(void *ctx, unsigned from, unsigned to, uint64_t *bps, unsigned max)
{
    (void)ctx, (void)to;
    for (unsigned i = 0; i < edge[from].n && i < max; i++)
        bps[i] = edge[from].bps;
    return edge[from].n;
}

static void edges_have_slices_of_the_slowest(void **state)
{
    static const struct {
        struct {
            unsigned n;
            uint64_t bps;
        } edge[3];
        unsigned n, wide, slices;
    } rows[] = {
        {{{1, 100}}, 1, 1, 8},
        {{{4, 100}}, 1, 4, 8},
        {{{4, 100}, {4, 100}}, 2, 4, 8},
        /* narrow ones carry several stripes */
        {{{4, 100}, {1, 400}}, 2, 4, 8},
        {{{4, 100}, {1, 100}}, 2, 4, 2},
        {{{1, 100}, {4, 100}}, 2, 4, 2},
        {{{4, 100}, {2, 50}, {1, 800}}, 3, 4, 4},
        {{{3, 100}, {1, 100}}, 2, 3, 3}, /* 8/3, rounded up */
        /* of one width the slower one, whose channels are as many */
        {{{2, 100}, {2, 10}}, 2, 2, 8},
        {{{8, 100}, {1, 50}}, 2, 8, 1},
        {{{8, 100}, {1, 500}}, 2, 8, 5},
    };
    struct sched_topo t = {.channels = channels};
    struct sched s = {.in = {.nranks = RANKS, .topo = &t}};
    struct alg a = {.s = &s};

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct alg_edges e = {0};

        for (unsigned k = 0; k < rows[i].n; k++) {
            edge[k].n = rows[i].edge[k].n;
            edge[k].bps = rows[i].edge[k].bps;
            alg_edges_add(&a, &e, k, k + 1);
        }
        assert_int_equal(e.wide.n, rows[i].wide);
        if (alg_edges_slices(&e) != rows[i].slices)
            fail_msg("row %u: %u slices", i, alg_edges_slices(&e));
    }
}

static void everybody_is_a_team_in_order(void **state)
{
    struct sched_topo t = {.channels = channels, .steps = true};
    struct sched s = {.in = {.nranks = RANKS, .rank = 5, .topo = &t}};
    struct alg a = {.s = &s};
    struct nodes g;

    (void)state;
    for (unsigned r = 0; r < RANKS; r++)
        edge[r].n = 1 + (r == RANKS - 1), edge[r].bps = 7;
    for (unsigned k = 0; k < 3; k++) {
        t.steps = k == 0;
        s.in.topo = k == 2 ? NULL : &t;
        assert_int_equal(alg_everybody(&a, &g), 0);
        assert_int_equal(g.all.n, RANKS);
        assert_int_equal(g.all.me, 5);
        assert_int_equal(g.all.steps, k == 0);
        assert_int_equal(g.all.ring.n, k == 2 ? 1 : 2); /* the edge around counts, too */
        for (unsigned r = 0; r < RANKS; r++)
            assert_int_equal(g.all.rank[r], r);
        alg_nodes_free(&g);
    }
}

static void nodes_are_of_one_size(void **state)
{
    static const struct {
        uint16_t domain[RANKS];
        unsigned n;
        int rc;
        unsigned nodes, local;
    } rows[] = {
        {{0, 0, 1, 1}, 4, 0, 2, 2},
        {{0, 1, 0, 1}, 4, 0, 2, 2},
        {{0, 1, 1, 0, 2, 2}, 6, 0, 3, 2},
        {{0, 0, 0, 0, 1, 1, 1, 1}, 8, 0, 2, 4},
        {{0, 0, 0, 0}, 4, -ENOTSUP, 0, 0},    /* one node */
        {{0, 1, 2, 3}, 4, -ENOTSUP, 0, 0},    /* of one rank */
        {{0, 0, 1}, 3, -ENOTSUP, 0, 0},       /* of two sizes */
        {{0, 0, 1, 1, 1}, 5, -ENOTSUP, 0, 0}, /* the last one larger */
        {{0, 0, 1, 1, 2}, 5, -ENOTSUP, 0, 0},
        {{0, 0, 9, 9}, 4, -ENOTSUP, 0, 0}, /* no such number */
        {{0, 0, 4, 4}, 4, -ENOTSUP, 0, 0},
    };

    (void)state;
    for (unsigned r = 0; r < RANKS; r++)
        edge[r].n = 1, edge[r].bps = 7;
    for (unsigned i = 0; i < DIM(rows); i++)
        for (unsigned rank = 0; rank < rows[i].n; rank++) {
            const struct sched_topo t = {.channels = channels, .domain = rows[i].domain};
            struct sched s = {.in = {.nranks = rows[i].n, .rank = rank, .topo = &t}};
            struct alg a = {.s = &s};
            const uint16_t *d = rows[i].domain;
            unsigned place = 0;
            struct nodes g;

            assert_int_equal(alg_nodes(&a, &g), rows[i].rc);
            for (unsigned r = 0; r < rank; r++)
                place += d[r] == d[rank];
            if (!rows[i].rc) {
                assert_int_equal(g.n, rows[i].nodes);
                assert_int_equal(g.local, rows[i].local);
                assert_int_equal(g.node.n, g.local);
                assert_int_equal(g.node.me, place);
                assert_int_equal(g.node.rank[place], rank);
                assert_int_equal(g.rail.n, g.n);
                assert_int_equal(g.rail.me, d[rank]);
                assert_int_equal(g.rail.rank[d[rank]], rank);
                assert_false(g.node.steps || g.rail.steps);
                for (unsigned k = 0; k < g.n; k++)
                    assert_int_equal(d[g.rail.rank[k]], k);
                for (unsigned k = 0; k + 1 < g.local; k++)
                    assert_true(g.node.rank[k] < g.node.rank[k + 1] &&
                                d[g.node.rank[k]] == d[rank]);
                for (unsigned k = 0; k < g.n * g.local; k++)
                    assert_int_equal(d[g.at[k]], k / g.local);
                assert_int_equal(g.at[d[rank] * g.local + place], rank);
            }
            alg_nodes_free(&g);
        }
}

static void without_nodes_there_are_none(void **state)
{
    const struct sched_topo t = {.channels = channels};
    struct sched s = {.in = {.nranks = 4, .topo = &t}};
    struct alg a = {.s = &s};
    struct nodes g;

    (void)state;
    assert_int_equal(alg_nodes(&a, &g), -ENOTSUP);
    alg_nodes_free(&g);
    s.in.topo = NULL;
    assert_int_equal(alg_nodes(&a, &g), -ENOTSUP);
    alg_nodes_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_have_slices_of_the_slowest),
        cmocka_unit_test(everybody_is_a_team_in_order),
        cmocka_unit_test(nodes_are_of_one_size),
        cmocka_unit_test(without_nodes_there_are_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
