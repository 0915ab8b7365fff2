/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SHARP's interface over tributary/coll.h.
 *
 *   sharp_init.c       contexts: what the processes of a job agree on, capabilities, progress
 *   sharp_comm.c       communicators
 *   sharp_call.c       operations: from descriptors to calls of tributary/coll.h
 *   sharp_request.c    requests, and who comes first
 *   sharp_mem.c        registrations
 *   sharp_part.c       which part of a vector is a rank's
 *   sharp_type.c       types, reductions and errors
 *   sharp_conf.c       SHARP_COLL_* variables
 *   sharp_device.c     device lists
 *   sharp_log.c        the log
 *   sharp_layout.c     sizes and offsets, checked by the compiler
 *
 * One lock for the process protects all lists. Every call holds it, except while it waits for other
 * processes or for the caller's functions, which may call back (UCC's out-of-band calls make
 * progress). Handles of the caller are looked up in the lists before they are used.
 */
#ifndef TRIB_PLUGINS_SHARP_PRIV_H
#define TRIB_PLUGINS_SHARP_PRIV_H

#include <sharp/api/sharp.h>
#include <tributary/coll.h>

#include <stdbool.h>

/* ---- log ---- */

/* As SHARP_COLL_LOG_LEVEL numbers them. */
enum sharp_log {
    SHARP_LOG_FATAL,
    SHARP_LOG_ERROR,
    SHARP_LOG_WARN,
    SHARP_LOG_INFO,
    SHARP_LOG_DEBUG
};
void sharp_log_level(int level);
/* Prints a line to standard error. Returns status. */
__attribute__((format(printf, 3, 4))) int sharp_say(enum sharp_log level, int status,
                                                    const char *format, ...);
#define sharp_refuse(status, ...) sharp_say(SHARP_LOG_ERROR, status, __VA_ARGS__)

/* ---- variables ---- */

enum sharp_var {
    SHARP_VAR_LOG_LEVEL,
    SHARP_VAR_ENABLE_SAT,
    SHARP_VAR_ENABLE_MCAST,
    SHARP_VAR_OSTS_PER_GROUP,
    SHARP_VAR_STATS_DUMP_MODE,
    SHARP_VARS
};
#define SHARP_TEXT 256
struct sharp_conf {
    int value[SHARP_VARS];
};
/* Reads the environment. SHARP_COLL_EINVAL: why (SHARP_TEXT bytes) says what was found and
 * expected; variables after the wrong one have their defaults. */
int sharp_conf_read(struct sharp_conf *conf, char *why);
/* Whether the user has set the variable. */
bool sharp_conf_said(unsigned which);
/* Names of SHARP_COLL_ variables that are set but unknown here, separated by commas. */
void sharp_conf_unknown(char *names, size_t bytes);

/* ---- types, reductions, errors ---- */

bool sharp_type(enum sharp_datatype type, enum trib_type *to);
bool sharp_op(enum sharp_reduce_op op, int *to);
/* Converts type and reduction to those of tributary/coll.h. false: not supported. MAXLOC and MINLOC
 * are of pairs of a value and an int32 index. */
bool sharp_reduces(enum sharp_datatype type, enum sharp_reduce_op op, enum trib_type *t, int *o);
int sharp_status(int negative_errno);

/* ---- devices ---- */

/* Checks a list "NAME[:PORT],..." against the n device names of this host. 0 or a status; why as
 * above. NULL and "" are valid. */
int sharp_devices_check(const char *list, const char *const *name, unsigned n, char *why);
/* As sharp_devices_check(), against the devices of the process; SHARP_COLL_ESESS_INIT: there are
 * none. */
int sharp_devices_open(const char *list, char *why);

/* ---- parts ---- */

/* Number of elements of the rank's block if `count` elements are divided evenly among the ranks,
 * the first of which get one more; *at: its first element. */
size_t sharp_even_part(uint32_t rank, uint32_t ranks, size_t count, size_t *at);

/* ---- contexts and communicators ---- */

enum sharp_kind {
    SHARP_BARRIER,
    SHARP_ALLREDUCE,
    SHARP_REDUCE,
    SHARP_REDUCE_SCATTER,
    SHARP_ALLGATHER,
    SHARP_BCAST,
    SHARP_KINDS
};
extern const char *const sharp_kind_name[SHARP_KINDS];

struct sharp_coll_context {
    uint32_t rank, size;
    struct sharp_coll_out_of_band_colls oob;
    int (*progress)(void);
    int polls, timeout_ms;
    bool hide;
    struct sharp_conf conf;
    struct {
        uint64_t n, bytes, by_hosts;
    } stats[SHARP_KINDS];
    struct sharp_mem *mem;
    struct sharp_coll_context *next;
};

struct sharp_coll_comm {
    struct sharp_coll_context *ctx;
    void *oob_ctx;
    bool oob_failed;
    bool told;     /* the loss of parts of the in-network path has been logged */
    uint64_t pass; /* pass of sharp_progress() that has tested its first request */
    struct trib_comm *trib;
    uint32_t rank, size;
    struct sharp_req *queue; /* requests that are not started completely, in order */
    struct sharp_coll_comm *next;
};

void sharp_lock(void);
void sharp_unlock(void);
extern struct sharp_coll_context *sharp_contexts;
extern struct sharp_coll_comm *sharp_comms;
/* Whether the pointer is a live context. With the lock. */
bool sharp_is_context(const struct sharp_coll_context *ctx);
bool sharp_is_comm(const struct sharp_coll_comm *comm);
/* Ends a communicator that has been unlisted. Without the lock. */
void sharp_comm_end(struct sharp_coll_comm *comm);

/* ---- memory; with the lock ---- */

/* 0; or a status: [ptr, ptr + bytes) is not in the handle's memory. A NULL handle is accepted. */
int sharp_mem_check(const struct sharp_coll_context *ctx, const void *handle, const void *ptr,
                    size_t bytes, const char *what);
void sharp_mem_end(struct sharp_coll_context *ctx);

/* ---- requests; with the lock ---- */

/* A call of tributary/coll.h. */
struct sharp_call {
    enum sharp_kind kind;
    const void *send;
    void *recv;
    size_t count;
    enum trib_type type;
    int op;
    uint32_t root;
};

struct sharp_req {
    struct sharp_coll_comm *comm; /* NULL: the communicator has been destroyed */
    enum sharp_kind kind;
    uint64_t bytes;
    unsigned n, started, ended;
    struct sharp_call *call;
    struct trib_request **part;
    /* Of a reduce-scatter whose buffers only other ranks can interpret (sharp_call.c). */
    struct trib_request *question;
    int32_t view[2];
    bool asks;
    bool freed; /* the caller has freed it while it ran */
    int status; /* 1: it has not ended */
    int failed; /* status of a failed part */
    struct sharp_req *next, *after;
};

/* Makes a request with room for n calls. */
struct sharp_req *sharp_req_new(struct sharp_coll_comm *comm, enum sharp_kind kind, unsigned n);
/* Starts a request now, or after earlier ones. If it is refused, it is freed. */
int sharp_req_start(struct sharp_req *r);
/* Waits for a request and frees it. Without the lock. */
int sharp_req_finish(struct sharp_req *r);
void sharp_reqs_lose(struct sharp_coll_comm *comm);
/* Makes progress on all requests of the process. */
void sharp_progress(void);
/* Makes the calls of a reduce-scatter once its question is answered. */
int sharp_answered(struct sharp_req *r);

#endif
