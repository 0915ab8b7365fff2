/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From descriptors to calls of tributary/coll.h. Descriptors are garbage where their callers (UCC's
 * tl/sharp, nccl-rdma-sharp-plugins) set nothing, so each operation reads its own fields only.
 *
 * A window of a reduce-scatter or all-gather becomes a reduce or broadcast for each block in it, as
 * the switches do with the whole vector.
 *
 * Reduce-scatter in place is ambiguous at rank 0. UCC passes one pointer at all ranks, to a vector
 * of rbuf's length, and says that sbuf is `size` times as long. Other callers pass the same at rank
 * 0 for a vector of sbuf's length. All other ranks can tell the two apart, and NVIDIA's plug-in
 * counts sbuf's elements in `length`. If rank 0 cannot tell, it asks by an all-reduce of two
 * numbers.
 */
#include "plugins/common/block_window.h"
#include "plugins/sharp/sharp_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- checks ---- */

/* Whether the CPU can read p: GPU memory is not supported. In an all-gather the plug-in does not
 * say what memory its buffers are in, so memory that is not declared as host memory is probed. */
static bool pointer_readable(const void *p)
{
    char byte;
    struct iovec to = {&byte, 1}, from = {(void *)(uintptr_t)p, 1};

    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1 || errno != EFAULT;
}

static int check_desc(const struct sharp_coll_data_desc *d, bool says_memory, const char *what)
{
    if (d->type == SHARP_DATA_IOV)
        return sharp_refuse(SHARP_COLL_ENOT_SUPP, "%s: found a vector of buffers, expected one",
                            what);
    if (d->type != SHARP_DATA_BUFFER)
        return sharp_refuse(SHARP_COLL_EINVAL, "%s: found a buffer of type %d", what, (int)d->type);
    if (says_memory && d->mem_type == SHARP_MEM_TYPE_CUDA)
        return sharp_refuse(SHARP_COLL_ENOT_SUPP, "%s: found GPU memory, expected the host's",
                            what);
    if (says_memory && d->mem_type != SHARP_MEM_TYPE_HOST)
        return sharp_refuse(SHARP_COLL_EINVAL, "%s: found memory of type %d", what,
                            (int)d->mem_type);
    return SHARP_COLL_SUCCESS;
}

/* Checks that the descriptor has `bytes` bytes, and that they are in the handle's memory. */
static int check_bytes(const struct sharp_coll_comm *c, const struct sharp_coll_data_desc *d,
                       size_t bytes, const char *what)
{
    const char *p = d->buffer.ptr;

    if (bytes && (!p || (uintptr_t)p + bytes < (uintptr_t)p))
        return sharp_refuse(SHARP_COLL_EINVAL, "%s: found %zu bytes at %p", what, bytes,
                            (const void *)p);
    if (bytes && d->mem_type != SHARP_MEM_TYPE_HOST &&
        (!pointer_readable(p) || !pointer_readable(p + bytes - 1)))
        return sharp_refuse(SHARP_COLL_ENOT_SUPP, "%s: found memory at %p that is not the host's",
                            what, (const void *)p);
    return sharp_mem_check(c->ctx, d->buffer.mem_handle, p, bytes, what);
}

/* Makes a request. On failure *r is not set. */
static int call_make(struct sharp_coll_comm *c, enum sharp_kind kind, unsigned n, uint64_t bytes,
                     struct sharp_req **r)
{
    *r = sharp_req_new(c, kind, n);
    if (!*r)
        return sharp_refuse(SHARP_COLL_ENOMEM, "out of memory");
    (*r)->bytes = bytes;
    return SHARP_COLL_SUCCESS;
}

static void sharp_call_add(struct sharp_req *r, struct sharp_call call)
{
    r->call[r->n++] = call;
}

static int check_reduction(const struct sharp_coll_reduce_spec *s, const char *what,
                           struct sharp_call *a)
{
    int rc;

