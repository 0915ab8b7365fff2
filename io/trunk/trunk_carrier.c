/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames to other machines through a DPDK port (`ports` of a machine), past the kernel's UDP. The same
 * sealed messages follow an Ethernet header and their length. Everything else stays on UDP, which needs
 * no set-up; frames use UDP too while the port does not reach the other machine. Each machine says by
 * UDP which MAC its port has and whether it has heard the other's port lately; for this each port sends
 * probes as long as the longest frame.
 *
 * A port rings no doorbell. An idle trunk polls its port only at its ticks, twenty times a second. The
 * first frames after AWAKE_NS of silence go by UDP, which wakes the other machine; its trunk then polls
 * the port, less and less often, until 2 * AWAKE_NS have passed without a frame.
 */
#include "io/trunk/trunk_priv.h"

#include "roce/frame.h"

#include <endian.h>
#include <errno.h>
#include <rte_common.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ETHERTYPE   0x88b5u /* for local experiments (IEEE 802) */
#define POOL_FRAMES 4095u
#define AWAKE_NS    20000000
#define POLL_NS     50000   /* interval of polls: at least this, */
#define POLL_MAX_NS 1000000 /* at most this, */
#define POLL_SHARE                                                                                 \
    8 /* between them 1/8 of the time since the last frame: a frame waits little in comparison */
#define HEARD_NS 300000000 /* a port that was not heard for so long does not reach */

struct ethernet {
    uint8_t to[6], from[6];
    uint16_t type;
    uint16_t bytes; /* of the message: Ethernet pads short frames */
} __attribute__((packed));

struct carrier {
    struct io_port *port;
    struct rte_mempool *pool;
    const char *device; /* as in the conf */
    uint8_t mac[6];
    bool up;
    int64_t used_ns; /* when frames last passed, in either direction */
    unsigned probe;  /* length of a probe's message */
};

/* Bytes around the fabric's longest packet on the wire between machines, beyond the outer Ethernet
 * header: the length, the message's headers, the emulated Ethernet header with a tag. */
static unsigned around_frame(void)
{
    return (unsigned)(sizeof(uint16_t) + sizeof(struct trunk_header) + sizeof(struct trunk_frame)) +
           18;
}

/* ---- which way ---- */

static bool hears(const struct trunk *t, const struct trunk_peer *p)
{
    return t->carrier && t->carrier->up && p->by_port.hears_us;
}

bool carrier_reaches(const struct trunk *t, unsigned machine)
{
    return hears(t, &t->peer[machine]);
}

void carrier_awake(struct trunk *t, int64_t now_ns)
{
    if (t->carrier)
        t->carrier->used_ns = now_ns;
}

bool carrier_takes(struct trunk *t, unsigned to, int64_t now_ns)
{
    struct trunk_peer *p = &t->peer[to];
    bool awake = now_ns - p->by_port.used_ns < AWAKE_NS;

    if (!t->carrier)
        return false;
    p->by_port.used_ns = now_ns;
    carrier_awake(t, now_ns);
    return awake && hears(t, p);
}

/* ---- frames ---- */

static struct rte_mbuf *frame_wrap(const struct carrier *c, const struct trunk_peer *p,
                                   const uint8_t *m, size_t bytes)
{
    struct rte_mbuf *f = frame_alloc(c->pool);
    struct ethernet e = {.type = htobe16(ETHERTYPE), .bytes = htobe16((uint16_t)bytes)};
    char *at = f ? rte_pktmbuf_append(f, (uint16_t)(sizeof(e) + bytes)) : NULL;

    if (!at) {
        rte_pktmbuf_free(f);
        return NULL;
    }
    memcpy(e.to, p->by_port.mac, sizeof(e.to));
    memcpy(e.from, c->mac, sizeof(e.from));
    memcpy(at, &e, sizeof(e));
    memcpy(at + sizeof(e), m, bytes);
    return f;
}

unsigned carrier_send(struct trunk *t, unsigned to, const struct iovec *v, unsigned n)
{
    struct trunk_peer *p = &t->peer[to];
    struct rte_mbuf *f[TRUNK_BURST];
    unsigned k = 0, sent;

    for (unsigned i = 0; i < RTE_MIN(n, TRUNK_BURST); i++)
        if ((f[k] = frame_wrap(t->carrier, p, v[i].iov_base, v[i].iov_len)))
            k++;
    sent = io_port_tx(t->carrier->port, 0, f, (uint16_t)k);
    rte_pktmbuf_free_bulk(f + sent, k - sent);
    p->by_port.sent += sent;
    return sent;
}

