/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SHARP's interface as UCC's tl/sharp and NVIDIA's nccl-rdma-sharp-plugins call it: descriptors hold
 * garbage beyond the fields that each of them sets; every type and operation, in place, windows over
 * blocks, two contexts and communicators, registration. Results are checked element by element.
 * usage: sharp_check ADDRESS:PORT RANK SIZE [die RANK]. Prints one line; with die, that rank ends itself in
 * the middle and the others expect an error.
 */
#include "sharp_elements.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#define N 8 /* outstanding windows */

static struct sharp_coll_caps caps;

/* Nothing but tests drives it, as in the plug-in. */
static void finish(void *req, const char *what)
{
    must(req, "%s: a request", what);
    while (!sharp_coll_req_test(req))
        ;
    must(!sharp_coll_req_free(req), "%s", what);
    checked++;
}

/* ---- descriptors, with no field set that the caller does not set ---- */

static void desc(struct sharp_coll_data_desc *d, void *ptr, size_t bytes, void *mr)
{
    d->type = SHARP_DATA_BUFFER;
    d->buffer.ptr = ptr;
    d->buffer.length = bytes;
    d->buffer.mem_handle = mr;
}

struct bufs {
    void *in, *out;
    void *in_mr, *out_mr;
};

static void reduce_desc(struct sharp_coll_reduce_spec *s, const struct bufs *b, size_t in,
                        size_t out, enum sharp_datatype t, enum sharp_reduce_op op, size_t length)
{
    memset(s, 0xa5, sizeof(*s));
    desc(&s->sbuf_desc, b->in, in, b->in_mr);
    desc(&s->rbuf_desc, b->out, out, b->out_mr);
    s->sbuf_desc.mem_type = s->rbuf_desc.mem_type = SHARP_MEM_TYPE_HOST;
    s->aggr_mode = SHARP_AGGREGATION_NONE;
    s->length = length;
    s->dtype = t;
    s->op = op;
}

static void allreduce(struct sharp_coll_comm *c, const struct bufs *b, enum sharp_datatype t,
                      enum sharp_reduce_op op, size_t n)
{
    struct sharp_coll_reduce_spec s;
    void *req;

    fill(b->in, 0, n, t, op);
    reduce_desc(&s, b, n * bytes_of(t), n * bytes_of(t), t, op, n);
    must(!sharp_coll_do_allreduce_nb(c, &s, &req), "allreduce of type %d, operation %d", t, op);
    memset(&s, 0xa5, sizeof(s));
    finish(req, "allreduce");
    for (size_t i = 0; i < n; i++)
        expect(b->out, i, t, reduced(size, i, op), "allreduce");
}

static void reduce(struct sharp_coll_comm *c, enum sharp_datatype t, size_t n, int root)
{
    struct bufs b = {room(n * 8), room(n * 8), NULL, NULL};
    struct sharp_coll_reduce_spec s;

    fill(b.in, 0, n, t, SHARP_OP_SUM);
    reduce_desc(&s, &b, n * bytes_of(t), n * bytes_of(t), t, SHARP_OP_SUM, n);
    s.root = root;
    must(!sharp_coll_do_reduce(c, &s), "reduce");
    for (size_t i = 0; rank == root && i < n; i++)
        expect(b.out, i, t, reduced(size, i, SHARP_OP_SUM), "reduce");
    checked++;
    free(b.in);
    free(b.out);
}

static void bcast(struct sharp_coll_comm *c, size_t bytes, int root)
{
    uint8_t *buf = room(bytes);
    struct sharp_coll_bcast_spec s;
    void *req;

    fill(buf, 0, bytes, SHARP_DTYPE_UINT8, SHARP_OP_SUM);
    memset(&s, 0xa5, sizeof(s));
    s.size = bytes;
    s.root = root;
    desc(&s.buf_desc, buf, bytes, NULL);
    s.buf_desc.mem_type = SHARP_MEM_TYPE_HOST;
    must(!sharp_coll_do_bcast_nb(c, &s, &req), "bcast");
    finish(req, "bcast");
    for (size_t i = 0; i < bytes; i++)
        must(buf[i] == input(root, i, SHARP_OP_SUM), "bcast of %zu bytes: byte %zu", bytes, i);
    must(buf[bytes] == 0x5a, "no byte behind the buffer");
    free(buf);
}

/* ---- reduce-scatter ---- */

