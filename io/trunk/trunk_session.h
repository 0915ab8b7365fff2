/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tells whether another machine sent a message in the present session, or an attacker replays it.
 * No clock, no IO: times are parameters.
 *
 * A session is two nonces, one of each end, drawn for it alone. Every message carries both. An end
 * begins a session only on a message that carries a nonce which this end has drawn lately and not used
 * yet: only the other machine, alive since then, can have made that message.
 *
 *     an end without a session                        the other end
 *     HELLO, its nonce x                          ->  stores nothing
 *     takes (x, y): session_begin()               <-  CHALLENGE, its nonce y for x
 *     any other message of (x, y)                 ->  takes (y, x): session_begin()
 *
 * session_begin() may also replace a session by the next; session_end() ends one, as when the other
 * machine is silent. An end offers the same nonce in HELLO and CHALLENGE, so two ends that begin at
 * once agree on one session. A nonce lives for SESSION_FRESH_NS to twice that; a message of the session
 * that was delayed for longer is refused, too.
 *
 * Anybody can replay a HELLO, so at most one in SESSION_ANSWER_NS is answered. A HELLO that is later,
 * by its sender's clock, than all before it cannot be a replay, and is answered at once: no flood of
 * old ones, to either end, delays the answer to a new one. A machine whose clock was set back is
 * limited like a replay until its clock is past the latest HELLO.
 */
#ifndef TRIB_IO_TRUNK_SESSION_H
#define TRIB_IO_TRUNK_SESSION_H

#include "io/trunk/trunk_wire.h"

#define SESSION_FRESH_NS  1000000000
#define SESSION_ANSWER_NS 1000000 /* between two CHALLENGEs to HELLOs that may be replayed */

struct trunk_session {
    uint64_t mine, theirs; /* 0: there is no session */
    uint64_t offer[2];     /* our nonces without a session, the newest first; 0: used, or
                        * the kernel had no random numbers */
    int64_t drawn_ns;      /* when offer[0] was drawn */
    int64_t answered_ns;   /* when a HELLO that may be replayed was last answered */
    uint64_t hello_ns;     /* time of the latest HELLO, by its sender's clock */
    uint64_t sent;         /* number of our last message */
    uint64_t reached;      /* highest number that had been received at drawn_ns */
    struct trunk_window window;
};

enum session_says {
    SESSION_TAKE,   /* a new message of the session */
    SESSION_BEGINS, /* the first message of a new session */
    SESSION_ASKED,  /* a HELLO: the caller sends a CHALLENGE for its nonce */
    SESSION_STALE,  /* of another session, or a HELLO or CHALLENGE that is not answered */
    SESSION_REPLAY, /* received before, or too old */
};

void session_init(struct trunk_session *s, int64_t now_ns);
/* Draws a new nonce each SESSION_FRESH_NS. Call it at least that often: nonces die early otherwise. */
void session_tick(struct trunk_session *s, int64_t now_ns);
void session_end(struct trunk_session *s);
static inline bool session_open(const struct trunk_session *s)
{
    return s->mine != 0;
}
/* Whether there is a nonce to offer: there is none while the kernel has no random numbers. */
static inline bool session_can_ask(const struct trunk_session *s)
{
    return s->offer[0] != 0;
}
/* Writes the nonces and the number of the next message into h. asked: for a CHALLENGE, the nonce of the
 * HELLO; wall_ns: for a HELLO, the time of day. HELLO and CHALLENGE need a nonce to offer, others a session. */
void session_stamp(struct trunk_session *s, struct trunk_header *h, uint64_t asked,
                   uint64_t wall_ns);
/* Judges a header whose MAC is right. SESSION_TAKE notes its number, SESSION_BEGINS begins the session;
 * the others change nothing but the record of answered HELLOs. */
enum session_says session_input(struct trunk_session *s, const struct trunk_header *h,
                                int64_t now_ns);

#endif
