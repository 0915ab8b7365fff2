/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the users of the CUDA driver: cuda.c (streams), cuda_memory.c, cuda_open.c,
 * multicast*.c. */
#ifndef TRIB_HOST_KERNELS_CUDA_PRIV_H
#define TRIB_HOST_KERNELS_CUDA_PRIV_H

#include "base/assert.h"
#include "host/kernels/device.h"
#include "host/kernels/kernels.h"

#include <cuda.h>

#define CALLS(X)                                                                                   \
    X(cuInit)                                                                                      \
    X(cuGetErrorName)                                                                              \
    X(cuDeviceGetCount)                                                                            \
    X(cuDeviceGet)                                                                                 \
    X(cuDeviceGetName)                                                                             \
    X(cuDeviceGetAttribute)                                                                        \
    X(cuDevicePrimaryCtxRetain)                                                                    \
    X(cuDevicePrimaryCtxRelease)                                                                   \
    X(cuCtxSetCurrent)                                                                             \
    X(cuModuleLoadData)                                                                            \
    X(cuModuleUnload)                                                                              \
    X(cuModuleGetFunction)                                                                         \
    X(cuMemAlloc)                                                                                  \
    X(cuMemFree)                                                                                   \
    X(cuMemGetAddressRange)                                                                        \
    X(cuMemHostRegister)                                                                           \
    X(cuMemHostUnregister)                                                                         \
    X(cuMemHostGetDevicePointer)                                                                   \
    X(cuMemGetHandleForAddressRange)                                                               \
    X(cuMemcpyAsync)                                                                               \
    X(cuStreamCreate)                                                                              \
    X(cuStreamDestroy)                                                                             \
    X(cuStreamSynchronize)                                                                         \
    X(cuEventCreate)                                                                               \
    X(cuEventDestroy)                                                                              \
    X(cuEventRecord)                                                                               \
    X(cuEventQuery)                                                                                \
    X(cuEventElapsedTime)                                                                          \
    X(cuLaunchKernel)

#define FIELD(name) __typeof__(name) *name;

#define KERNELS      96u /* more than kernels.c has, so that used[] always has an end */
#define PERIOD_BYTES (1u << 19)

struct stream {
    CUstream s;
    CUevent event[DEVICE_DEPTH];
    uint64_t given, done; /* at most DEVICE_DEPTH apart */
};

struct device {
    struct calls {
        CALLS(FIELD)
    } cu;
    void *lib;
    unsigned index;
    char name[64], error[DEVICE_TEXT];
    CUdevice dev;
    CUcontext ctx;
    bool retained;
    int processors;
    CUmodule module[KERNEL_IMAGE_COUNT]; /* NULL: not loaded */
    struct {
        const struct kernel *k;
        CUfunction f;
    } used[KERNELS]; /* functions that were looked up; k NULL: the end */
    struct stream stream[DEVICE_STREAMS];
    int64_t busy_since, staged_ns;
    CUevent mark[2]; /* device_time() */
    /* device_fill() and device_verify(). */
    CUdeviceptr period, result;
    uint8_t *bounce; /* host memory: a period, then a verify_result */
};
#define BOUNCE (PERIOD_BYTES + 4096u)

static inline CUdeviceptr at(const void *p)
{
    return (CUdeviceptr)(uintptr_t)p;
}

/* cuda.h renames some calls to their newer versions; field and symbol have the new name too. */
#define TEXT(name)   #name
#define SYMBOL(name) TEXT(name)

/* Formats the reason into err (DEVICE_TEXT bytes) and returns rc. */
int cuda_no(char *err, int rc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Loads the driver and counts its GPUs. Call it before any other function of a device. */
int cuda_start(struct device *d, int *gpus, char *err);
/* 0, or -EIO; the first failure sets d->error. */
int cuda_check(struct device *d, CUresult rc, const char *what);
/* Loads the kernels of an image. 0 or -EIO. */
int cuda_load(struct device *d, enum kernel_image i);
int cuda_launch(struct device *d, struct stream *st, const struct kernel *k, void *args,
                unsigned grid);

#endif
