/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Life of a group at an AN.
 *
 *   none --first JOIN--> ASKING --parent grants--> OPEN --last LEAVE--> over
 *                          |                         |
 *                          +-- parent refuses: over  +-- something is wrong: ABORT to all, over
 *
 * (the top of a group has no parent to ask and is OPEN at once). The first JOIN reserves all resources of
 * a group: its place among the groups, a window of slots, and the mbufs that its slots and
 * unacknowledged results can hold. So a granted group never waits for another one to end.
 */
#include "switch/reduce/an_priv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

static unsigned rank_of(const struct an_group *g, unsigned member)
{
    unsigned n = 0;

    for (unsigned id = 0; id < member; id++)
        n += fab_members_has(&g->members, id);
    return n;
}

const char *group_rank(const struct an_group *g, const struct an_edge *e, char *buf, size_t size)
{
    const struct fabric *f = g->a->cfg.fab;
    unsigned host = e->member / g->members.ranks_per_host;

    snprintf(buf, size, "rank %u (%s)", rank_of(g, e->member), f->nodes[f->hosts[host]].name);
    return buf;
}

const char *group_who(const struct an_group *g, const struct an_edge *e, char *buf, size_t size)
{
    if (e->is_member)
        return group_rank(g, e, buf, size);
    snprintf(buf, size, "%s", g->a->cfg.fab->nodes[e->node].name);
    return buf;
}

const char *group_me(const struct an_group *g)
{
    return g->a->me->name;
}

bool group_in_operation(const struct an_group *g)
{
    for (unsigned i = 0; i < g->n; i++) {
        const struct an_stream *rx = &g->child[i].rx;

        if (rx->slots != g->results || rx->left)
            return true;
        if (rx->any && rte_be_to_cpu_64(rx->hdr.offset) + rte_be_to_cpu_32(rx->hdr.msg_len) !=
                           rte_be_to_cpu_64(rx->hdr.total))
            return true;
    }
    return false;
}

/* ---- edges ---- */

static uint32_t new_psn(struct an *a)
{
    uint64_t z = a->psn_state += 0x9e3779b97f4a7c15ull;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    return (uint32_t)(z >> 20) & ROCE_PSN_MASK;
}

/*
 * Makes the queue pair of an edge. Its send queue holds `flight` packets in flight and at most a window of
 * packets not sent yet: a child stops after a window without results.
 */
static int make_qp(struct an_group *g, struct an_edge *e)
{
    struct qp_cfg cfg = {.type = QP_RC,
                         .sq_depth = g->a->flight + g->window + AN_FLIGHT_MARGIN,
                         .bounded = true, /* payloads stay in frames */
                         .max_inline = sizeof(struct agg_hdr),
                         .streaming = true,
                         .user = e};
    struct qp_attr attr = {.state = QP_INIT};
    int rc;

    T_ASSERT(!g->a->in_rnic, "a queue pair is made while the rnic is in a frame");
    T_ASSERT(!e->qp, "an edge has a queue pair already");
    rc = qp_create(g->a->rnic, &cfg, &e->qp);
    if (rc)
        return rc;
    qp_set_window(e->qp, g->window + AN_FLIGHT_MARGIN);
    e->own_psn = new_psn(g->a);
    return qp_modify(e->qp, &attr);
}

/* Connects to the peer at e->addr, e->qpn, e->psn. */
static int connect_qp(struct an_group *g, struct an_edge *e)
{
    struct qp_attr attr = {
        .dest_qpn = e->qpn, .rq_psn = e->psn, .mtu = g->mtu, .sq_psn = e->own_psn};

    return an_connect(g->a->cfg.fab, e->qp, &e->addr, &attr);
}

void group_edge_state(struct an_edge *e, enum edge_state state)
{
    e->state = (uint8_t)state;
    an_event(e->g->a, AN_EV_EDGE + state, e->g->id, (uint32_t)(e - e->g->child));
}

enum agg_status group_open_edge(struct an_group *g, struct an_edge *e)
{
    int rc;

