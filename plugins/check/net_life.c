/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices, contexts, connections, registrations. */
#include "plugins/check/connection.h"
#include "plugins/check/net_cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- properties ---- */

#define RANGE(field, least, most)                                                                  \
    EXPECT(r, p->field >= (least) && p->field <= (most),                                           \
           "getProperties: " #field ": found %lld, expected %lld to %lld", (long long)p->field,    \
           (long long)(least), (long long)(most))

static void properties_sound(struct plugin_rank *r, const struct nccl_props_v12 *p)
{
    EXPECT(r, p->name && *p->name && strlen(p->name) < 256,
           "getProperties: name: found %s, expected a text",
           p->name ? "none or a long one" : "NULL");
    EXPECT(r, !p->pci_path || *p->pci_path == '/',
           "getProperties: pciPath: found '%s', expected NULL or a path", p->pci_path);
    EXPECT(
        r, p->ptr_support & NCCL_PTR_HOST && p->ptr_support < 8,
        "getProperties: ptrSupport: found %#x, expected bits of 7, and that of the host's memory",
        (unsigned)p->ptr_support);
    RANGE(reg_is_global, 0, 1);
    RANGE(force_flush, 0, 1);
    RANGE(speed, 1, 100000000);
    RANGE(port, 0, 65535);
    EXPECT(r, isfinite(p->latency) && p->latency >= 0 && p->latency < 1e6f,
           "getProperties: latency: found %g us", (double)p->latency);
    RANGE(max_comms, 1, INT_MAX);
    RANGE(max_recvs, 1, r->t.coll ? INT_MAX : 8);
    RANGE(device_type, 0, 0);
    RANGE(vdev.ndevs, 1, r->t.version < 12 ? 4 : 8);
    RANGE(max_p2p_bytes, 1, NCCL_MAX_BYTES);
    RANGE(max_coll_bytes, 1, NCCL_MAX_BYTES);
    RANGE(max_multi_request_size, 1, 1024);
    RANGE(rail_id, -1, INT16_MAX);
    RANGE(plane_id, -1, INT16_MAX);
    for (int i = 0; r->t.version > 8 && i < p->vdev.ndevs; i++)
        RANGE(vdev.devs[i], 0, INT_MAX);
}

/* Checks that getProperties() sets all members: finds those that keep their old contents. */
static void properties_set(struct plugin_rank *r, const struct nccl_props_v12 *a,
                           const struct nccl_props_v12 *b)
{
#define SET(f) EXPECT(r, a->f == b->f, "getProperties: " #f ": it has left it unset")
    SET(name);
    SET(pci_path);
    SET(guid);
    SET(ptr_support);
    SET(reg_is_global);
    SET(force_flush);
    SET(speed);
    SET(port);
    SET(max_comms);
    SET(max_recvs);
    SET(device_type);
    SET(device_version);
    SET(vdev.ndevs);
    SET(max_p2p_bytes);
    SET(max_coll_bytes);
    SET(max_multi_request_size);
    SET(rail_id);
    SET(plane_id);
    EXPECT(r, !memcmp(&a->latency, &b->latency, sizeof(a->latency)),
           "getProperties: latency: it has left it unset");
}

/* Checks that all tables of a plug-in report the same device. */
static void properties_same(struct plugin_rank *r, const struct nccl_props_v12 *p)
{
    struct board *b = r->b;
    const struct nccl_props_v12 *q = &b->first_props;

    if (r->me)
        return;
    if (!b->prop_seen) {
        b->first_props = *p;
        b->first_table = b->table;
        snprintf(b->first_name, sizeof(b->first_name), "%s", p->name);
        b->prop_seen = true;
        return;
    }
#define SAME_AS(f)                                                                                 \
    EXPECT(r, p->f == q->f, "getProperties: " #f ": found %lld, expected the %lld of table %s",    \
           (long long)p->f, (long long)q->f, table_name(b->first_table))
    EXPECT(r, !strncmp(p->name, b->first_name, sizeof(b->first_name) - 1),
           "getProperties: name: found '%s', expected the '%s' of table %s", p->name, b->first_name,
           table_name(b->first_table));
    SAME_AS(guid);
    SAME_AS(speed);
    SAME_AS(port);
    SAME_AS(ptr_support);
    SAME_AS(max_comms);
}

void case_properties(struct plugin_rank *r)
{
    for (int d = 0; d < r->devices; d++) {
        struct nccl_props_v12 p, q;
        bool beyond;

        MUST(r, "getProperties", table_properties(&r->t, d, 0x5a, &p, &beyond));
        EXPECT(r, !beyond, "getProperties: it has written behind the struct of version %d",
               r->t.version);
        MUST(r, "getProperties", table_properties(&r->t, d, 0xa5, &q, &beyond));
        properties_set(r, &p, &q);
        properties_sound(r, &p);
        if (!d)
            properties_same(r, &p);
    }
}

/* ---- contexts ---- */

/* Contexts of several NCCL communicators in one process: each is closed by itself. */
void case_contexts(struct plugin_rank *r)
{
    char handle[NCCL_HANDLE] = {0};
    void *ctx, *listen = NULL;
    int n = 0;

    EXPECT(r, r->ctx, "init: found no context, expected one from version 11 on");
    MUST(r, "init", table_init(&r->t, &ctx, 8, rank_log));
    EXPECT(r, ctx && ctx != r->ctx, "init: found the context of another communicator");
    MUST(r, "devices", table_devices(&r->t, &n));
    EXPECT(r, n == r->devices, "devices: found %d, expected the %d of before", n, r->devices);
    MUST(r, "finalize", table_finalize(&r->t, ctx));
    MUST(r, "listen", table_listen(&r->t, r->ctx, 0, handle, &listen));
    EXPECT(r, listen, "listen: found NULL, expected a communicator");
    MUST(r, "closeListen", table_close_listen(&r->t, listen));
}

