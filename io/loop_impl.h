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
#define LINK_IO_BACKLOG 1024 /* frames that wait for a full ring towards another process */

/* A link out of the process: a memif or an ethdev, and its backlog. */
struct link_io {
    struct loop *l;
    enum link_io_kind kind;
    struct io_port *rp;
    uint16_t node, port;
    unsigned slot;
    unsigned door;                  /* slots only */
    struct port_page *page;         /* NULL: the process at the other end rings no bell */
    const struct switch_view *peer; /* that process; links only, NULL: not known */
    _Atomic uint32_t rung;          /* see loop_bell_ring() */
    struct lateness_log *late;      /* of the process; slots only, as are the next ones */
    int64_t rung_ns;                /* when its bell was rung that it has not served; 0: none */
    unsigned rung_frames;           /* sent since then */
    uint32_t also_name;             /* port_page.also, and the slot that it names */
    const struct link_io *also;
    bool away;        /* its other end is on another machine */
    bool on_link;     /* a link of the conf; false: a slot, or a port to unknown devices */
    unsigned dirlink; /* direction of the frames received here; links only */
    bool up;
    bool ring;       /* since the last ring: frames were sent, or a full ring was emptied */
    bool blocked;    /* a slot's ring was full: its NIC holds frames for it */
    uint16_t budget; /* frames that its process may still send in this round */
    uint16_t arrived[ENDPOINT_QUEUES];
    struct rte_mbuf **wait; /* ring of LINK_IO_BACKLOG, links and outside only */
    uint16_t wait_head, wait_n;
    uint64_t overflow;
};

/* The process slots of a host's port; a few beyond the last in use listen already. */
struct door {
    uint16_t node, port;
    unsigned open;           /* slots 0 .. open - 1 listen */
    char token[TOKEN_BYTES]; /* of the host */
};

struct loop {
    struct loop_cfg cfg;
    const struct fabric *fab;
    struct shared *sh;
    struct switch_page *page; /* of this process */
    struct loop_bell *bell;
    _Atomic uint32_t call_rung;
    struct net *net;
    struct lag_hist *lag;
    struct lateness_log *late;
    struct link_io *io;
    struct watch watch;    /* of the ports of io[] */
    struct link_io **live; /* links that are up */
    uint32_t **by_port;    /* [node][port]: index + 1 in io of a port whose link leaves the process;
                            NULL rows of nodes elsewhere */
    uint32_t cuts;         /* sum of switch_page.cuts when the net last took them */
    bool *cut;             /* [fab->n_links]: what the net knows of them */
    struct door *door;
    struct log_limit offences[DROP_REASONS]; /* lines about offenders (telemetry_link.c) */
    int64_t refused_ns;                      /* when it last logged that a connection was refused */
    bool slot_failed;                        /* a slot could not be opened, and that was reported */
    unsigned n_doors, max_doors, max_ios;
    unsigned n_ios, n_live, n_links, n_links_up, n_outside;
    unsigned n_missing; /* links to processes of this machine that are not up */
    uint32_t dilation;
    unsigned late_calls;
    int64_t late_now_ps;
    int64_t due_ns;             /* when the next round is to begin */
    int64_t mono_ns, gap_ns;    /* when this round began, and how long after the one before */
    int64_t served_ns;          /* longest wait of frames that this round received; -1: none */
    bool rests;                 /* due_ns is published in the shared lateness log */
    int64_t round_ps, pause_ps; /* the last round's time; longest pause of a loop that keeps up */
    net_tap_fn tap;
    void *tap_ctx;
    int64_t checked_ns;
    unsigned idle;
    int64_t moved_ns;           /* time of the last frame moved */
    int64_t busy_poll_until_ns; /* until then an idle loop yields and does not sleep */
    const struct link_io *rang; /* whom it rang last */
    pthread_mutex_t call_lock;
    pthread_cond_t call_done;
    void (*call_fn)(struct loop *l, void *arg);
    void *call_arg;
    _Atomic bool calling;
};

/* link_io.c */
int links_create(struct loop *l, const struct loop_cfg *cfg);
void links_destroy(struct loop *l);
/* Connects, accepts, and passes changes of state to the net. now_ps: fabric time. */
void links_check(struct loop *l, int64_t now_ps);
/* Passes frames from links to the net and kicks process slots that have frames. Returns how many
 * frames and slots. */
unsigned links_receive(struct loop *l, int64_t now_ps);
/* Whether anything can be received; receives nothing. */
bool links_pending(const struct loop *l);
/* Sends backlogs and rings bells. Returns whether frames are still waiting. */
bool links_flush(struct loop *l);
/* Whether the other end has not received yet what it was rung for. */
bool links_unserved(const struct link_io *c);
/* net_cfg.deliver */
void links_deliver(void *ctx, uint16_t node, uint16_t port, struct rte_mbuf **m, uint16_t n,
                   int64_t due_ps);

/* slot_io.c */
struct endpoint slot_endpoint(struct link_io *c);
/* Kicks the slot's NIC if its process has sent frames. Returns whether it did. */
unsigned slot_receive(struct link_io *c, int64_t now_ps);
void slot_ring(struct link_io *c);
/* The slot's process has come or gone. */
void slot_connected(struct link_io *c);

/* How long frames have waited for this round. Whatever the peer wrote there, no frame that the last
 * round could have received is older than that round. */
static inline void loop_take_stamp(struct loop *l, _Atomic int64_t *rung_ns)
{
    int64_t ns = bell_take_stamp(rung_ns, l->mono_ns, l->gap_ns);

    l->served_ns = RTE_MAX(l->served_ns, ns);
}

/* link_cuts.c: which links are cut because the process at one end is gone. */
void cuts_state(struct loop *l, unsigned link, bool cut); /* what this process sees */
void cuts_show_port(const struct loop *l, unsigned link); /* to sysfs, where a host is at its end */
void cuts_take(struct loop *l, int64_t now_ps);           /* what all see, passed on to the net */

#endif
