/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 32 hosts send to one, next to a background flow that shares their links but not the congested
 * port. With PFC nothing is lost, and the flow is a victim of pauses; with DCQCN it waits less;
 * without PFC it does not wait, queues overflow and connections retransmit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "sim/job/sim_job.h"
#include "sim/report/congestion.h"
#include "sim/world/flow.h"
#include "tests/support/eal.h"

#define RANKS 33
#define FROM  39 /* leaf4, sends nothing else */
#define TO    1  /* leaf0, as the receiver of all, which is h0 */

static struct rte_mempool *pool;

struct fixture {
    struct fabric *f;
    struct world *w;
    struct job *j;
    struct flow *flow; /* NULL: none */
    uint16_t hosts[RANKS + 2];
    size_t count;
    double alone;
};

struct outcome {
    double gather_gbps; /* into the receiver, GB/s */
    double share;       /* of what the flow gets alone */
    struct congestion c;
};

static void up(struct fixture *b, const char *conf, size_t bytes, bool flow, bool data)
{
    struct job_cfg jc = {.nranks = RANKS,
                         .host_of_rank = b->hosts,
                         .group = 1,
                         .key = 7,
                         .algos = 1u << ALGO_DIRECT | 1u << ALGO_RING,
                         .lengths = !data,
                         .buffer_bytes = bytes * RANKS,
                         .limit_ps = 10 * PS_PER_S};
    struct world_cfg wc = {.nranks = RANKS + 2, .host_of_rank = b->hosts, .pool = pool, .seed = 1};
    char err[COMM_TEXT] = "";

    *b = (struct fixture){.count = bytes / 4};
    b->f = fabric_load(conf, NULL);
    assert_non_null(b->f);
    for (unsigned r = 0; r < RANKS; r++)
        b->hosts[r] = (uint16_t)r;
    b->hosts[RANKS] = FROM;
    b->hosts[RANKS + 1] = TO;
    wc.fab = jc.fab = b->f;
    assert_int_equal(world_create(&b->w, &wc), 0);
    jc.w = b->w;
    if (job_create(&b->j, &jc, err))
        fail_msg("%s: %s", conf, err);
    if (!flow)
        return;
    assert_int_equal(flow_create(&b->flow, b->w, RANKS, 0, RANKS + 1, 0), 0);
    b->alone = flow_alone(b->flow, 200 * PS_PER_US);
    assert_true(b->alone > 48 && b->alone < 50);
}

static void down(struct fixture *b)
{
    assert_int_equal(job_destroy(b->j), 0);
    flow_destroy(b->flow);
    world_destroy(b->w);
    fabric_free(b->f);
    assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static void args(void *ctx, unsigned rank, struct coll_args *a)
{
    struct fixture *b = ctx;

    *a = (struct coll_args){.kind = COLL_GATHER,
                            .algo = ALGO_DIRECT,
                            .send = job_buffer(b->j, rank, 0),
                            .recv = job_buffer(b->j, rank, 1),
                            .count = b->count,
                            .type = DT_FP32};
}

static bool look(void *ctx)
{
    struct fixture *b = ctx;

    assert_int_equal(flow_progress(b->flow), 0);
    return false;
}

static double gather(struct fixture *b)
{
    struct job_loop l = {
        .n = 1, .args = args, .stop = look, .by_steps = true, .ctx = b, .limit_ps = 10 * PS_PER_S};

    if (job_loop_run(b->j, &l))
        fail_msg("gather: %s", l.text);
    return (double)b->count * 4 * (RANKS - 1) * 1e3 / (double)l.time_ps;
}

/* Once to begin with, once to look at. */
static struct outcome incast(const char *conf, size_t bytes)
{
    struct outcome o = {0};
    uint64_t before;
    struct fixture b;
    int64_t t0;

    up(&b, conf, bytes, true, false);
    assert_int_equal(job_buffers(b.j, bytes * RANKS), 0);
    gather(&b);
    t0 = world_now(b.w);
    before = flow_bytes(b.flow);
    flow_start(b.flow);
    o.gather_gbps = gather(&b);
    o.share = (double)(flow_bytes(b.flow) - before) * 1e3 / (double)(world_now(b.w) - t0) / b.alone;
    assert_int_equal(flow_drain(b.flow), 0);
    congestion_read(&o.c, b.w, b.f);
    down(&b);
    print_message("%-28s gather %5.2f GB/s, the flow beside it %.3f of what it gets alone; ", conf,
                  o.gather_gbps, o.share);
    print_message("%lu marks, %lu notifications, %lu pauses, %lu drops, %lu sent again\n",
                  o.c.marks, o.c.cnps, o.c.pauses, o.c.overflows, o.c.retransmits);
    return o;
}

/* Payload of 400 Gb/s after headers. */
#define FULL (50.0 * 4096 / 4178)

static void pauses_lose_nothing_but_hold_up_a_flow_that_goes_elsewhere_and_dcqcn_less(void **state)
{
    struct outcome pfc = incast("conf/incast-32.conf", 8 << 20);
    struct outcome cc = incast("conf/incast-32-dcqcn.conf", 8 << 20);

    (void)state;
    assert_int_equal(pfc.c.overflows + pfc.c.retransmits + pfc.c.timeouts, 0);
    assert_true(pfc.c.pauses > 1000 && pfc.c.paused_ps > PS_PER_MS);
    assert_int_equal(pfc.c.marks + pfc.c.cnps, 0);
    assert_true(pfc.gather_gbps > 0.99 * FULL); /* the receiver's link is full all the time */
    assert_true(pfc.share < 0.5);

    assert_int_equal(cc.c.overflows + cc.c.retransmits + cc.c.timeouts, 0);
    assert_true(cc.c.marks > 1000 && cc.c.cnps > 1000 && cc.c.cuts > 1000);
    assert_true(cc.c.paused_ps < pfc.c.paused_ps / 4);
    assert_true(cc.share > 1.5 * pfc.share);
    assert_true(cc.gather_gbps > 0.75 * FULL);
}

static void without_pfc_full_queues_drop_and_sending_again_costs_time(void **state)
{
    struct outcome o = incast("conf/incast-32-lossy.conf", 256 << 10);

    (void)state;
    assert_int_equal(o.c.pauses, 0);
    assert_true(o.c.overflows > 1000);
    assert_true(o.c.retransmits >= o.c.overflows);
    assert_true(o.share > 0.9); /* no port is paused because of another one */
    assert_true(o.gather_gbps < FULL / 2);
}

static void what_was_dropped_arrives_all_the_same(void **state)
{
    struct job_op op = {
        .kind = COLL_GATHER, .algo = ALGO_DIRECT, .type = DT_INT32, .count = 65537, .seed = 5};
    struct job_result res;
    struct congestion c;
    struct fixture b;

    (void)state;
    up(&b, "conf/incast-32-lossy.conf", 65537 * 4, false, true);
    assert_int_equal(job_run(b.j, &op, &res), 0);
    assert_int_equal(res.wrong, 0);
    assert_int_equal(res.failed_ranks, 0);
    congestion_read(&c, b.w, b.f);
    assert_true(c.overflows > 100 && c.retransmits >= c.overflows);
    down(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses_lose_nothing_but_hold_up_a_flow_that_goes_elsewhere_and_dcqcn_less),
        cmocka_unit_test(without_pfc_full_queues_drop_and_sending_again_costs_time),
        cmocka_unit_test(what_was_dropped_arrives_all_the_same),
    };

    test_eal_init();
    pool = test_pool(32767);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
