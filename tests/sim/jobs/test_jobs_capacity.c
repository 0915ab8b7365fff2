/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is accepted runs: drawn mixes of jobs (algorithms, collectives, sizes, ranks, windows) on drawn
 * fabrics end, each by the algorithm that its file says, with the frames that were counted before the
 * start. TRIB_CASES: so many of them; TRIB_SEED: the first.
 */
#include "sim/capacity.h"
#include "tests/fabric/load.h"
#include "tests/support/draw.h"
#include "tests/support/eal.h"

#include <sys/mman.h>

#define CASES  200u
#define FRAMES 131072u /* of the pool; cases that count more are left out */

static struct rte_mempool *pool;
static const volatile int go_on;

struct text {
    char conf[1024], jobs[8192];
    unsigned hosts, gpus; /* gpus: of a node; 0: hosts of leaves */
};

static void draw_conf(struct text *t)
{
    unsigned leaves = PICK(1, 2, 4), spines = PICK(1, 2), nodes = PICK(1, 2, 3), mtu, more, rate;
    char *p = t->conf;

    t->gpus = draw(2) ? PICK(2, 4, 8) : 0;
    t->hosts = t->gpus ? nodes * t->gpus : leaves * PICK(2, 6);
    mtu = PICK(256, 1024, 4096, 4096);
    p += sprintf(p, "mtu = %u; ecmp = \"%s\"; reduce = { window = %u; slots = 65536; };\n", mtu,
                 draw(2) ? "balanced" : "hash", PICK(64, 256, 1024, 2048));
    more = PICK(300, 300, 1000, 5000);
    rate = PICK(100, 400, 800);
    if (t->gpus)
        p += sprintf(p,
                     "gpu_nodes = { nodes = %u; gpus = %u; planes = ( %s );\n"
                     "nvlink = { rate = \"25GB/s\"; latency = \"300ns\"; };\n",
                     nodes, t->gpus, draw(2) ? "9, 9" : "5, 4, 4, 5");
    if (t->gpus && nodes > 1)
        sprintf(p,
                "nic = { rate = \"%uGb/s\"; latency = \"%uns\"; }; };\n"
                "rails = { leaves = %u; spines = %u; spine_link = { rate = \"%uGb/s\"; latency = "
                "\"300ns\"; }; };\n",
                rate, more, PICK(1, 2), spines, PICK(100, 400));
    else if (t->gpus)
        sprintf(p, "};\n");
    else
        sprintf(p,
                "leaf_spine = { leaves = %u; spines = %u; hosts_per_leaf = %u;\n"
                "host_link = { rate = \"%uGb/s\"; latency = \"%uns\"; };\n"
                "spine_link = { rate = \"%uGb/s\"; latency = \"%uns\"; }; };\n",
                leaves, spines, t->hosts / leaves, rate, more, PICK(50, 200, 400), more);
}

/* A run of hosts, or each second of them. */
static char *put_job(char *p, const struct text *t, unsigned i)
{
    static const char *const algo[] = {"sharp",      "sharp", "ring",       "direct",  "tree",
                                       "halving",    "hier",  "hier_sharp", "nvls",    "nvls_sharp",
                                       "nvls_sharp", "pxn",   "auto",       "pairwise"};
    static const char *const coll[] = {"all_reduce", "all_reduce",     "all_reduce", "alltoall",
                                       "all_gather", "reduce_scatter", "broadcast",  "reduce"};
    unsigned step = t->hosts > 3 ? PICK(1, 1, 1, 2) : 1, n = 2 + draw(t->hosts / step - 1),
             first = draw(t->hosts - (n - 1) * step);

    p += sprintf(p, "%s\n{ name = \"j%u\"; hosts = [ ", i ? "," : "", i);
    for (unsigned k = 0; k < n; k++) {
        unsigned h = first + k * step;

        p += t->gpus ? sprintf(p, "%s\"n%ug%u\"", k ? ", " : "", h / t->gpus, h % t->gpus)
                     : sprintf(p, "%s\"h%u\"", k ? ", " : "", h);
    }
    return p + sprintf(p,
                       " ]; collective = \"%s\"; algorithm = \"%s\"; size = \"%uKiB\"; repeat = 1; "
                       "%s}",
                       coll[draw(8)], algo[draw(14)], PICK(4, 64, 128, 256),
                       draw(3) ? "" : "window = 2048; ");
}

