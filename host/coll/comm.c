/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"
#include "host/coll/transport/conn.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLL_BATCH 32
static const char *const state_names[] = {
    [COMM_CONNECTING] = "connecting", [COMM_READY] = "ready", [COMM_FAILED] = "failed"};

static const char *const phase_names[PHASES] = {[PHASE_NONE] = "none",
                                                [PHASE_READY] = "ready",
                                                [PHASE_CLOSING] = "closing",
                                                [PHASE_FAILED] = "failed"};

static const char *const event_names[COMM_EVENTS] = {
    [COMM_EV_STATE] = "state %u, phase %u",
    [COMM_EV_CONN_MADE] = "connection to rank %u open, channel %u",
    [COMM_EV_CONN_LOST] = "connection to rank %u lost, status %u",
    [COMM_EV_CONN_RENEW] = "connections renewed, generation %u: %u given up",
    [COMM_EV_OP_START] = "operation %u started, algorithm %u",
    [COMM_EV_OP_FINISH] = "operation %u finished, algorithm %u",
    [COMM_EV_JOIN] = "tree %u: JOIN state %u",
    [COMM_EV_GRANT] = "tree %u: granted %u slots",
    [COMM_EV_REFUSE] = "tree %u: refused, status %u",
    [COMM_EV_ABORT] = "tree %u: aborted, status %u",
    [COMM_EV_FAIL_BEGIN] = "failover begun, parts %u, round %u",
    [COMM_EV_FAIL_AGREED] = "failover agreed, parts %u, operation %u",
    [COMM_EV_FAIL_DONE] = "failover done, stopped parts %u, %u rounds",
    [COMM_EV_FIT] = "fit: %u trees, window %u",
    [COMM_EV_WINDOW] = "tree %u: window %u",
    [COMM_EV_PROTOCOL] = "protocol %u: JOIN state %u",
};
static const struct event_kinds event_kinds = {"coll", event_names, COMM_EVENTS};

/* Every change of state goes through here. FAILED is final, READY does not go back. */
static void set_state(struct comm *c, enum comm_state state)
{
    T_ASSERT(state > c->state, "a communicator goes back to an earlier state");
    c->state = state;
    comm_event(c, COMM_EV_STATE, state, comm_phase(c));
    T_LOG("coll", LOG_INFO, "rank %u of %u: %s, peers are told %s", c->cfg.rank, c->cfg.nranks,
          state_names[state], phase_names[comm_phase(c)]);
}

/* ---- hot path ---- */

static void completion_dispatch(struct comm *c, const struct ibv_wc *wc)
{
    switch (WR_KIND(wc->wr_id)) {
    case WR_CONN_RECV:
    case WR_CONN_SEND:
        conn_complete(c, wc);
        break;
    case WR_AGG_RECV:
    case WR_AGG_SEND:
        agg_complete(c, wc);
        break;
    case WR_MM:
        plane_complete(c, wc);
        break;
    case WR_PROTOCOL_RECV:
    case WR_PROTOCOL_SEND:
        protocol_complete(c, wc);
        break;
    case WR_CTL_RECV:
    case WR_CTL_SEND:
        ctl_complete(c, wc);
        break;
    }
}

static unsigned poll_port(struct comm *c, struct port *p)
{
    struct ibv_wc wc[POLL_BATCH];
    int n = ibv_poll_cq(p->cq, POLL_BATCH, wc);

    if (n < 0) {
        comm_fail(c, "polling the completion queue failed");
        return 0;
    }
    for (int i = 0; i < n; i++)
        completion_dispatch(c, &wc[i]);
    return (unsigned)n;
}

/* An empty poll may put the process to sleep. So before the next poll, work that a completion
 * allows is posted, and the end of an operation is returned. */
int comm_progress(struct comm *c)
{
    const uint32_t op = c->exec.next_seq;
    const enum comm_state state = c->state;
    unsigned total = 0, moved;

    do {
        moved = c->protocols ? protocols_progress(c) : 0;
        for (unsigned p = 0; p < c->n_ports; p++) {
            moved += !c->waiting || *c->waiting >> p & 1 ? poll_port(c, &c->port[p]) : 0;
            if (moved || p + 1 == c->n_ports)
                moved += exec_run(c);
            if (c->exec.next_seq != op || c->state != state)
                return COMM_PROGRESS_MAX;
        }
        total += moved;
    } while (moved && total < COMM_PROGRESS_MAX);
    return (int)total;
}

