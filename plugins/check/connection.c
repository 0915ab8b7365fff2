/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugins/check/connection.h"
#include "plugins/check/marks.h"

#include <stdlib.h>
#include <string.h>

/* ---- connections ---- */

void connection_listen(struct plugin_rank *r, unsigned from, void **listen)
{
    uint8_t handle[NCCL_HANDLE + 64];

    *listen = NULL;
    if (r->me == from)
        return;
    memset(handle, 0, NCCL_HANDLE);
    memset(handle + NCCL_HANDLE, MARK, 64);
    MUST(r, "listen", table_listen(&r->t, r->ctx, 0, handle, listen));
    EXPECT(r, *listen, "listen: found NULL, expected a communicator");
    for (size_t i = NCCL_HANDLE; i < sizeof(handle); i++)
        EXPECT(r, handle[i] == MARK, "listen: it has written %zu bytes behind the handle's %d",
               i - NCCL_HANDLE + 1, NCCL_HANDLE);
    memcpy(r->b->rank[r->me].handle, handle, NCCL_HANDLE);
}

/* Makes one call at this end: connect or accept. */
static void connection_step(struct plugin_rank *r, unsigned from, void *listen, void *handle,
                            void **comm)
{
    struct nccl_device_handle *device = NULL;

    *comm = RANK_POISON;
    if (r->me == from)
        MUST(r, "connect", net_connect(&r->t, r->ctx, 0, handle, comm, &device));
    else
        MUST(r, "accept", net_accept(&r->t, listen, comm, &device));
    EXPECT(r, *comm != RANK_POISON,
           "%s: it has left the communicator unset, expected NULL or a communicator",
           r->me == from ? "connect" : "accept");
    EXPECT(r, !device, "%s: found a handle of a GPU's network, expected none of host memory",
           r->me == from ? "connect" : "accept");
}

void connection_meet(struct plugin_rank *r, unsigned from, void *listen, struct connection *c)
{
    char handle[NCCL_HANDLE]; /* a copy, as connect keeps its state in it */

    memcpy(handle, r->b->rank[1 - from].handle, NCCL_HANDLE);
    *c = (struct connection){.sends = r->me == from};
    for (r->spins = 0; !c->comm;) {
        connection_step(r, from, listen, handle, &c->comm);
        if (!c->comm)
            rank_pause(r);
    }
}

void connection_open(struct plugin_rank *r, unsigned from, struct connection *c)
{
    void *listen;

    connection_listen(r, from, &listen);
    rank_barrier(r);
    connection_meet(r, from, listen, c);
    rank_barrier(r);
    if (listen)
        MUST(r, "closeListen", table_close_listen(&r->t, listen));
}

void connection_close(struct plugin_rank *r, struct connection *c)
{
    if (c->sends)
        MUST(r, "closeSend", net_close_send(&r->t, c->comm));
    else
        MUST(r, "closeRecv", net_close_recv(&r->t, c->comm));
    c->comm = NULL;
}

/* ---- memory ---- */

void memory_register(struct plugin_rank *r, const struct connection *c, void *data, size_t n,
                     void **mh)
{
    *mh = NULL; /* a plug-in may need no registration */
    MUST(r, "regMr", table_reg_mr(&r->t, c->comm, data, n, NCCL_PTR_HOST, mh));
}

void memory_open(struct plugin_rank *r, const struct connection *c, struct plugin_memory *m)
{
    m->all = aligned_alloc(4096, MEMORY_BYTES + 2 * MEMORY_EDGE);
    EXPECT(r, m->all, "out of memory");
    memset(m->all, MARK, MEMORY_BYTES + 2 * MEMORY_EDGE);
    m->at = m->all + MEMORY_EDGE;
    memory_register(r, c, m->at, MEMORY_BYTES, &m->mh);
}

void memory_close(struct plugin_rank *r, const struct connection *c, struct plugin_memory *m)
{
    memory_untouched(r, m);
    MUST(r, "deregMr", table_dereg_mr(&r->t, c->comm, m->mh));
    free(m->all);
}

