/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/protocol/protocol_priv.h"

#include "protocols/host/conf.h"
#include "roce/icrc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PN_DSCP_ECT ((26u << 2) | 2u) /* lossless class, ECN-capable: as the aggregation node's */
#define PN_UDP_SRC  0xc993u

/* ---- frames out ---- */

struct rte_mbuf *pn_frame(struct protocol_node *p, uint32_t ip, uint32_t qpn, uint32_t len,
                          struct roce_pkt *k, uint8_t **payload)
{
    struct rte_mbuf *m = p->out_tail - p->out_head < PN_QUEUE ? frame_alloc(p->cfg.pool) : NULL;

    if (!m) {
        p->cnt.lost++;
        return NULL;
    }
    *k = (struct roce_pkt){.opcode = ROCE_OP_UD_SEND_ONLY,
                           .tos = PN_DSCP_ECT,
                           .ttl = 64,
                           .pkey = ROCE_DEFAULT_PKEY,
                           .udp_src = PN_UDP_SRC,
                           .src_ip = p->me->ip,
                           .dst_ip = ip,
                           .dqpn = qpn,
                           .qkey = PROTO_QKEY,
                           .sqpn = PROTO_QPN,
                           .psn = p->psn++ & ROCE_PSN_MASK,
                           .len = len};
    roce_mac_of_ip(k->src_ip, k->src_mac);
    roce_mac_of_ip(ip, k->dst_mac);
    roce_build(m, k);
    *payload = rte_pktmbuf_mtod_offset(m, uint8_t *, k->hdr_len);
    return m;
}

void pn_send(struct protocol_node *p, struct rte_mbuf *m, const struct roce_pkt *k)
{
    roce_seal(m, k);
    T_ASSERT_HOT(p->out_tail - p->out_head < PN_QUEUE, "more frames wait than there is room");
    p->out[p->out_tail++ % PN_QUEUE] = m;
    p->cnt.sent++;
}

struct packet_parts {
    const void *head, *data;
    uint32_t head_bytes, data_bytes;
};

static void send_packet(struct pn_job *j, uint32_t ip, uint32_t qpn, uint16_t from, uint16_t child,
                        const struct packet_parts *x)
{
    uint32_t pad = PROTO_PAD(x->head_bytes);
    struct proto_head h = {.magic = PROTO_DATA,
                           .head_bytes = (uint8_t)x->head_bytes,
                           .from = rte_cpu_to_be_16(from),
                           .child = rte_cpu_to_be_16(child),
                           .job = rte_cpu_to_be_32(j->id),
                           .tag = rte_cpu_to_be_32(j->tag)};
    struct roce_pkt k;
    uint8_t *at;
    struct rte_mbuf *m =
        pn_frame(j->p, ip, qpn, (uint32_t)sizeof(h) + pad + x->data_bytes, &k, &at);

    if (!m)
        return;
    memcpy(at, &h, sizeof(h));
    memset(at + sizeof(h), 0, pad);
    if (x->head_bytes)
        memcpy(at + sizeof(h), x->head, x->head_bytes);
    if (x->data_bytes)
        memcpy(at + sizeof(h) + pad, x->data, x->data_bytes);
    pn_send(j->p, m, &k);
}

void pn_emit(void *ctx, void *job, int to, const void *head, uint32_t head_bytes, const void *data,
             uint32_t data_bytes)
{
    const struct packet_parts x = {head, data, head_bytes, data_bytes};
    struct protocol_node *p = ctx;
    struct pn_job *j = job;

    if (to == PROTO_FORWARD) {
        if (p->target)
            send_packet(j, rte_be_to_cpu_32(p->target->ip), rte_be_to_cpu_32(p->target->qpn),
                        p->sender, 0xffff, &x);
    } else if (to == TRIB_PARENT) {
        send_packet(j, p->cfg.fab->nodes[j->up].ip, PROTO_QPN, PROTO_FROM_SWITCH, j->up_child, &x);
    } else {
        for (unsigned i = 0; i < j->n; i++) {
            const struct pn_child *c = &j->child[i];
            bool it = to == TRIB_CHILDREN || (unsigned)to == TRIB_CHILD(i) ||
                      (TRIB_IS(to, TRIB_RANK(0)) && c->who.is_member && c->rank == (uint32_t)to);

            if (it && !c->left)
                send_packet(j, c->ip, c->qpn, PROTO_FROM_SWITCH, (uint16_t)i, &x);
        }
    }
}

