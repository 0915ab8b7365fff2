/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction on trees: bits equal to an independent reference, whatever arrives first, whatever is
 * lost. */
#include "tests/support/agg_fixture.h"
#include "tests/support/reduce_ref.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
#define REDUCE "reduce = { };\n"
#define LINKS  "link_defaults = { rate = \"400Gb/s\"; latency = \"300ns\"; };\n"
#define LEAVES                                                                                     \
    LINKS REDUCE "mtu = 1024; leaf_spine = { leaves = 4; spines = 2; hosts_per_leaf = 4; };\n"
#define THREE_TIERS                                                                                \
    LINKS REDUCE                                                                                   \
        "mtu = 1024;\n"                                                                            \
        "nodes = ( { name = (\"a0\", \"a1\", \"b0\", \"c0\", \"c1\", \"c2\", \"d0\"); kind = "     \
        "\"host\"; },\n"                                                                           \
        "{ name = (\"la\", \"lb\", \"lc\", \"ld\"); role = \"leaf\"; },\n"                         \
        "{ name = (\"s0\", \"s1\"); role = \"spine\"; }, { name = \"core\"; role = \"core\"; } "   \
        ");\n"                                                                                     \
        "links = ( { a = (\"a0\", \"a1\"); b = \"la\"; }, { a = \"b0\"; b = \"lb\"; },\n"          \
        "{ a = (\"c0\", \"c1\", \"c2\"); b = \"lc\"; }, { a = \"d0\"; b = \"ld\"; },\n"            \
        "{ a = (\"la\", \"lb\"); b = \"s0\"; }, { a = (\"lc\", \"ld\"); b = \"s1\"; },\n"          \
        "{ a = (\"s0\", \"s1\"); b = \"core\"; } );\n"

static const char *single_switch(unsigned hosts)
{
    static char text[256];

    snprintf(text, sizeof(text), LINKS REDUCE "mtu = 1024; single_switch = { hosts = %u; };\n",
             hosts);
    return text;
}

/* One operation of all members of a group on random elements, its results compared. */
static void reduce_once(struct agg_fixture *b, struct member *first, unsigned n, enum dtype t,
                        enum redop op, size_t count, uint32_t opseq)
{
    size_t bytes = count * dtype_size(t);
    uint8_t *want = agg_fixture_alloc(b, bytes + 8);

    for (unsigned i = 0; i < n; i++) {
        struct agg_fixture_op o = {
            .coll = AGG_ALLREDUCE, .dtype = t, .op = op, .opseq = opseq, .total = bytes};

        o.in = agg_fixture_alloc(b, bytes + 8);
        o.out = agg_fixture_alloc(b, bytes + 8);
        ref_fill(t, o.in, count, &b->rng);
        memset(o.out, 0xa5, bytes);
        agg_fixture_start(&first[i], &o);
    }
    if (!agg_fixture_run(b, agg_fixture_all_done, 2000 * PS_PER_MS))
        fail_msg("%s %s of %zu does not end", dtype_name(t), redop_name(op), count);
    agg_fixture_reference(b, first, n, op, t, count, want);
    for (unsigned i = 0; i < n; i++) {
        if (first[i].state != MEMBER_IN)
            fail_msg("member %u: %s %s", first[i].id, agg_status_name(first[i].status),
                     first[i].text);
        if (memcmp(first[i].op.out, want, bytes))
            fail_msg("%s %s of %zu differs at member %u", dtype_name(t), redop_name(op), count,
                     first[i].id);
    }
}

static struct member *join_all(struct agg_fixture *b, uint16_t tree, uint16_t mtu, uint32_t window,
                               uint16_t per_host, const unsigned *ids, unsigned n)
{
    struct member *first = agg_fixture_group(b, tree, 7 + b->n, mtu, window, per_host, ids, n);

    for (unsigned i = 0; i < n; i++)
        agg_fixture_join(&first[i]);
    if (!agg_fixture_run(b, agg_fixture_all_in, 400 * PS_PER_MS))
        fail_msg("JOINs are not answered");
    for (unsigned i = 0; i < n; i++)
        if (first[i].state != MEMBER_IN)
            fail_msg("member %u: %s %s", first[i].id, agg_status_name(first[i].status),
                     first[i].text);
    return first;
}

