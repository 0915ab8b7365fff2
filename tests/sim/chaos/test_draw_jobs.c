/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks and other jobs that chaos draws: where they are placed, what they may run by, and how often, over
 * many draws of fixed seeds.
 */
#include "tests/sim/chaos/draws.h"

#include <errno.h>

#define CASES 1500u
#define MANY  40000u

static const struct chaos_cfg cfg;

static struct fabric *fab;

/* ---- the first job ---- */

struct ranks_seen {
    unsigned all, twice, one, late_start, trees[2], two_trees, windows, by_window[6], usual, sharp;
    unsigned gaps;
    struct range groups, ops;
};

static void see_places(struct ranks_seen *s, const struct chaos_job *j)
{
    unsigned each = j->nranks > 1 && j->host_of_rank[0] == j->host_of_rank[1] ? 2 : 1;
    unsigned used = j->nranks / each, left = 0;

    assert_true(j->nranks >= 2 && j->nranks <= CHAOS_RANKS && j->nranks % each == 0);
    for (unsigned r = 0; r < j->nranks; r++) {
        assert_true(j->host_of_rank[r] < fab->n_hosts);
        if (r % each)
            assert_int_equal(j->host_of_rank[r], j->host_of_rank[r - 1]);
        else if (r)
            assert_true(j->host_of_rank[r] > j->host_of_rank[r - 1]);
        assert_int_equal(j->process[r], r);
    }
    left = j->host_of_rank[j->nranks - 1] + 1u - used;
    s->all += used == fab->n_hosts;
    s->twice += each == 2;
    s->one += used == 1;
    s->late_start += j->host_of_rank[0] > 0;
    s->gaps += left > 0;
}

static void see_policy(struct ranks_seen *s, const struct chaos_job *j)
{
    if (!j->goes_on)
        assert_true(j->n_policy == 1 && j->policy[0] == ALGO_SHARP);
    else if (j->n_policy)
        assert_int_equal(j->policy[j->n_policy - 1], ALGO_RING);
    if (j->goes_on && j->n_policy) /* what switches do comes first, each once */
        assert_true(j->n_policy == 2 && j->policy[0] == ALGO_SHARP);
    s->usual += j->n_policy == 0;
    s->sharp += !j->goes_on;
}

static void ranks_have_their_shares(void **state)
{
    struct ranks_seen s = {0};

    (void)state;
    for (unsigned i = 0; i < CASES; i++) {
        struct chaos_case k = {.cfg = &cfg, .fab = fab};
        struct chaos_job *j = &k.job[0];

        draws_of(&k, i);
        assert_int_equal(chaos_draw_ranks(&k), 0);
        assert_true(k.n_jobs == 1 && k.nprocs == j->nranks);
        assert_memory_equal(k.host_of_proc, j->host_of_rank, j->nranks * sizeof(uint16_t));
        see_places(&s, j);
        see_policy(&s, j);
        assert_true(j->tree + j->n_trees <= 2 && j->n_trees);
        s.trees[j->tree]++;
        s.two_trees += j->n_trees == 2;
        s.windows += j->window != 0;
        for (unsigned w = 0; w < 6; w++)
            s.by_window[w] += j->window == 8u << w;
        assert_int_equal(j->algos & (1u << ALGO_NVLS | COLL_PROTOCOLS), 0);
        assert_true(j->algos >> ALGO_SHARP & j->algos >> ALGO_RING & j->algos >> ALGO_TREE &
                    j->algos >> ALGO_DIRECT & 1);
        range_add(&s.groups, j->group);
        range_add(&s.ops, j->ops);
        assert_false(j->shares || j->stops_ps);
    }
    share("all hosts", s.all, CASES, 1. / 2 + 1. / 2 / 8);
    share("two on a host", s.twice, CASES, 1. / 5);
    share("one host", s.one, CASES, 1. / 5 / 2 / 8);
    share("not from the first host on", s.late_start, CASES, 1. / 4 / 3 * 7 / 16);
    share("the first tree", s.trees[0], CASES, 1. / 2);
    share("two trees", s.two_trees, CASES, 1. / 4);
    share("windows", s.windows, CASES, 1. / 3);
    for (unsigned w = 0; w < 6; w++)
        share("a window", s.by_window[w], s.windows, 1. / 6);
    share("the usual policy", s.usual, CASES, 1. / 2);
    share("sharp alone", s.sharp, CASES, 1. / 4);
    assert_true(s.groups.lowest >= 1 && s.groups.lowest < 5 && s.groups.highest > 995 &&
                s.groups.highest <= 1000);
    range_is("operations", &s.ops, 1, 3);
    assert_true(s.gaps > s.late_start);
}

