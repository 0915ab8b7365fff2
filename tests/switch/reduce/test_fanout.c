/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduce to one member, broadcast from one: bits, and the bytes sent to each member. */
#include "tests/support/agg_fixture.h"
#include "tests/support/reduce_ref.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
#define CONF(mtu)                                                                                  \
    "link_defaults = { rate = \"400Gb/s\"; latency = \"300ns\"; };\nreduce = { };\nmtu = " #mtu    \
    ";\n"
#define LEAVES CONF(1024) "leaf_spine = { leaves = 3; spines = 2; hosts_per_leaf = 4; };\n"
#define SINGLE CONF(512) "single_switch = { hosts = 5; };\n"
/* Neighbours in number hang on different leaves, and a leaf has one member only. */
#define CROSSED                                                                                    \
    CONF(256)                                                                                      \
    "nodes = ( { name = (\"a\", \"b\", \"c\", \"d\", \"e\"); kind = \"host\"; },\n"                \
    "{ name = (\"l0\", \"l1\", \"l2\"); role = \"leaf\"; }, { name = \"s\"; role = \"spine\"; } "  \
    ");\nlinks = ( { a = (\"a\", \"c\"); b = \"l0\"; }, { a = (\"b\", \"d\"); b = \"l1\"; },\n"    \
    "{ a = \"e\"; b = \"l2\"; }, { a = (\"l0\", \"l1\", \"l2\"); b = \"s\"; } );\n"

static struct member *join_all(struct agg_fixture *b, uint16_t mtu, uint32_t window,
                               const unsigned *ids, unsigned n)
{
    struct member *first = agg_fixture_group(b, 0, 7 + b->n, mtu, window, 1, ids, n);

    for (unsigned i = 0; i < n; i++)
        agg_fixture_join(&first[i]);
    if (!agg_fixture_run(b, agg_fixture_all_in, 400 * PS_PER_MS))
        fail_msg("JOINs are not answered");
    for (unsigned i = 0; i < n; i++)
        if (first[i].state != MEMBER_IN)
            fail_msg("member %u: %s", first[i].id, first[i].text);
    return first;
}

static void fill(struct agg_fixture *b, struct member *m, struct agg_fixture_op o, size_t count)
{
    size_t bytes = count * dtype_size(o.dtype);

    o.total = bytes;
    o.in = agg_fixture_alloc(b, bytes + 8);
    o.out = agg_fixture_alloc(b, bytes + 8);
    ref_fill(o.dtype, o.in, count, &b->rng);
    memset(o.out, 0xa5, bytes);
    agg_fixture_start(m, &o);
}

/* One operation; `root` is an index of the members. */
static void once(struct agg_fixture *b, struct member *m, unsigned n, struct agg_fixture_op o,
                 unsigned root, size_t count)
{
    size_t bytes = count * dtype_size(o.dtype);
    uint8_t *want = agg_fixture_alloc(b, bytes + 8), *untouched = agg_fixture_alloc(b, bytes + 8);

    o.root = (uint16_t)m[root].id;
    memset(untouched, 0xa5, bytes);
    for (unsigned i = 0; i < n; i++)
        fill(b, &m[i], o, count);
    if (!agg_fixture_run(b, agg_fixture_all_done, 2000 * PS_PER_MS))
        fail_msg("collective %u of %zu elements, root %u, does not end", o.coll, count, root);
    if (o.coll == AGG_REDUCE)
        agg_fixture_reference(b, m, n, o.op, o.dtype, count, want);
    else
        memcpy(want, m[root].op.in, bytes);
    for (unsigned i = 0; i < n; i++) {
        bool gets = o.coll == AGG_REDUCE ? i == root : i != root;

        if (m[i].state != MEMBER_IN)
            fail_msg("member %u: %s %s", m[i].id, agg_status_name(m[i].status), m[i].text);
        if (memcmp(m[i].op.out, gets ? want : untouched, bytes))
            fail_msg("collective %u of %zu, root %u: differs at member %u", o.coll, count, root, i);
    }
}

static void every_root(const char *conf, uint16_t mtu, uint32_t window, const unsigned *ids,
                       unsigned n, unsigned loss)
{
    struct agg_fixture *b =
        agg_fixture_create(&(struct agg_fixture_cfg){.conf = conf, .seed = n, .loss = loss});
    struct member *m = join_all(b, mtu, window, ids, n);
    uint32_t opseq = 0;

    for (unsigned root = 0; root < n; root++) {
        static const size_t counts[] = {0, 1, 7, 600, 5003};

        for (unsigned k = 0; k < LEN(counts); k++) {
            enum dtype t = (enum dtype)agg_fixture_random(b, DT_FP32_LOC);
            enum redop op = (enum redop)agg_fixture_random(b, OP_BAND);

            once(b, m, n,
                 (struct agg_fixture_op){.coll = AGG_REDUCE, .dtype = t, .op = op, .opseq = opseq},
                 root, counts[k]);
            once(b, m, n,
                 (struct agg_fixture_op){.coll = AGG_BROADCAST, .dtype = t, .opseq = opseq + 1},
                 root, counts[k]);
            opseq += 2;
        }
    }
    for (unsigned i = 0; i < b->f->n_nodes; i++)
        if (b->an[i])
            assert_int_equal(an_counters(b->an[i])->aborts, 0);
    agg_fixture_destroy(b);
}

