/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams of a communicator. The aggregation nodes' messages go to join.c, those about
 * connections to link.c, those about operations to op.c. The rest say in which phase a rank is:
 *
 *   READY    it has begun to connect
 *   CLOSING  all its sends are acknowledged: the neighbour may destroy its queue pairs
 *   FAILED   with the reason, which ranks pass on, so that all report the same one
 *
 * A rank repeats its phase until the other's answer confirms it.
 *
 * Nobody else can end the job by a datagram: ranks seal theirs (seal.h), and a switch's come from
 * its address and AGG_QPN, from which no process of a host can send (switch/source_guard.h).
 * Datagrams that are dropped are counted, and logged with the sender's name.
 */
#include "aggregation/mm_proto.h"
#include "host/coll/transport/conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PEER_MAGIC   0x54524250u /* "TRBP" */
#define PEER_VERSION 2
#define PEER_TEXT    184

struct peer_msg {
    struct ctl_head head;
    uint8_t version;
    uint8_t phase;  /* the sender's */
    uint8_t seen;   /* the receiver's phase, as far as the sender knows */
    uint8_t answer; /* an answer is wanted */
    char text[PEER_TEXT];
} __attribute__((packed));
_Static_assert(sizeof(struct peer_msg) <= CTL_MSG_BYTES, "one datagram");

static uint8_t *recv_buf(const struct ctl_port *t, uint64_t i)
{
    return t->mem + i * (CTL_GRH + CTL_MSG_BYTES);
}

static uint8_t *send_buf(const struct ctl_port *t, unsigned i)
{
    return recv_buf(t, CTL_RECVS) + i * CTL_MSG_BYTES;
}

static int post_recv(struct comm *c, unsigned port, uint64_t i)
{
    struct ctl_port *t = &c->ctl.port[port];
    struct ibv_sge sge = {
        .addr = (uintptr_t)recv_buf(t, i),
        .length = CTL_GRH + CTL_MSG_BYTES,
        .lkey = t->mr->lkey,
    };
    struct ibv_recv_wr wr = {.wr_id = WR_ID(WR_CTL_RECV, port, i), .sg_list = &sge, .num_sge = 1},
                       *bad;

    return ibv_post_recv(t->qp, &wr, &bad);
}

bool ctl_send(struct comm *c, unsigned port, struct ibv_ah *ah, uint32_t qpn, const void *msg,
              size_t len)
{
    struct ctl_port *t = &c->ctl.port[port];
    unsigned i = (unsigned)__builtin_ctz(~t->busy);
    struct ibv_sge sge = {.length = (uint32_t)len, .lkey = t->mr->lkey};
    struct ibv_send_wr wr =
                           {
                               .wr_id = WR_ID(WR_CTL_SEND, port, i),
                               .sg_list = &sge,
                               .num_sge = 1,
                               .opcode = IBV_WR_SEND,
                               .send_flags = IBV_SEND_SIGNALED,
                               .wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = AGG_QKEY},
                           },
                       *bad;

    if (i >= CTL_SENDS || !ah)
        return false;
    sge.addr = (uintptr_t)send_buf(t, i);
    memcpy(send_buf(t, i), msg, len);
    if (!ibv_post_send(t->qp, &wr, &bad))
        t->busy |= 1u << i;
    return true;
}

static struct seal_key key_of(const struct comm *c)
{
    return (struct seal_key){.key = c->cfg.key, .group = c->cfg.group};
}

bool ctl_send_rank(struct comm *c, unsigned rank, void *msg, size_t len)
{
    const struct seal_key key = key_of(c);
    struct peer *p = &c->ctl.peer[rank];

    if (!p->ah && p->qpn)
        p->ah = ud_address(&c->port[p->port], &p->gid);
    if (!p->ah) { /* comm_fail() sends to the linked ranks: there may be a way by then */
        comm_fail(c, "no way to rank %u (%s)", rank, comm_host(c, rank));
        return false;
    }
    seal_put(&key, c->cfg.rank, rank, ++p->sent, msg, len);
    return ctl_send(c, p->port, p->ah, p->qpn, msg, len);
}

/* ---- other ranks ---- */

/* The phase that this rank and, in the tree, all ranks below it have reached. */
static enum phase phase_below(const struct comm *c)
{
    enum phase phase = comm_phase(c);

