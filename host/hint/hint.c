/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loaded by a program on an emulated host that runs without libtribverbs: the system's libibverbs
 * finds the host's devices in /sys and looks for their driver, and this library has the driver's
 * name (host/sandbox/namespace.c). It drives no device; it prints why the program sees none.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((constructor)) static void say_why(void)
{
    const char *preload = getenv("LD_PRELOAD");

    if (preload && strstr(preload, "libtribverbs"))
        return;
    fprintf(stderr,
            "tributary: %s: found this program on an emulated host without libtribverbs.so in "
            "LD_PRELOAD, so it sees no device; expected the variable as trib exec sets it (env -i, "
            "sudo, setuid programs and some launchers drop it)\n",
            program_invocation_short_name);
}
