/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A group at one switch as its operator sees it: of an aggregation tree, of multimem, or a job of an
 * aggregation protocol. There is one view for each of its children at the switch.
 */
#ifndef TRIB_AGGREGATION_GROUP_VIEW_H
#define TRIB_AGGREGATION_GROUP_VIEW_H

#include <stdbool.h>
#include <stdint.h>

/* Kinds. A protocol's is GROUP_VIEW_PROTOCOL + its seat. */
enum { GROUP_VIEW_TREE, GROUP_VIEW_MULTIMEM, GROUP_VIEW_PROTOCOL };

struct group_view {
    unsigned kind;
    uint16_t tree;
    uint32_t id;
    uint64_t key;      /* the group's secret: never show it; show group_view_job() */
    bool open, busy;   /* everything is granted; an operation is under way */
    uint16_t founder;  /* host whose process joined first here; FAB_NONE: a switch did */
    uint32_t slots;    /* granted */
    uint32_t used;     /* granted slots that wait for a child */
    uint64_t reduced;  /* slots reduced so far */
    int64_t born_ps;   /* time of its first JOIN */
    uint16_t children; /* how many */

    uint16_t node, member; /* this child: a host and its member, or a switch */
    bool is_member, joined, left;
};

typedef void group_view_fn(void *ctx, const struct group_view *v);

/* A job's number, from which nobody can find the key: the first 32 bits of the key's SHA-256. */
uint32_t group_view_job(uint64_t key);

#endif
