/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults that chaos draws: how often each kind is there, and from where to where their numbers go, over
 * many draws of fixed seeds.
 */
#include "tests/sim/chaos/draws.h"

#define CASES 60000u

static const struct chaos_cfg cfg;

/* What is seen in a plan. */
struct seen {
    unsigned plans, empty, late,
        noisy; /* noisy: of the others, noise of all links from the start */
    unsigned link_noise, slow, exhausted, restarts, node_flaps, deaths;
    unsigned link_downs, link_ups, node_ups, slow_always, slow_ends, exhausted_always;
    unsigned host_deaths, told, loss, dup, reorder, corrupt, jitter;
    struct range losses, dups, reorders, corrupts, jitters, lates, slows, mbufs;
    struct range links, ranks, seeds;
};

static void see_noise(struct seen *s, const struct fault_event *e)
{
    struct {
        double p;
        unsigned *n;
        struct range *r;
    } of[] = {{e->loss, &s->loss, &s->losses},
              {e->dup, &s->dup, &s->dups},
              {e->reorder, &s->reorder, &s->reorders},
              {e->corrupt, &s->corrupt, &s->corrupts},
              {(double)e->jitter_ps * 1e-6, &s->jitter, &s->jitters}};

    s->noisy += e->which == FAULT_ALL;
    s->link_noise += e->which != FAULT_ALL;
    assert_int_equal(e->at_ps < 0, e->which == FAULT_ALL);
    for (unsigned i = 0; i < LEN(of); i++) {
        *of[i].n += of[i].p > 0;
        if (of[i].p > 0)
            range_add(of[i].r, round(of[i].p * 1000));
    }
    range_add(&s->seeds, (double)e->seed);
}

static void see_slow(struct seen *s, const struct fault_event *e, const struct fault_plan *p)
{
    unsigned first = 0;

    while (p->e[first].of != FAULT_HOST || !p->e[first].slow)
        first++;
    if (e != &p->e[first]) {
        assert_int_equal(e->slow, 1);
        assert_true(e->at_ps > p->e[first].at_ps && e->which == p->e[first].which);
        s->slow_ends++;
        return;
    }
    s->slow++;
    s->slow_always += e->at_ps < 0;
    range_add(&s->slows, e->slow);
}

static void see(struct seen *s, const struct fault_event *e, const struct fault_plan *p)
{
    if (e->loss >= 0)
        see_noise(s, e);
    else if (e->slow)
        see_slow(s, e, p);
    else if (e->of == FAULT_AN) {
        s->exhausted++;
        s->exhausted_always += e->at_ps < 0;
        range_add(&s->mbufs, (double)e->mbufs);
    } else if (e->restart_ps >= 0)
        s->restarts++;
    else if (e->die) {
        s->deaths++;
        s->host_deaths += e->of == FAULT_HOST;
        s->told += e->told_ps >= 0;
        if (e->of == FAULT_RANK)
            range_add(&s->ranks, e->which);
    } else if (e->of == FAULT_NODE) {
        s->node_flaps += e->down;
        s->node_ups += e->up;
        assert_true(e->down != e->up);
    } else {
        assert_true(e->of == FAULT_LINK && e->down != e->up);
        s->link_downs += e->down;
        s->link_ups += e->up;
        if (e->down)
            range_add(&s->links, e->which);
    }
}

static void draw_plans(struct seen *s, struct chaos_case *k)
{
    for (unsigned i = 0; i < CASES; i++) {
        draws_of(k, i);
        assert_int_equal(chaos_draw_faults(k), 0);
        for (unsigned n = 1; n < k->plan.n; n++)
            assert_true(k->plan.e[n - 1].at_ps <= k->plan.e[n].at_ps);
        if (k->plan.n == 1 && k->plan.e[0].jitter_ps > 0 && k->plan.e[0].loss < 0) {
            assert_true(k->plan.e[0].which == FAULT_ALL && k->plan.e[0].at_ps == FAULT_ALWAYS);
            range_add(&s->lates, (double)k->plan.e[0].jitter_ps * 1e-3);
            range_add(&s->seeds, (double)k->plan.e[0].seed);
            s->late++;
        } else {
            for (unsigned n = 0; n < k->plan.n; n++)
                see(s, &k->plan.e[n], &k->plan);
        }
        s->empty += k->plan.n == 0;
        fault_plan_free(&k->plan);
    }
}

