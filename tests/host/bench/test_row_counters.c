/* SPDX-License-Identifier: BSD-3-Clause */
/* What protocols count: added by name, since when, as text and as JSON. */
#include "host/bench/row_counters.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect_text(const struct row_counters *r, bool wide, const char *expected)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    row_counters_print(r, wide, f);
    fclose(f);
    assert_string_equal(text, expected);
    free(text);
}

static void expect_json(const struct row_counters *r, const char *expected)
{
    json_t *j = row_counters_json(r);
    char *text = json_dumps(j, JSON_COMPACT);

    assert_string_equal(text, expected);
    free(text);
    json_decref(j);
}

static void counts_add_up_and_levels_have_their_greatest(void **state)
{
    struct row_counters r = {0};

    (void)state;
    expect_text(&r, false, "");
    assert_null(row_counters_json(&r));
    row_counters_add(&r, "sent", 5, false);
    row_counters_add(&r, "queue", 7, true);
    row_counters_add(&r, "lost", 0, false);
    row_counters_add(&r, "sent", 6, false);
    row_counters_add(&r, "queue", 3, true);
    row_counters_add(&r, "queue", 9, true);
    row_counters_add(&r, "queue", 9, true);
    assert_int_equal(r.n, 3);
    expect_text(&r, false, "# protocol: sent 11, queue 9\n");
    expect_json(&r, "{\"sent\":11,\"queue\":9,\"lost\":0}");
}

static void zeros_are_not_printed(void **state)
{
    struct row_counters r = {0};

    (void)state;
    row_counters_add(&r, "a", 0, false);
    expect_text(&r, false, "");
    row_counters_add(&r, "b", 1, false);
    row_counters_add(&r, "c", 2, false);
    expect_text(&r, false, "# protocol: b 1, c 2\n");
}

static void what_was_counted_before_is_taken_away(void **state)
{
    struct row_counters before = {0}, r;

    (void)state;
    row_counters_add(&before, "sent", 5, false);
    row_counters_add(&before, "queue", 7, true);
    r = before;
    row_counters_add(&r, "sent", 3, false);
    row_counters_add(&r, "new", 4, false);
    row_counters_since(&r, &before);
    expect_json(&r, "{\"sent\":3,\"queue\":7,\"new\":4}");
}

static void there_is_room_for_so_many(void **state)
{
    struct row_counters r = {0};
    char name[16];

    (void)state;
    for (unsigned i = 0; i < ROW_COUNTERS; i++) {
        snprintf(name, sizeof(name), "counter%u", i);
        row_counters_add(&r, name, 1, false);
    }
    row_counters_add(&r, "one more", 1, false);
    assert_int_equal(r.n, ROW_COUNTERS);
    row_counters_add(&r, name, 4, false);
    assert_int_equal(r.n, ROW_COUNTERS);
    assert_string_equal(r.c[ROW_COUNTERS - 1].name, name);
    assert_int_equal(r.c[ROW_COUNTERS - 1].v, 5);
    assert_int_equal(r.c[ROW_COUNTERS - 2].v, 1);
}

/* A line is broken, but not a wide one. */
static void long_lines_are_broken(void **state)
{
    struct row_counters r = {0};
    char expected[256] = "# protocol:";

    (void)state;
    for (unsigned i = 0; i < 12; i++) {
        char name[16];

        snprintf(name, sizeof(name), "counter%u", i);
        row_counters_add(&r, name, 1, false);
        snprintf(expected + strlen(expected), sizeof(expected) - strlen(expected), "%s %s 1",
                 i ? "," : "", name);
    }
    strcat(expected, "\n");
    expect_text(&r, true, expected);
    expect_text(
        &r, false,
        "# protocol: counter0 1, counter1 1, counter2 1, counter3 1, counter4 1, counter5 "
        "1, counter6 1,\n#   counter7 1, counter8 1, counter9 1, counter10 1, counter11 1\n");
}

/* A protocol has as many counters of its rank half as that has names; other algorithms have
 * none. */
static void ranks_count_by_the_names_of_their_protocol(void **state)
{
    static const uint64_t v[TRIB_COUNTERS] = {3, 4, 5, 6, 7, 8, 9, 10};
    const int seat = proto_seat("switchml");
    struct row_counters r = {0};

    (void)state;
    assert_true(seat >= 0);
    row_counters_add_ranks(&r, ALGO_RING, v);
    row_counters_add_ranks(&r, ALGO_PROTOCOL_LAST, v); /* an empty seat */
    assert_int_equal(r.n, 0);
    row_counters_add_ranks(&r, ALGO_PROTOCOL + (enum coll_algo)seat, v);
    row_counters_add_ranks(&r, ALGO_PROTOCOL + (enum coll_algo)seat, v);
    expect_json(&r, "{\"resent\":6,\"ignored\":8}");
}

static bool supports(enum trib_type type, enum trib_sum op)
{
    (void)type, (void)op;
    return false;
}

static void do_nothing(struct trib_rank *r)
{
    (void)r;
}

static int start_nothing(struct trib_rank *r, const struct trib_op *op)
{
    (void)r, (void)op;
    return 0;
}

static void take_nothing(struct trib_rank *r, const struct trib_packet *p)
{
    (void)r, (void)p;
}

/* As many as a protocol may have. */
static void a_rank_has_so_many_counters(void **state)
{
    static const char *const names[TRIB_COUNTERS + 1] = {
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", NULL};
    static const struct trib_rank_half half = {
        .counters = names, .start = start_nothing, .packet = take_nothing, .room = do_nothing};
    static const struct trib_protocol many = {.version = TRIB_PROTOCOL_VERSION,
                                              .name = "many",
                                              .about = "",
                                              .supports = supports,
                                              .rank = &half};
    static const uint64_t v[TRIB_COUNTERS + 1] = {[TRIB_COUNTERS - 1] = 5, [TRIB_COUNTERS] = 9};
    struct row_counters r = {0};
    char err[PROTO_TEXT];
    int seat = proto_add(&many, err);

    (void)state;
    assert_true(seat >= 0);
    row_counters_add_ranks(&r, ALGO_PROTOCOL + (enum coll_algo)seat, v);
    assert_int_equal(r.n, TRIB_COUNTERS);
    assert_string_equal(r.c[TRIB_COUNTERS - 1].name, "p");
    assert_int_equal(r.c[TRIB_COUNTERS - 1].v, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_add_up_and_levels_have_their_greatest),
        cmocka_unit_test(zeros_are_not_printed),
        cmocka_unit_test(what_was_counted_before_is_taken_away),
        cmocka_unit_test(there_is_room_for_so_many),
        cmocka_unit_test(long_lines_are_broken),
        cmocka_unit_test(ranks_count_by_the_names_of_their_protocol),
        cmocka_unit_test(a_rank_has_so_many_counters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
