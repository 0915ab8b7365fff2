/* SPDX-License-Identifier: BSD-3-Clause */
/* Which results a row's sampled elements may have, and when they are worked out again. */
#include "host/bench/sampled.h"

#include "tests/fabric/load.h"

#include <errno.h>
#include <stdlib.h>

#define RANKS 4u
#define COUNT 100u

static const uint16_t hosts[RANKS] = {0, 1, 2, 3};
static struct fabric *fab;
static uint16_t trees[2] = {0, 1};
static struct expected_job job;
static struct sampled s;

static void begin(const char *text)
{
    fab = text ? load_text(text) : load_file("conf/leaf-spine-8.conf");
    job = (struct expected_job){.fab = fab,
                                .nranks = RANKS,
                                .host_of_rank = hosts,
                                .n_trees = fab->n_trees < 2 ? fab->n_trees : 2,
                                .tree = trees,
                                .n_rail_trees = 1,
                                .rail_tree = trees};
    s = (struct sampled){0};
}

static void end(void)
{
    sampled_free(&s);
    assert_null(s.want);
    assert_null(s.given);
    fabric_free(fab);
}

static struct row row_of(enum coll_algo algo)
{
    return (struct row){.coll = COLL_ALLREDUCE,
                        .algo = algo,
                        .type = DT_FP16,
                        .op = OP_SUM,
                        .nranks = RANKS,
                        .count = COUNT};
}

static int set(const struct perf_opts *o, const struct row *r, enum coll_algo by, bool cut)
{
    const struct layout l = {
        .kind = r->coll, .nranks = r->nranks, .root = r->root, .count = r->count};

    return sampled_set(&s, &job, o, r, &l, by, cut);
}

/* The ways are, in order, those of these algorithms, and the repair of one by SHARP. */
static void expect_ways(const struct row *r, const int *algos, unsigned n)
{
    static uint8_t want[SAMPLES_MAX * 8];
    size_t each = (size_t)s.at.n * dtype_size(r->type);

    assert_int_equal(s.ways, n);
    assert_int_equal(sampled_bytes(&s), n * each);
    for (unsigned i = 0; i < n; i++) {
        struct coll_args a = row_args(r);

        a.algo = algos[i] < 0 ? ALGO_SHARP : (enum coll_algo)algos[i];
        assert_int_equal(expected_values(&job, &a, false, algos[i] < 0, &s.at, want), 0);
        assert_memory_equal(s.want + i * each, want, each);
    }
}

#define REPAIR (-1)

static void a_row_has_one_result_unless_a_failover_cut_it(void **state)
{
    static const struct {
        enum coll_algo algo, by;
        bool cut;
        unsigned n_policy;
        enum coll_algo policy[3];
        unsigned ways;
        int algos[4];
    } rows[] = {
        {ALGO_RING, ALGO_RING, false, 0, {0}, 1, {ALGO_RING}},
        {ALGO_SHARP, ALGO_SHARP, false, 0, {0}, 1, {ALGO_SHARP}},
        /* what has replaced it: SHARP, ring and the chain that finishes SHARP's */
        {ALGO_SHARP, ALGO_RING, true, 0, {0}, 3, {ALGO_RING, ALGO_SHARP, REPAIR}},
        {ALGO_SHARP, ALGO_SHARP, true, 0, {0}, 3, {ALGO_SHARP, ALGO_RING, REPAIR}},
        {ALGO_TREE, ALGO_TREE, true, 0, {0}, 4, {ALGO_TREE, ALGO_RING, ALGO_SHARP, REPAIR}},
        /* a policy's instead */
        {ALGO_RING, ALGO_RING, true, 1, {ALGO_RING}, 1, {ALGO_RING}},
        {ALGO_RING, ALGO_RING, true, 1, {ALGO_TREE}, 2, {ALGO_RING, ALGO_TREE}},
        {ALGO_RING,
         ALGO_TREE,
         true,
         2,
         {ALGO_SHARP, ALGO_TREE},
         4,
         {ALGO_TREE, ALGO_RING, ALGO_SHARP, REPAIR}},
        /* an algorithm that the collective does not have is none */
        {ALGO_RING, ALGO_RING, true, 1, {ALGO_PAIRWISE}, 1, {ALGO_RING}},
        {ALGO_RING, ALGO_RING, true, 1, {ALGO_NVLS}, 1, {ALGO_RING}},
    };

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        struct perf_opts o = {.n_policy = rows[i].n_policy};
        struct row r = row_of(rows[i].algo);

        begin(NULL);
        memcpy(o.policy, rows[i].policy, sizeof(rows[i].policy));
        assert_int_equal(set(&o, &r, rows[i].by, rows[i].cut), 0);
        expect_ways(&r, rows[i].algos, rows[i].ways);
        assert_int_equal(s.at.n, COUNT);
        end();
    }
}

