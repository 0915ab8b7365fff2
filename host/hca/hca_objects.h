/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The objects behind the verbs and the device's limits, for host/hca only. Each object begins with
 * the public struct that libibverbs' header declares; zeroed bytes follow where programs are known
 * to read behind it.
 *
 * The driver's one lock per HCA guards all of it: nothing here is touched without that lock.
 */
#ifndef TRIB_HOST_HCA_HCA_OBJECTS_H
#define TRIB_HOST_HCA_HCA_OBJECTS_H

#include "base/cacheline.h"
#include "base/events.h"
#include "host/hca/hca.h"
#include "host/hca/hlist.h"

/* Limits that the device reports and enforces: ENOMEM beyond a number of objects, EINVAL beyond a
 * size. tests/host/hca/test_limits.c and test_sizes.c reach each of them. */
#define HCA_MAX_MR_SIZE (1ull << 40) /* limit: bytes of a memory region */
#define HCA_MAX_MR      65535u       /* limit: memory regions of a process */
#define HCA_MAX_MW      65535u
#define HCA_MAX_KEYS    (1u << 17) /* of regions and windows; index 0 is never a key */
#define HCA_MAX_CQ      65536u     /* limit: completion queues */
#define HCA_MAX_CQE     (1u << 22) /* limit: entries of a completion queue */
#define HCA_MAX_PD      65536u
#define HCA_MAX_AH      65536u
#define HCA_MAX_SRQ     16384u
#define HCA_MAX_WR      16384u       /* limit: work requests of a queue */
#define HCA_MAX_DM      (256u << 10) /* bytes of all device memory */
#define HCA_ASYNC_DEPTH 1024u
#define HCA_IGMP_QUEUE  (2 * ROCE_MAX_MCAST)
#define HCA_NEIGHBOURS  64                           /* cached MACs of hosts outside the fabric */
#define HCA_PORT        1                            /* a device has one port */
enum { HCA_GID_IPV4, HCA_GID_LINK_LOCAL, HCA_GIDS }; /* GID table of the port */
#define HCA_PKEY 0xffff
#define HCA_DSCP 26 /* AF31: the usual DSCP of the lossless class in RoCE networks */

/* What ibv_get_device_list returns. Where open() creates the HCA (io/process.c), hca is NULL until
 * the first open. */
struct hca_device {
    struct ibv_device v;
    char zero[512];
    struct hca *hca;
    uint32_t ip;
    int (*open)(struct hca_device *d); /* sets hca; 0 or -errno. NULL: hca is set already */
    unsigned port;
};

/* What an HCA records in its ring; hca.c has the names. */
enum hca_event {
    HCA_EV_QP_CREATED,   /* QPN, type */
    HCA_EV_QP_STATE,     /* QPN, state that the program set */
    HCA_EV_QP_DESTROYED, /* QPN, state */
    HCA_EV_ASYNC,        /* enum ibv_event_type, QPN or 0 */
    HCA_EV_ASYNC_LOST,   /* the same */
    HCA_EV_PORT,         /* active, NIC connected */
    HCA_EV_CQ_OVERRUN,   /* entries, references to the queue */
    HCA_EV_MR,           /* lkey, access */
    HCA_EV_MR_REFUSED,   /* errno, access */
    HCA_EV_MR_GONE,      /* lkey, windows */
    HCA_EV_KINDS
};

/* Fields are in order of use: a simulation has thousands of HCAs, and each cache line that it
 * touches of one is a miss. */
struct hca {
    struct endpoint ep; /* of the rnic */
    int64_t now_ps;
    uint64_t completions, written; /* written: accesses of peers that write memory */

    bool deferred;                       /* work waits that the engine's callbacks must not do */
    bool nic_up, link_up, port_up, dead; /* port_up: nic_up and link_up, as last reported */
    bool overrun;                        /* a CQ has overrun */
    bool delays;                         /* cfg.notice is not zero */
    uint32_t n_waiting;                  /* CQs with completions to poll */
    unsigned igmp_n, arp_asks, arp_waiters, igmp_groups; /* igmp_groups: used entries of group[] */
    struct hca_key *key; /* by index; a key is index << 8 | tag (keys.c) */
    uint32_t key_cap;
    /* Receive completions that the program does not see yet, oldest first (completion_delay.c). */
    uint32_t delayed_cap, delayed_head, delayed_tail; /* free-running; cap is a power of two */
    int64_t short_free_ps;   /* when short protocols are free again (fab_noticed_ps()) */
    struct hlist limit_srqs; /* SRQs whose limit is armed */

