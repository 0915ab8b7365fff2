/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a net_timeline; for sim/report/net_timeline*.c only. */
#ifndef TRIB_SIM_REPORT_NET_TIMELINE_PRIV_H
#define TRIB_SIM_REPORT_NET_TIMELINE_PRIV_H

#include "base/assert.h"
#include "sim/report/net_timeline.h"
#include "switch/net/net_stats.h"
#include "switch/queue/egress.h"

#define FLOWS 24u /* told apart on a direction */

struct frame_flow {
    uint16_t from, to; /* nodes */
    bool background;
    uint64_t bytes; /* with link overhead */
};

struct flows {
    unsigned n;
    uint64_t others; /* bytes of flows beyond them, and of frames that are not RoCE */
    struct frame_flow flow[FLOWS];
};

/* Counts of a direction. */
struct line_counts {
    uint64_t frames, bytes, ecn_marks, pauses, lost, corrupted, overflows, down, discarded;
    int64_t busy_ps, paused_ps;
};

/* A direction of a link: dirlink is its index. */
struct timeline_line {
    uint16_t from, from_port, to, to_port;
    /* the run of frames that has not ended */
    int64_t from_ps, to_ps;
    uint32_t run_frames;
    struct flows run, all;
    int64_t paused_ps, resume_ps; /* since when, until when; resume 0: not paused */
    uint64_t queued, peak;
    bool named;
    struct line_counts base, last; /* when the operation began, at the last sample */
};

struct host_counts {
    uint64_t retransmits, timeouts;
};

struct net_timeline {
    struct net_timeline_cfg cfg;
    struct world *w; /* while it records */
    bool begun;      /* the operation has */
    int64_t next_ps, every_ps;
    struct timeline_line *line;   /* [2 * n_links] */
    uint64_t *slots, *slots_peak; /* [n_nodes] in use at the last sample */
    struct timeline_counts *base; /* [nranks] when the operation began */
    struct host_counts *sent;     /* [nranks] at the last sample */
    unsigned *ranks_of_host;      /* [n_hosts] */
};

/* Ends the run of frames of a direction. */
void net_timeline_end_run(struct net_timeline *n, struct timeline_line *l);
/* Ends its pause at a time. */
void net_timeline_end_pause(struct net_timeline *n, struct timeline_line *l, int64_t ps);
/* Numbers in the file. */
enum { TID_PORT = 1, TID_PAUSE = 10001 };
/* Names the threads of a direction before its first event. */
void net_timeline_name(struct net_timeline *n, struct timeline_line *l);

#endif
