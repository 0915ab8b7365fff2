/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages with one receive each. */
#include "plugins/check/connection.h"
#include "plugins/check/net_cases.h"

#include <stdio.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

struct message {
    size_t at, n, room; /* offset at both ends; bytes sent; bytes of the receive */
    unsigned seed;
};

static void message_pass(struct plugin_rank *r, const struct connection *c, struct plugin_memory *m,
                         const struct message *x)
{
    struct receive part = {x->at, x->room, (int)x->seed};
    int size = RANK_FILL;
    char what[64];

    if (c->sends) {
        memory_fill(m, x->at, x->n, x->seed);
        sent_finish(r, send_start(r, c, m, x->at, x->n, (int)x->seed), x->n);
        memory_expect(r, m, x->at, x->n, x->seed, "what was sent");
        return;
    }
    request_finish(r, receive_start(r, c, m, 1, &part), &size);
    EXPECT(r, size != RANK_FILL, "test: it has left the size of a message unset");
    EXPECT(r, size == (int)x->n, "test: found a size of %d bytes, expected %zu of a receive of %zu",
           size, x->n, x->room);
    snprintf(what, sizeof(what), "a message of %zu bytes at %zu", x->n, x->at);
    memory_expect(r, m, x->at, x->n, x->seed, what);
    if (x->n > 65536)
        memory_untouched(r, m);
}

static void net_messages_begin(struct plugin_rank *r, struct connection *c, struct plugin_memory *m)
{
    connection_open(r, 0, c);
    memory_open(r, c, m);
}

static void net_messages_end(struct plugin_rank *r, struct connection *c, struct plugin_memory *m)
{
    rank_barrier(r);
    memory_close(r, c, m);
    connection_close(r, c);
}

static const size_t sizes[] = {0,    1,     2,     3,     7,      8,       63,
                               64,   65,    255,   1000,  4095,   4096,    4097,
                               8191, 65535, 65536, 65537, 100003, MIB - 1, MIB};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

void net_sizes(struct plugin_rank *r)
{
    struct connection c;
    struct plugin_memory m;

    net_messages_begin(r, &c, &m);
    for (unsigned i = 0; i < SIZES; i++)
        message_pass(r, &c, &m, &(struct message){0, sizes[i], sizes[i], i});
    net_messages_end(r, &c, &m);
}

void net_larger(struct plugin_rank *r)
{
    struct connection c;
    struct plugin_memory m;

    net_messages_begin(r, &c, &m);
    for (unsigned i = 0; i < SIZES; i++)
        message_pass(r, &c, &m, &(struct message){0, sizes[i], 2 * MIB, i});
    net_messages_end(r, &c, &m);
}

/* Messages of all alignments, up to both ends of the registered memory. */
void net_windows(struct plugin_rank *r)
{
    struct connection c;
    struct plugin_memory m;

    net_messages_begin(r, &c, &m);
    for (unsigned i = 1; i < 40; i++) {
        size_t n = i * i * i % 9001, at = i % 3 == 0 ? MEMORY_BYTES - n : i % 3 == 1 ? i : i * 4099;

        message_pass(r, &c, &m, &(struct message){at, n, n, i});
    }
    message_pass(r, &c, &m, &(struct message){1, MIB, MIB, 40});
    net_messages_end(r, &c, &m);
}

/* ---- who comes first ---- */

#define LOOKS 200

void net_early_receive(struct plugin_rank *r)
{
    struct connection c;
    struct plugin_memory m;
    void *req = NULL;

    net_messages_begin(r, &c, &m);
    if (!c.sends) {
        req = receive_start(r, &c, &m, 1, &(struct receive){64, 100, 1});
        for (unsigned i = 0; i < LOOKS; i++)
            EXPECT(r, !request_test(r, req, NULL),
                   "test: found a receive done, and nobody has sent");
    }
    rank_barrier(r);
    if (c.sends) {
        memory_fill(&m, 64, 100, 1);
        sent_finish(r, send_start(r, &c, &m, 64, 100, 1), 100);
    } else {
        request_finish(r, req, NULL);
    }
    memory_expect(r, &m, 64, 100, 1, "the message");
    net_messages_end(r, &c, &m);
}

