/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce/frame.h"

#include "base/assert.h"
#include "base/cacheline.h"
#include "roce/wire.h"

#include <errno.h>
#include <rte_errno.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>
#include <stdatomic.h>

_Static_assert(FRAME_HEADROOM_LENGTHS >= 4, "room for a tag");
_Static_assert((sizeof(struct rte_mbuf) + FRAME_PRIV_BYTES + FRAME_HEADROOM_LENGTHS) % CACHELINE ==
                   0,
               "a line of the CPU's caches");
_Static_assert(FRAME_HEADROOM <= RTE_PKTMBUF_HEADROOM, "FRAME_ROOM bytes are behind it");

struct rte_mempool *frame_pool_create(const char *name, unsigned n, unsigned cache)
{
    return rte_pktmbuf_pool_create_by_ops(name, n, cache, FRAME_PRIV_BYTES,
                                          RTE_PKTMBUF_HEADROOM + FRAME_ROOM, SOCKET_ID_ANY,
                                          "stack");
}

static unsigned room_of(bool lengths)
{
    return RTE_PKTMBUF_HEADROOM + (lengths ? FRAME_ROOM_LENGTHS : FRAME_ROOM);
}

/* Buffer length of a frame with that much data room. */
static unsigned element_bytes(unsigned room)
{
    return (unsigned)sizeof(struct rte_mbuf) + (unsigned)FRAME_PRIV_BYTES + room;
}

size_t frame_pool_bytes(unsigned n, bool lengths)
{
    return (size_t)n * rte_mempool_calc_obj_size(element_bytes(room_of(lengths)), 0, NULL) +
           RTE_MEMPOOL_ALIGN;
}

/* Our private data of a pool, after DPDK's. */
struct pool_private {
    struct rte_pktmbuf_pool_private mbufs;
    atomic_ullong missed;
};

/* NULL for pools of rte_pktmbuf_pool_create(), which have none. */
static struct pool_private *private_of(struct rte_mempool *p)
{
    return p->private_data_size >= sizeof(struct pool_private) ? rte_mempool_get_priv(p) : NULL;
}

/* Counts an allocation that found the pool empty. Returns m. */
static struct rte_mbuf *noted(struct rte_mbuf *m, struct rte_mempool *pool)
{
    struct pool_private *priv = likely(m != NULL) ? NULL : private_of(pool);

    if (unlikely(priv != NULL))
        atomic_fetch_add_explicit(&priv->missed, 1, memory_order_relaxed);
    return m;
}

uint64_t frame_pool_missed(struct rte_mempool *pool)
{
    struct pool_private *priv = private_of(pool);

    return priv ? atomic_load_explicit(&priv->missed, memory_order_relaxed) : 0;
}

/* Creates a pool of frames that have no memory yet. room: data room of a frame; `own`: part of it that
 * follows the mbuf itself. The frame freed last is used first, so that few frames circulate and stay in
 * caches. */
static struct rte_mempool *empty_pool(const char *name, unsigned n, unsigned cache, unsigned room,
                                      unsigned own, unsigned flags)
{
    struct pool_private priv = {
        .mbufs = {.mbuf_data_room_size = (uint16_t)room, .mbuf_priv_size = FRAME_PRIV_BYTES}};
    struct rte_mempool *p = rte_mempool_create_empty(name, n, element_bytes(own), cache,
                                                     sizeof(priv), SOCKET_ID_ANY, flags);
    int rc = p ? rte_mempool_set_ops_byname(p, "stack", NULL) : 0;

    if (rc) {
        rte_mempool_free(p);
        rte_errno = -rc;
        return NULL;
    }
    if (p)
        memcpy(rte_mempool_get_priv(p), &priv, sizeof(priv));
    return p;
}

/* Whether a frame's data follow its mbuf. Those of frame_pool_create_over() do not, and DPDK would not
 * find them again after a clone. */
static inline bool has_data(const struct rte_mempool *p)
{
    return p->elt_size >= sizeof(struct rte_mbuf) + FRAME_PRIV_BYTES +
                              rte_pktmbuf_data_room_size((struct rte_mempool *)(uintptr_t)p);
}

