/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * JOINs of protocols' jobs. Members repeat their JOIN until it is answered, and each repetition repeats
 * what is missing further up, so a switch needs no timers for control messages.
 */
#include "switch/protocol/protocol_priv.h"

#include "protocols/host/path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void child_grant(struct pn_job *j, unsigned i)
{
    struct agg_ctl c = pn_about(j, j->child[i].xid, j->child[i].who.first_member);

    c.status = RTE_BE16(AGG_OK);
    c.child = rte_cpu_to_be_16((uint16_t)i);
    c.qpn = RTE_BE32(PROTO_QPN);
    pn_say(j->p, j->child[i].ip, j->child[i].qpn, AGG_JOIN_REPLY, &c);
}

/* Number of members below this node of the tree. */
static unsigned count_below(const struct pn_job *j, uint16_t node, unsigned depth)
{
    struct fab_child *k = calloc(TRIB_MAX_CHILDREN, sizeof(*k));
    unsigned n, below = 0;

    n = k ? fab_group_children(j->p->cfg.fab, j->tree, node, &j->members, k, TRIB_MAX_CHILDREN) : 0;
    for (unsigned i = 0; i < n && i < TRIB_MAX_CHILDREN; i++)
        below += k[i].is_member ? 1 : depth ? count_below(j, k[i].node, depth - 1) : 0;
    free(k);
    return below;
}

static uint32_t payload_of(const struct protocol_node *p)
{
    return PROTO_PAYLOAD(p->cfg.fab->mtu);
}

static int start_protocol(struct protocol_node *p, unsigned seat, char *err)
{
    struct proto_switch_cfg cfg = {.protocol = proto_at(seat),
                                   .key = p->key[seat],
                                   .payload = payload_of(p),
                                   .memory = p->me->reduce.memory,
                                   .emit = pn_emit,
                                   .ctx = p};

    return p->sw[seat] ? 0 : proto_switch_create(&p->sw[seat], &cfg, err);
}

/* Opens a job: all members below have joined, and the switches above are ready. */
static int open_job(struct pn_job *j, char *err)
{
    unsigned ranks_a_link;
    const struct proto_ways ways = {j->p->cfg.fab, j->tree, &j->members};
    struct proto_job_cfg cfg = {.nranks = j->nranks,
                                .n_children = j->n,
                                .n_below = count_below(j, j->p->cfg.node, 8),
                                .root = j->top,
                                .rate_bps = proto_rate_bps(&ways, &ranks_a_link),
                                .round_trip_ps = proto_round_trip_ps(&ways, payload_of(j->p)),
                                .notice_ps = proto_notice_ps(&ways, payload_of(j->p), NULL),
                                .ctx = j};
    int rc = start_protocol(j->p, j->seat, err);

    return rc ? rc : proto_job_open(j->p->sw[j->seat], &cfg, j->p->now, &j->job, err);
}

/* ---- JOIN ---- */

static void refuse_all(struct pn_job *j, enum agg_status status, const char *text)
{
    for (unsigned i = 0; i < j->n; i++) {
        struct agg_ctl c = pn_about(j, j->child[i].xid, j->child[i].who.first_member);

        if (!j->child[i].joined)
            continue;
        c.status = rte_cpu_to_be_16((uint16_t)status);
        join_text(c.text, "%s", text);
        pn_say(j->p, j->child[i].ip, j->child[i].qpn, AGG_JOIN_REPLY, &c);
    }
}

static void go_on(struct pn_job *j)
{
    char err[PROTO_TEXT], text[JOIN_TEXT];

    if (j->n_joined < j->n)
        return;
    if (!j->top && j->p->cfg.linked && !j->p->cfg.linked(j->p->cfg.linked_ctx, j->up)) {
        join_text(text, "%s has no link to %s", j->p->cfg.fab->nodes[j->up].name, j->p->me->name);
        refuse_all(j, AGG_E_PARENT, text);
        pn_free(j);
        return;
    }
    if (!j->top && !j->xid)
        j->xid = ++j->p->next_xid;
    if (!j->top) {
        pn_say_up(j, AGG_JOIN, AGG_OK, proto_at(j->seat)->name);
        return;
    }
    if (open_job(j, err)) {
        join_text(text, "%s", err);
        refuse_all(j, AGG_E_QUOTA_SLOTS, text);
        pn_free(j);
        return;
    }
    for (unsigned i = 0; i < j->n; i++)
        child_grant(j, i);
}

