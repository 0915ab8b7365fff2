/*
 * Slots: hold the children's packets until the last has come, then one pass over all of them, in
 * child order.
 *
 * Each edge delivers its packets in order (RC), and all members cut a vector alike, so slots
 * complete in order too: slot s cannot be full before s - 1 is. That makes a slot's place in its
 * message the same for every child, once their headers are found equal; the first packet that
 * disagrees is met before any that depends on it.
 *
 * The result is written over the first child's packet that nobody else can see (a direct mbuf with
 * one reference). Packets that came by reference from a node of the same process are read-only,
 * since the sender may have to send them again; only if all children's are, a fresh mbuf is taken.
 */
#include "switch/reduce/an_priv.h"

#include <string.h>

/* ---- messages of an edge ---- */

/* Follows the stream by one packet. AGG_OK, or why the packet cannot be and *what is wrong with it.
 */
static enum agg_status stream_packet(struct an_stream *rx, const struct roce_pkt *k, unsigned type,
                                     uint32_t mtu, const char **what)
{
    uint8_t place = roce_opinfo[k->opcode].what;
    uint32_t real = k->len - k->virt, want;
    struct agg_hdr h;
    enum agg_status st;

    *what = "packet";
    if (place & ROCE_P_FIRST) {
        if (real < AGG_HDR_BYTES)
            return AGG_E_PROTOCOL;
        memcpy(&h, k->payload, sizeof(h));
        st = agg_hdr_check(&h, type, mtu, what);
        if (st != AGG_OK)
            return st;
        *what = "order of messages";
        if (rx->any && !agg_hdr_follows(&rx->hdr, &h))
            return AGG_E_PROTOCOL;
        rx->hdr = h;
        rx->any = true;
        rx->left = AGG_HDR_BYTES + rte_be_to_cpu_32(h.msg_len);
        real -= AGG_HDR_BYTES;
    }
    want = RTE_MIN(rx->left, mtu);
    *what = "packet length";
    if (k->len != want || (k->virt && real))
        return AGG_E_PROTOCOL;
    rx->left -= want;
    *what = "message length";
    if (!(place & ROCE_P_LAST) != !!rx->left)
        return AGG_E_PROTOCOL;
    rx->slots++;
    return AGG_OK;
}

/* Leaves of a frame the one segment that holds data, as an mbuf of its own; *off is where in it
 * data is. */
static struct rte_mbuf *carve(struct rte_mbuf *m, const uint8_t *data, uint32_t *off)
{
    struct rte_mbuf *rest;
    const uint8_t *start;

