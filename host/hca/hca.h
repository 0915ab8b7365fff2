/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The software HCA: verbs objects (PD, MR, CQ, QP, SRQ, AH, completion channel) over an rnic. The
 * protocol half: no I/O, no clock, no thread. Its driver carries frames: memif in a preloaded
 * process, the net in virtual time.
 *
 *   verbs_*.c              exported ibv_ calls and the context's tables
 *   hca.c, cq.c, qp.c ...  the objects; memory/ regions, windows, device memory, keys
 *   notify.c               descriptors that a program can poll for events
 *   congestion.c           DCQCN parameters of a fabric's port
 *   io/process*.c          the driver of a real process: memif, progress thread, doorbell
 */
#ifndef TRIB_HOST_HCA_HCA_H
#define TRIB_HOST_HCA_HCA_H

#include "fabric/fabric.h"
#include "roce/rnic.h"

#include <infiniband/verbs.h>

struct hca;

/* The driver behind an HCA. Any function may be NULL; in virtual time all but kick are. */
struct hca_driver {
    void *ctx;
    void (*lock)(void *ctx);
    void (*unlock)(void *ctx);
    /* Called with the lock held after a request was posted: there may be frames to send. */
    void (*kick)(void *ctx);
    /* Called without the lock by an empty poll_cq: makes progress, yields, or sleeps for a bounded
     * time on the doorbell. */
    void (*idle)(void *ctx);
    /* Called without the lock by a caller that is about to wait for an event: another thread must
     * make progress from now on. */
    void (*block)(void *ctx);
    /* Checks that len > 0 bytes can be read, and with `write` also written. 0 or -EFAULT. */
    int (*check_memory)(void *ctx, const void *addr, size_t len, bool write);
    /* Brings mapped pages into memory, as a first access would. 0 or -EFAULT. */
    int (*prefetch)(void *ctx, void *addr, size_t len, bool write);
    /* Prints a message for the program's user. `what` identifies the message, which may recur.
     * NULL: no user reads it. */
    void (*say)(void *ctx, const char *what, const char *text);
    /* Copies of registered memory may fault: the owner's handler of SIGSEGV and SIGBUS calls
     * guard_take() (roce/guard.h), and the request ends with an error. */
    bool guarded;
    /* Whether this address is outside the fabric, so that its MAC must be resolved by ARP. */
    bool (*foreign)(void *ctx, uint32_t ip);
    /* Whether this address cannot be reached: no port of the fabric has it, and no port leads
     * outside. */
    bool (*nowhere)(void *ctx, uint32_t ip);
    /* Time, within the last window_ps, in which a process on the path to queue pair qpn at ip did
     * not run (rnic_ops.lateness). */
    int64_t (*lateness_on_path)(void *ctx, uint32_t ip, uint32_t qpn, int64_t window_ps);
};

struct hca_cfg {
    /* NULL, or a word of the owner: bit `port` is set while a completion queue has a completion to
     * poll. */
    uint64_t *waiting;
    uint8_t port;             /* HCA port of the host, from 0 */
    struct fab_notice notice; /* delay of receive completions (completion_delay.c) */
    struct hca_driver drv;
    char name[32]; /* device name: "trib0" */
    uint32_t ip;
    unsigned slot; /* process slot at the host's NIC: QPNs are (slot + 1) << 16 | n */
    uint16_t mtu;  /* of the port, in bytes: the largest path MTU */
    uint64_t rate_bps;
    struct rte_mempool *pool;
    uint32_t max_qps;     /* 0: 1024 */
    uint32_t window_pkts; /* unacknowledged packets of a QP (fab_transport.window); 0: 256 */
    uint16_t ack_every;   /* 0: 8 */
    bool far;             /* frames come from another core: see struct rnic_cfg */
    bool early_slots;     /* a request frees its queue entry when it ends, not when it is polled */
    bool no_async_fd;     /* contexts have no descriptors: a simulation has thousands of HCAs */
    struct dcqcn_cfg dcqcn;
    int64_t message_ps; /* cost of a message at the port (roce/fetch.c) */
};

/* DCQCN parameters of a fabric's port of rate_bps. */
struct dcqcn_cfg hca_dcqcn(const struct fab_dcqcn *f, uint64_t rate_bps);

int hca_create(struct hca **h, const struct hca_cfg *cfg);
/* Destroys the HCA and all objects that it still has. */
void hca_destroy(struct hca *h);
struct endpoint hca_endpoint(struct hca *h);
/* Cache lines that the endpoint reads for every frame. A caller that wraps it adds its own. */
struct cacheline_list *hca_cachelines(struct hca *h);
struct ibv_device *hca_device(struct hca *h); /* for ibv_open_device() */
struct rnic *hca_rnic(struct hca *h);
/* The NIC disconnected or connected: an async event; without a NIC, QPs go to error. */
void hca_port_state(struct hca *h, bool up, int64_t now_ps);
/* The link behind the NIC went down or up: the same event, but QPs stay up and retransmit. */
void hca_link_state(struct hca *h, bool up, int64_t now_ps);
/* Completions that the HCA has produced so far; drivers compare it before and after progress. */
uint64_t hca_completions(const struct hca *h);
/* Completions plus packets of peers that wrote into memory. While it does not change, a program has
 * nothing new to find. */
uint64_t hca_activity_epoch(const struct hca *h);
/* Whether any completion queue has a completion to poll. */
bool hca_waiting(const struct hca *h);
/* Verbs objects that programs have created and not destroyed. Queue pairs are not counted: each
 * keeps its protection domain, which is. */
unsigned hca_objects(const struct hca *h);
/* Called in a forked child. Later calls return EIO, except those that destroy objects, and nothing
 * that the child does reaches the parent. */
void hca_kill(struct hca *h);
/* Marks a registered region as unbacked: its payload is carried as a length only (virtual time). */
int hca_mr_unback(struct ibv_mr *mr);

#endif