    e->rx = (struct an_stream){0};
    e->watch = (struct an_watch){0};
    e->ring = 0;
    rc = make_qp(g, e);
    if (!rc)
        rc = connect_qp(g, e);
    if (rc) {
        group_close_edge(e);
        return rc == -EINVAL ? AGG_E_PROTOCOL : AGG_E_QUOTA_BUFFERS;
    }
    if (e->state == EDGE_LEFT)
        g->n_left--;
    group_edge_state(e, EDGE_PENDING);
    g->n_joined++;
    g->complete |= g->n_joined == g->n;
    return AGG_OK;
}

void group_close_edge(struct an_edge *e)
{
    struct qp *qp = e->qp;

    e->qp = NULL;
    if (!qp)
        return;
    T_ASSERT(!e->g->a->in_rnic, "a queue pair is destroyed while the rnic is in a frame");
    qp_destroy(qp);
}

/* ---- creation ---- */

/* Finds a group. The key is part of its name: a sender who takes somebody's id with another key does not
 * block that id. */
struct an_group *group_find(struct an *a, uint16_t tree, uint32_t id, uint64_t key)
{
    struct an_group *g;

    for (g = LIST_FIRST(&a->groups); g; g = LIST_NEXT(g, link))
        if (g->id == id && g->key == key && g->tree->id == tree)
            return g;
    return NULL;
}

static void set_children(struct an_group *g, const struct fab_child *children)
{
    for (unsigned i = 0; i < g->n; i++)
        g->child[i] = (struct an_edge){.g = g,
                                       .is_member = children[i].is_member,
                                       .node = children[i].node,
                                       .member = children[i].first_member};
}

static int set_parent(struct an_group *g)
{
    struct an *a = g->a;
    const struct fabric *f = a->cfg.fab;

    g->up = (struct an_edge){
        .g = g, .node = g->tree->parent[a->cfg.node], .member = g->child[0].member};
    if (g->up.node >= f->n_nodes)
        return -EHOSTUNREACH;
    g->up.addr.ip = f->nodes[g->up.node].ip;
    g->up.addr.qpn = AGG_QPN;
    roce_mac_of_ip(g->up.addr.ip, g->up.addr.mac);
    return make_qp(g, &g->up);
}

enum agg_status group_create(struct an *a, const struct agg_ctl *c, const struct fab_tree *t,
                             const struct fab_child *children, unsigned n, unsigned child,
                             struct an_group **out, char *text)
{
    uint32_t asked = rte_be_to_cpu_32(c->window), max = a->me->reduce.window;
    struct an_group *g = calloc(1, sizeof(*g) + n * sizeof(g->child[0]));
    enum agg_status st;

    if (!g)
        return AGG_E_QUOTA_BUFFERS;
    g->a = a;
    g->tree = t;
    g->id = rte_be_to_cpu_32(c->group);
    g->key = rte_be_to_cpu_64(c->key);
    g->mtu = rte_be_to_cpu_16(c->mtu);
    g->attempt = rte_be_to_cpu_16(c->attempt);
    T_ASSERT(n && n <= AN_MAX_CHILDREN, "a group of no child, or of more than can be reduced");
    if (agg_members_read(c, &g->members))
        T_ASSERT(0, "a JOIN was accepted whose list of members cannot be read");
    g->top = fab_group_top(a->cfg.fab, t, &g->members) == a->cfg.node;
    g->of_job = rte_be_to_cpu_32(c->slot);
    g->window = asked && asked < max ? asked : max;
    if (asked > max)
        join_text(g->limit, "%s has %u slots for a group", a->me->name, max);
    g->n = (uint16_t)n;
    g->born = a->now;
    g->look_ps = a->now + AN_LOOK_PS;
    g->founder = children[child].is_member ? children[child].node : FAB_NONE;
    set_children(g, children);
    st = quota_reserve(a, g, text);
    if (st != AGG_OK) {
        free(g);
        return st;
    }
    LIST_INSERT_HEAD(&a->groups, g, link);
    g->n_slots = g->window;
    g->slot = calloc(g->n_slots, sizeof(g->slot[0]));
    g->in = calloc((size_t)g->n_slots * n, sizeof(g->in[0]));
    if (!g->slot || !g->in || (!g->top && set_parent(g))) {
        group_free(g);
        return AGG_E_QUOTA_BUFFERS;
    }
    *out = g;
    return AGG_OK;
}

