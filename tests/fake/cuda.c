/*
 * A libcuda.so.1 without a GPU, for tests: what host/kernels/cuda.c calls, over host memory.
 * Streams are threads that do what they are given in order and late; kernels are run by their CPU
 * twins, by name. GPU memory has addresses that the CPU cannot follow, and asynchronous copies and
 * kernels may touch only that and pinned memory, so that what would fail with a GPU fails here too.
 *
 * TRIB_FAKE_CUDA, words with commas between them: devices=N (1), memory=BYTES of a process (1 GiB),
 * delay=US most before each operation (100), lost=N: the GPU is lost with the N-th of a process (0:
 * never), dmabuf=1: there are dma-bufs of its memory, host=NAME: memory and lost hold in the
 * processes of that emulated host only.
 */
#include "host/kernels/kernels.h"

#include <cuda.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define API   __attribute__((visibility("default"))) CUresult
#define AREAS 256
#define QUEUE 1024u

struct area {
    uint8_t *at, *real; /* real: of GPU memory, where its bytes are; NULL: pinned host memory */
    size_t bytes;
    int fd; /* of GPU memory: what real is a mapping of */
};

enum job_kind { JOB_COPY, JOB_KERNEL, JOB_EVENT };
struct job {
    enum job_kind kind;
    void *dst;
    const void *src;
    size_t bytes;
    const struct kernel *k;
    unsigned grid;
    union {
        struct reduce_args reduce;
        struct pattern_args pattern;
        struct blocks_args blocks;
    } args;
    struct CUevent_st *event;
};

struct CUevent_st {
    bool here;
    int64_t ns; /* when it came */
};

struct CUstream_st {
    pthread_t thread;
    struct job *job; /* [QUEUE] */
    uint64_t head, tail;
    bool stop;
    unsigned seed;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    struct area area[AREAS];
    size_t used;
    unsigned long devices, memory, delay, lost, given, dmabuf;
    CUresult failed;
} g = {.lock = PTHREAD_MUTEX_INITIALIZER,
       .moved = PTHREAD_COND_INITIALIZER,
       .devices = 1,
       .memory = 1ul << 30,
       .delay = 100};

/* ---- memory; g.lock is held ---- */

static struct area *area_of(const void *p, size_t bytes)
{
    const uint8_t *b = p;

    for (unsigned i = 0; i < AREAS; i++)
        if (g.area[i].at && b >= g.area[i].at && b + bytes <= g.area[i].at + g.area[i].bytes)
            return &g.area[i];
    return NULL;
}

