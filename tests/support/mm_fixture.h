/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fixture for multimem: a fabric in virtual time with one switch, whose endpoint is an aggregation
 * node with multimem, and members that are bare rnics behind their hosts' NICs.
 */
#ifndef TRIB_TESTS_SUPPORT_MM_FIXTURE_H
#define TRIB_TESTS_SUPPORT_MM_FIXTURE_H

#include "aggregation/mm_proto.h"
#include "roce/rnic.h"
#include "switch/reduce/an.h"
#include "tests/support/switch_fixture.h"

#define MM_FIXTURE_MEMBERS 16
#define MM_FIXTURE_CQES    8192
#define MM_FIXTURE_RKEY    0x1234u /* of every member's memory */
#define MM_FIXTURE_LKEY    0x77u   /* of every member's own buffers */

struct mm_fixture;

struct mm_fixture_member {
    struct mm_fixture *b;
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
    struct cqe *cqe; /* [MM_FIXTURE_CQES] */
    unsigned n_cqes, n_bad;
    unsigned posted;
    bool mute; /* does not acknowledge ABORT */
    bool dead;
};

struct mm_fixture_cfg {
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

struct mm_fixture {
    struct mm_fixture_cfg cfg;
    struct switch_fixture fx;
    struct an *an;
    struct rte_mempool *parts;
    uint16_t sw;
    struct mm_fixture_member m[MM_FIXTURE_MEMBERS];
    uint64_t rng;
    uint64_t *bytes; /* [2 * links] payload of READ responses and WRITEs seen on each direction */
};

void mm_fixture_open(struct mm_fixture *b, const struct mm_fixture_cfg *cfg);
/* Unbinds all members and frees the fixture; fails the test if the switch holds anything or frames are
 * missing. */
void mm_fixture_close(struct mm_fixture *b);

/* A BIND of member i of n, with the fixture's key and group 7. */
struct mm_ctl mm_fixture_bind_of(const struct mm_fixture_member *m);
void mm_fixture_say(struct mm_fixture_member *m, enum agg_type type, struct mm_ctl *c);
/* Connects to what BIND_REPLY granted. */
void mm_fixture_connect(struct mm_fixture_member *m);
/* BIND, connect and READY of members [0, n); fails the test when one is refused. */
void mm_fixture_bind_all(struct mm_fixture *b);

/* len bytes at off of the region to (from) the same place of local. */
void mm_fixture_load(struct mm_fixture_member *m, struct mm_what what, uint32_t len);
void mm_fixture_store(struct mm_fixture_member *m, struct mm_what what, uint32_t len);
void mm_fixture_post(struct mm_fixture_member *m, const struct wqe *w);
/* Runs until everything posted has completed, nothing happens any more, or for `ps`. True: all is
 * complete. */
bool mm_fixture_run(struct mm_fixture *b, int64_t ps);
bool mm_fixture_settled(const struct mm_fixture *b);
/* Runs for so long. */
void mm_fixture_pass(struct mm_fixture *b, int64_t ps);
/* The process dies; its NIC announces it. */
void mm_fixture_kill(struct mm_fixture_member *m);
/* Payload over the link of host i: up to the switch, down from it. */
uint64_t mm_fixture_up(const struct mm_fixture *b, unsigned i);
uint64_t mm_fixture_down(const struct mm_fixture *b, unsigned i);
const struct mm_counters *mm_fixture_counters(const struct mm_fixture *b);

#endif
