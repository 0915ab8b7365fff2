/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/queue/pfc.h"

#include <errno.h>
#include <rte_byteorder.h>
#include <string.h>

int64_t pfc_quanta_ps(uint32_t quanta, uint64_t rate_bps)
{
    return rate_bps ? link_time_ps((uint64_t)quanta * PFC_QUANTUM_BITS / 8, rate_bps)
                    : quanta * PS_PER_NS;
}

struct rte_mbuf *pfc_frame(struct rte_mempool *pool, const uint8_t src[6], uint16_t quanta)
{
    static const uint8_t dst[6] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};
    struct rte_mbuf *m = frame_alloc(pool);
    struct pfc_wire *w;

    if (!m)
        return NULL;
    m->data_len = m->pkt_len = sizeof(*w);
    w = rte_pktmbuf_mtod(m, struct pfc_wire *);
    memset(w, 0, sizeof(*w));
    memcpy(w->dst, dst, 6);
    memcpy(w->src, src, 6);
    w->ethertype = RTE_BE16(ETHERTYPE_MAC_CONTROL);
    w->opcode = RTE_BE16(PFC_OPCODE);
    w->classes = RTE_BE16(1 << PFC_PRIORITY);
    w->quanta[PFC_PRIORITY] = rte_cpu_to_be_16(quanta);
    frame_meta(m)->cls = FRAME_CONTROL;
    return m;
}

int pfc_parse(struct rte_mbuf *m)
{
    const struct pfc_wire *w = rte_pktmbuf_mtod(m, const struct pfc_wire *);

    if (m->data_len < offsetof(struct pfc_wire, pad) ||
        w->ethertype != RTE_BE16(ETHERTYPE_MAC_CONTROL) || w->opcode != RTE_BE16(PFC_OPCODE))
        return -EINVAL;
    if (!(rte_be_to_cpu_16(w->classes) >> PFC_PRIORITY & 1))
        return -ENOENT;
    return rte_be_to_cpu_16(w->quanta[PFC_PRIORITY]);
}

/* Bytes that a link carries in that time. */
static uint64_t link_bytes(int64_t ps, uint64_t rate_bps)
{
    return (uint64_t)((unsigned __int128)ps * rate_bps / (8 * PS_PER_S));
}

void pfc_init(struct pfc *p, const struct pfc_cfg *cfg)
{
    uint32_t wire = cfg->max_frame + FRAME_LINK_OVERHEAD;
    struct pfc_limits l = pfc_limits(cfg);

    memset(p, 0, sizeof(*p));
    p->on = cfg->on;
    p->due_ps = PS_NEVER;
    p->refresh_ps = pfc_quanta_ps(PFC_MAX_QUANTA, cfg->rate_bps) / 2;
    /* Headroom: 2 x (latency + frame) until the pause takes effect, and a frame begun at either
     * end. */
    p->headroom_bytes =
        link_bytes(2 * cfg->latency_ps + cfg->lag_ps, cfg->rate_bps) + 4 * (uint64_t)wire;
    p->headroom_pkts = (uint32_t)(p->headroom_bytes / (FRAME_MIN_BYTES + FRAME_LINK_OVERHEAD)) + 4;
    p->xoff_bytes = l.xoff_bytes;
    p->xon_bytes = l.xon_bytes;
    p->xoff_pkts = l.xoff_pkts;
    p->xon_pkts = l.xon_pkts;
}
