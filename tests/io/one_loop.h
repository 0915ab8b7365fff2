/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop of a switch process in the test's hands: its clock stands still until the test moves it, and
 * programs in slots of hosts, or the switch process at the other end of a link, are ports of the test. A
 * program includes this once, after cmocka.h.
 */
#ifndef TRIB_TESTS_IO_ONE_LOOP_H
#define TRIB_TESTS_IO_ONE_LOOP_H

#include "io/loop_impl.h"
#include "machine/page_server.h"
#include "roce/frame.h"
#include "roce/wire.h"
#include "tests/support/eal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define US 1000ll /* of wall time, ns */
#define MS 1000000ll
#define S  1000000000ll

int clock_gettime(clockid_t id, struct timespec *ts);
int clock_nanosleep(clockid_t id, int flags, const struct timespec *t, struct timespec *left);

static struct {
    struct fabric *fab;
    struct rundir rd;
    char dir[64];
    struct page_server *pages;
    struct rte_mempool *pool;
    struct loop *l;
    unsigned full; /* frames of the pool before the loop was made */
    bool mine[64];
} o;

static _Atomic int64_t now_ns; /* 0: the system's clock */

int clock_gettime(clockid_t id, struct timespec *ts)
{
    int64_t now = now_ns;

    if (!now || id != CLOCK_MONOTONIC)
        return (int)syscall(SYS_clock_gettime, id, ts);
    *ts = (struct timespec){now / S, now % S};
    return 0;
}

/* Nobody waits: time has passed. */
int clock_nanosleep(clockid_t id, int flags, const struct timespec *t, struct timespec *left)
{
    (void)id, (void)left;
    now_ns = (flags & TIMER_ABSTIME ? 0 : now_ns) + t->tv_sec * S + t->tv_nsec;
    return 0;
}

static inline int64_t now_ps(void)
{
    return clock_fabric_ps(o.l->sh);
}

/* What a round does but for its rest, after ns of wall time. */
static void step(int64_t ns)
{
    struct loop *l = o.l;

    now_ns += ns;
    l->gap_ns = now_ns - l->mono_ns;
    l->mono_ns = now_ns;
    l->served_ns = -1;
    links_check(l, now_ps());
    links_receive(l, now_ps());
    net_advance(l->net, now_ps());
    links_flush(l);
}

static inline void steps(unsigned n, int64_t ns)
{
    while (n--)
        step(ns);
}

/* mine: names of nodes that this process runs, with a blank behind each; NULL: all. */
static int one_loop_open(const char *conf, const char *mine, uint32_t dilation)
{
    struct loop_cfg cfg = {.rd = &o.rd, .seed = 1, .mine = mine ? o.mine : NULL};
    struct page_server_cfg pc = {.name = "test", .dilation = dilation, .mine = cfg.mine};
    struct timespec ts;

    test_eal_init();
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &ts);
    now_ns = (ts.tv_sec + 1) * S;
    snprintf(o.dir, sizeof(o.dir), "/tmp/test_loop.XXXXXX");
    o.fab = fabric_load_string(conf, "loop.conf", NULL);
    assert_true(o.fab && o.fab->n_nodes <= 64 && mkdtemp(o.dir));
    for (unsigned i = 0; i < o.fab->n_nodes; i++) {
        char name[FAB_NAME + 2];

        snprintf(name, sizeof(name), "%s ", o.fab->nodes[i].name);
        o.mine[i] = !mine || strstr(mine, name);
    }
    assert_int_equal(rundir_open(&o.rd, o.dir, o.fab->name, true), 0);
    pc.dir = o.rd.path;
    pc.fab = cfg.fab = o.fab;
    assert_int_equal(page_server_start(&o.pages, &o.rd.sh, &pc), 0);
    o.pool = o.pool ? o.pool : test_pool(4095);
    o.full = rte_mempool_avail_count(o.pool);
    cfg.pool = o.pool;
    assert_int_equal(loop_create(&o.l, &cfg), 0);
    return 0;
}

/* Ends it; all frames have come back. */
static int one_loop_close(void)
{
    loop_destroy(o.l);
    o.l = NULL;
    page_server_stop(o.pages);
    rundir_remove(&o.rd);
    rundir_close(&o.rd);
    rmdir(o.dir);
    fabric_free(o.fab);
    now_ns = 0;
    assert_int_equal(rte_mempool_avail_count(o.pool), o.full);
    return 0;
}

static inline uint16_t node_of(const char *name)
{
    return fabric_node_index(o.fab, fabric_node(o.fab, name));
}

static inline int link_named(const char *name)
{
    return fabric_link_by_name(o.fab, name);
}

/* A program in a slot of a host's port, connected. NULL secret: its token is right. */
static inline struct io_port *program(const char *host, unsigned port, unsigned slot)
{
    char sock[RUN_PATH], token[TOKEN_BYTES];
    struct memif_cfg mc = {.queues = ENDPOINT_QUEUES,
                           .log2_ring = 6,
                           .name = "program",
                           .pool = o.pool,
                           .socket = sock,
                           .secret = token};
    struct io_port *p;

    assert_int_equal(token_find(&o.rd, host, token), 0);
    assert_int_equal(rundir_port_sock(&o.rd, host, port, slot, sock, sizeof(sock)), 0);
    assert_int_equal(io_port_memif(&p, &mc), 0);
    for (unsigned i = 0; !io_port_up(p); i++) {
        assert_true(i < 10);
        step(US);
    }
    step(US);
    return p;
}

/* A UD datagram of so many bytes to the queue pair of a slot. */
static inline struct rte_mbuf *datagram(const char *from, const char *to, unsigned slot,
                                        uint32_t bytes)
{
    struct roce_pkt pkt = {.opcode = ROCE_OP_UD_SEND_ONLY,
                           .ttl = 64,
                           .pkey = 0xffff,
                           .udp_src = 0xc001,
                           .src_ip = fabric_node(o.fab, from)->ip_of_port[0],
                           .dst_ip = fabric_node(o.fab, to)->ip_of_port[0],
                           .dqpn = (slot + 1) << 16 | 5,
                           .qkey = 1,
                           .sqpn = 0x10001,
                           .len = bytes};
    struct rte_mbuf *m = frame_alloc(o.pool);

    assert_non_null(m);
    roce_mac_of_ip(pkt.src_ip, pkt.src_mac);
    roce_mac_of_ip(pkt.dst_ip, pkt.dst_mac);
    roce_build(m, &pkt);
    memset(rte_pktmbuf_mtod_offset(m, void *, pkt.hdr_len), 0x5a, bytes);
    roce_seal(m, &pkt);
    return m;
}

/* Sends n of them by a program's port, or by its other queue. */
static inline void send_from(struct io_port *p, const char *from, const char *to, unsigned slot,
                             unsigned n, uint32_t bytes)
{
    for (unsigned i = 0; i < n; i++) {
        struct rte_mbuf *m = datagram(from, to, slot, bytes);

        assert_int_equal(io_port_tx(p, ENDPOINT_DATA, &m, 1), 1);
    }
}

/* Frees what has arrived at a port; how many. */
static inline unsigned taken(struct io_port *p)
{
    struct rte_mbuf *m[64];
    unsigned n = 0;

    for (uint16_t q = 0; q < ENDPOINT_QUEUES; q++)
        for (uint16_t k; (k = io_port_rx(p, q, m, 64)) > 0; n += k)
            rte_pktmbuf_free_bulk(m, k);
    return n;
}

#endif
