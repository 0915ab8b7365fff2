/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCE v2 on the wire: one opcode table drives parse, build and print.
 * IBTA volume 1, chapter 9 (transport headers) and annex A17 (RoCE v2).
 */
#ifndef TRIB_ROCE_WIRE_H
#define TRIB_ROCE_WIRE_H

#include "roce/frame.h"
#include "roce/reasons.h"

#include <stdbool.h>

#define ROCE_UDP_PORT     4791
#define ROCE_PSN_MASK     0xffffffu
#define ROCE_MAX_MTU      4096u
#define ROCE_DEFAULT_PKEY 0xffffu
#define ROCE_MCAST_QPN    0xffffffu
/* Ethernet 14, IPv4 20, UDP 8, BTH 12; with IPv6, whose header takes 40. */
#define ROCE_BASE_BYTES  54u
#define ROCE_BASE6_BYTES 74u
#define ROCE_ICRC_BYTES  4u

/* Extended headers after the BTH, in this order; roce_ext_bytes() gives their bytes. */
enum {
    ROCE_X_DETH = 1,
    ROCE_X_RETH = 2,
    ROCE_X_ATOMIC = 4,
    ROCE_X_AETH = 8,
    ROCE_X_ATOMICACK = 16,
    ROCE_X_IMM = 32,
    ROCE_X_IETH = 64,
    ROCE_X_CNP = 128 /* 16 reserved bytes of a congestion notification, annex A17.9.3 */
};
/* Flags of a packet: its position in the message, its kind, and its sender. */
enum {
    ROCE_P_FIRST = 1,
    ROCE_P_LAST = 2,
    ROCE_P_ONLY = 3,
    ROCE_P_SEND = 4,
    ROCE_P_WRITE = 8,
    ROCE_P_READ = 16,
    ROCE_P_ATOMIC = 32,
    ROCE_P_RESPONSE = 64
};
/* Lengths that the opcode allows; a packet that is not the last of its message carries a full path
 * MTU, which needs no padding. */
enum roce_payload_rule { ROCE_LEN_NONE, ROCE_LEN_MTU, ROCE_LEN_1_MTU, ROCE_LEN_0_MTU };

/* Upper three bits of an opcode. */
enum {
    ROCE_RC = 0x00,
    ROCE_UC = 0x20,
    ROCE_UD = 0x60,
    ROCE_CNP = 0x80,
    ROCE_TRANSPORT_MASK = 0xe0
};

/* X(transport, opcode, NAME, extended headers, what, length rule), IBTA table 38. ATOMIC_WRITE is of annex
 * A19: its payload is eight bytes, and its answer an empty READ response. */
#define ROCE_MSG_OPCODES(X, T)                                                                     \
    X(T, 0x00, SEND_FIRST, 0, ROCE_P_SEND | ROCE_P_FIRST, ROCE_LEN_MTU)                            \
    X(T, 0x01, SEND_MIDDLE, 0, ROCE_P_SEND, ROCE_LEN_MTU)                                          \
    X(T, 0x02, SEND_LAST, 0, ROCE_P_SEND | ROCE_P_LAST, ROCE_LEN_1_MTU)                            \
    X(T, 0x03, SEND_LAST_IMM, ROCE_X_IMM, ROCE_P_SEND | ROCE_P_LAST, ROCE_LEN_1_MTU)               \
    X(T, 0x04, SEND_ONLY, 0, ROCE_P_SEND | ROCE_P_ONLY, ROCE_LEN_0_MTU)                            \
    X(T, 0x05, SEND_ONLY_IMM, ROCE_X_IMM, ROCE_P_SEND | ROCE_P_ONLY, ROCE_LEN_0_MTU)               \
    X(T, 0x06, WRITE_FIRST, ROCE_X_RETH, ROCE_P_WRITE | ROCE_P_FIRST, ROCE_LEN_MTU)                \
    X(T, 0x07, WRITE_MIDDLE, 0, ROCE_P_WRITE, ROCE_LEN_MTU)                                        \
    X(T, 0x08, WRITE_LAST, 0, ROCE_P_WRITE | ROCE_P_LAST, ROCE_LEN_1_MTU)                          \
    X(T, 0x09, WRITE_LAST_IMM, ROCE_X_IMM, ROCE_P_WRITE | ROCE_P_LAST, ROCE_LEN_1_MTU)             \
    X(T, 0x0a, WRITE_ONLY, ROCE_X_RETH, ROCE_P_WRITE | ROCE_P_ONLY, ROCE_LEN_0_MTU)                \
    X(T, 0x0b, WRITE_ONLY_IMM, ROCE_X_RETH | ROCE_X_IMM, ROCE_P_WRITE | ROCE_P_ONLY, ROCE_LEN_0_MTU)