    if ((unsigned)s->dtype >= SHARP_DTYPE_NULL || (unsigned)s->op >= SHARP_OP_NULL ||
        (unsigned)s->aggr_mode > SHARP_AGGREGATION_STREAMING)
        return sharp_refuse(SHARP_COLL_EINVAL, "%s: found type %d, operation %d, mode %d", what,
                            (int)s->dtype, (int)s->op, (int)s->aggr_mode);
    if (!sharp_reduces(s->dtype, s->op, &a->type, &a->op))
        return sharp_refuse(SHARP_COLL_ENOT_SUPP,
                            "%s: found operation %d of type %d, which switches do not have", what,
                            (int)s->op, (int)s->dtype);
    rc = check_desc(&s->sbuf_desc, true, what);
    if (!rc)
        rc = check_desc(&s->rbuf_desc, true, what);
    return rc;
}

/* ---- operations: what each makes of its descriptor ---- */

static int sharp_call_barrier(struct sharp_coll_comm *c, const void *spec, struct sharp_req **r)
{
    int rc = call_make(c, SHARP_BARRIER, 1, 0, r);

    (void)spec;
    if (!rc)
        sharp_call_add(*r, (struct sharp_call){.kind = SHARP_BARRIER});
    return rc;
}

/* Number of elements of `bytes` bytes that `length` stands for. UCC has no type for pairs: it
 * counts values and indices separately. It does not set the index's type, so that is not read. */
static size_t meant(const struct sharp_coll_reduce_spec *s, enum trib_type type, size_t bytes)
{
    bool pairs = s->op == SHARP_OP_MAXLOC || s->op == SHARP_OP_MINLOC;
    size_t value = trib_size(type) / 2;

    return pairs && bytes / value == s->length && bytes % trib_size(type) == 0 ? s->length / 2
                                                                               : s->length;
}

static int reduce_to(struct sharp_coll_comm *c, const struct sharp_coll_reduce_spec *s,
                     struct sharp_call a, struct sharp_req **r)
{
    const char *what = sharp_kind_name[a.kind];
    bool gets = a.kind == SHARP_ALLREDUCE || a.root == c->rank;
    size_t bytes;
    int rc = check_reduction(s, what, &a);

    if (rc)
        return rc;
    a.count = meant(s, a.type, s->sbuf_desc.buffer.length);
    if (__builtin_mul_overflow(a.count, (size_t)trib_size(a.type), &bytes) ||
        bytes > s->sbuf_desc.buffer.length || (gets && bytes > s->rbuf_desc.buffer.length))
        return sharp_refuse(SHARP_COLL_EINVAL,
                            "%s: found %zu elements of %u bytes, expected what fits into buffers "
                            "of %zu and %zu bytes",
                            what, a.count, trib_size(a.type), s->sbuf_desc.buffer.length,
                            s->rbuf_desc.buffer.length);
    rc = check_bytes(c, &s->sbuf_desc, bytes, what);
    if (!rc && gets)
        rc = check_bytes(c, &s->rbuf_desc, bytes, what);
    if (!rc)
        rc = call_make(c, a.kind, 1, bytes, r);
    if (rc)
        return rc;
    a.send = s->sbuf_desc.buffer.ptr;
    a.recv = gets ? s->rbuf_desc.buffer.ptr : NULL;
    sharp_call_add(*r, a);
    return SHARP_COLL_SUCCESS;
}

static int sharp_call_allreduce(struct sharp_coll_comm *c, const void *spec, struct sharp_req **r)
{
    return reduce_to(c, spec, (struct sharp_call){.kind = SHARP_ALLREDUCE}, r);
}

static int check_root(const struct sharp_coll_comm *c, int root, const char *what)
{
    if (root >= 0 && (uint32_t)root < c->size)
        return SHARP_COLL_SUCCESS;
    return sharp_refuse(SHARP_COLL_EINVAL, "%s: found root %d, expected a rank below %u", what,
                        root, c->size);
}

static int sharp_call_reduce(struct sharp_coll_comm *c, const void *spec, struct sharp_req **r)
{
    const struct sharp_coll_reduce_spec *s = spec;
    int rc = check_root(c, s->root, "reduce");

    return rc ? rc
              : reduce_to(c, s,
                          (struct sharp_call){.kind = SHARP_REDUCE, .root = (uint32_t)s->root}, r);
}

