/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a communicator: session_comm.c (life), session_op.c (operations), deaths.c. */
#ifndef TRIB_HOST_SESSION_COMM_PRIV_H
#define TRIB_HOST_SESSION_COMM_PRIV_H

#include "host/session/liveness.h"
#include "host/session/session.h"
#include "machine/process_monitor.h"

#include <pthread.h>

/* A cached choice of the model, because a prediction takes milliseconds. */
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
    bool ended; /* the operation has ended */
    struct borrowed *next;
};

#define COMM_MAGIC 0x636f6d6d2e747269u /* destroyed communicators have 0 */

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
    struct trib_request *ops; /* requests that the program has not freed, or that run */
    struct borrowed *borrowed;
    int64_t wall_ns, patience_ns;
    int64_t looked_ns;             /* last look for processes that have ended */
    int64_t gone_ns;               /* when a rank's process was first found ended; 0: none */
    uint32_t gone;                 /* that rank */
    int64_t failed_ns;             /* when the communicator failed; 0: it has not */
    bool settled;                  /* it failed, and the search for the reason is over */
    char lost[COMM_TEXT / 2];      /* names the trib-switch or machine that has died */
    struct process_monitor *watch; /* NULL: trib-switch processes cannot be seen */
    struct process_id *process;    /* of each rank; space 0: this process cannot see it */
    uint16_t host[FAB_MAX_MEMBERS];
};

/* Checks what a program passes: false for NULL, a destroyed communicator, or another structure. */
static inline bool session_is_comm(const struct trib_comm *c)
{
    return c && c->magic == COMM_MAGIC;
}
#define SESSION_NO_COMM                                                                            \
    "comm: found %s, expected one of trib_comm_create() that is not destroyed",                    \
        c ? "something that is no communicator" : "no communicator"

/* Makes progress, advances the clock of retries, and looks for deaths. */
void session_comm_drive(struct trib_comm *c);
/* Looks for processes and machines that have ended, and then aborts the communicator (deaths.c). */
void deaths_look(struct trib_comm *c, int64_t now_ns, uint32_t dilation);
/* Why a communicator has failed. A trib-switch or machine that died comes first. */
void deaths_error(struct trib_comm *c, char *text, size_t size);
/* Frees all requests, after comm_destroy(): operations that ran have failed. */
void session_ops_free(struct trib_comm *c);

#endif
