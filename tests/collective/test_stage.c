/* SPDX-License-Identifier: BSD-3-Clause */
/* Schedules for GPU memory: messages touch host memory only, and results equal those of the
 * original schedules. */
#include "tests/collective/sched_row.h"

static const uint64_t counts[] = {0, 1, 17, 1009, 60013, 600011};
static const unsigned ranks[] = {1, 2, 3, 5, 8};
static const struct shape shapes[] = {{.trees = 2},
                                      {.domain = 16, .planes = 4, .trees = 1},
                                      {.domain = 2, .planes = 1, .trees = 1, .deal = true}};

static void every_algorithm_but_multimem_gives_the_plain_result(void **state)
{
    unsigned done[ALGO_USUAL] = {0};

    (void)state;
    for (unsigned i = 0; i < COLL_KINDS * ALGO_USUAL * 2 * 3 * 5 * 6; i++) {
        unsigned x = i, k = x % COLL_KINDS, a = (x /= COLL_KINDS) % ALGO_USUAL,
                 place = (x /= ALGO_USUAL) % 2, s = (x /= 2) % 3, n = (x /= 3) % 5, c = x / 5;
        struct row w = {.kind = k,
                        .algo = a,
                        .type = DT_INT32,
                        .op = i % 3 ? OP_SUM : OP_AVG,
                        .in_place = place,
                        .staged = true,
                        .reached = (i / 7) % 2,
                        .mtu = 1024,
                        .n = ranks[n],
                        .count = k == COLL_BARRIER ? 0 : counts[c],
                        .root = (c + i) % ranks[n],
                        .shape = shapes[s]};

        if (!sched_has(k, a) || (place && (k == COLL_ALLTOALL || k == COLL_SENDRECV)) ||
            (c == 5 && (n == 4 || place)))
            continue;
        if (w.op == OP_AVG && a != ALGO_SHARP)
            w.op = OP_SUM; /* of integers each partial division would round */
        done[a] += !run_row(&w, i, &box);
    }
    for (unsigned a = 0; a < ALGO_USUAL; a++)
        if (a != ALGO_NVLS && a != ALGO_NVLS_SHARP)
            assert_true(done[a] > 20);
}

static void floats_are_averaged_once(void **state)
{
    static const enum coll_algo algo[] = {ALGO_RING, ALGO_SHARP, ALGO_TREE, ALGO_HALVING};

    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        struct row w = {.kind = COLL_ALLREDUCE,
                        .algo = algo[i / 2],
                        .n = 4,
                        .count = 30011,
                        .type = DT_FP64,
                        .op = OP_AVG,
                        .in_place = i % 2,
                        .staged = true,
                        .mtu = 4096,
                        .shape = {.trees = 1}};

        assert_int_equal(run_row(&w, i, &box), 0);
    }
}

/* A ring's sums are sent from the reduction's stage buffer, its results are copied up; a reduced
 * message is copied up once. */
static void sums_go_up_as_they_are_made(void **state)
{
    struct sched_in in = {.kind = COLL_ALLREDUCE,
                          .algo = ALGO_RING,
                          .nranks = 4,
                          .count = 1 << 20,
                          .type = DT_FP32,
                          .mtu = 4096};
    unsigned sums = 0, hints = 0;
    struct sched s;

    (void)state;
    assert_int_equal(sched_init(&s, &in), 0);
    assert_int_equal(sched_stage(&s, false), 0);
    for (unsigned l = 0; l < s.n_lanes; l++)
        for (uint64_t i = 0; s.lane[l].kind == LANE_CPU && i < s.lane[l].n; i++) {
            const struct step *st = lane_step(&s.lane[l], i), *up;
            struct stage_hint h;

            sums += st->op == STEP_REDUCE;
            if (!stage_hint(&s, st, &h))
                continue;
            hints++;
            up = lane_step(&s.lane[h.up], h.step);
            assert_true(up->op == STEP_COPY && up->a.buf == st->dst.buf &&
                        up->a.off == st->dst.off && up->len == st->len);
            assert_true(up->dst.buf == BUF_STAGE && up->dst.off == h.off);
            assert_true(s.lane[h.send].kind == LANE_SEND && h.free_from <= h.step);
        }
    assert_true(sums > 0 && hints == sums); /* also the last: the all-gather sends it on */
    sched_free(&s);
    assert_int_equal(sched_init(&s, &in), 0);
    assert_int_equal(sched_stage(&s, true), 0);
    for (unsigned l = 0; l < s.n_lanes; l++)
        for (uint64_t i = 0; i < s.lane[l].n; i++)
            assert_false(stage_hint(&s, lane_step(&s.lane[l], i), &(struct stage_hint){0}));
    sched_free(&s);
}

static void multimem_is_refused(void **state)
{
    struct row w = {.kind = COLL_ALLREDUCE,
                    .algo = ALGO_NVLS,
                    .n = 4,
                    .count = 1000,
                    .type = DT_FP32,
                    .mtu = 1024,
                    .staged = true,
                    .shape = {.domain = 4, .planes = 4, .trees = 1}};

    (void)state;
    assert_int_equal(run_row(&w, 1, &box), -ENOTSUP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_but_multimem_gives_the_plain_result),
        cmocka_unit_test(floats_are_averaged_once),
        cmocka_unit_test(sums_go_up_as_they_are_made),
        cmocka_unit_test(multimem_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
