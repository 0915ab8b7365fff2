/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slots hold the children's packets until the last arrives, then reduce them in one pass, in child
 * order.
 *
 * Each edge delivers its packets in order (RC), and all members cut a vector alike, so slots
 * complete in order too: slot s cannot be full before s - 1 is. So once the headers agree, a slot
 * has the same position in its message for every child; the first packet that disagrees arrives
 * before any that depends on it.
 *
 * The result overwrites the first child's packet that has no other reader (a direct mbuf with one
 * reference). Packets that came by reference from a node of the same process are read-only, since
 * the sender may retransmit them; a new mbuf is taken only if all children's packets are shared.
 */
#include "base/cacheline.h"
#include "switch/reduce/an_priv.h"

#include <string.h>

/* ---- frames ---- */

/* Frees all segments of a frame but the one that holds `data`; *off is the offset of data in it. */
static struct rte_mbuf *carve(struct rte_mbuf *m, const uint8_t *data, uint32_t *off)
{
    struct rte_mbuf *rest;
    const uint8_t *start;

    for (;;) {
        T_ASSERT_HOT(m, "the payload is in no segment of its frame");
        start = rte_pktmbuf_mtod(m, const uint8_t *);
        rest = m->next;
        m->next = NULL;
        m->nb_segs = 1;
        if (data >= start && data < start + m->data_len)
            break;
        rte_pktmbuf_free_seg(m);
        m = rest;
    }
    m->pkt_len = m->data_len;
    *frame_meta(m) = (struct frame_meta){0}; /* the CRC of its bytes is unknown */
    if (rest) {
        rest->nb_segs = 1; /* rte_pktmbuf_free() follows next */
        rte_pktmbuf_free(rest);
    }
    *off = (uint32_t)(data - start);
    return m;
}

/* ---- up: one pass ---- */

/* Whether a payload may be overwritten: nobody else refers to its bytes. */
static bool exclusive(const struct an_input *in)
{
    for (struct rte_mbuf *m = in->m; m; m = m->next) {
        const uint8_t *start = rte_pktmbuf_mtod(m, const uint8_t *);

        if (in->data >= start && in->data < start + m->data_len)
            return RTE_MBUF_DIRECT(m) && rte_mbuf_refcnt_read(m) == 1;
    }
    return false;
}

/* Chooses the packet for the result: a child's, or a new one that starts with the header. */
static bool result_buffer(struct an_group *g, const struct an_slot *s, const struct an_input *in,
                          struct an_input *out)
{
    for (unsigned i = 0; i < g->n; i++)
        if (in[i].m && exclusive(&in[i])) {
            *out = in[i];
            return true;
        }
    out->m = frame_alloc(g->a->cfg.pool);
    if (!out->m)
        return false;
    out->data = (uint8_t *)rte_pktmbuf_append(out->m, (uint16_t)(s->len - s->virt));
    if (s->head)
        memcpy(out->data, &s->hdr, AGG_HDR_BYTES);
    g->a->cnt.results_copied++;
    return true;
}

static void begin_message(struct an_group *g, const struct an_slot *s)
{
    g->cur = s->hdr;
    g->cur_first = g->next;
    g->fanout = fanout_of(g, &s->hdr);
    g->kernel = arith_kernel(s->hdr.op, s->hdr.dtype);
    g->elem = dtype_size(s->hdr.dtype);
    g->a->cnt.messages++;
}

static void end_message(struct an_group *g)
{
    if (rte_be_to_cpu_64(g->cur.offset) + rte_be_to_cpu_32(g->cur.msg_len) ==
        rte_be_to_cpu_64(g->cur.total))
        g->a->cnt.operations++;
}

/* Index in the whole vector of the first element of the slot being reduced. */
static uint64_t slot_element(const struct an_group *g)
{
    uint64_t k = g->next - g->cur_first, in_message = k ? k * g->mtu - AGG_HDR_BYTES : 0;

    return (rte_be_to_cpu_64(g->cur.offset) + in_message) / g->elem;
}

/* Reduces the elements of a slot in one pass over all children; for a broadcast copies its sender's. */
static void slot_combine(struct an_group *g, const struct an_input *in, uint8_t *out, uint32_t skip,
                         uint32_t bytes)
{
    const void *src[AN_MAX_CHILDREN];

    if (g->fanout.from != AN_FANOUT_ALL) {
        if (bytes && in[g->fanout.from].data != out)
            memcpy(out + skip, in[g->fanout.from].data + skip, bytes);
        return;
    }
    for (unsigned i = 0; i < g->n; i++)
        src[i] = in[i].data + skip;
    if (!bytes)
        return;
    T_ASSERT_HOT(arith_valid(g->cur.op, g->cur.dtype), "elements are reduced without a kernel");
    T_ASSERT_HOT(bytes % g->elem == 0, "a packet ends within an element");
    if (likely(g->a->me->reduce.rounding == FAB_ROUND_NEAREST))
        g->kernel(out + skip, src, g->n, bytes / g->elem);
    else
        arith_rounded((enum rounding)g->a->me->reduce.rounding, g->a->me->reduce.seed,
                      slot_element(g), g->cur.op, g->cur.dtype, out + skip, src, g->n,
                      bytes / g->elem);
}

