/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bandwidth terms of F20 to F32, checked by packets: times of long vectors in virtual time on the
 * ideal presets, lengths only, equal the formula times the share of headers within 1 %. F33's bytes
 * are counted in test_nodes.c.
 *
 * The sample of `make test` has the short rows; FORMULAS=whole (make formulas) has all of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "aggregation/proto.h"
#include "sim/job/sim_job.h"
#include "tests/support/eal.h"

#define TOLERANCE 0.01
#define MIB       (1ULL << 20)
#define NODE      450e9   /* F2: of a GPU into its node's switches */
#define NIC       50e9    /* F4 */
#define LEAF      400e9   /* F5: of a node */
#define SPINE     12.8e12 /* F12: of an SU */

/*
 * Bytes on the link per byte of payload, at an MTU of 4096. A full packet: Ethernet 14, IPv4 20,
 * UDP 8, BTH 12, ICRC 4, of the link 24. An ACK has AETH 4 instead of payload, a READ request RETH
 * 16, the first and the last packet of a READ's answer AETH 4 each, the first of a WRITE RETH 16.
 */
#define PACKET (4096.0 + 82)
#define ACK    86.0
#define ASK    98.0
#define SLICE  65536.0 /* of SENDs: 16 packets, the last with an immediate; one ACK */
#define MM     16384.0 /* of multimem: 4 packets */
#define READ   (4 * PACKET + 8)
#define WRITE  (4 * PACKET + 16)

/* Data one way, ACKs of as much data the other way on the same links. */
static const double sends = (16 * PACKET + 4 + ACK) / SLICE;
/* Messages of aggregation: their header is in the first packet, the ACK one for 16 packets. */
static const double aggregated =
    (AGG_MSG_PKTS * PACKET + ACK * AGG_MSG_PKTS / 16) / (AGG_MSG_PKTS * 4096.0 - AGG_HDR_BYTES);
/* Into a GPU of 8: its own loads' sums and stores' ACKs, 1 of 8; for the others' 7 of 8 the
 * switches' READs and WRITEs. With the own shard (mm_self) 8 of 8, of 9 in all. */
static const double nvls = (READ + ACK + 7 * (ASK + WRITE)) / (8 * MM);
static const double nvls_self = (READ + ACK + 8 * (ASK + WRITE)) / (9 * MM);
static const double nvls_gather = (7 * WRITE + ACK) / (7 * MM);

/* Groups that run at the same time: the ranks of one are `inner` hosts apart, groups `next`. */
struct groups {
    unsigned ranks, inner, n, next;
};

struct row {
    const char *f, *what, *conf;
    enum coll_kind kind;
    enum coll_algo algo;
    struct groups g;
    uint64_t mib;          /* of a group's whole vector */
    double share, Bps;     /* the formula: T = B share / Bps */
    const double *headers; /* the factor of these */
    double known;          /* 0: none; a factor that follows from the bytes sent, */
    const char *why;       /* for that reason */
    unsigned sparse;
    bool mm_self, whole;
};

#define AR  COLL_ALLREDUCE
#define AG  COLL_ALLGATHER
#define RS  COLL_REDUCE_SCATTER
#define A2A COLL_ALLTOALL
#define ALL(n)                                                                                     \
    {                                                                                              \
        n, 1, 1, 0                                                                                 \
    }

