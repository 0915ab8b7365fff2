/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <rte_mempool.h>
#include <stdio.h>

#include "switch/classify.h"
#include "switch/net/net_stats.h"
#include "switch/queue/pfc.h"
#include "tests/support/eal.h"
#include "tests/support/switch_fixture.h"

#define LEN 4096
#define DUR ((54 + LEN + 4 + 24) * 20ll)
#define N   400

#define LINK(more) "{ rate = \"400Gb/s\"; latency = \"300ns\"; " more " }"

static struct rte_mempool *pool;

/* Hosts 1..8 send N frames each to h0; returns h0. */
static struct prog *incast(struct switch_fixture *l, struct prog **src, const char *conf)
{
    struct prog *dst;
    char name[8];

    switch_fixture_open(l, pool, conf);
    dst = prog_new(l, "h0", 0);
    for (unsigned i = 0; i < 8; i++) {
        snprintf(name, sizeof(name), "h%u", i + 1);
        src[i] = prog_new(l, name, 0);
        prog_stream(l, src[i], name, "h0", N, LEN);
    }
    switch_fixture_run(l, PS_PER_S);
    return dst;
}

static void end(struct switch_fixture *l, struct prog **src, struct prog *dst)
{
    for (unsigned i = 0; i < 8; i++)
        prog_free(src[i]);
    prog_free(dst);
    switch_fixture_close(l);
}

static void a_full_buffer_drops_and_counts_without_pfc(void **state)
{
    struct prog *src[8], *dst;
    const struct node *sw;
    struct switch_fixture l;
    uint64_t lost = 0;

    (void)state;
    dst = incast(&l, src,
                 "mtu = 4096; single_switch = { hosts = 9; host_link = " LINK(
                     "pfc = false; buffer = \"128KiB\";") "; };");
    assert_int_equal(switch_fixture_pauses(&l), 0);
    assert_true(switch_fixture_drops(&l, DROP_QUEUE_FULL) > 0);
    assert_int_equal(dst->got + switch_fixture_drops(&l, DROP_QUEUE_FULL), 8 * N);
    assert_int_equal(switch_fixture_all_drops(&l), switch_fixture_drops(&l, DROP_QUEUE_FULL));
    /* At the ports by which they came. */
    sw = net_node(l.net, switch_fixture_node(&l, "switch0"));
    for (unsigned p = 1; p < 9; p++)
        lost += sw->cnt[p].drops[DROP_QUEUE_FULL];
    assert_int_equal(lost, switch_fixture_drops(&l, DROP_QUEUE_FULL));
    assert_true(egress_stats(sw->egress[0]).peak_bytes <= 128 << 10);
    end(&l, src, dst);
}

/* The counters of ports add up: as many pauses are received as sent, and a queue waited. */
static void check_totals(const struct switch_fixture *l)
{
    struct net_port_stats s;

    net_total_stats(l->net, l->f, &s);
    assert_int_equal(s.pauses_sent, switch_fixture_pauses(l));
    assert_int_equal(s.pauses_received, s.pauses_sent);
    assert_int_equal(s.drops, 0);
    assert_true(s.paused_ps > 0 && s.paused_ps < net_now(l->net) * l->f->n_links * 2);
    assert_true(s.class_peak_bytes[FRAME_LOSSLESS] > 0 && s.peak_bytes > 0);
    assert_int_equal(s.class_peak_bytes[FRAME_LOSSY], 0);
    assert_false(net_port_stats(l->net, l->f->hosts[0], 99, &s));
}

