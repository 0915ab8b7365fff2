/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/coll/transport/conn.h"

#include <arpa/inet.h>
#include <string.h>

_Static_assert(2 * CONN_CREDIT_EVERY <= CONN_AHEAD && CONN_AHEAD <= SCHED_SLOTS / 2,
               "an operation gets half of the slots at least");

static struct lane_run *run_of(struct coll_req *r, unsigned lane)
{
    return &r->lane[lane];
}

/* ---- slots ---- */

static bool slot_left(const struct conn *k)
{
    return k->slot_next - k->slot_free < k->depth;
}

static uint8_t *slot_mem(const struct conn *k, unsigned slot)
{
    return k->mem + (size_t)slot * SCHED_SLICE_MAX;
}

/* Slots are read in order, so it is mostly the first one. */
static unsigned slot_of_msg(const struct conn *k, uint64_t msg)
{
    for (uint64_t s = k->slot_free; s < k->slot_next; s++)
        if (k->slot[s % k->depth].at && k->slot[s % k->depth].msg == msg)
            return (unsigned)(s % k->depth);
    return SLOT_NONE;
}

uint8_t *conn_slot(const struct conn *k, uint64_t msg)
{
    unsigned slot = slot_of_msg(k, k->rx_base + msg);

    T_ASSERT_HOT(slot != SLOT_NONE, "a step reads a message that no slot holds");
    return slot == SLOT_NONE ? NULL : k->slot[slot].at;
}

static void slot_put(struct conn *k, unsigned slot)
{
    T_ASSERT_HOT(k->slot[slot].at, "a slot is given back twice");
    k->slot[slot].at = NULL;
    while (k->slot_free < k->slot_next && !k->slot[k->slot_free % k->depth].at)
        k->slot_free++;
    T_ASSERT_HOT(k->slot_next - k->slot_free <= k->depth, "more slots are in use than there are");
}

void conn_release(struct comm *c, struct conn *k, uint64_t msg)
{
    unsigned slot = slot_of_msg(k, k->rx_base + msg);

    if (slot == SLOT_NONE)
        return;
    slot_put(k, slot);
    exec_wake(c, k->rx_lane);
}

/* ---- receiving ---- */

static int post_recv(struct comm *c, struct conn *k, const void *to, uint64_t len, uint32_t lkey,
                     unsigned slot)
{
    struct ibv_sge sge = {.addr = (uintptr_t)to, .length = (uint32_t)len, .lkey = lkey};
    struct ibv_recv_wr wr =
                           {
                               .wr_id = WR_ID(WR_CONN_RECV, k->index, k->rx_posted),
                               .sg_list = &sge,
                               .num_sge = len != 0,
                           },
                       *bad;

    if (ibv_post_recv(k->qp, &wr, &bad)) {
        comm_fail(c, "cannot post a receive from rank %u (%s)", k->peer, comm_host(c, k->peer));
        return -1;
    }
    T_ASSERT_HOT(k->rx_seen <= k->rx_done && k->rx_done <= k->rx_posted,
                 "messages are taken before they have come, or come without a receive");
    T_ASSERT_HOT(k->rx_posted - k->rx_seen < k->depth, "more receives are posted than slots are");
    k->got[k->rx_posted % k->depth].slot = (uint8_t)slot;
    k->rx_posted++;
    return 0;
}

/* Receives into `at`, which counts as the next slot. */
static int post_slot_at(struct comm *c, struct conn *k, uint8_t *at, uint64_t len, uint32_t lkey)
{
    unsigned slot = (unsigned)(k->slot_next % k->depth);

    T_ASSERT_HOT(slot_left(k) && !k->slot[slot].at, "a slot in use is posted again");
    if (post_recv(c, k, at, len, lkey, slot))
        return -1;
    k->slot[slot].at = at;
    k->slot[slot].msg = k->rx_posted - 1;
    k->slot_next++;
    return 0;
}

static int post_slot(struct comm *c, struct conn *k)
{
    return post_slot_at(c, k, slot_mem(k, (unsigned)(k->slot_next % k->depth)), SCHED_SLICE_MAX,
                        k->mr->lkey);
}

static int post_step(struct comm *c, struct conn *k, struct coll_req *r, const struct step *st)
{
    if (st->dst.buf == BUF_SLOT && st->a.buf != BUF_NONE)
        return post_slot_at(c, k, exec_addr(r, &st->a), st->len, exec_lkey(r, &st->a, k->port));
    if (st->dst.buf == BUF_SLOT)
        return post_slot(c, k);
    return post_recv(c, k, exec_addr(r, &st->dst), st->len, exec_lkey(r, &st->dst, k->port),
                     SLOT_NONE);
}

