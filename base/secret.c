/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/secret.h"

#include <ctype.h>
#include <libconfig.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Names of secret settings: lower case, letters only. */
static const char *const secrets[] = {"trunkkey"};

/* Whether the text begins with this name: case and the characters "_-*" do not count. */
static bool name_begins(const char *text, const char *name)
{
    for (; *name; text++) {
        if (strchr("_-*", *text) && *text)
            continue;
        if (tolower((unsigned char)*text) != *name++)
            return false;
    }
    return true;
}

bool secret_named(const char *text)
{
    for (; *text; text++)
        for (unsigned i = 0; i < LEN(secrets); i++)
            if (name_begins(text, secrets[i]))
                return true;
    return false;
}

static void text_write(const char *text, FILE *out)
{
    fputc('"', out);
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < ' ' || *text == 0x7f)
            fprintf(out, "\\x%02x", (unsigned char)*text);
        else
            fputc(*text, out);
    fputc('"', out);
}

/* Writes all digits, which libconfig's own writer does not. ".0" keeps "1" from being an integer. */
static void float_write(double v, FILE *out)
{
    char text[40];

    snprintf(text, sizeof(text), "%.17g", v);
    fprintf(out, "%s%s", text, strpbrk(text, ".en") ? "" : ".0");
}

static void scalar_write(const config_setting_t *s, FILE *out)
{
    switch (config_setting_type(s)) {
    case CONFIG_TYPE_INT:
        fprintf(out, "%d", config_setting_get_int(s));
        break;
    case CONFIG_TYPE_INT64:
        fprintf(out, "%lldL", config_setting_get_int64(s));
        break;
    case CONFIG_TYPE_FLOAT:
        float_write(config_setting_get_float(s), out);
        break;
    case CONFIG_TYPE_BOOL:
        fputs(config_setting_get_bool(s) ? "true" : "false", out);
        break;
    default:
        text_write(config_setting_get_string(s), out);
    }
}

static void settings_write(config_setting_t *parent, int depth, FILE *out);

static void value_write(config_setting_t *s, int depth, FILE *out)
{
    const char *ends = config_setting_is_group(s) ? "{}" : config_setting_is_list(s) ? "()" : "[]";

    if (!config_setting_is_aggregate(s)) {
        scalar_write(s, out);
        return;
    }
    fputc(ends[0], out);
    settings_write(s, depth + 1, out);
    if (config_setting_is_group(s))
        fprintf(out, "%*s", 4 * depth, "");
    fputc(ends[1], out);
}

/* Writes the members of a group, one a line, or the elements of a list. */
static void settings_write(config_setting_t *parent, int depth, FILE *out)
{
    bool group = config_setting_is_group(parent);

    if (group && depth)
        fputc('\n', out);
    for (int i = 0; i < config_setting_length(parent); i++) {
        config_setting_t *s = config_setting_get_elem(parent, (unsigned)i);

        if (group)
            fprintf(out, "%*s%s = ", 4 * depth, "", config_setting_name(s));
        else if (i)
            fputs(", ", out);
        if (group && secret_named(config_setting_name(s)))
            fputs("\"" SECRET_HIDDEN "\"", out);
        else
            value_write(s, depth, out);
        if (group)
            fputs(";\n", out);
    }
}

static char *conf_written(const config_t *c)
{
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);

    if (!out)
        return NULL;
    settings_write(config_root_setting(c), 0, out);
    if (!fclose(out))
        return text;
    free(text);
    return NULL;
}

char *secret_hide(const char *text)
{
    char *hidden = NULL;
    config_t c;

    if (!secret_named(text))
        return strdup(text);
    if (strstr(text, "@include")) /* libconfig would open that file */
        return NULL;
    if (!strncmp(text, "\xef\xbb\xbf", 3))
        text += 3;
    config_init(&c);
    if (config_read_string(&c, text) == CONFIG_TRUE)
        hidden = conf_written(&c);
    config_destroy(&c);
    return hidden;
}
