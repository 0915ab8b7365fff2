/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fault plan: faults of a fabric and their times, from a libconfig file (docs/conf-plans.md). Plain data;
 * sim/world/fault_player.c applies it to a running fabric.
 */
#ifndef TRIB_FABRIC_CONF_FAULTS_H
#define TRIB_FABRIC_CONF_FAULTS_H

#include "fabric/fabric.h"

#define FAULT_ALWAYS (-1)     /* at_ps: from the beginning, before the ranks connect */
#define FAULT_ALL    FAB_NONE /* which: every link */
#define FAULT_AS_IS  (-1)     /* leave the value as it is */
#define FAULT_NOBODY (-1)     /* told_ps: the other ranks are not notified */

enum fault_of { FAULT_LINK, FAULT_NODE, FAULT_HOST, FAULT_RANK, FAULT_AN };

/* Names and meanings of a link's faults are those of `trib link` and of conf files. */
struct fault_event {
    int64_t at_ps; /* from the start of the first operation */
    enum fault_of of;
    unsigned line; /* of its entry in the file; 0: it comes from no file */
    fab_id which;  /* link; index of the node, host or switch; rank */
    /* links, nodes */
    bool down, up;
    /* links; FAULT_AS_IS */
    bool clear;
    double loss, dup, reorder, corrupt;
    int64_t jitter_ps, seed;
    uint64_t rate_bps; /* 0: unchanged */
    int64_t latency_ps;
    /* switches: down for so long, then up without state; FAULT_AS_IS */
    int64_t restart_ps;
    /* hosts: the NIC moves frames so many times slower than its links; 0: unchanged */
    uint32_t slow;
    /* ranks: each operation begins so much later; FAULT_AS_IS */
    int64_t late_ps;
    /* hosts and ranks */
    bool die;
    int64_t told_ps; /* the other ranks are notified so much later (as by a launcher) */
    /* aggregation nodes: total of buffers that grants may promise; FAULT_AS_IS */
    int64_t mbufs;
};

struct fault_plan {
    unsigned n;
    struct fault_event *e; /* in order of time, then of the file */
};

/* An event without effect yet. */
struct fault_event fault_event(enum fault_of of, fab_id which, int64_t at_ps);
/* Appends an event; 0 or -ENOMEM. */
int fault_plan_add(struct fault_plan *p, const struct fault_event *e);
void fault_plan_sort(struct fault_plan *p);
/* Loads a plan and checks it against the fabric and the number of ranks. Returns 0, or -EINVAL with
 * all mistakes in errs. The caller frees the plan. */
int fault_plan_load(struct fault_plan *p, const char *path, const struct fabric *f, unsigned nranks,
                    struct fab_errors *errs);
int fault_plan_load_string(struct fault_plan *p, const char *text, const char *path,
                           const struct fabric *f, unsigned nranks, struct fab_errors *errs);
void fault_plan_free(struct fault_plan *p);
/* Prints a file that fault_plan_load() reads. */
void fault_plan_print(const struct fault_plan *p, const struct fabric *f, FILE *out);
/* One line: "leaf0-spine0 down". */
void fault_event_text(const struct fault_event *e, const struct fabric *f, char *buf, size_t size);

#endif
