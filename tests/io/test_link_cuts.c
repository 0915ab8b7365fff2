/* SPDX-License-Identifier: BSD-3-Clause */
/* Links that count as cut: what this process says of those that it sees, what is true where two say something, and
 * what programs of a host see of its port. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "machine/port_state.h"
#include "switch/net/net_priv.h"
#include "tests/io/one_loop.h"

static const char conf[] = "name = \"cuts\"; slots_per_host = 1;"
                           "nodes = ( { name = (\"h0\", \"h1\"); kind = \"host\"; },"
                           " { name = (\"s0\", \"s1\"); kind = \"switch\"; } );"
                           "link_defaults = { rate = \"100Gb/s\"; latency = \"300ns\"; };"
                           "links = ( { a = \"s0\"; b = \"h0\"; }, { a = \"h1\"; b = \"s1\"; }, { "
                           "a = \"s0\"; b = \"s1\"; } );";

enum { H0, H1, BETWEEN }; /* links */

static struct switch_page far; /* of the other process */

/* This process runs h0 and s0. */
static int setup(void **state)
{
    (void)state;
    one_loop_open(conf, "h0 s0 ", 10);
    memset(&far, 0, sizeof(far));
    far.runs[node_of("h1")] = far.runs[node_of("s1")] = 1;
    shared_add(o.l->sh, "far", 77, &far, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    o.l->sh->n_sw--;
    return one_loop_close();
}

/* What sysfs shows of a host's port; "": there is no such file. */
static const char *shown(const char *host)
{
    static char text[16];
    char path[RUN_PATH + 160], dir[128];
    FILE *f;

    port_state_dir(dir, sizeof(dir), host, 0);
    snprintf(path, sizeof(path), "%s/%s/state", o.rd.path, dir);
    f = fopen(path, "r");
    *text = '\0';
    if (f && !fgets(text, sizeof(text), f))
        *text = '\0';
    if (f)
        fclose(f);
    text[strcspn(text, "\n")] = '\0';
    return text;
}

/* ---- what programs see ---- */

static void a_port_is_down_while_its_link_is(void **state)
{
    struct switch_page *own = o.l->page;
    (void)state;

    assert_int_equal(port_state_make(&o.rd, "h0", 0), 0);
    cuts_show_port(o.l, H0);
    assert_string_equal(shown("h0"), "4: ACTIVE");
    atomic_store(&own->link_down[H0], 1);
    cuts_show_port(o.l, H0);
    assert_string_equal(shown("h0"), "1: DOWN");
    atomic_store(&own->link_down[H0], 0);
    atomic_store(&own->cut[H0], 9 << 1 | 1);
    cuts_show_port(o.l, H0);
    assert_string_equal(shown("h0"), "1: DOWN");
    atomic_store(&own->cut[H0], 10 << 1);
    cuts_show_port(o.l, H0);
    assert_string_equal(shown("h0"), "4: ACTIVE");
    assert_string_equal(shown("h1"), "");
}

/* Files of a port that is up are made by who runs its programs. */
static void files_are_made_for_a_port_that_is_down(void **state)
{
    (void)state;
    cuts_show_port(o.l, H0);
    assert_string_equal(shown("h0"), "");
    atomic_store(&o.l->page->link_down[H0], 1);
    cuts_show_port(o.l, H0);
    assert_string_equal(shown("h0"), "1: DOWN");
}

/* A host of another process: that one says when its port is up again, and we when the process has gone. */
static void the_process_of_the_host_says_that_it_is_up(void **state)
{
    (void)state;
    cuts_state(o.l, H1, true);
    assert_string_equal(shown("h1"), "1: DOWN");
    cuts_state(o.l, H1, false);
    assert_string_equal(shown("h1"), "1: DOWN");
    assert_string_equal(shown("h0"), "");
    o.l->cfg.mine = NULL; /* one process runs all */
    cuts_state(o.l, H1, false);
    assert_string_equal(shown("h1"), "4: ACTIVE");
}

/* A device outside has a port of its own. */
static void nothing_is_shown_of_a_host_outside(void **state)
{
    (void)state;
    o.fab->nodes[node_of("h1")].outside = true;
    cuts_state(o.l, H1, true);
    assert_string_equal(shown("h1"), "");
    o.fab->nodes[node_of("h1")].outside = false;
}

/* ---- what processes say ---- */

static void a_cut_is_stated_with_its_time(void **state)
{
    struct switch_page *own = o.l->page;
    uint32_t cuts = own->cuts;
    (void)state;

    cuts_state(o.l, BETWEEN, true);
    assert_int_equal(own->cut[BETWEEN], (uint64_t)now_ns << 1 | 1);
    assert_int_equal(own->cuts, cuts + 1);
    now_ns += MS;
    cuts_state(o.l, BETWEEN, false);
    assert_int_equal(own->cut[BETWEEN], (uint64_t)now_ns << 1);
    assert_int_equal(own->cuts, cuts + 2);
    assert_int_equal(own->cut[H0], 0);
}

/* The net takes them when the sum of all processes' changes is another one. */
static void the_later_statement_is_taken(void **state)
{
    static const struct {
        uint64_t own_ns, far_ns;
        bool own, far, cut;
    } rows[] = {
        {5, 6, true, false, false}, {6, 5, true, false, true},   {6, 5, false, true, false},
        {5, 6, false, true, true},  {0, 0, false, false, false}, {0, 7, false, true, true},
        {9, 8, true, true, true},   {9, 10, true, false, false},
    };
    (void)state;

    for (unsigned i = 0; i < RTE_DIM(rows); i++) {
        bool before = o.l->cut[BETWEEN];

        o.l->page->cut[BETWEEN] = rows[i].own_ns << 1 | rows[i].own;
        far.cut[BETWEEN] = rows[i].far_ns << 1 | rows[i].far;
        o.l->cuts = o.l->page->cuts + far.cuts;
        cuts_take(o.l, now_ps());
        assert_int_equal(o.l->cut[BETWEEN], before); /* nobody has said that it changed */
        far.cuts++;
        cuts_take(o.l, now_ps());
        assert_int_equal(o.l->cut[BETWEEN], rows[i].cut);
        assert_int_equal(o.l->cuts, o.l->page->cuts + far.cuts);
        assert_int_equal(o.l->net->cut[BETWEEN], rows[i].cut);
        assert_false(o.l->cut[H0] || o.l->cut[H1]);
    }
}

/* A link at whose ends there is nobody here, too: the last of the conf as the first. */
static void every_link_is_looked_at(void **state)
{
    (void)state;
    for (unsigned i = 0; i < o.fab->n_links; i++) {
        far.cut[i] = (uint64_t)now_ns << 1 | 1;
        far.cuts++;
        cuts_take(o.l, now_ps());
        for (unsigned k = 0; k < o.fab->n_links; k++)
            assert_int_equal(o.l->cut[k], k <= i);
    }
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_port_is_down_while_its_link_is),
        CASE(files_are_made_for_a_port_that_is_down),
        CASE(the_process_of_the_host_says_that_it_is_up),
        CASE(nothing_is_shown_of_a_host_outside),
        CASE(a_cut_is_stated_with_its_time),
        CASE(the_later_statement_is_taken),
        CASE(every_link_is_looked_at),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
