/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bed for multimem: a fabric in virtual time with one switch, whose endpoint is an aggregation
 * node with multimem, and members that are bare rnics behind their hosts' NICs.
 */
#ifndef TRIB_TESTS_SUPPORT_MM_BED_H
#define TRIB_TESTS_SUPPORT_MM_BED_H

#include "aggregation/mm_proto.h"
#include "roce/rnic.h"
#include "switch/reduce/an.h"
#include "tests/support/lab.h"

#define MMB_MEMBERS 16
#define MMB_CQES    8192
#define MMB_RKEY    0x1234u /* of every member's memory */
#define MMB_LKEY    0x77u   /* of every member's own buffers */

struct mm_bed;

struct mmb_member {
    struct mm_bed *b;
    unsigned id; /* host */
    struct rnic *r;
    struct endpoint ep;
    uint16_t node;
    uint32_t ip;
    struct qp *ctl, *qp;
    struct rq *ctl_rq;
    uint8_t *ctl_mem;
    uint32_t psn, xid;
    uint8_t *mem;                             /* its region: length bytes; NULL: unbacked */
    uint8_t *local;                           /* results, and data to write: length bytes */
    struct mm_ctl got[AGG_MM_MOVE_REPLY + 1]; /* last message of each type; type 0: none */
    unsigned n_got[AGG_MM_MOVE_REPLY + 1];
    struct cqe cqe[MMB_CQES];
    unsigned n_cqes, n_bad;
    unsigned posted;
    bool mute; /* does not acknowledge ABORT */
    bool dead;
};

struct mmb_cfg {
    const char *conf;
    unsigned n; /* members: hosts 0..n-1 */
    uint64_t length;
    uint32_t mtu; /* 0: the fabric's */
    uint64_t seed;
    bool unbacked;
    uint32_t window;       /* packets in flight of a member; 0: 256 */
    uint8_t timeout;       /* of a member's queue pair; 0: 10, as the switch's */
    uint32_t write_slices; /* window of slices that members ask for; 0: the switch's */
    struct mm_cfg mm;      /* on is set */
};

struct mm_bed {
    struct mmb_cfg cfg;
    struct lab lab;
    struct an *an;
    struct rte_mempool *parts;
    uint16_t sw;
    struct mmb_member m[MMB_MEMBERS];
    uint64_t rng;
    uint64_t *bytes; /* [2 * links] payload of READ responses and WRITEs seen on each direction */
};

void mmb_open(struct mm_bed *b, const struct mmb_cfg *cfg);
/* Unbinds all members and frees the bed; fails the test if the switch holds anything or frames are
 * missing. */
void mmb_close(struct mm_bed *b);

/* A BIND as member i of n would say it, with the bed's key and group 7. */
struct mm_ctl mmb_bind_of(const struct mmb_member *m);
void mmb_say(struct mmb_member *m, enum agg_type type, struct mm_ctl *c);
/* Connects to what BIND_REPLY granted. */
void mmb_connect(struct mmb_member *m);
/* BIND, connect and READY of members [0, n); fails the test when one is refused. */
void mmb_bind_all(struct mm_bed *b);

/* len bytes at off of the region to (from) the same place of local. */
void mmb_load(struct mmb_member *m, struct mm_what what, uint32_t len);
void mmb_store(struct mmb_member *m, struct mm_what what, uint32_t len);
void mmb_post(struct mmb_member *m, const struct wqe *w);
/* Runs until everything posted has completed, nothing happens any more, or for `ps`. True: all is
 * complete. */
bool mmb_run(struct mm_bed *b, int64_t ps);
bool mmb_settled(const struct mm_bed *b);
/* Runs for so long. */
void mmb_pass(struct mm_bed *b, int64_t ps);
/* The process dies; its NIC announces it. */
void mmb_kill(struct mmb_member *m);
/* Payload over the link of host i: up to the switch, down from it. */
uint64_t mmb_up(const struct mm_bed *b, unsigned i);
uint64_t mmb_down(const struct mm_bed *b, unsigned i);
const struct mm_counters *mmb_counters(const struct mm_bed *b);

#endif
