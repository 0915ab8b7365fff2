/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fault plan in a world: each entry changes what it names, nothing else, at its time after the start, and
 * those that have an end end then.
 */
#include "base/events.h"
#include "sim/world/fault_player.h"
#include "tests/fabric/load.h"
#include "tests/support/captured.h"
#include "tests/support/eal.h"

#define NRANKS 4u
#define AT(us) ((us)*PS_PER_US)

static struct rte_mempool *pool;
static const uint16_t hosts[NRANKS] = {0, 0, 1, 5};

struct bed {
    struct fabric *f;
    struct world *w;
    struct fault_plan plan;
    struct faults *faults;
    unsigned told;           /* notifications; */
    unsigned rank[NRANKS];   /* of whose death, */
    int64_t told_ps[NRANKS]; /* and when */
};

static void hear(void *ctx, unsigned rank)
{
    struct bed *b = ctx;

    assert_true(b->told < NRANKS);
    b->rank[b->told] = rank;
    b->told_ps[b->told++] = world_now(b->w);
}

static void run_until(struct bed *b, int64_t t)
{
    while (world_now(b->w) < t)
        world_step(b->w, t);
}

static void open_bed(struct bed *b)
{
    struct world_cfg cfg = {.nranks = NRANKS, .host_of_rank = hosts, .pool = pool, .seed = 3};

    *b = (struct bed){.f = load_file("conf/leaf-spine-8.conf")};
    cfg.fab = b->f;
    assert_int_equal(world_create(&b->w, &cfg), 0);
    run_until(b, AT(3)); /* plans begin at any time */
}

static void play(struct bed *b, bool with_ears)
{
    struct faults_cfg cfg = {
        .w = b->w, .fab = b->f, .nranks = NRANKS, .host_of_rank = hosts, .ctx = b};

    if (with_ears)
        cfg.notify_death = hear;
    assert_int_equal(faults_create(&b->faults, &b->plan, &cfg), 0);
    fault_plan_free(&b->plan);
}

static void close_bed(struct bed *b)
{
    if (b->faults)
        assert_int_equal(faults_state(b->faults), 0);
    faults_destroy(b->faults);
    world_destroy(b->w);
    fabric_free(b->f);
}

static void add(struct bed *b, struct fault_event e)
{
    assert_int_equal(fault_plan_add(&b->plan, &e), 0);
}

static const struct egress *queue(const struct bed *b, unsigned link, unsigned dir)
{
    const struct fab_link *l = &b->f->links[link];

    return net_egress(world_net(b->w), dir ? l->b : l->a, dir ? l->b_port : l->a_port);
}

/* ---- links ---- */

static void same_faults(const struct bed *b, unsigned link, double loss, double dup, double reorder,
                        double corrupt, int64_t jitter)
{
    for (unsigned dir = 0; dir < 2; dir++) {
        const struct egress_faults *q = egress_faults(queue(b, link, dir));

        if (q->loss != loss || q->dup != dup || q->reorder != reorder || q->corrupt != corrupt ||
            q->jitter_ps != jitter)
            fail_msg("link %u, direction %u: %g %g %g %g %ld", link, dir, q->loss, q->dup,
                     q->reorder, q->corrupt, (long)q->jitter_ps);
    }
}

