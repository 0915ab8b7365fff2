/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/trunk/trunk_session.h"

#include "base/assert.h"
#include "system/credential.h"

#include <endian.h>
#include <string.h>

/* ---- nonces ---- */

/* A random nonce; 0: the kernel has no random numbers. */
static uint64_t nonce_draw(void)
{
    uint64_t nonce;

    do {
        if (credential_random(&nonce, sizeof(nonce)))
            return 0;
    } while (!nonce);
    return nonce;
}

void session_init(struct trunk_session *s, int64_t now_ns)
{
    memset(s, 0, sizeof(*s));
    s->offer[0] = nonce_draw();
    s->drawn_ns = now_ns;
}

void session_tick(struct trunk_session *s, int64_t now_ns)
{
    if (!s->offer[0])
        s->offer[0] = nonce_draw();
    if (now_ns - s->drawn_ns < SESSION_FRESH_NS)
        return;
    s->offer[1] = now_ns - s->drawn_ns < 2ll * SESSION_FRESH_NS ? s->offer[0] : 0;
    s->offer[0] = nonce_draw();
    s->drawn_ns = now_ns;
    s->window.least = s->reached;
    s->reached = s->window.highest;
}

/* Whether the other end has named one of our unused nonces; marks it as used. */
static bool nonce_use(struct trunk_session *s, uint64_t nonce)
{
    if (!nonce || (nonce != s->offer[0] && nonce != s->offer[1]))
        return false;
    if (nonce == s->offer[0])
        s->offer[0] = nonce_draw();
    s->offer[1] = 0; /* a late message with the older nonce must not begin a session */
    return true;
}

/* ---- from one session to the next ---- */

static void session_begin(struct trunk_session *s, uint64_t mine, uint64_t theirs)
{
    session_end(s);
    s->mine = mine;
    s->theirs = theirs;
}

void session_end(struct trunk_session *s)
{
    s->mine = s->theirs = 0;
    s->sent = s->reached = 0;
    memset(&s->window, 0, sizeof(s->window));
}

/* ---- messages ---- */

void session_stamp(struct trunk_session *s, struct trunk_header *h, uint64_t asked,
                   uint64_t wall_ns)
{
    bool asks = h->type == TRUNK_HELLO || h->type == TRUNK_CHALLENGE;

    T_ASSERT_HOT(asks ? session_can_ask(s) : session_open(s), "a message without a session");
    h->session = htobe64(asks ? s->offer[0] : s->mine);
    h->peer_session = htobe64(asks ? asked : s->theirs);
    h->seq = htobe64(!asks ? ++s->sent : h->type == TRUNK_HELLO ? wall_ns : 0);
}

/* A HELLO that is later than all before it cannot be a replay; the others wait for their turn. */
static bool may_answer(struct trunk_session *s, uint64_t hello_ns, int64_t now_ns)
{
    if (hello_ns > s->hello_ns) {
        s->hello_ns = hello_ns;
        return true;
    }
    if (s->answered_ns && now_ns - s->answered_ns < SESSION_ANSWER_NS)
        return false;
    s->answered_ns = now_ns;
    return true;
}

enum session_says session_input(struct trunk_session *s, const struct trunk_header *h,
                                int64_t now_ns)
{
    const uint64_t theirs = be64toh(h->session), mine = be64toh(h->peer_session);

    session_tick(s, now_ns);
    if (h->type == TRUNK_HELLO)
        return session_can_ask(s) && may_answer(s, be64toh(h->seq), now_ns) ? SESSION_ASKED
                                                                            : SESSION_STALE;
    if (session_open(s) && mine == s->mine && theirs == s->theirs) {
        if (h->type == TRUNK_CHALLENGE)
            return SESSION_STALE; /* a second CHALLENGE for our HELLO */
        return trunk_window_take(&s->window, be64toh(h->seq)) ? SESSION_TAKE : SESSION_REPLAY;
    }
    if (h->type == TRUNK_CHALLENGE && session_open(s))
        return SESSION_STALE; /* we have sent no HELLO since */
    if (!nonce_use(s, mine))
        return SESSION_STALE;
    session_begin(s, mine, theirs);
    if (h->type != TRUNK_CHALLENGE)
        (void)trunk_window_take(&s->window, be64toh(h->seq));
    return SESSION_BEGINS;
}
