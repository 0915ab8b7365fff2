/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Garbage for SHARP's interface: each call is refused by the number that fits, nothing crashes, and the
 * communicator still works.
 * usage: sharp_bad ADDRESS:PORT RANK SIZE [job|oob|comm|hidden|many]. With job, ranks name different jobs; with oob, an
 * out-of-band call fails at the last rank; with comm, it only prints what sharp_coll_init and _comm_init say.
 */
#include "sharp_job.h"

#include <unistd.h>

#define is(call, status)                                                                           \
    do {                                                                                           \
        int is_ = (call);                                                                          \
        must(is_ == SHARP_COLL_##status, "%s, not %d (%s)", #status, is_,                          \
             sharp_coll_strerror(is_));                                                            \
        checked++;                                                                                 \
    } while (0)

static uint32_t v[64], w[64];

static struct sharp_coll_reduce_spec good(void)
{
    struct sharp_coll_reduce_spec s;

    memset(&s, 0xa5, sizeof(s));
    s.sbuf_desc.type = s.rbuf_desc.type = SHARP_DATA_BUFFER;
    s.sbuf_desc.mem_type = s.rbuf_desc.mem_type = SHARP_MEM_TYPE_HOST;
    s.sbuf_desc.buffer.ptr = v;
    s.rbuf_desc.buffer.ptr = w;
    s.sbuf_desc.buffer.length = s.rbuf_desc.buffer.length = sizeof(v);
    s.sbuf_desc.buffer.mem_handle = s.rbuf_desc.buffer.mem_handle = NULL;
    s.aggr_mode = SHARP_AGGREGATION_NONE;
    s.dtype = SHARP_DTYPE_UNSIGNED;
    s.op = SHARP_OP_SUM;
    s.length = 64;
    return s;
}

static void nothing(void)
{
    struct sharp_coll_context *ctx = (void *)1;
    struct sharp_coll_init_spec spec = {0};
    struct sharp_coll_caps caps;
    void *mr = (void *)1, *req = (void *)1;
    int odd;

    is(sharp_coll_init(NULL, &ctx), EINVAL);
    must(!ctx, "no context");
    is(sharp_coll_init(&spec, NULL), EINVAL);
    is(sharp_coll_init(&spec, &ctx), EINVAL); /* 0 of 0 */
    spec.world_size = 1;
    is(sharp_coll_init(&spec, &ctx), EINVAL); /* no calls */
    is(sharp_coll_finalize(NULL), EINVAL);
    is(sharp_coll_finalize((void *)&odd), EINVAL);
    is(sharp_coll_progress(NULL), EINVAL);
    is(sharp_coll_caps_query(NULL, &caps), EINVAL);
    is(sharp_coll_dump_stats((void *)&odd), EINVAL);
    is(sharp_coll_comm_init(NULL, NULL, NULL), EINVAL);
    is(sharp_coll_comm_destroy(NULL), EINVAL);
    is(sharp_coll_comm_destroy((void *)&odd), EINVAL);
    is(sharp_coll_reg_mr(NULL, v, 4, &mr), EINVAL);
    must(!mr, "no handle");
    is(sharp_coll_dereg_mr(NULL, &odd), EINVAL);
    is(sharp_coll_do_barrier(NULL), EINVAL);
    is(sharp_coll_do_barrier_nb(NULL, &req), EINVAL);
    must(!req, "no request");
    is(sharp_coll_do_allreduce(NULL, NULL), EINVAL);
    must(sharp_coll_req_test(NULL) && sharp_coll_req_test(&odd), "what is no request has ended");
    is(sharp_coll_req_free(NULL), SUCCESS);
    is(sharp_coll_req_free(&odd), EINVAL);
    is(sharp_coll_req_wait(NULL), SUCCESS);
    is(sharp_coll_req_wait(&odd), EINVAL);
    is(sharp_coll_print_config(NULL, SHARP_COLL_CONFIG_PRINT_CONFIG, NULL), EINVAL);
    for (int status = -40; status < 40; status++)
        must(*sharp_coll_strerror(status), "a text for %d", status);
}