static void kinds_have_their_shares(void **state)
{
    struct fabric *f = load_file("conf/leaf-spine-8.conf");
    struct chaos_case k = {.cfg = &cfg, .fab = f, .n_jobs = 1, .job = {{.nranks = 4}}};
    struct seen s = {0};
    unsigned mixed, noises;
    double none; /* of a mix without anything in it */

    (void)state;
    for (unsigned r = 0; r < 4; r++)
        k.job[0].host_of_rank[r] = (uint16_t)(2 * r);
    draw_plans(&s, &k);
    share("jitter alone", s.late, CASES, 4. / 5 / 12);
    mixed = (unsigned)(CASES * (4. / 5 * 11 / 12));
    none = 1. / 2 * 2 / 3 * 3 / 4 * 4 / 5 * 6 / 7 * 9 / 10 * 15 / 16 * 7 / 8 * 5 / 6;
    share("no faults", s.empty, CASES, 1. / 5 + 4. / 5 * 11 / 12 * none);
    share("noise", s.noisy, mixed, 1. / 2);
    share("noise of a link", s.link_noise, mixed, 1. / 3);
    share("slow", s.slow, mixed, 1. / 4);
    share("slow from the start", s.slow_always, s.slow, 1. / 2);
    share("slow for a time", s.slow_ends, s.slow, 1. / 2);
    share("exhaustion", s.exhausted, mixed, 1. / 7);
    share("exhaustion from the start", s.exhausted_always, s.exhausted, 2. / 3);
    share("restarts", s.restarts, mixed, 1. / 10 + 1. / 6);
    share("links down", s.link_downs, mixed, 1. / 5 + 1. / 6);
    share("links up", s.link_ups, s.link_downs, 4. / 5);
    share("nodes down", s.node_flaps, mixed, 1. / 16);
    share("nodes up", s.node_ups, s.node_flaps, 4. / 5);
    share("deaths", s.deaths, mixed, 1. / 8);
    share("hosts die", s.host_deaths, s.deaths, 1. / 2);
    share("deaths that are told", s.told, s.deaths, 1. / 2);
    noises = s.noisy + s.link_noise;
    share("loss", s.loss, noises, 1. / 2 * 50 / 51);
    share("dup", s.dup, noises, 1. / 2 * 50 / 51);
    share("reorder", s.reorder, noises, 1. / 2 * 50 / 51);
    share("corrupt", s.corrupt, noises, 1. / 2 * 4 / 5);
    share("jitter", s.jitter, noises, 1. / 2 * 1999 / 2000);
    range_is("loss", &s.losses, 1, 50);
    range_is("dup", &s.dups, 1, 50);
    range_is("reorder", &s.reorders, 1, 50);
    range_is("corrupt", &s.corrupts, 1, 4);
    range_is("slow", &s.slows, 2, 31);
    range_is("links", &s.links, 0, f->n_links - 1);
    range_is("ranks", &s.ranks, 0, 3);
    range_is("buffers", &s.mbufs, 0, 999);
    assert_true(s.jitters.highest <= 1999 && s.jitters.lowest >= 1);
    assert_true(s.lates.highest <= 4000 && s.lates.lowest >= 1);
    share("late by half of it", (unsigned)(s.lates.sum / 4000.5), s.lates.n, 1. / 2);
    assert_true(s.seeds.lowest >= 0 && s.seeds.highest < (double)(1u << 31) &&
                s.seeds.highest > (double)(1u << 30));
    fabric_free(f);
}

