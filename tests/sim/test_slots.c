/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Switches with few slots, groups or buffers: a job fits its trees into the free resources, alone
 * and with other jobs, reports its grants and the switch that limits them, uses them in
 * predictions, and fails over to another algorithm only when nothing fits. Results are exact in
 * every case.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "host/coll/comm.h"
#include "model/predict.h"
#include "sim/job/sim_job.h"
#include "tests/support/eal.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
#define RANKS  8u
#define SHARP  (1u << ALGO_SHARP)
#define RAIL   (1u << ALGO_HIER_SHARP)
#define NVLS   (1u << ALGO_NVLS_SHARP)
#define RING   (1u << ALGO_RING)

static const uint16_t hosts[RANKS] = {0, 1, 2, 3, 4, 5, 6, 7};
static const uint16_t all_trees[COLL_TREES] = {0, 1, 2, 3, 4, 5, 6, 7};
static struct rte_mempool *pool;
static struct world *world; /* the one that is up */

struct fixture {
    struct fabric *f;
    struct world *w;
};

/* Sets the slots of every reducing switch, or of the named one; 0: as in the conf. */
static void set_slots(struct fabric *f, const char *name, uint32_t slots, uint32_t groups)
{
    for (unsigned i = 0; i < f->n_nodes; i++) {
        struct fab_reduce *q = &f->nodes[i].reduce;

        if (!q->on || (name && strcmp(f->nodes[i].name, name)))
            continue;
        q->max_slots = slots ? slots : q->max_slots;
        q->window = q->window < q->max_slots ? q->window : q->max_slots;
        q->max_groups = groups ? groups : q->max_groups;
    }
}

static void up(struct fixture *b, const char *conf, const char *name, uint32_t slots,
               uint32_t groups, uint32_t mbufs)
{
    struct world_cfg wc = {.nranks = RANKS,
                           .host_of_rank = hosts,
                           .pool = pool,
                           .seed = 1,
                           .an_mbufs = mbufs ? mbufs : pool->size};

    b->f = fabric_load(conf, NULL);
    assert_non_null(b->f);
    set_slots(b->f, name, slots, groups);
    wc.fab = b->f;
    assert_int_equal(world_create(&b->w, &wc), 0);
    world = b->w;
}

static void down(struct fixture *b)
{
    assert_int_equal(world_busy_ans(b->w), 0);
    world_destroy(b->w);
    fabric_free(b->f);
}

static struct job_cfg cfg_of(const struct fixture *b, unsigned algos, unsigned trees)
{
    return (struct job_cfg){.w = b->w,
                            .fab = b->f,
                            .nranks = RANKS,
                            .host_of_rank = hosts,
                            .group = 1,
                            .key = 7,
                            .n_trees = trees,
                            .trees = all_trees,
                            .algos = algos | RING,
                            .buffer_bytes = 4 << 20,
                            .limit_ps = 20 * PS_PER_S};
}

static struct job *job_up(const struct job_cfg *jc)
{
    char err[COMM_TEXT] = "";
    struct job *j = NULL;

    if (job_create(&j, jc, err))
        fail_msg("%s", err);
    return j;
}

static void run(struct job *j, struct job_op op)
{
    struct job_result res;

    assert_int_equal(job_run(j, &op, &res), 0);
    if (res.wrong || res.failed_ranks)
        fail_msg("%s by %s: %lu wrong, %d failed: %s", coll_name(op.kind), sched_algo_name(op.algo),
                 res.wrong, res.failed_ranks, res.text);
}

/* One long and one of each shorter kind; all types of one size each. */
static void run_all(struct job *j, enum coll_algo algo)
{
    static const enum coll_kind kinds[] = {COLL_ALLREDUCE, COLL_REDUCE, COLL_BROADCAST,
                                           COLL_REDUCE_SCATTER, COLL_ALLGATHER};
    static const enum dtype types[] = {DT_INT32, DT_FP32, DT_BF16, DT_INT8, DT_FP64};

    for (unsigned k = 0; k < (algo == ALGO_SHARP ? LEN(kinds) : 1); k++)
        for (int in_place = 0; in_place < 2; in_place++)
            run(j, (struct job_op){.kind = kinds[k],
                                   .algo = algo,
                                   .type = types[(k + (unsigned)in_place) % LEN(types)],
                                   .op = OP_SUM,
                                   .root = 5,
                                   .in_place = in_place,
                                   .count = kinds[k] == COLL_ALLREDUCE ? 50003 : 5003,
                                   .seed = k});
    if (algo == ALGO_SHARP)
        run(j, (struct job_op){.kind = COLL_BARRIER, .algo = algo});
}