static void where_no_result_is_right_there_are_no_samples(void **state)
{
    static const struct {
        enum coll_kind kind;
        int by;           /* negative: of a protocol */
        bool cut, policy; /* one of a protocol */
        unsigned ways;
    } rows[] = {
        {COLL_BROADCAST, ALGO_RING, false, false, 0}, {COLL_ALLREDUCE, -1, false, false, 0},
        {COLL_ALLREDUCE, ALGO_RING, true, true, 0},   {COLL_ALLREDUCE, ALGO_RING, false, true, 1},
        {COLL_REDUCE, ALGO_RING, false, false, 1},
    };
    const enum coll_algo ps = (enum coll_algo)(ALGO_PROTOCOL + proto_seat("ps"));

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        struct perf_opts o = {.n_policy = rows[i].policy, .policy = {ps}};
        struct row r = row_of(rows[i].by < 0 ? ps : (enum coll_algo)rows[i].by);

        begin(NULL);
        r.coll = rows[i].kind;
        assert_int_equal(set(&o, &r, r.algo, rows[i].cut), 0);
        assert_int_equal(s.ways, rows[i].ways);
        end();
    }
    begin(NULL); /* a protocol's row that another algorithm has gone on with */
    assert_int_equal(set(&(struct perf_opts){0},
                         &(struct row){.coll = COLL_ALLREDUCE,
                                       .algo = ps,
                                       .type = DT_FP16,
                                       .nranks = RANKS,
                                       .count = COUNT},
                         ALGO_RING, true),
                     0);
    assert_int_equal(s.ways, 0);
    end();
    begin(LINKS "single_switch = { hosts = 4; };\nreduce = { order = \"arrival\"; };\n");
    assert_int_equal(set(&(struct perf_opts){0},
                         &(struct row){.coll = COLL_ALLREDUCE,
                                       .algo = ALGO_SHARP,
                                       .type = DT_FP16,
                                       .nranks = RANKS,
                                       .count = COUNT},
                         ALGO_SHARP, false),
                     0);
    assert_int_equal(s.ways, 0);
    end();
}

/* ---- kept, and worked out again ---- */

static bool is_kept(const struct row *r, enum coll_algo by, bool cut)
{
    const struct perf_opts o = {0};
    uint8_t was = s.want[0];

    s.want[0] ^= 0xff;
    assert_int_equal(set(&o, r, by, cut), 0);
    if (s.want[0] == was)
        return false;
    s.want[0] = was;
    return true;
}

static void results_stay_for_the_same_row(void **state)
{
    const struct perf_opts o = {0};
    struct row r;

    (void)state;
    for (unsigned change = 0; change < 9; change++) {
        enum coll_algo by = ALGO_RING;
        bool cut = false;

        begin(NULL);
        r = row_of(ALGO_RING);
        r.coll = COLL_REDUCE;
        assert_int_equal(set(&o, &r, by, cut), 0);
        assert_int_equal(s.ways, 1);
        assert_true(is_kept(&r, by, cut));
        if (change == 0)
            r.coll = COLL_ALLREDUCE;
        else if (change == 1)
            r.type = DT_BF16;
        else if (change == 2)
            r.op = OP_AVG;
        else if (change == 3)
            r.count--;
        else if (change == 4)
            r.root = 1;
        else if (change == 5)
            r.mm_self = true;
        else if (change == 6)
            by = ALGO_TREE;
        else if (change == 7)
            cut = true;
        else
            job.n_trees = 1;
        s.want[1] ^= 0xff;
        uint8_t first[2] = {s.want[0], s.want[1]};

        assert_int_equal(set(&o, &r, by, cut), 0);
        if (memcmp(first, s.want, 2) == 0)
            fail_msg("change %u was not seen", change);
        assert_true(is_kept(&r, by, cut));
        end();
    }
    begin(NULL); /* other trees, as many */
    r = row_of(ALGO_SHARP);
    assert_int_equal(set(&o, &r, ALGO_SHARP, false), 0);
    trees[0] = 1, trees[1] = 0;
    assert_false(is_kept(&r, ALGO_SHARP, false));
    trees[0] = 0, trees[1] = 1;
    end();
}

static bool stop(void *ctx)
{
    return *(bool *)ctx;
}

static void what_was_stopped_is_worked_out_when_it_is_asked_for_again(void **state)
{
    const struct perf_opts o = {0};
    const struct row r = row_of(ALGO_RING);
    bool stops = true;

    (void)state;
    begin(NULL);
    job.stop = stop, job.stop_ctx = &stops;
    assert_int_equal(set(&o, &r, ALGO_RING, false), -ECANCELED);
    assert_int_equal(s.ways, 0);
    stops = false;
    assert_int_equal(set(&o, &r, ALGO_RING, false), 0);
    assert_int_equal(s.ways, 1);
    end();
}

/* What ranks give at the samples, by rank; a smaller row's are in the same memory. */
static void contributions_are_kept_by_rank(void **state)
{
    static const unsigned counts[] = {COUNT, COUNT / 2, 2 * COUNT};
    const struct perf_opts o = {0};
    size_t room = 0;

    (void)state;
    begin(NULL);
    for (size_t i = 0; i < LEN(counts); i++) {
        struct row r = row_of(ALGO_RING);
        const uint8_t *at;

        r.count = counts[i];
        assert_int_equal(set(&o, &r, ALGO_RING, false), 0);
        assert_int_equal(s.at.n, counts[i]);
        room = counts[i] * RANKS * 2 > room ? counts[i] * RANKS * 2 : room;
        assert_int_equal(s.given_bytes, room);
        at = s.given;
        for (unsigned rank = 0; rank < RANKS; rank++)
            for (unsigned k = 0; k < s.at.n; k++, at += 2) {
                uint64_t x = samples_value(r.type, r.op, RANKS, rank, s.at.at[k]);

                assert_memory_equal(at, &x, 2);
            }
    }
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_has_one_result_unless_a_failover_cut_it),
        cmocka_unit_test(where_no_result_is_right_there_are_no_samples),
        cmocka_unit_test(results_stay_for_the_same_row),
        cmocka_unit_test(what_was_stopped_is_worked_out_when_it_is_asked_for_again),
        cmocka_unit_test(contributions_are_kept_by_rank),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
