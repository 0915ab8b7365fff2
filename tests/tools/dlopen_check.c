/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A verbs program that is not linked with libibverbs: it loads the library by name and its calls by
 * name and version, as NCCL does. Prints the devices; exit code 1 with the reason when a call is
 * missing.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct ibv_device;

static void *call(void *lib, const char *name, const char *version)
{
    void *fn = dlvsym(lib, name, version);

    if (!fn) {
        fprintf(stderr, "dlopen_check: no %s of %s: %s\n", name, version, dlerror());
        exit(1);
    }
    return fn;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "libibverbs.so.1";
    void *lib = dlopen(name, RTLD_NOW);
    struct ibv_device **(*list)(int *);
    const char *(*name_of)(struct ibv_device *);
    const char *(*status)(int);
    struct ibv_device **devs;
    int n = 0;

    if (!lib) {
        fprintf(stderr, "dlopen_check: %s\n", dlerror());
        return 1;
    }
    list = (struct ibv_device * *(*)(int *)) call(lib, "ibv_get_device_list", "IBVERBS_1.1");
    name_of = (const char *(*)(struct ibv_device *))call(lib, "ibv_get_device_name", "IBVERBS_1.1");
    status = (const char *(*)(int))call(lib, "ibv_wc_status_str", "IBVERBS_1.1");
    call(lib, "ibv_reg_dmabuf_mr", "IBVERBS_1.12");
    devs = list(&n);
    for (int i = 0; devs && i < n; i++)
        printf("%s\n", name_of(devs[i]));
    printf("%d devices, %s\n", n, status(0));
    return 0;
}
