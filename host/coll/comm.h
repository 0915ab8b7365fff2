/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of a communicator; for host/coll only.
 *
 *   comm.c   life: create, connect, progress, fail, close
 *   mem.c    registered memory
 *   reach.c  a GPU's, as far as HCAs reach it
 *   op.c     the user's calls: what is started, and what the ranks must agree on
 *   stage.c  schedules for buffers in GPU memory (stage.h)
 *   exec.c   the operations in order, each a schedule whose lanes are served by
 *   conn.c     LANE_SEND and LANE_RECV: a queue pair for each pair of ranks and channel (conn.h)
 *   agg.c      LANE_AGG: the queue pair to the aggregation node, with slots; one for each tree
 *   plane.c    LANE_MM: multimem of the GPU node's NVSwitches (mm.h)
 *              (LANE_CPU is served by exec.c itself, and by gpu.c where buffers are in GPU memory)
 *   soon.c   what a turn will look at, on its way into the CPU's caches
 *   ctl.c    datagrams: the other ranks' states
 *   link.c   datagrams: how two ranks make a connection
 *   join.c   datagrams: JOIN, LEAVE, ABORT, PROBE
 *   share.c  what the switches' quotas leave each tree of the job (share.h)
 *   fit.c    what they did grant: the ranks agree on it
 *   policy.c which algorithm comes after one that has failed
 *   fall.c   on without what has failed in the switches: the ranks agree on it
 *   mend.c   what becomes of the operations then
 */
#ifndef TRIB_HOST_COLL_COMM_H
#define TRIB_HOST_COLL_COMM_H

#include "aggregation/proto.h"
#include "base/cacheline.h"
#include "host/coll/alg/sched.h"
#include "host/coll/alg/topo.h"
#include "host/coll/coll.h"
#include "host/coll/transport/edge.h"

struct coll_req;

#define COMM_REGIONS 64
#define COMM_PORTS   FAB_MAX_HOST_PORTS
#define COMM_TMP_MAX (4ULL << 30) /* workspace of an operation */
#define COMM_CQE                                                                                   \
    1024u                        /* completions of datagrams and aggregation edges; connections    \
                                    add theirs */
#define RETRY_NS   200000000LL   /* of a datagram that was not answered */
#define GIVE_UP_NS 15000000000LL /* waiting for an answer that everything depends on */
#define PEER_NS                                                                                    \
    60000000000LL /* waiting for a rank that may be busy with its own for long, where its HCA      \
                     cannot answer for it */
#define CLOSE_NS 2000000000LL /* waiting for an answer when closing */

/* What a completion is of: in the top 8 bits of wr_id; of which connection, tree or port in the
 * next 20; the rest counts. */
enum wr_kind {
    WR_CONN_RECV = 1,
    WR_CONN_SEND,
    WR_AGG_RECV,
    WR_AGG_SEND,
    WR_CTL_RECV,
    WR_CTL_SEND,
    WR_MM
};
#define WR_COUNT_BITS  36
#define WR_INDEX_MAX   ((1u << 20) - 1)
#define WR_ID(k, i, n) ((uint64_t)(k) << 56 | (uint64_t)(i) << WR_COUNT_BITS | WR_COUNT(n))
#define WR_KIND(id)    ((enum wr_kind)((id) >> 56))
#define WR_INDEX(id)   ((unsigned)((id) >> WR_COUNT_BITS) & WR_INDEX_MAX)
#define WR_COUNT(id)   ((id) & ((1ULL << WR_COUNT_BITS) - 1))

/* ---- datagrams (ctl.c) ---- */
#define CTL_RECVS 128u
#define CTL_SENDS 16u
#define CTL_GRH   40u
#define CTL_ROOM  256u /* fits a packet at every MTU */

enum phase { PHASE_NONE, PHASE_READY, PHASE_CLOSING, PHASE_FAILED };

/* Another rank. Linked: it is told our phases, and we wait for its. The ring's neighbours are, so
 * that words go round to all, and whoever has a connection with us. */
