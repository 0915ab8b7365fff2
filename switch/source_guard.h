/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides which frames a process may send: those with its port's own addresses and its own queue pairs.
 * A NIC checks every frame of a process slot. So the receiver of a frame knows by its source which host
 * sent it, and by the source QPN of a datagram which process.
 *
 *   Ethernet   source MAC of the port
 *   IPv4       source address of the port; IPv6: the link-local address of the port
 *   UD         source QPN of the slot's space
 *   RC, UC,    the mark (roce/wire.h) that names the slot's space: the packets have no source QPN,
 *   CNP        and the receiving queue pair compares the mark with its peer's QPN
 *   ARP        sender's MAC and address are the port's
 *   IGMP       source address of the port
 *
 * A process may send no other protocol: an HCA speaks none.
 */
#ifndef TRIB_SWITCH_SOURCE_GUARD_H
#define TRIB_SWITCH_SOURCE_GUARD_H

#include "switch/arp.h"

#define SOURCE_ADMITTED DROP_REASONS

/* The space of a slot's QPNs: their top 8 bits. */
static inline uint32_t source_space(unsigned slot)
{
    return slot + 1;
}

/* A datagram's source QPN, behind UDP, BTH and the Q_Key of DETH (IBTA 9.3.3). */
static inline enum drop source_guard_datagram(const struct rte_mbuf *m,
                                              const struct packet_class *k, uint32_t space)
{
    const uint8_t *deth = rte_pktmbuf_mtod_offset(m, const uint8_t *, k->l4 + 8 + BTH_BYTES);

    if (unlikely(m->data_len < k->l4 + 8 + BTH_BYTES + 8u))
        return DROP_BAD_LENGTH;
    return likely(deth[5] == space) ? SOURCE_ADMITTED : DROP_FOREIGN_QPN;
}

/* The mark, at l3: IPv4's identification, or the low half of IPv6's word with the flow label. */
static inline enum drop source_guard_mark(const uint8_t *l3, uint32_t space)
{
    return likely(load_be16(l3 + (*l3 >> 4 == 4 ? 4 : 2)) == space) ? SOURCE_ADMITTED
                                                                    : DROP_FOREIGN_QPN;
}

static inline enum drop source_guard_other(struct rte_mbuf *m, const struct packet_class *k,
                                           const uint8_t mac[6], uint32_t ip)
{
    if (k->kind == PACKET_ARP)
        return arp_is_from(m, k, ip, mac) ? SOURCE_ADMITTED : DROP_FOREIGN_ARP;
    if (k->kind == PACKET_IGMP)
        return k->src_ip == ip ? SOURCE_ADMITTED : DROP_FOREIGN_IP;
    return DROP_FOREIGN_PROTOCOL;
}

/* SOURCE_ADMITTED, or why the frame is dropped. k: as classified from m, not PACKET_BAD; mac, ip:
 * of the port; space: source_space(). */
static inline enum drop source_guard(struct rte_mbuf *m, const struct packet_class *k,
                                     const uint8_t mac[6], uint32_t ip, uint32_t space)
{
    const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);

    if (unlikely(!mac_equal(p + 6, mac)))
        return DROP_FOREIGN_MAC;
    if (unlikely(k->kind != PACKET_ROCE))
        return source_guard_other(m, k, mac, ip);
    if (unlikely(k->src_ip != ip))
        return DROP_FOREIGN_IP;
    if ((p[k->l4 + 8] & ROCE_TRANSPORT_MASK) == ROCE_UD)
        return source_guard_datagram(m, k, space);
    return source_guard_mark(p + k->l3, space);
}

#endif
