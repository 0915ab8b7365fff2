/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Classifies a frame for forwarding: its kind, class and flow, in one pass. Headers are in the
 * first segment (frame.h); frames from outside in any other shape are refused with a reason.
 */
#ifndef TRIB_SWITCH_CLASSIFY_H
#define TRIB_SWITCH_CLASSIFY_H

#include "roce/wire.h"
#include "switch/queue/drops.h"
#include "switch/queue/pfc.h"

#include <rte_byteorder.h>

#define ETHERTYPE_IPV4   0x0800
#define ETHERTYPE_ARP    0x0806
#define ETHERTYPE_IPV6   0x86dd
#define ETHERTYPE_VLAN   0x8100
#define IPPROTO_NUM_IGMP 2
#define IPPROTO_NUM_UDP  17
#define BTH_BYTES        12u

enum packet_kind {
    PACKET_BAD,
    PACKET_ROCE,
    PACKET_ARP,
    PACKET_IGMP,
    PACKET_MAC_CONTROL,
    PACKET_IPV4,
    PACKET_OTHER
};

struct packet_class {
    uint8_t kind;            /* enum packet_kind */
    uint8_t cls;             /* enum frame_class */
    uint8_t why;             /* enum drop of PACKET_BAD */
    uint16_t l3, l4;         /* offsets */
    uint16_t udp_src;        /* 0 where not UDP */
    uint32_t src_ip, dst_ip; /* host order; for IPv6 see classify_ipv6() */
    uint32_t dqpn;           /* PACKET_ROCE */
};

static inline uint16_t load_be16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t load_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void classify_bad(struct packet_class *k, enum drop why)
{
    k->kind = PACKET_BAD;
    k->why = why;
}

/* Parses UDP at l4. rest: bytes of the datagram by the IP header; len: bytes of the frame in the
 * first segment. */
static inline void classify_udp(struct packet_class *k, const uint8_t *p, uint32_t rest,
                                uint32_t len)
{
    const uint8_t *u = p + k->l4;

    if (unlikely(rest < 8 || len < k->l4 + 8u || load_be16(u + 4) < 8 || load_be16(u + 4) > rest)) {
        classify_bad(k, DROP_BAD_LENGTH);
        return;
    }
    k->udp_src = load_be16(u);
    if (load_be16(u + 2) != ROCE_UDP_PORT)
        return;
    if (unlikely(load_be16(u + 4) < 8 + BTH_BYTES + ROCE_ICRC_BYTES ||
                 len < k->l4 + 8 + BTH_BYTES)) {
        classify_bad(k, DROP_BAD_LENGTH);
        return;
    }
    k->kind = PACKET_ROCE;
    /* Congestion notifications have a class of their own (DSCP 48): they must not wait behind the
     * frames that caused them. */
    k->cls = likely(u[8] != ROCE_OP_CNP_PACKET) ? FRAME_LOSSLESS : FRAME_CONTROL;
    k->dqpn = load_be32(u + 8 + 4) & 0xffffff;
}

static inline void classify_ipv4(struct packet_class *k, const uint8_t *p, uint32_t len,
                                 uint32_t frame_len)
{
    const uint8_t *ip = p + k->l3;
    uint32_t ihl, total;

    if (unlikely(len < k->l3 + 20u)) {
        classify_bad(k, DROP_RUNT);
        return;
    }
    ihl = (ip[0] & 15u) * 4;
    total = load_be16(ip + 2);
    k->l4 = (uint16_t)(k->l3 + ihl);
    if (unlikely(ip[0] >> 4 != 4 || ihl < 20 || total < ihl || k->l3 + total > frame_len ||
                 k->l4 > len)) {
        classify_bad(k, DROP_BAD_LENGTH);
        return;
    }
    k->kind = PACKET_IPV4;
    k->src_ip = load_be32(ip + 12);
    k->dst_ip = load_be32(ip + 16);
    if (ip[9] == IPPROTO_NUM_IGMP) {
        k->kind = PACKET_IGMP;
        k->cls = FRAME_CONTROL;
    } else if (ip[9] == IPPROTO_NUM_UDP && !(load_be16(ip + 6) & 0x1fff)) {
        classify_udp(k, p, total - ihl, len);
    }
}

