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

#define FAILOVER_TEXT 116 /* bytes of a reason that goes round the ranks */

enum failover_state { FAILOVER_NONE, FAILOVER_ASKING, FAILOVER_DONE, FAILOVER_STATES };

/* What the ranks have agreed on in one round. */
struct failover_round {
    unsigned parts; /* that have failed */
    uint32_t seq;   /* operation that is cut; those after it do not use them */
    bool whole;     /* it is not cut: no rank has begun it, and it does not use them either */
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
    unsigned stopped;          /* parts that are not used any more, or that are being agreed on */
    unsigned parts;            /* of the round under way */
    int64_t since_ns;          /* of ASKING */
    struct failover_round round[PARTS];
    unsigned n_rounds;              /* over */
    char why[COMM_TEXT];            /* of the round */
    char text[COMM_TEXT];           /* for people, of all rounds */
    struct failover_report *report; /* [nranks], at rank 0 */
    const struct conn *broken;      /* while ASKING; NULL: none */
    struct failover_kept kept[2];   /* by the parity of the operation's number */
    struct region out;              /* where a helper's results go */
    unsigned last_parts; /* what an operation of several levels needs, of the last one over */
};

/* A part of the in-network path is refused or fails; text as printf. Fails over where the policy
 * has another algorithm, else the communicator fails. */
void failover_begin(struct comm *c, unsigned parts, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
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
/* For exec.c: before an operation begins. */
void failover_keep_begin(struct comm *c, const struct coll_req *r);
/* For op.c: the rest of an operation that was cut before it began here. */
int failover_started(struct comm *c, struct coll_req *r, char *err);
/* The parts that the operation of this number must not use. */
unsigned failover_gone(const struct comm *c, uint32_t seq);
/* For failover.c: after an agreement. 0, or -errno with a sentence in err. */
int op_recovery(struct comm *c, const struct failover_round *f, char *err);
/* Parts needed by an operation that cannot be cut, because it has several levels, overwrites what
 * it reads at other ranks, or is a protocol's affair; 0: it can be cut. */
unsigned op_recovery_whole(const struct sched *s);
void op_recovery_destroy(struct comm *c);

#endif
