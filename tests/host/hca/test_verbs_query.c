/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program may ask of a device and its port: every field, and at the boundaries of arguments. */
#include "host/hca/hca_priv.h"
#include "tests/host/hca/pair.h"

#include <endian.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
#define GUID_A "\x00\x54\x0a\xff\xfe\x00\x00\x01" /* EUI-64 of 02:54:0a:00:00:01 */

int ibv_query_gid_type(struct ibv_context *v, uint8_t port, unsigned int index, int *type);

static struct pair p;

static void begin(void)
{
    pair_open(&p);
}

static void sizes_of_packets_have_codes(void **state)
{
    static const struct {
        unsigned bytes;
        enum ibv_mtu code;
    } rows[] = {{1, IBV_MTU_256},     {256, IBV_MTU_256},   {511, IBV_MTU_256},
                {512, IBV_MTU_512},   {1023, IBV_MTU_512},  {1024, IBV_MTU_1024},
                {2047, IBV_MTU_1024}, {2048, IBV_MTU_2048}, {4095, IBV_MTU_2048},
                {4096, IBV_MTU_4096}, {9000, IBV_MTU_4096}};

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++)
        assert_int_equal(mtu_enum(rows[i].bytes), rows[i].code);
    for (unsigned m = 0; m <= 7; m++)
        assert_int_equal(mtu_bytes(m), m < 1 || m > 5 ? 0 : 128u << m);
}

