/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A schedule: one rank's steps in one collective, with their dependencies. Pure: computed from
 * arguments and topology only, without memory, verbs or clock, so that it can be executed (exec.c),
 * interpreted (tests) and predicted (model/).
 *
 * Steps are in lanes. A lane is a FIFO: its steps start and end in order, like those of its
 * transport (a queue pair, a CPU). A step may start once each of its dependencies (lane, number of
 * finished steps) holds. So one number per lane tells which steps are done.
 *
 * The messages of rank a's lane (SEND, peer b, chan c) are, one by one and in order, those of rank
 * b's lane (RECV, peer a, chan c), with the same lengths. An algorithm must make both sides so.
 */
#ifndef TRIB_COLLECTIVE_SCHED_H
#define TRIB_COLLECTIVE_SCHED_H

#include "collective/kinds.h"

/*
 * Longest message. A RECV lane has SCHED_SLOTS slots of so many bytes, or more where the fabric's
 * costs ask for it (sched_topo.slots): a message received to BUF_SLOT stays there until the step
 * that reads it is done. Slots of a lane are read in order, each by exactly one REDUCE or COPY
 * step; message n lies in slot n % slots, and the step that receives it depends on the one that
 * read the slot before.
 */
#define SCHED_SLOTS     64u
#define SCHED_SLOTS_MAX 128u
#define SCHED_SLICE_MAX 65536u
#define SCHED_MAX_BYTES (1ULL << 40) /* limit: bytes of an operation's buffer */
#define SCHED_DEPS      6u
#define SCHED_MAX_STEPS (1u << 26) /* of a schedule; -E2BIG beyond */

enum lane_kind {
    LANE_CPU,  /* REDUCE, COPY. Several may run concurrently: chan tells them apart */
    LANE_SEND, /* to peer, over channel chan (fabric_channels()) */
    LANE_RECV, /* from peer, over channel chan */
    LANE_AGG,  /* to and from the aggregation node; chan: which of the trees; peer 0: the group of
                  all ranks, 1: that of the ranks with this one's local rank (its rail) */
    LANE_MM,   /* multimem of NVSwitch plane chan */
    LANE_PROTOCOL, /* by the aggregation protocol in seat chan, on the tree `peer` of its job's */
    LANE_KINDS
};

enum { GROUP_ALL, GROUP_RAIL }; /* peer of an AGG lane */

enum step_op {
    STEP_SEND,   /* a, len bytes (0: a message of no bytes) */
    STEP_RECV,   /* to dst (BUF_SLOT: stays in the lane's slot, or in the memory a, which no step
                     uses until the step that reads the slot is done, where a is not BUF_NONE) */
    STEP_REDUCE, /* dst = a op b; with last and OP_AVG divided by nranks */
    STEP_COPY,   /* dst = a; with last and OP_AVG divided too. len 0 and no buffers: a place where
                     more dependencies meet than one step has room for */
    STEP_AGG, /* sends a up unless it is BUF_NONE, gets the result to dst unless that is BUF_NONE;
                     agg: the collective; with last and OP_AVG divided */
    STEP_MM_LOAD,  /* dst = sum over the members' buffers `region` at offset off; with last and
                     OP_AVG divided. Members: the ranks of this rank's domain */
    STEP_MM_STORE, /* a to all members' buffers `region` at offset off */
    STEP_PROTOCOL  /* dst = all ranks' a reduced; with last and OP_AVG divided */
};
enum step_buf {
    BUF_NONE,
    BUF_IN,
    BUF_OUT,
    BUF_TMP,
    BUF_SLOT,
    BUF_STAGE /* host memory, of schedules for GPU memory alone (stage.h) */
};

/* Bytes of a buffer. BUF_SLOT: off is the number of the message in RECV lane `lane`, from 0. A
 * long schedule has tens of thousands of steps a rank, so all of this is small. */
struct ref {
    enum step_buf buf : 3;
    unsigned lane : 20; /* below SCHED_MAX_LANES */
    uint64_t off : 41;  /* up to SCHED_MAX_BYTES */
};
#define SCHED_MAX_LANES (1u << 20)

