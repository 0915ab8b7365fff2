/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that sends what it may not send has its slot shut; its host's others go on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <rte_mempool.h>
#include <string.h>

#include "aggregation/proto.h"
#include "roce/wire.h"
#include "switch/mcast.h"
#include "switch/nic.h"
#include "tests/support/eal.h"
#include "tests/support/switch_fixture.h"

#define CONF                                                                                       \
    "mtu = 4096; slots_per_host = 8; reduce = { groups = 4; slots = 64; window = 16; }; "          \
    "single_switch = { hosts = 3; host_link = " SWITCH_FIXTURE_LINK "; };"
#define GROUP 0xe1000005u

static struct rte_mempool *pool;
static unsigned told;

struct scene {
    struct switch_fixture l;
    struct prog *bad, *good, *dst; /* h0, slots 0 and 5; h1 */
    struct prog an;                /* in place of the switch's aggregation node */
    struct node *h0;
};

static void offended(void *ctx, uint16_t node, uint16_t port, unsigned slot)
{
    struct nic_offender o;
    struct scene *s = ctx;

    assert_int_equal(node, s->h0->id);
    assert_true(nic_offences(s->h0, port, slot, &o));
    told++;
}

static void open_scene(struct scene *s)
{
    struct endpoint ep = prog_endpoint(&s->an);

    memset(s, 0, sizeof(*s));
    s->an.take = -1;
    s->an.timer_ps = PS_NEVER;
    s->an.keep = true;
    told = 0;
    switch_fixture_open(&s->l, pool, CONF);
    assert_int_equal(net_attach(s->l.net, switch_fixture_node(&s->l, "switch0"), 0, 0, &ep), 0);
    s->bad = prog_new(&s->l, "h0", 0);
    s->good = prog_new(&s->l, "h0", 5);
    s->dst = prog_new(&s->l, "h1", 0);
    s->h0 = net_node(s->l.net, switch_fixture_node(&s->l, "h0"));
    nic_on_offence(s->h0, offended, s);
}

static void close_scene(struct scene *s)
{
    for (unsigned i = 0; i < s->an.n_rx; i++)
        rte_pktmbuf_free(s->an.rx[i]);
    prog_free(s->bad), prog_free(s->good), prog_free(s->dst);
    switch_fixture_close(&s->l);
}

static void pass(struct scene *s, int64_t ps)
{
    int64_t end = net_now(s->l.net) + ps;

    switch_fixture_run(&s->l, end);
    net_advance(s->l.net, end);
}

/* n frames from `from`'s address, which is h0's own or not. */
static void send(struct scene *s, struct prog *p, unsigned slot, const char *from, unsigned n)
{
    p->src_ip = switch_fixture_ip(&s->l, from);
    p->dst_ip = switch_fixture_ip(&s->l, "h1");
    p->dqpn = 1 << 16 | 7;
    p->len = 64;
    p->endless = n;
    net_kick(s->l.net, s->h0->id, 0, slot, net_now(s->l.net));
    pass(s, PS_PER_MS);
}

static uint64_t drops(const struct scene *s, enum drop why)
{
    return s->h0->cnt[0].drops[why];
}

static bool is_shut(struct scene *s, unsigned slot)
{
    struct nic_offender o;

    return nic_offences(s->h0, 0, slot, &o) && o.shut;
}

static void the_limit_shuts_the_slot_and_no_other(void **state)
{
    struct nic_offender o;
    struct scene s;

    (void)state;
    open_scene(&s);
    send(&s, s.bad, 0, "h2", NIC_OFFENCES - 1);
    assert_false(is_shut(&s, 0));
    send(&s, s.bad, 0, "h0", 10);
    assert_int_equal(s.dst->got, 10);
    send(&s, s.bad, 0, "h2", 100);
    assert_true(is_shut(&s, 0));
    assert_true(nic_offences(s.h0, 0, 0, &o));
    assert_int_equal(o.frames, NIC_OFFENCES);
    assert_int_equal(o.why, DROP_FOREIGN_MAC);
    assert_int_equal(told, NIC_OFFENCES);
    assert_int_equal(drops(&s, DROP_FOREIGN_MAC), NIC_OFFENCES);
    assert_true(s.bad->endless > 0); /* nothing is taken from it any more */
    send(&s, s.bad, 0, "h0", 10);
    assert_int_equal(s.dst->got, 10);
    send(&s, s.good, 5, "h0", 20);
    assert_int_equal(s.dst->got, 30);
    assert_false(nic_offences(s.h0, 0, 5, &o));
    assert_false(nic_port_is_shut(s.h0, 0));
    close_scene(&s);
}

