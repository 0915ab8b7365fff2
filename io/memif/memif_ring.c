/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rings of a memif. Each side copies a frame once, unless it shares its frames' data (memif_share.c).
 * Shared memory never holds mbufs, so a peer that dies or misbehaves cannot lose one.
 *
 * Order, per ring and direction: the sender's store-release of its index pairs with the receiver's
 * load-acquire.
 */
#include "base/assert.h"
#include "io/memif/memif.h"
#include "roce/frame.h"

#include <string.h>

#define AHEAD 8 /* frames */

/* Copies into a buffer that the other core used last. `rep movsb` overwrites its cache lines without
 * fetching them first, but starts slowly. */
static __rte_noinline void copy_any(uint8_t *dst, const uint8_t *src, size_t n)
{
#ifdef __x86_64__
    if (n >= 512) {
        __asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(n) : : "memory");
        return;
    }
#endif
    rte_memcpy(dst, src, n);
}

static __rte_always_inline void memif_ring_copy(uint8_t *dst, const uint8_t *src, size_t n)
{
    if (n - 32 > 32) {
        copy_any(dst, src, n);
        return;
    }
    memcpy(dst, src, 32); /* both ends of the frame; the copies may overlap */
    memcpy(dst + n - 32, src + n - 32, 32);
}

size_t memif_ring_bytes(const struct memif *mf)
{
    return sizeof(struct memif_ring) + (sizeof(struct memif_desc) << mf->log2_ring);
}

size_t memif_region_bytes(const struct memif *mf)
{
    size_t buffers = mf->share ? 0 : (size_t)MEMIF_BUFFER << mf->log2_ring;

    return 2u * mf->queues * (memif_ring_bytes(mf) + buffers);
}

/* Lays out the region: all rings (C2S, then S2C), then all buffers in the same order. */
int memif_region_init(struct memif *mf)
{
    uint8_t *base = mf->region[0].addr;
    size_t buf = 2u * mf->queues * memif_ring_bytes(mf);
    int rc = 0;

    for (unsigned i = 0; i < 2u * mf->queues; i++) {
        struct memif_ring *r = (struct memif_ring *)(base + i * memif_ring_bytes(mf));
        struct memif_queue *q = i < mf->queues ? &mf->tx[i] : &mf->rx[i - mf->queues];

        r->cookie = MEMIF_COOKIE;
        *q = (struct memif_queue){.ring = r, .mask = (uint16_t)((1u << mf->log2_ring) - 1)};
        if (mf->share) {
            q->held = mf->held + ((size_t)i << mf->log2_ring);
            if (i >= mf->queues && !rc)
                rc = share_post(mf, q);
            continue;
        }
        for (unsigned s = 0; s < 1u << mf->log2_ring; s++, buf += MEMIF_BUFFER)
            r->desc[s] = (struct memif_desc){.length = MEMIF_BUFFER, .offset = (uint32_t)buf};
    }
    mf->n_tx = mf->n_rx = mf->queues;
    return rc;
}

void memif_rings_start(struct memif *mf)
{
    for (unsigned i = 0; i < mf->n_tx; i++)
        mf->tx[i].next = mf->tx[i].seen = 0;
    for (unsigned i = 0; i < mf->n_rx; i++) {
        struct memif_queue *q = &mf->rx[i];

        q->next = q->seen = 0;
        q->ring->flags = MEMIF_RING_MASK_INT;
        if (!mf->listener) /* a client's receive buffers start empty */
            __atomic_store_n(&q->ring->head, (uint16_t)(q->mask + 1), __ATOMIC_RELEASE);
    }
}

/* The index that the peer advances when it sends to us. */
static inline uint16_t *sent_index(const struct memif *mf, const struct memif_queue *q)
{
    return mf->listener ? &q->ring->head : &q->ring->tail;
}

uint16_t memif_arrived(const struct io_port *p, uint16_t queue)
{
    const struct memif *mf = (const struct memif *)p;

    if (mf->state != MEMIF_UP || queue >= mf->n_rx)
        return 0;
    return __atomic_load_n(sent_index(mf, &mf->rx[queue]), __ATOMIC_ACQUIRE);
}

uint16_t memif_pending(const struct io_port *p, uint16_t queue)
{
    const struct memif *mf = (const struct memif *)p;
    uint16_t n;

    if (mf->state != MEMIF_UP || queue >= mf->n_rx)
        return 0;
    n = (uint16_t)(memif_arrived(p, queue) - mf->rx[queue].next);
    return n <= mf->rx[queue].mask + 1u ? n : 0;
}

