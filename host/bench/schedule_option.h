/* SPDX-License-Identifier: BSD-3-Clause */
/* --schedule: reads the file, and sets the other options that follow from it. */
#ifndef TRIB_HOST_BENCH_SCHEDULE_OPTION_H
#define TRIB_HOST_BENCH_SCHEDULE_OPTION_H

#include "host/bench/perf_options.h"

/*
 * Call after options_parse() with this program and result, before perf_options_check(). Collective,
 * ranks and root come from the file; options that contradict are refused. OPT_OK, also without
 * --schedule; OPT_BAD: err (OPT_ERR bytes) has the mistake, or is "" if the file's mistakes were
 * printed on stderr.
 */
int schedule_option_load(struct perf_opts *o, const struct option_program *p,
                         const struct option_result *r, char *err);
void schedule_option_free(struct perf_opts *o);

#endif
