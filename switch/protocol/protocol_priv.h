/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of the protocols' node.
 *
 *   protocol_node.c  the endpoint: frames in and out, what a protocol sends
 *   protocol_join.c  JOIN and its answer, which begin a job
 *   protocol_job.c   LEAVE, ABORT, PROBE, PEER_DOWN: life of a job
 */
#ifndef TRIB_SWITCH_PROTOCOL_PROTOCOL_PRIV_H
#define TRIB_SWITCH_PROTOCOL_PROTOCOL_PRIV_H

#include "base/assert.h"
#include "protocols/host/switch_host.h"
#include "protocols/host/protocol_wire.h"
#include "roce/wire.h"
#include "switch/protocol/protocol_node.h"
#include "switch/reduce/join_check.h"

#include <sys/queue.h>

#define PN_QUEUE 4096u /* frames that wait for the switch's egress queues */
#define PN_JOBS  256u  /* at a switch, those that wait for members included */
/* A child from which nothing came for so long is lost: its process, or the switch, has ended without
 * a word (members send a PROBE every 200 ms). */
#define PN_SILENCE_PS (4 * PS_PER_S)
#define PN_LOOK_PS    (PS_PER_S / 4)

struct pn_child {
    struct fab_child who;
    uint32_t ip, qpn, rank; /* rank: of a member */
    uint32_t xid;           /* of its JOIN */
    bool joined, left;
    int64_t heard_ps;
};

struct pn_job {
    LIST_ENTRY(pn_job) link;
    struct protocol_node *p;
    unsigned seat;
    uint32_t id, tag, nranks;
    uint16_t attempt; /* agg_ctl's */
    uint64_t key;
    const struct fab_tree *tree;
    struct fab_members members;
    uint16_t mtu;
    bool top;
    uint16_t up;           /* node of the parent */
    uint16_t up_child;     /* our index there */
    uint32_t xid;          /* of our JOIN to the parent */
    struct proto_job *job; /* NULL: members are missing still */
    unsigned n, n_joined, n_left;
    int64_t born_ps;
    struct pn_child child[]; /* [n] */
};

struct protocol_node {
    struct protocol_node_cfg cfg;
    const struct fab_node *me;
    struct proto_switch *sw[PROTO_SEATS]; /* NULL: no job of it so far */
    int64_t key[PROTO_SEATS][TRIB_KEYS];
    LIST_HEAD(pn_jobs, pn_job) jobs;
    unsigned n_jobs;
    struct rte_mbuf *out[PN_QUEUE];
    uint32_t out_head, out_tail;
    uint32_t psn, next_xid;
    int64_t now, look_ps;
    const struct proto_target *target; /* of the packet that is being handled; NULL: none */
    uint16_t sender;                   /* of it: what is forwarded goes on in its name */
    struct {
        uint64_t bad, strangers, lost, sent;
    } cnt;
    uint8_t scratch[ROCE_MAX_MTU]; /* data of a frame that is not aligned */
};

/* protocol_node.c */
/* A datagram of the switch's, from PROTO_QPN; its payload is at the returned address, for the caller
 * to fill in before pn_send(). NULL: no buffer, it is lost. */
struct rte_mbuf *pn_frame(struct protocol_node *p, uint32_t ip, uint32_t qpn, uint32_t len,
                          struct roce_pkt *k, uint8_t **payload);
void pn_send(struct protocol_node *p, struct rte_mbuf *m, const struct roce_pkt *k);
/* What a protocol sends: proto_switch_cfg.emit. */
void pn_emit(void *ctx, void *job, int to, const void *head, uint32_t head_bytes, const void *data,
             uint32_t data_bytes);

/* A control message, and who sent it. */
struct pn_request {
    const struct agg_ctl *c;
    uint32_t ip, qpn;
};

/* protocol_join.c */
void pn_join(struct protocol_node *p, const struct pn_request *r);
void pn_join_reply(struct protocol_node *p, const struct pn_request *r);

/* protocol_job.c */
void pn_say(struct protocol_node *p, uint32_t ip, uint32_t qpn, enum agg_type type,
            struct agg_ctl *c);
void pn_answer(struct protocol_node *p, const struct pn_request *r, enum agg_type type,
               enum agg_status status, const char *text);
/* A message about the job, to a child or to the parent. */
struct agg_ctl pn_about(const struct pn_job *j, uint32_t xid, uint32_t member);
/* To the parent: AGG_JOIN, AGG_LEAVE, AGG_ABORT, AGG_PROBE. */
void pn_say_up(struct pn_job *j, enum agg_type type, enum agg_status status, const char *text);
/* The job whose parent the sender is; NULL: none. */
struct pn_job *pn_below(struct protocol_node *p, const struct pn_request *r);
void pn_control(struct protocol_node *p, const struct roce_pkt *k);
/* The process of QPNs with these top 8 bits at this address has ended. */
void pn_process_down(struct protocol_node *p, uint32_t ip, uint32_t space);
struct pn_job *pn_find(struct protocol_node *p, uint32_t id, uint32_t tag);
/* Ends the job for everybody: tells all but `culprit` (NULL: all) why. status: AGG_E_MEMBER_LOST
 * where a rank is lost; ranks go on by another algorithm where none is. */
void pn_end(struct pn_job *j, const struct pn_child *culprit, enum agg_status status,
            const char *why);
void pn_free(struct pn_job *j);
/* Ends the jobs that their protocol has doomed. */
void pn_settle(struct protocol_node *p);
void pn_tick_jobs(struct protocol_node *p);

#endif
