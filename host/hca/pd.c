/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains: the objects that may be used together. A PD in use cannot be destroyed. */
#include "host/hca/hca_priv.h"

#include <stdlib.h>

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct hca_ctx *c = hca_ctx_of(context);
    struct hca_pd *pd;

    if (!c)
        return REAL(ibv_alloc_pd)(context);
    if (hca_dead(c->hca))
        return NULL;
    pd = calloc(1, sizeof(*pd));
    if (!pd)
        return NULL;
    pd->v.context = context;
    pd->base = pd;
    pd->ctx = c;
    hca_lock(c->hca);
    if (c->hca->n_pd == HCA_MAX_PD) {
        hca_unlock(c->hca);
        free(pd);
        errno = ENOMEM;
        return NULL;
    }
    c->hca->n_pd++;
    pd->v.handle = c->hca->next_pd++;
    hlist_add(&c->pds, &pd->link);
    hca_unlock(c->hca);
    return &pd->v;
}

EXPORT int ibv_dealloc_pd(struct ibv_pd *v)
{
    struct hca_pd *pd = (struct hca_pd *)v;
    struct hca *h;
    int rc;

    if (!hca_ctx_of(v->context))
        return REAL(ibv_dealloc_pd)(v);
    h = pd->ctx->hca;
    hca_lock(h);
    rc = pd->refs ? EBUSY : 0;
    if (!rc) {
        T_ASSERT(pd->base == pd ? h->n_pd > 0 : pd->base->refs > 0,
                 "a protection domain is destroyed that was not counted");
        hlist_del(&pd->link);
        if (pd->base == pd)
            h->n_pd--;
        else
            pd->base->refs--;
        T_ASSERT(!pd->td || pd->td->refs, "a thread domain's parent domain was not counted");
        if (pd->td)
            pd->td->refs--;
    }
    hca_unlock(h);
    if (!rc)
        free(pd);
    return rc;
}
