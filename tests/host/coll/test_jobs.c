/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs in virtual time on whole fabrics: each algorithm and protocol runs every collective that it has, on a switch, on leaves with
 * two trees, on GPU nodes, where links lose frames, where switches have room for few groups. A run is the same every time and in
 * every build, so its frames, times, grants and counts are compared whole. A line that differs is printed as it is now.
 */
#include "collective/sched.h"
#include "sim/job/sim_job.h"
#include "tests/host/coll/jobs.h"
#include "tests/support/eal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define LINK(r, more) "{ rate = \"" r "\"; latency = \"300ns\"; " more " }"
#define MOST          8u
#define NODES                                                                                      \
    "mtu = 4096; ecmp = \"balanced\"; gpu_nodes = { nodes = 2; gpus = 4; planes = ( 2, 1 ); "      \
    "nvlink = " LINK("25GB/s", "") "; nic = " LINK(                                                \
        "200Gb/s", "") "; }; rails = { leaves = 2; "                                               \
                       "spines = 2; spine_link = " LINK("200Gb/s", "") "; }; "
#define LEAVES                                                                                     \
    "mtu = 2048; ecmp = \"balanced\"; leaf_spine = { leaves = 2; spines = 2; hosts_per_leaf = 2; " \
    "host_link = " LINK("100Gb/s", "") "; spine_link = " LINK("100Gb/s", "") "; }; "

static const struct place {
    const char *name, *conf;
    unsigned n, per_host, n_trees;
    uint32_t an_mbufs, window;
} places[] = {
    {"star",
     "mtu = 1024; single_switch = { hosts = 3; host_link = " LINK(
         "100Gb/s", "") "; }; reduce = { groups = 64; slots = 4096; window = 64; };",
     3, 1, 1, 0, 0},
    {"losses",
     "mtu = 1024; single_switch = { hosts = 4; host_link = " LINK(
         "100Gb/s",
         "loss = 0.004; dup = 0.003;") "; }; reduce = { groups = 64; slots = 4096; window = 64; };",
     4, 1, 1, 0, 0},
    {"shared hosts",
     "mtu = 1024; costs = { gpu = \"2us\"; hca = \"300ns\"; }; single_switch = { hosts = 2; "
     "host_link = " LINK("100Gb/s",
                         "") "; }; reduce = { groups = 64; slots = 4096; window = 64; };",
     4, 2, 1, 0, 16},
    {"leaves", LEAVES "reduce = { groups = 64; slots = 4096; window = 64; };", 4, 1, 2, 0, 0},
    {"few slots", LEAVES "reduce = { groups = 1; slots = 24; window = 24; };", 4, 1, 2, 0, 32},
    {"few buffers", LEAVES "reduce = { groups = 64; slots = 4096; window = 64; };", 4, 1, 2, 60, 0},
    {"a node",
     "mtu = 4096; gpu_nodes = { nodes = 1; gpus = 4; planes = ( 2, 1 ); nvlink = " LINK(
         "25GB/s", "") "; }; reduce = { groups = 64; slots = 4096; window = 64; };",
     4, 1, 0, 0, 0},
    {"nodes", NODES "reduce = { groups = 64; slots = 4096; window = 64; };", 8, 1, 2, 0, 0},
};

static struct rte_mempool *pool;
static unsigned at, wrong;

struct fixture {
    struct fabric *f;
    struct world *w;
    struct job *j;
};

static int up(struct fixture *b, const struct place *p, unsigned algos, char *err)
{
    uint16_t hosts[MOST];
    struct world_cfg wc = {
        .nranks = p->n, .host_of_rank = hosts, .pool = pool, .seed = 5, .an_mbufs = p->an_mbufs};
    struct job_cfg jc = {.nranks = p->n,
                         .host_of_rank = hosts,
                         .group = 3,
                         .key = 99,
                         .n_trees = p->n_trees,
                         .window = p->window,
                         .algos = algos,
                         .any_order = true,
                         .buffer_bytes = 1 << 18,
                         .limit_ps = 20 * PS_PER_S};
    static struct fab_errors errs;
    char conf[1000];

    for (unsigned r = 0; r < p->n; r++)
        hosts[r] = (uint16_t)(r / p->per_host);
    snprintf(conf, sizeof(conf), "name = \"jobs\"; %s", p->conf);
    b->f = fabric_load_string(conf, "jobs.conf", &errs);
    if (!b->f)
        fab_errors_print(&errs, stderr);
    assert_non_null(b->f);
    wc.fab = jc.fab = b->f;
    assert_int_equal(world_create(&b->w, &wc), 0);
    jc.w = b->w;
    return job_create(&b->j, &jc, err);
}

