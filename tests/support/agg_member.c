/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/agg_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define CTL_BUFFERS 32u
#define CTL_ROOM    320u

/* ---- members: control ---- */

uint32_t member_an_ip(const struct member *m)
{
    const struct fabric *f = m->b->f;
    uint16_t leaf = m->an;

    if (!leaf && m->g.tree < f->n_trees)
        leaf = fab_group_leaf(f, &f->trees[m->g.tree], m->id, &m->g.members);
    if (!leaf ||
        leaf == FAB_NONE) /* not a member, or of no tree: asks the switch that it is linked to */
        leaf = f->nodes[m->host].ports[0].peer_node;
    return f->nodes[leaf].ip;
}

void agg_fixture_say(struct member *m, enum agg_type type, struct agg_ctl *c)
{
    static struct wqe w;

    c->magic = RTE_BE32(AGG_MAGIC);
    if (!c->version)
        c->version = AGG_VERSION;
    c->type = type;
    c->node = RTE_BE16(0xffff);
    w = (struct wqe){.op = WR_SEND, .frag = WQE_WHOLE, .flags = WR_F_INLINE, .len = sizeof(*c)};
    w.ud.ip = member_an_ip(m);
    roce_mac_of_ip(w.ud.ip, w.ud.mac);
    w.ud.qpn = AGG_QPN;
    w.ud.qkey = AGG_QKEY;
    memcpy(w.inl, c, sizeof(*c));
    assert_int_equal(qp_post_send(m->ctl, &w), 0);
}

static void fill(const struct member *m, struct agg_ctl *c)
{
    *c = (struct agg_ctl){.xid = rte_cpu_to_be_32(m->xid),
                          .tree = rte_cpu_to_be_16(m->g.tree),
                          .mtu = rte_cpu_to_be_16(m->g.mtu),
                          .group = rte_cpu_to_be_32(m->g.id),
                          .window = rte_cpu_to_be_32(m->g.window),
                          .key = rte_cpu_to_be_64(m->g.key),
                          .qpn = rte_cpu_to_be_32(qp_num(m->qp)),
                          .psn = rte_cpu_to_be_32(m->psn),
                          .member = rte_cpu_to_be_32(m->id)};
}

void agg_fixture_fill_join(const struct member *m, struct agg_ctl *c)
{
    fill(m, c);
    c->slot = rte_cpu_to_be_32(m->of_job);
    agg_members_write(c, &m->g.members);
}

static void ask(struct member *m)
{
    struct agg_ctl c;

    if (m->state == MEMBER_ASKING) {
        agg_fixture_fill_join(m, &c);
        agg_fixture_say(m, AGG_JOIN, &c);
    } else {
        fill(m, &c);
        agg_fixture_say(m, AGG_LEAVE, &c);
    }
    m->retry_ps = m->b->now + 300 * PS_PER_US;
}

void agg_fixture_join(struct member *m)
{
    m->state = MEMBER_ASKING;
    m->xid++;
    ask(m);
}

void agg_fixture_leave(struct member *m)
{
    m->state = MEMBER_LEAVING;
    m->xid++;
    ask(m);
}

static void to_rts(struct qp *qp, struct qp_attr *attr)
{
    for (int s = QP_INIT; s <= QP_RTS; s++) {
        attr->state = (enum qp_state)s;
        assert_int_equal(qp_modify(qp, attr), 0);
    }
}

