/* SPDX-License-Identifier: BSD-3-Clause */
/* What a run reports of a protocol that does something wrong, what it tolerates, and when it
 * stops. */
#include "tests/protocols/check/summing.h"

struct row {
    enum act act;
    int64_t by;
    const char *says; /* NULL: it does not fail */
    unsigned refused, leaked;
    uint64_t packets;
};

static void assert_row(const struct check_case *c, const struct row *row)
{
    struct fabric_result r = run_case(c, row->act, row->by, NULL);

    if (r.failed != !!row->says || r.packets != row->packets)
        printf("%d, %ld: %lu packets, %s\n", (int)row->act, (long)row->by, (unsigned long)r.packets,
               r.why);
    assert_string_equal(r.why, row->says ? row->says : "");
    assert_int_equal(r.failed, !!row->says);
    assert_int_equal(r.refused, row->refused);
    assert_int_equal(r.leaked, row->leaked);
    assert_int_equal(r.packets, row->packets);
    assert_int_equal(r.jobs, c->n_jobs);
}

#define OUTSIDE     "job 0, rank 0: a write outside of the vectors of operation 0"
#define STANDS(why) "job 0 of 3 ranks, rank 0: operation 0 of 1 elements does not end: " why

static void what_is_wrong_is_named(void **state)
{
    static const struct row rows[] = {
        {ACT_RIGHT, 0, NULL, 0, 0, 6},
        {ACT_NO_START, 95,
         "job 0, rank 1: start() of operation 0 returns -95 (Operation not supported)", 0, 0, 0},
        {ACT_NO_START, -95,
         "job 0, rank 1: start() of operation 0 returns 95 (Operation not supported)", 0, 0, 0},
        {ACT_NO_RANK, 0, "job 0: protocol summing does not start: No space left on device", 1, 0,
         0},
        {ACT_NO_JOB, 0, "job 0: job_open(): No space left on device", 1, 0, 0},
        {ACT_FAIL, 0, "job 0, rank 1: because", 0, 0, 0},
        {ACT_BREAK, 0, "job 0, rank 1: protocol summing: ends an operation that has not begun", 0,
         0, 0},
        {ACT_WRONG, 0,
         "job 0 of 3 ranks, rank 1, operation 0: element 0 of 1 is 418305431, expected 418305430",
         0, 0, 5},
        {ACT_BEFORE, 1, OUTSIDE, 0, 0, 4},
        {ACT_BEFORE, 64, OUTSIDE, 0, 0, 4},
        {ACT_BEHIND, 0, OUTSIDE, 0, 0, 4},
        {ACT_BEHIND, 63, OUTSIDE, 0, 0, 4},
        {ACT_BEFORE_SEND, 1, OUTSIDE, 0, 0, 4},
        {ACT_BEFORE_SEND, 64, OUTSIDE, 0, 0, 4},
        {ACT_BEHIND_SEND, 0, OUTSIDE, 0, 0, 4},
        {ACT_BEHIND_SEND, 63, OUTSIDE, 0, 0, 4},
        {ACT_ABORT, 1, "job 0 at switch 0: because", 0, 0, 1},
        {ACT_KEEP, 0, NULL, 0, 1, 6},
        {ACT_UNNAMED, 0, "forward() of a packet without a target: its sender names none", 0, 0, 1},
        {ACT_SLOW, 1000000, STANDS("2,000,000 events"), 0, 0, 0},
        {ACT_SLOW, 100000000, STANDS("30 s of fabric time"), 0, 0, 0},
        {ACT_SILENT, 0, STANDS("no packet is in flight and no timer is set"), 0, 0, 0},
    };
    const struct check_case c = small_case(1, 1);

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_row(&c, &rows[i]);
}

static void a_leaf_is_named_as_one(void **state)
{
    static const struct row rows[] = {
        {ACT_ABORT, 0, "job 0 at leaf 1: because", 0, 0, 1},
        {ACT_NO_JOB, 0, "job 0: job_open(): No space left on device", 1, 0, 0},
        {ACT_KEEP, 0, NULL, 0, 1, 14},
    };
    struct check_case c = small_case(2, 1);

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_row(&c, &rows[i]);
}

static void a_leak_is_the_finding_of_its_property(void **state)
{
    static const struct row row = {ACT_KEEP,
                                   0,
                                   "protocol summing: a job has ended and still has 1 slots, the "
                                   "first is slot 1 of array \"sum\" (job 0)",
                                   0,
                                   1,
                                   6};
    struct check_case c = small_case(1, 1);

    (void)state;
    c.property = P_LEAKS;
    assert_row(&c, &row);
}

