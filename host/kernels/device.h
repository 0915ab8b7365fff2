/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A GPU's memory and the operations on it: the CUDA driver, loaded at run time, and the kernels
 * that this program contains (kernels.h). Where the driver, the GPU or the kernels are missing,
 * device_open() reports which.
 *
 * Copies and reductions are asynchronous. Each is submitted to a stream and counted: device_done()
 * returns how many of a stream have completed, without waiting. Host memory that they access comes
 * from device_host(), which pins it. The CPU never dereferences pointers to GPU memory. The first
 * failure is final: every later call fails, and device_error() describes the failure.
 *
 * Single-threaded: only the thread that opened a device uses it. A thread with several devices
 * calls device_use() before it calls functions of another device than before.
 */
#ifndef TRIB_HOST_KERNELS_DEVICE_H
#define TRIB_HOST_KERNELS_DEVICE_H

#include "aggregation/dtype.h"

#include <stddef.h>
#include <stdint.h>

struct device;
#define DEVICE_TEXT 200

enum device_stream {
    DEVICE_REDUCE, /* reductions, and copies within the GPU */
    DEVICE_UP,     /* copies to host memory */
    DEVICE_DOWN,   /* copies from it */
    DEVICE_STREAMS
};
#define DEVICE_DEPTH 256u /* operations in flight on a stream, at most */

/* 0, or -errno with the reason in err (DEVICE_TEXT bytes). */
int device_open(struct device **d, unsigned index, char *err);
void device_close(struct device *d); /* frees all GPU memory that is left */
int device_use(struct device *d);    /* 0 or -EIO; device_open() implies it */
const char *device_name(struct device *d);
const char *device_error(struct device *d); /* NULL: no failure */

/* Allocates GPU memory, aligned to a page of the host. NULL: see device_error(). */
void *device_alloc(struct device *d, size_t bytes);
void device_free(struct device *d, void *p);
/* Host memory in whole pages, cleared, that the GPU can access. It can be freed after a failure
 * too. */
void *device_host(struct device *d, size_t bytes);
void device_host_free(struct device *d, void *p, size_t bytes);

/* Exports an allocation, in whole pages, as a dma-buf for other drivers. Returns a descriptor or
 * -errno; an error is no failure of the device. */
int device_dmabuf(struct device *d, void *p, size_t bytes);

/* Both return 0, -EAGAIN (the stream is full) or -EIO. */
int device_copy(struct device *d, enum device_stream s, void *dst, const void *src, size_t bytes);
/* dst = in[0] op ... op in[n - 1], at most KERNEL_INPUTS of them; the result goes to copy too
 * unless copy is NULL. divide: the divisor of OP_AVG, 0: none. */
int device_reduce(struct device *d, enum device_stream s, enum redop op, enum dtype t,
                  unsigned divide, void *dst, void *copy, const void *const *in, unsigned n,
                  size_t count);
/* Number of operations submitted to the stream, and of those completed. 0 or -EIO. */
uint64_t device_given(const struct device *d, enum device_stream s);
int device_done(struct device *d, enum device_stream s, uint64_t *done);
/* Waits until all operations have completed. 0 or -EIO. */
int device_wait(struct device *d);
/* Waits for all that give() submits to DEVICE_REDUCE and measures it by the GPU's own clock. 0 or
 * -EIO. */
int device_time(struct device *d, int (*give)(void *ctx), void *ctx, double *seconds);
/* Wall time in which copies to or from host memory were in flight. */
int64_t device_staging_ns(const struct device *d);

/* These wait. Element i of buf is element (first + i) modulo period_count of `period`, in host
 * memory; flip inverts its bits. */
int device_fill(struct device *d, void *buf, const void *period, size_t period_count,
                uint64_t first, uint64_t n, unsigned esize, bool flip);
struct device_wrong {
    uint64_t n, first; /* differing elements, and the first of them */
};
int device_verify(struct device *d, const void *buf, const void *period, size_t period_count,
                  uint64_t first, uint64_t n, unsigned esize, struct device_wrong *wrong);
int device_read(struct device *d, void *host, const void *from, size_t bytes);

#endif
