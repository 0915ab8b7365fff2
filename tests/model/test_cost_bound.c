/* SPDX-License-Identifier: BSD-3-Clause */
/* The physical bound of collectives whose payload over each cut is known; test_bound.c draws fabrics. */
#include "model/cost_bound.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>

#define DIM(a) (sizeof(a) / sizeof((a)[0]))
#define B      4000u /* bytes of a block, or of the vector */

static const uint16_t each[] = {0, 1, 2, 3}, pairs[] = {0, 0, 1, 1}, dealt[] = {0, 1, 0, 1},
                      most[] = {0, 0, 0, 1}, same[] = {1, 1, 1, 1};

static struct fabric *load(const char *text)
{
    struct fabric *f = fabric_load_string(text, "bound.conf", NULL);

    assert_non_null(f);
    return f;
}

static int64_t bound(const struct fabric *f, enum coll_kind kind, unsigned sparse, unsigned root,
                     const uint16_t *host)
{
    struct coll_args a = {
        .kind = kind, .type = DT_FP32, .count = B / 4, .sparse = sparse, .root = root};

    return bound_ps(f, &a, 4, host);
}

/* At one switch links of hosts are all there is: of 100 Gb/s, 80 ps a byte. `blocks` pass the busiest one. */
static void a_host_sends_or_gets_what_is_not_its_own(void **state)
{
    static const struct {
        enum coll_kind kind;
        const uint16_t *host;
        unsigned sparse, root, blocks;
    } rows[] = {
        {COLL_ALLREDUCE, each, 0, 0, 1},      {COLL_REDUCE, each, 0, 0, 1},
        {COLL_BROADCAST, pairs, 0, 0, 1},     {COLL_ALLREDUCE, same, 0, 0, 0},
        {COLL_ALLGATHER, each, 0, 0, 3},      {COLL_ALLGATHER, pairs, 0, 0, 2},
        {COLL_ALLGATHER, most, 0, 0, 3},      {COLL_REDUCE_SCATTER, each, 0, 0, 3},
        {COLL_REDUCE_SCATTER, most, 0, 0, 3}, {COLL_ALLTOALL, each, 0, 0, 3},
        {COLL_ALLTOALL, pairs, 0, 0, 4},      {COLL_ALLTOALL, most, 0, 0, 3},
        {COLL_ALLTOALL, each, 4, 0, 3},       {COLL_ALLTOALL, each, 2, 0, 1},
        {COLL_ALLTOALL, each, 1, 0, 0},       {COLL_ALLTOALL, pairs, 2, 0, 1},
        {COLL_ALLTOALL, pairs, 3, 0, 3},      {COLL_ALLTOALL, dealt, 2, 0, 2},
        {COLL_ALLTOALL, dealt, 3, 0, 2},      {COLL_ALLTOALL, same, 0, 0, 0},
        {COLL_GATHER, each, 0, 2, 3},         {COLL_GATHER, pairs, 0, 2, 2},
        {COLL_GATHER, most, 0, 0, 1},         {COLL_GATHER, most, 0, 3, 3},
        {COLL_SCATTER, each, 0, 0, 3},        {COLL_SCATTER, most, 0, 1, 1},
        {COLL_SENDRECV, each, 0, 0, 1},       {COLL_SENDRECV, pairs, 0, 0, 1},
        {COLL_SENDRECV, dealt, 0, 0, 2},      {COLL_SENDRECV, most, 0, 0, 1},
        {COLL_SENDRECV, same, 0, 0, 0},       {COLL_BARRIER, each, 0, 0, 0},
    };
    struct fabric *f = load("name = \"b\"; single_switch = { hosts = 4; host_link = { rate = "
                            "\"100Gb/s\"; latency = \"300ns\"; }; };");

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++)
        if (bound(f, rows[i].kind, rows[i].sparse, rows[i].root, rows[i].host) !=
            (int64_t)rows[i].blocks * 80 * B)
            fail_msg("row %u: %ld", i,
                     bound(f, rows[i].kind, rows[i].sparse, rows[i].root, rows[i].host));
    fabric_free(f);
}

