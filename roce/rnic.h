/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rnic: a RoCE v2 endpoint as a state machine: a set of queue pairs behind one MAC and IPv4 address. Takes
 * frames and the time, gives frames and a next deadline (struct endpoint). Both ends of every connection
 * use this code: the software HCA (host/hca) and the aggregation node (switch/reduce).
 *
 * No I/O, no clock, no locks, no allocation after rnic_create() and qp_create().
 */
#ifndef TRIB_ROCE_RNIC_H
#define TRIB_ROCE_RNIC_H

#include "roce/cc/dcqcn.h"
#include "roce/counters.h"
#include "roce/endpoint.h"
#include "roce/wire.h"

#include <stdbool.h>

#define ROCE_MAX_SGE       16         /* limit: pieces of a work request */
#define ROCE_MAX_INLINE    256        /* limit: inline bytes of a work request */
#define ROCE_MAX_RD_ATOMIC 16         /* limit: READs and atomics outstanding, either way */
#define ROCE_MAX_MSG       (1u << 30) /* limit: bytes of a message: a quarter of the PSNs at MTU 256 */
#define ROCE_MAX_MCAST     64         /* limit: multicast attachments of an HCA */
#define ROCE_GRH_BYTES                                                                             \
    40 /* space before a received UD payload: an IPv6 header, or IPv4 in bytes 20..39 */

struct rnic;
struct qp;

/* Values are those of enum ibv_qp_type and ibv_qp_state, so that host/hca passes them through. */
enum qp_type { QP_RC = 2, QP_UC = 3, QP_UD = 4 };
enum qp_state { QP_RESET, QP_INIT, QP_RTR, QP_RTS, QP_SQD, QP_SQE, QP_ERR };

/* Values of enum ibv_wr_opcode. */
enum wr_op {
    WR_WRITE,
    WR_WRITE_IMM,
    WR_SEND,
    WR_SEND_IMM,
    WR_READ,
    WR_CMP_SWAP,
    WR_FETCH_ADD,
    WR_LOCAL_INV,        /* RC, UC: invalidates rkey */
    WR_BIND_MW,          /* RC, UC: binds rkey to a window of a region */
    WR_SEND_INV,         /* RC: a SEND that invalidates the receiver's rkey */
    WR_ATOMIC_WRITE = 15 /* RC: eight aligned bytes, written atomically */
};
/* Values of enum ibv_wc_status that the engine produces. */
enum wc_status {
    WC_SUCCESS = 0,
    WC_LOC_LEN_ERR = 1,
    WC_LOC_QP_OP_ERR = 2,
    WC_LOC_PROT_ERR = 4,
    WC_WR_FLUSH_ERR = 5,
    WC_MW_BIND_ERR = 6,
    WC_REM_INV_REQ_ERR = 9,
    WC_REM_ACCESS_ERR = 10,
    WC_REM_OP_ERR = 11,
    WC_RETRY_EXC_ERR = 12,
    WC_RNR_RETRY_EXC_ERR = 13,
    WC_GENERAL_ERR = 21
};
/* Values of enum ibv_access_flags. */
enum {
    ACCESS_LOCAL_WRITE = 1,
    ACCESS_REMOTE_WRITE = 2,
    ACCESS_REMOTE_READ = 4,
    ACCESS_REMOTE_ATOMIC = 8
};
/* Values of enum ibv_send_flags. */
enum { WR_F_FENCE = 1, WR_F_SIGNALED = 2, WR_F_SOLICITED = 4, WR_F_INLINE = 8 };

struct sge {
    uint64_t addr;
    uint32_t len;
    uint32_t lkey;
};

/* Destination of a UD send. */
struct ud_dest {
    uint8_t mac[6];
    bool v6;     /* between the link-local IPv6 addresses */
    uint32_t ip; /* host order */
    uint32_t qpn;
    uint32_t qkey;
};

/* The window of WR_BIND_MW: `length` bytes at addr of the region with a local key. */
struct mw_bind {
    uint64_t addr, len;
    uint32_t lkey;
    uint32_t access; /* interpreted by the owner */
};

/*
 * Which part of a message a work request is. An HCA's requests are whole messages. An aggregation node
 * streams: it appends fragments of one packet each; the first and the last are flagged, those between are
 * 0. Only SENDs can be fragments. A fragment's length must be the path MTU (or a multiple) unless it has
 * WQE_LAST.
 */
enum { WQE_FIRST = 1, WQE_LAST = 2, WQE_WHOLE = 3 };

