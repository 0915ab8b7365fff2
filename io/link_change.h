/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes of a link by `trib link`: down, up, clear, and the rate, latency and faults of a conf
 * file's links by the same names, as KEY=VALUE. `clear` takes back what was changed before it.
 */
#ifndef TRIB_IO_LINK_CHANGE_H
#define TRIB_IO_LINK_CHANGE_H

#include "fabric/link_terms.h"
#include "switch/queue/egress.h"

struct link_change {
    enum { LINK_AS_IT_IS, LINK_DOWN, LINK_UP } state;
    bool loss, dup, reorder, corrupt, jitter, seed; /* members of `to` that are set */
    struct egress_faults to;
    bool conf;          /* rate and latency are the conf's, but for what follows: */
    bool rate, latency; /* members of `terms` that are set */
    struct link_terms terms;
};

/* Adds a comma-separated list of words. 0, or -EINVAL with what was found and expected in why. */
int link_change_parse(struct link_change *c, const char *words, char *why, size_t size);
/* The faults of a direction after the change. dirlink: its number, so that every direction has
 * draws of its own from one seed. */
struct egress_faults link_change_apply(const struct link_change *c, const struct egress_faults *now,
                                       unsigned dirlink);
/* Rate and latency after the change, of those that the link has now and those of its conf; the same
 * in both directions. */
struct link_terms link_change_terms(const struct link_change *c, const struct link_terms *now,
                                    const struct link_terms *conf);
/* Whether it asks for a rate or a latency of its own. */
bool link_change_sets_terms(const struct link_change *c);
/* "loss=0.001 jitter=2us", in the words that set it; empty without faults. */
void link_faults_print(const struct egress_faults *f, char *buf, size_t size);

#endif