#define ROCE_OPCODES(X)                                                                            \
    ROCE_MSG_OPCODES(X, RC)                                                                        \
    X(RC, 0x0c, READ_REQUEST, ROCE_X_RETH, ROCE_P_READ | ROCE_P_ONLY, ROCE_LEN_NONE)               \
    X(RC, 0x0d, READ_RESPONSE_FIRST, ROCE_X_AETH, ROCE_P_READ | ROCE_P_RESPONSE | ROCE_P_FIRST,    \
      ROCE_LEN_MTU)                                                                                \
    X(RC, 0x0e, READ_RESPONSE_MIDDLE, 0, ROCE_P_READ | ROCE_P_RESPONSE, ROCE_LEN_MTU)              \
    X(RC, 0x0f, READ_RESPONSE_LAST, ROCE_X_AETH, ROCE_P_READ | ROCE_P_RESPONSE | ROCE_P_LAST,      \
      ROCE_LEN_1_MTU)                                                                              \
    X(RC, 0x10, READ_RESPONSE_ONLY, ROCE_X_AETH, ROCE_P_READ | ROCE_P_RESPONSE | ROCE_P_ONLY,      \
      ROCE_LEN_0_MTU)                                                                              \
    X(RC, 0x11, ACKNOWLEDGE, ROCE_X_AETH, ROCE_P_RESPONSE | ROCE_P_ONLY, ROCE_LEN_NONE)            \
    X(RC, 0x12, ATOMIC_ACKNOWLEDGE, ROCE_X_AETH | ROCE_X_ATOMICACK,                                \
      ROCE_P_ATOMIC | ROCE_P_RESPONSE | ROCE_P_ONLY, ROCE_LEN_NONE)                                \
    X(RC, 0x13, CMP_SWAP, ROCE_X_ATOMIC, ROCE_P_ATOMIC | ROCE_P_ONLY, ROCE_LEN_NONE)               \
    X(RC, 0x14, FETCH_ADD, ROCE_X_ATOMIC, ROCE_P_ATOMIC | ROCE_P_ONLY, ROCE_LEN_NONE)              \
    X(RC, 0x16, SEND_LAST_INV, ROCE_X_IETH, ROCE_P_SEND | ROCE_P_LAST, ROCE_LEN_1_MTU)             \
    X(RC, 0x17, SEND_ONLY_INV, ROCE_X_IETH, ROCE_P_SEND | ROCE_P_ONLY, ROCE_LEN_0_MTU)             \
    X(RC, 0x1d, ATOMIC_WRITE, ROCE_X_RETH, ROCE_P_ATOMIC | ROCE_P_ONLY, ROCE_LEN_1_MTU)            \
    ROCE_MSG_OPCODES(X, UC)                                                                        \
    X(UD, 0x04, SEND_ONLY, ROCE_X_DETH, ROCE_P_SEND | ROCE_P_ONLY, ROCE_LEN_0_MTU)                 \
    X(UD, 0x05, SEND_ONLY_IMM, ROCE_X_DETH | ROCE_X_IMM, ROCE_P_SEND | ROCE_P_ONLY,                \
      ROCE_LEN_0_MTU)                                                                              \
    X(CNP, 0x01, PACKET, ROCE_X_CNP, ROCE_P_ONLY, ROCE_LEN_NONE)

enum roce_opcode {
#define X(t, o, n, x, w, l) ROCE_OP_##t##_##n = ROCE_##t | (o),
    ROCE_OPCODES(X)
#undef X
};

struct roce_opinfo {
    const char *name; /* "RC SEND_FIRST"; NULL: no such opcode */
    uint8_t ext;      /* ROCE_X_* */
    uint8_t what;     /* ROCE_P_* */
    uint8_t rule;     /* enum roce_payload_rule */
    uint8_t ext_bytes;
};
extern const struct roce_opinfo roce_opinfo[256];

/* AETH syndrome, IBTA 9.7.5.2.1: the upper three bits are the type, the lower five the credits,
 * timer or NAK code. */
enum {
    AETH_ACK = 0x00,
    AETH_RNR = 0x20,
    AETH_NAK = 0x60,
    AETH_MASK = 0xe0,
    AETH_NO_CREDITS = 0x1f
};
enum {
    NAK_SEQUENCE = 0x60,
    NAK_INVALID_REQUEST = 0x61,
    NAK_REMOTE_ACCESS = 0x62,
    NAK_REMOTE_OP = 0x63
};

/* MAC of an IPv4 address of the fabric: 02:54 and the four bytes of the address. So addresses of
 * the fabric need no table and no ARP. */
static inline void roce_mac_of_ip(uint32_t ip, uint8_t mac[6])
{
    mac[0] = 0x02, mac[1] = 0x54;
    mac[2] = ip >> 24, mac[3] = ip >> 16, mac[4] = ip >> 8, mac[5] = ip;
}

