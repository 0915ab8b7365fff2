/* SPDX-License-Identifier: BSD-3-Clause */
/* Lifetimes of objects, completion queues, and the attributes of the device. */
#include "tests/host/hca/pair.h"

static void what_is_in_use_cannot_go(void **state)
{
    struct pair p;
    struct side *s = &p.s[0];
    struct ibv_comp_channel *ch;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_srq_init_attr sa = {.attr = {.max_wr = 8, .max_sge = 1}};
    struct ibv_qp *qp;

    (void)state;
    pair_open(&p);
    ch = ibv_create_comp_channel(s->ctx);
    cq = ibv_create_cq(s->ctx, 10, NULL, ch, 0);
    srq = ibv_create_srq(s->pd, &sa);
    qp = make_qp_on(s, IBV_QPT_RC, cq, s->cq, srq);
    assert_non_null(qp);
    assert_int_equal(ibv_dealloc_pd(s->pd), EBUSY);
    assert_int_equal(ibv_destroy_cq(cq), EBUSY);
    assert_int_equal(ibv_destroy_cq(s->cq), EBUSY);
    assert_int_equal(ibv_destroy_srq(srq), EBUSY);
    assert_int_equal(ibv_destroy_comp_channel(ch), EBUSY);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_comp_channel(ch), EBUSY); /* still the CQ's */
    assert_int_equal(ibv_destroy_srq(srq), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(ch), 0);
    assert_int_equal(ibv_dealloc_pd(s->pd), EBUSY); /* still the MR's */
    pair_close(&p);
}

static void closing_a_device_takes_what_was_left_behind(void **state)
{
    struct pair p;
    struct ibv_context *ctx;
    struct ibv_comp_channel *ch;
    struct ibv_cq *cq;
    struct ibv_pd *pd;
    struct ibv_qp_init_attr ia = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};

    (void)state;
    pair_open(&p);
    ctx = ibv_open_device(hca_device(p.s[0].h));
    pd = ibv_alloc_pd(ctx);
    ch = ibv_create_comp_channel(ctx);
    cq = ibv_create_cq(ctx, 10, NULL, ch, 0);
    ia.send_cq = ia.recv_cq = cq;
    assert_non_null(ibv_create_qp(pd, &ia));
    assert_non_null(ibv_reg_mr(pd, p.s[0].buf, 10, 0));
    assert_int_equal(ibv_close_device(ctx), 0); /* the leak checker finds what is not freed here */
    pair_close(&p);
}

static void objects_of_different_contexts_do_not_mix(void **state)
{
    struct pair p;
    struct ibv_qp_init_attr ia = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};

    (void)state;
    pair_open(&p);
    ia.send_cq = p.s[0].cq, ia.recv_cq = p.s[1].cq;
    assert_null(ibv_create_qp(p.s[0].pd, &ia));
    assert_int_equal(errno, EINVAL);
    ia.recv_cq = p.s[0].cq;
    ia.qp_type = IBV_QPT_RAW_PACKET;
    assert_null(ibv_create_qp(p.s[0].pd, &ia));
    assert_int_equal(errno, EOPNOTSUPP);
    ia.qp_type = IBV_QPT_RC;
    ia.cap.max_inline_data = 257;
    assert_null(ibv_create_qp(p.s[0].pd, &ia));
    ia.cap.max_inline_data = 0, ia.cap.max_send_sge = 17;
    assert_null(ibv_create_qp(p.s[0].pd, &ia));
    pair_close(&p);
}

