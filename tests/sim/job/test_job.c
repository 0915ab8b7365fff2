/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of a job: their times (tests/sim/job/expected/), how late ranks start, and that whatever is
 * changed in a buffer is found. */
#include "collective/sched.h"
#include "sim/job/sim_job_priv.h"
#include "tests/sim/one_job.h"
#include "tests/support/eal.h"
#include "tests/support/expected.h"

#include <errno.h>
#include <inttypes.h>

#define NRANKS 4u
#define COUNT  3000u
#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static struct rte_mempool *pool;
static const uint16_t hosts[NRANKS] = {0, 1, 2, 3};

static void up(struct one_job *b, size_t buffer_bytes)
{
    one_job_up(b, "conf/single-switch-4.conf", pool,
               (struct job_cfg){.nranks = NRANKS,
                                .host_of_rank = hosts,
                                .algos = 1u << ALGO_RING | 1u << ALGO_SHARP | 1u << ALGO_DIRECT |
                                         1u << ALGO_HALVING | 1u << ALGO_TREE,
                                .window = 16,
                                .buffer_bytes = buffer_bytes,
                                .limit_ps = PS_PER_S});
}

static struct job_op op_of(enum coll_kind kind, enum coll_algo algo)
{
    return (struct job_op){
        .kind = kind, .algo = algo, .type = DT_INT32, .op = OP_SUM, .count = COUNT, .seed = 9};
}

static void print_op(struct job *j, const struct job_op *op, FILE *out)
{
    struct job_result res;
    int rc = job_run(j, op, &res);

    fprintf(out,
            "%s by %s%s, skew %" PRId64 ", late %u: %d, %" PRId64 " ps, %" PRIu64 " wrong, "
            "%d failed, %d unnamed, %d dead; %s\n",
            coll_name(op->kind), sched_algo_name(op->algo), op->in_place ? " in place" : "",
            op->skew_ps, op->late, rc, res.time_ps, res.wrong, res.failed_ranks, res.unnamed,
            res.dead_ranks, res.text);
    for (unsigned r = 0; r < NRANKS; r++)
        fprintf(out, " %" PRId64 "..%" PRId64, j->mem[r].start_ps, j->mem[r].end_ps);
    fputc('\n', out);
}

static void operations_take_what_they_took(void **state)
{
    static const struct {
        enum coll_kind kind;
        enum coll_algo algo;
    } rows[] = {{COLL_ALLREDUCE, ALGO_RING},      {COLL_ALLREDUCE, ALGO_SHARP},
                {COLL_ALLREDUCE, ALGO_HALVING},   {COLL_REDUCE, ALGO_TREE},
                {COLL_BROADCAST, ALGO_TREE},      {COLL_ALLGATHER, ALGO_RING},
                {COLL_REDUCE_SCATTER, ALGO_RING}, {COLL_ALLTOALL, ALGO_DIRECT},
                {COLL_GATHER, ALGO_DIRECT},       {COLL_SCATTER, ALGO_DIRECT},
                {COLL_BARRIER, ALGO_HALVING},     {COLL_ALLREDUCE, ALGO_NVLS}};
    struct expected e;
    struct one_job b;

    (void)state;
    up(&b, COUNT * 4 * NRANKS + 64);
    expected_begin(&e);
    for (unsigned i = 0; i < LEN(rows); i++)
        for (unsigned k = 0; k < 4; k++) {
            struct job_op op = op_of(rows[i].kind, rows[i].algo);

            op.count = op.kind == COLL_BARRIER ? 0 : COUNT - k;
            op.in_place = k == 1 && op.kind != COLL_BARRIER && op.kind != COLL_ALLTOALL;
            op.root = rows[i].kind == COLL_REDUCE || rows[i].kind == COLL_GATHER ? k : 0;
            op.skew_ps = k < 2 ? 0 : 3 * PS_PER_US;
            op.late = k == 3 ? 2 : 0;
            op.seed += k;
            print_op(b.j, &op, e.out);
        }
    expected_same(&e, "tests/sim/job/expected/operations");
    one_job_down(&b);
}

/* ---- what the check sees ---- */

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

/* Wrong elements after a change of the job's buffers, once all data has come. */
static uint64_t wrong_after(struct job *j, const struct job_op *op, void (*change)(struct job *j))
{
    struct job_result res;

    assert_int_equal(job_start(j, op, &res), 0);
    job_drive(j, world_now(j->cfg.w) + PS_PER_MS, never, NULL);
    change(j);
    assert_int_equal(job_finish(j, &res), 0);
    assert_int_equal(res.failed_ranks, 0);
    return res.wrong;
}

static void nothing(struct job *j)
{
    (void)j;
}

static void first_result(struct job *j)
{
    j->mem[2].recv[0] ^= 1;
}

