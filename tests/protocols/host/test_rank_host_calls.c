/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank half may send, add and count, and how what it may not is named. */
#include "tests/protocols/host/acting_rank.h"

static const struct trib_protocol without = {
    .version = TRIB_PROTOCOL_VERSION, .name = "alone", .rank = &rank_half};

/* ---- packets ---- */

static struct {
    int to;
    int target; /* of send_through(), else -1 */
    uint32_t head, data;
} wanted;
static bool answer;

static void sends(struct trib_rank *r)
{
    static const uint8_t bytes[256];

    if (wanted.target >= 0)
        answer = r->api->send_through(r, (unsigned)wanted.target, bytes, wanted.head, bytes + 128,
                                      wanted.data);
    else
        answer = r->api->send(r, wanted.to, bytes, wanted.head, bytes + 128, wanted.data);
}

struct send_row {
    const struct trib_protocol *p;
    int to, target;
    uint32_t head, data;
    const char *says; /* NULL: it is sent */
};

static void assert_row(const struct send_row *row)
{
    struct proto_rank *r = rank_of(row->p, 0);
    const char *error;

    wanted.to = row->to, wanted.target = row->target;
    wanted.head = row->head, wanted.data = row->data;
    answer = false;
    error = error_of(r, sends);
    assert_true(answer);
    assert_false(proto_rank_waits(r));
    assert_int_equal(sent.n, !row->says);
    if (row->says) {
        assert_non_null(error);
        assert_string_equal(error, row->says);
    } else {
        assert_null(error);
        assert_true(sent.to == row->to && sent.target == row->target);
        assert_true(sent.head_bytes == row->head && sent.data_bytes == row->data);
        assert_ptr_equal(sent.ctx, &sent);
        assert_ptr_equal((const uint8_t *)sent.head + 128, sent.data);
    }
    proto_rank_destroy(r);
}

#define P              &with_switch
#define AWAY(name, to) "protocol " name ": sends to " to ", which this rank does not reach"

