/* SPDX-License-Identifier: BSD-3-Clause */
/* Every function of the public headers with NULL, or with what is no such object, in each place of a
 * pointer: the documented error, and no crash. With a communicator: tests/tools/coll_check.c. */
#include "tests/include/rows.h"

#include <tributary/coll.h>
#include <tributary/time.h>

#include <errno.h>

static char zeros[65536]; /* what is no store, communicator or request any more */
static void *nothing[2] = {NULL, zeros};

static int bcast(void *ctx, void *buf, size_t bytes, uint32_t root)
{
    (void)ctx, (void)buf, (void)bytes, (void)root;
    return 0;
}

static int gather(void *ctx, uint32_t root, const void *mine, void *all, size_t bytes)
{
    (void)ctx, (void)root;
    memcpy(all, mine, bytes);
    return 0;
}

static int barrier(void *ctx)
{
    (void)ctx;
    return 0;
}

static int create(struct trib_comm **comm, struct trib_oob oob)
{
    return trib_comm_create(comm, &oob, NULL, why);
}

/* What trib_store_oob() makes of what is no store. */
static bool has_no_calls(struct trib_store *store)
{
    struct trib_oob oob = {.size = 7, .bcast = bcast};

    trib_store_oob(store, &oob);
    return !oob.bcast && !oob.gather && !oob.barrier && !oob.size;
}

static long wait_until_refused(struct trib_request *r)
{
    return trib_wait(r) + 1000 * trib_wait_for(r, 0.01);
}

static void stores(int only)
{
    struct trib_store *store = NULL;
    int row = 0;

    ROW(trib_coll_version(), TRIB_COLL_VERSION, "");
    ROW(trib_store_open(NULL, "127.0.0.1:1", 0, 1, 1, why), -EINVAL, "no place for the store");
    ROW(trib_store_open(NULL, "127.0.0.1:1", 0, 1, 1, NULL), -EINVAL, "");
    ROW(trib_store_open(&store, NULL, 0, 1, 1, why), -EINVAL, "found 'nothing'");
    ROW(trib_store_open(&store, NULL, 0, 1, 1, NULL), -EINVAL, "");
    ROW(trib_store_open(&store, "", 0, 1, 1, why), -EINVAL, "found ''");
    ROW(trib_store_open(&store, "127.0.0.1:1", 1, 1, 1, why), -EINVAL, "found rank 1 of 1");
    ROW(trib_store_open(&store, "127.0.0.1:1", 0, 0, 1, why), -EINVAL, "found rank 0 of 0");
    ROW(trib_store_open(&store, "127.0.0.1:1", 0, 1, 0.0 / 0.0, why), -EINVAL, "timeout");
    ROW(trib_store_pmix(NULL, 1, why), -EINVAL, "no place for the store");
    ROW(trib_store_pmix(NULL, 1, NULL), -EINVAL, "");
    ROW(trib_store_pmix(&store, 0, NULL), -EINVAL, "");
    VOID(trib_store_oob(NULL, NULL));
    ROW(has_no_calls(NULL), true, "");
    ROW(has_no_calls((struct trib_store *)zeros), true, "");
    VOID(trib_store_close(NULL));
    VOID(trib_store_close((struct trib_store *)zeros));
}

static void communicators(int only)
{
    struct trib_oob good = {NULL, 0, 1, bcast, gather, barrier};
    struct trib_comm *comm = NULL;
    int row = 0;

    ROW(trib_comm_create(NULL, NULL, NULL, why), -EINVAL, "no bcast, gather or barrier");
    ROW(trib_comm_create(&comm, NULL, NULL, NULL), -EINVAL, "");
    ROW(trib_comm_create(NULL, &good, NULL, why), -EINVAL, "no place for the communicator");
    ROW(trib_comm_create(NULL, &good, NULL, NULL), -EINVAL, "");
    ROW(trib_comm_create(&comm, &good, NULL, why), -ENODEV, "found no TRIB_RUN and TRIB_HOST");
    ROW(create(&comm, (struct trib_oob){NULL, 0, 1, NULL, gather, barrier}), -EINVAL, "oob: ");
    ROW(create(&comm, (struct trib_oob){NULL, 0, 1, bcast, NULL, barrier}), -EINVAL, "oob: ");
    ROW(create(&comm, (struct trib_oob){NULL, 0, 1, bcast, gather, NULL}), -EINVAL, "oob: ");
    ROW(create(&comm, (struct trib_oob){NULL, 1, 1, bcast, gather, barrier}), -EINVAL, "rank 1");
    for (unsigned i = 0; i < 2; i++) {
        struct trib_comm *c = nothing[i];

        VOID(trib_comm_destroy(c));
        ROW(trib_comm_rank(c), 0, "");
        ROW(trib_comm_size(c), 0, "");
        ROW(!strstr(trib_comm_error(c), "expected one of trib_comm_create()"), 0, "");
        ROW(!strstr(trib_comm_fell_back(c), "expected one of trib_comm_create()"), 0, "");
        ROW(trib_comm_trees(c, why), 0, "expected one of trib_comm_create()");
        ROW(trib_comm_trees(c, NULL), 0, "");
        VOID(trib_progress(c));
    }
}

