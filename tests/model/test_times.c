/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the model says of every collective by every algorithm on one fabric of each kind, to the picosecond and byte: a time is
 * what runs in packets were found to take (tests/sim/test_model_exact.c, test_model_packets.c), and changes on purpose only. A
 * line that differs is printed as it is now.
 */
#include "collective/sched.h"
#include "model/predict.h"
#include "tests/model/times.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define REDUCE   "reduce = { groups = 64; slots = 16384; window = 256; };"
#define LINK(r)  "{ rate = \"" r "\"; latency = \"300ns\"; }"
#define STAR(n)  "single_switch = { hosts = " n "; host_link = " LINK("100Gb/s") "; };"
#define SPINE(r) "spine_link = { rate = \"" r "\"; latency = \"700ns\"; }; };"
#define LEAVES(n, per)                                                                             \
    "leaf_spine = { leaves = " n "; spines = 2; hosts_per_leaf = " per                             \
    "; host_link = " LINK("100Gb/s") "; "

#define LONG (1u << ALGO_RING | 1u << ALGO_SHARP | 1u << ALGO_HALVING)
#define MANY (1u << ALGO_SHARP | 1u << ALGO_TREE | 1u << ALGO_DIRECT | 1u << ALGO_PAIRWISE)

static const struct place {
    const char *name, *conf;
    unsigned n, per_host, n_trees;
    uint64_t counts[3];
    unsigned algos; /* 0: all */
} places[] = {
    {"star", "mtu = 1024;" STAR("5"), 5, 1, 1, {1, 1001, 70001}, 0},
    {"costs",
     "mtu = 1024; costs = { gpu = \"2us\"; hca = \"300ns\"; switch = \"100ns\"; network = { launch "
     "= \"4us\"; step = \"1us\"; ll = { step = \"200ns\"; rate = \"5GB/s\"; }; }; "
     "aggregate = { time = \"100ns\"; bytes = 1024; }; };" STAR("4"),
     4,
     1,
     1,
     {1, 1001, 70001},
     0},
    {"shared hosts", "mtu = 4096;" STAR("3"), 6, 2, 1, {1, 1001, 70001}, 0},
    {"hashed leaves",
     "mtu = 2048;" LEAVES("2", "2") SPINE("100Gb/s"),
     4,
     1,
     2,
     {1, 1001, 70001},
     0},
    {"leaves that cut through",
     "mtu = 4096; ecmp = \"balanced\"; forwarding = \"cut-through\"; link_defaults = { buffer = "
     "\"64KiB\"; };" LEAVES("2", "4") SPINE("200Gb/s"),
     8,
     1,
     2,
     {1, 1001, 70001},
     0},
    {"nodes",
     "mtu = 4096; ecmp = \"balanced\"; gpu_nodes = { nodes = 3; gpus = 4; planes = ( 2, 1 ); "
     "nvlink = " LINK("25GB/s") "; nic = " LINK(
         "200Gb/s") "; };"
                    "rails = { leaves = 2; spines = 1; spine_link = " LINK("200Gb/s") "; };",
     12,
     1,
     1,
     {1, 1001, 70001},
     0},
    {"long vectors", "mtu = 4096;" STAR("3"), 3, 1, 1, {2000003, 3500007, 30000005}, LONG},
    {"many ranks",
     "mtu = 4096; ecmp = \"balanced\";" LEAVES("12", "8") SPINE("400Gb/s"),
     96,
     1,
     1,
     {1, 300, 9001},
     MANY},
};

static struct fabric *load(const struct place *w)
{
    char text[1200];
    struct fabric *f;

    snprintf(text, sizeof(text), "name = \"times\"; %s " REDUCE, w->conf);
    f = fabric_load_string(text, "times.conf", NULL);
    assert_non_null(f);
    return f;
}

/* "all_reduce ring", then of each count time, busiest link and its bytes, hand-offs, and what else is not 0. False: not one
 * count can be predicted. */
static bool line_of(const struct fabric *f, const struct place *w, struct coll_args a, char *text,
                    size_t room)
{
    static const uint16_t trees[2] = {0, 1};
    uint16_t hosts[96];
    size_t n = (size_t)snprintf(text, room, "%s %s", coll_name(a.kind), sched_algo_name(a.algo));
    bool any = false;

    for (unsigned r = 0; r < w->n; r++)
        hosts[r] = (uint16_t)(r / w->per_host);
    for (unsigned c = 0; c < (a.kind == COLL_BARRIER ? 1 : 3); c++) {
        struct coll_prediction p;

        a.count = a.kind == COLL_BARRIER ? 0 : w->counts[c];
        if (coll_predict_trees(f, &a, w->n, hosts, trees, w->n_trees, 0, &p))
            continue;
        any = true;
        n += (size_t)snprintf(text + n, room - n, "; %ld %d %lu %u", p.time_ps,
                              (int)p.busiest_dirlink, p.busiest_link_bytes, p.handoffs);
        if (p.next_ps || p.within_percent)
            n +=
                (size_t)snprintf(text + n, room - n, " next %ld %u%%", p.next_ps, p.within_percent);
        if (p.guessed || p.hashed || p.from_ranks)
            n += (size_t)snprintf(text + n, room - n, " %s%s%u", p.guessed ? "guessed " : "",
                                  p.hashed ? "hashed " : "", p.from_ranks);
    }
    return any;
}

/* Compares the place's lines with those from `at` on; returns the index behind them. */
static unsigned compare(const struct place *w, unsigned at, unsigned *wrong)
{
    struct fabric *f = load(w);

    for (enum coll_kind k = 0; k < COLL_KINDS; k++)
        for (enum coll_algo a = 0; a < ALGO_SCHEDULE; a++) {
            const struct coll_args op = {.kind = k,
                                         .algo = a,
                                         .type = DT_FP32,
                                         .op = OP_SUM,
                                         .root = 1,
                                         .sparse = k == COLL_ALLTOALL && a == ALGO_DIRECT ? 2 : 0,
                                         .mm_self = k == COLL_ALLREDUCE};
            char now[400];

            if (w->algos && !(w->algos >> a & 1))
                continue;
            if (!line_of(f, w, op, now, sizeof(now)))
                continue;
            if (at >= TIMES || strcmp(times[at], now)) {
                ++*wrong;
                printf("    \"%s\",\n", now);
            }
            at++;
        }
    fabric_free(f);
    return at;
}

static void the_model_says_what_it_said(void **state)
{
    unsigned at = 0, wrong = 0;

    (void)state;
    for (const struct place *w = places; w < places + sizeof(places) / sizeof(places[0]); w++) {
        unsigned were = wrong, from = at;

        at = compare(w, at, &wrong);
        if (wrong != were)
            printf("    /* of %s, lines %u to %u */\n", w->name, from, at);
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(at, TIMES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_model_says_what_it_said)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
