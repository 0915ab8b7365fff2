/* Protection domains: who may use what together. A PD that is in use cannot go. */
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
        hlist_del(&pd->link);
        if (pd->base == pd)
            h->n_pd--;
        else
            pd->base->refs--;
        if (pd->td)
            pd->td->refs--;
    }
    hca_unlock(h);
    if (!rc)
        free(pd);
    return rc;
}

/* By a context's descriptor. */
EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
    if (!rim_selected())
        return REAL(ibv_import_device)(cmd_fd);
    rim_say(NULL, __func__, "ibv_import_device: devices of another process are not supported");
    errno = EOPNOTSUPP;
    return NULL;
}

/* Handing objects to other processes needs a kernel that holds them. */
EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
    if (!hca_ctx_of(context))
        return REAL(ibv_import_pd)(context, pd_handle);
    errno = hca_refuse(hca_ctx_of(context)->hca, EOPNOTSUPP,
                       "ibv_import_pd: objects of another process are not supported");
    return NULL;
}

EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
    if (!hca_ctx_of(pd->context))
        REAL(ibv_unimport_pd)(pd);
}

EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
    if (!hca_ctx_of(pd->context))
        return REAL(ibv_import_mr)(pd, mr_handle);
    errno = hca_refuse(hca_ctx_of(pd->context)->hca, EOPNOTSUPP,
                       "ibv_import_mr: objects of another process are not supported");
    return NULL;
}

EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
    if (!hca_ctx_of(mr->context))
        REAL(ibv_unimport_mr)(mr);
}

EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
    if (!hca_ctx_of(context))
        return REAL(ibv_import_dm)(context, dm_handle);
    errno = hca_refuse(hca_ctx_of(context)->hca, EOPNOTSUPP,
                       "ibv_import_dm: objects of another process are not supported");
    return NULL;
}

EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
    if (!hca_ctx_of(dm->context))
        REAL(ibv_unimport_dm)(dm);
}
