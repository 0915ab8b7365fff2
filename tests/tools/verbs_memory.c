/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Round trips of a program that polls its memory only: each side waits for the other's RDMA WRITE
 * by reading the byte that it writes, and polls for completions only when its send queue is full.
 *
 *     verbs_memory listen|connect PORT ROUNDS
 *
 * Prints half of a round trip in us: median, mean, 99th percentile.
 */
#include "tests/tools/verbs_oob.h"

#define QUEUE 64

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void post_write(struct ibv_qp *qp, const struct peer *to, uint8_t *value, unsigned n)
{
    struct ibv_sge sge = {.addr = (uintptr_t)value, .length = 1};
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .send_flags = IBV_SEND_INLINE,
                             .wr.rdma = {to->addr, to->rkey}},
                       *bad;

    if (n % QUEUE == QUEUE - 1)
        wr.send_flags |= IBV_SEND_SIGNALED;
    must(!ibv_post_send(qp, &wr, &bad));
    if (n % QUEUE == QUEUE - 1)
        expect_wc(qp->send_cq, IBV_WC_SUCCESS, "write");
}

int main(int argc, char **argv)
{
    bool listens = argc == 4 && !strcmp(argv[1], "listen");
    unsigned rounds = argc == 4 ? (unsigned)atoi(argv[3]) : 0;
    volatile uint8_t *mem = aligned_alloc(4096, 4096);
    double *took = calloc(rounds + 1, sizeof(*took)), sum = 0;
    struct ibv_qp_init_attr a = {.qp_type = IBV_QPT_RC, .cap = {2 * QUEUE, 1, 1, 1, 16}};
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    struct peer me, peer;
    int fd;

    if (!rounds)
        die("usage: verbs_memory listen|connect PORT ROUNDS");
    must(mem && took);
    mem[0] = 0;
    ctx = open_first();
    pd = ibv_alloc_pd(ctx);
    must(pd);
    mr = ibv_reg_mr(pd, (void *)mem, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    a.send_cq = a.recv_cq = ibv_create_cq(ctx, 2 * QUEUE, NULL, NULL, 0);
    must(mr && a.send_cq);
    qp = ibv_create_qp(pd, &a);
    must(qp);
    fd = listens ? accept(oob_listen(argv[2]), NULL, NULL) : oob_connect(argv[2]);
    must(fd >= 0);
    me = (struct peer){.qpn = qp->qp_num, .rkey = mr->rkey, .addr = (uintptr_t)mem};
    must(!ibv_query_gid(ctx, 1, 0, &me.gid));
    oob_swap(fd, &me, &peer, sizeof(me));
    qp_connect(qp, &peer, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    oob_barrier(fd);
    for (unsigned n = 0; n < rounds; n++) {
        uint8_t value = (uint8_t)(n % 255 + 1);
        double from = now_us();

        if (!listens)
            post_write(qp, &peer, &value, n);
        while (mem[0] != value)
            if (now_us() - from > WC_MS * 1e3)
                die("round %u: the other side's write did not come", n);
        if (listens)
            post_write(qp, &peer, &value, n);
        took[n] = (now_us() - from) / 2;
        sum += took[n];
    }
    oob_barrier(fd); /* the peer needs this side's acknowledgement */
    qsort(took, rounds, sizeof(*took), ascending);
    if (!listens)
        printf("%u round trips: half of one %.2f us median, %.2f mean, %.2f p99\n", rounds,
               took[rounds / 2], sum / rounds, took[rounds * 99 / 100]);
    return 0;
}
