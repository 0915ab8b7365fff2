/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What groups send over links that they share, by hand; which groups are simulated together; and
 * drawn fabrics and groups whose times are above what links allow, by the program's assertions and
 * by a count of its own here. STEP_CASES=N draws so many (200), STEP_SEED=N from another seed.
 */
#include <stdlib.h>

#include "base/random.h"
#include "collective/sched.h"
#include "host/coll/comm.h"
#include "sim/step/step_groups.h"
#include "sim/step/step_load.h"
#include "tests/fabric/load.h"
#include "tests/support/eal.h"

#define MIB (1u << 20)

static struct rte_mempool *pool;
static const volatile int never;

static struct fabric *leaves(unsigned n, unsigned spines, unsigned hosts, unsigned spine_gbps,
                             const char *more)
{
    char text[512];

    snprintf(text, sizeof(text),
             "%s leaf_spine = { leaves = %u; spines = %u; hosts_per_leaf = %u; host_link = { rate "
             "= \"400Gb/s\"; latency = \"300ns\"; }; spine_link = { rate = \"%uGb/s\"; latency = "
             "\"300ns\"; }; };",
             more, n, spines, hosts, spine_gbps);
    return load_text(text);
}

static struct fabric *rails(unsigned nodes, unsigned gpus, unsigned spines, const char *more)
{
    char text[512];

    snprintf(text, sizeof(text),
             "%s gpu_nodes = { nodes = %u; gpus = %u; planes = ( 9, 9 ); nvlink = { rate = "
             "\"25GB/s\"; latency = \"300ns\"; }; nic = { rate = \"400Gb/s\"; latency = \"300ns\"; "
             "}; }; rails = { leaves = %u; spines = %u; spine_link = { rate = \"800Gb/s\"; latency "
             "= \"300ns\"; }; };",
             more, nodes, gpus, gpus, spines);
    return load_text(text);
}

#define BALANCED "mtu = 4096; ecmp = \"balanced\";"

static void loads_are_those_of_hand(void **state)
{
    /* Rows: seconds on the busiest port, on the busiest leaf's links, of one group of all hosts
     * that are `stride` apart, for one MB of the larger buffer. */
    static const struct {
        bool rails;
        enum coll_kind coll;
        enum coll_algo algo;
        unsigned stride, ranks;
        double port_bytes, leaf_bytes;
    } rows[] = {
        /* four leaves of four hosts: 15 of 16 blocks leave a host; 4 * 12 of them a leaf */
        {false, COLL_ALLTOALL, ALGO_DIRECT, 1, 16, 15 / 16., 4 * 12 / 16.},
        {false, COLL_ALLREDUCE, ALGO_PAIRWISE, 1, 16, 2 * 15 / 16., 2 * 4 * 12 / 16.},
        {false, COLL_ALLREDUCE, ALGO_RING, 1, 16, 2 * 15 / 16., 2 * 15 / 16.},
        {false, COLL_ALLGATHER, ALGO_RING, 4, 4, 3 / 4., 3 / 4.},
        {false, COLL_SENDRECV, ALGO_DIRECT, 4, 2, 1, 1},
        {false, COLL_ALLREDUCE, ALGO_TREE, 1, 16, 0, 0},
        /* four nodes of four GPUs, a leaf a rail: 12 blocks leave a GPU, nine of them its rail */
        {true, COLL_ALLTOALL, ALGO_DIRECT, 1, 16, 12 / 16., 4 * 9 / 16.},
        {true, COLL_ALLTOALL, ALGO_PXN, 1, 16, 12 / 16., 0},
        /* from a node's last GPU to the next one's first: all by the same two leaves */
        {true, COLL_ALLGATHER, ALGO_RING, 1, 16, 15 / 16., 4 * 15 / 16.},
        {true, COLL_ALLGATHER, ALGO_DIRECT, 4, 4, 3 / 4., 0},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct fabric *f = rows[i].rails ? rails(4, 4, 1, "") : leaves(4, 2, 4, 400, "");
        struct step_collective u = {
            .coll = rows[i].coll, .stride = rows[i].stride, .degree = rows[i].ranks};
        double port = rows[i].port_bytes * 1e6 / 50e9, leaf = rows[i].leaf_bytes * 1e6 / 100e9, is;
        struct step_load l;

        assert_int_equal(step_load_init(&l, f), 0);
        step_load_add(&l, &u, rows[i].algo, 0, rows[i].ranks, 1000000);
        is = step_load_worst(&l, l.switches, l.links, NULL);
        if (is < leaf * 0.999999 || is > leaf * 1.000001)
            fail_msg("row %u: %g s at a leaf, by hand %g", i, is, leaf);
        is = step_load_worst(&l, 0, l.switches, NULL);
        if (is < port * 0.999999 || is > port * 1.000001)
            fail_msg("row %u: %g s at a port, by hand %g", i, is, port);
        assert_false(l.striped);
        step_load_free(&l);
        fabric_free(f);
    }
}

