/*
 * Datagrams of a communicator. The aggregation node's messages go to join.c. The neighbours' say in
 * which phase a rank is:
 *
 *   READY    its queue pairs can receive; nobody sends data before, so that no first frame is lost
 *   CLOSING  all its sends are acknowledged: the neighbour may take its queue pairs away
 *   FAILED   with the reason, which goes round the ring, so that every rank ends with the same
 * words
 *
 * A phase is repeated until the neighbour's answer says that it was seen.
 */
#include "host/coll/comm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PEER_MAGIC   0x54524250u /* "TRBP" */
#define PEER_VERSION 1
#define PEER_TEXT    192

struct peer_msg {
    rte_be32_t magic;
    uint8_t version;
    uint8_t phase;  /* the sender's */
    uint8_t seen;   /* the receiver's phase, as far as the sender knows */
    uint8_t answer; /* an answer is wanted */
    rte_be32_t group, rank;
    char text[PEER_TEXT];
} __attribute__((packed));
_Static_assert(sizeof(struct peer_msg) <= CTL_ROOM, "one datagram");

static uint8_t *recv_buf(const struct comm *c, uint64_t i)
{
    return c->ctl.mem + i * (CTL_GRH + CTL_ROOM);
}

static uint8_t *send_buf(const struct comm *c, unsigned i)
{
    return recv_buf(c, CTL_RECVS) + i * CTL_ROOM;
}

static int post_recv(struct comm *c, uint64_t i)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)recv_buf(c, i),
        .length = CTL_GRH + CTL_ROOM,
        .lkey = c->ctl.mr->lkey,
    };
    struct ibv_recv_wr wr = {.wr_id = WR_ID(WR_CTL_RECV, i), .sg_list = &sge, .num_sge = 1}, *bad;

    return ibv_post_recv(c->ctl.qp, &wr, &bad);
}

void ctl_send(struct comm *c, struct ibv_ah *ah, uint32_t qpn, const void *msg, size_t len)
{
    struct ctl *t = &c->ctl;
    unsigned i = (unsigned)__builtin_ctz(~t->busy);
    struct ibv_sge sge = {.length = (uint32_t)len, .lkey = t->mr->lkey};
    struct ibv_send_wr wr =
                           {
                               .wr_id = WR_ID(WR_CTL_SEND, i),
                               .sg_list = &sge,
                               .num_sge = 1,
                               .opcode = IBV_WR_SEND,
                               .send_flags = IBV_SEND_SIGNALED,
                               .wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = AGG_QKEY},
                           },
                       *bad;

    if (i >= CTL_SENDS || !ah)
        return;
    sge.addr = (uintptr_t)send_buf(c, i);
    memcpy(send_buf(c, i), msg, len);
    if (!ibv_post_send(t->qp, &wr, &bad))
        t->busy |= 1u << i;
}

/* ---- neighbours ---- */

static void tell(struct comm *c, struct peer *p, bool answer)
{
    struct peer_msg m = {
        .magic = rte_cpu_to_be_32(PEER_MAGIC),
        .version = PEER_VERSION,
        .phase = (uint8_t)comm_phase(c),
        .seen = (uint8_t)p->phase,
        .answer = answer,
        .group = rte_cpu_to_be_32(c->cfg.group),
        .rank = rte_cpu_to_be_32(c->cfg.rank),
    };

    /* What concerns all goes round as it is; of our own troubles the others must know whose they
     * are. */
    if (c->state == COMM_FAILED &&
        (!strncmp(c->error, "rank ", 5) || !strncmp(c->error, "aborted ", 8)))
        snprintf(m.text, sizeof(m.text), "%.*s", PEER_TEXT - 1, c->error);
    else if (c->state == COMM_FAILED)
        snprintf(m.text, sizeof(m.text), "rank %u (%s): %.*s", c->cfg.rank,
                 comm_host(c, c->cfg.rank), PEER_TEXT / 2 + 40, c->error);
    ctl_send(c, p->ah, p->qpn, &m, sizeof(m));
}

void ctl_tell(struct comm *c)
{
    for (unsigned i = 0; i < c->ctl.n_peers; i++)
        if (c->ctl.peer[i].seen < comm_phase(c))
            tell(c, &c->ctl.peer[i], true);
}

