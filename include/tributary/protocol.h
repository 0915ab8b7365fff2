/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Aggregation protocols for Tributary.
 *
 * A protocol has two halves. The switch half runs in every switch of the aggregation tree, the rank
 * half in every process of the job. Both are state machines: packets and the time come in, packets
 * go out. Neither reads a clock, sleeps, opens a file or starts a thread, so that the same code runs
 * in real and in virtual time. Tributary is the host of both: it sets jobs up, delivers packets,
 * accounts for memory, slots and work, and runs timers in fabric time.
 *
 * A packet is one RoCE v2 datagram (UD): it may be lost, duplicated and overtaken. It carries a head, which
 * the protocol defines, and data. Neither is converted: all ends have the same byte order.
 *
 * A protocol is one `const struct trib_protocol`. In a shared object it is the exported symbol
 * `trib_protocol`; a conf names the file: reduce = { protocol = "./mine.so"; }.
 *
 * Threads: one thread at a time calls a half's functions. Halves share nothing but packets; whatever
 * differs between instances is in `self`, never in static variables.
 *
 * Errors: functions that return int return 0 or a negative errno.
 */
#ifndef TRIBUTARY_PROTOCOL_H
#define TRIBUTARY_PROTOCOL_H

#include <tributary/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. A protocol that was built with another one is refused by name. */
#define TRIB_PROTOCOL_VERSION 2

#define TRIB_KEYS         8  /* most keys of a protocol; names: 1 to 31 letters, digits, _ and - */
#define TRIB_COUNTERS     16 /* most counters of a half; names as of keys */
#define TRIB_RANKS        4096 /* most ranks of a job */
#define TRIB_MAX_CHILDREN 128  /* most children of a switch in a job */
#define TRIB_HEAD         64u  /* most bytes of a packet's head */
#define TRIB_NEVER        INT64_MAX

/* A received packet, valid until the function returns. */
struct trib_packet {
    const void *head; /* aligned to 8 bytes */
    const void *data; /* aligned to 4 bytes */
    uint32_t head_bytes, data_bytes;
    int from;    /* switch half: TRIB_CHILD(c), TRIB_PARENT, or TRIB_RANK(r) of a rank that is not
                    below this switch. Rank half: TRIB_RANK(r), TRIB_SWITCH */
    bool marked; /* congestion experienced (ECN) */
};

/* Where a packet comes from, or goes. */
#define TRIB_RANK(r)         (r)            /* to the rank itself, past the switch halves */
#define TRIB_SWITCH_OF(r)    (0x1000 | (r)) /* to the first switch of the tree above rank r */
#define TRIB_CHILD(c)        (0x2000 | (c)) /* of a switch: a rank, or a switch below */
#define TRIB_SWITCH          0x3000         /* of a rank: the first switch of the tree above it */
#define TRIB_PARENT          0x3001         /* of a switch: the switch above */
#define TRIB_CHILDREN        0x3002         /* of a switch: all of them, a copy each */
#define TRIB_INDEX(where)    ((where)&0xfff)
#define TRIB_IS(where, kind) (((where) & ~0xfff) == ((kind) & ~0xfff))

/* ---- the switch half ---- */

struct trib_switch;
struct trib_array;

/* A job at a switch. It exists from the moment when all members below the switch have joined. */
struct trib_job {
    uint32_t nranks;     /* of the whole job, not only below */
    uint32_t n_children; /* children here: index 0 .. n_children - 1, in order of their ranks */
    uint32_t n_below;    /* ranks below this switch */
    bool root;           /* the switch has no parent in this job */
    uint32_t index;      /* number among the switch's jobs: the least that was free, below 4096 */
    /* As in struct trib_rank, and the same at all ranks and switches of a job: whatever both ends
     * derive from them (the size of a pool) agrees. */
    uint64_t rate_bps;
    int64_t round_trip_ps;
    void *self;        /* the protocol's */
    int64_t notice_ps; /* as in struct trib_rank */
};

