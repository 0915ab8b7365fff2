/* SPDX-License-Identifier: BSD-3-Clause */
/* As test_coll.c, of SHARP's interface. With a context: tests/tools/sharp_bad.c. */
#include "tests/include/rows.h"

#include <sharp/api/sharp.h>

static char zeros[65536];
static void *nothing[2] = {NULL, zeros};

#define BAD SHARP_COLL_EINVAL

static void contexts(int only)
{
    struct sharp_coll_comm_init_spec comm_spec = {.rank = 0, .size = 1};
    struct sharp_coll_init_spec spec = {.world_size = 1};
    struct sharp_coll_reg_params params = {.field_mask = 0};
    struct sharp_coll_context *made;
    struct sharp_coll_comm *comm;
    struct sharp_coll_caps caps;
    int row = 0;
    void *mr;

    ROW(sharp_coll_init(NULL, NULL), BAD, "");
    ROW(sharp_coll_init(NULL, &made), BAD, "");
    ROW(sharp_coll_init(&spec, NULL), BAD, "");
    ROW(sharp_coll_init(&spec, &made), BAD, ""); /* without oob_colls */
    for (unsigned i = 0; i < 2; i++) {
        struct sharp_coll_context *c = nothing[i];

        ROW(sharp_coll_finalize(c), BAD, "");
        ROW(sharp_coll_caps_query(c, &caps), BAD, "");
        ROW(sharp_coll_caps_query(c, NULL), BAD, "");
        ROW(sharp_coll_progress(c), BAD, "");
        ROW(sharp_coll_dump_stats(c), BAD, "");
        ROW(sharp_coll_comm_init(c, NULL, NULL), BAD, "");
        ROW(sharp_coll_comm_init(c, NULL, &comm), BAD, "");
        ROW(sharp_coll_comm_init(c, &comm_spec, NULL), BAD, "");
        ROW(sharp_coll_comm_init(c, &comm_spec, &comm), BAD, "");
        ROW(sharp_coll_comm_destroy((struct sharp_coll_comm *)c), BAD, "");
        ROW(sharp_coll_reg_mr(c, zeros, 8, &mr), BAD, "");
        ROW(sharp_coll_reg_mr(c, NULL, 8, &mr), BAD, "");
        ROW(sharp_coll_reg_mr(c, zeros, 8, NULL), BAD, "");
        ROW(sharp_coll_reg_mr_v2(c, zeros, 8, &params, &mr), BAD, "");
        ROW(sharp_coll_reg_mr_v2(c, zeros, 8, NULL, &mr), BAD, "");
        ROW(sharp_coll_reg_mr_v2(c, zeros, 8, &params, NULL), BAD, "");
        ROW(sharp_coll_reg_mr_v2(c, zeros, 8, NULL, NULL), BAD, "");
        ROW(sharp_coll_dereg_mr(c, NULL), BAD, "");
        ROW(sharp_coll_dereg_mr(c, zeros), BAD, "");
    }
}

static void operations(int only)
{
    struct sharp_coll_reduce_spec r = {.root = 0};
    struct sharp_coll_gather_spec g = {.offset = 0};
    struct sharp_coll_bcast_spec b = {.root = 0};
    int row = 0;
    void *req;

    for (unsigned i = 0; i < 2; i++) {
        struct sharp_coll_comm *c = nothing[i];

#define EACH(name, s)                                                                              \
    ROW(sharp_coll_do_##name(c, &s), BAD, "");                                                     \
    ROW(sharp_coll_do_##name(c, NULL), BAD, "");                                                   \
    ROW(sharp_coll_do_##name##_nb(c, &s, &req), BAD, "");                                          \
    ROW(sharp_coll_do_##name##_nb(c, NULL, &req), BAD, "");                                        \
    ROW(sharp_coll_do_##name##_nb(c, &s, NULL), BAD, "");                                          \
    ROW(sharp_coll_do_##name##_nb(c, NULL, NULL), BAD, "")

        EACH(allreduce, r);
        EACH(reduce, r);
        EACH(reduce_scatter, r);
        EACH(allgather, g);
        EACH(bcast, b);
        ROW(sharp_coll_do_barrier(c), BAD, "");
        ROW(sharp_coll_do_barrier_nb(c, &req), BAD, "");
        ROW(sharp_coll_do_barrier_nb(c, NULL), BAD, "");
        ROW(sharp_coll_req_test(i ? zeros : NULL), 1, "");
    }
    ROW(sharp_coll_req_wait(NULL), SHARP_COLL_SUCCESS, "");
    ROW(sharp_coll_req_free(NULL), SHARP_COLL_SUCCESS, "");
    ROW(sharp_coll_req_wait(zeros), BAD, "");
    ROW(sharp_coll_req_free(zeros), BAD, "");
    ROW(sharp_coll_print_config(NULL, 0, NULL), BAD, "");
    ROW(sharp_coll_print_config(stderr, 0, NULL), SHARP_COLL_SUCCESS, "");
    ROW(sharp_coll_strerror(12345) == NULL, 0, "");
    ROW(sharp_coll_strerror(-12345) == NULL, 0, "");
}

static void all(int only)
{
    contexts(only);
    operations(only);
}

static void contexts_are_refused(void **state)
{
    (void)state;
    rows_run(contexts);
}

static void operations_are_refused(void **state)
{
    (void)state;
    rows_run(operations);
}

static void every_function_has_a_row(void **state)
{
    (void)state;
    rows_cover(all, "include/sharp/api/sharp_coll.h", "sharp_coll_");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contexts_are_refused),
        cmocka_unit_test(operations_are_refused),
        cmocka_unit_test(every_function_has_a_row),
    };

    setenv("SHARP_COLL_LOG_LEVEL", "0", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
