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
#define PN_JOBS  256u  /* jobs of a switch, including those that wait for members */
/* A child that has been silent for so long is lost: its process, or the switch, has ended without a
 * message (members send a PROBE every 200 ms). */
#define PN_SILENCE_PS (4 * PS_PER_S)
#define PN_LOOK_PS    (PS_PER_S / 4)

struct pn_child {
    struct fab_child who;
    uint32_t ip, qpn, rank; /* rank: of a member */
    uint32_t xid;           /* of its last JOIN */
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
    uint16_t up_child;     /* our index at the parent */
    uint32_t xid;          /* of our JOIN to the parent */
    struct proto_job *job; /* NULL: some members have not joined yet */
    unsigned n, n_joined, n_left;
    int64_t born_ps;
    struct pn_child child[]; /* [n] */
};

struct protocol_node {
    struct protocol_node_cfg cfg;
    const struct fab_node *me;
    struct proto_switch *sw[PROTO_SEATS]; /* NULL: it has had no job yet */
    int64_t key[PROTO_SEATS][TRIB_KEYS];
    LIST_HEAD(pn_jobs, pn_job) jobs;
    unsigned n_jobs;
    struct rte_mbuf *out[PN_QUEUE];
    uint32_t out_head, out_tail;
    uint32_t psn, next_xid;
    int64_t now, look_ps;
    const struct proto_target *target; /* target of the packet being handled; NULL: none */
    uint16_t sender;                   /* its sender: what is forwarded keeps its name */
    struct {
        uint64_t bad, strangers, lost, sent;
    } cnt;
    uint8_t scratch[ROCE_MAX_MTU]; /* aligned copy of a frame's data */
};

/* protocol_node.c */
/* Makes a datagram from PROTO_QPN. *payload: where the caller writes its payload before pn_send(). NULL:
 * there is no buffer, so it is lost. */
struct rte_mbuf *pn_frame(struct protocol_node *p, uint32_t ip, uint32_t qpn, uint32_t len,
                          struct roce_pkt *k, uint8_t **payload);
void pn_send(struct protocol_node *p, struct rte_mbuf *m, const struct roce_pkt *k);
/* Sends a packet of a protocol: proto_switch_cfg.emit. */
void pn_emit(void *ctx, void *job, int to, const void *head, uint32_t head_bytes, const void *data,
             uint32_t data_bytes);

/* A control message and its sender. */
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
/* Fills in a message about the job, to a child or to the parent. */
struct agg_ctl pn_about(const struct pn_job *j, uint32_t xid, uint32_t member);
/* Sends AGG_JOIN, AGG_LEAVE, AGG_ABORT or AGG_PROBE to the parent. */
void pn_say_up(struct pn_job *j, enum agg_type type, enum agg_status status, const char *text);
/* The job whose parent sent the message; NULL: none. */
struct pn_job *pn_below(struct protocol_node *p, const struct pn_request *r);
void pn_control(struct protocol_node *p, const struct roce_pkt *k);
/* Call it when the process with this slot's space of QPNs at this address has ended. */
void pn_process_down(struct protocol_node *p, uint32_t ip, uint32_t space);
struct pn_job *pn_find(struct protocol_node *p, uint32_t id, uint32_t tag);
/* Ends the job for everybody: tells all but `culprit` (NULL: all) the reason. status: AGG_E_MEMBER_LOST if
 * a rank is lost; otherwise the ranks continue with another algorithm. */
void pn_end(struct pn_job *j, const struct pn_child *culprit, enum agg_status status,
            const char *why);
void pn_free(struct pn_job *j);
/* Ends the jobs that their protocols have doomed. */
void pn_settle(struct protocol_node *p);
void pn_tick_jobs(struct protocol_node *p);

#endif
