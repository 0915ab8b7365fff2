/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the parts of a fabric are in a picture of it: switches in rows by tier, hosts below them,
 * NVSwitches below their GPUs. In a large fabric the hosts of a GPU node, with its NVSwitches, or
 * of a leaf are one box, and links between the same two boxes one line. In a larger one the GPU
 * nodes that are attached to the same switches alike are one box.
 *
 * Units: pixels at scale 1, y grows downwards.
 */
#ifndef TRIB_FABRIC_REPORT_DRAWING_H
#define TRIB_FABRIC_REPORT_DRAWING_H

#include "fabric/fabric.h"

#define DRAWING_HOSTS   64 /* that have a box each; more are folded */
#define DRAWING_DOMAINS 12 /* GPU nodes that have a box each; more are folded, too */

struct drawing_box {
    char label[2 * FAB_NAME + 32];
    fab_id node; /* the first one in it */
    fab_id hosts, nvswitches, others;
    fab_id domains; /* GPU nodes */
    uint8_t row;
    double x, y, width; /* x: of the middle; y: of the top */
};

struct drawing_line {
    fab_id a, b; /* boxes, a < b */
    fab_id link; /* the first one in it */
    uint32_t links;
    uint64_t rate_bps; /* of all of them, in each direction */
};

struct drawing {
    double width, height;
    unsigned n_boxes, n_lines;
    struct drawing_box *box;
    struct drawing_line *line; /* in order of a, then b */
    fab_id *box_of;            /* [f->n_nodes] */
};
#define DRAWING_BOX_HEIGHT 24.0

/* NULL: no memory. */
struct drawing *drawing_new(const struct fabric *f);
void drawing_free(struct drawing *d);
/* Two boxes of one row are joined by an arc, whose control point is so far below them. */
double drawing_arc(const struct drawing_box *a, const struct drawing_box *b);

#endif
