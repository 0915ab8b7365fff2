/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arbitrary frames into an rnic with one queue pair of each kind. Nothing may crash, leak or write
 * outside of the regions.
 *
 * Input: a sequence of records { kind, length, bytes }. Kind 0 is a frame as it stands. The others
 * are transport headers and payload only: Ethernet, IPv4, UDP, queue pair and PSN are made right,
 * so that the state machines are reached.
 */
#include "roce/engine.h"
#include "tests/support/eal.h"

#include <errno.h>
#include <rte_byteorder.h>
#include <rte_mempool.h>
#include <string.h>

#define IP_HERE   0x0a000001u
#define IP_PEER   0x0a000002u
#define MEM_BYTES 8192u
#define N_QPS     4

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz {
    struct rnic *r;
    struct qp *qp[N_QPS];
    struct rq *rq;
    uint8_t before[64], mem[MEM_BYTES], after[64];
};

static struct rte_mempool *pool;

static int mem(void *user, struct qp *qp, bool remote, uint32_t key, uint64_t addr, uint64_t len,
               unsigned access, void **out)
{
    struct fuzz *f = user;

    (void)qp, (void)remote, (void)access;
    if (addr > MEM_BYTES || len > MEM_BYTES - addr)
        return -EFAULT;
    if (key & 0x80)
        return -EINVAL;
    *out = key & 0x40 ? NULL : f->mem + addr;
    return 0;
}

static void complete(void *user, const struct cqe *c)
{
    (void)user, (void)c;
}

static enum sink_verdict sink(void *user, struct qp *qp, const struct roce_pkt *k,
                              struct rte_mbuf *m, int64_t now_ps)
{
    (void)user, (void)qp, (void)now_ps;
    if (k->len % 5 == 0)
        return SINK_RNR;
    if (k->len % 7 == 0) {
        rte_pktmbuf_free(m);
        return SINK_TAKEN;
    }
    return k->len % 11 == 0 ? SINK_INVALID : SINK_COPIED;
}

static void connect_qps(struct fuzz *f)
{
    static const uint8_t types[N_QPS] = {QP_RC, QP_RC, QP_UC, QP_UD};

    for (unsigned i = 0; i < N_QPS; i++) {
        struct qp_cfg q = {
            .type = types[i], .sq_depth = 8, .rq = i == 1 ? NULL : f->rq, .streaming = i == 1};
        struct qp_attr a = {.dest_qpn = 0x20001,
                            .dest_ip = IP_PEER,
                            .mtu = 256,
                            .timeout = 5,
                            .retry_cnt = 2,
                            .rnr_retry = 2,
                            .max_rd_atomic = 4,
                            .max_dest_rd_atomic = 4,
                            .qkey = 7,
                            .access = 15};

        roce_mac_of_ip(a.dest_ip, a.dest_mac);
        if (qp_create(f->r, &q, &f->qp[i]))
            abort();
        for (a.state = QP_INIT; a.state <= QP_RTS; a.state++)
            if (qp_modify(f->qp[i], &a))
                abort();
    }
}

static void post_requests(struct fuzz *f)
{
    for (unsigned i = 0; i < 6; i++) {
        struct wqe w = {.wr_id = i,
                        .op = i % 3 == 0   ? WR_READ
                              : i % 3 == 1 ? WR_WRITE
                                           : WR_FETCH_ADD,
                        .frag = WQE_WHOLE,
                        .n_sge = 1,
                        .sge = {{0, i % 3 == 2 ? 8 : 700, 1}}};

        qp_post_send(f->qp[0], &w);
    }
}

static void start(struct fuzz *f)
{
    struct rnic_cfg c = {.ip = IP_HERE,
                         .qpn_base = 0x10000,
                         .max_qps = 16,
                         .window_pkts = 16,
                         .ack_every = 3,
                         .dcqcn = {.on = true,
                                   .line_bps = 400000000000,
                                   .cnp_gap_ps = 4 * PS_PER_US,
                                   .cut_gap_ps = 4 * PS_PER_US,
                                   .alpha_ps = PS_PER_US,
                                   .g = 1019,
                                   .time_reset_ps = 55 * PS_PER_US,
                                   .byte_reset = 64 << 10,
                                   .threshold = 1,
                                   .ai_bps = 5000000,
                                   .hai_bps = 50000000},
                         .pool = pool,
                         .user = f,
                         .ops = {.mem = mem, .complete = complete, .sink = sink}};

    roce_mac_of_ip(c.ip, c.mac);
    if (rnic_create(&f->r, &c))
        abort();
    f->rq = rq_create(16);
    for (unsigned i = 0; i < 16; i++) {
        struct rwqe w = {
            .wr_id = i, .n_sge = 2, .sge = {{i * 100, 300, 1}, {i * 50, 200 * (i & 3), 1}}};

        rq_post(f->rq, &w);
    }
    connect_qps(f);
    post_requests(f);
}

