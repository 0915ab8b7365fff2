/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that processes of a fabric share. Every page has one writer, or two that are the ends
 * of one connection, so that no process of a host can write what another host's reads:
 *
 *   clock page    made by the first trib-switch, written by it alone
 *   switch page   one for each trib-switch, written by it alone: whether its loop sleeps, lateness
 *                 logs, lag, links that are down or cut
 *   loop bell     one for each trib-switch: the futex word on which its loop sleeps. Everybody may
 *                 write it: the loop wakes for nothing, or up to SLEEP_MAX_NS (loop.c) late
 *   port page     one for each connection between two processes, made by the client and written by
 *                 both ends: the bell of a host's process, and when frames were announced. What is
 *                 read there is checked, on a copy
 *
 * All are memory files sealed against growing and shrinking, and nothing else that another process can
 * reach is mapped (scripts/one_helper.py): whoever could shrink it ended its readers by SIGBUS. The first two are sealed against
 * writing too, once their writer has mapped them. A trib-switch hands out its clock page, switch
 * page and loop bell at the socket proc/NAME.page (page_server.h); port pages go along with the
 * connection, to its peer only.
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
 * Fabric time = change_ps + (CLOCK_MONOTONIC - change_ns) / dilation, and with `before` instead of
 * `dilation` until the change, which is announced a little ahead: fabric time is continuous and never
 * goes back. A change is written into the state that is not in use, and then turn is incremented: a
 * writer that dies in between leaves the clock as it was.
 *
 * Where several machines run a fabric, one has its clock and the others' follow it (io/trunk): skew_ppb
 * corrects the difference of their clocks' speeds, and unsure_ns bounds the error.
 *
 * The start is written before the first turn, and never again.
 */
struct clock_page {
    uint32_t magic, version;
    int64_t start_ns, start_real_ns; /* CLOCK_MONOTONIC and CLOCK_REALTIME at fabric time 0 */
    _Atomic uint32_t turn;           /* state[turn % 2] is in use */
    _Atomic uint32_t writing;        /* of the writer's threads */
    _Atomic int64_t unsure_ns;       /* wall time; 0: this is the fabric's only clock */
    struct clock_state {
        int64_t change_ns, change_ps; /* the last change of speed, in both times */
        uint32_t before, dilation;
        int32_t before_skew_ppb, skew_ppb; /* fabric time is so much faster than 1 / dilation */
    } state[2];
};

/*
 * A doorbell, on which the threads of one process sleep. The sender rings after its burst only when
 * the sleepers' flag is set, so that a busy receiver costs no system call. rung_ns: when the oldest
 * unserved frame was announced, by the sender (lateness of the hand-off). served_ns: when frames
 * were last received.
 */
struct bell {
    _Atomic uint32_t seq;
    _Atomic uint32_t sleeping;
    _Atomic int64_t rung_ns, served_ns;
    char pad[40];
};
_Static_assert(sizeof(struct bell) == 64, "one cache line each");

/*
 * Of one connection. rung_ns: when the client announced the oldest frame that the server has not
 * received. wants_room: the process has more frames than may wait at its NIC, which rings when it
 * has taken one. also: slot_name() of a second slot of this host whose sleepers serve this one too,
 * the pollers of a process with several ports; 0: none.
 */
struct port_page {
    _Atomic int64_t rung_ns;
    _Atomic uint32_t wants_room, also;
    char pad[48];
    struct bell bell; /* of the client; of one that is a switch only rung_ns */
};

/* Log-linear histogram of lateness in ns: 16 sub-buckets per power of two, 0 .. 2^32 ns. */
struct lag_hist {
    _Atomic uint64_t n[LAG_BUCKETS];
};

/* Log of a loop's lateness (lateness.c), written by that loop, or for a host's process by its NIC. */
struct lateness_log {
    _Atomic int64_t due_ns; /* the loop is due to run then; 0: it is not */
    char pad[56];
    _Atomic uint64_t slice[LATENESS_SLICES];
};

struct loop_bell {
    _Atomic uint32_t seq;
};

