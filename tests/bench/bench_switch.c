/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The switch's engine alone, in memory: bursts of 64-byte frames go in at every port and come out
 * at the other of its pair. No ring, no second core, so that instructions can be counted.
 *
 *   bench_switch CONF FRAMES     prints nanoseconds of CPU time a frame, the median of 20 rounds of
 *                              FRAMES each (a multiple of 256)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "io/port/port.h"
#include "machine/shared.h"
#include "roce/wire.h"
#include "switch/net/net.h"

#define BURST    32
#define BYTES    64
#define PORTS    8
#define ROUNDS   20
#define HOST0_IP 0x0a000001u /* of the switch's hosts, in the order of their ports */

struct bench {
    struct net *net;
    uint16_t sw;
    struct rte_mbuf *ready[PORTS][BURST]; /* to go in there */
    unsigned n_ready[PORTS];
    uint64_t out;
};

static void deliver(void *ctx, uint16_t node, uint16_t port, struct rte_mbuf **m, uint16_t n,
                    int64_t due_ps)
{
    struct bench *b = ctx;

    (void)node;
    (void)due_ps;
    b->out += n;
    for (uint16_t i = 0; i < n; i++)
        b->ready[port ^ 1][b->n_ready[port ^ 1]++] = m[i];
}

/* A RoCE v2 frame of the shortest kind, by hand: what a switch looks at. */
static void fill(uint8_t *p, uint32_t src, uint32_t dst)
{
    static const uint8_t head[] = {0x08, 0, 0x45, 0, 0, BYTES - 14, 0, 0, 0, 0, 64, 17};

    memset(p, 0, BYTES);
    roce_mac_of_ip(dst, p);
    roce_mac_of_ip(src, p + 6);
    memcpy(p + 12, head, sizeof(head));
    for (int i = 0; i < 4; i++) {
        p[26 + i] = (uint8_t)(src >> (24 - 8 * i));
        p[30 + i] = (uint8_t)(dst >> (24 - 8 * i));
    }
    p[34] = 0xc0;
    p[36] = ROCE_UDP_PORT >> 8;
    p[37] = ROCE_UDP_PORT & 0xff;
    p[39] = BYTES - 34;
}

static int64_t round_of(struct bench *b, unsigned frames, int64_t now)
{
    for (unsigned done = 0; done < frames;)
        for (uint16_t p = 0; p < PORTS; p++, done += BURST, now += PS_PER_US) {
            struct rte_mbuf *m[BURST];

            for (unsigned i = 0; i < BURST; i++) {
                m[i] = b->ready[p][i];
                memset(frame_meta(m[i]), 0, sizeof(struct frame_meta));
            }
            b->n_ready[p] = 0;
            net_input(b->net, b->sw, p, m, BURST, now);
            net_advance(b->net, now + PS_PER_US / 2);
        }
    return now;
}

static int64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int by_length(const void *a, const void *b)
{
    int64_t d = *(const int64_t *)a - *(const int64_t *)b;

    return (d > 0) - (d < 0);
}

static void make_frames(struct bench *b, struct rte_mempool *pool)
{
    for (uint16_t p = 0; p < PORTS; p++)
        for (unsigned i = 0; i < BURST; i++) {
            struct rte_mbuf *m = frame_alloc(pool);

            m->data_len = m->pkt_len = BYTES;
            fill(rte_pktmbuf_mtod(m, uint8_t *), HOST0_IP + p, HOST0_IP + (p ^ 1u));
            b->ready[p][i] = m;
        }
}

int main(int argc, char **argv)
{
    struct bench b = {0};
    struct fab_errors errs = {0};
    struct fabric *f;
    struct rte_mempool *pool;
    unsigned frames;
    int64_t now = 0, took[ROUNDS];
    bool *mine;

    if (argc != 3 || io_eal_init("bench_switch", NULL, 128, NULL, 0)) {
        fprintf(stderr, "usage: bench_switch CONF FRAMES\n");
        return 2;
    }
    frames = (unsigned)atoi(argv[2]);
    f = fabric_load(argv[1], &errs);
    pool = frame_pool_create("frames", 1023, 0);
    if (!f || !pool)
        return 1;
    mine = calloc(f->n_nodes, sizeof(*mine));
    while (f->nodes[b.sw].kind != FAB_SWITCH)
        b.sw++;
    make_frames(&b, pool);
    mine[b.sw] = true;
    if (f->nodes[b.sw].n_ports != PORTS)
        return 1;
    if (net_create(
            &b.net,
            &(struct net_cfg){.fab = f, .mine = mine, .pool = pool, .deliver = deliver, .ctx = &b}))
        return 1;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t t0 = cpu_ns();

        b.out = 0;
        now = round_of(&b, frames, now);
        took[i] = cpu_ns() - t0;
        if (b.out != frames) {
            fprintf(stderr, "bench_switch: %llu of %u frames came out\n", (unsigned long long)b.out,
                    frames);
            return 1;
        }
    }
    qsort(took, ROUNDS, sizeof(*took), by_length);
    printf("%.2f\n", (double)took[ROUNDS / 2] / frames);
    net_destroy(b.net);
    return 0;
}
