/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that ranks and who started them share: what is to be checked, where ranks are, what they
 * have found. Ranks are processes, and may end or hang at any place: nobody holds a lock.
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
    atomic_bool in_call; /* it has not returned */
    char handle[NCCL_HANDLE];
};

struct board {
    /* By who starts the ranks; they only read it. */
    char file[PATH_MAX];
    unsigned table, n_ranks;
    unsigned first;    /* case that this start of the ranks begins with */
    uint64_t run_mask; /* cases that are wanted */
    unsigned dead_s;   /* in which a peer's end must be noticed */

    /* By ranks. */
    _Atomic unsigned arrived, round; /* of a barrier */
    _Atomic unsigned row;            /* the case that runs */
    _Atomic int64_t began_ms;
    _Atomic int errors;    /* that ranks have seen, where a case counts them */
    _Atomic int dying;     /* a rank that kills itself on purpose, and 1; 0: none */
    _Atomic int failed;    /* 1: the row's text is being written; 2: it is there */
    atomic_bool prop_seen; /* properties of the first table that had some */
    struct nccl_props_v12 first_props;
    char first_name[64];
    unsigned first_table;
    struct board_rank rank[BOARD_RANKS];
    struct board_row at[BOARD_ROWS];
};

int64_t board_ms(void); /* monotonic */
/* A descriptor that children inherit, or -errno. */
int board_make(struct board **b);
/* Of an inherited descriptor. NULL: it is none. */
struct board *board_join(int fd);
/* Once for each start of the ranks. */
void board_start(struct board *b, unsigned first);
/* The first failure of a case is its text. false: there has been one. */
__attribute__((format(printf, 3, 0))) bool board_fail(struct board *b, unsigned row,
                                                      const char *format, va_list ap);

#endif
