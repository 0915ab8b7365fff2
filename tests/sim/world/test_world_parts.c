/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of a world: its clock and alarm, which ranks are awake, how long something of a rank sleeps, what
 * it has and what is left in it; and the pool of threads, which runs each part once.
 */
#include "sim/world/worker_pool.h"
#include "sim/world/world.h"
#include "tests/fabric/load.h"
#include "tests/support/eal.h"

#include <errno.h>
#include <rte_lcore.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define NRANKS 70u /* two words of ranks */

static struct rte_mempool *pool;

struct bed {
    struct fabric *f;
    struct world *w;
    uint16_t host[NRANKS];
};

static void open_bed(struct bed *b)
{
    struct world_cfg cfg = {.nranks = NRANKS, .pool = pool, .seed = 3};

    *b = (struct bed){.f = load_file("conf/leaf-spine-8.conf")};
    for (unsigned r = 0; r < NRANKS; r++)
        b->host[r] = (uint16_t)(r % 8);
    cfg.fab = b->f;
    cfg.host_of_rank = b->host;
    assert_int_equal(world_create(&b->w, &cfg), 0);
}

static void close_bed(struct bed *b)
{
    world_destroy(b->w);
    fabric_free(b->f);
}

/* ---- time ---- */

struct alarm {
    struct world *w;
    unsigned rung;
    int64_t at_ps, next_ps;
};

static void ring(void *ctx)
{
    struct alarm *a = ctx;

    a->rung++;
    a->at_ps = world_now(a->w);
    if (a->next_ps)
        world_alarm(a->w, a->next_ps, ring, a);
    a->next_ps = 0;
}

static void the_clock_goes_to_the_limit(void **state)
{
    struct alarm a = {0};
    struct bed b;

    (void)state;
    open_bed(&b);
    a.w = b.w;
    assert_int_equal(world_now(b.w), 0);
    while (world_step(b.w, 5000))
        ;
    assert_int_equal(world_now(b.w), 5000);
    assert_false(world_step(b.w, 3000)); /* never back */
    assert_int_equal(world_now(b.w), 5000);
    world_alarm(b.w, 7000, ring, &a);
    while (world_step(b.w, 6999))
        ;
    assert_true(a.rung == 0 && world_now(b.w) == 6999);
    a.next_ps = 9000;
    while (world_step(b.w, 7000))
        ;
    assert_true(a.rung == 1 && a.at_ps == 7000);
    while (world_step(b.w, 9500))
        ;
    assert_true(a.rung == 2 && a.at_ps == 9000);
    world_alarm(b.w, 9800, ring, &a);
    world_alarm(b.w, PS_NEVER, NULL, NULL);
    while (world_step(b.w, 20000))
        ;
    assert_int_equal(a.rung, 2);
    close_bed(&b);
}

/* ---- ranks that are awake ---- */

static void sleep_for(struct bed *b, struct world_sleep *s, unsigned rank, int64_t ps)
{
    *s = (struct world_sleep){.w = b->w, .rank = rank};
    world_sleep(s, ps);
}

static void run_until(struct bed *b, int64_t t)
{
    while (world_step(b->w, t))
        ;
    assert_int_equal(world_now(b->w), t);
}

static void ranks_wake_in_their_order(void **state)
{
    struct world_sleep s[4];
    struct bed b;

    (void)state;
    open_bed(&b);
    assert_int_equal(world_awake(b.w, 0), NRANKS);
    sleep_for(&b, &s[0], 69, 1000);
    sleep_for(&b, &s[1], 3, 1000);
    sleep_for(&b, &s[2], 64, 1000);
    sleep_for(&b, &s[3], 63, 1000);
    run_until(&b, 999);
    assert_int_equal(world_awake(b.w, 0), NRANKS);
    run_until(&b, 1000);
    assert_int_equal(world_awake(b.w, 4), 63);
    assert_int_equal(world_awake(b.w, 63), 64);
    assert_int_equal(world_awake(b.w, 65), 69);
    assert_int_equal(world_awake(b.w, 64), NRANKS);
    assert_int_equal(world_awake(b.w, 70), NRANKS);
    assert_int_equal(world_awake(b.w, 4), NRANKS);
    assert_int_equal(world_awake(b.w, 3), 3); /* one before is still awake */
    assert_int_equal(world_awake(b.w, 0), NRANKS);
    for (unsigned i = 0; i < 4; i++)
        assert_false(s[i].on);
    close_bed(&b);
}

