/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures of links: what is in the file, what is refused, and when a capture ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "io/telemetry/capture.h"
#include "io/telemetry/telemetry.h"
#include "tests/io/one_loop.h"
#include "tests/io/told.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char conf[] = "name = \"told\"; slots_per_host = 1;"
                           "nodes = ( { name = (\"h0\", \"h1\"); kind = \"host\"; },"
                           " { name = (\"s0\", \"s1\"); kind = \"switch\"; } );"
                           "link_defaults = { rate = \"100Gb/s\"; latency = \"300ns\"; };"
                           "links = ( { a = \"h0\"; b = \"s0\"; }, { a = \"h1\"; b = \"s1\"; },"
                           " { a = \"s0\"; b = \"s1\"; cables = 2; } );";

static struct io_port *a, *b;
static struct captures cs;
static char file[3][96];

static json_t *ask(const char *cmd, const char *params)
{
    struct rte_tel_data d = {NULL};

    telemetry_answer(o.l, cmd, params, &d);
    return d.v;
}

static int setup(void **state)
{
    (void)state;
    one_loop_open(conf, NULL, 10);
    for (unsigned i = 0; i < 3; i++)
        snprintf(file[i], sizeof(file[i]), "%s/f%u.pcap", o.dir, i);
    cs = (struct captures){.loop = o.l};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    capture_stop_all(&cs);
    telemetry_serve(NULL, NULL);
    io_port_close(a);
    io_port_close(b);
    a = b = NULL;
    for (unsigned i = 0; i < 3; i++)
        unlink(file[i]);
    return one_loop_close();
}

static int start(unsigned link, const char *name, const char *filter, pid_t owner)
{
    char why[256] = "";
    int rc = capture_start(&cs, &(struct capture_cfg){link, name, filter, owner}, why, sizeof(why));

    assert_true(!rc == !*why);
    return rc;
}

/* A nanosecond file's records: "SECONDS.NANOSECONDS LENGTH" each. */
static const char *records(const char *name)
{
    static char text[4096];
    uint32_t h[6], r[4];
    size_t n = 0;
    FILE *f = fopen(name, "r");

    assert_non_null(f);
    assert_int_equal(fread(h, sizeof(h), 1, f), 1);
    assert_int_equal(h[0], 0xa1b23c4d);
    assert_int_equal(h[4], 65535);
    assert_int_equal(h[5], 1);
    text[0] = 0;
    while (fread(r, sizeof(r), 1, f) == 1) {
        assert_int_equal(r[2], r[3]);
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%u.%09u %u\n", r[0], r[1], r[3]);
        fseek(f, r[2], SEEK_CUR);
    }
    fclose(f);
    return text;
}

static void wait_for_a_time(void)
{
    now_ns += 12 * S; /* of wall time: 1.2 s of the fabric's */
    step(0);
}

static void a_file_has_the_frames_of_its_link(void **state)
{
    uint64_t frames;
    char why[64];
    (void)state;

    a = program("h0", 0, 0);
    b = program("h1", 0, 0);
    wait_for_a_time();
    assert_int_equal(start(0, file[0], NULL, getpid()), 0);
    assert_int_equal(start(1, file[1], "", getpid()), 0);
    assert_int_equal(start(0, file[2], "greater 200", getpid()), 0);
    send_from(a, "h0", "h1", 0, 2, 256);
    steps(3, 10 * US);
    send_from(b, "h1", "h0", 0, 1, 100);
    steps(3, 10 * US);
    assert_int_equal(taken(a) + taken(b), 3);
    assert_int_equal(capture_flush(&cs, file[0]), 0);
    assert_string_equal(records(file[0]), "1.200001927 322\n1.200001955 322\n1.200005545 166\n");
    send_from(a, "h0", "h1", 0, 1, 64);
    steps(3, 10 * US);
    assert_int_equal(taken(b), 1);
    assert_int_equal(capture_stop(&cs, file[0], &frames, why, sizeof(why)), 0);
    assert_int_equal(frames, 4);
    assert_int_equal(capture_stop(&cs, file[2], &frames, why, sizeof(why)), 0);
    assert_int_equal(frames, 2);
    assert_int_equal(capture_stop(&cs, file[1], &frames, why, sizeof(why)), 0);
    assert_int_equal(frames, 4);
    assert_null(o.l->tap);
    assert_string_equal(records(file[0]),
                        "1.200001927 322\n1.200001955 322\n1.200005545 166\n1.200007912 130\n");
    assert_string_equal(records(file[1]),
                        "1.200002583 322\n1.200002610 322\n1.200004915 166\n1.200008536 130\n");
    assert_string_equal(records(file[2]), "1.200001927 322\n1.200001955 322\n");
}