static size_t some_count(struct agg_fixture *b, enum dtype t)
{
    uint64_t kind = agg_fixture_random(b, 4);

    return 1 + agg_fixture_random(b, kind == 0   ? 20
                                     : kind == 1 ? 1024 / dtype_size(t)
                                                 : 24000 / dtype_size(t));
}

/* Every type and operation on one tree. */
static void every_type_and_operation(const char *conf, uint16_t mtu, uint32_t window,
                                     uint16_t per_host, const unsigned *ids, unsigned n,
                                     uint64_t seed)
{
    struct agg_fixture *b =
        agg_fixture_create(&(struct agg_fixture_cfg){.conf = conf, .seed = seed});
    struct member *m = join_all(b, 0, mtu, window, per_host, ids, n);
    uint32_t opseq = 0;

    for (int t = 0; t < DT_COUNT; t++)
        for (int op = 0; op < OP_COUNT; op++)
            if (arith_valid(op, t))
                reduce_once(b, m, n, t, op, some_count(b, t), opseq++);
    for (unsigned i = 0; i < b->f->n_nodes; i++)
        if (b->an[i])
            assert_int_equal(an_counters(b->an[i])->aborts, 0);
    agg_fixture_destroy(b);
}

static void every_type_and_operation_has_the_references_bits_at_depth_1(void **state)
{
    static const unsigned ids[] = {0, 1, 2, 3, 4};

    (void)state;
    every_type_and_operation(single_switch(5), 256, 64, 1, ids, LEN(ids), 1);
}

static void every_type_and_operation_has_the_references_bits_at_depth_2(void **state)
{
    static const unsigned ids[] = {0, 1, 2, 3, 4, 9, 13, 14};

    (void)state;
    every_type_and_operation(LEAVES, 512, 32, 1, ids, LEN(ids), 2);
}

static void every_type_and_operation_has_the_references_bits_at_depth_3(void **state)
{
    static const unsigned ids[] = {0, 1, 2, 3, 4, 5, 6};

    (void)state;
    every_type_and_operation(THREE_TIERS, 256, 16, 1, ids, LEN(ids), 3);
}

static void two_to_sixteen_children_reduce_in_order_of_child_whatever_comes_first(void **state)
{
    unsigned ids[16];

    (void)state;
    for (unsigned i = 0; i < 16; i++)
        ids[i] = i;
    for (unsigned n = 2; n <= 16; n++) {
        struct agg_fixture *b =
            agg_fixture_create(&(struct agg_fixture_cfg){.conf = single_switch(16), .seed = n});
        struct member *m = join_all(b, 0, 512, 32, 1, ids, n);

        for (uint32_t k = 0; k < 4; k++)
            reduce_once(b, m, n, k % 2 ? DT_FP16 : DT_FP32, k / 2 ? OP_PROD : OP_SUM, 700, k);
        agg_fixture_destroy(b);
    }
}

static void several_ranks_of_a_host_and_unequal_leaves_are_one_tree(void **state)
{
    static const unsigned ids[] = {0, 1, 2, 3, 4, 12, 13};

    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct agg_fixture *b =
            agg_fixture_create(&(struct agg_fixture_cfg){.conf = LEAVES, .seed = seed});
        struct member *m = join_all(b, (uint16_t)(seed % 2), 1024, 24, 3, ids, LEN(ids));

        for (uint32_t k = 0; k < 3; k++)
            reduce_once(b, m, LEN(ids), DT_BF16, OP_SUM, 3000, k);
        agg_fixture_destroy(b);
    }
}

