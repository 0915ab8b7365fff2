/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parser. It looks an option up by its name; the value is the next word or what is attached to the
 * name, and options_value.c reads it. getopt_long() would need copies of the tables, keeps its
 * state in globals, and knows neither the nearest name nor the types of values.
 */
#include "base/options.h"

#include "base/assert.h"
#include "base/nearest.h"
#include "base/options_priv.h"
#include "base/version.h"

#include <errno.h>
#include <string.h>

struct scan {
    const struct option_program *p;
    void *const *into;
    char **argv;
    int argc, i;
    struct option_result *r;
};

const struct option_row option_common[2] = {
    {.c = 'h', .name = "help", .type = OPTION_FLAG, .help = "print this text"},
    {.name = "version", .type = OPTION_FLAG, .help = "print the version"},
};
static const struct option_group common_group = {"General", option_common, 2};

/* ---- rows of a program ---- */

static bool at_in(const struct option_group *g, unsigned *i, struct option_at *at)
{
    for (; g && g->rows; *i -= g->n, g++)
        if (*i < g->n) {
            at->row = &g->rows[*i];
            at->group = g;
            at->initial = at->row->initial;
            at->hidden = at->row->how & OPTION_HIDDEN;
            return true;
        }
    return false;
}

static void override(const struct option_program *p, struct option_at *at)
{
    for (const struct option_default *d = p->defaults; d && d->name; d++)
        if (!strcmp(d->name, at->row->name)) {
            at->initial = d->initial ? d->initial : at->initial;
            at->hidden = at->hidden || d->hidden;
        }
}

bool option_at(const struct option_program *p, unsigned i, struct option_at *at)
{
    *at = (struct option_at){.into = 0};
    if (at_in(p->groups, &i, at))
        return true;
    if (p->base && at_in(p->base->groups, &i, at)) {
        at->into = 1;
        override(p, at);
        return true;
    }
    if (i >= OPTIONS_N(option_common))
        return false;
    *at = (struct option_at){.row = &option_common[i], .group = &common_group};
    return true;
}

bool option_word(const struct option_program *p, unsigned i, struct option_at *at)
{
    bool of_base = !p->words && p->base;
    const struct option_program *q = of_base ? p->base : p;

    if (i >= q->n_words)
        return false;
    *at = (struct option_at){.row = &q->words[i], .into = of_base, .initial = q->words[i].initial};
    return true;
}

/* ---- finding ---- */

static bool is_name(const char *name, const char *s, size_t n)
{
    return name && !strncmp(name, s, n) && !name[n];
}

/* Iterates over the names of all options, for nearest_name(). */
static const char *name_at(const void *ctx, unsigned i)
{
    const struct option_program *p = ctx;
    struct option_at at;

    if (!option_at(p, i / 2, &at))
        return NULL;
    return i % 2 && at.row->also ? at.row->also : at.hidden ? "" : at.row->name;
}

static int unknown(struct scan *s, const char *arg)
{
    size_t n = strcspn(arg, "=");
    char found[72];
    const char *near;

    snprintf(found, sizeof(found), "%.*s", (int)(n < 64 ? n : 64), arg);
    near = nearest_name(found + strspn(found, "-"), name_at, s->p);
    snprintf(s->r->err, OPTIONS_ERR, "found %s, expected an option of %s%s%s%s", found, s->p->name,
             near ? "; did you mean --" : "", near ? near : "", near ? "?" : "");
    return -EINVAL;
}

/* Finds the row with the long name of n letters, or the only row whose name begins with it. */
static int find_long(struct scan *s, const char *arg, size_t n, struct option_at *found,
                     unsigned *number)
{
    const char *name = arg + 2;
    struct option_at at;
    unsigned some = 0;

    for (unsigned i = 0; option_at(s->p, i, &at); i++) {
        bool exact = is_name(at.row->name, name, n) || is_name(at.row->also, name, n) ||
                     is_name(at.row->old, name, n);

        if (!exact && (!n || at.hidden || strncmp(at.row->name, name, n)))
            continue;
        if (some && !exact)
            snprintf(s->r->err, OPTIONS_ERR,
                     "found --%.*s, expected an option of %s: --%s and --%s begin so",
                     (int)(n < 64 ? n : 64), name, s->p->name, found->row->name, at.row->name);
        *found = at;
        *number = i;
        some++;
        if (exact)
            return 0;
    }
    if (some > 1)
        return -EINVAL;
    return some ? 0 : unknown(s, arg);
}