/* ---- frames in ---- */

/* The sender of a data packet, as TRIB_PARENT and the like; -1: its header and addresses disagree. */
static int source_of(struct pn_job *j, const struct roce_pkt *k, const struct proto_head *h)
{
    const struct fab_node *nodes = j->p->cfg.fab->nodes;
    uint16_t child = rte_be_to_cpu_16(h->child), from = rte_be_to_cpu_16(h->from);

    if (from == PROTO_FROM_SWITCH && k->sqpn == PROTO_QPN && !j->top &&
        k->src_ip == nodes[j->up].ip)
        return TRIB_PARENT;
    if (child < j->n && j->child[child].joined && j->child[child].ip == k->src_ip &&
        j->child[child].qpn == k->sqpn) {
        j->child[child].heard_ps = j->p->now;
        return TRIB_CHILD(child);
    }
    return child == 0xffff && from < j->nranks ? TRIB_RANK(from) : -1;
}

static void data_input(struct protocol_node *p, const struct roce_pkt *k)
{
    const uint8_t *at = k->payload;
    uint64_t head[TRIB_HEAD / 8];
    struct proto_head h;
    struct trib_packet t;
    struct pn_job *j;
    uint32_t off;

    memcpy(&h, at, sizeof(h));
    off = sizeof(h) + (h.flags & PROTO_F_TARGET ? sizeof(struct proto_target) : 0);
    if (h.head_bytes > TRIB_HEAD || off + PROTO_PAD(h.head_bytes) > k->len) {
        p->cnt.bad++;
        return;
    }
    j = pn_find(p, rte_be_to_cpu_32(h.job), rte_be_to_cpu_32(h.tag));
    if (!j || !j->job) {
        p->cnt.strangers++;
        return;
    }
    t.from = source_of(j, k, &h);
    if (t.from < 0) {
        p->cnt.strangers++;
        return;
    }
    memcpy(head, at + off, h.head_bytes);
    t.head = head;
    t.head_bytes = h.head_bytes;
    t.data = at + off + PROTO_PAD(h.head_bytes);
    t.data_bytes = k->len - off - PROTO_PAD(h.head_bytes);
    if ((uintptr_t)t.data % 8) {
        memcpy(p->scratch, t.data, t.data_bytes);
        t.data = p->scratch;
    }
    t.marked = (k->tos & 3) == 3;
    p->sender = rte_be_to_cpu_16(h.from);
    p->target = h.flags & PROTO_F_TARGET
                    ? (const struct proto_target *)(const void *)(at + sizeof(h))
                    : NULL;
    proto_switch_packet(p->sw[j->seat], j->job, &t, p->now);
    p->target = NULL;
}

static void frame_input(struct protocol_node *p, struct rte_mbuf *m)
{
    struct roce_pkt k;
    rte_be32_t magic;

    if ((frame_meta(m)->flags & FRAME_F_VIRTUAL) || roce_parse(m, &k) != ROCE_OK || k.v6 ||
        k.opcode != ROCE_OP_UD_SEND_ONLY || k.qkey != PROTO_QKEY || k.virt ||
        k.len < sizeof(struct proto_head) || k.len > p->cfg.fab->mtu ||
        (!(frame_meta(m)->flags & FRAME_F_TRUSTED) && !roce_icrc_ok(m, &k))) {
        p->cnt.bad++;
        return;
    }
    memcpy(&magic, k.payload, sizeof(magic));
    if (*k.payload == PROTO_DATA)
        data_input(p, &k);
    else if (magic == RTE_BE32(PROTO_MAGIC))
        pn_control(p, &k);
    else
        p->cnt.bad++;
}

