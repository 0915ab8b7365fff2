/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all communicators of a process share: the fabric that TRIB_RUN and TRIB_HOST name, this
 * host's devices, and the memory that the program has registered. It exists as long as a
 * communicator does.
 */
#ifndef TRIB_HOST_SESSION_SESSION_H
#define TRIB_HOST_SESSION_SESSION_H

#include "host/coll/coll.h"
#include "machine/rundir.h"

#include <tributary/coll.h>

struct session {
    struct rundir rd;
    struct fabric *fab;
    uint16_t host; /* index in fab->hosts */
    unsigned n_ctx;
    struct ibv_context *ctx[FAB_MAX_HOST_PORTS]; /* in order of the host's ports */
    unsigned users;
};

/* Opens the session, or adds a user to the open one. NULL: err has the reason. */
struct session *session_get(char *err);
void session_put(void);
/* Finds the registered range that holds buf. False: the program has registered none. */
bool session_range_of(const void *buf, size_t bytes, void **base, size_t *whole);

/* Lists the communicators, so that trib_deregister() can deregister a range in each. */
void session_add_comm(struct trib_comm *c);
void session_drop_comm(struct trib_comm *c);
int session_comm_forget(struct trib_comm *c, const void *base, size_t bytes); /* session_op.c */

/* Formats into err[TRIB_TEXT], which may be NULL, and returns rc. */
__attribute__((format(printf, 3, 4))) int session_say(char *err, int rc, const char *format, ...);

#endif
