/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of expected.c: bytes of buffers as images of streams, the ranks' schedules; for
 * host/bench/verify/expected*.c only. */
#ifndef TRIB_HOST_BENCH_VERIFY_EXPECTED_PRIV_H
#define TRIB_HOST_BENCH_VERIFY_EXPECTED_PRIV_H

#include "base/arena.h"
#include "collective/sched.h"
#include "collective/topo.h"
#include "host/bench/verify/expected.h"

/* ---- expected_image.c: contents ---- */

/* Consecutive bytes of streams. v: the values of the samples in it, from the first on; values do
 * not change once they are written, so images share them. */
struct expected_run {
    uint64_t len, from; /* bytes; from: of the first in the stream */
    const uint8_t *v;
};
/* Contents of a message. */
struct image {
    struct expected_run *run;
    unsigned n;
};
/* A buffer: the images that have been put to it, in order of their place. */
struct space {
    struct extent {
        uint64_t off;
        struct expected_run run;
    } * e;
    unsigned n, room;
};

struct expected;

/* All return 0, -ENOMEM or -EINVAL: bytes that nobody has written are read, or different elements
 * are reduced with each other. */
int space_put(struct expected *x, struct space *s, uint64_t off, const struct image *what);
int space_get(struct expected *x, const struct space *s, uint64_t off, uint64_t len,
              struct image *what);
/* Samples before so many bytes of a stream. */
unsigned image_samples(const struct expected *x, uint64_t from);

/* Reduces the values v[0..n) of `count` samples from `first` on. index: number of element 0 of the
 * stream, as the switch counts. */
typedef void (*image_fn)(struct expected *x, const void *ctx, void *out, const void *const *v,
                         unsigned n, size_t count, unsigned first, uint64_t index);
/* off: as the switch counts, of the first byte. */
int image_reduce(struct expected *x, const struct image *in, unsigned n, image_fn fn,
                 const void *ctx, uint64_t off, struct image *out);
int image_divide(struct expected *x, const struct image *in, struct image *out);

/* ---- expected.c: the ranks ---- */

struct expected_lane {
    uint64_t done, sent;
    unsigned waiters, next; /* list of the lanes that wait for this one: index + 1 */
    unsigned peer_lane;
    bool queued, here; /* here: AGG: this rank has begun the step */
    bool waits;        /* the lane is in another lane's list */
    struct image *msg; /* RECV: by message */
};
struct expected_rank {
    struct sched s;
    struct expected_lane *lane;
    struct space user, tmp; /* in place both user buffers are one memory */
    uint64_t in_at, out_at;
};

struct expected_group;
struct expected {
    const struct expected_job *job;
    const struct samples *samples;
    enum redop op; /* of the steps: OP_AVG is a sum */
    bool avg;
    enum dtype type;
    unsigned size;
    struct topo topo;
    struct expected_rank *rank;
    struct expected_group *group; /* all ranks, then the rails */
    unsigned n_groups;
    uint16_t *local; /* [nranks] local ranks within their GPU nodes */
    void *arena;
    struct {
        struct expected_ref {
            unsigned rank, lane;
        } * at;
        uint64_t room, head, n;
    } queue;       /* of lanes that may go on */
    uint64_t left; /* steps still to run */
};

int expected_read(struct expected *x, unsigned rank, const struct ref *r, uint64_t len,
                  struct image *what);
int expected_write(struct expected *x, unsigned rank, const struct ref *r,
                   const struct image *what);
/* The lane's next step is done. */
void expected_done(struct expected *x, unsigned rank, unsigned lane);
void expected_wake(struct expected *x, unsigned rank, unsigned lane);

/* ---- expected_switch.c: steps of switches ---- */

int expected_groups(struct expected *x);
void expected_groups_free(struct expected *x);
/* 1: the step is done for all ranks; 0: other ranks have not begun it. */
int expected_agg(struct expected *x, unsigned rank, unsigned lane, const struct step *st);
int expected_mm(struct expected *x, unsigned rank, unsigned lane, const struct step *st);

#endif
