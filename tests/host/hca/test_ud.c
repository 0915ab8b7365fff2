/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams, address handles and multicast through the verbs calls. */
#include "tests/host/hca/pair.h"

#define QKEY 0x11111111u

static struct ibv_send_wr ud_wr(struct ibv_sge *s, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
    return (struct ibv_send_wr){.wr_id = 3,
                                .sg_list = s,
                                .num_sge = 1,
                                .opcode = IBV_WR_SEND_WITH_IMM,
                                .imm_data = 0xabcd,
                                .send_flags = IBV_SEND_SIGNALED,
                                .wr.ud = {ah, qpn, qkey}};
}

static void a_datagram_and_its_answer(struct ibv_ah_attr at, bool v6)
{
    union ibv_gid from = v6 ? link_local_of(IP_A) : gid_of(IP_A);
    struct ibv_qp *a, *b;
    struct pair p;
    struct ibv_sge s, r;
    struct ibv_ah *ah, *back;
    struct ibv_wc wc;

    pair_open(&p);
    a = make_qp(&p.s[0], IBV_QPT_UD), b = make_qp(&p.s[1], IBV_QPT_UD);
    ud_ready(a, QKEY), ud_ready(b, QKEY);
    ah = ibv_create_ah(p.s[0].pd, &at);
    assert_non_null(ah);
    fill(p.s[0].buf, 4096, 9);
    s = sge_at(&p.s[0], 0, 4096), r = sge_at(&p.s[1], 0, 4096 + 40);
    assert_int_equal(post_recv(b, 8, &r, 1), 0);
    assert_int_equal(post_send(a, ud_wr(&s, ah, b->qp_num, QKEY)), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(p.s[0].cq).status, IBV_WC_SUCCESS);
    wc = one_wc(p.s[1].cq);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.opcode, IBV_WC_RECV);
    assert_int_equal(wc.byte_len, 4096 + 40);
    assert_int_equal(wc.src_qp, a->qp_num);
    assert_int_equal(wc.imm_data, 0xabcd);
    assert_true(wc.wc_flags & IBV_WC_GRH);
    assert_int_equal(wc.sl, v6 ? 0x9 : 0xa); /* RoCE v2 over IPv6, IPv4 */
    assert_memory_equal(p.s[0].buf, p.s[1].buf + 40, 4096);
    if (v6) {
        assert_int_equal(p.s[1].buf[0] >> 4, 6);
        assert_memory_equal(p.s[1].buf + 8, &from, 16);
        from = link_local_of(IP_B);
        assert_memory_equal(p.s[1].buf + 24, &from, 16);
    } else {
        assert_int_equal(p.s[1].buf[20], 0x45); /* the IPv4 header is the second half of the GRH */
        assert_memory_equal(p.s[1].buf + 32, from.raw + 12, 4);
    }

    /* and that address alone suffices for the answer */
    back = ibv_create_ah_from_wc(p.s[1].pd, &wc, (struct ibv_grh *)p.s[1].buf, 1);
    assert_non_null(back);
    r = sge_at(&p.s[0], 10000, 4096), s = sge_at(&p.s[1], 40, 100);
    assert_int_equal(post_recv(a, 9, &r, 1), 0);
    assert_int_equal(post_send(b, ud_wr(&s, back, wc.src_qp, QKEY)), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(p.s[1].cq).status, IBV_WC_SUCCESS);
    assert_int_equal(one_wc(p.s[0].cq).src_qp, b->qp_num);
    assert_memory_equal(p.s[0].buf + 10040, p.s[0].buf, 100);
    assert_int_equal(ibv_dealloc_pd(p.s[1].pd), EBUSY); /* the address handle uses it */
    assert_int_equal(ibv_destroy_ah(back), 0);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    pair_close(&p);
}

static void a_datagram_brings_its_senders_address(void **state)
{
    (void)state;
    a_datagram_and_its_answer(ah_to(IP_B), false);
    a_datagram_and_its_answer(ah6_to(IP_B), true);
}

static void a_wrong_qkey_is_not_delivered(void **state)
{
    struct ibv_qp *a, *b;
    struct pair p;
    struct ibv_sge s, r;
    struct ibv_ah_attr at = ah_to(IP_B);
    struct ibv_ah *ah;

    (void)state;
    pair_open(&p);
    a = make_qp(&p.s[0], IBV_QPT_UD), b = make_qp(&p.s[1], IBV_QPT_UD);
    ud_ready(a, QKEY), ud_ready(b, QKEY);
    ah = ibv_create_ah(p.s[0].pd, &at);
    s = sge_at(&p.s[0], 0, 100), r = sge_at(&p.s[1], 0, 200);
    assert_int_equal(post_recv(b, 8, &r, 1), 0);
    assert_int_equal(post_send(a, ud_wr(&s, ah, b->qp_num, QKEY + 1)), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(p.s[0].cq).status, IBV_WC_SUCCESS);
    no_wc(p.s[1].cq);
    /* the high bit means the key of the sending queue pair */
    assert_int_equal(post_send(a, ud_wr(&s, ah, b->qp_num, 0x80000000u)), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(p.s[0].cq).status, IBV_WC_SUCCESS);
    assert_int_equal(one_wc(p.s[1].cq).wr_id, 8);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    pair_close(&p);
}