/* UCC: elements per rank as length, offset 0. in_place: 0 no; 1 as UCC has it; 2 as MPI and NCCL. */
static void rs_ucc(struct sharp_coll_comm *c, enum sharp_datatype t, size_t n, int in_place)
{
    size_t e = bytes_of(t), all = n * (size_t)size, first = n * (size_t)rank, count = n;
    struct bufs b = {room(all * e), room(n * e), NULL, NULL};
    struct sharp_coll_reduce_spec s;
    void *req, *got = b.out, *spare = b.out;

    if (in_place == 1) { /* a vector of n elements */
        size_t each = n / (size_t)size, more = n % (size_t)size, r = (size_t)rank;

        first = r * each + (r < more ? r : more);
        count = each + (r < more);
        b.out = b.in;
        all = n;
        got = (char *)b.in + first * e;
    } else if (in_place == 2) {
        got = b.out = (char *)b.in + first * e;
    }
    fill(b.in, 0, all, t, SHARP_OP_MAX);
    reduce_desc(&s, &b, n * (size_t)size * e, n * e, t, SHARP_OP_MAX, n);
    s.offset = 0;
    must(!sharp_coll_do_reduce_scatter_nb(c, &s, &req), "reduce_scatter");
    finish(req, "reduce_scatter");
    for (size_t i = 0; i < count; i++)
        expect(got, i, t, reduced(size, first + i, SHARP_OP_MAX), "reduce_scatter");
    free(spare);
    free(b.in);
}

/* The plug-in: windows of `step` elements, one after the other, several under way. A window's buffer is
 * NCCL's own. in_place: the last part, from where it lies in the user's buffer. */
static void rs_windows(struct sharp_coll_comm *c, struct sharp_coll_context *ctx,
                       enum sharp_datatype t, size_t n, size_t step)
{
    size_t e = bytes_of(t), all = n * (size_t)size, own = n * (size_t)rank;
    struct bufs b = {room(all * e), room(n * e), NULL, NULL};
    char *in = b.in, *out = b.out;
    void *req[N] = {NULL};
    unsigned k = 0;

    must(!sharp_coll_reg_mr(ctx, in, all * e, &b.in_mr), "reg");
    must(!sharp_coll_reg_mr(ctx, out, n * e, &b.out_mr), "reg");
    fill(in, 0, all, t, SHARP_OP_SUM);
    for (size_t at = 0; at < all; at += step, k = (k + 1) % N) {
        size_t count = all - at < step ? all - at : step;
        struct sharp_coll_reduce_spec s;

        if (req[k])
            finish(req[k], "window");
        b.in = in + at * e;
        b.out = out + (at > own && at < own + n ? at - own : 0) * e;
        reduce_desc(&s, &b, count * e, n * e, t, SHARP_OP_SUM, count);
        s.offset = at * e;
        must(!sharp_coll_do_reduce_scatter_nb(c, &s, &req[k]), "window");
    }
    for (unsigned i = 0; i < N; i++)
        if (req[i])
            finish(req[i], "window");
    for (size_t i = 0; i < n; i++)
        expect(out, i, t, reduced(size, own + i, SHARP_OP_SUM), "reduce_scatter by windows");
    must((uint8_t)out[n * e] == 0x5a, "no byte behind the buffer");
    must(!sharp_coll_dereg_mr(ctx, b.out_mr) && !sharp_coll_dereg_mr(ctx, b.in_mr), "dereg");
    free(in);
    free(out);
}

/* NCCL in place: `length` counts the window. */
static void rs_nccl_in_place(struct sharp_coll_comm *c, size_t n)
{
    uint32_t *v = room(n * (size_t)size * 4);
    struct bufs b = {v, v + n * (size_t)rank, NULL, NULL};
    struct sharp_coll_reduce_spec s;
    void *req;

    fill(v, 0, n * (size_t)size, SHARP_DTYPE_UNSIGNED, SHARP_OP_SUM);
    reduce_desc(&s, &b, n * (size_t)size * 4, n * 4, SHARP_DTYPE_UNSIGNED, SHARP_OP_SUM,
                n * (size_t)size);
    s.offset = 0;
    must(!sharp_coll_do_reduce_scatter_nb(c, &s, &req), "reduce_scatter in place");
    finish(req, "reduce_scatter in place");
    for (size_t i = 0; i < n; i++)
        expect(b.out, i, SHARP_DTYPE_UNSIGNED, reduced(size, n * (size_t)rank + i, SHARP_OP_SUM),
               "reduce_scatter in place");
    free(v);
}

/* ---- all-gather ---- */

