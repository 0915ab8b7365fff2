/* SPDX-License-Identifier: BSD-3-Clause */
/* What processes share: clock, doorbells, lag histograms. */
#include "fabric/fabric.h"
#include "machine/shared.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* As after making a burst of frames visible. */
static void bell_ring(struct bell *b)
{
    bell_stamp(&b->rung_ns);
    bell_wake(b);
}

static struct clock_page *page(struct shared *sh)
{
    struct clock_page *c =
        mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(c, MAP_FAILED);
    clock_set_dilation(c, 1000);
    sh->clock = c;
    return c;
}

static struct shared view;

/* ---- clock ---- */

static void fabric_time_starts_at_zero_and_runs_dilated(void **state)
{
    struct shared *sh = &view;
    struct clock_page *c = page(sh);
    int64_t m0 = clock_mono_ns(), f0 = clock_fabric_ps(sh), m1, f1;

    (void)state;
    assert_in_range(f0, 0, 1000000000); /* at most a second of wall time has passed */
    usleep(20000);
    f1 = clock_fabric_ps(sh);
    m1 = clock_mono_ns();
    assert_true(f1 - f0 >= 20000000); /* 20 ms / 1000 = 20 us */
    assert_true(f1 - f0 <= (m1 - m0) + 1);
    munmap(c, sizeof(*c));
}

static void fabric_time_is_continuous_when_dilation_changes(void **state)
{
    static const uint32_t steps[] = {1, 7, 1000, 20000, 3, 1};
    struct shared *sh = &view;
    struct clock_page *c = page(sh);
    int64_t m0 = clock_mono_ns(), before = clock_fabric_ps(sh);

    (void)state;
    for (unsigned round = 0; round < 20; round++)
        for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
            int64_t after;

            clock_set_dilation(c, steps[i]);
            assert_int_equal(clock_dilation(sh), steps[i]);
            after = clock_fabric_ps(sh);
            assert_true(after >= before);
            /* In between, no faster than wall time, whatever the old and the new factor. */
            assert_true(after - before <= (clock_mono_ns() - m0) * 1000);
            m0 = clock_mono_ns();
            before = clock_fabric_ps(sh);
        }
    munmap(c, sizeof(*c));
}

/* Up and down by much: were a change in the past of a reader, a writer that loses the CPU between its
 * look at the clock and the announcement would make time go back for one of the two. */
static void *change_dilation(void *arg)
{
    struct clock_page *c = arg;

    for (unsigned i = 0; i < 400; i++)
        clock_set_dilation(c, i % 2 ? 20000 : 1);
    return NULL;
}

static void readers_never_see_half_a_change(void **state)
{
    struct shared *sh = &view;
    struct clock_page *c = page(sh);
    int64_t last = 0, now;
    pthread_t t;

    (void)state;
    assert_int_equal(pthread_create(&t, NULL, change_dilation, c), 0);
    while (pthread_tryjoin_np(t, NULL)) {
        now = clock_fabric_ps(sh);
        assert_true(now >= last);
        last = now;
    }
    munmap(c, sizeof(*c));
}

/* The reason why the above is so rare: until the change, readers of the old line and of the new one
 * see the same time. */
static void a_change_is_announced_before_it_takes_effect(void **state)
{
    struct shared *sh = &view;
    struct clock_page *c = page(sh);

    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        int64_t before = clock_mono_ns();

        clock_set_dilation(c, i + 1);
        assert_true(c->state[c->turn % 2].change_ns - before >= 2000000);
        assert_true(clock_mono_ns() >= c->state[c->turn % 2].change_ns);
    }
    munmap(c, sizeof(*c));
}

/* A writer that was killed in the middle of a change. */
static void half_a_change_changes_nothing_and_holds_nobody_up(void **state)
{
    struct shared *sh = &view;
    struct clock_page *c = page(sh);
    struct clock_state *next = &c->state[(c->turn + 1) % 2];

    (void)state;
    atomic_store(&c->writing, 1);
    next->dilation = 7;
    next->change_ps = -1;
    assert_int_equal(clock_dilation(sh), 1000);
    assert_in_range(clock_fabric_ps(sh), 0, 1000000000);
    munmap(c, sizeof(*c));
}

