/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters of a host's port, as sysfs shows them: port/<host>/<port>.counters/ of the run directory
 * has a file for each, in the kernel's directories and by its names (counters/port_xmit_data,
 * hw_counters/out_of_sequence; adapter-specific ones by mlx5's names, or rxe's), and `totals`
 * with their sums. Each process of the host adds its counts since the last time and rewrites the files;
 * they stay when it ends, as a port's counters do. `trib exec` shows them below
 * /sys/class/infiniband.
 */
#ifndef TRIB_MACHINE_PORT_COUNTERS_H
#define TRIB_MACHINE_PORT_COUNTERS_H

#include "machine/rundir.h"
#include "roce/counters.h"

#include <stdbool.h>

#define PORT_COUNTERS 16 /* at most */

/* How old a file may be: shorter while few processes share the port. */
#define PORT_COUNTERS_MIN_NS 10000000LL
#define PORT_COUNTERS_MAX_NS 100000000LL

/* One process's share. Not thread-safe. */
struct port_counters {
    bool open, unwritten; /* something of this process is not in the files yet */
    uint32_t users;       /* processes that share the port, when it was last looked at */
    char run[RUN_PATH], dir[128];
    uint64_t added[PORT_COUNTERS];
};

/* Creates missing files, all zero. 0 or -errno. */
/* Where they are in the run directory; in a service's, each user has its own (system/own_path.h). */
void port_counters_dir(char *buf, size_t size, const struct rundir *rd, const char *host,
                       unsigned port);
int port_counters_make(const struct rundir *rd, const char *host, unsigned port);
int port_counters_open(struct port_counters *pc, const struct rundir *rd, const char *host,
                       unsigned port);
/* The process ends: the others may write more often. */
void port_counters_leave(struct port_counters *pc);
/* In the child of a fork: its parent's. */
void port_counters_forget(struct port_counters *pc);
/* Adds the increments in c; writes the files if the last write is long enough ago, or if `last`.
 * Returns whether there were increments, or some are not written yet. */
bool port_counters_add(struct port_counters *pc, const struct roce_counters *c, int64_t now_ns,
                       bool last);
int64_t port_counters_period_ns(const struct port_counters *pc);

#endif
