/*
 * Rings of a memif. A frame is copied once on each side, unless this side shares its frames' data
 * (memif_share.c): shared memory never holds mbufs, so a peer that dies or lies cannot take one
 * with it.
 *
 * Order: the sender's store-release of its index pairs with the receiver's load-acquire, per ring
 * and direction.
 */
#include "switch/rim/memif.h"
#include "roce/frame.h"

#include <string.h>

#define AHEAD 6 /* frames */

/* A ring's buffer was the other core's last. `rep movsb` overwrites its lines without fetching them
 * first; it starts slowly. */
static inline void copy(void *dst, const void *src, size_t n)
{
#ifdef __x86_64__
    if (n >= 512) {
        __asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(n) : : "memory");
        return;
    }
#endif
    rte_memcpy(dst, src, n);
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

/* All rings first (C2S, then S2C), then all buffers in the same order. */
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
        mf->tx[i].next = 0;
    for (unsigned i = 0; i < mf->n_rx; i++) {
        struct memif_queue *q = &mf->rx[i];

        q->next = 0;
        q->ring->flags = MEMIF_RING_MASK_INT;
        if (!mf->listener) /* all buffers of an S2C ring are empty */
            __atomic_store_n(&q->ring->head, (uint16_t)(q->mask + 1), __ATOMIC_RELEASE);
    }
}

/* The index that the peer moves when it sends to us. */
static inline uint16_t *sent_index(const struct memif *mf, const struct memif_queue *q)
{
    return mf->listener ? &q->ring->head : &q->ring->tail;
}

uint16_t memif_arrived(const struct rim_port *p, uint16_t queue)
{
    const struct memif *mf = (const struct memif *)p;

    if (mf->state != MEMIF_UP || queue >= mf->n_rx)
        return 0;
    return __atomic_load_n(sent_index(mf, &mf->rx[queue]), __ATOMIC_ACQUIRE);
}

uint16_t memif_pending(const struct rim_port *p, uint16_t queue)
{
    const struct memif *mf = (const struct memif *)p;
    uint16_t n;

    if (mf->state != MEMIF_UP || queue >= mf->n_rx)
        return 0;
    n = (uint16_t)(memif_arrived(p, queue) - mf->rx[queue].next);
    return n <= mf->rx[queue].mask + 1u ? n : 0;
}

bool memif_crowded(const struct rim_port *p, uint16_t queue)
{
    const struct memif *mf = (const struct memif *)p;
    uint16_t n = memif_pending(p, queue);

    return n && n > mf->rx[queue].mask / 4 * 3;
}

/* Copies the descriptors of one frame into b. Returns how many, 0: the rest of a chain has not been
 * sent yet. *ok: frame is good. */
static uint16_t rx_frame(struct memif *mf, struct memif_queue *q, uint16_t avail,
                         struct rte_mbuf *b, bool *ok)
{
    uint32_t room, total = 0, len;
    uint16_t used = 0;
    uint8_t *dst;
    bool more;

    frame_reset(b);
    dst = rte_pktmbuf_mtod(b, uint8_t *);
    room = rte_pktmbuf_tailroom(b);
    *ok = true;
    do {
        const struct memif_desc *d = &q->ring->desc[(uint16_t)(q->next + used) & q->mask];
        const uint8_t *src;

        if (used == avail)
            return 0;
        more = d->flags & MEMIF_DESC_NEXT;
        src = memif_at(mf, d, &len);
        used++;
        if (!src || len > room - total) {
            *ok = false;
            continue;
        }
        copy(dst + total, src, len);
        total += len;
    } while (more);
    if (!total)
        *ok = false;
    b->data_len = (uint16_t)total;
    b->pkt_len = total;
    return used;
}

/* Gives received descriptors back to the sender. */
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
    q->next += used;
    __atomic_store_n(&r->head, (uint16_t)(q->next + q->mask + 1), __ATOMIC_RELEASE);
}

static uint16_t rx_bufs(struct memif *mf, struct rte_mbuf **m, uint16_t n)
{
    uint16_t got = 0;

    if (likely(!rte_pktmbuf_alloc_bulk(mf->pool, m, n)))
        return n;
    while (got < n && (m[got] = rte_pktmbuf_alloc(mf->pool)))
        got++;
    mf->port.stats.rx_nobuf += n - got;
    return got;
}

