/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * READ and atomic requests to responses, in order of PSN. A READ is answered packet by packet when
 * the link is free, directly from memory. An atomic is executed when it arrives, and its result is
 * kept for repeated requests. An ATOMIC_WRITE is executed as an atomic and answered as a READ of
 * zero bytes.
 */
#include "roce/engine.h"

#include <string.h>

/* Inserts by PSN: a repeated request may belong before waiting ones. */
static void insert(struct responder *s, const struct rd_res *e)
{
    uint32_t at = s->n_reads;

    T_ASSERT_HOT(at < 2 * ROCE_MAX_RD_ATOMIC, "more READs are open than there is room for");
    while (at > 0 && psn_cmp(s->reads[at - 1].psn, e->psn) > 0)
        at--;
    memmove(&s->reads[at + 1], &s->reads[at], (s->n_reads - at) * sizeof(s->reads[0]));
    s->reads[at] = *e;
    s->n_reads++;
}

static enum exec read_request(struct qp *qp, const struct roce_pkt *k, struct rd_res *e)
{
    void *p;
    int rc = 0;

    if (!(qp->attr.access & ACCESS_REMOTE_READ))
        return EXEC_ACCESS;
    if (k->dma_len > ROCE_MAX_MSG)
        return EXEC_INVALID;
    if (k->dma_len)
        rc = qp_mem(qp, true, k->rkey, k->va, k->dma_len, ACCESS_REMOTE_READ, &p);
    if (rc)
        return exec_denied(rc);
    *e = (struct rd_res){.psn = k->psn,
                         .n_pkts = packets_of(k->dma_len, qp->attr.mtu),
                         .rkey = k->rkey,
                         .len = k->dma_len,
                         .va = k->va};
    return EXEC_OK;
}

/* Keeps the result of an atomic for repeated requests. */
static void keep_answer(struct responder *s, const struct roce_pkt *k, uint64_t orig,
                        struct rd_res *e)
{
    bool write = k->opcode == ROCE_OP_RC_ATOMIC_WRITE;

    s->atomics[s->atomic_at].psn = k->psn;
    s->atomics[s->atomic_at].valid = true;
    s->atomics[s->atomic_at].write = write;
    s->atomics[s->atomic_at].orig = orig;
    s->atomic_at = (s->atomic_at + 1) % ROCE_MAX_RD_ATOMIC;
    *e = (struct rd_res){.psn = k->psn, .n_pkts = 1, .orig = orig, .atomic = !write};
}

/* IBTA A19.4.2: eight bytes at an aligned address, written atomically. */
static enum exec atomic_write(struct qp *qp, const struct roce_pkt *k, struct rd_res *e)
{
    void *p = NULL;
    uint64_t v;

    if (!(qp->attr.access & ACCESS_REMOTE_WRITE))
        return EXEC_ACCESS;
    if ((k->va & 7) || k->len != 8 || k->dma_len != 8)
        return EXEC_INVALID;
    if (qp_mem(qp, true, k->rkey, k->va, 8, ACCESS_REMOTE_WRITE, &p))
        return EXEC_ACCESS;
    if (p && ((uintptr_t)p & 7))
        return EXEC_INVALID;
    if (p && k->payload && !k->virt) {
        memcpy(&v, k->payload, sizeof(v));
        if (!guard_store(p, v))
            return EXEC_ACCESS;
    }
    keep_answer(&qp->rsp, k, 0, e);
    return EXEC_OK;
}

static enum exec atomic_request(struct qp *qp, const struct roce_pkt *k, struct rd_res *e)
{
    void *p = NULL;
    uint64_t orig = 0;

    if (k->opcode == ROCE_OP_RC_ATOMIC_WRITE)
        return atomic_write(qp, k, e);
    if (!(qp->attr.access & ACCESS_REMOTE_ATOMIC))
        return EXEC_ACCESS;
    if (k->va & 7)
        return EXEC_INVALID;
    if (qp_mem(qp, true, k->rkey, k->va, 8, ACCESS_REMOTE_ATOMIC, &p))
        return EXEC_ACCESS;
    if (p && ((uintptr_t)p & 7))
        return EXEC_INVALID;
    if (p &&
        !(k->opcode == ROCE_OP_RC_FETCH_ADD ? guard_fetch_add(p, k->swap_add, &orig)
                                            : guard_cmp_swap(p, k->compare, k->swap_add, &orig)))
        return EXEC_ACCESS;
    keep_answer(&qp->rsp, k, orig, e);
    return EXEC_OK;
}

static uint32_t reads_count(const struct responder *s, bool again)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n_reads; i++)
        n += s->reads[i].again == again;
    return n;
}

enum exec reads_request(struct qp *qp, const struct roce_pkt *k)
{
    struct responder *s = &qp->rsp;
    struct rd_res e;
    enum exec x;

    if (reads_count(s, false) >= qp->attr.max_dest_rd_atomic)
        return EXEC_INVALID;
    x = roce_opinfo[k->opcode].what & ROCE_P_READ ? read_request(qp, k, &e)
                                                  : atomic_request(qp, k, &e);
    if (x == EXEC_OK)
        insert(s, &e);
    return x;
}

