/* Memory of operations, registered at every port of the rank. */
#include "host/coll/comm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096u

/* 0, or -errno: there is no region then. */
static int keep(struct comm *c, struct region *r, struct ibv_mr **slot, struct ibv_mr *mr)
{
    int rc = errno ? -errno : -ENOMEM;

    *slot = mr;
    if (mr && (!c->cfg.unback || !c->cfg.unback(mr)))
        return 0;
    region_drop(r);
    return rc;
}

/*
 * What NVSwitches read and write is registered once more, under addresses from 0 on: those that
 * frames bear then do not depend on where this process has its memory. A kernel wants the same
 * place in a page for both addresses.
 */
int region_add(struct comm *c, struct region *r, void *buf, size_t bytes)
{
    int rc = 0;

    *r = (struct region){.addr = buf, .bytes = bytes, .remote_addr = (uintptr_t)buf % PAGE};
    for (unsigned p = 0; !rc && p < c->n_ports; p++) {
        struct ibv_pd *pd = c->port[p].pd;

        errno = 0;
        rc = keep(c, r, &r->mr[p], ibv_reg_mr(pd, buf, bytes, IBV_ACCESS_LOCAL_WRITE));
        if (!rc && c->n_planes)
            rc = keep(c, r, &r->remote[p],
                      ibv_reg_mr_iova(pd, buf, bytes, r->remote_addr,
                                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                                          IBV_ACCESS_REMOTE_WRITE));
    }
    return rc;
}

void region_drop(struct region *r)
{
    for (unsigned p = 0; p < COMM_PORTS; p++) {
        if (r->mr[p])
            ibv_dereg_mr(r->mr[p]);
        if (r->remote[p])
            ibv_dereg_mr(r->remote[p]);
    }
    memset(r, 0, sizeof(*r));
}

const struct region *region_of(const struct comm *c, const void *addr, size_t bytes)
{
    const uint8_t *p = addr;

    for (unsigned i = 0; i < c->n_regions; i++) {
        const struct region *r = &c->region[i];

        if (p >= r->addr && bytes <= r->bytes && (size_t)(p - r->addr) <= r->bytes - bytes)
            return r;
    }
    return NULL;
}

int comm_register(struct comm *c, void *buf, size_t bytes)
{
    int rc;

    if (region_of(c, buf, bytes))
        return 0;
    if (c->n_regions == COMM_REGIONS)
        return -ENOSPC;
    rc = region_add(c, &c->region[c->n_regions], buf, bytes);
    c->n_regions += !rc;
    return rc;
}

static void workspace_free(struct workspace *w)
{
    void *mem = w->mem.addr;

    region_drop(&w->mem);
    free(mem);
    free(w);
}

struct workspace *workspace_get(struct comm *c, size_t bytes)
{
    struct workspace *w = c->tmp;
    size_t room = 65536;
    void *mem;

    if (w && w->mem.bytes >= bytes)
        return w;
    while (room < bytes)
        room *= 2;
    for (struct workspace *old = c->exec.head ? NULL : c->tmp; old; old = c->tmp) {
        c->tmp = old->next;
        workspace_free(old);
    }
    w = calloc(1, sizeof(*w));
    mem = calloc(1, room);
    if (!w || !mem || region_add(c, &w->mem, mem, room)) {
        free(w);
        free(mem);
        return NULL;
    }
    w->next = c->tmp;
    c->tmp = w;
    return w;
}

void mem_destroy(struct comm *c)
{
    while (c->tmp) {
        struct workspace *w = c->tmp;

        c->tmp = w->next;
        workspace_free(w);
    }
    while (c->n_regions)
        region_drop(&c->region[--c->n_regions]);
}
