/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A multicast group of three hosts: one sends, two are attached, then one detaches.
 *
 *     verbs_mcast sender PORT
 *     verbs_mcast member PORT 0|1    1 is the one that detaches
 *
 * Messages are numbered; a member must get each of them once, in order, and nothing once it has
 * left.
 */
#include "tests/tools/verbs_oob.h"

#include <netinet/in.h>

#define GROUP   0xe8010203u
#define GRH     40u
#define BYTES   1000u
#define N       200u /* messages of a phase: all of them fit the receive queue */
#define WARM_MS 50
#define WARM    0xffffffffu /* sequence number of messages that only probe the group */

struct fixture {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint8_t *buf;
};

/* The group as a plain IPv4-mapped GID, or as a multicast GID of IPv6 (RFC 4291): it is the
 * same. */
static union ibv_gid group(bool ipv6)
{
    union ibv_gid g = {.raw = {[10] = 0xff, [11] = 0xff}};
    uint32_t be = htonl(GROUP);

    memcpy(g.raw + 12, &be, 4);
    if (ipv6)
        g.raw[0] = 0xff, g.raw[1] = 0x0e;
    return g;
}

static void open_fixture(struct fixture *b)
{
    struct ibv_qp_init_attr a = {
        .qp_type = IBV_QPT_UD, .sq_sig_all = 1, .cap = {16, 1024, 1, 1, 0}};

    b->ctx = open_first();
    b->pd = ibv_alloc_pd(b->ctx);
    b->cq = ibv_create_cq(b->ctx, 2048, NULL, NULL, 0);
    a.send_cq = a.recv_cq = b->cq;
    b->qp = ibv_create_qp(b->pd, &a);
    b->buf = calloc(1024, GRH + BYTES);
    b->mr = ibv_reg_mr(b->pd, b->buf, (size_t)1024 * (GRH + BYTES), IBV_ACCESS_LOCAL_WRITE);
    must(b->pd && b->cq && b->qp && b->mr);
    qp_connect(b->qp, &(struct peer){.qpn = 0}, 0);
}

static void nap(unsigned ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* ---- sender ---- */

static void send_one(struct fixture *b, struct ibv_ah *ah, uint32_t number)
{
    struct ibv_sge s = {(uintptr_t)b->buf, BYTES, b->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .wr.ud = {ah, 0xffffff, OOB_QKEY}},
                       *bad;

    for (unsigned i = 0; i < BYTES / 4; i++)
        ((uint32_t *)(void *)b->buf)[i] = number + i;
    must(!ibv_post_send(b->qp, &wr, &bad));
    expect_wc(b->cq, IBV_WC_SUCCESS, "send");
}

static void sender(struct fixture *b, const char *port)
{
    union ibv_gid g = group(false);
    struct ibv_ah_attr a = ah_of(&g);
    struct ibv_ah *ah = ibv_create_ah(b->pd, &a);
    int l = oob_listen(port), fd[2];
    struct pollfd f[2];

    must(ah);
    for (unsigned i = 0; i < 2; i++) {
        fd[i] = accept(l, NULL, NULL);
        must(fd[i] >= 0);
        f[i] = (struct pollfd){.fd = fd[i], .events = POLLIN};
    }
    /* Switches take a while to learn of members. */
    for (unsigned i = 0; poll(&f[0], 1, 0) < 1 || poll(&f[1], 1, 0) < 1; i++) {
        if (i == 1000)
            die("the group does not reach its members");
        send_one(b, ah, WARM);
        nap(WARM_MS);
    }
    for (unsigned phase = 0; phase < 2; phase++) {
        for (unsigned i = 0; i < 2; i++)
            oob_barrier(fd[i]);
        nap(phase ? 500 : 0); /* and to learn of a leave */
        for (uint32_t n = 0; n < N; n++)
            send_one(b, ah, n);
        for (unsigned i = 0; i < 2; i++)
            oob_barrier(fd[i]);
    }
    must(!ibv_destroy_ah(ah));
}

/* ---- member ---- */

static void post(struct fixture *b, uint64_t slot)
{
    struct ibv_sge s = {(uintptr_t)b->buf + slot * (GRH + BYTES), GRH + BYTES, b->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &s, .num_sge = 1}, *bad;

    must(!ibv_post_recv(b->qp, &wr, &bad));
}

/* The number of the next message; its bytes are checked. -1: none within ms. */
static int64_t receive(struct fixture *b, int ms)
{
    struct ibv_wc wc;
    uint32_t number, v;
    uint8_t *p;

    if (next_wc(b->cq, &wc, ms))
        return -1;
    must(wc.status == IBV_WC_SUCCESS && wc.byte_len == GRH + BYTES && (wc.wc_flags & IBV_WC_GRH));
    p = b->buf + wc.wr_id * (GRH + BYTES) + GRH;
    memcpy(&number, p, 4);
    for (unsigned i = 0; i < BYTES / 4; i++) {
        memcpy(&v, p + 4 * i, 4);
        must(v == number + i);
    }
    post(b, wc.wr_id);
    return number;
}

static void member(struct fixture *b, const char *port, bool leaves)
{
    union ibv_gid g = group(leaves);
    int fd = oob_connect(port);
    int64_t number;

    for (uint64_t i = 0; i < 1024; i++)
        post(b, i);
    must(!ibv_attach_mcast(b->qp, &g, 0));
    must(receive(b, WC_MS) == WARM);
    oob_put(fd, "b", 1); /* the sender reads it as our part of the first barrier */
    for (unsigned phase = 0; phase < 2; phase++) {
        char c;

        if (phase && leaves)
            must(!ibv_detach_mcast(b->qp, &g, 0));
        if (phase)
            oob_put(fd, "b", 1);
        oob_get(fd, &c, 1);
        for (uint32_t n = 0; n < N && !(phase && leaves); n++) {
            while ((number = receive(b, WC_MS)) == WARM)
                ;
            if (number != n)
                die("phase %u: found message %d, expected %u", phase, (int)number, n);
        }
        oob_barrier(fd);
    }
    number = receive(b, 200);
    if (number >= 0)
        die("a message too many: %d", (int)number);
    if (!leaves)
        must(!ibv_detach_mcast(b->qp, &g, 0));
}

int main(int argc, char **argv)
{
    struct fixture b;

    open_fixture(&b);
    if (argc == 3 && !strcmp(argv[1], "sender"))
        sender(&b, argv[2]);
    else if (argc == 4 && !strcmp(argv[1], "member"))
        member(&b, argv[2], argv[3][0] == '1');
    else
        die("usage: verbs_mcast sender PORT | member PORT 0|1");
    must(!ibv_destroy_qp(b.qp));
    ibv_close_device(b.ctx);
    free(b.buf);
    return 0;
}
