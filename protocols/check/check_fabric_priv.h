/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TRIB_PROTOCOLS_CHECK_CHECK_FABRIC_PRIV_H
#define TRIB_PROTOCOLS_CHECK_CHECK_FABRIC_PRIV_H

#include "protocols/check/check_fabric.h"
#include "protocols/check/queue.h"
#include "protocols/host/rank_host.h"
#include "protocols/host/switch_host.h"

#define ROOT     0u /* index of the root switch, which may be the only one; leafs follow */
#define SWITCHES (1 + CASE_LEAFS)

enum event {
    E_PACKET,      /* data: the packet */
    E_SWITCH_TICK, /* a: switch */
    E_RANK_TICK,   /* a: job, b: rank */
    E_ROOM,        /* a packet has left a rank */
    E_JOB,         /* a: job, which begins */
    E_START,       /* a rank begins its next operation */
    E_DEATH,       /* a rank dies */
    E_LOST,        /* a: job, which has lost a rank */
};

/* A link, one way. */
struct wire {
    int64_t free_ps;
};

struct packet {
    bool to_rank, marked, forged;
    unsigned job, node; /* node: switch or rank */
    unsigned source;    /* SOURCE_*, for the trace */
    int from, target;   /* as in struct trib_packet; target of send_through(), else -1 */
    uint32_t head_bytes, data_bytes;
    uint8_t bytes[]; /* head, data */
};

/* A job at a switch. */
struct at {
    unsigned job, sw;
    struct proto_job *pj; /* NULL: the job is not at this switch */
    unsigned n_children, n_below;
    struct check_child {
        bool is_rank;
        unsigned node;
    } child[CASE_RANKS];
    int parent; /* switch; -1: none */
    int child_of_parent;
    int of_rank[CASE_RANKS]; /* child index of each rank; -1: not a child */
};

struct node_rank {
    struct proto_rank *r;
    struct wire up, down;
    uint8_t *send, *recv; /* of the operation */
    unsigned op, buffers; /* buffers in use */
    bool busy, dead, finished;
    int64_t tick_ps; /* E_RANK_TICK that is queued */
};

struct check_fabric;

struct node_switch {
    struct check_fabric *f;
    struct proto_switch *s; /* NULL: no jobs */
    struct wire up, down;   /* between a leaf and the root */
    unsigned jobs;
    int64_t tick_ps;
};

struct fabric_job {
    struct at at[SWITCHES];
    struct node_rank rank[CASE_RANKS];
    struct sender {
        struct check_fabric *f;
        unsigned job, rank;
    } sender[CASE_RANKS];
    uint16_t switch_of[CASE_RANKS];
    bool open, ended;
    unsigned n_finished;
};

struct check_fabric {
    const struct check_case *c;
    const struct trib_protocol *p;
    struct queue q;
    int64_t now;
    uint64_t random, events;
    struct node_switch sw[SWITCHES];
    struct fabric_job job[CASE_JOBS];
    unsigned n_ended;
    FILE *trace;
    volatile uint64_t *progress;
    struct fabric_result *r;
    size_t hash_room;
};

/* Fails the run; the first failure is kept. */
__attribute__((format(printf, 2, 3))) void fabric_fail(struct check_fabric *f, const char *fmt,
                                                       ...);
/* Whether the protocol's error is no failure: with hostile packets or arbitrary keys, errors are
 * allowed. */
bool fabric_tolerates(const struct check_fabric *f, const char *why);
static inline unsigned fabric_leaf(const struct check_fabric *f, unsigned job, unsigned rank)
{
    return f->c->n_leafs > 1 ? 1 + f->c->job[job].leaf[rank] : ROOT;
}

/* ---- links (links.c) ---- */

/* Sets the packet that forward() sends on; NULL: none. */
void links_handle(const struct packet *p);
/* emit() of a switch's host; send() of a rank's host. */
void links_emit(void *ctx, void *job, int to, const void *head, uint32_t head_bytes,
                const void *data, uint32_t data_bytes);
bool links_send(void *ctx, int to, int target, const void *head, uint32_t head_bytes,
                const void *data, uint32_t data_bytes);
/* Sometimes sends a forged variant of a real packet. */
void links_forge(struct check_fabric *f, const struct packet *p);

/* ---- jobs (jobs.c) ---- */

void check_job_begin(struct check_fabric *f, unsigned job);
void check_job_start_op(struct check_fabric *f, unsigned job, unsigned rank);
void check_job_end(struct check_fabric *f, unsigned job);
/* Called after every call of a half: handles failures, ended operations and timers. */
void check_job_after_rank(struct check_fabric *f, unsigned job, unsigned rank);
void check_job_after_switch(struct check_fabric *f, unsigned sw);

#endif
