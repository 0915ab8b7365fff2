/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client whose frames' data lie in memory that the peer has mapped. A sent descriptor points at the
 * frame's own data; the mbuf is held until the peer has moved its index past it. A received descriptor
 * yields the mbuf at which it points; a new mbuf replaces it in the ring. So only the peer copies
 * payload. Indices and lengths are read once and checked; a peer that moves an index back gets no more
 * frames.
 */
#include "io/memif/memif.h"

#include "base/assert.h"
#include "machine/shared.h"
#include "roce/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SHARE_BURST 64

static inline void name_data(const struct memif *mf, struct memif_desc *d, struct rte_mbuf *m,
                             uint32_t len)
{
    *d = (struct memif_desc){.region = 1,
                             .length = len,
                             .offset =
                                 (uint32_t)(rte_pktmbuf_mtod(m, const uint8_t *) - mf->share->at)};
}

static inline bool is_shared(const struct memif *mf, const struct rte_mbuf *m)
{
    const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);

    return m->nb_segs == 1 && p >= mf->share->at && p < mf->share->at + mf->share->bytes;
}

int share_post(struct memif *mf, struct memif_queue *q)
{
    for (unsigned i = 0; i <= q->mask; i++) {
        T_ASSERT(!q->held[i], "a descriptor gets a second mbuf");
        q->held[i] = rte_pktmbuf_alloc(mf->pool);
        if (!q->held[i])
            return -ENOMEM;
        frame_reset(q->held[i]);
        name_data(mf, &q->ring->desc[i], q->held[i], MEMIF_BUFFER);
    }
    return 0;
}

void share_drop(struct memif *mf)
{
    if (!mf->held)
        return;
    for (size_t i = 0; i < (size_t)2 * mf->queues << mf->log2_ring; i++) {
        rte_pktmbuf_free(mf->held[i]);
        mf->held[i] = NULL;
    }
}

uint16_t share_rx(struct memif *mf, struct memif_queue *q, struct rte_mbuf **m, uint16_t n,
                  uint16_t avail)
{
    struct rte_mbuf *fresh[SHARE_BURST];
    uint16_t k = 0;

    n = RTE_MIN(RTE_MIN(n, avail), (uint16_t)SHARE_BURST);
    if (unlikely(rte_pktmbuf_alloc_bulk(mf->pool, fresh, n))) {
        mf->port.stats.rx_nobuf += n;
        return 0;
    }
    for (uint16_t i = 0; i < n; i++) {
        unsigned at = (uint16_t)(q->next + i) & q->mask;
        struct memif_desc *d = &q->ring->desc[at];
        uint32_t len = __atomic_load_n(&d->length, __ATOMIC_RELAXED);
        struct rte_mbuf *b = q->held[at];

        T_ASSERT_HOT(b, "a descriptor to be received holds no mbuf");
        q->held[at] = fresh[i];
        if (likely(len && len <= MEMIF_BUFFER && !(d->flags & MEMIF_DESC_NEXT))) {
            b->data_len = (uint16_t)len;
            b->pkt_len = len;
            m[k++] = b;
        } else {
            mf->port.stats.rx_bad++;
            rte_pktmbuf_free(b);
        }
        frame_reset(fresh[i]);
        name_data(mf, d, fresh[i], MEMIF_BUFFER);
    }
    q->next += n;
    __atomic_store_n(&q->ring->head, (uint16_t)(q->next + q->mask + 1), __ATOMIC_RELEASE);
    mf->port.stats.rx += k;
    return k;
}

/* Copies a frame into one segment that the peer can read. NULL: the pool is empty. */
static struct rte_mbuf *shared_copy(struct memif *mf, const struct rte_mbuf *m)
{
    struct rte_mbuf *c = frame_alloc(mf->pool);

    if (!c)
        return NULL;
    for (; m; m = m->next)
        memcpy(rte_pktmbuf_append(c, m->data_len), rte_pktmbuf_mtod(m, const void *), m->data_len);
    return c;
}

static inline bool may_pass(const struct rte_mbuf *m)
{
    return m->pkt_len <= MEMIF_BUFFER &&
           !(frame_meta((struct rte_mbuf *)(uintptr_t)m)->flags & FRAME_F_VIRTUAL);
}

/* Frees the mbufs that the peer has consumed, up to tail. */
static void give_back(struct memif_queue *q, uint16_t tail)
{
    struct rte_mbuf *m[SHARE_BURST];
    unsigned n = 0;

    for (; q->done != tail; q->done++) {
        T_ASSERT_HOT(q->held[q->done & q->mask], "a descriptor that was sent holds no mbuf");
        m[n++] = q->held[q->done & q->mask];
        q->held[q->done & q->mask] = NULL;
        if (n == SHARE_BURST) {
            rte_pktmbuf_free_bulk(m, n);
            n = 0;
        }
    }
    rte_pktmbuf_free_bulk(m, n);
}

uint16_t share_tx(struct memif *mf, struct memif_queue *q, struct rte_mbuf **m, uint16_t n)
{
    uint16_t tail = __atomic_load_n(&q->ring->tail, __ATOMIC_ACQUIRE), slot = q->next, k = 0;

    if ((uint16_t)(slot - tail) > (uint16_t)(slot - q->done)) /* the peer's index is invalid */
        return 0;
    give_back(q, tail);
    for (; k < n && (uint16_t)(slot - tail) <= q->mask; k++) {
        struct rte_mbuf *b = m[k];

        if (unlikely(!may_pass(b))) {
            mf->port.stats.tx_bad++;
            rte_pktmbuf_free(b);
            continue;
        }
        if (unlikely(!is_shared(mf, b))) {
            b = shared_copy(mf, b);
            if (!b)
                break;
            rte_pktmbuf_free(m[k]);
        }
        name_data(mf, &q->ring->desc[slot & q->mask], b, b->pkt_len);
        T_ASSERT_HOT(!q->held[slot & q->mask], "a descriptor is filled whose mbuf is still held");
        q->held[slot++ & q->mask] = b;
    }
    mf->port.stats.tx += (uint16_t)(slot - q->next);
    q->next = slot;
    __atomic_store_n(&q->ring->head, slot, __ATOMIC_RELEASE);
    return k;
}

/* ---- the frames ---- */

int io_frames_create(struct io_frames *f, const char *name, unsigned n)
{
    int rc;

    T_ASSERT(n, "a pool of no frames");
    *f = (struct io_frames){.bytes = frame_data_bytes(n)};
    f->at = shared_make("frames", f->bytes, &f->fd);
    if (f->at)
        f->pool = frame_pool_create_over(name, n, f->at);
    if (f->pool)
        return 0;
    rc = f->at ? -ENOMEM : f->fd;
    io_frames_destroy(f);
    return rc;
}

void io_frames_destroy(struct io_frames *f)
{
    rte_mempool_free(f->pool);
    if (f->at)
        munmap(f->at, f->bytes);
    if (f->fd >= 0)
        close(f->fd);
    *f = (struct io_frames){.fd = -1};
}

void io_frames_orphan(struct io_frames *f, bool fds)
{
    if (f->at)
        (void)mmap(f->at, f->bytes, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS,
                   -1, 0);
    if (fds && f->fd >= 0)
        close(f->fd);
    *f = (struct io_frames){.fd = -1};
}
