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
 * Chooses from list[0..n) the first tree that reaches all members, and each further tree with which
 * all together carry more: an instance of the protocol costs memory and slots of switches. A
 * protocol climbs the tree if its formula depends on the rate of links between switches. Otherwise
 * only first switches sum, or none, and a further tree only adds another port of each host. A
 * protocol without a switch half needs no tree. most: most trees, at least 1.
 */
struct protocol_trees protocol_choose_trees(const struct fabric *f, const struct trib_protocol *p,
                                            const uint16_t *list, unsigned n,
                                            const struct fab_members *m, unsigned most);
/* The rates of the trees; shares are in proportion to them. without: bits of trees that are not in
 * use. */
struct sched_trees protocol_shares(const struct fabric *f, const struct protocol_trees *t,
                                   const struct fab_members *m, unsigned without);

#endif
