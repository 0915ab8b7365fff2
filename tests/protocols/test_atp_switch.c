/* SPDX-License-Identifier: BSD-3-Clause */
/* Who owns an aggregator of ATP's switch half, packet by packet: there is one, and all blocks want
 * it. */
#include "protocols/atp.h"
#include "protocols/host/registry.h"
#include "protocols/host/switch_host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define WINDOW     8u
#define ROUND_TRIP 1000 /* with what it takes to notice */
#define OLD_PS     (16 * ROUND_TRIP)

static struct {
    struct proto_switch *s;
    struct proto_job *job[2];
    unsigned n; /* packets sent since the last look */
    int to;
    struct atp_head head;
    int32_t value[4];
} bed;

static void emit(void *ctx, void *job, int to, const void *head, uint32_t head_bytes,
                 const void *data, uint32_t data_bytes)
{
    (void)ctx, (void)job;
    bed.n++;
    bed.to = to;
    memset(bed.value, 0, sizeof(bed.value));
    memcpy(&bed.head, head, head_bytes);
    memcpy(bed.value, data, data_bytes);
}

static int set_up(void **state)
{
    static int64_t key[TRIB_KEYS];
    const struct proto_switch_cfg cfg = {
        .protocol = &trib_atp, .key = key, .payload = 256, .memory = 1 << 16, .emit = emit};
    const struct proto_job_cfg job = {.nranks = 3,
                                      .n_children = 3,
                                      .n_below = 3,
                                      .root = true,
                                      .round_trip_ps = ROUND_TRIP - 100,
                                      .notice_ps = 100};
    char err[PROTO_TEXT];

    (void)state;
    memset(&bed, 0, sizeof(bed));
    proto_usual(&trib_atp, key);
    key[KEY_AGGREGATORS] = 1;
    assert_int_equal(proto_switch_create(&bed.s, &cfg, err), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(proto_job_open(bed.s, &job, 0, &bed.job[i], err), 0);
    return 0;
}

static int tear_down(void **state)
{
    char leak[PROTO_TEXT];

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        assert_null(proto_job_why(bed.job[i]));
        proto_job_close(bed.s, bed.job[i], 0, leak);
        assert_string_equal(leak, "");
    }
    assert_int_equal(proto_switch_counters(bed.s)->slots, 0);
    proto_switch_destroy(bed.s);
    return 0;
}

static struct atp_head part_of(uint64_t seq, unsigned rank)
{
    struct atp_head h = {
        .seq = seq, .window = WINDOW, .count = 2, .kind = PART, .type = TRIB_INT32, .fan_in = 3};

    trib_set_add(&h.ranks, rank);
    return h;
}

static void arrives(unsigned job, const struct atp_head *h, bool marked, int64_t now)
{
    const int32_t value[2] = {1, 10};
    const struct trib_packet p = {.head = h,
                                  .data = value,
                                  .head_bytes = sizeof(*h),
                                  .data_bytes = h->count * 4u,
                                  .from = TRIB_CHILD(0),
                                  .marked = marked};

    bed.n = 0;
    proto_switch_packet(bed.s, bed.job[job], &p, now);
}

/* A part of a rank. */
static void part(unsigned job, uint64_t seq, unsigned rank, int64_t now)
{
    const struct atp_head h = part_of(seq, rank);

    arrives(job, &h, false, now);
}

static void result(unsigned job, uint64_t seq)
{
    struct atp_head h = part_of(seq, 0);

    h.kind = RESULT;
    h.ranks = (struct trib_set){0};
    arrives(job, &h, false, 0);
}

static void assert_counted(uint64_t sums, uint64_t collisions, uint64_t unsummed,
                           uint64_t duplicates, uint64_t evicted, uint64_t bad)
{
    const uint64_t *n = proto_switch_counters(bed.s)->of_protocol;

    assert_int_equal(n[0], sums);
    assert_int_equal(n[1], collisions);
    assert_int_equal(n[2], unsummed);
    assert_int_equal(n[3], duplicates);
    assert_int_equal(n[4], evicted);
    assert_int_equal(n[5], bad);
}

static void the_last_part_sends_the_sum(void **state)
{
    (void)state;
    part(0, 5, 0, 0);
    part(0, 5, 2, 0);
    assert_int_equal(bed.n, 0);
    assert_int_equal(proto_switch_counters(bed.s)->slots, 1);
    part(0, 5, 1, 0);
    assert_true(bed.n == 1 && bed.to == PROTO_FORWARD && bed.head.seq == 5);
    assert_int_equal(trib_set_count(&bed.head.ranks), 3);
    assert_true(bed.value[0] == 3 && bed.value[1] == 30);
    assert_int_equal(bed.head.flags, 0);
    part(0, 5, 1, 0); /* once more: the server has lost it */
    assert_int_equal(bed.n, 1);
    assert_true(bed.value[0] == 3 && bed.value[1] == 30);
    assert_counted(1, 0, 0, 1, 0, 0);
    result(0, 4); /* of another block */
    assert_true(bed.n == 1 && bed.to == TRIB_CHILDREN);
    assert_int_equal(proto_switch_counters(bed.s)->slots, 1);
    result(0, 5);
    assert_int_equal(proto_switch_counters(bed.s)->slots, 0);
}

