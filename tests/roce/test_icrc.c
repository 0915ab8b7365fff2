/* SPDX-License-Identifier: BSD-3-Clause */
/* The CRC of the ICRC: equal to a second implementation, in pieces and copied, and it leaves vector
 * registers clean. */
#include "roce/icrc.h"
#include "tests/roce/crc_bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static void crc_equals_bitwise_at_all_lengths_and_alignments(void **state)
{
    uint8_t b[5000];

    (void)state;
    for (size_t i = 0; i < sizeof(b); i++)
        b[i] = (uint8_t)(rand() >> 7);
    assert_int_equal(~roce_crc(~0u, "123456789", 9), 0xcbf43926);
    for (size_t n = 0; n < 600; n++)
        assert_int_equal(roce_crc(0x1234 + n, b + n % 17, n), crc_bits(0x1234 + n, b + n % 17, n));
    for (size_t n = 4000; n < 4110; n++)
        assert_int_equal(roce_crc(~0u, b + n % 5, n), crc_bits(~0u, b + n % 5, n));
}

static void bytes_are_copied_with_their_crc_and_no_more_than_those(void **state)
{
    uint8_t b[5000], to[5000 + 64], want[sizeof(to)];

    (void)state;
    for (size_t i = 0; i < sizeof(b); i++)
        b[i] = (uint8_t)(rand() >> 7);
    for (size_t n = 0; n < 4400; n += n < 600 || n > 4000 ? 1 : 61) {
        uint8_t *at = to + n % 37;

        memset(to, 0x5a, sizeof(to));
        memset(want, 0x5a, sizeof(want));
        memcpy(want + (at - to), b + n % 17, n);
        assert_int_equal(roce_crc_copy(0x1234 + n, at, b + n % 17, n),
                         roce_crc(0x1234 + n, b + n % 17, n));
        assert_memory_equal(to, want, sizeof(to));
    }
}

static void crc_of_pieces_combines(void **state)
{
    uint8_t b[8192], zero[8192] = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(b); i++)
        b[i] = (uint8_t)(rand() >> 7);
    for (int t = 0; t < 3000; t++) {
        size_t n = rand() % sizeof(b), cut = n ? rand() % n : 0;
        uint32_t whole = roce_crc(~0u, b, n), head = roce_crc(~0u, b, cut);

        assert_int_equal(roce_crc(head, b + cut, n - cut), whole);
        assert_int_equal(roce_crc_shift(head, n - cut) ^ roce_crc(0, b + cut, n - cut), whole);
    }
    for (uint32_t n = 0; n < 300; n++)
        assert_int_equal(roce_crc_shift(0xcafe, n), crc_bits(0xcafe, zero, n));
    assert_int_equal(roce_crc_shift(roce_crc_shift(99, 1u << 30), 1u << 30),
                     roce_crc_shift(99, 1u << 31));
}

#if defined(__x86_64__)
/* Whether upper halves of vector registers are in use: SSE instructions are slow then. XGETBV with
 * ECX = 1, Intel SDM vol. 1, 13.6. */
static bool wide_registers_in_use(void)
{
    uint32_t low, high;

    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
    return low & (1u << 2 | 1u << 6);
}

__attribute__((target("avx"))) static void clear_wide_registers(void)
{
    __asm__ volatile("vzeroupper");
}

static void a_crc_leaves_no_wide_registers_in_use(void **state)
{
    uint8_t bytes[4096 + 15] = {1}, to[sizeof(bytes)];
    uint32_t a, b, c, d;

    (void)state;
    __cpuid_count(0xd, 1, a, b, c, d);
    if (!__builtin_cpu_supports("avx") || !(a & 1 << 2))
        skip();
    for (uint32_t n = 4; n <= sizeof(bytes); n += 7) {
        clear_wide_registers();
        if (wide_registers_in_use()) /* not supported by this machine */
            skip();
        roce_crc(0, bytes, n);
        assert_false(wide_registers_in_use());
        roce_crc_copy(0, to, bytes, n);
        assert_false(wide_registers_in_use());
    }
}
#else
static void a_crc_leaves_no_wide_registers_in_use(void **state)
{
    (void)state;
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc_equals_bitwise_at_all_lengths_and_alignments),
        cmocka_unit_test(bytes_are_copied_with_their_crc_and_no_more_than_those),
        cmocka_unit_test(crc_of_pieces_combines),
        cmocka_unit_test(a_crc_leaves_no_wide_registers_in_use),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
