/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames and threads that a run takes, from what its ranks can have on its way at once; and what switches promise to jobs. */
#include "host/bench/host_resources.h"
#include "sim/capacity.h"
#include "sim/capacity_groups.h"
#include "sim/world/memory.h"
#include "switch/reduce/an.h"
#include "tests/fabric/load.h"

#define FIXED  16384u /* of any run, and of each rank */
#define A_RANK 384u
#define GPUS(n, planes)                                                                            \
    "gpu_nodes = { nodes = 1; gpus = " n "; planes = ( " planes                                    \
    " ); nvlink = { rate = \"25GB/s\"; latency = \"300ns\"; }; };\n"

static struct sweep sweep;

static struct sim run_of(const struct fabric *f, unsigned nranks, unsigned algos)
{
    static struct sim m;

    m = (struct sim){.s = &sweep};
    sweep = (struct sweep){.o = &m.o, .fab = f, .nranks = nranks, .algos = algos};
    for (unsigned r = 0; r < nranks; r++)
        sweep.host_of_rank[r] = (uint16_t)r;
    m.o.coll = COLL_ALLREDUCE;
    return m;
}

static unsigned frames_of(const struct fabric *f, unsigned nranks, unsigned algos,
                          enum coll_kind coll, unsigned sparse)
{
    struct sim m = run_of(f, nranks, algos);

    m.o.coll = coll;
    m.o.sparse = sparse;
    sweep.o = &m.o;
    return capacity_frames(&m);
}

/* Where ranks send to all their peers, each way has a frame and an ACK. */
static void frames_on_a_network(void **state)
{
    static const struct {
        unsigned nranks, algos;
        enum coll_kind coll;
        unsigned sparse, frames;
    } row[] = {
        {8, 1u << ALGO_RING, COLL_ALLREDUCE, 0, FIXED + 8 * A_RANK},
        {2, 1u << ALGO_RING, COLL_ALLTOALL, 0, FIXED + 2 * A_RANK},
        {8, 1u << ALGO_DIRECT, COLL_ALLREDUCE, 0, FIXED + 8 * A_RANK + 2 * 8 * 8},
        {8, 1u << ALGO_PXN, COLL_ALLTOALL, 0, FIXED + 8 * A_RANK + 2 * 8 * 8},
        {8, 1u << ALGO_DIRECT, COLL_ALLTOALL, 3, FIXED + 8 * A_RANK + 2 * 8 * 3},
        {8, 1u << ALGO_DIRECT, COLL_ALLTOALL, 30, FIXED + 8 * A_RANK + 2 * 8 * 8},
        {8, 1u << ALGO_DIRECT, COLL_SENDRECV, 0, FIXED + 8 * A_RANK + 2 * 8},
        {8, 1u << ALGO_DIRECT, COLL_BROADCAST, 0, FIXED + 8 * A_RANK + 2 * 8},
        {8, 1u << ALGO_NVLS, COLL_ALLREDUCE, 0, FIXED + 8 * A_RANK}, /* in no node */
    };
    struct fabric *f = load_leaf_spine(2, 1, 4, 1, "");
    struct sim m;

    (void)state;
    for (unsigned i = 0; i < LEN(row); i++)
        assert_int_equal(frames_of(f, row[i].nranks, row[i].algos, row[i].coll, row[i].sparse),
                         row[i].frames);
    m = run_of(f, 8, 1u << ALGO_DIRECT);
    m.own.frames = 5;
    assert_int_equal(capacity_frames(&m), 5);
    /* auto may take each algorithm that there is */
    m = run_of(f, 8, 1u << ALGO_AUTO);
    sweep.exist = 1u << ALGO_RING | 1u << ALGO_DIRECT;
    assert_int_equal(capacity_frames(&m), FIXED + 8 * A_RANK + 2 * 8 * 8);
    m = run_of(f, 8, 1u << ALGO_RING);
    sweep.exist = 1u << ALGO_DIRECT;
    assert_int_equal(capacity_frames(&m), FIXED + 8 * A_RANK);
    fabric_free(f);
}

