/* SPDX-License-Identifier: BSD-3-Clause */
/* Early ends: communicators are closed, and the other rank dies. */
#include "plugins/check/connection.h"
#include "plugins/check/marks.h"
#include "plugins/check/net_cases.h"

#include <string.h>

#define MIB ((size_t)1 << 20)

/* ---- closing ---- */

/* A communicator is closed while receives wait; other communicators must go on. */
void net_close_requests(struct plugin_rank *r)
{
    struct connection c, other;
    struct plugin_memory m, more;
    int size = 0;

    connection_open(r, 0, &c);
    connection_open(r, 0, &other);
    memory_open(r, &c, &m);
    memory_open(r, &other, &more);
    for (unsigned i = 0; !c.sends && i < 4; i++)
        (void)receive_start(r, &c, &m, 1, &(struct receive){i * 4096, 4096, 1});
    rank_barrier(r);
    memory_close(r, &c, &m);
    connection_close(r, &c);
    if (other.sends) {
        memory_fill(&more, 0, 5000, 3);
        sent_finish(r, send_start(r, &other, &more, 0, 5000, 2), 5000);
    } else {
        request_finish(r, receive_start(r, &other, &more, 1, &(struct receive){0, 5000, 2}), &size);
        EXPECT(r, size == 5000, "test: found a size of %d bytes, expected 5000", size);
    }
    memory_expect(r, &more, 0, 5000, 3, "the message");
    rank_barrier(r);
    memory_close(r, &other, &more);
    connection_close(r, &other);
}

/* A listening communicator is closed, before and after a connect has sent to it. */
void net_close_early(struct plugin_rank *r)
{
    struct nccl_device_handle *device = NULL;
    void *listen, *comm = NULL;
    struct connection c;
    struct plugin_memory m;
    char handle[NCCL_HANDLE];
    int rc = 0;

    connection_listen(r, 0, &listen);
    if (listen)
        MUST(r, "closeListen", table_close_listen(&r->t, listen));
    connection_listen(r, 0, &listen);
    rank_barrier(r);
    memcpy(handle, r->b->rank[1].handle, NCCL_HANDLE);
    for (int i = 0; !r->me && !rc && !comm && i < 3; i++)
        rc = CALL(r, "connect", net_connect(&r->t, r->ctx, 0, handle, &comm, &device));
    rank_barrier(r);
    if (listen)
        MUST(r, "closeListen", table_close_listen(&r->t, listen));
    rank_barrier(r);
    /* whatever that connect returned, the next one must work */
    connection_open(r, 0, &c);
    memory_open(r, &c, &m);
    if (c.sends)
        sent_finish(r, send_start(r, &c, &m, 0, 64, 1), 64);
    else
        request_finish(r, receive_start(r, &c, &m, 1, &(struct receive){0, 64, 1}), NULL);
    rank_barrier(r);
    memory_close(r, &c, &m);
    connection_close(r, &c);
    if (comm)
        MUST(r, "closeSend", net_close_send(&r->t, comm));
}

/* ---- the other rank is killed ---- */

/* Whether there is an error. Fails the case if none comes in time. */
static bool noticed(struct plugin_rank *r, int rc, int64_t since)
{
    EXPECT(r, rc || board_ms() - since < r->b->dead_s * 1000ll,
           "the other rank was killed %u s ago: found no error of %s, expected one", r->b->dead_s,
           r->b->rank[r->me].call);
    rank_pause(r);
    return rc;
}

static void net_faults_begin(struct plugin_rank *r, struct connection *c, struct plugin_memory *m)
{
    connection_open(r, 0, c);
    memory_open(r, c, m);
    if (c->sends) {
        memory_fill(m, 0, 1000, 1);
        sent_finish(r, send_start(r, c, m, 0, 1000, 1), 1000);
    } else {
        request_finish(r, receive_start(r, c, m, 1, &(struct receive){0, 1000, 1}), NULL);
    }
    memory_expect(r, m, 0, 1000, 1, "the message");
    rank_barrier(r);
}

/* The surviving rank closes everything. */
static void net_faults_end(struct plugin_rank *r, struct connection *c, struct plugin_memory *m)
{
    memory_close(r, c, m);
    connection_close(r, c);
}

void net_killed_sender(struct plugin_rank *r)
{
    struct connection c;
    struct plugin_memory m;
    int64_t since;
    int rc = 0, done = 0, size = 0;
    void *req;

    net_faults_begin(r, &c, &m);
    if (!r->me)
        rank_dies(r);
    since = board_ms();
    req = receive_start(r, &c, &m, 1, &(struct receive){0, MIB, 1});
    do {
        rc = CALL(r, "test", table_test(&r->t, req, &done, &size));
        EXPECT(r, rc || !done, "test: found a message of %d bytes done, and nobody has sent", size);
    } while (!noticed(r, rc, since));
    net_faults_end(r, &c, &m);
}

/* Tests the request in flight, or sends once more. */
static int send_step(struct plugin_rank *r, const struct connection *c,
                     const struct plugin_memory *m, void **req)
{
    int rc, done = 0;

    if (!*req)
        return CALL(r, "isend", net_isend(&r->t, c->comm, m->at, MIB, 1, m->mh, req));
    rc = CALL(r, "test", table_test(&r->t, *req, &done, NULL));
    if (done)
        *req = NULL;
    return rc;
}

/* The receiver dies after it has announced receives, so that messages are in flight to it. */
void net_killed_receiver(struct plugin_rank *r)
{
    struct connection c;
    struct plugin_memory m;
    void *req = NULL;
    int64_t since;

    net_faults_begin(r, &c, &m);
    if (r->me)
        (void)receive_start(r, &c, &m, 1, &(struct receive){0, MIB, 1});
    rank_barrier(r);
    if (r->me)
        rank_dies(r);
    since = board_ms();
    while (!noticed(r, send_step(r, &c, &m, &req), since))
        ;
    net_faults_end(r, &c, &m);
}

/* The sender dies with messages in flight: messages that arrive must be complete. */
void net_killed_in_flight(struct plugin_rank *r)
{
    struct connection c;
    struct plugin_memory m;
    void *req = NULL;
    int64_t since = 0;
    int rc = 0;

    net_faults_begin(r, &c, &m);
    memory_fill(&m, 0, MIB, 5);
    for (unsigned i = 0; c.sends && i < 4; i++)
        req = send_start(r, &c, &m, 0, MIB, 1);
    if (c.sends) {
        (void)request_test(r, req, NULL);
        rank_dies(r);
    }
    memset(m.at, MARK, MIB);
    do {
        int done = 0, size = 0, tag = 1;
        size_t room = MIB;

        if (!req)
            rc = CALL(r, "irecv",
                      net_irecv(&r->t, c.comm, 1, &(void *){m.at}, &room, &tag, &m.mh, &req));
        if (req && !rc)
            rc = CALL(r, "test", table_test(&r->t, req, &done, &size));
        if (!since && r->b->dying)
            since = board_ms();
        if (done && !rc) {
            EXPECT(r, size == (int)MIB, "test: found a size of %d bytes, expected %zu", size, MIB);
            memory_expect(r, &m, 0, MIB, 5, "a message of who was killed then");
            req = NULL;
        }
    } while (!noticed(r, rc, since ? since : board_ms()));
    memset(m.at, MARK, MIB); /* a part of a message may have arrived */
    net_faults_end(r, &c, &m);
}
