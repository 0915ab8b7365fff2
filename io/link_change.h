/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes of a link by `trib link`: down, up, clear, and rate, latency and faults as KEY=VALUE with the
 * keys of the conf. `clear` takes back all earlier changes.
 */
#ifndef TRIB_IO_LINK_CHANGE_H
#define TRIB_IO_LINK_CHANGE_H

#include "fabric/link_terms.h"
#include "switch/queue/egress.h"

struct link_change {
    enum { LINK_AS_IT_IS, LINK_DOWN, LINK_UP } state;
    bool loss, dup, reorder, corrupt, jitter, seed; /* which members of `to` are set */
    struct egress_faults to;
    bool conf;          /* starts from the conf's rate and latency, then applies: */
    bool rate, latency; /* which members of `terms` are set */
    struct link_terms terms;
};

/* Adds a comma-separated list of words. 0, or -EINVAL with "found X, expected Y" in why. */
int link_change_parse(struct link_change *c, const char *words, char *why, size_t size);
/* The faults of a direction after the change. dirlink: number of the direction, which gives each its
 * own random draws from one seed. */
struct egress_faults link_change_apply(const struct link_change *c, const struct egress_faults *now,
                                       unsigned dirlink);
/* Rate and latency after the change, from those of now and those of the conf; equal in both
 * directions. */
struct link_terms link_change_terms(const struct link_change *c, const struct link_terms *now,
                                    const struct link_terms *conf);
/* Whether it sets a rate or a latency. */
bool link_change_sets_terms(const struct link_change *c);
/* Prints faults as `trib link` takes them: "loss=0.001 jitter=2us"; empty without faults. */
void link_faults_print(const struct egress_faults *f, char *buf, size_t size);

#endif
