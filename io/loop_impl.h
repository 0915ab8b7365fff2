/* SPDX-License-Identifier: BSD-3-Clause */
/* Internals of loop.h, shared by loop.c, link_io.c and telemetry_link.c. */
#ifndef TRIB_IO_LOOP_IMPL_H
#define TRIB_IO_LOOP_IMPL_H

#include "base/log.h"
#include "io/access.h"
#include "io/loop.h"
#include "io/port/port.h"
#include "machine/token.h"
#include "machine/watch.h"
#include "switch/queue/drops.h"

#include <pthread.h>

#define LOOP_BURST      32
#define LINK_IO_BACKLOG 1024 /* frames that wait while the ring to another process is full */

/* A link out of the process: its memif or ethdev, and its backlog. */
struct link_io {
    struct loop *l;
    enum link_io_kind kind;
    struct io_port *rp;
    uint16_t node, port;
    unsigned slot;
    unsigned door;                  /* slots: index of its door */
    struct port_page *page;         /* NULL: the process at the other end rings no bell */
    const struct switch_view *peer; /* links: that process; NULL: not known */
    _Atomic uint32_t rung;          /* see loop_bell_ring() */
    struct lateness_log *late;      /* slots, up to `also`: lateness of the process */
    int64_t rung_ns;                /* first ring of its bell that it has not served; 0: none */
    unsigned rung_frames;           /* frames sent since then */
    uint32_t also_name;             /* the last port_page.also, and the slot that it names */
    const struct link_io *also;
    bool away;        /* its other end is on another machine */
    bool on_link;     /* a link of the conf; not a slot or a port to unknown devices */
    unsigned dirlink; /* links: direction of frames received here */
    bool up;
    bool ring;       /* ring the peer: frames were sent, or a full ring was emptied */
    bool blocked;    /* slots: the ring was full, so the NIC holds frames */
    uint16_t budget; /* slots: frames that the process may still send in this round */
    uint16_t arrived[ENDPOINT_QUEUES];
    struct rte_mbuf **wait; /* links and outside: ring of LINK_IO_BACKLOG */
    uint16_t wait_head, wait_n;
    uint64_t overflow;
};

/* The process slots of a host's port; a few beyond the last in use listen. */
struct door {
    uint16_t node, port;
    unsigned open;           /* slots 0 to open - 1 listen */
    char token[TOKEN_BYTES]; /* the host's */
};

struct loop {
    struct loop_cfg cfg;
    const struct fabric *fab;
    struct shared *sh;
    struct switch_page *page; /* the page of this process */
    struct loop_bell *bell;
    _Atomic uint32_t call_rung;
    struct net *net;
    struct lag_hist *lag;
    struct lateness_log *late;
    struct link_io *io;
    struct watch watch;    /* watches the ports of io[] */
    struct link_io **live; /* links that are up */
    uint32_t **by_port;    /* [node][port]: index + 1 in io if the port's link leaves the process;
                            NULL rows: nodes of other processes */
    uint32_t cuts;         /* sum of switch_page.cuts at the net's last update */
    bool *cut;             /* [fab->n_links]: links that the net knows to be cut */
    struct door *door;
    struct log_limit offences[DROP_REASONS]; /* of lines about offenders (telemetry_link.c) */
    int64_t refused_ns;                      /* when it last logged a refused connection */
    bool slot_failed;                        /* a slot could not be opened, and the log says so */
    unsigned n_doors, max_doors, max_ios;
    unsigned n_ios, n_live, n_links, n_links_up, n_outside;
    unsigned n_missing; /* local links that are not up */
    uint32_t dilation;
    unsigned late_calls;
    int64_t late_now_ps;
    int64_t due_ns;             /* when the next round is due */
    int64_t mono_ns, gap_ns;    /* start of this round; time since the start of the last one */
    int64_t served_ns;          /* longest wait of a frame received in this round; -1: none */
    bool rests;                 /* due_ns is published in the process's lateness log */
    int64_t round_ps, pause_ps; /* fabric time of the last round; longest pause while it keeps up */
    net_tap_fn tap;
    void *tap_ctx;
    int64_t checked_ns;
    unsigned idle;
    int64_t moved_ns;           /* when it last moved a frame */
    int64_t busy_poll_until_ns; /* an idle loop yields until then, and sleeps after */
    const struct link_io *rang; /* the link that it rang last */
    pthread_mutex_t call_lock;
    pthread_cond_t call_done;
    void (*call_fn)(struct loop *l, void *arg);
    void *call_arg;
    _Atomic bool calling;
};

/* link_io.c */
int links_create(struct loop *l, const struct loop_cfg *cfg);
void links_destroy(struct loop *l);
/* Connects, accepts, and reports changes of state to the net. now_ps: fabric time. */
void links_check(struct loop *l, int64_t now_ps);
/* Passes frames from links to the net, and kicks the NICs of slots with frames. Returns the number of
 * frames and slots. */
unsigned links_receive(struct loop *l, int64_t now_ps);
/* Whether anything is waiting to be received. */
bool links_pending(const struct loop *l);
/* Sends backlogs and rings bells. Returns whether frames still wait. */
bool links_flush(struct loop *l);
/* Whether the other end has not yet served its last ring. */
bool links_unserved(const struct link_io *c);
/* net_cfg.deliver */
void links_deliver(void *ctx, uint16_t node, uint16_t port, struct rte_mbuf **m, uint16_t n,
                   int64_t due_ps);

/* slot_io.c */
struct endpoint slot_endpoint(struct link_io *c);
/* Kicks the slot's NIC if the process has sent frames. Returns whether it did. */
unsigned slot_receive(struct link_io *c, int64_t now_ps);
void slot_ring(struct link_io *c);
/* Call it after the slot's process has connected or gone. */
void slot_connected(struct link_io *c);

/* Takes a stamp: how long frames have waited for this round. The peer may write anything there, so the
 * wait is capped by the time since the last round, which would have received older frames. */
static inline void loop_take_stamp(struct loop *l, _Atomic int64_t *rung_ns)
{
    int64_t ns = bell_take_stamp(rung_ns, l->mono_ns, l->gap_ns);

    l->served_ns = RTE_MAX(l->served_ns, ns);
}

/* link_cuts.c: links that are cut because the process at one end is gone. */
void cuts_state(struct loop *l, unsigned link, bool cut); /* states what this process sees */
void cuts_show_port(const struct loop *l, unsigned link); /* in the sysfs of its hosts */
void cuts_take(struct loop *l, int64_t now_ps);           /* tells the net of all cut links */

#endif
