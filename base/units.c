/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers with units, read exactly: integer arithmetic throughout, so that "1.5us" is 1,500,000 ps
 * and nothing else. A value that is not a whole number of the smallest unit is refused rather than
 * rounded.
 */
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit rate_units[] = {
    {"b/s", 1}, {"kb/s", 1000}, {"Mb/s", 1000000}, {"Gb/s", 1000000000}, {"Tb/s", 1000000000000},
    {"bps", 1}, {"kbps", 1000}, {"Mbps", 1000000}, {"Gbps", 1000000000}, {"Tbps", 1000000000000},
    {"B/s", 8}, {"kB/s", 8000}, {"MB/s", 8000000}, {"GB/s", 8000000000}, {"TB/s", 8000000000000},
    {NULL, 0},
};
static const struct unit time_units[] = {
    {"ps", 1}, {"ns", 1000}, {"us", 1000000}, {"ms", 1000000000}, {"s", 1000000000000}, {NULL, 0},
};
static const struct unit size_units[] = {
    {"B", 1},         {"kB", 1000},     {"KB", 1000},     {"MB", 1000000}, {"GB", 1000000000},
    {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {NULL, 0},
};

/* digits[.digits][blanks]unit with nothing before or after it. */
static int number_parse(const char *s, const struct unit *u, uint64_t max, uint64_t *out)
{
    unsigned __int128 n = 0, scale = 1;
    bool point = false, digit = false;

    for (; isdigit((unsigned char)*s) || (*s == '.' && !point); s++) {
        if (*s == '.') {
            point = true;
            continue;
        }
        if (n > UINT64_MAX || scale > UINT64_MAX / 10)
            return -EINVAL;
        digit = true;
        n = n * 10 + (unsigned)(*s - '0');
        if (point)
            scale *= 10;
    }
    if (!digit)
        return -EINVAL;
    while (*s == ' ')
        s++;
    while (u->name && strcmp(u->name, s))
        u++;
    /* n is below 2^68 here and a factor below 2^43: no overflow. */
    n *= u->factor;
    if (!u->name || n % scale || n / scale > max)
        return -EINVAL;
    *out = (uint64_t)(n / scale);
    return 0;
}

int parse_rate(const char *s, uint64_t *bps)
{
    return number_parse(s, rate_units, UINT64_MAX, bps);
}

int parse_time(const char *s, int64_t *ps)
{
    uint64_t v;
    int rc = number_parse(s, time_units, INT64_MAX, &v);

    if (!rc)
        *ps = (int64_t)v;
    return rc;
}

int parse_size(const char *s, uint64_t *bytes)
{
    return number_parse(s, size_units, UINT64_MAX, bytes);
}

/* By strtod, whatever the locale: "0.1%", "1e-6", not both at once. */
int parse_probability(const char *s, double *p)
{
    static locale_t plain;
    char *end;
    double v;

    if (!plain && !(plain = newlocale(LC_ALL_MASK, "C", NULL)))
        return -ENOMEM;
    if ((!isdigit((unsigned char)*s) && *s != '.') || strpbrk(s, strchr(s, '%') ? "eExX" : "xX"))
        return -EINVAL;
    v = strtod_l(s, &end, plain);
    if (*end == '%') {
        v /= 100;
        end++;
    }
    if (end == s || *end || v > 1)
        return -EINVAL;
    *p = v;
    return 0;
}

static void unit_print(uint64_t n, const struct unit *u, char *buf, size_t size)
{
    while (u->factor > 1 && (!n || n % u->factor))
        u++;
    snprintf(buf, size, "%" PRIu64 "%s", n / u->factor, u->name);
}

void print_rate(uint64_t bps, char *buf, size_t size)
{
    static const struct unit units[] = {{"Tb/s", 1000000000000},
                                        {"Gb/s", 1000000000},
                                        {"Mb/s", 1000000},
                                        {"kb/s", 1000},
                                        {"b/s", 1}};

    unit_print(bps, units, buf, size);
}

void print_time(int64_t ps, char *buf, size_t size)
{
    static const struct unit units[] = {
        {"s", PS_PER_S}, {"ms", PS_PER_MS}, {"us", PS_PER_US}, {"ns", PS_PER_NS}, {"ps", 1}};

    unit_print((uint64_t)ps, units, buf, size);
}