static void memory(struct sharp_coll_context *ctx)
{
    struct sharp_coll_reg_params p = {SHARP_COLL_REG_FIELD_DMABUF_FD, 0, 0};
    void *mr = (void *)1;

    is(sharp_coll_reg_mr(ctx, NULL, 4, &mr), EINVAL);
    is(sharp_coll_reg_mr(ctx, v, SIZE_MAX, &mr), EINVAL);
    is(sharp_coll_reg_mr(ctx, v, 4, NULL), EINVAL);
    is(sharp_coll_reg_mr_v2(ctx, v, 4, NULL, &mr), EINVAL);
    is(sharp_coll_reg_mr_v2(ctx, v, 4, &p, &mr), ENOT_SUPP);
    p.field_mask = 4;
    is(sharp_coll_reg_mr_v2(ctx, v, 4, &p, &mr), ENOT_SUPP);
    must(!mr, "no handle");
    is(sharp_coll_dereg_mr(ctx, v), EINVAL);
}

#define refused(status, change)                                                                    \
    do {                                                                                           \
        struct sharp_coll_reduce_spec s = good();                                                  \
        change;                                                                                    \
        is(sharp_coll_do_allreduce_nb(c, &s, &req), status);                                       \
        must(!req, "no request");                                                                  \
    } while (0)

static void reductions(struct sharp_coll_context *ctx, struct sharp_coll_comm *c)
{
    void *req = NULL, *mr;

    is(sharp_coll_do_allreduce_nb(c, NULL, &req), EINVAL);
    is(sharp_coll_do_allreduce_nb(c, &(struct sharp_coll_reduce_spec){0}, NULL), EINVAL);
    refused(EINVAL, s.dtype = SHARP_DTYPE_NULL);
    refused(EINVAL, s.dtype = (enum sharp_datatype)0xffff);
    refused(EINVAL, s.dtype = (enum sharp_datatype) - 1);
    refused(EINVAL, s.op = SHARP_OP_NULL);
    refused(EINVAL, s.op = (enum sharp_reduce_op) - 5);
    refused(EINVAL, s.aggr_mode = (enum sharp_aggregation_mode)7);
    refused(ENOT_SUPP, s.dtype = SHARP_DTYPE_FLOAT; s.op = SHARP_OP_BAND);
    refused(ENOT_SUPP, s.sbuf_desc.type = SHARP_DATA_IOV);
    refused(EINVAL, s.rbuf_desc.type = (enum sharp_data_buffer_type)9);
    refused(ENOT_SUPP, s.rbuf_desc.mem_type = SHARP_MEM_TYPE_CUDA);
    refused(EINVAL, s.sbuf_desc.mem_type = SHARP_MEM_TYPE_LAST);
    refused(EINVAL, s.length = 65);
    refused(EINVAL, s.length = SIZE_MAX / 2);
    refused(EINVAL, s.sbuf_desc.buffer.ptr = NULL);
    refused(EINVAL, s.rbuf_desc.buffer.ptr = NULL);
    refused(EINVAL, s.rbuf_desc.buffer.ptr = v + 1);
    refused(EINVAL, s.sbuf_desc.buffer.mem_handle = v);
    must(!sharp_coll_reg_mr(ctx, v, sizeof(v) / 2, &mr), "reg");
    refused(EINVAL, s.sbuf_desc.buffer.mem_handle = mr);
    is(sharp_coll_dereg_mr(ctx, mr), SUCCESS);
    for (int root = -1; root <= size; root += size + 1) {
        struct sharp_coll_reduce_spec s = good();
        struct sharp_coll_bcast_spec b = {.root = root, .buf_desc = s.sbuf_desc, .size = 4};

        s.root = root;
        is(sharp_coll_do_reduce(c, &s), EINVAL);
        is(sharp_coll_do_bcast(c, &b), EINVAL);
        b.root = 0;
        b.size = sizeof(v) + 1;
        is(sharp_coll_do_bcast(c, &b), EINVAL);
    }
}

/* block, offset, bytes of a window. */
static int scatter(struct sharp_coll_comm *c, size_t block, size_t offset, size_t bytes)
{
    struct sharp_coll_reduce_spec s = good();

    s.rbuf_desc.buffer.length = block;
    s.sbuf_desc.buffer.length = bytes;
    s.offset = offset;
    return sharp_coll_do_reduce_scatter(c, &s);
}

