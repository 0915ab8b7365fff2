/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire format: parse is the inverse of build, every malformed frame has a name, and the ICRC is
 * that of a second implementation. */
#include "roce/icrc.h"
#include "roce/wire.h"
#include "tests/roce/crc_bits.h"
#include "tests/support/eal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_mempool.h>

static struct rte_mempool *pool;

/* The rule as written in IBTA A17.5, over a whole frame of one piece. */
static uint32_t icrc_bits(const uint8_t *frame, size_t n)
{
    uint8_t b[FRAME_ROOM + 8];
    size_t ip = n - 14 - 4;

    memset(b, 0xff, 8);
    memcpy(b + 8, frame + 14, ip);
    if (b[8] >> 4 == 6) {
        b[8] = 0x6f, b[8 + 1] = b[8 + 2] = b[8 + 3] = b[8 + 7] = 0xff;
        b[8 + 46] = b[8 + 47] = 0xff;
        b[8 + 52] = 0xff;
        return ~crc_bits(~0u, b, 8 + ip);
    }
    b[8 + 1] = b[8 + 8] = b[8 + 10] = b[8 + 11] = 0xff;
    b[8 + 26] = b[8 + 27] = 0xff;
    b[8 + 32] = 0xff;
    return ~crc_bits(~0u, b, 8 + ip);
}

static struct roce_pkt a_packet(uint8_t opcode, uint32_t len)
{
    struct roce_pkt k = {.opcode = opcode,
                         .syndrome = 0x1f,
                         .solicited = true,
                         .ack_req = true,
                         .tos = 0x6a,
                         .ttl = 64,
                         .pkey = 0xffff,
                         .udp_src = 0xc123,
                         .src_ip = 0x0a000001,
                         .dst_ip = 0x0a000002,
                         .dqpn = 0x10042,
                         .psn = 0xfffffe,
                         .msn = 77,
                         .rkey = 0x1234567,
                         .dma_len = 123456,
                         .va = 0x7f0102030405,
                         .swap_add = 5,
                         .compare = 6,
                         .orig = 7,
                         .qkey = 0x54524942,
                         .sqpn = 0x20001,
                         .mark = 0x8003,
                         .imm = 0xdeadbeef,
                         .len = len};

    roce_mac_of_ip(k.src_ip, k.src_mac);
    roce_mac_of_ip(k.dst_ip, k.dst_mac);
    return k;
}

static struct rte_mbuf *a_frame(struct roce_pkt *k)
{
    struct rte_mbuf *m = frame_alloc(pool);

    assert_non_null(m);
    roce_build(m, k);
    for (uint32_t i = 0; i < k->len - k->virt; i++)
        rte_pktmbuf_mtod(m, uint8_t *)[k->hdr_len + i] = (uint8_t)(i * 7 + k->len);
    roce_seal(m, k);
    return m;
}

static void assert_same(const struct roce_pkt *a, const struct roce_pkt *b)
{
    uint8_t x = roce_opinfo[a->opcode].ext;

    assert_int_equal(a->opcode, b->opcode);
    assert_int_equal(a->solicited, b->solicited);
    assert_int_equal(a->ack_req, b->ack_req);
    assert_int_equal(a->pad, b->pad);
    assert_int_equal(a->tos, b->tos);
    assert_int_equal(a->ttl, b->ttl);
    assert_int_equal(a->pkey, b->pkey);
    assert_int_equal(a->udp_src, b->udp_src);
    assert_int_equal(a->mark, b->mark);
    assert_int_equal(a->v6, b->v6);
    assert_int_equal(a->src_ip, b->src_ip);
    assert_int_equal(a->dst_ip, b->dst_ip);
    assert_memory_equal(a->src_mac, b->src_mac, 6);
    assert_memory_equal(a->dst_mac, b->dst_mac, 6);
    assert_int_equal(a->dqpn, b->dqpn);
    assert_int_equal(a->psn, b->psn);
    assert_int_equal(a->len, b->len);
    assert_int_equal(a->virt, b->virt);
    assert_int_equal(a->hdr_len, b->hdr_len);
    if (x & ROCE_X_AETH) {
        assert_int_equal(a->syndrome, b->syndrome);
        assert_int_equal(a->msn, b->msn);
    }
    if (x & ROCE_X_RETH) {
        assert_int_equal(a->va, b->va);
        assert_int_equal(a->dma_len, b->dma_len);
    }
    if (x & (ROCE_X_RETH | ROCE_X_ATOMIC | ROCE_X_IETH))
        assert_int_equal(a->rkey, b->rkey);
    if (x & ROCE_X_ATOMIC) {
        assert_int_equal(a->swap_add, b->swap_add);
        assert_int_equal(a->compare, b->compare);
    }
    if (x & ROCE_X_ATOMICACK)
        assert_int_equal(a->orig, b->orig);
    if (x & ROCE_X_IMM)
        assert_int_equal(a->imm, b->imm);
    if (x & ROCE_X_DETH) {
        assert_int_equal(a->qkey, b->qkey);
        assert_int_equal(a->sqpn, b->sqpn);
    }
}

