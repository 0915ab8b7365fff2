/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/hostile/raw.h"

#include "machine/token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POOL        1024
#define LOG2_RING   8
#define QUEUE       ENDPOINT_DATA
#define SEND_MS     5000
#define UDP_SRC     0xc123
#define DEFAULT_TOS 0x02

void raw_die(const char *fmt, ...)
{
    va_list ap;

    fflush(stdout);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(2);
}

static int64_t now_ms(void)
{
    return clock_mono_ns() / 1000000;
}

/* ---- the slot ---- */

static void ring(struct raw *r)
{
    bell_stamp(&io_port_page(r->io)->rung_ns);
    loop_bell_ring(r->nic->page, r->nic->bell, &r->rung);
}

static int connect_slot(struct raw *r, unsigned wait_ms)
{
    struct memif_cfg mc = {
        .queues = ENDPOINT_QUEUES, .log2_ring = LOG2_RING, .name = "raw", .pool = r->pool};
    int64_t end = now_ms() + wait_ms;
    char sock[RUN_PATH], token[TOKEN_BYTES];
    int rc =
        rundir_port_sock(&r->rd, r->host->name, r->port, (unsigned)r->slot, sock, sizeof(sock));

    mc.socket = sock;
    mc.secret = token;
    rc = rc ? rc : token_find(&r->rd, r->host->name, token);
    if (!rc)
        rc = io_port_memif(&r->io, &mc);
    for (; !rc && !io_port_up(r->io); usleep(1000)) {
        if (now_ms() > end)
            rc = -ETIMEDOUT;
        ring(r);
    }
    return rc;
}

int raw_try_open(struct raw *r, const char *host, unsigned port, int slot, unsigned wait_ms)
{
    static unsigned opened;
    char name[RTE_MEMPOOL_NAMESIZE];
    int rc;

    *r = (struct raw){.lock = -1, .port = port, .slot = slot};
    if (!host && !(host = getenv("TRIB_HOST")))
        raw_die("found no host and no TRIB_HOST, expected the name of a host");
    if (io_eal_init_private("raw", 64) || rundir_open(&r->rd, NULL, NULL, false) ||
        !(r->fab = rundir_fabric(&r->rd)))
        raw_die("expected a fabric that is up in TRIB_RUN");
    r->host = fabric_node(r->fab, host);
    if (!r->host || r->host->kind != FAB_HOST || port >= r->host->n_ports)
        raw_die("found '%s' port %u, expected a host's port", host, port);
    r->ip = r->host->ip_of_port[port];
    r->nic = shared_switch_of(r->rd.sh, fabric_node_index(r->fab, r->host));
    if (!r->nic)
        raw_die("found no process that runs the NIC of %s", host);
    if (slot < 0)
        r->slot = rundir_claim_slot(&r->rd, host, port, r->fab->slots_per_host, &r->lock);
    if (r->slot < 0)
        return r->slot;
    snprintf(name, sizeof(name), "raw%u", opened++);
    r->pool = frame_pool_create(name, POOL, 0);
    if (!r->pool)
        raw_die("no memory for %u frames", POOL);
    rc = connect_slot(r, wait_ms);
    if (rc)
        raw_close(r);
    return rc;
}

void raw_open(struct raw *r, const char *host, unsigned port, int slot)
{
    int rc = raw_try_open(r, host, port, slot, SEND_MS);

    if (rc)
        raw_die("no slot of %s: %s", host ? host : getenv("TRIB_HOST"), strerror(-rc));
}

void raw_close(struct raw *r)
{
    if (r->io)
        io_port_close(r->io);
    rte_mempool_free(r->pool);
    if (r->lock >= 0)
        close(r->lock);
    fabric_free(r->fab);
    rundir_close(&r->rd);
    *r = (struct raw){.lock = -1};
}

bool raw_offer(struct raw *r, struct rte_mbuf *m)
{
    bool sent = io_port_up(r->io) && io_port_tx(r->io, QUEUE, &m, 1);

    if (sent)
        r->sent++;
    else
        rte_pktmbuf_free(m);
    ring(r);
    return sent;
}

