/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of the aggregation node, shared by its files and multimem. Not for other rooms.
 *
 *   an.c        the endpoint: frames, time and the rnic's callbacks; then the deferred work
 *   slot.c      hot path: DATA of children, one pass over a slot, RESULT to children
 *   engine.c    the time that a reduction takes, if it takes any
 *   stream.c    messages of an edge, packet by packet
 *   fanout.c    which children send elements and which receive them
 *   control.c   JOIN, LEAVE, ABORT, PEER_DOWN, PROBE
 *   join_check.c  whether a sender may send its JOIN
 *   group.c     life of a group: edges, the reasons for its end
 *   idle.c      keep-alives on silent edges
 *   quota.c     slots and mbufs that a group reserves
 *   window.c    takes back window from idle groups for others
 *   an_check.c  invariants; an_events.c: names of the last events
 *   mm*.c       multimem, which shares the rnic and the control queue pair
 *   tombstone.c groups that have ended: ABORTs and LEAVEs still to be answered, late messages
 *
 * Order of work: the rnic calls back in the middle of a frame, when queue pairs may be posted to but not
 * made or destroyed (in_rnic). So callbacks only record the work (control messages in a ring, a group as
 * doomed), and an_settle() does it when the rnic has returned.
 *
 * Ownership: a slot owns the mbufs of its children until the last one arrives; then the result goes to the
 * queue pairs, which hold their own references until it is acknowledged.
 */
#ifndef TRIB_SWITCH_REDUCE_AN_PRIV_H
#define TRIB_SWITCH_REDUCE_AN_PRIV_H

#include "aggregation/narrow.h"
#include "aggregation/proto.h"
#include "base/assert.h"
#include "base/events.h"
#include "roce/rnic.h"
#include "switch/reduce/an.h"
#include "switch/reduce/an_counters.h"
#include "switch/reduce/join_check.h"

#include <sys/queue.h>

#define AN_MAX_CHILDREN ARITH_MAX_INPUTS
#define AN_QPN_BASE     0x10000u
/* The protection domain tells queue pairs of multimem from those of edges. */
#define AN_PD_MM      1u
#define AN_MM_FLIGHT  256u /* packets in flight during a plane's round trip */
#define AN_CTL_DEPTH  256u /* control messages waiting, either way */
#define AN_CTL_ROOM   (ROCE_GRH_BYTES + 256u)
#define AN_TOMBSTONES 64u /* limit of groups that are remembered after their end */
/* A group that has waited for members for so long gives way to a group that finds no room. */
#define AN_GIVES_WAY_PS (10 * PS_PER_MS)
#define AN_TEXT         JOIN_TEXT

/* An AN repeats a control message after 100 us of fabric time, doubling up to 6.4 ms, 16 times: 70 ms in
 * total. */
#define AN_RETRY_PS     (100 * PS_PER_US)
#define AN_RETRY_MAX_PS (6400 * PS_PER_US)
#define AN_RETRIES      16u
/* Idle edges: checked every 2 s of fabric time, and ended 14 s after the peer's last sign of life. */
#define AN_LOOK_PS    (2 * PS_PER_S)
#define AN_KEEPALIVES 6u
/* How long late messages of a group that ended, or was aborted, are recognised. */
#define AN_ENDED_PS   (1 * PS_PER_MS)
#define AN_ABORTED_PS (20 * PS_PER_MS)

/* Source of a control message. */
struct an_addr {
    uint32_t ip, qpn;
    uint8_t mac[6];
};

/* Keep-alive state of a connection (idle.c). */
struct an_watch {
    uint64_t activity; /* as of the last check */
    uint8_t unanswered;
};

/* Messages received on an edge, packet by packet. */
struct an_stream {
    struct agg_hdr hdr; /* of the current or last message */
    uint32_t left;      /* bytes of it not received yet, header included */
    bool any;
    uint64_t slots; /* packets since JOIN */
};

/* PENDING: its queue pair exists, but the JOIN is not answered yet. */
#define EDGE_STATES(X) X(NONE) X(PENDING) X(JOINED) X(LEFT)
enum edge_state {
#define X(name) EDGE_##name,
    EDGE_STATES(X)
#undef X
        EDGE_STATES_N
};

