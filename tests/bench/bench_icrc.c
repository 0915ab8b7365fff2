/*
 * CRC-32 of payloads as the ICRC takes it, beside DPDK's rte_net_crc of the same bytes with each of
 * its vector units, of which the fastest counts. One line a row, of fields between tabs: name,
 * GB/s, GB/s of the reference.
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

#define ROUND_BYTES (16u << 20)
#define LEN(a)      (sizeof(a) / sizeof((a)[0]))

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
    unsigned times = ROUND_BYTES / (n + 256);
    struct timespec a, b;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    for (unsigned i = 0; i < times; i++) {
        uint32_t v = crc(p, n);

        __asm__ volatile("" : : "r"(v) : "memory");
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    return ((double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9) / times;
}

int main(void)
{
    const char *quick = getenv("BENCH_QUICK");
    unsigned rounds = quick && *quick ? 20 : 200;
    struct rte_mbuf *m;
    uint8_t *p;

    test_eal_init();
    rte_vect_set_max_simd_bitwidth(RTE_VECT_SIMD_512);
    m = frame_alloc(test_pool(4));
    p = rte_pktmbuf_mtod_offset(m, uint8_t *, ROCE_BASE_BYTES);
    for (unsigned i = 0; i < 4096; i++)
        p[i] = (uint8_t)(i * 37);
    for (unsigned s = 0; s < LEN(sizes); s++) {
        double a = 1, b = 1;

        if (ours(p, sizes[s]) != theirs(p, sizes[s])) {
            fprintf(stderr, "CRCs of %u bytes differ\n", sizes[s]);
            return 1;
        }
        /* The best of some rounds, taken by turns so that both meet the same machine. */
        for (unsigned r = 0; r < rounds; r++) {
            a = RTE_MIN(a, once(ours, p, sizes[s]));
            for (unsigned i = 0; i < LEN(algs); i++) {
                rte_net_crc_set_alg(algs[i]); /* the next narrower where there is none */
                b = RTE_MIN(b, once(theirs, p, sizes[s]));
            }
        }
        printf("icrc of %u B\t%.3f\t%.3f\n", sizes[s], sizes[s] / a / 1e9, sizes[s] / b / 1e9);
        fflush(stdout);
    }
    return 0;
}
