/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Out-of-band calls of a communicator over PMIx, which mpirun, srun and other launchers serve. A
 * rank puts its data under a key with the number of the call, a fence publishes it, and other ranks
 * get it. libtributary loads this library for trib_store_pmix(), so that it does not depend on PMIx
 * itself.
 */
#include "host/session/store.h"

#include <errno.h>
#include <pmix.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pmix_store {
    struct trib_store store;
    pmix_proc_t self, everyone;
    unsigned number, calls; /* number of the store, and of its calls: both are in the keys */
    int timeout_s;
};

/* ---- the calls ---- */

static void key_of(const struct pmix_store *s, char *key)
{
    snprintf(key, PMIX_MAX_KEYLEN, "tributary.%u.%u", s->number, s->calls);
}

static int pmix_store_put(struct pmix_store *s, const void *buf, size_t bytes)
{
    pmix_value_t v = {.type = PMIX_BYTE_OBJECT,
                      .data.bo = {.bytes = (char *)(uintptr_t)buf, .size = bytes}};
    char key[PMIX_MAX_KEYLEN + 1];

    key_of(s, key);
    return PMIx_Put(PMIX_GLOBAL, key, &v) || PMIx_Commit() ? -EIO : 0;
}

static int get(struct pmix_store *s, uint32_t rank, void *buf, size_t bytes)
{
    char key[PMIX_MAX_KEYLEN + 1];
    pmix_proc_t of = s->self;
    pmix_value_t *v = NULL;
    int rc;

    of.rank = rank;
    key_of(s, key);
    if (PMIx_Get(&of, key, NULL, 0, &v) != PMIX_SUCCESS)
        return -EIO;
    rc = v->type == PMIX_BYTE_OBJECT && v->data.bo.size == bytes ? 0 : -EPROTO;
    if (!rc)
        memcpy(buf, v->data.bo.bytes, bytes);
    PMIX_VALUE_RELEASE(v);
    return rc;
}

/* Fence: data that was put before it can be got after it. */
static int store_barrier(void *ctx)
{
    struct pmix_store *s = ctx;
    bool yes = true;
    pmix_info_t info[2];
    pmix_status_t rc;

    PMIX_INFO_LOAD(&info[0], PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, &s->timeout_s, PMIX_INT);
    rc = PMIx_Fence(&s->everyone, 1, info, 2);
    PMIX_INFO_DESTRUCT(&info[0]);
    PMIX_INFO_DESTRUCT(&info[1]);
    return rc == PMIX_SUCCESS ? 0 : rc == PMIX_ERR_TIMEOUT ? -ETIMEDOUT : -EIO;
}

static int store_bcast(void *ctx, void *buf, size_t bytes, uint32_t root)
{
    struct pmix_store *s = ctx;
    bool mine = s->store.oob.rank == root;
    int rc;

    s->calls++;
    rc = mine ? pmix_store_put(s, buf, bytes) : 0;
    rc = rc ? rc : store_barrier(s);
    return rc || mine ? rc : get(s, root, buf, bytes);
}

static int store_gather(void *ctx, uint32_t root, const void *mine, void *all, size_t bytes)
{
    struct pmix_store *s = ctx;
    int rc;

    s->calls++;
    rc = pmix_store_put(s, mine, bytes);
    rc = rc ? rc : store_barrier(s);
    for (uint32_t r = 0; !rc && s->store.oob.rank == root && r < s->store.oob.size; r++)
        rc = get(s, r, (char *)all + r * bytes, bytes);
    return rc;
}

/* ---- opening ---- */

static void store_close(struct trib_store *store)
{
    PMIx_Finalize(NULL, 0);
    free(store);
}

static int job_size(const struct pmix_store *s, uint32_t *size)
{
    pmix_value_t *v = NULL;
    pmix_status_t rc = PMIx_Get(&s->everyone, PMIX_JOB_SIZE, NULL, 0, &v);

    if (rc == PMIX_SUCCESS && v->type == PMIX_UINT32)
        *size = v->data.uint32;
    else if (rc == PMIX_SUCCESS)
        rc = PMIX_ERR_TYPE_MISMATCH;
    if (v)
        PMIX_VALUE_RELEASE(v);
    return rc;
}

#pragma GCC visibility push(default)
int trib_pmix_open(struct trib_store **store, double timeout_s, char *err)
{
    static unsigned stores;
    struct pmix_store *s = calloc(1, sizeof(*s));
    pmix_status_t rc;
    uint32_t size;

    if (!s)
        return -ENOMEM;
    rc = PMIx_Init(&s->self, NULL, 0);
    if (rc == PMIX_SUCCESS) {
        PMIX_LOAD_PROCID(&s->everyone, s->self.nspace, PMIX_RANK_WILDCARD);
        rc = job_size(s, &size);
        if (rc != PMIX_SUCCESS)
            PMIx_Finalize(NULL, 0);
    }
    if (rc != PMIX_SUCCESS) {
        snprintf(err, TRIB_TEXT, "store: PMIx says %s, expected a launcher that serves it",
                 PMIx_Error_string(rc));
        free(s);
        return -ENOTCONN;
    }
    s->timeout_s = timeout_s < 1 ? 1 : (int)timeout_s;
    s->number = stores++;
    s->store = (struct trib_store){.magic = STORE_MAGIC,
                                   .oob = {.ctx = s,
                                           .rank = s->self.rank,
                                           .size = size,
                                           .bcast = store_bcast,
                                           .gather = store_gather,
                                           .barrier = store_barrier},
                                   .close = store_close};
    *store = &s->store;
    return 0;
}
#pragma GCC visibility pop
