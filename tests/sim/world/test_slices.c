/* SPDX-License-Identifier: BSD-3-Clause */
/* A world that runs by slices of time, on any number of threads, is at every moment in the same
 * state as one that runs event by event. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "collective/sched.h"
#include "sim/job/sim_job.h"
#include "sim/world/fault_player.h"
#include "tests/support/eal.h"

#define COUNT (96u << 10) /* fp32 */
#define LS    "leaf-spine-8"
#define MESH  "npu-mesh-8" /* for one thread, for any requested number */
#define FAR   "far-spines" /* whose slices are as long as the shorter links */
#define PAID  "paid"       /* GPU nodes with costs by path: ranks sleep before operations */

struct row {
    const char *conf;
    unsigned nranks;
    enum coll_kind kind;
    enum coll_algo algo;
};

static const struct row rows[] = {
    {"leaf-spine-8", 8, COLL_ALLREDUCE, ALGO_RING},
    {"leaf-spine-8", 8, COLL_ALLREDUCE, ALGO_SHARP},
    {"leaf-spine-8", 7, COLL_ALLREDUCE, ALGO_TREE},
    {"leaf-spine-8", 8, COLL_BROADCAST, ALGO_TREE}, /* a rank that has ended still receives
                                                       messages */
    {"leaf-spine-8", 8, COLL_ALLTOALL, ALGO_DIRECT},
    {"leaf-spine-8", 8, COLL_BARRIER, ALGO_SHARP},
    {"h100-node", 8, COLL_ALLREDUCE, ALGO_NVLS},
    {"h100-node", 8, COLL_ALLREDUCE, ALGO_HALVING},
    {"rail-2x4", 8, COLL_ALLREDUCE, ALGO_HIER_SHARP},
    {"incast-32", 33, COLL_GATHER, ALGO_DIRECT}, /* pauses, full queues */
    {"incast-32-dcqcn", 33, COLL_GATHER, ALGO_DIRECT},
    {FAR, 8, COLL_ALLREDUCE, ALGO_SHARP},
    {FAR, 8, COLL_ALLTOALL, ALGO_DIRECT},
    {MESH, 8, COLL_ALLREDUCE, ALGO_RING}, /* hosts are neighbours */
    {PAID, 8, COLL_ALLREDUCE, ALGO_RING},
    {PAID, 8, COLL_ALLREDUCE, ALGO_NVLS_SHARP},
    {PAID, 7, COLL_ALLTOALL, ALGO_DIRECT},
    {"h100-node-measured", 8, COLL_ALLREDUCE, ALGO_RING}, /* costs of messages */
};

struct bad {
    struct row r;
    const char *plan; /* of faults */
    enum { SLICES, SOME_SLICES, NO_SLICES } by;
    bool fails; /* its second loop */
};

static const struct bad bad_days[] = {
    {{LS, 8, COLL_ALLREDUCE, ALGO_RING}, "{ link = \"all\"; loss = 0.001; }", NO_SLICES, false},
    {{LS, 8, COLL_ALLREDUCE, ALGO_SHARP},
     "{ link = \"all\"; jitter = \"100ns\"; }",
     NO_SLICES,
     false},
    {{LS, 8, COLL_ALLREDUCE, ALGO_RING}, "{ link = \"all\"; reorder = 0.05; }", NO_SLICES, false},
    /* reordered frames are still in flight when the faults are over */
    {{LS, 8, COLL_ALLREDUCE, ALGO_RING},
     "{ link = \"all\"; reorder = 0.5; dup = 0.01; }, { at = \"60us\"; link = \"all\"; clear = "
     "true; }",
     SOME_SLICES,
     false},
    {{LS, 8, COLL_ALLREDUCE, ALGO_RING},
     "{ at = \"60us\"; link = \"h1-leaf0\"; reorder = 0.05; }",
     NO_SLICES,
     false},
    {{LS, 8, COLL_ALLREDUCE, ALGO_SHARP},
     "{ at = \"9us\"; link = \"leaf0-spine0\"; down = true; }",
     SOME_SLICES,
     false},
    {{LS, 8, COLL_ALLREDUCE, ALGO_RING}, "{ host = \"h3\"; slow = 5; }", SLICES, false},
    {{LS, 8, COLL_ALLREDUCE, ALGO_RING},
     "{ at = \"9us\"; link = \"all\"; rate = \"200Gb/s\"; }, { at = \"20us\"; link = \"h1-leaf0\"; "
     "rate = \"50Gb/s\"; latency = \"1us\"; }",
     SOME_SLICES,
     false},
    /* shorter than a slice, until that is over */
    {{LS, 8, COLL_ALLREDUCE, ALGO_RING},
     "{ link = \"h1-leaf0\"; latency = \"7ns\"; }",
     NO_SLICES,
     false},
    {{LS, 8, COLL_ALLREDUCE, ALGO_SHARP},
     "{ link = \"h1-leaf0\"; latency = \"0ns\"; }, { at = \"20us\"; link = \"all\"; clear = true; "
     "}",
     SOME_SLICES,
     false},
    /* no rank is notified: some fail by themselves while others are in an operation */
    {{LS, 8, COLL_ALLREDUCE, ALGO_RING},
     "{ at = \"50us\"; rank = 5; die = true; }",
     SOME_SLICES,
     true},
};

