/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of roce/, shared by its files. Not for other rooms.
 *
 *   rnic.c       the set of QPs: dispatch of received packets, turns of sending
 *   rate_limiter.c  DCQCN of an rnic: notifications, and QPs that wait for their rate
 *   fetch.c      requests that the port has not fetched yet
 *   qp.c         life of a QP: number, attributes, errors and flushing
 *   qp_modify.c  states of a QP and the transitions between them
 *   send_queue.c posting and completing
 *   requester.c  send queue to request packets, timeouts
 *   completer.c  responses to completions
 *   responder.c  requests to memory, receives and acknowledgements
 *   reads.c      READ and atomic requests to responses
 *   deferred_responder.c  READs and WRITEs that the owner answers
 *   ud.c         datagrams
 *   local.c      requests that send nothing: memory windows
 *   sge.c        user memory to packets and back
 *   rq.c         receive queues
 *   guard.c      copies of memory that may be unmapped
 *   keepalive.c  whether the peer of an idle connection is there
 *   check.c      invariants of a QP, for checked builds
 *   rnic_events.c   the ring of events
 *
 * Re-entrance: ops.complete, ops.event and ops.sink may post. Posting only appends to a queue and
 * puts the QP into a list, so every caller finishes its own change of state before it calls out.
 */
#ifndef TRIB_ROCE_ENGINE_H
#define TRIB_ROCE_ENGINE_H

#include "base/assert.h"
#include "base/cacheline.h"
#include "base/events.h"
#include "base/timers.h"
#include "roce/counters.h"
#include "roce/guard.h"
#include "roce/psn.h"
#include "roce/rnic.h"
#include "roce/rnic_events.h"

#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#define ROCE_SPECIAL_QPS 8 /* well-known QPNs outside the range of an rnic */
/* Built into the rnic: entries of the table, and timers. */
#define ROCE_FEW_QPS    4
#define ROCE_FEW_TIMERS 3

struct rq {
    uint32_t depth, mask, head, tail;
    uint32_t users; /* QPs that receive from this queue */
    bool shared;
    struct qp *owner; /* the only QP of a queue that is not shared */
    uint32_t stride, max_sge;
    uint8_t *ring; /* struct rwqe with max_sge pieces, each in stride bytes: after this struct, or
                      (rq_resize) a block of its own */
    uint8_t first[] CACHELINE_ALIGNED;
};

/* A posted send, followed by its payload. One cache line if the payload is one sge. */
struct swqe {
    uint64_t wr_id, raddr;
    uint32_t len, imm, rkey;
    uint32_t first_psn, n_pkts;
    uint8_t op, flags, frag, n_sge;
    bool holds; /* the payload is data->held */
    bool virt;  /* READ: some bytes of the response were not carried */
    union sdata {
        struct {
            struct rte_mbuf *mbuf;
            uint32_t off, len;
        } held;
        struct sge sge[0];
        uint8_t inl[0];
    } data[] __rte_aligned(sizeof(struct sge));
};
_Static_assert(sizeof(struct swqe) + sizeof(struct sge) == CACHELINE, "as said");

/* Fields that only some kinds of requests have. */
union sextra {
    struct {
        uint64_t compare_add, swap;
    };
    struct ud_dest ud;
    struct mw_bind bind;
};

/*
 * Send queue: requests in [head, cur) are sent and not acknowledged, those in [cur, tail) wait; cur_pkt
 * packets of request cur are sent. Indices run freely; ring entry is index & mask.
 */