static void out(struct fuzz *f, int64_t now)
{
    struct endpoint ep = rnic_endpoint(f->r);
    struct rte_mbuf *m[16];

    for (unsigned q = 0; q < ENDPOINT_QUEUES; q++) {
        uint16_t n = ep.output(ep.ctx, q, m, RTE_DIM(m), now);

        for (uint16_t i = 0; i < n; i++) {
            struct roce_pkt k;

            if (roce_parse(m[i], &k) != ROCE_OK || (!k.virt && !roce_icrc_ok(m[i], &k)))
                abort();
            rte_pktmbuf_free(m[i]);
        }
    }
    ep.tick(ep.ctx, now);
}

/* Transport headers and payload from the input inside of right outer headers. */
static struct rte_mbuf *wrap(struct fuzz *f, uint8_t kind, const uint8_t *p, size_t n)
{
    struct qp *qp = f->qp[kind % N_QPS];
    struct roce_pkt k = {
        .ttl = 64, .pkey = 0xffff, .src_ip = IP_PEER, .dst_ip = IP_HERE, .dqpn = qp->num};
    struct rte_mbuf *m = frame_alloc(pool);
    uint8_t *b;

    if (n < 16 || n > 4200) {
        rte_pktmbuf_free(m);
        return NULL;
    }
    k.opcode = p[0] % 0x18 | qp->transport;
    if (!roce_opinfo[k.opcode].name)
        k.opcode = qp->transport | ROCE_OP_RC_SEND_ONLY;
    k.solicited = p[1] & 1, k.ack_req = p[1] & 2;
    k.psn =
        ((kind & 0x40 ? qp->rqr.una : qp->rsp.epsn) + (int8_t)(kind & 0x80 ? p[2] / 32 - 4 : 0)) &
        PSN_MASK;
    k.rkey = p[3], k.va = p[4] * 16u + p[5], k.dma_len = p[6] * 8u + p[7];
    k.syndrome = p[8], k.qkey = kind & 0x20 ? p[9] : 7, k.sqpn = p[10];
    k.swap_add = p[11], k.compare = p[12];
    k.len = n - 16;
    roce_mac_of_ip(IP_HERE, k.dst_mac);
    if (p[13] & 1 && k.len <= ROCE_MAX_MTU)
        k.virt = k.len;
    roce_build(m, &k);
    b = rte_pktmbuf_mtod_offset(m, uint8_t *, k.hdr_len);
    memcpy(b, p + 16, k.len - k.virt);
    roce_seal(m, &k);
    return m;
}

static struct rte_mbuf *raw(const uint8_t *p, size_t n)
{
    struct rte_mbuf *m = frame_alloc(pool);

    n = RTE_MIN(n, (size_t)FRAME_ROOM);
    memcpy(rte_pktmbuf_append(m, (uint16_t)n), p, n);
    frame_meta(m)->flags = FRAME_F_TRUSTED;
    return m;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    test_eal_init();
    pool = test_pool(511);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz *f = calloc(1, sizeof(*f));
    struct endpoint ep;
    int64_t now = 0;

    start(f);
    ep = rnic_endpoint(f->r);
    out(f, now);
    while (size > 3) {
        uint8_t kind = data[0];
        size_t n = RTE_MIN((size_t)(data[1] | (data[2] & 15) << 8), size - 3);
        struct rte_mbuf *m = kind ? wrap(f, kind, data + 3, n) : raw(data + 3, n);

        if (m)
            ep.input(ep.ctx, &m, 1, now);
        if (data[2] & 0x10)
            out(f, now);
        if (data[2] & 0x20)
            now += 200 * PS_PER_US;
        data += 3 + n, size -= 3 + n;
    }
    out(f, now);
    for (unsigned i = 0; i < sizeof(f->before); i++)
        if (f->before[i] || f->after[i])
            abort();
    rnic_destroy(f->r);
    rq_destroy(f->rq);
    free(f);
    if (rte_mempool_in_use_count(pool))
        abort();
    return 0;
}
