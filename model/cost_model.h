/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of the cost model; for this folder only. Times in ps, as int64.
 *
 *   cost_model.c   from fabric and arguments to a prediction
 *   cost_bound.c   times below which no prediction may be
 *   cost_count.c   what links carry by the schedules of all ranks
 *   cost_setup.c   schedules of all ranks, their paths and groups
 *   cost_run.c     the schedules, walked in order of time
 *   cost_queue.c   queues of links, and pauses (PFC)
 *   cost_nic.c     turns of processes and lanes at a host
 *   cost_net.c     paths and times of links; messages that are booked on them at once
 *   cost_agg.c     groups of aggregation, their members and windows
 *   cost_edge.c    their messages, through aggregation nodes
 *   cost_mm.c      messages through multimem
 *   cost_exchange.c, cost_exchange_ends.c
 *                  packets of protocols between ranks, servers and first switches
 *
 * A message is cut into parts, of one frame each while the operation is small enough (part_frames).
 * Each part waits in the queue of every link of its path.
 */
#ifndef TRIB_MODEL_COST_MODEL_H
#define TRIB_MODEL_COST_MODEL_H

#include "aggregation/mm_proto.h"
#include "aggregation/proto.h"
#include "collective/in_flight.h"
#include "collective/topo.h"

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

/* A message of len bytes as frames: bytes of link time (layer 2, and preamble, FCS and gap), of its
 * largest and its last frame. */
struct model_msg {
    uint64_t wire, frame, tail;
};

/* A store through multimem: bytes that its switch has sent on; writes that members have not
 * acknowledged, and when the last of the others was. */
struct model_store {
    uint64_t sent;
    uint32_t waits;
    int64_t acked_ps;
};

/* State of a rank's lane. */
struct model_lane {
    uint32_t begun, done,
        peer_lane;                 /* peer_lane: SEND's and RECV's other end; MM: reads under way */
    uint32_t twin;                 /* SEND, RECV: the lane of the other direction; NOBODY: none */
    uint32_t waiters, next_waiter; /* lanes of the rank that wait for this one */
    bool queued, waiting;
    bool sending; /* SEND, AGG: parts of the current message are still to be sent */
    bool
        link_busy; /* a part of the lane waits for its first link, or the lane waits for an event */
    bool back_to_back;         /* MM: the step that starts now was ready while the link was busy */
    uint16_t *handoffs;        /* [n] hand-offs up to the end of each step */
    int64_t *at;               /* RECV: [n] when each receive was posted */
    struct model_store *store; /* MM: [n] */
    uint32_t part;             /* SEND, AGG: next part of the current message */
    uint64_t sent, arrived, acked; /* SEND: packets */
    int64_t noticed_ps;            /* RECV, AGG: when the program notices the latest message */
    struct fab_notice notice;      /* RECV, AGG: costs of its port */
    int64_t *free_ps;              /* RECV, AGG: when short protocols are free at its port */
    bool is_long;                  /* RECV, AGG: its messages cannot use short protocols */
    uint32_t published, credit;    /* receives: RECV: as told to the sender; SEND: as told by it */
    uint32_t come; /* RECV: messages that have arrived, even if no step waits for them yet */
    struct model_path *path, *back; /* SEND, MM: to the peer (switch) and back */
    int64_t ack_ps;                 /* MM: when the last step was acknowledged */
    struct model_mm *mm;
    struct model_group *agg;
    uint32_t member, slots_out; /* AGG: index among the members; aggregation slots in use */
};

struct model_rank {
    struct sched s;
    struct model_lane *lane;
    int64_t *free_ps; /* [ports of its host] for model_lane.free_ps */
};

/* HOP: the first frame of a part has reached its next link, or its last frame the end of its path.
 * LINK: a link with a queue may be free. PAUSE, RESUME: a node pauses or resumes a link. STORE: a
 * multimem store has reached its switch. ASK: so has the request of a load. READ: the switch's
 * request has reached a member. DATA: the member's data has reached the switch. FREE: a load's
 * buffer is free. REDUCED: an aggregation node has reduced a part. MM_POST: a step is posted.
 * MM_LINK: a link of multimem may be free. */
enum event_kind {
    EV_DONE,
    EV_TRY,
    EV_HOP,
    EV_LINK,
    EV_PAUSE,
    EV_RESUME,
    EV_STORE,
    EV_ASK,
    EV_READ,
    EV_DATA,
    EV_FREE,
    EV_REDUCED,
    EV_MM_POST,
    EV_MM_LINK
};
struct cost_event {
    int64_t at;
    uint64_t order;
    uint32_t rank, lane, step; /* step: HOP the part, LINK, PAUSE and RESUME the link */
    uint8_t kind;
};

