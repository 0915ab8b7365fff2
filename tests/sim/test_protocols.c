/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that run an aggregation protocol in virtual time: exact results in and out of place, one
 * operation after the other, on fabrics that lose, repeat and reorder frames; the same run twice is
 * the same; what a protocol does not do, or does wrong, fails by name.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "sim/job/sim_job.h"
#include "tests/host/coll/gossip.h"
#include "tests/support/eal.h"

#define RANKS 4u

static const uint16_t hosts[RANKS] = {0, 1, 2, 3};
static struct rte_mempool *pool;
static enum coll_algo gossip, broken, unpadded;

struct fixture {
    struct fabric *f;
    struct world *w;
    struct job *j;
};

/* Each host has a port to either leaf, and a protocol an instance on the tree of each. */
static const char two_ports[] =
    "name = \"p\"; mtu = 1024; nodes = ( { name = (\"h0\", \"h1\", \"h2\", \"h3\"); kind = "
    "\"host\"; }, "
    "{ name = (\"l0\", \"l1\"); role = \"leaf\"; } ); link_defaults = { latency = \"300ns\"; %s }; "
    "links = ( { a = (\"h0\", \"h1\", \"h2\", \"h3\"); b = \"l0\"; rate = \"200Gb/s\"; }, "
    "{ a = (\"h0\", \"h1\", \"h2\", \"h3\"); b = \"l1\"; rate = \"100Gb/s\"; } ); reduce = { "
    "groups = 4; };";
static const char one_switch[] = "name = \"p\"; mtu = 1024; single_switch = { hosts = 4; host_link "
                                 "= { rate = \"100Gb/s\"; latency = "
                                 "\"300ns\"; %s }; }; reduce = { groups = 4; };";
static const char *fabric_conf = one_switch;
static unsigned trees = 1, first_tree;
static bool one_place; /* of a job at a switch */

static int up(struct fixture *b, const char *faults, unsigned algos, char *err)
{
    struct world_cfg wc = {.nranks = RANKS, .host_of_rank = hosts, .pool = pool, .seed = 3};
    struct job_cfg jc = {.nranks = RANKS,
                         .host_of_rank = hosts,
                         .group = 9,
                         .key = 1234,
                         .algos = algos,
                         .any_order = true,
                         .buffer_bytes = 1 << 18,
                         .limit_ps = 60 * PS_PER_S};
    char conf[1024];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(conf, sizeof(conf), fabric_conf, faults);
#pragma GCC diagnostic pop
    if (one_place)
        strstr(conf, "groups = 4")[9] = '1';
    b->f = fabric_load_string(conf, "p.conf", NULL);
    assert_non_null(b->f);
    wc.fab = b->f;
    assert_int_equal(world_create(&b->w, &wc), 0);
    jc.w = b->w;
    jc.fab = b->f;
    jc.n_trees = trees;
    jc.tree = (uint16_t)first_tree;
    return job_create(&b->j, &jc, err);
}

static void down(struct fixture *b)
{
    if (b->j)
        assert_int_equal(job_destroy(b->j), 0);
    assert_int_equal(world_objects(b->w), 0);
    world_destroy(b->w);
    fabric_free(b->f);
}

static uint64_t run_all(enum coll_algo algo, const char *faults)
{
    static const struct job_op ops[] = {
        {.type = DT_INT32, .op = OP_SUM, .count = 1},
        {.type = DT_FP32, .op = OP_SUM, .count = 5000, .in_place = true},
        {.type = DT_FP32, .op = OP_AVG, .count = 4097},
        {.type = DT_BF16, .op = OP_SUM, .count = 30011, .skew_ps = 20 * PS_PER_US},
        {.type = DT_UINT8, .op = OP_SUM, .count = 999},
        {.type = DT_INT64, .op = OP_SUM, .count = 0},
    };
    struct fixture b = {0};
    char err[COMM_TEXT] = "";
    uint64_t hash;

    if (up(&b, faults, 1u << algo, err))
        fail_msg("%s", err);
    for (unsigned i = 0; i < RTE_DIM(ops); i++) {
        struct job_op op = ops[i];
        struct job_result res;

        if (!coll_protocol_does(coll_protocol(algo), op.type, op.op))
            continue;
        op.algo = algo;
        op.seed = i;
        if (job_run(b.j, &op, &res) || res.wrong || res.failed_ranks)
            fail_msg("%s, operation %u: %lu wrong: %s", faults, i, res.wrong, res.text);
    }
    hash = world_trace_hash(b.w);
    down(&b);
    return hash;
}

