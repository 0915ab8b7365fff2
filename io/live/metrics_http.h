/* SPDX-License-Identifier: BSD-3-Clause */
/* Serves metrics at http://ADDRESS:PORT/metrics, in the format that the client accepts. */
#ifndef TRIB_IO_METRICS_HTTP_H
#define TRIB_IO_METRICS_HTTP_H

#include "io/live/live.h"

/* where: "ADDRESS:PORT", "[ADDRESS]:PORT", or a port of 127.0.0.1. Serves until SIGINT or SIGTERM. 0,
 * or -errno with a message on stderr; -ENOSYS: built without libmicrohttpd. */
int metrics_serve(struct live *l, const char *where);

#endif
