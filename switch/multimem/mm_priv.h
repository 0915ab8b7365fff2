/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of multimem, shared by its files. Not for other rooms.
 *
 *   mm.c          the rnic's callbacks; creation and destruction; time
 *   mm_control.c  BIND, READY, UNBIND, ABORT_ACK, PEER_DOWN
 *   mm_group.c    life of a group: quotas, edges, the reasons for its end
 *   mm_check.c    invariants; mm_events.c: names of the last events
 *   mm_load.c     READs of the region: slices, read from the members, reduced, answered
 *   mm_store.c    WRITEs to the region: slices, written to the members, acknowledged
 *
 * Order of work as in the aggregation node (an_priv.h): callbacks may post, but must not destroy
 * queue pairs: they mark the group as doomed, and mm_settle() destroys them.
 */
#ifndef TRIB_SWITCH_MULTIMEM_MM_PRIV_H
#define TRIB_SWITCH_MULTIMEM_MM_PRIV_H

#include "aggregation/mm_proto.h"
#include "switch/multimem/mm.h"
#include "switch/reduce/an_priv.h"

#define MM_MAX_MEMBERS ARITH_MAX_INPUTS
#define MM_STALE       64u

_Static_assert(MM_MAX_MEMBERS <= 256, "mm_load.here has a byte for the index of a member");

#define MM_EDGE_STATES(X) X(NONE) X(BOUND) X(READY) X(LEFT)
enum mm_edge_state {
#define X(name) MM_##name,
    MM_EDGE_STATES(X)
#undef X
        MM_EDGE_STATES_N
};

/* Changes of state in mm.events; "%u": a, then b. */
#define MM_EVENTS(X)                                                                               \
    X(COMPLETE, "multimem group %u is complete: %u members")                                       \
    X(BIND_REFUSED, "multimem group %u: BIND refused with status %u")                              \
    X(REGION, "multimem group %u: region of member %u is bound")                                   \
    X(LOAD_REFUSED, "multimem group %u: READ of member %u is refused")                             \
    X(STORE_REFUSED, "multimem group %u: WRITE of member %u is refused")                           \
    X(MEMBER_DOWN, "multimem group %u: member %u is down")                                         \
    X(DOOMED, "multimem group %u is to be aborted with status %u")                                 \
    X(ABORTED, "multimem group %u is aborted, %u members were bound")                              \
    X(ENDED, "multimem group %u has ended, %u members had left")
enum mm_event_kind {
#define X(name, text) MM_EV_##name,
    MM_EVENTS(X)
#undef X
        MM_EV_EDGE /* + enum mm_edge_state */
};
extern const struct event_kinds mm_event_kinds;

/* A slice of a caller's READ: read from the members (waits), then reduced (ready), then sent. */
struct mm_load {
    STAILQ_ENTRY(mm_load) link; /* in its caller's list, or in the free list */
    struct mm_edge *caller;     /* NULL: dropped, or free */
    uint32_t psn, n_pkts, sent; /* of the response */
    uint32_t len;
    struct mm_what what;
    uint16_t waits, n_here;
    bool ready, virt;
    uint8_t *here;   /* [n] members that have answered, in order of arrival */
    uint8_t *mem;    /* [n] slices, one for each member */
    uint8_t *result; /* ready: the slice in mem that holds the sum */
};
STAILQ_HEAD(mm_loads, mm_load);

/* A slice of a caller's WRITE: filled (open), then written to the members (waits). */
struct mm_store {
    struct qp_mark mark; /* of its first packet */
    struct rte_mbuf *m;  /* chain of its payloads; NULL: lengths only */
    uint64_t off;
    uint32_t len, n_pkts;
    uint16_t waits;
    uint8_t area;
    bool open, others, virt;
};

/* Memory that a member has bound to an area. */
struct mm_memory {
    uint64_t va, length;
    uint32_t rkey, xid;
};

/* A member. */
struct mm_edge {
    struct mm_group *g;
    struct qp *qp;
    struct an_addr addr;
    uint32_t qpn, psn, own_psn;
    uint32_t xid;    /* of its last BIND or READY */
    uint16_t member; /* index in the group */
    uint16_t node;   /* its host; FAB_NONE: outside */
    uint8_t state;   /* enum mm_edge_state */
    bool notified;   /* has acknowledged the abort, or gets no ABORT */
    uint32_t reads;
    struct mm_memory area[MM_AREAS];
    struct an_watch watch;

    struct mm_loads loads; /* issued, in order */
    uint32_t cursor;       /* PSN of the first packet not in a slice yet; valid once issued */
    bool issued, wants;    /* wants: it may have a READ to issue */

    struct mm_store *store; /* ring of g->window */
    uint32_t head, tail, stores;
};

struct mm_group {
    LIST_ENTRY(mm_group) link;
    struct mm *mm;
    uint32_t id, rkey;
    uint64_t key;
    uint64_t length[MM_AREAS]; /* bytes that all members have bound */
    uint16_t mtu, n, window, n_bound, n_ready, n_left;
    unsigned turn; /* member whose READ is issued next */
    struct mm_load load[MM_LOADS];
    struct mm_loads free;
    uint32_t slice;               /* largest load in bytes */
    unsigned n_loads, most_loads; /* buffers in use; buffers that exist */
    unsigned n_stores;            /* of all members */
    uint8_t *mem, *here;
    struct mm_store *stores;
    uint64_t bytes, mbufs; /* reserved */

