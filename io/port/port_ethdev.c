/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any ethdev as a port to the outside: one queue pair, polled. Makes one segment of a frame that was
 * received in several.
 */
#include "base/assert.h"
#include "io/port/port_impl.h"
#include "io/port/port_kernel.h"
#include "io/port/port_pci.h"
#include "io/port/port_spec.h"
#include "roce/frame.h"

#include <errno.h>
#include <limits.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ETHDEV_RING 512
#define XDP_PAGES   8192u /* the driver's rings take half; with fewer it stops receiving */
#define XDP_ROOM    3648u /* buffer size, with headroom */
#define XDP_MTU     3300u /* largest MTU in it, after the headrooms of DPDK and of the kernel */

struct ethdev {
    struct io_port port;
    uint16_t id;
    bool up;
    struct rte_mempool
        *frames; /* af_xdp: received frames are copied into its buffers; NULL: no copy */
    struct rte_mempool *pages; /* af_xdp: the driver's buffers, a page each */
    int socket;                /* af_packet's, which counts drops; -1: another driver */
    uint64_t missed;           /* drops that the socket has counted */
};

/* Copies received frames. Returns how many it copied: without a free buffer a frame is lost, as in a NIC. */
static uint16_t copy_all(struct ethdev *e, struct rte_mbuf **m, uint16_t n)
{
    uint16_t k = 0;

    T_ASSERT_HOT(e->frames, "frames are copied without a pool for the copies");
    for (uint16_t i = 0; i < n; i++) {
        struct rte_mbuf *c = rte_pktmbuf_copy(m[i], e->frames, 0, UINT32_MAX);

        e->port.stats.rx_bad += c == NULL;
        rte_pktmbuf_free(m[i]);
        if (c)
            m[k++] = c;
    }
    return k;
}

static uint16_t ethdev_rx(struct io_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
    struct ethdev *e = (struct ethdev *)p;
    uint16_t got = queue ? 0 : rte_eth_rx_burst(e->id, 0, m, n), k = 0;

    if (e->frames)
        got = copy_all(e, m, got);
    for (uint16_t i = 0; i < got; i++) {
        if (unlikely(m[i]->nb_segs > 1 && rte_pktmbuf_linearize(m[i]))) {
            p->stats.rx_bad++;
            rte_pktmbuf_free(m[i]);
            continue;
        }
        memset(frame_meta(m[i]), 0, sizeof(struct frame_meta));
        m[k++] = m[i];
    }
    p->stats.rx += k;
    return k;
}

enum fitness { FIT, UNFIT, NO_BUFFER };

/* Makes the frame one segment, for drivers that cannot gather. Copies shared payload first, so that
 * other holders keep it. */
static enum fitness ethdev_prepare(struct rte_mbuf **m)
{
    struct rte_mbuf *c;

    if (unlikely(frame_meta(*m)->flags & FRAME_F_VIRTUAL))
        return UNFIT;
    if (likely((*m)->nb_segs == 1))
        return FIT;
    if (rte_mbuf_refcnt_read(*m) > 1) {
        c = rte_pktmbuf_copy(*m, (*m)->pool, 0, UINT32_MAX);
        if (!c)
            return NO_BUFFER;
        *frame_meta(c) = *frame_meta(*m);
        rte_pktmbuf_free(*m);
        *m = c;
    }
    return rte_pktmbuf_linearize(*m) ? UNFIT : FIT;
}

/* Sends frames in bursts: af_packet and af_xdp make a system call for each burst. */
static uint16_t ethdev_tx(struct io_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
    struct ethdev *e = (struct ethdev *)p;
    enum fitness last = UNFIT;
    uint16_t k = 0;

    while (!queue && k < n && last == UNFIT) {
        uint16_t to = k, sent;

        for (last = FIT; to < n && last == FIT; to += last == FIT)
            last = ethdev_prepare(&m[to]);
        sent = to > k ? rte_eth_tx_burst(e->id, 0, m + k, to - k) : 0;
        T_ASSERT_HOT(sent <= to - k, "a driver sent more frames than it was given");
        k += sent;
        p->stats.tx += sent;
        if (k < to)
            break;
        if (last == UNFIT) {
            p->stats.tx_bad++;
            rte_pktmbuf_free(m[k++]);
        }
    }
    return k;
}

