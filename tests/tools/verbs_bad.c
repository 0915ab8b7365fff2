/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two verbs programs, one of which makes requests that it has no right to:
 *
 *     verbs_bad victim PORT      exposes a region between guard bytes
 *     verbs_bad attacker PORT    tries each row of the table
 *
 * For every row both sides check their completions and asynchronous events, the victim checks every
 * byte that it did not expose, and the attacker that it received no such byte. Then a new pair of
 * queue pairs exchanges a message each way, so both sides still work. Prints a line per row.
 */
#include "tests/tools/verbs_oob.h"

#define GUARD  4096u
#define REGION 4096u
#define FULL   (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define NONE   (-1) /* no completion, or no receive posted */

enum trick { PLAIN, DEREG, REREG, WINDOW, GONE_QP, BAD_RECV_KEY, SRQ, BAD_QKEY };

struct row {
    const char *name;
    enum ibv_qp_type type;
    enum ibv_wr_opcode op;
    unsigned mr_access, qp_access; /* the victim's */
    uint32_t rkey_xor, lkey_xor;
    uint64_t addr; /* of the request, from the start of the region */
    uint32_t len;
    int recv; /* bytes of the victim's receive */
    int wc, victim_wc;
    uint32_t events; /* of the victim, a bit each */
    enum trick trick;
};

#define EV(e)   (1u << IBV_EVENT_##e)
#define ACCESS  EV(QP_ACCESS_ERR)
#define DENIED  IBV_WC_REM_ACCESS_ERR, NONE, ACCESS
#define INVALID IBV_WC_REM_INV_REQ_ERR, NONE, EV(QP_REQ_ERR)
#define LOST    IBV_WC_SUCCESS, NONE, 0
#define W       IBV_WR_RDMA_WRITE
#define R       IBV_WR_RDMA_READ
#define ADD     IBV_WR_ATOMIC_FETCH_AND_ADD
#define CAS     IBV_WR_ATOMIC_CMP_AND_SWP
#define S       IBV_WR_SEND
#define RC      IBV_QPT_RC
#define UC      IBV_QPT_UC
#define UD      IBV_QPT_UD

