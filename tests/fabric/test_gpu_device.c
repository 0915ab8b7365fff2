/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures of devices that are computed from those of their data sheets. */
#include "fabric/gpu_device.h"
#include "tests/fabric/device_named.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Dense TFLOP/s by type, GB/s of a GPU's NVLinks and of a node's NICs, one direction. */
static const struct {
    const char *name;
    double tflops[DEV_TYPES], nvlink, node;
} rows[] = {
    {"a100", {0, 310, 0, 0}, 300, 200},        {"h100", {0, 990, 1980, 0}, 450, 400},
    {"h800", {0, 990, 1980, 0}, 300, 400},     {"h200", {0, 990, 1980, 0}, 450, 400},
    {"b200", {0, 2250, 4500, 9000}, 900, 400}, {"gb200", {0, 2250, 4500, 9000}, 900, 3600},
    {"tpu-v5p", {0, 459, 0, 0}, 540, 0},
};

static void rates_follow_from_the_data_sheet(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct gpu_device *d = device_find(rows[i].name);

        assert_non_null(d);
        assert_ptr_equal(d, device_at(i));
        for (unsigned t = 0; t < DEV_TYPES; t++)
            assert_true(device_flops(d, t) == rows[i].tflops[t] * 1e12);
        assert_true(device_nvlink_Bps(d) == rows[i].nvlink * 1e9);
        assert_true(device_node_Bps(d) == rows[i].node * 1e9);
    }
    assert_null(device_at(sizeof(rows) / sizeof(rows[0])));
    assert_null(device_find("h10"));
    assert_null(device_find(""));
}

static void types_have_names_and_bytes(void **state)
{
    static const struct {
        const char *name;
        double bytes;
    } types[DEV_TYPES] = {{"fp32", 4}, {"bf16", 2}, {"fp8", 1}, {"fp4", 0.5}};

    (void)state;
    for (unsigned t = 0; t < DEV_TYPES; t++) {
        assert_string_equal(dev_type_name(t), types[t].name);
        assert_true(dev_type_bytes(t) == types[t].bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_follow_from_the_data_sheet),
        cmocka_unit_test(types_have_names_and_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
