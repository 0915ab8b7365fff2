/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that load libibverbs at run time (NCCL does) bypass a preloaded library: they look
 * symbols up in the handle that dlopen returned. So on an emulated host dlopen returns this
 * library's handle. Its symbols carry libibverbs' versions, and symbols that it lacks resolve in
 * the real libibverbs, which it depends on.
 *
 * dlopen searches the path of its caller, which it identifies by the return address. So the real
 * dlopen must return to the caller directly: with -O2 the last call is a jump.
 */
#include "host/hca/hca_priv.h"

#include <dlfcn.h>
#include <string.h>

typedef void *dlopen_fn(const char *name, int flags);

static dlopen_fn *real_dlopen(void)
{
    static dlopen_fn *fn;

    if (!fn)
        fn = (dlopen_fn *)dlsym(RTLD_NEXT, "dlopen");
    return fn;
}

void *hca_dlopen(const char *name, int flags)
{
    return real_dlopen()(name, flags);
}

static bool is_libibverbs(const char *name)
{
    const char *base = strrchr(name, '/');

    base = base ? base + 1 : name;
    return !strcmp(base, "libibverbs.so") || !strcmp(base, "libibverbs.so.1");
}

static const char *own_path(void)
{
    Dl_info me;

    return dladdr((void *)own_path, &me) ? me.dli_fname : NULL;
}

EXPORT void *dlopen(const char *name, int flags)
{
    if (name && is_libibverbs(name) && process_on_fabric())
        name = own_path();
    return real_dlopen()(name, flags);
}
