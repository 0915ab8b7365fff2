/* SPDX-License-Identifier: BSD-3-Clause */
/* The cases that seeds are: every value of some, and the ranges of what is drawn for each property. */
#include "protocols/check/check_case.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool sums(enum trib_type type, enum trib_sum op)
{
    return op == TRIB_SUM && (type == TRIB_INT32 || type == TRIB_FLOAT64);
}

static bool nothing(enum trib_type type, enum trib_sum op)
{
    (void)type, (void)op;
    return false;
}

static const struct trib_key keys[] = {
    {"pool", "x", 50, 1, 100}, {"near", "x", 3, 2, 4}, {.name = NULL}};
static const struct trib_protocol plain = {.name = "plain", .supports = sums};
static const struct trib_protocol keyed = {.name = "keyed", .supports = sums, .keys = keys};
static const struct trib_protocol none = {.name = "none", .supports = nothing};
static const int64_t usual[TRIB_KEYS] = {50, 3};

static void print(FILE *to, const struct check_case *c)
{
    fprintf(to,
            "%s %" PRIu64 ": %u leafs, %u jobs, keys %" PRId64 " %" PRId64
            "%s, payload %u, window %u, buffers %u, "
            "%" PRIu64 " Gb/s, latency %" PRId64 ", memory %zu\n",
            property_name(c->property), c->seed, c->n_leafs, c->n_jobs, c->key[0], c->key[1],
            c->any_key ? " any" : "", c->payload, c->window, c->buffers, c->rate_bps / 1000000000,
            c->latency_ps, c->memory);
    fprintf(to,
            "  loss %u, duplication %u, reordering %u, marks %u, hostile %u, jitter %" PRId64
            ", late %" PRId64 ", dies %d at %" PRId64 "\n",
            c->loss, c->duplication, c->reordering, c->marks, c->hostile, c->jitter_ps, c->late_ps,
            c->dies, c->dies_ps);
    for (unsigned j = 0; j < c->n_jobs; j++) {
        fprintf(to, "  job at %" PRId64 ", leafs ", c->job[j].start_ps);
        for (unsigned r = 0; r < c->job[j].nranks; r++)
            fprintf(to, "%u", c->job[j].leaf[r]);
        for (unsigned i = 0; i < c->job[j].n_ops; i++)
            fprintf(to, ", %" PRIu64 " of %d%s", c->job[j].op[i].count, (int)c->job[j].op[i].type,
                    c->job[j].op[i].in_place ? " in place" : "");
        fputc('\n', to);
    }
}

