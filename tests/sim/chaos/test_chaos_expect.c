/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What chaos may expect of a case: which faults a job must survive, when retries may end, which links lose
 * nothing, and which jobs compete for switches. Each rule beside the least change that breaks it.
 */
#include "sim/chaos/chaos_priv.h"
#include "tests/fabric/load.h"

static struct fabric *fab; /* two pods under cores */

static struct chaos_case a_case(void)
{
    struct chaos_case k = {.fab = fab, .n_jobs = 1, .job = {{.goes_on = true, .nranks = 2}}};

    return k;
}

static void add(struct chaos_case *k, struct fault_event e)
{
    assert_int_equal(fault_plan_add(&k->plan, &e), 0);
}

static uint16_t link_of(const char *a, const char *b)
{
    uint16_t na = node(fab, a), nb = node(fab, b);

    for (uint16_t i = 0; i < fab->n_links; i++)
        if ((fab->links[i].a == na && fab->links[i].b == nb) ||
            (fab->links[i].a == nb && fab->links[i].b == na))
            return i;
    fail_msg("no link %s-%s", a, b);
    return 0;
}

static struct fault_event down_of(enum fault_of of, uint16_t which)
{
    struct fault_event e = fault_event(of, which, 1);

    e.down = true;
    return e;
}

/* Whether a job must have its result; with and without an algorithm that needs no switch. */
static void survives(struct chaos_case *k, bool going_on, bool alone, const char *what)
{
    k->job[0].goes_on = true;
    if (chaos_recoverable(k, &k->job[0]) != going_on)
        fail_msg("%s: a job that goes on: expected %d", what, going_on);
    k->job[0].goes_on = false;
    if (chaos_recoverable(k, &k->job[0]) != alone)
        fail_msg("%s: a job that cannot go on: expected %d", what, alone);
    fault_plan_free(&k->plan);
}

static void noise_and_deaths(void **state)
{
    struct chaos_case k = a_case();
    struct fault_event e = fault_event(FAULT_LINK, FAULT_ALL, FAULT_ALWAYS);

    (void)state;
    survives(&k, true, true, "no fault");
    e.loss = e.dup = e.reorder = e.corrupt = 0.05;
    e.jitter_ps = 5;
    add(&k, e);
    survives(&k, true, true, "noise");
    e = fault_event(FAULT_HOST, node(fab, "h0"), 1);
    e.slow = 7;
    add(&k, e);
    survives(&k, true, true, "a slow host");
    add(&k, e);
    e = fault_event(FAULT_RANK, 0, 1);
    e.die = true;
    add(&k, e);
    survives(&k, false, false, "a death behind another fault");
    for (int mbufs = 0; mbufs < 2; mbufs++) {
        e = fault_event(FAULT_AN, node(fab, "leaf0"), 1);
        e.mbufs = mbufs;
        add(&k, e);
        survives(&k, true, false, "few buffers");
    }
}

/* Outages between switches pass where a link or switch comes back; those of hosts' links and switches may
 * not. */
static void outages(void **state)
{
    const struct {
        enum fault_of of, back_of;
        uint16_t which, back_which;
        bool back, passes;
    } rows[] = {
        {FAULT_LINK, FAULT_LINK, link_of("leaf0", "spine0"), link_of("leaf0", "spine0"), true,
         true},
        {FAULT_LINK, FAULT_LINK, link_of("leaf0", "spine0"), link_of("leaf0", "spine0"), false,
         false},
        {FAULT_LINK, FAULT_LINK, link_of("leaf0", "spine0"), link_of("leaf0", "spine1"), true,
         false},
        {FAULT_LINK, FAULT_NODE, 8, 8, true, false},
        {FAULT_LINK, FAULT_LINK, link_of("h0", "leaf0"), link_of("h0", "leaf0"), true, false},
        {FAULT_LINK, FAULT_LINK, FAULT_ALL, FAULT_ALL, true, false},
        {FAULT_NODE, FAULT_NODE, node(fab, "spine0"), node(fab, "spine0"), true, true},
        {FAULT_NODE, FAULT_NODE, node(fab, "core1"), node(fab, "core1"), true, true},
        {FAULT_NODE, FAULT_NODE, node(fab, "leaf1"), node(fab, "leaf1"), true, false},
        {FAULT_NODE, FAULT_NODE, node(fab, "h2"), node(fab, "h2"), true, false},
        {FAULT_NODE, FAULT_NODE, node(fab, "spine0"), node(fab, "spine1"), true, false},
    };
    struct chaos_case k = a_case();

    (void)state;
    assert_int_equal(fab->nodes[fab->links[8].a].kind, FAB_SWITCH); /* of the row with a node */
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct fault_event e = down_of(rows[i].of, rows[i].which);
        char what[32];

        snprintf(what, sizeof(what), "row %u", i);
        add(&k, e);
        e.down = false;
        e.of = rows[i].back_of;
        e.which = rows[i].back_which;
        e.up = rows[i].back;
        e.slow = 2; /* an event in any case */
        add(&k, e);
        survives(&k, rows[i].passes, false, what);
    }
}

