/* SPDX-License-Identifier: BSD-3-Clause */
/* If buffers are few, idle groups give back what a group that joins needs, and get it again when
 * others end. Every sum is exact, whoever has heard of it. */
#include "tests/switch/reduce/control.h"

#define WINDOW 64u
/* 3 x 64 in slots, 64 + 16 + 64 each way: 480 mbufs at leaf0, which has room for four such groups. */
#define BUDGET 2000u
#define FULL   480u
#define GROUPS 16u

static struct agg_fixture *few_buffers(uint32_t budget, unsigned loss)
{
    return agg_fixture_create(&(struct agg_fixture_cfg){
        .conf = LEAVES, .seed = budget + loss, .mbuf_budget = budget, .loss = loss, .dup = loss});
}

static struct member *group(struct agg_fixture *b, uint32_t id)
{
    struct member *m = agg_fixture_group(b, 0, id, 1024, WINDOW, 1, six, 6);

    join_some(b, m, 6);
    for (unsigned i = 0; i < 6; i++)
        if (m[i].state != MEMBER_IN)
            fail_msg("group %u: %s: %s", id, agg_status_name(m[i].status), m[i].text);
    return m;
}

static const struct an_counters *leaf(struct agg_fixture *b)
{
    return an_counters(an_of(b, "leaf0"));
}

static void begin(struct agg_fixture *b, struct member *m, uint64_t total, uint32_t opseq)
{
    for (unsigned i = 0; i < 6; i++) {
        struct agg_fixture_op o = {
            .coll = AGG_ALLREDUCE, .dtype = DT_FP32, .op = OP_SUM, .opseq = opseq, .total = total};

        o.in = agg_fixture_alloc(b, total);
        o.out = agg_fixture_alloc(b, total);
        ref_fill(DT_FP32, o.in, total / 4, &b->rng);
        agg_fixture_start(&m[i], &o);
    }
}

static void compare(struct agg_fixture *b, struct member *m)
{
    uint8_t *want = agg_fixture_alloc(b, m->op.total);

    agg_fixture_reference(b, m, 6, OP_SUM, DT_FP32, m->op.total / 4, want);
    for (unsigned i = 0; i < 6; i++) {
        expect(&m[i], MEMBER_IN, AGG_OK, m[i].text);
        assert_memory_equal(m[i].op.out, want, m->op.total);
    }
}

/* Two operations of all groups at once, each longer than the window that was granted. */
static void all_sums_are_right(struct agg_fixture *b, struct member **m, unsigned n, uint32_t opseq)
{
    for (uint32_t op = opseq; op < opseq + 2; op++) {
        for (unsigned g = 0; g < n; g++)
            begin(b, m[g], 100000, op);
        if (!agg_fixture_run(b, agg_fixture_all_done, 2000 * PS_PER_MS))
            fail_msg("operation %u does not end", op);
        for (unsigned g = 0; g < n; g++)
            compare(b, m[g]);
    }
}

static const struct {
    unsigned loss;
    bool heard; /* whether members get WINDOWs */
} rows[] = {{0, true}, {0, false}, {300, true}};

static void sixteen_groups_find_room_for_four_and_each_sum_is_exact(void **state)
{
    (void)state;
    for (unsigned r = 0; r < LEN(rows); r++) {
        struct agg_fixture *b = few_buffers(BUDGET, rows[r].loss);
        struct member *m[GROUPS];

        for (unsigned g = 0; g < GROUPS; g++) {
            m[g] = group(b, 100 + g);
            for (unsigned i = 0; i < 6; i++)
                m[g][i].window_lost = !rows[r].heard;
            if (!rows[r].loss) /* an ACK that was lost keeps a group busy */
                assert_int_equal(rte_be_to_cpu_32(m[g]->granted.window), g < 4   ? WINDOW
                                                                         : g < 8 ? 31
                                                                                 : 13);
        }
        assert_int_equal(leaf(b)->groups, GROUPS);
        assert_in_range(leaf(b)->mbufs_promised, 1, BUDGET);
        agg_fixture_settle(b, PS_PER_MS);
        all_sums_are_right(b, m, GROUPS, 0);
        if (rows[r].heard && !rows[r].loss) /* who knows its window sends nothing twice */
            assert_int_equal(leaf(b)->beyond_window, 0);
        if (!rows[r].heard)
            assert_in_range(leaf(b)->beyond_window, 1, UINT32_MAX);
        agg_fixture_destroy(b);
    }
}

