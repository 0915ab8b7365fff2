/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures the difference between another machine's CLOCK_MONOTONIC and ours by exchanges of
 * messages, as NTP does. All times are parameters.
 *
 * An exchange has four times: the other end sent at a_ns (its clock), we received at b_ns (ours), we
 * had sent at c_ns (ours), and it had received at d_ns (its). Only the exchange with the shortest
 * round trip of each interval counts: it waited least for CPUs and in queues. Offset and drift are a
 * straight line fitted to these.
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
        int64_t way_ns;    /* round trip without the other end's own time; bounds the error */
    } best, point[FOLLOW_POINTS]; /* best: of this interval; point: of past ones, a ring */
    unsigned n, next;
    int64_t until_ns; /* end of this interval */
};

struct follow_line {
    int64_t at_ns, offset_ns;
    double drift;      /* of the offset, ns per ns */
    int64_t unsure_ns; /* bound of the error until the next interval ends, for steady clocks */
};

/* Takes an exchange. True: an interval has ended, so follow_line() has a new point. */
bool follow_take(struct follow *f, int64_t a_ns, int64_t b_ns, int64_t c_ns, int64_t d_ns);
/* The line at now_ns; false: no interval has ended yet. */
bool follow_line(const struct follow *f, int64_t now_ns, struct follow_line *out);
int64_t follow_way(const struct follow *f); /* the shortest round trip; 0: not known */
/* Their clock when ours is at_ns. */
int64_t follow_theirs(const struct follow_line *l, int64_t at_ns);
/* Our clock when theirs is at_ns. */
int64_t follow_ours(const struct follow_line *l, int64_t at_ns);

#endif
