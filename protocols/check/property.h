/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Properties of a protocol, each checked by runs of random cases. A child process does a property's
 * runs, so that a crash or an endless loop of the protocol is a finding like any other.
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

/* Findings of a property's child, in memory that it shares with its parent. */
struct property_found {
    volatile uint64_t seed, packet; /* of the present run, or of the one that failed */
    volatile bool failed, ended;
    uint64_t seeds, packets;
    char text[PROPERTY_TEXT]; /* describes the failure, or what the runs covered */
};

/* Runs one seed, in the child. false: it failed. */
bool property_seed(const struct property_plan *plan, enum property p, uint64_t seed,
                   struct property_found *found);
/* Runs all seeds in a child process. 0, or -errno: no process or memory. */
int property_run(const struct property_plan *plan, enum property p, struct property_found *found);

#endif
