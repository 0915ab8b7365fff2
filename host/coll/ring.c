/*
 * Messages between neighbours of the ring: an RC connection to the right and one from the left;
 * with two ranks both lead to the same one.
 *
 * A message is sent only when its receive is known to be posted, so that no RNR NAK occurs. The
 * receiver posts in the order of the schedule and writes, by an inline RDMA WRITE, how many it has
 * posted since the beginning into a word at the sender. That costs a frame for every eight
 * messages, and no time: credits are far ahead.
 *
 * They are ahead at the start of an operation too. The first SCHED_AHEAD messages of every
 * operation go to scratch, so their receives can be posted before it is known what the operation
 * will be. Each one posts them for its successor before it gives the credit for its own last
 * message; the sender counts on them without being told. (An operation of at most SCHED_AHEAD
 * messages gives no credits. There the sender may count on them because it has finished only after
 * everybody sent something, and a rank posts all receives of such an operation before it sends.) So
 * an operation begins with data, and ends with nothing under way.
 *
 * The rejected design: a receive with data behind each credit (SEND both ways) needs receives, and
 * credits, for the credits.
 */
#include "host/coll/comm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CREDIT_EVERY 8 /* receives: a frame for each would be a waste */
#define SIGNAL_EVERY 8 /* sends; one completion stands for all before it */

#define SCRATCH_BYTES ((size_t)SCHED_SLOTS * SCHED_SLICE_MAX)
#define WORD_ALIGN    4096u /* the credit word begins a page */
_Static_assert(SCRATCH_BYTES % WORD_ALIGN == 0, "the credit word is behind the scratch");

/* An operation of so few messages is posted, with those ahead of its successor, in one go. */
_Static_assert(2 * SCHED_AHEAD(3) <= RING_DEPTH && 2 * SCHED_AHEAD(3) <= SCHED_SLOTS, "see above");

static unsigned left_rank(const struct comm *c)
{
    return (c->cfg.rank + c->cfg.nranks - 1) % c->cfg.nranks;
}

static unsigned right_rank(const struct comm *c)
{
    return (c->cfg.rank + 1) % c->cfg.nranks;
}

uint32_t *ring_credit_word(const struct comm *c)
{
    return (uint32_t *)(void *)(c->ring.mem + SCRATCH_BYTES);
}

const uint8_t *ring_slot(const struct comm *c, uint64_t slot)
{
    return c->ring.mem + (c->ring.scratch_base + slot) % SCHED_SLOTS * SCHED_SLICE_MAX;
}

/* ---- receiving ---- */

static int post_recv(struct comm *c, const void *to, uint64_t len, uint32_t lkey)
{
    struct ring *g = &c->ring;
    struct ibv_sge sge = {.addr = (uintptr_t)to, .length = (uint32_t)len, .lkey = lkey};
    struct ibv_recv_wr wr =
                           {
                               .wr_id = WR_ID(WR_RING_RECV, g->rx_posted),
                               .sg_list = &sge,
                               .num_sge = len != 0,
                           },
                       *bad;

    if (ibv_post_recv(g->left, &wr, &bad)) {
        comm_fail(c, "cannot post a receive from rank %u (%s)", left_rank(c),
                  comm_host(c, left_rank(c)));
        return -EIO;
    }
    g->rx_posted++;
    return 0;
}

/*
 * A scratch receive takes a whole slot, whatever the message: the ones ahead are posted before its
 * length is known, and a neighbour that disagrees is then found out by its tag and not by a broken
 * connection.
 */
static int post_scratch(struct comm *c, uint64_t slot)
{
    return post_recv(c, ring_slot(c, slot), SCHED_SLICE_MAX, c->ring.mr->lkey);
}

