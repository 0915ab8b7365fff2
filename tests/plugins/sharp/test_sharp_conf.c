/* SPDX-License-Identifier: BSD-3-Clause */
/* Variables, device lists, types, errors. */
#include "plugins/sharp/sharp_priv.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char why[SHARP_TEXT];

static int read_with(const char *name, const char *value, struct sharp_conf *conf)
{
    int rc;

    *why = 0;
    setenv(name, value, 1);
    rc = sharp_conf_read(conf, why);
    unsetenv(name);
    return rc;
}

static void values(void **state)
{
    struct sharp_conf c;

    (void)state;
    assert_int_equal(sharp_conf_read(&c, why), 0);
    assert_int_equal(c.value[SHARP_VAR_ENABLE_SAT], 1);
    assert_int_equal(c.value[SHARP_VAR_LOG_LEVEL], 2);
    assert_int_equal(c.value[SHARP_VAR_OSTS_PER_GROUP], 0);
    assert_int_equal(read_with("SHARP_COLL_ENABLE_SAT", "0", &c), 0);
    assert_int_equal(c.value[SHARP_VAR_ENABLE_SAT], 0);
    assert_int_equal(read_with("SHARP_COLL_ENABLE_SAT", "No", &c), 0);
    assert_int_equal(c.value[SHARP_VAR_ENABLE_SAT], 0);
    assert_int_equal(read_with("SHARP_COLL_ENABLE_MCAST", "y", &c), 0);
    assert_int_equal(c.value[SHARP_VAR_ENABLE_MCAST], 1);
    assert_int_equal(read_with("SHARP_COLL_OSTS_PER_GROUP", "64", &c), 0);
    assert_int_equal(c.value[SHARP_VAR_OSTS_PER_GROUP], 64);
    assert_int_equal(read_with("SHARP_COLL_OSTS_PER_GROUP", "", &c), 0);
}

static void bad_values(void **state)
{
    static const char *const row[][3] = {
        {"SHARP_COLL_ENABLE_SAT", "2", "SHARP_COLL_ENABLE_SAT: found '2', expected 0 to 1"},
        {"SHARP_COLL_LOG_LEVEL", "y", "SHARP_COLL_LOG_LEVEL: found 'y', expected 0 to 5"},
        {"SHARP_COLL_LOG_LEVEL", "-1", "SHARP_COLL_LOG_LEVEL: found '-1', expected 0 to 5"},
        {"SHARP_COLL_OSTS_PER_GROUP", "64k",
         "SHARP_COLL_OSTS_PER_GROUP: found '64k', expected 0 to 65535"},
        {"SHARP_COLL_OSTS_PER_GROUP", "99999999999999999999",
         "SHARP_COLL_OSTS_PER_GROUP: found '99999999999999999999', expected 0 to 65535"},
    };
    struct sharp_conf c;

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        assert_int_equal(read_with(row[i][0], row[i][1], &c), SHARP_COLL_EINVAL);
        assert_string_equal(why, row[i][2]);
    }
}

static void unknown(void **state)
{
    char names[64];

    (void)state;
    setenv("SHARP_COLL_ENABLE_SAT", "1", 1);
    setenv("SHARP_COLL_LOCK_ON_COMM_INIT", "1", 1);
    sharp_conf_unknown(names, sizeof(names));
    assert_string_equal(names, "SHARP_COLL_LOCK_ON_COMM_INIT");
    sharp_conf_unknown(names, 8);
    assert_string_equal(names, "");
    unsetenv("SHARP_COLL_LOCK_ON_COMM_INIT");
    unsetenv("SHARP_COLL_ENABLE_SAT");
}

static void printed(void **state)
{
    char text[4096] = "";
    FILE *f = fmemopen(text, sizeof(text), "w");

    (void)state;
    assert_int_equal(sharp_coll_print_config(f, SHARP_COLL_CONFIG_PRINT_CONFIG, NULL), 0);
    fclose(f);
    assert_non_null(strstr(text, "SHARP_COLL_LOG_LEVEL=2\nSHARP_COLL_ENABLE_SAT=1\n"));
    assert_null(strchr(text, '#'));
}

