/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times and loads of a protocol's packets by hand. A packet of N bytes has 106 + N on a link, N in
 * fours: at 400 Gb/s 20 ps a byte, at 100 Gb/s 80 ps. Links have 300 ns.
 */
#include "protocols/host/path.h"
#include "tests/fabric/load.h"

#include "base/units.h"

#define NS 1000ll
#define GB 1000000000ull

/* A rank of each of the hosts, or so many. */
static struct fab_members members(unsigned ranks_per_host, unsigned n, const unsigned *ids)
{
    struct fab_members m = {.ranks_per_host = (uint16_t)ranks_per_host};

    for (unsigned i = 0; i < n; i++)
        fab_members_add(&m, ids[i]);
    return m;
}

#define OF(per_host, ...)                                                                          \
    members(per_host, LEN(((const unsigned[]){__VA_ARGS__})), (const unsigned[]){__VA_ARGS__})
#define M(...) OF(1, __VA_ARGS__)

#define WAYS(f, t, m) (&(const struct proto_ways){.fab = (f), .tree = (t), .members = (m)})

/* From the first port of one node to the first of another. */
static int64_t path(const struct fabric *f, const char *from, const char *to, uint32_t bytes)
{
    return proto_path_ps(f, node(f, from), 0, node(f, to), 0, bytes);
}

/* ---- packets ---- */

static void a_packet_is_padded_and_has_heads_on_each_link(void **state)
{
    struct fabric *f = load_leaf_spine(2, 1, 2, 1, "");

    (void)state;
    assert_int_equal(path(f, "h0", "leaf0", 0), 106 * 20 + 300 * NS);
    assert_int_equal(path(f, "h0", "leaf0", 1), 110 * 20 + 300 * NS);
    assert_int_equal(path(f, "h0", "leaf0", 4), 110 * 20 + 300 * NS);
    assert_int_equal(path(f, "h0", "leaf0", 5), 114 * 20 + 300 * NS);
    assert_int_equal(path(f, "h0", "h1", 1000), 2 * (1106 * 20 + 300 * NS));
    assert_int_equal(path(f, "h0", "h2", 1000), 4 * (1106 * 20 + 300 * NS));
    assert_int_equal(path(f, "h0", "h0", 1000), 1106 * 20); /* by the loop of its NIC */
    fabric_free(f);
}

/* Hosts on two switches; c on the second alone. */
#define TWO                                                                                        \
    REDUCE "nodes = ( { name = (\"s\", \"z\"); role = \"leaf\"; },\n"                              \
           "  { name = (\"a\", \"b\", \"c\"); kind = \"host\"; } );\n"                             \
           "links = ( { a = (\"a\", \"b\"); b = \"s\"; },\n"                                       \
           "  { a = (\"a\", \"b\", \"c\"); b = \"z\"; rate = \"100Gb/s\"; } );"

static void ports_choose_the_network(void **state)
{
    struct fabric *f = load_text(LINKS TWO);
    uint16_t a = node(f, "a"), b = node(f, "b"), c = node(f, "c");

    (void)state;
    assert_int_equal(proto_path_ps(f, a, 0, b, 0, 44), 2 * (150 * 20 + 300 * NS));
    assert_int_equal(proto_path_ps(f, a, 0, b, 1, 44), -1);
    assert_int_equal(proto_path_ps(f, a, 1, b, 0, 44), -1);
    assert_int_equal(proto_path_ps(f, a, 1, b, 1, 44), 2 * (150 * 80 + 300 * NS));
    assert_int_equal(proto_path_ps(f, c, 0, b, 1, 44), 2 * (150 * 80 + 300 * NS));
    assert_int_equal(proto_path_ps(f, a, 0, a, 0, 44), 150 * 20);
    assert_int_equal(proto_path_ps(f, a, 1, a, 1, 44), 150 * 80);
    fabric_free(f);
}

/* slow is behind a link of 100 Gb/s; s cuts through, z stores. */
#define UNEVEN                                                                                     \
    "nodes = ( { name = \"s\"; role = \"leaf\"; forwarding = \"cut-through\"; },\n"                \
    "  { name = \"z\"; role = \"leaf\"; },\n"                                                      \
    "  { name = (\"a\", \"b\", \"slow\", \"c\"); kind = \"host\"; } );\n"                          \
    "links = ( { a = \"a\"; b = \"s\"; }, { a = \"s\"; b = \"b\"; },\n"                            \
    "  { a = \"slow\"; b = \"s\"; rate = \"100Gb/s\"; }, { a = \"z\"; b = \"s\"; },\n"             \
    "  { a = \"c\"; b = \"z\"; } );\n"

