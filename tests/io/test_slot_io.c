/* SPDX-License-Identifier: BSD-3-Clause */
/* The process in a slot of a NIC, at the other end of a port of the test: what it may send in a round, how late it
 * is, whom its bell wakes, and what is left when it has gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tests/io/fake_port.h"
#include "tests/io/one_loop.h"

#define BURST 32

static const char conf[] = "name = \"slots\"; slots_per_host = 3;"
                           "nodes = ( { name = (\"h0\", \"h1\"); kind = \"host\"; }, { name = "
                           "\"s0\"; kind = \"switch\"; } );"
                           "link_defaults = { rate = \"100Gb/s\"; latency = \"300ns\"; };"
                           "links = ( { a = \"h0\"; b = \"s0\"; }, { a = \"h1\"; b = \"s0\"; } );";

static struct fake_port port[2];
static struct port_page page[2];
static struct link_io *c, *other; /* of slots 0 and 1 of h0 */

static struct link_io *slot_of(const char *host, unsigned slot)
{
    for (unsigned i = 0; i < o.l->n_ios; i++)
        if (o.l->io[i].kind == LINK_IO_SLOT && o.l->io[i].node == node_of(host) &&
            o.l->io[i].slot == slot)
            return &o.l->io[i];
    fail_msg("%s has no slot %u", host, slot);
    return NULL;
}

static void connect_slot(struct link_io *s, unsigned i)
{
    memset(&page[i], 0, sizeof(page[i]));
    io_port_close(s->rp);
    s->rp = fake_begin(&port[i]);
    port[i].page = &page[i];
    o.l->watch.fd[s - o.l->io] = -1;
}

static int setup(void **state)
{
    (void)state;
    one_loop_open(conf, NULL, 10);
    c = slot_of("h0", 0);
    other = slot_of("h0", 1);
    connect_slot(c, 0);
    connect_slot(other, 1);
    o.l->n_outside = 1; /* so that it looks */
    links_check(o.l, now_ps());
    o.l->n_outside = 0;
    assert_true(c->up && c->page == &page[0] && other->page == &page[1]);
    o.l->mono_ns = now_ns;
    o.l->gap_ns = MS;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fake_clear(&port[0]);
    fake_clear(&port[1]);
    return one_loop_close();
}

static void arrive(unsigned n, enum endpoint_queue q)
{
    while (n--)
        fake_arrive(&port[0], q, frame_alloc(o.pool));
}

/* How many frames the NIC takes of a queue. */
static unsigned output(enum endpoint_queue q)
{
    struct endpoint e = slot_endpoint(c);
    struct rte_mbuf *m[64];
    unsigned n = e.output(e.ctx, q, m, 64, 0);

    rte_pktmbuf_free_bulk(m, n);
    return n;
}

/* How many of n the process has room for; *left of them. */
static unsigned input(unsigned n)
{
    struct endpoint e = slot_endpoint(c);
    struct rte_mbuf *m[64];
    unsigned k;

    for (unsigned i = 0; i < n; i++)
        m[i] = frame_alloc(o.pool);
    k = e.input(e.ctx, m, (uint16_t)n, 0);
    rte_pktmbuf_free_bulk(m + k, n - k);
    return k;
}

static int64_t next(void)
{
    struct endpoint e = slot_endpoint(c);

    return e.next(e.ctx);
}

/* ---- what it sends ---- */

static void it_may_send_so_much_in_a_round(void **state)
{
    (void)state;
    arrive(40, ENDPOINT_DATA);
    arrive(3, ENDPOINT_ACK);
    c->budget = 0;
    assert_int_equal(output(ENDPOINT_DATA), 0);
    assert_true(next() == PS_NEVER);
    c->budget = 7;
    assert_int_equal(next(), 0);
    assert_int_equal(output(ENDPOINT_ACK), 3);
    assert_int_equal(c->budget, 4);
    assert_int_equal(next(), 0);
    assert_int_equal(output(ENDPOINT_DATA), 4);
    assert_int_equal(c->budget, 0);
    c->budget = BURST;
    assert_int_equal(output(ENDPOINT_DATA), BURST);
    c->budget = BURST;
    assert_int_equal(output(ENDPOINT_DATA), 4);
    assert_int_equal(c->budget, BURST - 4);
    assert_true(next() == PS_NEVER);
    assert_false(c->ring);
}

/* A process may sleep until there is room, so its bell rings when something was taken from a full
 * ring. */
