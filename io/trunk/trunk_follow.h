/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The difference between another machine's CLOCK_MONOTONIC and ours, from exchanges of messages. All
 * times are parameters.
 *
 * An exchange has four times: the other end sent at a_ns (its clock), we received at b_ns (ours), we
 * had sent at c_ns (ours), and it had received at d_ns (its). Of the exchanges of an interval the one
 * with the shortest way counts, since a message that waited for a CPU or in a queue says less. A
 * straight line through the last of these is offset and drift.
 */
#ifndef TRIB_IO_TRUNK_FOLLOW_H
#define TRIB_IO_TRUNK_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#define FOLLOW_INTERVAL_NS 500000000
#define FOLLOW_POINTS      16u

struct follow {
    struct follow_point {
        int64_t at_ns;     /* our clock */
        int64_t offset_ns; /* theirs minus ours */
        int64_t way_ns;    /* there and back, without what the other end took; bounds the error */
    } best, point[FOLLOW_POINTS]; /* of this interval; of those before, a ring */
    unsigned n, next;
    int64_t until_ns; /* end of this interval */
};

struct follow_line {
    int64_t at_ns, offset_ns;
    double drift; /* of the offset, ns per ns */
    int64_t
        unsure_ns; /* the error is no larger until the next interval is over, for steady clocks */
};

/* Takes an exchange. True: an interval is over, and follow_line() says something new. */
bool follow_take(struct follow *f, int64_t a_ns, int64_t b_ns, int64_t c_ns, int64_t d_ns);
/* The line as of now; false: nothing is known yet. */
bool follow_line(const struct follow *f, int64_t now_ns, struct follow_line *out);
int64_t follow_way(const struct follow *f); /* the shortest; 0: not known */
/* Their clock when ours is at_ns. */
int64_t follow_theirs(const struct follow_line *l, int64_t at_ns);
/* Our clock when theirs is at_ns. */
int64_t follow_ours(const struct follow_line *l, int64_t at_ns);

#endif
