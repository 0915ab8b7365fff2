/*
 * Frames as they were on one link, both directions, into a pcap file with nanoseconds of fabric
 * time. Called in the loop's thread.
 */
#ifndef TRIB_RIM_CAPTURE_H
#define TRIB_RIM_CAPTURE_H

#include "switch/rim/loop.h"

struct capture;

/* 0 or -errno; why says what was found. */
int capture_start(struct capture **c, struct loop *loop, unsigned link, const char *file, char *why,
                  size_t size);
/* Ends it; returns how many frames are in the file. NULL: 0. */
uint64_t capture_stop(struct capture *c);

#endif