static unsigned post_receives(struct comm *c, struct coll_req *r)
{
    struct ring *g = &c->ring;
    uint64_t n = r->s.n[LANE_RECV], end = n + SCHED_AHEAD(c->cfg.nranks);
    unsigned did = 0;

    while (r->begun[LANE_RECV] < end && g->rx_posted - g->rx_seen < RING_DEPTH) {
        uint64_t i = r->begun[LANE_RECV];
        struct step st;
        int rc;

        if (i < n) {
            sched_step(&r->s, LANE_RECV, i, &st);
        } else {
            /* The successor's first ones: they go on where this operation's scratch ends. */
            uint64_t slot = r->s.scratch_steps + i - n;

            st = (struct step){.buf = BUF_SCRATCH, .slot = slot};
            if (slot >= SCHED_SLOTS)
                st.need[LANE_CPU] = slot - SCHED_SLOTS + 1;
        }
        if (!sched_ready(&st, r->done))
            break;
        if (st.buf == BUF_SCRATCH)
            rc = post_scratch(c, st.slot);
        else
            rc = post_recv(c, (uint8_t *)r->args.recv + st.off, st.len, r->out_lkey);
        if (rc)
            break;
        r->begun[LANE_RECV]++;
        did++;
    }
    return did;
}

static unsigned publish(struct comm *c, struct coll_req *r)
{
    struct ring *g = &c->ring;
    uint64_t n = r->s.n[LANE_RECV], begun = r->begun[LANE_RECV];
    bool all = begun == n + SCHED_AHEAD(c->cfg.nranks);
    uint64_t value = g->rx_base + (all ? n : begun < n ? begun : n - 1);
    uint32_t word = rte_cpu_to_le_32((uint32_t)value);
    struct ibv_sge sge = {.addr = (uintptr_t)&word, .length = sizeof(word)};
    struct ibv_send_wr wr =
                           {
                               .wr_id = WR_ID(WR_RING_CREDIT, g->credits_posted),
                               .sg_list = &sge,
                               .num_sge = 1,
                               .opcode = IBV_WR_RDMA_WRITE,
                               .send_flags = IBV_SEND_INLINE,
                               .wr.rdma = {.remote_addr = g->remote_word, .rkey = g->remote_key},
                           },
                       *bad;

    if (value <= g->published || (!all && g->published - g->rx_seen > RING_DEPTH - CREDIT_EVERY) ||
        g->credits_posted - g->credits_done >= RING_CREDIT_WRS)
        return 0;
    if (g->credits_posted % SIGNAL_EVERY == SIGNAL_EVERY - 1)
        wr.send_flags |= IBV_SEND_SIGNALED;
    if (ibv_post_send(g->left, &wr, &bad)) {
        comm_fail(c, "cannot post a credit to rank %u (%s)", left_rank(c),
                  comm_host(c, left_rank(c)));
        return 0;
    }
    g->credits_posted++;
    g->published = value;
    return 1;
}

/* The neighbour runs another operation than we do: says how. */
static void disagree(struct comm *c, const struct coll_req *r, uint32_t tag)
{
    unsigned rank = left_rank(c), type = tag >> 20 & 15, op = tag >> 16 & 15;
    const char *host = comm_host(c, rank);

    if (type != r->args.type && type < DT_COUNT)
        comm_fail(c, "rank %u (%s) disagrees on the type: %s, and %s at rank %u", rank, host,
                  dtype_name(type), dtype_name(r->args.type), c->cfg.rank);
    else if (op != r->args.op && op < OP_COUNT)
        comm_fail(c, "rank %u (%s) disagrees on the reduction: %s, and %s at rank %u", rank, host,
                  redop_name(op), redop_name(r->args.op), c->cfg.rank);
    else if ((tag ^ r->tag) >> 24)
        comm_fail(c, "rank %u (%s) disagrees on which operation runs: number %u, and %u at rank %u",
                  rank, host, tag >> 24, r->tag >> 24, c->cfg.rank);
    else
        comm_fail(c, "rank %u (%s) disagrees on the size: not %zu elements as at rank %u", rank,
                  host, r->args.count, c->cfg.rank);
}

