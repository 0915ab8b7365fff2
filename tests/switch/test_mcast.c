/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <rte_mempool.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "roce/wire.h"
#include "switch/mcast.h"
#include "tests/support/eal.h"
#include "tests/support/lab.h"

#define GROUP 0xe1010203u /* 225.1.2.3 */
#define LEN   4096

static struct rte_mempool *pool;

/* ---- the table ---- */

static void count_group(void *ctx, uint32_t group)
{
    (void)group;
    ++*(unsigned *)ctx;
}

static void memberships_are_bits_of_ports_and_the_table_is_bounded(void **state)
{
    struct mcast *mc;
    unsigned n = 0;

    (void)state;
    assert_int_equal(mcast_create(&mc, 100), 0);
    assert_null(mcast_members(mc, GROUP));
    assert_false(mcast_others(mc, GROUP, 3) || mcast_leave(mc, GROUP, 3));
    mcast_forget_port(mc, 3, count_group, &n);
    mcast_each(mc, count_group, &n);
    assert_int_equal(n, 0);
    assert_int_equal(mcast_join(mc, GROUP, 99), 1);
    assert_int_equal(mcast_join(mc, GROUP, 99), 0);
    assert_int_equal(mcast_join(mc, GROUP, 3), 1);
    assert_int_equal(mcast_members(mc, GROUP)[0], 1 << 3);
    assert_int_equal(mcast_members(mc, GROUP)[1], 1ull << 35);
    assert_true(mcast_others(mc, GROUP, 99) && mcast_others(mc, GROUP, 50));
    assert_true(mcast_leave(mc, GROUP, 3));
    assert_false(mcast_leave(mc, GROUP, 3));
    assert_false(mcast_others(mc, GROUP, 99));
    assert_true(mcast_leave(mc, GROUP, 99));
    assert_null(mcast_members(mc, GROUP));
    /* Groups that come and go do not use it up. */
    for (uint32_t i = 0; i < 10 * MCAST_MAX_GROUPS; i++) {
        assert_int_equal(mcast_join(mc, 0xe2000000 + i, 1), 1);
        assert_true(mcast_leave(mc, 0xe2000000 + i, 1));
    }
    for (uint32_t i = 0; i < MCAST_MAX_GROUPS; i++)
        assert_int_equal(mcast_join(mc, 0xe3000000 + i * 977, 5), 1);
    assert_int_equal(mcast_join(mc, GROUP, 5), -ENOSPC);
    for (uint32_t i = 0; i < MCAST_MAX_GROUPS; i++)
        assert_int_equal(mcast_members(mc, 0xe3000000 + i * 977)[0], 1 << 5);
    mcast_each(mc, count_group, &n);
    assert_int_equal(n, MCAST_MAX_GROUPS);
    mcast_forget_port(mc, 5, count_group, &n);
    assert_int_equal(n, 2 * MCAST_MAX_GROUPS);
    mcast_each(mc, count_group, &n);
    assert_int_equal(n, 2 * MCAST_MAX_GROUPS);
    mcast_destroy(mc);
}

#define PORTS 70u

/* A plain list of what the table must say. */
struct plain {
    uint32_t group[MCAST_MAX_GROUPS];
    bool joined[MCAST_MAX_GROUPS][PORTS];
};

static void left_one(void *ctx, uint32_t group)
{
    struct plain *l = ctx;

    for (unsigned g = 0; g < MCAST_MAX_GROUPS; g++)
        if (l->group[g] == group)
            return;
    fail_msg("%08x was never joined", group);
}

static void expect_the_same(const struct mcast *mc, struct plain *l)
{
    unsigned groups = 0, want = 0;

    for (unsigned g = 0; g < MCAST_MAX_GROUPS; g++) {
        const uint64_t *bits = mcast_members(mc, l->group[g]);
        unsigned n = 0;

        for (unsigned p = 0; p < PORTS; p++) {
            bool is = bits && bits[p / 64] >> (p & 63) & 1;

            if (is != l->joined[g][p])
                fail_msg("group %08x, port %u: %d", l->group[g], p, is);
            n += is;
        }
        assert_true(!bits == !n);
        want += n > 0;
        assert_int_equal(mcast_others(mc, l->group[g], 5), n > l->joined[g][5]);
    }
    mcast_each(mc, count_group, &groups);
    assert_int_equal(groups, want);
}

/* As full as it can be, half of its buckets, so that groups of one bucket, and of those behind it,
 * come and go in every order, also around the end of the table. */