/* In a node each pair has as many ways as there are planes: 12 x 2 of four GPUs. */
static void frames_in_a_node(void **state)
{
    struct fabric *f = load_text("mtu = 1024;" GPUS("4", "9, 9"));

    (void)state;
    assert_int_equal(frames_of(f, 4, 1u << ALGO_RING, COLL_ALLREDUCE, 0), FIXED + 4 * A_RANK);
    assert_int_equal(frames_of(f, 4, 1u << ALGO_NVLS, COLL_ALLREDUCE, 0),
                     FIXED + 4 * A_RANK + 64 * 24);
    assert_int_equal(frames_of(f, 2, 1u << ALGO_NVLS_SHARP, COLL_ALLREDUCE, 0),
                     FIXED + 2 * A_RANK + 64 * 4);
    assert_int_equal(frames_of(f, 4, 1u << ALGO_DIRECT, COLL_ALLREDUCE, 0),
                     FIXED + 4 * A_RANK + 2 * 4 * 4);
    fabric_free(f);
    /* A way each, where they are more than what ranks need otherwise. */
    f = load_text("mtu = 1024;" GPUS("64", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"));
    assert_int_equal(frames_of(f, 64, 1u << ALGO_DIRECT, COLL_SENDRECV, 0), FIXED + 64 * 63 * 18);
    fabric_free(f);
}

static void threads(void **state)
{
    struct fabric *f = load_leaf_spine(2, 1, 4, 1, "");
    unsigned cores = host_resources_cores();
    static const struct {
        uint64_t asked;
        unsigned nranks, threads;
    } row[] = {{4, 8, 4}, {9, 8, 8}, {64, 100, 64}, {65, 100, 64}, {1, 8, 1}};
    struct sim m;

    (void)state;
    for (unsigned i = 0; i < LEN(row); i++) {
        m = run_of(f, row[i].nranks, 1u << ALGO_RING);
        m.own.threads = row[i].asked;
        assert_int_equal(capacity_threads(&m), row[i].threads);
    }
    m = run_of(f, 8, 1u << ALGO_RING); /* too few for more than one */
    assert_int_equal(capacity_threads(&m), 1);
    m = run_of(f, 63, 1u << ALGO_RING);
    assert_int_equal(capacity_threads(&m), 1);
    m = run_of(f, 4096, 1u << ALGO_RING);
    assert_int_equal(capacity_threads(&m), RTE_MIN(RTE_MIN(cores, 128u), 64u));
    /* Frames come in order to what looks at them. */
    m = run_of(f, 8, 1u << ALGO_RING);
    m.own.threads = 4;
    m.own.background_flow = "h0:h1";
    assert_int_equal(capacity_threads(&m), 1);
    m.own.background_flow = NULL;
    m.trace = (struct trace *)&m;
    assert_int_equal(capacity_threads(&m), 1);
    m.trace = NULL;
    m.line = (struct net_timeline *)&m;
    assert_int_equal(capacity_threads(&m), 1);
    fabric_free(f);
}

/* ---- jobs ---- */

static struct jobs_plan plan;

static void load(const struct fabric *f, const char *jobs)
{
    static struct fab_errors errs;
    char text[1024];

    snprintf(text, sizeof(text), "jobs = ( %s );", jobs);
    if (jobs_load_string(&plan, text, "jobs.conf", f, &errs)) {
        fab_errors_print(&errs, stderr);
        fail_msg("the jobs were refused");
    }
}

#define JOB(name, hosts, algo)                                                                     \
    "{ name = \"" name "\"; hosts = [ " hosts                                                      \
    " ]; collective = \"all_reduce\"; algorithm = \"" algo "\"; size = \"4KiB\"; repeat = 1; }"
#define WINDOW 64u

/* Switches promise each group what its window takes; the one that promises most counts. */
static void promises(void **state)
{
    static const struct {
        const char *jobs;
        unsigned groups, children;
    } row[] = {
        {JOB("a", "\"h0\", \"h1\"", "ring"), 0, 0},
        {JOB("a", "\"h0\", \"h1\"", "sharp"), 1, 2},
        {JOB("a", "\"h0\", \"h1\", \"h2\", \"h3\"", "sharp"), 1, 4},
        {JOB("a", "\"h0\", \"h1\"", "sharp") "," JOB("b", "\"h2\", \"h3\"", "sharp"), 2, 2},
        {JOB("a", "\"h0\", \"h1\"", "sharp") "," JOB("b", "\"h2\", \"h3\"", "ring"), 1, 2},
        {JOB("a", "\"h0\", \"h1\"", "sharp") "," JOB("b", "\"h4\", \"h5\"", "sharp"), 1, 2},
    };
    struct fabric *f =
        load_text(LINKS "reduce = { window = 64; slots = 65536; };"
                        "leaf_spine = { leaves = 2; spines = 1; hosts_per_leaf = 4; };");

    (void)state;
    for (unsigned i = 0; i < LEN(row); i++) {
        uint64_t want =
            row[i].groups ? row[i].groups * an_group_mbufs(row[i].children, true, WINDOW) : 0;

        load(f, row[i].jobs);
        if (capacity_group_mbufs(f, &plan) != want)
            fail_msg("row %u: found %lu, expected %lu", i, capacity_group_mbufs(f, &plan), want);
        jobs_free(&plan);
    }
    /* Over both leaves: each has two members and sends on; the spine has two leaves, and is the top. */
    load(f, JOB("a", "\"h0\", \"h1\", \"h4\", \"h5\"", "sharp"));
    assert_int_equal(capacity_group_mbufs(f, &plan),
                     RTE_MAX(an_group_mbufs(2, false, WINDOW), an_group_mbufs(2, true, WINDOW)));
    jobs_free(&plan);
    fabric_free(f);
}

/* A rail of each place in the nodes has a group of its own; a switch that may get both leaves room for
 * both. */
static void promises_of_rails(void **state)
{
    struct fabric *f = load_text("reduce = { window = 64; slots = 65536; }; gpu_nodes = { nodes = "
                                 "3; gpus = 2; planes = ( 9 );\n"
                                 "nvlink = { rate = \"25GB/s\"; latency = \"300ns\"; };\n"
                                 "nic = { rate = \"400Gb/s\"; latency = \"300ns\"; }; };\n"
                                 "rails = { leaves = 1; spines = 1; spine_link = { rate = "
                                 "\"400Gb/s\"; latency = \"300ns\"; }; "
                                 "};\n");

    (void)state;
    load(f, JOB("a", "\"n0g0\", \"n0g1\", \"n1g0\", \"n1g1\", \"n2g0\", \"n2g1\"", "hier_sharp"));
    assert_int_equal(capacity_group_mbufs(f, &plan), 2 * an_group_mbufs(3, true, WINDOW));
    jobs_free(&plan);
    fabric_free(f);
}

/* Each job has its frames; where groups are promised more, these come beside them. */
static void frames_of_jobs(void **state)
{
    struct fabric *f =
        load_text(LINKS "reduce = { window = 64; slots = 65536; };"
                        "leaf_spine = { leaves = 2; spines = 1; hosts_per_leaf = 4; };");
    struct sim m = run_of(f, 8, 0);

    (void)state;
    load(f, JOB("a", "\"h0\", \"h1\"", "ring") "," JOB("b", "\"h2\", \"h3\", \"h4\"", "direct"));
    assert_int_equal(capacity_frames_of_jobs(f, &plan), 2 * FIXED + 5 * A_RANK + 2 * 3 * 3);
    m.own.payload = PAYLOAD_NONE;
    assert_int_equal(capacity_check_jobs(&m, &plan, 1000), 0);
    assert_int_equal(m.need.frames, memory_frames_bytes(1000, 1, true));
    assert_int_equal(m.need.data, 0);
    m.own.payload = PAYLOAD_DATA;
    assert_int_equal(capacity_check_jobs(&m, &plan, 2000), 0);
    assert_int_equal(m.need.frames, memory_frames_bytes(2000, 1, false));
    assert_int_equal(m.need.data, jobs_data_bytes(&plan.job[0]) + jobs_data_bytes(&plan.job[1]));
    assert_true(jobs_data_bytes(&plan.job[0]) > 0);
    jobs_free(&plan);
    fabric_free(f);
    f = load_text(LINKS "reduce = { window = 2048; slots = 65536; };"
                        "leaf_spine = { leaves = 2; spines = 1; hosts_per_leaf = 16; };");
    load(f, "{ name = \"a\"; hosts = [ \"h0\", \"h1\", \"h2\", \"h3\", \"h4\", \"h5\", \"h6\", "
            "\"h7\", \"h8\", \"h9\", \"h10\", \"h11\", \"h12\", \"h13\", \"h14\", \"h15\" ]; "
            "collective = \"all_reduce\"; algorithm = \"sharp\"; size = \"4KiB\"; repeat = 1; "
            "window = 2048; }");
    assert_int_equal(capacity_group_mbufs(f, &plan), an_group_mbufs(16, true, 2048));
    assert_true(an_group_mbufs(16, true, 2048) > FIXED + 16 * A_RANK);
    assert_int_equal(capacity_frames_of_jobs(f, &plan),
                     an_group_mbufs(16, true, 2048) + FIXED + 16 * A_RANK);
    jobs_free(&plan);
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_on_a_network),
        cmocka_unit_test(frames_in_a_node),
        cmocka_unit_test(threads),
        cmocka_unit_test(promises),
        cmocka_unit_test(promises_of_rails),
        cmocka_unit_test(frames_of_jobs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