static void ag_check(const uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n * (size_t)size; i++)
        must(out[i] == input((int)(i / n), i % n, SHARP_OP_SUM), "allgather: byte %zu", i);
    must(out[n * (size_t)size] == 0x5a, "no byte behind the buffer");
}

static void gather_desc(struct sharp_coll_gather_spec *s, void *in, size_t n, void *out,
                        size_t bytes, size_t offset)
{
    memset(s, 0xa5, sizeof(*s));
    desc(&s->sbuf_desc, in, n, NULL);
    desc(&s->rbuf_desc, out, bytes, NULL);
    s->dtype = SHARP_DTYPE_INT8;
    s->offset = offset;
}

static void ag_ucc(struct sharp_coll_comm *c, size_t n, bool in_place)
{
    uint8_t *out = room(n * (size_t)size), *in = room(n),
            *from = in_place ? out + n * (size_t)rank : in;
    struct sharp_coll_gather_spec s;
    void *req;

    fill(from, 0, n, SHARP_DTYPE_UINT8, SHARP_OP_SUM);
    gather_desc(&s, from, n, out, n * (size_t)size, 0);
    s.sbuf_desc.mem_type = s.rbuf_desc.mem_type = SHARP_MEM_TYPE_HOST;
    must(!sharp_coll_do_allgather_nb(c, &s, &req), "allgather");
    finish(req, "allgather");
    ag_check(out, n);
    free(in);
    free(out);
}

/* Windows; in_place: the rank's block is where it belongs from the start. */
static void ag_windows(struct sharp_coll_comm *c, size_t n, size_t step, bool in_place)
{
    size_t all = n * (size_t)size, own = n * (size_t)rank;
    uint8_t *out = room(all), *in = room(n), *from = in_place ? out + own : in;
    void *req[N] = {NULL};
    unsigned k = 0;

    fill(from, 0, n, SHARP_DTYPE_UINT8, SHARP_OP_SUM);
    for (size_t at = 0; at < all; at += step, k = (k + 1) % N) {
        size_t bytes = all - at < step ? all - at : step;
        struct sharp_coll_gather_spec s;

        if (req[k])
            finish(req[k], "window");
        gather_desc(&s, from + (at > own && at < own + n ? at - own : 0), n, out + at, bytes, at);
        s.size = bytes;
        must(!sharp_coll_do_allgather_nb(c, &s, &req[k]), "window");
    }
    for (unsigned i = 0; i < N; i++)
        if (req[i])
            finish(req[i], "window");
    ag_check(out, n);
    free(in);
    free(out);
}

/* ---- all of it ---- */

static void every_type(struct sharp_coll_comm *c, struct sharp_coll_context *ctx)
{
    size_t n = 1003;
    struct bufs b = {room(n * 8), room(n * 8), NULL, NULL};
    unsigned k = 0;

    must(!sharp_coll_reg_mr(ctx, b.in, n * 8, &b.in_mr), "reg");
    for (enum sharp_datatype t = 0; t < SHARP_DTYPE_NULL; t++)
        for (enum sharp_reduce_op op = 0; op < SHARP_OP_MAXLOC; op++, k++) {
            struct bufs same = {b.in, b.in, k % 2 ? b.in_mr : NULL, NULL};
            bool bits = op >= SHARP_OP_LAND && op <= SHARP_OP_BXOR;

            if (!(caps.support_mask.dtypes >> t & 1) || !(caps.support_mask.reduce_ops >> op & 1) ||
                (is_float(t) && bits))
                continue;
            allreduce(c, k % 3 ? &b : &same, t, op, k % 5 ? 33 : n);
        }
    must(!sharp_coll_dereg_mr(ctx, b.in_mr), "dereg");
    free(b.in);
    free(b.out);
}

/* A value and an int32 index; words: `length` counts both, as UCC does, or pairs. */
static void pairs(struct sharp_coll_comm *c, enum sharp_datatype t, enum sharp_reduce_op op,
                  bool words)
{
    size_t n = 99;
    struct bufs b = {room(n * 8), room(n * 8), NULL, NULL};
    struct sharp_coll_reduce_spec s;
    void *req;

    for (size_t i = 0; i < n; i++) {
        set(b.in, 2 * i, t, input(rank, i, SHARP_OP_SUM));
        set(b.in, 2 * i + 1, SHARP_DTYPE_INT, (unsigned)rank);
    }
    reduce_desc(&s, &b, n * 8, n * 8, t, op, words ? 2 * n : n);
    must(!sharp_coll_do_allreduce_nb(c, &s, &req), "pairs");
    finish(req, "pairs");
    for (size_t i = 0; i < n; i++) {
        bool greatest = op == SHARP_OP_MAXLOC;
        unsigned v = reduced(size, i, greatest ? SHARP_OP_MAX : SHARP_OP_MIN);
        int who = 0;

        while (input(who, i, SHARP_OP_SUM) != v)
            who++;
        expect(b.out, 2 * i, t, v, "pairs");
        expect(b.out, 2 * i + 1, SHARP_DTYPE_INT, (unsigned)who, "pairs");
    }
    free(b.in);
    free(b.out);
}

