/* SPDX-License-Identifier: BSD-3-Clause */
/* Registrations. Handles belong to a context, the registered memory to the process (reg_range.h).
 */
#include "plugins/common/reg_range.h"
#include "plugins/sharp/sharp_priv.h"

#include <stdlib.h>
#include <string.h>

struct sharp_mem {
    struct reg_range *range;
    struct sharp_mem *next;
};

static int sharp_mem_add(struct sharp_coll_context *ctx, void *buf, size_t size, void **mr)
{
    struct sharp_mem *m;

    if (!buf || (uintptr_t)buf + size < (uintptr_t)buf)
        return sharp_refuse(SHARP_COLL_EINVAL, "reg_mr: found %zu bytes at %p", size, buf);
    m = malloc(sizeof(*m));
    if (!m)
        return sharp_refuse(SHARP_COLL_ENOMEM, "out of memory");
    m->range = reg_range_get(buf, size);
    if (!m->range) {
        free(m);
        return sharp_refuse(SHARP_COLL_ENOMEM, "out of memory");
    }
    m->next = ctx->mem;
    ctx->mem = m;
    *mr = m;
    return SHARP_COLL_SUCCESS;
}

int sharp_coll_reg_mr(struct sharp_coll_context *ctx, void *buf, size_t size, void **mr)
{
    int rc;

    if (!mr)
        return sharp_refuse(SHARP_COLL_EINVAL, "reg_mr: found no place for the handle");
    *mr = NULL;
    sharp_lock();
    rc = sharp_is_context(ctx) ? sharp_mem_add(ctx, buf, size, mr)
                               : sharp_refuse(SHARP_COLL_EINVAL, "reg_mr: found no context");
    sharp_unlock();
    return rc;
}

int sharp_coll_reg_mr_v2(struct sharp_coll_context *ctx, void *buf, size_t size,
                         const struct sharp_coll_reg_params *params, void **mr)
{
    if (mr)
        *mr = NULL;
    if (!params)
        return sharp_refuse(SHARP_COLL_EINVAL, "reg_mr_v2: found no parameters");
    if (params->field_mask &
        ~(uint64_t)(SHARP_COLL_REG_FIELD_DMABUF_FD | SHARP_COLL_REG_FIELD_DMABUF_OFFSET))
        return sharp_refuse(SHARP_COLL_ENOT_SUPP, "reg_mr_v2: found fields 0x%llx, expected 0 to 3",
                            (unsigned long long)params->field_mask);
    if (params->field_mask & SHARP_COLL_REG_FIELD_DMABUF_FD && params->dmabuf_fd >= 0)
        return sharp_refuse(SHARP_COLL_ENOT_SUPP,
                            "reg_mr_v2: found the DMA buffer %d, expected host memory without one",
                            params->dmabuf_fd);
    return sharp_coll_reg_mr(ctx, buf, size, mr);
}

int sharp_coll_dereg_mr(struct sharp_coll_context *ctx, void *mr)
{
    struct sharp_mem **at, *m = NULL;
    int rc = SHARP_COLL_SUCCESS;

    sharp_lock();
    if (sharp_is_context(ctx)) {
        for (at = &ctx->mem; *at && *at != mr; at = &(*at)->next)
            ;
        m = *at;
    }
    if (!m) {
        rc = sharp_refuse(SHARP_COLL_EINVAL, "dereg_mr: %p is no handle of the context", mr);
    } else if (reg_range_put(m->range)) {
        rc = sharp_refuse(SHARP_COLL_ERROR, "dereg_mr: an operation uses the memory at %p",
                          (void *)m->range->base);
    } else {
        *at = m->next;
        free(m);
    }
    sharp_unlock();
    return rc;
}

int sharp_mem_check(const struct sharp_coll_context *ctx, const void *handle, const void *ptr,
                    size_t bytes, const char *what)
{
    const struct sharp_mem *m;

    if (!handle || !bytes)
        return SHARP_COLL_SUCCESS;
    for (m = ctx->mem; m && m != handle; m = m->next)
        ;
    if (!m)
        return sharp_refuse(SHARP_COLL_EINVAL, "%s: %p is no memory handle of the context", what,
                            handle);
    if (!reg_range_holds(m->range, ptr, bytes))
        return sharp_refuse(SHARP_COLL_EINVAL,
                            "%s: found %zu bytes at %p, expected a part of the handle's %zu at %p",
                            what, bytes, ptr, m->range->bytes, (void *)m->range->base);
    return SHARP_COLL_SUCCESS;
}

void sharp_mem_end(struct sharp_coll_context *ctx)
{
    for (struct sharp_mem *m = ctx->mem; m; m = ctx->mem) {
        ctx->mem = m->next;
        if (reg_range_put(
                m->range)) /* an operation of another context uses it; do not wait for that */
            m->range->handles--;
        free(m);
    }
}
