/* SPDX-License-Identifier: BSD-3-Clause */
/* What a group is granted at each bound of groups, slots, buffers and a host's share, one more and one less, and the text
 * that says why it is not more: the decisions alone, without a network. */
#include "switch/reduce/an_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
#define H0     0u /* nodes */
#define H1     1u
#define LEAF   2u
#define SLOTS  100u
#define BUDGET 1000u
#define FULL   16u /* slots that groups ask for, unless said: 8 are the least */

static struct fab_node nodes[3] = {{.name = "h0", .host_index = 0},
                                   {.name = "h1", .host_index = 1},
                                   {.name = "leaf0", .kind = FAB_SWITCH}};
static struct fabric fab = {.n_nodes = 3, .n_hosts = 2, .nodes = nodes};

struct fixture {
    struct an *a;
    uint32_t over[2];
    struct an_group *g[32];
    unsigned n;
    char text[AN_TEXT];
};

static void set_up(struct fixture *b)
{
    *b = (struct fixture){.a = calloc(1, sizeof(*b->a))};
    assert_non_null(b->a);
    nodes[LEAF].reduce = (struct fab_reduce){
        .on = true, .max_groups = 4, .max_slots = SLOTS, .window = FULL, .host_permille = 500};
    b->a->me = &nodes[LEAF];
    b->a->cfg.fab = &fab;
    b->a->cfg.mbuf_budget = BUDGET;
    b->a->over_share = b->over;
    LIST_INIT(&b->a->groups);
    events_init(&b->a->events, &an_event_kinds, nodes[LEAF].name);
}

static void tear_down(struct fixture *b)
{
    while (b->n)
        free(b->g[--b->n]);
    events_fini(&b->a->events);
    free(b->a);
}

/* A group of n children at the top of its tree, whose members nobody has counted yet. */
static struct an_group *group_of(struct fixture *b, unsigned n, uint32_t window)
{
    struct an_group *g = calloc(1, sizeof(*g) + n * sizeof(g->child[0]));

    assert_non_null(g);
    assert_true(b->n < LEN(b->g));
    b->g[b->n++] = g;
    g->a = b->a;
    g->n = (uint16_t)n;
    g->top = true;
    g->window = g->full = window;
    g->founder = FAB_NONE;
    g->of_job = 1;
    g->key = 100 + b->n;
    for (unsigned i = 0; i < n; i++)
        g->child[i] = (struct an_edge){.g = g, .is_member = true, .node = H1};
    return g;
}

static enum agg_status reserve(struct fixture *b, struct an_group *g)
{
    *b->text = '\0';
    return quota_reserve(b->a, g, b->text);
}

/* A group that is there, with what it was granted. */
static struct an_group *have(struct fixture *b, struct an_group *g)
{
    LIST_INSERT_HEAD(&b->a->groups, g, link);
    g->promised = group_mbufs(g, g->window);
    b->a->cnt.groups++;
    b->a->cnt.slots_granted += g->window;
    b->a->cnt.mbufs_promised += g->promised;
    return g;
}

