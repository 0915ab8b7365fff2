/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that ranks share with the process that starts them: the cases to run, the ranks' progress,
 * and their findings. Ranks are processes that may end or hang anywhere, so there is no lock.
 */
#ifndef TRIB_PLUGINS_CHECK_BOARD_H
#define TRIB_PLUGINS_CHECK_BOARD_H

#include <nccl/net_abi.h>

#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>

#define BOARD_RANKS 16
#define BOARD_ROWS  64 /* cases of a table */
#define BOARD_TEXT  400

enum row_state { ROW_OPEN, ROW_OK, ROW_FAILED, ROW_SKIPPED };

struct board_row {
    _Atomic int state;
    char text[BOARD_TEXT];
};

struct board_rank {
    char call[32];       /* the plug-in's function called last */
    atomic_bool in_call; /* that call has not returned */
    char handle[NCCL_HANDLE];
};

struct board {
    /* Written by the process that starts the ranks; they only read it. */
    char file[PATH_MAX];
    unsigned table, n_ranks;
    unsigned first;    /* first case of this start of the ranks */
    uint64_t run_mask; /* cases to run */
    unsigned dead_s;   /* seconds within which a peer's end must be noticed */

    /* Written by ranks. */
    _Atomic unsigned arrived, round; /* of a barrier */
    _Atomic unsigned row;            /* the case that runs */
    _Atomic int64_t began_ms;
    _Atomic int errors;    /* errors that ranks have seen, if the case counts them */
    _Atomic int dying;     /* rank + 1 of a rank that kills itself on purpose; 0: none */
    _Atomic int failed;    /* 1: the row's text is being written; 2: it is complete */
    atomic_bool prop_seen; /* the properties of the first table that has some are stored */
    struct nccl_props_v12 first_props;
    char first_name[64];
    unsigned first_table;
    struct board_rank rank[BOARD_RANKS];
    struct board_row at[BOARD_ROWS];
};

int64_t board_ms(void); /* monotonic */
/* A descriptor that children inherit, or -errno. */
int board_make(struct board **b);
/* Maps the board of an inherited descriptor. NULL: it has none. */
struct board *board_join(int fd);
/* Resets the board for a start of the ranks. */
void board_start(struct board *b, unsigned first);
/* Records a case's failure; the first one is kept. false: there was one already. */
__attribute__((format(printf, 3, 0))) bool board_fail(struct board *b, unsigned row,
                                                      const char *format, va_list ap);

#endif
