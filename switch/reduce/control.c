/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control messages. A message is checked against the fabric before it has any effect: a member must
 * send from its host's address, an AN from its own, and both must know the group's key. Messages
 * that cannot be answered are counted.
 */
#include "switch/reduce/an_priv.h"

#include <string.h>

/* ---- answers ---- */

/* An answer with the fields of the request that every answer repeats. */
static struct agg_ctl answer_to(const struct agg_ctl *c, enum agg_status st)
{
    return (struct agg_ctl){.status = rte_cpu_to_be_16((uint16_t)st),
                            .xid = c->xid,
                            .tree = c->tree,
                            .mtu = c->mtu,
                            .group = c->group,
                            .key = c->key,
                            .member = c->member};
}

void control_refuse(struct an *a, const struct an_addr *to, const struct agg_ctl *c,
                    enum agg_status status, const char *text)
{
    struct agg_ctl r = answer_to(c, status);

    an_event(a, AN_EV_REFUSED, rte_be_to_cpu_32(c->group), status);
    join_text(r.text, "%s", text[0] ? text : agg_status_text(status));
    an_send_control(a, to, AGG_JOIN_REPLY, &r);
    a->cnt.joins_refused++;
}

void control_grant(struct an_group *g, struct an_edge *e)
{
    struct agg_ctl r = {.status = RTE_BE16(AGG_OK),
                        .xid = rte_cpu_to_be_32(e->xid),
                        .tree = rte_cpu_to_be_16(g->tree->id),
                        .mtu = rte_cpu_to_be_16(g->mtu),
                        .group = rte_cpu_to_be_32(g->id),
                        .key = rte_cpu_to_be_64(g->key),
                        .member = rte_cpu_to_be_32(e->member),
                        .qpn = rte_cpu_to_be_32(qp_num(e->qp)),
                        .psn = rte_cpu_to_be_32(e->own_psn),
                        .child = rte_cpu_to_be_16((uint16_t)(e - g->child))};

    T_ASSERT(g->state == GROUP_OPEN && (e->state == EDGE_PENDING || e->state == EDGE_JOINED),
             "an edge is granted that is not there, or before its group is");
    if (e->state == EDGE_PENDING) {
        group_edge_state(e, EDGE_JOINED);
        if (!e->granted || e->granted > g->full)
            e->granted = g->full;
        e->window = RTE_MIN(e->granted, g->window);
        g->a->cnt.joins_granted++;
    }
    r.window = rte_cpu_to_be_32(e->window);
    join_text(r.text, "%s", g->limit);
    an_send_control(g->a, &e->addr, AGG_JOIN_REPLY, &r);
}

/* ---- identification ---- */

/* An AN must send from its control queue pair, a member from a queue pair of the process that joined. */
static bool may_speak(const struct an *a, const struct an_edge *e, const struct an_addr *from)
{
    if (e->addr.ip != from->ip)
        return false;
    return e->is_member ? an_of_sender(a, e->node, from, e->qpn) : from->qpn == AGG_QPN;
}

/* The edge of the child that sent the message; NULL: none. */
static struct an_edge *find_edge(struct an_group *g, const struct an_addr *from,
                                 const struct agg_ctl *c)
{
    for (unsigned i = 0; i < g->n; i++) {
        struct an_edge *e = &g->child[i];

        if (e->state != EDGE_NONE && e->qpn == rte_be_to_cpu_32(c->qpn) && may_speak(g->a, e, from))
            return e;
    }
    return NULL;
}

static struct an_group *find_group(struct an *a, const struct agg_ctl *c)
{
    return group_find(a, rte_be_to_cpu_16(c->tree), rte_be_to_cpu_32(c->group),
                      rte_be_to_cpu_64(c->key));
}

/* ---- JOIN ---- */

static bool mtu_valid(uint32_t mtu)
{
    return mtu >= 256 && mtu <= ROCE_MAX_MTU && !(mtu & (mtu - 1));
}

/* Checks that the queue pair of the edge belongs to the sender: PEER_DOWN takes back what a process was
 * granted by the QPNs of its slot. */
static enum agg_status check_sender(const struct an *a, const struct an_addr *from,
                                    const struct fab_child *k, const struct agg_ctl *c, char *text)
{
    uint32_t qpn = rte_be_to_cpu_32(c->qpn);

    if (k->is_member ? an_of_sender(a, k->node, from, qpn) : from->qpn == AGG_QPN)
        return AGG_OK;
    join_text(text, "QPN 0x%06x is not of the sender's process (0x%06x)", qpn, from->qpn);
    return AGG_E_NOT_MEMBER;
}

/* Checks of a JOIN that are independent of earlier ones. *child: the sender's index among the n
 * children. */
