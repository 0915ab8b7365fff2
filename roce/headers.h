/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Headers of a RoCE v2 frame as they stand on the wire, shared by parser and builder. Not for other
 * rooms.
 */
#ifndef TRIB_ROCE_HEADERS_H
#define TRIB_ROCE_HEADERS_H

#include "roce/wire.h"

#include <rte_byteorder.h>

/* Formats: Ethernet IEEE 802.3 and 802.1Q, IPv4 RFC 791, IPv6 RFC 8200, UDP RFC 768, transport
 * headers IBTA 9.2 to 9.3. */
struct eth {
    uint8_t dst[6], src[6];
    rte_be16_t type;
} __attribute__((packed));
struct ip4 {
    uint8_t ver_ihl, tos;
    rte_be16_t len, id, frag;
    uint8_t ttl, proto;
    rte_be16_t sum;
    rte_be32_t src, dst;
} __attribute__((packed));
struct ip6 {
    rte_be32_t ver_tc_flow;
    rte_be16_t len; /* behind this header */
    uint8_t next, hops;
    uint8_t src[16], dst[16];
} __attribute__((packed));
struct udp {
    rte_be16_t src, dst, len, sum;
} __attribute__((packed));
struct bth {
    uint8_t opcode, flags; /* solicited, migration state, pad 2, version 4 */
    rte_be16_t pkey;
    rte_be32_t qpn; /* upper 8: FECN, BECN, reserved */
    rte_be32_t psn; /* upper bit: AckReq */
} __attribute__((packed));
struct deth {
    rte_be32_t qkey, sqpn;
} __attribute__((packed));
struct reth {
    rte_be64_t va;
    rte_be32_t rkey, len;
} __attribute__((packed));
struct atomiceth {
    rte_be64_t va;
    rte_be32_t rkey;
    rte_be64_t swap_add, compare;
} __attribute__((packed));
struct aeth {
    rte_be32_t v;
} __attribute__((packed));
struct atomicack {
    rte_be64_t orig;
} __attribute__((packed));
struct cnp {
    uint8_t reserved[16];
} __attribute__((packed));

_Static_assert(sizeof(struct eth) == 14, "IEEE 802.3");
_Static_assert(sizeof(struct ip4) == 20, "RFC 791");
_Static_assert(sizeof(struct ip6) == 40, "RFC 8200");
_Static_assert(sizeof(struct udp) == 8, "RFC 768");
_Static_assert(sizeof(struct bth) == 12, "IBTA 9.2");
_Static_assert(sizeof(struct deth) == 8, "IBTA 9.3.2");
_Static_assert(sizeof(struct reth) == 16, "IBTA 9.3.3");
_Static_assert(sizeof(struct atomiceth) == 28, "IBTA 9.3.4");
_Static_assert(sizeof(struct aeth) == 4, "IBTA 9.3.5");
_Static_assert(sizeof(struct atomicack) == 8, "IBTA 9.5.3");
_Static_assert(sizeof(struct cnp) == 16, "IBTA A17.9.3");
_Static_assert(sizeof(struct eth) + sizeof(struct ip4) + sizeof(struct udp) + sizeof(struct bth) ==
                   ROCE_BASE_BYTES,
               "what stands before the extended headers");
_Static_assert(ROCE_BASE6_BYTES - ROCE_BASE_BYTES == sizeof(struct ip6) - sizeof(struct ip4),
               "the same with IPv6");

enum {
    ETH_IPV4 = 0x0800,
    ETH_IPV6 = 0x86dd,
    ETH_VLAN = 0x8100,
    TAG_BYTES = 4,
    IPPROTO_IS_UDP = 17
};
enum { IP_DF = 0x4000, IP_MORE_OR_OFFSET = 0x3fff };
enum { BTH_SOLICITED = 0x80, BTH_MIGRATED = 0x40, BTH_VERSION = 0x0f };
#define BTH_ACK_REQ 0x80000000u
#define BTH_BECN    0x40000000u

/* One's complement sum of the 20 bytes of an IPv4 header; 0xffff where the checksum is right. */
static inline uint32_t ip_sum(uint64_t a, uint64_t b, uint32_t c)
{
    uint64_t s = (a & 0xffffffff) + (a >> 32) + (b & 0xffffffff) + (b >> 32) + c;

    s = (s & 0xffff) + (s >> 16 & 0xffff) + (s >> 32);
    s = (s & 0xffff) + (s >> 16);
    return (uint32_t)((s & 0xffff) + (s >> 16));
}

#endif
