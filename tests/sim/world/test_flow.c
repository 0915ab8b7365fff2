/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows: their rate is that of their links, of slow processes so many times less; they end, drain and fail as
 * they say. The background flow: which hosts it takes, and its report.
 */
#include "sim/world/background_flow.h"
#include "sim/world/flow.h"
#include "tests/fabric/load.h"
#include "tests/support/captured.h"
#include "tests/support/eal.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>

/* Payload of a link of 400 Gb/s in full packets: Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, link 24. */
#define LINK_GBPS (50 * 4096.0 / (4096 + 82))

static struct rte_mempool *pool;
static const uint16_t hosts[] = {0, 1, 4, 5};

struct bed {
    struct fabric *f;
    struct world *w;
    struct flow *flow;
};

static void open_bed(struct bed *b)
{
    struct world_cfg cfg = {.nranks = 4, .host_of_rank = hosts, .pool = pool, .seed = 3};

    *b = (struct bed){.f = load_file("conf/leaf-spine-8.conf")};
    cfg.fab = b->f;
    assert_int_equal(world_create(&b->w, &cfg), 0);
}

static void close_bed(struct bed *b)
{
    flow_destroy(b->flow);
    assert_int_equal(world_objects(b->w), 0);
    world_destroy(b->w);
    fabric_free(b->f);
    assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static void near(double is, double expected, double within)
{
    if (fabs(is / expected - 1) > within)
        fail_msg("found %g, expected %g", is, expected);
}

static void run_until(struct bed *b, int64_t t)
{
    while (world_now(b->w) < t)
        world_step(b->w, t);
}

static void a_flow_fills_its_link(void **state)
{
    struct bed b;
    int64_t begun;
    uint64_t bytes;

    (void)state;
    open_bed(&b);
    assert_int_equal(flow_create(&b.flow, b.w, 0, 0, 2, 0), 0);
    assert_int_equal(flow_bytes(b.flow), 0);
    begun = world_now(b.w);
    near(flow_alone(b.flow, 400 * PS_PER_US), LINK_GBPS, 0.01);
    /* All that was posted has been written by then, and nothing else. */
    assert_true(world_now(b.w) > begun + 400 * PS_PER_US);
    assert_true(world_now(b.w) < begun + 460 * PS_PER_US);
    bytes = flow_bytes(b.flow);
    assert_int_equal(bytes % 65536, 0);
    near((double)bytes * 1e3 / (double)(world_now(b.w) - begun), LINK_GBPS, 0.03);
    run_until(&b, world_now(b.w) + PS_PER_MS);
    assert_int_equal(flow_progress(b.flow), 0);
    assert_int_equal(flow_bytes(b.flow), bytes);
    assert_string_equal(flow_error(b.flow), "");
    close_bed(&b);
}

/* As many messages as may be in flight, and no more once it has been stopped. */
static void a_stopped_flow_drains(void **state)
{
    struct bed b;

    (void)state;
    open_bed(&b);
    assert_int_equal(flow_create(&b.flow, b.w, 1, 0, 3, 0), 0);
    assert_int_equal(flow_drain(b.flow), 0); /* nothing was posted */
    assert_int_equal(world_now(b.w), 0);
    flow_start(b.flow);
    flow_stop(b.flow);
    assert_int_equal(flow_drain(b.flow), 0);
    assert_int_equal(flow_bytes(b.flow), 32 * 65536);
    near((double)flow_bytes(b.flow) * 1e3 / (double)world_now(b.w), LINK_GBPS, 0.1);
    flow_start(b.flow);
    assert_int_equal(flow_drain(b.flow), 0);
    assert_int_equal(flow_bytes(b.flow), 64 * 65536);
    close_bed(&b);
}

static void a_slow_process_takes_so_many_times_longer(void **state)
{
    struct bed b;

    (void)state;
    open_bed(&b);
    assert_int_equal(flow_create(&b.flow, b.w, 0, 0, 2, 0), 0);
    world_slow(b.w, 0, 4);
    near(flow_alone(b.flow, 800 * PS_PER_US), LINK_GBPS / 4, 0.02);
    world_slow(b.w, 0, 1); /* as fast as its port */
    near(flow_alone(b.flow, 400 * PS_PER_US), LINK_GBPS, 0.01);
    world_slow(b.w, 2, 3); /* the receiver */
    near(flow_alone(b.flow, 800 * PS_PER_US), LINK_GBPS / 3, 0.02);
    world_slow(b.w, 2, 0);
    near(flow_alone(b.flow, 400 * PS_PER_US), LINK_GBPS, 0.01);
    close_bed(&b);
}

static void a_flow_to_nobody_fails(void **state)
{
    struct bed b;

    (void)state;
    flow_destroy(NULL);
    open_bed(&b);
    b.flow = (struct flow *)&b;
    assert_int_equal(flow_create(&b.flow, b.w, 0, 1, 2, 0), -ENODEV); /* no such port */
    assert_null(b.flow);
    assert_int_equal(flow_create(&b.flow, b.w, 0, 0, 2, 1), -ENODEV);
    assert_null(b.flow);
    assert_int_equal(world_objects(b.w), 0);
    assert_int_equal(flow_create(&b.flow, b.w, 0, 0, 2, 0), 0);
    flow_start(b.flow);
    world_kill(b.w, 2);
    assert_int_equal(flow_drain(b.flow), -EIO);
    assert_string_equal(flow_error(b.flow),
                        "a write ended with \"transport retry counter exceeded\"");
    assert_int_equal(flow_progress(b.flow), -EIO);
    assert_true(flow_alone(b.flow, PS_PER_MS) < 0);
    close_bed(&b);
}

/* ---- the background flow ---- */

static void hosts_are_named(void **state)
{
    static const char *const wrong[] = {
        "h0", "h0:h9", "h9:h0", "h0:h0", "h0:", ":h1", "h:h1", "h0:h1:h2", "h00:h1", ""};
    struct fabric *f = load_file("conf/leaf-spine-8.conf");
    struct background_hosts h;
    char err[COMM_TEXT];

    (void)state;
    assert_int_equal(background_flow_parse(f, "h7:h0", &h, err), 0);
    assert_true(h.from == 7 && h.to == 0);
    for (unsigned i = 0; i < LEN(wrong); i++) {
        char expected[COMM_TEXT];

        snprintf(expected, sizeof(expected),
                 "--background-flow: found \"%s\", expected two hosts of leaf-spine-8 as "
                 "\"h0:h1\"",
                 wrong[i]);
        assert_int_equal(background_flow_parse(f, wrong[i], &h, err), -EINVAL);
        assert_string_equal(err, expected);
    }
    fabric_free(f);
    f = load_text("name = \"one\"; single_switch = { hosts = 1; host_link = { rate = \"100Gb/s\"; "
                  "latency = \"300ns\"; }; };");
    assert_int_equal(background_flow_parse(f, "h0:h0", &h, err), -EINVAL);
    assert_string_equal(err, "--background-flow: found \"h0:h0\", expected two hosts of one as "
                             "\"h0:...\"");
    fabric_free(f);
}

static void its_report(void **state)
{
    const struct background_hosts h = {0, 4};
    struct row r = {.coll = COLL_ALLREDUCE, .algo = ALGO_RING, .type = DT_FP32, .bytes = 1024};
    struct background_flow *flow;
    struct bed b;
    char err[COMM_TEXT] = "", text[512];
    double alone, rate[2];
    json_t *j, *rows;
    FILE *out;

    (void)state;
    background_flow_destroy(NULL);
    open_bed(&b);
    assert_int_equal(background_flow_create(&flow, b.f, b.w, &h, 1, err), 0); /* ranks 1 and 2 */
    for (unsigned place = 0; place < 2; place++) {
        int64_t until = world_now(b.w) + 300 * PS_PER_US;

        world_slow(b.w, 1, place ? 2 : 0);
        background_flow_begin(flow);
        while (world_now(b.w) < until) {
            world_step(b.w, until);
            assert_int_equal(background_flow_progress(flow), 0);
        }
        assert_int_equal(background_flow_end(flow, &r, place ? IN_PLACE : OUT_OF_PLACE, err), 0);
    }
    j = background_flow_json(flow);
    assert_string_equal(json_string_value(json_object_get(j, "from")), "h0");
    assert_string_equal(json_string_value(json_object_get(j, "to")), "h4");
    alone = json_number_value(json_object_get(j, "alone_GBps"));
    near(alone, LINK_GBPS, 0.02);
    rows = json_object_get(j, "rows");
    assert_int_equal(json_array_size(rows), 2);
    for (unsigned i = 0; i < 2; i++) {
        rate[i] = json_number_value(json_object_get(json_array_get(rows, i), "GBps"));
        assert_string_equal(json_string_value(json_object_get(json_array_get(rows, i), "during")),
                            i ? "ring, 1024 B, float, in-place"
                              : "ring, 1024 B, float, out-of-place");
    }
    near(rate[0], LINK_GBPS, 0.03);
    near(rate[1], LINK_GBPS / 2, 0.05);
    json_decref(j);
    snprintf(text, sizeof(text),
             "#\n# Beside it h0 sends to h4: %.2f GB/s alone\n"
             "#   ring, 1024 B, float, out-of-place: %.2f GB/s, %.3f of that\n"
             "#   ring, 1024 B, float, in-place: %.2f GB/s, %.3f of that\n",
             alone, rate[0], rate[0] / alone, rate[1], rate[1] / alone);
    out = captured_file();
    background_flow_print(flow, out);
    assert_string_equal(captured_text(out), text);
    background_flow_destroy(flow);
    close_bed(&b);
}

static void it_fails_by_name(void **state)
{
    const struct background_hosts h = {0, 4};
    struct row r = {.type = DT_FP32};
    struct background_flow *flow;
    struct bed b;
    char err[COMM_TEXT] = "";

    (void)state;
    open_bed(&b);
    world_kill(b.w, 2);
    assert_int_equal(background_flow_create(&flow, b.f, b.w, &h, 1, err), -EIO);
    assert_string_equal(err, "--background-flow: cannot send from h0 to h4: a write ended with "
                             "\"transport retry counter exceeded\"");
    assert_null(flow);
    close_bed(&b);

    open_bed(&b);
    assert_int_equal(background_flow_create(&flow, b.f, b.w, &h, 1, err), 0);
    background_flow_begin(flow);
    world_kill(b.w, 2);
    assert_int_equal(background_flow_end(flow, &r, OUT_OF_PLACE, err), -EIO);
    assert_string_equal(err, "--background-flow: h0 to h4: a write ended with \"transport retry "
                             "counter exceeded\"");
    background_flow_destroy(flow);
    close_bed(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flow_fills_its_link),
        cmocka_unit_test(a_stopped_flow_drains),
        cmocka_unit_test(a_slow_process_takes_so_many_times_longer),
        cmocka_unit_test(a_flow_to_nobody_fails),
        cmocka_unit_test(hosts_are_named),
        cmocka_unit_test(its_report),
        cmocka_unit_test(it_fails_by_name),
    };

    test_eal_init();
    pool = test_pool(16384);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