/* Two of one rank end apart; one that is woken before does not wake its rank. */
static void sleeps_end_at_their_times(void **state)
{
    struct world_sleep s[3];
    struct bed b;

    (void)state;
    open_bed(&b);
    run_until(&b, 500);
    sleep_for(&b, &s[0], 5, 3000);
    sleep_for(&b, &s[1], 5, 1000);
    sleep_for(&b, &s[2], 5, 2000);
    assert_true(s[0].on && s[1].on && s[2].on);
    run_until(&b, 1499);
    assert_true(s[1].on && world_awake(b.w, 0) == NRANKS);
    run_until(&b, 1500);
    assert_true(s[0].on && !s[1].on && s[2].on);
    assert_int_equal(world_awake(b.w, 0), 5);
    world_wake_up(&s[2]);
    assert_true(s[0].on && !s[2].on);
    world_wake_up(&s[2]); /* it is awake */
    run_until(&b, 3499);
    assert_int_equal(world_awake(b.w, 0), NRANKS);
    run_until(&b, 3500);
    assert_false(s[0].on);
    assert_int_equal(world_awake(b.w, 0), 5);
    world_sleep(&s[0], 100); /* again */
    world_wake_up(&s[0]);
    run_until(&b, 5000);
    assert_int_equal(world_awake(b.w, 0), NRANKS);
    close_bed(&b);
}

/* A rank that is dead sleeps on. */
static void the_dead_do_not_wake(void **state)
{
    struct world_sleep s;
    struct bed b;

    (void)state;
    open_bed(&b);
    sleep_for(&b, &s, 9, 1000);
    world_kill(b.w, 9);
    assert_true(world_dead(b.w, 9) && !world_dead(b.w, 8) && !world_dead(b.w, 10));
    run_until(&b, 5000);
    assert_true(s.on && world_awake(b.w, 0) == NRANKS);
    world_late(b.w, 69, 12);
    assert_true(world_late_ps(b.w, 69) == 12 && world_late_ps(b.w, 68) == 0);
    close_bed(&b);
}

/* ---- what it has ---- */

static void a_world_has_what_it_was_made_of(void **state)
{
    struct ibv_pd *pd[2];
    struct bed b;
    unsigned n = 9;

    (void)state;
    open_bed(&b);
    assert_int_equal(world_ranks(b.w), NRANKS);
    assert_int_equal(world_ports(b.w, 69), 1);
    assert_int_equal(world_threads(b.w), 1);
    assert_ptr_equal(world_contexts(b.w, 69, &n)[0], world_context(b.w, 69, 0));
    assert_int_equal(n, 1);
    assert_non_null(world_context(b.w, 69, 0));
    assert_null(world_context(b.w, 69, 1));
    assert_non_null(world_hca(b.w, 69, 0));
    assert_null(world_hca(b.w, 69, 1));
    assert_ptr_not_equal(world_hca(b.w, 68, 0), world_hca(b.w, 69, 0));
    assert_int_equal(world_objects(b.w), 0);
    pd[0] = ibv_alloc_pd(world_context(b.w, 0, 0));
    pd[1] = ibv_alloc_pd(world_context(b.w, 69, 0));
    assert_int_equal(world_objects(b.w), 2);
    ibv_dealloc_pd(pd[0]);
    ibv_dealloc_pd(pd[1]);
    assert_int_equal(world_objects(b.w), 0);
    assert_int_equal(world_busy_ans(b.w), 0);
    assert_true(world_ans_idle(b.w));
    assert_int_equal(world_frames(b.w), 0);
    assert_int_equal(world_frames_used(b.w), rte_mempool_in_use_count(pool));
    close_bed(&b);
}

