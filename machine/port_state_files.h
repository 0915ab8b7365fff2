/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of a port's state in an open directory: needs no run directory and no DPDK. */
#ifndef TRIB_MACHINE_PORT_STATE_FILES_H
#define TRIB_MACHINE_PORT_STATE_FILES_H

#include <stdbool.h>

#define PORT_STATE_SUFFIX ".state" /* of the directory's name */

enum port_state_file {
    PORT_STATE,
    PORT_PHYS_STATE,
    PORT_CARRIER,
    PORT_OPERSTATE,
    PORT_STATE_FILES
};

/* The name of a file. */
const char *port_state_name(enum port_state_file f);
/* Replaces all files, each whole. 0 or -errno. */
int port_state_put(int dir, bool up);
/* Creates missing files, as of a port that is up. 0 or -errno. */
int port_state_put_missing(int dir);

#endif
