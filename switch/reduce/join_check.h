/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks whether a sender may send its JOIN: its tree, members and address against the fabric. Shared by
 * the aggregation node and the protocols beside it.
 */
#ifndef TRIB_SWITCH_REDUCE_JOIN_CHECK_H
#define TRIB_SWITCH_REDUCE_JOIN_CHECK_H

#include "aggregation/proto.h"
#include "fabric/fabric.h"

#include <string.h>

#define JOIN_TEXT sizeof(((struct agg_ctl *)0)->text)

/* Prints the text of a control message, truncated to its field. */
void join_text(char *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The tree with this id; NULL: there is none. */
const struct fab_tree *join_tree(const struct fabric *f, uint16_t id);
/* Reads the list of members. AGG_OK if every one of them has a host and the sender is in the list. */
enum agg_status join_members(const struct fabric *f, const struct agg_ctl *c, struct fab_members *m,
                             char *text);
/* Finds the sender among the children of `node` in the group of its JOIN: *n children, *child. */
enum agg_status join_child(const struct fabric *f, uint16_t node, const struct fab_tree *t,
                           const struct fab_members *m, uint32_t ip, const struct agg_ctl *c,
                           struct fab_child *children, unsigned max, unsigned *n, unsigned *child,
                           char *text);
/*
 * Whether a queue pair belongs to its sender. Each process of a host has QPNs with its own top 8 bits, and a
 * NIC lets it send from these only; NICs of hosts outside number queue pairs as they like.
 */
static inline bool join_of_sender(const struct fabric *f, uint16_t host, uint32_t from_qpn,
                                  uint32_t qpn)
{
    return (host < f->n_nodes && f->nodes[host].outside) ||
           (from_qpn >> 16 && from_qpn >> 16 == qpn >> 16);
}

static inline bool join_same_members(const struct fab_members *a, const struct fab_members *b)
{
    return a->ranks_per_host == b->ranks_per_host && !memcmp(a->bits, b->bits, sizeof(a->bits));
}

#endif
