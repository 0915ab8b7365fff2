/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Throughput of the reduction kernels: N payloads of 4 KiB in frames as a port or an rnic makes
 * them into one, in cache. Compared with the fastest of several sums of N plain arrays of the same
 * type and size (reduce_refs.h). Bytes are those of the inputs. One line a row, of fields between
 * tabs: name, GB/s, which reference, GB/s of the reference.
 */
#include "aggregation/arith.h"
#include "roce/frame.h"
#include "roce/wire.h"
#include "tests/bench/reduce_refs.h"
#include "tests/support/eal.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MAX_N   16u
#define PITCH   (BYTES + 9 * 64) /* arrays a page apart would compete for the same cache lines */
#define TURN_NS 50000
#define ROUNDS  401u
#define LEN(a)  (sizeof(a) / sizeof((a)[0]))

static const enum dtype types[] = {DT_FP32, DT_FP16, DT_BF16, DT_INT32};

struct job {
    const char *name;
    arith_fn kernel; /* or sum */
    ref_fn sum;
    unsigned n;
    size_t count;
    const void *const *in;
    void *out;
    unsigned times;
    double s[ROUNDS]; /* of a call, in each round */
    double typical;
};

/* Of this thread: the machine may have other work. */
static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double once(const struct job *j, unsigned times)
{
    double start = seconds();

    for (unsigned i = 0; i < times; i++) {
        if (j->sum)
            j->sum(j->out, j->in);
        else
            j->kernel(j->out, j->in, j->n, j->count);
        __asm__ volatile("" ::: "memory");
    }
    return (seconds() - start) / times;
}

static int by_length(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Many short turns, so that all meet the same machine, however fast it happens to be. The time of
 * the first decile: other programs lengthen most turns, and the shortest one is an outlier. */
static void compare(struct job *j, unsigned n, unsigned rounds)
{
    for (unsigned i = 0; i < n; i++) {
        j[i].times = 1 + (unsigned)(TURN_NS * 1e-9 / once(&j[i], 1000));
        once(&j[i], j[i].times);
    }
    for (unsigned r = 0; r < rounds; r++)
        for (unsigned i = 0; i < n; i++)
            j[i].s[r] = once(&j[i], j[i].times);
    for (unsigned i = 0; i < n; i++) {
        qsort(j[i].s, rounds, sizeof(j[i].s[0]), by_length);
        j[i].typical = j[i].s[rounds / 10];
    }
}

/* One row: the kernel of a type for 2 << c inputs. False: a reference has another result. */
static bool row(enum dtype t, unsigned c, unsigned rounds, void *const *frames, void *const *arrays)
{
    static struct job j[LEN(refs) + 1];
    struct job *best;
    double bytes = (double)(2u << c) * BYTES / 1e9;
    unsigned n = 1;

    j[0] = (struct job){.kernel = arith_kernel(OP_SUM, t),
                        .n = 2u << c,
                        .count = BYTES / dtype_size(t),
                        .in = (const void *const *)frames,
                        .out = frames[MAX_N]};
    j[0].kernel(j[0].out, j[0].in, j[0].n, j[0].count);
    for (unsigned i = 0; i < LEN(refs); i++) {
        if (refs[i].type != t || !refs[i].sum[c] || !ref_usable(&refs[i]))
            continue;
        j[n++] = (struct job){.name = refs[i].name,
                              .sum = refs[i].sum[c],
                              .in = (const void *const *)arrays,
                              .out = arrays[MAX_N]};
        refs[i].sum[c](arrays[MAX_N], j[0].in); /* the frames' payloads: must be the kernel's sum */
        if (memcmp(arrays[MAX_N], frames[MAX_N], BYTES)) {
            fprintf(stderr, "%s of %u differs\n", refs[i].name, 2u << c);
            return false;
        }
    }
    compare(j, n, rounds);
    best = &j[1];
    for (unsigned i = 2; i < n; i++)
        if (j[i].typical < best->typical)
            best = &j[i];
    printf("reduce %s sum of %u x 4 KiB\t%.3f\t%s\t%.3f\n", dtype_name(t), 2u << c,
           bytes / j[0].typical, best->name, bytes / best->typical);
    fflush(stdout);
    return true;
}

int main(void)
{
    uint8_t *memory = aligned_alloc(ALIGNED, (size_t)PITCH * (MAX_N + 1));
    void *frames[MAX_N + 1], *arrays[MAX_N + 1];
    const char *quick = getenv("BENCH_QUICK");
    struct rte_mempool *pool;
    bool ok = true;

    test_eal_init();
    pool = test_pool(2 * MAX_N);
    if (!memory || !pool)
        return 1;
    for (unsigned k = 0; k <= MAX_N; k++) {
        struct rte_mbuf *m = frame_alloc(pool);

        arrays[k] = memory + (size_t)k * PITCH;
        frames[k] = rte_pktmbuf_mtod_offset(m, void *, ROCE_BASE_BYTES);
        for (unsigned i = 0; i < BYTES; i++) /* ordinary numbers in every type */
            ((uint8_t *)frames[k])[i] = (uint8_t)(i % 2 ? 0x3c + k % 3 : i * 37 + k * 11);
        memcpy(arrays[k], frames[k], BYTES);
    }
    for (unsigned t = 0; t < LEN(types) && ok; t++)
        for (unsigned c = 0; c < 4 && ok; c++)
            ok = row(types[t], c, quick && *quick ? 51 : ROUNDS, frames, arrays);
    free(memory);
    return !ok;
}
