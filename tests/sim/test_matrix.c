/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every collective by every algorithm that there is for it, on plain hosts and on GPUs of several
 * ports, in virtual time: exact results on every rank, nothing touched that should not be, and, as
 * nothing is lost here, nothing sent twice. Types, reductions, roots and lengths are drawn from a
 * seed; each collective, algorithm and number of ranks comes up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "collective/sched.h"
#include "sim/job/sim_job.h"
#include "tests/support/eal.h"

#define BUFFER (6u << 20)

static struct rte_mempool *pool;

struct fixture {
    struct fabric *f;
    struct world *w;
    struct job *j;
    unsigned n;
    uint16_t hosts[128];
    uint64_t rng;
    unsigned ran, seen[COLL_KINDS]; /* algorithms by collective */
};

static uint64_t below(struct fixture *b, uint64_t n)
{
    return random_next(&b->rng) % n;
}

static void fixture_up(struct fixture *b, struct fabric *f, unsigned n, unsigned per_host,
                       unsigned algos)
{
    char err[COMM_TEXT] = "";
    struct world_cfg wc = {
        .fab = f, .nranks = n, .host_of_rank = b->hosts, .pool = pool, .seed = 1};
    struct job_cfg jc = {.fab = f,
                         .nranks = n,
                         .host_of_rank = b->hosts,
                         .group = 1,
                         .key = 7,
                         .algos = algos,
                         .buffer_bytes = BUFFER,
                         .limit_ps = PS_PER_S};

    assert_non_null(f);
    b->f = f;
    b->n = n;
    for (unsigned r = 0; r < n; r++)
        b->hosts[r] = (uint16_t)(r / per_host);
    assert_int_equal(world_create(&b->w, &wc), 0);
    jc.w = b->w;
    if (job_create(&b->j, &jc, err))
        fail_msg("%u ranks: %s", n, err);
}

static uint64_t repeats(const struct fixture *b)
{
    uint64_t sum = 0;

    for (unsigned r = 0; r < b->n; r++) {
        struct hca *h;

        for (unsigned p = 0; (h = world_hca(b->w, r, p)); p++) {
            const struct roce_counters *k = rnic_counters(hca_rnic(h));

            sum += k->retransmits + k->timeouts + k->rnr_naks_received + k->seq_naks_sent;
        }
    }
    return sum;
}

static void fixture_down(struct fixture *b)
{
    assert_int_equal(job_destroy(b->j), 0);
    assert_int_equal(repeats(b), 0);
    world_destroy(b->w);
    fabric_free(b->f);
}

/* Is there such a schedule for these ranks? */
static bool exists(struct fixture *b, const struct job_op *op)
{
    struct coll_args a = {.kind = op->kind, .algo = op->algo, .count = 1, .type = DT_FP32};

    return comm_supports(job_comm(b->j, 0), &a);
}

static void run(struct fixture *b, struct job_op *op)
{
    struct job_result res;
    int rc;

    rc = job_run(b->j, op, &res);
    if (rc || res.wrong || res.failed_ranks)
        fail_msg(
            "%s by %s, %u ranks, %s %s x%zu root %u sparse %u%s seed %lu: rc %d, %lu wrong, %d "
            "failed: %s",
            coll_name(op->kind), sched_algo_name(op->algo), b->n, dtype_name(op->type),
            redop_name(op->op), op->count, op->root, op->sparse, op->in_place ? " in place" : "",
            op->seed, rc, res.wrong, res.failed_ranks, res.text);
    b->ran++;
}

/* Lengths of note, and sums of small whole numbers that all types hold exactly. */
static void draw(struct fixture *b, struct job_op *op, unsigned nth)
{
    static const size_t lengths[] = {1, 0, 997, 20011, 3, 4096, 65537, 2};
    static const enum dtype types[] = {DT_FP32, DT_INT32, DT_FP16, DT_UINT8, DT_FP64, DT_BF16};
    size_t count = lengths[nth % 8];

    op->type = types[below(b, 6)];
    op->op = coll_reduces(op->kind) ? (enum redop)below(b, OP_AVG + 1) : OP_SUM;
    op->root = (unsigned)below(b, b->n);
    op->sparse = op->kind == COLL_ALLTOALL && below(b, 3) == 0 ? 1 + (unsigned)below(b, b->n) : 0;
    op->in_place = below(b, 2) && op->kind != COLL_ALLTOALL && op->kind != COLL_SENDRECV;
    if (op->kind == COLL_BARRIER)
        count = 0;
    op->count = count * b->n * dtype_size(op->type) > BUFFER / 4 ? count / b->n : count;
    op->mm_self = below(b, 2);
    op->skew_ps = below(b, 2) ? 20 * PS_PER_US : 0;
    op->seed = random_next(&b->rng);
}

