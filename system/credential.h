/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Secrets that prove an identity: where they are found, how they are compared and wiped. A secret is a text.
 * It never appears in a message, a log or a result; messages name its source.
 */
#ifndef TRIB_SYSTEM_CREDENTIAL_H
#define TRIB_SYSTEM_CREDENTIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CREDENTIAL_LEAST 16u /* characters */
#define CREDENTIAL_TEXT  128 /* bytes, with the terminating 0 */
#define CREDENTIAL_MAC   32  /* bytes */
#define CREDENTIAL_WHY   384 /* bytes for a reason */

/*
 * Reads the secret from the environment variable NAME, or else from the file that NAME_FILE names: a plain
 * file of this user that nobody else can read or write, with the secret as its only line. 0; -ENOENT:
 * neither is set; otherwise -errno: why says what was found, where, and what is expected.
 */
int credential_from_env(const char *name, char text[CREDENTIAL_TEXT], char why[CREDENTIAL_WHY]);

/*
 * Reads the secret from this user's file `name` in a directory of this user (system/own_path.h). Creates
 * whichever is missing, the file with a random secret. Returns as credential_from_env(); -ENOENT has a why, too.
 */
int credential_own(const char *dir, const char *name, char text[CREDENTIAL_TEXT],
                   char why[CREDENTIAL_WHY]);

/* Fills with random bytes. 0, or -EIO: the kernel has none. */
int credential_random(void *to, size_t bytes);
/* Compares in the same time, wherever the bytes differ. */
bool credential_same(const void *a, const void *b, size_t bytes);
/* Zeroes memory, even if a compiler sees no use after it. */
void credential_wipe(void *p, size_t bytes);

/* credential_mac.c, which needs libcrypto: HMAC-SHA-256. False: libcrypto has failed. */
bool credential_mac(const char *secret, const void *message, size_t bytes,
                    uint8_t mac[CREDENTIAL_MAC]);

#endif
