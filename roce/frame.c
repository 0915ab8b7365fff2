#include "roce/frame.h"

#include "roce/wire.h"

#include <rte_mempool.h>

/* Private areas are multiples of RTE_MBUF_PRIV_ALIGN; a whole number of 16 keeps the buffer aligned
 * for vector loads. */
#define PRIV_BYTES RTE_ALIGN(sizeof(struct frame_meta), 16)

struct rte_mempool *frame_pool_create(const char *name, unsigned n, unsigned cache)
{
    return rte_pktmbuf_pool_create(name, n, cache, PRIV_BYTES, RTE_PKTMBUF_HEADROOM + FRAME_ROOM,
                                   SOCKET_ID_ANY);
}

struct rte_mbuf *frame_alloc(struct rte_mempool *pool)
{
    struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

    if (likely(m != NULL))
        memset(frame_meta(m), 0, sizeof(struct frame_meta));
    return m;
}

struct rte_mbuf *frame_clone(struct rte_mbuf *m, struct rte_mempool *pool)
{
    struct rte_mbuf *c = rte_pktmbuf_clone(m, pool);

    if (likely(c != NULL))
        *frame_meta(c) = *frame_meta(m);
    return c;
}

/* Bytes at the front of the first segment that frame_writable() copies: all headers, so that the
 * payload stays in one piece. */
static uint32_t header_bytes(const struct rte_mbuf *m)
{
    uint32_t n = roce_header_bytes(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len);

    if (n == 0) /* not RoCE: nobody writes beyond Ethernet, a tag and IP */
        n = 128;
    return RTE_MIN(n, (uint32_t)m->data_len);
}

struct rte_mbuf *frame_writable(struct rte_mbuf *m, struct rte_mempool *pool)
{
    struct rte_mbuf *head, *rest = NULL;
    uint32_t n;

    if (RTE_MBUF_DIRECT(m) && rte_mbuf_refcnt_read(m) == 1)
        return m;
    n = header_bytes(m);
    head = rte_pktmbuf_alloc(pool);
    if (unlikely(head == NULL))
        return NULL;
    if (m->pkt_len > n) {
        rest = rte_pktmbuf_clone(m, pool);
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
