/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls on stores of any kind, and the loading of the PMIx store's library on demand. */
#include "host/session/store.h"

#include "host/session/session.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PART "pmix/store_pmix.so"

static bool is_store(const struct trib_store *store)
{
    return store && store->magic == STORE_MAGIC;
}

void trib_store_oob(struct trib_store *store, struct trib_oob *oob)
{
    if (oob)
        *oob = is_store(store) ? store->oob : (struct trib_oob){.ctx = NULL};
}

void trib_store_close(struct trib_store *store)
{
    if (!is_store(store))
        return;
    *(volatile uint64_t *)&store->magic = 0; /* volatile: the compiler must keep it before free() */
    store->close(store);
}

/* Finds PART beside this library, or in tributary/ below it, where it is installed. */
static bool find_part(char *path, size_t size)
{
    Dl_info me;
    const char *slash;

    if (!dladdr((void *)find_part, &me) || !(slash = strrchr(me.dli_fname, '/')))
        return false;
    for (int installed = 0; installed < 2; installed++) {
        int n = snprintf(path, size, "%.*s/%s%s", (int)(slash - me.dli_fname), me.dli_fname,
                         installed ? "tributary/" : "", PART);

        if (n > 0 && (size_t)n < size && !access(path, R_OK))
            return true;
    }
    return false;
}

int trib_store_pmix(struct trib_store **store, double timeout_s, char *err)
{
    char path[PATH_MAX], reason[TRIB_TEXT] = "";
    __typeof__(trib_pmix_open) *open = NULL;
    void *part;
    int rc;

    if (!store)
        return session_say(err, -EINVAL, "store: found no place for the store");
    if (!(timeout_s > 0 && timeout_s < 1e6))
        return session_say(err, -EINVAL, "store: found a timeout of %g s, expected more than 0",
                           timeout_s);
    if (!find_part(path, sizeof(path)))
        return session_say(err, -ENOTSUP,
                           "store: no tributary/" PART " beside libtributary, expected one: it is "
                           "built where PMIx's headers are (package libpmix-dev)");
    /* Load PMIx globally (its plug-ins resolve against it) and never unload it (its threads may
     * still run). */
    part = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (part)
        open = (__typeof__(open))dlsym(part, "trib_pmix_open");
    if (!open)
        return session_say(err, -ENOTSUP, "store: %s", dlerror());
    rc = open(store, timeout_s, reason);
    return rc ? session_say(err, rc, "%s", *reason ? reason : "store: out of memory") : 0;
}