static unsigned take_received(struct comm *c, struct coll_req *r)
{
    struct ring *g = &c->ring;
    unsigned did = 0;

    while (g->rx_seen < g->rx_done && r->done[LANE_RECV] < r->s.n[LANE_RECV]) {
        uint64_t at = g->rx_seen % RING_DEPTH;
        struct step st;

        sched_step(&r->s, LANE_RECV, r->done[LANE_RECV], &st);
        if (g->got[at].imm != r->tag || g->got[at].len != st.len) {
            disagree(c, r, g->got[at].imm);
            return did;
        }
        g->rx_seen++;
        r->done[LANE_RECV]++;
        did++;
    }
    return did;
}

/* ---- sending ---- */

/* Messages that may have been sent in all. */
static uint64_t credit_limit(const struct comm *c)
{
    const struct ring *g = &c->ring;
    uint32_t word = rte_le_to_cpu_32(__atomic_load_n(ring_credit_word(c), __ATOMIC_ACQUIRE));
    int32_t ahead = (int32_t)(word - (uint32_t)g->tx_posted);
    uint64_t told = ahead > 0 ? g->tx_posted + (uint32_t)ahead : g->tx_posted;
    uint64_t known = g->tx_base + SCHED_AHEAD(c->cfg.nranks);

    return told > known ? told : known;
}

static int post_send(struct comm *c, struct coll_req *r, const struct step *st, bool signaled)
{
    struct ring *g = &c->ring;
    const uint8_t *from = st->buf == BUF_IN ? r->args.send : r->args.recv;
    struct ibv_sge sge = {
        .addr = (uintptr_t)(from + st->off),
        .length = (uint32_t)st->len,
        .lkey = st->buf == BUF_IN ? r->in_lkey : r->out_lkey,
    };
    struct ibv_send_wr wr =
                           {
                               .wr_id = WR_ID(WR_RING_SEND, g->tx_posted),
                               .sg_list = &sge,
                               .num_sge = st->len != 0,
                               .opcode = IBV_WR_SEND_WITH_IMM,
                               .send_flags = signaled ? IBV_SEND_SIGNALED : 0,
                               .imm_data = htonl(r->tag),
                           },
                       *bad;

    if (ibv_post_send(g->right, &wr, &bad)) {
        comm_fail(c, "cannot post a send to rank %u (%s)", right_rank(c),
                  comm_host(c, right_rank(c)));
        return -EIO;
    }
    g->tx_posted++;
    return 0;
}

static unsigned post_sends(struct comm *c, struct coll_req *r)
{
    struct ring *g = &c->ring;
    uint64_t n = r->s.n[LANE_SEND], limit = credit_limit(c);
    unsigned did = 0;

    while (r->begun[LANE_SEND] < n && g->tx_posted < limit &&
           g->tx_posted - g->tx_done < RING_SEND_WRS) {
        uint64_t i = r->begun[LANE_SEND];
        struct step st;

        sched_step(&r->s, LANE_SEND, i, &st);
        if (!sched_ready(&st, r->done) ||
            post_send(c, r, &st, i == n - 1 || i % SIGNAL_EVERY == SIGNAL_EVERY - 1))
            break;
        r->begun[LANE_SEND]++;
        did++;
    }
    return did;
}

/* ---- an operation ---- */

void ring_begin(struct comm *c, struct coll_req *r)
{
    struct ring *g = &c->ring;

    g->rx_base = g->rx_seen;
    g->tx_base = g->tx_posted;
    g->scratch_base = g->scratch_next;
    g->scratch_next += r->s.scratch_steps;
    r->begun[LANE_RECV] = SCHED_AHEAD(c->cfg.nranks);
    g->published = g->rx_base + r->begun[LANE_RECV];
}

unsigned ring_run(struct comm *c, struct coll_req *r)
{
    unsigned did = take_received(c, r);

    if (c->state != COMM_FAILED)
        did += post_receives(c, r);
    if (c->state != COMM_FAILED)
        did += publish(c, r);
    if (c->state != COMM_FAILED)
        did += post_sends(c, r);
    r->done[LANE_SEND] = c->ring.tx_done - c->ring.tx_base;
    return did;
}

