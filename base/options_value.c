/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads values of options, by type. */
#include "base/assert.h"
#include "base/nearest.h"
#include "base/options_priv.h"
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAME_SIZE 48 /* size of an alternative spelling of a listed name */

int options_size(const char *s, uint64_t *bytes)
{
    static const char prefixes[] = "kmgt";
    uint64_t scale = 1;
    char *end;

    if (!isdigit((unsigned char)*s))
        return -EINVAL;
    double v = strtod(s, &end);
    if (memchr(s, 'x', (size_t)(end - s)) || memchr(s, 'X', (size_t)(end - s)))
        return -EINVAL;
    const char *p = *end ? strchr(prefixes, tolower((unsigned char)*end)) : NULL;
    if (p) {
        bool decimal = toupper((unsigned char)end[1]) == 'B' && !end[2];
        if (!decimal && end[1] && strcasecmp(end + 1, "ib"))
            return -EINVAL;
        for (const char *q = prefixes; q <= p; q++)
            scale *= decimal ? 1000 : 1024;
    } else if (*end && strcasecmp(end, "b")) {
        return -EINVAL;
    }
    v *= (double)scale;
    if (!(v >= 0 && v <= 1e18) || v != (double)(uint64_t)v)
        return -EINVAL;
    *bytes = (uint64_t)v;
    return 0;
}

/* ---- values ---- */

static int value_wrong(char *err, const char *label, const char *value, const char *expected)
{
    snprintf(err, OPTIONS_ERR, "%s: found \"%.64s\", expected %s", label, value, expected);
    return -EINVAL;
}

static int take_number(const struct option_row *r, const char *label, const char *value,
                       uint64_t *out, char *err)
{
    uint64_t max = r->max ? r->max : r->type == OPTION_UINT ? UINT32_MAX : UINT64_MAX;
    char *end, expected[80];

    errno = 0;
    *out = strtoull(value, &end, 10);
    if (isdigit((unsigned char)*value) && !*end && !errno && *out >= r->min && *out <= max)
        return 0;
    snprintf(expected, sizeof(expected), "a whole number from %llu to %llu",
             (unsigned long long)r->min, (unsigned long long)max);
    return value_wrong(err, label, value, expected);
}

static int take_size(const struct option_row *r, const char *label, const char *value,
                     uint64_t *out, char *err)
{
    if (options_size(value, out) || *out < r->min || (r->max && *out > r->max))
        return value_wrong(err, label, value, "a size such as 4096, 4K, 64KiB or 16M");
    return 0;
}

static int take_seconds(const struct option_row *r, const char *label, const char *value,
                        double *out, char *err)
{
    char *end, expected[100];
    int64_t ps;
    double v = strtod(value, &end);

    if (end == value || *end) {
        end = NULL;
        v = parse_time(value, &ps) ? -1 : (double)ps * 1e-12;
    }
    if (v >= (double)r->min * 1e-6 && v <= (double)r->max * 1e-6) {
        *out = v;
        return 0;
    }
    snprintf(expected, sizeof(expected), "seconds, such as 0.5 or 500ms, up to %.0f",
             (double)r->max * 1e-6);
    return value_wrong(err, label, value, expected);
}

static int list_index(const struct option_row *r, const char *s, size_t n)
{
    const char *name;
    char other[NAME_SIZE];

    for (unsigned i = 0; (name = r->list(i)); i++)
        if (n && !strncmp(name, s, n) && !name[n])
            return (int)i;
    if (!r->find || n >= sizeof(other))
        return -EINVAL;
    snprintf(other, sizeof(other), "%.*s", (int)n, s);
    return r->find(other);
}

static const char *list_next(const void *ctx, unsigned i)
{
    return ((const struct option_row *)ctx)->list(i);
}

