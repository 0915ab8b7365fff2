/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `--algo nvls-hw`: all-reduce by the NVSwitches of this machine's own GPUs, for comparison with
 * the emulated fabric. Rank r is GPU r, one process drives them all, and times are by GPU 0's
 * clock; its rows have the prediction of `nvls` on the conf's fabric, if that has it.
 */
#ifndef TRIB_HOST_BENCH_NVLS_HW_H
#define TRIB_HOST_BENCH_NVLS_HW_H

#include "host/bench/perf_options.h"
#include "host/bench/row.h"

struct nvls_hw;

/* Checks that this machine can run some of the requested rows. 0, or -errno with a sentence in err
 * (OPT_ERR bytes). */
int nvls_hw_can(const struct perf_opts *o, unsigned nranks, char *err);
/* Writes the requested rows that the GPUs do not have to text (OPT_ERR bytes); leaves text
 * unchanged if they have all. */
void nvls_hw_rest(const struct perf_opts *o, char *text);
/* Do its NVSwitches have this row's reduction? */
bool nvls_hw_has(enum dtype t, enum redop op);
/* Memory for the largest size on every GPU. 0, or -errno and err. */
int nvls_hw_open(struct nvls_hw **h, const struct perf_opts *o, unsigned nranks, char *err);
void nvls_hw_close(struct nvls_hw *h);
const char *nvls_hw_gpu(struct nvls_hw *h);
/* Runs a row in one place and fills its run. 0, or -errno and err. */
int nvls_hw_place(struct nvls_hw *h, struct row *r, int place, char *err);

#endif
