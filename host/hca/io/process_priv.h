/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One HCA port of a real process: what rim.c sets up and rim_thread.c runs.
 */
#ifndef TRIB_HOST_HCA_IO_PROCESS_PRIV_H
#define TRIB_HOST_HCA_IO_PROCESS_PRIV_H

#include "host/hca/hca_priv.h"
#include "io/port.h"
#include "io/port_counters.h"
#include "io/rundir.h"
#include "io/shared.h"

#include <pthread.h>
#include <stdatomic.h>

/* A short ring: a process is held back at its own NIC, not behind a long queue. A small pool: what
 * all rings hold and a few bursts (what is lost is built again), so that they stay in cache. */
#define RIM_BURST     32
#define RIM_LOG2_RING 7
#define RIM_POOL      767

/* Everything but the atomics belongs to who holds the lock. */
struct rim_hca {
    struct hca_device dev;
    pthread_mutex_t lock;
    pthread_t thread, keeper;
    struct hca *hca;
    struct endpoint ep;
    struct rim_port *port;
    struct rim_frames frames;
    const struct shared *sh;
    const _Atomic uint8_t *link_down; /* of the NIC's link */
    struct bell *bell, *peer;         /* ours; the NIC's loop */
    struct bell *rest; /* where pollers sleep: one bell for all ports of the process */
    struct lag_hist *lag;
    struct late_log *late;
    const struct fabric *fab;
    int slot;
    int slot_fd;                    /* in the keeper's table of descriptors, as all of the port's */
    bool shared_fds;                /* which is the program's: the kernel allows no other */
    char sock[256], lock_path[256]; /* of the slot; no path: none is held */
    bool up, connected;             /* the HCA knows that it is; the keeper does */
    bool lost;                      /* it was not, since the HCA was last told */
    struct port_counters counters;  /* what sysfs shows; with count_lock */
    pthread_mutex_t count_lock;
    int64_t counted_ns; /* when there was last something to count */
    int64_t checked_ns; /* when the link was last looked at */

    /* Frames that the ring had no room for; offered again at retry_ns. */
    struct rte_mbuf *stash[ENDPOINT_QUEUES][RIM_BURST];
    uint16_t n_stash[ENDPOINT_QUEUES];
    int64_t retry_ns;
    int64_t ring_ps; /* in which the link takes a full ring */
    int64_t sent_ns;

    uint64_t seen; /* completions that pollers were told of */
    /* Completions of every port of the process when a poller of this one last looked at them. */
    _Atomic uint64_t told[FAB_MAX_HOST_PORTS];
    int64_t thread_until_ps; /* the thread sleeps at most until then; 0: it does not sleep */
    int64_t busy_ns;         /* a poll last brought something */
    _Atomic int64_t busy_poll_until_ns; /* until then who waits gives way only */
    _Atomic int64_t
        lease_ns; /* until then a program's thread will have polled again; 0: it will not */
    _Atomic int64_t spin_until_ns; /* until then an empty poll returns at once */
    _Atomic uint32_t park;         /* futex word: where the thread waits while others poll */
    _Atomic uint32_t parked;
    _Atomic uint32_t sleepers; /* pollers on the bell */

    /* Start-up: the keeper reports here. */
    pthread_cond_t started;
    bool start_done;
    int start_rc;
    unsigned starts; /* tried: each pool of frames has a name of its own */
};

struct rim_hca *rim_hca_at(unsigned port); /* of this process's host; NULL: there are no more */
void *rim_thread(void *arg); /* struct rim_hca *: serves for ever, once it is started */
void *rim_keeper(void *arg); /* struct rim_hca *: sets up by rim_start(), then keeps the port */
int rim_start(struct rim_hca *r);
/* Writes pid and counters where the run directory keeps them (rim_report.c). */
void rim_report(struct rim_hca *r);
/* Takes SIGSEGV and SIGBUS (rim_fault.c), once a process. */
void rim_fault_init(void);
/* After the engine ran, with the lock held: says what memory it found gone. */
void rim_fault_tell(const struct hca *h);
/* hca_driver.check_memory (rim_memory.c). */
int rim_check_memory(void *ctx, const void *addr, size_t len, bool write);
/* rim_late.c: what was announced was served so late; hca_driver.late_on_way */
void rim_served(struct rim_hca *r, int64_t late_ns);
int64_t rim_late_on_way(void *ctx, uint32_t ip, uint32_t qpn, int64_t window_ps);
int rim_prefetch(void *ctx, void *addr, size_t len, bool write); /* hca_driver.prefetch */
/* Adds to the port's counters; `last`: their files are written in any case. Returns whether
 * something was new. */
bool rim_count(struct rim_hca *r, bool last);
struct hca_driver rim_driver(struct rim_hca *r);
/* Tells the HCA what has become of port and link, now and then. With the lock held. */
void rim_check_port(struct rim_hca *r, int64_t now_ns);

/* Wall time in which the link takes a full ring, between min and max: dilation may change at any
 * time. */
static inline int64_t rim_ring_ns(const struct rim_hca *r, int64_t min, int64_t max)
{
    int64_t ns = r->ring_ps / PS_PER_NS * clock_dilation(r->sh);

    return ns < min ? min : ns > max ? max : ns;
}

#endif
