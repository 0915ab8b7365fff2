/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs in virtual time whose switches lose power or memory in the middle of an operation, for good or for a while: each result is
 * right, and times, what is given up, what returns and all frames are compared whole, as a run is the same every time. A line that
 * differs is printed as it is now.
 */
#include "collective/sched.h"
#include "sim/job/sim_job.h"
#include "tests/host/coll/outages.h"
#include "tests/support/eal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define LINK(r) "{ rate = \"" r "\"; latency = \"300ns\"; }"
#define MOST    8u
#define REDUCE  "reduce = { groups = 64; slots = 4096; window = 64; };"

static const char leaves[] = "name = \"o\"; mtu = 2048; ecmp = \"balanced\"; leaf_spine = { leaves "
                             "= 2; spines = 2; hosts_per_leaf = 2; host_link = " LINK(
                                 "100Gb/s") "; spine_link = " LINK("100Gb/s") "; }; " REDUCE;
static const char nodes[] =
    "name = \"o\"; mtu = 4096; ecmp = \"balanced\"; gpu_nodes = { nodes = 2; gpus = 4; planes = ( "
    "2, 1 ); nvlink = " LINK("25GB/s") "; nic = " LINK("200Gb/s") "; }; rails = { leaves = 2; "
                                                                  "spines = 2; spine_link = " LINK(
                                                                      "200Gb/s") "; }; " REDUCE;
static const char star[] =
    "name = \"o\"; mtu = 1024; single_switch = { hosts = 4; host_link = " LINK(
        "100Gb/s") "; }; " REDUCE;

enum outage { GONE, WHILE, RESTART, KINDS_OF_OUTAGE };

struct row {
    const char *name, *conf;
    unsigned n;
    enum coll_algo algo;
    enum outage what;
    const char *node;
    unsigned at_us;
};

struct fixture {
    struct fabric *f;
    struct world *w;
    struct job *j;
    const struct row *row;
    bool down;
};

static struct rte_mempool *pool;
static unsigned at, wrong;

static void up(struct fixture *b)
{
    static const uint16_t hosts[MOST] = {0, 1, 2, 3, 4, 5, 6, 7};
    static const enum coll_algo policy[] = {ALGO_SHARP, ALGO_TREE};
    const struct row *w = b->row;
    struct world_cfg wc = {.nranks = w->n, .host_of_rank = hosts, .pool = pool, .seed = 5};
    struct job_cfg jc = {.nranks = w->n,
                         .host_of_rank = hosts,
                         .group = 3,
                         .key = 99,
                         .n_trees = w->conf == star ? 1 : 2,
                         .algos =
                             1u << w->algo | 1u << ALGO_RING | 1u << ALGO_TREE | 1u << ALGO_HIER,
                         .any_order = true,
                         .buffer_bytes = 1 << 18,
                         .limit_ps = 100 * PS_PER_S};
    char err[COMM_TEXT] = "";

    if (w->at_us % 2 && w->algo == ALGO_SHARP) {
        jc.policy = policy;
        jc.n_policy = 2;
    }
    b->f = fabric_load_string(w->conf, "outages.conf", NULL);
    assert_non_null(b->f);
    wc.fab = jc.fab = b->f;
    assert_int_equal(world_create(&b->w, &wc), 0);
    jc.w = b->w;
    if (job_create(&b->j, &jc, err))
        fail_msg("%s: %s", w->name, err);
}