/* A switch that cuts through waits for 64 bytes, and so long that it does not run out of bits. */
static void a_switch_that_cuts_through_waits_for_the_head(void **state)
{
    struct fabric *f = load_text(LINKS UNEVEN);

    (void)state;
    assert_int_equal(path(f, "a", "b", 1000), 64 * 20 + 1106 * 20 + 600 * NS);
    assert_int_equal(path(f, "b", "a", 1000), 64 * 20 + 1106 * 20 + 600 * NS);
    assert_int_equal(path(f, "a", "slow", 1000), 64 * 20 + 1106 * 80 + 600 * NS);
    assert_int_equal(path(f, "slow", "a", 1000), 1106 * 80 + 600 * NS);
    /* It stores at z, and at its end. */
    assert_int_equal(path(f, "a", "c", 1000), 64 * 20 + 2 * 1106 * 20 + 900 * NS);
    assert_int_equal(path(f, "c", "a", 1000), 64 * 20 + 2 * 1106 * 20 + 900 * NS);
    assert_int_equal(path(f, "a", "s", 1000), 1106 * 20 + 300 * NS);
    /* The head's 5,120 ps at 100 Gb/s are longer than the difference of a packet of 14 bytes more. */
    assert_int_equal(path(f, "slow", "a", 0), 106 * 60 + 106 * 20 + 600 * NS);
    fabric_free(f);
}

static void across_is_the_longest_from_and_to_the_first(void **state)
{
    struct fabric *f = load_text(LINKS UNEVEN);
    const struct fab_members none = {.ranks_per_host = 1}, near = M(0, 1), far = M(1, 2),
                             back = M(2, 3), alone = M(2), twice = OF(2, 4, 5), all = M(0, 1, 2, 3),
                             some = M(0, 2, 1);
    const int64_t to_slow = 64 * 20 + 1106 * 80 + 600 * NS;

    (void)state;
    assert_int_equal(proto_across_ps(WAYS(f, NULL, &none), 1000), 0);
    assert_int_equal(proto_across_ps(WAYS(f, NULL, &alone), 1000), 0);
    assert_int_equal(proto_across_ps(WAYS(f, NULL, &twice), 1000), 1106 * 80);
    assert_int_equal(proto_across_ps(WAYS(f, NULL, &near), 1000), 64 * 20 + 1106 * 20 + 600 * NS);
    assert_int_equal(proto_across_ps(WAYS(f, NULL, &far), 1000), to_slow);
    assert_int_equal(proto_across_ps(WAYS(f, NULL, &some), 1000), to_slow);
    assert_int_equal(proto_across_ps(WAYS(f, NULL, &all), 1000),
                     64 * 20 + 2 * 1106 * 20 + 900 * NS);
    /* From the slow one it is 1106 * 80 to s, and 64 bytes more back to it. */
    assert_int_equal(proto_across_ps(WAYS(f, NULL, &back), 1000),
                     1106 * 20 + 64 * 20 + 1106 * 80 + 900 * NS);
    assert_int_equal(proto_round_trip_ps(WAYS(f, NULL, &far), 1000), 2 * to_slow);
    fabric_free(f);
}

/* ---- trees ---- */

/* A host at a leaf of one core, others below spines, one at a spine; switches take 150 ns a frame. */
#define TIERS                                                                                      \
    "costs = { switch = \"150ns\"; };\n" REDUCE                                                    \
    "nodes = ( { name = \"core\"; role = \"core\"; },\n"                                           \
    "  { name = (\"spine0\", \"spine1\"); role = \"spine\"; },\n"                                  \
    "  { name = (\"leaf0\", \"leaf1\", \"leaf2\"); role = \"leaf\"; },\n"                          \
    "  { name = (\"a\", \"b\", \"c\", \"d\", \"e\", \"f\"); kind = \"host\"; } );\n"               \
    "links = ( { a = (\"a\", \"c\"); b = \"leaf0\"; }, { a = \"leaf1\"; b = (\"b\", \"f\"); },\n"  \
    "  { a = \"leaf0\"; b = \"spine0\"; }, { a = \"spine0\"; b = \"leaf1\"; },\n"                  \
    "  { a = \"d\"; b = \"leaf2\"; }, { a = \"leaf2\"; b = \"spine1\"; },\n"                       \
    "  { a = (\"spine0\", \"spine1\"); b = \"core\"; },\n"                                         \
    "  { a = \"e\"; b = \"spine1\"; rate = \"100Gb/s\"; } );\n"

