/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NCCL asks the machine what is the fabric's to say: which ranks are on one host (boot id and
 * hostname, which emulated hosts share), which NIC of sysfs, which GID, which interface for its first
 * connections. CollNet's threshold is 2 hosts by itself.
 */
#include "host/sandbox/nccl_env.h"

#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOSTID "NCCL_HOSTID"
#define OURS                                                                                       \
    "TRIB_NCCL_HOSTID" /* that of an outer trib exec, as of a shell, which is no user's choice */

static int set(const char *name, const char *value)
{
    if (getenv(name))
        return 0;
    if (setenv(name, value, 1))
        return -errno;
    T_LOG("exec", LOG_INFO, "%s=%s", name, value);
    return 0;
}

/* By it ranks of two hosts do not take each other for neighbours that share memory and GPUs. */
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
    return setenv(OURS, id, 1) ? -errno : set(HOSTID, id);
}

int nccl_env_set(const struct fabric *f, const char *host)
{
    int rc = set_host_id(f, host);

    rc = rc ? rc : set("NCCL_IB_HCA", "trib"); /* a prefix: all NICs of the host */
    rc = rc ? rc : set("NCCL_IB_GID_INDEX", "0");
    if (!f->n_machines) /* else ranks of other machines are to be reached */
        rc = rc ? rc : set("NCCL_SOCKET_IFNAME", "lo");
    /* The proxy: 2.28 and 2.29 read a stray pointer where no NIC has the other kind, which are all
     * but mlx5. */
    return rc ? rc : set("NCCL_GIN_TYPE", "2");
}
