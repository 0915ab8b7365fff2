/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of a CollNet communicator. Each is a call of tributary/coll.h, or one call for each
 * rank's part of a window. They run one after the other, in the order of the calls, which is the
 * same at all ranks. Any test() makes progress on all of them.
 */
#include "plugins/common/block_window.h"
#include "plugins/common/reg_range.h"
#include "plugins/nccl/nccl_coll.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- requests ---- */

static void request_free(struct nccl_coll_request *r)
{
    struct nccl_coll_request **at = &r->coll->requests;

    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    r->coll->running--;
    for (unsigned i = r->ended; i < r->n; i++)
        trib_free(r->part[i]);
    nccl_handle_end(r->handle);
    free(r->part);
    free(r);
}

static struct nccl_coll_request *request_new(struct nccl_coll *c, const char *what, unsigned parts,
                                             size_t bytes)
{
    struct nccl_coll_request *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->part = calloc(parts, sizeof(struct trib_request *));
    r->handle = r->part ? nccl_handle_new(NCCL_KIND_COLL_REQUEST, r) : NULL;
    if (!r->handle) {
        free(r->part);
        free(r);
        return NULL;
    }
    r->coll = c;
    r->what = what;
    r->size = bytes > INT_MAX ? INT_MAX : (int)bytes;
    r->next = c->requests;
    c->requests = r;
    c->running++;
    return r;
}

void nccl_coll_requests_end(struct nccl_coll *c)
{
    while (c->requests)
        request_free(c->requests);
}

/* ---- what all operations check ---- */

/* Begins a call of the plug-in. 0 with *c NULL: it would block. */
static int coll_begin(void *comm, const char *what, void **req, struct nccl_coll **c)
{
    int rc;

    if (!req)
        return nccl_refuse(NCCL_INVALID_ARGUMENT, "%s: found no place for the request", what);
    *req = NULL;
    rc = nccl_handle_find(comm, NCCL_KIND_COLL, what, c);
    if (!rc && (*c)->running >= NCCL_COLL_REQUESTS) {
        trib_progress((*c)->trib);
        *c = NULL;
    }
    return rc;
}

static int memory_check(const void *mh, const void *data, size_t bytes, const char *what)
{
    struct reg_range *range;
    int rc;

    if (!mh || !bytes)
        return NCCL_SUCCESS; /* coll.h registers unregistered memory itself */
    rc = nccl_handle_find(mh, NCCL_KIND_COLL_MEMORY, what, &range);
    if (!rc && !reg_range_holds(range, data, bytes))
        rc = nccl_refuse(NCCL_INVALID_ARGUMENT,
                         "%s: found %zu bytes at %p, expected a part of the handle's %zu at %p",
                         what, bytes, data, range->bytes, (void *)range->base);
    return rc;
}

static int reduction_check(int type, int op, const char *what, enum trib_type *t, int *o)
{
    if (nccl_type_of(type, t) && nccl_op_of(op, o))
        return NCCL_SUCCESS;
    return nccl_refuse(NCCL_INVALID_ARGUMENT,
                       "%s: found type %d and reduction %d, which reduceSupport() does not have",
                       what, type, op);
}

static int window_check(const struct nccl_coll *c, size_t block, size_t offset, size_t bytes,
                        size_t element, int n_parts, const struct nccl_sge *part, const char *what)
{
    if (n_parts != 1 || !part)
        return nccl_refuse(NCCL_INVALID_ARGUMENT, "%s: found %d parts, expected 1", what, n_parts);
    if (block_window_fits(c->size, block, offset, bytes) && part->size >= bytes &&
        block % element == 0 && offset % element == 0 && bytes % element == 0)
        return memory_check(part->mh, part->address, bytes, what);
    return nccl_refuse(
        NCCL_INVALID_ARGUMENT,
        "%s: found %zu bytes from %zu on and a buffer of %zu, expected whole elements "
        "of %zu bytes of %u blocks of %zu bytes",
        what, bytes, offset, part->size, element, c->size, block);
}

