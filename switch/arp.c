/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/arp.h"

#include "base/assert.h"

#include <string.h>

enum { ARP_REQUEST = 1, ARP_REPLY = 2 };

/* RFC 826 for Ethernet and IPv4. */
struct arp_wire {
    rte_be16_t hw, proto;
    uint8_t hw_len, proto_len;
    rte_be16_t op;
    uint8_t sender_mac[6], sender_ip[4], target_mac[6], target_ip[4];
} __attribute__((packed));
_Static_assert(sizeof(struct arp_wire) == 28, "RFC 826");

bool arp_asks_for(struct rte_mbuf *m, const struct packet_class *k, uint32_t ip)
{
    const struct arp_wire *a = rte_pktmbuf_mtod_offset(m, const struct arp_wire *, k->l3);

    T_ASSERT(k->kind == PACKET_ARP, "a frame that is not ARP is read as such");
    return a->hw == RTE_BE16(1) && a->proto == RTE_BE16(ETHERTYPE_IPV4) && a->hw_len == 6 &&
           a->proto_len == 4 && a->op == RTE_BE16(ARP_REQUEST) && load_be32(a->target_ip) == ip;
}

bool arp_is_from(struct rte_mbuf *m, const struct packet_class *k, uint32_t ip,
                 const uint8_t mac[6])
{
    const struct arp_wire *a = rte_pktmbuf_mtod_offset(m, const struct arp_wire *, k->l3);

    T_ASSERT(k->kind == PACKET_ARP, "a frame that is not ARP is read as such");
    return a->hw == RTE_BE16(1) && a->proto == RTE_BE16(ETHERTYPE_IPV4) && a->hw_len == 6 &&
           a->proto_len == 4 && mac_equal(a->sender_mac, mac) && load_be32(a->sender_ip) == ip;
}

uint32_t arp_sender(struct rte_mbuf *m, const struct packet_class *k)
{
    T_ASSERT(k->kind == PACKET_ARP, "a frame that is not ARP is read as such");
    return load_be32(rte_pktmbuf_mtod_offset(m, const struct arp_wire *, k->l3)->sender_ip);
}

struct rte_mbuf *arp_answer(struct rte_mbuf *m, const struct packet_class *k, uint32_t ip,
                            const uint8_t mac[6], struct rte_mempool *pool)
{
    const uint8_t *in = rte_pktmbuf_mtod(m, const uint8_t *);
    const struct arp_wire *ask = (const struct arp_wire *)(in + k->l3);
    struct arp_wire *a;
    struct rte_mbuf *r;
    uint8_t *p;

    if (!arp_asks_for(m, k, ip))
        return NULL;
    r = frame_alloc(pool);
    if (!r)
        return NULL;
    r->data_len = r->pkt_len = FRAME_MIN_BYTES;
    p = rte_pktmbuf_mtod(r, uint8_t *);
    memset(p, 0, FRAME_MIN_BYTES);
    memcpy(p, ask->sender_mac, 6);
    memcpy(p + 6, mac, 6);
    memcpy(p + 12, in + 12, k->l3 - 12); /* type, with the tag of the request */
    a = (struct arp_wire *)(p + k->l3);
    *a = *ask;
    a->op = RTE_BE16(ARP_REPLY);
    memcpy(a->target_mac, ask->sender_mac, 6);
    memcpy(a->target_ip, ask->sender_ip, 4);
    memcpy(a->sender_mac, mac, 6);
    memcpy(a->sender_ip, ask->target_ip, 4);
    frame_meta(r)->cls = FRAME_CONTROL;
    frame_meta(r)->in_port = 0xffff;
    return r;
}
