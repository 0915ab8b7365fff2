/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Captures both directions of a link into a pcap file, with timestamps in nanoseconds of fabric time.
 * Several captures may run, each with a file of its own. Call these in the loop's thread.
 */
#ifndef TRIB_IO_CAPTURE_H
#define TRIB_IO_CAPTURE_H

#include "io/loop.h"

#include <sys/types.h>

#define CAPTURES_MAX 64 /* limit: captures of a switch process */

struct capture;
struct captures {
    struct loop *loop;
    struct capture *first;
};

struct capture_cfg {
    unsigned link;
    const char *file;
    const char *filter; /* libpcap's syntax; NULL or "": all frames */
    pid_t owner;        /* the capture ends when this process does */
};

/* Starts a capture. 0, or -errno with the reason in why. */
int capture_start(struct captures *cs, const struct capture_cfg *cfg, char *why, size_t size);
/* Writes buffered frames to the file. 0 or -errno; -ENOENT: no such capture. */
int capture_flush(struct captures *cs, const char *file);
/* Ends the capture into that file; *frames: how many it wrote. -ENOENT: no such capture; any other
 * error: why says why frames were not written. */
int capture_stop(struct captures *cs, const char *file, uint64_t *frames, char *why, size_t size);
void capture_stop_all(struct captures *cs);

#endif
