/*
 * The switch without what makes a link of it, for comparison: its ports, its parser and its
 * forwarding table, and no egress queue, no rate, no latency, no ECN, no PFC, no clock.
 *
 *   bench_plain CONF SWITCH SOCKET...     one memif server for each port of the switch
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "switch/fib.h"
#include "switch/rim/port.h"

#define BURST     32
#define MAX_PORTS 16

struct plain {
    struct fib *fib;
    struct rim_port *rp[MAX_PORTS];
    unsigned n_ports;
    struct rte_mbuf *out[MAX_PORTS][4 * BURST];
    uint16_t n_out[MAX_PORTS];
};

static void forward(struct plain *p, struct rte_mbuf *m)
{
    struct peek k;
    uint16_t to = FIB_NO_PORT;
    bool any;

    peek_frame(m, &k);
    if (k.kind != PEEK_BAD)
        to = fib_lookup(p->fib, rte_pktmbuf_mtod(m, const uint8_t *), &k, &any);
    if (to < p->n_ports && p->n_out[to] < 4 * BURST)
        p->out[to][p->n_out[to]++] = m;
    else
        rte_pktmbuf_free(m);
}

static void turn(struct plain *p)
{
    struct rte_mbuf *m[BURST];

    for (unsigned i = 0; i < p->n_ports; i++) {
        uint16_t n = rim_port_rx(p->rp[i], 0, m, BURST);

        for (uint16_t k = 0; k < n; k++) {
            if (k + 1 < n)
                rte_prefetch0(rte_pktmbuf_mtod(m[k + 1], void *));
            forward(p, m[k]);
        }
    }
    for (unsigned i = 0; i < p->n_ports; i++) {
        uint16_t sent = p->n_out[i] ? rim_port_tx(p->rp[i], 0, p->out[i], p->n_out[i]) : 0;

        p->n_out[i] = (uint16_t)(p->n_out[i] - sent);
        if (sent && p->n_out[i])
            memmove(p->out[i], p->out[i] + sent, p->n_out[i] * sizeof(p->out[i][0]));
    }
}

int main(int argc, char **argv)
{
    struct plain p = {0};
    struct fab_errors errs = {0};
    struct fabric *f;
    struct rte_mempool *pool;
    uint16_t sw = 0;

    if (argc < 5 || argc - 3 > MAX_PORTS || rim_eal_init("bench_plain", NULL, 128, NULL, 0)) {
        fprintf(stderr, "usage: bench_plain CONF SWITCH SOCKET...\n");
        return 2;
    }
    f = fabric_load(argv[1], &errs);
    pool = frame_pool_create("frames", 8191, 256);
    while (f && sw < f->n_nodes && strcmp(f->nodes[sw].name, argv[2]))
        sw++;
    if (!f || !pool || sw == f->n_nodes || fib_create(&p.fib, f, sw)) {
        fprintf(stderr, "bench_plain: %s has no switch %s\n", argv[1], argv[2]);
        return 1;
    }
    for (p.n_ports = 0; p.n_ports < (unsigned)argc - 3; p.n_ports++) {
        struct memif_cfg mc = {.socket = argv[3 + p.n_ports],
                               .listener = true,
                               .queues = 1,
                               .log2_ring = 9,
                               .name = argv[2],
                               .pool = pool};

        if (rim_port_memif(&p.rp[p.n_ports], &mc))
            return 1;
    }
    for (unsigned round = 0;; round++) {
        if (round % 4096 == 0)
            for (unsigned i = 0; i < p.n_ports; i++)
                rim_port_up(p.rp[i]);
        turn(&p);
    }
}
