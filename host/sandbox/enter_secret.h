/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes the ranks' secret (host/session/store_secret.h) to an isolated program. */
#ifndef TRIB_HOST_SANDBOX_ENTER_SECRET_H
#define TRIB_HOST_SANDBOX_ENTER_SECRET_H

#include "fabric/fabric.h"

/*
 * Sets TRIB_STORE_SECRET, because the program will not see the secret's file. Does nothing if the
 * fabric has a trunk_key, which the program reads in the conf. On errors the variable stays unset,
 * and a program that needs the secret reports what is wrong.
 */
void enter_secret(const struct fabric *f);

#endif
