/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The HCA itself: its rnic, the endpoint through which its driver moves frames, and the work that
 * the engine's callbacks defer because they must not call back into the engine.
 */
#include "host/hca/hca_priv.h"

#include "base/cacheline.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

static const char *const event_name[] = {
    [HCA_EV_QP_CREATED] = "queue pair %u created, type %u",
    [HCA_EV_QP_STATE] = "queue pair %u modified to state %u",
    [HCA_EV_QP_DESTROYED] = "queue pair %u destroyed in state %u",
    [HCA_EV_ASYNC] = "async event %u of object %u",
    [HCA_EV_ASYNC_LOST] = "async queue full: event %u of object %u lost",
    [HCA_EV_PORT] = "port active: %u, NIC connected: %u",
    [HCA_EV_CQ_OVERRUN] = "completion queue of %u entries overran, %u references",
    [HCA_EV_MR] = "region registered: lkey %u, access %u",
    [HCA_EV_MR_REFUSED] = "region refused: errno %u, access %u",
    [HCA_EV_MR_GONE] = "region deregistered: lkey %u, open windows %u",
};
static_assert(RTE_DIM(event_name) == HCA_EV_KINDS, "every event has a name");
static const struct event_kinds event_kinds = {"hca", event_name, HCA_EV_KINDS};

/* ---- the path of a frame ---- */

static void check_port(const struct hca *h)
{
    T_ASSERT(h->port_up == (h->nic_up && h->link_up),
             "the port's state is not its NIC's and link's");
}

/* Begins every call of the endpoint: checks that the last one left a consistent state. */
static void hca_enter(struct hca *h, int64_t now_ps)
{
    T_ASSERT_HOT(h->deferred || hlist_empty(&h->overrun_cqs),
                 "an overrun waits, and no work is deferred");
    T_ASSERT_HOT(h->n_waiting <= h->n_cq, "more completion queues have completions than there are");
    h->now_ps = now_ps;
}

static uint16_t hca_input(void *ctx, struct rte_mbuf **m, uint16_t n, int64_t now_ps)
{
    struct hca *h = ctx;
    uint16_t k;

    hca_enter(h, now_ps);
    if (h->arp_waiters || h->igmp_groups) {
        uint16_t left = h->arp_waiters ? arp_input(h, m, n) : n;

        if (h->igmp_groups)
            left = igmp_input(h, m, left);
        k = h->ep.input(h->ep.ctx, m, left, now_ps);
        rte_pktmbuf_free_bulk(m + k, left - k);
        k = n;
    } else {
        k = h->ep.input(h->ep.ctx, m, n, now_ps);
    }
    if (!hlist_empty(&h->limit_srqs))
        srq_check_limits(h);
    if (h->deferred)
        hca_run_deferred(h);
    return k;
}

static uint16_t hca_output(void *ctx, enum endpoint_queue q, struct rte_mbuf **m, uint16_t n,
                           int64_t now_ps)
{
    struct hca *h = ctx;
    uint16_t k = 0;

    hca_enter(h, now_ps);
    if (h->igmp_n && q == ENDPOINT_ACK)
        k = igmp_output(h, m, n);
    if (h->arp_asks && q == ENDPOINT_ACK)
        k += arp_output(h, m + k, n - k);
    k += h->ep.output(h->ep.ctx, q, m + k, n - k, now_ps);
    if (h->deferred)
        hca_run_deferred(h);
    return k;
}

static void hca_tick(void *ctx, int64_t now_ps)
{
    struct hca *h = ctx;

    hca_enter(h, now_ps);
    h->ep.tick(h->ep.ctx, now_ps);
    delayed_show(h);
    if (h->deferred)
        hca_run_deferred(h);
}

static int64_t hca_next(void *ctx)
{
    struct hca *h = ctx;

    if (h->igmp_n || h->arp_asks)
        return 0;
    return RTE_MIN(h->ep.next(h->ep.ctx), delayed_next(h));
}

static int64_t hca_deadline(void *ctx)
{
    struct hca *h = ctx;

    return RTE_MIN(h->ep.deadline(h->ep.ctx), delayed_next(h));
}

