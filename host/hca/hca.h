/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The software HCA: verbs objects (PD, MR, CQ, QP, SRQ, AH, completion channel) over an rnic. The
 * protocol half: no I/O, no clock, no thread. What carries frames (memif in a preloaded process,
 * the net in virtual time) is its driver.
 *
 *   verbs_*.c     exported ibv_ calls and the context's tables
 *   hca.c, mr.c, cq.c, qp.c ...    the objects
 *   notify.c      descriptors that a program can poll for events
 *   congestion.c  DCQCN as the fabric has it
 *   rim.c, rim_thread.c, rim_report.c   the driver of a real process: EAL thread, memif, progress
 * thread, doorbell
 */
#ifndef TRIB_HOST_HCA_HCA_H
#define TRIB_HOST_HCA_HCA_H

#include "roce/rnic.h"

#include <infiniband/verbs.h>

struct hca;

/* The driver behind an HCA. Virtual time leaves them NULL but for kick; any may be
 * NULL. */
struct hca_driver {
    void *ctx;
    void (*lock)(void *ctx);
    void (*unlock)(void *ctx);
    /* Called with the lock held after something was posted: there may be frames to send. */
    void (*kick)(void *ctx);
    /* Called without the lock by an empty poll_cq: make progress, yield, sleep a little on the
     * doorbell. */
    void (*idle)(void *ctx);
    /* Called without the lock by a caller that is about to wait for an event: somebody else must
     * make progress now. */
    void (*block)(void *ctx);
    /* Whether these bytes (at least one) can be read, and written where that is asked: 0 or
     * -EFAULT. */
    int (*check_memory)(void *ctx, const void *addr, size_t len, bool write);
    /* Brings pages that are mapped into memory: 0 or -EFAULT. */
    int (*prefetch)(void *ctx, void *addr, size_t len, bool write);
    /* A sentence for the program's user, on a line of its own; what: which one, as the same may
     * come again and again. NULL: nobody reads it. */
    void (*say)(void *ctx, const char *what, const char *text);
    /* Registered memory may go away, and the owner's handler of SIGSEGV and SIGBUS calls
     * guard_take() (roce/guard.h): what uses it then ends with an error. */
    bool guarded;
    /* Whether the MAC of this address must be asked for, because it is outside the fabric. */
    bool (*foreign)(void *ctx, uint32_t ip);
    /* For how long of the last window_ps somebody on the way to queue pair qpn at ip did not run
     * (rnic_ops.late). */
    int64_t (*late_on_way)(void *ctx, uint32_t ip, uint32_t qpn, int64_t window_ps);
};

struct hca_cfg {
    /* A word of the owner's, NULL: none. Its bit `port` is set while a completion queue has
     * something to poll. */
    uint64_t *waiting;
    uint8_t port;   /* HCA port of the host, from 0 */
    int64_t gpu_ps; /* from a message's arrival to its sight by the program (late.c) */
    struct hca_driver drv;
    char name[32]; /* device name: "trib0" */
    uint32_t ip;
    unsigned slot; /* process slot at the host's NIC: QPNs are (slot + 1) << 16 | n */
    uint16_t mtu;  /* of the port: largest path MTU */
    uint64_t rate_bps;
    struct rte_mempool *pool;
    uint32_t max_qps;     /* 0: 1024 */
    uint32_t window_pkts; /* unacknowledged packets of a QP; 0: 256 */
    uint16_t ack_every;   /* 0: 8 */
    bool far;             /* frames come from another core: see struct rnic_cfg */
    bool no_async_fd; /* contexts have none: thousands of HCAs in a process that waits for none */
    struct dcqcn_cfg dcqcn;
    int64_t message_ps; /* of the port for each message (roce/fetch.c) */
};

struct fab_dcqcn;
/* DCQCN of a port of rate_bps of a fabric. */
struct dcqcn_cfg hca_dcqcn(const struct fab_dcqcn *f, uint64_t rate_bps);

int hca_create(struct hca **h, const struct hca_cfg *cfg);
/* Objects that are still there go with it. */
void hca_destroy(struct hca *h);
struct endpoint hca_endpoint(struct hca *h);
/* What its endpoint looks at whenever something comes; who stands before it adds its own. */
struct cacheline_list *hca_lines(struct hca *h);
struct ibv_device *hca_device(struct hca *h); /* what ibv_open_device takes */
struct rnic *hca_rnic(struct hca *h);
/* The NIC went away or came: async event; without it QPs go to error. */
void hca_port_state(struct hca *h, bool up, int64_t now_ps);
/* The link behind the NIC did: the same event, but QPs live on and try again. */
void hca_link_state(struct hca *h, bool up, int64_t now_ps);
/* Completions that the HCA has produced so far: whether progress brought something, for drivers. */
uint64_t hca_completions(const struct hca *h);
/* Those, and packets of peers that wrote into memory: as long as it stays the same there is nothing
 * that a program could find. */
uint64_t hca_activity_epoch(const struct hca *h);
/* Whether any completion queue has something to poll. */
bool hca_waiting(const struct hca *h);
/* Verbs objects that programs have made and not destroyed; queue pairs keep their protection domain
 * and so count with it. */
unsigned hca_objects(const struct hca *h);
/* The process forked and this is the child: every later call answers EIO but those that give up
 * objects, and nothing that is done here reaches the parent. */
void hca_kill(struct hca *h);
/* Marks a registered region as unbacked: payload of it is carried as a length only (virtual
 * time). */
int hca_mr_unback(struct ibv_mr *mr);

#endif
