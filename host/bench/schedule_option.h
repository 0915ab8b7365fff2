/* SPDX-License-Identifier: BSD-3-Clause */
/* --schedule: reads the file, and what follows from it for the other options. */
#ifndef TRIB_HOST_BENCH_SCHEDULE_OPTION_H
#define TRIB_HOST_BENCH_SCHEDULE_OPTION_H

#include "host/bench/perf_options.h"

/*
 * After options_parse() with this program and result, before perf_options_check(). Collective,
 * ranks and root are the file's; what says otherwise is refused. OPT_OK, also where there is no
 * --schedule; OPT_BAD: err (OPT_ERR bytes) has the mistake, or it is "" and the file's mistakes are
 * on stderr.
 */
int schedule_option_load(struct perf_opts *o, const struct option_program *p,
                         const struct option_result *r, char *err);
void schedule_option_free(struct perf_opts *o);

#endif
