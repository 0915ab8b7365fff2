/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations that chaos draws for a communicator: those that it supports, as often as they should be there,
 * with lengths that fit; and how long they may be.
 */
#include "collective/sched.h"
#include "tests/sim/chaos/draws.h"
#include "tests/support/eal.h"

#define CASES 30000u

static struct rte_mempool *pool;
static const struct chaos_cfg cfg;

struct bed {
    struct fabric *f;
    struct world *w;
    struct job *j;
    struct chaos_case k;
    uint16_t hosts[4];
};

static void open_bed(struct bed *b, const char *conf, unsigned algos)
{
    struct world_cfg wc = {.nranks = 4, .pool = pool, .seed = 1};
    struct job_cfg jc = {
        .nranks = 4, .group = 1, .n_trees = 1, .algos = algos, .limit_ps = PS_PER_S};
    char err[COMM_TEXT];

    *b = (struct bed){.f = load_file(conf), .hosts = {0, 1, 2, 3}};
    b->k = (struct chaos_case){.cfg = &cfg, .fab = b->f, .n_jobs = 2};
    b->k.job[0] = (struct chaos_job){.nranks = 4, .algos = algos, .bytes = CHAOS_BUFFER};
    b->k.job[1] = (struct chaos_job){.nranks = 4, .algos = algos, .bytes = CHAOS_OTHERS};
    wc.fab = jc.fab = b->f;
    wc.host_of_rank = jc.host_of_rank = b->hosts;
    assert_int_equal(world_create(&b->w, &wc), 0);
    jc.w = b->w;
    if (job_create(&b->j, &jc, err))
        fail_msg("%s", err);
}

static void close_bed(struct bed *b)
{
    assert_int_equal(job_destroy(b->j), 0);
    world_destroy(b->w);
    fabric_free(b->f);
}

struct seen {
    unsigned n[COLL_KINDS][ALGO_USUAL], all, table, in_place, mm_self, skewed, sparse, alltoalls;
    unsigned of_type[DT_COUNT];
    struct range roots, sparses, skews;
};

static bool in_table(size_t count)
{
    static const size_t counts[] = {0, 1, 2, 3, 7, 64, 997, 1024, 4093, 8192, 30011};

    for (unsigned i = 0; i < LEN(counts); i++)
        if (counts[i] == count)
            return true;
    return false;
}

static void see(struct seen *s, const struct chaos_job *j, const struct job_op *op)
{
    size_t most = j->bytes / (op->kind == COLL_ALLREDUCE ? 1 : j->nranks);

    assert_true(op->kind < COLL_KINDS && op->algo < ALGO_USUAL);
    assert_true(arith_valid(op->op, op->type));
    if (op->count * dtype_size(op->type) > most)
        fail_msg("%zu elements of type %d in %zu bytes", op->count, op->type, most);
    assert_true(op->kind != COLL_BARRIER || !op->count);
    s->all++;
    s->n[op->kind][op->algo]++;
    s->of_type[op->type]++;
    s->table += in_table(op->count);
    s->in_place += op->in_place;
    s->mm_self += op->mm_self;
    s->skewed += op->skew_ps > 0;
    assert_true(op->skew_ps % PS_PER_US == 0);
    if (op->skew_ps)
        range_add(&s->skews, (double)op->skew_ps / PS_PER_US);
    range_add(&s->roots, op->root);
    s->alltoalls += op->kind == COLL_ALLTOALL;
    assert_true(!op->sparse || op->kind == COLL_ALLTOALL);
    s->sparse += op->sparse > 0;
    if (op->sparse)
        range_add(&s->sparses, op->sparse);
    assert_true(!op->late && !op->file);
}

/* Half of what is drawn are all-reduces, algorithms are as likely, and what is not supported is drawn
 * again. */
static void same_shares(struct bed *b, const struct seen *s)
{
    struct comm *c = job_comm(b->j, 0);
    double weight[COLL_KINDS][ALGO_USUAL], whole = 0;

    for (int k = 0; k < COLL_KINDS; k++)
        for (int a = 0; a < (int)ALGO_USUAL; a++) {
            struct job_op op = {.kind = (enum coll_kind)k, .algo = (enum coll_algo)a};
            bool runs = chaos_op_runs(b->k.job, c, &op);

            weight[k][a] = runs * ((k == COLL_ALLREDUCE) * 0.5 + 0.5 / COLL_KINDS);
            whole += weight[k][a];
            assert_true(!runs || b->k.job[0].algos >> a & 1);
            assert_true(runs || !s->n[k][a]);
        }
    for (int k = 0; k < COLL_KINDS; k++)
        for (int a = 0; a < (int)ALGO_USUAL; a++)
            share(coll_name((unsigned)k), s->n[k][a], s->all, weight[k][a] / whole);
}

