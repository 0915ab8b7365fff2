/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <rte_mempool.h>
#include <string.h>

#include "aggregation/proto.h"
#include "roce/wire.h"
#include "switch/nic.h"
#include "switch/sw.h"
#include "tests/support/eal.h"
#include "tests/support/switch_fixture.h"

#define LEN 4096
#define DUR ((54 + LEN + 4 + 24) * 20ll)
#define CONF                                                                                       \
    "mtu = 4096; slots_per_host = 4; single_switch = { hosts = 3; host_link "                      \
    "= " SWITCH_FIXTURE_LINK "; "                                                                  \
    "};"

static struct rte_mempool *pool;

static struct rte_mbuf *to(struct switch_fixture *l, const char *from, const char *host,
                           unsigned slot, uint32_t len)
{
    struct frame_spec s = {.src_ip = switch_fixture_ip(l, from),
                           .dst_ip = switch_fixture_ip(l, host),
                           .dqpn = (slot + 1) << 16 | 5,
                           .len = len};

    return switch_fixture_frame(pool, &s);
}

static void kick(struct switch_fixture *l, const char *host, unsigned slot)
{
    net_kick(l->net, switch_fixture_node(l, host), 0, slot, net_now(l->net));
}

static void processes_of_a_host_share_its_link_fairly(void **state)
{
    struct prog *a, *b, *dst;
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(&l, pool, CONF);
    a = prog_new(&l, "h0", 0);
    b = prog_new(&l, "h0", 3);
    dst = prog_new(&l, "h1", 0);
    prog_stream(&l, a, "h0", "h1", 1000, LEN);
    prog_stream(&l, b, "h0", "h1", 1000, LEN);
    kick(&l, "h0", 3);
    switch_fixture_run(&l, 500 * DUR);
    assert_in_range(a->endless, b->endless - 8, b->endless + 8); /* up to a stash */
    switch_fixture_run(&l, PS_PER_S);
    assert_int_equal(dst->got, 2000);
    assert_int_equal(dst->last_ps - dst->first_ps, 1999 * DUR);
    assert_int_equal(switch_fixture_all_drops(&l), 0);
    prog_free(a), prog_free(b), prog_free(dst);
    switch_fixture_close(&l);
}

static void acknowledgements_of_all_go_before_data_of_any(void **state)
{
    struct prog *a, *b, *dst;
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(&l, pool, CONF);
    a = prog_new(&l, "h0", 0);
    b = prog_new(&l, "h0", 1);
    dst = prog_new(&l, "h1", 0);
    dst->keep = true;
    for (unsigned i = 0; i < 40; i++)
        prog_send(a, ENDPOINT_DATA, to(&l, "h0", "h1", 0, LEN));
    kick(&l, "h0", 0);
    switch_fixture_run(&l, 2 * DUR);
    prog_send(b, ENDPOINT_ACK, to(&l, "h0", "h1", 0, 4));
    kick(&l, "h0", 1);
    switch_fixture_run(&l, PS_PER_S);
    assert_int_equal(dst->n_rx, 41);
    for (unsigned i = 0; i < 41; i++)
        assert_int_equal(dst->rx[i]->pkt_len == 54 + 4 + 4, i == 3); /* 0, 1 and 2 had begun */
    prog_free(a), prog_free(b), prog_free(dst);
    switch_fixture_close(&l);
}

static void the_top_bits_of_the_qpn_name_the_process(void **state)
{
    struct prog *src, *dst[3];
    struct frame_spec s;
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(&l, pool, CONF);
    src = prog_new(&l, "h0", 0);
    for (unsigned i = 0; i < 3; i++)
        dst[i] = prog_new(&l, "h1", i);
    for (unsigned i = 0; i < 3; i++)
        for (unsigned k = 0; k <= i; k++)
            prog_send(src, ENDPOINT_DATA, to(&l, "h0", "h1", i, 64));
    s = (struct frame_spec){
        .src_ip = switch_fixture_ip(&l, "h0"), .dst_ip = switch_fixture_ip(&l, "h1"), .dqpn = 1};
    prog_send(src, ENDPOINT_DATA, switch_fixture_frame(pool, &s)); /* low QPNs: slot 0 */
    prog_send(src, ENDPOINT_DATA, to(&l, "h0", "h1", 3, 64));
    prog_send(src, ENDPOINT_DATA, to(&l, "h0", "h1", 200, 64));
    kick(&l, "h0", 0);
    switch_fixture_run(&l, PS_PER_S);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(dst[i]->got, i + 1 + (i == 0));
        prog_free(dst[i]);
    }
    assert_int_equal(switch_fixture_drops(&l, DROP_NO_SLOT), 2);
    prog_free(src);
    switch_fixture_close(&l);
}

