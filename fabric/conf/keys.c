/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads groups of a conf file by a table of allowed keys. Every error has the form "<key>: found <what>,
 * expected <what>".
 */
#include "base/assert.h"
#include "base/nearest.h"
#include "base/secret.h"
#include "base/units.h"
#include "fabric/build.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

bool keys_good_name(const char *s)
{
    size_t n = strlen(s);

    if (n < 1 || n >= FAB_NAME || !isalnum((unsigned char)s[0]))
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr("_.-", *s))
            return false;
    return true;
}

void keys_default_name(const char *path, char name[FAB_NAME])
{
    const char *slash = strrchr(path, '/'), *stem = slash ? slash + 1 : path,
               *dot = strrchr(stem, '.');
    size_t n = dot && dot > stem ? (size_t)(dot - stem) : strlen(stem);

    snprintf(name, FAB_NAME, "%.*s", (int)(n < FAB_NAME ? n : FAB_NAME - 1), stem);
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && (c == name || !strchr("_.-", *c)))
            *c = c == name ? 'f' : '-';
    if (!*name)
        snprintf(name, FAB_NAME, "fabric");
}

/* The value of a setting, as text for an error. */
static const char *setting_text(const config_setting_t *s, char *buf, size_t n)
{
    for (const config_setting_t *at = s; at; at = config_setting_parent(at))
        if (config_setting_name(at) && secret_named(config_setting_name(at))) {
            snprintf(buf, n, "what is not shown");
            return buf;
        }
    switch (config_setting_type(s)) {
    case CONFIG_TYPE_INT:
    case CONFIG_TYPE_INT64:
        snprintf(buf, n, "%lld", config_setting_get_int64(s));
        break;
    case CONFIG_TYPE_FLOAT:
        snprintf(buf, n, "%g", config_setting_get_float(s));
        break;
    case CONFIG_TYPE_BOOL:
        snprintf(buf, n, "%s", config_setting_get_bool(s) ? "true" : "false");
        break;
    case CONFIG_TYPE_STRING:
        snprintf(buf, n, "\"%.60s\"", config_setting_get_string(s));
        break;
    case CONFIG_TYPE_GROUP:
        snprintf(buf, n, "a group { }");
        break;
    case CONFIG_TYPE_ARRAY:
        snprintf(buf, n, "an array [ ]");
        break;
    default:
        snprintf(buf, n, "a list ( )");
    }
    return buf;
}

void keys_expected(struct build *b, const config_setting_t *s, const char *expected)
{
    const char *name = config_setting_name(s);
    char buf[80];

    build_error(b, (int)config_setting_source_line(s), "%s%sfound %s, expected %s",
                name ? name : "", name ? ": " : "", setting_text(s, buf, sizeof(buf)), expected);
}

int keys_choice(struct build *b, const config_setting_t *s, const char *const *names, unsigned n)
{
    const char *word =
        config_setting_type(s) == CONFIG_TYPE_STRING ? config_setting_get_string(s) : NULL;
    char expected[160] = "";
    size_t len = 0;

    for (unsigned i = 0; i < n; i++) {
        if (word && !strcmp(word, names[i]))
            return (int)i;
        len += (size_t)snprintf(expected + len, sizeof(expected) - len, "%s\"%s\"",
                                !i           ? ""
                                : i + 1 == n ? " or "
                                             : ", ",
                                names[i]);
        if (len >= sizeof(expected))
            len = sizeof(expected) - 1;
    }
    keys_expected(b, s, expected);
    return -EINVAL;
}

static bool in_range(const struct key *k, uint64_t v)
{
    return (!k->lo && !k->hi) || (v >= k->lo && v <= k->hi);
}

static void read_rate(struct build *b, const config_setting_t *s, const struct key *k, void *out)
{
    const char *text = config_setting_get_string(s);
    char want[120], lo[32], hi[32];
    uint64_t v;

    print_rate(k->lo, lo, sizeof(lo));
    print_rate(k->hi, hi, sizeof(hi));
    snprintf(want, sizeof(want),
             "a rate from %s to %s, with its unit, as \"400Gb/s\" or \"50GB/s\"", lo, hi);
    if (!text || parse_rate(text, &v) || !in_range(k, v))
        keys_expected(b, s, want);
    else
        *(uint64_t *)out = v;
}

