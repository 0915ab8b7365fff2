/* SPDX-License-Identifier: BSD-3-Clause */
/* The secret with which ranks that meet over TCP authenticate each other. */
#ifndef TRIB_HOST_SESSION_STORE_SECRET_H
#define TRIB_HOST_SESSION_STORE_SECRET_H

#include "system/credential.h"

#define STORE_SECRET_ENV  "TRIB_STORE_SECRET" /* or, with a path, TRIB_STORE_SECRET_FILE */
#define STORE_SECRET_FILE "store.secret"      /* in the directory of the user's run directories */

struct store_secret {
    char text[CREDENTIAL_TEXT];
    char from[160]; /* its origin, for messages */
};

/*
 * Finds the secret: in the environment (credential_from_env()); else derived from the trunk_key of
 * TRIB_RUN's fabric, so that all its machines have the same; else in the user's file, which is
 * created if it is missing. 0 or -errno, with the reason in err.
 */
int store_secret_find(struct store_secret *s, char *err);

#endif
