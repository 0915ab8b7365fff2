/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frame generator for the forwarding benchmark: a memif client at each port of a forwarder. Sends
 * into every port as fast as the forwarder takes it, to the host at the other port of its pair (0
 * and 1, 2 and 3, ...), and counts what comes out of all. bench_forward.sh starts forwarders and
 * takes ratios.
 *
 *   bench_forward QUEUES SOCKET...
 *
 * Says "ready" when it is connected, then answers each line "BYTES FLOWS SECONDS" on its stdin with
 * frames per second. It stays connected all the time: net_memif may crash when a busy peer leaves.
 * It sends by the first queue; which of them frames come back by is the forwarder's affair.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/port/port.h"
#include "machine/shared.h"
#include "machine/token.h"
#include "roce/wire.h"

#define BURST     32
#define MAX_PORTS 16
#define TX_FRAMES 255
#define HOST0_IP  0x0a000001u /* of the switch's hosts, in the order of their ports */

struct gen_port {
    struct io_port *rp;
    struct rte_mempool *pool;     /* of frames that were filled in once, all alike */
    struct rte_mbuf *wait[BURST]; /* made, not taken yet */
    uint16_t waiting;
};

struct gen {
    struct gen_port port[MAX_PORTS];
    unsigned n_ports, queues, bytes, flows, next_flow;
    struct rte_mempool *pool; /* to receive with */
    uint64_t received;
};

static void put_be(uint8_t *p, uint32_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        p[i] = (uint8_t)(v >> 8 * (bytes - 1 - i));
}

/* A UDP frame to the RoCE port, which only a switch's classification parses. */
static void fill(const struct gen *g, unsigned from, uint8_t *p)
{
    uint32_t src = HOST0_IP + from, dst = HOST0_IP + (from ^ 1);

    memset(p, 0, g->bytes);
    roce_mac_of_ip(dst, p);
    roce_mac_of_ip(src, p + 6);
    put_be(p + 12, 0x0800, 2); /* IPv4, 20 bytes of header, UDP */
    p[14] = 0x45;
    put_be(p + 16, g->bytes - 14, 2);
    p[22] = 64;
    p[23] = 17;
    put_be(p + 26, src, 4);
    put_be(p + 30, dst, 4);
    put_be(p + 36, ROCE_UDP_PORT, 2);
    put_be(p + 38, g->bytes - 34, 2);
}

/* Fills every frame of a port's pool; what is taken from it later is full already. */
static int fill_pool(const struct gen *g, unsigned port)
{
    struct rte_mbuf *m[TX_FRAMES];

    if (rte_pktmbuf_alloc_bulk(g->port[port].pool, m, TX_FRAMES))
        return -1;
    for (unsigned i = 0; i < TX_FRAMES; i++)
        fill(g, port, rte_pktmbuf_mtod(m[i], uint8_t *));
    rte_pktmbuf_free_bulk(m, TX_FRAMES);
    return 0;
}

static void send_burst(struct gen *g, struct gen_port *p)
{
    uint16_t n = (uint16_t)(BURST - p->waiting), sent;

    if (n && !rte_pktmbuf_alloc_bulk(p->pool, p->wait + p->waiting, n))
        for (; p->waiting < BURST; p->waiting++) {
            struct rte_mbuf *m = p->wait[p->waiting];

            m->data_len = (uint16_t)g->bytes;
            m->pkt_len = g->bytes;
            put_be(rte_pktmbuf_mtod_offset(m, uint8_t *, 34), 0xc000 + g->next_flow, 2);
            g->next_flow = g->next_flow + 1 < g->flows ? g->next_flow + 1 : 0;
        }
    sent = io_port_tx(p->rp, 0, p->wait, p->waiting);
    p->waiting = (uint16_t)(p->waiting - sent);
    memmove(p->wait, p->wait + sent, p->waiting * sizeof(p->wait[0]));
}

static void turn(struct gen *g)
{
    struct rte_mbuf *m[BURST];

    for (unsigned i = 0; i < g->n_ports; i++) {
        send_burst(g, &g->port[i]);
        for (uint16_t q = 0; q < g->queues; q++) {
            uint16_t got = io_port_rx(g->port[i].rp, q, m, BURST);

            if (got)
                rte_pktmbuf_free_bulk(m, got);
            g->received += got;
        }
    }
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

/* The token of the host whose slot that is; NULL: the socket of another forwarder. */
static const char *secret_of(const char *socket, char token[TOKEN_BYTES])
{
    char path[RUN_PATH];
    const char *secret = NULL;
    FILE *f;

    if (!strrchr(socket, '/'))
        return NULL;
    snprintf(path, sizeof(path), "%.*s/host.token", (int)(strrchr(socket, '/') - socket), socket);
    f = fopen(path, "re");
    if (f && fread(token, 1, TOKEN_BYTES, f) == TOKEN_BYTES)
        secret = token;
    if (f)
        fclose(f);
    return secret;
}

static int open_ports(struct gen *g, char **sockets)
{
    bool up = false;

    for (unsigned i = 0; i < g->n_ports; i++) {
        struct memif_cfg mc = {.socket = sockets[i],
                               .queues = (uint16_t)g->queues,
                               .log2_ring = 9,
                               .name = "gen",
                               .pool = g->pool};
        char name[16], token[TOKEN_BYTES];

        mc.secret = secret_of(sockets[i], token);

        snprintf(name, sizeof(name), "gen%u", i);
        g->port[i].pool = frame_pool_create(name, TX_FRAMES, 128);
        if (!g->port[i].pool || io_port_memif(&g->port[i].rp, &mc))
            return -1;
    }
    for (int t = 0; !up && t < 5000; t++) {
        up = true;
        for (unsigned i = 0; i < g->n_ports; i++)
            up &= io_port_up(g->port[i].rp);
        usleep(1000);
    }
    return up ? 0 : -1;
}

/* What one line asks for; < 0: not a case. */
static double measure(struct gen *g, const char *line)
{
    double seconds;

    if (sscanf(line, "%u %u %lf", &g->bytes, &g->flows, &seconds) != 3 || g->bytes < 60 ||
        g->bytes > FRAME_ROOM || !g->flows)
        return -1;
    g->next_flow = 0;
    for (unsigned i = 0; i < g->n_ports; i++) {
        struct gen_port *p = &g->port[i];

        rte_pktmbuf_free_bulk(p->wait, p->waiting);
        p->waiting = 0;
        if (fill_pool(g, i))
            return -1;
    }
    run(g, 0.1);
    return run(g, seconds);
}

int main(int argc, char **argv)
{
    struct gen g = {0};
    char line[128];

    if (argc < 4 || argc - 2 > MAX_PORTS || argc % 2 ||
        io_eal_init("bench_forward", NULL, 256, NULL, 0)) {
        fprintf(stderr, "usage: bench_forward QUEUES SOCKET SOCKET...\n");
        return 2;
    }
    g.queues = (unsigned)atoi(argv[1]);
    g.n_ports = (unsigned)argc - 2;
    g.pool = frame_pool_create("gen", 4095, 256);
    if (!g.pool || open_ports(&g, argv + 2)) {
        fprintf(stderr, "bench_forward: the forwarder's ports do not come up\n");
        return 1;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof(line), stdin)) {
        double rate = measure(&g, line);

        if (rate < 0) {
            fprintf(stderr, "bench_forward: found \"%s\", expected BYTES FLOWS SECONDS\n", line);
            return 2;
        }
        printf("%.0f\n", rate);
    }
    return 0;
}
