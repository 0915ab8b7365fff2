/* SPDX-License-Identifier: BSD-3-Clause */
/* The effect of each entry of a fault plan on a fabric in virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "sim/job/sim_job.h"
#include "sim/world/fault_player.h"
#include "tests/support/eal.h"

#define RANKS 8

static struct rte_mempool *pool;

struct fixture {
    struct fabric *f;
    struct world *w;
    struct job *j;
    struct faults *faults;
    uint16_t hosts[RANKS];
};

static void notify_death(void *ctx, unsigned rank)
{
    job_notify_death(((struct fixture *)ctx)->j, rank);
}

static void fixture_up(struct fixture *b, const char *plan)
{
    struct world_cfg wc = {
        .nranks = RANKS, .host_of_rank = b->hosts, .pool = pool, .an_mbufs = pool->size, .seed = 1};
    struct job_cfg jc = {.nranks = RANKS,
                         .host_of_rank = b->hosts,
                         .group = 1,
                         .key = 7,
                         .algos = 1u << ALGO_RING | 1u << ALGO_SHARP | 1u << ALGO_PAIRWISE,
                         .any_order = true,
                         .buffer_bytes = 1u << 20,
                         .limit_ps = 20 * PS_PER_S};
    struct faults_cfg fc = {
        .nranks = RANKS, .host_of_rank = b->hosts, .notify_death = notify_death, .ctx = b};
    struct fab_errors *e = calloc(1, sizeof(*e));
    struct fault_plan p;
    char err[COMM_TEXT];

    memset(b, 0, sizeof(*b));
    for (unsigned r = 0; r < RANKS; r++)
        b->hosts[r] = (uint16_t)r;
    b->f = fabric_load("conf/leaf-spine-8.conf", NULL);
    assert_non_null(b->f);
    if (fault_plan_load_string(&p, plan, "plan", b->f, RANKS, e))
        fail_msg("%s", e->e[0].text);
    wc.fab = jc.fab = fc.fab = b->f;
    assert_int_equal(world_create(&b->w, &wc), 0);
    jc.w = fc.w = b->w;
    assert_int_equal(faults_create(&b->faults, &p, &fc), 0);
    if (job_create(&b->j, &jc, err))
        fail_msg("%s", err);
    faults_start(b->faults);
    fault_plan_free(&p);
    free(e);
}

static void fixture_down(struct fixture *b)
{
    unsigned free_before;

    assert_int_equal(job_destroy(b->j), 0);
    assert_int_equal(world_busy_ans(b->w), 0);
    assert_int_equal(world_objects(b->w), 0);
    faults_destroy(b->faults);
    world_destroy(b->w);
    fabric_free(b->f);
    free_before = rte_mempool_avail_count(pool);
    assert_int_equal(free_before, pool->size);
}

static int run(struct fixture *b, enum coll_algo algo, size_t count, struct job_result *res)
{
    struct job_op op = {.algo = algo, .type = DT_FP32, .count = count, .seed = 3};

    return job_run(b->j, &op, res);
}

static int64_t exact(struct fixture *b, enum coll_algo algo, size_t count)
{
    struct job_result res;

    assert_int_equal(run(b, algo, count, &res), 0);
    if (res.wrong || res.failed_ranks)
        fail_msg("%lu wrong, %d failed: %s", res.wrong, res.failed_ranks, res.text);
    return res.time_ps;
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

static void pass(struct fixture *b, int64_t time)
{
    job_drive(b->j, world_now(b->w) + time, never, NULL);
}

static void a_slow_host_holds_all_up_while_it_is_slow(void **state)
{
    struct fixture b;
    int64_t fast, slow;

    (void)state;
    fixture_up(&b, "faults = ({ at = \"100us\"; host = \"h3\"; slow = 8; },"
                   "          { at = \"1ms\"; host = \"h3\"; slow = 1; });");
    fast = exact(&b, ALGO_RING, 65536);
    pass(&b, 150 * PS_PER_US);
    slow = exact(&b, ALGO_RING, 65536);
    print_message("%.2f us, with a slow host %.2f us\n", (double)fast * 1e-6, (double)slow * 1e-6);
    assert_true(slow > 4 * fast && slow < 12 * fast);
    pass(&b, PS_PER_MS);
    assert_int_equal(exact(&b, ALGO_RING, 65536), fast);
    fixture_down(&b);
}

/* A rank that waits for a refused group fails over; what ranks cannot run stays unsupported. */
static void an_aggregation_node_without_buffers_refuses(void **state)
{
    const struct coll_args a = {.algo = ALGO_PAIRWISE, .count = 1, .type = DT_FP32};
    struct fixture b;

    (void)state;
    fixture_up(&b, "faults = ({ an = \"leaf1\"; mbufs = 40; });");
    for (unsigned r = 0; r < RANKS; r++) {
        assert_non_null(comm_fell_back(job_comm(b.j, r)));
        assert_false(comm_supports(job_comm(b.j, r), &a));
    }
    assert_non_null(strstr(comm_fell_back(job_comm(b.j, 0)), "leaf1 has 40 of 40 buffers left"));
    exact(&b, ALGO_SHARP, 5000);
    fixture_down(&b);
}

