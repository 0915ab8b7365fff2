/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Devices and contexts. Where the environment names a fabric (TRIB_RUN and TRIB_HOST) the devices
 * are those of the emulated host. Elsewhere the system's own libibverbs answers, and every exported
 * call passes its devices through untouched.
 */
#include "fabric/fabric.h"
#include "host/hca/hca_priv.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_DEVICES FAB_MAX_HOST_PORTS

/* ---- the system's own ---- */

/* RTLD_NEXT does not find a libibverbs that the program loads at run time. */
void *hca_real(const char *name)
{
    void *fn = dlsym(RTLD_NEXT, name), *lib;

    if (fn)
        return fn;
    lib = hca_dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_LOCAL);
    fn = lib ? dlsym(lib, name) : NULL;
    if (!fn) {
        fprintf(stderr, "tributary: %s: not in the system's libibverbs: %s\n", name, dlerror());
        abort();
    }
    return fn;
}

/* ---- the list ---- */

EXPORT struct ibv_device **ibv_get_device_list(int *num)
{
    struct hca_device *dev[MAX_DEVICES];
    struct ibv_device **list;
    int n;

    if (!process_on_fabric())
        return REAL(ibv_get_device_list)(num);
    if (num)
        *num = 0;
    n = process_devices(dev, MAX_DEVICES);
    if (n < 0) {
        errno = -n;
        return NULL;
    }
    list = calloc((size_t)n + 1, sizeof(*list));
    if (!list)
        return NULL;
    for (int i = 0; i < n; i++)
        list[i] = &dev[i]->v;
    if (num)
        *num = n;
    return list;
}

EXPORT void ibv_free_device_list(struct ibv_device **list)
{
    if (list && list[0] && !hca_device_ours(list[0]))
        REAL(ibv_free_device_list)(list);
    else
        free(list);
}

EXPORT const char *ibv_get_device_name(struct ibv_device *d)
{
    return hca_device_ours(d) ? d->name : REAL(ibv_get_device_name)(d);
}

EXPORT int ibv_get_device_index(struct ibv_device *d)
{
    return hca_device_ours(d) ? (int)((struct hca_device *)d)->port : REAL(ibv_get_device_index)(d);
}

/* ---- fork ---- */

int hca_say_dead(void)
{
    static _Atomic bool said;

    if (!atomic_exchange(&said, true))
        fprintf(stderr,
                "tributary: process %d: found a device that its parent opened before fork(), "
                "expected one that this process opened itself (ibv_open_device)\n",
                (int)getpid());
    errno = EIO;
    return EIO;
}

/* Does nothing: no page is pinned, so copy-on-write moves no memory away from the HCA. */
EXPORT int ibv_fork_init(void)
{
    return process_on_fabric() ? 0 : REAL(ibv_fork_init)();
}

EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return process_on_fabric() ? IBV_FORK_UNNEEDED : REAL(ibv_is_fork_initialized)();
}

/* ---- contexts ---- */

struct hca_ctx *hca_ctx_of(struct ibv_context *c)
{
    return c->ops.post_send == hca_post_send ? hlist_entry(c, struct hca_ctx, v.context) : NULL;
}

static void fill_tables(struct hca_ctx *c)
{
    struct verbs_context *v = &c->v;
    struct ibv_context_ops *o = &v->context.ops;

    o->_compat_query_device = hca_query_device;
    o->_compat_query_port = hca_query_port_compat;
    o->alloc_mw = hca_alloc_mw;
    o->bind_mw = hca_bind_mw;
    o->dealloc_mw = hca_dealloc_mw;
    o->poll_cq = hca_poll_cq;
    o->req_notify_cq = hca_req_notify_cq;
    o->post_srq_recv = hca_post_srq_recv;
    o->post_send = hca_post_send;
    o->post_recv = hca_post_recv;
    v->sz = sizeof(*v);
    v->query_port = hca_query_port;
    v->query_device_ex = hca_query_device_ex;
    v->query_rt_values = hca_query_rt_values;
    v->create_cq_ex = hca_create_cq_ex;
    v->create_qp_ex = hca_create_qp_ex;
    v->create_srq_ex = hca_create_srq_ex;
    v->advise_mr = hca_advise_mr;
    v->alloc_dm = hca_alloc_dm;
    v->free_dm = hca_free_dm;
    v->reg_dm_mr = hca_reg_dm_mr;
    v->alloc_td = hca_alloc_td;
    v->dealloc_td = hca_dealloc_td;
    v->alloc_parent_domain = hca_alloc_parent_domain;
    refuse_fill(v);
    newer_fill(v);
    v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
}

