/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames between the switch processes of two machines: each once and in order, whatever is lost between
 * them; what waits for room, bells, and ports that open and close with the other machine. */
#include "tests/io/trunk/machines.h"

#include "roce/frame.h"
#include "tests/io/fake_port.h"
#include "tests/support/eal.h"

#define LINK 3u /* s0-s1 */

static struct rte_mempool *pool;
static struct fake_port port[2];
static struct port_page page[2];
static struct trunk_end *e[2]; /* of m0, of m1 */
static unsigned full;

static int begin(void **state)
{
    setup(state);
    for (unsigned i = 0; i < 2; i++) {
        struct trunk *t = w.t[i];

        t->pool = pool;
        t->sh = w.rd.sh;
        t->owner = i;
        for (unsigned k = 0; k < t->n_ends; k++)
            e[i] = t->end[k].link == LINK ? &t->end[k] : e[i];
        e[i]->rp = fake_begin(&port[i]);
        memset(&page[i], 0, sizeof(page[i]));
        e[i]->page = port[i].page = &page[i];
        e[i]->up = true;
        t->looked_ns = clock_mono_ns();
        t->peer[!i].far = false;
    }
    full = rte_mempool_avail_count(pool);
    w.n_kept = 0;
    return 0;
}

static int end(void **state)
{
    fake_clear(&port[0]);
    fake_clear(&port[1]);
    teardown(state);
    assert_int_equal(rte_mempool_avail_count(pool), full);
    return 0;
}

/* Frames of the switch process of m0, of 60 bytes and numbered. */
static void announce(unsigned n, unsigned *number)
{
    while (n--) {
        struct rte_mbuf *m = frame_alloc(pool);

        assert_non_null(m);
        memset(rte_pktmbuf_append(m, 60), 0, 60);
        memcpy(rte_pktmbuf_mtod(m, void *), number, sizeof(*number));
        ++*number;
        fake_arrive(&port[0], 0, m);
    }
}

/* What both have to say now, heard by the other. */
static void both(void)
{
    for (unsigned i = 0; i < 2; i++) {
        ends_flush(w.t[i], clock_mono_ns());
        deliver();
    }
}

static unsigned send_all(void)
{
    unsigned n = 0, k;

    while ((k = ends_send(w.t[0], clock_mono_ns())))
        n += k;
    deliver();
    return n;
}

static void in_order(unsigned from, unsigned n)
{
    assert_int_equal(port[1].n_sent, n);
    for (unsigned i = 0; i < n; i++) {
        unsigned number;

        memcpy(&number, rte_pktmbuf_mtod(port[1].sent[i], void *), sizeof(number));
        assert_int_equal(number, from + i);
        assert_int_equal(port[1].sent[i]->pkt_len, 60);
    }
}

static unsigned said(unsigned type)
{
    unsigned n = 0;

    for (unsigned i = 0; i < w.n_kept; i++)
        n += w.kept[i].type == type;
    return n;
}

/* ---- cases ---- */

static void frames_pass_in_order(void **state)
{
    uint64_t sent = w.t[0]->peer[1].sent;
    unsigned n = 0;
    (void)state;

    announce(50, &n);
    assert_true(ends_pending(w.t[0]));
    assert_int_equal(send_all(), 50);
    assert_false(ends_pending(w.t[0]));
    assert_int_equal(said(TRUNK_FRAME), 50);
    assert_int_equal(w.t[0]->peer[1].sent - sent, 50);
    assert_int_equal(e[0]->sent, 50);
    assert_int_equal(e[1]->received, 50);
    assert_int_equal(e[1]->wait_n, 50);
    assert_int_equal(rte_mempool_avail_count(pool),
                     full - 100); /* kept until they are acknowledged */
    both();
    in_order(0, 50);
    assert_int_equal(said(TRUNK_ACK), 1);
    both();
    assert_int_equal(rte_mempool_avail_count(pool), full - 50);
    assert_int_equal(e[0]->out.acked, e[0]->out.next);
    assert_int_equal(e[0]->again, 0);
    assert_int_equal(e[1]->overflow, 0);
}

/* The window is full: the switch process has to wait. */
static void no_more_are_under_way_than_the_window_has(void **state)
{
    unsigned n = 0;
    (void)state;

    announce(FLOW_WINDOW + 10, &n);
    w.cut = true;
    assert_int_equal(send_all(), FLOW_WINDOW);
    assert_false(ends_pending(w.t[0]));
    assert_int_equal(ends_send(w.t[0], clock_mono_ns()), 0);
    w.cut = false;
    for (unsigned i = 0; i < 40 && port[1].n_sent < n; i++) {
        ahead_ns += 2 * MS;
        both();
        send_all();
    }
    both();
    in_order(0, FLOW_WINDOW + 10);
    assert_true(e[0]->again >= FLOW_WINDOW);
}

