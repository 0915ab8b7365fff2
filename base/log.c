/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"

#include "base/assert.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const level_names[LOG_LEVELS] = {"none", "error", "warn", "info", "debug"};
#define X(name, text) name,
static const char *const rooms[] = {LOG_ROOMS(X)};
#undef X
#define ROOMS (sizeof(rooms) / sizeof(rooms[0]))

static enum log_level level_of[ROOMS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int by_name(const char *const *name, unsigned n, const char *s, size_t len)
{
    for (unsigned i = 0; i < n; i++)
        if (strlen(name[i]) == len && !strncmp(name[i], s, len))
            return (int)i;
    return -1;
}

static int level_refuse(char *err, unsigned size, const char *found, size_t len)
{
    int at =
        snprintf(err, size,
                 "TRIB_LOG: found \"%.*s\", expected LEVEL or ROOM:LEVEL,...; levels: none error "
                 "warn info debug; rooms:",
                 (int)len, found);

    for (unsigned i = 0; i < ROOMS && at < (int)size; i++)
        at += snprintf(err + at, size - (unsigned)at, " %s", rooms[i]);
    return -EINVAL;
}

/* Parses one LEVEL or ROOM:LEVEL of len characters. */
static int level_parse(enum log_level *level, const char *s, size_t len, char *err, unsigned size)
{
    const char *colon = memchr(s, ':', len);
    const char *name = colon ? colon + 1 : s;
    int room = colon ? by_name(rooms, ROOMS, s, (size_t)(colon - s)) : -1;
    int l = by_name(level_names, LOG_LEVELS, name, len - (size_t)(name - s));

    if (l < 0 || (colon && room < 0))
        return level_refuse(err, size, s, len);
    for (unsigned i = 0; i < ROOMS; i++)
        if (!colon || (int)i == room)
            level[i] = (enum log_level)l;
    return 0;
}

static int levels_parse(const char *text, char *err, unsigned size)
{
    enum log_level level[ROOMS];

    for (unsigned i = 0; i < ROOMS; i++)
        level[i] = LOG_WARN;
    for (const char *s = text; s && *s;) {
        size_t len = strcspn(s, ",");

        if (level_parse(level, s, len, err, size))
            return -EINVAL;
        s += len + (s[len] == ',');
    }
    memcpy(level_of, level, sizeof(level_of));
    return 0;
}

static void from_environment(void)
{
    char err[320];

    if (levels_parse(getenv("TRIB_LOG"), err, sizeof(err))) {
        fprintf(stderr, "%s\n", err);
        levels_parse(NULL, err, sizeof(err));
    }
}

int log_set(const char *text, char *err, unsigned size)
{
    pthread_once(&once, from_environment);
    return levels_parse(text, err, size);
}

bool log_on(const char *room, enum log_level level)
{
    int r;

    pthread_once(&once, from_environment);
    r = by_name(rooms, ROOMS, room, strlen(room));
    T_ASSERT(r >= 0, "log lines are of a room that is known");
    return r >= 0 && level <= level_of[r];
}

bool log_may(struct log_limit *l, unsigned long long *held)
{
    struct timespec t;
    long long now;

    clock_gettime(CLOCK_MONOTONIC, &t);
    now = t.tv_sec * 1000000000LL + t.tv_nsec;
    if (now < l->next_ns) {
        l->held++;
        return false;
    }
    *held = l->held;
    l->held = 0;
    l->next_ns = now + 1000000000LL;
    return true;
}

void log_line(const char *room, enum log_level level, const char *fmt, ...)
{
    char text[512];
    struct timespec t;
    va_list ap;

    clock_gettime(CLOCK_MONOTONIC, &t);
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fprintf(stderr, "%lld.%06ld %s %s %s\n", (long long)t.tv_sec, t.tv_nsec / 1000, room,
            level_names[level], text);
}
