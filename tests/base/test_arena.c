/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of an arena is zeroed, aligned, in nobody else's use, and of any size. */
#include "base/arena.h"

#include <errno.h>
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CHUNK 65536u /* bytes that are allocated at a time */
#define N     3000

static void what_is_allocated_is_zeroed_aligned_and_apart(void **state)
{
    static const size_t sizes[] = {1, 7, 16, 40, 1000, CHUNK - 16, CHUNK, 3 * CHUNK};
    void *arena = NULL;
    unsigned char *p[N];
    size_t bytes[N];

    (void)state;
    for (unsigned i = 0; i < N; i++) {
        bytes[i] = i % 100 == 99 ? sizes[5 + i / 100 % 3] : sizes[i % 5];
        p[i] = arena_alloc(&arena, 1, bytes[i]);
        assert_non_null(p[i]);
        assert_int_equal((uintptr_t)p[i] % alignof(max_align_t), 0);
        for (size_t k = 0; k < bytes[i]; k++)
            if (p[i][k])
                fail_msg("byte %zu of %zu is %d", k, bytes[i], p[i][k]);
        memset(p[i], (int)(i % 251) + 1, bytes[i]);
    }
    for (unsigned i = 0; i < N; i++)
        assert_true(p[i][0] == i % 251 + 1 && p[i][bytes[i] - 1] == i % 251 + 1);
    arena_free(arena);
    arena_free(NULL);
}

/* A fabric has millions of small objects: they share what is allocated. */
static void small_objects_share_an_allocation(void **state)
{
    void *arena = NULL, *one;
    unsigned char *p, *q;
    unsigned n = 0;

    (void)state;
    assert_non_null(p = arena_alloc(&arena, 3, 5));
    one = arena;
    assert_non_null(q = arena_alloc(&arena, 1, 1));
    assert_ptr_equal(q, p + 16);
    for (n = 2; arena == one; n++)
        assert_non_null(arena_alloc(&arena, 1, 15));
    assert_int_equal(n, CHUNK / 16 + 1); /* the last one is in the next allocation */
    arena_free(arena);
}

static void an_object_each_even_of_no_bytes(void **state)
{
    void *arena = NULL, *p = arena_alloc(&arena, 0, 8), *q = arena_alloc(&arena, 8, 0);

    (void)state;
    assert_non_null(p);
    assert_non_null(q);
    assert_ptr_not_equal(p, q);
    arena_free(arena);
}

static void what_no_memory_can_hold_is_refused(void **state)
{
    void *arena = NULL;

    (void)state;
    assert_null(arena_alloc(&arena, SIZE_MAX, 2));
    assert_null(arena_alloc(&arena, SIZE_MAX / 8 + 1, 8));
    assert_null(arena_alloc(&arena, 1, SIZE_MAX));
    assert_null(arena_alloc(&arena, 1, SIZE_MAX / 2 + 1));
    assert_null(arena);
}

/* Under AddressSanitizer only the bytes of objects are addressable: those beside them, and those
 * that nobody has yet, are poisoned. */
int __asan_address_is_poisoned(const volatile void *at) __attribute__((weak));

static void what_is_beside_an_object_is_nobodys(void **state)
{
    static const size_t sizes[] = {1, 8, 15, 16, 17, 0, CHUNK - 16, CHUNK, 24};
    void *arena = NULL;

    (void)state;
    if (!__asan_address_is_poisoned)
        skip();
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        unsigned char *p = arena_alloc(&arena, sizes[i], 1);

        assert_non_null(p);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_false(__asan_address_is_poisoned(p + k));
        assert_true(__asan_address_is_poisoned(p + sizes[i]));
    }
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_allocated_is_zeroed_aligned_and_apart),
        cmocka_unit_test(small_objects_share_an_allocation),
        cmocka_unit_test(an_object_each_even_of_no_bytes),
        cmocka_unit_test(what_no_memory_can_hold_is_refused),
        cmocka_unit_test(what_is_beside_an_object_is_nobodys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