static void a_device_says_what_it_is(void **state)
{
    struct ibv_device_attr a;

    (void)state;
    begin();
    memset(&a, 0xff, sizeof(a));
    assert_int_equal(ibv_query_device(p.s[0].ctx, &a), 0);
    assert_memory_equal(&a.node_guid, GUID_A, 8);
    assert_memory_equal(&a.sys_image_guid, GUID_A, 8);
    assert_string_equal(a.fw_ver, "tributary");
    assert_int_equal(a.vendor_id, 0x025400);
    assert_int_equal(a.vendor_part_id, 1);
    assert_int_equal(a.hw_ver, 0);
    assert_int_equal(a.page_size_cap, 0xfffff000);
    assert_int_equal(a.max_qp, 1024);
    assert_int_equal(a.max_res_rd_atom, a.max_qp * a.max_qp_rd_atom);
    assert_int_equal(a.max_qp_init_rd_atom, a.max_qp_rd_atom);
    assert_int_equal(a.atomic_cap, IBV_ATOMIC_HCA);
    assert_int_equal(a.max_pkeys, 1);
    assert_int_equal(a.local_ca_ack_delay, 15);
    assert_int_equal(a.phys_port_cnt, 1);
    assert_int_equal(a.max_sge_rd, a.max_sge);
    assert_int_equal(a.max_ee + a.max_rdd + a.max_raw_ipv6_qp + a.max_fmr, 0);
    assert_true(a.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
    assert_true(a.device_cap_flags & IBV_DEVICE_SRQ_RESIZE);
    assert_false(a.device_cap_flags & IBV_DEVICE_UD_IP_CSUM);
    assert_memory_equal((__be64[]){ibv_get_device_guid(p.s[0].ctx->device)}, GUID_A, 8);
    pair_close(&p);
}

static void more_is_told_as_far_as_there_is_room(void **state)
{
    struct ibv_query_device_ex_input in = {.comp_mask = 1};
    struct ibv_device_attr plain;
    union {
        struct ibv_device_attr_ex a;
        uint8_t bytes[sizeof(struct ibv_device_attr_ex) + 8];
    } u;
    struct ibv_context *c;

    (void)state;
    begin();
    c = p.s[0].ctx;
    memset(&u, 0xff, sizeof(u));
    assert_int_equal(hca_query_device_ex(c, NULL, &u.a, sizeof(u)), 0);
    ibv_query_device(c, &plain);
    assert_memory_equal(&u.a.orig_attr, &plain, sizeof(plain));
    assert_int_equal(u.a.comp_mask, 0);
    assert_true(u.a.completion_timestamp_mask == UINT64_MAX);
    assert_int_equal(u.a.hca_core_clock, 1000000);
    assert_true(u.a.device_cap_flags_ex == (plain.device_cap_flags | 1ull << 40));
    assert_int_equal(u.a.max_dm_size, 256 << 10);
    assert_int_equal(u.a.phys_port_cnt_ex, 1);
    assert_int_equal(u.bytes[sizeof(u) - 1], 0); /* of a later header */
    in.comp_mask = 1;
    assert_int_equal(hca_query_device_ex(c, &in, &u.a, sizeof(u.a)), EINVAL);
    in.comp_mask = 0;
    assert_int_equal(hca_query_device_ex(c, &in, &u.a, sizeof(u.a)), 0);
    memset(&u, 0xff, sizeof(u));
    assert_int_equal(hca_query_device_ex(c, NULL, &u.a, sizeof(plain) - 1), EINVAL);
    assert_int_equal(u.bytes[0], 0xff);
    assert_int_equal(hca_query_device_ex(c, NULL, &u.a, sizeof(plain)), 0);
    assert_int_equal(u.bytes[sizeof(plain)], 0xff); /* of an earlier one */
    pair_close(&p);
}

static void the_clock_is_fabric_time(void **state)
{
    struct ibv_values_ex v = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK | 1u << 30};

    (void)state;
    begin();
    p.now_ps = 3 * PS_PER_S + 7 * PS_PER_NS + 999;
    p.s[0].ep.tick(p.s[0].ep.ctx, p.now_ps);
    assert_int_equal(hca_query_rt_values(p.s[0].ctx, &v), 0);
    assert_int_equal(v.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
    assert_int_equal(v.raw_clock.tv_sec, 3);
    assert_int_equal(v.raw_clock.tv_nsec, 7);
    v = (struct ibv_values_ex){.comp_mask = 1u << 30, .raw_clock.tv_sec = 5};
    assert_int_equal(hca_query_rt_values(p.s[0].ctx, &v), 0);
    assert_int_equal(v.comp_mask, 0);
    assert_int_equal(v.raw_clock.tv_sec, 5);
    pair_close(&p);
}

/* ---- the port ---- */

static void a_port_says_what_it_is(void **state)
{
    union {
        struct ibv_port_attr a;
        uint8_t bytes[sizeof(struct ibv_port_attr) + 8];
    } u;
    struct ibv_context *c;

    (void)state;
    begin();
    c = p.s[0].ctx;
    memset(&u, 0xff, sizeof(u));
    assert_int_equal(hca_query_port(c, 1, &u.a, sizeof(u)), 0);
    assert_int_equal(u.a.state, IBV_PORT_ACTIVE);
    assert_int_equal(u.a.phys_state, 5);
    assert_int_equal(u.a.max_mtu, IBV_MTU_4096);
    assert_int_equal(u.a.active_mtu, IBV_MTU_4096);
    assert_int_equal(u.a.gid_tbl_len, 2);
    assert_int_equal(u.a.pkey_tbl_len, 1);
    assert_int_equal(u.a.max_vl_num, 1);
    assert_int_equal(u.a.link_layer, IBV_LINK_LAYER_ETHERNET);
    assert_int_equal(u.a.port_cap_flags, 0x04010000);
    assert_int_equal(u.a.max_msg_sz, ROCE_MAX_MSG);
    assert_int_equal(u.a.lid | u.a.sm_lid | u.a.lmc | u.a.bad_pkey_cntr, 0);
    assert_int_equal(u.bytes[sizeof(u) - 1], 0);
    memset(&u, 0xff, sizeof(u));
    assert_int_equal(hca_query_port(c, 1, &u.a, 8), 0);
    assert_int_equal(u.bytes[8], 0xff);
    for (unsigned port = 0; port < 3; port++)
        assert_int_equal(hca_query_port(c, (uint8_t)port, &u.a, sizeof(u.a)),
                         port == 1 ? 0 : EINVAL);
    memset(&u, 0xff, sizeof(u));
    assert_int_equal(hca_query_port_compat(c, 1, (struct _compat_ibv_port_attr *)&u.a), 0);
    assert_int_equal(u.bytes[offsetof(struct ibv_port_attr, port_cap_flags2)], 0xff);
    assert_int_equal(u.a.gid_tbl_len, 2);
    hca_port_state(p.s[0].h, false, 0);
    assert_int_equal(hca_query_port(c, 1, &u.a, sizeof(u.a)), 0);
    assert_int_equal(u.a.state, IBV_PORT_DOWN);
    assert_int_equal(u.a.phys_state, 3);
    pair_close(&p);
}

/* The code of the port's rate or the next below: lanes, and 2.5, 5, 10, 14, 25, 50, 100 Gb/s of each. */
static void rates_have_codes(void **state)
{
    static const struct {
        uint64_t mbps;
        uint8_t width, speed;
    } rows[] = {
        {1600000, 8, 128}, {1200000, 8, 128}, {1199999, 4, 128}, {800000, 4, 128}, {799999, 2, 128},
        {400000, 2, 128},  {399999, 2, 64},   {200000, 2, 64},   {199999, 2, 32},  {100000, 2, 32},
        {99999, 2, 16},    {56000, 2, 16},    {55999, 2, 8},     {40000, 2, 8},    {39999, 1, 32},
        {25000, 1, 32},    {24999, 2, 2},     {20000, 2, 2},     {19999, 1, 8},    {10000, 1, 8},
        {9999, 1, 1},      {1, 1, 1},
    };

    (void)state;
    begin();
    for (size_t i = 0; i < LEN(rows); i++) {
        struct hca_cfg cfg = {.ip = 0x0a000003,
                              .mtu = 1500,
                              .rate_bps = rows[i].mbps * 1000000,
                              .pool = p.pool,
                              .name = "trib2"};
        struct ibv_port_attr a;
        struct ibv_context *c;
        struct hca *h;

        assert_int_equal(hca_create(&h, &cfg), 0);
        c = ibv_open_device(hca_device(h));
        assert_int_equal(hca_query_port(c, 1, &a, sizeof(a)), 0);
        assert_int_equal(a.active_width, rows[i].width);
        assert_int_equal(a.active_speed, rows[i].speed);
        assert_int_equal(a.active_mtu, IBV_MTU_1024);
        ibv_close_device(c);
        hca_destroy(h);
    }
    pair_close(&p);
}

/* ---- tables ---- */

static void addresses_are_told_by_index(void **state)
{
    const union ibv_gid is[2] = {gid_of(IP_A), link_local_of(IP_A)};
    struct ibv_gid_entry e[3];
    struct ibv_context *c;
    union ibv_gid g;
    int type;

    (void)state;
    begin();
    c = p.s[0].ctx;
    for (int port = 0; port < 3; port++)
        for (int i = -1; i < 3; i++) {
            bool there = port == 1 && (i == 0 || i == 1);

            errno = 0;
            assert_int_equal(ibv_query_gid(c, (uint8_t)port, i, &g), there ? 0 : -1);
            assert_int_equal(errno, there ? 0 : EINVAL);
            if (there)
                assert_memory_equal(&g, &is[i], sizeof(g));
            if (i < 0)
                continue;
            memset(e, 0xff, sizeof(e));
            assert_int_equal(ibv_query_gid_ex(c, (uint32_t)port, (uint32_t)i, e, 0),
                             port != 1 ? EINVAL
                             : i > 1   ? ENODATA
                                       : 0);
            if (!there)
                continue;
            assert_memory_equal(&e[0].gid, &is[i], sizeof(g));
            assert_int_equal(e[0].gid_index, i);
            assert_int_equal(e[0].port_num, 1);
            assert_int_equal(e[0].gid_type, IBV_GID_TYPE_ROCE_V2);
            assert_int_equal(e[0].ndev_ifindex, 0);
            assert_int_equal(e[1].gid_index, UINT32_MAX);
        }
    assert_int_equal(ibv_query_gid_ex(c, 1, 0, e, 1), EINVAL);
    assert_int_equal(ibv_query_gid_table(c, e, 3, 0), 2);
    assert_memory_equal(&e[1].gid, &is[1], sizeof(g));
    assert_int_equal(ibv_query_gid_table(c, e, 2, 0), 2);
    assert_int_equal(ibv_query_gid_table(c, e, 1, 0), -EINVAL);
    assert_int_equal(ibv_query_gid_table(c, e, 3, 1), -EINVAL);
    for (unsigned port = 0; port < 3; port++)
        for (unsigned i = 0; i < 3; i++) {
            type = 7;
            errno = 0;
            assert_int_equal(ibv_query_gid_type(c, (uint8_t)port, i, &type),
                             port == 1 && i < 2 ? 0 : -1);
            assert_int_equal(type, port == 1 && i < 2 ? 1 : 7);
            assert_int_equal(errno, port == 1 && i < 2 ? 0 : EINVAL);
        }
    pair_close(&p);
}

static void there_is_one_partition(void **state)
{
    struct ibv_context *c;
    __be16 key;

    (void)state;
    begin();
    c = p.s[0].ctx;
    for (int port = 0; port < 3; port++)
        for (int i = -1; i < 2; i++) {
            bool there = port == 1 && !i;

            key = 0, errno = 0;
            assert_int_equal(ibv_query_pkey(c, (uint8_t)port, i, &key), there ? 0 : -1);
            assert_int_equal(be16toh(key), there ? 0xffff : 0);
            assert_int_equal(errno, there ? 0 : EINVAL);
        }
    for (int port = 0; port < 3; port++) {
        errno = 0;
        assert_int_equal(ibv_get_pkey_index(c, (uint8_t)port, htobe16(0xffff)), port == 1 ? 0 : -1);
        assert_int_equal(errno, port == 1 ? 0 : EINVAL);
        assert_int_equal(ibv_get_pkey_index(c, (uint8_t)port, htobe16(0x7fff)), -1);
    }
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_of_packets_have_codes),
        cmocka_unit_test(a_device_says_what_it_is),
        cmocka_unit_test(more_is_told_as_far_as_there_is_room),
        cmocka_unit_test(the_clock_is_fabric_time),
        cmocka_unit_test(a_port_says_what_it_is),
        cmocka_unit_test(rates_have_codes),
        cmocka_unit_test(addresses_are_told_by_index),
        cmocka_unit_test(there_is_one_partition),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
