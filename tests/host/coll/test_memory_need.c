/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that a job is said to need, counted by hand for rings and trees on one switch. */
#include "host/coll/memory_need.h"
#include "host/coll/transport/protocol.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>

#define CONN  13000u /* as in memory_need.c: an end of a connection, */
#define DENSE 28000u /* with all of its rings */
#define MESSAGE                                                                                    \
    (64 + 56 +                                                                                     \
     64) /* a completion and a request where it is sent, a completion where it is received */
#define DEPTH 64u         /* slots of a connection; twice as many messages are in its rings */
#define SLICE (64u << 10) /* address space of a slot */
#define PIECE (16u << 10) /* of 256 KiB in a ring of two */
#define COUNT (64u << 10) /* elements: 256 KiB */
#define RING  (1u << ALGO_RING)
#define SHARP (1u << ALGO_SHARP)

static struct fabric *fab;
static uint16_t hosts[64];
static const uint16_t tree[1];

static struct coll_memory_cfg cfg_of(unsigned n, enum coll_kind kind, unsigned algos)
{
    return (struct coll_memory_cfg){.fab = fab,
                                    .nranks = n,
                                    .host_of_rank = hosts,
                                    .trees = 1,
                                    .tree = tree,
                                    .args = {.kind = kind, .count = COUNT, .type = DT_FP32},
                                    .algos = algos,
                                    .ops = 1};
}

static struct coll_memory need(const struct coll_memory_cfg *cfg)
{
    struct coll_memory n;

    assert_int_equal(coll_memory_predict(cfg, &n), 0);
    return n;
}

static void a_ring_has_two_ends_a_rank_and_one_where_both_neighbours_are_the_same(void **state)
{
    static const struct {
        unsigned n, conns;
    } rows[] = {{1, 0}, {2, 2}, {3, 6}, {4, 8}, {5, 10}, {6, 12}, {7, 14}, {16, 32}, {64, 128}};

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (unsigned root = 0; root < rows[i].n; root += 3) {
            struct coll_memory_cfg cfg = cfg_of(rows[i].n, COLL_BROADCAST, RING);
            struct coll_memory n;

            cfg.args.root = root;
            n = need(&cfg);
            assert_int_equal(n.conns, rows[i].conns);
            assert_int_equal(n.address_bytes, (uint64_t)n.conns * DEPTH * SLICE);
            cfg.dense = true;
            assert_int_equal(need(&cfg).conn_bytes, (uint64_t)n.conns * DENSE);
        }
}

/* Two ranks: each sends and receives 16 pieces an operation. */
static void rings_are_touched_with_the_messages_until_all_of_them_is(void **state)
{
    static const struct {
        unsigned ops, messages; /* of a rank */
    } rows[] = {{1, 16}, {2, 32}, {8, 128}, {9, 128}, {1000, 128}};

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct coll_memory_cfg cfg = cfg_of(2, COLL_ALLREDUCE, RING);

        cfg.ops = rows[i].ops;
        assert_int_equal(need(&cfg).conn_bytes, 2 * (CONN + rows[i].messages * MESSAGE));
    }
}

/* A half of the pieces is reduced out of slots. */
static void slots_are_touched_one_after_the_other(void **state)
{
    static const struct {
        unsigned ops, slots; /* of a rank */
    } rows[] = {{1, 8}, {4, 32}, {8, DEPTH}, {9, DEPTH}};

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct coll_memory_cfg cfg = cfg_of(2, COLL_ALLREDUCE, RING);

        cfg.ops = rows[i].ops;
        assert_int_equal(need(&cfg).data_bytes, 2ull * rows[i].slots * PIECE);
        cfg.dense = true;
        assert_int_equal(need(&cfg).data_bytes, 2ull * rows[i].slots * PIECE);
        cfg.lengths = true;
        assert_int_equal(need(&cfg).data_bytes, 0);
    }
}

/* A slot begins at a page. */
static void a_slot_takes_whole_pages(void **state)
{
    struct coll_memory_cfg cfg = cfg_of(2, COLL_BROADCAST, RING);

    (void)state;
    cfg.args.count = 1;
    assert_int_equal(need(&cfg).data_bytes, 4096);
    cfg.args.count = 1024;
    assert_int_equal(need(&cfg).data_bytes, 4096);
}

