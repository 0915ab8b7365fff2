/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TRIB_PROTOCOLS_CHECK_CHECK_FABRIC_PRIV_H
#define TRIB_PROTOCOLS_CHECK_CHECK_FABRIC_PRIV_H

#include "protocols/check/check_fabric.h"
#include "protocols/check/queue.h"
#include "protocols/host/rank_host.h"
#include "protocols/host/switch_host.h"

#define ROOT     0u /* switches: the root, then the leafs; the only one of a fabric of one level */
#define SWITCHES (1 + CASE_LEAFS)

enum event {
    E_PACKET,      /* data: it */
    E_SWITCH_TICK, /* a: switch */
    E_RANK_TICK,   /* a: job, b: rank */
    E_ROOM,        /* of a rank: a packet has left it */
    E_JOB,         /* a: job, which begins */
    E_START,       /* of a rank: its next operation */
    E_DEATH,       /* of a rank */
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
    int from, target;   /* as in struct trib_packet; of send_through(), else -1 */
    uint32_t head_bytes, data_bytes;
    uint8_t bytes[]; /* head, data */
};

/* A job at a switch. */
struct at {
    unsigned job, sw;
    struct proto_job *pj; /* NULL: not here */
    unsigned n_children, n_below;
    struct check_child {
        bool is_rank;
        unsigned node;
    } child[CASE_RANKS];
    int parent; /* switch; -1: none */
    int child_of_parent;
    int of_rank[CASE_RANKS]; /* its index as a child; -1: it is none */
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

/* The first failure counts. */
__attribute__((format(printf, 2, 3))) void fabric_fail(struct check_fabric *f, const char *fmt,
                                                       ...);
/* What a protocol says is no failure where others send anything, or where its keys are any. */
bool fabric_tolerates(const struct check_fabric *f, const char *why);
static inline unsigned fabric_leaf(const struct check_fabric *f, unsigned job, unsigned rank)
{
    return f->c->n_leafs > 1 ? 1 + f->c->job[job].leaf[rank] : ROOT;
}

/* ---- links (links.c) ---- */

/* Which packet forward() sends on; NULL: none is being handled. */
void links_handle(const struct packet *p);
/* emit() of a switch's host, send() of a rank's. */
void links_emit(void *ctx, void *job, int to, const void *head, uint32_t head_bytes,
                const void *data, uint32_t data_bytes);
bool links_send(void *ctx, int to, int target, const void *head, uint32_t head_bytes,
                const void *data, uint32_t data_bytes);
/* Sometimes a packet that somebody has changed comes beside a real one. */
void links_forge(struct check_fabric *f, const struct packet *p);

/* ---- jobs (jobs.c) ---- */

void check_job_begin(struct check_fabric *f, unsigned job);
void check_job_start_op(struct check_fabric *f, unsigned job, unsigned rank);
void check_job_end(struct check_fabric *f, unsigned job);
/* After every call of a half: failures, the end of an operation, timers. */
void check_job_after_rank(struct check_fabric *f, unsigned job, unsigned rank);
void check_job_after_switch(struct check_fabric *f, unsigned sw);

#endif
