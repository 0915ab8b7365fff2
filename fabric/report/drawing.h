/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layout of a picture of a fabric: switches in rows by tier, hosts below them, NVSwitches below their GPUs.
 * If that is too wide, or has too many lines, nodes share boxes (fold.h), and links between the same two
 * boxes are one line.
 *
 * Units: pixels at scale 1, y grows downwards.
 */
#ifndef TRIB_FABRIC_REPORT_DRAWING_H
#define TRIB_FABRIC_REPORT_DRAWING_H

#include "fabric/fabric.h"

#define DRAWING_WIDTH 2400 /* largest width of a picture in pixels */
#define DRAWING_LINES 300
#define DRAWING_RATES 6u /* rates of links that are drawn differently */

struct drawing_box {
    char label[2 * FAB_NAME + 32];
    fab_id node; /* the first node in it */
    fab_id hosts, nvswitches, others;
    fab_id domains; /* number of GPU nodes */
    uint8_t row;
    double x, y, width; /* x: its middle; y: its top */
};

struct drawing_line {
    fab_id a, b; /* boxes, a < b */
    fab_id link; /* the first link in it */
    uint32_t links;
    uint64_t rate_bps; /* sum in each direction */
};

struct drawing {
    double width, height;
    unsigned n_boxes, n_lines;
    struct drawing_box *box;
    struct drawing_line *line; /* sorted by a, then b */
    fab_id *box_of;            /* [f->n_nodes] */
    unsigned n_rates;
    uint64_t rate[DRAWING_RATES]; /* the highest rates; all lower ones count as one more */
};
#define DRAWING_BOX_HEIGHT 24.0

/* NULL: no memory. */
struct drawing *drawing_new(const struct fabric *f);
void drawing_free(struct drawing *d);
/* How far below them the control point of an arc is that joins two boxes of one row. */
double drawing_arc(const struct drawing_box *a, const struct drawing_box *b);

#endif
