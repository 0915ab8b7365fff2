/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of libibverbs that are newer than the oldest header that this compiles with (v44 to v65).
 * libibverbs would treat our device as one of its drivers' and jump through the driver's private
 * table, which our devices lack. So this file defines each call that takes one of our objects: it
 * does the easy ones and refuses the others by name. tests/e2e/verbs_symbols.sh compares them with
 * the exports of libibverbs. newer_unknown.c handles calls that are newer still.
 *
 * Asm labels name the functions, because newer headers declare them with types that older headers
 * lack.
 */
#include "host/hca/hca_priv.h"

#include <dlfcn.h>
#include <string.h>

#define NAMED(name) __asm__(#name) EXPORT

/* The call in the system's libibverbs, for devices of other drivers. NULL: that one lacks it. */
static void *real_of(const char *name)
{
    void *fn = dlsym(RTLD_NEXT, name), *lib;

    if (!fn) {
        lib = hca_dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_LOCAL);
        fn = lib ? dlsym(lib, name) : NULL;
    }
    errno = EOPNOTSUPP;
    return fn;
}

#define PASS_ON(bad, name, fn, ...)                                                                \
    ({                                                                                             \
        __typeof__(fn) *real_ = (__typeof__(fn) *)real_of(#name);                                  \
        real_ ? real_(__VA_ARGS__) : (bad);                                                        \
    })

#define REFUSE(c, call, what)                                                                      \
    (errno = hca_refuse((c)->hca, EOPNOTSUPP, call ": " what " not supported"))

/* ---- memory ---- */

/* struct ibv_mr_init_attr and its mask. */
struct mr_attr {
    size_t length;
    int access;
    uint64_t comp_mask, iova;
    void *addr;
    int fd;
    uint64_t fd_offset;
    void *dmah, *buf;
};
enum { MR_IOVA = 1, MR_ADDR = 2, MR_FD = 4, MR_FD_OFFSET = 8 };

struct ibv_mr *newer_reg_mr(struct ibv_pd *pd, struct mr_attr *a) NAMED(ibv_reg_mr_ex);
struct ibv_mr *newer_reg_mr(struct ibv_pd *pd, struct mr_attr *a)
{
    struct hca_ctx *c = hca_ctx_of(pd->context);
    const uint64_t known = MR_IOVA | MR_ADDR | MR_FD | MR_FD_OFFSET;

    if (!c)
        return PASS_ON(NULL, ibv_reg_mr_ex, newer_reg_mr, pd, a);
    if (a->comp_mask & ~known) {
        errno = hca_refuse(c->hca, EOPNOTSUPP,
                           "ibv_reg_mr_ex: found comp_mask 0x%llx, expected within 0x%llx: no DMA "
                           "handles or buffers of ibv_alloc_buf",
                           (unsigned long long)a->comp_mask, (unsigned long long)known);
        return NULL;
    }
    if (a->comp_mask & MR_FD)
        return ibv_reg_dmabuf_mr(pd, a->comp_mask & MR_FD_OFFSET ? a->fd_offset : 0, a->length,
                                 a->comp_mask & MR_IOVA ? a->iova : 0, a->fd, a->access);
    if ((a->comp_mask & MR_ADDR) && !(a->comp_mask & MR_FD_OFFSET))
        return ibv_reg_mr_iova2(pd, a->addr, a->length,
                                a->comp_mask & MR_IOVA ? a->iova : (uintptr_t)a->addr,
                                (unsigned)a->access);
    errno = EINVAL;
    return NULL;
}

struct ibv_mr *newer_reg_buf_mr(struct ibv_pd *pd, void *buf, void *addr, size_t length, int access)
    NAMED(ibv_reg_buf_mr);
struct ibv_mr *newer_reg_buf_mr(struct ibv_pd *pd, void *buf, void *addr, size_t length, int access)
{
    struct hca_ctx *c = hca_ctx_of(pd->context);

    if (!c)
        return PASS_ON(NULL, ibv_reg_buf_mr, newer_reg_buf_mr, pd, buf, addr, length, access);
    REFUSE(c, "ibv_reg_buf_mr", "buffers of the provider are");
    return NULL;
}

void *newer_alloc_buf(struct ibv_pd *pd, size_t size, void **buf) NAMED(ibv_alloc_buf);
void *newer_alloc_buf(struct ibv_pd *pd, size_t size, void **buf)
{
    struct hca_ctx *c = hca_ctx_of(pd->context);

    if (!c)
        return PASS_ON(NULL, ibv_alloc_buf, newer_alloc_buf, pd, size, buf);
    REFUSE(c, "ibv_alloc_buf", "buffers of the provider are");
    return NULL;
}

void *newer_alloc_dmah(struct ibv_context *v, void *attr) NAMED(ibv_alloc_dmah);
void *newer_alloc_dmah(struct ibv_context *v, void *attr)
{
    struct hca_ctx *c = hca_ctx_of(v);

    if (!c)
        return PASS_ON(NULL, ibv_alloc_dmah, newer_alloc_dmah, v, attr);
    REFUSE(c, "ibv_alloc_dmah", "DMA handles (TPH) are");
    return NULL;
}

int newer_dm_export(struct ibv_dm *dm) NAMED(ibv_dm_export_dmabuf_fd);
int newer_dm_export(struct ibv_dm *dm)
{
    struct hca_ctx *c = hca_ctx_of(dm->context);

    if (!c)
        return PASS_ON(-1, ibv_dm_export_dmabuf_fd, newer_dm_export, dm);
    REFUSE(c, "ibv_dm_export_dmabuf_fd", "export of device memory as a dma-buf is");
    return -1;
}

/* ---- counters, ports ---- */

int newer_comp_cntr_caps(struct ibv_context *v, void *caps, size_t size)
    NAMED(_ibv_query_comp_cntr_caps);
int newer_comp_cntr_caps(struct ibv_context *v, void *caps, size_t size)
{
    struct hca_ctx *c = hca_ctx_of(v);

    if (!c)
        return PASS_ON(EOPNOTSUPP, _ibv_query_comp_cntr_caps, newer_comp_cntr_caps, v, caps, size);
    memset(caps, 0, size);
    return REFUSE(c, "ibv_query_comp_cntr_caps", "completion counters are");
}

void *newer_create_comp_cntr(struct ibv_context *v, void *attr) NAMED(ibv_create_comp_cntr);
void *newer_create_comp_cntr(struct ibv_context *v, void *attr)
{
    struct hca_ctx *c = hca_ctx_of(v);

    if (!c)
        return PASS_ON(NULL, ibv_create_comp_cntr, newer_create_comp_cntr, v, attr);
    REFUSE(c, "ibv_create_comp_cntr", "completion counters are");
    return NULL;
}

int newer_attach_comp_cntr(struct ibv_qp *qp, void *cntr, void *attr)
    NAMED(ibv_qp_attach_comp_cntr);
int newer_attach_comp_cntr(struct ibv_qp *qp, void *cntr, void *attr)
{
    struct hca_ctx *c = hca_ctx_of(qp->context);

    if (!c)
        return PASS_ON(EOPNOTSUPP, ibv_qp_attach_comp_cntr, newer_attach_comp_cntr, qp, cntr, attr);
    return REFUSE(c, "ibv_qp_attach_comp_cntr", "completion counters are");
}

/* In units of 100 Mb/s. */
int newer_port_speed(struct ibv_context *v, uint32_t port, uint64_t *speed)
    NAMED(ibv_query_port_speed);
int newer_port_speed(struct ibv_context *v, uint32_t port, uint64_t *speed)
{
    struct hca_ctx *c = hca_ctx_of(v);

    if (!c)
        return PASS_ON(EOPNOTSUPP, ibv_query_port_speed, newer_port_speed, v, port, speed);
    if (hca_dead(c->hca))
        return EIO;
    if (port != HCA_PORT)
        return EINVAL;
    *speed = c->hca->cfg.rate_bps / 100000000;
    return 0;
}
