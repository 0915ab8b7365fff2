/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses: GID to IPv4 to MAC. A GID of the fabric is IPv4-mapped, or the link-local one that
 * follows from the port's MAC and so from its IPv4 address. So no table is needed (roce_mac_of_ip)
 * but for hosts outside the fabric (arp.c), which are reached by IPv4. Multicast GIDs are
 * IPv4-mapped, plain or below ff0e:: as rdma-core writes them (RFC 1112 gives the MAC).
 *
 * GID index 0 is IPv4 and 1 link-local; kernels have them the other way round. Programs take index
 * 0 by default, and hosts outside are reached by IPv4.
 */
#include "host/hca/hca_priv.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

static int ip_of_gid(const union ibv_gid *g, uint32_t *ip, bool *v6)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    static const uint8_t group[12] = {[0] = 0xff, [1] = 0x0e, [10] = 0xff, [11] = 0xff};
    uint32_t be;

    *ip = roce_ip_of_link_local(g->raw);
    *v6 = *ip != 0;
    if (*v6)
        return 0;
    if (memcmp(g->raw, mapped, 12) && memcmp(g->raw, group, 12))
        return -EINVAL;
    memcpy(&be, g->raw + 12, 4);
    *ip = be32toh(be);
    return *ip ? 0 : -EINVAL;
}

void addr_gid(uint32_t ip, unsigned index, union ibv_gid *g)
{
    uint32_t be = htobe32(ip);

    if (index == HCA_GID_LINK_LOCAL) {
        roce_link_local_of_ip(ip, g->raw);
        return;
    }
    memset(g, 0, sizeof(*g));
    g->raw[10] = g->raw[11] = 0xff;
    memcpy(g->raw + 12, &be, 4);
}

static inline bool is_group(uint32_t ip)
{
    return ip >> 28 == 0xe;
}

void addr_mac_of_ip(uint32_t ip, uint8_t mac[6])
{
    if (!is_group(ip)) {
        roce_mac_of_ip(ip, mac);
        return;
    }
    mac[0] = 0x01, mac[1] = 0x00, mac[2] = 0x5e;
    mac[3] = ip >> 16 & 0x7f, mac[4] = ip >> 8, mac[5] = ip;
}

bool addr_is_foreign(const struct hca *h, uint32_t ip)
{
    return h->cfg.drv.foreign && !is_group(ip) && h->cfg.drv.foreign(h->cfg.drv.ctx, ip);
}

/* RoCE has no LIDs, so an address needs a GRH. Source and destination GID are of one kind, except
 * that groups are IPv4 for every sender. */
static int dest_of_ah_attr(struct hca *h, const struct ibv_ah_attr *a, struct ud_dest *to)
{
    *to = (struct ud_dest){0};
    if (!a->is_global || a->grh.sgid_index >= HCA_GIDS ||
        (a->port_num && a->port_num != HCA_PORT) || ip_of_gid(&a->grh.dgid, &to->ip, &to->v6))
        return -EINVAL;
    if (!is_group(to->ip) && to->v6 != (a->grh.sgid_index == HCA_GID_LINK_LOCAL))
        return -EINVAL;
    if (!is_group(to->ip) && h->cfg.drv.nowhere && h->cfg.drv.nowhere(h->cfg.drv.ctx, to->ip))
        return -hca_refuse(h, EHOSTUNREACH,
                           "found the GID of %u.%u.%u.%u as destination, expected that of a host "
                           "or switch of the fabric (trib plan prints their addresses)",
                           to->ip >> 24, to->ip >> 16 & 255, to->ip >> 8 & 255, to->ip & 255);
    return to->v6 && (is_group(to->ip) || addr_is_foreign(h, to->ip)) ? -EHOSTUNREACH : 0;
}

int addr_from_ah_attr(struct hca *h, const struct ibv_ah_attr *a, struct ud_dest *to)
{
    int rc = dest_of_ah_attr(h, a, to);

    if (rc)
        return rc;
    if (!addr_is_foreign(h, to->ip))
        addr_mac_of_ip(to->ip, to->mac);
    else if (!arp_lookup(h, to->ip, to->mac))
        return -EHOSTUNREACH;
    return 0;
}

int addr_resolve(struct hca *h, const struct ibv_ah_attr *a)
{
    struct ud_dest to;
    int rc = dest_of_ah_attr(h, a, &to);

    return rc || h->dead || !addr_is_foreign(h, to.ip) ? rc : arp_resolve(h, to.ip);
}

/* addr_resolve() and addr_from_ah_attr(), for callers that do not hold the lock. */
static int addr_get(struct hca *h, const struct ibv_ah_attr *a, struct ud_dest *to)
{
    int rc = addr_resolve(h, a);

    if (rc)
        return rc;
    hca_lock(h);
    rc = addr_from_ah_attr(h, a, to);
    hca_unlock(h);
    return rc;
}