static void a_switch_that_restarts_has_forgotten_its_groups(void **state)
{
    struct fixture b;

    (void)state;
    fixture_up(&b, "faults = ({ at = \"5us\"; node = \"spine0\"; restart = \"20us\"; });");
    assert_null(comm_fell_back(job_comm(b.j, 0)));
    assert_int_equal(
        net_an_idle(world_net(b.w), fabric_node_index(b.f, fabric_node(b.f, "spine0"))), 0);
    pass(&b, 7 * PS_PER_US);
    assert_int_equal(
        net_an_idle(world_net(b.w), fabric_node_index(b.f, fabric_node(b.f, "spine0"))), 1);
    exact(&b, ALGO_SHARP, 65536);
    assert_non_null(comm_fell_back(job_comm(b.j, 0)));
    fixture_down(&b);
}

static void ranks_hear_of_a_death(void **state)
{
    struct job_result res;
    struct fixture b;

    (void)state;
    fixture_up(&b, "faults = ({ at = \"5us\"; host = \"h5\"; die = true; told = \"50us\"; });");
    assert_int_equal(run(&b, ALGO_RING, 65536, &res), 0);
    assert_int_equal(res.dead_ranks, 1);
    assert_int_equal(res.failed_ranks, RANKS - 1);
    assert_int_equal(res.unnamed, 0);
    assert_true(res.time_ps < PS_PER_MS);
    fixture_down(&b);
}

/* No rank is notified: idle connections are probed, and the failure passes around the ring. */
static void a_death_that_nobody_tells_is_found_out(void **state)
{
    struct job_result res;
    struct fixture b;

    (void)state;
    fixture_up(&b, "faults = ({ at = \"5us\"; link = \"all\"; down = true; });");
    assert_int_equal(run(&b, ALGO_RING, 65536, &res), 0);
    assert_int_equal(res.failed_ranks, RANKS);
    assert_int_equal(res.unnamed, 0);
    assert_true(res.time_ps < 2 * PS_PER_S);
    fixture_down(&b);
}

static bool leaf0_has_a_group(struct fixture *b)
{
    return !net_an_idle(world_net(b->w), fabric_node_index(b->f, fabric_node(b->f, "leaf0")));
}

/* In the middle of an operation, from 2 us to as long as the tree's connections try. */
static void a_blip_of_a_hosts_own_link_takes_time_and_nothing_else(void **state)
{
    static const char *const back[] = {"7us", "300us", "5ms", "20ms"};
    int64_t usual, took;
    char plan[160];
    struct fixture b;

    (void)state;
    fixture_up(&b, "faults = ({ link = \"h0-leaf0\"; up = true; });");
    usual = exact(&b, ALGO_SHARP, 262144);
    fixture_down(&b);
    for (unsigned i = 0; i < 4; i++) {
        snprintf(plan, sizeof(plan),
                 "faults = ({ at = \"5us\"; link = \"h0-leaf0\"; down = true; },"
                 "          { at = \"%s\"; link = \"h0-leaf0\"; up = true; });",
                 back[i]);
        fixture_up(&b, plan);
        took = exact(&b, ALGO_SHARP, 262144);
        assert_true(took > usual);
        for (unsigned r = 0; r < RANKS; r++)
            assert_null(comm_fell_back(job_comm(b.j, r)));
        assert_true(exact(&b, ALGO_SHARP, 262144) < usual + usual / 100);
        fixture_down(&b);
    }
}

/* The NIC's report of an ended process is lost on a link that is down or goes down just then: the
 * NIC repeats it. */
static void a_process_that_ends_in_a_blip_is_missed(void **state)
{
    static const char *const dies[] = {"4900ns", "8us"};
    struct job_result res;
    char plan[200];
    struct fixture b;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        snprintf(plan, sizeof(plan),
                 "faults = ({ at = \"%s\"; rank = 0; die = true; told = \"50us\"; },"
                 "          { at = \"5us\"; link = \"h0-leaf0\"; down = true; },"
                 "          { at = \"300us\"; link = \"h0-leaf0\"; up = true; });",
                 dies[i]);
        fixture_up(&b, plan);
        assert_int_equal(run(&b, ALGO_SHARP, 262144, &res), 0);
        assert_int_equal(res.dead_ranks, 1);
        assert_int_equal(res.unnamed, 0);
        pass(&b, PS_PER_MS);
        assert_false(leaf0_has_a_group(&b));
        fixture_down(&b);
    }
}