static const char expected[] =
    "exactness 1: 2 leafs, 1 jobs, keys 50 3, payload 4064, window 256, buffers 256, 100 Gb/s, "
    "latency 180233, memory 67108864\n"
    "  loss 0, duplication 0, reordering 0, marks 0, hostile 0, jitter 0, late 6142956, dies -1 at "
    "0\n"
    "  job at 0, leafs 01, 4 of 8, 46076 of 8, 6585 of 8\n"
    "exactness 2: 3 leafs, 1 jobs, keys 50 3, payload 256, window 16, buffers 32, 100 Gb/s, "
    "latency 584851, memory 67108864\n"
    "  loss 0, duplication 0, reordering 0, marks 0, hostile 0, jitter 0, late 2447564, dies -1 at "
    "0\n"
    "  job at 0, leafs 01, 63 of 2 in place, 1069 of 8\n"
    "loss 1: 2 leafs, 1 jobs, keys 50 3, payload 256, window 128, buffers 32, 400 Gb/s, latency "
    "219996, memory 67108864\n"
    "  loss 50000, duplication 0, reordering 0, marks 0, hostile 0, jitter 0, late 907024, dies -1 "
    "at 0\n"
    "  job at 0, leafs 01010, 2591 of 8\n"
    "loss 2: 2 leafs, 1 jobs, keys 50 3, payload 1012, window 32, buffers 64, 400 Gb/s, latency "
    "308120, memory 67108864\n"
    "  loss 200000, duplication 0, reordering 0, marks 0, hostile 0, jitter 0, late 5280000, dies "
    "-1 at 0\n"
    "  job at 0, leafs 010, 255 of 8 in place, 504 of 8 in place, 820 of 8\n"
    "duplication 1: 4 leafs, 1 jobs, keys 50 3, payload 4064, window 16, buffers 128, 100 Gb/s, "
    "latency 855396, memory 67108864\n"
    "  loss 0, duplication 84541, reordering 0, marks 0, hostile 0, jitter 0, late 9496608, dies "
    "-1 at 0\n"
    "  job at 0, leafs 0123, 1016 of 8, 1181 of 8\n"
    "duplication 2: 2 leafs, 1 jobs, keys 50 3, payload 256, window 32, buffers 4, 400 Gb/s, "
    "latency 315431, memory 67108864\n"
    "  loss 0, duplication 477802, reordering 0, marks 0, hostile 0, jitter 0, late 2577528, dies "
    "-1 at 0\n"
    "  job at 0, leafs 00011, 256 of 2, 614 of 8, 3 of 8, 226 of 8\n"
    "reordering 1: 3 leafs, 1 jobs, keys 50 3, payload 4064, window 32, buffers 128, 400 Gb/s, "
    "latency 632952, memory 67108864\n"
    "  loss 0, duplication 0, reordering 382167, marks 0, hostile 0, jitter 715872, late 5726976, "
    "dies -1 at 0\n"
    "  job at 0, leafs 0120, 43702 of 8 in place\n"
    "reordering 2: 2 leafs, 1 jobs, keys 50 3, payload 1012, window 32, buffers 8, 100 Gb/s, "
    "latency 336451, memory 67108864\n"
    "  loss 0, duplication 0, reordering 24815, marks 0, hostile 0, jitter 0, late 5087652, dies "
    "-1 at 0\n"
    "  job at 0, leafs 000001111, 721 of 8, 199 of 8, 772 of 8 in place, 12653 of 8\n"
    "jobs 1: 1 leafs, 4 jobs, keys 50 3, payload 256, window 256, buffers 8, 400 Gb/s, latency "
    "236404, memory 67108864\n"
    "  loss 29084, duplication 18588, reordering 23982, marks 78552, hostile 0, jitter 121582, "
    "late 972656, dies -1 at 0\n"
    "  job at 22249585, leafs 000, 3353 of 2 in place\n"
    "  job at 45890782, leafs 0000, 64 of 8, 3735 of 2, 3 of 8 in place\n"
    "  job at 44490567, leafs 00, 128 of 8 in place, 1418 of 8, 96 of 8, 128 of 8\n"
    "  job at 3152112, leafs 00000000, 128 of 8, 1738 of 8, 2970 of 8, 1184 of 8\n"
    "jobs 2: 1 leafs, 2 jobs, keys 50 3, payload 4064, window 16, buffers 8, 100 Gb/s, latency "
    "986863, memory 67108864\n"
    "  loss 21831, duplication 36226, reordering 45428, marks 10137, hostile 0, jitter 0, late "
    "10548344, dies -1 at 0\n"
    "  job at 2316082, leafs 00000, 1016 of 8 in place, 10385 of 8\n"
    "  job at 39042739, leafs 00000000000, 1481 of 8, 5918 of 2, 1 of 8 in place, 4848 of 2\n"
    "leaks 1: 2 leafs, 2 jobs, keys 50 3, payload 1024, window 64, buffers 4, 400 Gb/s, latency "
    "311987, memory 67108864\n"
    "  loss 18679, duplication 4544, reordering 6885, marks 69982, hostile 0, jitter 334107, late "
    "5345712, dies -1 at 0\n"
    "  job at 22234339, leafs 01010, 512 of 2, 10274 of 8 in place\n"
    "  job at 44463966, leafs 001, 1732 of 8, 2 of 8, 151 of 8\n"
    "leaks 2: 1 leafs, 4 jobs, keys 50 3, payload 4064, window 128, buffers 8, 400 Gb/s, latency "
    "443444, memory 67108864\n"
    "  loss 26734, duplication 46717, reordering 18209, marks 96742, hostile 0, jitter 0, late "
    "4210912, dies 4 at 46475787\n"
    "  job at 43580785, leafs 00000, 3199 of 8 in place, 1081 of 8, 2 of 8, 4 of 8\n"
    "  job at 14451987, leafs 00000000000, 508 of 8 in place, 1524 of 8 in place\n"
    "  job at 49333919, leafs 00000000, 2032 of 8 in place, 10412 of 8 in place, 3048 of 2, 4107 "
    "of 2\n"
    "  job at 40133751, leafs 000000000, 2969 of 2 in place, 4 of 8, 15104 of 8\n"
    "determinism 1: 1 leafs, 1 jobs, keys 50 3, payload 256, window 16, buffers 256, 400 Gb/s, "
    "latency 459835, memory 67108864\n"
    "  loss 16889, duplication 46574, reordering 20647, marks 34528, hostile 0, jitter 0, late "
    "1866380, dies -1 at 0\n"
    "  job at 0, leafs 000, 1 of 8 in place\n"
    "determinism 2: 3 leafs, 1 jobs, keys 50 3, payload 1024, window 128, buffers 4, 400 Gb/s, "
    "latency 460338, memory 67108864\n"
    "  loss 22052, duplication 19362, reordering 35248, marks 91754, hostile 0, jitter 482458, "
    "late 1929832, dies -1 at 0\n"
    "  job at 0, leafs 012012012, 377 of 8, 7095 of 8 in place, 2 of 8\n"
    "work 1: 1 leafs, 1 jobs, keys 50 3, payload 256, window 256, buffers 32, 400 Gb/s, latency "
    "244670, memory 67108864\n"
    "  loss 0, duplication 0, reordering 0, marks 0, hostile 0, jitter 0, late 2011440, dies -1 at "
    "0\n"
    "  job at 0, leafs 00, 720 of 8, 178 of 2, 57 of 8\n"
    "work 2: 1 leafs, 1 jobs, keys 50 3, payload 256, window 16, buffers 16, 100 Gb/s, latency "
    "978162, memory 67108864\n"
    "  loss 0, duplication 0, reordering 0, marks 0, hostile 0, jitter 0, late 6031212, dies -1 at "
    "0\n"
    "  job at 0, leafs 000, 1185 of 8 in place, 12 of 8, 40 of 2, 2998 of 8\n"
    "memory 1: 1 leafs, 1 jobs, keys 50 3, payload 1012, window 256, buffers 256, 100 Gb/s, "
    "latency 895782, memory 4659\n"
    "  loss 0, duplication 0, reordering 0, marks 0, hostile 0, jitter 491651, late 7866416, dies "
    "-1 at 0\n"
    "  job at 0, leafs 0000, 2137 of 8, 1409 of 2, 3 of 8, 3 of 8 in place\n"
    "memory 2: 3 leafs, 1 jobs, keys 50 3, payload 256, window 128, buffers 16, 100 Gb/s, latency "
    "173480, memory 350985\n"
    "  loss 0, duplication 0, reordering 0, marks 0, hostile 0, jitter 0, late 3208320, dies -1 at "
    "0\n"
    "  job at 0, leafs 01201, 271 of 2, 60 of 2 in place, 61 of 2\n"
    "hostile 1: 1 leafs, 1 jobs, keys 50 3, payload 256, window 16, buffers 8, 100 Gb/s, latency "
    "628353, memory 67108864\n"
    "  loss 24064, duplication 3433, reordering 307, marks 49520, hostile 255336, jitter 0, late "
    "5243144, dies -1 at 0\n"
    "  job at 0, leafs 00000000000, 4 of 8, 128 of 8, 3 of 8\n"
    "hostile 2: 4 leafs, 1 jobs, keys 50 2 any, payload 1024, window 32, buffers 64, 400 Gb/s, "
    "latency 238869, memory 67108864\n"
    "  loss 25362, duplication 46355, reordering 42892, marks 29157, hostile 289519, jitter "
    "260989, late 2087912, dies -1 at 0\n"
    "  job at 0, leafs 00123, 5035 of 8, 2 of 2, 4 of 2, 105 of 8\n"
    "versions 1: 3 leafs, 1 jobs, keys 50 3, payload 4064, window 16, buffers 4, 400 Gb/s, latency "
    "354807, memory 67108864\n"
    "  loss 0, duplication 0, reordering 0, marks 0, hostile 0, jitter 437727, late 5252724, dies "
    "-1 at 0\n"
    "  job at 0, leafs 00001111222, 20431 of 8, 8386 of 8 in place\n"
    "versions 2: 3 leafs, 1 jobs, keys 50 3, payload 4064, window 256, buffers 64, 400 Gb/s, "
    "latency 700708, memory 67108864\n"
    "  loss 0, duplication 0, reordering 0, marks 0, hostile 0, jitter 0, late 3134512, dies -1 at "
    "0\n"
    "  job at 0, leafs 012, 7105 of 8 in place\n"
    "keys 1: 1 leafs, 1 jobs, keys 50 3, payload 256, window 256, buffers 4, 100 Gb/s, latency "
    "686004, memory 67108864\n"
    "  loss 0, duplication 0, reordering 0, marks 0, hostile 0, jitter 0, late 4278264, dies -1 at "
    "0\n"
    "  job at 0, leafs 00000, 500 of 2, 32 of 8, 2714 of 8, 141 of 8\n"
    "keys 2: 1 leafs, 1 jobs, keys 100 3 any, payload 256, window 256, buffers 16, 400 Gb/s, "
    "latency 793740, memory 67108864\n"
    "  loss 0, duplication 0, reordering 0, marks 0, hostile 0, jitter 400250, late 3202000, dies "
    "-1 at 0\n"
    "  job at 0, leafs 00, 150 of 2\n"
    "keys 3: 1 leafs, 1 jobs, keys 50 3, payload 256, window 256, buffers 128, 400 Gb/s, latency "
    "976910, memory 67108864\n"
    "  loss 0, duplication 0, reordering 0, marks 0, hostile 0, jitter 491835, late 1967340, dies "
    "-1 at 0\n"
    "  job at 0, leafs 00, 16 of 8, 2629 of 8 in place, 183 of 2, 4465 of 2\n"
    "keys 4: 1 leafs, 1 jobs, keys 50 2 any, payload 256, window 256, buffers 32, 400 Gb/s, "
    "latency 744410, memory 67108864\n"
    "  loss 0, duplication 0, reordering 0, marks 0, hostile 0, jitter 0, late 3004680, dies -1 at "
    "0\n"
    "  job at 0, leafs 00, 145 of 8 in place, 35 of 8, 187 of 8 in place, 1448 of 8 in place\n"
    "keys 5: 1 leafs, 1 jobs, keys 50 3, payload 256, window 256, buffers 4, 100 Gb/s, latency "
    "291014, memory 67108864\n"
    "  loss 0, duplication 0, reordering 0, marks 0, hostile 0, jitter 159027, late 2544432, dies "
    "-1 at 0\n"
    "  job at 0, leafs 0000, 39 of 8, 4913 of 8 in place, 8127 of 2, 6 of 2 in place\n"
    "keys 6: 1 leafs, 1 jobs, keys 50 3 any, payload 256, window 256, buffers 256, 100 Gb/s, "
    "latency 536075, memory 67108864\n"
    "  loss 0, duplication 0, reordering 0, marks 0, hostile 0, jitter 0, late 2252460, dies -1 at "
    "0\n"
    "  job at 0, leafs 0000, 128 of 8, 61 of 2, 3686 of 8, 4 of 8 in place\n";