/* ---- handles ---- */

/*
 * A send with a destroyed handle is refused. Handles live in chunks that stay allocated until the
 * HCA is destroyed, and an entry is reused only after QUARANTINE others, so a stale handle reads as
 * destroyed and does not send to another handle's address.
 */
#define CHUNK      64
#define QUARANTINE (CHUNK - 1)

struct hca_ah_chunk {
    struct hca_ah_chunk *next;
    struct hca_ah ah[CHUNK];
};

static void ah_put(struct hca *h, struct hca_ah *ah)
{
    T_ASSERT(!ah->live, "a live address handle is put on the free list");
    ah->next_free = NULL;
    if (h->ah_free++)
        h->ah_free_tail->next_free = ah;
    else
        h->ah_free_head = ah;
    h->ah_free_tail = ah;
}

/* With the lock held. NULL: too many, or no memory. */
static struct hca_ah *ah_take(struct hca *h)
{
    struct hca_ah *ah;

    if (h->n_ah == HCA_MAX_AH)
        return NULL;
    if (h->ah_free <= QUARANTINE) {
        struct hca_ah_chunk *c = calloc(1, sizeof(*c));

        if (!c)
            return NULL;
        c->next = h->ah_chunks;
        h->ah_chunks = c;
        for (unsigned i = 0; i < CHUNK; i++)
            ah_put(h, &c->ah[i]);
    }
    ah = h->ah_free_head;
    T_ASSERT(ah && !ah->live && ah->next_free,
             "the free list of address handles is shorter than its count");
    h->ah_free_head = ah->next_free;
    h->ah_free--;
    h->n_ah++;
    return ah;
}

static void ah_release(struct hca *h, struct hca_ah *ah)
{
    T_ASSERT(h->n_ah && ah->pd->refs, "an address handle is destroyed that was not counted");
    ah->live = 0;
    ah->pd->refs--;
    h->n_ah--;
    ah_put(h, ah);
}

bool ah_usable(const struct hca_qp *qp, const struct ibv_ah *v)
{
    return v && to_ah(v)->live == HCA_AH_LIVE && to_ah(v)->pd == qp->pd;
}

/* With the lock held, before the context's PDs go. */
void ah_release_all_of(struct hca_ctx *c)
{
    for (struct hca_ah_chunk *k = c->hca->ah_chunks; k; k = k->next)
        for (unsigned i = 0; i < CHUNK; i++)
            if (k->ah[i].live && k->ah[i].v.context == &c->v.context)
                ah_release(c->hca, &k->ah[i]);
}

void ah_free_chunks(struct hca *h)
{
    while (h->ah_chunks) {
        struct hca_ah_chunk *c = h->ah_chunks;

        h->ah_chunks = c->next;
        free(c);
    }
}

EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *v, struct ibv_ah_attr *attr)
{
    struct hca_ctx *c = hca_ctx_of(v->context);
    struct ud_dest to;
    struct hca_ah *ah;
    int rc;

    if (!c)
        return REAL(ibv_create_ah)(v, attr);
    if (hca_dead(c->hca))
        return NULL;
    rc = addr_get(c->hca, attr, &to);
    if (rc) {
        errno = -rc;
        return NULL;
    }
    hca_lock(c->hca);
    ah = ah_take(c->hca);
    if (ah) {
        ah->v = (struct ibv_ah){.context = v->context, .pd = v};
        ah->pd = to_pd(v);
        ah->to = to;
        ah->live = HCA_AH_LIVE;
        ah->pd->refs++;
    }
    hca_unlock(c->hca);
    if (!ah) {
        errno = ENOMEM;
        return NULL;
    }
    return &ah->v;
}

EXPORT int ibv_destroy_ah(struct ibv_ah *v)
{
    struct hca_ctx *c = hca_ctx_of(v->context);
    int rc = 0;

    if (!c)
        return REAL(ibv_destroy_ah)(v);
    hca_lock(c->hca);
    if (to_ah(v)->live == HCA_AH_LIVE)
        ah_release(c->hca, to_ah(v));
    else
        rc = EINVAL; /* destroyed already */
    hca_unlock(c->hca);
    return rc;
}

/* The 40 bytes before the payload hold the sender's address: in an IPv4 header in the last 20
 * bytes, or in an IPv6 header. */
static int reply_gid(const struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
    const uint8_t *ip4 = (const uint8_t *)grh + 20;
    uint32_t be;

    if (ip4[0] == 0x45) {
        memcpy(&be, ip4 + 12, 4);
        attr->grh.sgid_index = HCA_GID_IPV4;
        addr_gid(be32toh(be), HCA_GID_IPV4, &attr->grh.dgid);
        return 0;
    }
    if (be32toh(grh->version_tclass_flow) >> 28 != 6)
        return -EINVAL;
    attr->grh.sgid_index = HCA_GID_LINK_LOCAL;
    attr->grh.dgid = grh->sgid;
    return 0;
}

EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
                               struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
    if (!hca_ctx_of(context))
        return REAL(ibv_init_ah_from_wc)(context, port_num, wc, grh, attr);
    memset(attr, 0, sizeof(*attr));
    if (port_num != HCA_PORT || !(wc->wc_flags & IBV_WC_GRH) || !grh || reply_gid(grh, attr)) {
        errno = EINVAL;
        return -1;
    }
    attr->is_global = 1;
    attr->port_num = port_num;
    attr->grh.hop_limit = 64;
    return 0;
}

EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
                                            struct ibv_grh *grh, uint8_t port_num)
{
    struct ibv_ah_attr attr;

    if (!hca_ctx_of(pd->context))
        return REAL(ibv_create_ah_from_wc)(pd, wc, grh, port_num);
    return ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr) ? NULL
                                                                      : ibv_create_ah(pd, &attr);
}

EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
                                       uint8_t mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
    struct hca_ctx *c = hca_ctx_of(context);
    struct ud_dest to;
    int rc;

    if (!c)
        return REAL(ibv_resolve_eth_l2_from_gid)(context, attr, mac, vid);
    rc = addr_get(c->hca, attr, &to);
    if (rc) {
        errno = -rc;
        return -1;
    }
    memcpy(mac, to.mac, ETHERNET_LL_SIZE);
    if (vid)
        *vid = 0xffff;
    return 0;
}

/* ---- multicast ---- */

static int mcast_ip(struct ibv_qp *v, const union ibv_gid *gid, uint32_t *ip)
{
    const uint8_t *g = gid->raw;
    bool v6, ok = !ip_of_gid(gid, ip, &v6) && !v6 && is_group(*ip);

    if (!ok)
        return hca_refuse(
            to_qp(v)->hca, EINVAL,
            "ibv_attach_mcast, ibv_detach_mcast: found MGID "
            "%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x, "
            "expected an IPv4 group: ::ffff:224.0.0.0 to ::ffff:239.255.255.255, or "
            "ff0e::ffff: and the same",
            g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9], g[10], g[11], g[12], g[13],
            g[14], g[15]);
    return v->qp_type == IBV_QPT_UD ? 0 : EINVAL;
}

/* Detaches the queue pair from the group. Returns whether it was attached. */
static bool forget_mcast(struct hca_qp *qp, uint32_t ip)
{
    for (unsigned i = 0; i < qp->n_mcast; i++)
        if (qp->mcast[i] == ip) {
            qp->mcast[i] = qp->mcast[--qp->n_mcast];
            qp_detach_mcast(qp->qp, ip);
            return true;
        }
    return false;
}

EXPORT int ibv_attach_mcast(struct ibv_qp *v, const union ibv_gid *gid, uint16_t lid)
{
    struct hca_ctx *c = hca_ctx_of(v->context);
    struct hca_qp *qp = to_qp(v);
    uint32_t ip;
    int rc;

    if (!c)
        return REAL(ibv_attach_mcast)(v, gid, lid);
    rc = hca_dead(c->hca) ? EIO : mcast_ip(v, gid, &ip);
    if (rc)
        return rc;
    hca_lock(c->hca);
    for (unsigned i = 0; i < qp->n_mcast; i++)
        if (qp->mcast[i] == ip)
            goto out; /* attached already */
    T_ASSERT(qp->n_mcast <= ROCE_MAX_MCAST,
             "a queue pair is attached to more groups than it can list");
    rc = qp->n_mcast == ROCE_MAX_MCAST ? ENOMEM : -qp_attach_mcast(qp->qp, ip);
    if (!rc) {
        qp->mcast[qp->n_mcast++] = ip; /* igmp_join() drops the lock, and others may attach */
        rc = -igmp_join(c->hca, ip);
        if (rc)
            forget_mcast(qp, ip);
    }
    hca_kick(c->hca);
out:
    hca_unlock(c->hca);
    return rc;
}

EXPORT int ibv_detach_mcast(struct ibv_qp *v, const union ibv_gid *gid, uint16_t lid)
{
    struct hca_ctx *c = hca_ctx_of(v->context);
    struct hca_qp *qp = to_qp(v);
    uint32_t ip;
    int rc;

    if (!c)
        return REAL(ibv_detach_mcast)(v, gid, lid);
    rc = mcast_ip(v, gid, &ip);
    if (rc)
        return rc;
    hca_lock(c->hca);
    rc = forget_mcast(qp, ip) ? 0 : EINVAL;
    if (!rc) {
        igmp_leave(c->hca, ip);
        hca_kick(c->hca);
    }
    hca_unlock(c->hca);
    return rc;
}
