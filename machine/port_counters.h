/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters of a host's port, as sysfs shows them: port/<host>/<port>.counters/ of the run directory has a
 * file for each, in the kernel's directories and with its names (counters/port_xmit_data,
 * hw_counters/out_of_sequence; adapter-specific ones with the names of mlx5 or rxe), and `totals` with
 * the sums of all processes. Each process of the host adds its increments and rewrites the files, which
 * stay when it ends, as a port's counters do. `trib exec` shows them below /sys/class/infiniband.
 */
#ifndef TRIB_MACHINE_PORT_COUNTERS_H
#define TRIB_MACHINE_PORT_COUNTERS_H

#include "machine/rundir.h"
#include "roce/counters.h"

#include <stdbool.h>

#define PORT_COUNTERS 16 /* limit of rows in port_counters.c */

/* Largest age of a file: MIN while few processes share the port, up to MAX with many. */
#define PORT_COUNTERS_MIN_NS 10000000LL
#define PORT_COUNTERS_MAX_NS 100000000LL

/* The counters of one process. Not thread-safe. */
struct port_counters {
    bool open, unwritten; /* unwritten: some increments are not in the files yet */
    uint32_t users;       /* processes that share the port, as last read */
    char run[RUN_PATH], dir[128];
    uint64_t added[PORT_COUNTERS];
};

/* Name of the directory in the run directory; in a service's, each user has one (system/own_path.h). */
void port_counters_dir(char *buf, size_t size, const struct rundir *rd, const char *host,
                       unsigned port);
/* Creates missing files, all zero. 0 or -errno. */
int port_counters_make(const struct rundir *rd, const char *host, unsigned port);
int port_counters_open(struct port_counters *pc, const struct rundir *rd, const char *host,
                       unsigned port);
/* Call it when the process ends: the others may then write more often. */
void port_counters_leave(struct port_counters *pc);
/* For the child of a fork: the counters stay its parent's. */
void port_counters_forget(struct port_counters *pc);
/* Adds the increments in c. Writes the files if the last write is old enough, or if `last`. Returns
 * whether there were increments, or some are still not written. */
bool port_counters_add(struct port_counters *pc, const struct roce_counters *c, int64_t now_ns,
                       bool last);
int64_t port_counters_period_ns(const struct port_counters *pc);

#endif
