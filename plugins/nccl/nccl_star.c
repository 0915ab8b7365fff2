/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Out-of-band calls for creating a communicator of tributary/coll.h, over connections of this
 * plug-in, so that only NCCL's handles are needed. They block, and so run without the lock.
 */
#include "plugins/nccl/nccl_coll.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define PIECE 4096u /* bytes of a message */

/* The first message of a rank to rank 0. */
struct word {
    uint32_t rank, size;
};

/* ---- messages ---- */

static int link_move(struct nccl_star *s, void *comm, bool sending, size_t bytes)
{
    int64_t until = nccl_wall_ms() + nccl_patience_ms();
    void *req = NULL, *data = s->memory;
    int rc = NCCL_SUCCESS, done = 0, got = 0, tag = 0;

    while (!rc && !done) {
        if (!req)
            rc = sending ? nccl_isend(comm, data, bytes, 0, s->mh, &req)
                         : nccl_irecv(comm, 1, &data, &bytes, &tag, &s->mh, &req);
        if (!rc && req)
            rc = nccl_test(req, &done, &got);
        if (!rc && !done && nccl_wall_ms() > until)
            rc = nccl_refuse(NCCL_REMOTE_ERROR, "connect: a rank has not answered in %lld s",
                             (long long)nccl_patience_ms() / 1000);
        sched_yield();
    }
    if (!rc && (size_t)got != bytes)
        rc = nccl_refuse(NCCL_REMOTE_ERROR, "connect: found %d bytes of a rank, expected %zu", got,
                         bytes);
    return rc;
}

static int star_send(struct nccl_star *s, uint32_t to, const void *data, size_t bytes)
{
    for (size_t at = 0, n; at < bytes; at += n) {
        n = bytes - at < PIECE ? bytes - at : PIECE;
        memcpy(s->memory, (const char *)data + at, n);
        if (link_move(s, s->to[to], true, n))
            return -EIO;
    }
    return 0;
}

static int star_receive(struct nccl_star *s, uint32_t from, void *data, size_t bytes)
{
    for (size_t at = 0, n; at < bytes; at += n) {
        n = bytes - at < PIECE ? bytes - at : PIECE;
        if (link_move(s, s->from[from], false, n))
            return -EIO;
        memcpy((char *)data + at, s->memory, n);
    }
    return 0;
}

/* ---- calls of tributary/coll.h ---- */

static int star_bcast(void *ctx, void *buf, size_t bytes, uint32_t root)
{
    struct nccl_star *s = ctx;
    int rc = 0;

    if (s->rank && s->rank == root)
        return star_send(s, 0, buf, bytes);
    if (s->rank)
        return star_receive(s, 0, buf, bytes);
    if (root)
        rc = star_receive(s, root, buf, bytes);
    for (uint32_t r = 1; r < s->size && !rc; r++)
        if (r != root)
            rc = star_send(s, r, buf, bytes);
    return rc;
}

static int star_gather(void *ctx, uint32_t root, const void *mine, void *all, size_t bytes)
{
    struct nccl_star *s = ctx;
    uint8_t *at = all;
    int rc = 0;

    if (root) {
        nccl_refuse(NCCL_INTERNAL_ERROR, "connect: found a gather to rank %u, expected rank 0",
                    root);
        return -ENOTSUP;
    }
    if (s->rank)
        return star_send(s, 0, mine, bytes);
    if (at != mine)
        memcpy(at, mine, bytes);
    for (uint32_t r = 1; r < s->size && !rc; r++)
        rc = star_receive(s, r, at + r * bytes, bytes);
    return rc;
}

static int star_barrier(void *ctx)
{
    struct nccl_star *s = ctx;
    uint8_t *all = calloc(s->size, 1), one = 0;
    int rc = all ? star_gather(s, 0, &one, all, 1) : -ENOMEM;

    free(all);
    return rc ? rc : star_bcast(s, &one, 1, 0);
}

void nccl_star_oob(struct nccl_star *s, struct trib_oob *oob)
{
    *oob = (struct trib_oob){s, s->rank, s->size, star_bcast, star_gather, star_barrier};
}

/* ---- connecting ---- */

