/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank: an ordinary verbs program that executes the launcher's commands from its socket
 * (msg.h). */
#ifndef TRIB_HOST_LAUNCH_RANK_H
#define TRIB_HOST_LAUNCH_RANK_H

#include <stdbool.h>

/* Returns the exit code. elsewhere: the host is outside the fabric and has its own device and
 * clock, but no run directory; the launcher sends the conf. */
int rank_main(int fd, bool elsewhere);
#endif