/* Seeds of each property, with keys and without. */
static void seeds_are_these_cases(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    (void)state;
    for (unsigned p = 0; p < PROPERTIES; p++)
        for (uint64_t seed = 1; seed < (p == P_KEYS ? 7 : 3); seed++) {
            struct check_case c;

            assert_int_equal(case_draw(&c, seed % 2 ? &plain : &keyed, usual, p, seed), 0);
            assert_ptr_equal(c.protocol, seed % 2 ? &plain : &keyed);
            print(to, &c);
        }
    fclose(to);
    if (strcmp(text, expected))
        fputs(text, stdout);
    assert_string_equal(text, expected);
    free(text);
}

static void properties_have_names(void **state)
{
    static const char *const names[] = {"exactness", "loss",    "duplication", "reordering",
                                        "jobs",      "leaks",   "determinism", "work",
                                        "memory",    "hostile", "versions",    "keys"};

    (void)state;
    for (unsigned p = 0; p < PROPERTIES; p++)
        assert_string_equal(property_name(p), names[p]);
    assert_null(property_name(PROPERTIES));
}

static void no_type_is_no_case(void **state)
{
    struct check_case c;

    (void)state;
    assert_int_equal(case_draw(&c, &none, usual, P_EXACT, 1), -ENOTSUP);
    assert_int_equal(c.job[0].op[0].count, 0);
}