static void read_time(struct build *b, const config_setting_t *s, const struct key *k, void *out)
{
    const char *text = config_setting_get_string(s);
    char least[40] = "", want[120];
    int64_t v;

    if (k->lo)
        snprintf(least, sizeof(least), "from %gs ", (double)k->lo / PS_PER_S);
    snprintf(want, sizeof(want), "a time %s%s %gs, with its unit, as \"300ns\" or \"1.5us\"", least,
             k->lo ? "to" : "up to", (double)k->hi / PS_PER_S);
    if (!text || parse_time(text, &v) || !in_range(k, (uint64_t)v))
        keys_expected(b, s, want);
    else
        *(int64_t *)out = v;
}

static bool is_int(const config_setting_t *s)
{
    return config_setting_type(s) == CONFIG_TYPE_INT || config_setting_type(s) == CONFIG_TYPE_INT64;
}

static void read_uint(struct build *b, const config_setting_t *s, const struct key *k, void *out)
{
    char want[80];

    snprintf(want, sizeof(want), "an integer from %" PRIu64 " to %" PRIu64, k->lo, k->hi);
    if (!is_int(s) || config_setting_get_int64(s) < 0 ||
        !in_range(k, (uint64_t)config_setting_get_int64(s)))
        keys_expected(b, s, want);
    else
        *(uint32_t *)out = (uint32_t)config_setting_get_int64(s);
}

static bool parse_bytes(const char *text, uint64_t *v)
{
    size_t digits = strspn(text, "0123456789");

    *v = digits && digits < 16 && !text[digits] ? strtoull(text, NULL, 10) : UINT64_MAX;
    return *v != UINT64_MAX;
}

/* A number without a unit is bytes, as for -b. */
static void read_size(struct build *b, const config_setting_t *s, const struct key *k, void *out)
{
    const char *text = config_setting_get_string(s);
    char want[120];
    uint64_t v;
    bool right;

    snprintf(want, sizeof(want),
             "a size from %" PRIu64 "B to %" PRIu64 "GiB: bytes, or with a unit, as \"64KiB\"",
             k->lo, k->hi >> 30);
    if (is_int(s)) {
        v = (uint64_t)config_setting_get_int64(s);
        right = config_setting_get_int64(s) >= 0;
    } else {
        right = text && (!parse_size(text, &v) || parse_bytes(text, &v));
    }
    if (!right || !in_range(k, v))
        keys_expected(b, s, want);
    else
        *(uint64_t *)out = v;
}

static void read_share(struct build *b, const config_setting_t *s, const char *what, void *out)
{
    const char *text = config_setting_get_string(s);
    bool is_float = config_setting_type(s) == CONFIG_TYPE_FLOAT;
    double v = is_float    ? config_setting_get_float(s)
               : is_int(s) ? (double)config_setting_get_int64(s)
                           : -1;

    if (text && parse_probability(text, &v))
        v = -1;
    if (v >= 0 && v <= 1)
        *(double *)out = v;
    else
        keys_expected(b, s, what);
}

static void read_text(struct build *b, const config_setting_t *s, enum key_type type, char *out)
{
    const char *text = config_setting_get_string(s);

    if (type == KEY_NAME) {
        if (text && keys_good_name(text))
            snprintf(out, FAB_NAME, "%s", text);
        else
            keys_expected(b, s, KEY_NAME_RULE);
    } else if (text && *text && strlen(text) < 128) {
        snprintf(out, 128, "%s", text);
    } else {
        keys_expected(b, s, "a text of 1 to 127 letters");
    }
}

static unsigned count_names(const struct key *k)
{
    unsigned n = 0;

    while (k->names[n])
        n++;
    return n;
}

static void read_choice(struct build *b, const config_setting_t *s, const struct key *k, void *out)
{
    int i = keys_choice(b, s, k->names, count_names(k));

    if (i >= 0)
        *(uint32_t *)out = (uint32_t)i;
}

