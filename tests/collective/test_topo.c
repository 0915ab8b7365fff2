/* SPDX-License-Identifier: BSD-3-Clause */
/* The fabric as schedules see it, of hosts and of GPU nodes. */
#include "collective/topo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define DIM(a) (sizeof(a) / sizeof((a)[0]))

/* Hosts 0 to 3: two nodes of two GPUs with two planes each; NIC i of each at leaf i. */
static const char gpus[] =
    "name = \"g\"; mtu = 4096; ecmp = \"balanced\"; gpu_nodes = { nodes = 2; gpus = 2; planes = ( "
    "1, 2 ); nvlink = { rate = \"25GB/s\"; latency = \"300ns\"; }; nic = { rate = \"400Gb/s\"; "
    "latency = \"500ns\"; }; }; rails = { leaves = 2; spines = 1; spine_link = { rate = "
    "\"400Gb/s\"; latency = \"300ns\"; }; };";
static const char hosts[] = "name = \"h\"; single_switch = { hosts = 4; host_link = { rate = "
                            "\"400Gb/s\"; latency = \"300ns\"; }; };";

static struct fabric *load(const char *conf)
{
    struct fabric *f = fabric_load_string(conf, "topo.conf", NULL);

    assert_non_null(f);
    return f;
}

static struct topo topo_of(const struct fabric *f, unsigned n, const uint16_t *host)
{
    struct topo t;

    assert_int_equal(topo_init(&t, f, 0, n, host, 0), 0);
    t.sched.ctx = &t;
    return t;
}

static void domains_are_numbered_as_they_appear(void **state)
{
    static const struct {
        const char *conf;
        uint16_t host[5], domain[5];
        unsigned n;
    } rows[] = {
        {gpus, {0, 1, 2, 3}, {0, 0, 1, 1}, 4},  {gpus, {2, 0, 3, 1}, {0, 1, 0, 1}, 4},
        {gpus, {3, 2, 0}, {0, 0, 1}, 3},        {gpus, {1, 1, 2, 2, 0}, {0, 0, 1, 1, 0}, 5},
        {hosts, {0, 1, 2, 3}, {0, 1, 2, 3}, 4}, /* none: one of its own each */
        {hosts, {3, 3, 1, 1}, {0, 1, 2, 3}, 4},
    };

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct fabric *f = load(rows[i].conf);
        struct topo t = topo_of(f, rows[i].n, rows[i].host);

        assert_memory_equal(t.domain, rows[i].domain, rows[i].n * sizeof(t.domain[0]));
        assert_ptr_equal(t.sched.domain, t.domain);
        topo_free(&t);
        assert_null(t.domain);
        fabric_free(f);
    }
}

/* All planes of all nodes, a GPU each, and no rank outside. */
static void multimem_is_there_where_all_planes_have_it(void **state)
{
    static const uint16_t all[] = {0, 1, 2, 3}, twice[] = {0, 0, 1}, again[] = {0, 1, 0},
                          one[] = {1, 2, 3};
    struct fabric *f = load(gpus), *without = load(hosts);
    struct topo t = topo_of(f, 4, all);

    (void)state;
    assert_true(t.sched.multimem);
    assert_int_equal(t.most, 2);
    assert_int_equal(t.sched.plane_ps, 300000);
    topo_free(&t);
    t = topo_of(f, 3, one);
    assert_true(t.sched.multimem);
    assert_int_equal(t.most, 2);
    topo_free(&t);
    t = topo_of(f, 1, all);
    assert_int_equal(t.most, 1);
    topo_free(&t);
    t = topo_of(f, 3, twice); /* neighbours share a GPU */
    assert_false(t.sched.multimem);
    topo_free(&t);
    t = topo_of(f, 3, again); /* they need not be asked for otherwise */
    assert_true(t.sched.multimem);
    topo_free(&t);
    for (unsigned i = 0; i < f->n_nodes; i++) {
        if (f->nodes[i].role != FAB_ROLE_NVSWITCH)
            continue;
        f->nodes[i].multimem = false;
        t = topo_of(f, 4, all);
        assert_false(t.sched.multimem);
        topo_free(&t);
        f->nodes[i].multimem = true;
    }
    t = topo_of(without, 4, all);
    assert_false(t.sched.multimem);
    assert_int_equal(t.sched.plane_ps, 0);
    topo_free(&t);
    fabric_free(f);
    fabric_free(without);
}