/* Up before it is down is no end of the outage; a switch that restarts comes back by itself. */
static void outages_end_later(void **state)
{
    struct chaos_case k = a_case();
    struct fault_event e = down_of(FAULT_NODE, node(fab, "spine0"));

    (void)state;
    e.down = false, e.up = true;
    add(&k, e);
    survives(&k, true, true, "up alone");
    add(&k, e);
    e.down = true, e.up = false;
    add(&k, e);
    survives(&k, false, false, "down after up");
    e = fault_event(FAULT_NODE, node(fab, "spine0"), 1);
    e.restart_ps = 0;
    add(&k, e);
    survives(&k, true, false, "a spine restarts");
    e.which = node(fab, "leaf0");
    add(&k, e);
    survives(&k, false, false, "a leaf restarts");
    add(&k, down_of(FAULT_NODE, node(fab, "spine0")));
    e = fault_event(FAULT_NODE, node(fab, "spine0"), 2);
    add(&k, e);
    e.up = true;
    add(&k, e);
    survives(&k, true, false, "up two entries later");
}

/* Eight transmissions of a packet over all links of a way of up to 4 hops a tier are lost. */
static double share_given_up(double loss, double corrupt, unsigned tiers)
{
    double arrives = 1, lost = 1;

    for (unsigned hop = 0; hop < 4 * tiers; hop++)
        arrives *= (1 - loss) * (1 - corrupt);
    for (unsigned i = 0; i < 8; i++)
        lost *= 1 - arrives;
    return lost;
}

static void retries_end_where_that_is_likely(void **state)
{
    static const double rows[][2] = {{0.05, 0}, {0, 0.004}, {0.03, 0.002}, {0.05, 0.004}};
    struct fabric *flat = load_file("conf/leaf-spine-8.conf");
    struct chaos_case k = a_case();
    unsigned tiers = 1;

    (void)state;
    for (unsigned i = 0; i < fab->n_nodes; i++)
        tiers = RTE_MAX(tiers, fab->nodes[i].tier);
    assert_true(tiers > 1);
    assert_false(chaos_may_give_up(&k, UINT64_MAX));
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct fault_event e = fault_event(FAULT_LINK, FAULT_ALL, FAULT_ALWAYS);
        double frames = 1e-3 / share_given_up(rows[i][0], rows[i][1], tiers);

        e.loss = rows[i][0];
        e.corrupt = rows[i][1];
        add(&k, e);
        assert_true(chaos_may_give_up(&k, (uint64_t)(frames * 1.01) + 1));
        assert_false(chaos_may_give_up(&k, (uint64_t)(frames * 0.99)));
        k.fab = flat; /* fewer links on its ways */
        assert_false(chaos_may_give_up(&k, (uint64_t)(frames * 1.01) + 1));
        k.fab = fab;
        k.plan.e[0].which = 3; /* of one link: never */
        assert_false(chaos_may_give_up(&k, UINT64_MAX));
        k.plan.e[0].which = FAULT_ALL;
        k.plan.e[0].of = FAULT_NODE;
        assert_false(chaos_may_give_up(&k, UINT64_MAX));
        fault_plan_free(&k.plan);
    }
    fabric_free(flat);
}

/* Noise is anything that links do to single frames but for their order; late frames are that without any
 * loss. */
