/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NCCL asks the machine for facts that are the fabric's here: which ranks are on one host (by boot
 * id and hostname, and emulated hosts share the hostname), which NICs of sysfs, which GID, and
 * which interface for its first connections. CollNet's threshold needs no variable: its default is
 * 2 hosts.
 */
#include "host/sandbox/nccl_env.h"

#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOSTID "NCCL_HOSTID"
#define OURS                                                                                       \
    "TRIB_NCCL_HOSTID" /* the host id that an outer trib exec set, which may be replaced here */

static int variable_set(const char *name, const char *value)
{
    if (getenv(name))
        return 0;
    if (setenv(name, value, 1))
        return -errno;
    T_LOG("exec", LOG_INFO, "%s=%s", name, value);
    return 0;
}

/* Sets NCCL_HOSTID, so that ranks of two hosts do not assume that they share memory and GPUs. */
static int set_host_id(const struct fabric *f, const char *host)
{
    const char *ours = getenv(OURS), *now = getenv(HOSTID);
    char id[2 * FAB_NAME];
    int n = snprintf(id, sizeof(id), "%s.%s", host, f->name);

    if (n < 0 || (size_t)n >= sizeof(id))
        return -ENAMETOOLONG;
    if (ours && now && !strcmp(ours, now))
        unsetenv(HOSTID);
    if (getenv(HOSTID))
        return 0;
    return setenv(OURS, id, 1) ? -errno : variable_set(HOSTID, id);
}

int nccl_env_set(const struct fabric *f, const char *host)
{
    int rc = set_host_id(f, host);

    rc = rc ? rc : variable_set("NCCL_IB_HCA", "trib"); /* a prefix: all NICs of the host */
    rc = rc ? rc : variable_set("NCCL_IB_GID_INDEX", "0");
    if (!f->n_machines) /* with several machines, "lo" does not reach all ranks */
        rc = rc ? rc : variable_set("NCCL_SOCKET_IFNAME", "lo");
    /* 2 is the proxy. Without this, NCCL 2.28 and 2.29 read a stray pointer if no NIC supports the
     * other kind; only mlx5 does. */
    return rc ? rc : variable_set("NCCL_GIN_TYPE", "2");
}