static struct area *add(void *at, void *real, size_t bytes, int fd)
{
    for (unsigned i = 0; i < AREAS; i++)
        if (!g.area[i].at) {
            g.area[i] = (struct area){at, real, bytes, fd};
            return &g.area[i];
        }
    return NULL;
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Where its bytes are; NULL, and nothing goes on: it is neither the GPU's nor pinned. */
static void *real(const void *p, size_t bytes)
{
    const struct area *a = area_of(p, bytes);

    if (!a)
        g.failed = CUDA_ERROR_ILLEGAL_ADDRESS;
    return !a ? NULL : a->real ? a->real + ((const uint8_t *)p - a->at) : (void *)(uintptr_t)p;
}

#define REAL(p, bytes) ((p) = real((p), (bytes)), ok = ok && (p))

static bool translate(struct job *j)
{
    bool ok = true;

    if (j->kind == JOB_COPY) {
        REAL(j->dst, j->bytes);
        REAL(j->src, j->bytes);
    } else if (j->k->takes == KERNEL_REDUCE) {
        REAL(j->args.reduce.out, 1);
        if (j->args.reduce.copy)
            REAL(j->args.reduce.copy, 1);
        for (unsigned i = 0; i < j->args.reduce.n; i++)
            REAL(j->args.reduce.in[i], 1);
    } else if (j->k->takes == KERNEL_PATTERN) {
        REAL(j->args.pattern.buf, 1);
        REAL(j->args.pattern.period, j->args.pattern.period_bytes);
        REAL(j->args.pattern.result, sizeof(struct verify_result));
    } else {
        REAL(j->args.blocks.dst, 1);
        REAL(j->args.blocks.src, 1);
    }
    return ok;
}

/* ---- streams ---- */

static void run(struct job *j)
{
    if (j->kind == JOB_COPY)
        memmove(j->dst, j->src, j->bytes);
    else if (j->kind == JOB_KERNEL)
        kernel_run_twin(j->k, &j->args, j->grid);
    else {
        j->event->ns = now_ns();
        __atomic_store_n(&j->event->here, true, __ATOMIC_RELEASE);
    }
}

static void *serve(void *arg)
{
    struct CUstream_st *s = arg;

    pthread_mutex_lock(&g.lock);
    for (;;) {
        struct job *j;
        bool go;

        while (s->head == s->tail && !s->stop)
            pthread_cond_wait(&g.moved, &g.lock);
        if (s->head == s->tail)
            break;
        j = &s->job[s->head % QUEUE];
        go = g.failed == CUDA_SUCCESS && (j->kind == JOB_EVENT || translate(j));
        pthread_mutex_unlock(&g.lock);
        if (go && g.delay && j->kind != JOB_EVENT)
            nanosleep(&(struct timespec){.tv_nsec = rand_r(&s->seed) % (long)g.delay * 1000}, NULL);
        if (go)
            run(j);
        pthread_mutex_lock(&g.lock);
        s->head++;
        pthread_cond_broadcast(&g.moved);
    }
    pthread_mutex_unlock(&g.lock);
    return NULL;
}

static CUresult give(struct CUstream_st *s, const struct job *j)
{
    CUresult rc;

    pthread_mutex_lock(&g.lock);
    if (j->kind != JOB_EVENT && ++g.given == g.lost)
        g.failed = CUDA_ERROR_DEVICE_UNAVAILABLE;
    rc = g.failed;
    while (rc == CUDA_SUCCESS && s->tail - s->head == QUEUE)
        pthread_cond_wait(&g.moved, &g.lock);
    if (rc == CUDA_SUCCESS) {
        s->job[s->tail++ % QUEUE] = *j;
        pthread_cond_broadcast(&g.moved);
    }
    pthread_mutex_unlock(&g.lock);
    return rc;
}

API cuStreamCreate(CUstream *out, unsigned flags)
{
    static unsigned seeds;
    struct CUstream_st *s;

    if (flags != CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    s = calloc(1, sizeof(*s));
    s->job = calloc(QUEUE, sizeof(*s->job));
    s->seed = ++seeds;
    pthread_create(&s->thread, NULL, serve, s);
    *out = s;
    return CUDA_SUCCESS;
}

API cuStreamDestroy(CUstream s)
{
    pthread_mutex_lock(&g.lock);
    s->stop = true;
    pthread_cond_broadcast(&g.moved);
    pthread_mutex_unlock(&g.lock);
    pthread_join(s->thread, NULL);
    free(s->job);
    free(s);
    return CUDA_SUCCESS;
}

API cuStreamSynchronize(CUstream s)
{
    CUresult rc;

    pthread_mutex_lock(&g.lock);
    while (s->head != s->tail)
        pthread_cond_wait(&g.moved, &g.lock);
    rc = g.failed;
    pthread_mutex_unlock(&g.lock);
    return rc;
}

API cuEventCreate(CUevent *e, unsigned flags)
{
    (void)flags;
    *e = calloc(1, sizeof(**e));
    return *e ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API cuEventDestroy(CUevent e)
{
    free(e);
    return CUDA_SUCCESS;
}

API cuEventRecord(CUevent e, CUstream s)
{
    __atomic_store_n(&e->here, false, __ATOMIC_RELEASE);
    return give(s, &(struct job){.kind = JOB_EVENT, .event = e});
}

API cuEventQuery(CUevent e)
{
    CUresult rc;

    pthread_mutex_lock(&g.lock);
    rc = g.failed;
    pthread_mutex_unlock(&g.lock);
    return rc != CUDA_SUCCESS                            ? rc
           : __atomic_load_n(&e->here, __ATOMIC_ACQUIRE) ? CUDA_SUCCESS
                                                         : CUDA_ERROR_NOT_READY;
}

API cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
    if (!__atomic_load_n(&from->here, __ATOMIC_ACQUIRE) ||
        !__atomic_load_n(&to->here, __ATOMIC_ACQUIRE))
        return CUDA_ERROR_NOT_READY;
    *ms = (float)(to->ns - from->ns) * 1e-6f;
    return CUDA_SUCCESS;
}

API cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream s)
{
    return give(s, &(struct job){.kind = JOB_COPY,
                                 .dst = (void *)(uintptr_t)dst,
                                 .src = (const void *)(uintptr_t)src,
                                 .bytes = bytes});
}

API cuLaunchKernel(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, CUstream s, void **params, void **extra)
{
    struct job j = {.kind = JOB_KERNEL, .k = (const void *)f, .grid = x};

    if (y != 1 || z != 1 || bx != KERNEL_THREADS || by != 1 || bz != 1 || shared || extra)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&j.args, params[0],
           j.k->takes == KERNEL_REDUCE    ? sizeof(j.args.reduce)
           : j.k->takes == KERNEL_PATTERN ? sizeof(j.args.pattern)
                                          : sizeof(j.args.blocks));
    return give(s, &j);
}

/* ---- memory ---- */

