/* SPDX-License-Identifier: BSD-3-Clause */
/* device.h in a build without nvcc: device_open() fails and reports why. */
#ifndef KERNEL_IMAGES
#include "host/kernels/device.h"

#include <errno.h>
#include <stdio.h>

int device_open(struct device **d, unsigned index, char *err)
{
    (void)d;
    snprintf(err, DEVICE_TEXT,
             "GPU %u: this program was built without CUDA: make found no nvcc (CUDA_HOME, PATH)",
             index);
    return -ENOSYS;
}

/* No caller has a device to pass to the other functions. */
#define NEVER(type, name, args, value)                                                             \
    type name args                                                                                 \
    {                                                                                              \
        return value;                                                                              \
    }
#pragma GCC diagnostic ignored "-Wunused-parameter"
void device_close(struct device *d)
{
}
void device_free(struct device *d, void *p)
{
}
void device_host_free(struct device *d, void *p, size_t bytes)
{
}
NEVER(int, device_use, (struct device * d), -ENOSYS)
NEVER(const char *, device_name, (struct device * d), "")
NEVER(const char *, device_error, (struct device * d), NULL)
NEVER(void *, device_alloc, (struct device * d, size_t bytes), NULL)
NEVER(void *, device_host, (struct device * d, size_t bytes), NULL)
NEVER(int, device_copy,
      (struct device * d, enum device_stream s, void *dst, const void *src, size_t bytes), -ENOSYS)
NEVER(int, device_reduce,
      (struct device * d, enum device_stream s, enum redop op, enum dtype t, unsigned divide,
       void *dst, void *copy, const void *const *in, unsigned n, size_t count),
      -ENOSYS)
NEVER(uint64_t, device_given, (const struct device *d, enum device_stream s), 0)
NEVER(int, device_done, (struct device * d, enum device_stream s, uint64_t *done), -ENOSYS)
NEVER(int, device_wait, (struct device * d), -ENOSYS)
NEVER(int, device_time, (struct device * d, int (*give)(void *ctx), void *ctx, double *seconds),
      -ENOSYS)
NEVER(int64_t, device_staging_ns, (const struct device *d), 0)
NEVER(int, device_fill,
      (struct device * d, void *buf, const void *period, size_t period_count, uint64_t first,
       uint64_t n, unsigned esize, bool flip),
      -ENOSYS)
NEVER(int, device_verify,
      (struct device * d, const void *buf, const void *period, size_t period_count, uint64_t first,
       uint64_t n, unsigned esize, struct device_wrong *wrong),
      -ENOSYS)
NEVER(int, device_dmabuf, (struct device * d, void *p, size_t bytes), -ENOSYS)
NEVER(int, device_read, (struct device * d, void *host, const void *from, size_t bytes), -ENOSYS)
#endif