/* The link-local IPv6 address of that MAC by its modified EUI-64 (RFC 4291, appendix A):
 * fe80::54:AAff:feBB:CCDD for AA.BB.CC.DD. */
static inline void roce_link_local_of_ip(uint32_t ip, uint8_t addr[16])
{
    static const uint8_t any[16] = {0xfe, 0x80, [9] = 0x54, [11] = 0xff, [12] = 0xfe};

    memcpy(addr, any, 16);
    addr[10] = ip >> 24, addr[13] = ip >> 16, addr[14] = ip >> 8, addr[15] = ip;
}

/* The IPv4 address of the port with that link-local address; 0: not of the fabric. */
static inline uint32_t roce_ip_of_link_local(const uint8_t addr[16])
{
    static const uint8_t prefix[10] = {0xfe, 0x80, [9] = 0x54};

    if (memcmp(addr, prefix, sizeof(prefix)) || addr[11] != 0xff || addr[12] != 0xfe)
        return 0;
    return (uint32_t)addr[10] << 24 | (uint32_t)addr[13] << 16 | (uint32_t)addr[14] << 8 | addr[15];
}

/* A packet as parsed, or to be built. Integers in host order. */
struct roce_pkt {
    uint8_t opcode;   /* BTH opcode, IBTA table 38 */
    uint8_t syndrome; /* AETH */
    bool solicited, ack_req;
    uint8_t pad;      /* bytes of padding, 0..3 */
    uint8_t tos, ttl; /* IPv6: traffic class and hop limit */
    uint8_t l3;       /* offset of the IP header: 14, or 18 with one tag (parse only) */
    bool v6;          /* IPv6 between the link-local addresses of src_ip and dst_ip */
    uint16_t pkey, udp_src;
    /* The top 8 bits of the sender's QPN, for which RC has no field. In the identification of the IPv4
     * header (without use in datagrams that are not fragmented, RFC 6864), or in the low 16 bits of IPv6's
     * flow label. The sender's NIC lets no process send another's mark. */
    uint16_t mark;
    uint32_t src_ip, dst_ip;
    uint8_t src_mac[6], dst_mac[6];
    uint32_t dqpn, psn;
    uint32_t msn;           /* AETH */
    uint32_t rkey, dma_len; /* RETH, AtomicETH; rkey also IETH */
    uint64_t va;
    uint64_t swap_add, compare, orig; /* AtomicETH, AtomicAckETH */
    uint32_t qkey, sqpn;              /* DETH */
    uint32_t imm;                     /* ImmDt, network order */
    uint8_t *payload;                 /* NULL if none of it is carried */
    uint32_t len;                     /* bytes of payload, padding excluded */
    uint32_t virt;    /* bytes at the end that are counted but not carried: meta.virt_len */
    uint32_t hdr_len; /* offset of the payload from the start of the frame */
};

/* Offset of the payload in a frame that roce_build() makes. */
static inline uint32_t roce_built_bytes(uint8_t opcode, bool v6)
{
    return (v6 ? ROCE_BASE6_BYTES : ROCE_BASE_BYTES) + roce_opinfo[opcode].ext_bytes;
}

/* Bytes from the start of a RoCE v2 frame to its payload, by the opcode table. 0: not RoCE v2, or
 * truncated. */
uint32_t roce_header_bytes(const uint8_t *p, uint32_t len);

/* Parses a frame of any shape that frame.h allows. Returns ROCE_OK, or the reason of refusal; then pkt is
 * undefined. roce_icrc_ok() checks the ICRC. */
enum roce_reason roce_parse(struct rte_mbuf *m, struct roce_pkt *pkt);

/*
 * Writes all headers at the start of the data of m, an empty frame, and sets its lengths to them; fills in
 * pkt->pad and pkt->hdr_len. The caller then adds the payload, pkt->len - pkt->virt bytes after the
 * headers, and calls roce_seal() or roce_seal_crc().
 */
void roce_build(struct rte_mbuf *m, struct roce_pkt *pkt);

/* Completes a frame whose payload follows the headers, while m's lengths are still those of the headers.
 * Adds padding, ICRC and meta. */
void roce_seal(struct rte_mbuf *m, const struct roce_pkt *pkt);

/* The same. crc: roce_crc(0, payload), computed once for all copies. */
void roce_seal_crc(struct rte_mbuf *m, const struct roce_pkt *pkt, uint32_t crc);

/* The same for a frame that shares its payload: padding and ICRC are written to `at`
 * (frame_share()). */
void roce_seal_shared(struct rte_mbuf *m, const struct roce_pkt *pkt, uint32_t crc, uint8_t *at);

/* Whether the last four bytes are the ICRC of the bytes before them. pkt: as parsed from m. */
bool roce_icrc_ok(struct rte_mbuf *m, const struct roce_pkt *pkt);

/* One line of text, as snprintf(). */
int roce_print(char *buf, size_t size, const struct roce_pkt *pkt);

#endif