/* With any keys, jobs may be refused; packets of others may end them, but break no rule. */
static void what_is_tolerated(void **state)
{
    static const struct row keys[] = {
        {ACT_NO_START, 95, NULL, 1, 0, 0},
        {ACT_NO_RANK, 0, NULL, 1, 0, 0},
        {ACT_NO_JOB, 0, NULL, 1, 0, 0},
        {ACT_FAIL, 0, NULL, 0, 0, 0},
        {ACT_ABORT, 1, NULL, 0, 0, 1},
        {ACT_ABORT, 2, "job 0 at switch 0: protocol of its own", 0, 0, 1},
        {ACT_BREAK, 0, "job 0, rank 1: protocol summing: ends an operation that has not begun", 0,
         0, 0},
        {ACT_SLOW, 1000000, NULL, 0, 0, 0},
    };
    static const struct row memory[] = {
        {ACT_NO_JOB, 0, NULL, 1, 0, 0},
        {ACT_NO_RANK, 0, NULL, 1, 0, 0},
        {ACT_FAIL, 0, "job 0, rank 1: because", 0, 0, 0},
        {ACT_NO_START, 95,
         "job 0, rank 1: start() of operation 0 returns -95 (Operation not supported)", 0, 0, 0},
    };
    struct check_case c = small_case(1, 1);

    (void)state;
    c.any_key = true;
    for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        assert_row(&c, &keys[i]);
    c.any_key = false;
    c.property = P_MEMORY;
    for (unsigned i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
        assert_row(&c, &memory[i]);
}

static void hostile_runs_need_not_end(void **state)
{
    static const struct row rows[] = {
        {ACT_SILENT, 0, NULL, 0, 0, 0},          {ACT_SLOW, 1000000, NULL, 0, 0, 0},
        {ACT_SLOW, 100000000000, NULL, 0, 0, 0}, {ACT_FAIL, 0, NULL, 0, 0, 0},
        {ACT_ABORT, 1, NULL, 0, 0, 1},           {ACT_BEFORE, 1, OUTSIDE, 0, 0, 4},
        {ACT_WRONG, 0, NULL, 0, 0, 6},
    };
    struct check_case c = small_case(1, 1);

    (void)state;
    c.hostile = 1; /* in a million: none of these packets */
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_row(&c, &rows[i]);
}

static void too_little_memory_refuses_a_job(void **state)
{
    static const struct row fits = {ACT_RIGHT, 0, NULL, 0, 0, 6};
    static const struct row refused = {ACT_RIGHT, 0, NULL, 1, 0, 0};
    struct check_case c = small_case(1, 1);

    (void)state;
    c.property = P_MEMORY;
    c.memory = 16; /* two slots of 8 */
    assert_row(&c, &fits);
    c.memory = 15;
    assert_row(&c, &refused);
}

/* A rank that dies takes its job with it, 20 round trips later; other jobs end as they would. */
static void a_dead_rank_ends_its_job(void **state)
{
    static const struct row row = {ACT_RIGHT, 0, NULL, 0, 0, 8};
    struct check_case c = small_case(1, 1);

    (void)state;
    c.n_jobs = 2;
    c.job[1] = c.job[0];
    c.job[1].start_ps = 500000000;
    c.dies = 2;
    c.dies_ps = 900000; /* before it begins: two packets of the others */
    assert_row(&c, &row);
    assert_string_equal(seen.calls, "o3.103 s1.0 s1.1 c1.0 c1.1 c1.2 j3.3 o3.103 s2.0 s2.1 s2.2 "
                                    "c2.0 c2.1 c2.2 j3.3 ");
    c.job[1].start_ps = 0; /* at the same switch */
    assert_row(&c, &row);
    assert_string_equal(seen.calls, "o3.103 o3.103 s1.0 s2.0 s1.1 s2.1 s2.2 c2.0 c2.1 c2.2 j3.3 "
                                    "c1.0 c1.1 c1.2 j3.3 ");
}

/* A round trip is two links of a switch or four of a tree, each with a packet of 256 + 82 bytes. */
static void round_trips(void **state)
{
    struct check_case c = small_case(1, 1);

    (void)state;
    assert_true(case_round_trip(&c) == 2 * (1000000 + 338 * 8 * 1000));
    c.n_leafs = 2;
    assert_true(case_round_trip(&c) == 4 * (1000000 + 338 * 8 * 1000));
    c.n_leafs = 4;
    c.rate_bps = 100000000000;
    assert_true(case_round_trip(&c) == 4 * (1000000 + 338 * 8 * 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(a_leaf_is_named_as_one),
        cmocka_unit_test(a_leak_is_the_finding_of_its_property),
        cmocka_unit_test(what_is_tolerated),
        cmocka_unit_test(hostile_runs_need_not_end),
        cmocka_unit_test(too_little_memory_refuses_a_job),
        cmocka_unit_test(a_dead_rank_ends_its_job),
        cmocka_unit_test(round_trips),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