enum tiers { A, B, C, D, E, F };

static void levels_and_leaves_are_those_of_the_members(void **state)
{
    struct fabric *f = load_text(LINKS TIERS);
    const struct {
        struct fab_members m;
        unsigned levels, leaves;
    } rows[] = {
        {{.ranks_per_host = 1}, 0, 0},
        {M(A), 1, 1},
        {M(A, C), 1, 1},
        {M(A, B), 2, 2},
        {M(A, B, C), 2, 2},
        {M(B, D), 3, 2},
        {M(D, E), 2, 2},
        {M(A, E), 3, 2},
        {M(A, B, C, D, E, F), 3, 4},
        {OF(2, 2 * A, 2 * A + 1), 1, 1},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        assert_int_equal(proto_levels(WAYS(f, f->trees, &rows[i].m)), rows[i].levels);
        assert_int_equal(proto_leaves(WAYS(f, f->trees, &rows[i].m)), rows[i].leaves);
        assert_int_equal(proto_levels(WAYS(f, NULL, &rows[i].m)), 0);
        assert_int_equal(proto_leaves(WAYS(f, NULL, &rows[i].m)), 0);
    }
    fabric_free(f);
}

/* A host's port takes 300 ns, a switch's 450. */
static void up_and_down_end_at_the_lowest_root(void **state)
{
    struct fabric *f = load_text(LINKS TIERS);
    const int64_t up = 1106 * 20 + 300 * NS, hop = 1106 * 20 + 450 * NS, slow = 1106 * 60;
    const struct {
        struct fab_members m;
        int64_t up, down;
    } rows[] = {
        {M(A, C), up, hop},
        {M(A, B), up + hop, 2 * hop},
        {M(A, D), up + 2 * hop, 3 * hop},
        {M(D, E), up + hop, 2 * hop},
        {M(A, D, E), up + 2 * hop, 3 * hop},
        {M(E), up + slow, hop + slow},
        {OF(2, 2 * D + 1, 2 * E + 1), up + hop, 2 * hop},
        {{.ranks_per_host = 1}, 0, 0},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        const struct proto_ways *w = WAYS(f, f->trees, &rows[i].m);

        assert_int_equal(proto_up_ps(w, 1000), rows[i].up);
        assert_int_equal(proto_down_ps(w, 1000), rows[i].down);
        assert_int_equal(proto_round_trip_ps(w, 1000), rows[i].up + rows[i].down);
        assert_int_equal(proto_up_ps(WAYS(f, NULL, &rows[i].m), 1000), 0);
        assert_int_equal(proto_down_ps(WAYS(f, NULL, &rows[i].m), 1000), 0);
    }
    fabric_free(f);
}

/* The first has the first ports, the second the others. */
static void a_tree_has_its_ports(void **state)
{
    struct fabric *f = load_text(LINKS TWO);
    const struct fab_members m = M(0, 1), all = M(0, 1, 2);
    unsigned ranks;

    (void)state;
    for (unsigned t = 0; t < f->n_trees; t++) {
        const struct fab_tree *tree = &f->trees[t];
        const struct proto_ways *w = WAYS(f, tree, &m);
        bool second = tree->root == node(f, "z");

        assert_int_equal(proto_host_port(w, 0), second);
        assert_int_equal(proto_host_port(w, 2), 0); /* of the first it is not */
        assert_int_equal(proto_up_ps(w, 1000), 1106 * (second ? 80 : 20) + 300 * NS);
        assert_int_equal(proto_down_ps(w, 1000), 1106 * (second ? 80 : 20) + 300 * NS);
        assert_int_equal(proto_across_ps(w, 1000), 2 * (1106 * (second ? 80 : 20) + 300 * NS));
        assert_int_equal(proto_rate_bps(w, &ranks), (second ? 100 : 400) * GB);
        assert_int_equal(proto_up_ps(WAYS(f, tree, &all), 1000), second ? 1106 * 80 + 300 * NS : 0);
    }
    assert_true(f->n_trees >= 2);
    assert_int_equal(proto_host_port(WAYS(f, NULL, &m), 0), 0);
    fabric_free(f);
}