struct peer {
    union ibv_gid gid; /* of its datagram queue pair */
    uint32_t qpn;      /* 0: no way to it */
    unsigned port;     /* ours */
    struct ibv_ah *ah;
    bool linked, due; /* due: our phase is to be told as soon as a buffer is free */
    enum phase phase; /* theirs, as far as known */
    enum phase seen;  /* of ours, that they know */
    struct conn *conns;
};

/* Datagrams of a port. */
struct ctl_port {
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint8_t *mem;  /* receive buffers, then send buffers */
    uint32_t busy; /* bit of each send buffer in flight */
};

struct ctl {
    struct ctl_port port[COMM_PORTS];
    struct peer *peer; /* [nranks] once connected */
    bool due;          /* some peer or connection is */
};

int ctl_create(struct comm *c, char *err);
void ctl_destroy(struct comm *c);
/* A datagram; false: lost without a word, because all buffers are in flight (whoever sends
 * repeats). */
bool ctl_send(struct comm *c, unsigned port, struct ibv_ah *ah, uint32_t qpn, const void *msg,
              size_t len);
bool ctl_send_rank(struct comm *c, unsigned rank, const void *msg, size_t len);
void ctl_complete(struct comm *c, const struct ibv_wc *wc);
void ctl_link(struct comm *c, unsigned rank);
/* Our phase changed: tell the linked until they have seen it. */
void ctl_tell(struct comm *c);
void ctl_tick(struct comm *c);
/* Sends what is due as far as there are buffers. */
void ctl_pump(struct comm *c);
bool ctl_all_in(const struct comm *c, enum phase phase); /* the linked, in `phase` or later */
bool ctl_all_know(const struct comm *c);                 /* the linked have seen our phase */

/* ---- aggregation trees: control half (join.c) and transport (agg.c) ---- */
#define AGG_MAX_WINDOW 2048u

/* REFUSED: for want of room at a switch. */
enum join_state { JOIN_NONE, JOIN_ASKED, JOIN_GRANTED, JOIN_REFUSED, JOIN_LEAVING, JOIN_LEFT };

/* Ranks that aggregate together: all, and those of this rank's rail. */
struct agg_group {
    uint32_t id; /* on the fabric */
    struct fab_members members;
    uint16_t *member_of_rank; /* [nranks]; FAB_NONE: not in the group */
};

#define CHAN_OUT (~0u)
struct agg {
    unsigned index; /* among the communicator's */
    unsigned kind;  /* of its group, GROUP_ALL or GROUP_RAIL */
    unsigned chan;  /* of the trees of its group; CHAN_OUT: not used, some rank was refused */
    uint16_t tree;
    struct agg_group *group;
    /* join.c */
    enum join_state state;
    enum agg_status refused;
    uint32_t of_job; /* groups of the job at the aggregation node and further up (agg_ctl.slot) */
    uint16_t leaf;   /* node index of our aggregation node */
    struct ibv_ah *ah;
    uint32_t xid;
    unsigned probes; /* not answered */
    /* agg.c */
    struct port *port;
    struct ibv_qp *qp;
    uint32_t psn;
    uint32_t window; /* slots granted */
    uint32_t slots_out;
    uint32_t depth;      /* messages in flight at most */
    struct agg_hdr *hdr; /* [2 * depth]: sent, received */
    struct ibv_mr *mr;
    uint32_t opseq_out, opseq_in;   /* operations of the protocol, sent and answered */
    uint64_t posted, done, tx_done; /* messages since JOIN */
    unsigned lane;                  /* of the running operation, LANE_NONE */
    /* fall.c: what messages [done, posted) sent where results come to the same place, and a
     * finished operation's last ones: AGG_MSG_BYTES each, by the number of the message. NULL: not
     * kept. */
    uint8_t *kept;
    unsigned n_kept;
    uint64_t op_end; /* messages up to the end of the last finished operation */
};