static void whatever_joins_and_leaves_the_table_says_what_a_plain_list_does(void **state)
{
    static struct plain l;
    uint64_t rng = 7;
    struct mcast *mc;

    (void)state;
    assert_int_equal(mcast_create(&mc, PORTS), 0);
    for (unsigned g = 0; g < MCAST_MAX_GROUPS; g++) {
        l.group[g] = 0xe1000000 + (uint32_t)(random_next(&rng) % 0xffffff);
        for (unsigned k = 0; k < g; k++)
            if (l.group[k] == l.group[g])
                l.group[g]++, k = 0;
    }
    for (unsigned i = 0; i < 40000; i++) {
        unsigned g = random_next(&rng) % MCAST_MAX_GROUPS, p = random_next(&rng) % 2 ? 5 : 69;

        /* First it fills, then half come and half go. */
        if (i < 3000 || random_next(&rng) % 2)
            assert_int_equal(mcast_join(mc, l.group[g], (uint16_t)p), !l.joined[g][p]);
        else if (mcast_leave(mc, l.group[g], (uint16_t)p) != l.joined[g][p])
            fail_msg("group %08x, port %u: left, %d", l.group[g], p, !l.joined[g][p]);
        else
            p += PORTS;
        l.joined[g][p % PORTS] = p < PORTS;
        if (i % 16000 == 15999) {
            mcast_forget_port(mc, 69, left_one, &l);
            for (unsigned k = 0; k < MCAST_MAX_GROUPS; k++)
                l.joined[k][69] = false;
        }
        if (i % 128 == 0)
            expect_the_same(mc, &l);
    }
    expect_the_same(mc, &l);
    mcast_destroy(mc);
}

/* ---- IGMP ---- */

struct heard {
    unsigned n;
    enum igmp_what what[8];
    uint32_t group[8];
};

static void hear(void *ctx, enum igmp_what what, uint32_t group)
{
    struct heard *h = ctx;

    h->what[h->n & 7] = what;
    h->group[h->n++ & 7] = group;
}

static int parse(struct rte_mbuf *m, struct heard *h)
{
    struct packet_class k;

    memset(h, 0, sizeof(*h));
    classify_frame(m, &k);
    return k.kind == PACKET_IGMP ? igmp_parse(m, &k, hear, h) : -ENOENT;
}

static void our_own_reports_read_back(void **state)
{
    static const uint8_t mac[6] = {2, 0x54, 10, 0, 0, 1};
    struct rte_mbuf *m = igmp_build(pool, IGMP_JOIN, GROUP, 0x0a000001, mac);
    const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
    static const uint8_t join_mac[6] = {1, 0, 0x5e, 1, 2, 3}, routers[6] = {1, 0, 0x5e, 0, 0, 2};
    struct heard h;

    (void)state;
    assert_memory_equal(p, join_mac, 6);
    assert_int_equal(lab_ip_checksum(p + 14, 24), 0);
    assert_int_equal(lab_ip_checksum(p + 38, 8), 0);
    assert_int_equal(parse(m, &h), 0);
    assert_int_equal(h.n, 1);
    assert_int_equal(h.what[0], IGMP_JOIN);
    assert_int_equal(h.group[0], GROUP);
    rte_pktmbuf_free(m);
    m = igmp_build(pool, IGMP_LEAVE, GROUP, 0x0a000001, mac);
    assert_memory_equal(rte_pktmbuf_mtod(m, void *), routers, 6);
    assert_int_equal(parse(m, &h), 0);
    assert_int_equal(h.what[0], IGMP_LEAVE);
    assert_int_equal(h.group[0], GROUP);
    rte_pktmbuf_free(m);
}

/* An IGMP message in IPv4 without options, checksum filled in. */
static struct rte_mbuf *igmp(const uint8_t *msg, unsigned n)
{
    uint8_t b[200] = {1,        0, 0x5e,      0, 0, 22,   2,   0x54, 10,
                      0,        0, 1,         8, 0, 0x45, 0,   0,    (uint8_t)(20 + n),
                      [22] = 1, 2, [26] = 10, 0, 0, 1,    224, 0,    0,
                      22};
    uint16_t sum;

    memcpy(b + 34, msg, n);
    b[36] = b[37] = 0;
    sum = lab_ip_checksum(b + 34, n + n % 2); /* behind it are zeros */
    b[36] = (uint8_t)(sum >> 8), b[37] = (uint8_t)sum;
    return lab_bytes(pool, b, 34 + n);
}

