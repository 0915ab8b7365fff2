/* SPDX-License-Identifier: BSD-3-Clause */
/* What preload_set() makes of LD_PRELOAD and ASAN_OPTIONS: the library is first, but for runtimes of
 * sanitizers, and once. */
#include "machine/preload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static void the_library_comes_first_behind_runtimes(void **state)
{
    static const struct {
        const char *before, *after;
    } rows[] = {
        {"", "libx.so"},
        {"liby.so", "libx.so:liby.so"},
        {"libx.so", "libx.so"},
        {"libx.so liby.so", "libx.so liby.so"},
        {"/usr/lib/libasan.so.8", "/usr/lib/libasan.so.8:libx.so"},
        {"/usr/lib/libasan.so.8 liby.so", "/usr/lib/libasan.so.8 libx.so:liby.so"},
        {"libtsan.so.2:libubsan.so.1:liby.so", "libtsan.so.2:libubsan.so.1:libx.so:liby.so"},
        {"/l/libclang_rt.asan-x86_64.so:libx.so", "/l/libclang_rt.asan-x86_64.so:libx.so"},
        {"liby.so:libasan.so.8", "libx.so:liby.so:libasan.so.8"},
        {"/libasan.d/liby.so", "libx.so:/libasan.d/liby.so"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        setenv("LD_PRELOAD", rows[i].before, 1);
        assert_int_equal(preload_set("libx.so"), 0);
        assert_string_equal(getenv("LD_PRELOAD"), rows[i].after);
    }
    unsetenv("LD_PRELOAD");
}

static void the_order_is_allowed_unless_the_user_decides(void **state)
{
    (void)state;
    unsetenv("ASAN_OPTIONS");
    assert_int_equal(preload_set("libx.so"), 0);
    assert_string_equal(getenv("ASAN_OPTIONS"), "verify_asan_link_order=0");
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
    assert_int_equal(preload_set("libx.so"), 0);
    assert_string_equal(getenv("ASAN_OPTIONS"), "verify_asan_link_order=0:detect_leaks=0");
    assert_int_equal(preload_set("libx.so"), 0);
    assert_string_equal(getenv("ASAN_OPTIONS"), "verify_asan_link_order=0:detect_leaks=0");
    setenv("ASAN_OPTIONS", "verify_asan_link_order=1", 1);
    assert_int_equal(preload_set("libx.so"), 0);
    assert_string_equal(getenv("ASAN_OPTIONS"), "verify_asan_link_order=1");
    unsetenv("LD_PRELOAD");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_library_comes_first_behind_runtimes),
        cmocka_unit_test(the_order_is_allowed_unless_the_user_decides),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
