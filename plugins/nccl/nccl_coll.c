/* SPDX-License-Identifier: BSD-3-Clause */
/* CollNet communicators and their memory. */
#include "plugins/nccl/nccl_coll.h"
#include "plugins/common/reg_range.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

/* Creates the communicator. If switches refuse its group, creation fails, so that NCCL uses its own
 * algorithms; if they fail later, hosts take over. All ranks see the same number of trees. */
static int coll_create(struct nccl_coll *c)
{
    struct trib_comm_options options = {.algo = "sharp,ring"};
    char why[TRIB_TEXT] = "";
    struct trib_oob oob;

    nccl_star_oob(&c->star, &oob);
    if (trib_comm_create(&c->trib, &oob, &options, why)) {
        c->trib = NULL;
        return nccl_refuse(NCCL_SYSTEM_ERROR, "connect: %s", why);
    }
    if (c->size == 1 || trib_comm_trees(c->trib, why))
        return NCCL_SUCCESS;
    return nccl_refuse(NCCL_SYSTEM_ERROR, "connect: %s",
                       *why ? why : "found no aggregation node that reaches all ranks");
}

static void coll_free(struct nccl_coll *c)
{
    if (c->trib)
        trib_comm_destroy(c->trib);
    nccl_star_close(&c->star);
    free(c);
}

static int connect_check(void *handles[], int nranks, int rank, void **coll_comm)
{
    if (!coll_comm || !handles)
        return nccl_refuse(NCCL_INVALID_ARGUMENT, "connect: found no %s",
                           handles ? "place for the communicator" : "handles");
    *coll_comm = NULL;
    if (nranks < 1 || rank < 0 || rank >= nranks)
        return nccl_refuse(NCCL_INVALID_ARGUMENT, "connect: found rank %d of %d", rank, nranks);
    for (int r = 0; r < nranks; r++)
        if (!handles[r])
            return nccl_refuse(NCCL_INVALID_ARGUMENT, "connect: found no handle of rank %d", r);
    return NCCL_SUCCESS;
}

int nccl_coll_connect(void *handles[], int nranks, int rank, void *listen, void **coll_comm)
{
    struct nccl_coll *c = NULL;
    int dev, rc = connect_check(handles, nranks, rank, coll_comm);

    if (!rc)
        rc = nccl_listen_device(listen, &dev);
    if (rc)
        return rc;
    c = calloc(1, sizeof(*c));
    if (!c)
        return nccl_refuse(NCCL_SYSTEM_ERROR, "connect: out of memory");
    c->rank = (uint32_t)rank;
    c->size = (uint32_t)nranks;
    rc = nccl_star_open(&c->star, dev, handles, c->size, c->rank, listen);
    if (!rc)
        rc = coll_create(c);
    if (!rc) {
        nccl_lock();
        *coll_comm = c->handle = nccl_handle_new(NCCL_KIND_COLL, c);
        nccl_unlock();
        if (!c->handle)
            rc = nccl_refuse(NCCL_SYSTEM_ERROR, "connect: out of memory");
    }
    if (rc)
        coll_free(c);
    else
        nccl_tell("rank %d of %d: %u aggregation trees", rank, nranks,
                  trib_comm_trees(c->trib, NULL));
    return rc;
}

int nccl_coll_close(void *coll_comm)
{
    struct nccl_coll *c;
    int rc;

    nccl_lock();
    rc = nccl_handle_find(coll_comm, NCCL_KIND_COLL, "closeColl", &c);
    if (!rc) {
        nccl_handle_end(c->handle);
        nccl_coll_requests_end(c);
    }
    nccl_unlock();
    if (!rc)
        coll_free(c);
    return rc;
}

/* ---- memory ---- */

int nccl_coll_reg_mr(void *comm, void *data, size_t size, int type, void **mh)
{
    int rc = nccl_memory_check(data, size, type, mh);
    struct reg_range *range;
    struct nccl_coll *c;

    if (mh)
        *mh = NULL;
    if (rc)
        return rc;
    nccl_lock();
    rc = nccl_handle_find(comm, NCCL_KIND_COLL, "regMr", &c);
    if (!rc) {
        range = reg_range_get(data, size);
        *mh = range ? nccl_handle_new(NCCL_KIND_COLL_MEMORY, range) : NULL;
        if (range && !*mh)
            reg_range_put(range);
        if (!*mh)
            rc = nccl_refuse(NCCL_SYSTEM_ERROR, "regMr: out of memory");
    }
    nccl_unlock();
    return rc;
}

int nccl_coll_dereg_mr(void *comm, void *mh)
{
    struct reg_range *range;
    struct nccl_coll *c;
    int rc;

    nccl_lock();
    rc = nccl_handle_find(comm, NCCL_KIND_COLL, "deregMr", &c);
    if (!rc)
        rc = nccl_handle_find(mh, NCCL_KIND_COLL_MEMORY, "deregMr", &range);
    if (!rc && reg_range_put(range))
        rc = nccl_refuse(NCCL_INVALID_USAGE, "deregMr: an operation uses the memory at %p",
                         (void *)range->base);
    else if (!rc)
        nccl_handle_end(mh);
    nccl_unlock();
    return rc;
}
