/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The collectives. Whether one runs on the fabric depends only on values that are equal at all
 * ranks (the reduction, its type, lengths in bytes), so all decide alike. Data that is only moved
 * is sent as bytes, packed if a rank's type has gaps.
 */
#include "plugins/openmpi/coll_trib.h"

#include <opal/datatype/opal_datatype_internal.h>
#include <errno.h>
#include <opal/runtime/opal_progress.h>
#include <opal/util/output.h>
#include <stdlib.h>
#include <string.h>

/* Waits for an operation whose start returned rc. The program's point-to-point messages make
 * progress meanwhile. */
static int coll_trib_ops_finish(struct coll_trib_module *m, int rc, struct trib_request **at)
{
    struct trib_request *req = *at;

    while (!rc && !(rc = trib_test(req)))
        opal_progress();
    if (rc != 1)
        opal_output(0, "coll:trib: communicator %s: %s", m->mpi->c_name,
                    req ? trib_comm_error(m->comm) : m->err);
    trib_free(req);
    return rc == 1 ? OMPI_SUCCESS : rc == -ENOMEM ? OMPI_ERR_OUT_OF_RESOURCE : OMPI_ERROR;
}

/* ---- types and reductions ---- */

static bool is_bool(const ompi_datatype_t *dt)
{
    return dt->super.id == OPAL_DATATYPE_BOOL && dt->super.size == 1;
}

/* Converts a datatype: pairs by name, as their layout is that of C; others by their basic type. */
static int type_of(const ompi_datatype_t *dt)
{
    static const int8_t types[OPAL_DATATYPE_MAX_PREDEFINED] = {
        [OPAL_DATATYPE_INT1] = 1 + TRIB_INT8,      [OPAL_DATATYPE_UINT1] = 1 + TRIB_UINT8,
        [OPAL_DATATYPE_INT2] = 1 + TRIB_INT16,     [OPAL_DATATYPE_UINT2] = 1 + TRIB_UINT16,
        [OPAL_DATATYPE_INT4] = 1 + TRIB_INT32,     [OPAL_DATATYPE_UINT4] = 1 + TRIB_UINT32,
        [OPAL_DATATYPE_INT8] = 1 + TRIB_INT64,     [OPAL_DATATYPE_UINT8] = 1 + TRIB_UINT64,
        [OPAL_DATATYPE_FLOAT2] = 1 + TRIB_FLOAT16, [OPAL_DATATYPE_FLOAT4] = 1 + TRIB_FLOAT32,
        [OPAL_DATATYPE_FLOAT8] = 1 + TRIB_FLOAT64, [OPAL_DATATYPE_BOOL] = 1 + TRIB_UINT8,
        [OPAL_DATATYPE_LONG] = 1 + TRIB_INT64,     [OPAL_DATATYPE_UNSIGNED_LONG] = 1 + TRIB_UINT64,
    };
    int t;

    if (dt == MPI_FLOAT_INT)
        return TRIB_FLOAT32_LOC;
    if (dt == MPI_2INT)
        return TRIB_INT32_LOC;
    if (!ompi_datatype_is_predefined(dt) || dt->super.id >= OPAL_DATATYPE_MAX_PREDEFINED)
        return -1;
    t = types[dt->super.id] - 1;
    return t >= 0 && trib_size((enum trib_type)t) == dt->super.size ? t : -1;
}

/* The kind of data that a reduction accepts. */
enum mpi_kind { NUMBERS, BITS, TRUTH, PAIRS };

static bool suits(enum mpi_kind kind, int type, bool is_truth)
{
    bool pair = type == TRIB_FLOAT32_LOC || type == TRIB_INT32_LOC;
    bool integer = type < TRIB_FLOAT16 || type == TRIB_INT16 || type == TRIB_UINT16;

    if (kind == PAIRS || pair)
        return kind == PAIRS && pair;
    if (is_truth)
        return kind == TRUTH;
    return kind == NUMBERS || integer;
}

struct reduction {
    const struct ompi_op_t *mpi;
    int trib;
    enum mpi_kind kind;
    const char *name;
};

/* NULL: the program's own, or MPI_REPLACE. */
static const struct reduction *reduction_of(const struct ompi_op_t *op)
{
#define IS(name, kind)                                                                             \
    {                                                                                              \
        MPI_##name, TRIB_##name, kind, "MPI_" #name                                                \
    }
    static const struct reduction known[] = {
        IS(SUM, NUMBERS), IS(PROD, NUMBERS), IS(MIN, NUMBERS),  IS(MAX, NUMBERS),
        IS(BAND, BITS),   IS(BOR, BITS),     IS(BXOR, BITS),    IS(LAND, TRUTH),
        IS(LOR, TRUTH),   IS(LXOR, TRUTH),   IS(MINLOC, PAIRS), IS(MAXLOC, PAIRS)};
#undef IS

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (op == known[i].mpi)
            return &known[i];
    return NULL;
}

