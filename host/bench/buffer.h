/* Where a rank's buffers are: in host memory, or in a GPU's. */
#ifndef TRIB_HOST_BENCH_BUFFER_H
#define TRIB_HOST_BENCH_BUFFER_H

#include "host/kernels/device.h"

#define WHERE_HOST (-1) /* else the number of the GPU */

/* "host", "cuda", "cuda:N". 0 or -EINVAL. */
int where_by_name(const char *s, int *gpu);

struct where {
    struct device *device; /* NULL: host memory */
};
/* err: DEVICE_TEXT bytes. 0 or -errno. */
int where_open(struct where *w, int gpu, char *err);
void where_close(struct where *w);
void *where_alloc(struct where *w, size_t bytes, char *err); /* NULL: err says why */
void where_free(struct where *w, void *p, size_t bytes);

#endif