int join_start(struct comm *c, char *err);       /* sends the JOINs */
void join_leave(struct comm *c, unsigned parts); /* the groups of these parts */
void join_leave_one(struct comm *c, struct agg *a);
void join_input(struct comm *c, const struct agg_ctl *m);
void join_tick(struct comm *c);
/* An operation waits for results: is the aggregation node still there? Called now and then. */
void join_probe(struct comm *c);
void join_destroy(struct comm *c);
bool join_all_granted(const struct comm *c);
bool join_all_left(const struct comm *c);
const char *agg_leaf_name(const struct comm *c, const struct agg *a);
/* A switch's trouble, which other algorithms mend; else a member's. AGG_OK: it said nothing. */
bool join_mendable(enum agg_status s);
/* Member ids of all ranks; id[] may be NULL. Ranks per host: the largest number on one. */
unsigned comm_members(const struct fabric *fab, unsigned nranks, const uint16_t *host_of_rank,
                      struct fab_members *m, uint16_t *id);

/* Joins the trees that the communicator's algorithms need. */
int agg_create(struct comm *c, char *err);
/* The edge that serves a lane, NULL: there is none. */
struct agg *agg_of_lane(struct comm *c, const struct lane *l);
/* How many trees the group of that kind has joined. */
unsigned agg_trees(const struct comm *c, unsigned kind);
int agg_connect(struct comm *c, struct agg *a, const struct agg_ctl *grant); /* 0 or -errno */
void agg_stop(struct comm *c, unsigned parts);
void agg_destroy(struct comm *c);
void agg_complete(struct comm *c, const struct ibv_wc *wc);
unsigned agg_run(struct comm *c, struct coll_req *r, unsigned lane);
/* Slots to ask for: cfg's, or enough for the round trip of the fabric's fastest host link. */
uint32_t agg_window(const struct fabric *fab, uint32_t asked);
uint32_t agg_slots(uint64_t len, uint32_t mtu); /* of a message with len bytes of elements */

static inline bool agg_is_out(const struct agg *a)
{
    return a->chan == CHAN_OUT;
}

/* ---- what was granted (fit.c) ---- */
struct fit {
    char why[128]; /* less than asked for; "": nothing is */
    char less[64]; /* the first such answer to this rank */
};
/* An answer to a JOIN has been dealt with; why: the switch's words where it is less than was
 * asked for, else "". */
void fit_answered(struct comm *c, const char *why);
/* All JOINs are answered. */
bool fit_known(const struct comm *c);
/* The window that was granted on each tree of the list, 0: refused. Returns the rail's. */
uint32_t fit_report(const struct comm *c, uint32_t window[COLL_TREES]);
struct failover_round;
/* What the ranks have agreed on: the least of all, 0: not used by any. Drops what is not used. */
int fit_apply(struct comm *c, const struct failover_round *f, const char *why, char *err);

/* ---- multimem (plane.c) ---- */
struct mmc;
struct plane {
    struct comm *c;
    struct port *port;
    uint16_t node; /* the NVSwitch */
    struct ibv_ah *ah;
    struct mmc *m;
    unsigned lane; /* of the running operation, LANE_NONE */
    uint64_t base; /* steps done before it */
    bool due;      /* has something to say to the switch, once there is room to send */
    struct {
        const void *addr;
        uint64_t bytes;
    } bound[2]; /* areas */
};

int planes_create(struct comm *c, char *err);
int planes_start(struct comm *c, char *err); /* sends the BINDs */
bool planes_ready(const struct comm *c);
const char *planes_late(const struct comm *c); /* a switch that has not answered; NULL: none */
struct mm_ctl;
void planes_input(struct comm *c, unsigned port, const struct mm_ctl *m);
void planes_tick(struct comm *c);
void planes_pump(struct comm *c); /* says what there was no room for */
/* The planes know the operation's memory; false: not yet. */
bool planes_bind(struct comm *c, const struct coll_req *r);
struct plane *plane_of_lane(struct comm *c, const struct lane *l); /* NULL: there is none */
void plane_begin(struct comm *c, unsigned lane);
unsigned plane_run(struct comm *c, struct coll_req *r, unsigned lane);
void plane_complete(struct comm *c, const struct ibv_wc *wc);
void planes_stop(struct comm *c); /* nothing touches memory any more */
void planes_leave(struct comm *c);
bool planes_left(const struct comm *c);
void planes_destroy(struct comm *c);