/* The host's services. All times are fabric time in picoseconds. */
struct trib_switch_api {
    /*
     * Allocates n slots of `bytes` each, zeroed, for this job, or for the switch (job NULL). The host frees
     * them when the job, or the switch, ends. Call it only in open() and job_open(). NULL: the memory that
     * protocols may use at this switch (conf: reduce.memory) is exhausted.
     */
    struct trib_array *(*array)(struct trib_switch *s, struct trib_job *job, const char *name,
                                uint32_t n, uint32_t bytes);
    /* Returns slot i. An index out of range ends the job by name, and returns a scratch slot. */
    void *(*at)(struct trib_switch *s, struct trib_array *a, uint32_t i);
    /* Account for slots in use: a job takes one and gives it back. A slot that a job has not given back at
     * its end is reported as a leak. Taking a slot that is taken, or giving one that the job has not taken,
     * ends the job by name. */
    void (*take)(struct trib_switch *s, struct trib_job *job, struct trib_array *a, uint32_t i);
    void (*give)(struct trib_switch *s, struct trib_job *job, struct trib_array *a, uint32_t i);
    /*
     * Sends a packet to TRIB_CHILD(c), TRIB_CHILDREN, TRIB_PARENT, or TRIB_RANK(r) of a rank below
     * this switch. head and data are copied. A packet that finds no buffer is lost and counted.
     */
    void (*send)(struct trib_switch *s, struct trib_job *job, int to, const void *head,
                 uint32_t head_bytes, const void *data, uint32_t data_bytes);
    /* Forwards the packet that is being handled to the rank that its sender named as target
     * (trib_rank_api.send_through), with another head and data if they are not NULL. May be called
     * several times for one packet. */
    void (*forward)(struct trib_switch *s, struct trib_job *job, const void *head,
                    uint32_t head_bytes, const void *data, uint32_t data_bytes);
    /* dst = dst op src for n elements, by the rules of docs/numerics.md; counts as work. A type that the
     * reduction does not support ends the job by name. */
    void (*reduce)(struct trib_switch *s, void *dst, const void *src, uint32_t n,
                   enum trib_type type, enum trib_sum op);
    /* Declares other work on the packet that is being handled: bytes of slots that were read or written,
     * and operations on elements. Exceeding the protocol's own limits ends the job by name. */
    void (*work)(struct trib_switch *s, uint32_t bytes, uint32_t ops);
    /* Calls timer() at this time. A switch has one timer: the last call counts. TRIB_NEVER: none. */
    void (*timer)(struct trib_switch *s, int64_t at_ps);
    int64_t (*now)(const struct trib_switch *s);
    /* Adds to a counter of trib_switch_half.counters. */
    void (*count)(struct trib_switch *s, unsigned counter, uint64_t n);
    /* Ends the job for all its ranks; why: a reason for people. */
    void (*abort)(struct trib_switch *s, struct trib_job *job, const char *why);
};

struct trib_switch {
    const struct trib_switch_api *api;
    void *self;         /* the protocol's */
    const int64_t *key; /* values of its keys, in order of trib_protocol.keys */
    uint32_t payload;   /* most bytes of a packet's head and data together */
};

struct trib_switch_half {
    const char *const *counters;          /* names, NULL ends them; NULL: none */
    uint32_t max_bytes, max_ops;          /* most work that one packet may cause */
    int (*open)(struct trib_switch *s);   /* at the first job; may be NULL */
    void (*close)(struct trib_switch *s); /* when the switch ends or restarts; may be NULL */
    /* -ENOSPC and the like refuse the job. */
    int (*job_open)(struct trib_switch *s, struct trib_job *job);
    /* The job has ended, or a member is lost. Gives the job's slots back. */
    void (*job_close)(struct trib_switch *s, struct trib_job *job);
    void (*packet)(struct trib_switch *s, struct trib_job *job, const struct trib_packet *p);
    void (*timer)(struct trib_switch *s); /* may be NULL */
};

/* ---- the rank half ---- */

struct trib_rank;

/* An all-reduce. */
struct trib_op {
    uint64_t number;  /* counts the communicator's operations by this protocol, from 0 */
    const void *send; /* count elements; the same as recv, or not overlapping it */
    void *recv;
    uint64_t count; /* at least 1 */
    enum trib_type type;
    enum trib_sum op;
};