static void every_opcode_parses_to_what_was_built(void **state)
{
    static const uint32_t lens[] = {0, 1, 2, 3, 4, 5, 255, 256, 1024, 4095, 4096};

    (void)state;
    for (unsigned n_op = 0; n_op < 512; n_op++) {
        const unsigned op = n_op & 255;
        const struct roce_opinfo *info = &roce_opinfo[op];

        if (!info->name)
            continue;
        for (unsigned i = 0; i < RTE_DIM(lens); i++) {
            uint32_t n = lens[i];
            bool ok = info->rule == ROCE_LEN_NONE    ? n == 0
                      : info->rule == ROCE_LEN_MTU   ? n && n % 4 == 0
                      : info->rule == ROCE_LEN_1_MTU ? n > 0
                                                     : true;
            struct roce_pkt k = a_packet(op, n), got = {0};
            struct rte_mbuf *m;
            uint32_t crc;

            k.v6 = n_op >= 256;
            m = a_frame(&k);
            assert_int_equal(k.hdr_len, roce_built_bytes(op, k.v6));

            assert_int_equal(roce_parse(m, &got), ok ? ROCE_OK : ROCE_PAYLOAD);
            if (ok) {
                assert_same(&k, &got);
                assert_int_equal(roce_header_bytes(rte_pktmbuf_mtod(m, uint8_t *), m->data_len),
                                 got.hdr_len);
                assert_true(roce_icrc_ok(m, &got));
            }
            memcpy(&crc, rte_pktmbuf_mtod_offset(m, uint8_t *, m->data_len - 4), 4);
            assert_int_equal(crc, icrc_bits(rte_pktmbuf_mtod(m, uint8_t *), m->data_len));
            rte_pktmbuf_free(m);
        }
    }
}

static bool bit_is_blind(struct rte_mbuf *m, unsigned bit)
{
    uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
    struct roce_pkt got;
    bool blind;

    p[bit / 8] ^= 1 << bit % 8;
    blind = roce_parse(m, &got) == ROCE_OK && roce_icrc_ok(m, &got);
    p[bit / 8] ^= 1 << bit % 8;
    return blind;
}

static void any_flipped_bit_that_routers_may_not_change_is_seen(void **state)
{
    struct roce_pkt k = a_packet(ROCE_OP_RC_SEND_ONLY, 97);
    struct rte_mbuf *m = a_frame(&k);
    unsigned blind = 0;

    (void)state;
    for (unsigned bit = 14 * 8; bit < m->data_len * 8u; bit++) {
        unsigned byte = bit / 8 - 14;

        if (!bit_is_blind(m, bit))
            continue;
        blind++; /* only the UDP checksum and the congestion marks of the BTH are neither covered
                    nor checked */
        assert_true(byte == 26 || byte == 27 || byte == 32);
    }
    assert_int_equal(blind, 24);
    rte_pktmbuf_free(m);
    /* IPv6 has no checksum of its header: traffic class, flow label and hop limit are open too. */
    k.v6 = true;
    m = a_frame(&k);
    blind = 0;
    for (unsigned bit = 14 * 8; bit < m->data_len * 8u; bit++) {
        unsigned byte = bit / 8 - 14;

        if (!bit_is_blind(m, bit))
            continue;
        blind++;
        assert_true((byte == 0 && bit % 8 < 4) || (byte >= 1 && byte <= 3) || byte == 7 ||
                    byte == 46 || byte == 47 || byte == 52);
    }
    assert_int_equal(blind, 28 + 8 + 24);
    rte_pktmbuf_free(m);
}

