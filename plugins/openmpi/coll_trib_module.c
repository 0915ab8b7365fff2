/* SPDX-License-Identifier: BSD-3-Clause */
/* Earlier components serve as out-of-band calls; they work from enable() on. */
#include "plugins/openmpi/coll_trib.h"

#include <opal/util/output.h>
#include <stdio.h>
#include <string.h>

/* ---- out of band ---- */

static int oob_bcast(void *ctx, void *buf, size_t bytes, uint32_t root)
{
    struct coll_trib_module *m = ctx;

    return m->bcast(buf, (int)bytes, MPI_BYTE, (int)root, m->mpi, m->bcast_module);
}

static int oob_gather(void *ctx, uint32_t root, const void *mine, void *all, size_t bytes)
{
    struct coll_trib_module *m = ctx;

    return m->gather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, (int)root, m->mpi,
                     m->gather_module);
}

static int oob_barrier(void *ctx)
{
    struct coll_trib_module *m = ctx;

    return m->barrier(m->mpi, m->barrier_module);
}

bool coll_trib_ready(struct coll_trib_module *m)
{
    struct trib_oob oob = {.ctx = m,
                           .rank = (uint32_t)ompi_comm_rank(m->mpi),
                           .size = (uint32_t)ompi_comm_size(m->mpi),
                           .bcast = oob_bcast,
                           .gather = oob_gather,
                           .barrier = oob_barrier};
    struct trib_comm_options options = {.algo = coll_trib_algo};
    char err[TRIB_TEXT] = "";

    if (m->state != COLL_TRIB_NEW)
        return m->state == COLL_TRIB_READY;
    m->state = COLL_TRIB_LEFT; /* out-of-band calls must not come back here */
    if (!trib_comm_create(&m->comm, &oob, &options, err)) {
        if (!strstr(coll_trib_algo, "sharp") || trib_comm_trees(m->comm, err)) {
            m->state = COLL_TRIB_READY;
            return true;
        }
        trib_comm_destroy(m->comm);
        m->comm = NULL;
        if (!*err)
            snprintf(err, sizeof(err), "no switch of the fabric reduces for these ranks");
    }
    if (!oob.rank)
        opal_output(0, "coll:trib: communicator %s: %s; its collectives are left to others",
                    m->mpi->c_name, err);
    return false;
}

void coll_trib_tell(struct coll_trib_module *m, enum coll_trib_reason why, const char *what,
                    const char *found)
{
    static const char *const by[TRIB_REASONS] = {"of", "by", "with"};

    if (m->told >> why & 1 || ompi_comm_rank(m->mpi))
        return;
    m->told |= 1u << why;
    opal_output(0, "coll:trib: communicator %s: %s %s %s is left to others", m->mpi->c_name, what,
                by[why], found);
}

/* ---- life ---- */

static void construct(struct coll_trib_module *m)
{
    m->state = COLL_TRIB_NEW;
    m->mpi = NULL;
    m->comm = NULL;
    m->told = 0;
    m->err[0] = 0;
#define X(name)                                                                                    \
    m->name = NULL;                                                                                \
    m->name##_module = NULL;
    COLL_TRIB_NEEDS(X)
#undef X
}

static void destruct(struct coll_trib_module *m)
{
    trib_comm_destroy(m->comm);
    m->comm = NULL;
#define X(name)                                                                                    \
    if (m->name##_module)                                                                          \
        OBJ_RELEASE(m->name##_module);
    COLL_TRIB_NEEDS(X)
#undef X
}

OBJ_CLASS_INSTANCE(coll_trib_module, mca_coll_base_module_t, construct, destruct);

/* Saves the present owner of each collective, which gets the calls that this component leaves. */
static int enable(mca_coll_base_module_t *module, struct ompi_communicator_t *comm)
{
    struct coll_trib_module *m = (struct coll_trib_module *)module;

#define X(name)                                                                                    \
    if (!comm->c_coll->coll_##name || !comm->c_coll->coll_##name##_module)                         \
        return OMPI_ERR_NOT_FOUND;
    COLL_TRIB_NEEDS(X)
#undef X
    m->mpi = comm;
#define X(name)                                                                                    \
    m->name = comm->c_coll->coll_##name;                                                           \
    m->name##_module = comm->c_coll->coll_##name##_module;                                         \
    OBJ_RETAIN(m->name##_module);
    COLL_TRIB_NEEDS(X)
#undef X
    return OMPI_SUCCESS;
}

mca_coll_base_module_t *coll_trib_query(ompi_communicator_t *comm, int *priority)
{
    struct coll_trib_module *m;

    *priority = coll_trib_priority;
    if (OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2 || coll_trib_priority <= 0)
        return NULL;
    m = OBJ_NEW(coll_trib_module);
    if (!m)
        return NULL;
    m->super.coll_module_enable = enable;
#define X(name) m->super.coll_##name = coll_trib_##name##_fn();
    COLL_TRIB_TAKES(X)
#undef X
    return &m->super;
}
