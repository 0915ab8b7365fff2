/* SPDX-License-Identifier: BSD-3-Clause */
/* The time line of a sweep: which row's it is, and what ranks and ports have said in its file. */
#include "host/launch/ranks_timeline.h"
#include "tests/host/launch/far_row.h"
#include "tests/support/far_telemetry.h"

#include <errno.h>
#include <jansson.h>

static struct far_telemetry process;
static char path[128];

static void answer_question(void *ctx, const char *command, const char *what, char *text,
                            size_t size)
{
    (void)ctx, (void)command, (void)what;
    snprintf(text, size, "{\"egress_frames\":3}");
}

static struct fixture *begin(unsigned row)
{
    struct fixture *b = set_up(1e-6);

    process.answer = answer_question;
    far_telemetry_open(&process);
    snprintf(b->rd.path, sizeof(b->rd.path), "%s", process.dir);
    snprintf(path, sizeof(path), "%s/line.json", process.dir);
    b->o.timeline = path;
    b->o.timeline_row = row;
    b->o.warmup = 0;
    b->o.check = 0;
    b->o.iters = 1;
    b->s.row_until = clock_mono_ns() + 6000 * SEC;
    assert_int_equal(ranks_timeline_create(&b->s), 0);
    assert_non_null(b->s.timeline);
    return b;
}

static void end(struct fixture *b)
{
    ranks_timeline_destroy(&b->s);
    assert_null(b->s.timeline);
    ranks_timeline_destroy(&b->s);
    far_telemetry_close(&process);
    tear_down(b);
}

static unsigned records(const struct fixture *b)
{
    unsigned n = 0;

    for (const char *p = b->play.log; (p = strstr(p, "record\n")); p++)
        n++;
    return n;
}

static void the_file_has_what_ranks_and_ports_said(void **state)
{
    struct fixture *b = begin(0);
    json_t *all, *other, *op, *r;

    (void)state;
    assert_int_equal(place(b, OUT_OF_PLACE), 0);
    assert_int_equal(records(b), 1);
    assert_int_equal(place(b, IN_PLACE), 0);
    assert_int_equal(records(b), 0); /* of one place alone */
    assert_int_equal(ranks_timeline_write(&b->s), 0);
    all = json_load_file(path, 0, NULL);
    assert_non_null(all);
    assert_int_equal(json_array_size(json_object_get(all, "traceEvents")), N);
    for (unsigned i = 0; i < N; i++) /* in order of the ranks */
        assert_int_equal(json_integer_value(json_object_get(
                             json_array_get(json_object_get(all, "traceEvents"), i), "rank")),
                         i);
    other = json_object_get(all, "otherData");
    assert_string_equal(json_string_value(json_object_get(other, "clock")), "real");
    assert_string_equal(json_string_value(json_object_get(other, "kind")), "tributary time line");
    assert_true(json_is_true(json_object_get(other, "every_path")));
    assert_true(json_real_value(json_object_get(other, "counted_us")) > 0);
    assert_int_equal(json_array_size(json_object_get(other, "links")), 2 * b->s.fab->n_links);
    assert_true(json_is_object(json_object_get(other, "paths")));
    assert_int_equal(json_array_size(json_object_get(other, "switches")), 0);
    op = json_object_get(other, "operation");
    assert_int_equal(json_integer_value(json_object_get(op, "row")), 1);
    assert_string_equal(json_string_value(json_object_get(op, "error")), "");
    assert_int_equal(json_array_size(json_object_get(op, "ranks")), N);
    r = json_array_get(json_object_get(op, "ranks"), 1);
    assert_int_equal(json_integer_value(json_object_get(r, "schedules")), 2);
    assert_float_equal(json_real_value(json_object_get(r, "slow_us")), 1, 1e-9);
    assert_float_equal(json_real_value(json_object_get(r, "slow_of_us")), 2, 1e-9);
    assert_float_equal(json_real_value(json_object_get(r, "ended_us")) -
                           json_real_value(json_object_get(r, "entered_us")),
                       5, 1e-3);
    json_decref(all);
    end(b);
}

static void the_row_that_was_asked_for_is_recorded(void **state)
{
    struct fixture *b = begin(2);

    (void)state;
    b->o.place = PLACE_IN;
    for (unsigned row = 1; row <= 3; row++) {
        b->s.row_until = clock_mono_ns() + 6000 * SEC;
        assert_int_equal(place(b, IN_PLACE), 0);
        assert_int_equal(records(b), row == 2);
    }
    end(b);
}

static void without_a_row_there_is_no_file(void **state)
{
    struct fixture *b = begin(9);

    (void)state;
    assert_int_equal(place(b, OUT_OF_PLACE), 0);
    assert_int_equal(ranks_timeline_write(&b->s), -ENOENT);
    assert_int_equal(access(path, F_OK), -1);
    end(b);
}

static void nothing_is_recorded_unless_it_was_asked_for(void **state)
{
    struct fixture *b = set_up(1e-6);

    (void)state;
    assert_int_equal(ranks_timeline_create(&b->s), 0);
    assert_null(b->s.timeline);
    assert_int_equal(place(b, OUT_OF_PLACE), 0);
    assert_int_equal(records(b), 0);
    assert_int_equal(ranks_timeline_write(&b->s), 0);
    ranks_timeline_destroy(&b->s);
    tear_down(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_has_what_ranks_and_ports_said),
        cmocka_unit_test(the_row_that_was_asked_for_is_recorded),
        cmocka_unit_test(without_a_row_there_is_no_file),
        cmocka_unit_test(nothing_is_recorded_unless_it_was_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