struct switch_page {
    uint32_t magic, version;
    uint32_t proc; /* in the conf's order */
    char pad[52];
    _Atomic uint32_t sleeps; /* odd: its loop sleeps */
    char pad2[60];
    struct lateness_log loop;
    struct lag_hist lag; /* of hand-offs to its loop and to the processes in its slots */
    /* Links between processes, as this one sees them: when that changed, in ns of CLOCK_MONOTONIC,
     * times two; plus one: cut, because the process at the other end is gone. A change increments
     * cuts. */
    _Atomic uint32_t cuts;
    _Atomic uint64_t cut[SHARED_LINKS];
    _Atomic uint8_t link_down[SHARED_LINKS]; /* by index of the link; `trib link` */
    uint8_t runs[FAB_MAX_NODES];             /* nodes of this process */
    struct lateness_log slot[BELLS];         /* by bell_of_slot() */
};

/* ---- what a process has mapped of them ---- */

struct switch_view {
    const struct switch_page *page;
    struct loop_bell *bell;
    uint64_t inode; /* tells it from an earlier process of the same name */
    char name[FAB_NAME];
    _Atomic bool gone;
};

/* Entries of sw are only added, so threads may read them while one calls shared_refresh(). */
struct shared {
    const struct clock_page *clock;
    struct clock_page *own_clock; /* NULL: another process writes it */
    struct switch_page *own;      /* of this trib-switch */
    struct loop_bell *own_bell;
    _Atomic unsigned n_sw;
    struct switch_view sw[FAB_MAX_PROCS];
};

/* Maps what the trib-switch processes of run directory dir hand out. 0, or -errno with a message on
 * stderr: -ENOENT when none answers. */
int shared_join(struct shared **sh, const char *dir);
/* Asks those that are not known yet, or were forgotten. One thread at a time. */
void shared_refresh(struct shared *sh, const char *dir);
void shared_free(struct shared *sh);
/* Its process has ended, as far as this one knows; shared_refresh() asks again. */
void shared_forget(struct shared *sh, const struct switch_view *v);
/* The process that runs this node; NULL: none that is known. */
const struct switch_view *shared_switch_of(const struct shared *sh, uint16_t node);

/* A memory file of that size, sealed against growing and shrinking, and mapped. *fd: -errno on
 * failure. */
void *shared_make(const char *name, size_t size, int *fd);
/* No further mapping of fd can be written. 0 or -errno. */
int shared_seal(int fd);
/* Maps a file that another process made; NULL: it lacks the seals or the size. */
void *shared_map(int fd, size_t size, bool write);
/* Whether the first `size` bytes of a file that another process made stay: it cannot shrink, and has
 * no huge pages that may be gone when they are used. */
bool shared_is_safe(int fd, size_t size);
/* Maps them, to read and to write; what is behind them may grow. NULL: not safe, or no memory. */
void *shared_map_part(int fd, size_t size);

static inline uint32_t slot_name(unsigned port, unsigned slot)
{
    return (port << 16 | slot) + 1;
}

unsigned bell_of_proc(unsigned proc);
/* The bell of the process in a slot of a host's port; each port of a host has its own loops. BELLS
 * - 1 if the fabric has too many (bell_room). */
unsigned bell_of_slot(const struct fabric *f, const struct fab_node *host, unsigned port,
                      unsigned slot);
/* Number of addresses whose process slots have bells of their own. */
unsigned bell_room(const struct fabric *f);

/* clock.c */
int64_t clock_fabric_ps(const struct shared *sh);
int64_t clock_fabric_at(const struct shared *sh, int64_t mono_ns);
int64_t clock_mono_ns(void);
uint32_t clock_dilation(const struct shared *sh);
void clock_set_dilation(struct clock_page *c, uint32_t dilation);        /* its writer only */
int64_t clock_wall_ns_until(const struct shared *sh, int64_t fabric_ps); /* <= 0: due */
/* For a clock that follows another (its writer only; the change before must be over): from at_ns on,
 * some ms ahead, its speed is this one. The first call starts the clock, at state `s` itself. */