/* ---- taking ---- */

static void warn(struct scan *s, const struct option_row *row, const char *name, size_t n)
{
    const char *instead = row->instead;
    char now[40];

    if (is_name(row->old, name, n)) {
        snprintf(now, sizeof(now), "--%s", row->name);
        instead = now;
    }
    if (instead)
        snprintf(s->r->warning, sizeof(s->r->warning),
                 "--%.*s is deprecated and goes with the next release; use %s", (int)n, name,
                 instead);
}

static int take_common(struct scan *s, const struct option_row *row, const char *label,
                       const char *value)
{
    if (row == &option_common[1])
        s->r->action = OPTIONS_VERSION;
    else
        s->r->action = !value                       ? OPTIONS_HELP
                       : !strcmp(value, "man")      ? OPTIONS_MAN
                       : !strcmp(value, "complete") ? OPTIONS_COMPLETE
                                                    : OPTIONS_RUN;
    if (s->r->action != OPTIONS_RUN && (row == &option_common[0] || !value))
        return 0;
    snprintf(s->r->err, OPTIONS_ERR, "%s: found \"%.64s\", expected no value", label, value);
    return -EINVAL;
}

/* value: attached to the name; NULL: the next word is the value. */
static int take_option(struct scan *s, const struct option_at *at, unsigned number,
                       const char *label, const char *value)
{
    const struct option_row *row = at->row;

    s->r->given[number / 64] |= 1ull << number % 64;
    if (at->group == &common_group)
        return take_common(s, row, label, value);
    if (row->type == OPTION_FLAG && value) {
        snprintf(s->r->err, OPTIONS_ERR, "%s: found \"%.64s\", expected no value", label, value);
        return -EINVAL;
    }
    if (row->type != OPTION_FLAG && !value && s->i + 1 < s->argc)
        value = s->argv[++s->i];
    if (row->type != OPTION_FLAG && (!value || (row->type == OPTION_TEXT && !*value))) {
        snprintf(s->r->err, OPTIONS_ERR, "%s: found nothing, expected %s", label, row->arg);
        return -EINVAL;
    }
    return options_take(s->into[at->into], row, label, value, s->r->err);
}

static int take_long(struct scan *s)
{
    const char *arg = s->argv[s->i], *name = arg + 2;
    size_t n = strcspn(name, "=");
    struct option_at at = {0};
    unsigned number = 0;
    char label[72];
    int rc = find_long(s, arg, n, &at, &number);

    if (rc)
        return rc;
    warn(s, at.row, name, n);
    snprintf(label, sizeof(label), "--%s",
             is_name(at.row->also, name, n)  ? at.row->also
             : is_name(at.row->old, name, n) ? at.row->old
                                             : at.row->name);
    return take_option(s, &at, number, label, name[n] ? name + n + 1 : NULL);
}

static bool find_short(const struct option_program *p, char c, struct option_at *at,
                       unsigned *number)
{
    for (*number = 0; option_at(p, *number, at); ++*number)
        if (at->row->c == c)
            return true;
    return false;
}

/* Takes a word of short options: only the last one may have a value. */
static int take_short(struct scan *s)
{
    const char *arg = s->argv[s->i];

    for (const char *c = arg + 1; *c && s->r->action == OPTIONS_RUN; c++) {
        char label[3] = {'-', *c, 0};
        struct option_at at;
        unsigned number;
        int rc;

        if (!find_short(s->p, *c, &at, &number))
            return unknown(s, arg);
        if (at.row->type != OPTION_FLAG)
            return take_option(s, &at, number, label, c[1] ? c + 1 : NULL);
        rc = take_option(s, &at, number, label, NULL);
        if (rc)
            return rc;
    }
    return 0;
}

static int take_word(struct scan *s)
{
    const char *word = s->argv[s->i];
    struct option_at at;

    if (!option_word(s->p, s->r->n_words, &at)) {
        bool last = s->r->n_words && option_word(s->p, s->r->n_words - 1, &at);

        snprintf(s->r->err, OPTIONS_ERR, "found \"%.64s\"%s%s, expected an option", word,
                 last ? " after " : "", last ? at.row->arg : "");
        return -EINVAL;
    }
    s->r->n_words++;
    return options_take(s->into[at.into], at.row, at.row->arg, word, s->r->err);
}