    for (unsigned r = 2 * c->cfg.rank + 1; r <= 2 * c->cfg.rank + 2 && r < c->cfg.nranks; r++)
        if (c->ctl.peer[r].child && c->ctl.peer[r].phase < phase)
            phase = c->ctl.peer[r].phase;
    return phase;
}

/* Our phase as `rank` is told. A failure is told at once. */
static enum phase phase_for(const struct comm *c, unsigned rank)
{
    const struct peer *to = &c->ctl.peer[rank];
    enum phase phase = comm_phase(c);

    if (phase == PHASE_FAILED || !(to->parent || to->child))
        return phase;
    phase = phase_below(c);
    if (to->child && c->cfg.rank) {
        const struct peer *up = &c->ctl.peer[(c->cfg.rank - 1) / 2];

        phase = up->phase < phase ? up->phase : phase;
    }
    return phase;
}

static bool phase_tell(struct comm *c, unsigned rank, bool answer)
{
    struct peer_msg m = {
        .head.magic = rte_cpu_to_be_32(PEER_MAGIC),
        .version = PEER_VERSION,
        .phase = (uint8_t)phase_for(c, rank),
        .seen = (uint8_t)c->ctl.peer[rank].phase,
        .answer = answer,
    };

    /* A reason that names a rank is passed on unchanged; our own gets this rank's name. */
    if (c->state == COMM_FAILED &&
        (!strncmp(c->error, "rank ", 5) || !strncmp(c->error, "aborted ", 8)))
        snprintf(m.text, sizeof(m.text), "%.*s", PEER_TEXT - 1, c->error);
    else if (c->state == COMM_FAILED)
        snprintf(m.text, sizeof(m.text), "rank %u (%s): %.*s", c->cfg.rank,
                 comm_host(c, c->cfg.rank), PEER_TEXT / 2 + 40, c->error);
    return ctl_send_rank(c, rank, &m, sizeof(m));
}

void ctl_pump(struct comm *c)
{
    struct ctl *t = &c->ctl;

    if (!t->due || !t->peer)
        return;
    t->due = false;
    planes_pump(c);
    link_pump(c);
    for (unsigned r = 0; r < c->cfg.nranks && !t->due; r++) {
        if (t->peer[r].due)
            t->due = !phase_tell(c, r, true);
        t->peer[r].due = t->peer[r].due && t->due;
    }
}

void ctl_link(struct comm *c, unsigned rank)
{
    c->ctl.peer[rank].linked = true;
}

void ctl_link_tree(struct comm *c)
{
    const unsigned me = c->cfg.rank;

    if (me) {
        ctl_link(c, (me - 1) / 2);
        c->ctl.peer[(me - 1) / 2].parent = true;
    }
    for (unsigned r = 2 * me + 1; r <= 2 * me + 2 && r < c->cfg.nranks; r++) {
        ctl_link(c, r);
        c->ctl.peer[r].child = true;
    }
}

void ctl_tell(struct comm *c)
{
    struct ctl *t = &c->ctl;

    for (unsigned r = 0; t->peer && r < c->cfg.nranks; r++)
        if (t->peer[r].linked && t->peer[r].seen < phase_for(c, r))
            t->peer[r].due = t->due = true;
    ctl_pump(c);
}

static bool all_in(const struct comm *c, enum phase phase, bool seen)
{
    for (unsigned r = 0; c->ctl.peer && r < c->cfg.nranks; r++) {
        const struct peer *p = &c->ctl.peer[r];

        if (p->linked && (seen ? p->seen : p->phase) < phase)
            return false;
    }
    return true;
}

bool ctl_all_in(const struct comm *c, enum phase phase)
{
    return all_in(c, phase, false);
}

bool ctl_all_know(const struct comm *c)
{
    return all_in(c, comm_phase(c), true);
}