/* `count` steps of `lane` are done. */
struct dep {
    uint32_t lane, count;
};

struct step {
    enum step_op op : 8;
    bool last : 1;    /* gives final elements */
    bool self : 1;    /* MM: the window that has the caller's own memory too (F27); else all but it
                         (F26) */
    bool awaited : 1; /* the executor's: some step depends on it */
    /*
     * AGG: ALLREDUCE, BARRIER, REDUCE to `root` or BROADCAST from `root` (a rank): every member has
     * the same AGG steps on a lane in the same order, with the same root, off, len and total; a
     * rank that sends nothing leaves a BUF_NONE, one that gets nothing leaves dst so. `off` is
     * within `total` bytes of an operation of the aggregation protocol, whose steps follow each
     * other without gap (off 0, ... to total). Reduce-scatter is a REDUCE of each rank's block in
     * turn, all-gather a BROADCAST of each rank's block in turn: blocks of one collective may
     * follow each other at once.
     */
    uint8_t agg;              /* enum agg_coll */
    enum step_buf region : 8; /* MM: BUF_IN, BUF_OUT or BUF_TMP of the members */
    uint8_t n_deps;
    uint16_t root;
    union {
        uint64_t total; /* AGG */
        struct {
            uint32_t lane, step;
        } copy; /* hint on a REDUCE of a staged schedule (stage.h): the copy that it may replace */
    };
    struct ref dst, a, b;
    uint64_t len, off;
    struct dep dep[SCHED_DEPS]; /* in a lane there is room for as many as its steps have */
};

struct lane {
    enum lane_kind kind;
    unsigned peer, chan;
    uint32_t n, room, next;
    uint32_t deps;  /* that its steps have at most */
    uint8_t *steps; /* lane_step() */
};
static inline size_t lane_stride(const struct lane *l)
{
    return offsetof(struct step, dep) + l->deps * sizeof(struct dep);
}
/* Step i; of its dep[] only n_deps are there. */
static inline struct step *lane_step(const struct lane *l, uint64_t i)
{
    return (struct step *)(void *)(l->steps + i * lane_stride(l));
}
#define SCHED_BUCKETS 256u

/* Trees that share a vector, and what each of them can carry: a share is in proportion to it, and a
 * tree of rate 0 carries nothing. All 0: in equal shares. */
struct sched_trees {
    unsigned n;
    uint64_t bps[COLL_TREES];
};

/* The fabric as algorithms see it. */
struct sched_topo {
    /* Of each rank: its GPU node as 0, 1, ... in order of appearance; all 0..nranks-1 different
     * where there are none. */
    const uint16_t *domain;
    /* Rates of the channels from rank a to rank b, in order. Returns how many (at most max), the
     * same for b to a. NULL: one channel between any two. */
    unsigned (*channels)(void *ctx, unsigned a, unsigned b, uint64_t *rate_bps, unsigned max);
    void *ctx;
    unsigned trees; /* aggregation trees that the group of all ranks has joined */
    /* What each of them can carry; a vector is split so. All 0: in equal shares. */
    uint64_t tree_bps[COLL_TREES];
    unsigned rail_trees;                      /* that the rails' groups have joined, each */
    struct sched_trees protocol[PROTO_SEATS]; /* of each protocol's job; n 0: one */
    bool multimem;                            /* the planes of domains offer it */
    unsigned slots;                           /* of a RECV lane, a power of two; 0: SCHED_SLOTS */
    int64_t plane_ps;                         /* latency of the links to them, the longest */
    bool steps; /* a step has costs of its own: rings cut it as little as possible */
};
#define SCHED_MAX_CHANS 24u

