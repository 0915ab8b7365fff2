/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The out-of-band calls over TCP: a star whose middle is rank 0. Once the ranks have met
 * (store_meet.c), every call is messages of sizes that both ends know.
 */
#include "host/session/store_tcp.h"

#include "base/assert.h"
#include "host/session/session.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the calls ---- */

static int store_bcast(void *ctx, void *buf, size_t bytes, uint32_t root)
{
    struct tcp_store *s = ctx;
    int64_t until = store_now_ms() + s->patience_ms;
    int rc = 0;

    if (s->rank) {
        if (s->rank == root)
            return store_transfer(s->fd[0], true, buf, bytes, until);
        return store_transfer(s->fd[0], false, buf, bytes, until);
    }
    if (root)
        rc = store_transfer(s->fd[root], false, buf, bytes, until);
    for (uint32_t r = 1; !rc && r < s->size; r++)
        if (r != root)
            rc = store_transfer(s->fd[r], true, buf, bytes, until);
    return rc;
}

static int store_gather(void *ctx, uint32_t root, const void *mine, void *all, size_t bytes)
{
    struct tcp_store *s = ctx;
    int64_t until = store_now_ms() + s->patience_ms;
    char *into = all;
    int rc = 0;

    if (root)
        return -ENOTSUP;
    if (s->rank)
        return store_transfer(s->fd[0], true, (void *)(uintptr_t)mine, bytes, until);
    memcpy(into, mine, bytes);
    for (uint32_t r = 1; !rc && r < s->size; r++)
        rc = store_transfer(s->fd[r], false, into + r * bytes, bytes, until);
    return rc;
}

static int store_barrier(void *ctx)
{
    struct tcp_store *s = ctx;
    char *all = s->rank ? NULL : calloc(1, s->size), one = 0;
    int rc = !s->rank && !all ? -ENOMEM : store_gather(s, 0, &one, all, 1);

    free(all);
    return rc ? rc : store_bcast(s, &one, 1, 0);
}

/* ---- opening ---- */

static void store_close(struct trib_store *store)
{
    struct tcp_store *s = (struct tcp_store *)store;

    if (!s)
        return;
    for (uint32_t r = 0; r < (s->rank ? 1 : s->size); r++)
        if (s->fd[r] >= 0)
            close(s->fd[r]);
    free(s->fd);
    free(s);
}

static struct tcp_store *store_make(uint32_t rank, uint32_t size, double timeout_s)
{
    struct tcp_store *s = calloc(1, sizeof(*s));
    int *fd = calloc(size, sizeof(*fd));

    T_ASSERT(rank < size, "a store of a rank that is none of its ranks");
    if (!s || !fd) {
        free(s);
        free(fd);
        return NULL;
    }
    for (uint32_t r = 0; r < size; r++)
        fd[r] = -1;
    *s = (struct tcp_store){.store = {.magic = STORE_MAGIC,
                                      .oob = {.ctx = s,
                                              .rank = rank,
                                              .size = size,
                                              .bcast = store_bcast,
                                              .gather = store_gather,
                                              .barrier = store_barrier},
                                      .close = store_close},
                            .rank = rank,
                            .size = size,
                            .patience_ms = (int64_t)(timeout_s * 1000),
                            .fd = fd};
    return s;
}

int trib_store_open(struct trib_store **store, const char *address, uint32_t rank, uint32_t size,
                    double timeout_s, char *err)
{
    struct addrinfo *list = NULL;
    struct store_secret secret;
    struct tcp_store *s;
    int64_t until;
    int rc;

    if (!store)
        return session_say(err, -EINVAL, "store: found no place for the store");
    if (!size || rank >= size || size > 1u << 20)
        return session_say(
            err, -EINVAL, "store: found rank %u of %u, expected a rank below the size", rank, size);
    if (!(timeout_s > 0 && timeout_s < 1e6))
        return session_say(err, -EINVAL, "store: found a timeout of %g s, expected more than 0",
                           timeout_s);
    rc = store_resolve(address, !rank, &list, err);
    if (rc)
        return rc;
    rc = size > 1 ? store_secret_find(&secret, err) : 0;
    if (rc) {
        freeaddrinfo(list);
        return rc;
    }
    until = store_now_ms() + (int64_t)(timeout_s * 1000);
    s = store_make(rank, size, timeout_s);
    rc = !s          ? session_say(err, -ENOMEM, "store: out of memory")
         : size == 1 ? 0
         : rank      ? store_reach(s, list, &secret, until, err)
                     : store_serve(s, list, &secret, until, err);
    credential_wipe(&secret, sizeof(secret));
    freeaddrinfo(list);
    if (rc) {
        store_close(s ? &s->store : NULL);
        return rc;
    }
    T_ASSERT(size == 1 || s->fd[rank ? 0 : size - 1] >= 0, "a store is open before all have met");
    *store = &s->store;
    return 0;
}
