/* SPDX-License-Identifier: BSD-3-Clause */
/* What a machine says to others, and what it does not: a nonce that could not be drawn, anything in a session
 * that has ended, a hash by which its key could be guessed. */
#include "tests/io/trunk/machines.h"

#include <errno.h>
#include <sys/random.h>

static bool dry; /* the kernel has no random numbers */

ssize_t getrandom(void *to, size_t bytes, unsigned flags)
{
    errno = ENOSYS;
    return dry ? -1 : syscall(SYS_getrandom, to, bytes, flags);
}

/* A machine sends no HELLO and no CHALLENGE whose nonce anybody could guess, and does not start. */
static void a_machine_without_random_numbers_asks_nobody(void **state)
{
    struct trunk t = {.fab = w.fab, .me = 1, .n = MACHINES};
    unsigned to;
    (void)state;

    machine_die(1);
    pass(TRUNK_SILENT_NS + S);
    dry = true;
    pass(SESSION_FRESH_NS); /* what was drawn before is offered still */
    to = w.n_kept;
    for (unsigned k = 0; k < 8; k++) {
        pass(500 * MS);
        hear(&w.kept[0]);
    }
    for (; to < w.n_kept; to++)
        assert_true(w.kept[to].type != TRUNK_HELLO && w.kept[to].type != TRUNK_CHALLENGE);
    assert_true(w.t[0]->no_nonce);
    assert_true(there(0, 2) && there(2, 0)); /* a session that is there needs none */
    assert_int_equal(peers_create(&t), -EIO);
    peers_destroy(&t);
    dry = false;
    machine_start(1);
    pass(400 * MS);
    assert_true(there(0, 1) && there(1, 0) && !w.t[0]->no_nonce);
}

/* The conf's text has the key in it; without the key nobody can compute what a datagram says of it. */
static void what_is_said_of_the_conf_takes_the_key(void **state)
{
    static const struct {
        const char *text, *key;
    } row[] = {{"a conf", "key of the lab, one"},
               {"a conf", "key of the lab, two"},
               {"a conf,", "key of the lab, one"},
               {"", "key of the lab, one"}};
    uint64_t said[4] = {0}, again = 0;
    (void)state;

    for (unsigned i = 0; i < 5; i++) {
        struct trunk t = {.fab = w.fab, .n = MACHINES};
        FILE *f;

        snprintf(w.fab->path, sizeof(w.fab->path), "%s/conf", w.dir);
        snprintf(w.fab->trunk_key, sizeof(w.fab->trunk_key), "%s", row[i % 4].key);
        f = fopen(w.fab->path, "w");
        assert_non_null(f);
        fputs(row[i % 4].text, f);
        fclose(f);
        assert_int_equal(peers_create(&t), 0);
        *(i < 4 ? &said[i] : &again) = t.conf;
        peers_destroy(&t);
        remove(w.fab->path);
    }
    assert_true(again == said[0]);
    for (unsigned i = 0; i < 4; i++)
        for (unsigned k = 0; k < i; k++)
            assert_true(said[i] != said[k]);
}

/* A count of links takes a while: the session of who has asked may have ended by then. */
static void nothing_is_said_in_a_session_that_has_ended(void **state)
{
    struct trunk_counts ask = {htobe32(1)};
    unsigned to;
    (void)state;

    machine_die(1);
    pass(TRUNK_SILENT_NS + 200 * MS);
    assert_false(there(0, 1));
    w.t[0]->counts.asker = 1;
    to = w.n_kept;
    {
        uint8_t m[sizeof(struct trunk_header) + sizeof(ask)] = {0};

        for (unsigned type = TRUNK_STATE; type < TRUNK_CHALLENGE; type++)
            peers_send(w.t[0], 1, type, m, sizeof(m));
    }
    deliver();
    assert_int_equal(w.n_kept, to);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_machine_without_random_numbers_asks_nobody),
        CASE(what_is_said_of_the_conf_takes_the_key),
        CASE(nothing_is_said_in_a_session_that_has_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