static void test_exact_on_any_fabric(void **state)
{
    (void)state;
    run_all(gossip, "");
    assert_true(run_all(gossip, "loss = 0.02; dup = 0.02; reorder = 0.02;") ==
                run_all(gossip, "loss = 0.02; dup = 0.02; reorder = 0.02;"));
}

static int64_t time_of(enum coll_algo algo, unsigned n_trees)
{
    struct job_op op = {.algo = algo, .type = DT_INT32, .op = OP_SUM, .count = 1 << 16};
    struct fixture b = {0};
    struct job_result res;
    char err[COMM_TEXT] = "";

    trees = n_trees;
    if (up(&b, "", 1u << algo, err))
        fail_msg("%s", err);
    assert_int_equal(job_run(b.j, &op, &res), 0);
    assert_int_equal(res.wrong, 0);
    down(&b);
    return res.time_ps;
}

/* By ports of 200 and 100 Gb/s together two thirds of the time by the first, and latency. */
static void test_each_port_carries_a_share(void **state)
{
    const enum coll_algo algos[] = {gossip, ALGO_PROTOCOL + (enum coll_algo)proto_seat("switchml"),
                                    ALGO_PROTOCOL + (enum coll_algo)proto_seat("atp"),
                                    ALGO_PROTOCOL + (enum coll_algo)proto_seat("ps")};

    (void)state;
    fabric_conf = two_ports;
    for (unsigned i = 0; i < RTE_DIM(algos); i++) {
        int64_t one = time_of(algos[i], 1), both = time_of(algos[i], 2);

        print_message("%s: by one port %.2f us, by both %.2f\n", coll_protocol(algos[i])->name,
                      (double)one * 1e-6, (double)both * 1e-6);
        assert_true(both < 0.8 * (double)one);
        run_all(algos[i], "");
        run_all(algos[i], "loss = 0.02; dup = 0.02; reorder = 0.02;");
    }
    fabric_conf = one_switch;
    trees = 1;
}

/* The only place at one of two switches is taken: the job goes on by the other's tree. */
static void test_a_tree_that_is_refused_is_left_out(void **state)
{
    const enum coll_algo algo = ALGO_PROTOCOL + (enum coll_algo)proto_seat("switchml");
    struct job_op op = {.algo = algo, .type = DT_INT32, .op = OP_SUM, .count = 1 << 16};
    struct fixture b = {0};
    struct job_cfg jc = {.fab = NULL,
                         .nranks = RANKS,
                         .host_of_rank = hosts,
                         .group = 10,
                         .key = 4321,
                         .n_trees = 2,
                         .algos = 1u << algo,
                         .any_order = true,
                         .buffer_bytes = 1 << 18,
                         .limit_ps = 60 * PS_PER_S};
    char err[COMM_TEXT] = "";
    struct job_result res;
    struct job *second;
    const char *why;

    (void)state;
    fabric_conf = two_ports;
    one_place = true;
    first_tree = 1;
    if (up(&b, "", 1u << algo, err))
        fail_msg("%s", err);
    first_tree = 0;
    jc.w = b.w;
    jc.fab = b.f;
    jc.sibling = b.j;
    if (job_create(&second, &jc, err))
        fail_msg("%s", err);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(job_run(second, &op, &res), 0);
        assert_int_equal(res.wrong + (unsigned)res.failed_ranks, 0);
    }
    why = comm_fell_back(job_comm(second, 0));
    assert_non_null(why);
    assert_non_null(
        strstr(why, "protocol switchml refused by l1: l1 has 1 jobs of protocols already"));
    assert_non_null(strstr(why, "; switchml by 1 of 2 trees"));
    assert_true(comm_lacks_trees(job_comm(second, 0), algo));
    assert_false(comm_lacks_trees(job_comm(b.j, 0), algo));
    assert_int_equal(job_run(b.j, &op, &res), 0);
    assert_int_equal(res.wrong, 0);
    assert_int_equal(job_destroy(second), 0);
    down(&b);
    fabric_conf = one_switch;
    one_place = false;
}