static const struct row rows[] = {
    {"WRITE, wrong rkey", RC, W, FULL, FULL, 0x100, 0, 0, 100, NONE, DENIED, PLAIN},
    {"WRITE, old tag of the rkey", RC, W, FULL, FULL, 1, 0, 0, 100, NONE, DENIED, PLAIN},
    {"READ, wrong rkey", RC, R, FULL, FULL, 0x100, 0, 0, 100, NONE, DENIED, PLAIN},
    {"FETCH_ADD, wrong rkey", RC, ADD, FULL, FULL, 0x100, 0, 0, 8, NONE, DENIED, PLAIN},
    {"WRITE, a byte before the region", RC, W, FULL, FULL, 0, 0, -1ull, 1, NONE, DENIED, PLAIN},
    {"WRITE, into the region from before", RC, W, FULL, FULL, 0, 0, -1ull, 2, NONE, DENIED, PLAIN},
    {"WRITE, a byte behind the region", RC, W, FULL, FULL, 0, 0, REGION, 1, NONE, DENIED, PLAIN},
    {"WRITE, out of the region", RC, W, FULL, FULL, 0, 0, REGION - 1, 2, NONE, DENIED, PLAIN},
    {"WRITE, a byte too many", RC, W, FULL, FULL, 0, 0, 0, REGION + 1, NONE, DENIED, PLAIN},
    {"READ, a byte before the region", RC, R, FULL, FULL, 0, 0, -1ull, 1, NONE, DENIED, PLAIN},
    {"READ, a byte behind the region", RC, R, FULL, FULL, 0, 0, REGION, 1, NONE, DENIED, PLAIN},
    {"READ, a byte too many", RC, R, FULL, FULL, 0, 0, 0, REGION + 1, NONE, DENIED, PLAIN},
    {"COMPARE_SWAP, behind the region", RC, CAS, FULL, FULL, 0, 0, REGION, 8, NONE, DENIED, PLAIN},
    {"WRITE, far away", RC, W, FULL, FULL, 0, 0, 1ull << 63, 100, NONE, DENIED, PLAIN},
    {"WRITE without the region's right", RC, W, IBV_ACCESS_REMOTE_READ, FULL, 0, 0, 0, 100, NONE,
     DENIED, PLAIN},
    {"READ without the region's right", RC, R, IBV_ACCESS_REMOTE_WRITE, FULL, 0, 0, 0, 100, NONE,
     DENIED, PLAIN},
    {"FETCH_ADD without the region's right", RC, ADD, IBV_ACCESS_REMOTE_WRITE, FULL, 0, 0, 0, 8,
     NONE, DENIED, PLAIN},
    {"WRITE without the queue pair's right", RC, W, FULL, IBV_ACCESS_REMOTE_READ, 0, 0, 0, 100,
     NONE, DENIED, PLAIN},
    {"READ without the queue pair's right", RC, R, FULL, IBV_ACCESS_REMOTE_WRITE, 0, 0, 0, 100,
     NONE, DENIED, PLAIN},
    {"FETCH_ADD without the queue pair's right", RC, ADD, FULL, IBV_ACCESS_REMOTE_WRITE, 0, 0, 0, 8,
     NONE, DENIED, PLAIN},
    {"FETCH_ADD, not aligned", RC, ADD, FULL, FULL, 0, 0, 4, 8, NONE, INVALID, PLAIN},
    {"WRITE after ibv_dereg_mr", RC, W, FULL, FULL, 0, 0, 0, 100, NONE, DENIED, DEREG},
    {"READ after ibv_dereg_mr", RC, R, FULL, FULL, 0, 0, 0, 100, NONE, DENIED, DEREG},
    {"WRITE beyond a smaller ibv_rereg_mr", RC, W, FULL, FULL, 0, 0, 1000, 25, NONE, DENIED, REREG},
    {"READ beyond a smaller ibv_rereg_mr", RC, R, FULL, FULL, 0, 0, 1024, 1, NONE, DENIED, REREG},
    {"WRITE by an invalidated window", RC, W, FULL, FULL, 0, 0, 0, 100, NONE, DENIED, WINDOW},
    {"WRITE, wrong rkey, shared receives", RC, W, FULL, FULL, 0x100, 0, 0, 100, NONE,
     IBV_WC_REM_ACCESS_ERR, NONE, ACCESS | EV(QP_LAST_WQE_REACHED), SRQ},
    {"SEND, wrong lkey", RC, S, FULL, FULL, 0, 0x100, 0, 100, NONE, IBV_WC_LOC_PROT_ERR, NONE, 0,
     PLAIN},
    {"SEND, receive too small", RC, S, FULL, FULL, 0, 0, 0, 101, 100, IBV_WC_REM_INV_REQ_ERR,
     IBV_WC_LOC_LEN_ERR, 0, PLAIN},
    {"SEND, receive with a wrong lkey", RC, S, FULL, FULL, 0, 0, 0, 100, 100, IBV_WC_REM_OP_ERR,
     IBV_WC_LOC_PROT_ERR, 0, BAD_RECV_KEY},
    {"SEND, no receive", RC, S, FULL, FULL, 0, 0, 0, 100, NONE, IBV_WC_RNR_RETRY_EXC_ERR, NONE, 0,
     PLAIN},
    {"WRITE to a destroyed queue pair", RC, W, FULL, FULL, 0, 0, 0, 100, NONE, IBV_WC_RETRY_EXC_ERR,
     NONE, 0, GONE_QP},
    {"UC WRITE, wrong rkey", UC, W, FULL, FULL, 0x100, 0, 0, 100, NONE, LOST, PLAIN},
    {"UC WRITE, a byte too many", UC, W, FULL, FULL, 0, 0, 0, REGION + 1, NONE, LOST, PLAIN},
    {"UC WRITE without the right", UC, W, IBV_ACCESS_REMOTE_READ, FULL, 0, 0, 0, 100, NONE, LOST,
     PLAIN},
    {"UC SEND, receive too small", UC, S, FULL, FULL, 0, 0, 0, 101, 100, LOST, PLAIN},
    {"UC SEND, no receive", UC, S, FULL, FULL, 0, 0, 0, 100, NONE, LOST, PLAIN},
    {"UC SEND, wrong lkey", UC, S, FULL, FULL, 0, 0x100, 0, 100, NONE, IBV_WC_LOC_PROT_ERR, NONE, 0,
     PLAIN},
    {"UD SEND, wrong Q_Key", UD, S, FULL, FULL, 0, 0, 0, 100, 200, LOST, BAD_QKEY},
    {"UD SEND, receive too small", UD, S, FULL, FULL, 0, 0, 0, 100, 139, LOST, PLAIN},
    {"UD SEND, no receive", UD, S, FULL, FULL, 0, 0, 0, 100, NONE, LOST, PLAIN},
    {"UD SEND, wrong lkey", UD, S, FULL, FULL, 0, 0x100, 0, 100, NONE, IBV_WC_LOC_PROT_ERR, NONE, 0,
     PLAIN},
};