static void a_link_local_address_stands_for_one_port(void **state)
{
    static const uint8_t want[16] = {0xfe, 0x80, 0,    0,    0,    0,    0,    0,
                                     0,    0x54, 0x0a, 0xff, 0xfe, 0x01, 0x02, 0x03};
    uint8_t a[16];

    (void)state;
    roce_link_local_of_ip(0x0a010203, a);
    assert_memory_equal(a, want, 16);
    assert_int_equal(roce_ip_of_link_local(a), 0x0a010203);
    for (unsigned i = 0; i < 16; i++) {
        if (i == 10 || i > 12)
            continue;
        a[i] ^= 1; /* another prefix, another manufacturer, no EUI-64 of a MAC */
        assert_int_equal(roce_ip_of_link_local(a), 0);
        a[i] ^= 1;
    }
}

/* In a new mbuf and in one that was attached to another. */
static void headers_end_a_cache_line_and_the_payload_begins_the_next(void **state)
{
    struct roce_pkt k = a_packet(ROCE_OP_RC_SEND_MIDDLE, 1024);

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct rte_mbuf *m = a_frame(&k), *c = frame_clone(m, pool);

        assert_int_equal(k.hdr_len, ROCE_BASE_BYTES);
        assert_int_equal((uintptr_t)rte_pktmbuf_mtod_offset(m, void *, k.hdr_len) % 64, 0);
        assert_true(rte_pktmbuf_tailroom(m) + m->data_len >= FRAME_ROOM);
        rte_pktmbuf_free(m);
        rte_pktmbuf_free(c);
    }
}

static void a_payload_whose_crc_is_known_gives_the_same_bytes(void **state)
{
    unsigned before = rte_mempool_avail_count(pool);

    (void)state;
    for (uint32_t n = 1; n <= 4096; n = n < 8 ? n + 1 : n * 2 - 3) {
        struct roce_pkt k = a_packet(ROCE_OP_RC_SEND_ONLY, n);
        struct rte_mbuf *one = a_frame(&k), *m = frame_alloc(pool);
        const uint8_t *bytes = rte_pktmbuf_mtod_offset(one, uint8_t *, k.hdr_len);

        roce_build(m, &k);
        memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, k.hdr_len), bytes, n);
        roce_seal_crc(m, &k, roce_crc(0, bytes, n));
        assert_int_equal(m->pkt_len, one->pkt_len);
        assert_memory_equal(rte_pktmbuf_mtod(m, uint8_t *), rte_pktmbuf_mtod(one, uint8_t *),
                            one->data_len);
        rte_pktmbuf_free(m);
        rte_pktmbuf_free(one);
    }
    assert_int_equal(rte_mempool_avail_count(pool), before);
}

static void a_length_only_payload_counts_but_is_not_carried(void **state)
{
    struct roce_pkt k = a_packet(ROCE_OP_RC_WRITE_ONLY, 4096), got;
    struct rte_mbuf *full = a_frame(&k), *m;

    (void)state;
    k.virt = 4096;
    m = a_frame(&k);
    assert_int_equal(frame_bytes(m), frame_bytes(full));
    assert_int_equal(m->pkt_len, k.hdr_len + 4);
    assert_int_equal(roce_parse(m, &got), ROCE_OK);
    assert_int_equal(got.len, 4096);
    assert_int_equal(got.virt, 4096);
    assert_null(got.payload);
    rte_pktmbuf_free(m);
    k.virt = 4096 - 32;
    m = a_frame(&k);
    assert_int_equal(frame_bytes(m), frame_bytes(full));
    assert_int_equal(roce_parse(m, &got), ROCE_OK);
    assert_int_equal(got.virt, 4096 - 32);
    assert_int_equal(got.payload[5], (uint8_t)(5 * 7 + 4096));
    frame_meta(m)->virt_len = 5000;
    assert_int_equal(roce_parse(m, &got), ROCE_PAYLOAD);
    rte_pktmbuf_free(m);
    rte_pktmbuf_free(full);
}

