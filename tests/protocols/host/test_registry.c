/* SPDX-License-Identifier: BSD-3-Clause */
/* Which protocols get a seat and which are refused, in which words; their keys, and the values that a
 * fabric gives them. */
#include "protocols/builtin.h"
#include "protocols/host/conf.h"
#include "protocols/host/load.h"
#include "protocols/host/registry.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool supports(enum trib_type type, enum trib_sum op)
{
    (void)type, (void)op;
    return true;
}

static int start(struct trib_rank *r, const struct trib_op *op)
{
    (void)r, (void)op;
    return 0;
}

static void packet(struct trib_rank *r, const struct trib_packet *p)
{
    (void)r, (void)p;
}

static void room(struct trib_rank *r)
{
    (void)r;
}

static int job_open(struct trib_switch *s, struct trib_job *job)
{
    (void)s, (void)job;
    return 0;
}

static void job_close(struct trib_switch *s, struct trib_job *job)
{
    (void)s, (void)job;
}

static void at_switch(struct trib_switch *s, struct trib_job *job, const struct trib_packet *p)
{
    (void)s, (void)job, (void)p;
}

static const struct trib_rank_half rank_half = {.start = start, .packet = packet, .room = room};
static const struct trib_switch_half switch_half = {
    .job_open = job_open, .job_close = job_close, .packet = at_switch};

/* A protocol without fault. */
static struct trib_protocol whole(const char *name)
{
    return (struct trib_protocol){.version = TRIB_PROTOCOL_VERSION,
                                  .name = name,
                                  .supports = supports,
                                  .sw = &switch_half,
                                  .rank = &rank_half};
}

static void assert_refused(const struct trib_protocol *p, int rc, const char *expected)
{
    char err[PROTO_TEXT] = "";

    assert_int_equal(proto_add(p, err), rc);
    assert_string_equal(err, expected);
}

static void the_built_in_ones_have_the_first_seats(void **state)
{
    (void)state;
    assert_ptr_equal(proto_at(0), &trib_switchml);
    assert_ptr_equal(proto_at(1), &trib_ps);
    assert_ptr_equal(proto_at(2), &trib_atp);
    for (unsigned i = 3; i < 10; i++)
        assert_null(proto_at(i));
    assert_null(proto_at(~0u));
    assert_int_equal(proto_seat("switchml"), 0);
    assert_int_equal(proto_seat("ps"), 1);
    assert_int_equal(proto_seat("atp"), 2);
    assert_int_equal(proto_seat("at"), -ENOENT);
    assert_int_equal(proto_seat(""), -ENOENT);
    for (unsigned i = 0; i < 10; i++)
        assert_null(proto_object(i));
}

static void another_version_is_refused(void **state)
{
    struct trib_protocol p = whole("one");

    (void)state;
    p.version = 1;
    assert_refused(
        &p, -EPROTO,
        "found version 1 of the protocol interface, expected 2: build it again with this "
        "version's header");
    p.version = 3;
    assert_refused(
        &p, -EPROTO,
        "found version 3 of the protocol interface, expected 2: build it again with this "
        "version's header");
}

static void names_are_checked(void **state)
{
    static const char *const wrong[] = {
        "", "-a", "A", "a_b", "a b", "a.b", "a/b", "abcdefghijklmnop", "caf\xc3\xa9"};
    struct trib_protocol p = whole(NULL);

    (void)state;
    assert_refused(&p, -EINVAL, "protocol \"\": its name is not 1 to 15 characters a-z, 0-9, -");
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char expected[128];

        p = whole(wrong[i]);
        snprintf(expected, sizeof(expected),
                 "protocol \"%s\": its name is not 1 to 15 characters a-z, 0-9, -", wrong[i]);
        assert_refused(&p, -EINVAL, expected);
    }
    p = whole("abcdefghijklmnopqrstuvwxyz");
    assert_refused(
        &p, -EINVAL,
        "protocol \"abcdefghijklmnopqrst\": its name is not 1 to 15 characters a-z, 0-9, -");
}

