/*
 * Inside of a communicator; for host/coll only.
 *
 *   comm.c   life: create, connect, progress, fail, close
 *   exec.c   the operations in order, each a schedule whose lanes are served by
 *   ring.c     LANE_SEND and LANE_RECV: queue pairs to both neighbours, with credits
 *   agg.c      LANE_AGG: the queue pair to the aggregation node, with slots
 *              (LANE_CPU is served by exec.c itself)
 *   ctl.c    datagrams: the neighbours' states
 *   join.c   datagrams: JOIN, LEAVE, ABORT, PROBE
 */
#ifndef TRIB_COLL_COMM_H
#define TRIB_COLL_COMM_H

#include "host/coll/coll.h"
#include "host/coll/edge.h"
#include "host/coll/sched.h"
#include "switch/reduce/proto.h"

#define COMM_REGIONS 64
#define RETRY_NS     200000000LL   /* of a datagram that was not answered */
#define GIVE_UP_NS   15000000000LL /* waiting for an answer that everything depends on */
#define CLOSE_NS     2000000000LL  /* waiting for an answer when closing */

/* What a completion is of: in the top 8 bits of wr_id; the rest counts. */
enum wr_kind {
    WR_RING_RECV = 1,
    WR_RING_SEND,
    WR_RING_CREDIT,
    WR_AGG_RECV,
    WR_AGG_SEND,
    WR_CTL_RECV,
    WR_CTL_SEND
};
#define WR_ID(kind, n) ((uint64_t)(kind) << 56 | (n))
#define WR_KIND(id)    ((enum wr_kind)((id) >> 56))
#define WR_COUNT(id)   ((id)&0xffffffffffffffULL)

/* ---- datagrams (ctl.c) ---- */
#define CTL_RECVS 32u
#define CTL_SENDS 16u
#define CTL_GRH   40u
#define CTL_ROOM  256u /* fits a packet at every MTU */

enum phase { PHASE_NONE, PHASE_READY, PHASE_CLOSING, PHASE_FAILED };

/* A neighbour in the ring; with two ranks both are the same. */
struct peer {
    unsigned rank;
    uint32_t qpn;
    struct ibv_ah *ah;
    enum phase phase; /* theirs, as far as known */
    enum phase seen;  /* of ours, that they know */
};

struct ctl {
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint8_t *mem;  /* receive buffers, then send buffers */
    uint32_t busy; /* bit of each send buffer in flight */
    struct peer peer[2];
    unsigned n_peers;
};

int ctl_create(struct comm *c, char *err);
int ctl_connect(struct comm *c, char *err);
void ctl_destroy(struct comm *c);
/* A datagram; lost without a word when all buffers are in flight (whoever sends repeats). */
void ctl_send(struct comm *c, struct ibv_ah *ah, uint32_t qpn, const void *msg, size_t len);
void ctl_complete(struct comm *c, const struct ibv_wc *wc);
/* Our phase changed: tell the neighbours until they have seen it. */
void ctl_tell(struct comm *c);
void ctl_tick(struct comm *c);
bool ctl_all_in(const struct comm *c,
                enum phase phase);       /* neighbours that are in `phase` or later */
bool ctl_all_know(const struct comm *c); /* neighbours that have seen our phase */

/* ---- the aggregation node's control half (join.c) ---- */
enum join_state { JOIN_NONE, JOIN_ASKED, JOIN_GRANTED, JOIN_LEAVING, JOIN_LEFT };

struct join {
    enum join_state state;
    uint16_t leaf; /* node index of our aggregation node */
    struct ibv_ah *ah;
    struct fab_members members;
    unsigned member; /* our id */
    uint32_t xid;
};

int join_start(struct comm *c, char *err); /* sends the JOIN */
void join_leave(struct comm *c);
void join_input(struct comm *c, const struct agg_ctl *m);
void join_tick(struct comm *c);
void join_destroy(struct comm *c);
/* Member ids of all ranks; id[] may be NULL. Ranks per host: the largest number on one. */
unsigned comm_members(const struct fabric *fab, unsigned nranks, const uint16_t *host_of_rank,
                      struct fab_members *m, uint16_t *id);

/* ---- transport between neighbours (ring.c) ---- */
#define RING_DEPTH      SCHED_SLOTS /* receives posted and messages in flight, at most */
#define RING_SEND_WRS   128u
#define RING_CREDIT_WRS 32u

