/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * WRITEs to the region. The payloads of up to MM_SLICE bytes of a message are chained as they
 * arrive; a full slice, or the end of the message, is one WRITE to every member, which sends the
 * chain by reference. A slice ends when all members have acknowledged it, and slices are
 * acknowledged to the caller in order. A caller has at most its window of slices in flight; beyond
 * that, and before all members are ready, it gets an RNR NAK.
 *
 * Slices of one caller are posted to every member's queue pair in order, so a member that sees a
 * later one (a flag) has the earlier ones (the data).
 */
#include "switch/multimem/mm_priv.h"

#include <errno.h>
#include <string.h>

int mm_store_check(struct mm_edge *e, uint64_t va, uint64_t len)
{
    struct mm_group *g = e->g;
    struct mm_what w;

    if (g->failed || g->doomed || g->n_left) {
        g->mm->cnt.mm_refused++;
        mm_record(g->mm, MM_EV_STORE_REFUSED, g->id, e->member);
        return -EIO;
    }
    if (!mm_addr_read(va, &w) || w.off > g->length[w.area] || len > g->length[w.area] - w.off) {
        g->mm->cnt.mm_bad_addresses++;
        return -EFAULT;
    }
    return 0;
}

/* Frees all of a frame except its payload, which becomes one segment. */
static struct rte_mbuf *payload_of(struct rte_mbuf *m, const struct roce_pkt *k)
{
    struct rte_mbuf *rest, *seg = m;

    T_ASSERT_HOT(k->payload, "a packet with bytes has no payload");
    while (!(k->payload >= rte_pktmbuf_mtod(seg, uint8_t *) &&
             k->payload < rte_pktmbuf_mtod(seg, uint8_t *) + seg->data_len)) {
        rest = seg->next;
        seg->next = NULL;
        seg->nb_segs = 1;
        rte_pktmbuf_free_seg(seg);
        seg = rest;
    }
    rest = seg->next;
    seg->next = NULL;
    seg->nb_segs = 1;
    if (rest)
        rte_pktmbuf_free(rest);
    seg->data_off = (uint16_t)(k->payload - (uint8_t *)seg->buf_addr);
    seg->data_len = (uint16_t)k->len;
    seg->pkt_len = k->len;
    *frame_meta(seg) = (struct frame_meta){0};
    return seg;
}

/* The slice of the next packet; NULL: the window is full. */
static struct mm_store *current(struct mm_edge *e, struct qp *qp, uint64_t va)
{
    struct mm_counters *cnt = &e->g->mm->cnt;
    struct mm_store *s = &e->store[(e->tail - 1) % e->g->window];
    struct mm_what w;

    if (e->tail != e->head && s->open)
        return s;
    if (e->tail - e->head == e->stores)
        return NULL;
    T_ASSERT_HOT(e->tail - e->head < e->stores, "a member writes more slices than its window");
    mm_addr_read(va, &w);
    s = &e->store[e->tail++ % e->g->window];
    *s = (struct mm_store){
        .mark = qp_mark_of(qp), .off = w.off, .area = w.area, .others = w.others, .open = true};
    e->g->n_stores++;
    if (++cnt->mm_stores_used > cnt->mm_stores_peak)
        cnt->mm_stores_peak = cnt->mm_stores_used;
    return s;
}

/* Acknowledges the oldest slices, up to the first incomplete one. */
static void slices_acknowledge(struct mm_edge *e)
{
    uint32_t head = e->head;
    struct mm_store *s;

    for (;; e->head++, e->g->n_stores--, e->g->mm->cnt.mm_stores_used--) {
        s = &e->store[e->head % e->g->window];
        if (e->head == e->tail || s->open || s->waits)
            break;
    }
    T_ASSERT_HOT(e->tail - e->head <= e->stores, "more slices are acknowledged than were written");
    if (head == e->head)
        return;
    qp_writes_release(e->qp, e->head == e->tail ? NULL : &s->mark);
}

static void mm_store_drop(struct mm_store *s)
{
    rte_pktmbuf_free(s->m);
    s->m = NULL;
}

static void write_members(struct mm_edge *e, struct mm_store *s)
{
    struct mm_group *g = e->g;
    struct wqe *w = &g->mm->store;

    s->open = false;
    g->mm->cnt.mm_stores++;
    g->mm->cnt.mm_store_bytes += s->len;
    if (s->virt)
        mm_store_drop(s);
    w->wr_id = MM_WR_STORE(e, (uint32_t)(s - e->store));
    w->held = s->m;
    w->held_len = s->m ? s->len : 0;
    w->virt_len = s->m ? 0 : s->len;
    for (unsigned i = 0; i < g->n && s->len; i++) {
        struct mm_edge *to = &g->edge[i];
        int rc;

        if (s->others && to == e)
            continue;
        w->raddr = to->area[s->area].va + s->off;
        w->rkey = to->area[s->area].rkey;
        rc = qp_post_send(to->qp, w);
        if (rc) { /* the queue has room for all windows: only a broken edge fails */
            mm_doom(g, AGG_E_EDGE, to, "queue to member %u at %s: %s", i, g->mm->a->me->name,
                    strerror(-rc));
            return;
        }
        s->waits++;
    }
    if (s->waits)
        return;
    mm_store_drop(s); /* no bytes, or no other members */
    slices_acknowledge(e);
}

enum sink_verdict mm_store_packet(void *user, struct qp *qp, const struct roce_pkt *k,
                                  struct rte_mbuf *m, uint64_t va)
{
    struct mm_edge *e = qp_user(qp);
    struct mm_group *g = e->g;
    enum sink_verdict v = SINK_COPIED;
    struct mm_store *s;

    (void)user;
    if (g->failed || g->doomed)
        return SINK_COPIED; /* it is never acknowledged */
    s = g->n_ready == g->n ? current(e, qp, va) : NULL;
    if (!s) {
        g->mm->cnt.mm_stores_late++;
        return SINK_RNR;
    }
    s->len += k->len;
    s->n_pkts++;
    s->virt |= k->virt > 0;
    if (k->len && !s->virt) {
        m = payload_of(m, k);
        if (s->m)
            rte_pktmbuf_chain(s->m, m);
        else
            s->m = m;
        v = SINK_TAKEN;
    }
    if ((roce_opinfo[k->opcode].what & ROCE_P_LAST) || s->n_pkts == MM_SLICE / g->mtu)
        write_members(e, s);
    return v;
}

void mm_store_done(struct mm_edge *e, uint32_t i)
{
    struct mm_store *s = &e->store[i];

    T_ASSERT_HOT(i < e->g->window, "an acknowledgement is for a slice that does not exist");
    T_ASSERT_HOT(s->waits && !s->open, "an acknowledged slice waits for no member");
    if (--s->waits)
        return;
    mm_store_drop(s);
    slices_acknowledge(e);
    mm_check_slices(e->g);
}

void mm_store_drop_all(struct mm_group *g)
{
    for (unsigned i = 0; i < g->n; i++) {
        struct mm_edge *e = &g->edge[i];

        for (; e->head != e->tail; e->head++)
            mm_store_drop(&e->store[e->head % e->g->window]);
    }
    T_ASSERT(g->mm->cnt.mm_stores_used >= g->n_stores, "more slices end than are being written");
    g->mm->cnt.mm_stores_used -= g->n_stores;
    g->n_stores = 0;
}