/* Converts type and reduction. false: the fabric does not support them, and a line says so. */
static bool reduces(struct coll_trib_module *m, const char *what, ompi_datatype_t *dt,
                    struct ompi_op_t *op, enum trib_type *type, int *reduction)
{
    const struct reduction *r = reduction_of(op);
    int t = type_of(dt);

    if (t < 0)
        coll_trib_tell(m, TRIB_NO_TYPE, what, *dt->name ? dt->name : "a type of the program's own");
    else if (!r || !suits(r->kind, t, is_bool(dt)))
        coll_trib_tell(m, TRIB_NO_OP, what, r ? r->name : "a function of the program's own");
    if (t < 0 || !r || !suits(r->kind, t, is_bool(dt)))
        return false;
    *type = (enum trib_type)t;
    *reduction = r->trib;
    return coll_trib_ready(m);
}

/* ---- data that is moved ---- */

static size_t bytes_of(const ompi_datatype_t *dt, int count)
{
    return dt->super.size * (size_t)count;
}

static bool has_gaps(const ompi_datatype_t *dt, int count)
{
    return !ompi_datatype_is_contiguous_memory_layout(dt, count) || dt->super.true_lb;
}

static int pack(const void *buf, int count, ompi_datatype_t *dt, void *to)
{
    return ompi_datatype_sndrcv(buf, count, dt, to, (int)bytes_of(dt, count), MPI_PACKED);
}

static int unpack(const void *from, void *buf, int count, ompi_datatype_t *dt)
{
    return ompi_datatype_sndrcv(from, (int)bytes_of(dt, count), MPI_PACKED, buf, count, dt);
}

static int broadcast(void *buf, int count, ompi_datatype_t *dt, int root, ompi_communicator_t *comm,
                     mca_coll_base_module_t *module)
{
    struct coll_trib_module *m = (struct coll_trib_module *)module;
    size_t bytes = bytes_of(dt, count);
    bool own = root == ompi_comm_rank(comm), gaps = has_gaps(dt, count);
    struct trib_request *req = NULL;
    void *flat = buf;
    int rc = OMPI_SUCCESS;

    if (bytes > INT32_MAX || !coll_trib_ready(m))
        return m->bcast(buf, count, dt, root, comm, m->bcast_module);
    if (!bytes)
        return OMPI_SUCCESS;
    if (gaps && !(flat = malloc(bytes)))
        return OMPI_ERR_OUT_OF_RESOURCE;
    if (gaps && own)
        rc = pack(buf, count, dt, flat);
    if (!rc)
        rc = coll_trib_ops_finish(
            m, trib_broadcast(m->comm, flat, bytes, TRIB_UINT8, (uint32_t)root, &req, m->err),
            &req);
    if (!rc && gaps && !own)
        rc = unpack(flat, buf, count, dt);
    if (gaps)
        free(flat);
    return rc;
}

static int gather_all(const void *send, int n_send, ompi_datatype_t *send_dt, void *recv,
                      int n_recv, ompi_datatype_t *recv_dt, ompi_communicator_t *comm,
                      mca_coll_base_module_t *module)
{
    struct coll_trib_module *m = (struct coll_trib_module *)module;
    int size = ompi_comm_size(comm), rc = OMPI_SUCCESS;
    size_t one = bytes_of(recv_dt, n_recv), at = one * (size_t)ompi_comm_rank(comm);
    bool in_place = send == MPI_IN_PLACE, gaps = has_gaps(recv_dt, n_recv * size);
    struct trib_request *req = NULL;
    char *flat = recv;

    if (one * (size_t)size > INT32_MAX || !coll_trib_ready(m))
        return m->allgather(send, n_send, send_dt, recv, n_recv, recv_dt, comm,
                            m->allgather_module);
    if (!one)
        return OMPI_SUCCESS;
    if (gaps && !(flat = malloc(one * (size_t)size)))
        return OMPI_ERR_OUT_OF_RESOURCE;
    /* Pack the rank's own block into place first. */
    if (!in_place)
        rc = has_gaps(send_dt, n_send) ? pack(send, n_send, send_dt, flat + at)
                                       : (memcpy(flat + at, send, one), OMPI_SUCCESS);
    else if (gaps)
        rc = pack((char *)recv +
                      (recv_dt->super.ub - recv_dt->super.lb) * n_recv * ompi_comm_rank(comm),
                  n_recv, recv_dt, flat + at);
    if (!rc)
        rc = coll_trib_ops_finish(
            m, trib_all_gather(m->comm, flat + at, flat, one, TRIB_UINT8, &req, m->err), &req);
    if (!rc && gaps)
        rc = unpack(flat, recv, n_recv * size, recv_dt);
    if (gaps)
        free(flat);
    return rc;
}

static int coll_trib_ops_barrier(ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    struct coll_trib_module *m = (struct coll_trib_module *)module;
    struct trib_request *req = NULL;

    if (!coll_trib_ready(m))
        return m->barrier(comm, m->barrier_module);
    return coll_trib_ops_finish(m, trib_barrier(m->comm, &req, m->err), &req);
}

