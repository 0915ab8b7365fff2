/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of the cost model; for host/coll/model only. Times in ps, as int64.
 *
 *   cost_model.c   from fabric and arguments to a prediction
 *   cost_run.c     the schedules of all ranks, walked in order of time
 *   cost_net.c     a message on the links of its path
 *   cost_agg.c     messages through aggregation nodes; cost_mm.c: through multimem
 */
#ifndef TRIB_HOST_COLL_MODEL_COST_MODEL_H
#define TRIB_HOST_COLL_MODEL_COST_MODEL_H

#include "aggregation/mm_proto.h"
#include "host/coll/alg/topo.h"
#include "host/coll/comm.h"

#define MODEL_HOPS  32
#define MODEL_TREES 16u
#define NOBODY      0xffffffffu

struct model_path {
    unsigned n, crossings; /* hand-offs from process to process between its nodes */
    uint32_t link[MODEL_HOPS];
};

/* Times at which the first frame and the last bit of a message arrive. */
struct flight {
    int64_t head, tail;
};

/* State of a rank's lane. */
struct model_lane {
    uint32_t begun, done,
        peer_lane;                 /* peer_lane: SEND's and RECV's other end; MM: reads under way */
    uint32_t waiters, next_waiter; /* lanes of the rank that wait for this one */
    bool queued, waiting, link_busy; /* link_busy: until its last message has left the first link */
    bool back_to_back;               /* the step that starts now was ready while the link was
                                        busy */
    uint16_t *handoffs;              /* [n] hand-offs up to the end of each step */
    int64_t *at;                     /* RECV: [n] time of posting */
    struct flight *flight;           /* SEND: [n * parts], MM: [n] in flight */
    uint8_t *hop;                    /* SEND: [n * parts] links passed */
    unsigned parts, part; /* SEND: most parts of a message; next part of the current message, or
                             0 */
    struct model_path *path, *back; /* SEND, MM: to the peer (switch) and back */
    int64_t ack_ps;                 /* an ACK's time on the way back */
    struct model_group *agg;
    uint32_t member, slots_out; /* AGG: index among the members; slots of the window in use */
};

struct model_rank {
    struct sched s;
    struct model_lane *lane;
};

/* HOP: a message's first frame is at its next link. */
enum event_kind { EV_DONE, EV_TRY, EV_HOP, EV_READ };
struct cost_event {
    int64_t at;
    uint64_t order;
    uint32_t rank, lane, step;
    uint8_t kind;
};

struct model {
    const struct fabric *fab;
    struct sched_in in; /* rank is filled in by turns */
    const uint16_t *host_of_rank;
    const uint16_t *tree;
    unsigned n_trees;
    uint32_t window;
    struct topo topo;
    /* Directions of links, then the hosts' loops: ranks of one host meet in its NIC. */
    unsigned n_dir;
    int64_t *free_ps;  /* [n_dir] when the link is free */
    int64_t *fetch_ps; /* [n_dir] when the port that sends on it can fetch the next request */
    uint64_t *bytes;   /* [n_dir] that pass in the whole operation */
    /* running */
    struct model_rank *rank;
    struct model_group *aggs;
    struct cost_event *heap;
    uint64_t n_events, capacity, order;
    int64_t end;
    unsigned handoffs;
    int rc;
};

/* A message of len bytes as frames: bytes of link time (layer 2, and preamble, FCS and gap), of its
 * largest and its last frame. */
struct model_msg {
    uint64_t wire, frame, tail;
};
struct model_msg model_message(uint64_t len, uint32_t mtu, bool imm);
/* Ethernet 14, IP 20, UDP 8, BTH 12, AETH 4, ICRC 4, and 24 of the link. One per message is
 * counted. */
#define MODEL_ACK_WIRE 86ULL

int64_t model_link_ps(const struct model *m, uint32_t dirlink, uint64_t bytes);
void model_path(const struct model *m, uint16_t from, uint16_t from_port, uint16_t to,
                uint16_t to_port, struct model_path *p);
uint16_t model_node(const struct model *m, unsigned rank);
/* Time at which a request posted now, or while the last message left, can be sent on the first link
 * of a path. */
int64_t model_post(struct model *m, const struct model_lane *l, uint32_t dirlink, int64_t now);
/* Sends a message over a link; call it at the time at which the first frame is there. */
struct flight model_send_hop(struct model *m, uint32_t dirlink, struct flight f,
                             struct model_msg msg);
/* The same for a message that is ready now and shares the link frame by frame with the queued ones,
 * whose computed times stay as they are. */
struct flight model_send_interleaved(struct model *m, uint32_t dirlink, int64_t now,
                                     struct model_msg msg);
int64_t model_latency(const struct model *m, uint32_t dirlink);
/* Sends along a whole path at once; *left (may be NULL): time at which it has left the first
 * link. */
struct flight model_send_path(struct model *m, const struct model_path *p, struct flight f,
                              struct model_msg msg, int64_t *left);
/* Sends a small frame that overtakes others, at time t; returns its arrival. */
int64_t model_send_small(struct model *m, const struct model_path *p, int64_t t, uint64_t wire);

/* Runs in.count of all ranks: time, bytes of every link and hand-offs in m. */
int model_run(struct model *m);
void model_event(struct model *m, enum event_kind kind, int64_t at, unsigned rank, unsigned lane,
                 uint32_t step);
/* cost_agg.c */
int agg_model_begin(struct model *m, unsigned rank, unsigned lane);
bool agg_model_has_window(const struct model *m, unsigned rank, unsigned lane);
void agg_model_step(struct model *m, unsigned rank, unsigned lane, int64_t now);
void agg_model_end(struct model *m, unsigned rank, unsigned lane);
void agg_model_free(struct model *m);
/* cost_mm.c */
int mm_model_begin(struct model *m, unsigned rank, unsigned lane);
void mm_model_step(struct model *m, unsigned rank, unsigned lane, int64_t now);
void mm_model_read(struct model *m, unsigned rank, unsigned lane, uint32_t step, int64_t now);
void mm_model_down(struct model *m, unsigned rank, unsigned lane, uint32_t step);

#endif