static void a_group_alone_has_its_full_window(void **state)
{
    struct agg_fixture *b = few_buffers(FULL, 0);
    struct member *m = group(b, 1);

    (void)state;
    assert_int_equal(rte_be_to_cpu_32(m->granted.window), WINDOW);
    assert_string_equal(m->granted.text, "");
    assert_int_equal(leaf(b)->mbufs_promised, FULL);
    agg_fixture_destroy(b);
}

/* Windows of all members of a group, as they know them. */
static void have(struct member *m, uint32_t window)
{
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(m[i].credit, window);
}

static void a_group_that_gave_back_has_its_window_again_when_others_end(void **state)
{
    struct agg_fixture *b = few_buffers(BUDGET, 0);
    struct member *m[6];

    (void)state;
    for (unsigned g = 0; g < 6; g++)
        m[g] = group(b, 100 + g);
    agg_fixture_settle(b, PS_PER_MS);
    have(m[0], 31); /* an eighth */
    all_sums_are_right(b, m, 6, 0);
    for (unsigned g = 1; g < 6; g++)
        for (unsigned i = 0; i < 6; i++)
            agg_fixture_leave(&m[g][i]);
    assert_true(agg_fixture_run(b, agg_fixture_all_done, 100 * PS_PER_MS));
    agg_fixture_settle(b, 5 * PS_PER_MS);
    have(m[0], WINDOW);
    assert_int_equal(leaf(b)->mbufs_promised, FULL);
    all_sums_are_right(b, m, 1, 2);
    agg_fixture_destroy(b);
}

static void a_lost_window_is_told_again(void **state)
{
    struct agg_fixture *b = few_buffers(BUDGET, 0);
    struct member *m[5];

    (void)state;
    m[0] = group(b, 100);
    for (unsigned i = 0; i < 6; i++)
        m[0][i].window_lost = true;
    for (unsigned g = 1; g < 5; g++)
        m[g] = group(b, 100 + g);
    have(m[0], WINDOW);
    for (unsigned i = 0; i < 6; i++)
        m[0][i].window_lost = false;
    agg_fixture_settle(b, 3 * PS_PER_S); /* idle edges are looked at every 2 s */
    have(m[0], 31);
    agg_fixture_destroy(b);
}

/* Nobody takes anything from who is in the middle of something; the next one leaves room for more. */
static void a_group_in_operation_keeps_its_window(void **state)
{
    struct agg_fixture *b = few_buffers(2 * FULL - 100, 0);
    struct member *m[3];

    (void)state;
    m[0] = group(b, 100);
    begin(b, m[0], 100000, 0);
    m[0][2].frozen = true; /* the others fill their slots */
    agg_fixture_settle(b, PS_PER_MS);
    m[1] = group(b, 101);
    assert_int_equal(rte_be_to_cpu_32(m[1]->granted.window), 22); /* half of what is left */
    m[2] = group(b, 102);
    assert_int_equal(rte_be_to_cpu_32(m[2]->granted.window), 9);
    have(m[0], WINDOW);
    m[0][2].frozen = false;
    assert_true(agg_fixture_run(b, agg_fixture_all_done, 100 * PS_PER_MS));
    compare(b, m[0]);
    all_sums_are_right(b, m, 1, 1);
    all_sums_are_right(b, m + 1, 2, 0);
    agg_fixture_destroy(b);
}