/* Hosts with one slot have one rank each; a fabric without trees that all reach has no SHARP. */
static void ranks_of_small_fabrics(void **state)
{
    struct fabric *f = load_text("name = \"x\"; slots_per_host = 1; single_switch = { hosts = 2; "
                                 "host_link = { rate = \"100Gb/s\"; latency = \"300ns\"; }; };");

    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        struct chaos_case k = {.cfg = &cfg, .fab = f};

        draws_of(&k, i);
        assert_int_equal(chaos_draw_ranks(&k), 0);
        assert_true(k.nprocs == 2 && k.job[0].nranks == 2 && k.job[0].host_of_rank[0] == 0 &&
                    k.job[0].host_of_rank[1] == 1);
        assert_true(k.job[0].n_trees == 0 && !(k.job[0].algos >> ALGO_SHARP & 1));
        assert_true(k.job[0].goes_on);
    }
    fabric_free(f);
}

/* A protocol that was asked for runs alone, with the ring behind it in half of the cases. */
static void protocols_run_alone(void **state)
{
    const struct chaos_cfg asked = {.algo = ALGO_PROTOCOL};
    struct chaos_case k = {.cfg = &asked, .fab = fab};
    unsigned goes_on = 0;

    (void)state;
    assert_true(chaos_wants(&k, ALGO_PROTOCOL) && !chaos_wants(&k, ALGO_RING) &&
                !chaos_wants(&k, ALGO_PROTOCOL + 1));
    for (unsigned i = 0; i < MANY; i++) {
        struct chaos_job j = {.n_policy = 7};

        draws_of(&k, i);
        chaos_protocol_policy(&k, &j, DRAW_RANKS);
        assert_true(j.policy[0] == ALGO_PROTOCOL && (j.n_policy == 1 || j.policy[1] == ALGO_RING));
        assert_int_equal(j.n_policy, j.goes_on ? 2 : 1);
        goes_on += j.goes_on;
    }
    share("protocols with a ring", goes_on, MANY, 1. / 2);
    k.cfg = &cfg;
    assert_true(!chaos_wants(&k, ALGO_PROTOCOL) && chaos_wants(&k, ALGO_RING));
    assert_false(chaos_wants(&k, ALGO_PROTOCOL_LAST));
    {
        struct chaos_job j = {.n_policy = 7};

        chaos_protocol_policy(&k, &j, DRAW_RANKS);
        assert_int_equal(j.n_policy, 7);
    }
}

/* ---- places ---- */

static void processes_take_slots_of_hosts(void **state)
{
    struct fabric *f = load_text("name = \"x\"; slots_per_host = 3; single_switch = { hosts = 8; "
                                 "host_link = { rate = \"100Gb/s\"; latency = \"300ns\"; }; };");
    struct chaos_case k = {.cfg = &cfg, .fab = f, .n_jobs = 1};
    struct chaos_job a = {.nranks = 2, .host_of_rank = {3, 5}}, b = {.shares = true, .nranks = 2};

    (void)state;
    k.job[0] = a;
    assert_true(chaos_place(&k, &k.job[0]));
    assert_true(k.nprocs == 2 && k.job[0].process[0] == 0 && k.job[0].process[1] == 1);
    b.process[0] = 1;
    b.process[1] = 0;
    assert_true(chaos_place(&k, &b)); /* takes none */
    assert_true(k.nprocs == 2 && b.host_of_rank[0] == 5 && b.host_of_rank[1] == 3);
    for (unsigned n = 1; n < 3; n++) {
        struct chaos_job c = {.nranks = 1, .host_of_rank = {5}};

        assert_true(chaos_place(&k, &c));
        assert_int_equal(c.process[0], n + 1);
        assert_int_equal(k.host_of_proc[n + 1], 5);
    }
    a.host_of_rank[0] = 4;
    assert_false(chaos_place(&k, &a)); /* its second rank finds no slot */
    k.nprocs = CHAOS_PROCESSES;
    memset(k.host_of_proc, 0, sizeof(k.host_of_proc));
    a.host_of_rank[1] = 6;
    assert_false(chaos_place(&k, &a));
    fabric_free(f);
}

/* ---- other jobs ---- */

struct jobs_seen {
    unsigned several, before, during, after, after_alone, others, shares, stops, stoppable, windows;
    unsigned group_as[2], key_as[2], of[2], policies, alone, two_policies, with_sharp;
    struct range stop_ns, ops, ranks;
};