/* The grants that every rank reports; they are the same on all of them. */
static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

static void expect(struct job *j, unsigned trees, uint32_t window, uint32_t rail, const char *why)
{
    /* A rank with all its requests granted may be ready before it learns that others got less. */
    job_drive(j, world_now(world) + PS_PER_MS, never, NULL);
    for (unsigned r = 0; r < RANKS; r++) {
        const char *fell = comm_fell_back(job_comm(j, r));
        struct coll_grant g;

        comm_granted(job_comm(j, r), &g);
        if (g.trees != trees || g.window != window || g.rail != rail || !strstr(g.why, why) ||
            (!*why && *g.why))
            fail_msg("rank %u: %u trees, window %u, rail %u, \"%s\"; expected %u, %u, %u, \"%s\"",
                     r, g.trees, g.window, g.rail, g.why, trees, window, rail, why);
        if (!trees && !rail && !fell)
            fail_msg("rank %u does not say that it fell back", r);
        if ((trees || rail) && fell)
            fail_msg("rank %u fell back: %s", r, fell);
    }
}

/* Long enough that the window limits the rate; the model predicts it within 3 %. */
static void predicted(const struct fixture *b, struct job *j, enum coll_algo algo)
{
    struct job_op op = {
        .kind = COLL_ALLREDUCE, .algo = algo, .type = DT_FP32, .op = OP_SUM, .count = 1 << 19};
    struct coll_args a = {.kind = op.kind, .algo = algo, .count = op.count, .type = op.type};
    struct coll_prediction p;
    struct job_result res;
    struct coll_grant g;

    comm_granted(job_comm(j, 0), &g);
    a.send = &a, a.recv = &p;
    assert_int_equal(coll_predict_trees(b->f, &a, RANKS, hosts,
                                        algo == ALGO_SHARP ? g.tree : all_trees,
                                        algo == ALGO_SHARP ? g.trees : 1,
                                        algo == ALGO_SHARP ? g.window : g.rail, &p),
                     0);
    assert_int_equal(job_run(j, &op, &res), 0);
    if (res.time_ps > p.time_ps * 1.03 || res.time_ps < p.time_ps * 0.97)
        fail_msg("%.2f us, predicted %.2f (window %u on %u trees, rail %u)",
                 (double)res.time_ps * 1e-6, (double)p.time_ps * 1e-6, g.window, g.trees, g.rail);
}

static const struct {
    const char *conf, *name; /* of the switch with so few slots; NULL: all */
    uint32_t slots, groups;
    unsigned algos, trees; /* set up; requested */
    unsigned got;
    uint32_t window, rail; /* expected */
    const char *why;
} alone[] = {
    {"conf/leaf-spine-8.conf", NULL, 256, 0, SHARP, 2, 2, 122, 0, ""},
    {"conf/leaf-spine-8.conf", NULL, 122, 0, SHARP, 2, 2, 61, 0, "leaf0 has 122 slots for 2 trees"},
    {"conf/leaf-spine-8.conf", NULL, 64, 0, SHARP, 2, 2, 32, 0, "leaf0 has 64 slots for 2 trees"},
    {"conf/leaf-spine-8.conf", NULL, 32, 0, SHARP, 2, 2, 16, 0, "leaf0 has 32 slots for 2 trees"},
    {"conf/leaf-spine-8.conf", NULL, 31, 0, SHARP, 2, 1, 31, 0, "leaf0 has 31 slots for 2 trees"},
    {"conf/leaf-spine-8.conf", NULL, 16, 0, SHARP, 2, 1, 16, 0, "leaf0 has 16 slots for 2 trees"},
    {"conf/leaf-spine-8.conf", NULL, 8, 0, SHARP, 2, 1, 8, 0, "leaf0 has 8 slots for 2 trees"},
    {"conf/leaf-spine-8.conf", NULL, 7, 0, SHARP, 2, 0, 0, 0, "grants 7 slots"},
    {"conf/leaf-spine-8.conf", NULL, 1, 0, SHARP, 1, 0, 0, 0, "grants 1 slots"},
    {"conf/leaf-spine-8.conf", "leaf1", 64, 0, SHARP, 2, 2, 32, 0,
     "leaf1 has 64 slots for 2 trees"},
    {"conf/leaf-spine-8.conf", "spine0", 8, 0, SHARP, 2, 1, 122, 0,
     "spine0 has 8 slots for a group"},
    {"conf/leaf-spine-8.conf", "spine1", 40, 0, SHARP, 2, 2, 40, 0,
     "spine1 has 40 slots for a group"},
    {"conf/leaf-spine-8.conf", NULL, 0, 1, SHARP, 2, 1, 122, 0, "leaf0 has 1 groups, 2 needed"},
    {"conf/rail-2x4.conf", NULL, 256, 0, RAIL, 1, 0, 0, 256, "leaf0 has 256 slots for a group"},
    {"conf/rail-2x4.conf", "leaf2", 16, 0, RAIL, 1, 0, 0, 16, "leaf2 has 16 slots for a group"},
    {"conf/rail-2x4.conf", NULL, 64, 0, NVLS, 1, 0, 0, 64, "leaf0 has 64 slots for a group"},
    {"conf/rail-2x4.conf", NULL, 4, 0, NVLS, 1, 0, 0, 0, "grants 4 slots"},
    {"conf/rail-2x4.conf", NULL, 90, 0, SHARP | RAIL, 2, 2, 30, 30,
     "leaf0 has 90 slots for 3 groups"},
};