static int bcast(struct sharp_coll_comm *c, const void *spec, struct sharp_req **r)
{
    const struct sharp_coll_bcast_spec *s = spec;
    int rc = check_root(c, s->root, "bcast");

    if (!rc)
        rc = check_desc(&s->buf_desc, true, "bcast");
    if (!rc && s->size > s->buf_desc.buffer.length)
        rc = sharp_refuse(SHARP_COLL_EINVAL,
                          "bcast: found %zu bytes, expected at most the buffer's %zu", s->size,
                          s->buf_desc.buffer.length);
    if (!rc)
        rc = check_bytes(c, &s->buf_desc, s->size, "bcast");
    if (!rc)
        rc = call_make(c, SHARP_BCAST, 1, s->size, r);
    if (!rc)
        sharp_call_add(*r, (struct sharp_call){.kind = SHARP_BCAST,
                                               .recv = s->buf_desc.buffer.ptr,
                                               .count = s->size,
                                               .type = TRIB_UINT8,
                                               .root = (uint32_t)s->root});
    return rc;
}

static int check_window(const struct sharp_coll_comm *c, size_t block, size_t offset, size_t bytes,
                        size_t element, const char *what)
{
    if (block_window_fits(c->size, block, offset, bytes) && block % element == 0 &&
        offset % element == 0 && bytes % element == 0)
        return SHARP_COLL_SUCCESS;
    return sharp_refuse(SHARP_COLL_EINVAL,
                        "%s: found %zu bytes from %zu on, expected whole elements of %zu bytes of "
                        "%u blocks of %zu bytes",
                        what, bytes, offset, element, c->size, block);
}

static bool sharp_call_overlap(const char *a, size_t na, const char *b, size_t nb)
{
    return na && nb && a < b + nb && b < a + na;
}

static int allgather(struct sharp_coll_comm *c, const void *spec, struct sharp_req **r)
{
    const struct sharp_coll_gather_spec *s = spec;
    size_t block = s->sbuf_desc.buffer.length, bytes = s->rbuf_desc.buffer.length, own, at = 0;
    char *in = s->sbuf_desc.buffer.ptr, *out = s->rbuf_desc.buffer.ptr;
    int rc = check_desc(&s->sbuf_desc, false, "allgather");

    if (!c->ctx->conf.value[SHARP_VAR_ENABLE_SAT] && !c->ctx->conf.value[SHARP_VAR_ENABLE_MCAST])
        return sharp_refuse(SHARP_COLL_ENOT_SUPP, "allgather: SHARP_COLL_ENABLE_SAT is 0");
    if (!rc)
        rc = check_desc(&s->rbuf_desc, false, "allgather");
    if (!rc)
        rc = check_window(c, block, s->offset, bytes, 1, "allgather");
    if (rc)
        return rc;
    own = block_window_part(c->rank, block, s->offset, bytes, &at);
    rc = check_bytes(c, &s->sbuf_desc, own, "allgather");
    if (!rc)
        rc = check_bytes(c, &s->rbuf_desc, bytes, "allgather");
    if (!rc && in != out + at && sharp_call_overlap(in, own, out, bytes))
        rc = sharp_refuse(SHARP_COLL_EINVAL, "allgather: send and receive buffers overlap");
    if (!rc)
        rc = call_make(c, SHARP_ALLGATHER, c->size, bytes, r);
    if (rc)
        return rc;
    if (!s->offset && bytes == block * c->size) {
        sharp_call_add(*r, (struct sharp_call){SHARP_ALLGATHER, in, out, block, TRIB_UINT8, 0, 0});
        return SHARP_COLL_SUCCESS;
    }
    if (own && in != out + at)
        memcpy(out + at, in, own);
    for (uint32_t k = 0; k < c->size; k++) {
        size_t n = block_window_part(k, block, s->offset, bytes, &at);

        if (n)
            sharp_call_add(*r,
                           (struct sharp_call){SHARP_BCAST, NULL, out + at, n, TRIB_UINT8, 0, k});
    }
    return rc;
}

/* ---- reduce-scatter ---- */

enum { VIEW_SEND, VIEW_RECV }; /* sharp_req.view: which buffer's length the vector has */