static enum agg_status check_join(struct an *a, const struct an_addr *from, const struct agg_ctl *c,
                                  const struct fab_tree **t, struct fab_child *children,
                                  unsigned *n, unsigned *child, char *text)
{
    const struct fabric *f = a->cfg.fab;
    uint16_t mtu = rte_be_to_cpu_16(c->mtu);
    struct fab_members m;
    enum agg_status st;

    *t = join_tree(f, rte_be_to_cpu_16(c->tree));
    if (!a->me->reduce.on)
        return AGG_E_NO_REDUCTION;
    if (!*t)
        return AGG_E_TREE;
    if (!mtu_valid(mtu) || mtu > f->mtu) {
        join_text(text, "MTU %u, the fabric's is %u", mtu, f->mtu);
        return AGG_E_MTU;
    }
    st = join_members(f, c, &m, text);
    if (st != AGG_OK)
        return st;
    st = join_child(f, a->cfg.node, *t, &m, from->ip, c, children, AN_MAX_CHILDREN, n, child, text);
    return st == AGG_OK ? check_sender(a, from, &children[*child], c, text) : st;
}

static bool same_members(const struct an_group *g, const struct agg_ctl *c)
{
    struct fab_members m;

    return !agg_members_read(c, &m) && join_same_members(&m, &g->members);
}

/* A later JOIN must agree with the first. */
static enum agg_status check_same(const struct an_group *g, const struct agg_ctl *c, char *text)
{
    if (g->mtu != rte_be_to_cpu_16(c->mtu)) {
        join_text(text, "MTU %u, the group's is %u", rte_be_to_cpu_16(c->mtu), g->mtu);
        return AGG_E_MTU;
    }
    return same_members(g, c) ? AGG_OK : AGG_E_MISMATCH;
}

/* Opens the edge of a child that joins, or finds that of an earlier attempt. */
static enum agg_status join_edge(struct an_group *g, struct an_edge *e, const struct an_addr *from,
                                 const struct agg_ctl *c, char *text)
{
    uint32_t qpn = rte_be_to_cpu_32(c->qpn), psn = rte_be_to_cpu_32(c->psn);
    enum agg_status st = AGG_OK;

    if (e->state == EDGE_LEFT && g->next) {
        join_text(text, "member has left the group");
        return AGG_E_DUPLICATE;
    }
    if ((e->state == EDGE_PENDING || e->state == EDGE_JOINED) &&
        (e->qpn != qpn || e->psn != psn || e->addr.ip != from->ip))
        return AGG_E_DUPLICATE;
    e->addr = *from;
    e->xid = rte_be_to_cpu_32(c->xid);
    if (e->state == EDGE_NONE || e->state == EDGE_LEFT) {
        e->qpn = qpn;
        e->psn = psn;
        e->granted = rte_be_to_cpu_32(c->window);
        st = group_open_edge(g, e);
    }
    return st;
}

/* By how many attempts a message is later than `attempt`. */
static int later_than(const struct agg_ctl *c, uint16_t attempt)
{
    return (int16_t)(rte_be_to_cpu_16(c->attempt) - attempt);
}

/* Handles a JOIN of a group that has ended. True: answered or dropped here. */
static bool join_too_late(struct an *a, const struct an_addr *from, const struct agg_ctl *c)
{
    struct an_tombstone *p = tombstone_find(a, rte_be_to_cpu_16(c->tree),
                                            rte_be_to_cpu_32(c->group), rte_be_to_cpu_64(c->key));
    struct an_tombstone_peer *q = p ? tombstone_peer(p, from, rte_be_to_cpu_32(c->qpn)) : NULL;

    if (p && p->aborted && later_than(c, p->attempt) <= 0) {
        control_refuse(a, from, c, p->status, p->text);
        return true;
    }
    if (q && q->psn == rte_be_to_cpu_32(c->psn)) {
        a->cnt.joins_stale++;
        return true;
    }
    return false;
}

/*
 * Whether there is a group of this id and these members under another key. That is a mistake, because each
 * sender is in the list. Somebody who takes the id of a job without being its member has another list, and
 * so a group of its own.
 */
static bool has_other_key(struct an *a, const struct agg_ctl *c)
{
    const struct an_group *g;

    for (g = LIST_FIRST(&a->groups); g; g = LIST_NEXT(g, link))
        if (g->id == rte_be_to_cpu_32(c->group) && g->tree->id == rte_be_to_cpu_16(c->tree) &&
            same_members(g, c))
            return true;
    return false;
}

/* Ends a group whose ranks have given it up and make it again; its members may not have left it yet. */
static void join_again(struct an_group *g, struct an_edge *e, const struct agg_ctl *c)
{
    char who[48];

    group_doom(g, AGG_E_MEMBER_LEFT, e, "%s joins %s again, as attempt %u",
               group_who(g, e, who, sizeof(who)), group_me(g), rte_be_to_cpu_16(c->attempt));
    group_abort(g);
}