/* ---- reductions ---- */

static int all_reduce(const void *send, void *recv, int count, ompi_datatype_t *dt,
                      struct ompi_op_t *op, ompi_communicator_t *comm,
                      mca_coll_base_module_t *module)
{
    struct coll_trib_module *m = (struct coll_trib_module *)module;
    struct trib_request *req = NULL;
    enum trib_type type;
    int reduction;

    if (!reduces(m, "all-reduce", dt, op, &type, &reduction))
        return m->allreduce(send, recv, count, dt, op, comm, m->allreduce_module);
    if (!count)
        return OMPI_SUCCESS;
    return coll_trib_ops_finish(m,
                                trib_all_reduce(m->comm, send == MPI_IN_PLACE ? recv : send, recv,
                                                (size_t)count, type, reduction, &req, m->err),
                                &req);
}

static int coll_trib_ops_reduce(const void *send, void *recv, int count, ompi_datatype_t *dt,
                                struct ompi_op_t *op, int root, ompi_communicator_t *comm,
                                mca_coll_base_module_t *module)
{
    struct coll_trib_module *m = (struct coll_trib_module *)module;
    struct trib_request *req = NULL;
    enum trib_type type;
    int reduction;

    if (!reduces(m, "reduce", dt, op, &type, &reduction))
        return m->reduce(send, recv, count, dt, op, root, comm, m->reduce_module);
    if (!count)
        return OMPI_SUCCESS;
    return coll_trib_ops_finish(m,
                                trib_reduce(m->comm, send == MPI_IN_PLACE ? recv : send,
                                            root == ompi_comm_rank(comm) ? recv : NULL,
                                            (size_t)count, type, reduction, (uint32_t)root, &req,
                                            m->err),
                                &req);
}

/*
 * MPI in place: the input is all of recv, and the result goes to its beginning; the rest must not
 * change. The library's in place writes to the rank's block, so the result goes to separate memory
 * here.
 */
static int scatter_sums(struct coll_trib_module *m, const void *send, void *recv, size_t count,
                        enum trib_type type, int reduction)
{
    size_t bytes = count * trib_size(type);
    bool in_place = send == MPI_IN_PLACE;
    void *to = in_place && bytes ? malloc(bytes) : recv;
    struct trib_request *req = NULL;
    int rc;

    if (!bytes)
        return OMPI_SUCCESS;
    if (!to)
        return OMPI_ERR_OUT_OF_RESOURCE;
    rc = coll_trib_ops_finish(m,
                              trib_reduce_scatter(m->comm, in_place ? recv : send, to, count, type,
                                                  reduction, &req, m->err),
                              &req);
    if (!rc && in_place)
        memcpy(recv, to, bytes);
    if (in_place)
        free(to);
    return rc;
}

static int reduce_scatter_block(const void *send, void *recv, int count, ompi_datatype_t *dt,
                                struct ompi_op_t *op, ompi_communicator_t *comm,
                                mca_coll_base_module_t *module)
{
    struct coll_trib_module *m = (struct coll_trib_module *)module;
    enum trib_type type;
    int reduction;

    if (!reduces(m, "reduce-scatter", dt, op, &type, &reduction))
        return m->reduce_scatter_block(send, recv, count, dt, op, comm,
                                       m->reduce_scatter_block_module);
    return scatter_sums(m, send, recv, (size_t)count, type, reduction);
}

static int reduce_scatter(const void *send, void *recv, const int *counts, ompi_datatype_t *dt,
                          struct ompi_op_t *op, ompi_communicator_t *comm,
                          mca_coll_base_module_t *module)
{
    struct coll_trib_module *m = (struct coll_trib_module *)module;
    enum trib_type type;
    int reduction, same = 1;

    while (same < ompi_comm_size(comm) && counts[same] == counts[0])
        same++;
    if (same < ompi_comm_size(comm))
        coll_trib_tell(m, TRIB_NO_COUNTS, "reduce-scatter", "blocks of different lengths");
    if (same < ompi_comm_size(comm) || !reduces(m, "reduce-scatter", dt, op, &type, &reduction))
        return m->reduce_scatter(send, recv, counts, dt, op, comm, m->reduce_scatter_module);
    return scatter_sums(m, send, recv, (size_t)counts[0], type, reduction);
}

#define TAKE(name, fn)                                                                             \
    mca_coll_base_module_##name##_fn_t coll_trib_##name##_fn(void)                                 \
    {                                                                                              \
        return fn;                                                                                 \
    }
TAKE(allreduce, all_reduce)
TAKE(reduce, coll_trib_ops_reduce)
TAKE(bcast, broadcast)
TAKE(barrier, coll_trib_ops_barrier)
TAKE(allgather, gather_all)
TAKE(reduce_scatter, reduce_scatter)
TAKE(reduce_scatter_block, reduce_scatter_block)