/* What a member has sent is kept: two windows at most. */
static void members_of_a_tree_keep_what_they_sent(void **state)
{
    static const struct {
        uint64_t count;
        uint32_t window;
        unsigned ops;
        bool dense;
        uint64_t kept; /* by a rank */
    } rows[] = {
        {COUNT, 16, 1, false, 2 * 16 * 4096},
        {COUNT, 64, 1, false, 4 * COUNT},
        {COUNT, 64, 2, false, 2 * 64 * 4096},
        {100, 16, 1, false, 400},
        {100, 16, 3, false, 1200},
        {100, 16, 1, true, 2 * 16 * 4096},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct coll_memory_cfg cfg = cfg_of(4, COLL_ALLREDUCE, SHARP);
        struct coll_memory n;

        cfg.args.count = rows[i].count;
        cfg.window = rows[i].window;
        cfg.ops = rows[i].ops;
        cfg.dense = rows[i].dense;
        n = need(&cfg);
        assert_int_equal(n.data_bytes, 4 * rows[i].kept);
        assert_int_equal(n.conns + n.conn_bytes + n.address_bytes, 0); /* of no other rank */
        cfg.lengths = true;
        assert_int_equal(need(&cfg).data_bytes, 0);
    }
}

/* Their connections are the same, and one schedule is there at a time. */
static void algorithms_that_run_one_after_the_other_share(void **state)
{
    struct coll_memory_cfg cfg = cfg_of(4, COLL_ALLREDUCE, RING);
    struct coll_memory ring = need(&cfg), sharp, both;

    (void)state;
    cfg.algos = SHARP;
    sharp = need(&cfg);
    cfg.algos = RING | SHARP;
    both = need(&cfg);
    assert_true(ring.sched_bytes > sharp.sched_bytes && sharp.sched_bytes > 0);
    assert_int_equal(both.sched_bytes, ring.sched_bytes);
    assert_int_equal(both.conns, ring.conns);
    assert_int_equal(both.conn_bytes, ring.conn_bytes);
    assert_int_equal(both.data_bytes, ring.data_bytes + sharp.data_bytes);
    assert_int_equal(coll_memory_bytes(&both),
                     both.conn_bytes + both.sched_bytes + both.data_bytes);
}

/* From 2 GiB on a shorter operation is scheduled instead. */
static void schedules_of_long_operations_grow_with_them(void **state)
{
    static const struct {
        enum coll_kind kind;
        uint64_t count, as;
        unsigned times;
    } rows[] = {
        {COLL_ALLREDUCE, 1u << 29, 1u << 28, 2}, {COLL_ALLREDUCE, 1u << 30, 1u << 28, 4},
        {COLL_BROADCAST, 1u << 29, 1u << 28, 2}, {COLL_REDUCE, 1u << 29, 1u << 28, 2},
        {COLL_ALLGATHER, 1u << 28, 1u << 27, 2}, /* by each of two */
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct coll_memory_cfg cfg = cfg_of(2, rows[i].kind, RING);
        struct coll_memory whole, part;

        cfg.args.count = rows[i].count;
        whole = need(&cfg);
        cfg.args.count = rows[i].as;
        part = need(&cfg);
        assert_int_equal(whole.sched_bytes, rows[i].times * part.sched_bytes);
        assert_int_equal(whole.conns, 2);
        assert_int_equal(whole.data_bytes, part.data_bytes);
    }
}

/* 1 GiB is scheduled as it is: its schedule is not made of two of a half, which would have twice what every schedule has. */
static void up_to_a_gigabyte_the_schedule_is_the_operations_own(void **state)
{
    static const struct {
        enum coll_kind kind;
        uint64_t count;
    } rows[] = {{COLL_ALLREDUCE, 1u << 28},
                {COLL_REDUCE, 1u << 28},
                {COLL_BROADCAST, 1u << 28},
                {COLL_ALLGATHER, 1u << 27}};

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct coll_memory_cfg cfg = cfg_of(2, rows[i].kind, RING);
        uint64_t whole;

        cfg.args.count = rows[i].count;
        whole = need(&cfg).sched_bytes;
        cfg.args.count /= 2;
        assert_true(whole < 2 * need(&cfg).sched_bytes);
        assert_true(whole > need(&cfg).sched_bytes);
    }
}

