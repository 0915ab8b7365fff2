/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory regions: the memory of a program that others may reach, with its key, bounds and rights.
 * lkey and rkey are the same.
 */
#include "host/hca/hca_priv.h"

#include "base/cacheline.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* ---- the path of a frame ---- */

int hca_mem(void *user, struct qp *qp, bool remote, uint32_t key, uint64_t addr, uint64_t len,
            unsigned access, void **p)
{
    struct hca *h = user;
    const struct hca_key *k = key_of(h, key);
    uint64_t off;

    h->written += remote && (access & ACCESS_REMOTE_WRITE);
    T_ASSERT_HOT(!k || !k->mr || k->pd == k->mr->pd->v.handle,
                 "a key's copy of its region's protection domain is stale");
    /* Only peers use a window; its key is never a local one. */
    if (k && !k->mr && k->mw && remote)
        return mw_mem(k->mw, qp, addr, len, access, p);
    if (!k || !k->mr || k->pd != qp_pd(qp))
        return -EINVAL;
    if (access & ~k->access)
        return -EACCES;
    off = addr - k->iova;
    if (addr < k->iova || len > k->length || off > k->length - len)
        return -EFAULT;
    *p = k->unbacked ? NULL : k->start + off;
    return 0;
}

/* ---- control ---- */

static const unsigned known_access =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
    IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB |
    IBV_ACCESS_ON_DEMAND | IBV_ACCESS_OPTIONAL_RANGE;

/* IBTA 10.6.3.1: remote write and atomic access require local write access. */
static int check_access(struct hca *h, unsigned access)
{
    if ((access & IBV_ACCESS_ON_DEMAND) && !odp_has(h))
        return hca_refuse(h, EOPNOTSUPP, "IBV_ACCESS_ON_DEMAND is not supported here");
    if (access & ~known_access)
        return EINVAL;
    if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
        !(access & IBV_ACCESS_LOCAL_WRITE))
        return EINVAL;
    return 0;
}

/* Whether Linux would pin the pages for writing; also for windows, which may open for writing. */
static bool writes(unsigned access)
{
    return access & (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC |
                     IBV_ACCESS_MW_BIND);
}

/* An implicit region: the program's whole address space, now and later (Linux: NULL, SIZE_MAX). */
static bool is_implicit(const void *addr, size_t length, unsigned access)
{
    return !addr && length == SIZE_MAX && (access & IBV_ACCESS_ON_DEMAND);
}

/* Refuses a range whose addresses or iova wrap, and, as adapters that pin pages do, memory that is
 * not mapped or lacks needed write access. Memory of an on-demand region may be mapped later. */
static int check_range(struct hca *h, const void *addr, size_t length, uint64_t iova,
                       unsigned access)
{
    int rc = 0;

    if (is_implicit(addr, length, access))
        return 0;
    if (length > HCA_MAX_MR_SIZE || (uintptr_t)addr + length < length || iova + length < iova)
        return EINVAL;
    if (h->cfg.drv.check_memory && length && !(access & IBV_ACCESS_ON_DEMAND))
        rc = h->cfg.drv.check_memory(h->cfg.drv.ctx, addr, length, writes(access));
    return rc ? hca_refuse(h, -rc,
                           "region of %zu bytes at %p, access 0x%x: some of it is not mapped%s, "
                           "expected memory that the HCA may reach",
                           length, addr, access, writes(access) ? " or not for writing" : "")
              : 0;
}

#define PAGE 4096u

#define MR_ACCESS                                                                                  \
    (ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC |        \
     IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND)

/* Copies the region's attributes to its key. With the lock held. */
static void mr_settle(struct hca_mr *mr, uint64_t iova, unsigned access)
{
    struct hca_key *k = mr_key(mr);

    T_ASSERT(k->mr == mr, "a region's key belongs to another region");
    k->start = mr->v.addr;
    k->length = mr->v.length;
    k->pd = mr->pd->v.handle;
    k->iova = iova;
    k->access = access & MR_ACCESS;
    if (is_implicit(mr->v.addr, mr->v.length,
                    access)) { /* all but the first page, which holds NULL */
        k->start = (char *)(uintptr_t)PAGE;
        k->iova = PAGE;
        k->length = UINT64_MAX - PAGE;
    }
}

/* Without the lock. */
static void note_refusal(struct hca *h, int err, unsigned access)
{
    hca_lock(h);
    events_add(&h->events, h->now_ps, HCA_EV_MR_REFUSED, (uint32_t)err, access);
    hca_unlock(h);
    errno = err;
}

struct ibv_mr *mr_reg(struct ibv_pd *v, void *addr, size_t length, uint64_t iova, unsigned access)
{
    struct hca_pd *pd = to_pd(v);
    struct hca *h = pd->ctx->hca;
    struct hca_mr *mr;
    int rc = hca_dead(h) ? EIO : check_access(h, access);

