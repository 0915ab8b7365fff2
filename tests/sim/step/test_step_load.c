/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What groups send over each port, switch and link: every resource compared with the messages of the
 * algorithm, which the test lists by its definition.
 */
#include "sim/step/step_load.h"

#include "tests/fabric/load.h"

#include <math.h>
#include <stdlib.h>

#define HOSTS 16u
#define BYTES 1600000.0

static struct fabric *fab; /* four leaves of four hosts, 400 Gb/s; two spines by 100 Gb/s */

static int load(void **state)
{
    (void)state;
    fab = load_text("name = \"x\"; ecmp = \"balanced\"; leaf_spine = { leaves = 4; spines = 2; "
                    "hosts_per_leaf = 4; host_link = { rate = \"400Gb/s\"; latency = \"300ns\"; }; "
                    "spine_link = { rate = \"100Gb/s\"; latency = \"300ns\"; }; };");
    return 0;
}

static int unload(void **state)
{
    (void)state;
    fabric_free(fab);
    return 0;
}

static void same(const char *what, unsigned i, double is, double expected)
{
    if (fabs(is - expected) > 1e-9 * expected)
        fail_msg("%s %u: %g s, expected %g s", what, i, is, expected);
}

/* Bytes from each host to each other one. */
struct traffic {
    double bytes[HOSTS][HOSTS];
};

static void same_load(const struct step_load *l, const struct traffic *t)
{
    double between = 0, links = 0;

    for (unsigned h = 0; h < HOSTS; h++) {
        const struct fab_node *n = &fab->nodes[fab->hosts[h]];
        double out = 0, in = 0;

        for (unsigned k = 0; k < HOSTS; k++) {
            out += t->bytes[h][k];
            in += t->bytes[k][h];
        }
        same("out of host", h, l->s[n->dest], out / 50e9);
        same("into host", h, l->s[fab->n_dests + n->dest], in / 50e9);
    }
    for (unsigned leaf = 0; leaf < 4; leaf++) {
        char name[8];
        double out = 0, in = 0;

        for (unsigned a = 0; a < HOSTS; a++)
            for (unsigned b = 0; b < HOSTS; b++) {
                out += a / 4 == leaf && b / 4 != leaf ? t->bytes[a][b] : 0;
                in += b / 4 == leaf && a / 4 != leaf ? t->bytes[a][b] : 0;
            }
        snprintf(name, sizeof(name), "leaf%u", leaf);
        same("out of leaf", leaf, l->s[l->switches + node(fab, name)], out / 25e9);
        same("into leaf", leaf, l->s[l->switches + fab->n_nodes + node(fab, name)], in / 25e9);
        between += out;
    }
    for (unsigned i = 0; i < 2 * fab->n_links; i++) {
        const struct fab_link *k = &fab->links[i / 2];
        bool host = fab->nodes[k->a].kind == FAB_HOST || fab->nodes[k->b].kind == FAB_HOST;

        assert_true(!host || l->s[l->links + i] == 0);
        links += l->s[l->links + i];
    }
    same("all links", 0, links, 2 * between / 12.5e9); /* one up, one down */
}

static struct traffic listed(enum coll_kind coll, enum coll_algo algo, unsigned first,
                             unsigned stride, unsigned n)
{
    double vector = BYTES * (coll == COLL_ALLREDUCE ? 2 : 1);
    struct traffic t = {0};

    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < n; k++) {
            double *b = &t.bytes[first + i * stride][first + k * stride];

            if (coll == COLL_SENDRECV)
                *b = k == (i + 1) % n ? BYTES : 0;
            else if (algo == ALGO_RING)
                *b = k == (i + 1) % n ? vector * (n - 1) / n : 0;
            else if (algo == ALGO_DIRECT || algo == ALGO_PAIRWISE)
                *b = k != i ? vector / n : 0;
        }
    return t;
}

