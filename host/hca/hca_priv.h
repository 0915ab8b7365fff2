/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The objects behind the verbs, for host/hca only. Each begins with the public struct that
 * libibverbs' header declares; zeroed bytes follow where programs are known to look behind it.
 *
 * Everything here is guarded by the driver's one lock per HCA; nothing of it is touched without.
 */
#ifndef TRIB_HOST_HCA_HCA_PRIV_H
#define TRIB_HOST_HCA_HCA_PRIV_H

#include "host/hca/hca.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>

/* The calls are defined here, so their inline wrappers would be in the way. */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#undef ibv_query_port
#undef ibv_get_device_list

#define EXPORT __attribute__((visibility("default")))

/* The system's own libibverbs, for devices and objects that are not ours. It has every call that is
 * exported here. */
void *hca_real(const char *name);
void *hca_dlopen(const char *name, int flags); /* the system's own dlopen (dlopen.c) */
#define REAL(fn)                                                                                   \
    ({                                                                                             \
        static __typeof__(fn) *real_;                                                              \
        if (!real_)                                                                                \
            real_ = (__typeof__(fn) *)hca_real(#fn);                                               \
        real_;                                                                                     \
    })

/* What the device reports, what works, and past what ENOMEM (objects) or EINVAL (sizes) comes:
 * tests/host/hca/test_limits.c and test_sizes.c try them all. */
#define HCA_MAX_MR_SIZE (1ull << 40)
#define HCA_MAX_MR      65535u
#define HCA_MAX_MW      65535u
#define HCA_MAX_KEYS    (1u << 17) /* of both; one of them is no key */
#define HCA_MAX_CQ      65536u
#define HCA_MAX_CQE     (1u << 17)
#define HCA_MAX_PD      65536u
#define HCA_MAX_AH      65536u
#define HCA_MAX_SRQ     16384u
#define HCA_MAX_WR      16384u
#define HCA_MAX_DM      (256u << 10) /* bytes of device memory, of all */
#define HCA_ASYNC_DEPTH 1024u
#define HCA_IGMP_QUEUE  (2 * ROCE_MAX_MCAST)
#define HCA_NEIGHBOURS  64 /* outside the fabric, whose MACs are remembered */
#define HCA_PORT        1  /* a device has one port */
enum { HCA_GID_IPV4, HCA_GID_LINK_LOCAL, HCA_GIDS }; /* its GID table */
#define HCA_PKEY 0xffff
#define HCA_DSCP 26 /* of the lossless class: what RoCE deployments use (AF31) */

/* Intrusive doubly linked list; a head points at itself. */
struct hlist {
    struct hlist *prev, *next;
};

static inline void hlist_init(struct hlist *l)
{
    l->prev = l->next = l;
}

static inline void hlist_add(struct hlist *head, struct hlist *l)
{
    l->prev = head->prev, l->next = head;
    head->prev->next = l, head->prev = l;
}

static inline void hlist_del(struct hlist *l)
{
    l->prev->next = l->next, l->next->prev = l->prev;
    hlist_init(l);
}

static inline bool hlist_empty(const struct hlist *l)
{
    return l->next == l;
}

#define hlist_entry(l, type, field) ((type *)((char *)(l)-offsetof(type, field)))
#define hlist_for(l, head)          for (struct hlist *l = (head)->next; l != (head); l = l->next)

/* What ibv_get_device_list hands out. hca is NULL until the first open where open() makes it
 * (rim.c). */
struct hca_device {
    struct ibv_device v;
    char zero[512];
    struct hca *hca;
    uint32_t ip;
    int (*open)(struct hca_device *d); /* sets hca; 0 or -errno. NULL: hca is there already */
    unsigned port;
};

/* In order of use: a simulated fabric has thousands, and each line of a cold one costs. */
struct hca {
    struct endpoint ep; /* the rnic's */
    int64_t now_ps;
    uint64_t completions, written; /* written: times that a peer had memory to write to */

    bool deferred; /* work that callbacks of the engine may not do themselves */
    bool nic_up, link_up, port_up, dead; /* port_up: what is told, both of the others */
    bool overrun;                        /* some CQ has */
    uint32_t n_waiting;                  /* CQs with completions that nobody has polled */
    unsigned igmp_n, arp_asks, arp_waiters;
    struct hca_key *key; /* by index; a key is index << 8 | tag (keys.c) */
    uint32_t key_cap;
    /* Receive completions that the program does not see yet, oldest first (late.c). */
    uint32_t delayed_cap, delayed_head, delayed_tail; /* free-running; cap is a power of two */
    struct hlist limit_srqs;                          /* deferred */

    struct hca_cfg cfg __rte_cache_aligned;
    struct hca_delayed *late;
    struct hca_device *dev, own_dev;
    struct rnic *rnic;
    struct hlist ctxs;
    uint32_t next_pd, next_dm;
    uint32_t key_free_head, key_free_tail;
    uint32_t n_pd, n_mr, n_mw, n_cq, n_srq, n_ah, dm_bytes;
    struct hca_ah_chunk *ah_chunks;
    struct hca_ah *ah_free_head, *ah_free_tail;
    uint32_t ah_free;
    struct hlist overrun_cqs; /* deferred */
    /* Multicast groups with members here, and what the fabric is still to be told. */
    struct hca_group {
        uint32_t ip, refs;
    } group[ROCE_MAX_MCAST];
    struct hca_igmp {
        uint32_t group;
        bool leave;
    } igmp[HCA_IGMP_QUEUE];
    /* Who is outside the fabric (arp.c). ask: the question is to be sent. */
    struct hca_neighbour {
        uint32_t ip; /* 0: free */
        uint8_t mac[6];
        bool known, waiting, ask;
        int64_t known_ps, asked_ps;
    } neighbour[HCA_NEIGHBOURS];
};

/* A line of the CPU's caches: all that a packet needs. */
struct hca_key {
    struct hca_mr *mr; /* or */
    struct hca_mw *mw; /* or none: free */
    uint32_t next;     /* in the free list */
    uint8_t tag;
    /* Of a region (mr_settle). */
    bool unbacked;
    unsigned access;
    uint32_t pd;
    uint64_t iova, length;
    char *start;
} __rte_cache_aligned;

struct hca_ctx {
    struct verbs_context v;
    char zero[256];
    struct hca *hca;
    /* Imported: whose objects it shares. That one stays until the last of its imports is closed. */
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
    struct hca_pd *base; /* itself; of a parent domain what it was made of (domain.c) */
    struct hca_td *td;   /* of a parent domain, or NULL */
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
    struct hca_dm *base; /* imported: of which; else NULL */
    uint32_t refs;       /* regions of it, and imports */
};

struct hca_mr {
    struct ibv_mr v;
    char zero[64];
    struct hca *hca;
    struct hca_pd *pd;
    uint32_t windows; /* open on it */
    void *map;        /* of a dma-buf, else NULL */
    size_t map_bytes;
    struct hca_dm *dm; /* NULL: the program's memory */
    bool imported;     /* a name for another one (import.c) */
};

struct hca_mw {
    struct ibv_mw v;
    char zero[64];
    struct hca_pd *pd;
    struct hca_mr *mr; /* NULL: closed */
    struct hca_qp *qp; /* of type 2 while open */
    char *start;
    uint64_t iova, length;
    unsigned access;
};

struct hca_channel {
    struct ibv_comp_channel v;
    char zero[64];
    struct hca_ctx *ctx;
    struct hlist link;
    struct hlist pending; /* CQs with events that nobody fetched */
    uint32_t refs;
};

struct hca_cqe {
    struct ibv_wc wc;
    int64_t ts_ps;
    bool solicited;
};

enum cq_armed { CQ_IDLE, CQ_SOLICITED, CQ_ANY };

struct hca_cq {
    union {
        struct ibv_cq v;
        struct ibv_cq_ex ex;
    };
    char zero[64];
    struct hca *hca __rte_cache_aligned;
    struct hca_ctx *ctx;
    struct hca_channel *channel;
    struct hca_cqe *ring;
    uint32_t cap, head, tail; /* free-running; cap is a power of two */
    enum cq_armed armed;
    bool overrun;
    bool waits; /* has completions, and is counted in n_waiting */
    bool told;  /* an event was given since the last poll */
    uint32_t refs;
    struct hlist link, pending, overrun_link;
    uint32_t events;  /* pending in the channel */
    uint32_t unacked; /* fetched, not acknowledged */
    uint32_t async_unacked;
    struct hca_cqe cur; /* of an extended poll */
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
};

struct hca_ah {
    struct ibv_ah v;
    char zero[64];
    struct hca_pd *pd;
    struct ud_dest to;
    uint32_t live; /* HCA_AH_LIVE, or the handle was destroyed */
    struct hca_ah *next_free;
};
#define HCA_AH_LIVE 0x4c495645u

struct hca_qp {
    union {
        struct ibv_qp v;
        struct ibv_qp_ex ex;
    };
    char zero[64];
    struct hca *hca __rte_cache_aligned;
    struct hca_cq *scq, *rcq;
    struct rq *rq; /* the SRQ's, or its own */
    struct qp *qp;
    struct ibv_qp_cap cap;
    bool sig_all, is_ex, shared; /* shared: has an SRQ */
    struct hca_srq *srq;
    struct hca_ctx *ctx;
    struct hca_pd *pd;
    struct hlist link;
    struct ibv_qp_attr attr; /* what modify_qp was given, for query_qp */
    uint32_t async_unacked;
    uint32_t windows; /* of type 2, bound here */
    bool drain_event; /* asked for with en_sqd_async_notify */
    uint32_t mcast[ROCE_MAX_MCAST];
    unsigned n_mcast;
    /* Extended posting: requests between wr_start and wr_complete. */
    struct wqe *batch;
    uint32_t n_batch;
    int batch_err;
};

/* ---- lock and deferred work (hca.c) ---- */
void hca_run_deferred(struct hca *h);

static inline void hca_lock(struct hca *h)
{
    if (h->cfg.drv.lock && !h->dead)
        h->cfg.drv.lock(h->cfg.drv.ctx);
}

static inline void hca_unlock(struct hca *h)
{
    if (h->deferred)
        hca_run_deferred(h);
    if (h->cfg.drv.unlock && !h->dead)
        h->cfg.drv.unlock(h->cfg.drv.ctx);
}

/* Whether the HCA is a parent's: then EIO, in errno too, and the first time a word to the user. */
int hca_say_dead(void);
static inline int hca_dead(const struct hca *h)
{
    return unlikely(h->dead) ? hca_say_dead() : 0;
}

static inline void hca_kick(struct hca *h)
{
    if (h->cfg.drv.kick && !h->dead)
        h->cfg.drv.kick(h->cfg.drv.ctx);
}

/* Waiting for another thread while nobody holds the lock. false: there is nobody to wait for. */
static inline bool hca_wait(struct hca *h)
{
    if (!h->cfg.drv.idle || h->dead)
        return false;
    hca_unlock(h);
    h->cfg.drv.idle(h->cfg.drv.ctx);
    hca_lock(h);
    return true;
}

/* As hca_create, on a device that was handed out before. */
int hca_create_on(struct hca **h, const struct hca_cfg *cfg, struct hca_device *dev);
void hca_device_init(struct hca_device *d, const char *name, uint32_t ip);
bool hca_device_ours(const struct ibv_device *d);

/* ---- contexts (verbs_device.c) ---- */
struct hca_ctx *hca_ctx_of(struct ibv_context *c); /* NULL: not ours */
void hca_ctx_free(struct hca_ctx *c);
struct hca_ctx *ctx_make(struct hca *h); /* without a place in the list; NULL: errno */

/* ---- objects under another name (import.c) ---- */
struct ibv_context *hca_import_ctx(struct hca_ctx *of, int fd);

/* ---- keys (keys.c); with the lock held ---- */
int key_take(struct hca *h, struct hca_mr *mr, struct hca_mw *mw, uint32_t *key);
void key_give(struct hca *h, uint32_t key);

static inline struct hca_key *key_of(const struct hca *h, uint32_t key)
{
    uint32_t i = key >> 8;

    return i < h->key_cap && h->key[i].tag == (uint8_t)key ? &h->key[i] : NULL;
}

static inline struct hca_key *mr_key(const struct hca_mr *mr)
{
    return &mr->hca->key[mr->v.lkey >> 8];
}

/* ---- what there is not (refuse.c) ---- */
/* Tells the program's user once; returns rc, an errno. */
int hca_refuse(struct hca *h, int rc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void refuse_fill(struct verbs_context *v);

/* ---- device memory (dm.c) ---- */
struct ibv_dm *hca_alloc_dm(struct ibv_context *v, struct ibv_alloc_dm_attr *a);
int hca_free_dm(struct ibv_dm *v);
struct ibv_mr *hca_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *v, uint64_t off, size_t len,
                             unsigned access);
void dm_free(struct hca_dm *dm);

/* ---- thread and parent domains (domain.c) ---- */
struct ibv_td *hca_alloc_td(struct ibv_context *v, struct ibv_td_init_attr *a);
int hca_dealloc_td(struct ibv_td *v);
struct ibv_pd *hca_alloc_parent_domain(struct ibv_context *v,
                                       struct ibv_parent_domain_init_attr *a);
bool pd_is_parent(const struct ibv_pd *pd);

/* ---- on-demand paging (odp.c) ---- */
bool odp_has(const struct hca *h);
void odp_caps(const struct hca *h, struct ibv_odp_caps *caps);
int hca_advise_mr(struct ibv_pd *v, enum ibv_advise_mr_advice advice, uint32_t flags,
                  struct ibv_sge *list, uint32_t n);

/* ---- memory windows (mw.c) ---- */
int mw_mem(const struct hca_mw *mw, struct qp *qp, uint64_t addr, uint64_t len, unsigned access,
           void **p);
int hca_window(void *user, struct qp *q, uint32_t rkey, const struct mw_bind *b);
struct ibv_mw *hca_alloc_mw(struct ibv_pd *v, enum ibv_mw_type type);
int hca_dealloc_mw(struct ibv_mw *v);
int hca_bind_mw(struct ibv_qp *v, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int mw_bind_from(struct wqe *w, const struct hca_qp *qp, const struct ibv_mw *mw, uint32_t rkey,
                 const struct ibv_mw_bind_info *info);
void mw_close(struct hca_mw *mw);
void mw_close_all_of(struct hca_qp *qp);
void mw_free(struct hca_mw *mw);

/* ---- memory (mr.c) ---- */
int hca_mem(void *user, struct qp *qp, bool remote, uint32_t key, uint64_t addr, uint64_t len,
            unsigned access, void **p);
void mr_free(struct hca_mr *mr);
struct ibv_mr *mr_reg(struct ibv_pd *v, void *addr, size_t length, uint64_t iova, unsigned access);

/* ---- completions (cq.c) ---- */
void hca_complete(void *user, const struct cqe *c);
void cq_push(struct hca_cq *cq, const struct hca_cqe *e, bool solicited);
bool cq_pop(struct hca_cq *cq, struct hca_cqe *e);
void cq_clean(struct hca_cq *cq, uint32_t qpn);
void cq_overrun(struct hca_cq *cq);
void cq_free(struct hca_cq *cq);
struct hca_cq *cq_create(struct hca_ctx *c, uint32_t cqe, void *user, struct ibv_comp_channel *ch,
                         int vector);
int hca_poll_cq(struct ibv_cq *v, int n, struct ibv_wc *wc);
int hca_req_notify_cq(struct ibv_cq *v, int solicited_only);
struct ibv_cq_ex *hca_create_cq_ex(struct ibv_context *v, struct ibv_cq_init_attr_ex *a);

/* ---- completions that come late (late.c) ---- */
static inline bool delayed_any(const struct hca *h)
{
    return h->delayed_head != h->delayed_tail;
}
void delayed_push(struct hca_cq *cq, const struct hca_cqe *e, bool solicited);
void delayed_show(struct hca *h);                    /* those that are due at h->now_ps */
int64_t delayed_next(const struct hca *h);           /* when the next is; PS_NEVER: none */
void delayed_clean(struct hca_cq *cq, uint32_t qpn); /* of a queue pair that is gone or reset */

/* ---- events (event.c) ---- */
void async_push(struct hca_ctx *c, const struct ibv_async_event *e);
void async_purge(struct hca_ctx *c, const void *object);
void hca_qp_event(void *user, struct qp *qp, enum qp_event e);
void channel_push(struct hca_cq *cq);
void channel_purge(struct hca_cq *cq);

/* ---- queue pairs (qp.c, qp_modify.c, post.c, qp_ex.c) ---- */
struct hca_qp *qp_make(struct hca_ctx *c, struct ibv_pd *pd, struct ibv_qp_init_attr *a, bool ex);
void qp_free(struct hca_qp *qp);
void qp_to_error(struct hca_qp *qp);
void qp_list_lines(struct hca_qp *qp, bool on); /* among those of the rnic, while connected */
int hca_post_send(struct ibv_qp *v, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int hca_post_recv(struct ibv_qp *v, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int hca_post_srq_recv(struct ibv_srq *v, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct ibv_qp *hca_create_qp_ex(struct ibv_context *v, struct ibv_qp_init_attr_ex *a);
void qp_ex_init(struct hca_qp *qp);
int post_check(const struct hca_qp *qp, unsigned opcode);
int post_engine(struct hca_qp *qp, const struct wqe *w); /* 0 or -errno */
int rwqe_from_wr(struct rwqe *w, const struct ibv_recv_wr *wr, uint32_t max_sge);
void srq_free(struct hca_srq *s);
struct ibv_srq *hca_create_srq_ex(struct ibv_context *v, struct ibv_srq_init_attr_ex *a);
void srq_check_limits(struct hca *h);

/* ---- addresses (ah.c) ---- */
/* With the lock held, after addr_resolve(), which waits where it must, without the lock. 0,
 * -EINVAL, -EHOSTUNREACH. */
int addr_from_ah_attr(struct hca *h, const struct ibv_ah_attr *a, struct ud_dest *to);
int addr_resolve(struct hca *h, const struct ibv_ah_attr *a);
void addr_gid(uint32_t ip, unsigned index, union ibv_gid *g); /* index < HCA_GIDS */
bool ah_usable(const struct hca_qp *qp, const struct ibv_ah *ah);
void ah_release_all_of(struct hca_ctx *c);
void ah_free_chunks(struct hca *h);
void addr_mac_of_ip(uint32_t ip, uint8_t mac[6]);

/* ---- neighbours outside the fabric (arp.c) ---- */
/* Waits until the MAC of that address is known; without the lock. 0 or -EHOSTUNREACH. */
int arp_resolve(struct hca *h, uint32_t ip);
bool arp_lookup(const struct hca *h, uint32_t ip, uint8_t mac[6]); /* with the lock held */
uint16_t arp_output(struct hca *h, struct rte_mbuf **m, uint16_t n);
/* Takes out the answers that are waited for; returns how many frames are left. */
uint16_t arp_input(struct hca *h, struct rte_mbuf **m, uint16_t n);

/* ---- membership of multicast groups (igmp.c) ---- */
uint16_t igmp_output(struct hca *h, struct rte_mbuf **m, uint16_t n);
void igmp_join(struct hca *h, uint32_t group);
void igmp_leave(struct hca *h, uint32_t group);
void igmp_repeat(struct hca *h);

/* ---- what the device says of itself (verbs_query.c) ---- */
unsigned mtu_bytes(enum ibv_mtu m); /* 0: no such value */
enum ibv_mtu mtu_enum(unsigned bytes);
int hca_query_device(struct ibv_context *v, struct ibv_device_attr *a);
int hca_query_device_ex(struct ibv_context *v, const struct ibv_query_device_ex_input *in,
                        struct ibv_device_attr_ex *a, size_t size);
int hca_query_port(struct ibv_context *v, uint8_t port, struct ibv_port_attr *a, size_t size);
int hca_query_port_compat(struct ibv_context *v, uint8_t port, struct _compat_ibv_port_attr *a);
int hca_query_rt_values(struct ibv_context *v, struct ibv_values_ex *values);

/* ---- descriptors (notify.c) ---- */
int notify_open(void); /* fd or -errno */
void notify_close(int fd);
void notify_post(int fd);
int notify_wait(int fd);    /* 0 or -errno; blocks unless the program made the fd non-blocking */
void notify_cancel(int fd); /* takes back one post that nobody has waited for yet */
void notify_detach(int fd); /* in the child of a fork: a descriptor apart from the parent's */

/* ---- the fabric that the environment names (rim.c) ---- */
bool rim_selected(void);
struct hca *rim_hca_of_port(unsigned port);                  /* NULL: not open, or no such port */
void rim_say(void *ctx, const char *what, const char *text); /* hca_driver.say (rim_say.c) */
int rim_devices(struct hca_device **devs, unsigned max);     /* how many, or -errno */

#define hca_of_ctx(c) ((c)->hca)
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
