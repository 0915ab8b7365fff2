/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port of a process: memif between processes, and any ethdev by DPDK device arguments. Only io/
 * uses EAL, ethdev and sockets; trib-switch and the HCA share it.
 *
 * memif is our own implementation of the standard protocol (version 2.0; memif_conn.c,
 * memif_ring.c). net_memif of DPDK 22.11 unmaps a dead peer's regions in EAL's interrupt thread
 * while a worker may be in rx or tx, and Debian's DPDK allows 32 ethdevs in a process, which eight
 * hosts with four process slots each use up. Here the owner of a port does everything in its own
 * thread: a peer may die at any instruction.
 */
#ifndef TRIB_IO_PORT_H
#define TRIB_IO_PORT_H

#include <rte_mbuf.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Initialises EAL for a process of Tributary: --no-huge when not enough huge pages are free,
 * --no-pci unless `extra` names devices, no signal handlers. mem_mb: memory that pools will need.
 * telemetry: "DIR/NAME" gives the process a telemetry socket DIR/dpdk/NAME/dpdk_telemetry.v2; NULL:
 * none. The calling thread becomes lcore 0 and keeps its affinity. Once per process: later calls
 * return 0. 0 or -errno with a message on stderr.
 */
int io_eal_init(const char *prog, const char *telemetry, unsigned mem_mb, const char *const *extra,
                unsigned n_extra);
/*
 * The same for another program's process, which may fork: no huge pages, and EAL's memory, which
 * DPDK maps shared, becomes private, so that a child continues with a copy. An EAL that the program
 * has initialised itself stays unchanged.
 */
int io_eal_init_private(const char *prog, unsigned mem_mb);
bool io_eal_is_private(void); /* whether a child of a fork may use EAL */
void io_eal_cleanup(void);

struct io_port;
struct port_page;

/*
 * A pool of frames whose data are in a memory file. A memif client with such a pool lets its peer
 * map the file and copies neither the frames that it sends nor those that it receives; the mbufs
 * stay private. The peer can still change a received frame while it is read. The pool must have
 * more frames than all rings together.
 */
struct io_frames {
    int fd; /* -1: none */
    uint8_t *at;
    size_t bytes;
    struct rte_mempool *pool;
};
int io_frames_create(struct io_frames *f, const char *name, unsigned n); /* 0 or -errno */
void io_frames_destroy(struct io_frames *f);
void io_frames_orphan(struct io_frames *f, bool fds); /* see io_port_orphan() */

/* The listener owns `socket`, replaces a stale one and removes it at close. The client provides the
 * memory: its log2_ring applies. */
struct memif_cfg {
    const char *socket;
    bool listener;
    uint32_t id;
    uint16_t queues;
    uint8_t log2_ring;
    const char *name;
    struct rte_mempool *pool;
    const struct io_frames *share; /* client: instead of pool; NULL: frames are copied */
    const char
        *secret; /* of 24 bytes: what the client presents and the server asks for; NULL: none */
};

#define RIM_QUEUES 4 /* of a memif at most, each direction */

int io_port_memif(struct io_port **p, const struct memif_cfg *cfg);
/*
 * A port to the outside as a conf names it: "vhost:PATH" (a socket that a guest's virtio NIC is
 * connected to; a relative PATH is below dir), a DPDK vdev with its arguments
 * ("net_af_packet0,iface=eth1"), or a PCI address. n: its number among those of this process. mtu: the
 * fabric's; a device whose own MTU is too small for its packets, and cannot be raised, is refused. One
 * queue pair, polled. 0 or -errno with a message on stderr.
 */
int io_port_outside(struct io_port **p, const char *text, const char *dir, unsigned n, unsigned mtu,
                    struct rte_mempool *pool);
/* What a packet of the fabric has beyond its MTU: IPv6, UDP, BTH, the longest of what follows it, ICRC. */
#define PORT_HEADERS_MAX 104u
int io_port_mac(const struct io_port *p,
                uint8_t mac[6]); /* of a port to the outside; 0 or -errno */
void io_port_close(struct io_port *p);

/*
 * Connects, accepts and detects the loss of the peer; call it periodically (a memif needs three
 * calls at each end to come up). Returns whether the port is up. A peer that disconnects and
 * reconnects at once is reported as down once.
 */
bool io_port_up(struct io_port *p);
/*
 * For the child of a fork, instead of io_port_close(), because the port belongs to the parent. The
 * peer gets no message; the memory shared with it becomes private (and empty), so that no use of it
 * can reach parent or peer. `fds`: this process has copies of the port's descriptors; they are
 * closed.
 */
void io_port_orphan(struct io_port *p, bool fds);
/* Becomes readable when io_port_up() has work; -1: no descriptor, call it again later. */
int io_port_fd(const struct io_port *p);
/* io_port_up() has work without that: a peer that connected a second ago has not finished. */
bool io_port_expired(const struct io_port *p);
/* The page that a memif's two ends share (shared.h): the client's from the start, the server's while
 * the port is up. NULL: the peer has none. */
struct port_page *io_port_page(const struct io_port *p);

/*
 * Callable only by the port's owner, one thread at a time. tx returns the number of frames
 * accepted; the rest stay with the caller. A frame that can never be sent counts as accepted; it is
 * freed and counted. Frames received are one segment with cleared meta.
 */
uint16_t io_port_rx(struct io_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n);
uint16_t io_port_tx(struct io_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n);
/* memif: number of descriptors to receive (0 when down), and the peer's running index, which
 * changes when it has sent more. */
uint16_t io_port_pending(const struct io_port *p, uint16_t queue);
uint16_t io_port_arrived(const struct io_port *p, uint16_t queue);
/* The peer has filled most of a ring and may be waiting for room. */
bool io_port_crowded(const struct io_port *p, uint16_t queue);
/* memif client: frames sent that the peer has not received; 0 when down, and of other ports. */
uint16_t io_port_untaken(const struct io_port *p, uint16_t queue);

/* rx_bad: descriptors out of bounds, or frames longer than a frame's room. tx_bad: too long, or
 * length-only. */
struct io_port_stats {
    uint64_t rx, tx, rx_bad, tx_bad, rx_nobuf, connects;
    uint64_t missed;  /* of a port to the outside: its device's ring had no room for them */
    uint64_t refused; /* connections that were ended before they were up */
};
const struct io_port_stats *io_port_stats(const struct io_port *p);
/* Of a server: the process at the other end; 0: unknown. */
int io_port_peer(const struct io_port *p);
/* Whom the last connection belonged to that was refused (stats.refused), and why. Of a client: why the
 * server last refused it; *why NULL: it has not. */
int io_port_refused(const struct io_port *p, const char **why);

#endif