static void a_job_alone_shares_the_slots_among_its_trees(void **state)
{
    (void)state;
    for (unsigned i = 0; i < LEN(alone); i++) {
        struct fixture b;
        struct job_cfg jc;
        struct job *j;

        print_message("%s, %s: %u slots\n", alone[i].conf, alone[i].name ? alone[i].name : "all",
                      alone[i].slots);
        up(&b, alone[i].conf, alone[i].name, alone[i].slots, alone[i].groups, 0);
        jc = cfg_of(&b, alone[i].algos, alone[i].trees);
        jc.any_order = !alone[i].got && !alone[i].rail; /* others reduce in another order */
        j = job_up(&jc);
        expect(j, alone[i].got, alone[i].window, alone[i].rail, alone[i].why);
        for (unsigned a = 0; a < ALGO_COUNT; a++)
            if (alone[i].algos >> a & 1)
                run_all(j, (enum coll_algo)a);
        if (alone[i].got)
            predicted(&b, j, ALGO_SHARP);
        assert_int_equal(job_destroy(j), 0);
        down(&b);
    }
}

/* ---- several jobs ---- */

/* Another tenant on these hosts holds a group of so many slots on each of its trees. */
static const struct {
    uint32_t slots, groups, mbufs; /* of each switch */
    unsigned first, ranks, trees;  /* the tenant's */
    uint32_t holds;
    unsigned got; /* of two trees */
    uint32_t window;
    const char *why;
} others[] = {
    /* all of the ranks' switches alike */
    {400, 0, 0, 0, 8, 1, 100, 2, 122, ""},
    {200, 0, 0, 0, 8, 1, 150, 2, 25, "leaf0 has 50 of 200 slots left"},
    {200, 0, 0, 0, 8, 1, 180, 2, 10, "leaf0 has 20 of 200 slots left"},
    /* the last tree gets nothing more */
    {200, 0, 0, 0, 8, 1, 186, 1, 8, "leaf0 has 6 of 200 slots left, 8 needed"},
    {200, 0, 0, 0, 8, 1, 192, 1, 8, "leaf0 has 0 of 200 slots left, 8 needed"},
    {200, 0, 0, 0, 8, 1, 193, 0, 0, "has 7 of 200 slots left, 8 needed"},
    {200, 0, 0, 0, 8, 2, 97, 0, 0, "has 6 of 200 slots left, 8 needed"},
    /* only where rank 0 does not hang */
    {200, 0, 0, 4, 4, 1, 150, 2, 25, "leaf1 has 50 of 200 slots left"},
    {200, 0, 0, 4, 4, 1, 190, 1, 8, "leaf1 has 2 of 200 slots left, 8 needed"},
    {200, 0, 0, 4, 4, 1, 193, 0, 0, "has 7 of 200 slots left, 8 needed"},
    /* groups, buffers */
    {0, 2, 0, 0, 8, 1, 64, 1, 122, "leaf0 has 2 groups, at most 2"},
    {0, 2, 0, 4, 4, 1, 64, 1, 122, "leaf1 has 2 groups, at most 2"},
    {0, 2, 0, 0, 8, 2, 64, 0, 0, "has 2 groups, at most 2"},
    {0, 0, 3100, 0, 8, 1, 122, 2, 122, ""},
    /* the tenant, which is idle, gives back; twice */
    {0, 0, 2200, 0, 8, 1, 122, 2, 64,
     "leaf0 has 1656 of 2200 buffers left, 556 of them for others"},
    {0, 0, 2200, 4, 4, 1, 122, 2, 64, "leaf1 has 1650 of 2200 buffers left"},
    {0, 0, 250, 0, 8, 1, 64, 1, 8, "leaf0 has 58 of 250 buffers left, 96 needed"},
};

