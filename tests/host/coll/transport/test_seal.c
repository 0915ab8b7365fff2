/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "host/coll/transport/seal.h"

struct msg {
    struct ctl_head head;
    char text[37];
};

static const struct seal_key key = {.key = 0x1122334455667788u, .group = 7};

/* The example of the paper's appendix A: key 00..0f, message 00..0e. */
static void the_hash_is_that_of_the_paper(void **state)
{
    uint8_t m[15];

    (void)state;
    for (unsigned i = 0; i < sizeof(m); i++)
        m[i] = (uint8_t)i;
    assert_true(siphash(0x0706050403020100u, 0x0f0e0d0c0b0a0908u, m, sizeof(m)) ==
                0xa129ca6149be45e5u);
}

static struct msg sealed(uint32_t seq)
{
    struct msg m = {.head.magic = RTE_BE32(0x54524250), .text = "all sends are acknowledged"};

    seal_put(&key, 3, 5, seq, &m, sizeof(m));
    return m;
}

static void a_message_is_believed_by_the_rank_that_it_is_for(void **state)
{
    struct msg m = sealed(1);

    (void)state;
    assert_true(seal_right(&key, 5, &m, sizeof(m)));
    assert_int_equal(m.head.from, RTE_BE32(3));
    assert_int_equal(m.head.seq, RTE_BE32(1));
    assert_false(seal_right(&key, 4, &m, sizeof(m)));
    assert_false(seal_right(&(struct seal_key){key.key ^ 1, key.group}, 5, &m, sizeof(m)));
    assert_false(seal_right(&(struct seal_key){key.key, key.group + 1}, 5, &m, sizeof(m)));
    assert_false(seal_right(&key, 5, &m, sizeof(m) - 1));
    assert_false(seal_right(&key, 5, &m, sizeof(m.head) - 1));
    assert_false(seal_right(&key, 5, &m, 0));
}

static void every_bit_of_a_message_counts(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < 8 * sizeof(struct msg); bit++) {
        struct msg m = sealed(1);

        ((uint8_t *)&m)[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_false(seal_right(&key, 5, &m, sizeof(m)));
    }
}

static void a_number_is_taken_once(void **state)
{
    struct seal_seen s = {0};

    (void)state;
    assert_false(seal_new(&s, 0));
    assert_true(seal_new(&s, 1));
    assert_false(seal_new(&s, 1));
    assert_true(seal_new(&s, 4)); /* 2 and 3 are late */
    assert_true(seal_new(&s, 2));
    assert_false(seal_new(&s, 2));
    assert_false(seal_new(&s, 4));
    assert_true(seal_new(&s, 3));
    for (uint32_t i = 5; i < 200; i++)
        assert_true(seal_new(&s, i));
    for (uint32_t i = 0; i < 200; i++)
        assert_false(seal_new(&s, i));
    assert_true(seal_new(&s, 199 + SEAL_WINDOW - 1));
    assert_false(seal_new(&s, 199));
    assert_true(seal_new(&s, 200));
    assert_true(seal_new(&s, 10000));
    assert_false(seal_new(&s, 10000 - SEAL_WINDOW)); /* too late to know */
    assert_true(seal_new(&s, 10000 - SEAL_WINDOW + 1));
    assert_false(seal_new(&s, 10000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hash_is_that_of_the_paper),
        cmocka_unit_test(a_message_is_believed_by_the_rank_that_it_is_for),
        cmocka_unit_test(every_bit_of_a_message_counts),
        cmocka_unit_test(a_number_is_taken_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
