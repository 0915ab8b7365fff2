/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registrations. Handles are a context's; the memory behind is the process's, where tributary/coll.h
 * knows a range by its address. So a range that several handles have is registered once; one that
 * starts where another of other length does is left to be registered by operations.
 */
#include "plugins/sharp/sharp_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct range {
    uint8_t *base;
    size_t bytes;
    unsigned handles;
    bool registered;
    struct range *next;
};

struct sharp_mem {
    struct range *range;
    struct sharp_mem *next;
};

static struct range *ranges;

static struct range *range_get(uint8_t *base, size_t bytes)
{
    bool taken = false;
    struct range *r;

    for (r = ranges; r; r = r->next) {
        if (r->base == base && r->bytes == bytes)
            break;
        taken |= r->base == base && r->registered;
    }
    if (!r) {
        r = malloc(sizeof(*r));
        if (!r)
            return NULL;
        *r = (struct range){.base = base, .bytes = bytes, .next = ranges};
        r->registered = !taken && bytes && !trib_register(base, bytes);
        ranges = r;
    }
    r->handles++;
    return r;
}

static int range_put(struct range *r)
{
    int rc;

    if (r->handles == 1 && r->registered && (rc = trib_deregister(r->base)) == -EBUSY)
        return rc;
    if (--r->handles)
        return 0;
    for (struct range **at = &ranges; *at; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            break;
        }
    free(r);
    return 0;
}

static int add(struct sharp_coll_context *ctx, void *buf, size_t size, void **mr)
{
    struct sharp_mem *m;

    if (!buf || (uintptr_t)buf + size < (uintptr_t)buf)
        return sharp_refuse(SHARP_COLL_EINVAL, "reg_mr: found %zu bytes at %p", size, buf);
    m = malloc(sizeof(*m));
    if (!m)
        return sharp_refuse(SHARP_COLL_ENOMEM, "out of memory");
    m->range = range_get(buf, size);
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
    rc = sharp_is_context(ctx) ? add(ctx, buf, size, mr)
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
    } else if (range_put(m->range)) {
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
    size_t at;

    if (!handle || !bytes)
        return SHARP_COLL_SUCCESS;
    for (m = ctx->mem; m && m != handle; m = m->next)
        ;
    if (!m)
        return sharp_refuse(SHARP_COLL_EINVAL, "%s: %p is no memory handle of the context", what,
                            handle);
    at = (size_t)((uintptr_t)ptr - (uintptr_t)m->range->base);
    if ((const uint8_t *)ptr < m->range->base || at > m->range->bytes ||
        bytes > m->range->bytes - at)
        return sharp_refuse(SHARP_COLL_EINVAL,
                            "%s: found %zu bytes at %p, expected a part of the handle's %zu at %p",
                            what, bytes, ptr, m->range->bytes, (void *)m->range->base);
    return SHARP_COLL_SUCCESS;
}

void sharp_mem_end(struct sharp_coll_context *ctx)
{
    for (struct sharp_mem *m = ctx->mem; m; m = ctx->mem) {
        ctx->mem = m->next;
        if (range_put(m->range)) /* another context's operation: its end waits for nobody here */
            m->range->handles--;
        free(m);
    }
}