static void registrations_that_contradict_themselves_are_refused(void **state)
{
    struct pair p;
    struct ibv_mr *m[2];
    uint32_t first;

    (void)state;
    pair_open(&p);
    assert_null(ibv_reg_mr(p.s[0].pd, p.s[0].buf, 10, IBV_ACCESS_REMOTE_WRITE));
    assert_int_equal(errno, EINVAL);
    assert_null(ibv_reg_mr(p.s[0].pd, p.s[0].buf, SIZE_MAX, 0));
    assert_int_equal(errno, EINVAL);
    assert_null(ibv_reg_mr_iova2(p.s[0].pd, p.s[0].buf, 8192,
                                 (UINT64_MAX & ~4095ull) | ((uintptr_t)p.s[0].buf & 4095),
                                 0)); /* wraps */
    assert_int_equal(errno, EINVAL);
    errno = 0; /* another offset in its page */
    assert_null(ibv_reg_mr_iova(p.s[0].pd, p.s[0].buf, 10, (uintptr_t)p.s[0].buf + 4, 0));
    assert_int_equal(errno, EINVAL);
    m[0] = ibv_reg_mr(p.s[0].pd, p.s[0].buf, 10, 0);
    assert_int_equal(
        ibv_rereg_mr(m[0], IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p.s[0].buf, SIZE_MAX, 0),
        IBV_REREG_MR_ERR_INPUT);
    assert_int_equal(ibv_dereg_mr(m[0]), 0);
    assert_null(ibv_reg_mr(p.s[0].pd, p.s[0].buf, 10, IBV_ACCESS_ON_DEMAND));
    assert_int_equal(errno, EOPNOTSUPP);
    assert_null(ibv_reg_dmabuf_mr(p.s[0].pd, 0, 4096, 0, -1, 0));
    assert_int_equal(errno, EOPNOTSUPP);
    /* keys are never 0, all different, and differ when their index is reused */
    m[0] = ibv_reg_mr(p.s[0].pd, p.s[0].buf, 10, IBV_ACCESS_RELAXED_ORDERING);
    m[1] = ibv_reg_mr(p.s[0].pd, p.s[0].buf, 10, 0);
    assert_true(m[0]->lkey && m[1]->lkey && m[0]->lkey != m[1]->lkey);
    assert_int_equal(m[0]->lkey, m[0]->rkey);
    first = m[0]->lkey;
    for (unsigned i = 0; i < 300; i++) {
        uint32_t key = m[0]->lkey;

        assert_int_equal(ibv_dereg_mr(m[0]), 0);
        m[0] = ibv_reg_mr(p.s[0].pd, p.s[0].buf, 10, 0);
        assert_int_not_equal(m[0]->lkey, key);
        assert_int_not_equal(m[0]->lkey, first); /* its index is reused, the key is not */
        assert_int_not_equal(m[0]->lkey, m[1]->lkey);
    }
    assert_int_equal(ibv_dereg_mr(m[0]), 0);
    assert_int_equal(ibv_dereg_mr(m[1]), 0);
    pair_close(&p);
}

/* Registered under another address, or zero-based: peers and scatter lists use that address. */
static void regions_are_known_by_the_address_they_were_given(void **state)
{
    struct ibv_qp *a, *b;
    struct pair p;
    struct ibv_mr *zero, *iova;
    struct ibv_sge s;
    uint64_t at;
    struct ibv_send_wr wr = {
        .sg_list = &s, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};

    (void)state;
    pair_open(&p);
    rc_pair(&p, &a, &b);
    zero = ibv_reg_mr(p.s[1].pd, p.s[1].buf, 4096, IBV_ACCESS_ZERO_BASED | 3);
    at = 0x7000 | ((uintptr_t)p.s[0].buf & 4095);
    iova = ibv_reg_mr_iova(p.s[0].pd, p.s[0].buf, 4096, at, 0);
    assert_non_null(iova);
    fill(p.s[0].buf, 4096, 3);
    s = (struct ibv_sge){at + 100, 50, iova->lkey};
    wr.wr.rdma.remote_addr = 200, wr.wr.rdma.rkey = zero->rkey;
    assert_int_equal(post_send(a, wr), 0);
    pair_settle(&p);
    assert_int_equal(one_wc(p.s[0].cq).status, IBV_WC_SUCCESS);
    assert_memory_equal(p.s[0].buf + 100, p.s[1].buf + 200, 50);
    assert_int_equal(ibv_dereg_mr(zero), 0);
    assert_int_equal(ibv_dereg_mr(iova), 0);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    pair_close(&p);
}

/* ---- completion queues ---- */

