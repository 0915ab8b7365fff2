/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of the fake driver: from cuMemAlloc, pinned host memory, and memory that programs create,
 * map and bind to multicast objects explicitly. Only its own GPU accesses GPU memory.
 */
#include "tests/fake/fake.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define AREAS 256
#define PAGE  ((size_t)4096)
#define LARGE ((size_t)1 << 20)
#define LEAD  ((size_t)512) /* where small allocations begin in a page, as with the real driver */
#define GRAIN ((size_t)2 << 20)

/* Memory of a GPU, or a multicast object, which has members instead of bytes. */
struct made {
    size_t bytes;
    unsigned refs; /* by its handle, mappings and bindings */
    int dev, fd;
    uint8_t *map;   /* a page, and the bytes of fd */
    uint8_t *real;  /* in map; NULL: a multicast object */
    unsigned wants; /* members */
    unsigned n;
    struct {
        int dev;
        struct made *memory; /* NULL: nothing is bound */
    } member[GPUS];
};

enum area_kind { NOTHING, PINNED, GPU, RESERVED };
struct area {
    enum area_kind kind;
    uint8_t *at;
    size_t bytes;
    struct made *what; /* of GPU; of RESERVED what is mapped, or NULL */
    bool reached[GPUS];
};

static struct area areas[AREAS];
static unsigned made_left;

static struct area *area_of(const void *p, size_t bytes)
{
    const uint8_t *b = p;

    for (unsigned i = 0; i < AREAS; i++)
        if (areas[i].kind && b >= areas[i].at && b + bytes <= areas[i].at + areas[i].bytes)
            return &areas[i];
    return NULL;
}

static struct area *at_start(CUdeviceptr p, size_t bytes, enum area_kind kind)
{
    struct area *a = area_of((const void *)(uintptr_t)p, 1);

    return a && a->kind == kind && a->at == (uint8_t *)(uintptr_t)p && (!bytes || a->bytes == bytes)
               ? a
               : NULL;
}

static struct area *add(enum area_kind kind, void *at, size_t bytes, struct made *what)
{
    for (unsigned i = 0; i < AREAS; i++)
        if (!areas[i].kind) {
            areas[i] = (struct area){.kind = kind, .at = at, .bytes = bytes, .what = what};
            return &areas[i];
        }
    return NULL;
}

unsigned fake_memory_left(void)
{
    unsigned n = made_left;

    for (unsigned i = 0; i < AREAS; i++)
        n += areas[i].kind != NOTHING;
    return n;
}

void *fake_real(const void *p, size_t bytes, int dev)
{
    const struct area *a = area_of(p, bytes);

    if (a && a->kind == PINNED)
        return (void *)(uintptr_t)p;
    if (a && a->reached[dev] && a->what && a->what->real)
        return a->what->real + ((const uint8_t *)p - a->at);
    g.failed = CUDA_ERROR_ILLEGAL_ADDRESS;
    return NULL;
}

unsigned fake_members(const void *p, size_t bytes, int dev, uint8_t **at)
{
    const struct area *a = area_of(p, bytes);
    const struct made *m = a ? a->what : NULL;
    bool whole = m && !m->real && a->reached[dev] && m->n == m->wants;

    for (unsigned i = 0; whole && i < m->n; i++) {
        whole = m->member[i].memory;
        at[i] = whole ? m->member[i].memory->real + ((const uint8_t *)p - a->at) : NULL;
    }
    if (whole)
        return m->n;
    g.failed = CUDA_ERROR_ILLEGAL_ADDRESS;
    return 0;
}

/* ---- pieces of memory ---- */

static void unref(struct made *m)
{
    if (--m->refs)
        return;
    for (unsigned i = 0; i < m->n; i++)
        if (m->member[i].memory)
            unref(m->member[i].memory);
    if (m->real) {
        munmap(m->map, PAGE + m->bytes);
        close(m->fd);
        g.used -= m->bytes;
    }
    made_left--;
    free(m);
}

static struct made *make_one(size_t bytes, int dev)
{
    struct made *m = calloc(1, sizeof(*m));

    *m = (struct made){.bytes = bytes, .refs = 1, .dev = dev, .fd = -1};
    made_left++;
    return m;
}

/* lead: offset in a page; fd has what follows that page's end. 0: fd has all. */
static struct made *make_memory(size_t bytes, size_t lead, int dev)
{
    struct made *m;

    if (g.used + bytes > g.memory)
        return NULL;
    m = make_one(bytes, dev);
    m->fd = memfd_create("fake GPU", MFD_CLOEXEC);
    m->map = mmap(NULL, PAGE + bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m->map == MAP_FAILED || ftruncate(m->fd, (off_t)bytes) ||
        mmap(m->map + PAGE, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
             m->fd, 0) == MAP_FAILED)
        abort();
    m->real = m->map + (lead ? lead : PAGE);
    g.used += bytes;
    return m;
}

