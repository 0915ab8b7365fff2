/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a machine takes from another: of the present session, once. Everything that one says to another is
 * sent again by somebody without the key at any later time.
 */
#include "tests/io/trunk/machines.h"

/* ---- what m1 says to m0, and what can be seen of it there ---- */

static void say(unsigned from, unsigned type, const void *body, size_t bytes)
{
    uint8_t m[sizeof(struct trunk_header) + 256] = {0};

    assert_true(bytes <= 256);
    memcpy(trunk_body(m), body, bytes);
    peers_send(w.t[from], 0, type, m, sizeof(struct trunk_header) + bytes);
}

/* One message of each type but those that open a session; they differ from round to round. */
static void say_all(unsigned from, unsigned round)
{
    struct trunk_frame f = {.link = htobe32(3), .number = htobe32(round)};
    struct trunk_ack a = {.link = htobe32(3), .next = htobe32(round)};
    uint8_t frame[sizeof(f) + 64] = {0}, cuts = (uint8_t)(round % 2 ? 1u << 4 : 0);
    struct trunk_lag lag = {htobe16(7), htobe16(3)};
    uint32_t dilation = htobe32(100 + round), zero[8] = {0};
    struct trunk_order order = {htobe32(round + 1), htobe32(99)};
    struct trunk_counts ask = {htobe32(round + 1)};
    struct {
        struct trunk_counts c;
        struct trunk_count n;
    } __attribute__((packed)) counts = {{htobe32(round + 1)}, {htobe32(3), htobe64(1000 + round)}};

    memcpy(frame, &f, sizeof(f));
    say(from, TRUNK_FRAME, frame, sizeof(frame));
    say(from, TRUNK_ASK, &f, sizeof(f));
    say(from, TRUNK_ACK, &a, sizeof(a));
    say(from, TRUNK_CUTS, &cuts, 1);
    say(from, TRUNK_LAG, &lag, sizeof(lag));
    say(from, TRUNK_DILATE, &dilation, sizeof(dilation));
    say(from, TRUNK_ORDER, &order, sizeof(order));
    say(from, TRUNK_COUNT, &ask, sizeof(ask));
    say(from, TRUNK_COUNTS, &counts, sizeof(counts));
    say(from, TRUNK_PROBE, zero, sizeof(zero));
    peers_say(w.t[from]);
    deliver();
}

struct seen {
    struct {
        bool alive, usable, other_conf, other_version, far, noted;
        uint64_t mine, theirs, received;
        struct trunk_state state;
        struct trunk_window window;
        int64_t proven_ns, state_ns;
        uint32_t order;
        uint8_t ends, cuts, mac[6];
        uint64_t points;
    } peer[MACHINES];
    uint64_t cut[6], lag, bytes[12], asked, late;
    uint32_t cuts, as_of[12], dilation;
    unsigned owner, asker;
};

static struct seen look(void)
{
    const struct trunk *t = w.t[0];
    struct seen s;

    memset(&s, 0, sizeof(s));
    for (unsigned i = 1; i < MACHINES; i++) {
        const struct trunk_peer *p = &t->peer[i];

        s.peer[i].alive = peer_alive(p);
        s.peer[i].usable = peer_usable(p);
        s.peer[i].other_conf = p->other_conf;
        s.peer[i].other_version = p->other_version;
        s.peer[i].far = p->far;
        s.peer[i].noted = p->noted;
        s.peer[i].mine = p->session.mine;
        s.peer[i].theirs = p->session.theirs;
        s.peer[i].received = p->received;
        s.peer[i].state = p->state;
        s.peer[i].window = p->session.window;
        s.peer[i].proven_ns = p->proven_ns;
        s.peer[i].state_ns = p->state_ns;
        s.peer[i].order = p->order;
        s.peer[i].ends = p->ends[0];
        s.peer[i].cuts = p->cuts[0];
        memcpy(s.peer[i].mac, p->by_port.mac, sizeof(s.peer[i].mac));
        s.peer[i].points = p->follow.n;
    }
    for (unsigned i = 0; i < 6; i++)
        s.cut[i] = atomic_load(&t->sh->own->cut[i]);
    for (unsigned i = 0; i < LAG_BUCKETS; i++)
        s.lag += atomic_load(&t->sh->own->lag.n[i]);
    for (unsigned i = 0; i < 12; i++) {
        s.bytes[i] = t->counts.bytes[i];
        s.as_of[i] = t->counts.as_of[i];
    }
    for (unsigned i = 0; i < LATENESS_SLICES; i++)
        s.late += atomic_load(&t->sh->own->loop.slice[i]);
    s.cuts = atomic_load(&t->sh->own->cuts);
    s.asked = t->counts.asked;
    s.asker = t->counts.asker;
    s.owner = t->owner;
    s.dilation = clock_state_of(t->sh->clock).dilation;
    return s;
}

