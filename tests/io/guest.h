/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host's process that speaks raw frames over its NIC's memif, as an HCA's port does. For tests;
 * include once, after cmocka.h.
 */
#ifndef TESTS_SWITCH_RIM_GUEST_H
#define TESTS_SWITCH_RIM_GUEST_H

#include "io/port/port.h"
#include "machine/rundir.h"
#include "machine/shared.h"
#include "machine/token.h"
#include "roce/endpoint.h"
#include "roce/wire.h"

#include <string.h>
#include <unistd.h>

struct guest {
    struct rundir rd;
    struct io_port *port;
    struct rte_mempool *pool;
    const struct switch_view *nic;
    _Atomic uint32_t rung;
    int lock, slot;
};

static void guest_ring(struct guest *g)
{
    bell_stamp(&io_port_page(g->port)->rung_ns);
    loop_bell_ring(g->nic->page, g->nic->bell, &g->rung);
}

static void guest_open(struct guest *g, const char *run, struct fabric *f, const char *host,
                       struct rte_mempool *pool)
{
    const struct fab_node *h = fabric_node(f, host);
    struct memif_cfg mc = {
        .queues = ENDPOINT_QUEUES, .log2_ring = 6, .name = "guest", .pool = pool};
    char sock[RUN_PATH], token[TOKEN_BYTES];

    assert_non_null(h);
    assert_int_equal(rundir_open(&g->rd, run, NULL, false), 0);
    g->slot = rundir_claim_slot(&g->rd, host, 0, f->slots_per_host, &g->lock);
    assert_true(g->slot >= 0);
    rundir_port_sock(&g->rd, host, 0, (unsigned)g->slot, sock, sizeof(sock));
    g->nic = shared_switch_of(g->rd.sh, fabric_node_index(f, h));
    assert_non_null(g->nic);
    g->rung = 0;
    g->pool = pool;
    mc.socket = sock;
    mc.secret = token;
    assert_int_equal(token_find(&g->rd, host, token), 0);
    assert_int_equal(io_port_memif(&g->port, &mc), 0);
    for (unsigned i = 0; !io_port_up(g->port); i++, usleep(1000)) {
        assert_true(i < 5000);
        guest_ring(g);
    }
}

static void guest_close(struct guest *g)
{
    io_port_close(g->port);
    close(g->lock);
    rundir_close(&g->rd);
}

/* A UD datagram to the process in slot `slot` of dst; its PSN numbers it. */
static struct rte_mbuf *datagram(struct rte_mempool *pool, uint32_t src, uint32_t dst, int slot,
                                 uint32_t psn)
{
    struct roce_pkt pkt = {.opcode = ROCE_OP_UD_SEND_ONLY,
                           .ttl = 64,
                           .pkey = 0xffff,
                           .udp_src = 0xc001,
                           .src_ip = src,
                           .dst_ip = dst,
                           .dqpn = ((uint32_t)slot + 1) << 16 | 5,
                           .psn = psn,
                           .qkey = 1,
                           .sqpn = 0x10001,
                           .len = 256};
    struct rte_mbuf *m = frame_alloc(pool);

    if (!m)
        return NULL;
    roce_mac_of_ip(src, pkt.src_mac);
    roce_mac_of_ip(dst, pkt.dst_mac);
    roce_build(m, &pkt);
    memset(rte_pktmbuf_mtod_offset(m, void *, pkt.hdr_len), (int)psn, 256);
    roce_seal(m, &pkt);
    return m;
}

/* Sends n datagrams from a to b; returns how many came, in order and whole. */
static unsigned exchange(struct guest *a, struct guest *b, struct fabric *f, unsigned n)
{
    uint32_t src = fabric_node(f, "h0")->ip_of_port[0], dst = fabric_node(f, "h1")->ip_of_port[0];
    unsigned sent = 0, got = 0;

    for (unsigned i = 0; got < n && i < 20000; i++, usleep(100)) {
        struct rte_mbuf *m[32];
        uint16_t k = 0, q;

        if (sent < n && (m[0] = datagram(a->pool, src, dst, b->slot, sent))) {
            if (io_port_tx(a->port, 1, m, 1))
                sent++;
            else
                rte_pktmbuf_free(m[0]);
            guest_ring(a);
        }
        for (q = 0; q < ENDPOINT_QUEUES; q++)
            for (k = io_port_rx(b->port, q, m, 32); k; k--) {
                struct roce_pkt pkt;

                if (roce_parse(m[k - 1], &pkt) == ROCE_OK && roce_icrc_ok(m[k - 1], &pkt) &&
                    pkt.opcode == ROCE_OP_UD_SEND_ONLY && pkt.len == 256)
                    got++;
                rte_pktmbuf_free(m[k - 1]);
            }
    }
    return got;
}

#endif
