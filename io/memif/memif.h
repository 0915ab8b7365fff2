/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One memif: its control channel (memif_conn.c, memif_client.c) and its rings (memif_ring.c). The peer
 * is not trusted: it writes lengths, offsets and indices, in messages and shared memory, and every use
 * checks them.
 */
#ifndef TRIB_IO_MEMIF_H
#define TRIB_IO_MEMIF_H

#include "io/memif/memif_wire.h"
#include "io/port/port_impl.h"

#include <stddef.h>

#define MEMIF_MAX_LOG2 12
#define MEMIF_BUFFER   4608 /* FRAME_ROOM: each frame fits one descriptor */
#define MEMIF_REGIONS  4
#define MEMIF_SETUP_NS 1000000000 /* ends a connection that is not up by then, */
#define MEMIF_SAYS_NS  20000000   /* or that has sent nothing by then while others wait */
#define MEMIF_SECRET   24

enum memif_state { MEMIF_DOWN, MEMIF_GREETED, MEMIF_UP };

/* Our side of one ring. */
struct memif_queue {
    struct memif_ring *ring;
    uint16_t mask;
    uint16_t next; /* rx: next descriptor to receive; tx: next to fill */
    uint16_t seen; /* next may reach this, by the peer's index as last read */
    /* With `share`: mbuf of each descriptor, and the first one sent whose mbuf is not freed yet. */
    struct rte_mbuf **held;
    uint16_t done;
};

struct memif {
    struct io_port port;
    struct memif_queue rx[RIM_QUEUES], tx[RIM_QUEUES];
    uint16_t n_rx, n_tx;
    enum memif_state state;
    bool listener;
    uint8_t log2_ring;
    uint16_t queues;
    uint32_t id;
    int listen_fd, fd;
    int64_t accepted_ns;
    uint16_t n_regions;
    struct memif_region {
        uint8_t *addr;
        uint64_t size;
    } region[MEMIF_REGIONS];
    struct rte_mempool *pool;
    const struct io_frames *share; /* its memory is region 1 */
    struct rte_mbuf **held;        /* the mbufs of all queues */
    struct port_page *page;        /* the client's own; the server maps it while connected */
    int page_fd;                   /* of the client's page */
    bool has_secret;
    char socket[108], name[MEMIF_NAME], secret[MEMIF_SECRET];
};

static inline uint8_t *memif_at(const struct memif *mf, const struct memif_desc *d, uint32_t *len)
{
    /* Reads each field once: the peer may change it between the check and the use. */
    uint16_t r = __atomic_load_n(&d->region, __ATOMIC_RELAXED);
    uint32_t off = __atomic_load_n(&d->offset, __ATOMIC_RELAXED);
    uint32_t n = __atomic_load_n(&d->length, __ATOMIC_RELAXED);

    if (r >= mf->n_regions || (uint64_t)off + n > mf->region[r].size)
        return NULL;
    *len = n;
    return mf->region[r].addr + off;
}

/* memif_ring.c */
uint16_t memif_rx(struct io_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n);
uint16_t memif_tx(struct io_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n);
uint16_t memif_pending(const struct io_port *p, uint16_t queue);
uint16_t memif_arrived(const struct io_port *p, uint16_t queue);
bool memif_crowded(const struct io_port *p, uint16_t queue);
uint16_t memif_untaken(const struct io_port *p, uint16_t queue);
/* Sizes of the client's region: one ring with its descriptors; all rings and buffers. */
size_t memif_ring_bytes(const struct memif *mf);
size_t memif_region_bytes(const struct memif *mf);
int memif_region_init(struct memif *mf); /* 0 or -ENOMEM */
/* Call it once both ends are connected: offers buffers, disables interrupts. */
void memif_rings_start(struct memif *mf);

/* memif_conn.c */
void memif_drop(struct memif *mf);
int memif_send(struct memif *mf, const struct memif_msg *msg, int fd);
int memif_refuse(struct memif *mf, const char *reason); /* returns -EPROTO */
void memif_add_region(struct memif *mf, void *at, uint64_t size);

/* memif_client.c */
void memif_client_connect(struct memif *mf);
int memif_client(struct memif *mf,
                 const struct memif_msg *msg); /* handles a message; 0 or -errno */
void memif_client_refused(struct memif *mf, const struct memif_msg *msg);

/* memif_page.c */
int memif_page_make(struct memif *mf); /* client; 0 or -errno */
/* The message that passes the page on. False: there is no page, or the server takes no more regions. */
bool memif_page_message(const struct memif *mf, const struct memif_msg *hello,
                        struct memif_msg *msg);
int memif_page_take(struct memif *mf, const struct memif_msg *msg, int fd); /* server */
void memif_page_drop(struct memif *mf);
void memif_page_orphan(struct memif *mf, bool fds);

/* memif_share.c: rings of a client whose buffers are frames */
uint16_t share_rx(struct memif *mf, struct memif_queue *q, struct rte_mbuf **m, uint16_t n,
                  uint16_t avail);
uint16_t share_tx(struct memif *mf, struct memif_queue *q, struct rte_mbuf **m, uint16_t n);
int share_post(struct memif *mf, struct memif_queue *q); /* empty frames into all descriptors */
void share_drop(struct memif *mf);                       /* frees every frame that the ring holds */

#endif
