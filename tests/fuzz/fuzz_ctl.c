/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams to the ranks of a job while it connects, operates and closes: messages of other ranks
 * (phase, connection, operation, failover) and of switches (aggregation). Most are sealed with the
 * job's key, as by a rank that went wrong; others are forged. They may end the job; they may not
 * crash a rank, keep it from closing, or leave anything behind at the switch or in the pool.
 *
 * Input: what the job sets up, then records { kind, to and from, patches, that many (offset, byte) }
 * over a message that is valid; kind says also what the job does meanwhile.
 */
#include "host/coll/comm.h"
#include "host/coll/recovery/failover.h"
#include "host/coll/recovery/failover_priv.h"
#include "host/coll/transport/conn.h"
#include "roce/wire.h"
#include "tests/host/coll/coll_fixture.h"
#include "tests/fuzz/fuzz.h"

#define RANKS      3u
#define COUNT      700u /* floats: several messages at this MTU */
#define MTU        1024u
#define OPS        4u /* at a time */
#define PATCHES    12u
#define RECORDS    64u
#define MSG        512u
#define PEER_MAGIC 0x54524250u

enum { PEER, LINK, OP, FAILOVER, AGG, RAW, KINDS };
#define FORGED 0x80     /* in the byte of to and from */
#define SEQ0   1000000u /* beyond the numbers that the ranks themselves use */

static struct fixture *fix;
static struct coll_req *req[RANKS][OPS];
static unsigned n_ops;
static uint32_t seq;

static void put32(uint8_t *p, uint32_t v)
{
    v = rte_cpu_to_be_32(v);
    memcpy(p, &v, 4);
}

static uint32_t ip_of(unsigned rank)
{
    return fix->fab->nodes[rank < RANKS ? fix->fab->hosts[rank] : fix->fab->switches[0]]
        .ip_of_port[0];
}

static uint32_t switch_ip(void)
{
    return fix->fab->nodes[fix->fab->switches[0]].ip;
}

/* ---- messages ---- */

/* The layouts are those of ctl.c, link.c and agree.c. */
static size_t build(uint8_t *b, unsigned kind, unsigned to, unsigned from)
{
    const struct comm *c = fix->comm[to], *peer = fix->comm[from];
    struct failover_msg f = {.head.magic = rte_cpu_to_be_32(FAILOVER_MAGIC),
                             .rank = rte_cpu_to_be_32(from),
                             .to = rte_cpu_to_be_32(to),
                             .type = FAILOVER_VERDICT,
                             .round = (uint8_t)c->failover.n_rounds,
                             .parts = RTE_BE16(1),
                             .why = "wrong"};
    struct agg_ctl a = {.magic = RTE_BE32(AGG_MAGIC),
                        .version = AGG_VERSION,
                        .type = AGG_ABORT,
                        .status = rte_cpu_to_be_16(AGG_E_EDGE),
                        .group = RTE_BE32(7),
                        .window = RTE_BE32(64),
                        .qpn = RTE_BE32(0x10)};

    memset(b, 0, MSG);
    switch (kind) {
    case PEER:
        put32(b, PEER_MAGIC);
        b[20] = 2;
        b[21] = PHASE_READY;
        b[23] = 1;
        return 24 + 184;
    case LINK:
        put32(b, LINK_MAGIC);
        b[25] = 1; /* it wants an answer */
        b[26] = MTU >> 8;
        put32(b + 28, peer->ctl.port[0].qp->qp_num);
        memcpy(b + 40, peer->port[0].gid.raw, 16);
        return 56;
    case OP:
        put32(b, OP_MAGIC);
        put32(b + 20, c->exec.opseq ? c->exec.opseq - 1 : 0);
        put32(b + 32, DT_FP32);
        put32(b + 52, COUNT);
        return 56;
    case FAILOVER:
        memcpy(b, &f, sizeof(f));
        return sizeof(f);
    case AGG:
        a.xid = rte_cpu_to_be_32(c->n_aggs ? c->agg[0].xid : 0);
        memcpy(b, &a, sizeof(a));
        return sizeof(a);
    default:
        return 64;
    }
}