/* Destination QPN of a frame for the switch; 0: it has none. */
static uint32_t qpn_of(struct rte_mbuf *m)
{
    const uint8_t *d = rte_pktmbuf_mtod(m, const uint8_t *);
    uint32_t n = roce_header_bytes(d, m->data_len), l3 = d[12] == 0x81 ? 18 : 14;
    uint32_t bth = l3 + (d[l3] >> 4 == 4 ? (d[l3] & 15u) * 4 : 40) + 8;

    return n >= bth + 12 ? (uint32_t)d[bth + 5] << 16 | (uint32_t)d[bth + 6] << 8 | d[bth + 7] : 0;
}

/* Handles a NIC's message that a process has ended; the aggregation node gets the message too. */
static void look_for_peer_down(struct protocol_node *p, struct rte_mbuf *m)
{
    struct agg_ctl c;
    struct roce_pkt k;

    if (roce_parse(m, &k) != ROCE_OK || k.opcode != ROCE_OP_UD_SEND_ONLY || k.sqpn != AGG_NIC_QPN ||
        k.qkey != AGG_QKEY || k.virt || k.len < sizeof(c))
        return;
    memcpy(&c, k.payload, sizeof(c));
    if (c.type == AGG_PEER_DOWN && agg_ctl_check(&c, sizeof(c)) == AGG_OK &&
        ((frame_meta(m)->flags & FRAME_F_TRUSTED) || roce_icrc_ok(m, &k)))
        pn_process_down(p, k.src_ip, rte_be_to_cpu_32(c.qpn) >> 16);
}

static uint16_t pn_input(void *ctx, struct rte_mbuf **m, uint16_t n, int64_t now_ps)
{
    struct protocol_node *p = ctx;
    const struct endpoint *b = &p->cfg.behind;
    uint16_t first = 0, i;

    p->now = now_ps;
    for (i = 0; i < n; i++) {
        uint32_t qpn = qpn_of(m[i]);
        uint16_t run = (uint16_t)(i - first);

        if (qpn == AGG_QPN && p->n_jobs)
            look_for_peer_down(p, m[i]);
        if (qpn != PROTO_QPN)
            continue;
        if (run && b->input(b->ctx, m + first, run, now_ps) < run)
            return i; /* cannot happen: the aggregation node takes all frames */
        frame_input(p, m[i]);
        rte_pktmbuf_free(m[i]);
        first = (uint16_t)(i + 1);
    }
    if (p->n_jobs)
        pn_settle(p);
    return (uint16_t)(first +
                      (first < n ? b->input(b->ctx, m + first, (uint16_t)(n - first), now_ps) : 0));
}

static uint16_t pn_output(void *ctx, enum endpoint_queue q, struct rte_mbuf **m, uint16_t n,
                          int64_t now_ps)
{
    struct protocol_node *p = ctx;
    uint16_t k = p->cfg.behind.output(p->cfg.behind.ctx, q, m, n, now_ps);

    if (q == ENDPOINT_DATA)
        while (k < n && p->out_head != p->out_tail)
            m[k++] = p->out[p->out_head++ % PN_QUEUE];
    return k;
}

static void pn_tick(void *ctx, int64_t now_ps)
{
    struct protocol_node *p = ctx;

    p->cfg.behind.tick(p->cfg.behind.ctx, now_ps);
    if (!p->n_jobs)
        return;
    p->now = now_ps;
    for (unsigned i = 0; i < PROTO_SEATS; i++)
        if (p->sw[i])
            proto_switch_tick(p->sw[i], now_ps);
    if (now_ps >= p->look_ps)
        pn_tick_jobs(p);
    pn_settle(p);
}

static int64_t pn_next(void *ctx)
{
    struct protocol_node *p = ctx;
    int64_t t = p->cfg.behind.next(p->cfg.behind.ctx);

    if (p->out_head != p->out_tail)
        return 0;
    if (!p->n_jobs)
        return t;
    for (unsigned i = 0; i < PROTO_SEATS; i++)
        if (p->sw[i])
            t = RTE_MIN(t, proto_switch_next(p->sw[i]));
    return RTE_MIN(t, p->look_ps);
}