bool memif_crowded(const struct io_port *p, uint16_t queue)
{
    const struct memif *mf = (const struct memif *)p;
    uint16_t n = memif_pending(p, queue);

    return n && n > mf->rx[queue].mask / 4 * 3;
}

uint16_t memif_untaken(const struct io_port *p, uint16_t queue)
{
    const struct memif *mf = (const struct memif *)p;
    const struct memif_queue *q = &mf->tx[queue];
    uint16_t n;

    if (mf->state != MEMIF_UP || queue >= mf->n_tx || mf->listener)
        return 0;
    n = (uint16_t)(q->next - __atomic_load_n(&q->ring->tail, __ATOMIC_ACQUIRE));
    return n <= q->mask + 1u ? n : 0; /* the peer's index is invalid */
}

/* Returns received descriptors to the sender. */
static inline void rx_release(struct memif *mf, struct memif_queue *q, uint16_t used)
{
    struct memif_ring *r = q->ring;

    if (mf->listener) {
        q->next += used;
        __atomic_store_n(&r->tail, q->next, __ATOMIC_RELEASE);
        return;
    }
    for (uint16_t i = 0; i < used; i++)
        r->desc[(uint16_t)(q->next + i) & q->mask].length = MEMIF_BUFFER;
    T_ASSERT_HOT(used <= q->mask + 1u, "more descriptors go back than the ring has");
    q->next += used;
    __atomic_store_n(&r->head, (uint16_t)(q->next + q->mask + 1), __ATOMIC_RELEASE);
}

static uint16_t rx_bufs(struct memif *mf, struct rte_mbuf **m, uint16_t n)
{
    uint16_t got = 0;

    if (likely(!rte_mempool_get_bulk(mf->pool, (void **)m, n)))
        return n;
    while (got < n && (m[got] = rte_mbuf_raw_alloc(mf->pool)))
        got++;
    mf->port.stats.rx_nobuf += n - got;
    return got;
}

/* A descriptor's fields, read once: the peer may change them between the check and the use. */
struct desc_buf {
    uint8_t *at; /* NULL: outside of all regions */
    uint32_t len;
    uint16_t flags;
};

static inline struct desc_buf desc_buf_of(const struct memif *mf, const struct memif_desc *d)
{
    struct desc_buf p = {.flags = __atomic_load_n(&d->flags, __ATOMIC_RELAXED)};

    p.at = memif_at(mf, d, &p.len);
    return p;
}

/* Reads a later descriptor and prefetches its buffer, which the other core wrote. */
static inline void rx_look(const struct memif *mf, const struct memif_queue *q, uint16_t i,
                           struct desc_buf *ahead)
{
    ahead[i % AHEAD] = desc_buf_of(mf, &q->ring->desc[(uint16_t)(q->next + i) & q->mask]);
    rte_prefetch0(ahead[i % AHEAD].at);
}

static uint16_t rx_burst(struct memif *mf, struct memif_queue *q, struct rte_mbuf **m, uint16_t n,
                         uint16_t avail)
{
    struct desc_buf ahead[AHEAD];
    uint16_t used = 0, k = 0, got;
    uint32_t total = 0;
    bool ok = true, unfinished = false;

    for (uint16_t i = 0; i < RTE_MIN(avail, AHEAD); i++)
        rx_look(mf, q, i, ahead);
    got = rx_bufs(mf, m, RTE_MIN(n, avail));
    for (uint16_t i = 0; i < avail && k < got; i++) {
        struct desc_buf x = ahead[i % AHEAD];

        if (i + AHEAD < avail)
            rx_look(mf, q, (uint16_t)(i + AHEAD), ahead);
        if (likely(x.at && x.len <= m[k]->buf_len - FRAME_HEADROOM - total)) {
            memif_ring_copy((uint8_t *)m[k]->buf_addr + FRAME_HEADROOM + total, x.at, x.len);
            total += x.len;
        } else {
            ok = false;
        }
        unfinished = x.flags & MEMIF_DESC_NEXT;
        if (unlikely(unfinished))
            continue; /* `used` stays, so an incomplete chain stays in the ring */
        used = (uint16_t)(i + 1);
        if (likely(ok && total))
            frame_begin(m[k++], total);
        else
            mf->port.stats.rx_bad++;
        total = 0, ok = true;
    }
    T_ASSERT_HOT(k <= got && used <= avail, "more frames came out of a ring than were in it");
    if (k < got)
        rte_mempool_put_bulk(mf->pool, (void *const *)(m + k), got - k);
    rx_release(mf, q, used);
    if (unlikely(unfinished))
        q->seen = q->next; /* reads the peer's index again: the rest may have arrived */
    mf->port.stats.rx += k;
    return k;
}

