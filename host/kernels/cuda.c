/*
 * The CUDA driver behind device.h. Only its own library is used, libcuda.so.1, by name and at run
 * time; cuda.h is needed to compile this. One context, the GPU's primary one, and three streams;
 * the n-th operation of a stream records event n % DEVICE_DEPTH behind it, and an event that has
 * come says that all before it are over.
 */
#include "host/kernels/device.h"
#include "host/kernels/kernels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef KERNEL_IMAGES
#include <cuda.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <time.h>

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
    X(cuLaunchKernel)

/* cuda.h renames some calls to their newer versions: field and symbol get that name too. */
#define FIELD(name)  __typeof__(name) *name;
#define TEXT(name)   #name
#define SYMBOL(name) TEXT(name)

#define MODULES      8u
#define PERIOD_BYTES (1u << 19)

struct stream {
    CUstream s;
    CUevent event[DEVICE_DEPTH];
    uint64_t given, done;
};

struct device {
    struct calls {
        CALLS(FIELD)
    } cu;
    void *lib;
    unsigned index;
    char name[64], error[DEVICE_TEXT];
    CUdevice dev;
    bool retained;
    int processors;
    CUmodule module[MODULES];
    unsigned n_modules;
    struct {
        const struct kernel *k;
        CUfunction f;
    } used[80]; /* kernels by their place, once they were looked for */
    struct stream stream[DEVICE_STREAMS];
    int64_t busy_since, staged_ns;
    /* For fill and verify. */
    CUdeviceptr period, result;
    uint8_t *bounce; /* host memory: a period, then a verify_result */
};
#define BOUNCE (PERIOD_BYTES + 4096u)

