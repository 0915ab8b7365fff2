/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The driver of a verbs program, for real: a fabric's loop runs in a thread of this process, and
 * the process is a host of it, as any preloaded program is. What crosses the fabric here comes back
 * by the NIC's loopback.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/host/live_fabric.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#define MSG     20000
#define THREADS 4

static const char conf[] = "name = \"rimtest\"; dilation = 10; mtu = 4096;\n"
                           "single_switch = { hosts = 2; host_link = { rate = \"400Gb/s\"; "
                           "latency = \"300ns\"; }; };\n"
                           "reduce = { groups = 1; slots = 16; window = 16; };\n";

static int fabric_start(void **state)
{
    (void)state;
    return live_fabric_start(conf, 10);
}

/* A case has stopped the loop. */
static int fabric_stop(void **state)
{
    (void)state;
    live_fabric_remove();
    return 0;
}

static struct ibv_context *open_it(void)
{
    int n = 0;
    struct ibv_device **l = ibv_get_device_list(&n);
    struct ibv_context *c;

    assert_non_null(l);
    assert_int_equal(n, 1);
    c = ibv_open_device(l[0]);
    assert_non_null(c);
    ibv_free_device_list(l);
    return c;
}

/* Two connected queue pairs of this process. */
struct duo {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_comp_channel *ch;
    struct ibv_cq *cq[2];
    struct ibv_qp *qp[2];
    struct ibv_mr *mr;
    uint8_t *buf;
};

static void connect_qp(struct ibv_qp *qp, const union ibv_gid *gid, uint32_t peer)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
                            .port_num = 1,
                            .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
                            .path_mtu = IBV_MTU_4096,
                            .dest_qp_num = peer,
                            .max_dest_rd_atomic = 1,
                            .max_rd_atomic = 1,
                            .min_rnr_timer = 12,
                            .timeout = 14,
                            .retry_cnt = 7,
                            .rnr_retry = 7,
                            .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = *gid}}};

    assert_int_equal(
        ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    a.qp_state = IBV_QPS_RTR;
    assert_int_equal(ibv_modify_qp(qp, &a,
                                   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                       IBV_QP_MIN_RNR_TIMER),
                     0);
    a.qp_state = IBV_QPS_RTS;
    assert_int_equal(ibv_modify_qp(qp, &a,
                                   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
                     0);
}

static void duo_open(struct duo *d, struct ibv_context *ctx)
{
    union ibv_gid gid;

    d->ctx = ctx;
    d->pd = ibv_alloc_pd(ctx);
    d->ch = ibv_create_comp_channel(ctx);
    d->buf = calloc(2, MSG);
    d->mr = ibv_reg_mr(d->pd, d->buf, 2 * MSG, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    assert_int_equal(ibv_query_gid(ctx, 1, 0, &gid), 0);
    for (unsigned i = 0; i < 2; i++) {
        struct ibv_qp_init_attr ia = {.qp_type = IBV_QPT_RC, .cap = {16, 16, 1, 1, 0}};

        d->cq[i] = ibv_create_cq(ctx, 64, NULL, i ? d->ch : NULL, 0);
        ia.send_cq = ia.recv_cq = d->cq[i];
        d->qp[i] = ibv_create_qp(d->pd, &ia);
        assert_non_null(d->qp[i]);
    }
    connect_qp(d->qp[0], &gid, d->qp[1]->qp_num);
    connect_qp(d->qp[1], &gid, d->qp[0]->qp_num);
}

static void duo_close(struct duo *d)
{
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(ibv_destroy_qp(d->qp[i]), 0);
        assert_int_equal(ibv_destroy_cq(d->cq[i]), 0);
    }
    assert_int_equal(ibv_destroy_comp_channel(d->ch), 0);
    assert_int_equal(ibv_dereg_mr(d->mr), 0);
    assert_int_equal(ibv_dealloc_pd(d->pd), 0);
    free(d->buf);
}

static void post(struct duo *d, enum ibv_wr_opcode op)
{
    struct ibv_sge s = {(uintptr_t)d->buf, MSG, d->mr->lkey},
                   r = {(uintptr_t)d->buf + MSG, MSG, d->mr->lkey};
    struct ibv_recv_wr rw = {.sg_list = &r, .num_sge = 1}, *rbad;
    struct ibv_send_wr wr = {.sg_list = &s,
                             .num_sge = 1,
                             .opcode = op,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)d->buf + MSG, d->mr->rkey}},
                       *bad;

    if (op == IBV_WR_SEND)
        assert_int_equal(ibv_post_recv(d->qp[1], &rw, &rbad), 0);
    assert_int_equal(ibv_post_send(d->qp[0], &wr, &bad), 0);
}