static void a_few_a_second_shut_nothing(void **state)
{
    struct scene s;

    (void)state;
    open_scene(&s);
    for (unsigned i = 0; i < 5; i++) {
        send(&s, s.bad, 0, "h2", NIC_OFFENCES - 1);
        pass(&s, NIC_OFFENCE_WINDOW_PS);
    }
    assert_false(is_shut(&s, 0));
    nic_set_offence_window(s.h0, PS_PER_US); /* a slow clock: a second of the wall's */
    for (unsigned i = 0; i < 5; i++)
        send(&s, s.bad, 0, "h2", NIC_OFFENCES / 2);
    assert_false(is_shut(&s, 0));
    close_scene(&s);
}

/* Malformed frames, and those that are the NIC's own, count as well. */
static struct rte_mbuf *malformed(struct prog *p)
{
    static const uint8_t pause[60] = {1, 0x80, 0xc2, 0, 0, 1, [12] = 0x88, 8, 1, 1};

    return p->endless % 2 ? switch_fixture_bytes(p->pool, pause, sizeof(pause))
                          : switch_fixture_bytes(p->pool, pause, 12);
}

static void malformed_frames_are_offences(void **state)
{
    struct scene s;

    (void)state;
    open_scene(&s);
    s.bad->shape = malformed;
    send(&s, s.bad, 0, "h0", 2 * NIC_OFFENCES);
    assert_true(is_shut(&s, 0));
    assert_int_equal(drops(&s, DROP_RUNT) + drops(&s, DROP_LINK_LOCAL), NIC_OFFENCES);
    close_scene(&s);
}

static void a_shut_process_counts_as_gone(void **state)
{
    struct frame_spec f = {.len = 64};
    struct roce_pkt pkt;
    uint8_t mac[6];
    struct scene s;

    (void)state;
    open_scene(&s);
    roce_mac_of_ip(switch_fixture_ip(&s.l, "h0"), mac);
    prog_send(s.bad, ENDPOINT_DATA,
              igmp_build(pool, IGMP_JOIN, GROUP, switch_fixture_ip(&s.l, "h0"), mac));
    send(&s, s.bad, 0, "h0", 0);
    /* Frames in both queues when it is shut, and frames for it. */
    for (unsigned i = 0; i < 5; i++) {
        f.src_ip = f.dst_ip = switch_fixture_ip(&s.l, "h0");
        f.dqpn = 1 << 16 | 5;
        prog_send(s.bad, ENDPOINT_ACK, switch_fixture_frame(pool, &f));
    }
    s.bad->take = 0;
    send(&s, s.bad, 0, "h2", 2 * NIC_OFFENCES);
    assert_true(is_shut(&s, 0));
    pass(&s, PS_PER_MS);
    assert_true(s.an.n_rx > 0);
    assert_int_equal(roce_parse(s.an.rx[0], &pkt), ROCE_OK);
    assert_int_equal(pkt.sqpn, AGG_NIC_QPN);
    assert_int_equal(((const struct agg_ctl *)pkt.payload)->type, AGG_PEER_DOWN);
    assert_int_equal(((const struct agg_ctl *)pkt.payload)->qpn, RTE_BE32(1 << 16));
    assert_int_equal(nic_backlog(s.h0, 0, 0), 0);
    f.src_ip = switch_fixture_ip(&s.l, "h1");
    prog_send(s.dst, ENDPOINT_DATA, switch_fixture_frame(pool, &f));
    net_kick(s.l.net, switch_fixture_node(&s.l, "h1"), 0, 0, net_now(s.l.net));
    pass(&s, PS_PER_MS);
    assert_true(drops(&s, DROP_PORT_SHUT) > 0);
    /* Nobody is a member any more. */
    f = (struct frame_spec){.src_ip = switch_fixture_ip(&s.l, "h1"),
                            .dst_ip = GROUP,
                            .dqpn = 0xffffff,
                            .len = 64,
                            .dst_mac = {1, 0, 0x5e, 0, 0, 5}};
    prog_send(s.dst, ENDPOINT_DATA, switch_fixture_frame(pool, &f));
    net_kick(s.l.net, switch_fixture_node(&s.l, "h1"), 0, 0, net_now(s.l.net));
    pass(&s, PS_PER_MS);
    assert_int_equal(switch_fixture_drops(&s.l, DROP_UNKNOWN_GROUP), 1);
    close_scene(&s);
}