static void all_kinds_and_algorithms(struct fixture *b, unsigned algos, unsigned each)
{
    for (unsigned k = 0; k < COLL_KINDS; k++)
        for (unsigned a = 0; a < ALGO_COUNT; a++) {
            struct job_op op = {.kind = (enum coll_kind)k, .algo = (enum coll_algo)a};

            if (!(algos >> a & 1) || !exists(b, &op))
                continue;
            for (unsigned i = 0; i < each; i++) {
                draw(b, &op, (unsigned)below(b, 8) * (i > 1) + i * 2);
                run(b, &op);
            }
            b->seen[k] |= 1u << a;
        }
}

/* No rank leaves before the last one has entered. */
static void barriers_hold_back(struct fixture *b, unsigned algos)
{
    for (unsigned a = 0; a < ALGO_COUNT; a++)
        for (unsigned late = 1; late <= b->n; late++) {
            struct job_op op = {.kind = COLL_BARRIER,
                                .algo = (enum coll_algo)a,
                                .skew_ps = 20 * PS_PER_US,
                                .late = late};

            if (algos >> a & 1 && exists(b, &op))
                run(b, &op);
        }
}

#define HOST_ALGOS                                                                                 \
    (1u << ALGO_RING | 1u << ALGO_SHARP | 1u << ALGO_TREE | 1u << ALGO_CHAIN |                     \
     1u << ALGO_HALVING | 1u << ALGO_PAIRWISE | 1u << ALGO_DIRECT)

static void plain_hosts(void **state)
{
    static const unsigned ranks[] = {1, 2, 3, 5, 8, 16};

    (void)state;
    for (unsigned i = 0; i < sizeof(ranks) / sizeof(*ranks); i++) {
        struct fixture b = {.rng = 100 + i};

        fixture_up(&b, fabric_load("conf/leaf-spine-8.conf", NULL), ranks[i], ranks[i] > 8 ? 2 : 1,
                   HOST_ALGOS);
        all_kinds_and_algorithms(&b, HOST_ALGOS, ranks[i] < 16 ? 4 : 3);
        barriers_hold_back(&b, HOST_ALGOS);
        print_message("%u ranks: %u operations\n", ranks[i], b.ran);
        fixture_down(&b);
    }
}

static void gpus_of_one_node(void **state)
{
    static const unsigned ranks[] = {2, 3, 5, 8};
    unsigned algos = (HOST_ALGOS & ~(1u << ALGO_SHARP)) | 1u << ALGO_NVLS;

    (void)state;
    for (unsigned i = 0; i < sizeof(ranks) / sizeof(*ranks); i++) {
        struct fixture b = {.rng = 7 + i};

        fixture_up(&b, fabric_load("conf/h100-node.conf", NULL), ranks[i], 1, algos);
        all_kinds_and_algorithms(&b, algos, 3);
        print_message("h100-node: %u GPUs, %u operations\n", ranks[i], b.ran);
        assert_true(b.seen[COLL_ALLREDUCE] >> ALGO_NVLS & 1);
        assert_true(b.seen[COLL_REDUCE_SCATTER] >> ALGO_NVLS & 1);
        assert_true(b.seen[COLL_ALLGATHER] >> ALGO_NVLS & 1);
        fixture_down(&b);
    }
}

/* Every GPU of a rack by its 18 switches (F3): short vectors, of which each GPU has a
 * few elements, or some none. */
static void gpus_of_a_rack(void **state)
{
    static const enum coll_kind kinds[] = {COLL_ALLREDUCE, COLL_REDUCE_SCATTER, COLL_ALLGATHER};
    unsigned algos = 1u << ALGO_NVLS;
    struct fixture b = {.rng = 72};

    (void)state;
    fixture_up(&b, fabric_load("conf/gb200-nvl72.conf", NULL), 72, 1, algos);
    for (unsigned k = 0; k < 3; k++) {
        struct job_op op = {.kind = kinds[k], .algo = ALGO_NVLS};

        draw(&b, &op, 2);
        op.count = op.kind == COLL_ALLREDUCE ? 997 : 13;
        op.skew_ps = 0;
        run(&b, &op);
    }
    fixture_down(&b);
}

