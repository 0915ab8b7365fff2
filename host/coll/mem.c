/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of operations, registered at every port of the rank. */
#include "host/coll/comm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Stores the result of a registration. 0, or -errno after dropping the region. */
static int mr_keep(struct comm *c, struct region *r, struct ibv_mr **slot, struct ibv_mr *mr)
{
    int rc = errno ? -errno : -ENOMEM;

    *slot = mr;
    if (mr && (!comm_unbacked(c) || !c->hooks.unback(mr)))
        return 0;
    region_drop(r);
    return rc;
}

/*
 * Memory that NVSwitches read and write is registered once more, under addresses from 0 on, so that
 * the addresses in frames do not depend on this process's memory map. A kernel requires the same
 * offset in a page for both addresses.
 */
int region_add(struct comm *c, struct region *r, void *buf, size_t bytes, bool input)
{
    const int local = input ? 0 : IBV_ACCESS_LOCAL_WRITE;
    const int remote = IBV_ACCESS_REMOTE_READ | (input ? 0 : IBV_ACCESS_REMOTE_WRITE);
    int rc = 0;

    *r = (struct region){
        .addr = buf, .bytes = bytes, .input = input, .remote_addr = (uintptr_t)buf % MEM_PAGE};
    for (unsigned p = 0; !rc && p < c->n_ports; p++) {
        struct ibv_pd *pd = c->port[p].pd;

        errno = 0;
        rc = mr_keep(c, r, &r->mr[p], ibv_reg_mr(pd, buf, bytes, local));
        if (!rc && c->n_planes)
            rc = mr_keep(c, r, &r->remote[p],
                         ibv_reg_mr_iova(pd, buf, bytes, r->remote_addr, local | remote));
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

const struct region *region_of(const struct comm *c, const void *addr, size_t bytes, bool input)
{
    const uint8_t *p = addr;

    for (const struct region *r = c->regions; r; r = r->next)
        if (p >= r->addr && bytes <= r->bytes && (size_t)(p - r->addr) <= r->bytes - bytes &&
            (input || !r->input))
            return r;
    return NULL;
}

static int region_register(struct comm *c, void *buf, size_t bytes, bool input)
{
    struct region *r;
    int rc;

    if (region_of(c, buf, bytes, input))
        return 0;
    r = calloc(1, sizeof(*r));
    if (!r)
        return -ENOMEM;
    rc = c->cfg.device ? gpudirect_add(c, r, buf, bytes) : region_add(c, r, buf, bytes, input);
    if (rc) {
        free(r);
        return rc;
    }
    r->next = c->regions;
    c->regions = r;
    return 0;
}

int comm_register(struct comm *c, void *buf, size_t bytes)
{
    return region_register(c, buf, bytes, false);
}

int comm_register_input(struct comm *c, const void *buf, size_t bytes)
{
    return region_register(c, (void *)(uintptr_t)buf, bytes, true);
}

int comm_deregister(struct comm *c, const void *buf, size_t bytes)
{
    struct region **at = &c->regions, *r;

    while (*at && ((*at)->addr != buf || (*at)->bytes != bytes))
        at = &(*at)->next;
    r = *at;
    if (!r)
        return -ENOENT;
    for (const struct coll_req *op = c->exec.head; op; op = op->next)
        if (op->in == r || op->out == r)
            return -EBUSY;
    planes_unbind(c, r);
    *at = r->next;
    region_drop(r);
    free(r);
    return 0;
}

void *mem_host(struct comm *c, size_t bytes)
{
    int prot = comm_unbacked(c) ? PROT_NONE : PROT_READ | PROT_WRITE;
    void *p;

    if (c->cfg.device)
        return device_host(c->cfg.device, bytes);
    p = mmap(NULL, bytes, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void mem_host_free(struct comm *c, void *p, size_t bytes)
{
    if (c->cfg.device)
        device_host_free(c->cfg.device, p, bytes);
    else if (p)
        munmap(p, bytes);
}

static void work_free(struct comm *c, enum work kind, void *mem, size_t bytes)
{
    if (!c->cfg.device)
        free(mem);
    else if (kind == WORK_STAGE)
        device_host_free(c->cfg.device, mem, bytes);
    else
        device_free(c->cfg.device, mem);
}

/* Host memory is cleared. */
static int work_alloc(struct comm *c, enum work kind, struct region *r, size_t bytes)
{
    struct device *d = c->cfg.device;
    void *mem = !d                   ? calloc(1, bytes)
                : kind == WORK_STAGE ? device_host(d, bytes)
                                     : device_alloc(d, bytes);

    if (!mem)
        return -ENOMEM;
    if (!(d && kind == WORK_TMP ? gpudirect_add(c, r, mem, bytes)
                                : region_add(c, r, mem, bytes, false)))
        return 0;
    work_free(c, kind, mem, bytes);
    return -ENOMEM;
}

static void workspace_free(struct comm *c, enum work kind, struct workspace *w)
{
    void *mem = w->mem.addr;
    size_t bytes = w->mem.bytes;

    region_drop(&w->mem);
    work_free(c, kind, mem, bytes);
    free(w);
}

static struct workspace *workspace_ensure(struct comm *c, enum work kind, size_t bytes)
{
    struct workspace *w = c->work[kind];
    size_t room = 65536;

    if (w && w->mem.bytes >= bytes)
        return w;
    while (room < bytes)
        room *= 2;
    for (struct workspace *old = c->exec.head ? NULL : w; old; old = c->work[kind]) {
        c->work[kind] = old->next;
        workspace_free(c, kind, old);
    }
    w = calloc(1, sizeof(*w));
    if (!w || work_alloc(c, kind, &w->mem, room)) {
        free(w);
        return NULL;
    }
    w->next = c->work[kind];
    c->work[kind] = w;
    return w;
}

int workspace_get(struct comm *c, struct coll_req *r, char *err)
{
    const char *why;
    uint64_t bytes = r->s.tmp_bytes;

    if (bytes && bytes <= COMM_TMP_MAX)
        r->tmp = workspace_ensure(c, WORK_TMP, bytes);
    if (!bytes || r->tmp) {
        bytes = r->s.stage_bytes;
        if (bytes && bytes <= COMM_TMP_MAX)
            r->stage = workspace_ensure(c, WORK_STAGE, bytes);
        if (!bytes || r->stage)
            return 0;
    }
    why = c->cfg.device ? device_error(c->cfg.device) : NULL;
    snprintf(err, COMM_TEXT, "a workspace of %llu bytes: %s", (unsigned long long)bytes,
             bytes > COMM_TMP_MAX ? "at most 4 GiB are possible"
             : why                ? why
                                  : "out of memory");
    return -ENOMEM;
}

void mem_destroy(struct comm *c)
{
    for (enum work kind = 0; kind < WORKS; kind++)
        while (c->work[kind]) {
            struct workspace *w = c->work[kind];

            c->work[kind] = w->next;
            workspace_free(c, kind, w);
        }
    for (struct region *r = c->regions; r; r = c->regions) {
        c->regions = r->next;
        region_drop(r);
        free(r);
    }
}