static inline uint16_t rx_some(struct memif *mf, struct memif_queue *q, struct rte_mbuf **m,
                               uint16_t n)
{
    uint16_t avail = (uint16_t)(q->seen - q->next);

    if (!avail)
        return 0;
    return mf->share ? share_rx(mf, q, m, n, avail) : rx_burst(mf, q, m, n, avail);
}

/* Receives frames. Reads the peer's index, which moves a cache line between cores, only if its last
 * value does not allow a full burst. */
uint16_t memif_rx(struct io_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
    struct memif *mf = (struct memif *)p;
    struct memif_queue *q = &mf->rx[queue];
    uint16_t k = 0;

    if (mf->state != MEMIF_UP || queue >= mf->n_rx)
        return 0;
    if ((uint16_t)(q->seen - q->next) >= n)
        k = rx_some(mf, q, m, n);
    if (!k && (uint16_t)(q->seen - q->next) < n) {
        q->seen = (uint16_t)(q->next + memif_pending(p, queue));
        k = rx_some(mf, q, m, n);
    }
    return k;
}

/* Prefetches the buffer of a later frame, which the other core used last. A client's descriptor gets
 * its full length back, as the last frame shortened it. */
static inline void tx_look(const struct memif *mf, const struct memif_queue *q, uint16_t slot,
                           struct desc_buf *ahead)
{
    struct memif_desc *d = &q->ring->desc[slot & q->mask];
    struct desc_buf *x = &ahead[slot % AHEAD];

    if (!mf->listener)
        d->length = MEMIF_BUFFER;
    x->at = memif_at(mf, d, &x->len);
#ifdef __x86_64__ /* for unknown CPUs gcc would emit a prefetch for reading */
    __asm__ volatile("prefetchw %0" : : "m"(*x->at));
#else
    __builtin_prefetch(x->at, 1);
#endif
}

static inline void copy_out(uint8_t *dst, const struct rte_mbuf *m)
{
    if (likely(m->nb_segs == 1)) { /* does not touch m->next, whose cache line may not be loaded */
        memif_ring_copy(dst, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len);
        return;
    }
    for (; m; m = m->next) {
        memif_ring_copy(dst, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len);
        dst += m->data_len;
    }
}

/* Number of free descriptors. Reads the peer's index only if fewer than n are known to be free. */
static inline uint16_t tx_room(const struct memif *mf, struct memif_queue *q, uint16_t n)
{
    const struct memif_ring *r = q->ring;

    if ((uint16_t)(q->seen - q->next) < n)
        q->seen = mf->listener
                      ? __atomic_load_n(&r->head, __ATOMIC_ACQUIRE)
                      : (uint16_t)(__atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) + q->mask + 1);
    if ((uint16_t)(q->seen - q->next) > q->mask + 1u) /* the peer's index is invalid */
        q->seen = q->next;
    return (uint16_t)(q->seen - q->next);
}

uint16_t memif_tx(struct io_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
    struct memif *mf = (struct memif *)p;
    struct memif_queue *q = &mf->tx[queue];
    struct desc_buf ahead[AHEAD];
    uint16_t room, k = 0, slot, end;

    if (mf->state != MEMIF_UP || queue >= mf->n_tx)
        return 0;
    if (mf->share)
        return share_tx(mf, q, m, n);
    slot = q->next;
    room = tx_room(mf, q, n);
    T_ASSERT_HOT(room <= q->mask + 1u, "a ring has more room than descriptors");
    end = (uint16_t)(slot + RTE_MIN(n, room));
    for (uint16_t i = 0; i < RTE_MIN(RTE_MIN(n, room), AHEAD); i++)
        tx_look(mf, q, (uint16_t)(slot + i), ahead);
    while (k < n && slot != end) {
        struct memif_desc *d = &q->ring->desc[slot & q->mask];
        struct desc_buf x = ahead[slot % AHEAD];

        if (unlikely(!x.at || m[k]->pkt_len > x.len || frame_meta(m[k])->flags & FRAME_F_VIRTUAL)) {
            p->stats.tx_bad++;
            k++;
            continue;
        }
        if ((uint16_t)(end - slot) > AHEAD)
            tx_look(mf, q, (uint16_t)(slot + AHEAD), ahead);
        copy_out(x.at, m[k]);
        d->length = m[k]->pkt_len;
        d->flags = 0;
        slot++;
        k++;
    }
    p->stats.tx += (uint16_t)(slot - q->next);
    q->next = slot;
    __atomic_store_n(mf->listener ? &q->ring->tail : &q->ring->head, slot, __ATOMIC_RELEASE);
    frame_free_burst(m, k);
    return k;
}
