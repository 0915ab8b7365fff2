/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a communicator: session_comm.c (life), session_op.c (operations), deaths.c. */
#ifndef TRIB_HOST_SESSION_COMM_PRIV_H
#define TRIB_HOST_SESSION_COMM_PRIV_H

#include "host/session/liveness.h"
#include "host/session/session.h"
#include "machine/process_monitor.h"

#include <pthread.h>

/* An operation takes these predictions from memory, because a prediction takes milliseconds. */
#define CHOICES 16
struct session_choice {
    enum coll_kind kind;
    enum dtype type;
    enum redop op;
    size_t count;
    enum coll_algo algo;
};

/* Memory that is registered for an operation; deregistered when no operation uses it. */
struct borrowed {
    void *buf;
    size_t bytes;
    bool ended; /* its operation has */
    struct borrowed *next;
};

#define COMM_MAGIC 0x636f6d6d2e747269u /* not of one that is destroyed */

struct trib_comm {
    uint64_t magic;
    pthread_mutex_t lock; /* held in every call for the communicator */
    struct session *session;
    struct trib_oob oob;
    struct comm_cfg cfg;
    struct comm *comm;
    bool automatic; /* the algorithm is the model's choice */
    unsigned n_choices;
    struct session_choice choice[CHOICES]; /* a ring */
    struct trib_request *ops;              /* that have not ended, or not been freed */
    struct borrowed *borrowed;
    int64_t wall_ns, patience_ns;
    int64_t looked_ns;             /* for processes that have ended */
    int64_t gone_ns;               /* since when a rank's has, without a word; 0: none */
    uint32_t gone;                 /* that rank */
    int64_t failed_ns;             /* since when the communicator has failed; 0: it has not */
    bool settled;                  /* ... and what may have ended was looked for */
    char lost[COMM_TEXT / 2];      /* the trib-switch or machine that has died */
    struct process_monitor *watch; /* NULL: no trib-switch is seen */
    struct process_id *process;    /* of each rank; space 0: it is not seen */
    uint16_t host[FAB_MAX_MEMBERS];
};

/* What a program passes: NULL, a communicator that is destroyed, or another structure's address is none. */
static inline bool session_is_comm(const struct trib_comm *c)
{
    return c && c->magic == COMM_MAGIC;
}
#define SESSION_NO_COMM                                                                            \
    "comm: found %s, expected one of trib_comm_create() that is not destroyed",                    \
        c ? "something that is no communicator" : "no communicator"

/* Proceeds, and lets time pass for retries. */
void session_comm_drive(struct trib_comm *c);
/* Looks for processes and machines that have ended (deaths.c): the operations of all ranks fail. */
void deaths_look(struct trib_comm *c, int64_t now_ns, uint32_t dilation);
/* Why a communicator has failed: what has ended, where it is known. */
void deaths_error(struct trib_comm *c, char *text, size_t size);
/* After the communicator: its operations have failed, if they had not ended. */
void session_ops_free(struct trib_comm *c);

#endif
