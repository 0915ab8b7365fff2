/* SPDX-License-Identifier: BSD-3-Clause */
/* Which algorithm comes after one that needs a failed part. */
#include "host/coll/comm.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define DIM(a) (sizeof(a) / sizeof((a)[0]))
#define BIT(a) (1u << (a))
#define END    ALGO_AUTO /* of a list */

static struct comm *new_comm(unsigned algos, const enum coll_algo *policy)
{
    struct comm *c = calloc(1, sizeof(*c));

    assert_non_null(c);
    c->cfg.algos = algos;
    c->failover.round = calloc(1, sizeof(*c->failover.round));
    for (; policy && policy[c->cfg.n_policy] != END; c->cfg.n_policy++)
        c->cfg.policy[c->cfg.n_policy] = policy[c->cfg.n_policy];
    return c;
}

static void drop(struct comm *c)
{
    free(c->failover.round);
    free(c);
}

static enum coll_algo protocol(const char *name)
{
    int seat = proto_seat(name);

    assert_true(seat >= 0);
    return ALGO_PROTOCOL + (enum coll_algo)seat;
}

static enum coll_algo empty_seat(void)
{
    enum coll_algo a = ALGO_PROTOCOL;

    while (coll_protocol(a))
        a++;
    assert_true(coll_is_protocol(a));
    return a;
}

static void algorithms_need_the_parts_that_they_run_by(void **state)
{
    (void)state;
    for (enum coll_algo a = 0; a < ALGO_COUNT; a++) {
        unsigned parts = coll_is_protocol(a) ? PART_PROTOCOL(a - ALGO_PROTOCOL) : 0;

        switch (a) {
        case ALGO_SHARP:
            parts = PART_TREES;
            break;
        case ALGO_NVLS:
            parts = PART_MM;
            break;
        case ALGO_HIER_SHARP:
            parts = PART_RAIL;
            break;
        case ALGO_NVLS_SHARP:
            parts = PART_RAIL | PART_MM;
            break;
        default:
            break;
        }
        assert_int_equal(policy_parts(a), parts);
    }
}

static void a_policy_names_algorithms_once_that_are_set_up(void **state)
{
    const struct {
        unsigned algos;
        enum coll_algo policy[4];
        const char *says; /* NULL: it is taken */
    } rows[] = {
        {0, {ALGO_RING, ALGO_TREE, END}, NULL}, /* what needs no switch need not be set up */
        {BIT(ALGO_SHARP), {ALGO_SHARP, END}, NULL},
        {BIT(protocol("ps")), {ALGO_TREE, protocol("ps"), END}, NULL},
        {0,
         {ALGO_RING, ALGO_SHARP, END},
         "policy: sharp at place 1 was not set up (comm_cfg.algos)"},
        {BIT(ALGO_RING),
         {ALGO_NVLS, END},
         "policy: nvls at place 0 was not set up (comm_cfg.algos)"},
        {0, {ALGO_RING, ALGO_TREE, ALGO_RING, END}, "policy: an algorithm twice at place 2"},
        {~0u, {ALGO_SCHEDULE, END}, "policy: no such algorithm at place 0"},
        {~0u, {ALGO_RING, ALGO_COUNT + 1, END}, "policy: no such algorithm at place 1"},
        {~0u, {ALGO_RING, empty_seat(), END}, "policy: no such algorithm at place 1"},
    };

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct comm *c = new_comm(rows[i].algos, rows[i].policy);
        unsigned n = c->cfg.n_policy;
        char err[COMM_TEXT] = "";

        assert_int_equal(policy_init(c, err), rows[i].says ? -EINVAL : 0);
        assert_string_equal(err, rows[i].says ? rows[i].says : "");
        if (!rows[i].says) {
            assert_false(c->usual_policy);
            assert_int_equal(c->cfg.n_policy, n);
            assert_memory_equal(c->cfg.policy, rows[i].policy, n * sizeof(rows[i].policy[0]));
        }
        drop(c);
    }
}

static void without_a_policy_the_usual_one_is_taken(void **state)
{
    struct comm *c = new_comm(0, NULL);
    char err[COMM_TEXT] = "";

    (void)state;
    assert_int_equal(policy_init(c, err), 0);
    assert_true(c->usual_policy);
    assert_int_equal(c->cfg.n_policy, 2);
    assert_int_equal(c->cfg.policy[0], ALGO_SHARP);
    assert_int_equal(c->cfg.policy[1], ALGO_RING);
    c->cfg.n_policy = ALGO_SCHEDULE + 1; /* more than there are */
    assert_int_equal(policy_init(c, err), -EINVAL);
    assert_non_null(strstr(err, "a policy of"));
    c->cfg.n_policy = ALGO_SCHEDULE; /* not too many, but the same ones */
    assert_int_equal(policy_init(c, err), -EINVAL);
    assert_non_null(strstr(err, "policy: "));
    drop(c);
}

