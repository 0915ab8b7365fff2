/*
 * Frame generator for the forwarding benchmark: a memif client at each end of a forwarder. Sends
 * one flow (or several) into A as fast as the forwarder takes it and counts what comes out of B.
 * The forwarder is trib-switch or testpmd; forward.sh starts both and takes the ratio.
 *
 *   bench_forward SOCKET_A SOCKET_B BYTES SECONDS FLOWS     prints frames per second
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "roce/wire.h"
#include "switch/rim/port.h"
#include "switch/rim/shared.h"

#define BURST  32
#define SRC_IP 0x0a000001u /* any: forwarders look at the destination only */

struct gen {
    struct rim_port *a, *b;
    struct rte_mempool *pool;
    unsigned bytes, flows, next_flow;
    uint32_t dst_ip;
    struct rte_mbuf *wait[BURST]; /* made, not taken yet */
    unsigned waiting;
    uint64_t received;
};

/* A UDP frame to the RoCE port that nobody parses further than a switch does. */
static void fill(struct gen *g, struct rte_mbuf *m)
{
    uint8_t *p = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)g->bytes);
    uint16_t sport = (uint16_t)(0xc000 + g->next_flow++ % g->flows);

    memset(p, 0, 64);
    roce_mac_of_ip(g->dst_ip, p);
    roce_mac_of_ip(SRC_IP, p + 6);
    p[12] = 0x08; /* IPv4, 20 bytes of header, UDP */
    p[14] = 0x45;
    p[16] = (uint8_t)((g->bytes - 14) >> 8);
    p[17] = (uint8_t)(g->bytes - 14);
    p[22] = 64;
    p[23] = 17;
    for (int i = 0; i < 4; i++) {
        p[26 + i] = (uint8_t)(SRC_IP >> (24 - 8 * i));
        p[30 + i] = (uint8_t)(g->dst_ip >> (24 - 8 * i));
    }
    p[34] = (uint8_t)(sport >> 8);
    p[35] = (uint8_t)sport;
    p[36] = ROCE_UDP_PORT >> 8;
    p[37] = ROCE_UDP_PORT & 0xff;
    p[38] = (uint8_t)((g->bytes - 34) >> 8);
    p[39] = (uint8_t)(g->bytes - 34);
}

static unsigned turn(struct gen *g)
{
    struct rte_mbuf *m[BURST];
    uint16_t sent, got;

    while (g->waiting < BURST) {
        struct rte_mbuf *f = frame_alloc(g->pool);

        if (!f)
            break;
        fill(g, f);
        g->wait[g->waiting++] = f;
    }
    sent = rim_port_tx(g->a, 0, g->wait, (uint16_t)g->waiting);
    memmove(g->wait, g->wait + sent, (g->waiting - sent) * sizeof(g->wait[0]));
    g->waiting -= sent;
    got = rim_port_rx(g->b, 0, m, BURST);
    for (unsigned i = 0; i < got; i++)
        rte_pktmbuf_free(m[i]);
    g->received += got;
    return sent + got;
}

static double run(struct gen *g, double seconds)
{
    int64_t t0 = clock_mono_ns(), end = t0 + (int64_t)(seconds * 1e9), now = t0;

    g->received = 0;
    while (now < end) {
        for (unsigned i = 0; i < 64; i++)
            turn(g);
        now = clock_mono_ns();
    }
    return (double)g->received * 1e9 / (double)(now - t0);
}

static struct rim_port *connect_to(const char *sock, const char *name, struct rte_mempool *pool)
{
    struct memif_cfg mc = {.socket = sock, .queues = 1, .log2_ring = 9, .name = name, .pool = pool};
    struct rim_port *p;

    if (rim_port_memif(&p, &mc)) {
        fprintf(stderr, "bench_forward: cannot make a memif client of %s\n", sock);
        exit(1);
    }
    return p;
}

int main(int argc, char **argv)
{
    struct gen g = {0};
    double seconds;

    if (argc != 6 || rim_eal_init("bench_forward", NULL, 256, NULL, 0)) {
        fprintf(stderr, "usage: bench_forward SOCKET_A SOCKET_B BYTES SECONDS FLOWS\n"
                        "       TRIB_DST: IPv4 address that the frames go to, as a number\n");
        return 2;
    }
    g.bytes = (unsigned)atoi(argv[3]);
    seconds = atof(argv[4]);
    g.flows = (unsigned)atoi(argv[5]);
    g.dst_ip = (uint32_t)strtoul(getenv("TRIB_DST") ? getenv("TRIB_DST") : "0x0a000002", NULL, 0);
    if (g.bytes < 60 || g.bytes > FRAME_ROOM || !g.flows) {
        fprintf(stderr, "bench_forward: found %u bytes and %u flows, expected 60..%d and 1..\n",
                g.bytes, g.flows, FRAME_ROOM);
        return 2;
    }
    g.pool = frame_pool_create("gen", 8192, 256);
    g.a = connect_to(argv[1], "a", g.pool);
    g.b = connect_to(argv[2], "b", g.pool);
    for (int i = 0; !(rim_port_up(g.a) & rim_port_up(g.b)); i++) {
        if (i > 5000) {
            fprintf(stderr, "bench_forward: the forwarder's ports do not come up\n");
            return 1;
        }
        usleep(1000);
    }
    run(&g, 0.3);
    printf("%.0f\n", run(&g, seconds));
    return 0;
}