/* got: number of frames with memory, or -errno. Returns the pool, or NULL if not all frames have some. */
static struct rte_mempool *filled(struct rte_mempool *p, int got, rte_mempool_obj_cb_t *init,
                                  void *arg)
{
    if (got != (int)p->size) {
        rte_mempool_free(p);
        rte_errno = got < 0 ? -got : ENOMEM;
        return NULL;
    }
    rte_mempool_obj_iter(p, init, arg);
    return p;
}

struct rte_mempool *frame_pool_create_at(const char *name, unsigned n, unsigned cache, bool lengths,
                                         void *at, size_t bytes)
{
    unsigned room = room_of(lengths);
    struct rte_mempool *p = empty_pool(name, n, cache, room, room, RTE_MEMPOOL_F_NO_IOVA_CONTIG);

    return p ? filled(p, rte_mempool_populate_iova(p, at, RTE_BAD_IOVA, bytes, NULL, NULL),
                      rte_pktmbuf_init, NULL)
             : NULL;
}

struct rte_mempool *frame_pool_reserve(const char *name, unsigned most, unsigned cache)
{
    unsigned room = room_of(false);

    return empty_pool(name, most, cache, room, room, RTE_MEMPOOL_F_NO_IOVA_CONTIG);
}

/* Initialises new frames where they are, at the end of the pool's list: nobody else may allocate. */
int frame_pool_extend(struct rte_mempool *p, void *at, size_t bytes,
                      rte_mempool_memchunk_free_cb_t *release)
{
    struct rte_mempool_objhdr **behind = p->elt_list.stqh_last;
    unsigned i = p->populated_size;
    int n = rte_mempool_populate_iova(p, at, RTE_BAD_IOVA, bytes, release, at);

    for (struct rte_mempool_objhdr *h = *behind; h; h = STAILQ_NEXT(h, next))
        rte_pktmbuf_init(p, NULL, (char *)h + sizeof(*h), i++);
    return n;
}

size_t frame_data_bytes(unsigned n)
{
    return (size_t)n * (RTE_PKTMBUF_HEADROOM + FRAME_ROOM);
}

/* Initialises a frame whose data is elsewhere. Rejected: DPDK's external buffers, which read a
 * reference count of their own whenever a frame is freed, from a line that is in no cache. */
static void init_over(struct rte_mempool *p, void *at, void *mbuf, unsigned i)
{
    struct rte_mbuf *m = mbuf;

    rte_pktmbuf_init(p, NULL, m, i);
    m->buf_addr = (uint8_t *)at + frame_data_bytes(i);
    rte_mbuf_iova_set(m, RTE_BAD_IOVA);
}

struct rte_mempool *frame_pool_create_over(const char *name, unsigned n, void *at)
{
    struct rte_mempool *p = empty_pool(name, n, 0, room_of(false), 0, 0);

    return p ? filled(p, rte_mempool_populate_default(p), init_over, at) : NULL;
}

struct rte_mempool *frame_parts_create(const char *name, unsigned n, unsigned cache)
{
    return rte_pktmbuf_pool_create_by_ops(name, n, cache, FRAME_PRIV_BYTES, FRAME_TAIL,
                                          SOCKET_ID_ANY, "stack");
}

bool frame_pool_carries(const struct rte_mempool *pool)
{
    return rte_pktmbuf_data_room_size((struct rte_mempool *)(uintptr_t)pool) >=
           RTE_PKTMBUF_HEADROOM + FRAME_ROOM;
}

struct rte_mbuf *frame_alloc(struct rte_mempool *pool)
{
    const struct rte_mempool_cache *c = rte_mempool_default_cache(pool, rte_lcore_id());
    struct rte_mbuf *m = noted(rte_pktmbuf_alloc(pool), pool);

    if (c && c->len)
        frame_prefetch(c->objs[c->len - 1]); /* the next one */
    if (likely(m != NULL))
        frame_reset(m);
    return m;
}