/* Nothing waits for an answer, so who is dead holds nothing up; its group ends as ever. */
static void a_member_that_dies_while_its_window_shrinks_ends_its_group_alone(void **state)
{
    (void)state;
    for (unsigned announced = 0; announced < 2; announced++) {
        struct agg_fixture *b = few_buffers(BUDGET, 0);
        struct member *m[GROUPS];

        m[0] = group(b, 100);
        agg_fixture_kill(&m[0][4], announced);
        for (unsigned g = 1; g < 8; g++)
            m[g] = group(b, 100 + g);
        begin(b, m[0], 100000, 0);
        m[0][4].busy = false;
        agg_fixture_settle(b, 20 * PS_PER_S);
        for (unsigned i = 0; i < 6; i++)
            if (i != 4)
                expect(&m[0][i], MEMBER_ABORTED, AGG_E_MEMBER_LOST, "rank 4 (h5) missing");
        for (unsigned i = 0; i < 6; i++)
            m[0][i].deaf = true;
        all_sums_are_right(b, m + 1, 7, 0);
        agg_fixture_destroy(b);
    }
}

/* WINDOW counts from the parent alone: a member changes nobody's. */
static void a_window_of_somebody_else_changes_nothing(void **state)
{
    struct agg_fixture *b = few_buffers(BUDGET, 0);
    struct member *m = group(b, 100);
    struct agg_ctl c;

    (void)state;
    agg_fixture_fill_join(&m[1], &c);
    c.window = rte_cpu_to_be_32(8);
    c.xid = rte_cpu_to_be_32(1000);
    agg_fixture_say(&m[1], AGG_WINDOW, &c);
    agg_fixture_settle(b, PS_PER_MS);
    assert_int_equal(leaf(b)->control_forged, 1);
    have(m, WINDOW);
    all_sums_are_right(b, &m, 1, 0);
    agg_fixture_destroy(b);
}

/* A member that sends beyond all that it was granted is wrong even after its window has shrunk, and
 * holds up its own group alone. */
static void a_member_that_ignores_its_window_delays_its_own_group_alone(void **state)
{
    struct agg_fixture *b = few_buffers(BUDGET, 0);
    struct member *m[8];

    (void)state;
    for (unsigned g = 0; g < 8; g++)
        m[g] = group(b, 100 + g);
    m[0][1].over_window = true;
    all_sums_are_right(b, m, 8, 0);
    assert_in_range(leaf(b)->beyond_window, 1, UINT32_MAX);
    agg_fixture_destroy(b);
}

/* A broadcast's other members send headers that count for all slots of a message. */
static void headers_without_elements_fit_into_a_smaller_window(void **state)
{
    struct agg_fixture *b = few_buffers(BUDGET, 0);
    struct member *m[9];

    (void)state;
    for (unsigned g = 0; g < 9; g++) {
        m[g] = group(b, 100 + g);
        for (unsigned i = 0; i < 6; i++)
            m[g][i].window_lost = true;
    }
    for (unsigned i = 0; i < 6; i++) {
        struct agg_fixture_op o = {
            .coll = AGG_BROADCAST, .dtype = DT_FP32, .root = 4, .total = 100000};

        start(&m[0][i], o);
        for (unsigned k = 0; k < o.total; k++)
            m[0][i].op.in[k] = (uint8_t)(k * 7);
    }
    assert_true(agg_fixture_run(b, agg_fixture_all_done, 500 * PS_PER_MS));
    for (unsigned i = 0; i < 6; i++)
        if (m[0][i].id != 4)
            assert_memory_equal(m[0][i].op.out, m[0][i].op.in, 100000);
    assert_in_range(leaf(b)->beyond_window, 1, UINT32_MAX);
    agg_fixture_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sixteen_groups_find_room_for_four_and_each_sum_is_exact),
        cmocka_unit_test(a_group_alone_has_its_full_window),
        cmocka_unit_test(a_group_that_gave_back_has_its_window_again_when_others_end),
        cmocka_unit_test(a_lost_window_is_told_again),
        cmocka_unit_test(a_group_in_operation_keeps_its_window),
        cmocka_unit_test(a_member_that_dies_while_its_window_shrinks_ends_its_group_alone),
        cmocka_unit_test(a_window_of_somebody_else_changes_nothing),
        cmocka_unit_test(a_member_that_ignores_its_window_delays_its_own_group_alone),
        cmocka_unit_test(headers_without_elements_fit_into_a_smaller_window),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
