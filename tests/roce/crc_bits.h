/* SPDX-License-Identifier: BSD-3-Clause */
/* The CRC of the ICRC one bit at a time, straight from the polynomial: shares nothing with roce/icrc.c. */
#ifndef TRIB_TESTS_ROCE_CRC_BITS_H
#define TRIB_TESTS_ROCE_CRC_BITS_H

#include <stddef.h>
#include <stdint.h>

static inline uint32_t crc_bits(uint32_t crc, const uint8_t *p, size_t n)
{
    while (n--) {
        crc ^= *p++;
        for (int b = 0; b < 8; b++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return crc;
}

#endif