/* Sends a slot up, or at the top down. For a broadcast whose root is not below this AN, sends only the
 * header up. */
static void send_on(struct an_group *g, const struct an_piece *p)
{
    if (g->top)
        fanout_down(g, &g->cur, p);
    else if (g->fanout.from != FAB_NONE)
        fanout_post(&g->up, p);
    else if (p->last)
        fanout_post_empty(&g->up, &g->cur, AGG_DATA);
}

/* Prefetches the packets of the slot that most likely completes next; they arrived long ago. */
static void prefetch_inputs(const struct an_group *g, const struct an_input *in)
{
    for (unsigned i = 0; i < g->n; i++)
        if (in[i].m) {
            rte_prefetch0(in[i].m);
            rte_prefetch0((const uint8_t *)in[i].m + CACHELINE);
            rte_prefetch0(in[i].data);
        }
}

/* Frees all packets except the one with the result. */
static void free_inputs(const struct an_group *g, struct an_input *in, const struct rte_mbuf *out)
{
    struct rte_mbuf *m[AN_MAX_CHILDREN];
    unsigned n = 0;

    for (unsigned i = 0; i < g->n; i++) {
        if (in[i].m && in[i].m != out)
            m[n++] = in[i].m;
        in[i].m = NULL;
    }
    rte_pktmbuf_free_bulk(m, n);
}

/* Reduces slot g->next, which all children have sent. */
static void an_slot_reduce(struct an_group *g, struct an_slot *s, struct an_input *in)
{
    const uint32_t skip = s->head ? AGG_HDR_BYTES : 0, bytes = s->len - s->virt - skip;
    struct an_piece p = {.len = s->len, .virt = s->virt, .head = s->head, .last = s->last};
    struct an_input out = {NULL, NULL};

    T_ASSERT_HOT(s->have == g->n, "a slot is reduced before all children have sent it");
    T_ASSERT_HOT(s == &g->slot[g->next % g->n_slots], "slots do not complete in order");
    T_ASSERT_HOT(g->a->cnt.slots_used, "more slots complete than are in use");
    T_ASSERT_HOT(s->head || g->cur_first < g->next, "a slot belongs to no message");
    if (s->head)
        begin_message(g, s);
    if (s->len > s->virt && g->fanout.from != FAB_NONE) { /* carries data */
        if (!result_buffer(g, s, in, &out)) {
            group_doom(g, AGG_E_QUOTA_BUFFERS, NULL, "no frame for a result at %s, slot %u",
                       group_me(g), (unsigned)g->next);
            return;
        }
        slot_combine(g, in, out.data, skip, bytes);
        if (s->head && g->top)
            ((struct agg_hdr *)out.data)->type = AGG_RESULT;
    }
    free_inputs(g, in, out.m);
    s->have = 0;
    g->next++;
    g->a->cnt.slots++;
    g->a->cnt.slots_used--;
    g->a->cnt.bytes_out += s->len - skip;
    if (s->last)
        end_message(g);
#ifdef TRIB_CHECKED
    if (s->last)
        an_event(g->a, AN_EV_MESSAGE, g->id, (uint32_t)g->next);
#endif
    p.m = out.m ? carve(out.m, out.data, &p.off) : NULL;
    send_on(g, &p);
    rte_pktmbuf_free(p.m);
}

void slot_reduce(struct an_group *g)
{
    const uint32_t ring = (uint32_t)(g->next % g->n_slots);

    an_slot_reduce(g, &g->slot[ring], &g->in[(size_t)ring * g->n]);
}

/* ---- packets in ---- */

static void doom_packet(struct an_edge *e, enum agg_status st, const char *what)
{
    char who[48];

    group_doom(e->g, st, NULL, "%s at %s: %s", group_who(e->g, e, who, sizeof(who)), group_me(e->g),
               what);
}

/* Dooms the group and names the lower child first, whatever the order of arrival. Ranks below an AN agree
 * with each other, so the lowest one is named for all. */
