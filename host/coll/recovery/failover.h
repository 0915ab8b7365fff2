/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Failover after an in-network path is refused or fails: the ranks' agreement (failover.c, its
 * messages failover_msg.c, rank 0's verdict failover_verdict.c) and the recovery of operations
 * (op_recovery.c).
 */
#ifndef TRIB_HOST_COLL_RECOVERY_FAILOVER_H
#define TRIB_HOST_COLL_RECOVERY_FAILOVER_H

#include "host/coll/mem.h"
#include "host/coll/recovery/policy.h"

struct agg;
struct conn;
struct transport_events;

#define FAILOVER_TEXT 116 /* bytes of a reason that goes round the ranks */

#define FAILOVER_ROUNDS 200 /* of a communicator: trees return until few are left */

enum failover_state { FAILOVER_NONE, FAILOVER_ASKING, FAILOVER_DONE, FAILOVER_STATES };

/* What the ranks have agreed on in one round. */
struct failover_round {
    unsigned parts;    /* that have failed; PART_BACK: trees are used again from seq on */
    unsigned trees;    /* PART_BACK: those in use from then on; else those whose failure was seen */
    unsigned back;     /* failover.back, when the verdict was given */
    uint32_t seq;      /* operation that is cut; those after it do not use them */
    unsigned protocol; /* trees that its protocols lose, bits as in struct protocols, */
    unsigned fewer;    /* and the parts that go on by others */
    bool whole;        /* it is not cut: no rank has begun it, and it does not use the parts
                        * either */
    bool again;        /* it is not cut: it starts over, from the inputs that were kept */
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
    unsigned stopped;          /* parts that are not used any more, or that are being agreed on */
    unsigned parts;            /* of the round under way */
    unsigned first, trees;     /* trees in use at the beginning, and now (agg_bit()) */
    unsigned lost;             /* of these, whose failure this rank has seen since the last round */
    unsigned back;             /* trees of a round of PART_BACK, under way or next */
    bool missing;              /* some tree is lost (agg.lost) */
    int64_t look_ps;           /* when lost trees are asked again */
    int64_t since_ns;          /* of ASKING */
    struct failover_round *round;   /* [FAILOVER_ROUNDS], from the first one on */
    unsigned n_rounds;              /* over */
    char why[COMM_TEXT];            /* of the round */
    char text[COMM_TEXT];           /* for people, of all rounds */
    struct failover_report *report; /* [nranks], at rank 0 */
    const struct conn *broken;      /* while ASKING; NULL: none */
    struct failover_kept kept[2];   /* by the parity of the operation's number */
    struct region out;              /* where a helper's results go */
    unsigned last_parts;            /* op_recovery_whole() of the last finished operation */
};

/* A part of the in-network path is refused or fails; text as printf. Fails over where the policy
 * has another algorithm, else the communicator fails. */
void failover_begin(struct comm *c, unsigned parts, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* What transports tell (transport/transport_events.h). */
extern const struct transport_events failover_events;
/* All JOINs are answered: lets a round go on that waits for it. */
void failover_fit_known(struct comm *c);
void failover_input(struct comm *c, const void *msg, size_t len);
void failover_tick(struct comm *c);
void failover_destroy(struct comm *c);
/* Allocates memory for what edges keep; keeps an operation's results when it has ended. */
int failover_keep_create(struct comm *c, char *err);
void failover_keep_end(struct comm *c, const struct coll_req *r);
/* For exec.c: before an operation begins. */
void failover_keep_begin(struct comm *c, const struct coll_req *r);
/* For op.c: reduces an operation that was cut before it began here to its rest. */
int failover_started(struct comm *c, struct coll_req *r, char *err);
/* The parts that the operation of this number must not use. */
unsigned failover_gone(const struct comm *c, uint32_t seq);
/* The trees that it may use, if those are not gone. */
unsigned failover_trees(const struct comm *c, uint32_t seq);
/* The first operation that no failure has cut. */
uint32_t failover_floor(const struct comm *c);
/* The operation has been cut, and does not start over: nobody begins it anew. */
bool failover_is_cut(const struct comm *c, uint32_t seq);
/* A round before this one has cut the same operation: the parts are not in it any more. */
bool failover_was_cut(const struct comm *c, const struct failover_round *f);
/* For failover.c: after an agreement. 0, or -errno with a sentence in err. */
int op_recovery(struct comm *c, const struct failover_round *f, char *err);
/* Schedules the operations anew that no rank has begun. */
int op_replan(struct comm *c, char *err);
/* Parts needed by an operation that cannot be cut, because it has several levels, overwrites what
 * it reads at other ranks, or runs by a protocol; 0: it can be cut. */
unsigned op_recovery_whole(const struct sched *s);
void op_recovery_destroy(struct comm *c);

/* ---- trees that return (rejoin.c) ---- */

/* Gives up the trees of the round; those that have not failed are to be joined again at once. */
void rejoin_give_up(struct comm *c, const struct failover_round *f);
/* The trees that a round would leave to be joined again; 0: none, or trees cannot return. */
unsigned rejoin_survivors(const struct comm *c, const struct failover_round *f);
void rejoin_start(struct comm *c);       /* joins failover.back */
bool rejoin_known(const struct comm *c); /* their JOINs are answered */
/* For join.c: an answer to one of them; a lost tree has been left. */
void rejoin_answered(struct comm *c);
void rejoin_left(struct comm *c, struct agg *a);
/* For exec.c, at the start of an operation, while trees are missing. */
void rejoin_look(struct comm *c);
/* At rank 0: `rank` has joined these trees again. */
void rejoin_ready(struct comm *c, unsigned rank, unsigned trees);
/* After the verdict: f->trees are in use from f->seq on. */
int rejoin_apply(struct comm *c, const struct failover_round *f, char *err);

#endif