/* ---- control path ---- */

enum comm_state comm_state(const struct comm *c)
{
    return c->state;
}

const char *comm_error(const struct comm *c)
{
    return c->error;
}

const char *comm_host(const struct comm *c, unsigned rank)
{
    return c->cfg.fab->nodes[c->cfg.fab->hosts[c->cfg.host_of_rank[rank]]].name;
}

uint32_t comm_psn(const struct comm *c, unsigned peer, unsigned which)
{
    uint64_t x = ((uint64_t)c->cfg.group << 32 ^ (uint64_t)c->cfg.rank << 20 ^ peer << 6 ^ which) *
                 0x9e3779b97f4a7c15ULL;

    return (uint32_t)(x >> 40);
}

void comm_fail(struct comm *c, const char *fmt, ...)
{
    va_list ap;

    if (c->state == COMM_FAILED)
        return;
    va_start(ap, fmt);
    vsnprintf(c->error, sizeof(c->error), fmt, ap);
    va_end(ap);
    if (!*c->error) /* the peer gave none */
        snprintf(c->error, sizeof(c->error), "failed, without a reason given");
    set_state(c, COMM_FAILED);
    conn_stop(c);
    agg_stop(c, ~0u);
    planes_stop(c);
    protocols_stop(c, PARTS_PROTOCOLS);
    exec_fail(c);
    ctl_tell(c);
}

void comm_abort(struct comm *c, const char *why)
{
    comm_fail(c, "%s", why);
}

bool comm_counts_on(const struct comm *c, unsigned r)
{
    return c->ctl.peer && c->ctl.peer[r].linked && c->ctl.peer[r].phase < PHASE_CLOSING;
}

void comm_check_ready(struct comm *c)
{
    if (c->state == COMM_CONNECTING && ctl_all_in(c, PHASE_READY) &&
        c->failover.state != FAILOVER_ASKING && join_all_granted(c) &&
        (c->failover.stopped & PART_MM || planes_ready(c)) && protocols_joined(c) &&
        conn_all_open(c))
        set_state(c, COMM_READY);
}

/* Fails, or fails over, and names the rank or switch that has not answered in time. */
static void connect_give_up(struct comm *c)
{
    for (unsigned i = 0; i < c->n_aggs; i++)
        if (c->agg[i].state == JOIN_ASKED && !(c->failover.stopped & agg_part(&c->agg[i]))) {
            agg_fails(c, &c->agg[i]);
            failover_begin(c, agg_part(&c->agg[i]), "%s does not answer JOIN",
                           agg_leaf_name(c, &c->agg[i]));
            return;
        }
    if (planes_late(c) && !(c->failover.stopped & PART_MM) && ctl_all_in(c, PHASE_READY)) {
        failover_begin(c, PART_MM, "multimem: %s does not answer", planes_late(c));
        return;
    }
    if (protocols_give_up(c))
        return;
    for (unsigned r = 0; r < c->cfg.nranks; r++)
        if (c->ctl.peer[r].linked && c->ctl.peer[r].phase == PHASE_NONE) {
            comm_fail(c, "rank %u (%s): does not answer", r, comm_host(c, r));
            return;
        }
    for (unsigned i = 0; i < c->n_conns; i++)
        if (!c->conn[i]->open) {
            comm_fail(c, "rank %u (%s): does not make a connection", c->conn[i]->peer,
                      comm_host(c, c->conn[i]->peer));
            return;
        }
}

void comm_tick(struct comm *c, int64_t now_ns)
{
    c->now_ns = now_ns;
    if (c->since_ns < 0)
        c->since_ns = c->repeated_ns = now_ns;
    if (c->state == COMM_CONNECTING && c->ctl.peer && now_ns - c->since_ns > GIVE_UP_NS)
        connect_give_up(c);
    if (now_ns - c->repeated_ns < RETRY_NS)
        return;
    c->repeated_ns = now_ns;
    ctl_tick(c);
    join_tick(c);
    planes_tick(c);
    protocols_tick(c);
    op_tick(c);
    failover_tick(c);
}

