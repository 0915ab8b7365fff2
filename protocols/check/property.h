/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Properties of a protocol, each checked by runs of drawn cases. A property's runs are in a child
 * process, so that a crash or an endless loop of the protocol is a finding like any other.
 */
#ifndef TRIB_PROTOCOLS_CHECK_PROPERTY_H
#define TRIB_PROTOCOLS_CHECK_PROPERTY_H

#include "protocols/check/check_case.h"

#include <stdio.h>

#define PROPERTY_TEXT 640

struct property_plan {
    const struct trib_protocol *protocol;
    const int64_t *key;   /* [TRIB_KEYS] */
    uint64_t first, last; /* seeds */
    FILE *trace;          /* NULL: none */
};

/* What a property's child has found, in memory that its parent shares. */
struct property_found {
    volatile uint64_t seed, packet; /* of the run that is under way, or has failed */
    volatile bool failed, ended;
    uint64_t seeds, packets;
    char text[PROPERTY_TEXT]; /* of the failure; else what was seen */
};

/* One seed; false: it has failed. Called in the child. */
bool property_seed(const struct property_plan *plan, enum property p, uint64_t seed,
                   struct property_found *found);
/* All seeds, in a child process. 0, or -errno: no process or memory. */
int property_run(const struct property_plan *plan, enum property p, struct property_found *found);

#endif