    struct hca_cfg cfg CACHELINE_ALIGNED;
    struct hca_delayed *delayed;
    struct hca_device *dev, own_dev;
    struct rnic *rnic;
    struct hlist ctxs;
    uint32_t next_pd, next_dm;
    uint32_t key_free_head, key_free_tail;
    uint32_t n_pd, n_mr, n_mw, n_cq, n_srq, n_ah, dm_bytes;
    struct hca_ah_chunk *ah_chunks;
    struct hca_ah *ah_free_head, *ah_free_tail;
    uint32_t ah_free;
    struct hlist overrun_cqs; /* until hca_run_deferred() */
    /* Multicast groups with members here, and IGMP messages that wait to be sent. */
    struct hca_group {
        uint32_t ip, refs;
        uint8_t answer; /* the NIC's: enum igmp_answer */
    } group[ROCE_MAX_MCAST];
    struct hca_igmp {
        uint32_t group;
        bool leave;
    } igmp[HCA_IGMP_QUEUE];
    /* Neighbours outside the fabric (arp.c). ask: an ARP request waits to be sent. */
    struct hca_neighbour {
        uint32_t ip; /* 0: free */
        uint8_t mac[6];
        bool known, waiting, ask;
        int64_t known_ps, asked_ps;
    } neighbour[HCA_NEIGHBOURS];
    struct events events; /* enum hca_event */
};

/* All that a packet needs of a region, in one cache line. */
struct hca_key {
    struct hca_mr *mr; /* NULL: the key is a window's, or free */
    struct hca_mw *mw; /* NULL: the key is a region's, or free */
    uint32_t next;     /* next free entry; UINT32_MAX: this is the last */
    uint8_t tag;
    /* Copied from the region (mr_settle). */
    bool unbacked;
    unsigned access;
    uint32_t pd;
    uint64_t iova, length;
    char *start;
} CACHELINE_ALIGNED;

struct hca_ctx {
    struct verbs_context v;
    char zero[256];
    struct hca *hca;
    /* Of an imported context: the one that owns the objects. It stays until the last import closes.
     */
    struct hca_ctx *origin;
    uint32_t imports;
    bool closed;
    struct hlist link, pds, cqs, qps, srqs, channels, dms, tds;
    /* Async events, oldest first. */
    struct ibv_async_event async[HCA_ASYNC_DEPTH];
    uint32_t async_head, async_tail;
};

struct hca_pd {
    struct ibv_pd v;
    char zero[64];
    struct hca_pd *base; /* the domain behind a parent or imported domain; else itself */
    struct hca_td *td;   /* thread domain of a parent domain, or NULL */
    struct hca_ctx *ctx;
    struct hlist link;
    uint32_t refs;
};

struct hca_td {
    struct ibv_td v;
    char zero[64];
    struct hlist link;
    uint32_t refs;
};

struct hca_dm {
    struct ibv_dm v;
    char zero[64];
    struct hca_ctx *ctx;
    struct hlist link;
    char *mem;
    size_t bytes;
    struct hca_dm *base; /* of an import: the original; else NULL */
    uint32_t refs;       /* regions and imports of it */
};

struct hca_mr {
    struct ibv_mr v;
    char zero[64];
    struct hca *hca;
    struct hca_pd *pd;
    uint32_t windows; /* open windows on the region */
    void *map;        /* mapping of a dma-buf, else NULL */
    size_t map_bytes;
    struct hca_dm *dm; /* NULL: the region is the program's memory */
    bool imported;     /* another name of a region (import.c) */
};

struct hca_mw {
    struct ibv_mw v;
    char zero[64];
    struct hca_pd *pd;
    struct hca_mr *mr; /* NULL: closed */
    struct hca_qp *qp; /* the binder of an open window of type 2, else NULL */
    char *start;
    uint64_t iova, length;
    unsigned access;
};

struct hca_channel {
    struct ibv_comp_channel v;
    char zero[64];
    struct hca_ctx *ctx;
    struct hlist link;
    struct hlist pending; /* CQs with events to fetch */
    uint32_t refs;
};