static void rates_of_links_change_one_by_one(void **state)
{
    struct fault_event e = fault_event(FAULT_LINK, 2, FAULT_ALWAYS);
    struct bed b;

    (void)state;
    open_bed(&b);
    e.loss = 0.25;
    e.jitter_ps = 7000;
    add(&b, e);
    e = fault_event(FAULT_LINK, 2, FAULT_ALWAYS);
    e.dup = 0.5;
    add(&b, e);
    e = fault_event(FAULT_LINK, 3, FAULT_ALWAYS);
    e.reorder = 0.125;
    e.corrupt = 0.0625;
    add(&b, e);
    e = fault_event(FAULT_LINK, 3, AT(5));
    e.reorder = 0; /* no more of it */
    add(&b, e);
    e = fault_event(FAULT_LINK, 2, AT(6));
    e.clear = true;
    e.corrupt = 0.5;
    add(&b, e);
    play(&b, false);
    same_faults(&b, 1, 0, 0, 0, 0, 0);
    same_faults(&b, 2, 0.25, 0.5, 0, 0, 7000);
    same_faults(&b, 3, 0, 0, 0.125, 0.0625, 0);
    same_faults(&b, 4, 0, 0, 0, 0, 0);
    run_until(&b, AT(20)); /* not before the start */
    same_faults(&b, 3, 0, 0, 0.125, 0.0625, 0);
    faults_start(b.faults);
    run_until(&b, AT(25) - 1);
    same_faults(&b, 3, 0, 0, 0.125, 0.0625, 0);
    run_until(&b, AT(25) + 1);
    same_faults(&b, 3, 0, 0, 0, 0.0625, 0);
    same_faults(&b, 2, 0.25, 0.5, 0, 0, 7000);
    run_until(&b, AT(26) + 1);
    same_faults(&b, 2, 0, 0, 0, 0.5, 0);
    close_bed(&b);
}

/* Of all links each direction has draws of its own. */
static void all_links_at_once(void **state)
{
    struct fault_event e = fault_event(FAULT_LINK, FAULT_ALL, FAULT_ALWAYS);
    struct bed b;

    (void)state;
    open_bed(&b);
    e.loss = 0.25;
    e.seed = 0;
    add(&b, e);
    play(&b, false);
    for (unsigned i = 0; i < b.f->n_links; i++)
        same_faults(&b, i, 0.25, 0, 0, 0, 0);
    for (unsigned i = 0; i < 2 * b.f->n_links; i++)
        for (unsigned k = 0; k < i; k++)
            assert_true(egress_faults(queue(&b, i / 2, i % 2))->seed !=
                        egress_faults(queue(&b, k / 2, k % 2))->seed);
    close_bed(&b);
}

static void same_terms(const struct bed *b, unsigned link, uint64_t gbps, int64_t more_ns)
{
    for (unsigned dir = 0; dir < 2; dir++) {
        const struct egress *q = queue(b, link, dir), *usual = queue(b, 7, dir);

        assert_int_equal(egress_rate_bps(q), gbps * 1000000000);
        assert_int_equal(egress_latency_ps(q) - egress_latency_ps(usual), more_ns * PS_PER_NS);
    }
}

/* Rate and latency stay until they change again; clear takes both back. Links 0 to 7 are of hosts. */
static void terms_of_links(void **state)
{
    struct fault_event e = fault_event(FAULT_LINK, 1, AT(1));
    struct bed b;

    (void)state;
    open_bed(&b);
    e.rate_bps = 100000000000;
    add(&b, e);
    e = fault_event(FAULT_LINK, 1, AT(2));
    e.latency_ps = 800 * PS_PER_NS;
    add(&b, e);
    e = fault_event(FAULT_LINK, 1, AT(3));
    e.clear = true;
    add(&b, e);
    e.at_ps = AT(4);
    e.rate_bps = 50000000000;
    add(&b, e);
    e = fault_event(FAULT_LINK, 2, AT(4));
    e.latency_ps = 0;
    add(&b, e);
    play(&b, false);
    faults_start(b.faults);
    same_terms(&b, 1, 400, 0);
    run_until(&b, AT(4) + 1);
    same_terms(&b, 1, 100, 0);
    run_until(&b, AT(5) + 1);
    same_terms(&b, 1, 100, 500);
    run_until(&b, AT(6) + 1);
    same_terms(&b, 1, 400, 0);
    run_until(&b, AT(7) + 1);
    same_terms(&b, 1, 50, 0);
    same_terms(&b, 2, 400, -300);
    same_terms(&b, 0, 400, 0);
    same_terms(&b, 3, 400, 0);
    close_bed(&b);
}

