/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions to the processes of a fabric: who is asked, what is printed of the answers, and what is said of a
 * process that does not answer. Processes are threads with sockets of DPDK's telemetry. */
#include "machine/telemetry_client.h"

#include "tests/support/captured.h"
#include "tests/support/far_telemetry.h"

#include <errno.h>
#include <jansson.h>
#include <sys/file.h>
#include <sys/time.h>

enum { A, B, PROCESSES };

static struct far_telemetry process[PROCESSES];
static const char *const names[] = {"a", "b"};
static const char *says[PROCESSES]; /* to what; NULL: by the question */
static _Atomic unsigned n_asked[PROCESSES];
static char last[PROCESSES][64]; /* question, read when its answer is there */
static struct captured out, err;

static void answer(void *ctx, const char *command, const char *what, char *text, size_t size)
{
    unsigned i = (unsigned)((struct far_telemetry *)ctx - process);

    snprintf(last[i], sizeof(last[i]), "%s %s", command, what);
    n_asked[i]++;
    if (says[i])
        snprintf(text, size, "%s", says[i]);
    else if (*what)
        snprintf(text, size, "{\"of\":\"%s\"}", what);
    else
        snprintf(text, size, "[\"%s0\",\"%s1\"]", names[i], names[i]);
}

static int setup(void **state)
{
    (void)state;
    strcpy(process[A].dir, "/tmp/test_telemetry.XXXXXX");
    assert_non_null(mkdtemp(process[A].dir));
    strcpy(process[B].dir, process[A].dir);
    for (unsigned i = 0; i < PROCESSES; i++) {
        process[i].answer = answer;
        process[i].ctx = &process[i];
        says[i] = "1";
        n_asked[i] = 0;
        far_telemetry_begin(&process[i], names[i]);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    far_telemetry_end(&process[B]);
    far_telemetry_close(&process[A]);
    return 0;
}

/* What a query returns; its outputs are in out.text and err.text. */
static int query(const char *cmd, struct telemetry_whom whom)
{
    int rc;

    captured_begin(&out, stdout);
    captured_begin(&err, stderr);
    rc = telemetry_client_query("prog", process[A].dir, cmd, &whom);
    captured_end(&err);
    captured_end(&out);
    return rc;
}

/* ---- names ---- */

static void a_file_names_a_process(void **state)
{
    char name[8] = "none";
    (void)state;

    assert_true(telemetry_client_names("a.ready", name, sizeof(name)));
    assert_string_equal(name, "a");
    assert_true(telemetry_client_names("sevench.ready", name, sizeof(name)));
    assert_string_equal(name, "sevench");
    assert_false(telemetry_client_names("eightcha.ready", name, sizeof(name)));
    assert_false(telemetry_client_names(".ready", name, sizeof(name)));
    assert_false(telemetry_client_names("abcdef", name, sizeof(name)));
    assert_false(telemetry_client_names("a.ready2", name, sizeof(name)));
    assert_false(telemetry_client_names("a.pid", name, sizeof(name)));
    assert_string_equal(name, "sevench");
}

/* ---- one process ---- */

static void an_answer_is_the_value_of_its_command(void **state)
{
    int fd = telemetry_client_open(process[A].dir, "a", 5);
    json_t *v;
    (void)state;

    assert_true(fd >= 0);
    says[A] = "{\"x\":7}";
    v = telemetry_client_ask(fd, "/trib/totals", "p,q");
    assert_int_equal(json_integer_value(json_object_get(v, "x")), 7);
    assert_string_equal(last[A], "/trib/totals p,q");
    json_decref(v);
    json_decref(telemetry_client_ask(fd, "/trib/totals", NULL));
    assert_string_equal(last[A], "/trib/totals ");
    says[A] = "nonsense";
    assert_null(telemetry_client_ask(fd, "/trib/totals", NULL));
    says[A] = "2";
    v = telemetry_client_ask(fd, "/trib/totals", NULL);
    assert_int_equal(json_integer_value(v), 2);
    json_decref(v);
    close(fd);
}

static void a_process_that_is_not_there_has_no_socket(void **state)
{
    char name[128];
    (void)state;

    assert_int_equal(telemetry_client_open(process[A].dir, "c", 1), -ENOENT);
    memset(name, 'x', sizeof(name));
    name[100] = '\0';
    assert_int_equal(telemetry_client_open(process[A].dir, name, 1), -ENAMETOOLONG);
}

/* The socket's own times, by which a question ends that nobody answers. */
static void a_connection_waits_so_long(void **state)
{
    int fd = telemetry_client_open(process[A].dir, "a", 7);
    struct timeval tv[2];
    socklen_t n = sizeof(tv[0]);
    (void)state;

    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv[0], &n), 0);
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv[1], &n), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_true(tv[i].tv_sec == 7 && tv[i].tv_usec == 0);
    close(fd);
}

