/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses: which GIDs mean which host or group, which are refused and how, and handles of them. */
#include "host/hca/hca_priv.h"
#include "tests/host/hca/pair.h"

#include <endian.h>

#define LEN(a)     (sizeof(a) / sizeof((a)[0]))
#define IP_OUT     0x0a000009u
#define IP_NOWHERE 0x0a000063u

static struct pair p;
static char said[512];

static bool foreign(void *ctx, uint32_t ip)
{
    (void)ctx;
    return ip == IP_OUT || ip >> 28 == 0xe; /* it is not asked about groups */
}

static bool nowhere(void *ctx, uint32_t ip)
{
    (void)ctx;
    return ip == IP_NOWHERE || ip >> 28 == 0xe;
}

static void say(void *ctx, const char *what, const char *text)
{
    (void)ctx, (void)what;
    snprintf(said, sizeof(said), "%s", text);
}

static void begin(void)
{
    const struct hca_driver drv = {.foreign = foreign, .nowhere = nowhere, .say = say};

    *said = '\0';
    pair_open_driven(&p, &drv);
}

/* ---- addresses ---- */

static const struct {
    uint8_t gid[16];
    uint8_t index, port;
    int error; /* 0: it is reached */
    uint8_t mac[6];
} addresses[] = {
    /* IPv4-mapped: the host's MAC follows */
    {{[10] = 0xff, 0xff, 10, 0, 0, 2}, 0, 1, 0, {2, 0x54, 10, 0, 0, 2}},
    {{[10] = 0xff, 0xff, 10, 0, 0, 2}, 0, 0, 0, {2, 0x54, 10, 0, 0, 2}}, /* any port */
    {{[10] = 0xff, 0xff, 10, 0, 0, 2}, 0, 2, EINVAL, {0}},
    {{[10] = 0xff, 0xff, 10, 0, 0, 2}, 1, 1, EINVAL, {0}}, /* of the other kind */
    {{[10] = 0xff, 0xff, 10, 0, 0, 2}, 2, 1, EINVAL, {0}},
    {{[10] = 0xff, 0xff, 0, 0, 0, 0}, 0, 1, EINVAL, {0}},
    {{[9] = 1, 0xff, 0xff, 10, 0, 0, 2}, 0, 1, EINVAL, {0}},
    {{[10] = 0xff, 0xfe, 10, 0, 0, 2}, 0, 1, EINVAL, {0}},
    /* link-local, of that MAC */
    {{0xfe, 0x80, [9] = 0x54, 10, 0xff, 0xfe, 0, 0, 2}, 1, 1, 0, {2, 0x54, 10, 0, 0, 2}},
    {{0xfe, 0x80, [9] = 0x54, 10, 0xff, 0xfe, 0, 0, 2}, 0, 1, EINVAL, {0}},
    {{0xfe, 0x80, [9] = 0x55, 10, 0xff, 0xfe, 0, 0, 2}, 1, 1, EINVAL, {0}},
    {{0xfe, 0x80, [9] = 0x54, 10, 0, 0, 0, 0, 9}, 1, 1, EINVAL, {0}},
    {{0xfe, 0x80, [9] = 0x54, 10, 0xff, 0xfe, 0, 0, 9}, 1, 1, EHOSTUNREACH, {0}},   /* outside */
    {{0xfe, 0x80, [9] = 0x54, 0xe1, 0xff, 0xfe, 0, 0, 9}, 1, 1, EHOSTUNREACH, {0}}, /* a group's */
    /* groups, of every sender: RFC 1112 */
    {{[10] = 0xff, 0xff, 225, 0x81, 2, 3}, 0, 1, 0, {1, 0, 0x5e, 1, 2, 3}},
    {{[10] = 0xff, 0xff, 225, 0x81, 2, 3}, 1, 1, 0, {1, 0, 0x5e, 1, 2, 3}},
    {{[10] = 0xff, 0xff, 239, 255, 255, 255}, 0, 1, 0, {1, 0, 0x5e, 0x7f, 255, 255}},
    {{[10] = 0xff, 0xff, 224, 0, 0, 1}, 0, 1, 0, {1, 0, 0x5e, 0, 0, 1}},
    {{0xff, 0x0e, [10] = 0xff, 0xff, 225, 1, 2, 3}, 0, 1, 0, {1, 0, 0x5e, 1, 2, 3}},
    {{0xff, 0x02, [10] = 0xff, 0xff, 225, 1, 2, 3}, 0, 1, EINVAL, {0}},
    /* just outside of groups' range */
    {{[10] = 0xff, 0xff, 223, 255, 255, 255}, 0, 1, 0, {2, 0x54, 223, 255, 255, 255}},
    {{[10] = 0xff, 0xff, 240, 0, 0, 1}, 0, 1, 0, {2, 0x54, 240, 0, 0, 1}},
    /* nobody's; and outside, where nobody answers here */
    {{[10] = 0xff, 0xff, 10, 0, 0, 0x63}, 0, 1, EHOSTUNREACH, {0}},
    {{[10] = 0xff, 0xff, 10, 0, 0, 9}, 0, 1, EHOSTUNREACH, {0}},
};