/* Two pods of four hosts, whose spines reach one core by an eighth of their rate. */
static struct fabric *pods(void)
{
    struct fabric *f;
    char text[2048];
    FILE *in = fopen(THREE_TIER, "r");
    size_t n;

    assert_non_null(in);
    n = fread(text, 1, sizeof(text) - 1, in);
    fclose(in);
    text[n] = '\0';
    for (char *at; (at = strstr(text, ", \"core1\""));)
        memset(at, ' ', strlen(", \"core1\""));
    f = load_text(text);
    for (unsigned i = 0; i < f->n_links; i++) {
        struct fab_link *l = &f->links[i];

        if (f->nodes[l->a].role == FAB_ROLE_CORE || f->nodes[l->b].role == FAB_ROLE_CORE) {
            l->rate_bps /= 8;
            f->nodes[l->a].ports[l->a_port].rate_bps = l->rate_bps;
            f->nodes[l->b].ports[l->b_port].rate_bps = l->rate_bps;
        }
    }
    return f;
}

/* Where each flow has its path, links above the leaves count too: a pipeline's pair that crosses
 * pods stands for all, and groups that meet at the cores run together. */
static void links_above_the_leaves_count(void **state)
{
    static const struct {
        enum coll_kind coll;
        unsigned stride, degree, groups, first;
    } rows[] = {
        {COLL_SENDRECV, 1, 8, 1, 3},  /* h3 and h4 */
        {COLL_ALLGATHER, 4, 2, 4, 0}, /* two of four pairs by each spine, and the same leaves */
        {COLL_SENDRECV, 2, 4, 1, 2},  /* h2 and h4, h3 and h5: a spine each */
    };
    struct fabric *f = pods();

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct step_collective u = {.coll = rows[i].coll,
                                    .stride = rows[i].stride,
                                    .degree = rows[i].degree,
                                    .bytes = MIB,
                                    .gpus = 8};
        struct step_measurement ms = {.f = f};

        cost_levels(f, &ms.levels);
        assert_int_equal(step_groups_choose(&ms, &u, 1), 0);
        if (u.groups != rows[i].groups || u.first[0] != rows[i].first)
            fail_msg("row %u: %u groups from %u on, expected %u from %u on", i, u.groups,
                     u.first[0], rows[i].groups, rows[i].first);
        free(ms.host);
    }
    fabric_free(f);
}

static void groups_that_share_busy_links_run_together(void **state)
{
    static const struct {
        bool rails;
        unsigned spines, spine_gbps;
        enum coll_kind coll;
        unsigned stride, degree, groups, first;
    } rows[] = {
        /* contiguous groups of two nodes of four GPUs send from rail to rail */
        {true, 4, 800, COLL_ALLTOALL, 1, 8, 1, 0},
        {true, 1, 800, COLL_ALLTOALL, 1, 8, 4, 0},
        /* along the rails nothing is shared */
        {true, 1, 800, COLL_ALLTOALL, 4, 8, 1, 0},
        {true, 1, 800, COLL_SENDRECV, 4, 8, 1, 0},
        /* leaves of four hosts: contiguous groups of two leaves have these to themselves */
        {false, 1, 400, COLL_ALLGATHER, 1, 8, 1, 0},
        {false, 1, 400, COLL_ALLGATHER, 4, 8, 4, 0},
        {false, 1, 400, COLL_ALLGATHER, 2, 4, 2, 0},
        /* a pipeline of two stages a leaf: 1 to 2, 3 to 4, ... cross, 0 to 1 does not */
        {false, 1, 400, COLL_SENDRECV, 2, 16, 14, 2},
        {false, 1, 400, COLL_SENDRECV, 4, 8, 4, 0},
        {false, 1, 400, COLL_SENDRECV, 1, 2, 1, 0},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct fabric *f = rows[i].rails
                               ? rails(8, 4, rows[i].spines, BALANCED)
                               : leaves(8, rows[i].spines, 4, rows[i].spine_gbps, BALANCED);
        struct step_collective u = {.coll = rows[i].coll,
                                    .stride = rows[i].stride,
                                    .degree = rows[i].degree,
                                    .bytes = MIB,
                                    .gpus = 32};
        struct step_measurement ms = {.f = f};

        cost_levels(f, &ms.levels);
        assert_int_equal(step_groups_choose(&ms, &u, 1), 0);
        if (u.groups != rows[i].groups || u.first[0] != rows[i].first)
            fail_msg("row %u: %u groups from %u on, expected %u from %u on", i, u.groups,
                     u.first[0], rows[i].groups, rows[i].first);
        assert_int_equal(ms.ranks, u.groups * u.ranks);
        free(ms.host);
        fabric_free(f);
    }
}

/* ---- drawn ---- */

struct drawn {
    uint64_t rng;
    bool rails;
    unsigned leaves, spines, hosts, spine_gbps; /* rails: nodes, -, GPUs, 800 */
    struct step_collective u;
};

static unsigned from_to(struct drawn *d, unsigned a, unsigned z)
{
    return a + (unsigned)(random_next(&d->rng) % (z - a + 1));
}

