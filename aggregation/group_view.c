/* SPDX-License-Identifier: BSD-3-Clause */
#include "aggregation/group_view.h"

#include <sys/types.h>
#include <sha256.h>

uint32_t group_view_job(uint64_t key)
{
    uint8_t bytes[8], digest[SHA256_DIGEST_LENGTH];
    SHA256_CTX c;

    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(key >> 8 * i);
    SHA256Init(&c);
    SHA256Update(&c, bytes, sizeof(bytes));
    SHA256Final(digest, &c);
    return (uint32_t)digest[0] << 24 | (uint32_t)digest[1] << 16 | (uint32_t)digest[2] << 8 |
           digest[3];
}
