/* SPDX-License-Identifier: BSD-3-Clause */
/* The NVSwitch planes of a rank's GPU node, one multimem member (mm_member.h) on each. */
#ifndef TRIB_HOST_COLL_TRANSPORT_MM_PLANE_H
#define TRIB_HOST_COLL_TRANSPORT_MM_PLANE_H

#include "collective/sched.h"
#include "host/coll/transport/edge.h"

struct comm;
struct coll_req;
struct mmc;
struct mm_ctl;

struct plane {
    struct comm *c;
    struct port *port;
    uint16_t node; /* the NVSwitch */
    struct ibv_ah *ah;
    struct mmc *m;
    unsigned lane; /* of the running operation, LANE_NONE */
    uint64_t base; /* steps done before it */
    bool due;      /* has a datagram for the switch, once a send buffer is free */
    struct {
        const void *addr;
        uint64_t bytes;
    } bound[2]; /* areas */
};

int planes_create(struct comm *c, char *err);
int planes_start(struct comm *c, char *err); /* sends the BINDs */
bool planes_ready(const struct comm *c);
const char *planes_late(const struct comm *c); /* a switch that has not answered; NULL: none */
/* A message of a switch at this address. False: it is not of one of our planes. */
bool planes_input(struct comm *c, unsigned port, uint32_t ip, const struct mm_ctl *m);
void planes_tick(struct comm *c);
void planes_pump(struct comm *c); /* sends the datagrams that found no buffer */
/* True: the planes know the operation's memory. False: a MOVE is under way, call again. */
bool planes_bind(struct comm *c, const struct coll_req *r);
/* The region will be gone: what is bound of it counts as not bound. */
void planes_unbind(struct comm *c, const struct region *g);
struct plane *plane_of_lane(struct comm *c, const struct lane *l); /* NULL: there is none */
void plane_begin(struct comm *c, unsigned lane);
unsigned plane_run(struct comm *c, struct coll_req *r, unsigned lane);
void plane_complete(struct comm *c, const struct ibv_wc *wc);
void planes_stop(struct comm *c); /* nothing touches memory any more */
void planes_leave(struct comm *c);
bool planes_left(const struct comm *c);
void planes_destroy(struct comm *c);

#endif