static CUdeviceptr at(const void *p)
{
    return (CUdeviceptr)(uintptr_t)p;
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* ---- errors ---- */

/* 0, or -EIO with the first failure's words. */
static int check(struct device *d, CUresult rc, const char *what)
{
    const char *name = NULL;

    if (rc == CUDA_SUCCESS)
        return 0;
    if (*d->error)
        return -EIO;
    if (d->cu.cuGetErrorName(rc, &name) != CUDA_SUCCESS || !name)
        name = "an unknown error";
    snprintf(d->error, sizeof(d->error), "GPU %u: %s: %s", d->index, what, name);
    return -EIO;
}

const char *device_error(struct device *d)
{
    return *d->error ? d->error : NULL;
}

const char *device_name(struct device *d)
{
    return d->name;
}

/* ---- hot path ---- */

static struct stream *room(struct device *d, enum device_stream s, int *rc)
{
    struct stream *st = &d->stream[s];

    *rc = *d->error ? -EIO : st->given - st->done == DEVICE_DEPTH ? -EAGAIN : 0;
    return st;
}

static bool staging(const struct device *d)
{
    const struct stream *up = &d->stream[DEVICE_UP], *down = &d->stream[DEVICE_DOWN];

    return up->given != up->done || down->given != down->done;
}

static int given(struct device *d, enum device_stream s)
{
    struct stream *st = &d->stream[s];
    bool was = staging(d);

    if (check(d, d->cu.cuEventRecord(st->event[st->given % DEVICE_DEPTH], st->s), "event"))
        return -EIO;
    st->given++;
    if (!was && staging(d))
        d->busy_since = now_ns();
    return 0;
}

int device_copy(struct device *d, enum device_stream s, void *dst, const void *src, size_t bytes)
{
    int rc;
    struct stream *st = room(d, s, &rc);

    if (!rc)
        rc = check(d, d->cu.cuMemcpyAsync(at(dst), at(src), bytes, st->s), "copy");
    return rc ? rc : given(d, s);
}

static CUfunction function_of(struct device *d, const struct kernel *k)
{
    unsigned i = 0;

    while (d->used[i].k && d->used[i].k != k)
        i++;
    for (unsigned m = 0; !d->used[i].f && m < d->n_modules; m++)
        if (d->cu.cuModuleGetFunction(&d->used[i].f, d->module[m], k->name) != CUDA_SUCCESS)
            d->used[i].f = NULL;
    if (!d->used[i].f)
        check(d, CUDA_ERROR_NOT_FOUND, k->name);
    else
        d->used[i].k = k;
    return d->used[i].f;
}

static int launch(struct device *d, struct stream *st, const struct kernel *k, void *args,
                  unsigned grid)
{
    CUfunction f = function_of(d, k);
    void *params[] = {args};

    if (!f)
        return -EIO;
    return check(d,
                 d->cu.cuLaunchKernel(f, grid, 1, 1, KERNEL_THREADS, 1, 1, 0, st->s, params, NULL),
                 k->name);
}

int device_reduce(struct device *d, enum device_stream s, enum redop op, enum dtype t,
                  unsigned divide, void *dst, void *copy, const void *const *in, unsigned n,
                  size_t count)
{
    struct reduce_args r = {.out = dst, .copy = copy, .n = n, .divide = divide};
    int rc;
    struct stream *st = room(d, s, &rc);

    if (rc)
        return rc;
    for (unsigned k = 0; k < n; k++)
        r.in[k] = in[k];
    r.split = reduce_split(&r, count, dtype_size(t));
    rc = launch(d, st, kernel_reduce(op, t, divide != 0), &r,
                reduce_grid(&r.split, (unsigned)d->processors));
    return rc ? rc : given(d, s);
}

uint64_t device_given(const struct device *d, enum device_stream s)
{
    return d->stream[s].given;
}

int device_done(struct device *d, enum device_stream s, uint64_t *done)
{
    struct stream *st = &d->stream[s];
    bool was = staging(d);

    while (!*d->error && st->done < st->given) {
        CUresult rc = d->cu.cuEventQuery(st->event[st->done % DEVICE_DEPTH]);

        if (rc == CUDA_ERROR_NOT_READY)
            break;
        if (check(d, rc, "what was given to it did not end"))
            break;
        st->done++;
    }
    if (was && !staging(d))
        d->staged_ns += now_ns() - d->busy_since;
    *done = st->done;
    return *d->error ? -EIO : 0;
}

int64_t device_staging_ns(const struct device *d)
{
    return d->staged_ns + (staging(d) ? now_ns() - d->busy_since : 0);
}

int device_wait(struct device *d)
{
    for (unsigned s = 0; s < DEVICE_STREAMS; s++) {
        uint64_t done;

        if (d->stream[s].s)
            check(d, d->cu.cuStreamSynchronize(d->stream[s].s), "waiting");
        device_done(d, s, &done);
    }
    return *d->error ? -EIO : 0;
}

/* ---- memory ---- */

void *device_alloc(struct device *d, size_t bytes)
{
    CUdeviceptr p = 0;
    char what[64];

    if (*d->error)
        return NULL;
    snprintf(what, sizeof(what), "%zu bytes of its memory", bytes);
    return check(d, d->cu.cuMemAlloc(&p, bytes), what) ? NULL : (void *)(uintptr_t)p;
}

void device_free(struct device *d, void *p)
{
    if (p)
        d->cu.cuMemFree(at(p));
}

void *device_host(struct device *d, size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CUdeviceptr seen = 0;

    if (p == MAP_FAILED) {
        check(d, CUDA_ERROR_OUT_OF_MEMORY, "host memory");
        return NULL;
    }
    if (!*d->error &&
        !check(d,
               d->cu.cuMemHostRegister(p, bytes,
                                       CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP),
               "pinning host memory")) {
        if (!check(d, d->cu.cuMemHostGetDevicePointer(&seen, p, 0), "pinned memory") &&
            !check(d, seen == at(p) ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED,
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
    CUresult rc = d->cu.cuMemGetHandleForAddressRange(&fd, at(p), bytes,
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
        return check(d, CUDA_ERROR_INVALID_VALUE, "a period of so many bytes");
    memcpy(d->bounce, period, p->period_bytes);
    p->period = (const uint8_t *)(uintptr_t)d->period;
    p->result = (struct verify_result *)(uintptr_t)d->result;
    p->split = pattern_split(p, n);
    grid = pattern_grid(p, (unsigned)d->processors);
    if (device_wait(d) ||
        check(d, d->cu.cuMemcpyAsync(d->period, at(d->bounce), p->period_bytes, st->s), "copy"))
        return -EIO;
    return launch(d, st, k, p, grid);
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
    if (check(d, d->cu.cuMemcpyAsync(d->result, at(found), sizeof(*found), s), "copy") ||
        pattern(d, kernel_verify(), &p, period, n) ||
        check(d, d->cu.cuMemcpyAsync(at(found), d->result, sizeof(*found), s), "copy") ||
        device_wait(d))
        return -EIO;
    *wrong = (struct device_wrong){found->wrong, found->first};
    return 0;
}

/* ---- life ---- */

static int no(char *err, int rc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static int no(char *err, int rc, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(err, DEVICE_TEXT, fmt, ap);
    va_end(ap);
    return rc;
}

static int load(struct device *d, char *err)
{
    const char *missing = NULL;

    d->lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!d->lib)
        return no(err, -ENODEV, "no CUDA driver on this machine (%s)", dlerror());
#define LOAD(name)                                                                                 \
    *(void **)(void *)&d->cu.name = dlsym(d->lib, SYMBOL(name));                                   \
    missing = d->cu.name ? missing : SYMBOL(name);
    CALLS(LOAD)
    return missing ? no(err, -ENOSYS, "the CUDA driver is too old: it has no %s", missing) : 0;
}

static int find(struct device *d, char *err)
{
    const char *name = NULL;
    CUresult rc = d->cu.cuInit(0);
    CUcontext ctx;
    int n = 0;

    if (rc == CUDA_SUCCESS)
        rc = d->cu.cuDeviceGetCount(&n);
    if (rc != CUDA_SUCCESS && rc != CUDA_ERROR_NO_DEVICE) {
        d->cu.cuGetErrorName(rc, &name);
        return no(err, -ENODEV, "the CUDA driver does not start: %s", name ? name : "unknown");
    }
    if (d->index >= (unsigned)n)
        return no(err, -ENODEV, "no GPU %u: this machine has %d", d->index, n);
    if (check(d, d->cu.cuDeviceGet(&d->dev, (int)d->index), "device") ||
        check(d, d->cu.cuDeviceGetName(d->name, sizeof(d->name), d->dev), "name") ||
        check(d,
              d->cu.cuDeviceGetAttribute(&d->processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                         d->dev),
              "number of processors") ||
        check(d, d->cu.cuDevicePrimaryCtxRetain(&ctx, d->dev), "context"))
        return -EIO;
    d->retained = true;
    return check(d, d->cu.cuCtxSetCurrent(ctx), "context");
}

static int set_up(struct device *d, char *err)
{
    const void *const *images;
    unsigned n = kernel_images(&images);

    if (!n || n > MODULES)
        return no(err, -ENOSYS, "this program has no kernels");
    for (; d->n_modules < n; d->n_modules++)
        if (check(d, d->cu.cuModuleLoadData(&d->module[d->n_modules], images[d->n_modules]),
                  "kernels"))
            return -EIO;
    for (unsigned s = 0; s < DEVICE_STREAMS; s++) {
        if (check(d, d->cu.cuStreamCreate(&d->stream[s].s, CU_STREAM_NON_BLOCKING), "stream"))
            return -EIO;
        for (unsigned i = 0; i < DEVICE_DEPTH; i++)
            if (check(d, d->cu.cuEventCreate(&d->stream[s].event[i], CU_EVENT_DISABLE_TIMING),
                      "event"))
                return -EIO;
    }
    d->bounce = device_host(d, BOUNCE);
    d->period = at(device_alloc(d, PERIOD_BYTES));
    d->result = at(device_alloc(d, sizeof(struct verify_result)));
    return *d->error ? -EIO : 0;
}

int device_open(struct device **out, unsigned index, char *err)
{
    struct device *d = calloc(1, sizeof(*d));
    int rc;

    if (!d)
        return no(err, -ENOMEM, "out of memory");
    d->index = index;
    rc = load(d, err);
    if (!rc)
        rc = find(d, err);
    if (!rc)
        rc = set_up(d, err);
    if (rc) {
        if (*d->error)
            no(err, rc, "%s", d->error);
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
    for (unsigned s = 0; s < DEVICE_STREAMS; s++) {
        for (unsigned i = 0; i < DEVICE_DEPTH; i++)
            if (d->stream[s].event[i])
                d->cu.cuEventDestroy(d->stream[s].event[i]);
        if (d->stream[s].s)
            d->cu.cuStreamDestroy(d->stream[s].s);
    }
    if (d->retained) {
        device_free(d, (void *)(uintptr_t)d->period);
        device_free(d, (void *)(uintptr_t)d->result);
        device_host_free(d, d->bounce, BOUNCE);
        while (d->n_modules)
            d->cu.cuModuleUnload(d->module[--d->n_modules]);
        d->cu.cuDevicePrimaryCtxRelease(d->dev);
    }
    if (d->lib)
        dlclose(d->lib);
    free(d);
}
#endif