/* The open request to which response psn belongs; NULL: none. */
static struct rd_res *reads_find(struct responder *s, uint32_t psn)
{
    for (uint32_t i = 0; i < s->n_reads; i++)
        if (psn_sub(psn, s->reads[i].psn) < s->reads[i].n_pkts)
            return &s->reads[i];
    return NULL;
}

static bool replay_atomic(const struct responder *s, uint32_t psn, struct rd_res *e)
{
    for (uint32_t i = 0; i < ROCE_MAX_RD_ATOMIC; i++) {
        if (!s->atomics[i].valid || s->atomics[i].psn != psn)
            continue;
        *e = (struct rd_res){
            .psn = psn, .n_pkts = 1, .orig = s->atomics[i].orig, .atomic = !s->atomics[i].write};
        return true;
    }
    return false;
}

enum roce_reason reads_duplicate(struct qp *qp, const struct roce_pkt *k)
{
    bool read = roce_opinfo[k->opcode].what & ROCE_P_READ;
    struct responder *s = &qp->rsp;
    struct rd_res *pending = reads_find(s, k->psn), e;

    if (pending) {
        uint32_t from = psn_sub(k->psn, pending->psn);

        if (from < pending->next) { /* the responses from there on were lost */
            pending->start = pending->next = from;
            deferred_reads(qp, true);
        }
        return ROCE_DUPLICATE;
    }
    if (reads_count(s, true) == ROCE_MAX_RD_ATOMIC)
        return ROCE_STALE;
    if (read) {
        if (read_request(qp, k, &e) != EXEC_OK || psn_cmp(psn_add(k->psn, e.n_pkts), s->epsn) > 0)
            return ROCE_STALE;
    } else if (!replay_atomic(s, k->psn, &e)) {
        return ROCE_STALE;
    }
    e.again = true;
    insert(s, &e);
    deferred_reads(qp, true);
    rnic_want_send(qp);
    return ROCE_DUPLICATE;
}

static uint8_t response_opcode(const struct rd_res *e)
{
    bool first = e->next == e->start, last = e->next == e->n_pkts - 1;

    if (e->atomic)
        return ROCE_OP_RC_ATOMIC_ACKNOWLEDGE;
    if (last)
        return first ? ROCE_OP_RC_READ_RESPONSE_ONLY : ROCE_OP_RC_READ_RESPONSE_LAST;
    return first ? ROCE_OP_RC_READ_RESPONSE_FIRST : ROCE_OP_RC_READ_RESPONSE_MIDDLE;
}

/* Fails a READ of which the region was deregistered or unmapped after it was accepted. The NAK names the
 * packet that cannot be built, not the next expected PSN, which follows the whole READ. */
static enum built lost_region(struct qp *qp)
{
    struct responder *s = &qp->rsp;

    s->holding = true;
    s->hold = (struct qp_mark){psn_add(s->reads[0].psn, s->reads[0].next), s->msn};
    responder_nak(qp, NAK_REMOTE_OP);
    qp_fail(qp, WC_WR_FLUSH_ERR);
    qp_event(qp, QP_EV_ACCESS_ERR);
    return BUILT_NOTHING;
}

void reads_answered(struct responder *s)
{
    struct rd_res *e = &s->reads[0];

    T_ASSERT_HOT(s->n_reads && e->next < e->n_pkts, "a READ response that was not requested");
    if (++e->next == e->n_pkts)
        memmove(e, e + 1, --s->n_reads * sizeof(*e));
}

enum built reads_build(struct qp *qp, struct rte_mbuf **m)
{
    struct responder *s = &qp->rsp;
    struct rd_res *e = &s->reads[0];
    uint32_t off = e->next * qp->attr.mtu;
    struct roce_pkt k;
    void *p = NULL;

    qp_packet(qp, &k);
    k.opcode = response_opcode(e);
    k.psn = psn_add(e->psn, e->next);
    k.syndrome = AETH_ACK | AETH_NO_CREDITS;
    k.msn = s->msn;
    k.orig = e->orig;
    k.len = e->atomic ? 0 : RTE_MIN(e->len - off, (uint32_t)qp->attr.mtu);
    if (qp->deferred && !e->atomic)
        return deferred_build(qp, &k, m);
    if (k.len && qp_mem(qp, true, e->rkey, e->va + off, k.len, ACCESS_REMOTE_READ, &p))
        return lost_region(qp);
    *m = frame_alloc(qp->r->cfg.pool);
    if (!*m)
        return BUILT_NO_MBUF;
    k.virt = p ? 0 : k.len;
    roce_build(*m, &k);
    if (p && !copy_from_user(qp, rte_pktmbuf_mtod_offset(*m, void *, k.hdr_len), p, k.len)) {
        rte_pktmbuf_free(*m);
        return lost_region(qp);
    }
    roce_seal(*m, &k);
    reads_answered(s);
    return BUILT;
}