static const unsigned in_order[RANKS] = {0, 1, 2, 3, 4, 5, 6, 7};

static struct job *tenant(const struct fixture *b, struct job *beside, uint32_t group,
                          unsigned first, unsigned ranks, unsigned trees, uint32_t holds)
{
    struct job_cfg jc = cfg_of(b, SHARP, trees);

    jc.nranks = ranks;
    jc.host_of_rank = hosts + first;
    jc.world_rank = in_order + first;
    jc.sibling = beside;
    jc.group = group;
    jc.key = group;
    jc.window = holds;
    return job_up(&jc);
}

static void a_job_fits_into_what_others_leave_and_says_so(void **state)
{
    (void)state;
    for (unsigned i = 0; i < LEN(others); i++)
        for (unsigned again = 0; again < 1 + (i % 3 == 2); again++) { /* some twice: alike */
            static uint64_t trace;
            struct fixture b;
            struct job_cfg jc;
            struct job *a, *j;

            print_message("%u slots, %u held by %u ranks on %u trees\n", others[i].slots,
                          others[i].holds, others[i].ranks, others[i].trees);
            up(&b, "conf/leaf-spine-8.conf", NULL, others[i].slots, others[i].groups,
               others[i].mbufs);
            a = tenant(&b, NULL, 2, others[i].first, others[i].ranks, others[i].trees,
                       others[i].holds);
            jc = cfg_of(&b, SHARP, 2);
            jc.sibling = a;
            jc.any_order = !others[i].got;
            j = job_up(&jc);
            expect(j, others[i].got, others[i].window, 0, others[i].why);
            run_all(j, ALGO_SHARP);
            if (others[i].got)
                predicted(&b, j, ALGO_SHARP);
            run(a, (struct job_op){.kind = COLL_ALLREDUCE,
                                   .algo = ALGO_SHARP,
                                   .type = DT_INT32,
                                   .op = OP_SUM,
                                   .count = 30011});
            if (again)
                assert_int_equal(trace, world_trace_hash(b.w));
            trace = world_trace_hash(b.w);
            assert_int_equal(job_destroy(j), 0);
            assert_int_equal(job_destroy(a), 0);
            down(&b);
        }
}

/* Without another algorithm SHARP fails only if nothing fits, with the switch's reason. */
static void sharp_alone_fails_only_where_nothing_fits(void **state)
{
    static const enum coll_algo only[] = {ALGO_SHARP};
    static const struct {
        uint32_t slots;
        const char *why; /* NULL: it runs */
    } rows[] = {{64, NULL}, {8, NULL}, {7, "grants 7 slots"}, {1, "leaf0 grants 1 slot"}};

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        char err[COMM_TEXT] = "";
        struct job *j = NULL;
        struct job_cfg jc;
        struct fixture b;

        up(&b, "conf/leaf-spine-8.conf", NULL, rows[i].slots, 0, 0);
        jc = cfg_of(&b, SHARP, 2);
        jc.policy = only;
        jc.n_policy = 1;
        if (rows[i].why) {
            assert_int_not_equal(job_create(&j, &jc, err), 0);
            if (!strstr(err, rows[i].why))
                fail_msg("%s", err);
        } else {
            j = job_up(&jc);
            run_all(j, ALGO_SHARP);
            assert_int_equal(job_destroy(j), 0);
        }
        down(&b);
    }
}

/* Jobs that run one after the other get everything; each returns its grants. */
static void what_is_given_back_serves_the_next_job(void **state)
{
    struct fixture b;

    (void)state;
    up(&b, "conf/leaf-spine-8.conf", NULL, 64, 0, 0);
    for (unsigned i = 0; i < 4; i++) {
        struct job_cfg jc = cfg_of(&b, SHARP, 2);
        struct job *j;

        jc.group = i + 1;
        j = job_up(&jc);
        expect(j, 2, 32, 0, "leaf0 has 64 slots for 2 trees");
        run_all(j, ALGO_SHARP);
        assert_int_equal(job_destroy(j), 0);
    }
    down(&b);
}