static void a_mark_goes_with_the_sum(void **state)
{
    (void)state;
    for (unsigned marked = 0; marked < 3; marked++) {
        for (unsigned r = 0; r < 3; r++) {
            const struct atp_head h = part_of(marked, r);

            arrives(0, &h, r == marked, 0);
        }
        assert_int_equal(bed.n, 1);
        assert_int_equal(bed.head.flags, MARKED);
        result(0, marked);
    }
}

/* Another block of the job goes past, unless its rank has the result of the one that is in the way: that
 * is a window before. */
static void a_block_whose_result_is_known_is_evicted(void **state)
{
    (void)state;
    part(0, 3, 0, 0);
    part(0, WINDOW + 2, 0, OLD_PS - 1);
    assert_true(bed.n == 1 && bed.to == PROTO_FORWARD && bed.head.seq == WINDOW + 2);
    assert_true(bed.head.flags == COLLISION && bed.value[0] == 1);
    assert_counted(0, 1, 1, 0, 0, 0);
    part(0, WINDOW + 3, 0, OLD_PS - 1);
    assert_int_equal(bed.n, 0);
    assert_counted(0, 1, 1, 0, 1, 0);
    assert_int_equal(proto_switch_counters(bed.s)->slots, 1);
}

static void the_first_window_knows_no_result(void **state)
{
    (void)state;
    part(0, 0, 0, 0);
    part(0, WINDOW - 1, 0, 0);
    assert_counted(0, 1, 1, 0, 0, 0);
    part(0, WINDOW, 0, 0);
    assert_counted(0, 1, 1, 0, 1, 0);
}

static void what_is_old_is_anybody_s(void **state)
{
    (void)state;
    part(0, 100, 0, 50);
    part(1, 200, 0, 50 + OLD_PS - 1); /* another job has results of its own */
    assert_counted(0, 1, 1, 0, 0, 0);
    part(1, 300, 0, 50 + OLD_PS);
    assert_counted(0, 1, 1, 0, 1, 0);
    part(0, 100, 1, 50 + OLD_PS); /* it is begun again, if at all, when that is over */
    assert_counted(0, 2, 2, 0, 1, 0);
}

/* Four blocks, of which a part has passed. */
static void parts_follow_one_that_has_passed(void **state)
{
    (void)state;
    part(0, 0, 0, 0);
    for (unsigned seq = 1; seq <= 5; seq++)
        part(0, seq, 0, 0);
    part(0, 5, 2, 0); /* it is there already */
    assert_counted(0, 6, 6, 0, 0, 0);
    result(0, 0); /* free */
    for (unsigned seq = 2; seq <= 5; seq++)
        part(0, seq, 1, 0);
    assert_counted(0, 10, 10, 0, 0, 0);
    assert_int_equal(proto_switch_counters(bed.s)->slots, 0);
    part(1, 5, 1, 0); /* another job's */
    assert_int_equal(proto_switch_counters(bed.s)->slots, 1);
    result(1, 5);
    part(0, 1, 1, 0);
    assert_int_equal(proto_switch_counters(bed.s)->slots, 1);
    assert_counted(0, 10, 10, 0, 0, 0);
}

/* The switch does not sum a part that is sent again, has no integers, or is alone below the
 * switch. */
static void some_parts_pass_by_themselves(void **state)
{
    struct atp_head again = part_of(7, 1), floats = part_of(7, 1), alone = part_of(8, 1),
                    two = part_of(9, 1);

    (void)state;
    again.flags = RESEND, floats.flags = FLOATS, alone.fan_in = 1, two.fan_in = 2;
    part(0, 7, 0, 0);
    arrives(0, &again, true, 0); /* behind what the aggregator has, which is free then */
    assert_int_equal(bed.n, 2);
    assert_int_equal(bed.head.flags, RESEND | MARKED);
    assert_int_equal(proto_switch_counters(bed.s)->slots, 0);
    arrives(0, &floats, false, 0);
    assert_true(bed.n == 1 && bed.head.flags == FLOATS);
    arrives(0, &alone, false, 0);
    assert_true(bed.n == 1 && bed.head.flags == 0);
    assert_counted(0, 0, 3, 0, 0, 0);
    arrives(0, &two, false, 0);
    assert_int_equal(bed.n, 0);
    two = part_of(9, 2), two.fan_in = 2;
    arrives(0, &two, false, 0);
    assert_true(bed.n == 1 && bed.value[0] == 2);
    assert_counted(1, 0, 3, 0, 0, 0);
}

static void parts_of_a_block_are_alike(void **state)
{
    struct atp_head count = part_of(1, 1), type = part_of(1, 1), fan_in = part_of(1, 1),
                    two = part_of(1, 1);

    (void)state;
    count.count = 1, type.type = TRIB_UINT32, fan_in.fan_in = 2;
    trib_set_add(&two.ranks, 2);
    part(0, 1, 0, 0);
    arrives(0, &count, false, 0);
    arrives(0, &type, false, 0);
    arrives(0, &fan_in, false, 0);
    arrives(0, &two, false, 0);
    assert_counted(0, 0, 0, 0, 0, 4);
    part(0, 1, 1, 0);
    part(0, 1, 2, 0);
    assert_counted(1, 0, 0, 0, 0, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_last_part_sends_the_sum, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_mark_goes_with_the_sum, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_block_whose_result_is_known_is_evicted, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_first_window_knows_no_result, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_old_is_anybody_s, set_up, tear_down),
        cmocka_unit_test_setup_teardown(parts_follow_one_that_has_passed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(some_parts_pass_by_themselves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(parts_of_a_block_are_alike, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
