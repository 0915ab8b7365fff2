/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tombstones of groups that have ended. Their slots, mbufs and queue pairs are free already; a tombstone
 * repeats the messages that peers must answer (ABORT to members, LEAVE to the parent) and recognises late
 * ones, so that a repeated JOIN does not make its group again. Their number is fixed. A new one replaces
 * one that has expired, or else one of the host that has most of them: so groups of one host that come and
 * go cannot make the switch forget another host's.
 */
#include "switch/reduce/an_priv.h"

#include <string.h>

static bool owes(const struct an_tombstone *p)
{
    for (unsigned i = 0; i < p->n; i++)
        if (p->peer[i].owed)
            return true;
    return false;
}

static bool is_over(const struct an *a, const struct an_tombstone *p)
{
    return !p->used || (a->now >= p->expires && !owes(p));
}

static unsigned tombstones_of(const struct an *a, uint32_t owner)
{
    unsigned n = 0;

    for (unsigned i = 0; i < AN_TOMBSTONES; i++)
        n += a->tombstones[i].owner == owner;
    return n;
}

/* The tombstone to replace by a new one. */
static struct an_tombstone *replaced(struct an *a)
{
    struct an_tombstone *best = NULL;
    unsigned most = 0;

    for (unsigned i = 0; i < AN_TOMBSTONES; i++) {
        struct an_tombstone *p = &a->tombstones[i];
        unsigned n;

        if (is_over(a, p))
            return p;
        n = tombstones_of(a, p->owner);
        if (!best || n > most ||
            (n == most && (owes(p) != owes(best) ? owes(best) : p->made < best->made)))
            best = p;
        most = RTE_MAX(most, n);
    }
    return best;
}

struct an_tombstone *tombstone_new(struct an_group *g, bool aborted)
{
    struct an *a = g->a;
    struct an_tombstone *p = replaced(a);

    memset(p, 0, offsetof(struct an_tombstone, peer));
    p->used = true;
    p->aborted = aborted;
    p->made = a->next_tombstone++;
    p->owner = 0;
    for (unsigned i = 0; i < g->n && !p->owner; i++)
        p->owner = g->child[i].addr.ip;
    p->tree = g->tree->id;
    p->id = g->id;
    p->key = g->key;
    p->mtu = g->mtu;
    p->attempt = g->attempt;
    p->status = g->status;
    p->slot = (uint32_t)g->next;
    memcpy(p->text, g->text, sizeof(p->text));
    p->deadline = PS_NEVER;
    p->expires = a->now + (aborted ? AN_ABORTED_PS : AN_ENDED_PS);
    an_event(a, AN_EV_TOMBSTONE, g->id, aborted);
    return p;
}

void tombstone_add(struct an_tombstone *p, const struct an_edge *e, bool up, enum agg_type owed)
{
    T_ASSERT(p->n < sizeof(p->peer) / sizeof(p->peer[0]),
             "a group that is over had more peers than children and a parent");
    p->peer[p->n++] = (struct an_tombstone_peer){.addr = e->addr,
                                                 .qpn = e->qpn,
                                                 .psn = e->psn,
                                                 .xid = e->xid,
                                                 .own_qpn = e->qp ? qp_num(e->qp) : 0,
                                                 .own_psn = e->own_psn,
                                                 .member = e->member,
                                                 .up = up,
                                                 .owed = (uint8_t)owed};
}

struct an_tombstone *tombstone_find(struct an *a, uint16_t tree, uint32_t id, uint64_t key)
{
    struct an_tombstone *newest = NULL;

    for (unsigned i = 0; i < AN_TOMBSTONES; i++) {
        struct an_tombstone *p = &a->tombstones[i];

        if (p->used && p->tree == tree && p->id == id && p->key == key && a->now < p->expires &&
            (!newest || (int32_t)(p->made - newest->made) > 0))
            newest = p;
    }
    return newest;
}

struct an_tombstone_peer *tombstone_peer(struct an_tombstone *p, const struct an_addr *from,
                                         uint32_t qpn)
{
    for (unsigned i = 0; i < p->n; i++)
        if (!p->peer[i].up && p->peer[i].addr.ip == from->ip && p->peer[i].qpn == qpn)
            return &p->peer[i];
    return NULL;
}

static bool is_of(const struct an_tombstone *p, const struct agg_ctl *c)
{
    return p->used && p->tree == rte_be_to_cpu_16(c->tree) && p->id == rte_be_to_cpu_32(c->group) &&
           p->key == rte_be_to_cpu_64(c->key);
}

void tombstone_answered(struct an *a, const struct an_addr *from, const struct agg_ctl *c,
                        enum agg_type owed)
{
    for (unsigned i = 0; i < AN_TOMBSTONES; i++) {
        struct an_tombstone *p = &a->tombstones[i];

        if (!is_of(p, c))
            continue;
        for (unsigned k = 0; k < p->n; k++)
            if (p->peer[k].addr.ip == from->ip && p->peer[k].addr.qpn == from->qpn &&
                p->peer[k].owed == owed) {
                p->peer[k].owed = 0;
                an_event(a, AN_EV_ANSWERED, p->id, p->peer[k].member);
            }
        if (!owes(p))
            p->deadline = PS_NEVER;
    }
}

void tombstone_repeat(struct an *a, struct an_tombstone *p)
{
    for (unsigned i = 0; i < p->n; i++) {
        const struct an_tombstone_peer *q = &p->peer[i];
        struct agg_ctl c = {
            .status = rte_cpu_to_be_16(p->aborted ? p->status : AGG_OK),
            .xid = rte_cpu_to_be_32(q->up ? a->next_xid++ : q->xid),
            .tree = rte_cpu_to_be_16(p->tree),
            .mtu = rte_cpu_to_be_16(p->mtu),
            .group = rte_cpu_to_be_32(p->id),
            .key = rte_cpu_to_be_64(p->key),
            .qpn = rte_cpu_to_be_32(q->own_qpn),
            .psn = rte_cpu_to_be_32(q->own_psn),
            .member = rte_cpu_to_be_32(q->member),
            .attempt = rte_cpu_to_be_16(p->attempt),
            .slot = rte_cpu_to_be_32(p->slot),
        };

        if (!q->owed)
            continue;
        memcpy(c.text, p->text, sizeof(c.text));
        an_send_control(a, &q->addr, q->owed, &c);
        a->cnt.control_repeated += p->tries > 0;
    }
    p->deadline = owes(p) ? a->now + an_backoff(p->tries) : PS_NEVER;
    p->tries++;
}

void tombstone_granted(struct an *a, const struct an_addr *from, const struct agg_ctl *c)
{
    for (unsigned i = 0; i < AN_TOMBSTONES; i++) {
        struct an_tombstone *p = &a->tombstones[i];

        if (!is_of(p, c))
            continue;
        for (unsigned k = 0; k < p->n; k++)
            if (p->peer[k].up && p->peer[k].addr.ip == from->ip && !p->peer[k].owed) {
                p->peer[k].owed = AGG_LEAVE;
                p->tries = 0;
                tombstone_repeat(a, p);
            }
    }
}

void tombstone_tick(struct an *a, struct an_tombstone *p)
{
    if (!p->used || a->now < p->deadline)
        return;
    if (p->tries < AN_RETRIES) {
        tombstone_repeat(a, p);
        return;
    }
    for (unsigned i = 0; i < p->n; i++) {
        a->cnt.aborts_unanswered += p->peer[i].owed == AGG_ABORT;
        p->peer[i].owed = 0;
    }
    p->deadline = PS_NEVER;
}