struct requester {
    uint8_t *ring;       /* struct swqe, each in `stride` bytes */
    union sextra *extra; /* after the ring, one for each entry */
    uint32_t stride, max_sge, max_inline;
    uint32_t depth, mask, head, cur, tail, cur_pkt;
    uint32_t seen;     /* requests before it are fetched; tail, unless messages cost time */
    uint32_t post_psn; /* first PSN of the next request posted */
    uint32_t una;      /* every PSN before it is done: acknowledged, READ data received */
    uint32_t nxt;      /* next PSN to send; goes back to una when a packet was lost */
    uint32_t max;      /* one after the last PSN ever sent */
    uint32_t acked;    /* last PSN that the peer acknowledged; may be ahead of una, which waits for
                          READ data */
    uint32_t rd_psns;  /* PSNs of [una, nxt) that belong to READs and atomics */
    uint32_t n_rd;     /* how many of these are sent and not answered */
    uint32_t window;   /* packets that may be unacknowledged */
    uint32_t since_ackreq;
    uint8_t retry_left, rnr_left;
    bool rnr_wait;          /* the deadline is the end of the peer's RNR timer */
    bool gap_seen;          /* a missed READ response was requested again */
    uint32_t gap_psn;       /* gap_seen: PSN of the response that showed it */
    uint32_t silent;        /* requests that ended since the last completion, without one */
    uint8_t failed;         /* wc_status with which request cur fails once all before it are done */
    uint16_t heard;         /* acknowledgements of nothing new, such as answers to keep-alives */
    uint16_t paused, pause; /* extensions of una's timer, in PAUSE_UNITS of a timeout: total, and
                               the last one */
    uint32_t naks, nak_una; /* sequence NAKs since una had the value nak_una */
};

enum msg_kind { MSG_NONE, MSG_SEND, MSG_WRITE };

/* A READ or atomic that is to be answered. */
struct rd_res {
    uint32_t psn, n_pkts;
    uint32_t start, next; /* packets [start, next) are answered since its last request */
    uint32_t rkey, len;
    uint64_t va, orig;
    bool atomic;
    bool again; /* a repetition after it was answered: max_dest_rd_atomic does not count it */
};

struct responder {
    uint32_t epsn, msn;
    uint8_t msg;                 /* enum msg_kind */
    bool nak_sent;               /* sends no further NAK until epsn arrives */
    bool ack_want, ack_deferred; /* deferred: after the READ responses, in their queue */
    bool keepalive;              /* send an empty duplicate (keepalive.c) */
    uint8_t nak;                 /* syndrome to send instead of an ACK; 0: none */
    bool have_rwqe;
    bool reads_blocked; /* deferred: the owner has no data yet, or the READ follows a held
                           WRITE */
    bool holding;       /* deferred: WRITEs from `hold` on are accepted, but not acknowledged yet */
    uint32_t unacked;
    uint32_t got; /* bytes received of the current message */
    uint32_t n_reads;
    uint32_t rkey, left; /* of the current WRITE */
    uint64_t va;
    struct rwqe rwqe;
    struct qp_mark hold;
    /* By PSN: as many as the peer may have outstanding, and as many again for repetitions. */
    struct rd_res reads[2 * ROCE_MAX_RD_ATOMIC];
    struct {
        uint32_t psn;
        bool valid, write; /* write: an ATOMIC_WRITE, which has no orig */
        uint64_t orig;
    } atomics[ROCE_MAX_RD_ATOMIC];
    uint32_t atomic_at;
};

/* Fields in order of use, as in struct rnic. */
struct qp {
    /* Every packet. */
    struct rnic *r;
    uint32_t num;
    uint16_t udp_src;
    uint8_t type, transport; /* transport: upper bits of its opcodes */
    bool sig_all, streaming, deferred, established;
    bool in_send, in_ack, in_delayed_acks, reply_turn;
    enum qp_state state;
    uint32_t pd;
    struct qp_attr attr; /* begins in the first cache line, ends in the next */

    /* Sending. */
    struct requester rqr CACHELINE_ALIGNED;
    struct timer timer;
    TAILQ_ENTRY(qp) send_link;

    /* Receiving. */
    struct rq *rq CACHELINE_ALIGNED;
    TAILQ_ENTRY(qp) ack_link;
    TAILQ_ENTRY(qp) delayed_ack_link;
    int64_t ack_due; /* in_delayed_acks: when the delayed acknowledgement is sent */
    void *user;
    struct rate_limiter *limiter; /* NULL: DCQCN is off */
    struct responder rsp;

    TAILQ_ENTRY(qp) flush_link, fetch_link;
    bool in_flush, in_fetch, drained_said;
};
_Static_assert(offsetof(struct qp, attr.sq_psn) <= CACHELINE,
               "what every packet needs is in one cache line");

