/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that the local HCA refuses before anything is sent: each call answers with the errno of
 * its manual page, and everything still works afterwards.
 */
#include "tests/tools/verbs_oob.h"

#include <sys/mman.h>

struct fixture {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    uint8_t *buf;
    union ibv_gid gid;
};

static void expect(int found, int want, const char *what)
{
    if (found != want)
        die("%s: found %s, expected %s", what, strerror(found), strerror(want));
    printf("ok  %s\n", what);
}

static struct ibv_qp *new_qp(struct fixture *b, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr a = {.send_cq = b->cq,
                                 .recv_cq = b->cq,
                                 .qp_type = type,
                                 .sq_sig_all = 1,
                                 .cap = {4, 4, 2, 2, 32}};
    struct ibv_qp *qp = ibv_create_qp(b->pd, &a);

    must(qp);
    return qp;
}

/* A queue pair that is connected to itself. */
static struct ibv_qp *own_qp(struct fixture *b, enum ibv_qp_type type)
{
    struct ibv_qp *qp = new_qp(b, type);
    struct peer me = {b->gid, qp->qp_num, 0, 0};

    qp_connect(qp, &me, 0);
    return qp;
}

static int post(struct ibv_qp *qp, struct ibv_send_wr wr)
{
    struct ibv_send_wr *bad;

    return ibv_post_send(qp, &wr, &bad);
}

static void posts(struct fixture *b)
{
    struct ibv_qp *qp = new_qp(b, IBV_QPT_RC);
    struct ibv_sge s[3] = {{(uintptr_t)b->buf, 64, b->mr->lkey}};
    struct ibv_send_wr wr = {.sg_list = s, .num_sge = 1, .opcode = IBV_WR_SEND};
    struct ibv_recv_wr rw = {.sg_list = s, .num_sge = 3}, *bad;
    struct ibv_wc wc;

    expect(post(qp, wr), EINVAL, "a send in RESET");
    ibv_destroy_qp(qp);
    qp = own_qp(b, IBV_QPT_RC);
    wr.num_sge = 3;
    expect(post(qp, wr), EINVAL, "more SGEs than the queue pair was made for");
    expect(ibv_post_recv(qp, &rw, &bad), EINVAL, "more SGEs in a receive");
    wr.num_sge = 1, wr.send_flags = IBV_SEND_INLINE;
    expect(post(qp, wr), EINVAL, "more inline data than the queue pair was made for");
    wr.send_flags = 0, wr.opcode = IBV_WR_TSO;
    expect(post(qp, wr), EOPNOTSUPP, "an operation that there is not");
    wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    expect(post(qp, wr), EINVAL, "an atomic of 64 bytes");
    wr.opcode = IBV_WR_SEND;
    for (unsigned i = 0; i < 4; i++)
        must(!post(qp, wr));
    expect(post(qp, wr), ENOMEM, "a send beyond the queue's depth");
    rw.num_sge = 1;
    for (unsigned i = 0; i < 4; i++)
        must(!ibv_post_recv(qp, &rw, &bad));
    expect(ibv_post_recv(qp, &rw, &bad), ENOMEM, "a receive beyond the queue's depth");
    for (unsigned i = 0; i < 8; i++) /* all arrive, in the order of the timers */
        must(!next_wc(b->cq, &wc, WC_MS) && wc.status == IBV_WC_SUCCESS);
    ibv_destroy_qp(qp);
}

static void handles(struct fixture *b)
{
    struct ibv_qp *qp = own_qp(b, IBV_QPT_UD), *uc = own_qp(b, IBV_QPT_UC);
    struct ibv_sge s = {(uintptr_t)b->buf, 64, b->mr->lkey};
    struct ibv_ah_attr a = ah_of(&b->gid);
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND};

    wr.wr.ud.remote_qpn = qp->qp_num, wr.wr.ud.remote_qkey = OOB_QKEY;
    expect(post(qp, wr), EINVAL, "a datagram without an address handle");
    wr.wr.ud.ah = ibv_create_ah(b->pd, &a);
    must(wr.wr.ud.ah && !post(qp, wr));
    expect_wc(b->cq, IBV_WC_SUCCESS, "a datagram to itself");
    must(!ibv_destroy_ah(wr.wr.ud.ah));
    expect(post(qp, wr), EINVAL, "a datagram with a destroyed address handle");
    wr.wr.ud.ah = ibv_create_ah(b->pd, &a);
    s.length = 4097;
    expect(post(qp, wr), EINVAL, "a datagram longer than the MTU");
    must(!ibv_destroy_ah(wr.wr.ud.ah));
    wr.opcode = IBV_WR_RDMA_READ;
    expect(post(uc, wr), EOPNOTSUPP, "a READ on UC");
    a.grh.sgid_index = 2;
    expect(ibv_create_ah(b->pd, &a) ? 0 : errno, EINVAL, "an address handle of GID index 2");
    a.grh.sgid_index = 1;
    expect(ibv_create_ah(b->pd, &a) ? 0 : errno, EINVAL, "a handle from IPv6 to IPv4");
    a = ah_of(&b->gid), a.is_global = 0;
    expect(ibv_create_ah(b->pd, &a) ? 0 : errno, EINVAL, "an address handle without a GID");
    ibv_destroy_qp(qp);
    ibv_destroy_qp(uc);
}

