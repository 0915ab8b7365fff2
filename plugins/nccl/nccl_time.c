/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timeouts for other processes are in wall time, even if `trib exec --clock fabric` gives the
 * program fabric time: this library tells libtribclock to leave its calls alone.
 */
#include "plugins/nccl/nccl_priv.h"

#include <dlfcn.h>
#include <time.h>

static void keep_wall_time(bool loaded)
{
    void (*keeps)(const void *, bool) =
        (void (*)(const void *, bool))(uintptr_t)dlsym(RTLD_DEFAULT, "tribclock_keep_wall_time");

    if (keeps)
        keeps((const void *)(uintptr_t)keep_wall_time, loaded);
}

__attribute__((constructor)) static void loaded(void)
{
    keep_wall_time(true);
}

__attribute__((destructor)) static void unloaded(void)
{
    keep_wall_time(false);
}

int64_t nccl_wall_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
