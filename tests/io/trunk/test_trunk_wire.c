/* SPDX-License-Identifier: BSD-3-Clause */
/* What a trunk accepts: nothing that was changed, made without the key, or received before. */
#include "io/trunk/trunk_wire.h"

#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static size_t message(struct trunk_seal *s, uint8_t *m, uint8_t type, uint64_t seq, size_t body)
{
    struct trunk_header h = {.magic = htobe32(TRUNK_MAGIC),
                             .version = TRUNK_VERSION,
                             .type = type,
                             .from = 1,
                             .to = 0,
                             .session = htobe64(77),
                             .peer_session = htobe64(99),
                             .seq = htobe64(seq)};
    size_t bytes = sizeof(h) + body;

    memset(m, 0x5a, bytes);
    memcpy(m, &h, sizeof(h));
    assert_true(trunk_seal_put(s, m, bytes));
    return bytes;
}

static void accepts_what_is_whole(void **state)
{
    struct trunk_seal *s = trunk_seal_new("a secret of the lab"),
                      *r = trunk_seal_new("a secret of the lab");
    uint8_t m[TRUNK_MAX];
    (void)state;

    for (size_t body = 34; body < 4200; body += 97)
        assert_int_equal(trunk_check(r, m, message(s, m, TRUNK_FRAME, body, body), 0, 2),
                         TRUNK_FINE);
    trunk_seal_free(s);
    trunk_seal_free(r);
}

static void refuses_every_changed_byte(void **state)
{
    struct trunk_seal *s = trunk_seal_new("a secret of the lab");
    uint8_t m[TRUNK_MAX];
    size_t bytes = message(s, m, TRUNK_FRAME, 5, 64);
    (void)state;

    for (size_t i = 0; i < bytes; i++)
        for (unsigned bit = 0; bit < 8; bit++) {
            m[i] ^= (uint8_t)(1u << bit);
            assert_int_not_equal(trunk_check(s, m, bytes, 0, 2), TRUNK_FINE);
            m[i] ^= (uint8_t)(1u << bit);
        }
    for (size_t cut = 0; cut < bytes; cut++)
        assert_int_not_equal(trunk_check(s, m, cut, 0, 2), TRUNK_FINE);
    assert_int_equal(trunk_check(s, m, bytes, 0, 2), TRUNK_FINE);
    trunk_seal_free(s);
}

static void says_why(void **state)
{
    struct trunk_seal *s = trunk_seal_new("a secret of the lab"),
                      *other = trunk_seal_new("another secret of it");
    uint8_t m[TRUNK_MAX];
    size_t bytes = message(other, m, TRUNK_FRAME, 5, 64);
    (void)state;

    assert_int_equal(trunk_check(s, m, bytes, 0, 2), TRUNK_FORGED);
    assert_int_equal(trunk_check(s, m, 10, 0, 2), TRUNK_SHORT);
    bytes = message(s, m, TRUNK_FRAME, 5, 64);
    assert_int_equal(trunk_check(s, m, bytes, 1, 2), TRUNK_FOREIGN); /* to another machine */
    assert_int_equal(trunk_check(s, m, bytes, 0, 1),
                     TRUNK_FOREIGN); /* from a machine that is none */
    m[0] ^= 1;
    assert_int_equal(trunk_check(s, m, bytes, 0, 2), TRUNK_FOREIGN);
    bytes = message(s, m, TRUNK_STATE, 5, 20);
    assert_int_equal(trunk_check(s, m, bytes, 0, 2), TRUNK_SHORT); /* its body has more */
    trunk_seal_free(s);
    trunk_seal_free(other);
}

/* Against a list of all that was taken. */
static void takes_each_number_once(void **state)
{
    static struct trunk_window w;
    static bool taken[1 << 20];
    uint64_t top = 0;
    (void)state;

    memset(&w, 0, sizeof(w));
    assert_false(trunk_window_take(&w, 0));
    srand(3);
    for (unsigned i = 0; i < 400000; i++) {
        uint64_t jump = rand() % 1000 ? (uint64_t)rand() % 4 : (uint64_t)rand() % 5000;
        uint64_t seq =
            rand() % 2 ? top + jump : top - (uint64_t)rand() % (top < 4000 ? top + 1 : 4000);

        if (!seq || seq >= sizeof(taken))
            continue;
        if (trunk_window_take(&w, seq)) {
            assert_false(taken[seq]);
            taken[seq] = true;
        } else {
            assert_true(taken[seq] || seq + TRUNK_WINDOW - 64 <= top);
        }
        top = seq > top ? seq : top;
    }
    assert_true(top > 300000);
    assert_true(trunk_window_take(&w, UINT64_MAX - 4));
    assert_false(trunk_window_take(&w, UINT64_MAX - 4));
    assert_true(trunk_window_take(&w, UINT64_MAX - 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_what_is_whole),
        cmocka_unit_test(refuses_every_changed_byte),
        cmocka_unit_test(says_why),
        cmocka_unit_test(takes_each_number_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