/* The operation's receives in order, then those ahead of the next one. */
static unsigned post_receives(struct comm *c, struct conn *k)
{
    struct coll_req *r = k->rx_lane == LANE_NONE ? NULL : c->exec.head;
    const struct lane *l = r ? &r->s.lane[k->rx_lane] : NULL;
    uint64_t end = (l ? k->rx_base + l->n : k->rx_seen) + CONN_AHEAD;
    unsigned did = 0;

    while (k->rx_posted < end && k->rx_posted - k->rx_seen < k->depth) {
        uint64_t *begun = r ? &run_of(r, k->rx_lane)->begun : NULL;
        bool own = r && *begun < l->n;
        const struct step *st = own ? lane_step(l, *begun) : NULL;

        if ((!own || st->dst.buf == BUF_SLOT) && !slot_left(k))
            break;
        if (own && !exec_may_start(r, k->rx_lane, WAIT_START, st))
            break;
        if (own ? post_step(c, k, r, st) : post_slot(c, k))
            break;
        if (own)
            ++*begun;
        did++;
    }
    return did;
}

/* Posts a work request. One in CONN_SIGNAL_EVERY is signaled, and those that a step waits for. */
static int post_send(struct comm *c, struct conn *k, struct ibv_send_wr *wr, bool signaled)
{
    struct ibv_send_wr *bad;

    T_ASSERT_HOT(k->connected, "a work request is posted before the connection is made");
    T_ASSERT_HOT(k->sq_posted - k->sq_done < CONN_SQ(k), "the send queue is overrun");
    T_ASSERT_HOT(k->tx_done <= k->tx_posted, "more messages are acknowledged than were sent");
    wr->wr_id = WR_ID(WR_CONN_SEND, k->index, k->sq_posted);
    if (signaled || k->sq_posted % CONN_SIGNAL_EVERY == CONN_SIGNAL_EVERY - 1)
        wr->send_flags |= IBV_SEND_SIGNALED;
    if (ibv_post_send(k->qp, wr, &bad)) {
        comm_fail(c, "cannot post to rank %u (%s)", k->peer, comm_host(c, k->peer));
        return -1;
    }
    k->tx_at[k->sq_posted % CONN_SQ(k)] = k->tx_posted + (wr->opcode == IBV_WR_SEND_WITH_IMM);
    k->sq_posted++;
    return 0;
}

static int write_word(struct comm *c, struct conn *k, bool signaled)
{
    uint32_t word = rte_cpu_to_le_32((uint32_t)k->rx_posted);
    struct ibv_sge sge = {.addr = (uintptr_t)&word, .length = sizeof(word)};
    struct ibv_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_RDMA_WRITE,
        .send_flags = IBV_SEND_INLINE,
        .wr.rdma = {.remote_addr = 0, .rkey = k->remote_key},
    };

    if (post_send(c, k, &wr, signaled))
        return -1;
    k->published = k->rx_posted;
    return 0;
}

/* True if only a later operation needs the credits: the peer knows of all receives of the running
 * one, which has more messages to send before them. */
static bool is_for_later(const struct comm *c, const struct conn *k)
{
    const struct coll_req *r = c->exec.head;

    if (!r || k->rx_lane == LANE_NONE || k->tx_lane == LANE_NONE)
        return false;
    return k->published >= k->rx_base + r->s.lane[k->rx_lane].n &&
           r->lane[k->tx_lane].begun < r->s.lane[k->tx_lane].n;
}

static unsigned credit_publish(struct comm *c, struct conn *k)
{
    uint64_t fresh = k->rx_posted - k->published;

    T_ASSERT_HOT(k->published <= k->rx_posted,
                 "the credit word counts receives that are not posted");
    return k->open && fresh && !is_for_later(c, k) &&
           (fresh >= CONN_CREDIT_EVERY || k->published - k->rx_seen < CONN_CREDIT_EVERY) &&
           k->sq_posted - k->sq_done < CONN_SQ(k) && !write_word(c, k, false);
}

/* Probes the peer by writing the credit word once more. A work request in flight is a probe,
 * too. */
void conn_probe(struct comm *c)
{
    for (unsigned i = 0; i < c->n_conns && c->state != COMM_FAILED; i++) {
        struct conn *k = c->conn[i];

        if (!k->open || k->probe > k->sq_done || k->sq_posted - k->sq_done >= CONN_SQ(k) ||
            write_word(c, k, true))
            continue;
        k->probe = k->sq_posted;
    }
}