static void one_that_ends_leaves_the_others(void **state)
{
    uint64_t frames;
    char why[64];
    (void)state;

    a = program("h0", 0, 0);
    b = program("h1", 0, 0);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(start(0, file[i], NULL, getpid()), 0);
    assert_int_equal(start(0, file[1], NULL, getpid()), -EBUSY);
    assert_int_equal(capture_stop(&cs, file[1], &frames, why, sizeof(why)), 0);
    assert_int_equal(capture_stop(&cs, file[1], &frames, why, sizeof(why)), -ENOENT);
    assert_int_equal(capture_flush(&cs, file[1]), -ENOENT);
    send_from(a, "h0", "h1", 0, 1, 64);
    steps(3, 10 * US);
    taken(b);
    assert_int_equal(capture_stop(&cs, file[0], &frames, why, sizeof(why)), 0);
    assert_int_equal(frames, 1);
    assert_non_null(o.l->tap);
    assert_int_equal(capture_stop(&cs, file[2], &frames, why, sizeof(why)), 0);
    assert_int_equal(frames, 1);
    assert_null(o.l->tap);
}

static void what_is_no_file_of_ours_is_refused(void **state)
{
    char why[256];
    struct capture_cfg c = {0, file[0], NULL, 1};
    (void)state;

    assert_int_equal(mkfifo(file[0], 0600), 0);
    assert_int_equal(capture_start(&cs, &c, why, sizeof(why)), -EPERM);
    assert_string_equal(why, "found another user's link or file, or no plain file, there");
    unlink(file[0]);
    assert_int_equal(mkdir(file[0], 0700), 0);
    assert_true(capture_start(&cs, &c, why, sizeof(why)) < 0);
    rmdir(file[0]);
    c.file = "/tmp/no/such/directory";
    assert_int_equal(capture_start(&cs, &c, why, sizeof(why)), -ENOENT);
    assert_string_equal(why, "No such file or directory");
    c.file = file[0];
    c.filter = "no such filter";
    assert_int_equal(capture_start(&cs, &c, why, sizeof(why)), -EINVAL);
    assert_memory_equal(why, "filter: ", 8);
    assert_true(strlen(why) > 8);
    assert_null(cs.first);
    assert_null(o.l->tap);
    assert_int_equal(access(file[0], F_OK), -1);
}

/* Whose owner has ended, when another begins or after so many frames. */
static void a_capture_ends_with_its_owner(void **state)
{
    pid_t gone = fork();
    struct rte_mbuf *m;
    (void)state;

    if (!gone)
        _exit(0);
    assert_int_equal(waitpid(gone, NULL, 0), gone);
    assert_int_equal(start(0, file[0], NULL, gone), 0);
    assert_int_equal(start(0, file[1], NULL, getpid()), 0);
    assert_int_equal(capture_flush(&cs, file[0]), -ENOENT);
    assert_int_equal(start(1, file[0], NULL, gone), 0);
    m = datagram("h0", "h1", 0, 64);
    for (unsigned i = 0; i < 4096; i++) {
        assert_int_equal(capture_flush(&cs, file[0]), 0);
        o.l->tap(o.l->tap_ctx, 2 + i % 2, m, 0);
        o.l->tap(o.l->tap_ctx, i % 2, m, 0);
    }
    assert_int_equal(capture_flush(&cs, file[0]), -ENOENT);
    assert_int_equal(capture_flush(&cs, file[1]), 0);
    rte_pktmbuf_free(m);
}

static void so_many_run_at_most(void **state)
{
    char name[128], why[128];
    (void)state;

    for (unsigned i = 0; i <= CAPTURES_MAX; i++) {
        struct capture_cfg c = {0, name, NULL, getpid()};

        snprintf(name, sizeof(name), "%s/n%u", o.dir, i);
        assert_int_equal(capture_start(&cs, &c, why, sizeof(why)), i < CAPTURES_MAX ? 0 : -ENOSPC);
    }
    assert_string_equal(why, "the most captures that can run are running already");
    capture_stop_all(&cs);
    assert_null(cs.first);
    assert_null(o.l->tap);
    for (unsigned i = 0; i < CAPTURES_MAX; i++) {
        snprintf(name, sizeof(name), "%s/n%u", o.dir, i);
        assert_int_equal(unlink(name), 0);
    }
}

/* ---- by commands ---- */

#define WANTS "{\"error\":\"expected LINK,PID,FILE\"}"
#define FILTERED                                                                                   \
    "{\"error\":\"expected LINK,PID,LENGTH,FILTER,FILE, a filter of at most 511 characters\"}"
#define START  "/trib/capture/start"
#define FILTER "/trib/capture/filtered"