static void version_3_records_are_read_one_by_one(void **state)
{
    static const uint8_t v3[] = {0x22, 0, 0, 0, 0,   0, 0, 5, 4, 0, 0, 0,
                                 225,  1, 2, 3,               /* to exclude {}: join */
                                 3,    0, 0, 0, 225, 1, 2, 4, /* to include {}: leave */
                                 1,    1, 0, 1, 225, 1, 2, 5, 1, 2, 3, 4,
                                 9,    9, 9, 9, /* include {1.2.3.4}: join; a word of aux data */
                                 6,    0, 0, 1, 225, 1, 2, 6, 1, 2, 3, 4,  /* block: nothing */
                                 5,    0, 0, 1, 225, 1, 2, 7, 1, 2, 3, 4}; /* allow: join */
    struct rte_mbuf *m = igmp(v3, sizeof(v3));
    struct heard h;

    (void)state;
    assert_int_equal(parse(m, &h), 0);
    assert_int_equal(h.n, 4);
    assert_true(h.what[0] == IGMP_JOIN && h.group[0] == GROUP);
    assert_true(h.what[1] == IGMP_LEAVE && h.group[1] == GROUP + 1);
    assert_true(h.what[2] == IGMP_JOIN && h.group[2] == GROUP + 2);
    assert_true(h.what[3] == IGMP_JOIN && h.group[3] == GROUP + 4);
    rte_pktmbuf_free(m);
}

static void malformed_igmp_is_refused(void **state)
{
    static const struct {
        const char *what;
        unsigned n;
        uint8_t b[24];
    } bad[] = {
        {"short", 7, {0x16, 0, 0, 0, 225, 1, 2}},
        {"no group address", 8, {0x16, 0, 0, 0, 10, 1, 2, 3}},
        {"unknown type", 8, {0x99, 0, 0, 0, 225, 1, 2, 3}},
        {"records missing", 8, {0x22, 0, 0, 0, 0, 0, 0, 1}},
        {"record cut short", 12, {0x22, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0}},
        {"sources missing", 16, {0x22, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0xff, 0xff, 225, 1, 2, 3}},
    };
    struct heard h;

    (void)state;
    for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct rte_mbuf *m = igmp(bad[i].b, bad[i].n);

        if (parse(m, &h) != -EINVAL)
            fail_msg("%s was accepted", bad[i].what);
        rte_pktmbuf_free(m);
    }
    {
        static const uint8_t v2[8] = {0x16, 0, 0, 0, 225, 1, 2, 3};
        struct rte_mbuf *m = igmp(v2, 8);

        assert_int_equal(parse(m, &h), 0);
        rte_pktmbuf_mtod(m, uint8_t *)[36] ^= 1;
        assert_int_equal(parse(m, &h), -EINVAL); /* checksum */
        rte_pktmbuf_free(m);
    }
}

/* RFC 2236, 2.5: longer messages are read as the shortest, with all of it in the checksum. */
static void a_longer_report_is_read_whatever_its_length(void **state)
{
    static const uint8_t v2[] = {0x16, 0, 0, 0, 225, 1, 2, 3, 0xff, 0x12, 0xfe};
    struct heard h;

    (void)state;
    for (unsigned n = 8; n <= sizeof(v2); n++) {
        struct rte_mbuf *m = igmp(v2, n);

        assert_int_equal(parse(m, &h), 0);
        assert_true(h.n == 1 && h.what[0] == IGMP_JOIN && h.group[0] == GROUP);
        rte_pktmbuf_mtod(m, uint8_t *)[34 + n - 1] ^= 1;
        assert_int_equal(parse(m, &h), -EINVAL);
        rte_pktmbuf_free(m);
    }
}

/* ---- in a fabric ---- */

static struct rte_mbuf *report(struct lab *l, const char *host, enum igmp_what what)
{
    uint8_t mac[6];

    roce_mac_of_ip(lab_ip(l, host), mac);
    return igmp_build(pool, what, GROUP, lab_ip(l, host), mac);
}

static void say(struct lab *l, struct prog *p, const char *host, unsigned slot, enum igmp_what what)
{
    prog_send(p, ENDPOINT_DATA, report(l, host, what));
    net_kick(l->net, lab_node(l, host), 0, slot, net_now(l->net));
    lab_run(l, net_now(l->net) + PS_PER_MS);
}