static void transitions(struct fixture *b)
{
    struct ibv_qp *qp = new_qp(b, IBV_QPT_RC);
    const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
              rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
                            .port_num = 1,
                            .path_mtu = IBV_MTU_1024,
                            .ah_attr = ah_of(&b->gid)};

    expect(ibv_modify_qp(qp, &a, rtr), EINVAL, "RESET to RTR");
    a.qp_state = IBV_QPS_INIT, a.port_num = 2;
    expect(ibv_modify_qp(qp, &a, init), EINVAL, "INIT at port 2");
    a.port_num = 1;
    expect(ibv_modify_qp(qp, &a, init & ~IBV_QP_PORT), EINVAL, "INIT without a port");
    must(!ibv_modify_qp(qp, &a, init));
    a.qp_state = IBV_QPS_RTR, a.path_mtu = (enum ibv_mtu)6;
    expect(ibv_modify_qp(qp, &a, rtr), EINVAL, "RTR with an MTU that there is not");
    a.path_mtu = IBV_MTU_1024, a.ah_attr.grh.sgid_index = 2;
    expect(ibv_modify_qp(qp, &a, rtr), EINVAL, "RTR with GID index 2");
    a.ah_attr.grh.sgid_index = 1;
    expect(ibv_modify_qp(qp, &a, rtr), EINVAL, "RTR from IPv6 to IPv4");
    a.ah_attr.grh.sgid_index = 0, a.max_dest_rd_atomic = 17;
    expect(ibv_modify_qp(qp, &a, rtr), EINVAL, "RTR with too many READs");
    a.qp_state = IBV_QPS_RTS;
    expect(ibv_modify_qp(qp, &a, IBV_QP_STATE), EINVAL, "INIT to RTS");
    ibv_destroy_qp(qp);
}

static void regions(struct fixture *b)
{
    void *gone = mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *closed = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int fd = memfd_create("like a dma-buf", 0);
    struct ibv_mr *mr;

    must(gone != MAP_FAILED && closed != MAP_FAILED && fd >= 0 && !ftruncate(fd, 1 << 20));
    must(!munmap((char *)gone + (1 << 19), 1 << 19));
    expect(ibv_reg_mr(b->pd, gone, 1 << 20, 0) ? 0 : errno, EFAULT, "memory that is not mapped");
    expect(ibv_reg_mr(b->pd, b->buf, 64, IBV_ACCESS_REMOTE_WRITE) ? 0 : errno, EINVAL,
           "others may write, the owner may not");
    expect(ibv_reg_mr(b->pd, b->buf, SIZE_MAX, 0) ? 0 : errno, EINVAL, "memory beyond 2^64");
    expect(ibv_reg_mr(b->pd, closed, 1 << 20, 0) ? 0 : errno, EFAULT, "memory not to be read");
    expect(ibv_reg_dmabuf_mr(b->pd, 0, 4096, 0, -1, 0) ? 0 : errno, EOPNOTSUPP, "no dmabuf");
    mr = ibv_reg_dmabuf_mr(b->pd, 100, 5000, 1 << 30, fd, 0);
    must(mr && mr->length == 5000);
    must(!ibv_dereg_mr(mr) && !close(fd) && !munmap(closed, 1 << 20));
    expect(ibv_dealloc_pd(b->pd), EBUSY, "a PD in use");
    munmap(gone, 1 << 19);
}

/* Registered memory that goes away, with the HCA's own fault handler. */
static void gone(struct fixture *b)
{
    uint8_t *m = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    struct ibv_mr *mr = ibv_reg_mr(b->pd, m, 8192, all);
    struct ibv_sge s = {(uintptr_t)b->buf, 5000, b->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
    struct ibv_qp *qp = new_qp(b, IBV_QPT_RC);
    struct peer me = {b->gid, qp->qp_num, 0, 0};

    must(mr);
    qp_connect(qp, &me, IBV_ACCESS_REMOTE_WRITE);
    wr.wr.rdma.remote_addr = (uintptr_t)m, wr.wr.rdma.rkey = mr->rkey;
    must(!mprotect(m + 4096, 4096, PROT_READ));
    expect(ibv_reg_mr(b->pd, m, 8192, all) ? 0 : errno, EFAULT, "memory that is partly read-only");
    must(!post(qp, wr));
    /* Both ends are one queue pair: the error or the flush may complete first. */
    expect_wc(b->cq, IBV_WC_WR_FLUSH_ERR, "a WRITE to memory that became read-only");
    must(!ibv_destroy_qp(qp) && !ibv_dereg_mr(mr) && !munmap(m, 8192));
}

int main(void)
{
    struct fixture b = {.buf = calloc(1, 8192)};
    struct ibv_qp *qp;

    expect(ibv_fork_init(), 0, "ibv_fork_init");
    b.ctx = open_first();
    must(!ibv_query_gid(b.ctx, 1, 0, &b.gid));
    b.pd = ibv_alloc_pd(b.ctx);
    b.cq = ibv_create_cq(b.ctx, 32, NULL, NULL, 0);
    b.mr = ibv_reg_mr(b.pd, b.buf, 8192, IBV_ACCESS_LOCAL_WRITE);
    must(b.pd && b.cq && b.mr);
    posts(&b);
    handles(&b);
    transitions(&b);
    regions(&b);
    gone(&b);
    qp = own_qp(&b, IBV_QPT_RC);
    must(!post(qp, (struct ibv_send_wr){
                       .opcode = IBV_WR_RDMA_WRITE})); /* both ends are one, so it is flushed */
    expect_wc(b.cq, IBV_WC_WR_FLUSH_ERR, "a WRITE to itself, that the queue pair does not allow");
    must(!ibv_destroy_qp(qp) && !ibv_dereg_mr(b.mr) && !ibv_destroy_cq(b.cq));
    must(!ibv_dealloc_pd(b.pd) && !ibv_close_device(b.ctx));
    free(b.buf);
    return 0;
}