    for (;;) {
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
    *frame_meta(m) = (struct frame_meta){0}; /* no CRC is known of what it holds now */
    if (rest) {
        rest->nb_segs = 1; /* free walks next */
        rte_pktmbuf_free(rest);
    }
    *off = (uint32_t)(data - start);
    return m;
}

/* Sends one packet's worth to an edge; the queue pair takes a reference of its own. */
static void post(struct an_edge *e, struct rte_mbuf *m, uint32_t off, uint32_t len, uint32_t virt,
                 uint8_t frag)
{
    struct an_group *g = e->g;
    struct wqe *w = &g->a->data;
    char who[48];
    int rc;

    w->frag = frag;
    w->flags = frag & WQE_LAST ? WR_F_SOLICITED : 0;
    w->held = m;
    w->held_off = off;
    w->held_len = len - virt;
    w->virt_len = virt;
    rc = qp_post_send(e->qp, w);
    if (rc) /* the depth of the queue is such that only a broken edge ends here */
        group_doom(g, AGG_E_EDGE, NULL, "queue to %s at %s: %s", group_who(g, e, who, sizeof(who)),
                   group_me(g), strerror(-rc));
}

/* A result to all children, and the mbuf away. */
static void post_down(struct an_group *g, struct rte_mbuf *m, uint32_t off, uint32_t len,
                      uint32_t virt, uint8_t frag)
{
    for (unsigned i = 0; i < g->n && !g->doomed; i++)
        post(&g->child[i], m, off, len, virt, frag);
    if (m)
        rte_pktmbuf_free(m);
    g->results++;
}

static uint8_t frag_of(bool head, bool last)
{
    return (head ? WQE_FIRST : 0) | (last ? WQE_LAST : 0);
}

/* ---- up: one pass ---- */

/* Whether a payload may be written over: nobody else has a reference to the bytes. */
static bool exclusive(const struct an_input *in)
{
    for (struct rte_mbuf *m = in->m; m; m = m->next) {
        const uint8_t *start = rte_pktmbuf_mtod(m, const uint8_t *);

        if (in->data >= start && in->data < start + m->data_len)
            return RTE_MBUF_DIRECT(m) && rte_mbuf_refcnt_read(m) == 1;
    }
    return false;
}

/* The child's packet that the result goes into, or a fresh one with the header in it. */
static bool result_place(struct an_group *g, const struct an_slot *s, struct an_input *in,
                         struct an_input *out, unsigned *reused)
{
    for (unsigned i = 0; i < g->n; i++)
        if (exclusive(&in[i])) {
            *out = in[i];
            *reused = i;
            return true;
        }
    *reused = g->n;
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

/* All children have sent slot g->next. */
static void reduce(struct an_group *g, struct an_slot *s, struct an_input *in)
{
    const uint32_t skip = s->head ? AGG_HDR_BYTES : 0, bytes = s->len - s->virt - skip;
    const void *src[AN_MAX_CHILDREN];
    struct an_input out = {NULL, NULL};
    unsigned reused = g->n;
    uint32_t off = 0;

    if (s->head)
        begin_message(g, s);
    if (s->len > s->virt) { /* something is carried */
        if (!result_place(g, s, in, &out, &reused)) {
            group_doom(g, AGG_E_QUOTA_BUFFERS, NULL, "no frame for a result at %s, slot %u",
                       group_me(g), (unsigned)g->next);
            return;
        }
        for (unsigned i = 0; i < g->n; i++)
            src[i] = in[i].data + skip;
        if (bytes)
            g->kernel(out.data + skip, src, g->n, bytes / g->elem);
        if (s->head && g->top)
            ((struct agg_hdr *)out.data)->type = AGG_RESULT;
    }
    for (unsigned i = 0; i < g->n; i++) {
        if (i != reused)
            rte_pktmbuf_free(in[i].m);
        in[i].m = NULL;
    }
    s->have = 0;
    g->next++;
    g->a->cnt.slots++;
    g->a->cnt.slots_used--;
    g->a->cnt.bytes_out += s->len - skip;
    if (s->last)
        end_message(g);
    if (out.m)
        out.m = carve(out.m, out.data, &off);
    if (g->top) {
        post_down(g, out.m, off, s->len, s->virt, frag_of(s->head, s->last));
    } else {
        post(&g->up, out.m, off, s->len, s->virt, frag_of(s->head, s->last));
        if (out.m)
            rte_pktmbuf_free(out.m);
    }
}

/* ---- packets in ---- */

static void doom_packet(struct an_edge *e, enum agg_status st, const char *what)
{
    char who[48];

    group_doom(e->g, st, NULL, "%s at %s: %s", group_who(e->g, e, who, sizeof(who)), group_me(e->g),
               what);
}

/* The first of the two is the lower child, whoever came first. Ranks below an AN agree, so its
 * lowest stands for all. */
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

/* A child that has left can never complete what another one starts. */
static void doom_left(struct an_group *g)
{
    char who[48];

    for (unsigned i = 0; i < g->n; i++)
        if (g->child[i].state == EDGE_LEFT)
            group_doom(g, AGG_E_MEMBER_LEFT, &g->child[i], "%s left %s before slot %u",
                       group_who(g, &g->child[i], who, sizeof(who)), group_me(g),
                       (unsigned)g->next);
}

/* The child's packet belongs to the slot as the children before it have it. */
static bool slot_agrees(struct an_group *g, struct an_slot *s, unsigned i, bool head,
                        const struct roce_pkt *k)
{
    const struct an_stream *rx = &g->child[i].rx;

    if (!s->have) {
        *s = (struct an_slot){.first = (uint16_t)i, .head = head, .last = !rx->left, .len = k->len};
        if (head)
            s->hdr = rx->hdr;
        return true;
    }
    if (head == s->head && (!head || !memcmp(&s->hdr, &rx->hdr, sizeof(s->hdr))))
        return true;
    doom_mismatch(g, s->first, s->head ? &s->hdr : &g->child[s->first].rx.hdr, i, &rx->hdr);
    return false;
}

static enum sink_verdict data_input(struct an_edge *e, const struct roce_pkt *k, struct rte_mbuf *m)
{
    struct an_group *g = e->g;
    unsigned i = (unsigned)(e - g->child);
    bool head = roce_opinfo[k->opcode].what & ROCE_P_FIRST;
    struct an_input *in = &g->in[(size_t)e->ring * g->n];
    struct an_slot *s = &g->slot[e->ring];
    enum agg_status st;
    const char *what;

