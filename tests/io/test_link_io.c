/* SPDX-License-Identifier: BSD-3-Clause */
/* Links of a process to another one: bursts, what waits for room and what is dropped, bells, and what is
 * done when the other one comes and goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tests/io/fake_port.h"
#include "tests/io/one_loop.h"

#define BACKLOG LINK_IO_BACKLOG

static const char conf[] = "name = \"two\"; slots_per_host = 2;"
                           "nodes = ( { name = (\"h0\", \"h1\"); kind = \"host\"; },"
                           " { name = (\"s0\", \"s1\"); kind = \"switch\"; } );"
                           "link_defaults = { rate = \"100Gb/s\"; latency = \"300ns\"; };"
                           "links = ( { a = \"h0\"; b = \"s0\"; }, { a = \"h1\"; b = \"s1\"; }, { "
                           "a = \"s0\"; b = \"s1\"; } );";

static struct fake_port far;
static struct port_page page;
static struct link_io *c; /* of s0-s1 */
static uint16_t s0;

/* The link's own port is closed for one of the test. */
static int setup(void **state)
{
    (void)state;
    one_loop_open(conf, "h0 s0 ", 10);
    s0 = node_of("s0");
    c = &o.l->io[o.l->by_port[s0][1] - 1];
    assert_int_equal(c->kind, LINK_IO_LINK);
    assert_int_equal(c->dirlink, 2 * 2 + 1); /* s0 is end a: it receives what end b sends */
    assert_true(c->on_link && !c->away && !c->up);
    assert_int_equal(o.l->n_links, 1);
    assert_int_equal(o.l->n_missing, 1);
    io_port_close(c->rp);
    memset(&page, 0, sizeof(page));
    c->rp = fake_begin(&far);
    far.page = &page;
    o.l->watch.fd[c - o.l->io] = -1;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fake_clear(&far);
    one_loop_close();
    assert_int_equal(far.closed, 1);
    return 0;
}

static void up(void)
{
    far.up = true;
    links_check(o.l, now_ps());
    assert_true(c->up);
}

/* Numbered frames towards the other process. */
static void deliver(unsigned n, unsigned *number)
{
    struct rte_mbuf *m[2048];

    for (unsigned i = 0; i < n; i++) {
        m[i] = frame_alloc(o.pool);
        assert_non_null(m[i]);
        memcpy(rte_pktmbuf_append(m[i], 60), number, sizeof(*number));
        ++*number;
    }
    links_deliver(o.l, s0, 1, m, (uint16_t)n, 0);
}

static unsigned number_of(const struct rte_mbuf *m)
{
    unsigned n;

    memcpy(&n, rte_pktmbuf_mtod(m, void *), sizeof(n));
    return n;
}

static void frames_for_nobody_are_dropped(void **state)
{
    unsigned n = 0, free = rte_mempool_avail_count(o.pool);
    struct rte_mbuf *m[2];
    (void)state;

    deliver(3, &n);
    assert_int_equal(c->overflow, 3);
    for (unsigned i = 0; i < 2; i++) {
        m[0] = frame_alloc(o.pool);
        m[1] = frame_alloc(o.pool);
        links_deliver(o.l, i ? node_of("s1") : s0, 0, m, 2,
                      0); /* no such link leaves this process */
    }
    assert_int_equal(c->overflow, 3);
    assert_int_equal(rte_mempool_avail_count(o.pool), free);
    assert_int_equal(far.n_sent, 0);
}

/* Short bursts wait for the end of the round; 32 frames do not. */
static void bursts_are_sent_whole(void **state)
{
    unsigned n = 0;
    (void)state;

    up();
    deliver(31, &n);
    assert_int_equal(far.n_sent, 0);
    assert_int_equal(c->wait_n, 31);
    assert_false(links_flush(o.l));
    assert_int_equal(far.n_sent, 31);
    assert_int_equal(far.bursts, 1);
    deliver(32, &n);
    assert_int_equal(far.n_sent, 63);
    assert_int_equal(far.bursts, 2);
    assert_true(c->ring);
    deliver(20, &n);
    assert_int_equal(far.n_sent, 63);
    deliver(12, &n);
    assert_int_equal(far.n_sent, 95);
    assert_int_equal(c->wait_n, 0);
    for (unsigned i = 0; i < far.n_sent; i++)
        assert_int_equal(number_of(far.sent[i]), i);
}