static void what_a_rank_reaches(void **state)
{
    static const struct send_row rows[] = {
        {P, TRIB_SWITCH, -1, 8, 8, NULL},
        {P, TRIB_SWITCH_OF(0), -1, 8, 8, NULL},
        {P, TRIB_SWITCH_OF(1), -1, 8, 8, NULL},
        {P, TRIB_SWITCH_OF(3), -1, 8, 8, NULL},
        {P, TRIB_SWITCH_OF(4), -1, 8, 8, AWAY("acts", "0x1004")},
        {P, TRIB_RANK(0), -1, 8, 8, NULL},
        {P, TRIB_RANK(3), -1, 8, 8, NULL},
        {P, TRIB_RANK(1), -1, 8, 8, AWAY("acts", "0x1")},
        {P, TRIB_RANK(4), -1, 8, 8, AWAY("acts", "0x4")},
        {P, -1, -1, 8, 8, AWAY("acts", "0xffffffff")},
        {P, TRIB_CHILD(0), -1, 8, 8, AWAY("acts", "0x2000")},
        {P, TRIB_PARENT, -1, 8, 8, AWAY("acts", "0x3001")},
        {P, TRIB_CHILDREN, -1, 8, 8, AWAY("acts", "0x3002")},
        {P, TRIB_SWITCH, 0, 8, 8, NULL},
        {P, TRIB_SWITCH, 1, 8, 8, NULL},
        {P, TRIB_SWITCH, 3, 8, 8, NULL},
        {P, TRIB_SWITCH, 4, 8, 8, AWAY("acts", "0x4")},
        {&without, TRIB_RANK(0), -1, 8, 8, NULL},
        {&without, TRIB_SWITCH, -1, 8, 8, AWAY("alone", "0x3000")},
        {&without, TRIB_SWITCH_OF(0), -1, 8, 8, AWAY("alone", "0x1000")},
        {&without, TRIB_SWITCH, 3, 8, 8, AWAY("alone", "0x3000")},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_row(&rows[i]);
}

static void what_fits_a_packet(void **state)
{
    static const struct send_row rows[] = {
        {P, TRIB_SWITCH, -1, 0, 100, NULL},
        {P, TRIB_SWITCH, -1, 64, 36, NULL},
        {P, TRIB_SWITCH, -1, 0, 0, NULL},
        {P, TRIB_SWITCH, -1, 0, 101,
         "protocol acts: sends a packet of 0 and 101 bytes, at most 64 and 100 fit"},
        {P, TRIB_SWITCH, -1, 64, 37,
         "protocol acts: sends a packet of 64 and 37 bytes, at most 64 and 36 fit"},
        {P, TRIB_SWITCH, -1, 65, 0,
         "protocol acts: sends a packet of 65 and 0 bytes, at most 64 and 100 fit"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_row(&rows[i]);
}

static void a_full_queue_is_waited_for(void **state)
{
    struct proto_rank *r = rank_of(&with_switch, 0);
    const struct trib_packet p = {.head_bytes = 0};

    (void)state;
    wanted.to = TRIB_SWITCH, wanted.target = -1, wanted.head = wanted.data = 4;
    sent.full = true;
    half.act = sends;
    proto_rank_packet(r, &p, 1);
    assert_false(answer);
    assert_true(proto_rank_waits(r));
    assert_null(proto_rank_error(r));
    sent.full = false;
    half.act = sends;
    proto_rank_room(r, 2);
    assert_true(answer);
    assert_false(proto_rank_waits(r));
    assert_int_equal(sent.n, 1);
    assert_string_equal(error_of(r, says_why), "100% full");
    assert_string_equal(error_of(r, sends), "100% full"); /* nothing leaves a rank that failed */
    assert_int_equal(sent.n, 0);
    proto_rank_destroy(r);
}

/* ---- sums, counters, time ---- */

static struct {
    int type, op;
} sum;

static void reduces(struct trib_rank *r)
{
    int32_t dst[3] = {1, 2, 3}, src[3] = {10, 20, 30};

    r->api->reduce(r, dst, src, 2, sum.type, sum.op);
    if (proto_rank_error((struct proto_rank *)r))
        assert_true(dst[0] == 1 && dst[1] == 2);
    else
        assert_true(dst[0] == 11 && dst[1] == 22);
    assert_true(dst[2] == 3 && src[0] == 10 && src[1] == 20 && src[2] == 30);
}

static void sums_of_known_types(void **state)
{
    static const struct {
        int type, op;
        const char *says;
    } rows[] = {{TRIB_INT32, TRIB_SUM, NULL},
                {TRIB_TYPES, TRIB_SUM, "protocol acts: reduction 0 of type 10"},
                {TRIB_INT32, TRIB_REDUCTIONS, "protocol acts: reduction 4 of type 2"},
                {-1, TRIB_MIN, "protocol acts: reduction 2 of type -1"}};

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct proto_rank *r = rank_of(&with_switch, 0);
        const char *error;

        sum.type = rows[i].type, sum.op = rows[i].op;
        error = error_of(r, reduces);
        if (rows[i].says)
            assert_string_equal(error, rows[i].says);
        else
            assert_null(error);
        proto_rank_destroy(r);
    }
}

static void counts(struct trib_rank *r)
{
    r->api->count(r, 0, 3);
    r->api->count(r, 1, 5);
    r->api->count(r, 1, 6);
}

static void counts_too_far(struct trib_rank *r)
{
    r->api->count(r, 2, 1);
}

static void counters_are_the_half_s_own(void **state)
{
    struct proto_rank *r = rank_of(&with_switch, 0);

    (void)state;
    assert_null(error_of(r, counts));
    assert_true(proto_rank_counters(r)[0] == 3 && proto_rank_counters(r)[1] == 11);
    assert_string_equal(error_of(r, counts_too_far),
                        "protocol acts: counts counter 2, its rank half has 2");
    assert_true(proto_rank_counters(r)[2] == 0);
    proto_rank_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_a_rank_reaches, reset),
        cmocka_unit_test_setup(what_fits_a_packet, reset),
        cmocka_unit_test_setup(a_full_queue_is_waited_for, reset),
        cmocka_unit_test_setup(sums_of_known_types, reset),
        cmocka_unit_test_setup(counters_are_the_half_s_own, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
