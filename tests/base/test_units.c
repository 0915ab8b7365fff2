/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers with units: exact, and nothing ambiguous. */
#include "base/units.h"
#include "tests/fabric/load.h"

#include <errno.h>

struct row {
    const char *text;
    uint64_t value;
};

static void rates_are_read_in_bits_per_second(void **state)
{
    static const struct row rows[] = {
        {"400Gb/s", 400000000000},   {"50GB/s", 400000000000},
        {"450 GB/s", 3600000000000}, {"1b/s", 1},
        {"1.5kb/s", 1500},           {"3.6TB/s", 28800000000000},
        {"100Mbps", 100000000},      {"0.125B/s", 1},
    };
    uint64_t v;

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        assert_int_equal(parse_rate(rows[i].text, &v), 0);
        assert_int_equal(v, rows[i].value);
    }
}

static void times_are_read_in_ps(void **state)
{
    static const struct row rows[] = {
        {"300ns", 300000},
        {"1.5us", 1500000},
        {"1ps", 1},
        {"0ns", 0},
        {"0.001ns", 1},
        {"2ms", 2000000000},
        {"1s", 1000000000000},
        {"9223372036854775807ps", INT64_MAX},
    };
    int64_t v;

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        assert_int_equal(parse_time(rows[i].text, &v), 0);
        assert_int_equal(v, rows[i].value);
    }
}

static void sizes_tell_powers_of_two_from_powers_of_ten(void **state)
{
    static const struct row rows[] = {
        {"64KiB", 65536}, {"4MB", 4000000}, {"1.5MiB", 1572864}, {"2GiB", 2147483648},
        {"7B", 7},        {"1kB", 1000},    {"1KB", 1000},
    };
    uint64_t v;

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        assert_int_equal(parse_size(rows[i].text, &v), 0);
        assert_int_equal(v, rows[i].value);
    }
}

static void what_is_no_number_with_a_unit_is_refused_and_writes_nothing(void **state)
{
    static const char *const bad[] = {
        "",
        " ",
        "400",
        "Gb/s",
        ".Gb/s",
        "-1Gb/s",
        "+1Gb/s",
        "400gb/s",
        "400Gb/s ",
        " 400Gb/s",
        "4x0Gb/s",
        "1e3Gb/s",
        "1.2.3ns",
        "0x10ns",
        "300 nss",
        "0.5ps",
        "1.0005ns",
        "0.3B",
        "1,5us",
        "99999999999999999999999Gb/s",
        "18446744073709551615GB/s",
        "9223372036854775808ps",
        "100000000s",
        "18446744073709551616B",
        "1.00000000000000000000000000000000001s",
        "300",
    };
    uint64_t rate = 7, size = 7;
    int64_t time = 7;

    (void)state;
    for (unsigned i = 0; i < LEN(bad); i++) {
        assert_int_equal(parse_rate(bad[i], &rate), -EINVAL);
        assert_int_equal(parse_time(bad[i], &time), -EINVAL);
        assert_int_equal(parse_size(bad[i], &size), -EINVAL);
    }
    assert_int_equal(rate, 7);
    assert_int_equal(time, 7);
    assert_int_equal(size, 7);
}

static void numbers_at_their_limits_are_exact(void **state)
{
    static const struct {
        const char *text;
        uint64_t rate;
    } rows[] = {
        {"18446744073709551615b/s", UINT64_MAX},
        {"18446744073709551615bps", UINT64_MAX},
        {"2305843009213693951B/s", UINT64_MAX - 7},
        {"18446744073709551.615kb/s", UINT64_MAX},
        {"0b/s", 0},
        {"0.0Tb/s", 0},
        {"5.b/s", 5},
        {"00012kB/s", 96000},
        {"1Tbps", 1000000000000},
        {"2kbps", 2000},
        {"3Gbps", 3000000000},
        {"1MB/s", 8000000},
        {"1.000000000000000000Gb/s", 1000000000},
    };
    uint64_t v = 0;

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        if (parse_rate(rows[i].text, &v) || v != rows[i].rate)
            fail_msg("%s is %llu", rows[i].text, (unsigned long long)v);
    }
    assert_int_equal(parse_rate("18446744073709551616b/s", &v), -EINVAL);
    assert_int_equal(parse_rate("2305843009213693952B/s", &v), -EINVAL);
    assert_int_equal(parse_size("18446744073709551615B", &v), 0);
    assert_true(v == UINT64_MAX);
    assert_int_equal(parse_size("1.5GB", &v), 0);
    assert_int_equal(v, 1500000000);
    assert_int_equal(parse_size("0.5KiB", &v), 0);
    assert_int_equal(v, 512);
}

