/*
 * What the reduction kernels do per second: N payloads of 4 KiB where a frame has them (at an odd
 * multiple of two bytes, one mbuf each) into one, in cache. Beside it a plain one-pass sum of N
 * aligned arrays of as many bytes, of fp32 (or int32), the loop that anybody would write, compiled
 * here for the same instruction sets. Bytes are those of the inputs. One line a row, of fields
 * between tabs: name, GB/s, type of the reference, GB/s of the reference.
 */
#include "switch/reduce/arith.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES    4096u
#define PITCH    4864u /* of an mbuf: private area, headroom, 4,608 bytes of room */
#define OFFSET   182u  /* headroom 128 and 54 bytes of headers */
#define MAX_N    16u
#define ROUND_NS 20000000
#define ROUNDS   5

/* For every vector unit that the kernels have rows for. */
#ifdef __clang__
#define CLONES
#else
#define CLONES                                                                                     \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), optimize("O3")))
#endif

/* One pass with N known, so that the compiler makes of it what it can. */
#define IN2(i) a[0][i] + a[1][i]
#define IN4(i) IN2(i) + a[2][i] + a[3][i]
#define IN8(i) IN4(i) + a[4][i] + a[5][i] + a[6][i] + a[7][i]
#define IN16(i)                                                                                    \
    IN8(i) + a[8][i] + a[9][i] + a[10][i] + a[11][i] + a[12][i] + a[13][i] + a[14][i] + a[15][i]
#define PLAIN(type, n)                                                                             \
    CLONES static void plain_##type##n(void *out, const void *const *in)                           \
    {                                                                                              \
        type *restrict o = __builtin_assume_aligned(out, 64);                                      \
        const type *a[n];                                                                          \
                                                                                                   \
        for (unsigned k = 0; k < n; k++)                                                           \
            a[k] = __builtin_assume_aligned(in[k], 64);                                            \
        for (size_t i = 0; i < BYTES / sizeof(type); i++)                                          \
            o[i] = IN##n(i);                                                                       \
    }
PLAIN(float, 2)
PLAIN(float, 4)
PLAIN(float, 8)
PLAIN(float, 16)
PLAIN(uint32_t, 2)
PLAIN(uint32_t, 4)
PLAIN(uint32_t, 8)
PLAIN(uint32_t, 16)

typedef void (*plain_fn)(void *out, const void *const *in);
static const struct {
    unsigned n;
    plain_fn f32, u32;
} plain[] = {{2, plain_float2, plain_uint32_t2},
             {4, plain_float4, plain_uint32_t4},
             {8, plain_float8, plain_uint32_t8},
             {16, plain_float16, plain_uint32_t16}};
static const enum dtype types[] = {DT_FP32, DT_FP16, DT_BF16, DT_INT32};

struct job {
    arith_fn kernel; /* or plain */
    plain_fn plain;
    unsigned n;
    size_t count;
    const void *in[MAX_N];
    void *out;
};

/* Of this thread: the machine may have other work. */
static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void run(const struct job *j, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        if (j->plain)
            j->plain(j->out, j->in);
        else
            j->kernel(j->out, j->in, j->n, j->count);
        __asm__ volatile("" ::: "memory");
    }
}

/* Calls per second over a stretch of about ROUND_NS. */
static double once(const struct job *j, unsigned times)
{
    double start = seconds();

    run(j, times);
    return times / (seconds() - start);
}

static unsigned calibrate(const struct job *j)
{
    unsigned times = 64;

    while (times / once(j, times) < ROUND_NS * 1e-9 / 4)
        times *= 2;
    return times * 4;
}

/* The best of some rounds, taken by turns so that both meet the same machine. */
static void compare(const struct job *a, const struct job *b, double *ga, double *gb)
{
    unsigned ta = calibrate(a), tb = calibrate(b);

    *ga = *gb = 0;
    for (unsigned r = 0; r < ROUNDS; r++) {
        double va = once(a, ta) * a->n * BYTES / 1e9, vb = once(b, tb) * b->n * BYTES / 1e9;

        *ga = va > *ga ? va : *ga;
        *gb = vb > *gb ? vb : *gb;
    }
}

int main(void)
{
    uint8_t *frames = aligned_alloc(64, (size_t)PITCH * (MAX_N + 1));
    uint8_t *arrays = aligned_alloc(64, (size_t)BYTES * (MAX_N + 1));

    if (!frames || !arrays)
        return 1;
    memset(frames, 0x3c, (size_t)PITCH * (MAX_N + 1)); /* ordinary numbers in every type */
    memset(arrays, 0x3c, (size_t)BYTES * (MAX_N + 1));
    for (unsigned t = 0; t < sizeof(types) / sizeof(types[0]); t++)
        for (unsigned c = 0; c < sizeof(plain) / sizeof(plain[0]); c++) {
            struct job k = {.kernel = arith_kernel(OP_SUM, types[t]), .n = plain[c].n};
            struct job p = {.plain = types[t] == DT_INT32 ? plain[c].u32 : plain[c].f32,
                            .n = plain[c].n};
            double value, reference;

            k.count = BYTES / dtype_size(types[t]);
            for (unsigned i = 0; i < k.n; i++) {
                k.in[i] = frames + (size_t)i * PITCH + OFFSET;
                p.in[i] = arrays + (size_t)i * BYTES;
            }
            k.out = frames + (size_t)MAX_N * PITCH + OFFSET;
            p.out = arrays + (size_t)MAX_N * BYTES;
            compare(&k, &p, &value, &reference);
            printf("reduce %s sum of %u x 4 KiB\t%.3f\t%s\t%.3f\n", dtype_name(types[t]), k.n,
                   value, types[t] == DT_INT32 ? "int32" : "float", reference);
            fflush(stdout);
        }
    free(frames);
    free(arrays);
    return 0;
}
