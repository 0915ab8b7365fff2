/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes connections between two ranks, on demand, by datagrams. The rank that needs it makes its
 * end and sends a request; the peer makes its own. Each message describes the sender's whole end,
 * and says whether the sender has the receiver's, so messages may be repeated, lost and duplicated:
 *
 *   A: mine, not yours yet    B: mine, and I have yours (B receives)    A: I have yours
 *
 * A rank sends data once the peer has said that it can receive.
 *
 * At most LINKS_ASKED of a rank's requests wait for an answer; each answer lets the next one go.
 * Answers wait only for send buffers.
 */
#include "host/coll/transport/conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t scratch_bytes(const struct conn *k)
{
    return (size_t)k->depth * SCHED_SLICE_MAX;
}

struct link_msg {
    struct ctl_head head;
    rte_be32_t key; /* link_key() */
    uint8_t have;   /* the sender can receive */
    uint8_t want;   /* the sender does not know whether the receiver can */
    rte_be16_t mtu;
    rte_be32_t qpn, psn, word_key;
    uint8_t gid[16];
} __attribute__((packed));
_Static_assert(sizeof(struct link_msg) <= CTL_MSG_BYTES, "one datagram");

/* ---- this rank's end ---- */

#define WORD_ALIGN MEM_PAGE /* the credit word begins a page */
#define WORD_ROOM  64u      /* and fills a cache line */

/* Generation and channel of a connection as one number: in messages, and for its first PSN. */
static uint32_t link_key(const struct conn *k)
{
    return (uint32_t)k->generation << 16 | k->chan;
}

/* The credit word, the connection and its arrays, in one page. NULL: no memory. */
static struct conn *end_alloc(unsigned depth)
{
    struct conn *k, of = {.depth = depth};
    size_t slots = depth * sizeof(*k->slot), got = depth * sizeof(*k->got);
    size_t bytes = WORD_ROOM + sizeof(*k) + slots + CONN_SQ(&of) * sizeof(*k->tx_at) + got;
    void *word;

    if (posix_memalign(&word, WORD_ALIGN, bytes))
        return NULL;
    memset(word, 0, bytes);
    k = (void *)((char *)word + WORD_ROOM);
    *k = of;
    k->word = word;
    k->slot = (void *)(k + 1);
    k->tx_at = (void *)((char *)k->slot + slots);
    k->got = (void *)(k->tx_at + CONN_SQ(k));
    *k->word = rte_cpu_to_le_32(CONN_AHEAD);
    return k;
}

static void end_free(struct comm *c, struct conn *k)
{
    if (k->qp)
        ibv_destroy_qp(k->qp);
    if (k->mr)
        ibv_dereg_mr(k->mr);
    if (k->word_mr)
        ibv_dereg_mr(k->word_mr);
    mem_host_free(c, k->mem, scratch_bytes(k));
    free(k->word); /* k with it */
}

/* The peer may write only the credit word. Its address on the wire is 0, so that frames do not
 * depend on this process's memory map; a kernel requires the same offset in a page for both
 * addresses. */