static struct ibv_ah_attr attr_of(unsigned i)
{
    struct ibv_ah_attr a = {.is_global = 1, .port_num = addresses[i].port};

    memcpy(a.grh.dgid.raw, addresses[i].gid, 16);
    a.grh.sgid_index = addresses[i].index;
    return a;
}

static void gids_are_hosts_and_groups_or_refused(void **state)
{
    (void)state;
    begin();
    for (unsigned i = 0; i < LEN(addresses); i++) {
        struct ibv_ah_attr a = attr_of(i);
        struct ibv_ah *ah;
        uint8_t mac[6] = {0};
        uint16_t vlan = 7;

        errno = 0;
        assert_int_equal(ibv_resolve_eth_l2_from_gid(p.s[0].ctx, &a, mac, &vlan),
                         addresses[i].error ? -1 : 0);
        assert_int_equal(errno, addresses[i].error);
        assert_memory_equal(mac, addresses[i].mac, 6);
        assert_int_equal(vlan, addresses[i].error ? 7 : 0xffff);
        errno = 0;
        ah = ibv_create_ah(p.s[0].pd, &a);
        assert_int_equal(!ah, addresses[i].error != 0);
        assert_int_equal(errno, addresses[i].error);
        if (ah) {
            assert_ptr_equal(ah->context, p.s[0].ctx);
            assert_ptr_equal(ah->pd, p.s[0].pd);
            assert_memory_equal(to_ah(ah)->to.mac, addresses[i].mac, 6);
            assert_int_equal(to_ah(ah)->to.v6, addresses[i].gid[0] == 0xfe);
            assert_int_equal(ibv_destroy_ah(ah), 0);
        }
        assert_int_equal(ibv_resolve_eth_l2_from_gid(p.s[0].ctx, &a, mac, NULL),
                         addresses[i].error ? -1 : 0);
        a.is_global = 0; /* RoCE has no other */
        assert_null(ibv_create_ah(p.s[0].pd, &a));
    }
    pair_close(&p);
}

static void an_address_of_nobody_is_named(void **state)
{
    struct ibv_ah_attr a = ah_to(IP_NOWHERE);

    (void)state;
    begin();
    assert_null(ibv_create_ah(p.s[0].pd, &a));
    assert_non_null(strstr(said, "found the GID of 10.0.0.99 as destination, expected that of a "
                                 "host or switch of the fabric (trib plan prints their "
                                 "addresses)"));
    pair_close(&p);
}

/* ---- handles ---- */

#define MANY 200u

/* An entry is used again after 63 others were, also the first. */
static void handles_rest_before_they_are_used_again(void **state)
{
    struct ibv_ah_attr a = ah_to(IP_B);
    struct ibv_ah *ah[MANY];
    unsigned again = 0;

    (void)state;
    begin();
    ah[0] = ibv_create_ah(p.s[0].pd, &a);
    assert_int_equal(ibv_destroy_ah(ah[0]), 0);
    assert_int_equal(ibv_destroy_ah(ah[0]), EINVAL);
    for (unsigned i = 1; i < MANY && !again; i++) {
        ah[i] = ibv_create_ah(p.s[0].pd, &a);
        assert_non_null(ah[i]);
        again = ah[i] == ah[0] ? i : 0;
        assert_int_equal(ibv_destroy_ah(ah[i]), 0);
    }
    assert_int_equal(again, 64);
    for (unsigned i = 0; i < MANY; i++) { /* those in use are not shared */
        ah[i] = ibv_create_ah(p.s[0].pd, &a);
        for (unsigned k = 0; k < i; k++)
            assert_ptr_not_equal(ah[i], ah[k]);
    }
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(ibv_destroy_ah(ah[i]), 0);
    pair_close(&p);
}

/* Of a context that is closed; the other context's stay. */
static void handles_go_with_their_context(void **state)
{
    struct ibv_context *c;
    struct ibv_ah_attr a = ah_to(IP_B);
    struct ibv_ah *mine, *its;
    struct ibv_pd *pd;
    unsigned objects;

    (void)state;
    begin();
    mine = ibv_create_ah(p.s[0].pd, &a);
    objects = hca_objects(p.s[0].h);
    c = ibv_open_device(hca_device(p.s[0].h));
    pd = ibv_alloc_pd(c);
    its = ibv_create_ah(pd, &a);
    assert_non_null(its);
    assert_int_equal(hca_objects(p.s[0].h), objects + 2);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    ibv_close_device(c);
    assert_int_equal(hca_objects(p.s[0].h), objects);
    assert_int_equal(ibv_destroy_ah(mine), 0);
    pair_close(&p);
}

static void a_dead_hca_makes_none(void **state)
{
    struct ibv_ah_attr a = ah_to(IP_B);
    struct ibv_ah *ah;

    (void)state;
    begin();
    ah = ibv_create_ah(p.s[0].pd, &a);
    hca_kill(p.s[0].h);
    assert_null(ibv_create_ah(p.s[0].pd, &a));
    assert_int_equal(errno, EIO);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    pair_close(&p);
}

/* ---- of a completion ---- */

