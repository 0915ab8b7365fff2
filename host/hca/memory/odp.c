/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * On-demand paging: regions whose pages need not be present yet. This HCA's copies fault as a
 * program's do, and the kernel brings the pages. A page that it cannot bring ends the request with
 * an error (roce/guard.h). Where copies are not guarded (virtual time) there are no such regions.
 */
#include "host/hca/hca_priv.h"

bool odp_has(const struct hca *h)
{
    return h->cfg.drv.guarded;
}

void odp_caps(const struct hca *h, struct ibv_odp_caps *caps)
{
    const uint32_t sends = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;

    if (!odp_has(h))
        return;
    caps->general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
    caps->per_transport_caps.ud_odp_caps = sends;
    caps->per_transport_caps.uc_odp_caps = sends | IBV_ODP_SUPPORT_WRITE;
    caps->per_transport_caps.rc_odp_caps =
        sends | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;
}

/* Checks that s lies in an on-demand region of this PD, writable if `write`. 0 or errno. */
static int check_piece(struct hca *h, const struct hca_pd *pd, const struct ibv_sge *s, bool write,
                       char **at)
{
    const struct hca_key *k;
    uint64_t off;
    int rc = 0;

    hca_lock(h);
    k = key_of(h, s->lkey);
    off = k ? s->addr - k->iova : 0;
    if (!k || !k->mr || k->pd != pd->v.handle || !(k->access & IBV_ACCESS_ON_DEMAND))
        rc = EINVAL;
    else if (s->addr < k->iova || s->length > k->length || off > k->length - s->length)
        rc = EFAULT;
    else if (write && !(k->access & ACCESS_LOCAL_WRITE))
        rc = EPERM;
    else
        *at = k->start + off;
    hca_unlock(h);
    return rc;
}

/* Without IBV_ADVISE_MR_FLAG_FLUSH the caller neither waits nor learns of pages that cannot be
 * brought. */
int hca_advise_mr(struct ibv_pd *v, enum ibv_advise_mr_advice advice, uint32_t flags,
                  struct ibv_sge *list, uint32_t n)
{
    bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
         bring = advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
    struct hca_pd *pd = to_pd(v);
    struct hca *h = pd->ctx->hca;

    if (!odp_has(h) ||
        (advice != IBV_ADVISE_MR_ADVICE_PREFETCH && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE &&
         advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT))
        return hca_refuse(h, EOPNOTSUPP,
                          "ibv_advise_mr: found advice %u, expected a prefetch, of an on-demand "
                          "region in real time",
                          advice);
    if ((flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH) || !n)
        return EINVAL;
    for (uint32_t i = 0; i < n; i++) {
        char *at = NULL;
        int rc = check_piece(h, pd, &list[i], write, &at);

        if (rc)
            return rc;
        if (bring && list[i].length && h->cfg.drv.prefetch) {
            rc = -h->cfg.drv.prefetch(h->cfg.drv.ctx, at, list[i].length, write);
            if (rc && (flags & IBV_ADVISE_MR_FLAG_FLUSH))
                return rc;
        }
    }
    return 0;
}