static void on_reply(struct member *m, const struct agg_ctl *c, const struct cqe *from)
{
    struct qp_attr attr = {.dest_qpn = rte_be_to_cpu_32(c->qpn),
                           .rq_psn = rte_be_to_cpu_32(c->psn),
                           .sq_psn = m->psn,
                           .dest_ip = from->src_ip,
                           .mtu = m->g.mtu,
                           .min_rnr_timer = 1,
                           .timeout = 10,
                           .retry_cnt = 7,
                           .rnr_retry = 7};

    if (rte_be_to_cpu_32(c->xid) != m->xid)
        return;
    m->joins++;
    if (m->state == MEMBER_IN) /* answered twice: alike */
        assert_memory_equal(c, &m->granted, sizeof(*c));
    if (m->state != MEMBER_ASKING)
        return;
    m->status = rte_be_to_cpu_16(c->status);
    memcpy(m->text, c->text, sizeof(m->text));
    m->granted = *c;
    if (m->status != AGG_OK) {
        m->state = MEMBER_REFUSED;
        return;
    }
    memcpy(attr.dest_mac, from->src_mac, 6);
    to_rts(m->qp, &attr);
    m->credit = rte_be_to_cpu_32(c->window);
    m->state = MEMBER_IN;
}

static void on_abort(struct member *m, const struct agg_ctl *c)
{
    struct agg_ctl r;

    m->aborts++;
    if (m->state == MEMBER_IN || m->state == MEMBER_ASKING) {
        m->state = MEMBER_ABORTED;
        m->status = rte_be_to_cpu_16(c->status);
        memcpy(m->text, c->text, sizeof(m->text));
    }
    if (m->mute_acks)
        return;
    fill(m, &r);
    r.xid = c->xid;
    agg_fixture_say(m, AGG_ABORT_ACK, &r);
}

static void control(struct member *m, const struct agg_ctl *c, const struct cqe *from)
{
    assert_int_equal(c->magic, RTE_BE32(AGG_MAGIC));
    if (c->group != rte_cpu_to_be_32(m->g.id))
        return;
    if (c->type == AGG_JOIN_REPLY)
        on_reply(m, c, from);
    else if (c->type == AGG_ABORT)
        on_abort(m, c);
    else if (c->type == AGG_LEAVE_REPLY && m->state == MEMBER_LEAVING &&
             rte_be_to_cpu_32(c->xid) == m->xid)
        m->state = MEMBER_LEFT;
    else if (c->type == AGG_WINDOW && !m->window_lost)
        m->credit = rte_be_to_cpu_32(c->window);
    else if (c->type == AGG_PROBE_REPLY)
        m->status = rte_be_to_cpu_16(c->status);
}

/* ---- members: data ---- */

static uint32_t msg_len(const struct member *m, uint64_t off)
{
    uint64_t max = AGG_MSG_BYTES(m->g.mtu), left = m->op.total - off;

    return (uint32_t)(left < max ? left : max);
}

static bool sends(const struct member *m)
{
    return m->op.coll != AGG_BROADCAST || m->op.root == m->id;
}

static bool gets(const struct member *m)
{
    return m->op.coll == AGG_REDUCE ? m->op.root == m->id
                                    : m->op.coll != AGG_BROADCAST || m->op.root != m->id;
}

void agg_fixture_start(struct member *m, const struct agg_fixture_op *op)
{
    uint64_t max = AGG_MSG_BYTES(m->g.mtu), n = op->total / max + 1;

    m->op = *op;
    m->hdr = agg_fixture_alloc(m->b, n * sizeof(m->hdr[0]));
    for (uint64_t i = 0; i < n; i++)
        m->hdr[i] = (struct agg_hdr){.version = AGG_VERSION,
                                     .type = AGG_DATA,
                                     .coll = op->coll,
                                     .dtype = op->dtype,
                                     .op = op->op,
                                     .flags = sends(m) ? 0 : AGG_F_EMPTY,
                                     .root = rte_cpu_to_be_16(op->root),
                                     .opseq = rte_cpu_to_be_32(op->opseq),
                                     .msg_len = rte_cpu_to_be_32(msg_len(m, i * max)),
                                     .total = rte_cpu_to_be_64(op->total),
                                     .offset = rte_cpu_to_be_64(i * max)};
    m->sent = m->got = 0;
    m->sent_all = m->got_all = false;
    m->busy = true;
}

/* Bytes of elements in the packet that starts at `off` of the vector, and its place in the
 * message. */
