/* A world by slices of time, node by node, on any number of threads, does at every moment what it
 * does event by event. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "host/coll/sched.h"
#include "sim/job.h"
#include "tests/support/eal.h"

#define COUNT (96u << 10)  /* fp32 */
#define MESH  "npu-mesh-8" /* for one thread, whatever is asked for */

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
    {"leaf-spine-8", 8, COLL_BROADCAST, ALGO_TREE}, /* who has ended still hears from others */
    {"leaf-spine-8", 8, COLL_ALLTOALL, ALGO_DIRECT},
    {"leaf-spine-8", 8, COLL_BARRIER, ALGO_SHARP},
    {"h100-node", 8, COLL_ALLREDUCE, ALGO_NVLS},
    {"h100-node", 8, COLL_ALLREDUCE, ALGO_HALVING},
    {"rail-2x4", 8, COLL_ALLREDUCE, ALGO_HIER_SHARP},
    {"incast-32", 33, COLL_GATHER, ALGO_DIRECT}, /* pauses, full queues */
    {"incast-32-dcqcn", 33, COLL_GATHER, ALGO_DIRECT},
    {MESH, 8, COLL_ALLREDUCE, ALGO_RING},                 /* hosts are neighbours */
    {"h100-node-measured", 8, COLL_ALLREDUCE, ALGO_RING}, /* costs of messages */
};

/* What a run is known by. */
struct seen {
    int64_t time_ps[2], now_ps;
    uint64_t events, frames, hash, asked;
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

static struct seen look(const struct row *r, unsigned threads)
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
    char conf[64], err[COMM_TEXT];
    struct seen s = {0};
    struct fabric *f;
    struct world *w;

    snprintf(conf, sizeof(conf), "conf/%s.conf", r->conf);
    wc.fab = jc.fab = f = fabric_load(conf, NULL);
    assert_non_null(f);
    for (unsigned i = 0; i < r->nranks; i++)
        hosts[i] = (uint16_t)i;
    assert_int_equal(world_create(&w, &wc), 0);
    assert_int_equal(world_threads(w), strcmp(r->conf, MESH) && threads ? threads : 1);
    jc.w = w;
    if (job_create(&run.j, &jc, err))
        fail_msg("%s: %s", r->conf, err);
    assert_int_equal(job_buffers(run.j, COUNT * 4), 0);
    run.r = r;
    run.w = w;
    run.by_steps = !threads;
    run.asked = 0;
    for (unsigned i = 0; i < 2; i++) {
        l.n = 1 + 2 * i;
        if (job_loop_run(run.j, &l))
            fail_msg("%s: %s", r->conf, l.text);
        s.time_ps[i] = l.time_ps;
    }
    s.asked = run.asked;
    s.now_ps = world_now(w);
    assert_int_equal(job_destroy(run.j), 0);
    s.events = world_events(w);
    s.frames = world_frames(w);
    s.hash = world_trace_hash(w);
    world_destroy(w);
    fabric_free(f);
    return s;
}

static void slices_are_steps(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *r = &rows[i];
        struct seen a = look(r, 0), b = look(r, 1);

        print_message("%-18s %-10s %9.3f us, %8llu events, asked %llu and %llu times\n", r->conf,
                      sched_algo_name(r->algo), (double)a.time_ps[1] * 1e-6 / 3,
                      (unsigned long long)a.events, (unsigned long long)a.asked,
                      (unsigned long long)b.asked);
        assert_true(b.asked < a.asked / 2);
        for (unsigned threads = 2; threads <= 4; threads++) {
            struct seen c = look(r, threads);

            assert_memory_equal(&b, &c, sizeof(b));
        }
        a.asked = b.asked = 0;
        assert_memory_equal(&a, &b, sizeof(a));
    }
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
        struct seen one = look(&many[i], 1);

        for (unsigned threads = 2; threads <= 4; threads += 2) {
            struct seen more = look(&many[i], threads);

            assert_memory_equal(&one, &more, sizeof(one));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(slices_are_steps),
                                       cmocka_unit_test(threads_are_one)};

    test_eal_init();
    pool = test_pool(65536);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
