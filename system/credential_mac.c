/* SPDX-License-Identifier: BSD-3-Clause */
/* Separate from credential.c, which programs without libcrypto use, too. */
#include "system/credential.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

bool credential_mac(const char *secret, const void *message, size_t bytes,
                    uint8_t mac[CREDENTIAL_MAC])
{
    unsigned n = 0;

    return HMAC(EVP_sha256(), secret, (int)strlen(secret), message, bytes, mac, &n) &&
           n == CREDENTIAL_MAC;
}
