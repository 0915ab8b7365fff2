/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Determines which children of a group send and receive elements (proto.h), and sends: a packet by
 * reference, or a header instead of a message without elements.
 */
#include "switch/reduce/an_priv.h"

#include <string.h>

/* Index of the child that is the member, or has it below. */
static uint16_t child_of(const struct an_group *g, uint16_t member)
{
    const struct an *a = g->a;
    uint16_t at = fab_group_leaf(a->cfg.fab, g->tree, member, &g->members), below = FAB_NONE;

    for (; at != FAB_NONE && at != a->cfg.node; at = g->tree->parent[at])
        below = at;
    if (at == FAB_NONE)
        return FAB_NONE;
    for (uint16_t i = 0; i < g->n; i++)
        if (below == FAB_NONE ? g->child[i].is_member && g->child[i].member == member
                              : !g->child[i].is_member && g->child[i].node == below)
            return i;
    return FAB_NONE;
}

static uint16_t root_child(struct an_group *g, const struct agg_hdr *h)
{
    uint16_t root = rte_be_to_cpu_16(h->root);

    if (!g->root_known || g->root != root) {
        g->root_known = true;
        g->root = root;
        g->root_child = child_of(g, root);
    }
    return g->root_child;
}

struct an_fanout fanout_of(struct an_group *g, const struct agg_hdr *h)
{
    struct an_fanout c = {AN_FANOUT_ALL, AN_FANOUT_ALL, AN_FANOUT_ALL};

    if (h->coll == AGG_BROADCAST) {
        c.from = root_child(g, h);
        if (c.from != FAB_NONE && g->child[c.from].is_member)
            c.not_to = c.from; /* the sender has the elements */
    } else if (h->coll == AGG_REDUCE) {
        c.to = root_child(g, h);
    }
    return c;
}

static bool fanout_sends(const struct an_fanout *c, unsigned i)
{
    return c->from == AN_FANOUT_ALL || c->from == i;
}

static bool fanout_gets(const struct an_fanout *c, unsigned i)
{
    return (c->to == AN_FANOUT_ALL || c->to == i) && c->not_to != i;
}

enum agg_status fanout_check(struct an_group *g, const struct an_edge *e, const struct agg_hdr *h,
                             const char **what)
{
    struct an_fanout c;

    if (h->coll != AGG_REDUCE && h->coll != AGG_BROADCAST)
        return AGG_OK;
    *what = "root is not a member";
    if (!fab_members_has(&g->members, rte_be_to_cpu_16(h->root)))
        return AGG_E_PROTOCOL;
    *what = "window is less than a message";
    if (g->window < AGG_MSG_PKTS)
        return AGG_E_OP_UNSUPPORTED;
    *what = "elements of a member that has none, or none of one that has";
    c = fanout_of(g, h);
    if (e != &g->up && agg_is_empty(h) == fanout_sends(&c, (unsigned)(e - g->child)))
        return AGG_E_PROTOCOL;
    *what = "";
    return AGG_OK;
}

/* ---- sending ---- */

static bool wqe_post(struct an_edge *e, struct wqe *w)
{
    struct an_group *g = e->g;
    char who[48];
    int rc = qp_post_send(e->qp, w);

    if (rc) /* the queue is deep enough: only a broken edge fails */
        group_doom(g, AGG_E_EDGE, NULL, "queue to %s at %s: %s", group_who(g, e, who, sizeof(who)),
                   group_me(g), strerror(-rc));
    return !rc;
}

/* Posts a packet. given: the queue pair takes over one of the caller's references to p->m. */
static bool post_piece(struct an_edge *e, const struct an_piece *p, bool given)
{
    struct wqe *w = &e->g->a->data;

    T_ASSERT_HOT(p->virt <= p->len, "more of a packet is not carried than there is");
    w->frag = (p->head ? WQE_FIRST : 0) | (p->last ? WQE_LAST : 0);
    w->flags = p->last ? WR_F_SOLICITED : 0;
    w->held = p->m;
    w->held_off = p->off;
    w->held_len = p->len - p->virt;
    w->virt_len = p->virt;
    w->given = given;
    return wqe_post(e, w);
}

void fanout_post(struct an_edge *e, const struct an_piece *p)
{
    post_piece(e, p, false);
}

void fanout_post_empty(struct an_edge *e, const struct agg_hdr *h, uint8_t type)
{
    struct wqe *w = &e->g->a->data;
    struct agg_hdr own = *h;

    own.type = type;
    own.flags |= AGG_F_EMPTY;
    w->frag = WQE_WHOLE;
    w->flags = WR_F_INLINE | WR_F_SOLICITED;
    w->held = NULL;
    w->held_len = w->virt_len = 0;
    w->len = sizeof(own);
    memcpy(w->inl, &own, sizeof(own));
    wqe_post(e, w);
}

/* Sends one slot's result: elements to the children that receive them, and to the others a header
 * at the end of the message. Takes all references at once: a locked addition for each would wait
 * for the stores of the sum. */
void fanout_down(struct an_group *g, const struct agg_hdr *h, const struct an_piece *p)
{
    struct an_fanout c = fanout_of(g, h);
    uint16_t spare = p->m ? g->n : 0;

    if (p->m)
        rte_mbuf_refcnt_update(p->m, (int16_t)spare);
    for (unsigned i = 0; i < g->n && !g->doomed; i++) {
        if (fanout_gets(&c, i))
            spare -= post_piece(&g->child[i], p, p->m) && p->m;
        else if (p->last)
            fanout_post_empty(&g->child[i], h, AGG_RESULT);
    }
    T_ASSERT_HOT(spare <= g->n, "more references to a result were given than taken");
    T_ASSERT_HOT(!spare || rte_mbuf_refcnt_read(p->m) > spare, "the caller's reference is gone");
    if (spare) /* the caller still holds one, so none of these is the last */
        rte_mbuf_refcnt_update(p->m, (int16_t)-spare);
    g->results++;
}
