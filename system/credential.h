/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Secrets by which somebody proves who he is: where they are found, how they are compared and wiped. A
 * secret is a text; it is never in a message, a log or a result, and a message names its source.
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
 * The secret of an environment's variable NAME, else of the file that NAME_FILE names: a plain file of
 * this user's that nobody else can read or write, with the secret as its only line. 0; -ENOENT: neither
 * is set; else -errno: why says what was found, where, and what is expected.
 */
int credential_from_env(const char *name, char text[CREDENTIAL_TEXT], char why[CREDENTIAL_WHY]);

/*
 * The secret of this user's file `name` in a directory of this user's (system/own_path.h); what is
 * missing of both is made, the secret by chance. As credential_from_env(), but -ENOENT has a why, too.
 */
int credential_own(const char *dir, const char *name, char text[CREDENTIAL_TEXT],
                   char why[CREDENTIAL_WHY]);

/* 0, or -EIO: the kernel has none. */
int credential_random(void *to, size_t bytes);
/* Takes the same time wherever they differ. */
bool credential_same(const void *a, const void *b, size_t bytes);
/* Not left out by a compiler that sees no use after it. */
void credential_wipe(void *p, size_t bytes);

/* credential_mac.c, which needs libcrypto: HMAC-SHA-256. False: libcrypto has failed. */
bool credential_mac(const char *secret, const void *message, size_t bytes,
                    uint8_t mac[CREDENTIAL_MAC]);

#endif