static unsigned founded_by(const struct protocol_node *p, uint16_t host)
{
    const struct pn_job *j;
    unsigned n = 0;

    LIST_FOREACH(j, &p->jobs, link)
    for (unsigned i = 0; i < j->n; i++)
        if (j->child[i].joined && j->child[i].who.is_member && j->child[i].who.node == host) {
            n++;
            break;
        }
    return n;
}

struct join {
    unsigned seat, n, child;
    const struct fab_tree *tree;
    struct fab_members members;
    struct fab_child children[TRIB_MAX_CHILDREN];
};

/* Checks of a JOIN that do not depend on others. */
static enum agg_status check_join(struct protocol_node *p, const struct pn_request *r,
                                  struct join *x, char *text)
{
    const struct fabric *f = p->cfg.fab;
    bool member = r->c->node == RTE_BE16(FAB_NONE);
    enum agg_status st;
    char name[AGG_NAME];
    int seat;

    snprintf(name, sizeof(name), "%.*s", (int)sizeof(r->c->name) - 1, r->c->name);
    seat = proto_seat(name);
    if (seat < 0 || !proto_at((unsigned)seat)->sw) {
        join_text(text, "no protocol \"%.20s\" at %s", name, p->me->name);
        return AGG_E_NO_REDUCTION;
    }
    x->seat = (unsigned)seat;
    x->tree = join_tree(f, rte_be_to_cpu_16(r->c->tree));
    if (!p->me->reduce.on)
        return AGG_E_NO_REDUCTION;
    if (!x->tree)
        return AGG_E_TREE;
    st = join_members(f, r->c, &x->members, text);
    if (st != AGG_OK)
        return st;
    if (fab_members_count(&x->members) > TRIB_RANKS ||
        rte_be_to_cpu_32(r->c->window) != fab_members_count(&x->members)) {
        join_text(text, "%u ranks of %u members, at most %d", rte_be_to_cpu_32(r->c->window),
                  fab_members_count(&x->members), TRIB_RANKS);
        return AGG_E_MISMATCH;
    }
    st = join_child(f, p->cfg.node, x->tree, &x->members, r->ip, r->c, x->children,
                    TRIB_MAX_CHILDREN, &x->n, &x->child, text);
    if (st != AGG_OK)
        return st;
    if (rte_be_to_cpu_32(r->c->qpn) != r->qpn || (!member && r->qpn != PROTO_QPN)) {
        join_text(text, "QPN 0x%06x is not the sender's (0x%06x)", rte_be_to_cpu_32(r->c->qpn),
                  r->qpn);
        return AGG_E_NOT_MEMBER;
    }
    return AGG_OK;
}

/* Whether the sender may have another job here. */
static enum agg_status check_room(const struct protocol_node *p, const struct join *x, char *text)
{
    const struct fab_child *k = &x->children[x->child];
    uint32_t most = RTE_MIN(p->me->reduce.max_groups, PN_JOBS);
    uint32_t share = RTE_MAX(most * p->me->reduce.host_permille / 1000, FAB_HOST_GROUPS);

    if (p->n_jobs >= most) {
        join_text(text, "%s has %u jobs of protocols already", p->me->name, p->n_jobs);
        return AGG_E_QUOTA_GROUPS;
    }
    if (k->is_member && founded_by(p, k->node) >= share) {
        join_text(text, "%s has %u jobs at %s already", p->cfg.fab->nodes[k->node].name, share,
                  p->me->name);
        return AGG_E_QUOTA_HOST;
    }
    return AGG_OK;
}

static struct pn_job *protocol_join_create(struct protocol_node *p, const struct pn_request *r,
                                           const struct join *x, uint32_t tag)
{
    struct pn_job *j = calloc(1, sizeof(*j) + x->n * sizeof(j->child[0]));

    if (!j)
        return NULL;
    j->p = p;
    j->seat = x->seat;
    j->id = rte_be_to_cpu_32(r->c->group);
    j->key = rte_be_to_cpu_64(r->c->key);
    j->tag = tag;
    j->attempt = rte_be_to_cpu_16(r->c->attempt);
    j->tree = x->tree;
    j->members = x->members;
    j->nranks = rte_be_to_cpu_32(r->c->window);
    j->mtu = rte_be_to_cpu_16(r->c->mtu);
    j->top = fab_group_top(p->cfg.fab, x->tree, &x->members) == p->cfg.node;
    j->up = j->top ? FAB_NONE : x->tree->parent[p->cfg.node];
    j->n = x->n;
    j->born_ps = p->now;
    for (unsigned i = 0; i < x->n; i++)
        j->child[i] = (struct pn_child){.who = x->children[i]};
    LIST_INSERT_HEAD(&p->jobs, j, link);
    p->n_jobs++;
    p->look_ps = RTE_MIN(p->look_ps, p->now + PN_LOOK_PS);
    return j;
}

