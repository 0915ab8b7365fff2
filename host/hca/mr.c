/*
 * Memory regions. A key names a slot of the table and how often the slot was used, so that a key of
 * a region that is gone never opens its successor; lkey and rkey are the same.
 */
#include "host/hca/hca_priv.h"

#include <stdlib.h>

/* ---- the path of a frame ---- */

int hca_mem(void *user, struct qp *qp, bool remote, uint32_t key, uint64_t addr, uint64_t len,
            unsigned access, void **p)
{
    struct hca *h = user;
    uint32_t i = key >> 8;
    struct hca_mr *mr = i < h->mr_cap && h->mr[i].gen == (uint8_t)key ? h->mr[i].mr : NULL;
    uint64_t off;

    (void)remote;
    if (!mr || mr->pd->v.handle != qp_pd(qp))
        return -EINVAL;
    if (access & ~mr->access)
        return -EACCES;
    off = addr - mr->iova;
    if (addr < mr->iova || len > mr->v.length || off > mr->v.length - len)
        return -EFAULT;
    *p = mr->unbacked ? NULL : (char *)mr->v.addr + off;
    return 0;
}

/* ---- control ---- */

static void free_slot(struct hca *h, uint32_t i)
{
    h->mr[i].next = UINT32_MAX;
    if (h->mr_free_tail == UINT32_MAX)
        h->mr_free_head = i;
    else
        h->mr[h->mr_free_tail].next = i;
    h->mr_free_tail = i;
}

static int grow(struct hca *h)
{
    uint32_t cap = h->mr_cap ? h->mr_cap * 2 : 64;
    struct hca_mr_slot *t;

    if (cap > HCA_MAX_MR)
        return -ENOSPC;
    t = realloc(h->mr, cap * sizeof(*t));
    if (!t)
        return -ENOMEM;
    h->mr = t;
    for (uint32_t i = h->mr_cap; i < cap; i++) {
        t[i] = (struct hca_mr_slot){.gen = 1};
        if (i) /* key 0 never exists: programs use it for "none" */
            free_slot(h, i);
    }
    h->mr_cap = cap;
    return 0;
}

static int take_slot(struct hca *h, struct hca_mr *mr, uint32_t *key)
{
    int rc = h->mr_free_head == UINT32_MAX ? grow(h) : 0;
    uint32_t i;

    if (rc)
        return rc;
    i = h->mr_free_head;
    h->mr_free_head = h->mr[i].next;
    if (h->mr_free_head == UINT32_MAX)
        h->mr_free_tail = UINT32_MAX;
    h->mr[i].mr = mr;
    *key = i << 8 | h->mr[i].gen;
    return 0;
}

static const unsigned known_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                                     IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
                                     IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE;

/* IBTA 10.6.3.1: who lets others write must be able to write. */
static int check_access(unsigned access)
{
    if (access & IBV_ACCESS_ON_DEMAND)
        return EOPNOTSUPP;
    if (access & ~known_access)
        return EINVAL;
    if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
        !(access & IBV_ACCESS_LOCAL_WRITE))
        return EINVAL;
    return 0;
}

static struct ibv_mr *reg(struct ibv_pd *v, void *addr, size_t length, uint64_t iova,
                          unsigned access)
{
    struct hca_pd *pd = to_pd(v);
    struct hca *h = pd->ctx->hca;
    struct hca_mr *mr;
    int rc = check_access(access);

    if (!rc && (uint64_t)length + (uintptr_t)addr < length)
        rc = EINVAL;
    mr = rc ? NULL : calloc(1, sizeof(*mr));
    if (!mr) {
        errno = rc ? rc : ENOMEM;
        return NULL;
    }
    mr->hca = h;
    mr->pd = pd;
    mr->iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
    mr->access = access & (ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |
                           ACCESS_REMOTE_ATOMIC);
    mr->v = (struct ibv_mr){.context = v->context, .pd = v, .addr = addr, .length = length};
    hca_lock(h);
    rc = take_slot(h, mr, &mr->v.lkey);
    if (!rc)
        pd->refs++;
    hca_unlock(h);
    if (rc) {
        free(mr);
        errno = -rc;
        return NULL;
    }
    mr->v.rkey = mr->v.handle = mr->v.lkey;
    return &mr->v;
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    if (!hca_ctx_of(pd->context))
        return REAL(ibv_reg_mr)(pd, addr, length, access);
    return reg(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                      int access)
{
    if (!hca_ctx_of(pd->context))
        return REAL(ibv_reg_mr_iova)(pd, addr, length, iova, access);
    return reg(pd, addr, length, iova, (unsigned)access);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                       unsigned int access)
{
    if (!hca_ctx_of(pd->context))
        return REAL(ibv_reg_mr_iova2)(pd, addr, length, iova, access);
    return reg(pd, addr, length, iova, access);
}

EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
                                        uint64_t iova, int fd, int access)
{
    if (!hca_ctx_of(pd->context))
        return REAL(ibv_reg_dmabuf_mr)(pd, offset, length, iova, fd, access);
    errno = EOPNOTSUPP;
    return NULL;
}

/* Changing the translation keeps the key, as the caller's peers know it. */
static int rereg(struct hca_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
                 int access)
{
    int rc = flags & IBV_REREG_MR_CHANGE_ACCESS ? check_access((unsigned)access) : 0;

    if (!rc && (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED))
        rc = EINVAL;
    if (!rc && (flags & IBV_REREG_MR_CHANGE_PD) && (!pd || pd->context != mr->v.context))
        rc = EINVAL;
    if (rc) {
        errno = rc;
        return IBV_REREG_MR_ERR_INPUT;
    }
    hca_lock(mr->hca);
    if (flags & IBV_REREG_MR_CHANGE_PD) {
        mr->pd->refs--;
        mr->pd = to_pd(pd);
        mr->pd->refs++;
        mr->v.pd = pd;
    }
    if (flags & IBV_REREG_MR_CHANGE_ACCESS)
        mr->access = (unsigned)access & (ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
                                         ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC);
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
        mr->v.addr = addr;
        mr->v.length = length;
        mr->iova = (uintptr_t)addr;
    }
    hca_unlock(mr->hca);
    return 0;
}

EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
                        int access)
{
    if (!hca_ctx_of(mr->context))
        return REAL(ibv_rereg_mr)(mr, flags, pd, addr, length, access);
    return rereg(to_mr(mr), flags, pd, addr, length, access);
}

/* With the lock held. */
void mr_free(struct hca_mr *mr)
{
    struct hca *h = mr->hca;
    uint32_t i = mr->v.lkey >> 8;

    h->mr[i].mr = NULL;
    h->mr[i].gen++;
    free_slot(h, i);
    mr->pd->refs--;
    free(mr);
}

EXPORT int ibv_dereg_mr(struct ibv_mr *v)
{
    struct hca *h;

    if (!hca_ctx_of(v->context))
        return REAL(ibv_dereg_mr)(v);
    h = to_mr(v)->hca;
    hca_lock(h);
    mr_free(to_mr(v));
    hca_unlock(h);
    return 0;
}

int hca_mr_unback(struct ibv_mr *v)
{
    if (!hca_ctx_of(v->context))
        return -EINVAL;
    to_mr(v)->unbacked = true;
    return 0;
}