/* One end of an edge: to a child or to the parent. */
struct an_edge {
    struct an_group *g;
    struct qp *qp;
    struct an_addr addr; /* for control messages */
    uint32_t qpn, psn;   /* of the other end */
    uint32_t own_psn;
    uint32_t xid;     /* of its last JOIN */
    uint32_t granted; /* window in the answer to its JOIN */
    uint32_t window;  /* part of it that it may use now */
    uint32_t ring;    /* index of the next slot in the group's ring */
    uint16_t node;    /* an AN's, or the member's host */
    uint16_t member;  /* the member, or the lowest one below an AN */
    bool is_member;
    uint8_t state; /* enum edge_state */
    struct an_watch watch;
    struct an_stream rx;
};

struct an_input {
    struct rte_mbuf *m;
    uint8_t *data;
};

/* Children that send the elements of a message, and that receive them, by index. FAB_NONE: a member that
 * is not below this AN. */
#define AN_FANOUT_ALL 0xfffeu
struct an_fanout {
    uint16_t from, to, not_to;
};

/* One packet of a message to send. The caller owns m; NULL: no bytes are carried. */
struct an_piece {
    struct rte_mbuf *m;
    uint32_t off, len, virt; /* bytes with the header; how many of them are not carried */
    bool head, last;         /* starts, ends the message */
};

/* One packet of the vector, until all children have sent it. */
struct an_slot {
    uint16_t have;      /* children that have sent it */
    uint16_t first;     /* the first of them; its packet gave hdr and len */
    bool head, last;    /* starts, ends a message */
    uint32_t len, virt; /* bytes with the header; how many of them are not carried */
    struct agg_hdr hdr; /* if head; without AGG_F_EMPTY */
    int64_t due_ps;     /* engine.c: when it will be reduced, if it waits */
};

/* ASKING: children wait for the parent's answer. */
#define GROUP_STATES(X) X(ASKING) X(OPEN)
enum group_state {
#define X(name) GROUP_##name,
    GROUP_STATES(X)
#undef X
        GROUP_STATES_N
};

/* Changes of state in an.events; "%u": a, then b. */
#define AN_EVENTS(X)                                                                               \
    X(REFUSED, "group %u: JOIN refused with status %u")                                            \
    X(MESSAGE, "group %u: message reduced up to slot %u") /* in checked builds only */             \
    X(DOOMED, "group %u is to be aborted with status %u")                                          \
    X(ABORTED, "group %u is aborted, %u peers are owed an answer")                                 \
    X(EDGE_DOWN, "group %u: the edge to member %u is down")                                        \
    X(LEAVE, "group %u: LEAVE of member %u")                                                       \
    X(ENDED, "group %u has ended after slot %u")                                                   \
    X(TOMBSTONE, "group %u: tombstone made, aborted: %u")                                          \
    X(ANSWERED, "group %u: tombstone answered by member %u")                                       \
    X(WINDOW, "group %u: window of %u slots")                                                      \
    X(PROBE, "group %u: PROBE answered with status %u")                                            \
    X(NODE_DOWN, "the link to node %u is down")                                                    \
    X(PROCESS_DOWN, "the process of QPNs %u << 16 at address %u has ended")                        \
    X(CUT_OFF, "every link is down, %u groups")
enum an_event {
#define X(name, text) AN_EV_##name,
    AN_EVENTS(X)
#undef X
        AN_EV_EDGE,                          /* + enum edge_state */
    AN_EV_GROUP = AN_EV_EDGE + EDGE_STATES_N /* + enum group_state */
};
extern const struct event_kinds an_event_kinds;

struct an_group {
    LIST_ENTRY(an_group) link;
    struct an *a;
    const struct fab_tree *tree;
    uint32_t id;
    uint64_t key;
    uint16_t mtu;
    uint16_t attempt; /* agg_ctl's */
    uint8_t state;    /* enum group_state */
    bool top;
    struct fab_members members;
    uint32_t window, promised;
    uint32_t full;    /* granted window; `window` is less while others need the rest */
    uint32_t credit;  /* slots that the parent takes now; 0: as many as it granted */
    uint32_t resizes; /* number of the last WINDOW */
    uint32_t n_slots; /* of the ring */
    int64_t born;     /* fabric time of the first JOIN */
    int64_t look_ps;  /* idle.c */
    bool complete;    /* all children have joined */
    uint16_t founder; /* host of the member that joined first; FAB_NONE: an AN's */
    uint32_t of_job;  /* its job's groups here and further up, as in its first JOIN */
    uint16_t n, n_joined, n_left;
    struct an_edge up; /* unused at the top */

