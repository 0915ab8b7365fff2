/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Life of a multimem group.
 *
 *   none --first BIND--> binding --all READY--> open --last UNBIND--> none
 *                           |                    |
 *                           +--- something is wrong: failed --all know--> none
 *
 * The first BIND reserves all resources of a group, for all n members. A failed group keeps its
 * queue pairs until its members have acknowledged the ABORT, so that their requests are refused by
 * a NAK and do not time out.
 */
#include "switch/multimem/mm_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STALE_PS   (1 * PS_PER_MS)
#define MM_JOIN_PS (30 * PS_PER_S) /* from the first BIND until all are ready */

const char *mm_who(const struct mm_edge *e, char *buf, size_t size)
{
    const struct fabric *f = e->g->mm->a->cfg.fab;

    snprintf(buf, size, "member %u (%s)", e->member,
             e->node < f->n_nodes ? f->nodes[e->node].name : "outside");
    return buf;
}

struct mm_group *mm_group_find(struct mm *mm, uint32_t id, uint64_t key)
{
    struct mm_group *g;

    for (g = LIST_FIRST(&mm->groups); g; g = LIST_NEXT(g, link))
        if (g->id == id && g->key == key)
            return g;
    return NULL;
}

bool mm_group_busy(const struct mm_group *g)
{
    return g->n_loads || g->n_stores;
}

/* ---- reservation ---- */

struct mm_size mm_size(const struct fabric *f, const struct fab_node *me, unsigned n, uint32_t mtu)
{
    uint64_t rate_bps = 0;
    int64_t link_ps = 0;
    struct mm_size z;

    for (unsigned p = 0; p < me->n_ports; p++) {
        const struct fab_port *port = &me->ports[p];

        if (port->link == FAB_NONE)
            continue;
        rate_bps = RTE_MAX(rate_bps, port->rate_bps);
        link_ps = RTE_MAX(link_ps, mm_link_ps(f, port));
    }
    z.slice = mm_slice(n, rate_bps, link_ps);
    z.loads = MM_LOADS / mm_fewer(n);
    z.stores = MM_STORES / mm_fewer(n) * (z.slice / MM_SLICE);
    z.bytes = (uint64_t)n * z.loads * z.slice;
    z.mbufs = (uint64_t)n * z.stores * (MM_SLICE / mtu);
    T_ASSERT(z.slice && z.slice % mtu == 0, "a slice is not whole packets");
    T_ASSERT(z.stores && z.stores <= UINT16_MAX,
             "a member's window of slices is none, or too long");
    return z;
}

static enum agg_status reserve(struct mm *mm, struct mm_group *g, char *text)
{
    const char *me = mm->a->me->name;
    struct mm_counters *c = &mm->cnt;
    uint64_t left;

    T_ASSERT(c->mm_bytes <= mm->cfg.max_bytes && c->mm_mbufs <= mm->cfg.max_mbufs,
             "more is reserved than the quotas allow");
    if (c->mm_groups >= mm->cfg.max_groups) {
        join_text(text, "%s has %u groups, at most %u", me, (unsigned)c->mm_groups,
                  mm->cfg.max_groups);
        return AGG_E_QUOTA_GROUPS;
    }
    if (c->mm_bytes + g->bytes > mm->cfg.max_bytes) {
        join_text(text, "%s has %llu of %llu bytes left, %llu needed", me,
                  (unsigned long long)(mm->cfg.max_bytes - c->mm_bytes),
                  (unsigned long long)mm->cfg.max_bytes, (unsigned long long)g->bytes);
        return AGG_E_QUOTA_BUFFERS;
    }
    left = RTE_MIN(mm->cfg.max_mbufs - c->mm_mbufs, an_mbufs_left(mm->a));
    if (g->mbufs > left) {
        join_text(text, "%s has %u of %u frames left, %u needed", me, (unsigned)left,
                  mm->cfg.max_mbufs, (unsigned)g->mbufs);
        return AGG_E_QUOTA_BUFFERS;
    }
    return AGG_OK;
}