/* Behind those that wait already; what a full ring leaves waits. */
static void what_finds_no_room_waits_in_order(void **state)
{
    unsigned n = 0;
    (void)state;

    up();
    far.room = 40;
    deliver(50, &n);
    assert_int_equal(far.n_sent, 40);
    assert_int_equal(c->wait_n, 10);
    assert_true(c->ring);
    assert_true(links_flush(o.l));
    assert_false(c->ring);
    deliver(50, &n);
    assert_int_equal(c->wait_n, 60);
    assert_false(c->ring);
    far.room = 100;
    assert_false(links_flush(o.l));
    assert_int_equal(far.n_sent, 100);
    for (unsigned i = 0; i < far.n_sent; i++)
        assert_int_equal(number_of(far.sent[i]), i);
}

/* Around the end of the ring of those that wait, and no more than it holds. */
static void so_many_wait_at_most(void **state)
{
    unsigned n = 0, next = 0;
    (void)state;

    up();
    for (unsigned round = 0; round < 4; round++) {
        far.room = 0;
        deliver(700, &n);
        assert_int_equal(c->wait_n, 700);
        far.room = 600;
        links_flush(o.l);
        far.room = 100;
        links_flush(o.l);
        assert_int_equal(c->wait_n, 0);
        for (unsigned i = 0; i < far.n_sent; i++)
            assert_int_equal(number_of(far.sent[i]), next++);
        assert_int_equal(next, n);
        fake_clear(&far);
    }
    far.room = 0;
    deliver(BACKLOG, &n);
    assert_int_equal(c->overflow, 0);
    deliver(3, &n);
    assert_int_equal(c->wait_n, BACKLOG);
    assert_int_equal(c->overflow, 3);
    far.room = 4000;
    assert_false(links_flush(o.l));
    assert_int_equal(far.n_sent, BACKLOG);
    assert_int_equal(number_of(far.sent[BACKLOG - 1]), next + BACKLOG - 1);
}

static void the_other_process_is_rung_once_a_round(void **state)
{
    static struct switch_page sleeper;
    struct loop_bell bell = {0};
    struct switch_view view = {.page = &sleeper, .bell = &bell};
    unsigned n = 0;
    (void)state;

    sleeper.sleeps = 3;
    up();
    assert_ptr_equal(c->page, &page);
    assert_null(c->peer); /* none is known */
    c->peer = &view;
    assert_false(links_flush(o.l));
    assert_int_equal(bell.seq, 0);
    assert_null(o.l->rang);
    assert_false(links_unserved(c));
    deliver(2, &n);
    links_flush(o.l);
    assert_int_equal(bell.seq, 1);
    assert_ptr_equal(o.l->rang, c);
    assert_int_equal(page.bell.rung_ns,
                     now_ns); /* of the server's frames, and not of the client's */
    assert_int_equal(page.rung_ns, 0);
    assert_true(links_unserved(c));
    deliver(2, &n);
    links_flush(o.l);
    assert_int_equal(bell.seq, 1); /* for one sleep it is rung once */
    sleeper.sleeps = 5;
    links_flush(o.l);
    assert_int_equal(bell.seq, 1);
    deliver(2, &n);
    links_flush(o.l);
    assert_int_equal(bell.seq, 2);
    c->peer = NULL;
    c->page = NULL;
    assert_false(links_unserved(c));
    deliver(2, &n);
    links_flush(o.l);
    assert_int_equal(bell.seq, 2);
}

static unsigned tapped[64];
static unsigned n_tapped;

static void tap(void *ctx, unsigned dirlink, struct rte_mbuf *m, int64_t now)
{
    (void)ctx, (void)m, (void)now;
    tapped[n_tapped++ % 64] = dirlink;
}

/* A burst a round; how long the oldest has waited is noted, and each is shown to the tap. */
static void frames_of_the_other_process_come_in(void **state)
{
    struct node *nd = net_node(o.l->net, s0);
    (void)state;

    up();
    for (unsigned i = 0; i < 40; i++)
        fake_arrive(&far, 0, datagram("h1", "h0", 0, 64));
    assert_true(links_pending(o.l));
    n_tapped = 0;
    loop_tap(o.l, tap, NULL);
    page.rung_ns = now_ns - 100 * US;
    o.l->mono_ns = now_ns;
    o.l->gap_ns = MS;
    o.l->served_ns = -1;
    assert_int_equal(links_receive(o.l, now_ps()), LOOP_BURST);
    assert_int_equal(n_tapped, LOOP_BURST);
    assert_int_equal(tapped[0], 5);
    assert_int_equal(o.l->served_ns, 100 * US);
    assert_int_equal(page.rung_ns, 0);
    assert_int_equal(nd->cnt[1].rx_frames, LOOP_BURST);
    loop_tap(o.l, NULL, NULL);
    assert_int_equal(links_receive(o.l, now_ps()), 8);
    assert_int_equal(n_tapped, LOOP_BURST);
    assert_false(links_pending(o.l));
    assert_int_equal(links_receive(o.l, now_ps()), 0);
    assert_int_equal(nd->cnt[1].rx_frames, 40);
    assert_int_equal(nd->cnt[1].rx_bytes, 40 * 130);
    steps(3, MS);
}

