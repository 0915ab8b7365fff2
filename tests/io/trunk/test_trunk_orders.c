/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders of one machine to all: how often they are said, that each is carried out once, and what that is: the
 * switch processes here change a link, or the keeper ends them. */
#include "tests/io/trunk/machines.h"

#include "fabric/link_terms.h"
#include "tests/support/far_telemetry.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

static struct trunk *t;
static struct far_telemetry process, stranger;
static pthread_mutex_t asked_lock = PTHREAD_MUTEX_INITIALIZER;
static char asked[TRUNK_ORDER_TEXT + 64]; /* the last question of the process here */
static unsigned n_asked, n_strange, n_kills;

/* ---- the keeper ---- */

/* This process is its own parent, whose name the test sets. */
pid_t getppid(void)
{
    return getpid();
}

int kill(pid_t pid, int sig)
{
    assert_int_equal(pid, getpid());
    assert_int_equal(sig, SIGTERM);
    n_kills++;
    return 0;
}

/* ---- the switch processes ---- */

static void answer(void *ctx, const char *command, const char *what, char *text, size_t size)
{
    pthread_mutex_lock(&asked_lock);
    if (ctx == &process) {
        n_asked++;
        snprintf(asked, sizeof(asked), "%s %s", command, what);
    } else {
        n_strange++;
    }
    pthread_mutex_unlock(&asked_lock);
    snprintf(text, size, "[]");
}

static void begin_process(struct far_telemetry *p, unsigned i)
{
    p->answer = answer;
    p->ctx = p;
    strcpy(p->dir, w.rd.path);
    far_telemetry_begin(p, w.fab->procs[i].name);
}

static int begin(void **state)
{
    setup(state);
    t = w.t[0];
    assert_true(w.fab->procs[0].machine == 0 && w.fab->procs[1].machine == 1);
    begin_process(&process, 0);
    begin_process(&stranger, 1);
    n_asked = n_strange = n_kills = 0;
    w.n_kept = 0;
    w.cut = true;
    return 0;
}

static int end(void **state)
{
    char rm[2 * RUN_PATH + 64];

    far_telemetry_end(&process);
    far_telemetry_end(&stranger);
    snprintf(rm, sizeof(rm), "rm -rf %s/dpdk %s/proc/*.ready", w.rd.path, w.rd.path);
    assert_int_equal(system(rm), 0);
    return teardown(state);
}

/* m1 gives an order. */
static void order(uint32_t number, uint32_t what, const char *text)
{
    uint8_t body[sizeof(struct trunk_order) + 2 * TRUNK_ORDER_TEXT];
    struct trunk_order o = {htobe32(number), htobe32(what)};

    memcpy(body, &o, sizeof(o));
    memcpy(body + sizeof(o), text, strlen(text));
    orders_heard(t, 1, body, sizeof(o) + strlen(text));
}

/* Waits until the process here has been asked so often. */
static void wait_asked(unsigned n)
{
    for (bool done = false; !done; sched_yield()) {
        pthread_mutex_lock(&asked_lock);
        done = n_asked >= n;
        pthread_mutex_unlock(&asked_lock);
    }
}

/* ---- carried out ---- */

static void a_change_goes_to_the_processes_here_once(void **state)
{
    (void)state;
    order(4, TRUNK_LINK, "s1-s2,rate=50Gb/s");
    wait_asked(1);
    assert_string_equal(asked, "/trib/link s1-s2,rate=50Gb/s");
    assert_int_equal(t->terms[4].rate_bps, 50000000000);
    assert_int_equal(t->peer[1].order, 4);
    order(4, TRUNK_LINK, "s1-s2,rate=40Gb/s");
    order(3, TRUNK_LINK, "s1-s2,rate=40Gb/s");
    assert_int_equal(t->terms[4].rate_bps, 50000000000);
    order(5, TRUNK_LINK, "s1-s2,down"); /* behind these, which come in order */
    wait_asked(2);
    assert_string_equal(asked, "/trib/link s1-s2,down");
    assert_int_equal(n_asked, 2);
    assert_int_equal(n_strange, 0);
    assert_int_equal(n_kills, 0);
}

static void who_runs_another_conf_orders_nothing(void **state)
{
    struct shared *sh = t->sh;
    (void)state;

    t->peer[1].other_conf = true;
    order(4, TRUNK_LINK, "s1-s2,rate=50Gb/s");
    t->peer[1].other_conf = false;
    t->sh = NULL; /* clocks are not agreed on */
    order(4, TRUNK_LINK, "s1-s2,rate=50Gb/s");
    t->sh = sh;
    assert_int_equal(t->peer[1].order, 0);
    assert_int_equal(t->terms[4].rate_bps, 100000000000);
    order(4, 7, "s1-s2,rate=50Gb/s"); /* no such order */
    assert_int_equal(t->peer[1].order, 4);
    assert_int_equal(t->terms[4].rate_bps, 100000000000);
    assert_int_equal(n_kills, 0);
}

/* So much of a text that is too long. */
static void a_text_has_an_end(void **state)
{
    char text[TRUNK_ORDER_TEXT + 8];
    (void)state;

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    order(1, TRUNK_LINK, text);
    wait_asked(1);
    assert_int_equal(strspn(asked + strlen("/trib/link "), "x"),
                     RTE_MIN((unsigned)TRUNK_ORDER_TEXT, 511 - (unsigned)strlen("/trib/link ")));
}