static void each_resource_has_its_messages(void **state)
{
    static const struct {
        enum coll_kind coll;
        enum coll_algo algo;
        unsigned first, stride, n;
    } rows[] = {
        {COLL_SENDRECV, ALGO_DIRECT, 3, 1, 2},    {COLL_SENDRECV, ALGO_RING, 2, 4, 2},
        {COLL_ALLREDUCE, ALGO_RING, 0, 1, 16},    {COLL_ALLGATHER, ALGO_RING, 1, 2, 5},
        {COLL_ALLTOALL, ALGO_DIRECT, 0, 1, 16},   {COLL_REDUCE_SCATTER, ALGO_DIRECT, 2, 5, 3},
        {COLL_ALLREDUCE, ALGO_PAIRWISE, 1, 3, 4}, {COLL_ALLREDUCE, ALGO_TREE, 0, 1, 16},
        {COLL_ALLREDUCE, ALGO_DIRECT, 7, 1, 1},   {COLL_ALLREDUCE, ALGO_SHARP, 0, 1, 16},
    };
    struct step_load l;

    (void)state;
    assert_int_equal(step_load_init(&l, fab), 0);
    for (unsigned i = 0; i < LEN(rows); i++) {
        struct step_collective u = {.coll = rows[i].coll, .stride = rows[i].stride};
        struct traffic t =
            listed(rows[i].coll, rows[i].algo, rows[i].first, rows[i].stride, rows[i].n);

        step_load_clear(&l);
        step_load_add(&l, &u, rows[i].algo, rows[i].first, rows[i].n, (uint64_t)BYTES);
        same_load(&l, &t);
        assert_false(l.striped);
        step_load_add(&l, &u, rows[i].algo, rows[i].first, rows[i].n, (uint64_t)BYTES);
        for (unsigned a = 0; a < HOSTS; a++)
            for (unsigned b = 0; b < HOSTS; b++)
                t.bytes[a][b] *= 2;
        same_load(&l, &t); /* of two groups */
    }
    step_load_free(&l);
    assert_null(l.s);
    assert_null(l.cap_bps);
}

/* Paths by hash are not known: nothing is on a link then, but on the leaves. */
static void links_count_where_paths_are_fixed(void **state)
{
    struct step_collective u = {.coll = COLL_ALLTOALL, .stride = 1};
    struct step_load l;

    (void)state;
    fab->ecmp = FAB_ECMP_HASH;
    assert_int_equal(step_load_init(&l, fab), 0);
    step_load_add(&l, &u, ALGO_DIRECT, 0, 16, (uint64_t)BYTES);
    assert_true(step_load_worst(&l, l.links, l.n, NULL) == 0);
    assert_true(step_load_worst(&l, l.switches, l.links, NULL) > 0);
    step_load_free(&l);
    fab->ecmp = FAB_ECMP_BALANCED;
}

static void capacities_are_of_links_to_switches(void **state)
{
    struct fabric *f = load_file("conf/rail-2x4.conf");
    struct step_load l;

    (void)state;
    assert_int_equal(step_load_init(&l, fab), 0);
    assert_int_equal(l.switches, 2 * fab->n_dests);
    assert_int_equal(l.links, l.switches + 2 * fab->n_nodes);
    assert_int_equal(l.n, l.links + 2 * fab->n_links);
    for (unsigned i = 0; i < fab->n_nodes; i++) {
        const struct fab_node *n = &fab->nodes[i];

        assert_true(l.cap_bps[i] == (n->kind == FAB_HOST        ? 0
                                     : n->role == FAB_ROLE_LEAF ? 2e11
                                                                : 4e11));
    }
    step_load_free(&l);
    assert_int_equal(step_load_init(&l, f), 0);
    for (unsigned i = 0; i < f->n_nodes; i++)
        assert_true(f->nodes[i].role != FAB_ROLE_NVSWITCH || l.cap_bps[i] == 0);
    step_load_free(&l);
    fabric_free(f);
}

static void the_worst_is_the_first_of_equal_ones(void **state)
{
    double s[] = {1, 3, 2, 3, 5, 5.0000000001, 0};
    struct step_load l = {.s = s, .n = LEN(s)};
    unsigned at = 99;

    (void)state;
    assert_true(step_load_worst(&l, 0, 4, &at) == 3 && at == 1);
    assert_true(step_load_worst(&l, 2, 4, &at) == 3 && at == 3);
    assert_true(step_load_worst(&l, 0, 7, &at) == 5 && at == 4);
    at = 99;
    assert_true(step_load_worst(&l, 6, 7, &at) == 0 && at == 99);
    assert_true(step_load_worst(&l, 0, 0, &at) == 0 && at == 99);
    assert_true(step_load_worst(&l, 0, 1, NULL) == 1);
}

