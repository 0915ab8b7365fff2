/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/trace_input.h"

#include "base/printable.h"
#include "system/input.h"
#include "trace/grow.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define PART 262144 /* bytes that are read at a time */

struct trace_expand {
    z_stream z;
    bool member_ended; /* another may follow */
    uint8_t raw[PART];
};

static int input_wrong(struct trace_input *in, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static int input_wrong(struct trace_input *in, const char *fmt, ...)
{
    int n = snprintf(in->err, sizeof(in->err), "%s: ", in->name);
    va_list ap;

    va_start(ap, fmt);
    if (n > 0 && (size_t)n < sizeof(in->err))
        vsnprintf(in->err + n, sizeof(in->err) - (size_t)n, fmt, ap);
    va_end(ap);
    printable_make(in->err, sizeof(in->err));
    return -EINVAL;
}

/* At most n bytes of the file as it lies; 0 at its end. */
static int64_t raw_read(struct trace_input *in, void *to, size_t n)
{
    ssize_t k = 0;

    if (in->fd < 0) {
        k = (ssize_t)(n < in->mem_n ? n : in->mem_n);
        if (k)
            memcpy(to, in->mem, (size_t)k);
        in->mem += k;
        in->mem_n -= (size_t)k;
    } else {
        do
            k = read(in->fd, to, n);
        while (k < 0 && errno == EINTR);
        if (k < 0) {
            int rc = -errno;

            input_wrong(in, "cannot be read: %s", strerror(errno));
            return rc;
        }
    }
    in->raw += (uint64_t)k;
    return k;
}

static int expand_refill(struct trace_input *in)
{
    struct trace_expand *e = in->expand;
    int64_t k = raw_read(in, e->raw, sizeof(e->raw));

    if (k < 0)
        return (int)k;
    e->z.next_in = e->raw;
    e->z.avail_in = (unsigned)k;
    return k ? 0 : 1;
}

/* A member has ended, or the input is used up: what is next? 1: the end of the file. */
static int expand_prepare(struct trace_input *in)
{
    struct trace_expand *e = in->expand;
    int rc = e->z.avail_in ? 0 : expand_refill(in);

    if (rc == 1 && !e->member_ended)
        return input_wrong(in, "found the end of the file after %llu bytes of gzip, expected more",
                           (unsigned long long)in->raw);
    if (!rc && e->member_ended) {
        e->member_ended = false;
        inflateReset(&e->z);
    }
    return rc;
}

static int64_t expand_read(struct trace_input *in, void *to, size_t n)
{
    struct trace_expand *e = in->expand;
    size_t got = 0;

    while (!got) {
        int rc = expand_prepare(in), z;

        if (rc)
            return rc < 0 ? rc : 0;
        e->z.next_out = to;
        e->z.avail_out = (unsigned)n;
        z = inflate(&e->z, Z_NO_FLUSH);
        got = n - e->z.avail_out;
        if (z == Z_STREAM_END)
            e->member_ended = true;
        else if (z != Z_OK && z != Z_BUF_ERROR)
            return input_wrong(in, "found broken gzip at byte %llu (%s), expected a whole file",
                               (unsigned long long)(in->raw - e->z.avail_in),
                               e->z.msg ? e->z.msg : "error");
    }
    return (int64_t)got;
}

/* Bytes more in the buffer. 0, 1 at the end of the file, or -errno. */
static int input_fill(struct trace_input *in)
{
    int64_t k;

    if (in->ended)
        return 1;
    if (in->at) {
        memmove(in->buf, in->buf + in->at, in->n - in->at);
        in->n -= in->at;
        in->at = 0;
    }
    GROW(in->buf, in->n + PART + 1, &in->room);
    k = in->expand ? expand_read(in, in->buf + in->n, PART) : raw_read(in, in->buf + in->n, PART);
    if (k < 0)
        return (int)k;
    in->n += (size_t)k;
    in->out += (uint64_t)k;
    in->ended = !k;
    if (in->expand && in->out > TRACE_EXPAND_FREE && in->out / in->raw > TRACE_EXPAND_MOST)
        return input_wrong(in,
                           "found gzip of %llu bytes that expands to more than %d times as many, "
                           "expected a trace",
                           (unsigned long long)in->raw, TRACE_EXPAND_MOST);
    return in->ended;
}

/* Whether the bytes are gzip's; those that were read for this belong to it. */
static int input_recognise(struct trace_input *in)
{
    int rc = input_fill(in);

    if (rc < 0 || in->n < 2 || (uint8_t)in->buf[0] != 0x1f || (uint8_t)in->buf[1] != 0x8b)
        return rc < 0 ? rc : 0;
    in->expand = enough_memory(1, sizeof(*in->expand));
    if (inflateInit2(&in->expand->z, 15 + 16) != Z_OK)
        enough_is_not();
    memcpy(in->expand->raw, in->buf, in->n);
    in->expand->z.next_in = in->expand->raw;
    in->expand->z.avail_in = (unsigned)in->n;
    in->n = 0;
    in->out = 0;
    in->ended = false;
    return 0;
}

int trace_input_open(struct trace_input *in, const char *path)
{
    *in = (struct trace_input){.name = path, .fd = input_open(path)};
    if (in->fd < 0) {
        int rc = in->fd;

        input_wrong(in, "%s%s", rc == -EINVAL ? "found no plain file" : strerror(-rc),
                    rc == -EINVAL || rc == -EISDIR ? ", expected a trace" : "");
        return rc;
    }
    return input_recognise(in);
}

int trace_input_memory(struct trace_input *in, const char *name, const void *bytes, size_t n)
{
    *in = (struct trace_input){.name = name, .fd = -1, .mem = bytes, .mem_n = n};
    return input_recognise(in);
}

void trace_input_close(struct trace_input *in)
{
    if (in->fd >= 0)
        close(in->fd);
    if (in->expand)
        inflateEnd(&in->expand->z);
    free(in->expand);
    free(in->buf);
    in->fd = -1;
    in->expand = NULL;
    in->buf = NULL;
}

int64_t trace_input_peek(struct trace_input *in, size_t n, const char **at)
{
    while (in->n - in->at < n) {
        int rc = input_fill(in);

        if (rc < 0)
            return rc;
        if (rc)
            break;
    }
    *at = in->buf + in->at;
    return (int64_t)(in->n - in->at < n ? in->n - in->at : n);
}

int trace_input_bytes(struct trace_input *in, size_t n, const char **at, const char *what)
{
    uint64_t begin = in->out - (in->n - in->at);
    int64_t k = trace_input_peek(in, n, at);

    if (k < 0)
        return (int)k;
    if ((size_t)k < n && !k)
        return 1;
    if ((size_t)k < n)
        return input_wrong(in, "byte %llu: found %lld bytes, expected %zu of %s",
                           (unsigned long long)begin, (long long)k, n, what);
    in->at += n;
    return 0;
}

int trace_input_line(struct trace_input *in, char **line, size_t *n)
{
    size_t seen = 0;
    char *end;

    while (!(end = in->n - in->at > seen
                       ? memchr(in->buf + in->at + seen, '\n', in->n - in->at - seen)
                       : NULL)) {
        int rc;

        seen = in->n - in->at;
        if (seen > TRACE_LINE_MOST)
            return input_wrong(in, "found a line %u of more than %u bytes, expected text",
                               in->line + 1, TRACE_LINE_MOST);
        rc = input_fill(in);
        if (rc < 0)
            return rc;
        if (rc && in->at == in->n)
            return 1;
        if (rc) { /* the last line has no end of its own */
            end = in->buf + in->n++;
            break;
        }
    }
    *line = in->buf + in->at;
    *n = (size_t)(end - *line);
    in->at += *n + 1;
    in->line++;
    *end = 0;
    if (*n && end[-1] == '\r')
        (*line)[--*n] = 0;
    return 0;
}

char *trace_input_rest(struct trace_input *in, size_t most, size_t *n)
{
    const char *at;
    int64_t k = trace_input_peek(in, most + 1, &at);
    char *all;

    if (k < 0)
        return NULL;
    if ((uint64_t)k > most) {
        input_wrong(in, "found more than %zu bytes, expected %zu at most", most, most);
        return NULL;
    }
    all = enough_memory((size_t)k + 1, 1);
    if (k)
        memcpy(all, at, (size_t)k);
    in->at += (size_t)k;
    *n = (size_t)k;
    return all;
}

int trace_refuse(struct trace_input *in, const char *found, size_t n, const char *expected)
{
    char word[48];

    if (n)
        snprintf(word, sizeof(word), "\"%.*s%s\"", (int)(n < 40 ? n : 40), found,
                 n > 40 ? ".." : "");
    else
        snprintf(word, sizeof(word), "the end of the line");
    snprintf(in->err, sizeof(in->err), "%s:%u: found %s, expected %s", in->name, in->line, word,
             expected);
    printable_make(in->err, sizeof(in->err));
    return -EINVAL;
}

int trace_refuse_at(struct trace_input *in, const char *place, const char *fmt, ...)
{
    char text[TRACE_ERR];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return input_wrong(in, "%s%s%s", place, *place ? ": " : "", text);
}