static void group_account(struct mm_group *g, int sign)
{
    struct mm_counters *c = &g->mm->cnt;

    T_ASSERT(sign > 0 || (c->mm_groups && c->mm_bytes >= g->bytes && c->mm_mbufs >= g->mbufs &&
                          g->mm->a->cnt.mbufs_promised >= g->mbufs),
             "a group gives back more than was reserved");
    c->mm_groups += (uint64_t)sign;
    c->mm_bytes += (uint64_t)sign * g->bytes;
    c->mm_mbufs += (uint64_t)sign * g->mbufs;
    g->mm->a->cnt.mbufs_promised += (uint64_t)sign * g->mbufs; /* one pool */
    c->mm_groups_peak = RTE_MAX(c->mm_groups_peak, c->mm_groups);
}

static void free_memory(struct mm_group *g)
{
    free(g->mem);
    free(g->here);
    free(g->stores);
    free(g);
}

static bool mm_group_allocate(struct mm_group *g)
{
    g->mem = aligned_alloc(64, g->bytes);
    g->here = malloc((size_t)g->n * g->most_loads);
    g->stores = calloc((size_t)g->n * g->window, sizeof(g->stores[0]));
    if (!g->mem || !g->here || !g->stores)
        return false;
    STAILQ_INIT(&g->free);
    for (unsigned i = 0; i < g->most_loads; i++) {
        g->load[i].mem = g->mem + (size_t)i * g->n * g->slice;
        g->load[i].here = g->here + (size_t)i * g->n;
        STAILQ_INSERT_TAIL(&g->free, &g->load[i], link);
    }
    for (unsigned i = 0; i < g->n; i++) {
        g->edge[i] = (struct mm_edge){
            .g = g, .member = (uint16_t)i, .store = &g->stores[(size_t)i * g->window]};
        STAILQ_INIT(&g->edge[i].loads);
    }
    return true;
}

enum agg_status mm_group_create(struct mm *mm, const struct mm_ctl *c, struct mm_group **out,
                                char *text)
{
    uint16_t n = rte_be_to_cpu_16(c->members);
    struct mm_group *g = calloc(1, sizeof(*g) + n * sizeof(g->edge[0]));
    enum agg_status st = AGG_E_QUOTA_BUFFERS;
    struct mm_size z;

    if (!g)
        return st;
    g->mm = mm;
    g->id = rte_be_to_cpu_32(c->group);
    g->key = rte_be_to_cpu_64(c->key);
    g->mtu = rte_be_to_cpu_16(c->mtu);
    g->n = n;
    z = mm_size(mm->a->cfg.fab, mm->a->me, n, g->mtu);
    g->slice = z.slice;
    g->most_loads = z.loads;
    g->window = (uint16_t)z.stores;
    g->bytes = z.bytes;
    g->mbufs = z.mbufs;
    g->rkey = (uint32_t)mm_random(mm);
    g->deadline = mm->a->now + MM_JOIN_PS;
    g->look_ps = mm->a->now + AN_LOOK_PS;
    st = reserve(mm, g, text);
    if (st == AGG_OK && !mm_group_allocate(g)) {
        join_text(text, "%s is out of memory", mm->a->me->name);
        st = AGG_E_QUOTA_BUFFERS;
    }
    if (st != AGG_OK) {
        free_memory(g);
        return st;
    }
    group_account(g, 1);
    LIST_INSERT_HEAD(&mm->groups, g, link);
    *out = g;
    return AGG_OK;
}

/* ---- members ---- */

void mm_group_measure(struct mm_group *g)
{
    for (unsigned k = 0; k < MM_AREAS; k++) {
        g->length[k] = MM_MAX_LENGTH;
        for (unsigned i = 0; i < g->n; i++)
            g->length[k] = RTE_MIN(g->length[k], g->edge[i].area[k].length);
    }
}