static void each_function_that_a_half_needs_is_asked_for(void **state)
{
    static const char rank_lacks[] = "protocol \"one\": its rank half lacks start(), packet() or "
                                     "room()";
    static const char switch_lacks[] = "protocol \"one\": its switch half lacks job_open(), "
                                       "job_close() or packet()";
    struct trib_rank_half r[3] = {rank_half, rank_half, rank_half};
    struct trib_switch_half s[3] = {switch_half, switch_half, switch_half};
    struct trib_protocol p = whole("one");

    (void)state;
    p.supports = NULL;
    assert_refused(&p, -EINVAL, "protocol \"one\": it has no supports()");
    p = whole("one");
    p.rank = NULL;
    assert_refused(&p, -EINVAL, rank_lacks);
    r[0].start = NULL, r[1].packet = NULL, r[2].room = NULL;
    s[0].job_open = NULL, s[1].job_close = NULL, s[2].packet = NULL;
    for (unsigned i = 0; i < 3; i++) {
        p = whole("one");
        p.rank = &r[i];
        assert_refused(&p, -EINVAL, rank_lacks);
        p = whole("one");
        p.sw = &s[i];
        assert_refused(&p, -EINVAL, switch_lacks);
    }
}

static void keys_are_checked(void **state)
{
    static const char word[] = "protocol \"one\": a key's name is not 1 to 31 of a-z, A-Z, 0-9, _ "
                               "and -";
    static const char range[] = "protocol \"one\": a key's usual value is out of its range";
    static const struct {
        struct trib_key key;
        const char *says;
    } rows[] = {
        {{"", "x", 0, 0, 0}, word},
        {{"a b", "x", 0, 0, 0}, word},
        {{"a.b", "x", 0, 0, 0}, word},
        {{"abcdefghijklmnopqrstuvwxyzABCDEF", "x", 0, 0, 0}, word}, /* 32 */
        {{"k", "x", 1, 2, 3}, range},
        {{"k", "x", 4, 2, 3}, range},
        {{"k", "x", -1, 0, 0}, range},
    };
    struct trib_key nine[10] = {{.name = NULL}};
    struct trib_protocol p;

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct trib_key first[] = {rows[i].key, {.name = NULL}};
        struct trib_key second[] = {{"good", "x", 5, 5, 5}, rows[i].key, {.name = NULL}};

        p = whole("one");
        p.keys = first;
        assert_refused(&p, -EINVAL, rows[i].says);
        p.keys = second;
        assert_refused(&p, -EINVAL, rows[i].says);
    }
    for (unsigned i = 0; i < 9; i++)
        nine[i] = (struct trib_key){"key", "x", i, 0, 9};
    p = whole("one");
    p.keys = nine;
    assert_int_equal(proto_keys(&p), TRIB_KEYS);
    assert_refused(&p, -EINVAL, "protocol \"one\": it has more than 8 keys");
}

static void counters_of_both_halves_are_checked(void **state)
{
    static const char word[] =
        "protocol \"one\": a counter's name is not 1 to 31 of a-z, A-Z, 0-9, "
        "_ and -";
    static const char *const wrong[] = {"good", "not good", NULL}, *const none[] = {"", NULL};
    const char *many[18] = {NULL};
    const char *const *rows[] = {wrong, none, many};

    (void)state;
    for (unsigned i = 0; i < 17; i++)
        many[i] = "c";
    for (unsigned i = 0; i < 3; i++) {
        const char *says = rows[i] == (const char *const *)many
                               ? "protocol \"one\": a half of it has more than 16 counters"
                               : word;
        struct trib_rank_half r = rank_half;
        struct trib_switch_half s = switch_half;
        struct trib_protocol p = whole("one");

        r.counters = rows[i];
        p.rank = &r;
        assert_refused(&p, -EINVAL, says);
        p.sw = NULL;
        assert_refused(&p, -EINVAL, says);
        p = whole("one");
        s.counters = rows[i];
        p.sw = &s;
        assert_refused(&p, -EINVAL, says);
    }
}

static void counters_are_counted(void **state)
{
    const char *many[18] = {NULL};

    (void)state;
    assert_int_equal(proto_counters(NULL), 0);
    assert_int_equal(proto_counters(many), 0);
    for (unsigned n = 1; n <= 17; n++) {
        many[n - 1] = "c";
        assert_int_equal(proto_counters(many), n < 16 ? n : 16);
    }
}

static const struct trib_key three[] = {{"least", "x", 10, 10, 30},
                                        {"most-of_all", "x", 30, 10, 30},
                                        {"abcdefghijklmnopqrstuvwxyzABCDE", "x", -7, -8, -6},
                                        {.name = NULL}};

