/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Thread domains and parent domains. A parent domain is another name of a protection domain, by
 * which a provider may keep the resources of one thread apart and take their memory from the
 * program's allocator. Here every call may come from any thread and nothing is shared with a
 * device, so both are names only. Objects of a parent domain belong to the protection domain behind
 * it.
 */
#include "host/hca/hca_priv.h"

#include <stdlib.h>

struct ibv_td *hca_alloc_td(struct ibv_context *v, struct ibv_td_init_attr *a)
{
    struct hca_ctx *c = hca_ctx_of(v);
    struct hca_td *td;

    if (a->comp_mask) {
        errno = EINVAL;
        return NULL;
    }
    td = calloc(1, sizeof(*td));
    if (!td)
        return NULL;
    td->v.context = v;
    hca_lock(c->hca);
    hlist_add(&c->tds, &td->link);
    hca_unlock(c->hca);
    return &td->v;
}

int hca_dealloc_td(struct ibv_td *v)
{
    struct hca_td *td = (struct hca_td *)v;
    struct hca *h = hca_ctx_of(v->context)->hca;
    int rc;

    hca_lock(h);
    rc = td->refs ? EBUSY : 0;
    if (!rc)
        hlist_del(&td->link);
    hca_unlock(h);
    if (!rc)
        free(td);
    return rc;
}

struct ibv_pd *hca_alloc_parent_domain(struct ibv_context *v, struct ibv_parent_domain_init_attr *a)
{
    const uint32_t known =
        IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
    struct hca_ctx *c = hca_ctx_of(v);
    struct hca_td *td = (struct hca_td *)a->td;
    struct hca_pd *pd;

    if (a->comp_mask & ~known) {
        errno = hca_refuse(c->hca, EOPNOTSUPP,
                           "ibv_alloc_parent_domain: found comp_mask 0x%x, expected within 0x%x",
                           a->comp_mask, known);
        return NULL;
    }
    if (!a->pd || a->pd->context != v || (td && td->v.context != v)) {
        errno = EINVAL;
        return NULL;
    }
    pd = calloc(1, sizeof(*pd));
    if (!pd)
        return NULL;
    pd->base = to_pd(a->pd);
    pd->td = td;
    pd->v.context = v;
    pd->v.handle = pd->base->v.handle;
    pd->ctx = c;
    hca_lock(c->hca);
    pd->base->refs++;
    if (td)
        td->refs++;
    hlist_add(&c->pds, &pd->link);
    hca_unlock(c->hca);
    return &pd->v;
}

bool pd_is_parent(const struct ibv_pd *pd)
{
    return ((const struct hca_pd *)pd)->base != (const struct hca_pd *)pd;
}