static void a_hosts_traffic_to_itself_never_touches_the_link(void **state)
{
    struct prog *a, *b, *c;
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(&l, pool, CONF);
    a = prog_new(&l, "h0", 0);
    b = prog_new(&l, "h0", 1);
    c = prog_new(&l, "h1", 0);
    for (unsigned i = 0; i < 50; i++) {
        prog_send(a, ENDPOINT_DATA, to(&l, "h0", "h0", 1, LEN));
        prog_send(a, ENDPOINT_DATA, to(&l, "h0", "h1", 0, LEN));
    }
    kick(&l, "h0", 0);
    switch_fixture_run(&l, PS_PER_S);
    assert_int_equal(b->got, 50);
    assert_int_equal(c->got, 50);
    assert_int_equal(egress_stats(net_egress(l.net, switch_fixture_node(&l, "h0"), 0)).frames, 50);
    assert_in_range(b->last_ps - b->first_ps, 49 * DUR, 51 * DUR); /* at the rate of the link */
    assert_in_range(c->last_ps - c->first_ps, 49 * DUR, 51 * DUR);
    prog_free(a), prog_free(b), prog_free(c);
    switch_fixture_close(&l);
}

static void a_slow_process_holds_its_senders_back_and_loses_nothing(void **state)
{
    struct prog *slow, *far, *near;
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(
        &l, pool,
        "mtu = 4096; single_switch = { hosts = 2; host_link = { rate = \"400Gb/s\"; latency = "
        "\"300ns\"; buffer = \"64KiB\"; }; };");
    slow = prog_new(&l, "h0", 0);
    near = prog_new(&l, "h0", 1);
    far = prog_new(&l, "h1", 0);
    slow->take = 0;
    prog_stream(&l, far, "h1", "h0", 500, LEN);
    prog_stream(&l, near, "h0", "h0", 500, LEN);
    kick(&l, "h0", 1);
    switch_fixture_run(&l, 300 * PS_PER_US);
    assert_int_equal(slow->got, 0);
    assert_true(far->endless > 400); /* neither was let send more than buffers hold */
    assert_true(near->endless > 400);
    slow->take = 1; /* one at a time */
    switch_fixture_run(&l, PS_PER_S);
    assert_int_equal(slow->got, 1000);
    assert_int_equal(switch_fixture_all_drops(&l), 0);
    prog_free(slow), prog_free(far), prog_free(near);
    switch_fixture_close(&l);
}

/* Real time: the loop slept for milliseconds, pauses were to be repeated meanwhile, and first of
 * all it finds that a process has made room. */
static void a_late_kick_lets_nothing_through_that_a_pause_held_back(void **state)
{
    struct prog *slow, *far;
    struct switch_fixture l;
    int64_t late;

    (void)state;
    switch_fixture_open(
        &l, pool,
        "mtu = 4096; single_switch = { hosts = 2; host_link = { rate = \"400Gb/s\"; latency = "
        "\"300ns\"; buffer = \"64KiB\"; }; };");
    slow = prog_new(&l, "h0", 0);
    far = prog_new(&l, "h1", 0);
    slow->take = 0;
    prog_stream(&l, far, "h1", "h0", 900, LEN);
    kick(&l, "h1", 0);
    net_advance(l.net, 200 * PS_PER_US);
    for (late = 5000 * PS_PER_US; slow->got < 900 && late < PS_PER_S; late += 5000 * PS_PER_US) {
        slow->take = 16;
        net_kick(l.net, switch_fixture_node(&l, "h0"), 0, 0, late);
        slow->take = 0;
        net_advance(l.net, late);
    }
    assert_int_equal(switch_fixture_all_drops(&l), 0);
    assert_int_equal(slow->got, 900);
    prog_free(slow), prog_free(far);
    switch_fixture_close(&l);
}

