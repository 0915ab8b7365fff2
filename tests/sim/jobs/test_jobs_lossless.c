/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * With PFC on every link no frame is lost because a queue is full, whatever shares the queue: drawn
 * fabrics (rates, oversubscription, latencies, buffers, both ways of forwarding) with drawn jobs that
 * reduce in switches beside jobs that do not. TRIB_CASES: so many of them; TRIB_SEED: the first.
 */
#include "sim/jobs/jobs.h"
#include "tests/fabric/load.h"
#include "tests/support/draw.h"
#include "tests/support/eal.h"

#define CASES  300u
#define FRAMES 65536u

static struct rte_mempool *pool;
static const volatile int go_on;

struct text {
    char conf[1024], jobs[4096];
};

static void draw_conf(struct text *t, unsigned *leaves, unsigned *hosts)
{
    unsigned spines = PICK(1, 1, 1, 2), buffer = PICK(10, 16, 64, 256, 1024);

    *leaves = PICK(1, 2, 2, 3);
    *hosts = 2 + draw(5);
    snprintf(t->conf, sizeof(t->conf),
             "mtu = %u; ecmp = \"%s\"; forwarding = \"%s\";\n"
             "leaf_spine = { leaves = %u; spines = %u; hosts_per_leaf = %u;\n"
             "host_link = { rate = \"%uGb/s\"; latency = \"%uns\"; buffer = \"%uKiB\"; };\n"
             "spine_link = { rate = \"%uGb/s\"; latency = \"%uns\"; buffer = \"%uKiB\"; }; };\n"
             "reduce = { window = %u; slots = 65536; groups = 64; };\n",
             PICK(1024, 4096), draw(2) ? "balanced" : "hash",
             draw(3) ? "store-and-forward" : "cut-through", *leaves, spines, *hosts,
             PICK(100, 200, 400), PICK(100, 300, 2000), buffer, PICK(10, 25, 50, 100, 400),
             PICK(100, 300, 2000), draw(2) ? buffer : PICK(10, 64, 512), PICK(16, 128, 512, 2048));
}

static size_t put_hosts(char *p, unsigned n, unsigned ranks)
{
    unsigned first = draw(n), step = 1 + draw(n - 1);
    bool taken[64] = {false};
    size_t len = 0;

    for (unsigned i = 0, h = first; i < ranks; i++, h = (h + step) % n) {
        while (taken[h])
            h = (h + 1) % n;
        taken[h] = true;
        len += (size_t)sprintf(p + len, "%s\"h%u\"", i ? ", " : "", h);
    }
    return len;
}

static void draw_jobs(struct text *t, unsigned n)
{
    static const char *const kind[] = {"sharp", "sharp", "ring", "direct"};
    char *p = t->jobs;
    unsigned jobs = 2 + draw(5);

    p += sprintf(p, "jobs = (");
    for (unsigned i = 0; i < jobs; i++) {
        p += sprintf(p, "%s\n{ hosts = [ ", i ? "," : "");
        p += put_hosts(p, n, RTE_MIN(n, 2 + draw(5)));
        p += sprintf(p, " ]; algorithm = \"%s\"; size = \"%uKiB\"; repeat = %u; }", kind[draw(4)],
                     PICK(16, 64, 128, 256), 1 + draw(2));
    }
    sprintf(p, " );\n");
}

static void run(const struct text *t, unsigned nr)
{
    static struct fab_errors errs;
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
                                 .frames = FRAMES,
                                 .stop = &go_on};
    char err[COMM_TEXT];

    if (jobs_load_string(&plan, t->jobs, "x.conf", f, &errs))
        fail_msg("case %u: %s\n%s%s", nr, errs.e[0].text, t->conf, t->jobs);
    if (jobs_run_world(&cfg, res, &totals, err))
        fail_msg("case %u: %s\n%s%s", nr, err, t->conf, t->jobs);
    if (totals.congestion.overflows || totals.congestion.retransmits)
        fail_msg("case %u: %lu frames dropped at full queues, %lu sent again\n%s%s", nr,
                 totals.congestion.overflows, totals.congestion.retransmits, t->conf, t->jobs);
    for (unsigned i = 0; i < plan.n; i++)
        if (res[i].end != JOBS_DONE)
            fail_msg("case %u: job %u %s: %s\n%s%s", nr, i, jobs_end_name(res[i].end), res[i].why,
                     t->conf, t->jobs);
    jobs_free(&plan);
    fabric_free(f);
}

static void no_drawn_fabric_drops_a_frame_at_a_full_queue(void **state)
{
    unsigned first = draw_number("TRIB_SEED", 0), n = draw_number("TRIB_CASES", CASES);

    (void)state;
    for (unsigned nr = first; nr < first + n; nr++) {
        static struct text t;
        unsigned leaves, hosts;

        draw_seed = random_mix(nr);
        draw_conf(&t, &leaves, &hosts);
        draw_jobs(&t, leaves * hosts);
        run(&t, nr);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_drawn_fabric_drops_a_frame_at_a_full_queue),
    };

    test_eal_init();
    pool = test_pool(FRAMES - 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