    uint64_t next;           /* first slot not yet reduced */
    uint32_t n_due;          /* complete slots from there on that wait for the engine */
    uint64_t results;        /* slots whose result has gone to the children */
    struct agg_hdr cur;      /* message being reduced */
    uint64_t cur_first;      /* its first slot */
    struct an_fanout fanout; /* of cur */
    bool root_known;         /* caches the last root, and the child below which it is */
    uint16_t root, root_child;
    arith_fn kernel;
    uint32_t elem;        /* bytes of an element */
    struct an_slot *slot; /* [n_slots] */
    struct an_input *in;  /* [n_slots][n] */

    /* asking the parent */
    uint32_t xid;
    unsigned tries;
    int64_t deadline;

    /* doomed: the group must end; the reason: */
    bool doomed;
    SLIST_ENTRY(an_group) doomed_link;
    enum agg_status status;
    struct an_edge *culprit; /* gets no ABORT: it has acknowledged, or is gone */
    char text[AN_TEXT];
    char limit[AN_TEXT];    /* why the window is smaller than requested; "": it is not */
    struct an_edge child[]; /* [n], at most AN_MAX_CHILDREN */
};

/* A peer at an edge of a group that has ended. */
struct an_tombstone_peer {
    struct an_addr addr;
    uint32_t qpn, psn, xid;
    uint32_t own_qpn, own_psn; /* our queue pair, for a LEAVE */
    uint16_t member;
    bool up;      /* the parent */
    uint8_t owed; /* message to repeat until it is answered: AGG_ABORT, AGG_LEAVE; 0: none */
};

struct an_tombstone {
    bool used, aborted;
    uint32_t made;  /* sequence number of tombstones */
    uint32_t owner; /* address of the group's first child */
    uint16_t tree;
    uint32_t id;
    uint64_t key;
    uint16_t mtu, attempt;
    enum agg_status status;
    uint32_t slot;
    char text[AN_TEXT];
    unsigned tries;
    int64_t deadline, expires;
    unsigned n;
    struct an_tombstone_peer peer[AN_MAX_CHILDREN + 1];
};

/* A control message that waits for an_settle(), and its receive buffer. */
struct an_message {
    struct an_addr from;
    uint32_t len, buffer;
};

struct an {
    struct an_cfg cfg;
    const struct fab_node *me;
    struct rnic *rnic;
    struct endpoint nic; /* the rnic's */
    struct qp *ctl;
    struct rq *ctl_rq;
    uint8_t *ctl_mem; /* AN_CTL_DEPTH receive buffers of AN_CTL_ROOM */
    struct an_message inbox[AN_CTL_DEPTH];
    uint32_t inbox_head, inbox_tail;
    uint32_t flight; /* limit of a queue pair's unacknowledged packets */
    uint32_t next_xid;
    uint64_t psn_state;
    int64_t now;    /* time of the present call */
    int64_t timer;  /* earliest deadline of groups and tombstones */
    bool room_back; /* a group has released resources */
    bool in_rnic;   /* the rnic may call back: do not create or destroy queue pairs */
    LIST_HEAD(an_groups, an_group) groups;
    SLIST_HEAD(an_doomed, an_group) doomed;
    struct an_tombstone *tombstones; /* [AN_TOMBSTONES] */
    uint32_t next_tombstone;
    struct wqe data,
        say;       /* templates of data sends and control messages: only the differing fields are
                      set again */
    struct mm *mm; /* NULL: no multimem */
    int64_t engine_ps;  /* engine.c: the engine is busy until then */
    int64_t engine_due; /* when the first waiting slot will be reduced */
    struct an_counters cnt;
    uint32_t *over_share; /* [n_hosts] JOINs refused because the host holds its share */
    struct events events;
};

static inline void an_event(struct an *a, unsigned kind, uint32_t x, uint32_t y)
{
    events_add(&a->events, a->now, (uint16_t)kind, x, y);
}

