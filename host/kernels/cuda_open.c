/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens a device: loads the CUDA driver, then takes one GPU with its primary context, the kernels
 * and three streams. */
#ifdef KERNEL_IMAGES
#include "host/kernels/cuda_priv.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int cuda_no(char *err, int rc, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(err, DEVICE_TEXT, fmt, ap);
    va_end(ap);
    return rc;
}

static int cuda_open_load(struct device *d, char *err)
{
    const char *missing = NULL;

    d->lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!d->lib)
        return cuda_no(err, -ENODEV, "no CUDA driver on this machine (%s)", dlerror());
#define LOAD(name)                                                                                 \
    *(void **)(void *)&d->cu.name = dlsym(d->lib, SYMBOL(name));                                   \
    missing = d->cu.name ? missing : SYMBOL(name);
    CALLS(LOAD)
    return missing ? cuda_no(err, -ENOSYS, "the CUDA driver is too old: it has no %s", missing) : 0;
}

int cuda_start(struct device *d, int *gpus, char *err)
{
    const char *name = NULL;
    int no = cuda_open_load(d, err);
    CUresult rc;

    *gpus = 0;
    if (no)
        return no;
    rc = d->cu.cuInit(0);
    if (rc == CUDA_SUCCESS)
        rc = d->cu.cuDeviceGetCount(gpus);
    if (rc == CUDA_SUCCESS || rc == CUDA_ERROR_NO_DEVICE)
        return 0;
    d->cu.cuGetErrorName(rc, &name);
    return cuda_no(err, -ENODEV, "the CUDA driver does not start: %s", name ? name : "unknown");
}

static int take_gpu(struct device *d, int n, char *err)
{
    if (d->index >= (unsigned)n)
        return cuda_no(err, -ENODEV, "no GPU %u: this machine has %d", d->index, n);
    if (cuda_check(d, d->cu.cuDeviceGet(&d->dev, (int)d->index), "device") ||
        cuda_check(d, d->cu.cuDeviceGetName(d->name, sizeof(d->name), d->dev), "name") ||
        cuda_check(d,
                   d->cu.cuDeviceGetAttribute(&d->processors,
                                              CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, d->dev),
                   "number of processors") ||
        cuda_check(d, d->cu.cuDevicePrimaryCtxRetain(&d->ctx, d->dev), "context"))
        return -EIO;
    d->retained = true;
    return device_use(d);
}

int device_use(struct device *d)
{
    return cuda_check(d, d->cu.cuCtxSetCurrent(d->ctx), "context");
}

int cuda_load(struct device *d, enum kernel_image i)
{
    return cuda_check(d, d->cu.cuModuleLoadData(&d->module[i], kernel_image(i)), "kernels");
}

/* Loads all images but the one for multimem, which not every GPU supports (multicast_open.c). */
static int set_up(struct device *d)
{
    for (enum kernel_image i = 0; i < IMAGE_MULTIMEM; i++)
        if (cuda_load(d, i))
            return -EIO;
    for (unsigned s = 0; s < DEVICE_STREAMS; s++) {
        if (cuda_check(d, d->cu.cuStreamCreate(&d->stream[s].s, CU_STREAM_NON_BLOCKING), "stream"))
            return -EIO;
        for (unsigned i = 0; i < DEVICE_DEPTH; i++)
            if (cuda_check(d, d->cu.cuEventCreate(&d->stream[s].event[i], CU_EVENT_DISABLE_TIMING),
                           "event"))
                return -EIO;
    }
    for (unsigned i = 0; i < 2; i++)
        if (cuda_check(d, d->cu.cuEventCreate(&d->mark[i], CU_EVENT_DEFAULT), "event"))
            return -EIO;
    d->bounce = device_host(d, BOUNCE);
    d->period = at(device_alloc(d, PERIOD_BYTES));
    d->result = at(device_alloc(d, sizeof(struct verify_result)));
    return *d->error ? -EIO : 0;
}

int device_open(struct device **out, unsigned index, char *err)
{
    struct device *d = calloc(1, sizeof(*d));
    int rc, gpus;

    if (!d)
        return cuda_no(err, -ENOMEM, "out of memory");
    d->index = index;
    rc = cuda_start(d, &gpus, err);
    if (!rc)
        rc = take_gpu(d, gpus, err);
    if (!rc)
        rc = set_up(d);
    if (rc) {
        if (*d->error)
            cuda_no(err, rc, "%s", d->error);
        device_close(d);
        return rc;
    }
    *out = d;
    return 0;
}

void device_close(struct device *d)
{
    if (!d)
        return;
    if (d->retained)
        device_use(d);
    for (unsigned s = 0; s < DEVICE_STREAMS; s++) {
        for (unsigned i = 0; i < DEVICE_DEPTH; i++)
            if (d->stream[s].event[i])
                d->cu.cuEventDestroy(d->stream[s].event[i]);
        if (d->stream[s].s)
            d->cu.cuStreamDestroy(d->stream[s].s);
    }
    for (unsigned i = 0; i < 2; i++)
        if (d->mark[i])
            d->cu.cuEventDestroy(d->mark[i]);
    if (d->retained) {
        device_free(d, (void *)(uintptr_t)d->period);
        device_free(d, (void *)(uintptr_t)d->result);
        device_host_free(d, d->bounce, BOUNCE);
        for (unsigned i = 0; i < KERNEL_IMAGE_COUNT; i++)
            if (d->module[i])
                d->cu.cuModuleUnload(d->module[i]);
        d->cu.cuDevicePrimaryCtxRelease(d->dev);
    }
    if (d->lib)
        dlclose(d->lib);
    free(d);
}
#endif