/* Reserves addresses that the CPU cannot access. */
static uint8_t *reserve(size_t bytes)
{
    uint8_t *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return at == MAP_FAILED ? NULL : at;
}

API cuMemAlloc(CUdeviceptr *out, size_t bytes)
{
    size_t lead = bytes < LARGE ? LEAD : 0;
    CUresult rc = CUDA_ERROR_OUT_OF_MEMORY;
    struct made *m;

    if (!fake_current)
        return CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&g.lock);
    m = make_memory(bytes, lead, fake_current->dev);
    if (m) {
        struct area *a = add(GPU, reserve(lead + bytes) + lead, bytes, m);

        a->reached[m->dev] = true;
        *out = (CUdeviceptr)(uintptr_t)a->at;
        rc = g.failed;
    }
    pthread_mutex_unlock(&g.lock);
    return rc;
}

API cuMemFree(CUdeviceptr p)
{
    struct area *a;

    pthread_mutex_lock(&g.lock);
    a = at_start(p, 0, GPU);
    if (a) {
        size_t lead = (uintptr_t)a->at % PAGE;

        munmap(a->at - lead, lead + a->bytes);
        unref(a->what);
        a->kind = NOTHING;
    }
    pthread_mutex_unlock(&g.lock);
    return a ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API cuMemGetAddressRange(CUdeviceptr *first, size_t *bytes, CUdeviceptr p)
{
    const struct area *a;

    pthread_mutex_lock(&g.lock);
    a = area_of((const void *)(uintptr_t)p, 1);
    a = a && a->kind == GPU ? a : NULL;
    if (a && first)
        *first = (CUdeviceptr)(uintptr_t)a->at;
    if (a && bytes)
        *bytes = a->bytes;
    pthread_mutex_unlock(&g.lock);
    return a ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API cuMemHostRegister(void *p, size_t bytes, unsigned flags)
{
    CUresult rc;

    (void)flags;
    pthread_mutex_lock(&g.lock);
    rc = area_of(p, 1) || !add(PINNED, p, bytes, NULL) ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
                                                       : g.failed;
    pthread_mutex_unlock(&g.lock);
    return rc;
}

API cuMemHostUnregister(void *p)
{
    struct area *a;

    pthread_mutex_lock(&g.lock);
    a = at_start((CUdeviceptr)(uintptr_t)p, 0, PINNED);
    if (a)
        a->kind = NOTHING;
    pthread_mutex_unlock(&g.lock);
    return a ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API cuMemHostGetDevicePointer(CUdeviceptr *out, void *p, unsigned flags)
{
    (void)flags;
    *out = (CUdeviceptr)(uintptr_t)p;
    return CUDA_SUCCESS;
}

API cuMemGetHandleForAddressRange(void *handle, CUdeviceptr p, size_t bytes,
                                  CUmemRangeHandleType type, unsigned long long flags)
{
    const struct area *a;
    CUresult rc = CUDA_ERROR_NOT_SUPPORTED;

    pthread_mutex_lock(&g.lock);
    a = area_of((const void *)(uintptr_t)p, bytes);
    if (p % PAGE || bytes % PAGE)
        rc = CUDA_ERROR_INVALID_VALUE; /* even where it is not supported */
    else if (g.dmabuf && type == CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD && !flags) {
        rc = a && a->kind == GPU && p - (uintptr_t)a->at < PAGE ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_VALUE;
        if (rc == CUDA_SUCCESS)
            *(int *)handle = dup(a->what->fd);
    }
    pthread_mutex_unlock(&g.lock);
    return rc;
}

#if CUDA_VERSION >= 12010
/* ---- explicit memory, addresses, multicast objects ---- */

static struct made *made_of(CUmemGenericAllocationHandle h)
{
    return (struct made *)(uintptr_t)h;
}

static bool grains(size_t bytes)
{
    return bytes && bytes % GRAIN == 0;
}

API cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *p,
                                  CUmemAllocationGranularity_flags which)
{
    (void)which;
    *bytes = GRAIN / 2;
    return p->type == CU_MEM_ALLOCATION_TYPE_PINNED ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API cuMulticastGetGranularity(size_t *bytes, const CUmulticastObjectProp *p,
                              CUmulticastGranularity_flags which)
{
    (void)which;
    *bytes = GRAIN;
    return p->numDevices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API cuMemCreate(CUmemGenericAllocationHandle *h, size_t bytes, const CUmemAllocationProp *p,
                unsigned long long flags)
{
    struct made *m;

    if (p->location.type != CU_MEM_LOCATION_TYPE_DEVICE || bytes % (GRAIN / 2) || flags ||
        p->location.id < 0 || (unsigned long)p->location.id >= g.devices)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&g.lock);
    m = make_memory(bytes, 0, p->location.id);
    pthread_mutex_unlock(&g.lock);
    *h = (CUmemGenericAllocationHandle)(uintptr_t)m;
    return m ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API cuMulticastCreate(CUmemGenericAllocationHandle *h, const CUmulticastObjectProp *p)
{
    struct made *m;

    if (!g.multicast)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!grains(p->size) || !p->numDevices || p->numDevices > GPUS || p->flags)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&g.lock);
    m = make_one(p->size, -1);
    m->wants = p->numDevices;
    pthread_mutex_unlock(&g.lock);
    *h = (CUmemGenericAllocationHandle)(uintptr_t)m;
    return CUDA_SUCCESS;
}

API cuMulticastAddDevice(CUmemGenericAllocationHandle h, CUdevice dev)
{
    struct made *m = made_of(h);

    if (m->real || m->n == m->wants || dev < 0 || (unsigned long)dev >= g.devices)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < m->n; i++)
        if (m->member[i].dev == dev)
            return CUDA_ERROR_INVALID_VALUE;
    m->member[m->n++].dev = dev;
    return CUDA_SUCCESS;
}

/* The real driver waits until all members are added; this one fails. */
API cuMulticastBindMem(CUmemGenericAllocationHandle h, size_t off, CUmemGenericAllocationHandle mh,
                       size_t moff, size_t bytes, unsigned long long flags)
{
    struct made *m = made_of(h), *memory = made_of(mh);

    if (!g.ready)
        return CUDA_ERROR_SYSTEM_NOT_READY;
    if (m->real || !memory->real || m->n != m->wants || off || moff || !grains(bytes) ||
        bytes > m->bytes || bytes > memory->bytes || flags)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < m->n; i++)
        if (m->member[i].dev == memory->dev && !m->member[i].memory) {
            m->member[i].memory = memory;
            memory->refs++;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_DEVICE;
}

API cuMulticastUnbind(CUmemGenericAllocationHandle h, CUdevice dev, size_t off, size_t bytes)
{
    struct made *m = made_of(h);

    if (off || bytes != m->bytes)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&g.lock);
    for (unsigned i = 0; i < m->n; i++)
        if (m->member[i].dev == dev && m->member[i].memory) {
            unref(m->member[i].memory);
            m->member[i].memory = NULL;
        }
    pthread_mutex_unlock(&g.lock);
    return CUDA_SUCCESS;
}