/* Reads UDP directly behind the first header only. Link-local addresses of the fabric are mapped to
 * its IPv4 addresses. */
static inline void classify_ipv6(struct packet_class *k, const uint8_t *p, uint32_t len,
                                 uint32_t frame_len)
{
    const uint8_t *ip = p + k->l3;
    uint32_t rest;

    if (unlikely(len < k->l3 + 40u)) {
        classify_bad(k, DROP_RUNT);
        return;
    }
    rest = load_be16(ip + 4);
    k->l4 = (uint16_t)(k->l3 + 40);
    if (unlikely(ip[0] >> 4 != 6 || k->l4 + rest > frame_len)) {
        classify_bad(k, DROP_BAD_LENGTH);
        return;
    }
    if (ip[6] != IPPROTO_NUM_UDP)
        return;
    k->src_ip = roce_ip_of_link_local(ip + 8);
    k->dst_ip = roce_ip_of_link_local(ip + 24);
    classify_udp(k, p, rest, len);
}

/* Fast path for nearly all frames: recognises by a few words RoCE v2 in UDP in IPv4 without a tag
 * or options and with consistent lengths. Returns the class; FRAME_CLASSES: call classify_any(). */
static inline enum frame_class classify_plain(struct rte_mbuf *m)
{
    const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
    uint32_t total, udp;
    uint64_t l3, frag;

    if (unlikely(m->data_len < 14 + 20 + 8 + BTH_BYTES))
        return FRAME_CLASSES;
    memcpy(&l3, p + 12, 8);
    memcpy(&frag, p + 20, 8);
    total = load_be16(p + 16);
    udp = load_be16(p + 38);
    /* Ethertype, version and length of the header; fragment offset and protocol. */
    if (unlikely((l3 & RTE_BE64(0xffffff0000000000)) != RTE_BE64(0x0800450000000000) ||
                 (frag & RTE_BE64(0x1fff00ff00000000)) != RTE_BE64(0x0000001100000000) ||
                 load_be16(p + 36) != ROCE_UDP_PORT || udp < 8 + BTH_BYTES + ROCE_ICRC_BYTES ||
                 total < 20 + udp || m->pkt_len + frame_meta(m)->virt_len < 14 + total))
        return FRAME_CLASSES;
    return likely(p[42] != ROCE_OP_CNP_PACKET) ? FRAME_LOSSLESS : FRAME_CONTROL;
}

/* The words of a plain frame that classification and forwarding read. */
struct packet_likeness {
    uint64_t dst, l3, frag, l4, lens;
    uint32_t virt;
};
#define PACKET_NO_LENS UINT64_MAX /* matches no frame */

/* pkt_len and data_len */
static inline uint64_t packet_lens(const struct rte_mbuf *m)
{
    uint64_t v;

    memcpy(&v, (const char *)m + offsetof(struct rte_mbuf, pkt_len), sizeof(v));
    return v & RTE_LE64(0x0000ffffffffffff);
}
_Static_assert(offsetof(struct rte_mbuf, data_len) == offsetof(struct rte_mbuf, pkt_len) + 4,
               "packet_lens()");

static inline struct packet_likeness packet_likeness(struct rte_mbuf *m)
{
    const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
    struct packet_likeness k = {.lens = packet_lens(m), .virt = frame_meta(m)->virt_len};

    memcpy(&k.dst, p, 8);
    memcpy(&k.l3, p + 12, 8);
    memcpy(&k.frag, p + 20, 8);
    memcpy(&k.l4, p + 36, 8);
    return k;
}