/* One child at the top: 3 mbufs a slot, and 16. */
static void each_quota_ends_where_a_message_does_not_fit_any_more(void **state)
{
    static const struct {
        unsigned groups, slots, mbufs; /* that others have */
        enum agg_status st;
        uint32_t window;
        const char *text; /* of the refusal, or why the window is smaller */
    } rows[] = {
        {3, 0, 0, AGG_OK, 16, ""},
        {4, 0, 0, AGG_E_QUOTA_GROUPS, 0, "leaf0 has 4 groups, at most 4"},
        {5, 0, 0, AGG_E_QUOTA_GROUPS, 0, "leaf0 has 5 groups, at most 4"},
        {0, 84, 0, AGG_OK, 16, ""},
        {0, 85, 0, AGG_OK, 15, "leaf0 has 15 of 100 slots left"},
        {0, 92, 0, AGG_OK, 8, "leaf0 has 8 of 100 slots left"},
        {0, 93, 0, AGG_E_QUOTA_SLOTS, 0, "leaf0 has 7 of 100 slots left, 8 needed"},
        {0, 100, 0, AGG_E_QUOTA_SLOTS, 0, "leaf0 has 0 of 100 slots left, 8 needed"},
        {0, 101, 0, AGG_E_QUOTA_SLOTS, 0, "leaf0 has 0 of 100 slots left, 8 needed"},
        {0, 0, 936, AGG_OK, 16, ""},
        {0, 0, 937, AGG_OK, 15, "leaf0 has 63 of 1000 buffers left"},
        {0, 0, 939, AGG_OK, 15, "leaf0 has 61 of 1000 buffers left"},
        {0, 0, 940, AGG_OK, 14, "leaf0 has 60 of 1000 buffers left"},
        {0, 0, 960, AGG_OK, 8, "leaf0 has 40 of 1000 buffers left"},
        {0, 0, 961, AGG_E_QUOTA_BUFFERS, 0, "leaf0 has 39 of 1000 buffers left, 40 needed"},
        {0, 0, 984, AGG_E_QUOTA_BUFFERS, 0, "leaf0 has 16 of 1000 buffers left, 40 needed"},
        {0, 0, 1001, AGG_E_QUOTA_BUFFERS, 0, "leaf0 has 0 of 1000 buffers left, 40 needed"},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct fixture b;
        struct an_group *g;

        set_up(&b);
        b.a->cnt.groups = rows[i].groups;
        b.a->cnt.slots_granted = rows[i].slots;
        b.a->cnt.mbufs_promised = rows[i].mbufs;
        g = group_of(&b, 1, FULL);
        g->of_job = rows[i].groups + 1; /* of the same job: no other is to be left room */
        if (reserve(&b, g) != rows[i].st)
            fail_msg("row %u: another status, \"%s\"", i, b.text);
        assert_string_equal(rows[i].st == AGG_OK ? g->limit : b.text, rows[i].text);
        if (rows[i].st == AGG_OK)
            assert_int_equal(g->window, rows[i].window);
        tear_down(&b);
    }
}

/* A window below a message is all that is asked for. */
static void a_small_window_needs_no_more_than_itself(void **state)
{
    struct fixture b;
    struct an_group *g;

    (void)state;
    set_up(&b);
    b.a->cnt.slots_granted = SLOTS - 3;
    g = group_of(&b, 1, 4);
    assert_int_equal(reserve(&b, g), AGG_E_QUOTA_SLOTS);
    assert_string_equal(b.text, "leaf0 has 3 of 100 slots left, 4 needed");
    b.a->cnt.slots_granted--;
    assert_int_equal(reserve(&b, g), AGG_OK);
    assert_int_equal(g->window, 4);
    tear_down(&b);
}

static void what_is_granted_is_counted_until_it_is_given_back(void **state)
{
    static const struct {
        unsigned n;
        bool top;
        uint32_t mbufs;
    } rows[] = {{1, true, 3 * 16 + 16}, {2, true, 4 * 16 + 16}, {2, false, 6 * 16 + 32}};
    struct fixture b;
    uint32_t mbufs = 0;

    (void)state;
    set_up(&b);
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct an_group *g = group_of(&b, rows[i].n, FULL);

        g->top = rows[i].top;
        assert_int_equal(reserve(&b, g), AGG_OK);
        mbufs += rows[i].mbufs;
        assert_int_equal(g->promised, rows[i].mbufs);
        assert_int_equal(b.a->cnt.mbufs_promised, mbufs);
        assert_int_equal(b.a->cnt.slots_granted, (i + 1) * FULL);
        assert_int_equal(b.a->cnt.groups, i + 1);
        assert_int_equal(b.a->cnt.groups_peak, i + 1);
    }
    quota_resize(b.g[0], 10);
    assert_int_equal(b.g[0]->window, 10);
    assert_int_equal(b.g[0]->promised, 3 * 10 + 16);
    assert_int_equal(b.a->cnt.slots_granted, 3 * FULL - 6);
    assert_int_equal(b.a->cnt.mbufs_promised, mbufs - 18);
    quota_release(b.g[0]);
    quota_release(b.g[1]);
    assert_int_equal(b.a->cnt.groups, 1);
    assert_int_equal(b.a->cnt.groups_peak, 3);
    assert_int_equal(b.a->cnt.slots_granted, FULL);
    assert_int_equal(b.a->cnt.mbufs_promised, rows[2].mbufs);
    assert_int_equal(reserve(&b, group_of(&b, 1, FULL)), AGG_OK);
    assert_int_equal(b.a->cnt.groups_peak, 3); /* there were more */
    tear_down(&b);
}

