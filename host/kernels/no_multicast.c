/* SPDX-License-Identifier: BSD-3-Clause */
/* multicast.h in a build without nvcc, or with CUDA before 12.1. */
#include "host/kernels/multicast_priv.h"
#ifndef HAVE_MULTICAST
#include "host/kernels/multicast.h"

#include <errno.h>
#include <stdio.h>

int multicast_can(unsigned n, char *err)
{
    (void)n;
#ifdef KERNEL_IMAGES
    snprintf(err, DEVICE_TEXT, "this program was built with CUDA %d.%d, expected 12.1 or later",
             CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
#else
    snprintf(err, DEVICE_TEXT,
             "this program was built without CUDA: make found no nvcc (CUDA_HOME, PATH)");
#endif
    return -ENOSYS;
}

int multicast_open(struct multicast **m, unsigned n, size_t bytes, char *err)
{
    (void)m;
    (void)bytes;
    return multicast_can(n, err);
}

/* No caller has a group to pass to the other functions. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
void multicast_close(struct multicast *m)
{
}
struct device *multicast_device(struct multicast *m, unsigned i)
{
    return NULL;
}
uint8_t *multicast_memory(struct multicast *m, unsigned i)
{
    return NULL;
}
const char *multicast_error(struct multicast *m)
{
    return NULL;
}
int multicast_time(struct multicast *m, enum redop op, enum dtype t, size_t dst, size_t src,
                   size_t count, unsigned times, double *seconds)
{
    return -ENOSYS;
}
int multicast_all_reduce(struct multicast *m, enum redop op, enum dtype t, size_t dst, size_t src,
                         size_t count)
{
    return -ENOSYS;
}
#endif