/* Either host's link may be the one that binds. */
static void the_slower_of_both_ends_binds(void **state)
{
    struct fabric *f = load("name = \"b\"; single_switch = { hosts = 4; host_link = { rate = "
                            "\"100Gb/s\"; latency = \"300ns\"; }; };");

    (void)state;
    /* three ranks, the root among them, get one block; the fourth sends it */
    f->links[1].rate_bps = 10000000000;
    f->links[0].rate_bps = 1000000000000;
    assert_int_equal(bound(f, COLL_GATHER, 0, 0, most), 800 * B);
    f->links[1].rate_bps = 1000000000000;
    f->links[0].rate_bps = 10000000000;
    assert_int_equal(bound(f, COLL_GATHER, 0, 0, most), 800 * B);
    /* the root is alone: three blocks */
    assert_int_equal(bound(f, COLL_GATHER, 0, 3, most), 3 * 800 * B);
    fabric_free(f);
}

/* Two leaves of two hosts; hosts' links 80 ps a byte, those of a leaf to `spines` spines 160 each. */
static void leaves_are_joined_by_their_uplinks(void **state)
{
    static const struct {
        enum coll_kind kind;
        unsigned spines;
        uint64_t ps; /* of a byte */
    } rows[] = {
        {COLL_ALLREDUCE, 1, 160},    {COLL_ALLREDUCE, 2, 80},  {COLL_ALLREDUCE, 4, 80},
        {COLL_ALLGATHER, 1, 320},    {COLL_ALLGATHER, 2, 240}, /* a host's three blocks */
        {COLL_ALLTOALL, 1, 4 * 160}, {COLL_ALLTOALL, 2, 320},  {COLL_ALLTOALL, 4, 240},
        {COLL_GATHER, 1, 320},       {COLL_GATHER, 2, 240},    {COLL_SENDRECV, 1, 160},
        {COLL_SENDRECV, 2, 80},
    };

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        char text[400];
        struct fabric *f;

        snprintf(text, sizeof(text),
                 "name = \"b\"; leaf_spine = { leaves = 2; spines = %u; hosts_per_leaf = 2; "
                 "host_link = { rate = \"100Gb/s\"; latency = \"300ns\"; }; spine_link = { rate = "
                 "\"50Gb/s\"; latency = \"1us\"; }; };",
                 rows[i].spines);
        f = load(text);
        assert_int_equal(bound(f, rows[i].kind, 0, 0, each), rows[i].ps * B);
        fabric_free(f);
    }
}

/* Two nodes of two GPUs: a GPU has 2 planes of 25 GB/s and a NIC, a node two NICs. */
static void nodes_are_joined_by_their_nics(void **state)
{
    static const struct {
        unsigned nic; /* Gb/s */
        enum coll_kind kind;
        uint64_t ps;
    } rows[] = {
        {100, COLL_ALLREDUCE, 40}, /* 200 Gb/s leave a node */
        {400, COLL_ALLREDUCE, 10}, /* 800 Gb/s leave a node, and a GPU */
        {800, COLL_ALLREDUCE, 6},  /* 1200 Gb/s leave a GPU: 20/3 */
        {100, COLL_ALLTOALL, 160}, /* 2 x 2 blocks */
        {400, COLL_ALLTOALL, 40},
    };

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        char text[600];
        struct fabric *f;

        snprintf(text, sizeof(text),
                 "name = \"b\"; ecmp = \"balanced\"; gpu_nodes = { nodes = 2; gpus = 2; planes = ( "
                 "1, 1 ); nvlink = { rate = \"25GB/s\"; latency = \"300ns\"; }; nic = { rate = "
                 "\"%uGb/s\"; latency = \"300ns\"; }; }; rails = { leaves = 2; spines = 2; "
                 "spine_link = { rate = \"1600Gb/s\"; latency = \"300ns\"; }; };",
                 rows[i].nic);
        f = load(text);
        assert_int_equal(bound(f, rows[i].kind, 0, 0, each),
                         rows[i].ps == 6 ? 20 * B / 3 : rows[i].ps * B);
        fabric_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_sends_or_gets_what_is_not_its_own),
        cmocka_unit_test(the_slower_of_both_ends_binds),
        cmocka_unit_test(leaves_are_joined_by_their_uplinks),
        cmocka_unit_test(nodes_are_joined_by_their_nics),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