/* Every type and reduction that a protocol may support is found, whichever is tried first. */
static enum trib_type only_type;
static enum trib_sum only_op;

static bool only(enum trib_type type, enum trib_sum op)
{
    assert_true(type < TRIB_TYPES && op < TRIB_REDUCTIONS);
    return type == only_type && op == only_op;
}

static void the_only_type_is_found(void **state)
{
    static const struct trib_protocol p = {.name = "only", .supports = only};
    struct check_case c;

    (void)state;
    for (unsigned k = 0; k < TRIB_TYPES * TRIB_REDUCTIONS; k++) {
        only_type = k / TRIB_REDUCTIONS, only_op = k % TRIB_REDUCTIONS;
        for (uint64_t seed = 1; seed < 4; seed++) {
            assert_int_equal(case_draw(&c, &p, usual, P_EXACT, seed), 0);
            assert_true(c.job[0].op[0].type == only_type && c.job[0].op[0].op == only_op);
        }
    }
}

/* ---- ranges ---- */

struct range {
    uint64_t least, most;
};

static void seen(struct range *r, uint64_t x)
{
    r->least = x < r->least ? x : r->least;
    r->most = x > r->most ? x : r->most;
}

static void assert_range(const struct range *r, uint64_t least, uint64_t most)
{
    if (r->least != least || r->most != most)
        printf("%" PRIu64 " to %" PRIu64 ", expected %" PRIu64 " to %" PRIu64 "\n", r->least,
               r->most, least, most);
    assert_true(r->least == least && r->most == most);
}

