/* SPDX-License-Identifier: BSD-3-Clause */
/* What a trunk says of itself and of the other machines, whole, and the orders that come by its telemetry. */
#include "tests/io/trunk/machines.h"

#include "tests/io/told.h"

static struct trunk *t;
static unsigned pauses;
static void (*on_pause)(void);

/* A pause lets time pass. */
int usleep(useconds_t us)
{
    ahead_ns += 1000ll * us;
    pauses++;
    if (on_pause)
        on_pause();
    return 0;
}

static json_t *ask(const char *cmd, const char *params)
{
    int rc;
    json_t *v = told_by(cmd, params, &rc);

    assert_int_equal(rc, 0);
    return v;
}

static int begin(void **state)
{
    setup(state);
    t = w.t[0];
    for (unsigned i = 0; i < MACHINES; i++) {
        memset(&t->peer[i].follow, 0, sizeof(t->peer[i].follow));
        t->peer[i].far = false;
    }
    memset(t->refused, 0, sizeof(t->refused));
    trunk_telemetry(t);
    on_pause = NULL;
    w.n_kept = 0;
    w.cut = true;
    return 0;
}

static int end(void **state)
{
    trunk_telemetry(NULL);
    return teardown(state);
}

/* ---- machines ---- */

static void it_says_who_is_there(void **state)
{
    static const struct told_row rows[] = {
        {"/trib/machines", NULL,
         "{\"machine\":\"m0\",\"clock\":\"m2\",\"frames_by\":\"udp\",\"clock_unsure_ns\":99,\"m1\":"
         "\"there\",\"m2\":\"there\",\"refused_short\":11,\"refused_foreign\":12,\"refused_"
         "version\":13,\"refused_forged\":14,\"refused_stale\":15,\"refused_replayed\":16,"
         "\"refused_body\":17}",
         false},
        {"/trib/machines", "m2", "{\"state\":\"there\",\"links\":1}", true},
        {"/trib/machines", "m0", "{\"state\":\"this one\"}", true},
        {"/trib/machines", "m", "{\"error\":\"no such machine\"}", false},
        {"/trib/machines", "m3", "{\"error\":\"no such machine\"}", false},
    };
    struct trunk_end *e;
    json_t *v;
    (void)state;

    for (unsigned i = 0; i < TRUNK_REFUSALS; i++)
        t->refused[i] = 10 + i;
    for (unsigned i = 0; i < t->n_ends; i++)
        if (t->end[i].peer == 1) {
            e = &t->end[i];
            e->sent = 1, e->received = 2, e->again = 3, e->overflow = 4;
        }
    t->peer[1].by_port.sent = 6;
    t->peer[1].by_port.received = 7;
    t->peer[1].follow.point[0] = (struct follow_point){clock_mono_ns(), -5000000, 400};
    t->peer[1].follow.n = t->peer[1].follow.next = 1;
    atomic_store(&t->sh->own_clock->unsure_ns, 99);
    t->owner = 2;
    TOLD_ROWS(ask, rows);
    v = ask("/trib/machines", "m1"); /* half of the way, and what a quartz is off by since */
    assert_in_range(json_integer_value(json_object_get(v, "unsure_ns")), 200, 5000000);
    json_object_del(v, "unsure_ns");
    assert_string_equal(
        told_text(v),
        "{\"state\":\"there\",\"links\":1,\"links_up\":0,\"frames_sent\":1,\"frames_received\":2,"
        "\"frames_sent_again\":3,\"frames_overflow\":4,\"send_failed\":0,\"port_sent\":6,"
        "\"port_received\":7,\"offset_us\":-5000,\"drift_ppb\":0}");
    json_decref(v);
}

static const char *state_of(unsigned machine)
{
    static char text[64];
    char name[8];
    json_t *v;

    snprintf(name, sizeof(name), "m%u", machine);
    v = ask("/trib/machines", name);
    snprintf(text, sizeof(text), "%s", json_string_value(json_object_get(v, "state")));
    json_decref(v);
    return text;
}

static void it_says_why_a_machine_cannot_be_used(void **state)
{
    struct trunk_peer *p = &t->peer[1];
    (void)state;

    assert_string_equal(state_of(0), "this one");
    assert_string_equal(state_of(1), "there");
    p->send_failed = 1;
    assert_string_equal(state_of(1), "there, with errors of sending");
    p->far = true;
    assert_string_equal(state_of(1), "its clock is not set yet");
    p->other_conf = true;
    assert_string_equal(state_of(1), "has another conf");
    machine_die(1);
    w.cut = false;
    pass(TRUNK_SILENT_NS + 200 * MS);
    assert_string_equal(state_of(1), "not there");
    p->odd = true;
    assert_string_equal(state_of(1), "says what cannot be");
}

/* ---- the clock ---- */