static void lost_and_doubled_frames_do_not_change_a_bit(void **state)
{
    static const unsigned ids[] = {0, 1, 2, 3, 4, 5, 6};

    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct agg_fixture *b = agg_fixture_create(&(struct agg_fixture_cfg){
            .conf = THREE_TIERS, .seed = seed, .loss = 100 * (unsigned)seed, .dup = 200});
        struct member *m = join_all(b, 0, 256, 16, 1, ids, LEN(ids));

        for (uint32_t k = 0; k < 3; k++)
            reduce_once(b, m, LEN(ids), (enum dtype)agg_fixture_random(b, DT_FP32_LOC),
                        (enum redop)agg_fixture_random(b, OP_BAND), some_count(b, DT_INT8), k);
        agg_fixture_destroy(b);
    }
}

/* Whatever the children have acknowledged, and whatever is sent again. */
static void results_are_shared_while_there_are_parts_and_copied_else(void **state)
{
    static const char conf[] =
        LINKS REDUCE "mtu = 4096; leaf_spine = { leaves = 4; spines = 2; hosts_per_leaf = 4; };\n";
    static const unsigned ids[] = {0, 1, 2, 3, 4, 12, 13};

    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct agg_fixture *b = agg_fixture_create(
            &(struct agg_fixture_cfg){.conf = conf, .seed = seed, .loss = 100, .dup = 200});
        struct member *m = join_all(b, 0, 4096, 24, 3, ids, LEN(ids));

        for (uint32_t k = 0; k < 4; k++) /* packets of every length, padded ones too */
            reduce_once(b, m, LEN(ids), DT_INT8, OP_SUM, 40000 + 1237 * k, k);
        assert_int_equal(b->shared > 0, b->parts != NULL);
        agg_fixture_destroy(b);
    }
}

/* A window smaller than a message: slots still flow, on every level, and nobody has more than the
 * window open. */
static void the_smallest_windows_work_and_are_never_exceeded(void **state)
{
    static const unsigned ids[] = {0, 1, 2, 3, 4, 5, 6};

    (void)state;
    for (uint32_t window = 1; window <= 3; window++) {
        struct agg_fixture *b =
            agg_fixture_create(&(struct agg_fixture_cfg){.conf = THREE_TIERS, .seed = window});
        struct member *m = join_all(b, 0, 256, window, 1, ids, LEN(ids));

        reduce_once(b, m, LEN(ids), DT_INT32, OP_SUM, 2000, 0);
        for (unsigned i = 0; i < LEN(ids); i++)
            assert_int_equal(m[i].max_open, window);
        for (unsigned i = 0; i < b->f->n_nodes; i++)
            if (b->an[i])
                assert_true(an_counters(b->an[i])->slots_peak <= window);
        agg_fixture_destroy(b);
    }
}

static void the_window_granted_is_the_least_on_the_way_up(void **state)
{
    static const unsigned ids[] = {0, 4};
    struct agg_fixture *b = agg_fixture_create(&(struct agg_fixture_cfg){
        .conf = LINKS
        "nodes = ( { name = (\"h0\", \"h1\", \"h2\", \"h3\", \"h4\"); kind = \"host\"; },\n"
        "{ name = (\"l0\", \"l1\"); role = \"leaf\"; reduce = { window = 100; }; },\n"
        "{ name = \"s\"; role = \"spine\"; reduce = { window = 40; }; } );\n"
        "links = ( { a = (\"h0\", \"h1\", \"h2\"); b = \"l0\"; }, { a = (\"h3\", \"h4\"); b = "
        "\"l1\"; },\n{ a = (\"l0\", \"l1\"); b = \"s\"; } );\n",
        .seed = 1});
    struct member *m = join_all(b, 0, 1024, 0, 1, ids, 2);
    uint16_t leaf = fabric_node_index(b->f, fabric_node(b->f, "l0"));

    (void)state;
    assert_int_equal(rte_be_to_cpu_32(m[0].granted.window), 40);
    assert_int_equal(an_counters(b->an[leaf])->slots_granted, 40);
    reduce_once(b, m, 2, DT_FP32, OP_SUM, 5000, 0);
    agg_fixture_destroy(b);
}

