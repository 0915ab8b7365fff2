/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port of a process: memif between processes, or any ethdev by DPDK device arguments. trib-switch
 * and the HCA share it. Only io/ uses EAL, ethdev and sockets.
 *
 * memif is our own implementation of the standard protocol (version 2.0; memif_conn.c, memif_ring.c).
 * DPDK 22.11's net_memif unmaps a dead peer's regions in EAL's interrupt thread while a worker may be
 * in rx or tx, and Debian's DPDK allows 32 ethdevs in a process: eight hosts with four process slots
 * each. Here the owner of a port does everything in its own thread, so a peer may die at any
 * instruction.
 */
#ifndef TRIB_IO_PORT_H
#define TRIB_IO_PORT_H

#include <rte_mbuf.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Initialises EAL for a process of Tributary: --no-huge unless enough huge pages are free, --no-pci
 * unless `extra` names devices, no signal handlers. mem_mb: memory that pools will need. telemetry:
 * "DIR/NAME" gives the process a telemetry socket DIR/dpdk/NAME/dpdk_telemetry.v2; NULL: none. The
 * calling thread becomes lcore 0 and keeps its affinity. Later calls in a process do nothing and
 * return 0. 0 or -errno with a message on stderr.
 */
int io_eal_init(const char *prog, const char *telemetry, unsigned mem_mb, const char *const *extra,
                unsigned n_extra);
/*
 * The same in another program's process, which may fork: uses no huge pages, and makes EAL's memory,
 * which DPDK maps shared, private, so that a child continues with a copy. Changes nothing if the program
 * has initialised EAL itself.
 */
int io_eal_init_private(const char *prog, unsigned mem_mb);
bool io_eal_is_private(void); /* whether the child of a fork may use EAL */
void io_eal_cleanup(void);

struct io_port;
struct port_page;

/*
 * A pool of frames whose data are in a memory file. A memif client with such a pool lets its peer map
 * the file, and copies neither frames that it sends nor frames that it receives; the mbufs stay private.
 * The peer can still change a received frame while it is read. The pool must have more frames than all
 * rings together.
 */
struct io_frames {
    int fd; /* -1: none */
    uint8_t *at;
    size_t bytes;
    struct rte_mempool *pool;
};
int io_frames_create(struct io_frames *f, const char *name, unsigned n); /* 0 or -errno */
void io_frames_destroy(struct io_frames *f);
void io_frames_orphan(struct io_frames *f, bool fds); /* as io_port_orphan() */

/* The listener makes `socket`, replacing a stale one, and removes it at close. The client provides the
 * memory, so its log2_ring applies. */
struct memif_cfg {
    const char *socket;
    bool listener;
    uint32_t id;
    uint16_t queues;
    uint8_t log2_ring;
    const char *name;
    struct rte_mempool *pool;
    const struct io_frames *share; /* client, instead of pool; NULL: frames are copied */
    const char *secret; /* 24 bytes that the client sends and the server checks; NULL: none */
};

#define RIM_QUEUES 4 /* queues of a memif at most, in each direction */

int io_port_memif(struct io_port **p, const struct memif_cfg *cfg);
/*
 * Opens a port to the outside as a conf names it: "vhost:PATH" (a socket for a guest's virtio NIC; a
 * relative PATH is below dir), a DPDK vdev with its arguments ("net_af_packet0,iface=eth1"), or a PCI
 * address. n: number of the port in this process. mtu: the fabric's; refuses a device whose own MTU is
 * too small for the fabric's packets and cannot be raised. One queue pair, polled. 0 or -errno with a
 * message on stderr.
 */
int io_port_outside(struct io_port **p, const char *text, const char *dir, unsigned n, unsigned mtu,
                    struct rte_mempool *pool);
/* Bytes of a packet beyond the fabric's MTU: IPv6, UDP, BTH, the longest headers after it, ICRC. */
#define PORT_HEADERS_MAX 104u
int io_port_mac(const struct io_port *p,
                uint8_t mac[6]); /* of a port to the outside; 0 or -errno */
void io_port_close(struct io_port *p);

/*
 * Connects, accepts, and detects the loss of the peer; call it periodically (a memif needs three calls
 * at each end to come up). Returns whether the port is up. Reports a peer that disconnects and
 * reconnects at once as down once.
 */
bool io_port_up(struct io_port *p);
/*
 * For the child of a fork, instead of io_port_close(), because the port belongs to the parent. Sends the
 * peer no message, and replaces the memory shared with it by private empty memory, so that no use of it
 * reaches parent or peer. fds: this process has copies of the port's descriptors; closes them.
 */
void io_port_orphan(struct io_port *p, bool fds);
/* Descriptor that becomes readable when io_port_up() has work; -1: there is none, poll instead. */
int io_port_fd(const struct io_port *p);
/* Whether io_port_up() has work without its descriptor being readable: a connection has timed out. */
bool io_port_expired(const struct io_port *p);
/* The page that both ends of a memif share (shared.h). The client has it from the start, the server
 * while the port is up. NULL: the peer has none. */
struct port_page *io_port_page(const struct io_port *p);

/*
 * Receive and send. Only the port's owner may call these, one thread at a time. tx returns the number of
 * frames accepted; the caller keeps the rest. A frame that can never be sent is freed, counted in tx_bad,
 * and counts as accepted. Received frames are one segment with cleared meta.
 */
uint16_t io_port_rx(struct io_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n);
uint16_t io_port_tx(struct io_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n);
/* memif: number of descriptors to receive (0 when down); the peer's running index, which changes when
 * the peer has sent more. */
uint16_t io_port_pending(const struct io_port *p, uint16_t queue);
uint16_t io_port_arrived(const struct io_port *p, uint16_t queue);
/* Whether the peer has filled most of a ring and may be waiting for room. */
bool io_port_crowded(const struct io_port *p, uint16_t queue);
/* memif client: frames sent that the peer has not received yet; 0 when down, and for other ports. */
uint16_t io_port_untaken(const struct io_port *p, uint16_t queue);

/* rx_bad: descriptors out of bounds, or frames longer than a frame's room. tx_bad: frames too long, or
 * without bytes (FRAME_F_VIRTUAL). */
struct io_port_stats {
    uint64_t rx, tx, rx_bad, tx_bad, rx_nobuf, connects;
    uint64_t missed;  /* outside: frames for which the device's ring had no room */
    uint64_t refused; /* connections that ended before they were up */
};
const struct io_port_stats *io_port_stats(const struct io_port *p);
/* Server: pid of the connected process; 0: unknown. */
int io_port_peer(const struct io_port *p);
/* Server: pid behind the last refused connection (stats.refused), and the reason. Client: why the server
 * last refused it; *why NULL: it has not. */
int io_port_refused(const struct io_port *p, const char **why);

#endif
