/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop of a switch process: frames for its pool, calls from other threads, when it yields and how long
 * it sleeps, and what it says of its lateness. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tests/io/fake_port.h"
#include "tests/io/one_loop.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>

static const char conf[] = "name = \"one\"; slots_per_host = 2;"
                           "nodes = ( { name = (\"h0\", \"h1\"); kind = \"host\"; },"
                           " { name = (\"s0\", \"s1\"); kind = \"switch\"; } );"
                           "reduce = { groups = 2; slots = 32; window = 8; };"
                           "link_defaults = { rate = \"100Gb/s\"; latency = \"300ns\"; };"
                           "links = ( { a = \"h0\"; b = \"s0\"; }, { a = \"h1\"; b = \"s1\"; }, { "
                           "a = \"s0\"; b = \"s1\"; } );";

/* ---- what the loop asks of the system ---- */

static volatile sig_atomic_t stop;
static unsigned yields, sleeps, rounds; /* rounds: after so many of both the loop ends */
static int64_t slept_ns[64], due_ns[64];
static uint32_t asleep; /* the page's flag during the last sleep */

static void rested(void)
{
    if (yields + sleeps >= rounds)
        stop = 1;
}

int sched_yield(void)
{
    yields++;
    rested();
    return 0;
}

/* A sleep is over at once, and its time has passed. */
long syscall(long number, ...)
{
    static long (*real)(long, ...);
    va_list ap;
    long a[6];

    va_start(ap, number);
    for (unsigned i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    if (number == SYS_futex && a[1] == FUTEX_WAIT && now_ns && o.l) {
        const struct timespec *t = (const struct timespec *)a[3];

        slept_ns[sleeps % 64] = t->tv_sec * S + t->tv_nsec;
        due_ns[sleeps++ % 64] = atomic_load(&o.l->late->due_ns) - now_ns;
        asleep = atomic_load(&o.l->page->sleeps);
        now_ns += t->tv_sec * S + t->tv_nsec;
        rested();
        return 0;
    }
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static int setup(void **state)
{
    (void)state;
    stop = 0;
    yields = sleeps = 0;
    rounds = 1;
    return one_loop_open(conf, NULL, 10);
}

static int part(void **state)
{
    (void)state;
    stop = 0;
    yields = sleeps = 0;
    return one_loop_open(conf, "h0 s0 ", 10);
}

static int teardown(void **state)
{
    (void)state;
    return one_loop_close();
}

static void ready(void *ctx)
{
    ++*(unsigned *)ctx;
}

static unsigned run(unsigned n)
{
    unsigned was_ready = 0;

    stop = 0;
    yields = sleeps = 0;
    rounds = n;
    loop_run(o.l, &stop, ready, &was_ready);
    return was_ready;
}

/* ---- cases ---- */

/* 8,192, 512 a port, and 64 windows of each node that reduces; at most 262,144, less one. */
static void a_pool_has_frames_for_its_nodes(void **state)
{
    bool mine[4] = {true};
    (void)state;

    assert_int_equal(loop_pool_frames(o.fab, NULL), 8192 + 6 * 512 + 2 * 64 * 8 - 1);
    assert_int_equal(loop_pool_frames(o.fab, mine), 8192 + 512 - 1);
    mine[0] = false;
    mine[node_of("s0")] = true;
    assert_int_equal(loop_pool_frames(o.fab, mine), 8192 + 2 * 512 + 64 * 8 - 1);
    o.fab->nodes[node_of("s0")].reduce.window = 511;
    assert_int_equal(loop_pool_frames(o.fab, mine), 8192 + 2 * 512 + 64 * 511 - 1);
    o.fab->nodes[node_of("s0")].reduce.window = 600;
    assert_int_equal(loop_pool_frames(o.fab, mine), 8192 + 2 * 512 + 32768 - 1);
    o.fab->nodes[node_of("s0")].n_ports = 1000;
    assert_int_equal(loop_pool_frames(o.fab, mine), 262144 - 1);
    o.fab->nodes[node_of("s0")].n_ports = 2;
    o.fab->nodes[node_of("s0")].reduce.on = false;
    assert_int_equal(loop_pool_frames(o.fab, mine), 8192 + 2 * 512 - 1);
}

/* Two rounds without frames yield, later ones sleep, 50 ms or until the next event. */
static void an_idle_loop_sleeps(void **state)
{
    uint32_t before = atomic_load(&o.l->page->sleeps);
    (void)state;

    o.l->checked_ns = now_ns;
    assert_int_equal(run(5), 1);
    assert_int_equal(yields, 2);
    assert_int_equal(sleeps, 3);
    assert_true(slept_ns[0] <= 50 * MS && slept_ns[2] <= 50 * MS);
    assert_int_equal(due_ns[0], slept_ns[0]); /* it says when it is due */
    assert_true(asleep & 1);
    assert_int_equal(atomic_load(&o.l->page->sleeps), before + 6);
    assert_int_equal(o.l->idle, 5);
}

/* A device rings no bell: it is asked each 50 us, then up to 16 times as seldom. */
static void ports_to_the_outside_are_asked_more_and_more_seldom(void **state)
{
    static const struct {
        unsigned idle;
        int64_t ns;
    } row[] = {{10, 50 * US},   {62, 50 * US},   {63, 100 * US},  {126, 100 * US}, {127, 200 * US},
               {191, 400 * US}, {255, 800 * US}, {319, 800 * US}, {5000, 800 * US}};
    (void)state;

    run(4);
    o.l->n_outside = 1;
    for (unsigned i = 0; i < RTE_DIM(row); i++) {
        o.l->idle = row[i].idle;
        run(1);
        assert_int_equal(sleeps, 1);
        assert_int_equal(slept_ns[0], row[i].ns);
    }
    o.l->n_outside = 0;
}

/* While hand-offs follow each other closely it polls; not for a loop that cannot run meanwhile. */
static void a_busy_loop_polls(void **state)
{
    struct port_page page = {0};
    struct link_io rang = {.kind = LINK_IO_SLOT, .page = &page};
    (void)state;

    run(4);
    o.l->busy_poll_until_ns = now_ns + 1;
    o.l->idle = 3;
    run(1);
    assert_int_equal(yields, 1);
    o.l->busy_poll_until_ns = now_ns;
    run(1);
    assert_int_equal(sleeps, 1);
    page.bell.rung_ns = 1; /* not served */
    o.l->rang = &rang;
    for (unsigned idle = FUTILE_YIELDS - 1; idle <= FUTILE_YIELDS; idle++) {
        o.l->busy_poll_until_ns = now_ns + S;
        o.l->idle = idle;
        run(1);
        assert_int_equal(yields, idle < FUTILE_YIELDS);
        assert_int_equal(sleeps, idle == FUTILE_YIELDS);
    }
    page.bell.rung_ns = 0;
    o.l->busy_poll_until_ns = now_ns + S;
    o.l->idle = FUTILE_YIELDS + 5;
    run(1);
    assert_int_equal(yields, 1);
    o.l->rang = NULL;
}

/* Frames have moved: it was not idle, and polls if the last ones were less than 100 us ago. */
static void frames_that_move_keep_it_awake(void **state)
{
    struct io_port *a = program("h0", 0, 0), *b = program("h1", 0, 0);
    (void)state;

    o.l->moved_ns = now_ns - BUSY_POLL_NS;
    o.l->idle = 40;
    o.l->rests = true;
    atomic_store(&o.l->late->due_ns, 77);
    send_from(a, "h0", "h1", 0, 1, 64);
    run(1);
    assert_true(o.l->idle <= 1);
    assert_int_equal(o.l->busy_poll_until_ns, 0);
    assert_int_equal(o.l->moved_ns, now_ns);
    send_from(a, "h0", "h1", 0, 1, 64);
    now_ns += BUSY_POLL_NS - 1;
    run(1);
    assert_int_equal(o.l->busy_poll_until_ns, now_ns + BUSY_POLL_NS);
    now_ns += MS;
    step(0);
    assert_int_equal(taken(b), 2);
    io_port_close(a);
    io_port_close(b);
    steps(3, MS);
}

/* Not before every other process of this machine is there; once. */
static void it_is_ready_when_its_links_are_up(void **state)
{
    (void)state;
    assert_int_equal(o.l->n_missing, 1);
    assert_int_equal(run(4), 0);
    o.l->n_missing = 0;
    assert_int_equal(run(4), 1);
    o.l->n_missing = 1;
}

static unsigned calls;

static void called(struct loop *l, void *arg)
{
    assert_ptr_equal(l, o.l);
    calls += *(unsigned *)arg;
}

/* By a loop that does not run, within 5 s: here they are over already. */
static void a_call_that_nobody_takes_ends(void **state)
{
    int64_t now = now_ns;
    unsigned n = 3;
    (void)state;

    calls = 0;
    now_ns = S;
    assert_int_equal(loop_call(o.l, called, &n), -ETIMEDOUT);
    assert_null(o.l->call_fn);
    o.l->call_fn = called; /* of another thread, that is under way */
    o.l->call_arg = &n;
    o.l->calling = true;
    assert_int_equal(loop_call(o.l, called, &n), -ETIMEDOUT);
    assert_ptr_equal(o.l->call_fn, called);
    now_ns = now;
    run(1);
    assert_int_equal(calls, 3);
    assert_null(o.l->call_fn);
    assert_false(o.l->calling);
    run(1);
    assert_int_equal(calls, 3);
}

/* Times of wall time follow the dilation. */
static void grace_times_follow_the_dilation(void **state)
{
    (void)state;
    run(1);
    assert_int_equal(o.l->dilation, 10);
    assert_int_equal(o.l->pause_ps, 5 * PS_PER_MS / 10);
    assert_int_equal(net_node(o.l->net, node_of("s0"))->link_down_grace_ps,
                     RTE_MIN(NODE_LINK_DOWN_GRACE_PS, 2 * PS_PER_S / 10));
    clock_set_dilation(o.l->sh->own_clock, 1000);
    run(1);
    assert_int_equal(o.l->dilation, 1000);
    assert_int_equal(o.l->pause_ps, 5 * PS_PER_MS / 1000);
    assert_int_equal(net_node(o.l->net, node_of("s0"))->link_down_grace_ps, 2 * PS_PER_S / 1000);
}

static uint64_t lags(void)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < LAG_BUCKETS; i++)
        n += atomic_load(&o.l->lag->n[i]);
    return n;
}