static void hosts_have_so_many_slots(void **state)
{
    static const uint16_t hosts[] = {1, 0, 1, 1};
    struct fabric *f = load_text("name = \"x\"; slots_per_host = 2; single_switch = { hosts = 2; "
                                 "host_link = { rate = \"100Gb/s\"; latency = \"300ns\"; }; };");
    struct world_cfg cfg = {.fab = f, .nranks = 3, .host_of_rank = hosts, .pool = pool};
    struct world *w;

    (void)state;
    assert_int_equal(world_create(&w, &cfg), 0);
    world_destroy(w);
    cfg.nranks = 4;
    assert_int_equal(world_create(&w, &cfg), -ENOSPC);
    world_destroy(NULL);
    assert_int_equal(rte_mempool_in_use_count(pool), 0);
    fabric_free(f);
}

/* At the same addresses in each world, each range of its own. */
static void memory_is_where_it_was(void **state)
{
    static const size_t bytes[] = {1, 65535, 65536, 100000};
    char *at[2][LEN(bytes)];
    struct bed b;

    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        open_bed(&b);
        for (unsigned i = 0; i < LEN(bytes); i++) {
            at[k][i] = world_map(b.w, bytes[i], PROT_READ | PROT_WRITE);
            assert_non_null(at[k][i]);
            memset(at[k][i], 1, bytes[i]);
            assert_int_equal((uintptr_t)at[k][i] % 65536, 0);
        }
        for (unsigned i = 0; i < LEN(bytes); i++)
            munmap(at[k][i], bytes[i]);
        close_bed(&b);
    }
    for (unsigned i = 0; i < LEN(bytes); i++)
        assert_ptr_equal(at[0][i], at[1][i]);
    assert_int_equal(at[0][1] - at[0][0], 65536);
    assert_int_equal(at[0][2] - at[0][1], 65536);
    assert_int_equal(at[0][3] - at[0][2], 131072);
}

/* Slices lie on a grid of one length. */
static void slices_end_on_a_grid(void **state)
{
    struct bed b;
    int64_t cell;

    (void)state;
    open_bed(&b);
    cell = world_slice_end(b.w, 0);
    assert_true(cell > 1);
    assert_int_equal(world_slice_end(b.w, cell - 1), cell);
    assert_int_equal(world_slice_end(b.w, cell), 2 * cell);
    assert_int_equal(world_slice_end(b.w, 7 * cell + 1), 8 * cell);
    world_await(b.w, 3, true);
    world_await(b.w, 3, true); /* once */
    world_await(b.w, 3, false);
    world_await(b.w, 3, false);
    world_join(b.w); /* it is not apart */
    close_bed(&b);
}

/* ---- threads ---- */

struct round {
    atomic_uint ran[7], sum;
};

static void part(void *arg, unsigned k)
{
    struct round *r = arg;

    r->ran[k]++;
    r->sum += k + 1;
}

static void each_part_runs_once_a_round(void **state)
{
    (void)state;
    worker_pool_destroy(NULL);
    for (unsigned threads = 1; threads <= 3; threads++) {
        struct round r = {0};
        struct worker_pool *c;

        assert_int_equal(worker_pool_create(&c, threads, LEN(r.ran)), 0);
        assert_int_equal(worker_pool_size(c), threads);
        assert_int_equal(worker_pool_lcore(c, 0), rte_lcore_id());
        for (unsigned a = 0; a < threads; a++)
            for (unsigned k = 0; k < a; k++)
                assert_int_not_equal(worker_pool_lcore(c, a), worker_pool_lcore(c, k));
        for (unsigned n = 1; n <= 50; n++) {
            worker_pool_run(c, part, &r);
            for (unsigned k = 0; k < LEN(r.ran); k++)
                assert_int_equal(r.ran[k], n);
            assert_int_equal(r.sum, n * 28);
        }
        worker_pool_destroy(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_clock_goes_to_the_limit),
        cmocka_unit_test(ranks_wake_in_their_order),
        cmocka_unit_test(sleeps_end_at_their_times),
        cmocka_unit_test(the_dead_do_not_wake),
        cmocka_unit_test(a_world_has_what_it_was_made_of),
        cmocka_unit_test(hosts_have_so_many_slots),
        cmocka_unit_test(memory_is_where_it_was),
        cmocka_unit_test(slices_end_on_a_grid),
        cmocka_unit_test(each_part_runs_once_a_round),
    };

    test_eal_init();
    pool = test_pool(16384);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