    if (g->n_left) {
        doom_left(g);
        return SINK_COPIED;
    }
    if (e->rx.slots - g->results >= e->window) {
        doom_packet(e, AGG_E_PROTOCOL, "sent beyond its window");
        return SINK_COPIED;
    }
    st = stream_packet(&e->rx, k, AGG_DATA, g->mtu, &what);
    if (st != AGG_OK) {
        doom_packet(e, st, what);
        return SINK_COPIED;
    }
    if (!slot_agrees(g, s, i, head, k))
        return SINK_COPIED;
    if (!s->have && ++g->a->cnt.slots_used > g->a->cnt.slots_peak)
        g->a->cnt.slots_peak = g->a->cnt.slots_used;
    s->virt = RTE_MAX(s->virt,
                      k->virt); /* one that does not carry its elements is enough for none to be */
    g->a->cnt.bytes_in += k->len - (head ? AGG_HDR_BYTES : 0);
    in[i] = (struct an_input){m, k->payload};
    if (++e->ring == g->window)
        e->ring = 0;
    if (++s->have == g->n)
        reduce(g, s, in);
    return SINK_TAKEN;
}

/* From the parent: on to every child, by reference. */
static enum sink_verdict result_input(struct an_edge *e, const struct roce_pkt *k,
                                      struct rte_mbuf *m)
{
    struct an_group *g = e->g;
    bool head = roce_opinfo[k->opcode].what & ROCE_P_FIRST;
    uint32_t off = 0;
    enum agg_status st;
    const char *what;

    if (g->results >= g->next) {
        doom_packet(e, AGG_E_PROTOCOL, "result of a slot that was not sent");
        return SINK_COPIED;
    }
    st = stream_packet(&e->rx, k, AGG_RESULT, g->mtu, &what);
    if (st != AGG_OK) {
        doom_packet(e, st, what);
        return SINK_COPIED;
    }
    g->a->cnt.results++;
    if (k->payload) {
        m = carve(m, k->payload, &off);
    } else {
        rte_pktmbuf_free(m);
        m = NULL;
    }
    post_down(g, m, off, k->len, k->virt, frag_of(head, !e->rx.left));
    return SINK_TAKEN;
}

enum sink_verdict slot_input(struct an_edge *e, const struct roce_pkt *k, struct rte_mbuf *m)
{
    struct an_group *g = e->g;

    if (g->doomed)
        return SINK_COPIED;
    if (g->state != GROUP_OPEN) {
        doom_packet(e, AGG_E_PROTOCOL, "data before the group was granted");
        return SINK_COPIED;
    }
    return e == &g->up ? result_input(e, k, m) : data_input(e, k, m);
}

void slot_drop_all(struct an_group *g)
{
    for (uint32_t i = 0; g->in && i < g->window * g->n; i++)
        if (g->in[i].m) {
            rte_pktmbuf_free(g->in[i].m);
            g->in[i].m = NULL;
        }
    for (uint32_t i = 0; g->slot && i < g->window; i++)
        if (g->slot[i].have) {
            g->slot[i].have = 0;
            g->a->cnt.slots_used--;
        }
}