static inline bool packet_same_address(struct rte_mbuf *m, const struct packet_likeness *k)
{
    uint64_t dst;

    memcpy(&dst, rte_pktmbuf_mtod(m, const void *), 8);
    return !((dst ^ k->dst) & RTE_BE64(0xffffffffffff0000));
}

/* Whether the address and all that classify_plain() reads are equal. k: the words of a plain frame
 * of the lossless class, of any opcode. */
static inline bool packet_is_like(struct rte_mbuf *m, const struct packet_likeness *k)
{
    struct packet_likeness x;

    if (unlikely((packet_lens(m) ^ k->lens) | (frame_meta(m)->virt_len ^ k->virt)))
        return false; /* the frame may be shorter */
    x = packet_likeness(m);
    /* Address; ethertype, version, length; fragment, protocol; port, length. */
    return !(((x.dst ^ k->dst) & RTE_BE64(0xffffffffffff0000)) |
             ((x.l3 ^ k->l3) & RTE_BE64(0xffffff00ffff0000)) |
             ((x.frag ^ k->frag) & RTE_BE64(0xffff00ff00000000)) |
             ((x.l4 ^ k->l4) & RTE_BE64(0xffffffff00000000))) &&
           rte_pktmbuf_mtod(m, const uint8_t *)[42] != ROCE_OP_CNP_PACKET;
}

/* The lengths of a length-only payload are those in the headers, so meta.virt_len counts. */
static inline void classify_any(struct rte_mbuf *m, struct packet_class *k)
{
    const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
    uint32_t len = m->data_len;
    uint16_t type;

    k->kind = PACKET_OTHER;
    k->cls = FRAME_LOSSY;
    k->udp_src = 0;
    k->src_ip = k->dst_ip = 0;
    k->l3 = 14;
    if (unlikely(len < 14)) {
        classify_bad(k, DROP_RUNT);
        return;
    }
    type = load_be16(p + 12);
    if (type == ETHERTYPE_VLAN && len >= 18)
        type = load_be16(p + 16), k->l3 = 18;
    if (likely(type == ETHERTYPE_IPV4)) {
        classify_ipv4(k, p, len, m->pkt_len + frame_meta(m)->virt_len);
    } else if (type == ETHERTYPE_IPV6) {
        classify_ipv6(k, p, len, m->pkt_len + frame_meta(m)->virt_len);
    } else if (type == ETHERTYPE_ARP) {
        k->kind = PACKET_ARP;
        k->cls = FRAME_CONTROL;
        if (len < k->l3 + 28u)
            classify_bad(k, DROP_RUNT);
    } else if (type == ETHERTYPE_MAC_CONTROL) {
        k->kind = PACKET_MAC_CONTROL;
        k->cls = FRAME_CONTROL;
    }
}

/* Whether the frame was plain. */
static inline bool classify_frame(struct rte_mbuf *m, struct packet_class *k)
{
    const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
    enum frame_class cls = classify_plain(m);

    if (unlikely(cls == FRAME_CLASSES)) {
        classify_any(m, k);
        return false;
    }
    k->kind = PACKET_ROCE;
    k->cls = (uint8_t)cls;
    k->l3 = 14;
    k->l4 = 34;
    k->src_ip = load_be32(p + 26);
    k->dst_ip = load_be32(p + 30);
    k->udp_src = load_be16(p + 34);
    k->dqpn = load_be32(p + 46) & 0xffffff;
    return true;
}

/* A hash of the fields that RoCE v2 keeps constant in a flow. */
static inline uint32_t packet_flow_hash(const struct packet_class *k)
{
    uint64_t h = ((uint64_t)k->src_ip << 32 | k->dst_ip) ^ ((uint64_t)k->udp_src << 16);

    h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdu;
    h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53u;
    return (uint32_t)(h >> 32);
}

static inline bool mac_equal(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, 6) == 0;
}

#endif
