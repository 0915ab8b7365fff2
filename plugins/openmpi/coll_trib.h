/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open MPI's collectives in the switches of a Tributary fabric: a `coll` component (Open MPI 4.1).
 *
 *   coll_trib_component.c   what Open MPI loads and asks
 *   coll_trib_module.c      one for each communicator: its trib_comm, and whom it falls back to
 *   coll_trib_ops.c         the collectives
 *
 * The first collective that could use it creates a communicator of the fabric. Unsupported types
 * and reductions, and communicators that switches refuse, are left to the component that Open MPI
 * would use without this one; a line says why, once.
 */
#ifndef TRIB_PLUGINS_OPENMPI_COLL_TRIB_H
#define TRIB_PLUGINS_OPENMPI_COLL_TRIB_H

#include <ompi_config.h>

#include <mpi.h>

#include <ompi/communicator/communicator.h>
#include <ompi/datatype/ompi_datatype.h>
#include <ompi/mca/coll/coll.h>

#include <tributary/coll.h>

/* The collectives of this component, and those of earlier components that it calls. */
#define COLL_TRIB_TAKES(X)                                                                         \
    X(allreduce)                                                                                   \
    X(reduce) X(bcast) X(barrier) X(allgather) X(reduce_scatter) X(reduce_scatter_block)
#define COLL_TRIB_NEEDS(X) COLL_TRIB_TAKES(X) X(gather)

enum coll_trib_state { COLL_TRIB_NEW, COLL_TRIB_READY, COLL_TRIB_LEFT };

struct coll_trib_module {
    mca_coll_base_module_t super;
    enum coll_trib_state state;
    ompi_communicator_t *mpi;
    struct trib_comm *comm;
    char err[TRIB_TEXT]; /* reason of a refused call */
    unsigned told;       /* bits of the reasons that have been printed */
#define X(name)                                                                                    \
    mca_coll_base_module_##name##_fn_t name;                                                       \
    mca_coll_base_module_t *name##_module;
    COLL_TRIB_NEEDS(X)
#undef X
};
OBJ_CLASS_DECLARATION(coll_trib_module);
typedef struct coll_trib_module coll_trib_module;

extern int coll_trib_priority;
extern char *coll_trib_algo;

mca_coll_base_module_t *coll_trib_query(ompi_communicator_t *comm, int *priority);
/* Whether collectives of this communicator run on the fabric; the first call finds out. All ranks
 * make it at the same collective. */
bool coll_trib_ready(struct coll_trib_module *m);
/* Prints that a collective (what) of, by or with something (found) is left to others, once for each
 * reason; rank 0 does. */
enum coll_trib_reason { TRIB_NO_TYPE, TRIB_NO_OP, TRIB_NO_COUNTS, TRIB_REASONS };
void coll_trib_tell(struct coll_trib_module *m, enum coll_trib_reason why, const char *what,
                    const char *found);

/* ---- coll_trib_ops.c ---- */

#define X(name) mca_coll_base_module_##name##_fn_t coll_trib_##name##_fn(void);
COLL_TRIB_TAKES(X)
#undef X

#endif
