/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank on another machine than the launcher's. */
#ifndef TRIB_HOST_LAUNCH_AWAY_H
#define TRIB_HOST_LAUNCH_AWAY_H

/*
 * Runs a rank as `host` of this fabric, for a launcher at the other end of standard input and
 * output (pipes, a socket, or what ssh, srun or mpirun connect). The fabric is up on this machine:
 * in TRIB_RUN, in the default run directory, or in that of a process of this user. preload: as in
 * job_processes_cfg. Returns the exit code.
 */
int away_rank(const char *fabric, const char *host, const char *preload);

#endif
