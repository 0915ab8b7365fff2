/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/formats/trace_load.h"

#include "trace/trace_files.h"
#include "trace/formats/nccl_log.h"
#include "trace/formats/trace_json.h"
#include "trace/formats/trace_readers.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define PEEK 4096

/* Whether these first bytes of a file of this name are the format's. */
typedef bool recognise_fn(const char *name, const char *at, size_t n);

static bool goal_binary_is(const char *name, const char *at, size_t n)
{
    (void)name;
    return n >= 8 && (!memcmp(at, "\x7f\x10\0\0\0\0\0", 8) || !memcmp(at, "\x26\x09\0\0\0\0\0", 8));
}

/* Behind blanks and comments, which may be longer than what is seen. */
static bool goal_text_is(const char *name, const char *at, size_t n)
{
    const char *end = at + n;

    (void)name;
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

static bool json_is(const char *name, const char *at, size_t n)
{
    size_t i = 0;

    (void)name;
    while (i < n && strchr(" \t\r\n", at[i]) && at[i])
        i++;
    return i < n && at[i] == '{';
}

static bool workload_is(const char *name, const char *at, size_t n)
{
    (void)name;
    return text_workload_is(at, n);
}

/* Nodes is its first word behind comments. */
static bool htsim_is(const char *name, const char *at, size_t n)
{
    const char *end = at + n;

    (void)name;
    while (at && at < end) {
        if (*at && strchr(" \t\r\n", *at))
            at++;
        else if (*at != '#')
            return end - at > 6 && !memcmp(at, "Nodes ", 6);
        else
            at = memchr(at, '\n', (size_t)(end - at));
    }
    return false;
}

static bool nccl_is(const char *name, const char *at, size_t n)
{
    (void)name;
    return nccl_text_is(at, n);
}

/* It has no magic number: its name says what it is. */
static bool chakra_et_is(const char *name, const char *at, size_t n)
{
    const char *dot = strrchr(name, '.');

    (void)at;
    return n && dot && (!strcmp(dot, ".et") || (!strcmp(dot, ".gz") && strstr(name, ".et.gz")));
}

/* rank: of the file's name; APP_ANY: it has none. */
static const struct trace_format {
    const char *name;
    recognise_fn *is;
    int (*read)(struct app_graph *g, struct trace_input *in, uint32_t rank);
    bool whole; /* a file is a trace; else it is a rank of one */
} formats[] = {
    {"GOAL binary", goal_binary_is, goal_binary_read, true},
    {"Chakra ET", chakra_et_is, chakra_et_read, false},
    {"GOAL text", goal_text_is, goal_text_read, true},
    {"Chakra JSON or Kineto", json_is, trace_json_read, false},
    {"htsim matrix", htsim_is, htsim_matrix_read, true},
    {"NCCL log", nccl_is, nccl_text_read, false},
    {"text workload", workload_is, text_workload_read, true},
};
#define FORMATS (sizeof(formats) / sizeof(formats[0]))

/* Names of the formats, separated by commas. */
static void format_names(char *text, size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < FORMATS && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%s", i ? ", " : "", formats[i].name);
}

static const struct trace_format *format_of(struct trace_input *in, int *rc)
{
    const char *at, *slash = strrchr(in->name, '/');
    int64_t n = trace_input_peek(in, PEEK, &at);
    char known[256];

    *rc = n < 0 ? (int)n : 0;
    for (size_t i = 0; i < FORMATS && n >= 0; i++)
        if (formats[i].is(slash ? slash + 1 : in->name, at, (size_t)n))
            return &formats[i];
    format_names(known, sizeof(known));
    if (!*rc)
        *rc = trace_refuse_at(in, "", "found %s, expected a trace: %s",
                              n ? "the beginning of no format that is known" : "no bytes", known);
    return NULL;
}

static int load_end(struct trace_input *in, int rc, char *err)
{
    trace_input_close(in);
    snprintf(err, TRACE_ERR, "%s", in->err);
    return rc;
}

/* All files are read. */
static int load_build(struct app_graph *g, int rc, char *err)
{
    if (!rc && g->log)
        rc = nccl_log_build(g->log, g, err);
    nccl_log_free(g->log);
    g->log = NULL;
    return rc;
}

int trace_load_bytes(struct app_graph *g, const char *name, const void *bytes, size_t n, char *err)
{
    struct trace_input in;
    int rc = trace_input_memory(&in, name, bytes, n);
    const struct trace_format *f = rc ? NULL : format_of(&in, &rc);

    g->partial = f && !f->whole;
    rc = load_end(&in, f ? f->read(g, &in, APP_ANY) : rc, err);
    return load_build(g, rc, err);
}

/* A file of groups, GOAL's or Chakra's. */
static int groups_load(struct app_graph *g, const char *path, char *err)
{
    struct trace_input in;
    const char *at;
    int rc = trace_input_open(&in, path);
    int64_t n = rc ? rc : trace_input_peek(&in, PEEK, &at);

    if (n >= 0)
        rc = json_is(path, at, (size_t)n) ? chakra_groups_read(g, &in) : goal_groups_read(g, &in);
    return load_end(&in, n < 0 ? (int)n : rc, err);
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

struct trace_loading {
    struct app_graph *g;
    const char *groups; /* of the user's */
    const struct trace_files *files;
    const struct trace_format *format;
    bool any_groups; /* they are read */
};

/* Groups have to be there before ranks that name them. */
static int load_groups(struct trace_loading *l, const struct trace_format *f, char *err)
{
    const char *path = l->groups ? l->groups : f->whole ? NULL : l->files->groups;

    if (l->any_groups || !path)
        return 0;
    l->any_groups = true;
    return groups_load(l->g, path, err);
}

/* Whether a file of this format belongs to those before. */
static int load_fits(const struct trace_loading *l, struct trace_input *in,
                     const struct trace_format *f, uint32_t rank)
{
    if (l->format && f != l->format && f->read == trace_json_read && rank == APP_ANY)
        return -ENOMSG;
    if (l->format && f != l->format)
        return trace_refuse_at(in, "", "found %s, expected %s as in the files before", f->name,
                               l->format->name);
    if (f->whole && l->files->n > 1)
        return trace_refuse_at(in, "", "found %s among several files, expected one alone", f->name);
    return 0;
}

/* In a folder what is no trace at all is passed over: so is JSON of others. */
static bool load_passes(const struct trace_loading *l, const struct trace_name *file, int rc)
{
    const char *slash = strrchr(file->path, '/'), *dot = strrchr(slash ? slash : file->path, '.');

    if (!l->files->folder || l->files->n < 2 || file->rank != APP_ANY)
        return false;
    return rc == -ENOMSG || !dot || !strcmp(dot, ".md") || !strcmp(dot, ".groups");
}

static int load_file(struct trace_loading *l, const struct trace_name *file, char *err)
{
    struct trace_input in;
    int rc = trace_input_open(&in, file->path);
    const struct trace_format *f = rc ? NULL : format_of(&in, &rc);

    if (f)
        rc = load_fits(l, &in, f, file->rank);
    l->g->partial = f && !f->whole && !l->files->folder;
    if (!rc)
        rc = load_groups(l, f, in.err);
    if (!rc)
        rc = f->read(l->g, &in, file->rank);
    if (rc == -ENOMSG && load_passes(l, file, rc)) {
        in.err[0] = 0;
        rc = 0;
    } else if (!rc) {
        l->format = f;
    }
    return load_end(&in, rc, err);
}

int trace_load(struct app_graph *g, const char *path, const char *groups, char *err)
{
    struct trace_files files;
    struct trace_loading l = {.g = g, .groups = groups, .files = &files};
    int rc = trace_files_find(&files, path);

    snprintf(err, TRACE_ERR, "%s: %s", path,
             rc ? strerror(-rc) : "found no file, expected a trace");
    if (!rc && !files.n)
        rc = -ENOENT;
    for (size_t i = 0; !rc && i < files.n; i++)
        if (!load_passes(&l, &files.file[i], 0))
            rc = load_file(&l, &files.file[i], err);
    if (!rc && !l.format)
        rc = -ENOENT;
    if (!rc && l.format->whole && !groups)
        rc = groups_beside(g, files.file[0].path, err);
    rc = load_build(g, rc, err);
    trace_files_free(&files);
    return rc;
}