static void operations_have_their_shares(void **state)
{
    struct bed b;

    (void)state;
    open_bed(&b, "conf/leaf-spine-8.conf",
             1u << ALGO_SHARP | 1u << ALGO_RING | 1u << ALGO_TREE | 1u << ALGO_DIRECT);
    for (unsigned job = 0; job < 2; job++) {
        struct seen s = {0};

        for (unsigned i = 0; i < CASES; i++) {
            struct job_op op = {0};

            draws_of(&b.k, i);
            b.k.rng[job ? DRAW_OPS : DRAW_JOBS] = 5; /* the other's draws */
            chaos_draw_op(&b.k, &b.k.job[job], job_comm(b.j, 0), &op);
            assert_int_equal(b.k.rng[job ? DRAW_OPS : DRAW_JOBS], 5);
            see(&s, &b.k.job[job], &op);
        }
        same_shares(&b, &s);
        share("in place", s.in_place, s.all, 1. / 2);
        share("of the own memory", s.mm_self, s.all, 1. / 2);
        share("skew", s.skewed, s.all, 1. / 2 * 49 / 50);
        share("sparse", s.sparse, s.alltoalls, 1. / 3);
        range_is("roots", &s.roots, 0, 3);
        range_is("sparse", &s.sparses, 1, 4);
        range_is("skew", &s.skews, 1, 49);
        for (unsigned t = 0; t < DT_COUNT; t++)
            assert_true(s.of_type[t] > 0);
        assert_true(s.table > s.all / 4 && s.table < s.all * 3 / 4);
    }
    close_bed(&b);
}

/* Below the limit half of all counts are of the table, each of its eleven as likely, the others below
 * 20,000. */
static void counts_are_of_a_table_or_any(void **state)
{
    struct bed b;
    unsigned seven = 0, long_ones = 0, n = 0;
    struct range others = {0};

    (void)state;
    open_bed(&b, "conf/leaf-spine-8.conf", 1u << ALGO_SHARP);
    b.k.job[0].bytes = 1u << 24;
    for (unsigned i = 0; i < CASES; i++) {
        struct job_op op = {0};

        draws_of(&b.k, i);
        chaos_draw_op(&b.k, b.k.job, job_comm(b.j, 0), &op);
        if (op.kind == COLL_BARRIER)
            continue;
        n++;
        seven += op.count == 7;
        long_ones += op.count == 30011;
        if (!in_table(op.count))
            range_add(&others, (double)op.count);
    }
    share("seven", seven, n, 1. / 22 + 1. / 2 / 20000);
    share("the longest", long_ones, n, 1. / 22);
    share("others", others.n, n, 1. / 2 * (20000 - 10) / 20000);
    assert_true(others.highest < 20000 && others.highest > 19990 && others.lowest < 20);
    close_bed(&b);
}

/* Where vectors are long all are all-reduces by NVSwitches, of nearly all that fits. */
static void long_vectors_are_for_nvswitches(void **state)
{
    struct bed b;
    unsigned least = UINT32_MAX, most = 0;

    (void)state;
    open_bed(&b, "conf/h100-node.conf", 1u << ALGO_NVLS | 1u << ALGO_RING);
    b.k.job[0].bytes = CHAOS_LONG;
    for (unsigned i = 0; i < CASES / 10; i++) {
        struct job_op op = {0};
        unsigned short_by;

        draws_of(&b.k, i);
        chaos_draw_op(&b.k, b.k.job, job_comm(b.j, 0), &op);
        assert_true(op.kind == COLL_ALLREDUCE && op.algo == ALGO_NVLS);
        short_by = (unsigned)(CHAOS_LONG / dtype_size(op.type) - op.count);
        least = RTE_MIN(least, short_by);
        most = RTE_MAX(most, short_by);
    }
    assert_true(least == 0 && most == 99);
    close_bed(&b);
}

static void lengths_follow_from_the_case(void **state)
{
    struct chaos_case k = {.cfg = &cfg, .n_jobs = 3};
    unsigned n = 0;

    (void)state;
    for (unsigned nvls = 0; nvls < 2; nvls++)
        for (unsigned faults = 0; faults < 2; faults++)
            for (unsigned ranks = 4; ranks < 6; ranks++) {
                unsigned of_length[3] = {0};

                k.job[0] = (struct chaos_job){.nranks = ranks,
                                              .algos = 1u << ALGO_RING | nvls << ALGO_NVLS};
                k.plan.n = faults;
                for (n = 0; n < CASES; n++) {
                    draws_of(&k, n);
                    chaos_draw_bytes(&k);
                    of_length[0] += k.job[0].bytes == 262144;
                    of_length[1] += k.job[0].bytes == 65536;
                    of_length[2] += k.job[0].bytes == 1048576;
                    assert_true(k.job[1].bytes == 8192 && k.job[2].bytes == 8192);
                }
                share("long", of_length[2], n, nvls && ranks == 4 ? 1. / 5 : 0);
                assert_int_equal(of_length[!faults], 0);
                assert_int_equal(of_length[faults] + of_length[2], n);
            }
}

static void operations_are_named(void **state)
{
    struct job_op op = {.kind = COLL_REDUCE,
                        .algo = ALGO_TREE,
                        .type = DT_BF16,
                        .op = OP_MAX,
                        .count = 12,
                        .root = 3};
    char text[96];

    (void)state;
    assert_string_equal(chaos_op_text(&op, text, sizeof(text)),
                        "reduce by tree bfloat16 max x12 root 3");
    op.in_place = true;
    assert_string_equal(chaos_op_text(&op, text, sizeof(text)),
                        "reduce by tree bfloat16 max x12 root 3 in place");
    assert_string_equal(chaos_start_name(START_BEFORE), "before");
    assert_string_equal(chaos_start_name(START_DURING), "during");
    assert_string_equal(chaos_start_name(START_AFTER), "after");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_have_their_shares),
        cmocka_unit_test(counts_are_of_a_table_or_any),
        cmocka_unit_test(long_vectors_are_for_nvswitches),
        cmocka_unit_test(lengths_follow_from_the_case),
        cmocka_unit_test(operations_are_named),
    };

    test_eal_init();
    pool = test_pool(CHAOS_FRAMES);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
