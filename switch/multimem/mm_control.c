/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control messages of multimem. A sender must know the group's key and have an address of the
 * fabric.
 */
#include "switch/multimem/mm_priv.h"

#include <string.h>

static struct mm_ctl answer_to(const struct mm_ctl *c, enum agg_status st, const char *text)
{
    struct mm_ctl r = {.status = rte_cpu_to_be_16((uint16_t)st),
                       .xid = c->xid,
                       .group = c->group,
                       .key = c->key,
                       .members = c->members,
                       .member = c->member,
                       .mtu = c->mtu};

    if (st != AGG_OK)
        join_text(r.text, "%s", text[0] ? text : agg_status_text(st));
    return r;
}

static void mm_control_refuse(struct mm *mm, const struct an_addr *to, const struct mm_ctl *c,
                              enum agg_status st, const char *text)
{
    struct mm_ctl r = answer_to(c, st, text);

    mm_send_control(mm, to, AGG_MM_BIND_REPLY, &r);
    mm_record(mm, MM_EV_BIND_REFUSED, rte_be_to_cpu_32(c->group), st);
    mm->cnt.mm_binds_refused++;
}

void mm_refuse_all(struct an *a, const struct an_addr *from, const void *p)
{
    struct mm_ctl c, r;
    struct mm mm = {.a = a};

    memcpy(&c, p, sizeof(c));
    if (c.type != AGG_MM_BIND) {
        a->cnt.control_bad++;
        return;
    }
    r = answer_to(&c, AGG_E_NO_MULTIMEM, "");
    mm_send_control(&mm, from, AGG_MM_BIND_REPLY, &r);
    a->cnt.joins_refused++;
}

static struct mm_group *find_group(struct mm *mm, const struct mm_ctl *c)
{
    return mm_group_find(mm, rte_be_to_cpu_32(c->group), rte_be_to_cpu_64(c->key));
}

/* ---- BIND ---- */

static bool mtu_valid(uint32_t mtu)
{
    return mtu >= 256 && mtu <= ROCE_MAX_MTU && !(mtu & (mtu - 1));
}

/* The host with this address; FAB_NONE: none. */
static uint16_t host_of(const struct mm *mm, uint32_t ip)
{
    const struct fabric *f = mm->a->cfg.fab;
    int d = fabric_dest_of_ip(f, ip);

    if (d < 0 || f->nodes[f->dests[d].node].kind != FAB_HOST)
        return FAB_NONE;
    return f->dests[d].node;
}

static enum agg_status check_memory(const struct mm_ctl *c, char *text)
{
    uint64_t length = rte_be_to_cpu_64(c->length);

    if (length < MM_MAX_LENGTH && c->area < MM_AREAS)
        return AGG_OK;
    join_text(text, "%llu bytes, area %u of %u", (unsigned long long)length, c->area, MM_AREAS);
    return AGG_E_REGION;
}

static void set_memory(struct mm_edge *e, const struct mm_ctl *c)
{
    T_ASSERT(c->area < MM_AREAS, "memory is bound to an area that was not checked");
    mm_record(e->g->mm, MM_EV_REGION, e->g->id, e->member);
    e->area[c->area] = (struct mm_memory){.va = rte_be_to_cpu_64(c->va),
                                          .length = rte_be_to_cpu_64(c->length),
                                          .rkey = rte_be_to_cpu_32(c->rkey),
                                          .xid = rte_be_to_cpu_32(c->xid)};
    mm_group_measure(e->g);
}

