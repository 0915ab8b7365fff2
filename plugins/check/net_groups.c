/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of receives: one request, with a tag and a size for each receive. */
#include "plugins/check/connection.h"
#include "plugins/check/net_cases.h"

#include "base/random.h"

#include <string.h>

#define PLACE  ((size_t)8192) /* bytes of memory per receive */
#define GROUPS 8              /* groups in flight, which fit into the memory */

static unsigned most_of(const struct plugin_rank *r)
{
    return r->props.max_recvs > TABLE_GROUP ? TABLE_GROUP : (unsigned)r->props.max_recvs;
}

static size_t place_of(unsigned group, unsigned i)
{
    return (group * TABLE_GROUP + i) * PLACE;
}

struct group {
    unsigned n, number;
    size_t sent[TABLE_GROUP], room[TABLE_GROUP];
    int tag[TABLE_GROUP];
};

static void *group_receive(struct plugin_rank *r, const struct connection *c,
                           const struct plugin_memory *m, const struct group *g)
{
    struct receive part[TABLE_GROUP];

    for (unsigned i = 0; i < g->n; i++)
        part[i] = (struct receive){place_of(g->number % GROUPS, i), g->room[i], g->tag[i]};
    return receive_start(r, c, m, (int)g->n, part);
}

static void group_check(struct plugin_rank *r, struct plugin_memory *m, const struct group *g,
                        void *req)
{
    int size[TABLE_GROUP];

    for (unsigned i = 0; i < TABLE_GROUP; i++)
        size[i] = RANK_FILL;
    request_finish(r, req, size);
    for (unsigned i = 0; i < g->n; i++) {
        EXPECT(r, size[i] == (int)g->sent[i],
               "test of a group of %u: receive %u: found a size of %d bytes, expected %zu", g->n, i,
               size[i], g->sent[i]);
        memory_expect(r, m, place_of(g->number % GROUPS, i), g->sent[i], g->number * 16 + i,
                      "a message of a group");
    }
    for (unsigned i = g->n; i < TABLE_GROUP; i++)
        EXPECT(r, size[i] == RANK_FILL, "test: it has written %u sizes, expected %u", i + 1, g->n);
}

/* Sends in another order than that of the receives. */
static void group_send(struct plugin_rank *r, const struct connection *c, struct plugin_memory *m,
                       const struct group *g, void **req)
{
    for (unsigned k = 0; k < g->n; k++) {
        unsigned i = (g->n - 1 - k + g->number) % g->n;
        size_t at = place_of(g->number % GROUPS, i);

        memory_fill(m, at, g->sent[i], g->number * 16 + i);
        req[i] = send_start(r, c, m, at, g->sent[i], g->tag[i]);
    }
}

static void group_sent(struct plugin_rank *r, struct plugin_memory *m, const struct group *g,
                       void **req)
{
    for (unsigned i = 0; i < g->n; i++) {
        sent_finish(r, req[i], g->sent[i]);
        memory_expect(r, m, place_of(g->number % GROUPS, i), g->sent[i], g->number * 16 + i,
                      "what was sent");
    }
}

static void group_pass(struct plugin_rank *r, const struct connection *c, struct plugin_memory *m,
                       const struct group *g)
{
    void *req[TABLE_GROUP];

    if (c->sends) {
        group_send(r, c, m, g, req);
        group_sent(r, m, g, req);
    } else {
        group_check(r, m, g, group_receive(r, c, m, g));
    }
}

static struct group group_of(unsigned number, unsigned n, bool larger)
{
    struct group g = {.n = n, .number = number};

    for (unsigned i = 0; i < n; i++) {
        g.tag[i] = (int)(100 + i * 3);
        g.sent[i] = (number * 37 + i * 1009) % (PLACE - 1) + 1;
        g.room[i] = larger ? PLACE : g.sent[i];
    }
    if (n > 2)
        g.sent[1] = 0;
    return g;
}

static void groups_check(struct plugin_rank *r, bool larger)
{
    struct connection c;
    struct plugin_memory m;
    unsigned most = most_of(r);

    connection_open(r, 0, &c);
    memory_open(r, &c, &m);
    for (unsigned k = 0; k < 2; k++)
        for (unsigned n = 1; n <= most; n++) {
            struct group g = group_of(k * 20 + n, n, larger);

            group_pass(r, &c, &m, &g);
        }
    rank_barrier(r);
    memory_close(r, &c, &m);
    connection_close(r, &c);
}

void net_groups(struct plugin_rank *r)
{
    groups_check(r, false);
}

void net_groups_larger(struct plugin_rank *r)
{
    groups_check(r, true);
}

/* Several groups with the same tags: messages must go to the oldest waiting one. */
void net_groups_in_flight(struct plugin_rank *r)
{
    struct group g[GROUPS];
    void *req[GROUPS][TABLE_GROUP];
    struct connection c;
    struct plugin_memory m;
    unsigned most = most_of(r);

    connection_open(r, 0, &c);
    memory_open(r, &c, &m);
    for (unsigned i = 0; i < GROUPS; i++) {
        g[i] = group_of(i, i % 2 ? most : (most + 1) / 2, i % 3 == 0);
        if (!c.sends)
            req[i][0] = group_receive(r, &c, &m, &g[i]);
    }
    rank_barrier(r);
    for (unsigned i = 0; c.sends && i < GROUPS; i++)
        group_send(r, &c, &m, &g[i], req[i]);
    for (unsigned i = GROUPS; i-- > 0;)
        if (c.sends)
            group_sent(r, &m, &g[i], req[i]);
        else
            group_check(r, &m, &g[i], req[i][0]);
    rank_barrier(r);
    memory_close(r, &c, &m);
    connection_close(r, &c);
}

/* Both ends draw the same numbers. */
void net_drawn(struct plugin_rank *r)
{
    uint64_t state = 20;
    struct connection c;
    struct plugin_memory m;
    unsigned most = most_of(r);

    connection_open(r, 0, &c);
    memory_open(r, &c, &m);
    for (unsigned number = 0; number < 100; number++) {
        struct group g = {.n = 1 + (unsigned)(random_next(&state) % most), .number = number};

        for (unsigned i = 0; i < g.n; i++) {
            /* equal in the lowest 8 or 16 bits */
            g.tag[i] = (int)(number + i * (number % 2 ? 256 : 65536));
            g.room[i] = 1 + random_next(&state) % PLACE;
            g.sent[i] = random_next(&state) % 4 ? random_next(&state) % (g.room[i] + 1) : g.room[i];
        }
        group_pass(r, &c, &m, &g);
    }
    rank_barrier(r);
    memory_close(r, &c, &m);
    connection_close(r, &c);
}
