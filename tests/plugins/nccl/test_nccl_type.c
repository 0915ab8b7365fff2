/* SPDX-License-Identifier: BSD-3-Clause */
/* Types and reductions: each of NCCL's is the library's of the same width and meaning. */
#include "plugins/nccl/nccl_coll.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void types(void **state)
{
    static const struct {
        int type;
        enum trib_type to;
        uint32_t bytes;
    } row[NCCL_TYPES] = {
        {0, TRIB_INT8, 1},     {1, TRIB_UINT8, 1},        {2, TRIB_INT32, 4},
        {3, TRIB_UINT32, 4},   {4, TRIB_INT64, 8},        {5, TRIB_UINT64, 8},
        {6, TRIB_FLOAT16, 2},  {7, TRIB_FLOAT32, 4},      {8, TRIB_FLOAT64, 8},
        {9, TRIB_BFLOAT16, 2}, {10, TRIB_FLOAT8_E4M3, 1}, {11, TRIB_FLOAT8_E5M2, 1},
    };
    enum trib_type t;

    (void)state;
    for (unsigned i = 0; i < NCCL_TYPES; i++) {
        assert_true(nccl_type_of(row[i].type, &t));
        assert_int_equal(t, row[i].to);
        assert_int_equal(trib_size(t), row[i].bytes);
    }
    assert_false(nccl_type_of(-1, &t));
    assert_false(nccl_type_of(NCCL_TYPES, &t));
}

static void reductions(void **state)
{
    static const int want[NCCL_OPS] = {TRIB_SUM, TRIB_PROD, TRIB_MAX, TRIB_MIN, -1};
    int o, supported;

    (void)state;
    for (int op = 0; op < NCCL_OPS; op++) {
        assert_int_equal(nccl_op_of(op, &o), want[op] >= 0);
        if (want[op] >= 0)
            assert_int_equal(o, want[op]);
        for (int type = 0; type < NCCL_TYPES; type++) {
            assert_int_equal(nccl_reduce_support(type, op, &supported), NCCL_SUCCESS);
            assert_int_equal(supported, op != NCCL_AVG);
        }
    }
    assert_int_equal(nccl_reduce_support(NCCL_TYPES, NCCL_SUM, &supported), NCCL_SUCCESS);
    assert_false(supported);
    assert_int_equal(nccl_reduce_support(0, -1, &supported), NCCL_SUCCESS);
    assert_false(supported);
    assert_int_equal(nccl_reduce_support(0, 0, NULL), NCCL_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(types), cmocka_unit_test(reductions)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
