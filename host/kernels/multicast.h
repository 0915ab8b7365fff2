/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several GPUs of this machine as one group whose NVSwitches reduce and multicast (NVLS). Each GPU
 * binds memory of its own to one CUDA multicast object; through the object it reads sums over all
 * GPUs and writes to all of them. One process and one thread drive them all.
 *
 * Operations are asynchronous, as in device.h. An operation starts on all members after everything
 * that was submitted before to any member's DEVICE_REDUCE, and later submissions to any member
 * start after it has completed on all. Events between the streams form these barriers: multicast
 * addresses and the members' own addresses are aliases, and only the ends of kernels order accesses
 * to them.
 */
#ifndef TRIB_HOST_KERNELS_MULTICAST_H
#define TRIB_HOST_KERNELS_MULTICAST_H

#include "host/kernels/device.h"

struct multicast;
#define MULTICAST_UNIT 16u /* operations write whole units: up to 15 bytes past their data */

/* Whether n GPUs of this machine support it. 0, or -errno with the reason in err (DEVICE_TEXT
 * bytes). Starts nothing on the GPUs. */
int multicast_can(unsigned n, char *err);
/* Opens GPUs 0 to n - 1 with at least `bytes` bytes of memory each. 0, or -errno with the reason in
 * err. */
int multicast_open(struct multicast **m, unsigned n, size_t bytes, char *err);
void multicast_close(struct multicast *m);
/* Member i's device, after device_use(), and its memory, for its own kernels. */
struct device *multicast_device(struct multicast *m, unsigned i);
uint8_t *multicast_memory(struct multicast *m, unsigned i);
const char *multicast_error(struct multicast *m); /* of any member; NULL: no failure */

/* In every member's memory: `count` elements at offset dst become the reduction of those at offset
 * src, each member doing its share. Offsets are multiples of MULTICAST_UNIT, and dst may be src.
 * 0, -ENOTSUP (kernel_multimem()), -EINVAL (beyond the memory) or -EIO. */
int multicast_all_reduce(struct multicast *m, enum redop op, enum dtype t, size_t dst, size_t src,
                         size_t count);
/* Runs n all-reduces, one after the other, and waits. Measures their time by GPU 0's clock, from
 * when all members can begin until all have ended. 0 or as above. */
int multicast_time(struct multicast *m, enum redop op, enum dtype t, size_t dst, size_t src,
                   size_t count, unsigned times, double *seconds);
#endif