/* The vector is sbuf: a window of `size` blocks. */
static void of_send(struct sharp_req *r, struct sharp_call a, const char *in, char *out,
                    size_t block, size_t offset, size_t bytes)
{
    struct sharp_coll_comm *c = r->comm;
    size_t element = trib_size(a.type), at;

    a.send = in;
    a.recv = out;
    if (!offset && bytes == block * c->size) {
        a.kind = SHARP_REDUCE_SCATTER;
        a.count = block / element;
        sharp_call_add(r, a);
        return;
    }
    a.kind = SHARP_REDUCE;
    for (a.root = 0; a.root < c->size; a.root++) {
        a.count = block_window_part(a.root, block, offset, bytes, &at) / element;
        a.send = in + at;
        a.recv = a.root == c->rank ? out : NULL;
        if (a.count)
            sharp_call_add(r, a);
    }
}

/* The vector is rbuf, and a rank's result goes to its place in it. */
static void of_recv(struct sharp_req *r, struct sharp_call a, char *buf, size_t bytes)
{
    struct sharp_coll_comm *c = r->comm;
    size_t element = trib_size(a.type), at;

    a.kind = SHARP_REDUCE;
    for (a.root = 0; a.root < c->size; a.root++) {
        a.count = sharp_even_part(a.root, c->size, bytes / element, &at);
        a.send = buf + at * element;
        a.recv = a.root == c->rank ? buf + at * element : NULL;
        if (a.count)
            sharp_call_add(r, a);
    }
}

/* Makes the calls once the question is answered. Until then call[0] holds both buffers and rbuf's
 * count. */
int sharp_answered(struct sharp_req *r)
{
    struct sharp_call a = r->call[0];
    char *buf = a.recv;
    size_t block = a.count * trib_size(a.type);

    if (r->view[VIEW_SEND] && r->view[VIEW_RECV])
        return sharp_refuse(SHARP_COLL_EINVAL,
                            "reduce_scatter: in place of the send buffer at some ranks, of the "
                            "receive buffer at others");
    r->n = 0;
    if (r->view[VIEW_RECV])
        of_recv(r, a, buf, block);
    else
        of_send(r, a, a.send, buf, block, 0, block * r->comm->size);
    return SHARP_COLL_SUCCESS;
}

/* Whether ranks must ask: rank 0 cannot know what the vector is; the others do, and answer. */
static bool asks(const struct sharp_coll_comm *c, const struct sharp_coll_reduce_spec *s,
                 enum trib_type type)
{
    const char *in = s->sbuf_desc.buffer.ptr, *out = s->rbuf_desc.buffer.ptr;
    size_t block = s->rbuf_desc.buffer.length;

    return c->size > 1 && block && !s->offset && s->sbuf_desc.buffer.length == block * c->size &&
           meant(s, type, block) == block / trib_size(type) &&
           (out == in || out == in + c->rank * block);
}

static int rs_check(const struct sharp_coll_comm *c, const struct sharp_coll_reduce_spec *s,
                    struct sharp_call *a, bool *asking)
{
    const char *in = s->sbuf_desc.buffer.ptr, *out = s->rbuf_desc.buffer.ptr;
    size_t block = s->rbuf_desc.buffer.length, bytes = s->sbuf_desc.buffer.length, own, at = 0;
    int rc = check_reduction(s, "reduce_scatter", a);
    bool all;

    if (!c->ctx->conf.value[SHARP_VAR_ENABLE_SAT])
        return sharp_refuse(SHARP_COLL_ENOT_SUPP, "reduce_scatter: SHARP_COLL_ENABLE_SAT is 0");
    if (!rc)
        rc = check_window(c, block, s->offset, bytes, trib_size(a->type), "reduce_scatter");
    if (rc)
        return rc;
    *asking = asks(c, s, a->type);
    own = block_window_part(c->rank, block, s->offset, bytes, &at);
    all = !*asking || (c->rank && out != in);
    rc = check_bytes(c, &s->sbuf_desc, all ? bytes : block, "reduce_scatter");
    if (!rc)
        rc = check_bytes(c, &s->rbuf_desc, *asking ? block : own, "reduce_scatter");
    if (!rc && all && out != in + at && sharp_call_overlap(in, bytes, out, own))
        rc = sharp_refuse(SHARP_COLL_EINVAL, "reduce_scatter: send and receive buffers overlap");
    return rc;
}