/* One side of a row. */
struct end {
    bool victim;
    int oob;
    struct ibv_context *ctx;
    union ibv_gid gid;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_qp *qp;
    uint8_t *mem; /* guard, region, guard */
    struct ibv_mr *mr;
    struct ibv_mw *mw;
    struct peer me, peer;
};

static struct ibv_qp *new_qp(struct end *e, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr a = {.send_cq = e->cq,
                                 .recv_cq = e->cq,
                                 .srq = e->srq,
                                 .qp_type = type,
                                 .sq_sig_all = 1,
                                 .cap = {4, 4, 2, 2, 64}};

    return ibv_create_qp(e->pd, &a);
}

static void post_recv(struct ibv_qp *qp, void *p, uint32_t len, uint32_t lkey)
{
    struct ibv_sge s = {(uintptr_t)p, len, lkey};
    struct ibv_recv_wr wr = {.wr_id = 7, .sg_list = &s, .num_sge = 1}, *bad;

    must(!ibv_post_recv(qp, &wr, &bad));
}

/* A window that was opened on the region and closed again; the attacker gets its key. */
static uint32_t closed_window(struct end *e)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW}, *bad;
    uint32_t rkey;

    e->mw = ibv_alloc_mw(e->pd, IBV_MW_TYPE_2);
    must(e->mw);
    rkey = ibv_inc_rkey(e->mw->rkey);
    wr.bind_mw.mw = e->mw;
    wr.bind_mw.rkey = rkey;
    wr.bind_mw.bind_info =
        (struct ibv_mw_bind_info){e->mr, (uintptr_t)e->mem + GUARD, REGION, FULL};
    must(!ibv_post_send(e->qp, &wr, &bad));
    expect_wc(e->cq, IBV_WC_SUCCESS, "bind");
    wr = (struct ibv_send_wr){.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = rkey};
    must(!ibv_post_send(e->qp, &wr, &bad));
    expect_wc(e->cq, IBV_WC_SUCCESS, "invalidate");
    return rkey;
}

static void set_up(struct end *e, const struct row *row)
{
    unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;

    e->pd = ibv_alloc_pd(e->ctx);
    e->cq = ibv_create_cq(e->ctx, 32, NULL, NULL, 0);
    if (row->trick == SRQ && e->victim) {
        struct ibv_srq_init_attr a = {.attr = {.max_wr = 4, .max_sge = 1}};

        e->srq = ibv_create_srq(e->pd, &a);
    }
    e->qp = new_qp(e, row->type);
    memset(e->mem, e->victim ? 0xa5 : 0x11, 2 * GUARD + REGION);
    if (e->victim)
        memset(e->mem + GUARD, 0x5a, REGION);
    e->mr = e->victim ? ibv_reg_mr(e->pd, e->mem + GUARD, REGION, (int)(access | row->mr_access))
                      : ibv_reg_mr(e->pd, e->mem, 2 * GUARD + REGION, (int)access);
    must(e->pd && e->cq && e->qp && e->mr);
    e->me = (struct peer){e->gid, e->qp->qp_num, e->mr->rkey, (uintptr_t)e->mem + GUARD};
    oob_swap(e->oob, &e->me, &e->peer, sizeof(e->me));
    qp_connect(e->qp, &e->peer, e->victim ? row->qp_access : FULL);
}