static uint8_t memory_pattern(size_t i, unsigned seed)
{
    return (uint8_t)(i * 7 + i / 251 + seed * 31 + 1);
}

void memory_fill(struct plugin_memory *m, size_t at, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        m->at[at + i] = memory_pattern(i, seed);
}

void memory_expect(struct plugin_rank *r, struct plugin_memory *m, size_t at, size_t n,
                   unsigned seed, const char *what)
{
    for (size_t i = 0; i < n; i++)
        EXPECT(r, m->at[at + i] == memory_pattern(i, seed),
               "%s: byte %zu of %zu: found %#x, expected %#x", what, i, n, m->at[at + i],
               memory_pattern(i, seed));
    memset(m->at + at, MARK, n);
}

void memory_untouched(struct plugin_rank *r, const struct plugin_memory *m)
{
    const size_t n = MEMORY_BYTES + 2 * MEMORY_EDGE, i = marks_broken(m->all, n);

    EXPECT(r, i == n,
           "a byte that is no message's was written, at %td of %zu registered ones: found %#x",
           (ptrdiff_t)i - (ptrdiff_t)MEMORY_EDGE, MEMORY_BYTES, m->all[i]);
}

/* ---- requests ---- */

void *send_try(struct plugin_rank *r, const struct connection *c, const struct plugin_memory *m,
               size_t at, size_t n, int tag)
{
    void *req = RANK_POISON;

    MUST(r, "isend", net_isend(&r->t, c->comm, m->at + at, n, tag, m->mh, &req));
    EXPECT(r, req != RANK_POISON, "isend: it has left the request unset, expected NULL or one");
    return req;
}

void *send_start(struct plugin_rank *r, const struct connection *c, const struct plugin_memory *m,
                 size_t at, size_t n, int tag)
{
    void *req;

    for (r->spins = 0; !(req = send_try(r, c, m, at, n, tag));)
        rank_pause(r);
    return req;
}

void *receive_try(struct plugin_rank *r, const struct connection *c, const struct plugin_memory *m,
                  int n, const struct receive *part)
{
    void *data[TABLE_GROUP], *mh[TABLE_GROUP], *req = RANK_POISON;
    size_t room[TABLE_GROUP];
    int tags[TABLE_GROUP];

    for (int i = 0; i < n; i++) {
        data[i] = m->at + part[i].at;
        mh[i] = m->mh;
        room[i] = part[i].room;
        tags[i] = part[i].tag;
    }
    MUST(r, "irecv", net_irecv(&r->t, c->comm, n, data, room, tags, mh, &req));
    EXPECT(r, req != RANK_POISON, "irecv: it has left the request unset, expected NULL or one");
    return req;
}

void *receive_start(struct plugin_rank *r, const struct connection *c,
                    const struct plugin_memory *m, int n, const struct receive *part)
{
    void *req;

    for (r->spins = 0; !(req = receive_try(r, c, m, n, part));)
        rank_pause(r);
    return req;
}

bool request_test(struct plugin_rank *r, void *req, int *sizes)
{
    int done = RANK_FILL;

    MUST(r, "test", table_test(&r->t, req, &done, sizes));
    EXPECT(r, done == 0 || done == 1, "test: found done %#x, expected 0 or 1%s", (unsigned)done,
           done == RANK_FILL ? "; it has left it unset" : "");
    return done;
}

void request_finish(struct plugin_rank *r, void *req, int *sizes)
{
    for (r->spins = 0; !request_test(r, req, sizes);)
        rank_pause(r);
}

void sent_finish(struct plugin_rank *r, void *req, size_t n)
{
    int size = RANK_FILL;

    request_finish(r, req, &size);
    EXPECT(r, size == (int)n || size == RANK_FILL, /* NCCL reads sizes of receives only */
           "test of a send: found %d bytes, expected %zu", size, n);
}