/* Fingerprint of a run. */
struct seen {
    int64_t time_ps[2], now_ps;
    uint64_t events, frames, hash, asked;
    int64_t closed;
    char failed[sizeof(((struct job_loop *)0)->text)];
};

static struct rte_mempool *pool;
static struct {
    const struct row *r;
    struct world *w;
    struct job *j;
    bool by_steps;
    uint64_t asked;
} run;

static void args(void *ctx, unsigned rank, struct coll_args *a)
{
    (void)ctx;
    *a = (struct coll_args){.kind = run.r->kind,
                            .algo = run.r->algo,
                            .send = job_buffer(run.j, rank, 0),
                            .recv = job_buffer(run.j, rank, 1),
                            .count = run.r->kind == COLL_ALLREDUCE ? COUNT : COUNT / 40,
                            .type = DT_FP32,
                            .op = OP_SUM};
    if (run.r->kind == COLL_BARRIER)
        a->count = 0;
}

/* Now and then all nodes come together, between two slices: none is left behind. */
static bool asked(void *ctx)
{
    (void)ctx;
    if (++run.asked % 4 < 2 && !run.by_steps) {
        world_join(run.w);
        assert_true(net_next(world_net(run.w)) > world_now(run.w));
    }
    return false;
}

static void carry_out(struct faults **out, const struct bad *bad, const struct fabric *f,
                      struct world *w, const uint16_t *hosts)
{
    const struct faults_cfg fc = {.w = w, .fab = f, .nranks = bad->r.nranks, .host_of_rank = hosts};
    struct fault_plan plan = {0};
    struct fab_errors errs = {0};
    char text[256];

    snprintf(text, sizeof(text), "faults = ( %s );", bad->plan);
    if (fault_plan_load_string(&plan, text, "plan", f, bad->r.nranks, &errs))
        fail_msg("%s: %s", bad->plan, errs.e[0].text);
    assert_int_equal(faults_create(out, &plan, &fc), 0);
    fault_plan_free(&plan);
}

static struct fabric *load(const char *name)
{
    char conf[64];

    snprintf(conf, sizeof(conf), "conf/%s.conf", name);
    if (!strcmp(name, PAID))
        return fabric_load_string("mtu = 4096; reduce = { }; rails = { leaves = 1; };"
                                  "gpu_nodes = { nodes = 2; gpus = 4; planes = ( 4, 4 );"
                                  " nvlink = { rate = \"25GB/s\"; latency = \"300ns\"; };"
                                  " nic = { rate = \"400Gb/s\"; latency = \"300ns\"; }; };"
                                  "costs = { gpu = \"500ns\";"
                                  " nvlink = { launch = \"20us\"; step = \"3.4us\";"
                                  "  ll = { step = \"600ns\"; rate = \"40GB/s\"; }; };"
                                  " multimem = { launch = \"70us\"; load = 0.85; store = 0.8; };"
                                  " network = { launch = \"30us\"; step = \"14us\"; }; };",
                                  PAID, NULL);
    return strcmp(name, FAR)
               ? fabric_load(conf, NULL)
               : fabric_load_string("name = \"far\"; mtu = 4096; reduce = { };"
                                    "leaf_spine = { leaves = 4; spines = 2; hosts_per_leaf = 2;"
                                    "host_link = { rate = \"400Gb/s\"; latency = \"300ns\"; };"
                                    "spine_link = { rate = \"400Gb/s\"; latency = \"1us\"; }; };",
                                    FAR, NULL);
}

