/* SPDX-License-Identifier: BSD-3-Clause */
/* Location of a rank's buffers: host memory, or a GPU's memory. */
#ifndef TRIB_HOST_BENCH_BUFFER_H
#define TRIB_HOST_BENCH_BUFFER_H

#include "host/kernels/device.h"

#define BUFFER_HOST (-1) /* else the number of the GPU */

/* "host", "cuda", "cuda:N". 0 or -EINVAL. */
int buffer_by_name(const char *s, int *gpu);

struct buffer_kind {
    struct device *device; /* NULL: host memory */
};
/* err: DEVICE_TEXT bytes. 0 or -errno. */
int buffer_open(struct buffer_kind *w, int gpu, char *err);
void buffer_close(struct buffer_kind *w);
void *buffer_alloc(struct buffer_kind *w, size_t bytes, char *err); /* NULL: err says why */
void buffer_free(struct buffer_kind *w, void *p, size_t bytes);

#endif