static void pfc_loses_nothing_and_keeps_the_bottleneck_full(void **state)
{
    static const char *const confs[] = {
        "mtu = 4096; single_switch = { hosts = 9; host_link = " LINK("buffer = \"128KiB\";") "; };",
        "mtu = 4096; single_switch = { hosts = 9; host_link = " LINK("") "; };",
        /* Congestion that spreads back over the spines: the leaf of h0 has 5 hosts. */
        "mtu = 4096; ecmp = \"hash\"; leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 5; "
        "host_link = " LINK("buffer = \"64KiB\";") "; spine_link = " LINK(
            "buffer = \"64KiB\";") "; };",
        /* Few mbufs instead of few bytes. */
        "mtu = 4096; single_switch = { hosts = 9; host_link = " LINK("buffer_frames = 16;") "; };",
        /* Long links: more is in flight than the buffer holds. */
        "mtu = 4096; single_switch = { hosts = 9; host_link = { rate = \"400Gb/s\"; latency = "
        "\"5us\"; buffer = \"64KiB\"; }; };",
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(confs) / sizeof(*confs); i++) {
        struct prog *src[8], *dst;
        struct switch_fixture l;

        dst = incast(&l, src, confs[i]);
        assert_int_equal(switch_fixture_all_drops(&l), 0);
        assert_int_equal(dst->got, 8 * N);
        assert_true(switch_fixture_pauses(&l) > 0);
        check_totals(&l);
        /* Not one gap between the first frame and the last. */
        assert_int_equal(dst->last_ps - dst->first_ps, (8 * N - 1) * DUR);
        end(&l, src, dst);
    }
}

static void victims_of_a_pause_go_on_when_it_ends(void **state)
{
    struct prog *src[8], *dst, *slow;
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(
        &l, pool,
        "mtu = 4096; single_switch = { hosts = 9; host_link = " LINK("buffer = \"64KiB\";") "; };");
    dst = prog_new(&l, "h0", 0);
    slow = prog_new(&l, "h1", 0);
    slow->take = 0; /* takes nothing at all for a while */
    for (unsigned i = 0; i < 7; i++) {
        char name[8];

        snprintf(name, sizeof(name), "h%u", i + 2);
        src[i] = prog_new(&l, name, 0);
        prog_stream(&l, src[i], name, i < 3 ? "h1" : "h0", N, LEN);
    }
    src[7] = slow;
    switch_fixture_run(&l, 400 * PS_PER_US);
    assert_int_equal(slow->got, 0);
    assert_int_equal(dst->got, 4 * N); /* flows of other hosts are not held up */
    slow->take = -1;
    switch_fixture_run(&l, PS_PER_S);
    assert_int_equal(slow->got, 3 * N);
    assert_int_equal(switch_fixture_all_drops(&l), 0);
    end(&l, src, dst);
}

struct pauses {
    const struct switch_fixture *l;
    unsigned n, xon, bad;
    int64_t last_ps, gap_ps; /* longest silence while paused */
    bool paused;
    unsigned dirlink;
};

static void watch_pauses(void *ctx, unsigned dirlink, struct rte_mbuf *m, int64_t now)
{
    struct pauses *w = ctx;
    const struct pfc_wire *p = rte_pktmbuf_mtod(m, const struct pfc_wire *);
    bool xon;

    if (dirlink != w->dirlink || p->ethertype != RTE_BE16(0x8808))
        return;
    w->bad += m->pkt_len != 60 || p->dst[0] != 1 || p->dst[5] != 1 ||
              p->opcode != RTE_BE16(0x0101) || p->classes != RTE_BE16(8);
    xon = p->quanta[PFC_PRIORITY] == 0;
    if (w->paused && now - w->last_ps > w->gap_ps)
        w->gap_ps = now - w->last_ps;
    w->n++, w->xon += xon;
    w->paused = !xon;
    w->last_ps = now;
}

