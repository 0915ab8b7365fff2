/* SPDX-License-Identifier: BSD-3-Clause */
/* What a protocol has counted so far at all ranks of a job and at all switches of its world. */
#ifndef TRIB_SIM_REPORT_PROTOCOL_COUNTERS_H
#define TRIB_SIM_REPORT_PROTOCOL_COUNTERS_H

#include "host/bench/row_counters.h"
#include "sim/job/sim_job.h"

/* Nothing where the algorithm is no protocol. */
void protocol_counters_read(struct job *j, struct world *w, const struct fabric *f, unsigned nranks,
                            enum coll_algo a, struct row_counters *r);

#endif