void group_ask(struct an_group *g)
{
    struct an *a = g->a;
    struct agg_ctl c = {0};
    bool linked = !a->cfg.linked || a->cfg.linked(a->cfg.linked_ctx, g->up.node);

    if (g->tries == AN_RETRIES || !linked) {
        char text[AN_TEXT];

        join_text(text, linked ? "%s does not answer %s" : "%s has no link to %s",
                  a->cfg.fab->nodes[g->up.node].name, group_me(g));
        group_refuse(g, AGG_E_PARENT, text);
        return;
    }
    T_ASSERT(!g->top && g->state == GROUP_ASKING, "a parent is asked where there is none to ask");
    if (!g->tries) {
        g->xid = a->next_xid++;
        an_event(a, AN_EV_GROUP + GROUP_ASKING, g->id, g->window);
    } else {
        a->cnt.control_repeated++;
    }
    c.xid = rte_cpu_to_be_32(g->xid);
    c.tree = rte_cpu_to_be_16(g->tree->id);
    c.mtu = rte_cpu_to_be_16(g->mtu);
    c.attempt = rte_cpu_to_be_16(g->attempt);
    c.group = rte_cpu_to_be_32(g->id);
    c.window = rte_cpu_to_be_32(g->window);
    c.slot = rte_cpu_to_be_32(g->of_job >> 8);
    c.key = rte_cpu_to_be_64(g->key);
    c.qpn = rte_cpu_to_be_32(qp_num(g->up.qp));
    c.psn = rte_cpu_to_be_32(g->up.own_psn);
    c.member = rte_cpu_to_be_32(g->up.member);
    agg_members_write(&c, &g->members);
    an_send_control(a, &g->up.addr, AGG_JOIN, &c);
    g->deadline = a->now + an_backoff(g->tries++);
}

int group_granted(struct an_group *g, uint32_t window, const char *limit)
{
    int rc = g->top ? 0 : connect_qp(g, &g->up);

    if (rc)
        return rc;
    if (window && window < g->window) {
        join_text(g->limit, "%s", limit);
        quota_resize(g, window);
        window_limit(g);
    }
    g->full = g->window;
    T_ASSERT(g->state == GROUP_ASKING, "a group is granted twice");
    g->state = GROUP_OPEN;
    an_event(g->a, AN_EV_GROUP + GROUP_OPEN, g->id, g->window);
    for (unsigned i = 0; i < g->n; i++)
        if (g->child[i].state == EDGE_PENDING)
            control_grant(g, &g->child[i]);
    return 0;
}

/* ---- ends ---- */

void group_free(struct an_group *g)
{
    T_ASSERT(!g->a->in_rnic, "a group is freed while the rnic is in a frame");
    slot_drop_all(g);
    for (unsigned i = 0; i < g->n; i++)
        group_close_edge(&g->child[i]);
    group_close_edge(&g->up);
    quota_release(g);
    g->a->room_back = true;
    LIST_REMOVE(g, link);
    free(g->slot);
    free(g->in);
    free(g);
}

/* No child has a grant yet. A child that repeats its JOIN creates the group again, so a lost refusal is
 * repeated. */