/* clang-format off */
static const struct row rows[] = {
    {"F20", "ring all-gather", "h100-node", AG, ALGO_RING, ALL(8), 256, 7 / 8., NODE, .headers = &sends},
    {"F20", "ring reduce-scatter", "h100-node", RS, ALGO_RING, ALL(8), 256, 7 / 8., NODE, .headers = &sends},
    {"F20", "NVLS all-gather", "h100-node", AG, ALGO_NVLS, ALL(8), 512, 7 / 8., NODE, .headers = &nvls_gather,
     .whole = true},
    {"F21", "ring all-reduce", "h100-node", AR, ALGO_RING, ALL(8), 256, 7 / 4., NODE, .headers = &sends},
    {"F21", "ring all-reduce", "leaf-spine-8", AR, ALGO_RING, ALL(8), 64, 7 / 4., NIC, .headers = &sends},
    {"F22", "halving all-reduce", "h100-node", AR, ALGO_HALVING, ALL(8), 256, 7 / 4., NODE, .headers = &sends},
    {"F22", "halving all-reduce", "single-switch-4", AR, ALGO_HALVING, ALL(4), 64, 3 / 2., NIC, .headers = &sends},
    {"F22", "halving all-reduce", "leaf-spine-8", AR, ALGO_HALVING, ALL(8), 64, 7 / 4., NIC, .headers = &sends,
     .known = 11 / 7., .why = "leaves have 2 cables up for 4 hosts: the first of 3 exchanges, 4 / 7 of the bytes, takes twice as long"},
    {"F23", "all-to-all", "h100-node", A2A, ALGO_DIRECT, ALL(8), 2048, 7 / 64., NODE, .headers = &sends},
    {"F24", "all-to-all, 4 of 8", "h100-node", A2A, ALGO_DIRECT, ALL(8), 2048, 7 / 64. * 4 / 8, NODE, .headers = &sends,
     .sparse = 4, .known = 3 / 7. * 8 / 4, .why = "one of a GPU's 4 blocks is its own: 3 of 7 leave it"},
    {"F25", "SHARP all-reduce", "leaf-spine-8", AR, ALGO_SHARP, ALL(8), 64, 1, NIC, .headers = &aggregated},
    {"F26", "NVLS all-reduce", "h100-node", AR, ALGO_NVLS, ALL(8), 1024, 1, NODE, .headers = &nvls, .whole = true},
    {"F27", "NVLS, own shard too", "h100-node", AR, ALGO_NVLS, ALL(8), 1024, 9 / 8., NODE, .headers = &nvls_self,
     .mm_self = true, .whole = true},
    {"F28", "hier all-reduce", "rail-2x4", AR, ALGO_HIER, ALL(8), 256, 1, 4 * NIC, .headers = &sends},
    {"F28", "hier_sharp all-reduce", "rail-2x4", AR, ALGO_HIER_SHARP, ALL(8), 256, 1, 4 * NIC, .headers = &aggregated,
     .whole = true},
    {"F28", "hier all-reduce", "rail-4x8", AR, ALGO_HIER, ALL(32), 256, 7 / 4., NODE, .headers = &sends, .whole = true},
    {"F28", "hier_sharp all-reduce", "rail-4x8", AR, ALGO_HIER_SHARP, ALL(32), 256, 7 / 4., NODE, .headers = &sends, .whole = true},
    {"F29", "node: all-gather of 8", "rail-2x8", AG, ALGO_RING, ALL(8), 256, 1, NODE * 8 / 7, .headers = &sends},
    {"F29", "leaf: a rail of 32", "h100-su", AG, ALGO_RING, {32, 8, 1, 0}, 64, 1 / 8., LEAF / 8 * 32 / 31 / 8, .headers = &sends},
    {"F29", "spine: 32 groups of 4 SUs", "h100-superpod-1024", AG, ALGO_RING, {4, 256, 32, 8}, 32, 256, SPINE * 4 / 3,
     .headers = &sends, .whole = true},
    {"F30", "all-to-all, one node", "rail-2x8", A2A, ALGO_DIRECT, ALL(8), 1024, 7 / 64., NODE, .headers = &sends,
     .whole = true},
    {"F30", "all-to-all, two nodes", "rail-2x8", A2A, ALGO_DIRECT, ALL(16), 1024, 1 / 4., LEAF, .headers = &sends},
    {"F30", "all-to-all, four nodes", "rail-4x8", A2A, ALGO_DIRECT, ALL(32), 2048, 3 / 16., LEAF, .headers = &sends, .whole = true},
    {"F31", "Y = 4: 2 GPUs of each node", "h100-su", AG, ALGO_HIER, {64, 4, 1, 0}, 256, 31 / 32. * 4, LEAF, .headers = &sends,
     .whole = true},
    {"F31", "Y = 16: 2 groups on a rail", "h100-su", AG, ALGO_RING, {16, 16, 2, 8}, 64, 15 / 16., NIC, .headers = &sends},
    {"F32", "all-gather, two nodes", "rail-2x8", AG, ALGO_HIER, ALL(16), 512, 7 / 8., NODE, .headers = &sends},
};
/* clang-format on */

#define MAX_RANKS 256
static struct rte_mempool *pool;

struct fixture {
    const struct row *r;
    struct fabric *f;
    struct world *w;
    unsigned n; /* ranks of all groups, those of one after those of another */
    uint16_t hosts[MAX_RANKS];
    unsigned world_rank[MAX_RANKS];
    struct job *j[MAX_RANKS];
    struct coll_req *req[MAX_RANKS];
    unsigned ended;
};

static void group_up(struct fixture *b, unsigned g, uint64_t bytes)
{
    unsigned at = g * b->r->g.ranks;
    char err[COMM_TEXT] = "";
    struct job_cfg jc = {.w = b->w,
                         .fab = b->f,
                         .nranks = b->r->g.ranks,
                         .host_of_rank = &b->hosts[at],
                         .world_rank = &b->world_rank[at],
                         .sibling = g ? b->j[0] : NULL,
                         .group = 1 + g,
                         .key = 7,
                         .algos = 1u << b->r->algo,
                         .lengths = true,
                         .limit_ps = PS_PER_S};

    if (job_create(&b->j[g], &jc, err))
        fail_msg("%s: %s", b->r->conf, err);
    assert_int_equal(job_buffers(b->j[g], bytes), 0);
}