struct wqe {
    uint64_t wr_id;
    uint8_t op;    /* enum wr_op */
    uint8_t flags; /* WR_F_* */
    uint8_t frag;  /* WQE_WHOLE, or the position of the fragment */
    uint8_t n_sge;
    uint32_t imm;  /* network order, as in ibv_send_wr */
    uint32_t len;  /* with WR_F_INLINE; else qp_post_send computes it from sge, held and virt_len */
    uint32_t rkey; /* WR_SEND_INV: the receiver's; WR_LOCAL_INV, WR_BIND_MW: our own */
    uint64_t raddr;
    uint64_t compare_add, swap;
    struct ud_dest ud;
    struct mw_bind bind;
    /*
     * Payload in an mbuf instead of sge: held_len bytes from held_off of its data. The engine takes a
     * reference (given: the caller's, unless it refuses the request) and drops it when the request is
     * acknowledged or flushed. virt_len bytes that are only counted follow the carried ones; a
     * length-only payload has held = NULL and n_sge = 0, or unbacked sges.
     */
    struct rte_mbuf *held;
    uint32_t held_off, held_len, virt_len;
    bool given;
    struct sge sge[ROCE_MAX_SGE];
    /* WR_F_INLINE: the payload, of len bytes; sge is ignored. */
    uint8_t inl[ROCE_MAX_INLINE];
};

struct rwqe {
    uint64_t wr_id;
    uint32_t n_sge;
    struct sge sge[ROCE_MAX_SGE];
};

/* A receive queue; several QPs may share one (SRQ). Bounded ring, filled by rq_post. */
struct rq;
struct rq *rq_create(uint32_t depth);
struct rq *rq_create_for(uint32_t depth, uint32_t max_sge); /* max_sge: most pieces of a request */
/* Keeps waiting requests in order. 0, -EINVAL (too many wait), -ENOMEM. */
int rq_resize(struct rq *rq, uint32_t depth);
void rq_destroy(struct rq *rq);
int rq_post(struct rq *rq, const struct rwqe *w); /* 0, -ENOMEM (full), -EINVAL */
uint32_t rq_level(const struct rq *rq);
bool rq_take(struct rq *rq, struct rwqe *w); /* takes the oldest */
/*
 * Marks an SRQ. When a QP fails, its own receive queue is flushed with WC_WR_FLUSH_ERR, including requests
 * posted later; requests of a shared queue stay for the other QPs, and the QP reports QP_EV_LAST_WQE. A
 * queue of two or more QPs is shared without this call.
 */
void rq_set_shared(struct rq *rq);

/* A completion, send or receive. */
struct cqe {
    uint64_t wr_id;
    struct qp *qp;
    uint8_t status; /* enum wc_status */
    uint8_t op;     /* enum wr_op of a send; for a receive WR_SEND, WR_SEND_IMM or WR_WRITE_IMM */
    bool is_recv, has_imm, has_inv, solicited, has_grh;
    bool v6; /* UD: the packet came by IPv6 */
    uint32_t byte_len, imm, src_qpn;
    uint32_t ended;    /* sends: requests that ended since the last completion, this one included */
    uint32_t inv_rkey; /* has_inv: the key that the peer invalidated */
    bool virt;         /* a READ whose response carried some bytes as lengths only */
    uint32_t src_ip;   /* host order, UD */
    uint8_t src_mac[6];
    uint8_t tos, ttl;
};

/* Verdict of a streaming sink on an in-order SEND packet. */
enum sink_verdict {
    SINK_TAKEN,  /* the sink owns the mbuf now */
    SINK_COPIED, /* the engine frees it */
    SINK_RNR,    /* RNR NAK: the peer sends the packet again later */
    SINK_INVALID /* a NAK that ends the connection */
};

enum qp_event {
    QP_EV_FATAL,
    QP_EV_ACCESS_ERR,
    QP_EV_REQ_ERR,
    QP_EV_COMM_EST,
    QP_EV_SQ_DRAINED,
    QP_EV_LAST_WQE
};

/*
 * Callbacks of the owner. All are called with the owner's `user`; none may call back into the
 * engine except qp_post_send() and rq_post().
 */
