/* SPDX-License-Identifier: BSD-3-Clause */
/* What a protocol's formula is given, and what becomes of its answer: by protocols of this test, whose formula writes down
 * what it is asked with and says what a case wants. */
#include "model/cost_protocol.h"
#include "protocols/host/path.h"
#include "protocols/host/registry.h"
#include "protocols/host/protocol_wire.h"
#include "tests/collective/asking_protocol.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#define GPU   3000000 /* ps, as the conf's "3us" */
#define HCA   100000
#define COUNT 3000u

static enum coll_algo ranks_algo, switch_algo, without_algo;

/* ---- fabrics ---- */

static struct fabric *one_switch, *leaves, *two_ports;
static const uint16_t hosts[RANKS] = {0, 1, 2, 3}, trees[2] = {0, 1};

static struct coll_args args_of(enum coll_algo algo)
{
    return (struct coll_args){
        .kind = COLL_ALLREDUCE, .algo = algo, .count = COUNT, .type = DT_FP32, .op = OP_SUM};
}

static struct coll_prediction predict(const struct fabric *f, const struct coll_args *a,
                                      unsigned n_trees)
{
    struct coll_prediction p;

    memset(&was, 0, sizeof(was));
    assert_int_equal(protocol_predict(f, a, RANKS, hosts, trees, n_trees, &p), 0);
    return p;
}

static int refused(const struct fabric *f, const struct coll_args *a, uint16_t tree,
                   unsigned n_trees)
{
    struct coll_prediction p;

    return protocol_predict(f, a, RANKS, hosts, &tree, n_trees, &p);
}

static void a_formula_is_asked_where_the_protocol_can_run(void **state)
{
    struct coll_args a = args_of(switch_algo);

    (void)state;
    assert_int_equal(refused(one_switch, &a, 0, 1), 0);
    assert_int_equal(refused(one_switch, &a, 0, 0), -ENOTSUP);                   /* no tree */
    assert_int_equal(refused(one_switch, &a, one_switch->n_trees, 1), -ENOTSUP); /* no such */
    a.kind = COLL_BROADCAST;
    assert_int_equal(refused(one_switch, &a, 0, 1), -ENOTSUP);
    a = args_of(ranks_algo); /* needs none */
    assert_int_equal(refused(one_switch, &a, 0, 0), 0);
    assert_int_equal(refused(one_switch, &a, one_switch->n_trees, 1), 0);
    a = args_of(ALGO_RING);
    assert_int_equal(refused(one_switch, &a, 0, 1), -ENOTSUP);
}

static void a_formula_is_given_what_the_job_and_the_fabric_are(void **state)
{
    static const struct {
        bool leaves;
        unsigned n_trees, levels, n_leaves;
        uint64_t tree_bps;
    } rows[] = {{false, 1, 1, 1, 0}, {true, 1, 2, 2, 200000000000}, {true, 0, 0, 0, 0}};
    struct coll_args a = args_of(ranks_algo);

    (void)state;
    memset(&does, 0, sizeof(does));
    does.says = 5000000;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct fabric *f = rows[i].leaves ? leaves : one_switch;
        struct coll_prediction p = predict(f, &a, rows[i].n_trees);

        assert_int_equal(was.m.nranks, RANKS);
        assert_int_equal(was.m.count, COUNT);
        assert_int_equal(was.m.type, (enum trib_type)DT_FP32);
        assert_int_equal(was.m.payload, PROTO_PAYLOAD(1024));
        assert_int_equal(was.m.overhead, PROTO_OVERHEAD);
        assert_int_equal(was.m.window, 1024);
        assert_int_equal(was.m.rate_bps, 100000000000);
        assert_int_equal(was.m.ranks_a_link, 1);
        assert_int_equal(was.m.message_ps, HCA);
        assert_int_equal(was.m.notice_ps, GPU);
        assert_int_equal(was.m.levels, rows[i].levels);
        assert_int_equal(was.m.leaves, rows[i].n_leaves);
        assert_int_equal(was.m.tree_bps, rows[i].tree_bps);
        assert_int_equal(p.handoffs, 2 + 2 * rows[i].levels);
        assert_int_equal(p.busiest_dirlink, UINT32_MAX);
        assert_int_equal(was.up > 0, rows[i].n_trees > 0);
        assert_int_equal(was.down > 0, rows[i].n_trees > 0);
    }
}