static void every_root_on_every_tree_gets_or_gives_the_right_bits(void **state)
{
    static const unsigned one[] = {0, 1, 2, 3, 4}, two[] = {0, 1, 4, 5, 6, 11},
                          three[] = {0, 1, 2, 3, 4};

    (void)state;
    every_root(SINGLE, 512, 64, one, LEN(one), 0);
    every_root(LEAVES, 1024, 32, two, LEN(two), 0);
    every_root(CROSSED, 256, 8, three, LEN(three), 0);
}

static void lost_frames_do_not_change_a_bit(void **state)
{
    static const unsigned ids[] = {0, 1, 2, 3, 4};

    (void)state;
    every_root(CROSSED, 256, 24, ids, LEN(ids), 300);
}

/* Reduce-scatter and all-gather as members make them: a block after the other without a pause. */
static void blocks_of_all_members_follow_each_other(void **state)
{
    static const unsigned ids[] = {0, 1, 2, 5, 9};
    struct agg_fixture *b =
        agg_fixture_create(&(struct agg_fixture_cfg){.conf = LEAVES, .seed = 3});
    struct member *m = join_all(b, 1024, 64, ids, LEN(ids));

    (void)state;
    for (uint32_t i = 0; i < 3 * LEN(ids); i++)
        once(b, m, LEN(ids),
             (struct agg_fixture_op){.coll = i < LEN(ids) ? AGG_REDUCE : AGG_BROADCAST,
                                     .dtype = DT_FP32,
                                     .op = OP_SUM,
                                     .opseq = i},
             i % LEN(ids), 3000);
    agg_fixture_destroy(b);
}

static void a_broadcast_is_sent_up_once_and_a_reduction_down_once(void **state)
{
    static const unsigned ids[] = {0, 1, 4, 5};
    struct agg_fixture *b =
        agg_fixture_create(&(struct agg_fixture_cfg){.conf = LEAVES, .seed = 4});
    struct member *m = join_all(b, 1024, 64, ids, LEN(ids));
    uint16_t leaf1 = fabric_node_index(b->f, fabric_node(b->f, "leaf1"));
    uint64_t in;

    (void)state;
    once(b, m, LEN(ids), (struct agg_fixture_op){.coll = AGG_BROADCAST, .dtype = DT_INT8}, 0,
         100000);
    in = an_counters(b->an[leaf1])->bytes_in;
    assert_int_equal(in, 0); /* the root is at the other leaf: only headers went up here */
    agg_fixture_destroy(b);
}

static void doomed(struct member *m, unsigned n, enum agg_status st, const char *what)
{
    struct agg_fixture *b = m->b;

    if (!agg_fixture_run(b, agg_fixture_all_aborted, 2000 * PS_PER_MS))
        fail_msg("%s: no abort", what);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(m[i].status, st);
        if (!strstr(m[i].text, what))
            fail_msg("\"%s\" does not say \"%s\"", m[i].text, what);
    }
}

static void wrong_roots_and_small_windows_are_refused_by_name(void **state)
{
    static const unsigned ids[] = {0, 1, 2};
    static const struct {
        uint16_t root[3];
        uint32_t window;
        enum agg_status st;
        const char *what;
    } rows[] = {
        {{3, 3, 3}, 64, AGG_E_PROTOCOL, "root is not a member"},
        {{9999, 9999, 9999}, 64, AGG_E_PROTOCOL, "root is not a member"},
        {{0, 0, 0}, 7, AGG_E_OP_UNSUPPORTED, "window is less"},
        {{0, 1, 0}, 64, AGG_E_OP_MISMATCH, "root: "},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct agg_fixture *b =
            agg_fixture_create(&(struct agg_fixture_cfg){.conf = SINGLE, .seed = i + 1});
        struct member *m = join_all(b, 512, rows[i].window, ids, LEN(ids));

        for (unsigned k = 0; k < LEN(ids); k++)
            fill(b, &m[k],
                 (struct agg_fixture_op){
                     .coll = AGG_REDUCE, .dtype = DT_INT8, .root = rows[i].root[k]},
                 1000);
        doomed(m, LEN(ids), rows[i].st, rows[i].what);
        agg_fixture_destroy(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_root_on_every_tree_gets_or_gives_the_right_bits),
        cmocka_unit_test(lost_frames_do_not_change_a_bit),
        cmocka_unit_test(blocks_of_all_members_follow_each_other),
        cmocka_unit_test(a_broadcast_is_sent_up_once_and_a_reduction_down_once),
        cmocka_unit_test(wrong_roots_and_small_windows_are_refused_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
