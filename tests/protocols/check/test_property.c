/* SPDX-License-Identifier: BSD-3-Clause */
/* What a property's process finds, by name; that a seed is one case. */
#include "protocols/builtin.h"
#include "protocols/check/property.h"
#include "protocols/check/queue.h"
#include "protocols/host/registry.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct property_found found_by(const struct trib_protocol *p, enum property property)
{
    int64_t key[TRIB_KEYS];
    struct property_plan plan = {.protocol = p, .key = key, .first = 1, .last = 4};
    struct property_found found = {.seed = 0};

    proto_usual(p, key);
    assert_int_equal(property_run(&plan, property, &found), 0);
    return found;
}

static void a_right_protocol_has_all_properties(void **state)
{
    (void)state;
    for (unsigned p = 0; p < PROPERTIES; p++) {
        struct property_found found = found_by(&trib_ps, p);

        assert_false(found.failed);
        assert_true(found.seeds == (p == P_VERSIONS ? 1 : p == P_HOSTILE ? 12 : 4));
    }
}

static int crashes(struct trib_rank *r, const struct trib_op *op)
{
    (void)r, (void)op;
    return raise(SIGSEGV);
}

_Noreturn static int loops(struct trib_rank *r, const struct trib_op *op)
{
    (void)r, (void)op;
    for (volatile unsigned i = 0;; i = i + 1)
        ;
}

static int does_nothing(struct trib_rank *r, const struct trib_op *op)
{
    (void)r, (void)op;
    return 0;
}

static void no_packet(struct trib_rank *r, const struct trib_packet *p)
{
    (void)r, (void)p;
}

static void no_room(struct trib_rank *r)
{
    (void)r;
}

static bool all_types(enum trib_type type, enum trib_sum op)
{
    (void)type, (void)op;
    return true;
}

static void what_goes_wrong_is_named(void **state)
{
    static const struct {
        int (*start)(struct trib_rank *r, const struct trib_op *op);
        const char *says;
    } rows[] = {
        {crashes, "ends by signal"},
        {loops, "does not return"},
        {does_nothing, "no packet is in flight and no timer is set"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct trib_rank_half half = {
            .start = rows[i].start, .packet = no_packet, .room = no_room};
        const struct trib_protocol p = {.version = TRIB_PROTOCOL_VERSION,
                                        .name = "wrong",
                                        .supports = all_types,
                                        .rank = &half};
        struct property_found found = found_by(&p, P_EXACT);

        assert_true(found.failed);
        assert_int_equal(found.seed, 1);
        assert_non_null(strstr(found.text, rows[i].says));
    }
}

static void a_seed_is_one_case(void **state)
{
    int64_t key[TRIB_KEYS];
    struct check_case a, b;

    (void)state;
    proto_usual(&trib_ps, key);
    for (unsigned p = 0; p < PROPERTIES; p++)
        for (uint64_t seed = 1; seed < 20; seed++) {
            assert_int_equal(case_draw(&a, &trib_ps, key, p, seed), 0);
            assert_int_equal(case_draw(&b, &trib_ps, key, p, seed), 0);
            assert_memory_equal(&a, &b, sizeof(a));
        }
}

static void events_come_in_order(void **state)
{
    static const int64_t times[] = {5, 3, 9, 3, 1, 5, 5, 0, 7};
    struct queue q = {.e = NULL};
    struct queue_event e, last = {.at_ps = -1};

    (void)state;
    for (unsigned i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        assert_int_equal(queue_push(&q, times[i], 0, i, 0, NULL), 0);
    while (queue_pop(&q, &e)) {
        assert_true(e.at_ps > last.at_ps || (e.at_ps == last.at_ps && e.a > last.a));
        last = e;
    }
    assert_int_equal(last.at_ps, 9);
    queue_fini(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_right_protocol_has_all_properties),
        cmocka_unit_test(what_goes_wrong_is_named),
        cmocka_unit_test(a_seed_is_one_case),
        cmocka_unit_test(events_come_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