/* Adds a call that has just been made to the request. */
static int part_add(struct nccl_coll_request *r, int rc, const char *err)
{
    r->n += !rc;
    return rc ? nccl_refuse(NCCL_INTERNAL_ERROR, "%s: %s", r->what, err) : NCCL_SUCCESS;
}

static int coll_end(struct nccl_coll_request *r, int rc, void **req)
{
    if (rc)
        request_free(r);
    else
        *req = r->handle;
    return rc;
}

static int out_of_memory(const char *what)
{
    return nccl_refuse(NCCL_SYSTEM_ERROR, "%s: out of memory", what);
}

/* ---- all-reduce ---- */

int nccl_coll_iallreduce(void *comm, void *send, void *recv, size_t count, int type, int op,
                         void *send_mh, void *recv_mh, void **req)
{
    const char *what = "iallreduce";
    char err[TRIB_TEXT] = "";
    struct nccl_coll_request *r;
    struct nccl_coll *c;
    enum trib_type t = TRIB_INT8;
    size_t bytes = 0;
    int o = 0, rc;

    nccl_lock();
    rc = coll_begin(comm, what, req, &c);
    if (!rc && c) {
        rc = reduction_check(type, op, what, &t, &o);
        if (!rc && __builtin_mul_overflow(count, (size_t)trib_size(t), &bytes))
            rc = nccl_refuse(NCCL_INVALID_ARGUMENT, "%s: found %zu elements", what, count);
        if (!rc)
            rc = memory_check(send_mh, send, bytes, what);
        if (!rc)
            rc = memory_check(recv_mh, recv, bytes, what);
        r = rc ? NULL : request_new(c, what, 1, bytes);
        if (!rc && !r)
            rc = out_of_memory(what);
        if (r)
            rc = coll_end(
                r,
                part_add(r, trib_all_reduce(c->trib, send, recv, count, t, o, r->part, err), err),
                req);
    }
    nccl_unlock();
    return rc;
}

/* ---- all-gather ---- */

static int gather_start(struct nccl_coll_request *r, const void *send, char *window, size_t block,
                        size_t offset, size_t bytes)
{
    struct nccl_coll *c = r->coll;
    char err[TRIB_TEXT] = "";
    size_t at = 0, own = block_window_part(c->rank, block, offset, bytes, &at);
    int rc = NCCL_SUCCESS;

    if (!offset && bytes == block * c->size)
        return part_add(r, trib_all_gather(c->trib, send, window, block, TRIB_UINT8, r->part, err),
                        err);
    if (own && send != window + at)
        memmove(window + at, send, own); /* send points to the window's start in the block */
    for (uint32_t k = 0; k < c->size && !rc; k++) {
        size_t n = block_window_part(k, block, offset, bytes, &at);

        if (n)
            rc = part_add(
                r, trib_broadcast(c->trib, window + at, n, TRIB_UINT8, k, &r->part[r->n], err),
                err);
    }
    return rc;
}

int nccl_coll_iallgather(void *comm, void *send, int n_parts, const struct nccl_sge *recv,
                         size_t block, size_t offset, size_t bytes, void *send_mh, void **req)
{
    const char *what = "iallgather";
    struct nccl_coll_request *r;
    struct nccl_coll *c;
    size_t at;
    int rc;

    nccl_lock();
    rc = coll_begin(comm, what, req, &c);
    if (!rc && c) {
        rc = window_check(c, block, offset, bytes, 1, n_parts, recv, what);
        if (!rc)
            rc = memory_check(send_mh, send, block_window_part(c->rank, block, offset, bytes, &at),
                              what);
        r = rc ? NULL : request_new(c, what, c->size, bytes);
        if (!rc && !r)
            rc = out_of_memory(what);
        if (r)
            rc = coll_end(r, gather_start(r, send, recv->address, block, offset, bytes), req);
    }
    nccl_unlock();
    return rc;
}

/* ---- reduce-scatter ---- */