/* Updates the count of missed frames. DPDK's af_packet does not report drops for lack of room in its ring. */
static void count_missed(struct ethdev *e)
{
    struct rte_eth_stats s = {0};

    e->missed += port_kernel_missed(e->socket);
    if (!rte_eth_stats_get(e->id, &s))
        e->port.stats.missed = e->missed + s.imissed;
}

static bool ethdev_up(struct io_port *p)
{
    struct ethdev *e = (struct ethdev *)p;
    struct rte_eth_link link = {0};
    bool was = e->up;

    count_missed(e);

    e->up = !rte_eth_link_get_nowait(e->id, &link) && link.link_status == RTE_ETH_LINK_UP;
    p->stats.connects += e->up && !was;
    return e->up;
}

static int ethdev_fd(const struct io_port *p)
{
    (void)p;
    return -1;
}

/* Number of frames to receive; 0 also if the driver cannot tell, so callers poll. */
static uint16_t ethdev_pending(const struct io_port *p, uint16_t queue)
{
    const struct ethdev *e = (const struct ethdev *)p;
    int n = queue ? 0 : rte_eth_rx_queue_count(e->id, 0);

    return n < 0 ? 0 : (uint16_t)n;
}

static bool ethdev_crowded(const struct io_port *p, uint16_t queue)
{
    (void)p;
    (void)queue;
    return false;
}

static void ethdev_close(struct io_port *p)
{
    struct ethdev *e = (struct ethdev *)p;
    struct rte_eth_dev_info info;
    bool known = !rte_eth_dev_info_get(e->id, &info);

    rte_eth_dev_stop(e->id);
    rte_eth_dev_close(e->id);
    if (known && info.device)
        rte_dev_remove(info.device);
    rte_mempool_free(e->pages);
    free(e);
}

static const struct io_port_ops ethdev_ops = {
    .up = ethdev_up,
    .fd = ethdev_fd,
    .rx = ethdev_rx,
    .tx = ethdev_tx,
    .pending = ethdev_pending,
    .arrived = ethdev_pending,
    .crowded = ethdev_crowded,
    .close = ethdev_close,
};

int io_port_mac(const struct io_port *p, uint8_t mac[6])
{
    struct rte_ether_addr a;
    int rc =
        p->ops == &ethdev_ops ? rte_eth_macaddr_get(((const struct ethdev *)p)->id, &a) : -ENOTSUP;

    if (!rc)
        memcpy(mac, a.addr_bytes, sizeof(a.addr_bytes));
    return rc;
}

/* MTU of the kernel's interface or of the NIC; UINT_MAX: a virtual device without one carries any size. */
static unsigned mtu_of(uint16_t id, const struct port_spec *s)
{
    uint16_t mtu;

    if (*s->iface)
        return port_spec_mtu(s);
    return port_pci_is(s->text) && !rte_eth_dev_get_mtu(id, &mtu) ? mtu : UINT_MAX;
}

/* af_xdp puts a frame into one page, and drivers refuse an interface whose MTU does not fit that. */
static int xdp_fits(const struct port_spec *s, unsigned need)
{
    unsigned has = port_spec_mtu(s);
    char why[200];

    if (!port_spec_is_xdp(s) || (need <= XDP_MTU && has <= XDP_MTU))
        return 0;
    if (need > XDP_MTU)
        return port_refuse(s->text, 0,
                           "found a fabric whose packets do not fit the pages of af_xdp, expected "
                           "mtu = 2048 or less, or net_af_packet");
    snprintf(why, sizeof(why), "found an MTU of %u, expected at most %u (ip link set %s mtu %u)",
             has, XDP_MTU, s->iface, need);
    return port_refuse(s->text, 0, why);
}

/* Makes the device carry packets of `need` bytes: it would silently drop packets beyond its MTU. */
static int ethdev_set_mtu(uint16_t id, const struct port_spec *s, unsigned need)
{
    struct rte_eth_dev_info info;
    unsigned has = mtu_of(id, s);
    char why[200];

    if (has < need && !rte_eth_dev_info_get(id, &info) && info.max_mtu >= need &&
        !rte_eth_dev_set_mtu(id, (uint16_t)need))
        has = mtu_of(id, s);
    if (has >= need)
        return 0;
    snprintf(why, sizeof(why), "found an MTU of %u, expected %u for the fabric's packets", has,
             need);
    if (*s->iface)
        snprintf(why + strlen(why), sizeof(why) - strlen(why), " (ip link set %s mtu %u)", s->iface,
                 need);
    return port_refuse(s->text, 0, why);
}