/* ---- connections ---- */

static void message_one(struct plugin_rank *r, const struct connection *c, struct plugin_memory *m,
                        unsigned seed)
{
    const size_t n = 1000;
    int size = RANK_FILL;

    if (c->sends) {
        memory_fill(m, 0, n, seed);
        sent_finish(r, send_start(r, c, m, 0, n, 3), n);
        memory_expect(r, m, 0, n, seed, "what was sent");
        return;
    }
    request_finish(r, receive_start(r, c, m, 1, &(struct receive){0, n, 3}), &size);
    EXPECT(r, size == (int)n, "test: found %d bytes, expected %zu", size, n);
    memory_expect(r, m, 0, n, seed, "the message");
}

static void message_check(struct plugin_rank *r, const struct connection *c, unsigned seed)
{
    struct plugin_memory m;

    memory_open(r, c, &m);
    message_one(r, c, &m, seed);
    memory_close(r, c, &m);
}

/* No call may wait for the other end, which is at a barrier. */
void net_would_block(struct plugin_rank *r)
{
    char handle[NCCL_HANDLE];
    struct nccl_device_handle *device = NULL;
    struct connection c = {.sends = !r->me};
    void *listen, *comm = NULL;

    connection_listen(r, 0, &listen);
    rank_barrier(r);
    memcpy(handle, r->b->rank[1].handle, NCCL_HANDLE);
    for (int i = 0; r->me && i < 20; i++) {
        MUST(r, "accept", net_accept(&r->t, listen, &comm, &device));
        EXPECT(r, !comm, "accept: found a communicator, and nobody has connected");
    }
    rank_barrier(r);
    for (int i = 0; !r->me && !c.comm && i < 20; i++)
        MUST(r, "connect", net_connect(&r->t, r->ctx, 0, handle, &c.comm, &device));
    rank_barrier(r);
    while (!c.comm) {
        if (r->me)
            MUST(r, "accept", net_accept(&r->t, listen, &c.comm, &device));
        else
            MUST(r, "connect", net_connect(&r->t, r->ctx, 0, handle, &c.comm, &device));
        rank_pause(r);
    }
    message_check(r, &c, 1);
    rank_barrier(r);
    connection_close(r, &c);
    if (listen)
        MUST(r, "closeListen", table_close_listen(&r->t, listen));
}

/* Six connections at the same time, in both directions; messages must not mix. */
void net_several(struct plugin_rank *r)
{
    struct connection c[6];
    struct plugin_memory m[6];
    unsigned n = sizeof(c) / sizeof(c[0]);

    for (unsigned i = 0; i < n; i++) {
        connection_open(r, i % 2, &c[i]);
        for (unsigned k = 0; k < i; k++)
            EXPECT(r, c[k].comm != c[i].comm, "%s: found the communicator of another connection",
                   c[i].sends ? "connect" : "accept");
        memory_open(r, &c[i], &m[i]);
    }
    for (unsigned k = 0; k < 2 * n; k++)
        message_one(r, &c[k * 5 % n], &m[k * 5 % n], k);
    rank_barrier(r);
    for (unsigned i = n; i-- > 0;) {
        memory_close(r, &c[i], &m[i]);
        connection_close(r, &c[i]);
        if (i)
            message_one(r, &c[0], &m[0], i);
    }
}

void net_reopen(struct plugin_rank *r)
{
    for (unsigned i = 0; i < 10; i++) {
        struct connection c;

        connection_open(r, i / 2 % 2, &c);
        message_check(r, &c, i);
        connection_close(r, &c);
    }
}

/* Several connections by one listening communicator. */
void net_one_listen(struct plugin_rank *r)
{
    struct connection c[3];
    void *listen;

    connection_listen(r, 0, &listen);
    rank_barrier(r);
    for (unsigned i = 0; i < 3; i++)
        connection_meet(r, 0, listen, &c[i]);
    rank_barrier(r);
    if (listen)
        MUST(r, "closeListen", table_close_listen(&r->t, listen));
    for (unsigned i = 0; i < 3; i++)
        message_check(r, &c[i], i);
    rank_barrier(r);
    for (unsigned i = 0; i < 3; i++)
        connection_close(r, &c[i]);
}

/* ---- memory ---- */

/* Memory that is registered twice stays registered after one deregistration, and so does other
 * memory. */
void net_register(struct plugin_rank *r)
{
    struct connection c;
    struct plugin_memory m, other;
    void *again;

    connection_open(r, 0, &c);
    memory_open(r, &c, &m);
    memory_open(r, &c, &other);
    memory_register(r, &c, m.at, MEMORY_BYTES, &again);
    for (unsigned i = 0; i < 4; i++) {
        message_one(r, &c, i % 2 ? &other : &m, i);
        if (i == 1) {
            MUST(r, "deregMr", table_dereg_mr(&r->t, c.comm, m.mh));
            m.mh = again;
        }
    }
    rank_barrier(r);
    memory_close(r, &c, &other);
    message_one(r, &c, &m, 9);
    memory_close(r, &c, &m);
    connection_close(r, &c);
}
