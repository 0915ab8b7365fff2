/* SPDX-License-Identifier: BSD-3-Clause */
/* Misuse, which NCCL never does: it must be refused without damage. */
#include "plugins/check/connection.h"
#include "plugins/check/marks.h"
#include "plugins/check/net_cases.h"

#include <string.h>

#define REFUSED(r, call, what)                                                                     \
    EXPECT(r, CALL(r, call, what), "%s: found success, expected an error", call)

static void net_strict_begin(struct plugin_rank *r, struct connection *c, struct plugin_memory *m)
{
    connection_open(r, 0, c);
    memory_open(r, c, m);
}

/* Checks that the connection still works. */
static void net_strict_end(struct plugin_rank *r, struct connection *c, struct plugin_memory *m)
{
    int size = 0;

    rank_barrier(r);
    if (c->sends) {
        memory_fill(m, 0, 100, 1);
        sent_finish(r, send_start(r, c, m, 0, 100, 1), 100);
    } else {
        request_finish(r, receive_start(r, c, m, 1, &(struct receive){0, 100, 1}), &size);
        EXPECT(r, size == 100, "test after refusals: found a size of %d bytes, expected 100", size);
    }
    memory_expect(r, m, 0, 100, 1, "the message after refusals");
    rank_barrier(r);
    memory_close(r, c, m);
    connection_close(r, c);
}

static void refuse_all(struct plugin_rank *r, void *x, const struct plugin_memory *m)
{
    struct nccl_device_handle *device = NULL;
    void *got = NULL, *data = m->at, *mh = m->mh;
    size_t room = 100;
    int done = 0, tag = 1;

    REFUSED(r, "accept", net_accept(&r->t, x, &got, &device));
    REFUSED(r, "regMr", table_reg_mr(&r->t, x, data, 100, NCCL_PTR_HOST, &got));
    REFUSED(r, "deregMr", table_dereg_mr(&r->t, x, m->mh));
    REFUSED(r, "isend", net_isend(&r->t, x, data, 100, tag, m->mh, &got));
    REFUSED(r, "irecv", net_irecv(&r->t, x, 1, &data, &room, &tag, &mh, &got));
    REFUSED(r, "test", table_test(&r->t, x, &done, NULL));
    REFUSED(r, "closeSend", net_close_send(&r->t, x));
    REFUSED(r, "closeRecv", net_close_recv(&r->t, x));
    REFUSED(r, "closeListen", table_close_listen(&r->t, x));
}

void net_null(struct plugin_rank *r)
{
    struct connection c;
    struct plugin_memory m;

    net_strict_begin(r, &c, &m);
    refuse_all(r, NULL, &m);
    REFUSED(r, "devices", table_devices(&r->t, NULL));
    net_strict_end(r, &c, &m);
}

/* Uses an ended request, a closed communicator and a closed registration. */
void net_stale(struct plugin_rank *r)
{
    struct connection c, old;
    struct plugin_memory m, before;
    void *req, *mh, *comm;
    int done = 0;

    net_strict_begin(r, &c, &m);
    net_strict_begin(r, &old, &before);
    if (c.sends)
        memory_fill(&m, 0, 64, 2);
    req = c.sends ? send_start(r, &c, &m, 0, 64, 1)
                  : receive_start(r, &c, &m, 1, &(struct receive){0, 64, 1});
    request_finish(r, req, NULL);
    memory_expect(r, &m, 0, 64, 2, "the message");
    REFUSED(r, "test of a request that has ended", table_test(&r->t, req, &done, NULL));
    rank_barrier(r);
    mh = before.mh;
    comm = old.comm;
    memory_close(r, &old, &before);
    REFUSED(r, "deregMr again", table_dereg_mr(&r->t, old.comm, mh));
    connection_close(r, &old);
    refuse_all(r, comm, &m);
    net_strict_end(r, &c, &m);
}

