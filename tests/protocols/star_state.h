/* SPDX-License-Identifier: BSD-3-Clause */
/* State that star.c (set-up, events, links) and star_host.c (services of the halves) share. */
#ifndef TRIB_TESTS_PROTOCOLS_STAR_STATE_H
#define TRIB_TESTS_PROTOCOLS_STAR_STATE_H

#include "tests/protocols/star.h"

#define JOBS     8
#define LEAVES   32
#define OVERHEAD 60
#define ROOT     LEAVES

struct trib_array {
    uint32_t n, bytes;
    struct trib_job *job;  /* NULL: of the switch */
    struct trib_job **own; /* of a slot that is taken */
    char *mem, *scratch;
    struct trib_array *next;
};

struct link {
    int64_t free_ps;
    uint64_t rate_bps;
};

struct half { /* what both halves have here */
    struct star *star;
    int64_t timer_ps;
    uint64_t counter[TRIB_COUNTERS];
};

struct sw {
    struct trib_switch s;
    struct half h;
    struct trib_array *arrays;
    uint64_t used;
    struct trib_job *jobs[JOBS];
    struct link up, down; /* to the root */
    struct event *now;    /* being handled */
    uint32_t bytes, ops;  /* of its work */
    bool opened, setting_up;
};

struct rank {
    struct trib_rank r;
    struct half h;
    struct link up, down;
    uint32_t queued, coming;
    bool blocked, busy, open;
    struct trib_op op;
};

struct job {
    unsigned nranks, left;
    struct rank *rank;
    uint16_t switch_of[TRIB_RANKS];
    uint64_t number;
    int64_t from_ps, to_ps;
    bool live;
};

enum what { PACKET, SENT, TIMER, START, DEAD };
struct event {
    int64_t at_ps;
    uint64_t order;
    enum what what;
    int job;
    /* PACKET: from a rank (>= 0) or switch (-1 - k); to likewise; where it is now: a switch, or -1. */
    int from, to, at, target;
    bool marked;
    struct sw *sw;     /* TIMER */
    struct rank *rank; /* TIMER, SENT, START */
    uint32_t head_bytes, data_bytes;
    _Alignas(8) char head[TRIB_HEAD];
    char *data;
};

struct star {
    struct star_conf c;
    int64_t now, key[TRIB_KEYS];
    uint64_t rnd, order;
    struct event **heap;
    uint32_t n, room, most;
    struct sw sw[LEAVES + 1];
    struct job job[JOBS];
    char why[256];
    bool broken;
};

extern const struct trib_switch_api star_switch_api;
extern const struct trib_rank_api star_rank_api;

void star_fault(struct star *s, const char *what);
int star_leaf(struct star *s, int job, unsigned rank);
void star_add(struct star *s, struct event e);
struct event *star_next(struct star *s);
/* A packet on its way, at no place yet. */
struct event star_packet(struct star *s, int job, int from, int to, const void *head,
                         uint32_t head_bytes, const void *data, uint32_t data_bytes);
/* Sends it over one link to a switch (or -1: the rank it is for). Takes its data. */
void star_hop(struct star *s, struct event *e, struct link *l, int to);
void star_onward(struct star *s, struct event *e);
unsigned star_ranks_below(struct star *s, int job, int leaf, unsigned *first);

#endif
