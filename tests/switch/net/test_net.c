/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <rte_mempool.h>
#include <stdio.h>
#include <string.h>

#include "base/heap.h"
#include "switch/sw.h"
#include "tests/support/eal.h"
#include "tests/support/switch_fixture.h"

#define LEN 1024
#define CONF                                                                                       \
    "mtu = 1024; ecmp = \"hash\"; leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 2; "     \
    "host_link = " SWITCH_FIXTURE_LINK "; spine_link = " SWITCH_FIXTURE_LINK "; };"
#define FAULTY                                                                                     \
    "mtu = 1024; ecmp = \"hash\"; link_defaults = { loss = 0.02; dup = 0.02; reorder = 0.02; "     \
    "corrupt = 0.02; jitter = \"50ns\"; };"                                                        \
    "leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 2; host_link = " SWITCH_FIXTURE_LINK  \
    "; spine_link = " SWITCH_FIXTURE_LINK "; };"

static struct rte_mempool *pool;

static void a_heap_gives_deadlines_by_time_and_index(void **state)
{
    uint64_t x = 12345;
    int64_t t[50];
    struct heap h;

    (void)state;
    assert_int_equal(heap_init(&h, 50), 0);
    for (int i = 0; i < 50; i++)
        t[i] = INT64_MAX;
    for (int round = 0; round < 20000; round++) {
        uint32_t i, best = 0;

        x = x * 6364136223846793005u + 1442695040888963407u;
        i = (uint32_t)(x >> 33) % 50;
        t[i] = (int64_t)(x >> 60); /* many ties */
        heap_set(&h, i, t[i]);
        for (uint32_t j = 1; j < 50; j++)
            if (t[j] < t[best])
                best = j;
        assert_int_equal(heap_top(&h), best);
        assert_int_equal(heap_time(&h), t[best]);
    }
    heap_fini(&h);
}

/* ---- traces ---- */

struct trace {
    const struct fabric *f;
    uint64_t hash, n, events, got;
    uint64_t from[16];   /* of what each host has sent, and when */
    int64_t last, clock; /* clock: of the steps */
    bool backwards, early;
};