/* The usual case is fast: each frame is one unshared buffer, and all are of one pool. */
void frame_free_burst(struct rte_mbuf **m, unsigned n)
{
    struct rte_mempool *pool = n ? m[0]->pool : NULL;
    bool odd = false;

    for (unsigned i = 0; i < n; i++)
        odd |= rte_mbuf_refcnt_read(m[i]) != 1 || m[i]->nb_segs != 1 || !RTE_MBUF_DIRECT(m[i]) ||
               m[i]->pool != pool;
    if (unlikely(odd))
        rte_pktmbuf_free_bulk(m, n);
    else if (n)
        rte_mempool_put_bulk(pool, (void *const *)m, n);
}

struct rte_mbuf *frame_clone(struct rte_mbuf *m, struct rte_mempool *pool)
{
    struct rte_mbuf *c;

    T_ASSERT_HOT(has_data(pool),
                 "a clone is made in a pool whose frames have their data elsewhere");
    c = noted(rte_pktmbuf_clone(m, pool), pool);
    if (likely(c != NULL))
        *frame_meta(c) = *frame_meta(m);
    return c;
}

struct rte_mbuf *frame_copy(struct rte_mbuf *m, struct rte_mempool *pool)
{
    return noted(rte_pktmbuf_copy(m, pool, 0, UINT32_MAX), pool);
}

uint8_t *frame_share(struct rte_mbuf *m, struct rte_mbuf *held, uint32_t off, uint32_t len,
                     uint32_t tail, struct rte_mempool *parts)
{
    struct rte_mbuf *part[2]; /* payload and tail */

    T_ASSERT_HOT(tail <= FRAME_TAIL, "padding and ICRC do not fit a part of a frame");
    T_ASSERT_HOT(held->nb_segs == 1 && off + len <= held->data_len,
                 "a frame shares bytes that the held payload does not have");
    T_ASSERT_HOT(has_data(held->pool), "a payload is shared whose pool has its data elsewhere");
    if (unlikely(rte_pktmbuf_alloc_bulk(parts, part, 2)))
        return NULL;
    rte_pktmbuf_attach(part[0], held);
    part[0]->data_off = (uint16_t)(held->data_off + off);
    part[0]->data_len = (uint16_t)len;
    part[0]->next = part[1];
    part[1]->data_off = 0;
    part[1]->data_len = (uint16_t)tail;
    m->next = part[0];
    m->nb_segs = 3;
    m->pkt_len = m->data_len + len + tail;
    return rte_pktmbuf_mtod(part[1], uint8_t *);
}

/* Bytes at the front of the first segment that frame_writable() copies: all headers, so that the
 * payload stays in one piece. */
static uint32_t header_bytes(const struct rte_mbuf *m)
{
    uint32_t n = roce_header_bytes(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len);

    if (n == 0) /* not RoCE: only Ethernet, tag and IP headers are ever written */
        n = 128;
    return RTE_MIN(n, (uint32_t)m->data_len);
}

struct rte_mbuf *frame_writable(struct rte_mbuf *m, struct rte_mempool *pool)
{
    struct rte_mbuf *head, *rest = NULL;
    uint32_t n;

    if (RTE_MBUF_DIRECT(m) && rte_mbuf_refcnt_read(m) == 1)
        return m;
    T_ASSERT_HOT(has_data(pool),
                 "a clone is made in a pool whose frames have their data elsewhere");
    n = header_bytes(m);
    head = noted(rte_pktmbuf_alloc(pool), pool);
    if (unlikely(head == NULL))
        return NULL;
    if (m->pkt_len > n) {
        rest = noted(rte_pktmbuf_clone(m, pool), pool);
        if (unlikely(rest == NULL)) {
            rte_pktmbuf_free(head);
            return NULL;
        }
        if (n == rest->data_len) {
            struct rte_mbuf *next = rest->next;

            next->pkt_len = rest->pkt_len - n;
            next->nb_segs = rest->nb_segs - 1;
            rest->next = NULL, rest->nb_segs = 1;
            rte_pktmbuf_free_seg(rest);
            rest = next;
        } else {
            rte_pktmbuf_adj(rest, n);
        }
    }
    memcpy(rte_pktmbuf_append(head, n), rte_pktmbuf_mtod(m, void *), n);
    *frame_meta(head) = *frame_meta(m);
    frame_meta(head)->flags &= ~FRAME_F_CRC;
    if (rest)
        rte_pktmbuf_chain(head, rest);
    rte_pktmbuf_free(m);
    return head;
}
