/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device memory: on a real adapter its own memory, here memory of this process. As with real
 * adapters programs copy it in words of four bytes, register it zero-based, and have little of it.
 */
#include "host/hca/hca_priv.h"

#include <stdlib.h>
#include <string.h>

#define WORD 4u

static bool inside(const struct hca_dm *dm, uint64_t off, size_t len)
{
    return off % WORD == 0 && len % WORD == 0 && off <= dm->bytes && len <= dm->bytes - off;
}

static int copy_to(struct ibv_dm *v, uint64_t off, const void *from, size_t len)
{
    struct hca_dm *dm = to_dm(v);

    if (!inside(dm, off, len))
        return EINVAL;
    memcpy(dm->mem + off, from, len);
    return 0;
}

static int copy_from(void *to, struct ibv_dm *v, uint64_t off, size_t len)
{
    struct hca_dm *dm = to_dm(v);

    if (!inside(dm, off, len))
        return EINVAL;
    memcpy(to, dm->mem + off, len);
    return 0;
}

struct ibv_dm *hca_alloc_dm(struct ibv_context *v, struct ibv_alloc_dm_attr *a)
{
    struct hca_ctx *c = hca_ctx_of(v);
    struct hca *h = c->hca;
    struct hca_dm *dm;
    int rc = 0;

    if (a->comp_mask || !a->length || a->length > HCA_MAX_DM || a->log_align_req > 12) {
        errno = EINVAL;
        return NULL;
    }
    dm = calloc(1, sizeof(*dm));
    if (!dm || posix_memalign((void **)&dm->mem,
                              a->log_align_req > 6 ? 1ul << a->log_align_req : 64, a->length)) {
        free(dm);
        errno = ENOMEM;
        return NULL;
    }
    memset(dm->mem, 0, a->length);
    dm->ctx = c;
    dm->bytes = a->length;
    dm->v = (struct ibv_dm){.context = v, .memcpy_to_dm = copy_to, .memcpy_from_dm = copy_from};
    hca_lock(h);
    if (dm->bytes > HCA_MAX_DM - h->dm_bytes) {
        rc = ENOMEM;
    } else {
        h->dm_bytes += (uint32_t)dm->bytes;
        dm->v.comp_mask = IBV_DM_MASK_HANDLE;
        dm->v.handle = h->next_dm++;
        hlist_add(&c->dms, &dm->link);
    }
    hca_unlock(h);
    if (!rc)
        return &dm->v;
    free(dm->mem);
    free(dm);
    errno = rc;
    return NULL;
}

/* With the lock held. */
void dm_free(struct hca_dm *dm)
{
    T_ASSERT(dm->base ? dm->base->refs > 0 : dm->ctx->hca->dm_bytes >= dm->bytes,
             "device memory goes that was not counted");
    hlist_del(&dm->link);
    if (dm->base) {
        dm->base->refs--;
    } else {
        dm->ctx->hca->dm_bytes -= (uint32_t)dm->bytes;
        free(dm->mem);
    }
    free(dm);
}

int hca_free_dm(struct ibv_dm *v)
{
    struct hca *h = to_dm(v)->ctx->hca;
    int rc;

    hca_lock(h);
    rc = to_dm(v)->refs ? EBUSY : 0;
    if (!rc)
        dm_free(to_dm(v));
    hca_unlock(h);
    return rc;
}

struct ibv_mr *hca_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *v, uint64_t off, size_t len,
                             unsigned access)
{
    struct hca_dm *dm = to_dm(v);
    struct ibv_mr *mr;

    if (v->context != pd->context || !inside(dm, off, len) || !(access & IBV_ACCESS_ZERO_BASED) ||
        (access & IBV_ACCESS_ON_DEMAND)) {
        errno = EINVAL;
        return NULL;
    }
    mr = mr_reg(pd, dm->mem + off, len, 0, access);
    if (!mr)
        return NULL;
    hca_lock(dm->ctx->hca);
    to_mr(mr)->dm = dm;
    dm->refs++;
    mr->addr = NULL; /* device memory has no address in the program */
    hca_unlock(dm->ctx->hca);
    return mr;
}
