/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UCX 1.18 and later reaches a RoCE address only if the kernel's routing table has a route to it
 * through the device's network interface. Hosts of a fabric have neither, so connections would fail
 * with "no route to 10.0.0.6". UCX_IB_ROCE_REACHABILITY_MODE=all turns that check off.
 *
 * It is set here and not by `trib exec`, because an older UCX warns about unknown variables. When a
 * port is opened, UCX is loaded and has not read this variable yet.
 */
#include "host/hca/io/process_priv.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#define MODE "UCX_IB_ROCE_REACHABILITY_MODE"

/* dl_iterate_phdr: the path of libucs.so, also of a wheel's (libucs-14c218c5.so). */
static int find_ucs(struct dl_phdr_info *info, size_t size, void *path)
{
    const char *base = strrchr(info->dlpi_name, '/');

    (void)size;
    base = base ? base + 1 : info->dlpi_name;
    if (strncmp(base, "libucs", 6) != 0 || (base[6] != '.' && base[6] != '-') ||
        strlen(info->dlpi_name) >= PATH_MAX)
        return 0;
    strcpy(path, info->dlpi_name);
    return 1;
}

void process_ucx_routes(void)
{
    char path[PATH_MAX];
    void *ucs;

    if (getenv(MODE) || getenv("UCX_IB_ROCE_LOCAL_SUBNET") || !dl_iterate_phdr(find_ucs, path))
        return; /* the user's own choice, or no UCX */
    ucs = hca_dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (ucs && dlsym(ucs, "ucs_netlink_send_request"))
        setenv(MODE, "all", 1);
    if (ucs)
        dlclose(ucs);
}