static bool all_in(const struct comm *c, enum phase phase, bool seen)
{
    for (unsigned i = 0; i < c->ctl.n_peers; i++)
        if ((seen ? c->ctl.peer[i].seen : c->ctl.peer[i].phase) < phase)
            return false;
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

static void peer_input(struct comm *c, const struct peer_msg *m)
{
    unsigned rank = rte_be_to_cpu_32(m->rank);

    if (m->version != PEER_VERSION || rte_be_to_cpu_32(m->group) != c->cfg.group ||
        m->phase > PHASE_FAILED || m->seen > PHASE_FAILED)
        return;
    for (unsigned i = 0; i < c->ctl.n_peers; i++) {
        struct peer *p = &c->ctl.peer[i];

        if (p->rank != rank)
            continue;
        if (m->phase > p->phase)
            p->phase = m->phase;
        if (m->seen > p->seen && m->seen <= comm_phase(c))
            p->seen = m->seen;
        if (m->answer)
            tell(c, p, false);
        if (m->phase == PHASE_FAILED && !c->closing)
            comm_fail(c, "%.*s", PEER_TEXT - 1, m->text);
        comm_check_ready(c);
    }
}

void ctl_complete(struct comm *c, const struct ibv_wc *wc)
{
    uint64_t i = WR_COUNT(wc->wr_id);
    const uint8_t *msg;
    uint32_t magic;

    if (WR_KIND(wc->wr_id) == WR_CTL_SEND) {
        c->ctl.busy &= ~(1u << i);
        return;
    }
    if (wc->status != IBV_WC_SUCCESS)
        return;
    msg = recv_buf(c, i) + CTL_GRH;
    memcpy(&magic, msg, sizeof(magic));
    magic = rte_be_to_cpu_32(magic);
    if (magic == AGG_MAGIC && wc->byte_len >= CTL_GRH + sizeof(struct agg_ctl)) {
        struct agg_ctl m;

        memcpy(&m, msg, sizeof(m));
        m.text[sizeof(m.text) - 1] = 0;
        join_input(c, &m);
    } else if (magic == PEER_MAGIC && wc->byte_len >= CTL_GRH + sizeof(struct peer_msg)) {
        struct peer_msg m;

        memcpy(&m, msg, sizeof(m));
        m.text[sizeof(m.text) - 1] = 0;
        peer_input(c, &m);
    }
    post_recv(c, i);
}

void ctl_tick(struct comm *c)
{
    for (unsigned i = 0; i < c->ctl.n_peers; i++) {
        struct peer *p = &c->ctl.peer[i];

        if (p->seen < comm_phase(c) || (c->state == COMM_CONNECTING && !p->phase))
            tell(c, p, true);
    }
}

/* ---- life ---- */

int ctl_create(struct comm *c, char *err)
{
    struct ctl *t = &c->ctl;
    size_t bytes = CTL_RECVS * (CTL_GRH + CTL_ROOM) + CTL_SENDS * CTL_ROOM;
    struct edge_cap cap = {CTL_SENDS, CTL_RECVS, 1, 1, 0};

    t->mem = calloc(1, bytes);
    if (t->mem)
        t->mr = ibv_reg_mr(c->port.pd, t->mem, bytes, IBV_ACCESS_LOCAL_WRITE);
    if (t->mr)
        t->qp = ud_create(&c->port, &cap, AGG_QKEY);
    if (!t->qp) {
        snprintf(err, COMM_TEXT, "datagram queue pair: %s", strerror(errno));
        return -errno;
    }
    for (unsigned i = 0; i < CTL_RECVS; i++)
        if (post_recv(c, i)) {
            snprintf(err, COMM_TEXT, "datagram queue pair: cannot post a receive");
            return -EIO;
        }
    return 0;
}

int ctl_connect(struct comm *c, char *err)
{
    for (unsigned i = 0; i < c->ctl.n_peers; i++)
        if (!c->ctl.peer[i].ah) {
            snprintf(err, COMM_TEXT, "no address handle for rank %u (%s)", c->ctl.peer[i].rank,
                     comm_host(c, c->ctl.peer[i].rank));
            return -EHOSTUNREACH;
        }
    ctl_tell(c);
    return 0;
}

void ctl_destroy(struct comm *c)
{
    for (unsigned i = 0; i < c->ctl.n_peers; i++)
        if (c->ctl.peer[i].ah)
            ibv_destroy_ah(c->ctl.peer[i].ah);
    if (c->ctl.qp)
        ibv_destroy_qp(c->ctl.qp);
    if (c->ctl.mr)
        ibv_dereg_mr(c->ctl.mr);
    free(c->ctl.mem);
}
