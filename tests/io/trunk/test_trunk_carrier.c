/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames between machines by a port of theirs: which of a machine's devices, who hears whom, what is taken of what
 * arrives, and when a port is looked at. The port is the test's. */
#include "tests/io/trunk/machines.h"

#include "roce/frame.h"
#include "tests/io/fake_port.h"
#include "tests/support/eal.h"

#include <errno.h>

#define LONGEST (w.fab->mtu + PORT_HEADERS_MAX) /* packet of the fabric */
/* Around one on the wire: length, message, the emulated Ethernet header with a tag. */
#define AROUND   (sizeof(uint16_t) + sizeof(struct trunk_header) + sizeof(struct trunk_frame) + 18u)
#define ETHERNET 16u /* of the wire, with the length */
#define AWAKE    (20 * MS)

/* ---- the port ---- */

static struct fake_port port;
static struct rte_mempool *pool;
static unsigned n_opened;
static int mac_rc;

int io_port_outside(struct io_port **p, const char *text, const char *dir, unsigned n, unsigned mtu,
                    struct rte_mempool *frames)
{
    assert_string_equal(dir, w.rd.path);
    assert_int_equal(mtu, w.fab->mtu + AROUND);
    assert_non_null(frames);
    assert_string_equal(text, w.fab->machines[0].device[n]);
    n_opened++;
    if (strcmp(text, "good") != 0)
        return -ENODEV;
    *p = fake_begin(&port);
    return 0;
}

int io_port_mac(const struct io_port *p, uint8_t mac[6])
{
    assert_ptr_equal(p, &port.port);
    memset(mac, 0xa0, 6);
    return mac_rc;
}

static void devices(unsigned n, const char *first, const char *second)
{
    struct fab_machine *m = &w.fab->machines[0];

    m->n_devices = (uint16_t)n;
    snprintf(m->device[0], sizeof(m->device[0]), "%s", first);
    snprintf(m->device[1], sizeof(m->device[1]), "%s", second);
    n_opened = 0;
    mac_rc = 0;
}

/* m0 has a port of which nobody knows yet. */
static int begin(void **state)
{
    setup(state);
    devices(1, "good", "");
    assert_int_equal(carrier_open(w.t[0]), 0);
    memset(w.t[0]->refused, 0, sizeof(w.t[0]->refused));
    w.n_kept = 0;
    return 0;
}

static int end(void **state)
{
    fake_clear(&port);
    carrier_close(w.t[0]);
    return teardown(state);
}

/* A machine says that its port has this address, and whether it hears ours. */
static void says(unsigned machine, uint8_t mac, bool hears)
{
    struct trunk_state s = {.hears = hears};

    memset(s.mac, mac, sizeof(s.mac));
    carrier_told(w.t[0], machine, &s);
}

/* m1 and m0 hear each other. */
static void get_to_know(void)
{
    carrier_tick(w.t[0]);
    says(1, 0xa1, true);
}

/* A message of m1 arrives at the port of m0, in a frame whose byte `at` is another one, and which is `more`
 * longer than it has to be; whether it is taken. */
static bool arrives(unsigned at, uint8_t is, int more)
{
    uint8_t m[sizeof(struct trunk_header) + 8] = {0}, *to;
    uint64_t before = w.t[0]->peer[1].by_port.received;
    struct rte_mbuf *f = rte_pktmbuf_alloc(pool);

    peers_seal(w.t[1], 0, TRUNK_PROBE, m, sizeof(m));
    assert_non_null(rte_pktmbuf_append(f, ETHERNET + sizeof(m) + 64));
    to = rte_pktmbuf_mtod(f, uint8_t *);
    memset(to, 0xa0, 6);
    memset(to + 6, 0xa1, 6);
    to[12] = 0x88, to[13] = 0xb5;
    to[14] = 0, to[15] = sizeof(m);
    memcpy(to + ETHERNET, m, sizeof(m));
    to[at] = is;
    rte_pktmbuf_trim(f, (uint16_t)(64 - more));
    fake_arrive(&port, 0, f);
    assert_int_equal(carrier_receive(w.t[0], clock_mono_ns()), 1);
    return w.t[0]->peer[1].by_port.received != before;
}

/* ---- set-up ---- */