static void tear_down(struct end *e)
{
    if (e->qp)
        must(!ibv_destroy_qp(e->qp));
    if (e->srq)
        must(!ibv_destroy_srq(e->srq));
    if (e->mw)
        must(!ibv_dealloc_mw(e->mw));
    if (e->mr)
        must(!ibv_dereg_mr(e->mr));
    must(!ibv_destroy_cq(e->cq));
    must(!ibv_dealloc_pd(e->pd));
    e->qp = NULL, e->srq = NULL, e->mw = NULL, e->mr = NULL;
}

/* ---- the victim ---- */

static void prepare(struct end *e, const struct row *row)
{
    uint32_t rkey = e->mr->rkey;

    if (row->recv != NONE) /* at the start of the region */
        post_recv(e->qp, e->mem + GUARD, (uint32_t)row->recv,
                  e->mr->lkey ^ (row->trick == BAD_RECV_KEY ? 0x100 : 0));
    if (row->trick == DEREG) {
        must(!ibv_dereg_mr(e->mr));
        e->mr = NULL;
    }
    if (row->trick == REREG)
        must(!ibv_rereg_mr(e->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, e->mem + GUARD, 1024, 0));
    if (row->trick == WINDOW)
        rkey = closed_window(e);
    if (row->trick == GONE_QP) {
        must(!ibv_destroy_qp(e->qp));
        e->qp = NULL;
    }
    oob_put(e->oob, &rkey, sizeof(rkey));
}

static uint32_t events(struct end *e, int ms)
{
    struct pollfd f = {.fd = e->ctx->async_fd, .events = POLLIN};
    struct ibv_async_event ev;
    uint32_t seen = 0;

    while (poll(&f, 1, ms) == 1) {
        must(!ibv_get_async_event(e->ctx, &ev));
        seen |= 1u << ev.event_type;
        ibv_ack_async_event(&ev);
        ms = 0;
    }
    return seen;
}

static void examine(struct end *e, const struct row *row)
{
    struct ibv_qp_init_attr ia;
    struct ibv_qp_attr a;
    struct ibv_wc wc;
    uint32_t seen;
    bool alive;

    if (row->victim_wc != NONE)
        expect_wc(e->cq, (enum ibv_wc_status)row->victim_wc, row->name);
    seen = events(e, row->events ? WC_MS : 0);
    if (seen != row->events)
        die("%s: found events %#x, expected %#x", row->name, seen, row->events);
    if (!next_wc(e->cq, &wc, 0))
        die("%s: one completion too many: %s", row->name, ibv_wc_status_str(wc.status));
    for (unsigned i = 0; i < 2 * GUARD + REGION; i++) {
        /* The buffer of a receive may be written before the message turns out to be too long. */
        bool given = row->recv != NONE && i - GUARD < (unsigned)row->recv;
        bool inside = i >= GUARD && i < GUARD + REGION;

        if (!given && e->mem[i] != (inside ? 0x5a : 0xa5))
            die("%s: byte %d from the start of the region was written", row->name,
                (int)i - (int)GUARD);
    }
    if (!e->qp)
        return;
    /* A refused request ends the connection; one that is silently dropped does not. */
    must(!ibv_query_qp(e->qp, &a, IBV_QP_STATE, &ia));
    alive = row->victim_wc == NONE && !row->events;
    if (a.qp_state != (alive ? IBV_QPS_RTS : IBV_QPS_ERR))
        die("%s: the queue pair is in state %d", row->name, a.qp_state);
}

/* ---- the attacker ---- */

