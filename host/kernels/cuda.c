/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CUDA driver behind device.h: operations on streams and their completion. Only the driver's
 * own library is used, libcuda.so.1, which is loaded by name at run time (cuda_open.c); compiling
 * needs cuda.h. The n-th operation of a stream records event n % DEVICE_DEPTH behind it; a
 * completed event means that all operations before it have completed.
 */
#ifdef KERNEL_IMAGES
#include "host/kernels/cuda_priv.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* ---- errors ---- */

int cuda_check(struct device *d, CUresult rc, const char *what)
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

/* ---- streams ---- */

/* The stream; *rc: 0, -EAGAIN (it is full) or -EIO. */
static struct stream *stream_with_space(struct device *d, enum device_stream s, int *rc)
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

/* Records the event behind the operation that was just submitted. */
static int record_given(struct device *d, enum device_stream s)
{
    struct stream *st = &d->stream[s];
    bool was = staging(d);

    T_ASSERT(st->given - st->done < DEVICE_DEPTH,
             "an event of an operation in flight is recorded again");
    if (cuda_check(d, d->cu.cuEventRecord(st->event[st->given % DEVICE_DEPTH], st->s), "event"))
        return -EIO;
    st->given++;
    if (!was && staging(d))
        d->busy_since = now_ns();
    return 0;
}

int device_copy(struct device *d, enum device_stream s, void *dst, const void *src, size_t bytes)
{
    int rc;
    struct stream *st = stream_with_space(d, s, &rc);

    if (!rc)
        rc = cuda_check(d, d->cu.cuMemcpyAsync(at(dst), at(src), bytes, st->s), "copy");
    return rc ? rc : record_given(d, s);
}

static CUfunction function_of(struct device *d, const struct kernel *k)
{
    unsigned i = 0;

    while (d->used[i].k && d->used[i].k != k)
        i++;
    T_ASSERT(i < KERNELS - 1, "more kernels are in use than the table holds");
    if (!d->used[i].k &&
        !cuda_check(d, d->cu.cuModuleGetFunction(&d->used[i].f, d->module[k->image], k->name),
                    k->name))
        d->used[i].k = k;
    return d->used[i].k ? d->used[i].f : NULL;
}

int cuda_launch(struct device *d, struct stream *st, const struct kernel *k, void *args,
                unsigned grid)
{
    CUfunction f = function_of(d, k);
    void *params[] = {args};

    if (!f)
        return -EIO;
    return cuda_check(
        d, d->cu.cuLaunchKernel(f, grid, 1, 1, KERNEL_THREADS, 1, 1, 0, st->s, params, NULL),
        k->name);
}

int device_reduce(struct device *d, enum device_stream s, enum redop op, enum dtype t,
                  unsigned divide, void *dst, void *copy, const void *const *in, unsigned n,
                  size_t count)
{
    struct reduce_args r = {.out = dst, .copy = copy, .n = n, .divide = divide};
    int rc;
    struct stream *st = stream_with_space(d, s, &rc);

    if (rc)
        return rc;
    T_ASSERT(n <= KERNEL_INPUTS, "a reduction has more inputs than a kernel takes");
    for (unsigned k = 0; k < n; k++)
        r.in[k] = in[k];
    r.split = reduce_split(&r, count, dtype_size(t));
    rc = cuda_launch(d, st, kernel_reduce(op, t, divide != 0), &r,
                     reduce_grid(&r.split, (unsigned)d->processors));
    return rc ? rc : record_given(d, s);
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
        if (cuda_check(d, rc, "what was given to it did not end"))
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
            cuda_check(d, d->cu.cuStreamSynchronize(d->stream[s].s), "waiting");
        device_done(d, s, &done);
    }
    return *d->error ? -EIO : 0;
}

int device_time(struct device *d, int (*give)(void *ctx), void *ctx, double *seconds)
{
    struct stream *st = &d->stream[DEVICE_REDUCE];
    float ms = 0;

    if (cuda_check(d, d->cu.cuEventRecord(d->mark[0], st->s), "event") || give(ctx) ||
        cuda_check(d, d->cu.cuEventRecord(d->mark[1], st->s), "event") || device_wait(d) ||
        cuda_check(d, d->cu.cuEventElapsedTime(&ms, d->mark[0], d->mark[1]), "elapsed time"))
        return -EIO;
    *seconds = ms * 1e-3;
    return 0;
}
#endif