static int gather(struct sharp_coll_comm *c, size_t block, size_t offset, size_t bytes)
{
    struct sharp_coll_reduce_spec s = good();
    struct sharp_coll_gather_spec g = {.sbuf_desc = s.sbuf_desc, .rbuf_desc = s.rbuf_desc};

    g.sbuf_desc.buffer.length = block;
    g.rbuf_desc.buffer.length = bytes;
    g.offset = offset;
    return sharp_coll_do_allgather(c, &g);
}

static void windows(struct sharp_coll_comm *c)
{
    struct sharp_coll_reduce_spec s = good();
    struct sharp_coll_gather_spec g = {.sbuf_desc = s.sbuf_desc, .rbuf_desc = s.rbuf_desc};

    is(scatter(c, 8, 8 * (size_t)size, 4), EINVAL);
    is(scatter(c, 8, 4, 8 * (size_t)size), EINVAL);
    is(scatter(c, 8, 2, 8), EINVAL);
    is(scatter(c, 6, 0, 8), EINVAL);
    is(scatter(c, 8, 0, 7), EINVAL);
    is(scatter(c, SIZE_MAX / 4 * 2, 0, 8), EINVAL);
    is(scatter(c, 8, SIZE_MAX - 3, 8), EINVAL);
    is(scatter(c, 8, 0, 0), SUCCESS);
    is(gather(c, 8, 1, 8 * (size_t)size), EINVAL);
    is(gather(c, SIZE_MAX, 0, 8), EINVAL);
    is(gather(c, 8, SIZE_MAX, 1), EINVAL);
    is(gather(c, 8, 8 * (size_t)size, 0), SUCCESS);
    /* Not the host's memory, as far as the caller says, and nothing is there. */
    g.sbuf_desc.mem_type = SHARP_MEM_TYPE_CUDA;
    g.sbuf_desc.buffer.ptr = (void *)4096;
    g.sbuf_desc.buffer.length = 4;
    g.rbuf_desc.buffer.length = 4 * (size_t)size;
    g.offset = 0;
    is(sharp_coll_do_allgather(c, &g), ENOT_SUPP);
}

/* Requests outlive their communicator, which other ranks have left to itself. */
static void last_things(struct sharp_coll_context *ctx, struct sharp_coll_comm *c,
                        struct trib_oob *oob)
{
    struct sharp_coll_reduce_spec s = good();
    void *req, *freed;

    s.length = 4;
    memset(v, 0, sizeof(v));
    v[0] = 1;
    is(sharp_coll_do_allreduce(c, &s), SUCCESS);
    must(w[0] == (unsigned)size, "a sum after all refusals, not %u", w[0]);
    is(sharp_coll_do_allreduce_nb(c, &s, &req), SUCCESS);
    is(sharp_coll_do_allreduce_nb(c, &s, &freed), SUCCESS);
    is(sharp_coll_req_free(freed), SUCCESS);
    is(sharp_coll_req_free(freed), EINVAL);
    must(!oob_barrier(oob), "all have started");
    is(sharp_coll_comm_destroy(c), SUCCESS);
    must(sharp_coll_req_test(req), "ended with its communicator");
    is(sharp_coll_req_free(req), SUCCESS);
    is(sharp_coll_req_free(req), EINVAL);
    is(sharp_coll_do_barrier(c), EINVAL);
    is(sharp_coll_comm_destroy(c), EINVAL);
    must(!sharp_coll_reg_mr(ctx, v, 4, &req), "reg");
    is(sharp_coll_finalize(ctx), SUCCESS);
    is(sharp_coll_dereg_mr(ctx, req), EINVAL);
    is(sharp_coll_finalize(ctx), EINVAL);
}

static void comm_specs(struct sharp_coll_context *ctx)
{
    struct sharp_coll_comm_init_spec s = {.rank = 0, .size = size + 1};
    struct sharp_coll_comm *c = (void *)1;

    is(sharp_coll_comm_init(ctx, &s, &c), EINVAL);
    must(!c, "no communicator");
    s.size = -1;
    is(sharp_coll_comm_init(ctx, &s, &c), EINVAL);
    s.size = 1;
    s.rank = 1;
    is(sharp_coll_comm_init(ctx, &s, &c), EINVAL);
}