/* Checks of a BIND that are independent of earlier ones. */
static enum agg_status check_bind(struct mm *mm, const struct an_addr *from, const struct mm_ctl *c,
                                  char *text)
{
    uint32_t mtu = rte_be_to_cpu_16(c->mtu), n = rte_be_to_cpu_16(c->members);

    uint32_t qpn = rte_be_to_cpu_32(c->qpn);

    if (host_of(mm, from->ip) == FAB_NONE) {
        join_text(text, "sender is no host of this fabric");
        return AGG_E_NOT_MEMBER;
    }
    if (!an_of_sender(mm->a, host_of(mm, from->ip), from, qpn)) {
        join_text(text, "QPN 0x%06x is not of the sender's process (0x%06x)", qpn, from->qpn);
        return AGG_E_NOT_MEMBER;
    }
    if (!mtu_valid(mtu) || mtu > mm->a->cfg.fab->mtu) {
        join_text(text, "MTU %u, the fabric's is %u", mtu, mm->a->cfg.fab->mtu);
        return AGG_E_MTU;
    }
    if (!n || n > MM_MAX_MEMBERS) {
        join_text(text, "%u members, at most %u", n, MM_MAX_MEMBERS);
        return AGG_E_CHILDREN;
    }
    if (rte_be_to_cpu_16(c->member) >= n) {
        join_text(text, "member %u of %u", rte_be_to_cpu_16(c->member), n);
        return AGG_E_NOT_MEMBER;
    }
    if (!rte_be_to_cpu_32(c->reads)) {
        join_text(text, "member allows no READs");
        return AGG_E_REGION;
    }
    return check_memory(c, text);
}

/* A later BIND must agree with the first. */
static enum agg_status check_same(const struct mm_group *g, const struct mm_ctl *c, char *text)
{
    if (g->failed || g->doomed) {
        join_text(text, "%s", g->text);
        return g->status;
    }
    if (g->mtu != rte_be_to_cpu_16(c->mtu)) {
        join_text(text, "MTU %u, the group's is %u", rte_be_to_cpu_16(c->mtu), g->mtu);
        return AGG_E_MTU;
    }
    if (g->n != rte_be_to_cpu_16(c->members)) {
        join_text(text, "%u members, the group has %u", rte_be_to_cpu_16(c->members), g->n);
        return AGG_E_MISMATCH;
    }
    return AGG_OK;
}

static bool is_stale(struct mm *mm, const struct an_addr *from, const struct mm_ctl *c)
{
    for (unsigned i = 0; i < MM_STALE; i++) {
        const struct mm_stale *s = &mm->stale[i];

        if (s->ip == from->ip && s->qpn == rte_be_to_cpu_32(c->qpn) &&
            s->psn == rte_be_to_cpu_32(c->psn) && s->group == rte_be_to_cpu_32(c->group) &&
            mm->a->now < s->expires)
            return true;
    }
    return false;
}

/* Opens the member's edge, or finds that of an earlier attempt. */
static enum agg_status bind_edge(struct mm_group *g, struct mm_edge *e, const struct an_addr *from,
                                 const struct mm_ctl *c, char *text)
{
    uint32_t qpn = rte_be_to_cpu_32(c->qpn), psn = rte_be_to_cpu_32(c->psn);

    if (e->state == MM_LEFT) {
        join_text(text, "member %u has left the group", e->member);
        return AGG_E_DUPLICATE;
    }
    if (e->state != MM_NONE && (e->qpn != qpn || e->psn != psn || e->addr.ip != from->ip)) {
        join_text(text, "member %u is bound already", e->member);
        return AGG_E_DUPLICATE;
    }
    e->addr = *from;
    e->xid = rte_be_to_cpu_32(c->xid);
    if (e->state != MM_NONE)
        return AGG_OK;
    e->node = host_of(g->mm, from->ip);
    e->qpn = qpn;
    e->psn = psn;
    set_memory(e, c);
    e->reads = RTE_MIN(rte_be_to_cpu_32(c->reads), (uint32_t)ROCE_MAX_RD_ATOMIC);
    e->stores = rte_be_to_cpu_32(c->write_slices);
    if (!e->stores || e->stores > g->window)
        e->stores = g->window;
    return mm_edge_open(g, e);
}

static void member_grant(struct mm_group *g, const struct mm_edge *e, const struct mm_ctl *c)
{
    struct mm_ctl r = answer_to(c, AGG_OK, "");

    r.qpn = rte_cpu_to_be_32(qp_num(e->qp));
    r.psn = rte_cpu_to_be_32(e->own_psn);
    r.va = rte_cpu_to_be_64(MM_BASE);
    r.rkey = rte_cpu_to_be_32(g->rkey);
    r.reads = rte_cpu_to_be_32(ROCE_MAX_RD_ATOMIC);
    r.write_slices = rte_cpu_to_be_32(e->stores);
    mm_send_control(g->mm, &e->addr, AGG_MM_BIND_REPLY, &r);
}

