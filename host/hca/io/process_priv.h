/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One HCA port of a real process: process.c sets it up, process_thread.c runs it, and
 * process_keeper.c holds its descriptors.
 */
#ifndef TRIB_HOST_HCA_IO_PROCESS_PRIV_H
#define TRIB_HOST_HCA_IO_PROCESS_PRIV_H

#include "host/hca/hca_priv.h"
#include "io/port/port.h"
#include "machine/port_counters.h"
#include "machine/rundir.h"
#include "machine/shared.h"

#include <pthread.h>
#include <stdatomic.h>

/* The ring is short, so that frames wait in the HCA and not in a long queue. The pool is small, so
 * that it stays in the cache: it has the frames of all rings and a few bursts (retransmitted frames
 * are built again). */
#define PORT_BURST     32
#define PORT_LOG2_RING 7
#define PORT_RING      (1 << PORT_LOG2_RING)
#define PORT_POOL      767

#define PROCESS_DEATH 512 /* bytes of the sentence that names what died */

/* The lock guards everything but the atomics and the counters. */
struct process_hca {
    struct hca_device dev;
    pthread_mutex_t lock;
    pthread_t thread, keeper;
    struct hca *hca;
    struct endpoint ep;
    struct io_port *port;
    struct io_frames frames;
    const struct shared *sh;
    struct rundir *rd;
    const struct fab_node *host;
    const _Atomic uint8_t *link_down; /* not 0: the NIC's link is taken down */
    const _Atomic uint64_t *link_cut; /* odd: the process at the link's other end is gone */
    struct port_page *page;           /* shared with the NIC's process */
    struct bell *bell;                /* in that page */
    const struct switch_view *nic;    /* the NIC's process; NULL: not known */
    _Atomic uint32_t nic_rung;        /* see loop_bell_ring() */
    struct bell *sleep_bell;  /* where pollers sleep: one bell for all ports of the process */
    struct lateness_log late; /* how late this process served its bell */
    const struct fabric *fab;
    int slot;
    int slot_fd;     /* in the keeper's descriptor table, as all of the port's descriptors */
    bool shared_fds; /* the keeper uses the program's table, as the kernel allows no other */
    char sock[256], lock_name[256]; /* of the slot; empty name: no slot */
    bool up;                        /* the HCA's view of the port */
    bool connected;                 /* the keeper's view, which is newer */
    bool lost;                      /* was disconnected since the HCA last learned the state */
    struct port_counters counters;  /* what sysfs shows; count_lock guards them */
    pthread_mutex_t count_lock;
    int64_t counted_ns;        /* when a counter last changed */
    int64_t checked_ns;        /* when the link was last checked */
    char death[PROCESS_DEATH]; /* to be printed: what has died; "": nothing */

    /* Frames that did not fit into the ring; offered again at retry_ns. 0: none. */
    struct rte_mbuf *stash[ENDPOINT_QUEUES][PORT_BURST];
    uint16_t n_stash[ENDPOINT_QUEUES];
    int64_t retry_ns;
    uint64_t rate_bps;
    int64_t frame_ps;               /* time in which the link sends a frame of a full MTU */
    uint16_t n_sent;                /* data frames handed to the NIC (free-running) */
    uint16_t sent_bytes[PORT_RING]; /* their bytes on the wire, of the last PORT_RING frames */
    int64_t sent_ns;

    uint64_t seen; /* hca_completions() at the last poll, which returned for new ones */
    /* Completions of every port of the process when a poller of this port last checked them. */
    _Atomic uint64_t seen_of[FAB_MAX_HOST_PORTS];
    int64_t thread_until_ps;            /* end of the progress thread's sleep; 0: it is awake */
    int64_t busy_ns;                    /* when a poll last found something */
    _Atomic int64_t busy_poll_until_ns; /* until then waiters yield instead of sleeping */
    _Atomic int64_t lease_ns;           /* a program's thread polls again by then; 0: none does */
    _Atomic int64_t spin_until_ns;      /* until then an empty poll returns at once */
    _Atomic bool slept_elsewhere;       /* the program slept in the poll of another port: the next
                                           empty poll returns at once */
    _Atomic uint32_t park;              /* futex word: the thread waits on it while others poll */
    _Atomic uint32_t parked;
    _Atomic uint32_t sleepers; /* pollers that sleep, or are about to, on sleep_bell */

    /* Start-up, as the keeper reports it. */
    pthread_cond_t started;
    bool start_done;
    int start_rc;
    unsigned starts; /* attempts to start, to give each pool of frames a name of its own */
};

struct process_hca *process_hca_at(unsigned port); /* of this process's host; NULL: no such port */
void *progress_thread(void *arg); /* struct process_hca *; runs until the process ends */
void *
process_keeper(void *arg); /* struct process_hca *; calls process_start(), then keeps the port */
int process_start(struct process_hca *p);
/* Writes pid and counters where the run directory keeps them (process_report.c). */
void process_report(struct process_hca *p);
/* Installs the handler of SIGSEGV and SIGBUS (process_fault.c), once a process. */
void process_fault_init(void);
/* After the engine ran, with the lock held: reports memory that was gone. */
void process_fault_report(const struct hca *h);
/* hca_driver.check_memory and .prefetch (process_memory.c). */
int process_check_memory(void *ctx, const void *addr, size_t len, bool write);
int process_prefetch(void *ctx, void *addr, size_t len, bool write);
/* process_lateness.c: records how late this process served a bell; and lateness_on_path. */
void process_record_lateness(struct process_hca *p, int64_t late_ns);
int64_t process_lateness_on_path(void *ctx, uint32_t ip, uint32_t qpn, int64_t window_ps);
/* Updates the port's counters; `last`: writes their files in any case. Returns whether a counter
 * changed. */
bool process_count(struct process_hca *p, bool last);
/* process_frames.c, with the lock held: process_transmit() hands frames to the NIC;
 * process_progress() receives, runs due timers and transmits. Both return the number of frames
 * moved. */
unsigned process_transmit(struct process_hca *p, int64_t now_ps);
unsigned process_progress(struct process_hca *p);
struct hca_driver process_driver(struct process_hca *p);
/* process_nic.c: waits until the NIC has accepted the connection; 0 or -errno with a message. */
int process_wait_nic(struct process_hca *p);
void process_nic_forked(void); /* in the child */
/* process_ring_nic() stamps the bell for new frames and wakes the NIC's loop. process_wake() wakes all threads of this process that sleep for this port. */
void process_ring_nic(struct process_hca *p);
void process_wake(struct process_hca *p);
/* process_deaths.c: the keeper looks for trib-switch processes that have died. A thread that has
 * the program's descriptors prints what it found, with the lock held. */
void process_look_for_deaths(struct process_hca *p);
void process_say_death(struct process_hca *p);
void process_deaths_forked(void); /* in the child */
/* Finds the NIC's process, which may have been replaced. Without the lock. */
void process_find_nic(struct process_hca *p);
/* Whether the NIC's process sees the link up: not taken down, and with a process at its other end.
 */
bool process_link_is_up(const struct process_hca *p);

/* Wall time in which the link sends a full ring of frames at the present dilation, clamped to
 * [min, max]. */
static inline int64_t process_ring_ns(const struct process_hca *p, int64_t min, int64_t max)
{
    int64_t ns = (p->frame_ps * PORT_RING) / PS_PER_NS * clock_dilation(p->sh);

    return ns < min ? min : ns > max ? max : ns;
}

/* ucx_routes.c: makes UCX treat all addresses as reachable. Call it before UCX reads its variables.
 */
void process_ucx_routes(void);

#endif