/* Makes a member's queue pair. Its send queue has room for all requests of the group to one member:
 * every slice read and every slice written. */
static int make_qp(struct mm_edge *e)
{
    struct mm_group *g = e->g;
    struct qp_cfg cfg = {.type = QP_RC,
                         .sq_depth = g->most_loads + g->n * g->window,
                         .bounded = true,
                         .max_sge = 1,
                         .sig_all = true,
                         .deferred = true,
                         .user = e,
                         .pd = AN_PD_MM};
    struct qp_attr attr = {.state = QP_INIT, .access = ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE};
    int rc;

    T_ASSERT(!g->mm->a->in_rnic, "a queue pair is made while the rnic is in a frame");
    T_ASSERT(!e->qp, "a member has a queue pair already");
    rc = qp_create(g->mm->a->rnic, &cfg, &e->qp);
    if (rc)
        return rc;
    e->own_psn = (uint32_t)mm_random(g->mm) & ROCE_PSN_MASK;
    return qp_modify(e->qp, &attr);
}

static int connect_qp(struct mm_edge *e)
{
    struct qp_attr attr = {.dest_qpn = e->qpn,
                           .rq_psn = e->psn,
                           .mtu = e->g->mtu,
                           .sq_psn = e->own_psn,
                           .max_rd_atomic = (uint8_t)e->reads,
                           .max_dest_rd_atomic = ROCE_MAX_RD_ATOMIC};

    return an_connect(e->g->mm->a->cfg.fab, e->qp, &e->addr, &attr);
}

void mm_edge_set(struct mm_edge *e, enum mm_edge_state state)
{
    e->state = (uint8_t)state;
    mm_record(e->g->mm, MM_EV_EDGE + state, e->g->id, e->member);
}

enum agg_status mm_edge_open(struct mm_group *g, struct mm_edge *e)
{
    int rc = make_qp(e);

    if (!rc)
        rc = connect_qp(e);
    if (rc) {
        if (e->qp)
            qp_destroy(e->qp);
        e->qp = NULL;
        return rc == -EINVAL ? AGG_E_PROTOCOL : AGG_E_QUOTA_BUFFERS;
    }
    mm_edge_set(e, MM_BOUND);
    g->n_bound++;
    g->mm->cnt.mm_binds++;
    return AGG_OK;
}

void mm_edge_left(struct mm_edge *e)
{
    struct mm_group *g = e->g;
    struct mm *mm = g->mm;

    if (e->state != MM_BOUND && e->state != MM_READY)
        return;
    T_ASSERT(!mm->a->in_rnic, "a queue pair is destroyed while the rnic is in a frame");
    mm->stale[mm->next_stale++ % MM_STALE] =
        (struct mm_stale){e->addr.ip, e->qpn, e->psn, g->id, mm->a->now + STALE_PS};
    if (e->qp)
        qp_destroy(e->qp);
    e->qp = NULL;
    mm_edge_set(e, MM_LEFT);
    e->wants = false;
    e->notified = true;
    g->n_left++;
    mm_check_group(g);
    if (g->n_left == g->n_bound)
        mm_group_free(g);
}

void mm_group_free(struct mm_group *g)
{
    T_ASSERT(!g->mm->a->in_rnic, "a group is freed while the rnic is in a frame");
    T_ASSERT(g->mm->cnt.mm_loads_used >= g->n_loads, "more slices end than are being read");
    mm_record(g->mm, MM_EV_ENDED, g->id, g->n_left);
    mm_store_drop_all(g);
    for (unsigned i = 0; i < g->n; i++)
        if (g->edge[i].qp)
            qp_destroy(g->edge[i].qp);
    g->mm->cnt.mm_loads_used -= g->n_loads;
    if (g->doomed && !g->failed)
        SLIST_REMOVE(&g->mm->doomed, g, mm_group, doomed_link);
    group_account(g, -1);
    LIST_REMOVE(g, link);
    free_memory(g);
}