void comm_close(struct comm *c)
{
    if (c->closing)
        return;
    if (c->exec.head && c->state != COMM_FAILED)
        comm_fail(c, "closed with operations under way");
    c->closing = true;
    c->since_ns = -1;
    ctl_tell(c);
    join_leave(c, ~0u);
    planes_leave(c);
    protocols_leave(c, PARTS_PROTOCOLS);
}

bool comm_closed(const struct comm *c)
{
    if (!c->closing)
        return false;
    if (c->since_ns >= 0 && c->now_ns - c->since_ns > CLOSE_NS)
        return true;
    return join_all_left(c) && planes_left(c) && protocols_left(c) && ctl_all_know(c) &&
           (c->state == COMM_FAILED || ctl_all_in(c, PHASE_CLOSING));
}

/* ---- set-up ---- */

static int check_cfg(const struct comm_cfg *cfg, char *err)
{
    unsigned n = cfg->fab->n_hosts;

    if (!cfg->nranks || cfg->nranks > FAB_MAX_MEMBERS || cfg->rank >= cfg->nranks) {
        snprintf(err, COMM_TEXT, "rank %u of %u: between 1 and %d ranks are possible", cfg->rank,
                 cfg->nranks, FAB_MAX_MEMBERS);
        return -EINVAL;
    }
    for (unsigned r = 0; r < cfg->nranks; r++)
        if (cfg->host_of_rank[r] >= n) {
            snprintf(err, COMM_TEXT, "rank %u is on host %u; the fabric has %u hosts", r,
                     cfg->host_of_rank[r], n);
            return -EINVAL;
        }
    return 0;
}

static int open_port(struct comm *c, unsigned i, char *err)
{
    const struct fabric *fab = c->cfg.fab;
    const struct fab_node *host = &fab->nodes[fab->hosts[c->cfg.host_of_rank[c->cfg.rank]]];
    const char *dev = ibv_get_device_name(c->cfg.ctx[i]->device);
    struct port *p = &c->port[i];
    int rc;

    p->ctx = c->cfg.ctx[i];
    p->index = i;
    port_set_timeouts(p, fab);
    rc = port_find(p, &host->ip_of_port[i], 1, fab->mtu);
    if (rc) {
        snprintf(err, COMM_TEXT, "no port of %s has the address of port %u of host %s (%s)", dev, i,
                 host->name, strerror(-rc));
        return rc;
    }
    errno = 0;
    p->pd = ibv_alloc_pd(p->ctx);
    if (!p->pd || port_reserve(p, COMM_CQE)) {
        snprintf(err, COMM_TEXT, "protection domain or completion queue: %s", strerror(errno));
        return errno ? -errno : -ENOMEM;
    }
    c->mtu = i && c->mtu < p->mtu ? c->mtu : p->mtu;
    return 0;
}

static int open_ports(struct comm *c, char *err)
{
    const struct fabric *fab = c->cfg.fab;
    const struct fab_node *host = &fab->nodes[fab->hosts[c->cfg.host_of_rank[c->cfg.rank]]];
    int rc = 0;

    if (c->cfg.n_ctx != host->n_ports || c->cfg.n_ctx > COMM_PORTS) {
        snprintf(err, COMM_TEXT, "%u devices for host %s, which has %u ports", c->cfg.n_ctx,
                 host->name, host->n_ports);
        return -EINVAL;
    }
    for (unsigned i = 0; !rc && i < c->cfg.n_ctx; i++) {
        c->n_ports = i + 1;
        rc = open_port(c, i, err);
    }
    for (unsigned i = 0; !rc && i < c->n_ports; i++)
        c->port[i].mtu = c->mtu;
    return rc;
}

/* Copies what the caller's cfg points to. */
static struct comm *comm_alloc(const struct comm_cfg *cfg)
{
    struct comm *c = cacheline_alloc(sizeof(*c));
    uint16_t *hosts = malloc(cfg->nranks * sizeof(*hosts));
    struct ibv_context **ctx = malloc((cfg->n_ctx + 1) * sizeof(*ctx));

    if (!c || !hosts || !ctx) {
        free(c);
        free(hosts);
        free(ctx);
        return NULL;
    }
    memcpy(hosts, cfg->host_of_rank, cfg->nranks * sizeof(*hosts));
    memcpy(ctx, cfg->ctx, cfg->n_ctx * sizeof(*ctx));
    c->cfg = *cfg;
    c->cfg.host_of_rank = hosts;
    c->cfg.ctx = ctx;
    if (cfg->hooks)
        c->hooks = *cfg->hooks;
    c->cfg.hooks = NULL;
    c->waiting = c->hooks.waiting;
    c->watch = cfg->watch;
    c->tell = &failover_events;
    c->since_ns = -1;
    return c;
}

