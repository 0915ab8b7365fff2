/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels in GPU memory compared with a copy within it, in the same run, and all-reduces by the
 * NVSwitches, if there are any: bench_gpu [MIB]. Prints lines of NAME VALUE UNIT REFERENCE REFVALUE
 * for bench_gpu.sh. Rates are of bytes read plus bytes written. Each is the median of batches of
 * consecutive operations, by the GPU's clock, over buffers that together are larger than its cache.
 */
#include "aggregation/dtype.h"
#include "host/kernels/device.h"
#include "host/kernels/multicast.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETS    3u /* of buffers, used in turn */
#define INPUTS  8u
#define BATCH   12u
#define BATCHES 9u
#define LONGER  8u /* what is verified: the call waits, and that must not count for much */

struct bench {
    struct device *d;
    size_t bytes;
    uint8_t *in[SETS][INPUTS], *out[SETS], *copy[SETS], *long_one;
};

typedef int (*give_fn)(struct bench *b, unsigned set, const void *what);
struct sum {
    enum dtype t;
    unsigned n;
    bool copy;
};

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct batch {
    struct bench *b;
    give_fn give;
    const void *what;
};

static int give_batch(void *ctx)
{
    struct batch *t = ctx;
    int rc = 0;

    for (unsigned i = 0; !rc && i < BATCH; i++)
        rc = t->give(t->b, i % SETS, t->what);
    return rc;
}

/* Seconds of one operation. */
static double time_of(struct bench *b, give_fn give, const void *what)
{
    struct batch batch = {b, give, what};
    double t[BATCHES + 1];

    for (unsigned k = 0; k <= BATCHES; k++) { /* the first warms up */
        if (device_time(b->d, give_batch, &batch, &t[k])) {
            fprintf(stderr, "bench_gpu: %s\n", device_error(b->d));
            exit(1);
        }
        t[k] /= BATCH;
    }
    qsort(t + 1, BATCHES, sizeof(*t), by_size);
    return t[1 + BATCHES / 2];
}

static int give_copy(struct bench *b, unsigned set, const void *what)
{
    (void)what;
    return device_copy(b->d, DEVICE_REDUCE, b->out[set], b->in[set][0], b->bytes);
}

static int give_sum(struct bench *b, unsigned set, const void *what)
{
    const struct sum *s = what;
    const void *in[INPUTS];

    for (unsigned k = 0; k < s->n; k++)
        in[k] = b->in[set][k];
    return device_reduce(b->d, DEVICE_REDUCE, OP_SUM, s->t, 0, b->out[set],
                         s->copy ? b->copy[set] : NULL, in, s->n, b->bytes / dtype_size(s->t));
}

static int give_sum_then_copy(struct bench *b, unsigned set, const void *what)
{
    int rc = give_sum(b, set, what);

    return rc ? rc : device_copy(b->d, DEVICE_REDUCE, b->copy[set], b->out[set], b->bytes);
}

static int give_verify(struct bench *b, unsigned set, const void *what)
{
    static const uint8_t zero[8];
    struct device_wrong w;

    (void)set;
    (void)what;
    return device_verify(b->d, b->long_one, zero, 2, 0, LONGER * b->bytes / 4, 4, &w);
}

static void print(const char *name, double rate, const char *ref, double ref_rate)
{
    printf("%s\t%.1f\tGB/s\t%s\t%.1f\n", name, rate * 1e-9, ref, ref_rate * 1e-9);
}

static void allocate(struct bench *b)
{
    static const uint8_t zero[8];

    for (unsigned s = 0; s < SETS; s++) {
        b->out[s] = device_alloc(b->d, b->bytes);
        b->copy[s] = device_alloc(b->d, b->bytes);
        for (unsigned k = 0; k < INPUTS; k++) {
            b->in[s][k] = device_alloc(b->d, b->bytes);
            if (b->in[s][k])
                device_fill(b->d, b->in[s][k], zero, 2, 0, b->bytes / 4, 4, false);
        }
    }
    b->long_one = device_alloc(b->d, LONGER * b->bytes);
    if (b->long_one)
        device_fill(b->d, b->long_one, zero, 2, 0, LONGER * b->bytes / 4, 4, false);
    if (!device_error(b->d))
        return;
    fprintf(stderr, "bench_gpu: %s\n", device_error(b->d));
    exit(1);
}

/* Bus bandwidth of all GPUs that can, 8 at most. */
static void nvls(struct bench *b, double copy)
{
    struct multicast *m = NULL;
    char err[DEVICE_TEXT], name[64];
    double s[2], n = 8;

    while (n > 2 && multicast_can((unsigned)n, err))
        n--;
    if (multicast_open(&m, (unsigned)n, b->bytes, err)) {
        printf("skipped\tGPU: all-reduce by NVSwitches\t%s\n", err);
        return;
    }
    for (unsigned i = 0; i < 2; i++)
        if (multicast_time(m, OP_SUM, DT_FP32, 0, 0, b->bytes / 4, BATCH, &s[i])) {
            fprintf(stderr, "bench_gpu: %s\n", multicast_error(m));
            exit(1);
        }
    snprintf(name, sizeof(name), "GPU: all-reduce of %g by NVSwitches, bus", n);
    print(name, 2 * (n - 1) / n * (double)b->bytes * BATCH / s[1], "copy within the GPU", copy);
    multicast_close(m);
}

int main(int argc, char **argv)
{
    static const struct sum sums[] = {{DT_FP32, 2, false},
                                      {DT_BF16, 2, false},
                                      {DT_FP16, 2, false},
                                      {DT_INT32, 2, false},
                                      {DT_FP32, 8, false}};
    const struct sum plain = {DT_FP32, 2, false}, both = {DT_FP32, 2, true};
    struct bench b = {.bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 256) << 20};
    char err[DEVICE_TEXT], name[64];
    double bytes = (double)b.bytes, copy, apart, fused;

    if (device_open(&b.d, 0, err)) {
        printf("%s\n", err);
        return 77;
    }
    allocate(&b);
    copy = 2 * bytes / time_of(&b, give_copy, NULL);
    for (unsigned i = 0; i < sizeof(sums) / sizeof(*sums); i++) {
        snprintf(name, sizeof(name), "GPU: sum of %u %s", sums[i].n, dtype_name(sums[i].t));
        print(name, (sums[i].n + 1) * bytes / time_of(&b, give_sum, &sums[i]),
              "copy within the GPU", copy);
    }
    apart = time_of(&b, give_sum_then_copy, &plain);
    fused = time_of(&b, give_sum, &both);
    print("GPU: sum of 2 float and copy in one pass", bytes / fused, "the two apart",
          bytes / apart);
    print("GPU: verify", LONGER * bytes / time_of(&b, give_verify, NULL),
          "what a copy reads and writes", copy);
    nvls(&b, copy);
    device_close(b.d);
    return 0;
}