static int check_words(struct scan *s)
{
    unsigned n = s->r->n_words;
    struct option_at at;

    if (!option_word(s->p, n, &at) || !(at.row->how & OPTION_REQUIRED) || s->r->rest < s->argc)
        return 0;
    snprintf(s->r->err, OPTIONS_ERR, "found no %s, expected %s", at.row->arg, at.row->help);
    return -EINVAL;
}

static void set_defaults(struct scan *s)
{
    struct option_at at;
    int rc = 0;

    for (unsigned i = 0; option_at(s->p, i, &at); i++)
        if (at.initial)
            rc |= options_take(s->into[at.into], at.row, at.row->name, at.initial, s->r->err);
    for (unsigned i = 0; option_word(s->p, i, &at); i++)
        if (at.initial)
            rc |= options_take(s->into[at.into], at.row, at.row->arg, at.initial, s->r->err);
    T_ASSERT(!rc, "a default of the table is a value that the table allows");
}

/* Whether the next word begins what is left to the program (OPTION_REST). */
static bool at_rest(const struct scan *s)
{
    struct option_at at;

    return option_word(s->p, s->r->n_words, &at) && at.row->how & OPTION_REST;
}

int options_parse(const struct option_program *p, void *const *into, int argc, char **argv,
                  struct option_result *r)
{
    struct scan s = {p, into, argv, argc, 1, r};
    bool words = false;
    int rc = 0;

    *r = (struct option_result){.rest = argc};
    set_defaults(&s);
    for (; !rc && r->action == OPTIONS_RUN && s.i < argc; s.i++) {
        const char *arg = argv[s.i];

        if (!words && !strcmp(arg, "--")) {
            words = true;
        } else if (words || arg[0] != '-' || !arg[1]) {
            words = words || p->words_end_options;
            if (at_rest(&s)) {
                r->rest = s.i;
                break;
            }
            rc = take_word(&s);
        } else {
            rc = arg[1] == '-' ? take_long(&s) : take_short(&s);
        }
    }
    return rc || r->action != OPTIONS_RUN ? rc : check_words(&s);
}

/* ---- for programs ---- */

bool options_given(const struct option_program *p, const struct option_result *r, const char *name)
{
    struct option_at at;

    for (unsigned i = 0; option_at(p, i, &at); i++)
        if (!strcmp(at.row->name, name))
            return r->given[i / 64] >> i % 64 & 1;
    return false;
}

const struct option_row *options_given_other(const struct option_program *p,
                                             const struct option_result *r,
                                             const char *const *names)
{
    struct option_at at;

    for (unsigned i = 0; option_at(p, i, &at); i++) {
        const char *const *n = names;

        while (*n && strcmp(*n, at.row->name) != 0)
            n++;
        if (!*n && (r->given[i / 64] >> i % 64 & 1))
            return at.row;
    }
    return NULL;
}

int options_wrong(const struct option_program *p, const char *err)
{
    fprintf(stderr, "%s: %s\n%s -h shows all options\n", p->name, err, p->name);
    return 2;
}

bool options_begin(const struct option_program *p, void *const *into, int argc, char **argv,
                   struct option_result *r, int *code)
{
    int rc = options_parse(p, into, argc, argv, r);

    if (r->warning[0])
        fprintf(stderr, "%s: %s\n", p->name, r->warning);
    *code = 0;
    if (rc) {
        *code = options_wrong(p, r->err);
        return false;
    }
    switch (r->action) {
    case OPTIONS_RUN:
        return true;
    case OPTIONS_HELP:
        options_help(p, stdout);
        break;
    case OPTIONS_VERSION:
        printf("%s (Tributary) %s\n", p->name, TRIB_VERSION);
        break;
    case OPTIONS_MAN:
        options_man(p, stdout);
        break;
    case OPTIONS_COMPLETE:
        options_complete(p, stdout);
        break;
    }
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "%s: cannot write to standard output: %s\n", p->name, strerror(errno));
        *code = 1;
    }
    return false;
}
