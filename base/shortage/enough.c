/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/shortage/enough.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

void enough_is_not(void)
{
    fprintf(stderr, "%s: out of memory\n", program_invocation_short_name);
    exit(1);
}

void *enough_memory(size_t n, size_t bytes)
{
    void *p = calloc(n ? n : 1, bytes);

    if (!p)
        enough_is_not();
    return p;
}
