/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contents and layout of a rank's buffers before and after a collective. Pure arithmetic in
 * elements; `count` as in coll.h. Every rank has a stream of elements of its own, the contents of
 * its send buffer; results are parts of streams, or of their reduction.
 */
#ifndef TRIB_HOST_BENCH_VERIFY_LAYOUT_H
#define TRIB_HOST_BENCH_VERIFY_LAYOUT_H

#include "host/coll/coll.h"

#include <stdbool.h>
#include <stdint.h>

struct layout {
    enum coll_kind kind;
    unsigned rank, nranks, root, sparse;
    uint64_t count;
    bool in_place;
};

#define LAYOUT_ALL     (~0u)      /* the reduction of all streams */
#define LAYOUT_NOTHING (~0u - 1u) /* nothing may be written there */

/* Elements [at, at + n) of the receive buffer are [first, first + n) of a rank's stream. */
struct piece {
    uint64_t at, n, first;
    unsigned source; /* rank, LAYOUT_ALL or LAYOUT_NOTHING */
};

uint64_t layout_send(const struct layout *l); /* elements; 0: the buffer is not used */
uint64_t layout_recv(const struct layout *l); /* elements that are written or must not be */
/* Piece i of the receive buffer; false: there are no more. */
bool layout_piece(const struct layout *l, unsigned i, struct piece *p);
/* In place: offset of the send data in the common buffer. Out of place 0. */
uint64_t layout_send_at(const struct layout *l);
uint64_t layout_recv_at(const struct layout *l);
/* Whether the receive buffer may be NULL: in place, if this rank gets nothing. */
bool layout_no_recv(const struct layout *l);

/* Number of blocks of `count` elements in the size as defined by nccl-tests: the larger of both
 * buffers, unless only roots have it; for a sparse all-to-all the bytes that a rank sends. */
unsigned layout_blocks(enum coll_kind kind, unsigned nranks, unsigned sparse);
#endif
