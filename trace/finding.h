/* SPDX-License-Identifier: BSD-3-Clause */
/* What is wrong with a trace that could be read: all is counted by kind, the first of each kind are told. */
#ifndef TRIB_TRACE_FINDING_H
#define TRIB_TRACE_FINDING_H

#include <stdint.h>

#define FINDING_KEPT 5 /* of each kind */
#define FINDING_TEXT 320

/* kind, name in JSON, description */
#define FINDING_TABLE                                                                              \
    ROW(NO_RECEIVER, "no_receiver", "sends that nobody receives")                                  \
    ROW(NO_SENDER, "no_sender", "receives of what nobody sends")                                   \
    ROW(PEER, "peer", "messages of ranks that do not exist")                                       \
    ROW(SIZE, "size", "messages whose ends have two sizes")                                        \
    ROW(DEPENDENCY, "dependency", "dependencies on what does not exist")                           \
    ROW(CYCLE, "cycle", "ranks with operations that wait for themselves")                          \
    ROW(NO_GROUP, "no_group", "collectives on groups that do not exist")                           \
    ROW(NO_MEMBER, "no_member", "collectives of ranks that are no members of the group")           \
    ROW(LACKING, "lacking", "collectives that members lack")                                       \
    ROW(DISAGREE, "disagree", "collectives whose members disagree")                                \
    ROW(TWICE, "twice", "collectives that a member has twice")                                     \
    ROW(NEVER, "never", "operations that never start")                                             \
    ROW(TYPE, "type", "operations of a kind that is not known, taken for none")                    \
    ROW(NO_RANK, "no_rank", "ranks that the trace lacks")                                          \
    ROW(COUNT, "count", "numbers that the trace says of itself and does not keep")

enum finding_kind {
#define ROW(kind, name, text) FINDING_##kind,
    FINDING_TABLE
#undef ROW
        FINDING_KINDS
};

struct findings {
    uint64_t n[FINDING_KINDS];
    char text[FINDING_KINDS][FINDING_KEPT][FINDING_TEXT]; /* "FILE:LINE: found X, expected Y" */
};

/* One more. Its text is formatted only where it is kept. */
void finding_note(struct findings *f, enum finding_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
uint64_t finding_total(const struct findings *f);
unsigned finding_kept(const struct findings *f, enum finding_kind kind);
const char *finding_name(enum finding_kind kind);
const char *finding_means(enum finding_kind kind);

#endif
