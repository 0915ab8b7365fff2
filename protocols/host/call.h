/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which function of which protocol a thread is in: for whoever has to say what has ended the
 * process. Protocols are code of others.
 */
#ifndef TRIB_PROTOCOLS_HOST_CALL_H
#define TRIB_PROTOCOLS_HOST_CALL_H

/* The names must stay valid. Calls do not nest. */
void proto_enter(const char *protocol, const char *function);
void proto_leave(void);
/* call: an expression, or an assignment of the result. */
#define PROTO_CALL(protocol, function, call)                                                       \
    (proto_enter(protocol, function), (void)(call), proto_leave())

/*
 * From now on a protocol that ends the process is named on stderr: by a signal (which then does what
 * it would have done), also for want of stack, or by exit(), which ends the process by this code.
 * Call it once, before other exit handlers are registered.
 */
void proto_name_ends(int code);

#endif