static void peer_input(struct comm *c, unsigned rank, const void *msg, size_t len)
{
    struct peer_msg m;
    struct peer *p;

    if (len < sizeof(m))
        return;
    memcpy(&m, msg, sizeof(m));
    m.text[sizeof(m.text) - 1] = 0;
    if (m.version != PEER_VERSION || m.phase > PHASE_FAILED || m.seen > PHASE_FAILED)
        return;
    p = &c->ctl.peer[rank];
    if (m.phase > p->phase) {
        p->phase = m.phase;
        if (p->parent || p->child)
            ctl_tell(c); /* what others are told may have risen */
    }
    if (m.seen > p->seen && m.seen <= comm_phase(c))
        p->seen = m.seen;
    if (m.answer && !phase_tell(c, rank, false))
        p->due = c->ctl.due = true; /* many requests at once: as soon as a send buffer is free */
    if (m.phase == PHASE_FAILED && !c->closing)
        comm_fail(c, "%.*s", PEER_TEXT - 1, m.text);
    comm_check_ready(c);
}

/* ---- whose it is ---- */

/* Source of a datagram: its IPv4 header fills the last 20 bytes of the GRH's room. 0: not IPv4. */
static uint32_t source_ip(const uint8_t *grh)
{
    rte_be32_t ip;

    memcpy(&ip, grh + CTL_GRH - 8, sizeof(ip));
    return grh[CTL_GRH - 20] >> 4 == 4 ? rte_be_to_cpu_32(ip) : 0;
}

static void datagram_refuse(struct comm *c, enum ctl_refusal why, uint32_t ip, uint32_t qpn)
{
    static const char *const text[CTL_REFUSALS] = {
        [CTL_FORGED] = "not sealed by a rank of this job",
        [CTL_REPEATED] = "received before",
        [CTL_STRANGER] = "in a switch's name, from another sender",
        [CTL_LATE] = "of a switch, about a group that is not this job's",
    };
    /* Links that duplicate frames repeat messages, too; messages to an earlier job come late. */
    const enum log_level level = why == CTL_REPEATED || why == CTL_LATE ? LOG_INFO : LOG_WARN;
    const struct fabric *f = c->cfg.fab;
    int d = fabric_dest_of_ip(f, ip);
    unsigned long long held;
    char who[FAB_NAME + 16];

    c->ctl.refused[why]++;
    if (!log_on("coll", level) || !log_may(&c->ctl.told[why], &held))
        return;
    snprintf(who, sizeof(who), "%s.%u.%d", d < 0 ? "?" : f->nodes[f->dests[d].node].name,
             d < 0 ? 0u : f->dests[d].port, (int)(qpn >> 16) - 1);
    log_line("coll", level, "rank %u: datagram of %s (queue pair 0x%06x) dropped: %s, %llu so far",
             c->cfg.rank, who, qpn, text[why], (unsigned long long)c->ctl.refused[why]);
}

static void rank_input(struct comm *c, uint32_t ip, uint32_t qpn, const uint8_t *msg, size_t len)
{
    const struct seal_key key = key_of(c);
    struct ctl_head h;
    unsigned rank;

    if (!c->ctl.peer) /* a rank that was faster: it repeats the message */
        return;
    if (!seal_right(&key, c->cfg.rank, msg, len)) {
        datagram_refuse(c, CTL_FORGED, ip, qpn);
        return;
    }
    memcpy(&h, msg, sizeof(h));
    rank = rte_be_to_cpu_32(h.from);
    if (rank >= c->cfg.nranks || !seal_new(&c->ctl.peer[rank].got, rte_be_to_cpu_32(h.seq))) {
        datagram_refuse(c, CTL_REPEATED, ip, qpn);
        return;
    }
    switch (rte_be_to_cpu_32(h.magic)) {
    case PEER_MAGIC:
        peer_input(c, rank, msg, len);
        break;
    case LINK_MAGIC:
        link_input(c, rank, msg, len);
        break;
    case OP_MAGIC:
        op_input(c, rank, msg, len);
        break;
    case FAILOVER_MAGIC:
        c->tell->input(c, msg, len);
        break;
    default:
        break;
    }
}

/* No process behind a NIC can send from AGG_QPN, or with the address of a switch. */
static bool is_switch(const struct comm *c, uint32_t ip, uint32_t qpn)
{
    const struct fabric *f = c->cfg.fab;
    int d = qpn == AGG_QPN ? fabric_dest_of_ip(f, ip) : -ENOENT;

    return d >= 0 && f->nodes[f->dests[d].node].kind == FAB_SWITCH;
}