/* A keeper ends its fabric; who started the processes by hand does that. */
static void the_fabric_is_taken_down_by_its_keeper(void **state)
{
    static const struct {
        const char *parent;
        unsigned kills;
    } rows[] = {{"trib-kee", 0}, {"trib-keep", 1}, {"bash", 1}, {"trib-keeper", 2}};
    char was[16];
    (void)state;

    prctl(PR_GET_NAME, was);
    for (unsigned i = 0; i < RTE_DIM(rows); i++) {
        prctl(PR_SET_NAME, rows[i].parent);
        order(1 + i, TRUNK_DOWN, "");
        assert_int_equal(n_kills, rows[i].kills);
    }
    prctl(PR_SET_NAME, was);
    assert_int_equal(n_asked, 0);
}

/* ---- said ---- */

/* Orders that have gone out since the last look, to m1 and m2; the number of the last. */
static unsigned said(unsigned machine, uint32_t *number)
{
    unsigned n = 0;

    deliver();
    for (unsigned i = 0; i < w.n_kept; i++) {
        struct trunk_order o;

        if (w.kept[i].type != TRUNK_ORDER || w.kept[i].to != machine)
            continue;
        memcpy(&o, w.kept[i].m + sizeof(struct trunk_header), sizeof(o));
        *number = be32toh(o.number);
        n++;
    }
    return n;
}

/* To who is there, whether its clock is right or not; a later order takes the place of one before. */
static void an_order_is_said_five_times(void **state)
{
    uint32_t number = 0;
    (void)state;

    t->peer[1].far = true;
    t->peer[2].session.mine = 0;
    orders_tick(t);
    assert_int_equal(said(1, &number), 0);
    orders_give(t, TRUNK_LINK, "s1-s2,down");
    orders_tick(t);
    assert_int_equal(said(1, &number), 2);
    assert_int_equal(number, 1);
    orders_give(t, TRUNK_LINK, "s1-s2,up");
    for (unsigned i = 0; i < 7; i++)
        orders_tick(t);
    assert_int_equal(said(1, &number), 2 + 5);
    assert_int_equal(number, 2);
    assert_int_equal(said(2, &number), 0);
}

/* ---- whether links may be changed so ---- */

static int check(const char *params, char *why)
{
    strcpy(why, "");
    return orders_check(t, params, why, 192);
}

static void terms_of_links_are_checked_and_kept(void **state)
{
    const uint64_t gb = 1000000000;
    char why[192];
    (void)state;

    assert_int_equal(check("all,rate=50Gb/s", why), 0);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(t->terms[i].rate_bps, 50 * gb);
    assert_int_equal(check("s0-s1,rate=60Gb/s,latency=400ns", why),
                     0); /* longer, as it is slower */
    assert_int_equal(t->terms[3].rate_bps, 60 * gb);
    assert_int_equal(t->terms[3].latency_ps, 400000);
    assert_int_equal(t->terms[2].rate_bps, 50 * gb);
    assert_int_equal(t->terms[4].rate_bps, 50 * gb);
    assert_int_equal(check("s0-s1,rate=100Gb/s", why), -22); /* with the latency that it has now */
    assert_non_null(strstr(why, "latency"));
    assert_null(strstr(why, "(s0"));
    assert_int_equal(t->terms[3].rate_bps, 60 * gb);
    assert_int_equal(check("all,rate=100Gb/s", why), -22);
    assert_non_null(strstr(why, "(s0:1-s1:1)"));
    for (unsigned i = 0; i < 6; i++) /* of a change that is refused nothing is made */
        assert_int_equal(t->terms[i].rate_bps, (i == 3 ? 60 : 50) * gb);
    assert_int_equal(check("s0-s1,clear", why), 0);
    assert_int_equal(t->terms[3].rate_bps, 100 * gb);
    assert_int_equal(t->terms[3].latency_ps, 300000);
    assert_int_equal(check("s0-s1", why), 0);
    assert_int_equal(check("s9-s1,nonsense", why), 0); /* for the processes here to refuse */
    assert_int_equal(check("s0-s1,nonsense", why), -22);
    assert_non_null(strstr(why, "found nonsense"));
}

/* A link to the outside keeps its terms: of all it is passed over, by its own name it is refused. */
static void links_to_the_outside_keep_their_terms(void **state)
{
    struct fab_link *l = &w.fab->links[0];
    char why[192];
    (void)state;

    w.fab->nodes[l->a].outside = true;
    assert_int_equal(check("all,rate=50Gb/s", why), 0);
    assert_int_equal(t->terms[0].rate_bps, 100000000000);
    assert_int_equal(t->terms[1].rate_bps, 50000000000);
    assert_int_equal(check("h0-s0,rate=50Gb/s", why), -22);
    assert_int_equal(t->terms[0].rate_bps, 100000000000);
    w.fab->nodes[l->a].outside = false;
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(a_change_goes_to_the_processes_here_once),
        CASE(who_runs_another_conf_orders_nothing),
        CASE(a_text_has_an_end),
        CASE(the_fabric_is_taken_down_by_its_keeper),
        CASE(an_order_is_said_five_times),
        CASE(terms_of_links_are_checked_and_kept),
        CASE(links_to_the_outside_keep_their_terms),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