static void the_dilation_is_changed_by_who_has_the_clock(void **state)
{
    static const char wrong[] = "{\"error\":\"expected a dilation of 1 to 4294967295\"}";
    static const struct told_row rows[] = {
        {"/trib/dilation", NULL, "{\"dilation\":100}", false},
        {"/trib/dilation", "", "{\"dilation\":100}", false},
        {"/trib/dilation", "0", wrong, false},
        {"/trib/dilation", "x", wrong, false},
        {"/trib/dilation", "5x", wrong, false},
        {"/trib/dilation", "-5", wrong, false},
        {"/trib/dilation", "4294967296", wrong, false},
        {"/trib/dilation", "7", "{\"dilation\":7}", false},
        {"/trib/dilation", "4294967295", "{\"dilation\":4294967295}", false},
    };
    int64_t before = clock_mono_ns();
    (void)state;

    TOLD_ROWS(ask, rows);
    assert_true(clock_mono_ns() - before >= 2 * 150 * MS); /* the others have to hear of it */
    assert_true(clock_state_of(t->sh->clock).change_ns <= clock_mono_ns());
}

/* Asked again each 200 ms, for a second. */
static void the_owner_of_the_clock_is_asked(void **state)
{
    uint32_t dilation;
    unsigned n = 0;
    json_t *v;
    (void)state;

    t->owner = 2;
    v = ask("/trib/dilation", "5");
    assert_string_equal(told_text(v), "{\"dilation\":100}");
    json_decref(v);
    deliver();
    for (unsigned i = 0; i < w.n_kept; i++) {
        if (w.kept[i].type != TRUNK_DILATE)
            continue;
        assert_int_equal(w.kept[i].to, 2);
        memcpy(&dilation, w.kept[i].m + sizeof(struct trunk_header), sizeof(dilation));
        assert_int_equal(be32toh(dilation), 5);
        n++;
    }
    assert_in_range(n, 5, 6); /* the last one as the second ends */
}

/* ---- orders ---- */

static unsigned orders(enum trunk_what what, const char *text)
{
    unsigned n = 0;

    deliver();
    for (unsigned i = 0; i < w.n_kept; i++) {
        const struct datagram *d = &w.kept[i];
        const uint8_t *body = d->m + sizeof(struct trunk_header);
        struct trunk_order o;

        if (d->type != TRUNK_ORDER)
            continue;
        memcpy(&o, body, sizeof(o));
        assert_int_equal(be32toh(o.what), what);
        assert_int_equal(d->bytes, sizeof(struct trunk_header) + sizeof(o) + strlen(text));
        assert_memory_equal(body + sizeof(o), text, strlen(text));
        n++;
    }
    w.n_kept = 0;
    return n;
}

static void a_change_of_a_link_goes_to_all(void **state)
{
    static const struct told_row rows[] = {
        {"/trib/link", NULL, "[]", false},
        {"/trib/link", "s0-s1", "[]", false},
        {"/trib/link", "s1-s2,nonsense",
         "{\"error\":\"found nonsense, expected down, up, clear, rate=, latency=, loss=, dup=, "
         "reorder=, corrupt=, jitter= or seed=\"}",
         false},
        {"/trib/link", "s1-s2,rate=900Gb/s",
         "{\"error\":\"rate: found 900Gb/s, expected at most the conf's 100Gb/s, or PFC's headroom "
         "is too small\"}",
         false},
        {"/trib/link", "all,rate=900Gb/s",
         "{\"error\":\"rate: found 900Gb/s, expected at most the conf's 100Gb/s, or PFC's headroom "
         "is too small (h0:0-s0:0)\"}",
         false},
    };
    static const struct told_row told[] = {
        {"/trib/link", "s1-s2,down",
         "[\"s1:2-s2:1: told machines m1 and m2, which have its ends\"]", false},
        {"/trib/link", "s0-s1,down", "{\"elsewhere\":\"told the other machines\"}", false},
        {"/trib/link", "all,down", "{\"elsewhere\":\"told the other machines\"}", false},
        {"/trib/link", "h9-s9,down", "{\"elsewhere\":\"told the other machines\"}", false},
        {"/trib/down", NULL, "{\"told\":\"the other machines\"}", false},
    };
    static const char *const texts[] = {"s1-s2,down", "s0-s1,down", "all,down", "h9-s9,down", ""};
    char params[TRUNK_ORDER_TEXT + 8];
    (void)state;

    TOLD_ROWS(ask, rows);
    assert_int_equal(orders(TRUNK_LINK, ""), 0);
    for (unsigned i = 0; i < RTE_DIM(told); i++) {
        told_rows(ask, &told[i], 1);
        assert_int_equal(orders(i < 4 ? TRUNK_LINK : TRUNK_DOWN, texts[i]), 2);
        assert_int_equal(t->given.left, 4);
    }
    for (unsigned i = 4; i > 0; i--) { /* it is said five times in all */
        orders_tick(t);
        assert_int_equal(orders(TRUNK_DOWN, ""), 2);
        assert_int_equal(t->given.left, i - 1);
    }
    orders_tick(t);
    assert_int_equal(orders(TRUNK_DOWN, ""), 0);
    for (unsigned n = TRUNK_ORDER_TEXT - 1; n <= TRUNK_ORDER_TEXT; n++) { /* the longest */
        unsigned ups = n == TRUNK_ORDER_TEXT ? 4 : 2;

        strcpy(params, "s0-s1");
        while (strlen(params) + 3 * ups < n)
            strcat(params, ",down");
        while (ups--)
            strcat(params, ",up");
        assert_int_equal(strlen(params), n);
        json_decref(ask("/trib/link", params));
        assert_int_equal(t->given.bytes, TRUNK_ORDER_TEXT - 1);
        while (recv(w.wire[1], params, sizeof(params), MSG_DONTWAIT) > 0 ||
               recv(w.wire[2], params, sizeof(params), MSG_DONTWAIT) > 0)
            ;
    }
}