#define NONE                                                                                       \
    {                                                                                              \
        UINT64_MAX, 0                                                                              \
    }

/* Of small ranges both ends are drawn by some of 2,000 seeds. */
static void both_ends_are_drawn(void **state)
{
    struct range leafs = NONE, jobs = NONE, payload = NONE, window = NONE, buffers = NONE,
                 ranks = NONE, ops = NONE, rate = NONE, low = NONE, near = NONE;

    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        struct check_case c;

        assert_int_equal(case_draw(&c, &keyed, usual, P_JOBS, seed), 0);
        seen(&leafs, c.n_leafs), seen(&jobs, c.n_jobs);
        seen(&payload, c.payload), seen(&window, c.window), seen(&buffers, c.buffers);
        seen(&rate, c.rate_bps);
        seen(&ranks, c.job[0].nranks), seen(&ops, c.job[0].n_ops);
        if (c.key[0] != 50)
            seen(&low, (uint64_t)c.key[0]);
        seen(&near, (uint64_t)c.key[1]);
        assert_true(c.latency_ps >= 100000 && c.latency_ps <= 1000000);
        for (unsigned j = 0; j < c.n_jobs; j++)
            for (unsigned r = 0; r < c.job[j].nranks; r++)
                assert_true(c.job[j].leaf[r] < c.n_leafs);
        for (unsigned i = 0; i < c.job[0].n_ops; i++)
            assert_true(c.job[0].op[i].count && (!c.any_key || c.job[0].op[i].count <= 20000));
    }
    assert_range(&leafs, 1, 4);
    assert_range(&jobs, 2, 4);
    assert_range(&payload, 256, 4064);
    assert_range(&window, 16, 256);
    assert_range(&buffers, 4, 256);
    assert_range(&ranks, 2, 12);
    assert_range(&ops, 1, 4);
    assert_range(&rate, 100000000000, 400000000000);
    assert_range(&low, 1, 4);
    assert_range(&near, 2, 4); /* 2 to 5, and no more than its most */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seeds_are_these_cases), cmocka_unit_test(properties_have_names),
        cmocka_unit_test(no_type_is_no_case),    cmocka_unit_test(the_only_type_is_found),
        cmocka_unit_test(both_ends_are_drawn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
