/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a host's port is up, as sysfs shows it: files to which `trib exec` links. The process that
 * changes a link writes them; they are replaced whole. A service makes them before its users come, who
 * read them and have no part in them.
 */
#ifndef TRIB_IO_PORT_STATE_H
#define TRIB_IO_PORT_STATE_H

#include "io/rundir.h"

#include <stdbool.h>

enum port_state_file {
    PORT_STATE,
    PORT_PHYS_STATE,
    PORT_CARRIER,
    PORT_OPERSTATE,
    PORT_STATE_FILES
};

/* The name of a file there. */
const char *port_state_name(enum port_state_file f);
/* Where they are in the run directory: port/<host>/<port>.state. */
void port_state_dir(char *buf, size_t size, const char *host, unsigned port);
/* Creates missing files, of a port that is up. 0 or -errno. */
int port_state_make(const struct rundir *rd, const char *host, unsigned port);
/* 0 or -errno. */
int port_state_write(const struct rundir *rd, const char *host, unsigned port, bool up);

#endif
