/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fabric as schedules see it, for any rank of a group: which ranks share a GPU node, and the
 * channels between two ranks. For communicators, the model and tests.
 */
#ifndef TRIB_COLLECTIVE_TOPO_H
#define TRIB_COLLECTIVE_TOPO_H

#include "collective/sched.h"

struct topo {
    const struct fabric *fab;
    unsigned rank, nranks;
    const uint16_t *host_of_rank;
    uint16_t *domain;        /* [nranks], owned */
    unsigned most;           /* most ranks in a GPU node */
    struct sched_topo sched; /* for sched_in; valid as long as this struct stays where it is */
};

/* 0 or -ENOMEM. After 0 topo_free() is the caller's. */
int topo_init(struct topo *t, const struct fabric *fab, unsigned rank, unsigned nranks,
              const uint16_t *host_of_rank, unsigned trees);
void topo_free(struct topo *t);
/* The trees that the group of all ranks has joined, and their shares: in proportion to the rates of
 * their links, where those differ. m: the ranks as members; NULL: equal shares. */
void topo_use_trees(struct topo *t, const uint16_t *tree, unsigned n, const struct fab_members *m);
/* Channels between two ranks, in order; the same number seen from either. Returns how many. */
unsigned topo_channels(const struct topo *t, unsigned a, unsigned b, struct fab_channel *ch,
                       unsigned max);
/* Time before the first step of a rank's schedule (`launch` of the costs): the longest of the paths
 * that it uses. */
int64_t topo_launch_ps(const struct topo *t, const struct sched *s, unsigned rank);
/* Whether messages of a SEND lane of a rank's schedule are of an operation that is too long for the
 * short protocols of their path. */
bool topo_is_long(const struct topo *t, const struct sched *s, unsigned rank,
                  const struct lane *lane);

/* Member ids of all ranks; id[] may be NULL. Returns the largest number of ranks on one host, or 0:
 * beyond FAB_MAX_MEMBERS. */
unsigned topo_members(const struct fabric *fab, unsigned nranks, const uint16_t *host_of_rank,
                      struct fab_members *m, uint16_t *id);

#endif
