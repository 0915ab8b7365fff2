/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the tables: --help, the manual page, and lines for shell completion. */
#include "base/options_priv.h"
#include "base/version.h"

#include <ctype.h>
#include <string.h>

#define LEFT  32 /* column of the help texts */
#define WIDTH 100

/* ---- texts of a row ---- */

/* "-b, --minbytes SIZE", or an argument's name. */
static void spell(const struct option_row *r, char *out, size_t size)
{
    int n = 0;

    if (!r->name) {
        snprintf(out, size, "%s", r->arg);
        return;
    }
    if (r->c)
        n = snprintf(out, size, "-%c, --%s", r->c, r->name);
    else
        n = snprintf(out, size, "    --%s", r->name);
    if (r->also)
        n += snprintf(out + n, size - (size_t)n, ", --%s", r->also);
    if (r->arg)
        snprintf(out + n, size - (size_t)n, " %s", r->arg);
}

/* The help text, followed by the list's names, the default, and the replacement of a deprecated
 * option. */
static void option_describe(const struct option_at *at, char *out, size_t size)
{
    const struct option_row *r = at->row;
    const char *now = at->initial ? at->initial : r->shown, *name;
    size_t n = (size_t)snprintf(out, size, "%s", r->help);

    for (unsigned i = 0; r->list && (name = r->list(i)) && n < size; i++)
        n += !*name ? 0 : (size_t)snprintf(out + n, size - n, "%s%s", i ? ", " : ": ", name);
    if (now && n < size)
        n += (size_t)snprintf(out + n, size - n, " (default: %s)", now);
    if (r->instead && n < size)
        snprintf(out + n, size - n, "; deprecated: use %s", r->instead);
}

static const char *next_line(const char *s)
{
    s += strcspn(s, "\n");
    return *s ? s + 1 : s;
}

/* Wraps the words of s from column `at` on, later lines from column `indent`; "\n\n" separates
 * paragraphs. */
static void text_wrap(FILE *out, const char *s, size_t at, size_t indent)
{
    bool first = true;

    for (; *s == '\n'; s++)
        fputc('\n', out);
    while (*s) {
        size_t n = strcspn(s, " \n");

        if (!first && at + 1 + n > WIDTH) {
            fprintf(out, "\n%*s", (int)indent, "");
            at = indent;
            first = true;
        }
        at += n + !first;
        fprintf(out, "%s%.*s", first ? "" : " ", (int)n, s);
        first = false;
        s += n;
        if (!strncmp(s, "\n\n", 2)) {
            fprintf(out, "\n\n%*s", (int)indent, "");
            at = indent;
            first = true;
        }
        s += strspn(s, " \n");
    }
    fputc('\n', out);
}

static void print_left(FILE *out, const char *left, const char *text)
{
    int n = fprintf(out, "  %s", left);

    if (n + 2 > LEFT) {
        fputc('\n', out);
        n = 0;
    }
    fprintf(out, "%*s", LEFT - n, "");
    text_wrap(out, text, LEFT, LEFT);
}

static void print_notes(FILE *out, const char *heading, const struct option_note *n)
{
    if (n)
        fprintf(out, "\n%s:\n", heading);
    for (; n && n->what; n++)
        print_left(out, n->what, n->means);
}

void options_help(const struct option_program *p, FILE *out)
{
    const struct option_group *group = NULL;
    struct option_at at;
    char left[100], text[640];

    for (const char *s = p->synopsis; *s; s = next_line(s))
        fprintf(out, "%s %s %.*s\n", s == p->synopsis ? "Usage:" : "      ", p->name,
                (int)strcspn(s, "\n"), s);
    fputc(toupper((unsigned char)p->summary[0]), out);
    fprintf(out, "%s.\n\n", p->summary + 1);
    if (p->text)
        text_wrap(out, p->text, 0, 0);
    for (unsigned i = 0; option_word(p, i, &at); i++) {
        if (!i)
            fputs("\nArguments:\n", out);
        if (at.row->how & OPTION_HIDDEN)
            continue;
        option_describe(&at, text, sizeof(text));
        print_left(out, at.row->arg, text);
    }
    for (unsigned i = 0; option_at(p, i, &at); i++) {
        if (at.hidden)
            continue;
        if (at.group != group)
            fprintf(out, "\n%s:\n", at.group->heading);
        group = at.group;
        spell(at.row, left, sizeof(left));
        option_describe(&at, text, sizeof(text));
        print_left(out, left, text);
    }
    print_notes(out, "Exit status", p->exits);
    print_notes(out, "Environment", p->environment);
}

/* ---- the manual page ---- */

/* Escapes text for roff. */
static void roff(FILE *out, const char *s)
{
    for (bool start = true; *s; s++) {
        if (start && (*s == '.' || *s == '\''))
            fputs("\\&", out);
        start = *s == '\n';
        if (*s == '-')
            fputs("\\-", out);
        else if (*s == '\\')
            fputs("\\e", out);
        else
            fputc(*s, out);
    }
}

