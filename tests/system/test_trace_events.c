/* SPDX-License-Identifier: BSD-3-Clause */
/* A file of trace events, read back: which fields each kind of event has, that separators are where JSON
 * wants them, what is left out, and that events move from one process's file to another's. */
#include "system/trace_events.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/trib-test-trace-XXXXXX";

static struct trace_events *create(uint64_t most)
{
    struct trace_events *t;

    assert_int_equal(trace_events_create(&t, most), 0);
    assert_non_null(t);
    return t;
}

static struct trace_event event(char ph, const char *id)
{
    return (struct trace_event){.ph = ph,
                                .pid = 3,
                                .tid = 4,
                                .ps = 2500000,
                                .dur_ps = 1750000,
                                .name = "step",
                                .cat = "rank",
                                .id = id};
}

static json_t *written(struct trace_events *t)
{
    json_t *j;

    assert_int_equal(trace_events_write(t, path, json_pack("{s:i}", "seed", 7)), 0);
    j = json_load_file(path, 0, NULL);
    assert_non_null(j);
    assert_string_equal(json_string_value(json_object_get(j, "displayTimeUnit")), "ns");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "otherData"), "seed")),
                     7);
    return j;
}

/* The text of one event as the file has it. */
static void assert_events(struct trace_events *t, const char *const *want, size_t n)
{
    json_t *whole = written(t), *all = json_object_get(whole, "traceEvents");

    assert_int_equal(json_array_size(all), n);
    for (size_t i = 0; i < n; i++) {
        json_t *w = json_loads(want[i], 0, NULL);

        assert_non_null(w);
        if (!json_equal(json_array_get(all, i), w)) {
            char *got = json_dumps(json_array_get(all, i), JSON_COMPACT);

            fail_msg("event %zu: found %s, expected %s", i, got, want[i]);
        }
        json_decref(w);
    }
    json_decref(whole);
}

static void each_kind_of_event_has_its_fields(void **state)
{
    static const char *const want[] = {
        "{\"ph\":\"X\",\"pid\":3,\"tid\":4,\"ts\":2.5,\"name\":\"step\",\"cat\":\"rank\",\"dur\":1."
        "75}",
        "{\"ph\":\"i\",\"pid\":3,\"tid\":4,\"ts\":2.5,\"name\":\"step\",\"cat\":\"rank\",\"s\":"
        "\"t\"}",
        "{\"ph\":\"C\",\"pid\":3,\"tid\":4,\"ts\":2.5,\"name\":\"step\",\"cat\":\"rank\",\"args\":{"
        "\"bytes\":9}}",
        "{\"ph\":\"s\",\"pid\":3,\"tid\":4,\"ts\":2.5,\"name\":\"step\",\"cat\":\"rank\",\"id\":"
        "\"9\"}",
        "{\"ph\":\"f\",\"pid\":3,\"tid\":4,\"ts\":2.5,\"name\":\"step\",\"cat\":\"rank\",\"bp\":"
        "\"e\","
        "\"id\":\"9\"}",
    };
    struct trace_events *t = create(5);
    struct trace_event e;

    (void)state;
    for (const char *ph = "XiCsf"; *ph; ph++) {
        e = event(*ph, *ph == 's' || *ph == 'f' ? "9" : NULL);
        assert_true(trace_events_add(t, &e, *ph == 'C' ? json_pack("{s:i}", "bytes", 9) : NULL));
    }
    assert_events(t, want, 5);
    trace_events_destroy(t);
}

static void processes_and_threads_have_names_and_an_order(void **state)
{
    static const char *const want[] = {
        "{\"ph\":\"M\",\"pid\":3,\"tid\":0,\"ts\":0.0,\"name\":\"process_name\",\"args\":{\"name\":"
        "\"h3\"}}",
        "{\"ph\":\"M\",\"pid\":3,\"tid\":0,\"ts\":0.0,\"name\":\"process_sort_index\",\"args\":{"
        "\"sort_index\":3}}",
        "{\"ph\":\"M\",\"pid\":3,\"tid\":5,\"ts\":0.0,\"name\":\"thread_name\",\"args\":{\"name\":"
        "\"lane 5\"}}",
        "{\"ph\":\"M\",\"pid\":3,\"tid\":5,\"ts\":0.0,\"name\":\"thread_sort_index\",\"args\":{"
        "\"sort_index\":5}}",
    };
    struct trace_events *t = create(0); /* they are not counted as events */

    (void)state;
    trace_events_process(t, 3, "h3");
    trace_events_thread(t, 3, 5, "lane 5");
    assert_int_equal(trace_events_count(t), 0);
    assert_int_equal(trace_events_left_out(t), 0);
    assert_events(t, want, 4);
    trace_events_destroy(t);
}