/* ---- bytes of links ---- */

/* The answers of m1 arrive at the third look. */
static void told(void)
{
    if (pauses % 3)
        return;
    for (unsigned d = 0; d < 12; d++)
        if (d == 2 || d == 3 || d == 7 || d == 8) {
            t->counts.as_of[d] = t->counts.number;
            t->counts.bytes[d] = 100 + d;
        }
}

static void it_asks_the_others_what_links_carry(void **state)
{
    int64_t before;
    unsigned n = 0;
    json_t *v;
    (void)state;

    on_pause = told;
    pauses = 0;
    t->peer[2].far = true; /* who cannot be used has sent nothing */
    before = clock_mono_ns();
    v = ask("/trib/link_bytes", NULL);
    assert_string_equal(told_text(v), "[2,102,3,103,4,0,5,0,7,107,8,108,9,0,10,0]");
    json_decref(v);
    assert_int_equal(pauses, 3);
    assert_true(clock_mono_ns() - before < 100 * MS);
    deliver();
    for (unsigned i = 0; i < w.n_kept; i++)
        n += w.kept[i].type == TRUNK_COUNT && w.kept[i].to == 1;
    assert_int_equal(n, 1);
    v = ask("/trib/link_bytes", "7"); /* a later page asks nobody */
    assert_string_equal(told_text(v), "[7,107,8,108,9,0,10,0]");
    json_decref(v);
    assert_int_equal(t->counts.number, 1);
    on_pause = NULL;
    v = ask("/trib/link_bytes", "0");
    assert_string_equal(told_text(v), "[4,0,5,0,9,0,10,0]"); /* what nobody has said is left out */
    json_decref(v);
    assert_int_equal(t->counts.number, 2);
    assert_true(clock_mono_ns() - before >= S && clock_mono_ns() - before < 2 * S);
}

static void what_clients_ask_every_process_is_empty_here(void **state)
{
    static const char *const lists[] = {"/trib/nodes", "/trib/ports",     "/trib/links",
                                        "/trib/an",    "/trib/offenders", "/trib/table/kinds"};
    static const char *const tables[] = {"/trib/table/ports", "/trib/table/groups",
                                         "/trib/table/slots", "/trib/table/lag"};
    json_t *v;
    int rc;
    (void)state;

    for (unsigned i = 0; i < RTE_DIM(lists); i++) {
        v = ask(lists[i], i % 2 ? "x" : NULL);
        assert_string_equal(told_text(v), "[]");
        json_decref(v);
    }
    for (unsigned i = 0; i < RTE_DIM(tables); i++) {
        v = ask(tables[i], NULL);
        assert_int_equal(json_array_size(v), 3);
        assert_true(json_integer_value(json_array_get(v, 0)) <= clock_fabric_ps(t->sh));
        assert_true(json_integer_value(json_array_get(v, 0)) > 0);
        assert_int_equal(json_integer_value(json_array_get(v, 1)), 0);
        assert_int_equal(json_integer_value(json_array_get(v, 2)), 1);
        json_decref(v);
    }
    v = ask("/trib/totals", NULL);
    assert_string_equal(told_text(v), "{}");
    json_decref(v);
    trunk_telemetry(NULL);
    assert_null(told_by("/trib/nodes", NULL, &rc));
    assert_int_equal(rc, -ENOENT);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(it_says_who_is_there),
        CASE(it_says_why_a_machine_cannot_be_used),
        CASE(the_dilation_is_changed_by_who_has_the_clock),
        CASE(the_owner_of_the_clock_is_asked),
        CASE(a_change_of_a_link_goes_to_all),
        CASE(it_asks_the_others_what_links_carry),
        CASE(what_clients_ask_every_process_is_empty_here),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
