/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of a port's state in their directory, which is open: no run directory, no DPDK. */
#ifndef TRIB_MACHINE_PORT_STATE_FILES_H
#define TRIB_MACHINE_PORT_STATE_FILES_H

#include <stdbool.h>

#define PORT_STATE_SUFFIX ".state" /* of such a directory */

enum port_state_file {
    PORT_STATE,
    PORT_PHYS_STATE,
    PORT_CARRIER,
    PORT_OPERSTATE,
    PORT_STATE_FILES
};

/* The name of a file there. */
const char *port_state_name(enum port_state_file f);
/* Replaces all of them, each whole. 0 or -errno. */
int port_state_put(int dir, bool up);
/* Those that are missing, of a port that is up. 0 or -errno. */
int port_state_put_missing(int dir);

#endif