static void addresses_that_lead_nowhere_are_refused(void **state)
{
    struct pair p;
    struct ibv_ah_attr at;
    struct ibv_wc wc = {.wc_flags = 0};
    struct ibv_grh grh = {.paylen = 0};
    struct ibv_qp *a;
    struct ibv_sge s;

    (void)state;
    pair_open(&p);
    at = ah_to(IP_B), at.is_global = 0;
    assert_null(ibv_create_ah(p.s[0].pd, &at));
    assert_int_equal(errno, EINVAL);
    at = ah_to(IP_B), at.grh.sgid_index = 2;
    assert_null(ibv_create_ah(p.s[0].pd, &at));
    at = ah_to(IP_B), at.grh.sgid_index = 1; /* from IPv6 to IPv4 */
    assert_null(ibv_create_ah(p.s[0].pd, &at));
    at = ah6_to(IP_B), at.grh.sgid_index = 0; /* from IPv4 to IPv6 */
    assert_null(ibv_create_ah(p.s[0].pd, &at));
    at = ah6_to(IP_B), at.grh.dgid.raw[9] = 1; /* a link-local one of another manufacturer */
    assert_null(ibv_create_ah(p.s[0].pd, &at));
    at = ah6_to(0xe8000001); /* a group has no link-local address */
    assert_null(ibv_create_ah(p.s[0].pd, &at));
    at = ah_to(IP_B), at.port_num = 2;
    assert_null(ibv_create_ah(p.s[0].pd, &at));
    at = ah_to(IP_B), at.grh.dgid.raw[3] = 1; /* not an IPv4-mapped GID */
    assert_null(ibv_create_ah(p.s[0].pd, &at));
    assert_null(ibv_create_ah_from_wc(p.s[0].pd, &wc, &grh, 1)); /* without a GRH */
    wc.wc_flags = IBV_WC_GRH;
    assert_null(ibv_create_ah_from_wc(p.s[0].pd, &wc, &grh, 1)); /* an empty GRH */
    a = make_qp(&p.s[0], IBV_QPT_UD);
    ud_ready(a, QKEY);
    s = sge_at(&p.s[0], 0, 10);
    assert_int_equal(post_send(a, ud_wr(&s, NULL, 1, QKEY)), EINVAL);
    at = ah_to(IP_B);
    struct ibv_ah *ah = ibv_create_ah(p.s[0].pd, &at);
    struct ibv_send_wr wr = ud_wr(&s, ah, 1, QKEY);
    s = sge_at(&p.s[0], 0, 4097);
    assert_int_equal(post_send(a, wr), EINVAL); /* longer than the path */
    wr.opcode = IBV_WR_RDMA_WRITE;
    assert_int_equal(post_send(a, wr), EOPNOTSUPP);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    assert_int_equal(ibv_destroy_qp(a), 0);
    pair_close(&p);
}

/* A send with a destroyed handle is refused, whatever its memory holds by then. */
static void a_destroyed_address_handle_is_refused(void **state)
{
    struct pair p;
    struct ibv_qp *a;
    struct ibv_sge s;
    struct ibv_ah_attr at = ah_to(IP_B);
    struct ibv_ah *ah, *more[32];

    (void)state;
    pair_open(&p);
    a = make_qp(&p.s[0], IBV_QPT_UD);
    ud_ready(a, QKEY);
    s = sge_at(&p.s[0], 0, 10);
    ah = ibv_create_ah(p.s[0].pd, &at);
    assert_int_equal(post_send(a, ud_wr(&s, ah, 1, QKEY)), 0);
    assert_int_equal(ibv_destroy_ah(ah), 0); /* posted requests have the address already */
    assert_int_equal(post_send(a, ud_wr(&s, ah, 1, QKEY)), EINVAL);
    assert_int_equal(ibv_destroy_ah(ah), EINVAL);
    for (unsigned i = 0; i < 32; i++) { /* its entry is not reused for long */
        more[i] = ibv_create_ah(p.s[0].pd, &at);
        assert_ptr_not_equal(more[i], ah);
    }
    assert_int_equal(post_send(a, ud_wr(&s, ah, 1, QKEY)), EINVAL);
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(ibv_destroy_ah(more[i]), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(p.s[0].cq).status, IBV_WC_SUCCESS);
    assert_int_equal(ibv_destroy_qp(a), 0);
    pair_close(&p);
}