void conn_top_up(struct comm *c, struct conn *k)
{
    post_receives(c, k);
    if (c->state != COMM_FAILED)
        credit_publish(c, k);
}

void conn_check_strays(struct comm *c, struct conn *k, uint32_t seq)
{
    uint32_t imm = k->got[k->rx_seen % k->depth].imm;

    if (c->failover.state == FAILOVER_ASKING ||
        conn_is_old(c, k)) /* an operation that is over here may start over */
        return;
    if (k->rx_seen < k->rx_done && (int8_t)((imm >> 24) - (seq & 0xff)) <= 0)
        op_disagree(c, k->peer, imm);
}

/* Takes the oldest message as the lane's next one. False: it cannot be taken yet, or is wrong. */
static bool oldest_take(struct comm *c, struct conn *k, struct coll_req *r, unsigned lane)
{
    uint64_t at = k->rx_seen % k->depth;
    const struct step *st = lane_step(&r->s.lane[lane], r->lane[lane].done);
    unsigned slot = k->got[at].slot;

    if (k->got[at].imm != r->tag) {
        op_disagree(c, k->peer, k->got[at].imm);
        return false;
    }
    if (k->got[at].len != st->len) {
        comm_fail(
            c, "rank %u (%s) disagrees on the size: it sent %u bytes, %llu are expected at rank %u",
            k->peer, comm_host(c, k->peer), k->got[at].len, (unsigned long long)st->len,
            c->cfg.rank);
        return false;
    }
    if (slot != SLOT_NONE && st->dst.buf != BUF_SLOT) {
        if (!exec_may_start(r, lane, WAIT_TAKE, st))
            return false;
        if (st->len && !comm_unbacked(c))
            memcpy(exec_addr(r, &st->dst), k->slot[slot].at, st->len);
        slot_put(k, slot);
    }
    k->rx_seen++;
    exec_done(c, r, lane, r->lane[lane].done + 1);
    return true;
}

static unsigned run_recv(struct comm *c, struct coll_req *r, unsigned lane)
{
    struct conn *k = run_of(r, lane)->conn;
    uint64_t n = r->s.lane[lane].n;
    unsigned did = 0;

    while (k->rx_seen < k->rx_done && r->lane[lane].done < n && oldest_take(c, k, r, lane))
        did++;
    if (c->state != COMM_FAILED && r->lane[lane].done == n)
        conn_check_strays(c, k, r->id.seq);
    if (c->state != COMM_FAILED && k->qp)
        did += post_receives(c, k);
    if (c->state != COMM_FAILED)
        did += credit_publish(c, k);
    return did;
}

/* ---- sending ---- */

static bool may_queue(const struct conn *k)
{
    return k->sq_posted - k->sq_done < CONN_IN_FLIGHT(k->depth);
}

/* Messages, since they connected, that credits allow to send. */
static uint64_t credit_limit(const struct conn *k)
{
    uint32_t word = rte_le_to_cpu_32(__atomic_load_n(k->word, __ATOMIC_ACQUIRE));
    int32_t ahead = (int32_t)(word - (uint32_t)k->tx_posted);

    return k->tx_posted + (ahead > 0 ? (uint32_t)ahead : 0);
}

static int send_step(struct comm *c, struct conn *k, struct coll_req *r, const struct step *st,
                     bool signaled)
{
    struct ibv_sge sge = {.length = (uint32_t)st->len};
    struct ibv_send_wr wr = {
        .sg_list = &sge,
        .num_sge = st->len != 0,
        .opcode = IBV_WR_SEND_WITH_IMM,
        .imm_data = htonl(r->tag),
    };

    if (st->len) {
        sge.addr = (uintptr_t)exec_addr(r, &st->a);
        sge.lkey = exec_lkey(r, &st->a, k->port);
    }
    if (run_of(r, k->tx_lane)->is_long)
        wr.send_flags = IBV_SEND_SOLICITED; /* tells the receiver's HCA (completion_delay.c) */
    if (post_send(c, k, &wr, signaled))
        return -1;
    k->tx_posted++;
    return 0;
}