static void it_hears_that_there_is_room(void **state)
{
    static const struct {
        bool wants, crowded;
        unsigned arrive;
        bool ring;
    } rows[] = {{false, false, 1, false},
                {true, false, 1, true},
                {true, false, 0, false},
                {false, true, 1, true},
                {false, true, 0, true}};
    struct endpoint e = slot_endpoint(c);
    (void)state;

    for (unsigned i = 0; i < RTE_DIM(rows); i++) {
        page[0].wants_room = rows[i].wants;
        port[0].crowded = rows[i].crowded;
        c->ring = false;
        c->budget = BURST;
        arrive(rows[i].arrive, ENDPOINT_DATA);
        assert_int_equal(output(ENDPOINT_DATA), rows[i].arrive);
        assert_int_equal(c->ring, rows[i].ring);
        assert_int_equal(e.late(e.ctx), rows[i].wants);
    }
    c->page = NULL; /* one that rings no bell */
    page[0].wants_room = 1;
    port[0].crowded = false;
    arrive(1, ENDPOINT_DATA);
    assert_int_equal(output(ENDPOINT_DATA), 1);
    assert_true(c->ring); /* still, from the last row */
    assert_false(e.late(e.ctx));
}

/* ---- what it receives ---- */

static void what_finds_no_room_stays_with_the_nic(void **state)
{
    (void)state;
    c->ring = false;
    port[0].room = 0;
    assert_int_equal(input(2), 0);
    assert_true(c->blocked && !c->ring);
    assert_int_equal(c->rung_frames, 0);
    port[0].room = 5;
    assert_int_equal(input(3), 3);
    assert_true(!c->blocked && c->ring);
    assert_int_equal(input(3), 2);
    assert_true(c->blocked);
    assert_int_equal(c->rung_frames, 5);
}

/* A NIC is kicked when its process has sent, when it has no budget left, or when frames wait for room. */
static void its_nic_is_kicked_when_there_is_something_to_do(void **state)
{
    (void)state;
    c->budget = 1;
    assert_int_equal(slot_receive(c, now_ps()), 0);
    assert_int_equal(c->budget, BURST);
    arrive(2, ENDPOINT_ACK);
    assert_int_equal(slot_receive(c, now_ps()), 1);
    assert_int_equal(c->arrived[ENDPOINT_ACK], 2);
    assert_int_equal(slot_receive(c, now_ps()), 0);
    arrive(1, ENDPOINT_DATA);
    assert_int_equal(slot_receive(c, now_ps()), 1);
    assert_int_equal(c->arrived[ENDPOINT_DATA], 1);
    c->budget = 0;
    assert_int_equal(slot_receive(c, now_ps()), 1);
    c->budget = 1;
    c->blocked = true;
    assert_int_equal(slot_receive(c, now_ps()), 0); /* of which no loop goes on polling */
}

/* How long what it has sent has waited. */
static void what_it_sent_is_as_old_as_its_stamp(void **state)
{
    (void)state;
    o.l->served_ns = -1;
    slot_receive(c, now_ps());
    assert_int_equal(o.l->served_ns, -1);
    page[0].rung_ns = now_ns - 30 * US;
    slot_receive(c, now_ps());
    assert_int_equal(o.l->served_ns, 30 * US);
    assert_int_equal(page[0].rung_ns, 0);
}

/* ---- how late it is ---- */

static uint64_t recorded(int64_t ns)
{
    uint64_t n = 0;

    for (unsigned b = 0; b < LAG_BUCKETS; b++)
        if (lag_bucket_top(b) >= ns && (!b || lag_bucket_top(b - 1) < ns))
            n += atomic_load(&o.l->lag->n[b]);
    return n;
}

static bool was_late(void)
{
    for (unsigned i = 0; i < LATENESS_SLICES; i++)
        if (atomic_load(&c->late->slice[i]))
            return true;
    return false;
}

static void its_bell_is_rung_once_until_it_has_served_it(void **state)
{
    const int64_t rung = now_ns;
    (void)state;

    page[0].bell.sleeping = 1;
    slot_ring(c);
    assert_int_equal(c->rung_ns, rung);
    assert_int_equal(page[0].bell.rung_ns, rung);
    assert_int_equal(c->late->due_ns, rung);
    assert_int_equal(page[0].bell.seq, 1);
    now_ns += MS;
    page[0].bell.sleeping = 1;
    slot_ring(c); /* as it has not served it, since then */
    assert_int_equal(c->rung_ns, rung);
    assert_int_equal(page[0].bell.rung_ns, rung);
    assert_int_equal(c->late->due_ns, rung);
    assert_int_equal(page[0].bell.seq, 2);
    page[0].bell.rung_ns = 0;
    page[0].bell.served_ns = now_ns;
    now_ns += MS;
    slot_ring(c);
    assert_int_equal(c->rung_ns, now_ns);
    assert_int_equal(c->late->due_ns, now_ns);
    assert_int_equal(recorded(MS), 1);
}