static void the_first_device_that_opens_is_used(void **state)
{
    static const struct {
        unsigned n;
        const char *first, *second, *used;
        int rc;
        unsigned opened;
    } rows[] = {
        {0, "good", "", FAB_UDP, 0, 0},
        {1, "good", "", "good", 0, 1},
        {2, "bad", "good", "good", 0, 2},
        {2, "good", "other", "good", 0, 1},
        {2, FAB_UDP, "good", FAB_UDP, 0, 0},
        {2, "bad", FAB_UDP, FAB_UDP ", none of its ports opened", 0, 1},
        {1, "bad", "", FAB_UDP ", none of its ports opened", -ENODEV, 1},
    };
    struct trunk *t = w.t[0];
    (void)state;

    for (unsigned i = 0; i < RTE_DIM(rows); i++) {
        bool used = !strcmp(rows[i].used, "good");

        devices(rows[i].n, rows[i].first, rows[i].second);
        port.closed = 0;
        assert_int_equal(carrier_open(t), rows[i].rc);
        assert_int_equal(n_opened, rows[i].opened);
        assert_string_equal(carrier_device(t), rows[i].used);
        assert_int_equal(t->carrier != NULL, used);
        carrier_close(t);
        assert_null(t->carrier);
        assert_int_equal(port.closed, used);
    }
    devices(1, "good", "");
    mac_rc = -EIO;
    assert_int_equal(carrier_open(t), -EIO);
    assert_null(t->carrier);
    assert_int_equal(port.closed, 1);
}

/* Everything that is asked of it without a port. */
static void without_a_port_udp_carries_all(void **state)
{
    struct trunk_state s = {0};
    struct trunk *t = w.t[0];
    (void)state;

    assert_false(carrier_takes(t, 1, 5));
    assert_false(carrier_reaches(t, 1));
    carrier_awake(t, 5);
    assert_int_equal(carrier_receive(t, 5), 0);
    assert_true(carrier_next(t, 5) == INT64_MAX);
    carrier_tick(t);
    carrier_tell(t, 1, &s);
    assert_int_equal(s.hears, 0);
    assert_int_equal(t->peer[1].by_port.used_ns, 0);
}

/* ---- who hears whom ---- */

/* A probe is as long as the longest frame, and goes to who is there and has said its port's address. */
static void probes_let_the_others_hear_the_port(void **state)
{
    struct trunk *t = w.t[0];
    uint8_t *at;
    (void)state;

    carrier_tick(t);
    assert_int_equal(port.n_sent, 0);
    says(1, 0xa1, false);
    says(2, 0xa2, false);
    t->peer[2].session.mine = 0;
    carrier_tick(t);
    assert_int_equal(port.n_sent, 1);
    at = rte_pktmbuf_mtod(port.sent[0], uint8_t *);
    assert_int_equal(port.sent[0]->pkt_len, 14 + LONGEST + AROUND);
    for (unsigned i = 0; i < 6; i++)
        assert_true(at[i] == 0xa1 && at[6 + i] == 0xa0);
    assert_true(at[12] == 0x88 && at[13] == 0xb5);
    assert_int_equal(at[14] << 8 | at[15], port.sent[0]->pkt_len - ETHERNET);
    assert_int_equal(t->peer[1].by_port.sent, 1);
    port.up = false; /* its own link is down */
    carrier_tick(t);
    assert_int_equal(port.n_sent, 1);
}

static void a_machine_is_reached_that_says_that_it_hears(void **state)
{
    struct trunk *t = w.t[0];
    (void)state;

    says(1, 0xa1, true);
    assert_false(carrier_reaches(t, 1)); /* nobody has looked at our port */
    carrier_tick(t);
    assert_true(carrier_reaches(t, 1));
    assert_false(carrier_reaches(t, 2));
    says(1, 0xa1, false);
    assert_false(carrier_reaches(t, 1));
    says(1, 0xa1, true);
    port.up = false;
    carrier_tick(t);
    assert_false(carrier_reaches(t, 1));
}

/* We say so for 0.3 s, and not at all while our port is down. */
static void a_port_that_is_heard_no_more_is_not_used(void **state)
{
    static const struct {
        int64_t now, heard;
        bool hears;
    } rows[] = {{100 * S, 100 * S - 300 * MS + 1, true},
                {100 * S, 100 * S - 300 * MS, false},
                {100 * S, 0, false},
                {100 * MS, 0, false}}; /* the machine has just started */
    struct trunk *t = w.t[0];
    struct trunk_state s = {0};
    (void)state;

    carrier_tell(t, 1, &s);
    assert_int_equal(s.mac[0], 0);
    carrier_tick(t);
    for (unsigned i = 0; i < RTE_DIM(rows); i++) {
        still_ns = rows[i].now;
        t->peer[1].by_port.heard_ns = rows[i].heard;
        memset(&s, 0, sizeof(s));
        carrier_tell(t, 1, &s);
        assert_int_equal(s.hears, rows[i].hears);
        assert_true(s.mac[0] == 0xa0 && s.mac[5] == 0xa0);
    }
}

/* ---- when it is used, and looked at ---- */

