/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a host's port is up, as sysfs shows it: files to which `trib exec` links. The processes that
 * see a link change write them, and the keeper where the process of the host's NIC has ended; they are
 * replaced whole. A service makes them before its users come, who read them and have no part in them.
 */
#ifndef TRIB_MACHINE_PORT_STATE_H
#define TRIB_MACHINE_PORT_STATE_H

#include "machine/port_state_files.h"
#include "machine/rundir.h"

/* Where they are in the run directory: port/<host>/<port>.state. */
void port_state_dir(char *buf, size_t size, const char *host, unsigned port);
/* Creates missing files, of a port that is up. 0 or -errno. */
int port_state_make(const struct rundir *rd, const char *host, unsigned port);
/* 0 or -errno. */
int port_state_write(const struct rundir *rd, const char *host, unsigned port, bool up);
/* The same where they are already; else nothing. */
int port_state_renew(const struct rundir *rd, const char *host, unsigned port, bool up);

#endif
