/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens a group. The driver's calls for multicast objects are looked up here, because an older
 * driver suffices for everything else. The driver prescribes the order: all GPUs join the object
 * before memory is bound to it, and all memory is bound before the object is mapped, for each GPU
 * at an address of its own.
 */
#include "host/kernels/multicast_priv.h"
#ifdef HAVE_MULTICAST
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define NEEDED_CC 90

/* ---- support ---- */

static int attribute(struct device *d, CUdevice_attribute what, CUdevice dev)
{
    int value = 0;

    /* A driver that does not know the attribute lacks the feature too. */
    return d->cu.cuDeviceGetAttribute(&value, what, dev) == CUDA_SUCCESS ? value : 0;
}

static int check_gpu(struct device *d, unsigned i, char *err)
{
    char name[64] = "";
    CUdevice dev;
    int cc;

    if (cuda_check(d, d->cu.cuDeviceGet(&dev, (int)i), "device"))
        return cuda_no(err, -EIO, "%s", d->error);
    d->cu.cuDeviceGetName(name, sizeof(name), dev);
    cc = 10 * attribute(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, dev) +
         attribute(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, dev);
    if (cc < NEEDED_CC)
        return cuda_no(
            err, -ENODEV,
            "found compute capability %d.%d (GPU %u, %s), expected %d.%d or later, which "
            "has multimem instructions",
            cc / 10, cc % 10, i, name, NEEDED_CC / 10, NEEDED_CC % 10);
    if (!attribute(d, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, dev))
        return cuda_no(err, -ENODEV,
                       "found no multicast objects (GPU %u, %s), expected a GPU behind NVSwitches "
                       "whose Fabric Manager runs",
                       i, name);
    return 0;
}

int multicast_can(unsigned n, char *err)
{
    struct device d = {0};
    int gpus, rc = cuda_start(&d, &gpus, err);

    if (!rc && (unsigned)gpus < n)
        rc = cuda_no(err, -ENODEV, "found %d GPU%s, expected %u: one for each rank", gpus,
                     gpus == 1 ? "" : "s", n);
    if (!rc && n > KERNEL_INPUTS)
        rc = cuda_no(err, -EINVAL, "found %u ranks, expected at most %u", n, KERNEL_INPUTS);
    for (unsigned i = 0; !rc && i < n; i++)
        rc = check_gpu(&d, i, err);
    if (d.lib)
        dlclose(d.lib);
    return rc;
}

/* ---- set-up ---- */

static int multicast_open_load(struct multicast *m, char *err)
{
    void *lib = m->member[0].d->lib;
    const char *missing = NULL;

#define LOAD(name)                                                                                 \
    *(void **)(void *)&m->cu.name = dlsym(lib, SYMBOL(name));                                      \
    missing = m->cu.name ? missing : SYMBOL(name);
    VM_CALLS(LOAD)
    return missing ? cuda_no(err, -ENOSYS, "the CUDA driver is too old: it has no %s", missing) : 0;
}

static CUmemAllocationProp memory_of(const struct multicast_member *g)
{
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = g->d->dev}};
}

