/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/reduce/join_check.h"

#include <stdarg.h>
#include <stdio.h>

void join_text(char *text, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, JOIN_TEXT, fmt, ap);
    va_end(ap);
}

static bool host_has_ip(const struct fab_node *h, uint32_t ip)
{
    for (unsigned p = 0; p < h->n_ports; p++)
        if (h->ip_of_port[p] == ip)
            return true;
    return false;
}

/* Whether the sender, at address ip, is this child according to the tree. */
static bool join_is_child(const struct fabric *f, const struct fab_child *k, uint32_t ip,
                          const struct agg_ctl *c)
{
    const struct fab_node *n = &f->nodes[k->node];
    bool member = c->node == RTE_BE16(FAB_NONE);

    if (k->is_member != member || k->first_member != rte_be_to_cpu_32(c->member))
        return false;
    if (member)
        return host_has_ip(n, ip);
    return k->node == rte_be_to_cpu_16(c->node) && n->ip == ip;
}

const struct fab_tree *join_tree(const struct fabric *f, uint16_t id)
{
    for (unsigned i = 0; i < f->n_trees; i++)
        if (f->trees[i].id == id)
            return &f->trees[i];
    return NULL;
}

enum agg_status join_members(const struct fabric *f, const struct agg_ctl *c, struct fab_members *m,
                             char *text)
{
    struct agg_ctl on; /* members as written in the JOIN to the parent */

    if (agg_members_read(c, m) || agg_members_write(&on, m)) {
        join_text(text, "the list of members is no list, or takes more than %u spans", AGG_SPANS);
        return AGG_E_PROTOCOL;
    }
    if (!m->ranks_per_host) {
        join_text(text, "ranks_per_host is 0");
        return AGG_E_PROTOCOL;
    }
    for (unsigned id = 0; id < FAB_MAX_MEMBERS; id++)
        if (fab_members_has(m, id) && id / m->ranks_per_host >= f->n_hosts) {
            join_text(text, "member %u would be on host %u of %u", id, id / m->ranks_per_host,
                      f->n_hosts);
            return AGG_E_NOT_MEMBER;
        }
    if (!fab_members_has(m, rte_be_to_cpu_32(c->member))) {
        join_text(text, "member %u is not in its own list", rte_be_to_cpu_32(c->member));
        return AGG_E_NOT_MEMBER;
    }
    return AGG_OK;
}

enum agg_status join_child(const struct fabric *f, uint16_t node, const struct fab_tree *t,
                           const struct fab_members *m, uint32_t ip, const struct agg_ctl *c,
                           struct fab_child *children, unsigned max, unsigned *n, unsigned *child,
                           char *text)
{
    const char *me = f->nodes[node].name;

    *n = fab_group_children(f, t, node, m, children, max);
    if (!*n) {
        join_text(text, "tree %u has no such group at %s", t->id, me);
        return AGG_E_NOT_IN_TREE;
    }
    if (*n > max) {
        join_text(text, "%u children at %s, at most %u", *n, me, max);
        return AGG_E_CHILDREN;
    }
    for (*child = 0; *child < *n; ++*child)
        if (join_is_child(f, &children[*child], ip, c))
            return AGG_OK;
    join_text(text, "sender is not where member %u joins", rte_be_to_cpu_32(c->member));
    return AGG_E_NOT_MEMBER;
}
