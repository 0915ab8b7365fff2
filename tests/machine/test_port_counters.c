/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of a port are the sums of its processes', and whatever one of these does to the shared file, the others go on. */
#include "machine/port_counters.h"

#include "system/own_clear.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#define IN   "port/h0/0.counters/"
#define SENT IN "hw_counters/sent_pkts"

static char base[] = "/tmp/test_pc.XXXXXX";
static struct rundir rd;
static int dir;

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(base) || rundir_open(&rd, base, NULL, true))
        return 1;
    dir = open(base, O_RDONLY | O_DIRECTORY);
    return dir < 0;
}

static int teardown(void **state)
{
    (void)state;
    rundir_close(&rd);
    assert_int_equal(own_clear(dir, NULL), 0);
    close(dir);
    return own_rmdir(AT_FDCWD, base);
}

static unsigned long long sent(void)
{
    int fd = openat(dir, SENT, O_RDONLY);
    char text[64] = "", *end;
    unsigned long long v;

    assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
    close(fd);
    v = strtoull(text, &end, 10);
    assert_string_equal(end, "\n");
    return v;
}

static void the_files_are_the_sum_of_all(void **state)
{
    struct roce_counters a = {.tx_packets = 5}, b = {.tx_packets = 70};
    struct port_counters one, two;

    (void)state;
    assert_int_equal(port_counters_open(&one, &rd, "h0", 0), 0);
    assert_int_equal(port_counters_open(&two, &rd, "h0", 0), 0);
    assert_int_equal(sent(), 0);
    assert_true(port_counters_add(&one, &a, 1000000000, false));
    assert_int_equal(sent(), 5);
    assert_false(port_counters_add(&one, &a, 1000000001, false));
    assert_true(port_counters_add(&two, &b, 1000000002, false)); /* too early for the files */
    assert_int_equal(sent(), 5);
    assert_true(port_counters_add(&two, &b, 1000000000 + PORT_COUNTERS_MIN_NS, false));
    assert_int_equal(sent(), 75);
    assert_false(port_counters_add(&two, &b, 2000000000, false));
    a.tx_packets++;
    assert_true(
        port_counters_add(&one, &a, 1000000003 + PORT_COUNTERS_MIN_NS, true)); /* at its end */
    assert_int_equal(sent(), 76);
    port_counters_leave(&one);
    b.tx_packets++;
    assert_true(port_counters_add(&two, &b, 3000000000, false));
    assert_int_equal(port_counters_period_ns(&two), PORT_COUNTERS_MIN_NS);
    port_counters_leave(&two);
}

static void a_shared_file_that_was_cut_costs_its_numbers_alone(void **state)
{
    struct roce_counters a = {.tx_packets = 500};
    struct port_counters one;
    int fd;

    (void)state;
    assert_int_equal(port_counters_open(&one, &rd, "h0", 0), 0);
    assert_true(port_counters_add(&one, &a, 4000000000, true));
    fd = openat(dir, IN "totals", O_WRONLY | O_TRUNC);
    assert_true(fd >= 0);
    a.tx_packets += 3;
    assert_true(port_counters_add(&one, &a, 5000000000, false));
    assert_int_equal(sent(), 3); /* and no digit of the longer number */
    a.tx_packets += 3;
    assert_int_equal(flock(fd, LOCK_EX), 0); /* kept for ever */
    assert_true(port_counters_add(&one, &a, 6000000000, false));
    assert_true(port_counters_add(&one, &a, 6000000001, true));
    assert_int_equal(sent(), 3);
    memset(&a, 0xff, sizeof(a));
    assert_int_equal(pwrite(fd, &a, 16, 0), 16); /* users; written at the end of time */
    close(fd);
    a = (struct roce_counters){.tx_packets = 510};
    assert_true(port_counters_add(&one, &a, 7000000000, false));
    assert_int_equal(sent(), 10);
    assert_int_equal(port_counters_period_ns(&one), PORT_COUNTERS_MAX_NS);
}

static void nothing_is_written_behind_a_link(void **state)
{
    struct roce_counters a = {.tx_packets = 1};
    struct port_counters one;
    struct stat st;

    (void)state;
    assert_int_equal(mkdirat(dir, "other", 0700), 0);
    assert_int_equal(port_counters_open(&one, &rd, "h1", 0), 0);
    assert_int_equal(renameat(dir, "port/h1/0.counters", dir, "was"), 0);
    assert_int_equal(symlinkat("../../other", dir, "port/h1/0.counters"), 0);
    assert_true(port_counters_add(&one, &a, 8000000000, true));
    assert_int_equal(port_counters_make(&rd, "h1", 0), -EPERM);
    assert_int_equal(fstatat(dir, "other/totals", &st, 0), -1);
    assert_int_equal(fstatat(dir, "other/counters", &st, 0), -1);
    assert_int_equal(own_unlink(dir, "port/h1/0.counters"), 0);
    assert_int_equal(mkdirat(dir, "port/h1/0.counters", 0700), 0);
    assert_int_equal(symlinkat("../../../other", dir, "port/h1/0.counters/counters"), 0);
    assert_int_equal(port_counters_make(&rd, "h1", 0), -EPERM);
    assert_int_equal(fstatat(dir, "other/port_xmit_data", &st, 0), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_files_are_the_sum_of_all),
        cmocka_unit_test(a_shared_file_that_was_cut_costs_its_numbers_alone),
        cmocka_unit_test(nothing_is_written_behind_a_link),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