/* All lists of up to two algorithms differ, whatever their order. */
static void lists_that_differ_have_other_codes(void **state)
{
    uint64_t seen[1 + ALGO_COUNT + ALGO_COUNT * ALGO_COUNT];
    struct comm *c = new_comm(0, NULL);
    unsigned n = 0;

    (void)state;
    assert_int_equal(policy_code(c), 0);
    seen[n++] = 0;
    for (enum coll_algo a = 0; a < ALGO_COUNT; a++) {
        c->cfg.policy[0] = a, c->cfg.n_policy = 1;
        seen[n++] = policy_code(c);
        for (enum coll_algo b = 0; b < ALGO_COUNT; b++) {
            c->cfg.policy[1] = b, c->cfg.n_policy = 2;
            seen[n++] = policy_code(c);
        }
    }
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < i; k++)
            assert_true(seen[i] != seen[k]);
    drop(c);
}

static void the_list_is_what_follows_an_algorithm(void **state)
{
    static const enum coll_algo order[] = {ALGO_SHARP, ALGO_TREE, ALGO_RING, END};
    static const struct {
        unsigned algos;
        enum coll_kind kind;
        enum coll_algo list[6];
    } rows[] = {
        {BIT(ALGO_SHARP), COLL_ALLREDUCE, {ALGO_SHARP, ALGO_TREE, ALGO_RING, END}},
        {BIT(ALGO_SHARP), COLL_ALLREDUCE, {ALGO_TREE, ALGO_RING, END}},
        {BIT(ALGO_SHARP), COLL_ALLREDUCE, {ALGO_RING, END}},
        /* not in it: all of it */
        {BIT(ALGO_SHARP), COLL_ALLREDUCE, {ALGO_HALVING, ALGO_SHARP, ALGO_TREE, ALGO_RING, END}},
        {0, COLL_ALLREDUCE, {ALGO_HALVING, ALGO_TREE, ALGO_RING, END}},
        /* a tree has no all-gather, and a barrier's ring is direct */
        {BIT(ALGO_SHARP), COLL_ALLGATHER, {ALGO_SHARP, ALGO_RING, END}},
        {BIT(ALGO_SHARP), COLL_BARRIER, {ALGO_SHARP, ALGO_DIRECT, END}},
        {BIT(ALGO_SHARP), COLL_BARRIER, {ALGO_HALVING, ALGO_SHARP, ALGO_DIRECT, END}},
        {BIT(ALGO_SHARP), COLL_ALLTOALL, {ALGO_PAIRWISE, END}},
    };

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct comm *c = new_comm(rows[i].algos, order);
        enum coll_algo list[ALGO_COUNT + 1];
        unsigned n = policy_list(c, rows[i].kind, rows[i].list[0], list), want = 0;

        while (rows[i].list[want] != END)
            want++;
        assert_int_equal(n, want);
        assert_memory_equal(list, rows[i].list, n * sizeof(list[0]));
        drop(c);
    }
}

static void it_goes_on_if_every_algorithm_has_one_after_it(void **state)
{
    const enum coll_algo ps = protocol("ps");
    const struct {
        unsigned algos;
        enum coll_algo policy[4];
        unsigned parts;
        bool usual, on;
    } rows[] = {
        {BIT(ALGO_SHARP), {ALGO_SHARP, ALGO_RING, END}, PART_TREES, true, true},
        {BIT(ALGO_SHARP), {ALGO_RING, ALGO_SHARP, END}, PART_TREES, false, false},
        {BIT(ALGO_SHARP), {ALGO_RING, ALGO_SHARP, END}, PART_MM, false, true}, /* not needed */
        {BIT(ALGO_HIER_SHARP), {ALGO_SHARP, ALGO_RING, END}, PART_RAIL, true, true},
        /* what follows needs the part, too */
        {BIT(ALGO_SHARP) | BIT(ALGO_HIER_SHARP),
         {ALGO_SHARP, ALGO_HIER_SHARP, END},
         PART_TREES,
         false,
         true},
        {BIT(ALGO_SHARP) | BIT(ALGO_HIER_SHARP),
         {ALGO_SHARP, ALGO_HIER_SHARP, END},
         PART_TREES | PART_RAIL,
         false,
         false},
        {BIT(ALGO_NVLS_SHARP) | BIT(ALGO_HIER_SHARP),
         {ALGO_NVLS_SHARP, ALGO_HIER_SHARP, ALGO_RING, END},
         PART_RAIL,
         false,
         true},
        /* one of two has nothing after it */
        {BIT(ALGO_SHARP) | BIT(ALGO_NVLS),
         {ALGO_NVLS, ALGO_RING, ALGO_SHARP, END},
         PART_TREES | PART_MM,
         false,
         false},
        {BIT(ALGO_SHARP) | BIT(ALGO_NVLS),
         {ALGO_NVLS, ALGO_RING, ALGO_SHARP, END},
         PART_MM,
         false,
         true},
        /* after a protocol only what the user has asked for */
        {BIT(ps), {ALGO_SHARP, ALGO_RING, END}, PART_PROTOCOL(ps - ALGO_PROTOCOL), true, false},
        {BIT(ps), {ps, ALGO_RING, END}, PART_PROTOCOL(ps - ALGO_PROTOCOL), false, true},
        {BIT(ps), {ALGO_RING, ps, END}, PART_PROTOCOL(ps - ALGO_PROTOCOL), false, false},
    };

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct comm *c = new_comm(rows[i].algos, rows[i].policy);

        c->usual_policy = rows[i].usual;
        if (policy_goes_on(c, rows[i].parts) != rows[i].on)
            fail_msg("row %u", i);
        drop(c);
    }
}