/* Jobs that the file's checks accept, out of those that are drawn. */
static bool draw_jobs(struct text *t, const struct fabric *f, struct jobs_plan *plan)
{
    static struct fab_errors errs;
    static char one[2048];
    unsigned n = 0, wanted = 1 + draw(4);
    size_t len = (size_t)sprintf(t->jobs, "jobs = (");

    for (unsigned tries = 0; tries < 40 && n < wanted; tries++) {
        uint64_t before = ++draw_seed;

        snprintf(one, sizeof(one), "jobs = (");
        sprintf(put_job(one + 8, t, 0), " );");
        if (jobs_load_string(plan, one, "one.conf", f, &errs))
            continue;
        jobs_free(plan);
        draw_seed = before;
        len = (size_t)(put_job(t->jobs + len, t, n++) - t->jobs);
    }
    snprintf(t->jobs + len, sizeof(t->jobs) - len, " );\n");
    return n && !jobs_load_string(plan, t->jobs, "jobs.conf", f, &errs);
}

static void run(struct text *t, unsigned nr)
{
    struct jobs_result res[JOBS_MAX];
    struct jobs_totals totals;
    struct jobs_plan plan;
    struct fabric *f = load_text(t->conf);
    struct jobs_world_cfg cfg = {.fab = f,
                                 .plan = &plan,
                                 .only = JOBS_NEVER,
                                 .seed = nr + 1,
                                 .lengths = true,
                                 .pool = pool,
                                 .stop = &go_on};
    char err[COMM_TEXT];

    if (!draw_jobs(t, f, &plan)) {
        fabric_free(f);
        return;
    }
    cfg.frames = capacity_frames_of_jobs(f, &plan);
    for (unsigned i = 0; i < plan.n; i++) /* protocols look at data */
        if (plan.job[i].algos & COLL_PROTOCOLS)
            cfg.frames = FRAMES + 1;
    if (cfg.frames > FRAMES) {
        jobs_free(&plan);
        fabric_free(f);
        return;
    }
    if (jobs_run_world(&cfg, res, &totals, err))
        fail_msg("case %u: %s\n%s%s", nr, err, t->conf, t->jobs);
    for (unsigned i = 0; i < plan.n; i++)
        if (res[i].end != JOBS_DONE || *res[i].fell_back || strstr(res[i].grant.why, "buffers"))
            fail_msg("case %u: job %u %s: %s %s %s\n%s%s", nr, i, jobs_end_name(res[i].end),
                     res[i].why, res[i].fell_back, res[i].grant.why, t->conf, t->jobs);
    if (getenv("TRIB_VERBOSE"))
        printf("%u: %u of %u\n", nr, totals.pool_peak, cfg.frames);
    jobs_free(&plan);
    fabric_free(f);
}

static void what_is_accepted_ends(void **state)
{
    static struct text t;
    unsigned first = draw_number("TRIB_SEED", 0), n = draw_number("TRIB_CASES", CASES);

    (void)state;
    for (unsigned nr = first; nr < first + n; nr++) {
        draw_seed = random_mix(nr);
        draw_conf(&t);
        run(&t, nr);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_accepted_ends),
    };
    size_t bytes = frame_pool_bytes(FRAMES, true);
    void *at;

    test_eal_init();
    at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pool = at == MAP_FAILED ? NULL : frame_pool_create_at("frames", FRAMES, 0, true, at, bytes);
    if (!pool)
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
