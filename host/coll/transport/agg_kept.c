/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of an edge that recovery may need once more (recovery/op_recovery.c). */
#include "host/coll/comm.h"

#include <string.h>

bool agg_same_place(const struct coll_req *r, const struct step *st)
{
    return st->dst.buf != BUF_NONE && st->a.buf != BUF_NONE &&
           exec_addr(r, &st->dst) == exec_addr(r, &st->a);
}

void agg_keep(struct agg *a, const struct coll_req *r, const struct step *st)
{
    if (a->kept && st->len && (st->agg == AGG_REDUCE || agg_same_place(r, st)))
        memcpy(agg_kept_at(a, a->posted, r->c->mtu), exec_addr(r, &st->a), st->len);
}