static void noise_and_lateness(void **state)
{
    struct chaos_case k = a_case();
    struct fault_event quiet = fault_event(FAULT_LINK, FAULT_ALL, FAULT_ALWAYS);

    (void)state;
    assert_true(chaos_only_noise(&k) && chaos_only_late(&k));
    quiet.jitter_ps = 9;
    quiet.loss = quiet.dup = quiet.reorder = quiet.corrupt = 0;
    for (unsigned i = 0; i < 10; i++) {
        struct fault_event e = quiet;
        bool noise = i < 4, late = i < 1;

        e.loss = i == 1 ? 0.1 : 0;
        e.dup = i == 2 ? 0.1 : 0;
        e.corrupt = i == 3 ? 0.1 : 0;
        e.reorder = i == 4 ? 0.1 : 0;
        e.down = i == 5;
        e.up = i == 6;
        e.of = i == 7 ? FAULT_NODE : i == 8 ? FAULT_HOST : i == 9 ? FAULT_AN : FAULT_LINK;
        add(&k, quiet);
        add(&k, e);
        if (chaos_only_noise(&k) != noise || chaos_only_late(&k) != late)
            fail_msg("fault %u: noise %d, late %d", i, chaos_only_noise(&k), chaos_only_late(&k));
        fault_plan_free(&k.plan);
    }
}

/* ---- other jobs ---- */

static void jobs_meet_unless_one_comes_after(void **state)
{
    static const enum chaos_start starts[] = {START_BEFORE, START_DURING, START_AFTER};

    (void)state;
    for (unsigned a = 0; a < LEN(starts); a++)
        for (unsigned b = 0; b < LEN(starts); b++) {
            struct chaos_case k = a_case();
            bool with_first = starts[a] != START_AFTER, both = starts[a] == starts[b];

            both |= starts[a] != START_AFTER && starts[b] != START_AFTER;
            k.n_jobs = 3;
            k.job[0].start = START_AFTER; /* of the first one it says nothing */
            k.job[0].group = 1;
            k.job[1] = (struct chaos_job){.start = starts[a], .group = 1};
            k.job[2] = (struct chaos_job){.start = starts[b], .group = 2};
            assert_int_equal(chaos_collides(&k, &k.job[1]), with_first);
            assert_int_equal(chaos_collides(&k, &k.job[0]), with_first);
            assert_false(chaos_collides(&k, &k.job[2]));
            k.job[2].group = 1;
            k.job[0].group = 2;
            assert_int_equal(chaos_collides(&k, &k.job[1]), both);
            assert_int_equal(chaos_collides(&k, &k.job[2]), both);
            assert_int_equal(chaos_contended(&k, &k.job[1]), with_first || both);
            k.n_jobs = 2;
            assert_int_equal(chaos_contended(&k, &k.job[1]), with_first);
            assert_int_equal(chaos_contended(&k, &k.job[0]), with_first);
            k.n_jobs = 1;
            assert_false(chaos_contended(&k, &k.job[0]) || chaos_collides(&k, &k.job[0]));
        }
}

/* One job alone may be refused where a switch that reduces has fewer than four groups, or slots for fewer than
 * four windows. */
static void scarce_switches_contend(void **state)
{
    static const struct {
        bool on;
        uint32_t groups, slots, window;
        bool contended;
    } rows[] = {
        {true, 4, 1024, 256, false},  {true, 3, 1024, 256, true},  {true, 4, 1023, 256, true},
        {false, 3, 1024, 256, false}, {true, 5, 1025, 256, false}, {true, 64, 1024, 257, true},
    };
    struct fabric *f = load_file("conf/leaf-spine-8.conf");
    struct chaos_case k = a_case();

    (void)state;
    k.fab = f;
    for (unsigned i = 0; i < LEN(rows); i++)
        for (unsigned s = 0; s < f->n_switches; s++) {
            struct fab_reduce *q = &f->nodes[f->switches[s]].reduce, was = *q;

            q->on = rows[i].on;
            q->max_groups = rows[i].groups;
            q->max_slots = rows[i].slots;
            q->window = rows[i].window;
            if (chaos_contended(&k, &k.job[0]) != rows[i].contended)
                fail_msg("row %u, switch %u", i, s);
            *q = was;
        }
    fabric_free(f);
}

static int load(void **state)
{
    (void)state;
    fab = load_file(THREE_TIER);
    return 0;
}

static int unload(void **state)
{
    (void)state;
    fabric_free(fab);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noise_and_deaths),
        cmocka_unit_test(outages),
        cmocka_unit_test(outages_end_later),
        cmocka_unit_test(retries_end_where_that_is_likely),
        cmocka_unit_test(noise_and_lateness),
        cmocka_unit_test(jobs_meet_unless_one_comes_after),
        cmocka_unit_test(scarce_switches_contend),
    };

    return cmocka_run_group_tests(tests, load, unload);
}