static void agg_input(struct comm *c, unsigned port, uint32_t ip, uint32_t qpn, const void *msg,
                      size_t len)
{
    struct agg_ctl m;
    struct mm_ctl mm;
    bool known;

    if (len < sizeof(m))
        return;
    memcpy(&m, msg, sizeof(m));
    if (qpn != AGG_QPN) {
        known = false;
    } else if (m.type >= AGG_MM_BIND && m.type <= AGG_MM_MOVE_REPLY) {
        memcpy(&mm, msg, sizeof(mm));
        known = planes_input(c, port, ip, &mm);
    } else {
        m.text[sizeof(m.text) - 1] = 0;
        known = join_input(c, ip, &m);
    }
    if (!known)
        datagram_refuse(c, is_switch(c, ip, qpn) ? CTL_LATE : CTL_STRANGER, ip, qpn);
}

void ctl_complete(struct comm *c, const struct ibv_wc *wc)
{
    unsigned port = WR_INDEX(wc->wr_id);
    uint64_t i = WR_COUNT(wc->wr_id);
    const uint8_t *grh, *msg;
    uint32_t magic, ip;
    size_t len;

    if (WR_KIND(wc->wr_id) == WR_CTL_SEND) {
        c->ctl.port[port].busy &= ~(1u << i);
        ctl_pump(c);
        return;
    }
    if (wc->status != IBV_WC_SUCCESS)
        return;
    grh = recv_buf(&c->ctl.port[port], i);
    msg = grh + CTL_GRH;
    ip = source_ip(grh);
    len = wc->byte_len > CTL_GRH ? wc->byte_len - CTL_GRH : 0;
    memcpy(&magic, msg, sizeof(magic));
    if (magic == RTE_BE32(AGG_MAGIC))
        agg_input(c, port, ip, wc->src_qp, msg, len);
    else
        rank_input(c, ip, wc->src_qp, msg, len);
    post_recv(c, port, i);
}

void ctl_tick(struct comm *c)
{
    for (unsigned r = 0; c->ctl.peer && r < c->cfg.nranks; r++) {
        struct peer *p = &c->ctl.peer[r];

        if (p->linked && (p->seen < phase_for(c, r) || (c->state == COMM_CONNECTING && !p->phase)))
            p->due = c->ctl.due = true;
    }
    link_tick(c);
    ctl_pump(c);
}

/* ---- life ---- */

static int create_port(struct comm *c, unsigned port)
{
    struct ctl_port *t = &c->ctl.port[port];
    struct edge_cap cap = {CTL_SENDS, CTL_RECVS, 1, 1, 0};
    size_t bytes = CTL_RECVS * (CTL_GRH + CTL_MSG_BYTES) + CTL_SENDS * CTL_MSG_BYTES;

    t->mem = calloc(1, bytes);
    if (t->mem)
        t->mr = ibv_reg_mr(c->port[port].pd, t->mem, bytes, IBV_ACCESS_LOCAL_WRITE);
    if (t->mr)
        t->qp = ud_create(&c->port[port], &cap, AGG_QKEY);
    if (!t->qp)
        return errno ? -errno : -ENOMEM;
    for (unsigned i = 0; i < CTL_RECVS; i++)
        if (post_recv(c, port, i))
            return -EIO;
    return 0;
}

/* One queue pair on each port: an aggregation node is reachable over one of them only. */
int ctl_create(struct comm *c, char *err)
{
    for (unsigned p = 0; p < c->n_ports; p++) {
        int rc = create_port(c, p);

        if (rc) {
            snprintf(err, COMM_TEXT, "datagram queue pair: %s", strerror(-rc));
            return rc;
        }
    }
    return 0;
}

void ctl_destroy(struct comm *c)
{
    for (unsigned r = 0; c->ctl.peer && r < c->cfg.nranks; r++)
        if (c->ctl.peer[r].ah)
            ibv_destroy_ah(c->ctl.peer[r].ah);
    free(c->ctl.peer);
    for (unsigned i = 0; i < c->n_ports; i++) {
        struct ctl_port *t = &c->ctl.port[i];

        if (t->qp)
            ibv_destroy_qp(t->qp);
        if (t->mr)
            ibv_dereg_mr(t->mr);
        free(t->mem);
    }
}
