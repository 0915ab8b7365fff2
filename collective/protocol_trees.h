/* SPDX-License-Identifier: BSD-3-Clause */
/* The trees that a protocol's job shares its vectors among; for communicators and the model. */
#ifndef TRIB_COLLECTIVE_PROTOCOL_TREES_H
#define TRIB_COLLECTIVE_PROTOCOL_TREES_H

#include "collective/sched.h"

struct protocol_trees {
    bool climbs;               /* sums go up to the root: links between switches count */
    unsigned n;                /* 0: no tree reaches all ranks */
    uint16_t tree[COLL_TREES]; /* FAB_NONE: none, ranks use the first ports of their hosts */
};

/*
 * Of the trees list[0..n) the first that reaches all members, and each further one with which all
 * carry more: an instance of the protocol costs memory and slots of switches. A protocol whose formula
 * depends on the rate of links between switches of the tree climbs it. Of another one the first
 * switches sum, or none do: what it has of a further tree is another port of each host. Without
 * a switch half it needs no tree. most: trees, at least 1.
 */
struct protocol_trees protocol_choose_trees(const struct fabric *f, const struct trib_protocol *p,
                                            const uint16_t *list, unsigned n,
                                            const struct fab_members *m, unsigned most);
/* What each of them carries, and a share is in proportion to it. without: those (bits) that are not
 * in use. */
struct sched_trees protocol_shares(const struct fabric *f, const struct protocol_trees *t,
                                   const struct fab_members *m, unsigned without);

#endif