    bool doomed, failed; /* failed: aborted, until all members have acknowledged it */
    SLIST_ENTRY(mm_group) doomed_link;
    enum agg_status status;
    struct mm_edge *culprit;
    char text[AN_TEXT];
    unsigned tries;
    int64_t deadline;      /* next ABORT; before a failure: when all must be ready */
    int64_t look_ps;       /* next check of idle edges */
    struct mm_edge edge[]; /* [n], at most MM_MAX_MEMBERS */
};

/* A member that has left: a late repeated BIND does not bind it again. */
struct mm_stale {
    uint32_t ip, qpn, psn, group;
    int64_t expires;
};

struct mm {
    struct an *a;
    struct mm_cfg cfg;
    bool carries; /* frames have room for data */
    LIST_HEAD(mm_groups, mm_group) groups;
    SLIST_HEAD(mm_doomed, mm_group) doomed;
    struct mm_stale stale[MM_STALE];
    uint32_t next_stale;
    uint64_t random;
    struct wqe load, store; /* template of every request: only the differing fields are set again */
    struct mm_counters cnt;
    struct events events;
};

static inline void mm_record(struct mm *mm, unsigned kind, uint32_t x, uint32_t y)
{
    events_add(&mm->events, mm->a->now, (uint16_t)kind, x, y);
}

/* mm_check.c */
void mm_check_group(const struct mm_group *g);
#ifdef TRIB_CHECKED
void mm_check_slices(const struct mm_group *g);
#else
static inline void mm_check_slices(const struct mm_group *g)
{
    (void)g;
}
#endif

/* mm.c */
uint64_t mm_random(struct mm *mm);
void mm_send_control(struct mm *mm, const struct an_addr *to, enum agg_type type, struct mm_ctl *c);

/* mm_group.c */
struct mm_group *mm_group_find(struct mm *mm, uint32_t id, uint64_t key);
/* Creates the group of a first BIND. AGG_OK, or the reason, as status and text. */
enum agg_status mm_group_create(struct mm *mm, const struct mm_ctl *c, struct mm_group **out,
                                char *text);
void mm_group_free(struct mm_group *g);
/* Creates and connects the queue pair of a member that binds. */
enum agg_status mm_edge_open(struct mm_group *g, struct mm_edge *e);
void mm_edge_set(struct mm_edge *e, enum mm_edge_state state);
/* Call it when the member has left; frees the group after its last member. */
void mm_edge_left(struct mm_edge *e);
/* Marks the group to be aborted. The first reason counts; culprit may be NULL. */
void mm_doom(struct mm_group *g, enum agg_status status, struct mm_edge *culprit, const char *fmt,
             ...) __attribute__((format(printf, 4, 5)));
void mm_group_abort(struct mm_group *g);
void mm_group_measure(struct mm_group *g); /* updates length[] after a member's change */
const char *mm_who(const struct mm_edge *e, char *buf, size_t size); /* "member 3 (h3)" */
bool mm_group_busy(const struct mm_group *g);
/* At a deadline: ends a group that lost a member, or whose members are not all ready in time. */
void mm_group_tick(struct mm_group *g);

/* mm_control.c */
/* Call it when the member's process is gone: none is left to acknowledge an ABORT. */
void mm_gone(struct mm_edge *e, const char *why);
void mm_lost(struct mm_edge *e, const char *why);

/* mm_load.c */
/* 0, or the -errno that refuses the READ. */
int mm_load_check(struct mm_edge *e, uint64_t va, uint64_t len);
void mm_load_reads(void *user, struct qp *qp, bool again);
int mm_load_fill(void *user, struct qp *qp, uint32_t psn, uint8_t *dst, uint32_t len,
                 uint32_t *virt);
void mm_load_done(struct mm_edge *from, uint32_t i, bool virt);
void mm_load_issue(struct mm_group *g);

/* mm_store.c */
int mm_store_check(struct mm_edge *e, uint64_t va, uint64_t len);
enum sink_verdict mm_store_packet(void *user, struct qp *qp, const struct roce_pkt *k,
                                  struct rte_mbuf *m, uint64_t va);
void mm_store_done(struct mm_edge *e, uint32_t i);
void mm_store_drop_all(struct mm_group *g);

/* wr_id of our requests. */
#define MM_WR_LOAD(e, i)  (1ULL << 32 | (uint64_t)(e)->member << 16 | (i))
#define MM_WR_STORE(e, i) (2ULL << 32 | (uint64_t)(e)->member << 16 | (i))
#define MM_WR_IS_LOAD(id) ((id) >> 32 == 1)
#define MM_WR_MEMBER(id)  ((id) >> 16 & 0xffff)
#define MM_WR_INDEX(id)   ((uint32_t)((id)&0xffff))

#endif