/* A round that begins more than 200 us after it was due is in the log. */
static void a_late_round_is_logged(void **state)
{
    const struct lateness_log *g = o.l->late;
    (void)state;

    run(4);
    for (int64_t late = LATENESS_BOUND_NS; late <= LATENESS_BOUND_NS + 1; late++) {
        bool any = false;

        lateness_forget(o.l->late);
        memset((void *)(uintptr_t)g->slice, 0, sizeof(g->slice));
        o.l->idle = 0;
        o.l->due_ns = now_ns - late;
        run(1);
        for (unsigned i = 0; i < LATENESS_SLICES; i++)
            any |= atomic_load(&g->slice[i]) != 0;
        assert_int_equal(any, late > LATENESS_BOUND_NS);
    }
    assert_int_equal(lags(), 0); /* no frame was handed over */
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_pool_has_frames_for_its_nodes),
        CASE(an_idle_loop_sleeps),
        CASE(ports_to_the_outside_are_asked_more_and_more_seldom),
        CASE(a_busy_loop_polls),
        CASE(frames_that_move_keep_it_awake),
        cmocka_unit_test_setup_teardown(it_is_ready_when_its_links_are_up, part, teardown),
        CASE(a_call_that_nobody_takes_ends),
        CASE(grace_times_follow_the_dilation),
        CASE(a_late_round_is_logged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