/* Every datagram of [from, to) again, to whom it was sent: nothing is to be seen of it, and m0 says nothing
 * but for questions, whose answers nobody takes. */
static void again(unsigned from, unsigned to)
{
    struct seen before = look(), after;

    for (unsigned k = from; k < to; k++) {
        const struct datagram d = w.kept[k];
        uint64_t sessions[MACHINES] = {0};

        for (unsigned i = 0; w.t[d.to] && i < MACHINES; i++)
            sessions[i] = w.t[d.to]->peer[i].session.mine;
        if (hear(&d) && d.type != TRUNK_HELLO)
            fail_msg("datagram %u, of type %u, to m%u counts again", k, d.type, d.to);
        for (unsigned i = 0; w.t[d.to] && i < MACHINES; i++)
            assert_true(sessions[i] == w.t[d.to]->peer[i].session.mine);
        ahead_ns += 2 * MS; /* that questions are not too many */
        deliver();
    }
    after = look();
    for (unsigned i = 1; i < MACHINES; i++) /* numbers below which none counts rise with time */
        after.peer[i].window.least = before.peer[i].window.least;
    assert_memory_equal(&before, &after, sizeof(before));
}

/* ---- cases ---- */

static void every_type_counts_once_in_its_session(void **state)
{
    (void)state;
    for (unsigned round = 1; round < 4; round++) {
        struct seen s;
        unsigned first = w.n_kept;

        say_all(1, round);
        s = look();
        assert_true(s.peer[1].alive);
        assert_int_equal(s.peer[1].order, round + 1);
        assert_int_equal(s.cut[4] & 1, round % 2 || !s.peer[2].usable);
        assert_int_equal(s.dilation, 100 + round);
        assert_int_equal(s.lag, 3 * round);
        assert_int_equal(s.bytes[3], 1000 + round);
        assert_int_equal(s.as_of[3], round + 1);
        again(first, w.n_kept);
        pass(400 * MS);
        again(first, first + 11);
    }
}

static void what_a_dead_machine_said_does_not_bring_it_back(void **state)
{
    unsigned to;
    (void)state;

    for (unsigned round = 0; round < 5; round++) {
        say_all(1, round);
        pass(30 * MS);
    }
    machine_die(1);
    pass(TRUNK_SILENT_NS + 200 * MS);
    assert_false(there(0, 1));
    assert_true(there(0, 2));
    to = w.n_kept;
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned from = 0; from < to; from += 40) {
            again(from, RTE_MIN(from + 40, to));
            pass(20 * MS);
        }
        assert_false(there(0, 1));
        pass(2 * S);
    }
}

static void what_was_said_in_earlier_lives_never_counts(void **state)
{
    (void)state;
    srand(6);
    for (unsigned life = 0; life < 8; life++) {
        unsigned to = w.n_kept;
        bool dies = life % 3 == 2;

        machine_die(life % 4 == 3 ? 2 : 1);
        if (dies)
            pass(TRUNK_SILENT_NS + 100 * MS);
        for (unsigned i = 1; i < MACHINES; i++)
            if (!w.t[i])
                machine_start(i);
        pass(2 * SESSION_FRESH_NS + 100 * MS);
        assert_true(there(0, 1) && there(0, 2) && there(1, 0) && there(2, 0));
        for (unsigned round = 0; round < 4; round++) {
            unsigned from = (unsigned)rand() % to;

            say_all(1, round);
            again(from, RTE_MIN(from + 150, to));
            pass(rand() % (200 * MS));
        }
        assert_true(there(0, 1) && there(0, 2) && there(1, 0) && there(2, 0));
    }
}

