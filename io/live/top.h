/* SPDX-License-Identifier: BSD-3-Clause */
/* What trib top shows: the lines of a frame (top_lines.c), on a terminal (top_screen.c). */
#ifndef TRIB_IO_TOP_H
#define TRIB_IO_TOP_H

#include "io/live/live.h"

#define TOP_WIDTH 256 /* longest line */

enum top_panel { TOP_LINKS, TOP_GROUPS, TOP_PROCESSES, TOP_PANELS };
enum top_sort { TOP_BY_USED, TOP_BY_QUEUE, TOP_BY_PAUSES, TOP_BY_DROPS, TOP_BY_NAME, TOP_SORTS };
enum top_look { TOP_PLAIN, TOP_TITLE, TOP_HEADS, TOP_GOOD, TOP_WARNING, TOP_BAD };

struct top {
    struct live live;
    enum top_panel panel;
    enum top_sort sort;
    double seconds;  /* wall time between looks */
    unsigned fabric; /* index in live's fabrics */
    unsigned scroll; /* index of the first row shown */
    bool paused, help;
};

struct top_line {
    enum top_look look;
    char text[TOP_WIDTH];
};

const char *top_panel_name(unsigned panel);
const char *top_sort_name(unsigned sort);
/*
 * Writes the lines of a screen of `width` columns and at most `height` lines, for the last look of
 * t->live. Returns their number, at least 1. Keeps t->scroll below the number of rows.
 */
unsigned top_lines(struct top *t, unsigned width, unsigned height, struct top_line *lines);
/* Runs until q, SIGINT or SIGTERM. 0, or -errno with a message on stderr; -ENOSYS: built without
 * ncurses. */
int top_screen(struct top *t);

#endif