/* Its number of groups is in the low byte; a job has one key. */
static void groups_of_a_job_share_what_is_left_evenly(void **state)
{
    static const uint32_t windows[] = {25, 25, 25, 25};
    struct fixture b;

    (void)state;
    set_up(&b);
    b.a->cfg.mbuf_budget = 100000;
    nodes[LEAF].reduce.max_groups = 64;
    for (unsigned i = 0; i < LEN(windows); i++) {
        struct an_group *g = group_of(&b, 1, 64);

        g->of_job = 0x304;
        g->key = 7;
        assert_int_equal(reserve(&b, g), AGG_OK);
        assert_int_equal(g->window, windows[i]);
        LIST_INSERT_HEAD(&b.a->groups, g, link);
    }
    tear_down(&b);
    /* All announced groups are there, or none was announced: the next group gets all that it asks
     * for. */
    for (unsigned i = 0; i < 2; i++) {
        struct an_group *g;

        set_up(&b);
        b.a->cfg.mbuf_budget = 100000;
        g = have(&b, group_of(&b, 1, 20));
        g->key = 7;
        g = group_of(&b, 1, 64);
        g->key = 7;
        g->of_job = i ? 1 : 0x100;
        assert_int_equal(reserve(&b, g), AGG_OK);
        assert_int_equal(g->window, 64);
        tear_down(&b);
    }
}

/* A job that finds others there, with fewer mbufs than it asks for: 1216. */
static void where_others_are_a_job_leaves_room(void **state)
{
    static const struct {
        uint32_t window; /* of the other group */
        bool idle;
        uint32_t granted;
        const char *text;
        uint32_t others; /* then */
    } rows[] = {
        /* 161 are an even share of two: (500 - 16) / 3. */
        {161, false, 161, "leaf0 has 501 of 1000 buffers left, 1 of them for others", 161},
        {100, false, 161, "leaf0 has 684 of 1000 buffers left, 184 of them for others", 100},
        {200, false, 58, "leaf0 has 384 of 1000 buffers left, 192 of them for others", 200},
        {200, true, 161, "leaf0 has 501 of 1000 buffers left, 1 of them for others", 161},
        {162, true, 161, "leaf0 has 501 of 1000 buffers left, 1 of them for others", 161},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct fixture b;
        struct an_group *other, *g;

        set_up(&b);
        nodes[LEAF].reduce.max_slots = 4000;
        other = have(&b, group_of(&b, 1, rows[i].window));
        if (rows[i].idle) {
            other->state = GROUP_OPEN;
            other->complete = true;
        }
        g = group_of(&b, 1, 400);
        assert_int_equal(reserve(&b, g), AGG_OK);
        assert_int_equal(g->window, rows[i].granted);
        assert_string_equal(g->limit, rows[i].text);
        assert_int_equal(other->window, rows[i].others);
        assert_int_equal(b.a->cnt.windows_smaller, rows[i].window > rows[i].others);
        tear_down(&b);
    }
}

/* Once a group has given back, a new one takes an even share only, though all that it asks for is there. */
static void after_a_group_gave_back_the_next_takes_its_share(void **state)
{
    for (unsigned gave = 0; gave < 2; gave++) {
        struct fixture b;
        struct an_group *g;

        (void)state;
        set_up(&b);
        nodes[LEAF].reduce.max_slots = 4000;
        have(&b, group_of(&b, 1, 20))->full += gave;
        g = group_of(&b, 1, 200); /* 616 of 924 */
        assert_int_equal(reserve(&b, g), AGG_OK);
        assert_int_equal(g->window, gave ? 161 : 200);
        tear_down(&b);
    }
}