/* isend must return, with or without a request, while there is no receive. */
void net_early_send(struct plugin_rank *r)
{
    struct connection c;
    struct plugin_memory m;
    void *req = NULL;
    int size = 0;

    net_messages_begin(r, &c, &m);
    if (c.sends) {
        memory_fill(&m, 0, MIB, 1);
        for (unsigned i = 0; i < LOOKS && !req; i++)
            req = send_try(r, &c, &m, 0, MIB, 1);
    }
    rank_barrier(r);
    if (c.sends) {
        sent_finish(r, req ? req : send_start(r, &c, &m, 0, MIB, 1), MIB);
    } else {
        request_finish(r, receive_start(r, &c, &m, 1, &(struct receive){0, MIB, 1}), &size);
        EXPECT(r, size == (int)MIB, "test: found a size of %d bytes, expected %zu", size, MIB);
    }
    memory_expect(r, &m, 0, MIB, 1, "the message");
    net_messages_end(r, &c, &m);
}

/* ---- many ---- */

static size_t bytes_of(unsigned i)
{
    return i % 5 * 1777 + i;
}

/* `stride` is prime to NCCL_REQUESTS: request i is tested as the i * stride-th. */
static void many(struct plugin_rank *r, const struct connection *c, struct plugin_memory *m,
                 unsigned stride, unsigned seed)
{
    void *req[NCCL_REQUESTS];

    for (unsigned i = 0; i < NCCL_REQUESTS; i++) {
        struct receive part = {i * 16384, 16384, (int)(seed + i)};

        if (c->sends)
            memory_fill(m, part.at, bytes_of(i), seed + i);
        req[i] = c->sends ? send_start(r, c, m, part.at, bytes_of(i), part.tag)
                          : receive_start(r, c, m, 1, &part);
        for (unsigned k = 0; k < i; k++)
            EXPECT(r, req[k] != req[i], "found one request for messages %u and %u in flight", k, i);
    }
    for (unsigned k = 0; k < NCCL_REQUESTS; k++) {
        unsigned i = (k * stride + stride - 1) % NCCL_REQUESTS;
        int size = RANK_FILL;

        request_finish(r, req[i], &size);
        EXPECT(r, c->sends || size == (int)bytes_of(i),
               "test of message %u of %d: found a size of %d bytes, expected %zu", i, NCCL_REQUESTS,
               size, bytes_of(i));
        memory_expect(r, m, i * 16384, bytes_of(i), seed + i, "a message of 32 in flight");
    }
}

void net_in_flight(struct plugin_rank *r)
{
    struct connection c;
    struct plugin_memory m;

    net_messages_begin(r, &c, &m);
    for (unsigned i = 0; i < 8; i++)
        many(r, &c, &m, 1, i * 40);
    net_messages_end(r, &c, &m);
}

void net_orders(struct plugin_rank *r)
{
    static const unsigned strides[] = {31, 13, 7};
    struct connection c;
    struct plugin_memory m;

    net_messages_begin(r, &c, &m);
    for (unsigned i = 0; i < 3; i++)
        many(r, &c, &m, strides[i], i * 40);
    net_messages_end(r, &c, &m);
}

/* ---- arguments that NCCL leaves out ---- */

void net_no_sizes(struct plugin_rank *r)
{
    struct connection c;
    struct plugin_memory m;

    net_messages_begin(r, &c, &m);
    for (unsigned i = 0; i < 4; i++) {
        if (c.sends)
            memory_fill(&m, 10, 100, i);
        request_finish(r,
                       c.sends ? send_start(r, &c, &m, 10, 100, 0)
                               : receive_start(r, &c, &m, 1, &(struct receive){10, 100, 0}),
                       NULL);
        memory_expect(r, &m, 10, 100, i, "the message");
    }
    net_messages_end(r, &c, &m);
}