static int scatter_start(struct nccl_coll_request *r, const char *window, void *recv, size_t block,
                         size_t offset, size_t bytes, enum trib_type t, int op)
{
    struct nccl_coll *c = r->coll;
    size_t element = trib_size(t), at = 0;
    char err[TRIB_TEXT] = "";
    int rc = NCCL_SUCCESS;

    if (!offset && bytes == block * c->size)
        return part_add(
            r, trib_reduce_scatter(c->trib, window, recv, block / element, t, op, r->part, err),
            err);
    for (uint32_t k = 0; k < c->size && !rc; k++) {
        size_t n = block_window_part(k, block, offset, bytes, &at);

        if (n)
            rc = part_add(r,
                          trib_reduce(c->trib, window + at, k == c->rank ? recv : NULL, n / element,
                                      t, op, k, &r->part[r->n], err),
                          err);
    }
    return rc;
}

int nccl_coll_ireducescatter(void *comm, int n_parts, const struct nccl_sge *send, void *recv,
                             size_t block, size_t offset, size_t bytes, int type, int op,
                             void *recv_mh, void **req)
{
    const char *what = "ireducescatter";
    struct nccl_coll_request *r;
    struct nccl_coll *c;
    enum trib_type t = TRIB_INT8;
    size_t at;
    int o = 0, rc;

    nccl_lock();
    rc = coll_begin(comm, what, req, &c);
    if (!rc && c) {
        rc = reduction_check(type, op, what, &t, &o);
        if (!rc)
            rc = window_check(c, block, offset, bytes, trib_size(t), n_parts, send, what);
        if (!rc)
            rc = memory_check(recv_mh, recv, block_window_part(c->rank, block, offset, bytes, &at),
                              what);
        r = rc ? NULL : request_new(c, what, c->size, bytes);
        if (!rc && !r)
            rc = out_of_memory(what);
        if (r)
            rc =
                coll_end(r, scatter_start(r, send->address, recv, block, offset, bytes, t, o), req);
    }
    nccl_unlock();
    return rc;
}

/* ---- ending ---- */

int nccl_coll_iflush(void *comm, void *data, int size, void *mh, void **req)
{
    struct nccl_coll *c;
    int rc;

    (void)data, (void)size, (void)mh;
    if (!req)
        return nccl_refuse(NCCL_INVALID_ARGUMENT, "iflush: found no place for the request");
    *req = NULL;
    nccl_lock();
    rc = nccl_handle_find(comm, NCCL_KIND_COLL, "iflush", &c);
    nccl_unlock();
    return rc;
}

static void tell_fall_back(struct nccl_coll *c)
{
    const char *why = trib_comm_fell_back(c->trib);

    if (c->told || !*why)
        return;
    c->told = true;
    /* the reason is the same at all ranks, so only rank 0 warns */
    nccl_say(c->rank ? NCCL_LOG_INFO : NCCL_LOG_WARN, 0, __FILE__, __LINE__,
             "rank %u: hosts do what switches did: %s", c->rank, why);
}

static int request_test(struct nccl_coll_request *r, int *done, int *size)
{
    struct nccl_coll *c = r->coll;
    int rc = 0;

    while (r->ended < r->n && (rc = trib_test(r->part[r->ended])) > 0)
        trib_free(r->part[r->ended++]);
    if (rc < 0)
        return nccl_refuse(NCCL_REMOTE_ERROR, "%s: rank %u: %s", r->what, c->rank,
                           trib_comm_error(c->trib));
    if (r->ended < r->n)
        return NCCL_SUCCESS;
    tell_fall_back(c);
    *done = 1;
    if (size)
        *size = r->size;
    request_free(r);
    return NCCL_SUCCESS;
}

int nccl_coll_test(void *req, int *done, int *size)
{
    struct nccl_coll_request *r;
    int rc;

    if (!done)
        return nccl_refuse(NCCL_INVALID_ARGUMENT, "test: found no place for the answer");
    *done = 0;
    nccl_lock();
    rc = nccl_handle_find(req, NCCL_KIND_COLL_REQUEST, "test", &r);
    if (!rc)
        rc = request_test(r, done, size);
    nccl_unlock();
    return rc;
}
