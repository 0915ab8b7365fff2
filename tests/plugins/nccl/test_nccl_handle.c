/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles: what has ended, is another thing, or never was, is refused by result and in words. */
#include "plugins/nccl/nccl_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

static char said[512];

__attribute__((format(printf, 5, 6))) static void
hear(int level, unsigned long flags, const char *file, int line, const char *fmt, ...)
{
    va_list ap;

    assert_int_equal(level, NCCL_LOG_WARN);
    assert_int_equal(flags, NCCL_LOG_NET);
    assert_non_null(strstr(file, "nccl_handle.c"));
    assert_true(line > 0);
    va_start(ap, fmt);
    vsnprintf(said, sizeof(said), fmt, ap);
    va_end(ap);
}

static void refusals(void **state)
{
    int object;
    void *h = nccl_handle_new(NCCL_KIND_SEND, &object), *found;

    (void)state;
    assert_non_null(h);
    assert_int_equal(nccl_handle_find(h, NCCL_KIND_SEND, "isend", &found), NCCL_SUCCESS);
    assert_ptr_equal(found, &object);
    nccl_log_by(hear);
    assert_int_equal(nccl_handle_find(h, NCCL_KIND_RECV, "irecv", &found), NCCL_INVALID_USAGE);
    assert_null(found);
    assert_non_null(strstr(said, "irecv: found"));
    assert_non_null(strstr(said, "expected a receive communicator that has not been closed"));
    nccl_handle_end(h);
    assert_int_equal(nccl_handle_find(h, NCCL_KIND_SEND, "isend", &found), NCCL_INVALID_USAGE);
    assert_int_equal(nccl_handle_find(NULL, NCCL_KIND_SEND, "isend", &found),
                     NCCL_INVALID_ARGUMENT);
    assert_string_equal(said, "NET/Tributary: isend: found NULL, expected a send communicator");
    assert_int_equal(nccl_handle_find(&object, NCCL_KIND_SEND, "isend", &found),
                     NCCL_INVALID_USAGE);
    nccl_handle_end(&object);
    nccl_log_by(NULL);
    assert_int_equal(nccl_handle_find(h, NCCL_KIND_SEND, "isend", &found), NCCL_INVALID_USAGE);
}

/* A place that is used again has another number, and hints of NCCL's are none. */
static void numbers(void **state)
{
    int object[2];
    void *first = nccl_handle_new(NCCL_KIND_REQUEST, &object[0]), *second;

    (void)state;
    assert_true((uintptr_t)first > 16);
    nccl_handle_end(first);
    second = nccl_handle_new(NCCL_KIND_REQUEST, &object[1]);
    assert_ptr_not_equal(first, second);
    nccl_handle_end(first); /* once more: nothing */
    assert_null(nccl_handle_object(first, NCCL_KIND_REQUEST));
    assert_ptr_equal(nccl_handle_object(second, NCCL_KIND_REQUEST), &object[1]);
    nccl_handle_end(second);
}

#define MANY 5000

static void growth(void **state)
{
    static int object[MANY];
    static void *h[MANY];

    (void)state;
    for (unsigned i = 0; i < MANY; i++)
        assert_non_null(h[i] = nccl_handle_new(NCCL_KIND_MEMORY, &object[i]));
    for (unsigned i = 0; i < MANY; i += 2)
        nccl_handle_end(h[i]);
    for (unsigned i = 0; i < MANY; i++)
        assert_ptr_equal(nccl_handle_object(h[i], NCCL_KIND_MEMORY), i % 2 ? &object[i] : NULL);
    for (unsigned i = 1; i < MANY; i += 2)
        nccl_handle_end(h[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals),
        cmocka_unit_test(numbers),
        cmocka_unit_test(growth),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