struct endpoint protocol_node_endpoint(struct protocol_node *p)
{
    return (struct endpoint){
        .ctx = p, .input = pn_input, .output = pn_output, .tick = pn_tick, .next = pn_next};
}

/* ---- life ---- */

int protocol_node_create(struct protocol_node **out, const struct protocol_node_cfg *cfg)
{
    struct protocol_node *p = calloc(1, sizeof(*p));

    *out = p;
    if (!p)
        return -ENOMEM;
    p->cfg = *cfg;
    p->me = &cfg->fab->nodes[cfg->node];
    p->look_ps = PS_NEVER;
    for (unsigned i = 0; i < PROTO_SEATS; i++)
        if (proto_at(i))
            proto_conf(cfg->fab, proto_at(i), p->key[i]);
    return 0;
}

static void protocol_node_forget(struct protocol_node *p)
{
    while (LIST_FIRST(&p->jobs))
        pn_free(LIST_FIRST(&p->jobs));
    for (unsigned i = 0; i < PROTO_SEATS; i++) {
        proto_switch_destroy(p->sw[i]);
        p->sw[i] = NULL;
    }
    for (; p->out_head != p->out_tail; p->out_head++)
        rte_pktmbuf_free(p->out[p->out_head % PN_QUEUE]);
}

void protocol_node_restart(struct protocol_node *p, const struct endpoint *behind)
{
    protocol_node_forget(p);
    p->cfg.behind = *behind;
}

void protocol_node_destroy(struct protocol_node *p)
{
    if (!p)
        return;
    protocol_node_forget(p);
    free(p);
}

bool protocol_node_idle(const struct protocol_node *p)
{
    for (unsigned i = 0; i < PROTO_SEATS; i++)
        if (p->sw[i] && proto_switch_counters(p->sw[i])->slots)
            return false;
    return !p->n_jobs && p->out_head == p->out_tail;
}

unsigned protocol_node_jobs_of(const struct protocol_node *p, uint64_t key)
{
    const struct pn_job *j;
    unsigned n = 0;

    LIST_FOREACH(j, &p->jobs, link)
    n += j->key == key;
    return n;
}

void protocol_node_print(const struct protocol_node *p,
                         void (*emit)(void *ctx, const char *name, uint64_t v), void *ctx)
{
    for (unsigned i = 0; i < PROTO_SEATS; i++) {
        const struct trib_protocol *t = p->sw[i] ? proto_at(i) : NULL;
        const struct proto_switch_counters *c = t ? proto_switch_counters(p->sw[i]) : NULL;
        char name[64];

        if (!t)
            continue;
        const struct {
            const char *name;
            uint64_t v;
        } rows[] = {{"jobs", c->jobs},
                    {"refused", c->refused},
                    {"packets", c->packets},
                    {"sent", c->sent},
                    {"forwarded", c->forwarded},
                    {"work_bytes", c->work_bytes},
                    {"work_ops", c->work_ops},
                    {"memory", c->memory},
                    {"memory_peak", c->memory_peak},
                    {"slots", c->slots},
                    {"slots_peak", c->slots_peak},
                    {"leaked", c->leaked}};

        for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
            snprintf(name, sizeof(name), "%s_%s", t->name, rows[k].name);
            emit(ctx, name, rows[k].v);
        }
        for (unsigned k = 0; t->sw->counters && k < TRIB_COUNTERS && t->sw->counters[k]; k++) {
            snprintf(name, sizeof(name), "%s_%s", t->name, t->sw->counters[k]);
            emit(ctx, name, c->of_protocol[k]);
        }
    }
    if (p->cnt.sent || p->cnt.bad || p->cnt.strangers) {
        emit(ctx, "protocol_frames_sent", p->cnt.sent);
        emit(ctx, "protocol_frames_lost", p->cnt.lost);
        emit(ctx, "protocol_frames_bad", p->cnt.bad);
        emit(ctx, "protocol_frames_strange", p->cnt.strangers);
    }
}
