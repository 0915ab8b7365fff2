/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * As all_reduce.c, but whoever launches the ranks tells them of each other, by PMIx: no address.
 *
 *   make all_reduce_pmix && trib up leaf-spine-8
 *   mpirun -np 8 trib exec @rank -- ./all_reduce_pmix
 */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tributary/coll.h>

#define COUNT 1048576u

/* ---- struct trib_oob of PMIx: every rank makes the same calls, which a number tells apart ---- */

static pmix_proc_t self, everyone;
static unsigned calls;

static int put(const void *buf, size_t bytes)
{
    pmix_value_t v = {.type = PMIX_BYTE_OBJECT,
                      .data.bo = {.bytes = (char *)(uintptr_t)buf, .size = bytes}};
    char key[32];

    snprintf(key, sizeof(key), "trib.%u", calls);
    return PMIx_Put(PMIX_GLOBAL, key, &v) || PMIx_Commit();
}

static int get(uint32_t rank, void *buf, size_t bytes)
{
    pmix_proc_t of = self;
    pmix_value_t *v = NULL;
    char key[32];
    int rc;

    of.rank = rank;
    snprintf(key, sizeof(key), "trib.%u", calls);
    if (PMIx_Get(&of, key, NULL, 0, &v))
        return -1;
    rc = v->type == PMIX_BYTE_OBJECT && v->data.bo.size == bytes ? 0 : -1;
    if (!rc)
        memcpy(buf, v->data.bo.bytes, bytes);
    PMIX_VALUE_RELEASE(v);
    return rc;
}

/* What was put before it can be got after it. */
static int barrier(void *ctx)
{
    bool yes = true;
    pmix_info_t collect;
    int rc;

    (void)ctx;
    PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    rc = PMIx_Fence(&everyone, 1, &collect, 1);
    PMIX_INFO_DESTRUCT(&collect);
    return rc;
}

static int bcast(void *ctx, void *buf, size_t bytes, uint32_t root)
{
    calls++;
    if ((self.rank == root && put(buf, bytes)) || barrier(ctx))
        return -1;
    return self.rank == root ? 0 : get(root, buf, bytes);
}

static int gather(void *ctx, uint32_t root, const void *mine, void *all, size_t bytes)
{
    const uint32_t size = *(const uint32_t *)ctx;

    calls++;
    if (put(mine, bytes) || barrier(ctx))
        return -1;
    for (uint32_t r = 0; self.rank == root && r < size; r++)
        if (get(r, (char *)all + r * bytes, bytes))
            return -1;
    return 0;
}

/* ---- the example ---- */

static int fail(const char *what, const char *err)
{
    fprintf(stderr, "all_reduce_pmix: %s: %s\n", what, err);
    return 1;
}

int main(void)
{
    struct trib_oob oob = {.ctx = &oob.size, .bcast = bcast, .gather = gather, .barrier = barrier};
    char err[TRIB_TEXT] = "";
    struct trib_request *op;
    struct trib_comm *comm;
    pmix_value_t *jobs;
    pmix_status_t rc = PMIx_Init(&self, NULL, 0);

    if (rc)
        return fail("PMIx, which mpirun and other launchers serve", PMIx_Error_string(rc));
    PMIX_LOAD_PROCID(&everyone, self.nspace, PMIX_RANK_WILDCARD);
    rc = PMIx_Get(&everyone, PMIX_JOB_SIZE, NULL, 0, &jobs);
    if (rc)
        return fail("the number of ranks", PMIx_Error_string(rc));
    oob.rank = self.rank;
    oob.size = jobs->data.uint32;
    PMIX_VALUE_RELEASE(jobs);
    if (trib_comm_create(&comm, &oob, NULL, err))
        return fail("no communicator", err);

    int32_t *v = malloc(COUNT * sizeof(*v));
    for (uint32_t i = 0; v && i < COUNT; i++)
        v[i] = (int32_t)(oob.rank + i % 100);
    if (!v || trib_all_reduce(comm, v, v, COUNT, TRIB_INT32, TRIB_SUM, &op, err))
        return fail("cannot start", err);
    if (trib_wait(op))
        return fail("all-reduce", trib_comm_error(comm));
    for (uint32_t i = 0; i < COUNT; i++)
        if (v[i] != (int32_t)(oob.size * (oob.size - 1) / 2 + oob.size * (i % 100)))
            return fail("all-reduce", "a wrong sum");
    printf("rank %u of %u: %u sums, by %s\n", oob.rank, oob.size, COUNT, trib_request_algo(op));
    trib_free(op);
    free(v);
    trib_comm_destroy(comm);
    return PMIx_Finalize(NULL, 0);
}
