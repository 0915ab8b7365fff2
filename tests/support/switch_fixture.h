/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fabric in memory for tests of switch/: conf text to a net in virtual time, with a program of
 * the test's own in every process slot, and frames by hand.
 */
#ifndef TRIB_TESTS_SUPPORT_SWITCH_FIXTURE_H
#define TRIB_TESTS_SUPPORT_SWITCH_FIXTURE_H

#include "switch/net/net.h"

#define SWITCH_FIXTURE_QUEUE 4096
#define SWITCH_FIXTURE_LINK  "{ rate = \"400Gb/s\"; latency = \"300ns\"; }"

/* The program in a process slot: sends the frames queued for it, and keeps or frees those that it
 * receives. */
struct prog {
    struct rte_mbuf *tx[ENDPOINT_QUEUES][SWITCH_FIXTURE_QUEUE];
    unsigned head[ENDPOINT_QUEUES], tail[ENDPOINT_QUEUES];
    struct rte_mbuf *rx[SWITCH_FIXTURE_QUEUE]; /* while keep */
    unsigned n_rx;                             /* kept */
    bool keep;
    unsigned mark;           /* of connections' frames (roce/wire.h), by slot; 0: as they are */
    uint64_t got, got_bytes; /* all but the NIC's answers to IGMP reports: */
    uint64_t granted, refused;
    int64_t first_ps, last_ps;
    int take;         /* frames taken per input; -1: all */
    uint64_t endless; /* frames of `shape` that it still makes when it is pulled */
    struct rte_mbuf *(*shape)(struct prog *p);
    uint32_t src_ip, dst_ip, dqpn, len; /* of `shape` */
    struct rte_mempool *pool;
    unsigned ticks, asked; /* calls of tick and of next */
    int64_t timer_ps;
    bool late; /* it had more frames when the last was taken */
};

struct switch_fixture {
    struct fabric *f;
    struct net *net;
    struct rte_mempool *pool;
    unsigned pool_full; /* frames in the pool before anything ran */
};

/* A frame of RoCE v2, an RC SEND of len bytes, that carries ECT(0); ICRC is not filled in. */
struct frame_spec {
    uint32_t src_ip, dst_ip, dqpn, len;
    uint16_t udp_src;
    uint8_t dst_mac[6]; /* zero: from dst_ip */
};
struct rte_mbuf *switch_fixture_frame(struct rte_mempool *pool, const struct frame_spec *s);
/* Any bytes. */
struct rte_mbuf *switch_fixture_bytes(struct rte_mempool *pool, const void *p, unsigned n);
uint16_t switch_fixture_ip_checksum(const uint8_t *ip,
                                    unsigned n); /* 0: a header that carries the right one */

void switch_fixture_open(struct switch_fixture *l, struct rte_mempool *pool, const char *conf);
/* As switch_fixture_open(), with the caller's net_cfg; fab and pool are filled in. */
void switch_fixture_open_cfg(struct switch_fixture *l, struct rte_mempool *pool, const char *conf,
                             struct net_cfg *cfg);
/* Destroys the fabric; fails the test when a frame is missing in the pool. */
void switch_fixture_close(struct switch_fixture *l);

uint16_t switch_fixture_node(const struct switch_fixture *l, const char *name);
uint32_t switch_fixture_ip(const struct switch_fixture *l, const char *name);
struct endpoint prog_endpoint(struct prog *p);
struct prog *prog_new(struct switch_fixture *l, const char *host, unsigned slot); /* attached */
void prog_free(struct prog *p);
void prog_send(struct prog *p, enum endpoint_queue q, struct rte_mbuf *m);
/* The program at `host`, slot 0, sends n frames to `to`, slot 0; for other slots the caller
 * kicks. */
void prog_stream(struct switch_fixture *l, struct prog *p, const char *host, const char *to,
                 unsigned n, uint32_t len);
/* Runs until no event is pending, or limit_ps; returns the time of the last event. */
int64_t switch_fixture_run(struct switch_fixture *l, int64_t limit_ps);
uint64_t switch_fixture_drops(const struct switch_fixture *l,
                              enum drop d); /* all ports of all nodes */
uint64_t switch_fixture_all_drops(const struct switch_fixture *l);
uint64_t switch_fixture_pauses(const struct switch_fixture *l); /* sent */

#endif