void raw_send(struct raw *r, struct rte_mbuf *m)
{
    int64_t end = now_ms() + SEND_MS;

    while (!io_port_up(r->io) || !io_port_tx(r->io, QUEUE, &m, 1)) {
        if (now_ms() > end)
            raw_die("%s: the NIC takes no frames", r->host->name);
        ring(r);
        usleep(100);
    }
    r->sent++;
    ring(r);
}

bool raw_flush(struct raw *r, unsigned wait_ms)
{
    int64_t end = now_ms() + wait_ms;

    while (io_port_up(r->io) && io_port_untaken(r->io, QUEUE)) {
        if (now_ms() > end)
            return false;
        ring(r);
        usleep(200);
    }
    return io_port_up(r->io);
}

struct rte_mbuf *raw_recv(struct raw *r, unsigned wait_ms)
{
    int64_t end = now_ms() + wait_ms;
    struct rte_mbuf *m;

    do {
        for (uint16_t q = 0; io_port_up(r->io) && q < ENDPOINT_QUEUES; q++)
            if (io_port_rx(r->io, q, &m, 1)) {
                ring(r);
                return m;
            }
        if (wait_ms)
            usleep(200);
    } while (now_ms() < end);
    return NULL;
}

void raw_drain(struct raw *r)
{
    struct rte_mbuf *m;

    while ((m = raw_recv(r, 0)))
        rte_pktmbuf_free(m);
}

/* ---- addresses ---- */

uint32_t raw_ip(const struct raw *r, const char *node)
{
    const char *dot = strchr(node, '.');
    char name[64];
    const struct fab_node *n;
    unsigned port = dot ? (unsigned)atoi(dot + 1) : 0;

    snprintf(name, sizeof(name), "%.*s", dot ? (int)(dot - node) : (int)strlen(node), node);
    n = fabric_node(r->fab, name);
    if (!n || (n->kind == FAB_HOST && port >= n->n_ports))
        raw_die("found '%s', expected a node of the fabric", node);
    return n->kind == FAB_HOST ? n->ip_of_port[port] : n->ip;
}

/* ---- frames ---- */

static struct rte_mbuf *empty(struct raw *r)
{
    struct rte_mbuf *m;

    /* The rings hold at most half of the pool. */
    for (unsigned i = 0; !(m = frame_alloc(r->pool)); i++) {
        if (i == 50000)
            raw_die("no frame is free");
        raw_drain(r);
        usleep(100);
    }
    return m;
}

struct rte_mbuf *raw_bytes(struct raw *r, const void *p, uint32_t len)
{
    struct rte_mbuf *m = empty(r);
    char *at = rte_pktmbuf_append(m, (uint16_t)len);

    if (!at)
        raw_die("a frame of %u bytes does not fit", len);
    memcpy(at, p, len);
    return m;
}

struct rte_mbuf *raw_roce(struct raw *r, const struct roce_pkt *pkt, const void *payload)
{
    static const uint8_t none[6];
    struct rte_mbuf *m = empty(r);
    struct roce_pkt p = *pkt;

    p.src_ip = p.src_ip ? p.src_ip : r->ip;
    p.ttl = p.ttl ? p.ttl : 64;
    p.tos = p.tos ? p.tos : DEFAULT_TOS;
    p.pkey = p.pkey ? p.pkey : ROCE_DEFAULT_PKEY;
    p.udp_src = p.udp_src ? p.udp_src : UDP_SRC;
    p.mark = p.mark ? p.mark : (uint16_t)(r->slot + 1);
    if (!memcmp(p.src_mac, none, 6))
        roce_mac_of_ip(p.src_ip, p.src_mac);
    if (!memcmp(p.dst_mac, none, 6))
        roce_mac_of_ip(p.dst_ip, p.dst_mac);
    roce_build(m, &p);
    memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, p.hdr_len), payload, p.len);
    roce_seal(m, &p);
    return m;
}

