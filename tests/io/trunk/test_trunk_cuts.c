/* SPDX-License-Identifier: BSD-3-Clause */
/* Links that are cut: what the switch processes here say goes to the other machines, and what those say to the
 * processes here. */
#include "tests/io/trunk/machines.h"

static struct trunk *t;
static struct switch_page here[2]; /* of two switch processes of this machine */
static struct switch_page *own;

static int begin(void **state)
{
    setup(state);
    t = w.t[0];
    own = t->sh->own;
    memset(here, 0, sizeof(here));
    shared_add(t->sh, "one", 71, &here[0], NULL);
    shared_add(t->sh, "two", 72, &here[1], NULL);
    memset(t->cuts_sent, 0, 1);
    for (unsigned i = 1; i < MACHINES; i++) {
        t->peer[i].far = false;
        t->peer[i].cuts[0] = 0;
    }
    for (unsigned i = 0; i < w.fab->n_links; i++)
        atomic_store(&own->cut[i], 0);
    atomic_store(&own->cuts, 0);
    w.n_kept = 0;
    w.cut = true;
    still_ns = clock_mono_ns();
    return 0;
}

static int end(void **state)
{
    t->sh->n_sw -= 2;
    return teardown(state);
}

static void says(unsigned process, unsigned link, uint64_t at_ns, bool cut)
{
    atomic_store(&here[process].cut[link], at_ns << 1 | cut);
}

/* ---- to the others ---- */

/* What has gone to m1 and m2, each, since the last look: how many messages; *bits: the last one's. */
static unsigned said(unsigned *bits)
{
    unsigned n[MACHINES] = {0};

    deliver();
    for (unsigned i = 0; i < w.n_kept; i++) {
        const struct datagram *d = &w.kept[i];

        if (d->type != TRUNK_CUTS)
            continue;
        assert_int_equal(d->bytes, sizeof(struct trunk_header) + 1);
        *bits = d->m[sizeof(struct trunk_header)];
        n[d->to]++;
    }
    w.n_kept = 0;
    assert_int_equal(n[0], 0);
    assert_int_equal(n[1], n[2]);
    return n[1];
}

/* A change at once, and else once a second. */
static void what_is_cut_here_goes_to_the_others(void **state)
{
    const int64_t from = still_ns;
    unsigned bits = 99;
    (void)state;

    t->cuts_ns = from;
    cuts_look(t, from + S - 1);
    assert_int_equal(said(&bits), 0);
    cuts_look(t, from + S);
    assert_int_equal(said(&bits), 1);
    assert_int_equal(bits, 0);
    assert_int_equal(t->cuts_ns, from + S);
    says(0, 3, 5, true);
    says(1, 5, 5, true);
    cuts_look(t, from + S + 1);
    assert_int_equal(said(&bits), 1);
    assert_int_equal(bits, 1u << 3 | 1u << 5);
    cuts_look(t, from + S + 2);
    assert_int_equal(said(&bits), 0);
    says(0, 3, 6, false);
    cuts_look(t, from + S + 3);
    assert_int_equal(said(&bits), 1);
    assert_int_equal(bits, 1u << 5);
    t->peer[1].far = t->peer[2].far = true;
    says(0, 3, 7, true);
    cuts_look(t, from + S + 4);
    assert_int_equal(said(&bits), 0);
}

/* Two processes make a statement about a link; this trunk's own page is not one of them. */
static void the_later_statement_is_true(void **state)
{
    static const struct {
        uint64_t at_ns[2];
        bool says[2], cut;
    } rows[] = {
        {{5, 6}, {true, false}, false}, {{6, 5}, {true, false}, true},
        {{6, 5}, {false, true}, false}, {{5, 6}, {false, true}, true},
        {{5, 5}, {true, false}, true},  {{5, 0}, {true, false}, true},
    };
    unsigned bits;
    (void)state;

    for (unsigned i = 0; i < RTE_DIM(rows); i++) {
        atomic_store(&own->cut[2], 99u << 1 | !rows[i].cut);
        says(0, 2, rows[i].at_ns[0], rows[i].says[0]);
        says(1, 2, rows[i].at_ns[1], rows[i].says[1]);
        t->cuts_ns = 0;
        cuts_look(t, still_ns);
        bits = 99;
        assert_int_equal(said(&bits), 1);
        assert_int_equal(bits, rows[i].cut << 2);
    }
}

/* ---- from the others ---- */

/* Links that are between other machines alone: 1 (m1), 2 (m2), 4 (both). */
static void what_is_cut_elsewhere_goes_to_the_processes_here(void **state)
{
    static const struct {
        uint8_t says[2];
        uint32_t cut, changes;
    } rows[] = {
        {{0, 0}, 0, 0},
        {{0xff, 0}, 1u << 1 | 1u << 4, 1}, /* m1 has no say of m2's */
        {{0xff, 0xff}, 1u << 1 | 1u << 2 | 1u << 4, 2},
        {{0, 1u << 4}, 1u << 4, 3},
        {{1u << 4, 0}, 1u << 4, 3},
        {{0, 0}, 0, 4},
    };
    (void)state;

    for (unsigned i = 0; i < RTE_DIM(rows); i++) {
        uint32_t before = atomic_load(&own->cuts);

        still_ns++;
        t->peer[1].cuts[0] = rows[i].says[0];
        t->peer[2].cuts[0] = rows[i].says[1];
        for (unsigned k = 0; k < 2; k++) { /* the same again is no change */
            cuts_heard(t);
            assert_int_equal(atomic_load(&own->cuts), rows[i].changes);
        }
        for (unsigned k = 0; k < 6; k++) {
            uint64_t is = atomic_load(&own->cut[k]);

            assert_int_equal(is & 1, rows[i].cut >> k & 1);
            assert_true(is >> 1 <= (uint64_t)still_ns);
        }
        if (before != rows[i].changes)
            assert_int_equal(atomic_load(&own->cut[4]) >> 1 == (uint64_t)still_ns ||
                                 atomic_load(&own->cut[2]) >> 1 == (uint64_t)still_ns,
                             1);
    }
    assert_int_equal(atomic_load(&own->cut[4]), (uint64_t)still_ns << 1);
}

/* A machine that is not there has no links. */
static void links_of_a_machine_that_is_gone_are_cut(void **state)
{
    (void)state;
    t->peer[2].far = true;
    cuts_heard(t);
    assert_int_equal(atomic_load(&own->cut[2]), (uint64_t)still_ns << 1 | 1);
    assert_int_equal(atomic_load(&own->cut[4]), (uint64_t)still_ns << 1 | 1);
    assert_int_equal(atomic_load(&own->cut[1]), 0);
    for (unsigned i = 0; i < 6; i += 3) /* ours: the processes here see for themselves */
        assert_int_equal(atomic_load(&own->cut[i]), 0);
    assert_int_equal(atomic_load(&own->cut[5]), 0);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(what_is_cut_here_goes_to_the_others),
        CASE(the_later_statement_is_true),
        CASE(what_is_cut_elsewhere_goes_to_the_processes_here),
        CASE(links_of_a_machine_that_is_gone_are_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