static void the_slowest_link_and_who_shares_one(void **state)
{
    struct fabric *f = load_text(LINKS TIERS);
    const struct {
        struct fab_members m;
        uint64_t rate;
        unsigned ranks;
    } rows[] = {
        {{.ranks_per_host = 1}, 0, 1},    {M(A), 400 * GB, 1},        {M(A, B, C), 400 * GB, 1},
        {M(A, E, F), 100 * GB, 1},        {M(D, E), 100 * GB, 1},     {OF(4, 1, 2), 400 * GB, 2},
        {OF(4, 0, 1, 3, 4), 400 * GB, 3}, {OF(4, 3, 4), 400 * GB, 1}, {OF(4, 3, 4, 5), 400 * GB, 2},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        unsigned ranks = 99;

        assert_int_equal(proto_rate_bps(WAYS(f, f->trees, &rows[i].m), &ranks), rows[i].rate);
        assert_int_equal(ranks, rows[i].ranks);
    }
    fabric_free(f);
}

/* A leaf's links to switches, not to hosts, among its members. */
static void a_share_is_of_what_a_leaf_has_upwards(void **state)
{
    struct fabric *f = load_text(LINKS TIERS);
    const struct {
        struct fab_members m;
        uint64_t share;
    } rows[] = {
        {{.ranks_per_host = 1}, 0},
        {M(A), 400 * GB},
        {M(A, C), 200 * GB},
        {M(B), 400 * GB},
        {M(B, F), 200 * GB},
        {M(A, B, F), 200 * GB},
        {M(A, C, B), 200 * GB},
        {M(D, E), 400 * GB}, /* spine1 has 800 */
        {OF(4, 16, 17, 18, 19), 200 * GB},
        {M(E), 800 * GB},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        assert_int_equal(proto_share_bps(WAYS(f, f->trees, &rows[i].m)), rows[i].share);
        assert_int_equal(proto_share_bps(WAYS(f, NULL, &rows[i].m)), 0);
    }
    fabric_free(f);
    f = load_text(LINKS REDUCE "single_switch = { hosts = 2; };");
    assert_int_equal(proto_share_bps(WAYS(f, f->trees, &rows[2].m)), 0);
    fabric_free(f);
}

/* ---- noticing ---- */

#define NOTICE(more) "costs = { gpu = \"1us\"; network = { step = \"500ns\"; " more " }; };\n"
/* A packet of 44 bytes is received as 100: 2 ns at 400 Gb/s, 4 at 200, 8 at 100. */
#define LL "ll = { step = \"100ns\"; rate = \"200Gb/s\"; };"

static void noticing_is_that_of_the_slowest_port(void **state)
{
    struct fabric *f = load_leaf_spine(2, 1, 2, 1, NOTICE(""));
    const struct fab_members none = {.ranks_per_host = 1}, m = M(0, 1), last = M(0, 3), slow = M(3);
    int64_t every = -1;

    (void)state;
    assert_int_equal(proto_notice_ps(WAYS(f, NULL, &m), 44, &every), 1500 * NS);
    assert_int_equal(every, 0);
    assert_int_equal(proto_notice_ps(WAYS(f, NULL, &none), 44, &every), 0);
    fabric_free(f);
    f = load_leaf_spine(2, 1, 2, 1,
                        NOTICE(LL) "links = ( { of = \"h3-leaf1\"; rate = \"100Gb/s\"; } );");
    assert_int_equal(proto_notice_ps(WAYS(f, NULL, &m), 44, &every), 1100 * NS + 4 * NS - 2 * NS);
    assert_int_equal(every, 4 * NS);
    assert_int_equal(proto_notice_ps(WAYS(f, NULL, &slow), 44, &every), 1100 * NS);
    assert_int_equal(every, 8 * NS);
    assert_int_equal(proto_notice_ps(WAYS(f, NULL, &last), 44, &every), 1102 * NS);
    assert_int_equal(every, 8 * NS);
    assert_int_equal(proto_notice_ps(WAYS(f, NULL, &last), 44, NULL), 1102 * NS);
    fabric_free(f);
}