/* A GPU notices the result; where ranks are servers, a server's GPU the parts, too. */
static void the_time_is_the_formulas_and_what_gpus_take_to_notice(void **state)
{
    struct coll_args a = args_of(ranks_algo);
    struct coll_prediction p;

    (void)state;
    memset(&does, 0, sizeof(does));
    does.says = 5000000;
    does.within = 7;
    p = predict(one_switch, &a, 1);
    assert_int_equal(p.time_ps, 5000000 + GPU);
    assert_int_equal(p.within_percent, 7);
    assert_false(p.guessed || p.hashed);
    does.asks = ACROSS;
    p = predict(one_switch, &a, 1);
    assert_int_equal(p.time_ps, 5000000 + 2 * GPU);
    assert_false(p.hashed); /* there is one way */
    does.asks = BUSIEST;
    assert_int_equal(predict(one_switch, &a, 1).time_ps, 5000000 + 2 * GPU);
    does.asks = BETWEEN;
    assert_int_equal(predict(leaves, &a, 1).time_ps, 5000000 + 2 * GPU);
    does.asks = ACROSS;
    does.says = 1;
    assert_int_equal(predict(one_switch, &a, 1).time_ps, 1 + 2 * GPU);
}

/* A vector up and down, and as much again. */
static void without_an_answer_the_time_is_guessed(void **state)
{
    static const int64_t says[] = {0, -1, 5000000, 5000000};

    (void)state;
    for (unsigned i = 0; i < sizeof(says) / sizeof(says[0]); i++) {
        struct coll_args a = args_of(i == 3 ? without_algo : ranks_algo),
                         usual = args_of(ranks_algo);
        struct coll_prediction p;
        int64_t bytes;

        memset(&does, 0, sizeof(does));
        does.says = 5000000;
        predict(one_switch, &usual, 1); /* for the round trip */
        bytes = was.up + was.down;
        does.says = says[i];
        does.within = 7;
        does.refuses = i == 2;
        p = predict(one_switch, &a, 1);
        assert_true(p.guessed);
        assert_int_equal(p.within_percent, 0);
        assert_int_equal(p.time_ps,
                         bytes + (int64_t)(4 * (4.0 * COUNT + PROTO_OVERHEAD) * 8e12 / 1e11));
    }
}

/* ---- exchanges ---- */

static const struct trib_exchange plain = {
    .blocks = 64, .servers = 2, .window = 16, .bytes = 512, .last_bytes = 512};

/* Of ranks 0 and 1, or 1 and 2, or 2 and 0, of which 2 is at another leaf. */
static const struct trib_exchange few = {
    .blocks = 2, .servers = 3, .window = 3, .bytes = 512, .last_bytes = 512};

static int64_t walked(struct trib_exchange first, struct trib_exchange second)
{
    struct coll_args a = args_of(ranks_algo);

    does.x[0] = first;
    does.x[1] = second;
    does.n_x = 2;
    predict(leaves, &a, 1);
    return was.x[1];
}

/* The second of two exchanges is not taken for the first, in whatever they differ. */
static void every_exchange_is_walked_by_what_it_is(void **state)
{
    struct trib_exchange other[7], one = few;
    int64_t same;

    (void)state;
    memset(&does, 0, sizeof(does));
    does.says = 5000000;
    for (unsigned i = 0; i < 7; i++)
        other[i] = i < 5 ? plain : one;
    other[0].blocks = 128;
    other[1].servers = 4;
    other[2].window = 2;
    other[3].bytes = 900;
    other[4].aggregators = 64;
    other[5].last_bytes = 4;
    other[6].first = 1; /* not at one leaf alone */
    for (unsigned i = 0; i < 7; i++) {
        struct trib_exchange first = i < 5 ? plain : one;
        int64_t alone = walked(other[i], other[i]);

        same = walked(first, first);
        if (alone <= 0 || same <= 0 || alone == same)
            fail_msg("row %u: %ld and %ld", i, (long)alone, (long)same);
        assert_int_equal(walked(first, other[i]), alone);
        assert_int_equal(walked(other[i], first), same);
    }
}

/* Ranks serve the blocks in turn, and blocks are numbered on: where there are few, the next operation's are other
 * servers', and operations overlap. */
static void few_blocks_make_operations_differ(void **state)
{
    struct coll_args a = args_of(ranks_algo);
    struct coll_prediction p;
    double most = 0;
    int64_t alone;

    (void)state;
    memset(&does, 0, sizeof(does));
    does.says = 5000000;
    does.within = 7;
    does.n_x = 1;
    does.x[0] = plain; /* 64 blocks are more than two windows of 16 */
    p = predict(leaves, &a, 1);
    assert_int_equal(p.within_percent, 7);
    assert_int_equal(p.next_ps, 0);
    assert_int_equal(p.time_ps, 5000000); /* a walk has what GPUs take, in each window */
    alone = walked(few, few);
    for (unsigned k = 1; k <= 3; k++) {
        struct trib_exchange next = few;

        next.first = k; /* of three servers */
        most = fmax(most, fabs((double)walked(next, next) / (double)alone - 1));
    }
    assert_true(most > 0);
    does.n_x = 1;
    does.x[0] = few;
    p = predict(leaves, &a, 1);
    assert_in_range(p.within_percent, 7 + (unsigned)ceil(100 * most), 50);
    assert_in_range(p.next_ps, alone / 2, alone - 1);
    does.x[0].blocks = 2 * few.window; /* as many as that hide it */
    p = predict(leaves, &a, 1);
    assert_int_equal(p.within_percent, 7);
    assert_int_equal(p.next_ps, 0);
    does.x[0].blocks--;
    p = predict(leaves, &a, 1);
    assert_true(p.within_percent > 7);
    assert_true(p.next_ps > 0);
}

