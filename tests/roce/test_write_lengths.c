/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets of an RDMA WRITE have the lengths that its first one announced: what differs is refused, at the packet that does. */
#include "tests/roce/rc_fixture.h"

#include "roce/engine.h"

#define FIRST  ROCE_OP_RC_WRITE_FIRST
#define MIDDLE ROCE_OP_RC_WRITE_MIDDLE
#define LAST   ROCE_OP_RC_WRITE_LAST
#define ONLY   ROCE_OP_RC_WRITE_ONLY
#define PSN    100u

static void give(const struct fixture *e, uint8_t opcode, uint32_t psn, uint32_t len,
                 uint32_t total)
{
    struct roce_pkt k = {.opcode = opcode,
                         .ttl = 64,
                         .pkey = 0xffff,
                         .src_ip = 0x0a000001,
                         .dst_ip = 0x0a000002,
                         .dqpn = qp_num(e->qp[1]),
                         .psn = psn,
                         .va = at(e, 1, 0),
                         .rkey = e->key[1],
                         .dma_len = total,
                         .len = len};
    struct rte_mbuf *m = frame_alloc(e->p->s[1].pool);

    roce_mac_of_ip(k.dst_ip, k.dst_mac);
    roce_mac_of_ip(k.src_ip, k.src_mac);
    roce_build(m, &k);
    memset(rte_pktmbuf_mtod_offset(m, void *, k.hdr_len), (int)(psn - PSN + 1), k.len);
    roce_seal(m, &k);
    assert_int_equal(e->p->s[1].ep.input(e->p->s[1].r, &m, 1, 0), 1);
}

/* In MTUs and bytes; the packet `refused` is the first that is wrong, 0: none is. */
static const struct row {
    const char *what;
    unsigned total_mtus, total_bytes;
    struct {
        uint8_t opcode;
        unsigned mtus, bytes;
    } packet[4];
    unsigned n, refused;
} rows[] = {
    {"as announced", 2, 5, {{FIRST, 1, 0}, {MIDDLE, 1, 0}, {LAST, 0, 5}}, 3, 0},
    {"a full last one", 2, 0, {{FIRST, 1, 0}, {LAST, 1, 0}}, 2, 0},
    {"a middle that leaves nothing", 2, 0, {{FIRST, 1, 0}, {MIDDLE, 1, 0}, {LAST, 0, 0}}, 3, 2},
    {"a first that leaves nothing", 1, 0, {{FIRST, 1, 0}, {LAST, 0, 0}}, 2, 1},
    {"a middle beyond the end", 1, 5, {{FIRST, 1, 0}, {MIDDLE, 1, 0}, {LAST, 0, 5}}, 3, 2},
    {"a last that is too short", 1, 5, {{FIRST, 1, 0}, {LAST, 0, 4}}, 2, 2},
    {"a last that is too long", 1, 5, {{FIRST, 1, 0}, {LAST, 0, 8}}, 2, 2},
    {"a short middle", 2, 5, {{FIRST, 1, 0}, {MIDDLE, 0, 8}, {LAST, 0, 5}}, 3, 2},
    {"one packet for less", 0, 8, {{ONLY, 0, 12}}, 1, 1},
    {"one packet for more", 1, 0, {{ONLY, 0, 12}}, 1, 1},
};

static void a_write_has_the_lengths_that_it_announced(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RTE_DIM(rows); i++) {
        const struct row *r = &rows[i];
        struct fixture e = fixture_make(NULL, false);
        const uint32_t mtu = e.qp[1]->attr.mtu;
        const uint64_t *refused = &rnic_counters(e.p->s[1].r)->drops[ROCE_REFUSED];
        unsigned first = 0;

        for (unsigned k = 0; k < r->n && !first; k++) {
            give(&e, r->packet[k].opcode, PSN + k, r->packet[k].mtus * mtu + r->packet[k].bytes,
                 r->total_mtus * mtu + r->total_bytes);
            first = *refused ? k + 1 : 0;
        }
        if (first != r->refused)
            fail_msg("%s: packet %u is refused, expected %u", r->what, first, r->refused);
        assert_int_equal(qp_state_of(e.qp[1]), r->refused ? QP_ERR : QP_RTS);
        for (unsigned k = 0, to = 0; !r->refused && k < r->n; k++) {
            to += r->packet[k].mtus * mtu + r->packet[k].bytes;
            assert_int_equal(e.buf[1][to - 1], k + 1);
        }
        fixture_free(&e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_has_the_lengths_that_it_announced),
    };

    test_eal_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