static void keys_are_found_by_name(void **state)
{
    struct trib_protocol p = whole("one");
    int64_t key[TRIB_KEYS];

    (void)state;
    assert_int_equal(proto_keys(&p), 0);
    assert_int_equal(proto_key(&p, "least"), -ENOENT);
    p.keys = three;
    assert_int_equal(proto_keys(&p), 3);
    assert_int_equal(proto_key(&p, "least"), 0);
    assert_int_equal(proto_key(&p, "most-of_all"), 1);
    assert_int_equal(proto_key(&p, "abcdefghijklmnopqrstuvwxyzABCDE"), 2);
    assert_int_equal(proto_key(&p, "most"), -ENOENT);
    memset(key, 0xff, sizeof(key));
    proto_usual(&p, key);
    for (unsigned i = 0; i < TRIB_KEYS; i++)
        assert_true(key[i] == (i == 0 ? 10 : i == 1 ? 30 : i == 2 ? -7 : 0));
}

static void a_fabric_gives_keys_to_the_protocol_that_it_means(void **state)
{
    static struct fabric f;
    struct fab_protocol c = {.seat = -1, .n_keys = 2}, later = {.seat = 3, .n_keys = 1};
    static struct trib_protocol p, same;
    static struct fab_node nodes[3];
    int64_t key[TRIB_KEYS];
    char err[PROTO_TEXT] = "";

    (void)state;
    p = whole("a-b-9");
    p.keys = three;
    assert_int_equal(proto_add(&p, err), 3);
    assert_string_equal(err, "");
    assert_int_equal(proto_add(&p, err), 3); /* it has one */
    assert_ptr_equal(proto_at(3), &p);
    assert_int_equal(proto_seat("a-b-9"), 3);
    same = whole("a-b-9");
    assert_refused(&same, -EEXIST, "there is another protocol \"a-b-9\"");

    f.nodes = nodes;
    f.n_nodes = 3;
    nodes[1].reduce.protocol = &c;
    nodes[2].reduce.protocol = &later;
    snprintf(c.key[0].name, sizeof(c.key[0].name), "most-of_all");
    c.key[0].value = 21;
    snprintf(c.key[1].name, sizeof(c.key[1].name), "another's");
    c.key[1].value = 22;
    snprintf(later.key[0].name, sizeof(later.key[0].name), "least");
    later.key[0].value = 23;
    proto_conf(&f, &p, key); /* the first names none that is known */
    assert_true(key[0] == 23 && key[1] == 30 && key[2] == -7 && key[3] == 0);
    c.seat = 3;
    proto_conf(&f, &p, key); /* the first that means it counts */
    assert_true(key[0] == 10 && key[1] == 21 && key[2] == -7 && key[3] == 0);
    c.seat = 0;
    later.seat = 1;
    proto_conf(&f, &p, key);
    assert_true(key[0] == 10 && key[1] == 30 && key[2] == -7);
    c.seat = 3;
    f.n_nodes = 1;
    proto_conf(&f, &p, key);
    assert_true(key[0] == 10 && key[1] == 30 && key[2] == -7);
}

/* After the others: what has a seat keeps it. */
static void there_are_six_seats(void **state)
{
    static const char *counters[17];
    static struct trib_key eight[9];
    static struct trib_switch_half s;
    static struct trib_rank_half r;
    static struct trib_protocol p, q, last;
    char err[PROTO_TEXT] = "";

    (void)state;
    for (unsigned i = 0; i < 16; i++)
        counters[i] = "abcdefghijklmnopqrstuvwxyz_-019";
    for (unsigned i = 0; i < 8; i++)
        eight[i] = (struct trib_key){"Z", "x", 1, 1, 1};
    s = switch_half, r = rank_half;
    s.counters = r.counters = counters;
    p = whole("abcdefghijklm-0");
    p.keys = eight;
    p.sw = &s;
    p.rank = &r;
    assert_int_equal(proto_keys(&p), 8);
    assert_int_equal(proto_add(&p, err), 4);
    q = whole("9");
    q.sw = NULL;
    assert_int_equal(proto_add(&q, err), 5);
    assert_ptr_equal(proto_at(5), &q);
    assert_null(proto_at(6));
    last = whole("last");
    assert_refused(&last, -ENOSPC, "protocol \"last\": there are 6 already");
    assert_int_equal(proto_add(&q, err), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_built_in_ones_have_the_first_seats),
        cmocka_unit_test(another_version_is_refused),
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(each_function_that_a_half_needs_is_asked_for),
        cmocka_unit_test(keys_are_checked),
        cmocka_unit_test(counters_of_both_halves_are_checked),
        cmocka_unit_test(counters_are_counted),
        cmocka_unit_test(keys_are_found_by_name),
        cmocka_unit_test(a_fabric_gives_keys_to_the_protocol_that_it_means),
        cmocka_unit_test(there_are_six_seats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
