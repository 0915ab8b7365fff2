/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fabrics that are up, seen from outside: the data of trib status, trib metrics and trib top. It asks
 * the telemetry of the trib-switch processes and disturbs nothing: it maps no page and takes no slot,
 * and asks a process that did not answer again only at the fifth look after.
 *
 * live_look() finds the fabrics that are up and reads each. `now` and `before` of a fabric hold the last
 * two looks; before the second look, `before` is the fabric's beginning: fabric time 0, all counters 0.
 */
#ifndef TRIB_IO_LIVE_H
#define TRIB_IO_LIVE_H

#include "system/process.h"
#include "machine/rundir.h"
#include "io/telemetry/telemetry_tables.h"

#include <stdbool.h>
#include <time.h>

#define LIVE_FABRICS   16 /* fabrics of a look at most */
#define LIVE_LAG       512
#define LIVE_PORT_COLS (PORT_COLUMNS_N + DROP_REASONS)

struct json_t;

/* A direction of a link: frames that its sender has sent, and frames that its receiver dropped. */
struct live_dir {
    bool known;     /* a process reported it at this look */
    int64_t now_ps; /* fabric time of that report */
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
/* A group, merged from all its aggregation nodes. */
struct live_group {
    unsigned kind;
    uint64_t tree, id, job;
    bool open; /* all grants are made, and no member is missing */
    bool busy;
    uint16_t
        owner;    /* host of the first process to join, or of the first member; FAB_NONE: unknown */
    bool founded; /* the owner is known to be the first to join */
    uint64_t reduced, born_us;
    unsigned n_members, n_at;
    struct live_member *member;
    struct live_at *at;
};
struct live_slot {
    uint64_t v[SLOT_COLUMNS_N];
    char program[17]; /* name of its process's program; "": none */
};

struct live_look {
    int64_t now_ps; /* fabric time of the earliest answer */
    struct live_dir *dir;
    unsigned n_groups, n_slots;
    struct live_group *group;
    struct live_slot *slot;
    uint64_t lag[LIVE_LAG]; /* number of hand-offs per bucket */
};

enum live_state { LIVE_STARTING, LIVE_SILENT, LIVE_READY };
struct live_proc {
    char name[FAB_NAME];
    int pid, fd; /* pid 0: it has ended; PROCESS_AWAY: in another PID namespace */
    enum live_state state;
    unsigned patience; /* ask it again after so many looks */
};

struct live_fabric {
    struct rundir rd; /* only its path is set */
    struct fabric *f;
    struct timespec conf_time;
    unsigned long conf_inode;
    unsigned dilation;
    unsigned n_procs;
    struct live_proc proc[FAB_MAX_PROCS];
    int64_t lag_top[LIVE_LAG]; /* ns; upper bound of each bucket */
    char (*faults)[64];        /* [n_links] "loss=0.1%" */
    unsigned n_kinds;
    char kind[8][32];
    struct live_look now, before;
    bool seen;                           /* found at this look */
    struct json_t *totals, *aggregation; /* only with LIVE_TOTALS */
};

enum { LIVE_TOTALS = 1 }; /* further data to read */
struct live {
    const char *dir; /* NULL: all fabrics of this user */
    unsigned what;
    unsigned n;
    struct live_fabric *fab[LIVE_FABRICS]; /* fabrics that are up, sorted by name */
};

void live_init(struct live *l, const char *dir, unsigned what);
/* Never fails: leaves out processes that do not answer. */
void live_look(struct live *l);
void live_end(struct live *l);

/* live_read.c: asks every process of the fabric. */
void live_read(struct live_fabric *x, unsigned what);
/* live_procs.c: finds the fabric's processes. False: none runs. */
bool live_procs(struct live_fabric *x);
void live_close(struct live_proc *p);
/* "starting", "ready", "silent", "stopped" (by a signal or a debugger), "ended". */
const char *live_proc_state(const struct live_proc *p);

/* live_groups.c: adds a row of /trib/table/groups; frees all groups. */
void live_group_row(struct live_look *k, const uint64_t *v);
void live_groups_free(struct live_look *k);

/* ---- figures of a look ---- */

struct live_ends {
    uint16_t from, from_port, to, to_port;
};
struct live_ends live_ends(const struct fabric *f, unsigned d);
uint64_t live_count(const struct live_fabric *x, unsigned d, unsigned column); /* so far */
uint64_t live_delta(const struct live_fabric *x, unsigned d, unsigned column); /* since last look */
int64_t live_window_ps(const struct live_fabric *x, unsigned d); /* fabric time between the looks */
double live_GBps(const struct live_fabric *x, unsigned d);       /* 10^9 bytes a second of it */
double live_utilisation(const struct live_fabric *x, unsigned d); /* 0..1; < 0: no rate is set */
uint64_t live_drops(const struct live_fabric *x, unsigned d);     /* all reasons, so far */
/* Name and count of drop reason i; NULL: there are no more. */
const char *live_drop(const struct live_fabric *x, unsigned d, unsigned i, uint64_t *n);
/* Hand-offs since the look before: their number, and a quantile of their lateness in ns of wall time. */
uint64_t live_handoffs(const struct live_fabric *x);
int64_t live_lag_ns(const struct live_fabric *x, double q);
double live_late_share(const struct live_fabric *x); /* later than LATENESS_BOUND_NS */
const char *live_kind(const struct live_fabric *x, unsigned kind);

/* ---- texts ---- */

/* "h0" and "leaf0"; with ports if the two nodes have several links. */
void live_names(const struct fabric *f, unsigned d, char *from, char *to, size_t size);
/* "4.2 MB", "17"; powers of 1000. */
const char *live_size(double n, char *buf, size_t size);
/* "12 queue_full, 3 lost"; "": no drops. Returns whether all of them fit. */
bool live_drops_text(const struct live_fabric *x, unsigned d, char *buf, size_t size);
/* The state of a link: "up", "down", "loss=0.1%". */
void live_state_text(const struct live_fabric *x, unsigned d, char *buf, size_t size);
/* One line: name, dilation, time, interval of the look, fidelity. */
void live_headline(const struct live_fabric *x, char *buf, size_t size);

enum { LIVE_LINKS = 1, LIVE_GROUPS = 2 };
struct json_t *live_json(const struct live *l, unsigned parts); /* live_json.c */
void live_text(const struct live *l, unsigned parts);           /* live_text.c, to stdout */

#endif