/* ---- several trees ---- */

/* Of ports of 200 and of 100 Gb/s: two thirds and one. */
static void each_tree_has_its_share_and_the_slowest_counts(void **state)
{
    struct coll_args a = args_of(switch_algo);
    struct coll_prediction p;

    (void)state;
    memset(&does, 0, sizeof(does));
    does.says = 5000000;
    does.per = 1000;
    does.within = 7;
    p = predict(two_ports, &a, 2);
    assert_int_equal(was.n, 2);
    assert_int_equal(was.count[0] + was.count[1], COUNT);
    assert_in_range(was.count[0], COUNT * 2 / 3 - 300, COUNT * 2 / 3 + 300);
    assert_int_equal(p.time_ps, 5000000 + 1000 * (int64_t)was.count[0] + GPU);
    assert_int_equal(p.within_percent, 7); /* what does not climb shares no link */
    assert_int_equal(p.handoffs, 4);
    assert_int_equal(p.busiest_dirlink, UINT32_MAX);
    assert_false(p.guessed);
    does.says = -1000000; /* of the smaller share alone it has no answer */
    p = predict(two_ports, &a, 2);
    assert_true(p.guessed);
    assert_int_equal(predict(two_ports, &a, 1).guessed, false);
    assert_int_equal(was.n, 1);
    assert_int_equal(was.count[0], COUNT);
}

/* Two switches with two ranks each below two others, at rates of their links in Gb/s. */
static struct fabric *two_spines(unsigned first, unsigned second, const char *costs)
{
    char conf[1024];

    snprintf(
        conf, sizeof(conf),
        "name = \"p\"; mtu = 1024; %s nodes = ( { name = (\"h0\", \"h1\", \"h2\", \"h3\"); "
        "kind = \"host\"; }, { name = (\"l0\", \"l1\"); role = \"leaf\"; }, { name = (\"s0\", "
        "\"s1\"); role = \"spine\"; } ); link_defaults = { latency = \"300ns\"; }; links = ( { a "
        "= (\"h0\", \"h1\"); b = \"l0\"; rate = \"100Gb/s\"; }, { a = (\"h2\", \"h3\"); b = "
        "\"l1\"; rate = \"100Gb/s\"; }, { a = (\"l0\", \"l1\"); b = \"s0\"; rate = \"%uGb/s\"; "
        "}, { a = (\"l0\", \"l1\"); b = \"s1\"; rate = \"%uGb/s\"; } ); reduce = { groups = 4; "
        "};",
        costs, first, second);
    return fabric_load_string(conf, "spines.conf", NULL);
}

/* Sums that go up to the root share the hosts' ports: with HCAs that take their time for each packet, and with rates
 * that differ, the sum of the trees may be far from the slowest one. */
static void trees_that_share_ports_say_how_far_off_they_may_be(void **state)
{
    static const struct {
        unsigned first, second;
        const char *costs;
        unsigned more; /* per cent */
    } rows[] = {{40, 40, "", 0},
                {40, 20, "", 20},
                {40, 40, "costs = { hca = \"100ns\"; };", 100},
                {40, 20, "costs = { hca = \"100ns\"; };", 100}};
    struct coll_args a = args_of(switch_algo);

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fabric *f = two_spines(rows[i].first, rows[i].second, rows[i].costs);

        assert_non_null(f);
        memset(&does, 0, sizeof(does));
        does.says = 5000000;
        does.within = 7;
        does.climbs = true;
        assert_int_equal(predict(f, &a, 2).within_percent, 7 + rows[i].more);
        assert_int_equal(was.n, 2);
        assert_int_equal(was.m.tree_bps, rows[i].second * 1000000000ull);
        fabric_free(f);
    }
}

/* Where switches choose a way by a hash, what goes between ranks may meet on it. */
static void ways_between_ranks_are_hashed_where_there_are_several(void **state)
{
    struct fabric *f = two_spines(100, 100, "");
    struct coll_args a = args_of(ranks_algo);

    (void)state;
    assert_non_null(f);
    memset(&does, 0, sizeof(does));
    does.says = 5000000;
    assert_false(predict(f, &a, 1).hashed);
    does.asks = ACROSS;
    assert_true(predict(f, &a, 1).hashed);
    fabric_free(f);
}