/* Each instance of a protocol has its own memory: one on each tree that it uses. */
static void a_protocol_takes_memory_on_each_of_its_trees(void **state)
{
    static const uint16_t two[] = {0, 1};
    static const char ports[] =
        "name = \"p\"; mtu = 4096; nodes = ( { name = (\"h0\", \"h1\", \"h2\", \"h3\"); kind = "
        "\"host\"; }, { name = (\"l0\", \"l1\"); role = \"leaf\"; } ); link_defaults = { latency = "
        "\"300ns\"; }; links = ( { a = (\"h0\", \"h1\", \"h2\", \"h3\"); b = \"l0\"; rate = "
        "\"200Gb/s\"; }, { a = (\"h0\", \"h1\", \"h2\", \"h3\"); b = \"l1\"; rate = \"200Gb/s\"; } "
        "); reduce = { groups = 4; };";
    struct fabric *f = fabric_load_string(ports, "ports.conf", NULL);

    (void)state;
    assert_non_null(f);
    for (unsigned seat = 0; seat < 3; seat++) /* the built-in ones */
        for (unsigned trees = 1; trees <= 2; trees++) {
            struct coll_memory_cfg cfg = cfg_of(4, COLL_ALLREDUCE, 1u << (ALGO_PROTOCOL + seat));
            struct coll_memory n;

            cfg.fab = f;
            cfg.trees = trees;
            cfg.tree = two;
            n = need(&cfg);
            assert_int_equal(n.conn_bytes - (uint64_t)n.conns * CONN,
                             4ull * trees * protocol_memory(4096));
            cfg.tree = NULL; /* it is not known which: one */
            n = need(&cfg);
            assert_int_equal(n.conn_bytes - (uint64_t)n.conns * CONN, 4 * protocol_memory(4096));
        }
    fabric_free(f);
}

static void what_has_no_schedule_has_no_figure(void **state)
{
    struct coll_memory_cfg cfg = cfg_of(4, COLL_ALLTOALL, SHARP);
    struct coll_memory n;

    (void)state;
    assert_true(coll_memory_predict(&cfg, &n) < 0);
    cfg.algos = RING | SHARP;
    cfg.args.kind = COLL_ALLREDUCE;
    cfg.args.count = 0;
    assert_int_equal(coll_memory_predict(&cfg, &n), 0);
    assert_int_equal(n.data_bytes, 0);
    assert_int_equal(n.conn_bytes, 8 * CONN);
}

static int load(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 64; i++)
        hosts[i] = (uint16_t)i;
    fab = fabric_load_string(
        "name = \"t\"; mtu = 4096; single_switch = { hosts = 64; host_link = { rate = \"400Gb/s\"; "
        "latency = \"300ns\"; }; }; reduce = { groups = 64; slots = 16384; window = 256; };",
        "t.conf", NULL);
    return fab ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    fabric_free(fab);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_has_two_ends_a_rank_and_one_where_both_neighbours_are_the_same),
        cmocka_unit_test(rings_are_touched_with_the_messages_until_all_of_them_is),
        cmocka_unit_test(slots_are_touched_one_after_the_other),
        cmocka_unit_test(a_slot_takes_whole_pages),
        cmocka_unit_test(members_of_a_tree_keep_what_they_sent),
        cmocka_unit_test(algorithms_that_run_one_after_the_other_share),
        cmocka_unit_test(schedules_of_long_operations_grow_with_them),
        cmocka_unit_test(up_to_a_gigabyte_the_schedule_is_the_operations_own),
        cmocka_unit_test(a_protocol_takes_memory_on_each_of_its_trees),
        cmocka_unit_test(what_has_no_schedule_has_no_figure),
    };

    return cmocka_run_group_tests(tests, load, unload);
}