/* A completion, smaller than struct ibv_wc because rings are long. */
struct hca_cqe {
    uint64_t wr_id;
    int64_t ts_ps;
    /* The request's queue: its count of free entries, to which a poll adds `slots`: the request's
     * entry and those of the unsignaled requests before it. */
    uint16_t *free;
    uint32_t qp_num, src_qp, byte_len;
    uint32_t imm; /* immediate data, or the invalidated key */
    uint16_t slots;
    uint8_t status, opcode, wc_flags, sl; /* as in struct ibv_wc */
    bool solicited;
};
_Static_assert(sizeof(struct hca_cqe) == 48, "four entries lie in three cache lines");

enum cq_armed { CQ_IDLE, CQ_SOLICITED, CQ_ANY };

struct hca_cq {
    union {
        struct ibv_cq v;
        struct ibv_cq_ex ex;
    };
    char zero[64];
    struct hca *hca CACHELINE_ALIGNED;
    struct hca_ctx *ctx;
    struct hca_channel *channel;
    struct hca_cqe *ring;
    uint32_t cap, head, tail; /* free-running; cap is a power of two */
    enum cq_armed armed;
    bool overrun;
    bool waits;    /* has completions, and is counted in n_waiting */
    bool notified; /* an event was posted since the last poll */
    uint32_t refs;
    struct hlist link, pending, overrun_link;
    uint32_t events;  /* pending in the channel */
    uint32_t unacked; /* fetched, not acknowledged */
    uint32_t async_unacked;
    struct hca_cqe cur; /* current entry of an extended poll */
};

struct hca_srq {
    struct ibv_srq v;
    char zero[64];
    struct hca_ctx *ctx;
    struct hca_pd *pd;
    struct rq *rq;
    struct hlist link, limit_link;
    uint32_t max_wr, max_sge, limit;
    uint32_t refs, async_unacked;
    uint16_t free; /* free entries, as hca_qp.rq_free */
    uint8_t slot;
};

struct hca_ah {
    struct ibv_ah v;
    char zero[64];
    struct hca_pd *pd;
    struct ud_dest to;
    uint32_t live; /* HCA_AH_LIVE, or 0 once destroyed */
    struct hca_ah *next_free;
};
#define HCA_AH_LIVE 0x4c495645u

struct hca_qp {
    union {
        struct ibv_qp v;
        struct ibv_qp_ex ex;
    };
    char zero[64];
    struct hca *hca CACHELINE_ALIGNED;
    struct hca_cq *scq, *rcq;
    struct rq *rq; /* the SRQ's, or its own */
    struct qp *qp;
    /* Free entries of each queue. A request occupies its entry until its completion, or a later
     * one, is polled. */
    uint16_t sq_free, rq_free;
    uint8_t slot;                /* entries that a request takes: 1; with early_slots 0 */
    bool sig_all, is_ex, shared; /* shared: has an SRQ */
    struct ibv_qp_cap cap;
    struct hca_srq *srq;
    struct hca_ctx *ctx;
    struct hca_pd *pd;
    struct hlist link;
    struct ibv_qp_attr attr; /* as ibv_modify_qp set them, for ibv_query_qp */
    uint32_t async_unacked;
    uint32_t windows; /* open windows of type 2 that this queue pair bound */
    bool drain_event; /* requested with en_sqd_async_notify */
    uint32_t mcast[ROCE_MAX_MCAST];
    unsigned n_mcast;
    /* Extended posting: requests between wr_start and wr_complete. */
    struct wqe *batch;
    uint32_t n_batch;
    int batch_err;
};

#define to_pd(p)      (((struct hca_pd *)(p))->base)
#define to_dm(p)      ((struct hca_dm *)(p))
#define to_mr(p)      ((struct hca_mr *)(p))
#define to_mw(p)      ((struct hca_mw *)(p))
#define to_cq(p)      ((struct hca_cq *)(p))
#define to_qp(p)      ((struct hca_qp *)(p))
#define to_srq(p)     ((struct hca_srq *)(p))
#define to_ah(p)      ((struct hca_ah *)(p))
#define to_channel(p) ((struct hca_channel *)(p))

#endif