static void down(struct fixture *b)
{
    if (b->j)
        assert_int_equal(job_destroy(b->j), 0);
    assert_int_equal(world_objects(b->w), 0);
    world_destroy(b->w);
    fabric_free(b->f);
}

static size_t grants(const struct fixture *b, char *now, size_t room)
{
    struct coll_grant g;

    comm_granted(job_comm(b->j, 1), &g);
    return (size_t)snprintf(now, room, "; %u of %u trees, %u %u of %u %s", g.trees, g.trees_asked,
                            g.window, g.rail, g.asked, g.why);
}

static size_t run(struct fixture *b, const struct job_op *op, char *now, size_t room)
{
    struct coll_args a = {.kind = op->kind,
                          .algo = op->algo,
                          .type = op->type,
                          .op = op->op,
                          .count = op->count,
                          .root = op->root};
    struct job_result res;

    if (!comm_supports(job_comm(b->j, 0), &a))
        return 0;
    if (job_run(b->j, op, &res) || res.wrong || res.failed_ranks)
        return (size_t)snprintf(now, room, "; %s of %zu: %s", coll_name(op->kind), op->count,
                                res.text);
    return (size_t)snprintf(now, room, " %ld", res.time_ps / 1000);
}

static size_t all_kinds(struct fixture *b, enum coll_algo algo, char *now, size_t room)
{
    static const size_t counts[] = {1, 1501, 6007};
    size_t n = 0;

    for (enum coll_kind k = 0; k < COLL_KINDS; k++)
        for (unsigned c = 0; c < (k == COLL_BARRIER ? 1 : 3); c++) {
            const struct job_op op = {.kind = k,
                                      .algo = algo,
                                      .type = DT_FP32,
                                      .op = OP_SUM,
                                      .count = k == COLL_BARRIER ? 0 : counts[c],
                                      .root = 1,
                                      .in_place = c == 1,
                                      .skew_ps = 400000 * c,
                                      .mm_self = c > 1,
                                      .seed = k + 1};

            n += run(b, &op, now + n, room - n);
        }
    return n;
}

static size_t counted(const struct fixture *b, enum coll_algo algo, char *now, size_t room)
{
    uint64_t k[TRIB_COUNTERS];
    size_t n = 0;

    for (unsigned r = 0; r < 2; r++) {
        comm_counted(job_comm(b->j, r), algo, k);
        for (unsigned i = 0; i < TRIB_COUNTERS; i++)
            if (k[i])
                n += (size_t)snprintf(now + n, room - n, "%s%lu", n ? " " : "; counted ", k[i]);
    }
    return n;
}

static void compare(const struct place *p, enum coll_algo algo)
{
    char now[1200], err[COMM_TEXT] = "";
    struct fixture b = {0};
    size_t n = (size_t)snprintf(now, sizeof(now), "%s %s", p->name, sched_algo_name(algo));

    if (up(&b, p, 1u << algo | 1u << ALGO_RING, err)) {
        n += (size_t)snprintf(now + n, sizeof(now) - n, ": %s", err);
    } else {
        n += grants(&b, now + n, sizeof(now) - n);
        n += (size_t)snprintf(now + n, sizeof(now) - n, "; %lu frames, %ld ns;", world_frames(b.w),
                              world_now(b.w) / 1000);
        n += all_kinds(&b, algo, now + n, sizeof(now) - n);
        n += counted(&b, algo, now + n, sizeof(now) - n);
        if (comm_fell_back(job_comm(b.j, 0)))
            n += (size_t)snprintf(now + n, sizeof(now) - n, "; %s",
                                  comm_fell_back(job_comm(b.j, 0)));
        job_destroy(b.j);
        b.j = NULL;
    }
    snprintf(now + n, sizeof(now) - n, "; %lu frames, %ld ns, %lx", world_frames(b.w),
             world_now(b.w) / 1000, world_trace_hash(b.w));
    down(&b);
    if (at >= JOBS || strcmp(jobs[at], now)) {
        wrong++;
        printf("    \"%s\",\n", now);
    }
    at++;
}

static void jobs_run_as_they_ran(void **state)
{
    (void)state;
    for (const struct place *p = places; p < places + sizeof(places) / sizeof(places[0]); p++)
        for (enum coll_algo a = 0; a < ALGO_SCHEDULE; a++)
            if (!coll_is_protocol(a) || coll_protocol(a))
                compare(p, a);
    assert_int_equal(wrong, 0);
    assert_int_equal(at, JOBS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(jobs_run_as_they_ran)};

    test_eal_init();
    pool = test_pool(60000);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