/* The largest unit of which it is a whole number. */
static void what_is_printed_is_read_again(void **state)
{
    static const struct {
        uint64_t value;
        const char *rate, *time;
    } rows[] = {
        {0, "0b/s", "0ps"},
        {1, "1b/s", "1ps"},
        {999, "999b/s", "999ps"},
        {1000, "1kb/s", "1ns"},
        {1001, "1001b/s", "1001ps"},
        {1500000, "1500kb/s", "1500ns"},
        {2000000, "2Mb/s", "2us"},
        {400000000000, "400Gb/s", "400ms"},
        {3000000000000, "3Tb/s", "3s"},
        {3000000000001, "3000000000001b/s", "3000000000001ps"},
        {INT64_MAX, "9223372036854775807b/s", "9223372036854775807ps"},
    };
    char text[32];
    uint64_t v;
    int64_t ps;

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        print_rate(rows[i].value, text, sizeof(text));
        assert_string_equal(text, rows[i].rate);
        assert_int_equal(parse_rate(text, &v), 0);
        assert_true(v == rows[i].value);
        print_time((int64_t)rows[i].value, text, sizeof(text));
        assert_string_equal(text, rows[i].time);
        assert_int_equal(parse_time(text, &ps), 0);
        assert_true((uint64_t)ps == rows[i].value);
    }
}

static void a_link_is_busy_for_its_bits_rounded_up(void **state)
{
    static const struct {
        uint64_t bytes, bps;
        int64_t ps;
    } rows[] = {
        {0, 400000000000, 0},
        {1, 400000000000, 20},
        {1500, 100000000000, 120000},
        {1, 3000000000000, 3}, /* 2.67 */
        {2, 3000000000000, 6}, /* 5.33 */
        {3, 3000000000000, 8},
        {1, 1, 8000000000000},
        {(1 << 21) - 1, 1000000000000, 16777208},
        {1 << 21, 1000000000000, 16777216},
        {(1 << 21) + 1, 1000000000001, 16777224}, /* 16777223.99998 */
        {1ull << 40, 400000000000, 21990232555520},
    };

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++)
        assert_int_equal(link_time_ps(rows[i].bytes, rows[i].bps), rows[i].ps);
}

static void probabilities(void **state)
{
    static const struct {
        const char *text;
        double p;
    } rows[] = {{"0", 0},        {"1", 1},    {"0.001", 0.001},    {".5", .5},
                {"1e-6", 1e-6},  {"100%", 1}, {"2.5E-03", 2.5e-3}, {"0.1%", 0.1 / 100},
                {"12e-2", 0.12}, {"1.0", 1},  {"1e-12", 1e-12}};
    static const char *const bad[] = {"",    "%",   "1.1",   "101%",  "-0.1", "1e6",
                                      "1e-", "nan", "0,1",   "0x1",   "1 %",  "0.1%%",
                                      ".",   "inf", "1e-+3", "1e--3", "1e-3%"};
    double p = 7;

    (void)state;
    for (unsigned i = 0; i < LEN(rows); i++) {
        assert_int_equal(parse_probability(rows[i].text, &p), 0);
        assert_true(p == rows[i].p);
    }
    p = 7;
    for (unsigned i = 0; i < LEN(bad); i++)
        assert_int_equal(parse_probability(bad[i], &p), -EINVAL);
    assert_true(p == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probabilities),
        cmocka_unit_test(rates_are_read_in_bits_per_second),
        cmocka_unit_test(times_are_read_in_ps),
        cmocka_unit_test(sizes_tell_powers_of_two_from_powers_of_ten),
        cmocka_unit_test(numbers_at_their_limits_are_exact),
        cmocka_unit_test(what_is_printed_is_read_again),
        cmocka_unit_test(a_link_is_busy_for_its_bits_rounded_up),
        cmocka_unit_test(what_is_no_number_with_a_unit_is_refused_and_writes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