static size_t events_in(struct trace_events *t)
{
    json_t *j = written(t);
    size_t n = json_array_size(json_object_get(j, "traceEvents"));

    json_decref(j);
    return n;
}

static void what_is_too_much_is_counted_and_left_out(void **state)
{
    struct trace_events *t = create(2);
    struct trace_event e = event('i', NULL);

    (void)state;
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(trace_events_add(t, &e, json_object()), i < 2);
    assert_int_equal(trace_events_count(t), 2);
    assert_int_equal(trace_events_left_out(t), 3);
    assert_int_equal(events_in(t), 2);
    trace_events_restart(t);
    assert_int_equal(trace_events_count(t), 0);
    assert_int_equal(trace_events_left_out(t), 0);
    assert_int_equal(events_in(t), 0);
    assert_true(trace_events_add(t, &e, NULL)); /* the first again: nothing separates it */
    assert_int_equal(events_in(t), 1);
    assert_true(trace_events_add(t, &e, NULL)); /* after a file was written as before */
    assert_int_equal(events_in(t), 2);
    trace_events_destroy(t);
}

/* A launcher appends the events of a rank to its own. */
static void events_of_another_process_are_appended(void **state)
{
    struct trace_events *mine = create(10), *other = create(10);
    struct trace_event e = event('i', NULL);
    FILE *f = tmpfile();

    (void)state;
    assert_non_null(f);
    assert_int_equal(trace_events_append(mine, f), 0); /* nothing */
    assert_int_equal(trace_events_count(mine), 0);
    assert_int_equal(events_in(mine), 0);
    for (unsigned i = 0; i < 3; i++)
        assert_true(trace_events_add(other, &e, NULL));
    assert_int_equal(trace_events_copy_to(other, f), 0);
    assert_int_equal(trace_events_append(mine, f), 0);
    assert_int_equal(trace_events_count(mine), 3);
    assert_int_equal(events_in(mine), 3);
    assert_true(trace_events_add(mine, &e, NULL));
    assert_int_equal(trace_events_append(mine, f), 0);
    assert_int_equal(trace_events_count(mine), 7);
    assert_int_equal(events_in(mine), 7);
    fclose(f);
    trace_events_destroy(mine);
    trace_events_destroy(other);
}

/* More than one piece of a copy, and a stream that refuses to be written. */
static void a_copy_is_whole_or_an_error(void **state)
{
    struct trace_events *t = create(10000);
    struct trace_event e = event('i', NULL);
    FILE *full = fopen("/dev/full", "w"), *whole = tmpfile();

    (void)state;
    assert_non_null(full);
    assert_non_null(whole);
    for (unsigned i = 0; i < 2000; i++)
        assert_true(trace_events_add(t, &e, NULL));
    assert_int_equal(events_in(t), 2000);
    setbuf(full, NULL);
    assert_int_equal(trace_events_copy_to(t, full), -EIO);
    assert_true(trace_events_add(t, &e, NULL)); /* at the end, where the copy stopped or not */
    assert_int_equal(trace_events_copy_to(t, whole), 0); /* from the beginning again */
    assert_int_equal(trace_events_append(t, whole), 0);
    assert_int_equal(events_in(t), 4002);
    fclose(full);
    fclose(whole);
    trace_events_destroy(t);
}

/* A copy is made in pieces of 64 KiB: the last one has one byte. */
static void the_last_byte_is_copied(void **state)
{
    struct trace_events *t = create(1);
    FILE *f = tmpfile();

    (void)state;
    assert_non_null(f);
    fprintf(f, "{\"ph\":\"i\"%65528s", "}");
    assert_int_equal(ftell(f), 65537);
    assert_int_equal(trace_events_append(t, f), 0);
    assert_int_equal(events_in(t), 1);
    fclose(f);
    trace_events_destroy(t);
}

static void limit(int what, rlim_t to, struct rlimit *was)
{
    struct rlimit l;

    assert_int_equal(getrlimit(what, was), 0);
    l = *was;
    l.rlim_cur = to;
    assert_int_equal(setrlimit(what, &l), 0);
}

static void a_full_disk_is_an_error_until_the_next_start(void **state)
{
    struct trace_events *t = create(100000);
    struct trace_event e = event('i', NULL);
    struct rlimit was;

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    limit(RLIMIT_FSIZE, 10000, &was);
    for (unsigned i = 0; i < 2000; i++)
        trace_events_add(t, &e, NULL);
    setrlimit(RLIMIT_FSIZE, &was);
    assert_int_equal(trace_events_write(t, path, json_object()), -EIO);
    trace_events_restart(t);
    for (unsigned i = 0; i < 2000; i++)
        assert_true(trace_events_add(t, &e, NULL));
    limit(RLIMIT_FSIZE, 10000, &was);
    assert_int_equal(trace_events_write(t, path, json_object()), -EIO);
    setrlimit(RLIMIT_FSIZE, &was);
    trace_events_restart(t);
    for (unsigned i = 0; i < 2000; i++)
        assert_true(trace_events_add(t, &e, NULL));
    assert_int_equal(events_in(t), 2000);
    limit(RLIMIT_FSIZE, 10000, &was);
    for (unsigned i = 0; i < 2000; i++)
        trace_events_add(t, &e, NULL);
    trace_events_restart(t);
    setrlimit(RLIMIT_FSIZE, &was);
    assert_true(trace_events_add(t, &e, NULL)); /* and nothing that was not taken before */
    assert_int_equal(events_in(t), 1);
    trace_events_destroy(t);
}