static void a_resized_cq_keeps_its_completions_in_order(void **state)
{
    struct pair p;
    struct ibv_qp *a, *b;
    struct ibv_cq *cq;
    struct ibv_wc wc[16];
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};

    (void)state;
    pair_open(&p);
    cq = ibv_create_cq(p.s[0].ctx, 8, NULL, NULL, 0);
    a = make_qp_on(&p.s[0], IBV_QPT_RC, cq, cq, NULL), b = make_qp(&p.s[1], IBV_QPT_RC);
    rc_connect(a, IP_B, b->qp_num);
    rc_connect(b, IP_A, a->qp_num);
    wr.wr.rdma.remote_addr = (uintptr_t)p.s[1].buf, wr.wr.rdma.rkey = p.s[1].mr->rkey;
    for (unsigned i = 0; i < 6; i++, wr.wr_id++)
        assert_int_equal(post_send(a, wr), 0);
    pair_settle(&p);
    assert_int_equal(ibv_poll_cq(cq, 4, wc), 4);
    for (unsigned i = 0; i < 5; i++, wr.wr_id++)
        assert_int_equal(post_send(a, wr), 0);
    pair_settle(&p);
    assert_int_equal(ibv_resize_cq(cq, 4), EINVAL); /* it holds seven */
    assert_int_equal(ibv_resize_cq(cq, 16), 0);
    assert_int_equal(cq->cqe, 16);
    assert_int_equal(ibv_poll_cq(cq, 16, wc), 7);
    for (unsigned i = 0; i < 7; i++)
        assert_int_equal(wc[i].wr_id, 4 + i);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    pair_close(&p);
}

static void completions_of_a_destroyed_queue_pair_are_gone(void **state)
{
    struct pair p;
    struct ibv_qp *a, *b, *c, *d;
    struct ibv_cq *other;
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};

    (void)state;
    pair_open(&p);
    other = ibv_create_cq(p.s[0].ctx, 4, NULL, NULL, 0);
    a = make_qp_on(&p.s[0], IBV_QPT_RC, p.s[0].cq, other, NULL);
    b = make_qp(&p.s[1], IBV_QPT_RC);
    rc_connect(a, IP_B, b->qp_num);
    rc_connect(b, IP_A, a->qp_num);
    rc_pair(&p, &c, &d);
    wr.wr.rdma.remote_addr = (uintptr_t)p.s[1].buf, wr.wr.rdma.rkey = p.s[1].mr->rkey;
    assert_int_equal(post_send(a, wr), 0);
    assert_int_equal(post_send(c, wr), 0);
    assert_int_equal(post_send(a, wr), 0);
    pair_settle(&p);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(one_wc(p.s[0].cq).qp_num, c->qp_num);
    assert_int_equal(ibv_destroy_qp(b), 0);
    assert_int_equal(ibv_destroy_qp(c), 0);
    assert_int_equal(ibv_destroy_qp(d), 0);
    assert_int_equal(ibv_destroy_cq(other), 0);
    pair_close(&p);
}

/* ---- attributes of the device ---- */

static void the_device_says_what_it_is(void **state)
{
    struct pair p;
    struct ibv_context *c;
    struct ibv_device_attr_ex dx;
    struct ibv_port_attr pa;
    struct ibv_gid_entry ge, table[2];
    union ibv_gid gid, want = gid_of(IP_A);
    __be16 pkey;

    (void)state;
    pair_open(&p);
    c = p.s[0].ctx;
    assert_string_equal(ibv_get_device_name(c->device), "trib0");
    assert_int_equal(ibv_query_device_ex(c, NULL, &dx), 0);
    assert_int_equal(dx.orig_attr.phys_port_cnt, 1);
    assert_int_equal(dx.orig_attr.node_guid, ibv_get_device_guid(c->device));
    assert_true(dx.orig_attr.node_guid != 0);
    assert_int_equal(ibv_query_port(c, 1, &pa), 0);
    assert_int_equal(pa.state, IBV_PORT_ACTIVE);
    assert_int_equal(pa.active_mtu, IBV_MTU_4096);
    assert_int_equal(pa.link_layer, IBV_LINK_LAYER_ETHERNET);
    assert_int_equal(pa.active_width, 2); /* 4x */
    assert_int_equal(pa.active_speed, 128);
    assert_int_equal(ibv_query_port(c, 2, &pa), EINVAL);
    assert_int_equal(ibv_query_gid(c, 1, 0, &gid), 0);
    assert_memory_equal(&gid, &want, 16);
    assert_int_equal(ibv_query_gid(c, 1, 1, &gid), 0);
    want = link_local_of(IP_A);
    assert_memory_equal(&gid, &want, 16);
    assert_int_not_equal(ibv_query_gid(c, 1, 2, &gid), 0);
    assert_int_not_equal(ibv_query_gid(c, 1, -1, &gid), 0);
    assert_int_equal(ibv_query_gid_ex(c, 1, 0, &ge, 0), 0);
    assert_int_equal(ge.gid_type, IBV_GID_TYPE_ROCE_V2);
    assert_int_equal(ibv_query_gid_table(c, &ge, 1, 0), -EINVAL); /* not all entries fit */
    assert_int_equal(ibv_query_gid_table(c, table, 2, 0), 2);
    assert_memory_equal(&table[0], &ge, sizeof(ge));
    assert_int_equal(table[1].gid_index, 1);
    assert_memory_equal(&table[1].gid, &want, 16);
    assert_int_equal(ibv_query_pkey(c, 1, 0, &pkey), 0);
    assert_int_equal(pkey, 0xffff);
    assert_int_equal(ibv_get_pkey_index(c, 1, pkey), 0);
    pair_close(&p);
}