TAILQ_HEAD(qp_list, qp);

/* How long a responder may delay an acknowledgement without AckReq. Far below every timeout. */
#define ROCE_ACK_DELAY_PS (8 * PS_PER_US)

/* Fields in order of use: a simulated fabric has thousands, and each cold cache line costs. */
struct rnic {
    struct qp_list send, ack, flush;
    struct qp_list
        delayed_acks; /* delayed acknowledgements in order of ack_due: all have the same delay */

    struct qp **table; /* [n_table] by number, grown on demand to max_qps + 1 at most */
    uint32_t n_table;
    uint32_t carried; /* longest access to backed memory that fits a frame */
    struct qp *few[ROCE_FEW_QPS];
    int64_t stall_ps; /* no output before then, because the pool was empty; 0: none */
    int64_t now_ps;   /* time of the last call that passed one; for events of other calls */

    struct qp_list fetch;     /* QPs with requests that the port has not fetched (fetch.c) */
    int64_t fetch_ps;         /* when the port fetches the next request; 0: none waits */
    struct timers rate_waits; /* QPs that wait for their rate limit */
    struct timers timers;
    struct timer_entry few_timers[ROCE_FEW_TIMERS];

    struct rnic_cfg cfg CACHELINE_ALIGNED;
    struct roce_counters cnt CACHELINE_ALIGNED;
    struct cacheline_list lines; /* for every frame, the owner's included */
    uint32_t next_index, n_qps;
    struct qp *special[ROCE_SPECIAL_QPS];
    uint32_t n_mcast;
    struct {
        uint32_t ip;
        struct qp *qp;
    } mcast[ROCE_MAX_MCAST];
    struct events events;
};

_Static_assert(offsetof(struct rnic, fetch) == 2 * CACHELINE &&
                   offsetof(struct rnic_cfg, ops.event) == CACHELINE,
               "fields of one use share cache lines");

/* How the execution of a request ended; responder.c maps it to NAK, completion and event. */
enum exec { EXEC_OK, EXEC_RNR, EXEC_INVALID, EXEC_ACCESS, EXEC_LOC_LEN, EXEC_LOC_PROT, EXEC_OP };

/* Result of an attempt to build a frame. */
enum built { BUILT, BUILT_NOTHING, BUILT_NO_MBUF };

/* rnic.c */
/* Queues the QP for its turn to send, if it has something to send. */
void rnic_want_send(struct qp *qp);
void rnic_want_ack(struct qp *qp);
void rnic_want_flush(struct qp *qp);
void rnic_unlist(struct qp *qp, bool acks_too);
static inline void qp_timer_set(struct qp *qp, int64_t deadline)
{
    timer_set(&qp->r->timers, &qp->timer, deadline);
}
static inline void qp_timer_clear(struct qp *qp)
{
    timer_clear(&qp->r->timers, &qp->timer);
}

/* fetch.c */
void fetch_post(struct qp *qp); /* a request was posted */
void fetch_run(struct rnic *r, int64_t now_ps);
int64_t fetch_next(const struct rnic *r);

static inline void qp_record(struct qp *qp, enum rnic_event kind, uint32_t b)
{
    events_add(&qp->r->events, qp->r->now_ps, kind, qp->num, b);
}

/* check.c */
#ifdef TRIB_CHECKED
void qp_check(const struct qp *qp);
#else
static inline void qp_check(const struct qp *qp)
{
    (void)qp;
}
#endif

/* send_queue.c */
void qp_complete_send(struct qp *qp, uint8_t status); /* completes the head of the send queue */
void send_queue_release(struct swqe *w);              /* drops its reference to a held payload */

/* qp_modify.c */
void qp_reset(struct qp *qp);
void qp_set_state(struct qp *qp, enum qp_state to); /* the only function that changes a state */

