/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of a communicator: the ranks' agreement on them (agree.c), and their execution
 * (exec.c). */
#ifndef TRIB_HOST_COLL_EXEC_H
#define TRIB_HOST_COLL_EXEC_H

#include "base/cacheline.h"
#include "collective/sched.h"
#include "host/coll/mem.h"
#include "host/coll/transport/edge.h"

struct conn;

#define LANE_NONE (~0u)
#define OPS_KNOWN 64 /* operations whose arguments a rank remembers */

/* What the ranks must agree on. */
struct op_id {
    uint32_t seq; /* from 0 */
    enum coll_kind kind;
    enum coll_algo algo;
    enum dtype type;
    enum redop op;
    unsigned root, sparse;
    uint32_t file; /* hash of the schedule's text; 0: none */
    uint64_t count;
};

/* A lane waits for others at two points at most: a RECV posts, and accepts a message that arrived
 * ahead of its receive. */
enum wait_for { WAIT_START, WAIT_TAKE, WAITS };

struct lane_run {
    uint64_t begun, done; /* steps */
    struct conn *conn;    /* SEND, RECV */
    bool active, polled;  /* in exec.ready; in exec.credit */
    bool is_long;         /* SEND: no short protocol is for its messages (topo_is_long()) */
    /* List of the lanes that wait for this one: an entry is lane * WAITS + enum wait_for, LANE_NONE
     * ends it. */
    unsigned waiters;
    struct {
        unsigned next;
        bool on;
        uint64_t count; /* steps that it waits for */
    } wait[WAITS];
} CACHELINE_ALIGNED;

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
    bool cut;              /* s is what a failover has left of it */
};

/* Lanes that may be able to proceed, in the order in which they are run. Ring of `room` entries:
 * each lane of the operation is in it once at most. */
struct lane_queue {
    unsigned *lane;
    unsigned room, head, n;
};

struct exec {
    struct coll_req *head, *tail; /* in the order in which they were started; the first one runs */
    struct coll_req *dead;        /* failed; their users had freed them before */
    struct coll_req *binding;     /* not an operation: its buffers are being bound at the planes */
    bool running, launched;       /* launched: the next operation's `launch` has begun */
    struct lane_queue ready;  /* these lanes are woken: what they waited for may have happened */
    struct lane_queue credit; /* these wait for a credit word, which comes without a completion */
    uint32_t opseq, next_seq; /* of the next to be started; of the next to run */
    uint64_t moved, moved_at_tick;
};

unsigned exec_run(struct comm *c);
int exec_add(struct comm *c, struct coll_req *r); /* 0 or -ENOMEM */
/* Makes room for r's schedule, which has changed. 0 or -ENOMEM. */
int exec_fit(struct comm *c, const struct coll_req *r);
/* Number of the running operation; while none runs, of the last one that did. */
uint32_t exec_seq(const struct comm *c);
void exec_fail(struct comm *c); /* every operation ends with -EIO */
void exec_destroy(struct comm *c);
/* For transports. A lane of the running operation may proceed; LANE_NONE: nothing. */
void exec_wake(struct comm *c, unsigned lane);
/* The lane waits for something that comes without a completion: every exec_run() runs it. */
void exec_poll(struct comm *c, unsigned lane);
/* Step n of the lane is being handed to its transport; called again if that had no room. */
void exec_posted(struct comm *c, struct coll_req *r, unsigned lane, uint64_t n);
/* `n` steps of the lane are done now. */
void exec_done(struct comm *c, struct coll_req *r, unsigned lane, uint64_t n);
/* May the step start? If not, the lane is woken when it may. */
bool exec_may_start(struct coll_req *r, unsigned lane, enum wait_for which, const struct step *st);
/* The step that read `ref` is done; frees the slot. */
void exec_release(struct comm *c, struct coll_req *r, const struct ref *ref);
/* The CPU's lanes where buffers are in GPU memory (gpu.c). */
#define LANE_GPU 16u
unsigned gpu_run(struct comm *c, struct coll_req *r, unsigned lane);
/* Address of what a step refers to; a slot's memory belongs to its connection. */
uint8_t *exec_addr(const struct coll_req *r, const struct ref *ref);
uint32_t exec_lkey(const struct coll_req *r, const struct ref *ref, const struct port *p);

void req_free(struct coll_req *r);
/* Finds transports and memory for the lanes of r->s, in place of those of a former schedule. */
int op_prepare(struct comm *c, struct coll_req *r, char *err);
int op_schedule(struct comm *c, struct coll_req *r, char *err);
/* The operation of this number as it was started here; NULL: not known (any more). */
const struct op_id *op_known(const struct comm *c, uint32_t seq);
/* Another rank's operation differs from ours of the same number: fails with a text that names the
 * difference. */
void op_disagree(struct comm *c, unsigned rank, uint32_t tag);
struct op_id op_id_of(const struct coll_args *a, uint32_t seq);
uint32_t op_tag(const struct op_id *id);
/* An operation without progress asks the ranks that it waits for which operation they run. */
void op_tick(struct comm *c);
void op_input(struct comm *c, unsigned rank, const void *msg, size_t len);
#define OP_MAGIC 0x5452424fu /* "TRBO" */

#endif