/* Bytes to set in a valid frame, the length to cut it to, and the resulting reason. */
static const struct row {
    const char *what;
    enum roce_reason want;
    unsigned at, value, cut;
    bool fix_sum;
} rows[] = {
    {"untouched", ROCE_OK, 0, 0x02, 0, false},
    {"ARP", ROCE_NOT_IP, 13, 0x06, 0, false},
    {"no IP", ROCE_NOT_IP, 12, 0x86, 0, false},
    {"ends in the Ethernet header", ROCE_SHORT, 0, 2, 13, false},
    {"ends in the IPv4 header", ROCE_SHORT, 0, 2, 33, false},
    {"ends in the UDP header", ROCE_SHORT, 0, 2, 41, false},
    {"ends in the transport header", ROCE_IP_LENGTH, 0, 2, 53, false},
    {"IPv4 options", ROCE_IP_HEADER, 14, 0x46, 0, false},
    {"IPv4 checksum", ROCE_IP_CHECKSUM, 24, 0, 0, false},
    {"IPv4 longer than the frame", ROCE_IP_LENGTH, 16, 0x40, 0, true},
    {"IPv4 shorter than UDP", ROCE_IP_LENGTH, 17, 27, 0, true},
    {"fragment", ROCE_IP_FRAGMENT, 20, 0x60, 0, true},
    {"TCP", ROCE_NOT_ROCE, 23, 6, 0, true},
    {"another port", ROCE_NOT_ROCE, 37, 1, 0, false},
    {"UDP length", ROCE_UDP_LENGTH, 39, 3, 0, false},
    {"version", ROCE_BTH_VERSION, 43, 0x41, 0, false},
    {"reserved opcode", ROCE_OPCODE, 42, 0x1f, 0, false},
    {"opcode of a manufacturer", ROCE_OPCODE, 42, 0xc0, 0, false},
    {"congestion notification with a payload", ROCE_PAYLOAD, 42, 0x81, 0, false},
    {"payload that the opcode has not", ROCE_PAYLOAD, 42, 0x0c, 0, false},
    {"padding in the middle of a message", ROCE_PAYLOAD, 43, 0xf0, 0, false},
};

static const struct row rows6[] = {
    {"untouched", ROCE_OK, 0, 0x02, 0, false},
    {"IPv4 in IPv6's place", ROCE_IP_HEADER, 14, 0x45, 0, false},
    {"ends in the IPv6 header", ROCE_SHORT, 0, 2, 53, false},
    {"ends in the UDP header", ROCE_SHORT, 0, 2, 61, false},
    {"ends in the transport header", ROCE_IP_LENGTH, 0, 2, 73, false},
    {"longer than the frame", ROCE_IP_LENGTH, 18, 0x40, 0, false},
    {"shorter than UDP", ROCE_IP_LENGTH, 19, 7, 0, false},
    {"an extension header", ROCE_NOT_ROCE, 20, 0, 0, false},
    {"TCP", ROCE_NOT_ROCE, 20, 6, 0, false},
    {"from a global address", ROCE_IP_ADDRESS, 22, 0x20, 0, false},
    {"to a group", ROCE_IP_ADDRESS, 38, 0xff, 0, false},
    {"another port", ROCE_NOT_ROCE, 57, 1, 0, false},
    {"UDP length", ROCE_UDP_LENGTH, 59, 3, 0, false},
    {"version", ROCE_BTH_VERSION, 63, 0x41, 0, false},
    {"reserved opcode", ROCE_OPCODE, 62, 0x1f, 0, false},
    {"payload that the opcode has not", ROCE_PAYLOAD, 62, 0x0c, 0, false},
};

static void every_malformed_ipv6_frame_has_its_name(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RTE_DIM(rows6); i++) {
        const struct row *r = &rows6[i];
        struct roce_pkt k = a_packet(ROCE_OP_RC_SEND_ONLY, 64), got;
        struct rte_mbuf *m;

        k.v6 = true;
        m = a_frame(&k);
        rte_pktmbuf_mtod(m, uint8_t *)[r->at] = (uint8_t)r->value;
        if (r->cut)
            rte_pktmbuf_trim(m, m->data_len - r->cut);
        assert_string_equal(roce_reason_name(roce_parse(m, &got)), roce_reason_name(r->want));
        rte_pktmbuf_free(m);
    }
}

