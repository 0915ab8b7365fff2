/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of a conf's machines this one is, and what runs on it. */
#include "trib/machine_choice.h"

#include "tests/trib/words_test.h"

#define IP(d) (10u << 24 | (d))

static struct fab_machine machines[] = {{.name = "a", .ip = IP(1)}, {.name = "b", .ip = IP(2)}};
static struct fab_proc procs[] = {{.name = "leaf0", .machine = 0},
                                  {.name = "leaf1", .machine = 1},
                                  {.name = "spine", .machine = 1}};
static struct fabric spread = {.n_procs = 3, .procs = procs, .n_machines = 2, .machines = machines};
static struct fabric alone = {.n_procs = 3, .procs = procs};

static struct machine_choice m;
static char *why;

static bool choose(const struct fabric *f, const char *named, uint32_t x, uint32_t y)
{
    const uint32_t addresses[] = {x, y};

    return machine_choice_make(&m, f, "x.conf", named, addresses, 2, &why);
}

static void one_machine_runs_all(void **state)
{
    (void)state;
    assert_true(choose(&alone, NULL, IP(1), IP(2)));
    assert_null(m.machine);
    assert_words(&m.procs, "leaf0|leaf1|spine");
    assert_false(choose(&alone, "a", IP(1), IP(2)));
    assert_string_equal(why,
                        "trib: found --machine a, expected a conf with machines: x.conf has none");
}

static void the_address_says_which(void **state)
{
    (void)state;
    assert_true(choose(&spread, NULL, IP(7), IP(2)));
    assert_string_equal(m.machine, "b");
    assert_words(&m.procs, "trunk|leaf1|spine");
    assert_false(choose(&spread, NULL, IP(7), IP(8)));
    assert_string_equal(why, "trib: none of the machines a b of x.conf has an address of this one; "
                             "--machine says which it is");
    assert_false(choose(&spread, NULL, IP(2), IP(1)));
    assert_string_equal(
        why,
        "trib: the machines a b of x.conf have addresses of this one; --machine says which it is");
}

static void the_user_says_which(void **state)
{
    (void)state;
    assert_true(choose(&spread, "a", IP(2), IP(2)));
    assert_string_equal(m.machine, "a");
    assert_words(&m.procs, "trunk|leaf0");
    assert_false(choose(&spread, "c", IP(1), IP(2)));
    assert_string_equal(why, "trib: found --machine c, expected a machine of x.conf: a b");
}

static void a_fabric_that_does_not_run_is_refused(void **state)
{
    struct fabric large = spread;

    (void)state;
    strcpy(large.path, "x.conf");
    large.n_hosts = FAB_RUN_HOSTS + 1;
    assert_false(choose(&large, "a", IP(1), IP(2)));
    assert_string_equal(why, "x.conf: found 4097 hosts, expected at most 4096 in a fabric that "
                             "runs; trib plan and trib model take up "
                             "to 131072");
}

static void this_machine_has_loopback(void **state)
{
    uint32_t addresses[64];

    (void)state;
    assert_int_not_equal(machine_choice_addresses(addresses, 64), 0);
    assert_int_equal(addresses[0], 0x7f000001);
    assert_int_equal(machine_choice_addresses(addresses, 1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_machine_runs_all),
        cmocka_unit_test(the_address_says_which),
        cmocka_unit_test(the_user_says_which),
        cmocka_unit_test(a_fabric_that_does_not_run_is_refused),
        cmocka_unit_test(this_machine_has_loopback),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
