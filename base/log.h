/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log lines by room and level. Quiet by default: warnings and errors only.
 *
 *   TRIB_LOG=debug                    all rooms; none: no line at all
 *   TRIB_LOG=switch:debug,hca:info    these rooms; the others stay quiet
 *
 * One format, on stderr:   SECONDS ROOM LEVEL TEXT      (seconds of CLOCK_MONOTONIC)
 */
#ifndef TRIB_BASE_LOG_H
#define TRIB_BASE_LOG_H

#include <stdbool.h>

enum log_level { LOG_NONE, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_LEVELS };

/* X(name, what its lines are about) */
#define LOG_ROOMS(X)                                                                               \
    X("roce", "queue pairs")                                                                       \
    X("switch", "switches, their links and who attaches to them")                                  \
    X("trunk", "what joins machines")                                                              \
    X("hca", "the emulated HCA of a program")                                                      \
    X("coll", "communicators and collectives")                                                     \
    X("exec", "trib exec: what it sets for a program")                                             \
    X("sim", "simulations")

/* room: one of the above. Any other is a mistake of the caller: none of its lines is printed. */
bool log_on(const char *room, enum log_level level);
void log_line(const char *room, enum log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Sets levels from the text of TRIB_LOG; "" and NULL: the default. Returns 0, or -EINVAL with a
 * sentence in err (size bytes): what was found and what is expected. */
int log_set(const char *text, char *err, unsigned size);

/* Limits lines of one kind that others can cause to one a second. */
struct log_limit {
    long long next_ns; /* when the next one may be printed */
    unsigned long long held;
};
/* Whether a line may be printed now; *held: how many were suppressed since the last one. Otherwise this one
 * is suppressed and counted. One caller at a time. */
bool log_may(struct log_limit *l, unsigned long long *held);

/* Evaluates the text's arguments only if the line is printed. */
#define T_LOG(room, level, ...)                                                                    \
    do {                                                                                           \
        if (log_on(room, level))                                                                   \
            log_line(room, level, __VA_ARGS__);                                                    \
    } while (0)

#endif
