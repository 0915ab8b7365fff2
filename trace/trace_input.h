/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes of a trace's file, read once from its beginning, lines or pieces at a time: a file may be
 * larger than memory. A file of gzip's is expanded, by a bounded factor. What is wrong with the
 * contents is said in `err`, as "FILE:LINE: found X, expected Y".
 */
#ifndef TRIB_TRACE_TRACE_INPUT_H
#define TRIB_TRACE_TRACE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_LINE_MOST   (1u << 20) /* bytes of a line */
#define TRACE_EXPAND_FREE (64u << 20)
#define TRACE_EXPAND_MOST 200 /* bytes out of a byte of gzip, beyond the first TRACE_EXPAND_FREE */
#define TRACE_ERR         512

struct trace_expand;

struct trace_input {
    const char *name; /* for messages; the caller's */
    int fd;           /* -1: from memory */
    const uint8_t *mem;
    size_t mem_n;
    struct trace_expand *expand; /* NULL: plain bytes */
    char *buf;                   /* read already: from at to n */
    size_t at, n, room;
    uint64_t raw, out; /* bytes of the file; of what they expand to */
    uint32_t line;     /* the last one that was read, from 1 on */
    bool ended;
    char err[TRACE_ERR]; /* "": nothing is wrong */
};

/* 0, or -errno with the reason in err. trace_input_close() is for both. */
int trace_input_open(struct trace_input *in, const char *path);
/* Bytes in memory, which stay the caller's, as a file of this name. */
int trace_input_memory(struct trace_input *in, const char *name, const void *bytes, size_t n);
void trace_input_close(struct trace_input *in);

/* Bytes that come next, without reading them: n of them, or fewer at the end of the file; *at points
 * to them until the next call. Returns how many, or -errno. */
int64_t trace_input_peek(struct trace_input *in, size_t n, const char **at);
/* Reads n bytes, n as peek allows. 0, 1: the file has ended before the first of them, -errno: it
 * ends in their midst, which `what` is named for. */
int trace_input_bytes(struct trace_input *in, size_t n, const char **at, const char *what);
/* The next line, which ends with a 0 in the place of LF or CR LF. 0, 1: there is none, or -errno. */
int trace_input_line(struct trace_input *in, char **line, size_t *n);
/* All that is left, with a 0 behind it, which the caller frees; NULL: reason in err. */
char *trace_input_rest(struct trace_input *in, size_t most, size_t *n);

/*
 * Says in err that the line just read has `found`, n bytes of it (at most 40 are shown; n 0: the end of
 * the line), where `expected` belongs. Returns -EINVAL.
 */
int trace_refuse(struct trace_input *in, const char *found, size_t n, const char *expected);
/* The same for a place that is no line; what was found in any words. */
int trace_refuse_at(struct trace_input *in, const char *place, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