static void a_barrier_and_an_empty_vector_are_one_slot(void **state)
{
    static const unsigned ids[] = {0, 1, 5, 6};
    struct agg_fixture *b =
        agg_fixture_create(&(struct agg_fixture_cfg){.conf = LEAVES, .seed = 5});
    struct member *m = join_all(b, 0, 1024, 16, 1, ids, LEN(ids));

    (void)state;
    for (uint32_t k = 0; k < 6; k++) {
        for (unsigned i = 0; i < LEN(ids); i++)
            agg_fixture_start(&m[i], &(struct agg_fixture_op){
                                         .coll = k % 2 ? AGG_BARRIER : AGG_ALLREDUCE, .opseq = k});
        assert_true(agg_fixture_run(b, agg_fixture_all_done, 100 * PS_PER_MS));
    }
    for (unsigned i = 0; i < LEN(ids); i++) {
        assert_int_equal(m[i].state, MEMBER_IN);
        assert_int_equal(m[i].got_slots, 6);
    }
    agg_fixture_destroy(b);
}

/* No member leaves a barrier before the last has entered it. */
static void a_barrier_waits_for_the_last(void **state)
{
    static const unsigned ids[] = {0, 1, 5, 6};
    struct agg_fixture *b =
        agg_fixture_create(&(struct agg_fixture_cfg){.conf = LEAVES, .seed = 6});
    struct member *m = join_all(b, 0, 1024, 16, 1, ids, LEN(ids));

    (void)state;
    for (unsigned i = 0; i < 3; i++)
        agg_fixture_start(&m[i], &(struct agg_fixture_op){.coll = AGG_BARRIER});
    agg_fixture_settle(b, 30 * PS_PER_MS);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(m[i].got_slots, 0);
    agg_fixture_start(&m[3], &(struct agg_fixture_op){.coll = AGG_BARRIER});
    assert_true(agg_fixture_run(b, agg_fixture_all_done, 100 * PS_PER_MS));
    agg_fixture_destroy(b);
}

static void elements_may_be_lengths_only(void **state)
{
    static const unsigned ids[] = {0, 1, 2, 5, 6};
    struct agg_fixture *b =
        agg_fixture_create(&(struct agg_fixture_cfg){.conf = LEAVES, .seed = 7});
    struct member *m = join_all(b, 0, 1024, 24, 1, ids, LEN(ids));

    (void)state;
    for (uint32_t k = 0; k < 3; k++) {
        for (unsigned i = 0; i < LEN(ids); i++)
            agg_fixture_start(&m[i], &(struct agg_fixture_op){.coll = AGG_ALLREDUCE,
                                                              .dtype = DT_FP32,
                                                              .opseq = k,
                                                              .total = 100000 + 4 * k,
                                                              .length_only = true});
        assert_true(agg_fixture_run(b, agg_fixture_all_done, 400 * PS_PER_MS));
    }
    for (unsigned i = 0; i < LEN(ids); i++) {
        assert_int_equal(m[i].state, MEMBER_IN);
        assert_true(m[i].got_all);
    }
    agg_fixture_destroy(b);
}

/* One child without bytes makes a result without bytes, whichever it is, at its switch and above. */
static void one_member_that_sends_lengths_only_makes_the_result_so(void **state)
{
    static const unsigned ids[] = {0, 1, 2, 5, 6};
    struct agg_fixture *b =
        agg_fixture_create(&(struct agg_fixture_cfg){.conf = LEAVES, .seed = 9});
    struct member *m = join_all(b, 0, 1024, 24, 1, ids, LEN(ids));

    (void)state;
    for (uint32_t k = 0; k < LEN(ids); k++) {
        for (unsigned i = 0; i < LEN(ids); i++) {
            struct agg_fixture_op o = {.coll = AGG_ALLREDUCE,
                                       .dtype = DT_FP32,
                                       .op = OP_SUM,
                                       .opseq = k,
                                       .total = 20000,
                                       .length_only = i == k};

            m[i].gets_lengths = true;
            o.in = o.length_only ? NULL : agg_fixture_alloc(b, o.total);
            o.out = agg_fixture_alloc(b, o.total);
            agg_fixture_start(&m[i], &o);
        }
        assert_true(agg_fixture_run(b, agg_fixture_all_done, 400 * PS_PER_MS));
    }
    for (unsigned i = 0; i < LEN(ids); i++)
        assert_int_equal(m[i].state, MEMBER_IN);
    agg_fixture_destroy(b);
}

