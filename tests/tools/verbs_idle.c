/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An idle verbs program: a device is open, a queue pair is connected to that of another process, a
 * receive is posted, and the program waits for the event of a message that does not come.
 *
 *     verbs_idle listen|connect PORT
 *
 * Prints "idle" once it waits. Ends when its peer has gone, or by a signal.
 */
#include "tests/tools/verbs_oob.h"

int main(int argc, char **argv)
{
    bool listens = argc == 3 && !strcmp(argv[1], "listen");
    struct ibv_comp_channel *ch;
    struct ibv_context *ctx;
    struct ibv_cq *cq;
    struct ibv_pd *pd;
    struct ibv_qp *qp;
    struct ibv_qp_init_attr a = {.qp_type = IBV_QPT_RC, .sq_sig_all = 1, .cap = {4, 4, 1, 1, 0}};
    struct ibv_recv_wr rw = {.wr_id = 1}, *rbad;
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
    struct peer me, peer;
    void *user;
    int fd;

    if (argc != 3)
        die("usage: verbs_idle listen|connect PORT");
    ctx = open_first();
    ch = ibv_create_comp_channel(ctx);
    pd = ibv_alloc_pd(ctx);
    cq = ibv_create_cq(ctx, 16, NULL, ch, 0);
    must(ch && pd && cq);
    a.send_cq = a.recv_cq = cq;
    qp = ibv_create_qp(pd, &a);
    must(qp);
    fd = listens ? accept(oob_listen(argv[2]), NULL, NULL) : oob_connect(argv[2]);
    must(fd >= 0);
    me = (struct peer){.qpn = qp->qp_num};
    must(!ibv_query_gid(ctx, 1, 0, &me.gid));
    oob_swap(fd, &me, &peer, sizeof(me));
    qp_connect(qp, &peer, 0);
    must(!ibv_post_recv(qp, &rw, &rbad));
    oob_barrier(fd);
    /* The connection works; no message follows. */
    must(!ibv_post_send(qp, &wr, &bad));
    expect_wc(cq, IBV_WC_SUCCESS, "message");
    expect_wc(cq, IBV_WC_SUCCESS, "message");
    must(!ibv_post_recv(qp, &rw, &rbad));
    must(!ibv_req_notify_cq(cq, 0));
    puts("idle");
    fflush(stdout);
    must(!ibv_get_cq_event(ch, &cq, &user));
    die("an event, expected none");
}
