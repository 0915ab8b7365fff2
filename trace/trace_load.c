/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/trace_load.h"

#include "trace/trace_readers.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define PEEK 4096

/* Whether these first bytes of a file are the format's. */
typedef bool recognise_fn(const char *at, size_t n);

static bool goal_binary_is(const char *at, size_t n)
{
    return n >= 8 &&
           ((!memcmp(at, "\x7f\x10\0\0\0\0\0", 8)) || !memcmp(at, "\x26\x09\0\0\0\0\0", 8));
}

/* Behind blanks and comments, which may be longer than what is seen. */
static bool goal_text_is(const char *at, size_t n)
{
    const char *end = at + n;

    while (at < end) {
        if (strchr(" \t\r\n", *at) && *at) {
            at++;
        } else if (end - at > 1 && at[0] == '/' && at[1] == '/') {
            at = memchr(at, '\n', (size_t)(end - at));
            at = at ? at : end;
        } else if (end - at > 1 && at[0] == '/' && at[1] == '*') {
            at = memmem(at + 2, (size_t)(end - at - 2), "*/", 2);
            at = at ? at + 2 : end;
        } else {
            return (size_t)(end - at) >= 9 && !memcmp(at, "num_ranks", 9);
        }
    }
    return false;
}

static const struct trace_format {
    const char *name;
    recognise_fn *is;
    int (*read)(struct app_graph *g, struct trace_input *in);
} formats[] = {
    {"GOAL binary", goal_binary_is, goal_binary_read},
    {"GOAL text", goal_text_is, goal_text_read},
};
#define FORMATS (sizeof(formats) / sizeof(formats[0]))

void trace_formats(char *text, size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < FORMATS && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%s", i ? ", " : "", formats[i].name);
}

static int format_read(struct app_graph *g, struct trace_input *in)
{
    const char *at;
    int64_t n = trace_input_peek(in, PEEK, &at);
    char known[256];

    if (n < 0)
        return (int)n;
    for (size_t i = 0; i < FORMATS; i++)
        if (formats[i].is(at, (size_t)n))
            return formats[i].read(g, in);
    trace_formats(known, sizeof(known));
    return trace_refuse_at(in, "", "found %s, expected a trace: %s",
                           n ? "the beginning of no format that is known" : "no bytes", known);
}

static int load_end(struct trace_input *in, int rc, char *err)
{
    trace_input_close(in);
    snprintf(err, TRACE_ERR, "%s", in->err);
    return rc;
}

int trace_load_bytes(struct app_graph *g, const char *name, const void *bytes, size_t n, char *err)
{
    struct trace_input in;
    int rc = trace_input_memory(&in, name, bytes, n);

    return load_end(&in, rc ? rc : format_read(g, &in), err);
}

static int groups_load(struct app_graph *g, const char *path, char *err)
{
    struct trace_input in;
    int rc = trace_input_open(&in, path);

    return load_end(&in, rc ? rc : goal_groups_read(g, &in), err);
}

/* "x.groups" beside "x.goal", where it is. */
static int groups_beside(struct app_graph *g, const char *path, char *err)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    char beside[PATH_MAX];
    int rc;

    if (!dot || (slash && dot < slash))
        return 0;
    if (snprintf(beside, sizeof(beside), "%.*s.groups", (int)(dot - path), path) >= PATH_MAX)
        return 0;
    rc = groups_load(g, beside, err);
    return rc == -ENOENT ? 0 : rc;
}

int trace_load(struct app_graph *g, const char *path, const char *groups, char *err)
{
    struct trace_input in;
    int rc = trace_input_open(&in, path);

    rc = load_end(&in, rc ? rc : format_read(g, &in), err);
    if (rc)
        return rc;
    return groups ? groups_load(g, groups, err) : groups_beside(g, path, err);
}
