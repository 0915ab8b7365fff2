/* SPDX-License-Identifier: BSD-3-Clause */
/* trib sim --chaos and --chaos-case: a line for each seed, or for a case. */
#ifndef TRIB_SIM_CHAOS_CAMPAIGN_H
#define TRIB_SIM_CHAOS_CAMPAIGN_H

#include <stdio.h>

struct campaign_cfg {
    const char *seeds;     /* "17", or "1-1000" */
    const char *conf;      /* file of the fabric; NULL: drawn */
    const char *faults;    /* file of a fault plan; NULL: drawn */
    int algo;              /* as in struct chaos_cfg */
    double wall_s;         /* limit of wall time for a seed; 0: a minute */
    const char *case_file; /* instead of seeds: the file of a case; NULL: none */
    const char *save_file; /* with one seed: file for its case; NULL: none */
};

/* 0; 1: a seed failed; 2: refused, with the reason on stderr. The process exits with 3 when a seed
 * exceeds its limit of wall time, which is reported as any other failure. */
int campaign_run(const struct campaign_cfg *cfg);

#endif