static void roff_paragraphs(FILE *out, const char *s)
{
    while (*s) {
        const char *end = strstr(s, "\n\n");
        char text[1024];

        snprintf(text, sizeof(text), "%.*s", end ? (int)(end - s) : 1000, s);
        fputs(".PP\n", out);
        roff(out, text);
        fputc('\n', out);
        s += end ? (size_t)(end - s) + 2 : strlen(s);
    }
}

static void roff_name(FILE *out, const char *dashes, const char *name, const char *before)
{
    fprintf(out, "%s\\fB", before);
    roff(out, dashes);
    roff(out, name);
    fputs("\\fR", out);
}

static void roff_row(FILE *out, const struct option_at *at)
{
    const struct option_row *r = at->row;
    const char letter[2] = {r->c, 0};
    char text[640];

    fputs(".TP\n", out);
    if (!r->name) {
        fputs("\\fI", out);
        roff(out, r->arg);
        fputs("\\fR", out);
    } else {
        if (r->c)
            roff_name(out, "-", letter, "");
        roff_name(out, "--", r->name, r->c ? ", " : "");
        if (r->also)
            roff_name(out, "--", r->also, ", ");
    }
    if (r->name && r->arg) {
        fputs(" \\fI", out);
        roff(out, r->arg);
        fputs("\\fR", out);
    }
    fputc('\n', out);
    option_describe(at, text, sizeof(text));
    roff(out, text);
    fputs(".\n", out);
}

static void roff_notes(FILE *out, const char *heading, const struct option_note *n)
{
    if (n)
        fprintf(out, ".SH %s\n", heading);
    for (; n && n->what; n++) {
        fputs(".TP\n\\fB", out);
        roff(out, n->what);
        fputs("\\fR\n", out);
        roff(out, n->means);
        fputs(".\n", out);
    }
}

/* NAME, SYNOPSIS, DESCRIPTION. */
static void roff_head(const struct option_program *p, FILE *out)
{
    char line[200];

    fputs(".TH ", out);
    for (const char *s = p->name; *s; s++)
        fputc(toupper((unsigned char)*s), out);
    fprintf(out, " 1 \"\" \"Tributary %s\" \"Tributary manual\"\n.SH NAME\n", TRIB_VERSION);
    roff(out, p->name);
    fputs(" \\- ", out);
    roff(out, p->summary);
    fputs("\n.SH SYNOPSIS\n", out);
    for (const char *s = p->synopsis; *s; s = next_line(s)) {
        snprintf(line, sizeof(line), "%.*s", (int)strcspn(s, "\n"), s);
        roff_name(out, "", p->name, s == p->synopsis ? "" : ".br\n");
        fputc(' ', out);
        roff(out, line);
        fputc('\n', out);
    }
    fputs(".SH DESCRIPTION\n", out);
    if (p->text)
        roff_paragraphs(out, p->text);
}

void options_man(const struct option_program *p, FILE *out)
{
    const struct option_group *group = NULL;
    struct option_at at;

    roff_head(p, out);
    for (unsigned i = 0; option_word(p, i, &at); i++) {
        if (!i)
            fputs(".SH ARGUMENTS\n", out);
        if (at.row->how & OPTION_HIDDEN)
            continue;
        roff_row(out, &at);
    }
    fputs(".SH OPTIONS\n", out);
    for (unsigned i = 0; option_at(p, i, &at); i++) {
        if (at.hidden)
            continue;
        if (at.group != group)
            fprintf(out, ".SS %s\n", at.group->heading);
        group = at.group;
        roff_row(out, &at);
    }
    roff_notes(out, "EXIT STATUS", p->exits);
    roff_notes(out, "ENVIRONMENT", p->environment);
    if (p->see) {
        fputs(".SH SEE ALSO\n", out);
        roff(out, p->see);
        fputc('\n', out);
    }
}

/* ---- completion ---- */

/* Separated by tabs: long name, short name, value, possible values, help. */
static void complete_row(FILE *out, const struct option_at *at, const char *name)
{
    const struct option_row *r = at->row;
    const char letter[3] = {'-', r->c, 0}, *value;

    fprintf(out, "%s%s\t%s\t%s\t", name ? "--" : "", name ? name : "", r->c ? letter : "",
            r->arg ? r->arg : "");
    for (unsigned i = 0; r->list && (value = r->list(i)); i++)
        if (*value)
            fprintf(out, "%s%s", i ? " " : "", value);
    if (r->type == OPTION_SET)
        fputs(" all", out);
    fprintf(out, "\t%s\n", r->help);
}

void options_complete(const struct option_program *p, FILE *out)
{
    struct option_at at;

    for (unsigned i = 0; option_word(p, i, &at); i++)
        if (!(at.row->how & OPTION_HIDDEN))
            complete_row(out, &at, NULL);
    for (unsigned i = 0; option_at(p, i, &at); i++) {
        if (at.hidden)
            continue;
        complete_row(out, &at, at.row->name);
        if (at.row->also)
            complete_row(out, &at, at.row->also);
    }
}