static void one_comm(struct sharp_coll_comm *c, struct sharp_coll_context *ctx)
{
    void *req;

    must(!sharp_coll_do_barrier_nb(c, &req), "barrier");
    finish(req, "barrier");
    must(!sharp_coll_do_barrier(c), "barrier");
    every_type(c, ctx);
    for (int k = 0; k < 4; k++)
        pairs(c, k & 1 ? SHARP_DTYPE_INT : SHARP_DTYPE_FLOAT,
              k & 2 ? SHARP_OP_MAXLOC : SHARP_OP_MINLOC, k == 1 || k == 2);
    reduce(c, SHARP_DTYPE_DOUBLE, 777, size - 1);
    bcast(c, 1, 0);
    bcast(c, 4097, size - 1);
    for (int in_place = 0; in_place < 3; in_place++) {
        rs_ucc(c, SHARP_DTYPE_INT, 1000, in_place);
        rs_ucc(c, SHARP_DTYPE_FLOAT_SHORT, 35, in_place); /* not a multiple of the ranks */
    }
    rs_nccl_in_place(c, 500);
    rs_windows(c, ctx, SHARP_DTYPE_FLOAT, 1024, 1024);  /* a block each */
    rs_windows(c, ctx, SHARP_DTYPE_FLOAT, 1024, 700);   /* over blocks */
    rs_windows(c, ctx, SHARP_DTYPE_BFLOAT16, 300, 777); /* several blocks */
    ag_ucc(c, 2048, false);
    ag_ucc(c, 77, true);
    ag_windows(c, 1000, 1000, false);
    ag_windows(c, 1000, 613, true);
    ag_windows(c, 333, 1500, false);
}

/* Half of the ranks wait for one communicator's operation first, half for the other's. */
static void crossed(struct sharp_coll_comm *a, struct sharp_coll_comm *b)
{
    struct sharp_coll_reduce_spec s;
    uint64_t *v = room(40000 * 8), *w = room(40000 * 8);
    void *ra, *rb;

    fill(v, 0, 40000, SHARP_DTYPE_LONG, SHARP_OP_SUM);
    fill(w, 0, 40000, SHARP_DTYPE_LONG, SHARP_OP_MAX);
    reduce_desc(&s, &(struct bufs){v, v, NULL, NULL}, 320000, 320000, SHARP_DTYPE_LONG,
                SHARP_OP_SUM, 40000);
    must(!sharp_coll_do_allreduce_nb(a, &s, &ra), "a");
    reduce_desc(&s, &(struct bufs){w, w, NULL, NULL}, 320000, 320000, SHARP_DTYPE_LONG,
                SHARP_OP_MAX, 40000);
    must(!sharp_coll_do_allreduce_nb(b, &s, &rb), "b");
    must(!sharp_coll_req_wait(rank % 2 ? ra : rb), "the one");
    must(!sharp_coll_req_wait(rank % 2 ? rb : ra), "the other");
    for (size_t i = 0; i < 40000; i++) {
        expect(v, i, SHARP_DTYPE_LONG, reduced(size, i, SHARP_OP_SUM), "a");
        expect(w, i, SHARP_DTYPE_LONG, reduced(size, i, SHARP_OP_MAX), "b");
    }
    checked += 2;
    free(v);
    free(w);
}

static void *loop(void *arg)
{
    struct bufs b = {room(3000 * 4), room(3000 * 4), NULL, NULL};
    struct sharp_coll_reduce_spec s;

    for (unsigned k = 0; k < 10; k++) {
        fill(b.in, 0, 3000, SHARP_DTYPE_INT, SHARP_OP_SUM);
        reduce_desc(&s, &b, 12000, 12000, SHARP_DTYPE_INT, SHARP_OP_SUM, 3000);
        must(!sharp_coll_do_allreduce(arg, &s), "by a thread");
        for (size_t i = 0; i < 3000; i++)
            expect(b.out, i, SHARP_DTYPE_INT, reduced(size, i, SHARP_OP_SUM), "by a thread");
    }
    free(b.in);
    free(b.out);
    return NULL;
}