/* Whether a control message about a queue pair comes from the process that owns it. */
static inline bool an_of_sender(const struct an *a, uint16_t host, const struct an_addr *from,
                                uint32_t qpn)
{
    return join_of_sender(a->cfg.fab, host, from->qpn, qpn);
}

/* Mbufs that grants may still promise; 0 if the budget was set below the promises made. */
static inline uint32_t an_mbufs_left(const struct an *a)
{
    return a->cfg.mbuf_budget > a->cnt.mbufs_promised
               ? a->cfg.mbuf_budget - (uint32_t)a->cnt.mbufs_promised
               : 0;
}

/* an.c */
/* Sends a control message. Fills in all fields that do not depend on the group. */
void an_send_control(struct an *a, const struct an_addr *to, enum agg_type type, struct agg_ctl *c);
int64_t an_backoff(unsigned tries);
/* Moves a queue pair from INIT to RTS, with the peer at `to`; attr has QPNs, PSNs, MTU and
 * READs. */
int an_connect(const struct fabric *fab, struct qp *qp, const struct an_addr *to,
               struct qp_attr *attr);

/* an_check.c */
void an_check_group(const struct an_group *g);
void an_check_all(const struct an *a);
#ifdef TRIB_CHECKED
void an_check_slots(const struct an_group *g);
#else
static inline void an_check_slots(const struct an_group *g)
{
    (void)g;
}
#endif

/* stream.c */
/* Advances the stream by one packet. AGG_OK, or the status of an invalid packet, with the mistake in
 * *what. */
enum agg_status stream_packet(struct an_stream *rx, const struct roce_pkt *k, unsigned type,
                              uint32_t mtu, const char **what);

/* fanout.c */
struct an_fanout fanout_of(struct an_group *g, const struct agg_hdr *h);
/* Whether this edge may send a message with this header, as its root and elements require. */
enum agg_status fanout_check(struct an_group *g, const struct an_edge *e, const struct agg_hdr *h,
                             const char **what);
/* Sends a packet to one edge; the queue pair takes a reference of its own. */
void fanout_post(struct an_edge *e, const struct an_piece *p);
void fanout_post_empty(struct an_edge *e, const struct agg_hdr *h, uint8_t type);
void fanout_down(struct an_group *g, const struct agg_hdr *h, const struct an_piece *p);

/* slot.c */
enum sink_verdict slot_input(struct an_edge *e, const struct roce_pkt *k, struct rte_mbuf *m);
void slot_drop_all(struct an_group *g); /* frees the mbufs held */
void slot_reduce(struct an_group *g);   /* the first slot not reduced yet, which is complete */

/* engine.c */
/* Whether the engine will reduce the complete slot later. False: the caller reduces it now. */
bool engine_takes(struct an_group *g, struct an_slot *s);
void engine_tick(struct an *a); /* reduces slots that are due */

/* control.c */
/* Answer a JOIN; a refusal repeats the request c. text: for people; "": the status's own text. */
void control_refuse(struct an *a, const struct an_addr *to, const struct agg_ctl *c,
                    enum agg_status status, const char *text);
void control_grant(struct an_group *g, struct an_edge *e);
void control_input(struct an *a, const struct an_addr *from, const void *p, uint32_t len);

/* group.c */
struct an_group *group_find(struct an *a, uint16_t tree, uint32_t id, uint64_t key);
/* Creates the group of a first JOIN, sent by that child. AGG_OK, or the reason as status and text. */
enum agg_status group_create(struct an *a, const struct agg_ctl *c, const struct fab_tree *t,
                             const struct fab_child *children, unsigned n, unsigned child,
                             struct an_group **out, char *text);
void group_edge_state(struct an_edge *e, enum edge_state state); /* for a child's edge */
/* Creates the queue pair of a child's edge and connects it. */
enum agg_status group_open_edge(struct an_group *g, struct an_edge *e);
void group_close_edge(struct an_edge *e);
/* Sends the JOIN to the parent, or gives up after AN_RETRIES. */
void group_ask(struct an_group *g);
/* Opens the group: at the top after its first JOIN, elsewhere after the parent's grant, with its window
 * and, if that is smaller, the reason. Answers the children. */
