/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that load libibverbs when they run (NCCL does) do not see a preloaded library: they ask
 * the handle that dlopen gave them. So on an emulated host that handle is this library's, whose
 * symbols have libibverbs' versions; what it lacks is found behind it, in the real one.
 *
 * dlopen looks for a name in the search path of its caller, which it knows by the return address.
 * So the real one is left to return to the caller itself: with -O2 the last call is a jump.
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
    if (name && is_libibverbs(name) && rim_selected())
        name = own_path();
    return real_dlopen()(name, flags);
}