/* ---- all of them ---- */

static void each_process_answers_under_its_name(void **state)
{
    (void)state;
    says[A] = "{\"x\":1}";
    says[B] = "[]";
    far_telemetry_put(&process[A], "proc/a.pid", "");
    assert_int_equal(query("/trib/totals", (struct telemetry_whom){0}), 0);
    assert_string_equal(out.text, "{\n \"a\": {\n  \"x\": 1\n },\n \"b\": []\n}\n");
    assert_string_equal(err.text, "");
    assert_true(n_asked[A] == 1 && n_asked[B] == 1);
}

/* Each of these is asked for its entries, and another one is not, nor an error. */
static void lists_are_followed_into_their_entries(void **state)
{
    static const char *const lists[] = {"/trib/ports", "/trib/links", "/trib/an"};
    (void)state;

    for (unsigned i = 0; i < 3; i++) {
        says[A] = NULL;
        says[B] = "{\"error\":\"none\"}";
        assert_int_equal(query(lists[i], (struct telemetry_whom){0}), 0);
        assert_string_equal(out.text, "{\n \"a0\": {\n  \"of\": \"a0\"\n },\n \"a1\": {\n  \"of\": "
                                      "\"a1\"\n },\n \"b\": {\n  \"error\": \"none\"\n }\n}\n");
    }
    assert_int_equal(query("/trib/nodes", (struct telemetry_whom){.proc = "a"}), 0);
    assert_string_equal(out.text, "{\n \"a\": [\n  \"a0\",\n  \"a1\"\n ]\n}\n");
}

static void some_are_asked(void **state)
{
    static const struct {
        struct telemetry_whom whom;
        unsigned asked[PROCESSES];
    } rows[] = {
        {{.proc = "a"}, {1, 0}},   {{.proc = "b"}, {0, 1}},   {{.skip = "a"}, {0, 1}},
        {{.skip = "x,b"}, {1, 0}}, {{.skip = "b,x"}, {1, 0}}, {{.skip = "bb,ab,ba"}, {1, 1}},
        {{.skip = ""}, {1, 1}},    {{.skip = "a,b"}, {0, 0}}, {{.skip = "aa,a"}, {0, 1}},
    };
    (void)state;

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        n_asked[A] = n_asked[B] = 0;
        /* a query that skips all has no answer, and is not one that found nobody */
        assert_int_equal(query("/trib/totals", rows[i].whom),
                         !rows[i].asked[A] && !rows[i].asked[B]);
        assert_string_equal(err.text, "");
        if (n_asked[A] != rows[i].asked[A] || n_asked[B] != rows[i].asked[B])
            fail_msg("row %u: asked %u and %u times", i, n_asked[A], n_asked[B]);
    }
}

static void one_that_is_not_there_is_named(void **state)
{
    char want[160];
    (void)state;

    assert_int_equal(query("/trib/totals", (struct telemetry_whom){.proc = "c"}), 1);
    snprintf(want, sizeof(want), "prog: found no running process c in %s\n", process[A].dir);
    assert_string_equal(err.text, want);
    assert_string_equal(out.text, "{}\n");
    assert_int_equal(remove(strcat(strcpy(want, process[A].dir), "/proc/a.ready")), 0);
    assert_int_equal(remove(strcat(strcpy(want, process[A].dir), "/proc/b.ready")), 0);
    assert_int_equal(query("/trib/totals", (struct telemetry_whom){0}), 1);
    snprintf(want, sizeof(want), "prog: found no running process in %s\n", process[A].dir);
    assert_string_equal(err.text, want);
}

/* It fails only if none has done it. */
static void one_answer_is_enough(void **state)
{
    static const struct {
        const char *a, *b;
        int rc;
    } rows[] = {
        {"{\"error\":\"x\"}", "{\"error\":\"y\"}", 1},
        {"{\"error\":\"x\"}", "{}", 0},
        {"{\"elsewhere\":\"x\"}", "{\"error\":\"y\"}", 1},
        {"{\"elsewhere\":\"x\"}", "5", 0},
        {"null", "{\"elsewhere\":\"x\"}", 1},
        {"nonsense", "nonsense", 1},
        {"{\"x\":1}", "nonsense", 0},
    };
    (void)state;

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        says[A] = rows[i].a;
        says[B] = rows[i].b;
        if (query("/trib/totals", (struct telemetry_whom){0}) != rows[i].rc)
            fail_msg("row %u: expected %d", i, rows[i].rc);
    }
    says[A] = says[B] = "[]"; /* nothing to list */
    assert_int_equal(query("/trib/ports", (struct telemetry_whom){0}), 0);
    assert_string_equal(out.text, "{}\n");
}

