/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Building blocks of algorithms; for this folder and sched.c.
 *
 * An algorithm appends the steps of its rank in an order in which they could run sequentially. The
 * dependencies follow from the bytes that steps read and write (alg.c): a reader waits for the last
 * writer, a writer for the last writer and all readers since. Steps of different lanes that share
 * no bytes run concurrently.
 *
 * All ranks append in one and the same order of the whole (time step by time step, piece by piece),
 * and both ends of a message cut it alike (alg_cut()). So a schedule cannot deadlock: the first
 * unfinished step in that order can always run.
 */
#ifndef TRIB_COLLECTIVE_ALG_H
#define TRIB_COLLECTIVE_ALG_H

#include "collective/sched.h"

struct tracker;

#define ALG_FENCES 384u

struct alg {
    struct sched *s;
    struct tracker *t;
    unsigned n_fence;
    struct dep fence[ALG_FENCES]; /* dependencies of every step appended */
};

typedef int (*alg_fn)(struct alg *a);

/* Sets the sizes of the buffers of s, except tmp_bytes; 0 or -ENOMEM. */
int alg_begin(struct alg *a, struct sched *s);
void alg_end(struct alg *a);
/* Sets the size of BUF_TMP; call it once, before BUF_TMP is used. */
void alg_tmp(struct alg *a, uint64_t bytes);

static inline struct ref alg_ref(enum step_buf buf, uint64_t off)
{
    return (struct ref){.buf = buf, .off = off};
}

static inline struct ref alg_plus(struct ref r, uint64_t off)
{
    r.off += off;
    return r;
}

/* Both ends leave out messages of zero bytes. */
void alg_send(struct alg *a, unsigned peer, unsigned chan, struct ref src, uint64_t len);
/* As alg_send(), after dependency `after`; count 0: at once. */
void alg_send_after(struct alg *a, unsigned peer, unsigned chan, struct ref src, uint64_t len,
                    struct dep after);
void alg_recv(struct alg *a, unsigned peer, unsigned chan, struct ref dst, uint64_t len);
/* As alg_recv(), for a message that the sender computes from data that earlier steps sent from
 * these bytes. It cannot arrive before those steps are done, so the receive is posted at once. */
void alg_recv_caused(struct alg *a, unsigned peer, unsigned chan, struct ref dst, uint64_t len);
/* dst = message op other. */
void alg_recv_reduce(struct alg *a, unsigned peer, unsigned chan, struct ref dst, struct ref other,
                     uint64_t len, bool last);
void alg_copy(struct alg *a, struct ref dst, struct ref src, uint64_t len, bool last);
void alg_reduce(struct alg *a, unsigned chan, struct ref dst, struct ref x, struct ref y,
                uint64_t len, bool last);
/* Appends any other step, and finds its dependencies. */
struct dep alg_put(struct alg *a, enum lane_kind kind, unsigned peer, unsigned chan,
                   struct step *st);
/* A message of zero bytes each way: sends after `after`, returns the end of the receive. */
struct dep alg_signal(struct alg *a, unsigned peer, const struct dep *after, unsigned n_after);
struct dep alg_wait_signal(struct alg *a, unsigned peer);
/* Joins n dependencies into one. */
struct dep alg_join(struct alg *a, const struct dep *d, unsigned n);
/* A dependency on all steps of a lane so far. */
struct dep alg_so_far(struct alg *a, enum lane_kind kind, unsigned peer, unsigned chan);

/* ---- cutting ---- */

/* Channels with their rates, as weights. */
struct stripes {
    unsigned n;
    uint64_t weight[SCHED_MAX_CHANS];
    uint32_t slice[SCHED_MAX_CHANS]; /* set by mm_planes(): bytes of a load or store */
};
void alg_stripes(const struct alg *a, unsigned from, unsigned to, struct stripes *p);

/* Length of a slice: about an n-th of `bytes`, in whole packets, at most SCHED_SLICE_MAX. */
uint64_t alg_slice(const struct alg *a, uint64_t bytes, unsigned n);
#define ALG_SLICES                                                                                 \
    8u /* of a chunk: then a step costs little more than its bytes or the latency                  \
        */

/*
 * Iterates over slices of `len` bytes, striped over channels in turn, each channel's stripe cut
 * into `parts`:
 *     for (cut = alg_cut(a, p, len, parts); alg_next(&cut);) ... cut.chan, cut.off, cut.len
 */
struct cut {
    unsigned n, chan;
    uint64_t off, len, k; /* k: index of the slice in its channel */
    uint64_t count[SCHED_MAX_CHANS], start[SCHED_MAX_CHANS], end[SCHED_MAX_CHANS],
        slice[SCHED_MAX_CHANS];
};
struct cut alg_cut(const struct alg *a, const struct stripes *p, uint64_t len, unsigned parts);
bool alg_next(struct cut *c);

