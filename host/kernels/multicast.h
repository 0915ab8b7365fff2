/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several GPUs of this machine as one group whose NVSwitches reduce and multicast (NVLS): each has
 * memory of its own bound to one CUDA multicast object, and reads sums of all of them and writes to
 * all of them through it. One process and one thread drive them all.
 *
 * Operations are asynchronous, as in device.h. What was given to any member's DEVICE_REDUCE before
 * an operation is over before any of them begins it, and what is given to one after it begins when
 * it is over on all: barriers of events between their streams, as all ordering between the
 * multicast addresses and the members' own, which are aliases, comes from the ends of kernels.
 */
#ifndef TRIB_HOST_KERNELS_MULTICAST_H
#define TRIB_HOST_KERNELS_MULTICAST_H

#include "host/kernels/device.h"

struct multicast;
#define MULTICAST_UNIT 16u /* operations write whole ones: up to 15 bytes behind their data */

/* Can n GPUs of this machine do it? 0, or -errno and err (DEVICE_TEXT bytes) says why not. Starts
 * nothing on them. */
int multicast_can(unsigned n, char *err);
/* GPUs 0 to n - 1, with so many bytes each at least. 0, or -errno and err. */
int multicast_open(struct multicast **m, unsigned n, size_t bytes, char *err);
void multicast_close(struct multicast *m);
/* Member i's device, made the one in use (device_use()), and its memory, for its own kernels. */
struct device *multicast_device(struct multicast *m, unsigned i);
uint8_t *multicast_memory(struct multicast *m, unsigned i);
const char *multicast_error(struct multicast *m); /* of any member; NULL: all is well */

/* In every member's memory: `count` elements at offset dst become the reduction of those at offset
 * src, each member doing its share. Offsets are multiples of MULTICAST_UNIT, and dst may be src.
 * 0, -ENOTSUP (kernel_multimem()), -EINVAL (beyond the memory) or -EIO. */
int multicast_all_reduce(struct multicast *m, enum redop op, enum dtype t, size_t dst, size_t src,
                         size_t count);
/* So many of them, one behind the other, took so long by GPU 0's clock, from when all members could
 * begin until all had ended. Waits. 0 or as above. */
int multicast_time(struct multicast *m, enum redop op, enum dtype t, size_t dst, size_t src,
                   size_t count, unsigned times, double *seconds);
#endif