static void a_job_of_more_ranks_than_a_protocol_has_is_refused(void **state)
{
    static uint16_t one_host[TRIB_RANKS + 1];
    struct coll_args a = args_of(ranks_algo);
    struct coll_prediction p;

    (void)state;
    assert_int_equal(protocol_predict(one_switch, &a, TRIB_RANKS + 1, one_host, NULL, 0, &p),
                     -ENOTSUP);
    assert_int_equal(protocol_predict(one_switch, &a, TRIB_RANKS, one_host, NULL, 0, &p), 0);
    for (unsigned r = 0; r < TRIB_RANKS; r++)
        one_host[r] = 1; /* behind as many places of the first host: no member has such a number */
    assert_int_equal(protocol_predict(one_switch, &a, TRIB_RANKS, one_host, NULL, 0, &p), -EINVAL);
}

/* It has no time, and the formula says what it makes of that. */
static void an_exchange_that_is_too_long_is_not_walked(void **state)
{
    struct coll_args a = args_of(ranks_algo);
    struct trib_exchange x = plain;

    (void)state;
    memset(&does, 0, sizeof(does));
    does.says = 5000000;
    does.within = 7;
    x.blocks = 1ull << 40;
    x.window = 1u << 20;
    assert_int_equal(walked(x, x), 0);
    assert_int_equal(predict(leaves, &a, 1).within_percent, 7);
}

static int load(void **state)
{
    static const char one[] =
        "name = \"p\"; mtu = 1024; costs = { gpu = \"3us\"; hca = \"100ns\"; }; single_switch = { "
        "hosts = 4; host_link = { rate = \"100Gb/s\"; latency = \"300ns\"; }; }; reduce = { groups "
        "= "
        "4; };";
    static const char two[] =
        "name = \"p\"; mtu = 1024; costs = { gpu = \"3us\"; hca = \"100ns\"; }; leaf_spine = { "
        "leaves = 2; spines = 1; hosts_per_leaf = 2; host_link = { rate = \"100Gb/s\"; latency = "
        "\"300ns\"; }; spine_link = { rate = \"200Gb/s\"; latency = \"300ns\"; }; }; reduce = { "
        "groups = 4; };";
    static const char ports[] =
        "name = \"p\"; mtu = 1024; costs = { gpu = \"3us\"; }; nodes = ( { name = (\"h0\", \"h1\", "
        "\"h2\", \"h3\"); kind = \"host\"; }, { name = (\"l0\", \"l1\"); role = \"leaf\"; } ); "
        "link_defaults = { latency = \"300ns\"; }; links = ( { a = (\"h0\", \"h1\", \"h2\", "
        "\"h3\"); b = \"l0\"; rate = \"200Gb/s\"; }, { a = (\"h0\", \"h1\", \"h2\", \"h3\"); b = "
        "\"l1\"; rate = \"100Gb/s\"; } ); reduce = { groups = 4; };";
    char err[PROTO_TEXT] = "";

    (void)state;
    one_switch = fabric_load_string(one, "one.conf", NULL);
    leaves = fabric_load_string(two, "two.conf", NULL);
    two_ports = fabric_load_string(ports, "ports.conf", NULL);
    ranks_algo = ALGO_PROTOCOL + (enum coll_algo)proto_add(&by_ranks, err);
    switch_algo = ALGO_PROTOCOL + (enum coll_algo)proto_add(&by_switch, err);
    without_algo = ALGO_PROTOCOL + (enum coll_algo)proto_add(&without, err);
    if (*err)
        print_error("%s\n", err);
    return one_switch && leaves && two_ports && !*err ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    fabric_free(one_switch);
    fabric_free(leaves);
    fabric_free(two_ports);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_formula_is_asked_where_the_protocol_can_run),
        cmocka_unit_test(a_formula_is_given_what_the_job_and_the_fabric_are),
        cmocka_unit_test(the_time_is_the_formulas_and_what_gpus_take_to_notice),
        cmocka_unit_test(without_an_answer_the_time_is_guessed),
        cmocka_unit_test(every_exchange_is_walked_by_what_it_is),
        cmocka_unit_test(few_blocks_make_operations_differ),
        cmocka_unit_test(each_tree_has_its_share_and_the_slowest_counts),
        cmocka_unit_test(trees_that_share_ports_say_how_far_off_they_may_be),
        cmocka_unit_test(ways_between_ranks_are_hashed_where_there_are_several),
        cmocka_unit_test(a_job_of_more_ranks_than_a_protocol_has_is_refused),
        cmocka_unit_test(an_exchange_that_is_too_long_is_not_walked),
    };

    return cmocka_run_group_tests(tests, load, unload);
}