static void attack(struct end *e, const struct row *row)
{
    struct ibv_sge s = {(uintptr_t)e->mem, row->len, e->mr->lkey ^ row->lkey_xor};
    struct ibv_send_wr wr = {.wr_id = 9, .sg_list = &s, .num_sge = 1, .opcode = row->op}, *bad;
    uint64_t addr = e->peer.addr + row->addr;
    uint32_t rkey;

    oob_get(e->oob, &rkey, sizeof(rkey));
    rkey ^= row->rkey_xor;
    if (row->type == IBV_QPT_UD) {
        struct ibv_ah_attr a = ah_of(&e->peer.gid);

        wr.wr.ud.ah = ibv_create_ah(e->pd, &a);
        must(wr.wr.ud.ah);
        wr.wr.ud.remote_qpn = e->peer.qpn;
        wr.wr.ud.remote_qkey = OOB_QKEY + (row->trick == BAD_QKEY);
    } else if (row->op == ADD || row->op == CAS) {
        wr.wr.atomic.remote_addr = addr, wr.wr.atomic.rkey = rkey;
        wr.wr.atomic.compare_add = 1;
    } else {
        wr.wr.rdma.remote_addr = addr, wr.wr.rdma.rkey = rkey;
    }
    must(!ibv_post_send(e->qp, &wr, &bad));
    expect_wc(e->cq, (enum ibv_wc_status)row->wc, row->name);
    if (row->type == IBV_QPT_UD)
        must(!ibv_destroy_ah(wr.wr.ud.ah));
    for (unsigned i = 0; i < 2 * GUARD + REGION; i++)
        if (e->mem[i] != 0x11)
            die("%s: byte %u came over", row->name, i);
}

/* ---- both ---- */

/* A message each way on new queue pairs. Earlier frames on the same path have arrived by then. */
static void still_alive(struct end *e, const struct row *row)
{
    struct ibv_sge s = {(uintptr_t)e->mem, 3000, 0};
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    struct ibv_mr *mr = ibv_reg_mr(e->pd, e->mem, 2 * GUARD + REGION, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_cq *cq = ibv_create_cq(e->ctx, 8, NULL, NULL, 0);
    struct ibv_qp_init_attr a = {
        .send_cq = cq, .recv_cq = cq, .qp_type = RC, .sq_sig_all = 1, .cap = {4, 4, 1, 1, 0}};
    struct ibv_qp *qp = ibv_create_qp(e->pd, &a);
    struct peer me, peer;

    must(mr && cq && qp);
    me = (struct peer){e->gid, qp->qp_num, 0, 0};
    oob_swap(e->oob, &me, &peer, sizeof(me));
    qp_connect(qp, &peer, 0);
    memset(e->mem, 0x33, 3000);
    memset(e->mem + 4000, 0, 3000);
    post_recv(qp, e->mem + 4000, 3000, mr->lkey);
    oob_barrier(e->oob);
    s.lkey = mr->lkey;
    must(!ibv_post_send(qp, &wr, &bad));
    expect_wc(cq, IBV_WC_SUCCESS, row->name);
    expect_wc(cq, IBV_WC_SUCCESS, row->name);
    if (memcmp(e->mem, e->mem + 4000, 3000))
        die("%s: the next message is wrong", row->name);
    must(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_dereg_mr(mr));
}

static void run_row(struct end *e, const struct row *row)
{
    set_up(e, row);
    oob_barrier(e->oob);
    if (e->victim)
        prepare(e, row);
    else
        attack(e, row);
    oob_barrier(e->oob);
    if (e->victim)
        examine(e, row);
    still_alive(e, row);
    if (e->victim && !row->events && events(e, 0))
        die("%s: an event came late", row->name);
    tear_down(e);
    oob_barrier(e->oob);
    printf("ok  %s\n", row->name);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct end e = {.victim = argc == 3 && !strcmp(argv[1], "victim")};

    if (argc != 3 || (!e.victim && strcmp(argv[1], "attacker") != 0))
        die("usage: verbs_bad victim|attacker PORT");
    e.ctx = open_first();
    must(!ibv_query_gid(e.ctx, 1, 0, &e.gid));
    e.mem = calloc(1, 2 * GUARD + REGION);
    e.oob = e.victim ? accept(oob_listen(argv[2]), NULL, NULL) : oob_connect(argv[2]);
    must(e.oob >= 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        run_row(&e, &rows[i]);
    must(!ibv_close_device(e.ctx));
    free(e.mem);
    return 0;
}