static void devices(void **state)
{
    static const char *const name[] = {"trib0", "trib1"};
    static const struct {
        const char *list;
        int status;
    } row[] = {
        {NULL, 0},
        {"", 0},
        {"trib0", 0},
        {"trib0:1", 0},
        {"trib0:1,trib1:1", 0},
        {"trib", SHARP_COLL_EDEV},
        {"trib00", SHARP_COLL_EDEV},
        {"mlx5_0:1", SHARP_COLL_EDEV},
        {"trib0:2", SHARP_COLL_EDEV},
        {"trib0:", SHARP_COLL_EDEV},
        {"trib0:11", SHARP_COLL_EDEV},
        {"trib0,,trib1", SHARP_COLL_EDEV},
        {":1", SHARP_COLL_EDEV},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
        assert_int_equal(sharp_devices_check(row[i].list, name, 2, why), row[i].status);
    sharp_devices_check("trib0,mlx5_0", name, 2, why);
    assert_string_equal(
        why, "ib_dev_list: found 'mlx5_0', expected a device of this host: trib0, trib1");
    assert_int_equal(sharp_devices_check("x", name, 0, why), SHARP_COLL_EDEV);
}

static void types(void **state)
{
    enum trib_type t;
    int op;

    (void)state;
    for (unsigned i = 0; i < SHARP_DTYPE_NULL; i++)
        if (sharp_type((enum sharp_datatype)i, &t))
            assert_true((unsigned)t < TRIB_ALL_TYPES);
    assert_true(sharp_type(SHARP_DTYPE_DOUBLE, &t) && t == TRIB_FLOAT64);
    assert_true(sharp_type(SHARP_DTYPE_UNSIGNED_LONG, &t) && t == TRIB_UINT64);
    assert_true(sharp_op(SHARP_OP_BXOR, &op) && op == TRIB_BXOR);
    assert_false(sharp_type(SHARP_DTYPE_NULL, &t) || sharp_op(SHARP_OP_NULL, &op));
    assert_false(sharp_type((enum sharp_datatype) - 1, &t) ||
                 sharp_op((enum sharp_reduce_op) - 1, &op));
    assert_true(sharp_reduces(SHARP_DTYPE_INT8, SHARP_OP_BOR, &t, &op));
    assert_true(sharp_reduces(SHARP_DTYPE_SHORT, SHARP_OP_LXOR, &t, &op) && t == TRIB_INT16 &&
                op == TRIB_LXOR);
    assert_false(sharp_reduces(SHARP_DTYPE_BFLOAT16, SHARP_OP_BOR, &t, &op));
    assert_false(sharp_reduces(SHARP_DTYPE_DOUBLE, SHARP_OP_LAND, &t, &op));
    assert_true(sharp_reduces(SHARP_DTYPE_FLOAT, SHARP_OP_MAXLOC, &t, &op) &&
                t == TRIB_FLOAT32_LOC && op == TRIB_MAXLOC);
    assert_true(sharp_reduces(SHARP_DTYPE_INT, SHARP_OP_MINLOC, &t, &op) && t == TRIB_INT32_LOC);
    assert_false(sharp_reduces(SHARP_DTYPE_DOUBLE, SHARP_OP_MINLOC, &t, &op));
}

static void errors(void **state)
{
    (void)state;
    assert_int_equal(sharp_status(0), SHARP_COLL_SUCCESS);
    assert_int_equal(sharp_status(-EINVAL), SHARP_COLL_EINVAL);
    assert_int_equal(sharp_status(-ENOMEM), SHARP_COLL_ENOMEM);
    assert_int_equal(sharp_status(-ENOTSUP), SHARP_COLL_ENOT_SUPP);
    assert_int_equal(sharp_status(-EIO), SHARP_COLL_ERROR);
    assert_int_equal(sharp_status(-12345), SHARP_COLL_ERROR);
    for (int i = 0; i >= SHARP_COLL_ENO_RESOURCE; i--)
        assert_string_not_equal(sharp_coll_strerror(i), "no such status");
    assert_string_equal(sharp_coll_strerror(1), "no such status");
    assert_string_equal(sharp_coll_strerror(INT32_MIN), "no such status");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),  cmocka_unit_test(bad_values), cmocka_unit_test(unknown),
        cmocka_unit_test(printed), cmocka_unit_test(devices),    cmocka_unit_test(types),
        cmocka_unit_test(errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