int group_granted(struct an_group *g, uint32_t window, const char *limit);
/* Refuses the children and frees the group, after the parent has refused it. */
void group_refuse(struct an_group *g, enum agg_status status, const char *text);
/* Ends the group after its last child has left. */
void group_end(struct an_group *g);
/* Dooms the group because the peer at an edge is gone. */
void group_lost(struct an_group *g, struct an_edge *e);
void group_free(struct an_group *g);
/* Marks the group to be aborted by an_settle(). Callbacks may call it, too. The first reason counts;
 * culprit may be NULL. */
void group_doom(struct an_group *g, enum agg_status status, struct an_edge *culprit,
                const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void group_abort(struct an_group *g); /* the group must be doomed */
/* "rank 3 (h3)", "leaf1": for people. */
const char *group_who(const struct an_group *g, const struct an_edge *e, char *buf, size_t size);
/* "rank 4 (h4)": a member, or the lowest below an AN. */
const char *group_rank(const struct an_group *g, const struct an_edge *e, char *buf, size_t size);
const char *group_me(const struct an_group *g);
bool group_in_operation(const struct an_group *g);
/* Aborts a group that still waits for members when its time is over. */
void group_expire(struct an_group *g);
/* When that time is over; PS_NEVER: all children have joined. */
static inline int64_t group_expires(const struct an_group *g)
{
    return g->complete ? PS_NEVER : g->born + g->a->me->reduce.join_timeout_ps;
}

/* quota.c */
/* Mbufs that the group can hold with this window. */
uint32_t group_mbufs(const struct an_group *g, uint32_t window);
/* Reserves what the group needs and sets its window. If there is no room, aborts groups that have waited
 * for members for long. AGG_OK, or the quota that is exhausted. */
enum agg_status quota_reserve(struct an *a, struct an_group *g, char *text);
/* Changes the window: smaller only while no slot is used and no packet is in flight, larger only if there
 * is room. */
void quota_resize(struct an_group *g, uint32_t window);
void quota_release(struct an_group *g);
/* The group's window if `groups` groups shared all mbufs evenly; at least a message. */
uint32_t quota_even_window(const struct an_group *g, uint32_t groups);
/* The largest window that the group's own and the free resources allow. */
uint32_t quota_most_window(const struct an_group *g);

/* window.c */
/* Makes room for `joining` groups that find fewer mbufs than they ask for: takes from idle groups what they
 * hold beyond an even share. Returns the number of shares; *kept: a busy group holds more than one. */
uint32_t window_make_room(struct an *a, uint32_t joining, bool *kept);
/* Gives groups the window back that they gave, as far as free resources go. */
void window_restore(struct an *a);
bool window_any_gave(const struct an *a); /* and has not got it back */
void window_tell(struct an_edge *e);
void window_tell_all(struct an_group *g);
void window_limit(struct an_group *g); /* sets the limits of its queue pairs after a change */
/* The parent takes `window` slots from now on; number: of its WINDOW. */
void window_of_parent(struct an_group *g, uint32_t window, uint32_t number);

/* idle.c */
/* Checks an edge. False: the peer has answered no keep-alive. */
bool idle_look(struct an *a, struct an_watch *w, struct qp *qp);
void idle_check(struct an_group *g); /* call it at look_ps */

/* tombstone.c */
struct an_tombstone *tombstone_new(struct an_group *g, bool aborted);
void tombstone_add(struct an_tombstone *p, const struct an_edge *e, bool up, enum agg_type owed);
/* The tombstone of the group with this id and key, if it has not expired. */
struct an_tombstone *tombstone_find(struct an *a, uint16_t tree, uint32_t id, uint64_t key);
/* Its peer with this address and queue pair; NULL: none. */
struct an_tombstone_peer *tombstone_peer(struct an_tombstone *p, const struct an_addr *from,
                                         uint32_t qpn);
/* A peer has answered: stops repeating a message to it. */
void tombstone_answered(struct an *a, const struct an_addr *from, const struct agg_ctl *c,
                        enum agg_type owed);
/* The parent has granted a late JOIN of a group that has ended: returns the grant by a LEAVE. */
void tombstone_granted(struct an *a, const struct an_addr *from, const struct agg_ctl *c);
void tombstone_repeat(struct an *a, struct an_tombstone *p); /* sends unanswered messages again */
void tombstone_tick(struct an *a, struct an_tombstone *p);

#endif