/* m0 starts anew, and the others with or without it. */
static void a_machine_that_starts_anew_takes_nothing_that_was_said_to_it(void **state)
{
    unsigned to;
    (void)state;

    for (unsigned round = 0; round < 4; round++) {
        say_all(1, round);
        pass(30 * MS);
    }
    for (unsigned turn = 0; turn < 3; turn++) {
        to = w.n_kept;
        machine_die(0);
        if (turn) /* both at once */
            machine_die(1);
        machine_start(0);
        again(0, to);
        if (turn == 2)
            pass(4 * S);
        if (turn)
            machine_start(1);
        pass(100 * MS);
        assert_true(there(0, 1) && there(1, 0));
        say_all(1, 1);
        again(0, to);
    }
}

/* Its last states were held back, and arrive one after the other. */
static void states_that_were_held_back_do_not_keep_a_machine_there(void **state)
{
    unsigned first, to;
    (void)state;

    pass(S);
    first = w.n_kept;
    w.cut = true;
    for (unsigned i = 0; i < 40; i++) { /* 2 s */
        peers_tick(w.t[1], clock_mono_ns());
        deliver();
        ahead_ns += 50 * MS;
    }
    to = w.n_kept;
    w.cut = false;
    machine_die(1);
    for (unsigned k = first; k < to; k++) {
        if (w.kept[k].to == 0 && w.kept[k].m[6] == 1)
            hear(&w.kept[k]);
        pass(100 * MS);
    }
    assert_true(to - first > 20);
    assert_false(there(0, 1));
}

static void a_state_that_was_overtaken_is_not_taken(void **state)
{
    struct datagram old;
    uint64_t sent;
    (void)state;

    w.cut = true;
    peers_say(w.t[1]);
    deliver();
    for (old = w.kept[w.n_kept - 1]; old.to; old = w.kept[--w.n_kept - 1])
        ;
    w.cut = false;
    peers_say(w.t[1]);
    deliver();
    sent = w.t[0]->peer[1].state.sent_ns;
    assert_true(hear(&old));
    assert_true(w.t[0]->peer[1].state.sent_ns == sent);
}

static void cuts_that_were_overtaken_are_not_taken(void **state)
{
    uint8_t one = 1u << 4, none = 0;
    struct datagram old;
    (void)state;

    w.cut = true;
    say(1, TRUNK_CUTS, &one, 1);
    deliver();
    old = w.kept[w.n_kept - 1];
    w.cut = false;
    say(1, TRUNK_CUTS, &none, 1);
    deliver();
    assert_true(hear(&old));
    assert_int_equal(w.t[0]->peer[1].cuts[0], 0);
}

/* Of a machine that has the key, too; each is counted. */
static void a_state_whose_times_cannot_be_is_not_taken(void **state)
{
    const uint64_t now = (uint64_t)clock_mono_ns() + S;
    const struct trunk_state bad[] = {
        {.sent_ns = 1ull << 63},
        {.sent_ns = now, .heard_ns = 1ull << 63},
        {.sent_ns = now, .has_clock = 1, .before = 1},
        {.sent_ns = now, .has_clock = 1, .before = 1, .dilation = 1, .change_ns = 1ull << 62},
        {.sent_ns = now, .has_clock = 1, .before = 1, .dilation = 1, .change_ps = INT64_MAX},
        {.sent_ns = 1ull << 60, .has_clock = 1, .before = 1, .dilation = 1},
        {.sent_ns = now, .has_clock = 1, .before = 1, .dilation = 1, .owner = MACHINES},
    };
    const uint64_t sent = w.t[0]->peer[1].state.sent_ns;
    (void)state;

    for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct trunk_state b = {.conf = htobe64(w.t[0]->conf),
                                .sent_ns = htobe64(bad[i].sent_ns),
                                .heard_ns = htobe64(bad[i].heard_ns),
                                .has_clock = htobe32(bad[i].has_clock),
                                .change_ns = htobe64(bad[i].change_ns),
                                .change_ps = htobe64(bad[i].change_ps),
                                .before = htobe32(bad[i].before),
                                .dilation = htobe32(bad[i].dilation),
                                .owner = htobe32(bad[i].owner)};

        say(1, TRUNK_STATE, &b, sizeof(b));
        deliver();
        assert_true(w.t[0]->peer[1].state.sent_ns == sent);
        assert_int_equal(w.t[0]->refused[TRUNK_BODY], i + 1);
    }
    say(1, TRUNK_CUTS, &sent, 2); /* of 16 links */
    deliver();
    assert_int_equal(w.t[0]->refused[TRUNK_BODY], sizeof(bad) / sizeof(*bad) + 1);
    assert_true(w.t[0]->peer[1].odd && there(0, 1));
}