static unsigned links_up(const struct bed *b)
{
    unsigned bits = 0;

    for (unsigned i = 0; i < b->f->n_links; i++)
        bits |= (unsigned)net_link_up(world_net(b->w), i) << i;
    return bits;
}

static void links_go_down_and_up(void **state)
{
    struct fault_event e = fault_event(FAULT_LINK, 4, FAULT_ALWAYS);
    struct bed b;
    unsigned all;

    (void)state;
    open_bed(&b);
    all = links_up(&b);
    assert_int_equal(all, (1u << b.f->n_links) - 1);
    e.down = true;
    add(&b, e);
    e.at_ps = AT(2);
    e.which = FAULT_ALL;
    add(&b, e);
    e.down = false, e.up = true;
    e.at_ps = AT(1);
    e.which = 4;
    add(&b, e);
    e.at_ps = AT(3);
    add(&b, e);
    e.at_ps = AT(4);
    e.which = FAULT_ALL;
    add(&b, e);
    play(&b, false);
    assert_int_equal(links_up(&b), all & ~(1u << 4));
    faults_start(b.faults);
    run_until(&b, AT(4) + 1);
    assert_int_equal(links_up(&b), all);
    run_until(&b, AT(5) + 1);
    assert_int_equal(links_up(&b), 0);
    run_until(&b, AT(6) + 1);
    assert_int_equal(links_up(&b), 1u << 4);
    run_until(&b, AT(7) + 1);
    assert_int_equal(links_up(&b), all);
    close_bed(&b);
}

/* ---- ranks and hosts ---- */

static unsigned dead(const struct bed *b)
{
    unsigned bits = 0;

    for (unsigned r = 0; r < NRANKS; r++)
        bits |= (unsigned)world_dead(b->w, r) << r;
    return bits;
}

/* A rank dies alone, a host with all of its ranks; the others are told of each, so much later. */
static void deaths_are_told(void **state)
{
    struct bed b;
    struct fault_event e;

    (void)state;
    open_bed(&b);
    e = fault_event(FAULT_RANK, 2, AT(5));
    e.die = true;
    e.told_ps = AT(4);
    add(&b, e);
    e = fault_event(FAULT_HOST, b.f->hosts[0], AT(6));
    e.die = true;
    e.told_ps = AT(2);
    add(&b, e);
    e.at_ps = AT(7); /* they are dead */
    e.told_ps = FAULT_NOBODY;
    add(&b, e);
    play(&b, true);
    faults_start(b.faults);
    assert_int_equal(dead(&b), 0);
    run_until(&b, AT(8) + 1);
    assert_int_equal(dead(&b), 1u << 2);
    run_until(&b, AT(9) + 1);
    assert_int_equal(dead(&b), 7);
    assert_int_equal(b.told, 0);
    run_until(&b, AT(30));
    assert_int_equal(dead(&b), 7);
    assert_int_equal(b.told, 3);
    assert_true(b.rank[0] == 0 && b.told_ps[0] == AT(11));
    assert_true(b.rank[1] == 1 && b.told_ps[1] == AT(11));
    assert_true(b.rank[2] == 2 && b.told_ps[2] == AT(12));
    close_bed(&b);

    open_bed(&b); /* from the beginning, and nobody is told */
    e = fault_event(FAULT_RANK, 3, FAULT_ALWAYS);
    e.die = true;
    e.told_ps = AT(1);
    add(&b, e);
    play(&b, false);
    assert_int_equal(dead(&b), 8);
    faults_start(b.faults);
    run_until(&b, AT(9));
    close_bed(&b);
}

