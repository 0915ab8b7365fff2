/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A GPU's memory and what is done to it: the CUDA driver, loaded at run time, and the kernels that
 * this program carries (kernels.h). Where the driver, the GPU or the kernels are missing,
 * device_open() says which.
 *
 * Copies and reductions are asynchronous. Each is given to a stream and counted: device_done() says
 * how many of a stream are over, without waiting. Host memory that they touch has been pinned by
 * device_host(). Pointers to GPU memory are never followed by the CPU. The first failure stays,
 * every call after it fails, and device_error() says in words what it was.
 *
 * Single-threaded: whoever opened it uses it. A thread that has several says before calls for
 * another one than before which it is: device_use().
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
#define DEVICE_DEPTH 256u /* under way on a stream, at most */

/* 0, or -errno and err (DEVICE_TEXT bytes) says why in words. */
int device_open(struct device **d, unsigned index, char *err);
void device_close(struct device *d); /* frees what is left of GPU memory */
int device_use(struct device *d);    /* 0 or -EIO; the one that was opened last is in use */
const char *device_name(struct device *d);
const char *device_error(struct device *d); /* NULL: all is well */

void *device_alloc(struct device *d, size_t bytes); /* NULL: device_error() says why */
void device_free(struct device *d, void *p);
/* Host memory in whole pages, cleared, that the GPU reads and writes too. It is given back whatever
 * has become of the GPU. */
void *device_host(struct device *d, size_t bytes);
void device_host_free(struct device *d, void *p, size_t bytes);

/* Its memory as a dma-buf, for others' drivers: a descriptor, or -errno. Whole pages. That it is
 * not possible is no failure of the GPU's. */
int device_dmabuf(struct device *d, void *p, size_t bytes);

/* Both: 0, -EAGAIN (the stream is full) or -EIO. */
int device_copy(struct device *d, enum device_stream s, void *dst, const void *src, size_t bytes);
/* dst = in[0] op ... op in[n - 1], to copy too where that is not NULL; divide: of OP_AVG, by how
 * much, 0: not. */
int device_reduce(struct device *d, enum device_stream s, enum redop op, enum dtype t,
                  unsigned divide, void *dst, void *copy, const void *const *in, unsigned n,
                  size_t count);
/* How many were given to the stream, and how many of them are over. -EIO. */
uint64_t device_given(const struct device *d, enum device_stream s);
int device_done(struct device *d, enum device_stream s, uint64_t *done);
/* Until all are over; 0 or -EIO. */
int device_wait(struct device *d);
/* What give() gives to DEVICE_REDUCE is over, and took so long by the GPU's own clock. 0 or
 * -EIO. */
int device_time(struct device *d, int (*give)(void *ctx), void *ctx, double *seconds);
/* Time in which copies to and from host memory were under way. */
int64_t device_staging_ns(const struct device *d);

/* These wait. Element i of buf is that of a period of `period` elements in host memory which begins
 * at `first`, its bits turned round where flip is set. */
int device_fill(struct device *d, void *buf, const void *period, size_t period_count,
                uint64_t first, uint64_t n, unsigned esize, bool flip);
struct device_wrong {
    uint64_t n, first; /* elements that differ, and the first of them */
};
int device_verify(struct device *d, const void *buf, const void *period, size_t period_count,
                  uint64_t first, uint64_t n, unsigned esize, struct device_wrong *wrong);
int device_read(struct device *d, void *host, const void *from, size_t bytes);

#endif