/* Two NICs share a message by their rates, and say that it was divided. */
static void messages_are_striped_over_nics(void **state)
{
    struct fabric *f = load_text(
        "name = \"two\"; ecmp = \"balanced\"; nodes = ( { name = (\"h0\", \"h1\"); kind = "
        "\"host\"; }, { "
        "name = (\"leaf0\", \"leaf1\"); role = \"leaf\"; } );\nlinks = ( { a = (\"h0\", \"h1\"); b "
        "= "
        "\"leaf0\"; rate = \"100Gb/s\"; latency = \"300ns\"; }, { a = (\"h0\", \"h1\"); b = "
        "\"leaf1\"; rate = \"300Gb/s\"; latency = \"300ns\"; } );");
    struct step_collective u = {.coll = COLL_SENDRECV, .stride = 1};
    const struct fab_node *h[] = {&f->nodes[f->hosts[0]], &f->nodes[f->hosts[1]]};
    struct step_load l;

    (void)state;
    assert_int_equal(step_load_init(&l, f), 0);
    step_load_add(&l, &u, ALGO_DIRECT, 0, 2, 4000000);
    assert_true(l.striped);
    for (unsigned i = 0; i < 2; i++)
        for (unsigned p = 0; p < 2; p++) { /* 1 MB by 100 Gb/s, 3 MB by 300 Gb/s */
            same("out of port", p, l.s[h[i]->dest + p], 8e6 / 1e11);
            same("into port", p, l.s[f->n_dests + h[i]->dest + p], 8e6 / 1e11);
        }
    assert_true(step_load_worst(&l, l.switches, l.n, NULL) == 0);
    step_load_clear(&l);
    assert_false(l.striped);
    assert_true(step_load_worst(&l, 0, l.n, NULL) == 0);
    step_load_free(&l);
    fabric_free(f);
}

/* Two nodes of four GPUs. Within a node planes are used, which nothing shares. In two hops a message goes to
 * the own node's member on the other's rail, then along it. */
static void nodes_and_rails(void **state)
{
    struct fabric *f = load_file("conf/rail-2x4.conf");
    struct step_collective u = {.coll = COLL_ALLTOALL, .stride = 1};
    struct step_load l;
    unsigned busy = 0;

    (void)state;
    assert_int_equal(f->n_hosts, 8);
    assert_int_equal(step_load_init(&l, f), 0);
    step_load_add(&l, &u, ALGO_DIRECT, 0, 4, 1000000);
    assert_true(step_load_worst(&l, 0, l.n, NULL) == 0);
    step_load_add(&l, &u, ALGO_PXN, 0, 8, 1000000);
    for (unsigned h = 0; h < 8; h++) { /* four members' blocks for the one across the rail */
        const struct fab_node *n = &f->nodes[f->hosts[h]];

        for (unsigned p = 0; p < n->n_ports; p++) {
            bool nic = !fabric_port_is_nvlink(f, n, p);
            double rate = (double)n->ports[p].rate_bps, bits = nic ? 8 * 4 * 125000. : 0;

            same("out of port", p, l.s[n->dest + p], bits / rate);
            same("into port", p, l.s[f->n_dests + n->dest + p], bits / rate);
            busy += nic;
        }
    }
    assert_int_equal(busy, 8);
    step_load_clear(&l);
    step_load_add(&l, &u, ALGO_PXN, 0, 5, 1000000); /* the fifth has one rail alone */
    {
        const struct fab_node *n = &f->nodes[f->hosts[4]];

        for (unsigned p = 0; p < n->n_ports; p++)
            if (!fabric_port_is_nvlink(f, n, p)) {
                same("into it", p, l.s[f->n_dests + n->dest + p],
                     8 * 4 * 200000. / (double)n->ports[p].rate_bps);
                same("out of it", p, l.s[n->dest + p], 8 * 200000. / (double)n->ports[p].rate_bps);
            }
    }
    step_load_free(&l);
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_resource_has_its_messages),
        cmocka_unit_test(links_count_where_paths_are_fixed),
        cmocka_unit_test(capacities_are_of_links_to_switches),
        cmocka_unit_test(the_worst_is_the_first_of_equal_ones),
        cmocka_unit_test(messages_are_striped_over_nics),
        cmocka_unit_test(nodes_and_rails),
    };

    return cmocka_run_group_tests(tests, load, unload);
}
