/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that processes of a fabric share. Every page has one writer, or two that are the ends of one
 * connection, so that no process of a host can write what another host's reads:
 *
 *   clock page    made by the first trib-switch, written by it alone
 *   switch page   one for each trib-switch, written by it alone: whether its loop sleeps, lateness
 *                 logs, lag, links that are down or cut
 *   loop bell     one for each trib-switch: the futex word on which its loop sleeps. Every process may
 *                 write it: at worst the loop wakes for nothing, or up to SLEEP_MAX_NS (loop.c) late
 *   port page     one for each connection between two processes, made by the client and written by
 *                 both ends: the bell of a host's process, and times at which frames were announced.
 *                 Readers copy its values and check the copies
 *
 * All are memory files sealed against growing and shrinking: whoever could shrink a mapped file could end
 * its readers by SIGBUS, so nothing else that another process can reach is mapped (scripts/one_helper.py).
 * Clock and switch pages are also sealed against writing once their writer has mapped them. A trib-switch
 * passes on its clock page, switch page and loop bell at the socket proc/NAME.page (page_server.h), and
 * port pages over the connection to which they belong.
 */
#ifndef TRIB_MACHINE_SHARED_H
#define TRIB_MACHINE_SHARED_H

#include "fabric/fabric.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SHARED_MAGIC    0x74726962u
#define SHARED_VERSION  11u
#define BELLS           32768 /* loops that can sleep: trib-switch processes, then host slots */
#define BELL_HOST0      128
#define LAG_BUCKETS     512
#define LATENESS_SLICES 64
#define SHARED_LINKS    49152

/*
 * Fabric time = change_ps + (CLOCK_MONOTONIC - change_ns) / dilation after the change of speed, and with
 * `before` instead of `dilation` until then. A change is announced a little ahead, so fabric time is
 * continuous and never runs backwards. The writer fills the state that is not in use, then increments
 * turn: if it dies in between, the clock stays as it was.
 *
 * If several machines run a fabric, one owns its clock and the others' follow it (io/trunk): skew_ppb
 * corrects the difference in speed of the machines' clocks, and unsure_ns bounds the error.
 *
 * The start is written before the first turn, and never again.
 */
struct clock_page {
    uint32_t magic, version;
    int64_t start_ns, start_real_ns; /* CLOCK_MONOTONIC and CLOCK_REALTIME at fabric time 0 */
    _Atomic uint32_t turn;           /* state[turn % 2] is in use */
    _Atomic uint32_t writing;        /* lock between the writer's threads */
    _Atomic int64_t unsure_ns;       /* error bound, wall time; 0: the fabric's only clock */
    struct clock_state {
        int64_t change_ns, change_ps; /* the last change of speed, in wall and fabric time */
        uint32_t before, dilation;
        int32_t before_skew_ppb, skew_ppb; /* fabric time is faster than 1 / dilation by this */
    } state[2];
};

/*
 * A doorbell, on which the threads of one process sleep. The sender rings it after its burst, but only
 * if the sleepers' flag is set, so a busy receiver costs no system call. rung_ns: when the sender
 * announced the oldest unserved frame (for the lateness of the hand-off). served_ns: when the receiver
 * last received frames.
 */
struct bell {
    _Atomic uint32_t seq;
    _Atomic uint32_t sleeping;
    _Atomic int64_t rung_ns, served_ns;
    char pad[40];
};
_Static_assert(sizeof(struct bell) == 64, "one cache line each");

/*
 * The page of one connection. rung_ns: when the client announced the oldest frame that the server has
 * not received. wants_room: the process has more frames than its NIC can queue; the NIC rings when it
 * has taken one. also: slot_name() of a second slot of this host whose sleepers serve this one too, as
 * the pollers of a process with several ports do; 0: none.
 */
struct port_page {
    _Atomic int64_t rung_ns;
    _Atomic uint32_t wants_room, also;
    char pad[48];
    struct bell bell; /* the client's; if that is a switch, only rung_ns is used */
};

/* Log-linear histogram of lateness in ns: 16 sub-buckets per power of two, 0 .. 2^32 ns. */
struct lag_hist {
    _Atomic uint64_t n[LAG_BUCKETS];
};

/* A log of lateness (lateness.c): of a loop, written by it, or of a host's process, written by its NIC. */
struct lateness_log {
    _Atomic int64_t due_ns; /* when the loop is due to run; 0: it is not */
    char pad[56];
    _Atomic uint64_t slice[LATENESS_SLICES];
};