static void read_value(struct build *b, const config_setting_t *s, const struct key *k, void *out)
{
    switch (k->type) {
    case KEY_RATE:
        read_rate(b, s, k, out);
        break;
    case KEY_TIME:
        read_time(b, s, k, out);
        break;
    case KEY_SIZE:
        read_size(b, s, k, out);
        break;
    case KEY_UINT:
        read_uint(b, s, k, out);
        break;
    case KEY_BOOL:
        if (config_setting_type(s) == CONFIG_TYPE_BOOL)
            *(bool *)out = config_setting_get_bool(s);
        else
            keys_expected(b, s, "true or false");
        break;
    case KEY_PROB:
        read_share(b, s, "a probability from 0.0 to 1.0, or as \"0.1%\"", out);
        break;
    case KEY_SHARE:
        read_share(b, s, "a share from 0.0 to 1.0, or as \"0.1%\"", out);
        break;
    case KEY_NAME:
    case KEY_TEXT:
        read_text(b, s, k->type, out);
        break;
    case KEY_CHOICE:
        read_choice(b, s, k, out);
        break;
    case KEY_OWN:
        break;
    }
}

static bool initial_uint(const struct key *k, uint32_t *out)
{
    char *end;
    unsigned long long v = strtoull(k->initial, &end, 10);

    *out = (uint32_t)v;
    return !*end && in_range(k, v);
}

static bool initial_size(const struct key *k, uint64_t *out)
{
    return !parse_size(k->initial, out) && in_range(k, *out);
}

static bool initial_choice(const struct key *k, uint32_t *out)
{
    unsigned n = count_names(k), i = 0;

    while (i < n && strcmp(k->names[i], k->initial))
        i++;
    *out = i;
    return i < n;
}

/* Parses a default. False: the text is not of the key's type and range. */
static bool initial_value(const struct key *k, void *out)
{
    switch (k->type) {
    case KEY_RATE:
        return !parse_rate(k->initial, out) && in_range(k, *(uint64_t *)out);
    case KEY_TIME:
        return !parse_time(k->initial, out) && in_range(k, (uint64_t) * (int64_t *)out);
    case KEY_SIZE:
        return initial_size(k, out);
    case KEY_UINT:
        return initial_uint(k, out);
    case KEY_BOOL:
        *(bool *)out = !strcmp(k->initial, "true");
        return *(bool *)out || !strcmp(k->initial, "false");
    case KEY_PROB:
    case KEY_SHARE:
        return !parse_probability(k->initial, out);
    case KEY_CHOICE:
        return initial_choice(k, out);
    default:
        return false;
    }
}

const char *keys_initial_of(const struct key *keys, unsigned n, const char *name)
{
    unsigned i = 0;

    while (i < n && strcmp(keys[i].name, name))
        i++;
    T_ASSERT(i < n && keys[i].initial, "a key without a default is asked for it");
    return keys[i].initial;
}

void keys_initial(const struct key *keys, unsigned n, void *out)
{
    for (unsigned i = 0; i < n; i++) {
        bool good = !keys[i].initial || keys[i].type == KEY_OWN ||
                    initial_value(&keys[i], (char *)out + keys[i].offset);

        T_ASSERT(good, "the default of a key is none of its values");
    }
}

static void unknown_key(struct build *b, const config_setting_t *s, const struct key *keys,
                        unsigned n)
{
    const char *names[64], *name = config_setting_name(s), *near;
    char list[640] = "";
    size_t len = 0;

    T_ASSERT(n <= LEN(names), "a group of keys has more than an error names");
    for (unsigned i = 0; i < n; i++) {
        names[i] = keys[i].name;
        if (len < sizeof(list))
            len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", i ? ", " : "",
                                    keys[i].name);
    }
    near = nearest_of(name, names, n);
    if (near)
        build_error(b, (int)config_setting_source_line(s),
                    "found unknown key \"%.60s\", expected \"%s\"?", name, near);
    else
        build_error(b, (int)config_setting_source_line(s),
                    "found unknown key \"%.60s\", expected one of: %s", name, list);
}

void keys_read(struct build *b, config_setting_t *g, const struct key *keys, unsigned n, void *out)
{
    for (int i = 0; i < config_setting_length(g); i++) {
        config_setting_t *s = config_setting_get_elem(g, (unsigned)i);
        unsigned k = 0;

        while (k < n && strcmp(keys[k].name, config_setting_name(s)))
            k++;
        if (k == n)
            unknown_key(b, s, keys, n);
        else
            read_value(b, s, &keys[k], (char *)out + keys[k].offset);
    }
}