/* bad: NULL: a good one */
static struct seen look(const struct row *r, unsigned threads, const struct bad *bad)
{
    uint16_t hosts[128];
    struct world_cfg wc = {
        .pool = pool, .seed = 1, .nranks = r->nranks, .host_of_rank = hosts, .threads = threads};
    struct job_loop l = {.args = args, .stop = asked, .by_steps = !threads, .limit_ps = PS_PER_S};
    struct job_cfg jc = {.nranks = r->nranks,
                         .host_of_rank = hosts,
                         .group = 1,
                         .key = 7,
                         .algos = 1u << r->algo,
                         .limit_ps = PS_PER_S};
    char err[COMM_TEXT];
    struct faults *faults = NULL;
    struct seen s = {0};
    struct fabric *f;
    struct world *w;

    wc.fab = jc.fab = f = load(r->conf);
    assert_non_null(f);
    for (unsigned i = 0; i < r->nranks; i++)
        hosts[i] = (uint16_t)i;
    assert_int_equal(world_create(&w, &wc), 0);
    assert_int_equal(world_threads(w), strcmp(r->conf, MESH) && threads ? threads : 1);
    if (bad)
        carry_out(&faults, bad, f, w, hosts);
    jc.w = w;
    if (job_create(&run.j, &jc, err))
        fail_msg("%s: %s", r->conf, err);
    assert_int_equal(job_buffers(run.j, COUNT * 4), 0);
    run.r = r;
    run.w = w;
    run.by_steps = !threads;
    run.asked = 0;
    if (faults)
        faults_start(faults);
    for (unsigned i = 0; i < 2; i++) {
        l.n = 1 + 2 * i;
        if (!job_loop_run(run.j, &l) == (bad && bad->fails && i))
            fail_msg("%s: %s", r->conf, l.text);
        snprintf(s.failed, sizeof(s.failed), "%s", l.text);
        s.time_ps[i] = l.time_ps;
    }
    s.asked = run.asked;
    s.now_ps = world_now(w);
    s.closed = job_destroy(run.j);
    assert_true(!s.closed || (bad && bad->fails));
    s.events = world_events(w);
    s.frames = world_frames(w);
    s.hash = world_trace_hash(w);
    faults_destroy(faults);
    world_destroy(w);
    fabric_free(f);
    return s;
}

static void compare(const struct row *r, const struct bad *bad)
{
    struct seen a = look(r, 0, bad), b = look(r, 1, bad);

    print_message("%-18s %-10s %9.3f us, %8llu events, asked %llu and %llu times%s%s\n", r->conf,
                  sched_algo_name(r->algo), (double)a.time_ps[1] * 1e-6 / 3,
                  (unsigned long long)a.events, (unsigned long long)a.asked,
                  (unsigned long long)b.asked, *a.failed ? "; " : "", a.failed);
    if (!bad || bad->by == SLICES)
        assert_true(b.asked < a.asked / 2);
    else if (bad->by == SOME_SLICES)
        assert_true(b.asked < a.asked);
    else
        assert_true(b.asked == a.asked);
    for (unsigned threads = 2; threads <= 4; threads++) {
        struct seen c = look(r, threads, bad);

        assert_memory_equal(&b, &c, sizeof(b));
    }
    a.asked = b.asked = 0;
    assert_memory_equal(&a, &b, sizeof(a));
}

static void slices_are_steps(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        compare(&rows[i], NULL);
}

/* Links with faults go event by event, whatever the plan does later and however many threads there
 * are; all others by slices. */
static void faults_change_nothing(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof(bad_days) / sizeof(bad_days[0]); i++)
        compare(&bad_days[i].r, &bad_days[i]);
}

/* Many nodes a thread, and switches that hosts of several share. */
static void threads_are_one(void **state)
{
    static const struct row many[] = {
        {"h100-su", 32, COLL_ALLREDUCE, ALGO_HIER_SHARP},
        {"h100-su", 32, COLL_ALLTOALL, ALGO_DIRECT},
        {"h100-su", 32, COLL_ALLREDUCE, ALGO_NVLS_SHARP},
        {"h100-su", 104, COLL_ALLREDUCE, ALGO_RING}, /* SOON_PROCESSES */
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(many) / sizeof(many[0]); i++) {
        struct seen one = look(&many[i], 1, NULL);

        for (unsigned threads = 2; threads <= 4; threads += 2) {
            struct seen more = look(&many[i], threads, NULL);

            assert_memory_equal(&one, &more, sizeof(one));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(slices_are_steps),
                                       cmocka_unit_test(faults_change_nothing),
                                       cmocka_unit_test(threads_are_one)};

    test_eal_init();
    pool = test_pool(65536);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