/* The longest of the links to planes, not of the NIC's. */
static void the_longest_plane_link_counts(void **state)
{
    static const uint16_t all[] = {0, 1, 2, 3};
    struct fabric *f = load(gpus);
    struct topo t;

    (void)state;
    for (unsigned h = 0; h < 4; h++)
        for (unsigned p = 0; p < 2; p++) {
            struct fab_port *port = &f->nodes[f->hosts[h]].ports[p];
            struct fab_link *l = &f->links[port->link];
            const int64_t was = port->latency_ps, link = l->latency_ps;

            port->latency_ps = l->latency_ps = 450000 + (int64_t)(h * 2 + p);
            t = topo_of(f, 4, all);
            assert_int_equal(t.sched.plane_ps, 450000 + h * 2 + p);
            topo_free(&t);
            port->latency_ps = was, l->latency_ps = link;
        }
    fabric_free(f);
}

/* Twice what arrives while a message is noticed and the credit goes back, in slots of 64 KiB, from 64 on. */
static void slots_keep_a_channel_full(void **state)
{
    static const uint16_t all[] = {0, 1, 2, 3};
    static const struct {
        int64_t round_trip_ps, gpu_ps;
        unsigned fast; /* the host whose port has 400 Gb/s, 20 ps a byte; the others have none */
        unsigned slots;
    } rows[] = {
        {0, 0, 0, 64},
        {20ll << 21, 0, 0, 64}, /* 2 MiB, twice are 64 slots */
        {(20ll << 21) + 19, 0, 3, 64},
        {(20ll << 21) + 20, 0, 3, 128},
        {20ll << 20, 20ll << 20, 1, 64},
        {20ll << 20, (20ll << 20) + 20, 1, 128},
        {20ll << 30, 0, 0, 128}, /* no more than that */
    };

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct fabric *f = load(hosts);
        struct topo t;

        for (unsigned h = 0; h < 4; h++)
            f->nodes[f->hosts[h]].ports[0].rate_bps = h == rows[i].fast ? 400000000000 : 1;
        f->transport.round_trip_ps = rows[i].round_trip_ps;
        f->costs.gpu_ps = rows[i].gpu_ps;
        t = topo_of(f, 4, all);
        assert_int_equal(t.sched.slots, rows[i].slots);
        topo_free(&t);
        fabric_free(f);
    }
}

static void steps_show_where_a_path_has_their_costs(void **state)
{
    static const uint16_t all[] = {0, 1, 2, 3};
    struct fabric *f = load(gpus);

    (void)state;
    for (unsigned k = 0; k < 4; k++) {
        struct topo t;

        f->costs.nvlink.step_ps = k & 1;
        f->costs.network.step_ps = k >> 1;
        t = topo_of(f, 4, all);
        assert_int_equal(t.sched.steps, k > 0);
        topo_free(&t);
    }
    fabric_free(f);
}

static void channels_have_the_rates_of_planes_or_nics(void **state)
{
    static const uint16_t all[] = {0, 1, 2, 3};
    struct fabric *f = load(gpus);
    struct topo t = topo_of(f, 4, all);
    struct fab_channel ch[4];
    uint64_t bps[4] = {0};

    (void)state;
    assert_int_equal(topo_channels(&t, 0, 1, ch, 4), 2);
    assert_int_equal(topo_channels(&t, 0, 1, ch, 1), 1);
    assert_int_equal(topo_channels(&t, 0, 3, ch, 4), 1);
    t.sched.ctx = &t;
    assert_int_equal(t.sched.channels(&t, 0, 1, bps, 4), 2);
    assert_true(bps[0] == 200000000000 && bps[1] == 400000000000 && !bps[2]);
    bps[1] = 0;
    assert_int_equal(t.sched.channels(&t, 0, 1, bps, 1), 1);
    assert_true(!bps[1]);
    assert_int_equal(t.sched.channels(&t, 1, 2, bps, 4), 1);
    assert_true(bps[0] == 400000000000);
    topo_free(&t);
    fabric_free(f);
}

