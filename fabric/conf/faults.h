/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fault plan: what goes wrong in a fabric, and when, from a libconfig file (docs/confs.md).
 * Plain data; who carries it out (sim/world/fault_player.c) knows what each of these means to a running fabric.
 */
#ifndef TRIB_FABRIC_CONF_FAULTS_H
#define TRIB_FABRIC_CONF_FAULTS_H

#include "fabric/fabric.h"

#define FAULT_ALWAYS (-1)     /* at_ps: from the beginning, before the ranks connect */
#define FAULT_ALL    FAB_NONE /* which: every link */
#define FAULT_AS_IS  (-1)     /* of a value: not meant */
#define FAULT_NOBODY (-1)     /* told_ps: the others find out by themselves */

enum fault_of { FAULT_LINK, FAULT_NODE, FAULT_HOST, FAULT_RANK, FAULT_AN };

/* Names and meanings of a link's faults are those of `trib link` and of conf files. */
struct fault_event {
    int64_t at_ps; /* from the start of the first operation */
    enum fault_of of;
    uint16_t which; /* link; index of the node, host or switch; rank */
    /* links, nodes */
    bool down, up;
    /* links; FAULT_AS_IS */
    bool clear;
    double loss, dup, reorder, corrupt;
    int64_t jitter_ps, seed;
    /* switches: for so long down, then without memory of what was; FAULT_AS_IS */
    int64_t restart_ps;
    /* hosts: the NIC takes and gives frames so many times slower than its links; 0: as it is */
    uint32_t slow;
    /* hosts and ranks */
    bool die;
    int64_t told_ps; /* the other ranks hear of it so much later (a launcher's job) */
    /* aggregation nodes: buffers that grants may promise in all; FAULT_AS_IS */
    int64_t mbufs;
};

struct fault_plan {
    unsigned n;
    struct fault_event *e; /* in order of time, then of the file */
};

/* One that means nothing yet. */
struct fault_event fault_event(enum fault_of of, uint16_t which, int64_t at_ps);
/* Appends; 0 or -ENOMEM. */
int fault_plan_add(struct fault_plan *p, const struct fault_event *e);
void fault_plan_sort(struct fault_plan *p);
/* Checked against the fabric; nranks: how many there will be. 0, or -EINVAL with all mistakes in
 * errs. The plan is the caller's to free. */
int fault_plan_load(struct fault_plan *p, const char *path, const struct fabric *f, unsigned nranks,
                    struct fab_errors *errs);
int fault_plan_load_string(struct fault_plan *p, const char *text, const char *path,
                           const struct fabric *f, unsigned nranks, struct fab_errors *errs);
void fault_plan_free(struct fault_plan *p);
/* As a file that fault_plan_load() takes. */
void fault_plan_print(const struct fault_plan *p, const struct fabric *f, FILE *out);
/* One line: "leaf0-spine0 down". */
void fault_event_text(const struct fault_event *e, const struct fabric *f, char *buf, size_t size);

#endif