void clock_start_at(struct clock_page *c, const struct clock_state *s);
void clock_follow(struct clock_page *c, int64_t at_ns, uint32_t dilation, int32_t skew_ppb);
struct clock_state clock_state_of(const struct clock_page *c);
int64_t clock_line_ps(const struct clock_state *s, int64_t mono_ns); /* fabric time by it */
/*
 * Sets the scheduling policy of the calling thread. With a dilation, the lateness of hand-offs
 * counts: a thread that is woken preempts the running one. At line speed, throughput counts: the
 * running thread continues until it waits (SCHED_BATCH), so that bursts are long. A policy set by
 * the user stays.
 */
void clock_set_policy(uint32_t dilation);

/* bell.c */
void bell_ring(struct bell *b);        /* called after a burst of frames was made visible */
void bell_wake(struct bell *b);        /* the same without frames */
uint32_t bell_prepare(struct bell *b); /* announce sleep; then poll once more */
void bell_sleep(struct bell *b, uint32_t token,
                int64_t timeout_ns);      /* until rung or timeout; <= 0 returns at once */
void bell_cancel(struct bell *b);         /* found work after all */
int64_t bell_served(struct bell *b);      /* lateness in ns of the hand-off, -1: there was none */
bool bell_unserved(const struct bell *b); /* frames were announced and not received yet */

/* A loop bell. Its sleeper is one thread, the writer of `page`. *rung is the caller's own: the
 * sleep for which it has rung. */
void loop_bell_ring(const struct switch_page *page, struct loop_bell *b, _Atomic uint32_t *rung);
uint32_t loop_bell_prepare(struct switch_page *page, const struct loop_bell *b);
void loop_bell_sleep(struct switch_page *page, struct loop_bell *b, uint32_t token,
                     int64_t timeout_ns);
void loop_bell_cancel(struct switch_page *page);
/* Announces frames: stamps *rung_ns unless an earlier one is not served. */
void bell_stamp(_Atomic int64_t *rung_ns);
/* The other end: since when frames were announced, at most max_ns ago; -1: none were. */
int64_t bell_take_stamp(_Atomic int64_t *rung_ns, int64_t now_ns, int64_t max_ns);

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
#define LATENESS_BOUND_NS 200000     /* latest hand-off of a machine that keeps up */
#define LATENESS_GONE_NS  2000000000 /* who has not run for so long is not late but gone */
void lateness_record(struct lateness_log *g, int64_t from_ns, int64_t until_ns);
/* The caller's own loop; rung_ns: of its bell. */
struct lateness_own {
    const struct lateness_log *log;
    int64_t rung_ns;
};
/*
 * How much of the last window_ps of fabric time some loop was late on the path to the process that
 * has queue pair qpn at ip, and back: the caller's own (NULL: none), that of a switch process, or
 * that of the other process. At most window_ps.
 */
int64_t lateness_on_path(const struct shared *sh, const struct fabric *f,
                         const struct lateness_own *own, uint32_t ip, uint32_t qpn,
                         int64_t window_ps);
/* For how much of the fabric time since from_ps the processes of a host did not take the frames that
 * waited for them: the latest of its slots. *of_ps: the time that this says something about, since logs
 * keep about a second of wall time. */
int64_t lateness_of_host(const struct shared *sh, const struct fabric *f,
                         const struct fab_node *host, int64_t from_ps, int64_t *of_ps);
/* False if there are ports to the outside, whose lateness is unknown. */
bool lateness_known(const struct fabric *f);
/* The loop or process has ended: it no longer counts as late. */
void lateness_forget(struct lateness_log *g);

/* lag.c */
void lag_record(struct lag_hist *h, int64_t ns, unsigned n);
int64_t lag_bucket_top(unsigned b); /* the largest value of a bucket, in ns */
void lag_snapshot(const struct shared *sh, struct lag_hist *sum); /* adds up all writers */
int64_t lag_quantile(const struct lag_hist *before, const struct lag_hist *after,
                     double q); /* ns; 0 when empty */

#endif
