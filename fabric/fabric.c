/* SPDX-License-Identifier: BSD-3-Clause */
/* Frees a fabric, whether from a conf or a copy with other routes. */
#include "fabric/build.h"

#include <stdlib.h>

void fabric_free(struct fabric *f)
{
    if (!f)
        return;
    arena_free(f->arena);
    routes_free(f->routes);
    free(f);
}