static void doom_mismatch(struct an_group *g, unsigned i, const struct agg_hdr *hi, unsigned j,
                          const struct agg_hdr *hj)
{
    char a[48], b[48], diff[48] = "shape of messages";

    if (i > j) {
        doom_mismatch(g, j, hj, i, hi);
        return;
    }
    agg_hdr_differ(hi, hj, diff, sizeof(diff));
    group_rank(g, &g->child[i], a, sizeof(a));
    group_rank(g, &g->child[j], b, sizeof(b));
    group_doom(g, AGG_E_OP_MISMATCH, NULL, "%s and %s: %s", a, b, diff);
}

/* Dooms the group: a child that has left can never complete the slots of the others. */
static void doom_left(struct an_group *g)
{
    char who[48];

    for (unsigned i = 0; i < g->n; i++)
        if (g->child[i].state == EDGE_LEFT)
            group_doom(g, AGG_E_MEMBER_LEFT, &g->child[i], "%s left %s before slot %u",
                       group_who(g, &g->child[i], who, sizeof(who)), group_me(g),
                       (unsigned)g->next);
}

/* Length of packet k of the message with this header, including the header. */
static uint32_t packet_len(const struct an_group *g, const struct agg_hdr *h, uint32_t k)
{
    uint32_t left = AGG_HDR_BYTES + rte_be_to_cpu_32(h->msg_len) - k * g->mtu;

    T_ASSERT_HOT((uint64_t)k * g->mtu < AGG_HDR_BYTES + (uint64_t)rte_be_to_cpu_32(h->msg_len),
                 "a message has fewer packets than are counted");
    return RTE_MIN(left, (uint32_t)g->mtu);
}

/* Whether the child's packet agrees with those in the slot. */
static bool slot_agrees(struct an_group *g, struct an_slot *s, unsigned i, const struct an_piece *p)
{
    const struct an_stream *rx = &g->child[i].rx;

    if (!s->have) {
        *s =
            (struct an_slot){.first = (uint16_t)i, .head = p->head, .last = p->last, .len = p->len};
        if (p->head) {
            s->hdr = rx->hdr;
            s->hdr.flags &= (uint8_t)~AGG_F_EMPTY;
        }
        return true;
    }
    if (p->head == s->head && (!p->head || agg_hdr_same(&s->hdr, &rx->hdr)))
        return true;
    doom_mismatch(g, s->first, s->head ? &s->hdr : &g->child[s->first].rx.hdr, i, &rx->hdr);
    return false;
}

/* Adds a child's packet to its next slot and takes ownership of in.m. False: the group is doomed. */
static bool slot_add(struct an_edge *e, const struct an_piece *p, struct an_input in)
{
    struct an_group *g = e->g;
    unsigned i = (unsigned)(e - g->child);
    struct an_input *at = &g->in[(size_t)e->ring * g->n];
    struct an_slot *s = &g->slot[e->ring];

    T_ASSERT_HOT(i < g->n && e->ring < g->n_slots, "a child, or its next slot, is out of range");
    T_ASSERT_HOT(s->have < g->n, "a slot gets more packets than it has children");
    T_ASSERT_HOT(g->a->me->reduce.arrival || !at[i].m, "a child's packet is held already");
    if (!slot_agrees(g, s, i, p))
        return false;
    if (!s->have && ++g->a->cnt.slots_used > g->a->cnt.slots_peak)
        g->a->cnt.slots_peak = g->a->cnt.slots_used;
    s->virt = RTE_MAX(s->virt, p->virt); /* one child without bytes makes a result without bytes */
    at[g->a->me->reduce.arrival && in.m && e->rx.hdr.coll != AGG_BROADCAST ? s->have : i] = in;
    if (++e->ring == g->n_slots)
        e->ring = 0;
    if (++s->have == g->n && !engine_takes(g, s)) {
        prefetch_inputs(g, &g->in[(size_t)e->ring * g->n]);
        an_slot_reduce(g, s, at);
    }
    return true;
}

/* Counts a header without elements for all slots of its message. */
static void empty_input(struct an_edge *e)
{
    struct an_group *g = e->g;
    const struct agg_hdr h = e->rx.hdr;
    uint32_t n = agg_msg_slots(rte_be_to_cpu_32(h.msg_len), g->mtu);

    for (uint32_t k = 0; k < n && !g->doomed; k++) {
        struct an_piece p = {.len = packet_len(g, &h, k), .head = k == 0, .last = k + 1 == n};

        if (!slot_add(e, &p, (struct an_input){NULL, NULL}))
            return;
    }
}

/* Whether a packet exceeds the edge's window, which was made smaller. A header without elements needs all
 * slots of its message; an invalid one is judged later. */