static void send_group(struct lab *l, struct prog *p, const char *host, uint32_t group, unsigned n)
{
    struct frame_spec s = {
        .src_ip = lab_ip(l, host),
        .dst_ip = group,
        .dqpn = ROCE_MCAST_QPN,
        .len = LEN,
        .dst_mac = {1, 0, 0x5e, group >> 16 & 0x7f, group >> 8 & 0xff, group & 0xff}};

    for (unsigned i = 0; i < n; i++)
        prog_send(p, ENDPOINT_DATA, lab_frame(pool, &s));
    net_kick(l->net, lab_node(l, host), 0, 0, net_now(l->net));
    lab_run(l, net_now(l->net) + PS_PER_MS);
}

struct copies {
    unsigned n[256];
};

static void count_copies(void *ctx, unsigned dirlink, struct rte_mbuf *m, int64_t now)
{
    (void)m, (void)now;
    ((struct copies *)ctx)->n[dirlink]++;
}

static void a_group_gets_one_copy_on_each_link_of_the_tree_by_reference(void **state)
{
    struct copies u = {0};
    struct prog *p[16];
    const void *payload = NULL;
    unsigned held, links = 0;
    char name[8];
    struct lab l;

    (void)state;
    /* Loops everywhere: three leaves, three spines, two cables each. */
    lab_open(&l, pool,
             "mtu = 4096; leaf_spine = { leaves = 3; spines = 3; hosts_per_leaf = 4; host_link "
             "= " LAB_LINK
             "; spine_link = { rate = \"400Gb/s\"; latency = \"300ns\"; cables = 2; }; };");
    for (unsigned i = 0; i < 12; i++) {
        snprintf(name, sizeof(name), "h%u", i);
        p[i] = prog_new(&l, name, 0);
        p[i]->keep = true;
        if (i % 4 < 2)
            say(&l, p[i], name, 0, IGMP_JOIN);
    }
    assert_int_equal(rte_mempool_avail_count(pool), l.pool_full); /* no report goes round */
    assert_int_equal(lab_all_drops(&l), 0);
    net_tap(l.net, count_copies, &u);
    send_group(&l, p[11], "h11", GROUP, 1); /* not a member */
    for (unsigned i = 0; i < 12; i++) {
        assert_int_equal(p[i]->n_rx, i % 4 < 2);
        if (i % 4 < 2) {
            payload = payload ? payload : rte_pktmbuf_mtod(p[i]->rx[0], void *);
            assert_ptr_equal(rte_pktmbuf_mtod(p[i]->rx[0], void *), payload);
            assert_int_equal(p[i]->rx[0]->pkt_len, 54 + LEN + 4);
        }
    }
    /* Six members, one buffer: at most an mbuf header each beside it. */
    held = l.pool_full - rte_mempool_avail_count(pool);
    assert_in_range(held, 6, 7);
    for (unsigned i = 0; i < 2u * l.f->n_links; i++) {
        assert_true(u.n[i] <= 1);
        links += u.n[i];
    }
    /* From h11 up, to a spine or three on the way, to each other leaf, to six hosts. */
    assert_in_range(links, 1 + 3 + 6, 1 + 4 + 6);
    for (unsigned i = 0; i < 12; i++)
        prog_free(p[i]);
    lab_close(&l);
}

static void groups_without_members_are_dropped_and_those_who_leave_hear_no_more(void **state)
{
    struct prog *a, *b, *c;
    struct copies u = {0};
    struct lab l;
    unsigned up;

    (void)state;
    lab_open(&l, pool,
             "mtu = 4096; leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 2; host_link "
             "= " LAB_LINK "; spine_link = " LAB_LINK "; };");
    a = prog_new(&l, "h0", 0);
    b = prog_new(&l, "h2", 0);
    c = prog_new(&l, "h3", 0);
    send_group(&l, a, "h0", GROUP, 1);
    assert_int_equal(lab_drops(&l, DROP_UNKNOWN_GROUP), 1);
    say(&l, b, "h2", 0, IGMP_JOIN);
    say(&l, c, "h3", 0, IGMP_JOIN);
    send_group(&l, a, "h0", GROUP, 1);
    assert_int_equal(b->got, 1);
    assert_int_equal(c->got, 1);
    say(&l, b, "h2", 0, IGMP_LEAVE); /* h3 stays: its leaf must not say that all are gone */
    send_group(&l, a, "h0", GROUP, 1);
    assert_int_equal(b->got, 1);
    assert_int_equal(c->got, 2);
    say(&l, c, "h3", 0, IGMP_LEAVE);
    net_tap(l.net, count_copies, &u);
    send_group(&l, a, "h0", GROUP, 1);
    assert_int_equal(c->got, 2);
    up = 0;
    for (unsigned i = 0; i < 2u * l.f->n_links; i++)
        up += u.n[i];
    assert_int_equal(up, 1); /* no further than the first switch */
    assert_int_equal(lab_drops(&l, DROP_UNKNOWN_GROUP), 2);
    prog_free(a), prog_free(b), prog_free(c);
    lab_close(&l);
}