struct sched_in {
    enum coll_kind kind;
    enum coll_algo algo;
    unsigned rank, nranks, root;
    uint64_t count; /* as in NCCL, see kinds.h */
    enum dtype type;
    enum redop op;
    bool in_place;
    uint32_t mtu;    /* path MTU: slices and messages are cut in whole packets */
    unsigned sparse; /* alltoall: rank r has blocks for r, r + 1, ... so many; 0: all */
    bool mm_self;    /* NVLS: a GPU's own share crosses the switch too (F27); else not (F26) */
    const struct sched_topo *topo; /* NULL: no domains, one channel, no trees */
    const struct sched_file *file; /* of ALGO_SCHEDULE */
};

struct sched {
    struct sched_in in;
    unsigned esize;
    uint64_t in_bytes, out_bytes, tmp_bytes, stage_bytes; /* of the buffers that steps refer to */
    unsigned n_lanes, room;
    struct lane *lane;
    uint32_t n_steps;
    uint32_t bucket[SCHED_BUCKETS]; /* lanes by their names: index + 1, then lane.next */
    int rc;                         /* the first error while building; 0: none */
};

static inline unsigned sched_slots(const struct sched_topo *t)
{
    return t && t->slots ? t->slots : SCHED_SLOTS;
}

/* 0, -EINVAL, -E2BIG (over SCHED_MAX_BYTES), -ENOTSUP (no such algorithm for the collective or on
 * this topology), -ENOMEM. After 0 sched_free() is the caller's. */
int sched_init(struct sched *s, const struct sched_in *in);
void sched_free(struct sched *s);
/* Whether the step may start when done[] steps of each lane are done. */
bool sched_ready(const struct step *st, const uint64_t *done);
const char *sched_algo_name(enum coll_algo a); /* "?": of an empty seat, or none */
/* Approximate bytes that a rank sends in a step: a block, or the blocks of all if it sends to all
 * at once. */
uint64_t sched_step_bytes(const struct sched *s);
/* Is the algorithm one of the collective's, whatever the topology? Not ALGO_SCHEDULE, which depends
 * on the file. */
bool sched_has(enum coll_kind kind, enum coll_algo a);

/*
 * What is left of an operation all of whose AGG lanes have failed (repair.c). Of lane (AGG,
 * chan k) the first cut[k].least messages are done at every rank, the first cut[k].most at rank
 * `from`. `was` is the operation's schedule, of which the others have the like. bare: this rank has
 * finished and its user has the buffers back; what it gives lies in BUF_TMP, message m of tree k at
 * sched_repair_tmp(): of an ALLREDUCE the result, of a REDUCE its contribution, of a BROADCAST the
 * root's elements.
 */
struct sched_cut {
    uint64_t least, most;
    unsigned from;
};
struct sched_repair {
    bool bare;
    struct sched_cut cut[COLL_TREES];
};
int sched_repair(struct sched *s, const struct sched *was, const struct sched_repair *how);
uint64_t sched_repair_tmp(const struct sched *was, const struct sched_repair *how, unsigned tree,
                          uint64_t msg);

/* ---- for algorithms (most of them use alg.h, which finds dependencies itself) ---- */

/* Finds a lane; false: there is none. */
bool sched_has_lane(const struct sched *s, enum lane_kind kind, unsigned peer, unsigned chan,
                    unsigned *lane);
/* The lane, made when it is not there yet. */
unsigned sched_lane(struct sched *s, enum lane_kind kind, unsigned peer, unsigned chan);
/* Appends a step to a lane. Returns the dependency on it, for other steps. */
struct dep sched_add(struct sched *s, unsigned lane, const struct step *st);
/* The step has to wait for d too; d.count 0 is no dependency. Of one lane the later counts. false:
 * no room (SCHED_DEPS). */
bool step_after(struct step *st, struct dep d);
/* The slot of the RECV step that `d` stands for. */
struct ref slot_of(struct dep d);

/* Part k of n of `total` bytes in whole elements: [*off, *off + *len). */
void sched_part(uint64_t total, unsigned esize, uint64_t n, uint64_t k, uint64_t *off,
                uint64_t *len);
/* Like it, in proportion to weight[0..n). */
void sched_share(uint64_t total, unsigned esize, const uint64_t *weight, unsigned n, unsigned k,
                 uint64_t *off, uint64_t *len);

#endif