/* What the other core wrote is fetched while frames before it are copied. */
static inline void rx_prefetch(const struct memif *mf, const struct memif_queue *q, uint16_t slot)
{
    uint32_t len;
    const uint8_t *src = memif_at(mf, &q->ring->desc[slot & q->mask], &len);

    rte_prefetch0(src);
}

uint16_t memif_rx(struct rim_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
    struct memif *mf = (struct memif *)p;
    struct memif_queue *q = &mf->rx[queue];
    uint16_t avail = memif_pending(p, queue), used = 0, k = 0, got;

    if (!avail)
        return 0;
    if (mf->share)
        return share_rx(mf, q, m, n, avail);
    for (uint16_t i = 0; i < RTE_MIN(avail, AHEAD); i++)
        rx_prefetch(mf, q, (uint16_t)(q->next + i));
    n = rx_bufs(mf, m, RTE_MIN(n, avail));
    got = n;
    while (k < n && used < avail) {
        struct memif_queue at = {
            .ring = q->ring, .mask = q->mask, .next = (uint16_t)(q->next + used)};
        uint16_t d;
        bool ok;

        if (used + AHEAD < avail)
            rx_prefetch(mf, q, (uint16_t)(at.next + AHEAD));
        d = rx_frame(mf, &at, (uint16_t)(avail - used), m[k], &ok);
        if (!d)
            break;
        used += d;
        if (unlikely(!ok)) {
            p->stats.rx_bad++;
            continue;
        }
        k++;
    }
    if (k < got)
        rte_pktmbuf_free_bulk(m + k, got - k);
    rx_release(mf, q, used);
    p->stats.rx += k;
    return k;
}

/* The buffer that a later frame goes to was the other core's last. */
static inline void tx_prefetch(const struct memif *mf, const struct memif_queue *q, uint16_t slot)
{
    uint32_t len;
    uint8_t *dst = memif_at(mf, &q->ring->desc[slot & q->mask], &len);

#ifdef __x86_64__ /* where gcc takes a prefetch for reading, unless told of the CPU */
    __asm__ volatile("prefetchw %0" : : "m"(*dst));
#else
    __builtin_prefetch(dst, 1);
#endif
}

static inline void copy_out(uint8_t *dst, const struct rte_mbuf *m)
{
    for (; m; m = m->next) {
        copy(dst, rte_pktmbuf_mtod(m, const void *), m->data_len);
        dst += m->data_len;
    }
}

uint16_t memif_tx(struct rim_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
    struct memif *mf = (struct memif *)p;
    struct memif_queue *q = &mf->tx[queue];
    struct memif_ring *r = q->ring;
    uint16_t room, k = 0, slot;

    if (mf->state != MEMIF_UP || queue >= mf->n_tx)
        return 0;
    if (mf->share)
        return share_tx(mf, q, m, n);
    slot = q->next;
    if (mf->listener)
        room = (uint16_t)(__atomic_load_n(&r->head, __ATOMIC_ACQUIRE) - slot);
    else
        room = (uint16_t)(q->mask + 1 - slot + __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE));
    if (room > q->mask + 1u) /* an index that cannot be: the peer is broken */
        return 0;
    for (uint16_t i = 0; i < RTE_MIN(RTE_MIN(n, room), AHEAD); i++)
        tx_prefetch(mf, q, (uint16_t)(slot + i));
    while (k < n && (uint16_t)(slot - q->next) < room) {
        struct memif_desc *d = &r->desc[slot & q->mask];
        uint32_t len;
        uint8_t *dst;

        if (k + AHEAD < n)
            tx_prefetch(mf, q, (uint16_t)(slot + AHEAD));
        /* Buffers of a C2S ring are ours, whatever length the last frame left in the descriptor. */
        if (!mf->listener)
            d->length = MEMIF_BUFFER;
        dst = memif_at(mf, d, &len);
        if (unlikely(!dst || m[k]->pkt_len > len || frame_meta(m[k])->flags & FRAME_F_VIRTUAL)) {
            p->stats.tx_bad++;
            k++;
            continue;
        }
        copy_out(dst, m[k]);
        d->length = m[k]->pkt_len;
        d->flags = 0;
        slot++;
        k++;
    }
    p->stats.tx += (uint16_t)(slot - q->next);
    q->next = slot;
    __atomic_store_n(mf->listener ? &r->tail : &r->head, slot, __ATOMIC_RELEASE);
    rte_pktmbuf_free_bulk(m, k);
    return k;
}
