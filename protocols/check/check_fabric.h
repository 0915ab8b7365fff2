/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a case: switches, ranks and links in virtual time. All draws come from the case's seed.
 */
#ifndef TRIB_PROTOCOLS_CHECK_CHECK_FABRIC_H
#define TRIB_PROTOCOLS_CHECK_CHECK_FABRIC_H

#include "protocols/check/check_case.h"

#include <stdio.h>

#define FABRIC_WHY 512

/* Result of a run; the caller frees hash. */
struct fabric_result {
    bool failed;
    char why[FABRIC_WHY];
    uint64_t packets; /* packets handled; failures number them from 1 */
    uint64_t *hash;   /* [packets] hash of each packet's time, place and contents */
    uint64_t memory_peak;
    unsigned jobs, refused; /* jobs; those of them that a switch has refused */
    unsigned leaked;
};

/* *progress: number of the present packet. trace: gets a line per packet; NULL: none. */
void fabric_run(const struct check_case *c, const struct trib_protocol *p, FILE *trace,
                volatile uint64_t *progress, struct fabric_result *r);

#endif
