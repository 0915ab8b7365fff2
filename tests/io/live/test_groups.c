/* SPDX-License-Identifier: BSD-3-Clause */
/* A group is made of what its aggregation nodes say of their children; it is open once all is granted and nobody is awaited. */
#include "io/live/live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { LEAF = 8, SPINE = 9 };

struct row {
    unsigned node, child, joined, left, open;
};

static void add(struct live_look *k, struct row r)
{
    const uint64_t v[GROUP_COLUMNS_N] = {[GROUP_node] = r.node,
                                         [GROUP_id] = 7,
                                         [GROUP_open] = r.open,
                                         [GROUP_children] = 2,
                                         [GROUP_child] = r.child + 1,
                                         [GROUP_member] = r.child,
                                         [GROUP_is_member] = r.node == LEAF,
                                         [GROUP_joined] = r.joined,
                                         [GROUP_left] = r.left};

    live_group_row(k, v);
}

/* A leaf below a spine; the leaf's second child is as the row says. */
static bool is_open(struct row second, bool spine_open)
{
    struct live_look k = {0};
    bool open;

    add(&k, (struct row){SPINE, LEAF, .joined = 1, .open = spine_open});
    add(&k, (struct row){LEAF, 0, .joined = 1, .open = 1});
    second.node = LEAF;
    second.child = 1;
    second.open = 1;
    add(&k, second);
    assert_int_equal(k.n_groups, 1);
    assert_int_equal(k.group[0].n_members, 2);
    assert_int_equal(k.group[0].n_at, 2);
    open = k.group[0].open;
    live_groups_free(&k);
    return open;
}

static void a_group_that_awaits_a_member_is_not_open(void **state)
{
    (void)state;
    assert_true(is_open((struct row){.joined = 1}, true));
    assert_false(is_open((struct row){.joined = 0}, true));
    assert_true(is_open((struct row){.left = 1}, true));
    assert_false(is_open((struct row){.joined = 1}, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_group_that_awaits_a_member_is_not_open)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