/* Several jobs have no faults more often, so that what they do to each other is seen. */
static void several_jobs_have_fewer(void **state)
{
    struct fabric *f = load_file("conf/leaf-spine-8.conf");
    struct chaos_case k = {.cfg = &cfg, .fab = f, .n_jobs = 2, .job = {{.nranks = 4}}};
    unsigned empty = 0;
    double none = 1. / 2 * 2 / 3 * 3 / 4 * 4 / 5 * 6 / 7 * 9 / 10 * 15 / 16 * 7 / 8 * 5 / 6;

    (void)state;
    for (unsigned i = 0; i < CASES; i++) {
        draws_of(&k, i);
        assert_int_equal(chaos_draw_faults(&k), 0);
        empty += !k.plan.n;
        fault_plan_free(&k.plan);
    }
    share("no faults", empty, CASES, 1. / 3 + 2. / 3 * 11 / 12 * none);
    fabric_free(f);
}

/* If nothing reduces, no fault takes buffers away; if there are no switches, hosts go down in their
 * stead. */
static void faults_are_of_what_is_there(void **state)
{
    struct fabric *f = load_file("conf/two-hosts.conf");
    struct chaos_case k = {.cfg = &cfg, .fab = f, .n_jobs = 1, .job = {{.nranks = 2}}};
    unsigned down = 0, hosts[2] = {0}, switches = f->n_switches;

    (void)state;
    k.job[0].host_of_rank[1] = 1;
    for (unsigned i = 0; i < f->n_nodes; i++)
        f->nodes[i].reduce.on = f->nodes[i].multimem = false;
    f->n_switches = 0;
    for (unsigned i = 0; i < CASES / 4; i++) {
        draws_of(&k, i);
        assert_int_equal(chaos_draw_faults(&k), 0);
        for (unsigned n = 0; n < k.plan.n; n++) {
            const struct fault_event *e = &k.plan.e[n];

            assert_true(e->of != FAULT_AN && e->restart_ps < 0);
            down += e->of == FAULT_NODE && e->down;
            if (e->of == FAULT_NODE && e->down)
                hosts[e->which == f->hosts[1]]++;
            if (e->of == FAULT_NODE || e->of == FAULT_HOST)
                assert_int_equal(f->nodes[e->which].kind, FAB_HOST);
        }
        fault_plan_free(&k.plan);
    }
    share("hosts down", down, (unsigned)(CASES / 4 * (4. / 5 * 11 / 12)), 1. / 16);
    share("of the first rank", hosts[0], hosts[0] + hosts[1], 1. / 2);
    f->n_switches = switches;
    for (unsigned i = 0; switches && i < CASES / 4; i++) {
        draws_of(&k, i);
        assert_int_equal(chaos_draw_faults(&k), 0);
        for (unsigned n = 0; n < k.plan.n; n++)
            assert_true(k.plan.e[n].of != FAULT_AN);
        fault_plan_free(&k.plan);
    }
    fabric_free(f);
}

/* From a nanosecond to 4.096 ms, each power of two as likely. */
static void moments_are_of_all_orders(void **state)
{
    struct fabric *f = load_file("conf/leaf-spine-8.conf");
    struct chaos_case k = {.cfg = &cfg, .fab = f, .n_jobs = 1, .job = {{.nranks = 4}}};
    unsigned n = 0, late = 0;
    int64_t least = INT64_MAX, most = 0;

    (void)state;
    for (unsigned i = 0; i < CASES; i++) {
        draws_of(&k, i);
        assert_int_equal(chaos_draw_faults(&k), 0);
        for (unsigned m = 0; m < k.plan.n; m++) {
            const struct fault_event *e = &k.plan.e[m];

            if (!e->down)
                continue;
            n++;
            assert_int_equal(e->at_ps % PS_PER_NS, 0);
            late += e->at_ps > 1000 * PS_PER_NS << 11;
            least = RTE_MIN(least, e->at_ps);
            most = RTE_MAX(most, e->at_ps);
        }
        fault_plan_free(&k.plan);
    }
    share("moments of the last order", late, n, 1. / 13 / 2);
    assert_true(least >= PS_PER_NS && least < 10 * PS_PER_NS);
    assert_true(most <= 1000 * PS_PER_NS << 12 && most > 980 * PS_PER_NS << 12);
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_have_their_shares),
        cmocka_unit_test(several_jobs_have_fewer),
        cmocka_unit_test(faults_are_of_what_is_there),
        cmocka_unit_test(moments_are_of_all_orders),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