    if (access & IBV_ACCESS_ZERO_BASED)
        iova = 0;
    if (!rc)
        rc = check_range(h, addr, length, iova, access);
    mr = rc ? NULL : cacheline_alloc(sizeof(*mr));
    if (!mr) {
        note_refusal(h, rc ? rc : ENOMEM, access);
        return NULL;
    }
    mr->hca = h;
    mr->pd = pd;
    mr->v = (struct ibv_mr){.context = v->context, .pd = v, .addr = addr, .length = length};
    hca_lock(h);
    rc = h->n_mr == HCA_MAX_MR ? -ENOMEM : key_take(h, mr, NULL, &mr->v.lkey);
    if (!rc) {
        h->n_mr++, pd->refs++;
        T_ASSERT(h->n_mr + h->n_mw < h->key_cap, "more regions and windows than keys");
        mr_settle(mr, iova, access);
        events_add(&h->events, h->now_ps, HCA_EV_MR, mr->v.lkey, access);
    }
    hca_unlock(h);
    if (rc) {
        free(mr);
        note_refusal(h, -rc, access);
        return NULL;
    }
    mr->v.rkey = mr->v.handle = mr->v.lkey;
    return &mr->v;
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    if (!hca_ctx_of(pd->context))
        return REAL(ibv_reg_mr)(pd, addr, length, access);
    return mr_reg(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

/* Linux requires both addresses to have the same offset in a page; so does this HCA. */
static struct ibv_mr *reg_iova(struct ibv_pd *v, void *addr, size_t length, uint64_t iova,
                               unsigned access)
{
    if (!(access & IBV_ACCESS_ZERO_BASED) && (((uintptr_t)addr ^ iova) & (PAGE - 1))) {
        errno = EINVAL;
        return NULL;
    }
    return mr_reg(v, addr, length, iova, access);
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

/* Maps a dma-buf and registers the mapping. The HCA is a program, so it can reach only dma-bufs
 * that programs may map (of udmabuf or a fake GPU), not those of real GPUs. */
static struct ibv_mr *reg_dmabuf(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
                                 int fd, unsigned access)
{
    size_t before = offset % PAGE;
    struct stat st;
    struct ibv_mr *v;
    void *map;

    if (fd < 0) { /* UCX and others probe so whether a GPU's memory can be registered */
        errno = EOPNOTSUPP;
        return NULL;
    }
    if (!fstat(fd, &st) && st.st_size > 0 &&
        (offset + length < length || offset + length > (uint64_t)st.st_size)) {
        errno = EINVAL; /* beyond the end of the dma-buf */
        return NULL;
    }
    map = mmap(NULL, length + before, writes(access) ? PROT_READ | PROT_WRITE : PROT_READ,
               MAP_SHARED, fd, (off_t)(offset - before));
    if (map == MAP_FAILED) {
        errno = hca_refuse(to_pd(pd)->ctx->hca, EOPNOTSUPP,
                           "ibv_reg_dmabuf_mr: descriptor %d cannot be mapped, expected a dma-buf "
                           "that a program may map (udmabuf): a GPU's own memory is out of reach",
                           fd);
        return NULL;
    }
    v = mr_reg(pd, (char *)map + before, length, iova, access);
    if (!v) {
        int e = errno;

        munmap(map, length + before);
        errno = e;
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

/* Checks the region's new attributes against the memory as it is now. */
static int check_new(const struct hca_mr *mr, int flags, void *addr, size_t length, int access)
{
    bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
    unsigned now = flags & IBV_REREG_MR_CHANGE_ACCESS ? (unsigned)access : mr_key(mr)->access;

    if (!moves && !(flags & IBV_REREG_MR_CHANGE_ACCESS))
        return 0;
    if (!moves)
        addr = mr->v.addr, length = mr->v.length;
    return check_range(mr->hca, addr, length, (uintptr_t)addr, now);
}

/* Keeps the key, which the program's peers know, even if the translation changes. */
static int rereg(struct hca_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
                 int access)
{
    int rc = hca_dead(mr->hca);
    uint64_t iova;

    if (!rc && (flags & IBV_REREG_MR_CHANGE_ACCESS))
        rc = check_access(mr->hca, (unsigned)access);
    if (!rc && (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED))
        rc = EINVAL;
    if (!rc && (flags & IBV_REREG_MR_CHANGE_PD) && (!pd || pd->context != mr->v.context))
        rc = EINVAL;
    if (!rc && (flags & IBV_REREG_MR_CHANGE_TRANSLATION) && mr->map)
        rc = EINVAL;
    if (!rc && mr->dm)
        rc = EOPNOTSUPP;
    if (mr->imported)
        rc = EINVAL;
    if (!rc)
        rc = check_new(mr, flags, addr, length, access);
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
    if (!(flags & IBV_REREG_MR_CHANGE_ACCESS))
        access = (int)mr_key(mr)->access;
    iova = mr_key(mr)->iova;
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
        mr->v.addr = addr;
        mr->v.length = length;
        iova = (unsigned)access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr;
    }
    mr_settle(mr, iova, (unsigned)access);
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
    T_ASSERT(mr->hca->n_mr && mr->pd->refs, "a region goes that was not counted");
    T_ASSERT(!mr->dm || mr->dm->refs, "device memory does not count a region of it");
    T_ASSERT(mr_key(mr)->mr == mr, "a region's key belongs to another region");
    events_add(&mr->hca->events, mr->hca->now_ps, HCA_EV_MR_GONE, mr->v.lkey, mr->windows);
    key_give(mr->hca, mr->v.lkey);
    mr->hca->n_mr--;
    mr->pd->refs--;
    if (mr->map)
        munmap(mr->map, mr->map_bytes);
    if (mr->dm)
        mr->dm->refs--;
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
    rc = to_mr(v)->imported ? EINVAL : to_mr(v)->windows ? EBUSY : 0;
    if (!rc)
        mr_free(to_mr(v));
    hca_unlock(h);
    return rc;
}

int hca_mr_unback(struct ibv_mr *v)
{
    if (!hca_ctx_of(v->context))
        return -EINVAL;
    mr_key(to_mr(v))->unbacked = true;
    return 0;
}