static bool is_beyond(const struct an_edge *e, const struct roce_pkt *k, bool head)
{
    uint32_t slots = 1;
    struct agg_hdr h;

    if (head && k->payload && k->len == AGG_HDR_BYTES) {
        memcpy(&h, k->payload, sizeof(h));
        if (agg_is_empty(&h))
            slots = agg_msg_slots(rte_be_to_cpu_32(h.msg_len), e->g->mtu);
    }
    return slots <= AGG_MSG_PKTS && e->rx.slots - e->g->results + slots > e->window;
}

static enum sink_verdict data_input(struct an_edge *e, const struct roce_pkt *k, struct rte_mbuf *m)
{
    struct an_group *g = e->g;
    bool head = roce_opinfo[k->opcode].what & ROCE_P_FIRST;
    struct an_piece p = {.head = head, .len = k->len, .virt = k->virt};
    enum agg_status st;
    const char *what;

    if (g->n_left) {
        doom_left(g);
        return SINK_COPIED;
    }
    if (unlikely(e->window < e->granted) && is_beyond(e, k, head)) {
        g->a->cnt.beyond_window++;
        window_tell(e);
        return SINK_RNR;
    }
    st = stream_packet(&e->rx, k, AGG_DATA, g->mtu, &what);
    if (st == AGG_OK && head)
        st = fanout_check(g, e, &e->rx.hdr, &what);
    if (st != AGG_OK) {
        doom_packet(e, st, what);
        return SINK_COPIED;
    }
    if (e->rx.slots - g->results > e->granted) {
        doom_packet(e, AGG_E_PROTOCOL, "sent beyond its window");
        return SINK_COPIED;
    }
    if (agg_is_empty(&e->rx.hdr)) {
        empty_input(e);
        return SINK_COPIED;
    }
    p.last = !e->rx.left;
    g->a->cnt.bytes_in += k->len - (head ? AGG_HDR_BYTES : 0);
    return slot_add(e, &p, (struct an_input){m, k->payload}) ? SINK_TAKEN : SINK_COPIED;
}

/* Forwards a result from the parent to the children, by reference. */
static enum sink_verdict result_input(struct an_edge *e, const struct roce_pkt *k,
                                      struct rte_mbuf *m)
{
    struct an_group *g = e->g;
    struct an_piece p = {
        .len = k->len, .virt = k->virt, .head = roce_opinfo[k->opcode].what & ROCE_P_FIRST};
    uint64_t before = e->rx.slots;
    enum agg_status st;
    const char *what;

    st = stream_packet(&e->rx, k, AGG_RESULT, g->mtu, &what);
    if (st == AGG_OK && p.head)
        st = fanout_check(g, e, &e->rx.hdr, &what);
    if (st == AGG_OK && g->results + (e->rx.slots - before) > g->next)
        st = AGG_E_PROTOCOL, what = "result of a slot that was not sent";
    if (st != AGG_OK) {
        doom_packet(e, st, what);
        return SINK_COPIED;
    }
    g->a->cnt.results += e->rx.slots - before;
    if (agg_is_empty(&e->rx.hdr)) {
        for (unsigned i = 0; i < g->n && !g->doomed; i++)
            fanout_post_empty(&g->child[i], &e->rx.hdr, AGG_RESULT);
        g->results += e->rx.slots - before;
        return SINK_COPIED;
    }
    if (k->payload)
        p.m = carve(m, k->payload, &p.off);
    else
        rte_pktmbuf_free(m);
    p.last = !e->rx.left;
    fanout_down(g, &e->rx.hdr, &p);
    rte_pktmbuf_free(p.m);
    return SINK_TAKEN;
}

enum sink_verdict slot_input(struct an_edge *e, const struct roce_pkt *k, struct rte_mbuf *m)
{
    struct an_group *g = e->g;
    enum sink_verdict v;

    if (g->doomed)
        return SINK_COPIED;
    if (g->state != GROUP_OPEN) {
        doom_packet(e, AGG_E_PROTOCOL, "data before the group was granted");
        return SINK_COPIED;
    }
    v = e == &g->up ? result_input(e, k, m) : data_input(e, k, m);
    if (!e->rx.left) /* at the end of a message, streams and slots must agree */
        an_check_slots(g);
    return v;
}

void slot_drop_all(struct an_group *g)
{
    g->n_due = 0;
    for (uint32_t i = 0; g->in && i < g->n_slots * g->n; i++)
        if (g->in[i].m) {
            rte_pktmbuf_free(g->in[i].m);
            g->in[i].m = NULL;
        }
    for (uint32_t i = 0; g->slot && i < g->n_slots; i++)
        if (g->slot[i].have) {
            T_ASSERT(g->a->cnt.slots_used, "a group drops more slots than are in use");
            g->slot[i].have = 0;
            g->a->cnt.slots_used--;
        }
}