#define RANKS 4

/* By what operation 0 of four ranks without GPU nodes is scheduled; -errno. */
static int runs_by(struct comm *c, enum coll_algo a, unsigned gone, unsigned trees, enum dtype type,
                   uint64_t count)
{
    static const uint16_t domain[RANKS] = {0, 1, 2, 3};
    const struct sched_topo topo = {.domain = domain, .trees = trees};
    struct sched_in in = {.kind = COLL_ALLREDUCE,
                          .algo = a,
                          .nranks = RANKS,
                          .count = count,
                          .type = type,
                          .mtu = 1024,
                          .topo = &topo};
    struct coll_req r = {0};
    int rc;

    c->failover.n_rounds = gone != 0;
    c->failover.round[0] = (struct failover_round){.parts = gone, .whole = true};
    rc = policy_schedule(c, &r, &in);
    if (rc)
        return rc;
    assert_int_equal(r.s.in.algo, in.algo);
    sched_free(&r.s);
    return (int)in.algo;
}

static void an_operation_runs_by_the_first_that_can(void **state)
{
    const enum coll_algo sum = protocol("switchml");
    const unsigned mine = PART_PROTOCOL(sum - ALGO_PROTOCOL);
    const struct {
        enum coll_algo policy[5], a;
        unsigned gone, trees;
        enum dtype type;
        uint64_t count;
        int by;
    } rows[] = {
        {{ALGO_SHARP, ALGO_RING, END}, ALGO_SHARP, 0, 1, DT_FP32, 9, ALGO_SHARP},
        {{ALGO_SHARP, ALGO_RING, END}, ALGO_SHARP, PART_TREES, 1, DT_FP32, 9, ALGO_RING},
        {{ALGO_SHARP, ALGO_RING, END}, ALGO_SHARP, PART_TREES, 1, DT_FP32, 0, ALGO_RING},
        {{ALGO_SHARP, ALGO_RING, END}, ALGO_SHARP, PART_MM, 1, DT_FP32, 9, ALGO_SHARP},
        {{ALGO_SHARP, END}, ALGO_SHARP, PART_TREES, 1, DT_FP32, 9, -ENOTSUP},
        /* these ranks cannot run it, and nothing has failed, or what has is not the reason */
        {{ALGO_SHARP, ALGO_RING, END}, ALGO_SHARP, 0, 0, DT_FP32, 9, -ENOTSUP},
        {{ALGO_SHARP, ALGO_RING, END}, ALGO_SHARP, PART_TREES, 0, DT_FP32, 9, -ENOTSUP},
        {{ALGO_SHARP, ALGO_RING, END}, ALGO_SHARP, PART_MM, 0, DT_FP32, 9, -ENOTSUP},
        /* what comes first after it cannot run here */
        {{ALGO_SHARP, ALGO_NVLS, ALGO_RING, END}, ALGO_SHARP, PART_TREES, 1, DT_FP32, 9, ALGO_RING},
        {{ALGO_SHARP, ALGO_NVLS, ALGO_RING, END},
         ALGO_SHARP,
         PART_TREES | PART_MM,
         1,
         DT_FP32,
         9,
         ALGO_RING},
        /* a protocol that does not sum the type is left out, unless it is asked for */
        {{ALGO_SHARP, sum, ALGO_RING, END}, ALGO_SHARP, PART_TREES, 1, DT_FP32, 9, sum},
        {{ALGO_SHARP, sum, ALGO_RING, END}, ALGO_SHARP, PART_TREES, 1, DT_FP64, 9, ALGO_RING},
        {{ALGO_SHARP, sum, ALGO_RING, END},
         ALGO_SHARP,
         PART_TREES | mine,
         1,
         DT_FP32,
         9,
         ALGO_RING},
        {{sum, ALGO_RING, END}, sum, mine, 1, DT_FP32, 9, ALGO_RING},
    };

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct comm *c = new_comm(~0u, rows[i].policy);
        int by = runs_by(c, rows[i].a, rows[i].gone, rows[i].trees, rows[i].type, rows[i].count);

        if (by != rows[i].by)
            fail_msg("row %u: %d, expected %d", i, by, rows[i].by);
        drop(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(algorithms_need_the_parts_that_they_run_by),
        cmocka_unit_test(a_policy_names_algorithms_once_that_are_set_up),
        cmocka_unit_test(without_a_policy_the_usual_one_is_taken),
        cmocka_unit_test(lists_that_differ_have_other_codes),
        cmocka_unit_test(the_list_is_what_follows_an_algorithm),
        cmocka_unit_test(it_goes_on_if_every_algorithm_has_one_after_it),
        cmocka_unit_test(an_operation_runs_by_the_first_that_can),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