struct trib_rank_api {
    /*
     * Sends a packet to TRIB_SWITCH, TRIB_RANK(r) (not itself) or TRIB_SWITCH_OF(r). head and data are
     * copied. False: no send buffer is free, nothing was sent; room() is called when one is free.
     */
    bool (*send)(struct trib_rank *r, int to, const void *head, uint32_t head_bytes,
                 const void *data, uint32_t data_bytes);
    /* Sends to this rank's switch, and names the rank to which the switch may forward the packet. */
    bool (*send_through)(struct trib_rank *r, unsigned target, const void *head,
                         uint32_t head_bytes, const void *data, uint32_t data_bytes);
    /* The operation has ended at this rank: recv holds the result. May be called inside start(). The next
     * operation may start once the function that called this has returned. */
    void (*done)(struct trib_rank *r);
    /* The operation cannot end: fails the job, with a reason for people. In open() and start(): says why
     * they return an error. */
    void (*fail)(struct trib_rank *r, const char *why);
    /* dst = dst op src, as at the switch. */
    void (*reduce)(struct trib_rank *r, void *dst, const void *src, uint64_t n, enum trib_type type,
                   enum trib_sum op);
    /* Calls timer() at this time. A rank has one timer: the last call counts. TRIB_NEVER: none. */
    void (*timer)(struct trib_rank *r, int64_t at_ps);
    int64_t (*now)(const struct trib_rank *r);
    void (*count)(struct trib_rank *r, unsigned counter, uint64_t n);
};

struct trib_rank {
    const struct trib_rank_api *api;
    void *self;
    const int64_t *key;
    uint32_t rank, nranks;
    /* The first switch above each rank, named by the lowest rank below it. The array is the job's. */
    const uint16_t *switch_of;
    uint32_t job;          /* number of the job on the fabric */
    uint32_t payload;      /* most bytes of a packet's head and data together */
    uint32_t window;       /* most packets in flight to this rank at once: its receive buffers */
    uint64_t rate_bps;     /* of this rank's link */
    int64_t round_trip_ps; /* of a full packet to the tree's root and back, without load */
    /* Rates of links between switches, to estimate how long answers may take under load. tree_bps: as in
     * struct trib_model. share_bps: the least that a switch has to other switches for each rank below it. 0: none. */
    uint64_t tree_bps, share_bps;
    /* The longest time from the arrival of a full packet at a rank until packet() is called, by the conf's
     * `costs` (GPUs): an answer takes round_trip_ps plus this. */
    int64_t notice_ps;
};

struct trib_rank_half {
    const char *const *counters;
    int (*open)(struct trib_rank *r); /* all ranks are connected; it allocates its own memory */
    void (*close)(struct trib_rank *r);
    /* Begins an operation. All ranks begin the same operations in the same order; packets of an operation
     * that others have begun may come earlier. -ENOTSUP and the like fail the communicator. */
    int (*start)(struct trib_rank *r, const struct trib_op *op);
    /* Is called between operations, too: others may still need something from this rank. */
    void (*packet)(struct trib_rank *r, const struct trib_packet *p);
    void (*room)(struct trib_rank *r);
    void (*timer)(struct trib_rank *r); /* may be NULL */
};

/* ---- the protocol ---- */

/* An integer key in the conf's group `reduce`. */
struct trib_key {
    const char *name, *about;
    int64_t usual, least, most;
};

/*
 * An exchange with servers (tributary/server.h): all ranks send blocks of one packet each, block q to rank
 * q mod servers, and the server sends a result to every rank. Without aggregators a server sends the result
 * to each rank, first to the rank after its own; rank r begins with block r of each round, and sends block
 * q + window when it has the result of q. With aggregators a rank sends in order and through its first
 * switch, the switch adds the parts of its ranks as ATP's does, and results come by multicast.
 */