/* Calls of newer or richer devices answer that they are not supported; none may crash. */
static struct {
    unsigned n;
    char text[512];
} refusal;

static void hear(void *ctx, const char *what, const char *text)
{
    (void)ctx;
    assert_non_null(what);
    refusal.n++;
    snprintf(refusal.text, sizeof(refusal.text), "%s", text);
}

/* A message that names the device and then the call. */
static void assert_refusal(const char *of)
{
    char begin[80];

    snprintf(begin, sizeof(begin), "trib0: %s", of);
    assert_int_equal(refusal.n, 1);
    assert_memory_equal(refusal.text, begin, strlen(begin));
    refusal.n = 0;
}

static void objects_that_are_not_offered_say_so(void **state)
{
    const struct hca_driver drv = {.say = hear};
    struct ibv_qp_init_attr raw = {.qp_type = IBV_QPT_RAW_PACKET}, xrc = {.qp_type = 9};
    struct pair p;
    struct ibv_context *c;
    struct ibv_qp *qp;
    struct ibv_xrcd_init_attr xrcd = {.comp_mask = 3, .fd = -1, .oflags = 0};
    struct ibv_flow_attr flow = {.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(flow)};
    struct ibv_wq_init_attr wq = {.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1};
    struct ibv_srq_init_attr_ex tm = {.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
                                      .srq_type = IBV_SRQT_TM};
    struct ibv_cq_init_attr_ex cx = {.cqe = 4, .wc_flags = IBV_WC_EX_WITH_CVLAN};
    struct ibv_counters_init_attr ci = {0};

    (void)state;
    pair_open_driven(&p, &drv);
    c = p.s[0].ctx;
    qp = make_qp(&p.s[0], IBV_QPT_RC);
    raw.send_cq = raw.recv_cq = xrc.send_cq = xrc.recv_cq = p.s[0].cq;
#define NONE(call)                                                                                 \
    do {                                                                                           \
        errno = 0;                                                                                 \
        assert_null(call);                                                                         \
        assert_int_equal(errno, EOPNOTSUPP);                                                       \
        assert_refusal("");                                                                        \
    } while (0)
    NONE(ibv_alloc_null_mr(p.s[0].pd));
    NONE(ibv_open_xrcd(c, &xrcd));
    NONE(ibv_create_flow(qp, &flow));
    NONE(ibv_create_wq(c, &wq));
    NONE(ibv_create_srq_ex(c, &tm));
    NONE(ibv_create_cq_ex(c, &cx));
    NONE(ibv_create_counters(c, &ci));
    NONE(ibv_reg_mr(p.s[0].pd, p.s[0].buf, 10, IBV_ACCESS_ON_DEMAND));
    NONE(ibv_reg_dmabuf_mr(p.s[0].pd, 0, 4096, 0, p.s[0].ctx->async_fd, 0)); /* cannot be mapped */
    NONE(ibv_create_qp(p.s[0].pd, &raw));
    NONE(ibv_create_qp(p.s[0].pd, &xrc));
#undef NONE
    /* Programs ask so whether dma-bufs are supported at all: an answer, but no message. */
    errno = 0;
    assert_null(ibv_reg_dmabuf_mr(p.s[0].pd, 0, 4096, 0, -1, 0));
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(refusal.n, 0);
    assert_null(ibv_open_xrcd(c, &xrcd));
    assert_refusal("ibv_open_xrcd: XRC (extended reliable connections) is not supported, expected");
    assert_null(ibv_create_qp(p.s[0].pd, &xrc));
    assert_refusal("ibv_create_qp: found type 9 (XRC), expected RC (2), UC (3) or UD (4)");
    assert_int_equal(ibv_destroy_qp(qp), 0);
    pair_close(&p);
}

