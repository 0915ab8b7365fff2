/* SPDX-License-Identifier: BSD-3-Clause */
/* Behind loop.h: shared by loop.c and cable.c. */
#ifndef TRIB_IO_LOOP_IMPL_H
#define TRIB_IO_LOOP_IMPL_H

#include "io/loop.h"
#include "io/port.h"

#include <poll.h>
#include <pthread.h>

#define LOOP_BURST    32
#define CABLE_BACKLOG 1024 /* frames that wait for a full ring towards another process */

struct cable {
    struct loop *l;
    enum cable_kind kind;
    struct rim_port *rp;
    uint16_t node, port;
    unsigned slot;
    unsigned door;     /* slots only */
    struct bell *bell; /* who must be woken at the other end; NULL: nobody can be */
    bool on_link;      /* it is a link of the conf, not a slot or a way out to whatever is there */
    unsigned dirlink;  /* of the frames that come by it; links only */
    bool up;
    bool ring;    /* frames were sent, or room was made in a full ring, since the bell was rung */
    bool blocked; /* a slot's ring was full: its NIC holds frames for it */
    uint16_t budget; /* frames that its process may still send in this round */
    uint16_t arrived[ENDPOINT_QUEUES];
    struct rte_mbuf **wait; /* ring of CABLE_BACKLOG, links and outside only */
    uint16_t wait_head, wait_n;
    uint64_t overflow;
};

/* Where processes of a host's port come in: as many of its slots listen as may be wanted soon. */
struct door {
    uint16_t node, port;
    unsigned open; /* slots 0 .. open - 1 listen */
};

struct loop {
    struct loop_cfg cfg;
    const struct fabric *fab;
    struct shared *sh;
    struct net *net;
    struct bell *bell;
    struct lag_hist *lag;
    struct late_log *late;
    struct cable *cable;
    struct pollfd *fds;
    struct cable **live; /* those that are up */
    uint16_t **by_port;  /* [node][port]: index of the cable + 1 of a port whose link leaves the
                            process; NULL rows elsewhere */
    uint32_t cuts;       /* of shared, as the net knows them */
    struct door *door;
    bool cramped; /* a slot could not be opened, and that was said */
    unsigned n_doors;
    unsigned n_cables, n_live, n_links, n_links_up, n_outside;
    uint32_t dilation;
    unsigned late_calls;
    int64_t late_now_ps;
    int64_t due_ns;             /* when the next round is to begin */
    bool rests;                 /* the log of who is late has that */
    int64_t round_ps, pause_ps; /* the last round's time; longest pause between two that keep up */
    net_tap_fn tap;
    void *tap_ctx;
    int64_t checked_ns;
    unsigned idle;
    int64_t moved_ns, busy_poll_until_ns; /* when frames moved last; until then it gives way only */
    const struct bell *rang;              /* the last one that frames were announced to */
    pthread_mutex_t call_lock;
    pthread_cond_t call_done;
    void (*call_fn)(struct loop *l, void *arg);
    void *call_arg;
    _Atomic bool calling;
};

/* cable.c */
int cables_create(struct loop *l, const struct loop_cfg *cfg);
void cables_destroy(struct loop *l);
/* Connects, accepts, and tells the net what came and went. now_ps: fabric time. */
void cables_check(struct loop *l, int64_t now_ps);
/* Frames from links into the net; news of frames that wait in process slots. Returns how many of
 * either. */
unsigned cables_receive(struct loop *l, int64_t now_ps);
/* Anything to receive? Looks only. */
bool cables_pending(const struct loop *l);
/* Sends what waits, rings the bells. Returns whether something waits still. */
bool cables_flush(struct loop *l);
/* net_cfg.deliver */
void cables_deliver(void *ctx, uint16_t node, uint16_t port, struct rte_mbuf **m, uint16_t n,
                    int64_t due_ps);

#endif