static int star_connect(int dev, const void *handle, void **comm)
{
    uint8_t own[NCCL_HANDLE]; /* a copy, as connect keeps its state in it */
    int rc = NCCL_SUCCESS;

    memcpy(own, handle, sizeof(own));
    for (*comm = NULL; !rc && !*comm; sched_yield())
        rc = nccl_connect(dev, own, comm, NULL);
    return rc;
}

static int star_accept(void *listen, void **comm)
{
    int64_t until = nccl_wall_ms() + nccl_patience_ms();
    int rc = NCCL_SUCCESS;

    for (*comm = NULL; !rc && !*comm; sched_yield()) {
        rc = nccl_accept(listen, comm, NULL);
        if (!rc && !*comm && nccl_wall_ms() > until)
            rc = nccl_refuse(NCCL_REMOTE_ERROR, "connect: ranks have not come in %lld s",
                             (long long)nccl_patience_ms() / 1000);
    }
    return rc;
}

static int memory_ready(struct nccl_star *s, void *comm)
{
    return s->mh ? NCCL_SUCCESS : nccl_reg_mr(comm, s->memory, PIECE, NCCL_PTR_HOST, &s->mh);
}

/* At rank 0: reads which rank has connected. */
static int star_greet(struct nccl_star *s, void *comm)
{
    struct word w;

    if (memory_ready(s, comm) || link_move(s, comm, false, sizeof(w))) {
        nccl_close_recv(comm);
        return NCCL_REMOTE_ERROR;
    }
    memcpy(&w, s->memory, sizeof(w));
    if (w.size != s->size || !w.rank || w.rank >= s->size || s->from[w.rank]) {
        nccl_close_recv(comm);
        return nccl_refuse(NCCL_INVALID_USAGE,
                           "connect: found rank %u of %u, expected others than rank 0 of %u, once "
                           "each",
                           w.rank, w.size, s->size);
    }
    s->from[w.rank] = comm;
    return NCCL_SUCCESS;
}

static int star_of_root(struct nccl_star *s, int dev, void *handles[], void *listen)
{
    int rc = NCCL_SUCCESS;

    for (uint32_t n = 1; n < s->size && !rc; n++) {
        void *comm = NULL;

        rc = star_accept(listen, &comm);
        if (!rc)
            rc = star_greet(s, comm);
    }
    for (uint32_t r = 1; r < s->size && !rc; r++)
        rc = star_connect(dev, handles[r], &s->to[r]);
    return rc;
}

static int star_of_rank(struct nccl_star *s, int dev, void *handles[], void *listen)
{
    struct word w = {s->rank, s->size};
    int rc = star_connect(dev, handles[0], &s->to[0]);

    if (!rc)
        rc = memory_ready(s, s->to[0]);
    if (!rc && star_send(s, 0, &w, sizeof(w)))
        rc = NCCL_REMOTE_ERROR;
    return rc ? rc : star_accept(listen, &s->from[0]);
}

int nccl_star_open(struct nccl_star *s, int dev, void *handles[], uint32_t size, uint32_t rank,
                   void *listen)
{
    int rc;

    *s = (struct nccl_star){.rank = rank, .size = size};
    s->to = calloc(size, sizeof(void *));
    s->from = calloc(size, sizeof(void *));
    s->memory = malloc(PIECE);
    if (!s->to || !s->from || !s->memory)
        rc = nccl_refuse(NCCL_SYSTEM_ERROR, "connect: out of memory");
    else
        rc = rank ? star_of_rank(s, dev, handles, listen) : star_of_root(s, dev, handles, listen);
    if (rc)
        nccl_star_close(s);
    return rc;
}

void nccl_star_close(struct nccl_star *s)
{
    void *any = NULL;

    for (uint32_t r = 0; s->to && s->from && r < s->size; r++)
        any = s->to[r] ? s->to[r] : s->from[r] ? s->from[r] : any;
    if (s->mh)
        nccl_dereg_mr(any, s->mh);
    for (uint32_t r = 0; s->to && s->from && r < s->size; r++) {
        if (s->to[r])
            nccl_close_send(s->to[r]);
        if (s->from[r])
            nccl_close_recv(s->from[r]);
    }
    free(s->to);
    free(s->from);
    free(s->memory);
    *s = (struct nccl_star){0};
}
