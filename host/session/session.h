/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all communicators of a process share: the fabric that TRIB_RUN and TRIB_HOST name, this
 * host's devices, and the memory that the program has registered. It exists while one of them does.
 */
#ifndef TRIB_HOST_SESSION_SESSION_H
#define TRIB_HOST_SESSION_SESSION_H

#include "host/coll/coll.h"
#include "machine/rundir.h"

#include <tributary/coll.h>

struct session {
    struct rundir rd;
    struct fabric *fab;
    uint16_t host; /* index among the fabric's */
    unsigned n_ctx;
    struct ibv_context *ctx[FAB_MAX_HOST_PORTS]; /* in order of the host's ports */
    unsigned users;
};

/* Opens it, or counts one user more. NULL: err says why. */
struct session *session_get(char *err);
void session_put(void);
/* Registered by the program: the whole of the range that holds this one. False: none does. */
bool session_range_of(const void *buf, size_t bytes, void **base, size_t *whole);

/* For trib_deregister(): every communicator gives the range up. */
void session_add_comm(struct trib_comm *c);
void session_drop_comm(struct trib_comm *c);
int session_comm_forget(struct trib_comm *c, const void *base, size_t bytes); /* session_comm.c */

/* Formats into err, if there is one, and returns rc. */
__attribute__((format(printf, 3, 4))) int session_say(char *err, int rc, const char *format, ...);

#endif
