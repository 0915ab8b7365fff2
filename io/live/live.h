/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fabrics that are up, looked at from outside: what trib status, trib metrics and trib top show.
 * It asks the telemetry of the trib-switch processes and disturbs nothing: no page is mapped, no slot
 * taken, and a process that does not answer is asked again only at every fifth look.
 *
 * live_look() finds the fabrics that are up now and reads each. What changes between two looks is in
 * `now` and `before` of a fabric; before the second look, `before` is the fabric's beginning, at
 * fabric time 0 with all counters 0.
 */
#ifndef TRIB_IO_LIVE_H
#define TRIB_IO_LIVE_H

#include "system/process.h"
#include "machine/rundir.h"
#include "io/telemetry/telemetry_tables.h"

#include <stdbool.h>
#include <time.h>

#define LIVE_FABRICS   16 /* looked at at most */
#define LIVE_LAG       512
#define LIVE_PORT_COLS (PORT_COLUMNS_N + DROP_REASONS)

struct json_t;

/* A direction of a link: what its sender has sent, and what its receiver dropped of that. */
struct live_dir {
    bool known;     /* somebody said so at this look */
    int64_t now_ps; /* when */
    uint64_t v[LIVE_PORT_COLS];
};

struct live_at {
    uint16_t node;
    uint64_t children, joined, slots, slots_used;
};
struct live_member {
    uint16_t node; /* its host */
    uint16_t member;
    bool joined, left;
};
/* A group, of all aggregation nodes that have a part in it. */
struct live_group {
    unsigned kind;
    uint64_t tree, id, job;
    bool open; /* all is granted, and nobody is awaited */
    bool busy;
    uint16_t
        owner;    /* host whose process joined first, else the first member's; FAB_NONE: unknown */
    bool founded; /* the owner is known to have joined first */
    uint64_t reduced, born_us;
    unsigned n_members, n_at;
    struct live_member *member;
    struct live_at *at;
};
struct live_slot {
    uint64_t v[SLOT_COLUMNS_N];
    char program[17]; /* of its process; "": none */
};

struct live_look {
    int64_t now_ps; /* fabric time: the earliest answer's */
    struct live_dir *dir;
    unsigned n_groups, n_slots;
    struct live_group *group;
    struct live_slot *slot;
    uint64_t lag[LIVE_LAG]; /* hand-offs by bucket */
};

enum live_state { LIVE_STARTING, LIVE_SILENT, LIVE_READY };
struct live_proc {
    char name[FAB_NAME];
    int pid, fd; /* 0: it has ended; PROCESS_AWAY: of another PID namespace */
    enum live_state state;
    unsigned patience; /* looks until it is asked again */
};

struct live_fabric {
    struct rundir rd; /* the path alone */
    struct fabric *f;
    struct timespec conf_time;
    unsigned long conf_inode;
    unsigned dilation;
    unsigned n_procs;
    struct live_proc proc[FAB_MAX_PROCS];
    int64_t lag_top[LIVE_LAG]; /* ns; the largest value of each bucket */
    char (*faults)[64];        /* [n_links] "loss=0.1%" */
    unsigned n_kinds;
    char kind[8][32];
    struct live_look now, before;
    bool seen;                           /* at this look */
    struct json_t *totals, *aggregation; /* with LIVE_TOTALS */
};

enum { LIVE_TOTALS = 1 }; /* what else to read */
struct live {
    const char *dir; /* NULL: all fabrics of this user */
    unsigned what;
    unsigned n;
    struct live_fabric *fab[LIVE_FABRICS]; /* by name; those that are up */
};

void live_init(struct live *l, const char *dir, unsigned what);
/* Never fails: what does not answer is not there. */
void live_look(struct live *l);
void live_end(struct live *l);

/* live_read.c: asks every process of the fabric. */
void live_read(struct live_fabric *x, unsigned what);
/* live_procs.c: which processes there are. False: none runs. */
bool live_procs(struct live_fabric *x);
void live_close(struct live_proc *p);
/* "starting", "ready", "silent", "stopped" (by a signal or a debugger), "ended". */
const char *live_proc_state(const struct live_proc *p);

/* live_groups.c: adds a row of /trib/table/groups; frees them. */
void live_group_row(struct live_look *k, const uint64_t *v);
void live_groups_free(struct live_look *k);

/* ---- what a look says ---- */

struct live_ends {
    uint16_t from, from_port, to, to_port;
};
struct live_ends live_ends(const struct fabric *f, unsigned d);
uint64_t live_count(const struct live_fabric *x, unsigned d, unsigned column); /* so far */
uint64_t live_delta(const struct live_fabric *x, unsigned d, unsigned column); /* since before */
int64_t live_window_ps(const struct live_fabric *x, unsigned d); /* fabric time between the looks */
double live_GBps(const struct live_fabric *x, unsigned d);       /* in it, 10^9 bytes a second */
double live_utilisation(const struct live_fabric *x, unsigned d); /* 0..1; < 0: no rate is set */
uint64_t live_drops(const struct live_fabric *x, unsigned d);     /* all reasons, so far */
/* Name i of the reasons and its count; NULL: there are no more. */
const char *live_drop(const struct live_fabric *x, unsigned d, unsigned i, uint64_t *n);
/* Lateness of hand-offs since the last look: their number, and a quantile in ns of wall time. */
uint64_t live_handoffs(const struct live_fabric *x);
int64_t live_lag_ns(const struct live_fabric *x, double q);
double live_late_share(const struct live_fabric *x); /* of hand-offs above LATENESS_BOUND_NS */
const char *live_kind(const struct live_fabric *x, unsigned kind);

/* ---- what is printed of it ---- */

/* "h0" to "leaf0", with ports where there are several links between the two. */
void live_names(const struct fabric *f, unsigned d, char *from, char *to, size_t size);
/* "4.2 MB", "17"; decimal. */
const char *live_size(double n, char *buf, size_t size);
/* "12 queue_full, 3 lost"; "": none. Returns whether all of it fits. */
bool live_drops_text(const struct live_fabric *x, unsigned d, char *buf, size_t size);
/* "up", "down", "loss=0.1%": what a link's state is. */
void live_state_text(const struct live_fabric *x, unsigned d, char *buf, size_t size);
/* One line: name, dilation, time, what the look covers, whether it keeps up. */
void live_headline(const struct live_fabric *x, char *buf, size_t size);

enum { LIVE_LINKS = 1, LIVE_GROUPS = 2 };
struct json_t *live_json(const struct live *l, unsigned parts); /* live_json.c */
void live_text(const struct live *l, unsigned parts);           /* live_text.c, to stdout */

#endif