struct rte_mbuf *raw_ud(struct raw *r, uint32_t src_ip, uint32_t dst_ip, uint32_t sqpn,
                        uint32_t dqpn, uint32_t qkey, const void *payload, uint32_t len)
{
    struct roce_pkt p = {.opcode = ROCE_OP_UD_SEND_ONLY,
                         .src_ip = src_ip,
                         .dst_ip = dst_ip,
                         .sqpn = sqpn ? sqpn : raw_qpn0((unsigned)r->slot) | 1,
                         .dqpn = dqpn,
                         .qkey = qkey,
                         .len = len};

    return raw_roce(r, &p, payload);
}

struct rte_mbuf *raw_rc(struct raw *r, uint8_t opcode, uint32_t src_ip, uint32_t dst_ip,
                        uint32_t dqpn, uint32_t psn, const void *payload, uint32_t len)
{
    struct roce_pkt p = {.opcode = opcode,
                         .src_ip = src_ip,
                         .dst_ip = dst_ip,
                         .dqpn = dqpn,
                         .psn = psn,
                         .ack_req = true,
                         .len = len};

    return raw_roce(r, &p, payload);
}

struct rte_mbuf *raw_ack(struct raw *r, uint32_t src_ip, uint32_t dst_ip, uint32_t dqpn,
                         uint32_t psn, uint8_t syndrome, uint32_t msn)
{
    struct roce_pkt p = {.opcode = ROCE_OP_RC_ACKNOWLEDGE,
                         .src_ip = src_ip,
                         .dst_ip = dst_ip,
                         .dqpn = dqpn,
                         .psn = psn,
                         .syndrome = syndrome,
                         .msn = msn};

    return raw_roce(r, &p, "");
}

struct rte_mbuf *raw_cnp(struct raw *r, uint32_t src_ip, uint32_t dst_ip, uint32_t dqpn)
{
    struct roce_pkt p = {
        .opcode = ROCE_OP_CNP_PACKET, .src_ip = src_ip, .dst_ip = dst_ip, .dqpn = dqpn};

    return raw_roce(r, &p, "");
}

struct rte_mbuf *raw_igmp(struct raw *r, enum igmp_what what, uint32_t group, uint32_t src_ip)
{
    uint8_t mac[6];
    struct rte_mbuf *m;

    rte_pktmbuf_free(empty(r)); /* waits for one */
    src_ip = src_ip ? src_ip : r->ip;
    roce_mac_of_ip(src_ip, mac);
    m = igmp_build(r->pool, what, group, src_ip, mac);
    if (!m)
        raw_die("no frame is free");
    return m;
}

static void put32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24), p[1] = (uint8_t)(v >> 16), p[2] = (uint8_t)(v >> 8),
    p[3] = (uint8_t)v;
}

struct rte_mbuf *raw_arp(struct raw *r, uint16_t op, uint32_t sender_ip, const uint8_t *sender_mac,
                         uint32_t target_ip)
{
    /* Broadcast; Ethernet, IPv4, RFC 826. */
    uint8_t f[FRAME_MIN_BYTES] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, [12] = 0x08,
                                  0x06, 0,    1,    8,    0,    6,    4},
            own[6];

    roce_mac_of_ip(r->ip, own);
    sender_mac = sender_mac ? sender_mac : own;
    memcpy(f + 6, sender_mac, 6);
    f[20] = (uint8_t)(op >> 8), f[21] = (uint8_t)op;
    memcpy(f + 22, sender_mac, 6);
    put32(f + 28, sender_ip ? sender_ip : r->ip);
    if (op == 2) {
        roce_mac_of_ip(target_ip, f);
        roce_mac_of_ip(target_ip, f + 32);
    }
    put32(f + 38, target_ip);
    return raw_bytes(r, f, sizeof(f));
}

struct rte_mbuf *raw_agg(struct raw *r, uint32_t src_ip, uint32_t dst_ip, uint32_t sqpn,
                         uint32_t dqpn, enum agg_type type, const struct agg_ctl *c)
{
    struct agg_ctl ctl = *c;

    ctl.magic = RTE_BE32(AGG_MAGIC);
    ctl.version = AGG_VERSION;
    ctl.type = (uint8_t)type;
    return raw_ud(r, src_ip, dst_ip, sqpn, dqpn, AGG_QKEY, &ctl, sizeof(ctl));
}