/* Creates the object and adds all GPUs. */
static int multicast_open_create(struct multicast *m)
{
    CUmulticastObjectProp p = {.numDevices = m->n,
                               .size = m->bytes,
                               .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
    CUmemAllocationProp memory = memory_of(&m->member[0]);
    struct device *d = m->member[0].d;
    size_t of_memory;

    if (device_use(d) ||
        cuda_check(
            d, m->cu.cuMulticastGetGranularity(&m->align, &p, CU_MULTICAST_GRANULARITY_RECOMMENDED),
            "granularity of multicast memory") ||
        cuda_check(d,
                   m->cu.cuMemGetAllocationGranularity(&of_memory, &memory,
                                                       CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                   "granularity of memory"))
        return -EIO;
    m->align = m->align > of_memory ? m->align : of_memory;
    m->bytes = p.size = (m->bytes + m->align - 1) / m->align * m->align;
    if (cuda_check(d, m->cu.cuMulticastCreate(&m->object, &p), "multicast object"))
        return -EIO;
    for (unsigned i = 0; i < m->n; i++) {
        d = m->member[i].d;
        if (cuda_check(d, m->cu.cuMulticastAddDevice(m->object, d->dev), "joining the multicast"))
            return -EIO;
    }
    return 0;
}

static int multicast_map(struct multicast *m, struct device *d, CUmemGenericAllocationHandle what,
                         CUdeviceptr *address)
{
    const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = d->dev},
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

    if (cuda_check(d, m->cu.cuMemAddressReserve(address, m->bytes, m->align, 0, 0), "addresses") ||
        cuda_check(d, m->cu.cuMemMap(*address, m->bytes, 0, what, 0), "mapping") ||
        cuda_check(d, m->cu.cuMemSetAccess(*address, m->bytes, &access, 1), "access"))
        return -EIO;
    return 0;
}

static int bind(struct multicast *m, struct multicast_member *g)
{
    CUmemAllocationProp memory = memory_of(g);
    char what[64];

    snprintf(what, sizeof(what), "%zu bytes of its memory", m->bytes);
    if (device_use(g->d) ||
        cuda_check(g->d, m->cu.cuMemCreate(&g->memory, m->bytes, &memory, 0), what) ||
        cuda_check(g->d, m->cu.cuMulticastBindMem(m->object, 0, g->memory, 0, m->bytes, 0),
                   "binding memory to the multicast"))
        return -EIO;
    g->bound = true;
    return multicast_map(m, g->d, g->memory, &g->own);
}

static int open_member(struct multicast *m, unsigned i, char *err)
{
    struct device *d;
    int rc = device_open(&m->member[i].d, i, err);

    if (rc)
        return rc;
    d = m->member[i].d;
    if (cuda_load(d, IMAGE_MULTIMEM))
        return -EIO;
    return cuda_check(d, d->cu.cuEventCreate(&m->member[i].arrived, CU_EVENT_DISABLE_TIMING),
                      "event");
}

static int set_up(struct multicast *m, char *err)
{
    struct device *first;
    int rc = 0;

    for (unsigned i = 0; !rc && i < m->n; i++)
        rc = open_member(m, i, err);
    if (!rc)
        rc = multicast_open_load(m, err);
    if (!rc)
        rc = multicast_open_create(m);
    for (unsigned i = 0; !rc && i < m->n; i++)
        rc = bind(m, &m->member[i]);
    for (unsigned i = 0; !rc && i < m->n; i++)
        rc = multicast_map(m, m->member[i].d, m->object, &m->member[i].all);
    first = m->member[0].d;
    if (!rc)
        rc = device_use(first) ||
             cuda_check(first, first->cu.cuEventCreate(&m->all_arrived, CU_EVENT_DISABLE_TIMING),
                        "event");
    return rc;
}

int multicast_open(struct multicast **out, unsigned n, size_t bytes, char *err)
{
    struct multicast *m;
    int rc = multicast_can(n, err);

    if (rc)
        return rc;
    m = calloc(1, sizeof(*m));
    if (m)
        m->member = calloc(n, sizeof(*m->member));
    if (!m || !m->member) {
        free(m);
        return cuda_no(err, -ENOMEM, "out of memory");
    }
    m->n = n;
    m->bytes = bytes;
    rc = set_up(m, err);
    if (rc) {
        if (multicast_error(m))
            cuda_no(err, rc, "%s", multicast_error(m));
        multicast_close(m);
        return rc;
    }
    *out = m;
    return 0;
}

static void unmap(struct multicast *m, CUdeviceptr p)
{
    if (!p)
        return;
    m->cu.cuMemUnmap(p, m->bytes);
    m->cu.cuMemAddressFree(p, m->bytes);
}

/* Unbinds memory before it releases it, and releases the object once it is no longer mapped. */
void multicast_close(struct multicast *m)
{
    if (!m)
        return;
    for (unsigned i = 0; i < m->n; i++)
        if (m->member[i].d)
            device_wait(m->member[i].d);
    for (unsigned i = 0; i < m->n; i++)
        unmap(m, m->member[i].all);
    for (unsigned i = 0; i < m->n; i++) {
        struct multicast_member *g = &m->member[i];

        if (g->bound)
            m->cu.cuMulticastUnbind(m->object, g->d->dev, 0, m->bytes);
        unmap(m, g->own);
        if (g->memory)
            m->cu.cuMemRelease(g->memory);
        if (g->arrived)
            g->d->cu.cuEventDestroy(g->arrived);
    }
    if (m->all_arrived)
        m->member[0].d->cu.cuEventDestroy(m->all_arrived);
    if (m->object)
        m->cu.cuMemRelease(m->object);
    for (unsigned i = 0; i < m->n; i++)
        device_close(m->member[i].d);
    free(m->member);
    free(m);
}
#endif