/* Reports that s, n letters long, is not in the list. */
static int not_listed(const struct option_row *r, const char *label, const char *value,
                      const char *s, size_t n, char *err)
{
    char found[72], expected[OPTIONS_ERR - 160];
    const char *name, *near;
    int at = snprintf(expected, sizeof(expected), "%s",
                      r->type == OPTION_SET ? "all or a list of" : "one of");

    for (unsigned i = 0; (name = r->list(i)) && at < (int)sizeof(expected); i++)
        if (*name)
            at +=
                snprintf(expected + at, sizeof(expected) - (size_t)at, "%s %s", i ? "," : "", name);
    snprintf(found, sizeof(found), "%.*s", (int)(n < 64 ? n : 64), s);
    near = nearest_name(found, list_next, r);
    snprintf(err, OPTIONS_ERR, "%s: found \"%.64s\", expected %s%s%s%s", label, value, expected,
             near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    return -EINVAL;
}

static int take_choice(const struct option_row *r, const char *label, const char *value,
                       unsigned *out, char *err)
{
    int i = list_index(r, value, strlen(value));

    if (i < 0)
        return not_listed(r, label, value, value, strlen(value), err);
    *out = (unsigned)i;
    return 0;
}

static void append(struct option_order *o, unsigned i)
{
    for (unsigned k = 0; k < o->n; k++)
        if (o->at[k] == i)
            return;
    T_ASSERT(o->n < OPTION_SET_MAX, "a set has more members than a mask has bits");
    o->at[o->n++] = (uint8_t)i;
}

unsigned options_ordered(const struct option_order *o, unsigned set, uint8_t *list)
{
    struct option_order all = {0};

    for (unsigned k = 0; k < o->n; k++)
        if (set >> o->at[k] & 1)
            append(&all, o->at[k]);
    for (unsigned i = 0; i < OPTION_SET_MAX; i++)
        if (set >> i & 1)
            append(&all, i);
    memcpy(list, all.at, all.n);
    return all.n;
}

static int take_set(const struct option_row *r, const char *label, const char *value, unsigned *out,
                    struct option_order *order, char *err)
{
    struct option_order given = {0};
    unsigned mask = 0, n = 0;

    while (r->list(n))
        n++;
    if (!strcmp(value, "all")) {
        *out = r->max ? (unsigned)r->max : (unsigned)((1ull << n) - 1);
        if (order)
            order->n = 0;
        return 0;
    }
    for (const char *s = value; *s;) {
        size_t len = strcspn(s, ",");
        int i = len ? list_index(r, s, len) : -1;

        if (len && i < 0)
            return not_listed(r, label, value, s, len, err);
        if (len) {
            mask |= 1u << i;
            append(&given, (unsigned)i);
        }
        s += len + (s[len] == ',');
    }
    if (!mask)
        return not_listed(r, label, value, value, strlen(value), err);
    *out = mask;
    if (order)
        *order = given;
    return 0;
}

static int take_text(const struct option_row *r, const char *label, const char *value,
                     const char **out, char *err)
{
    *out = value;
    if (*value)
        return 0;
    snprintf(err, OPTIONS_ERR, "%s: found nothing, expected %s", label, r->arg);
    return -EINVAL;
}

int options_take(void *into, const struct option_row *r, const char *label, const char *value,
                 char *err)
{
    void *at = (char *)into + r->offset;
    uint64_t v;
    int rc;

    switch (r->type) {
    case OPTION_FLAG:
        *(bool *)at = true;
        return 0;
    case OPTION_UINT:
        rc = take_number(r, label, value, &v, err);
        *(unsigned *)at = rc ? *(unsigned *)at : (unsigned)v;
        return rc;
    case OPTION_U64:
        return take_number(r, label, value, at, err);
    case OPTION_SIZE:
        return take_size(r, label, value, at, err);
    case OPTION_TIME:
        return parse_time(value, at) ? value_wrong(err, label, value, "a time such as 300ns or 2ms")
                                     : 0;
    case OPTION_SECONDS:
        return take_seconds(r, label, value, at, err);
    case OPTION_RATE:
        return parse_rate(value, at) ? value_wrong(err, label, value, "a rate such as 400Gb/s") : 0;
    case OPTION_PROBABILITY:
        return parse_probability(value, at)
                   ? value_wrong(err, label, value, "a probability such as 0.001 or 0.1%")
                   : 0;
    case OPTION_TEXT:
        return take_text(r, label, value, at, err);
    case OPTION_CHOICE:
        return take_choice(r, label, value, at, err);
    case OPTION_SET:
        return take_set(r, label, value, at,
                        r->order ? (struct option_order *)(void *)((char *)into + r->order) : NULL,
                        err);
    case OPTION_CALL:
        return r->take(into, r, label, value, err);
    }
    return -EINVAL;
}
