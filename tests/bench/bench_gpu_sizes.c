/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an operation on a GPU takes, by kind, type and size: bench_gpu_sizes [MIB]. The first table
 * has the latency of an operation of one element: of the call, from the call until its end is seen,
 * and of each of many in a row. The second has times and rates of bytes read plus bytes written, by
 * the GPU's clock; operations go through buffers of MIB MiB one after the other, so that what they
 * read is not in the cache. All figures are medians.
 */
#include "aggregation/dtype.h"
#include "base/random.h"
#include "host/kernels/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BATCHES 9u
#define CALLS   1000u
#define PERIOD  4099u

enum kind { SUM, WITHIN, FROM_HOST, TO_HOST, KINDS };
static const char *const kinds[KINDS] = {"sum of 2", "copy within the GPU", "copy from host memory",
                                         "copy to host memory"};

struct bench {
    struct device *d;
    size_t room, next; /* bytes of each buffer, and where the next operation begins */
    uint8_t *in[2], *out, *host;
};

struct op {
    struct bench *b;
    enum kind kind;
    enum dtype t;
    size_t bytes;
    unsigned times;
};

static void check(struct bench *b, int rc)
{
    if (!rc)
        return;
    fprintf(stderr, "bench_gpu_sizes: %s\n", device_error(b->d) ? device_error(b->d) : "full");
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *x, unsigned n)
{
    qsort(x, n, sizeof(*x), by_size);
    return x[n / 2];
}

static int give(struct op *o)
{
    struct bench *b = o->b;
    size_t at = b->next + o->bytes <= b->room ? b->next : 0;
    const void *in[2] = {b->in[0] + at, b->in[1] + at};

    b->next = at + (o->bytes + 255) / 256 * 256;
    if (o->kind == SUM)
        return device_reduce(b->d, DEVICE_REDUCE, OP_SUM, o->t, 0, b->out + at, NULL, in, 2,
                             o->bytes / dtype_size(o->t));
    return device_copy(b->d, DEVICE_REDUCE, o->kind == TO_HOST ? b->host + at : b->out + at,
                       o->kind == FROM_HOST ? b->host + at : in[0], o->bytes);
}

static int give_all(void *ctx)
{
    struct op *o = ctx;
    int rc = 0;

    for (unsigned i = 0; !rc && i < o->times; i++)
        rc = give(o);
    return rc;
}

/* Seconds of one operation of many in a row. */
static double in_a_row(struct op *o)
{
    double t[BATCHES + 1];

    for (unsigned k = 0; k <= BATCHES; k++) { /* the first warms up */
        check(o->b, device_time(o->b->d, give_all, o, &t[k]));
        t[k] /= o->times;
    }
    return median(t + 1, BATCHES);
}

/* One operation at a time. */
static void latency(struct bench *b, enum kind kind)
{
    static double call[CALLS], end[CALLS];
    struct op o = {b, kind, DT_FP32, 4, DEVICE_DEPTH / 2};

    for (unsigned i = 0; i < CALLS; i++) {
        int64_t t0 = now_ns(), t1;
        uint64_t done = 0;

        check(b, give(&o));
        t1 = now_ns();
        while (done < device_given(b->d, DEVICE_REDUCE))
            check(b, device_done(b->d, DEVICE_REDUCE, &done));
        call[i] = (double)(t1 - t0) * 1e-3;
        end[i] = (double)(now_ns() - t0) * 1e-3;
    }
    printf("%-22s %8.2f %8.2f %8.2f\n", kinds[kind], median(call, CALLS), median(end, CALLS),
           in_a_row(&o) * 1e6);
}

static void rate(struct bench *b, enum kind kind, enum dtype t, size_t bytes)
{
    struct op o = {b, kind, t, bytes, bytes > 16 << 20 ? 8 : 64};
    double s = in_a_row(&o);

    printf("%-22s %-8s %10zu %10.2f %9.1f\n", kinds[kind], kind == SUM ? dtype_name(t) : "-", bytes,
           s * 1e6,
           (kind == SUM      ? 3
            : kind == WITHIN ? 2
                             : 1) *
               (double)bytes / s * 1e-9);
}

static void allocate(struct bench *b)
{
    uint8_t period[PERIOD];
    uint64_t seed = 1;

    for (unsigned i = 0; i < PERIOD; i++)
        period[i] = (uint8_t)random_next(&seed);
    b->host = device_host(b->d, b->room);
    b->out = device_alloc(b->d, b->room);
    for (unsigned k = 0; k < 2; k++) {
        b->in[k] = device_alloc(b->d, b->room);
        if (b->in[k])
            device_fill(b->d, b->in[k], period, PERIOD, k, b->room, 1, false);
    }
    check(b, device_error(b->d) != NULL);
}

int main(int argc, char **argv)
{
    struct bench b = {.room = (size_t)(argc > 1 ? atoi(argv[1]) : 1024) << 20};
    char err[DEVICE_TEXT];

    if (device_open(&b.d, 0, err)) {
        printf("%s\n", err);
        return 77;
    }
    allocate(&b);
    printf("# %s\n%-22s %8s %8s %8s\n", device_name(b.d), "# 4 bytes (us)", "call", "end",
           "in a row");
    for (enum kind k = 0; k < KINDS; k++)
        latency(&b, k);
    printf("\n%-22s %-8s %10s %10s %9s\n", "# operation", "type", "bytes", "us", "GB/s");
    for (size_t bytes = 4096; bytes <= b.room / 4; bytes *= 16) {
        for (enum dtype t = 0; t < DT_COUNT; t++)
            if (t != DT_FP32_LOC && t != DT_INT32_LOC)
                rate(&b, SUM, t, bytes);
        for (enum kind k = WITHIN; k < KINDS; k++)
            rate(&b, k, DT_FP32, bytes);
    }
    device_close(b.d);
    return 0;
}
