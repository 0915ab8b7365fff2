/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/trace_events.h"

#include "system/atomic_output.h"
#include "base/units.h"

#include <errno.h>
#include <jansson.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <unistd.h>

#define DIGITS JSON_REAL_PRECISION(15) /* enough for picoseconds in 100 s */

struct trace_events {
    FILE *f;
    uint64_t n, most, left_out;
    bool failed, separate; /* separate: the next event needs a comma before it */
};

static double trace_us(int64_t ps)
{
    return (double)ps / (double)PS_PER_US;
}

/* Writes an event, one a line. Takes ownership of j. */
static void trace_events_put(struct trace_events *t, json_t *j)
{
    if ((t->separate && fputs(",\n", t->f) == EOF) ||
        json_dumpf(j, t->f, JSON_COMPACT | DIGITS) < 0) /* also fails if j is NULL */
        t->failed = true;
    t->separate = true;
    json_decref(j);
}

bool trace_events_add(struct trace_events *t, const struct trace_event *e, json_t *args)
{
    char ph[2] = {e->ph, '\0'};
    json_t *j;

    if (t->n >= t->most) {
        t->left_out++;
        json_decref(args);
        return false;
    }
    t->n++;
    j = json_pack("{s:s, s:i, s:i, s:f, s:s, s:s}", "ph", ph, "pid", (int)e->pid, "tid",
                  (int)e->tid, "ts", trace_us(e->ps), "name", e->name, "cat", e->cat);
    if (e->ph == 'X')
        json_object_set_new(j, "dur", json_real(trace_us(e->dur_ps)));
    if (e->ph == 'i')
        json_object_set_new(j, "s", json_string("t"));
    if (e->ph == 'f')
        json_object_set_new(j, "bp", json_string("e"));
    if (e->id)
        json_object_set_new(j, "id", json_string(e->id));
    if (args)
        json_object_set_new(j, "args", args);
    trace_events_put(t, j);
    return true;
}

static void name(struct trace_events *t, const char *what, uint32_t pid, uint32_t tid,
                 const char *text)
{
    trace_events_put(t, json_pack("{s:s, s:i, s:i, s:f, s:s, s:{s:s}}", "ph", "M", "pid", (int)pid,
                                  "tid", (int)tid, "ts", 0.0, "name", what, "args", "name", text));
}

void trace_events_process(struct trace_events *t, uint32_t pid, const char *text)
{
    name(t, "process_name", pid, 0, text);
    trace_events_put(t, json_pack("{s:s, s:i, s:i, s:f, s:s, s:{s:i}}", "ph", "M", "pid", (int)pid,
                                  "tid", 0, "ts", 0.0, "name", "process_sort_index", "args",
                                  "sort_index", (int)pid));
}

void trace_events_thread(struct trace_events *t, uint32_t pid, uint32_t tid, const char *text)
{
    name(t, "thread_name", pid, tid, text);
    trace_events_put(t, json_pack("{s:s, s:i, s:i, s:f, s:s, s:{s:i}}", "ph", "M", "pid", (int)pid,
                                  "tid", (int)tid, "ts", 0.0, "name", "thread_sort_index", "args",
                                  "sort_index", (int)tid));
}

uint64_t trace_events_count(const struct trace_events *t)
{
    return t->n;
}

uint64_t trace_events_left_out(const struct trace_events *t)
{
    return t->left_out;
}

static int trace_events_copy(FILE *to, FILE *from)
{
    char buf[65536];
    size_t n;

    while ((n = fread(buf, 1, sizeof(buf), from)) > 0)
        if (fwrite(buf, 1, n, to) != n)
            return -EIO;
    return ferror(from) ? -EIO : 0;
}

int trace_events_copy_to(struct trace_events *t, FILE *out)
{
    int rc;

    t->failed |= fflush(t->f) != 0; /* rewind() would not report an error */
    rewind(t->f);
    rc = t->failed ? -EIO : trace_events_copy(out, t->f);
    fseek(t->f, 0, SEEK_END);
    return rc;
}

/* Counts the events by their lines. */
int trace_events_append(struct trace_events *t, FILE *in)
{
    uint64_t lines = 1;
    int c;

    if (ferror(in) || fflush(in))
        return -EIO; /* incomplete */
    rewind(in);
    c = getc(in);
    if (c == EOF)
        return 0;
    for (; c != EOF; c = getc(in))
        lines += c == '\n';
    rewind(in);
    t->n += lines;
    if (t->separate && fputs(",\n", t->f) == EOF)
        return -EIO;
    t->separate = true;
    return trace_events_copy(t->f, in);
}

int trace_events_write(struct trace_events *t, const char *path, json_t *other)
{
    FILE *whole = tmpfile();
    int rc = whole ? 0 : -errno;

    if (!rc && fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", whole) == EOF)
        rc = -EIO;
    if (!rc)
        rc = trace_events_copy_to(t, whole);
    if (!rc &&
        (fputs("\n],\"otherData\":", whole) == EOF ||
         json_dumpf(other, whole, JSON_INDENT(1) | DIGITS) < 0 || fputs("}\n", whole) == EOF))
        rc = -EIO;
    if (!rc)
        rc = atomic_output_copy(path, whole);
    if (whole)
        fclose(whole);
    json_decref(other);
    return rc;
}

void trace_events_restart(struct trace_events *t)
{
    t->n = t->left_out = 0;
    t->separate = false;
    __fpurge(t->f); /* drops what a full disk did not take */
    rewind(t->f);
    fflush(t->f); /* drops what a copy has read ahead */
    t->failed = ftruncate(fileno(t->f), 0) != 0;
}

int trace_events_create(struct trace_events **out, uint64_t most)
{
    struct trace_events *t = calloc(1, sizeof(*t));

    *out = NULL;
    if (!t)
        return -ENOMEM;
    t->most = most;
    t->f = tmpfile();
    if (!t->f) {
        int rc = -errno;

        free(t);
        return rc;
    }
    *out = t;
    return 0;
}

void trace_events_destroy(struct trace_events *t)
{
    if (!t)
        return;
    fclose(t->f);
    free(t);
}