/* One in the middle: what overtook it waits, and a moment later it alone is asked for again. */
static void a_lost_frame_is_sent_again(void **state)
{
    int64_t next;
    unsigned n = 0;
    (void)state;

    announce(1, &n);
    send_all();
    w.cut = true;
    announce(1, &n);
    send_all();
    w.cut = false;
    announce(3, &n);
    send_all();
    both();
    in_order(0, 1);
    assert_int_equal(said(TRUNK_ACK), 0);
    next = ends_flush(w.t[1], clock_mono_ns());
    assert_int_equal(next, e[1]->in.gap_ns + FLOW_GAP_NS);
    ahead_ns += 2 * FLOW_GAP_NS;
    both();
    assert_int_equal(said(TRUNK_ACK), 1);
    both();
    in_order(0, 5);
    assert_int_equal(e[0]->again, 1);
    assert_int_equal(said(TRUNK_FRAME), 6);
}

/* The last one: nobody misses it there, so it is asked about. */
static void a_lost_last_frame_is_asked_about(void **state)
{
    unsigned n = 0;
    int64_t next;
    (void)state;

    w.cut = true;
    announce(1, &n);
    send_all();
    w.cut = false;
    next = ends_flush(w.t[0], clock_mono_ns());
    assert_int_equal(next, e[0]->out.asked_ns + FLOW_TAIL_NS);
    assert_int_equal(said(TRUNK_ASK), 0);
    ahead_ns += FLOW_TAIL_NS;
    both();
    assert_int_equal(said(TRUNK_ASK), 1);
    assert_int_equal(said(TRUNK_ACK), 1);
    both();
    in_order(0, 1);
    assert_int_equal(ends_flush(w.t[1], clock_mono_ns()), INT64_MAX);
}

/* Frames for which a switch process is too slow wait; then they are lost, as at a full queue. */
static void a_backlog_has_an_end(void **state)
{
    unsigned n = 0;
    (void)state;

    port[1].room = 0;
    while (n < TRUNK_BACKLOG + 40) {
        announce(n < TRUNK_BACKLOG ? 32 : 20, &n);
        send_all();
        both();
        both();
    }
    assert_int_equal(e[1]->wait_n, TRUNK_BACKLOG);
    assert_int_equal(e[1]->overflow, 40);
    assert_int_equal(e[1]->received, TRUNK_BACKLOG + 40);
    assert_true(ends_flush(w.t[1], clock_mono_ns()) <= clock_mono_ns() + 50000);
    port[1].room = 1000;
    both();
    assert_int_equal(e[1]->wait_n, TRUNK_BACKLOG - 1000);
    port[1].room = 1000;
    both();
    in_order(0, TRUNK_BACKLOG);
    announce(100, &n); /* around the end of the ring */
    port[1].room = 0;
    send_all();
    port[1].room = 200;
    both();
    assert_int_equal(port[1].n_sent, TRUNK_BACKLOG + 100);
}

/* By the page of the connection: end a has the server's stamp there, end b the client's. */
static void switch_processes_are_rung(void **state)
{
    static struct switch_page sleeper;
    struct loop_bell bell = {0};
    struct switch_view view = {.page = &sleeper, .bell = &bell};
    unsigned n = 0;
    (void)state;

    sleeper.sleeps = 1;
    e[1]->view = &view;
    announce(2, &n);
    send_all();
    assert_int_equal(bell.seq, 0);
    both();
    assert_int_equal(bell.seq, 1);
    assert_false(e[1]->ring);
    /* m1 stands for s0, end a, which listens there */
    assert_true(e[1]->is_a && !e[0]->is_a);
    assert_true(page[1].bell.rung_ns != 0 && page[1].rung_ns == 0);
    both();
    assert_int_equal(bell.seq, 1);
    e[1]->view = NULL;
}

/* Frames are as late as the oldest has waited, but no more than since the last look. */
static void a_frame_says_when_it_was_due(void **state)
{
    struct trunk_frame f;
    int64_t now, due;
    unsigned n = 0;
    (void)state;

    for (unsigned i = 0; i < 3; i++) { /* not announced; 2 ms ago; nonsense */
        static const int64_t waited[] = {0, 2 * MS, 90 * MS};

        w.t[0]->looked_ns = clock_mono_ns() - 10 * MS;
        w.n_kept = 0;
        announce(1, &n);
        now = clock_mono_ns();
        page[0].bell.rung_ns = i ? now - waited[i] : 0;
        ends_send(w.t[0], now);
        deliver();
        memcpy(&f, w.kept[0].m + sizeof(struct trunk_header), sizeof(f));
        due = clock_fabric_at(w.t[0]->sh, now - (i == 2 ? 10 * MS : waited[i]));
        assert_true(llabs((int64_t)be64toh(f.due_ps) - due) < (i == 2 ? 1000000 : 1));
        assert_int_equal(be32toh(f.link), LINK);
        assert_int_equal(be32toh(f.number), i + 1);
        assert_int_equal(page[0].bell.rung_ns, 0);
        assert_int_equal(w.t[0]->looked_ns, now);
    }
}

