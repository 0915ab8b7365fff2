/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * As all_reduce.c, but whoever launches the ranks tells them of each other, by PMIx: no address.
 *
 *   make all_reduce_pmix && trib up leaf-spine-8
 *   mpirun -np 8 trib exec @rank -- ./all_reduce_pmix
 */
#include <stdio.h>
#include <stdlib.h>
#include <tributary/coll.h>

#define COUNT 1048576u

static int fail(const char *what, const char *err)
{
    fprintf(stderr, "all_reduce_pmix: %s: %s\n", what, err);
    return 1;
}

int main(void)
{
    char err[TRIB_TEXT] = "";
    struct trib_request *op;
    struct trib_store *store;
    struct trib_comm *comm;
    struct trib_oob oob;

    if (trib_store_pmix(&store, 30, err))
        return fail("the ranks cannot meet", err);
    trib_store_oob(store, &oob);
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
    trib_store_close(store);
    return 0;
}