bool ring_ended(const struct comm *c, const struct coll_req *r)
{
    return r->begun[LANE_RECV] == r->s.n[LANE_RECV] + SCHED_AHEAD(c->cfg.nranks) &&
           c->ring.published >= c->ring.rx_base + r->s.n[LANE_RECV];
}

void ring_complete(struct comm *c, const struct ibv_wc *wc)
{
    struct ring *g = &c->ring;
    uint64_t i = WR_COUNT(wc->wr_id);

    if (c->state == COMM_FAILED || c->closing)
        return;
    if (wc->status != IBV_WC_SUCCESS) {
        unsigned rank = wc->qp_num == g->right->qp_num ? right_rank(c) : left_rank(c);

        comm_fail(c, "rank %u (%s): %s", rank, comm_host(c, rank), ibv_wc_status_str(wc->status));
        return;
    }
    switch (WR_KIND(wc->wr_id)) {
    case WR_RING_RECV:
        g->got[i % RING_DEPTH].imm = wc->wc_flags & IBV_WC_WITH_IMM ? ntohl(wc->imm_data) : 0;
        g->got[i % RING_DEPTH].len = wc->byte_len;
        g->rx_done = i + 1;
        break;
    case WR_RING_SEND:
        g->tx_done = i + 1;
        break;
    default:
        g->credits_done = i + 1;
        break;
    }
}

/* ---- life ---- */

int ring_create(struct comm *c, char *err)
{
    struct ring *g = &c->ring;
    struct edge_cap right = {RING_SEND_WRS, 1, 1, 1, 0};
    struct edge_cap left = {RING_CREDIT_WRS, RING_DEPTH, 1, 1, sizeof(uint32_t)};

    g->psn_right = comm_psn(c, 0);
    g->psn_left = comm_psn(c, 1);
    if (posix_memalign((void **)&g->mem, WORD_ALIGN, SCRATCH_BYTES + WORD_ALIGN))
        g->mem = NULL;
    if (g->mem)
        memset(g->mem, 0, SCRATCH_BYTES + WORD_ALIGN);
    if (g->mem)
        g->mr = ibv_reg_mr(c->port.pd, g->mem, SCRATCH_BYTES, IBV_ACCESS_LOCAL_WRITE);
    /* The neighbour may write the credit word and nothing else. Its address on the wire is 0, so
     * that frames do not depend on where this process has its memory; a kernel wants the same
     * place in a page for both addresses. */
    if (g->mr)
        g->word_mr = ibv_reg_mr_iova(c->port.pd, ring_credit_word(c), sizeof(uint64_t), 0,
                                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (g->word_mr)
        g->right = rc_create(&c->port, &right, true);
    if (g->right)
        g->left = rc_create(&c->port, &left, false);
    if (!g->left) {
        snprintf(err, COMM_TEXT, "queue pairs of the ring: %s", strerror(errno));
        return errno ? -errno : -ENOMEM;
    }
    return 0;
}

int ring_connect(struct comm *c, const struct remote *left, const struct remote *right, char *err)
{
    struct ring *g = &c->ring;
    int rc = rc_connect(&c->port, g->left, left, g->psn_left);
    unsigned at = left_rank(c);

    for (unsigned i = 0; !rc && i < SCHED_AHEAD(c->cfg.nranks); i++)
        rc = post_scratch(c, i);
    if (!rc) {
        rc = rc_connect(&c->port, g->right, right, g->psn_right);
        at = right_rank(c);
    }
    if (rc)
        snprintf(err, COMM_TEXT, "cannot connect to rank %u (%s): %s", at, comm_host(c, at),
                 strerror(-rc));
    return rc;
}

void ring_stop(struct comm *c)
{
    qp_stop(c->ring.right);
    qp_stop(c->ring.left);
}

void ring_destroy(struct comm *c)
{
    if (c->ring.right)
        ibv_destroy_qp(c->ring.right);
    if (c->ring.left)
        ibv_destroy_qp(c->ring.left);
    if (c->ring.mr)
        ibv_dereg_mr(c->ring.mr);
    if (c->ring.word_mr)
        ibv_dereg_mr(c->ring.word_mr);
    free(c->ring.mem);
}