static void power(void *ctx)
{
    struct fixture *b = ctx;
    struct net *net = world_net(b->w);
    uint16_t node = fabric_node_index(b->f, fabric_node(b->f, b->row->node));
    int64_t now = world_now(b->w);

    world_alarm(b->w, PS_NEVER, NULL, NULL);
    if (b->row->what == RESTART && b->down)
        assert_int_equal(net_restart(net, node, now), 0);
    assert_int_equal(net_set_node(net, node, b->down, now), 0);
    b->down = !b->down;
    if (b->down && b->row->what != GONE)
        world_alarm(b->w, now + 30 * PS_PER_US, power, b);
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

static size_t run(struct fixture *b, unsigned k, char *now, size_t room)
{
    static const enum coll_kind kinds[] = {COLL_ALLREDUCE,      COLL_ALLREDUCE, COLL_BROADCAST,
                                           COLL_REDUCE_SCATTER, COLL_ALLGATHER, COLL_REDUCE,
                                           COLL_BARRIER,        COLL_ALLREDUCE};
    const enum coll_algo algo = b->row->algo;
    struct job_op op = {.kind = kinds[k % 8],
                        .algo = algo,
                        .type = DT_FP32,
                        .op = OP_SUM,
                        .count = 4001 + k,
                        .root = 1,
                        .in_place = k % 2,
                        .seed = k + 1};
    struct coll_args a = {
        .kind = op.kind, .algo = op.algo, .type = op.type, .op = op.op, .root = 1};
    struct job_result res;

    op.count = op.kind == COLL_BARRIER ? 0 : op.count;
    a.count = op.count;
    if (!comm_supports(job_comm(b->j, 0), &a))
        return 0;
    if (job_run(b->j, &op, &res) || res.failed_ranks)
        return (size_t)snprintf(now, room, " '%s'", res.text);
    assert_int_equal(res.wrong, 0);
    return (size_t)snprintf(now, room, " %ld", res.time_ps / 1000);
}

static void compare(const struct row *w)
{
    struct fixture b = {.row = w};
    struct coll_grant g;
    char now[1600];
    size_t n;

    up(&b);
    n = (size_t)snprintf(now, sizeof(now), "%s:", w->name);
    world_alarm(b.w, world_now(b.w) + (int64_t)w->at_us * PS_PER_US, power, &b);
    for (unsigned k = 0; k < 16; k++) {
        n += run(&b, k, now + n, sizeof(now) - n);
        if (k % 4 == 3) /* lost trees are asked again */
            job_drive(b.j, world_now(b.w) + 120 * PS_PER_MS, never, NULL);
    }
    comm_granted(job_comm(b.j, 1), &g);
    n += (size_t)snprintf(now + n, sizeof(now) - n, "; %u of %u trees, %u %u of %u, %u cut%s",
                          g.trees, g.trees_asked, g.window, g.rail, g.asked,
                          comm_cut(job_comm(b.j, 1)),
                          comm_lacks_trees(job_comm(b.j, 1), w->algo) ? ", lacks" : "");
    if (comm_fell_back(job_comm(b.j, 1)))
        n += (size_t)snprintf(now + n, sizeof(now) - n, "; %s", comm_fell_back(job_comm(b.j, 1)));
    job_destroy(b.j);
    snprintf(now + n, sizeof(now) - n, "; %lu frames, %ld ns, %lx", world_frames(b.w),
             world_now(b.w) / 1000, world_trace_hash(b.w));
    world_destroy(b.w);
    fabric_free(b.f);
    if (at >= OUTAGES || strcmp(outages[at], now)) {
        wrong++;
        printf("    \"%s\",\n", now);
    }
    at++;
}

static void outages_end_as_they_ended(void **state)
{
    static const struct {
        const char *conf, *node;
        unsigned n;
        enum coll_algo algo;
    } of[] = {
        {leaves, "spine0", 4, ALGO_SHARP},    {leaves, "spine1", 4, ALGO_SHARP},
        {leaves, "spine0", 4, ALGO_PROTOCOL}, {leaves, "spine0", 4, ALGO_PROTOCOL + 2},
        {star, "switch0", 4, ALGO_SHARP},     {nodes, "spine0", 8, ALGO_SHARP},
        {nodes, "leaf1", 8, ALGO_HIER_SHARP}, {nodes, "n0s1", 8, ALGO_NVLS_SHARP},
        {nodes, "leaf0", 8, ALGO_NVLS_SHARP},
    };
    static const char *const words[] = {"is gone", "is gone for a while", "starts again"};
    static const unsigned times[] = {1, 6};

    (void)state;
    for (unsigned i = 0; i < sizeof(of) / sizeof(of[0]); i++)
        for (enum outage o = GONE; o < KINDS_OF_OUTAGE; o++)
            for (unsigned t = 0; t < 2; t++) {
                char name[80];
                const struct row w = {name, of[i].conf, of[i].n, of[i].algo,
                                      o,    of[i].node, times[t]};

                snprintf(name, sizeof(name), "%s, %s %s at %u us", sched_algo_name(w.algo), w.node,
                         words[o], w.at_us);
                compare(&w);
            }
    assert_int_equal(wrong, 0);
    assert_int_equal(at, OUTAGES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(outages_end_as_they_ended)};

    test_eal_init();
    pool = test_pool(60000);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