static void two_groups_on_the_same_switches_do_not_mix(void **state)
{
    static const unsigned one[] = {0, 1, 4, 5}, two[] = {1, 2, 5, 9};
    struct agg_fixture *b =
        agg_fixture_create(&(struct agg_fixture_cfg){.conf = LEAVES, .seed = 8});
    struct member *m = join_all(b, 0, 1024, 16, 1, one, 4), *k = join_all(b, 0, 512, 40, 1, two, 4);
    uint8_t *want = agg_fixture_alloc(b, 8000);

    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        struct agg_fixture_op o = {.coll = AGG_ALLREDUCE,
                                   .dtype = i < 4 ? DT_INT64 : DT_FP16,
                                   .op = OP_SUM,
                                   .total = 8000};

        o.in = agg_fixture_alloc(b, 8000);
        o.out = agg_fixture_alloc(b, 8000);
        ref_fill(o.dtype, o.in, o.total / dtype_size(o.dtype), &b->rng);
        agg_fixture_start(&m[i], &o);
    }
    assert_true(agg_fixture_run(b, agg_fixture_all_done, 100 * PS_PER_MS));
    agg_fixture_reference(b, m, 4, OP_SUM, DT_INT64, 1000, want);
    assert_memory_equal(m[2].op.out, want, 8000);
    agg_fixture_reference(b, k, 4, OP_SUM, DT_FP16, 4000, want);
    assert_memory_equal(k[3].op.out, want, 8000);
    agg_fixture_destroy(b);
}

/* Without faults there is nothing to repeat. */
static void a_run_without_faults_has_no_repeats_and_no_naks(void **state)
{
    static const unsigned ids[] = {0, 1, 2, 3, 4, 5, 6};
    struct agg_fixture *b =
        agg_fixture_create(&(struct agg_fixture_cfg){.conf = THREE_TIERS, .seed = 9});
    struct member *m = join_all(b, 0, 1024, 64, 1, ids, LEN(ids));

    (void)state;
    reduce_once(b, m, LEN(ids), DT_FP32, OP_SUM, 100000, 0);
    for (unsigned i = 0; i < b->f->n_nodes; i++)
        if (b->an[i]) {
            const struct roce_counters *c = an_roce_counters(b->an[i]);

            assert_int_equal(c->retransmits + c->timeouts + c->rnr_naks_sent + c->seq_naks_sent, 0);
        }
    agg_fixture_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_and_operation_has_the_references_bits_at_depth_1),
        cmocka_unit_test(every_type_and_operation_has_the_references_bits_at_depth_2),
        cmocka_unit_test(every_type_and_operation_has_the_references_bits_at_depth_3),
        cmocka_unit_test(two_to_sixteen_children_reduce_in_order_of_child_whatever_comes_first),
        cmocka_unit_test(several_ranks_of_a_host_and_unequal_leaves_are_one_tree),
        cmocka_unit_test(lost_and_doubled_frames_do_not_change_a_bit),
        cmocka_unit_test(results_are_shared_while_there_are_parts_and_copied_else),
        cmocka_unit_test(the_smallest_windows_work_and_are_never_exceeded),
        cmocka_unit_test(the_window_granted_is_the_least_on_the_way_up),
        cmocka_unit_test(a_barrier_and_an_empty_vector_are_one_slot),
        cmocka_unit_test(a_barrier_waits_for_the_last),
        cmocka_unit_test(elements_may_be_lengths_only),
        cmocka_unit_test(one_member_that_sends_lengths_only_makes_the_result_so),
        cmocka_unit_test(two_groups_on_the_same_switches_do_not_mix),
        cmocka_unit_test(a_run_without_faults_has_no_repeats_and_no_naks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
