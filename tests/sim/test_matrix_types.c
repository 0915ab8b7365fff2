/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every collective by every algorithm of every type and reduction, on 1, 2, 3, 5, 8 and 16 ranks,
 * of awkward lengths, in and out of place, in virtual time against the plain reference: on hosts,
 * GPUs of a node, and nodes on rails. By default each collective, algorithm, type and reduction
 * comes up once on each kind of fabric, with the rest in turn; MATRIX=whole is the whole product
 * (make matrix).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "collective/sched.h"
#include "sim/job/oracle.h"
#include "tests/sim/one_job.h"
#include "tests/support/eal.h"

#define LONGEST 997u
#define COUNTS  5u
#define PLACES  2u
#define BIT(a)  (1u << (a))

static struct rte_mempool *pool;

struct fixture {
    const char *conf;
    unsigned n, per_host, algos;
    bool whole;
    unsigned turn,
        turns; /* of the fixtures of this kind; which takes what, where not all take all */
    struct one_job at;
    uint16_t hosts[32];
    uint64_t seen, ran;
};

static void fixture_up(struct fixture *b)
{
    struct job_cfg jc = {.nranks = b->n,
                         .host_of_rank = b->hosts,
                         .algos = b->algos,
                         .buffer_bytes = LONGEST * b->n * sizeof(uint64_t) + 64,
                         .limit_ps = PS_PER_S};

    for (unsigned r = 0; r < b->n; r++)
        b->hosts[r] = (uint16_t)(r / b->per_host);
    one_job_up(&b->at, b->conf, pool, jc);
}

static bool has_place(enum coll_kind k)
{
    return k != COLL_ALLTOALL && k != COLL_SENDRECV && k != COLL_BARRIER;
}

static void run(struct fixture *b, struct job_op *op)
{
    struct job_result res;
    int rc;

    op->seed = ++b->ran;
    rc = job_run(b->at.j, op, &res);
    if (rc || res.wrong || res.failed_ranks)
        fail_msg("%s: collective %u by %s, %u ranks, %s %s x%zu root %u sparse %u%s: rc %d, %lu "
                 "wrong, %d failed: %s",
                 b->conf, op->kind, sched_algo_name(op->algo), b->n, dtype_name(op->type),
                 redop_name(op->op), op->count, op->root, op->sparse,
                 op->in_place ? " in place" : "", rc, res.wrong, res.failed_ranks, res.text);
}

/* One collective, algorithm, type and reduction: of all lengths and in both places, or of one. */
static void combination(struct fixture *b, struct job_op op)
{
    static const size_t counts[COUNTS] = {1, 0, LONGEST, 3, 17};
    uint64_t nth = b->seen++;

    if (!b->whole && nth % b->turns != b->turn)
        return;
    for (unsigned i = 0; i < COUNTS * PLACES; i++) {
        if (!b->whole && i != nth / b->turns % (COUNTS * PLACES))
            continue;
        op.count = op.kind == COLL_BARRIER ? 0 : counts[i % COUNTS];
        op.in_place = i / COUNTS && has_place(op.kind);
        op.root = (unsigned)(nth + i) % b->n;
        op.sparse = op.kind == COLL_ALLTOALL && i % 3 == 0 ? 1 + op.root : 0;
        op.mm_self = (nth + i) % 2;
        run(b, &op);
    }
}

static void product(struct fixture *b)
{
    for (unsigned k = 0; k < COLL_KINDS; k++)
        for (unsigned a = 0; a < ALGO_COUNT; a++) {
            struct coll_args args = {
                .kind = (enum coll_kind)k, .algo = (enum coll_algo)a, .count = 1, .type = DT_FP32};

            if (!(b->algos >> a & 1) || !comm_supports(job_comm(b->at.j, 0), &args))
                continue;
            for (unsigned t = 0; t < DT_COUNT; t++)
                for (unsigned o = 0; o < (coll_reduces(args.kind) ? OP_COUNT : 1); o++)
                    if (!coll_reduces(args.kind) || arith_valid((enum redop)o, (enum dtype)t))
                        combination(b, (struct job_op){.kind = args.kind,
                                                       .algo = args.algo,
                                                       .type = (enum dtype)t,
                                                       .op = (enum redop)o});
        }
}

static void all(struct fixture *beds, unsigned n)
{
    const char *whole = getenv("MATRIX");

    for (unsigned i = 0; i < n; i++) {
        struct fixture *b = &beds[i];

        b->whole = whole && !strcmp(whole, "whole");
        b->turn = i, b->turns = n;
        fixture_up(b);
        product(b);
        print_message("%s, %2u ranks: %lu of %lu operations\n", b->conf, b->n, b->ran,
                      b->seen * COUNTS * PLACES);
        one_job_down(&b->at);
    }
}

#define HOST_ALGOS                                                                                 \
    (BIT(ALGO_RING) | BIT(ALGO_SHARP) | BIT(ALGO_TREE) | BIT(ALGO_CHAIN) | BIT(ALGO_HALVING) |     \
     BIT(ALGO_PAIRWISE) | BIT(ALGO_DIRECT))
#define LEVEL_ALGOS (BIT(ALGO_HIER) | BIT(ALGO_HIER_SHARP) | BIT(ALGO_NVLS_SHARP))

static void on_hosts(void **state)
{
    struct fixture beds[] = {
        {.conf = "conf/leaf-spine-8.conf", .n = 1, .per_host = 1, .algos = HOST_ALGOS},
        {.conf = "conf/leaf-spine-8.conf", .n = 2, .per_host = 1, .algos = HOST_ALGOS},
        {.conf = "conf/leaf-spine-8.conf", .n = 3, .per_host = 1, .algos = HOST_ALGOS},
        {.conf = "conf/leaf-spine-8.conf", .n = 5, .per_host = 1, .algos = HOST_ALGOS},
        {.conf = "conf/leaf-spine-8.conf", .n = 8, .per_host = 1, .algos = HOST_ALGOS},
        {.conf = "conf/leaf-spine-8.conf", .n = 16, .per_host = 2, .algos = HOST_ALGOS},
    };

    (void)state;
    all(beds, sizeof(beds) / sizeof(*beds));
}

static void in_a_node(void **state)
{
    struct fixture beds[] = {
        {.conf = "conf/h100-node.conf", .n = 2, .per_host = 1, .algos = BIT(ALGO_NVLS)},
        {.conf = "conf/h100-node.conf", .n = 3, .per_host = 1, .algos = BIT(ALGO_NVLS)},
        {.conf = "conf/h100-node.conf", .n = 5, .per_host = 1, .algos = BIT(ALGO_NVLS)},
        {.conf = "conf/h100-node.conf", .n = 8, .per_host = 1, .algos = BIT(ALGO_NVLS)},
    };

    (void)state;
    all(beds, sizeof(beds) / sizeof(*beds));
}

static void across_nodes(void **state)
{
    struct fixture beds[] = {
        {.conf = "conf/rail-2x4.conf", .n = 8, .per_host = 1, .algos = LEVEL_ALGOS},
        {.conf = "conf/rail-2x8.conf", .n = 16, .per_host = 1, .algos = LEVEL_ALGOS},
    };

    (void)state;
    all(beds, sizeof(beds) / sizeof(*beds));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_hosts),
        cmocka_unit_test(in_a_node),
        cmocka_unit_test(across_nodes),
    };

    test_eal_init();
    pool = test_pool(60000);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
