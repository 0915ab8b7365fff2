/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a message of another machine was sent in the present session with it, or was captured before.
 * Without clock or IO: times are parameters.
 *
 * A session is two nonces, one of each end, that were drawn for it and serve no other. Every message
 * names both. An end takes a session only from a message that names a nonce which it has drawn lately
 * and not used yet: only the other machine, alive since then, can have made that one.
 *
 *     an end without a session                        the other end
 *     HELLO, its nonce x                          ->  notes nothing
 *     takes (x, y): session_begin()               <-  CHALLENGE, its nonce y for x
 *     any other message of (x, y)                 ->  takes (y, x): session_begin()
 *
 * session_begin() also takes the end from a session to the next; session_end() ends it, as when the
 * other machine is silent. The nonces that an end gives are the same in HELLO and CHALLENGE, so two that
 * begin at once find the same session. A nonce lives for SESSION_FRESH_NS to twice that. What was held
 * back on its way within a session is refused when it is older than that, too.
 *
 * Anybody can send a HELLO again, so few are answered, but for those that are later, by their sender's
 * clock, than all that have come: each of these once. So no flood of old ones, to one end or to both,
 * keeps the answer from a new one. A machine whose clock was set back asks among the others until the
 * clock is where it was.
 */
#ifndef TRIB_IO_TRUNK_SESSION_H
#define TRIB_IO_TRUNK_SESSION_H

#include "io/trunk/trunk_wire.h"

#define SESSION_FRESH_NS  1000000000
#define SESSION_ANSWER_NS 1000000 /* between two CHALLENGEs for HELLOs that may have come before */

struct trunk_session {
    uint64_t mine, theirs; /* 0: there is no session */
    uint64_t offer[2]; /* nonces of ours without a session, the newest first; 0: it has one now, or
                          * the kernel had none */
    int64_t drawn_ns;  /* offer[0] */
    int64_t answered_ns; /* the last CHALLENGE of these */
    uint64_t hello_ns;   /* the latest HELLO, by its sender's clock */
    uint64_t sent;       /* number of the last message */
    uint64_t reached;    /* the highest number that had arrived at drawn_ns */
    struct trunk_window window;
};

enum session_says {
    SESSION_TAKE,   /* it is of the session, and new */
    SESSION_BEGINS, /* of a new one, which begins with it */
    SESSION_ASKED,  /* a HELLO: a CHALLENGE is to be sent for its nonce */
    SESSION_STALE,  /* of none that could be */
    SESSION_REPLAY, /* received before, or too old */
};

void session_init(struct trunk_session *s, int64_t now_ns);
/* Draws nonces as they age. Called at least each SESSION_FRESH_NS, or those that were given die early. */
void session_tick(struct trunk_session *s, int64_t now_ns);
void session_end(struct trunk_session *s);
static inline bool session_open(const struct trunk_session *s)
{
    return s->mine != 0;
}
/* Whether there is a nonce to offer. There is none while the kernel has no random numbers. */
static inline bool session_can_ask(const struct trunk_session *s)
{
    return s->offer[0] != 0;
}
/* Writes nonces and number of the next message. `asked`: of a CHALLENGE, the nonce of the HELLO; wall_ns:
 * of a HELLO, the time of day. HELLO and CHALLENGE need a nonce to offer, the others a session. */
void session_stamp(struct trunk_session *s, struct trunk_header *h, uint64_t asked,
                   uint64_t wall_ns);
/* What a header says whose MAC is right. SESSION_TAKE notes its number, SESSION_BEGINS the session; the
 * rest changes nothing but which HELLO was answered, and when. */
enum session_says session_input(struct trunk_session *s, const struct trunk_header *h,
                                int64_t now_ns);

#endif
