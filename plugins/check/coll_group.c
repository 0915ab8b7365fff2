/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugins/check/coll_group.h"
#include "plugins/check/marks.h"

#include <stdlib.h>
#include <string.h>

/* ---- communicators ---- */

static void buffer_open(struct plugin_rank *r, void *comm, struct buffer *b)
{
    uint8_t *all = aligned_alloc(4096, GROUP_BYTES + 2 * GROUP_EDGE);

    EXPECT(r, all, "out of memory");
    b->all = all;
    b->at = &all[GROUP_EDGE];
    b->mh = NULL;
    buffer_clear(b);
    MUST(r, "regMr", table_reg_mr(&r->t, comm, b->at, GROUP_BYTES, NCCL_PTR_HOST, &b->mh));
}

static void buffer_close(struct plugin_rank *r, void *comm, struct buffer *b)
{
    buffer_untouched(r, b, 0, GROUP_BYTES, "the end");
    MUST(r, "deregMr", table_dereg_mr(&r->t, comm, b->mh));
    free(b->all);
}

void group_open(struct plugin_rank *r, struct coll_group *g)
{
    void *handles[BOARD_RANKS], *listen = NULL;
    char mine[NCCL_HANDLE] = {0}, all[BOARD_RANKS][NCCL_HANDLE];

    MUST(r, "listen", table_listen(&r->t, r->ctx, 0, mine, &listen));
    EXPECT(r, listen, "listen: found NULL, expected a communicator");
    memcpy(r->b->rank[r->me].handle, mine, NCCL_HANDLE);
    rank_barrier(r);
    for (unsigned k = 0; k < r->n; k++) {
        memcpy(all[k], r->b->rank[k].handle, NCCL_HANDLE);
        handles[k] = all[k];
    }
    g->comm = RANK_POISON;
    MUST(r, "connect", coll_connect(&r->t, handles, (int)r->n, (int)r->me, listen, &g->comm));
    EXPECT(r, g->comm && g->comm != RANK_POISON, "connect: found %s, expected a communicator",
           g->comm ? "it unset" : "NULL");
    rank_barrier(r); /* the next call reuses the handles */
    MUST(r, "closeListen", table_close_listen(&r->t, listen));
    buffer_open(r, g->comm, &g->in);
    buffer_open(r, g->comm, &g->out);
}

void group_close(struct plugin_rank *r, struct coll_group *g)
{
    buffer_close(r, g->comm, &g->in);
    buffer_close(r, g->comm, &g->out);
    MUST(r, "closeColl", coll_close(&r->t, g->comm));
}

void buffer_clear(struct buffer *b)
{
    memset(b->all, MARK, GROUP_BYTES + 2 * GROUP_EDGE);
}

void buffer_untouched(struct plugin_rank *r, const struct buffer *b, size_t at, size_t n,
                      const char *what)
{
    const size_t all = GROUP_BYTES + 2 * GROUP_EDGE, front = GROUP_EDGE + at;
    size_t i = marks_broken(b->all, front);

    if (i == front)
        i += n + marks_broken(b->all + front + n, all - front - n);
    EXPECT(r, i == all, "%s: a byte was written that is none of %zu at %zu: the one at %td", what,
           n, at, (ptrdiff_t)i - (ptrdiff_t)GROUP_EDGE);
}

/* ---- elements ---- */

static const struct {
    const char *name;
    uint8_t size;
} types[NCCL_TYPES] = {
    {"int8", 1},    {"uint8", 1},    {"int32", 4},      {"uint32", 4},
    {"int64", 8},   {"uint64", 8},   {"float16", 2},    {"float32", 4},
    {"float64", 8}, {"bfloat16", 2}, {"float8e4m3", 1}, {"float8e5m2", 1},
};

size_t element_size(int type)
{
    return types[type].size;
}

const char *element_name(int type)
{
    return types[type].name;
}

const char *reduction_name(int op)
{
    static const char *const names[NCCL_OPS] = {"sum", "prod", "max", "min", "avg"};

    return names[op];
}

/* A small whole number as a float of e bits of exponent and m of mantissa. */
static unsigned narrow(int v, unsigned e, unsigned m)
{
    unsigned at = 0;

    if (!v)
        return 0;
    while (v >> (at + 1))
        at++;
    return (at + (1u << (e - 1)) - 1) << m | (((unsigned)v << 16 >> at) & 0xffff) >> (16 - m);
}