/* ---- the share of a host ---- */

/* Groups of h0 alone, of one child each. */
static void have_alone(struct fixture *b, unsigned n, uint32_t window)
{
    while (n--) {
        struct an_group *g = group_of(b, 1, window);

        g->child[0].node = H0;
        g->child[0].state = EDGE_JOINED;
        have(b, g);
    }
}

static struct an_group *founded(struct fixture *b, unsigned n)
{
    struct an_group *g = group_of(b, n, FULL);

    g->founder = H0;
    g->child[0].node = H0;
    return g;
}

static void a_host_alone_holds_its_share_and_not_one_more(void **state)
{
    static const struct {
        unsigned max_groups, max_slots, budget;
        unsigned n, window; /* of what it has */
        bool ok;
        uint32_t granted;
        const char *text;
    } rows[] = {
        {20, 4000, 100000, 9, 1, true, 16, ""},
        {20, 4000, 100000, 10, 1, false, 0,
         "h0 alone has 10 groups, 10 slots, 190 buffers at leaf0"},
        /* 8 at least */
        {9, 4000, 100000, 7, 1, true, 16, ""},
        {9, 4000, 100000, 8, 1, false, 0, "h0 alone has 8 groups, 8 slots, 152 buffers at leaf0"},
        /* a half of the slots */
        {20, 1000, 100000, 1, 484, true, 16, ""},
        {20, 1000, 100000, 1, 492, true, 8, "leaf0 has 8 of 1000 slots left"},
        {20, 1000, 100000, 1, 493, false, 0,
         "h0 alone has 1 groups, 493 slots, 1495 buffers at leaf0"},
        /* or 8 windows */
        {20, 200, 100000, 1, 120, true, 8, "leaf0 has 8 of 200 slots left"},
        {20, 200, 100000, 1, 121, false, 0,
         "h0 alone has 1 groups, 121 slots, 379 buffers at leaf0"},
        /* a half of the buffers: 40 are the least, 148 * 3 + 16 = 460 */
        {20, 4000, 1000, 1, 148, true, 8,
         "leaf0 has 540 of 1000 buffers left, 500 of them for others"},
        {20, 4000, 1000, 1, 149, false, 0,
         "h0 alone has 1 groups, 149 slots, 463 buffers at leaf0"},
        /* its first group is granted what is there */
        {20, 14, 78, 0, 0, true, 8, "leaf0 has 78 of 78 buffers left, 39 of them for others"},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct fixture b;
        struct an_group *g;

        set_up(&b);
        nodes[LEAF].reduce.max_groups = rows[i].max_groups;
        nodes[LEAF].reduce.max_slots = rows[i].max_slots;
        b.a->cfg.mbuf_budget = rows[i].budget;
        have_alone(&b, rows[i].n, rows[i].window);
        g = founded(&b, 1);
        if (reserve(&b, g) != (rows[i].ok ? AGG_OK : AGG_E_QUOTA_HOST))
            fail_msg("row %u: another status, \"%s\"", i, b.text);
        assert_string_equal(rows[i].ok ? g->limit : b.text, rows[i].text);
        if (rows[i].ok)
            assert_int_equal(g->window, rows[i].granted);
        assert_int_equal(b.a->cnt.joins_over_share, !rows[i].ok);
        assert_int_equal(b.over[0], !rows[i].ok);
        assert_int_equal(b.over[1], 0);
        tear_down(&b);
    }
}