/* Two trees whose spines' links differ or not. */
static void trees_share_by_their_rates_where_those_differ(void **state)
{
    static const uint16_t all[] = {0, 1, 2, 3}, tree[] = {0, 1};
    static const struct {
        const char *rate;
        uint64_t bps[2];
    } rows[] = {{"50Gb/s", {100000000000, 50000000000}}, {"100Gb/s", {0, 0}}};

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        char conf[600];
        struct fab_members m = {.ranks_per_host = 1};
        struct fabric *f;
        struct topo t;

        snprintf(
            conf, sizeof(conf),
            "link_defaults = { rate = \"400Gb/s\"; latency = \"300ns\"; }; nodes = ( { name = "
            "(\"h0\", \"h1\", \"h2\", \"h3\"); kind = \"host\"; }, { name = (\"l0\", \"l1\"); "
            "role = \"leaf\"; }, { name = (\"s0\", \"s1\"); role = \"spine\"; } ); links = ( { "
            "a = (\"h0\", \"h1\"); b = \"l0\"; }, { a = (\"h2\", \"h3\"); b = \"l1\"; }, { a = "
            "(\"l0\", \"l1\"); b = \"s0\"; rate = \"100Gb/s\"; }, { a = (\"l0\", \"l1\"); b = "
            "\"s1\"; rate = \"%s\"; } ); reduce = { };",
            rows[i].rate);
        f = load(conf);
        t = topo_of(f, 4, all);
        for (unsigned k = 0; k < 4; k++)
            fab_members_add(&m, k);
        topo_use_trees(&t, tree, 2, &m);
        assert_int_equal(t.sched.trees, 2);
        assert_true(t.sched.tree_bps[0] == rows[i].bps[0] && t.sched.tree_bps[1] == rows[i].bps[1]);
        topo_use_trees(&t, tree, 2, NULL); /* it is not known whose they are */
        assert_int_equal(t.sched.trees, 2);
        assert_true(!t.sched.tree_bps[0] && !t.sched.tree_bps[1]);
        topo_use_trees(&t, tree, 2, &m);
        topo_use_trees(&t, tree, 1, &m);
        assert_int_equal(t.sched.trees, 1);
        assert_true(!t.sched.tree_bps[0]);
        topo_use_trees(&t, tree, 2, &(struct fab_members){0});
        assert_true(!t.sched.tree_bps[0]);
        topo_free(&t);
        fabric_free(f);
    }
}

#define MM      1000
#define NVLINK  200
#define NETWORK 30

/* Rank 0 of four; one lane with steps, beside one without. */
static void the_longest_launch_of_its_paths_comes_first(void **state)
{
    static const uint16_t all[] = {0, 1, 2, 3}, node[] = {0, 1};
    static const struct {
        struct lane l;
        const uint16_t *host;
        unsigned n;
        int64_t ps;
    } rows[] = {
        {{.kind = LANE_CPU}, all, 4, 0},
        {{.kind = LANE_SEND, .peer = 1}, all, 4, NVLINK},
        {{.kind = LANE_RECV, .peer = 1, .chan = 1}, all, 4, NVLINK},
        {{.kind = LANE_RECV, .peer = 1, .chan = 2}, all, 4, NETWORK}, /* there is none */
        {{.kind = LANE_SEND, .peer = 2}, all, 4, NETWORK},
        {{.kind = LANE_RECV, .peer = 3}, all, 4, NETWORK},
        {{.kind = LANE_MM}, all, 4, MM},
        {{.kind = LANE_AGG}, all, 4, NETWORK},
        {{.kind = LANE_AGG}, node, 2, NVLINK}, /* in their GPU node */
        {{.kind = LANE_PROTOCOL}, node, 2, NETWORK},
    };
    struct fabric *f = load(gpus), *plain = load(hosts);
    struct topo t;

    (void)state;
    plain->costs.nvlink.launch_ps = NVLINK;
    plain->costs.network.launch_ps = NETWORK;
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct lane l[2] = {{.kind = LANE_MM}, rows[i].l};
        const struct sched s = {.n_lanes = 2, .lane = l};

        t = topo_of(f, rows[i].n, rows[i].host);
        f->costs.mm_launch_ps = MM;
        f->costs.nvlink.launch_ps = NVLINK;
        f->costs.network.launch_ps = NETWORK;
        assert_int_equal(topo_launch_ps(&t, &s, 0), 0); /* neither has a step */
        l[1].n = 1;
        assert_int_equal(topo_launch_ps(&t, &s, 0), rows[i].ps);
        f->costs.mm_launch_ps = f->costs.nvlink.launch_ps = 0;
        assert_int_equal(topo_launch_ps(&t, &s, 0), rows[i].ps == NETWORK ? NETWORK : 0);
        f->costs.nvlink.launch_ps = NVLINK;
        f->costs.network.launch_ps = 0;
        assert_int_equal(topo_launch_ps(&t, &s, 0), rows[i].ps == NVLINK ? NVLINK : 0);
        l[0].n = 1;
        f->costs.mm_launch_ps = MM;
        assert_int_equal(topo_launch_ps(&t, &s, 0), MM);
        topo_free(&t);
    }
    t = topo_of(plain, 1, all); /* alone, but in no GPU node */
    assert_int_equal(
        topo_launch_ps(
            &t, &(struct sched){.n_lanes = 1, .lane = &(struct lane){.kind = LANE_AGG, .n = 1}}, 0),
        NETWORK);
    topo_free(&t);
    fabric_free(f);
    fabric_free(plain);
}

