/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A libcuda.so.1 without a GPU, for tests: the calls of host/kernels/cuda*.c and multicast*.c, over
 * host memory (memory.c). Streams are threads that execute their operations in order and with a
 * delay; the CPU twins run the kernels, by name. GPU memory has addresses that the CPU cannot
 * access. Asynchronous copies and kernels may access only GPU memory and pinned memory, and a GPU
 * only its own memory and what is mapped for it. So an access that would fail on a GPU fails here
 * too.
 *
 * TRIB_FAKE_CUDA, a list with commas: devices=N (1), memory=BYTES of a process (1 GiB), delay=US
 * before each operation at most (100), lost=N: the GPUs are lost with the N-th operation of a
 * process (0: never), dmabuf=1: memory can be exported as dma-bufs, cc=N compute capability (80),
 * multicast=1: multicast objects are supported, ready=0: but the Fabric Manager does not run,
 * drop=N: multicast stores do not reach the N-th member (0: they do), host=NAME: memory and lost
 * apply only to the processes of that emulated host.
 */
#include "tests/fake/fake.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define QUEUE 1024u

enum job_kind { JOB_COPY, JOB_KERNEL, JOB_EVENT, JOB_WAIT };
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
        struct multimem_twin multimem;
    } args;
    struct CUevent_st *event;
    uint64_t nth; /* which recording of the event */
};

struct CUevent_st {
    CUcontext ctx;
    uint64_t given, here; /* recordings so far, and the last that completed */
    int64_t ns;           /* when it completed */
};

struct CUstream_st {
    CUcontext ctx;
    pthread_t thread;
    struct job *job; /* [QUEUE] */
    uint64_t head, tail;
    bool stop;
    unsigned seed;
};

struct CUmod_st {
    CUcontext ctx;
    const void *image;
    size_t bytes;
};

struct fake fake_state = {.lock = PTHREAD_MUTEX_INITIALIZER,
                          .moved = PTHREAD_COND_INITIALIZER,
                          .devices = 1,
                          .memory = 1ul << 30,
                          .delay = 100};
__thread CUcontext fake_current;

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* ---- streams ---- */

#define REAL(p, bytes) ((p) = fake_real((p), (bytes), dev), ok = ok && (p))

/* Replaces GPU addresses by addresses of this process. false: an access that the GPU may
 * not make. */
static bool translate(struct job *j, int dev)
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
    } else if (j->k->takes == KERNEL_MULTIMEM) {
        struct multimem_twin *m = &j->args.multimem;
        size_t bytes = m->args.units * j->k->unit;

        m->n = fake_members(m->args.src, bytes, dev, (uint8_t **)m->src);
        ok = m->n && fake_members(m->args.dst, bytes, dev, m->dst) == m->n;
        if (ok && g.drop && g.drop <= m->n)
            m->dst[g.drop - 1] = m->dst[g.drop % m->n];
    } else {
        REAL(j->args.blocks.dst, 1);
        REAL(j->args.blocks.src, 1);
    }
    return ok;
}

static bool here(const struct CUevent_st *e, uint64_t nth)
{
    return __atomic_load_n(&e->here, __ATOMIC_ACQUIRE) >= nth;
}

static void run(struct job *j)
{
    if (j->kind == JOB_COPY)
        memmove(j->dst, j->src, j->bytes);
    else if (j->kind == JOB_KERNEL)
        kernel_run_twin(j->k, &j->args, j->grid);
    else {
        j->event->ns = now_ns();
        __atomic_store_n(&j->event->here, j->nth, __ATOMIC_RELEASE);
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
        while (j->kind == JOB_WAIT && g.failed == CUDA_SUCCESS && !here(j->event, j->nth))
            pthread_cond_wait(&g.moved, &g.lock);
        go = g.failed == CUDA_SUCCESS && j->kind != JOB_WAIT &&
             (j->kind == JOB_EVENT || translate(j, s->ctx->dev));
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
    if ((j->kind == JOB_COPY || j->kind == JOB_KERNEL) && ++g.given == g.lost) {
        g.failed = CUDA_ERROR_DEVICE_UNAVAILABLE;
        pthread_cond_broadcast(&g.moved);
    }
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

    if (flags != CU_STREAM_NON_BLOCKING || !fake_current)
        return CUDA_ERROR_INVALID_VALUE;
    s = calloc(1, sizeof(*s));
    s->ctx = fake_current;
    __atomic_fetch_add(&g.left, 1, __ATOMIC_RELAXED);
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
    __atomic_fetch_sub(&g.left, 1, __ATOMIC_RELAXED);
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

API cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags)
{
    return flags ? CUDA_ERROR_INVALID_VALUE
                 : give(s, &(struct job){.kind = JOB_WAIT, .event = e, .nth = e->given});
}

API cuEventCreate(CUevent *e, unsigned flags)
{
    (void)flags;
    if (!fake_current)
        return CUDA_ERROR_INVALID_CONTEXT;
    *e = calloc(1, sizeof(**e));
    (*e)->ctx = fake_current;
    __atomic_fetch_add(&g.left, 1, __ATOMIC_RELAXED);
    return CUDA_SUCCESS;
}

API cuEventDestroy(CUevent e)
{
    __atomic_fetch_sub(&g.left, 1, __ATOMIC_RELAXED);
    free(e);
    return CUDA_SUCCESS;
}

API cuEventRecord(CUevent e, CUstream s)
{
    if (e->ctx != s->ctx)
        return CUDA_ERROR_INVALID_HANDLE;
    return give(s, &(struct job){.kind = JOB_EVENT, .event = e, .nth = ++e->given});
}

API cuEventQuery(CUevent e)
{
    CUresult rc;

    pthread_mutex_lock(&g.lock);
    rc = g.failed;
    pthread_mutex_unlock(&g.lock);
    return rc != CUDA_SUCCESS ? rc : here(e, e->given) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

API cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
    if (!here(from, from->given) || !here(to, to->given))
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

    if (s->ctx != fake_current)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (y != 1 || z != 1 || bx != KERNEL_THREADS || by != 1 || bz != 1 || shared || extra)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&j.args, params[0],
           j.k->takes == KERNEL_REDUCE    ? sizeof(j.args.reduce)
           : j.k->takes == KERNEL_PATTERN ? sizeof(j.args.pattern)
           : j.k->takes == KERNEL_BLOCKS  ? sizeof(j.args.blocks)
                                          : sizeof(struct multimem_args));
    return give(s, &j);
}