/* ---- memory (mem.c) ---- */
struct region {
    uint8_t *addr;
    size_t bytes;
    struct ibv_mr *mr[COMM_PORTS];     /* for requests of this rank */
    struct ibv_mr *remote[COMM_PORTS]; /* for those of NVSwitches, which see it from remote_addr on;
                                          NULL: there are none */
    uint64_t remote_addr;
};

/* The workspace of operations, which share it: they run one after the other. Grown, it is another
 * one; the old ones stay as long as operations use them. */
struct workspace {
    struct region mem;
    struct workspace *next;
};
enum work { WORK_TMP, WORK_STAGE, WORKS }; /* BUF_TMP, where buffers are; BUF_STAGE, of the host */

int region_add(struct comm *c, struct region *r, void *buf, size_t bytes);
/* Of a GPU's memory (reach.c): how HCAs reach it, the same for all of it. */
enum gpudirect { REACH_UNKNOWN, REACH_DMABUF, REACH_PEER, REACH_STAGED, REACHES };
int gpudirect_add(struct comm *c, struct region *r, void *buf, size_t bytes);
void region_drop(struct region *r);
/* Of a registered range; NULL when it is not registered. */
const struct region *region_of(const struct comm *c, const void *addr, size_t bytes);
/* What the operation's schedule needs of both. 0 or -ENOMEM. */
int workspace_get(struct comm *c, struct coll_req *r, char *err);
#define MEM_PAGE 4096u
/* Host memory in whole pages that a GPU reaches too where there is one. NULL: no memory. */
void *mem_host(struct comm *c, size_t bytes);
void mem_host_free(struct comm *c, void *p, size_t bytes);
void mem_destroy(struct comm *c);

/* ---- which algorithm (policy.c) ---- */
/* What of the switches may fail by itself. */
enum part { PART_TREES = 1, PART_RAIL = 2, PART_MM = 4 };
/* Asked about like a failure, but nothing fails: trees have smaller windows, or there are fewer. */
#define PART_FIT 8u
#define PARTS    4
unsigned policy_parts(enum coll_algo a); /* that the algorithm needs */
int policy_init(struct comm *c, char *err);
uint64_t policy_code(const struct comm *c); /* the list as a number */
/* What runs an operation, in order of preference, a itself first. Returns how many. */
unsigned policy_list(const struct comm *c, enum coll_kind kind, enum coll_algo a,
                     enum coll_algo list[ALGO_COUNT + 1]);
/* r->s: by the first of the list that needs nothing that has failed, and that these ranks can run;
 * in->algo becomes that. As sched_init. */
int policy_schedule(struct comm *c, struct coll_req *r, struct sched_in *in);
/* Is there something after each algorithm that was set up and needs one of these parts? */
bool policy_goes_on(const struct comm *c, unsigned parts);

/* ---- without what has failed in the switches (fall.c, mend.c) ---- */
enum failover_state { FAILOVER_NONE, FAILOVER_ASKING, FAILOVER_DONE };

/* What the ranks have agreed on, once for each time that something failed. */
struct failover_round {
    unsigned parts; /* that have failed */
    uint32_t seq;   /* operation that is cut; those after it do not use them */
    bool whole;     /* it is not cut: nobody has begun it, and it does not use them either */
    bool again;     /* it is not cut: it starts over, from the inputs that were kept */
    uint32_t fit[COLL_TREES], rail; /* PART_FIT: the least window of each tree, and of all rails */
    struct sched_repair how;
};

/* An operation's input. */
struct failover_kept {
    bool here;
    uint32_t seq;
    uint8_t *data;
    size_t room;
    struct region mem; /* registered when it is needed */
};

struct failover {
    enum failover_state state; /* of the last round */
    unsigned stopped;          /* parts that are not used any more, or that are being asked about */
    unsigned parts;            /* of the round that is being asked about */
    int64_t since_ns;          /* of ASKING */
    struct failover_round round[PARTS];
    unsigned n_rounds;                    /* over */
    char why[COMM_TEXT], text[COMM_TEXT]; /* of the round; for people, of all rounds */
    struct failover_report *report;       /* [nranks], at rank 0 */
    const struct conn *broken;            /* while asking; NULL: none */
    struct failover_kept kept[2];         /* by the parity of the operation's number */
    struct region out;                    /* where a helper's results go */
    unsigned last; /* what operations of several levels need, of the last one over */
};