static void an_opened_port_takes_frames_again(void **state)
{
    struct nic_offender o;
    struct scene s;

    (void)state;
    open_scene(&s);
    send(&s, s.bad, 0, "h2", NIC_OFFENCES);
    assert_true(is_shut(&s, 0));
    net_open_port(s.l.net, s.h0->id, 0, net_now(s.l.net));
    assert_false(nic_offences(s.h0, 0, 0, &o));
    send(&s, s.bad, 0, "h0", 7);
    assert_int_equal(s.dst->got, 7);
    send(&s, s.bad, 0, "h2", NIC_OFFENCES);
    assert_true(is_shut(&s, 0));
    close_scene(&s);
}

static void the_next_process_of_a_slot_is_not_shut(void **state)
{
    struct endpoint ep;
    struct nic_offender o;
    struct scene s;

    (void)state;
    open_scene(&s);
    send(&s, s.bad, 0, "h2", NIC_OFFENCES);
    ep = prog_endpoint(s.bad);
    assert_int_equal(nic_attach(s.h0, 0, 0, &ep), -EBUSY);
    net_detach(s.l.net, s.h0->id, 0, 0, net_now(s.l.net));
    assert_int_equal(net_attach(s.l.net, s.h0->id, 0, 0, &ep), 0);
    send(&s, s.bad, 0, "h0", 7);
    assert_int_equal(s.dst->got, 7);
    assert_true(nic_offences(s.h0, 0, 0, &o));
    assert_true(o.was_shut && !o.shut);
    close_scene(&s);
}

static void an_offender_that_comes_back_shuts_the_port(void **state)
{
    struct endpoint ep;
    struct scene s;

    (void)state;
    open_scene(&s);
    ep = prog_endpoint(s.bad);
    for (unsigned slot = 0; slot < NIC_SHUT_SLOTS; slot++) {
        assert_false(nic_port_is_shut(s.h0, 0));
        s.bad->mark = slot + 1;
        if (slot) {
            net_detach(s.l.net, s.h0->id, 0, slot - 1, net_now(s.l.net));
            assert_int_equal(net_attach(s.l.net, s.h0->id, 0, slot, &ep), 0);
        }
        send(&s, s.bad, slot, "h2", NIC_OFFENCES);
    }
    assert_true(nic_port_is_shut(s.h0, 0));
    send(&s, s.good, 5, "h0", 7); /* nobody can tell it from the offender */
    assert_int_equal(s.dst->got, 0);
    net_detach(s.l.net, s.h0->id, 0, NIC_SHUT_SLOTS - 1, net_now(s.l.net));
    assert_int_equal(net_attach(s.l.net, s.h0->id, 0, 6, &ep), 0);
    s.bad->mark = 7;
    send(&s, s.bad, 6, "h0", 7);
    assert_int_equal(s.dst->got, 0);
    net_open_port(s.l.net, s.h0->id, 0, net_now(s.l.net));
    pass(&s, PS_PER_MS);
    assert_int_equal(s.dst->got, 14); /* what both had waiting */
    assert_false(nic_port_is_shut(s.h0, 0));
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit_shuts_the_slot_and_no_other),
        cmocka_unit_test(a_few_a_second_shut_nothing),
        cmocka_unit_test(malformed_frames_are_offences),
        cmocka_unit_test(a_shut_process_counts_as_gone),
        cmocka_unit_test(an_opened_port_takes_frames_again),
        cmocka_unit_test(the_next_process_of_a_slot_is_not_shut),
        cmocka_unit_test(an_offender_that_comes_back_shuts_the_port),
    };

    test_eal_init();
    pool = test_pool(8191);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
