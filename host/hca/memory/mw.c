/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows: each has its own key to a piece of a region. Work requests open and close windows
 * of type 2, which belong to the queue pair that bound them (2B). ibv_bind_mw opens those of type
 * 1. The engine executes binds and invalidations in the order of the send queue (roce/local.c).
 */
#include "host/hca/hca_priv.h"

#include <stdlib.h>

/* The rights that a window can give. Programs also pass other flags of the region; they change
 * nothing, as the region's owner has those rights already. */
#define WINDOW_GIVES (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC)
#define WINDOW_ACCESS                                                                              \
    (WINDOW_GIVES | ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |              \
     IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE)

/* ---- the path of a frame ---- */

/* Checks an access against a window's bounds and rights, and returns the memory behind it. Called
 * by hca_mem(), which found the window's key. */
int mw_mem(const struct hca_mw *mw, struct qp *qp, uint64_t addr, uint64_t len, unsigned access,
           void **p)
{
    uint64_t off = addr - mw->iova;

    T_ASSERT_HOT(!mw->mr || mw->mr->windows, "an open window's region does not count it");
    T_ASSERT_HOT(!mw->qp || (mw->mr && mw->qp->windows), "a window's queue pair does not count it");
    if (!mw->mr || mw->pd->v.handle != qp_pd(qp) || (mw->qp && mw->qp->qp != qp))
        return -EINVAL;
    if (access & ~mw->access)
        return -EACCES;
    if (addr < mw->iova || len > mw->length || off > mw->length - len)
        return -EFAULT;
    *p = mr_key(mw->mr)->unbacked ? NULL : mw->start + off;
    return 0;
}

static void mw_close(struct hca_mw *mw)
{
    T_ASSERT(!mw->mr || mw->mr->windows, "an open window's region does not count it");
    T_ASSERT(!mw->qp || (mw->mr && mw->qp->windows), "a window's queue pair does not count it");
    if (mw->mr)
        mw->mr->windows--;
    if (mw->qp)
        mw->qp->windows--;
    mw->mr = NULL;
    mw->qp = NULL;
}

static int invalidate(struct hca_mw *mw, struct hca_qp *qp, uint32_t rkey)
{
    if (mw->v.type != IBV_MW_TYPE_2 || mw->qp != qp ||
        qp->ctx->hca->key[rkey >> 8].tag != (uint8_t)rkey)
        return -EINVAL;
    mw_close(mw);
    return 0;
}

static int open_window(struct hca_mw *mw, struct hca_qp *qp, uint32_t rkey, const struct mw_bind *b)
{
    struct hca *h = qp->ctx->hca;
    const struct hca_key *k = key_of(h, b->lkey);
    struct hca_mr *mr = k ? k->mr : NULL;
    uint64_t off;

    if (!mr || mr->pd != qp->pd || !(k->access & IBV_ACCESS_MW_BIND) ||
        (b->access & ~WINDOW_ACCESS))
        return -EINVAL;
    if ((b->access & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)) &&
        !(k->access & ACCESS_LOCAL_WRITE))
        return -EACCES;
    off = b->addr - k->iova;
    if (b->addr < k->iova || b->len > k->length || off > k->length - b->len)
        return -EFAULT;
    mw->mr = mr;
    mr->windows++;
    if (mw->v.type == IBV_MW_TYPE_2) {
        mw->qp = qp;
        qp->windows++;
    }
    mw->start = k->start + off;
    mw->iova = b->access & IBV_ACCESS_ZERO_BASED ? 0 : b->addr;
    mw->length = b->len;
    mw->access = b->access & WINDOW_GIVES;
    h->key[rkey >> 8].tag = (uint8_t)rkey;
    return 0;
}

int hca_window(void *user, struct qp *q, uint32_t rkey, const struct mw_bind *b)
{
    struct hca *h = user;
    struct hca_qp *qp = qp_user(q);
    uint32_t i = rkey >> 8;
    struct hca_mw *mw = i < h->key_cap ? h->key[i].mw : NULL;

    if (!mw || mw->pd != qp->pd)
        return -EINVAL;
    if (!b)
        return invalidate(mw, qp, rkey);
    if (mw->v.type == IBV_MW_TYPE_2) /* only a closed window opens, and length 0 opens none */
        return mw->mr || !b->len ? -EINVAL : open_window(mw, qp, rkey, b);
    mw_close(mw);
    if (b->len)
        return open_window(mw, qp, rkey, b);
    h->key[i].tag = (uint8_t)rkey;
    return 0;
}