/* Joins a child to the job. */
static enum agg_status join_edge(struct pn_job *j, const struct pn_request *r, const struct join *x,
                                 char *text)
{
    struct pn_child *k = &j->child[x->child];
    uint32_t rank = rte_be_to_cpu_32(r->c->psn);

    if (!join_same_members(&x->members, &j->members))
        return AGG_E_MISMATCH;
    if (k->joined && (k->ip != r->ip || k->qpn != r->qpn))
        return AGG_E_DUPLICATE;
    if (k->left) {
        join_text(text, "member has left the job");
        return AGG_E_DUPLICATE;
    }
    if (k->who.is_member && rank >= j->nranks) {
        join_text(text, "rank %u of %u", rank, j->nranks);
        return AGG_E_MISMATCH;
    }
    j->n_joined += !k->joined;
    k->joined = true;
    k->ip = r->ip;
    k->qpn = r->qpn;
    k->rank = rank;
    k->xid = rte_be_to_cpu_32(r->c->xid);
    k->heard_ps = j->p->now;
    return AGG_OK;
}

/* Ends earlier attempts of the job: its ranks have given them up, though not all may have left. False:
 * the JOIN itself is of an earlier attempt than the one here. */
static bool end_before(struct protocol_node *p, const struct pn_request *r, const struct join *x)
{
    uint32_t id = rte_be_to_cpu_32(r->c->group);
    uint64_t key = rte_be_to_cpu_64(r->c->key);
    struct pn_job *j, *next;

    for (j = LIST_FIRST(&p->jobs); j; j = next) {
        next = LIST_NEXT(j, link);
        if (j->id != id || j->key != key || j->seat != x->seat || j->tree != x->tree)
            continue;
        if (j->attempt > rte_be_to_cpu_16(r->c->attempt))
            return false;
        if (j->attempt < rte_be_to_cpu_16(r->c->attempt))
            pn_end(j, NULL, AGG_E_DUPLICATE, "it is joined again");
    }
    return true;
}

void pn_join(struct protocol_node *p, const struct pn_request *r)
{
    char text[JOIN_TEXT] = "";
    struct join x;
    enum agg_status st = check_join(p, r, &x, text);
    uint32_t id = rte_be_to_cpu_32(r->c->group), tag = 0;
    struct pn_job *j = NULL;
    bool first;

    if (st == AGG_OK && !end_before(p, r, &x)) {
        join_text(text, "the job is joined again");
        st = AGG_E_DUPLICATE;
    }
    if (st == AGG_OK) {
        tag = proto_tag(id, rte_be_to_cpu_64(r->c->key), proto_at(x.seat)->name, x.tree->id,
                        rte_be_to_cpu_16(r->c->attempt));
        j = pn_find(p, id, tag);
    }
    first = !j;
    if (st == AGG_OK && first)
        st = check_room(p, &x, text);
    if (st == AGG_OK && first && !(j = protocol_join_create(p, r, &x, tag)))
        st = AGG_E_QUOTA_BUFFERS;
    if (st == AGG_OK) {
        st = join_edge(j, r, &x, text);
        if (st != AGG_OK && first)
            pn_free(j);
    }
    if (st != AGG_OK)
        pn_answer(p, r, AGG_JOIN_REPLY, st, text);
    else if (j->job)
        child_grant(j, x.child); /* the first answer was lost */
    else
        go_on(j);
}

void pn_join_reply(struct protocol_node *p, const struct pn_request *r)
{
    struct pn_job *j = pn_below(p, r);
    enum agg_status st = rte_be_to_cpu_16(r->c->status);
    char err[PROTO_TEXT], text[JOIN_TEXT];

    if (!j || j->job)
        return;
    if (st == AGG_OK) {
        j->up_child = rte_be_to_cpu_16(r->c->child);
        if (open_job(j, err)) {
            join_text(text, "%s: %s", p->me->name, err);
            refuse_all(j, AGG_E_QUOTA_SLOTS, text);
            pn_say_up(j, AGG_ABORT, AGG_E_QUOTA_SLOTS, text);
            pn_free(j);
            return;
        }
        for (unsigned i = 0; i < j->n; i++)
            child_grant(j, i);
        return;
    }
    join_text(text, "%.*s", (int)sizeof(r->c->text) - 1, r->c->text);
    refuse_all(j, st < AGG_STATUS_COUNT ? st : AGG_E_PARENT, text);
    pn_free(j);
}
