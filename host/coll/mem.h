/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory of a communicator: users' buffers, and the workspace of its operations. */
#ifndef TRIB_HOST_COLL_MEM_H
#define TRIB_HOST_COLL_MEM_H

#include "fabric/fabric.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct comm;
struct coll_req;

#define COMM_PORTS   FAB_MAX_HOST_PORTS
#define COMM_TMP_MAX (4ULL << 30) /* workspace of an operation */
#define MEM_PAGE     4096u

struct region {
    uint8_t *addr;
    size_t bytes;
    bool input; /* operations only read it: the process may not write its memory */
    struct ibv_mr *mr[COMM_PORTS];     /* for work requests of this rank */
    struct ibv_mr *remote[COMM_PORTS]; /* for work requests of NVSwitches, which address the region
                                          from remote_addr on; NULL: the rank has none */
    uint64_t remote_addr;
    struct region *next; /* of the users' */
};

/* The workspace that operations share, because they run one after the other. A larger one replaces
 * it; the old one stays until all operations have ended. */
struct workspace {
    struct region mem;
    struct workspace *next;
};
enum work {
    WORK_TMP,
    WORK_STAGE,
    WORKS
}; /* BUF_TMP, in the same memory as buffers; BUF_STAGE,
                                            * in host memory */

/* Registers memory at every port. 0, or -errno and *r is empty. */
int region_add(struct comm *c, struct region *r, void *buf, size_t bytes, bool input);
void region_drop(struct region *r);
/* The region that holds the whole range, for an input or for any use; NULL: it is not registered. */
const struct region *region_of(const struct comm *c, const void *addr, size_t bytes, bool input);
/* The workspaces that the operation's schedule needs. 0 or -ENOMEM. */
int workspace_get(struct comm *c, struct coll_req *r, char *err);
/* Host memory in whole pages, reached by the GPU too where there is one. NULL: no memory. */
void *mem_host(struct comm *c, size_t bytes);
void mem_host_free(struct comm *c, void *p, size_t bytes);
void mem_destroy(struct comm *c);

/* How HCAs reach a GPU's memory (gpudirect.c), the same for all of it. */
enum gpudirect {
    GPUDIRECT_UNKNOWN,
    GPUDIRECT_DMABUF,
    GPUDIRECT_PEER,
    GPUDIRECT_STAGED,
    GPUDIRECT_WAYS
};
int gpudirect_add(struct comm *c, struct region *r, void *buf, size_t bytes);

#endif