/* ---- hosts that are cabled to each other ---- */

#define CABLES(more)                                                                               \
    "nodes = ( { name = (\"a\", \"b\", \"c\"); kind = \"host\"; } );\n"                            \
    "links = ( { a = \"a\"; b = \"b\"; } " more " );\n"

static void cabled_hosts_reach_their_first_neighbour_alone(void **state)
{
    struct fabric *f =
        load_text(LINKS CABLES(", { a = \"b\"; b = \"c\"; }, { a = \"c\"; b = \"a\"; }"));
    const struct fab_members pair = M(0, 1), others = M(1, 2), all = M(0, 1, 2), alone = M(1),
                             twice = OF(2, 0, 1, 2, 3);

    (void)state;
    assert_true(proto_all_reach(WAYS(f, NULL, &pair)));
    assert_true(proto_all_reach(WAYS(f, NULL, &twice)));
    assert_true(proto_all_reach(WAYS(f, NULL, &alone)));
    assert_false(proto_all_reach(WAYS(f, NULL, &others)));
    assert_false(proto_all_reach(WAYS(f, NULL, &all)));
    fabric_free(f);
    f = load_text(LINKS UNEVEN);
    assert_true(proto_all_reach(WAYS(f, NULL, &all)));
    fabric_free(f);
}

/* ---- load of links ---- */

/* Packets a link, of one to each server from each rank of another host. */
static void the_busiest_link_is_a_server_s(void **state)
{
    struct fabric *f = load_leaf_spine(2, 1, 2, 1, "");
    const struct {
        struct fab_members m;
        unsigned servers;
        bool back;
        double most;
    } rows[] = {
        {M(0, 1, 2, 3), 0, true, 0},  /* none */
        {M(0, 1, 2, 3), 1, false, 3}, /* to the server from three */
        {M(0, 1, 2, 3), 1, true, 3},
        {M(0, 1, 2, 3), 2, false, 4}, /* from leaf1 to the two of leaf0 */
        {M(0, 1, 2, 3), 2, true, 4},  /* the same, and a server's 3 back and 1 to the other */
        {M(0, 1, 2, 3), 4, false, 4}, /* from leaf to leaf: two to two */
        {M(0, 1, 2, 3), 4, true, 8},
        {M(0, 1, 2, 3), 9, true, 8},
        {M(0, 1), 2, false, 1},
        {M(0, 1), 2, true, 2},
        {M(1), 1, true, 0},
        {OF(2, 0, 1, 2), 1, false, 1}, /* its own host's does not cross a link */
        {OF(2, 0, 1, 2), 3, false, 2},
        {OF(2, 0, 1, 2), 3, true, 4},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        const struct proto_ways *w = WAYS(f, NULL, &rows[i].m);
        double one = 9;

        assert_true(proto_busiest(w, rows[i].servers, rows[i].back, 400 * GB, &one) ==
                    rows[i].most);
        assert_true(one == 1);
        assert_true(proto_busiest(w, rows[i].servers, rows[i].back, 100 * GB, &one) ==
                    rows[i].most / 4);
        assert_true(one == (rows[i].most > 0 ? 0.25 : 1));
        assert_true(proto_busiest(w, rows[i].servers, rows[i].back, 400 * GB, NULL) ==
                    rows[i].most);
    }
    fabric_free(f);
}

/* A slow link of one packet is busier than a fast one of three. */
static void a_slow_link_is_busier(void **state)
{
    struct fabric *f =
        load_leaf_spine(2, 1, 2, 1, "links = ( { of = \"h3-leaf1\"; rate = \"100Gb/s\"; } );");
    const struct fab_members m = M(0, 1, 2, 3), fast = M(0, 1, 2), two = M(0, 3);
    double one = 9;

    (void)state;
    assert_true(proto_busiest(WAYS(f, NULL, &m), 1, false, 400 * GB, &one) == 4);
    assert_true(one == 4);
    assert_true(proto_busiest(WAYS(f, NULL, &fast), 1, false, 400 * GB, &one) == 2);
    assert_true(one == 1);
    assert_true(proto_busiest(WAYS(f, NULL, &two), 1, false, 100 * GB, &one) == 1);
    assert_true(one == 1);
    fabric_free(f);
}