static void pauses_are_real_frames_repeated_before_they_run_out(void **state)
{
    struct pauses w = {0};
    struct prog *slow, *src;
    uint16_t link, h1;
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(
        &l, pool,
        "mtu = 4096; single_switch = { hosts = 2; host_link = " LINK("buffer = \"64KiB\";") "; };");
    slow = prog_new(&l, "h1", 0);
    src = prog_new(&l, "h0", 0);
    h1 = switch_fixture_node(&l, "h1");
    link = l.f->nodes[h1].ports[0].link;
    w.l = &l;
    w.dirlink = 2u * link + (l.f->links[link].a != h1);
    net_tap(l.net, watch_pauses, &w);
    slow->take = 0;
    prog_stream(&l, src, "h0", "h1", N, LEN);
    switch_fixture_run(&l, 500 * PS_PER_US);
    assert_int_equal(w.bad, 0);
    assert_int_equal(w.xon, 0);
    assert_in_range(w.n, 500 * PS_PER_US / pfc_quanta_ps(65535, 400000000000ull), 14);
    assert_true(w.gap_ps < pfc_quanta_ps(65535, 400000000000ull));
    slow->take = -1;
    switch_fixture_run(&l, PS_PER_S);
    assert_int_equal(slow->got, N);
    assert_true(w.xon > 0 && !w.paused);
    assert_int_equal(switch_fixture_all_drops(&l), 0);
    prog_free(slow);
    prog_free(src);
    switch_fixture_close(&l);
}

static void all_to_all_through_small_buffers_ends(void **state)
{
    struct prog *p[8];
    char name[8], to[8];
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(
        &l, pool,
        "mtu = 4096; ecmp = \"hash\"; leaf_spine = { leaves = 4; spines = 2; hosts_per_leaf = "
        "2; host_link = " LINK("buffer = \"32KiB\";") "; spine_link = " LINK(
            "buffer = \"32KiB\";") "; };");
    for (unsigned i = 0; i < 8; i++) {
        snprintf(name, sizeof(name), "h%u", i);
        p[i] = prog_new(&l, name, 0);
    }
    for (unsigned i = 0; i < 8; i++) {
        snprintf(name, sizeof(name), "h%u", i);
        for (unsigned k = 0; k < 40; k++)
            for (unsigned j = 0; j < 8; j++) {
                struct frame_spec s = {
                    .src_ip = switch_fixture_ip(&l, name), .dqpn = 1 << 16, .len = LEN};

                snprintf(to, sizeof(to), "h%u", j);
                s.dst_ip = switch_fixture_ip(&l, to);
                if (i != j)
                    prog_send(p[i], ENDPOINT_DATA, switch_fixture_frame(pool, &s));
            }
        net_kick(l.net, switch_fixture_node(&l, name), 0, 0, 0);
    }
    switch_fixture_run(&l, PS_PER_S);
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(p[i]->got, 40 * 7);
        prog_free(p[i]);
    }
    assert_int_equal(switch_fixture_all_drops(&l), 0);
    switch_fixture_close(&l);
}

static void notifications_have_a_class_that_waits_behind_no_data(void **state)
{
    struct frame_spec s = {.src_ip = 0x0a000001, .dst_ip = 0x0a000002, .dqpn = 7, .len = 16};
    struct rte_mbuf *m = switch_fixture_frame(pool, &s);
    struct packet_class k;

    (void)state;
    classify_frame(m, &k);
    assert_int_equal(k.kind, PACKET_ROCE);
    assert_int_equal(k.cls, FRAME_LOSSLESS);
    rte_pktmbuf_mtod(m, uint8_t *)[42] = ROCE_OP_CNP_PACKET;
    classify_frame(m, &k);
    assert_int_equal(k.kind, PACKET_ROCE);
    assert_int_equal(k.cls, FRAME_CONTROL);
    rte_pktmbuf_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_buffer_drops_and_counts_without_pfc),
        cmocka_unit_test(pfc_loses_nothing_and_keeps_the_bottleneck_full),
        cmocka_unit_test(victims_of_a_pause_go_on_when_it_ends),
        cmocka_unit_test(pauses_are_real_frames_repeated_before_they_run_out),
        cmocka_unit_test(notifications_have_a_class_that_waits_behind_no_data),
        cmocka_unit_test(all_to_all_through_small_buffers_ends),
    };

    test_eal_init();
    pool = test_pool(16383);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