/* Twice, in two contexts, page by page, and while an operation runs. */
static void memory(struct sharp_coll_context *a, struct sharp_coll_context *b,
                   struct sharp_coll_comm *c)
{
    struct sharp_coll_reg_params params = {SHARP_COLL_REG_FIELD_DMABUF_FD, -1, 0xa5a5};
    void *page, *mr[4], *req;
    struct sharp_coll_reduce_spec s;
    uint32_t *v;

    must(!posix_memalign(&page, 4096, 3 * 4096), "memory");
    v = page;
    must(!sharp_coll_reg_mr(a, page, 4096, &mr[0]) && !sharp_coll_reg_mr(a, page, 4096, &mr[1]),
         "twice");
    must(!sharp_coll_reg_mr(b, page, 4096, &mr[2]), "in another context");
    must(!sharp_coll_reg_mr_v2(a, page, 3 * 4096, &params, &mr[3]), "longer");
    for (unsigned k = 0; k < 4; k++) {
        struct bufs buf = {v + 8, v + 8, NULL, k == 2 ? NULL : mr[k]};

        fill(v + 8, 0, 64, SHARP_DTYPE_INT, SHARP_OP_SUM);
        reduce_desc(&s, &buf, 256, 256, SHARP_DTYPE_INT, SHARP_OP_SUM, 64);
        must(!sharp_coll_do_allreduce_nb(c, &s, &req), "with a handle");
        finish(req, "with a handle");
        expect(v + 8, 63, SHARP_DTYPE_INT, reduced(size, 63, SHARP_OP_SUM), "with a handle");
        must(!sharp_coll_dereg_mr(k == 2 ? b : a, mr[k]), "dereg");
        must(sharp_coll_dereg_mr(k == 2 ? b : a, mr[k]) == SHARP_COLL_EINVAL, "dereg twice");
    }
    free(page);
}

static int see_a_death(struct sharp_coll_comm *c, int who)
{
    struct bufs b = {room(400000), room(400000), NULL, NULL};
    struct sharp_coll_reduce_spec s;
    int rc = 0;

    for (unsigned k = 0; !rc && k < 1000; k++) {
        if (k == 2 && rank == who)
            raise(SIGKILL);
        fill(b.in, 0, 100000, SHARP_DTYPE_INT, SHARP_OP_SUM);
        reduce_desc(&s, &b, 400000, 400000, SHARP_DTYPE_INT, SHARP_OP_SUM, 100000);
        rc = sharp_coll_do_allreduce(c, &s);
    }
    printf("rank %d: %d, %s\n", rank, rc, sharp_coll_strerror(rc));
    return rc == SHARP_COLL_ERROR ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct sharp_coll_context *ctx, *other;
    struct sharp_coll_comm *a, *b, *c;
    struct trib_store *store;
    struct trib_oob oob;
    char err[TRIB_TEXT];
    pthread_t thread;

    if (argc != 4 && argc != 6)
        return fprintf(stderr, "usage: sharp_check ADDRESS:PORT RANK SIZE [die RANK]\n"), 2;
    rank = atoi(argv[2]);
    size = atoi(argv[3]);
    must(!trib_store_open(&store, argv[1], (uint32_t)rank, (uint32_t)size, 30, err), "%s", err);
    trib_store_oob(store, &oob);
    must(!open_context(&ctx, &oob, 1), "init");
    must(!sharp_coll_caps_query(ctx, &caps), "caps");
    must(caps.support_mask.feature_mask & SHARP_FEATURE_SAT, "streaming");
    must(!open_comm(ctx, &oob, &a), "comm_init");
    if (argc == 6)
        return see_a_death(a, atoi(argv[5]));
    one_comm(a, ctx);
    must(!open_comm(ctx, &oob, &b), "a second communicator");
    crossed(a, b);
    must(!open_context(&other, &oob, 2) && !open_comm(other, &oob, &c), "a second context");
    must(!pthread_create(&thread, NULL, loop, b), "thread");
    loop(c);
    pthread_join(thread, NULL);
    memory(ctx, other, a);
    must(!sharp_coll_comm_destroy(a), "destroy");
    crossed(b, c);
    must(!sharp_coll_comm_destroy(c) && !sharp_coll_finalize(other), "the plug-in's order");
    must(!sharp_coll_comm_destroy(b) && !sharp_coll_finalize(ctx), "UCC's order");
    trib_store_close(store);
    printf("rank %d: %u operations exact\n", rank, checked);
    return 0;
}
