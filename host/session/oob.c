/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/session/oob.h"

#include "base/assert.h"

#include <errno.h>

/* Broadcasts the result in pieces: an implementation may turn a broadcast into an exchange of
 * `size` times the bytes (UCC does). */
int oob_all_gather(const struct trib_oob *oob, const void *mine, void *all, size_t bytes)
{
    size_t total = bytes * oob->size, n;

    T_ASSERT(oob->gather && oob->bcast, "calls out of band are missing that were checked");
    if (oob->gather(oob->ctx, 0, mine, all, bytes))
        return -EIO;
    for (size_t at = 0; at < total; at += n) {
        n = total - at < OOB_MESSAGE ? total - at : OOB_MESSAGE;
        if (oob->bcast(oob->ctx, (char *)all + at, n, 0))
            return -EIO;
    }
    return 0;
}
