/* SPDX-License-Identifier: BSD-3-Clause */
/* The secret by which ranks know each other (host/session/store_secret.h), for an isolated program. */
#ifndef TRIB_HOST_SANDBOX_ENTER_SECRET_H
#define TRIB_HOST_SANDBOX_ENTER_SECRET_H

#include "fabric/fabric.h"

/*
 * Puts it into TRIB_STORE_SECRET, as the program will not see its file. Not where there is a trunk_key: the
 * program reads that in the conf. Without one the program says itself what is wrong, if it needs it.
 */
void enter_secret(const struct fabric *f);

#endif