static void late_ranks(void **state)
{
    struct fault_event e = fault_event(FAULT_RANK, 1, FAULT_ALWAYS);
    struct bed b;

    (void)state;
    open_bed(&b);
    e.late_ps = 5000;
    add(&b, e);
    e.at_ps = AT(1);
    e.late_ps = 0;
    add(&b, e);
    e.which = 3;
    e.late_ps = 9;
    add(&b, e);
    play(&b, false);
    assert_true(world_late_ps(b.w, 0) == 0 && world_late_ps(b.w, 1) == 5000);
    faults_start(b.faults);
    run_until(&b, AT(5));
    assert_true(world_late_ps(b.w, 1) == 0 && world_late_ps(b.w, 2) == 0 &&
                world_late_ps(b.w, 3) == 9);
    close_bed(&b);
}

/* ---- what is recorded ---- */

static void recorded(const char *text, bool expected)
{
    FILE *out = captured_file();
    const char *all;

    events_dump(out);
    all = captured_text(out);
    if (!strstr(all, text) == expected)
        fail_msg("%s: \"%s\" in\n%s", expected ? "no" : "found", text, all);
}

static void nodes_and_what_is_recorded(void **state)
{
    struct fault_event e;
    struct bed b;
    char text[96];
    unsigned spine, leaf;

    (void)state;
    open_bed(&b);
    spine = node(b.f, "spine0"), leaf = node(b.f, "leaf1");
    e = fault_event(FAULT_NODE, (fab_id)spine, AT(1));
    e.restart_ps = AT(4);
    add(&b, e);
    e = fault_event(FAULT_AN, (fab_id)leaf, AT(2));
    e.mbufs = 77;
    add(&b, e);
    e.which = b.f->hosts[3]; /* no aggregation node */
    add(&b, e);
    e = fault_event(FAULT_HOST, b.f->hosts[0], AT(2));
    e.slow = 3;
    add(&b, e);
    e = fault_event(FAULT_NODE, (fab_id)leaf, AT(3));
    e.down = true;
    add(&b, e);
    e.down = false, e.up = true;
    e.at_ps = AT(4);
    add(&b, e);
    play(&b, false);
    faults_start(b.faults);
    run_until(&b, AT(4) + 1);
    snprintf(text, sizeof(text), "node %u goes down (plan entry 0)", spine);
    recorded(text, true);
    snprintf(text, sizeof(text), "node %u restarts without its state (plan entry 0)", spine);
    recorded(text, true);
    run_until(&b, AT(5) + 1);
    snprintf(text, sizeof(text), "aggregation node %u may promise 77 buffers", leaf);
    recorded(text, true);
    snprintf(text, sizeof(text), "aggregation node %u may", b.f->hosts[3]);
    recorded(text, false);
    recorded("rank 0 is 3 times slower than its ports", true);
    recorded("rank 1 is 3 times slower than its ports", true);
    recorded("rank 2 is", false);
    run_until(&b, AT(6) + 1);
    snprintf(text, sizeof(text), "node %u goes down (plan entry 4)", leaf);
    recorded(text, true);
    snprintf(text, sizeof(text), "node %u restarts", leaf);
    recorded(text, false);
    snprintf(text, sizeof(text), "node %u comes up (plan entry 0)", spine);
    recorded(text, false);
    run_until(&b, AT(8) + 1);
    recorded(text, true);
    snprintf(text, sizeof(text), "node %u comes up (plan entry 5)", leaf);
    recorded(text, true);
    close_bed(&b);
}

static void an_empty_plan_does_nothing(void **state)
{
    struct bed b;

    (void)state;
    faults_destroy(NULL);
    open_bed(&b);
    play(&b, true);
    faults_start(b.faults);
    run_until(&b, AT(9));
    assert_true(!dead(&b) && !b.told);
    close_bed(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_of_links_change_one_by_one),
        cmocka_unit_test(all_links_at_once),
        cmocka_unit_test(terms_of_links),
        cmocka_unit_test(links_go_down_and_up),
        cmocka_unit_test(deaths_are_told),
        cmocka_unit_test(late_ranks),
        cmocka_unit_test(nodes_and_what_is_recorded),
        cmocka_unit_test(an_empty_plan_does_nothing),
    };

    test_eal_init();
    pool = test_pool(4096);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