static void on_bind(struct mm *mm, const struct an_addr *from, const struct mm_ctl *c)
{
    struct mm_group *g = find_group(mm, c);
    bool first = !g;
    char text[AN_TEXT] = "";
    struct mm_edge *e = NULL;
    enum agg_status st;

    if (is_stale(mm, from, c))
        return;
    st = g ? check_same(g, c, text) : AGG_OK;
    if (st == AGG_OK)
        st = check_bind(mm, from, c, text);
    if (st == AGG_OK && first)
        st = mm_group_create(mm, c, &g, text);
    if (st == AGG_OK) {
        e = &g->edge[rte_be_to_cpu_16(c->member)];
        st = bind_edge(g, e, from, c, text);
        if (st != AGG_OK && first)
            mm_group_free(g);
    }
    if (st != AGG_OK) {
        mm_control_refuse(mm, from, c, st, text);
        return;
    }
    mm_check_group(g);
    member_grant(g, e, c);
}

/* ---- members that are bound ---- */

static struct mm_edge *find_edge(struct mm *mm, const struct an_addr *from, const struct mm_ctl *c)
{
    struct mm_group *g = find_group(mm, c);
    struct mm_edge *e;

    if (!g || rte_be_to_cpu_16(c->member) >= g->n)
        return NULL;
    e = &g->edge[rte_be_to_cpu_16(c->member)];
    return e->state != MM_NONE && e->addr.ip == from->ip &&
                   an_of_sender(mm->a, e->node, from, e->qpn)
               ? e
               : NULL;
}

static void say_ready(struct mm_edge *e)
{
    struct mm_group *g = e->g;
    struct mm_ctl r = {.status = RTE_BE16(AGG_OK),
                       .xid = rte_cpu_to_be_32(e->xid),
                       .group = rte_cpu_to_be_32(g->id),
                       .key = rte_cpu_to_be_64(g->key),
                       .members = rte_cpu_to_be_16(g->n),
                       .member = rte_cpu_to_be_16(e->member)};

    mm_send_control(g->mm, &e->addr, AGG_MM_READY_REPLY, &r);
}

static void on_ready(struct mm *mm, const struct an_addr *from, const struct mm_ctl *c)
{
    struct mm_edge *e = find_edge(mm, from, c);
    struct mm_ctl r;

    if (!e || e->state == MM_LEFT) {
        r = answer_to(c, AGG_E_NOT_MEMBER, "");
        mm_send_control(mm, from, AGG_MM_READY_REPLY, &r);
        return;
    }
    if (e->g->failed) { /* repeats the ABORT */
        e->notified = false;
        return;
    }
    e->addr = *from;
    e->xid = rte_be_to_cpu_32(c->xid);
    if (e->state == MM_BOUND) {
        T_ASSERT(e->g->n_ready < e->g->n, "more members are ready than there are");
        mm_edge_set(e, MM_READY);
        if (++e->g->n_ready == e->g->n) {
            mm_check_group(e->g);
            mm_record(mm, MM_EV_COMPLETE, e->g->id, e->g->n);
            for (unsigned i = 0; i < e->g->n; i++)
                say_ready(&e->g->edge[i]);
            mm_load_issue(e->g);
        }
        return;
    }
    if (e->g->n_ready == e->g->n)
        say_ready(e);
}

static void on_move(struct mm *mm, const struct an_addr *from, const struct mm_ctl *c)
{
    struct mm_edge *e = find_edge(mm, from, c);
    enum agg_status st = e && e->state != MM_LEFT ? AGG_OK : AGG_E_NOT_MEMBER;
    char text[AN_TEXT] = "";
    struct mm_ctl r;

    if (st == AGG_OK)
        st = check_memory(c, text);
    if (st == AGG_OK && (int32_t)(rte_be_to_cpu_32(c->xid) - e->area[c->area].xid) > 0)
        set_memory(e, c);
    r = answer_to(c, st, text);
    r.area = c->area;
    mm_send_control(mm, from, AGG_MM_MOVE_REPLY, &r);
}