/* A group is not the host's alone once anybody but a process of the host has joined. */
static void a_group_is_a_hosts_alone_while_nobody_else_has_joined(void **state)
{
    static const struct {
        uint8_t mine, others; /* states of edges */
        uint16_t node;
        bool is_member, alone;
    } rows[] = {
        {EDGE_JOINED, EDGE_NONE, H1, true, true},     {EDGE_PENDING, EDGE_NONE, H1, true, true},
        {EDGE_JOINED, EDGE_JOINED, H0, true, true},   {EDGE_JOINED, EDGE_JOINED, H1, true, false},
        {EDGE_JOINED, EDGE_PENDING, H1, true, false}, {EDGE_JOINED, EDGE_LEFT, H1, true, true},
        {EDGE_JOINED, EDGE_JOINED, H0, false, false}, {EDGE_NONE, EDGE_NONE, H1, true, false},
        {EDGE_LEFT, EDGE_NONE, H1, true, false},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct fixture b;

        set_up(&b);
        nodes[LEAF].reduce.max_groups = 16;
        nodes[LEAF].reduce.max_slots = 4000;
        b.a->cfg.mbuf_budget = 100000;
        for (unsigned k = 0; k < 8; k++) {
            struct an_group *g = group_of(&b, 2, 1);

            g->child[0].node = H0;
            g->child[0].state = rows[i].mine;
            g->child[1].node = rows[i].node;
            g->child[1].is_member = rows[i].is_member;
            g->child[1].state = rows[i].others;
            have(&b, g);
        }
        if (reserve(&b, founded(&b, 1)) != (rows[i].alone ? AGG_E_QUOTA_HOST : AGG_OK))
            fail_msg("row %u: another status, \"%s\"", i, b.text);
        tear_down(&b);
    }
}

/* Only buffers of the host's own children count among those of a group, and its share serves them
 * alone. */
static void buffers_of_children_that_are_still_to_join_are_not_the_hosts(void **state)
{
    static const struct {
        unsigned
            held; /* the window of a group of two, of which h0 has one: 4 buffers a slot and 16 */
        bool ok;
    } rows[] = {{233, true}, {234, true}, {235, false}};

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct fixture b;
        struct an_group *g;

        set_up(&b);
        nodes[LEAF].reduce.max_slots = 4000;
        g = group_of(&b, 2, rows[i].held); /* 234: 952, 476 of them h0's */
        g->child[0].node = H0;
        g->child[0].state = EDGE_JOINED;
        have(&b, g);
        b.a->cnt.mbufs_promised = 0; /* there is room else */
        g = founded(&b, 2);          /* 2 * (500 - 476) = 4 * 8 + 16 */
        if (reserve(&b, g) != (rows[i].ok ? AGG_OK : AGG_E_QUOTA_HOST))
            fail_msg("row %u: another status, \"%s\"", i, b.text);
        tear_down(&b);
    }
}

/* ---- windows that change ---- */

static void the_largest_window_is_its_own_and_what_is_left(void **state)
{
    static const struct {
        unsigned slots, mbufs; /* that others have */
        uint32_t most, even;
    } rows[] = {
        {0, 0, 100, 161},  {80, 0, 20, 161},  {84, 0, 16, 161},
        {0, 906, 26, 161}, {0, 907, 25, 161}, {0, 936, 16, 161},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct fixture b;
        struct an_group *g;

        set_up(&b);
        g = have(&b, group_of(&b, 1, FULL));
        b.a->cnt.slots_granted += rows[i].slots;
        b.a->cnt.mbufs_promised += rows[i].mbufs;
        assert_int_equal(quota_most_window(g), rows[i].most);
        assert_int_equal(quota_even_window(g, 2), rows[i].even);
        assert_int_equal(quota_even_window(g, 25), 8);  /* 40 mbufs each */
        assert_int_equal(quota_even_window(g, 100), 8); /* less than a message does not help */
        tear_down(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_quota_ends_where_a_message_does_not_fit_any_more),
        cmocka_unit_test(a_small_window_needs_no_more_than_itself),
        cmocka_unit_test(what_is_granted_is_counted_until_it_is_given_back),
        cmocka_unit_test(groups_of_a_job_share_what_is_left_evenly),
        cmocka_unit_test(where_others_are_a_job_leaves_room),
        cmocka_unit_test(after_a_group_gave_back_the_next_takes_its_share),
        cmocka_unit_test(a_host_alone_holds_its_share_and_not_one_more),
        cmocka_unit_test(a_group_is_a_hosts_alone_while_nobody_else_has_joined),
        cmocka_unit_test(buffers_of_children_that_are_still_to_join_are_not_the_hosts),
        cmocka_unit_test(the_largest_window_is_its_own_and_what_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