/* Every type, late: when the session has ended, and in the next one. Each is counted as stale. */
static void what_arrives_after_its_session_has_ended_is_stale(void **state)
{
    unsigned first, to, n = 0;
    uint64_t stale;
    struct seen s;
    (void)state;

    say_all(1, 1);
    w.cut = true;
    first = w.n_kept;
    say_all(1, 2);
    to = w.n_kept;
    pass(TRUNK_SILENT_NS + 200 * MS); /* both ends have ended it, and live */
    assert_false(there(0, 1) || there(1, 0));
    for (unsigned round = 0; round < 2; round++) {
        stale = w.t[0]->refused[TRUNK_STALE];
        n = 0;
        s = look();
        for (unsigned k = first; k < to; k++)
            if (w.kept[k].to == 0 && w.kept[k].m[6] == 1) {
                struct seen is;

                assert_false(hear(&w.kept[k]));
                is = look();
                assert_memory_equal(&is, &s, sizeof(s));
                n++;
            }
        assert_true(n >= 11);
        assert_int_equal(w.t[0]->refused[TRUNK_STALE] - stale, n);
        assert_int_equal(w.t[0]->peer[1].order, 0);
        w.cut = false;
        pass(400 * MS);
        assert_true(there(0, 1) && there(1, 0));
    }
}

/* What it said of its links and its orders is of its session. */
static void a_new_session_begins_with_nothing(void **state)
{
    (void)state;
    say_all(1, 7);
    assert_int_equal(w.t[0]->peer[1].order, 8);
    assert_int_equal(w.t[0]->peer[1].cuts[0], 1u << 4);
    machine_die(1);
    machine_start(1);
    pass(100 * MS);
    assert_true(there(0, 1));
    assert_int_equal(w.t[0]->peer[1].order, 0);
    assert_int_equal(w.t[0]->peer[1].cuts[0], 0);
    say_all(1, 0); /* its first order */
    assert_int_equal(w.t[0]->peer[1].order, 1);
}

/* Older and newer ones; without the key it is nothing but a forgery. */
static void another_version_is_named_once(void **state)
{
    struct datagram d = {.to = 0, .bytes = sizeof(struct trunk_header) + 8};
    struct trunk_header h = {.magic = htobe32(TRUNK_MAGIC), .from = 1, .type = 1};
    struct trunk *t = w.t[0];
    struct seen s;
    (void)state;

    for (unsigned version = TRUNK_VERSION - 1; version <= TRUNK_VERSION + 1; version += 2) {
        h.version = (uint8_t)version;
        h.session = htobe64(version);
        memcpy(d.m, &h, sizeof(h));
        assert_true(trunk_seal_put(t->seal, d.m, d.bytes));
        t->refused[TRUNK_OTHER] = 0;
        s = look();
        assert_false(hear(&d)); /* who is there speaks ours */
        assert_false(t->peer[1].other_version);
        machine_die(1);
        pass(TRUNK_SILENT_NS + 200 * MS);
        s = look();
        assert_false(hear(&d));
        assert_true(t->peer[1].other_version);
        assert_false(there(0, 1));
        assert_int_equal(t->refused[TRUNK_OTHER], 2);
        d.m[sizeof(h)] ^= 1;
        assert_false(hear(&d));
        assert_int_equal(t->refused[TRUNK_OTHER], 2);
        t->peer[1].other_version = s.peer[1].other_version;
        again(0, 1);
        machine_start(1);
        pass(300 * MS);
        assert_true(there(0, 1));
    }
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(every_type_counts_once_in_its_session),
        CASE(what_a_dead_machine_said_does_not_bring_it_back),
        CASE(what_was_said_in_earlier_lives_never_counts),
        CASE(a_machine_that_starts_anew_takes_nothing_that_was_said_to_it),
        CASE(states_that_were_held_back_do_not_keep_a_machine_there),
        CASE(a_state_that_was_overtaken_is_not_taken),
        CASE(cuts_that_were_overtaken_are_not_taken),
        CASE(a_state_whose_times_cannot_be_is_not_taken),
        CASE(what_arrives_after_its_session_has_ended_is_stale),
        CASE(a_new_session_begins_with_nothing),
        CASE(another_version_is_named_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
