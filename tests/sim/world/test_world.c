/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks of several ports in virtual time: a GPU's planes and its NIC are devices of their own, and
 * striping over the planes in the proportion of their links reaches the GPU's whole bandwidth.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "sim/world/world.h"
#include "tests/support/eal.h"

#define UNIT   (2u << 20) /* bytes of a stripe for each NVLink of a plane */
#define BYTES  (18 * UNIT)
#define PLANES 4
/* Payload per link byte of a full packet of an RC WRITE, but the first, at MTU 4096: Ethernet 14,
 * IPv4 20, UDP 8, BTH 12, ICRC 4, link 24. */
#define PACKET_EFFICIENCY (4096.0 / (4096 + 82))

static const unsigned lanes[PLANES] = {5, 4, 4, 5};
static struct rte_mempool *pool;

struct gpu {
    uint8_t *buf;
    struct ibv_mr *mr[PLANES];
    struct ibv_cq *cq[PLANES];
    struct ibv_qp *qp[PLANES];
};

static void gpu_open(struct gpu *g, struct world *w, unsigned rank, uint8_t fill)
{
    g->buf = malloc(BYTES);
    memset(g->buf, fill, BYTES);
    for (unsigned p = 0; p < PLANES; p++) {
        struct ibv_context *ctx = world_context(w, rank, p);
        struct ibv_pd *pd = ibv_alloc_pd(ctx);
        struct ibv_qp_init_attr init = {
            .qp_type = IBV_QPT_RC,
            .cap = {.max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};

        g->cq[p] = ibv_create_cq(ctx, 8, NULL, NULL, 0);
        init.send_cq = init.recv_cq = g->cq[p];
        g->mr[p] = ibv_reg_mr(pd, g->buf, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        g->qp[p] = ibv_create_qp(pd, &init);
        assert_non_null(g->mr[p]);
        assert_non_null(g->qp[p]);
    }
}

static void join(struct gpu *g, struct world *w, unsigned peer_rank, const struct gpu *peer,
                 unsigned p)
{
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

    assert_int_equal(
        ibv_modify_qp(g->qp[p], &a,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .path_mtu = IBV_MTU_4096,
                             .dest_qp_num = peer->qp[p]->qp_num,
                             .max_dest_rd_atomic = 1,
                             .min_rnr_timer = 12,
                             .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}}};
    assert_int_equal(ibv_query_gid(world_context(w, peer_rank, p), 1, 0, &a.ah_attr.grh.dgid), 0);
    assert_int_equal(ibv_modify_qp(g->qp[p], &a,
                                   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                       IBV_QP_MIN_RNR_TIMER),
                     0);
    a = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    assert_int_equal(ibv_modify_qp(g->qp[p], &a,
                                   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
                     0);
}

static void write_stripe(struct gpu *from, const struct gpu *to, unsigned p, size_t at,
                         uint32_t len)
{
    struct ibv_sge sge = {(uintptr_t)from->buf + at, len, from->mr[p]->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)to->buf + at, to->mr[p]->rkey}};
    struct ibv_send_wr *bad;

    assert_int_equal(ibv_post_send(from->qp[p], &wr, &bad), 0);
}

static void run_to_completion(struct world *w, struct gpu *g, const bool *used)
{
    unsigned left = 0;
    struct ibv_wc wc;

    for (unsigned p = 0; p < PLANES; p++)
        left += used[p];
    while (left) {
        if (!world_step(w, PS_PER_S))
            fail_msg("nothing moves and %u stripes are not done", left);
        for (unsigned p = 0; p < PLANES; p++)
            while (ibv_poll_cq(g->cq[p], 1, &wc) == 1) {
                assert_int_equal(wc.status, IBV_WC_SUCCESS);
                left--;
            }
    }
}

struct fixture {
    struct fabric *f;
    struct world *w;
    uint64_t *frames; /* by direction of a link */
};

static void count(void *ctx, unsigned dirlink, struct rte_mbuf *m, int64_t now)
{
    (void)m;
    (void)now;
    ((struct fixture *)ctx)->frames[dirlink]++;
}

static void fixture_up(struct fixture *b, const char *conf, unsigned n)
{
    static uint16_t hosts[32];
    struct world_cfg wc = {.nranks = n, .host_of_rank = hosts, .pool = pool, .seed = 1};

    for (unsigned i = 0; i < n; i++)
        hosts[i] = (uint16_t)i;
    b->f = fabric_load(conf, NULL);
    assert_non_null(b->f);
    wc.fab = b->f;
    assert_int_equal(world_create(&b->w, &wc), 0);
    b->frames = calloc(2u * b->f->n_links, sizeof(*b->frames));
    net_tap(world_net(b->w), count, b);
}

static void fixture_down(struct fixture *b)
{
    world_destroy(b->w);
    fabric_free(b->f);
    free(b->frames);
}

