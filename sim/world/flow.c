/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/world/flow.h"

#include "base/assert.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define MESSAGE  (64u << 10)
#define POSTED   32u /* twice the window of an HCA */
#define TIMEOUT  14  /* 67 ms: queueing is not loss */
#define DRAIN_PS (10 * PS_PER_S)

struct flow_end {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    void *mem;
};

struct flow {
    struct world *w;
    struct flow_end s[2]; /* sender, receiver */
    unsigned posted;
    uint64_t bytes;
    bool on;
    char error[96];
};

static int end_create(struct flow_end *s, struct ibv_context *ctx)
{
    struct ibv_qp_init_attr a = {
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
        .cap = {.max_send_wr = POSTED, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};

    s->ctx = ctx;
    if (!ctx)
        return -ENODEV;
    s->mem = mmap(NULL, MESSAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s->mem == MAP_FAILED)
        s->mem = NULL;
    s->pd = ibv_alloc_pd(ctx);
    s->cq = ibv_create_cq(ctx, POSTED, NULL, NULL, 0);
    if (!s->mem || !s->pd || !s->cq)
        return -ENOMEM;
    a.send_cq = a.recv_cq = s->cq;
    s->qp = ibv_create_qp(s->pd, &a);
    s->mr = ibv_reg_mr(s->pd, s->mem, MESSAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    return s->qp && s->mr ? hca_mr_unback(s->mr) : -ENOMEM;
}

static void end_destroy(struct flow_end *s)
{
    if (s->qp)
        ibv_destroy_qp(s->qp);
    if (s->cq)
        ibv_destroy_cq(s->cq);
    if (s->mr)
        ibv_dereg_mr(s->mr);
    if (s->pd)
        ibv_dealloc_pd(s->pd);
    if (s->mem)
        munmap(s->mem, MESSAGE);
}

static int end_connect(struct flow_end *s, const struct flow_end *to)
{
    struct ibv_qp_attr init = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .dest_qp_num = to->qp->qp_num,
                              .min_rnr_timer = 12,
                              .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}}};
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS, .timeout = TIMEOUT, .retry_cnt = 7, .rnr_retry = 7};
    struct ibv_port_attr port;
    int rc = ibv_query_port(s->ctx, 1, &port);

    if (!rc)
        rc = ibv_query_gid(to->ctx, 1, 0, &rtr.ah_attr.grh.dgid);
    rtr.path_mtu = port.active_mtu;
    if (!rc)
        rc = ibv_modify_qp(s->qp, &init,
                           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (!rc)
        rc = ibv_modify_qp(s->qp, &rtr,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                               IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (!rc)
        rc = ibv_modify_qp(s->qp, &rts,
                           IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                               IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    return -rc;
}

static void flow_post(struct flow *f)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)f->s[0].mem, .length = MESSAGE, .lkey = f->s[0].mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .wr.rdma = {.remote_addr = (uintptr_t)f->s[1].mem,
                                         .rkey = f->s[1].mr->rkey}},
                       *bad;

    for (; f->on && f->posted < POSTED; f->posted++)
        if (ibv_post_send(f->s[0].qp, &wr, &bad))
            return;
}

int flow_progress(struct flow *f)
{
    struct ibv_wc wc[POSTED];
    int n = ibv_poll_cq(f->s[0].cq, POSTED, wc);

    for (int i = 0; i < n; i++) {
        T_ASSERT(f->posted, "more WRITEs complete than were posted");
        f->posted--;
        if (wc[i].status == IBV_WC_SUCCESS) {
            f->bytes += MESSAGE;
        } else if (!f->error[0]) {
            snprintf(f->error, sizeof(f->error), "a write ended with \"%s\"",
                     ibv_wc_status_str(wc[i].status));
            f->on = false;
        }
    }
    if (n > 0)
        flow_post(f);
    return f->error[0] ? -EIO : 0;
}

void flow_start(struct flow *f)
{
    f->on = true;
    flow_post(f);
}

void flow_stop(struct flow *f)
{
    f->on = false;
}

const char *flow_error(const struct flow *f)
{
    return f->error;
}

uint64_t flow_bytes(const struct flow *f)
{
    return f->bytes;
}

static int run_until(struct flow *f, int64_t end_ps)
{
    int rc = 0;

    while (!rc && world_now(f->w) < end_ps && (f->on || f->posted)) {
        world_step(f->w, end_ps);
        rc = flow_progress(f);
    }
    return rc;
}

int flow_drain(struct flow *f)
{
    int rc;

    flow_stop(f);
    rc = run_until(f, world_now(f->w) + DRAIN_PS);
    return rc || !f->posted ? rc : -ETIME;
}

double flow_alone(struct flow *f, int64_t for_ps)
{
    int64_t begun = world_now(f->w), first = begun + for_ps / 10;
    uint64_t before;
    double rate;
    int rc;

    flow_start(f);
    rc = run_until(f, first);
    before = f->bytes;
    if (!rc)
        rc = run_until(f, begun + for_ps);
    rate = (double)(f->bytes - before) * 1e3 / (double)(begun + for_ps - first);
    if (!rc)
        rc = flow_drain(f);
    return rc ? rc : rate;
}

int flow_create(struct flow **out, struct world *w, unsigned from, unsigned from_port, unsigned to,
                unsigned to_port)
{
    struct flow *f = calloc(1, sizeof(*f));
    int rc = f ? 0 : -ENOMEM;

    *out = f;
    if (!rc) {
        f->w = w;
        rc = end_create(&f->s[0], world_context(w, from, from_port));
    }
    if (!rc)
        rc = end_create(&f->s[1], world_context(w, to, to_port));
    if (!rc)
        rc = end_connect(&f->s[1], &f->s[0]);
    if (!rc)
        rc = end_connect(&f->s[0], &f->s[1]);
    if (rc) {
        flow_destroy(f);
        *out = NULL;
    }
    return rc;
}

void flow_destroy(struct flow *f)
{
    if (!f)
        return;
    end_destroy(&f->s[0]);
    end_destroy(&f->s[1]);
    free(f);
}