/* Where the other switches had granted it already. */
static void a_tree_that_is_given_up_is_left_everywhere(void **state)
{
    struct coll_grant g;
    struct job_cfg jc;
    struct job *a, *j, *k;
    struct fixture b;

    (void)state;
    up(&b, "conf/leaf-spine-8.conf", NULL, 200, 0, 0);
    a = tenant(&b, NULL, 2, 4, 4, 1, 190); /* at leaf1 */
    jc = cfg_of(&b, SHARP, 2);
    jc.sibling = a;
    j = job_up(&jc);
    expect(j, 1, 8, 0, "leaf1 has 2 of 200 slots left");
    run_all(j, ALGO_SHARP);
    comm_granted(job_comm(j, 0), &g);
    /* At leaf0 the one tree has what was granted there before the ranks agreed on less. */
    k = tenant(&b, a, 3, 0, 4, 1, 90);
    comm_granted(job_comm(k, 0), &g);
    assert_int_equal(g.window, 90);
    run(k,
        (struct job_op){
            .kind = COLL_ALLREDUCE, .algo = ALGO_SHARP, .type = DT_INT8, .op = OP_MAX, .count = 9});
    assert_int_equal(job_destroy(k), 0);
    assert_int_equal(job_destroy(j), 0);
    assert_int_equal(job_destroy(a), 0);
    down(&b);
}

/* Another tenant is on two GPUs of one rail: all rails use the window that is left there. */
static void rails_have_the_window_of_the_fullest_one(void **state)
{
    static const unsigned pair[2] = {2, 6};
    static const uint16_t pair_hosts[2] = {2, 6};
    struct job_cfg jc;
    struct job *a, *j;
    struct fixture b;

    (void)state;
    up(&b, "conf/rail-2x4.conf", NULL, 256, 0, 0);
    jc = cfg_of(&b, SHARP, 1);
    jc.nranks = 2;
    jc.host_of_rank = pair_hosts;
    jc.world_rank = pair;
    jc.group = jc.key = 5;
    jc.window = 232;
    a = job_up(&jc);
    jc = cfg_of(&b, RAIL, 1);
    jc.sibling = a;
    j = job_up(&jc);
    expect(j, 0, 0, 24, "leaf2 has 24 of 256 slots left");
    run_all(j, ALGO_HIER_SHARP);
    predicted(&b, j, ALGO_HIER_SHARP);
    assert_int_equal(job_destroy(j), 0);
    assert_int_equal(job_destroy(a), 0);
    down(&b);
}

/* The first of two trees is refused at its root, the second one serves alone. */
static void the_tree_of_a_full_spine_is_left_out(void **state)
{
    struct coll_grant g;
    struct job_cfg jc;
    struct job *a, *j;
    struct fixture b;

    (void)state;
    up(&b, "conf/leaf-spine-8.conf", "spine0", 0, 1, 0);
    a = tenant(&b, NULL, 2, 0, 8, 1, 16);
    jc = cfg_of(&b, SHARP, 2);
    jc.sibling = a;
    j = job_up(&jc);
    expect(j, 1, 122, 0, "spine0: spine0 has 1 groups, at most 1");
    comm_granted(job_comm(j, 3), &g);
    assert_int_equal(g.tree[0], 1);
    run_all(j, ALGO_SHARP);
    predicted(&b, j, ALGO_SHARP);
    assert_int_equal(job_destroy(j), 0);
    assert_int_equal(job_destroy(a), 0);
    down(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_alone_shares_the_slots_among_its_trees),
        cmocka_unit_test(a_job_fits_into_what_others_leave_and_says_so),
        cmocka_unit_test(sharp_alone_fails_only_where_nothing_fits),
        cmocka_unit_test(rails_have_the_window_of_the_fullest_one),
        cmocka_unit_test(the_tree_of_a_full_spine_is_left_out),
        cmocka_unit_test(a_tree_that_is_given_up_is_left_everywhere),
        cmocka_unit_test(what_is_given_back_serves_the_next_job),
    };

    test_eal_init();
    pool = test_pool(60000);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
