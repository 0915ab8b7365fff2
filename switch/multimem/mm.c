/* SPDX-License-Identifier: BSD-3-Clause */
/* Multimem behind the aggregation node's rnic: callbacks of its queue pairs, and time. */
#include "switch/multimem/mm_priv.h"

#include "base/random.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SEED 0xd1b54a32d192ed03ull

const struct deferred_ops mm_deferred_ops = {mm_load_reads, mm_load_fill, mm_store_packet};

uint64_t mm_random(struct mm *mm)
{
    return random_next(&mm->random);
}

void mm_send_control(struct mm *mm, const struct an_addr *to, enum agg_type type, struct mm_ctl *c)
{
    struct wqe *w = &mm->a->say;

    c->magic = RTE_BE32(AGG_MAGIC);
    c->version = AGG_VERSION;
    c->type = (uint8_t)type;
    w->ud.ip = to->ip;
    w->ud.qpn = to->qpn;
    w->ud.qkey = AGG_QKEY;
    memcpy(w->ud.mac, to->mac, sizeof(w->ud.mac));
    memcpy(w->inl, c, sizeof(*c));
    if (qp_post_send(mm->a->ctl, w))
        mm->a->cnt.control_dropped++;
}

/* ---- callbacks of the rnic, within a frame ---- */

int mm_memory(struct qp *qp, bool remote, uint32_t key, uint64_t addr, uint64_t len,
              unsigned access, void **p)
{
    struct mm_edge *e = qp_user(qp);
    struct mm_group *g = e->g;
    uint64_t off = addr - (uintptr_t)g->mem;

    if (!remote) {
        if (off > g->bytes || len > g->bytes - off)
            return -EFAULT;
        /* If frames cannot carry data, members answer with lengths only. */
        *p = g->mm->carries || len <= FRAME_CARRIED ? (void *)(uintptr_t)addr : NULL;
        return 0;
    }
    *p = NULL;
    if (key != g->rkey) {
        g->mm->cnt.mm_bad_keys++;
        return -EACCES;
    }
    return access & ACCESS_REMOTE_WRITE ? mm_store_check(e, addr, len)
                                        : mm_load_check(e, addr, len);
}

static const char *mm_why(uint8_t status)
{
    switch (status) {
    case WC_RETRY_EXC_ERR:
        return "gives no answer";
    case WC_RNR_RETRY_EXC_ERR:
        return "is not ready to receive";
    case WC_REM_ACCESS_ERR:
        return "does not allow access to its memory";
    case WC_REM_INV_REQ_ERR:
    case WC_REM_OP_ERR:
        return "refuses a request";
    default:
        return "has failed";
    }
}

void mm_complete(const struct cqe *c)
{
    struct mm_edge *e = qp_user(c->qp);
    struct mm_group *g = e->g;

    T_ASSERT_HOT(MM_WR_MEMBER(c->wr_id) < g->n, "a request of ours names no member");
    if (g->failed || g->doomed || c->status == WC_WR_FLUSH_ERR)
        return;
    if (c->status != WC_SUCCESS)
        mm_lost(e, mm_why(c->status));
    else if (MM_WR_IS_LOAD(c->wr_id))
        mm_load_done(e, MM_WR_INDEX(c->wr_id), c->virt);
    else
        mm_store_done(&g->edge[MM_WR_MEMBER(c->wr_id)], MM_WR_INDEX(c->wr_id));
}

void mm_event(struct qp *qp, enum qp_event ev)
{
    struct mm_edge *e = qp_user(qp);

    if (ev == QP_EV_FATAL || ev == QP_EV_ACCESS_ERR || ev == QP_EV_REQ_ERR)
        mm_lost(e,
                ev == QP_EV_ACCESS_ERR ? "asked for what it may not" : "sent an invalid request");
}

/* ---- settling and time ---- */

bool mm_settle(struct mm *mm)
{
    struct mm_group *g;
    bool any = false;

    while ((g = SLIST_FIRST(&mm->doomed))) {
        mm_group_abort(g);
        any = true;
    }
    return any;
}

void mm_tick(struct mm *mm)
{
    struct mm_group *g, *next;

    for (g = LIST_FIRST(&mm->groups); g; g = next) {
        next = LIST_NEXT(g, link); /* the group may be freed */
        if (mm->a->now >= RTE_MIN(g->deadline, g->look_ps))
            mm_group_tick(g);
    }
}

int64_t mm_deadline(const struct mm *mm)
{
    const struct mm_group *g;
    int64_t t = PS_NEVER;

    for (g = LIST_FIRST(&mm->groups); g; g = LIST_NEXT(g, link))
        t = RTE_MIN(t, g->failed ? g->deadline : RTE_MIN(g->deadline, g->look_ps));
    return t;
}

/* ---- life ---- */

uint32_t mm_max_qps(const struct mm_cfg *cfg)
{
    return (cfg->max_groups ? cfg->max_groups : MM_DEFAULT_GROUPS) * MM_MAX_MEMBERS;
}

int mm_create(struct mm **out, struct an *a, const struct mm_cfg *cfg)
{
    struct mm *mm = calloc(1, sizeof(*mm));

    if (!mm)
        return -ENOMEM;
    mm->a = a;
    mm->cfg = *cfg;
    mm->carries = frame_pool_carries(a->cfg.pool);
    if (!cfg->max_groups)
        mm->cfg.max_groups = MM_DEFAULT_GROUPS;
    if (!cfg->max_bytes)
        mm->cfg.max_bytes = MM_DEFAULT_BYTES;
    if (!cfg->max_mbufs)
        mm->cfg.max_mbufs = a->cfg.mbuf_budget;
    events_init(&mm->events, &mm_event_kinds, a->me->name);
    mm->random = SEED * (a->cfg.node + 1u);
    mm->load = (struct wqe){.op = WR_READ, .frag = WQE_WHOLE, .n_sge = 1};
    mm->store = (struct wqe){.op = WR_WRITE, .frag = WQE_WHOLE};
    *out = mm;
    return 0;
}

void mm_destroy(struct mm *mm)
{
    struct mm_group *g;

    if (!mm)
        return;
    while ((g = LIST_FIRST(&mm->groups)))
        mm_group_free(g);
    events_fini(&mm->events);
    free(mm);
}

bool mm_idle(const struct mm *mm)
{
    return LIST_EMPTY(&mm->groups) && !mm->cnt.mm_groups && !mm->cnt.mm_bytes &&
           !mm->cnt.mm_mbufs && !mm->cnt.mm_loads_used && !mm->cnt.mm_stores_used;
}

unsigned mm_groups_of(const struct mm *mm, uint64_t key)
{
    const struct mm_group *g;
    unsigned n = 0;

    LIST_FOREACH(g, &mm->groups, link)
    n += g->key == key;
    return n;
}

const struct mm_counters *mm_counters(const struct mm *mm)
{
    return &mm->cnt;
}

void mm_counters_print(const struct mm *mm, void (*emit)(void *ctx, const char *name, uint64_t v),
                       void *ctx)
{
#define X(n) emit(ctx, #n, mm->cnt.n);
    MM_COUNTERS(X)
#undef X
}