static void gpus_of_two_nodes(void **state)
{
    unsigned algos = HOST_ALGOS | 1u << ALGO_HIER | 1u << ALGO_HIER_SHARP | 1u << ALGO_NVLS_SHARP |
                     1u << ALGO_RINGS | 1u << ALGO_PXN;
    struct fixture b = {.rng = 8};

    (void)state;
    fixture_up(&b, fabric_load("conf/rail-2x4.conf", NULL), 8, 1, algos);
    all_kinds_and_algorithms(&b, algos, 3);
    print_message("rail-2x4: %u operations\n", b.ran);
    assert_true(b.seen[COLL_ALLREDUCE] >> ALGO_HIER & 1);
    assert_true(b.seen[COLL_ALLREDUCE] >> ALGO_HIER_SHARP & 1);
    assert_true(b.seen[COLL_ALLREDUCE] >> ALGO_NVLS_SHARP & 1);
    assert_true(b.seen[COLL_ALLGATHER] >> ALGO_NVLS_SHARP & 1);
    assert_true(b.seen[COLL_REDUCE_SCATTER] >> ALGO_HIER_SHARP & 1);
    assert_true(b.seen[COLL_BROADCAST] >> ALGO_HIER & 1);
    assert_true(b.seen[COLL_ALLREDUCE] >> ALGO_RINGS & 1);
    assert_true(b.seen[COLL_ALLGATHER] >> ALGO_RINGS & 1);
    assert_true(b.seen[COLL_REDUCE_SCATTER] >> ALGO_RINGS & 1);
    assert_true(b.seen[COLL_ALLTOALL] >> ALGO_PXN & 1);
    fixture_down(&b);
}

/* A switch has 16 groups of multimem: one more runs by the ring, or reports why not. One with
 * another key is refused. */
static void nvls_that_is_refused(void **state)
{
    static const uint16_t hosts[2] = {0, 1};
    static const enum coll_algo op_algo = ALGO_NVLS;
    struct fabric *f = fabric_load("conf/h100-node.conf", NULL);
    struct world_cfg wc = {.fab = f, .nranks = 2, .host_of_rank = hosts, .pool = pool, .seed = 1};
    struct job_cfg jc = {.fab = f,
                         .nranks = 2,
                         .host_of_rank = hosts,
                         .key = 7,
                         .n_policy = 1,
                         .policy = &op_algo,
                         .algos = 1u << ALGO_NVLS | 1u << ALGO_RING,
                         .limit_ps = PS_PER_S};
    struct job_op op = {.algo = ALGO_NVLS, .type = DT_FP32, .count = 5000, .seed = 3};
    struct job *j[18];
    struct job_result res;
    char err[COMM_TEXT];

    (void)state;
    assert_int_equal(world_create(&jc.w, &wc), 0);
    for (unsigned i = 0; i < 16; i++) {
        jc.group = i + 1;
        assert_int_equal(job_create(&j[i], &jc, err), 0);
        jc.sibling = j[0];
    }
    jc.key = 8;
    assert_int_not_equal(job_create(&j[16], &jc, err), 0);
    assert_non_null(strstr(err, "multimem: "));
    jc.group = 17;
    assert_int_not_equal(job_create(&j[16], &jc, err), 0);
    assert_non_null(strstr(err, "multimem: "));
    print_message("%s\n", err);
    jc.n_policy = 0; /* the usual one */
    if (job_create(&j[16], &jc, err))
        fail_msg("%s", err);
    assert_non_null(comm_fell_back(job_comm(j[16], 0)));
    for (unsigned i = 0; i < 17; i += 8) {
        assert_int_equal(job_run(j[i], &op, &res), 0);
        assert_int_equal(res.wrong + (uint64_t)res.failed_ranks, 0);
    }
    for (unsigned i = 17; i--;)
        assert_int_equal(job_destroy(j[i]), 0);
    world_destroy(jc.w);
    fabric_free(f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_hosts),          cmocka_unit_test(gpus_of_one_node),
        cmocka_unit_test(gpus_of_a_rack),       cmocka_unit_test(gpus_of_two_nodes),
        cmocka_unit_test(nvls_that_is_refused),
    };

    test_eal_init();
    pool = test_pool(120000);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