static void answers_go_where_the_datagram_came_from(void **state)
{
    const union ibv_gid v6 = link_local_of(IP_B), v4 = gid_of(IP_B);
    struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
    struct ibv_grh grh = {.version_tclass_flow = htobe32(0x60000000), .sgid = v6};
    struct ibv_ah_attr a;
    uint8_t *ip4 = (uint8_t *)&grh + 20;

    (void)state;
    begin();
    assert_int_equal(ibv_init_ah_from_wc(p.s[0].ctx, 1, &wc, &grh, &a), 0);
    assert_int_equal(a.is_global, 1);
    assert_int_equal(a.port_num, 1);
    assert_int_equal(a.grh.hop_limit, 64);
    assert_int_equal(a.grh.sgid_index, 1);
    assert_memory_equal(&a.grh.dgid, &v6, 16);
    assert_int_equal(ibv_init_ah_from_wc(p.s[0].ctx, 2, &wc, &grh, &a), -1);
    assert_int_equal(ibv_init_ah_from_wc(p.s[0].ctx, 0, &wc, &grh, &a), -1);
    assert_int_equal(ibv_init_ah_from_wc(p.s[0].ctx, 1, &wc, NULL, &a), -1);
    assert_int_equal(errno, EINVAL);
    wc.wc_flags = 0;
    assert_int_equal(ibv_init_ah_from_wc(p.s[0].ctx, 1, &wc, &grh, &a), -1);
    assert_int_equal(a.is_global, 0);
    wc.wc_flags = IBV_WC_GRH;
    grh.version_tclass_flow = htobe32(0x50000000);
    assert_int_equal(ibv_init_ah_from_wc(p.s[0].ctx, 1, &wc, &grh, &a), -1);
    memset(&grh, 0, sizeof(grh));
    ip4[0] = 0x45, ip4[12] = 10, ip4[15] = 2;
    assert_int_equal(ibv_init_ah_from_wc(p.s[0].ctx, 1, &wc, &grh, &a), 0);
    assert_int_equal(a.grh.sgid_index, 0);
    assert_memory_equal(&a.grh.dgid, &v4, 16);
    ip4[0] = 0x46;
    assert_int_equal(ibv_init_ah_from_wc(p.s[0].ctx, 1, &wc, &grh, &a), -1);
    pair_close(&p);
}

/* ---- groups ---- */

static void only_groups_are_attached_and_by_datagrams_alone(void **state)
{
    struct ibv_qp *ud, *rc;
    union ibv_gid g = gid_of(0xe1010203), other = gid_of(0xe1010204), third = gid_of(0xe1010205),
                  host = gid_of(IP_B), v6 = link_local_of(0xe1010203);

    (void)state;
    begin();
    ud = make_qp(&p.s[0], IBV_QPT_UD), rc = make_qp(&p.s[0], IBV_QPT_RC);
    ud_ready(ud, 1);
    assert_int_equal(ibv_attach_mcast(rc, &g, 0), EINVAL);
    assert_int_equal(ibv_attach_mcast(ud, &v6, 0), EINVAL);
    assert_int_equal(ibv_attach_mcast(ud, &host, 0), EINVAL);
    assert_non_null(strstr(said, "found MGID 0000:0000:0000:0000:0000:ffff:0a00:0002, expected an "
                                 "IPv4 group: ::ffff:224.0.0.0 to ::ffff:239.255.255.255, or "
                                 "ff0e::ffff: and the same"));
    assert_int_equal(ibv_detach_mcast(ud, &host, 0), EINVAL);
    assert_int_equal(ibv_detach_mcast(ud, &g, 0), EINVAL);
    assert_int_equal(ibv_attach_mcast(ud, &g, 0), 0);
    assert_int_equal(ibv_attach_mcast(ud, &g, 0), 0);
    assert_int_equal(ibv_attach_mcast(ud, &other, 0), 0);
    assert_int_equal(ibv_attach_mcast(ud, &third, 0), 0);
    assert_int_equal(to_qp(ud)->n_mcast, 3);
    assert_int_equal(ibv_detach_mcast(ud, &g, 0), 0);
    assert_int_equal(ibv_detach_mcast(ud, &g, 0), EINVAL);
    assert_int_equal(ibv_detach_mcast(ud, &third, 0), 0);
    assert_int_equal(ibv_detach_mcast(ud, &other, 0), 0);
    assert_int_equal(to_qp(ud)->n_mcast, 0);
    hca_kill(p.s[0].h);
    assert_int_equal(ibv_attach_mcast(ud, &g, 0), EIO);
    assert_int_equal(ibv_destroy_qp(ud), 0);
    assert_int_equal(ibv_destroy_qp(rc), 0);
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gids_are_hosts_and_groups_or_refused),
        cmocka_unit_test(an_address_of_nobody_is_named),
        cmocka_unit_test(handles_rest_before_they_are_used_again),
        cmocka_unit_test(handles_go_with_their_context),
        cmocka_unit_test(a_dead_hca_makes_none),
        cmocka_unit_test(answers_go_where_the_datagram_came_from),
        cmocka_unit_test(only_groups_are_attached_and_by_datagrams_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
