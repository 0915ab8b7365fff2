/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of host/hca share: the lock, and each file's functions. Unless stated otherwise,
 * internal functions run with the lock held and calls of libibverbs' interface without it.
 */
#ifndef TRIB_HOST_HCA_HCA_PRIV_H
#define TRIB_HOST_HCA_HCA_PRIV_H

#include "host/hca/hca_objects.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>

/* host/hca defines these calls, so libibverbs' inline wrappers must not replace them. */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#undef ibv_query_port
#undef ibv_get_device_list

#define EXPORT __attribute__((visibility("default")))

/* A function of the system's own libibverbs, for devices and objects of other drivers. It has every
 * call that host/hca exports. */
void *hca_real(const char *name);
void *hca_dlopen(const char *name, int flags); /* the system's own dlopen (dlopen.c) */
#define REAL(fn)                                                                                   \
    ({                                                                                             \
        static __typeof__(fn) *real_;                                                              \
        if (!real_)                                                                                \
            real_ = (__typeof__(fn) *)hca_real(#fn);                                               \
        real_;                                                                                     \
    })

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

/* Returns EIO and sets errno. The first call prints that the parent opened the device. */
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

/* Drops the lock, waits for another thread and takes the lock again. false: there is no other
 * thread. */
static inline bool hca_wait(struct hca *h)
{
    if (!h->cfg.drv.idle || h->dead)
        return false;
    hca_unlock(h);
    h->cfg.drv.idle(h->cfg.drv.ctx);
    hca_lock(h);
    return true;
}

/* hca_create() on a device that was listed before. dev NULL: on a device of its own. */
int hca_create_on(struct hca **h, const struct hca_cfg *cfg, struct hca_device *dev);
void hca_device_init(struct hca_device *d, const char *name, uint32_t ip);
bool hca_device_ours(const struct ibv_device *d);

/* ---- contexts (verbs_device.c) ---- */
struct hca_ctx *hca_ctx_of(struct ibv_context *c); /* NULL: another driver's */
void hca_ctx_free(struct hca_ctx *c);
struct hca_ctx *ctx_make(struct hca *h); /* the caller lists it; NULL: see errno */

/* ---- imported objects (import.c) ---- */
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

/* ---- unsupported calls (refuse.c) ---- */
/* Prints a message for the program's user, once; returns rc, an errno. */
int hca_refuse(struct hca *h, int rc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void refuse_fill(struct verbs_context *v);
void newer_fill(struct verbs_context *v); /* calls of newer libibverbs (newer.c) */

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
/* Frees queue entries when a completion is polled, or is dropped because nobody will poll it. */
static inline void slots_free(const struct hca_cqe *e)
{
    *e->free = (uint16_t)(*e->free + e->slots);
}
void cq_free(struct hca_cq *cq);
struct hca_cq *cq_create(struct hca_ctx *c, uint32_t cqe, void *user, struct ibv_comp_channel *ch,
                         int vector);
int hca_poll_cq(struct ibv_cq *v, int n, struct ibv_wc *wc);
int hca_req_notify_cq(struct ibv_cq *v, int solicited_only);
struct ibv_cq_ex *hca_create_cq_ex(struct ibv_context *v, struct ibv_cq_init_attr_ex *a);

/* ---- delayed receive completions (completion_delay.c) ---- */
static inline bool delayed_any(const struct hca *h)
{
    return h->delayed_head != h->delayed_tail;
}
void delayed_push(struct hca_cq *cq, const struct hca_cqe *e, bool solicited);
void delayed_show(struct hca *h);                    /* delivers those that are due at h->now_ps */
int64_t delayed_next(const struct hca *h);           /* when the next is due; PS_NEVER: none */
void delayed_clean(struct hca_cq *cq, uint32_t qpn); /* of a destroyed or reset queue pair */

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
void qp_all_slots(struct hca_qp *qp);
void qp_return_receive(struct hca_qp *qp);
void qp_list_cachelines(struct hca_qp *qp, bool on); /* adds it to the list of the rnic */
int hca_post_send(struct ibv_qp *v, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int hca_post_recv(struct ibv_qp *v, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int hca_post_srq_recv(struct ibv_srq *v, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct ibv_qp *hca_create_qp_ex(struct ibv_context *v, struct ibv_qp_init_attr_ex *a);
int post_check(const struct hca_qp *qp, unsigned opcode);
int post_engine(struct hca_qp *qp, const struct wqe *w); /* 0 or -errno */
void post_say_stuck(const struct hca_qp *qp);            /* for a queue that no poll can empty */
int rwqe_from_wr(struct rwqe *w, const struct ibv_recv_wr *wr, uint32_t max_sge);
void srq_free(struct hca_srq *s);
struct ibv_srq *hca_create_srq_ex(struct ibv_context *v, struct ibv_srq_init_attr_ex *a);
void srq_check_limits(struct hca *h);

/* ---- addresses (ah.c) ---- */
/* Call addr_resolve() first, without the lock, because it may wait; then the others with the lock.
 * Those that return int return 0, -EINVAL or -EHOSTUNREACH. */
bool addr_is_foreign(const struct hca *h, uint32_t ip); /* a host outside the fabric, or unknown */
int addr_from_ah_attr(struct hca *h, const struct ibv_ah_attr *a, struct ud_dest *to);
int addr_resolve(struct hca *h, const struct ibv_ah_attr *a);
void addr_gid(uint32_t ip, unsigned index, union ibv_gid *g); /* index < HCA_GIDS */
bool ah_usable(const struct hca_qp *qp, const struct ibv_ah *ah);
void ah_release_all_of(struct hca_ctx *c);
void ah_free_chunks(struct hca *h);
void addr_mac_of_ip(uint32_t ip, uint8_t mac[6]);

/* ---- neighbours outside the fabric (arp.c) ---- */
/* Waits until the MAC of the address is known. Called without the lock. 0 or -EHOSTUNREACH. */
int arp_resolve(struct hca *h, uint32_t ip);
bool arp_lookup(const struct hca *h, uint32_t ip, uint8_t mac[6]); /* with the lock held */
uint16_t arp_output(struct hca *h, struct rte_mbuf **m, uint16_t n);
/* Removes awaited ARP replies from the burst m. Returns the number of frames left in m. */
uint16_t arp_input(struct hca *h, struct rte_mbuf **m, uint16_t n);

/* ---- membership of multicast groups (igmp.c) ---- */
uint16_t igmp_output(struct hca *h, struct rte_mbuf **m, uint16_t n);
/* Removes the NIC's answers from the burst m. Returns the number of frames left in m. */
uint16_t igmp_input(struct hca *h, struct rte_mbuf **m, uint16_t n);
/* Joins a group, and waits for the NIC's answer where another thread receives frames. 0 or -errno;
 * -ENOSPC: the NIC refused, because the host or this process is in as many groups as it may be. */
int igmp_join(struct hca *h, uint32_t group);
void igmp_leave(struct hca *h, uint32_t group);
void igmp_repeat(struct hca *h);

/* ---- device and port attributes (verbs_query.c) ---- */
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
void notify_cancel(int fd); /* takes one post back, unless a reader has already read it */
void notify_detach(int fd); /* in a forked child: replaces the parent's descriptor by its own */

/* ---- the fabric that the environment names (io/process.c) ---- */
bool process_on_fabric(void);
struct hca *process_hca_of_port(unsigned port); /* NULL: not open, or no such port */
void process_say(void *ctx, const char *what,
                 const char *text);                          /* hca_driver.say (process_say.c) */
int process_devices(struct hca_device **devs, unsigned max); /* how many, or -errno */

#endif
