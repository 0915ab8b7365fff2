/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Resources of the machine that this process can use: cores, and memory. The kernel overcommits
 * memory and would kill a run in the middle, so a run that does not fit is refused at its start.
 */
#ifndef TRIB_HOST_BENCH_HOST_RESOURCES_H
#define TRIB_HOST_BENCH_HOST_RESOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct host_resources {
    size_t bytes;     /* available memory by the tightest limit; SIZE_MAX: not known */
    char by[64];      /* that limit: "MemAvailable", "the cgroup's limit" */
    size_t addresses; /* address space that may still be mapped; SIZE_MAX: no limit */
};
void host_resources_find(struct host_resources *r);
/* Memory left to a process of the cgroups in the file `of` (/proc/PID/cgroup), by the limits of
 * each of them and of all their ancestors, version 1 or 2, below `root` (/sys/fs/cgroup); SIZE_MAX:
 * no limit. */
size_t host_resources_cgroup(const char *of, const char *root);
/* Whether these bytes, and these bytes of address space in one process, are available. If not, err
 * has a sentence with the available and the required amounts, which `what` ends. */
bool host_resources_has(uint64_t bytes, uint64_t addresses, const char *what, char *err,
                        size_t size);
/* Cores on which the process may run, limited by the container's CPU quota; at least one. */
unsigned host_resources_cores(void);

#endif
