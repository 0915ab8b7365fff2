/*
 * Memory regions: what of a program's memory others may reach, by which key, within which bounds
 * and with which rights. lkey and rkey are the same.
 */
#include "host/hca/hca_priv.h"

#include "roce/lines.h"

#include <stdlib.h>
#include <sys/mman.h>

/* ---- the path of a frame ---- */

int hca_mem(void *user, struct qp *qp, bool remote, uint32_t key, uint64_t addr, uint64_t len,
            unsigned access, void **p)
{
    struct hca *h = user;
    struct hca_mr *mr = mr_of_key(h, key);
    uint64_t off;

    h->written += remote && (access & ACCESS_REMOTE_WRITE);
    /* A window is the peer's to use, never a local key. */
    if (!mr && remote && key >> 8 < h->key_cap && h->key[key >> 8].mw &&
        h->key[key >> 8].tag == (uint8_t)key)
        return mw_mem(h->key[key >> 8].mw, qp, addr, len, access, p);
    if (!mr || mr->at.pd != qp_pd(qp))
        return -EINVAL;
    if (access & ~mr->at.access)
        return -EACCES;
    off = addr - mr->at.iova;
    if (addr < mr->at.iova || len > mr->at.length || off > mr->at.length - len)
        return -EFAULT;
    *p = mr->at.unbacked ? NULL : mr->at.start + off;
    return 0;
}

/* ---- control ---- */

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

/* Neither the program's addresses nor those that it gives away may wrap; what is not mapped cannot
 * be registered, as where pages are pinned. */
static int check_range(const struct hca *h, const void *addr, size_t length, uint64_t iova)
{
    if (length > HCA_MAX_MR_SIZE || (uintptr_t)addr + length < length || iova + length < iova)
        return EINVAL;
    if (h->cfg.drv.check_memory && length)
        return -h->cfg.drv.check_memory(h->cfg.drv.ctx, addr, length);
    return 0;
}

/* What is said of it in several places is the same. */
static void mr_settle(struct hca_mr *mr)
{
    mr->at.start = mr->v.addr;
    mr->at.length = mr->v.length;
    mr->at.pd = mr->pd->v.handle;
}

#define PAGE 4096u

#define MR_ACCESS                                                                                  \
    (ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC |        \
     IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED)

static struct ibv_mr *reg(struct ibv_pd *v, void *addr, size_t length, uint64_t iova,
                          unsigned access)
{
    struct hca_pd *pd = to_pd(v);
    struct hca *h = pd->ctx->hca;
    struct hca_mr *mr;
    int rc = check_access(access);

    if (access & IBV_ACCESS_ZERO_BASED)
        iova = 0;
    if (!rc)
        rc = check_range(h, addr, length, iova);
    mr = rc ? NULL : lines_alloc(sizeof(*mr));
    if (!mr) {
        errno = rc ? rc : ENOMEM;
        return NULL;
    }
    mr->hca = h;
    mr->pd = pd;
    mr->at.iova = iova;
    mr->at.access = access & MR_ACCESS;
    mr->v = (struct ibv_mr){.context = v->context, .pd = v, .addr = addr, .length = length};
    mr_settle(mr);
    hca_lock(h);
    rc = h->n_mr == HCA_MAX_MR ? -ENOMEM : key_take(h, mr, NULL, &mr->v.lkey);
    if (!rc)
        h->n_mr++, pd->refs++;
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

/* Both addresses have the same place in a page, or Linux refuses: what works here works there. */
static struct ibv_mr *reg_iova(struct ibv_pd *v, void *addr, size_t length, uint64_t iova,
                               unsigned access)
{
    if (!(access & IBV_ACCESS_ZERO_BASED) && (((uintptr_t)addr ^ iova) & (PAGE - 1))) {
        errno = EINVAL;
        return NULL;
    }
    return reg(v, addr, length, iova, access);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                      int access)
{
    if (!hca_ctx_of(pd->context))
        return REAL(ibv_reg_mr_iova)(pd, addr, length, iova, access);
    return reg_iova(pd, addr, length, iova, (unsigned)access);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                       unsigned int access)
{
    if (!hca_ctx_of(pd->context))
        return REAL(ibv_reg_mr_iova2)(pd, addr, length, iova, access);
    return reg_iova(pd, addr, length, iova, access);
}

/* A dma-buf that a program may map (udmabuf's, a fake GPU's), through a mapping of our own: this
 * HCA is a program. Others, as real GPUs' are, it cannot reach. */
static struct ibv_mr *reg_dmabuf(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
                                 int fd, unsigned access)
{
    size_t before = offset % PAGE;
    void *map = mmap(NULL, length + before, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                     (off_t)(offset - before));
    struct ibv_mr *v;

    if (map == MAP_FAILED) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    v = reg(pd, (char *)map + before, length, iova, access);
    if (!v) {
        munmap(map, length + before);
        return NULL;
    }
    to_mr(v)->map = map;
    to_mr(v)->map_bytes = length + before;
    return v;
}

EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
                                        uint64_t iova, int fd, int access)
{
    if (!hca_ctx_of(pd->context))
        return REAL(ibv_reg_dmabuf_mr)(pd, offset, length, iova, fd, access);
    return reg_dmabuf(pd, offset, length, iova, fd, (unsigned)access);
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
    if (!rc && (flags & IBV_REREG_MR_CHANGE_TRANSLATION) && mr->map)
        rc = EINVAL;
    if (!rc && (flags & IBV_REREG_MR_CHANGE_TRANSLATION))
        rc = check_range(mr->hca, addr, length, (uintptr_t)addr);
    if (rc) {
        errno = rc;
        return IBV_REREG_MR_ERR_INPUT;
    }
    hca_lock(mr->hca);
    if (mr->windows) {
        hca_unlock(mr->hca);
        errno = EBUSY;
        return IBV_REREG_MR_ERR_INPUT;
    }
    if (flags & IBV_REREG_MR_CHANGE_PD) {
        mr->pd->refs--;
        mr->pd = to_pd(pd);
        mr->pd->refs++;
        mr->v.pd = pd;
    }
    if (flags & IBV_REREG_MR_CHANGE_ACCESS)
        mr->at.access = (unsigned)access & MR_ACCESS;
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
        mr->v.addr = addr;
        mr->v.length = length;
        mr->at.iova = mr->at.access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr;
    }
    mr_settle(mr);
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
    key_give(mr->hca, mr->v.lkey);
    mr->hca->n_mr--;
    mr->pd->refs--;
    if (mr->map)
        munmap(mr->map, mr->map_bytes);
    free(mr);
}

EXPORT int ibv_dereg_mr(struct ibv_mr *v)
{
    struct hca *h;
    int rc;

    if (!hca_ctx_of(v->context))
        return REAL(ibv_dereg_mr)(v);
    h = to_mr(v)->hca;
    hca_lock(h);
    rc = to_mr(v)->windows ? EBUSY : 0;
    if (!rc)
        mr_free(to_mr(v));
    hca_unlock(h);
    return rc;
}

int hca_mr_unback(struct ibv_mr *v)
{
    if (!hca_ctx_of(v->context))
        return -EINVAL;
    to_mr(v)->at.unbacked = true;
    return 0;
}