struct rnic_ops {
    /* Resolves memory of a key. Returns 0 and the address in *p (NULL: unbacked region, only lengths are
     * carried), or -EACCES, -EFAULT (bounds), -EINVAL (no such key, other PD). remote: the kind of key;
     * access: ACCESS_*, 0 for local read. */
    int (*mem)(void *user, struct qp *qp, bool remote, uint32_t key, uint64_t addr, uint64_t len,
               unsigned access, void **p);
    void (*complete)(void *user, const struct cqe *c);
    void (*event)(void *user, struct qp *qp, enum qp_event e);
    /* For aggregation nodes: takes each in-order SEND packet of QPs created with streaming = true, in
     * place of a receive queue. */
    enum sink_verdict (*sink)(void *user, struct qp *qp, const struct roce_pkt *pkt,
                              struct rte_mbuf *m, int64_t now_ps);
    /* WR_BIND_MW (b) and WR_LOCAL_INV (b is NULL): 0 or a negative errno. May be NULL: no windows.
     */
    int (*window)(void *user, struct qp *qp, uint32_t rkey, const struct mw_bind *b);
    /* For QPs created with deferred = true. */
    const struct deferred_ops *deferred;
    /* Time within the last window_ps in which some process on the path to the QP's peer and back did not
     * run; acknowledgement timers do not count it (requester.c). NULL: all processes always run, as in
     * virtual time. */
    int64_t (*lateness)(void *user, const struct qp *qp, int64_t window_ps);
};

/*
 * Deferred responder (RC): the owner, instead of the engine from memory, answers the peer's READs and
 * WRITEs later, in order for each QP. ops.mem still decides whether a request is allowed (its *p is not
 * used; -EIO: NAK of remote operational error). SENDs and immediate data are refused. The hooks may call
 * every function declared below them.
 */
struct deferred_ops {
    /* READs have arrived, or (again) must be answered once more from an earlier PSN: see
     * qp_read_from(). */
    void (*reads)(void *user, struct qp *qp, bool again);
    /* Writes the len bytes of response packet psn to dst; the last *virt of them are not written but only
     * counted. Returns 0: send it; -EAGAIN: wait for qp_reads_resume(); else the READ ends with a NAK of
     * remote operational error and the QP is in error. */
    int (*fill)(void *user, struct qp *qp, uint32_t psn, uint8_t *dst, uint32_t len,
                uint32_t *virt);
    /* Handles a WRITE packet, in order. va: address of its first byte. Accepted packets are acknowledged
     * by qp_writes_release(). */
    enum sink_verdict (*write)(void *user, struct qp *qp, const struct roce_pkt *k,
                               struct rte_mbuf *m, uint64_t va);
};

/* The unanswered part of a READ, from packet psn on. */
struct qp_read {
    uint32_t psn, rkey, len;
    uint64_t va;
};
/* A position in the order of the peer's packets: PSN, and number of messages that end before it. */
struct qp_mark {
    uint32_t psn, msn;
};

/* Finds the first READ with an unanswered packet at or after `psn`, and its part from there on. first:
 * the oldest READ, whatever psn is. False: there is none. */
bool qp_read_from(const struct qp *qp, uint32_t psn, bool first, struct qp_read *r);
void qp_reads_resume(struct qp *qp);
/* The mark of the current packet (in deferred_ops.write). */
struct qp_mark qp_mark_of(const struct qp *qp);
/* Acknowledges WRITE packets before the mark; NULL: all. A READ after a WRITE is answered after that
 * WRITE. */
void qp_writes_release(struct qp *qp, const struct qp_mark *held);
/* Ends the oldest request with a NAK of remote operational error; the QP is then in error. */
void qp_refuse(struct qp *qp);

/* Asks the peer of an idle RC connection for a sign of life. False: it is not idle, or not in RTS. */
bool qp_keepalive(struct qp *qp);
/* A value that changes with every request and new acknowledgement of the peer, and with the answer
 * to a keep-alive. */
uint64_t qp_activity(const struct qp *qp);

struct rnic_cfg {
    uint8_t mac[6];
    uint16_t ack_every; /* responder acknowledges after at most this many packets (and at AckReq) */
    uint32_t ip;        /* host order */
    uint32_t qpn_base;  /* QPNs are qpn_base + index (the process's slot in the top 8 bits); index 0
                           is never used by qp_create */
    uint32_t window_pkts; /* unacknowledged packets a QP may have in flight */
    uint8_t dscp;         /* of the lossless class; ECT(0) is set */
    bool guarded;         /* memory may be unmapped: copies are guarded (roce/guard.h) */
    bool far;             /* frames were written by another core: prefetch one ahead */
    int64_t message_ps;   /* cost of a request at the port before it is sent; 0: none */
    struct rte_mempool *pool;
    void *user;
    struct rnic_ops ops;
    uint32_t max_qps;
    struct dcqcn_cfg dcqcn;
    /* Pool for payloads sent by reference, if other requests hold them too (frame_parts_create()).
     * NULL, or empty: payloads are copied. */
    struct rte_mempool *parts;
};