static const struct told_row commands[] = {
    {START, NULL, WANTS, false},
    {START, "h0-s0", WANTS, false},
    {START, "h0-s0,0,/dev/null", WANTS, false},
    {START, "h0-s0,-5,/dev/null", WANTS, false},
    {START, "h0-s0,2147483648,/dev/null", WANTS, false},
    {START, "h0-s0,5x,/dev/null", WANTS, false},
    {START, "h0-s0,5", WANTS, false},
    {START, "h0-s9,1,/dev/null",
     "{\"error\":\"found h0-s9, expected a link that trib plan shows; did you mean h0-s0?\"}",
     false},
    {START, "s0-s1,1,/dev/null",
     "{\"error\":\"found s0-s1, which fits several links, expected its ports too: A:0-B:0\"}",
     false},
    {START, "h0-s0,1,/dev/null", "{\"capturing\":\"h0:0-s0:0\"}", false},
    {START, "h0-s0,1,/dev/null", "{\"error\":\"another capture writes into that file\"}", false},
    {START, "h0-s0,2147483647,/tmp/no/such", "{\"error\":\"No such file or directory\"}", false},
    {FILTER, NULL, FILTERED, false},
    {FILTER, "h0-s0,1", FILTERED, false},
    {FILTER, "h0-s0,0,3,tcp,/dev/zero", FILTERED, false},
    {FILTER, "h0-s0,2147483648,3,tcp,/dev/zero", FILTERED, false},
    {FILTER, "h0-s0,1,0,,/dev/zero", FILTERED, false},
    {FILTER, "h0-s0,1,3,tcp,", FILTERED, false},
    {FILTER, "h0-s0,1,4,tcp,/dev/zero", FILTERED, false},
    {FILTER, "h0-s0,1,2,tcp,/dev/zero", FILTERED, false},
    {FILTER, "h0-s0,1,512,tcp,/dev/zero", FILTERED, false},
    {FILTER, "h0-s0,1x3,tcp,/dev/zero", FILTERED, false},
    {FILTER, "h1-s1,1,3,tcp,/dev/zero", "{\"capturing\":\"h1:0-s1:0\"}", false},
    {"/trib/capture/flush", NULL, "{\"elsewhere\":\"no such capture\"}", false},
    {"/trib/capture/flush", "/dev/none", "{\"elsewhere\":\"no such capture\"}", false},
    {"/trib/capture/flush", "/dev/null", "{\"flushed\":\"/dev/null\"}", false},
    {"/trib/capture/stop", NULL, "{\"elsewhere\":\"no such capture\"}", false},
    {"/trib/capture/stop", "/dev/none", "{\"elsewhere\":\"no such capture\"}", false},
    {"/trib/capture/stop", "/dev/null", "{\"frames\":0}", false},
    {"/trib/capture/stop", "/dev/null", "{\"elsewhere\":\"no such capture\"}", false},
    {"/trib/capture/stop", "/dev/zero", "{\"frames\":0}", false},
};

static void commands_say_what_they_did(void **state)
{
    (void)state;
    TOLD_ROWS(ask, commands);
}

static void names_and_filters_have_a_longest(void **state)
{
    char params[700], want[128];
    json_t *v;
    (void)state;

    for (unsigned n = 127; n < 129; n++) { /* characters of a link's name */
        memset(params, 'x', n);
        snprintf(params + n, sizeof(params) - n, ",1,/dev/null");
        v = ask(START, params);
        snprintf(want, sizeof(want),
                 "{\"error\":\"found %.40s, expected a link that trib plan shows\"}", params);
        assert_string_equal(told_text(v), n < 128 ? want : WANTS);
        json_decref(v);
        snprintf(params + n, sizeof(params) - n, ",1,3,tcp,/dev/null");
        v = ask(FILTER, params);
        assert_string_equal(told_text(v), n < 128 ? want : FILTERED);
        json_decref(v);
    }
    for (unsigned n = 511; n < 513; n++) { /* of a filter */
        snprintf(params, sizeof(params), "h0-s0,1,%u,%-*s,/dev/null", n, (int)n, "tcp");
        v = ask(FILTER, params);
        assert_string_equal(told_text(v), n < 512 ? "{\"capturing\":\"h0:0-s0:0\"}" : FILTERED);
        json_decref(v);
    }
}

/* A device that takes nothing; the loop ends, and with it all captures. */
static void what_cannot_be_written_is_said(void **state)
{
    static const struct told_row begin[] = {
        {START, "h0-s0,1,/dev/full", "{\"capturing\":\"h0:0-s0:0\"}", false},
        {START, "h1-s1,1,/dev/null", "{\"capturing\":\"h1:0-s1:0\"}", false},
    };
    static const struct told_row rows[] = {
        {"/trib/capture/flush", "/dev/full", "{\"error\":\"No space left on device\"}", false},
        {"/trib/capture/stop", "/dev/full", "{\"error\":\"No space left on device\"}", false},
        {"/trib/capture/stop", "/dev/null", "{\"frames\":2}", false},
        {START, "h1-s1,1,/dev/null", "{\"capturing\":\"h1:0-s1:0\"}", false},
    };
    static const struct told_row after[] = {
        {"/trib/capture/flush", "/dev/null", "{\"elsewhere\":\"no such capture\"}", false},
    };
    (void)state;

    a = program("h0", 0, 0);
    b = program("h1", 0, 0);
    TOLD_ROWS(ask, begin);
    send_from(a, "h0", "h1", 0, 2, 64);
    steps(3, 10 * US);
    taken(b);
    TOLD_ROWS(ask, rows);
    telemetry_serve(NULL, NULL);
    TOLD_ROWS(ask, after);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_file_has_the_frames_of_its_link),
        CASE(one_that_ends_leaves_the_others),
        CASE(what_is_no_file_of_ours_is_refused),
        CASE(a_capture_ends_with_its_owner),
        CASE(so_many_run_at_most),
        CASE(commands_say_what_they_did),
        CASE(names_and_filters_have_a_longest),
        CASE(what_cannot_be_written_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