static void trace(void *ctx, unsigned dirlink, struct rte_mbuf *m, int64_t now)
{
    struct trace *t = ctx;
    uint64_t h = t->hash ^ dirlink ^ (uint64_t)now * 31;
    const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
    const struct fab_link *l = &t->f->links[dirlink / 2];
    uint16_t from = dirlink & 1 ? l->b : l->a;

    for (uint32_t i = 0; i < m->data_len; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    t->hash = h;
    if (t->f->nodes[from].kind == FAB_HOST)
        t->from[from] = (t->from[from] ^ (uint64_t)now) * 0x100000001b3u;
    t->n++;
    t->early |= t->clock && now > t->clock;
    t->backwards |= now < t->last;
    t->last = now;
}

static void all_to_next(struct switch_fixture *l, struct prog **p, unsigned n)
{
    for (unsigned i = 0; i < 4; i++) {
        char a[8], b[8];

        snprintf(a, sizeof(a), "h%u", i);
        snprintf(b, sizeof(b), "h%u", (i + 1) % 4);
        p[i] = prog_new(l, a, 0);
        prog_stream(l, p[i], a, b, n, LEN);
    }
}

/* step_ps 0: from event to event; else the clock advances in such steps, as a real one does. */
static struct trace history(uint64_t seed, const char *conf, int64_t step_ps, int64_t ahead_ps)
{
    struct net_cfg cfg = {.seed = seed};
    struct trace t = {0};
    struct prog *p[4];
    struct switch_fixture l;

    switch_fixture_open_cfg(&l, pool, conf, &cfg);
    net_set_ahead(l.net, ahead_ps);
    t.f = l.f;
    net_tap(l.net, trace, &t);
    all_to_next(&l, p, 500);
    if (step_ps == 0)
        switch_fixture_run(&l, PS_PER_S);
    for (int64_t now = 0; step_ps && net_next(l.net) != PS_NEVER; now += step_ps)
        net_advance(l.net, t.clock = now);
    t.events = net_events(l.net);
    for (unsigned i = 0; i < 4; i++) {
        t.got += p[i]->got;
        prog_free(p[i]);
    }
    switch_fixture_close(&l);
    return t;
}

static void one_seed_gives_identical_traces_and_another_another(void **state)
{
    struct trace a = history(5, FAULTY, 0, 0), b = history(5, FAULTY, 0, 0),
                 c = history(6, FAULTY, 0, 0);

    (void)state;
    assert_true(a.n > 4 * 500 * 2);
    assert_int_equal(a.n, b.n);
    assert_true(a.hash == b.hash);
    assert_true(a.hash != c.hash);
    assert_false(a.backwards);
}

static void a_late_clock_changes_nothing_inside_a_process(void **state)
{
    struct trace a = history(5, FAULTY, 0, 0), b = history(5, FAULTY, 7 * PS_PER_US + 13, 0);

    (void)state;
    assert_int_equal(a.n, b.n);
    assert_true(a.hash == b.hash);
}

static void a_clock_that_is_not_late_gets_nothing_ahead(void **state)
{
    struct trace a = history(5, FAULTY, 0, 0), b = history(5, FAULTY, 0, PS_PER_US);

    (void)state;
    assert_true(a.hash == b.hash);
    assert_true(a.events == b.events);
}

/* Frames of a link keep their times: the links from hosts are nearly always busy, and frames leave
 * them as before. */
static void a_late_clock_may_hand_on_in_bursts(void **state)
{
    struct trace a = history(5, CONF, 7 * PS_PER_US + 13, 0);
    struct trace b = history(5, CONF, 7 * PS_PER_US + 13, PS_PER_US);

    (void)state;
    assert_int_equal(a.got, 4 * 500);
    assert_int_equal(b.got, 4 * 500);
    assert_int_equal(a.n, b.n);
    assert_true(b.events < a.events / 4);
    assert_memory_equal(a.from, b.from, sizeof(a.from));
    assert_false(a.backwards);
    assert_false(b.early);
    assert_true(b.last <= a.last && b.last >= a.last - 4 * (int64_t)PS_PER_US);
}

/* ---- two processes ---- */

struct link_ends {
    struct net *to; /* the net with the other end */
    const struct fabric *f;
    unsigned n;
};

static void carry(void *ctx, uint16_t node, uint16_t port, struct rte_mbuf **m, uint16_t n,
                  int64_t due)
{
    struct link_ends *c = ctx;
    const struct fab_port *p = &c->f->nodes[node].ports[port];

    for (uint16_t i = 0; i < n; i++) {
        frame_meta(m[i])->cls = FRAME_LOSSY; /* meta does not cross */
        frame_meta(m[i])->in_port = 77;
    }
    c->n += n;
    net_input(c->to, p->peer_node, p->peer_port, m, n, due);
}

static void a_fabric_split_over_two_nets_carries_the_same(void **state)
{
    struct link_ends ab = {0}, ba = {0};
    struct net *a, *b;
    struct fabric *f = fabric_load_string(CONF, "x", NULL);
    struct prog src = {.take = -1, .timer_ps = PS_NEVER}, dst = {.take = -1, .timer_ps = PS_NEVER};
    struct endpoint es = prog_endpoint(&src), ed = prog_endpoint(&dst);
    bool mine[2][16] = {0};
    struct switch_fixture l = {.f = f};
    unsigned full = rte_mempool_avail_count(pool);

    (void)state;
    assert_non_null(f);
    for (uint16_t i = 0; i < f->n_nodes; i++) { /* leaf0 and its hosts here, all else there */
        bool here = !strcmp(f->nodes[i].name, "leaf0") || !strcmp(f->nodes[i].name, "h0") ||
                    !strcmp(f->nodes[i].name, "h1");

        mine[!here][i] = true;
    }
    assert_int_equal(
        net_create(&a,
                   &(struct net_cfg){
                       .fab = f, .mine = mine[0], .pool = pool, .deliver = carry, .ctx = &ab}),
        0);
    assert_int_equal(
        net_create(&b,
                   &(struct net_cfg){
                       .fab = f, .mine = mine[1], .pool = pool, .deliver = carry, .ctx = &ba}),
        0);
    ab.to = b, ba.to = a, ab.f = ba.f = f;
    assert_null(net_node(a, switch_fixture_node(&l, "leaf1")));
    assert_int_equal(net_attach(a, switch_fixture_node(&l, "h0"), 0, 0, &es), 0);
    assert_int_equal(net_attach(b, switch_fixture_node(&l, "h3"), 0, 0, &ed), 0);
    src.pool = pool, src.src_ip = switch_fixture_ip(&l, "h0"),
    src.dst_ip = switch_fixture_ip(&l, "h3"), src.dqpn = 1 << 16, src.len = LEN;
    src.endless = 300;
    src.mark = 1;
    net_kick(a, switch_fixture_node(&l, "h0"), 0, 0, 0);
    for (;;) {
        int64_t ta = net_next(a), tb = net_next(b);

        if (ta == PS_NEVER && tb == PS_NEVER)
            break;
        if (ta <= tb)
            net_advance(a, ta);
        else
            net_advance(b, tb);
    }
    assert_int_equal(dst.got, 300);
    assert_int_equal(ab.n, 300);
    assert_int_equal(dst.first_ps, 4 * ((54 + LEN + 4 + 24) * 20ll + 300 * PS_PER_NS));
    assert_int_equal(dst.last_ps - dst.first_ps, 299 * (54 + LEN + 4 + 24) * 20ll);
    net_destroy(a);
    net_destroy(b);
    fabric_free(f);
    assert_int_equal(rte_mempool_avail_count(pool), full);
}

static void late(void *ctx, int64_t due, unsigned n)
{
    (void)due;
    *(unsigned *)ctx += n;
}

static void every_hand_off_is_reported_for_lateness(void **state)
{
    unsigned n = 0, moved;
    struct net_cfg cfg = {.late = late, .ctx = &n};
    struct prog *p[4];
    struct switch_fixture l;

    (void)state;
    switch_fixture_open_cfg(&l, pool, CONF, &cfg);
    all_to_next(&l, p, 10);
    moved = net_advance(l.net, PS_PER_MS);
    assert_int_equal(moved, n);
    assert_int_equal(n, 10 * (2 + 4 + 2 + 4)); /* hops: within a leaf 2, over a spine 4 */
    assert_int_equal(net_now(l.net), PS_PER_MS);
    for (unsigned i = 0; i < 4; i++)
        prog_free(p[i]);
    switch_fixture_close(&l);
}

struct leaving {
    unsigned calls, n, late;
    int64_t due[64], late_due;
};

static void leaves(void *ctx, uint16_t node, uint16_t port, struct rte_mbuf **m, uint16_t n,
                   int64_t due)
{
    struct leaving *l = ctx;

    (void)node;
    (void)port;
    assert_int_equal(due, frame_meta(m[0])->due_ps);
    l->calls++;
    for (uint16_t i = 0; i < n; i++)
        l->due[l->n++] = frame_meta(m[i])->due_ps;
    rte_pktmbuf_free_bulk(m, n);
}

static void leaves_late(void *ctx, int64_t due, unsigned n)
{
    struct leaving *l = ctx;

    l->late_due = due;
    l->late += n;
}

/* A late process hands on all due frames in one burst, each with its own time. */
static void what_leaves_the_process_goes_in_bursts(void **state)
{
    struct fabric *f = fabric_load_string(CONF, "x", NULL);
    struct switch_fixture l = {.f = f};
    struct frame_spec s = {
        .src_ip = switch_fixture_ip(&l, "h0"), .dst_ip = switch_fixture_ip(&l, "h1"), .len = LEN};
    const struct fab_port *from = &f->nodes[switch_fixture_node(&l, "h0")].ports[0];
    struct rte_mbuf *m[NODE_BURST];
    struct leaving out = {0};
    bool mine[16] = {0};
    struct net *n;

    (void)state;
    mine[from->peer_node] = true;
    assert_int_equal(net_create(&n, &(struct net_cfg){.fab = f,
                                                      .mine = mine,
                                                      .pool = pool,
                                                      .deliver = leaves,
                                                      .late = leaves_late,
                                                      .ctx = &out}),
                     0);
    for (unsigned i = 0; i < NODE_BURST; i++)
        m[i] = switch_fixture_frame(pool, &s);
    net_input(n, from->peer_node, from->peer_port, m, NODE_BURST, 0);
    net_advance(n, PS_PER_MS);
    assert_int_equal(out.calls, 1);
    assert_int_equal(out.n, NODE_BURST);
    for (unsigned i = 0; i < NODE_BURST; i++)
        assert_int_equal(out.due[i],
                         (i + 1) * ((54 + LEN + 4 + 24) * 20ll) + (int64_t)(300 * PS_PER_NS));
    assert_int_equal(out.late, NODE_BURST);
    assert_int_equal(out.late_due, out.due[0]);
    net_destroy(n);
    fabric_free(f);
}

/* ---- the endpoint behind a switch ---- */

static struct rte_mbuf *answer(struct prog *p)
{
    struct frame_spec s = {.src_ip = p->src_ip, .dst_ip = p->dst_ip, .dqpn = 1 << 16, .len = LEN};

    return switch_fixture_frame(p->pool, &s);
}

static void a_switch_gives_its_endpoint_what_is_for_it_and_forwards_what_it_says(void **state)
{
    struct prog an = {.take = -1, .timer_ps = PS_NEVER}, *a, *b;
    struct endpoint ep = prog_endpoint(&an);
    struct switch_fixture l;
    uint16_t leaf;

    (void)state;
    switch_fixture_open(&l, pool, CONF);
    leaf = switch_fixture_node(&l, "leaf0");
    assert_int_equal(net_attach(l.net, leaf, 0, 0, &ep), 0);
    a = prog_new(&l, "h0", 0);
    b = prog_new(&l, "h3", 0);
    prog_stream(&l, a, "h0", "leaf0", 50, LEN);
    switch_fixture_run(&l, PS_PER_S);
    assert_int_equal(an.got, 50);
    /* More frames at once than any buffer holds: they leave at the rate of the links, none is
     * lost. */
    an.pool = pool, an.src_ip = switch_fixture_ip(&l, "leaf0"),
    an.dst_ip = switch_fixture_ip(&l, "h3");
    an.shape = answer, an.endless = 5000;
    net_kick(l.net, leaf, 0, 0, net_now(l.net));
    switch_fixture_run(&l, 2 * PS_PER_S);
    assert_int_equal(b->got, 5000);
    assert_int_equal(b->last_ps - b->first_ps, 4999 * (54 + LEN + 4 + 24) * 20ll);
    assert_int_equal(switch_fixture_all_drops(&l), 0);
    an.timer_ps = net_now(l.net) + PS_PER_US;
    net_kick(l.net, leaf, 0, 0, net_now(l.net));
    switch_fixture_run(&l, 2 * PS_PER_S);
    assert_true(an.ticks > 0 && an.timer_ps == PS_NEVER);
    prog_free(a), prog_free(b);
    switch_fixture_close(&l);
}

/* Bursts of any length, also those that fill the switch's batches exactly. */
static void what_an_endpoint_says_to_a_burst_goes_out_at_once(void **state)
{
    static const unsigned lens[] = {1, 31, 32, 33, 63, 64, 65};
    struct prog an = {.take = -1, .timer_ps = PS_NEVER}, *b;
    struct endpoint ep = prog_endpoint(&an);
    struct rte_mbuf *m[65];
    struct frame_spec s;
    struct switch_fixture l;
    uint16_t leaf;

    (void)state;
    switch_fixture_open(&l, pool, CONF);
    leaf = switch_fixture_node(&l, "leaf0");
    assert_int_equal(net_attach(l.net, leaf, 0, 0, &ep), 0);
    b = prog_new(&l, "h3", 0);
    an.pool = pool, an.src_ip = switch_fixture_ip(&l, "leaf0"),
    an.dst_ip = switch_fixture_ip(&l, "h3");
    s = (struct frame_spec){.src_ip = switch_fixture_ip(&l, "h0"), .dst_ip = an.src_ip, .len = LEN};
    for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        for (unsigned k = 0; k < lens[i]; k++)
            m[k] = switch_fixture_frame(pool, &s);
        prog_send(&an, ENDPOINT_DATA, answer(&an));
        net_input(l.net, leaf, 0, m, (uint16_t)lens[i], net_now(l.net));
        switch_fixture_run(&l, PS_PER_S);
        assert_int_equal(b->got, i + 1);
    }
    prog_free(b);
    switch_fixture_close(&l);
}