static void wait_cq(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    int n;

    while (!(n = ibv_poll_cq(cq, 1, &wc)))
        ;
    assert_int_equal(n, 1);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

static void *worker(void *arg)
{
    struct duo *d = arg;

    for (unsigned i = 0; i < 100; i++) {
        memset(d->buf, (int)i + 1, MSG);
        post(d, IBV_WR_SEND);
        wait_cq(d->cq[1]);
        wait_cq(d->cq[0]);
        if (memcmp(d->buf, d->buf + MSG, MSG))
            return (void *)"wrong bytes";
    }
    return NULL;
}

static void threads_share_one_hca(void **state)
{
    struct ibv_context *ctx = open_it(), *second = open_it();
    struct duo d[THREADS];
    pthread_t t[THREADS];
    void *wrong;

    (void)state;
    for (unsigned i = 0; i < THREADS; i++)
        duo_open(&d[i], i & 1 ? second : ctx);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, worker, &d[i]), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(t[i], &wrong), 0);
        assert_null(wrong);
        duo_close(&d[i]);
    }
    assert_int_equal(ibv_close_device(ctx), 0);
    assert_int_equal(ibv_close_device(second), 0);
}

static void a_program_that_waits_for_an_event_is_woken(void **state)
{
    struct ibv_context *ctx = open_it();
    struct duo d;

    (void)state;
    duo_open(&d, ctx);
    for (unsigned i = 0; i < 50; i++) {
        struct ibv_cq *cq;
        void *user;

        assert_int_equal(ibv_req_notify_cq(d.cq[1], 0), 0);
        post(&d, IBV_WR_SEND);
        assert_int_equal(ibv_get_cq_event(d.ch, &cq, &user), 0);
        assert_ptr_equal(cq, d.cq[1]);
        ibv_ack_cq_events(cq, 1);
        wait_cq(d.cq[1]);
        wait_cq(d.cq[0]);
    }
    duo_close(&d);
    assert_int_equal(ibv_close_device(ctx), 0);
}

/* No thread polls: the progress thread serves a peer's writes. */
static void memory_is_written_while_the_program_does_something_else(void **state)
{
    struct ibv_context *ctx = open_it();
    struct duo d;
    struct timespec ms = {0, 1000000};

    (void)state;
    duo_open(&d, ctx);
    memset(d.buf, 7, MSG);
    post(&d, IBV_WR_RDMA_WRITE);
    for (unsigned i = 0; ((volatile uint8_t *)d.buf)[2 * MSG - 1] != 7; i++) {
        assert_true(i < 5000);
        nanosleep(&ms, NULL);
    }
    wait_cq(d.cq[0]);
    duo_close(&d);
    assert_int_equal(ibv_close_device(ctx), 0);
}

static void a_child_has_a_dead_device_and_the_parent_a_living_one(void **state)
{
    struct ibv_context *ctx = open_it();
    struct duo d;
    struct ibv_wc wc;
    int status;
    pid_t pid;

    (void)state;
    duo_open(&d, ctx);
    pid = fork();
    if (!pid)
        _exit(ibv_poll_cq(d.cq[0], 1, &wc) < 0 && ibv_close_device(ctx) == 0 ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    post(&d, IBV_WR_RDMA_WRITE);
    wait_cq(d.cq[0]);
    duo_close(&d);
    assert_int_equal(ibv_close_device(ctx), 0);
}

/* Must be the last test: the fabric does not come back. */
static void a_fabric_that_ends_is_reported_and_no_call_hangs(void **state)
{
    struct ibv_context *ctx = open_it();
    struct pollfd f = {.fd = ctx->async_fd, .events = POLLIN};
    struct ibv_async_event ev;
    struct ibv_port_attr pa;
    struct ibv_wc wc;
    struct duo d;

    (void)state;
    duo_open(&d, ctx);
    net.stop = 1;
    assert_int_equal(pthread_join(net.thread, NULL), 0);
    post(&d, IBV_WR_SEND); /* no peer receives it any more */
    loop_destroy(net.loop);
    assert_int_equal(poll(&f, 1, 5000), 1);
    assert_int_equal(ibv_get_async_event(ctx, &ev), 0);
    assert_int_equal(ev.event_type, IBV_EVENT_PORT_ERR);
    ibv_ack_async_event(&ev);
    assert_int_equal(ibv_query_port(ctx, 1, &pa), 0);
    assert_int_equal(pa.state, IBV_PORT_DOWN);
    assert_int_equal(ibv_poll_cq(d.cq[0], 1, &wc), 1);
    assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
    assert_int_equal(ibv_poll_cq(d.cq[1], 1, &wc), 1);
    assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
    duo_close(&d);
    assert_int_equal(ibv_close_device(ctx), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_share_one_hca),
        cmocka_unit_test(a_program_that_waits_for_an_event_is_woken),
        cmocka_unit_test(memory_is_written_while_the_program_does_something_else),
        cmocka_unit_test(a_child_has_a_dead_device_and_the_parent_a_living_one),
        cmocka_unit_test(a_fabric_that_ends_is_reported_and_no_call_hangs),
    };

    return cmocka_run_group_tests_name("hca/process", tests, fabric_start, fabric_stop);
}
