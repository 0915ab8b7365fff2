/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugins/common/reg_range.h"

#include <tributary/coll.h>

#include <errno.h>
#include <stdlib.h>

static struct reg_range *ranges;

struct reg_range *reg_range_get(uint8_t *base, size_t bytes)
{
    bool taken = false;
    struct reg_range *r;

    for (r = ranges; r; r = r->next) {
        if (r->base == base && r->bytes == bytes)
            break;
        taken |= r->base == base && r->registered;
    }
    if (!r) {
        r = malloc(sizeof(*r));
        if (!r)
            return NULL;
        *r = (struct reg_range){.base = base, .bytes = bytes, .next = ranges};
        r->registered = !taken && bytes && !trib_register(base, bytes);
        ranges = r;
    }
    r->handles++;
    return r;
}

int reg_range_put(struct reg_range *r)
{
    int rc;

    if (r->handles == 1 && r->registered && (rc = trib_deregister(r->base)) == -EBUSY)
        return rc;
    if (--r->handles)
        return 0;
    for (struct reg_range **at = &ranges; *at; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            break;
        }
    free(r);
    return 0;
}

bool reg_range_holds(const struct reg_range *r, const void *ptr, size_t bytes)
{
    size_t at = (size_t)((uintptr_t)ptr - (uintptr_t)r->base);

    return (const uint8_t *)ptr >= r->base && at <= r->bytes && bytes <= r->bytes - at;
}
