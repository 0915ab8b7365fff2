/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any ethdev as a port to the outside: one queue pair, polled. A frame received in several segments
 * is made one segment.
 */
#include "io/port_impl.h"
#include "roce/frame.h"

#include <errno.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define ETHDEV_RING 512

struct ethdev {
    struct io_port port;
    uint16_t id;
    bool up;
};

static uint16_t ethdev_rx(struct io_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
    struct ethdev *e = (struct ethdev *)p;
    uint16_t got = queue ? 0 : rte_eth_rx_burst(e->id, 0, m, n), k = 0;

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

/* Frames must be one segment for drivers that cannot gather; shared payloads are copied for the
 * wire here. */
static bool ethdev_prepare(struct rte_mbuf *m)
{
    if (frame_meta(m)->flags & FRAME_F_VIRTUAL)
        return false;
    return m->nb_segs == 1 || !rte_pktmbuf_linearize(m);
}

static uint16_t ethdev_tx(struct io_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
    struct ethdev *e = (struct ethdev *)p;
    uint16_t k = 0;

    if (queue)
        return 0;
    for (; k < n; k++) {
        if (unlikely(m[k]->nb_segs > 1 && rte_mbuf_refcnt_read(m[k]) > 1)) {
            struct rte_mbuf *c = rte_pktmbuf_copy(m[k], m[k]->pool, 0, UINT32_MAX);

            if (!c)
                break;
            *frame_meta(c) = *frame_meta(m[k]);
            rte_pktmbuf_free(m[k]);
            m[k] = c;
        }
        if (unlikely(!ethdev_prepare(m[k]))) {
            p->stats.tx_bad++;
            rte_pktmbuf_free(m[k]);
            continue;
        }
        if (!rte_eth_tx_burst(e->id, 0, &m[k], 1))
            break;
        p->stats.tx++;
    }
    return k;
}

static bool ethdev_up(struct io_port *p)
{
    struct ethdev *e = (struct ethdev *)p;
    struct rte_eth_link link = {0};
    bool was = e->up;

    e->up = !rte_eth_link_get_nowait(e->id, &link) && link.link_status == RTE_ETH_LINK_UP;
    p->stats.connects += e->up && !was;
    return e->up;
}

static int ethdev_fd(const struct io_port *p)
{
    (void)p;
    return -1;
}

/* A NIC's ring cannot be inspected without receiving: callers poll. */
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

static int ethdev_start(uint16_t id, struct rte_mempool *pool)
{
    struct rte_eth_conf conf = {0};
    uint16_t rxd = ETHDEV_RING, txd = ETHDEV_RING;
    int rc = rte_eth_dev_configure(id, 1, 1, &conf);

    if (!rc)
        rc = rte_eth_dev_adjust_nb_rx_tx_desc(id, &rxd, &txd);
    if (!rc)
        rc = rte_eth_rx_queue_setup(id, 0, rxd, rte_eth_dev_socket_id(id), NULL, pool);
    if (!rc)
        rc = rte_eth_tx_queue_setup(id, 0, txd, rte_eth_dev_socket_id(id), NULL);
    /* Many virtual devices have no MTU and no promiscuous mode: they receive every frame. */
    if (!rc)
        rte_eth_dev_set_mtu(id, 4200);
    if (!rc)
        rc = rte_eth_dev_start(id);
    if (!rc)
        rte_eth_promiscuous_enable(id);
    return rc;
}

/* ---- from the conf's text ---- */

static bool is_pci(const char *spec)
{
    unsigned domain, bus, slot, fn;

    return sscanf(spec, "%x:%x:%x.%x", &domain, &bus, &slot, &fn) == 4 ||
           sscanf(spec, "%x:%x.%x", &bus, &slot, &fn) == 3;
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

static int refuse(const char *spec, int rc, const char *why)
{
    fprintf(stderr, "tributary: port \"%s\": %s%s%s\n", spec, why, rc ? ": " : "",
            rc ? rte_strerror(-rc) : "");
    return rc ? rc : -EINVAL;
}

/*
 * Removes a socket without a listener, which a killed process left behind. Any other file stays.
 */
static int clear_socket(const char *spec, const char *path)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct stat st;
    int fd, rc;

    if (strlen(path) >= sizeof(sa.sun_path))
        return refuse(spec, -ENAMETOOLONG, "found a path too long for a socket");
    memcpy(sa.sun_path, path, strlen(path));
    if (lstat(path, &st))
        return 0;
    if (!S_ISSOCK(st.st_mode))
        return refuse(spec, -EEXIST, "found something that is no socket at its path");
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return refuse(spec, -errno, "cannot look at its socket");
    rc = connect(fd, (struct sockaddr *)&sa, sizeof(sa)) ? -errno : 0;
    close(fd);
    if (rc != -ECONNREFUSED)
        return refuse(spec, -EADDRINUSE, "found another process that listens at its socket");
    unlink(path);
    return 0;
}

/* Device arguments of "vhost:PATH". We listen, so that guests may come and go. */
static int vhost_args(const char *spec, const char *dir, unsigned n, char *args, size_t size)
{
    const char *given = spec + strlen("vhost:"), *slash;
    char path[512], parent[512];
    int rc;

    if (strchr(given, ','))
        return refuse(spec, 0, "found a comma in the path, expected none");
    snprintf(path, sizeof(path), "%s%s%s", given[0] == '/' ? "" : dir, given[0] == '/' ? "" : "/",
             given);
    slash = strrchr(path, '/');
    snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path) + 1, path);
    if (access(parent, W_OK | X_OK)) {
        rc = -errno;
        fprintf(stderr, "tributary: port \"%s\": cannot make a socket in %s: %s\n", spec, parent,
                strerror(-rc));
        return rc;
    }
    rc = clear_socket(spec, path);
    if (!rc && snprintf(args, size, "net_vhost_port%u,iface=%s,queues=1", n, path) >= (int)size)
        rc = refuse(spec, -ENAMETOOLONG, "found a path too long for a socket");
    return rc;
}

int io_port_outside(struct io_port **p, const char *spec, const char *dir, unsigned n,
                    struct rte_mempool *pool)
{
    uint16_t id = RTE_MAX_ETHPORTS;
    struct ethdev *e;
    char args[512];
    int rc = 0;

    *p = NULL;
    if (!strncmp(spec, "vhost:", 6))
        rc = vhost_args(spec, dir, n, args, sizeof(args));
    else
        snprintf(args, sizeof(args), "%s", spec);
    if (rc)
        return rc;
    if (ethdev_find(args, &id)) { /* EAL has probed PCI devices at its start */
        rc = rte_dev_probe(args);
        if (rc || ethdev_find(args, &id))
            return refuse(spec, rc ? rc : -ENODEV,
                          is_pci(spec)
                              ? "found no such PCI device bound to a driver that DPDK uses "
                                "(dpdk-devbind.py --status)"
                              : "found a device that DPDK does not make, expected "
                                "vhost:PATH, or net_af_packet, net_tap, net_pcap, "
                                "net_null, net_vhost with a number and their arguments");
    }
    rc = ethdev_start(id, pool);
    if (rc)
        return refuse(spec, rc, "found a device that does not start");
    e = calloc(1, sizeof(*e));
    if (!e)
        return -ENOMEM;
    e->port.ops = &ethdev_ops;
    e->id = id;
    *p = &e->port;
    return 0;
}
