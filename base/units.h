/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Units of time, and numbers with units as in conf files and options.
 */
#ifndef TRIB_BASE_UNITS_H
#define TRIB_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#define PS_PER_NS 1000LL
#define PS_PER_US 1000000LL
#define PS_PER_MS 1000000000LL
#define PS_PER_S  1000000000000LL
#define PS_NEVER  INT64_MAX

/* Duration of `bytes` on a link of rate_bps bits per second, in ps, rounded up. */
static inline int64_t link_time_ps(uint64_t bytes, uint64_t rate_bps)
{
    if (__builtin_expect(bytes < 1u << 21, 1)) /* 64 bits are enough, and divide faster */
        return (int64_t)((bytes * 8 * PS_PER_S + rate_bps - 1) / rate_bps);
    return (int64_t)(((unsigned __int128)bytes * 8 * PS_PER_S + rate_bps - 1) / rate_bps);
}

/* "400Gb/s" "50GB/s" "300ns" "1.5us" "64KiB" "4MB". A number without a unit is refused. 0 or
 * -EINVAL. */
int parse_rate(const char *s, uint64_t *bps);
int parse_time(const char *s, int64_t *ps);
int parse_size(const char *s, uint64_t *bytes);
/* "0.001" "1e-3" "0.1%": 0.0 to 1.0, with a point in every locale. 0, -EINVAL or -ENOMEM. */
int parse_probability(const char *s, double *p);
/* Prints "100Gb/s", "1500ns": in the largest unit that gives a whole number, as parse_*() reads it. */
void print_rate(uint64_t bps, char *buf, size_t size);
void print_time(int64_t ps, char *buf, size_t size);

#endif
