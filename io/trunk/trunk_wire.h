/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between the trunks of two machines, each a UDP datagram (or, those of frames, an Ethernet frame:
 * trunk_carrier.c): a header with a keyed MAC
 * (HMAC-SHA-256, cut to 16 bytes) over header and body. Without clock or IO.
 *
 * Every message names the session that it is of, by a nonce of each end (trunk_session.h), and has a
 * number in it; a window of numbers refuses what has been received already. Integers are big-endian.
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
#define TRUNK_MAX     9216u /* of a datagram: a frame of the largest MTU, or the state of all links */

enum trunk_type {
    TRUNK_HELLO = 1, /* asks for a session, by a nonce of the sender's; no body */
    TRUNK_STATE,     /* clock and links' ends, periodically; body: trunk_state, then bits of ends */
    TRUNK_FRAME,     /* body: trunk_frame, then a frame */
    TRUNK_ASK,       /* asks what has arrived up to a frame; body: trunk_frame */
    TRUNK_ACK,       /* body: trunk_ack */
    TRUNK_CUTS,   /* body: a bit for each link of the fabric that is cut, as the sender sees it */
    TRUNK_LAG,    /* body: pairs of bucket and count (struct trunk_lag) */
    TRUNK_DILATE, /* to the clock's owner; body: uint32_t, the dilation that is asked for */
    TRUNK_ORDER,  /* to every machine; body: trunk_order, then a text without 0 */
    TRUNK_COUNT,  /* asks what links have carried; body: trunk_counts */
    TRUNK_COUNTS, /* body: trunk_counts, then trunk_count of some directions that the sender's nodes send into */
    TRUNK_PROBE, /* says nothing but that it arrived by the sender's port; body: zeros */
    TRUNK_CHALLENGE, /* answers TRUNK_HELLO: a nonce of the sender's for that of the receiver; no body */
    TRUNK_TYPES
};

/* As it is since version 2, so that other versions are known by name. */
struct trunk_header {
    uint32_t magic;
    uint8_t version, type, from, to; /* machines */
    uint64_t session, peer_session; /* nonces of the sender and of the receiver; 0: a TRUNK_HELLO */
    uint64_t seq; /* from 1; TRUNK_CHALLENGE: 0; TRUNK_HELLO: the sender's CLOCK_REALTIME in ns */
    uint8_t mac[TRUNK_MAC];
} __attribute__((packed));

/* Times are the sender's CLOCK_MONOTONIC in ns; 0: none. */
struct trunk_state {
    uint64_t
        conf; /* of HMAC-SHA-256 of the conf under its key: machines with other confs are refused */
    uint64_t sent_ns;       /* this message */
    uint64_t heard_sent_ns; /* the last TRUNK_STATE from the receiver: when that one sent it, */
    uint64_t heard_ns;      /* and when it arrived here */
    uint32_t has_clock;
    uint64_t change_ns, change_ps; /* the sender's clock line (struct clock_state) */
    uint32_t before, dilation;
    uint32_t before_skew_ppb, skew_ppb;
    uint32_t owner;   /* machine whose clock the sender's follows, itself: its own */
    uint32_t late_us; /* lateness of the sender's loops since its last message, */
    uint32_t over_us; /* which was so long ago */
    uint8_t mac[6];   /* of the sender's port; 0: it has none */
    uint8_t hears;    /* whether it has heard the receiver's port lately */
} __attribute__((packed));

struct trunk_frame {
    uint32_t link;
    uint32_t number, oldest; /* trunk_flow.h */
    uint64_t due_ps;         /* fabric time at which it was handed over */
} __attribute__((packed));

struct trunk_ack {
    uint32_t link, next, upto;
    uint8_t held[FLOW_WINDOW / 8];
} __attribute__((packed));

/* Sent several times, done once. */
struct trunk_order {
    uint32_t number; /* of the sender's orders */
    uint32_t what;   /* enum trunk_what */
} __attribute__((packed));
enum trunk_what { TRUNK_LINK = 1 /* as /trib/link, by the text */, TRUNK_DOWN };

struct trunk_counts {
    uint32_t number; /* of the question */
} __attribute__((packed));
struct trunk_count {
    uint32_t direction; /* link * 2 + direction */
    uint64_t bytes;     /* link_reader.h */
} __attribute__((packed));

struct trunk_lag {
    uint16_t bucket;
    uint16_t n;
} __attribute__((packed));

/* Sequence numbers received: none twice, and none that is older than the window, or below `least`. */
#define TRUNK_WINDOW 2048u
struct trunk_window {
    uint64_t highest, least;
    uint64_t seen[TRUNK_WINDOW / 64];
};
/* Whether `seq` is new; if so it is noted. */
bool trunk_window_take(struct trunk_window *w, uint64_t seq);

/* Key and machine of an end. Not shared by threads. */
struct trunk_seal;
struct trunk_seal *trunk_seal_new(const char *secret); /* NULL: no memory, or no HMAC */
void trunk_seal_free(struct trunk_seal *s);
/* Writes the MAC of a message of `bytes` at m, whose header is complete otherwise. False: no memory. */
bool trunk_seal_put(struct trunk_seal *s, uint8_t *m, size_t bytes);

/* Why a datagram was not accepted; counted (trunk.h). */
enum trunk_refusal {
    TRUNK_FINE,
    TRUNK_SHORT,   /* shorter than a header, or the body than its type's */
    TRUNK_FOREIGN, /* no message of ours: magic, type or machine */
    TRUNK_OTHER,   /* of another version, made with the key */
    TRUNK_FORGED,  /* the MAC is wrong */
    TRUNK_STALE,   /* of another session */
    TRUNK_REPLAY,  /* received before, or too old to tell */
    TRUNK_BODY,    /* of the session, but says what cannot be: times, a machine, a list's length */
    TRUNK_REFUSALS
};
extern const char *const trunk_refusal_name[TRUNK_REFUSALS];

/* Checks length, magic, version, machines and MAC of a datagram to machine `me` of n. */
enum trunk_refusal trunk_check(struct trunk_seal *s, const uint8_t *m, size_t bytes, unsigned me,
                               unsigned n);

#endif