enum part_kind { PART_DATA, PART_ACK, PART_CREDIT, PART_EDGE, PART_EXCHANGE };
/* A part of a message, or its ACKs, on the links of its path. */
struct model_part {
    enum part_kind kind;
    uint8_t hop;  /* links passed */
    uint8_t edge; /* EDGE: enum edge_kind; EXCHANGE: enum exchange_kind */
    bool last;    /* the message's last part; ACK: for the last part */
    uint32_t rank,
        lane;      /* DATA, ACK: of the sender of the data; EDGE: of the member that sends, else
                            NOBODY */
    uint32_t step; /* message of the lane or group */
    uint32_t part; /* EDGE: index of the part; EXCHANGE: not 0: sent again */
    uint32_t end;  /* EDGE: destination node or member; EXCHANGE: rank or first switch */
    uint32_t first,
        packets;    /* packets of the message before the part, and in it; EXCHANGE: ranks */
    uint32_t next;  /* next in a queue, or in the list of free parts */
    uint64_t acked; /* ACK: number of acknowledged packets; CREDIT: number of receives */
    struct model_msg msg;
    int64_t tail; /* when its last bit arrives at the node that its first frame has reached */
    const struct model_path *path, *back;
    struct model_group *group; /* EDGE */
};

/* A direction of a link. */
struct model_queue {
    struct {
        uint32_t head, tail;
    } data, acks; /* a host's ACKs go first */
    bool timer;   /* an EV_LINK is queued */
    bool paused;
    /* PFC: bytes that came in by this link and are still in the switch at its end. xoff 0: no PFC.
     */
    bool over;
    uint32_t held_pkts, xoff_pkts, xon_pkts;
    uint64_t held, xoff, xon;
};

