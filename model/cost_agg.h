/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of aggregation in the model: cost_agg.c builds them, cost_edge.c runs their messages. */
#ifndef TRIB_MODEL_COST_AGG_H
#define TRIB_MODEL_COST_AGG_H

#include "model/cost_model.h"

/* Position of an edge in the group's messages. It sends their parts one after the other. */
struct model_cursor {
    uint32_t msg, part;
};

/* An aggregation node of the group; parents come after their children. */
struct model_an {
    uint16_t node;
    unsigned parent, depth, n_children;
    uint32_t first_an, first_member,
        sibling;                            /* lists of its children, and the next of its parent's;
                                                 NOBODY ends them */
    struct model_cursor next_up, next_down; /* on the edge to its parent, and from there */
    struct model_path up, down;             /* to the parent and back */
    unsigned crossings;                     /* most hand-offs from a member up to this node */
};

struct model_member {
    unsigned rank, lane, an;
    uint32_t sibling;
    struct model_cursor next_down;
    struct model_path up, down;
};

/* A part of a message at a node: how many children have sent it, and its lengths up and down. */
struct model_slot {
    struct flight f;
    uint32_t up_len, down_len;
    unsigned children;
    bool reduced; /* the data of all children is reduced */
    bool down;    /* the result has arrived from above */
};

enum edge_kind { EDGE_UP, EDGE_DOWN_NODE, EDGE_DOWN_MEMBER };

struct model_group {
    struct model_group *next;
    unsigned group, domain_index, chan, n, n_an, top_handoffs;
    uint32_t window, n_msgs;
    uint32_t parts, part_frames; /* most parts of a message; frames of a part */
    uint32_t *parts_of;          /* [n_msgs] parts of a message */
    struct model_member *member;
    struct model_an *an;     /* the last one is the top */
    struct model_slot *slot; /* [n_msgs][parts][n_an] */
};

static inline struct model_slot *agg_slots_of(const struct model_group *g, uint32_t i,
                                              uint32_t part)
{
    return &g->slot[((size_t)i * g->parts + part) * g->n_an];
}

#endif