API cuMemAlloc(CUdeviceptr *out, size_t bytes)
{
    CUresult rc = CUDA_ERROR_OUT_OF_MEMORY;
    void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int fd = memfd_create("fake GPU", MFD_CLOEXEC);
    void *bytes_of = ftruncate(fd, (off_t)bytes) ? MAP_FAILED
                                                 : mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                                        MAP_SHARED | MAP_NORESERVE, fd, 0);

    pthread_mutex_lock(&g.lock);
    if (at != MAP_FAILED && bytes_of != MAP_FAILED && g.used + bytes <= g.memory &&
        add(at, bytes_of, bytes, fd)) {
        g.used += bytes;
        *out = (CUdeviceptr)(uintptr_t)at;
        rc = g.failed;
    }
    pthread_mutex_unlock(&g.lock);
    return rc;
}

static CUresult drop(void *p, bool gpu)
{
    struct area *a, was = {0};

    pthread_mutex_lock(&g.lock);
    a = area_of(p, 1);
    if (a && a->at == p && (a->real != NULL) == gpu) {
        was = *a;
        *a = (struct area){0};
        g.used -= gpu ? was.bytes : 0;
    }
    pthread_mutex_unlock(&g.lock);
    if (!was.at)
        return CUDA_ERROR_INVALID_VALUE;
    if (gpu) {
        munmap(was.at, was.bytes);
        munmap(was.real, was.bytes);
        close(was.fd);
    }
    return CUDA_SUCCESS;
}

API cuMemFree(CUdeviceptr p)
{
    return drop((void *)(uintptr_t)p, true);
}

API cuMemHostRegister(void *p, size_t bytes, unsigned flags)
{
    CUresult rc;

    (void)flags;
    pthread_mutex_lock(&g.lock);
    rc = area_of(p, 1) || !add(p, NULL, bytes, -1) ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
                                                   : g.failed;
    pthread_mutex_unlock(&g.lock);
    return rc;
}

API cuMemHostUnregister(void *p)
{
    return drop(p, false);
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
    if (g.dmabuf && type == CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD && !flags) {
        rc =
            a && a->real && a->at == (void *)(uintptr_t)p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        if (rc == CUDA_SUCCESS)
            *(int *)handle = dup(a->fd);
    }
    pthread_mutex_unlock(&g.lock);
    return rc;
}

/* ---- the rest ---- */

static unsigned long word(const char *text, const char *name, unsigned long otherwise)
{
    const char *p = strstr(text, name);

    return p ? strtoul(p + strlen(name), NULL, 0) : otherwise;
}

API cuInit(unsigned flags)
{
    const char *text = getenv("TRIB_FAKE_CUDA"), *here = getenv("TRIB_HOST"), *host;

    (void)flags;
    text = text ? text : "";
    host = strstr(text, "host=");
    g.devices = word(text, "devices=", 1);
    g.delay = word(text, "delay=", 100);
    g.dmabuf = word(text, "dmabuf=", 0);
    if (!host || (here && !strncmp(host + 5, here, strcspn(host + 5, ",")) &&
                  strlen(here) == strcspn(host + 5, ","))) {
        g.memory = word(text, "memory=", 1ul << 30);
        g.lost = word(text, "lost=", 0);
    }
    return g.devices ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

API cuGetErrorName(CUresult rc, const char **name)
{
    *name = rc == CUDA_ERROR_OUT_OF_MEMORY        ? "CUDA_ERROR_OUT_OF_MEMORY"
            : rc == CUDA_ERROR_DEVICE_UNAVAILABLE ? "CUDA_ERROR_DEVICE_UNAVAILABLE"
            : rc == CUDA_ERROR_ILLEGAL_ADDRESS    ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                                  : "another error of the fake driver's";
    return CUDA_SUCCESS;
}

API cuDeviceGetCount(int *n)
{
    *n = (int)g.devices;
    return CUDA_SUCCESS;
}

API cuDeviceGet(CUdevice *d, int i)
{
    *d = i;
    return (unsigned long)i < g.devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

API cuDeviceGetName(char *name, int room, CUdevice d)
{
    (void)d;
    strncpy(name, "fake GPU of the tests", (size_t)room - 1);
    return CUDA_SUCCESS;
}

API cuDeviceGetAttribute(int *value, CUdevice_attribute what, CUdevice d)
{
    (void)d;
    *value = what == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? 2 : 0;
    return CUDA_SUCCESS;
}

API cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d)
{
    (void)d;
    *c = (CUcontext)&g;
    return CUDA_SUCCESS;
}

API cuDevicePrimaryCtxRelease(CUdevice d)
{
    (void)d;
    return CUDA_SUCCESS;
}

API cuCtxSetCurrent(CUcontext c)
{
    (void)c;
    return CUDA_SUCCESS;
}

API cuModuleLoadData(CUmodule *m, const void *image)
{
    uint32_t magic;

    memcpy(&magic, image, sizeof(magic)); /* of a fat binary */
    *m = (CUmodule)&g;
    return magic == 0xba55ed50u ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

API cuModuleUnload(CUmodule m)
{
    (void)m;
    return CUDA_SUCCESS;
}

API cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name)
{
    (void)m;
    *f = (CUfunction)(uintptr_t)kernel_by_name(name);
    return *f ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