static void give(unsigned kind, unsigned to, unsigned from, bool sealed, const uint8_t *patches,
                 unsigned n)
{
    struct roce_pkt k = {.opcode = ROCE_OP_UD_SEND_ONLY,
                         .dqpn = fix->comm[to]->ctl.port[0].qp->qp_num,
                         .qkey = AGG_QKEY,
                         .src_ip = kind == AGG ? switch_ip() : ip_of(from),
                         .dst_ip = ip_of(to),
                         .ttl = 64,
                         .pkey = ROCE_DEFAULT_PKEY,
                         .udp_src = 50000};
    struct rte_mbuf *m = frame_alloc(fix->pool);
    uint8_t b[MSG];

    check(m != NULL, "a frame");
    k.sqpn = kind == AGG ? AGG_QPN : fix->comm[from]->ctl.port[0].qp->qp_num;
    k.len = (uint32_t)build(b, kind, to, from);
    for (unsigned i = 0; i < n; i++)
        b[patches[2 * i] % k.len] = patches[2 * i + 1];
    if (sealed && kind != AGG)
        seal_put(&(struct seal_key){.key = 0x5ec3e7, .group = 7}, from, to, ++seq, b, k.len);
    roce_mac_of_ip(k.src_ip, k.src_mac);
    roce_mac_of_ip(k.dst_ip, k.dst_mac);
    roce_build(m, &k);
    memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, k.hdr_len), b, k.len);
    roce_seal(m, &k);
    check(fix->ep[to].input(fix->ep[to].ctx, &m, 1, fix->now) == 1, "a frame that is not taken");
    fixture_progress(fix, to);
}

/* ---- the job ---- */

static void finish_ops(void)
{
    for (unsigned r = 0; r < RANKS; r++)
        for (unsigned i = 0; i < n_ops; i++) {
            if (req[r][i])
                coll_free(req[r][i]);
            req[r][i] = NULL;
        }
    n_ops = 0;
}

static void start_op(bool sharp)
{
    if (n_ops == OPS)
        return;
    for (unsigned r = 0; r < RANKS; r++) {
        struct coll_args a = {.kind = COLL_ALLREDUCE,
                              .algo = sharp ? ALGO_SHARP : ALGO_RING,
                              .send = fix->buf[2 * r],
                              .recv = fix->buf[2 * r + 1],
                              .count = COUNT,
                              .type = DT_FP32,
                              .op = OP_SUM};
        char err[COMM_TEXT] = "";

        req[r][n_ops] = NULL;
        if (coll_start(fix->comm[r], &a, &req[r][n_ops], err))
            check(*err, "an operation that does not start, without a reason");
    }
    n_ops++;
}

/* All at once, so that communicators may be destroyed. */
static void leave(void)
{
    for (unsigned r = 0; r < RANKS; r++)
        comm_close(fix->comm[r]);
    check(fixture_run(fix, 10 * PS_PER_S, true, fixture_closed), "a rank does not close");
    finish_ops();
    for (unsigned r = 0; r < RANKS; r++) {
        comm_destroy(fix->comm[r]);
        fix->comm[r] = NULL;
    }
    while (fix->n_bufs)
        free(fix->buf[--fix->n_bufs]);
    /* A rank that was told that it has left tells nobody; its NIC says that its process has ended. */
    for (unsigned r = 0; r < RANKS; r++)
        an_peer_down(fix->an, fix->fab->hosts[r], fix->now);
    fixture_run(fix, 10 * PS_PER_MS, false, fixture_never);
    check(an_idle(fix->an), "the switch keeps a group");
    while (fix->head < fix->tail)
        rte_pktmbuf_free(fix->wire[fix->head++ % FIXTURE_WIRE].m);
    check(rte_mempool_avail_count(fix->pool) == FIXTURE_POOL, "a frame is missing");
}

static void record(const uint8_t *r, const uint8_t *patches, unsigned n)
{
    give(r[0] % KINDS, r[1] % 16 % RANKS, r[1] / 16 % 8 % RANKS, !(r[1] & FORGED), patches, n);
    switch (r[0] / KINDS % 8) {
    case 0:
        fixture_run(fix, 2 * PS_PER_US, false, fixture_never);
        break;
    case 1:
        fixture_run(fix, 100 * PS_PER_US, false, fixture_never);
        break;
    case 2:
        start_op(true);
        break;
    case 3:
        start_op(false);
        break;
    case 4:
        fixture_run(fix, 200 * PS_PER_MS, true, fixture_never);
        break;
    default: /* the next message at once */
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!fix)
        fix = fixture_new(RANKS, 1, MTU, NULL);
    if (!size)
        return 0;
    fix->failover_back = data[0] & 1;
    fix->n_policy = 0;
    seq = SEQ0;
    fixture_connect(fix, data[0] & 2 ? 1u << ALGO_RING : 1u << ALGO_RING | 1u << ALGO_SHARP,
                    FIXTURE_RANKS);
    for (unsigned r = 0; r < RANKS; r++)
        for (unsigned i = 0; i < 2; i++)
            fixture_buffer(fix, r, COUNT * sizeof(float));
    if (data[0] & 4)
        fixture_run(fix, PS_PER_S, false, fixture_ready);
    data++, size--;
    for (unsigned i = 0; i < RECORDS && size >= 3; i++) {
        unsigned n = data[2] % (PATCHES + 1);

        n = RTE_MIN(n, (unsigned)(size - 3) / 2);
        record(data, data + 3, n);
        data += 3 + 2 * n, size -= 3 + 2 * n;
    }
    fixture_run(fix, PS_PER_MS, false, fixture_never);
    leave();
    return 0;
}