/* LL costs nothing but half of the rate: from so many bytes of a step on it is slower than the step without it. */
static void an_operation_is_long_by_the_bytes_of_its_step(void **state)
{
    static const uint16_t all[] = {0, 1, 2, 3};
    struct fabric *f = load(hosts);
    struct sched s = {.in = {.kind = COLL_ALLGATHER, .algo = ALGO_RING, .nranks = 4}, .esize = 1};
    const struct lane l = {.kind = LANE_SEND, .peer = 1}, none = {.peer = 1, .chan = 1};
    struct topo t = topo_of(f, 4, all);

    (void)state;
    s.in.count = 1ull << 40;
    assert_false(topo_is_long(&t, &s, 0, &l)); /* nothing is short */
    f->costs.network.step_ps = 20000;          /* 1000 bytes at 400 Gb/s */
    for (unsigned k = 0; k < 2; k++) {
        struct fab_short *by = k ? &f->costs.network.ll128 : &f->costs.network.ll;

        by->rate_bps = 200000000000;
        s.in.count = 999;
        assert_false(topo_is_long(&t, &s, 0, &l));
        s.in.count = 1000;
        assert_true(topo_is_long(&t, &s, 0, &l));
        assert_false(topo_is_long(&t, &s, 0, &none));
        by->rate_bps = 0;
    }
    for (unsigned k = 0; k < 2; k++) { /* the other path's */
        struct fab_short *by = k ? &f->costs.nvlink.ll128 : &f->costs.nvlink.ll;

        by->rate_bps = 200000000000;
        assert_false(topo_is_long(&t, &s, 0, &l));
        by->rate_bps = 0;
    }
    topo_free(&t);
    fabric_free(f);
}

/* host * ranks of the fullest host + its place there. */
static void members_are_numbered_by_their_hosts(void **state)
{
    static const struct {
        uint16_t host[6];
        unsigned n, per_host;
        uint16_t id[6];
    } rows[] = {
        {{0, 1, 2, 3}, 4, 1, {0, 1, 2, 3}},
        {{3, 0}, 2, 1, {3, 0}},
        {{0, 0, 1, 1}, 4, 2, {0, 1, 2, 3}},
        {{2, 0, 2, 0, 2}, 5, 3, {6, 0, 7, 1, 8}},
        {{1}, 1, 1, {1}},
    };
    uint16_t many[FAB_MAX_MEMBERS + 1] = {0};
    struct fabric *fab = load(hosts);
    struct fab_members m;

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        uint16_t id[6];

        assert_int_equal(topo_members(fab, rows[i].n, rows[i].host, &m, id), rows[i].per_host);
        assert_memory_equal(id, rows[i].id, rows[i].n * sizeof(id[0]));
        assert_int_equal(m.ranks_per_host, rows[i].per_host);
        assert_int_equal(fab_members_count(&m), rows[i].n);
        for (unsigned r = 0; r < rows[i].n; r++)
            assert_true(fab_members_has(&m, id[r]));
        assert_int_equal(topo_members(fab, rows[i].n, rows[i].host, &m, NULL), rows[i].per_host);
    }
    assert_int_equal(topo_members(fab, FAB_MAX_MEMBERS, many, &m, NULL), FAB_MAX_MEMBERS);
    assert_int_equal(topo_members(fab, FAB_MAX_MEMBERS + 1, many, &m, NULL), 0);
    many[0] = 1; /* the last id */
    assert_int_equal(topo_members(fab, FAB_MAX_MEMBERS, many, &m, NULL), FAB_MAX_MEMBERS - 1);
    assert_true(fab_members_has(&m, FAB_MAX_MEMBERS - 1));
    many[0] = 2; /* beyond it */
    assert_int_equal(topo_members(fab, FAB_MAX_MEMBERS, many, &m, NULL), 0);
    fabric_free(fab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(domains_are_numbered_as_they_appear),
        cmocka_unit_test(multimem_is_there_where_all_planes_have_it),
        cmocka_unit_test(the_longest_plane_link_counts),
        cmocka_unit_test(slots_keep_a_channel_full),
        cmocka_unit_test(steps_show_where_a_path_has_their_costs),
        cmocka_unit_test(channels_have_the_rates_of_planes_or_nics),
        cmocka_unit_test(trees_share_by_their_rates_where_those_differ),
        cmocka_unit_test(the_longest_launch_of_its_paths_comes_first),
        cmocka_unit_test(an_operation_is_long_by_the_bytes_of_its_step),
        cmocka_unit_test(members_are_numbered_by_their_hosts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