static void wall_time_until_a_deadline_is_never_too_short(void **state)
{
    struct shared *sh = &view;
    struct clock_page *c = page(sh);
    int64_t due = clock_fabric_ps(sh) + 300000000; /* 300 us, dilated 300 ms */
    int64_t ns = clock_wall_ns_until(sh, due);

    (void)state;
    assert_in_range(ns, 1, 300000001);
    while (clock_wall_ns_until(sh, due) > 0)
        usleep(100);
    assert_true(clock_fabric_ps(sh) >= due);
    assert_true(clock_wall_ns_until(sh, 0) <= 0);
    assert_true(clock_wall_ns_until(sh, INT64_MAX) > 1000000000);
    munmap(c, sizeof(*c));
}

/* ---- bells ---- */

/* Ping-pong between two processes that only sleep: one lost wake-up and a 30 s sleep shows it. */
#define ROUNDS 100000

struct table {
    struct bell bell[2];
    _Atomic uint32_t ball;
};

static unsigned play(struct table *t, unsigned me)
{
    unsigned slept = 0;

    for (uint32_t i = me; i < ROUNDS; i += 2) {
        while (atomic_load(&t->ball) != i) {
            uint32_t token = bell_prepare(&t->bell[me]);

            if (atomic_load(&t->ball) == i) {
                bell_cancel(&t->bell[me]);
                break;
            }
            bell_sleep(&t->bell[me], token, 30000000000);
            slept++;
        }
        atomic_store(&t->ball, i + 1);
        bell_ring(&t->bell[!me]);
    }
    return slept;
}

static void no_wake_up_is_lost_between_processes(void **state)
{
    struct table *t =
        mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int64_t start = clock_mono_ns();
    int status;
    pid_t pid = fork();

    (void)state;
    if (!pid) {
        play(t, 1);
        _exit(0);
    }
    play(t, 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(atomic_load(&t->ball), ROUNDS);
    assert_true(clock_mono_ns() - start < 30000000000);
    munmap(t, sizeof(*t));
}

struct sleeper {
    struct bell *b;
    int64_t slept_ns;
};

#define SLEEP_LONG 20000000000
static _Atomic unsigned about; /* sleepers that have announced themselves */

static void *sleep_once(void *arg)
{
    struct sleeper *s = arg;
    int64_t t0 = clock_mono_ns();
    uint32_t token = bell_prepare(s->b);

    atomic_fetch_add(&about, 1);
    bell_sleep(s->b, token, SLEEP_LONG);
    s->slept_ns = clock_mono_ns() - t0;
    return NULL;
}

static void one_ring_wakes_all_that_sleep_on_a_bell(void **state)
{
    struct bell b = {0};
    struct sleeper s[3];
    pthread_t t[3];

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        s[i] = (struct sleeper){&b, 0};
        assert_int_equal(pthread_create(&t[i], NULL, sleep_once, &s[i]), 0);
    }
    while (atomic_load(&about) < 3)
        usleep(1000);
    usleep(100000);
    bell_ring(&b);
    for (unsigned i = 0; i < 3; i++) {
        pthread_join(t[i], NULL);
        assert_in_range(s[i].slept_ns, 1, SLEEP_LONG / 2);
    }
}

/* ---- loop bells ---- */

struct loop_table {
    struct switch_page page[2];
    struct loop_bell bell[2];
    _Atomic uint32_t ball;
};

static void loop_play(struct loop_table *t, unsigned me)
{
    _Atomic uint32_t rung = 0;

    for (uint32_t i = me; i < ROUNDS; i += 2) {
        while (atomic_load(&t->ball) != i) {
            uint32_t token = loop_bell_prepare(&t->page[me], &t->bell[me]);

            if (atomic_load(&t->ball) == i)
                loop_bell_cancel(&t->page[me]);
            else
                loop_bell_sleep(&t->page[me], &t->bell[me], token, 30000000000);
        }
        atomic_store(&t->ball, i + 1);
        loop_bell_ring(&t->page[!me], &t->bell[!me], &rung);
    }
}