/* qp.c */
void qp_complete_recv(struct qp *qp, const struct cqe *c);
/* Completes the head with status, flushes the rest, and puts the QP in error. */
void qp_fail(struct qp *qp, uint8_t status);
/* UC, UD: the same for the send queue only; receiving goes on (state SQE). */
void qp_fail_send(struct qp *qp, uint8_t status);
/* From any state but ERR: completes the oldest request with status and flushes the rest. */
void qp_enter_error(struct qp *qp, uint8_t status);
void qp_flush(struct qp *qp);
void qp_event(struct qp *qp, enum qp_event e);

/* requester.c */
int requester_create(struct requester *q, const struct qp_cfg *cfg); /* 0 or -ENOMEM */
bool requester_ready(const struct qp *qp);
enum built requester_build(struct qp *qp, struct rte_mbuf **m, int64_t now_ps);
void requester_rewind(struct qp *qp); /* send again from una */
void requester_timer(struct qp *qp, int64_t now_ps);
void requester_arm(struct qp *qp,
                   int64_t now_ps); /* starts the timeout if something is outstanding */
/* Builds a frame with the headers of k and k->len bytes from `off` of request `index`. BUILT_NOTHING: its
 * memory is not accessible. */
enum built request_payload(struct qp *qp, uint32_t index, uint32_t off, struct roce_pkt *k,
                           struct rte_mbuf **m);

/* completer.c */
enum roce_reason completer_input(struct qp *qp, const struct roce_pkt *k, int64_t now_ps);
void completer_advance(struct qp *qp);

/* responder.c */
enum roce_reason responder_input(struct qp *qp, const struct roce_pkt *k, struct rte_mbuf *m,
                                 int64_t now_ps, bool *taken);
enum roce_reason responder_input_uc(struct qp *qp, const struct roce_pkt *k, struct rte_mbuf *m,
                                    int64_t now_ps, bool *taken);
enum built responder_build_ack(struct qp *qp, struct rte_mbuf **m);
enum built responder_build_deferred(struct qp *qp, struct rte_mbuf **m);
void responder_ack(struct qp *qp, bool now, int64_t now_ps);
void responder_send_delayed_acks(struct rnic *r, int64_t now_ps);
void responder_nak(struct qp *qp, uint8_t syndrome);

/* keepalive.c */
enum built keepalive_build(struct qp *qp, struct rte_mbuf **m);

/* reads.c */
enum exec reads_request(struct qp *qp, const struct roce_pkt *k);
enum roce_reason reads_duplicate(struct qp *qp, const struct roce_pkt *k);
enum built reads_build(struct qp *qp, struct rte_mbuf **m);
void reads_answered(struct responder *s); /* call it when a packet of the oldest one is answered */

/* deferred_responder.c */
enum exec deferred_write(struct qp *qp, const struct roce_pkt *k, struct rte_mbuf *m, bool *taken);
/* Response packet k of the oldest READ. */
enum built deferred_build(struct qp *qp, struct roce_pkt *k, struct rte_mbuf **m);
void deferred_reads(struct qp *qp, bool again);

/* local.c: executes the request at the cursor, which is the head of the send queue */
enum built local_build(struct qp *qp);
/* Invalidates a key for the peer (SEND with invalidate). */
int local_invalidate(struct qp *qp, uint32_t rkey);

/* ud.c */
enum built ud_build(struct qp *qp, struct rte_mbuf **m);
enum roce_reason ud_input(struct qp *qp, const struct roce_pkt *k, struct rte_mbuf *m);

/* rq.c */
uint64_t rq_first_bytes(const struct rq *rq); /* buffer space of the oldest request */

/* sge.c: return -EMSGSIZE if the list is too short, else the result of ops.mem */
int sge_gather(struct qp *qp, const struct sge *s, uint32_t n, uint32_t off, uint8_t *dst,
               uint32_t len, uint32_t *carried, uint32_t *crc);
int sge_scatter(struct qp *qp, const struct sge *s, uint32_t n, uint32_t off, const uint8_t *src,
                uint32_t len, uint32_t virt);
uint64_t sge_bytes(const struct sge *s, uint32_t n);