static void on_join(struct an *a, const struct an_addr *from, const struct agg_ctl *c)
{
    struct an_group *g = find_group(a, c);
    struct fab_child children[AN_MAX_CHILDREN];
    const struct fab_tree *t;
    unsigned n, child;
    bool first = !g;
    char text[AN_TEXT] = "";
    enum agg_status st = g ? check_same(g, c, text) : has_other_key(a, c) ? AGG_E_KEY : AGG_OK;

    if (!g && join_too_late(a, from, c))
        return;
    if (g && later_than(c, g->attempt) < 0) {
        control_refuse(a, from, c, AGG_E_DUPLICATE, "the group is of a later attempt");
        return;
    }
    if (st == AGG_OK)
        st = check_join(a, from, c, &t, children, &n, &child, text);
    if (st == AGG_OK && g && later_than(c, g->attempt) > 0) {
        join_again(g, &g->child[child], c);
        first = true;
    }
    if (st == AGG_OK && first)
        st = group_create(a, c, t, children, n, child, &g, text);
    if (st == AGG_OK) {
        st = join_edge(g, &g->child[child], from, c, text);
        if (st != AGG_OK && first)
            group_free(g);
    }
    if (st != AGG_OK) {
        control_refuse(a, from, c, st, text);
        return;
    }
    an_check_group(g);
    if (!first && g->state == GROUP_OPEN)
        control_grant(g, &g->child[child]);
    else if (first && g->top)
        group_granted(g, 0, "");
    else if (first)
        group_ask(g);
}

static void on_join_reply(struct an *a, const struct an_addr *from, const struct agg_ctl *c)
{
    struct an_group *g = find_group(a, c);
    enum agg_status st = rte_be_to_cpu_16(c->status);
    char text[AN_TEXT];

    if (!g && st == AGG_OK)
        tombstone_granted(a, from, c);
    if (!g || g->top || g->state != GROUP_ASKING || from->ip != g->up.addr.ip ||
        from->qpn != AGG_QPN || g->xid != rte_be_to_cpu_32(c->xid))
        return; /* answered before, or never sent */
    if (st != AGG_OK) {
        join_text(text, "%s: %s", a->cfg.fab->nodes[g->up.node].name, c->text);
        group_refuse(g, st < AGG_STATUS_COUNT ? st : AGG_E_PARENT, text);
        return;
    }
    g->up.qpn = rte_be_to_cpu_32(c->qpn);
    g->up.psn = rte_be_to_cpu_32(c->psn);
    if (group_granted(g, rte_be_to_cpu_32(c->window), c->text))
        group_doom(g, AGG_E_PARENT, NULL, "%s granted an edge that cannot be",
                   a->cfg.fab->nodes[g->up.node].name);
}

/* ---- the end ---- */

static void on_leave(struct an *a, const struct an_addr *from, const struct agg_ctl *c)
{
    struct an_group *g = find_group(a, c);
    struct an_edge *e = g ? find_edge(g, from, c) : NULL;
    struct agg_ctl r = answer_to(c, AGG_OK);
    char who[48];

    if (!g && !tombstone_find(a, rte_be_to_cpu_16(c->tree), rte_be_to_cpu_32(c->group),
                              rte_be_to_cpu_64(c->key)))
        r.status = RTE_BE16(AGG_E_NO_GROUP);
    else if (g && !e)
        r.status = RTE_BE16(AGG_E_NOT_MEMBER);
    tombstone_answered(a, from, c, AGG_ABORT);
    an_send_control(a, from, AGG_LEAVE_REPLY, &r);
    if (!e || e->state == EDGE_LEFT)
        return;
    a->cnt.leaves++;
    an_event(a, AN_EV_LEAVE, g->id, e->member);
    if (group_in_operation(g)) {
        group_doom(g, AGG_E_MEMBER_LEFT, e, "%s left %s, slot %u",
                   group_who(g, e, who, sizeof(who)), group_me(g), (unsigned)g->next);
        return;
    }
    group_close_edge(e);
    group_edge_state(e, EDGE_LEFT);
    g->n_left++;
    T_ASSERT(g->n_joined, "a child leaves a group that counts none");
    g->n_joined--;
    an_check_group(g);
    if (!g->n_joined)
        group_end(g);
}

