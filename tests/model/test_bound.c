/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * No prediction is below its physical bound: coll_predict() asserts it, and here fabrics, ranks and
 * collectives are drawn, with nodes, rails and links between switches of all kinds.
 *
 *   test_bound [CASES [SEED]]
 */
#include "collective/sched.h"
#include "model/cost_bound.h"
#include "model/predict.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static unsigned cases = 60;
static uint64_t seed = 1;

static const char *now; /* the case's conf */
static uint64_t state;
static unsigned draw(unsigned n)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(state >> 33) % n;
}
#define PICK(a) (a)[draw(sizeof(a) / sizeof((a)[0]))]

static const unsigned rates[] = {100, 200, 400, 800};

/* GPU nodes on rails: small nodes and large ones, units, few spines. */
static void draw_rails(char *text, size_t size)
{
    static const unsigned gpus[] = {2, 4, 8, 8, 36, 72}, spines[] = {1, 2, 4};
    unsigned n = PICK(gpus), nodes = n > 8 ? 2 + draw(2) : 2 * (1 + draw(6)), leaves = n,
             unit = nodes % 4 || draw(2) ? nodes : nodes / 2;

    while (leaves > 8 || (leaves > 2 && leaves % 2 == 0 && !draw(3)))
        leaves /= leaves % 2 ? leaves : 2;
    snprintf(text, size,
             "mtu = 4096; ecmp = \"balanced\";"
             "gpu_nodes = { nodes = %u; gpus = %u; planes = ( 5, 4, 4, 5 );"
             "  nvlink = { rate = \"25GB/s\"; latency = \"300ns\"; };"
             "  nic = { rate = \"%uGb/s\"; latency = \"300ns\"; }; };"
             "rails = { leaves = %u; spines = %u; unit = %u;"
             "  spine_link = { rate = \"%uGb/s\"; latency = \"300ns\"; }; };"
             "reduce = { groups = 64; slots = 16384; window = 256; };",
             nodes, n, PICK(rates), leaves, PICK(spines), unit, PICK(rates));
}

static void draw_hosts(char *text, size_t size)
{
    snprintf(text, size,
             "mtu = %u; %s"
             "leaf_spine = { leaves = %u; spines = %u; hosts_per_leaf = %u;"
             "  host_link = { rate = \"%uGb/s\"; latency = \"300ns\"; };"
             "  spine_link = { rate = \"%uGb/s\"; latency = \"1us\"; }; };"
             "reduce = { groups = 64; slots = 16384; window = 256; };",
             draw(2) ? 1024u : 4096u, draw(2) ? "ecmp = \"balanced\";" : "", 2 + draw(4),
             1 + draw(4), 1 + draw(24), PICK(rates), PICK(rates));
}

static unsigned draw_ranks(const struct fabric *f, uint16_t *host)
{
    unsigned per_host = f->n_hosts > 32 || draw(4) ? 1 : 1 + draw(3), n = 0,
             hosts = draw(3) ? f->n_hosts : 2 + draw(f->n_hosts - 1), step = 1 + !draw(5);

    for (unsigned i = 0; i < hosts; i += step)
        for (unsigned k = 0; k < per_host; k++)
            host[n++] = (uint16_t)i;
    return n;
}

/* Of one case: one algorithm that runs; false: none was found. */
static bool predict_one(const struct fabric *f, unsigned nranks, const uint16_t *host)
{
    static const uint64_t counts[] = {1, 100, 4096, 40000};
    struct coll_prediction p;
    struct coll_args a;

    for (unsigned tries = 0; tries < 20; tries++) {
        int rc;

        a = (struct coll_args){.kind = (enum coll_kind)draw(COLL_KINDS),
                               .algo = (enum coll_algo)draw(ALGO_COUNT),
                               .type = DT_FP32,
                               .count = PICK(counts),
                               .root = draw(nranks)};
        if (a.kind == COLL_ALLREDUCE || a.kind == COLL_BROADCAST || a.kind == COLL_REDUCE)
            a.count *= 25;
        if (a.kind == COLL_ALLTOALL && !draw(4))
            a.sparse = 1 + draw(nranks);
        if (coll_is_protocol(a.algo) || !sched_has(a.kind, a.algo))
            continue;
        rc = coll_predict(f, &a, nranks, host, 0, 0, &p);
        if (rc == -ENOTSUP)
            continue;
        if (rc)
            fail_msg("%s\n%s %s, %u ranks, count %lu, sparse %u, root %u: %s", now,
                     coll_name(a.kind), sched_algo_name(a.algo), nranks, a.count, a.sparse, a.root,
                     strerror(-rc));
        assert_true(p.time_ps >= bound_ps(f, &a, nranks, host));
        return true;
    }
    return false;
}

static void no_prediction_is_below_its_bound(void **unused)
{
    static uint16_t host[FAB_MAX_HOSTS];
    unsigned found = 0;

    (void)unused;
    for (unsigned i = 0; i < cases; i++) {
        static struct fab_errors errs;
        char text[1024];
        struct fabric *f;

        state = seed * 1000003 + i;
        draw(2);
        (draw(2) ? draw_rails : draw_hosts)(text, sizeof(text));
        f = fabric_load_string(text, "drawn.conf", &errs);
        if (!f) {
            print_message("%s\n", text);
            fab_errors_print(&errs, stderr);
        }
        assert_non_null(f);
        now = text;
        found += predict_one(f, draw_ranks(f, host), host);
        fabric_free(f);
    }
    assert_true(found > cases * 3 / 4);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_prediction_is_below_its_bound),
    };

    cases = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : cases;
    seed = argc > 2 ? strtoull(argv[2], NULL, 10) : seed;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