static void timers_of_processes_run_when_due(void **state)
{
    struct prog *a;
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(&l, pool, CONF);
    a = prog_new(&l, "h0", 2);
    a->timer_ps = 7 * PS_PER_US;
    kick(&l, "h0", 2);
    switch_fixture_run(&l, PS_PER_US);
    assert_int_equal(a->ticks, 0);
    assert_int_equal(net_next(l.net), 7 * PS_PER_US);
    assert_int_equal(switch_fixture_run(&l, 7 * PS_PER_US), 7 * PS_PER_US);
    assert_int_equal(a->ticks, 1);
    assert_int_equal(net_next(l.net), PS_NEVER);
    prog_free(a);
    switch_fixture_close(&l);
}

/* A process that always has frames ready would otherwise see its retransmission timers, and what
 * its HCA delays, only when it has nothing to send. */
static void timers_run_while_the_link_is_busy(void **state)
{
    struct prog *a, *dst;
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(&l, pool, CONF);
    a = prog_new(&l, "h0", 2);
    dst = prog_new(&l, "h1", 0);
    prog_stream(&l, a, "h0", "h1", 1000, LEN);
    a->timer_ps = 100 * DUR;
    kick(&l, "h0", 2);
    switch_fixture_run(&l, 99 * DUR);
    assert_int_equal(a->ticks, 0);
    switch_fixture_run(&l, 101 * DUR);
    assert_int_equal(a->ticks, 1);
    assert_true(a->endless > 800);
    switch_fixture_run(&l, PS_PER_S);
    assert_int_equal(dst->got, 1000);
    assert_int_equal(a->ticks, 1);
    prog_free(a), prog_free(dst);
    switch_fixture_close(&l);
}

/* ---- the end of a process ---- */

/* A switch whose aggregation node is `an`, and a process on h0 that takes nothing. */
static struct prog *open_reducing(struct switch_fixture *l, struct prog *an)
{
    struct endpoint ep = prog_endpoint(an);
    struct prog *p;

    switch_fixture_open(
        l, pool,
        "mtu = 4096; reduce = { groups = 4; slots = 64; window = 16; }; leaf_spine = { leaves "
        "= 2; spines = 2; hosts_per_leaf = 2; host_link = " SWITCH_FIXTURE_LINK
        "; spine_link = " SWITCH_FIXTURE_LINK "; };");
    assert_int_equal(net_attach(l->net, switch_fixture_node(l, "leaf0"), 0, 0, &ep), 0);
    p = prog_new(l, "h0", 2);
    p->take = 0;
    return p;
}

static void expect_peer_down(const struct switch_fixture *l, struct rte_mbuf *m)
{
    const struct agg_ctl *ctl;
    struct roce_pkt pkt;

    assert_int_equal(roce_parse(m, &pkt), ROCE_OK);
    assert_true(roce_icrc_ok(m, &pkt));
    assert_int_equal(pkt.opcode, ROCE_OP_UD_SEND_ONLY);
    assert_int_equal(pkt.dqpn, AGG_QPN);
    assert_int_equal(pkt.qkey, AGG_QKEY);
    assert_int_equal(pkt.src_ip, switch_fixture_ip(l, "h0"));
    assert_int_equal(pkt.len, sizeof(*ctl));
    ctl = (const struct agg_ctl *)pkt.payload;
    assert_int_equal(ctl->magic, RTE_BE32(AGG_MAGIC));
    assert_int_equal(ctl->type, AGG_PEER_DOWN);
    assert_int_equal(ctl->qpn, RTE_BE32(3 << 16));
}