/* ---- control ---- */

struct ibv_mw *hca_alloc_mw(struct ibv_pd *v, enum ibv_mw_type type)
{
    struct hca_pd *pd = to_pd(v);
    struct hca *h = pd->ctx->hca;
    int rc = hca_dead(h) ? EIO : type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2 ? EINVAL : 0;
    struct hca_mw *mw = rc ? NULL : calloc(1, sizeof(*mw));

    if (!mw) {
        errno = rc ? rc : ENOMEM;
        return NULL;
    }
    mw->pd = pd;
    mw->v = (struct ibv_mw){.context = v->context, .pd = v, .type = type};
    hca_lock(h);
    rc = h->n_mw == HCA_MAX_MW ? -ENOMEM : key_take(h, NULL, mw, &mw->v.rkey);
    if (!rc)
        h->n_mw++, pd->refs++;
    hca_unlock(h);
    if (rc) {
        free(mw);
        errno = -rc;
        return NULL;
    }
    mw->v.handle = mw->v.rkey;
    return &mw->v;
}

/* With the lock held. */
void mw_free(struct hca_mw *mw)
{
    struct hca *h = mw->pd->ctx->hca;

    T_ASSERT(h->n_mw && mw->pd->refs, "a window goes that was not counted");
    mw_close(mw);
    key_give(h, mw->v.rkey);
    mw->pd->refs--;
    h->n_mw--;
    free(mw);
}

int hca_dealloc_mw(struct ibv_mw *v)
{
    struct hca *h = to_mw(v)->pd->ctx->hca;

    hca_lock(h);
    mw_free(to_mw(v));
    hca_unlock(h);
    return 0;
}

/* Closes the windows that a queue pair bound, before it goes. With the lock held. */
void mw_close_all_of(struct hca_qp *qp)
{
    struct hca *h = qp->ctx->hca;

    for (uint32_t i = 0; qp->windows && i < h->key_cap; i++)
        if (h->key[i].mw && h->key[i].mw->qp == qp)
            mw_close(h->key[i].mw);
}

/* ---- posting ---- */

/* Translates a request to bind for the engine. 0 or errno. */
int mw_bind_from(struct wqe *w, const struct hca_qp *qp, const struct ibv_mw *mw, uint32_t rkey,
                 const struct ibv_mw_bind_info *info)
{
    if (!mw || !info || to_mw(mw)->pd != qp->pd || (rkey ^ mw->rkey) >> 8 ||
        (info->length && !info->mr))
        return EINVAL;
    w->rkey = rkey;
    w->bind = (struct mw_bind){.addr = info->addr,
                               .len = info->length,
                               .lkey = info->mr ? info->mr->lkey : 0,
                               .access = info->mw_access_flags};
    return 0;
}

/* Type 1: the device chooses the key. */
int hca_bind_mw(struct ibv_qp *v, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
    struct hca_qp *qp = to_qp(v);
    struct hca *h = qp->ctx->hca;
    struct wqe w = {.wr_id = bind->wr_id,
                    .op = WR_BIND_MW,
                    .frag = WQE_WHOLE,
                    .flags = bind->send_flags & (WR_F_FENCE | WR_F_SIGNALED | WR_F_SOLICITED)};
    uint32_t rkey = ibv_inc_rkey(mw->rkey);
    int rc = hca_dead(h) ? EIO : mw_bind_from(&w, qp, mw, rkey, &bind->bind_info);

    /* IBTA 10.6.7.2.1: only windows of type 2 may be zero-based. */
    if (!rc && (bind->bind_info.mw_access_flags & IBV_ACCESS_ZERO_BASED))
        rc = EINVAL;
    if (rc)
        return rc;
    hca_lock(h);
    rc = post_check(qp, WR_BIND_MW);
    if (!rc)
        rc = -post_engine(qp, &w);
    if (!rc)
        mw->rkey = rkey;
    hca_kick(h);
    hca_unlock(h);
    return rc;
}
