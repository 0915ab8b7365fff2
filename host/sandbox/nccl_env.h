/* SPDX-License-Identifier: BSD-3-Clause */
/* What NCCL has to be told of an emulated host. */
#ifndef TRIB_HOST_SANDBOX_NCCL_ENV_H
#define TRIB_HOST_SANDBOX_NCCL_ENV_H

#include "fabric/fabric.h"

/* Sets, for the host of that name, those of NCCL's variables that are not set: what a user has set
 * wins, empty values too. Says what it has set at TRIB_LOG=exec:info. 0 or -errno. */
int nccl_env_set(const struct fabric *f, const char *host);

#endif