struct endpoint hca_endpoint(struct hca *h)
{
    return (struct endpoint){.ctx = h,
                             .input = hca_input,
                             .output = hca_output,
                             .tick = hca_tick,
                             .next = hca_next,
                             .deadline = hca_deadline};
}

struct cacheline_list *hca_cachelines(struct hca *h)
{
    return rnic_cachelines(h->rnic);
}

/* ---- deferred work ---- */

/* A completion queue that overran takes no more completions; every queue pair that reports to it
 * goes to error. */
void hca_run_deferred(struct hca *h)
{
    h->deferred = false;
    while (!hlist_empty(&h->overrun_cqs)) {
        struct hca_cq *cq = hlist_entry(h->overrun_cqs.next, struct hca_cq, overrun_link);

        hlist_del(&cq->overrun_link);
        hlist_for(l, &cq->ctx->qps)
        {
            struct hca_qp *qp = hlist_entry(l, struct hca_qp, link);

            if (qp->scq == cq || qp->rcq == cq)
                qp_to_error(qp);
        }
    }
}

/* ---- control ---- */

/* The port's event comes before the events of queue pairs that it causes. */
static void announce_port(struct hca *h, int64_t now_ps)
{
    bool up = h->nic_up && h->link_up;
    struct ibv_async_event e = {.element.port_num = HCA_PORT,
                                .event_type = up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR};

    h->now_ps = now_ps;
    if (h->port_up == up)
        return;
    h->port_up = up;
    events_add(&h->events, now_ps, HCA_EV_PORT, up, h->nic_up);
    hlist_for(c, &h->ctxs) async_push(hlist_entry(c, struct hca_ctx, link), &e);
}

void hca_port_state(struct hca *h, bool up, int64_t now_ps)
{
    if (h->nic_up == up)
        return;
    h->nic_up = up;
    announce_port(h, now_ps);
    check_port(h);
    if (up)
        igmp_repeat(h);
    else
        rnic_port_down(h->rnic, now_ps);
    if (h->deferred)
        hca_run_deferred(h);
}

void hca_link_state(struct hca *h, bool up, int64_t now_ps)
{
    h->link_up = up;
    announce_port(h, now_ps);
    check_port(h);
}

uint64_t hca_completions(const struct hca *h)
{
    return h->completions;
}

unsigned hca_objects(const struct hca *h)
{
    return h->n_pd + h->n_mr + h->n_mw + h->n_cq + h->n_srq + h->n_ah;
}

uint64_t hca_activity_epoch(const struct hca *h)
{
    return h->completions + h->written;
}

bool hca_waiting(const struct hca *h)
{
    return h->n_waiting > 0;
}

void hca_kill(struct hca *h)
{
    h->dead = true;
    hlist_for(l, &h->ctxs)
    {
        struct hca_ctx *c = hlist_entry(l, struct hca_ctx, link);

        notify_detach(c->v.context.async_fd);
        hlist_for(k, &c->channels) notify_detach(hlist_entry(k, struct hca_channel, link)->v.fd);
    }
}

struct ibv_device *hca_device(struct hca *h)
{
    return &h->dev->v;
}

struct rnic *hca_rnic(struct hca *h)
{
    return h->rnic;
}

/* Real devices have another function in this obsolete field; this one marks an emulated device. */
static void hca_device_mark(struct ibv_context *c)
{
    (void)c;
}

bool hca_device_ours(const struct ibv_device *d)
{
    return d->_ops._dummy2 == hca_device_mark;
}

void hca_device_init(struct hca_device *d, const char *name, uint32_t ip)
{
    memset(d, 0, sizeof(*d));
    d->v._ops._dummy2 = hca_device_mark;
    d->v.node_type = IBV_NODE_CA;
    d->v.transport_type = IBV_TRANSPORT_IB;
    d->ip = ip;
    snprintf(d->v.name, sizeof(d->v.name), "%s", name);
    snprintf(d->v.dev_name, sizeof(d->v.dev_name), "%s", name);
    snprintf(d->v.dev_path, sizeof(d->v.dev_path), "/sys/class/infiniband_verbs/%s", name);
    snprintf(d->v.ibdev_path, sizeof(d->v.ibdev_path), "/sys/class/infiniband/%s", name);
}