static void see_job(struct jobs_seen *s, const struct chaos_case *k, const struct chaos_job *j)
{
    bool after = j->start == START_AFTER, as = false, same_key = false;

    s->others++;
    s->shares += j->shares;
    assert_true(j->nranks >= 2 && j->nranks <= 4);
    range_add(&s->ranks, j->nranks);
    for (unsigned r = 0; r < j->nranks; r++) {
        if (r && j->shares)
            assert_true(j->process[r] > j->process[r - 1] && j->process[r] < 4);
        if (r)
            assert_true(j->host_of_rank[r] > j->host_of_rank[r - 1]);
    }
    s->stoppable += !after;
    s->stops += j->stops_ps > 0;
    assert_true(!after || !j->stops_ps);
    assert_int_equal(j->stops_ps % PS_PER_NS, 0);
    if (j->stops_ps)
        range_add(&s->stop_ns, (double)j->stops_ps / PS_PER_NS);
    assert_true(j->tree == 1 && j->n_trees == 1);
    s->windows += j->window != 0;
    assert_true(!j->window || (j->window >= 8 && j->window <= 256));
    for (const struct chaos_job *o = k->job; o < j; o++) {
        as |= o->group == j->group;
        same_key |= o->key == j->key;
        assert_true(o->key != j->key || (after && o->group == j->group));
    }
    s->of[after] += j == &k->job[1]; /* of later ones some are the same by chance */
    s->group_as[after] += as && j == &k->job[1];
    s->key_as[after] += same_key && j == &k->job[1];
    range_add(&s->ops, j->ops);
    if (j->n_policy) {
        s->policies++;
        assert_int_equal(j->policy[0], ALGO_SHARP);
        s->two_policies += j->n_policy == 2;
        assert_true(j->n_policy < 2 || j->policy[1] == ALGO_RING);
        assert_int_equal(j->goes_on, j->n_policy == 2);
    } else {
        assert_true(j->goes_on);
    }
    s->with_sharp += j->algos >> ALGO_SHARP & 1;
    s->alone += j->algos == 1u << ALGO_SHARP;
    assert_int_equal(j->algos & ~(1u << ALGO_SHARP | 1u << ALGO_RING), 0);
}

static struct chaos_case first_job(void)
{
    struct chaos_case k = {.cfg = &cfg, .fab = fab, .n_jobs = 1};
    struct chaos_job *j = &k.job[0];

    *j = (struct chaos_job){.nranks = 4, .tree = 1, .n_trees = 1, .group = 5, .key = 9};
    j->algos = 1u << ALGO_SHARP | 1u << ALGO_RING | 1u << ALGO_TREE;
    for (unsigned r = 0; r < 4; r++)
        j->host_of_rank[r] = (uint16_t)(2 * r);
    assert_true(chaos_place(&k, j));
    return k;
}

static void other_jobs_have_their_shares(void **state)
{
    struct jobs_seen s = {0};

    (void)state;
    for (unsigned i = 0; i < MANY; i++) {
        struct chaos_case k = first_job();
        bool last_stops;

        draws_of(&k, i);
        chaos_draw_jobs(&k);
        s.several += k.n_jobs > 1;
        for (unsigned n = 1; n < k.n_jobs; n++) {
            see_job(&s, &k, &k.job[n]);
            s.before += k.job[n].start == START_BEFORE;
            s.during += k.job[n].start == START_DURING;
            s.after += k.job[n].start == START_AFTER;
            assert_true(k.job[n].start > k.job[n - 1].start || n == 1);
        }
        last_stops = k.n_jobs > 1 && k.job[k.n_jobs - 1].stops_ps;
        assert_false(last_stops); /* what one that is ended had is used again */
        s.after_alone += k.n_jobs == 2 && k.job[1].start == START_AFTER;
    }
    share("several jobs", s.several, MANY, 1. / 5);
    share("before", s.before, MANY, 1. / 5 / 2);
    share("during", s.during, MANY, 1. / 5 / 2);
    share("after alone", s.after_alone, MANY, 1. / 5 / 4);
    share("after", s.after, MANY, 1. / 5 * (1. / 4 + 3. / 4 * (1. / 2 + 1. / 2 / 2)));
    share("shared processes", s.shares, s.others, 1. / 2);
    share("stopped", s.stops, s.stoppable, 1. / 2);
    share("windows", s.windows, s.others, 1. / 2);
    share("the same group beside", s.group_as[0], s.of[0], 1. / 6);
    share("the same group after", s.group_as[1], s.of[1], 4. / 6);
    share("the same key after", s.key_as[1], s.of[1], 4. / 6 / 3);
    assert_int_equal(s.key_as[0], 0);
    assert_true(s.stop_ns.lowest >= 1 && s.stop_ns.highest <= 16000 && s.stop_ns.highest > 15000);
    range_is("operations", &s.ops, 1, 2);
    range_is("ranks", &s.ranks, 2, 4);
    assert_int_equal(s.with_sharp, s.others);
    share("policies", s.policies, s.others, 2. / 3);
    share("sharp alone", s.alone, s.stops, 2. / 3 * 2 / 3);
    share("the ring behind it", s.two_policies, s.policies - s.alone, 1. / 2);
}

static int load(void **state)
{
    (void)state;
    fab = load_file("conf/leaf-spine-8.conf");
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
        cmocka_unit_test(ranks_have_their_shares),
        cmocka_unit_test(ranks_of_small_fabrics),
        cmocka_unit_test(protocols_run_alone),
        cmocka_unit_test(processes_take_slots_of_hosts),
        cmocka_unit_test(other_jobs_have_their_shares),
    };

    return cmocka_run_group_tests(tests, load, unload);
}