/* A part of the switches' help is refused or given up: text as printf. Falls back where the
 * policy has another way, else fails. */
void failover_begin(struct comm *c, unsigned parts, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static inline enum part agg_part(const struct agg *a)
{
    return a->kind == GROUP_RAIL ? PART_RAIL : PART_TREES;
}
#define FAILOVER_MAGIC 0x54524246u /* "TRBF" */
/* All answers to JOINs are here: a round may wait for them. */
void failover_fit_known(struct comm *c);
void failover_input(struct comm *c, const void *msg, size_t len);
void failover_tick(struct comm *c);
void failover_destroy(struct comm *c);
/* For agg.c: before a message is posted, and when an operation has ended. */
int failover_keep_create(struct comm *c, struct agg *a);
void failover_keep(struct agg *a, const struct coll_req *r, const struct step *st);
void failover_keep_end(struct comm *c, const struct coll_req *r);
/* For op.c: what is left of an operation, where it is the one that was cut before it began here. */
int failover_started(struct comm *c, struct coll_req *r, char *err);
/* What the operation of this number has to do without. */
unsigned failover_gone(const struct comm *c, uint32_t seq);
/* For fall.c: after an agreement. */
int op_recovery(struct comm *c, const struct failover_round *f, char *err);
/* Parts that an operation needs which cannot be cut: it has several levels, or overwrites what it
 * reads at other ranks; 0: it can. */
unsigned op_recovery_whole(const struct sched *s);
void op_recovery_destroy(struct comm *c);
/* For exec.c: before an operation begins. */
void failover_keep_begin(struct comm *c, const struct coll_req *r);

/* ---- operations (op.c, exec.c) ---- */
#define LANE_NONE (~0u)
#define OPS_KNOWN 64 /* operations of which a rank remembers what they were */

/* What the ranks must agree on. */
struct op_id {
    uint32_t seq; /* from 0 */
    enum coll_kind kind;
    enum coll_algo algo;
    enum dtype type;
    enum redop op;
    unsigned root, sparse;
    uint64_t count;
};

struct lane_run {
    uint64_t begun, done; /* steps */
    struct conn *conn;    /* SEND, RECV */
    bool active, polled;  /* in exec's queues */
    /* A lane waits for another at two places at most: RECV posts, and takes what came ahead. A list
     * of who waits for this one; a place is lane * WAITS + which, LANE_NONE ends it. */
    unsigned waiters;
    struct {
        unsigned next;
        bool on;
        uint64_t count; /* steps that it waits for */
    } wait[2];
} __rte_cache_aligned;
enum wait_for { WAIT_START, WAIT_TAKE, WAITS };

struct coll_req {
    struct comm *c;
    struct coll_req *next;
    struct coll_args args;
    struct sched s;
    struct op_id id;
    uint32_t tag; /* id in short: goes with every message */
    const struct region *in, *out;
    struct workspace *tmp, *stage;
    struct lane_run *lane; /* [s.n_lanes] */
    uint64_t *given;       /* [s.n_lanes * LANE_GPU] for gpu.c, else NULL */
    unsigned lanes_left;   /* that have steps to do */
    int status;            /* as coll_test */
    bool abandoned;        /* freed by the user while it ran */
    bool cut;              /* s is what was left of it after a fall */
};

/* Lanes that may be able to go on, in the order in which they will be looked at. */
struct lane_queue {
    unsigned *lane;
    unsigned room, head, n;
};

struct exec {
    struct coll_req *head, *tail; /* in the order in which they were started; the first one runs */
    struct coll_req *dead;        /* failed, and freed by their users before */
    bool running;
    struct lane_queue ready, credit; /* credit: wait for a word that comes without a completion */
    uint32_t opseq, next_seq;        /* of the next to be started; of the next to run */
    uint64_t moved, moved_at_tick;
};

unsigned exec_run(struct comm *c);
int exec_add(struct comm *c, struct coll_req *r); /* 0 or -ENOMEM */
/* Its schedule is another one now. 0 or -ENOMEM. */
int exec_fit(struct comm *c, const struct coll_req *r);
/* Number of the running operation; while none runs, of the last one that did. */
uint32_t exec_seq(const struct comm *c);
void exec_fail(struct comm *c); /* every operation ends with -EIO */
void exec_destroy(struct comm *c);
/* For transports. A lane of the running operation may go on; `n` steps of it are done now. */
void exec_wake(struct comm *c, unsigned lane);
/* It waits for something that comes without a completion: it is looked at on each exec_run(). */
void exec_poll(struct comm *c, unsigned lane);
void exec_done(struct comm *c, struct coll_req *r, unsigned lane, uint64_t n);
/* May the step start? If not, the lane is woken when it may be. */
bool exec_may_start(struct coll_req *r, unsigned lane, enum wait_for which, const struct step *st);
/* A step that read it is done. */
void exec_release(struct comm *c, struct coll_req *r, const struct ref *ref);
/* The CPU's lanes where buffers are in GPU memory (gpu.c). */
#define LANE_GPU 16u
unsigned gpu_run(struct comm *c, struct coll_req *r, unsigned lane);
/* Where it is; a slot's memory belongs to its connection. */
uint8_t *exec_addr(const struct coll_req *r, const struct ref *ref);
uint32_t exec_lkey(const struct coll_req *r, const struct ref *ref, const struct port *p);

/* For comm_prefetch(): the operation begins. */
void prefetch_list(struct comm *c, const struct coll_req *r);

void req_free(struct coll_req *r);
/* The lanes of r->s: their transports and memory. Again: of what it was before nothing is left. */
int op_prepare(struct comm *c, struct coll_req *r, char *err);
int op_schedule(struct comm *c, struct coll_req *r, char *err);
/* The one with this number as it was started here; NULL: not known (any more). */
const struct op_id *op_known(const struct comm *c, uint32_t seq);
/* Another rank's operation is not ours of the same number: says in what. */
void op_disagree(struct comm *c, unsigned rank, uint32_t tag);
uint32_t op_tag(const struct op_id *id);
/* Operations that do not move: asks those that they wait for what they run. */
void op_tick(struct comm *c);
void op_input(struct comm *c, const void *msg, size_t len);
#define OP_MAGIC 0x5452424fu /* "TRBO" */

/* ---- the communicator (comm.c) ---- */
struct comm {
    /* What every turn looks at. */
    enum comm_state state;
    bool closing;
    unsigned n_ports, n_conns;
    unsigned generation;     /* of connections: one more with each operation that starts over */
    const uint64_t *waiting; /* cfg's */
    struct conn **conn;
    struct exec exec;
    struct cacheline_list lines; /* soon.c: of the running operation */

    struct comm_cfg cfg; /* host_of_rank and ctx are our copies */
    char error[COMM_TEXT];
    struct op_id known[OPS_KNOWN];
    struct topo topo;
    struct port port[COMM_PORTS];
    uint32_t mtu;
    struct region region[COMM_REGIONS];
    unsigned n_regions;
    enum gpudirect reach;              /* of cfg.device's memory */
    char reach_why[128];               /* STAGED */
    struct workspace *work[WORKS];     /* the newest and largest first */
    int64_t now_ns, told_ns, since_ns; /* last tick; last repetition; when connecting or closing
                                          began (-1: no tick since) */
    struct ctl ctl;
    unsigned conn_room;
    struct agg_group group[2]; /* GROUP_ALL, GROUP_RAIL */
    struct agg agg[COLL_TREES + 1];
    unsigned n_aggs;
    struct plane plane[SCHED_MAX_CHANS];
    unsigned n_planes;
    struct failover fall;
    struct fit fit;
};

static inline bool comm_has(const struct comm *c, enum coll_algo a)
{
    return c->cfg.algos >> a & 1;
}

#define COMM_RAIL_ALGOS (1u << ALGO_HIER_SHARP | 1u << ALGO_NVLS_SHARP)
#define COMM_MM_ALGOS   (1u << ALGO_NVLS | 1u << ALGO_NVLS_SHARP)

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
/* A first PSN, the same in every run, that two connections hardly share. */
uint32_t comm_psn(const struct comm *c, unsigned peer, unsigned which);

#endif
