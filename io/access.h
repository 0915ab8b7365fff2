/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lets the users that the conf names (`access`) use a service's fabric: by access control lists on the
 * files of the run directory, so that the kernel decides. Each reaches what a program of one host
 * needs: the conf, the processes' pages, and the ports of the hosts that are given to it, no other
 * host's and no telemetry. A host's directory is sticky: its users make files there and cannot exchange
 * the service's.
 */
#ifndef TRIB_IO_ACCESS_H
#define TRIB_IO_ACCESS_H

#include "machine/rundir.h"

/* For the files of process `name`, which runs the nodes in mine and serves their ports; once, before
 * their users can come. mine NULL: for its file .ready alone, which comes later. 0 or -errno, with a
 * message on stderr; nothing to do without `access`. A file that is not there yet is left out. */
int access_give(const struct rundir *rd, const struct fabric *f, const bool *mine,
                const char *name);
/* Gives the socket of a slot to those who have slot 0: it is made while its users are there. */
int access_give_slot(const struct rundir *rd, const char *host, unsigned port, unsigned slot);

#endif