/* ---- start-up and devices ---- */

static unsigned long word(const char *text, const char *name, unsigned long otherwise)
{
    const char *p = strstr(text, name);
    unsigned long n;
    char *unit;

    if (!p)
        return otherwise;
    n = strtoul(p + strlen(name), &unit, 0);
    return *unit == 'M' ? n << 20 : *unit == 'G' ? n << 30 : n;
}

/* Of the twins, which are linked without base/. */
void assert_failed(const char *condition, const char *what, const char *file, int line,
                   const char *function)
{
    fprintf(stderr, "%s:%d: %s: assertion failed: %s (%s)\n", file, line, function, what,
            condition);
    abort();
}

/* For tests: the number of objects that were created and not destroyed. */
__attribute__((visibility("default"))) unsigned fakeLeft(void);
unsigned fakeLeft(void)
{
    unsigned n = g.left + fake_memory_left();

    for (unsigned i = 0; i < GPUS; i++)
        n += g.ctx[i].retained;
    return n;
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
    g.cc = word(text, "cc=", 80);
    g.multicast = word(text, "multicast=", 0);
    g.ready = word(text, "ready=", 1);
    g.drop = word(text, "drop=", 0);
    if (!host || (here && !strncmp(host + 5, here, strcspn(host + 5, ",")) &&
                  strlen(here) == strcspn(host + 5, ","))) {
        g.memory = word(text, "memory=", 1ul << 30);
        g.lost = word(text, "lost=", 0);
    }
    if (g.devices > GPUS)
        abort();
    if (!fakeLeft()) { /* the next user starts afresh */
        g.given = 0;
        g.failed = CUDA_SUCCESS;
    }
    return g.devices ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

API cuGetErrorName(CUresult rc, const char **name)
{
    *name = rc == CUDA_ERROR_OUT_OF_MEMORY        ? "CUDA_ERROR_OUT_OF_MEMORY"
            : rc == CUDA_ERROR_DEVICE_UNAVAILABLE ? "CUDA_ERROR_DEVICE_UNAVAILABLE"
            : rc == CUDA_ERROR_ILLEGAL_ADDRESS    ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : rc == CUDA_ERROR_SYSTEM_NOT_READY   ? "CUDA_ERROR_SYSTEM_NOT_READY"
            : rc == CUDA_ERROR_NO_BINARY_FOR_GPU  ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
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
    *value = what == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT            ? 2
             : what == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR      ? (int)g.cc / 10
             : what == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR      ? (int)g.cc % 10
             : what == 132 /* CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED */ ? (int)g.multicast
                                                                         : 0;
    return CUDA_SUCCESS;
}

API cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d)
{
    *c = &g.ctx[d];
    g.ctx[d].dev = d;
    g.ctx[d].retained++;
    return CUDA_SUCCESS;
}

API cuDevicePrimaryCtxRelease(CUdevice d)
{
    g.ctx[d].retained--;
    return CUDA_SUCCESS;
}

API cuCtxSetCurrent(CUcontext c)
{
    fake_current = c;
    return CUDA_SUCCESS;
}

/* A fat binary: a header, then images with headers of their own, of PTX or of code for one
 * generation. */
struct fat {
    uint32_t magic;
    uint16_t version, header;
    uint64_t bytes;
};
struct fat_image {
    uint16_t kind, version; /* kind 1: PTX */
    uint32_t header;
    uint64_t bytes;
    uint32_t more[3], arch;
};

API cuModuleLoadData(CUmodule *m, const void *image)
{
    struct fat_image one;
    bool runs = false;
    struct fat all;

    memcpy(&all, image, sizeof(all));
    if (all.magic != 0xba55ed50u)
        return CUDA_ERROR_INVALID_IMAGE;
    for (uint64_t at = 0; at < all.bytes; at += one.header + one.bytes) {
        memcpy(&one, (const uint8_t *)image + all.header + at, sizeof(one));
        runs = runs || (one.arch <= g.cc && (one.kind == 1 || one.arch / 10 == g.cc / 10));
    }
    if (!runs)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    *m = malloc(sizeof(**m));
    **m = (struct CUmod_st){fake_current, image, all.header + all.bytes};
    g.left++;
    return CUDA_SUCCESS;
}

API cuModuleUnload(CUmodule m)
{
    g.left--;
    free(m);
    return fake_current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

/* For tests: the number of functions that were looked up in modules without them, which is an error
 * for compute-sanitizer. */
__attribute__((visibility("default"))) unsigned fakeMisses(void);
static unsigned misses;
unsigned fakeMisses(void)
{
    return misses;
}

/* Names are strings in the code's symbol table. */
API cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name)
{
    char symbol[128];
    size_t n = (size_t)snprintf(symbol, sizeof(symbol), ".text.%s", name) + 1;
    const struct kernel *k = memmem(m->image, m->bytes, symbol, n) ? kernel_by_name(name) : NULL;

    misses += !k;
    *f = (CUfunction)(uintptr_t)k;
    return k ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