static uint32_t packet_at(const struct member *m, uint64_t off, bool *head, bool *last)
{
    uint64_t max = AGG_MSG_BYTES(m->g.mtu), in = off % max;
    uint32_t len = msg_len(m, off - in), n;

    *head = in == 0;
    n = m->g.mtu - (*head ? AGG_HDR_BYTES : 0);
    n = n < len - in ? n : (uint32_t)(len - in);
    *last = in + n == len;
    return n;
}

static void count_open(struct member *m)
{
    if (m->sent_slots - m->got_slots > m->max_open)
        m->max_open = m->sent_slots - m->got_slots;
}

/* One packet's worth, or the header of a message without elements; false: the window or the queue
 * is full. */
static bool send_packet(struct member *m)
{
    static struct wqe w;
    bool head, last;
    uint32_t n = packet_at(m, m->sent, &head, &last), len = msg_len(m, m->sent);
    uint32_t slots = sends(m) ? 1 : agg_msg_slots(len, m->g.mtu);

    if ((m->sent_slots - m->got_slots + slots > m->credit && !m->over_window) ||
        qp_sq_free(m->qp) == 0)
        return false;
    if (!sends(m)) {
        w = (struct wqe){.op = WR_SEND, .frag = WQE_WHOLE, .n_sge = 1};
        w.sge[0] =
            (struct sge){(uintptr_t)&m->hdr[m->sent / AGG_MSG_BYTES(m->g.mtu)], AGG_HDR_BYTES, 0};
        if (qp_post_send(m->qp, &w))
            fail_msg("member %u cannot post", m->id);
        m->sent += len;
        m->sent_all = m->sent == m->op.total;
        m->sent_slots += slots;
        count_open(m);
        return true;
    }
    w = (struct wqe){
        .op = WR_SEND, .frag = (head ? WQE_FIRST : 0) | (last ? WQE_LAST : 0), .n_sge = 0};
    if (head)
        w.sge[w.n_sge++] =
            (struct sge){(uintptr_t)&m->hdr[m->sent / AGG_MSG_BYTES(m->g.mtu)], AGG_HDR_BYTES, 0};
    if (n)
        w.sge[w.n_sge++] = (struct sge){(uintptr_t)(m->op.in + m->sent), n, m->op.length_only};
    if (qp_post_send(m->qp, &w))
        fail_msg("member %u cannot post", m->id);
    m->sent += n;
    m->sent_all = m->sent == m->op.total && last;
    m->sent_slots++;
    count_open(m);
    return true;
}

static void check_header(const struct member *m, const uint8_t *p)
{
    struct agg_hdr want = m->hdr[m->got / AGG_MSG_BYTES(m->g.mtu)];

    want.type = AGG_RESULT;
    want.flags = gets(m) ? 0 : AGG_F_EMPTY;
    assert_memory_equal(p, &want, sizeof(want));
}

static enum sink_verdict sink(void *user, struct qp *qp, const struct roce_pkt *k,
                              struct rte_mbuf *mbuf, int64_t now)
{
    struct member *m = user;
    bool head, last;
    uint32_t n;

    (void)qp, (void)mbuf, (void)now;
    if (m->state != MEMBER_IN)
        return SINK_COPIED;
    if (m->got_slots == m->sent_slots)
        fail_msg("member %u got a result that it did not send for", m->id);
    if (!gets(m)) {
        n = msg_len(m, m->got);
        assert_int_equal(k->len, AGG_HDR_BYTES);
        check_header(m, k->payload);
        m->got += n;
        m->got_slots += agg_msg_slots(n, m->g.mtu);
        m->got_all = m->got == m->op.total;
        m->busy = !m->got_all;
        return SINK_COPIED;
    }
    n = packet_at(m, m->got, &head, &last);
    assert_int_equal(k->len, n + (head ? AGG_HDR_BYTES : 0));
    assert_int_equal(!!(roce_opinfo[k->opcode].what & ROCE_P_FIRST), head);
    assert_int_equal(!!(roce_opinfo[k->opcode].what & ROCE_P_LAST), last);
    assert_int_equal(k->virt, m->op.length_only || m->gets_lengths ? n : 0);
    if (head)
        check_header(m, k->payload);
    if (n && !k->virt)
        memcpy(m->op.out + m->got, k->payload + (head ? AGG_HDR_BYTES : 0), n);
    m->got += n;
    m->got_slots++;
    m->got_all = m->got == m->op.total && last;
    if (m->got_all)
        m->busy = false;
    return SINK_COPIED;
}

