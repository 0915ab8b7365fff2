/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program of an emulated host loads when it runs without libtribverbs: its libibverbs finds
 * the host's devices in /sys and looks for their driver, and this is named as one
 * (host/sandbox/namespace.c). It drives nothing; it says why there is no device.
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