/* Makes the driver's pool: af_xdp's buffers fit a page with DPDK's headers, ours are longer. */
static struct rte_mempool *make_pages(struct ethdev *e, struct rte_mempool *frames)
{
    char name[RTE_MEMPOOL_NAMESIZE];

    snprintf(name, sizeof(name), "pages%u", e->id);
    T_ASSERT(!e->pages, "a device gets a second pool of pages");
    e->frames = frames;
    e->pages = rte_pktmbuf_pool_create(name, XDP_PAGES, 0, 0, XDP_ROOM, SOCKET_ID_ANY);
    return e->pages;
}

static int ethdev_start(struct ethdev *e, const struct port_spec *s, unsigned mtu,
                        struct rte_mempool *pool)
{
    struct rte_eth_conf conf = {0};
    uint16_t rxd = ETHDEV_RING, txd = ETHDEV_RING, id = e->id;
    int rc = rte_eth_dev_configure(id, 1, 1, &conf), refused = 0;

    if (!rc && port_spec_is_xdp(s) && !(pool = make_pages(e, pool)))
        rc = -rte_errno;
    if (!rc)
        rc = rte_eth_dev_adjust_nb_rx_tx_desc(id, &rxd, &txd);
    if (!rc)
        rc = rte_eth_rx_queue_setup(id, 0, rxd, rte_eth_dev_socket_id(id), NULL, pool);
    if (!rc)
        rc = rte_eth_tx_queue_setup(id, 0, txd, rte_eth_dev_socket_id(id), NULL);
    if (!rc)
        refused = ethdev_set_mtu(id, s, mtu + PORT_HEADERS_MAX);
    if (!rc && !refused)
        rc = rte_eth_dev_start(id);
    if (rc)
        return port_refuse(s->text, rc, "found a device that does not start");
    if (!refused)
        rte_eth_promiscuous_enable(id); /* may fail: many devices receive all frames */
    return refused;
}

/* Warns of a veth or tap: TCP hangs behind one that omits checksums, while ping works. Only the other
 * end knows whether it does. */
static void warn_of_checksums(const struct port_spec *s)
{
    if (*s->iface && port_kernel_omits_checksums(s->iface))
        fprintf(stderr,
                "tributary: port \"%s\": %s leaves checksums to its receiver: unless its other end "
                "does not, TCP and UDP from there are dropped; ethtool -K %s tx off here, and the "
                "same with the other end's name there\n",
                s->text, s->iface, s->iface);
}

/* The port of a device by its arguments: "net_tap0,iface=x", "01:00.0,...". */
static int ethdev_find(const char *devargs, uint16_t *id)
{
    char name[RTE_ETH_NAME_MAX_LEN], pci[RTE_ETH_NAME_MAX_LEN + 8];

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(devargs, ","), devargs);
    snprintf(pci, sizeof(pci), "0000:%s", name);
    return rte_eth_dev_get_port_by_name(name, id) && rte_eth_dev_get_port_by_name(pci, id) ? -ENODEV
                                                                                           : 0;
}

int io_port_outside(struct io_port **p, const char *text, const char *dir, unsigned n, unsigned mtu,
                    struct rte_mempool *pool)
{
    uint16_t id = RTE_MAX_ETHPORTS;
    struct port_spec s;
    struct ethdev *e;
    int rc = port_spec_read(&s, text, dir, n);

    *p = NULL;
    if (rc)
        return rc;
    if (ethdev_find(s.args, &id)) { /* EAL has probed PCI devices when it started */
        rc = rte_dev_probe(s.args);
        if (rc || ethdev_find(s.args, &id))
            return port_spec_refuse(&s, rc);
    }
    e = calloc(1, sizeof(*e));
    if (!e)
        return -ENOMEM;
    e->port.ops = &ethdev_ops;
    e->id = id;
    e->socket = -1;
    rc = xdp_fits(&s, mtu + PORT_HEADERS_MAX);
    if (!rc)
        rc = ethdev_start(e, &s, mtu, pool);
    if (rc) {
        ethdev_close(&e->port);
        return rc;
    }
    T_ASSERT(e->id < RTE_MAX_ETHPORTS, "a device without a number");
    e->socket = port_kernel_socket(s.iface);
    warn_of_checksums(&s);
    *p = &e->port;
    return 0;
}