static void processes_of_a_host_are_members_each_for_itself(void **state)
{
    struct prog *a, *b, *src;
    struct lab l;

    (void)state;
    lab_open(&l, pool, "mtu = 4096; single_switch = { hosts = 2; host_link = " LAB_LINK "; };");
    a = prog_new(&l, "h0", 0);
    b = prog_new(&l, "h0", 1);
    src = prog_new(&l, "h1", 0);
    say(&l, a, "h0", 0, IGMP_JOIN);
    say(&l, b, "h0", 1, IGMP_JOIN);
    send_group(&l, src, "h1", GROUP, 1);
    assert_true(a->got == 1 && b->got == 1);
    /* The sender's own host hears it too, by the loop. */
    send_group(&l, a, "h0", GROUP, 1);
    assert_true(a->got == 2 && b->got == 2 && src->got == 0);
    say(&l, a, "h0", 0, IGMP_LEAVE);
    send_group(&l, src, "h1", GROUP, 1);
    assert_true(a->got == 2 && b->got == 3);
    net_detach(l.net, lab_node(&l, "h0"), 0, 1, net_now(l.net)); /* an end is a leave */
    lab_run(&l, net_now(l.net) + PS_PER_MS);
    send_group(&l, src, "h1", GROUP, 1);
    assert_int_equal(lab_drops(&l, DROP_UNKNOWN_GROUP), 1);
    prog_free(a), prog_free(b), prog_free(src);
    lab_close(&l);
}

static void
a_port_that_goes_down_takes_its_memberships_and_brings_them_back_over_bridges(void **state)
{
    struct prog *a, *b;
    struct lab l;
    uint16_t leaf1, spine, port = 0, sport;

    (void)state;
    lab_open(&l, pool,
             "mtu = 4096; leaf_spine = { leaves = 2; spines = 1; hosts_per_leaf = 1; host_link "
             "= " LAB_LINK "; spine_link = " LAB_LINK "; };");
    a = prog_new(&l, "h0", 0);
    b = prog_new(&l, "h1", 0);
    say(&l, b, "h1", 0, IGMP_JOIN);
    leaf1 = lab_node(&l, "leaf1"), spine = lab_node(&l, "spine0");
    while (l.f->nodes[leaf1].ports[port].peer_node != spine)
        port++;
    sport = l.f->nodes[leaf1].ports[port].peer_port;
    net_port_state(l.net, leaf1, port, false, net_now(l.net));
    net_port_state(l.net, spine, sport, false, net_now(l.net));
    lab_run(&l, net_now(l.net) + PS_PER_MS);
    send_group(&l, a, "h0", GROUP, 1);
    assert_int_equal(b->got, 0);
    assert_int_equal(lab_drops(&l, DROP_UNKNOWN_GROUP), 1); /* leaf0 heard of it */
    net_port_state(l.net, spine, sport, true, net_now(l.net));
    net_port_state(l.net, leaf1, port, true, net_now(l.net));
    lab_run(&l, net_now(l.net) + PS_PER_MS);
    send_group(&l, a, "h0", GROUP, 1);
    assert_int_equal(b->got, 1);
    prog_free(a), prog_free(b);
    lab_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memberships_are_bits_of_ports_and_the_table_is_bounded),
        cmocka_unit_test(whatever_joins_and_leaves_the_table_says_what_a_plain_list_does),
        cmocka_unit_test(our_own_reports_read_back),
        cmocka_unit_test(version_3_records_are_read_one_by_one),
        cmocka_unit_test(malformed_igmp_is_refused),
        cmocka_unit_test(a_longer_report_is_read_whatever_its_length),
        cmocka_unit_test(a_group_gets_one_copy_on_each_link_of_the_tree_by_reference),
        cmocka_unit_test(groups_without_members_are_dropped_and_those_who_leave_hear_no_more),
        cmocka_unit_test(processes_of_a_host_are_members_each_for_itself),
        cmocka_unit_test(
            a_port_that_goes_down_takes_its_memberships_and_brings_them_back_over_bridges),
    };

    test_eal_init();
    pool = test_pool(2047);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
