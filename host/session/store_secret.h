/* SPDX-License-Identifier: BSD-3-Clause */
/* The secret by which the ranks that meet over TCP know each other. */
#ifndef TRIB_HOST_SESSION_STORE_SECRET_H
#define TRIB_HOST_SESSION_STORE_SECRET_H

#include "system/credential.h"

#define STORE_SECRET_ENV  "TRIB_STORE_SECRET" /* and TRIB_STORE_SECRET_FILE */
#define STORE_SECRET_FILE "store.secret"      /* in the directory of the user's run directories */

struct store_secret {
    char text[CREDENTIAL_TEXT];
    char from[160]; /* where it was found, for messages */
};

/*
 * The environment's (credential_from_env()); else, where the fabric of TRIB_RUN is one of several machines,
 * what follows from its trunk_key, so that it is the same on all; else that of the user's own file,
 * which is made. 0 or -errno, with the reason in err.
 */
int store_secret_find(struct store_secret *s, char *err);

#endif
