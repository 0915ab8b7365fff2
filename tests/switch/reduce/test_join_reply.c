/* SPDX-License-Identifier: BSD-3-Clause */
/* The answer of a parent to a JOIN: taken from the parent alone, for the request that waits for it, and once. */
#include "switch/reduce/an_priv.h"
#include "tests/switch/reduce/control.h"

/* A leaf that has asked its parent, which is gone, for a group of one member of each leaf. */
struct asked {
    struct agg_fixture *b;
    struct member *m;
    struct an *a;
    struct an_group *g;
    struct an_addr from; /* the parent, */
    struct agg_ctl c;    /* and its grant */
};

static struct asked ask(void)
{
    static const unsigned two[] = {0, 4};
    struct asked k = {.b = agg_fixture_of(LEAVES, 4)};

    k.b->an_dead[k.b->f->trees[0].root] = true;
    k.m = agg_fixture_group(k.b, 0, 7, 1024, 16, 1, two, 2);
    agg_fixture_join(k.m);
    k.m->retry_ps = PS_NEVER;
    agg_fixture_settle(k.b, PS_PER_MS / 10);
    k.a = an_of(k.b, "leaf0");
    k.g = LIST_FIRST(&k.a->groups);
    assert_non_null(k.g);
    assert_int_equal(k.g->state, GROUP_ASKING);
    k.from = k.g->up.addr;
    k.from.qpn = AGG_QPN;
    k.c = (struct agg_ctl){.magic = RTE_BE32(AGG_MAGIC),
                           .version = AGG_VERSION,
                           .type = AGG_JOIN_REPLY,
                           .status = RTE_BE16(AGG_OK),
                           .xid = rte_cpu_to_be_32(k.g->xid),
                           .tree = rte_cpu_to_be_16(k.g->tree->id),
                           .mtu = RTE_BE16(1024),
                           .group = rte_cpu_to_be_32(k.g->id),
                           .key = rte_cpu_to_be_64(k.g->key),
                           .window = RTE_BE32(12),
                           .qpn = RTE_BE32(0x155),
                           .psn = RTE_BE32(0x77)};
    return k;
}

static void end(struct asked *k)
{
    k->m->deaf = true;
    /* Nobody ends a group that was granted here: its parent knows of none. */
    k->b->an_dead[fabric_node_index(k->b->f, fabric_node(k->b->f, "leaf0"))] =
        !LIST_EMPTY(&k->a->groups) && k->g->state == GROUP_OPEN;
    agg_fixture_destroy(k->b);
}

static void an_answer_of_somebody_else_or_to_another_request_changes_nothing(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        struct asked k = ask();

        k.from.ip += i == 0;
        k.from.qpn += i == 1;
        k.c.xid = rte_cpu_to_be_32(k.g->xid + (i == 2) - (i == 3));
        k.c.group = rte_cpu_to_be_32(k.g->id + (i == 4)); /* there is no such group */
        for (unsigned ok = 0; ok < 2; ok++) {
            k.c.status = rte_cpu_to_be_16(ok ? AGG_OK : AGG_E_QUOTA_SLOTS);
            control_input(k.a, &k.from, &k.c, sizeof(k.c));
            assert_ptr_equal(LIST_FIRST(&k.a->groups), k.g);
            assert_int_equal(k.g->state, GROUP_ASKING);
            assert_int_equal(k.g->up.qpn, 0);
        }
        assert_int_equal(k.m->state, MEMBER_ASKING);
        end(&k);
    }
}

static void a_grant_is_taken_once(void **state)
{
    struct asked k = ask();

    (void)state;
    strcpy(k.c.text, "spine0 has 12 of 100 slots left");
    control_input(k.a, &k.from, &k.c, sizeof(k.c));
    assert_int_equal(k.g->state, GROUP_OPEN);
    assert_int_equal(k.g->window, 12);
    assert_int_equal(k.g->full, 12);
    assert_int_equal(k.g->up.qpn, 0x155);
    assert_int_equal(k.g->up.psn, 0x77);
    assert_string_equal(k.g->limit, "spine0 has 12 of 100 slots left");
    k.c.qpn = RTE_BE32(0x156);
    k.c.window = RTE_BE32(9);
    control_input(k.a, &k.from, &k.c, sizeof(k.c)); /* it comes twice */
    k.c.status = RTE_BE16(AGG_E_KEY);
    control_input(k.a, &k.from, &k.c, sizeof(k.c));
    assert_ptr_equal(LIST_FIRST(&k.a->groups), k.g);
    assert_int_equal(k.g->state, GROUP_OPEN);
    assert_int_equal(k.g->window, 12);
    assert_int_equal(k.g->up.qpn, 0x155);
    agg_fixture_settle(k.b, PS_PER_MS / 10);
    assert_int_equal(k.m->state, MEMBER_IN);
    assert_int_equal(rte_be_to_cpu_32(k.m->granted.window), 12);
    end(&k);
}

/* A window that is no smaller than what the leaf has granted itself limits nothing; nor does none at all. */
static void a_larger_window_above_changes_nothing(void **state)
{
    static const uint32_t windows[] = {16, 17, 0};

    (void)state;
    for (unsigned i = 0; i < LEN(windows); i++) {
        struct asked k = ask();

        k.c.window = rte_cpu_to_be_32(windows[i]);
        strcpy(k.c.text, "spine0 has little left");
        control_input(k.a, &k.from, &k.c, sizeof(k.c));
        assert_int_equal(k.g->state, GROUP_OPEN);
        assert_int_equal(k.g->window, 16);
        assert_string_equal(k.g->limit, "");
        end(&k);
    }
}

static void a_refusal_comes_down_by_the_parents_name(void **state)
{
    static const struct {
        unsigned status;
        enum agg_status told;
    } rows[] = {{AGG_E_QUOTA_SLOTS, AGG_E_QUOTA_SLOTS},
                {AGG_STATUS_COUNT - 1, AGG_STATUS_COUNT - 1},
                {AGG_STATUS_COUNT, AGG_E_PARENT},
                {0xffff, AGG_E_PARENT}};

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct asked k = ask();

        k.c.status = rte_cpu_to_be_16((uint16_t)rows[i].status);
        strcpy(k.c.text, "spine0 is full");
        control_input(k.a, &k.from, &k.c, sizeof(k.c));
        assert_true(LIST_EMPTY(&k.a->groups));
        agg_fixture_settle(k.b, PS_PER_MS / 10);
        expect(k.m, MEMBER_REFUSED, rows[i].told, "spine0: spine0 is full");
        end(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_of_somebody_else_or_to_another_request_changes_nothing),
        cmocka_unit_test(a_grant_is_taken_once),
        cmocka_unit_test(a_larger_window_above_changes_nothing),
        cmocka_unit_test(a_refusal_comes_down_by_the_parents_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
