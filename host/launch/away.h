/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank on another machine than the launcher's. */
#ifndef TRIB_HOST_LAUNCH_AWAY_H
#define TRIB_HOST_LAUNCH_AWAY_H

/*
 * Runs a rank as `host` of the fabric of this name, which is up here (in TRIB_RUN, in the default run
 * directory, or wherever a process of this user runs it), for a launcher at standard
 * input and output: they are pipes, a socket, or what ssh, srun or mpirun make of them. preload: as in
 * job_cfg. Returns the exit code.
 */
int away_rank(const char *fabric, const char *host, const char *preload);

#endif