/* Sends or receives a whole message over all channels to the peer. */
void alg_send_all(struct alg *a, unsigned peer, struct ref src, uint64_t len);
/* As alg_send_all(), after most of a long message to `before` has left, so that the two do not
 * share the port. */
void alg_send_all_behind(struct alg *a, unsigned before, unsigned peer, struct ref src,
                         uint64_t len);
void alg_recv_all(struct alg *a, unsigned peer, struct ref dst, uint64_t len, bool caused);
void alg_recv_reduce_all(struct alg *a, unsigned peer, struct ref dst, struct ref other,
                         uint64_t len, bool last);

/* ---- teams of ranks ---- */
struct team {
    unsigned n, me;
    const uint16_t *rank; /* [n] */
    struct stripes ring;  /* stripes of the ring's widest edge */
    unsigned slices;      /* slices of a block's stripe on the ring */
    bool steps; /* a ring's step begins on a channel once the last one has ended there; not set if
                   other phases run at the same time */
};

/*
 * Makes edges of different width cut a block alike: into as many stripes as the widest edge has
 * channels; a channel of a narrower edge carries several stripes. A step lasts as long as the
 * slowest edge needs for a block. Each channel of that edge has ALG_SLICES slices, and the other
 * edges' slices take no longer; more messages would not be faster.
 */
struct alg_edges {
    struct stripes wide, slow;
};
void alg_edges_add(const struct alg *a, struct alg_edges *e, unsigned from, unsigned to);
unsigned alg_edges_slices(const struct alg_edges *e); /* of a stripe */

/* The teams of a rank: all ranks, its GPU node and its rail. GPU nodes have equal sizes. */
struct nodes {
    unsigned n, local; /* number of nodes; ranks per node */
    struct team all;   /* ranks in their order */
    struct team node;  /* of this rank's node */
    struct team rail;  /* ranks with the same local rank, in order of nodes */
    uint16_t *at;      /* [n][local] ranks by node and local rank */
    uint16_t *mem;
};
int alg_everybody(struct alg *a, struct nodes *g);
/* Fills g. -ENOTSUP unless there are several nodes of equal size, with at least two ranks each. */
int alg_nodes(struct alg *a, struct nodes *g);
void alg_nodes_free(struct nodes *g);
/* Sets the stripes and slices of the team's ring, in order of rank[]. */
void alg_ring_of(const struct alg *a, struct team *t);

/* Layout of a team's blocks: n nearly equal parts of `total` bytes, in whole elements; or, if
 * `each` is set, blocks of `each` bytes, block k at index at[k] (at NULL: k), of which only the
 * first `part` bytes are used (0: all). */
struct blocks {
    uint64_t total, each, part;
    unsigned n;
    const uint16_t *at;
};
void alg_block(const struct alg *a, const struct blocks *b, unsigned k, uint64_t *off,
               uint64_t *len);

/* ---- rings, of which other algorithms consist (ring.c) ---- */

/*
 * Reduce-scatter in a ring over every member's blocks at `in`. Partial sums, and finally the sum of
 * block (me + shift + 1) % n, are written to `work` with layout `wb` (all may equal `in`); the
 * final one to *final if given.
 */
void ring_reduce_scatter(struct alg *a, const struct team *t, const struct blocks *b, struct ref in,
                         const struct blocks *wb, struct ref work, const struct ref *final,
                         unsigned shift, bool last);
/* All-gather in a ring: block (me + shift) % n at `at`, or *own, goes to all others' `at`. caused:
 * see alg_recv_caused(). */
void ring_allgather(struct alg *a, const struct team *t, const struct blocks *b, struct ref at,
                    const struct ref *own, unsigned shift, bool caused);
/* A rank's two edges in a ring: to the next rank, and from the previous one. */
struct ring_edge {
    const struct team *t;
    unsigned left, right, n_left, n_right; /* ranks, and channels to them */
    unsigned slices; /* of a block's stripe: t->slices, or 1 if steps have costs */
    bool steps;
};
void ring_edge(const struct alg *a, const struct team *t, struct ring_edge *e);
void ring_send(struct alg *a, const struct ring_edge *e, struct ref src, uint64_t len);
void ring_recv(struct alg *a, const struct ring_edge *e, struct ref dst, uint64_t len, bool caused);
void ring_recv_reduce(struct alg *a, const struct ring_edge *e, struct ref dst, struct ref other,
                      uint64_t len, bool last);