static void operations(int only)
{
    const enum trib_type t = TRIB_INT32;
    struct trib_request *req = NULL;
    const int sum = TRIB_SUM;
    int v[4] = {0}, w[4], row = 0;

    for (unsigned i = 0; i < 2; i++) {
        struct trib_comm *c = nothing[i];
        const char *none = i ? "something that is no communicator" : "found no communicator";

        ROW(trib_all_reduce(c, v, w, 4, t, sum, &req, why), -EINVAL, none);
        ROW(trib_reduce(c, v, w, 4, t, sum, 0, &req, why), -EINVAL, none);
        ROW(trib_reduce_scatter(c, v, w, 4, t, sum, &req, why), -EINVAL, none);
        ROW(trib_broadcast(c, v, 4, t, 0, &req, why), -EINVAL, none);
        ROW(trib_all_gather(c, v, w, 4, t, &req, why), -EINVAL, none);
        ROW(trib_gather(c, v, w, 4, t, 0, &req, why), -EINVAL, none);
        ROW(trib_scatter(c, v, w, 4, t, 0, &req, why), -EINVAL, none);
        ROW(trib_all_to_all(c, v, w, 4, t, &req, why), -EINVAL, none);
        ROW(trib_barrier(c, &req, why), -EINVAL, none);
        ROW(trib_all_reduce(c, NULL, NULL, 4, t, sum, &req, NULL), -EINVAL, "");
        ROW(trib_reduce(c, NULL, NULL, 4, t, sum, 0, &req, NULL), -EINVAL, "");
        ROW(trib_reduce_scatter(c, NULL, NULL, 4, t, sum, &req, NULL), -EINVAL, "");
        ROW(trib_broadcast(c, NULL, 4, t, 0, &req, NULL), -EINVAL, "");
        ROW(trib_all_gather(c, NULL, NULL, 4, t, &req, NULL), -EINVAL, "");
        ROW(trib_gather(c, NULL, NULL, 4, t, 0, &req, NULL), -EINVAL, "");
        ROW(trib_scatter(c, NULL, NULL, 4, t, 0, &req, NULL), -EINVAL, "");
        ROW(trib_all_to_all(c, NULL, NULL, 4, t, &req, NULL), -EINVAL, "");
        ROW(trib_barrier(c, &req, NULL), -EINVAL, "");
        ROW(trib_all_reduce(c, v, w, 4, t, sum, NULL, why), -EINVAL, "no place for the request");
        ROW(trib_reduce(c, v, w, 4, t, sum, 0, NULL, why), -EINVAL, "no place");
        ROW(trib_reduce_scatter(c, v, w, 4, t, sum, NULL, why), -EINVAL, "no place");
        ROW(trib_broadcast(c, v, 4, t, 0, NULL, why), -EINVAL, "no place");
        ROW(trib_all_gather(c, v, w, 4, t, NULL, why), -EINVAL, "no place");
        ROW(trib_gather(c, v, w, 4, t, 0, NULL, why), -EINVAL, "no place");
        ROW(trib_scatter(c, v, w, 4, t, 0, NULL, why), -EINVAL, "no place");
        ROW(trib_all_to_all(c, v, w, 4, t, NULL, why), -EINVAL, "no place");
        ROW(trib_barrier(c, NULL, why), -EINVAL, "no place");
    }
    ROW(trib_test(NULL), 1, "");
    ROW(trib_wait(NULL), 0, "");
    ROW(trib_wait_for(NULL, 1), 1, "");
    ROW(trib_wait_for(NULL, 0.0 / 0.0), 1, "");
    VOID(trib_free(NULL));
    ROW(*trib_request_algo(NULL), 0, "");
    ROW(trib_test((struct trib_request *)zeros), -EINVAL, "");
    ROW(wait_until_refused((struct trib_request *)zeros), -EINVAL * 1001, "");
    VOID(trib_free((struct trib_request *)zeros));
    ROW(*trib_request_algo((struct trib_request *)zeros), 0, "");
    ROW(trib_register(NULL, 8), -EINVAL, "");
    ROW(trib_register(v, 0), -EINVAL, "");
    ROW(trib_register(v, SIZE_MAX), -EINVAL, "");
    ROW(trib_deregister(NULL), -ENOENT, "");
    ROW(trib_deregister(v), -ENOENT, "");
    ROW(trib_time_ps(), 0, "");
    ROW(trib_compute_begin(), -ENODEV, "");
    ROW(trib_compute(-1), -EINVAL, "");
    ROW(trib_compute(0.0 / 0.0), -EINVAL, "");
    ROW(trib_compute(1), -ENODEV, "");
}

static void all(int only)
{
    stores(only);
    communicators(only);
    operations(only);
}

static void stores_are_refused(void **state)
{
    (void)state;
    rows_run(stores);
}

static void communicators_are_refused(void **state)
{
    (void)state;
    rows_run(communicators);
}

static void operations_are_refused(void **state)
{
    (void)state;
    rows_run(operations);
}

static void every_function_has_a_row(void **state)
{
    (void)state;
    rows_cover(all, "include/tributary/coll.h", "trib_");
    rows_cover(all, "include/tributary/time.h", "trib_");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stores_are_refused),
        cmocka_unit_test(communicators_are_refused),
        cmocka_unit_test(operations_are_refused),
        cmocka_unit_test(every_function_has_a_row),
    };

    unsetenv("TRIB_RUN");
    unsetenv("TRIB_HOST");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