static struct fabric *draw_fabric(struct drawn *d)
{
    char more[64];

    d->rails = from_to(d, 0, 1);
    d->leaves = from_to(d, 2, 4);
    d->spines = from_to(d, 1, 4);
    d->hosts = from_to(d, 2, 4);
    d->spine_gbps = d->rails ? 800 : 100u << from_to(d, 0, 3);
    snprintf(more, sizeof(more), "mtu = %u; ecmp = \"%s\";", 1024u << from_to(d, 0, 2),
             from_to(d, 0, 1) ? "balanced" : "hash");
    return d->rails ? rails(d->leaves, d->hosts, d->spines, more)
                    : leaves(d->leaves, d->spines, d->hosts, d->spine_gbps, more);
}

static void draw_groups(struct drawn *d, unsigned hosts)
{
    static const enum coll_kind kinds[] = {COLL_ALLTOALL, COLL_ALLGATHER, COLL_REDUCE_SCATTER,
                                           COLL_ALLREDUCE, COLL_SENDRECV};
    static const enum coll_algo algos[] = {ALGO_AUTO, ALGO_DIRECT, ALGO_RING, ALGO_PAIRWISE};
    struct step_collective *u = &d->u;

    *u = (struct step_collective){.coll = kinds[from_to(d, 0, 4)], .times = 1, .gpus = hosts};
    u->kind = u->coll == COLL_SENDRECV ? ROOF_PP : u->coll == COLL_ALLTOALL ? ROOF_EP : ROOF_DP;
    do {
        u->stride = from_to(d, 1, hosts / 2);
        u->degree = from_to(d, 2, hosts);
    } while (u->stride * u->degree > hosts || hosts % (u->stride * u->degree));
    u->bytes = 2048u << from_to(d, 0, 7);
    u->named = algos[from_to(d, 0, 3)];
    if (u->named != ALGO_AUTO && !sched_has(u->coll, u->named))
        u->named = ALGO_AUTO;
}

/* Bytes that leave the busiest leaf, of all groups, by direct exchange, over its links. */
static double leaf_s(const struct drawn *d, unsigned hosts)
{
    const struct step_collective *u = &d->u;
    double most = 0;

    for (unsigned leaf = 0; leaf < d->leaves; leaf++) {
        double bytes = 0;

        for (unsigned a = 0; a < hosts; a++)
            for (unsigned b = 0; b < hosts; b++) {
                unsigned block = (unsigned)(u->stride * u->degree);
                bool same = a / block == b / block && a % u->stride == b % u->stride;

                if (same && a / d->hosts == leaf && b / d->hosts != leaf)
                    bytes += (double)u->bytes / u->degree * (u->coll == COLL_ALLREDUCE ? 2 : 1);
            }
        most = bytes > most ? bytes : most;
    }
    return most / (d->spines * d->spine_gbps * 1e9 / 8);
}

static unsigned number_of(const char *variable, unsigned usual)
{
    const char *text = getenv(variable);

    return text ? (unsigned)strtoul(text, NULL, 10) : usual;
}

static void no_time_is_below_its_bound(void **state)
{
    unsigned cases = number_of("STEP_CASES", 200), seed = number_of("STEP_SEED", 1), shared = 0,
             at_leaf = 0;

    (void)state;
    for (unsigned i = 0; i < cases; i++) {
        struct drawn d = {.rng = ((uint64_t)seed << 32) + i};
        struct fabric *f = draw_fabric(&d);
        const struct step_timing *t = &d.u.timing[STEP_HOSTS];
        char err[COMM_TEXT];

        draw_groups(&d, f->n_hosts);
        if (step_measure(f, &d.u, 1, pool, i, &never, err))
            fail_msg("case %u: %s", i, err);
        for (unsigned w = 0; w < STEP_METHODS; w++)
            if (!(d.u.timing[w].s >= d.u.timing[w].bound_s && d.u.timing[w].bound_s > 0))
                fail_msg("case %u: %g s, bound %g s", i, d.u.timing[w].s, d.u.timing[w].bound_s);
        if (!d.rails && (t->algo == ALGO_DIRECT || t->algo == ALGO_PAIRWISE) &&
            d.u.coll != COLL_SENDRECV) {
            double s = leaf_s(&d, f->n_hosts);

            at_leaf++;
            if (t->s < s || t->bound_s < s * 0.999999)
                fail_msg("case %u: %g s, bound %g s, leaves need %g s", i, t->s, t->bound_s, s);
        }
        shared += d.u.groups > 1;
        fabric_free(f);
    }
    print_message("%u cases, %u of several groups, %u with leaves by hand\n", cases, shared,
                  at_leaf);
    assert_true(cases < 100 || (shared > cases / 10 && at_leaf > cases / 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_are_those_of_hand),
        cmocka_unit_test(links_above_the_leaves_count),
        cmocka_unit_test(groups_that_share_busy_links_run_together),
        cmocka_unit_test(no_time_is_below_its_bound),
    };

    test_eal_init();
    pool = test_pool(32768);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