static void a_port_that_is_down_carries_nothing_until_it_is_up(void **state)
{
    struct prog *p[4];
    struct switch_fixture l;

    (void)state;
    switch_fixture_open(&l, pool, CONF);
    net_port_state(l.net, switch_fixture_node(&l, "h0"), 0, false, 0);
    all_to_next(&l, p, 10);
    switch_fixture_run(&l, PS_PER_S);
    assert_int_equal(p[1]->got, 0);
    assert_int_equal(p[2]->got, 10);
    net_port_state(l.net, switch_fixture_node(&l, "h0"), 0, true, net_now(l.net));
    prog_stream(&l, p[0], "h0", "h1", 10, LEN);
    switch_fixture_run(&l, 2 * PS_PER_S);
    assert_int_equal(p[1]->got, 10);
    for (unsigned i = 0; i < 4; i++)
        prog_free(p[i]);
    switch_fixture_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_heap_gives_deadlines_by_time_and_index),
        cmocka_unit_test(one_seed_gives_identical_traces_and_another_another),
        cmocka_unit_test(a_late_clock_changes_nothing_inside_a_process),
        cmocka_unit_test(a_clock_that_is_not_late_gets_nothing_ahead),
        cmocka_unit_test(a_late_clock_may_hand_on_in_bursts),
        cmocka_unit_test(a_fabric_split_over_two_nets_carries_the_same),
        cmocka_unit_test(every_hand_off_is_reported_for_lateness),
        cmocka_unit_test(what_leaves_the_process_goes_in_bursts),
        cmocka_unit_test(a_switch_gives_its_endpoint_what_is_for_it_and_forwards_what_it_says),
        cmocka_unit_test(what_an_endpoint_says_to_a_burst_goes_out_at_once),
        cmocka_unit_test(a_port_that_is_down_carries_nothing_until_it_is_up),
    };

    test_eal_init();
    pool = test_pool(16383);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