static int reduce_scatter(struct sharp_coll_comm *c, const void *spec, struct sharp_req **r)
{
    const struct sharp_coll_reduce_spec *s = spec;
    char *in = s->sbuf_desc.buffer.ptr, *out = s->rbuf_desc.buffer.ptr;
    struct sharp_call a = {.kind = SHARP_REDUCE_SCATTER};
    bool asking = false;
    int rc = rs_check(c, s, &a, &asking);

    if (!rc)
        rc = call_make(c, SHARP_REDUCE_SCATTER, c->size, s->sbuf_desc.buffer.length, r);
    if (rc)
        return rc;
    if (!asking) {
        of_send(*r, a, in, out, s->rbuf_desc.buffer.length, s->offset, s->sbuf_desc.buffer.length);
        return SHARP_COLL_SUCCESS;
    }
    a.send = in;
    a.recv = out;
    a.count = s->rbuf_desc.buffer.length / trib_size(a.type);
    (*r)->call[0] = a;
    (*r)->asks = true;
    if (c->rank)
        (*r)->view[out == in ? VIEW_RECV : VIEW_SEND] = 1;
    return SHARP_COLL_SUCCESS;
}

/* ---- the caller's calls ---- */

typedef int (*maker)(struct sharp_coll_comm *c, const void *spec, struct sharp_req **r);

static int sharp_call_post(struct sharp_coll_comm *c, enum sharp_kind kind, const void *spec,
                           void **req)
{
    static const maker made[SHARP_KINDS] = {sharp_call_barrier, sharp_call_allreduce,
                                            sharp_call_reduce,  reduce_scatter,
                                            allgather,          bcast};
    struct sharp_req *r = NULL;
    int rc;

    if (!req || (!spec && kind != SHARP_BARRIER))
        return sharp_refuse(SHARP_COLL_EINVAL, "%s: found no %s", sharp_kind_name[kind],
                            req ? "spec" : "place for the request");
    sharp_lock();
    rc = sharp_is_comm(c)
             ? made[kind](c, spec, &r)
             : sharp_refuse(SHARP_COLL_EINVAL, "%s: found no communicator", sharp_kind_name[kind]);
    if (!rc)
        rc = sharp_req_start(r);
    sharp_unlock();
    *req = rc ? NULL : r;
    return rc;
}

static int sharp_call_run(struct sharp_coll_comm *c, enum sharp_kind kind, const void *spec)
{
    void *req;
    int rc = sharp_call_post(c, kind, spec, &req);

    return rc ? rc : sharp_coll_req_wait(req);
}

int sharp_coll_do_barrier(struct sharp_coll_comm *comm)
{
    return sharp_call_run(comm, SHARP_BARRIER, NULL);
}

int sharp_coll_do_barrier_nb(struct sharp_coll_comm *comm, void **req)
{
    return sharp_call_post(comm, SHARP_BARRIER, NULL, req);
}

#define CALL(name, kind, s)                                                                        \
    int sharp_coll_do_##name(struct sharp_coll_comm *comm, struct s *spec)                         \
    {                                                                                              \
        return sharp_call_run(comm, kind, spec);                                                   \
    }                                                                                              \
    int sharp_coll_do_##name##_nb(struct sharp_coll_comm *comm, struct s *spec, void **req)        \
    {                                                                                              \
        return sharp_call_post(comm, kind, spec, req);                                             \
    }

CALL(allreduce, SHARP_ALLREDUCE, sharp_coll_reduce_spec)
CALL(reduce, SHARP_REDUCE, sharp_coll_reduce_spec)
CALL(reduce_scatter, SHARP_REDUCE_SCATTER, sharp_coll_reduce_spec)
CALL(allgather, SHARP_ALLGATHER, sharp_coll_gather_spec)
CALL(bcast, SHARP_BCAST, sharp_coll_bcast_spec)
