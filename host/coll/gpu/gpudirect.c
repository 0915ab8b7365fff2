/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How HCAs reach a GPU's memory, best first: as a dma-buf of the driver's, as peer memory (a kernel
 * module knows its addresses), or not at all. Memory that they reach is sent in place. Received
 * data always goes through host memory: it is reduced from there, and the GPU needs no notification
 * that a device has written to its memory.
 */
#include "host/coll/comm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const names[GPUDIRECT_WAYS] = {
    [GPUDIRECT_DMABUF] = "dma-buf", [GPUDIRECT_PEER] = "peer memory"};

static int as_dmabuf(struct comm *c, struct region *r, struct ibv_pd *pd, struct ibv_mr **mr)
{
    int fd = device_dmabuf(c->cfg.device, r->addr, r->bytes);

    if (fd < 0)
        return fd;
    errno = 0;
    *mr = ibv_reg_dmabuf_mr(pd, 0, r->bytes, (uintptr_t)r->addr, fd, IBV_ACCESS_LOCAL_WRITE);
    close(fd);
    return *mr ? 0 : errno ? -errno : -ENOTSUP;
}

static int at_all_ports(struct comm *c, struct region *r, enum gpudirect way)
{
    int rc = 0;

    for (unsigned p = 0; !rc && p < c->n_ports; p++) {
        if (way == GPUDIRECT_DMABUF) {
            rc = as_dmabuf(c, r, c->port[p].pd, &r->mr[p]);
            continue;
        }
        errno = 0;
        r->mr[p] = ibv_reg_mr(c->port[p].pd, r->addr, r->bytes, IBV_ACCESS_LOCAL_WRITE);
        rc = r->mr[p] ? 0 : errno ? -errno : -ENOMEM;
    }
    return rc;
}

/* The first region decides for all of them. */
int gpudirect_add(struct comm *c, struct region *r, void *buf, size_t bytes)
{
    const struct region bare = {.addr = buf, .bytes = bytes};
    int rc = 0, why[GPUDIRECT_WAYS] = {0};

    for (enum gpudirect way = GPUDIRECT_DMABUF; way <= GPUDIRECT_PEER; way++) {
        if (c->gpudirect != GPUDIRECT_UNKNOWN && c->gpudirect != way)
            continue;
        *r = bare;
        rc = why[way] = at_all_ports(c, r, way);
        if (!rc) {
            c->gpudirect = way;
            return 0;
        }
        region_drop(r);
    }
    *r = bare;
    if (c->gpudirect == GPUDIRECT_DMABUF || c->gpudirect == GPUDIRECT_PEER)
        return rc;
    if (c->gpudirect == GPUDIRECT_UNKNOWN)
        snprintf(c->gpudirect_why, sizeof(c->gpudirect_why), "%s: %s; %s: %s",
                 names[GPUDIRECT_DMABUF], strerror(-why[GPUDIRECT_DMABUF]), names[GPUDIRECT_PEER],
                 strerror(-why[GPUDIRECT_PEER]));
    c->gpudirect = GPUDIRECT_STAGED;
    return 0;
}

void comm_gpudirect(const struct comm *c, char *text)
{
    *text = 0;
    if (c->gpudirect == GPUDIRECT_STAGED)
        snprintf(text, COMM_TEXT, "messages staged through pinned host memory (%s)",
                 c->gpudirect_why);
    else if (c->gpudirect != GPUDIRECT_UNKNOWN)
        snprintf(text, COMM_TEXT,
                 "sent from there (%s), what arrives is staged through pinned host memory",
                 names[c->gpudirect]);
}
