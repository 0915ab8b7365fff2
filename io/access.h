/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lets the users that the conf names (`access`) use a service's fabric. It sets access control lists on
 * files of the run directory, so the kernel enforces them. A user reaches what a program of one host
 * needs: the conf, the processes' pages, and the ports of the hosts given to that user; no other host's
 * ports and no telemetry. A host's directory is sticky: its users make files there and cannot replace
 * those of the service.
 */
#ifndef TRIB_IO_ACCESS_H
#define TRIB_IO_ACCESS_H

#include "machine/rundir.h"

/* Sets the lists for the files of process `name`, which runs the nodes in mine and serves their ports.
 * Call it once, before users can connect. mine NULL: for the file .ready alone, which is made later.
 * 0 or -errno, with a message on stderr. Does nothing without `access`; skips files that do not exist. */
int access_give(const struct rundir *rd, const struct fabric *f, const bool *mine,
                const char *name);
/* Gives the socket of a slot, made while users run, the same list as the socket of slot 0. */
int access_give_slot(const struct rundir *rd, const char *host, unsigned port, unsigned slot);

#endif