static void the_aggregation_node_hears_of_the_end_of_a_process(void **state)
{
    struct prog an = {.take = -1, .keep = true, .timer_ps = PS_NEVER}, *p, *src;
    struct switch_fixture l;

    (void)state;
    p = open_reducing(&l, &an);
    src = prog_new(&l, "h1", 0);
    for (unsigned i = 0; i < 20; i++) { /* frames stay behind in every queue */
        prog_send(src, ENDPOINT_DATA, to(&l, "h1", "h0", 2, 64));
        prog_send(p, ENDPOINT_DATA, to(&l, "h0", "h1", 0, 64));
        prog_send(p, ENDPOINT_DATA, to(&l, "h0", "h0", 2, 64));
    }
    kick(&l, "h1", 0);
    kick(&l, "h0", 2);
    switch_fixture_run(&l, 2 * PS_PER_US);
    net_detach(l.net, switch_fixture_node(&l, "h0"), 0, 2, net_now(l.net));
    switch_fixture_run(&l, PS_PER_MS / 2);
    assert_int_equal(an.n_rx, 1);
    expect_peer_down(&l, an.rx[0]);
    assert_true(switch_fixture_drops(&l, DROP_DETACHED) > 0);
    assert_int_equal(an.got, 1);
    /* A frame may be lost: PEER_DOWN is repeated, but not for ever. */
    switch_fixture_run(&l, PS_PER_S);
    assert_in_range(an.got, 4, 8);
    assert_int_equal(net_next(l.net), PS_NEVER);
    for (unsigned i = 0; i < an.n_rx; i++)
        rte_pktmbuf_free(an.rx[i]);
    prog_free(p), prog_free(src);
    switch_fixture_close(&l);
}

/* The aggregation node is not told that the second process of a slot is down, as the first was. */
static void a_slot_is_used_again_after_the_end_of_its_process(void **state)
{
    struct prog an = {.take = -1, .timer_ps = PS_NEVER}, *p, *src;
    struct switch_fixture l;

    (void)state;
    p = open_reducing(&l, &an);
    src = prog_new(&l, "h1", 0);
    net_detach(l.net, switch_fixture_node(&l, "h0"), 0, 2, net_now(l.net));
    prog_free(p);
    switch_fixture_run(&l, PS_PER_MS / 2);
    assert_true(an.got > 0);
    an.got = 0;
    p = prog_new(&l, "h0", 2);
    prog_send(src, ENDPOINT_DATA, to(&l, "h1", "h0", 2, 64));
    kick(&l, "h1", 0);
    switch_fixture_run(&l, PS_PER_S);
    assert_int_equal(p->got, 1);
    assert_int_equal(an.got, 0);
    prog_free(p), prog_free(src);
    switch_fixture_close(&l);
}

static void slots_are_checked_when_they_are_attached(void **state)
{
    struct prog *a, b = {.take = -1};
    struct endpoint ep = prog_endpoint(&b);
    uint16_t h0;
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(&l, pool, CONF);
    h0 = switch_fixture_node(&l, "h0");
    a = prog_new(&l, "h0", 0);
    assert_int_equal(net_attach(l.net, h0, 0, 0, &ep), -EBUSY);
    assert_int_equal(net_attach(l.net, h0, 0, 4, &ep), -EINVAL);
    assert_int_equal(net_attach(l.net, h0, 1, 0, &ep), -EINVAL);
    assert_int_equal(net_attach(l.net, 999, 0, 0, &ep), -EINVAL);
    prog_free(a);
    switch_fixture_close(&l);
}

static void a_process_cannot_pause_the_switch_or_send_garbage(void **state)
{
    static const uint8_t mac[6] = {2};
    struct prog *a;
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(&l, pool, CONF);
    a = prog_new(&l, "h0", 0);
    prog_send(a, ENDPOINT_DATA, pfc_frame(pool, mac, 0xffff));
    prog_send(a, ENDPOINT_DATA, switch_fixture_bytes(pool, "short", 5));
    kick(&l, "h0", 0);
    switch_fixture_run(&l, PS_PER_S);
    assert_int_equal(switch_fixture_drops(&l, DROP_LINK_LOCAL), 1);
    assert_int_equal(switch_fixture_drops(&l, DROP_RUNT), 1);
    assert_int_equal(egress_stats(net_egress(l.net, switch_fixture_node(&l, "h0"), 0)).frames, 0);
    prog_free(a);
    switch_fixture_close(&l);
}