struct loop_bell {
    _Atomic uint32_t seq;
};

struct switch_page {
    uint32_t magic, version;
    uint32_t proc; /* index in the conf */
    char pad[52];
    _Atomic uint32_t sleeps; /* odd: the loop sleeps */
    char pad2[60];
    struct lateness_log loop;
    struct lag_hist lag; /* of hand-offs to its loop and to processes in its slots */
    /* Links between processes, as this one sees them: ns of CLOCK_MONOTONIC of the last change, times
     * two, plus one if the link is cut because the process at the other end is gone. Each change
     * increments cuts. */
    _Atomic uint32_t cuts;
    _Atomic uint64_t cut[SHARED_LINKS];
    _Atomic uint8_t link_down[SHARED_LINKS]; /* by link: set down by `trib link` */
    uint8_t runs[FAB_MAX_NODES];             /* nodes of this process */
    struct lateness_log slot[BELLS];         /* index: bell_of_slot() */
};

/* ---- the pages that a process has mapped ---- */

struct switch_view {
    const struct switch_page *page;
    struct loop_bell *bell;
    uint64_t inode; /* of the page: differs from that of an earlier process of this name */
    char name[FAB_NAME];
    _Atomic bool gone;
};

/* Entries of sw are only appended, so threads may read them while one calls shared_refresh(). */
struct shared {
    const struct clock_page *clock;
    struct clock_page *own_clock; /* NULL: another process is its writer */
    struct switch_page *own;      /* page of this trib-switch */
    struct loop_bell *own_bell;
    _Atomic unsigned n_sw;
    struct switch_view sw[FAB_MAX_PROCS];
};

/* Maps the pages of the trib-switch processes of run directory dir. 0, or -errno with a message on
 * stderr; -ENOENT: none answers. */
int shared_join(struct shared **sh, const char *dir);
/* Asks processes that are not known yet or were forgotten. One thread at a time. */
void shared_refresh(struct shared *sh, const char *dir);
void shared_free(struct shared *sh);
/* Marks a process as ended; shared_refresh() asks it again. */
void shared_forget(struct shared *sh, const struct switch_view *v);
/* The process that runs a node; NULL: none is known. */
const struct switch_view *shared_switch_of(const struct shared *sh, uint16_t node);

/* Makes a memory file of that size, sealed against growing and shrinking, and maps it. On failure NULL,
 * and *fd is -errno. */
void *shared_make(const char *name, size_t size, int *fd);
/* Seals fd against further writable mappings and further seals. 0 or -errno. */
int shared_seal(int fd);
/* Maps a file that another process made; NULL: it lacks the seals, or has another size. */
void *shared_map(int fd, size_t size, bool write);
/* Whether the first `size` bytes of another process's file cannot vanish: it is sealed against
 * shrinking, and is not on huge pages, which may be missing when touched. */
bool shared_is_safe(int fd, size_t size);
/* Maps those bytes, writable; the file may grow behind them. NULL: not safe, or no memory. */
void *shared_map_part(int fd, size_t size);

static inline uint32_t slot_name(unsigned port, unsigned slot)
{
    return (port << 16 | slot) + 1;
}

/* Index of the bell of the process in a slot of a host's port; each port of a host has loops of its own.
 * BELLS - 1 if the fabric has too many (bell_room). */
unsigned bell_of_slot(const struct fabric *f, const struct fab_node *host, unsigned port,
                      unsigned slot);
/* Number of addresses whose process slots can have bells of their own. */
unsigned bell_room(const struct fabric *f);

/* clock.c */
int64_t clock_fabric_ps(const struct shared *sh);
int64_t clock_fabric_at(const struct shared *sh, int64_t mono_ns);
int64_t clock_mono_ns(void);
uint32_t clock_dilation(const struct shared *sh);
void clock_set_dilation(struct clock_page *c, uint32_t dilation);        /* for its writer */
int64_t clock_wall_ns_until(const struct shared *sh, int64_t fabric_ps); /* <= 0: due */
/* For the writer of a clock that follows another: sets the speed from at_ns on, which is some ms ahead;
 * the change before must be over. clock_start_at() starts the clock instead, with line s. */
void clock_start_at(struct clock_page *c, const struct clock_state *s);
void clock_follow(struct clock_page *c, int64_t at_ns, uint32_t dilation, int32_t skew_ppb);
struct clock_state clock_state_of(const struct clock_page *c);
int64_t clock_line_ps(const struct clock_state *s, int64_t mono_ns); /* fabric time on line s */
/*
 * Sets the scheduling policy of the calling thread. With a dilation, the lateness of hand-offs counts: a
 * woken thread preempts the running one. At dilation 1 throughput counts: the running thread continues
 * until it waits (SCHED_BATCH), which makes bursts long. Keeps a policy that the user has set.
 */