static void no_wake_up_of_a_loop_is_lost(void **state)
{
    struct loop_table *t =
        mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int64_t start = clock_mono_ns();
    int status;
    pid_t pid = fork();

    (void)state;
    if (!pid) {
        loop_play(t, 1);
        _exit(0);
    }
    loop_play(t, 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_true(clock_mono_ns() - start < 30000000000);
    munmap(t, sizeof(*t));
}

static void *scribble(void *arg)
{
    struct loop_bell *b = arg;

    for (uint32_t i = 0; !atomic_load(&about); i++)
        atomic_store(&b->seq, i % 3 ? i * 2654435761u : 0);
    return NULL;
}

/* Whoever may ring may write the futex word. A sleep ends at its timeout at the latest. */
static void nonsense_in_a_loop_bell_cannot_hold_its_loop(void **state)
{
    static struct switch_page page;
    static struct loop_bell bell;
    int64_t t0;
    pthread_t t;

    (void)state;
    atomic_store(&about, 0);
    assert_int_equal(pthread_create(&t, NULL, scribble, &bell), 0);
    for (unsigned i = 0; i < 50; i++) {
        uint32_t token = loop_bell_prepare(&page, &bell);

        t0 = clock_mono_ns();
        loop_bell_sleep(&page, &bell, token, 2000000);
        assert_true(clock_mono_ns() - t0 < 1000000000);
    }
    atomic_store(&about, 1);
    pthread_join(t, NULL);
    assert_int_equal(atomic_load(&page.sleeps), 100);
}

static void a_stamp_is_no_older_than_it_can_be(void **state)
{
    static const struct {
        int64_t rung_ns, now_ns, max_ns, want;
    } rows[] = {
        {0, 1000, 500, -1},        {900, 1000, 500, 100},     {1, 1000, 500, 500},
        {2000, 1000, 500, 0},      {INT64_MIN, 1000, 500, 0}, {-1, 1000, 500, 0},
        {INT64_MAX, 1000, 500, 0}, {1, INT64_MAX, 700, 700},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        _Atomic int64_t rung = rows[i].rung_ns;

        assert_int_equal(bell_take_stamp(&rung, rows[i].now_ns, rows[i].max_ns), rows[i].want);
        assert_int_equal(rung, 0);
    }
}

static void sleep_ends_at_its_timeout_and_not_before(void **state)
{
    struct bell b = {0};
    int64_t t0 = clock_mono_ns();

    (void)state;
    bell_sleep(&b, bell_prepare(&b), 3000000);
    assert_true(clock_mono_ns() - t0 >= 3000000);
    t0 = clock_mono_ns();
    bell_sleep(&b, bell_prepare(&b), 0);
    bell_sleep(&b, bell_prepare(&b), -5);
    assert_true(clock_mono_ns() - t0 < 1000000000);
}

static void only_hand_offs_that_follow_soon_are_waited_for_awake(void **state)
{
    static const struct {
        int64_t last_ns, now_ns, until_ns;
    } rows[] = {
        {5000000, 5000000, 5000000 + BUSY_POLL_NS},
        {5000000, 5000000 + BUSY_POLL_NS - 1, 5000000 + 2 * BUSY_POLL_NS - 1},
        {5000000, 5000000 + BUSY_POLL_NS, 0},
        {0, 5000000, 0}, /* the first one */
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(busy_poll_deadline(rows[i].last_ns, rows[i].now_ns), rows[i].until_ns);
}

static void lateness_counts_from_the_oldest_announcement(void **state)
{
    struct bell b = {0};
    int64_t ns;

    (void)state;
    assert_int_equal(bell_served(&b), -1);
    bell_ring(&b);
    usleep(5000);
    bell_ring(&b);
    ns = bell_served(&b);
    assert_true(ns >= 5000000);
    assert_int_equal(bell_served(&b), -1);
}

/* ---- lag ---- */

static void quantiles_are_within_a_bucket_and_never_flattered(void **state)
{
    static struct lag_hist h, empty;
    static const double qs[] = {0, 0.5, 0.9, 0.99, 0.999};

    (void)state;
    assert_int_equal(lag_quantile(NULL, &h, 0.99), 0);
    for (int64_t v = 0; v < 100000; v++)
        lag_record(&h, v, 1);
    for (unsigned i = 0; i < sizeof(qs) / sizeof(qs[0]); i++) {
        int64_t exact = (int64_t)(qs[i] * 100000), got = lag_quantile(&empty, &h, qs[i]);

        assert_true(got >= exact);
        assert_true(got <= exact + exact / 16 + 1);
    }
}

static void extremes_have_a_bucket(void **state)
{
    static struct lag_hist h;

    (void)state;
    lag_record(&h, -3, 1);
    assert_int_equal(lag_quantile(NULL, &h, 1.0), 0);
    lag_record(&h, INT64_MAX, 1);
    assert_int_equal(lag_quantile(NULL, &h, 1.0), 0xffffffffLL);
}

static void a_quantile_is_that_of_what_came_between_two_snapshots(void **state)
{
    static struct switch_page p[2];
    static struct lag_hist a, b;
    struct shared *sh = &view;

    (void)state;
    sh->sw[0].page = &p[0];
    sh->sw[1].page = &p[1];
    sh->n_sw = 2;
    lag_record(&p[0].lag, 1000000, 500);
    lag_snapshot(sh, &a);
    lag_record(&p[0].lag, 10, 99);
    lag_record(&p[1].lag, 12, 1);
    lag_snapshot(sh, &b);
    assert_int_equal(lag_quantile(&a, &b, 0.5), 10);
    assert_int_equal(lag_quantile(&a, &b, 0.99), 12);
    assert_true(lag_quantile(NULL, &b, 0.5) >= 1000000);
    sh->n_sw = 0;
}

static void every_slot_of_every_port_has_a_bell_of_its_own(void **state)
{
    static bool used[BELLS];
    struct fabric *f;

    (void)state;
    for (unsigned p = 0; p < BELL_HOST0; p++)
        used[p] = true;
    f = fabric_load("conf/rail-4x8.conf", NULL);
    assert_non_null(f);
    assert_true(f->n_dests <= bell_room(f));
    for (unsigned h = 0; h < f->n_hosts; h++)
        for (unsigned p = 0; p < 5; p++)
            for (unsigned s = 0; s < f->slots_per_host; s++) {
                unsigned b = bell_of_slot(f, &f->nodes[f->hosts[h]], p, s);

                assert_true(b < BELLS);
                assert_false(used[b]);
                used[b] = true;
            }
    fabric_free(f);
    f = fabric_load("conf/h100-su.conf", NULL);
    assert_non_null(f);
    assert_true(f->n_dests > bell_room(f));
    fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fabric_time_starts_at_zero_and_runs_dilated),
        cmocka_unit_test(fabric_time_is_continuous_when_dilation_changes),
        cmocka_unit_test(readers_never_see_half_a_change),
        cmocka_unit_test(a_change_is_announced_before_it_takes_effect),
        cmocka_unit_test(half_a_change_changes_nothing_and_holds_nobody_up),
        cmocka_unit_test(wall_time_until_a_deadline_is_never_too_short),
        cmocka_unit_test(no_wake_up_is_lost_between_processes),
        cmocka_unit_test(one_ring_wakes_all_that_sleep_on_a_bell),
        cmocka_unit_test(no_wake_up_of_a_loop_is_lost),
        cmocka_unit_test(nonsense_in_a_loop_bell_cannot_hold_its_loop),
        cmocka_unit_test(a_stamp_is_no_older_than_it_can_be),
        cmocka_unit_test(sleep_ends_at_its_timeout_and_not_before),
        cmocka_unit_test(only_hand_offs_that_follow_soon_are_waited_for_awake),
        cmocka_unit_test(lateness_counts_from_the_oldest_announcement),
        cmocka_unit_test(quantiles_are_within_a_bucket_and_never_flattered),
        cmocka_unit_test(extremes_have_a_bucket),
        cmocka_unit_test(a_quantile_is_that_of_what_came_between_two_snapshots),
        cmocka_unit_test(every_slot_of_every_port_has_a_bell_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