static void events_that_a_full_disk_has_not_taken_are_not_appended(void **state)
{
    struct trace_events *t = create(1);

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    for (unsigned n = 1; n < 10000; n += 9000) { /* in the buffer, and beyond it */
        FILE *f = tmpfile();
        struct rlimit was;

        assert_non_null(f);
        limit(RLIMIT_FSIZE, 0, &was);
        fprintf(f, "{\"ph\":\"i\"%*s", (int)n, "}");
        if (n > 1)
            fflush(f);
        assert_int_equal(trace_events_append(t, f), -EIO);
        setrlimit(RLIMIT_FSIZE, &was);
        fclose(f);
    }
    assert_int_equal(trace_events_count(t), 0);
    assert_int_equal(events_in(t), 0);
    trace_events_destroy(t);
}

static void without_descriptors_there_is_an_error_and_nothing_is_left(void **state)
{
    struct trace_events *t = create(1), *none = t;
    struct rlimit was;
    int create_rc, write_rc;

    (void)state;
    limit(RLIMIT_NOFILE, 0, &was);
    create_rc = trace_events_create(&none, 1);
    write_rc = trace_events_write(t, path, json_object());
    setrlimit(RLIMIT_NOFILE, &was);
    assert_int_equal(create_rc, -EMFILE);
    assert_null(none);
    assert_int_equal(write_rc, -EMFILE);
    trace_events_destroy(t);
}

/* A name that is not UTF-8 cannot be an event: the file would lack it, so it is not written at all. */
static void what_cannot_be_written_leaves_no_file(void **state)
{
    struct trace_events *t = create(10);
    struct trace_event e = event('i', NULL);

    (void)state;
    trace_events_process(t, 1, "\xff\xfe");
    assert_true(trace_events_add(t, &e, NULL));
    assert_int_equal(trace_events_write(t, path, json_object()), -EIO);
    trace_events_restart(t);
    assert_true(trace_events_add(t, &e, NULL));
    assert_int_equal(events_in(t), 1);
    assert_int_equal(trace_events_write(t, "/nonexistent/trace.json", json_object()), -ENOENT);
    trace_events_destroy(t);
    trace_events_destroy(NULL);
}

/* ---- nothing is left ---- */

static long allocated; /* of jansson */

static void *count_malloc(size_t n)
{
    void *p = malloc(n);

    allocated += p != NULL;
    return p;
}

static void count_free(void *p)
{
    allocated -= p != NULL;
    free(p);
}

static unsigned descriptors(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static unsigned were_open;

static int before(void **state)
{
    (void)state;
    allocated = 0;
    were_open = descriptors();
    return 0;
}

static int after(void **state)
{
    (void)state;
    assert_int_equal(allocated, 0);
    assert_int_equal(descriptors(), were_open);
    return 0;
}

static int take_name(void **state)
{
    int fd = mkstemp(path);

    (void)state;
    json_set_alloc_funcs(count_malloc, count_free);
    return fd < 0 ? -1 : close(fd);
}

static int give_name(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_kind_of_event_has_its_fields, before, after),
        cmocka_unit_test_setup_teardown(processes_and_threads_have_names_and_an_order, before,
                                        after),
        cmocka_unit_test_setup_teardown(what_is_too_much_is_counted_and_left_out, before, after),
        cmocka_unit_test_setup_teardown(events_of_another_process_are_appended, before, after),
        cmocka_unit_test_setup_teardown(a_copy_is_whole_or_an_error, before, after),
        cmocka_unit_test_setup_teardown(the_last_byte_is_copied, before, after),
        cmocka_unit_test_setup_teardown(a_full_disk_is_an_error_until_the_next_start, before,
                                        after),
        cmocka_unit_test_setup_teardown(events_that_a_full_disk_has_not_taken_are_not_appended,
                                        before, after),
        cmocka_unit_test_setup_teardown(without_descriptors_there_is_an_error_and_nothing_is_left,
                                        before, after),
        cmocka_unit_test_setup_teardown(what_cannot_be_written_leaves_no_file, before, after),
    };

    return cmocka_run_group_tests(tests, take_name, give_name);
}