void clock_set_policy(uint32_t dilation);

/* bell.c */
void bell_wake(struct bell *b);        /* rings without frames */
uint32_t bell_prepare(struct bell *b); /* announces sleep; poll once more after it */
void bell_sleep(struct bell *b, uint32_t token,
                int64_t timeout_ns);      /* until rung or the timeout; <= 0: returns at once */
void bell_cancel(struct bell *b);         /* instead of sleeping, after finding work */
int64_t bell_served(struct bell *b);      /* lateness of the hand-off in ns; -1: there was none */
bool bell_unserved(const struct bell *b); /* announced frames are not received yet */

/* A loop bell. Its only sleeper is the thread that writes `page`. *rung belongs to the caller: number of
 * the last sleep for which it has rung. */
void loop_bell_ring(const struct switch_page *page, struct loop_bell *b, _Atomic uint32_t *rung);
uint32_t loop_bell_prepare(struct switch_page *page, const struct loop_bell *b);
void loop_bell_sleep(struct switch_page *page, struct loop_bell *b, uint32_t token,
                     int64_t timeout_ns);
void loop_bell_cancel(struct switch_page *page);
/* Announces frames: stamps *rung_ns, unless an earlier stamp is still unserved. */
void bell_stamp(_Atomic int64_t *rung_ns);
/* Takes the stamp at the other end. Returns the time since then, at most max_ns; -1: none was set. */
int64_t bell_take_stamp(_Atomic int64_t *rung_ns, int64_t now_ns, int64_t max_ns);

/*
 * Waiters yield and poll while hand-offs arrive within BUSY_POLL_NS of each other, because a sleep and a
 * wake-up cost both sides more than that. Returns until when to poll after a hand-off now, the previous
 * one being at last_ns; 0: they are further apart, so the waiter sleeps.
 */
#define BUSY_POLL_NS 100000
/*
 * After so many yields a waiter sleeps if the loop that it rang last has not run, because that loop may
 * wait for this very CPU. Linux yields only within an autogroup (a session) or cgroup: towards a thread
 * of another one, yielding in a loop is spinning.
 */
#define FUTILE_YIELDS 16
static inline int64_t busy_poll_deadline(int64_t last_ns, int64_t now_ns)
{
    return now_ns - last_ns < BUSY_POLL_NS ? now_ns + BUSY_POLL_NS : 0;
}

/* lateness.c */
#define LATENESS_BOUND_NS 200000     /* a machine that keeps up hands off no later */
#define LATENESS_GONE_NS  2000000000 /* a loop that has not run for so long is gone, not late */
void lateness_record(struct lateness_log *g, int64_t from_ns, int64_t until_ns);
/* The caller's own loop; rung_ns: of its bell. */
struct lateness_own {
    const struct lateness_log *log;
    int64_t rung_ns;
};
/*
 * Time in the last window_ps of fabric time in which a loop was late on the path to queue pair qpn at ip
 * and back: the caller's own loop (NULL: none), a switch process's, or the other process. At most
 * window_ps.
 */
int64_t lateness_on_path(const struct shared *sh, const struct fabric *f,
                         const struct lateness_own *own, uint32_t ip, uint32_t qpn,
                         int64_t window_ps);
/* Fabric time since from_ps in which processes of a host left frames waiting: that of its latest slot.
 * *of_ps: the part of that time which is known, since logs keep about a second of wall time. */
int64_t lateness_of_host(const struct shared *sh, const struct fabric *f,
                         const struct fab_node *host, int64_t from_ps, int64_t *of_ps);
/* False if the fabric has ports to the outside, whose lateness is unknown. */
bool lateness_known(const struct fabric *f);
/* Call it when the loop or process has ended: it no longer counts as late. */
void lateness_forget(struct lateness_log *g);

/* lag.c */
void lag_record(struct lag_hist *h, int64_t ns, unsigned n);
int64_t lag_bucket_top(unsigned b); /* upper bound of a bucket, in ns */
void lag_snapshot(const struct shared *sh, struct lag_hist *sum); /* sums over all writers */
int64_t lag_quantile(const struct lag_hist *before, const struct lag_hist *after,
                     double q); /* in ns; 0: no hand-offs */

#endif
