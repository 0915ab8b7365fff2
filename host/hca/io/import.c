/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Imports: a context by the descriptor of another context of this process (or a copy of it), and
 * its protection domains, regions and device memory by their handles. An imported object is another
 * name of the same object; the context that created the object keeps it. Objects of another process
 * cannot be imported, because no kernel holds them.
 */
#include "host/hca/hca_priv.h"

#include <linux/kcmp.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- contexts ---- */

static bool same_file(int a, int b)
{
    return a == b || syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, a, b) == 0;
}

static struct hca_ctx *find_ctx(int fd)
{
    struct hca_ctx *found = NULL;
    struct hca *h;

    for (unsigned i = 0; !found && (h = process_hca_of_port(i)) != NULL; i++) {
        hca_lock(h);
        hlist_for(l, &h->ctxs)
        {
            struct hca_ctx *c = hlist_entry(l, struct hca_ctx, link);

            if (!found && same_file(c->v.context.cmd_fd, fd))
                found = c;
        }
        hca_unlock(h);
    }
    return found;
}

struct ibv_context *hca_import_ctx(struct hca_ctx *of, int fd)
{
    struct hca *h = of->hca;
    struct hca_ctx *c = ctx_make(h);

    if (!c)
        return NULL;
    notify_close(c->v.context.cmd_fd);
    c->v.context.cmd_fd = fd;
    hca_lock(h);
    c->origin = of->origin ? of->origin : of;
    c->origin->imports++;
    hlist_add(&h->ctxs, &c->link);
    hca_unlock(h);
    return &c->v.context;
}

/* The new context owns the descriptor. */
EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
    struct hca_ctx *of;

    if (!process_on_fabric())
        return REAL(ibv_import_device)(cmd_fd);
    of = find_ctx(cmd_fd);
    if (of)
        return hca_import_ctx(of, cmd_fd);
    process_say(
        NULL, __func__,
        "ibv_import_device: found a descriptor that is no context's of this process, expected "
        "its cmd_fd or a copy: contexts of other processes cannot be imported");
    errno = EOPNOTSUPP;
    return NULL;
}

static struct hca_ctx *owner(struct hca_ctx *c)
{
    return c->origin ? c->origin : c;
}

/* ---- protection domains ---- */

EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
    struct hca_ctx *c = hca_ctx_of(context);
    struct hca_pd *pd, *base = NULL;

    if (!c)
        return REAL(ibv_import_pd)(context, handle);
    pd = calloc(1, sizeof(*pd));
    if (!pd)
        return NULL;
    pd->v = (struct ibv_pd){.context = context, .handle = handle};
    pd->ctx = c;
    hca_lock(c->hca);
    hlist_for(l, &owner(c)->pds)
    {
        struct hca_pd *p = hlist_entry(l, struct hca_pd, link);

        if (p->v.handle == handle && p->base == p)
            base = p;
    }
    if (base) {
        pd->base = base;
        base->refs++;
        hlist_add(&c->pds, &pd->link);
    }
    hca_unlock(c->hca);
    if (base)
        return &pd->v;
    free(pd);
    errno = EINVAL;
    return NULL;
}

EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
    if (!hca_ctx_of(pd->context))
        REAL(ibv_unimport_pd)(pd);
    else if (((struct hca_pd *)pd)->base != (struct hca_pd *)pd)
        ibv_dealloc_pd(pd);
}

/* ---- regions ---- */

EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *v, uint32_t handle)
{
    const struct hca_key *k;
    struct hca_mr *mr;
    struct hca *h;
    bool found;

    if (!hca_ctx_of(v->context))
        return REAL(ibv_import_mr)(v, handle);
    h = to_pd(v)->ctx->hca;
    mr = calloc(1, sizeof(*mr));
    if (!mr)
        return NULL;
    hca_lock(h);
    k = key_of(h, handle);
    found = k && k->mr && k->mr->pd == to_pd(v);
    if (found)
        mr->v = (struct ibv_mr){.context = v->context,
                                .pd = v,
                                .length = k->mr->v.length,
                                .handle = handle,
                                .lkey = handle,
                                .rkey = handle};
    hca_unlock(h);
    mr->hca = h;
    mr->imported = true;
    if (found)
        return &mr->v;
    free(mr);
    errno = EINVAL;
    return NULL;
}

EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
    if (!hca_ctx_of(mr->context))
        REAL(ibv_unimport_mr)(mr);
    else if (to_mr(mr)->imported)
        free(mr);
}

/* ---- device memory ---- */

EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
    struct hca_ctx *c = hca_ctx_of(context);
    struct hca_dm *dm, *base = NULL;

    if (!c)
        return REAL(ibv_import_dm)(context, handle);
    dm = calloc(1, sizeof(*dm));
    if (!dm)
        return NULL;
    hca_lock(c->hca);
    hlist_for(l, &owner(c)->dms)
    {
        struct hca_dm *d = hlist_entry(l, struct hca_dm, link);

        if (d->v.handle == handle && !d->base)
            base = d;
    }
    if (base) {
        *dm = *base;
        dm->v.context = context;
        dm->ctx = c;
        dm->base = base;
        dm->refs = 0;
        base->refs++;
        hlist_add(&c->dms, &dm->link);
    }
    hca_unlock(c->hca);
    if (base)
        return &dm->v;
    free(dm);
    errno = EINVAL;
    return NULL;
}

EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
    if (!hca_ctx_of(dm->context))
        REAL(ibv_unimport_dm)(dm);
    else if (to_dm(dm)->base)
        hca_free_dm(dm);
}
