/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The page that all processes of a fabric share: the clock, the doorbells, the lag histograms, the
 * logs of late loops, and which links are down or cut.
 */
#ifndef TRIB_IO_SHARED_H
#define TRIB_IO_SHARED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SHARED_MAGIC    0x74726962u
#define SHARED_VERSION  7
#define BELLS           32768 /* loops that can sleep: trib-switch lcores from 0, then host slots */
#define BELL_HOST0      128
#define LAGS            2048 /* histograms: of trib-switch lcores, then of host ports */
#define LAG_BUCKETS     512
#define LATENESS_SLICES 64
#define SHARED_LINKS    49152

/*
 * Fabric time = fabric_base + (CLOCK_MONOTONIC - mono_base) / dilation. A change of dilation
 * (seqlock) is continuous in fabric time.
 */
struct clock_page {
    _Atomic uint32_t seq;
    uint32_t dilation;
    int64_t mono_base_ns, fabric_base_ps;
};

/*
 * A doorbell, on which one loop sleeps. The sender rings after its burst only when the sleeper's
 * flag is set, so that a busy receiver costs no system call. rung_ns: when the oldest unserved
 * frame was announced (lateness of the hand-off). forward: distance, in bells, to the one to ring
 * instead, where one process runs the nodes of several; the loop sets it. also: distance to a
 * second bell whose sleepers serve this one too, the pollers of a process with several ports; 0:
 * none. wants_room: the process of a slot has more frames than may wait at its NIC, which rings
 * when it has taken one.
 */
struct bell {
    _Atomic uint32_t seq;
    _Atomic uint32_t sleeping;
    _Atomic int64_t rung_ns;
    _Atomic int32_t forward, also;
    _Atomic uint32_t wants_room;
    char pad[36];
};
_Static_assert(sizeof(struct bell) == 64, "one cache line each");

/* Log-linear histogram of lateness in ns: 16 sub-buckets per power of two, 0 .. 2^32 ns. */
struct lag_hist {
    _Atomic uint64_t n[LAG_BUCKETS];
};

/* Log of a loop's lateness (lateness.c). Written by the loop. */
struct lateness_log {
    _Atomic int64_t due_ns; /* the loop sleeps until then; 0: it does not sleep */
    char pad[56];
    _Atomic uint64_t slice[LATENESS_SLICES];
};

struct fabric;
struct fab_node;

struct shared {
    uint32_t magic, version;
    struct clock_page clock;
    struct bell bell[BELLS];
    struct lag_hist lag[LAGS];
    struct lateness_log late[BELLS];
    _Atomic uint8_t link_down[SHARED_LINKS]; /* by index of the link; `trib link` */
    /* Links between processes of which one has died. A change increments cuts. */
    _Atomic uint8_t cut[SHARED_LINKS];
    _Atomic uint32_t cuts;
};

unsigned bell_of_proc(unsigned proc);
/* The bell of the process in a slot of a host's port; each port of a host has its own loops. BELLS
 * - 1 if the fabric has too many (bell_room). */
unsigned bell_of_slot(const struct fabric *f, const struct fab_node *host, unsigned port,
                      unsigned slot);
/* The histogram of a host port's processes. */
unsigned lag_of_port(const struct fab_node *host, unsigned port);
/* Number of addresses whose process slots have bells of their own. */
unsigned bell_room(const struct fabric *f);

/* clock.c */
int64_t clock_fabric_ps(const struct shared *sh);
int64_t clock_fabric_at(const struct shared *sh, int64_t mono_ns);
int64_t clock_mono_ns(void);
uint32_t clock_dilation(const struct shared *sh);
void clock_set_dilation(struct shared *sh, uint32_t dilation);
int64_t clock_wall_ns_until(const struct shared *sh, int64_t fabric_ps); /* <= 0: due */
/*
 * Sets the scheduling policy of the calling thread. With a dilation, the lateness of hand-offs
 * counts: a thread that is woken preempts the running one. At line speed, throughput counts: the
 * running thread continues until it waits (SCHED_BATCH), so that bursts are long. A policy set by
 * the user stays.
 */
void clock_set_policy(uint32_t dilation);

/* bell.c */
void bell_ring(struct bell *b);        /* called after a burst of frames was made visible */
uint32_t bell_prepare(struct bell *b); /* announce sleep; then poll once more */
void bell_sleep(struct bell *b, uint32_t token,
                int64_t timeout_ns);      /* until rung or timeout; <= 0 returns at once */
void bell_cancel(struct bell *b);         /* found work after all */
int64_t bell_served(struct bell *b);      /* lateness in ns of the hand-off, -1: there was none */
bool bell_unserved(const struct bell *b); /* frames were announced and not received yet */

/*
 * Waiters yield-poll while hand-offs arrive within BUSY_POLL_NS of each other, because a sleep and
 * a wake-up cost more than that on either side. Returns the deadline of polling after a hand-off
 * now, the previous one being at last_ns; 0: they are further apart, so the waiter sleeps.
 */
#define BUSY_POLL_NS 100000
/*
 * After this many yields a waiter sleeps if the loop that it rang last has not run: that loop may
 * wait for this very CPU. Linux yields within an autogroup (a session) or cgroup only; for a thread
 * of another one, a loop of yields is a spin.
 */
#define FUTILE_YIELDS 16
static inline int64_t busy_poll_deadline(int64_t last_ns, int64_t now_ns)
{
    return now_ns - last_ns < BUSY_POLL_NS ? now_ns + BUSY_POLL_NS : 0;
}

/* lateness.c */
#define LATENESS_BOUND_NS 200000 /* latest hand-off of a machine that keeps up */
void lateness_record(struct lateness_log *g, int64_t from_ns, int64_t until_ns);
/*
 * How much of the last window_ps of fabric time some loop was late on the path to the process that
 * has queue pair qpn at ip, and back: the loop of bell `own` (BELLS: none), of a switch process, or
 * of that process. At most window_ps.
 */
int64_t lateness_on_path(const struct shared *sh, const struct fabric *f, unsigned own, uint32_t ip,
                         uint32_t qpn, int64_t window_ps);
/* False if there are ports to the outside, whose lateness is unknown. */
bool lateness_known(const struct fabric *f);
/* The process at that bell has ended: it no longer counts as late. */
void lateness_forget(struct shared *sh, unsigned bell);

/* lag.c */
void lag_record(struct lag_hist *h, int64_t ns, unsigned n);
void lag_snapshot(const struct shared *sh, struct lag_hist *sum); /* adds up all writers */
int64_t lag_quantile(const struct lag_hist *before, const struct lag_hist *after,
                     double q); /* ns; 0 when empty */

#endif
