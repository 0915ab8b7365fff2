/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files that show whether a host's port is up, as sysfs does; `trib exec` links to them. Processes that
 * see a link change write them, or the keeper if the process of the host's NIC has ended. Each file is
 * replaced whole. A service makes them before its users come; users only read them.
 */
#ifndef TRIB_MACHINE_PORT_STATE_H
#define TRIB_MACHINE_PORT_STATE_H

#include "machine/port_state_files.h"
#include "machine/rundir.h"

/* Name of their directory in the run directory: port/<host>/<port>.state. */
void port_state_dir(char *buf, size_t size, const char *host, unsigned port);
/* Creates missing files, as of a port that is up. 0 or -errno. */
int port_state_make(const struct rundir *rd, const char *host, unsigned port);
/* Writes them, and makes the directory if necessary. 0 or -errno. */
int port_state_write(const struct rundir *rd, const char *host, unsigned port, bool up);
/* Writes them only if their directory exists. 0 or -errno. */
int port_state_renew(const struct rundir *rd, const char *host, unsigned port, bool up);

#endif