static void last_result(struct job *j)
{
    j->mem[3].recv[COUNT * 4 - 1] ^= 1;
}

static void behind_the_result(struct job *j)
{
    j->mem[0].recv[COUNT * 4] ^= 1;
}

static void end_of_the_buffer(struct job *j)
{
    j->mem[0].out[j->bytes - 1] ^= 1;
}

static void an_input(struct job *j)
{
    j->mem[1].send[COUNT * 4 - 1] ^= 1;
}

static void three_ranks(struct job *j)
{
    first_result(j);
    last_result(j);
    an_input(j);
}

static void each_change_of_a_buffer_is_counted(void **state)
{
    static const struct {
        void (*change)(struct job *j);
        uint64_t wrong;
    } rows[] = {{nothing, 0},           {first_result, 1}, {last_result, 1}, {behind_the_result, 1},
                {end_of_the_buffer, 1}, {an_input, 1},     {three_ranks, 3}};
    const struct job_op op = op_of(COLL_ALLREDUCE, ALGO_RING);
    struct job_op in_place = op;
    struct one_job b;

    (void)state;
    in_place.in_place = true;
    up(&b, 0);
    for (unsigned i = 0; i < LEN(rows); i++)
        assert_int_equal(wrong_after(b.j, &op, rows[i].change), rows[i].wrong);
    assert_int_equal(wrong_after(b.j, &in_place, first_result), 1);
    assert_int_equal(wrong_after(b.j, &in_place, nothing), 0);
    one_job_down(&b);
}

/* Rank 1 has entered last. */
static void ended_at(struct job *j, unsigned r, int64_t end_ps)
{
    struct member *m = &j->mem[r];

    assert_int_equal(coll_test(m->req), 1);
    m->ended = true;
    m->end_ps = end_ps;
}

static void one_leaves_early(struct job *j)
{
    ended_at(j, 0, j->mem[1].start_ps - 1);
    ended_at(j, 2, j->mem[1].start_ps);
}

static void two_leave_early(struct job *j)
{
    ended_at(j, 0, j->mem[1].start_ps - 1);
    ended_at(j, 3, j->mem[3].start_ps);
}

static void who_leaves_a_barrier_too_early_is_counted(void **state)
{
    struct job_op op = op_of(COLL_BARRIER, ALGO_HALVING), other = op_of(COLL_ALLREDUCE, ALGO_RING);
    struct one_job b;

    (void)state;
    op.count = 0;
    op.late = other.late = 2;
    op.skew_ps = other.skew_ps = 5 * PS_PER_US;
    up(&b, COUNT * 4 + 64);
    assert_int_equal(wrong_after(b.j, &op, nothing), 0);
    assert_int_equal(wrong_after(b.j, &op, one_leaves_early), 1);
    assert_int_equal(wrong_after(b.j, &op, two_leave_early), 2);
    assert_int_equal(wrong_after(b.j, &other, one_leaves_early), 0); /* of others it is not asked */
    one_job_down(&b);
}

/* ---- buffers ---- */

/* 64 bytes more than the longest vector: of one rank's data where each rank has all of it, else of all. */
static void buffers_have_room_for_the_largest_vector(void **state)
{
    static const struct {
        enum coll_kind kind;
        enum coll_algo algo;
        size_t ranks;
    } rows[] = {{COLL_ALLREDUCE, ALGO_RING, 1},           {COLL_REDUCE, ALGO_TREE, 1},
                {COLL_BROADCAST, ALGO_TREE, 1},           {COLL_ALLGATHER, ALGO_RING, NRANKS},
                {COLL_REDUCE_SCATTER, ALGO_RING, NRANKS}, {COLL_ALLTOALL, ALGO_DIRECT, NRANKS}};

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        const size_t bytes = COUNT * 4 * rows[i].ranks + 64;
        struct job_op op = op_of(rows[i].kind, rows[i].algo);
        struct job_result res;
        struct one_job b;

        up(&b, 0);
        assert_int_equal(job_run(b.j, &op, &res), 0);
        assert_int_equal(b.j->bytes, bytes);
        op.count++;
        assert_int_equal(job_run(b.j, &op, &res), -EFBIG);
        one_job_down(&b);
        up(&b, bytes + 4);
        op.count--;
        assert_int_equal(job_run(b.j, &op, &res), 0);
        assert_int_equal(b.j->bytes, bytes + 4);
        one_job_down(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_take_what_they_took),
        cmocka_unit_test(each_change_of_a_buffer_is_counted),
        cmocka_unit_test(who_leaves_a_barrier_too_early_is_counted),
        cmocka_unit_test(buffers_have_room_for_the_largest_vector),
    };

    test_eal_init();
    pool = test_pool(16384);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