static void calls_that_are_not_offered_say_so(void **state)
{
    const struct hca_driver drv = {.say = hear};
    struct ibv_send_wr tso = {.opcode = IBV_WR_TSO};
    struct ibv_modify_cq_attr mc = {.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {1, 1}};
    struct ibv_qp_rate_limit_attr rl = {.rate_limit = 1};
    struct ibv_ece ece = {.vendor_id = 1};
    struct pair p;
    struct ibv_qp *qp;

    (void)state;
    pair_open_driven(&p, &drv);
    qp = make_qp(&p.s[0], IBV_QPT_RC);
    assert_int_equal(post_send(qp, tso), EOPNOTSUPP);
    assert_refusal("a work request of opcode 10 ");
    assert_int_equal(ibv_modify_cq(p.s[0].cq, &mc), EOPNOTSUPP);
    assert_refusal("ibv_modify_cq");
    assert_int_equal(ibv_modify_qp_rate_limit(qp, &rl), EOPNOTSUPP);
    assert_refusal("ibv_modify_qp_rate_limit");
    assert_int_equal(ibv_advise_mr(p.s[0].pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, NULL, 0),
                     EOPNOTSUPP);
    assert_refusal("ibv_advise_mr");
    assert_int_equal(ibv_set_ece(qp, &ece), EOPNOTSUPP);
    assert_refusal("ibv_set_ece");
    assert_int_equal(ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 0), 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    pair_close(&p);
}

static void a_query_gives_back_what_modify_took(void **state)
{
    struct pair p;
    struct ibv_qp *a, *b;
    struct ibv_qp_attr at;
    struct ibv_qp_init_attr ia;

    (void)state;
    pair_open(&p);
    rc_pair(&p, &a, &b);
    assert_int_equal(ibv_query_qp(a, &at, IBV_QP_STATE | IBV_QP_AV, &ia), 0);
    assert_int_equal(at.qp_state, IBV_QPS_RTS);
    assert_int_equal(at.dest_qp_num, b->qp_num);
    assert_int_equal(at.path_mtu, IBV_MTU_1024);
    assert_int_equal(at.timeout, 14);
    assert_int_equal(at.min_rnr_timer, 12);
    assert_int_equal(at.sq_psn, 7);
    assert_int_equal(at.ah_attr.grh.dgid.raw[15], 2);
    assert_int_equal(ia.cap.max_send_wr, 64);
    assert_ptr_equal(ia.send_cq, p.s[0].cq);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    pair_close(&p);
}

/* A driver's kick: the HCA hears what time it is. */
static void clock_kick(void *ctx)
{
    struct pair *p = ctx;
    struct endpoint *ep = &p->s[0].ep;
    struct rte_mbuf *m;

    if (ep->output)
        assert_int_equal(ep->output(ep->ctx, ENDPOINT_ACK, &m, 1, p->now_ps), 0);
}

static void the_clock_runs_while_nothing_is_done(void **state)
{
    struct pair p;
    struct hca_driver drv = {.ctx = &p, .kick = clock_kick};
    struct ibv_values_ex v = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};

    (void)state;
    pair_open_driven(&p, &drv);
    for (int64_t s = 1; s < 4; s++) {
        p.now_ps = s * 1000000000000 + 7000;
        assert_int_equal(ibv_query_rt_values_ex(p.s[0].ctx, &v), 0);
        assert_int_equal(v.raw_clock.tv_sec, s);
        assert_int_equal(v.raw_clock.tv_nsec, 7);
    }
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_in_use_cannot_go),
        cmocka_unit_test(closing_a_device_takes_what_was_left_behind),
        cmocka_unit_test(objects_of_different_contexts_do_not_mix),
        cmocka_unit_test(registrations_that_contradict_themselves_are_refused),
        cmocka_unit_test(regions_are_known_by_the_address_they_were_given),
        cmocka_unit_test(a_resized_cq_keeps_its_completions_in_order),
        cmocka_unit_test(completions_of_a_destroyed_queue_pair_are_gone),
        cmocka_unit_test(the_device_says_what_it_is),
        cmocka_unit_test(the_clock_runs_while_nothing_is_done),
        cmocka_unit_test(objects_that_are_not_offered_say_so),
        cmocka_unit_test(calls_that_are_not_offered_say_so),
        cmocka_unit_test(a_query_gives_back_what_modify_took),
    };

    return cmocka_run_group_tests_name("hca/objects", tests, NULL, NULL);
}