static unsigned run_send(struct comm *c, struct coll_req *r, unsigned lane)
{
    struct lane_run *run = run_of(r, lane);
    struct conn *k = run->conn;
    const struct lane *l = &r->s.lane[lane];
    uint64_t limit = k->open ? credit_limit(k) : 0;
    unsigned did = 0;

    if (run->begun < l->n)
        conn_top_up(c, k); /* credits go out before the messages */
    while (k->open && run->begun < l->n && may_queue(k)) {
        const struct step *st = lane_step(l, run->begun);

        if (!exec_may_start(r, lane, WAIT_START, st))
            break;
        if (k->tx_posted >= limit) {
            exec_poll(c, lane);
            break;
        }
        exec_posted(c, r, lane, run->begun); /* first: nobody may see it arrive before */
        if (send_step(c, k, r, st, st->awaited || run->begun == l->n - 1))
            break;
        run->begun++;
        did++;
    }
    if (did && run->begun == l->n)
        conn_top_up(c, k); /* and those of a later operation behind them */
    return did;
}

unsigned conn_run(struct comm *c, struct coll_req *r, unsigned lane)
{
    return r->s.lane[lane].kind == LANE_SEND ? run_send(c, r, lane) : run_recv(c, r, lane);
}

/* ---- an operation ---- */

void conn_begin(struct comm *c, struct coll_req *r, unsigned lane)
{
    struct conn *k = run_of(r, lane)->conn;
    uint64_t ahead = k->rx_posted - k->rx_seen, n = r->s.lane[lane].n;

    T_ASSERT((r->s.lane[lane].kind == LANE_SEND ? k->tx_lane : k->rx_lane) == LANE_NONE,
             "a connection serves two lanes of one kind");
    if (r->s.lane[lane].kind == LANE_SEND) {
        k->tx_lane = lane;
        k->tx_base = k->tx_posted;
        run_of(r, lane)->is_long = topo_is_long(&c->topo, &r->s, c->cfg.rank, &r->s.lane[lane]);
        return;
    }
    k->rx_lane = lane;
    k->rx_base = k->rx_seen;
    run_of(r, lane)->begun = ahead < n ? ahead : n;
}

void conn_end(struct comm *c, struct coll_req *r, unsigned lane)
{
    struct conn *k = run_of(r, lane)->conn;

    if (r->s.lane[lane].kind == LANE_SEND) {
        k->tx_lane = LANE_NONE;
        return;
    }
    for (uint64_t s = k->slot_free; s < k->slot_next; s++)
        if (k->slot[s % k->depth].at && k->slot[s % k->depth].msg < k->rx_seen)
            slot_put(k, (unsigned)(s % k->depth));
    k->rx_lane = LANE_NONE;
    conn_top_up(c, k);
}

void conn_complete(struct comm *c, const struct ibv_wc *wc)
{
    T_ASSERT_HOT(WR_INDEX(wc->wr_id) < c->n_conns, "a completion is of no connection");
    struct conn *k = c->conn[WR_INDEX(wc->wr_id)];
    uint64_t i = WR_COUNT(wc->wr_id);
    struct coll_req *r = c->exec.head;

    if (c->state == COMM_FAILED || c->closing || conn_is_old(c, k))
        return;
    if (wc->status != IBV_WC_SUCCESS && c->failover.state == FAILOVER_ASKING) {
        c->failover.broken = k; /* the peer may have given it up after the verdict */
        comm_event(c, COMM_EV_CONN_LOST, k->peer, wc->status);
    } else if (wc->status != IBV_WC_SUCCESS) {
        comm_event(c, COMM_EV_CONN_LOST, k->peer, wc->status);
        comm_fail(c, "rank %u (%s): %s", k->peer, comm_host(c, k->peer),
                  ibv_wc_status_str(wc->status));
    } else if (WR_KIND(wc->wr_id) == WR_CONN_RECV) {
        k->got[i % k->depth].imm = wc->wc_flags & IBV_WC_WITH_IMM ? ntohl(wc->imm_data) : 0;
        k->got[i % k->depth].len = wc->byte_len;
        T_ASSERT_HOT(i == k->rx_done, "receives of a connection complete out of order");
        k->rx_done = i + 1;
        if (k->rx_lane != LANE_NONE)
            exec_wake(c, k->rx_lane);
        else
            conn_check_strays(c, k, exec_seq(c));
    } else {
        T_ASSERT_HOT(i >= k->sq_done && i < k->sq_posted, "a send completes that was not posted");
        k->sq_done = i + 1;
        k->tx_done = k->tx_at[i % CONN_SQ(k)];
        if (k->tx_lane != LANE_NONE) {
            exec_done(c, r, k->tx_lane, k->tx_done - k->tx_base);
            exec_wake(c, k->tx_lane);
        }
        credit_publish(c, k);
    }
}
