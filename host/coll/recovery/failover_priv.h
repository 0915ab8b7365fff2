/* SPDX-License-Identifier: BSD-3-Clause */
/* The agreement of failover.c: its messages on the wire, and what rank 0 collects. */
#ifndef TRIB_HOST_COLL_RECOVERY_FAILOVER_PRIV_H
#define TRIB_HOST_COLL_RECOVERY_FAILOVER_PRIV_H

#include "host/coll/comm.h"

enum failover_type {
    FAILOVER_ASK = 1,
    FAILOVER_REPORT,
    FAILOVER_VERDICT,
    FAILOVER_END,
    FAILOVER_READY
};

enum failover_flag {
    BEGUN = 1, /* REPORT: the operation runs here */
    ALONE = 2, /* REPORT: it needs what has failed and cannot be cut */
    LAST = 4,  /* REPORT: the one before it was so */
    WHOLE = 8, /* VERDICT: see struct failover_round */
    AGAIN = 16
};
#define FAILOVER_ALL UINT64_MAX /* messages of a rank that has finished */

struct failover_cut {
    rte_be32_t least; /* REPORT: messages done; all ones: FAILOVER_ALL */
    rte_be32_t more, from;
} __attribute__((packed));

struct failover_msg {
    struct ctl_head head;
    rte_be32_t rank; /* the sender; head.from may be a rank that passes it on */
    rte_be32_t to;   /* the receiver; other ranks pass it on to this one */
    rte_be32_t seq;
    rte_be16_t parts;
    uint8_t type, round;
    uint8_t flag;        /* of failover_flag */
    uint8_t trees, back; /* as in failover_round; READY: joined again */
    uint8_t protocol;    /* as in failover_round; ASK, REPORT: seen to fail */
    struct failover_cut cut[COLL_TREES];
    char why[FAILOVER_TEXT];
} __attribute__((packed));
_Static_assert(sizeof(struct failover_msg) <= CTL_MSG_BYTES, "one datagram");
#define FAILOVER_PARTS (PARTS_ALL | PART_BACK)
_Static_assert(PARTS < 16 && COLL_TREES <= 8, "a bit each in failover_msg");
_Static_assert(FAILOVER_ROUNDS <= UINT8_MAX, "failover_msg.round");

struct failover_report {
    bool here;
    uint8_t ready; /* trees that the rank has joined again */
    uint32_t fit[COLL_TREES], rail;
    char why[FAILOVER_TEXT]; /* of fit */
    uint8_t flag;
    uint32_t seq;
    uint64_t done[COLL_TREES];
};

/* ---- messages (failover_msg.c) ---- */
/* False: the grants to this rank are not known yet, and the round is about them. */
bool failover_can_report(const struct comm *c);
void failover_own_report(const struct comm *c, struct failover_report *p);
void failover_send_ask(struct comm *c, unsigned rank);
void failover_send_report(struct comm *c); /* to rank 0, once it can */
void failover_send_verdict(struct comm *c, unsigned rank, unsigned round);
void failover_send_ready(struct comm *c, unsigned trees); /* to rank 0 */
void failover_send_end(struct comm *c, unsigned rank, unsigned missing);
void failover_read_report(const struct failover_msg *m, struct failover_report *p);
void failover_read_verdict(const struct comm *c, const struct failover_msg *m,
                           struct failover_round *f);

/* ---- rank 0 has every report (failover_verdict.c) ---- */
void failover_judge(struct comm *c, struct failover_round *f);

#endif
