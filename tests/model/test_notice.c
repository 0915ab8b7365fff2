/* SPDX-License-Identifier: BSD-3-Clause */
/* What formulas of protocols have of the time in which GPUs notice packets; test_exchange.c has the walks. */
#include "model/cost_protocol.h"

#include "base/units.h"
#include "protocols/host/load.h"
#include "protocols/host/path.h"
#include "protocols/host/registry.h"
#include "protocols/host/protocol_wire.h"
#include "tests/collective/asking_protocol.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define GPU  3000000 /* ps, as the conf's "3us" */
#define MANY 600u    /* ranks, more than a walk has */

static enum coll_algo algo_of(const struct trib_protocol *p)
{
    char err[PROTO_TEXT];
    int seat = proto_seat(p->name);

    return ALGO_PROTOCOL + (enum coll_algo)(seat >= 0 ? seat : proto_add(p, err));
}

static enum coll_algo algo_named(const char *name)
{
    return ALGO_PROTOCOL + (enum coll_algo)proto_seat(name);
}

static struct coll_args args_of(enum coll_algo algo, uint64_t count, enum dtype type)
{
    return (struct coll_args){
        .kind = COLL_ALLREDUCE, .algo = algo, .count = count, .type = type, .op = OP_SUM};
}

/* On hosts of 100 Gb/s at one switch. */
static struct coll_prediction predict(const char *costs, const char *reduce, unsigned nranks,
                                      const struct coll_args *a)
{
    static uint16_t host[MANY];
    const uint16_t tree = 0;
    char conf[800], err[PROTO_CONF_TEXT];
    struct coll_prediction p;
    struct fabric *f;

    for (unsigned r = 0; r < nranks; r++)
        host[r] = (uint16_t)r;
    snprintf(conf, sizeof(conf),
             "name = \"p\"; mtu = 1024; %s single_switch = { hosts = %u; host_link = { rate = "
             "\"100Gb/s\"; latency = \"300ns\"; }; }; reduce = { %s };",
             costs, nranks, reduce);
    f = fabric_load_string(conf, "notice.conf", NULL);
    assert_non_null(f);
    assert_int_equal(proto_setup(f, err), 0); /* the conf's keys */
    assert_int_equal(protocol_predict(f, a, nranks, host, &tree, 1, &p), 0);
    assert_false(p.guessed);
    fabric_free(f);
    return p;
}

static int64_t time_of(const char *costs, const char *reduce, unsigned nranks,
                       const struct coll_args *a)
{
    return predict(costs, reduce, nranks, a).time_ps;
}

/* `step` of the path is added to `gpu`; of two protocols that of the faster one, and the time by which it is
 * slower than the port. A fabric of no costs has none. */
static void ranks_notice_packets_as_costs_say(void **state)
{
    static const struct {
        const char *costs;
        int64_t ps;
    } rows[] = {
        {"", 0},
        {"costs = { hca = \"1us\"; };", 0},
        {"costs = { gpu = \"3us\"; };", 3000000},
        {"costs = { network = { step = \"2us\"; }; };", 2000000},
        {"costs = { gpu = \"3us\"; network = { step = \"2us\"; }; };", 5000000},
        {"costs = { gpu = \"3us\"; network = { step = \"2us\"; ll = { step = \"1us\"; rate = "
         "\"10GB/s\"; }; }; };",
         4000000 + (100 - 80) * (int64_t)PROTO_RECEIVED(PROTO_PAYLOAD(1024))}};
    struct coll_args a = args_of(algo_of(&by_ranks), 3000, DT_FP32);

    (void)state;
    memset(&does, 0, sizeof(does));
    does.says = 5000000;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        memset(&was, 0, sizeof(was));
        assert_int_equal(time_of(rows[i].costs, "groups = 4;", RANKS, &a), 5000000 + rows[i].ps);
        assert_int_equal(was.m.notice_ps, rows[i].ps);
    }
}

static struct coll_prediction four_slots(const char *costs, uint64_t packets, enum dtype type)
{
    struct coll_args a = args_of(algo_named("switchml"), 100 * packets, type);

    return predict(costs, "protocol = \"switchml\"; slots = 4; packet = 100;", RANKS, &a);
}

static int64_t by_four_slots(const char *costs, uint64_t packets, enum dtype type)
{
    return four_slots(costs, packets, type).time_ps;
}

/* LL passes results at half the rate of the port: of packets of which all are under way the last is noticed so much
 * later than the first. */
static void a_short_protocol_spaces_results(void **state)
{
    static const char late[] = "costs = { network = { step = \"1us\"; }; };",
                      slow[] =
                          "costs = { network = { step = \"9us\"; ll = { step = \"1us\"; rate = "
                          "\"6.25GB/s\"; }; }; };";
    const int64_t at_port = 80 * (int64_t)PROTO_RECEIVED(16 + 4 * 100),
                  full = 80 * (int64_t)PROTO_RECEIVED(PROTO_PAYLOAD(1024)),
                  wire = 80 * (int64_t)(PROTO_OVERHEAD + 16 + 4 * 100);

    (void)state;
    for (unsigned n = 1; n <= 4; n++)
        assert_int_equal(by_four_slots(slow, n, DT_INT32),
                         by_four_slots(late, n, DT_INT32) + full + (n - 1) * (2 * at_port - wire));
    /* that of a full packet is too long for these */
    assert_int_equal(four_slots(slow, 1, DT_INT32).within_percent, 15);
    assert_int_equal(four_slots(late, 1, DT_INT32).within_percent, 5);
}

/* SwitchML sends packet q + 4 when the GPU has noticed the result of q, and the first floats when it has noticed
 * their exponents. */
static void a_pool_waits_for_gpus_in_every_round(void **state)
{
    static const struct {
        uint64_t packets;
        enum dtype type;
        int64_t times;
    } rows[] = {{1, DT_INT32, 1},  {4, DT_INT32, 1}, {5, DT_INT32, 2}, {12, DT_INT32, 3},
                {13, DT_INT32, 4}, {4, DT_FP32, 2},  {13, DT_FP32, 5}};

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(
            by_four_slots("costs = { gpu = \"3us\"; };", rows[i].packets, rows[i].type),
            by_four_slots("", rows[i].packets, rows[i].type) + rows[i].times * GPU);
}

/* Servers have a window of a block each. Where that is not walked, the formula has both GPUs, the server's and the
 * rank's, once for each block of a server. */
static void small_windows_of_servers_wait_for_gpus(void **state)
{
    static const struct {
        const char *name, *reduce;
    } rows[] = {{"ps", "protocol = \"ps\"; packet = 400;"},
                {"atp", "protocol = \"atp\"; packet = 100;"}};

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (unsigned blocks = 1; blocks <= 3; blocks++) {
            struct coll_args a =
                args_of(algo_named(rows[i].name), 100ull * blocks * MANY, DT_INT32);
            int64_t late = time_of("costs = { gpu = \"1s\"; };", rows[i].reduce, MANY, &a);

            assert_in_range(late, 2 * blocks * PS_PER_S,
                            2 * blocks * PS_PER_S + 2 * time_of("", rows[i].reduce, MANY, &a));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_notice_packets_as_costs_say),
        cmocka_unit_test(a_short_protocol_spaces_results),
        cmocka_unit_test(a_pool_waits_for_gpus_in_every_round),
        cmocka_unit_test(small_windows_of_servers_wait_for_gpus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
