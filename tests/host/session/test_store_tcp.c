/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of a store over TCP, among ranks that are threads; and what it is not opened for. */
#include "host/session/store_tcp.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define N    4u
#define LONG 60.0 /* s: nothing waits as long */

static char address[32];

struct rank {
    pthread_t thread;
    uint32_t rank;
    int rc[8];
    char got[N + 1][8]; /* broadcast by each rank in turn, then */
    char all[8 * N];    /* gathered by rank 0 */
    char err[TRIB_TEXT];
};

static void *call(void *ctx)
{
    struct rank *r = ctx;
    struct trib_store *store;
    struct trib_oob oob;
    char mine[8];

    r->rc[0] = trib_store_open(&store, address, r->rank, N, LONG, r->err);
    if (r->rc[0])
        return NULL;
    trib_store_oob(store, &oob);
    r->rc[1] = oob.rank != r->rank || oob.size != N;
    for (uint32_t root = 0; root < N; root++) {
        if (root == r->rank)
            snprintf(r->got[root], sizeof(r->got[root]), "from %u", root);
        r->rc[2] |= oob.bcast(oob.ctx, r->got[root], 7, root);
    }
    snprintf(mine, sizeof(mine), "rank %u", r->rank);
    r->rc[3] = oob.gather(oob.ctx, 0, mine, r->all, 8);
    r->rc[4] = oob.barrier(oob.ctx);
    r->rc[5] = oob.gather(oob.ctx, 1, mine, r->all, 8) != -ENOTSUP;
    trib_store_close(store);
    return NULL;
}

static void ranks_exchange_bytes(void **state)
{
    struct rank r[N] = {{.rank = 0}};

    (void)state;
    setenv("TRIB_STORE_SECRET", "a secret of this test alone", 1);
    for (uint32_t i = 0; i < N; i++) {
        r[i].rank = i;
        assert_int_equal(pthread_create(&r[i].thread, NULL, call, &r[i]), 0);
    }
    for (uint32_t i = 0; i < N; i++) {
        pthread_join(r[i].thread, NULL);
        assert_string_equal(r[i].err, "");
        for (unsigned k = 0; k < 6; k++)
            assert_int_equal(r[i].rc[k], 0);
        for (uint32_t root = 0; root < N; root++) {
            char says[8];

            snprintf(says, sizeof(says), "from %u", root);
            assert_string_equal(r[i].got[root], says);
        }
    }
    assert_memory_equal(r[0].all, "rank 0\0\0rank 1\0\0rank 2\0\0rank 3", 8 * N - 1);
}

/* Nobody waits for anybody. */
static void a_single_rank_has_a_store_of_its_own(void **state)
{
    struct trib_store *store;
    struct trib_oob oob;
    char err[TRIB_TEXT], all[3] = "", byte = 'x';

    (void)state;
    assert_int_equal(trib_store_open(&store, address, 0, 1, 1, err), 0);
    trib_store_oob(store, &oob);
    assert_int_equal(oob.size, 1);
    assert_int_equal(oob.bcast(oob.ctx, &byte, 1, 0), 0);
    assert_int_equal(oob.gather(oob.ctx, 0, "ab", all, 2), 0);
    assert_string_equal(all, "ab");
    assert_int_equal(oob.barrier(oob.ctx), 0);
    trib_store_close(store);
}

static void arguments_that_make_no_sense_are_named(void **state)
{
    static const struct {
        const char *address;
        uint32_t rank, size;
        double timeout_s;
        const char *says;
    } rows[] = {
        {"127.0.0.1:1", 0, 0, 1, "store: found rank 0 of 0, expected a rank below the size"},
        {"127.0.0.1:1", 2, 2, 1, "store: found rank 2 of 2, expected a rank below the size"},
        {"127.0.0.1:1", 0, (1 << 20) + 1, 1,
         "store: found rank 0 of 1048577, expected a rank below the size"},
        {"127.0.0.1:1", 0, 1, 0, "store: found a timeout of 0 s, expected more than 0"},
        {"127.0.0.1:1", 0, 1, -1, "store: found a timeout of -1 s, expected more than 0"},
        {"127.0.0.1:1", 0, 1, 1e6, "store: found a timeout of 1e+06 s, expected more than 0"},
        {"nothing", 0, 1, 1, "store: found 'nothing', expected ADDRESS:PORT"},
    };
    struct trib_store *store = NULL;
    char err[TRIB_TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(trib_store_open(&store, rows[i].address, rows[i].rank, rows[i].size,
                                         rows[i].timeout_s, err),
                         -EINVAL);
        assert_string_equal(err, rows[i].says);
        assert_null(store);
    }
    assert_int_equal(trib_store_open(NULL, "127.0.0.1:1", 0, 1, 1, err), -EINVAL);
    assert_string_equal(err, "store: found no place for the store");
    assert_int_equal(trib_store_pmix(NULL, 1, err), -EINVAL);
    assert_string_equal(err, "store: found no place for the store");
    assert_int_equal(trib_store_pmix(&store, 0, err), -EINVAL);
    assert_string_equal(err, "store: found a timeout of 0 s, expected more than 0");
    assert_int_equal(trib_store_pmix(&store, 1e6, err), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_exchange_bytes),
        cmocka_unit_test(a_single_rank_has_a_store_of_its_own),
        cmocka_unit_test(arguments_that_make_no_sense_are_named),
    };
    unsigned pid = (unsigned)getpid();

    snprintf(address, sizeof(address), "127.%u.%u.%u:4712", 64 + (pid >> 16) % 64, pid >> 8 & 255,
             pid & 255);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
