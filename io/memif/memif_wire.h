/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memif 2.0 on the wire and in shared memory, compatible with FD.io's memif and DPDK's net_memif.
 * Integers are in host order, because both ends are on one machine.
 *
 * The client makes one region (a sealed memfd) with all rings and buffers and passes it over a
 * SOCK_SEQPACKET socket. The server sends HELLO; the client INIT, ADD_REGION, ADD_RING..., CONNECT; the
 * server ACK to each but CONNECT, which it answers with CONNECTED. C2S rings: the client fills buffers
 * and advances head, the server empties them and advances tail. S2C rings: the client offers empty
 * buffers by advancing head, the server fills them and advances tail.
 */
#ifndef TRIB_IO_MEMIF_WIRE_H
#define TRIB_IO_MEMIF_WIRE_H

#include <assert.h>
#include <stdint.h>

#define MEMIF_COOKIE  0x3E31F20u
#define MEMIF_VERSION ((2 << 8) | 0)
#define MEMIF_NAME    32

enum memif_msg_type {
    MEMIF_ACK = 1,
    MEMIF_HELLO,
    MEMIF_INIT,
    MEMIF_ADD_REGION,
    MEMIF_ADD_RING,
    MEMIF_CONNECT,
    MEMIF_CONNECTED,
    MEMIF_DISCONNECT
};

#define MEMIF_RING_C2S  1           /* flag of ADD_RING */
#define MEMIF_PORT_PAGE 0x50425254u /* mark: the region is the connection's port page */

struct memif_msg {
    uint16_t type;
    union {
        struct {
            char name[MEMIF_NAME];
            uint16_t min_version, max_version, max_region, max_s2c_ring, max_c2s_ring;
            uint8_t max_log2_ring;
        } __attribute__((packed)) hello;
        struct {
            uint16_t version;
            uint32_t id;
            uint8_t mode;                      /* 0: Ethernet */
            char secret[24], name[MEMIF_NAME]; /* secret: the host's token (token.h) */
        } __attribute__((packed)) init;
        struct {
            uint16_t index;
            uint64_t size;
            uint32_t kind; /* not in the standard: MEMIF_PORT_PAGE */
        } __attribute__((packed)) region;
        struct {
            uint16_t flags, index, region;
            uint32_t offset;
            uint8_t log2_size;
            uint16_t private_bytes;
        } __attribute__((packed)) ring;
        struct {
            char name[MEMIF_NAME];
        } __attribute__((packed)) connect;
        struct {
            uint32_t code;
            char reason[96];
        } __attribute__((packed)) disconnect;
        char pad[126];
    } __attribute__((packed));
} __attribute__((packed));
static_assert(sizeof(struct memif_msg) == 128, "control messages of memif 2.0");

#define MEMIF_DESC_NEXT 1

struct memif_desc {
    uint16_t flags, region;
    uint32_t length, offset, metadata;
};
static_assert(sizeof(struct memif_desc) == 16, "descriptor of memif 2.0");

#define MEMIF_RING_MASK_INT 1 /* the receiver polls: the sender sends no interrupts */

struct memif_ring {
    uint32_t cookie;
    uint16_t flags;
    uint16_t head;
    char pad0[56];
    uint16_t tail;
    char pad1[62];
    struct memif_desc desc[];
};
static_assert(sizeof(struct memif_ring) == 128, "ring header of memif 2.0");

#endif