/* ---- life ---- */

static int64_t hca_lateness_on_path(void *user, const struct qp *qp, int64_t window_ps)
{
    const struct hca_driver *drv = &((struct hca *)user)->cfg.drv;
    const struct qp_attr *attr = qp_attributes(qp);

    return drv->lateness_on_path(drv->ctx, attr->dest_ip, attr->dest_qpn, window_ps);
}

int hca_create_on(struct hca **out, const struct hca_cfg *cfg, struct hca_device *dev)
{
    struct hca *h = cacheline_alloc(sizeof(*h));
    struct rnic_cfg rc = {
        .ip = cfg->ip,
        .qpn_base = (cfg->slot + 1) << 16,
        .max_qps = cfg->max_qps ? cfg->max_qps : 1024,
        .window_pkts = cfg->window_pkts ? cfg->window_pkts : 256,
        .ack_every = cfg->ack_every ? cfg->ack_every : 8,
        .dscp = HCA_DSCP,
        .guarded = cfg->drv.guarded,
        .far = cfg->far,
        .dcqcn = cfg->dcqcn,
        .message_ps = cfg->message_ps,
        .pool = cfg->pool,
        .ops = {.mem = hca_mem,
                .complete = hca_complete,
                .window = hca_window,
                .lateness = cfg->drv.lateness_on_path ? hca_lateness_on_path : NULL,
                .event = hca_qp_event},
        .user = h};
    char who[IBV_SYSFS_NAME_MAX + 16];
    int rc_err;

    if (!h)
        return -ENOMEM;
    h->cfg = *cfg;
    h->delays = cfg->notice.gpu_ps || cfg->notice.step_ps;
    h->cfg.max_qps = rc.max_qps;
    h->nic_up = h->link_up = h->port_up = true;
    h->next_pd = 1;
    h->key_free_head = h->key_free_tail = UINT32_MAX;
    hlist_init(&h->ctxs);
    hlist_init(&h->overrun_cqs);
    hlist_init(&h->limit_srqs);
    roce_mac_of_ip(cfg->ip, rc.mac);
    rc_err = rnic_create(&h->rnic, &rc);
    if (rc_err) {
        free(h);
        return rc_err;
    }
    h->ep = rnic_endpoint(h->rnic);
    cacheline_list_add(rnic_cachelines(h->rnic), h, offsetof(struct hca, cfg) + CACHELINE);
    h->dev = dev ? dev : &h->own_dev;
    if (!dev)
        hca_device_init(h->dev, cfg->name, cfg->ip);
    h->dev->hca = h;
    /* Names alone are not unique: each simulated host has a trib0. */
    snprintf(who, sizeof(who), "%s %u.%u.%u.%u", h->dev->v.name, cfg->ip >> 24, cfg->ip >> 16 & 255,
             cfg->ip >> 8 & 255, cfg->ip & 255);
    events_init(&h->events, &event_kinds, who);
    *out = h;
    return 0;
}

int hca_create(struct hca **out, const struct hca_cfg *cfg)
{
    return hca_create_on(out, cfg, NULL);
}

void hca_destroy(struct hca *h)
{
    if (!h)
        return;
    while (!hlist_empty(&h->ctxs)) /* imported contexts go before those whose objects they share */
        hca_ctx_free(hlist_entry(h->ctxs.prev, struct hca_ctx, link));
    T_ASSERT(!hca_objects(h), "the contexts are gone, and objects are still counted");
    T_ASSERT(!h->dm_bytes, "the contexts are gone, and device memory is still counted");
    T_ASSERT(!h->n_waiting, "the completion queues are gone, and one still has completions");
    T_ASSERT(hlist_empty(&h->limit_srqs) && hlist_empty(&h->overrun_cqs),
             "a queue that is gone still waits for deferred work");
    events_fini(&h->events);
    rnic_destroy(h->rnic);
    h->dev->hca = NULL;
    ah_free_chunks(h);
    free(h->delayed);
    free(h->key);
    free(h);
}