struct trib_exchange {
    uint64_t blocks, first;     /* how many; the number of the first */
    uint32_t servers;           /* the first so many ranks */
    uint32_t window;            /* blocks of a rank in flight, a multiple of servers */
    uint32_t bytes, last_bytes; /* of a block's head and data; of the last one's */
    uint32_t aggregators;       /* of a first switch; 0: parts go to servers past the switches */
};

/* What a prediction follows from. */
struct trib_model {
    const int64_t *key;
    uint32_t nranks;
    uint64_t count; /* elements of the all-reduce */
    enum trib_type type;
    uint32_t payload;      /* as in struct trib_rank */
    uint32_t overhead;     /* bytes that a packet occupies on a link beyond its head and data */
    uint64_t rate_bps;     /* of the slowest link of a rank */
    unsigned ranks_a_link; /* ranks that share it */
    unsigned levels;       /* switches from a rank to the root, the root included */
    unsigned leaves;       /* switches that are the first of a rank */
    uint32_t window;       /* as in struct trib_rank */
    /* Time of a packet with so many bytes of head and data, without load: from a rank to the root of
     * the tree, and from there to a rank; from one rank to another (the longest way). */
    int64_t (*up_ps)(const struct trib_model *m, uint32_t bytes);
    int64_t (*down_ps)(const struct trib_model *m, uint32_t bytes);
    int64_t (*across_ps)(const struct trib_model *m, uint32_t bytes);
    /* Each rank sends a packet to each of the first so many ranks, and gets one from each of them if
     * `back`: how many of them the busiest link carries, in times of a packet on a rank's link that
     * it does not share. one: the time of one packet on that link, likewise; NULL: not asked. */
    double (*busiest)(const struct trib_model *m, unsigned servers, bool back, double *one);
    uint64_t tree_bps; /* of the slowest link between switches of the tree, shared by the edges of
                        * the tree that cross it; 0: a switch is all there is of it */
    /* The first switch of ranks sends so many packets to each of the first so many ranks below other
     * switches, and gets one from each of them: what the busiest link between switches carries, in
     * times of a packet on a rank's link that it does not share. */
    double (*between)(const struct trib_model *m, unsigned servers, double packets);
    int64_t message_ps; /* that a rank's HCA takes to fetch a packet that it is to send */
    /* Time of an exchange, packet by packet over the queues of all links, notice_ps included. 0: it has
     * too many packets, or a way is not known. NULL: nobody walks. */
    int64_t (*exchange)(const struct trib_model *m, const struct trib_exchange *x);
    /* As in struct trib_rank. What it adds once to an operation is added to what the formula says, unless
     * that has asked for an exchange: of the last result and, where ranks are servers, of the parts
     * before it. What it adds to a window's round trips is the formula's. */
    int64_t notice_ps;
    /* Time between packets of so many bytes of head and data that a rank notices, at the least: `ll` and
     * `ll128` of the conf's `costs` pass them at a rate. 0: they are noticed as they come. */
    int64_t (*notice_every_ps)(const struct trib_model *m, uint32_t bytes);
};

struct trib_protocol {
    uint32_t version;            /* TRIB_PROTOCOL_VERSION */
    const char *name;            /* of --algo: 1 to 15 characters a-z, 0-9, - */
    const char *about;           /* a line for people */
    const struct trib_key *keys; /* name NULL ends them; NULL: none */
    bool (*supports)(enum trib_type type, enum trib_sum op);
    const struct trib_switch_half *sw; /* NULL: the ranks do it alone */
    const struct trib_rank_half *rank;
    /* Predicted time of the all-reduce, in ps: from the start of all ranks to the end of the last.
     * NULL: no prediction. */
    int64_t (*model)(const struct trib_model *m);
    /* By how many per cent of that, at most, runs without loss are known to differ; rows of more than
     * 5 say so. NULL: it is not known. */
    unsigned (*within)(const struct trib_model *m);
    /* The largest error of an element, where no input is beyond max_abs. NULL: results are exact. */
    double (*bound)(const int64_t *key, enum trib_type type, enum trib_sum op, uint32_t nranks,
                    double max_abs);
};

#ifdef __cplusplus
}
#endif
#endif
