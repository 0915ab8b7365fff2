/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank: an ordinary verbs program that executes the launcher's commands from its socket
 * (msg.h). */
#ifndef TRIB_HOST_LAUNCH_RANK_H
#define TRIB_HOST_LAUNCH_RANK_H

#include <stdbool.h>

/* Returns the exit code. elsewhere: on a host that is outside the fabric, with a device and a clock
 * of its own, and no run directory; the launcher sends the conf. */
int rank_main(int fd, bool elsewhere);
#endif