static int end_create(struct comm *c, struct conn *k)
{
    struct edge_cap cap = {CONN_SQ(k), k->depth, 1, 1, sizeof(uint32_t)};
    struct ibv_pd *pd = k->port->pd;

    errno = 0;
    k->mem = mem_host(c, scratch_bytes(k)); /* never read where payload is lengths */
    if (!k->mem || port_reserve(k->port, CONN_CQE(k)))
        return -ENOMEM;
    k->mr = ibv_reg_mr(pd, k->mem, scratch_bytes(k), IBV_ACCESS_LOCAL_WRITE);
    if (k->mr && comm_unbacked(c) && c->hooks.unback(k->mr))
        return -EINVAL;
    if (k->mr)
        k->word_mr = ibv_reg_mr_iova(pd, k->word, sizeof(uint64_t), 0,
                                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (k->word_mr)
        k->qp = rc_create(k->port, &cap, true);
    if (!k->qp)
        return errno ? -errno : -ENOMEM;
    k->psn = comm_psn(c, k->peer, link_key(k));
    k->published = CONN_AHEAD;
    conn_top_up(c, k);
    return c->state == COMM_FAILED ? -EIO : 0;
}

static struct conn *conn_add(struct comm *c, unsigned peer, uint32_t key, char *err)
{
    struct fab_channel ch[SCHED_MAX_CHANS];
    unsigned n = topo_channels(&c->topo, c->cfg.rank, peer, ch, SCHED_MAX_CHANS);
    struct conn *k = end_alloc(sched_slots(&c->topo.sched));
    unsigned which = key & 0xffff;
    int rc = k ? 0 : -ENOMEM;

    if (!rc && (which >= n || ch[which].port_a >= c->n_ports))
        rc = -ENODEV;
    if (!rc && c->n_conns == c->conn_room) {
        unsigned room = 2 * c->conn_room + 4;
        struct conn **more = realloc(c->conn, room * sizeof(*more));

        rc = more && room <= WR_INDEX_MAX ? 0 : -ENOMEM;
        if (more)
            c->conn = more, c->conn_room = room;
    }
    if (!rc) {
        k->index = c->n_conns;
        k->peer = peer;
        k->chan = (uint16_t)which;
        k->generation = (uint16_t)(key >> 16);
        k->port = &c->port[ch[which].port_a];
        k->rx_lane = k->tx_lane = LANE_NONE;
        rc = end_create(c, k);
    }
    if (rc) {
        snprintf(err, COMM_TEXT, "cannot make a connection to rank %u (%s), channel %u: %s", peer,
                 comm_host(c, peer), which, strerror(-rc));
        if (k)
            end_free(c, k);
        return NULL;
    }
    T_ASSERT(c->n_conns < c->conn_room, "a connection is appended past the end of the table");
    c->conn[c->n_conns++] = k;
    k->next = c->ctl.peer[peer].conns;
    c->ctl.peer[peer].conns = k;
    ctl_link(c, peer);
    return k;
}

static struct conn *conn_find(const struct comm *c, unsigned peer, uint32_t key)
{
    struct conn *k = c->ctl.peer[peer].conns;

    while (k && link_key(k) != key)
        k = k->next;
    return k;
}

static bool send_link(struct comm *c, struct conn *k, bool want)
{
    struct link_msg m = {
        .head.magic = rte_cpu_to_be_32(LINK_MAGIC),
        .key = rte_cpu_to_be_32(link_key(k)),
        .have = k->connected,
        .want = want,
        .qpn = rte_cpu_to_be_32(k->qp->qp_num),
        .psn = rte_cpu_to_be_32(k->psn),
        .word_key = rte_cpu_to_be_32(k->word_mr->rkey),
        .mtu = rte_cpu_to_be_16((uint16_t)c->mtu),
    };

    memcpy(m.gid, k->port->gid.raw, sizeof(m.gid));
    return ctl_send_rank(c, k->peer, &m, sizeof(m));
}

/* A message goes out as soon as a send buffer is free. */
static void due_enqueue(struct comm *c, struct conn *k)
{
    struct links *l = &c->ctl.links;

    k->due = c->ctl.due = true;
    if (k->queued)
        return;
    k->queued = true;
    k->due_next = NULL;
    if (l->due)
        l->end->due_next = k;
    else
        l->due = k;
    l->end = k;
}

static void due_dequeue(struct links *l)
{
    struct conn *k = l->due;

    T_ASSERT(k->queued, "a connection is in the queue of those due, and does not know");
    l->due = k->due_next;
    k->queued = k->due = false;
}

/* The peer has answered, or its answer is no longer wanted. */
static void conn_answered(struct comm *c, struct conn *k)
{
    k->due = false;
    c->ctl.links.asked -= k->asked;
    k->asked = false;
}

/* Sends requests, up to LINKS_ASKED. */
static void request_next(struct comm *c)
{
    struct links *l = &c->ctl.links;

    while (l->asked < LINKS_ASKED && l->next < c->n_conns) {
        struct conn *k = c->conn[l->next++];

        if (k->connected || k->open || conn_is_old(c, k)) /* the peer has asked */
            continue;
        k->asked = true;
        l->asked++;
        due_enqueue(c, k);
    }
}

struct conn *conn_get(struct comm *c, unsigned peer, unsigned chan, char *err)
{
    uint32_t key = c->generation << 16 | chan;
    struct conn *k = conn_find(c, peer, key);

    if (k)
        return k;
    k = conn_add(c, peer, key, err);
    if (k) {
        request_next(c);
        ctl_pump(c);
    }
    return k;
}

int conn_all_channels(struct comm *c, unsigned peer, char *err)
{
    struct fab_channel ch[SCHED_MAX_CHANS];
    unsigned n = topo_channels(&c->topo, c->cfg.rank, peer, ch, SCHED_MAX_CHANS);

    for (unsigned i = 0; i < n; i++)
        if (!conn_get(c, peer, i, err))
            return -EHOSTUNREACH;
    return 0;
}

bool conn_all_open(const struct comm *c)
{
    for (unsigned i = 0; i < c->n_conns; i++)
        if (!c->conn[i]->open && !conn_is_old(c, c->conn[i]))
            return false;
    return true;
}

void conn_renew(struct comm *c)
{
    T_ASSERT(c->generation < PARTS, "connections are renewed more often than parts can fail");
    c->generation++;
    comm_event(c, COMM_EV_CONN_RENEW, c->generation, c->n_conns);
    for (unsigned i = 0; i < c->n_conns; i++) {
        struct conn *k = c->conn[i];

        if (!conn_is_old(c, k))
            continue;
        k->rx_lane = k->tx_lane = LANE_NONE;
        conn_answered(c, k);
        qp_stop(k->qp);
    }
}

/* ---- the peer's ---- */

static int end_connect(struct comm *c, struct conn *k, const struct link_msg *m)
{
    struct remote far = {.qpn = rte_be_to_cpu_32(m->qpn), .psn = rte_be_to_cpu_32(m->psn)};
    int rc;

    memcpy(far.gid.raw, m->gid, sizeof(m->gid));
    rc = rc_connect(k->port, k->qp, &far, k->psn);
    if (rc) {
        comm_fail(c, "cannot connect to rank %u (%s): %s", k->peer, comm_host(c, k->peer),
                  strerror(-rc));
        return rc;
    }
    k->remote_key = rte_be_to_cpu_32(m->word_key);
    k->connected = true;
    return 0;
}

void link_input(struct comm *c, unsigned rank, const void *msg, size_t len)
{
    struct link_msg m;
    struct conn *k;
    uint32_t key;
    char err[COMM_TEXT];

    if (len < sizeof(m))
        return;
    memcpy(&m, msg, sizeof(m));
    /* A rank that has failed tells every rank that sends it a request. */
    ctl_link(c, rank);
    if (c->ctl.peer[rank].phase < PHASE_READY)
        c->ctl.peer[rank].phase = PHASE_READY;
    if (m.have && c->ctl.peer[rank].seen < PHASE_READY)
        c->ctl.peer[rank].seen = PHASE_READY;
    if (c->state == COMM_FAILED || c->closing) {
        ctl_tell(c);
        return;
    }
    key = rte_be_to_cpu_32(m.key);
    k = conn_find(c, rank, key);
    if (!k)
        k = conn_add(c, rank, key, err);
    if (!k) {
        comm_fail(c, "%s", err);
        return;
    }
    if (!k->connected && end_connect(c, k, &m))
        return;
    if (m.have && !k->open) {
        k->open = true;
        conn_answered(c, k);
        request_next(c);
        comm_event(c, COMM_EV_CONN_MADE, k->peer, k->chan);
        if (k->tx_lane != LANE_NONE)
            exec_wake(c, k->tx_lane);
        comm_check_ready(c);
    }
    if (m.want && !send_link(c, k, !k->open))
        due_enqueue(c, k); /* many requests at once */
    ctl_pump(c);
}

void link_pump(struct comm *c)
{
    struct links *l = &c->ctl.links;

    while (l->due) {
        if (l->due->due && !send_link(c, l->due, !l->due->open)) {
            c->ctl.due = true;
            return;
        }
        due_dequeue(l);
    }
}

void link_tick(struct comm *c)
{
    if (c->state == COMM_FAILED || c->closing)
        return;
    for (unsigned i = 0; i < c->n_conns; i++) {
        struct conn *k = c->conn[i];

        if (k->open || conn_is_old(c, k) || (!k->connected && k->index >= c->ctl.links.next))
            continue;
        if (!k->since_ns)
            k->since_ns = c->now_ns;
        if (c->now_ns - k->since_ns > PEER_NS) {
            comm_fail(c, "rank %u (%s): does not make a connection", k->peer,
                      comm_host(c, k->peer));
            return;
        }
        due_enqueue(c, k);
    }
}

void conn_stop(struct comm *c)
{
    for (unsigned i = 0; i < c->n_conns; i++)
        qp_stop(c->conn[i]->qp);
}

void conn_destroy(struct comm *c)
{
    while (c->n_conns)
        end_free(c, c->conn[--c->n_conns]);
    free(c->conn);
    c->conn = NULL;
}