/* What waits for a process that has gone is dropped, and the link counts as cut. */
static void a_process_that_goes_takes_its_frames_along(void **state)
{
    const struct switch_page *own = o.l->page;
    unsigned n = 0, cuts = own->cuts;
    (void)state;

    up();
    assert_int_equal(o.l->n_links_up, 1);
    assert_int_equal(o.l->n_missing, 0);
    assert_int_equal(own->cuts, cuts + 1);
    assert_int_equal(own->cut[2], (uint64_t)now_ns << 1);
    assert_int_equal(o.l->n_live, 1);
    assert_ptr_equal(o.l->live[0], c);
    assert_false(net_node(o.l->net, s0)->np[1].down);
    deliver(5, &n);
    now_ns += MS;
    far.up = false;
    o.l->watch.fd[c - o.l->io] = -1;
    o.l->n_links_up = 1;
    o.l->n_outside = 1; /* so that it looks */
    links_check(o.l, now_ps());
    o.l->n_outside = 0;
    assert_false(c->up);
    assert_int_equal(c->overflow, 5);
    assert_int_equal(c->wait_n, 0);
    assert_int_equal(o.l->n_links_up, 0);
    assert_int_equal(o.l->n_missing, 1);
    assert_int_equal(o.l->n_live, 0);
    assert_null(c->page);
    assert_int_equal(own->cut[2], (uint64_t)now_ns << 1 | 1);
    assert_true(o.l->cut[2]);
    assert_true(net_node(o.l->net, s0)->np[1].down != 0);
    up();
    assert_false(o.l->cut[2]);
    assert_int_equal(c->overflow, 5);
}

/* All links are up, and no port says anything: none is asked. */
static void ports_are_asked_when_they_have_something_to_say(void **state)
{
    int pipes[2];
    (void)state;

    assert_int_equal(pipe(pipes), 0);
    far.fd = pipes[0];
    up();
    far.looks = 0;
    links_check(o.l, now_ps());
    links_check(o.l, now_ps());
    assert_int_equal(far.looks, 0);
    assert_int_equal(write(pipes[1], "x", 1), 1);
    links_check(o.l, now_ps());
    assert_int_equal(far.looks, 1);
    close(pipes[0]);
    close(pipes[1]);
    far.fd = -1;
}

/* Of a device: what its ring had no room for counts at the port. */
static void what_a_device_missed_counts_at_its_port(void **state)
{
    (void)state;
    far.up = false;
    far.port.stats.missed = 7;
    links_check(o.l, now_ps());
    assert_int_equal(net_node(o.l->net, s0)->cnt[1].drops[DROP_RING_FULL],
                     0); /* before it was up */
}

/* Slots listen ahead of those in use, and no further than the conf has them. */
static void slots_listen_ahead(void **state)
{
    struct link_io_info i;
    (void)state;

    assert_int_equal(o.l->n_doors, 1);
    assert_int_equal(o.l->door[0].open, 2);
    assert_true(loop_link_io(o.l, 0, &i));
    assert_int_equal(i.kind, LINK_IO_SLOT);
    assert_int_equal(i.slot, 0);
    assert_true(loop_link_io(o.l, 1, &i));
    assert_int_equal(i.slot, 1);
    assert_true(loop_link_io(o.l, 2, &i));
    assert_int_equal(i.kind, LINK_IO_LINK);
    assert_false(loop_link_io(o.l, 3, &i));
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(frames_for_nobody_are_dropped),
        CASE(bursts_are_sent_whole),
        CASE(what_finds_no_room_waits_in_order),
        CASE(so_many_wait_at_most),
        CASE(the_other_process_is_rung_once_a_round),
        CASE(frames_of_the_other_process_come_in),
        CASE(a_process_that_goes_takes_its_frames_along),
        CASE(ports_are_asked_when_they_have_something_to_say),
        CASE(what_a_device_missed_counts_at_its_port),
        CASE(slots_listen_ahead),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
