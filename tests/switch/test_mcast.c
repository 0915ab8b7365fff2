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
#include "tests/support/switch_fixture.h"

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

/* A plain list with the contents that the table must have. */
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

/* The table is as full as it can be, half of its buckets, so that groups of one bucket, and of
 * those behind it, come and go in every order, even around the table's end. */
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

        /* First the table fills, then half of the operations are leaves. */
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
    assert_int_equal(switch_fixture_ip_checksum(p + 14, 24), 0);
    assert_int_equal(switch_fixture_ip_checksum(p + 38, 8), 0);
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
    sum = switch_fixture_ip_checksum(b + 34, n + n % 2); /* behind it are zeros */
    b[36] = (uint8_t)(sum >> 8), b[37] = (uint8_t)sum;
    return switch_fixture_bytes(pool, b, 34 + n);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memberships_are_bits_of_ports_and_the_table_is_bounded),
        cmocka_unit_test(whatever_joins_and_leaves_the_table_says_what_a_plain_list_does),
        cmocka_unit_test(our_own_reports_read_back),
        cmocka_unit_test(version_3_records_are_read_one_by_one),
        cmocka_unit_test(malformed_igmp_is_refused),
        cmocka_unit_test(a_longer_report_is_read_whatever_its_length),
    };

    test_eal_init();
    pool = test_pool(2047);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