struct hca_ctx *ctx_make(struct hca *h)
{
    struct hca_ctx *c = calloc(1, sizeof(*c));
    struct ibv_context *v;

    if (!c)
        return NULL;
    v = &c->v.context;
    v->device = &h->dev->v;
    v->num_comp_vectors = 1;
    v->async_fd = h->cfg.no_async_fd ? -1 : notify_open();
    v->cmd_fd = h->cfg.no_async_fd || v->async_fd < 0 ? -1 : notify_open(); /* never ready */
    if ((v->async_fd < 0 || v->cmd_fd < 0) && !h->cfg.no_async_fd) {
        errno = v->async_fd < 0 ? -v->async_fd : -v->cmd_fd;
        notify_close(v->async_fd);
        free(c);
        return NULL;
    }
    c->hca = h;
    fill_tables(c);
    hlist_init(&c->pds);
    hlist_init(&c->cqs);
    hlist_init(&c->qps);
    hlist_init(&c->srqs);
    hlist_init(&c->channels);
    hlist_init(&c->dms);
    hlist_init(&c->tds);
    return c;
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *v)
{
    struct hca_device *d = (struct hca_device *)v;
    struct hca_ctx *c;
    int rc = 0;

    if (!hca_device_ours(v))
        return REAL(ibv_open_device)(v);
    if (d->open)
        rc = d->open(d);
    else if (!d->hca)
        rc = -ENODEV;
    if (rc) {
        errno = -rc;
        return NULL;
    }
    c = ctx_make(d->hca);
    if (!c)
        return NULL;
    hca_lock(d->hca);
    hlist_add(&d->hca->ctxs, &c->link);
    hca_unlock(d->hca);
    return &c->v.context;
}

/* Destroys all objects that the program left, as a kernel does for a closed file. With the lock
 * held. */
void hca_ctx_free(struct hca_ctx *c)
{
    struct hca *h = c->hca;

    T_ASSERT(!c->imports, "a context goes before the imports that share its objects");
    T_ASSERT(!c->origin || c->origin->imports, "an import goes that its origin does not count");
    while (!hlist_empty(&c->qps))
        qp_free(hlist_entry(c->qps.next, struct hca_qp, link));
    while (!hlist_empty(&c->srqs))
        srq_free(hlist_entry(c->srqs.next, struct hca_srq, link));
    while (!hlist_empty(&c->cqs))
        cq_free(hlist_entry(c->cqs.next, struct hca_cq, link));
    while (!hlist_empty(&c->channels)) {
        struct hca_channel *ch = hlist_entry(c->channels.next, struct hca_channel, link);

        hlist_del(&ch->link);
        notify_close(ch->v.fd);
        free(ch);
    }
    for (uint32_t i = 0; i < h->key_cap; i++)
        if (h->key[i].mw && h->key[i].mw->v.context == &c->v.context)
            mw_free(h->key[i].mw);
    for (uint32_t i = 0; i < h->key_cap; i++)
        if (h->key[i].mr && h->key[i].mr->v.context == &c->v.context)
            mr_free(h->key[i].mr);
    ah_release_all_of(c);
    while (!hlist_empty(&c->pds)) {
        struct hca_pd *pd = hlist_entry(c->pds.next, struct hca_pd, link);

        hlist_del(&pd->link);
        h->n_pd -= pd->base == pd;
        if (pd->base != pd && pd->base->ctx != c) /* imported: its owner's context keeps it */
            pd->base->refs--;
        free(pd);
    }
    while (!hlist_empty(&c->dms))
        dm_free(hlist_entry(c->dms.next, struct hca_dm, link));
    while (!hlist_empty(&c->tds)) {
        struct hca_td *td = hlist_entry(c->tds.next, struct hca_td, link);

        hlist_del(&td->link);
        free(td);
    }
    if (c->origin)
        c->origin->imports--;
    hlist_del(&c->link);
    notify_close(c->v.context.async_fd);
    notify_close(c->v.context.cmd_fd);
    free(c);
}

EXPORT int ibv_close_device(struct ibv_context *v)
{
    struct hca_ctx *c = hca_ctx_of(v);
    struct hca *h;

    if (!c)
        return REAL(ibv_close_device)(v);
    h = c->hca;
    hca_lock(h);
    c->closed = true;
    if (!c->imports) {
        struct hca_ctx *origin = c->origin;

        hca_ctx_free(c);
        if (origin && !origin->imports && origin->closed)
            hca_ctx_free(origin);
    }
    hca_unlock(h);
    return 0;
}