static void on_unbind(struct mm *mm, const struct an_addr *from, const struct mm_ctl *c)
{
    struct mm_group *g = find_group(mm, c);
    struct mm_edge *e = find_edge(mm, from, c);
    struct mm_ctl r = answer_to(c, !g ? AGG_E_NO_GROUP : !e ? AGG_E_NOT_MEMBER : AGG_OK, "");
    char who[48];

    mm_send_control(mm, from, AGG_MM_UNBIND_REPLY, &r);
    if (!e || e->state == MM_LEFT)
        return;
    mm->cnt.mm_unbinds++;
    if (mm_group_busy(g) && !g->failed && !g->doomed) {
        mm_doom(g, AGG_E_MEMBER_LEFT, e, "%s left %s", mm_who(e, who, sizeof(who)),
                mm->a->me->name);
        return;
    }
    mm_edge_left(e);
}

static void on_abort_ack(struct mm *mm, const struct an_addr *from, const struct mm_ctl *c)
{
    struct mm_edge *e = find_edge(mm, from, c);
    struct mm_group *g = e ? e->g : NULL;

    if (!g || !g->failed)
        return;
    e->notified = true;
    for (unsigned i = 0; i < g->n; i++)
        if (g->edge[i].state != MM_NONE && !g->edge[i].notified)
            return;
    mm_group_free(g);
}

/* ---- members that are gone ---- */

void mm_lost(struct mm_edge *e, const char *why)
{
    struct mm_group *g = e->g;
    char who[48];

    mm_record(g->mm, MM_EV_MEMBER_DOWN, g->id, e->member);
    if (e->state == MM_BOUND || e->state == MM_READY)
        mm_doom(g, AGG_E_MEMBER_LOST, e, "%s %s at %s", mm_who(e, who, sizeof(who)), why,
                g->mm->a->me->name);
}

void mm_gone(struct mm_edge *e, const char *why)
{
    mm_lost(e, why);
    e->notified = true;
}

void mm_peer_down(struct mm *mm, uint32_t ip, uint32_t space)
{
    struct mm_group *g;

    for (g = LIST_FIRST(&mm->groups); g; g = LIST_NEXT(g, link))
        for (unsigned i = 0; i < g->n; i++) {
            struct mm_edge *e = &g->edge[i];

            if (e->state != MM_NONE && e->addr.ip == ip && (e->qpn >> 16 & 0xff) == space)
                mm_gone(e, "missing");
        }
}

void mm_node_down(struct mm *mm, uint16_t node)
{
    struct mm_group *g;

    for (g = LIST_FIRST(&mm->groups); g; g = LIST_NEXT(g, link))
        for (unsigned i = 0; i < g->n; i++) {
            struct mm_edge *e = &g->edge[i];

            if (e->state != MM_NONE && e->node == node)
                mm_gone(e, "missing");
        }
}

void mm_cut_off(struct mm *mm)
{
    struct mm_group *g;

    for (g = LIST_FIRST(&mm->groups); g; g = LIST_NEXT(g, link))
        mm_doom(g, AGG_E_EDGE, NULL, "%s has lost all its links", mm->a->me->name);
}

void mm_control(struct mm *mm, const struct an_addr *from, const void *p)
{
    struct mm_ctl c;

    memcpy(&c, p, sizeof(c));
    switch (c.type) {
    case AGG_MM_BIND:
        on_bind(mm, from, &c);
        break;
    case AGG_MM_READY:
        on_ready(mm, from, &c);
        break;
    case AGG_MM_MOVE:
        on_move(mm, from, &c);
        break;
    case AGG_MM_UNBIND:
        on_unbind(mm, from, &c);
        break;
    case AGG_MM_ABORT_ACK:
        on_abort_ack(mm, from, &c);
        break;
    default: /* messages that only switches send */
        break;
    }
}