/* A process that has ended is said so; the others' answers count. */
static void a_silent_process_is_named(void **state)
{
    (void)state;
    far_telemetry_put(&process[A], "proc/c.ready", "");
    assert_int_equal(query("/trib/totals", (struct telemetry_whom){.seconds = 1}), 0);
    assert_string_equal(out.text, "{\n \"a\": 1,\n \"b\": 1\n}\n");
    assert_string_equal(err.text, "prog: trib-switch c does not run\n");
    assert_int_equal(query("/trib/totals", (struct telemetry_whom){.proc = "c"}), 1);
    assert_string_equal(out.text, "{}\n");
}

static void a_command_has_a_length(void **state)
{
    char cmd[1025];
    (void)state;

    memset(cmd, '/', sizeof(cmd));
    cmd[1024] = '\0';
    assert_int_equal(query(cmd, (struct telemetry_whom){0}), 1);
    assert_string_equal(err.text,
                        "prog: found a command of 1024 characters, expected at most 1023\n");
    assert_string_equal(out.text, "");
    assert_int_equal(n_asked[A], 0);
    cmd[1023] = '\0';
    says[A] = says[B] = "1";
    query(cmd, (struct telemetry_whom){0});
    assert_string_equal(err.text, "");
}

/* Another user's directory answers whatever that user likes. */
static void a_directory_that_others_write_is_not_asked(void **state)
{
    (void)state;
    assert_int_equal(chmod(process[A].dir, 0777), 0);
    assert_int_equal(query("/trib/totals", (struct telemetry_whom){0}), 1);
    assert_non_null(strstr(err.text, "prog: run directory "));
    assert_string_equal(out.text, "");
    assert_int_equal(n_asked[A], 0);
    assert_int_equal(chmod(process[A].dir, 0700), 0);
}

/* ---- the dilation ---- */

static int set_dilation(unsigned n)
{
    int rc;

    captured_begin(&err, stderr);
    rc = telemetry_client_set_dilation("prog", process[A].dir, n);
    captured_end(&err);
    return rc;
}

static void who_has_the_clock_sets_the_dilation(void **state)
{
    static const struct {
        const char *a, *b, *why;
        int rc;
    } rows[] = {
        {"{\"dilation\":70}", "{\"elsewhere\":\"a\"}", NULL, 0},
        {"{\"elsewhere\":\"b\"}", "{\"dilation\":70}", NULL, 0},
        {"{\"elsewhere\":\"b\"}", "{\"elsewhere\":\"a\"}", "the one that had the clock has ended",
         -ENOENT},
        {"{\"dilation\":71}", "{\"dilation\":7}", "Input/output error", -EIO},
    };
    char want[200];
    (void)state;

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        says[A] = rows[i].a;
        says[B] = rows[i].b;
        n_asked[A] = n_asked[B] = 0;
        assert_int_equal(set_dilation(70), rows[i].rc);
        snprintf(want, sizeof(want), "prog: no process of %s sets dilation 70: %s\n",
                 process[A].dir, rows[i].why ? rows[i].why : "");
        assert_string_equal(err.text, rows[i].why ? want : "");
        if (n_asked[A])
            assert_string_equal(last[A], "/trib/dilation 70");
        if (n_asked[B])
            assert_string_equal(last[B], "/trib/dilation 70");
    }
    assert_int_equal(remove(strcat(strcpy(want, process[A].dir), "/proc/a.ready")), 0);
    assert_int_equal(remove(strcat(strcpy(want, process[A].dir), "/proc/b.ready")), 0);
    assert_int_equal(set_dilation(70), -ENOENT);
}

/* It asks nobody any more once the dilation is set. */
static void the_others_are_not_asked_then(void **state)
{
    (void)state;
    says[A] = says[B] = "{\"dilation\":70}";
    assert_int_equal(set_dilation(70), 0);
    assert_int_equal(n_asked[A] + n_asked[B], 1);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_names_a_process),
        CASE(an_answer_is_the_value_of_its_command),
        CASE(a_process_that_is_not_there_has_no_socket),
        CASE(a_connection_waits_so_long),
        CASE(each_process_answers_under_its_name),
        CASE(lists_are_followed_into_their_entries),
        CASE(some_are_asked),
        CASE(one_that_is_not_there_is_named),
        CASE(one_answer_is_enough),
        CASE(a_silent_process_is_named),
        CASE(a_command_has_a_length),
        CASE(a_directory_that_others_write_is_not_asked),
        CASE(who_has_the_clock_sets_the_dilation),
        CASE(the_others_are_not_asked_then),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
