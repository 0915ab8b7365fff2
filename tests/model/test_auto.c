/* SPDX-License-Identifier: BSD-3-Clause */
/* The algorithm with the shortest prediction is chosen, and words say what it was compared with. */
#include "collective/sched.h"
#include "tests/collective/asking_protocol.h"

#include "model/predict.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static const uint16_t host[] = {0, 1, 2, 3}, tree = 0;
static struct fabric *fab;

static int load(void **state)
{
    (void)state;
    fab = fabric_load_string(
        "name = \"a\"; mtu = 1024; single_switch = { hosts = 4; host_link = { rate = \"100Gb/s\"; "
        "latency = \"300ns\"; }; }; reduce = { groups = 4; slots = 1024; window = 128; };",
        "auto.conf", NULL);
    return fab ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    fabric_free(fab);
    return 0;
}

static struct coll_args args_of(uint64_t count)
{
    return (struct coll_args){
        .kind = COLL_ALLREDUCE, .algo = ALGO_AUTO, .type = DT_FP32, .count = count};
}

static int predict(const struct coll_args *a, enum coll_algo by, struct coll_prediction *p)
{
    struct coll_args one = *a;

    one.algo = by;
    return coll_predict_trees(fab, &one, 4, host, &tree, 1, 0, p);
}

/* Of all subsets of these: the fastest, of equal ones the first, and the fastest of the others. */
static void the_fastest_is_chosen_and_the_next_named(void **state)
{
    static const enum coll_algo some[] = {ALGO_RING, ALGO_SHARP,   ALGO_TREE,
                                          ALGO_NVLS, ALGO_HALVING, ALGO_DIRECT};
    static const uint64_t counts[] = {1, 5000, 300000};

    (void)state;
    for (unsigned c = 0; c < 3; c++)
        for (unsigned set = 0; set < 1u << 6; set++) {
            const struct coll_args a = args_of(counts[c]);
            enum coll_algo best = ALGO_AUTO, second = ALGO_AUTO, got;
            int64_t first_ps = INT64_MAX, second_ps = INT64_MAX;
            struct coll_prediction p, want = {0};
            char why[COLL_WHY], text[COLL_WHY];
            unsigned allowed = 0;
            int rc;

            for (unsigned i = 0; i < 6; i++) {
                if (!(set >> i & 1))
                    continue;
                allowed |= 1u << some[i];
                if (predict(&a, some[i], &p))
                    continue; /* NVLS: there are no planes */
                if (p.time_ps < first_ps) {
                    second = best, second_ps = first_ps;
                    best = some[i], first_ps = p.time_ps, want = p;
                } else if (p.time_ps < second_ps) {
                    second = some[i], second_ps = p.time_ps;
                }
            }
            rc = coll_auto(fab, &a, 4, host, &tree, 1, 0, allowed, &got, &p, why);
            assert_int_equal(rc, best == ALGO_AUTO ? -ENOTSUP : 0);
            if (rc)
                continue;
            assert_int_equal(got, best);
            assert_int_equal(p.time_ps, want.time_ps);
            assert_int_equal(p.busiest_link_bytes, want.busiest_link_bytes);
            if (second == ALGO_AUTO)
                snprintf(text, sizeof(text), "%s: %.2f us; nothing else can do it here",
                         sched_algo_name(best), (double)first_ps / 1e6);
            else
                snprintf(text, sizeof(text), "%s: %.2f us, next best %s %.2f us (%.2f x)",
                         sched_algo_name(best), (double)first_ps / 1e6, sched_algo_name(second),
                         (double)second_ps / 1e6, (double)second_ps / (double)first_ps);
            assert_string_equal(why, text);
        }
}

/* What nobody knows is not chosen, however short it is said to be. */
static void a_guess_is_not_chosen(void **state)
{
    const struct coll_args a = args_of(1000);
    char err[PROTO_TEXT], why[COLL_WHY];
    enum coll_algo guessed, got;
    struct coll_prediction p;
    int seat;

    (void)state;
    seat = proto_add(&without, err);
    assert_true(seat >= 0);
    guessed = ALGO_PROTOCOL + (enum coll_algo)seat;
    assert_int_equal(predict(&a, guessed, &p), 0);
    assert_true(p.guessed);
    assert_int_equal(coll_auto(fab, &a, 4, host, &tree, 1, 0, 1u << guessed, &got, &p, why),
                     -ENOTSUP);
    assert_int_equal(
        coll_auto(fab, &a, 4, host, &tree, 1, 0, 1u << guessed | 1u << ALGO_RING, &got, &p, why),
        0);
    assert_int_equal(got, ALGO_RING);
    assert_non_null(strstr(why, "nothing else"));
}

/* Where nothing has to be sent all take no time: the first is as good. */
static void of_equal_ones_the_first_is_taken(void **state)
{
    const struct coll_args a = args_of(0);
    enum coll_algo got;
    struct coll_prediction p;
    char why[COLL_WHY];

    (void)state;
    assert_int_equal(coll_auto(fab, &a, 4, host, &tree, 1, 0,
                               1u << ALGO_TREE | 1u << ALGO_HALVING | 1u << ALGO_DIRECT, &got, &p,
                               why),
                     0);
    assert_int_equal(got, ALGO_TREE);
    assert_string_equal(why, "tree: 0.00 us, next best halving 0.00 us (1.00 x)");
}

static void wrong_arguments_are_refused(void **state)
{
    struct coll_args a = args_of(10);
    enum coll_algo got;
    struct coll_prediction p;
    char why[COLL_WHY];

    (void)state;
    a.root = 4;
    assert_int_equal(coll_auto(fab, &a, 4, host, &tree, 1, 0, ~0u, &got, &p, why), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_is_chosen_and_the_next_named),
        cmocka_unit_test(a_guess_is_not_chosen),
        cmocka_unit_test(of_equal_ones_the_first_is_taken),
        cmocka_unit_test(wrong_arguments_are_refused),
    };

    return cmocka_run_group_tests(tests, load, unload);
}
