/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank: a process that loads the plug-in and runs cases together with the other ranks. A failure
 * ends it, because the plug-in's state is unknown then.
 */
#ifndef TRIB_PLUGINS_CHECK_PLUGIN_RANK_H
#define TRIB_PLUGINS_CHECK_PLUGIN_RANK_H

#include "plugins/check/board.h"
#include "plugins/check/tables.h"

#define RANK_POISON ((void *)(uintptr_t)0x5a5a5a5a5a5a5a50) /* in places for results */
#define RANK_FILL   0x5a5a5a5a

struct plugin_rank {
    struct board *b;
    unsigned me, n;
    struct plugin_table t;
    void *ctx;
    int devices;
    struct nccl_props_v12 props; /* of device 0 */
    unsigned spins;              /* calls since something happened */
};

enum {
    CASE_STRICT = 1, /* tests misuse, which NCCL never does */
    CASE_LAST = 2,   /* a rank dies in it, so ranks are started again */
};

struct plugin_case {
    const char *name, *help;
    void (*run)(
        struct plugin_rank *r); /* NULL: the first and the last one, which a start of ranks is */
    unsigned how;
    int from; /* version; 0: all */
};

/* The cases of a table; the first is "init", the last "end". */
const struct plugin_case *cases_of(bool coll, unsigned *n);

/* Loads the plug-in and runs the board's cases. Returns the exit status. */
int rank_main(struct board *b, unsigned me);

__attribute__((format(printf, 2, 3))) _Noreturn void rank_fail(struct plugin_rank *r,
                                                               const char *format, ...);
#define EXPECT(r, cond, ...)                                                                       \
    do {                                                                                           \
        if (!(cond))                                                                               \
            rank_fail(r, __VA_ARGS__);                                                             \
    } while (0)

/* Call before and after a call of the plug-in, which may never return. */
void rank_enters(struct plugin_rank *r, const char *call);
int rank_left(struct plugin_rank *r, int rc);
#define CALL(r, call, what) (rank_enters(r, call), rank_left(r, what))
/* Fails the case unless rc is success. */
void rank_must(struct plugin_rank *r, const char *call, int rc);
#define MUST(r, call, what) rank_must(r, call, CALL(r, call, what))

/* Lets others run when nothing has happened. Ends this rank if another one has failed. */
void rank_pause(struct plugin_rank *r);
void rank_barrier(struct plugin_rank *r);
/* Kills this rank by SIGKILL. */
_Noreturn void rank_dies(struct plugin_rank *r);
void rank_log(int level, unsigned long flags, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