struct ring {
    struct ibv_qp *right, *left; /* we send to the right and receive from the left */
    uint32_t psn_right, psn_left;
    uint8_t *mem; /* scratch slots, then the credit word */
    struct ibv_mr *mr;
    struct ibv_mr *word_mr;
    uint64_t remote_word; /* left neighbour's credit word, and its key */
    uint32_t remote_key;
    /* Messages since connect; *_base: before the running operation. */
    uint64_t rx_posted, rx_done, rx_seen, rx_base;
    uint64_t scratch_base,
        scratch_next; /* scratch slots used before the running operation, and before the next */
    uint64_t tx_posted, tx_done, tx_base;
    uint64_t published; /* receives that the left neighbour knows of */
    uint64_t credits_posted, credits_done;
    struct {
        uint32_t imm, len;
    } got[RING_DEPTH]; /* completed receives that no operation has taken */
};

int ring_create(struct comm *c, char *err);
int ring_connect(struct comm *c, const struct remote *left, const struct remote *right, char *err);
void ring_stop(struct comm *c);
void ring_destroy(struct comm *c);
void ring_complete(struct comm *c, const struct ibv_wc *wc);
void ring_begin(struct comm *c, struct coll_req *r);
unsigned ring_run(struct comm *c,
                  struct coll_req *r); /* posts what can be posted; returns how much was done */
bool ring_ended(const struct comm *c, const struct coll_req *r);
uint32_t *ring_credit_word(const struct comm *c);
const uint8_t *ring_slot(const struct comm *c, uint64_t slot);

/* ---- transport to the aggregation node (agg.c) ---- */
#define AGG_MAX_WINDOW 2048u

struct agg {
    struct ibv_qp *qp;
    uint32_t psn;
    uint32_t window; /* slots granted */
    uint32_t slots_out;
    uint32_t depth;      /* messages in flight at most */
    struct agg_hdr *hdr; /* [2 * depth]: sent, received */
    struct ibv_mr *mr;
    uint32_t opseq;
    uint64_t posted, done, tx_done; /* messages since JOIN */
};

int agg_create(struct comm *c, char *err);
int agg_connect(struct comm *c, const struct agg_ctl *grant); /* 0 or -errno */
void agg_stop(struct comm *c);
void agg_destroy(struct comm *c);
void agg_complete(struct comm *c, const struct ibv_wc *wc);
unsigned agg_run(struct comm *c, struct coll_req *r);
void agg_end(struct comm *c); /* the operation is done */
/* Slots to ask for: cfg's, or enough for the round trip of the fabric's fastest host link. */
uint32_t agg_window(const struct fabric *fab, uint32_t asked);
uint32_t agg_slots(uint64_t len, uint32_t mtu); /* of a message with len bytes of elements */

/* ---- operations (exec.c) ---- */
struct coll_req {
    struct comm *c;
    struct coll_req *next;
    struct coll_args args;
    struct sched s;
    uint32_t in_lkey, out_lkey;
    uint32_t tag; /* what the ranks must agree on; goes with every message of the ring */
    uint64_t begun[LANES], done[LANES];
    int status;     /* as coll_test */
    bool abandoned; /* freed by the user while it ran */
};

struct exec {
    struct coll_req *head, *tail; /* in the order in which they were started; the first one runs */
    struct coll_req *dead;        /* failed, and freed by their users before */
    bool running;
    uint32_t opseq;
};

unsigned exec_run(struct comm *c);
void exec_fail(struct comm *c); /* every operation ends with -EIO */
void exec_destroy(struct comm *c);

/* ---- the communicator (comm.c) ---- */
struct region {
    uint8_t *addr;
    size_t bytes;
    struct ibv_mr *mr;
};

struct comm {
    struct comm_cfg cfg; /* host_of_rank is our copy */
    enum comm_state state;
    bool closing;
    char error[COMM_TEXT];
    struct port port;
    struct region region[COMM_REGIONS];
    unsigned n_regions;
    int64_t now_ns, told_ns, since_ns; /* last tick; last repetition; when connecting or closing
                                          began (-1: no tick since) */
    struct ctl ctl;
    struct join join;
    struct ring ring;
    struct agg agg;
    struct exec exec;
};

static inline bool comm_has(const struct comm *c, enum coll_algo a)
{
    return c->cfg.algos >> a & 1;
}

static inline enum phase comm_phase(const struct comm *c)
{
    return c->state == COMM_FAILED ? PHASE_FAILED : c->closing ? PHASE_CLOSING : PHASE_READY;
}

/* The first failure counts; text as printf. Stops every queue pair, ends every operation, tells the
 * neighbours. */
void comm_fail(struct comm *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Something that READY waits for has come. */
void comm_check_ready(struct comm *c);
const char *comm_host(const struct comm *c, unsigned rank);
uint32_t comm_psn(const struct comm *c, unsigned which);
/* Local key of a registered range, -EFAULT when it is not registered. */
int comm_lkey(const struct comm *c, const void *addr, size_t bytes, uint32_t *lkey);

#endif