int comm_create(struct comm **out, const struct comm_cfg *cfg, void *blob, char *err)
{
    char who[40];
    struct comm *c;
    int rc = check_cfg(cfg, err);

    if (rc)
        return rc;
    c = comm_alloc(cfg);
    if (!c) {
        snprintf(err, COMM_TEXT, "out of memory");
        return -ENOMEM;
    }
    snprintf(who, sizeof(who), "rank %u group %x", cfg->rank, cfg->group);
    events_init(&c->events, &event_kinds, who);
    rc = policy_init(c, err);
    if (!rc)
        rc = open_ports(c, err);
    if (!rc)
        rc = ctl_create(c, err);
    if (!rc) {
        rc = topo_init(&c->topo, cfg->fab, cfg->rank, cfg->nranks, c->cfg.host_of_rank, 0);
        if (rc)
            snprintf(err, COMM_TEXT, "out of memory");
    }
    if (!rc && cfg->nranks > 1)
        rc = agg_create(c, err);
    if (!rc)
        rc = failover_keep_create(c, err);
    if (!rc && cfg->nranks > 1)
        rc = planes_create(c, err);
    if (!rc && cfg->nranks > 1)
        rc = protocols_create(c, err);
    if (rc) {
        comm_destroy(c);
        return rc;
    }
    c->failover.first = c->failover.trees = agg_in_use(c);
    agg_use_trees(c, c->failover.first);
    c->topo.sched.rail_trees = c->n_aggs && c->agg[c->n_aggs - 1].kind == GROUP_RAIL;
    blob_write(c, blob);
    *out = c;
    return 0;
}

/* Neighbours in the ring of ranks are always linked, so that a phase reaches all ranks; connections
 * are made where most algorithms need them. */
static int connect_neighbours(struct comm *c, char *err)
{
    unsigned n = c->cfg.nranks, r = c->cfg.rank, next[2] = {(r + n - 1) % n, (r + 1) % n};
    int rc = 0;

    for (unsigned i = 0; !rc && i < 2; i++) {
        ctl_link(c, next[i]);
        if (c->cfg.algos & ~(1u << ALGO_SHARP | COLL_PROTOCOLS))
            rc = conn_all_channels(c, next[i], err);
    }
    ctl_tell(c);
    return rc;
}

int comm_connect(struct comm *c, const void *blobs, char *err)
{
    unsigned n = c->cfg.nranks;
    int rc = 0;

    if (n == 1) {
        set_state(c, COMM_READY);
        return 0;
    }
    c->ctl.peer = calloc(n, sizeof(*c->ctl.peer));
    if (!c->ctl.peer) {
        snprintf(err, COMM_TEXT, "out of memory");
        return -ENOMEM;
    }
    for (unsigned r = 0; r < n && !rc; r++)
        rc = blob_take(c, r, (const uint8_t *)blobs + (size_t)r * COMM_BLOB, err);
    if (rc)
        return rc;
    c->since_ns = -1;
    rc = connect_neighbours(c, err);
    if (!rc)
        rc = join_start(c, err);
    if (!rc)
        rc = planes_start(c, err);
    return rc ? rc : protocols_start(c, err);
}

void comm_destroy(struct comm *c)
{
    if (!c)
        return;
    if (c->cfg.device) /* streams of the GPU may still use what is freed here */
        device_wait(c->cfg.device);
    exec_destroy(c);
    failover_destroy(c);
    conn_destroy(c);
    agg_destroy(c);
    planes_destroy(c);
    protocols_destroy(c);
    join_destroy(c);
    ctl_destroy(c);
    mem_destroy(c);
    topo_free(&c->topo);
    events_fini(&c->events);
    for (unsigned i = 0; i < c->n_ports; i++) {
        if (c->port[i].cq)
            ibv_destroy_cq(c->port[i].cq);
        if (c->port[i].pd)
            ibv_dealloc_pd(c->port[i].pd);
    }
    free((void *)c->cfg.host_of_rank);
    free((void *)(uintptr_t)c->cfg.ctx);
    free(c);
}