/* From version 9 on, NCCL may pass that it does not need the completion of the receive. */
void net_optional(struct plugin_rank *r)
{
    struct connection c;
    struct plugin_memory m;

    net_messages_begin(r, &c, &m);
    for (unsigned i = 0; i < 4; i++) {
        size_t room = 100;
        int tag = 2;
        void *req = NULL;

        if (c.sends) {
            memory_fill(&m, 0, 100, i);
            sent_finish(r, send_start(r, &c, &m, 0, 100, tag), 100);
        }
        for (r->spins = 0; !c.sends && !req; rank_pause(r)) {
            req = NCCL_RECV_OPTIONAL;
            MUST(r, "irecv",
                 net_irecv(&r->t, c.comm, 1, &(void *){m.at}, &room, &tag, &m.mh, &req));
            EXPECT(r, req != NCCL_RECV_OPTIONAL, "irecv: it has left the request unset");
        }
        if (!c.sends)
            request_finish(r, req, NULL);
        rank_barrier(r); /* wait until the sender is done */
        memory_expect(r, &m, 0, 100, i, "the message");
    }
    net_messages_end(r, &c, &m);
}

/* ---- flush ---- */

static void flush_one(struct plugin_rank *r, const struct connection *c, struct plugin_memory *m,
                      size_t at, int size)
{
    void *req = RANK_POISON, *data = m->at + at;

    MUST(r, "iflush", net_iflush(&r->t, c->comm, 1, &data, &size, &m->mh, &req));
    EXPECT(r, req != RANK_POISON, "iflush: it has left the request unset, expected NULL or one");
    if (req)
        request_finish(r, req, NULL);
}

void net_flush(struct plugin_rank *r)
{
    static const size_t lengths[] = {1, 4096, 100003, 0, 17};
    struct connection c;
    struct plugin_memory m;

    net_messages_begin(r, &c, &m);
    for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        size_t n = lengths[i], at = i * 131;
        int size = 0;

        if (c.sends) {
            memory_fill(&m, at, n, i);
            sent_finish(r, send_start(r, &c, &m, at, n, 0), n);
        } else {
            request_finish(r, receive_start(r, &c, &m, 1, &(struct receive){at, n, 0}), &size);
            if (size) /* NCCL flushes nothing else */
                flush_one(r, &c, &m, at, size);
        }
        memory_expect(r, &m, at, n, i, "the message after its flush");
    }
    net_messages_end(r, &c, &m);
}

/* ---- both directions ---- */

void net_both_ways(struct plugin_rank *r)
{
    struct connection c[2];
    struct plugin_memory m[2];
    const size_t n = MIB;

    for (unsigned k = 0; k < 2; k++) {
        connection_open(r, k, &c[k]);
        memory_open(r, &c[k], &m[k]);
    }
    for (unsigned i = 0; i < 4; i++) {
        void *req[2] = {NULL, NULL};
        bool done[2] = {false, false};

        memory_fill(&m[r->me], 0, n, i * 2 + r->me); /* rank k sends by connection k */
        for (r->spins = 0; !done[0] || !done[1]; rank_pause(r))
            for (unsigned k = 0; k < 2; k++) {
                if (!req[k])
                    req[k] = c[k].sends
                                 ? send_try(r, &c[k], &m[k], 0, n, 0)
                                 : receive_try(r, &c[k], &m[k], 1, &(struct receive){0, n, 0});
                if (req[k] && !done[k])
                    done[k] = request_test(r, req[k], NULL);
            }
        for (unsigned k = 0; k < 2; k++)
            memory_expect(r, &m[k], 0, n, i * 2 + k, "the message");
    }
    rank_barrier(r);
    for (unsigned k = 0; k < 2; k++) {
        memory_close(r, &c[k], &m[k]);
        connection_close(r, &c[k]);
    }
}
