/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends and receives meet by source, destination and tag in the order in which they are posted. */
#include "trace/app_graph.h"
#include "trace/messages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"

#include <stdlib.h>

static void the_first_that_fits_is_met(void **state)
{
    struct messages m = {.open = true};

    (void)state;
    assert_int_equal(messages_recv(&m, 1, 0, 9, 7), MESSAGE_NONE);
    assert_int_equal(messages_recv(&m, 2, APP_ANY, 9, 7), MESSAGE_NONE);
    assert_int_equal(messages_send(&m, 3, 5, 9, 7), 2);
    assert_int_equal(messages_recv(&m, 4, APP_ANY, 9, APP_ANY), MESSAGE_NONE);
    assert_int_equal(messages_send(&m, 5, 0, 9, 7), 1);
    assert_int_equal(messages_send(&m, 6, 0, 8, 7), MESSAGE_NONE);
    assert_int_equal(messages_send(&m, 7, 0, 9, 7), 4);
    assert_int_equal(messages_send(&m, 8, 3, 8, 6), MESSAGE_NONE);
    assert_int_equal(messages_recv(&m, 9, 3, 8, APP_ANY), 8);
    assert_int_equal(messages_recv(&m, 10, APP_ANY, 8, APP_ANY), 6);
    assert_int_equal(messages_recv(&m, 11, 0, 8, 7), MESSAGE_NONE);
    messages_free(&m);
}

#define OPS 4000

struct plain {
    uint32_t from, to, tag, met;
    bool sends, done;
};

static bool fits(const struct plain *recv, const struct plain *send)
{
    return !recv->sends && send->sends && recv->to == send->to &&
           (recv->from == APP_ANY || recv->from == send->from) &&
           (recv->tag == APP_ANY || recv->tag == send->tag);
}

/* Against a search from the first that was posted on. */
static void draws_meet_as_a_plain_search_says(void **state)
{
    struct messages m = {.open = true};
    struct plain *all = calloc(OPS, sizeof(*all));
    uint64_t seed = 5;

    (void)state;
    assert_non_null(all);
    for (uint32_t i = 0; i < OPS; i++) {
        struct plain *p = &all[i];
        uint32_t expected = MESSAGE_NONE, is;

        *p = (struct plain){.from = random_next(&seed) % 3,
                            .to = random_next(&seed) % 3,
                            .tag = random_next(&seed) % 2,
                            .sends = random_next(&seed) & 1};
        if (!p->sends && random_next(&seed) % 4 == 0)
            p->from = APP_ANY;
        if (!p->sends && random_next(&seed) % 4 == 0)
            p->tag = APP_ANY;
        for (uint32_t k = 0; k < i && expected == MESSAGE_NONE; k++)
            if (!all[k].done && (fits(p, &all[k]) || fits(&all[k], p)))
                expected = k;
        is = p->sends ? messages_send(&m, i, p->from, p->to, p->tag)
                      : messages_recv(&m, i, p->from, p->to, p->tag);
        assert_int_equal(is, expected);
        if (expected != MESSAGE_NONE)
            p->done = all[expected].done = true;
    }
    messages_free(&m);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_that_fits_is_met),
        cmocka_unit_test(draws_meet_as_a_plain_search_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