/* Counts IGMP frames, by type. */
struct igmp_seen {
    unsigned joins, leaves;
    uint8_t dst_mac[6];
};

static bool see_igmp(void *ctx, struct rte_mbuf *m)
{
    struct igmp_seen *n = ctx;
    const uint8_t *f = rte_pktmbuf_mtod(m, const uint8_t *);
    uint32_t sum = 0;

    if (f[23] != 2)
        return false;
    for (unsigned i = 14; i < 38; i += 2)
        sum += (uint32_t)f[i] << 8 | f[i + 1];
    assert_int_equal((sum & 0xffff) + (sum >> 16), 0xffff); /* header checksum */
    n->joins += f[38] == 0x16;
    n->leaves += f[38] == 0x17;
    memcpy(n->dst_mac, f, 6);
    return true;
}

static unsigned refused;
static void say_refused(void *ctx, const char *what, const char *text)
{
    (void)ctx, (void)what;
    refused += strstr(text, "ff12:0000:0000:0000:0000:0000:0000:0001") != NULL;
}

static void multicast_reaches_attached_queue_pairs_until_they_detach(void **state)
{
    const union ibv_gid v6 = {.raw = {0xff, 0x12, [15] = 1}};
    const struct hca_driver drv = {.say = say_refused};
    const uint32_t group = 0xe8010203;
    struct igmp_seen igmp = {0};
    union ibv_gid gid = gid_of(group), uni = gid_of(IP_A);
    struct ibv_qp *a, *b, *b2;
    struct pair p;
    struct ibv_sge s, r;
    struct ibv_ah_attr at = ah_to(group);
    struct ibv_ah *ah;
    struct ibv_wc wc[4];

    (void)state;
    pair_open_driven(&p, &drv);
    p.drop = see_igmp, p.drop_ctx = &igmp;
    a = make_qp(&p.s[0], IBV_QPT_UD);
    b = make_qp(&p.s[1], IBV_QPT_UD), b2 = make_qp(&p.s[1], IBV_QPT_UD);
    ud_ready(a, QKEY), ud_ready(b, QKEY), ud_ready(b2, QKEY);
    assert_int_equal(ibv_attach_mcast(b, &uni, 0), EINVAL);
    assert_int_equal(ibv_attach_mcast(b, &v6, 0), EINVAL);
    assert_int_equal(refused, 1); /* in words */
    assert_int_equal(ibv_attach_mcast(b, &gid, 0), 0);
    assert_int_equal(ibv_attach_mcast(b, &gid, 0), 0);
    assert_int_equal(ibv_attach_mcast(b2, &gid, 0), 0);
    pair_settle(&p);
    assert_int_equal(igmp.joins, 1); /* the host joins once, whatever its queue pairs do */
    assert_memory_equal(igmp.dst_mac, "\x01\x00\x5e\x01\x02\x03", 6);
    ah = ibv_create_ah(p.s[0].pd, &at);
    s = sge_at(&p.s[0], 0, 50), r = sge_at(&p.s[1], 0, 200);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(post_recv(i & 1 ? b : b2, i, &r, 1), 0);
    assert_int_equal(post_send(a, ud_wr(&s, ah, 0xffffff, QKEY)), 0);
    pair_settle(&p);
    assert_int_equal(ibv_poll_cq(p.s[1].cq, 4, wc), 2);
    assert_int_equal(ibv_destroy_qp(b), EBUSY); /* attached */
    assert_int_equal(ibv_detach_mcast(b, &gid, 0), 0);
    assert_int_equal(ibv_detach_mcast(b, &gid, 0), EINVAL);
    assert_int_equal(post_send(a, ud_wr(&s, ah, 0xffffff, QKEY)), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(p.s[1].cq).qp_num, b2->qp_num);
    assert_int_equal(igmp.leaves, 0);
    assert_int_equal(ibv_detach_mcast(b2, &gid, 0), 0);
    pair_settle(&p);
    assert_int_equal(igmp.leaves, 1);
    assert_memory_equal(igmp.dst_mac, "\x01\x00\x5e\x00\x00\x02", 6);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    assert_int_equal(ibv_destroy_qp(b2), 0);
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_datagram_brings_its_senders_address),
        cmocka_unit_test(a_wrong_qkey_is_not_delivered),
        cmocka_unit_test(addresses_that_lead_nowhere_are_refused),
        cmocka_unit_test(a_destroyed_address_handle_is_refused),
        cmocka_unit_test(multicast_reaches_attached_queue_pairs_until_they_detach),
    };

    return cmocka_run_group_tests_name("hca/ud", tests, NULL, NULL);
}