/* A machine that has gone, or is not wanted: the port closes, and all frames come back. */
static void a_machine_that_goes_closes_its_ports(void **state)
{
    unsigned n = 0;
    (void)state;

    announce(5, &n);
    send_all();
    ends_gone(w.t[1], 2);
    assert_true(e[1]->up);
    ends_gone(w.t[1], 0);
    ends_gone(w.t[1], 0);
    assert_int_equal(port[1].closed, 1);
    assert_false(e[1]->up);
    assert_null(e[1]->rp);
    assert_null(e[1]->page);
    assert_int_equal(e[1]->wait_n, 0);
    assert_int_equal(rte_mempool_avail_count(pool), full - 5);
    announce(1, &n);
    send_all();
    assert_int_equal(e[1]->received, 5); /* of an end that is down nothing is taken */
    ends_gone(w.t[0], 1);
    assert_int_equal(rte_mempool_avail_count(pool), full);
    assert_int_equal(ends_flush(w.t[0], clock_mono_ns()), INT64_MAX);
    assert_false(ends_pending(w.t[0]));
}

static void ports_are_there_while_both_switch_processes_are(void **state)
{
    struct trunk *t = w.t[0];
    struct trunk_end *x = NULL;
    (void)state;

    ends_gone(t, 1);
    for (unsigned k = 0; k < t->n_ends; k++)
        x = t->end[k].peer == 2 ? &t->end[k] : x;
    memset(t->peer[1].ends, 0, 1);
    memset(t->peer[2].ends, 0, 1);
    t->peer[2].far = false;
    assert_false(ends_check(t));
    assert_true(!e[0]->rp && !x->rp);
    bit_set(t->peer[2].ends, x->bit, true);
    assert_true(ends_check(t)); /* it waits for the switch process here */
    assert_true(!e[0]->rp && x->rp && !x->up);
    t->peer[2].other_conf = true;
    assert_false(ends_check(t));
    assert_null(x->rp);
    t->peer[2].other_conf = false;
    x->rp = fake_begin(&port[0]);
    assert_false(ends_check(t));
    assert_true(x->up);
    port[0].up = false;
    assert_true(ends_check(t));
    assert_false(x->up);
    bit_set(t->peer[2].ends, x->bit, false);
    assert_false(ends_check(t));
    assert_int_equal(port[0].closed, 1);
}

/* A trunk tells all machines of its own switch processes' lateness: the buckets that grew, and what
 * they were late for. */
static void lateness_is_told_as_it_grows(void **state)
{
    static struct switch_page other;
    struct trunk_lag l[2];
    struct trunk *t = w.t[0];
    (void)state;

    memset(&other, 0, sizeof(other));
    shared_add(t->sh, "other", 77, &other, NULL);
    atomic_store(&t->sh->own->lag.n[9], 5); /* its own does not count */
    ends_lateness(t, 5);
    deliver();
    assert_int_equal(said(TRUNK_LAG), 0);
    assert_int_equal(t->lag_sent_ns, 5);
    atomic_store(&other.lag.n[7], 3);
    atomic_store(&other.lag.n[400], 70000);
    w.cut = true;
    t->peer[2].far = false;
    ends_lateness(t, 6);
    deliver();
    assert_int_equal(said(TRUNK_LAG), 2);
    assert_int_equal(w.kept[0].bytes, sizeof(struct trunk_header) + sizeof(l));
    memcpy(l, w.kept[0].m + sizeof(struct trunk_header), sizeof(l));
    assert_true(be16toh(l[0].bucket) == 7 && be16toh(l[0].n) == 3);
    assert_true(be16toh(l[1].bucket) == 400 && be16toh(l[1].n) == UINT16_MAX);
    assert_int_equal(t->late_ns, lag_bucket_top(400));
    ends_lateness(t, 7);
    deliver();
    assert_int_equal(said(TRUNK_LAG), 2);
    atomic_store(&other.lag.n[7], 4);
    ends_lateness(t, 8);
    deliver();
    assert_int_equal(said(TRUNK_LAG), 4);
    assert_int_equal(t->late_ns, lag_bucket_top(400));
    t->sh->n_sw--;
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(frames_pass_in_order),
        CASE(no_more_are_under_way_than_the_window_has),
        CASE(a_lost_frame_is_sent_again),
        CASE(a_lost_last_frame_is_asked_about),
        CASE(a_backlog_has_an_end),
        CASE(switch_processes_are_rung),
        CASE(a_frame_says_when_it_was_due),
        CASE(a_machine_that_goes_closes_its_ports),
        CASE(ports_are_there_while_both_switch_processes_are),
        CASE(lateness_is_told_as_it_grows),
    };

    test_eal_init();
    pool = test_pool(4095);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
