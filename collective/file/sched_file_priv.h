/* SPDX-License-Identifier: BSD-3-Clause */
/* A schedule's steps as read from a file, and the checks of them; for sched_file*.c only. */
#ifndef TRIB_COLLECTIVE_FILE_SCHED_FILE_PRIV_H
#define TRIB_COLLECTIVE_FILE_SCHED_FILE_PRIV_H

#include "collective/file/sched_file.h"
#include "collective/sched.h"
#include "fabric/build.h"

#define FILE_NONE UINT32_MAX

enum file_op { FILE_SEND, FILE_RECV, FILE_RECV_REDUCE, FILE_REDUCE, FILE_COPY, FILE_OPS };
enum file_buf { FILE_NO_BUF, FILE_IN, FILE_OUT, FILE_SCRATCH };

/* Chunks [first, first + step.n) of a buffer. */
struct file_ref {
    enum file_buf buf;
    uint32_t first;
};

struct file_step {
    enum file_op op;
    unsigned rank, peer; /* peer: of messages */
    uint32_t line, n;    /* n: chunks */
    struct file_ref a, b, dst;
    uint32_t first_after, n_after; /* in sched_file.after, ascending */
    uint32_t first_part;           /* in sched_file.part, n of them */
    uint32_t match;                /* messages: the step at the other end */
    uint32_t prev; /* the step before it of the same FIFO; FILE_NONE: it is the first */
    bool scratch;  /* this step or the other end uses scratch memory */
    bool mixed;    /* this step or the other end completes only some of its chunks */
    /* By place, for a receive: its message is sent after all earlier uses of the memory have ended,
     * so it can be posted at once. */
    bool caused[2];
};

/* A chunk that a step reads or writes. */
struct file_part {
    uint32_t chunk; /* it is this chunk of the vector, or of its block: chunks differ in length by
                       an element */
    bool last;      /* this step completes it */
};

struct file_edge {
    uint16_t from, to;
};

static inline bool file_is_recv(const struct file_step *s)
{
    return s->op == FILE_RECV || s->op == FILE_RECV_REDUCE;
}

static inline bool file_is_local(const struct file_step *s)
{
    return s->op == FILE_REDUCE || s->op == FILE_COPY;
}

/* Index in sched_file.step of the i-th step that `s` names. */
static inline uint32_t file_after(const struct sched_file *f, const struct file_step *s, uint32_t i)
{
    return f->first[s->rank] + f->after[s->first_after + i];
}

/* Chunks of a rank's buffer; 0: the rank has none. */
uint32_t file_chunks(const struct sched_file *f, unsigned rank, enum file_buf buf);
/*
 * The rank's memory as cells of a chunk each, [0, file_cells()). In place, cells of `in` and `out`
 * are the same where the buffers overlap.
 */
uint32_t file_cells(const struct sched_file *f, unsigned rank);
uint32_t file_cell(const struct sched_file *f, unsigned rank, struct file_ref r, uint32_t k,
                   bool in_place);
const char *file_buf_name(enum file_buf buf);

/* Reads the header and the steps; modifies `text`. */
int file_read(struct sched_file *f, struct build *b, char *text);
/* Joins the two ends of messages and the FIFOs. */
int file_match(struct sched_file *f, struct build *b);
/*
 * Finds an order in which steps can run, each receive directly after its send; order has n_steps
 * entries. If there is none, reports a deadlock.
 */
int file_order(const struct sched_file *f, struct build *b, uint32_t *order);
/* Checks that steps that may run at the same time touch different memory; sets `caused`. */
int file_races(struct sched_file *f, struct build *b, const uint32_t *order, bool in_place);
/* Checks that every rank ends with the collective's result; sets the parts. */
int file_values(struct sched_file *f, struct build *b, const uint32_t *order, bool in_place);
/* All of them return 0; -EINVAL: mistakes are reported; -ENOMEM. */

#endif