void group_refuse(struct an_group *g, enum agg_status status, const char *text)
{
    struct an *a = g->a;

    for (unsigned i = 0; i < g->n; i++) {
        const struct an_edge *e = &g->child[i];

        if (e->state == EDGE_PENDING)
            control_refuse(a, &e->addr,
                           &(struct agg_ctl){.xid = rte_cpu_to_be_32(e->xid),
                                             .tree = rte_cpu_to_be_16(g->tree->id),
                                             .group = rte_cpu_to_be_32(g->id),
                                             .key = rte_cpu_to_be_64(g->key),
                                             .member = rte_cpu_to_be_32(e->member)},
                           status, text);
    }
    if (status == AGG_E_PARENT) { /* its grant may have been lost: a LEAVE returns it */
        struct an_tombstone *p = tombstone_new(g, false);

        tombstone_add(p, &g->up, true, AGG_LEAVE);
        tombstone_repeat(a, p);
    }
    group_free(g);
}

void group_end(struct an_group *g)
{
    struct an_tombstone *p = tombstone_new(g, false);

    T_ASSERT(!g->n_joined, "a group ends while children are joined");
    for (unsigned i = 0; i < g->n; i++)
        if (g->child[i].state != EDGE_NONE)
            tombstone_add(p, &g->child[i], false, 0);
    if (!g->top)
        tombstone_add(p, &g->up, true, AGG_LEAVE);
    tombstone_repeat(g->a, p);
    g->a->cnt.groups_ended++;
    an_event(g->a, AN_EV_ENDED, g->id, (uint32_t)g->next);
    group_free(g);
}

void group_doom(struct an_group *g, enum agg_status status, struct an_edge *culprit,
                const char *fmt, ...)
{
    va_list ap;

    if (g->doomed)
        return;
    T_ASSERT(status != AGG_OK && status < AGG_STATUS_COUNT, "a group is aborted without a reason");
    an_event(g->a, AN_EV_DOOMED, g->id, status);
    g->doomed = true;
    g->status = status;
    g->culprit = culprit;
    va_start(ap, fmt);
    vsnprintf(g->text, sizeof(g->text), fmt, ap);
    va_end(ap);
    SLIST_INSERT_HEAD(&g->a->doomed, g, doomed_link);
}

void group_expire(struct an_group *g)
{
    char who[48] = "a member";

    for (unsigned i = 0; i < g->n; i++)
        if (g->child[i].state == EDGE_NONE) {
            group_who(g, &g->child[i], who, sizeof(who));
            break;
        }
    g->a->cnt.groups_incomplete++;
    group_doom(g, AGG_E_MEMBER_LOST, NULL, "%s has not joined %s in time", who, group_me(g));
}

void group_lost(struct an_group *g, struct an_edge *e)
{
    char who[48];

    an_event(g->a, AN_EV_EDGE_DOWN, g->id, e->member);
    if (e == &g->up)
        group_doom(g, AGG_E_PARENT, e, "%s missing at %s, slot %u",
                   group_who(g, e, who, sizeof(who)), group_me(g), (unsigned)g->next);
    else if (e->state == EDGE_PENDING || e->state == EDGE_JOINED)
        /* Members below the lost node may be alive: ranks can fail over to paths without that
         * node. */
        group_doom(g, e->is_member ? AGG_E_MEMBER_LOST : AGG_E_EDGE, e, "%s missing at %s, slot %u",
                   group_who(g, e, who, sizeof(who)), group_me(g), (unsigned)g->next);
}

void group_abort(struct an_group *g)
{
    struct an *a = g->a;
    struct an_tombstone *p;

    T_ASSERT(g->doomed, "a group is aborted that nothing has doomed");
    p = tombstone_new(g, true);
    SLIST_REMOVE(&a->doomed, g, an_group, doomed_link);
    for (unsigned i = 0; i < g->n; i++) {
        struct an_edge *e = &g->child[i];
        bool there = e->state == EDGE_PENDING || e->state == EDGE_JOINED;

        if (e->state != EDGE_NONE)
            tombstone_add(p, e, false, there && e != g->culprit ? AGG_ABORT : 0);
    }
    if (!g->top && g->culprit != &g->up)
        tombstone_add(p, &g->up, true, AGG_ABORT);
    tombstone_repeat(a, p);
    an_event(a, AN_EV_ABORTED, g->id, p->n);
    a->cnt.aborts++;
    group_free(g);
}
