/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs_ucx_routes LIBRARY: loads a UCX (or what looks like one), opens the first device as it does,
 * and prints what UCX reads then of how to tell which addresses a RoCE device reaches.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    struct ibv_device **devs;
    struct ibv_context *ctx;
    const char *mode;

    if (argc != 2 || !dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)) {
        fprintf(stderr, "verbs_ucx_routes: %s\n", argc == 2 ? dlerror() : "expected a library");
        return 1;
    }
    devs = ibv_get_device_list(NULL);
    ctx = devs && *devs ? ibv_open_device(*devs) : NULL;
    if (!ctx) {
        perror("verbs_ucx_routes: no device");
        return 1;
    }
    mode = getenv("UCX_IB_ROCE_REACHABILITY_MODE");
    printf("%s\n", mode ? mode : "unset");
    ibv_close_device(ctx);
    ibv_free_device_list(devs);
    return 0;
}