/* The first frames after a pause go by UDP, which wakes the other machine. */
static void after_a_pause_udp_takes_the_first_frames(void **state)
{
    const int64_t now = clock_mono_ns();
    struct trunk *t = w.t[0];
    (void)state;

    get_to_know();
    t->peer[1].by_port.used_ns = now - AWAKE;
    assert_false(carrier_takes(t, 1, now));
    assert_int_equal(t->peer[1].by_port.used_ns, now);
    assert_int_equal(carrier_next(t, now), now + 50000);
    assert_true(carrier_takes(t, 1, now + AWAKE - 1));
    assert_true(carrier_takes(t, 1, now + AWAKE));
    assert_false(carrier_takes(t, 2, now + AWAKE)); /* another machine */
    says(1, 0xa1, false);
    assert_false(carrier_takes(t, 1, now + AWAKE));
}

/* More and more seldom, and then with the other work alone. */
static void an_idle_port_is_looked_at_more_seldom(void **state)
{
    static const struct {
        int64_t since, in;
    } rows[] = {{0, 50000},           {400000, 50000}, {800000, 100000}, {8 * MS, MS},
                {8 * MS - 8, MS - 1}, {30 * MS, MS},   {2 * AWAKE, MS}};
    const int64_t now = clock_mono_ns();
    struct trunk *t = w.t[0];
    (void)state;

    for (unsigned i = 0; i < RTE_DIM(rows); i++) {
        carrier_awake(t, now - rows[i].since);
        assert_int_equal(carrier_next(t, now), now + rows[i].in);
    }
    carrier_awake(t, now - 2 * AWAKE - 1);
    assert_true(carrier_next(t, now) == INT64_MAX);
}

/* ---- frames ---- */

/* As many messages as there is room for. */
static void messages_go_by_the_port(void **state)
{
    static uint8_t m[40][60];
    struct iovec v[40];
    struct trunk *t = w.t[0];
    (void)state;

    get_to_know();
    for (unsigned i = 0; i < 40; i++) {
        memset(m[i], (int)i, sizeof(m[i]));
        v[i] = (struct iovec){m[i], 20 + i};
    }
    port.room = 2;
    assert_int_equal(carrier_send(t, 1, v, 3), 2);
    assert_int_equal(t->peer[1].by_port.sent, 2);
    assert_int_equal(port.n_sent, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(port.sent[i]->pkt_len, ETHERNET + 20 + i);
        assert_memory_equal(rte_pktmbuf_mtod_offset(port.sent[i], void *, ETHERNET), m[i], 20 + i);
    }
    port.room = 100;
    assert_int_equal(carrier_send(t, 1, v, 40), TRUNK_BURST);
    assert_int_equal(t->peer[1].by_port.sent, 2 + TRUNK_BURST);
    fake_clear(&port);
    for (unsigned i = 0; i < 40; i++) /* what finds no room has come back */
        assert_int_equal(carrier_send(t, 1, v, 1), 1);
}

/* A message that is taken says that its sender's port is heard. Others use the network, too, and short frames are
 * padded; what is cut is counted. */
static void what_is_for_others_is_passed_over(void **state)
{
    struct trunk *t = w.t[0];
    (void)state;

    get_to_know();
    still_ns = clock_mono_ns() + MS;
    assert_true(arrives(0, 0xa0, 0));
    assert_int_equal(t->peer[1].by_port.heard_ns, still_ns);
    assert_int_equal(t->peer[1].by_port.received, 1);
    assert_true(arrives(0, 0xa0, 20));
    assert_false(arrives(0, 0xff, 0));
    assert_false(arrives(5, 0xff, 0));
    assert_false(arrives(12, 0x08, 0));
    for (unsigned r = 0; r < TRUNK_REFUSALS; r++)
        assert_int_equal(t->refused[r], 0);
    assert_false(arrives(0, 0xa0, -1));
    assert_int_equal(t->refused[TRUNK_SHORT], 1);
    assert_false(
        arrives(15, 0, -(int)(sizeof(struct trunk_header) + 8))); /* nothing but a header, */
    assert_int_equal(t->refused[TRUNK_SHORT], 2);
    assert_false(arrives(0, 0xa0, -(int)(sizeof(struct trunk_header) + 9))); /* and not even that */
    assert_int_equal(t->refused[TRUNK_SHORT], 2);
    assert_int_equal(t->peer[1].by_port.received, 2);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_first_device_that_opens_is_used, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_port_udp_carries_all, setup, teardown),
        CASE(probes_let_the_others_hear_the_port),
        CASE(a_machine_is_reached_that_says_that_it_hears),
        CASE(a_port_that_is_heard_no_more_is_not_used),
        CASE(after_a_pause_udp_takes_the_first_frames),
        CASE(an_idle_port_is_looked_at_more_seldom),
        CASE(messages_go_by_the_port),
        CASE(what_is_for_others_is_passed_over),
    };

    test_eal_init();
    pool = test_pool(255);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
