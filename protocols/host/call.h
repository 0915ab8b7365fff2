/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records in which protocol's function a thread is, in order to report what ended the process:
 * protocols are code of others.
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
 * From now on, a protocol that ends the process is named on stderr: by a signal, stack overflow
 * included (which then has its normal effect), or by exit(), which ends the process with this code.
 * Call it once, before other exit handlers are registered.
 */
void proto_name_ends(int code);

#endif
