/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugins/sharp/sharp_priv.h"

size_t sharp_even_part(uint32_t rank, uint32_t ranks, size_t count, size_t *at)
{
    size_t each = count / ranks, more = count % ranks;

    *at = rank * each + (rank < more ? rank : more);
    return each + (rank < more);
}