/* Single steps, for rings that run at the same time: a rank appends step i of each ring before step
 * i + 1. */
struct ring_scatter {
    const struct blocks *b, *wb;
    struct ref in, work;
    const struct ref *final;
    unsigned shift;
    bool last;
};
void ring_scatter_step(struct alg *a, const struct ring_edge *e, unsigned i,
                       const struct ring_scatter *s);
struct ring_gather {
    const struct blocks *b;
    struct ref at;
    const struct ref *own;
    unsigned shift;
    bool caused;
};
void ring_gather_step(struct alg *a, const struct ring_edge *e, unsigned i,
                      const struct ring_gather *g);
/* Reduce-scatter of one part of every rank's block: [off, off + len) of each, with RING_PART_BUF *
 * len bytes of BUF_TMP from tmp on. */
#define RING_PART_BUF 4u /* steps that keep partial sums until their sends are acknowledged */
struct ring_part {
    uint64_t off, len, tmp;
};
void ring_part_step(struct alg *a, const struct ring_edge *e, unsigned i,
                    const struct ring_part *p);
/* Number of parts in which blocks of `each` bytes go round, the first one being the longest. */
uint64_t ring_rounds(const struct team *t, uint64_t each);
/* Lets the following steps go in slices right behind the present ones, even if steps have costs. */
void ring_no_pause(struct ring_edge *e);

/* ---- in the switches of the scale-out network (sharp.c) ---- */
/* One operation, shared among the group's trees. */
void agg_vector(struct alg *a, unsigned group, unsigned coll, unsigned root, struct ref src,
                struct ref dst, uint64_t len, bool last);

/* ---- within a node by its switches (nvls.c) ---- */
/* Gets the team's planes. -ENOTSUP: the team is not one domain, or its switches lack multimem. */
int mm_planes(const struct alg *a, const struct team *t, struct stripes *p);
/* Barrier of the team: later steps wait until every member has done all its steps so far. */
void mm_barrier(struct alg *a, const struct team *t, const struct stripes *p);
/*
 * Loads the sum of [from, from + load) of the members' BUF_IN to own BUF_OUT at `to`, with the
 * others' sums in BUF_TMP from tmp on, and stores `store` bytes of src to the members' BUF_OUT at
 * store_to. The two alternate, because they use different directions of the links.
 */
struct mm_work {
    uint64_t from, to, load, tmp;
    bool last;
    struct ref src;
    uint64_t store_to, store;
};
void mm_load_store(struct alg *a, const struct stripes *p, const struct mm_work *w);

/* ---- the algorithms ---- */
int alg_ring_allreduce(struct alg *a);
int alg_ring_allgather(struct alg *a);
int alg_ring_reduce_scatter(struct alg *a);
int alg_rings_allreduce(struct alg *a);
int alg_rings_allgather(struct alg *a);
int alg_rings_reduce_scatter(struct alg *a);
int alg_chain_reduce(struct alg *a);
int alg_chain_broadcast(struct alg *a);
int alg_tree_allreduce(struct alg *a);
int alg_tree_reduce(struct alg *a);
int alg_tree_broadcast(struct alg *a);
int alg_halving_allreduce(struct alg *a);
int alg_halving_allgather(struct alg *a);
int alg_halving_reduce_scatter(struct alg *a);
int alg_direct_allreduce(struct alg *a);
int alg_direct_allgather(struct alg *a);
int alg_direct_reduce_scatter(struct alg *a);
int alg_alltoall(struct alg *a);
int alg_pxn_alltoall(struct alg *a);
int alg_gather(struct alg *a);
int alg_scatter(struct alg *a);
int alg_sendrecv(struct alg *a);
int alg_barrier(struct alg *a);
int alg_sharp_allreduce(struct alg *a);
int alg_sharp_reduce(struct alg *a);
int alg_sharp_broadcast(struct alg *a);
int alg_sharp_allgather(struct alg *a);
int alg_sharp_reduce_scatter(struct alg *a);
int alg_sharp_barrier(struct alg *a);
int alg_nvls_allreduce(struct alg *a);
int alg_nvls_allgather(struct alg *a);
int alg_nvls_reduce_scatter(struct alg *a);
int alg_hier_allreduce(struct alg *a);
int alg_hier_broadcast(struct alg *a);
int alg_hier_allgather(struct alg *a);
int alg_hier_sharp_allgather(struct alg *a);
int alg_hier_reduce_scatter(struct alg *a);
int alg_nvls_sharp_allreduce(struct alg *a);
int alg_protocol_allreduce(struct alg *a);
int alg_sched_file(struct alg *a); /* sched_in.file */

#endif
