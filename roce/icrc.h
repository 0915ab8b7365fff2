/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC-32 (IEEE 802.3) for the invariant CRC of RoCE v2, IBTA annex A17.5.
 *
 * Values are the register, without the inversions at start and end, so that pieces can be combined:
 *     roce_crc(roce_crc(s, a), b) == roce_crc(s, ab) == roce_crc_shift(roce_crc(s, a), len(b)) ^
 * roce_crc(0, b) The ICRC is ~roce_crc(~0, eight bytes of 0xff, IPv4 header to the end of the
 * padding with the fields that routers may change as 0xff), stored little-endian.
 */
#ifndef TRIB_ROCE_ICRC_H
#define TRIB_ROCE_ICRC_H

#include <stddef.h>
#include <stdint.h>

/* Register after n more bytes. */
uint32_t roce_crc(uint32_t crc, const void *p, size_t n);

/* The same while copying: bytes are read once, so the CRC is that of the copy. */
uint32_t roce_crc_copy(uint32_t crc, void *to, const void *p, size_t n);

/* Register after n bytes of zero, in O(log n). */
uint32_t roce_crc_shift(uint32_t crc, uint32_t n);

/* Register after the masked headers of a packet and `zeros` bytes of zero, to which the register of
 * the payload is added: IPv4 header at p, n bytes to the payload (IPv4, UDP, BTH, extended
 * headers). */
uint32_t roce_icrc_headers(const uint8_t *p, uint32_t n, uint32_t zeros);
/* The same for an IPv6 header at p. */
uint32_t roce_icrc_headers6(const uint8_t *p, uint32_t n, uint32_t zeros);

#endif