/* ---- aborts ---- */

void mm_doom(struct mm_group *g, enum agg_status status, struct mm_edge *culprit, const char *fmt,
             ...)
{
    va_list ap;

    if (g->doomed)
        return;
    T_ASSERT(status != AGG_OK && status < AGG_STATUS_COUNT, "a group is aborted without a reason");
    mm_record(g->mm, MM_EV_DOOMED, g->id, status);
    g->doomed = true;
    g->status = status;
    g->culprit = culprit;
    va_start(ap, fmt);
    vsnprintf(g->text, sizeof(g->text), fmt, ap);
    va_end(ap);
    SLIST_INSERT_HEAD(&g->mm->doomed, g, doomed_link);
}

/* Sends ABORT to the members that have not acknowledged it. False: the group was freed. */
static bool mm_group_notify(struct mm_group *g)
{
    struct mm *mm = g->mm;
    bool any = false;

    for (unsigned i = 0; i < g->n; i++) {
        struct mm_edge *e = &g->edge[i];
        struct mm_ctl c = {.status = rte_cpu_to_be_16((uint16_t)g->status),
                           .xid = rte_cpu_to_be_32(e->xid),
                           .group = rte_cpu_to_be_32(g->id),
                           .key = rte_cpu_to_be_64(g->key),
                           .members = rte_cpu_to_be_16(g->n),
                           .member = rte_cpu_to_be_16(e->member)};

        if (e->state == MM_NONE || e->notified)
            continue;
        if (g->tries == AN_RETRIES) {
            mm->a->cnt.aborts_unanswered++;
            continue;
        }
        memcpy(c.text, g->text, sizeof(c.text));
        mm_send_control(mm, &e->addr, AGG_MM_ABORT, &c);
        any = true;
    }
    if (!any) {
        mm_group_free(g);
        return false;
    }
    g->deadline = mm->a->now + an_backoff(g->tries++);
    return true;
}

void mm_group_tick(struct mm_group *g)
{
    struct mm *mm = g->mm;
    char who[48] = "a member";

    if (g->failed && mm->a->now >= g->deadline) {
        mm_group_notify(g);
        return;
    }
    if (g->failed || g->doomed)
        return;
    if (g->n_ready == g->n) {
        g->deadline = PS_NEVER;
    } else if (mm->a->now >= g->deadline) {
        for (unsigned i = 0; i < g->n; i++)
            if (g->edge[i].state != MM_READY)
                snprintf(who, sizeof(who), "member %u", i);
        mm_doom(g, AGG_E_MEMBER_LOST, NULL, "%s has not joined %s in time", who, mm->a->me->name);
        return;
    }
    if (mm->a->now < g->look_ps)
        return;
    g->look_ps = mm->a->now + AN_LOOK_PS;
    for (unsigned i = 0; i < g->n; i++)
        if (g->edge[i].qp && !idle_look(mm->a, &g->edge[i].watch, g->edge[i].qp))
            mm_gone(&g->edge[i], "does not answer any more");
}

void mm_group_abort(struct mm_group *g)
{
    struct mm *mm = g->mm;

    SLIST_REMOVE(&mm->doomed, g, mm_group, doomed_link);
    T_ASSERT(g->doomed && !g->failed, "a group is aborted twice, or without a reason");
    g->failed = true;
    mm_record(mm, MM_EV_ABORTED, g->id, g->n_bound);
    mm->cnt.mm_aborts++;
    for (unsigned i = 0; i < g->n; i++) {
        struct mm_edge *e = &g->edge[i];
        struct qp_read r;

        if (e == g->culprit && g->status == AGG_E_MEMBER_LEFT)
            e->notified = true;
        else if (e->qp && (e->head != e->tail || qp_read_from(e->qp, 0, true, &r)))
            qp_refuse(e->qp);
    }
    mm_store_drop_all(g);
    mm_group_notify(g);
}