/* The cost of an event must not grow with what is idle, nor with how often others have one. */
static void an_idle_process_is_never_looked_at_and_a_busy_one_costs_few_events(void **state)
{
    const unsigned frames = 2000;
    struct prog *a, *dst, *idle;
    unsigned before;
    uint64_t events;
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(&l, pool, CONF);
    a = prog_new(&l, "h0", 0);
    dst = prog_new(&l, "h1", 0);
    idle = prog_new(&l, "h2", 0);
    switch_fixture_run(&l, PS_PER_US);
    before = idle->asked;
    events = net_events(l.net);
    prog_stream(&l, a, "h0", "h1", frames, LEN);
    switch_fixture_run(&l, PS_PER_S);
    assert_int_equal(dst->got, frames);
    assert_int_equal(idle->asked, before);
    assert_true(dst->asked <= frames + 2);
    /* Once for each frame, that an acknowledgement may overtake, and once for each stash. */
    assert_true(a->asked <= frames + frames / 8 + 8);
    /* Its start on the first link, and an arrival at the end of each. */
    assert_true(net_events(l.net) - events <= 3 * frames + 8);
    prog_free(a), prog_free(dst), prog_free(idle);
    switch_fixture_close(&l);
}

/* When h0's frame arrives, if it is handed over at `at`. */
static int64_t arrival(struct switch_fixture *l, struct prog *src, struct prog *dst, int64_t at)
{
    prog_send(src, ENDPOINT_DATA, to(l, "h0", "h1", 0, LEN));
    net_kick(l->net, switch_fixture_node(l, "h0"), 0, 0, at);
    switch_fixture_run(l, PS_PER_S);
    return dst->last_ps;
}

/* The time of a link is kept for a process that is late, as long as PFC's headroom covers it. */
static void a_late_process_does_not_lower_the_links_rate(void **state)
{
    const int64_t lag = 60 * DUR, t = 1000 * DUR;
    struct net_cfg cfg = {.seed = 1, .lag_ps = lag};
    struct prog *src, *dst;
    struct switch_fixture l;
    int64_t first;

    (void)state;
    switch_fixture_open_cfg(&l, pool, CONF, &cfg);
    src = prog_new(&l, "h0", 0);
    dst = prog_new(&l, "h1", 0);
    src->late = true;
    first = arrival(&l, src, dst, t);
    assert_int_equal(arrival(&l, src, dst, t + 50 * DUR), first + DUR);
    assert_int_equal(arrival(&l, src, dst, t + 200 * DUR), first + 200 * DUR - lag);
    src->late = false; /* it had nothing to send */
    assert_int_equal(arrival(&l, src, dst, t + 300 * DUR), first + 300 * DUR - lag);
    assert_int_equal(arrival(&l, src, dst, t + 400 * DUR), first + 400 * DUR);
    assert_int_equal(switch_fixture_all_drops(&l), 0);
    prog_free(src), prog_free(dst);
    switch_fixture_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_of_a_host_share_its_link_fairly),
        cmocka_unit_test(acknowledgements_of_all_go_before_data_of_any),
        cmocka_unit_test(the_top_bits_of_the_qpn_name_the_process),
        cmocka_unit_test(a_hosts_traffic_to_itself_never_touches_the_link),
        cmocka_unit_test(a_slow_process_holds_its_senders_back_and_loses_nothing),
        cmocka_unit_test(a_late_kick_lets_nothing_through_that_a_pause_held_back),
        cmocka_unit_test(timers_of_processes_run_when_due),
        cmocka_unit_test(timers_run_while_the_link_is_busy),
        cmocka_unit_test(the_aggregation_node_hears_of_the_end_of_a_process),
        cmocka_unit_test(a_slot_is_used_again_after_the_end_of_its_process),
        cmocka_unit_test(slots_are_checked_when_they_are_attached),
        cmocka_unit_test(a_process_cannot_pause_the_switch_or_send_garbage),
        cmocka_unit_test(a_late_process_does_not_lower_the_links_rate),
        cmocka_unit_test(an_idle_process_is_never_looked_at_and_a_busy_one_costs_few_events),
    };

    test_eal_init();
    pool = test_pool(16383);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
