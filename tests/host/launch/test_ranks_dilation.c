/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The dilation of a row, where the job may choose it: which ones it asks for, by a process that has the clock
 * and notes them. What they are to be is the estimator's (host/bench/dilation_control.h).
 */
#include "tests/host/launch/far_row.h"
#include "tests/support/far_telemetry.h"

struct asked {
    struct fixture *b;
    uint32_t d[64];
    unsigned n;
};

static struct far_telemetry process;
static struct asked asked;

static void answer_question(void *ctx, const char *command, const char *what, char *text,
                            size_t size)
{
    struct asked *a = ctx;

    if (strcmp(command, "/trib/dilation") != 0) {
        snprintf(text, size, "null");
        return;
    }
    a->d[a->n++ % 64] = (uint32_t)atoi(what);
    clock_set_dilation(&a->b->clock, (uint32_t)atoi(what));
    snprintf(text, size, "{\"dilation\":%s}", what);
}

/* An operation of 1 us, of which ranks say how late it began. */
static struct fixture *begin(int64_t late_ns)
{
    struct fixture *b = set_up(1e-6 * DILATION);

    dilation_init(&b->s.dilation, true, 1200);
    b->script.late_ns = late_ns;
    asked = (struct asked){.b = b};
    process.answer = answer_question;
    process.ctx = &asked;
    far_telemetry_open(&process);
    snprintf(b->rd.path, sizeof(b->rd.path), "%s", process.dir);
    return b;
}

static void end(struct fixture *b)
{
    far_telemetry_close(&process);
    tear_down(b);
}

/* What a search asks for; each of its runs has two operations, the last of which ends after 2.5 us. */
static unsigned search(const struct fixture *b, int64_t late_ns, uint32_t *d)
{
    struct dilation_control p;
    struct dilation_tries t = {0};
    unsigned n = 0;

    dilation_init(&p, true, 1200);
    d[0] = dilation_first(&p, &b->r.pred, N);
    do {
        int64_t lag = late_ns / (2 * b->r.pred.handoffs);

        d[n + 1] = dilation_settle(&p, &t, &b->r.pred, d[n],
                                   dilation_judge(&b->r.pred, lag, 0, d[n]).needed, 2.5 / 2);
        n++;
    } while (!t.settled);
    return n + 1;
}

static void warm_ups_search_for_a_dilation_that_holds(void **state)
{
    static const int64_t late[] = {0, 30000};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct fixture *b = begin(late[i]);
        const struct run_result *run = &b->r.run[OUT_OF_PLACE];
        uint32_t d[DILATION_WARM_UPS + 2];
        unsigned n = search(b, late[i], d);

        assert_int_equal(place(b, OUT_OF_PLACE), 0);
        for (unsigned k = 0; k < n; k++)
            assert_int_equal(asked.d[k], d[k]);
        assert_int_equal(asked.n, n);
        assert_int_equal(run->dilation, d[n - 1]);
        assert_true(run->valid && run->fid.ok);
        assert_string_equal(run->cut, "");
        assert_int_equal(b->s.tries.n, n); /* the run is a sample as well */
        end(b);
    }
}

/* In place begins where out of place has ended, and its search is short. */
static void in_place_goes_on_from_out_of_place(void **state)
{
    struct fixture *b = begin(0);
    uint32_t d;
    unsigned n;

    (void)state;
    assert_int_equal(place(b, OUT_OF_PLACE), 0);
    n = b->s.tries.n;
    d = clock_dilation(&b->sh);
    asked.n = 0;
    assert_int_equal(place(b, IN_PLACE), 0);
    assert_true(b->s.tries.n > n && b->s.tries.n <= n + DILATION_MORE + 1);
    assert_true(asked.d[0] <= 8 * d && asked.d[0] >= d / 2);
    b->s.tries_algo = ALGO_TREE; /* but not from another algorithm's */
    assert_int_equal(place(b, IN_PLACE), 0);
    assert_true(b->s.tries.n <= DILATION_WARM_UPS + 1);
    assert_int_equal(b->s.tries_algo, ALGO_RING);
    end(b);
}

/* Warm-ups were in time, what is timed is not: twice more, ever slower, and the best of all counts. */
static void a_run_that_lags_is_tried_again_slower(void **state)
{
    struct fixture *b = begin(0);
    uint32_t first;

    (void)state;
    b->o.warmup = 0;
    clock_set_dilation(&b->clock, 1);
    b->script.late_ns = 40 * 100000000ll; /* 100 ms for each of 40 hand-offs asks for too much */
    assert_int_equal(place(b, OUT_OF_PLACE), 0);
    first = asked.d[0];
    assert_int_equal(asked.n, DILATION_RUNS);
    assert_true(asked.d[1] > first && asked.d[2] > asked.d[1]);
    assert_false(b->r.run[OUT_OF_PLACE].fid.ok);
    assert_int_equal(b->r.run[OUT_OF_PLACE].dilation, first); /* all needed as much */
    end(b);
}

/* A clock that the job may not set stays. */
static void a_job_without_the_clock_asks_for_nothing(void **state)
{
    struct fixture *b = begin(0);

    (void)state;
    b->s.dilation.adaptive = false;
    b->script.late_ns = 40 * 100000000ll;
    assert_int_equal(place(b, OUT_OF_PLACE), 0);
    ranks_leave(&b->s);
    assert_int_equal(asked.n, 0);
    assert_int_equal(b->r.run[OUT_OF_PLACE].dilation, DILATION);
    assert_false(b->r.run[OUT_OF_PLACE].fid.ok);
    b->s.dilation.adaptive = true;
    ranks_leave(&b->s);
    assert_int_equal(asked.n, 1);
    assert_int_equal(asked.d[0], DILATION_CONTROL);
    end(b);
}

/* Times vary by themselves where links have faults: they do not say whether the row held. */
static void faults_excuse_a_run_that_takes_longer(void **state)
{
    (void)state;
    for (unsigned k = 0; k < 6; k++) {
        struct fixture *b = begin(0);
        struct fab_link *l = &((struct fabric *)(uintptr_t)b->s.fab)->links[1];

        l->loss = k == 1 ? 1e-3 : 0;
        l->dup = k == 2 ? 1e-3 : 0;
        l->reorder = k == 3 ? 1e-3 : 0;
        l->corrupt = k == 4 ? 1e-3 : 0;
        l->jitter_ps = k == 5;
        b->o.warmup = 0; /* so that own work is not known */
        assert_int_equal(place(b, OUT_OF_PLACE), 0);
        assert_int_equal(b->r.run[OUT_OF_PLACE].fid.blind, k == 0);
        end(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warm_ups_search_for_a_dilation_that_holds),
        cmocka_unit_test(in_place_goes_on_from_out_of_place),
        cmocka_unit_test(a_run_that_lags_is_tried_again_slower),
        cmocka_unit_test(a_job_without_the_clock_asks_for_nothing),
        cmocka_unit_test(faults_excuse_a_run_that_takes_longer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
