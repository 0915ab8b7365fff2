/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host of a protocol's switch half: one protocol at one switch, with its jobs. It provides struct
 * trib_switch_api, accounts for memory, slots and work, and passes on what the protocol sends. It
 * has no I/O and no clock: its input is packets and the time, its output is packets and the next
 * deadline.
 *
 * An error of the protocol dooms the job, with the reason in proto_job_why(). The caller checks
 * after every call, and closes doomed jobs.
 */
#ifndef TRIB_PROTOCOLS_HOST_SWITCH_HOST_H
#define TRIB_PROTOCOLS_HOST_SWITCH_HOST_H

#include "protocols/host/registry.h"

#define PROTO_JOBS    64u /* most jobs of a protocol at a switch */
#define PROTO_ARRAYS  16u
#define PROTO_FORWARD 0x3003 /* emit(): to the target that the packet names */

struct proto_switch;
struct proto_job;

struct proto_switch_cfg {
    const struct trib_protocol *protocol;
    const int64_t *key; /* [TRIB_KEYS], outlives it */
    uint32_t payload;
    size_t memory; /* most bytes of its arrays */
    /* Sends a packet of the job; job: as in proto_job_cfg.ctx; to: TRIB_CHILD(c), TRIB_CHILDREN,
     * TRIB_PARENT, TRIB_RANK(r), PROTO_FORWARD. Lengths are checked. */
    void (*emit)(void *ctx, void *job, int to, const void *head, uint32_t head_bytes,
                 const void *data, uint32_t data_bytes);
    void *ctx;
};

struct proto_job_cfg {
    uint32_t nranks, n_children, n_below;
    bool root;
    uint64_t rate_bps;
    int64_t round_trip_ps, notice_ps;
    void *ctx;
};

/* Counters since the creation, for telemetry. */
struct proto_switch_counters {
    uint64_t jobs, refused, packets, sent, forwarded, work_bytes, work_ops;
    uint64_t memory, memory_peak;       /* bytes of arrays */
    uint64_t slots, slots_peak, leaked; /* slots in use; slots not given back at the end of a job */
    uint64_t of_protocol[TRIB_COUNTERS];
};

/* 0, -ENOMEM, or what open() returns; err (PROTO_TEXT bytes) says why. */
int proto_switch_create(struct proto_switch **s, const struct proto_switch_cfg *cfg, char *err);
void proto_switch_destroy(struct proto_switch *s); /* its jobs are closed */
const struct proto_switch_counters *proto_switch_counters(const struct proto_switch *s);
bool proto_switch_busy(const struct proto_switch *s); /* has jobs */

/* 0; or the job is refused: -ENOSPC, or what job_open() returns. */
int proto_job_open(struct proto_switch *s, const struct proto_job_cfg *cfg, int64_t now_ps,
                   struct proto_job **job, char *err);
/* leak (PROTO_TEXT bytes): names slots that the job did not give back; "": none. */
void proto_job_close(struct proto_switch *s, struct proto_job *job, int64_t now_ps, char *leak);
const char *proto_job_why(const struct proto_job *job); /* NULL: it is not doomed */
void *proto_job_ctx(const struct proto_job *job);

/* head and data: as in struct trib_packet. */
void proto_switch_packet(struct proto_switch *s, struct proto_job *job, const struct trib_packet *p,
                         int64_t now_ps);
void proto_switch_tick(struct proto_switch *s, int64_t now_ps);
int64_t proto_switch_next(const struct proto_switch *s);
/* The next doomed job; NULL: none. */
struct proto_job *proto_switch_doomed(const struct proto_switch *s);

#endif