struct qp_cfg {
    enum qp_type type;
    uint32_t sq_depth; /* work requests */
    bool bounded;      /* max_sge and max_inline apply; else ROCE_MAX_SGE and ROCE_MAX_INLINE */
    uint32_t max_sge, max_inline;
    struct rq *rq; /* NULL for streaming QPs */
    bool sig_all, streaming, deferred;
    uint32_t qpn; /* exactly this one (well-known QPNs); 0: the next free one */
    void *user;   /* qp_user() */
    uint32_t pd;  /* passed back in ops.mem by qp_pd() */
};

/* Attributes as in ibv_qp_attr, decoded. Timeouts: 4.096 us * 2^timeout; min_rnr_timer is the IBTA
 * code. */
struct qp_attr {
    enum qp_state state;
    uint32_t dest_ip; /* host order */
    uint32_t dest_qpn;
    uint8_t dest_mac[6];
    bool dest_v6;    /* both ends use their link-local IPv6 addresses */
    bool dest_marks; /* the peer is a node of the fabric, whose packets have a mark (wire.h) */
    uint16_t mtu;    /* bytes: 256..4096 */
    uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer, max_rd_atomic, max_dest_rd_atomic;
    bool exact; /* qp_modify also sets access, qkey and min_rnr_timer that are zero */
    uint32_t sq_psn, rq_psn, qkey;
    unsigned access; /* ACCESS_REMOTE_* */
};

int rnic_create(struct rnic **r, const struct rnic_cfg *cfg);
void rnic_destroy(struct rnic *r);
struct endpoint rnic_endpoint(struct rnic *r);
const struct roce_counters *rnic_counters(const struct rnic *r);
/* The cache lines that the endpoint reads for every frame; the owner adds its own. */
struct cacheline_list *rnic_cachelines(struct rnic *r);
/* Puts every connected QP in error: completes its oldest request with WC_RETRY_EXC_ERR; a QP
 * without requests reports QP_EV_FATAL. */
void rnic_port_down(struct rnic *r, int64_t now_ps);

/* 0, -ENOMEM, -EADDRINUSE, -EINVAL */
int qp_create(struct rnic *r, const struct qp_cfg *cfg, struct qp **qp);
/* Destroys a QP at any time, even with frames in flight. Completes nothing; drops references to held
 * mbufs. */
void qp_destroy(struct qp *qp);
/*
 * Moves to attr->state and sets the attributes of this transition; host/hca checks attribute masks.
 * -EINVAL: no such transition, or a value out of range. Flushed requests complete before it
 * returns.
 *
 * - INIT: access, qkey.
 * - RTR: dest_*, mtu, rq_psn, max_dest_rd_atomic, min_rnr_timer. UD: mtu alone, 0 stands for 4096.
 * - RTS: timeout, retry_cnt, rnr_retry; from RTR also sq_psn, max_rd_atomic.
 * - On the way to RTR and RTS access, qkey and min_rnr_timer are taken too where they are not zero,
 *   or attr->exact.
 * - SQD to SQD with attr->exact: all that RTR and RTS take, but for MTU, PSNs and dest_qpn.
 *
 * UC and UD go to SQE by themselves when a request's memory is not accessible; they go on
 * receiving.
 */
int qp_modify(struct qp *qp, const struct qp_attr *attr);
const struct qp_attr *qp_attributes(const struct qp *qp);
enum qp_state qp_state_of(const struct qp *qp);
uint32_t qp_num(const struct qp *qp);
void *qp_user(const struct qp *qp);
uint32_t qp_pd(const struct qp *qp);
int qp_post_send(struct qp *qp, const struct wqe *w); /* 0, -ENOMEM (queue full), -EINVAL */
uint32_t qp_sq_free(const struct qp *qp);
uint32_t qp_sq_used(const struct qp *qp); /* requests that are not acknowledged, or not yet sent */
/* Sets how many packets may be unacknowledged; before that it is the rnic's window_pkts. */
void qp_set_window(struct qp *qp, uint32_t pkts);
bool qp_holds_receive(const struct qp *qp); /* it has a request for a message that has not ended */
struct qp *rnic_qp(struct rnic *r, uint32_t qpn); /* NULL: none */
/* UD multicast: frames to group ip (host order) reach this QP. */
int qp_attach_mcast(struct qp *qp, uint32_t ip);
int qp_detach_mcast(struct qp *qp, uint32_t ip);

#endif
