/* SPDX-License-Identifier: BSD-3-Clause */
/* Environment variables that NCCL needs on an emulated host. */
#ifndef TRIB_HOST_SANDBOX_NCCL_ENV_H
#define TRIB_HOST_SANDBOX_NCCL_ENV_H

#include "fabric/fabric.h"

/* Sets NCCL's variables for the host of that name. Variables that the user has set stay, even if
 * they are empty. Logs what it sets at TRIB_LOG=exec:info. 0 or -errno. */
int nccl_env_set(const struct fabric *f, const char *host);

#endif