/* What first switches exchange with servers; links of hosts are not counted. */
static void between_switches_each_leaf_sends_to_each_server(void **state)
{
    struct fabric *f = load_leaf_spine(3, 1, 2, 1,
                                       "links = ( { of = \"h1-leaf0\"; rate = \"1Gb/s\"; },\n"
                                       "  { of = \"h0-leaf0\"; rate = \"1Gb/s\"; },\n"
                                       "  { of = \"leaf2-spine0\"; rate = \"200Gb/s\"; } );");
    const struct {
        struct fab_members m;
        unsigned servers;
        double packets, most;
    } rows[] = {
        {M(0, 2), 0, 3, 0},       {M(0, 1), 2, 3, 0},       /* one leaf */
        {M(0, 2), 1, 3, 3},                                 /* from leaf1 to h0 */
        {M(0, 2), 1, 0.25, 1},                              /* back to leaf1 */
        {M(0, 2), 2, 3, 4},                                 /* back from h0, and to h2 */
        {M(0, 1, 2), 2, 3, 6},                              /* to h0 and h1 */
        {M(0, 1, 2, 3), 2, 3, 6}, {M(0, 1, 2, 3), 3, 3, 7}, /* from leaf1, and back from h2 */
        {M(0, 1, 2, 3), 9, 3, 8}, {M(0, 4), 1, 3, 6},       /* leaf2's link has half the rate */
        {M(0, 4), 1, 0.25, 2},    {M(1, 3, 5), 1, 3, 6},
        {M(1, 2, 3), 1, 0.25, 1}, /* one packet to a leaf */
        {M(0, 2, 4), 2, 4, 16},   /* leaf2 to both, over half the rate */
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        const struct proto_ways *w = WAYS(f, f->trees, &rows[i].m);

        assert_true(proto_between(w, rows[i].servers, rows[i].packets, 400 * GB) == rows[i].most);
        assert_true(proto_between(w, rows[i].servers, rows[i].packets, 800 * GB) ==
                    2 * rows[i].most);
        assert_true(proto_between(WAYS(f, NULL, &rows[i].m), rows[i].servers, rows[i].packets,
                                  400 * GB) == 0);
    }
    fabric_free(f);
}

/* The first link and the first node count as others do, and slow hosts at a switch's end of a link do
 * not. */
static void two_switches_exchange_over_the_first_link(void **state)
{
    struct fabric *f =
        load_text(LINKS REDUCE "nodes = ( { name = (\"s0\", \"s1\"); role = \"leaf\"; },\n"
                               "  { name = (\"a\", \"b\"); kind = \"host\"; } );\n"
                               "links = ( { a = \"s0\"; b = \"s1\"; },\n"
                               "  { a = \"s0\"; b = \"a\"; rate = \"10Gb/s\"; },\n"
                               "  { a = \"s1\"; b = \"b\"; rate = \"10Gb/s\"; } );");
    const struct fab_members m = M(0, 1);
    const struct proto_ways *w = WAYS(f, f->trees, &m);

    (void)state;
    assert_int_equal(proto_leaves(w), 2);
    assert_true(proto_between(w, 1, 3, 400 * GB) == 3);
    assert_true(proto_between(w, 1, 0.25, 400 * GB) == 1);
    assert_true(proto_between(w, 2, 3, 400 * GB) == 4);
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_packet_is_padded_and_has_heads_on_each_link),
        cmocka_unit_test(ports_choose_the_network),
        cmocka_unit_test(a_switch_that_cuts_through_waits_for_the_head),
        cmocka_unit_test(across_is_the_longest_from_and_to_the_first),
        cmocka_unit_test(levels_and_leaves_are_those_of_the_members),
        cmocka_unit_test(up_and_down_end_at_the_lowest_root),
        cmocka_unit_test(a_tree_has_its_ports),
        cmocka_unit_test(the_slowest_link_and_who_shares_one),
        cmocka_unit_test(a_share_is_of_what_a_leaf_has_upwards),
        cmocka_unit_test(noticing_is_that_of_the_slowest_port),
        cmocka_unit_test(cabled_hosts_reach_their_first_neighbour_alone),
        cmocka_unit_test(the_busiest_link_is_a_server_s),
        cmocka_unit_test(a_slow_link_is_busier),
        cmocka_unit_test(between_switches_each_leaf_sends_to_each_server),
        cmocka_unit_test(two_switches_exchange_over_the_first_link),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
