/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What trib-switch does beside forwarding, taken away, for comparison: ports, rounds and bursts are
 * the same.
 *   unshaped: the switch itself, its queues, classes, PFC and counters; frames take no time on a
 *             link, so they leave at once, and there is no clock
 *   plain:    its parser and its forwarding table, and nothing of a queue
 *
 *   bench_plain unshaped|plain CONF SWITCH SOCKET...     one memif server for each port of the
 * switch
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/port/port.h"
#include "switch/fib.h"
#include "switch/net/net.h"

#define BURST     32
#define MAX_PORTS 16

struct plain {
    struct fib *fib;
    struct net *net; /* unshaped */
    uint16_t sw;
    struct io_port *rp[MAX_PORTS];
    unsigned n_ports;
    struct rte_mbuf *out[MAX_PORTS][4 * BURST];
    uint16_t n_out[MAX_PORTS];
};

static void leave(struct plain *p, uint16_t to, struct rte_mbuf *m)
{
    if (to < p->n_ports && p->n_out[to] < 4 * BURST)
        p->out[to][p->n_out[to]++] = m;
    else
        rte_pktmbuf_free(m);
}

static void forward(struct plain *p, struct rte_mbuf *m)
{
    struct packet_class k;
    uint16_t to = FIB_NO_PORT;
    bool any;

    classify_frame(m, &k);
    if (k.kind != PACKET_BAD)
        to = fib_lookup(p->fib, rte_pktmbuf_mtod(m, const uint8_t *), &k, &any);
    leave(p, to, m);
}

static void deliver(void *ctx, uint16_t node, uint16_t port, struct rte_mbuf **m, uint16_t n,
                    int64_t due_ps)
{
    (void)node, (void)due_ps;
    for (uint16_t i = 0; i < n; i++)
        leave(ctx, port, m[i]);
}

static void turn(struct plain *p)
{
    struct rte_mbuf *m[BURST];

    for (unsigned i = 0; i < p->n_ports; i++) {
        uint16_t n = io_port_rx(p->rp[i], 0, m, BURST);

        if (p->net && n)
            net_input(p->net, p->sw, (uint16_t)i, m, n, 0);
        for (uint16_t k = 0; k < n && !p->net; k++) {
            if (k + 1 < n)
                rte_prefetch0(rte_pktmbuf_mtod(m[k + 1], void *));
            forward(p, m[k]);
        }
    }
    if (p->net)
        net_advance(p->net, 0);
    for (unsigned i = 0; i < p->n_ports; i++) {
        uint16_t sent = p->n_out[i] ? io_port_tx(p->rp[i], 0, p->out[i], p->n_out[i]) : 0;

        p->n_out[i] = (uint16_t)(p->n_out[i] - sent);
        if (sent && p->n_out[i])
            memmove(p->out[i], p->out[i] + sent, p->n_out[i] * sizeof(p->out[i][0]));
    }
}

static int unshaped(struct plain *p, struct fabric *f, struct rte_mempool *pool)
{
    bool *mine = calloc(f->n_nodes, sizeof(*mine));
    struct net_cfg nc = {.fab = f, .mine = mine, .pool = pool, .deliver = deliver, .ctx = p};

    if (!mine)
        return -1;
    mine[p->sw] = true;
    for (uint16_t i = 0; i < f->nodes[p->sw].n_ports; i++) {
        f->nodes[p->sw].ports[i].rate_bps = 0;
        f->nodes[p->sw].ports[i].latency_ps = 0;
    }
    return net_create(&p->net, &nc);
}

static int open_ports(struct plain *p, char **sockets, unsigned n, struct rte_mempool *pool)
{
    for (p->n_ports = 0; p->n_ports < n; p->n_ports++) {
        struct memif_cfg mc = {.socket = sockets[p->n_ports],
                               .listener = true,
                               .queues = 1,
                               .log2_ring = 9,
                               .name = "plain",
                               .pool = pool};

        if (io_port_memif(&p->rp[p->n_ports], &mc))
            return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct plain p = {0};
    struct fab_errors errs = {0};
    struct fabric *f;
    struct rte_mempool *pool;

    if (argc < 6 || argc - 4 > MAX_PORTS || io_eal_init("bench_plain", NULL, 128, NULL, 0)) {
        fprintf(stderr, "usage: bench_plain unshaped|plain CONF SWITCH SOCKET...\n");
        return 2;
    }
    f = fabric_load(argv[2], &errs);
    pool = frame_pool_create("frames", 8191, 256);
    while (f && p.sw < f->n_nodes && strcmp(f->nodes[p.sw].name, argv[3]))
        p.sw++;
    if (!f || !pool || p.sw == f->n_nodes || fib_create(&p.fib, f, p.sw) ||
        (!strcmp(argv[1], "unshaped") && unshaped(&p, f, pool))) {
        fprintf(stderr, "bench_plain: %s has no switch %s\n", argv[2], argv[3]);
        return 1;
    }
    if (open_ports(&p, argv + 4, (unsigned)argc - 4, pool))
        return 1;
    for (unsigned round = 0;; round++) {
        if (round % 4096 == 0)
            for (unsigned i = 0; i < p.n_ports; i++)
                io_port_up(p.rp[i]);
        turn(&p);
    }
}
