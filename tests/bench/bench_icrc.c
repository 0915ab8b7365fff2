/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC-32 of payloads for the ICRC, compared with the fastest of DPDK's rte_net_crc implementations
 * on the same bytes. One line a row, of fields between tabs: name, GB/s, GB/s of the reference.
 */
#define ALLOW_EXPERIMENTAL_API /* rte_vect_set_max_simd_bitwidth() */
#include "roce/frame.h"
#include "roce/icrc.h"
#include "roce/wire.h"
#include "tests/support/eal.h"

#include <rte_net_crc.h>
#include <rte_vect.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TURN_BYTES (2u << 20)
#define ROUNDS     401u
#define LEN(a)     (sizeof(a) / sizeof((a)[0]))

static const unsigned sizes[] = {64, 1024, 4096};
static const enum rte_net_crc_alg algs[] = {RTE_NET_CRC_SSE42, RTE_NET_CRC_AVX512};

static uint32_t ours(const void *p, uint32_t n)
{
    return ~roce_crc(~0u, p, n);
}

static uint32_t theirs(const void *p, uint32_t n)
{
    return rte_net_crc_calc(p, n, RTE_NET_CRC32_ETH);
}

/* Seconds of this thread a call. */
static double once(uint32_t (*crc)(const void *p, uint32_t n), const void *p, uint32_t n)
{
    unsigned times = TURN_BYTES / (n + 256);
    struct timespec a, b;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    for (unsigned i = 0; i < times; i++) {
        uint32_t v = crc(p, n);

        __asm__ volatile("" : : "r"(v) : "memory");
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    return ((double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9) / times;
}

static int by_length(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The time of the first decile: other programs lengthen most turns, and the shortest one is an
 * outlier. */
static double typical(double *s, unsigned n)
{
    qsort(s, n, sizeof(s[0]), by_length);
    return s[n / 10];
}

int main(void)
{
    static double a[ROUNDS], b[LEN(algs)][ROUNDS];
    const char *quick = getenv("BENCH_QUICK");
    unsigned rounds = quick && *quick ? 51 : ROUNDS;
    struct rte_mbuf *m;
    uint8_t *p;

    test_eal_init();
    rte_vect_set_max_simd_bitwidth(RTE_VECT_SIMD_512);
    m = frame_alloc(test_pool(4));
    p = rte_pktmbuf_mtod_offset(m, uint8_t *, ROCE_BASE_BYTES);
    for (unsigned i = 0; i < 4096; i++)
        p[i] = (uint8_t)(i * 37);
    for (unsigned s = 0; s < LEN(sizes); s++) {
        double t, ref = 1;

        if (ours(p, sizes[s]) != theirs(p, sizes[s])) {
            fprintf(stderr, "CRCs of %u bytes differ\n", sizes[s]);
            return 1;
        }
        /* Many short turns, so that all meet the same machine however fast it happens to be. */
        for (unsigned r = 0; r < rounds; r++) {
            a[r] = once(ours, p, sizes[s]);
            for (unsigned i = 0; i < LEN(algs); i++) {
                rte_net_crc_set_alg(algs[i]); /* the next narrower where there is none */
                b[i][r] = once(theirs, p, sizes[s]);
            }
        }
        t = typical(a, rounds);
        for (unsigned i = 0; i < LEN(algs); i++)
            ref = RTE_MIN(ref, typical(b[i], rounds));
        printf("icrc of %u B\t%.3f\t%.3f\n", sizes[s], sizes[s] / t / 1e9, sizes[s] / ref / 1e9);
        fflush(stdout);
    }
    return 0;
}