static void element_put(int type, void *to, size_t i, int v)
{
    uint8_t *at = (uint8_t *)to + i * element_size(type);
    int64_t whole = v;
    uint16_t half;
    float f = (float)v;
    double d = v;
    uint32_t bits;

    switch (type) {
    case NCCL_FLOAT32:
        memcpy(at, &f, sizeof(f));
        break;
    case NCCL_FLOAT64:
        memcpy(at, &d, sizeof(d));
        break;
    case NCCL_BFLOAT16:
        memcpy(&bits, &f, sizeof(bits));
        half = (uint16_t)(bits >> 16);
        memcpy(at, &half, sizeof(half));
        break;
    case NCCL_FLOAT16:
        half = (uint16_t)narrow(v, 5, 10);
        memcpy(at, &half, sizeof(half));
        break;
    case NCCL_FLOAT8E4M3:
        *at = (uint8_t)narrow(v, 4, 3);
        break;
    case NCCL_FLOAT8E5M2:
        *at = (uint8_t)narrow(v, 5, 2);
        break;
    default:
        memcpy(at, &whole, element_size(type)); /* little-endian */
    }
}

bool element_is(int type, const void *from, size_t i, int v)
{
    uint8_t want[8];

    element_put(type, want, 0, v);
    return !memcmp((const uint8_t *)from + i * element_size(type), want, element_size(type));
}

/* Values whose products and sums over up to 16 ranks are exact in the narrowest floats: at most two
 * ranks have 2 at an element, the others less. */
int element_value(unsigned rank, size_t i)
{
    size_t k = i + i / 61;

    return rank == k % 5 || rank == k % 7 ? 2 : (int)(k % 3 == 0 ? rank == k % 4 : k % 2);
}

/* What the contributions of all ranks are reduced to. */
static int element_reduced(const struct plugin_rank *r, int op, size_t i)
{
    int v = element_value(0, i);

    for (unsigned k = 1; k < r->n; k++) {
        int w = element_value(k, i);

        v = op == NCCL_PROD  ? v * w
            : op == NCCL_MAX ? (w > v ? w : v)
            : op == NCCL_MIN ? (w < v ? w : v)
                             : v + w;
    }
    return v;
}

void elements_fill(const struct plugin_rank *r, int type, void *to, size_t from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        element_put(type, to, i, element_value(r->me, from + i));
}

void elements_expect(struct plugin_rank *r, int type, int op, const void *at, size_t from, size_t n,
                     const char *what)
{
    for (size_t i = 0; i < n; i++) {
        int v = element_reduced(r, op, from + i);

        EXPECT(r, element_is(type, at, i, v),
               "%s, %s of %s, %zu elements: element %zu is not the expected %d", what,
               reduction_name(op), element_name(type), n, i, v);
    }
}

bool group_supports(struct plugin_rank *r, int type, int op)
{
    int supported = RANK_FILL;

    MUST(r, "reduceSupport", coll_reduce_support(&r->t, type, op, &supported));
    EXPECT(r, supported != RANK_FILL, "reduceSupport of %s of %s: it has left it unset",
           reduction_name(op), element_name(type));
    return supported;
}

/* ---- operations ---- */

static bool request_started(struct plugin_rank *r, void *req, const char *call)
{
    EXPECT(r, req != RANK_POISON, "%s: it has left the request unset, expected NULL or one", call);
    if (!req)
        rank_pause(r);
    return req;
}

#define START(r, call, what)                                                                       \
    void *req;                                                                                     \
                                                                                                   \
    r->spins = 0;                                                                                  \
    do {                                                                                           \
        req = RANK_POISON;                                                                         \
        MUST(r, call, what);                                                                       \
    } while (!request_started(r, req, call));                                                      \
    return req

void *group_allreduce(struct plugin_rank *r, struct coll_group *g, const void *send, void *recv,
                      size_t n, int type, int op)
{
    void *mh = send == recv ? g->out.mh : g->in.mh;

    START(r, "iallreduce",
          coll_iallreduce(&r->t, g->comm, (void *)(uintptr_t)send, recv, n, type, op, mh, g->out.mh,
                          &req));
}

void *group_allgather(struct plugin_rank *r, struct coll_group *g, void *send, void *window,
                      size_t block, size_t offset, size_t bytes)
{
    START(r, "iallgather",
          coll_iallgather(&r->t, g->comm, send, window, block, offset, bytes, g->in.mh, g->out.mh,
                          &req));
}

void *group_reducescatter(struct plugin_rank *r, struct coll_group *g, void *window, void *recv,
                          size_t block, size_t offset, size_t bytes, int type, int op)
{
    START(r, "ireducescatter",
          coll_ireducescatter(&r->t, g->comm, window, recv, block, offset, bytes, type, op,
                              g->in.mh, g->out.mh, &req));
}

void group_finish(struct plugin_rank *r, void *req)
{
    int size = 0, done = 0;

    for (r->spins = 0; !done;) {
        done = RANK_FILL;
        MUST(r, "test", table_test(&r->t, req, &done, &size));
        EXPECT(r, done == 0 || done == 1, "test: found done %#x, expected 0 or 1", (unsigned)done);
        if (!done)
            rank_pause(r);
    }
}
