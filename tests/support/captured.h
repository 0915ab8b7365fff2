/* SPDX-License-Identifier: BSD-3-Clause */
/* What a function prints on standard output or standard error, or to a FILE, as a text. */
#ifndef TESTS_CAPTURED_H
#define TESTS_CAPTURED_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct captured {
    FILE *stream;
    int fd, was;
    char text[16384];
};

/* stdout or stderr goes to memory until captured_end(). */
static inline void captured_begin(struct captured *c, FILE *stream)
{
    fflush(stream);
    c->stream = stream;
    c->fd = memfd_create("captured", MFD_CLOEXEC);
    c->was = dup(fileno(stream));
    if (c->fd < 0 || c->was < 0 || dup2(c->fd, fileno(stream)) < 0)
        abort();
}

/* What was printed since: c->text. */
static inline const char *captured_end(struct captured *c)
{
    ssize_t n;

    fflush(c->stream);
    n = pread(c->fd, c->text, sizeof(c->text) - 1, 0);
    if (n < 0 || dup2(c->was, fileno(c->stream)) < 0)
        abort();
    c->text[n] = 0;
    close(c->was);
    close(c->fd);
    return c->text;
}

/* A file whose text captured_text() gives and closes; the text is valid until its next call. */
static inline FILE *captured_file(void)
{
    int fd = memfd_create("captured", MFD_CLOEXEC);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w+");

    if (!f)
        abort();
    return f;
}

static inline const char *captured_text(FILE *f)
{
    static char text[65536];
    ssize_t n;

    fflush(f);
    n = pread(fileno(f), text, sizeof(text) - 1, 0);
    if (n < 0)
        abort();
    text[n] = 0;
    fclose(f);
    return text;
}

#endif
