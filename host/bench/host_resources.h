/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this process can have of the machine: memory, because the kernel promises more than there is
 * and kills in the middle of a run, so what does not fit is refused before anything starts; and
 * cores.
 */
#ifndef TRIB_HOST_BENCH_HOST_RESOURCES_H
#define TRIB_HOST_BENCH_HOST_RESOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct host_resources {
    size_t bytes;     /* of memory, by the tightest limit; SIZE_MAX: not known */
    char by[64];      /* that limit: "MemAvailable", "the cgroup's limit" */
    size_t addresses; /* that may still be mapped; SIZE_MAX: any */
};
void host_resources_find(struct host_resources *r);
/* What a process of the cgroups in the file `of` (/proc/PID/cgroup) may still have, by the limits
 * of each of them and of all above, version 1 or 2, below `root` (/sys/fs/cgroup); SIZE_MAX: no
 * limit. */
size_t host_resources_cgroup(const char *of, const char *root);
/* Whether so many bytes, and so many addresses in one process, are available. If not, err says what
 * there is and what would be needed; `what` ends the sentence. */
bool host_resources_has(uint64_t bytes, uint64_t addresses, const char *what, char *err,
                        size_t size);
/* Cores on which the process may run, limited by the container's CPU quota; at least one. */
unsigned host_resources_cores(void);

#endif
