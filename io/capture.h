/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames as they were on a link, both directions, into a pcap file with nanoseconds of fabric time.
 * Several at a time, each into a file of its own. Called in the loop's thread.
 */
#ifndef TRIB_IO_CAPTURE_H
#define TRIB_IO_CAPTURE_H

#include "io/loop.h"

#include <sys/types.h>

#define CAPTURES_MAX 64

struct capture;
struct captures {
    struct loop *loop;
    struct capture *first;
};

/* 0 or -errno; why says what was found. The capture ends when the process `owner` has ended. */
int capture_start(struct captures *cs, unsigned link, const char *file, pid_t owner, char *why,
                  size_t size);
/* Ends the one into that file, and says how many frames are in it. -ENOENT: there is none;
 * otherwise why says what kept the frames out of the file. */
int capture_stop(struct captures *cs, const char *file, uint64_t *frames, char *why, size_t size);
void capture_stop_all(struct captures *cs);

#endif
