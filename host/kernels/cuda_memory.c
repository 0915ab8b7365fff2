/* SPDX-License-Identifier: BSD-3-Clause */
/* GPU memory, pinned host memory, and patterns in GPU memory. */
#ifdef KERNEL_IMAGES
#include "host/kernels/cuda_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- memory ---- */

/* The driver aligns small allocations to less than a page of the host, but exports only whole pages
 * as a dma-buf. So an allocation is a page longer than requested, and its first whole page is
 * returned. */
static size_t page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t pages(size_t bytes)
{
    return (bytes + page() - 1) / page() * page();
}

void *device_alloc(struct device *d, size_t bytes)
{
    CUdeviceptr p = 0;
    char what[64];

    if (*d->error)
        return NULL;
    snprintf(what, sizeof(what), "%zu bytes of its memory", bytes);
    return cuda_check(d, d->cu.cuMemAlloc(&p, pages(bytes) + page()), what)
               ? NULL
               : (void *)(uintptr_t)pages(p);
}

void device_free(struct device *d, void *p)
{
    CUdeviceptr first;

    if (p && d->cu.cuMemGetAddressRange(&first, NULL, at(p)) == CUDA_SUCCESS)
        d->cu.cuMemFree(first);
}

void *device_host(struct device *d, size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CUdeviceptr seen = 0;

    if (p == MAP_FAILED) {
        cuda_check(d, CUDA_ERROR_OUT_OF_MEMORY, "host memory");
        return NULL;
    }
    if (!*d->error &&
        !cuda_check(d,
                    d->cu.cuMemHostRegister(
                        p, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP),
                    "pinning host memory")) {
        if (!cuda_check(d, d->cu.cuMemHostGetDevicePointer(&seen, p, 0), "pinned memory") &&
            !cuda_check(d, seen == at(p) ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED,
                        "host memory at the host's addresses"))
            return p;
        d->cu.cuMemHostUnregister(p);
    }
    munmap(p, bytes);
    return NULL;
}

void device_host_free(struct device *d, void *p, size_t bytes)
{
    if (!p)
        return;
    d->cu.cuMemHostUnregister(p);
    munmap(p, bytes);
}

int device_dmabuf(struct device *d, void *p, size_t bytes)
{
    int fd = -1;
    CUresult rc = d->cu.cuMemGetHandleForAddressRange(&fd, at(p), pages(bytes),
                                                      CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);

    return rc == CUDA_SUCCESS ? fd : rc == CUDA_ERROR_NOT_SUPPORTED ? -EOPNOTSUPP : -EINVAL;
}

int device_read(struct device *d, void *host, const void *from, size_t bytes)
{
    for (size_t off = 0; off < bytes && !*d->error;) {
        size_t n = bytes - off < PERIOD_BYTES ? bytes - off : PERIOD_BYTES;

        if (device_copy(d, DEVICE_REDUCE, d->bounce, (const uint8_t *)from + off, n) ||
            device_wait(d))
            return -EIO;
        memcpy((uint8_t *)host + off, d->bounce, n);
        off += n;
    }
    return *d->error ? -EIO : 0;
}

/* ---- patterns ---- */

static int pattern(struct device *d, const struct kernel *k, struct pattern_args *p,
                   const void *period, uint64_t n)
{
    struct stream *st = &d->stream[DEVICE_REDUCE];
    unsigned grid;

    if (p->period_bytes > PERIOD_BYTES)
        return cuda_check(d, CUDA_ERROR_INVALID_VALUE, "a period of so many bytes");
    memcpy(d->bounce, period, p->period_bytes);
    p->period = (const uint8_t *)(uintptr_t)d->period;
    p->result = (struct verify_result *)(uintptr_t)d->result;
    p->split = pattern_split(p, n);
    grid = pattern_grid(p, (unsigned)d->processors);
    if (device_wait(d) ||
        cuda_check(d, d->cu.cuMemcpyAsync(d->period, at(d->bounce), p->period_bytes, st->s),
                   "copy"))
        return -EIO;
    return cuda_launch(d, st, k, p, grid);
}

int device_fill(struct device *d, void *buf, const void *period, size_t period_count,
                uint64_t first, uint64_t n, unsigned esize, bool flip)
{
    struct pattern_args p = {.buf = buf,
                             .first = first % period_count * esize,
                             .period_bytes = period_count * esize,
                             .esize = esize,
                             .flip = flip ? 0xff : 0};

    return pattern(d, kernel_fill(), &p, period, n) ? -EIO : device_wait(d);
}

int device_verify(struct device *d, const void *buf, const void *period, size_t period_count,
                  uint64_t first, uint64_t n, unsigned esize, struct device_wrong *wrong)
{
    struct pattern_args p = {.buf = (uint8_t *)(uintptr_t)buf,
                             .first = first % period_count * esize,
                             .period_bytes = period_count * esize,
                             .esize = esize};
    struct verify_result *found = (void *)(d->bounce + PERIOD_BYTES);
    CUstream s = d->stream[DEVICE_REDUCE].s;

    *found = (struct verify_result){.first = ~0ull};
    if (cuda_check(d, d->cu.cuMemcpyAsync(d->result, at(found), sizeof(*found), s), "copy") ||
        pattern(d, kernel_verify(), &p, period, n) ||
        cuda_check(d, d->cu.cuMemcpyAsync(at(found), d->result, sizeof(*found), s), "copy") ||
        device_wait(d))
        return -EIO;
    *wrong = (struct device_wrong){found->wrong, found->first};
    return 0;
}
#endif