static void trunk_carrier_take(struct trunk *t, struct rte_mbuf *f, int64_t now_ns)
{
    const uint8_t *at = rte_pktmbuf_mtod(f, uint8_t *), *m = at + sizeof(struct ethernet);
    struct ethernet e;
    unsigned from;

    if (f->pkt_len < sizeof(e))
        return;
    memcpy(&e, at, sizeof(e));
    if (e.type != htobe16(ETHERTYPE) || memcmp(e.to, t->carrier->mac, sizeof(e.to)) != 0)
        return; /* another application's frame on this network */
    if (be16toh(e.bytes) > f->pkt_len - sizeof(e)) {
        t->refused[TRUNK_SHORT]++;
        return;
    }
    if (peers_input(t, m, be16toh(e.bytes), now_ns)) {
        from = ((const struct trunk_header *)m)->from;
        t->peer[from].by_port.heard_ns = now_ns;
        t->peer[from].by_port.received++;
    }
}

unsigned carrier_receive(struct trunk *t, int64_t now_ns)
{
    struct rte_mbuf *f[TRUNK_BURST];
    uint16_t n = t->carrier ? io_port_rx(t->carrier->port, 0, f, TRUNK_BURST) : 0;

    for (uint16_t i = 0; i < n; i++)
        trunk_carrier_take(t, f[i], now_ns);
    rte_pktmbuf_free_bulk(f, n);
    return n;
}

int64_t carrier_next(const struct trunk *t, int64_t now_ns)
{
    int64_t since = t->carrier ? now_ns - t->carrier->used_ns : INT64_MAX;

    if (since > 2 * AWAKE_NS)
        return INT64_MAX;
    return now_ns + RTE_MAX(RTE_MIN(since / POLL_SHARE, POLL_MAX_NS), POLL_NS);
}

/* ---- who hears whom ---- */

void carrier_tell(const struct trunk *t, unsigned to, struct trunk_state *s)
{
    const struct trunk_peer *p = &t->peer[to];

    if (!t->carrier || !t->carrier->up)
        return;
    memcpy(s->mac, t->carrier->mac, sizeof(s->mac));
    s->hears = p->by_port.heard_ns && clock_mono_ns() - p->by_port.heard_ns < HEARD_NS;
}

void carrier_told(struct trunk *t, unsigned from, const struct trunk_state *s)
{
    struct trunk_peer *p = &t->peer[from];

    memcpy(p->by_port.mac, s->mac, sizeof(s->mac));
    p->by_port.hears_us = s->hears;
}

void carrier_tick(struct trunk *t)
{
    static const uint8_t none[6];
    uint8_t m[TRUNK_MAX] = {0};

    if (!t->carrier)
        return;
    t->carrier->up = io_port_up(t->carrier->port);
    for (unsigned i = 0; i < t->n && t->carrier->up; i++) {
        const struct trunk_peer *p = &t->peer[i];

        if (i == t->me || !peer_alive(p) || !memcmp(p->by_port.mac, none, sizeof(none)))
            continue;
        peers_seal(t, i, TRUNK_PROBE, m, t->carrier->probe);
        (void)carrier_send(t, i, &(struct iovec){m, t->carrier->probe}, 1);
    }
}

/* ---- set-up ---- */

static int open_first(struct carrier *c, const struct fab_machine *m, const char *dir, unsigned mtu)
{
    for (unsigned i = 0; i < m->n_devices; i++) {
        if (!strcmp(m->device[i], FAB_UDP))
            return 0;
        if (io_port_outside(&c->port, m->device[i], dir, i, mtu + around_frame(), c->pool))
            continue;
        c->device = m->device[i];
        return io_port_mac(c->port, c->mac);
    }
    fprintf(
        stderr,
        "trib-switch: machine %s: none of its ports opens, expected one that does, or \"" FAB_UDP
        "\" as the last\n",
        m->name);
    return -ENODEV;
}

int carrier_open(struct trunk *t)
{
    const struct fab_machine *m = &t->fab->machines[t->me];
    struct carrier *c;
    int rc;

    if (!m->n_devices)
        return 0;
    c = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    c->probe = t->fab->mtu + PORT_HEADERS_MAX + around_frame() - (unsigned)sizeof(uint16_t);
    c->pool = frame_pool_create("carrier", POOL_FRAMES, 64);
    rc = c->pool ? open_first(c, m, t->cfg.rd->path, t->fab->mtu) : -ENOMEM;
    if (!rc && c->port) {
        pthread_mutex_lock(&t->lock);
        t->carrier = c;
        pthread_mutex_unlock(&t->lock);
        return 0;
    }
    if (c->port)
        io_port_close(c->port);
    rte_mempool_free(c->pool);
    free(c);
    return rc;
}

void carrier_close(struct trunk *t)
{
    struct carrier *c = t->carrier;

    t->carrier = NULL;
    if (!c)
        return;
    io_port_close(c->port);
    rte_mempool_free(c->pool);
    free(c);
}

const char *carrier_device(const struct trunk *t)
{
    const struct fab_machine *m = &t->fab->machines[t->me];

    if (t->carrier)
        return t->carrier->device;
    return m->n_devices && strcmp(m->device[0], FAB_UDP) != 0 ? FAB_UDP ", none of its ports opened"
                                                              : FAB_UDP;
}