/* Lateness is recorded for each frame that was sent to the process. Its own statement of the time
 * counts if it can be true. */
static void its_lateness_is_recorded_once_it_has_served(void **state)
{
    static const struct {
        int64_t served_after, looked_after;
        unsigned frames;
        int64_t late_ns;
        bool log;
    } rows[] = {
        {30 * US, 90 * US, 1, 30 * US, false},     {200 * US, MS, 3, 200 * US, false},
        {200 * US + 1, MS, 0, 200 * US, true},     {-1, 40 * US, 2, 40 * US, false},
        {50 * US + 1, 50 * US, 1, 50 * US, false}, {0, 60 * US, 1, 0, false},
    };
    (void)state;

    slot_receive(c, now_ps()); /* of which its NIC is kicked, as it had no budget */
    for (unsigned i = 0; i < RTE_DIM(rows); i++) {
        const int64_t rung = now_ns;

        memset(o.l->lag, 0, sizeof(*o.l->lag));
        memset(c->late->slice, 0, sizeof(c->late->slice));
        slot_ring(c);
        c->rung_frames = rows[i].frames;
        assert_int_equal(slot_receive(c, now_ps()), 0); /* it has not served it */
        assert_int_equal(c->rung_ns, rung);
        page[0].bell.rung_ns = 0;
        page[0].bell.served_ns = rung + rows[i].served_after;
        now_ns = rung + rows[i].looked_after;
        slot_receive(c, now_ps());
        assert_int_equal(recorded(rows[i].late_ns), RTE_MAX(rows[i].frames, 1u));
        assert_int_equal(was_late(), rows[i].log);
        assert_int_equal(c->rung_ns, 0);
        assert_int_equal(c->rung_frames, 0);
        assert_int_equal(c->late->due_ns, 0);
        now_ns += S;
    }
}

/* ---- a second slot of the process ---- */

static unsigned wakes(unsigned i)
{
    page[1].bell.sleeping = 1;
    page[0].also = i;
    page[1].bell.seq = 0;
    slot_ring(c);
    return page[1].bell.seq;
}

/* The other slot whose sleepers serve this one, too: it is of the same host, and connected. */
static void the_bell_of_its_other_slot_wakes_it_too(void **state)
{
    (void)state;
    assert_int_equal(wakes(0), 0);
    assert_int_equal(wakes(slot_name(0, 1)), 1);
    assert_ptr_equal(c->also, other);
    assert_int_equal(c->also_name, slot_name(0, 1));
    assert_int_equal(wakes(slot_name(0, 2)), 0); /* which nobody has */
    assert_int_equal(wakes(slot_name(1, 1)), 0); /* no such port */
    assert_null(c->also);
    assert_int_equal(c->also_name, 0);
    assert_int_equal(wakes(slot_name(0, 1)), 1);
    assert_int_equal(wakes(0), 0);
    assert_int_equal(wakes(slot_name(0, 1)), 1);
    c = slot_of("h1", 1); /* its host's slot 0 is another one than h0's */
    c->page = &page[0];
    other = slot_of("h1", 0);
    other->page = &page[1];
    assert_int_equal(wakes(slot_name(0, 0)), 1);
    assert_ptr_equal(c->also, other);
    other->page = NULL;
    assert_int_equal(wakes(slot_name(0, 0)), 0);
    c->page = NULL;
}

/* ---- when it has gone ---- */

static void nothing_is_left_of_the_one_before(void **state)
{
    (void)state;
    wakes(slot_name(0, 1));
    arrive(2, ENDPOINT_DATA);
    slot_receive(c, now_ps());
    c->rung_frames = 4;
    c->blocked = true;
    c->up = false;
    slot_connected(c);
    assert_null(c->page);
    assert_null(c->also);
    assert_true(!c->rung_ns && !c->rung_frames && !c->also_name && !c->blocked);
    assert_int_equal(c->arrived[ENDPOINT_DATA], 0);
    assert_int_equal(c->late->due_ns, 0);
    c->up = true;
    slot_connected(c);
    assert_ptr_equal(c->page, &page[0]);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(it_may_send_so_much_in_a_round),
        CASE(it_hears_that_there_is_room),
        CASE(what_finds_no_room_stays_with_the_nic),
        CASE(its_nic_is_kicked_when_there_is_something_to_do),
        CASE(what_it_sent_is_as_old_as_its_stamp),
        CASE(its_bell_is_rung_once_until_it_has_served_it),
        CASE(its_lateness_is_recorded_once_it_has_served),
        CASE(the_bell_of_its_other_slot_wakes_it_too),
        CASE(nothing_is_left_of_the_one_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
