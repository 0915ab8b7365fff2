/*
 * RoCE v2 on the wire: one opcode table drives parse, build and print.
 * IBTA volume 1, chapter 9 (transport headers) and annex A17 (RoCE v2).
 */
#ifndef TRIB_ROCE_WIRE_H
#define TRIB_ROCE_WIRE_H

#include "roce/frame.h"

#include <stdbool.h>

#define ROCE_UDP_PORT 4791
#define ROCE_PSN_MASK 0xffffffu

/* MAC of an IPv4 address of the fabric: 02:54 and the four bytes of the address. Nobody needs a table or ARP for inner addresses. */
static inline void roce_mac_of_ip(uint32_t ip, uint8_t mac[6])
{
    mac[0] = 0x02, mac[1] = 0x54;
    mac[2] = ip >> 24, mac[3] = ip >> 16, mac[4] = ip >> 8, mac[5] = ip;
}

/* A parsed packet, or what to build one from. Integers in host order. */
struct roce_pkt {
    uint8_t opcode;                 /* BTH opcode, IBTA table 38 */
    uint8_t syndrome;               /* AETH */
    bool solicited, ack_req;
    uint8_t pad;                    /* bytes of padding, 0..3 */
    uint8_t tos, ttl;
    uint16_t pkey, udp_src;
    uint32_t src_ip, dst_ip;
    uint8_t src_mac[6], dst_mac[6];
    uint32_t dqpn, psn;
    uint32_t msn;                   /* AETH */
    uint32_t rkey, dma_len;         /* RETH, AtomicETH */
    uint64_t va;
    uint64_t swap_add, compare, orig;   /* AtomicETH, AtomicAckETH */
    uint32_t qkey, sqpn;            /* DETH */
    uint32_t imm;                   /* ImmDt, network order */
    uint8_t *payload;               /* NULL when empty or length-only */
    uint32_t len;                   /* bytes of payload, padding excluded */
    uint32_t hdr_len;               /* offset of the payload from the start of the frame */
};

#endif
