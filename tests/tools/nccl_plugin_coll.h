/* SPDX-License-Identifier: BSD-3-Clause */
/* CollNet as NCCL calls it: what ranks get is compared with what it must be. */
#ifndef TRIB_TESTS_TOOLS_NCCL_PLUGIN_COLL_H
#define TRIB_TESTS_TOOLS_NCCL_PLUGIN_COLL_H

#include "nccl_plugin.h"

#include <signal.h>

#define MOST     16
#define ELEMENTS 30011u

static void *comm;

static uint8_t pattern(size_t i, unsigned seed)
{
    return (uint8_t)(i * 7 + i / 251 + seed);
}

static void *each[MOST], *mhs[2];
static char all_handles[MOST][NCCL_HANDLE];
static uint8_t *in, *out;
static size_t room;

static void coll_open(void)
{
    char mine[NCCL_HANDLE] = {0};
    void *listening;

    must(!table_listen(&coll, coll_ctx, 0, mine, &listening), "listen");
    exchange(mine, all_handles);
    for (int r = 0; r < size; r++)
        each[r] = all_handles[r];
    must(!COLL(connect)(each, size, rank, listening, &comm), "connect");
    must(!COLL(close_listen)(listening), "close");
    must(!COLL(reg_mr)(comm, in, room, NCCL_PTR_HOST, &mhs[0]), "memory");
    must(!COLL(reg_mr)(comm, out, room, NCCL_PTR_HOST, &mhs[1]), "memory");
}

static void coll_leave(void)
{
    must(!COLL(dereg_mr)(comm, mhs[0]) && !COLL(dereg_mr)(comm, mhs[1]), "memory");
    must(!COLL(close_coll)(comm), "close");
}

static void coll_finish(void *req)
{
    int got = 0;

    must(req, "a request");
    for (int done = 0; !done; sched_yield())
        must(!COLL(test)(req, &done, &got), "test");
    checked++;
}

/* Small whole numbers, exact in every type. */
static int value(int r, size_t i)
{
    return (r * 3 + (int)(i % 5)) % 7;
}

static int reduced(int op, size_t i)
{
    int v = value(0, i);

    for (int r = 1; r < size; r++) {
        int w = value(r, i);

        v = op == NCCL_SUM ? v + w : op == NCCL_MIN ? (w < v ? w : v) : (w > v ? w : v);
    }
    return v;
}

static size_t width(int type)
{
    return type == NCCL_INT8 ? 1 : type == NCCL_BFLOAT16 ? 2 : 4;
}

static void put(void *to, int type, size_t i, int v)
{
    float f = (float)v;
    uint32_t bits;

    memcpy(&bits, &f, 4);
    if (type == NCCL_INT8)
        ((int8_t *)to)[i] = (int8_t)v;
    else if (type == NCCL_BFLOAT16)
        ((uint16_t *)to)[i] = (uint16_t)(bits >> 16);
    else
        memcpy((uint8_t *)to + 4 * i, &bits, 4);
}

static bool is(const void *from, int type, size_t i, int v)
{
    uint8_t want[4];

    put(want, type, 0, v);
    return !memcmp((const uint8_t *)from + i * width(type), want, width(type));
}

static void allreduce(int type, int op, size_t n)
{
    void *req = NULL;

    for (size_t i = 0; i < n; i++)
        put(in, type, i, value(rank, i));
    must(!coll_iallreduce(&coll, comm, in, out, n, type, op, mhs[0], mhs[1], &req), "allreduce");
    coll_finish(req);
    for (size_t i = 0; i < n; i++)
        must(is(out, type, i, reduced(op, i)), "type %d, reduction %d, element %zu", type, op, i);
}

/* Many at once, tested in another order. */
static void allreduce_many(void)
{
    void *req[64];
    size_t n = 100;

    for (size_t i = 0; i < 64 * n; i++)
        put(in, NCCL_FLOAT32, i, value(rank, i));
    for (unsigned k = 0; k < 64; k++)
        must(!coll_iallreduce(&coll, comm, in + k * n * 4, out + k * n * 4, n, NCCL_FLOAT32,
                              NCCL_SUM, mhs[0], mhs[1], &req[k]) &&
                 req[k],
             "request %u", k);
    for (unsigned k = 64; k-- > 0;)
        coll_finish(req[k]);
    for (size_t i = 0; i < 64 * n; i++)
        must(is(out, NCCL_FLOAT32, i, reduced(NCCL_SUM, i)), "element %zu", i);
}

/* Where NCCL points to in a rank's own block: where the window starts, if that is within it. */
static size_t own_part(size_t at, size_t block)
{
    size_t own = block * (size_t)rank;

    return at > own && at < own + block ? at - own : 0;
}

static void windows(size_t block, size_t step)
{
    size_t all = block * (size_t)size, n;
    void *req = NULL;

    for (size_t i = 0; i < block; i++)
        in[i] = pattern(i, (unsigned)rank);
    memset(out, 0xee, all);
    for (size_t at = 0; at < all; at += n) {
        n = all - at < step ? all - at : step;
        must(!coll_iallgather(&coll, comm, in + own_part(at, block), out + at, block, at, n, mhs[0],
                              mhs[1], &req),
             "allgather");
        coll_finish(req);
    }
    for (size_t i = 0; i < all; i++)
        must(out[i] == pattern(i % block, (unsigned)(i / block)), "allgather: byte %zu", i);
    for (size_t i = 0; i < all / 4; i++)
        put(in, NCCL_FLOAT32, i, value(rank, i));
    for (size_t at = 0; at < all; at += n) {
        n = all - at < step ? all - at : step;
        must(!coll_ireducescatter(&coll, comm, in + at, out + own_part(at, block), block, at, n,
                                  NCCL_FLOAT32, NCCL_SUM, mhs[0], mhs[1], &req),
             "reducescatter");
        coll_finish(req);
    }
    for (size_t i = 0; i < block / 4; i++)
        must(is(out, NCCL_FLOAT32, i, reduced(NCCL_SUM, block / 4 * (size_t)rank + i)),
             "reducescatter: element %zu", i);
}

static void coll_run(void)
{
    static const int types[] = {NCCL_FLOAT32, NCCL_INT8, NCCL_BFLOAT16};
    static const int ops[] = {NCCL_SUM, NCCL_MIN, NCCL_MAX};
    int supported = 0;

    coll_open();
    for (unsigned t = 0; t < 3; t++)
        for (unsigned o = 0; o < 3; o++) {
            must(!COLL(reduce_support)(types[t], ops[o], &supported) && supported, "support");
            allreduce(types[t], ops[o], 1);
            allreduce(types[t], ops[o], ELEMENTS);
        }
    must(!COLL(reduce_support)(NCCL_FLOAT32, NCCL_AVG, &supported) && !supported, "no mean");
    allreduce_many();
    windows(4096, 4096 * (size_t)size);
    windows(4096, 3332);
    windows(4096, 10000);
    barrier();
    coll_leave();
}

static void coll_die(void)
{
    void *req = NULL;
    int rc = 0, done = 0;

    coll_open();
    barrier();
    if (rank == 1)
        raise(SIGKILL);
    must(!coll_iallreduce(&coll, comm, in, out, 1000, NCCL_FLOAT32, NCCL_SUM, mhs[0], mhs[1],
                          &req) &&
             req,
         "allreduce");
    while (!rc && !done)
        rc = COLL(test)(req, &done, NULL);
    must(rc == NCCL_REMOTE_ERROR, "an error, not %d", rc);
    coll_leave();
}

#endif
