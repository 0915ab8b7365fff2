/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines and pieces of a file, plain or of gzip, and what is refused of gzip. */
#include "trace/trace_input.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* As gzip writes it; the caller's. */
static uint8_t *packed(const void *bytes, size_t n, size_t *to)
{
    z_stream z = {.next_in = (uint8_t *)(uintptr_t)bytes, .avail_in = (unsigned)n};
    size_t room = n + 1024; /* and for another of a few bytes */
    uint8_t *out = malloc(room);

    assert_non_null(out);
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_out = out;
    z.avail_out = (unsigned)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    *to = room - z.avail_out;
    deflateEnd(&z);
    return out;
}

static void check_lines(struct trace_input *in)
{
    char *line;
    size_t n;

    assert_int_equal(trace_input_line(in, &line, &n), 0);
    assert_string_equal(line, "one");
    assert_int_equal(trace_input_line(in, &line, &n), 0);
    assert_string_equal(line, "");
    assert_int_equal(trace_input_line(in, &line, &n), 0);
    assert_string_equal(line, "three");
    assert_int_equal(n, 5);
    assert_int_equal(in->line, 3);
    assert_int_equal(trace_input_line(in, &line, &n), 1);
}

static void lines_are_read(void **state)
{
    static const char text[] = "one\r\n\nthree";
    size_t n, both;
    uint8_t *gz = packed(text, 4, &n), *rest = packed(text + 4, strlen(text) - 4, &both);
    struct trace_input in;

    (void)state;
    assert_int_equal(trace_input_memory(&in, "x", text, strlen(text)), 0);
    check_lines(&in);
    trace_input_close(&in);
    memcpy(gz + n, rest, both); /* two members are one file */
    assert_int_equal(trace_input_memory(&in, "x", gz, n + both), 0);
    check_lines(&in);
    trace_input_close(&in);
    free(gz);
    free(rest);
}

static void pieces_are_read(void **state)
{
    static const char text[] = "abcdefg";
    struct trace_input in;
    const char *at;

    (void)state;
    trace_input_memory(&in, "x", text, 7);
    assert_int_equal(trace_input_peek(&in, 100, &at), 7);
    assert_int_equal(trace_input_bytes(&in, 4, &at, "words"), 0);
    assert_memory_equal(at, "abcd", 4);
    assert_int_equal(trace_input_bytes(&in, 4, &at, "words"), -22);
    assert_string_equal(in.err, "x: byte 4: found 3 bytes, expected 4 of words");
    trace_input_close(&in);
}

static void a_line_has_a_bound(void **state)
{
    size_t n = TRACE_LINE_MOST + 300000;
    char *text = malloc(n), *line;
    struct trace_input in;

    (void)state;
    assert_non_null(text);
    memset(text, 'x', n);
    trace_input_memory(&in, "x", text, n);
    assert_int_equal(trace_input_line(&in, &line, &n), -22);
    assert_string_equal(in.err, "x: found a line 1 of more than 1048576 bytes, expected text");
    trace_input_close(&in);
    free(text);
}

static int read_all(const uint8_t *bytes, size_t n, char *err)
{
    struct trace_input in;
    const char *at;
    int rc = trace_input_memory(&in, "x", bytes, n);

    while (!rc)
        rc = trace_input_bytes(&in, 1000, &at, "zeros");
    memcpy(err, in.err, sizeof(in.err));
    trace_input_close(&in);
    return rc;
}

static void gzip_is_bounded_and_whole(void **state)
{
    size_t n, zeros = (size_t)TRACE_EXPAND_FREE + 1000000 - (size_t)TRACE_EXPAND_FREE % 1000;
    uint8_t *bytes = calloc(1, zeros), *gz;
    char err[TRACE_ERR];

    (void)state;
    assert_non_null(bytes);
    zeros -= zeros % 1000;
    gz = packed(bytes, zeros, &n);
    assert_int_equal(read_all(gz, n, err), -22);
    assert_non_null(strstr(err, "that expands to more than 200 times as many, expected a trace"));
    free(gz);
    gz = packed(bytes, 50000, &n);
    assert_int_equal(read_all(gz, n, err), 1); /* below what is free */
    assert_int_equal(read_all(gz, n - 9, err), -22);
    assert_non_null(strstr(err, "bytes of gzip, expected more"));
    gz[n - 6] ^= 1;
    assert_int_equal(read_all(gz, n, err), -22);
    assert_non_null(strstr(err, "found broken gzip"));
    free(gz);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_read),
        cmocka_unit_test(pieces_are_read),
        cmocka_unit_test(a_line_has_a_bound),
        cmocka_unit_test(gzip_is_bounded_and_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