static void a_rank_has_a_device_for_each_port_of_its_host(void **state)
{
    union ibv_gid gid;
    char name[16];
    struct fixture b;

    (void)state;
    fixture_up(&b, "conf/rail-2x4.conf", 8);
    for (unsigned r = 0; r < 8; r++) {
        assert_int_equal(world_ports(b.w, r), 5);
        for (unsigned p = 0; p < 5; p++) {
            struct ibv_context *ctx;

            ctx = world_context(b.w, r, p);
            assert_ptr_equal(world_context(b.w, r, p), ctx);

            snprintf(name, sizeof(name), "trib%u", p);
            assert_string_equal(ibv_get_device_name(ctx->device), name);
            assert_int_equal(ibv_query_gid(ctx, 1, 0, &gid), 0);
            assert_int_equal(gid.raw[12] << 24 | gid.raw[13] << 16 | gid.raw[14] << 8 | gid.raw[15],
                             b.f->nodes[b.f->hosts[r]].ip_of_port[p]);
            assert_non_null(world_hca(b.w, r, p));
        }
        assert_null(world_context(b.w, r, 5));
        assert_null(world_hca(b.w, r, 5));
    }
    fixture_down(&b);
    fixture_up(&b, "conf/leaf-spine-8.conf", 8);
    assert_int_equal(world_ports(b.w, 7), 1);
    fixture_down(&b);
}

/* F2: 450 GB/s from one GPU to another, and each plane carries its share and nothing else. */
static void stripes_over_the_planes_of_a_node_reach_450_gb_a_second(void **state)
{
    const bool all[PLANES] = {true, true, true, true};
    struct gpu from, to;
    struct fixture b;
    int64_t start;
    double gbs;
    size_t at = 0;

    (void)state;
    fixture_up(&b, "conf/h100-node.conf", 8);
    gpu_open(&from, b.w, 1, 0x5a);
    gpu_open(&to, b.w, 6, 0);
    for (unsigned p = 0; p < PLANES; p++) {
        join(&from, b.w, 6, &to, p);
        join(&to, b.w, 1, &from, p);
    }
    start = world_now(b.w);
    for (unsigned p = 0; p < PLANES; at += lanes[p++] * UNIT)
        write_stripe(&from, &to, p, at, lanes[p] * UNIT);
    run_to_completion(b.w, &from, all);
    assert_memory_equal(from.buf, to.buf, BYTES);
    gbs = BYTES / ((double)(world_now(b.w) - start) * 1e-12) / 1e9;
    print_message("%.1f GB/s of payload, %.1f with headers\n", gbs, gbs / PACKET_EFFICIENCY);
    assert_true(gbs / PACKET_EFFICIENCY > 0.97 * 450); /* 38 MB take 84 us, and a round trip */
    assert_true(gbs / PACKET_EFFICIENCY < 450);
    for (unsigned l = 0; l < b.f->n_links; l++) {
        const struct fab_link *k = &b.f->links[l];
        bool ours = k->a == b.f->hosts[1] && k->a_port < PLANES;

        if (ours)
            assert_int_equal(b.frames[2 * l], lanes[k->a_port] * UNIT / 4096);
        else if (k->a != b.f->hosts[6] || k->a_port >= PLANES)
            assert_int_equal(b.frames[2 * l] + b.frames[2 * l + 1], 0);
    }
    free(from.buf);
    free(to.buf);
    fixture_down(&b);
}

/* The process of a rank dies with all its ports. */
static void a_killed_rank_answers_on_no_port(void **state)
{
    struct gpu from, to;
    struct ibv_wc wc;
    struct fixture b;

    (void)state;
    fixture_up(&b, "conf/rail-2x4.conf", 8);
    gpu_open(&from, b.w, 0, 1);
    gpu_open(&to, b.w, 1, 0);
    for (unsigned p = 0; p < PLANES; p++) {
        join(&from, b.w, 1, &to, p);
        join(&to, b.w, 0, &from, p);
    }
    world_kill(b.w, 1);
    for (unsigned p = 0; p < PLANES; p++)
        write_stripe(&from, &to, p, p * UNIT, UNIT);
    while (world_step(b.w, PS_PER_MS * 10))
        ;
    for (unsigned p = 0; p < PLANES; p++)
        assert_int_equal(ibv_poll_cq(from.cq[p], 1, &wc), 0);
    assert_int_equal(to.buf[0], 0);
    assert_int_equal(to.buf[3 * UNIT], 0);
    free(from.buf);
    free(to.buf);
    fixture_down(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_has_a_device_for_each_port_of_its_host),
        cmocka_unit_test(stripes_over_the_planes_of_a_node_reach_450_gb_a_second),
        cmocka_unit_test(a_killed_rank_answers_on_no_port),
    };

    test_eal_init();
    pool = test_pool(65535);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
