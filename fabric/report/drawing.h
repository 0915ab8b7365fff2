/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the parts of a fabric are in a picture of it: switches in rows by tier, hosts below them,
 * NVSwitches below their GPUs. Where that is too wide, or too many lines, nodes share boxes (fold.h),
 * and links between the same two boxes are one line.
 *
 * Units: pixels at scale 1, y grows downwards.
 */
#ifndef TRIB_FABRIC_REPORT_DRAWING_H
#define TRIB_FABRIC_REPORT_DRAWING_H

#include "fabric/fabric.h"

#define DRAWING_WIDTH 2400 /* pixels that a picture has at most */
#define DRAWING_LINES 300
#define DRAWING_RATES 6u /* of links that are told apart */

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
    unsigned n_rates;
    uint64_t rate[DRAWING_RATES]; /* the highest; what is lower counts as one more */
};
#define DRAWING_BOX_HEIGHT 24.0

/* NULL: no memory. */
struct drawing *drawing_new(const struct fabric *f);
void drawing_free(struct drawing *d);
/* Two boxes of one row are joined by an arc, whose control point is so far below them. */
double drawing_arc(const struct drawing_box *a, const struct drawing_box *b);

#endif