static void every_malformed_frame_has_its_name(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RTE_DIM(rows); i++) {
        const struct row *r = &rows[i];
        struct roce_pkt k = a_packet(ROCE_OP_RC_SEND_ONLY, 64), got;
        struct rte_mbuf *m = a_frame(&k);
        uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
        enum roce_reason got_r;

        if (r->at == 43 && r->want == ROCE_PAYLOAD)
            p[42] = ROCE_OP_RC_SEND_MIDDLE;
        p[r->at] = r->value;
        if (r->fix_sum) {
            uint32_t s = 0;

            p[24] = p[25] = 0;
            for (int b = 14; b < 34; b += 2)
                s += (uint32_t)p[b] << 8 | p[b + 1];
            s = (s & 0xffff) + (s >> 16), s = ~((s & 0xffff) + (s >> 16));
            p[24] = s >> 8, p[25] = s;
        }
        if (r->cut)
            rte_pktmbuf_trim(m, m->data_len - r->cut);
        got_r = roce_parse(m, &got);
        if (got_r != r->want)
            print_error("%s: got %s, want %s\n", r->what, roce_reason_name(got_r),
                        roce_reason_name(r->want));
        assert_int_equal(got_r, r->want);
        rte_pktmbuf_free(m);
    }
}

static void random_bytes_never_parse_beyond_the_frame(void **state)
{
    (void)state;
    for (int t = 0; t < 200000; t++) {
        struct roce_pkt k = a_packet(rand() & 0x7f, rand() % 80), got;
        struct rte_mbuf *m = a_frame(&k);
        uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);

        for (int n = rand() % 4; n; n--)
            p[34 + rand() % (m->data_len - 34)] = (uint8_t)rand();
        if (roce_parse(m, &got) == ROCE_OK) {
            assert_true(got.hdr_len + got.len + got.pad + 4 <= m->pkt_len);
            roce_icrc_ok(m, &got);
        }
        rte_pktmbuf_free(m);
    }
}

static void writable_headers_do_not_touch_the_other_copies(void **state)
{
    unsigned before = rte_mempool_avail_count(pool);
    struct roce_pkt k = a_packet(ROCE_OP_RC_SEND_ONLY, 1000), got;
    struct rte_mbuf *m = a_frame(&k), *c = frame_clone(m, pool), *w;

    (void)state;
    w = frame_writable(c, pool);
    assert_non_null(w);
    assert_ptr_not_equal(w, c);
    rte_pktmbuf_mtod(w, uint8_t *)[15] ^= 3;
    assert_int_equal(rte_pktmbuf_mtod(m, uint8_t *)[15], 0x6a);
    assert_int_equal(w->nb_segs, 2);
    assert_int_equal(w->pkt_len, m->pkt_len);
    rte_pktmbuf_mtod(w, uint8_t *)[15] ^= 3;
    assert_int_equal(roce_parse(w, &got), ROCE_OK);
    assert_true(roce_icrc_ok(w, &got));
    assert_ptr_equal(frame_writable(w, pool), w);
    m = frame_writable(m, pool);
    assert_non_null(m);
    rte_pktmbuf_free(w);
    rte_pktmbuf_free(m);
    assert_int_equal(rte_mempool_avail_count(pool), before);
}

static void print_names_what_a_packet_is(void **state)
{
    struct roce_pkt k = a_packet(ROCE_OP_RC_WRITE_ONLY_IMM, 16);
    char line[256], tiny[8];

    (void)state;
    roce_print(line, sizeof(line), &k);
    assert_non_null(strstr(line, "RC WRITE_ONLY_IMM"));
    assert_non_null(strstr(line, "10.0.0.1 > 10.0.0.2"));
    assert_non_null(strstr(line, "psn 16777214"));
    assert_true(roce_print(tiny, sizeof(tiny), &k) > 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_opcode_parses_to_what_was_built),
        cmocka_unit_test(any_flipped_bit_that_routers_may_not_change_is_seen),
        cmocka_unit_test(a_link_local_address_stands_for_one_port),
        cmocka_unit_test(headers_end_a_cache_line_and_the_payload_begins_the_next),
        cmocka_unit_test(a_payload_whose_crc_is_known_gives_the_same_bytes),
        cmocka_unit_test(a_length_only_payload_counts_but_is_not_carried),
        cmocka_unit_test(every_malformed_ipv6_frame_has_its_name),
        cmocka_unit_test(every_malformed_frame_has_its_name),
        cmocka_unit_test(random_bytes_never_parse_beyond_the_frame),
        cmocka_unit_test(writable_headers_do_not_touch_the_other_copies),
        cmocka_unit_test(print_names_what_a_packet_is),
    };

    test_eal_init();
    pool = test_pool(1023);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
