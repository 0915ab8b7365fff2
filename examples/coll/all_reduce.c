/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All-reduce in the switches, by eight processes of eight hosts:
 *
 *   make && trib up leaf-spine-8
 *   for r in 0 1 2 3 4 5 6 7; do trib exec h$r -- ./all_reduce 127.0.0.1:4711 $r 8 & done; wait
 */
#include <stdio.h>
#include <stdlib.h>
#include <tributary/coll.h>

#define COUNT 1048576u

static int fail(const char *what, const char *err)
{
    fprintf(stderr, "all_reduce: %s: %s\n", what, err);
    return 1;
}

int main(int argc, char **argv)
{
    char err[TRIB_TEXT] = "";
    struct trib_store *store;
    struct trib_comm *comm;
    struct trib_oob oob;
    struct trib_request *op;

    if (argc != 4)
        return fail("usage", "all_reduce ADDRESS:PORT RANK SIZE");
    if (trib_store_open(&store, argv[1], (uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]), 30, err))
        return fail("cannot meet the others", err);
    trib_store_oob(store, &oob);
    if (trib_comm_create(&comm, &oob, NULL, err))
        return fail("no communicator", err);

    float *v = malloc(COUNT * sizeof(*v));
    for (uint32_t i = 0; v && i < COUNT; i++)
        v[i] = (float)(oob.rank + i % 100);

    int64_t begin = trib_time_ps();
    if (!v || trib_all_reduce(comm, v, v, COUNT, TRIB_FLOAT32, TRIB_SUM, &op, err))
        return fail("cannot start", err);
    while (!trib_test(op)) /* compute here: the switches add meanwhile */
        ;
    if (trib_wait(op))
        return fail("all-reduce", trib_comm_error(comm));
    double us = (double)(trib_time_ps() - begin) / 1e6;

    for (uint32_t i = 0; i < COUNT; i++)
        if (v[i] != (float)(oob.size * (oob.size - 1) / 2 + oob.size * (i % 100)))
            return fail("all-reduce", "a wrong sum");
    printf("rank %u of %u: %u sums, by %s, in %.1f us of fabric time\n", oob.rank, oob.size, COUNT,
           trib_request_algo(op), us);
    trib_free(op);
    free(v);
    trib_comm_destroy(comm);
    trib_store_close(store);
    return 0;
}