struct model {
    const struct fabric *fab;
    struct sched_in in; /* rank is filled in by turns */
    const uint16_t *host_of_rank;
    const uint16_t *tree;
    unsigned n_trees;
    uint32_t window;
    struct topo topo;
    /* Directions of links, then the hosts' NIC loops, over which ranks of one host send. */
    unsigned n_dir;
    int64_t *free_ps;   /* [n_dir] when the link is free */
    int64_t *fetch_ps;  /* [n_dir] when the port that sends on it can fetch the next request */
    int64_t *engine_ps; /* [nodes] when the aggregation node has reduced all complete parts */
    uint64_t *bytes;    /* [n_dir] bytes of the whole operation */
    struct model_queue *queue;
    struct model_nic *nic; /* ports of the ranks' hosts (cost_nic.c) */
    struct model_source *source;
    uint32_t n_nics;
    uint32_t *nic_of;        /* [n_dir] index of the NIC that sends on it; NOBODY: a switch does */
    uint32_t *slot_of_rank;  /* [nranks] among those of its host */
    struct model_part *part; /* [parts_room]; unused ones are a list */
    uint32_t n_parts, parts_room, free_part;
    uint32_t part_frames; /* frames of a part */
    bool coarse;          /* too many messages even as whole ones: ACKs are booked at once */
    /* running */
    struct model_rank *rank;
    struct model_group *aggs;
    struct model_plane *planes;      /* cost_mm.c */
    struct model_exchange *exchange; /* cost_exchange.c; NULL: schedules are run */
    struct cost_event *heap;
    uint64_t n_events, capacity, order;
    int64_t end;
    int64_t launch_ps; /* the longest of all runs and ranks */
    unsigned handoffs;
    int rc;
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
/* When a RECV or AGG lane notices a message that arrives now: not before earlier messages. */
int64_t model_noticed(struct model_lane *l, uint64_t len, int64_t now);
/* ---- cost_count.c ---- */

/* Longest time for which a link is busy with the messages of the SEND lanes of the first `senders`
 * of nranks ranks. 0, or -errno as of sched_init(). */
int count_links(struct model *m, unsigned nranks, unsigned senders, uint64_t count,
                double *longest_ps);
/* ---- cost_setup.c ---- */

/* Makes m->rank. Call setup_free() in any case. */
int setup_ranks(struct model *m);
void setup_free(struct model *m);

/* ---- cost_queue.c ---- */

int queue_init(struct model *m);
void queue_free(struct model *m);
/* Sends a copy of p, whose tail, path and msg are set, starting now. */
void queue_send(struct model *m, const struct model_part *p, int64_t now);
/* Sends the ACKs of p as one small part, if any are due with this part. */
void queue_send_acks(struct model *m, const struct model_part *p, int64_t now);
/* Number of ACKs that a receiver sends for `packets` packets of a message, from `first` on: one for
 * each eight, and one for the last. */
uint32_t acks_of(uint32_t first, uint32_t packets, bool last);
/* EV_HOP, EV_LINK, EV_PAUSE and EV_RESUME. */
void queue_event(struct model *m, const struct cost_event *e);
/* Starts the link if it is free, as there is a part for it. */
void queue_kick(struct model *m, uint32_t dirlink, int64_t now);
/* ---- cost_nic.c ---- */

/* Call nic_free() in any case. */
int nic_init(struct model *m);
void nic_free(struct model *m);
/* The first link of the path will be used. */
void nic_note_path(struct model *m, const struct model_path *p);
/* Queues a part for the first link of its path. */
void nic_enqueue(struct model *m, uint32_t part);
/* Whether no process has a part for the link. */
bool nic_is_empty(const struct model *m, uint32_t dirlink);
/* Takes the next part for the link; NOBODY: none. */
uint32_t nic_take(struct model *m, uint32_t dirlink, int64_t now);
/* ---- cost_run.c ---- */

/* Sends the first part of the lane's message `at` a time. */
void run_posted(struct model *m, unsigned rank, unsigned lane, int64_t at, int64_t now);
/* The lane's part has begun on its first link; a part or an ACK has arrived. */
void run_part_left(struct model *m, unsigned rank, unsigned lane, int64_t now);
void run_arrived(struct model *m, const struct model_part *p, int64_t now);
/* The next event in order of time. False: there is none. */
bool run_next(struct model *m, struct cost_event *e);

/* ---- cost_net.c ---- */

int64_t model_latency(const struct model *m, uint32_t dirlink);
/* Whether the switch at the far end of a link forwards frames from their header on. */
bool model_cuts(const struct model *m, uint32_t dirlink);
/* Time from a frame's header to its last bit. */
int64_t model_behind_header(const struct model *m, uint32_t dirlink, uint64_t bytes);
/* Sends a small frame that overtakes others, at time t; returns its arrival. */
int64_t model_send_small(struct model *m, const struct model_path *p, int64_t t, uint64_t wire);

/* Whether ecmp = "hash" chooses paths between these ranks: the model then uses those of balanced
 * ECMP. */
bool model_is_hashed(const struct fabric *fab, unsigned nranks, const uint16_t *host_of_rank);

/* Runs in.count of all ranks: time, bytes of every link and hand-offs in m. */
int model_run(struct model *m);
void model_event(struct model *m, enum event_kind kind, int64_t at, unsigned rank, unsigned lane,
                 uint32_t step);
/* ---- cost_agg.c, cost_edge.c ---- */

int agg_model_begin(struct model *m, unsigned rank, unsigned lane);
bool agg_model_has_window(const struct model *m, unsigned rank, unsigned lane);
void agg_model_step(struct model *m, unsigned rank, unsigned lane, int64_t now);
/* Sends the next part of the lane's current message. */
void agg_model_part(struct model *m, unsigned rank, unsigned lane, int64_t now);
void agg_model_arrived(struct model *m, const struct model_part *p, int64_t now);
void agg_model_reduced(struct model *m, const struct cost_event *e);
void agg_model_end(struct model *m, unsigned rank, unsigned lane);
void agg_model_free(struct model *m);
/* ---- cost_exchange.c ---- */

/* A rank's part has left its send buffer; a part has arrived. */
void exchange_part_left(struct model *m, unsigned rank, int64_t now);
void exchange_arrived(struct model *m, const struct model_part *p, int64_t now);
/* When the end of its path notices a part that arrives at `at`: a rank's GPU needs time, and
 * notices parts in order. */
int64_t exchange_noticed(const struct model *m, const struct model_part *p, int64_t at);
/* ---- cost_mm.c ---- */

int mm_model_begin(struct model *m, unsigned rank, unsigned lane);
void mm_model_free(struct model *m);
void mm_model_step(struct model *m, unsigned rank, unsigned lane, int64_t now);
/* EV_STORE and those after it. */
void mm_model_event(struct model *m, const struct cost_event *e);

#endif