static inline int qp_mem(struct qp *qp, bool remote, uint32_t key, uint64_t addr, uint64_t len,
                         unsigned access, void **p)
{
    int rc = qp->r->cfg.ops.mem(qp->r->cfg.user, qp, remote, key, addr, len, access, p);

    /* Only reads are checked: the data of a write came in a frame, so they fit. */
    bool read = !(access & (ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE));

    return unlikely(!rc && read && len > qp->r->carried && *p) ? -EFAULT : rc;
}

/* False: the memory was unmapped after its registration. */
static inline bool copy_to_user(const struct qp *qp, void *user, const void *src, size_t n)
{
    if (unlikely(qp->r->cfg.guarded))
        return guard_copy(user, src, n, user);
    memcpy(user, src, n);
    return true;
}

static inline bool copy_from_user(const struct qp *qp, void *dst, const void *user, size_t n)
{
    if (unlikely(qp->r->cfg.guarded))
        return guard_copy(dst, user, n, user);
    memcpy(dst, user, n);
    return true;
}

/* Fields that all packets share. Copied rather than cleared: compilers clear a struct of this size
 * by rep stos, which is slower. */
extern const struct roce_pkt qp_any_packet;

/* Whether a packet of a connection comes from its peer. */
static inline bool qp_is_of_peer(const struct qp *qp, const struct roce_pkt *k)
{
    return k->src_ip == qp->attr.dest_ip && k->v6 == qp->attr.dest_v6 &&
           (k->mark == qp->attr.dest_qpn >> 16 || unlikely(!qp->attr.dest_marks));
}

/* Fills in the fields that all packets to the peer share. */
static inline void qp_packet(const struct qp *qp, struct roce_pkt *k)
{
    const struct rnic_cfg *cfg = &qp->r->cfg;

    *k = qp_any_packet;
    k->tos = cfg->dscp << 2 | 2;
    k->udp_src = qp->udp_src;
    k->v6 = qp->attr.dest_v6;
    k->src_ip = cfg->ip;
    k->dst_ip = qp->attr.dest_ip;
    k->dqpn = qp->attr.dest_qpn;
    k->sqpn = qp->num;
    k->mark = (uint16_t)(qp->num >> 16);
    memcpy(k->src_mac, cfg->mac, 6);
    memcpy(k->dst_mac, qp->attr.dest_mac, 6);
}

static inline struct swqe *sq_at(const struct qp *qp, uint32_t i)
{
    return (struct swqe *)(void *)(qp->rqr.ring + (size_t)(i & qp->rqr.mask) * qp->rqr.stride);
}

static inline union sextra *sq_extra(const struct qp *qp, uint32_t i)
{
    return &qp->rqr.extra[i & qp->rqr.mask];
}

/* Whether a READ response, or an acknowledgement that follows READ responses, can be sent. */
static inline bool responder_ready(const struct qp *qp)
{
    return qp->rsp.n_reads ? !qp->rsp.reads_blocked : qp->rsp.ack_deferred;
}

/* Maps an error of ops.mem for a request of the peer. */
static inline enum exec exec_denied(int rc)
{
    return rc == -EIO ? EXEC_OP : EXEC_ACCESS;
}

/* Requests with a response of their own: READs and atomics. */
static inline bool op_is_read(uint8_t op)
{
    return (op >= WR_READ && op <= WR_FETCH_ADD) || op == WR_ATOMIC_WRITE;
}

static inline bool op_known(unsigned op)
{
    return op <= WR_SEND_INV || op == WR_ATOMIC_WRITE;
}

static inline bool op_is_atomic(uint8_t op)
{
    return op == WR_CMP_SWAP || op == WR_FETCH_ADD;
}

/* Requests that send nothing and have no PSN. */
static inline bool op_is_local(uint8_t op)
{
    return op == WR_LOCAL_INV || op == WR_BIND_MW;
}

static inline bool op_is_send(uint8_t op)
{
    return op == WR_SEND || op == WR_SEND_IMM || op == WR_SEND_INV;
}

static inline uint32_t packets_of(uint32_t len, uint32_t mtu)
{
    return len > mtu ? (len - 1) / mtu + 1 : 1;
}

#endif