/* Ranks that start an operation that the protocol does not do all refuse it. */
static void test_unsupported_is_named(void **state)
{
    struct job_op op = {.algo = gossip, .type = DT_FP64, .op = OP_SUM, .count = 8};
    struct fixture b = {0};
    struct job_result res;
    char err[COMM_TEXT] = "";

    (void)state;
    assert_int_equal(up(&b, "", 1u << gossip, err), 0);
    job_run(b.j, &op, &res);
    assert_int_equal(res.failed_ranks, RANKS);
    assert_non_null(strstr(res.text, "gossip does not do sum of double"));
    down(&b);
}

/* A protocol that sends more than a packet holds. */
static int start_wrong(struct trib_rank *r, const struct trib_op *op)
{
    (void)op;
    r->api->send(r, TRIB_RANK((int)(r->rank + 1) % (int)r->nranks), NULL, 0, r, r->payload + 1);
    return 0;
}

/* The largest packet with a target and a head that needs padding. */
static int start_unpadded(struct trib_rank *r, const struct trib_op *op)
{
    static const uint8_t much[4096];

    (void)op;
    r->api->send_through(r, (r->rank + 1) % r->nranks, much, 13, much, r->payload - 13);
    r->api->done(r);
    return 0;
}

static void job(struct trib_switch *s, struct trib_job *j)
{
    (void)s;
    (void)j;
}

static int switch_job(struct trib_switch *s, struct trib_job *j)
{
    job(s, j);
    return 0;
}

static void packet(struct trib_switch *s, struct trib_job *j, const struct trib_packet *p)
{
    (void)p;
    job(s, j);
}

static void test_padding_has_room(void **state)
{
    struct job_op op = {.algo = unpadded, .type = DT_FP32, .op = OP_SUM, .count = 8};
    struct fixture b = {0};
    struct job_result res;
    char err[COMM_TEXT] = "";

    (void)state;
    assert_int_equal(up(&b, "", 1u << unpadded, err), 0);
    job_run(b.j, &op, &res);
    assert_int_equal(res.failed_ranks, 0);
    assert_true(res.wrong > 0); /* nobody has written a result */
    down(&b);
}

static void test_mistakes_are_named(void **state)
{
    struct job_op op = {.algo = broken, .type = DT_FP32, .op = OP_SUM, .count = 8};
    struct fixture b = {0};
    struct job_result res;
    char err[COMM_TEXT] = "";

    (void)state;
    assert_int_equal(up(&b, "", 1u << broken, err), 0);
    job_run(b.j, &op, &res);
    assert_int_equal(res.failed_ranks, RANKS);
    assert_int_equal(res.unnamed, 0);
    assert_non_null(strstr(res.text, "protocol broken: sends a packet of 0 and 997 bytes"));
    down(&b);
}

static int take_seats(void **state)
{
    static const struct trib_switch_half sw = {
        .job_open = switch_job, .job_close = job, .packet = packet};
    static struct trib_rank_half half, other;
    static struct trib_protocol p, q;
    char err[PROTO_TEXT];

    (void)state;
    half = gossip_half;
    half.start = start_wrong;
    p = gossip_protocol;
    p.name = "broken";
    p.rank = &half;
    gossip = ALGO_PROTOCOL + (enum coll_algo)proto_add(&gossip_protocol, err);
    broken = ALGO_PROTOCOL + (enum coll_algo)proto_add(&p, err);
    other = gossip_half;
    other.start = start_unpadded;
    q = gossip_protocol;
    q.name = "unpadded";
    q.sw = &sw;
    q.rank = &other;
    unpadded = ALGO_PROTOCOL + (enum coll_algo)proto_add(&q, err);
    test_eal_init();
    pool = test_pool(20000);
    return coll_protocol(gossip) && coll_protocol(broken) && coll_protocol(unpadded) ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_on_any_fabric),
        cmocka_unit_test(test_each_port_carries_a_share),
        cmocka_unit_test(test_a_tree_that_is_refused_is_left_out),
        cmocka_unit_test(test_unsupported_is_named),
        cmocka_unit_test(test_mistakes_are_named),
        cmocka_unit_test(test_padding_has_room),
    };

    return cmocka_run_group_tests(tests, take_seats, NULL);
}