static void on_abort(struct an *a, const struct an_addr *from, const struct agg_ctl *c)
{
    struct an_group *g = find_group(a, c);
    enum agg_status st = rte_be_to_cpu_16(c->status);
    struct agg_ctl r = answer_to(c, AGG_OK);
    struct an_edge *e = NULL;

    if (from->qpn != AGG_QPN) { /* not from an aggregation node */
        a->cnt.control_forged++;
        return;
    }
    if (g && later_than(c, g->attempt)) /* about an earlier attempt */
        g = NULL;
    if (g && !g->top && may_speak(a, &g->up, from))
        e = &g->up;
    for (unsigned i = 0; g && i < g->n; i++)
        if (!g->child[i].is_member && g->child[i].state != EDGE_NONE &&
            may_speak(a, &g->child[i], from))
            e = &g->child[i];
    if (e)
        group_doom(g, st && st < AGG_STATUS_COUNT ? st : AGG_E_PROTOCOL, e, "%s", c->text);
    an_send_control(a, from, AGG_ABORT_ACK, &r);
}

static void on_peer_down(struct an *a, const struct an_addr *from, const struct agg_ctl *c)
{
    uint32_t space = rte_be_to_cpu_32(c->qpn) >> 16 & 0xff;
    struct an_group *g;

    if (from->qpn != AGG_NIC_QPN) { /* not from a NIC */
        a->cnt.control_forged++;
        return;
    }
    a->cnt.peers_down++;
    an_event(a, AN_EV_PROCESS_DOWN, space, from->ip);
    for (g = LIST_FIRST(&a->groups); g; g = LIST_NEXT(g, link))
        for (unsigned i = 0; i < g->n; i++) {
            struct an_edge *e = &g->child[i];

            if (e->is_member && e->addr.ip == from->ip && (e->qpn >> 16 & 0xff) == space)
                group_lost(g, e);
        }
    if (a->mm)
        mm_peer_down(a->mm, from->ip, space);
}

static void on_window(struct an *a, const struct an_addr *from, const struct agg_ctl *c)
{
    struct an_group *g = find_group(a, c);

    if (from->qpn != AGG_QPN || (g && (g->top || !may_speak(a, &g->up, from)))) {
        a->cnt.control_forged++;
        return;
    }
    if (g && g->state == GROUP_OPEN)
        window_of_parent(g, rte_be_to_cpu_32(c->window), rte_be_to_cpu_32(c->xid));
}

static void on_probe(struct an *a, const struct an_addr *from, const struct agg_ctl *c)
{
    struct an_group *g = find_group(a, c);
    struct an_edge *e = g ? find_edge(g, from, c) : NULL;
    struct agg_ctl r = answer_to(c, e && e->state != EDGE_LEFT ? AGG_OK
                                    : g                        ? AGG_E_NOT_MEMBER
                                                               : AGG_E_NO_GROUP);

    a->cnt.probes++;
    an_event(a, AN_EV_PROBE, rte_be_to_cpu_32(c->group), rte_be_to_cpu_16(r.status));
    an_send_control(a, from, AGG_PROBE_REPLY, &r);
}

/* ---- dispatch ---- */

static void clean_text(char *s, size_t size)
{
    s[size - 1] = '\0';
    for (; *s; s++)
        if (*s < ' ' || *s > '~')
            *s = '?';
}

void control_input(struct an *a, const struct an_addr *from, const void *p, uint32_t len)
{
    enum agg_status st = agg_ctl_check(p, len);
    struct agg_ctl c;

    if (st != AGG_OK) {
        a->cnt.control_bad++;
        if (st == AGG_E_VERSION) { /* every version can read the start of an answer */
            memcpy(&c, p, sizeof(c));
            if (c.type == AGG_JOIN)
                control_refuse(a, from, &c, st, "");
        }
        return;
    }
    memcpy(&c, p, sizeof(c));
    if (c.type >= AGG_MM_BIND && c.type <= AGG_MM_MOVE_REPLY) {
        if (a->mm)
            mm_control(a->mm, from, p);
        else
            mm_refuse_all(a, from, p);
        return;
    }
    if (c.type != AGG_JOIN) /* a JOIN has a list of members there */
        clean_text(c.text, sizeof(c.text));
    switch (c.type) {
    case AGG_JOIN:
        on_join(a, from, &c);
        break;
    case AGG_JOIN_REPLY:
        on_join_reply(a, from, &c);
        break;
    case AGG_LEAVE:
        on_leave(a, from, &c);
        break;
    case AGG_LEAVE_REPLY:
        tombstone_answered(a, from, &c, AGG_LEAVE);
        break;
    case AGG_ABORT:
        on_abort(a, from, &c);
        break;
    case AGG_ABORT_ACK:
        tombstone_answered(a, from, &c, AGG_ABORT);
        break;
    case AGG_PEER_DOWN:
        on_peer_down(a, from, &c);
        break;
    case AGG_PROBE:
        on_probe(a, from, &c);
        break;
    case AGG_WINDOW:
        on_window(a, from, &c);
        break;
    default: /* answers to messages that an AN does not send */
        break;
    }
}