static void fixture_up(struct fixture *b, const struct row *r, uint64_t bytes)
{
    struct world_cfg wc = {.pool = pool, .seed = 1, .trace_lengths = true};
    char conf[64];

    *b = (struct fixture){.r = r, .n = r->g.n * r->g.ranks};
    assert_true(b->n <= MAX_RANKS);
    snprintf(conf, sizeof(conf), "conf/%s.conf", r->conf);
    wc.fab = b->f = fabric_load(conf, NULL);
    assert_non_null(b->f);
    for (unsigned i = 0; i < b->n; i++) {
        b->hosts[i] = (uint16_t)(i / r->g.ranks * r->g.next + i % r->g.ranks * r->g.inner);
        b->world_rank[i] = i;
    }
    wc.nranks = b->n;
    wc.host_of_rank = b->hosts;
    assert_int_equal(world_create(&b->w, &wc), 0);
    for (unsigned g = 0; g < r->g.n; g++)
        group_up(b, g, bytes);
}

static void fixture_down(struct fixture *b)
{
    for (unsigned g = 0; g < b->r->g.n; g++)
        assert_int_equal(job_destroy(b->j[g]), 0);
    world_destroy(b->w);
    fabric_free(b->f);
}

/* Called after each event: the rank that has not ended is tested first the next time. */
static bool all_ended(void *ctx)
{
    struct fixture *b = ctx;

    while (b->ended < b->n) {
        int rc = coll_test(b->req[b->ended]);

        if (!rc)
            return false;
        assert_int_equal(rc, 1);
        b->ended++;
    }
    return true;
}

/* Seconds from the start of all until the last rank has ended. */
static double seconds(struct fixture *b, uint64_t bytes)
{
    const struct row *r = b->r;
    struct coll_args a = {.kind = r->kind,
                          .algo = r->algo,
                          .count = bytes / 4,
                          .type = DT_FP32,
                          .sparse = r->sparse,
                          .mm_self = r->mm_self};
    int64_t t0 = world_now(b->w);

    if (r->kind == COLL_ALLTOALL)
        a.count /= r->g.ranks;
    if (r->kind != COLL_ALLREDUCE)
        a.count /= r->g.ranks;
    for (unsigned i = 0; i < b->n; i++) {
        struct job *j = b->j[i / r->g.ranks];
        unsigned rank = i % r->g.ranks;
        char err[COMM_TEXT] = "";

        a.send = job_buffer(j, rank, 0);
        a.recv = job_buffer(j, rank, 1);
        if (coll_start(job_comm(j, rank), &a, &b->req[i], err))
            fail_msg("%s: %s", r->what, err);
        comm_progress(job_comm(j, rank));
    }
    b->ended = 0;
    job_drive(b->j[0], t0 + PS_PER_S, all_ended, b);
    assert_true(all_ended(b));
    for (unsigned i = 0; i < b->n; i++)
        coll_free(b->req[i]);
    return (double)(world_now(b->w) - t0) * 1e-12;
}

static bool run_row(const struct row *r)
{
    uint64_t bytes = r->mib * MIB,
             own = r->kind == COLL_ALLTOALL ? bytes / r->g.ranks : bytes; /* of a rank's buffer */
    double formula = (double)bytes * r->share / r->Bps, known = r->known > 0 ? r->known : 1,
           want = formula * *r->headers * known, got;
    struct fixture b;

    fixture_up(&b, r, own);
    seconds(&b, 64 * b.r->g.ranks * b.r->g.ranks * 4); /* connections are made */
    got = seconds(&b, bytes);
    fixture_down(&b);
    print_message("%-4s %-27s %-18s %5llu %10.2f %7.4f %6.4f %10.2f %10.2f %7.4f\n", r->f, r->what,
                  r->conf, (unsigned long long)r->mib, formula * 1e6, *r->headers, known,
                  want * 1e6, got * 1e6, got / want);
    if (r->why)
        print_message("     (%s)\n", r->why);
    return got >= want * (1 - TOLERANCE) && got <= want * (1 + TOLERANCE);
}

static void packets_give_the_formulas(void **state)
{
    const char *env = getenv("FORMULAS"), *only = getenv("FORMULAS_ROW");
    bool whole = env && !strcmp(env, "whole");
    unsigned failed = 0;

    (void)state;
    print_message("%-4s %-27s %-18s %5s %10s %7s %6s %10s %10s %7s\n", "", "", "conf", "MiB",
                  "formula us", "headers", "known", "expected", "packets", "ratio");
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (only && strcmp(only, rows[i].f))
            continue;
        if (whole || !rows[i].whole)
            failed += !run_row(&rows[i]);
    }
    if (failed)
        fail_msg("%u rows are not within %g %% of their formula", failed, 100 * TOLERANCE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_give_the_formulas),
    };

    test_eal_init();
    pool = test_pool(200000);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
