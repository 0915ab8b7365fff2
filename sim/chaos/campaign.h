/* SPDX-License-Identifier: BSD-3-Clause */
/* trib sim --chaos: one seed or several, a line each. */
#ifndef TRIB_SIM_CHAOS_CAMPAIGN_H
#define TRIB_SIM_CHAOS_CAMPAIGN_H

#include <stdio.h>

struct campaign_cfg {
    const char *seeds;  /* "17", or "1-1000" */
    const char *conf;   /* the fabric; NULL: drawn */
    const char *faults; /* NULL: drawn */
    double wall_s;      /* that a seed may take; 0: a minute */
};

/* 0; 1: a seed failed; 2: something asked for cannot be (said on stderr). The process ends
 * with 3 when a seed does not end in time, which is said as of any that fails. */
int campaign_run(const struct campaign_cfg *cfg);

#endif