/* No frame is in flight whose loss would be noticed, so the switch relies on its timer. */
static void a_host_whose_own_link_stays_down_is_lost(void **state)
{
    struct job_result res;
    struct fixture b;

    (void)state;
    fixture_up(&b, "faults = ({ at = \"5us\"; link = \"h0-leaf0\"; down = true; },"
                   "          { at = \"90ms\"; link = \"h0-leaf0\"; up = true; },"
                   "          { at = \"95ms\"; link = \"h0-leaf0\"; down = true; },"
                   "          { at = \"96ms\"; link = \"h1-leaf0\"; down = true; },"
                   "          { at = \"250ms\"; link = \"h0-leaf0\"; up = true; },"
                   "          { at = \"250ms\"; link = \"h1-leaf0\"; up = true; });");
    pass(&b, 190 * PS_PER_MS);
    assert_true(leaf0_has_a_group(&b));
    pass(&b, 6 * PS_PER_MS);
    assert_false(leaf0_has_a_group(&b));
    assert_int_equal(run(&b, ALGO_SHARP, 5000, &res), 0);
    assert_int_equal(res.failed_ranks, RANKS);
    assert_non_null(strstr(res.text, "rank 0 (h0) missing at leaf0"));
    fixture_down(&b);
}

static void a_link_is_as_the_plan_says_when_it_says_so(void **state)
{
    struct fixture b;
    const struct egress *q;

    (void)state;
    fixture_up(&b, "faults = ({ link = \"h0-leaf0\"; jitter = \"50ns\"; },"
                   "{ at = \"10us\"; link = \"h0-leaf0\"; loss = \"3%\"; },"
                   "{ at = \"20us\"; link = \"h0-leaf0\"; clear = true; });");
    q = net_egress(world_net(b.w), fabric_node_index(b.f, fabric_node(b.f, "h0")), 0);
    assert_true(egress_faults(q)->jitter_ps == 50 * PS_PER_NS && egress_faults(q)->loss == 0);
    pass(&b, 10 * PS_PER_US - 1);
    assert_true(egress_faults(q)->loss == 0);
    pass(&b, 1);
    assert_true(egress_faults(q)->loss == 0.03 && egress_faults(q)->jitter_ps == 50 * PS_PER_NS);
    pass(&b, 10 * PS_PER_US);
    assert_true(egress_faults(q)->loss == 0 && egress_faults(q)->jitter_ps == 0);
    exact(&b, ALGO_SHARP, 5000);
    fixture_down(&b);
}

/* At the ports that the link joins, which differ at its ends, and at no other. */
static void a_fault_of_a_link_is_at_both_of_its_ports_and_nowhere_else(void **state)
{
    const struct fab_link *k;
    struct fixture b;

    (void)state;
    fixture_up(&b, "faults = ({ link = \"leaf1-spine1\"; loss = \"3%\"; });");
    k = &b.f->links[fabric_link_by_name(b.f, "leaf1-spine1")];
    assert_int_not_equal(k->a_port, k->b_port);
    for (uint16_t i = 0; i < b.f->n_nodes; i++)
        for (uint16_t p = 0; p < b.f->nodes[i].n_ports; p++) {
            const struct egress *q = net_egress(world_net(b.w), i, p);
            bool there = (i == k->a && p == k->a_port) || (i == k->b && p == k->b_port);

            if (q && (egress_faults(q)->loss > 0) != there)
                fail_msg("%s port %u: loss %g", b.f->nodes[i].name, p, egress_faults(q)->loss);
        }
    exact(&b, ALGO_RING, 5000);
    fixture_down(&b);
}

/* The last of them holds, as in the file. */
static void entries_of_one_moment_are_applied_in_the_order_of_the_plan(void **state)
{
    const struct egress *q;
    struct fixture b;

    (void)state;
    fixture_up(&b, "faults = ({ at = \"10us\"; link = \"h0-leaf0\"; loss = \"3%\"; },"
                   "{ at = \"10us\"; link = \"h0-leaf0\"; loss = \"1%\"; },"
                   "{ at = \"10us\"; link = \"h1-leaf0\"; down = true; },"
                   "{ at = \"10us\"; link = \"h1-leaf0\"; up = true; });");
    pass(&b, 11 * PS_PER_US);
    q = net_egress(world_net(b.w), fabric_node_index(b.f, fabric_node(b.f, "h0")), 0);
    assert_true(egress_faults(q)->loss == 0.01);
    q = net_egress(world_net(b.w), fabric_node_index(b.f, fabric_node(b.f, "h1")), 0);
    assert_false(egress_is_down(q));
    exact(&b, ALGO_SHARP, 5000);
    fixture_down(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_host_holds_all_up_while_it_is_slow),
        cmocka_unit_test(an_aggregation_node_without_buffers_refuses),
        cmocka_unit_test(a_switch_that_restarts_has_forgotten_its_groups),
        cmocka_unit_test(ranks_hear_of_a_death),
        cmocka_unit_test(a_death_that_nobody_tells_is_found_out),
        cmocka_unit_test(a_blip_of_a_hosts_own_link_takes_time_and_nothing_else),
        cmocka_unit_test(a_process_that_ends_in_a_blip_is_missed),
        cmocka_unit_test(a_host_whose_own_link_stays_down_is_lost),
        cmocka_unit_test(a_link_is_as_the_plan_says_when_it_says_so),
        cmocka_unit_test(a_fault_of_a_link_is_at_both_of_its_ports_and_nowhere_else),
        cmocka_unit_test(entries_of_one_moment_are_applied_in_the_order_of_the_plan),
    };

    test_eal_init();
    pool = test_pool(60000);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