API cuMemRelease(CUmemGenericAllocationHandle h)
{
    pthread_mutex_lock(&g.lock);
    unref(made_of(h));
    pthread_mutex_unlock(&g.lock);
    return CUDA_SUCCESS;
}

API cuMemAddressReserve(CUdeviceptr *p, size_t bytes, size_t align, CUdeviceptr where,
                        unsigned long long flags)
{
    void *at = NULL;

    if (!grains(bytes) || (align & (align - 1)) || where || flags)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&g.lock);
    at = reserve(bytes);
    add(RESERVED, at, bytes, NULL);
    pthread_mutex_unlock(&g.lock);
    *p = (CUdeviceptr)(uintptr_t)at;
    return at ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API cuMemMap(CUdeviceptr p, size_t bytes, size_t off, CUmemGenericAllocationHandle h,
             unsigned long long flags)
{
    struct made *m = made_of(h);
    struct area *a;
    bool ok;

    pthread_mutex_lock(&g.lock);
    a = at_start(p, bytes, RESERVED);
    ok = a && !a->what && !off && !flags && m->bytes >= bytes && (m->real || m->n == m->wants);
    if (ok) {
        a->what = m;
        m->refs++;
    }
    pthread_mutex_unlock(&g.lock);
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API cuMemSetAccess(CUdeviceptr p, size_t bytes, const CUmemAccessDesc *who, size_t n)
{
    struct area *a;

    pthread_mutex_lock(&g.lock);
    a = at_start(p, bytes, RESERVED);
    for (size_t i = 0; a && a->what && i < n; i++)
        a->reached[who[i].location.id] = who[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    pthread_mutex_unlock(&g.lock);
    return a && a->what ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API cuMemUnmap(CUdeviceptr p, size_t bytes)
{
    struct area *a;
    bool ok;

    pthread_mutex_lock(&g.lock);
    a = at_start(p, bytes, RESERVED);
    ok = a && a->what;
    if (ok) {
        unref(a->what);
        a->what = NULL;
        memset(a->reached, 0, sizeof(a->reached));
    }
    pthread_mutex_unlock(&g.lock);
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API cuMemAddressFree(CUdeviceptr p, size_t bytes)
{
    struct area *a;
    bool ok;

    pthread_mutex_lock(&g.lock);
    a = at_start(p, bytes, RESERVED);
    ok = a && !a->what;
    if (ok) {
        munmap(a->at, a->bytes);
        a->kind = NOTHING;
    }
    pthread_mutex_unlock(&g.lock);
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
#endif
