/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole measurements of collectives (tests/sim/step/expected/): alone, in groups that share links, longer
 * and larger than what is simulated, where switches refuse, and over paths by hash. */
#include "sim/step/step_groups.h"
#include "tests/sim/step/step_bed.h"
#include "tests/support/expected.h"

#define KIB (1ull << 10)
#define MIB (1ull << 20)

static void print_timing(const struct step_timing *t, const char *method, FILE *out)
{
    fprintf(out, "  %s by %s: %.9g s, %.9g at most, bound %.9g; %lu bytes%s%s%s", method,
            sched_algo_name(t->algo), t->s, t->high_s, t->bound_s, (unsigned long)t->bytes,
            t->extrapolated_bytes ? ", longer" : "", t->extrapolated_ranks ? ", larger" : "",
            t->shared ? ", shared" : "");
    if (t->fell_back)
        fprintf(out, "; %u fell back: %s", t->fell_back, t->why);
    fputc('\n', out);
}

static void print_measured(const struct fabric *f, struct step_collective *u, unsigned n, FILE *out)
{
    char err[COMM_TEXT];

    if (step_measure(f, u, n, pool, SEED, &go_on, err)) {
        fprintf(out, "%s\n", err);
        return;
    }
    for (unsigned i = 0; i < n; i++) {
        fprintf(out, "%s%s: %s of %lu bytes, %u by %lu, %u ranks, %u groups from",
                roof_kind_name(u[i].kind), u[i].experts ? " (experts)" : "", coll_name(u[i].coll),
                (unsigned long)u[i].bytes, u[i].degree, (unsigned long)u[i].stride, u[i].ranks,
                u[i].groups);
        for (unsigned g = 0; g < u[i].groups; g++)
            fprintf(out, " %u", u[i].first[g]);
        fputc('\n', out);
        for (unsigned m = 0; m < STEP_METHODS; m++)
            print_timing(&u[i].timing[m], methods[m], out);
    }
}

/* All that a small step has, with experts and without. */
static void steps_are_measured_as_they_were(void **state)
{
    char err[COMM_TEXT];
    struct expected e;
    struct bed b;

    (void)state;
    expected_begin(&e);
    for (unsigned i = 0; i < 4; i++) {
        open_bed(&b, i & 1 ? "reduce = { };" : "");
        if (i & 2)
            with_experts(&b);
        b.n = step_collectives(&b.w, b.u);
        assert_int_equal(step_name_algorithms(&b.w, b.u, b.n, err), 0);
        for (unsigned k = 0; i & 1 && k < b.n; k++)
            b.u[k].named = ALGO_AUTO;
        print_measured(b.f, b.u, b.n, e.out);
        close_bed(&b);
    }
    expected_same(&e, "tests/sim/step/expected/steps");
}

/* Leaves of four hosts below a spine by a quarter of their rate. */
static struct fabric *leaves(unsigned n, const char *ecmp)
{
    char text[512];

    snprintf(text, sizeof(text),
             "name = \"x\"; mtu = 4096; ecmp = \"%s\"; reduce = { groups = 2; }; leaf_spine = { "
             "leaves = %u; "
             "spines = 2; hosts_per_leaf = 4; host_link = { rate = \"400Gb/s\"; latency = "
             "\"300ns\"; }; spine_link = { rate = \"200Gb/s\"; latency = \"300ns\"; }; };",
             ecmp, n);
    return load_text(text);
}

static void groups_that_share_links_are_measured_as_they_were(void **state)
{
    static const struct {
        enum coll_kind coll;
        uint32_t degree;
        uint64_t stride, gpus, bytes;
        enum coll_algo named;
    } rows[] = {
        {COLL_ALLREDUCE, 4, 4, 16, 256 * KIB, ALGO_AUTO},
        {COLL_ALLREDUCE, 4, 1, 16, 256 * KIB, ALGO_AUTO},
        {COLL_ALLGATHER, 4, 4, 16, 300 * KIB, ALGO_AUTO},
        {COLL_REDUCE_SCATTER, 2, 8, 16, 300 * KIB, ALGO_RING},
        {COLL_ALLTOALL, 4, 4, 16, 128 * KIB, ALGO_AUTO},
        {COLL_ALLTOALL, 16, 1, 16, 20 * MIB, ALGO_AUTO},
        {COLL_SENDRECV, 8, 2, 16, 64 * KIB, ALGO_AUTO},
        {COLL_ALLREDUCE, 32, 1, 32, 128 * KIB, ALGO_AUTO},
        {COLL_ALLREDUCE, 4, 4, 16, 256 * KIB, ALGO_SHARP},
        {COLL_ALLGATHER, 2, 1, 2, 100 * MIB, ALGO_AUTO},
    };
    static const char *const ecmp[] = {"balanced", "hash"};
    struct expected e;

    (void)state;
    expected_begin(&e);
    for (unsigned h = 0; h < 2; h++)
        for (unsigned i = 0; i < LEN(rows) - h * 4; i++) {
            struct fabric *f = leaves(4, ecmp[h]);
            struct step_collective u = {.kind = ROOF_DP,
                                        .coll = rows[i].coll,
                                        .stride = rows[i].stride,
                                        .degree = rows[i].degree,
                                        .bytes = rows[i].bytes,
                                        .times = 1,
                                        .gpus = rows[i].gpus,
                                        .named = rows[i].named};

            print_measured(f, &u, 1, e.out);
            fabric_free(f);
        }
    expected_same(&e, "tests/sim/step/expected/groups");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_measured_as_they_were),
        cmocka_unit_test(groups_that_share_links_are_measured_as_they_were),
    };

    test_eal_init();
    pool = test_pool(step_frames());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
