/* SPDX-License-Identifier: BSD-3-Clause */
/* A directory of the test's own, files in it, and what it says on a stream. */
#ifndef TRIB_TESTS_HOST_KEEP_SCRATCH_H
#define TRIB_TESTS_HOST_KEEP_SCRATCH_H

#include "host/keep/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static char scratch[64];

static inline int scratch_make(void **state)
{
    (void)state;
    strcpy(scratch, "/tmp/test_keep.XXXXXX");
    return !mkdtemp(scratch);
}

static inline int scratch_drop(void **state)
{
    char rm[96];

    (void)state;
    snprintf(rm, sizeof(rm), "rm -rf %s", scratch);
    return system(rm);
}

/* Good until the call after the next three. */
static inline const char *at(const char *name)
{
    static char path[4][256];
    static unsigned n;

    n = (n + 1) % 4;
    snprintf(path[n], sizeof(path[n]), "%s/%s", scratch, name);
    return path[n];
}

/* With the directories above it; NULL: it is a directory. */
static inline void put(const char *name, const char *text)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof(path), "%s", at(name));
    for (char *p = path + strlen(scratch) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(path, 0700);
        *p = '/';
    }
    if (!text) {
        mkdir(path, 0700);
        return;
    }
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    chmod(path, 0600);
}

static inline bool is_there(const char *name)
{
    return !access(at(name), F_OK);
}

/* What is said from here on is kept, until its text is asked for. */
struct heard {
    FILE *f;
    int of, was;
};

static inline struct heard listen_to(FILE *stream)
{
    struct heard h = {tmpfile(), fileno(stream), 0};

    fflush(stream);
    h.was = dup(h.of);
    dup2(fileno(h.f), h.of);
    return h;
}

static inline const char *what_was_said(struct heard *h)
{
    static char text[16384];

    fflush(NULL);
    dup2(h->was, h->of);
    close(h->was);
    rewind(h->f);
    text[fread(text, 1, sizeof(text) - 1, h->f)] = '\0';
    fclose(h->f);
    return text;
}

#endif