static bool broken;
static struct trib_oob real;
static int broken_gather(void *ctx, uint32_t root, const void *mine, void *all, size_t bytes)
{
    int rc = real.gather(ctx, root, mine, all, bytes);

    return broken ? 1 : rc;
}

#define TEAMS    16
#define ELEMENTS 30000u

/* A sum that is longer than every window. */
static void reduce_long(struct sharp_coll_comm *c, uint32_t salt)
{
    static uint32_t in[ELEMENTS], out[ELEMENTS];
    struct sharp_coll_reduce_spec s = good();
    uint32_t ranks = (uint32_t)size;

    for (uint32_t i = 0; i < ELEMENTS; i++)
        in[i] = i * salt + (uint32_t)rank;
    memset(out, 0xff, sizeof(out));
    s.sbuf_desc.buffer.ptr = in;
    s.rbuf_desc.buffer.ptr = out;
    s.sbuf_desc.buffer.length = s.rbuf_desc.buffer.length = sizeof(in);
    s.length = ELEMENTS;
    must(!sharp_coll_do_allreduce(c, &s), "a sum of communicator %u", salt);
    for (uint32_t i = 0; i < ELEMENTS; i++)
        must(out[i] == i * salt * ranks + ranks * (ranks - 1) / 2, "sum %u of communicator %u", i,
             salt);
}

/* As UCC's teams: all of all ranks, at the same time; each works, the first ones last of all, when
 * others have ended. */
static void many(struct sharp_coll_context *ctx, struct trib_oob *oob)
{
    struct sharp_coll_comm *c[TEAMS];
    unsigned n = 0;

    while (n < TEAMS && !open_comm(ctx, oob, &c[n]))
        n++;
    for (uint32_t round = 1; round < 3; round++)
        for (unsigned i = 0; i < n; i++)
            reduce_long(c[i], i + round);
    printf("rank %d: %u communicators more\n", rank, n);
    while (n-- > 0) {
        reduce_long(c[n], n + 1);
        must(!sharp_coll_comm_destroy(c[n]), "destroy");
    }
}

int main(int argc, char **argv)
{
    struct sharp_coll_context *ctx = NULL;
    struct sharp_coll_comm *c = NULL;
    struct trib_store *store;
    struct trib_oob oob;
    char err[TRIB_TEXT];
    const char *mode = argc == 5 ? argv[4] : "";
    int rc;

    if (argc != 4 && argc != 5)
        return fprintf(stderr, "usage: sharp_bad ADDRESS:PORT RANK SIZE [job|oob|comm]\n"), 2;
    rank = atoi(argv[2]);
    size = atoi(argv[3]);
    if (!*mode)
        nothing();
    must(!trib_store_open(&store, argv[1], (uint32_t)rank, (uint32_t)size, 30, err), "%s", err);
    trib_store_oob(store, &oob);
    real = oob;
    oob.gather = broken_gather;
    job_flags = strcmp(mode, "hidden") ? 0 : SHARP_COLL_HIDE_ERRORS;
    rc = open_context(&ctx, &oob, !strcmp(mode, "job") ? (uint64_t)rank : 7);
    broken = !strcmp(mode, "oob") && rank == size - 1;
    if (!rc && *mode)
        rc = open_comm(ctx, &oob, &c);
    if (!strcmp(mode, "many"))
        many(ctx, &oob);
    if (*mode) {
        printf("rank %d: %d, %s\n", rank, rc, sharp_coll_strerror(rc));
        must(!c || !sharp_coll_comm_destroy(c), "destroy");
        must(!ctx || !sharp_coll_finalize(ctx), "finalize");
        return 0;
    }
    must(!rc, "init");
    comm_specs(ctx);
    must(!open_comm(ctx, &oob, &c), "comm_init");
    memory(ctx);
    reductions(ctx, c);
    windows(c);
    last_things(ctx, c, &oob);
    trib_store_close(store);
    printf("rank %d: %u refusals\n", rank, checked);
    return 0;
}