/* Passes an object of the wrong kind. */
void net_wrong(struct plugin_rank *r)
{
    size_t room = 100;
    int done = 0, tag = 1;
    struct connection c;
    struct plugin_memory m;
    void *got = NULL, *data;

    net_strict_begin(r, &c, &m);
    data = m.at;
    REFUSED(r, "test of a communicator", table_test(&r->t, c.comm, &done, NULL));
    REFUSED(r, "closeListen of a connection", table_close_listen(&r->t, c.comm));
    if (c.sends) {
        REFUSED(r, "irecv by who sends",
                net_irecv(&r->t, c.comm, 1, &data, &room, &tag, &m.mh, &got));
        REFUSED(r, "closeRecv of who sends", net_close_recv(&r->t, c.comm));
    } else {
        REFUSED(r, "isend by who receives", net_isend(&r->t, c.comm, data, 100, tag, m.mh, &got));
        REFUSED(r, "closeSend of who receives", net_close_send(&r->t, c.comm));
    }
    if (r->t.version > 10)
        REFUSED(r, "finalize of a connection", table_finalize(&r->t, c.comm));
    net_strict_end(r, &c, &m);
}

void net_bad_arguments(struct plugin_rank *r)
{
    char handle[NCCL_HANDLE] = {0};
    void *got = NULL, *data[TABLE_GROUP], *mh[TABLE_GROUP];
    struct nccl_device_handle *device = NULL;
    size_t room[TABLE_GROUP] = {100};
    int tags[TABLE_GROUP] = {0}, most;
    struct nccl_props_v12 p;
    struct connection c;
    struct plugin_memory m;
    bool beyond;

    net_strict_begin(r, &c, &m);
    most = r->props.max_recvs;
    for (unsigned i = 0; i < TABLE_GROUP; i++)
        data[i] = m.at, mh[i] = m.mh;
    REFUSED(r, "getProperties of no device", table_properties(&r->t, r->devices, 0, &p, &beyond));
    REFUSED(r, "getProperties of device -1", table_properties(&r->t, -1, 0, &p, &beyond));
    REFUSED(r, "listen at no device", table_listen(&r->t, r->ctx, r->devices, handle, &got));
    REFUSED(r, "connect to an empty handle", net_connect(&r->t, r->ctx, 0, handle, &got, &device));
    REFUSED(r, "regMr of a GPU's memory",
            table_reg_mr(&r->t, c.comm, m.at, 100, NCCL_PTR_CUDA, &got));
    REFUSED(r, "regMr of nothing", table_reg_mr(&r->t, c.comm, NULL, 100, NCCL_PTR_HOST, &got));
    if (!c.sends && most < TABLE_GROUP)
        REFUSED(r, "irecv of more than maxRecvs",
                net_irecv(&r->t, c.comm, most + 1, data, room, tags, mh, &got));
    if (!c.sends)
        REFUSED(r, "irecv of no receive", net_irecv(&r->t, c.comm, 0, data, room, tags, mh, &got));
    if (c.sends)
        REFUSED(r, "isend from outside of the registration",
                net_isend(&r->t, c.comm, m.at + MEMORY_BYTES - 50, 100, 0, m.mh, &got));
    net_strict_end(r, &c, &m);
}

/* A message longer than its receive must give an error at one end, and write nothing beyond the
 * receive. */
void net_too_large(struct plugin_rank *r)
{
    struct connection c;
    struct plugin_memory m;
    void *req = NULL;
    int rc = 0, done = 0, errors;

    net_strict_begin(r, &c, &m);
    r->b->errors = 0;
    if (c.sends)
        memory_fill(&m, 0, 200, 1);
    rank_barrier(r);
    if (!c.sends)
        req = receive_start(r, &c, &m, 1, &(struct receive){0, 100, 1});
    while (!rc && !done) {
        if (c.sends && !req)
            rc = CALL(r, "isend", net_isend(&r->t, c.comm, m.at, 200, 1, m.mh, &req));
        else
            rc = CALL(r, "test", table_test(&r->t, req, &done, NULL));
        rank_pause(r);
    }
    r->b->errors += rc != 0;
    rank_barrier(r);
    errors = r->b->errors;
    rank_barrier(r);
    r->b->errors = 0;
    EXPECT(r, errors, "200 bytes were sent to a receive of 100: found no error, expected one");
    memset(m.at, MARK, c.sends ? 200 : 100); /* the posted bytes may have been written */
    memory_close(r, &c, &m);
    connection_close(r, &c);
}

void net_dmabuf(struct plugin_rank *r)
{
    struct connection c;
    struct plugin_memory m;
    void *mh = NULL;
    int rc;

    net_strict_begin(r, &c, &m);
    rc = CALL(r, "regMrDmaBuf", table_reg_dmabuf(&r->t, c.comm, m.at, 100, -1, &mh));
    EXPECT(r, rc, "regMrDmaBuf: found success with no DMA buffer, expected an error");
    net_strict_end(r, &c, &m);
}
