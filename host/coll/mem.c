/* Memory of operations, registered at every port of the rank. */
#include "host/coll/comm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int region_add(struct comm *c, struct region *r, void *buf, size_t bytes)
{
    int access = IBV_ACCESS_LOCAL_WRITE; /* NVSwitches read and write what is bound */

    if (c->n_planes)
        access |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    *r = (struct region){.addr = buf, .bytes = bytes};
    for (unsigned p = 0; p < c->n_ports; p++) {
        r->mr[p] = ibv_reg_mr(c->port[p].pd, buf, bytes, access);
        if (!r->mr[p] || (c->cfg.unback && c->cfg.unback(r->mr[p]))) {
            int rc = errno ? -errno : -ENOMEM;

            region_drop(r);
            return rc;
        }
    }
    return 0;
}

void region_drop(struct region *r)
{
    for (unsigned p = 0; p < COMM_PORTS; p++)
        if (r->mr[p])
            ibv_dereg_mr(r->mr[p]);
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
