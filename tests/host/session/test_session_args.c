/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that are refused before anything is sent: without ranks, communicators or requests of their own. */
#include <tributary/coll.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

/* ---- the only rank ---- */

static int bcast(void *ctx, void *buf, size_t bytes, uint32_t root)
{
    (void)ctx, (void)buf, (void)bytes, (void)root;
    return 0;
}

static int gather(void *ctx, uint32_t root, const void *mine, void *all, size_t bytes)
{
    (void)root;
    memcpy(all, mine, bytes);
    return *(int *)ctx;
}

static int barrier(void *ctx)
{
    (void)ctx;
    return 0;
}

static int works, fails = -EIO;
static const struct trib_oob alone = {&works, 0, 1, bcast, gather, barrier};

static void calls_out_of_band_are_needed(void **state)
{
    static const char missing[] = "oob: found no bcast, gather or barrier";
    struct trib_comm *c = NULL;
    char err[TRIB_TEXT];

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct trib_oob oob = alone;

        if (i == 1)
            oob.bcast = NULL;
        else if (i == 2)
            oob.gather = NULL;
        else if (i == 3)
            oob.barrier = NULL;
        assert_int_equal(trib_comm_create(&c, i ? &oob : NULL, NULL, err), -EINVAL);
        assert_string_equal(err, missing);
    }
    assert_null(c);
}

static void ranks_are_below_their_number(void **state)
{
    static const struct {
        uint32_t rank, size;
        const char *says;
    } rows[] = {{0, 0, "oob: found rank 0 of 0, expected a rank below 1 to "},
                {1, 1, "oob: found rank 1 of 1, expected a rank below 1 to "},
                {5, 4, "oob: found rank 5 of 4, expected a rank below 1 to "},
                {0, 1u << 30, "oob: found rank 0 of 1073741824, expected a rank below 1 to "}};
    struct trib_comm *c = NULL;
    char err[TRIB_TEXT];

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        struct trib_oob oob = alone;

        oob.rank = rows[i].rank, oob.size = rows[i].size;
        assert_int_equal(trib_comm_create(&c, &oob, NULL, err), -EINVAL);
        assert_memory_equal(err, rows[i].says, strlen(rows[i].says));
    }
    assert_null(c);
}

/* A rank that has failed takes part with its reason, which is everybody's. */
static void without_a_fabric_the_first_rank_that_failed_is_named(void **state)
{
    struct trib_oob oob = alone;
    struct trib_comm *c = NULL;
    char err[TRIB_TEXT];

    (void)state;
    unsetenv("TRIB_RUN");
    assert_int_equal(trib_comm_create(&c, &alone, NULL, err), -ENODEV);
    assert_non_null(strstr(err, "found no TRIB_RUN and TRIB_HOST"));
    oob.ctx = &fails;
    assert_true(trib_comm_create(&c, &oob, NULL, err) < 0);
    assert_non_null(strstr(err, "found no TRIB_RUN and TRIB_HOST"));
    assert_int_equal(trib_comm_create(NULL, &alone, NULL, err), -EINVAL);
    assert_non_null(strstr(err, "comm: found no place for the communicator"));
    assert_null(c);
}

/* ---- what is no communicator, and no request ---- */

static uint64_t nothing[64];

static void calls_of_no_communicator_are_refused(void **state)
{
    static const char none[] =
        "comm: found no communicator, expected one of trib_comm_create() that "
        "is not destroyed",
                      odd[] = "comm: found something that is no communicator, expected one of "
                              "trib_comm_create() that is not destroyed";
    float x = 0, y = 0;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct trib_comm *c = i ? (struct trib_comm *)(void *)nothing : NULL;
        const char *says = i ? odd : none;

        for (unsigned k = 0; k < 9; k++) {
            struct trib_request *r = NULL;
            char err[TRIB_TEXT] = "";
            int rc = k == 0   ? trib_all_reduce(c, &x, &y, 1, TRIB_FLOAT32, TRIB_SUM, &r, err)
                     : k == 1 ? trib_reduce(c, &x, &y, 1, TRIB_FLOAT32, TRIB_SUM, 0, &r, err)
                     : k == 2 ? trib_reduce_scatter(c, &x, &y, 1, TRIB_FLOAT32, TRIB_SUM, &r, err)
                     : k == 3 ? trib_broadcast(c, &x, 1, TRIB_FLOAT32, 0, &r, err)
                     : k == 4 ? trib_all_gather(c, &x, &y, 1, TRIB_FLOAT32, &r, err)
                     : k == 5 ? trib_gather(c, &x, &y, 1, TRIB_FLOAT32, 0, &r, err)
                     : k == 6 ? trib_scatter(c, &x, &y, 1, TRIB_FLOAT32, 0, &r, err)
                     : k == 7 ? trib_all_to_all(c, &x, &y, 1, TRIB_FLOAT32, &r, err)
                              : trib_barrier(c, &r, err);

            assert_int_equal(rc, -EINVAL);
            assert_string_equal(err, says);
            assert_null(r);
        }
        char err[TRIB_TEXT] = "";
        assert_int_equal(trib_comm_rank(c), 0);
        assert_int_equal(trib_comm_size(c), 0);
        assert_string_equal(trib_comm_error(c), says);
        assert_string_equal(trib_comm_fell_back(c), says);
        assert_int_equal(trib_comm_trees(c, err), 0);
        assert_string_equal(err, says);
        trib_progress(c);
        trib_comm_destroy(c);
    }
}

static void what_is_no_request_is_refused(void **state)
{
    struct trib_request *odd = (struct trib_request *)(void *)nothing;

    (void)state;
    assert_int_equal(trib_test(NULL), 1);
    assert_int_equal(trib_wait(NULL), 0);
    assert_int_equal(trib_wait_for(NULL, 1), 1);
    assert_string_equal(trib_request_algo(NULL), "");
    trib_free(NULL);
    assert_int_equal(trib_test(odd), -EINVAL);
    assert_int_equal(trib_wait(odd), -EINVAL);
    assert_int_equal(trib_wait_for(odd, 1), -EINVAL);
    assert_string_equal(trib_request_algo(odd), "");
    trib_free(odd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_out_of_band_are_needed),
        cmocka_unit_test(ranks_are_below_their_number),
        cmocka_unit_test(without_a_fabric_the_first_rank_that_failed_is_named),
        cmocka_unit_test(calls_of_no_communicator_are_refused),
        cmocka_unit_test(what_is_no_request_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
