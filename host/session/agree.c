/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/session/agree.h"

#include <stdio.h>
#include <string.h>

static const char *trees_text(const struct agreed *a, char *text, size_t size)
{
    size_t at = 0;

    snprintf(text, size, "none");
    for (unsigned i = 0; i < a->n_trees && i < COLL_TREES && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%u", i ? ", " : "", a->tree[i]);
    return text;
}

bool agree_with(const struct agreed *mine, const struct agreed *rank0, char *why, size_t size)
{
    char here[48], there[48];

    if (mine->n_trees == rank0->n_trees && mine->n_trees <= COLL_TREES &&
        !memcmp(mine->tree, rank0->tree, mine->n_trees * sizeof(mine->tree[0])))
        return true;
    snprintf(why, size, "found aggregation trees %s, expected %s, which rank 0 has by its conf",
             trees_text(mine, here, sizeof(here)), trees_text(rank0, there, sizeof(there)));
    return false;
}
