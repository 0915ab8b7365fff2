/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between the trunks of two machines: a header with a keyed MAC (HMAC-SHA-256, truncated to
 * 16 bytes) over header and body. Each is a UDP datagram; messages of frames may be Ethernet frames
 * instead (trunk_carrier.c). No clock, no IO.
 *
 * Every message carries a nonce of each end, which name its session (trunk_session.h), and a sequence
 * number, by which a window refuses replays. Integers are big-endian.
 */
#ifndef TRIB_IO_TRUNK_WIRE_H
#define TRIB_IO_TRUNK_WIRE_H

#include "fabric/fabric.h"
#include "io/trunk/trunk_flow.h"

#include <stdbool.h>
#include <stdint.h>

#define TRUNK_MAGIC   0x54524e4bu
#define TRUNK_VERSION 3u
#define TRUNK_MAC     16u
#define TRUNK_MAX     9216u /* longest datagram: a frame at the largest MTU, or all links' state */

enum trunk_type {
    TRUNK_HELLO = 1, /* asks for a session with the sender's nonce; no body */
    TRUNK_STATE,     /* periodic: clock and links' ends; body: trunk_state, then bits of ends */
    TRUNK_FRAME,     /* body: trunk_frame, then a frame */
    TRUNK_ASK,       /* asks which frames have arrived up to a number; body: trunk_frame */
    TRUNK_ACK,       /* body: trunk_ack */
    TRUNK_CUTS,      /* body: a bit per link of the fabric, set if the sender sees it cut */
    TRUNK_LAG,       /* body: pairs of bucket and count (struct trunk_lag) */
    TRUNK_DILATE,    /* to the clock's owner; body: uint32_t, the dilation to set */
    TRUNK_ORDER,     /* to every machine; body: trunk_order, then a text without 0 */
    TRUNK_COUNT,     /* asks for the bytes that links have carried; body: trunk_counts */
    TRUNK_COUNTS,    /* answers it; body: trunk_counts, then trunk_count of some directions */
    TRUNK_PROBE,     /* shows that the sender's port reaches the receiver; body: zeros */
    TRUNK_CHALLENGE, /* answers TRUNK_HELLO with the sender's nonce and the receiver's; no body */
    TRUNK_TYPES
};

/* This layout is fixed since version 2, so that other versions can be recognised. */
struct trunk_header {
    uint32_t magic;
    uint8_t version, type, from, to; /* machines */
    uint64_t session, peer_session;  /* nonces of sender and receiver; a HELLO has no second */
    uint64_t seq; /* from 1; TRUNK_CHALLENGE: 0; TRUNK_HELLO: the sender's CLOCK_REALTIME in ns */
    uint8_t mac[TRUNK_MAC];
} __attribute__((packed));

/* Times are the sender's CLOCK_MONOTONIC in ns; 0: none. */
struct trunk_state {
    uint64_t
        conf; /* first 8 bytes of the HMAC of the conf under its key: another conf is refused */
    uint64_t sent_ns;       /* when this message was sent */
    uint64_t heard_sent_ns; /* when the receiver sent its last TRUNK_STATE, by its own clock, */
    uint64_t heard_ns;      /* and when it arrived here */
    uint32_t has_clock;
    uint64_t change_ns, change_ps; /* the sender's clock line (struct clock_state) */
    uint32_t before, dilation;
    uint32_t before_skew_ppb, skew_ppb;
    uint32_t owner;   /* machine whose clock the sender follows; the sender: its own */
    uint32_t late_us; /* summed lateness of the sender's loops since its last TRUNK_STATE, */
    uint32_t over_us; /* and the time since then */
    uint8_t mac[6];   /* of the sender's port; 0: it has none */
    uint8_t hears;    /* 1: it has heard the receiver's port lately */
} __attribute__((packed));

struct trunk_frame {
    uint32_t link;
    uint32_t number, oldest; /* trunk_flow.h */
    uint64_t due_ps;         /* fabric time at which the switch process handed it over */
} __attribute__((packed));

struct trunk_ack {
    uint32_t link, next, upto;
    uint8_t held[FLOW_WINDOW / 8];
} __attribute__((packed));

/* An order is sent several times and carried out once. */
struct trunk_order {
    uint32_t number; /* counts the sender's orders */
    uint32_t what;   /* enum trunk_what */
} __attribute__((packed));
enum trunk_what { TRUNK_LINK = 1 /* as /trib/link, by the text */, TRUNK_DOWN };

struct trunk_counts {
    uint32_t number; /* of the TRUNK_COUNT */
} __attribute__((packed));
struct trunk_count {
    uint32_t direction; /* link * 2 + direction */
    uint64_t bytes;     /* as in link_reader.h */
} __attribute__((packed));

struct trunk_lag {
    uint16_t bucket;
    uint16_t n;
} __attribute__((packed));

/* Accepts each sequence number once; refuses those older than the window or below `least`. */
#define TRUNK_WINDOW 2048u
struct trunk_window {
    uint64_t highest, least;
    uint64_t seen[TRUNK_WINDOW / 64];
};
/* Whether `seq` is new; if so notes it. */
bool trunk_window_take(struct trunk_window *w, uint64_t seq);

/* The key of an end. Threads do not share one. */
struct trunk_seal;
struct trunk_seal *trunk_seal_new(const char *secret); /* NULL: no memory, or no HMAC */
void trunk_seal_free(struct trunk_seal *s);
/* Writes the MAC into the message m of `bytes`, which is complete otherwise. False: no memory. */
bool trunk_seal_put(struct trunk_seal *s, uint8_t *m, size_t bytes);

/* Why a datagram was refused; trunk.refused counts them. */
enum trunk_refusal {
    TRUNK_FINE,
    TRUNK_SHORT,   /* shorter than a header, or than the body of its type */
    TRUNK_FOREIGN, /* not for us: wrong magic, type or machine */
    TRUNK_OTHER,   /* of another version, with a right MAC */
    TRUNK_FORGED,  /* the MAC is wrong */
    TRUNK_STALE,   /* of another session */
    TRUNK_REPLAY,  /* received before, or too old to tell */
    TRUNK_BODY,    /* of the session, but with impossible times, machine or length of a list */
    TRUNK_REFUSALS
};
extern const char *const trunk_refusal_name[TRUNK_REFUSALS];

/* Checks length, magic, version, machines and MAC of a datagram for machine `me` of n. */
enum trunk_refusal trunk_check(struct trunk_seal *s, const uint8_t *m, size_t bytes, unsigned me,
                               unsigned n);

#endif