static int memory(void *user, struct qp *qp, bool remote, uint32_t key, uint64_t addr, uint64_t len,
                  unsigned access, void **p)
{
    (void)user, (void)qp, (void)remote, (void)len, (void)access;
    *p = key ? NULL : (void *)(uintptr_t)addr;
    return 0;
}

static void post_ctl(struct member *m, uint64_t i)
{
    struct rwqe w = {.wr_id = i, .n_sge = 1};

    w.sge[0] = (struct sge){(uintptr_t)(m->ctl_mem + i * CTL_ROOM), CTL_ROOM, 0};
    assert_int_equal(rq_post(m->ctl_rq, &w), 0);
}

static void complete(void *user, const struct cqe *c)
{
    struct member *m = user;

    if (c->qp != m->ctl || !c->is_recv || c->status != WC_SUCCESS)
        return;
    assert_int_equal(c->byte_len, ROCE_GRH_BYTES + sizeof(struct agg_ctl));
    assert_false(m->ctl_waits); /* the fixture hands over one frame at a time */
    m->ctl_waits = true;
    m->ctl_cqe = *c;
}

void member_take_control(struct member *m)
{
    if (!m->ctl_waits)
        return;
    m->ctl_waits = false;
    control(m, (const void *)(m->ctl_mem + m->ctl_cqe.wr_id * CTL_ROOM + ROCE_GRH_BYTES),
            &m->ctl_cqe);
    post_ctl(m, m->ctl_cqe.wr_id);
}

int64_t member_run(struct member *m)
{
    bool asks = m->state == MEMBER_ASKING || m->state == MEMBER_LEAVING;

    if (asks && m->retry_ps <= m->b->now)
        ask(m);
    if (m->state == MEMBER_IN && m->busy && !m->frozen)
        while (!m->sent_all && send_packet(m))
            ;
    return asks ? m->retry_ps : PS_NEVER;
}

/* ---- members: life ---- */

void member_create(struct agg_fixture *b, struct member *m)
{
    struct rnic_cfg cfg = {.ip = m->ip,
                           .qpn_base = (m->slot + 1u) << 16,
                           .max_qps = 8,
                           .window_pkts = 256,
                           .ack_every = 8,
                           .dscp = 26,
                           .pool = b->pool,
                           .ops = {.mem = memory, .complete = complete, .sink = sink},
                           .user = m};
    struct qp_cfg ctl = {.type = QP_UD, .sq_depth = 64},
                  rc = {.type = QP_RC, .sq_depth = 1024, .streaming = true};
    struct qp_attr attr = {.qkey = AGG_QKEY};

    roce_mac_of_ip(m->ip, cfg.mac);
    assert_int_equal(rnic_create(&m->r, &cfg), 0);
    m->ep = rnic_endpoint(m->r);
    m->ctl_mem = agg_fixture_alloc(b, CTL_BUFFERS * CTL_ROOM);
    m->ctl_rq = rq_create(CTL_BUFFERS);
    ctl.rq = m->ctl_rq;
    assert_int_equal(qp_create(m->r, &ctl, &m->ctl), 0);
    assert_int_equal(qp_create(m->r, &rc, &m->qp), 0);
    to_rts(m->ctl, &attr);
    for (uint64_t i = 0; i < CTL_BUFFERS; i++)
        post_ctl(m, i);
    m->psn = (uint32_t)agg_fixture_random(b, 1 << 24);
}
