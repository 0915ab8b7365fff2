/* SPDX-License-Identifier: BSD-3-Clause */
/* Which parts of the in-network path an algorithm needs, and which algorithm follows it. */
#ifndef TRIB_HOST_COLL_RECOVERY_POLICY_H
#define TRIB_HOST_COLL_RECOVERY_POLICY_H

#include "host/coll/transport/agg.h"

struct comm;
struct coll_req;

unsigned policy_parts(enum coll_algo a); /* that the algorithm needs */
int policy_init(struct comm *c, char *err);
uint64_t policy_code(const struct comm *c); /* a hash of the list */
/* The algorithms that may run an operation, in order of preference, `a` itself first. Returns how
 * many. */
unsigned policy_list(const struct comm *c, enum coll_kind kind, enum coll_algo a,
                     enum coll_algo list[ALGO_COUNT + 1]);
/* Sets r->s: by the first algorithm of the list that needs no failed part and that these ranks can
 * run; in->algo becomes that. Returns what sched_init() does. */
int policy_schedule(struct comm *c, struct coll_req *r, struct sched_in *in);
/* Whether each algorithm that was set up and needs one of these parts has a successor. A protocol
 * has one only by the user's own policy: whoever tries a protocol wants to see it fail. */
bool policy_goes_on(const struct comm *c, unsigned parts);

#endif
